"""Following live poses from a program that produces them one by one, such as LeRobot.

A track is checked as a whole before anything moves; a live stream cannot be. So every pose is
checked when it arrives, and the arms move to it within limits of speed and acceleration, slowly
until they have reached the first one. Each joint moves independently, so the path is not a straight
line: contact is checked along the very poses that will be sent. When no more poses arrive, the arms
hold, then return to rest. They also return at the end, and if the connection or this program fails.
"""

import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, overload

import numpy as np

from rote import messages as m
from rote.errors import BadRequestError, RefusedError
from rote.messages import StreamPose
from rote.model.family import Build
from rote.motion.check.limits import MAX_PLAYED_RAD_S2, check_positions, playback_limits_rad_s
from rote.motion.check.rules import check_contact
from rote.motion.interpolate import minimum_jerk
from rote.motion.track import Array, Track, did_you_mean
from rote.robot.api_values import StreamReport
from rote.robot.link import RobotLink
from rote.robot.streaming import PoseStreaming, Ticker, taught_joint_arrays

MAX_RAD_S = 3.0
"""The highest joint speed; limited because the whole motion was not checked."""
MAX_RAD_S2 = min(30.0, MAX_PLAYED_RAD_S2)
SILENT_S = 5.0
"""Without a new pose for this many seconds, the arms return to rest and following ends."""

_REACHED_RAD = 0.05
_MAX_DURATION_S = 6 * 3600.0
_RETURN_RESERVE_S = 60.0  # time reserved for the return: more than any return takes
_BRAKE_S = 0.3  # braking time at the start of the return
_WEIGHT_S = 1.0  # time over which the robot's own pose fades out
_LEAD_TICKS = 2  # least number of poses sent on the old path while the new one is checked
_LEAD_MAX_S = 1.0  # a computer that takes longer to check a path is too slow
_ARRIVED_RAD, _ARRIVED_RAD_S = 1e-3, 1e-2
_FORECAST_MAX_S = 20.0  # more than the longest path takes


class _CommandedState(NamedTuple):
    """The commanded positions and speeds at one tick."""

    at_rad: Array
    rad_s: Array
    goal_rad: Array
    aimed: bool = False
    """Whether the goal was set by `aim`; the first goal is the current position."""
    reached: bool = False
    """Whether a goal was reached; until then the arms move slowly."""


class FollowedPath(NamedTuple):
    """The poses that would be sent on the path to a goal that takes effect at a tick."""

    begin: int
    poses_rad: Array
    """(n, joints), of the taught joints; the first is where the arms are now, the last the goal."""


class LivePoses(Sequence[StreamPose]):
    """The poses to send, each computed when it is due."""

    def __init__(
        self,
        build: Build,
        joints_rad: Sequence[float],
        rate_hz: float,
        on_last: Callable[[], None] = lambda: None,
    ) -> None:
        """`joints_rad` are the current positions of all joints of the build. `on_last` is called
        when the last pose was computed: nothing is sent after it.
        """
        taught = taught_joint_arrays(build)
        now_rad: Array = np.array(joints_rad)[taught.columns]
        self._lock = threading.Lock()
        self._period_s = 1.0 / rate_hz
        self._commanded = _CommandedState(now_rad.copy(), np.zeros_like(now_rad), now_rad.copy())
        self._upcoming: tuple[tuple[int, Array], ...] = ()
        """Goals, each with the tick at which it takes effect."""
        self._rest_rad = taught.rest_rad
        self._soft_rad_s, self._soft_least_s = taught.soft_rad_s, taught.soft_least_s
        self._most_rad_s = np.minimum(playback_limits_rad_s(taught.joints), MAX_RAD_S)
        self._made = -1
        self._newest = 0
        self._row: tuple[float, Array] = (0.0, now_rad)
        self._lower_rad, self._upper_rad = taught.lower_rad, taught.upper_rad
        self._return_path: tuple[int, int, Array] | None = None
        self._count = round(_MAX_DURATION_S * rate_hz)
        self._on_last = on_last

    @property
    def pose_rad(self) -> Array:
        """The commanded arm positions."""
        with self._lock:
            return self._commanded.at_rad.copy()

    @property
    def returning(self) -> bool:
        """Whether the arms are returning to rest, and no more poses are accepted."""
        return self._return_path is not None

    @property
    def finished(self) -> bool:
        """Whether the last pose was computed: the arms are at rest."""
        return self._made >= self._count - 1

    @property
    def made(self) -> int:
        """Number of poses computed after the first."""
        return max(self._made, 0)

    def forecast(self, goal_rad: Array, lead: int) -> FollowedPath:
        """Return the path if this goal takes effect after `lead` more poses."""
        with self._lock:
            commanded, upcoming, made = self._commanded, self._upcoming, self.made
        begin = made + lead
        upcoming = _with_goal(upcoming, begin, goal_rad)
        poses = [commanded.at_rad]
        for number in range(made + 1, made + round(_FORECAST_MAX_S / self._period_s)):
            commanded, upcoming = self._advance(commanded, upcoming, number)
            poses.append(commanded.at_rad)
            if not upcoming and _has_arrived(commanded):
                break
        return FollowedPath(begin, np.array([*poses, goal_rad]))

    def aim(self, goal_rad: Array, begin: int | None = None) -> bool:
        """Go to a pose from now on, or from the tick `begin` on.

        Return False, and change nothing, if poses after `begin` were computed already.
        """
        with self._lock:
            begin = self.made if begin is None else begin
            if begin < self.made:
                return False
            self._upcoming = _with_goal(self._upcoming, begin, goal_rad)
            self._newest = self.made
            return True

    def end(self) -> None:
        """Return to rest from now on. Safe to call twice."""
        with self._lock:
            self._begin_return()

    def _begin_return(self) -> None:
        if self._return_path is not None:
            return
        # The return starts from where the arms come to a stand.
        at_rad, rad_s = self._commanded.at_rad, self._commanded.rad_s
        from_rad = at_rad + rad_s * _BRAKE_S / 2.0
        self._lower_rad = np.minimum(self._lower_rad, at_rad)
        self._upper_rad = np.maximum(self._upper_rad, at_rad)
        far_rad = float(np.abs(from_rad - self._rest_rad).max())
        seconds = max(self._soft_least_s, 2.39 * far_rad / self._soft_rad_s, _WEIGHT_S)
        begin = max(self._made, 0)
        ticks = int(np.ceil(seconds / self._period_s))
        self._return_path = begin, ticks, from_rad
        # The last pose is repeated: one lost message must not look like silence.
        self._count = begin + ticks + round(0.2 / self._period_s)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> StreamPose: ...
    @overload
    def __getitem__(self, index: slice) -> list[StreamPose]: ...
    def __getitem__(self, index: int | slice) -> StreamPose | list[StreamPose]:
        if isinstance(index, slice):  # later poses are not known yet
            return [self[index.start or 0]]
        with self._lock:
            while self._made < index:
                self._made += 1
                self._row = self._make_pose(self._made)
            weight, row = self._row
            if index >= self._count - 1:
                self._on_last()
            return StreamPose(index, weight, tuple(row.tolist()))

    def _make_pose(self, number: int) -> tuple[float, Array]:
        silent_s = (number - self._newest) * self._period_s
        if silent_s > SILENT_S or number * self._period_s > _MAX_DURATION_S - _RETURN_RESERVE_S:
            self._begin_return()
        if self._return_path is not None:
            begin, ticks, from_rad = self._return_path
            share = min((number - begin) / max(ticks, 1), 1.0)
            left_s = max(0.0, _BRAKE_S - (number - begin) * self._period_s)
            path_rad = minimum_jerk(from_rad, self._rest_rad, np.array([share]))[0]
            coasting_rad = self._commanded.rad_s * left_s**2 / (2.0 * _BRAKE_S)
            at_rad = np.clip(path_rad - coasting_rad, self._lower_rad, self._upper_rad)
            self._commanded = self._commanded._replace(at_rad=at_rad)
            eased = float(minimum_jerk(np.zeros(1), np.ones(1), np.array([share]))[0, 0])
            return 1.0 - eased, at_rad
        self._commanded, self._upcoming = self._advance(self._commanded, self._upcoming, number)
        share = min(number * self._period_s / _WEIGHT_S, 1.0)
        weight = float(minimum_jerk(np.zeros(1), np.ones(1), np.array([share]))[0, 0])
        return weight, self._commanded.at_rad

    def _advance(
        self, commanded: _CommandedState, upcoming: tuple[tuple[int, Array], ...], number: int
    ) -> tuple[_CommandedState, tuple[tuple[int, Array], ...]]:
        """Return the commanded state at a tick, and the remaining goals."""
        at_rad, rad_s, goal_rad, aimed, reached = commanded
        while upcoming and upcoming[0][0] < number:
            (begin, goal_rad), *rest = upcoming
            upcoming, aimed = tuple(rest), aimed or begin > 0
        most = self._most_rad_s if reached else np.minimum(self._most_rad_s, self._soft_rad_s)
        gap_rad = goal_rad - at_rad
        # As fast as it can still brake in time, and no further than the goal in one step.
        speed_rad_s = np.minimum(np.sqrt(2.0 * MAX_RAD_S2 * 0.5 * np.abs(gap_rad)), most)
        speed_rad_s = np.sign(gap_rad) * np.minimum(speed_rad_s, np.abs(gap_rad) / self._period_s)
        gain = MAX_RAD_S2 * self._period_s
        rad_s = rad_s + np.clip(speed_rad_s - rad_s, -gain, gain)
        reached = reached or (aimed and bool(np.abs(gap_rad).max() < _REACHED_RAD))
        return _CommandedState(
            at_rad + rad_s * self._period_s, rad_s, goal_rad, aimed, reached
        ), upcoming


def _with_goal(
    upcoming: tuple[tuple[int, Array], ...], begin: int, goal_rad: Array
) -> tuple[tuple[int, Array], ...]:
    """Return the upcoming goals with one more, which replaces later ones."""
    return (*(each for each in upcoming if each[0] < begin), (begin, goal_rad.copy()))


def _has_arrived(commanded: _CommandedState) -> bool:
    gap_rad = np.abs(commanded.goal_rad - commanded.at_rad).max()
    return bool(gap_rad < _ARRIVED_RAD and np.abs(commanded.rad_s).max() < _ARRIVED_RAD_S)


class Following(PoseStreaming):
    """What `robot.follow` returns: give it poses by `aim`, and `end` it; await it for the end.

    If the awaiting task is cancelled, the robot stops softly.
    """

    def __init__(
        self,
        link: RobotLink,
        begin: Callable[[Callable[[], None]], Awaitable[LivePoses]],
        ticker: Ticker,
        *,
        contact: bool,
    ) -> None:
        self.build = link.build
        """The build of the robot."""
        self._live: LivePoses | None = None
        self._contact = contact
        self._aiming = threading.Lock()
        self._lead = _LEAD_TICKS
        self._longest_lead = round(_LEAD_MAX_S * ticker.rate_hz)

        async def begin_following(on_request_sent: Callable[[], None]) -> float:
            self._live = await begin(on_request_sent)
            return _MAX_DURATION_S

        super().__init__(link, "following", begin_following, ticker)

    def _was_stopped(self) -> bool:
        return False  # a live stream has no length: its poses alone show whether it was completed

    async def _run(self) -> StreamReport:
        report = await super()._run()
        # The duration of a live stream is unknown; completion is judged by the poses sent.
        ended = self._live is not None and self._live.finished
        return replace(report, completed=ended, reason="" if ended else self._why_cut())

    def aim(self, joints_rad: Mapping[str, float]) -> None:
        """Go to these angles, in rad by joint name; other joints stay where they are.

        Raises `UnsafeMotionError` for an angle that a joint cannot reach, or a pose in which the
        robot would touch itself, or would do so on its way there; `BadRequestError` for a joint
        that is not played, or a way that this computer cannot check in time; `RefusedError` once it
        has ended. Then the arms hold the pose before. Safe to call from any thread.
        """
        live, taught = self._live, taught_joint_arrays(self.build)
        if live is None or live.returning or self.done:
            raise RefusedError(m.Code.SUPERSEDED, *m.explain(m.Code.SUPERSEDED))
        goal_rad = live.pose_rad
        for name, value in joints_rad.items():
            if name not in taught.names:
                raise BadRequestError(
                    f"{self.build.name} does not play {name}", did_you_mean(name, taught.names)
                )
            goal_rad[taught.names.index(name)] = value
        if not np.isfinite(goal_rad).all():
            raise BadRequestError("a pose holds something that is not a number")
        check_positions(np.zeros(1), goal_rad[None, :], taught.joints)
        goal_rad = np.clip(goal_rad, taught.lower_rad, taught.upper_rad)
        if self._contact:
            with self._aiming:  # no other goal may come between the check and `aim`
                self._aim_along_checked_path(live, goal_rad)
        else:
            live.aim(goal_rad)

    def _aim_along_checked_path(self, live: LivePoses, goal_rad: Array) -> None:
        """Move to a pose along a checked path.

        Poses are sent while the check runs, so the new path begins some poses later on the old one.
        If the check took longer than that, the checked path no longer applies: check again.
        """
        while self._lead <= self._longest_lead:
            made = live.made
            path = live.forecast(goal_rad, self._lead)
            check_path_contact(path.poses_rad, self.build)
            took = live.made - made
            if live.aim(goal_rad, path.begin):
                self._lead = max(_LEAD_TICKS, 2 * took)
                return
            self._lead = 2 * max(self._lead, took)
        self._lead = _LEAD_TICKS
        raise BadRequestError(
            f"this computer takes longer than {_LEAD_MAX_S:g} s to check the path for contact",
            "Aim at nearer poses, or follow without the contact check.",
        )

    def end(self) -> None:
        """Return softly to rest. Safe to call twice, and from any thread."""
        if self._live is not None:
            self._live.end()


def check_path_contact(poses_rad: Array, build: Build) -> None:
    """Raise `UnsafeMotionError` if the robot would touch itself in one of these poses or between.

    They are (n, joints), of the taught joints. The first call takes about a second: the body model
    is built.
    """
    path = Track(
        times_s=np.arange(float(len(poses_rad))),
        joints_rad=poses_rad,
        names=taught_joint_arrays(build).names,
        variant=build.name,
    )
    check_contact(path, build=build.bare).permit(force=True)
