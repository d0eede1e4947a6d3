"""Reports of a robot's hands: which are attached, their positions, and which went silent.

Hands report at their own rate and without a clock. Between two reports their joints are
interpolated by the clock of the robot's body. So a recording at the body's rate has no steps, even
if reports arrive in bursts; the cost is a delay of one report. A hand that goes silent keeps its
last position.
"""

from dataclasses import dataclass

from rote.model.family import Hand
from rote.wire.dds.hands import HandReading

SILENT_S = 0.5
"""A hand that has not reported for this long is silent."""
_MAX_INTERPOLATED_S = 0.1
"""The longest time over which joints are interpolated from one report to the next."""
_PAUSE_DECAY = 0.9
"""Factor by which the longest pause between two reports decays at each report."""


@dataclass(slots=True)
class _HandReport:
    """The newest report of one hand, and the joint positions shown when it arrived."""

    reading: HandReading
    start_rad: tuple[float, ...]
    received_at: float
    clock_s: float
    """When it arrived, by the clock of the robot's body."""
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
        self._reports: dict[Hand, _HandReport] = {}
        self.attached: tuple[Hand, ...] = ()
        """The hands that have reported, left before right."""
        self._in_order: tuple[_HandReport, ...] = ()

    def add_report(self, hand: Hand, reading: HandReading, now: float, clock_s: float) -> bool:
        """Process a report; return whether it is the first of this hand.

        `clock_s` is the newest time that the robot's body has reported.
        """
        before = self._reports.get(hand)
        if before is None:
            self._reports[hand] = _HandReport(reading, reading.joints_rad, now, clock_s)
            self.attached = tuple(sorted(self._reports, key=lambda each: (each.side, each.name)))
            self._in_order = tuple(self._reports[each] for each in self.attached)
            return True
        if clock_s != before.clock_s:  # otherwise it arrived in one burst with the last report
            lasts_s = max(clock_s - before.clock_s, _PAUSE_DECAY * before.lasts_s)
            before.start_rad = before.joints_rad(clock_s)
            before.clock_s, before.lasts_s = clock_s, min(lasts_s, _MAX_INTERPOLATED_S)
        before.reading, before.received_at = reading, now
        return False

    def forget(self) -> None:
        """Forget all hands: the robot has changed or is gone."""
        self._reports.clear()
        self.attached, self._in_order = (), ()

    def silent(self, now: float) -> tuple[str, ...]:
        """Return the sides of the hands that have stopped reporting."""
        if all(now - report.received_at < SILENT_S for report in self._in_order):
            return ()
        return tuple(
            h.side for h in self.attached if now - self._reports[h].received_at >= SILENT_S
        )

    def read(self, now: float, clock_s: float) -> HandReading:
        """Return the joints of all attached hands, one hand after the other."""
        positions: tuple[float, ...] = ()
        velocities: tuple[float, ...] = ()
        celsius: tuple[float, ...] = ()
        for report in self._in_order:
            reading = report.reading
            silent = now - report.received_at >= SILENT_S
            positions += report.joints_rad(clock_s)
            velocities += (
                (0.0,) * len(reading.velocities_rad_s) if silent else reading.velocities_rad_s
            )
            celsius += reading.temperatures_c
        return HandReading(positions, velocities, celsius)
