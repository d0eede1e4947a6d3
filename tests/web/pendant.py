"""A real server with a real robot, and browsers that talk to it over sockets, in virtual time."""

import asyncio
import atexit
import json
import ssl
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
from websockets.asyncio.client import ClientConnection, connect
from websockets.protocol import State

from rote.motion.files.library import Library
from rote.web.access.roles import PendantRole
from rote.web.access.security import Gate
from rote.web.server.serve import serving
from rote.web.services.hub import Start
from rote.web.work.pool import IdleChildren

MEMORY = "sim://g1?store=:memory:"
Document = dict[str, Any]
CHILDREN = IdleChildren()
"""The child processes of all servers of this test process: their imports take longer than most
tests.
"""
atexit.register(CHILDREN.close)

# httpcore looks for sniffio with every request: where it is missing, let it not search the disk.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]


class Browser:
    """One page: a WebSocket that is alive, and requests in its name."""

    def __init__(
        self,
        port: int,
        socket: ClientConnection,
        http: httpx.AsyncClient,
        headers: dict[str, str] | None = None,
    ) -> None:
        self.port = port
        self.socket = socket
        self.http = http
        self.headers = headers or {}
        """What it shows of itself with each request: a token, or cookies."""
        self.id = ""
        self.heard: list[Document] = []
        self.latest: dict[str, Document] = {}
        self.states = 0
        self.arrivals_s: list[float] = []
        """When each message came."""
        self.silent = False
        """Whether it says no more that it is alive."""
        self._changed = asyncio.Event()
        self._tasks = [asyncio.create_task(self._read()), asyncio.create_task(self._live())]

    async def _read(self) -> None:
        async for text in self.socket:
            message = json.loads(text)
            self.arrivals_s.append(asyncio.get_running_loop().time())
            self.latest[message["type"]] = message
            if message["type"] == "state":
                self.states += 1
            else:
                self.heard.append(message)
            if message["type"] == "hello":
                self.id = message["client"]
            self._changed.set()

    async def _live(self) -> None:
        while True:
            await asyncio.sleep(1)
            if not self.silent and self.socket.state is State.OPEN:
                await self.socket.send('{"type":"alive"}')

    async def until(self, found: Callable[[], object], within_s: float = 30.0) -> None:
        """Wait for something that a message brings about."""
        async with asyncio.timeout(within_s):
            while not found():
                self._changed.clear()
                await self._changed.wait()

    async def status(self, found: Callable[[Document], object], within_s: float = 30.0) -> Document:
        """Ask until the status is like this."""
        async with asyncio.timeout(within_s):
            while not found(status := await self.get("/status")):
                await asyncio.sleep(0.1)
        return status

    async def connected(self) -> None:
        """Wait until the socket has told of a robot, how it is and where its joints are."""
        await self.until(
            lambda: (
                "state" in self.latest
                and self.latest["status"]["connection"]["state"] == "connected"
            )
        )

    async def notice(self, words: str) -> None:
        """Wait to be told something with these words in it."""
        await self.until(lambda: any(words in told for told in self.notices()))

    def notices(self) -> list[str]:
        return [message["message"] for message in self.heard if message["type"] == "notice"]

    async def ask(self, method: str, path: str, **more: Any) -> httpx.Response:
        headers = {"X-Rote-Client": self.id} | self.headers | more.pop("headers", {})
        return await self.http.request(method, f"/api{path}", headers=headers, **more)

    async def get(self, path: str) -> Document:
        response = await self.ask("GET", path)
        assert response.status_code == 200, response.text
        document: Document = response.json()
        return document

    async def post(self, path: str, **body: Any) -> Document:
        response = await self.ask("POST", path, json=body)
        assert response.status_code == 200, response.text
        document: Document = response.json()
        return document

    async def refused(self, path: str, status: int, **body: Any) -> Document:
        response = await self.ask("POST", path, json=body)
        assert response.status_code == status, response.text
        document: Document = response.json()
        assert set(document) >= {"error", "message", "remedy"}
        return document

    async def take_command(self) -> None:
        """Ask for the command, and wait for the end of the countdown."""
        await self.post("/command/take")
        await self.status(lambda s: s["commander"]["you"])

    async def leave(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.socket.close()


def new_http_client(base: str, **limits: int) -> httpx.AsyncClient:
    """Return a client that never times out: in virtual time a file that is written takes seconds.

    It trusts no certificates, because reading those of the system takes longer than most tests.
    """
    transport = httpx.AsyncHTTPTransport(
        verify=ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), limits=httpx.Limits(**limits)
    )
    return httpx.AsyncClient(base_url=base, timeout=None, transport=transport)


class Pendant:
    """The server, seen from outside."""

    def __init__(self, port: int, library: Library, gate: Gate) -> None:
        self.port = port
        self.library = library
        self.gate = gate
        self.base = f"http://127.0.0.1:{port}"
        self.http = new_http_client(self.base, max_keepalive_connections=0)
        self._browsers: list[Browser] = []

    async def browser(
        self, old: str = "", name: str = "127.0.0.1", until: str = "status", **headers: str
    ) -> Browser:
        """Open one more page, and wait for a message: by default the first status."""
        socket = await connect(
            f"ws://{name}:{self.port}/api/live" + (f"?client={old}" if old else ""),
            host="127.0.0.1",
            additional_headers=headers,
            open_timeout=None,
            ping_interval=None,
            close_timeout=1,
            proxy=None,
        )
        browser = Browser(self.port, socket, self.http, headers)
        self._browsers.append(browser)
        await browser.until(lambda: until in browser.latest)
        return browser

    async def browser_as(self, role: PendantRole, **headers: str) -> Browser:
        """Open one more page by the link of a role."""
        shown = {"Authorization": f"Bearer {self.gate.tokens[role]}"}
        return await self.browser(**shown, **headers)

    async def close(self) -> None:
        for browser in self._browsers:
            await browser.leave()
        await self.http.aclose()


@asynccontextmanager
async def pendant(
    folder: Path, url: str = MEMORY, *, token: str | None = None, gate: Gate | None = None
) -> AsyncIterator[Pendant]:
    """Serve a pendant for as long as the block runs."""
    library, gate = Library(folder / "takes"), gate or Gate(token=token)
    async with serving(Start(library, url, children=CHILDREN), gate, 0) as server:
        one = Pendant(server.port, library, gate)
        try:
            yield one
        finally:
            await one.close()


@asynccontextmanager
async def one_browser(folder: Path, url: str = MEMORY) -> AsyncIterator[tuple[Pendant, Browser]]:
    """A pendant, its robot connected, and one page that commands."""
    async with pendant(folder, url) as server:
        browser = await server.browser()
        await browser.connected()
        yield server, browser


async def teach(
    browser: Browser, name: str, script: str = "wave", seconds: float = 2.0
) -> Document:
    """Teach with a scripted hand, from start to finish."""
    await browser.post("/teach/start", name=name)
    await browser.post("/teach/hand", script=script, seconds=seconds)
    await asyncio.sleep(seconds)
    return await browser.post("/teach/finish", save=True)
