"""Arms that follow streamed poses: bounded, refused like a play, and home whatever happens."""

import contextlib
import math
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from g1_29 import LOWER_RAD, REST_RAD, UPPER_RAD
from rote import messages as m
from rote.errors import UnsafeMotionError
from rote.messages import Code, Phase
from rote.model.g1 import G1_29, G1_JOINTS, MODES, TAUGHT_JOINTS, Mode
from rote.motion.track import Array
from rote.sim.body import STEP_S
from rote.sim.fsm import ArmActivity
from rote.sim.health import parse_fault
from rote.sim.refusal import RefusalError
from rote.sim.store import Store
from rote.sim.streaming import FIRST_S, SILENCE_S, StreamedPlayback
from rote.sim.world import World

ANN, BOB = "ann", "bob"
TAUGHT = list(TAUGHT_JOINTS)
REST = REST_RAD[TAUGHT]
ELBOW = TAUGHT_JOINTS.index(25)
MAX_RAD_S = 10.0
MakeWorld = Callable[..., World]


@pytest.fixture
def make_world() -> Iterator[MakeWorld]:
    stores: list[Store] = []

    def make(mode: Mode = Mode.WALK) -> World:
        stores.append(Store(":memory:"))
        return World(stores[-1], mode=mode)

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()


def ask(world: World, command: m.Command, client: str = ANN) -> int:
    reply = world.obey(client, command)
    assert isinstance(reply, m.Status)
    return reply.code


def begin(world: World, client: str = ANN) -> None:
    assert ask(world, m.BeginStream(), client) == Code.OK


def pose(weight: float = 1.0, elbow_rad: float = 0.5, number: int = 0) -> m.StreamPose:
    positions = REST.copy()
    positions[ELBOW] = elbow_rad
    return m.StreamPose(number, weight, tuple(positions.tolist()))


def follow(world: World, seconds: float, said: m.StreamPose, client: str = ANN) -> None:
    """Say the same pose a hundred times a second."""
    for _ in range(round(seconds / 0.01)):
        assert ask(world, said, client) == Code.OK
        world.advance(0.01)


def setpoints(world: World, seconds: float) -> Array:
    """Let time pass and return where the servos wanted to be, step by step."""
    rows = []
    for _ in range(round(seconds / STEP_S)):
        world.advance(STEP_S)
        rows.append(world.body.setpoint_rad)
    return np.array(rows)


def elbow_rad(world: World) -> float:
    return float(world.body.joints_rad[25])


def is_home(world: World) -> bool:
    return bool(np.abs(world.body.setpoint_rad - REST_RAD).max() < 1e-9)


# ---- following ----------------------------------------------------------------------------------


def test_the_arms_go_where_the_poses_say_and_nothing_else_moves(world: World) -> None:
    begin(world)
    follow(world, 2.0, pose(elbow_rad=0.5))
    assert elbow_rad(world) == pytest.approx(0.5, abs=0.06)
    others = np.delete(world.body.setpoint_rad - REST_RAD, 25)
    assert np.abs(others).max() < 1e-9


@pytest.mark.parametrize("weight", [0.0, 0.25, 0.5, 1.0])
def test_the_weight_is_the_share_of_the_streamed_pose(world: World, weight: float) -> None:
    begin(world)
    follow(world, 1.0, pose(weight, elbow_rad=0.4))
    wanted = (1 - weight) * REST_RAD[25] + weight * 0.4
    assert world.body.setpoint_rad[25] == pytest.approx(wanted, abs=1e-4)


def test_a_stream_that_begins_in_the_middle_of_a_return_does_not_jump(world: World) -> None:
    begin(world)
    follow(world, 2.0, pose(elbow_rad=-0.5))
    assert ask(world, m.StopMotion()) == Code.OK
    world.advance(0.5)
    assert not is_home(world)
    begin(world)
    rows = [world.body.setpoint_rad]
    for _ in range(300):
        ask(world, pose(0.0))
        world.advance(STEP_S)
        rows.append(world.body.setpoint_rad)
    assert np.abs(np.diff(rows, axis=0)).max() / STEP_S < 1.5, "no faster than a soft return"


def test_the_state_tells_the_phases_by_the_weight(world: World) -> None:
    begin(world)
    seen = [world.state().phase]
    for weight in (0.0, 0.4, 1.0, 1.0, 0.6, 0.1):
        follow(world, 0.02, pose(weight))
        seen.append(world.state().phase)
    follow(world, 0.02, pose(0.1))
    assert seen == [
        Phase.APPROACH, Phase.APPROACH, Phase.APPROACH, Phase.PLAYING, Phase.PLAYING,
        Phase.RETURN, Phase.RETURN,
    ]  # fmt: skip
    assert world.machine.activity is ArmActivity.PLAYING, "it still follows"


def test_a_weight_that_comes_back_to_0_ends_the_stream_well(world: World) -> None:
    begin(world)
    for weight in (0.0, 0.5, 1.0, 0.5):
        follow(world, 0.2, pose(weight))
    assert ask(world, pose(0.0)) == Code.OK
    world.advance(0.01)
    assert world.machine.activity is ArmActivity.IDLE
    world.advance(2.0)
    assert is_home(world)
    assert not world.state().playing
    assert not world.state().stopped_early


# ---- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [mode for mode in Mode if not MODES[mode].balanced])
def test_without_balance_nothing_is_streamed(make_world: MakeWorld, mode: Mode) -> None:
    assert ask(make_world(mode), m.BeginStream()) == Code.WRONG_STATE


def test_a_second_client_is_busy_and_its_poses_are_ignored(world: World) -> None:
    begin(world)
    follow(world, 0.5, pose(elbow_rad=0.5))
    for attempt in (m.BeginStream(), m.EnterTeaching(), m.PlayPreset(27)):
        assert ask(world, attempt, BOB) == Code.BUSY
    assert ask(world, pose(elbow_rad=-0.5), BOB) == Code.SUPERSEDED
    follow(world, 1.0, pose(elbow_rad=0.5))
    assert world.body.setpoint_rad[25] == pytest.approx(0.5, abs=1e-4)


def test_who_streams_already_cannot_begin_again(world: World) -> None:
    begin(world)
    assert ask(world, m.BeginStream()) == Code.BUSY


def test_while_somebody_teaches_nothing_is_streamed(world: World) -> None:
    assert ask(world, m.EnterTeaching(), BOB) == Code.OK
    assert ask(world, m.BeginStream()) == Code.BUSY


@pytest.mark.parametrize(
    ("fault", "code"), [("low-battery", Code.LOW_BATTERY), ("hot-motor:16", Code.MOTOR_ERROR)]
)
def test_a_robot_that_is_not_well_streams_nothing(world: World, fault: str, code: Code) -> None:
    world.health.plan_fault(parse_fault(fault))
    world.advance(0.2)
    assert ask(world, m.BeginStream()) == code


def test_arms_that_hold_a_pose_are_not_streamed(world: World) -> None:
    assert ask(world, m.PlayPreset(15)) == Code.OK
    while not world.holding:
        world.advance(0.1)
    assert ask(world, m.BeginStream()) == Code.HOLDING


def test_a_pose_without_a_stream_moves_nothing(world: World) -> None:
    assert ask(world, pose()) == Code.SUPERSEDED
    world.advance(0.5)
    assert is_home(world)


def with_elbow(value: float) -> m.StreamPose:
    return pose(elbow_rad=value)


@pytest.mark.parametrize(
    "bad",
    [
        with_elbow(G1_JOINTS[25].upper_rad + 0.03),
        with_elbow(G1_JOINTS[25].lower_rad - 0.03),
        with_elbow(math.nan),
        with_elbow(math.inf),
        pose(weight=math.nan),
        pose(weight=1.01),
        pose(weight=-0.01),
        m.StreamPose(0, 1.0, (0.0,) * 14),
    ],
    ids=lambda bad: f"{bad.weight} {len(bad.joints_rad)} {bad.joints_rad[ELBOW:][:1]}",
)
def test_an_unsafe_pose_ends_the_stream_softly_and_says_why(
    world: World, bad: m.StreamPose
) -> None:
    begin(world)
    follow(world, 1.0, pose(elbow_rad=0.5))
    assert ask(world, bad) == Code.UNSAFE
    assert any("unsafe motion" in notice.message for notice in world.notices)
    rows = setpoints(world, 3.0)
    assert np.isfinite(rows).all()
    assert np.abs(np.diff(rows, axis=0)).max() / STEP_S < 1.5
    assert is_home(world)
    assert world.state().stopped_early
    assert ask(world, pose()) == Code.SUPERSEDED


def test_a_pose_a_little_beyond_a_stop_is_followed_to_the_stop(world: World) -> None:
    begin(world)
    follow(world, 2.0, pose(elbow_rad=G1_JOINTS[25].upper_rad + 0.01))
    assert world.body.setpoint_rad[25] == pytest.approx(G1_JOINTS[25].upper_rad, abs=1e-4)


# ---- ending -------------------------------------------------------------------------------------


def test_when_the_poses_cease_the_arms_go_home_by_themselves(world: World) -> None:
    begin(world)
    follow(world, 1.0, pose(elbow_rad=0.0))
    world.advance(SILENCE_S - 0.02)
    assert world.state().phase is Phase.PLAYING
    world.advance(0.04)
    assert world.state().phase is Phase.RETURN
    assert world.state().stopped_early
    assert ask(world, pose(elbow_rad=0.0)) == Code.SUPERSEDED, "it has given up"
    world.advance(4.0)
    assert is_home(world)
    assert any("no pose" in notice.message for notice in world.notices)


def test_who_begins_and_never_says_a_pose_does_not_keep_the_arms(world: World) -> None:
    begin(world)
    world.advance(FIRST_S - 0.01)
    assert ask(world, m.BeginStream(), BOB) == Code.BUSY
    world.advance(0.02)
    begin(world, BOB)


@pytest.mark.parametrize("who", [ANN, BOB])
def test_a_stop_by_anybody_brakes_and_returns_and_later_poses_are_ignored(
    world: World, who: str
) -> None:
    begin(world)
    for step in range(100):  # moving fast when it is stopped
        follow(world, 0.01, pose(elbow_rad=1.0 - 0.015 * step))
    assert ask(world, m.StopMotion(), who) == Code.OK
    assert world.machine.activity is ArmActivity.IDLE
    for _ in range(400):
        assert ask(world, pose(elbow_rad=-0.5)) == Code.SUPERSEDED
        world.advance(0.01)
    assert is_home(world)
    assert world.state().stopped_early
    begin(world, BOB)


def test_a_stop_in_the_middle_brakes_without_a_jerk(world: World) -> None:
    begin(world)
    for step in range(100):
        follow(world, 0.01, pose(elbow_rad=1.0 - 0.01 * step))
    world.obey(BOB, m.StopMotion())
    speeds = np.diff(setpoints(world, 1.0)[:, 25]) / STEP_S
    assert np.abs(np.diff(speeds)).max() < 0.1, "a fifth of a second from 1 rad/s to rest"


@pytest.mark.parametrize("mode", [Mode.DAMP, Mode.LOCK_STAND])
def test_losing_balance_ends_the_stream(world: World, mode: Mode) -> None:
    begin(world)
    follow(world, 0.5, pose())
    assert ask(world, m.ChangeMode(mode)) == Code.OK
    for _ in range(150):
        world.obey(ANN, pose())
        world.advance(0.01)
    assert world.machine.mode == mode
    assert ask(world, pose()) == Code.SUPERSEDED
    assert world.state().stopped_early


def test_when_the_client_is_gone_the_silence_ends_the_stream(world: World) -> None:
    begin(world)
    follow(world, 0.5, pose())
    world.forget(ANN)
    world.advance(4.0)
    assert is_home(world)
    assert world.state().stopped_early


# ---- whatever is streamed -----------------------------------------------------------------------

ANY_FLOAT = st.floats(width=32) | st.floats(-4.0, 4.0)
ANY_POSE = st.builds(
    m.StreamPose,
    st.just(0),
    st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.0, 1.0]), ANY_FLOAT),
    st.lists(ANY_FLOAT, min_size=15, max_size=15).map(tuple),
)
SAFE_POSE = st.builds(
    m.StreamPose,
    st.just(0),
    st.sampled_from([0.3, 0.7, 1.0]),
    st.tuples(*(st.floats(G1_JOINTS[i].lower_rad, G1_JOINTS[i].upper_rad) for i in TAUGHT)),
)


@given(st.lists(st.tuples(ANY_POSE | SAFE_POSE | SAFE_POSE, st.integers(0, 60)), max_size=15))
def test_whatever_is_streamed_no_setpoint_leaves_its_limits_or_is_too_fast(
    said: list[tuple[m.StreamPose, int]],
) -> None:
    troubles: list[str] = []
    streamed = StreamedPlayback(REST_RAD.copy(), troubles.append, G1_29)
    rows = [REST_RAD]
    for one, steps in said:
        with contextlib.suppress(UnsafeMotionError, RefusalError):
            streamed.follow(one)
        rows += [s.pose_rad for s in (streamed.step() for _ in range(steps)) if s is not None]
    while (setpoint := streamed.step()) is not None:  # silence brings it home
        rows.append(setpoint.pose_rad)
    assert ((np.array(rows) >= LOWER_RAD) & (np.array(rows) <= UPPER_RAD)).all()
    assert np.abs(np.diff(rows, axis=0)).max() <= MAX_RAD_S * STEP_S + 1e-9
    assert np.abs(rows[-1] - REST_RAD).max() < 1e-9
    assert len(troubles) <= 1
    assert not streamed.following
