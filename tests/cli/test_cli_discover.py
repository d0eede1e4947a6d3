"""rote discover, with robots that answer on this computer; serials are made up."""

import asyncio
import json
import os
import re
import signal
import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from forked import Rote
from rote.cli import main
from rote.transport.discovery import InterfaceAddress, list_addresses, open_responder
from rote.wire.discovery import REPLY_PORT, list_groups

pytestmark = pytest.mark.skipif(not list_addresses(), reason="no network here, not even loopback")


@pytest.fixture
def serial() -> str:
    return f"TEST{uuid.uuid4().hex[:12]}"


@contextmanager
def robot(
    serial: str,
    *,
    only_by_name: bool = False,
    address_for: Callable[[InterfaceAddress], str] = lambda interface: interface.address,
) -> Iterator[None]:
    """A robot that can be found while the block runs, on a loop of its own."""
    ready, ended = threading.Event(), threading.Event()

    async def live() -> None:
        responder = await open_responder(
            serial, address_for, only_by_name=only_by_name, announce=False
        )
        ready.set()
        while not ended.is_set():
            await asyncio.sleep(0.005)
        responder.close()

    thread = threading.Thread(target=asyncio.run, args=(live(),))
    thread.start()
    assert ready.wait(10)
    try:
        yield
    finally:
        ended.set()
        thread.join()


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["discover", *arguments])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_named_robot_is_told_as_json_as_soon_as_it_answers(
    serial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with robot(serial, only_by_name=True):
        code, out, err = ask(capsys, serial, "--seconds", "30", "--json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert set(document) == {"robots", "seconds"}
    assert document["seconds"] == 30.0
    found = next(one for one in document["robots"] if one["serial"] == serial)
    here = InterfaceAddress(found["interface"], found["address"])
    assert here in list_addresses()
    assert 0 <= found["after_s"] < 30
    assert found == {
        "serial": serial,
        "address": here.address,
        "interface": here.name,
        "after_s": found["after_s"],
        "url": f"webrtc://{here.address}",
    }


def test_people_get_a_line_per_robot_with_the_url_to_use(
    serial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    two = f"{serial}-2"
    with (
        robot(serial, address_for=lambda one: "10.0.0.7"),
        robot(two, address_for=lambda one: "fd00::7"),
    ):
        code, out, err = ask(capsys, serial, two, "--seconds", "30")
    assert (code, err) == (0, "")
    assert out.splitlines()[0].split() == ["serial", "address", "interface", "seconds", "url"]
    rows = [line.split() for line in out.splitlines() if line.startswith(serial)]
    by_serial = {row[0]: row for row in rows}
    assert by_serial[serial][1] == "10.0.0.7"
    assert by_serial[serial][4] == "webrtc://10.0.0.7"
    assert by_serial[two][4] == "webrtc://[fd00::7]"
    assert all(re.fullmatch(r"\d+\.\d\d", row[3]) for row in rows)


def test_who_did_not_answer_is_named_and_the_others_are_still_told(
    serial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with robot(serial):
        code, out, err = ask(capsys, serial, f"{serial}-none", "--seconds", "0.5", "--json")
    assert code == 3
    assert serial in [one["serial"] for one in json.loads(out)["robots"]]
    error = json.loads(err)
    assert error["error"] == "no-answer"
    assert error["message"].startswith(f"no answer from {serial}-none in 0.5 s")


def test_nobody_at_all_is_an_empty_list_and_words_on_what_to_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    # No simulated robot is in the group of the Go2.
    code, out, err = ask(capsys, "--family", "go2", "--seconds", "0.1", "--json")
    if json.loads(out)["robots"]:
        pytest.skip("there are robots on this network")
    assert (code, json.loads(out)) == (3, {"robots": [], "seconds": 0.1})
    assert "rote discover SERIAL" in json.loads(err)["remedy"]
    code, out, err = ask(capsys, "--family", "go2", "--seconds", "0.1")
    assert (code, out) == (3, "")
    for hint in ("no answer from any robot", "rote discover SERIAL", "1.5.1", "webrtc://HOST"):
        assert hint in err


def test_what_came_and_was_no_answer_is_mentioned(
    serial: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ended = threading.Event()

    def disturb() -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            loopback = socket.inet_aton("127.0.0.1")
            one.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_IF, loopback)
            while not ended.wait(0.01):
                one.sendto(b"junk", (list_groups("g1")[0], REPLY_PORT))

    thread = threading.Thread(target=disturb)
    thread.start()
    try:
        code, _, err = ask(capsys, serial, "--seconds", "0.3")
    finally:
        ended.set()
        thread.join()
    assert code == 3
    assert re.search(r"[1-9]\d* datagrams were not valid answers", err)


def test_a_table_for_people_has_a_head(
    serial: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich's word for: this is a terminal
    monkeypatch.setenv("COLUMNS", "120")
    with robot(serial, address_for=lambda one: "10.0.0.7"):
        code, out, _ = ask(capsys, serial, "--seconds", "30")
    assert code == 0
    final = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.rpartition("searching ...")[2])
    assert final.split()[:5] == ["serial", "address", "interface", "seconds", "url"]
    assert re.search(rf"^{serial} +10\.0\.0\.7 .* webrtc://10\.0\.0\.7", final, re.MULTILINE)


@pytest.mark.parametrize("wrong", [["--family", "b2"], ["--seconds", "0"], ["x" * 65]], ids=str)
def test_what_cannot_be_asked_is_a_usage_error(
    wrong: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = ask(capsys, *wrong)
    assert (code, out) == (2, "")
    assert err.startswith("rote: ")


def _on_a_terminal(*arguments: str) -> tuple[Rote, int]:
    master, slave = os.openpty()
    process = Rote(
        *("discover", *arguments),
        stdin=slave,
        stdout=slave,
        stderr=slave,
        env=os.environ | {"TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(slave)
    return process, master


def _until(master: int, words: str) -> str:
    seen = ""
    while words not in seen:
        seen += os.read(master, 4096).decode()
    return seen


def _rest(master: int) -> str:
    seen = b""
    try:
        while more := os.read(master, 4096):
            seen += more
    except OSError:  # the terminal's other end is closed
        pass
    return seen.decode()


@pytest.mark.slow
def test_on_a_terminal_the_table_grows_and_ctrl_c_leaves_it_there(serial: str) -> None:
    process, master = _on_a_terminal(serial, f"{serial}-none", "--seconds", "60")
    try:
        assert serial not in _until(master, "searching ...")
        with robot(serial, address_for=lambda one: "10.0.0.7"):
            _until(master, "webrtc://10.0.0.7")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        rest = _rest(master)
    finally:
        process.kill()
        process.wait()
        os.close(master)
    assert "Traceback" not in rest
    assert "webrtc://10.0.0.7" in rest.rpartition("searching ...")[2]
