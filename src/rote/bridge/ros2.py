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
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from rote.bridge import ros_messages as ros
from rote.bridge.description import urdf
from rote.bridge.telemetry import StateClock, diagnostics_of
from rote.bridge.trajectories import track_of
from rote.errors import BadRequestError, DecodeError, LinkError, RefusedError, RoteError
from rote.findings import Finding
from rote.messages import Code, RobotState, explain
from rote.model.family import Build
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

COMMAND_S = 5.0
"""A node keeps the command for this long after its last request, in seconds."""
LOOPBACK = "lo"
_TOPIC, _REQUEST, _REPLY = "rt", "rq", "rr"
"""Prefixes of ROS 2 in the names of DDS topics."""
_DIAGNOSTICS_S = 1.0
_FINDINGS_S = 10.0
# States are padded to whole doubles: some readers look for the (absent) torques where the first one
# would begin.
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
    good = len(parts) > 1 and not parts[0] and all(_is_token(part) for part in parts[1:])
    if not good:
        raise BadRequestError(f"{name!r} is not a name of ROS 2", "Write it like /robot/stop.")
    return name


def _is_token(part: str) -> bool:
    plain = part.isascii() and part.replace("_", "a").isalnum()
    return bool(part) and plain and not part[0].isdigit()


def check_domain(url: str, interface: str, domain: int) -> None:
    """Raise `BadRequestError` for a domain that contains robots, or may contain them.

    Unitree's robots are in domain 0. Messages of ROS 2 programs there reach the programs that keep
    a robot balanced.
    """
    wire = wire_of(url)
    if wire.is_bus:
        own = read_url(split_url(url)).domain
        if own == domain:
            raise BadRequestError(
                f"domain {domain} is the robot's own", "Choose another for ROS 2, like 1."
            )
    if domain == 0 and interface != LOOPBACK and not wire.lives_here:
        raise BadRequestError(
            "domain 0 is where Unitree's robots are",
            "Choose another for ROS 2, like 1, and set ROS_DOMAIN_ID to it.",
        )


class RosResult(NamedTuple):
    """The result of a request."""

    asked: str
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
        """`on_result` is called with the result of each request."""
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
        self._beginning = False
        self._stops = 0
        """Number of stops requested."""
        self._commander: object = None
        self._commanded_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
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
        for name, kind, receive in (
            ("/rote/joint_trajectory", kinds.TRAJECTORY, self._on_trajectory),
            ("/rote/play", TEXT, self._on_play),
            ("/rote/stop", kinds.EMPTY, self._on_stop),
        ):
            self._bus.reader_from(topic_of(name), kind, receive, depth=10)
        for name, (request, reply), serve in (
            ("/rote/list", kinds.TRIGGER, self._serve_list),
            ("/rote/play", kinds.NAMED, self._serve_play),
            ("/rote/stop", kinds.TRIGGER, self._serve_stop),
        ):
            request_topic, reply_topic = service_topics(name)
            outlet = self._bus.writer(reply_topic, reply, depth=10)
            receive = partial(self._serve_request, name, outlet.write, serve)
            self._bus.reader_from(request_topic, request, receive, depth=10)

    def open(self) -> None:
        """Start publishing."""
        self._publish_description()
        self._remove_listener = self.robot.on_state(self._on_state)
        self._spawn(self._publish_diagnostics())
        self._spawn(self._refresh_findings())

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
        if not state.joints_told:
            return
        if self.robot.build is not self._build:
            self._publish_description()
        stamp_ns = self._clock.stamp_ns(state, self._now_ns())
        packed = self._encoder.encode(stamp_ns, state.joints_rad, state.velocities_rad_s)
        try:
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

    async def _publish_diagnostics(self) -> None:
        while True:
            lines = diagnostics_of(self.robot, self.robot.state, self._findings)
            try:
                self._diagnostics.write(ros.encode_diagnostics(self._now_ns(), lines))
            except LinkError:
                self.dropped += 1
            await asyncio.sleep(_DIAGNOSTICS_S)

    async def _refresh_findings(self) -> None:
        """Run the preflight periodically; each run sends requests to the robot."""
        while True:
            try:
                self._findings = await self.robot.preflight()
            except (RoteError, TimeoutError):
                self._findings = []
            await asyncio.sleep(_FINDINGS_S)

    # ---- requests -------------------------------------------------------------------------------

    def _on_trajectory(self, data: bytes, sender: object) -> None:
        def read() -> Track:
            trajectory = ros.decode_trajectory(data)
            return track_of(trajectory, self.robot.build, self.robot.state)

        self._spawn(
            self._carry_out("/rote/joint_trajectory", partial(self._play_track, sender, read))
        )

    def _on_play(self, data: bytes, sender: object) -> None:
        self._spawn(self._carry_out("/rote/play", partial(self._play_named, sender, data)))

    def _on_stop(self, _: bytes, __: object) -> None:
        self._spawn(self._carry_out("/rote/stop", self._stop_robot))

    def _serve_request(
        self,
        name: str,
        answer: Callable[[bytes], None],
        serve: Callable[[bytes, object], Awaitable[str]],
        data: bytes,
        sender: object,
    ) -> None:
        """Answer one request of a service."""
        try:
            header, rest = ros.decode_request(data)
        except DecodeError:
            return  # the client to answer is unknown

        async def reply() -> None:
            result = await self._run_request(name, partial(serve, rest, sender))
            encoded = ros.encode_reply(header, success=result.success, message=result.message)
            try:
                answer(encoded)
            except LinkError:
                self.dropped += 1

        self._spawn(reply())

    async def _serve_list(self, _: bytes, __: object) -> str:
        actions = (await self.robot.actions()).taught if "list" in self.robot.abilities else ()
        entries = await asyncio.to_thread(self._library.list)
        return json.dumps(
            {
                "takes": [each.name for each in entries if not each.problem],
                "actions": [each.name for each in actions],
            }
        )

    async def _serve_play(self, data: bytes, sender: object) -> str:
        return await self._play_named(sender, data)

    async def _serve_stop(self, _: bytes, __: object) -> str:
        return await self._stop_robot()

    async def _play_named(self, sender: object, data: bytes) -> str:
        name = ros.decode_string(data)
        return await self._play_track(sender, partial(self._library.load, name))

    async def _play_track(self, sender: object, read: Callable[[], Track]) -> str:
        """Begin a motion; objections are raised before anything moves."""
        self._claim_command(sender)
        self._beginning, stops = True, self._stops
        try:
            track = await asyncio.to_thread(read)
            if self._stops != stops:
                raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))
            playing = self.robot.play_track(track)
            await playing.started()
        finally:
            self._beginning = False
        self._playing = playing
        self._spawn(self._report_end(playing))
        return f"{track.source or 'the motion'} begins: {track.duration_s:.2f} s"

    def _claim_command(self, sender: object) -> None:
        """Give a node the command, or raise `BadRequestError` if another node or motion has it."""
        now_s = self._loop.time()
        other = self._commander not in {None, sender}
        if self._beginning or self._playing is not None:
            raise BadRequestError("a motion is going on", "Wait for its end, or stop it.")
        if other and now_s - self._commanded_s < COMMAND_S:
            raise BadRequestError(
                "another node commands", f"Wait until it has been silent for {COMMAND_S:g} s."
            )
        self._commander, self._commanded_s = sender, now_s

    async def _report_end(self, playing: Playing) -> None:
        """Wait for the end of a motion, and publish its result."""
        try:
            report = await playing.wait()
            done = "completed" if report.completed else f"stopped before its end: {report.reason}"
            self._publish_result(RosResult("motion", report.completed, done))
        except (RoteError, TimeoutError) as error:
            self._publish_result(RosResult("motion", False, str(error)))
        finally:
            self._playing, self._commanded_s = None, self._loop.time()

    async def _stop_robot(self) -> str:
        self._stops += 1
        await self.robot.stop()
        return "stopped"

    async def _carry_out(self, name: str, work: Callable[[], Awaitable[str]]) -> None:
        await self._run_request(name, work)

    async def _run_request(self, name: str, work: Callable[[], Awaitable[str]]) -> RosResult:
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

    def _spawn(self, work: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
