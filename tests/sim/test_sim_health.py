"""Battery, warmth and faults of the simulated robot."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.model.g1 import G1_JOINTS
from rote.sim.health import (
    AMBIENT_C,
    LOW_BATTERY,
    RESERVE_PERCENT,
    TOO_HOT_C,
    Health,
    parse_fault,
)

RESTING = np.zeros(29)
FULL = np.array([joint.effort_nm for joint in G1_JOINTS])


def run(health: Health, seconds: float, torques: np.ndarray = RESTING) -> None:
    for step in range(round(seconds / 10)):
        health.advance(10.0 * (step + 1), 10.0, torques)


def sources(health: Health) -> list[int]:
    return [fault.source for fault in health.faults]


def test_an_hour_takes_half_the_battery_and_a_night_leaves_the_reserve() -> None:
    health = Health()
    run(health, 3600)
    assert health.battery_percent == pytest.approx(50, abs=0.5)
    run(health, 36_000)
    assert health.battery_percent == RESERVE_PERCENT
    assert not health.weak


def test_a_low_battery_is_a_fault_and_stays_low() -> None:
    health = Health(began_unix_s=1000.0)
    run(health, 60)
    health.discharge_battery()
    run(health, 60)
    assert health.weak
    assert health.battery_percent < RESERVE_PERCENT
    (fault,) = health.faults
    assert (fault.unix_s, fault.source, fault.code) == (1060, *LOW_BATTERY)
    assert "low battery" in health.messages[0]


def test_motors_warm_with_their_torque_and_cool_without() -> None:
    health = Health()
    run(health, 1200, FULL * 0.5)
    warm = health.temperatures_c.copy()
    assert (warm > AMBIENT_C + 20).all()
    assert (warm < TOO_HOT_C).all()
    run(health, 1200)
    assert (health.temperatures_c < AMBIENT_C + 2).all()
    assert health.faults == ()


def test_motors_that_give_all_they_can_overheat() -> None:
    health = Health()
    run(health, 3600, FULL)
    assert len(health.faults) == 29
    assert health.motor_error


def test_a_hot_motor_is_a_fault_until_it_has_cooled() -> None:
    health = Health()
    health.overheat_motor(16)
    health.add_fault(100, 1)
    assert sources(health) == [3016, 100]
    assert "motor 16: winding overheating" in health.messages[0]
    run(health, 30)
    assert sources(health) == [3016, 100]
    assert health.temperatures_c[16] == health.temperatures_c.max() > TOO_HOT_C
    run(health, 600)
    assert sources(health) == [100]
    assert not health.motor_error


def test_changes_are_counted_and_a_repeated_fault_is_none() -> None:
    health = Health()
    counts = [health.changes]
    for act in (health.add_fault, health.add_fault, health.clear_fault, health.clear_fault):
        act(300, 1)
        counts.append(health.changes)
    assert counts == [0, 1, 1, 2, 2]


@pytest.mark.parametrize(
    ("source", "is_motor"), [(300, True), (399, True), (3999, True), (400, False)]
)
def test_faults_of_motors_are_told_from_others(source: int, is_motor: bool) -> None:
    health = Health()
    health.add_fault(source, 1)
    assert health.motor_error is is_motor


@pytest.mark.parametrize(
    ("text", "when_s", "faults"),
    [
        ("low-battery", 0.0, {(600, 0x8)}),
        (" low-battery @ 2.5 ", 2.5, {(600, 0x8)}),
        ("hot-motor:16", 0.0, {(3016, 0x10)}),
        ("hot-motor:0@500ms", 0.5, {(3000, 0x10)}),
        ("600:0x8@3s", 3.0, {(600, 0x8)}),
        ("100:1", 0.0, {(100, 1)}),
    ],
)
def test_a_fault_in_words_comes_when_it_is_due(
    text: str, when_s: float, faults: set[tuple[int, int]]
) -> None:
    planned = parse_fault(text)
    assert planned.when_s == when_s
    health = Health()
    health.plan_fault(planned)
    health.advance(when_s - 0.1, 0.1, RESTING)
    assert sources(health) == []
    for moment_s in (when_s, when_s + 1):
        health.advance(moment_s, 0.1, RESTING)
        assert {(fault.source, fault.code) for fault in health.faults} == faults
    assert health.changes == 1


@pytest.mark.parametrize(
    "text",
    [
        "", "@5", "low-battery:3", "low-battery@", "low-battery@soon", "hot-motor", "hot-motor:x",
        "hot-motor:29", "hot-motor:-1", "600", "600:", "600:0", "-1:8", ":8", "fire:1",
    ],
)  # fmt: skip
def test_what_is_no_fault_is_refused_with_a_way_out(text: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_fault(text)
    assert caught.value.remedy


@given(st.text(max_size=20))
def test_any_text_is_a_fault_or_refused(text: str) -> None:
    try:
        planned = parse_fault(text)
    except BadRequestError:
        return
    health = Health()
    planned.apply(health)
    assert health.faults
