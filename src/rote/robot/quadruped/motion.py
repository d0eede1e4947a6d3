"""Motions of an A1's legs: soft legs for teaching, and tracks prepared for playing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation
from rote.model.a1 import A1, KD_NM_S_RAD, KP_NM_RAD
from rote.motion.check.limits import MAX_PLAYED_RAD_S, compute_distances_outside_rad
from rote.motion.check.rules import check_gaps, check_joints
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk, sample
from rote.motion.track import Array, Track
from rote.robot.api_values import check_seconds
from rote.robot.quadruped.safety import Safety
from rote.robot.streamed_motion import check_playing_speed
from rote.wire.a1.motors import LEG_MOTORS, POSITION_OFF_RAD, MotorCmds

RATE_HZ = 500.0
STALL_S = 0.016
"""After a pause longer than this, the rest of a motion is delayed instead of skipped."""
TEACH_KD_NM_S_RAD = 1.0
"""The damping of legs that a hand moves; this project's choice."""

SOFT = MotorCmds.servo(dq_rad_s=0.0, kd_nm_s_rad=TEACH_KD_NM_S_RAD)
"""Legs that a hand can move: no position is held, and movement is damped a little."""
SPRING_FROM_RAD = 0.08
"""Distance from the end of the protected range at which a spring begins to push soft legs back."""
_SPRING_MAX_NM = 2.0
"""Torque limit of that spring: a hand overcomes it, the weight of a leg does not."""


class SoftLegs:
    """Motor commands for soft legs during teaching that keep the take playable.

    Soft legs sink to their stops by their own weight, but a track that leaves the range of the
    position protection cannot be played. So a weak spring keeps each joint inside that range once
    it has been inside. Joints of folded legs are free until a hand has moved them inside.
    """

    def __init__(self, safety: Safety) -> None:
        margin = safety.limits.margin_rad
        self._is_enabled = margin is not None
        self._lower_rad = safety.lower_rad + (margin or 0.0)
        self._upper_rad = safety.upper_rad - (margin or 0.0)
        self._been_inside = np.zeros(LEG_MOTORS, dtype=bool)
        self._was_soft = True

    def motors(self, q_rad: Array) -> MotorCmds | None:
        """Return the command for these joint positions; None if all legs simply stay soft."""
        self._been_inside |= (q_rad >= self._lower_rad) & (q_rad <= self._upper_rad)
        inside_rad = np.clip(
            q_rad, self._lower_rad + SPRING_FROM_RAD, self._upper_rad - SPRING_FROM_RAD
        )
        needs_push = self._been_inside & (inside_rad != q_rad)
        if not self._is_enabled or not needs_push.any():
            was_soft, self._was_soft = self._was_soft, True
            return None if was_soft else SOFT
        self._was_soft = False
        # The torque is stiffness times distance, so a near goal limits it.
        max_distance_rad = _SPRING_MAX_NM / KP_NM_RAD
        goal_rad = q_rad + np.clip(inside_rad - q_rad, -max_distance_rad, max_distance_rad)
        return MotorCmds.servo(
            q_rad=np.where(needs_push, goal_rad, POSITION_OFF_RAD).tolist(),
            dq_rad_s=[0.0] * LEG_MOTORS,
            tau_nm=[0.0] * LEG_MOTORS,
            kp_nm_rad=np.where(needs_push, KP_NM_RAD, 0.0).tolist(),
            kd_nm_s_rad=np.where(needs_push, KD_NM_S_RAD, TEACH_KD_NM_S_RAD).tolist(),
        )


def leg_poses(track: Track) -> Array:
    """Return the poses of the twelve joints in the robot's order, (n, 12). Raises `BadRequestError`
    if the track has other joints, or fewer than 2 samples.
    """
    missing = [name for name in A1.names if name not in track.names]
    unknown = [name for name in track.names if name not in A1.names]
    if missing or unknown or len(track.names) != LEG_MOTORS:
        problem = "it has a joint twice"
        if missing or unknown:
            problem = f"it lacks {missing[0]}" if missing else f"an A1 has no {unknown[0]}"
        raise BadRequestError(
            f"this track of {len(track.names)} joints is not a motion of an A1: {problem}",
            "Choose a track of an A1's twelve joints.",
        )
    if len(track) < 2:
        raise BadRequestError(f"this track has {len(track)} samples", "A motion needs at least 2.")
    return track.joints_rad[:, [track.names.index(name) for name in A1.names]]


def check_track(track: Track, safety: Safety, speed: float = 1.0) -> None:
    """Raise `UnsafeMotionError` if a track must not be played at that speed."""
    poses = leg_poses(track)
    check_playing_speed(speed)
    check_seconds(track.duration_s / speed, "a playback")
    times_s = (track.times_s - track.times_s[0]) / speed
    # The original times: playing faster does not fill gaps in the recording.
    check_gaps(track.times_s, most_s=A1.max_gap_s).permit(A1)
    check_joints(replace(track, times_s=times_s, variant=A1.name)).permit(A1)
    _check_margin(times_s, poses, safety)


def _check_margin(times_s: Array, poses: Array, safety: Safety) -> None:
    """Raise `UnsafeMotionError` if a pose would trip the position protection."""
    margin = safety.limits.margin_rad
    if margin is None:
        return
    lower, upper = safety.lower_rad + margin, safety.upper_rad - margin
    outside = compute_distances_outside_rad(poses, lower, upper) > 0
    if outside.any():
        row, column = divmod(int(outside.argmax()), LEG_MOTORS)
        raise UnsafeMotionError(
            A1.names[column],
            float(times_s[row]),
            f"{poses[row, column]:.3f} rad, but the position protection trips outside "
            f"{lower[column]:.3f} to {upper[column]:.3f} rad",
            "Teach it again with this joint further from its limit.",
        )


@dataclass(frozen=True, slots=True, eq=False)
class LegMotion:
    """A track that was found safe, one pose per tick, with its soft beginning."""

    name: str
    poses_rad: Array
    """(n, 12), at `RATE_HZ`."""
    approach: int
    """How many of them lead to the first pose."""

    @property
    def seconds(self) -> float:
        """Its duration in seconds, with the approach."""
        return (len(self.poses_rad) - 1) / RATE_HZ

    def restarted_from(self, now_rad: Sequence[float], seconds: float) -> "LegMotion":
        """Return the same motion with a soft approach of `seconds` from the current leg positions.

        Raises `BadRequestError` if that is too short to be soft.
        """
        poses = self.poses_rad[self.approach :]
        min_soft_s = len(plan_soft_move(np.asarray(now_rad, dtype=float), poses[0])) / RATE_HZ
        if seconds < min_soft_s - 1 / RATE_HZ:  # one tick less is a rounding error
            raise BadRequestError(
                f"the approach to the first pose takes {min_soft_s:.2f} s, but only "
                f"{seconds:.2f} s are left",
                "Choose a later start.",
            )
        approach = plan_soft_move(np.asarray(now_rad, dtype=float), poses[0], seconds)
        return LegMotion(self.name, np.vstack([approach, poses]), len(approach))

    def motors(self, time_s: float) -> MotorCmds | None:
        """Return the motor command at a time within the motion; None after the end."""
        tick = int(time_s * RATE_HZ + 1e-6)  # a rounding error must not select the tick before
        if tick >= len(self.poses_rad):
            return None
        # Soft at first: during the approach the stiffness rises from 20 % to 100 %.
        stiffness = min(1.0, 0.2 + 0.8 * tick / max(self.approach, 1))
        return MotorCmds.servo(
            q_rad=self.poses_rad[tick].tolist(),
            dq_rad_s=[0.0] * LEG_MOTORS,
            tau_nm=[0.0] * LEG_MOTORS,
            kp_nm_rad=[stiffness * KP_NM_RAD] * LEG_MOTORS,
            kd_nm_s_rad=[KD_NM_S_RAD] * LEG_MOTORS,
        )


class MotionClock:
    """Converts elapsed time to the time within a motion, without jumps.

    After a delay a motion catches up at no more than twice its pace. After a stall it resumes where
    it was: the legs stood still meanwhile and must not jump ahead.
    """

    def __init__(self) -> None:
        self._newest_s = self._at_s = self._delay_s = 0.0

    def at(self, time_s: float) -> float:
        """Return the time within the motion, `time_s` seconds after its beginning."""
        tick_s, passed_s = 1.0 / RATE_HZ, time_s - self._newest_s
        if passed_s > STALL_S:  # resume one tick after the last time
            self._delay_s = time_s - self._at_s - tick_s
        self._newest_s = time_s
        target_s = time_s - self._delay_s
        # At most two ticks per call: after a delay calls come in a burst, and only one counts.
        most_s = self._at_s + 2.0 * min(passed_s, tick_s)
        self._at_s = max(self._at_s, min(target_s, most_s))
        # A computer that is too slow for the pace plays the motion slower.
        self._delay_s += max(0.0, target_s - self._at_s - STALL_S)
        return self._at_s


def prepare(
    track: Track, safety: Safety, now_rad: Sequence[float], speed: float = 1.0
) -> LegMotion:
    """Check a track and prepare it for playing from the current leg positions."""
    return with_approach(track, check_and_sample(track, safety, speed), now_rad)


def check_and_sample(track: Track, safety: Safety, speed: float = 1.0) -> Array:
    """Return a track's poses tick by tick, (n, 12); raise if it must not be played."""
    check_track(track, safety, speed)
    times_s = (track.times_s - track.times_s[0]) / speed
    ticks = max(1, int(np.ceil(times_s[-1] * RATE_HZ - 1e-6)))
    return sample(times_s, leg_poses(track), np.arange(ticks + 1) / RATE_HZ, Interpolation.CUBIC)


def with_approach(track: Track, poses_rad: Array, now_rad: Sequence[float]) -> LegMotion:
    """Return a motion of checked poses with a soft approach from the current positions."""
    approach = plan_soft_move(np.asarray(now_rad, dtype=float), poses_rad[0])
    poses = np.vstack([approach, poses_rad])
    return LegMotion(track.source or "a track", poses, len(approach))


def check_move(from_rad: Array, to_rad: Array, seconds: float | None) -> None:
    """Raise `BadRequestError` if a move in `seconds` would exceed the speed limit of playback."""
    min_s = MINIMUM_JERK_PEAK * float(np.abs(to_rad - from_rad).max()) / MAX_PLAYED_RAD_S
    if seconds is not None and seconds < min_s:
        raise BadRequestError(
            f"a move in {seconds:g} s would be faster than {MAX_PLAYED_RAD_S:g} rad/s",
            f"Choose {min_s:.2f} s or more, or leave the seconds out.",
        )


def plan_soft_move(from_rad: Array, to_rad: Array, seconds: float | None = None) -> Array:
    """Return the poses of a soft move, (n, 12), tick by tick up to the one before `to_rad`.

    It takes `seconds`; without them, the shortest time in which it is soft.
    """
    distance_rad = float(np.abs(to_rad - from_rad).max())
    min_soft_s = max(A1.soft_least_s, MINIMUM_JERK_PEAK * distance_rad / A1.soft_rad_s)
    duration_s = min_soft_s if seconds is None else seconds
    count = max(1, int(np.ceil(duration_s * RATE_HZ)))
    return minimum_jerk(from_rad, to_rad, np.linspace(0.0, 1.0, count + 1)[:-1])
