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
from rote.messages import Phase, StreamPose
from rote.model.family import Build
from rote.motion.check.limits import MAX_PLAYED_RAD_S2, check_positions, playback_limits_rad_s
from rote.motion.check.rules import check_contact
from rote.motion.interpolate import minimum_jerk
from rote.motion.track import Array, Track, did_you_mean
from rote.robot.api_values import StreamReport
from rote.robot.link import RobotLink
from rote.robot.streamed_motion import FADED_MOVE_PEAK, REPEAT_LAST_S, taught_joint_arrays
from rote.robot.streaming import PoseStreaming
from rote.robot.ticker import Ticker

MAX_RAD_S = 3.0
"""The highest joint speed; limited because the whole motion was not checked."""
MAX_RAD_S2 = min(30.0, MAX_PLAYED_RAD_S2)
GOAL_TIMEOUT_S = 5.0
"""Without a new pose for this many seconds, the arms return to rest and following ends."""

_REACHED_RAD = 0.05  # a goal nearer than this is reached; the arms need not move slowly any more
_MAX_DURATION_S = 6 * 3600.0  # the arms return to rest before that
_RETURN_RESERVE_S = 60.0  # time reserved for the return: more than any return takes
_BRAKE_S = 0.3  # braking time at the start of the return
_FADE_IN_S = 1.0  # time over which the robot's own pose fades out
_MIN_LEAD_TICKS = 2  # least number of poses sent on the old path while the new one is checked
_MAX_LEAD_S = 1.0  # a computer that takes longer to check a path is too slow
_ARRIVED_RAD, _ARRIVED_RAD_S = 1e-3, 1e-2  # nearer and slower than this, a forecast ends
_MAX_FORECAST_S = 20.0  # more than the longest path takes


class _CommandedState(NamedTuple):
    """The commanded positions and speeds at one tick."""

    position_rad: Array
    speed_rad_s: Array
    goal_rad: Array
    is_aimed: bool = False
    """Whether the goal was set by `aim`; the first goal is the current position."""
    reached: bool = False
    """Whether a goal was reached; until then the arms move slowly."""


class _Goal(NamedTuple):
    """A pose to move to, from a tick on."""

    begin_tick: int
    pose_rad: Array
    softly: bool = False
    """Whether the arms move to it slowly, as to the first pose."""


class _Return(NamedTuple):
    """The return to rest."""

    begin_tick: int
    ticks: int
    from_rad: Array
    """The pose in which the arms would have braked to a stop; the path leads from here to rest."""


class FollowedPath(NamedTuple):
    """The poses that would be sent on the path to a goal that takes effect at a tick."""

    begin_tick: int
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
        self._upcoming: tuple[_Goal, ...] = ()
        self._rest_rad = taught.rest_rad
        self._soft_rad_s, self._min_soft_s = taught.soft_rad_s, taught.soft_least_s
        self._max_rad_s = np.minimum(playback_limits_rad_s(taught.joints), MAX_RAD_S)
        self._newest_index = -1
        self._newest_goal_index = 0
        """Index of the newest pose when the newest goal was set."""
        self._newest_pose: tuple[float, Array] = (0.0, now_rad)
        """Its weight and positions."""
        self._lower_rad, self._upper_rad = taught.lower_rad, taught.upper_rad
        self._return: _Return | None = None
        self._count = round(_MAX_DURATION_S * rate_hz)
        self._on_last = on_last

    @property
    def pose_rad(self) -> Array:
        """The commanded arm positions."""
        with self._lock:
            return self._commanded.position_rad.copy()

    @property
    def returning(self) -> bool:
        """Whether the arms are returning to rest, and no more poses are accepted."""
        return self._return is not None

    @property
    def finished(self) -> bool:
        """Whether the last pose was computed: the arms are at rest."""
        return self._newest_index >= self._count - 1

    @property
    def computed_count(self) -> int:
        """Number of poses computed after the first."""
        return max(self._newest_index, 0)

    @property
    def reached(self) -> bool:
        """Whether the arms have reached a goal since they last began to approach one slowly."""
        return self._commanded.reached

    @property
    def faded_in(self) -> bool:
        """Whether the robot's own pose has faded out: the arms follow the commanded pose."""
        return self.computed_count * self._period_s >= _FADE_IN_S

    def forecast(self, goal_rad: Array, lead_ticks: int, *, softly: bool = False) -> FollowedPath:
        """Return the poses that would be sent if this goal took effect `lead_ticks` from now."""
        with self._lock:
            commanded, upcoming, tick = self._commanded, self._upcoming, self.computed_count
        begin_tick = tick + lead_ticks
        upcoming = _add_goal(upcoming, _Goal(begin_tick, goal_rad, softly))
        poses = [commanded.position_rad]
        for number in range(tick + 1, tick + round(_MAX_FORECAST_S / self._period_s)):
            commanded, upcoming = self._advance(commanded, upcoming, number)
            poses.append(commanded.position_rad)
            if not upcoming and _has_arrived(commanded):
                break
        return FollowedPath(begin_tick, np.array([*poses, goal_rad]))

    def aim(self, goal_rad: Array, begin_tick: int | None = None, *, softly: bool = False) -> bool:
        """Go to a pose from now or from `begin_tick` on; `softly` is slowly, as to the first pose.

        Return False, and change nothing, if poses after `begin_tick` were computed already.
        """
        with self._lock:
            begin_tick = self.computed_count if begin_tick is None else begin_tick
            if begin_tick < self.computed_count:
                return False
            self._upcoming = _add_goal(self._upcoming, _Goal(begin_tick, goal_rad.copy(), softly))
            self._newest_goal_index = self.computed_count
            return True

    def keep(self) -> None:
        """Stay at the goal, and restart the timeout for a new one."""
        with self._lock:
            self._newest_goal_index = self.computed_count

    def end(self) -> None:
        """Return to rest from now on. Safe to call twice."""
        with self._lock:
            self._begin_return()

    def _begin_return(self) -> None:
        if self._return is not None:
            return
        position_rad = self._commanded.position_rad
        # Braking evenly for `_BRAKE_S`, a joint travels half as far as at its present speed.
        from_rad = position_rad + self._commanded.speed_rad_s * _BRAKE_S / 2.0
        # Arms that are outside the limits must not jump to them.
        self._lower_rad = np.minimum(self._lower_rad, position_rad)
        self._upper_rad = np.maximum(self._upper_rad, position_rad)
        distance_rad = float(np.abs(from_rad - self._rest_rad).max())
        speed_limited_s = FADED_MOVE_PEAK * distance_rad / self._soft_rad_s
        seconds = max(self._min_soft_s, speed_limited_s, _FADE_IN_S)
        begin_tick = self.computed_count
        ticks = int(np.ceil(seconds / self._period_s))
        self._return = _Return(begin_tick, ticks, from_rad)
        self._count = begin_tick + ticks + max(1, round(REPEAT_LAST_S / self._period_s))

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
            while self._newest_index < index:
                self._newest_index += 1
                self._newest_pose = self._make_pose(self._newest_index)
            weight, row = self._newest_pose
            if index >= self._count - 1:
                self._on_last()
            return StreamPose(index, weight, tuple(row.tolist()))

    def _make_pose(self, number: int) -> tuple[float, Array]:
        """Compute the pose at tick `number`; return its weight and its positions in rad."""
        elapsed_s = number * self._period_s
        goal_age_s = (number - self._newest_goal_index) * self._period_s
        if goal_age_s > GOAL_TIMEOUT_S or elapsed_s > _MAX_DURATION_S - _RETURN_RESERVE_S:
            self._begin_return()
        if self._return is not None:
            return self._make_return_pose(self._return, number)
        self._commanded, self._upcoming = self._advance(self._commanded, self._upcoming, number)
        return _ease_fraction(min(elapsed_s / _FADE_IN_S, 1.0)), self._commanded.position_rad

    def _make_return_pose(self, back: _Return, number: int) -> tuple[float, Array]:
        fraction = min((number - back.begin_tick) / max(back.ticks, 1), 1.0)
        path_rad = minimum_jerk(back.from_rad, self._rest_rad, np.array([fraction]))[0]
        # While the arms still brake, they are this far before the point where the path begins.
        brake_left_s = max(0.0, _BRAKE_S - (number - back.begin_tick) * self._period_s)
        braking_rad = self._commanded.speed_rad_s * brake_left_s**2 / (2.0 * _BRAKE_S)
        position_rad = np.clip(path_rad - braking_rad, self._lower_rad, self._upper_rad)
        self._commanded = self._commanded._replace(position_rad=position_rad)
        return 1.0 - _ease_fraction(fraction), position_rad

    def _advance(
        self, commanded: _CommandedState, upcoming: tuple[_Goal, ...], number: int
    ) -> tuple[_CommandedState, tuple[_Goal, ...]]:
        """Return the commanded state at tick `number`, and the goals that take effect later."""
        position_rad, speed_rad_s, goal_rad, is_aimed, reached = commanded
        while upcoming and upcoming[0].begin_tick < number:
            goal, upcoming = upcoming[0], upcoming[1:]
            goal_rad = goal.pose_rad
            is_aimed = is_aimed or goal.begin_tick > 0
            reached = reached and not goal.softly
        max_rad_s = self._max_rad_s if reached else np.minimum(self._max_rad_s, self._soft_rad_s)
        gap_rad = goal_rad - position_rad
        distance_rad = np.abs(gap_rad)
        # Fast, but able to brake before the goal at half the maximum deceleration (v**2 = 2 a s),
        # and never past the goal in one step.
        brakeable_rad_s = np.sqrt(2.0 * (0.5 * MAX_RAD_S2) * distance_rad)
        target_rad_s = np.minimum(brakeable_rad_s, max_rad_s)
        target_rad_s = np.sign(gap_rad) * np.minimum(target_rad_s, distance_rad / self._period_s)
        max_change_rad_s = MAX_RAD_S2 * self._period_s
        change_rad_s = np.clip(target_rad_s - speed_rad_s, -max_change_rad_s, max_change_rad_s)
        speed_rad_s = speed_rad_s + change_rad_s
        reached = reached or (is_aimed and bool(distance_rad.max() < _REACHED_RAD))
        position_rad = position_rad + speed_rad_s * self._period_s
        return _CommandedState(position_rad, speed_rad_s, goal_rad, is_aimed, reached), upcoming


def _ease_fraction(fraction: float) -> float:
    return float(minimum_jerk(np.zeros(1), np.ones(1), np.array([fraction]))[0, 0])


def _add_goal(upcoming: tuple[_Goal, ...], goal: _Goal) -> tuple[_Goal, ...]:
    """Return the upcoming goals with one more, which replaces later ones."""
    return (*(each for each in upcoming if each.begin_tick < goal.begin_tick), goal)


def _has_arrived(commanded: _CommandedState) -> bool:
    distance_rad = np.abs(commanded.goal_rad - commanded.position_rad).max()
    speed_rad_s = np.abs(commanded.speed_rad_s).max()
    return bool(distance_rad < _ARRIVED_RAD and speed_rad_s < _ARRIVED_RAD_S)


BeginLivePoses = Callable[[Callable[[], None]], Awaitable[LivePoses]]
"""Requests the motion and returns the poses that it sends. Calls its argument just before the
request is sent.
"""


class Following(PoseStreaming):
    """What `robot.follow` returns. Pass poses to `aim`, call `end`, and await it for the report.

    If the awaiting task is cancelled, the robot stops softly.
    """

    def __init__(
        self,
        link: RobotLink,
        begin: BeginLivePoses,
        ticker: Ticker,
        *,
        contact: bool,
    ) -> None:
        """With `contact`, `aim` checks whether the robot would touch itself."""
        self.build = link.build
        """The build of the robot."""
        self._live: LivePoses | None = None
        self._checks_contact = contact
        self._aim_lock = threading.Lock()
        self._lead_ticks = _MIN_LEAD_TICKS
        """Number of poses sent on the old path while a new one is checked."""
        self._max_lead_ticks = round(_MAX_LEAD_S * ticker.rate_hz)

        async def begin_following(on_request_sent: Callable[[], None]) -> float:
            self._live = await begin(on_request_sent)
            return _MAX_DURATION_S  # the longest possible: when it ends is not known in advance

        super().__init__(link, "following", begin_following, ticker)

    def _was_stopped(self) -> bool:
        return False  # a live stream has no duration: `_run` judges by the poses sent

    async def _run(self) -> StreamReport:
        report = await super()._run()
        ended = self._live is not None and self._live.finished
        return replace(report, completed=ended, reason="" if ended else self._explain_early_end())

    @property
    def reached(self) -> bool:
        """Whether the arms have reached a pose since they last began to approach one slowly."""
        return self._live is not None and self._live.reached

    @property
    def faded_in(self) -> bool:
        """Whether the robot's own pose has faded out; that takes a second."""
        return self._live is not None and self._live.faded_in

    @property
    def returning(self) -> bool:
        """Whether the arms return to rest: after `end`, a stop, or by the robot's own decision."""
        is_returning = self._live is not None and self._live.returning
        progress = self.progress
        return is_returning or (progress is not None and progress.phase is Phase.RETURN)

    def keep(self) -> None:
        """Stay at the present goal. Without this or `aim`, arms return after `GOAL_TIMEOUT_S`."""
        if self._live is not None:
            self._live.keep()

    def aim(self, joints_rad: Mapping[str, float], *, softly: bool = False) -> None:
        """Move to these angles, in rad by joint name; other joints stay where they are.

        With `softly` the arms move slowly until they have reached a pose, as at the beginning.
        Raises `UnsafeMotionError` for an angle outside a joint's limits, or if the robot would
        touch itself in the pose or on the way there. Raises `BadRequestError` for a joint that is
        not played, or a path that this computer cannot check in time, and `RefusedError` once
        following has ended. After an error the previous goal stays in effect. Safe to call from
        any thread.
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
            raise BadRequestError("the pose contains a value that is not a finite number")
        check_positions(np.zeros(1), goal_rad[None, :], taught.joints)
        goal_rad = np.clip(goal_rad, taught.lower_rad, taught.upper_rad)
        if self._checks_contact:
            with self._aim_lock:  # no other goal may come between the check and `aim`
                self._aim_along_checked_path(live, goal_rad, softly)
        else:
            live.aim(goal_rad, softly=softly)

    def _aim_along_checked_path(self, live: LivePoses, goal_rad: Array, softly: bool) -> None:
        """Move to a pose along a checked path.

        Poses are sent on the old path while the check runs, so the new path begins `_lead_ticks`
        poses later. If the check took longer than that, the checked path no longer applies, and a
        path with a longer lead is checked.
        """
        while self._lead_ticks <= self._max_lead_ticks:
            began_tick = live.computed_count
            path = live.forecast(goal_rad, self._lead_ticks, softly=softly)
            check_path_contact(path.poses_rad, self.build)
            check_ticks = live.computed_count - began_tick
            if live.aim(goal_rad, path.begin_tick, softly=softly):
                self._lead_ticks = max(_MIN_LEAD_TICKS, 2 * check_ticks)
                return
            self._lead_ticks = 2 * max(self._lead_ticks, check_ticks)
        self._lead_ticks = _MIN_LEAD_TICKS
        raise BadRequestError(
            f"this computer takes longer than {_MAX_LEAD_S:g} s to check the path for contact",
            "Choose closer target poses, or follow without the contact check.",
        )

    def end(self) -> None:
        """Return softly to rest. Safe to call twice, and from any thread."""
        if self._live is not None:
            self._live.end()


def check_path_contact(poses_rad: Array, build: Build) -> None:
    """Raise `UnsafeMotionError` if the robot would touch itself in one of these poses or between.

    `poses_rad` is (n, joints), of the taught joints. The first call takes about a second, because
    it builds the body model.
    """
    path = Track(
        times_s=np.arange(float(len(poses_rad))),
        joints_rad=poses_rad,
        names=taught_joint_arrays(build).names,
        variant=build.name,
    )
    # Links that only come near are no error, and finding them takes five times as long.
    check_contact(path, build=build.bare, clearance_m=0.0).permit(force=True)
