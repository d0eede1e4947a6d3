"""A robot as LeRobot knows it, on top of a connection of rote."""

import asyncio
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from lerobot.robots.robot import Robot

from lerobot_robot_rote.config_rote_robot import RoteRobotConfig
from rote.connection import open as open_robot
from rote.errors import BadRequestError, NotBegunError, RoteError
from rote.model import registry
from rote.model.family import MOVED_RAD
from rote.motion.files.exchange.lerobot_names import driver_name, joint_named
from rote.robot.following import Following
from rote.robot.message_robot import MessageRobot

T = TypeVar("T")

_STATE_S = 10.0
_END_S = 60.0


class RoteRobot(Robot):
    """A Unitree robot through rote. Actions and observations have LeRobot's names of a G1's joints:
    `kLeftElbow.q`, in rad.
    """

    config_class = RoteRobotConfig
    name = "rote"

    def __init__(self, config: RoteRobotConfig) -> None:
        super().__init__(config)
        self.config = config
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._robot: MessageRobot | None = None
        self._following: Following | None = None
        self._still: dict[str, float] = {}

    # ---- what it has ----------------------------------------------------------------------------

    @property
    def observation_features(self) -> dict[str, type]:
        """Where every joint is."""
        return dict.fromkeys(map(driver_name, self._build().names), float)

    @property
    def action_features(self) -> dict[str, type]:
        """The joints that are played: arms and waist yaw."""
        return dict.fromkeys(map(driver_name, self._build().taught), float)

    def _build(self) -> Any:
        return registry.build_named("g1-29") if self._robot is None else self._robot.build.bare

    # ---- connecting -----------------------------------------------------------------------------

    @property
    def is_connected(self) -> bool:
        """Whether there is a connection."""
        return self._robot is not None

    @property
    def is_calibrated(self) -> bool:
        """Always: the robot knows its own zero."""
        return True

    def calibrate(self) -> None:
        """Do nothing: the robot knows its own zero."""

    def configure(self) -> None:
        """Do nothing: the robot's own controller keeps it on its feet."""

    def connect(self, calibrate: bool = True) -> None:
        """Connect, and wait for the first report. Nothing moves yet."""
        if self._robot is not None:
            raise RuntimeError("the robot is connected already")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rote", daemon=True)
        self._thread.start()
        try:
            robot = self._do(open_robot(self.config.url))
            if not isinstance(robot, MessageRobot) or "stream" not in robot.abilities:
                self._do(robot.close())
                raise BadRequestError(
                    f"{self.config.url} takes no poses one by one",
                    "sim://, udp:// and dds:// do; over webrtc:// play takes with rote play.",
                )
            self._robot = robot
            self._do(self._first_state(robot))
        except BaseException:
            self._robot = None
            self._end_thread()
            raise

    @staticmethod
    async def _first_state(robot: MessageRobot) -> None:
        async with asyncio.timeout(_STATE_S):
            async for state in robot.states():
                if state.joints_rad:
                    return

    def disconnect(self) -> None:
        """Let the arms return softly to rest, then close the connection."""
        if self._robot is None:
            return
        try:
            self._end_following()
        finally:
            robot, self._robot = self._robot, None
            try:
                self._do(robot.close())
            finally:
                self._end_thread()

    def _end_following(self) -> None:
        following, self._following = self._following, None
        if following is not None and not following.done:
            following.end()
            try:
                self._do(following.wait(), _END_S)
            except NotBegunError:
                pass  # no action led anywhere, and the robot was told to stop
            except RoteError:
                assert self._robot is not None
                self._do(self._robot.stop())
                raise

    def _end_thread(self) -> None:
        if self._loop is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
        self._loop = self._thread = None

    def _do(self, what: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(what, self._loop).result(timeout_s)

    # ---- moving ---------------------------------------------------------------------------------

    def get_observation(self) -> dict[str, Any]:
        """Return where the joints are, in rad."""
        robot = self._connected()
        state = robot.state
        if state is None:
            return {}
        names = robot.build.bare.names
        return dict(zip(map(driver_name, names), map(float, state.joints_rad), strict=False))

    def send_action(self, action: dict[str, Any]) -> dict[str, Any]:
        """Go towards a pose; return what is followed.

        Raises `BadRequestError` for a key that is no joint, or a joint of legs or waist that should
        move, and `UnsafeMotionError` for a pose that is not safe: then the arms hold.
        """
        robot = self._connected()
        pose: dict[str, float] = {}
        for key, value in action.items():
            joint = joint_named(key)
            if joint is None or joint not in robot.build.names:
                raise BadRequestError(f"{key!r} is no joint of {robot.build.name}")
            pose[joint] = float(value)
        played = {joint: value for joint, value in pose.items() if joint in robot.build.taught}
        self._check_still({j: v for j, v in pose.items() if j not in played})
        if self._following is None or self._following.done:
            self._following = self._do(
                robot.follow(rate_hz=self.config.rate_hz, contact=self.config.contact)
            )
        self._following.aim(played)
        return {driver_name(joint): value for joint, value in played.items()}

    def _check_still(self, others: dict[str, float]) -> None:
        """Refuse to lead joints that the balance controller has."""
        for joint, value in others.items():
            if abs(value - self._still.setdefault(joint, value)) > MOVED_RAD:
                raise BadRequestError(
                    f"{joint} should move, and only arms and waist yaw are played",
                    "Import the data set with --upper-body, and write it again.",
                )

    def _connected(self) -> MessageRobot:
        if self._robot is None:
            raise RuntimeError("the robot is not connected")
        return self._robot
