"""Streaming a track: prepared and checked before anything is sent, then one pose per tick.

The robot receives arm setpoints many times per second. A prepared motion begins with a soft move
from the current arm positions and ends with a soft move back to rest. The weight of the stream
rises from 0 to 1 and falls again, so that the robot's own pose fades out and in.
"""

import asyncio
import math
import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, NamedTuple, ParamSpec, Protocol, TypeVar, cast, overload

import numpy as np

from rote.errors import (
    BadRequestError,
    ImportedMotionError,
    OtherBuildError,
    RefusedError,
    UnsupportedError,
)
from rote.findings import FindingKind
from rote.messages import Code, Interpolation, RobotState, StreamPose, explain
from rote.model.family import MOVED_RAD, Build, Hand, Joint
from rote.model.registry import family_of, find_build
from rote.motion.check.limits import check_joint_speeds, check_positions, playback_limits_rad_s
from rote.motion.check.report import CheckReport
from rote.motion.check.rules import check, check_contact, check_joints
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, hand_joints
from rote.platform import realtime
from rote.platform.clock import stall_clock
from rote.platform.loop import clock_of
from rote.robot.api_values import StreamReport, check_seconds
from rote.robot.link import RobotLink
from rote.robot.playing import ActionPlaying, Begin, Playing
from rote.transport.base_client import ThreadSafeSender
from rote.transport.wires import wire_of

RATES_HZ = (50.0, 1000.0)
SPEEDS = (0.05, 4.0)

FADED_MOVE_PEAK = 2.39
"""The highest speed of a minimum-jerk move whose weight also follows minimum jerk, as a multiple of
the mean speed.
"""
REPEAT_LAST_S = 0.2
"""The last pose is repeated for this time: a single lost message must not look like silence."""
REQUEST_RESERVE_S = 0.4
"""Time reserved before a timed start for the request and its reply."""
_LATE_START_S = 0.02  # a timed start may be requested this much later than due
_TIME_TOLERANCE_S = 1e-6  # a timer may end early by its rounding error
_TICK_TOLERANCE = 1e-6  # a rounding error of a time in ticks; it must not add a tick
LOOP_STALL_S = 0.7
"""A stream ends if the event loop, which alone can stop it, stalls for this many seconds."""
_PROBE_INTERVAL_S = 0.1  # the time between two tests whether the event loop has stalled
_MAX_BEHIND_S = 0.1
"""Poses later than this are skipped, one or two at a time: this computer is too slow for the rate.
After a gap longer than this, the rest of the motion is delayed instead.
"""
_STALL_EFFECT_S = 1.0
"""A return of the robot within this time of an interruption is attributed to it."""
_NOT_ALL_SENT = "its last poses were not sent"


P = ParamSpec("P")
T = TypeVar("T")


class Offload(Protocol):
    """Runs a module-level function elsewhere, for example in a child process, so that the event
    loop stays free for a stop.
    """

    def __call__(self, work: Callable[P, T], /, *args: P.args, **options: P.kwargs) -> Awaitable[T]:
        """Return an awaitable of the result."""


# ---- preparing ----------------------------------------------------------------------------------


class TaughtJoints(NamedTuple):
    """The joints of a build that are taught, and so played, as arrays."""

    names: tuple[str, ...]
    joints: tuple[Joint, ...]
    columns: Array
    """Their columns in a state."""
    rest_rad: Array
    lower_rad: Array
    upper_rad: Array
    soft_rad_s: float
    """The highest joint speed on the approach to the first pose and on the return."""
    soft_least_s: float


@cache
def taught_joint_arrays(build: Build) -> TaughtJoints:
    """Return the taught joints of a build as arrays."""
    joints, family = build.taught_joints, family_of(build)
    assert family is not None, "rote streams nothing to an unknown machine"
    columns: Array = np.array(build.taught_columns)
    return TaughtJoints(
        names=build.taught,
        joints=joints,
        columns=columns,
        rest_rad=np.array(build.rest_rad)[columns],
        lower_rad=np.array([joint.lower_rad for joint in joints]),
        upper_rad=np.array([joint.upper_rad for joint in joints]),
        soft_rad_s=family.soft_rad_s,
        soft_least_s=family.soft_least_s,
    )


def check_robot(track: Track, build: Build) -> None:
    """Raise `BadRequestError` for a motion of another robot family, which cannot be mapped."""
    track_build = build_of(track)
    if track_build is not None and track_build.family != build.family:
        intended, connected = _describe_robot(track_build), _describe_robot(build)
        raise BadRequestError(
            f"this is a motion of {intended}, but the robot is {connected}",
            f"Play it on {intended}, or choose a motion of {connected}.",
        )


def _describe_robot(build: Build) -> str:
    family = family_of(build)
    return build.title if family is None else a_robot(family)


def check_origin(track: Track, url: str, *, imported: bool) -> None:
    """Raise `ImportedMotionError` for an imported motion, unless the robot is simulated in this
    process or a person has approved it (`imported`).
    """
    origin = track.origin
    if origin is not None and not imported and not wire_of(url).lives_here:
        raise ImportedMotionError(origin.file, origin.format, origin.licence)


def check_build(track: Track, build: Build, *, mapped: bool) -> None:
    """Raise `OtherBuildError` for a motion of another build, unless `mapped` is true."""
    track_build = build_of(track)
    if mapped or track_build is None or track_build.name == build.name:
        return
    if track_build.family != build.family:
        return  # `check_robot` refuses it
    left_out = [name for name in track.names if name not in build.names]
    missing = [name for name in build.taught if name not in track.names]
    if left_out or missing:
        raise OtherBuildError(track_build.name, build.name, tuple(left_out), tuple(missing))


def taught_poses(track: Track, build: Build, *, mapped: bool = False) -> Array:
    """Return a track's poses of the taught joints, (n, joints); joints it lacks stay at rest.

    Raises `BadRequestError` if the track moves other joints: legs belong to the balance controller.
    A motion of another build is refused unless `mapped` (by joint names) is true.
    """
    taught = taught_joint_arrays(build)
    check_robot(track, build)
    check_build(track, build, mapped=mapped)
    unknown = [] if mapped else [name for name in track.names if name not in build.names]
    if unknown or len(set(track.names)) != len(track.names):
        problem = "a joint appears twice in the track"
        if unknown:
            problem = f"{_describe_robot(build)} has no {', '.join(unknown)}"
        raise BadRequestError(problem, f"Convert the track to the build {build.name} first.")
    shared = [name for name in track.names if name in taught.names]
    if len(track) < 2 or not shared:
        raise BadRequestError(
            f"this track has {len(track)} samples and {len(shared)} joints of arms or waist yaw",
            "A motion needs at least 2 samples of at least one such joint.",
        )
    for column, name in enumerate(track.names):
        moved_rad = float(np.ptp(track.joints_rad[:, column]))
        if name not in taught.names and name in build.names and moved_rad > MOVED_RAD:
            raise BadRequestError(
                f"{name} moves by {moved_rad:.2f} rad, but only arms and waist yaw can be played",
                "Drop that joint from the track if the motion does not need it.",
            )
    poses = np.repeat(taught.rest_rad[None, :], len(track), axis=0)
    track_columns = [track.names.index(name) for name in shared]
    taught_columns = [taught.names.index(name) for name in shared]
    poses[:, taught_columns] = track.joints_rad[:, track_columns]
    return poses


def check_playable(times_s: Array, poses_rad: Array, build: Build) -> Array:
    """Return poses of the taught joints within the limits, or raise `UnsafeMotionError`."""
    taught = taught_joint_arrays(build)
    check_positions(times_s, poses_rad, taught.joints)
    check_joint_speeds(times_s, poses_rad, taught.joints, playback_limits_rad_s(taught.joints))
    return np.asarray(np.clip(poses_rad, taught.lower_rad, taught.upper_rad))


# ---- hands --------------------------------------------------------------------------------------


def finger_columns(track: Track, build: Build) -> tuple[str, ...]:
    """Return the columns of a track that are joints of hands."""
    attached = hand_joints(build)
    return tuple(name for name in track.names if name in attached)


def without_hands(track: Track, build: Build) -> Track:
    """Return a track without the columns of hands."""
    fingers = finger_columns(track, build)
    return _select_columns(track, [name for name in track.names if name not in fingers])


def _select_columns(track: Track, names: Sequence[str]) -> Track:
    if len(names) == len(track.names):
        return track
    columns = [track.names.index(name) for name in names]
    return replace(track, joints_rad=track.joints_rad[:, columns], names=tuple(names))


class HandMotion(NamedTuple):
    """The hands that a motion moves, one pose per tick."""

    hands: tuple[Hand, ...] = ()
    poses_rad: Array = np.zeros((0, 0))
    """(n, joints), of the hands one after the other. NaN for a joint that the track does not have:
    it stays where it is.
    """

    @property
    def sides(self) -> tuple[str, ...]:
        """The sides of the hands."""
        return tuple(hand.side for hand in self.hands)

    def columns(self, build: Build) -> list[int]:
        """Return the columns of their joints in a state of a robot with these hands."""
        return [column for hand in self.hands for column in build.columns_of(hand)]


def _find_moved_hands(track: Track, build: Build) -> tuple[Hand, ...]:
    """Return the attached hands that a track moves; raise if the robot does not have them."""
    fingers = finger_columns(track, build)
    if not fingers:
        raise BadRequestError("this motion has no joints of hands", "Play it without the hands.")
    if not build.hands:
        raise UnsupportedError(
            "play hands: it reports none",
            f"this robot ({build.title})",
            remedy="Check the hands' plugs and their service on the robot, or play it without the "
            "hands.",
        )
    attached = [name for hand in build.hands for name in hand.names]
    if absent := [name for name in fingers if name not in attached]:
        raise BadRequestError(
            f"this motion moves {absent[0]}, but the robot reports no hand with this joint",
            "Drop those joints from the motion, or play it without the hands.",
        )
    return tuple(hand for hand in build.hands if set(hand.names) & set(fingers))


@dataclass(frozen=True, slots=True, eq=False)
class StreamedMotion:
    """A track that was found safe, one pose per tick."""

    name: str
    build: Build
    rate_hz: float
    poses_rad: Array
    """(n, joints), of the taught joints."""
    track: Track
    """The track it was made from, at the speed of the playback."""
    forced: bool = False
    """Whether it is played in spite of warnings."""
    fingers: HandMotion = field(default_factory=HandMotion)
    left_out: tuple[str, ...] = ()
    """The hand joints of the track that are not played."""

    @property
    def seconds(self) -> float:
        """Its duration in seconds, without the soft beginning and end."""
        return (len(self.poses_rad) - 1) / self.rate_hz

    async def check_contact(self, state: RobotState, offload: Offload | None = None) -> None:
        """Raise `UnsafeMotionError` if the robot, in its current posture, would touch itself.

        The first call may take a while, so it runs in another thread.
        """
        body = self.build.bare
        pose_rad = state.joints_rad[: len(body.joints)]
        run = offload or asyncio.to_thread
        report = await run(check_contact, self.track, pose_rad, body)
        report.permit(force=self.forced)

    def approach_s(self, state: RobotState) -> float:
        """Return how long the soft approach from the current arm positions takes, in seconds."""
        return (len(self._compute_ramp(self._measure_distance_rad(state))) - 1) / self.rate_hz

    def _measure_distance_rad(self, state: RobotState) -> Array:
        """Return the distance of each joint and finger from the first pose, in rad."""
        fingers_now, fingers = self._align_fingers(state)
        now_rad = np.array(state.joints_rad)[taught_joint_arrays(self.build).columns]
        return np.array([*(self.poses_rad[0] - now_rad), *(fingers[0] - fingers_now)])

    def poses(self, state: RobotState, approach_s: float = 0.0) -> "PoseRows":
        """Return all poses to send, from the current arm positions to rest.

        The approach takes at least `approach_s`, and longer if necessary.
        """
        taught = taught_joint_arrays(self.build)
        now_rad, rest_rad = np.array(state.joints_rad)[taught.columns], taught.rest_rad
        first_rad, last_rad = self.poses_rad[0], self.poses_rad[-1]
        fingers_now, fingers = self._align_fingers(state)
        # The fractions of the approach and of the return, tick by tick.
        rise = self._compute_ramp(self._measure_distance_rad(state), approach_s)[:-1]
        # The robot's own pose is unknown: assume the rest pose or the current one, the farther.
        return_rad = np.maximum(np.abs(last_rad - rest_rad), np.abs(last_rad - now_rad))
        repeats = np.ones(round(REPEAT_LAST_S * self.rate_hz))
        fall = np.concatenate([self._compute_ramp(return_rad)[1:], repeats])
        weights = [_ease_fractions(rise), np.ones(len(self.poses_rad)), 1.0 - _ease_fractions(fall)]
        approach_path = minimum_jerk(now_rad, first_rad, rise)
        return_path = minimum_jerk(last_rad, rest_rad, fall)
        rows = np.vstack([approach_path, self.poses_rad, return_path])
        finger_approach = minimum_jerk(fingers_now, fingers[0], rise)
        # Fingers have no rest pose: they stay in their last pose while they go soft.
        held_fingers = np.repeat(fingers[-1:], len(fall), axis=0)
        finger_rows = np.vstack([finger_approach, fingers, held_fingers])
        return PoseRows(np.concatenate(weights), rows, finger_rows, first=len(rise))

    def _align_fingers(self, state: RobotState) -> tuple[Array, Array]:
        """Return the current finger positions, and the finger poses of the motion.

        Joints that the motion does not move keep their current position.
        """
        if not self.fingers.hands:
            return np.zeros(0), np.zeros((len(self.poses_rad), 0))
        now_rad = np.array(state.joints_rad)[self.fingers.columns(self.build)]
        poses = self.fingers.poses_rad
        return now_rad, np.where(np.isnan(poses), now_rad, poses)

    def _compute_ramp(self, distance_rad: Array, min_s: float = 0.0) -> Array:
        """Return the fractions of a soft move over that distance, tick by tick from 0 to 1.

        The move takes at least `min_s`, and long enough for the soft speed of the robot's family.
        """
        taught = taught_joint_arrays(self.build)
        speed_limited_s = FADED_MOVE_PEAK * float(np.abs(distance_rad).max()) / taught.soft_rad_s
        seconds = max(taught.soft_least_s, speed_limited_s, min_s)
        ticks = int(np.ceil(seconds * self.rate_hz - _TICK_TOLERANCE))
        return np.linspace(0.0, 1.0, ticks + 1)


class PoseRows(Sequence[StreamPose]):
    """Poses to send, each built on access: building all at once would block for too long."""

    def __init__(self, weights: Array, rows_rad: Array, finger_rows_rad: Array, first: int) -> None:
        self.first = first
        """Index of the motion's own first pose; the poses before it are the approach."""
        self._weights = weights
        self._rows_rad = rows_rad
        self._finger_rows_rad = finger_rows_rad

    def __len__(self) -> int:
        return len(self._weights)

    @overload
    def __getitem__(self, index: int) -> StreamPose: ...
    @overload
    def __getitem__(self, index: slice) -> list[StreamPose]: ...
    def __getitem__(self, index: int | slice) -> StreamPose | list[StreamPose]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        number = range(len(self))[index]  # a negative index counts from the end
        row, fingers = self._rows_rad[number].tolist(), self._finger_rows_rad[number].tolist()
        return StreamPose(number, float(self._weights[number]), tuple(row), tuple(fingers))

    def interpolate_row(self, position: float) -> Array:
        """Return the pose of the taught joints at a position between two rows."""
        return self._interpolate(self._rows_rad, position)

    def interpolate_weight(self, position: float) -> float:
        """Return the weight at a position between two rows."""
        return float(self._interpolate(self._weights, position))

    def interpolate(self, position: float, number: int) -> StreamPose:
        """Return the pose at a position between two rows, to be sent under `number`."""
        row = self.interpolate_row(position)
        fingers = self._interpolate(self._finger_rows_rad, position)
        weight = self.interpolate_weight(position)
        return StreamPose(number, weight, tuple(row.tolist()), tuple(fingers.tolist()))

    def _interpolate(self, values: Array, position: float) -> Array:
        last = len(self) - 1
        before = min(int(position), last)
        after, fraction = min(before + 1, last), position - before
        interpolated: Array = (1 - fraction) * values[before] + fraction * values[after]
        return interpolated


def ease_fraction(fraction: float) -> float:
    """Return the fraction of its distance that a minimum-jerk move has covered after this fraction
    of its time.
    """
    return fraction**3 * (10.0 - 15.0 * fraction + 6.0 * fraction**2)


def _ease_fractions(fractions: Array) -> Array:
    return minimum_jerk(np.zeros(1), np.ones(1), fractions)[:, 0]


def check_at_speed(
    track: Track, speed: float = 1.0, build: Build | None = None, *, hands: bool = False
) -> CheckReport:
    """Check a track at that speed and return the report; its `permit` raises what it forbids.

    With a `build`, a motion of another family raises `BadRequestError`. Without `hands` the joints
    of hands are not checked, because they are not played.
    """
    if build is not None:
        check_robot(track, build)
    track_build = build_of(track)
    if not hands and track_build is not None:
        track = without_hands(track, track_build)
    return check(_scale_times(track, speed))


@dataclass(frozen=True, slots=True, eq=False)
class TrackCheck:
    """Cached check result for one track at one speed: see `play_track`."""

    track: Track
    speed: float
    report: CheckReport
    """From `check_at_speed`, or from `check` if the speed is 1."""

    def applies_to(self, track: Track, build: Build, speed: float) -> bool:
        """Whether this result is for the same (immutable) track, build and speed. Then only
        contact, which depends on the robot's posture, remains to be checked.
        """
        if self.track is not track or self.speed != speed:
            return False
        return find_build(track.variant) == build.bare and not finger_columns(track, build)

    @property
    def without_contact_findings(self) -> CheckReport:
        """The report without its contact findings."""
        kept = [each for each in self.report.findings if each.kind is not FindingKind.COLLISION]
        return CheckReport(tuple(kept))


def check_rate(rate_hz: float) -> None:
    """Raise `BadRequestError` for a rate out of range."""
    if not RATES_HZ[0] <= rate_hz <= RATES_HZ[1]:
        raise BadRequestError(
            f"a rate of {rate_hz} Hz is out of range",
            f"Choose {RATES_HZ[0]:g} to {RATES_HZ[1]:g} Hz.",
        )


def check_playing_speed(speed: float) -> None:
    """Raise `BadRequestError` for a speed out of range."""
    if not SPEEDS[0] <= speed <= SPEEDS[1]:
        raise BadRequestError(
            f"a speed of {speed} is out of range", f"Choose {SPEEDS[0]:g} to {SPEEDS[1]:g}."
        )


def _scale_times(track: Track, speed: float) -> Track:
    """Return a track with its times scaled to that playing speed."""
    check_playing_speed(speed)
    if speed == 1.0:
        return track
    first_s = track.times_s[0]
    return replace(track, times_s=first_s + (track.times_s - first_s) / speed)


def _keep_build_joints(track: Track, build: Build) -> Track:
    """Return a track without the joints that a build does not have."""
    kept = _select_columns(track, [name for name in track.names if name in build.names])
    return replace(kept, variant=build.name)


def prepare(
    track: Track,
    build: Build,
    rate_hz: float,
    speed: float,
    *,
    force: bool = False,
    mapped: bool = False,
    checked: TrackCheck | None = None,
) -> StreamedMotion:
    """Prepare a track for streaming; raises `UnsafeMotionError` if it must not be played.

    Everything but contact is checked; contact needs the state, see `StreamedMotion.check_contact`.
    The columns of hands are left out; `with_hands` adds them. A `checked` result for this very
    track is reused.
    """
    check_rate(rate_hz)
    if checked is not None and (mapped or not checked.applies_to(track, build, speed)):
        checked = None
    left_out = finger_columns(track, build)
    track = without_hands(track, build)
    poses = taught_poses(track, build, mapped=mapped)
    check_seconds(track.duration_s / speed, "a playback")
    ticks = max(1, int(np.ceil(track.duration_s / speed * rate_hz - _TICK_TOLERANCE)))
    times_s = np.arange(ticks + 1) / rate_hz
    track_times_s = track.times_s[0] + times_s * speed
    # The last tick may be after the end of the track: `sample` then returns its last pose.
    resampled = sample(track.times_s, poses, track_times_s, Interpolation.CUBIC)
    poses_rad = check_playable(times_s, resampled, build)
    scaled = _scale_times(_keep_build_joints(track, build) if mapped else track, speed)
    report = (
        check(scaled, build=build.bare, contact=False)
        if checked is None
        else checked.without_contact_findings
    )
    report.permit(force=force)
    name = track.source or "a track"
    return StreamedMotion(name, build, rate_hz, poses_rad, scaled, force, left_out=left_out)


def with_hands(motion: StreamedMotion, track: Track, speed: float) -> StreamedMotion:
    """Return a motion with the hands of the track it was made from.

    Raises `UnsafeMotionError` if a finger would exceed its limits, and `UnsupportedError` or
    `BadRequestError` if the robot does not report the hands.
    """
    hands = _find_moved_hands(track, motion.build)
    joints = [joint for hand in hands for joint in hand.joints]
    times_s = np.arange(len(motion.poses_rad)) / motion.rate_hz
    track_times_s = track.times_s[0] + times_s * speed
    poses = np.full((len(times_s), len(joints)), np.nan)
    for index, joint in enumerate(joints):
        if joint.name in track.names:
            column = track.joints_rad[:, [track.names.index(joint.name)]]
            resampled = sample(track.times_s, column, track_times_s, Interpolation.CUBIC)
            check_positions(times_s, resampled, [joint])
            check_joint_speeds(times_s, resampled, [joint], playback_limits_rad_s([joint]))
            poses[:, index] = np.clip(resampled[:, 0], joint.lower_rad, joint.upper_rad)
    finger_track = _select_columns(track, finger_columns(track, motion.build))
    check_joints(_scale_times(finger_track, speed), motion.build.bare).permit(force=motion.forced)
    return replace(motion, fingers=HandMotion(hands, poses), left_out=())


# ---- sending ------------------------------------------------------------------------------------


class TimedStart:
    """The start time of a motion, so that several robots can begin together.

    The request and the approach begin `lead_s` seconds earlier, so that the arms reach the first
    pose in time. `lead_s` is set once everything is prepared; nothing moves before `at` is called.
    """

    def __init__(self, at_s: float | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.lead_s: asyncio.Future[float] = loop.create_future()
        self._at_s: asyncio.Future[float] = loop.create_future()
        self._given_up: asyncio.Future[None] = loop.create_future()
        self._hold_changed = asyncio.Event()
        """Set by `hold` and `release`."""
        self._is_held = False
        self._delay_s = 0.0
        self._due_s: float | None = None
        """When the request is due; None before that is known, and once it was sent."""
        if at_s is not None:
            self.at(at_s)

    def at(self, at_s: float) -> None:
        """Set the start, by the event loop's clock. Raises `BadRequestError` if not finite."""
        if not math.isfinite(at_s):
            raise BadRequestError(
                f"the start time {at_s} is not finite", "Give a time of the event loop's clock."
            )
        if not self._at_s.done():
            self._at_s.set_result(at_s)

    @property
    def due_s(self) -> float | None:
        """When the request is sent; None before that is known, and once it was sent."""
        return self._due_s

    def hold(self) -> None:
        """Do not begin before `release`."""
        self._is_held = True
        self._hold_changed.set()

    def release(self, delay_s: float) -> None:
        """Begin `delay_s` later than planned. Raises `BadRequestError` for an invalid delay."""
        if not (math.isfinite(delay_s) and delay_s >= 0.0):
            raise BadRequestError(f"a delay must be finite and at least 0 s, not {delay_s} s")
        self._is_held, self._delay_s = False, self._delay_s + delay_s
        self._hold_changed.set()

    def give_up(self) -> None:
        """Never begin: the robot was stopped."""
        if not self._given_up.done():
            self._given_up.set_result(None)

    async def wait(self, lead_s: float) -> float:
        """Set `lead_s`, wait until the request is due, and return the start time.

        Raises `BadRequestError` if that time has passed, and `RefusedError` after `give_up`.
        """
        if not self.lead_s.done():
            self.lead_s.set_result(lead_s)
        await self._wait_unless_stopped(self._at_s)
        at_s = self._at_s.result()
        loop = asyncio.get_running_loop()
        left_s = at_s - lead_s - clock_of(loop)()
        if left_s < -_LATE_START_S:
            raise BadRequestError(
                f"the start is {-left_s:.2f} s too early: the approach to the first pose takes "
                f"{lead_s:.2f} s",
                "Choose a later start.",
            )
        while self._is_held or left_s > _TIME_TOLERANCE_S:
            self._hold_changed.clear()
            self._due_s = at_s + self._delay_s - lead_s
            change = asyncio.ensure_future(self._hold_changed.wait())
            try:
                await self._wait_unless_stopped(change, None if self._is_held else left_s)
            finally:
                change.cancel()
            left_s = at_s + self._delay_s - lead_s - clock_of(loop)()
        self._due_s = None
        return at_s + self._delay_s

    async def _wait_unless_stopped(
        self, future: asyncio.Future[Any], timeout_s: float | None = None
    ) -> None:
        """Wait for `future`, at most `timeout_s`; raise `RefusedError` after `give_up`."""
        futures: list[asyncio.Future[Any]] = [self._given_up, future]
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if self._given_up.done():
            raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))


def check_in_time(late_s: float) -> None:
    """Raise `BadRequestError` if a stream would begin so late that its first poses were skipped and
    the arms would jump.
    """
    if late_s > _MAX_BEHIND_S:
        raise BadRequestError(
            f"the robot accepted the motion {late_s:.2f} s late, so its arms cannot reach the "
            "first pose in time",
            "Wait until its arms are at rest, and choose a later start.",
        )


class LatenessStatistics:
    """How late poses were sent, in constant memory: a stream may last for hours."""

    # Upper ends of the bins: 1 us for the first, each 2 % more; 1000 bins reach to 390 s.
    _FIRST_BIN_S, _BIN_RATIO, _BIN_COUNT = 1e-6, 1.02, 1000

    def __init__(self) -> None:
        self.count = 0
        self.max_s = 0.0
        self._bins = [0] * self._BIN_COUNT
        """How many poses were late by the time of each bin."""

    def add(self, late_s: float) -> None:
        """Count one pose that was sent `late_s` seconds late."""
        self.count += 1
        self.max_s = max(self.max_s, late_s)
        index = 0
        if late_s > self._FIRST_BIN_S:
            index = int(math.log(late_s / self._FIRST_BIN_S) / math.log(self._BIN_RATIO)) + 1
        self._bins[min(index, self._BIN_COUNT - 1)] += 1

    def percentile_s(self, percent: float) -> float:
        """Return the lateness in seconds that `percent` of the poses did not exceed.

        The result is at most 2 % too high.
        """
        remaining = self.count * percent / 100.0
        for index, count in enumerate(self._bins):
            remaining -= count
            if count and remaining <= 0.0:
                return min(self._FIRST_BIN_S * self._BIN_RATIO**index, self.max_s)
        return self.max_s


class PausableMotion(Protocol):
    """The poses of a motion that can be paused: see `PausablePoses`."""

    def __len__(self) -> int: ...

    @property
    def is_in_motion(self) -> bool:
        """Whether the approach is over, and a pause would still hold the arms with full weight."""

    @property
    def is_held(self) -> bool:
        """Whether a pause holds the arms in place."""

    @property
    def pose_rad(self) -> Array:
        """The newest commanded pose of the taught joints."""

    def pause(self, tick: int) -> None:
        """Slow down from `tick` on, and hold."""

    def resume(self, tick: int) -> int:
        """Speed up from `tick` on; return the number of ticks of the delay."""


class Ticker:
    """Sends one pose per tick, each by its own deadline.

    After a delay, poses are sent at twice the rate until the deadlines are met again. Sending all
    late poses at once, or skipping them, would make the arms jerk.
    """

    def __init__(self, rate_hz: float) -> None:
        self.rate_hz = rate_hz
        self._period_s = 1.0 / rate_hz
        self._catch_up_after_s = _MAX_BEHIND_S - self._period_s
        """A pose that is later than this needs `_catch_up`."""
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._stall_clock = stall_clock(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._send_pose: Callable[[int], bool] = lambda _: False
        self._count = self._next_index = 0
        self._began_s = self._sent_s = self._due_s = 0.0
        """When the stream began, the newest pose was sent, and the next is due, by `_clock`."""
        self._sent_continuous_s = 0.0
        """When the newest pose was sent, by `_stall_clock`, which also counts suspend."""
        self._first_index = 0
        """Index of the motion's own first pose."""
        self.first_late_s: float | None = None
        """How late the motion's own first pose was sent; None before that."""
        self._lateness = LatenessStatistics()
        self._missed = 0
        self._loop_alive_s = 0.0
        """When the event loop last ran a callback."""
        self.cut_off = False
        """Whether the stream ended before its last pose was sent."""
        self.cut_reason = ""
        """Why, if the ticker itself ended it."""
        self._pausable: PausableMotion | None = None
        self._last_stall: tuple[float, str] | None = None
        """When the stream resumed after its last interruption, and a text about it."""

    def start(
        self,
        send: Callable[[int], bool],
        count: int,
        began_s: float | None = None,
        first: int = 0,
        pausable: PausableMotion | None = None,
    ) -> None:
        """Begin now, or at `began_s`, and call `send` with the indices 0 to `count - 1`, until it
        returns False. `first` is the index of the motion's own first pose, whose lateness is
        recorded. `pausable` has the poses of a motion that can be paused.

        If `send` may be called from any thread, a separate thread calls it: that costs half as
        much, and nothing else in this program delays it.
        """
        self._send_pose, self._count, self._stopped = send, count, False
        self._pausable = pausable
        self._began_s = self._due_s = self._clock() if began_s is None else began_s
        self._first_index = first
        # Tests use an event loop with virtual time, which a thread could not follow.
        is_real_time = abs(self._loop.time() - time.monotonic()) < 1.0
        if isinstance(send, ThreadSafeSender) and is_real_time:
            self._send_pose = send.send_pose
            threading.Thread(target=self._run_in_thread, name="rote stream", daemon=True).start()
        elif began_s is None:
            self._send_and_reschedule()
        else:
            self._timer = self._loop.call_at(self._due_s, self._send_and_reschedule)

    @property
    def pausable(self) -> PausableMotion | None:
        """The motion if it can be paused and has begun."""
        return self._pausable

    def pause(self, at_s: float) -> None:
        """Pause the motion from `at_s` of the event loop's clock on, or at once.

        Raises `BadRequestError` if it cannot be paused now.
        """
        poses = self._require_pausable()
        poses.pause(self._compute_tick(at_s))
        self._count = len(poses)

    def resume(self, at_s: float) -> float:
        """Resume the motion at `at_s`; return how long the motion was delayed, in seconds.

        Raises `BadRequestError` if it is not paused.
        """
        poses = self._require_pausable()
        delay_ticks = poses.resume(self._compute_tick(at_s))
        self._count = len(poses)
        return delay_ticks * self._period_s

    def _require_pausable(self) -> PausableMotion:
        if self._pausable is None:
            raise BadRequestError("this motion cannot be paused now", "Stop it instead.")
        return self._pausable

    def _compute_tick(self, at_s: float) -> int:
        """Return the number of the tick at a time of the event loop's clock."""
        if not math.isfinite(at_s):
            raise BadRequestError(f"the time of a pause must be finite, not {at_s}")
        return round((at_s - self._began_s) * self.rate_hz)

    def stop(self) -> None:
        """Stop sending. Safe to call twice."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run_in_thread(self) -> None:
        """Send the poses from this thread; end the stream if the event loop stalls or ends."""
        realtime.request_precise_timers()
        realtime.request_realtime()
        clock, stall_clock = self._clock, self._stall_clock
        self._loop_alive_s = probed_s = stall_clock()
        while not self._stopped:
            time.sleep(max(0.0, self._due_s - clock()))
            now_s, continuous_s = clock(), stall_clock()
            if continuous_s - self._loop_alive_s > LOOP_STALL_S:
                # The loop could not process a stop. Without poses the robot returns softly itself.
                self._end_early(
                    f"this program's event loop stalled for more than {LOOP_STALL_S:g} s, "
                    "so a stop could not take effect"
                )
                return
            if continuous_s - probed_s >= _PROBE_INTERVAL_S:
                probed_s = continuous_s
                try:
                    self._loop.call_soon_threadsafe(self._note_loop_alive)
                except RuntimeError:
                    self._end_early("this program ended its event loop")
                    return
            if self._stopped or not self._send_due_pose(now_s, continuous_s):
                return

    def _end_early(self, reason: str) -> None:
        self.cut_reason, self.cut_off = reason, True

    def _note_loop_alive(self) -> None:
        """Record that the event loop is not stalled: it has just run this callback."""
        self._loop_alive_s = self._stall_clock()

    def _send_and_reschedule(self) -> None:
        if self._send_due_pose(self._clock(), self._stall_clock()):
            self._timer = self._loop.call_at(self._due_s, self._send_and_reschedule)

    def _send_due_pose(self, now_s: float, continuous_s: float) -> bool:
        """Send the due pose; return whether more follow.

        The time is `now_s` by `_clock`, and `continuous_s` by `_stall_clock`, which counts suspend.
        """
        index, period_s = self._next_index, self._period_s
        self._record_stall(now_s, continuous_s)
        late_s = now_s - self._began_s - index * period_s
        self._lateness.add(late_s)
        if late_s > self._catch_up_after_s:
            index = self._catch_up(index, late_s, now_s)
        sent = self._send_pose(index)
        if self.first_late_s is None and index >= self._first_index:
            self.first_late_s = now_s - self._began_s - self._first_index * period_s
        self._sent_s = now_s
        self._next_index = index = index + 1
        # A late stream catches up at no more than twice its rate.
        self._due_s = max(self._began_s + index * period_s, now_s + period_s / 2)
        if sent:
            return index < self._count and not self._stopped
        self.cut_off = True
        return False

    def _record_stall(self, now_s: float, continuous_s: float) -> None:
        """Record an interruption between the previous pose and this one, if it was long."""
        gap_s = continuous_s - self._sent_continuous_s
        self._sent_continuous_s = continuous_s
        if not self._next_index or gap_s <= _MAX_BEHIND_S:
            return
        suspended_s = gap_s - (now_s - self._sent_s)
        if suspended_s > _MAX_BEHIND_S:
            description = f"this computer was suspended for {suspended_s:.1f} s"
        else:
            description = f"this computer sent no pose for {gap_s:.2f} s"
        self._last_stall = now_s, description

    def describe_stall_before(self, ended_s: float | None) -> str:
        """Return the interruption that explains why the robot ended the motion at `ended_s`, as
        text; "" if there was none.
        """
        if self._last_stall is None or ended_s is None:
            return ""
        resumed_s, reason = self._last_stall
        return reason if abs(ended_s - resumed_s) < _STALL_EFFECT_S else ""

    def _catch_up(self, index: int, late_s: float, now_s: float) -> int:
        """Return the index of the pose to send, given that the pose `index` is `late_s` late."""
        if index and now_s - self._sent_s > _MAX_BEHIND_S:
            # The process stalled while the robot held its pose: resume here, do not jump ahead.
            self._began_s += late_s
            return index
        too_late = int((late_s - _MAX_BEHIND_S) / self._period_s)
        skipped = min(too_late, self._count - 1 - index)
        self._missed += skipped
        return index + skipped

    def report(
        self, name: str, *, completed: bool, seconds: float, reason: str = ""
    ) -> StreamReport:
        """Return how well the deadlines were met."""
        duration_s = self._sent_s - self._began_s
        return StreamReport(
            name=name,
            completed=completed,
            seconds=seconds,
            reason=reason,
            rate_hz=(self._lateness.count - 1) / duration_s if duration_s > 0 else 0.0,
            late_p99_ms=1000.0 * self._lateness.percentile_s(99.0),
            late_max_ms=1000.0 * self._lateness.max_s,
            missed=self._missed,
            start_late_ms=None if self.first_late_s is None else 1000.0 * self.first_late_s,
        )


class Streaming(Playing):
    """A streamed playback, as `robot.play_track` returns it. Await it to wait for the end, iterate
    over it to watch, or call its `stop`.

    Awaiting returns a `StreamReport`. If the awaiting task is cancelled, the robot stops softly
    too.
    """

    left_out: tuple[str, ...] = ()
    """The joints of hands that the track has and that are not played, because `hands` was not
    given.
    """

    def __await__(self) -> Generator[Any, None, StreamReport]:
        return cast("Generator[Any, None, StreamReport]", super().__await__())

    async def wait(self) -> StreamReport:
        """Wait for the end, soft return included, and return the report.

        Cancelling the wait does not stop the robot.
        """
        return cast("StreamReport", await super().wait())

    @property
    def can_pause(self) -> bool:
        """Whether the motion is under way and can be paused; an approach cannot."""
        return False

    @property
    def held_pose_rad(self) -> Array | None:
        """The pose of the taught joints in which a pause holds the arms; None if none does."""
        return None

    def pause(self, at_s: float) -> None:
        """Slow down softly from `at_s` of the event loop's clock on, and hold the pose.

        It is not a stop: the arms stay stiff. Raises `BadRequestError` if it is not possible now.
        """
        raise BadRequestError("this motion cannot be paused", "Stop it instead.")

    def resume(self, at_s: float) -> None:
        """Go on along the same path from `at_s` on. Raises `BadRequestError` if not paused."""
        raise BadRequestError("this motion is not paused")


class PoseStreaming(ActionPlaying, Streaming):
    """A stream of poses to a robot that reports its progress."""

    def __init__(
        self,
        link: RobotLink,
        name: str,
        begin: Begin,
        ticker: Ticker,
        left_out: tuple[str, ...] = (),
    ) -> None:
        self._ticker, self.left_out = ticker, left_out
        super().__init__(link, name, begin)

    @property
    def can_pause(self) -> bool:
        """Whether the motion is under way and can be paused; an approach cannot."""
        poses = self._ticker.pausable
        return poses is not None and poses.is_in_motion and not self.done

    @property
    def held_pose_rad(self) -> Array | None:
        """The pose of the taught joints in which a pause holds the arms; None if none does."""
        poses = self._ticker.pausable
        return poses.pose_rad if poses is not None and poses.is_held else None

    def pause(self, at_s: float) -> None:
        """Slow down softly from `at_s` of the event loop's clock on, and hold the pose.

        It is not a stop: the arms stay stiff. Raises `BadRequestError` if it is not possible now.
        """
        if not self.can_pause:
            raise BadRequestError("this motion cannot be paused now", "Stop it instead.")
        self._ticker.pause(at_s)
        self._watch.begin_pause()

    def resume(self, at_s: float) -> None:
        """Go on along the same path from `at_s` on. Raises `BadRequestError` if not paused."""
        self._watch.end_pause(self._ticker.resume(at_s))

    @property
    def _continues_on_robot(self) -> bool:
        return False  # without poses the robot returns by itself

    def _was_stopped(self) -> bool:
        # A stop ends the poses at once, even if the robot never confirms it.
        return self._link.stops.count != self._stop_count

    async def _run(self) -> StreamReport:
        try:
            played = await super()._run()
        finally:
            self._ticker.stop()
        completed, reason = played.completed and not self._ticker.cut_off, ""
        if not completed:
            reason = self._explain_early_end() or played.reason or _NOT_ALL_SENT
        return self._ticker.report(
            played.name, completed=completed, seconds=played.seconds, reason=reason
        )

    def _explain_early_end(self) -> str:
        """Return why this computer ended the stream early; "" if it did not."""
        if self._was_stopped():
            return self._explain_end()
        reason = self._ticker.cut_reason or self._client.stop_reason
        return reason or self._ticker.describe_stall_before(self._watch.ended_at)
