"""The simulated robot as a whole: it obeys commands, moves in time, and reports its state.

It knows clients by a key alone and has no sockets; its clock is advanced by whoever runs it.
"""

import math
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rote import messages as m
from rote.errors import BadRequestError, StoreError, UnsafeMotionError
from rote.messages import Code, Mode, Phase
from rote.model import G1_JOINTS, TAUGHT_JOINTS
from rote.motion.track import Array
from rote.sim.body import GRAVITY_M_S2, REST_RAD, STEP_S, Body, Hand
from rote.sim.fsm import Activity, Input, Machine
from rote.sim.hands import ScriptedHand
from rote.sim.player import Playback
from rote.sim.presets import PRESETS, RELEASE, motion_of
from rote.sim.refusal import RefusalError
from rote.sim.store import Store, StoredAction

RECORD_EVERY = 5
"""Steps between two samples of a recording: 100 Hz."""
KEEP_ALIVE_S = 13.5
"""Three periods without a keep-alive, and the arms hold again."""
OWN_LENGTH_S = 0.25
"""A save whose duration is this near to the recording's own means the recording's own."""
_ALL = tuple(range(len(G1_JOINTS)))
_MASS_KG = 33.34


RECORDING_ID, PLAYING_ID = -1, 100
"""What a G1 says its arms do while it records, and while it plays a taught action."""


class Doing(NamedTuple):
    """What the arms do: 0 nothing, -1 recording, 100 playing, 99 returning, else a preset's id."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something a person watching the robot would like to read."""

    time_s: float
    words: str


class World:
    """One simulated G1."""

    def __init__(self, store: Store, *, mode: Mode = Mode.WALK, seed: int = 0) -> None:
        self.store = store
        self.body = Body()
        self.machine = Machine(mode)
        self.time_s = 0.0
        self.notices: list[Notice] = []
        """The newest hundred; whoever shows them clears them."""
        self._random = np.random.default_rng(seed)
        self._steps = 0
        self._buffer: list[Array] = []
        self._recording = False
        self._teacher: Hashable | None = None
        self._keep_until_s = 0.0
        self._playback: Playback | None = None
        self._player: Hashable | None = None
        self._stopped_early = False
        self._doing = Doing(0, "")
        self._hold = REST_RAD
        self._still = np.zeros(len(G1_JOINTS))
        self._follow_mode()

    # ---- time -----------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / STEP_S)):
            self._step()

    def _step(self) -> None:
        self._steps += 1
        self.time_s = self._steps * STEP_S
        if self.machine.advance(self.time_s):
            self._note(f"mode is now {self.machine.mode.name.lower()}")
            self._follow_mode()
        if self.machine.activity is Activity.TEACHING and self.time_s >= self._keep_until_s:
            self._note("no keep-alive: teaching ends, the arms hold")
            self._end_teaching(Input.EXIT)
        target, speed = self._hold, self._still
        if self._playback is not None:
            setpoint = self._playback.step()
            if setpoint is None:
                self._playback, self._hold = None, REST_RAD
            else:
                target, speed = setpoint.pose_rad, setpoint.speed_rad_s
            self._follow_playback()
        self.body.step(self.time_s, target, speed)
        if self._recording and self._steps % RECORD_EVERY == 0:
            self._sample()

    def _sample(self) -> None:
        self._buffer.append(self.body.positions_rad.copy())
        if len(self._buffer) * STEP_S * RECORD_EVERY >= m.MAX_DURATION_MS / 1000.0:
            self._note("the recording is full (180 s)")
            self._recording = False

    def _follow_playback(self) -> None:
        phase = Phase.NONE if self._playback is None else self._playback.phase
        if self.machine.activity is Activity.PLAYING and phase in (Phase.RETURN, Phase.NONE):
            self.machine.act(Input.END)
            self._note("playback ended")

    def _follow_mode(self) -> None:
        """Make soft or stiff what the mode asks for; leave nothing running that it forbids."""
        if not self.machine.stiff:
            self._give_way()
            return
        if not self.machine.balanced and self.machine.activity is not Activity.IDLE:
            self._stop(None, m.StopMotion())
        if self.machine.activity is not Activity.TEACHING:
            was_soft = bool(self.body.soft)
            self.body.soften(())
            if was_soft:
                self._playback = Playback.returning(self.body.positions_rad)

    def _give_way(self) -> None:
        if self.machine.activity is Activity.TEACHING:
            self.body.attach(None, self.time_s)
        self._stopped_early |= self.machine.activity is Activity.PLAYING
        self._recording, self._teacher, self._playback = False, None, None
        self.machine.act(Input.STOP)
        self.body.soften(_ALL, cancels=0.0, damped=self.machine.mode is Mode.DAMP)

    # ---- what a client can ask ------------------------------------------------------------------

    def obey(self, client: Hashable, command: m.Command) -> m.Reply:
        """Carry out a command, or refuse it; never raises."""
        try:
            if isinstance(command, m.ListActions):
                return m.ActionList(self.store.entries())
            handler = _HANDLERS.get(type(command))
            if handler is None:
                raise RefusalError(Code.UNKNOWN_COMMAND)
            handler(self, client, command)
        except RefusalError as refusal:
            return m.Status(refusal.code)
        except UnsafeMotionError as error:
            self._note(f"refused: {error}")
            return m.Status(Code.UNSAFE)
        except StoreError as error:
            self._note(str(error))
            return m.Status(Code.STORE_FAILED)
        return m.Status(Code.OK)

    def forget(self, client: Hashable) -> None:
        """The client is gone: what only it could end, ends safely."""
        if self._teacher == client:
            self._note("the teacher is gone: the arms hold")
            self._end_teaching(Input.EXIT)
        if self._player == client and self._playback is not None and self._playback.loops:
            self._note("nobody watches the loop any more: it stops")
            self._stop(client, m.StopMotion())

    def _change_mode(self, _: Hashable, command: m.ChangeMode) -> None:
        self.machine.change_mode(command.mode, self.time_s)

    def _move_by_hand(self, client: Hashable, command: m.MoveByHand) -> None:
        self._need_teacher(client)
        try:
            hand = ScriptedHand(command.script, command.duration_ms / 1000.0)
        except BadRequestError as error:
            self._note(str(error))
            raise RefusalError(Code.BAD_PAYLOAD) from None
        self.attach(hand)

    def attach(self, hand: Hand | None) -> None:
        """Let a hand of your own take hold of the robot; None takes it away."""
        self.body.attach(hand, self.time_s)

    def _rename(self, _: Hashable, command: m.RenameAction) -> None:
        if m.name_problem(command.new):
            raise RefusalError(Code.BAD_PAYLOAD)
        self.store.rename(command.old, command.new)
        self._note(f"renamed {command.old!r} to {command.new!r}")

    def _delete(self, _: Hashable, command: m.DeleteAction) -> None:
        self.store.delete(command.name)
        self._note(f"deleted {command.name!r}")

    def _enter(self, client: Hashable, command: m.EnterTeaching) -> None:
        if self.machine.activity is Activity.TEACHING and self._teacher != client:
            raise RefusalError(Code.BUSY)
        self.machine.act(Input.TEACH)
        # What is not taught stays where it is, even in the middle of a return.
        self._teacher, self._playback, self._hold = client, None, self.body.setpoint_rad
        self._doing = Doing(RECORDING_ID, command.name)
        self._keep_until_s = self.time_s + KEEP_ALIVE_S
        self.body.soften(TAUGHT_JOINTS)
        self._note("teaching: the arms are soft")

    def _need_teacher(self, client: Hashable) -> None:
        if self.machine.activity is not Activity.TEACHING or self._teacher != client:
            raise RefusalError(Code.NOT_TEACHING)

    def _keep(self, client: Hashable, _: m.KeepTeaching) -> None:
        self._need_teacher(client)
        self._keep_until_s = self.time_s + KEEP_ALIVE_S

    def _exit(self, client: Hashable, _: m.ExitTeaching) -> None:
        if self.machine.activity is Activity.TEACHING:
            if self._teacher != client:
                raise RefusalError(Code.BUSY)
            self._end_teaching(Input.EXIT)

    def _end_teaching(self, event: Input) -> None:
        self.machine.act(event)
        self._recording, self._teacher = False, None
        self.body.attach(None, self.time_s)
        self.body.soften(())
        self._playback = Playback.returning(self.body.positions_rad)
        self._note("teaching ended: the arms hold")

    def _record(self, client: Hashable, command: m.Record) -> None:
        if command.on:
            self._need_teacher(client)
            if self._recording:
                raise RefusalError(Code.BUSY)
            self._buffer, self._recording = [], True
            self._note("recording")
        elif self._recording:
            self._need_teacher(client)
            self._recording = False

    def _save(self, _: Hashable, command: m.SaveAction) -> None:
        if not command.save or not 1 <= command.duration_ms <= m.MAX_DURATION_MS:
            raise RefusalError(Code.BAD_PAYLOAD)
        if m.name_problem(command.name):
            raise RefusalError(Code.BAD_PAYLOAD)
        _check_keyframes(command.keyframes)
        if command.keyframes:
            if any(k.time_ms > command.duration_ms for k in command.keyframes):
                raise RefusalError(Code.BAD_PAYLOAD)
            self.store.save(self._keyframed(command))
        else:
            self._check_buffer(command.frames)
            self.store.save(self._recorded(command))
            self._buffer = []
        self._note(f"saved {command.name!r}")

    def overwrite(self, command: m.SaveAction) -> None:
        """Save the recording, over an older action of the same name: the services' way."""
        if len(self._buffer) >= 2:
            self.store.save(self._recorded(command), replace=True)
            self._buffer = []
            self._note(f"saved {command.name!r}")

    def _check_buffer(self, frames: int) -> None:
        if self._recording:
            raise RefusalError(Code.BUSY)
        if len(self._buffer) < 2:
            raise RefusalError(Code.NOTHING_RECORDED)
        if frames > len(self._buffer):
            raise RefusalError(Code.BAD_PAYLOAD)

    def _keyframed(self, command: m.SaveAction) -> StoredAction:
        return StoredAction(
            name=command.name,
            created_s=command.created_s,
            duration_ms=command.duration_ms,
            loop=command.loop,
            keyframes=command.keyframes,
        )

    def _recorded(self, command: m.SaveAction) -> StoredAction:
        joints = np.array(self._buffer[: command.frames or None])
        times_s = np.arange(len(joints), dtype=np.float64) * (STEP_S * RECORD_EVERY)
        own_ms = max(1, round(float(times_s[-1]) * 1000))
        # The client's clock is not the robot's: nearly the recording's length means just that.
        meant_own = abs(own_ms - command.duration_ms) <= OWN_LENGTH_S * 1000
        return StoredAction(
            name=command.name,
            created_s=command.created_s,
            duration_ms=own_ms if meant_own else command.duration_ms,
            loop=command.loop,
            times_s=times_s,
            joints_rad=joints,
        )

    def _play(self, client: Hashable, command: m.PlayAction) -> None:
        _check_keyframes(command.keyframes)
        action = self.store.load(command.action)
        if action is None:
            raise RefusalError(Code.NO_SUCH_ACTION)
        if not self.machine.balanced:
            raise RefusalError(Code.WRONG_STATE)
        if self.machine.activity is not Activity.IDLE:
            raise RefusalError(Code.BUSY)
        self._begin_playing(client, action, command, Doing(PLAYING_ID, action.name))

    def _play_preset(self, client: Hashable, command: m.PlayPreset) -> None:
        preset = PRESETS.get(command.id)
        if preset is None:
            raise RefusalError(Code.NO_SUCH_ACTION)
        if not self.machine.balanced or (preset.fsm and self.machine.mode not in preset.fsm):
            raise RefusalError(Code.WRONG_STATE)
        if self.machine.activity is not Activity.IDLE:
            raise RefusalError(Code.BUSY)
        if preset.id == RELEASE:
            self._playback = Playback.returning(self.body.setpoint_rad)
            return
        doing = Doing(preset.id, preset.name)
        self._begin_playing(client, motion_of(preset), m.PlayAction(action=1), doing)

    def _begin_playing(
        self, client: Hashable, action: StoredAction, command: m.PlayAction, doing: "Doing"
    ) -> None:
        playback = Playback(action, command, self.body.setpoint_rad)
        self.machine.act(Input.PLAY)
        self._playback, self._player, self._stopped_early = playback, client, False
        self._doing = doing
        self._note(f"playing {action.name!r}")

    def _stop(self, _: Hashable, __: m.StopMotion) -> None:
        if self.machine.activity is Activity.TEACHING:
            self._end_teaching(Input.STOP)
        elif self.machine.activity is Activity.PLAYING and self._playback is not None:
            self._playback.stop()
            self._stopped_early = True
            self.machine.act(Input.STOP)
            self._note("stopped: the arms return softly")

    # ---- what a client can see ------------------------------------------------------------------

    @property
    def doing(self) -> "Doing":
        """What the arms do, as a G1's state topic numbers it."""
        if self.machine.activity is not Activity.IDLE:
            return self._doing
        if self._playback is not None:
            return Doing(RELEASE, PRESETS[RELEASE].name)
        return Doing(0, "")

    @property
    def recording(self) -> bool:
        """Whether samples are being taken."""
        return self._recording

    def state(self) -> m.RobotState:
        """Return what the robot reports now, with a sensor's noise."""
        noise = self._random.standard_normal(10)
        return m.RobotState(
            mode=self.machine.mode,
            arms_soft=bool(self.body.soft),
            recording=self._recording,
            phase=Phase.NONE if self._playback is None else self._playback.phase,
            stopped_early=self._stopped_early,
            positions_rad=tuple(self.body.positions_rad.tolist()),
            velocities_rad_s=tuple(self.body.speeds_rad_s.tolist()),
            accelerometer_m_s2=tuple((noise[:3] * 0.02 + (0, 0, GRAVITY_M_S2)).tolist()),
            gyroscope_rad_s=tuple((noise[3:6] * 0.002).tolist()),
            foot_force_n=tuple((_MASS_KG * GRAVITY_M_S2 / 4 + noise[6:] * 0.5).tolist()),
            time_us=round(self.time_s * 1e6),
        )

    def _note(self, words: str) -> None:
        self.notices.append(Notice(self.time_s, words))
        del self.notices[:-100]


def _check_keyframes(keyframes: tuple[m.Keyframe, ...]) -> None:
    """Every number that reaches the joints is checked here too, whichever wire brought it."""
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < len(G1_JOINTS) or not math.isfinite(keyframe.value_rad):
            raise RefusalError(Code.BAD_PAYLOAD)


_HANDLERS: dict[type, Callable[..., None]] = {
    m.ChangeMode: World._change_mode,
    m.MoveByHand: World._move_by_hand,
    m.RenameAction: World._rename,
    m.DeleteAction: World._delete,
    m.PlayPreset: World._play_preset,
    m.EnterTeaching: World._enter,
    m.KeepTeaching: World._keep,
    m.ExitTeaching: World._exit,
    m.Record: World._record,
    m.SaveAction: World._save,
    m.PlayAction: World._play,
    m.StopMotion: World._stop,
}
