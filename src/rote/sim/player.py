"""A playback: a soft move to the first pose, the motion itself, and a soft return.

Everything is computed and checked before the first setpoint, so a `Playback` that exists is safe.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from rote.errors import UnsafeMotionError
from rote.messages import MAX_DURATION_MS, Code, Phase, PlayAction
from rote.model.family import MOVED_RAD, Build
from rote.motion.check.report import CheckReport
from rote.motion.check.rules import check, check_gaps
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk, sample, sample_keyframes
from rote.motion.track import Array, Track
from rote.sim.body import STEP_S
from rote.sim.columns import Columns
from rote.sim.refusal import RefusalError
from rote.sim.store import StoredAction


def check_motion(
    times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
) -> CheckReport:
    """Return the findings about a motion; raise `UnsafeMotionError` if it has errors.

    `poses_rad` is in the build's columns, as it would be played. `recorded_s` are the times of the
    recorded samples, if it was recorded: gaps between them are checked. Warnings do not forbid a
    motion, because the robot has no operator to confirm them.
    """
    if recorded_s is not None:
        check_gaps(recorded_s).permit(force=True)
    if not build.taught:
        return CheckReport(())
    taught = poses_rad[:, list(build.taught_columns)]
    track = Track(times_s=times_s, joints_rad=taught, names=build.taught, variant=build.name)
    report = check(track, build=build, contact=False)
    report.permit(force=True)
    return report


MotionCheck = Callable[[Array, Array, Array | None, Build], CheckReport]


class MotionCheckCache:
    """Caches the check reports of the last played motions."""

    def __init__(self, max_entries: int = 32) -> None:
        self._max_entries = max_entries
        self._reports: OrderedDict[bytes, CheckReport] = OrderedDict()

    def check(
        self, times_s: Array, poses_rad: Array, recorded_s: Array | None, build: Build
    ) -> CheckReport:
        """Return the result of `check_motion`, cached by the build and all numbers.

        Forbidden motions are not cached.
        """
        digest = blake2b(build.name.encode(), digest_size=16)
        for numbers in (times_s, poses_rad, recorded_s):
            shape = b"none" if numbers is None else str(numbers.shape).encode()
            digest.update(shape)
            digest.update(b"" if numbers is None else numbers.tobytes())
        key = digest.digest()
        report = self._reports.get(key)
        if report is None:
            report = check_motion(times_s, poses_rad, recorded_s, build)
            self._reports[key] = report
            if len(self._reports) > self._max_entries:
                self._reports.popitem(last=False)
        self._reports.move_to_end(key)
        return report


def fit_action(action: StoredAction, build: Build) -> tuple[StoredAction, tuple[str, ...]]:
    """Return the action in the columns of `build`, and warnings about joints left out.

    Raises `UnsafeMotionError` if the action lacks a taught joint of the build.
    """
    if action.names == build.names:
        return action, ()
    fitted = _fit_keyframes(action, build) if action.keyframes else _fit_frames(action, build)
    message = f"{action.name!r} was taught on a robot with other joints"
    if left_out := [name for name in _list_moved_joints(action) if name not in build.names]:
        message += f": {', '.join(left_out)} is left out"
    return fitted, (message,)


def _fit_frames(action: StoredAction, build: Build) -> StoredAction:
    """Return a recording in a build's columns; joints that it does not have stay at rest."""
    assert action.joints_rad is not None
    for name in build.taught:
        if name not in action.names:
            reason = f"{action.name!r} was taught on a robot that does not have it"
            raise UnsafeMotionError(name, 0.0, reason, "Teach it again on this robot.")
    joints: Array = np.tile(np.array(build.rest_rad), (len(action.joints_rad), 1))
    for column, name in enumerate(build.names):
        if name in action.names:
            joints[:, column] = action.joints_rad[:, action.names.index(name)]
    return replace(action, joints_rad=joints, names=build.names)


def _fit_keyframes(action: StoredAction, build: Build) -> StoredAction:
    """Keep the keyframes of joints that the build has; raise `RefusalError` if there are none."""
    keyframes = tuple(
        replace(keyframe, joint=build.names.index(action.names[keyframe.joint]))
        for keyframe in action.keyframes
        if action.names[keyframe.joint] in build.names
    )
    if not keyframes:
        raise RefusalError(Code.BAD_PAYLOAD)
    return replace(action, keyframes=keyframes, names=build.names)


def _list_moved_joints(action: StoredAction) -> list[str]:
    if action.joints_rad is None:
        columns = {keyframe.joint for keyframe in action.keyframes}
        return [action.names[column] for column in sorted(columns)]
    moved = np.ptp(action.joints_rad, axis=0) > MOVED_RAD
    return [name for name, moves in zip(action.names, moved.tolist(), strict=True) if moves]


SOFT_MIN_S = 0.4
"""Minimum duration of the move to the first pose or back to rest."""
BRAKE_S = 0.2
"""Braking time of a stop before the arms return."""


_NO_STEPS: Array = np.zeros((0, 0))


class JointSetpoint(NamedTuple):
    """The positions and speeds that the joints should have now."""

    phase: Phase
    pose_rad: Array
    speed_rad_s: Array


def plan_soft_move(start_rad: Array, end_rad: Array, max_rad_s: float) -> Array:
    """Return poses from `start_rad` to `end_rad`, one per step; no joint exceeds `max_rad_s`."""
    distance_rad = float(np.abs(end_rad - start_rad).max())
    seconds = max(SOFT_MIN_S, MINIMUM_JERK_PEAK * distance_rad / max_rad_s)
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
    """A sequence of setpoints, one per step of the body, from the current `pose_rad`."""

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
        action, fit_warnings = (action, ()) if play.keyframes else fit_action(action, build)
        check = (checks or MotionCheckCache()).check
        motion, report = _build_motion(action, play, pose_rad, self._columns, check)
        self.warnings = (*fit_warnings, *(finding.message for finding in report.warnings))
        self.loops = play.loop or action.loop
        """Whether the motion repeats until it is stopped."""
        self._parts: list[_Part] = [
            _make_part(Phase.APPROACH, self._plan_soft_move(pose_rad, motion[0])),
            _make_part(Phase.PLAYING, motion),
        ]
        if self.loops:
            self._parts.append(
                _make_part(Phase.PLAYING, self._plan_soft_move(motion[-1], motion[0]))
            )
        else:
            self._parts.append(_make_part(Phase.RETURN, self._plan_return_to_rest(motion[-1])))
        self._reset_to(pose_rad)

    def _reset_to(self, pose_rad: Array) -> None:
        self._part_index = self._row = 0
        self._last = JointSetpoint(Phase.NONE, pose_rad, np.zeros_like(pose_rad))

    @classmethod
    def returning(cls, pose_rad: Array, build: Build) -> "Playback":
        """Return a playback that only returns softly to rest."""
        playback = cls.__new__(cls)
        playback._columns = Columns(build)
        playback.loops = False
        playback._parts = [_make_part(Phase.RETURN, playback._plan_return_to_rest(pose_rad))]
        playback._reset_to(pose_rad)
        return playback

    def stop(self) -> None:
        """Slow down from here, then go softly back to rest."""
        poses_rad = self._brake_and_return(self._last.pose_rad, self._last.speed_rad_s)
        self._parts = [_make_part(Phase.RETURN, poses_rad)]
        self.loops, self._part_index, self._row = False, 0, 0

    @property
    def phase(self) -> Phase:
        """The phase of the playback."""
        return (
            self._parts[self._part_index].phase
            if self._part_index < len(self._parts)
            else Phase.NONE
        )

    def step(self) -> JointSetpoint | None:
        """Return the next setpoint; None when the playback is over."""
        if self._part_index >= len(self._parts):
            return None
        phase, poses, speeds = self._parts[self._part_index]
        self._last = JointSetpoint(phase, poses[self._row], speeds[self._row])
        self._row += 1
        if self._row >= len(poses):
            self._row = 0
            self._part_index += 1
            if self.loops and self._part_index == len(self._parts):
                self._part_index = 1  # the approach is not repeated
        return self._last

    def next_steps(self, max_steps: int) -> tuple[Array, Array]:
        """Take up to `max_steps` steps at once, and return their poses and speeds.

        Stops before the last row of a part, where the phase may change.
        """
        if self._part_index >= len(self._parts):
            return _NO_STEPS, _NO_STEPS
        phase, poses, speeds = self._parts[self._part_index]
        first, last = self._row, min(self._row + max_steps, len(poses) - 1)
        if last <= first:
            return _NO_STEPS, _NO_STEPS
        self._row = last
        self._last = JointSetpoint(phase, poses[last - 1], speeds[last - 1])
        return poses[first:last], speeds[first:last]

    def _plan_soft_move(self, start_rad: Array, end_rad: Array) -> Array:
        return plan_soft_move(start_rad, end_rad, self._columns.family.soft_rad_s)

    def _plan_return_to_rest(self, pose_rad: Array) -> Array:
        return self._plan_soft_move(pose_rad, self._columns.rest_rad)

    def _brake_and_return(self, pose_rad: Array, speed_rad_s: Array) -> Array:
        """Return poses that slow down evenly to a halt within `BRAKE_S`, then go softly to rest."""
        t = np.arange(1, round(BRAKE_S / STEP_S) + 1)[:, None] * STEP_S
        slowing = pose_rad + speed_rad_s * (t - t * t / (2 * BRAKE_S))  # constant deceleration
        slowing = np.clip(slowing, self._columns.lower_rad, self._columns.upper_rad)
        return np.vstack([slowing, self._plan_return_to_rest(slowing[-1])])


def _build_motion(
    action: StoredAction, play: PlayAction, pose_rad: Array, columns: Columns, check: MotionCheck
) -> tuple[Array, CheckReport]:
    """Return the motion, one pose per step, and its check report; raise if it is unsafe."""
    available_frames = len(play.keyframes) or action.frames
    if play.frames > available_frames:
        raise RefusalError(Code.BAD_PAYLOAD)
    times_s, poses = _sample_poses(action, play, pose_rad)
    # Joints that are not taught stay at rest: the legs belong to the balance controller.
    poses_rad = np.repeat(columns.rest_rad[None, :], len(poses), axis=0)
    poses_rad[:, columns.taught] = poses[:, columns.taught]
    recorded_s = None if play.keyframes else action.times_s
    report = check(times_s, poses_rad, recorded_s, columns.build)
    return np.clip(poses_rad, columns.lower_rad, columns.upper_rad), report


def _sample_poses(action: StoredAction, play: PlayAction, pose_rad: Array) -> tuple[Array, Array]:
    """Return the times and the poses of the motion, one per step of the body.

    `play` may limit the frames, set the duration, and bring its own keyframes.
    """
    if play.keyframes or action.keyframes:
        poses = _sample_keyframes(action, play, pose_rad)
    else:
        poses = _sample_frames(action, play)
    return np.arange(len(poses), dtype=np.float64) * STEP_S, poses


def _sample_keyframes(action: StoredAction, play: PlayAction, pose_rad: Array) -> Array:
    """Return the poses between keyframes; joints without keyframes stay as in `pose_rad`."""
    keyframes = (play.keyframes or action.keyframes)[: play.frames or None]
    source_duration_s = max(keyframe.time_ms for keyframe in keyframes) / 1000.0
    if not play.keyframes:
        source_duration_s = max(source_duration_s, action.duration_ms / 1000.0)
    duration_s = play.duration_ms / 1000.0 or source_duration_s
    sample_times_s = _choose_sample_times(duration_s, source_duration_s)
    return sample_keyframes(keyframes, pose_rad, sample_times_s, play.interpolation)


def _sample_frames(action: StoredAction, play: PlayAction) -> Array:
    """Return the poses between recorded frames."""
    assert action.times_s is not None
    assert action.joints_rad is not None
    times_s = action.times_s[: play.frames or None]
    joints_rad = action.joints_rad[: play.frames or None]
    source_duration_s = float(times_s[-1])
    # A part of the frames takes its share of the action's duration.
    usual_s = action.duration_ms / 1000.0 * source_duration_s / (float(action.times_s[-1]) or 1.0)
    duration_s = play.duration_ms / 1000.0 or usual_s
    sample_times_s = _choose_sample_times(duration_s, source_duration_s)
    return sample(times_s, joints_rad, sample_times_s, play.interpolation)


def _choose_sample_times(duration_s: float, source_duration_s: float) -> Array:
    """Return the times in the source at which to sample it for a playback of `duration_s`.

    There is one for each step; they are spread evenly from 0 to `source_duration_s`.
    """
    if duration_s > MAX_DURATION_MS / 1000.0:
        raise RefusalError(Code.BAD_PAYLOAD)
    steps = max(1, round(duration_s / STEP_S))
    return np.linspace(0.0, source_duration_s, steps + 1)
