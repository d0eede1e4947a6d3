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
_MAX_RAMP_S = 0.1
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
    ramp_s: float = 0.0
    """Time over which the shown positions move from `start_rad` to the reading."""

    def interpolate_rad(self, clock_s: float) -> tuple[float, ...]:
        """Return the joint positions at a time, interpolated from `start_rad` to the reading."""
        passed_s = clock_s - self.clock_s
        if not 0.0 <= passed_s < self.ramp_s:
            return self.reading.joints_rad
        fraction = passed_s / self.ramp_s
        pairs = zip(self.start_rad, self.reading.joints_rad, strict=True)
        return tuple([start + fraction * (end - start) for start, end in pairs])


class HandReadings:
    """The latest reports of the hands of one robot."""

    def __init__(self) -> None:
        self._reports: dict[Hand, _HandReport] = {}
        self.attached: tuple[Hand, ...] = ()
        """The hands that have reported, left before right."""
        self._reports_in_order: tuple[_HandReport, ...] = ()

    def add_report(self, hand: Hand, reading: HandReading, now: float, clock_s: float) -> bool:
        """Process a report; return whether it is the first of this hand.

        `clock_s` is the newest time that the robot's body has reported.
        """
        report = self._reports.get(hand)
        if report is None:
            self._reports[hand] = _HandReport(reading, reading.joints_rad, now, clock_s)
            self.attached = tuple(sorted(self._reports, key=lambda each: (each.side, each.name)))
            self._reports_in_order = tuple(self._reports[each] for each in self.attached)
            return True
        if clock_s != report.clock_s:  # otherwise it arrived in one burst with the last report
            # The next report is expected after as long a pause as the longest recent one.
            ramp_s = max(clock_s - report.clock_s, _PAUSE_DECAY * report.ramp_s)
            report.start_rad = report.interpolate_rad(clock_s)
            report.clock_s, report.ramp_s = clock_s, min(ramp_s, _MAX_RAMP_S)
        report.reading, report.received_at = reading, now
        return False

    def forget(self) -> None:
        """Forget all hands: the robot has changed or is gone."""
        self._reports.clear()
        self.attached, self._reports_in_order = (), ()

    def find_silent_sides(self, now: float) -> tuple[str, ...]:
        """Return the sides of the hands that have stopped reporting."""
        if all(now - report.received_at < SILENT_S for report in self._reports_in_order):
            return ()  # the usual case, quickly
        return tuple(
            hand.side for hand in self.attached if now - self._reports[hand].received_at >= SILENT_S
        )

    def read(self, now: float, clock_s: float) -> HandReading:
        """Return the joints of all attached hands, one hand after the other.

        Positions are those at `clock_s`, a time of the robot's clock; silent hands stand still.
        """
        positions: tuple[float, ...] = ()
        velocities: tuple[float, ...] = ()
        celsius: tuple[float, ...] = ()
        for report in self._reports_in_order:
            reading = report.reading
            is_silent = now - report.received_at >= SILENT_S
            positions += report.interpolate_rad(clock_s)
            still = (0.0,) * len(reading.velocities_rad_s)
            velocities += still if is_silent else reading.velocities_rad_s
            celsius += reading.temperatures_c
        return HandReading(positions, velocities, celsius)
