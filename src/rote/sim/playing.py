"""Starts the motions that clients request of a simulated robot: actions, presets and streams."""

from collections.abc import Hashable

from rote import messages as m
from rote.messages import Code
from rote.sim.arm_motion import ArmMotion
from rote.sim.core import RobotCore
from rote.sim.fsm import ArmActivity, ArmInput
from rote.sim.player import MotionCheckCache, Playback
from rote.sim.presets import RELEASE, SimPreset, motion_of, presets_of
from rote.sim.refusal import RefusalError
from rote.sim.sensors import PLAYING_ID, ArmStateCode
from rote.sim.store import check_keyframes
from rote.sim.streaming import StreamedPlayback
from rote.sim.teaching import SimTeaching


class SimPlaying:
    """Begins motions of the arms, or refuses them."""

    def __init__(self, core: RobotCore, motion: ArmMotion, teaching: SimTeaching) -> None:
        self._core, self._motion, self._teaching = core, motion, teaching
        self._checks = MotionCheckCache()

    @property
    def no_stream(self) -> str:
        """The reason why this robot does not accept a stream."""
        build = self._core.build
        return f"{build.name} follows no stream: {build.no_stream or 'its build has no stream'}"

    def play_action(self, client: Hashable, command: m.PlayAction) -> None:
        """Play a stored action; if this client is teaching over UDP, that ends first."""
        core, motion = self._core, self._motion
        check_keyframes(command.keyframes, core.build)
        action = core.store.load(command.action)
        if action is None:
            raise RefusalError(Code.NO_SUCH_ACTION)
        if not core.machine.balanced:
            raise RefusalError(Code.WRONG_STATE)
        motion.require_free_arms()
        ends_teaching = self._teaching.may_end_for_play(client)
        if not ends_teaching:
            self._require_idle_arms(client)
        motion.require_movable_arms()
        # The setpoint does not show where a hand has led soft arms.
        pose_rad = core.body.joints_rad.copy() if ends_teaching else core.body.setpoint_rad
        playback = Playback(action, command, pose_rad, core.build, self._checks)
        if ends_teaching:  # only after the playback was found safe
            self._teaching.end(ArmInput.EXIT)
        if not self._drop_by_quirk(action.name):
            motion.begin_playing(client, playback, ArmStateCode(PLAYING_ID, action.name))

    def play_preset(self, client: Hashable, command: m.PlayPreset) -> None:
        """Play a preset, prolong the hold of its last pose, or release the arms."""
        core, motion = self._core, self._motion
        presets = {preset.id: preset for preset in presets_of(core.build)}
        preset = presets.get(command.id)
        if preset is None:
            raise RefusalError(Code.NO_SUCH_ACTION)
        if not core.machine.balanced or (preset.fsm and core.machine.mode not in preset.fsm):
            raise RefusalError(Code.WRONG_STATE)
        if preset.id == RELEASE:
            motion.request_release()
        elif preset is motion.held:
            motion.hold_preset(preset)
        else:
            self._begin_preset(client, preset)

    def _begin_preset(self, client: Hashable, preset: SimPreset) -> None:
        core, motion = self._core, self._motion
        motion.require_free_arms()
        self._require_idle_arms(client)
        if self._drop_by_quirk(preset.name):
            return
        action, start_rad = motion_of(preset, core.build), core.body.setpoint_rad
        playback = Playback(action, m.PlayAction(action=1), start_rad, core.build, self._checks)
        motion.begin_playing(client, playback, ArmStateCode(preset.id, preset.name), preset)

    def begin_stream(self, client: Hashable, _: m.BeginStream) -> None:
        """Follow the poses that this client streams from now on."""
        core = self._core
        if core.build.stream is None:
            core.note(self.no_stream)
            raise RefusalError(Code.UNKNOWN_COMMAND)
        self._require_idle_arms(client)
        streamed = StreamedPlayback(core.body.setpoint_rad, self._motion.fail_stream, core.build)
        self._motion.begin_playing(client, streamed, ArmStateCode(PLAYING_ID, "a stream"))

    def follow_pose(self, client: Hashable, pose: m.StreamPose) -> None:
        """Follow a streamed pose."""
        playback = self._motion.playback
        if not isinstance(playback, StreamedPlayback) or self._motion.client != client:
            raise RefusalError(Code.SUPERSEDED)
        playback.follow(pose)

    def _require_idle_arms(self, client: Hashable) -> None:
        if self._core.machine.activity is not ArmActivity.IDLE:
            raise self._teaching.make_busy_error(client)
        self._motion.require_movable_arms()

    def _drop_by_quirk(self, name: str) -> bool:
        """Return whether a quirk drops a motion that was accepted; if so, notify the operator."""
        if self._core.firmware.quirks.never_moves:
            self._core.note(f"{name!r} is accepted but not played, because of a quirk")
            return True
        return False
