"""Claims: the pendant opens fast, its server is light, and a STOP is on the wire at once.

The server is a process of its own, `rote web` as a person starts it. Its processor time is read
from the system over some seconds with one browser that watches a robot at rest: once with the
simulated robot inside the server, physics at 500 Hz included, and once with a robot elsewhere.

For the stop, ten browsers watch. One more sends STOP over its WebSocket and by POST in turn, and
the robot, in this process, notes when the command has arrived. Then the same while other browsers
ask for one thing after the other: a long take is listed, drawn, copied to files, brought as a file,
edited, checked and played. Each of these rows is the 99th of a hundred.

For the opening, Chromium without a graphics card opens the page while a scripted hand moves the
robot's arms, and the clock stops when the third frame after the first is drawn. For the frames, it
looks on for some seconds: how many are drawn, and how long the longest one holds up the page. Where
there is no Chromium, no Node.js or no built page, these rows are left out.
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
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import httpx
import numpy as np
from websockets.asyncio.client import ClientConnection, connect

from benchmarks.bare_timer import bare_timer_percent
from benchmarks.peers import report_missing
from benchmarks.size import SHORT, size
from benchmarks.table import Row
from rote import messages as m
from rote.model.g1 import G1_29
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.formats import FORMATS
from rote.motion.track import Track
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

SECONDS = size(8.0, 0.5)
WATCHERS = 10
STOPS = size(100, 3)
LOADED_S = 3.0
"""How long STOP is pressed during each kind of request, 50 times a second."""
LONG_S = 170.0
"""The take that the server works on meanwhile."""
TIMER_MAX = 3.5
"""Greatest share of a core, in shares of a bare timer's at 500 Hz."""
STOP_MAX_MS = 50.0
OPENINGS = size(3, 1)
OPEN_MAX_S = 4.0
FRAMES_S = size(8, 1)
FRAMES_MIN = 30.0
REDRAW_MAX_MS = 100.0
PAGE_MAX_KB = 1500.0
ROOT = Path(__file__).parents[1]
BUILT = ROOT / "src" / "rote" / "web" / "static"
MEMORY = "sim://g1?store=:memory:"
_TICKS = os.sysconf("SC_CLK_TCK")


@contextmanager
def pendant(robot: str, *tracks: tuple[str, Track]) -> Iterator[tuple[int, str]]:
    """Run `rote web` with some takes; yields its process id and its address."""
    command = [sys.executable, "-m", "rote", "web", "--no-browser", "--json", "--port", "0"]
    with tempfile.TemporaryDirectory() as home:
        environment = os.environ | {"ROTE_HOME": home}
        for name, track in tracks:
            Library(Path(home) / "takes").save(track, name)
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


def long_take(seconds: float = LONG_S) -> Track:
    """Return a calm wave of one arm at 100 Hz."""
    times_s = np.arange(round(seconds * 100)) / 100
    joints_rad = np.repeat(np.array(G1_29.rest_rad)[None, :], len(times_s), axis=0)
    raised = joints_rad[:, G1_29.names.index("right_shoulder_pitch_joint")]
    raised -= 0.2 * (1 - np.cos(times_s))
    return Track(
        times_s=times_s, joints_rad=joints_rad, names=G1_29.names, variant=G1_29.name, source="made"
    )


Request = tuple[str, str, dict[str, Any]]


def requests_by_kind(track: Track) -> dict[str, list[Request]]:
    """Return what browsers ask for, by kind; the take is called `long`."""
    brought = []
    with tempfile.TemporaryDirectory() as folder:
        for found in FORMATS.values():
            path = Path(folder) / f"brought{found.ending}"
            files.save(track, path)
            sent = {"file": (path.name, path.read_bytes())}
            brought.append(("POST", "takes/upload", {"files": sent}))

    def posted(path: str, **body: Any) -> Request:
        return "POST", path, {"json": body}

    steps = [{"op": "smooth", "cutoff_hz": 4.0}, {"op": "mirror"}, {"op": "retime"}]
    return {
        "the list of takes": [("GET", "takes", {})],
        "a take's curves": [("GET", "takes/long", {})],
        "downloads": [
            ("GET", f"takes/long/file?format={found.name}", {}) for found in FORMATS.values()
        ],
        "uploads": brought,
        "a check": [posted("edit", take="long")],
        "edits": [posted("edit", take="long", steps=steps)],
        "saving an edit": [posted("edit/save", take="long", steps=steps[:1], name="edited")],
        "tags and names": [
            posted("takes/tag", name="long", add=["a"]),
            posted("takes/tag", name="long", remove=["a"]),
            posted("takes/rename", old="long", new="longer"),
            posted("takes/rename", old="longer", new="long"),
        ],
        "the trash": [
            ("GET", "takes/trash", {}),
            posted("takes/restore", id="long"),
            posted("takes/purge", id="long"),
        ],
        "putting a take on the robot": [posted("takes/store", take="long", name="long")],
        "playing a take": [posted("play/take", take="long", force=True)],
        "reading the robot": [
            ("GET", path, {})
            for path in ("status", "robots", "robot/joints", "actions", "preflight", "edits")
        ],
    }


async def _ask(http: httpx.AsyncClient, kind: list[Request], client: str) -> None:
    """Ask for the same again and again; what is refused for a stop was asked all the same."""
    while True:
        for method, path, more in kind:
            await http.request(method, f"api/{path}", headers={"X-Rote-Client": client}, **more)


async def _stop_once_ms(http: httpx.AsyncClient, world: Stopwatch) -> float:
    """Return how long one STOP takes to the robot.

    It is answered before the next is sent: one that is still under way would be shared.
    """
    began = time.perf_counter()
    answered = asyncio.create_task(http.post("api/stop", json={}))
    arrived = asyncio.create_task(world.stopped.get())
    try:
        answer = await answered
        answer.raise_for_status()
        at = await asyncio.wait_for(arrived, 5.0)
    except TimeoutError:
        raise AssertionError(f"no STOP has reached the robot: {answer.text}") from None
    finally:
        arrived.cancel()
    return 1000 * (at - began)


async def loaded_stop_ms(
    seconds: float = LOADED_S, take_s: float = LONG_S
) -> dict[str, list[float]]:
    """Return how long each STOP takes to the robot, by what else is asked meanwhile."""
    track, taken = long_take(take_s), dict[str, list[float]]()
    async with AsyncExitStack() as stack:
        world, url = await stack.enter_async_context(robot_here())
        _, address = stack.enter_context(pendant(url, ("long", track)))
        _, name = await stack.enter_async_context(browser(address))
        for _ in range(WATCHERS):
            await stack.enter_async_context(browser(address))
        http = await stack.enter_async_context(
            httpx.AsyncClient(base_url=address, trust_env=False, timeout=None)
        )
        stopper = await stack.enter_async_context(
            httpx.AsyncClient(base_url=address, trust_env=False, timeout=30.0)
        )
        for kind, requests in requests_by_kind(track).items():
            asking = [asyncio.create_task(_ask(http, requests, name)) for _ in range(2)]
            taken[kind] = []
            until = time.perf_counter() + seconds
            while time.perf_counter() < until:
                taken[kind].append(await _stop_once_ms(stopper, world))
                await asyncio.sleep(0.02)
            for task in asking:
                task.cancel()
            failed = await asyncio.gather(*asking, return_exceptions=True)
            assert all(isinstance(each, asyncio.CancelledError) for each in failed), failed
    return taken


async def _in_browser(script: str, *more: str) -> str | None:
    """Return what a script prints that opens a page on a moving robot; None without a browser."""
    node, chromium = shutil.which("node"), shutil.which("chromium")
    page = ROOT / "page"
    there = (page / "node_modules" / "playwright-core", BUILT / "index.html")
    if node is None or chromium is None or not all(path.exists() for path in there):
        report_missing("no Chromium, Node.js or built page: run make system page")
        return None
    path = str(Path(__file__).with_name(script))
    if SHORT:  # a browser costs ten seconds of processor time: only whether the script can be read
        subprocess.run([node, "--check", path], check=True)  # noqa: ASYNC221 - nothing else runs
        return None
    with pendant(MEMORY) as (_, address):
        async with browser(address) as (_, name), httpx.AsyncClient(trust_env=False) as http:
            for route, body in (
                ("teach/start", {"name": "wave"}),
                ("teach/hand", {"script": "wave", "seconds": 120}),
            ):
                headers = {"X-Rote-Client": name}
                answer = await http.post(f"{address}api/{route}", json=body, headers=headers)
                answer.raise_for_status()
            process = await asyncio.create_subprocess_exec(
                node, path, str(page), chromium, address, *more, stdout=subprocess.PIPE
            )
            told, _ = await process.communicate()
    return told.decode()


async def opening_s() -> float | None:
    """Return how long a person waits for a robot that moves; None without a browser to try it."""
    told = await _in_browser("web_open.mjs", str(OPENINGS))
    return None if told is None else median(float(line) for line in told.split()) / 1000


class Frames(NamedTuple):
    """How smoothly the page draws a robot that moves, in low quality by the processor."""

    per_second: float
    longest_ms: float
    """The longest time in which the page did nothing but draw."""


async def frames() -> Frames | None:
    """Return how smoothly the page draws; None without a browser to try it."""
    told = await _in_browser("web_frames.mjs", str(FRAMES_S))
    if told is None:
        return None
    found = json.loads(told)
    assert found["quality"] == "low", "this computer draws with a graphics card"
    return Frames(found["per_second"], found["longest_ms"])


def p99(values: list[float]) -> float:
    """Return what 99 of a hundred stay below."""
    return float(np.percentile(values, 99))


def page_kb() -> float | None:
    """Return what a browser loads at most, compressed; None where the page is not built."""
    files = [path for path in BUILT.rglob("*") if path.is_file()]
    return sum(len(gzip.compress(path.read_bytes())) for path in files) / 1000 or None


async def _share_elsewhere() -> float:
    async with robot_here() as (_, url):
        return await share_of_a_core(url)


def core_rows() -> list[Row]:
    """Measure the server's share of a core, each time right after that of a bare timer."""
    rows = []
    cases: dict[str, Callable[[], Coroutine[Any, Any, float]]] = {
        "with the robot inside": partial(share_of_a_core, MEMORY),
        "with a robot elsewhere": _share_elsewhere,
    }
    for how, share in list(cases.items())[: size(2, 1)]:
        timer, ours = asyncio.run(bare_timer_percent()), 100 * asyncio.run(share())
        claim = f"pendant, one browser, {how}"
        rows.append(Row(claim, "%", ours, timer, "a bare 500 Hz timer", at_most=TIMER_MAX))
    return rows


def stop_rows() -> list[Row]:
    """Measure STOP; under load not in a short run, because tests/web has it."""
    rows = [
        Row(f"STOP by {way}, ten watch", "ms", taken, STOP_MAX_MS, "limit", at_most=1)
        for way, taken in asyncio.run(stop_ms()).items()
    ]
    if not SHORT:
        rows += [
            Row(f"STOP during {kind}, p99", "ms", p99(taken), STOP_MAX_MS, "limit", at_most=1)
            for kind, taken in asyncio.run(loaded_stop_ms()).items()
        ]
    return rows


def run() -> list[Row]:
    rows = core_rows() + stop_rows()
    if (kb := page_kb()) is not None:
        rows.append(Row("pendant's page, compressed", "kB", kb, PAGE_MAX_KB, "limit", at_most=1))
    if (opened := asyncio.run(opening_s())) is not None:
        claim = "opening the pendant to a moving robot"
        rows.append(Row(claim, "s", opened, OPEN_MAX_S, "limit", at_most=1))
    if (drawn := asyncio.run(frames())) is not None:
        claim = "frames a second without a graphics card"
        rows.append(Row(claim, "1/s", drawn.per_second, FRAMES_MIN, "limit", at_least=1))
        claim = "longest redraw without a graphics card"
        rows.append(Row(claim, "ms", drawn.longest_ms, REDRAW_MAX_MS, "limit", at_most=1))
    return rows
