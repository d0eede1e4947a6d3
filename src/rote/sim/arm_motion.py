"""The motions of a simulated robot's arms: a playback, a held pose, a soft return."""

from collections.abc import Hashable

import numpy as np

from rote.messages import Code, Phase
from rote.motion.track import Array
from rote.sim.body import STEP_S
from rote.sim.core import RobotCore
from rote.sim.fsm import ArmActivity, ArmInput
from rote.sim.player import Playback
from rote.sim.presets import HOLD_S, POSES, PRESETS, RELEASE, SimPreset
from rote.sim.refusal import RefusalError
from rote.sim.sensors import RECORDING_ID, ArmStateCode
from rote.sim.streaming import StreamedPlayback

HOLD_TAUGHT_S = 5.0
"""Seconds that the arms hold after teaching over UDP before they return to rest by themselves.
After teaching through the services, the delays of `Behaviour` apply instead."""


class ArmMotion:
    """The motion of the arms; at most one at a time."""

    def __init__(self, core: RobotCore) -> None:
        self._core = core
        self.stopped_early = False
        """Whether the last playback did not run to its end."""
        self.playback: Playback | None = None
        self.client: Hashable | None = None
        """The client of the last playback."""
        self.held: SimPreset | None = None
        """The preset whose last pose the arms hold."""
        self._played_preset: SimPreset | None = None
        self._state_code = ArmStateCode(0, "")
        self._playback_starts_s = self._release_at_s = self._reports_release_until_s = 0.0
        """When the playback starts, when a held pose is released, and until when the state code is
        that of a release."""
        self._return_at_s: float | None = None
        """When the arms return to rest after teaching over UDP; None if they do not hold."""
        self._reports_teaching_until_s = self._occupied_until_s = 0.0
        """Until when the state code is that of teaching, and until when commands are refused."""
        self._release_requested = False
        self._hold_rad = core.columns.rest_rad
        self._zero_rad_s = np.zeros(len(core.build.joints))

    # ---- state ----------------------------------------------------------------------------------

    @property
    def phase(self) -> Phase:
        """The phase of a playback."""
        return Phase.NONE if self.playback is None else self.playback.phase

    @property
    def holds_taught(self) -> bool:
        """Whether the arms hold their pose for a while after teaching."""
        return self._return_at_s is not None

    @property
    def occupied(self) -> bool:
        """Whether nothing can be played or taught because the arms are being released."""
        return self._core.time_s < self._occupied_until_s

    @property
    def state_code(self) -> ArmStateCode:
        """The arms' activity, as numbered by a G1's state topic."""
        activity, time_s = self._core.machine.activity, self._core.time_s
        if activity is ArmActivity.PLAYING and time_s < self._playback_starts_s:
            return ArmStateCode(0, "")
        if activity is not ArmActivity.IDLE:
            return self._state_code
        if self.held is not None:
            return ArmStateCode(self.held.id, self.held.name)
        if time_s < self._reports_teaching_until_s:
            return self._state_code
        if self.playback is not None or time_s < self._reports_release_until_s:
            return ArmStateCode(RELEASE, PRESETS[RELEASE].name)
        return ArmStateCode(0, "")

    def require_free_arms(self) -> None:
        """Refuse if the arms are being released."""
        if self.occupied:
            raise RefusalError(Code.BUSY)

    def require_movable_arms(self) -> None:
        """Refuse if the arms hold a preset's pose, or cannot move."""
        health = self._core.health
        if self.held is not None:
            raise RefusalError(Code.HOLDING)
        if health.weak:
            raise RefusalError(Code.LOW_BATTERY)
        if health.motor_error:
            raise RefusalError(Code.MOTOR_ERROR)

    # ---- time -----------------------------------------------------------------------------------

    def advance_steps(self, max_steps: int) -> None:
        """Take up to `max_steps` steps at once while a playback runs or the arms hold a pose, and
        nothing else can become due.

        The result is the same as taking them one by one.
        """
        core = self._core
        must_step_singly = (
            core.machine.changing
            or core.teaching
            or self.held is not None
            or core.body.held_by_hand
            or self._playback_has_ended
        )
        if must_step_singly:
            return
        if self.playback is None:
            if self._return_at_s is None:
                core.body.hold(self._hold_rad, self._zero_rad_s, max_steps)
                core.advance_clock(max_steps)
            return
        if (core.steps + 1) * STEP_S < self._playback_starts_s:
            return  # the playback still waits
        poses_rad, speeds_rad_s = self.playback.next_steps(max_steps)
        if len(poses_rad):
            core.body.run(poses_rad, speeds_rad_s)
            core.advance_clock(len(poses_rad))

    def release_if_due(self) -> None:
        """Release a held pose, or return to rest after teaching, when its time has come."""
        time_s = self._core.time_s
        if self.held is not None and time_s >= self._release_at_s:
            self.release_arms()
        if self._return_at_s is not None and time_s >= self._return_at_s:
            self.release_arms()

    def next_setpoint(self) -> tuple[Array, Array]:
        """Advance the playback by one step; return the target positions and speeds."""
        target, speed = self._hold_rad, self._zero_rad_s
        if self.playback is not None and self._core.time_s >= self._playback_starts_s:
            setpoint = self.playback.step()
            if setpoint is None:
                self.playback, self._hold_rad = None, self._core.columns.rest_rad
                target = self._hold_rad  # rest, not an earlier pose that was held
            else:
                target, speed = setpoint.pose_rad, setpoint.speed_rad_s
            self._handle_playback_end()
        return target, speed

    def _handle_playback_end(self) -> None:
        if self._playback_has_ended:
            self._core.machine.act(ArmInput.END)
            self._core.note("playback ended")
            self._finish_playing()

    @property
    def _playback_has_ended(self) -> bool:
        """Whether the playback has ended and this has not been handled yet."""
        if self._core.machine.activity is not ArmActivity.PLAYING:
            return False
        if isinstance(self.playback, StreamedPlayback):
            return not self.playback.following
        return self.phase in (Phase.RETURN, Phase.NONE)

    def _finish_playing(self) -> None:
        """Release the arms, or keep the last pose of a preset that holds."""
        preset, self._played_preset = self._played_preset, None
        if preset is None:
            self._begin_release()
        elif self._release_requested:
            self.release_arms()
        elif preset.id in POSES:
            self.hold_preset(preset)
            self.playback, self._hold_rad = None, self._core.body.setpoint_rad
        # Any other preset has no release to report: its playback returns to rest by itself.

    # ---- motions --------------------------------------------------------------------------------

    def begin_playing(
        self,
        client: Hashable,
        playback: Playback,
        code: ArmStateCode,
        preset: SimPreset | None = None,
    ) -> None:
        """Begin a playback, or raise `RefusalError`.

        `code` is the arm state to report during it; `preset` is set if it plays a preset.
        """
        self._core.machine.act(ArmInput.PLAY)
        self.playback, self.client, self.stopped_early = playback, client, False
        self._state_code, self._played_preset = code, preset
        self._playback_starts_s = self._reports_release_until_s = self._reports_teaching_until_s = (
            0.0
        )
        self._release_requested, self._return_at_s = False, None
        self._core.note(f"playing {code.name!r}")
        for message in playback.warnings:
            self._core.note(f"a warning: {message}")

    def postpone(self, answer_s: float) -> None:
        """Delay the playback that was just accepted, according to the robot's behaviour.

        `answer_s` is the delay of the answer to the client. Until the playback starts, the arms
        and their reported state stay as they are.
        """
        core = self._core
        start_delay_s = core.firmware.behaviour.draw_start_delay_s(core.rng)
        playing = core.machine.activity is ArmActivity.PLAYING
        # A measured delay is negative if the arms moved before the answer arrived.
        if playing and start_delay_s and answer_s + start_delay_s > 0:
            self._hold_rad = core.body.setpoint_rad
            self._playback_starts_s = core.time_s + answer_s + start_delay_s

    def hold_preset(self, preset: SimPreset) -> None:
        """Hold the last pose of a preset, for a time that begins now."""
        self.held, self._release_at_s = preset, self._core.time_s + HOLD_S

    def request_release(self) -> None:
        """Release the arms now, or at the end of the preset that is being played."""
        if self._played_preset is not None:
            self._release_requested = True  # a release does not interrupt a preset
        elif self._core.machine.activity is not ArmActivity.IDLE:
            raise RefusalError(Code.BUSY)
        else:
            self.release_arms()

    def release_arms(self) -> None:
        """Return softly to rest, like the preset `release_arm`."""
        self.held, self._release_requested, self._return_at_s = None, False, None
        self._begin_release()
        self.playback = Playback.returning(self._core.body.setpoint_rad, self._core.build)

    def _begin_release(self) -> None:
        """Report from now on, for the firmware's release time, that the arms return."""
        self._reports_release_until_s = self._core.time_s + self._core.firmware.behaviour.release_s
        self._playback_starts_s = 0.0
        if self._core.firmware.quirks.busy_after_playing:
            self._occupied_until_s = self._reports_release_until_s

    def stop(self) -> None:
        """Stop a playback, release a held pose, or prolong the hold after teaching."""
        core = self._core
        if core.machine.activity is ArmActivity.PLAYING and self.playback is not None:
            self.playback.stop()
            self.stopped_early, self._played_preset = True, None
            self._begin_release()
            core.machine.act(ArmInput.STOP)
            core.note("stopped: the arms return softly")
        elif self.held is not None:
            self.release_arms()
            core.note("stopped: the arms release their pose")
        elif self._return_at_s is not None:
            # After another stop, assume that the operator still holds the arms.
            self._return_at_s = core.time_s + HOLD_TAUGHT_S

    def fail_stream(self, message: str) -> None:
        """Record that a stream ended early, and why."""
        self.stopped_early = True
        self._core.note(message)

    def return_to_rest(self) -> None:
        """Start a soft return to rest from the measured positions."""
        self._playback_starts_s = 0.0
        self.playback = Playback.returning(self._core.body.joints_rad, self._core.build)

    def yield_to_teaching(self, name: str) -> None:
        """End every motion, because the arms become soft; `name` is that of the new action."""
        # Joints that are not taught stay where they are, even in the middle of a return.
        self.playback, self._hold_rad = None, self._core.body.setpoint_rad
        self._state_code = ArmStateCode(RECORDING_ID, name)
        self._playback_starts_s = self._reports_release_until_s = self._reports_teaching_until_s = (
            0.0
        )
        self._return_at_s = None

    def hold_taught(self, *, named: bool) -> float:
        """Make the soft arms hold where they are, and schedule their return to rest.

        `named` means that they were taught through the services, which name the action at the
        start; the logged delays apply only there. Returns the robot's time at which the release
        ends, in seconds.
        """
        core, behaviour = self._core, self._core.firmware.behaviour
        linger_s = behaviour.draw_linger_s(core.rng) if named else 0.0
        self._reports_teaching_until_s = self._playback_starts_s = core.time_s + linger_s
        released_s = self._reports_teaching_until_s + behaviour.release_s
        self._reports_release_until_s = released_s if named else 0.0
        self._occupied_until_s = released_s if named and behaviour.busy_after_teaching else 0.0
        core.body.attach(None, core.time_s)
        core.body.soften(())
        self._hold_rad = core.body.joints_rad.copy()
        if named:
            self.playback = Playback.returning(core.body.joints_rad, core.build)
        else:
            self.playback, self._return_at_s = None, core.time_s + HOLD_TAUGHT_S
        return released_s

    def drop_motions(self) -> None:
        """Drop every motion, because the joints go limp."""
        self.stopped_early |= self._core.machine.activity is ArmActivity.PLAYING
        self.playback = self._played_preset = self.held = self._return_at_s = None
        self._playback_starts_s = self._reports_release_until_s = self._reports_teaching_until_s = (
            self._occupied_until_s
        ) = 0.0
