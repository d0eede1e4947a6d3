"""One simulated robot for every build: taught, played, stopped and streamed to, by its table alone.

Builds that are added to the registry are tested here without a change; a robot of a third party is
made in this file, and no other file knows it.
"""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest

from rote import messages as m
from rote.errors import BadRequestError
from rote.messages import Code, Phase
from rote.model import registry
from rote.model.family import (
    MOVED_RAD,
    BodyFacts,
    Build,
    Family,
    Joint,
    StreamFacts,
    Vector,
    X,
    Y,
    Z,
)
from rote.model.g1 import G1, G1_23, G1_27, G1_29, G1_ARMS, G1_JOINTS, Mode
from rote.motion.track import Array
from rote.sim.arms import GRAVITY_M_S2, Arms
from rote.sim.body import STEP_S, SimBody
from rote.sim.columns import Columns
from rote.sim.hands import SCRIPTS, ScriptedHand
from rote.sim.health import parse_fault
from rote.sim.presets import PRESETS, action_from_script, add_factory_actions, motion_of
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.services.lowstate import encode_lowstate

WHO = "a client"


# ---- a robot of a third party -------------------------------------------------------------------


def _leg(index: int, name: str, axis: Vector, parent: str = "plate") -> Joint:
    return Joint(
        index=index,
        name=name,
        parent=parent,
        axis=axis,
        lower_rad=-0.4,
        upper_rad=1.2,
        velocity_rad_s=6.0,
        effort_nm=0.0,
        origin_m=(0.1, 0.0, 0.0),
        mass_kg=0.3,
        com_m=(0.0, 0.0, -0.1),
        slot=3 + 2 * index,
        part="leg",
    )


_LEGS = (_leg(0, "first", X), _leg(1, "second", Y), _leg(2, "third", Z, "second_link"))
TRIPOD_BUILD = Build(
    name="tripod-3",
    family="tripod",
    joints=_LEGS,
    taught=("third", "first"),
    streamed=("first", "third"),
    rest={"first": -0.4, "second": 0.5},
    stream=StreamFacts(),
)
TRIPOD = Family(
    name="tripod",
    title="Tripod of a third party",
    joints=_LEGS,
    builds=(TRIPOD_BUILD,),
    body=BodyFacts(base="plate"),
)
BUILDS = [*(build for family in registry.families() for build in family.builds), TRIPOD_BUILD]
STREAMED = [build for build in BUILDS if build.stream is not None]


@pytest.fixture(params=BUILDS, ids=lambda build: build.name)
def build(request: pytest.FixtureRequest) -> Build:
    chosen: Build = request.param
    return chosen


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store(":memory:")) as store:
        yield store


def tell(world: World, command: m.Command) -> None:
    reply = world.obey(WHO, command)
    assert reply == m.Status(), [notice.message for notice in world.notices][-3:]


def taught(world: World, name: str = "mine", script: str = "wave") -> list[Array]:
    """Teach an action by a scripted hand; returns what the joints did, by column."""
    tell(world, m.EnterTeaching())
    tell(world, m.Record(on=True))
    tell(world, m.MoveByHand(script, 3000))
    seen = []
    for _ in range(155):
        world.advance(0.02)
        seen.append(world.body.joints_rad.copy())
    tell(world, m.Record(on=False))
    tell(world, m.ExitTeaching())
    tell(world, m.SaveAction(name=name, created_s=0, duration_ms=3100))
    world.advance(4.0)
    return seen


# ---- every build --------------------------------------------------------------------------------


def test_a_robot_has_the_joints_of_its_build_and_stands_ready(build: Build, store: Store) -> None:
    world = World(store, build=build)
    state = world.state()
    assert world.build is build
    assert len(state.joints_rad) == len(state.velocities_rad_s) == len(build.joints)
    assert len(state.temperatures_c) == len(build.joints)
    assert state.joints_rad == pytest.approx(build.rest_rad)
    assert world.machine.balanced
    world.advance(1.0)
    assert world.body.setpoint_rad == pytest.approx(build.rest_rad)


@pytest.mark.each_once("build", "script")
@pytest.mark.parametrize("script", SCRIPTS)
def test_an_action_is_taught_by_hand_and_played_as_it_was_shown(
    build: Build, store: Store, script: str
) -> None:
    world = World(store, build=build)
    shown = np.array(taught(world, script=script))
    columns = list(build.taught_columns)
    others = [column for column in range(len(build.joints)) if column not in columns]
    assert np.ptp(shown[:, columns], axis=0).max() > MOVED_RAD, "the hand moved something"
    assert np.ptp(shown[:, others], axis=0).max(initial=0.0) < 0.01, "and nothing that holds"
    tell(world, m.PlayAction(action=1))
    played = []
    while world.phase is not Phase.NONE:
        if world.phase is Phase.PLAYING:
            played.append(world.body.joints_rad.copy())
        world.advance(0.02)
    assert world.time_s < 60.0
    for column in columns:
        assert np.ptp(np.array(played)[:, column]) == pytest.approx(
            np.ptp(shown[:, column]), abs=0.1
        )
    assert world.body.setpoint_rad == pytest.approx(build.rest_rad)
    assert not world.stopped_early


def test_a_stop_brings_every_robot_softly_home(build: Build, store: Store) -> None:
    world = World(store, build=build)
    taught(world)
    tell(world, m.PlayAction(action=1, loop=True))
    world.advance(2.0)
    tell(world, m.StopMotion())
    soft_rad_s, before = world.family.soft_rad_s, world.body.setpoint_rad
    world.advance(0.2)  # it brakes
    for _ in range(3000):
        if world.phase is Phase.NONE:
            break
        before = world.body.setpoint_rad
        world.advance(STEP_S)
        moved = np.abs(world.body.setpoint_rad - before).max()
        assert moved <= soft_rad_s * STEP_S + 1e-9
    assert world.phase is Phase.NONE
    assert world.body.setpoint_rad == pytest.approx(build.rest_rad)


def stream(world: World, offset_rad: float, seconds: float = 1.0) -> None:
    """Stream the rest pose with the first taught joint away from it, and end the stream."""
    build = world.build
    pose = [build.rest.get(name, 0.0) for name in build.taught]
    pose[0] += offset_rad
    weights = (*np.linspace(0.02, 1.0, 50), *[1.0] * round(seconds * 100))
    for number, weight in enumerate(weights, start=1):
        tell(world, m.StreamPose(number, float(weight), tuple(pose)))
        world.advance(0.01)


@pytest.mark.parametrize("build", STREAMED, ids=lambda build: build.name)
def test_a_stream_moves_the_joint_that_it_names_and_no_other(build: Build, store: Store) -> None:
    world = World(store, build=build)
    joint = build.taught_joints[0]
    column = build.taught_columns[0]
    room_rad = joint.upper_rad - build.rest_rad[column]
    offset_rad = min(0.2, 0.5 * room_rad)
    tell(world, m.BeginStream())
    stream(world, offset_rad)
    moved = world.body.setpoint_rad - np.array(build.rest_rad)
    assert moved[column] == pytest.approx(offset_rad, abs=0.01)
    moved[column] = 0.0
    assert np.abs(moved).max() < 1e-6


@pytest.mark.parametrize("build", STREAMED, ids=lambda build: build.name)
def test_a_pose_for_another_number_of_joints_is_refused(build: Build, store: Store) -> None:
    world = World(store, build=build)
    tell(world, m.BeginStream())
    pose = m.StreamPose(1, 0.1, (0.0,) * (len(build.taught) + 1))
    assert world.obey(WHO, pose) == m.Status(Code.UNSAFE)


def test_a_robot_without_a_stream_refuses_one_and_says_why(store: Store) -> None:
    mute = replace(TRIPOD_BUILD, streamed=(), stream=None, no_stream="nobody has tried it")
    world = World(store, build=mute)
    assert world.obey(WHO, m.BeginStream()) == m.Status(Code.UNKNOWN_COMMAND)
    assert "nobody has tried it" in world.notices[-1].message


def test_a_state_has_the_joints_at_their_slots_and_zeros_elsewhere(
    build: Build, store: Store
) -> None:
    world = World(store, build=build)
    world.body.joints_rad[:] = np.linspace(0.1, 0.3, len(build.joints))
    state = world.state()
    motors = encode_lowstate(state, build=build, slots=world.firmware.slots)["motor_state"]
    assert len(motors) == 35
    assert [motors[slot]["q"] for slot in build.slots] == list(state.joints_rad)
    assert {motors[slot]["q"] for slot in range(35) if slot not in build.slots} <= {0.0}


def test_factory_actions_can_be_played_by_every_build(build: Build, store: Store) -> None:
    add_factory_actions(store, build)
    world = World(store, build=build)
    for number in (1, 2, 3, 4):
        tell(world, m.PlayAction(action=number))
        world.advance(1.0)
        tell(world, m.StopMotion())
        for _ in range(40):
            if world.phase is Phase.NONE:
                break
            world.advance(0.1)


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_scripted_hand_stays_within_the_joints_of_every_build(build: Build, script: str) -> None:
    columns = Columns(build)
    joints = action_from_script("it", script, 6.0, build).joints_rad
    assert joints is not None
    assert ((joints >= columns.lower_rad - 1e-12) & (joints <= columns.upper_rad + 1e-12)).all()
    hand = ScriptedHand(script, 6.0, build)
    grip = hand.grip(1.0)
    assert grip is not None
    assert np.flatnonzero(~np.isnan(grip)).tolist() == sorted(build.taught_columns)


def test_all_joints_give_way_without_a_controller_where_the_family_can_be_damped(
    build: Build, store: Store
) -> None:
    world = World(store, build=build)
    world.drive("")
    damp = world.family.modes.damp
    assert world.machine.mode == (world.family.modes.standing if damp is None else damp)
    assert bool(world.body.soft) is (damp is not None)


# ---- other builds of a G1 -----------------------------------------------------------------------


@pytest.mark.parametrize("small", [G1_27, G1_23, G1_ARMS], ids=lambda build: build.name)
def test_a_smaller_g1_waves_as_the_whole_one_does(small: Build) -> None:
    whole, same = (
        action_from_script("it", "wave", 4.0, G1_29),
        action_from_script("it", "wave", 4.0, small),
    )
    assert whole.joints_rad is not None
    assert same.joints_rad is not None
    for column, name in enumerate(small.names):
        there = whole.joints_rad[:, G1_29.names.index(name)]
        np.testing.assert_array_equal(same.joints_rad[:, column], there)


def potential_energy(build: Build, pose: Array) -> float:
    """Return the energy of a G1's links and hands where missing joints stand at 0."""
    positions = dict(zip(build.names, pose.tolist(), strict=True))
    frames: dict[str, tuple[Array, Array]] = {"pelvis": (np.zeros(3), np.eye(3))}
    energy = 0.0
    for joint in G1_JOINTS:
        place, frame = frames[joint.parent]
        place = place + frame @ np.array(joint.origin_m)
        for axis, angle in zip((Z, Y, X), reversed(joint.origin_rpy_rad), strict=True):
            frame = frame @ turn(axis, angle)
        frame = frame @ turn(joint.axis, positions.get(joint.name, 0.0))
        frames[joint.link] = (place, frame)
    for mass in G1.masses(build):
        place, frame = frames[mass.link]
        energy += mass.mass_kg * GRAVITY_M_S2 * float((place + frame @ np.array(mass.com_m))[2])
    return energy


def turn(axis: Vector, angle: float) -> Array:
    x, y, z = axis
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    turned: Array = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
    return turned


_MISSING = ("wrist_pitch_joint", "yaw_joint")
NO_HANDS = replace(
    G1_27,
    name="g1-short",
    joints=tuple(j for j in G1_27.joints if not j.name.endswith(_MISSING)),
    taught=(),
    streamed=(),
    stream=None,
    rest={},
    motors={},
)
"""Joints are missing at the end of its arms and in their middle."""


@pytest.mark.parametrize("build", [G1_27, G1_23, G1_ARMS, NO_HANDS], ids=lambda build: build.name)
def test_links_behind_missing_joints_weigh_on_the_last_one_there_is(build: Build) -> None:
    arms, random = Arms(build), np.random.default_rng(5)
    assert len(arms.columns) == sum(joint.part in ("arm", "wrist") for joint in build.joints)
    columns = Columns(build)
    for _ in range(5):
        pose = random.uniform(columns.lower_rad, columns.upper_rad)
        others = [c for c in range(len(pose)) if c not in arms.columns]
        pose[others] = 0.0
        weight = arms.gravity_torque_nm(pose[list(arms.columns)])
        for column, torque in zip(arms.columns, weight.tolist(), strict=True):
            step = np.zeros_like(pose)
            step[column] = 1e-5
            more, less = (potential_energy(build, p) for p in (pose + step, pose - step))
            assert torque == pytest.approx(-(more - less) / 2e-5, abs=1e-6)


@pytest.mark.parametrize("axis", [(0.0, 0.0, -1.0), (0.6, 0.0, 0.8), (0.0, -0.6, 0.8)])
def test_an_arm_may_turn_about_any_axis(axis: Vector) -> None:
    arm = Joint(
        index=0,
        name="swing",
        parent="wall",
        axis=axis,
        lower_rad=-3.0,
        upper_rad=3.0,
        velocity_rad_s=5.0,
        effort_nm=20.0,
        origin_m=(0.0, 0.0, 1.0),
        origin_rpy_rad=(1.2, 0.3, -0.4),
    )
    build = Build(name="crane-1", family="crane", joints=(arm,), taught=("swing",))
    heavy = replace(arm, mass_kg=2.0, com_m=(0.3, 0.1, -0.2))
    weight = Arms(replace(build, joints=(heavy,)))
    frame = turn(Z, -0.4) @ turn(Y, 0.3) @ turn(X, 1.2)
    for angle in (-1.0, 0.0, 0.7):
        heights = [
            float((frame @ turn(axis, angle + by) @ np.array(heavy.com_m))[2])
            for by in (-1e-5, 1e-5)
        ]
        expected = -2.0 * GRAVITY_M_S2 * (heights[1] - heights[0]) / 2e-5
        assert weight.gravity_torque_nm(np.array([angle]))[0] == pytest.approx(expected, abs=1e-6)


# ---- actions of another build -------------------------------------------------------------------


def test_an_action_of_a_whole_g1_is_played_by_a_smaller_one_with_a_word_of_warning(
    store: Store,
) -> None:
    taught(World(store), "drum", "drum")
    small = World(store, build=G1_23)
    tell(small, m.PlayAction(action=1))
    words = " ".join(notice.message for notice in small.notices)
    assert "'drum' was taught on a robot with other joints" in words
    assert "left_wrist_pitch_joint" in words
    elbow = G1_23.names.index("right_elbow_joint")
    places = []
    for _ in range(200):
        small.advance(0.02)
        places.append(small.body.joints_rad[elbow])
    assert np.ptp(places) > 0.3


def test_an_action_that_does_not_say_what_a_taught_joint_does_is_refused(store: Store) -> None:
    taught(World(store, build=G1_23))
    world = World(store)
    assert world.obey(WHO, m.PlayAction(action=1)) == m.Status(Code.UNSAFE)
    assert "left_wrist_pitch_joint" in world.notices[-1].message
    assert "a robot that does not have it" in world.notices[-1].message


def test_keyframes_find_their_joint_on_another_build(store: Store) -> None:
    key = m.Keyframe(joint=G1_29.names.index("right_elbow_joint"), time_ms=900, value_rad=0.4)
    save = m.SaveAction(name="key", created_s=0, duration_ms=1000, keyframes=(key,))
    tell(World(store), save)
    small = World(store, build=G1_23)
    tell(small, m.PlayAction(action=1))
    small.advance(1.3)
    elbow = G1_23.names.index("right_elbow_joint")
    assert small.body.setpoint_rad[elbow] == pytest.approx(0.4, abs=0.05)
    moved = np.abs(small.body.setpoint_rad - np.array(G1_23.rest_rad)) > 0.01
    assert np.flatnonzero(moved).tolist() == [elbow]


def test_keyframes_of_joints_that_a_build_does_not_have_are_refused(store: Store) -> None:
    key = m.Keyframe(joint=G1_29.names.index("left_wrist_yaw_joint"), time_ms=900, value_rad=0.4)
    tell(World(store), m.SaveAction(name="k", created_s=0, duration_ms=1000, keyframes=(key,)))
    small = World(store, build=G1_23)
    assert small.obey(WHO, m.PlayAction(action=1)) == m.Status(Code.BAD_PAYLOAD)
    beyond = replace(key, joint=len(G1_23.joints))
    save = m.SaveAction(name="b", created_s=0, duration_ms=1000, keyframes=(beyond,))
    assert small.obey(WHO, save) == m.Status(Code.BAD_PAYLOAD)


def test_presets_are_of_a_g1_and_move_what_a_smaller_one_has(store: Store) -> None:
    hands_up = motion_of(PRESETS[15], G1_ARMS)
    assert hands_up.names == G1_ARMS.names
    world = World(store, build=TRIPOD_BUILD)
    assert world.obey(WHO, m.PlayPreset(15)) == m.Status(Code.NO_SUCH_ACTION)


# ---- the third party's robot --------------------------------------------------------------------


def test_a_robot_of_a_third_party_has_one_mode_in_which_it_is_ready(store: Store) -> None:
    world = World(store, build=TRIPOD_BUILD)
    assert world.family.modes.all == TRIPOD.modes.all
    assert world.obey(WHO, m.ChangeMode(Mode.DAMP)) == m.Status(Code.BAD_PAYLOAD)
    assert world.machine.balanced
    assert world.state().mode == 0


def test_a_body_without_arms_has_no_weight_and_stays_where_it_is() -> None:
    assert Arms(TRIPOD_BUILD).columns == ()
    assert Arms(TRIPOD_BUILD).gravity_torque_nm(np.zeros(0)).size == 0
    body = SimBody(TRIPOD_BUILD)
    rest = np.array(TRIPOD_BUILD.rest_rad)
    body.soften((0, 1, 2))
    for step in range(500):
        body.step(step * STEP_S, rest, np.zeros(3))
    np.testing.assert_array_equal(body.joints_rad, rest)


def test_motors_are_numbered_by_their_slots(store: Store) -> None:
    world = World(store, build=TRIPOD_BUILD)
    world.health.plan_fault(parse_fault("hot-motor:5", TRIPOD_BUILD))
    world.advance(0.2)
    assert np.argmax(world.health.temperatures_c) == 1
    assert world.health.motor_error
    with pytest.raises(BadRequestError, match="unknown motor 4") as caught:
        parse_fault("hot-motor:4", TRIPOD_BUILD)
    assert caught.value.remedy == "Known motors: 3, 5, 7."
