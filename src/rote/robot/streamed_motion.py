"""A motion that is prepared to be streamed: checked, and complete, before anything is sent.

The robot receives arm setpoints many times per second. A prepared motion begins with a soft move
from the current arm positions and ends with a soft move back to rest. The weight of the stream
rises from 0 to 1 and falls again, so that the robot's own pose fades out and in.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import NamedTuple, ParamSpec, Protocol, TypeVar, overload

import numpy as np

from rote.errors import BadRequestError, ImportedMotionError, OtherBuildError, UnsupportedError
from rote.findings import FindingKind
from rote.messages import Interpolation, RobotState, StreamPose
from rote.model.family import MOVED_RAD, Build, Hand, Joint
from rote.model.registry import family_of, find_build
from rote.motion.check.limits import check_joint_speeds, check_positions, playback_limits_rad_s
from rote.motion.check.report import CheckReport
from rote.motion.check.rules import check, check_contact, check_joints
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, hand_joints
from rote.robot.api_values import check_seconds
from rote.transport.wires import wire_of

RATES_HZ = (50.0, 1000.0)
SPEEDS = (0.05, 4.0)

FADED_MOVE_PEAK = 2.39
"""The highest speed of a minimum-jerk move whose weight also follows minimum jerk, as a multiple of
the mean speed.
"""
REPEAT_LAST_S = 0.2
"""The last pose is repeated for this time: a single lost message must not look like silence."""
_TICK_TOLERANCE = 1e-6  # a rounding error of a time in ticks; it must not add a tick
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
