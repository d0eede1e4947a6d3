"""A robot on ROS 2, without ROS: its topics and services.

Published: `/joint_states` as they arrive, `/robot_description` (latched), `/diagnostics`, and
`/rote/result`, the result of each request. Requests by topics, which every middleware supports:
`/rote/joint_trajectory`, `/rote/play`, `/rote/stop`. Requests by services, for CycloneDDS's
middleware: `/rote/list`, `/rote/play`, `/rote/stop`.

Every motion goes through the same checks and the same soft start as all others. One node commands
at a time, and one motion runs at a time; a stop is accepted from every node.
"""

import asyncio
import json
import math
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import numpy as np

from rote.bridge import ros_messages as ros
from rote.bridge.description import urdf
from rote.bridge.ros_messages import Trajectory
from rote.bridge.telemetry import StateClock, make_diagnostics
from rote.errors import BadRequestError, DecodeError, LinkError, RefusedError, RoteError
from rote.findings import Finding
from rote.messages import Code, RobotState, explain
from rote.model.family import MAX_MOTION_S, Build
from rote.motion.files.joint_state import Encoder
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.robot.playing import Playing
from rote.robot.robot import Robot
from rote.transport.dds import ros_types as kinds
from rote.transport.dds.participant import Bus, DdsTarget, read_url
from rote.transport.dds.types import TEXT
from rote.transport.link import split_url
from rote.transport.wires import wire_of
from rote.wire.cdr_layout import HEADER

# ---- trajectories --------------------------------------------------------------------------------

MAX_POINTS = 100_000
_START_TOLERANCE_S = 1e-6
"""A first point up to this time counts as a point at the start."""
_SAMPLE_PERIOD_S = 0.02
_MIN_GAP_S = 1e-9
"""Samples closer than this are merged: they are a point and a regular sample at the same time."""


def make_track(trajectory: Trajectory, build: Build, state: RobotState | None) -> Track:
    """Return a trajectory as a track of a build, from the robot's current pose.

    If the first point is later than the start, the track begins at the current pose, as in ROS 2.
    Between points the joints are interpolated linearly. Raises `BadRequestError` for a trajectory
    that cannot be played.
    """
    _check_trajectory(trajectory, build)
    names = trajectory.names
    times_s = [point.at_s for point in trajectory.points]
    rows = [point.positions_rad for point in trajectory.points]
    if times_s[0] > _START_TOLERANCE_S:
        if state is None or not state.has_joints or len(state.joints_rad) < len(build.names):
            raise BadRequestError("the robot has not reported its joint positions", "Try again.")
        rows.insert(0, tuple(state.joints_rad[build.names.index(name)] for name in names))
        times_s.insert(0, 0.0)
    if len(rows) < 2:
        raise BadRequestError(
            "a trajectory of one pose at time 0 is not a motion",
            "Give the point a time_from_start.",
        )
    # Sample at regular times and at each point, so that no corner is cut off.
    point_times_s, poses = np.array(times_s), np.array(rows)
    count = max(2, math.ceil((point_times_s[-1] - point_times_s[0]) / _SAMPLE_PERIOD_S) + 1)
    regular_s = np.linspace(point_times_s[0], point_times_s[-1], count)
    sampled_s = np.union1d(regular_s, point_times_s)
    sampled_s = sampled_s[np.concatenate([[True], np.diff(sampled_s) > _MIN_GAP_S])]
    columns = [np.interp(sampled_s, point_times_s, column) for column in poses.T]
    return Track(
        times_s=sampled_s,
        joints_rad=np.stack(columns, axis=1),
        names=names,
        variant=build.name,
        source="a ROS 2 trajectory",
    )


def _check_trajectory(trajectory: Trajectory, build: Build) -> None:
    """Raise `BadRequestError` if the build cannot play the trajectory, whatever its pose."""
    names, points = trajectory.names, trajectory.points
    if not names or not points or len(points) > MAX_POINTS:
        raise BadRequestError(
            f"a trajectory of {len(names)} joints and {len(points)} points cannot be played"
        )
    if unknown := [name for name in names if name not in build.taught]:
        raise BadRequestError(
            f"{build.title} does not play the joint {unknown[0]}",
            f"It plays: {', '.join(build.taught)}.",
        )
    if len(set(names)) != len(names):
        raise BadRequestError("the trajectory names a joint twice", "Name each joint once.")
    before_s = -1.0
    for number, point in enumerate(points):
        if len(point.positions_rad) != len(names):
            raise BadRequestError(
                f"point {number} has {len(point.positions_rad)} positions for {len(names)} joints"
            )
        if not all(map(math.isfinite, (*point.positions_rad, point.at_s))):
            raise BadRequestError(f"point {number} has a value that is not a finite number")
        if point.at_s <= before_s or not 0.0 <= point.at_s <= MAX_MOTION_S:
            raise BadRequestError(
                f"point {number} is at {point.at_s:g} s: it must be later than the point before, "
                f"and at most at {MAX_MOTION_S:g} s"
            )
        before_s = point.at_s


# ---- the node ------------------------------------------------------------------------------------


COMMAND_S = 5.0
"""Seconds after a node's last request until another node may command the robot."""
LOOPBACK = "lo"
_TOPIC, _REQUEST, _REPLY = "rt", "rq", "rr"
"""Prefixes of ROS 2 in the names of DDS topics."""
_DIAGNOSTICS_S = 1.0
_FINDINGS_S = 10.0
_STATES_BLOCKED_MS = 1
"""Timeout of a write: a node that reads slowly loses states and does not delay others."""

MeshUris = Callable[[Build], dict[str, str]]
"""Returns the URI of the mesh of each link that has one."""


def topic_of(name: str) -> str:
    """Return the DDS topic of a ROS 2 topic: `/joint_states` is `rt/joint_states`."""
    return _TOPIC + _check_name(name)


def service_topics(name: str) -> tuple[str, str]:
    """Return the DDS topics of a ROS 2 service: of its requests, and of its replies."""
    return f"{_REQUEST}{_check_name(name)}Request", f"{_REPLY}{_check_name(name)}Reply"


def _check_name(name: str) -> str:
    """Return the name, or raise `BadRequestError` if it is not a valid absolute name of ROS 2."""
    parts = name.split("/")
    is_absolute = len(parts) > 1 and not parts[0]
    if not is_absolute or not all(_is_token(part) for part in parts[1:]):
        raise BadRequestError(f"{name!r} is not a ROS 2 name", "Write it like /robot/stop.")
    return name


def _is_token(part: str) -> bool:
    """Whether a part of a name has only ASCII letters, digits and _, and begins with no digit."""
    return part.isascii() and part.replace("_", "a").isalnum() and not part[0].isdigit()


def check_domain(url: str, interface: str, domain: int) -> None:
    """Raise `BadRequestError` for a domain of ROS 2 that contains robots, or may contain them.

    `url` is the robot's. Unitree's robots are in domain 0. Messages of ROS 2 programs there reach
    the programs that keep a robot balanced.
    """
    wire = wire_of(url)
    if wire.is_bus:
        robot_domain = read_url(split_url(url)).domain
        if robot_domain == domain:
            raise BadRequestError(
                f"the robot itself uses domain {domain}", "Choose another domain for ROS 2, like 1."
            )
    if domain == 0 and interface != LOOPBACK and not wire.lives_here:
        raise BadRequestError(
            "Unitree's robots use domain 0",
            "Choose another domain for ROS 2, like 1, and set ROS_DOMAIN_ID to it.",
        )


class RosResult(NamedTuple):
    """The result of a request, or of a motion that it began."""

    asked: str
    """The topic or service of the request; "motion" for the end of a motion."""
    success: bool
    message: str

    @property
    def document(self) -> str:
        """As JSON, for `/rote/result`."""
        return json.dumps(self._asdict())


class RosBridge:
    """One robot in one domain of ROS 2, from `open` to `close`."""

    def __init__(
        self,
        robot: Robot,
        target: DdsTarget,
        library: Library,
        mesh_uris: MeshUris = lambda _: {},
        *,
        on_result: Callable[[RosResult], None] = lambda _: None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`mesh_uris` returns the URIs of the robot's meshes, which the description names.
        `on_result` is called with the result of each request.
        """
        self.robot = robot
        self.states = self.dropped = 0
        """Numbers of states published, and of messages dropped because a node read slowly."""
        self._library = library
        self._mesh_uris = mesh_uris
        self._on_result = on_result
        self._now_ns = now_ns
        self._loop = asyncio.get_running_loop()
        self._clock = StateClock()
        self._build: Build | None = None
        self._encoder = Encoder(())
        self._findings: list[Finding] = []
        self._playing: Playing | None = None
        self._is_beginning = False
        """Whether a requested motion is being prepared and does not play yet."""
        self._stops = 0
        """Number of stops requested."""
        self._commander: object = None
        self._commanded_s = 0.0
        """The node that commands the robot, and when its last request or motion was."""
        self._tasks: set[asyncio.Task[object]] = set()
        self._remove_listener: Callable[[], None] | None = None
        self._bus = Bus(target)
        write = self._bus.writer
        self._joints = write(
            topic_of("/joint_states"), kinds.JOINT_STATE, depth=10, blocked_ms=_STATES_BLOCKED_MS
        )
        self._description = write(topic_of("/robot_description"), TEXT, latched=True)
        self._diagnostics = write(topic_of("/diagnostics"), kinds.DIAGNOSTICS, depth=10)
        self._result = write(topic_of("/rote/result"), TEXT, depth=10)
        self._subscribe()

    def _subscribe(self) -> None:
        """Open the readers of all requests, by topics and by services."""
        for name, topic_type, receive in (
            ("/rote/joint_trajectory", kinds.TRAJECTORY, self._on_trajectory),
            ("/rote/play", TEXT, self._on_play),
            ("/rote/stop", kinds.EMPTY, self._on_stop),
        ):
            self._bus.reader_from(topic_of(name), topic_type, receive, depth=10)
        for name, (request_type, reply_type), serve in (
            ("/rote/list", kinds.TRIGGER, self._serve_list),
            ("/rote/play", kinds.NAMED, lambda data, sender: self.play_named(sender, data)),
            ("/rote/stop", kinds.TRIGGER, lambda _data, _sender: self.stop_robot()),
        ):
            request_topic, reply_topic = service_topics(name)
            outlet = self._bus.writer(reply_topic, reply_type, depth=10)
            receive = partial(self._serve_request, name, outlet.write, serve)
            self._bus.reader_from(request_topic, request_type, receive, depth=10)

    def open(self) -> None:
        """Start publishing."""
        self._publish_description()
        self._remove_listener = self.robot.on_state(self._on_state)
        self._spawn(self._keep_publishing_diagnostics())
        self._spawn(self._keep_refreshing_findings())

    async def close(self) -> None:
        """Stop the motion that this bridge began, and leave the domain. Safe to call twice."""
        if self._remove_listener is not None:
            self._remove_listener()
            self._remove_listener = None
        if self._playing is not None:
            with suppress(RoteError, TimeoutError):  # a lost robot must not prevent closing
                await self._playing.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._bus.close()

    # ---- publishing -----------------------------------------------------------------------------

    def _on_state(self, state: RobotState) -> None:
        if not state.has_joints:
            return
        if self.robot.build is not self._build:
            self._publish_description()
        stamp_ns = self._clock.stamp_ns(state, self._now_ns())
        packed = self._encoder.encode(stamp_ns, state.joints_rad, state.velocities_rad_s)
        try:
            # Padded to whole doubles, where some readers expect the (absent) torques to begin.
            self._joints.write(packed + bytes(-(len(packed) - len(HEADER)) % 8))
            self.states += 1
        except LinkError:
            self.dropped += 1

    def _publish_description(self) -> None:
        """Publish the description of the robot; repeated when its build or its hands change."""
        build = self._build = self.robot.build
        self._encoder = Encoder(build.names)
        uris = self._mesh_uris(build)
        self._description.write(ros.encode_string(urdf(build, uris.keys(), uris.__getitem__)))

    async def _keep_publishing_diagnostics(self) -> None:
        while True:
            lines = make_diagnostics(self.robot, self.robot.state, self._findings)
            try:
                self._diagnostics.write(ros.encode_diagnostics(self._now_ns(), lines))
            except LinkError:
                self.dropped += 1
            await asyncio.sleep(_DIAGNOSTICS_S)

    async def _keep_refreshing_findings(self) -> None:
        """Run the preflight periodically; each run sends requests to the robot."""
        while True:
            try:
                self._findings = await self.robot.preflight()
            except (RoteError, TimeoutError):
                self._findings = []
            await asyncio.sleep(_FINDINGS_S)

    # ---- requests -------------------------------------------------------------------------------

    def _on_trajectory(self, data: bytes, sender: object) -> None:
        def read_track() -> Track:
            trajectory = ros.decode_trajectory(data)
            return make_track(trajectory, self.robot.build, self.robot.state)

        play = partial(self._play_track, sender, read_track)
        self._spawn(self._run_request("/rote/joint_trajectory", play))

    def _on_play(self, data: bytes, sender: object) -> None:
        self._spawn(self._run_request("/rote/play", partial(self.play_named, sender, data)))

    def _on_stop(self, _: bytes, __: object) -> None:
        self._spawn(self._run_request("/rote/stop", self.stop_robot))

    def _serve_request(
        self,
        name: str,
        write_reply: Callable[[bytes], None],
        serve: Callable[[bytes, object], Awaitable[str]],
        data: bytes,
        sender: object,
    ) -> None:
        """Carry out one request to the service `name` by `serve`, and write the reply."""
        try:
            header, body = ros.decode_request(data)
        except DecodeError:
            return  # without a valid header there is no client to reply to

        async def reply() -> None:
            result = await self._run_request(name, partial(serve, body, sender))
            encoded = ros.encode_reply(header, success=result.success, message=result.message)
            try:
                write_reply(encoded)
            except LinkError:
                self.dropped += 1

        self._spawn(reply())

    async def _serve_list(self, _: bytes, __: object) -> str:
        actions = (await self.robot.actions()).taught if "list" in self.robot.abilities else ()
        entries = await asyncio.to_thread(self._library.list)
        return json.dumps(
            {
                "takes": [entry.name for entry in entries if not entry.problem],
                "actions": [action.name for action in actions],
            }
        )

    async def play_named(self, sender: object, data: bytes) -> str:
        """Check and play the take whose name is in a message; return the outcome."""
        name = ros.decode_string(data)
        return await self._play_track(sender, partial(self._library.load, name))

    async def _play_track(self, sender: object, read_track: Callable[[], Track]) -> str:
        """Read a track in a thread and begin to play it for the node `sender`; return the outcome.

        Raises before anything moves if the motion must not be played.
        """
        self._claim_command(sender)
        self._is_beginning, stops_before = True, self._stops
        try:
            track = await asyncio.to_thread(read_track)
            if self._stops != stops_before:
                raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))
            playing = self.robot.play_track(track)
            await playing.started()
        finally:
            self._is_beginning = False
        self._playing = playing
        self._spawn(self._report_end(playing))
        return f"{track.source or 'the motion'} begins: {track.duration_s:.2f} s"

    def _claim_command(self, sender: object) -> None:
        """Let a node command the robot; raise `BadRequestError` while a motion plays or another
        node commands it.
        """
        now_s = self._loop.time()
        is_others = self._commander not in {None, sender}
        if self._is_beginning or self._playing is not None:
            raise BadRequestError("a motion is playing", "Wait for its end, or stop it.")
        if is_others and now_s - self._commanded_s < COMMAND_S:
            raise BadRequestError(
                "another node commands the robot",
                f"Wait until it has sent nothing for {COMMAND_S:g} s.",
            )
        self._commander, self._commanded_s = sender, now_s

    async def _report_end(self, playing: Playing) -> None:
        """Wait for the end of a motion, and publish its result."""
        try:
            report = await playing.wait()
            outcome = "completed" if report.completed else f"stopped early: {report.reason}"
            self._publish_result(RosResult("motion", report.completed, outcome))
        except (RoteError, TimeoutError) as error:
            self._publish_result(RosResult("motion", False, str(error)))
        finally:
            self._playing, self._commanded_s = None, self._loop.time()

    async def stop_robot(self) -> str:
        """Stop the robot, and withdraw motions that have not begun; return the outcome."""
        self._stops += 1
        await self.robot.stop()
        return "stopped"

    async def _run_request(self, name: str, work: Callable[[], Awaitable[str]]) -> RosResult:
        """Carry out a request by `work`, and publish and return the result."""
        try:
            result = RosResult(name, True, await work())
        except (RoteError, TimeoutError) as error:
            remedy = str(error.remedy) if isinstance(error, RoteError) else ""
            result = RosResult(name, False, f"{error}. {remedy}".strip())
        self._publish_result(result)
        return result

    def _publish_result(self, result: RosResult) -> None:
        self._on_result(result)
        try:
            self._result.write(ros.encode_string(result.document))
        except LinkError:
            self.dropped += 1

    def _spawn(self, work: Awaitable[object]) -> None:
        """Run `work` as a task that `close` cancels."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
