"""A check finds what was put in: the kind, the joint, the moment and the number; and nothing in a
sound track."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from g1_29 import REST_RAD
from rote.cli.wording import worded
from rote.errors import BadRequestError, UnsafeMotionError, WarnedMotionError
from rote.findings import Finding, FindingKind, Severity
from rote.model.a1 import A1, A1_STAND_RAD
from rote.model.family import Joint
from rote.model.g1 import FOOT_CORNERS_M, G1, G1_23, G1_29, G1_ARMS, G1_JOINTS, TAUGHT_JOINTS
from rote.motion.body.balance import leaning
from rote.motion.body.contact import ContactModel
from rote.motion.body.kinematics import kinematics_of
from rote.motion.check.report import CheckReport
from rote.motion.check.rules import (
    BALANCE_M,
    CLEARANCE_M,
    HANDS_MEET_M,
    SLIGHT_M,
    check,
    check_contact,
    check_gaps,
    check_joints,
    compute_feet_margins_m,
)
from rote.motion.edit.operations import to_build
from rote.motion.track import Array, Track
from rote.robot.quadruped.motion import check_track
from rote.robot.quadruped.safety import Safety
from rote.sim.hands import SCRIPTS, ScriptedHand

INDEX = {joint.name: joint.index for joint in G1_JOINTS}
ARM = [G1_JOINTS[index] for index in TAUGHT_JOINTS]


def calm(seconds: float = 2.0, rate_hz: float = 100.0) -> Track:
    """Return arms that swing a little about where they rest, as a hand would lead them."""
    times_s = 5.0 + np.arange(round(seconds * rate_hz) + 1) / rate_hz
    joints_rad = np.repeat(REST_RAD[None, :], times_s.size, axis=0)
    swing = np.sin(2 * np.pi * (times_s - 5.0) / seconds)
    joints_rad[:, [15, 22]] -= 0.3 * np.abs(swing)[:, None] ** 2
    joints_rad[:, 18] -= 0.4 * swing**2
    return Track(times_s=times_s, joints_rad=joints_rad, names=G1_29.names)


def changed(track: Track, joint: str, rows: slice | int, by_rad: float | Array) -> Track:
    joints_rad = track.joints_rad.copy()
    joints_rad[rows, INDEX[joint]] += by_rad
    return replace(track, joints_rad=joints_rad)


def posed(**angles_rad: float) -> Track:
    """Return a second of standing still, at ease but for these joints."""
    pose = REST_RAD.copy()
    for name, value in angles_rad.items():
        pose[INDEX[f"{name}_joint"]] = value
    joints_rad = np.repeat(pose[None, :], 101, axis=0)
    return Track(times_s=np.arange(101) / 100, joints_rad=joints_rad, names=G1_29.names)


def stretched(track: Track, seconds: float) -> Track:
    return replace(track, times_s=np.linspace(0.0, seconds, len(track)))


def of_kind(report: CheckReport, kind: FindingKind) -> list[Finding]:
    return [finding for finding in report.findings if finding.kind is kind]


def the(report: CheckReport, kind: FindingKind, joint: str | None = None) -> Finding:
    (found,) = [f for f in of_kind(report, kind) if joint is None or f.joint == joint]
    return found


# ---- sound tracks -------------------------------------------------------------------------------


def test_a_calm_motion_has_nothing_against_it() -> None:
    assert check(calm()).findings == ()


@pytest.mark.parametrize("name", sorted(set(SCRIPTS) - {"clap"}))
def test_what_the_scripted_hands_teach_may_be_played(name: str) -> None:
    hand = ScriptedHand(name, 6.0)
    times_s = np.arange(0.0, 6.0, 0.02)
    poses: Array = np.array([hand.pose(time_s) for time_s in times_s.tolist()])
    assert check(Track(times_s=times_s, joints_rad=poses, names=G1_29.names)).findings == ()


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.0, 0.002))
def test_a_trembling_hand_gives_no_errors(seed: int, noise_rad: float) -> None:
    track = calm()
    tremor = np.random.default_rng(seed).standard_normal(track.joints_rad.shape) * noise_rad
    report = check(replace(track, joints_rad=track.joints_rad + tremor), contact=False)
    assert report.ok
    assert not report.warnings


@pytest.mark.parametrize("count", [1, 2])
def test_one_pose_or_two_are_checked_too(count: int) -> None:
    track = calm()
    short = replace(track, times_s=track.times_s[:count], joints_rad=track.joints_rad[:count])
    assert check(short, contact=False).ok
    far = changed(short, "left_elbow_joint", 0, 5.0)
    assert not check(far, contact=False).ok


def test_a_pose_of_no_joints_cannot_be_checked() -> None:
    empty = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 0)), names=())
    with pytest.raises(BadRequestError, match="1 samples"):
        check(empty)


# ---- what was put in is found -------------------------------------------------------------------


@given(st.sampled_from(ARM), st.integers(20, 180), st.booleans(), st.floats(0.03, 1.0))
def test_a_position_beyond_its_limit_is_found_with_its_moment_and_number(
    joint: Joint, row: int, above: bool, excess: float
) -> None:
    track = calm()
    limit = joint.upper_rad if above else joint.lower_rad
    value = limit + (excess if above else -excess)
    track = changed(track, joint.name, row, value - float(track.joints_rad[row, joint.index]))
    found = the(check(track, contact=False), FindingKind.POSITION)
    assert found.severity is Severity.ERROR
    assert (found.joint, found.time_s) == (joint.name, track.times_s[row])
    assert found.value == pytest.approx(value)
    assert found.limit == limit
    assert found.margin == pytest.approx(-excess)


def test_a_joint_pushed_against_its_stop_is_a_warning() -> None:
    report = check(posed(left_wrist_roll=1.98), contact=False)
    found = the(report, FindingKind.POSITION)
    assert found.severity is Severity.WARNING
    assert report.ok


@given(st.sampled_from(ARM), st.integers(20, 180), st.floats(0.12, 0.4))
def test_a_joint_that_is_too_fast_is_found_with_its_moment_and_number(
    joint: Joint, row: int, step_rad: float
) -> None:
    track = calm()
    track = changed(track, joint.name, slice(row, None), step_rad)
    found = the(check(track, contact=False), FindingKind.VELOCITY)
    assert found.severity is Severity.ERROR
    assert (found.joint, found.time_s) == (joint.name, track.times_s[row - 1])
    assert found.value == pytest.approx(step_rad * 100, abs=4.0)
    assert found.limit == 10.0
    assert found.margin is not None
    assert found.margin < 0


@settings(max_examples=20, deadline=None)
@given(st.sampled_from(ARM), st.integers(50, 150))
def test_a_joint_that_turns_too_sharply_is_found(joint: Joint, row: int) -> None:
    track = calm()
    # From 4 rad/s one way to 4 rad/s the other within a sample: a corner.
    corner = -4.0 * np.abs(track.times_s - track.times_s[row])
    corner = np.maximum(corner, -0.2)
    track = changed(track, joint.name, slice(None), corner + 0.2)
    report = check(track, contact=False)
    found = the(report, FindingKind.ACCELERATION, joint.name)
    assert found.severity is Severity.WARNING
    assert found.time_s == pytest.approx(track.times_s[row], abs=0.02)
    assert found.value == pytest.approx(2 * 4.0 / 0.05, rel=0.1)


def test_a_hole_in_the_recording_is_found_where_it_begins() -> None:
    track = calm()
    keep = (track.times_s <= 6.0) | (track.times_s >= 6.2)
    short = replace(track, times_s=track.times_s[keep], joints_rad=track.joints_rad[keep])
    found = the(check(short, contact=False), FindingKind.GAP)
    assert found.severity is Severity.WARNING
    assert found.time_s == pytest.approx(6.0)
    assert found.value == pytest.approx(0.2)
    keep = (track.times_s <= 6.0) | (track.times_s >= 6.8)
    long = replace(track, times_s=track.times_s[keep], joints_rad=track.joints_rad[keep])
    assert the(check(long, contact=False), FindingKind.GAP).severity is Severity.ERROR


def test_keyframes_far_apart_are_no_holes() -> None:
    slow = Track(
        times_s=np.arange(5.0), joints_rad=np.repeat(REST_RAD[None], 5, 0), names=G1_29.names
    )
    assert check(slow, contact=False).findings == ()


def test_a_first_pose_far_from_where_the_robot_is_needs_an_approach() -> None:
    start = REST_RAD.copy()
    start[INDEX["right_elbow_joint"]] -= 0.8
    report = check(calm(), start_pose=start, contact=False)
    found = the(report, FindingKind.JUMP)
    assert found.severity is Severity.WARNING
    assert (found.joint, found.time_s) == ("right_elbow_joint", 5.0)
    assert found.value == pytest.approx(0.8)
    assert "1.5 s" in found.remedy
    assert report.ok


def test_a_first_pose_far_from_standing_at_ease_is_only_noted() -> None:
    found = the(check(posed(left_elbow=0.0), contact=False), FindingKind.JUMP)
    assert found.severity is Severity.NOTE


def test_joints_the_robot_does_not_have_are_errors_where_they_move() -> None:
    track = changed(calm(), "left_wrist_yaw_joint", slice(100, 150), 0.2 * np.ones(50))
    found = of_kind(check(track, build=G1_23.name, contact=False), FindingKind.VARIANT)
    by_joint = {finding.joint: finding.severity for finding in found}
    assert by_joint.pop("left_wrist_yaw_joint") is Severity.ERROR
    assert set(by_joint.values()) == {Severity.WARNING}
    assert set(by_joint) == {
        "right_wrist_yaw_joint", "left_wrist_pitch_joint", "right_wrist_pitch_joint",
        "waist_roll_joint", "waist_pitch_joint",
    }  # fmt: skip


def test_a_joint_nobody_knows_is_an_error_and_the_others_are_still_checked() -> None:
    names = ("nose_joint", "left_elbow_joint")
    track = Track(
        times_s=np.arange(2.0), joints_rad=np.array([[0.0, 1.0], [0.0, 9.0]]), names=names
    )
    report = check(track, contact=False)
    assert {(f.kind, f.joint) for f in report.errors} >= {
        (FindingKind.VARIANT, "nose_joint"),
        (FindingKind.POSITION, "left_elbow_joint"),
    }
    assert (
        check(replace(track, names=("nose_joint", "ear_joint"))).errors[0].kind
        is FindingKind.VARIANT
    )


def test_joints_the_track_leaves_alone_are_noted() -> None:
    track = Track(times_s=np.zeros(1), joints_rad=np.ones((1, 1)), names=("left_elbow_joint",))
    (found,) = check(track, contact=False).findings
    assert (found.severity, found.kind, found.value) == (Severity.NOTE, FindingKind.VARIANT, 28.0)


def test_a_robot_nobody_knows_is_an_error() -> None:
    assert check(calm(), build="g2-99", contact=False).errors[0].kind is FindingKind.VARIANT


# ---- weight -------------------------------------------------------------------------------------


def test_too_much_in_a_stretched_hand_is_an_error_of_the_shoulder() -> None:
    stretched = posed(left_shoulder_pitch=-1.5, left_elbow=1.5)
    assert not of_kind(check(stretched, contact=False), FindingKind.TORQUE)
    report = check(stretched, payload_kg=6.0, contact=False)
    found = the(report, FindingKind.TORQUE, "left_shoulder_pitch_joint")
    assert found.severity is Severity.ERROR
    assert found.limit == 25.0
    assert found.value is not None
    assert 25.0 < found.value < 60.0
    less = the(
        check(stretched, payload_kg=4.0, contact=False),
        FindingKind.TORQUE,
        "left_shoulder_pitch_joint",
    )
    assert less.severity is Severity.WARNING


def test_holding_for_long_what_is_heavy_makes_a_motor_hot() -> None:
    stretched = posed(left_shoulder_pitch=-1.5, left_elbow=1.5)
    report = check(stretched, payload_kg=2.0, contact=False)
    found = the(report, FindingKind.THERMAL, "left_shoulder_pitch_joint")
    assert found.severity is Severity.WARNING
    assert found.limit == 10.0
    assert report.ok


def test_stronger_wrists_hold_more() -> None:
    """Machines 13 to 16 have wrists of 13.4 N.m instead of 5."""
    stretched = posed(left_shoulder_pitch=-1.5, left_elbow=1.5)
    usual = check(stretched, payload_kg=6.0, contact=False)
    found = the(usual, FindingKind.TORQUE, "left_wrist_pitch_joint")
    assert (found.severity, found.limit) == (Severity.ERROR, 5.0)
    strong = check(stretched, payload_kg=6.0, contact=False, build=G1_29.at(13))
    assert not [
        f for f in of_kind(strong, FindingKind.TORQUE) if f.joint == "left_wrist_pitch_joint"
    ]
    hot = the(strong, FindingKind.THERMAL, "left_wrist_pitch_joint")
    assert hot.limit == pytest.approx(0.4 * 13.4)


def test_two_arms_without_a_body_have_no_balance_and_no_legs_to_touch() -> None:
    pytest.importorskip("mujoco")
    bowed = posed(left_shoulder_roll=-0.2)
    arms = replace(
        bowed, joints_rad=bowed.joints_rad[:, 15:], names=G1_ARMS.names, variant=G1_ARMS.name
    )
    report = check(arms, payload_kg=6.0)
    assert "balance was not checked: there is no data for a G1" in {
        finding.message for finding in report.findings
    }
    assert not [f for f in report.findings if "hip" in f.message or "knee" in f.message]
    assert [f for f in check(bowed).findings if "hip" in f.message]


def test_legs_are_the_balance_controllers_business() -> None:
    joints = {f.joint for f in check(posed(), payload_kg=20.0, contact=False).findings}
    assert not any(name and ("hip" in name or "knee" in name) for name in joints)


@pytest.mark.parametrize("payload_kg", [-1.0, 21.0, float("nan")])
def test_a_payload_out_of_reason_is_refused(payload_kg: float) -> None:
    with pytest.raises(BadRequestError, match="0 to 20 kg"):
        check(calm(), payload_kg=payload_kg)


def test_leaning_with_full_hands_tips_the_robot_over() -> None:
    bowed = posed(
        waist_pitch=0.5, left_shoulder_pitch=-1.5, right_shoulder_pitch=-1.5,
        left_elbow=1.5, right_elbow=1.5,
    )  # fmt: skip
    found = the(check(bowed, payload_kg=6.0, contact=False), FindingKind.BALANCE)
    assert found.severity is Severity.ERROR
    assert found.value is not None
    assert found.value < -BALANCE_M
    near = the(check(bowed, contact=False), FindingKind.BALANCE)
    assert near.severity is Severity.WARNING
    assert near.value is not None
    assert -BALANCE_M <= near.value < BALANCE_M
    assert not of_kind(check(posed(), contact=False), FindingKind.BALANCE)


def test_the_distance_inside_the_feet_is_that_to_their_outline() -> None:
    body = kinematics_of(G1)
    frames = body.forward(np.zeros((1, 29)))
    corners = np.array(
        [frames.points_m(foot, corner)[:, 0] for foot in (5, 11) for corner in FOOT_CORNERS_M]
    )
    middle = corners.mean(axis=0)
    ahead = corners[:, 0].max() - middle[0]
    behind = middle[0] - corners[:, 0].min()
    assert compute_feet_margins_m(body, frames, middle[None, :])[0] == pytest.approx(
        min(ahead, behind), rel=0.01
    )
    outside = middle + np.array([0.3, 0.0, 1.0])
    assert compute_feet_margins_m(body, frames, outside[None, :])[0] == pytest.approx(
        ahead - 0.3, abs=1e-3
    )


# ---- leaning ------------------------------------------------------------------------------------


def held_forward(seconds: float = 3.0, by: float = -1.57) -> Track:
    """Return both arms that are straight and lifted forward, held there, and lowered again."""
    times_s = np.arange(round(50 * seconds) + 1) / 50.0
    lifted = np.clip(np.minimum(times_s, seconds - times_s), 0.0, 1.0)
    joints = np.repeat(REST_RAD[None, :], times_s.size, axis=0)
    for side in ("left", "right"):
        for name, angle in {"shoulder_pitch": by, "shoulder_roll": 0.0, "elbow": 1.57}.items():
            index = G1_29.names.index(f"{side}_{name}_joint")
            joints[:, index] += lifted * (angle - joints[0, index])
    return Track(times_s=times_s, joints_rad=joints, names=G1_29.names)


def test_arms_held_forward_make_a_g1_lean_with_the_moment_beside_its_limit() -> None:
    (found,) = of_kind(check(held_forward(), contact=False), FindingKind.LEANING)
    assert found.severity is Severity.WARNING
    # By hand: two arms of 3.5 kg, their weight 0.21 m before the ankles.
    assert found.value == pytest.approx(2 * 3.519 * 9.81 * 0.211, rel=0.02)
    # A third of 33.3 kg on toes that are 0.12 m before the ankles.
    assert found.limit == pytest.approx(33.34 * 9.81 * 0.12 / 3, rel=0.02)
    assert found.value is not None
    assert found.limit is not None
    assert found.margin == pytest.approx(found.limit - found.value)
    assert found.unit == "N.m"
    assert found.time_s is not None
    assert 0.9 <= found.time_s <= 2.1
    assert "forward" in found.message


def test_the_moment_of_the_arms_is_there_for_every_sample() -> None:
    track = held_forward()
    found = leaning(track)
    assert found is not None
    assert found.times_s.shape == found.moments_nm.shape == found.front_limits_nm.shape
    assert found.moments_nm[0] == pytest.approx(1.6, abs=0.2)
    assert found.moments_nm[75] > found.front_limits_nm[75] > 0 > found.back_limits_nm[75]
    assert 1.0 < found.held_s < 2.0
    loaded = leaning(track, payload_kg=1.0)
    assert loaded is not None
    assert loaded.moments_nm[75] == pytest.approx(found.moments_nm[75] + 2 * 9.81 * 0.487, rel=0.03)


def test_arms_that_pass_by_the_front_do_not_make_it_lean() -> None:
    track = held_forward(2.1)
    found = leaning(track)
    assert found is not None
    assert found.held_s > 0.5
    quick = replace(track, times_s=track.times_s / 4)
    passed = leaning(quick)
    assert passed is not None
    assert (passed.margins_nm < 0).any()
    assert passed.held_s == 0.0
    assert not of_kind(check(quick, contact=False), FindingKind.LEANING)


def test_arms_held_back_make_it_lean_back() -> None:
    (found,) = of_kind(check(held_forward(by=1.5), contact=False), FindingKind.LEANING)
    assert found.value is not None
    assert found.limit is not None
    assert found.value < found.limit < 0
    assert "back" in found.message


def test_arms_that_hang_or_bend_lean_nothing_and_a_load_makes_them() -> None:
    bent = posed(left_shoulder_pitch=-0.4, right_shoulder_pitch=-0.4)
    assert not of_kind(check(bent, contact=False), FindingKind.LEANING)
    assert of_kind(check(bent, contact=False, payload_kg=2.0), FindingKind.LEANING)


def test_only_what_stands_on_known_feet_leans() -> None:
    assert leaning(pawing()) is None
    assert not of_kind(check(held_forward(), build="g1-arms", contact=False), FindingKind.LEANING)


# ---- contact ------------------------------------------------------------------------------------


def test_a_hand_in_the_chest_is_an_error_with_its_joint_and_moment() -> None:
    pytest.importorskip("mujoco")
    track = posed(right_shoulder_pitch=0.0, right_shoulder_yaw=1.5, right_elbow=-0.3)
    report = check(track)
    assert any(
        finding.joint in {"right_wrist_yaw_joint", "right_wrist_pitch_joint"}
        and "torso_link" in finding.message
        and finding.time_s == 0.0
        for finding in report.errors
    )
    assert check(track, contact=False).ok


def test_a_hand_close_to_the_thigh_is_a_warning() -> None:
    pytest.importorskip("mujoco")
    for roll in np.arange(0.2, 0.0, -0.005):
        report = check(posed(left_shoulder_roll=float(roll)))
        if found := of_kind(report, FindingKind.CLEARANCE):
            break
    assert found[0].severity is Severity.WARNING
    assert found[0].joint is not None
    assert found[0].joint.startswith("left_wrist")
    assert found[0].value is not None
    assert 0.0 <= found[0].value < CLEARANCE_M
    assert report.ok


def test_an_elbow_close_to_the_body_is_nothing_to_say() -> None:
    pytest.importorskip("mujoco")
    track = posed(
        left_shoulder_pitch=-0.2, left_shoulder_roll=0.04, left_shoulder_yaw=-1.2, left_elbow=0.9
    )
    near = ContactModel(G1, CLEARANCE_M).find_contacts(track)
    assert ("left_elbow_link", "torso_link") in {(contact.a, contact.b) for contact in near}
    assert not of_kind(check(track), FindingKind.CLEARANCE)


def test_hands_may_meet_but_not_pass_through_each_other() -> None:
    pytest.importorskip("mujoco")
    severities = {}
    for yaw in np.arange(0.2, 0.5, 0.02):
        track = posed(
            left_shoulder_pitch=-0.7, right_shoulder_pitch=-0.7, left_shoulder_roll=0.1,
            right_shoulder_roll=-0.1, left_elbow=0.4, right_elbow=0.4,
            left_shoulder_yaw=-float(yaw), right_shoulder_yaw=float(yaw),
        )  # fmt: skip
        for finding in of_kind(check(track), FindingKind.COLLISION):
            assert finding.value is not None
            severities[finding.value] = finding.severity
    assert {value < -HANDS_MEET_M for value in severities} == {True, False}
    for value, severity in severities.items():
        assert severity is (Severity.ERROR if value < -HANDS_MEET_M else Severity.WARNING)


def test_links_that_meet_slightly_are_a_warning_and_deeper_an_error() -> None:
    pytest.importorskip("mujoco")
    severities = {}
    for roll in np.arange(0.0, -0.35, -0.05):
        for finding in of_kind(check(posed(left_shoulder_roll=float(roll))), FindingKind.COLLISION):
            assert finding.value is not None
            severities[finding.value] = finding.severity
    slight = [value for value in severities if -SLIGHT_M <= value < 0.0]
    assert slight
    assert min(severities) < -SLIGHT_M
    # Near the edge on both sides, or any number between them would pass as well.
    assert min(slight) < -SLIGHT_M + 0.002
    assert max(value for value in severities if value < -SLIGHT_M) > -SLIGHT_M - 0.002
    for value, severity in severities.items():
        assert severity is (Severity.WARNING if value in slight else Severity.ERROR)


def test_without_mujoco_the_report_says_what_was_not_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    report = check(calm())
    (found,) = report.findings
    assert (found.severity, found.kind) == (Severity.NOTE, FindingKind.COLLISION)
    assert "rote-robot[physics]" in found.remedy
    assert report.ok


# ---- an A1 --------------------------------------------------------------------------------------


def pawing(seconds: float = 2.0, by_rad: float = 0.3) -> Track:
    """Return an A1 that stands and lifts a paw."""
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    joints = np.repeat(np.array(A1_STAND_RAD)[None, :], times_s.size, axis=0)
    joints[:, 1] += by_rad * np.sin(np.pi * times_s / seconds) ** 2
    return Track(times_s=times_s, joints_rad=joints, names=A1.names, variant=A1.name)


def test_an_a1s_legs_are_judged_by_its_own_joints() -> None:
    calm_legs = check(pawing())
    assert calm_legs.ok
    (note,) = calm_legs.findings
    assert note.severity is Severity.NOTE
    assert "A1" in note.message
    far = check(pawing(by_rad=4.0))
    (position,) = [finding for finding in far.errors if finding.kind is FindingKind.POSITION]
    assert position.joint == "FR_thigh_joint"
    assert position.limit == pytest.approx(4.19 - 0.087)
    fast = check(pawing(seconds=0.1, by_rad=1.0))
    assert {finding.kind for finding in fast.errors} == {FindingKind.VELOCITY}


def test_a_hole_that_no_a1_plays_across_is_an_error_of_the_check_too() -> None:
    track = pawing()
    middle_s = track.duration_s / 2
    keep = np.abs(track.times_s - middle_s) > 0.15
    holed = replace(track, times_s=track.times_s[keep], joints_rad=track.joints_rad[keep])
    (gap,) = [finding for finding in check(holed).errors if finding.kind is FindingKind.GAP]
    assert gap.value is not None
    assert A1.max_gap_s is not None
    assert A1.max_gap_s < gap.value < 0.35


def test_an_a1s_first_pose_is_compared_with_where_it_lies() -> None:
    lying = (0.0, 1.2, -2.6) * 4
    (jump,) = of_kind(check(pawing(), start_pose=lying), FindingKind.JUMP)
    assert jump.severity is Severity.WARNING
    assert jump.value == pytest.approx(1.3)
    with pytest.raises(BadRequestError, match="12 joints"):
        check(pawing(), start_pose=REST_RAD)


def test_the_robots_are_not_mistaken_for_each_other() -> None:
    assert {f.kind for f in check(pawing(), build="g1-29", contact=False).errors} == {
        FindingKind.VARIANT
    }
    assert {f.kind for f in check(calm(), build="a1").errors} == {FindingKind.VARIANT}
    for track, variant in ((pawing(), "g1-29"), (calm(), "a1")):
        (found,) = check(track, build=variant, contact=False).errors
        assert "another robot" in found.message


@given(
    place=st.integers(0, 11),
    begin=st.floats(-0.2, 0.2),
    end=st.floats(-0.2, 0.2),
    upper=st.booleans(),
)
def test_what_the_check_lets_through_an_a1_plays_and_nothing_else(
    place: int, begin: float, end: float, upper: bool
) -> None:
    joint = A1.joints[place]
    stop = joint.upper_rad if upper else joint.lower_rad
    joints = np.repeat(np.array(A1_STAND_RAD)[None, :], 101, axis=0)
    joints[:, place] = stop + np.linspace(begin, end, 101)
    track = replace(pawing(1.0), joints_rad=joints)
    try:
        check_track(track, Safety())
    except UnsafeMotionError:
        assert not check(track).ok
    else:
        assert check(track).ok


def test_what_takes_longer_than_can_be_played_is_an_error() -> None:
    track = calm()
    assert of_kind(check(stretched(track, 180.0), contact=False), FindingKind.DURATION) == []
    found = the(check(stretched(track, 181.0), contact=False), FindingKind.DURATION)
    assert found.severity is Severity.ERROR
    assert found.value == pytest.approx(181.0)


def test_the_remedy_for_a_missing_joint_is_a_command_that_does_it() -> None:
    moved = changed(calm(), "left_wrist_yaw_joint", slice(100, 150), 0.2 * np.ones(50))
    for track, forced in ((calm(), False), (moved, True)):
        found = of_kind(check(track, build=G1_23.name, contact=False), FindingKind.VARIANT)
        told = [worded(finding.remedy) for finding in found]
        assert any("--force" in remedy for remedy in told) is forced
        assert all("rote motion to-build, for g1-23" in remedy for remedy in told)
        to_build(track, "g1-23", force=forced)


# ---- the report ---------------------------------------------------------------------------------


def test_a_report_has_the_worst_first_and_each_kind_once_per_joint() -> None:
    track = changed(calm(), "left_elbow_joint", slice(50, None), 0.3)
    track = changed(track, "left_elbow_joint", slice(90, None), 0.2)
    track = changed(track, "right_elbow_joint", slice(90, None), 3.0)
    report = check(track, start_pose=REST_RAD + 0.1, contact=False)
    order = [list(Severity).index(finding.severity) for finding in report.findings]
    assert order == sorted(order)
    named = [(finding.kind, finding.joint) for finding in report.findings]
    assert len(named) == len(set(named))
    assert the(report, FindingKind.VELOCITY, "left_elbow_joint").time_s == track.times_s[49]


def test_errors_forbid_whatever_is_forced_and_warnings_want_force() -> None:
    fast = check(changed(calm(), "left_elbow_joint", 70, 4.0), contact=False)
    for force in (False, True):
        with pytest.raises(UnsafeMotionError, match="left_elbow_joint") as caught:
            fast.permit(force=force)
        assert "--force" not in worded(caught.value.remedy)
    doubtful = check(calm(), start_pose=REST_RAD + 0.1, contact=False)
    assert doubtful.ok
    assert doubtful.warnings
    with pytest.raises(WarnedMotionError) as caught:
        doubtful.permit()
    assert caught.value.reason == doubtful.warnings[0].message
    assert caught.value.remedy.endswith("force=True.")
    assert worded(caught.value.remedy).endswith("--force.")
    doubtful.permit(force=True)
    check(calm(), contact=False).permit()


def test_a_finding_about_no_joint_and_no_moment_forbids_too() -> None:
    stranger = check(replace(calm(), variant="g1-99"), contact=False)
    with pytest.raises(UnsafeMotionError) as caught:
        stranger.permit()
    assert (caught.value.joint, caught.value.time_s) == ("the motion", 0.0)


def test_parts_of_a_check_say_what_the_whole_says_of_them() -> None:
    pytest.importorskip("mujoco")
    track = posed(left_shoulder_roll=-0.2)
    contact = check_contact(track)
    assert contact.findings
    assert set(contact.findings) <= set(check(track).findings)
    times_s = np.array([0.0, 0.01, 0.02, 0.9, 0.91])
    (gap,) = check_gaps(times_s).findings
    assert (gap.kind, gap.severity, gap.time_s) == (FindingKind.GAP, Severity.ERROR, 0.02)
    assert check_gaps(np.arange(9) / 100).findings == ()


def test_joints_alone_are_said_to_be_what_the_whole_check_says_they_are() -> None:
    kinds = (FindingKind.POSITION, FindingKind.VELOCITY, FindingKind.ACCELERATION)
    for track in (changed(calm(), "left_elbow_joint", 70, 4.0), posed(left_elbow=9.0)):
        whole = check(track, contact=False).findings
        assert not check_joints(track).ok
        assert check_joints(track).findings == tuple(each for each in whole if each.kind in kinds)
    assert check_joints(replace(calm(), variant="a1")).findings == (), "an A1 has no such joints"


@pytest.mark.parametrize(
    ("steps_s", "severities"),
    [
        ([0.25, 0.25, 0.25], []),
        ([0.26, 0.26, 0.26], [Severity.ERROR]),
        ([0.01, 0.01, 0.2], [Severity.WARNING]),
        ([0.01, 0.01, 0.26], [Severity.ERROR]),
        ([0.2, 0.2, 0.26], [Severity.ERROR]),
    ],
)
def test_who_knows_the_longest_hole_that_may_be_says_so(
    steps_s: list[float], severities: list[Severity]
) -> None:
    report = check_gaps(np.cumsum([0.0, *steps_s]), most_s=0.25)
    assert [finding.severity for finding in report.findings] == severities


def test_a_report_is_json_as_the_command_line_promises() -> None:
    report = check(changed(calm(), "left_elbow_joint", 70, 4.0), contact=False)
    told = json.loads(json.dumps(report.as_json()))
    assert told["ok"] is False
    assert {"severity", "kind", "joint", "time_s", "value", "limit", "margin", "remedy"} <= set(
        told["findings"][0]
    )
    assert all(finding["remedy"] for finding in told["findings"])
    assert ("error", "position", "left_elbow_joint") in {
        (f["severity"], f["kind"], f["joint"]) for f in told["findings"]
    }


def speed_steps(track: Track) -> list[Finding]:
    return [f for f in check_joints(track).findings if "changes its speed" in str(f.message)]


def test_a_step_of_the_speed_is_reported_though_its_acceleration_is_allowed() -> None:
    times_s = np.arange(201) / 100
    angle_rad = 0.63 * np.minimum(times_s, 1.0)  # it stops within one sample
    track = Track(times_s=times_s, joints_rad=angle_rad[:, None], names=("left_elbow_joint",))
    (step,) = speed_steps(track)
    assert step.time_s == pytest.approx(1.0)
    assert step.value == pytest.approx(0.63, abs=0.01)
    assert step.severity is Severity.NOTE


def test_a_step_of_the_speed_is_reported_at_a_little_less_than_50_samples_a_second() -> None:
    times_s = np.arange(101) / 49.8
    angle_rad = 0.63 * np.minimum(times_s, 1.0)
    track = Track(times_s=times_s, joints_rad=angle_rad[:, None], names=("left_elbow_joint",))
    (step,) = speed_steps(track)
    assert step.time_s == pytest.approx(1.0, abs=0.03)
    quick_rad = 0.6 * np.sin(2 * np.pi * 1.5 * times_s)
    assert speed_steps(replace(track, joints_rad=quick_rad[:, None])) == []


def test_a_quick_or_noisy_motion_has_no_step_of_the_speed() -> None:
    times_s = np.arange(401) / 100
    quick = 0.6 * np.sin(2 * np.pi * 1.5 * times_s)
    noise = 0.001 * np.random.default_rng(3).standard_normal(times_s.size)
    for angle_rad in (quick, quick + noise):
        track = Track(times_s=times_s, joints_rad=angle_rad[:, None], names=("left_elbow_joint",))
        assert speed_steps(track) == []
