"""Agents whose robots have no body, many in one process: for a demo with hundreds of robots.

python -m rote.stage.light_agents HOST:PORT NAME... ; it ends with its first lost connection.
"""

import asyncio
import sys
from typing import Unpack

from rote.motion.track import Track
from rote.platform.loop import clock_of, new_loop
from rote.robot.api_values import StreamReport
from rote.robot.play_options import TrackKeywords
from rote.robot.stand_in import StandIn
from rote.robot.streaming import Streaming
from rote.robot.ticker import TimedStart
from rote.stage.agent import Agent
from rote.stage.stage import TRY_STAGE
from rote.transport.zenoh.bus import StageBus

_LEAD_S = 0.8
"""How long before its motion a light robot pretends to move to the first pose."""


class _LightPlaying(Streaming):
    """Waits as long as a motion takes."""

    progress = None

    def __init__(self, track: Track, start: TimedStart) -> None:
        self._track, self._start = track, start
        self._stopped = asyncio.Event()
        self._clock = clock_of(asyncio.get_running_loop())
        super().__init__(track.source, self.end)

    async def end(self) -> None:
        """End it before its time."""
        self._stopped.set()

    async def _run(self) -> StreamReport:
        begin_s = await self._start.wait(_LEAD_S)
        await self._wait_until(begin_s)
        late_s = self._clock() - begin_s
        await self._wait_until(begin_s + self._track.duration_s)
        is_complete = not self._stopped.is_set()
        return StreamReport(
            name=self._track.source,
            completed=is_complete,
            seconds=max(0.0, self._clock() - begin_s),
            rate_hz=0.0,
            late_p99_ms=1000 * late_s,
            late_max_ms=1000 * late_s,
            missed=0,
            start_late_ms=1000 * late_s,
        )

    async def _wait_until(self, when_s: float) -> None:
        """Return at a time of the event loop's clock, or when the motion is stopped."""
        try:
            async with asyncio.timeout(max(0.0, when_s - self._clock())):
                await self._stopped.wait()
        except TimeoutError:
            return


class LightRobot(StandIn):
    """A robot without a body: it takes as long for a motion as a real one, and stops at once."""

    abilities = frozenset({"stream", "stop", "states"})

    def __init__(self, name: str) -> None:
        super().__init__(f"light://{name}")
        self._playing: _LightPlaying | None = None

    async def stop(self) -> None:
        """End the motion."""
        if self._playing is not None:
            await self._playing.end()

    def play_track(self, track: Track, **options: Unpack[TrackKeywords]) -> Streaming:
        """Pretend to play a motion, at the time of `at`."""
        at = options.get("at")
        start = at if isinstance(at, TimedStart) else TimedStart(at)
        self._playing = _LightPlaying(track, start)
        return self._playing


async def run_light_agents(endpoint: str, names: list[str]) -> None:
    """Run an agent with a light robot for each name, until cancelled or the bus is lost."""
    buses = [await StageBus.join(endpoint) for _ in names]
    try:
        agents = [
            Agent(bus, LightRobot(name), name, TRY_STAGE)
            for bus, name in zip(buses, names, strict=True)
        ]
        await asyncio.gather(*(agent.run() for agent in agents))
    finally:
        for bus in buses:
            await bus.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(run_light_agents(sys.argv[1], sys.argv[2:]))
