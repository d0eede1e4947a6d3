"""A robot for the benchmark `stage`: it moves nothing, and prints when it would."""

import asyncio
import threading
import time
from typing import Unpack

from benchmarks.stage_worker import say
from rote.motion.track import Track
from rote.platform import realtime
from rote.robot.api_values import StreamReport
from rote.robot.play_options import TrackKeywords
from rote.robot.stand_in import StandIn
from rote.robot.streaming import Streaming
from rote.robot.ticker import TimedStart

LEAD_S = 0.5


class NotingPlaying(Streaming):
    """A playback that begins at its time, by a thread with priority as a stream has."""

    progress = None

    def __init__(self, name: str, start: TimedStart) -> None:
        self._start = start
        self._stopped = threading.Event()
        super().__init__(name, self.cancel_start)

    async def cancel_start(self) -> None:
        """Keep it from beginning, if it has not begun."""
        self._stopped.set()

    async def _run(self) -> StreamReport:
        at_s = await self._start.wait(LEAD_S)
        began_s = await asyncio.to_thread(self._begin, at_s)
        if not self._stopped.is_set():
            say(name=self.name, what="start", s=began_s, at_s=at_s)
        late_ms = 1000 * (began_s - at_s)
        return StreamReport(
            name="",
            completed=not self._stopped.is_set(),
            seconds=0.0,
            rate_hz=250.0,
            late_p99_ms=late_ms,
            late_max_ms=late_ms,
            missed=0,
            start_late_ms=late_ms,
        )

    def _begin(self, at_s: float) -> float:
        done: list[float] = []

        def wait() -> None:
            realtime.request_precise_timers()
            realtime.request_realtime()
            self._stopped.wait(max(0.0, at_s - time.monotonic()))
            done.append(time.monotonic())

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        return done[0]


class NotingRobot(StandIn):
    """A robot that moves nothing and prints when a motion or a stop reaches it."""

    abilities = frozenset({"stream", "stop", "states"})

    def __init__(self, name: str) -> None:
        super().__init__(f"noting://{name}")
        self.name = name
        self._playings: list[NotingPlaying] = []

    async def stop(self) -> None:
        """Keep what has not begun from beginning, and print when."""
        for each in self._playings:
            await each.cancel_start()
        self._playings.clear()
        say(name=self.name, what="stop", s=time.monotonic())

    def play_track(self, track: Track, **options: Unpack[TrackKeywords]) -> Streaming:
        """Print when the motion would begin."""
        at = options.get("at")
        assert isinstance(at, TimedStart), "an agent gives the start later"
        self._playings.append(NotingPlaying(self.name, at))
        return self._playings[-1]
