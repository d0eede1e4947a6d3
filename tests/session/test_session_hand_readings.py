"""What hands tell, at a pace of their own: no stairs, no guess, and a silence that is said."""

import numpy as np
import pytest

from rote.model.dex3 import DEX3, DEX3_LEFT, DEX3_RIGHT
from rote.session.hand_readings import SILENT_S, HandReadings
from rote.wire.dds.hands import HandReading


def at(q: float, dq: float = 0.0) -> HandReading:
    return HandReading((q,) * 7, (dq,) * 7, (30.0,) * 7)


def test_a_hand_is_worn_once_it_has_reported_left_before_right() -> None:
    readings = HandReadings()
    assert readings.add_report(DEX3_RIGHT, at(0.1), 0.0, 0.0)
    assert readings.add_report(DEX3_LEFT, at(0.2), 0.0, 0.0)
    assert not readings.add_report(DEX3_LEFT, at(0.2), 0.01, 0.01)
    assert readings.attached == DEX3
    assert readings.read(0.01, 0.01).joints_rad == (0.2,) * 7 + (0.1,) * 7
    readings.forget()
    assert not readings.attached


@pytest.mark.parametrize("burst", [1, 5])
def test_a_steady_motion_is_recorded_without_stairs_however_reports_arrive(burst: int) -> None:
    """A finger turns at 1 rad/s; the hand reports at 100 Hz and the body at 500 Hz."""
    readings, shown = HandReadings(), []
    for step in range(1000):
        clock_s = step * 0.002
        if step % (5 * burst) == 0:
            for late in reversed(range(burst)):
                readings.add_report(DEX3_LEFT, at(clock_s - 0.01 * late), clock_s, clock_s)
        shown.append(readings.read(clock_s, clock_s).joints_rad[0])
    speeds = np.diff(shown[200:]) / 0.002
    assert speeds == pytest.approx(1.0, abs=0.01)
    late_s = np.arange(200, 1000) * 0.002 - np.array(shown[200:])
    assert late_s.max() <= 0.01 * burst + 0.0101


def test_a_hand_that_falls_silent_is_named_and_keeps_its_last_position() -> None:
    readings = HandReadings()
    readings.add_report(DEX3_LEFT, at(0.3, 2.0), 10.0, 5.0)
    readings.add_report(DEX3_RIGHT, at(0.4, 2.0), 10.0, 5.0)
    just_before, after = 10.0 + SILENT_S - 0.01, 10.0 + SILENT_S + 0.01
    readings.add_report(DEX3_RIGHT, at(0.4, 2.0), just_before, 5.4)
    assert readings.find_silent_sides(just_before) == ()
    assert readings.find_silent_sides(after) == ("left",)
    read = readings.read(after, 5.6)
    assert read.joints_rad == (0.3,) * 7 + (0.4,) * 7
    assert read.velocities_rad_s == (0.0,) * 7 + (2.0,) * 7
    readings.add_report(DEX3_LEFT, at(0.5), after, 5.6)
    assert readings.find_silent_sides(after) == ()


def test_a_robot_whose_clock_begins_anew_shows_what_was_told_last() -> None:
    readings = HandReadings()
    for number in range(3):
        readings.add_report(DEX3_LEFT, at(0.1 * number), 0.01 * number, 100.0 + 0.01 * number)
    assert readings.read(0.03, 0.5).joints_rad == (0.2,) * 7
