"""A playback: a soft move to the first pose, the motion itself, and a soft return.

Everything is computed and checked before the first setpoint, so a `Playback` that exists is safe.
"""

from typing import NamedTuple

import numpy as np

from rote.messages import MAX_DURATION_MS, Code, Phase, PlayAction
from rote.model.family import Build
from rote.motion.check.report import CheckReport
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk, sample, sample_keyframes
from rote.motion.track import Array
from rote.sim.body import STEP_S
from rote.sim.columns import Columns
from rote.sim.fitting import fit_action
from rote.sim.refusal import RefusalError
from rote.sim.safety import MotionCheck, MotionCheckCache
from rote.sim.store import StoredAction

SOFT_MIN_S = 0.4
"""Minimum duration of the move to the first pose or back to rest."""
BRAKE_S = 0.2
"""Braking time of a stop before the arms return."""


_NOTHING: Array = np.zeros((0, 0))


class JointSetpoint(NamedTuple):
    """The positions and speeds that the joints should have now."""

    phase: Phase
    pose_rad: Array
    speed_rad_s: Array


def soft_move(start_rad: Array, end_rad: Array, most_rad_s: float) -> Array:
    """Return poses from one to the other, one per step, no joint faster than `most_rad_s`."""
    far = float(np.abs(end_rad - start_rad).max())
    seconds = max(SOFT_MIN_S, MINIMUM_JERK_PEAK * far / most_rad_s)
    steps = int(np.ceil(seconds / STEP_S))
    return minimum_jerk(start_rad, end_rad, np.arange(1, steps + 1) / steps)


class _Part(NamedTuple):
    """A part of a playback, one row per step: poses, and the speeds from each to the next."""

    phase: Phase
    poses_rad: Array
    speeds_rad_s: Array


def _make_part(phase: Phase, poses_rad: Array) -> _Part:
    speeds = np.zeros_like(poses_rad)
    np.divide(poses_rad[1:] - poses_rad[:-1], STEP_S, out=speeds[:-1])
    return _Part(phase, poses_rad, speeds)


class Playback:
    """Setpoints, one per step of the body; it starts from the current `pose_rad`."""

    warnings: tuple[str, ...] = ()
    """Warnings for the operator."""

    def __init__(
        self,
        action: StoredAction,
        play: PlayAction,
        pose_rad: Array,
        build: Build,
        checks: MotionCheckCache | None = None,
    ) -> None:
        """`checks` caches the results of earlier checks."""
        self._columns = Columns(build)
        # Keyframes that come with the command are in this build's columns already.
        action, left_out = (action, ()) if play.keyframes else fit_action(action, build)
        check = (checks or MotionCheckCache()).check
        motion, report = _build_motion(action, play, pose_rad, self._columns, check)
        self.warnings = (*left_out, *(finding.message for finding in report.warnings))
        self._loop = play.loop or action.loop
        self._parts: list[_Part] = [
            _make_part(Phase.APPROACH, self._soft_move(pose_rad, motion[0])),
            _make_part(Phase.PLAYING, motion),
        ]
        if self._loop:
            self._parts.append(_make_part(Phase.PLAYING, self._soft_move(motion[-1], motion[0])))
        else:
            self._parts.append(_make_part(Phase.RETURN, self._return_to_rest(motion[-1])))
        self._reset_to(pose_rad)

    def _reset_to(self, pose_rad: Array) -> None:
        self._part_index = self._row = 0
        self._last = JointSetpoint(Phase.NONE, pose_rad, np.zeros_like(pose_rad))

    @classmethod
    def returning(cls, pose_rad: Array, build: Build) -> "Playback":
        """Return a playback that only returns softly to rest."""
        playback = cls.__new__(cls)
        playback._columns = Columns(build)
        playback._loop = False
        playback._parts = [_make_part(Phase.RETURN, playback._return_to_rest(pose_rad))]
        playback._reset_to(pose_rad)
        return playback

    def stop(self) -> None:
        """Slow down from here, then go softly back to rest."""
        home = self._brake_and_return(self._last.pose_rad, self._last.speed_rad_s)
        self._parts = [_make_part(Phase.RETURN, home)]
        self._loop, self._part_index, self._row = False, 0, 0

    @property
    def loops(self) -> bool:
        """Whether it repeats until it is stopped."""
        return self._loop

    @property
    def phase(self) -> Phase:
        """The phase of the playback."""
        return (
            self._parts[self._part_index].phase
            if self._part_index < len(self._parts)
            else Phase.NONE
        )

    def step(self) -> JointSetpoint | None:
        """Return the next setpoint, or None when it is over."""
        if self._part_index >= len(self._parts):
            return None
        phase, poses, speeds = self._parts[self._part_index]
        self._last = JointSetpoint(phase, poses[self._row], speeds[self._row])
        self._row += 1
        if self._row >= len(poses):
            self._row = 0
            self._part_index += 1
            if self._loop and self._part_index == len(self._parts):
                self._part_index = 1
        return self._last

    def next_steps(self, most: int) -> tuple[Array, Array]:
        """Take up to `most` steps at once, and return their poses and speeds.

        Stops before the last row of a part, where the phase may change.
        """
        if self._part_index >= len(self._parts):
            return _NOTHING, _NOTHING
        phase, poses, speeds = self._parts[self._part_index]
        first, last = self._row, min(self._row + most, len(poses) - 1)
        if last <= first:
            return _NOTHING, _NOTHING
        self._row = last
        self._last = JointSetpoint(phase, poses[last - 1], speeds[last - 1])
        return poses[first:last], speeds[first:last]

    def _soft_move(self, start_rad: Array, end_rad: Array) -> Array:
        return soft_move(start_rad, end_rad, self._columns.family.soft_rad_s)

    def _return_to_rest(self, pose_rad: Array) -> Array:
        return self._soft_move(pose_rad, self._columns.rest_rad)

    def _brake_and_return(self, pose_rad: Array, speed_rad_s: Array) -> Array:
        """Return poses that slow down evenly to a halt within `BRAKE_S`, then go softly to rest."""
        t = np.arange(1, round(BRAKE_S / STEP_S) + 1)[:, None] * STEP_S
        slowing = pose_rad + speed_rad_s * (t - t * t / (2 * BRAKE_S))
        slowing = np.clip(slowing, self._columns.lower_rad, self._columns.upper_rad)
        return np.vstack([slowing, self._return_to_rest(slowing[-1])])


def _build_motion(
    action: StoredAction, play: PlayAction, pose_rad: Array, columns: Columns, check: MotionCheck
) -> tuple[Array, CheckReport]:
    """Return the motion, one pose per step, and its check report; raise if it is unsafe."""
    if play.frames > (len(play.keyframes) or action.frames):
        raise RefusalError(Code.BAD_PAYLOAD)
    times_s, poses = _sample_poses(action, play, pose_rad)
    # Joints that are not taught stay at rest: the legs belong to the balance controller.
    full = np.repeat(columns.rest_rad[None, :], len(poses), axis=0)
    full[:, columns.taught] = poses[:, columns.taught]
    recorded_s = None if play.keyframes else action.times_s
    report = check(times_s, full, recorded_s, columns.build)
    return np.clip(full, columns.lower_rad, columns.upper_rad), report


def _sample_poses(action: StoredAction, play: PlayAction, pose_rad: Array) -> tuple[Array, Array]:
    keyframes = play.keyframes or action.keyframes
    if keyframes:
        keyframes = keyframes[: play.frames or None]
        own_s = max(k.time_ms for k in keyframes) / 1000.0
        own_s = own_s if play.keyframes else max(own_s, action.duration_ms / 1000.0)
        duration_s = play.duration_ms / 1000.0 or own_s
        at_s = _sample_times(duration_s, own_s)
        poses = sample_keyframes(keyframes, pose_rad, at_s, play.interpolation)
    else:
        assert action.times_s is not None
        assert action.joints_rad is not None
        times_s = action.times_s[: play.frames or None]
        joints = action.joints_rad[: play.frames or None]
        own_s = float(times_s[-1])
        nominal_s = action.duration_ms / 1000.0 * own_s / (float(action.times_s[-1]) or 1.0)
        duration_s = play.duration_ms / 1000.0 or nominal_s
        at_s = _sample_times(duration_s, own_s)
        poses = sample(times_s, joints, at_s, play.interpolation)
    return np.arange(len(poses), dtype=np.float64) * STEP_S, poses


def _sample_times(duration_s: float, own_s: float) -> Array:
    """Return the recording times to sample for a playback of `duration_s`."""
    if duration_s > MAX_DURATION_MS / 1000.0:
        raise RefusalError(Code.BAD_PAYLOAD)
    steps = max(1, round(duration_s / STEP_S))
    return np.linspace(0.0, own_s, steps + 1)
