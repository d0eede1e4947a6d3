"""Poses of a motion that can be paused: it slows down softly on its path, holds, and goes on.

The arms never leave the path that was checked, and are never faster than the motion itself.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

from rote.errors import BadRequestError
from rote.messages import StreamPose
from rote.motion.track import Array
from rote.robot.motion_watch import MAX_PAUSE_S
from rote.robot.streamed_motion import PoseRows, ease_fraction

RAMP_S = 0.6
"""Time in which a motion slows down to a pause, and speeds up after it."""
_MAX_BATCH = 8
"""Maximum number of poses computed ahead: a pause cannot change them any more."""


@dataclass(slots=True)
class _Pause:
    """One pause, in ticks."""

    begin: int
    """The tick after which the motion slows down."""
    late: int
    """The number of ticks by which it began later than requested."""
    end: int | None = None
    """The tick after which the motion speeds up again; None before `resume`."""


class PausablePoses(Sequence[StreamPose]):
    """The poses of a prepared motion, each computed when it is due, one per tick.

    A pause delays everything after it by its duration, in whole ticks, so that robots which pause
    and resume at the same times stay together.
    """

    def __init__(self, rows: PoseRows, rate_hz: float) -> None:
        self._rows = rows
        self.first = rows.first
        """Index of the motion's own first pose."""
        self._ramp_ticks = max(1, round(RAMP_S * rate_hz))
        self._max_pause_ticks = round(MAX_PAUSE_S * rate_hz)
        self._lock = threading.Lock()
        self._newest_tick = -1
        """The newest tick whose pose was computed."""
        self._position = 0.0
        """The row of that pose; between two rows while the motion slows down or speeds up."""
        self._last_pause: _Pause | None = None
        self._delay_ticks = 0
        """Number of ticks by which all ended pauses delay the motion."""

    def __len__(self) -> int:
        pause = self._last_pause
        pause_ticks = self._max_pause_ticks if pause is not None and pause.end is None else 0
        return len(self._rows) + self._delay_ticks + pause_ticks

    @overload
    def __getitem__(self, index: int) -> StreamPose: ...
    @overload
    def __getitem__(self, index: slice) -> list[StreamPose]: ...
    def __getitem__(self, index: int | slice) -> StreamPose | list[StreamPose]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index][:_MAX_BATCH]]
        with self._lock:
            while self._newest_tick < index:
                self._newest_tick += 1
                self._advance(self._newest_tick)
            return self._rows.interpolate(self._position, index)

    @property
    def is_in_motion(self) -> bool:
        """Whether the approach is over, and a pause would still hold the arms with full weight."""
        with self._lock:
            last_row = float(len(self._rows) - 1)
            # A pause slows down within `_ramp_ticks` rows, so its weight is at least the one there.
            weight = self._rows.interpolate_weight(min(self._position + self._ramp_ticks, last_row))
            is_over = self._position >= last_row
            return self._newest_tick >= self.first and not is_over and weight > 1.0 - 1e-6

    @property
    def is_held(self) -> bool:
        """Whether a pause holds the arms in place."""
        with self._lock:
            pause = self._last_pause
            if pause is None or pause.end is not None:
                return False
            return self._newest_tick >= pause.begin + self._ramp_ticks

    @property
    def pose_rad(self) -> Array:
        """The newest commanded pose of the taught joints."""
        with self._lock:
            return self._rows.interpolate_row(self._position)

    def pause(self, tick: int) -> None:
        """Slow down from `tick` on, or at once if that tick has passed, and hold.

        Raises `BadRequestError` if a pause is under way.
        """
        with self._lock:
            pause = self._last_pause
            if pause is not None and not self._is_over(pause, self._newest_tick):
                raise BadRequestError("the motion is paused already", "Resume it first.")
            begin = max(tick, self._newest_tick + 1)
            self._last_pause = _Pause(begin, begin - tick)

    def resume(self, tick: int) -> int:
        """Speed up from `tick` on; return the number of ticks for which the motion was delayed.

        A motion that paused later than requested resumes later by as much. Raises `BadRequestError`
        if it is not paused.
        """
        with self._lock:
            pause = self._last_pause
            if pause is None or pause.end is not None:
                raise BadRequestError("the motion is not paused", "Pause it first.")
            held_from = pause.begin + self._ramp_ticks
            pause.end = max(tick + pause.late, held_from, self._newest_tick + 1)
            delay_ticks = pause.end - pause.begin
            self._delay_ticks += delay_ticks
            return delay_ticks

    def _advance(self, tick: int) -> None:
        """Compute the position at `tick`, whole or between two rows, from the previous one."""
        pause = self._last_pause
        if pause is None or self._is_over(pause, tick):
            position = float(tick - self._delay_ticks)
        elif tick <= pause.begin:
            position = float(tick - self._delay_ticks)
            if pause.end is not None:
                position += pause.end - pause.begin  # this pause is counted, but still to come
        else:
            position = self._position + self._compute_speed(pause, tick)
        self._position = min(position, float(len(self._rows) - 1))

    def _is_over(self, pause: _Pause, tick: int) -> bool:
        """Whether the motion is back at its full speed at `tick`."""
        return pause.end is not None and tick > pause.end + self._ramp_ticks

    def _compute_speed(self, pause: _Pause, tick: int) -> float:
        """Return the speed of the motion during a pause and its ramps, in rows per tick: 0 to 1."""
        if tick <= pause.begin + self._ramp_ticks:
            return 1.0 - ease_fraction((tick - pause.begin) / self._ramp_ticks)
        if pause.end is None or tick <= pause.end:
            return 0.0
        return ease_fraction((tick - pause.end) / self._ramp_ticks)
