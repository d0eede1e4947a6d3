"""A track of our own as keyframes: where it begins, how close it comes, and when it is refused."""

import numpy as np
import pytest

from rote import messages as m
from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation
from rote.model.g1 import G1_29, G1_REST_RAD
from rote.motion.interpolate import sample_keyframes
from rote.motion.track import Array, Track
from rote.robot.streamed_motion import taught_joint_arrays
from rote.robot.streamer import compress, make_storable

ELBOW = "right_elbow_joint"

REST_RAD = taught_joint_arrays(G1_29).rest_rad


def elbow(times_s: list[float], values: list[float]) -> Track:
    return Track(times_s=np.array(times_s), joints_rad=np.array(values)[:, None], names=(ELBOW,))


def played(keyframes: tuple[m.Keyframe, ...], at_s: Array) -> Array:
    """Return the 29 joints as a robot plays keyframes from its rest."""
    return sample_keyframes(keyframes, np.array(G1_REST_RAD), at_s, Interpolation.LINEAR)


def test_a_motion_from_rest_is_stored_as_it_is() -> None:
    motion = elbow([3.0, 4.0, 5.0], [1.0, 0.5, 1.0])
    whole = make_storable(motion, G1_29)
    assert whole.times_s.tolist() == [0.0, 1.0, 2.0]
    assert whole.joints_rad[:, whole.names.index(ELBOW)].tolist() == [1.0, 0.5, 1.0]
    compressed = compress(whole, G1_29, 20)
    assert compressed.max_error_rad == pytest.approx(0.0, abs=1e-9)
    assert {keyframe.joint for keyframe in compressed.keyframes} == {G1_29.names.index(ELBOW)}


def test_a_motion_that_begins_elsewhere_gets_a_soft_way_there() -> None:
    whole = make_storable(elbow([0.0, 1.0], [0.2, 0.5]), G1_29)
    assert np.array_equal(whole.joints_rad[0], REST_RAD)
    speeds = np.diff(whole.joints_rad, axis=0) / np.diff(whole.times_s)[:, None]
    assert np.abs(speeds).max() <= 1.0
    assert whole.duration_s == pytest.approx(1.0 + 1.875 * 0.8)
    assert whole.joints_rad[-1, whole.names.index(ELBOW)] == 0.5


def test_the_keyframes_play_as_close_as_they_say() -> None:
    t = np.arange(301) / 100.0
    whole = make_storable(elbow(t.tolist(), (1.0 - 0.4 * np.sin(2 * t) ** 2).tolist()), G1_29)
    compressed = compress(whole, G1_29, 12)
    assert len(compressed.keyframes) <= 12
    again = played(compressed.keyframes, whole.times_s)[:, G1_29.names.index(ELBOW)]
    apart = np.abs(again - whole.joints_rad[:, whole.names.index(ELBOW)]).max()
    assert apart == pytest.approx(compressed.max_error_rad, abs=1e-6)
    assert apart < 0.05


def test_keyframes_that_would_be_another_motion_are_refused_with_the_number() -> None:
    t = np.arange(501) / 100.0
    names = ("left_elbow_joint", ELBOW, "left_shoulder_roll_joint", "waist_yaw_joint")
    swings = [0.5, 0.5, 1.0, 0.5] + 0.5 * np.sin(8 * t[:, None] + np.arange(4))
    wild = Track(times_s=t, joints_rad=swings, names=names)
    with pytest.raises(UnsafeMotionError, match=r"miss the motion by 0\.\d+ rad"):
        compress(make_storable(wild, G1_29), G1_29, 20)


def test_a_motion_that_stays_at_rest_is_refused() -> None:
    # No keyframes would mean: save what was recorded.
    with pytest.raises(BadRequestError, match="no joint moves"):
        compress(make_storable(elbow([0.0, 1.0], [1.0, 1.0]), G1_29), G1_29, 20)


@pytest.mark.parametrize("budget", [0, -1, 21])
def test_a_budget_the_wire_cannot_hold_is_refused(budget: int) -> None:
    with pytest.raises(BadRequestError, match="keyframes"):
        compress(make_storable(elbow([0.0, 1.0], [1.0, 0.5]), G1_29), G1_29, budget)


def test_an_unsafe_motion_is_refused_before_it_is_compressed() -> None:
    with pytest.raises(UnsafeMotionError):
        make_storable(elbow([0.0, 0.01], [1.0, 0.5]), G1_29)
    with pytest.raises(UnsafeMotionError):
        make_storable(elbow([0.0, 1.0], [1.0, 4.0]), G1_29)
