"""A robot on ROS 2, without ROS: what it publishes, and what may be asked of it.

Published: `/joint_states` as they come, `/robot_description` for who comes later too,
`/diagnostics`, and `/rote/result`, what became of each request. Asked for by topics, which every
middleware understands: `/rote/joint_trajectory`, `/rote/play`, `/rote/stop`. By services, for
CycloneDDS's middleware: `/rote/list`, `/rote/play`, `/rote/stop`.

Whatever is to move goes through the same checks and the same soft start as everything else. One
node commands at a time, and one motion at a time; a stop is obeyed from anybody.
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
from rote.bridge.ros_names import service, topic
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
"""So long after its last request a node still commands."""
LOOPBACK = "lo"
_DIAGNOSTICS_S = 1.0
_FINDINGS_S = 10.0
# States are filled up to whole doubles: some readers look for the torques, of which there are none,
# where the first one would begin.
_STATES_BLOCKED_MS = 1
"""A node that reads slowly loses states; it holds up nobody."""

MeshUris = Callable[[Build], dict[str, str]]
"""Returns the URI of the mesh of each link that has one."""


def check_domain(url: str, interface: str, domain: int) -> None:
    """Raise `BadRequestError` for a domain in which robots are, or may be.

    Unitree's robots are in domain 0. What ROS 2 programs say there reaches the programs that keep
    a robot on its feet.
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
    """What became of a request."""

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
        told: Callable[[RosResult], None] = lambda _: None,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        """`told` is called with what became of each request."""
        self.robot = robot
        self.states = self.dropped = 0
        """How many states were published, and how many were not, because a node read slowly."""
        self._library = library
        self._mesh_uris = mesh_uris
        self._told = told
        self._now_ns = now_ns
        self._loop = asyncio.get_running_loop()
        self._clock = StateClock()
        self._build: Build | None = None
        self._encoder = Encoder(())
        self._findings: list[Finding] = []
        self._playing: Playing | None = None
        self._beginning = False
        self._stops = 0
        """How many stops were asked for."""
        self._commander: object = None
        self._commanded_s = 0.0
        self._tasks: set[asyncio.Task[None]] = set()
        self._forget: Callable[[], None] | None = None
        self._bus = Bus(target)
        write = self._bus.writer
        self._joints = write(
            topic("/joint_states"), kinds.JOINT_STATE, depth=10, blocked_ms=_STATES_BLOCKED_MS
        )
        self._description = write(topic("/robot_description"), TEXT, latched=True)
        self._diagnostics = write(topic("/diagnostics"), kinds.DIAGNOSTICS, depth=10)
        self._result = write(topic("/rote/result"), TEXT, depth=10)
        self._listen()

    def _listen(self) -> None:
        for name, kind, hear in (
            ("/rote/joint_trajectory", kinds.TRAJECTORY, self._hear_trajectory),
            ("/rote/play", TEXT, self._hear_play),
            ("/rote/stop", kinds.EMPTY, self._hear_stop),
        ):
            self._bus.reader_from(topic(name), kind, hear, depth=10)
        for name, (request, reply), serve in (
            ("/rote/list", kinds.TRIGGER, self._serve_list),
            ("/rote/play", kinds.NAMED, self._serve_play),
            ("/rote/stop", kinds.TRIGGER, self._serve_stop),
        ):
            asked, answered = service(name)
            outlet = self._bus.writer(answered, reply, depth=10)
            hear = partial(self._serve, name, outlet.write, serve)
            self._bus.reader_from(asked, request, hear, depth=10)

    def open(self) -> None:
        """Begin to publish."""
        self._describe()
        self._forget = self.robot.on_state(self._see)
        self._spawn(self._look())
        self._spawn(self._find())

    async def close(self) -> None:
        """Stop what was begun here, and leave the domain. Safe to call twice."""
        if self._forget is not None:
            self._forget()
            self._forget = None
        if self._playing is not None:
            with suppress(RoteError, TimeoutError):  # a robot that is lost keeps nobody here
                await self._playing.stop()
        for task in tuple(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._bus.close()

    # ---- what it publishes ----------------------------------------------------------------------

    def _see(self, state: RobotState) -> None:
        if not state.joints_told:
            return
        if self.robot.build is not self._build:
            self._describe()
        stamp_ns = self._clock.stamp_ns(state, self._now_ns())
        packed = self._encoder.encode(stamp_ns, state.joints_rad, state.velocities_rad_s)
        try:
            self._joints.write(packed + bytes(-(len(packed) - len(HEADER)) % 8))
            self.states += 1
        except LinkError:
            self.dropped += 1

    def _describe(self) -> None:
        """Publish which robot it is; done again when hands are put on, or it turns out another."""
        build = self._build = self.robot.build
        self._encoder = Encoder(build.names)
        uris = self._mesh_uris(build)
        self._description.write(ros.encode_string(urdf(build, uris.keys(), uris.__getitem__)))

    async def _look(self) -> None:
        while True:
            lines = diagnostics_of(self.robot, self.robot.state, self._findings)
            try:
                self._diagnostics.write(ros.encode_diagnostics(self._now_ns(), lines))
            except LinkError:
                self.dropped += 1
            await asyncio.sleep(_DIAGNOSTICS_S)

    async def _find(self) -> None:
        """Look now and then for what a person should know; it costs a question to the robot."""
        while True:
            try:
                self._findings = await self.robot.preflight()
            except (RoteError, TimeoutError):
                self._findings = []
            await asyncio.sleep(_FINDINGS_S)

    # ---- what it is asked for -------------------------------------------------------------------

    def _hear_trajectory(self, data: bytes, sender: object) -> None:
        def read() -> Track:
            trajectory = ros.decode_trajectory(data)
            return track_of(trajectory, self.robot.build, self.robot.state)

        self._spawn(self._tell("/rote/joint_trajectory", partial(self._play, sender, read)))

    def _hear_play(self, data: bytes, sender: object) -> None:
        self._spawn(self._tell("/rote/play", partial(self._play_named, sender, data)))

    def _hear_stop(self, _: bytes, __: object) -> None:
        self._spawn(self._tell("/rote/stop", self._stop))

    def _serve(
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
            return  # nobody is known to answer to

        async def reply() -> None:
            result = await self._done(name, partial(serve, rest, sender))
            told = ros.encode_reply(header, success=result.success, message=result.message)
            try:
                answer(told)
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
        return await self._stop()

    async def _play_named(self, sender: object, data: bytes) -> str:
        name = ros.decode_string(data)
        return await self._play(sender, partial(self._library.load, name))

    async def _play(self, sender: object, read: Callable[[], Track]) -> str:
        """Begin a motion; what speaks against it is said before anything moves."""
        self._claim(sender)
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
        self._spawn(self._follow(playing))
        return f"{track.source or 'the motion'} begins: {track.duration_s:.2f} s"

    def _claim(self, sender: object) -> None:
        """Give a node the command, or raise `BadRequestError` that says who has it."""
        now_s = self._loop.time()
        other = self._commander not in {None, sender}
        if self._beginning or self._playing is not None:
            raise BadRequestError("a motion is going on", "Wait for its end, or stop it.")
        if other and now_s - self._commanded_s < COMMAND_S:
            raise BadRequestError(
                "another node commands", f"Wait until it has been silent for {COMMAND_S:g} s."
            )
        self._commander, self._commanded_s = sender, now_s

    async def _follow(self, playing: Playing) -> None:
        """Wait for the end of a motion, and tell it."""
        try:
            report = await playing.wait()
            done = "completed" if report.completed else f"stopped before its end: {report.reason}"
            self._publish(RosResult("motion", report.completed, done))
        except (RoteError, TimeoutError) as error:
            self._publish(RosResult("motion", False, str(error)))
        finally:
            self._playing, self._commanded_s = None, self._loop.time()

    async def _stop(self) -> str:
        self._stops += 1
        await self.robot.stop()
        return "stopped"

    async def _tell(self, asked: str, work: Callable[[], Awaitable[str]]) -> None:
        await self._done(asked, work)

    async def _done(self, asked: str, work: Callable[[], Awaitable[str]]) -> RosResult:
        try:
            result = RosResult(asked, True, await work())
        except (RoteError, TimeoutError) as error:
            remedy = str(error.remedy) if isinstance(error, RoteError) else ""
            result = RosResult(asked, False, f"{error}. {remedy}".strip())
        self._publish(result)
        return result

    def _publish(self, result: RosResult) -> None:
        self._told(result)
        try:
            self._result.write(ros.encode_string(result.document))
        except LinkError:
            self.dropped += 1

    def _spawn(self, work: "Awaitable[None]") -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
