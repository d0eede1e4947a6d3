"""rote web: what it prints, what it refuses, and how it ends."""

import asyncio
import json
import os
import signal
import sys
import threading
import time
import webbrowser
from collections.abc import Callable

import httpx
import pytest
import uvicorn

from rote.cli import main
from rote.platform.system import free_port


def serve(
    arguments: list[str], port: int, ask: Callable[[httpx.Client], None], *, plain: bool = True
) -> int:
    """Run `rote web` here, ask it something from a thread, and end it by a signal."""
    failures: list[BaseException] = []

    def work() -> None:
        try:
            with httpx.Client(
                base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=30.0
            ) as http:
                until = time.monotonic() + 20
                while True:
                    try:
                        http.get("/")
                        break
                    except httpx.RemoteProtocolError:
                        assert not plain
                        break
                    except httpx.ConnectError:
                        assert time.monotonic() < until, "the server does not listen"
                ask(http)
        except BaseException as error:
            failures.append(error)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=work)
    thread.start()
    code = main(["web", "--port", str(port), *arguments])
    thread.join(20)
    assert not failures, failures
    return code


def test_it_says_where_it_is_serves_its_robot_and_ends_when_asked_to(
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = free_port()

    def ask(http: httpx.Client) -> None:
        assert http.get("/openapi.json").json()["openapi"].startswith("3.")
        until = time.monotonic() + 60
        while http.get("/api/status").json()["connection"]["state"] != "connected":
            assert time.monotonic() < until, "the server does not reach its robot"
            time.sleep(0.1)
        assert http.post("/api/stop", json={}).json()["stopped"] == "nothing"

    assert serve(["--no-browser"], port, ask) == 128 + signal.SIGTERM
    out, err = capsys.readouterr()
    assert f"http://127.0.0.1:{port}/" in out
    assert "sim://g1" in out
    assert err == ""


def test_a_script_reads_the_address_and_the_token(capsys: pytest.CaptureFixture[str]) -> None:
    port = free_port()

    def ask(http: httpx.Client) -> None:
        assert http.get("/api/status").status_code == 403

    assert serve(["--host", "0.0.0.0", "--json"], port, ask) == 128 + signal.SIGTERM
    out, _ = capsys.readouterr()
    ready = json.loads(out)
    assert ready["event"] == "ready"
    assert len(ready["url"].partition("?token=")[2]) > 20
    links = [ready[name] for name in ("url", "command_url", "watch_url")]
    assert len({url.partition("?token=")[2] for url in links}) == 3


def test_it_prints_a_link_for_each_role_and_the_fingerprint_of_its_certificate(
    capsys: pytest.CaptureFixture[str],
) -> None:
    port = free_port()

    def ask(http: httpx.Client) -> None:
        with pytest.raises(httpx.HTTPError):  # plain HTTP is not answered
            http.get("/api/status")
        with httpx.Client(verify=False, trust_env=False) as secure:  # it signs itself
            assert secure.get(f"https://127.0.0.1:{port}/api/status").status_code == 403

    token = "a-token-of-my-own"
    arguments = ["--no-browser", "--tls", "--token", token]
    assert serve(arguments, port, ask, plain=False) == 128 + signal.SIGTERM
    out, _ = capsys.readouterr()
    assert f"The web UI is at https://127.0.0.1:{port}/?token={token}" in out
    assert "A link that only watches: https://" in out
    assert "fingerprint" in out
    assert "unencrypted" not in out


class Shown:
    """A browser that remembers what it was to open."""

    def __init__(self) -> None:
        self.opened: list[str] = []

    def open(self, address: str) -> bool:
        self.opened.append(address)
        return True


def test_it_opens_a_browser_where_there_is_one_and_shows_a_token_it_was_given(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    port, browser = free_port(), Shown()
    monkeypatch.setattr(webbrowser, "get", lambda: browser)
    token = "a-token-of-my-own"

    def ask(http: httpx.Client) -> None:
        until = time.monotonic() + 20
        while not browser.opened and time.monotonic() < until:
            http.get("/")

    assert serve(["--token", token], port, ask) == 128 + signal.SIGTERM
    assert browser.opened == [f"http://127.0.0.1:{port}/?token={token}"]
    assert "can move the robot" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--token", "short"], "guessed"),
        (["--host", ""], "empty"),
        (["--robot", "sim://nobody"], "not a simulated robot that rote knows"),
        (["--robot", "foo"], "does not name a wire"),
        (["--host", "203.0.113.7", "--port", "0"], "cannot be used"),
        (["--tls-cert", "one.pem"], "go together"),
        (["--tls-cert", "none.pem", "--tls-key", "none.pem"], "none.pem cannot be read"),
        (["--proxy", "robot.example.org"], "is not the origin of a proxy"),
        (["--proxy-from", "10.0.0.1"], "needs --proxy"),
    ],
)
def test_what_cannot_be_served_is_refused_in_words(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    assert main(["web", "--no-browser", *arguments]) in {2, 3}
    assert words in capsys.readouterr().err


def test_without_its_packages_it_names_the_extra(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "rote.web.services.hub", None)
    assert main(["web"]) == 1
    assert "rote-robot[web]" in capsys.readouterr().err


def test_a_terminal_is_shown_a_code_and_nothing_is_opened_without_a_browser(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def none() -> None:
        raise webbrowser.Error("there is no browser")

    monkeypatch.setattr(webbrowser, "get", none)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    port = free_port()
    assert serve(["--token", "a-token-of-my-own"], port, lambda _: None) == 128 + signal.SIGTERM
    assert "\u2588" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fault", "code", "words"),
    [
        (RuntimeError("its loop is closed"), 3, "the server has ended: RuntimeError: its loop"),
        (ImportError("no websockets"), 1, "rote-robot[web]"),
        (None, 3, "the server has ended: it could not start"),
    ],
)
def test_a_server_that_dies_ends_the_command_with_an_error(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    fault: Exception | None,
    code: int,
    words: str,
) -> None:
    async def dies(self: uvicorn.Server, sockets: object = None) -> None:
        if fault is not None:
            raise fault

    monkeypatch.setattr(uvicorn.Server, "serve", dies)
    assert main(["web", "--no-browser", "--port", "0"]) == code
    assert words in capsys.readouterr().err


def test_a_server_that_dies_later_ends_the_command_with_an_error(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def dies(self: uvicorn.Server) -> None:
        await asyncio.sleep(0.1)
        raise OSError(24, "too many open files")

    monkeypatch.setattr(uvicorn.Server, "main_loop", dies)
    assert main(["web", "--no-browser", "--port", "0"]) == 3
    out, err = capsys.readouterr()
    assert "The web UI is at" in out
    assert "the server has ended: OSError" in err
