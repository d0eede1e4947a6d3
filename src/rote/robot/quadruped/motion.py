"""Motions of an A1's legs: soft legs for teaching, and tracks prepared for playing."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation
from rote.model.a1 import A1, KD_NM_S_RAD, KP_NM_RAD
from rote.motion.check.limits import MAX_PLAYED_RAD_S, distance_outside_rad
from rote.motion.check.rules import check_gaps, check_joints
from rote.motion.interpolate import MINIMUM_JERK_PEAK, minimum_jerk, sample
from rote.motion.track import Array, Track
from rote.robot.api_values import check_seconds
from rote.robot.quadruped.safety import Safety
from rote.robot.streaming import check_playing_speed
from rote.wire.a1.motors import LEG_MOTORS, POSITION_OFF_RAD, MotorCmds

RATE_HZ = 500.0
STALL_S = 0.016
"""After a pause longer than this, the rest of a motion is delayed instead of skipped."""
TEACH_KD_NM_S_RAD = 1.0
"""The damping of legs that a hand moves; this project's choice."""

SOFT = MotorCmds.servo(dq_rad_s=0.0, kd_nm_s_rad=TEACH_KD_NM_S_RAD)
"""Legs that a hand can move: no position is held, and movement is damped a little."""
SPRING_FROM_RAD = 0.08
"""How far inside the protected range a spring begins to keep soft legs from their stops."""
_SPRING_MAX_NM = 2.0
"""Torque limit of that spring: a hand overcomes it, the weight of a leg does not."""


class SoftLegs:
    """Motor commands for soft legs during teaching, so that the take can be played.

    Soft legs sink to their stops by their own weight, and what leaves the range of the position
    protection must not be played. So a weak spring keeps each joint inside, once it has been
    inside: the joints of folded legs are left alone until a hand has moved them there.
    """

    def __init__(self, safety: Safety) -> None:
        margin = safety.limits.margin_rad
        self._is_on = margin is not None
        self._lower = safety.lower_rad + (margin or 0.0)
        self._upper = safety.upper_rad - (margin or 0.0)
        self._been_inside = np.zeros(LEG_MOTORS, dtype=bool)
        self._was_soft = True

    def motors(self, q_rad: Array) -> MotorCmds | None:
        """Return the command for these joint positions; None if it has not changed."""
        self._been_inside |= (q_rad >= self._lower) & (q_rad <= self._upper)
        inner = np.clip(q_rad, self._lower + SPRING_FROM_RAD, self._upper - SPRING_FROM_RAD)
        pushed = self._been_inside & (inner != q_rad)
        if not self._is_on or not pushed.any():
            was_soft, self._was_soft = self._was_soft, True
            return None if was_soft else SOFT
        self._was_soft = False
        most_rad = _SPRING_MAX_NM / KP_NM_RAD
        goal = q_rad + np.clip(inner - q_rad, -most_rad, most_rad)
        return MotorCmds.servo(
            q_rad=np.where(pushed, goal, POSITION_OFF_RAD).tolist(),
            dq_rad_s=[0.0] * LEG_MOTORS,
            tau_nm=[0.0] * LEG_MOTORS,
            kp_nm_rad=np.where(pushed, KP_NM_RAD, 0.0).tolist(),
            kd_nm_s_rad=np.where(pushed, KD_NM_S_RAD, TEACH_KD_NM_S_RAD).tolist(),
        )


def leg_poses(track: Track) -> Array:
    """Return the poses of the twelve joints in the robot's order, (n, 12), or refuse the track."""
    missing = [name for name in A1.names if name not in track.names]
    unknown = [name for name in track.names if name not in A1.names]
    if missing or unknown or len(track.names) != LEG_MOTORS:
        message = "it has a joint twice"
        if missing or unknown:
            message = f"it lacks {missing[0]}" if missing else f"an A1 has no {unknown[0]}"
        raise BadRequestError(
            f"this track of {len(track.names)} joints is not a motion of an A1: {message}",
            "An A1 plays what an A1 was taught: tracks of its twelve joints.",
        )
    if len(track) < 2:
        raise BadRequestError(f"this track has {len(track)} samples", "A motion needs 2 at least.")
    return track.joints_rad[:, [track.names.index(name) for name in A1.names]]


def check_track(track: Track, safety: Safety, speed: float = 1.0) -> None:
    """Raise `UnsafeMotionError` if a track must not be played at that speed."""
    poses = leg_poses(track)
    check_playing_speed(speed)
    check_seconds(track.duration_s / speed, "a playback")
    times_s = (track.times_s - track.times_s[0]) / speed
    # Gaps stay gaps at any speed.
    check_gaps(track.times_s, most_s=A1.max_gap_s).permit(A1)
    check_joints(replace(track, times_s=times_s, variant=A1.name)).permit(A1)
    _check_margin(times_s, poses, safety)


def _check_margin(times_s: Array, poses: Array, safety: Safety) -> None:
    """Raise `UnsafeMotionError` where the position protection would trip."""
    margin = safety.limits.margin_rad
    if margin is None:
        return
    lower, upper = safety.lower_rad + margin, safety.upper_rad - margin
    outside = distance_outside_rad(poses, lower, upper) > 0
    if outside.any():
        row, column = divmod(int(outside.argmax()), LEG_MOTORS)
        raise UnsafeMotionError(
            A1.names[column],
            float(times_s[row]),
            f"{poses[row, column]:.3f} rad, and the position protection trips outside "
            f"{lower[column]:.3f} to {upper[column]:.3f} rad",
            "Teach it further from the joint's stop.",
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
        """How long it takes."""
        return (len(self.poses_rad) - 1) / RATE_HZ

    def restarted_from(self, now_rad: Sequence[float], seconds: float) -> "LegMotion":
        """Return the same motion with a soft approach of `seconds` from the current leg positions.

        Raises `BadRequestError` if that is too short to be soft.
        """
        poses = self.poses_rad[self.approach :]
        softest_s = len(plan_soft_move(np.asarray(now_rad, dtype=float), poses[0])) / RATE_HZ
        if seconds < softest_s - 1 / RATE_HZ:
            raise BadRequestError(
                f"the way to the first pose takes {softest_s:.2f} s, and {seconds:.2f} s are left",
                "Choose a later start.",
            )
        way = plan_soft_move(np.asarray(now_rad, dtype=float), poses[0], seconds)
        return LegMotion(self.name, np.vstack([way, poses]), len(way))

    def motors(self, time_s: float) -> MotorCmds | None:
        """Return the command at a time; None after the end."""
        tick = int(time_s * RATE_HZ + 1e-6)
        if tick >= len(self.poses_rad):
            return None
        # Soft at first: stiffness rises with the approach.
        share = min(1.0, 0.2 + 0.8 * tick / max(self.approach, 1))
        return MotorCmds.servo(
            q_rad=self.poses_rad[tick].tolist(),
            dq_rad_s=[0.0] * LEG_MOTORS,
            tau_nm=[0.0] * LEG_MOTORS,
            kp_nm_rad=[share * KP_NM_RAD] * LEG_MOTORS,
            kd_nm_s_rad=[KD_NM_S_RAD] * LEG_MOTORS,
        )


class MotionClock:
    """The time within a motion: the driver's time without jumps.

    After a delay a motion catches up at no more than twice its pace. After a stall it resumes where
    it was: the legs stood meanwhile and must not jump ahead.
    """

    def __init__(self) -> None:
        self._newest_s = self._at_s = self._later_s = 0.0

    def at(self, time_s: float) -> float:
        """Return the time within the motion, for a command at `time_s` since its beginning."""
        tick_s, passed_s = 1.0 / RATE_HZ, time_s - self._newest_s
        if passed_s > STALL_S:
            self._later_s = time_s - self._at_s - tick_s
        self._newest_s = time_s
        target_s = time_s - self._later_s
        # Several commands may come at once after a delay; only one of them is sent.
        most_s = self._at_s + 2.0 * min(passed_s, tick_s)
        self._at_s = max(self._at_s, min(target_s, most_s))
        # A computer that is too slow for the pace plays it slower.
        self._later_s += max(0.0, target_s - self._at_s - STALL_S)
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
    """Raise `BadRequestError` if a move in `seconds` would be faster than any motion is played."""
    least_s = MINIMUM_JERK_PEAK * float(np.abs(to_rad - from_rad).max()) / MAX_PLAYED_RAD_S
    if seconds is not None and seconds < least_s:
        raise BadRequestError(
            f"a move in {seconds:g} s would be faster than {MAX_PLAYED_RAD_S:g} rad/s",
            f"Choose {least_s:.2f} s or more, or leave the seconds out.",
        )


def plan_soft_move(from_rad: Array, to_rad: Array, seconds: float | None = None) -> Array:
    """Return a soft move tick by tick, (n, 12); without `seconds`, the shortest soft one."""
    far_rad = float(np.abs(to_rad - from_rad).max())
    softest_s = max(A1.soft_least_s, MINIMUM_JERK_PEAK * far_rad / A1.soft_rad_s)
    lasting_s = softest_s if seconds is None else seconds
    count = max(1, int(np.ceil(lasting_s * RATE_HZ)))
    return minimum_jerk(from_rad, to_rad, np.linspace(0.0, 1.0, count + 1)[:-1])
