"""Simulated hands: they follow within their limits and speeds, and relax when nobody commands."""

import numpy as np
import pytest

from rote.model.dex3 import DEX3_LEFT, DEX3_RIGHT
from rote.model.family import Hand
from rote.model.g1 import G1_29
from rote.model.r1 import R1
from rote.motion.track import Array
from rote.sim.fingers import SimulatedHand, hands_named
from rote.wire.dds.hands import HandCommand

STEP_S = 0.01


def command(
    q: float | Array, stiffness: float = 1.5, *, driven: bool = True, timeout: bool = True
) -> HandCommand:
    places = tuple(np.broadcast_to(q, 7).tolist())
    return HandCommand(places, (stiffness,) * 7, (0.1,) * 7, driven, timeout)


def run(fingers: SimulatedHand, begin_s: float, seconds: float, told: HandCommand | None) -> Array:
    """Let time pass, with a command in every step or none; returns all positions."""
    seen = []
    for step in range(round(seconds / STEP_S)):
        now_s = begin_s + (step + 1) * STEP_S
        if told is not None:
            fingers.obey(told, now_s)
        fingers.advance(now_s, moved_by_hand=False)
        seen.append(fingers.joints_rad)
    return np.array(seen)


@pytest.mark.parametrize("hand", [DEX3_LEFT, DEX3_RIGHT], ids=lambda hand: hand.side)
@pytest.mark.parametrize("q", [-9.0, 9.0])
def test_fingers_stop_at_their_limits_and_turn_no_faster_than_their_motors(
    hand: Hand, q: float
) -> None:
    fingers = SimulatedHand(hand)
    seen = run(fingers, 0.0, 3.0, command(q))
    ends = [joint.upper_rad if q > 0 else joint.lower_rad for joint in hand.joints]
    assert seen[-1] == pytest.approx(ends, abs=0.01)
    fastest = [joint.velocity_rad_s for joint in hand.joints]
    assert (np.abs(np.diff(seen, axis=0)) / STEP_S <= np.array(fastest) + 1e-6).all()


def test_motors_with_timeout_relax_a_second_after_the_last_command_and_others_do_not() -> None:
    for timeout in (True, False):
        fingers = SimulatedHand(DEX3_LEFT)
        run(fingers, 0.0, 0.5, command(0.3, timeout=timeout))
        run(fingers, 0.5, 0.9, None)
        assert not fingers.relaxed
        run(fingers, 1.4, 0.3, None)
        assert fingers.relaxed is timeout


def test_a_hand_without_stiffness_or_with_locked_motors_does_not_follow() -> None:
    for told in (command(0.5, 0.0), command(0.5, driven=False)):
        fingers = SimulatedHand(DEX3_LEFT)
        assert np.ptp(run(fingers, 0.0, 0.5, told), axis=0).max() == 0.0
        assert fingers.relaxed


def test_a_soft_hand_follows_more_slowly() -> None:
    far = [run(SimulatedHand(DEX3_LEFT), 0.0, 0.1, command(0.5, kp))[-1][1] for kp in (0.3, 1.5)]
    assert 0.0 < far[0] < far[1]


def test_a_person_moves_relaxed_fingers_and_none_that_are_driven() -> None:
    fingers = SimulatedHand(DEX3_LEFT)
    for step in range(100):
        fingers.advance(step * STEP_S, moved_by_hand=True)
    relaxed = fingers.joints_rad
    assert np.abs(relaxed).min() > 0.1
    fingers.obey(command(relaxed), 2.0)
    for step in range(50):
        fingers.advance(2.0 + step * STEP_S, moved_by_hand=True)
    assert fingers.joints_rad == pytest.approx(relaxed)


def test_led_fingers_close_and_open_again_slowly() -> None:
    fingers, seen = SimulatedHand(DEX3_RIGHT), []
    for step in range(400):
        fingers.advance(step * STEP_S, moved_by_hand=True)
        seen.append(fingers.joints_rad)
    places = np.array(seen)
    assert np.ptp(places, axis=0).min() > 0.2
    assert np.abs(np.diff(places, axis=0)).max() / STEP_S < 2.0


def test_only_a_robot_that_may_wear_hands_gets_them() -> None:
    assert [hand.side for hand in hands_named("dex3", G1_29)] == ["left", "right"]
    assert hands_named("inspire", G1_29) == ()
    assert hands_named("dex3", R1.default) == ()
