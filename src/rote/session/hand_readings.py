"""What a robot's hands tell: which of them it wears, where their joints are now, who fell silent.

Hands report at a pace of their own, and without a clock. Between two reports of a hand its joints
are led evenly from one to the next by the clock of the robot's body, so that a recording at the
body's pace has no stairs in it, also where reports arrive in bursts; that costs the delay of one
report. A hand that falls silent keeps its last position.
"""

from dataclasses import dataclass

from rote.model.family import Hand
from rote.wire.dds_hands import HandReading

SILENT_S = 0.5
"""A hand that has not reported for this long has stopped."""
_LONGEST_S = 0.1
"""Joints are led from one report to the next in this time at most."""
_FORGOTTEN = 0.9
"""How much of the longest pause between two reports is remembered at the next report."""


@dataclass(slots=True)
class _Heard:
    """The newest report of one hand, and where its joints were shown when it came."""

    reading: HandReading
    start_rad: tuple[float, ...]
    heard_at: float
    clock_s: float
    """When it came, by the clock of the robot's body."""
    lasts_s: float = 0.0

    def joints_rad(self, clock_s: float) -> tuple[float, ...]:
        passed_s = clock_s - self.clock_s
        if not 0.0 <= passed_s < self.lasts_s:
            return self.reading.joints_rad
        share = passed_s / self.lasts_s
        ends = zip(self.start_rad, self.reading.joints_rad, strict=True)
        return tuple([start + share * (end - start) for start, end in ends])


class HandReadings:
    """The hands of one robot, as they report."""

    def __init__(self) -> None:
        self._heard: dict[Hand, _Heard] = {}
        self.worn: tuple[Hand, ...] = ()
        """The hands that have reported, left before right."""
        self._in_order: tuple[_Heard, ...] = ()

    def hear(self, hand: Hand, reading: HandReading, now: float, clock_s: float) -> bool:
        """Take in a report; whether it is the first of this hand.

        `clock_s` is the newest time that the robot's body has told.
        """
        before = self._heard.get(hand)
        if before is None:
            self._heard[hand] = _Heard(reading, reading.joints_rad, now, clock_s)
            self.worn = tuple(sorted(self._heard, key=lambda each: (each.side, each.name)))
            self._in_order = tuple(self._heard[each] for each in self.worn)
            return True
        if clock_s != before.clock_s:  # else it came in one burst with the last
            lasts_s = max(clock_s - before.clock_s, _FORGOTTEN * before.lasts_s)
            before.start_rad = before.joints_rad(clock_s)
            before.clock_s, before.lasts_s = clock_s, min(lasts_s, _LONGEST_S)
        before.reading, before.heard_at = reading, now
        return False

    def forget(self) -> None:
        """It is another robot, or none: no hand is known any more."""
        self._heard.clear()
        self.worn, self._in_order = (), ()

    def silent(self, now: float) -> tuple[str, ...]:
        """Return the sides of the hands that have stopped reporting."""
        if all(now - heard.heard_at < SILENT_S for heard in self._in_order):
            return ()
        return tuple(h.side for h in self.worn if now - self._heard[h].heard_at >= SILENT_S)

    def read(self, now: float, clock_s: float) -> HandReading:
        """Return the joints of all hands that are worn, one hand after the other."""
        positions: tuple[float, ...] = ()
        velocities: tuple[float, ...] = ()
        celsius: tuple[float, ...] = ()
        for heard in self._in_order:
            told = heard.reading
            silent = now - heard.heard_at >= SILENT_S
            positions += heard.joints_rad(clock_s)
            velocities += (0.0,) * len(told.velocities_rad_s) if silent else told.velocities_rad_s
            celsius += told.temperatures_c
        return HandReading(positions, velocities, celsius)
