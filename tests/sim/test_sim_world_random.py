"""Random clients, commands and times: the robot never breaks, and a stop always helps."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from g1_29 import LOWER_RAD, UPPER_RAD
from rote import messages as m
from rote.messages import Code, Interpolation
from rote.model.g1 import MODES, Mode
from rote.motion.track import Array
from rote.sim.fsm import ArmActivity
from rote.sim.hands import SCRIPTS
from rote.sim.store import Store
from rote.sim.world import World
from sampled import sample_examples

CLIENTS = st.sampled_from(["ann", "bob", "eve"])
CODES = frozenset(Code)
WAY_UP = {
    Mode.ZERO_TORQUE: Mode.DAMP,
    Mode.DAMP: Mode.LOCK_STAND,
    Mode.LOCK_STAND: Mode.WALK,
}
FRAMES = st.sampled_from([0, 0, 0, 1, 2, 30, 2**32 - 1])

# What the wires let through: joints that exist, numbers that are numbers, names that are names.
KEYFRAMES = st.lists(
    st.builds(
        m.Keyframe,
        joint=st.integers(0, 28),
        time_ms=st.one_of(st.integers(0, 800), st.just(65535)),
        value_rad=st.floats(-1.5, 1.5, width=32),
    ),
    max_size=4,
).map(tuple)
SAVES = st.builds(
    m.SaveAction,
    name=st.sampled_from("abcdefghijklmnopqr"),
    created_s=st.integers(0, 2**32 - 1),
    duration_ms=st.sampled_from([0, 1, 300, 800, 1500, 180_000, 180_001, 2**32 - 1]),
    frames=FRAMES,
    loop=st.booleans(),
    save=st.sampled_from([True, True, True, False]),
    keyframes=KEYFRAMES,
)
PLAYS = st.builds(
    m.PlayAction,
    action=st.sampled_from([1, 1, 2, 3, 14, 15, 0, 16, 2**32 - 1]),
    frames=FRAMES,
    duration_ms=st.sampled_from([0, 0, 1, 500, 1500, 180_001]),
    interpolation=st.sampled_from(Interpolation),
    loop=st.booleans(),
    keyframes=st.one_of(st.just(()), KEYFRAMES),
)
MODE_CHANGES = st.builds(m.ChangeMode, st.sampled_from([*Mode, 2, 2**32 - 1]))
PRESET_IDS = st.sampled_from([15, 15, 27, 1, 20, 99, 99, 77])
HANDS = st.builds(
    m.MoveByHand,
    st.sampled_from([*SCRIPTS, "moonwalk"]),
    st.sampled_from([0, 300, 1500, 180_000, 180_001]),
)
OTHERS = st.sampled_from(
    [
        m.KeepTeaching(),
        m.ExitTeaching(),
        m.Record(on=False),
        m.ListActions(),
        m.StopMotion(),
        m.PauseRecording(True),
        m.PauseRecording(False),
        m.TakeControl(),
        m.SyncParameters(b"?"),
    ]
)


class Puller:
    """A hand that pulls wherever it can reach."""

    def __init__(self, wants_rad: float) -> None:
        self._wants_rad = wants_rad

    def grip(self, time_s: float) -> Array | None:
        return np.full(29, self._wants_rad) if time_s < 1.0 else None


class Visitors(RuleBasedStateMachine):
    """Three clients who do what they like."""

    moments: ClassVar[tuple[float, ...]] = (0.002, 0.01, 0.1, 0.5, 1.5)

    def __init__(self) -> None:
        super().__init__()
        self.store = Store(":memory:")
        self.world = World(self.store)

    @initialize(stored=st.sampled_from([0, 3, 14]), mode=st.sampled_from([*Mode, Mode.WALK]))
    def begin(self, stored: int, mode: Mode) -> None:
        self.world = World(self.store, mode=mode)
        keyframes = (m.Keyframe(joint=25, time_ms=300, value_rad=0.5),)
        for number in range(stored):
            save = m.SaveAction(
                name=f"old {number}", created_s=0, duration_ms=400, keyframes=keyframes
            )
            assert self.ask("ann", save) == Code.OK

    def ask(self, client: str, command: m.Command) -> int:
        reply = self.world.obey(client, command)
        if isinstance(reply, m.ActionList):
            assert len(reply.actions) <= 15
            return Code.OK
        assert isinstance(reply, m.Status)
        assert reply.code in CODES
        return reply.code

    @rule(client=CLIENTS, record=st.booleans(), hand=st.none() | HANDS)
    def teach(self, client: str, record: bool, hand: m.MoveByHand | None) -> None:
        if self.ask(client, m.EnterTeaching()) == Code.OK:
            assert self.world.state().arms_soft
            if record:
                assert self.ask(client, m.Record(on=True)) in (Code.OK, Code.BUSY)
        if hand is not None:
            self.ask(client, hand)

    @rule(client=CLIENTS, play=PLAYS)
    def play(self, client: str, play: m.PlayAction) -> None:
        if self.ask(client, play) == Code.OK:
            assert self.world.state().playing

    @rule(client=CLIENTS, preset=PRESET_IDS)
    def play_preset(self, client: str, preset: int) -> None:
        if self.ask(client, m.PlayPreset(preset)) == Code.OK:
            assert self.world.doing.id != 0

    @rule(client=CLIENTS)
    def teach_by_name(self, client: str) -> None:
        if self.ask(client, m.EnterTeaching(name="a")) == Code.OK:
            assert self.world.recording
            assert self.world.doing == (-1, "a")

    @rule(client=CLIENTS, save=SAVES)
    def save(self, client: str, save: m.SaveAction) -> None:
        before = self.store.entries()
        code = self.ask(client, save)
        after = self.store.entries()
        assert after[: len(before)] == before
        assert len(after) == len(before) + (code == Code.OK)

    @rule(client=CLIENTS, command=MODE_CHANGES)
    def change_mode(self, client: str, command: m.ChangeMode) -> None:
        self.ask(client, command)

    @rule(client=CLIENTS, command=OTHERS)
    def say(self, client: str, command: m.Command) -> None:
        self.ask(client, command)

    @rule(client=CLIENTS)
    def leave(self, client: str) -> None:
        self.world.forget(client)

    @rule(wants_rad=st.sampled_from([-4.0, 0.0, 4.0]))
    def pull(self, wants_rad: float) -> None:
        self.world.attach(Puller(wants_rad))

    @rule(data=st.data())
    def wait(self, data: st.DataObject) -> None:
        self.world.advance(data.draw(st.sampled_from(self.moments)))

    @rule(seconds=st.sampled_from([0.02, 0.4]))
    def wait_a_little(self, seconds: float) -> None:
        self.world.advance(seconds)

    @invariant()
    def the_arms_are_soft_only_where_they_may_be(self) -> None:
        limp = not MODES[Mode(self.world.machine.mode)].stiff
        teaching = self.world.machine.activity is ArmActivity.TEACHING
        assert self.world.state().arms_soft == (limp or teaching)

    @invariant()
    def a_recording_needs_a_teacher(self) -> None:
        assert not self.world.recording or self.world.machine.activity is ArmActivity.TEACHING

    @invariant()
    def joints_are_within_their_limits_and_finite(self) -> None:
        body = self.world.body
        assert ((body.joints_rad >= LOWER_RAD) & (body.joints_rad <= UPPER_RAD)).all()
        assert np.isfinite(body.speeds_rad_s).all()
        assert np.abs(body.speeds_rad_s).max() < 40.0
        assert np.isfinite(body.torques_nm).all()

    @invariant()
    def arms_that_hold_a_pose_do_nothing_else(self) -> None:
        if self.world.holding:
            assert self.world.machine.activity is ArmActivity.IDLE
            assert self.world.machine.stiff
            assert self.world.doing.id == 15

    @invariant()
    def the_store_holds_what_it_can(self) -> None:
        assert len(self.store.entries()) <= 15

    def teardown(self) -> None:
        try:
            self.check_a_stop_and_some_time_make_it_usable()
        finally:
            self.store.close()

    def check_a_stop_and_some_time_make_it_usable(self) -> None:
        assert self.ask("eve", m.StopMotion()) == Code.OK
        assert self.world.machine.activity is ArmActivity.IDLE
        for _ in range(60):
            if self.world.machine.balanced and not self.world.occupied:
                break
            self.ask("eve", m.ChangeMode(WAY_UP.get(Mode(self.world.machine.mode), Mode.WALK)))
            self.world.advance(0.1)
        assert self.world.machine.balanced
        assert not self.world.state().arms_soft
        assert self.ask("new", m.EnterTeaching()) == Code.OK
        assert self.ask("new", m.Record(on=True)) == Code.OK
        self.world.advance(0.05)
        assert self.ask("new", m.Record(on=False)) == Code.OK
        assert self.ask("new", m.ExitTeaching()) == Code.OK


class PatientVisitors(Visitors):
    """Visitors who also wait for the keep-alive to run out."""

    moments: ClassVar[tuple[float, ...]] = (0.002, 0.1, 0.5, 1.5, 4.0, 14.0)


def test_random_visitors_never_break_the_robot_and_a_stop_makes_it_usable() -> None:
    run_state_machine_as_test(
        Visitors, settings=settings(sample_examples(15), stateful_step_count=30)
    )


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_many_patient_visitors_never_break_the_robot() -> None:
    chosen = settings(max_examples=400, stateful_step_count=50)
    run_state_machine_as_test(PatientVisitors, settings=chosen)
