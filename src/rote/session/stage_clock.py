"""Estimates another computer's clock from requests and answers, with an error bound.

Every answer bounds the offset: it was made after our request was sent and before the answer
arrived. The offset lies in the intersection of all these intervals. It is much narrower than the
best interval, because some requests travel fast on the way there, others on the way back.
"""

from collections import deque
from typing import NamedTuple

DRIFT = 100e-6
"""Assumed drift between two computers' clocks, as a fraction of the time: 100 ppm is pessimistic.
"""
MAX_ANSWERS = 64
"""Maximum number of answers kept."""


class ClockSample(NamedTuple):
    """One answer of the other clock."""

    at_s: float
    """When it arrived, by our clock."""
    least_s: float
    """Lower bound of the offset: as if the answer was made when it arrived."""
    most_s: float
    """Upper bound of the offset: as if the answer was made when it was requested."""


class StageClock:
    """The offset of another clock to ours. An answer's interval grows with its age, by `DRIFT`."""

    def __init__(self) -> None:
        self._samples: deque[ClockSample] = deque(maxlen=MAX_ANSWERS)
        self._round_trips_s: deque[float] = deque(maxlen=MAX_ANSWERS)

    def add(self, sent_s: float, received_s: float, theirs_s: float) -> None:
        """Add an answer: our clock at its request and at its arrival, and theirs in between.

        An answer that arrived before its request is ignored.
        """
        if received_s >= sent_s:
            self._samples.append(ClockSample(received_s, theirs_s - received_s, theirs_s - sent_s))
            self._round_trips_s.append(received_s - sent_s)

    def forget(self) -> None:
        """Forget all answers: another conductor has another clock."""
        self._samples.clear()
        self._round_trips_s.clear()

    @property
    def answers(self) -> int:
        """How many answers are kept."""
        return len(self._samples)

    def bound_s(self, now_s: float) -> float:
        """Return the maximum error of `offset_s` in seconds; infinite without any answer."""
        interval = self._find_offset_interval(now_s)
        return float("inf") if interval is None else (interval[1] - interval[0]) / 2

    def offset_s(self, now_s: float) -> float:
        """Return what to add to our clock to get theirs; 0 without any answer."""
        interval = self._find_offset_interval(now_s)
        return 0.0 if interval is None else (interval[0] + interval[1]) / 2

    @property
    def round_trip_s(self) -> float:
        """The shortest recent round trip; infinite without any answer."""
        return min(self._round_trips_s, default=float("inf"))

    def _find_offset_interval(self, now_s: float) -> tuple[float, float] | None:
        """Return the bounds of the offset: the intersection of the answers' intervals.

        Answers are used from the newest backwards. An answer that contradicts newer ones ends the
        search: it is from before a clock was set or stood still.
        """
        if not self._samples:
            return None
        low_s, high_s = float("-inf"), float("inf")
        for sample in reversed(self._samples):
            drift_s = DRIFT * max(0.0, now_s - sample.at_s)
            new_low_s = max(low_s, sample.least_s - drift_s)
            new_high_s = min(high_s, sample.most_s + drift_s)
            if new_low_s > new_high_s:
                break
            low_s, high_s = new_low_s, new_high_s
        return low_s, high_s
