"""Mirroring live: one robot is moved by hand, or plays, and others follow its arms.

Each pose that the leader reports is mapped to every follower, checked for contact along the way
there, and sent within the limits of `robot.follow`. A pose in which a follower would touch itself
is not sent: it holds the last safe one, and catches up slowly afterwards.

However the block ends, the leader's arms hold again and the followers come to rest softly. A stop
of one robot stops all.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import numpy as np

from rote.errors import (
    BadRequestError,
    LinkError,
    NoAnswerError,
    NotConfirmedError,
    PeerLostError,
    RefusedError,
    RoteError,
    UnsafeMotionError,
)
from rote.findings import FindingKind, Severity
from rote.messages import Code, RobotState
from rote.model.family import Build
from rote.motion.check.rules import check_contact
from rote.motion.edit.pose_map import PoseMap
from rote.motion.track import Array, Track
from rote.platform.loop import to_the_end
from rote.robot.following import Following
from rote.robot.link import RobotLink
from rote.robot.streamer import Streamer
from rote.robot.teaching import Teaching
from rote.robot.ticker import LatenessStatistics
from rote.transport.wires import WIRES

LOST_S = 0.3
"""A leader that reports no joints for this many seconds is lost: the followers come to rest."""
NAME = "live mirror"
"""The name of the teaching that makes the leader's arms soft; nothing is stored under it."""

_FIRST_STATE_TIMEOUT_S = 3.0
_MAX_APPROACH_S = 20.0  # maximum wait for followers before the leader's arms get soft
_MIN_AIM_INTERVAL_S = 0.02  # between two poses, each of which is checked for contact
_WATCH_INTERVAL_S = 0.05
_LEAD_S, _MAX_LEAD_RAD = 0.06, 0.15
"""Goals are where the leader will be this much later, at its speed: a follower needs about this
time to accelerate and brake.
"""
_SPEED_WINDOW_S = 0.04  # the speed of the leader is measured over this time
_MIN_GOAL_CHANGE_RAD = 0.002  # a smaller change of the goal is encoder noise
_LAG_WINDOW_S = 0.4  # the lag is measured from the follower's states of this time
_MAX_LAG_S, _LAG_STEP_S = 0.5, 0.005
_MIN_LAG_STATES = 5
_MIN_LAG_TRAVEL_RAD = 0.15  # the lag is measured only if the leader moves at least this much
_SOFT_ARMS_HEADLINE = "the leader's arms may still be soft: it did NOT confirm that they hold"
_RECONNECT_REMEDY = "Connect to the leader again, then start mirroring again."

T = TypeVar("T")


class LeaderParts(NamedTuple):
    """The parts of the leading robot."""

    link: RobotLink
    teach: Callable[[], Teaching]
    """Makes the block in which its arms are soft and nothing is recorded."""


class FollowerParts(NamedTuple):
    """The parts of a following robot."""

    link: RobotLink
    streamer: Streamer


@dataclass(frozen=True, slots=True)
class FollowerStatus:
    """How one robot follows at the moment, and how well it has followed so far."""

    url: str
    reached: bool
    """Whether it has reached the leader's pose; until then it moves slowly."""
    held: str
    """Why it holds its pose instead of following, as text; "" if it follows."""
    limited: tuple[str, ...]
    """The joints that stay at a limit because the leader's pose is beyond it."""
    lag_ms: float | None
    """Delay behind the leader; None until it was measured in a motion."""
    lag_p50_ms: float | None
    lag_p99_ms: float | None
    poses: int
    """Number of poses that were sent to it as goals."""
    holds: int
    """Number of times it held because a pose was not safe."""
    unchecked: str
    """Why contact could not be checked, as text; "" if it is checked."""


class LagMeter:
    """Measures the delay of a follower's joints behind the leader's, from their reports."""

    def __init__(self) -> None:
        # Times and poses; more than arrive during the window and the maximum lag.
        self._goals: deque[tuple[float, Array]] = deque(maxlen=200)
        self._states: deque[tuple[float, Array]] = deque(maxlen=500)
        self._statistics = LatenessStatistics()
        self.latest_s: float | None = None

    def add_goal(self, at_s: float, joints_rad: Array) -> None:
        """Add a pose that the leader reported at `at_s`, mapped to the follower's joints."""
        self._goals.append((at_s, joints_rad))

    def add_state(self, at_s: float, joints_rad: Array) -> None:
        """Add the pose of the same joints that the follower reported at `at_s`."""
        self._states.append((at_s, joints_rad))

    def clear(self) -> None:
        """Forget the poses so far: the follower does not follow at the moment."""
        self._goals.clear()
        self._states.clear()

    def percentile_ms(self, percent: float) -> float | None:
        """Return the lag that `percent` of the measurements did not exceed; None without any."""
        if not self._statistics.count:
            return None
        return 1000.0 * self._statistics.percentile_s(percent)

    def measure(self, now_s: float) -> float | None:
        """Return the current lag in seconds, at most 0.5; None if the leader does not move."""
        since_s = now_s - _LAG_WINDOW_S
        goals_since_s = since_s - _MAX_LAG_S  # a state in the window may follow a goal this old
        # Copies, because states may be added in another thread meanwhile.
        goals, states = list(self._goals), list(self._states)
        states = [(at_s, joints_rad) for at_s, joints_rad in states if at_s > since_s]
        if len(states) < _MIN_LAG_STATES or not goals or goals[0][0] > goals_since_s:
            return None
        goal_times_s, goals_rad = _split_columns(goals)
        state_times_s, states_rad = _split_columns(states)
        recent_goals_rad = goals_rad[goal_times_s > goals_since_s]
        if not recent_goals_rad.size:
            return None
        travel_rad = np.ptp(recent_goals_rad, axis=0)
        if travel_rad.max() < _MIN_LAG_TRAVEL_RAD:
            return None
        # The lag is the time shift at which the leader's poses fit those of the follower best.
        # Joints that move little say little about it, so they do not count.
        shifts_s = np.arange(0.0, _MAX_LAG_S + _LAG_STEP_S / 2, _LAG_STEP_S)
        shifted_times_s = state_times_s[None] - shifts_s[:, None]
        squared_errors = np.zeros(len(shifts_s))
        for joint in np.flatnonzero(travel_rad > travel_rad.max() / 2):
            expected_rad = np.interp(shifted_times_s, goal_times_s, goals_rad[:, joint])
            squared_errors += ((expected_rad - states_rad[:, joint]) ** 2).mean(axis=1)
        self.latest_s = float(shifts_s[squared_errors.argmin()])
        self._statistics.add(self.latest_s)
        return self.latest_s


def _split_columns(poses: Sequence[tuple[float, Array]]) -> tuple[Array, Array]:
    """Return the times of poses in seconds, (n,), and the poses in rad, (n, joints)."""
    times_s, rows_rad = zip(*poses, strict=True)
    return np.array(times_s), np.array(rows_rad)


class _Follower:
    """One following robot: takes the newest pose of the leader, and aims at it."""

    def __init__(self, parts: FollowerParts, leader: Build, *, mirrored: bool) -> None:
        self.link, self._streamer = parts
        self.url = self.link.client.url
        build = self.link.build
        self._map = PoseMap(leader, build, mirrored=mirrored)
        self._names = tuple(self._map.map_pose(leader.rest_rad).joints_rad)
        self._columns = [build.names.index(name) for name in self._names]
        joints = [build.joints[column] for column in self._columns]
        self._lower_rad = np.array([joint.lower_rad for joint in joints])
        self._upper_rad = np.array([joint.upper_rad for joint in joints])
        self.following: Following | None = None
        self.meter = LagMeter()
        self._loop = asyncio.get_running_loop()
        self._newest_pose: tuple[float, Sequence[float]] | None = None
        """The leader's newest pose, and when it was reported."""
        self._pose_offered = asyncio.Event()
        self._goal_rad: Array | None = None
        self._recent_poses: deque[tuple[float, Array]] = deque(maxlen=32)
        self._hold_reason = self._unchecked = ""
        self._limited: tuple[str, ...] = ()
        self._pose_count = self._hold_count = 0

    @property
    def status(self) -> FollowerStatus:
        lag_s = self.meter.latest_s
        return FollowerStatus(
            url=self.url,
            reached=self.following is not None and self.following.reached,
            held=self._hold_reason,
            limited=self._limited,
            lag_ms=None if lag_s is None else 1000.0 * lag_s,
            lag_p50_ms=self.meter.percentile_ms(50.0),
            lag_p99_ms=self.meter.percentile_ms(99.0),
            poses=self._pose_count,
            holds=self._hold_count,
            unchecked=self._unchecked,
        )

    @property
    def has_approached(self) -> bool:
        """Whether it has reached the leader's pose, or cannot: it holds."""
        return bool(self._hold_reason) or (self.following is not None and self.following.reached)

    async def begin(self) -> None:
        """Begin to follow; the arms stay where they are until a pose is offered."""
        self._unchecked = await asyncio.to_thread(_explain_unchecked_contact, self.link.build)
        follow = partial(self._streamer.follow, rate_hz=250.0, contact=True)
        self.following = await self.call(follow)

    async def call(self, function: Callable[[], Awaitable[T]]) -> T:
        """Await the result of a function on this robot's event loop, in its own thread."""
        if self.link.loop is self._loop:
            return await function()
        return await asyncio.wrap_future(
            asyncio.run_coroutine_threadsafe(_await_result(function), self.link.loop)
        )

    def on_state(self, state: RobotState) -> None:
        """Record a state of this robot; called in the thread of its event loop."""
        if state.has_joints and state.joints_rad:
            joints_rad = np.array([state.joints_rad[column] for column in self._columns])
            self.meter.add_state(self._loop.time(), joints_rad)

    def offer(self, at_s: float, joints_rad: Sequence[float]) -> None:
        """Offer the newest pose of the leader; an earlier one that was not aimed at is dropped."""
        self._newest_pose = at_s, joints_rad
        self._pose_offered.set()

    async def run(self) -> None:
        """Aim at each newest pose until cancelled."""
        while True:
            await self._pose_offered.wait()
            self._pose_offered.clear()
            began_s = self._loop.time()
            assert self._newest_pose is not None
            # Mapping and checking take milliseconds, in which the loop must be free for a stop.
            await asyncio.to_thread(self._aim_at, *self._newest_pose)
            await asyncio.sleep(max(0.0, began_s + _MIN_AIM_INTERVAL_S - self._loop.time()))

    def _aim_at(self, at_s: float, joints_rad: Sequence[float]) -> None:
        """Aim at a pose of the leader, or hold if that is not safe. Runs in a thread."""
        following = self.following
        assert following is not None
        if not following.faded_in:  # until then, a goal would add to the speed of the fade
            return
        pose = self._map.map_pose(joints_rad)
        self._limited = pose.limited
        pose_rad = np.array([pose.joints_rad[name] for name in self._names])
        predicted_rad = self._predict_pose(at_s, pose_rad)
        try:
            if self._is_near_goal(predicted_rad):
                following.keep()
            else:
                self._aim_or_hold(following, predicted_rad, pose_rad)
        except RefusedError:
            return  # following has ended; `_watch_robots` notices it
        if self._hold_reason or not following.reached:
            self.meter.clear()
        else:
            self.meter.add_goal(at_s, pose_rad)

    def _predict_pose(self, at_s: float, pose_rad: Array) -> Array:
        """Return where the leader will be a moment later, within the limits of the joints."""
        while len(self._recent_poses) > 1 and self._recent_poses[1][0] <= at_s - _SPEED_WINDOW_S:
            self._recent_poses.popleft()
        self._recent_poses.append((at_s, pose_rad))
        before_s, before_rad = self._recent_poses[0]
        if at_s <= before_s:
            return pose_rad
        lead_rad = (pose_rad - before_rad) * (_LEAD_S / (at_s - before_s))
        lead_rad = np.clip(lead_rad, -_MAX_LEAD_RAD, _MAX_LEAD_RAD)
        return np.asarray(np.clip(pose_rad + lead_rad, self._lower_rad, self._upper_rad))

    def _is_near_goal(self, goal_rad: Array) -> bool:
        if self._hold_reason or self._goal_rad is None:
            return False
        return bool(np.abs(goal_rad - self._goal_rad).max() < _MIN_GOAL_CHANGE_RAD)

    def _aim_or_hold(self, following: Following, predicted_rad: Array, pose_rad: Array) -> None:
        """Aim at the predicted pose; at the pose itself if only that is safe."""
        reason = ""
        # A follower that holds approaches the leader's pose slowly, so a prediction is of no use.
        candidates_rad = (pose_rad,) if self._hold_reason else (predicted_rad, pose_rad)
        for goal_rad in candidates_rad:
            goal = dict(zip(self._names, goal_rad.tolist(), strict=True))
            try:
                following.aim(goal, softly=bool(self._hold_reason))
            except UnsafeMotionError as error:
                reason = str(error.reason)
            except BadRequestError as error:  # this computer cannot check the path in time
                reason = str(error)
            else:
                self._goal_rad, self._hold_reason = goal_rad, ""
                self._pose_count += 1
                return
        self._hold_pose(following, reason)

    def _hold_pose(self, following: Following, reason: str) -> None:
        if not self._hold_reason:
            self._hold_count += 1
        self._hold_reason = reason
        following.keep()

    def end(self) -> None:
        """Begin to come to rest softly. Safe to repeat."""
        if self.following is not None:
            self.following.end()

    async def stop(self) -> None:
        """Stop the robot. Raises `NotConfirmedError` if it does not confirm that."""
        await self.call(partial(_stop_robot, self.link, "follower"))

    async def wait(self) -> None:
        """Wait until the arms are at rest."""
        if self.following is not None:
            await self.call(self.following.wait)


async def _stop_robot(link: RobotLink, role: str) -> None:
    try:
        await link.stop()
    except RoteError as error:
        raise NotConfirmedError(
            f"the {role} {link.client.url} did not confirm the stop: {error}",
            "Use its remote (L2+B).",
        ) from error


async def _await_result(function: Callable[[], Awaitable[T]]) -> T:
    return await function()


def _explain_unchecked_contact(build: Build) -> str:
    """Return why contact of a build cannot be checked; "" if it can. Builds the body model."""
    rest_pose = Track(
        times_s=np.zeros(1),
        joints_rad=np.array(build.bare.rest_rad)[None],
        names=build.bare.names,
        variant=build.name,
    )
    for finding in check_contact(rest_pose, build=build.bare, clearance_m=0.0).findings:
        if finding.severity is Severity.NOTE and finding.kind is FindingKind.COLLISION:
            return str(finding.message)  # such a note says that contact was not checked
    return ""


class Mirroring:
    """The value of the block of `robot.lead`: how its followers follow."""

    def __init__(self, followers: Sequence[_Follower], *, soft: bool) -> None:
        self.soft = soft
        """Whether the leader's arms are soft; otherwise it is only watched."""
        self._followers = followers
        self._over = asyncio.Event()

    @property
    def followers(self) -> tuple[FollowerStatus, ...]:
        """How each robot follows, in the order in which they were given."""
        return tuple(each.status for each in self._followers)

    @property
    def over(self) -> bool:
        """Whether it was interrupted; leaving the block raises the reason."""
        return self._over.is_set()

    async def wait(self, seconds: float | None = None) -> bool:
        """Wait for a time, or without limit; return False if mirroring was interrupted."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._over.wait()
        return not self.over

    def interrupt(self) -> None:
        """Mark it as over, and end `wait`. Called by the block."""
        self._over.set()


class Leading:
    """`async with robot.lead(other) as mirroring`: others follow the robot inside the block.

    However the block ends, the leader's arms hold again and the followers come to rest softly. If a
    robot is lost or stopped, the block is interrupted and the reason is raised.
    """

    def __init__(
        self,
        leader: LeaderParts,
        followers: Sequence[FollowerParts],
        *,
        mirrored: bool = False,
        soft: bool | None = None,
    ) -> None:
        """Raises `BadRequestError` or `UnsupportedError` if these robots cannot do it."""
        self._link = leader.link
        self._teach = leader.teach
        self._url = self._link.client.url
        _check_robots(self._link, [each.link for each in followers])
        for each in followers:
            each.streamer.check_streamable()
        build = self._link.build
        self._followers = [_Follower(each, build, mirrored=mirrored) for each in followers]
        self._soft = soft
        self._loop = asyncio.get_running_loop()
        self._mirroring = Mirroring(self._followers, soft=bool(soft))
        self._teaching: Teaching | None = None
        self._task: asyncio.Task[object] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stop_tasks: list[asyncio.Task[None]] = []
        self._listener_removers: list[Callable[[], None]] = []
        self._leader_report_s = 0.0
        """When the leader last reported its joints, by the event loop's clock."""
        self._first_state: asyncio.Future[RobotState] = self._loop.create_future()
        self._approached = asyncio.Event()
        self._reason: RoteError | None = None
        self._ending = False

    async def __aenter__(self) -> Mirroring:
        self._task = asyncio.current_task()
        self._link.unfinished.add(self, self._end_abandoned)
        try:
            await self._begin_mirroring()
        except BaseException as error:
            await self._end_mirroring(error)
            raise
        return self._mirroring

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end_mirroring(error)

    async def _end_abandoned(self) -> None:
        """End when the leader's connection closes."""
        with suppress(asyncio.CancelledError):
            await self._end_mirroring(LinkError("the connection of the leader was closed"))

    # ---- beginning ------------------------------------------------------------------------------

    async def _begin_mirroring(self) -> None:
        """Let the followers approach the leader's pose, then make the leader's arms soft."""
        self._add_listeners()
        state = await self._wait_for_joints()
        soft = not state.playing if self._soft is None else self._soft
        for each in self._followers:
            await each.begin()
            self._start_task(each.run())
        self._leader_report_s = self._loop.time()
        self._start_task(self._watch_robots())
        if soft:
            await self._wait_until_reached()
            teaching = self._teach()
            take = await teaching.__aenter__()
            self._teaching, self._mirroring.soft = teaching, True
            take.discard()

    def _add_listeners(self) -> None:
        client = self._link.client
        self._listener_removers += [
            client.on_state(self._on_leader_state),
            client.on_loss(partial(self._on_loss, "leader", self._url)),
            self._link.on_stop(self._on_stop),
        ]
        for each in self._followers:
            self._listener_removers += [
                each.link.client.on_state(each.on_state),
                each.link.client.on_loss(partial(self._on_loss, "follower", each.url)),
                each.link.on_stop(self._on_stop),
            ]

    async def _wait_until_reached(self) -> None:
        """Wait until the followers have approached the leader, which is still stiff."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_MAX_APPROACH_S):
                await self._approached.wait()

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(coroutine)
        task.add_done_callback(self._on_task_done)
        self._tasks.append(task)

    def _on_task_done(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._loop.call_exception_handler({"message": "mirroring failed", "exception": error})
            self._interrupt_block(
                RefusedError(
                    Code.SUPERSEDED, f"mirroring failed: {error}", "Start mirroring again."
                )
            )

    async def _wait_for_joints(self) -> RobotState:
        with suppress(TimeoutError):
            async with asyncio.timeout(_FIRST_STATE_TIMEOUT_S):
                return await asyncio.shield(self._first_state)
        raise NoAnswerError(
            f"the leader {self._url} does not report its joints, so nothing can follow it",
            "Choose another leader, or find out why it is silent.",
        )

    # ---- while it runs --------------------------------------------------------------------------

    def _on_leader_state(self, state: RobotState) -> None:
        if not state.has_joints or not state.joints_rad:
            return
        self._leader_report_s = now_s = self._loop.time()
        if not self._first_state.done():
            self._first_state.set_result(state)
        for each in self._followers:
            each.offer(now_s, state.joints_rad)

    async def _watch_robots(self) -> None:
        """Interrupt the block if the leader is silent or a follower ends; measure the lag."""
        rounds = 0
        while True:
            await asyncio.sleep(_WATCH_INTERVAL_S)
            now_s, rounds = self._loop.time(), rounds + 1
            if all(each.has_approached for each in self._followers):
                self._approached.set()
            if now_s - self._leader_report_s > LOST_S:
                self._interrupt_block(
                    PeerLostError(
                        f"the leader {self._url} has reported no joints for "
                        f"{now_s - self._leader_report_s:.1f} s",
                        _RECONNECT_REMEDY,
                    )
                )
            for each in self._followers:
                following = each.following
                if following is not None and (following.done or following.returning):
                    self._interrupt_by_stop(f"the follower {each.url} stopped following by itself")
                if rounds % 2:  # every other round is enough for the lag
                    each.meter.measure(now_s)

    def _on_stop(self, ended: bool) -> None:
        """Interrupt the block when a robot is to be stopped; called in that robot's thread."""
        if not ended:
            self._loop.call_soon_threadsafe(
                self._interrupt_by_stop, "mirroring was ended by a stop"
            )

    def _interrupt_by_stop(self, message: str) -> None:
        if self._reason is None and not self._ending:
            self._stop_robots()
            self._interrupt_block(
                RefusedError(
                    Code.SUPERSEDED, message, "Start mirroring again when all robots are at rest."
                )
            )

    def _on_loss(self, role: str, url: str, error: RoteError) -> None:
        """Interrupt the block because a robot was lost; called in that robot's thread."""
        lost = PeerLostError(f"the {role} {url} was lost: {error}", _RECONNECT_REMEDY)
        lost.__cause__ = error
        self._loop.call_soon_threadsafe(self._interrupt_block, lost)

    def _interrupt_block(self, reason: RoteError) -> None:
        """Let all followers come to rest, and cancel the block."""
        if self._reason is not None or self._ending:
            return
        self._reason = reason
        for each in self._followers:
            each.end()
        self._mirroring.interrupt()
        if self._task is not None:
            self._task.cancel()

    def _stop_robots(self) -> None:
        """Begin to stop all followers, and a leader that plays; soft arms will hold instead."""
        if self._stop_tasks:
            return
        stops = [each.stop() for each in self._followers if each.following is not None]
        if self._teaching is None:
            stops.append(_stop_robot(self._link, "leader"))
        self._stop_tasks = [self._loop.create_task(stop) for stop in stops]

    # ---- ending ---------------------------------------------------------------------------------

    async def _end_mirroring(self, error: BaseException | None) -> None:
        """Make the leader's arms hold and the followers rest, then raise the reason, if any."""
        if self._ending:
            return
        self._ending = True
        self._mirroring.interrupt()
        if self._reason is None and isinstance(error, asyncio.CancelledError):
            self._stop_robots()
        failures: list[BaseException] = []
        ending_followers = self._loop.create_task(self._end_followers(failures))
        hold_error: BaseException | None = None
        try:
            if self._teaching is not None:
                await self._teaching.__aexit__(type(error) if error else None, error, None)
        except BaseException as failure:
            hold_error = failure
        try:
            await to_the_end(ending_followers)
        finally:
            self._link.unfinished.remove(self)
        self._raise_outcome(error, hold_error, failures)

    async def _end_followers(self, failures: list[BaseException]) -> None:
        """Wait until the followers are at rest; add the errors of robots to `failures`."""
        for remove_listener in self._listener_removers:
            remove_listener()
        for task in self._tasks:
            task.cancel()
        for each in self._followers:
            each.end()
        end_tasks = [*self._stop_tasks, *(each.wait() for each in self._followers)]
        results = await asyncio.gather(*end_tasks, *self._tasks, return_exceptions=True)
        failures += [each for each in results if isinstance(each, RoteError)]

    def _raise_outcome(
        self,
        error: BaseException | None,
        hold_error: BaseException | None,
        failures: Sequence[BaseException],
    ) -> None:
        """Raise the most important reason why the block ended, if there is one.

        The order: soft arms (`hold_error`, from the end of the teaching), a robot that may still
        move (`failures`, from the ends of the followers), what interrupted the block, any failure.
        """
        if self._reason is not None and isinstance(error, asyncio.CancelledError):
            assert self._task is not None
            self._task.uncancel()
        if hold_error is not None and not isinstance(hold_error, RoteError):
            raise hold_error
        if isinstance(hold_error, LinkError):
            raised = self._reason or hold_error
            raised.headline = _SOFT_ARMS_HEADLINE
            raise raised from hold_error
        unsafe = next((each for each in failures if isinstance(each, NotConfirmedError)), None)
        # A stop that was cancelled is sent again when the connection closes.
        if unsafe is not None and (self._reason is not None or hold_error is not None):
            raise unsafe from self._reason
        outcome: BaseException | None = self._reason or hold_error
        if outcome is None and failures and error is None:
            outcome = failures[0]
        if outcome is not None:
            raise outcome from error


def _check_robots(leader: RobotLink, followers: Sequence[RobotLink]) -> None:
    """Raise `BadRequestError` if these robots cannot lead and follow."""
    if not followers:
        raise BadRequestError("no follower was given", "Name at least one follower.")
    links = [leader, *followers]
    check_distinct([link.client.url for link in links])
    # Simulated robots may share a URL, but not a link.
    if len({id(link) for link in links}) < len(links):
        raise _named_twice_error(leader.client.url)
    for link in links:
        if link.build.limbs != "arms" or not link.build.taught:
            raise BadRequestError(
                f"{link.client.url} has no arms to be taught ({link.build.title})",
                "Only robots with arms can lead or follow.",
            )


def check_distinct(urls: Sequence[str]) -> None:
    """Raise `BadRequestError` if a robot is named twice.

    Robots simulated in this process may share a URL, because each connection has its own robot.
    """
    for number, url in enumerate(urls):
        wire = WIRES.get(url.partition(":")[0])
        if url in urls[:number] and not (wire is not None and wire.lives_here):
            raise _named_twice_error(url)


def _named_twice_error(url: str) -> BadRequestError:
    return BadRequestError(
        f"{url} is named twice", "Name each robot once: it either leads, or follows one leader."
    )
