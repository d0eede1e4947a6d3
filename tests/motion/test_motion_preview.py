"""A track on a body with weight and motors: what follows, what gives way, what falls."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from rote.errors import BadRequestError, MissingExtraError
from rote.findings import FindingKind, Severity
from rote.model.g1 import G1, G1_23, G1_29, G1_ARMS, G1_JOINTS, G1_REST_RAD
from rote.motion.body.kinematics import kinematics_of
from rote.motion.body.preview import Base, JointPreview, Preview, preview
from rote.motion.body.preview_body import (
    FLOOR,
    choose_gains,
    compile_body,
    compute_inertia_kg_m2,
    compute_standing_height_m,
)
from rote.motion.track import Mark, Track
from rote.sim.hands import SCRIPTS, ScriptedHand

mujoco = pytest.importorskip("mujoco")

BODY = kinematics_of(G1)
LINKS = BODY.links
INDEX = {joint.name: joint.index for joint in G1_JOINTS}
REST = np.array(G1_REST_RAD)
STRETCHED = {
    "left_shoulder_pitch": -1.57, "right_shoulder_pitch": -1.57, "left_elbow": 1.4,
    "right_elbow": 1.4,
}  # fmt: skip
THROUGH_THE_CHEST = {"right_shoulder_pitch": 0.0, "right_shoulder_yaw": 1.5, "right_elbow": -0.3}


def through(*poses: dict[str, float], every_s: float = 1.0) -> Track:
    """Return a way from pose to pose; each is at ease but for the joints it names."""
    rows = np.repeat(REST[None, :], len(poses), axis=0)
    for row, pose in zip(rows, poses, strict=True):
        for name, value in pose.items():
            row[INDEX[f"{name}_joint"]] = value
    times_s = np.linspace(0.0, every_s * (len(poses) - 1), len(poses))
    return Track(times_s=times_s, joints_rad=rows, names=G1_29.names)


def performed(name: str) -> Track:
    hand = ScriptedHand(name, 5.0)
    times_s = np.arange(0.0, 5.0, 0.01)
    poses = np.array([hand.pose(time_s) for time_s in times_s.tolist()])
    return Track(times_s=times_s, joints_rad=poses, names=G1_29.names)


def of(result: Preview, joint: str) -> JointPreview:
    return next(found for found in result.joints if found.joint == f"{joint}_joint")


def kinds(result: Preview, severity: Severity) -> set[FindingKind]:
    return {found.kind for found in result.findings if found.severity is severity}


# ---- what follows -------------------------------------------------------------------------------


@pytest.mark.parametrize("base", ["fixed", "free"])
def test_a_held_pose_sags_little_and_means_nothing_bad(base: Base) -> None:
    result = preview(through(STRETCHED), base=base)
    assert 0.001 < result.worst.max_error_rad < 0.03
    assert result.findings == ()
    assert result.ok
    assert result.duration_s == 0.0
    assert len(result.achieved) == 1


@pytest.mark.each_once("name", "base")
@pytest.mark.parametrize("name", sorted(SCRIPTS))
@pytest.mark.parametrize("base", ["fixed", "free"])
def test_what_the_scripted_hands_taught_is_followed_and_the_robot_stands(
    name: str, base: Base
) -> None:
    result = preview(performed(name), base=base)
    assert result.worst.max_error_rad < 0.05
    assert all(joint.saturated_share == 0.0 for joint in result.joints)
    assert result.ok
    assert result.upright is (True if base == "free" else None)
    assert result.most_tilt_rad < 0.05
    met = {(touch.a, touch.b) for touch in result.contacts}
    assert met == ({("left_wrist_yaw_link", "right_wrist_yaw_link")} if name == "clap" else set())


def test_hands_that_meet_in_a_clap_are_a_warning() -> None:
    result = preview(performed("clap"))
    assert kinds(result, Severity.WARNING) == {FindingKind.COLLISION}
    assert result.ok


def test_the_same_track_gives_the_same_answer() -> None:
    track = through({}, STRETCHED, {})
    first, second = preview(track, base="free"), preview(track, base="free")
    assert first.as_json() == second.as_json()
    assert first.achieved.joints_rad.tolist() == second.achieved.joints_rad.tolist()


def test_the_torque_of_a_held_arm_is_that_of_its_weight() -> None:
    pose = through(STRETCHED)
    bare, loaded = (preview(pose, payload_kg=kg) for kg in (0.0, 1.0))
    for result, kg in ((bare, 0.0), (loaded, 1.0)):
        for joint in ("left_shoulder_pitch", "right_elbow", "left_wrist_pitch"):
            weight = BODY.gravity_torque_nm(BODY.forward(pose.joints_rad), BODY.link_masses(kg))[
                0, INDEX[f"{joint}_joint"]
            ]
            assert of(result, joint).peak_torque_nm == pytest.approx(abs(weight), rel=0.05)
    sags = [of(result, "left_shoulder_pitch").max_error_rad for result in (bare, loaded)]
    assert sags[1] > 2 * sags[0], "the controller does not know of the payload"


def test_what_the_body_did_is_a_track_beside_the_one_asked_for() -> None:
    track = replace(performed("wave"), marks=(Mark(1.0, "up"),), source="teach wave")
    achieved = preview(track).achieved
    assert achieved.names == track.names
    assert achieved.rate_hz == pytest.approx(100.0)
    assert (achieved.marks, achieved.source) == (track.marks, "physics preview")
    assert achieved.times_s[[0, -1]] == pytest.approx(track.times_s[[0, -1]], abs=0.01)
    away = np.abs(achieved.joints_rad - track.joints_rad[: len(achieved)])
    assert 0.005 < away.max() < 0.05


# ---- what does not ------------------------------------------------------------------------------


def test_an_impossible_motion_saturates_the_motors_and_is_reported() -> None:
    up = {"right_shoulder_pitch": -2.5, "right_elbow": -0.5}
    result = preview(through(*[{}, up] * 10, every_s=0.08))
    shoulder = of(result, "right_shoulder_pitch")
    assert shoulder.peak_torque_nm == pytest.approx(25.0)
    assert shoulder.saturated_share > 0.3
    assert shoulder.max_error_rad > 0.5
    assert not result.ok
    found = {
        finding.kind: finding
        for finding in result.findings
        if finding.joint == "right_shoulder_pitch_joint"
    }
    assert found[FindingKind.TORQUE].severity is Severity.ERROR
    assert found[FindingKind.TORQUE].limit == 25.0
    assert found[FindingKind.TORQUE].time_s == shoulder.saturated_at_s
    assert found[FindingKind.POSITION].value == shoulder.max_error_rad
    assert found[FindingKind.POSITION].limit == 0.5
    assert found[FindingKind.POSITION].margin == pytest.approx(0.5 - shoulder.max_error_rad)
    assert [f.severity for f in result.findings] == sorted(
        (f.severity for f in result.findings), key=list(Severity).index
    )


def test_a_motion_a_little_too_fast_is_a_warning_and_slower_it_is_none() -> None:
    track = performed("drum")
    brisk = preview(track, speed=2.2)
    assert kinds(brisk, Severity.WARNING) == {FindingKind.TORQUE}
    assert brisk.ok
    assert brisk.duration_s == pytest.approx(track.duration_s / 2.2)
    loaded = preview(through(STRETCHED, STRETCHED), payload_kg=3.0)
    assert kinds(loaded, Severity.WARNING) >= {FindingKind.POSITION}
    slow = preview(track, speed=0.5)
    assert slow.findings == ()
    assert slow.worst.max_error_rad < brisk.worst.max_error_rad / 3


def test_times_are_on_the_tracks_clock_whatever_the_speed() -> None:
    track = through({}, {}, THROUGH_THE_CHEST, {}, {})
    late = replace(track, times_s=track.times_s + 100.0)
    (first, second) = (preview(late, speed=speed).contacts[0].first_s for speed in (1.0, 2.0))
    assert 101.2 < first < 102.0
    assert second == pytest.approx(first, abs=0.1)


def test_an_arm_led_through_the_chest_runs_against_it() -> None:
    result = preview(through({}, THROUGH_THE_CHEST, THROUGH_THE_CHEST))
    pairs = {(touch.a, touch.b): touch for touch in result.contacts}
    arm = [touch for (a, b), touch in pairs.items() if b == "torso_link" and a.startswith("right")]
    assert arm
    assert all(0.0 < touch.depth_m < 0.05 for touch in result.contacts)
    assert [t.first_s for t in result.contacts] == sorted(t.first_s for t in result.contacts)
    found = next(f for f in result.findings if f.kind is FindingKind.COLLISION)
    assert found.severity is Severity.ERROR
    assert found.joint is not None
    assert found.joint.startswith("right_")
    assert not result.ok
    assert result.worst.max_error_rad > 0.1, "the chest is in the way"


def test_a_joint_asked_beyond_its_reach_stops_there_and_the_rest_is_error() -> None:
    track = through({"left_elbow": 100.0})
    result = preview(track)
    elbow = of(result, "left_elbow")
    assert elbow.max_error_rad == pytest.approx(100.0 - 2.09, abs=0.1)
    assert result.achieved.joints_rad[0, INDEX["left_elbow_joint"]] < 2.2


# ---- standing -----------------------------------------------------------------------------------


def test_a_robot_that_holds_too_much_before_it_falls_over() -> None:
    track = through({}, {}, STRETCHED, STRETCHED)
    result = preview(track, base="free", payload_kg=6.0)
    assert result.upright is False
    assert result.most_tilt_rad > 0.6
    assert result.fell_at_s is not None
    assert 1.0 < result.fell_at_s <= 3.0
    (found,) = (finding for finding in result.findings if finding.kind is FindingKind.BALANCE)
    assert (found.severity, found.time_s) == (Severity.WARNING, result.fell_at_s)
    assert not result.ok
    assert not [f for f in result.findings if f.joint and ("ankle" in f.joint or "hip" in f.joint)]
    assert result.achieved.times_s[-1] <= result.fell_at_s
    assert preview(track, payload_kg=6.0).fell_at_s is None, "on a gantry it cannot fall"


def test_a_robot_can_fall_before_the_motion_begins() -> None:
    result = preview(through(STRETCHED, STRETCHED), base="free", payload_kg=20.0)
    assert result.fell_at_s == 0.0
    assert len(result.achieved) == 1


def test_on_its_own_feet_the_legs_stand_whatever_the_track_says() -> None:
    kneeling = {"left_knee": 2.0, "right_knee": 2.0}
    result = preview(through(kneeling, kneeling), base="free")
    assert result.upright
    assert of(result, "left_knee").max_error_rad < 0.02
    assert result.achieved.joints_rad[:, 3] == pytest.approx(REST[3], abs=0.02)
    assert preview(through(kneeling)).achieved.joints_rad[0, 3] == pytest.approx(2.0, abs=0.02)


# ---- what is asked and answered -----------------------------------------------------------------


def test_json_holds_all_but_the_track_and_can_be_written() -> None:
    result = preview(performed("clap"), base="free", payload_kg=0.1)
    document = json.loads(json.dumps(result.as_json()))
    assert document["ok"] is True
    assert (document["base"], document["payload_kg"], document["upright"]) == ("free", 0.1, True)
    assert len(document["joints"]) == 29
    assert document["joints"][0]["joint"] == "left_hip_pitch_joint"
    assert document["contacts"][0]["first_s"] == result.contacts[0].first_s
    assert document["findings"] == [finding.as_json() for finding in result.findings]
    assert document["real_time_factor"] is None
    assert "achieved" not in document


def test_the_clock_is_asked_only_how_long_it_took() -> None:
    readings = iter([10.0, 10.5])
    result = preview(through({}, {}, {}), clock=lambda: next(readings))
    assert result.real_time_factor == pytest.approx(4.0)


def test_joints_are_those_of_the_robot_and_of_the_track() -> None:
    names = ("left_elbow_joint", "left_wrist_yaw_joint", "tail")
    track = Track(
        times_s=np.arange(2.0), joints_rad=np.zeros((2, 3)), names=names, variant=G1_23.name
    )
    result = preview(track)
    assert {joint.joint for joint in result.joints} == {*G1_23.names, "left_wrist_yaw_joint"}
    assert result.achieved.names == names[:2]
    assert len(preview(replace(track, variant="g2")).joints) == 29


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"base": "floating"}, "fixed or free"),
        ({"speed": 0.0}, "0.05 to 10"),
        ({"speed": float("nan")}, "0.05 to 10"),
        ({"payload_kg": -1.0}, "0 to 20 kg"),
        ({"payload_kg": float("inf")}, "0 to 20 kg"),
    ],
)
def test_what_cannot_be_run_is_refused(asked: dict[str, object], words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        preview(through({}, {}), **asked)  # type: ignore[arg-type]


def test_a_track_without_joints_too_long_or_of_another_robot_is_refused() -> None:
    empty = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 0)), names=())
    foreign = Track(times_s=np.zeros(1), joints_rad=np.zeros((1, 1)), names=("tail",))
    for track, words in ((empty, "1 samples"), (foreign, "any of the track's joints")):
        with pytest.raises(BadRequestError, match=words):
            preview(track)
    arms = Track(
        times_s=np.zeros(1),
        joints_rad=np.zeros((1, 14)),
        names=G1_ARMS.names,
        variant=G1_ARMS.name,
    )
    with pytest.raises(BadRequestError, match="g1-arms has no feet to stand on"):
        preview(arms, base="free")
    with pytest.raises(BadRequestError, match="takes 700 s") as caught:
        preview(through({}, {}, every_s=70.0), speed=0.1)
    assert "Trim" in caught.value.remedy


def test_without_mujoco_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match="physics preview") as caught:
        preview(through({}))
    assert "rote-robot[physics]" in caught.value.remedy


# ---- the body -----------------------------------------------------------------------------------


def test_the_body_weighs_what_the_robot_does_and_carries_its_payload() -> None:
    bare, loaded = (compile_body(G1_29, G1, REST, free=False, payload_kg=kg) for kg in (0.0, 2.0))
    assert bare.model.body_mass.sum() == pytest.approx(33.34, abs=0.01)
    assert loaded.model.body_mass.sum() - bare.model.body_mass.sum() == pytest.approx(4.0)
    assert bare.links[0] == FLOOR
    assert set(bare.links[1:]) == {"pelvis", *LINKS}


def test_the_motors_give_no_more_than_they_can() -> None:
    body = compile_body(G1_29, G1, REST, free=True, payload_kg=0.0)
    ranges = body.model.actuator_forcerange
    assert ranges[:, 1].tolist() == [joint.effort_nm for joint in G1_JOINTS]
    body.data.ctrl[:] = REST + 50.0
    mujoco.mj_step(body.model, body.data)
    assert body.data.actuator_force == pytest.approx(ranges[:, 1])


def test_a_free_robot_begins_with_its_soles_on_the_floor() -> None:
    body = compile_body(G1_29, G1, REST, free=True, payload_kg=0.0)
    mujoco.mj_forward(body.model, body.data)
    touching = {body.links[body.link_of_shape[geom]] for geom in body.data.contact.geom.ravel()}
    assert touching <= {FLOOR, "left_ankle_roll_link", "right_ankle_roll_link"}
    assert np.abs(body.data.contact.dist).max(initial=0.0) < 1e-6
    assert body.data.qpos[2] == pytest.approx(compute_standing_height_m(G1, REST))
    assert 0.7 < compute_standing_height_m(G1, REST) < 0.8


def test_the_inertia_is_of_the_size_the_manufacturer_states() -> None:
    """About the links' own axes: of the torso with its head, a shin and an upper arm."""
    stated = {
        "torso_link": (0.117, 0.105, 0.028),
        "left_knee_link": (0.0113, 0.0113, 0.0015),
        "left_shoulder_yaw_link": (0.0010, 0.0011, 0.0004),
    }
    for link, wanted in stated.items():
        found = compute_inertia_kg_m2(
            G1, link, float(BODY.link_masses().masses_kg[LINKS.index(link)])
        )
        assert found == pytest.approx(np.array(wanted), rel=0.35)


def test_legs_are_stiff_only_where_they_carry() -> None:
    hanging, standing = choose_gains(G1, free=False), choose_gains(G1, free=True)
    assert (standing.stiffness[:12] > 3 * hanging.stiffness[:12]).all()
    assert standing.stiffness[12:].tolist() == hanging.stiffness[12:].tolist()
