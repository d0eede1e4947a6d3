"""Estimates another computer's clock from requests and answers, with an error bound.

Every answer bounds the offset: it was made after our request was sent and before the answer
arrived. The offset lies in the intersection of all these intervals, which is much narrower than the
best of them: one request was fast on its way there, another on its way back.
"""

from collections import deque
from typing import NamedTuple

DRIFT = 100e-6
"""How much two computers' clocks may drift apart, as a share of the time: 100 ppm is a bad one."""
MAX_ANSWERS = 64
"""Maximum number of answers kept."""


class ClockSample(NamedTuple):
    """One answer of the other clock."""

    at_s: float
    """When it arrived, by our clock."""
    least_s: float
    """What to add to our clock at least: the answer was made when it arrived."""
    most_s: float
    """What to add at most: it was made when it was asked for."""


class StageClock:
    """The offset of another clock to ours. An answer's interval grows with its age, by `DRIFT`."""

    def __init__(self) -> None:
        self._seen: deque[ClockSample] = deque(maxlen=MAX_ANSWERS)
        self._round_trips_s: deque[float] = deque(maxlen=MAX_ANSWERS)

    def add(self, sent_s: float, received_s: float, theirs_s: float) -> None:
        """Add an answer: our clock when it was asked for and when it came, and theirs in between.

        An answer that came before it was asked for is ignored.
        """
        if received_s >= sent_s:
            self._seen.append(ClockSample(received_s, theirs_s - received_s, theirs_s - sent_s))
            self._round_trips_s.append(received_s - sent_s)

    def forget(self) -> None:
        """Forget all answers: another conductor has another clock."""
        self._seen.clear()
        self._round_trips_s.clear()

    @property
    def answers(self) -> int:
        """How many answers are kept."""
        return len(self._seen)

    def bound_s(self, now_s: float) -> float:
        """Return how wrong `offset_s` may be at most; infinite without any answer."""
        known = self._offset_interval(now_s)
        return float("inf") if known is None else (known[1] - known[0]) / 2

    def offset_s(self, now_s: float) -> float:
        """Return what to add to our clock to get theirs; 0 without any answer."""
        known = self._offset_interval(now_s)
        return 0.0 if known is None else (known[0] + known[1]) / 2

    @property
    def round_trip_s(self) -> float:
        """The shortest recent round trip; infinite without any answer."""
        return min(self._round_trips_s, default=float("inf"))

    def _offset_interval(self, now_s: float) -> tuple[float, float] | None:
        """Return the bounds of the offset: the intersection of the answers, from the newest back to
        the first that contradicts.

        An answer that contradicts newer ones is from before a clock was set, or stood still.
        """
        if not self._seen:
            return None
        least_s, most_s = float("-inf"), float("inf")
        for at_s, least_then_s, most_then_s in reversed(self._seen):
            grown_s = DRIFT * (now_s - at_s) if now_s > at_s else 0.0
            low_s, high_s = least_then_s - grown_s, most_then_s + grown_s
            low_s, high_s = max(low_s, least_s), min(high_s, most_s)
            if low_s > high_s:
                break
            least_s, most_s = low_s, high_s
        return least_s, most_s
