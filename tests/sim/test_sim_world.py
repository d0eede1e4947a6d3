"""The simulated robot as a whole: teach, save, list, play, and every way it says no."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from g1_29 import LOWER_RAD, REST_RAD, UPPER_RAD
from motion.motion_tracks import full_disk
from rote import messages as m
from rote.messages import Code, Phase
from rote.model.family import MAX_MOTION_S
from rote.model.g1 import G1_29, MODES, TAUGHT_JOINTS, Mode
from rote.motion.compare import deviation
from rote.motion.record import Recorder
from rote.motion.track import Array, Track
from rote.sim.arm_motion import HOLD_TAUGHT_S
from rote.sim.behaviour import RELEASE_S
from rote.sim.body import STEP_S
from rote.sim.firmware import PROFILES, Firmware
from rote.sim.fsm import ArmActivity
from rote.sim.health import parse_fault
from rote.sim.store import Store
from rote.sim.teaching import KEEP_ALIVE_S, KEEP_NAMED_S
from rote.sim.world import World

ANN, BOB = "ann", "bob"
KEYS = (m.Keyframe(joint=25, time_ms=400, value_rad=0.6),)
UNBALANCED = [mode for mode in Mode if not MODES[mode].balanced]
TAUGHT_NAMES = [G1_29.names[joint] for joint in TAUGHT_JOINTS]
MakeWorld = Callable[..., World]


@pytest.fixture
def make_world() -> Iterator[MakeWorld]:
    stores: list[Store] = []

    def make(mode: Mode = Mode.WALK, path: Path | str = ":memory:") -> World:
        stores.append(Store(path))
        return World(stores[-1], mode=mode, polite=True)

    yield make
    for store in stores:
        store.close()


@pytest.fixture
def world(make_world: MakeWorld) -> World:
    return make_world()


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store(":memory:")
    yield store
    store.close()


def ask(world: World, command: m.Command, client: str = ANN) -> int:
    """Return the code the robot answers with."""
    reply = world.obey(client, command)
    assert isinstance(reply, m.Status)
    return reply.code


def tell(world: World, *commands: m.Command, client: str = ANN) -> None:
    """Ask for what must succeed."""
    for command in commands:
        assert ask(world, command, client) == Code.OK, command


def listed(world: World) -> list[tuple[str, int]]:
    reply = world.obey(BOB, m.ListActions())
    assert isinstance(reply, m.ActionList)
    return [(entry.name, entry.duration_ms) for entry in reply.actions]


def saving(
    name: str = "wave",
    duration_ms: int = 1000,
    frames: int = 0,
    keyframes: tuple[m.Keyframe, ...] = (),
    save: bool = True,
    loop: bool = False,
) -> m.SaveAction:
    return m.SaveAction(
        name=name,
        created_s=1,
        duration_ms=duration_ms,
        frames=frames,
        keyframes=keyframes,
        save=save,
        loop=loop,
    )


def record(world: World, script: str = "wave", seconds: float = 1.0) -> None:
    """Record a hand at work, and leave teaching."""
    tell(world, m.EnterTeaching(), m.Record(on=True))
    tell(world, m.MoveByHand(script, round(seconds * 1000)))
    world.advance(seconds)
    tell(world, m.Record(on=False), m.ExitTeaching())


def advance_keeping(world: World, seconds: float, client: str = ANN) -> None:
    """Let time pass as a client does that keeps teaching alive."""
    while seconds > 0:
        world.advance(min(4.5, seconds))
        world.obey(client, m.KeepTeaching())
        seconds -= 4.5


def settle(world: World, most_s: float = 30.0) -> None:
    """Let time pass until nothing plays, holds or returns any more."""
    for _ in range(round(most_s / 0.1)):
        if not world.state().playing and not world.holds_taught:
            return
        world.advance(0.1)
    pytest.fail("the robot did not come to rest")


def watch(world: World, seconds: float, phase: Phase | None = None) -> Track:
    """Return the joints over time, of one phase or of all."""
    recorder = Recorder()
    for _ in range(round(seconds / 0.01)):
        world.advance(0.01)
        state = world.state()
        if phase in (None, state.phase):
            recorder.add(state)
    return recorder.track()


# ---- the whole cycle ----------------------------------------------------------------------------


def test_what_a_hand_teaches_is_recorded_saved_listed_and_played(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True), m.MoveByHand("wave", 4000))
    taught = watch(world, 4.0)
    tell(world, m.Record(on=False), m.ExitTeaching(), saving("wave", 4000))
    assert listed(world) == [("wave", 3990)]
    settle(world)
    tell(world, m.PlayAction(action=1))
    played = watch(world, 8.0, Phase.PLAYING)
    assert world.state().phase is Phase.NONE
    assert played.duration_s == pytest.approx(taught.duration_s, abs=0.03)
    found = deviation(taught, played, TAUGHT_NAMES)
    assert found.rms_rad < 0.02
    assert found.max_rad < 0.1
    assert np.ptp(taught.joints_rad, axis=0).max() > 1.0, "the hand really moved it"


def test_the_robot_reports_what_it_does_at_every_stage(world: World) -> None:
    def seen() -> tuple[bool, bool, Phase]:
        state = world.state()
        return state.arms_soft, state.recording, state.phase

    assert seen() == (False, False, Phase.NONE)
    tell(world, m.EnterTeaching())
    assert seen() == (True, False, Phase.NONE)
    tell(world, m.Record(on=True), m.MoveByHand("clap", 1000))
    assert seen() == (True, True, Phase.NONE)
    world.advance(1.0)
    tell(world, m.Record(on=False))
    assert seen() == (True, False, Phase.NONE)
    tell(world, m.ExitTeaching())
    assert seen() == (False, False, Phase.NONE), "the arms hold first"
    assert world.holds_taught
    world.advance(HOLD_TAUGHT_S + 0.1)
    assert seen() == (False, False, Phase.RETURN)
    settle(world)
    tell(world, saving(), m.PlayAction(action=1))
    phases = []
    for _ in range(500):
        world.advance(0.01)
        phases.append(world.state().phase)
    changes = [
        phase for phase, before in zip(phases, [None, *phases], strict=False) if phase != before
    ]
    assert changes == [Phase.APPROACH, Phase.PLAYING, Phase.RETURN, Phase.NONE]


def test_nothing_in_the_cycle_makes_the_body_jump(world: World) -> None:
    steps: list[Array] = [world.body.joints_rad.copy()]

    def advance(seconds: float) -> None:
        for _ in range(round(seconds / STEP_S)):
            world.advance(STEP_S)
            steps.append(world.body.joints_rad.copy())

    tell(world, m.EnterTeaching(), m.Record(on=True), m.MoveByHand("drum", 2000))
    advance(1.5)
    tell(world, m.Record(on=False), m.ExitTeaching())
    advance(0.3)
    tell(world, saving("drum", 1500), m.PlayAction(action=1))
    advance(1.5)
    tell(world, m.StopMotion())
    advance(0.3)
    tell(world, m.EnterTeaching())
    advance(0.3)
    tell(world, m.StopMotion())
    advance(HOLD_TAUGHT_S + 3.0)
    speeds = np.abs(np.diff(steps, axis=0)) / STEP_S
    assert speeds.max() < 8.0
    np.testing.assert_allclose(world.body.joints_rad, REST_RAD, atol=0.02)


@pytest.mark.parametrize(
    ("stated_ms", "frames"), [(3000, 50), (490, 50), (700, 0), (1000, 102), (1000, 2**32 - 1)]
)
def test_a_save_that_describes_the_recording_wrongly_keeps_all_of_it_and_says_so(
    world: World, stated_ms: int, frames: int
) -> None:
    record(world, seconds=1.0)
    reply = world.obey(ANN, saving(duration_ms=stated_ms, frames=frames))
    assert reply == m.Status(Code.OK, "kept all 100 frames, 0.99 s")
    said = f"the client stated {frames} frames, {stated_ms / 1000:.2f} s"
    assert world.notices[-1].message == f"saved 'wave': kept all 100 frames, 0.99 s; {said}"
    action = world.store.load(1)
    assert action is not None
    assert (action.frames, action.duration_ms) == (100, 990)
    assert (action.stated_frames, action.stated_ms) == (frames, stated_ms)
    assert listed(world) == [("wave", 990)]


@pytest.mark.parametrize(("stated_ms", "frames"), [(745, 0), (1235, 100), (990, 100)])
def test_a_save_that_describes_the_recording_nearly_rightly_needs_no_words(
    world: World, stated_ms: int, frames: int
) -> None:
    record(world, seconds=1.0)
    assert world.obey(ANN, saving(duration_ms=stated_ms, frames=frames)) == m.Status(Code.OK)
    assert listed(world) == [("wave", 990)]
    assert world.notices[-1].message == "saved 'wave'"


def test_an_action_can_be_stored_to_loop(world: World) -> None:
    tell(world, saving(keyframes=KEYS, loop=True), m.PlayAction(action=1))
    world.advance(12.0)
    assert world.state().phase is Phase.PLAYING


def test_keyframes_are_saved_and_played_without_teaching(world: World) -> None:
    tell(world, saving("nod", 500, keyframes=KEYS))
    assert listed(world) == [("nod", 500)]
    tell(world, m.PlayAction(action=1))
    track = watch(world, 3.0)
    assert track.joints_rad[:, 25].min() == pytest.approx(0.6, abs=0.02)


def test_saving_keyframes_leaves_a_recording_alone(world: World) -> None:
    record(world)
    tell(world, saving("keys", keyframes=KEYS), saving("mine"))
    assert [name for name, _ in listed(world)] == ["keys", "mine"]


def test_two_worlds_with_one_seed_report_the_same_and_a_standing_robot(
    make_world: MakeWorld,
) -> None:
    first, second = make_world(), make_world()
    for world in (first, second):
        world.advance(0.5)
    state = first.state()
    assert state == second.state()
    assert state.time_us == 500_000
    assert state.mode == 500
    assert state.accelerometer_m_s2[2] == pytest.approx(9.81, abs=0.2)
    assert sum(state.foot_force_n) == pytest.approx(33.34 * 9.81, rel=0.02)
    assert len(state.joints_rad) == len(state.velocities_rad_s) == 29


def test_only_the_newest_hundred_notices_are_kept(world: World) -> None:
    for _ in range(80):
        tell(world, m.EnterTeaching(), m.ExitTeaching())
    assert len(world.notices) == 100
    assert world.notices[-1].message == "teaching ended: the arms hold"


# ---- refused ------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", UNBALANCED)
def test_without_balance_nothing_is_taught_or_played(make_world: MakeWorld, mode: Mode) -> None:
    world = make_world(mode)
    tell(world, saving(keyframes=KEYS))
    assert ask(world, m.EnterTeaching()) == 7404
    assert ask(world, m.PlayAction(action=1)) == 7404
    assert world.machine.activity is ArmActivity.IDLE


@pytest.mark.parametrize("mode", [Mode.WALK, Mode.WALK_WAIST])
def test_with_balance_both_are_possible(make_world: MakeWorld, mode: Mode) -> None:
    world = make_world(mode)
    tell(world, m.EnterTeaching(), m.ExitTeaching(), saving(keyframes=KEYS))
    tell(world, m.PlayAction(action=1))


def test_while_the_mode_changes_nothing_is_taught_or_played(world: World) -> None:
    tell(world, saving(keyframes=KEYS), m.ChangeMode(Mode.WALK_WAIST))
    assert ask(world, m.EnterTeaching()) == Code.WRONG_STATE
    assert ask(world, m.PlayAction(action=1)) == Code.WRONG_STATE
    world.advance(0.6)
    tell(world, m.EnterTeaching())


def test_a_second_teacher_is_busy_and_the_first_goes_on(world: World) -> None:
    tell(world, m.EnterTeaching())
    assert ask(world, m.EnterTeaching(), BOB) == Code.BUSY
    assert ask(world, m.ExitTeaching(), BOB) == Code.BUSY
    assert ask(world, m.KeepTeaching(), BOB) == Code.NOT_TEACHING
    assert ask(world, m.Record(on=True), BOB) == Code.NOT_TEACHING
    tell(world, m.Record(on=True))
    assert ask(world, m.Record(on=False), BOB) == Code.NOT_TEACHING
    assert world.recording
    assert world.state().arms_soft


def test_a_teacher_may_enter_again(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(0.2)
    tell(world, m.EnterTeaching())
    assert world.recording


def test_only_one_motion_at_a_time(world: World) -> None:
    tell(world, saving(duration_ms=3000, keyframes=KEYS), m.EnterTeaching())
    assert ask(world, m.PlayAction(action=1), BOB) == Code.BUSY
    tell(world, m.ExitTeaching(), m.PlayAction(action=1))
    assert ask(world, m.PlayAction(action=1), BOB) == Code.BUSY
    assert ask(world, m.EnterTeaching()) == Code.BUSY
    assert ask(world, m.ExitTeaching()) == Code.OK, "leaving what one is not in does no harm"
    assert world.state().phase is Phase.APPROACH


def test_the_teacher_may_play_before_leaving_and_the_arms_hold_first(world: World) -> None:
    """The order of the documents: record off, save, play, and only then leave."""
    tell(world, m.EnterTeaching(), m.Record(on=True), m.MoveByHand("wave", 1000))
    world.advance(0.6)  # the hand has led the arm far away from rest
    tell(world, m.Record(on=False), saving())
    assert world.state().arms_soft
    far = np.abs(world.body.joints_rad - REST_RAD).max()
    before = world.body.joints_rad.copy()
    tell(world, m.PlayAction(action=1))
    assert not world.state().arms_soft
    assert world.state().phase is Phase.APPROACH
    steps = [before]
    for _ in range(round(4.0 / STEP_S)):
        world.advance(STEP_S)
        steps.append(world.body.joints_rad.copy())
    speeds = np.abs(np.diff(steps, axis=0)) / STEP_S
    assert far > 0.3
    assert speeds[: round(0.05 / STEP_S)].max() < 1.5, "it begins where the hand has left the arms"
    assert speeds.max() < 8.0
    tell(world, m.ExitTeaching())
    settle(world)
    assert not world.stopped_early


def test_leaving_during_the_playback_that_ended_the_teaching_does_not_stop_it(
    world: World,
) -> None:
    record(world)
    tell(world, saving())
    settle(world)
    tell(world, m.EnterTeaching(), m.PlayAction(action=1), m.ExitTeaching())
    assert world.state().phase is Phase.APPROACH


@pytest.mark.parametrize("paused", [False, True])
def test_a_teacher_that_still_records_cannot_play(world: World, paused: bool) -> None:
    tell(world, saving("keys", keyframes=KEYS), m.EnterTeaching(), m.Record(on=True))
    tell(world, m.PauseRecording(paused))
    refused = m.Status(Code.BUSY, "the recording still runs: stop it")
    assert world.obey(ANN, m.PlayAction(action=1)) == refused
    assert world.state().arms_soft


@pytest.mark.parametrize(
    ("play", "code"),
    [
        (m.PlayAction(action=2), Code.NO_SUCH_ACTION),
        (m.PlayAction(action=1, frames=99), Code.BAD_PAYLOAD),
        (m.PlayAction(action=1, duration_ms=20), Code.UNSAFE),
    ],
    ids=str,
)
def test_a_teachers_play_that_is_refused_leaves_the_teaching_as_it_was(
    world: World, play: m.PlayAction, code: Code
) -> None:
    tell(world, saving("keys", keyframes=KEYS), m.EnterTeaching())
    assert ask(world, play) == code
    assert world.state().arms_soft
    tell(world, m.KeepTeaching(), m.Record(on=True))


@pytest.mark.parametrize(
    ("teacher", "note"),
    [
        (ANN, "ann is teaching"),
        (("192.168.1.20", 51234), "192.168.1.20:51234 is teaching"),
        (("fe80::1", 51234, 0, 2), "[fe80::1]:51234 is teaching"),
        (("2001:db8:1111:2222:3333:4444:5555", 5), "[2001:db8:1111:2222:3333:4444:5555]:5"),
        (("2001:db8:1111:2222:3333:4444:5555:6666", 51234), "another client is teaching"),
        (object(), "a client of its services is teaching"),
    ],
)
@pytest.mark.parametrize("command", [m.PlayAction(action=1), m.EnterTeaching(), m.ExitTeaching()])
def test_a_refusal_names_who_is_teaching(
    world: World, teacher: object, note: str, command: m.Command
) -> None:
    tell(world, saving("keys", keyframes=KEYS))
    assert world.obey(teacher, m.EnterTeaching()) == m.Status(Code.OK)
    assert world.obey(BOB, command) == m.Status(Code.BUSY, note)
    assert world.notices[-1].message == f"refused: {note}"
    assert world.state().arms_soft


def test_the_teacher_itself_is_not_taken_for_another_client(world: World) -> None:
    tell(world, m.EnterTeaching())
    own = m.Status(Code.BUSY, "you are teaching: end it first")
    assert world.obey(ANN, m.BeginStream()) == own
    assert world.obey(ANN, m.EnterTeaching(name="named")) == own
    assert world.obey(BOB, m.BeginStream()) == m.Status(Code.BUSY, "ann is teaching")


def test_a_recording_cannot_be_started_twice_or_saved_before_its_end(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(0.1)
    assert ask(world, m.Record(on=True)) == Code.BUSY
    assert ask(world, saving()) == Code.BUSY
    tell(world, m.Record(on=False), saving())


def test_a_name_that_exists_is_refused_and_the_recording_kept(world: World) -> None:
    tell(world, saving("wave", keyframes=KEYS))
    record(world)
    assert ask(world, saving("wave")) == Code.NAME_EXISTS
    tell(world, saving("wave again"))


def test_a_full_store_is_refused_and_the_recording_kept(world: World) -> None:
    for number in range(15):
        tell(world, saving(f"action {number}", keyframes=KEYS))
    record(world)
    assert ask(world, saving("one more")) == Code.STORE_FULL
    assert ask(world, saving("one more", keyframes=KEYS)) == Code.STORE_FULL
    assert len(listed(world)) == 15


@pytest.mark.parametrize("number", [0, 2, 15, 16, 2**32 - 1])
def test_an_action_that_does_not_exist_is_not_played(world: World, number: int) -> None:
    tell(world, saving(keyframes=KEYS))
    assert ask(world, m.PlayAction(action=number)) == Code.NO_SUCH_ACTION
    assert not world.state().playing


@pytest.mark.parametrize("samples", [0, 1])
def test_less_than_two_samples_are_no_recording(world: World, samples: int) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(0.01 * samples)
    tell(world, m.Record(on=False), m.ExitTeaching())
    assert ask(world, saving()) == Code.NOTHING_RECORDED
    assert listed(world) == []


def test_without_teaching_there_is_nothing_to_save(world: World) -> None:
    assert ask(world, saving()) == Code.NOTHING_RECORDED


@pytest.mark.parametrize(
    "save",
    [
        saving(duration_ms=0),
        saving(duration_ms=180_001),
        saving(duration_ms=2**32 - 1),
        saving(save=False),
        saving(duration_ms=399, keyframes=KEYS),
        saving(duration_ms=0, keyframes=KEYS),
    ],
    ids=str,
)
def test_a_save_that_makes_no_sense_is_refused_and_the_recording_kept(
    world: World, save: m.SaveAction
) -> None:
    record(world, seconds=1.0)
    assert ask(world, save) == Code.BAD_PAYLOAD
    assert listed(world) == []
    tell(world, saving(frames=100))


@pytest.mark.parametrize(
    "play",
    [
        m.PlayAction(action=1, frames=101),
        m.PlayAction(action=1, frames=2**32 - 1),
        m.PlayAction(action=1, duration_ms=180_001),
        m.PlayAction(action=1, duration_ms=2**32 - 1),
        m.PlayAction(action=1, frames=2, keyframes=KEYS),
    ],
    ids=str,
)
def test_a_play_that_makes_no_sense_is_refused(world: World, play: m.PlayAction) -> None:
    record(world, seconds=1.0)
    tell(world, saving())
    settle(world)
    assert ask(world, play) == Code.BAD_PAYLOAD
    assert not world.state().playing
    tell(world, m.PlayAction(action=1, frames=100))


@pytest.mark.parametrize(
    "keyframe",
    [
        m.Keyframe(joint=25, time_ms=900, value_rad=2.2),
        m.Keyframe(joint=25, time_ms=50, value_rad=0.0),
    ],
    ids=["too far", "too fast"],
)
def test_an_unsafe_motion_is_refused_and_the_reason_noted(
    world: World, keyframe: m.Keyframe
) -> None:
    tell(world, saving("wild", keyframes=(keyframe,)))
    assert ask(world, m.PlayAction(action=1)) == Code.UNSAFE
    assert "right_elbow_joint" in world.notices[-1].message
    assert world.machine.activity is ArmActivity.IDLE
    world.advance(1.0)
    np.testing.assert_allclose(world.body.joints_rad, REST_RAD, atol=0.02)
    tell(world, m.EnterTeaching())


def test_what_needs_a_teacher_is_refused_without_one(world: World) -> None:
    assert ask(world, m.KeepTeaching()) == Code.NOT_TEACHING
    assert ask(world, m.Record(on=True)) == Code.NOT_TEACHING
    assert ask(world, m.MoveByHand("wave", 1000)) == Code.NOT_TEACHING
    assert ask(world, m.Record(on=False)) == Code.OK, "stopping is always allowed"
    assert ask(world, m.ExitTeaching()) == Code.OK


@pytest.mark.parametrize(
    "move",
    [
        m.MoveByHand("moonwalk", 1000),
        m.MoveByHand("", 1000),
        m.MoveByHand("wave", 0),
        m.MoveByHand("wave", 180_001),
    ],
    ids=str,
)
def test_a_hand_that_makes_no_sense_is_refused(world: World, move: m.MoveByHand) -> None:
    tell(world, m.EnterTeaching())
    assert ask(world, move) == Code.BAD_PAYLOAD
    assert not world.body.held_by_hand


@pytest.mark.parametrize(
    "command",
    [
        m.TakeControl(),
        m.ReleaseControl(),
        m.SyncParameters(b"abc"),
        m.Subscribe(all_joints=True),
        m.SignalReady(),
    ],
    ids=lambda command: type(command).__name__,
)
def test_what_belongs_to_the_wire_is_unknown_to_the_robot(world: World, command: m.Command) -> None:
    assert ask(world, command) == Code.UNKNOWN_COMMAND


@pytest.mark.parametrize(
    ("mode", "code"),
    [(Mode.ZERO_TORQUE, Code.WRONG_STATE), (2, Code.BAD_PAYLOAD), (801, Code.BAD_PAYLOAD)],
)
def test_a_mode_out_of_reach_is_refused(world: World, mode: int, code: Code) -> None:
    assert ask(world, m.ChangeMode(mode)) == code
    world.advance(3.0)
    assert world.state().mode == Mode.WALK


def test_a_store_that_fails_is_told_apart_from_all_else(world: World) -> None:
    world.store.close()
    for command in (m.ListActions(), saving(keyframes=KEYS), m.PlayAction(action=1)):
        assert ask(world, command) == Code.STORE_FAILED
    assert "closed" in world.notices[-1].message


@pytest.mark.parametrize("name", ["a/b", "a\\b", "a\u202eb", "a\u2028b"])
def test_a_name_that_could_mislead_is_refused_and_the_recording_kept(
    world: World, name: str
) -> None:
    record(world)
    assert ask(world, saving(name)) == Code.BAD_PAYLOAD
    tell(world, saving("good"))


def test_a_locked_store_is_answered_as_that_and_the_recording_kept(
    make_world: MakeWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.sim.store._LOCKED_S", 0.05)
    world = make_world(path=tmp_path / "g1.sqlite")
    record(world)
    with closing(sqlite3.connect(tmp_path / "g1.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        reply = world.obey("client", saving())
    assert reply == m.Status(Code.STORE_FAILED, "another program has locked it")
    tell(world, saving())


def test_a_save_that_finds_the_disk_full_can_be_made_good_later(
    make_world: MakeWorld, tmp_path: Path
) -> None:
    world = make_world(path=tmp_path / "g1.sqlite")
    record(world, seconds=5.0)
    largest = max(file.stat().st_size for file in tmp_path.iterdir())
    with full_disk(largest + 10_000):
        assert ask(world, saving(duration_ms=5000)) == Code.STORE_FAILED
    assert listed(world) == []
    tell(world, saving(duration_ms=5000))
    assert listed(world) == [("wave", 4990)]


# ---- the recording ------------------------------------------------------------------------------


def test_a_recording_outlives_leaving_teaching_and_other_motions(world: World) -> None:
    record(world)
    tell(world, saving("keys", keyframes=KEYS), m.PlayAction(action=1))
    world.advance(1.0)
    tell(world, m.StopMotion())
    settle(world)
    tell(world, saving("mine"), client=BOB)
    assert listed(world)[-1] == ("mine", 990)


def test_a_recording_is_consumed_by_its_save(world: World) -> None:
    record(world)
    tell(world, saving("first"))
    assert ask(world, saving("second")) == Code.NOTHING_RECORDED


def test_a_recording_is_replaced_by_a_new_one(world: World) -> None:
    record(world, seconds=2.0)
    record(world, seconds=0.5)
    tell(world, saving(duration_ms=500))
    assert listed(world) == [("wave", 490)]


def test_leaving_teaching_ends_the_recording_and_keeps_it(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(1.0)
    tell(world, m.ExitTeaching())
    world.advance(1.0)
    tell(world, saving(duration_ms=1000))
    assert listed(world) == [("wave", 990)]


@pytest.fixture(params=[20.0, pytest.param(MAX_MOTION_S, marks=pytest.mark.soak)])
def longest_s(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> float:
    """The maximum duration of a teaching: soft arms take long to compute."""
    monkeypatch.setattr("rote.sim.teaching.MAX_MOTION_S", request.param)
    return float(request.param)


def test_the_longest_teaching_lasts_three_minutes() -> None:
    assert MAX_MOTION_S == 180.0


def test_a_recording_ends_by_itself_when_it_is_as_long_as_allowed(
    world: World, longest_s: float
) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    advance_keeping(world, longest_s - 0.1)
    still_on = world.recording
    advance_keeping(world, 0.5)
    assert (still_on, world.recording) == (True, False)
    assert world.state().arms_soft, "teaching goes on"
    assert any("full" in notice.message for notice in world.notices)
    frames = round(100 * longest_s)
    tell(world, m.ExitTeaching(), saving(duration_ms=10 * frames))
    action = world.store.load(1)
    assert action is not None
    assert (action.frames, action.duration_ms) == (frames, 10 * frames - 10)
    settle(world)
    assert ask(world, m.PlayAction(action=1, frames=frames + 1)) == Code.BAD_PAYLOAD
    tell(world, m.PlayAction(action=1))


# ---- who is there, and who is gone --------------------------------------------------------------


def test_without_a_keep_alive_the_arms_hold_again_after_three_periods(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(KEEP_ALIVE_S - 0.01)
    soft = [world.state().arms_soft]
    world.advance(0.01)
    soft.append(world.state().arms_soft)
    assert KEEP_ALIVE_S == 13.5
    assert soft == [True, False]
    assert not world.recording
    assert ask(world, m.KeepTeaching()) == Code.NOT_TEACHING
    tell(world, saving(duration_ms=13_490))


@pytest.mark.parametrize("sign", [m.KeepTeaching(), m.EnterTeaching()], ids=["keep", "enter"])
def test_a_keep_alive_prolongs_teaching(world: World, sign: m.Command) -> None:
    tell(world, m.EnterTeaching())
    world.advance(13.0)
    tell(world, sign)
    world.advance(13.0)
    soft = [world.state().arms_soft]
    world.advance(0.6)
    soft.append(world.state().arms_soft)
    assert soft == [True, False]


def test_when_the_teacher_is_gone_the_arms_hold(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(0.5)
    world.forget(BOB)
    soft = [world.state().arms_soft]
    world.forget(ANN)
    soft.append(world.state().arms_soft)
    assert soft == [True, False]
    tell(world, saving(duration_ms=490), client=BOB)
    tell(world, m.EnterTeaching(), client=BOB)


def test_when_the_player_of_a_loop_is_gone_it_stops(world: World) -> None:
    tell(world, saving(keyframes=KEYS), m.PlayAction(action=1, loop=True))
    world.advance(5.0)
    world.forget(BOB)
    phases = [world.state().phase]
    world.forget(ANN)
    phases.append(world.state().phase)
    assert phases == [Phase.PLAYING, Phase.RETURN]
    assert world.state().stopped_early
    settle(world)


def test_when_the_player_of_a_plain_action_is_gone_it_plays_to_its_end(world: World) -> None:
    tell(world, saving(keyframes=KEYS), m.PlayAction(action=1))
    world.advance(0.6)
    world.forget(ANN)
    world.advance(0.2)
    assert world.state().phase is Phase.PLAYING
    settle(world)
    assert not world.state().stopped_early


@pytest.mark.parametrize("end", [m.ExitTeaching(), m.StopMotion()], ids=["exit", "stop"])
def test_a_former_teacher_who_goes_does_not_disturb_a_playback(
    world: World, end: m.Command
) -> None:
    tell(world, saving(duration_ms=3000, keyframes=KEYS), m.EnterTeaching(), end)
    tell(world, m.PlayAction(action=1), client=BOB)
    world.advance(0.6)
    world.forget(ANN)
    assert world.state().phase is Phase.PLAYING


def test_forgetting_a_stranger_changes_nothing(world: World) -> None:
    before = world.state()
    world.forget("nobody")
    assert world.notices == []
    assert world.state().arms_soft == before.arms_soft


# ---- hands --------------------------------------------------------------------------------------


class Still:
    """A hand that holds an elbow for good."""

    def grip(self, time_s: float) -> Array | None:
        grip = np.full(29, np.nan)
        grip[25] = 0.4
        return grip


def test_a_hand_of_ones_own_moves_the_soft_arms_and_is_let_go_after_teaching(world: World) -> None:
    tell(world, m.EnterTeaching())
    world.attach(Still())
    world.advance(1.0)
    assert world.body.joints_rad[25] == pytest.approx(0.4, abs=0.02)
    tell(world, m.ExitTeaching())
    assert not world.body.held_by_hand
    settle(world)
    assert world.body.joints_rad[25] == pytest.approx(REST_RAD[25], abs=0.02)


def test_a_hand_can_be_taken_away(world: World) -> None:
    tell(world, m.EnterTeaching(), m.MoveByHand("wave", 5000))
    world.attach(None)
    assert not world.body.held_by_hand


# ---- modes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", list(Mode))
def test_a_robot_is_soft_from_the_start_where_its_mode_is(
    make_world: MakeWorld, mode: Mode
) -> None:
    state = make_world(mode).state()
    assert state.mode == mode
    assert state.arms_soft is not MODES[mode].stiff


def test_teaching_goes_on_from_one_balanced_mode_to_the_other(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True), m.ChangeMode(Mode.WALK_WAIST))
    world.advance(1.0)
    assert world.state().mode == Mode.WALK_WAIST
    assert world.state().arms_soft
    tell(world, m.Record(on=False), m.ExitTeaching(), saving(duration_ms=990))


def test_damping_lets_everything_sink_and_ends_teaching(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(0.5)
    tell(world, m.ChangeMode(Mode.DAMP))
    world.advance(0.3)
    assert world.machine.activity is ArmActivity.IDLE
    assert not world.recording
    assert len(world.body.soft) == 29
    assert ask(world, m.KeepTeaching()) == Code.NOT_TEACHING


def test_damping_ends_a_playback(world: World) -> None:
    tell(world, saving(duration_ms=3000, keyframes=KEYS), m.PlayAction(action=1))
    world.advance(1.0)
    tell(world, m.ChangeMode(Mode.DAMP))
    world.advance(0.3)
    assert world.machine.activity is ArmActivity.IDLE
    assert not world.state().playing


def test_rising_from_damping_the_joints_hold_where_they_are_and_return_softly(
    make_world: MakeWorld,
) -> None:
    world = make_world(Mode.DAMP)
    world.advance(3.0)
    sunk = world.body.joints_rad.copy()
    assert np.abs(sunk - REST_RAD).max() > 0.05
    tell(world, m.ChangeMode(Mode.LOCK_STAND))
    fastest = 0.0
    for _ in range(2500):
        before = world.body.joints_rad.copy()
        world.advance(STEP_S)
        moved = float(np.abs(world.body.joints_rad - before).max())
        fastest = max(fastest, moved / STEP_S)
    assert world.state().mode == Mode.LOCK_STAND
    assert fastest < 1.5
    np.testing.assert_allclose(world.body.joints_rad, REST_RAD, atol=0.02)


def test_the_way_from_power_on_to_a_taught_action(make_world: MakeWorld) -> None:
    world = make_world(Mode.ZERO_TORQUE)
    for mode in (Mode.DAMP, Mode.LOCK_STAND, Mode.WALK):
        tell(world, m.ChangeMode(mode))
        world.advance(2.1)
        assert world.state().mode == mode
    record(world)
    tell(world, saving())
    settle(world)
    tell(world, m.PlayAction(action=1))


# ---- stopping -----------------------------------------------------------------------------------


def test_a_stop_during_a_playback_returns_softly_and_says_it_was_early(world: World) -> None:
    tell(world, saving(duration_ms=3000, keyframes=KEYS), m.PlayAction(action=1))
    world.advance(1.5)
    tell(world, m.StopMotion(), client=BOB)
    state = world.state()
    assert (state.phase, state.stopped_early) == (Phase.RETURN, True)
    settle(world)
    np.testing.assert_allclose(world.body.joints_rad, REST_RAD, atol=0.02)
    tell(world, m.PlayAction(action=1))
    assert not world.state().stopped_early


def test_a_stop_ends_teaching_whoever_teaches(world: World) -> None:
    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.advance(0.5)
    tell(world, m.StopMotion(), client=BOB)
    assert not world.state().arms_soft
    assert not world.recording
    tell(world, m.EnterTeaching(), client=BOB)


def test_stopping_again_changes_nothing(make_world: MakeWorld) -> None:
    once, often = make_world(), make_world()
    for world in (once, often):
        tell(world, saving(duration_ms=3000, keyframes=KEYS), m.PlayAction(action=1))
        world.advance(1.0)
        tell(world, m.StopMotion())
    for _ in range(10):
        once.advance(0.05)
        often.advance(0.05)
        tell(often, m.StopMotion(), client=BOB)
    assert once.state() == often.state()


@pytest.mark.parametrize("mode", list(Mode))
def test_stopping_when_nothing_moves_is_fine_in_every_mode(
    make_world: MakeWorld, mode: Mode
) -> None:
    world = make_world(mode)
    before = world.state().arms_soft
    tell(world, m.StopMotion(), m.StopMotion())
    assert world.state().arms_soft == before
    assert not world.state().stopped_early


def test_arms_hold_where_a_teaching_has_left_them_and_a_stop_prolongs_that(world: World) -> None:
    tell(world, m.EnterTeaching(), m.MoveByHand("wave", 3000))
    world.advance(1.5)
    tell(world, m.StopMotion())
    held = world.body.setpoint_rad
    world.advance(HOLD_TAUGHT_S - 0.1)
    tell(world, m.StopMotion())
    world.advance(HOLD_TAUGHT_S - 0.1)
    assert np.array_equal(world.body.setpoint_rad, held)
    tell(world, m.PlayPreset(99))
    world.advance(0.1)
    assert world.state().phase is Phase.RETURN
    settle(world)


def test_a_playback_may_begin_while_the_arms_still_hold_and_ends_without_a_jump(
    world: World,
) -> None:
    tell(world, saving(keyframes=KEYS), m.EnterTeaching(), m.MoveByHand("wave", 3000))
    world.advance(1.5)
    tell(world, m.ExitTeaching())
    world.advance(0.3)
    tell(world, m.PlayAction(action=1))
    steps = [world.body.setpoint_rad]
    for _ in range(round(8.0 / STEP_S)):
        world.advance(STEP_S)
        steps.append(world.body.setpoint_rad)
    assert np.abs(np.diff(steps, axis=0)).max() < 8.0 * STEP_S
    np.testing.assert_allclose(steps[-1], REST_RAD, atol=0.001)


def test_a_playback_may_begin_while_the_arms_still_return(world: World) -> None:
    tell(world, saving(keyframes=KEYS), m.EnterTeaching(), m.MoveByHand("wave", 3000))
    world.advance(1.5)
    tell(world, m.ExitTeaching())
    world.advance(HOLD_TAUGHT_S + 0.3)
    assert world.state().phase is Phase.RETURN
    before = world.body.setpoint_rad
    tell(world, m.PlayAction(action=1))
    world.advance(STEP_S)
    assert np.abs(world.body.setpoint_rad - before).max() <= 1.0 * STEP_S
    settle(world)


def test_joints_stay_within_their_limits_while_a_hand_pulls_at_its_worst(world: World) -> None:
    class Wild:
        def grip(self, time_s: float) -> Array | None:
            return np.where(np.arange(29) % 2 == int(time_s * 3) % 2, 9.0, -9.0)

    tell(world, m.EnterTeaching(), m.Record(on=True))
    world.attach(Wild())
    world.advance(3.0)
    assert (world.body.joints_rad >= LOWER_RAD).all()
    assert (world.body.joints_rad <= UPPER_RAD).all()
    tell(world, m.StopMotion())
    settle(world)
    np.testing.assert_allclose(world.body.joints_rad, REST_RAD, atol=0.02)


# ---- by name, with pauses -----------------------------------------------------------------------


def test_a_teaching_named_at_its_start_records_at_once_and_is_stored_at_its_end(
    world: World,
) -> None:
    tell(world, m.EnterTeaching(name="mine"))
    assert world.state().recording
    world.advance(1.0)
    assert ask(world, m.EnterTeaching(name="other")) == Code.BUSY
    tell(world, m.ExitTeaching())
    assert listed(world) == [("mine", 990)]


@pytest.mark.parametrize("end", ["keep-alive", "stop", "gone", "damp"])
def test_a_named_teaching_that_ends_in_another_way_stores_nothing(world: World, end: str) -> None:
    tell(world, m.EnterTeaching(name="mine"))
    world.advance(1.0)
    if end == "keep-alive":
        world.advance(KEEP_NAMED_S - 1.1)
        assert world.state().arms_soft
        world.advance(0.2)
    elif end == "stop":
        tell(world, m.StopMotion(), client=BOB)
    elif end == "gone":
        world.forget(ANN)
    else:
        tell(world, m.ChangeMode(Mode.DAMP))
        world.advance(1.0)
    assert world.machine.activity is ArmActivity.IDLE
    tell(world, m.ExitTeaching())
    assert listed(world) == []


def test_a_named_teaching_ends_when_it_is_as_long_as_allowed_and_is_stored(
    world: World, longest_s: float
) -> None:
    tell(world, m.EnterTeaching(name="long"))
    advance_keeping(world, longest_s - 0.5)
    assert world.state().arms_soft
    world.advance(1.0)
    assert not world.state().arms_soft
    ((name, duration_ms),) = listed(world)
    assert name == "long"
    assert longest_s - 1.0 <= duration_ms / 1000 <= longest_s


def test_a_named_teaching_that_cannot_be_stored_is_noted(world: World) -> None:
    tell(world, m.EnterTeaching(name="mine"))
    world.advance(0.5)
    world.store.close()
    tell(world, m.ExitTeaching())
    assert "could not be saved" in world.notices[-2].message
    assert not world.state().arms_soft


def test_a_pause_takes_no_samples_and_keeps_the_arms_soft(world: World) -> None:
    assert ask(world, m.PauseRecording(paused=True)) == Code.NOT_TEACHING
    tell(world, m.EnterTeaching(name="mine"))
    world.advance(1.0)
    tell(world, m.PauseRecording(paused=True))
    world.advance(2.0)
    assert not world.recording
    assert world.state().arms_soft
    assert world.doing.id == -1
    tell(world, m.PauseRecording(paused=False))
    world.advance(1.0)
    tell(world, m.ExitTeaching())
    ((_, duration_ms),) = listed(world)
    assert 1970 < duration_ms < 2200, "without the pause, and with a soft way over it"
    action = world.store.load(1)
    assert action is not None
    assert action.joints_rad is not None
    assert np.abs(np.diff(action.joints_rad, axis=0)).max() < 0.02


# ---- presets that hold --------------------------------------------------------------------------


def hold(world: World) -> None:
    tell(world, m.PlayPreset(15))
    world.advance(4.0)
    assert world.state().holding
    assert world.doing == (15, "both_hands_up")


def test_a_preset_that_holds_keeps_its_last_pose_and_refuses_all_else(world: World) -> None:
    tell(world, saving(keyframes=KEYS))
    hold(world)
    held = world.body.joints_rad.copy()
    assert held[15] < -1.5, "the left arm is up"
    world.advance(5.0)
    assert np.abs(world.body.joints_rad - held).max() < 0.05
    for command in (m.PlayPreset(27), m.PlayAction(action=1), m.EnterTeaching()):
        assert ask(world, command) == Code.HOLDING
    assert world.state().holding


def test_a_pose_is_let_go_after_twenty_seconds_or_when_asked_again_later(world: World) -> None:
    hold(world)
    world.advance(15.0)
    tell(world, m.PlayPreset(15))
    world.advance(19.9)
    assert world.state().holding
    world.advance(0.2)
    assert not world.state().holding
    assert world.doing.id == 99
    settle(world)
    assert np.abs(world.body.joints_rad - REST_RAD).max() < 0.15


@pytest.mark.parametrize(
    "command", [m.StopMotion(), m.PlayPreset(99), m.ChangeMode(Mode.LOCK_STAND)]
)
def test_a_pose_is_let_go_by_stop_release_and_a_mode_without_balance(
    world: World, command: m.Command
) -> None:
    hold(world)
    tell(world, command, client=BOB)
    world.advance(1.2)
    assert not world.holding
    assert world.doing.id == 99
    settle(world)
    assert np.abs(world.body.joints_rad - REST_RAD).max() < 0.15


def test_a_robot_that_is_damped_forgets_the_pose(world: World) -> None:
    hold(world)
    tell(world, m.ChangeMode(Mode.DAMP))
    world.advance(1.0)
    assert not world.holding
    assert world.doing.id == 0


def test_a_release_waits_for_the_preset_that_is_played(world: World) -> None:
    tell(world, m.PlayPreset(15))
    world.advance(1.0)
    tell(world, m.PlayPreset(99))
    assert world.doing.id == 15
    world.advance(3.0)
    assert not world.holding
    assert world.doing.id == 99
    world.advance(4.2)
    assert world.doing.id == 0


def test_a_release_does_not_interrupt_a_teaching(world: World) -> None:
    tell(world, m.EnterTeaching())
    assert ask(world, m.PlayPreset(99)) == Code.BUSY


def test_the_arms_say_for_four_seconds_that_they_return(world: World) -> None:
    tell(world, m.EnterTeaching(name="mine"))
    world.advance(1.0)
    tell(world, m.ExitTeaching())
    world.advance(RELEASE_S - 0.05)
    assert world.doing == (99, "release_arm")
    assert not world.state().playing, "the arms themselves are there already"
    world.advance(0.1)
    assert world.doing.id == 0


# ---- firmware, health, debug mode ---------------------------------------------------------------


def test_newer_firmware_says_yes_to_mode_500_and_stays_where_it_is(store: Store) -> None:
    world = World(store, mode=Mode.LOCK_STAND, firmware=PROFILES["1.5.3"])
    tell(world, m.ChangeMode(Mode.WALK))
    world.advance(3.0)
    assert world.state().mode == Mode.LOCK_STAND
    tell(world, m.ChangeMode(Mode.WALK_WAIST))
    world.advance(3.0)
    assert world.state().mode == Mode.WALK_WAIST
    assert ask(world, m.ChangeMode(Mode.RUN)) == Code.BAD_PAYLOAD
    tell(world, m.ChangeMode(Mode.RUN_29))


@pytest.mark.parametrize("firmware", PROFILES.values(), ids=lambda f: f.version)
def test_a_robot_stands_balanced_after_a_usual_start(store: Store, firmware: Firmware) -> None:
    world = World(store, firmware=firmware)
    assert world.machine.balanced
    assert world.machine.mode not in firmware.ignored


@pytest.mark.parametrize(
    ("fault", "code"), [("low-battery", Code.LOW_BATTERY), ("hot-motor:16", Code.MOTOR_ERROR)]
)
def test_an_unwell_robot_refuses_to_move_its_arms(world: World, fault: str, code: Code) -> None:
    tell(world, saving(keyframes=KEYS))
    world.health.plan_fault(parse_fault(f"{fault}@1"))
    world.advance(0.9)
    tell(world, m.EnterTeaching(), m.ExitTeaching())
    world.advance(0.2)
    for command in (m.EnterTeaching(), m.PlayAction(action=1), m.PlayPreset(27)):
        assert ask(world, command) == code
    tell(world, m.StopMotion(), m.PlayPreset(99))
    assert world.state().faults


def test_a_state_tells_battery_and_temperatures(world: World) -> None:
    world.advance(10.0)
    state = world.state()
    assert state.battery_percent == pytest.approx(100 - 10 / 72, abs=0.01)
    assert len(state.temperatures_c) == 29
    assert state.faults == ()


def test_in_debug_mode_the_joints_give_way_and_the_mode_stays(world: World) -> None:
    assert world.obey(ANN, m.ReadController()) == m.Controller("ai")
    tell(world, m.EnterTeaching())
    world.drive("")
    reply = world.obey(ANN, m.ReadController())
    assert isinstance(reply, m.Controller)
    assert reply.debug
    assert world.state().mode == Mode.DAMP
    assert ask(world, m.ChangeMode(Mode.LOCK_STAND)) == Code.WRONG_STATE
    world.drive("ai")
    tell(world, m.ChangeMode(Mode.LOCK_STAND))


@pytest.mark.parametrize("stop_after_s", [None, 1.3])
def test_many_steps_at_once_are_the_same_life_as_one_by_one(stop_after_s: float | None) -> None:
    lives = []
    for steps in (1, 5, 23):
        one = World(Store(":memory:"), seed=3)
        keyframes = tuple(
            m.Keyframe(joint=25, time_ms=t, value_rad=v)
            for t, v in ((0, 1.0), (500, 0.2), (1500, 1.2))
        )
        save = m.SaveAction(name="bow", created_s=0, duration_ms=2000, keyframes=keyframes)
        assert one.obey("me", save) == m.Status()
        assert one.obey("me", m.PlayAction(action=1)) == m.Status()
        seen: dict[int, bytes] = {}
        for number in range(23 * 5 * 20 // steps):
            one.advance(steps * STEP_S)
            done = (number + 1) * steps
            if stop_after_s is not None and done == 23 * 5 * round(
                stop_after_s / (23 * 5 * STEP_S)
            ):
                assert one.obey("me", m.StopMotion()) == m.Status()
            if done % (23 * 5) == 0:
                body = one.body
                arrays = (body.joints_rad, body.speeds_rad_s, body.torques_nm, body.setpoint_rad)
                temperatures = one.health.temperatures_c
                seen[done] = b"".join(a.tobytes() for a in (*arrays, temperatures))
                seen[done] += f"{one.phase} {one.doing} {one.stopped_early}".encode()
        lives.append((seen, [note.message for note in one.notices]))
    assert lives[0] == lives[1] == lives[2]
    assert len(set(lives[0][0].values())) > 5, "it moved"
