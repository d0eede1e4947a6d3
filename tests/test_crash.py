"""kill -9 the real simulator while it saves: no acknowledged save is lost, none is half there.

Two simulators take turns, each with a store of its own: while one is used and killed, the other
one starts. A store stays in use over many kills, so that the next process has to recover what the
last one left; it is looked at through a copy, so that nobody but the simulator recovers it.
"""

import asyncio
import json
import random
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from forked import Rote
from rote import messages as m
from rote.errors import RoteError
from rote.sim.store import Store
from rote.transport.link import Link, Receiver, open_link
from rote.transport.udp.client import TeachingClient

MAX_SAVES = 15
MAX_DELAY_S = 0.008
"""Several times what a save takes, so that a kill falls anywhere in one, or between two."""


@contextmanager
def simulator(store: Path) -> Iterator[Rote]:
    """Run the simulator, and be certain that it is gone at the end."""
    command = ("sim", "--udp", "127.0.0.1:0", "--store", str(store), "--json")
    with Rote(*command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def url_of(process: Rote) -> str:
    """Wait until it is ready."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"the simulator ended with {process.wait()}"
    ready = json.loads(line)
    assert ready["event"] == "ready"
    return str(ready["url"])


@dataclass
class Tally:
    """What a campaign has seen."""

    kills: int = 0
    stores: int = 0
    acknowledged: int = 0
    unacknowledged_but_there: int = 0
    save_times_s: list[float] = field(default_factory=list)


@dataclass
class Lane:
    """A store, and what must be in it."""

    folder: Path
    expected: dict[str, m.SaveAction] = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.folder / "g1.sqlite"

    def found(self, path: Path) -> list[str]:
        """Return the names in a store whose actions all load and are what was sent."""
        with closing(Store(path)) as store:
            names = [entry.name for entry in store.entries()]
            for position, name in enumerate(names, start=1):
                action = store.load(position)
                assert action is not None
                sent = self.expected[name]
                assert (action.name, action.created_s) == (name, sent.created_s)
                assert (action.duration_ms, action.keyframes) == (sent.duration_ms, sent.keyframes)
        return names


def numbered(number: int) -> m.SaveAction:
    """Return a save like no other; its values are exact in the store's format."""
    keyframes = tuple(
        m.Keyframe(joint=slot, time_ms=number % 500 + slot, value_rad=number % 64 / 64)
        for slot in range(m.MAX_KEYFRAMES)
    )
    return m.SaveAction(
        name=f"action {number}", created_s=number, duration_ms=1000 + number, keyframes=keyframes
    )


class Saver:
    """A client that saves one action after the other, as fast as it is answered."""

    def __init__(self, url: str, saves: list[m.SaveAction]) -> None:
        self.acknowledged: list[m.SaveAction] = []
        self.asked: m.SaveAction | None = None
        self.times_s: list[float] = []
        self._saves = saves
        self._client = TeachingClient(url)
        self._url = url

    async def open(self) -> None:
        async def dial(receive: Receiver) -> Link:
            return await open_link(self._url, receive)

        await self._client.open(dial)

    async def close(self) -> None:
        await self._client.close()

    async def run(self, enough: int, reached: asyncio.Event) -> None:
        """Save all there is; say when `enough` of it was acknowledged."""
        for save in self._saves:
            if len(self.acknowledged) == enough:
                reached.set()
            self.asked = save
            began = time.perf_counter()
            assert await self._client.ask(save) == m.Status(m.Code.OK)
            self.times_s.append(time.perf_counter() - began)
            self.acknowledged.append(save)
        reached.set()


async def save_until_killed(process: Rote, saver: Saver, after: int, delay_s: float) -> None:
    """Kill the simulator `delay_s` after it has acknowledged `after` saves."""
    await saver.open()
    reached = asyncio.Event()
    saving = asyncio.create_task(saver.run(after, reached))
    waiting = asyncio.create_task(reached.wait())
    # A timer of the loop is only as fine as a millisecond; a thread's is finer.
    killer = threading.Timer(delay_s, process.kill)
    try:
        await asyncio.wait({saving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        killer.start()
        await asyncio.to_thread(process.wait)
        # What it sent before it died lies in our socket: an answer there is an acknowledgement.
        for _ in range(100):
            await asyncio.sleep(0)
    finally:
        killer.cancel()
        process.kill()
        waiting.cancel()
        saving.cancel()
        with suppress(asyncio.CancelledError, RoteError):
            await saving
        await saver.close()


def kill_once(lane: Lane, process: Rote, chance: random.Random, tally: Tally, copy: Path) -> None:
    """Save, kill, and compare what is there with what was acknowledged."""
    before = list(lane.expected)
    saves = [numbered(tally.acknowledged + i) for i in range(MAX_SAVES - len(before))]
    after = chance.randrange(min(5, len(saves)))
    delay_s = chance.uniform(0.0, MAX_DELAY_S)

    async def play_out() -> Saver:
        saver = Saver(url_of(process), saves)
        await save_until_killed(process, saver, after, delay_s)
        return saver

    saver = asyncio.run(play_out())
    assert process.wait() == -signal.SIGKILL
    assert process.stdout is not None
    process.stdout.close()
    lane.expected |= {save.name: save for save in saves}
    shutil.copytree(lane.folder, copy, ignore=shutil.ignore_patterns("*-shm"))
    there = lane.found(copy / lane.store.name)
    certain = [*before, *(save.name for save in saver.acknowledged)]
    assert there[: len(certain)] == certain, "an acknowledged save is gone"
    more = there[len(certain) :]
    asked = [] if saver.asked is None else [saver.asked.name]
    assert more in ([], asked), "something is there that was not asked for"
    lane.expected = {name: lane.expected[name] for name in there}
    tally.kills += 1
    tally.acknowledged += len(saver.acknowledged) + len(more)
    tally.unacknowledged_but_there += len(more)
    tally.save_times_s += saver.times_s


def campaign(folder: Path, kills: int, seed: int) -> Tally:
    """Kill the simulator `kills` times."""
    chance = random.Random(seed)
    tally = Tally()
    lanes: list[Lane | None] = [None, None]

    def lane_of(turn: int) -> Lane:
        """Return the store whose turn it is; a full one is looked at once more and replaced."""
        lane = lanes[turn % 2]
        if lane is None or len(lane.expected) == MAX_SAVES:
            if lane is not None:
                assert lane.found(lane.store) == list(lane.expected)
            lane = lanes[turn % 2] = Lane(folder / f"lane {tally.stores}")
            lane.folder.mkdir()
            tally.stores += 1
        return lane

    with ExitStack() as running:

        def start(turn: int) -> tuple[Lane, Rote]:
            lane = lane_of(turn)
            return lane, running.enter_context(simulator(lane.store))

        upcoming = start(0)
        for turn in range(kills):
            lane, process = upcoming
            if turn + 1 < kills:
                upcoming = start(turn + 1)
            kill_once(lane, process, chance, tally, folder / "copy")
            shutil.rmtree(folder / "copy")
    for last in lanes:
        if last is not None:
            assert last.found(last.store) == list(last.expected)
    return tally


@pytest.mark.slow
def test_a_killed_simulator_has_every_save_it_acknowledged(tmp_path: Path) -> None:
    tally = campaign(tmp_path, kills=12, seed=7)
    assert tally.kills == 12
    assert tally.acknowledged >= 12, "the kills came too early to prove anything"


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_kills_lose_nothing(tmp_path: Path) -> None:
    tally = campaign(tmp_path, kills=200, seed=2024)
    times_ms = sorted(1000 * time_s for time_s in tally.save_times_s)
    print(
        f"\n{tally.kills} kills over {tally.stores} stores: {tally.acknowledged} saves there, "
        f"of which {tally.unacknowledged_but_there} were not acknowledged yet; 0 lost; "
        f"a save took {times_ms[len(times_ms) // 2]:.1f} ms in the median, "
        f"{times_ms[-1]:.1f} ms at most"
    )
    assert tally.kills == 200
