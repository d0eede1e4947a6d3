"""The clock of a section that can be paused: a pause delays everything due after its beginning."""

import asyncio
from collections.abc import Callable

Hold = tuple[float, float | None]
"""When a pause begins and ends, by the clock; None while the end is open."""


_TIME_TOLERANCE_S = 1e-6
"""A moment this close counts as reached: a timer may end early by its rounding error."""


class SectionTime:
    """Waits for moments of a section; a pause delays those after its beginning."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._holds: tuple[Hold, ...] = ()
        self._changed = asyncio.Event()

    @property
    def holds(self) -> tuple[Hold, ...]:
        """All pauses so far."""
        return self._holds

    @holds.setter
    def holds(self, holds: tuple[Hold, ...]) -> None:
        self._holds = holds
        self._changed.set()

    @property
    def is_paused(self) -> bool:
        """Whether a pause is open."""
        return bool(self._holds) and self._holds[-1][1] is None

    @property
    def held_s(self) -> float:
        """Total time in pauses so far, in seconds."""
        now_s = self._clock()
        return sum(
            max(0.0, min(now_s, now_s if end_s is None else end_s) - begin_s)
            for begin_s, end_s in self._holds
        )

    def shift(self, due_s: float) -> float | None:
        """Return `due_s` delayed by the pauses before it; None while such a pause is open."""
        for begin_s, end_s in self._holds:
            if due_s < begin_s:
                break
            if end_s is None:
                return None
            due_s += end_s - begin_s
        return due_s

    async def wait_until(self, due_s: float) -> float:
        """Wait until `due_s`, delayed by the pauses before it; return the delayed time."""
        while True:
            shifted_s = self.shift(due_s)
            if shifted_s is not None and shifted_s <= self._clock() + _TIME_TOLERANCE_S:
                return shifted_s
            self._changed.clear()
            timeout_s = None if shifted_s is None else shifted_s - self._clock()
            try:
                await asyncio.wait_for(self._changed.wait(), timeout_s)
            except TimeoutError:
                continue
