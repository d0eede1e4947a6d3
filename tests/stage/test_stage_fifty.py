"""Fifty agents in ten processes, section after section, with stops and kills in between."""

import asyncio
import random
import statistics
import time

import pytest
from benchmarks.stage import Worker, apart, gathered, said
from benchmarks.stage_worker import track_of

from rote.platform.system import free_port
from rote.session.stage_events import ConductorEvent, SectionCommitted
from rote.stage.conductor import Conductor, SectionError
from rote.stage.show.file import Section
from rote.stage.show.score import PlacedTrack, Score
from rote.stage.stage import open_stage

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")

PROCESSES, EACH, ROUNDS = 10, 5, 30


class Crowd:
    """All agents, and the processes they are in."""

    def __init__(self, port: int, processes: int, each: int) -> None:
        self._endpoint = f"127.0.0.1:{port}"
        self._groups = [[f"robot{p}x{n}" for n in range(each)] for p in range(processes)]
        self.names = [name for group in self._groups for name in group]
        self.workers = [self._start(group) for group in self._groups]

    def _start(self, group: list[str]) -> Worker:
        return Worker("agents", self._endpoint, *group)

    def kill(self, number: int) -> None:
        self.workers[number].end()

    def revive(self, number: int) -> None:
        self.workers[number] = self._start(self._groups[number])

    def close(self) -> None:
        for worker in self.workers:
            worker.end()


def check_starts(starts_s: list[float], *, committed: bool, stopped_s: float | None) -> None:
    if not committed:
        assert not starts_s, "somebody began, and nobody was told to"
    if stopped_s is not None:
        assert not [each for each in starts_s if each > stopped_s]


async def one_round(conductor: Conductor, crowd: Crowd, trouble: str, at_s: float) -> str:
    """Play a section with trouble in it; look that all begin, or nobody. Return how it went."""
    committed: list[SectionCommitted] = []

    def look(event: ConductorEvent) -> None:
        if isinstance(event, SectionCommitted):
            committed.append(event)

    forget = conductor.on_event(look)
    score = Score("one", "", PlacedTrack(0.0, track_of(0.5, 30)))
    since_s = time.monotonic()
    playing = asyncio.ensure_future(
        conductor.play(Section("one"), dict.fromkeys(crowd.names, score))
    )
    await asyncio.sleep(at_s)
    stopped_s = None
    if trouble == "stop":
        answer = await conductor.stop("the test")
        assert answer.unconfirmed == ()
        stopped_s = time.monotonic()
    elif trouble == "kill":
        crowd.kill(0)
    try:
        await playing
        ended = "played"
    except SectionError as error:
        ended = str(error)
    await asyncio.sleep(4.0)
    forget()
    starts = [line["s"] for line in said(crowd.workers[1:], "start", since_s)]
    check_starts(starts, committed=bool(committed), stopped_s=stopped_s)
    # A process that gets no time for a second counts as lost: then nobody else goes on either.
    if ended == "played":
        assert len(starts) == len(crowd.names) - EACH
        ended = f"{ended}, half within {1000 * statistics.median(apart(starts)):.2f} ms"
    if trouble == "kill":
        crowd.revive(0)
    if conductor.active_stop is not None:
        conductor.reset()
    await gathered(conductor, crowd.names)
    return ended


@pytest.mark.soak
def test_fifty_agents_begin_together_or_not_at_all() -> None:
    async def main() -> None:
        port = free_port()
        chance = random.Random(1)
        async with open_stage(endpoint=f"127.0.0.1:{port}") as opened:
            crowd = Crowd(port, PROCESSES, EACH)
            try:
                await gathered(opened.conductor, crowd.names)
                for number in range(ROUNDS):
                    trouble = chance.choice(("none", "none", "stop", "kill"))
                    ended = await one_round(
                        opened.conductor, crowd, trouble, chance.uniform(0.0, 5.0)
                    )
                    print(f"{number}: {trouble}: {ended[:100]}", flush=True)
            finally:
                crowd.close()

    asyncio.run(main())
