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

# Pose and weight both follow minimum jerk. Their product moves fastest at this many times the mean
# speed.
_SQUARED_PEAK = 2.39
_SENT_ON_S = 0.2  # the last pose is repeated this long: one lost message must not look like silence
ASKING_S = 0.4  # time reserved before a timed start for the request and its reply
_LATE_START_S = 0.02
LOOP_STALL_S = 0.7
"""A stream ends if the event loop, which alone can stop it, stalls for this many seconds."""
_PROBE_LOOP_S = 0.1
_BEHIND_MAX_S = 0.1
# Poses later than this are skipped, one or two at a time: this computer is too slow for the rate.
# After a pause longer than this, the rest of the motion is delayed instead.
_STALL_ENDS_S = 1.0
"""A robot that returns within this time of an interruption does so because of it."""
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
    assert family is not None, "nothing is streamed to a machine that is not known"
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
    own = build_of(track)
    if own is not None and own.family != build.family:
        theirs, ours = (_robot_title(each) for each in (own, build))
        raise BadRequestError(
            f"this is a motion of {theirs}, and the robot is {ours}",
            f"Play it on {theirs}, or choose a motion of {ours}.",
        )


def _robot_title(build: Build) -> str:
    family = family_of(build)
    return build.title if family is None else a_robot(family)


def check_origin(track: Track, url: str, *, imported: bool) -> None:
    """Raise `ImportedMotionError` for an imported motion on a robot that is not simulated in this
    process, unless a person agreed: `imported`.
    """
    origin = track.origin
    if origin is not None and not imported and not wire_of(url).lives_here:
        raise ImportedMotionError(origin.file, origin.format, origin.licence)


def check_build(track: Track, build: Build, *, mapped: bool) -> None:
    """Raise `OtherBuildError` for a motion of another build, unless `mapped` is true."""
    own = build_of(track)
    if mapped or own is None or own.name == build.name or own.family != build.family:
        return
    left_out = [name for name in track.names if name not in build.names]
    missing = [name for name in build.taught if name not in track.names]
    if left_out or missing:
        raise OtherBuildError(own.name, build.name, tuple(left_out), tuple(missing))


def taught_poses(track: Track, build: Build, *, mapped: bool = False) -> Array:
    """Return a track's poses of the taught joints, (n, joints); joints it lacks stay at rest.

    Raises an error if the track moves other joints: legs belong to the balance controller. A motion
    of another build is `mapped` by joint names, or refused.
    """
    taught = taught_joint_arrays(build)
    check_robot(track, build)
    check_build(track, build, mapped=mapped)
    unknown = [] if mapped else [name for name in track.names if name not in build.names]
    if unknown or len(set(track.names)) != len(track.names):
        what = ", ".join(unknown) or "a joint that the track has twice"
        raise BadRequestError(
            f"{_robot_title(build)} has no {what}",
            f"Convert the track to the build {build.name} first.",
        )
    shared = [name for name in track.names if name in taught.names]
    if len(track) < 2 or not shared:
        raise BadRequestError(
            f"this track has {len(track)} samples and {len(shared)} joints of arms or waist yaw",
            "A motion needs 2 samples of one such joint at least.",
        )
    for column, name in enumerate(track.names):
        moved_rad = float(np.ptp(track.joints_rad[:, column]))
        if name not in taught.names and name in build.names and moved_rad > MOVED_RAD:
            raise BadRequestError(
                f"{name} moves by {moved_rad:.2f} rad, and only arms and waist yaw can be played",
                "Drop that joint from the track, if the motion can do without.",
            )
    poses = np.repeat(taught.rest_rad[None, :], len(track), axis=0)
    columns = [track.names.index(name) for name in shared]
    poses[:, [taught.names.index(name) for name in shared]] = track.joints_rad[:, columns]
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
    return _with_columns(track, [name for name in track.names if name not in fingers])


def _with_columns(track: Track, names: Sequence[str]) -> Track:
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
            remedy="Look at the hands' plugs and at their service on the robot. Or play it without "
            "the hands.",
        )
    attached = [name for hand in build.hands for name in hand.names]
    if absent := [name for name in fingers if name not in attached]:
        raise BadRequestError(
            f"the robot reports no hand with {absent[0]}, which this motion has",
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
        """How long it takes in seconds, without the soft beginning and end."""
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
        return (len(self._ramp_fractions(self._distance_to_first_rad(state))) - 1) / self.rate_hz

    def _distance_to_first_rad(self, state: RobotState) -> Array:
        """Return the distance of each joint and finger from the first pose, in rad."""
        fingers_now, fingers = self._fingers_from(state)
        now_rad = np.array(state.joints_rad)[taught_joint_arrays(self.build).columns]
        return np.array([*(self.poses_rad[0] - now_rad), *(fingers[0] - fingers_now)])

    def poses(self, state: RobotState, approach_s: float = 0.0) -> "PoseRows":
        """Return all poses to send, from the current arm positions to rest.

        The approach takes at least `approach_s`, and longer if necessary.
        """
        taught = taught_joint_arrays(self.build)
        now_rad, rest = np.array(state.joints_rad)[taught.columns], taught.rest_rad
        first, last = self.poses_rad[0], self.poses_rad[-1]
        fingers_now, fingers = self._fingers_from(state)
        rise = self._ramp_fractions(self._distance_to_first_rad(state), approach_s)[:-1]
        # The rest pose is a guess; the robot's own pose may equally be the one at the beginning.
        fall = self._ramp_fractions(np.maximum(np.abs(last - rest), np.abs(last - now_rad)))[1:]
        fall = np.concatenate([fall, np.ones(round(_SENT_ON_S * self.rate_hz))])
        weights = [_ease(rise), np.ones(len(self.poses_rad)), 1.0 - _ease(fall)]
        approach, away = minimum_jerk(now_rad, first, rise), minimum_jerk(last, rest, fall)
        rows = np.vstack([approach, self.poses_rad, away])
        # Fingers have no rest pose: they stay in their last pose while they go soft.
        held = np.repeat(fingers[-1:], len(fall), axis=0)
        grips = np.vstack([minimum_jerk(fingers_now, fingers[0], rise), fingers, held])
        return PoseRows(np.concatenate(weights), rows, grips, first=len(rise))

    def _fingers_from(self, state: RobotState) -> tuple[Array, Array]:
        """Return the current finger positions, and the finger poses with the joints that do not
        move.
        """
        if not self.fingers.hands:
            return np.zeros(0), np.zeros((len(self.poses_rad), 0))
        now_rad = np.array(state.joints_rad)[self.fingers.columns(self.build)]
        poses = self.fingers.poses_rad
        return now_rad, np.where(np.isnan(poses), now_rad, poses)

    def _ramp_fractions(self, far_rad: Array, least_s: float = 0.0) -> Array:
        """Return the fractions of a soft move over that distance, tick by tick from 0 to 1."""
        taught = taught_joint_arrays(self.build)
        peak_s = _SQUARED_PEAK * float(np.abs(far_rad).max()) / taught.soft_rad_s
        seconds = max(taught.soft_least_s, peak_s, least_s)
        ticks = int(np.ceil(seconds * self.rate_hz - 1e-6))
        return np.linspace(0.0, 1.0, ticks + 1)


class PoseRows(Sequence[StreamPose]):
    """Poses to send, each built on access: building all at once would block for too long."""

    def __init__(self, weights: Array, rows_rad: Array, grips_rad: Array, first: int) -> None:
        self.first = first
        """Index of the motion's own first pose; the poses before it are the approach."""
        self._weights = weights
        self._rows_rad = rows_rad
        self._grips_rad = grips_rad

    def __len__(self) -> int:
        return len(self._weights)

    @overload
    def __getitem__(self, index: int) -> StreamPose: ...
    @overload
    def __getitem__(self, index: slice) -> list[StreamPose]: ...
    def __getitem__(self, index: int | slice) -> StreamPose | list[StreamPose]:
        if isinstance(index, slice):
            return [self[each] for each in range(len(self))[index]]
        number = range(len(self))[index]
        row, grip = self._rows_rad[number].tolist(), self._grips_rad[number].tolist()
        return StreamPose(number, float(self._weights[number]), tuple(row), tuple(grip))


def _ease(fractions: Array) -> Array:
    return minimum_jerk(np.zeros(1), np.ones(1), fractions)[:, 0]


def check_at_speed(
    track: Track, speed: float = 1.0, build: Build | None = None, *, hands: bool = False
) -> CheckReport:
    """Check a track at that speed and return the report; its `permit` decides.

    With a `build`, a motion of another family is refused first. Without `hands` their joints are
    not checked, because they are not played.
    """
    if build is not None:
        check_robot(track, build)
    own = build_of(track)
    if not hands and own is not None:
        track = without_hands(track, own)
    return check(_at_speed(track, speed))


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
        same = self.track is track and self.speed == speed
        return same and find_build(track.variant) == build.bare and not finger_columns(track, build)

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


def _at_speed(track: Track, speed: float) -> Track:
    check_playing_speed(speed)
    if not len(track) or speed == 1.0:
        return track
    first_s = track.times_s[0]
    return replace(track, times_s=first_s + (track.times_s - first_s) / speed)


def _keep_joints_of(track: Track, build: Build) -> Track:
    """Return a track without the joints that a build does not have."""
    kept = _with_columns(track, [name for name in track.names if name in build.names])
    return replace(kept, variant=build.name)


def prepare(
    track: Track,
    build: Build,
    rate_hz: float,
    speed: float,
    *,
    force: bool = False,
    mapped: bool = False,
    known: TrackCheck | None = None,
) -> StreamedMotion:
    """Prepare a track for streaming; raises `UnsafeMotionError` if it must not be played.

    Everything but contact is checked; contact needs the state, see `StreamedMotion.check_contact`.
    The columns of hands are left out; `with_hands` adds them. A `known` result for this very track
    is reused.
    """
    check_rate(rate_hz)
    if known is not None and (mapped or not known.applies_to(track, build, speed)):
        known = None
    left_out, track = finger_columns(track, build), without_hands(track, build)
    poses = taught_poses(track, build, mapped=mapped)
    check_seconds(track.duration_s / speed, "a playback")
    ticks = max(1, int(np.ceil(track.duration_s / speed * rate_hz - 1e-6)))
    times_s = np.arange(ticks + 1) / rate_hz
    at_s = track.times_s[0] + times_s * speed
    even = sample(track.times_s, poses, at_s, Interpolation.CUBIC)  # holds the last pose
    safe = check_playable(times_s, even, build)
    whole = _at_speed(_keep_joints_of(track, build) if mapped else track, speed)
    report = (
        check(whole, build=build.bare, contact=False)
        if known is None
        else known.without_contact_findings
    )
    report.permit(force=force)
    name = track.source or "a track"
    return StreamedMotion(name, build, rate_hz, safe, whole, force, left_out=left_out)


def with_hands(motion: StreamedMotion, track: Track, speed: float) -> StreamedMotion:
    """Return a motion with the hands of the track it was made from.

    Raises `UnsafeMotionError` if a finger must not go there, and `UnsupportedError` or
    `BadRequestError` if the robot does not report the hands.
    """
    hands = _find_moved_hands(track, motion.build)
    joints = [joint for hand in hands for joint in hand.joints]
    times_s = np.arange(len(motion.poses_rad)) / motion.rate_hz
    at_s = track.times_s[0] + times_s * speed
    poses = np.full((len(times_s), len(joints)), np.nan)
    for index, joint in enumerate(joints):
        if joint.name in track.names:
            column = track.joints_rad[:, [track.names.index(joint.name)]]
            even = sample(track.times_s, column, at_s, Interpolation.CUBIC)
            check_positions(times_s, even, [joint])
            check_joint_speeds(times_s, even, [joint], playback_limits_rad_s([joint]))
            poses[:, index] = np.clip(even[:, 0], joint.lower_rad, joint.upper_rad)
    fingers = _at_speed(_with_columns(track, finger_columns(track, motion.build)), speed)
    check_joints(fingers, motion.build.bare).permit(force=motion.forced)
    return replace(motion, fingers=HandMotion(hands, poses), left_out=())


# ---- sending ------------------------------------------------------------------------------------


class TimedStart:
    """When a motion itself begins, for several robots that begin together.

    The request and the approach begin early enough for the arms to reach the first pose in time.
    `lead_s` is that lead, set once everything is prepared; nothing moves before `at` is called.
    """

    def __init__(self, at_s: float | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.lead_s: asyncio.Future[float] = loop.create_future()
        self._at_s: asyncio.Future[float] = loop.create_future()
        self._given_up: asyncio.Future[None] = loop.create_future()
        if at_s is not None:
            self.at(at_s)

    def at(self, at_s: float) -> None:
        """Set the start, by the event loop's clock. Raises `BadRequestError` if not finite."""
        if not math.isfinite(at_s):
            raise BadRequestError(
                f"a start at {at_s} is not possible", "Give a time of the event loop's clock."
            )
        if not self._at_s.done():
            self._at_s.set_result(at_s)

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
                f"the start is {-left_s:.2f} s too near: the way to the first pose takes "
                f"{lead_s:.2f} s",
                "Choose a later start.",
            )
        await self._wait_unless_stopped(None, max(0.0, left_s))
        return at_s

    async def _wait_unless_stopped(
        self, what: asyncio.Future[float] | None, timeout_s: float | None = None
    ) -> None:
        futures: list[asyncio.Future[Any]] = [self._given_up, *([] if what is None else [what])]
        await asyncio.wait(futures, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if self._given_up.done():
            raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))


def check_in_time(late_s: float) -> None:
    """Raise `BadRequestError` if a stream would begin so late that its first poses are skipped:
    the arms would jump to where they should have been by then.
    """
    if late_s > _BEHIND_MAX_S:
        raise BadRequestError(
            f"the robot accepted {late_s:.2f} s too late to reach the first pose in time",
            "Wait until its arms are at rest, and choose a later start.",
        )


class LatenessStatistics:
    """How late poses were sent, in constant memory: a stream may last for hours."""

    _FIRST_S, _RATIO = 1e-6, 1.02
    _BINS = 1000

    def __init__(self) -> None:
        self.count = 0
        self.max_s = 0.0
        self._counts = [0] * self._BINS
        """By lateness, each bin `_RATIO` times as wide as the one before."""

    def add(self, late_s: float) -> None:
        """Count one pose."""
        self.count += 1
        self.max_s = max(self.max_s, late_s)
        number = 0
        if late_s > self._FIRST_S:
            number = int(math.log(late_s / self._FIRST_S) / math.log(self._RATIO)) + 1
        self._counts[min(number, self._BINS - 1)] += 1

    def percentile_s(self, percent: float) -> float:
        """Return the lateness that this share of the poses did not exceed, 2 % too high at most."""
        left = self.count * percent / 100.0
        for number, count in enumerate(self._counts):
            left -= count
            if count and left <= 0.0:
                return min(self._FIRST_S * self._RATIO**number, self.max_s)
        return self.max_s


class Ticker:
    """Sends one pose per tick, each by its own deadline.

    After a delay the poses follow at twice the rate until the deadlines are met again. Sent all at
    once, or with the late ones left out, they would make the arms jerk.
    """

    def __init__(self, rate_hz: float) -> None:
        self.rate_hz = rate_hz
        self._period_s = 1.0 / rate_hz
        self._tardy_s = _BEHIND_MAX_S - self._period_s
        """A pose that is less late than this needs no catching up."""
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self._stall_clock = stall_clock(self._loop)
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = False
        self._send_pose: Callable[[int], bool] = lambda _: False
        self._count = self._next = 0
        self._began_s = self._newest_s = self._due_s = 0.0
        self._sent_s = 0.0
        """When the newest pose was sent, by the clock that counts suspend."""
        self._first = 0
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
        self._stall: tuple[float, str] | None = None
        """When the stream resumed after its last interruption, and a text about it."""

    def start(
        self,
        send: Callable[[int], bool],
        count: int,
        began_s: float | None = None,
        first: int = 0,
    ) -> None:
        """Begin now, or at `began_s`, and call `send` with the indices 0 to `count - 1`, until it
        returns False. The lateness of the index `first` is recorded.

        If `send` may be called from any thread, a separate thread calls it: that costs half as
        much, and nothing else in this program delays it.
        """
        self._send_pose, self._count, self._stopped = send, count, False
        self._began_s = self._due_s = self._clock() if began_s is None else began_s
        self._first = first
        # An event loop with its own time is a test's: it needs no thread.
        is_real = abs(self._loop.time() - time.monotonic()) < 1.0
        if isinstance(send, ThreadSafeSender) and is_real:
            self._send_pose = send.send_pose
            threading.Thread(target=self._run_in_thread, name="rote stream", daemon=True).start()
        elif began_s is None:
            self._send_and_reschedule()
        else:
            self._timer = self._loop.call_at(self._due_s, self._send_and_reschedule)

    def stop(self) -> None:
        """Stop sending. Safe to call twice."""
        self._stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _run_in_thread(self) -> None:
        realtime.precise_timers()
        realtime.real_time()
        clock, stall_clock, sleep, send_due_pose = (
            self._clock,
            self._stall_clock,
            time.sleep,
            self._send_due_pose,
        )
        self._loop_alive_s = probed_s = stall_clock()
        while not self._stopped:
            sleep(max(0.0, self._due_s - clock()))
            now_s, running_s = clock(), stall_clock()
            if running_s - self._loop_alive_s > LOOP_STALL_S:
                # No stop could take effect: without poses the robot returns softly by itself.
                self._end_early(
                    f"this program's event loop stalled for more than {LOOP_STALL_S:g} s, so that "
                    "a stop could not take effect"
                )
                return
            if running_s - probed_s >= _PROBE_LOOP_S:
                probed_s = running_s
                try:
                    self._loop.call_soon_threadsafe(self._note_loop_alive)
                except RuntimeError:
                    self._end_early("this program ended its event loop")
                    return
            if self._stopped or not send_due_pose(now_s, running_s):
                return

    def _end_early(self, reason: str) -> None:
        self.cut_reason, self.cut_off = reason, True

    def _note_loop_alive(self) -> None:
        """Runs in the event loop, which shows that the loop is not stalled."""
        self._loop_alive_s = self._stall_clock()

    def _send_and_reschedule(self) -> None:
        if self._send_due_pose(self._clock(), self._stall_clock()):
            self._timer = self._loop.call_at(self._due_s, self._send_and_reschedule)

    def _send_due_pose(self, now_s: float, running_s: float) -> bool:
        """Send the due pose; return whether more follow. `running_s` includes suspend."""
        index, period_s = self._next, self._period_s
        self._note_stall(now_s, running_s)
        late_s = now_s - self._began_s - index * period_s
        self._lateness.add(late_s)
        if late_s > self._tardy_s:
            index = self._catch_up(index, late_s, now_s)
        sent = self._send_pose(index)
        if self.first_late_s is None and index >= self._first:
            self.first_late_s = now_s - self._began_s - self._first * period_s
        self._newest_s = now_s
        self._next = index = index + 1
        self._due_s = max(self._began_s + index * period_s, now_s + period_s / 2)
        if sent:
            return index < self._count and not self._stopped
        self.cut_off = True
        return False

    def _note_stall(self, now_s: float, running_s: float) -> None:
        """Record an interruption before this pose."""
        before_s, self._sent_s = self._sent_s, running_s
        stalled_s = running_s - before_s
        if self._next and stalled_s > _BEHIND_MAX_S:
            suspended_s = stalled_s - (now_s - self._newest_s)
            self._stall = (
                now_s,
                (
                    f"this computer was suspended for {suspended_s:.1f} s"
                    if suspended_s > _BEHIND_MAX_S
                    else f"this computer sent no pose for {stalled_s:.2f} s"
                ),
            )

    def stall_before(self, ended_s: float | None) -> str:
        """Return the interruption after which a robot may have ended the motion at this time; ""
        if there was none.
        """
        if self._stall is None or ended_s is None:
            return ""
        resumed_s, reason = self._stall
        return reason if abs(ended_s - resumed_s) < _STALL_ENDS_S else ""

    def _catch_up(self, index: int, late_s: float, now_s: float) -> int:
        """Return the index of the pose to send, given that `index` is late."""
        if index and now_s - self._newest_s > _BEHIND_MAX_S:
            # The process stalled and the robot stood; resume from here instead of jumping ahead.
            self._began_s += late_s
            return index
        too_late = int((late_s - _BEHIND_MAX_S) / self._period_s)
        skipped = min(too_late, self._count - 1 - index)
        self._missed += skipped
        return index + skipped

    def report(
        self, name: str, *, completed: bool, seconds: float, reason: str = ""
    ) -> StreamReport:
        """Return how well the deadlines were met."""
        took_s = self._newest_s - self._began_s
        return StreamReport(
            name=name,
            completed=completed,
            seconds=seconds,
            reason=reason,
            rate_hz=(self._lateness.count - 1) / took_s if took_s > 0 else 0.0,
            late_p99_ms=1000.0 * self._lateness.percentile_s(99.0),
            late_max_ms=1000.0 * self._lateness.max_s,
            missed=self._missed,
            start_late_ms=None if self.first_late_s is None else 1000.0 * self.first_late_s,
        )


class Streaming(Playing):
    """What `robot.play_track` returns: await it for the end, iterate over it to watch, or `stop`
    it.

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
    def _continues_on_robot(self) -> bool:
        return False  # without poses the robot returns by itself

    def _was_stopped(self) -> bool:
        # A stop ends the poses at once, even if the robot never confirms it.
        return self._link.stops.count != self._stops

    async def _run(self) -> StreamReport:
        try:
            played = await super()._run()
        finally:
            self._ticker.stop()
        completed = played.completed and not self._ticker.cut_off
        reason = "" if completed else self._why_cut() or played.reason or _NOT_ALL_SENT
        return self._ticker.report(
            played.name, completed=completed, seconds=played.seconds, reason=reason
        )

    def _why_cut(self) -> str:
        """Return why this computer ended the stream early; "" if it did not."""
        if self._was_stopped():
            return self._why_ended()
        own = self._ticker.cut_reason or self._client.stop_reason
        return own or self._ticker.stall_before(self._watch.ended_at)
