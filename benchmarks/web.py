"""Claims: the pendant opens fast, its server is light, and a STOP is on the wire at once.

The server is a process of its own, `rote web` as a person starts it. Its processor time is read
from the system over some seconds with one browser that takes 30 states a second: once with the
simulated robot inside the server, physics at 500 Hz included, and once with a robot elsewhere.

For the stop, ten browsers watch. One more sends STOP over its WebSocket and by POST in turn, and
the robot, in this process, notes when the command has arrived.

For the opening, Chromium without a graphics card opens the page while a scripted hand moves the
robot's arms, and the clock stops when the third frame after the first is drawn. Where there is no
Chromium, no Node.js or no built page, that row is left out.
"""

import asyncio
import gzip
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from statistics import median

import httpx
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.table import Row
from rote import messages as m
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

SECONDS = 8.0
WATCHERS = 10
STOPS = 100
CORE_MAX = 0.15
STOP_MAX_MS = 50.0
OPENINGS = 3
OPEN_MAX_S = 4.0
PAGE_MAX_KB = 1500.0
ROOT = Path(__file__).parents[1]
BUILT = ROOT / "src" / "rote" / "web" / "static"
MEMORY = "sim://g1?store=:memory:"
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def pendant(robot: str) -> Iterator[tuple[int, str]]:
    """Run `rote web`; yields its process id and its address."""
    command = [sys.executable, "-m", "rote", "web", "--no-browser", "--json", "--port", "0"]
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"ROTE_HOME": home}
        with subprocess.Popen(
            [*command, "--robot", robot], stdout=subprocess.PIPE, env=environment
        ) as process:
            assert process.stdout is not None
            try:
                yield process.pid, json.loads(process.stdout.readline())["url"]
            finally:
                process.terminate()


async def _read(live: ClientConnection) -> None:
    async for _ in live:
        pass


async def _live(live: ClientConnection) -> None:
    while True:
        await live.send('{"type":"alive"}')
        await asyncio.sleep(1)


@asynccontextmanager
async def browser(address: str) -> AsyncIterator[tuple[ClientConnection, str]]:
    """A page that reads whatever comes, as soon as it does; yields its socket and its id."""
    url = address.replace("http:", "ws:") + "api/live"
    async with connect(url, proxy=None, compression=None) as live:
        name = json.loads(await live.recv())["client"]
        while json.loads(await live.recv())["type"] != "state":
            pass
        tasks = [asyncio.create_task(_read(live)), asyncio.create_task(_live(live))]
        try:
            yield live, name
        finally:
            for task in tasks:
                task.cancel()


def _spent_s(pid: int) -> float:
    """Return the processor time a process has used."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123 - it is no file
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


async def share_of_a_core(robot: str) -> float:
    with pendant(robot) as (pid, address):
        async with browser(address):
            await asyncio.sleep(1)
            spent, began = _spent_s(pid), time.perf_counter()
            await asyncio.sleep(SECONDS)
            return (_spent_s(pid) - spent) / (time.perf_counter() - began)


class Stopwatch(World):
    """A robot that notes when it is told to stop."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self.stopped: asyncio.Queue[float] = asyncio.Queue()

    def obey(self, client: object, command: m.Command) -> m.Reply:
        """Carry out a command."""
        if isinstance(command, m.StopMotion):
            self.stopped.put_nowait(time.perf_counter())
        return super().obey(client, command)


@asynccontextmanager
async def robot_here() -> AsyncIterator[tuple[Stopwatch, str]]:
    store = Store(":memory:")
    world = Stopwatch(store)
    simulator = Simulator(world)
    try:
        yield world, await simulator.serve_udp("127.0.0.1", 0)
    finally:
        await simulator.close()
        store.close()


async def stop_ms() -> dict[str, float]:
    """Return the medians of how long a STOP takes to the robot, by socket and by request."""
    taken: dict[str, list[float]] = {"socket": [], "post": []}
    async with AsyncExitStack() as stack:
        world, url = await stack.enter_async_context(robot_here())
        _, address = stack.enter_context(pendant(url))
        for _ in range(WATCHERS):
            await stack.enter_async_context(browser(address))
        live, _ = await stack.enter_async_context(browser(address))
        http = await stack.enter_async_context(httpx.AsyncClient(trust_env=False))
        for number in range(2 * STOPS):
            way = ("socket", "post")[number % 2]
            began = time.perf_counter()
            if way == "socket":
                await live.send('{"type":"stop"}')
            else:
                await http.post(f"{address}api/stop", json={})
            taken[way].append(1000 * (await world.stopped.get() - began))
            await asyncio.sleep(0.013)
    return {way: median(times) for way, times in taken.items()}


async def opening_s() -> float | None:
    """Return how long a person waits for a robot that moves; None without a browser to try it."""
    node, chromium = shutil.which("node"), shutil.which("chromium")
    page = ROOT / "page"
    there = (page / "node_modules" / "playwright-core", BUILT / "index.html")
    if node is None or chromium is None or not all(path.exists() for path in there):
        return None
    with pendant(MEMORY) as (_, address):
        async with browser(address) as (_, name), httpx.AsyncClient(trust_env=False) as http:
            for path, body in (
                ("teach/start", {"name": "wave"}),
                ("teach/hand", {"script": "wave", "seconds": 120}),
            ):
                headers = {"X-Rote-Client": name}
                answer = await http.post(f"{address}api/{path}", json=body, headers=headers)
                answer.raise_for_status()
            script = str(Path(__file__).with_name("web_open.mjs"))
            process = await asyncio.create_subprocess_exec(
                node, script, str(page), chromium, address, str(OPENINGS), stdout=subprocess.PIPE
            )
            told, _ = await process.communicate()
    return median(float(line) for line in told.split()) / 1000


def page_kb() -> float | None:
    """Return what a browser loads at most, compressed; None where the page is not built."""
    files = [path for path in BUILT.rglob("*") if path.is_file()]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1000 or None


async def _share_elsewhere() -> float:
    async with robot_here() as (_, url):
        return await share_of_a_core(url)


def run() -> list[Row]:
    shares = {
        "with the robot inside": asyncio.run(share_of_a_core(MEMORY)),
        "with a robot elsewhere": asyncio.run(_share_elsewhere()),
    }
    rows = [
        Row(f"pendant, one browser, {how}", "%", 100 * share, 100 * CORE_MAX, "limit", at_most=1)
        for how, share in shares.items()
    ]
    rows += [
        Row(f"STOP by {way}, ten watch", "ms", taken, STOP_MAX_MS, "limit", at_most=1)
        for way, taken in asyncio.run(stop_ms()).items()
    ]
    if (kb := page_kb()) is not None:
        rows.append(Row("pendant's page, compressed", "kB", kb, PAGE_MAX_KB, "limit", at_most=1))
    if (opened := asyncio.run(opening_s())) is not None:
        claim = "opening the pendant to a moving robot"
        rows.append(Row(claim, "s", opened, OPEN_MAX_S, "limit", at_most=1))
    return rows
