"""A stream to the arms: what is told, and the soft way out from any moment of it."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.messages import Phase, StreamPose
from rote.model.dex3 import DEX3
from rote.model.family import Build, attach_hands, numbered_build
from rote.model.g1 import G1, G1_23, G1_29, G1_JOINTS, G1_REST_RAD, TAUGHT_JOINTS
from rote.session.arm_stream import FADE_HZ, FADE_MAX_S, ArmSetpoint, ArmStream

UPPER_BODY = range(12, 29)
HERE = tuple(n / 100 for n in range(29))
LOWER = [G1_JOINTS[motor].lower_rad for motor in UPPER_BODY]
UPPER = [G1_JOINTS[motor].upper_rad for motor in UPPER_BODY]


def pose(weight: float, positions: float = 0.2, number: int = 0) -> StreamPose:
    return StreamPose(number, weight, (positions,) * len(TAUGHT_JOINTS))


def test_what_is_not_streamed_stays_where_it_was() -> None:
    stream = ArmStream(HERE, G1_29)
    told = stream.follow(pose(1.0), 0.0)
    assert told.weight == 1.0
    assert told.joints_rad[1:3] == HERE[13:15]  # waist roll and pitch
    assert set(told.joints_rad[:1] + told.joints_rad[3:]) == {0.2}


def test_the_weight_tells_how_far_it_is() -> None:
    stream = ArmStream(HERE, G1_29)
    seen = []
    for weight in (0.0, 0.5, 1.0, 1.0, 0.5):
        stream.follow(pose(weight), 0.0)
        seen.append(stream.phase)
    assert seen == [Phase.APPROACH, Phase.APPROACH, Phase.PLAYING, Phase.PLAYING, Phase.RETURN]


def test_a_stream_that_fades_takes_no_more_poses_and_is_on_its_way_back() -> None:
    stream = ArmStream(HERE, G1_29)
    stream.follow(pose(1.0), 0.0)
    seen = [(stream.following, stream.phase)]
    stream.fade()
    seen.append((stream.following, stream.phase))
    assert seen == [(True, Phase.PLAYING), (False, Phase.RETURN)]


@given(
    st.floats(0.0, 1.0),
    st.floats(-1.0, 1.0),
    st.floats(-0.05, 0.05),
    st.sampled_from([0.0, 0.002, 0.004, 1.0]),
)
def test_from_anywhere_the_arms_are_let_go_of_without_a_jump(
    weight: float, start: float, step: float, apart_s: float
) -> None:
    stream = ArmStream(HERE, G1_29)
    stream.follow(pose(weight, start), 0.0)
    last = stream.follow(pose(weight, start + step), apart_s)
    faded = stream.fade()
    assert faded[-1].weight == 0.0
    assert 0.5 * FADE_HZ <= len(faded) <= FADE_MAX_S * FADE_HZ
    weights = np.array([last.weight, *(told.weight for told in faded)])
    assert (np.diff(weights) <= 1e-9).all()
    assert (weights >= 0.0).all()
    assert np.abs(np.diff(weights)).max() <= 0.02
    positions = np.array([last.joints_rad, *(told.joints_rad for told in faded)])
    assert np.abs(np.diff(positions, axis=0)).max() <= 4.0 / FADE_HZ + 1e-9
    within = np.clip(positions, np.minimum(LOWER, positions[0]), np.maximum(UPPER, positions[0]))
    assert np.array_equal(within, positions)


def test_the_further_from_rest_the_longer_it_takes() -> None:
    lengths = []
    for far in (0.0, 0.8, 1.6):
        stream = ArmStream(G1_REST_RAD, G1_29)
        rest = np.array(G1_REST_RAD)[list(TAUGHT_JOINTS)]
        stream.follow(StreamPose(0, 1.0, tuple(rest + far)), 0.0)
        lengths.append(len(stream.fade()))
    assert lengths == sorted(set(lengths))


def test_a_stream_that_never_told_anything_fades_from_where_the_arms_are() -> None:
    faded = ArmStream(HERE, G1_29).fade()
    here = tuple(HERE[motor] for motor in UPPER_BODY)
    assert set(faded) == {ArmSetpoint(here, 0.0)}


def test_arms_that_long_do_not_follow_are_astray_and_those_that_lag_are_not() -> None:
    stream = ArmStream((0.0,) * 29, G1_29)
    held = (0.0,) * 29
    stream.follow(pose(0.5, 1.0), 0.0)
    assert not any(
        stream.is_not_tracking(held, now) for now in (0.0, 0.3, 0.6)
    )  # not yet obeyed in full
    stream.follow(pose(1.0, 1.0), 1.0)
    assert not stream.is_not_tracking(held, 1.0)
    assert not stream.is_not_tracking((0.8,) * 29, 1.4)  # there it comes
    assert not stream.is_not_tracking(held, 1.6)
    assert not stream.is_not_tracking(held, 2.0)
    assert stream.is_not_tracking(held, 2.1)


@pytest.mark.parametrize("build", G1.builds, ids=lambda build: build.name)
def test_a_stream_to_any_build_moves_its_taught_joints_and_holds_the_others(build: Build) -> None:
    here = tuple(n / 100 for n in range(len(build.names)))
    stream = ArmStream(here, build)
    told = stream.follow(StreamPose(0, 1.0, (0.5,) * len(build.taught)), 0.0)
    for name, column, position in zip(
        build.streamed, build.streamed_columns, told.joints_rad, strict=True
    ):
        assert position == (0.5 if name in build.taught else here[column])
    faded = stream.fade()
    assert faded[-1].weight == 0.0
    assert {len(setpoint.joints_rad) for setpoint in faded} == {len(build.streamed)}


def test_a_smaller_build_is_astray_by_its_own_columns() -> None:
    count = len(G1_23.names)
    stream = ArmStream((0.0,) * count, G1_23)
    stream.follow(StreamPose(0, 1.0, (1.0,) * len(G1_23.taught)), 0.0)
    held = (0.0,) * count
    assert not stream.is_not_tracking(held, 0.0)
    assert stream.is_not_tracking(held, 0.5)


def test_nothing_is_streamed_to_a_machine_without_a_family() -> None:
    with pytest.raises(BadRequestError):
        ArmStream((0.0,) * 3, numbered_build(3, 0))


# ---- hands --------------------------------------------------------------------------------------

WORN = attach_hands(G1_29, DEX3)


@given(
    st.floats(0.0, 1.0),
    st.lists(st.floats(0.0, 1.0), min_size=14, max_size=14),
    st.floats(-0.05, 0.05),
)
def test_from_anywhere_fingers_are_let_go_of_without_a_jump_and_within_their_limits(
    weight: float, shares: list[float], step: float
) -> None:
    joints = [joint for hand in DEX3 for joint in hand.joints]
    places = np.array(
        [
            joint.lower_rad + share * (joint.upper_rad - joint.lower_rad)
            for joint, share in zip(joints, shares, strict=True)
        ]
    )
    stream = ArmStream(HERE + tuple(places), WORN, DEX3)
    assert stream.last.hands_rad == tuple(places)
    for number in range(3):
        moved = places + step * number
        stream.follow(replace(pose(weight), hands_rad=tuple(moved.tolist())), 0.004 * number)
    told = [stream.last, *stream.fade()]
    assert (told[-1].weight, len(told[-1].hands_rad)) == (0.0, 14)
    fingers = np.array([setpoint.hands_rad for setpoint in told])
    assert np.abs(np.diff(fingers, axis=0)).max() <= 4.0 / FADE_HZ + 1e-9
    lower = np.minimum([joint.lower_rad for joint in joints], fingers[0])
    upper = np.maximum([joint.upper_rad for joint in joints], fingers[0])
    assert (fingers >= lower - 1e-9).all()
    assert (fingers <= upper + 1e-9).all()


@pytest.mark.parametrize("count", [0, 7, 13])
def test_a_pose_with_other_fingers_than_the_stream_is_refused(count: int) -> None:
    stream = ArmStream(HERE + (0.0,) * 14, WORN, DEX3)
    with pytest.raises(BadRequestError):
        stream.follow(replace(pose(0.5), hands_rad=(0.0,) * count), 0.0)


def test_fingers_that_are_held_up_do_not_end_a_stream() -> None:
    stream = ArmStream(HERE + (0.0,) * 14, WORN, DEX3)
    stream.follow(replace(pose(1.0), hands_rad=(1.0,) * 14), 0.0)
    where = [0.2] * 29 + [0.0] * 14
    for moment in range(20):
        assert not stream.is_not_tracking(tuple(where), 0.1 * moment)


# ---- the way out ------------------------------------------------------------------------------


def rest_and(far: float) -> tuple[float, ...]:
    return tuple(np.array(G1_REST_RAD)[list(TAUGHT_JOINTS)] + far)


def test_the_weight_falls_by_minimum_jerk() -> None:
    stream = ArmStream(G1_REST_RAD, G1_29)
    stream.follow(StreamPose(0, 0.8, rest_and(0.5)), 0.0)
    weights = np.array([setpoint.weight for setpoint in stream.fade()])
    share = np.arange(1, len(weights) + 1) / len(weights)
    assert weights == pytest.approx(0.8 * (1 - 10 * share**3 + 15 * share**4 - 6 * share**5))


def test_a_release_is_as_long_as_the_weighted_way_at_the_soft_speed_needs() -> None:
    seconds = []
    for weight in (1.0, 0.5):
        stream = ArmStream(G1_REST_RAD, G1_29)
        stream.follow(StreamPose(0, weight, rest_and(1.2)), 0.0)
        seconds.append(len(stream.fade()) / FADE_HZ)
    assert seconds == pytest.approx([1.875 * 1.2, 1.875 * 0.6], abs=2 / FADE_HZ)


@pytest.mark.parametrize(("apart_s", "coasts"), [(0.0, False), (0.02, True), (0.4, False)])
def test_arms_coast_only_if_the_last_poses_tell_how_fast_they_are(
    apart_s: float, coasts: bool
) -> None:
    stream = ArmStream(G1_REST_RAD, G1_29)
    stream.follow(StreamPose(0, 1.0, rest_and(0.1)), 0.0)
    last = stream.follow(StreamPose(1, 1.0, rest_and(0.12)), apart_s)
    moved = np.array(stream.fade()[-1].joints_rad) - np.array(last.joints_rad)
    assert bool(np.abs(moved).max() > 0.001) is coasts


def test_arms_that_were_moved_meanwhile_are_released_from_where_they_are() -> None:
    stream = ArmStream(G1_REST_RAD, G1_29)
    stream.follow(StreamPose(0, 0.3, rest_and(1.2)), 0.0)
    stream.restart_from(HERE)
    first, *_ = stream.fade()
    assert first.weight == pytest.approx(1.0, abs=0.01)
    assert first.joints_rad == tuple(HERE[motor] for motor in UPPER_BODY)


def test_arms_whose_position_is_not_known_are_released_at_once() -> None:
    stream = ArmStream(G1_REST_RAD, G1_29)
    stream.follow(StreamPose(0, 1.0, rest_and(1.2)), 0.0)
    stream.restart_from(None)
    assert {setpoint.weight for setpoint in stream.fade()} == {0.0}
