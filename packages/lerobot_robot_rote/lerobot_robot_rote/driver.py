"""What LeRobot asks of a robot, answered by rote in blocking calls.

Nothing here imports LeRobot, so that it is tested where that is not installed.
"""

import asyncio
import math
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from rote.blocking import LoopThread
from rote.connection import open as open_robot
from rote.errors import (
    BadRequestError,
    NoAnswerError,
    NotBegunError,
    RefusedError,
    RoteError,
    TimeLimitError,
)
from rote.messages import Code
from rote.model import registry
from rote.model.family import MAX_MOTION_S, MOVED_RAD, Build
from rote.motion.files.lerobot import driver_name, joint_named
from rote.robot.following import Following
from rote.robot.message_robot import MessageRobot
from rote.transport.link import parse_url_options, split_url
from rote.transport.wires import unsupported, wire_of, wires_with

_STATE_S = 10.0
_END_S = 60.0
_SAME_RAD = 1e-3
"""An action of a hand is where the arms are: so near to it, but for rounding."""


class Driver:
    """One robot: where its joints are, poses that it follows, and arms that a person leads.

    Joints have LeRobot's names of a G1's: `kLeftElbow.q`, in rad.
    """

    def __init__(self, url: str, *, contact: bool = True, rate_hz: float = 250.0) -> None:
        """Arguments are those of `RoteRobotConfig`. Nothing is connected yet.

        Raises `UnsupportedError` for a wire that cannot stream poses: LeRobot begins a dataset
        before it connects, and would leave an empty one behind.
        """
        _check_wire(url)
        self._url = url
        self._contact, self._rate_hz = contact, rate_hz
        self._build = _build_of(url)
        self._thread: LoopThread | None = None
        self._robot: MessageRobot | None = None
        self._following: Following | None = None
        self._hand: _Hand | None = None
        self._led: dict[str, float] = {}
        self._still: dict[str, float] = {}

    @property
    def observed(self) -> tuple[str, ...]:
        """The joints that are told: all."""
        return tuple(map(driver_name, self._build.names))

    @property
    def played(self) -> tuple[str, ...]:
        """The joints that follow actions: arms and waist yaw."""
        return tuple(map(driver_name, self._build.taught))

    # ---- connecting -----------------------------------------------------------------------------

    @property
    def connected(self) -> bool:
        """Whether there is a connection."""
        return self._robot is not None

    def open(self) -> None:
        """Connect, and wait for the first report. Nothing moves yet.

        Raises `BadRequestError` for a robot that is not the build that its URL names.
        """
        if self._robot is not None:
            raise RuntimeError("the robot is connected already")
        self._thread = LoopThread()
        try:
            self._robot = self._thread.run(self._opened())
        finally:
            if self._robot is None:
                self._thread.stop()

    async def _opened(self) -> MessageRobot:
        robot = await open_robot(self._url, family="g1")
        try:
            await _first_joints(robot)
            if robot.build.bare is not self._build:
                raise BadRequestError(
                    f"the robot is a {robot.build.name}, and was taken for a {self._build.name}",
                    f"Name its build in the URL: ?build={robot.build.bare.name}",
                )
        except BaseException:
            await robot.close()
            raise
        return robot

    def close(self) -> None:
        """Let the arms hold, or return softly to rest, then close the connection."""
        if self._robot is None or self._thread is None:
            return
        try:
            self.harden()
            self._end_following()
        finally:
            robot, self._robot = self._robot, None
            try:
                self._thread.run(robot.close())
            finally:
                self._thread.stop()

    def _end_following(self) -> None:
        robot, thread = self._connected()
        following, self._following = self._following, None
        if following is None or following.done:
            return
        following.end()
        try:
            thread.run(_to_the_end(following))
        except NotBegunError:
            pass  # no action led anywhere, and the robot was told to stop
        except RoteError:
            thread.run(robot.stop())
            raise

    def _connected(self) -> tuple[MessageRobot, LoopThread]:
        if self._robot is None or self._thread is None:
            raise RuntimeError("the robot is not connected")
        return self._robot, self._thread

    # ---- a person leads the arms ----------------------------------------------------------------

    @property
    def soft(self) -> bool:
        """Whether a person leads the arms."""
        return self._hand is not None

    def soften(self, name: str, script: str = "", script_s: float = 6.0) -> None:
        """Make the arms soft, until `harden`.

        The robot records meanwhile under `name`, and discards that in the end. `script` is the
        scripted hand of a simulated robot, which leads the arms again and again.
        """
        robot, thread = self._connected()
        if self._hand is not None:
            raise RuntimeError("the arms are soft already")
        self._end_following()
        self._hand = thread.run(_Hand.begun(robot, name, script, script_s))

    def harden(self) -> None:
        """Let the arms hold again; after a few seconds the robot itself brings them to rest."""
        hand, self._hand = self._hand, None
        if hand is not None and self._thread is not None:
            self._thread.run(hand.end())

    def led(self) -> dict[str, float]:
        """Return where a person has led the arms to, in rad by joint.

        Raises what ended the teaching, if the arms are not soft any more.
        """
        if self._hand is None:
            raise RuntimeError("nobody leads the arms")
        self._hand.check()
        here, played = self.positions(), set(self.played)
        self._led = {joint: value for joint, value in here.items() if joint in played}
        return dict(self._led)

    # ---- observing and moving -------------------------------------------------------------------

    def positions(self) -> dict[str, float]:
        """Return where the joints are, in rad by joint."""
        robot, _ = self._connected()
        state = robot.state
        joints_rad = () if state is None else state.joints_rad
        return dict(zip(self.observed, map(float, joints_rad), strict=False))

    def aim(self, action: Mapping[str, Any]) -> dict[str, float]:
        """Go towards a pose; return what is followed.

        Raises `BadRequestError` for a key that is not a joint, a joint of legs or waist that should
        move, and for arms that a person leads to another pose; `UnsafeMotionError` for a pose that
        is not safe: then the arms hold. After a STOP it raises `RefusedError` until it is opened
        again.
        """
        robot, thread = self._connected()
        pose = self._by_joint(action)
        played = {joint: value for joint, value in pose.items() if joint in self._build.taught}
        wanted = {driver_name(joint): value for joint, value in played.items()}
        if self._hand is not None:
            self._hand.check()
            self._check_led(wanted)
            return wanted
        self._check_still({j: v for j, v in pose.items() if j not in played})
        if self._following is not None and self._following.done:
            self._check_not_stopped(self._following)
            self._following = None
        if self._following is None:
            follow = robot.follow(rate_hz=self._rate_hz, contact=self._contact)
            self._following = thread.run(follow)
        self._following.aim(played)
        return wanted

    def _check_not_stopped(self, following: Following) -> None:
        """Raise what ended it, unless the arms are at rest because no action came for a while.

        A policy goes on after a STOP: it must not undo it with its next action.
        """
        _, thread = self._connected()
        if not thread.run(following.wait()).completed:
            raise RefusedError(
                Code.SUPERSEDED,
                "the robot was stopped, and no action is followed any more",
                "See that all is well, then connect again.",
            )

    def _by_joint(self, action: Mapping[str, Any]) -> dict[str, float]:
        pose: dict[str, float] = {}
        for key, value in action.items():
            joint = joint_named(key)
            if joint is None or joint not in self._build.names:
                raise BadRequestError(f"{key!r} is not a joint of {self._build.name}")
            pose[joint] = float(value)
            if not math.isfinite(pose[joint]):
                raise BadRequestError(f"{key!r} is not a number")
        return pose

    def _check_led(self, wanted: dict[str, float]) -> None:
        """Refuse to follow anything but the hand: nobody expects soft arms to move."""
        for joint, value in wanted.items():
            if joint not in self._led or not abs(value - self._led[joint]) <= _SAME_RAD:
                raise BadRequestError(
                    f"the arms are soft and led by hand, and {joint} should go to {value:.3f} rad",
                    "Leave out --teleop.type=rote_hand where something else leads them.",
                )

    def _check_still(self, others: dict[str, float]) -> None:
        """Refuse to lead joints that the balance controller has."""
        for joint, value in others.items():
            if abs(value - self._still.setdefault(joint, value)) > MOVED_RAD:
                raise BadRequestError(
                    f"{joint} should move, and only arms and waist yaw are played",
                    "Import the dataset with --upper-body, and write it again.",
                )


class _Hand:
    """Arms that are soft, on the loop of the connection."""

    def __init__(self, robot: MessageRobot) -> None:
        self._robot = robot
        self._soft, self._enough = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @classmethod
    async def begun(cls, robot: MessageRobot, name: str, script: str, script_s: float) -> "_Hand":
        """Return it once the arms are soft; raise why they are not."""
        hand = cls(robot)
        hand._task = asyncio.create_task(hand._lead(name, script, script_s))
        soft = asyncio.create_task(hand._soft.wait())
        try:
            await asyncio.wait({hand._task, soft}, return_when=asyncio.FIRST_COMPLETED)
            if hand._task.done():
                hand._task.result()
        except asyncio.CancelledError:  # Ctrl-C: not before the arms hold again
            await hand.end()
            raise
        finally:
            soft.cancel()
        return hand

    async def _lead(self, name: str, script: str, script_s: float) -> None:
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with self._robot.teach(name) as take:
                take.discard()  # LeRobot keeps it
                if script:
                    await self._robot.move_by_hand(script, script_s)
                self._soft.set()
                while not await self._ends_within(script_s if script else None):
                    await self._robot.move_by_hand(script, script_s)
        except RefusedError as error:
            if error.code != Code.NOT_TEACHING or loop.time() - began_s < MAX_MOTION_S - 1.0:
                raise
            raise TimeLimitError(
                f"the arms were soft for {MAX_MOTION_S:.0f} s, as long as the robot allows at once",
                "Episodes that were complete are saved; record more with --resume=true.",
            ) from error

    async def _ends_within(self, seconds: float | None) -> bool:
        try:
            async with asyncio.timeout(seconds):
                await self._enough.wait()
        except TimeoutError:
            return False
        return True

    def check(self) -> None:
        """Raise what ended it. Safe to call from any thread."""
        if self._task is not None and self._task.done():
            self._task.result()

    async def end(self) -> None:
        """Let the arms hold; what ended them before was raised by `check`."""
        self._enough.set()
        if self._task is not None:
            told = self._task.done()
            await asyncio.wait({self._task})
            if not told:
                self._task.result()


async def _first_joints(robot: MessageRobot) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(_STATE_S):
            async for state in robot.states():
                if state.has_joints and state.joints_rad:
                    return
    raise NoAnswerError(
        "the robot does not tell where its joints are, so there is nothing to observe",
        "See why it is silent: rote doctor.",
    )


async def _to_the_end(following: Following) -> None:
    async with asyncio.timeout(_END_S):
        await following.wait()


def _build_of(url: str) -> Build:
    """Return the build that a URL names: LeRobot asks for the joints before it connects."""
    parts = split_url(url)
    named = parse_url_options(parts.query)[1]
    if named is None and wire_of(url).in_process:
        named = registry.find_build(parts.netloc)
    return (named or registry.build_named("g1-29")).bare


def _check_wire(url: str) -> None:
    """Raise `UnsupportedError` for a wire on which no robot takes poses one by one."""
    wire = wire_of(url)
    if f"{wire.scheme}://" not in wires_with("stream"):
        raise unsupported(
            "stream poses, and LeRobot's actions come one by one",
            wire.scheme,
            "stream",
            "Connect by dds://, udp:// or sim:// instead. Or teach by rote teach, which works over "
            f"{wire.scheme}:// too, and write a dataset by rote motion lerobot.",
        )
