"""Who is refused: other sites, other names, no token, too much, and every path that is none."""

import asyncio
import socket
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus
from websockets.typing import Subprotocol

from rote.bridge.foxglove import SUBPROTOCOLS
from rote.errors import BadRequestError, LinkError
from rote.motion.files.library import Library
from rote.web.access.roles import PendantRole
from rote.web.access.security import (
    MAX_UPLOAD_BYTES,
    VIEW_PATH,
    Gate,
    check_private,
    is_loopback,
    is_private,
    new_token,
)
from rote.web.server.app import create_app, openapi_document
from rote.web.server.problems import ProblemError
from rote.web.server.serve import link, listen, qr_code
from rote.web.services.hub import Start
from rote.web.services.takes import TakeService
from virtual import run
from web.pendant import Pendant, new_http_client, one_browser, pendant

TOKEN = "a-token-for-these-tests"


class Ask(NamedTuple):
    """One request, and what it is called where its answer is wrong."""

    method: str
    path: str
    how: dict[str, Any] = {}  # noqa: RUF012 # nobody changes it


def answers(folder: Path, asked: list[Ask], token: str | None = None) -> list[httpx.Response]:
    """Ask one server all of these, each over a connection and with cookies of its own."""

    async def story() -> list[httpx.Response]:
        async with pendant(folder, token=token) as server:
            heard = []
            for method, path, how in asked:
                async with new_http_client(server.base) as http:
                    heard.append(await http.request(method, path, **how))
            return heard

    return run(story())


# ---- names and origins --------------------------------------------------------------------------


STRANGE_HOSTS = (
    "evil.example", "evil.example:8600", "127.0.0.1.evil.example", "localhost.evil.example",
    "192.168.1.5", "", "[::1", "127.0.0.1@evil.example",
)  # fmt: skip


def test_a_name_made_to_point_here_is_refused(tmp_path: Path) -> None:
    asked = [
        Ask("GET", path, {"headers": {"Host": host}})
        for path in ("/", "/api/status", "/openapi.json", "/assets/x.js")
        for host in STRANGE_HOSTS
    ]
    for ask, response in zip(asked, answers(tmp_path, asked), strict=True):
        # What is no name at all is refused by the server before anybody looks at it.
        no_name = ask.how["headers"]["Host"] in {"", "[::1"}
        assert response.status_code in ({400, 403} if no_name else {403}), ask
        assert "access-control-allow-origin" not in response.headers, ask


def test_this_computers_own_names_are_let_in(tmp_path: Path) -> None:
    hosts = ("localhost:1", "127.0.0.1:99", "[::1]:8600", "LOCALHOST")
    asked = [Ask("GET", "/api/status", {"headers": {"Host": host}}) for host in hosts]
    assert [response.status_code for response in answers(tmp_path, asked)] == [200] * len(hosts)


FOREIGN = [
    {"Origin": "http://evil.example"},
    {"Origin": "https://127.0.0.1"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "null"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]


def test_a_page_of_another_site_may_ask_nothing(tmp_path: Path) -> None:
    asked = [
        Ask(method, path, {"headers": headers})
        for method, path in (("POST", "/api/stop"), ("GET", "/api/takes"))
        for headers in FOREIGN
    ]
    for ask, response in zip(asked, answers(tmp_path, asked), strict=True):
        assert (response.status_code, response.json()["error"]) == (403, "bad-origin"), ask


def test_there_is_no_answer_to_a_question_of_cross_origin(tmp_path: Path) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    (response,) = answers(tmp_path, [Ask("OPTIONS", "/api/stop", {"headers": asked})])
    assert response.status_code == 403
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_the_socket_is_closed_to_other_sites(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            for how in (FOREIGN[0], FOREIGN[3], {"name": "evil.example"}):
                with pytest.raises(InvalidStatus) as refused:
                    await server.browser(**how)
                assert refused.value.response.status_code == 403, how

    run(story())


def test_the_pages_own_origin_is_let_in(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            page = await server.browser(Origin=server.base)
            own = {"Origin": server.base, "Sec-Fetch-Site": "same-origin"}
            assert (await page.ask("POST", "/stop", json={}, headers=own)).status_code == 200

    run(story())


def test_every_answer_carries_the_headers_that_protect_a_page(tmp_path: Path) -> None:
    asked = [Ask("GET", path) for path in ("/", "/api/status", "/nowhere")]
    heard = answers(tmp_path, asked)
    assert [response.status_code for response in heard] == [200, 200, 404]
    for response in heard:
        policy = response.headers["content-security-policy"]
        assert "default-src 'self'" in policy
        assert "unsafe" not in policy
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["cache-control"] in {"no-store", "no-cache"}


# ---- the token ----------------------------------------------------------------------------------


def test_beyond_loopback_a_token_is_needed() -> None:
    for host in ("0.0.0.0", "192.168.1.5", "::", "robot.local"):
        with pytest.raises(BadRequestError, match="any client of the network"):
            Gate(host)
        assert Gate(host, new_token()).token
    assert all(map(is_loopback, ("127.0.0.1", "localhost", "::1", "127.8.8.8")))
    with pytest.raises(BadRequestError, match="guessed"):
        Gate("127.0.0.1", "short")


WRONG: list[dict[str, Any]] = [
    {},
    {"params": {"token": "wrong"}},
    {"headers": {"Authorization": "Bearer wrong"}},
    {"headers": {"Authorization": f"Basic {TOKEN}"}},
    {"headers": {"Cookie": f"rote_00000000={TOKEN}"}},
    {"headers": {"Cookie": "=;;rote\x01"}},
]


def test_only_who_knows_the_token_is_let_in(tmp_path: Path) -> None:
    right = {"headers": {"Authorization": f"Bearer {TOKEN}"}}
    paths = ("/api/status", "/", "/openapi.json")
    asked = [Ask("GET", path, how) for path in paths for how in (right, *WRONG)]
    for ask, response in zip(asked, answers(tmp_path, asked, TOKEN), strict=True):
        assert response.status_code == (200 if ask.how is right else 403), ask
        assert TOKEN not in response.text


def test_the_link_is_opened_once_and_a_cookie_remembers(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            opened = await server.http.get("/", params={"token": TOKEN})
            assert opened.status_code == 200
            cookie = opened.headers["set-cookie"]
            assert {"HttpOnly", "SameSite=Strict"} <= set(cookie.split("; "))
            assert TOKEN not in cookie + opened.text
            assert (await server.http.get("/api/status")).status_code == 200
            pair = cookie.partition(";")[0]
            page = await server.browser(Cookie=pair)
            await page.post("/stop")
            with pytest.raises(InvalidStatus):
                await server.browser()
            foreign = {"Cookie": pair, "Origin": "http://evil.example"}
            assert (await server.http.post("/api/stop", headers=foreign)).status_code == 403

    run(story())


def test_a_request_with_the_token_in_its_address_is_carried_out_not_welcomed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            page = await server.browser_as(PendantRole.TEACHER)
            await page.connected()
            before = (await page.get("/status"))["stops"]
            with_token = {"token": TOKEN}
            stopped = await server.http.post("/api/stop", params=with_token)
            assert (stopped.status_code, stopped.json()["stopped"]) == (200, "nothing")
            assert (await page.get("/status"))["stops"] == before + 1
            assert "set-cookie" not in stopped.headers
            wrong = await server.http.post("/api/stop", params={"token": "a-wrong-token-here"})
            assert (wrong.status_code, wrong.json()["error"]) == (403, "bad-token")
            assert (await server.http.post("/", params=with_token)).status_code == 405

    run(story())


def test_no_post_route_shows_the_welcome_page(tmp_path: Path) -> None:
    paths = [path for path, how in openapi_document()["paths"].items() if "post" in how]
    assert len(paths) > 40
    asked = [Ask("POST", path, {"params": {"token": TOKEN}, "json": {}}) for path in paths]
    for ask, response in zip(asked, answers(tmp_path, asked, TOKEN), strict=True):
        assert response.headers["content-type"] == "application/json", ask
        assert response.json(), ask


def test_a_link_that_may_do_less_asks_before_it_takes_a_role_away(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            watch = {"token": server.gate.tokens[PendantRole.WATCH]}

            async def role() -> str:
                links = (await server.http.get("/api/links")).json()
                return "watch" if links["command"] is None else "more"

            await server.http.get("/", params={"token": TOKEN})
            assert await role() == "more"
            asks = await server.http.get("/", params=watch)
            assert "Keep the role teacher" in asks.text
            assert "set-cookie" not in asks.headers
            assert await role() == "more"
            await server.http.get("/", params=watch | {"switch": "yes"})
            assert await role() == "watch"
            await server.http.get("/", params={"token": TOKEN})
            assert await role() == "more", "a link that may do more asks nothing"

    run(story())


def test_a_link_on_another_site_is_opened_again_with_the_browsers_cookies(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            watch = {"token": server.gate.tokens[PendantRole.WATCH]}
            elsewhere = {"Sec-Fetch-Site": "cross-site"}
            first = await server.http.get("/", params=watch, headers=elsewhere)
            cookies = first.headers.get_list("set-cookie")
            assert not [each for each in cookies if not each.startswith("rote_seat")]
            assert f"url=/?token={watch['token']}" in first.text
            second = await server.http.get(
                "/", params=watch, headers={"Sec-Fetch-Site": "same-origin"}
            )
            assert 'url=/"' in second.text
            assert (await server.http.get("/api/status")).status_code == 200

    run(story())


def test_a_server_on_the_network_knows_its_numbers_and_no_strange_names() -> None:
    gate = Gate("0.0.0.0", TOKEN)
    for host, known in (("192.168.1.5:8600", True), ("[fe80::1]", True), ("evil.example", False)):
        scope = _scope(host)
        if known:
            gate.check(scope)
        else:
            with pytest.raises(Exception, match="not a name"):
                gate.check(scope)


def _scope(host: str) -> dict[str, Any]:
    headers = [(b"host", host.encode()), (b"authorization", f"Bearer {TOKEN}".encode())]
    return {"type": "http", "path": "/api/status", "headers": headers, "query_string": b""}


# ---- size ---------------------------------------------------------------------------------------


async def raw(server: Pendant, head: str, chunks: int = 0) -> bytes:
    """Send a request by hand, and return what came back before all was sent."""
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
    writer.write(head.encode())
    chunk = b"10000\r\n" + bytes(0x10000) + b"\r\n"
    try:
        for _ in range(chunks):
            writer.write(chunk)
            await writer.drain()
    except ConnectionError:
        pass
    try:
        return await reader.read(65536)
    except ConnectionError:
        return b""
    finally:
        writer.close()


def head(page: str, path: str, *more: str) -> str:
    lines = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"X-Rote-Client: {page}", *more]
    return "\r\n".join(lines) + "\r\n\r\n"


FORM = "Content-Type: multipart/form-data; boundary=x"


def test_a_gigabyte_is_refused_before_it_is_read(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            for path in ("/api/takes/upload", "/api/edit"):
                asked = head(page.id, path, FORM, f"Content-Length: {2**30}")
                answer = await raw(server, asked)
                assert answer.startswith(b"HTTP/1.1 413")
                assert b'"too-large"' in answer

    run(story())


def test_who_does_not_say_how_much_is_cut_off_all_the_same(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            chunked = "Transfer-Encoding: chunked"
            first = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n'
            begun = f"{len(first):x}\r\n{first.decode()}\r\n"
            upload = head(page.id, "/api/takes/upload", FORM, chunked) + begun
            answer = await raw(server, upload, MAX_UPLOAD_BYTES // 0x10000 + 4)
            assert answer.startswith(b"HTTP/1.1 413")
            body = head(page.id, "/api/edit", "Content-Type: application/json", chunked)
            assert (await raw(server, body, 8)).startswith(b"HTTP/1.1 413")
            assert (await page.get("/status"))["connection"]["state"] == "connected"

    run(story())


def test_a_length_that_is_none_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            for length in ("-1", "many", "1e3"):
                answer = await raw(server, head(page.id, "/api/edit", f"Content-Length: {length}"))
                assert answer.startswith(b"HTTP/1.1 400"), length

    run(story())


# ---- paths --------------------------------------------------------------------------------------

PATHS = ["../secret", "..", ".", "/etc/passwd", "a/b", "a\\b", "versions", "trash", ".lock", "a\0b"]


def asked_with(name: str) -> tuple[tuple[str, dict[str, str]], ...]:
    """Every request that names a file."""
    return (
        ("/takes/rename", {"old": name, "new": "x"}),
        ("/takes/delete", {"name": name}),
        ("/takes/tag", {"name": name}),
        ("/edit", {"take": name}),
        ("/edit/save", {"take": "x", "name": name}),
        ("/teach/start", {"name": name}),
    )


def test_no_name_is_a_path(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            (tmp_path / "secret.mcap").write_bytes(b"secret")
            for path, body in (one for name in PATHS for one in asked_with(name)):
                await page.refused(path, 400, **body)
            assert (tmp_path / "secret.mcap").read_bytes() == b"secret"
            assert (await page.get("/status"))["activity"]["kind"] == "idle"

    run(story())


ADDRESSES = (
    "/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd",
    "/static/../app.py", "/api/takes/..%2f..%2fsecret", "/api/takes/%2e%2e/file", "/app.py",
    "//etc/passwd", "/api/takes/..%5csecret", "/api/takes/%00",
)  # fmt: skip


def test_no_address_leads_out_of_the_page(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            for path in ADDRESSES:
                reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
                asked = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
                writer.write(asked.encode())
                answer = await reader.read()
                assert answer.split()[1] in {b"404", b"400"}, path
                assert b"root:" not in answer
                writer.close()

    run(story())


@given(st.text(max_size=40))
def test_a_name_that_is_taken_is_the_name_of_one_file_in_the_folder(name: str) -> None:
    shelf = TakeService(Library(Path("/nowhere/takes")))
    try:
        shelf.check_name(name)
    except BadRequestError:
        return
    finally:
        shelf.close()
    path = Path("/nowhere/takes") / f"{name}.mcap"
    assert path.parent == Path("/nowhere/takes")
    assert path.resolve().parent == Path("/nowhere/takes")


# ---- the rest of the server ---------------------------------------------------------------------


def test_a_built_page_is_served_and_its_assets_are_kept(tmp_path: Path) -> None:
    async def story() -> None:
        static = tmp_path / "static"
        (static / "assets").mkdir(parents=True)
        (static / "index.html").write_text("<title>the page</title>")
        (static / "assets" / "app-1.js").write_text("1")
        app = create_app(Start(Library(tmp_path / "takes")), Gate(), static)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            page = await http.get("/")
            assert (page.status_code, "the page" in page.text) == (200, True)
            assert page.headers["cache-control"] == "no-cache"
            asset = await http.get("/assets/app-1.js")
            assert "immutable" in asset.headers["cache-control"]
            assert (await http.get("/assets/none.js")).status_code == 404

    run(story())


def test_where_the_page_is_not_built_a_plain_one_says_how(tmp_path: Path) -> None:
    async def story() -> None:
        app = create_app(Start(Library(tmp_path / "takes")), Gate(), tmp_path / "nothing")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            page = await http.get("/")
            assert (page.status_code, "make page" in page.text) == (200, True)
            assert "The page is missing" in page.text
            assert (await http.get("/openapi.json")).status_code == 200

    run(story())


def test_a_port_that_cannot_be_had_is_told_in_words() -> None:
    with listen("127.0.0.1", 0) as taken:
        with pytest.raises(LinkError, match="in use") as refused:
            listen("127.0.0.1", taken.getsockname()[1])
        assert "--port" in refused.value.remedy
    with pytest.raises(LinkError, match="cannot be used"):
        listen("203.0.113.1", 0)
    with pytest.raises(BadRequestError, match="not a host name"):
        listen("no such host", 0)


def test_the_link_and_its_picture_hold_the_token() -> None:
    assert link(Gate(), 80) == "http://127.0.0.1:80/"
    assert link(Gate("::1"), 80) == "http://[::1]:80/"
    everywhere = link(Gate("0.0.0.0", TOKEN), 80)
    assert everywhere.endswith(f":80/?token={TOKEN}")
    assert "0.0.0.0" not in everywhere
    drawn = qr_code(everywhere)
    assert len(drawn.splitlines()) > 15
    assert qr_code(everywhere + "x") != drawn


# ---- which networks a page can reach ------------------------------------------------------------


@pytest.mark.parametrize(
    ("address", "is_so"),
    [
        ("127.0.0.1", True), ("10.1.2.3", True), ("172.31.0.1", True), ("192.168.12.1", True),
        ("169.254.1.1", True), ("::1", True), ("fe80::1%eth0", True), ("fd00::1", True),
        ("::ffff:192.168.1.1", True), ("8.8.8.8", False), ("172.32.0.1", False),
        ("100.64.0.1", False), ("0.0.0.0", False), ("2001:db8::1", False),
        ("::ffff:8.8.8.8", False), ("example.org", False), ("", False),
    ],
)  # fmt: skip
def test_private_addresses_are_told_from_others(address: str, is_so: bool) -> None:
    assert is_private(address) is is_so


@pytest.mark.parametrize(
    "url",
    [
        "udp://8.8.8.8:9", "webrtc://203.0.113.7", "a1://203.0.113.7", "udp://[2001:db8::1]:9",
        "udp://134744072:9",
    ],
)  # fmt: skip
def test_a_page_connects_to_private_and_configured_addresses_alone(
    tmp_path: Path, url: str
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            refused = await page.refused("/connect", 400, url=url)
            assert "private network" in refused["message"]
            assert (await page.get("/status"))["connection"]["state"] == "connected"
            fine = "udp://127.0.0.1:9"
            assert (await page.post("/connect", url=fine))["connection"]["url"] == fine

    run(story())


def test_addresses_that_are_configured_or_private_may_be_connected_to() -> None:
    async def story() -> None:
        for fine in ("127.0.0.1", "localhost", "192.168.12.1", "fe80::1", "203.0.113.7"):
            await check_private(fine, {"203.0.113.7"})
        with pytest.raises(BadRequestError, match="private network"):
            await check_private("203.0.113.8", {"203.0.113.7"})

    run(story())


def test_a_host_name_is_judged_by_all_its_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    known = {
        "robot.home": ["192.168.12.1", "fe80::1"],
        "lab.example": ["203.0.113.7"],
        "mixed.example": ["192.168.12.1", "203.0.113.8"],
    }

    def getaddrinfo(host: str, *_: object, **__: object) -> list[tuple[Any, ...]]:
        if host not in known:
            raise socket.gaierror
        return [(0, socket.SOCK_STREAM, 6, "", (address, 0)) for address in known[host]]

    async def story() -> None:
        for fine in ("robot.home", "lab.example", "not.known"):
            await check_private(fine, {"203.0.113.7"})
        for public, configured in (("mixed.example", {"203.0.113.7"}), ("lab.example", ())):
            with pytest.raises(BadRequestError, match="private network"):
                await check_private(public, configured)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    run(story())


@pytest.mark.parametrize(
    ("header", "is_admitted"),
    [
        (f"Bearer {TOKEN}", True),
        (f"bearer  {TOKEN} ", True),
        (f"Basic {TOKEN}", False),
        (TOKEN, False),
        ("Bearer", False),
        ("", False),
    ],
)
def test_a_script_shows_its_token_as_a_bearer(header: str, is_admitted: bool) -> None:
    headers = [(b"host", b"127.0.0.1:80"), (b"authorization", header.encode())]
    scope = {"type": "http", "path": "/api/status", "headers": headers}
    gate = Gate(token=TOKEN)
    if is_admitted:
        assert gate.check(scope).role is PendantRole.TEACHER
    else:
        with pytest.raises(ProblemError, match="token"):
            gate.check(scope)


def test_the_live_view_refuses_a_name_made_to_point_here_even_with_a_token(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            path = f"{VIEW_PATH}?token={TOKEN}"
            for host, good in (("127.0.0.1", True), ("evil.example", False)):
                opening = connect(
                    f"ws://{host}:{server.port}{path}",
                    host="127.0.0.1",
                    port=server.port,
                    subprotocols=[Subprotocol(each) for each in SUBPROTOCOLS],
                    open_timeout=None,
                    proxy=None,
                )
                if good:
                    async with opening as view:
                        assert view.subprotocol
                else:
                    with pytest.raises(InvalidStatus, match="403"):
                        await opening

    run(story())


def test_each_role_has_a_cookie_of_its_own(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            for role in PendantRole:
                server.http.cookies.clear()
                await server.http.get("/", params={"token": server.gate.tokens[role]})
                cookies = "; ".join(f"{k}={v}" for k, v in server.http.cookies.items())
                page = await server.browser(Cookie=cookies)
                assert page.latest["hello"]["role"] == role.value

    run(story())
