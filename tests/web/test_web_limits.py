"""What bounds those who ask too much: time, number, guesses, floods; and TLS and proxies."""

import asyncio
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from rote.errors import BadRequestError, MissingExtraError
from rote.motion.files.library import Library
from rote.web.access.certificate import TlsFiles, check_files, fingerprint, own_certificate
from rote.web.access.roles import PendantRole
from rote.web.access.security import BODY_S, MAX_WRONG, RETRY_S, Gate, Proxy, load_server_key
from rote.web.server import serve
from rote.web.server.serve import HEADER_S, MAX_HALF_OPEN, link, serving
from rote.web.services.activity import PendantStopResult
from rote.web.services.hub import Start
from rote.web.services.stops import ANSWERED_S, REPEAT_S, Stops
from virtual import run
from web.pendant import MEMORY, Pendant, one_browser, pendant

TOKEN = "a-token-for-these-tests"

Wire = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def dial(server: Pendant, text: str = "") -> Wire:
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(text.encode())
    await asyncio.sleep(0.01)  # each is older than the next
    return reader, writer


async def closed_after_s(wire: Wire) -> float:
    """Wait until the server closes, and return how long that took."""
    began_s = asyncio.get_running_loop().time()
    with suppress(ConnectionError):
        assert await wire[0].read() == b""
    return asyncio.get_running_loop().time() - began_s


# ---- connections --------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "G", "GET /api/status HTTP/1.1\r\nHost: 127.0.0.1\r\n"])
def test_a_request_that_does_not_arrive_is_not_waited_for(tmp_path: Path, text: str) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            wire = await dial(server, text)
            assert await closed_after_s(wire) == pytest.approx(HEADER_S, abs=1)
            wire[1].close()

    run(story())


def test_the_next_request_of_a_connection_is_not_waited_for_either(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            asked = "GET /api/robots HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            reader, writer = await dial(server, asked)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            await asyncio.sleep(1)
            writer.write(b"GET /api/rob")
            await asyncio.sleep(HEADER_S - 1)
            assert not reader.at_eof()
            with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
                async with asyncio.timeout(2):
                    await reader.readexactly(2**20)
            writer.close()

    run(story())


def test_a_slow_drip_does_not_keep_a_connection(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            reader, writer = await dial(server, "GET /api/status HTTP/1.1\r\n")
            began_s = asyncio.get_running_loop().time()
            while not reader.at_eof() and reader.exception() is None:
                writer.write(b"X-Y: z\r\n")
                await asyncio.sleep(0.5)
                assert asyncio.get_running_loop().time() - began_s < HEADER_S + 2
            writer.close()

    run(story())


def test_half_open_connections_give_way_to_those_who_ask(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            wires = [await dial(server) for _ in range(MAX_HALF_OPEN + 4)]
            await asyncio.sleep(0.1)
            for wire in wires[:4]:
                assert await closed_after_s(wire) < 1
            assert (await page.post("/stop"))["stopped"] == "nothing"
            assert not any(reader.at_eof() for reader, _ in wires[6:])
            for _, writer in wires:
                writer.close()

    run(story())


def test_where_all_places_are_taken_those_at_rest_give_way_and_no_open_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "MAX_CONNECTIONS", 6)

    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            asked = "GET /api/robots HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
            wires = [await dial(server, asked) for _ in range(10)]
            for reader, _ in wires[4:]:
                assert (await reader.readline()).startswith(b"HTTP/1.1 200")
            states = page.states
            await page.until(lambda: page.states > states + 10)
            assert (await page.post("/stop"))["stopped"] == "nothing"
            for _, writer in wires:
                writer.close()

    run(story())


def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            head = f"POST /api/edit HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Rote-Client: {page.id}\r\n"
            json_of = "Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
            reader, writer = await dial(server, head + json_of)
            began_s = asyncio.get_running_loop().time()
            answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 408")
            assert b'"too-slow"' in answer
            assert asyncio.get_running_loop().time() - began_s == pytest.approx(BODY_S, abs=1)
            writer.close()

    run(story())


def test_a_body_without_a_token_is_not_drained(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            for path in ("/api/takes/upload", "/api/stop"):
                for how in ("Content-Length: 30000000", "Transfer-Encoding: chunked"):
                    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{how}\r\n\r\n"
                    reader, writer = await dial(server, head)
                    heard = await reader.read()
                    assert heard.startswith(b"HTTP/1.1 403")
                    assert b"connection: close" in heard.lower()
                    sent = 0
                    with pytest.raises(ConnectionError):
                        while sent < 2**24:
                            writer.write(bytes(2**16))
                            await writer.drain()
                            sent += 2**16
                    writer.close()

    run(story())


# ---- guesses ------------------------------------------------------------------------------------


def test_guesses_are_held_off_and_who_is_in_stays_in(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            opened = await server.http.get("/", params={"token": TOKEN})
            (cookie,) = (
                each.partition(";")[0]
                for each in opened.headers.get_list("set-cookie")
                if not each.startswith("rote_seat")
            )
            server.http.cookies.clear()
            script = await server.browser_as(PendantRole.COMMAND)
            for number in range(MAX_WRONG):
                how: dict[str, Any] = (
                    {"params": {"token": f"guess-{number}"}}
                    if number % 2
                    else {"headers": {"Authorization": f"Bearer guess-{number}"}}
                )
                assert (await server.http.get("/api/status", **how)).status_code == 403
            right = {"Authorization": f"Bearer {TOKEN}"}
            for again in ({"Authorization": f"Bearer {TOKEN}"}, {}):
                token = {} if again else {"token": TOKEN}
                refused = await server.http.get("/", headers=again, params=token)
                assert refused.status_code == 429
                assert refused.headers["retry-after"] == str(RETRY_S)
                assert "Wait 30 s" in refused.text
            # Nobody who was let in notices: neither a page nor a script, and least of all a stop.
            page = await server.http.post("/api/stop", headers={"Cookie": cookie})
            assert page.json()["stopped"] == "nothing"
            assert (await script.post("/stop"))["stopped"] == "nothing"
            await script.socket.send('{"type":"stop"}')
            await script.until(lambda: "stopped" in script.latest)
            await asyncio.sleep(RETRY_S + 1)
            assert (await server.http.get("/api/status", headers=right)).status_code == 200

    run(story())


def test_asking_without_a_token_is_no_guess(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            for _ in range(3 * MAX_WRONG):
                assert (await server.http.get("/api/status")).status_code == 403
            right = {"Authorization": f"Bearer {TOKEN}"}
            assert (await server.http.get("/api/status", headers=right)).status_code == 200

    run(story())


def test_who_may_watch_cannot_work_out_a_higher_link() -> None:
    gate, same = Gate("0.0.0.0", TOKEN, b"key" * 11), Gate("0.0.0.0", TOKEN, b"key" * 11)
    other = Gate("0.0.0.0", TOKEN, b"another" * 5)
    assert gate.tokens == same.tokens  # links and cookies outlive a restart
    assert gate.make_cookie(PendantRole.WATCH) == same.make_cookie(PendantRole.WATCH)
    for role in (PendantRole.COMMAND, PendantRole.WATCH):
        assert gate.tokens[role] != other.tokens[role]  # the token alone does not make them
        assert gate.make_cookie(role) != other.make_cookie(role)
    assert len({*gate.tokens.values()}) == 3


def test_the_key_is_kept_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "home" / "pendant.key"
    made = load_server_key(path)
    assert load_server_key(path) == made
    assert path.stat().st_mode & 0o077 == 0
    path.write_bytes(b"short")
    assert len(load_server_key(path)) == 32
    with pytest.raises(BadRequestError, match="cannot be"):
        load_server_key(path / "below")


# ---- stops and messages -------------------------------------------------------------------------


def test_stops_that_come_together_are_one_and_a_later_one_goes_out() -> None:
    async def story() -> None:
        sent: list[float] = []
        doing: list[object] = [object()]
        answer: asyncio.Future[PendantStopResult] = asyncio.get_running_loop().create_future()

        async def stop() -> PendantStopResult:
            sent.append(asyncio.get_running_loop().time())
            return await asyncio.shield(answer)

        stops = Stops(stop, lambda: doing[0])
        asked = [asyncio.create_task(stops.request_stop()) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(sent) == 1
        asked[0].cancel()  # whoever asked first may leave
        doing[0] = object()
        asked.append(asyncio.create_task(stops.request_stop()))
        await asyncio.sleep(0.01)
        assert len(sent) == 2  # it is about something else
        await asyncio.sleep(0.26)  # as soon as a person presses again
        asked.append(asyncio.create_task(stops.request_stop()))
        await asyncio.sleep(0.01)
        assert len(sent) == 3  # the robot has not answered for long
        answer.set_result(PendantStopResult("playing", "Stopped."))
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert answers[1:] == [answer.result()] * (len(asked) - 1)
        await asyncio.sleep(2 * ANSWERED_S)
        await stops.request_stop()
        assert len(sent) == 4

    run(story())


def test_a_stop_that_failed_is_shared_with_nobody_who_asks_again() -> None:
    async def story() -> None:
        sent: list[int] = []

        async def stop() -> PendantStopResult:
            sent.append(1)
            if len(sent) == 1:
                raise TimeoutError
            return PendantStopResult("playing", "Stopped.")

        stops = Stops(stop, lambda: None)
        with pytest.raises(TimeoutError):
            await stops.request_stop()
        assert (await stops.request_stop()).stopped == "playing"

    run(story())


def test_a_stop_that_was_not_confirmed_is_shared_with_nobody_who_asks_again() -> None:
    async def story() -> None:
        sent: list[int] = []

        async def stop() -> PendantStopResult:
            sent.append(1)
            return PendantStopResult("playing", "Not confirmed.", confirmed=len(sent) > 1)

        stops = Stops(stop, lambda: None)
        assert not (await stops.request_stop()).confirmed
        assert (await stops.request_stop()).confirmed

    run(story())


def test_a_flood_of_stops_is_told_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            flood = await server.browser()
            for _ in range(300):
                await flood.socket.send('{"type":"stop"}')
            await flood.until(lambda: "stopped" in flood.latest)
            await page.notice("a stop was sent")
            await asyncio.sleep(REPEAT_S / 2)
            assert len(page.notices()) == 1
            await page.socket.send('{"type":"stop"}')
            await page.until(lambda: "stopped" in page.latest)

    run(story())


def test_a_deeply_nested_message_is_refused_in_words_and_the_page_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            for text in ("[" * 4000, '{"type":"stop","x":' + "[" * 2000 + "]" * 2000 + "}"):
                page.latest.pop("problem", None)
                await page.socket.send(text)
                await page.until(lambda: "problem" in page.latest)
                assert page.latest["problem"]["error"] == "bad-message"
                assert '{"type":"stop"}' in page.latest["problem"]["remedy"]
            assert "stopped" not in page.latest
            await page.socket.send('{"type":"stop"}')
            await page.until(lambda: "stopped" in page.latest)
            body = b"[" * 200_000
            kind = {"Content-Type": "application/json"}
            refused = await page.ask("POST", "/edit", content=body, headers=kind)
            assert refused.status_code in {400, 422}

    run(story())


# ---- TLS ----------------------------------------------------------------------------------------


def test_a_certificate_is_made_for_the_names_kept_and_made_again(tmp_path: Path) -> None:
    files = own_certificate(tmp_path / "tls", ["192.168.1.5", "robot.local"])
    first = fingerprint(files.certificate)
    assert len(first) == 32 * 3 - 1
    assert files.key.stat().st_mode & 0o077 == 0
    assert fingerprint(own_certificate(tmp_path / "tls", ["robot.local"]).certificate) == first
    other = own_certificate(tmp_path / "tls", ["10.0.0.1"])
    assert fingerprint(other.certificate) != first
    files.certificate.write_text("nonsense")
    assert check_files(own_certificate(tmp_path / "tls", [])) == files


def test_a_certificate_that_cannot_be_used_is_refused_in_words(tmp_path: Path) -> None:
    one, other = (own_certificate(tmp_path / name, []) for name in ("one", "other"))
    with pytest.raises(BadRequestError, match="cannot be used for TLS"):
        check_files(TlsFiles(one.certificate, other.key))
    with pytest.raises(BadRequestError, match="cannot be read"):
        check_files(TlsFiles(one.certificate, tmp_path / "none.pem"))


def test_without_the_package_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "cryptography", None)
    with pytest.raises(MissingExtraError) as refused:
        own_certificate(tmp_path, [])
    assert "rote-robot[webrtc]" in refused.value.remedy


def test_the_pendant_speaks_https(tmp_path: Path) -> None:
    files = own_certificate(tmp_path / "tls", [])
    gate = Gate(token=TOKEN, tls=True)
    trusted = ssl.create_default_context(cafile=str(files.certificate))

    async def story() -> None:
        start = Start(Library(tmp_path / "takes"), MEMORY)
        async with serving(start, gate, 0, files) as server:
            address = link(gate, server.port)
            assert address.startswith("https://127.0.0.1:")
            base = f"https://127.0.0.1:{server.port}"
            async with httpx.AsyncClient(
                base_url=base, verify=trusted, timeout=None, trust_env=False
            ) as http:
                opened = await http.get(address)
                assert all("Secure" in each for each in opened.headers.get_list("set-cookie"))
                own = {"Origin": base}
                assert (await http.post("/api/stop", headers=own)).status_code == 200
                plain = {"Origin": base.replace("https", "http")}
                assert (await http.post("/api/stop", headers=plain)).status_code == 403

    run(story())


# ---- proxies ------------------------------------------------------------------------------------


def scope_of(client: str, **headers: str) -> dict[str, Any]:
    pairs = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return {"type": "http", "path": "/", "client": (client, 1), "headers": pairs}


def test_forwarded_addresses_are_believed_only_when_asked_and_only_of_the_proxy() -> None:
    made_up = "203.0.113.9, 198.51.100.7"
    bare, behind = Gate(), Gate(token=TOKEN, proxy=Proxy("https://robot.example.org"))
    assert bare.address_of(scope_of("127.0.0.1", x_forwarded_for=made_up)) == "127.0.0.1"
    assert behind.address_of(scope_of("127.0.0.1", x_forwarded_for=made_up)) == "198.51.100.7"
    assert behind.address_of(scope_of("192.168.1.9", x_forwarded_for=made_up)) == "192.168.1.9"
    assert behind.address_of(scope_of("127.0.0.1", x_forwarded_for="nonsense")) == "127.0.0.1"
    elsewhere = Gate(token=TOKEN, proxy=Proxy("https://robot.example.org", "192.168.1.9"))
    assert elsewhere.address_of(scope_of("192.168.1.9", x_forwarded_for=made_up)) == "198.51.100.7"
    assert elsewhere.address_of(scope_of("127.0.0.1", x_forwarded_for=made_up)) == "127.0.0.1"


def test_behind_a_proxy_its_name_and_origin_are_known_and_a_token_is_needed(
    tmp_path: Path,
) -> None:
    proxy = Proxy("https://robot.example.org/")
    with pytest.raises(BadRequestError, match="proxy"):
        Gate(proxy=proxy)
    gate = Gate(token=TOKEN, proxy=proxy)
    assert link(gate, 80) == f"https://robot.example.org/?token={TOKEN}"
    assert "Secure" in gate.make_cookie(PendantRole.WATCH)

    async def story() -> None:
        async with pendant(tmp_path, gate=gate) as server:
            right = {"Authorization": f"Bearer {TOKEN}", "Origin": "https://robot.example.org"}
            for host in ("robot.example.org", f"127.0.0.1:{server.port}"):
                asked = await server.http.post("/api/stop", headers={**right, "Host": host})
                assert asked.status_code == 200, host
            for wrong in ({"Host": "evil.example"}, {"Origin": "http://robot.example.org"}):
                asked = await server.http.post("/api/stop", headers=right | wrong)
                assert asked.status_code == 403, wrong

    run(story())


@pytest.mark.parametrize(
    "origin", ["robot.example.org", "https://a/b", "ftp://a", "https://", "https://u@a", "http://["]
)
def test_what_is_no_origin_of_a_proxy_is_refused(origin: str) -> None:
    with pytest.raises(BadRequestError, match="not the origin of a proxy"):
        Proxy(origin)


def test_forwarded_headers_do_not_make_a_plain_server_believe_in_https(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            forged = {"X-Forwarded-Proto": "https", "Origin": f"https://127.0.0.1:{server.port}"}
            assert (await server.http.post("/api/stop", headers=forged)).status_code == 403
            assert (await server.http.get("/api/people")).json()["people"] == []

    run(story())
