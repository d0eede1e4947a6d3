"""The simulated robot as a whole: it obeys commands, moves in time, and reports its state.

It identifies clients by a key and has no sockets; the caller advances its clock.
"""

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from rote import messages as m
from rote.errors import BadRequestError, StoreError, StoreLockedError, UnsafeMotionError
from rote.messages import Code, Phase
from rote.model.family import MAX_MOTION_S, Build, Family
from rote.motion.record import bridge_poses
from rote.motion.track import Array
from rote.sim.behaviour import POLITE, draw_measured
from rote.sim.body import STEP_S, PullingHand, SimBody
from rote.sim.columns import DEFAULT_BUILD, Columns
from rote.sim.firmware import Firmware, firmware_of, modes_of, unknown_modes
from rote.sim.fsm import ArmActivity, ArmInput, Machine
from rote.sim.hands import ScriptedHand
from rote.sim.health import Health
from rote.sim.player import Playback
from rote.sim.presets import HOLD_S, POSES, PRESETS, RELEASE, SimPreset, motion_of, presets_of
from rote.sim.refusal import RefusalError
from rote.sim.safety import MotionCheckCache
from rote.sim.saving import (
    RECORD_EVERY,
    action_from_keyframes,
    action_from_recording,
    check_keyframes,
    describe_disagreement,
)
from rote.sim.sensors import PLAYING_ID, RECORDING_ID, ArmStateCode, Sensors
from rote.sim.store import Store
from rote.sim.streaming import StreamedPlayback
from rote.sim.voice import Voice

KEEP_ALIVE_S = 13.5
"""After three periods without a keep-alive, the arms hold again."""
KEEP_NAMED_S = 10.0
"""The same for a teaching that was named at its start, as a G1's services do."""
HOLD_TAUGHT_S = 5.0
"""How long the arms hold after a teaching by the documented frames before they return by
themselves. After a teaching by the services they return as in the logs: see `Behaviour`."""
HEALTH_EVERY = 50
"""Steps between two updates of battery and motors: 10 Hz."""
CONTROLLER = "ai"
"""The controller of a G1."""


@dataclass(frozen=True, slots=True)
class SimNotice:
    """A message for the operator who watches the robot."""

    time_s: float
    message: str


class World:
    """One simulated robot, of any build."""

    def __init__(
        self,
        store: Store,
        *,
        build: Build = DEFAULT_BUILD,
        mode: int | None = None,
        seed: int = 0,
        firmware: Firmware | None = None,
        polite: bool = False,
    ) -> None:
        """Create a robot; a `polite` one has none of the delays of a real one."""
        self.store = store
        self._columns = Columns(build)
        self.firmware = firmware or firmware_of(build)
        if polite:
            self.firmware = replace(self.firmware, behaviour=POLITE)
        self.body = SimBody(build)
        self.health, self.voice = Health(time.time(), build), Voice()
        self.machine = Machine(modes_of(build), self._first_mode() if mode is None else mode)
        self.controller = CONTROLLER
        """Which controller drives the robot; none in debug mode. See `drive`."""
        self.time_s = 0.0
        self.notices: list[SimNotice] = []
        """The newest hundred; the code that shows them clears the list."""
        self.stopped_early = False
        """Whether the last playback did not run to its end."""
        self._sensors = Sensors(build, seed)
        self._checks = MotionCheckCache()
        self._chance = np.random.default_rng((seed, 1))
        self._steps = 0
        self._buffer: list[Array] = []
        self._recording = self._paused = self._resumed = False
        self._teacher, self._teaching_name = cast("Hashable | None", None), ""
        self._taught_since_s = self._kept_s = 0.0
        self._playback: Playback | None = None
        """The playback waits until this time."""
        self._player: Hashable | None = None
        self._doing = ArmStateCode(0, "")
        self._performed: SimPreset | None = None
        self._held: SimPreset | None = None
        self._starts_s = self._release_at_s = self._released_s = 0.0
        self._return_at_s: float | None = None
        """When the arms return that hold after a teaching."""
        self._lingers_s = self._occupied_s = 0.0
        """Until when the state still shows the last teaching, and until when the arms cannot be
        used.
        """
        self._unlisted, self._listed_s = "", 0.0
        self._release_requested = False
        self._hold_rad = self._columns.rest_rad
        self._zero_rad_s = np.zeros(len(build.joints))
        self._apply_mode()

    @property
    def build(self) -> Build:
        """Which robot it is."""
        return self._columns.build

    @property
    def family(self) -> Family:
        """The family of its build."""
        return self._columns.family

    def _first_mode(self) -> int:
        """Return the mode after a normal start."""
        modes, standing = self.family.modes, self.firmware.standing
        return modes.standing if standing is None or modes.find(standing) is None else standing

    # ---- time -----------------------------------------------------------------------------------

    def advance(self, seconds: float) -> None:
        """Advance time."""
        last = self._steps + round(seconds / STEP_S)
        while self._steps < last:
            self._advance_playback(last - self._steps)
            if self._steps < last:
                self._advance_step()

    def _advance_playback(self, most: int) -> None:
        """Take up to `most` steps at once while a playback runs and nothing else can become due.

        The result is the same as taking them one by one.
        """
        playback = self._playback
        if (
            playback is None
            or self.machine.changing
            or self.machine.activity is ArmActivity.TEACHING
            or self._held is not None
            or self.body.held_by_hand
            or self._playback_has_ended
            or (self._steps + 1) * STEP_S < self._starts_s
        ):
            return
        before_health = HEALTH_EVERY - 1 - self._steps % HEALTH_EVERY
        poses_rad, speeds_rad_s = playback.next_steps(min(most, before_health))
        if len(poses_rad):
            self.body.run(poses_rad, speeds_rad_s)
            self._steps += len(poses_rad)
            self.time_s = self._steps * STEP_S

    def _advance_step(self) -> None:
        self._steps += 1
        self.time_s = self._steps * STEP_S
        if self.machine.advance(self.time_s):
            self.note(f"mode is now {self.machine.facts.name}")
            self._apply_mode()
        if self.machine.activity is ArmActivity.TEACHING:
            self._watch_teaching()
        if self._held is not None and self.time_s >= self._release_at_s:
            self._release_arms()
        if self._return_at_s is not None and self.time_s >= self._return_at_s:
            self._release_arms()
        if self._steps % HEALTH_EVERY == 0:
            self.health.advance(self.time_s, HEALTH_EVERY * STEP_S, self.body.torques_nm)
        target, speed = self._hold_rad, self._zero_rad_s
        if self._playback is not None and self.time_s >= self._starts_s:
            setpoint = self._playback.step()
            if setpoint is None:
                self._playback, self._hold_rad = None, self._columns.rest_rad
                target = self._hold_rad  # not where something before it held them
            else:
                target, speed = setpoint.pose_rad, setpoint.speed_rad_s
            self._end_finished_playback()
        self.body.step(self.time_s, target, speed)
        if self.recording and self._steps % RECORD_EVERY == 0:
            self._record_sample()

    def _watch_teaching(self) -> None:
        """End a teaching without keep-alives, and a teaching of the services when it is full."""
        behaviour = self.firmware.behaviour
        lapse_s = behaviour.lapse_s or (KEEP_NAMED_S if self._teaching_name else KEEP_ALIVE_S)
        if self.time_s >= self._kept_s + lapse_s:
            self.note("no keep-alive: teaching ends, the arms hold")
            self._end_teaching(ArmInput.EXIT, keep=behaviour.lapse_keeps)
        elif self._teaching_name and self.time_s >= self._taught_since_s + MAX_MOTION_S:
            self.note(f"teaching ends after {MAX_MOTION_S:g} s")
            self._end_teaching(ArmInput.EXIT, keep=True)

    def _record_sample(self) -> None:
        pose_rad = self.body.joints_rad.copy()
        if self._resumed and self._buffer:
            # Bridge a motion during the pause by a soft move, as in a take.
            self._buffer += list(bridge_poses(self._buffer[-1], pose_rad, STEP_S * RECORD_EVERY))
        self._resumed = False
        self._buffer.append(pose_rad)
        if len(self._buffer) * STEP_S * RECORD_EVERY >= MAX_MOTION_S:
            self.note(f"the recording is full ({MAX_MOTION_S:g} s)")
            self._recording = False

    def _end_finished_playback(self) -> None:
        if self._playback_has_ended:
            self.machine.act(ArmInput.END)
            self.note("playback ended")
            self._after_playing()

    @property
    def _playback_has_ended(self) -> bool:
        """Whether the playback has ended and this has not been handled yet."""
        if self.machine.activity is not ArmActivity.PLAYING:
            return False
        if isinstance(self._playback, StreamedPlayback):
            return not self._playback.following
        return self.phase in (Phase.RETURN, Phase.NONE)

    def _after_playing(self) -> None:
        """Release the arms, or keep the last pose of a preset that holds."""
        preset, self._performed = self._performed, None
        if preset is None:
            self._begin_release()
        elif self._release_requested:
            self._release_arms()
        elif preset.id in POSES:
            self._held, self._release_at_s = preset, self.time_s + HOLD_S
            self._playback, self._hold_rad = None, self.body.setpoint_rad

    def _release_arms(self) -> None:
        """Return softly to rest, like the preset `release_arm`."""
        self._held, self._release_requested, self._return_at_s = None, False, None
        self._begin_release()
        self._playback = Playback.returning(self.body.setpoint_rad, self.build)

    def _begin_release(self) -> None:
        """Report from now on that the arms return."""
        self._released_s = self.time_s + self.firmware.behaviour.release_s
        self._starts_s = 0.0
        if self.firmware.quirks.busy_after_playing:
            self._occupied_s = self._released_s

    def _apply_mode(self) -> None:
        """Make joints soft or stiff as the mode requires, and stop what the mode forbids."""
        if not self.machine.stiff:
            self._go_limp()
            return
        if not self.machine.balanced:
            self._stop_motion(None, m.StopMotion())
        if self.machine.activity is not ArmActivity.TEACHING:
            was_soft = bool(self.body.soft)
            self.body.soften(())
            if was_soft:
                self._starts_s = 0.0
                self._playback = Playback.returning(self.body.joints_rad, self.build)

    def _go_limp(self) -> None:
        if self.machine.activity is ArmActivity.TEACHING:
            self.body.attach(None, self.time_s)
        self.stopped_early |= self.machine.activity is ArmActivity.PLAYING
        self._recording, self._teacher, self._playback = False, None, None
        self._teaching_name, self._performed, self._held = "", None, None
        self._return_at_s = None
        self._starts_s = self._released_s = self._lingers_s = self._occupied_s = 0.0
        self.machine.act(ArmInput.STOP)
        every = tuple(range(len(self.build.joints)))
        self.body.soften(every, cancels=0.0, damped=self.machine.damped)

    # ---- commands -------------------------------------------------------------------------------

    def obey(self, client: Hashable, command: m.Command) -> m.Reply:
        """Carry out a command, or refuse it; never raises."""
        try:
            if isinstance(command, m.ListActions):
                return m.ActionList(self.store.entries())
            if isinstance(command, m.ReadController):
                return m.Controller(self.controller)
            handler = _HANDLERS.get(type(command))
            if handler is None:
                raise RefusalError(Code.UNKNOWN_COMMAND)
            return m.Status(Code.OK, handler(self, client, command) or "")
        except RefusalError as refusal:
            if refusal.note:
                self.note(f"refused: {refusal.note}")
            return m.Status(refusal.code, refusal.note)
        except UnsafeMotionError as error:
            self.note(f"refused: {error}")
            return m.Status(Code.UNSAFE)
        except StoreError as error:
            self.note(str(error))
            locked = isinstance(error, StoreLockedError)
            return m.Status(Code.STORE_FAILED, "another program has locked it" if locked else "")

    def forget(self, client: Hashable) -> None:
        """Handle a client that has left: safely end what only it could end."""
        if self._teacher == client:
            self.note("the teacher is gone: the arms hold")
            self._end_teaching(ArmInput.EXIT)
        if self._player == client and self._playback is not None and self._playback.loops:
            self.note("the client of the loop has left: it stops")
            self._stop_motion(client, m.StopMotion())

    def drive(self, controller: str) -> None:
        """Set the controller; with none, the robot is in debug mode and its joints go limp."""
        self.controller = controller
        self.note(f"{controller!r} drives the robot" if controller else "debug mode")
        if not controller:
            self.machine.fall()
            self._apply_mode()

    def _change_mode(self, _: Hashable, command: m.ChangeMode) -> None:
        if not self.controller:
            raise RefusalError(Code.WRONG_STATE)
        if command.mode in unknown_modes(self.build):
            raise RefusalError(Code.BAD_PAYLOAD)
        if command.mode in self.firmware.ignored:
            self.note(
                f"mode {command.mode:d} is accepted but not entered, as by firmware "
                f"{self.firmware.version}"
            )
            return
        self.machine.change_mode(command.mode, self.time_s)

    def _move_by_hand(self, client: Hashable, command: m.MoveByHand) -> None:
        self._require_teacher(client)
        try:
            hand = ScriptedHand(command.script, command.duration_ms / 1000.0, self.build)
        except BadRequestError as error:
            self.note(str(error))
            raise RefusalError(Code.BAD_PAYLOAD) from None
        self.attach(hand)

    def attach(self, hand: PullingHand | None) -> None:
        """Attach a hand that pulls on the robot; None removes it."""
        self.body.attach(hand, self.time_s)

    def _rename_action(self, _: Hashable, command: m.RenameAction) -> None:
        if m.name_problem(command.new, in_use=True):
            raise RefusalError(Code.BAD_PAYLOAD)
        self.store.rename(command.old, command.new)
        self.note(f"renamed {command.old!r} to {command.new!r}")

    def _delete_action(self, _: Hashable, command: m.DeleteAction) -> None:
        self.store.delete(command.name)
        self.note(f"deleted {command.name!r}")

    def _enter_teaching(self, client: Hashable, command: m.EnterTeaching) -> None:
        if self.machine.activity is ArmActivity.TEACHING and (
            self._teacher != client or command.name
        ):
            raise self._busy_error(client)
        self._require_free_arms()
        self._require_able_arms()
        if (
            command.name
            and not self.firmware.behaviour.overwrites
            and self._has_action(command.name)
        ):
            raise RefusalError(Code.NAME_EXISTS)
        self.machine.act(ArmInput.TEACH)
        # Joints that are not taught stay where they are, even in the middle of a return.
        self._teacher, self._playback, self._hold_rad = client, None, self.body.setpoint_rad
        self._doing = ArmStateCode(RECORDING_ID, command.name)
        self._kept_s = self._taught_since_s = self.time_s
        self._teaching_name, self._paused = command.name, False
        self._starts_s = self._released_s = self._lingers_s = 0.0
        self._return_at_s = None
        self.body.soften(self.build.taught_columns)
        self.note("teaching: the arms are soft")
        if command.name:  # a client that names it at the start wants to record at once
            self._set_recording(client, m.Record(on=True))

    def _has_action(self, name: str) -> bool:
        return any(entry.name == name for entry in self.store.entries())

    def _require_able_arms(self) -> None:
        if self._held is not None:
            raise RefusalError(Code.HOLDING)
        if self.health.weak:
            raise RefusalError(Code.LOW_BATTERY)
        if self.health.motor_error:
            raise RefusalError(Code.MOTOR_ERROR)

    def _require_teacher(self, client: Hashable) -> None:
        if self.machine.activity is not ArmActivity.TEACHING or self._teacher != client:
            raise RefusalError(Code.NOT_TEACHING)

    def _keep_teaching(self, client: Hashable, _: m.KeepTeaching) -> None:
        self._require_teacher(client)
        self._kept_s = self.time_s

    def _exit_teaching(self, client: Hashable, _: m.ExitTeaching) -> None:
        if self.machine.activity is ArmActivity.TEACHING:
            if self._teacher != client:
                raise self._busy_error(client)
            self._end_teaching(ArmInput.EXIT, keep=True)

    def end_teaching(self) -> None:
        """End a teaching, whichever client began it, and keep what was recorded."""
        if self.teaching:
            self._end_teaching(ArmInput.EXIT, keep=True)

    def _end_teaching(self, event: ArmInput, *, keep: bool = False) -> None:
        """Make the arms hold; `keep` the recording if it was named at the start."""
        self.machine.act(event)
        if keep and self._teaching_name:
            self._store_recording(self._teaching_name)
        behaviour, named = self.firmware.behaviour, bool(self._teaching_name)
        # Only a teaching of the services has a name, and logs exist only for those.
        linger_s = behaviour.linger_for_s(self._chance) if named else 0.0
        self._lingers_s = self._starts_s = self.time_s + linger_s
        self._listed_s = self._lingers_s + behaviour.release_s
        self._released_s = self._listed_s if named else 0.0
        self._occupied_s = self._released_s if named and behaviour.busy_after_teaching else 0.0
        self._recording, self._teacher, self._teaching_name = False, None, ""
        self.body.attach(None, self.time_s)
        self.body.soften(())
        self._hold_rad = self.body.joints_rad.copy()
        if named:
            self._playback = Playback.returning(self.body.joints_rad, self.build)
        else:
            self._playback, self._return_at_s = None, self.time_s + HOLD_TAUGHT_S
        self.note("teaching ended: the arms hold")

    def _store_recording(self, name: str) -> None:
        """Store the recording, replacing an older action of that name, as the services do."""
        own_ms = round(1000 * STEP_S * RECORD_EVERY * (len(self._buffer) - 1))
        save = m.SaveAction(name=name, created_s=0, duration_ms=own_ms)
        try:
            if own_ms > 0:
                is_new = name not in {entry.name for entry in self.store.entries()}
                self.store.save(action_from_recording(self._buffer, save, self.build), replace=True)
                self._buffer = []
                self._unlisted = name if is_new else ""
                self.note(f"saved {name!r}")
        except RefusalError as refusal:
            self.note(f"{name!r} could not be saved: {m.explain(refusal.code)[0]}")
        except StoreError as error:
            self.note(f"{name!r} could not be saved: {error}")

    def _pause_recording(self, client: Hashable, command: m.PauseRecording) -> None:
        self._require_teacher(client)
        self._resumed |= self._paused and not command.paused
        self._paused = command.paused

    def _set_recording(self, client: Hashable, command: m.Record) -> None:
        if command.on:
            self._require_teacher(client)
            if self._recording:
                raise RefusalError(Code.BUSY)
            self._buffer, self._recording = [], True
            self._paused = self._resumed = False
            self.note("recording")
        elif self._recording:
            self._require_teacher(client)
            self._recording = False

    def _save_action(self, _: Hashable, command: m.SaveAction) -> str:
        if not command.save or not 1 <= command.duration_ms <= m.MAX_DURATION_MS:
            raise RefusalError(Code.BAD_PAYLOAD)
        if m.name_problem(command.name):
            raise RefusalError(Code.BAD_PAYLOAD)
        check_keyframes(command.keyframes, self.build)
        if command.keyframes:
            if any(k.time_ms > command.duration_ms for k in command.keyframes):
                raise RefusalError(Code.BAD_PAYLOAD)
            self.store.save(action_from_keyframes(command, self.build), replace=command.replace)
            self.note(f"saved {command.name!r}")
            return ""
        self._check_buffer()
        action = action_from_recording(self._buffer, command, self.build)
        self.store.save(action, replace=command.replace)
        self._buffer = []
        kept = describe_disagreement(action)
        stated = f"; the client said {command.frames} frames, {command.duration_ms / 1000:.2f} s"
        self.note(f"saved {command.name!r}" + (f": {kept}{stated}" if kept else ""))
        return kept

    def _check_buffer(self) -> None:
        if self._recording:
            raise RefusalError(Code.BUSY, _STILL_RECORDS)
        if len(self._buffer) < 2:
            raise RefusalError(Code.NOTHING_RECORDED)

    def _play_action(self, client: Hashable, command: m.PlayAction) -> None:
        check_keyframes(command.keyframes, self.build)
        action = self.store.load(command.action)
        if action is None:
            raise RefusalError(Code.NO_SUCH_ACTION)
        if not self.machine.balanced:
            raise RefusalError(Code.WRONG_STATE)
        self._require_free_arms()
        ends_teaching = self._may_end_teaching(client)
        if not ends_teaching:
            self._require_idle_arms(client)
        self._require_able_arms()
        # Soft arms are where a hand has led them; the setpoint does not show that.
        pose_rad = self.body.joints_rad.copy() if ends_teaching else self.body.setpoint_rad
        playback = Playback(action, command, pose_rad, self.build, self._checks)
        if ends_teaching:  # only after the playback was found safe
            self._end_teaching(ArmInput.EXIT)
        if self.firmware.quirks.never_moves:
            self.note(f"{action.name!r} is accepted but not played, because of a quirk")
            return
        self._begin_playing(client, playback, ArmStateCode(PLAYING_ID, action.name))

    def _may_end_teaching(self, client: Hashable) -> bool:
        """Whether a play first ends this client's own teaching: only an unnamed one (documented
        frames) whose recording was stopped."""
        if (
            self.machine.activity is not ArmActivity.TEACHING
            or self._teacher != client
            or self._teaching_name
        ):
            return False
        if self._recording:
            raise RefusalError(Code.BUSY, _STILL_RECORDS)
        return True

    def _begin_stream(self, client: Hashable, _: m.BeginStream) -> None:
        if self.build.stream is None:
            self.note(self.no_stream)
            raise RefusalError(Code.UNKNOWN_COMMAND)
        self._require_idle_arms(client)
        streamed = StreamedPlayback(self.body.setpoint_rad, self._stream_failed, self.build)
        self._begin_playing(client, streamed, ArmStateCode(PLAYING_ID, "a stream"))

    def _stream_failed(self, message: str) -> None:
        self.stopped_early = True
        self.note(message)

    def _follow_pose(self, client: Hashable, pose: m.StreamPose) -> None:
        if not isinstance(self._playback, StreamedPlayback) or self._player != client:
            raise RefusalError(Code.SUPERSEDED)
        self._playback.follow(pose)

    def _play_preset(self, client: Hashable, command: m.PlayPreset) -> None:
        preset = next((p for p in presets_of(self.build) if p.id == command.id), None)
        if preset is None:
            raise RefusalError(Code.NO_SUCH_ACTION)
        if not self.machine.balanced or (preset.fsm and self.machine.mode not in preset.fsm):
            raise RefusalError(Code.WRONG_STATE)
        if preset.id == RELEASE:
            self._request_release()
        elif preset is self._held:
            self._release_at_s = self.time_s + HOLD_S
        else:
            self._require_free_arms()
            self._require_idle_arms(client)
            if self.firmware.quirks.never_moves:
                self.note(f"{preset.name!r} is accepted but not played, because of a quirk")
                return
            motion = m.PlayAction(action=1)
            playback = Playback(
                motion_of(preset, self.build),
                motion,
                self.body.setpoint_rad,
                self.build,
                self._checks,
            )
            self._begin_playing(client, playback, ArmStateCode(preset.id, preset.name))
            self._performed = preset

    def _request_release(self) -> None:
        if self._performed is not None:
            self._release_requested = True  # a release does not interrupt a preset
        elif self.machine.activity is not ArmActivity.IDLE:
            raise RefusalError(Code.BUSY)
        else:
            self._release_arms()

    def _require_free_arms(self) -> None:
        if self.occupied:
            raise RefusalError(Code.BUSY)

    def _require_idle_arms(self, client: Hashable) -> None:
        if self.machine.activity is not ArmActivity.IDLE:
            raise self._busy_error(client)
        self._require_able_arms()

    def _busy_error(self, client: Hashable) -> RefusalError:
        """Return the refusal for arms in use; its note names the teaching client."""
        if self.machine.activity is not ArmActivity.TEACHING:
            return RefusalError(Code.BUSY)
        if self._teacher == client:
            return RefusalError(Code.BUSY, "you are teaching: leave it first")
        return RefusalError(Code.BUSY, _fit_note(f"{_client_name(self._teacher)} is teaching"))

    def _begin_playing(self, client: Hashable, playback: Playback, doing: ArmStateCode) -> None:
        self.machine.act(ArmInput.PLAY)
        self._playback, self._player, self.stopped_early = playback, client, False
        self._doing, self._performed = doing, None
        self._starts_s = self._released_s = self._lingers_s = 0.0
        self._release_requested, self._return_at_s = False, None
        self.note(f"playing {doing.name!r}")
        for message in playback.warnings:
            self.note(f"a warning: {message}")

    def draw(self, measured_s: tuple[float, ...]) -> float:
        """Draw a time from a measured distribution."""
        return draw_measured(measured_s, self._chance)

    def postpone(self, answer_s: float) -> None:
        """Delay the playback that was just accepted, according to the robot's behaviour.

        `answer_s` is when its answer is sent. Until then the arms and their state stay as they are.
        """
        delay_s = self.firmware.behaviour.start_delay_s(self._chance)
        if self.machine.activity is ArmActivity.PLAYING and delay_s and answer_s + delay_s > 0:
            self._hold_rad, self._starts_s = (
                self.body.setpoint_rad,
                self.time_s + answer_s + delay_s,
            )

    def _stop_motion(self, _: Hashable, __: m.StopMotion) -> None:
        if self.machine.activity is ArmActivity.TEACHING:
            self._end_teaching(ArmInput.STOP)
        elif self.machine.activity is ArmActivity.PLAYING and self._playback is not None:
            self._playback.stop()
            self.stopped_early, self._performed = True, None
            self._begin_release()
            self.machine.act(ArmInput.STOP)
            self.note("stopped: the arms return softly")
        elif self._held is not None:
            self._release_arms()
            self.note("stopped: the arms release their pose")
        elif self._return_at_s is not None:
            # After another stop, assume that the operator still holds the arms.
            self._return_at_s = self.time_s + HOLD_TAUGHT_S

    # ---- state ----------------------------------------------------------------------------------

    @property
    def doing(self) -> ArmStateCode:
        """The arms' activity, as numbered by a G1's state topic."""
        if self.machine.activity is ArmActivity.PLAYING and self.time_s < self._starts_s:
            return ArmStateCode(0, "")
        if self.machine.activity is not ArmActivity.IDLE:
            return self._doing
        if self._held is not None:
            return ArmStateCode(self._held.id, self._held.name)
        if self.time_s < self._lingers_s:
            return self._doing
        if self._playback is not None or self.time_s < self._released_s:
            return ArmStateCode(RELEASE, PRESETS[RELEASE].name)
        return ArmStateCode(0, "")

    @property
    def occupied(self) -> bool:
        """Whether nothing can be played or taught because the arms are being released."""
        return self.time_s < self._occupied_s

    @property
    def unlisted(self) -> str:
        """The taught action that is stored but not yet listed by the services; usually empty."""
        late = self.firmware.behaviour.lists_late and self.time_s < self._listed_s
        return self._unlisted if late else ""

    @property
    def no_stream(self) -> str:
        """Why nothing can be streamed to this robot."""
        why = self.build.no_stream or "its build has no stream"
        return f"{self.build.name} follows no stream: {why}"

    @property
    def phase(self) -> Phase:
        """The phase of a playback."""
        return Phase.NONE if self._playback is None else self._playback.phase

    @property
    def holding(self) -> bool:
        """Whether the arms keep the last pose of a preset."""
        return self._held is not None

    @property
    def holds_taught(self) -> bool:
        """Whether the arms hold their pose for a while after a teaching."""
        return self._return_at_s is not None

    @property
    def teaching(self) -> bool:
        """Whether the arms are soft for a client that teaches."""
        return self.machine.activity is ArmActivity.TEACHING

    @property
    def recording(self) -> bool:
        """Whether samples are being recorded."""
        return self._recording and not self._paused

    def state(self) -> m.RobotState:
        """Return the robot's current state, with sensor noise."""
        return self._sensors.read(self)

    def note(self, message: str) -> None:
        """Add a notice for the operator."""
        self.notices.append(SimNotice(self.time_s, message))
        del self.notices[:-100]


_STILL_RECORDS = "the recording still runs: stop it"


def _client_name(client: Hashable) -> str:
    """Return a client's address or name for notes."""
    if isinstance(client, tuple) and len(client) >= 2:
        host, port = str(client[0]), client[1]
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return client if isinstance(client, str) else "a client of its services"


def _fit_note(note: str) -> str:
    """Shorten a note to fit into a status: the address alone, or no address."""
    address = note.partition(" ")[0]
    for message in (note, address):
        if len(message.encode()) <= m.MAX_NOTE_BYTES:
            return message
    return "another client is teaching"


_HANDLERS: dict[type, Callable[..., str | None]] = {
    m.ChangeMode: World._change_mode,
    m.MoveByHand: World._move_by_hand,
    m.RenameAction: World._rename_action,
    m.DeleteAction: World._delete_action,
    m.PlayPreset: World._play_preset,
    m.EnterTeaching: World._enter_teaching,
    m.KeepTeaching: World._keep_teaching,
    m.ExitTeaching: World._exit_teaching,
    m.Record: World._set_recording,
    m.PauseRecording: World._pause_recording,
    m.SaveAction: World._save_action,
    m.PlayAction: World._play_action,
    m.BeginStream: World._begin_stream,
    m.StreamPose: World._follow_pose,
    m.StopMotion: World._stop_motion,
}
