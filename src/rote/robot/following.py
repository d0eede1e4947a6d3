"""Following poses that come one by one, from a program that does not know the next: LeRobot's.

A track is checked as a whole before anything moves; here nobody knows the whole. So every pose is
checked when it comes, and the arms do not jump to it: they go there within a limit of speed and
acceleration, slowly until they have reached the first one. Each joint goes by itself, so the way is
no straight line: contact is looked for along the very poses that will be sent. When no more poses
come they hold, then return to rest; so they do at the end, and whenever the connection or this
program fails.
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
from rote.motion.check.limits import MAX_PLAYED_RAD_S2, check_positions, most_played_rad_s
from rote.motion.check.rules import check_contact
from rote.motion.interpolate import minimum_jerk
from rote.motion.track import Array, Track, did_you_mean
from rote.robot.api_values import RobotClient, StreamReport
from rote.robot.streaming import PoseStreaming, Ticker, taught_joint_arrays

MAX_RAD_S = 3.0
"""The highest speed of any joint: nobody checked the whole motion."""
MAX_RAD_S2 = min(30.0, MAX_PLAYED_RAD_S2)
SILENT_S = 5.0
"""Without a new pose for so long, the arms return to rest and following ends."""

_REACHED_RAD = 0.05
_MAX_DURATION_S = 6 * 3600.0
_RETURN_RESERVE_S = 60.0  # so long before that the arms go back: more than any way takes
_BRAKE_S = 0.3  # in which arms come to a stand on their way back
_WEIGHT_S = 1.0  # in which the robot's own pose fades out
_LEAD_TICKS = (
    2  # so many poses are still sent on the old way while the new one is checked, at least
)
_LEAD_MAX_S = 1.0  # a computer that takes longer to check a way is too slow for it
_ARRIVED_RAD, _ARRIVED_RAD_S = 1e-3, 1e-2
_FORECAST_MAX_S = 20.0  # more than the longest way takes


class _CommandedState(NamedTuple):
    """Where the arms are led at one tick, and how fast."""

    at_rad: Array
    rad_s: Array
    goal_rad: Array
    aimed: bool = False
    """Whether the goal came from outside: at first it is where the arms are."""
    reached: bool = False
    """Whether a goal was reached: until then they go slowly."""


class FollowedPath(NamedTuple):
    """The poses that would be sent on the way to a goal that is aimed at from a tick on."""

    begin: int
    poses_rad: Array
    """(n, joints), of the taught joints; the first is where the arms are now, the last the goal."""


class LivePoses(Sequence[StreamPose]):
    """The poses that are sent, each made when it is due: where the arms should be by then."""

    def __init__(self, build: Build, joints_rad: Sequence[float], rate_hz: float) -> None:
        """`joints_rad` are where all joints of the build are now."""
        taught = taught_joint_arrays(build)
        now_rad: Array = np.array(joints_rad)[taught.columns]
        self._lock = threading.Lock()
        self._period_s = 1.0 / rate_hz
        self._commanded = _CommandedState(now_rad.copy(), np.zeros_like(now_rad), now_rad.copy())
        self._upcoming: tuple[tuple[int, Array], ...] = ()
        """Goals with the ticks from which on they are gone to."""
        self._rest_rad = taught.rest_rad
        self._soft_rad_s, self._soft_least_s = taught.soft_rad_s, taught.soft_least_s
        self._most_rad_s = np.minimum(most_played_rad_s(taught.joints), MAX_RAD_S)
        self._made = -1
        self._newest = 0
        self._row: tuple[float, Array] = (0.0, now_rad)
        self._lower_rad, self._upper_rad = taught.lower_rad, taught.upper_rad
        self._return_path: tuple[int, int, Array] | None = None
        self._count = round(_MAX_DURATION_S * rate_hz)
        self.on_last: Callable[[], None] = lambda: None
        """Called when the last pose was made: nothing is to be sent after it."""

    @property
    def pose_rad(self) -> Array:
        """Where the arms should be now."""
        with self._lock:
            return self._commanded.at_rad.copy()

    @property
    def returning(self) -> bool:
        """Whether the arms go back to rest, and no pose is followed any more."""
        return self._return_path is not None

    @property
    def finished(self) -> bool:
        """Whether the last pose was made: the arms are at rest."""
        return self._made >= self._count - 1

    @property
    def made(self) -> int:
        """How many poses were made, after the first."""
        return max(self._made, 0)

    def forecast(self, goal_rad: Array, lead: int) -> FollowedPath:
        """Return the way that is sent if this goal is aimed at after `lead` more poses."""
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

        Return False, and change nothing, if poses after `begin` were made already.
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
        # They go back from where they come to a stand.
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
        if isinstance(index, slice):  # what comes after is not known yet
            return [self[index.start or 0]]
        with self._lock:
            while self._made < index:
                self._made += 1
                self._row = self._make_pose(self._made)
            weight, row = self._row
            if index >= self._count - 1:
                self.on_last()
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
        """Return where the arms are led at a tick, and the goals that are still to come."""
        at_rad, rad_s, goal_rad, aimed, reached = commanded
        while upcoming and upcoming[0][0] < number:
            (begin, goal_rad), *rest = upcoming
            upcoming, aimed = tuple(rest), aimed or begin > 0
        most = self._most_rad_s if reached else np.minimum(self._most_rad_s, self._soft_rad_s)
        gap_rad = goal_rad - at_rad
        # As fast as it can still be braked, and no faster than one step reaches.
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
    """Return the goals to come with one more, which replaces those after it."""
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
        client: RobotClient,
        begin: Callable[[Callable[[], None]], Awaitable[LivePoses]],
        stop: Callable[[], Awaitable[None]],
        ticker: Ticker,
        *,
        contact: bool,
    ) -> None:
        self.build = client.build
        """The build of the robot."""
        self._live: LivePoses | None = None
        self._contact = contact
        self._aiming = threading.Lock()
        self._lead = _LEAD_TICKS
        self._longest_lead = round(_LEAD_MAX_S * ticker.rate_hz)

        async def begin_following(on_request_sent: Callable[[], None]) -> float:
            self._live = await begin(on_request_sent)
            return _MAX_DURATION_S

        super().__init__(client, "following", begin_following, stop, ticker)

    async def _run(self) -> StreamReport:
        report = await super()._run()
        # Its duration was not known before, so only what was sent tells whether it is complete.
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
            with self._aiming:  # no other goal comes between the check and the way
                self._aim_along_checked_path(live, goal_rad)
        else:
            live.aim(goal_rad)

    def _aim_along_checked_path(self, live: LivePoses, goal_rad: Array) -> None:
        """Go to a pose on the way that was checked.

        Poses are sent while the check runs, so the new way begins after some more of the old one.
        If the check took longer than those lasted, it was of another way: check again.
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
            f"this computer takes longer than {_LEAD_MAX_S:g} s to look for contact on the way",
            "Aim at nearer poses, or follow without looking for contact.",
        )

    def end(self) -> None:
        """Return softly to rest. Safe to call twice, and from any thread."""
        if self._live is not None:
            self._live.end()


def check_path_contact(poses_rad: Array, build: Build) -> None:
    """Raise `UnsafeMotionError` if the robot would touch itself in one of these poses or between.

    They are (n, joints), of the taught joints. The first call takes a second or so: the body is put
    together.
    """
    path = Track(
        times_s=np.arange(float(len(poses_rad))),
        joints_rad=poses_rad,
        names=taught_joint_arrays(build).names,
        variant=build.name,
    )
    check_contact(path, build=build.bare).permit(force=True)
