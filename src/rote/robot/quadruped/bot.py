"""Bot: a queue of instructions for a walking robot, carried out one after the other.

    bot = Bot(robot).walk(2.0).turn(math.pi / 2).walk(1.0).pose(pitch_rad=0.2).wait(1.0)
    report = await bot.execute()

An instruction ends when the robot's own state shows that it is done, and fails with
`TimeLimitError` if that takes too long. `stop`, of the bot or of the robot, interrupts everything
and leaves the robot standing; a protection that trips or a lost robot raises an error.
"""

import asyncio
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from rote.errors import BadRequestError, RoteError, TimeLimitError, UnsupportedError
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped.commands import STANDING_HEIGHT_M, is_down
from rote.robot.quadruped.robot import A1
from rote.session.a1 import Level
from rote.text import Act, Text
from rote.wire.a1.values import HighState

Predicate = Callable[[HighState], bool]

MAX_DISTANCE_M, MAX_ANGLE_RAD, MAX_WAIT_S = 50.0, 4.0 * math.pi, 600.0
SPEED_M_S, SPEED_RAD_S = 0.4, 0.8
NEAR_M, NEAR_RAD = 0.01, 0.01
"""An instruction is done this near to its target, once the robot stands."""
STANDS_M_S, STANDS_RAD_S = 0.03, 0.05
"""A robot that is slower than this stands."""
_GAIN, _HEADING_GAIN = 1.5, 1.0
"""Commanded speed per remaining distance, and turning speed per heading error, in 1/s."""
_MAX_HEADING_RAD_S = 0.3
"""The highest turning speed to correct the heading during a walk."""
_MIN_M_S, _MIN_RAD_S = 0.04, 0.08
"""Below these speeds, the legs hardly step."""
_POSE_TOLERANCE_RAD = 0.03
_LYING_HEIGHT_M = 0.15
"""A body lower than this is lying."""
_MIN_RISE_M, _RISEN_AFTER_S = 0.003, 0.2
"""A body that has risen by less than this for this long has finished getting up."""
_EXTRA_TIME_S = 5.0
"""Seconds that the time limit of an instruction allows beyond the planned duration."""


class Instruction(Protocol):
    """One instruction of a queue."""

    label: str
    limit_s: float

    def begin(self, state: HighState, now: float) -> None:
        """Remember the state at the beginning."""

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        """Send the next command to the robot; return whether the instruction is done."""


@dataclass(frozen=True, slots=True)
class InstructionDone:
    """An instruction that was carried out."""

    label: str
    seconds: float


@dataclass(frozen=True, slots=True)
class BotReport:
    """The result of a queue."""

    done: tuple[InstructionDone, ...]
    left: tuple[str, ...]
    """Labels of the instructions that were not carried out, because the robot was stopped."""

    @property
    def completed(self) -> bool:
        """Whether all instructions were carried out."""
        return not self.left


class Bot:
    """A queue of instructions for one robot, connected at its high level.

    Every instruction returns the bot, so that calls can be chained. `limit_s` is the time limit of
    an instruction in seconds. A number out of range raises `BadRequestError` at once.
    """

    def __init__(self, robot: A1) -> None:
        if robot.level is not Level.HIGH:
            raise UnsupportedError("walk", "a1:// at the low level", ("a1://...?level=high",))
        self._robot = robot
        self._queue: list[Instruction] = []
        self._is_running = False
        self._is_stopped = False
        self._state_arrived = asyncio.Event()

    def __len__(self) -> int:
        return len(self._queue)

    # ---- instructions ---------------------------------------------------------------------------

    def walk(
        self,
        forward_m: float,
        left_m: float = 0.0,
        *,
        speed_m_s: float = SPEED_M_S,
        limit_s: float | None = None,
    ) -> "Bot":
        """Walk a distance in metres: forward, or back if negative; `left_m` to the left at the same
        time.
        """
        distance_m = math.hypot(forward_m, left_m)
        if not distance_m <= MAX_DISTANCE_M:
            raise BadRequestError(
                f"a walk of {forward_m} m and {left_m} m to the left is out of range",
                f"Choose at most {MAX_DISTANCE_M:g} m.",
            )
        # The lowest limit of all directions that the walk may have.
        max_m_s = a1_commands.SIDEWAYS_M_S if left_m else a1_commands.BACKWARD_M_S
        _check_positive(speed_m_s, max_m_s, "a speed", "m/s")
        return self._enqueue(_Walk(forward_m, left_m, speed_m_s), limit_s)

    def turn(
        self, angle_rad: float, *, speed_rad_s: float = SPEED_RAD_S, limit_s: float | None = None
    ) -> "Bot":
        """Turn on the spot by an angle in rad: to the left, or to the right if negative."""
        if not abs(angle_rad) <= MAX_ANGLE_RAD:
            raise BadRequestError(
                f"a turn of {angle_rad} rad is out of range", "Choose at most two full turns."
            )
        _check_positive(speed_rad_s, a1_commands.TURN_RAD_S, "a turning speed", "rad/s")
        return self._enqueue(_Turn(angle_rad, speed_rad_s), limit_s)

    def pose(
        self,
        *,
        roll_rad: float = 0.0,
        pitch_rad: float = 0.0,
        yaw_rad: float = 0.0,
        body_height_m: float = 0.0,
        limit_s: float | None = None,
    ) -> "Bot":
        """Stand with the body turned, in rad, or lowered, in m; done when roll and pitch are
        reached.
        """
        pose = {
            "roll_rad": roll_rad,
            "pitch_rad": pitch_rad,
            "yaw_rad": yaw_rad,
            "body_height_m": body_height_m,
        }
        a1_commands.check_ranges(**pose)
        return self._enqueue(_Pose(pose), limit_s)

    def stand(self, *, limit_s: float | None = None) -> "Bot":
        """Stand upright and still; a lying robot gets up first."""
        return self._enqueue(_Stand(), limit_s)

    def lie_down(self, *, limit_s: float | None = None) -> "Bot":
        """Lie down. Dialect 3.2 cannot."""
        return self._enqueue(_LieDown(), limit_s)

    def wait(self, seconds: float) -> "Bot":
        """Wait for `seconds` before the next instruction."""
        _check_positive(seconds, MAX_WAIT_S, "a wait", "s")
        return self._enqueue(_Wait(seconds), seconds + _EXTRA_TIME_S)

    def until(self, predicate: Predicate, *, limit_s: float, label: str = "a condition") -> "Bot":
        """Continue what the robot does until `predicate(state)` is true."""
        if not callable(predicate):
            raise TypeError(f"a predicate is a function, not {type(predicate).__name__}")
        return self._enqueue(_Until(predicate, label), limit_s)

    def go(
        self,
        predicate: Predicate,
        *,
        forward_m_s: float = 0.0,
        left_m_s: float = 0.0,
        turn_rad_s: float = 0.0,
        limit_s: float,
    ) -> "Bot":
        """Walk at this speed until `predicate(state)` is true, then stand."""
        a1_commands.check_ranges(forward_m_s=forward_m_s, left_m_s=left_m_s, turn_rad_s=turn_rad_s)
        velocity = (forward_m_s, left_m_s, turn_rad_s)
        return self._enqueue(_Until(predicate, "a walk until a condition", velocity), limit_s)

    def _enqueue(self, instruction: Instruction, limit_s: float | None) -> "Bot":
        if self._is_running:
            raise BadRequestError("the bot is carrying out its queue", "Wait for its end.")
        if limit_s is not None:
            _check_positive(limit_s, 3600.0, "a time limit", "s")
            instruction.limit_s = limit_s
        self._queue.append(instruction)
        return self

    # ---- carrying them out ----------------------------------------------------------------------

    async def stop(self) -> None:
        """Interrupt the queue; the robot stands. Always allowed."""
        self._on_stop()
        await self._robot.stop()

    async def execute(self) -> BotReport:
        """Carry out the queue, which is empty afterwards, and leave the robot standing.

        Return what was done and what was left. Raises `TimeLimitError` if an instruction takes too
        long, `ProtectionError` if a protection tripped, and `LinkError` if the robot was lost.
        """
        if self._is_running:
            raise BadRequestError("the bot is carrying out its queue already")
        queue, self._queue = self._queue, []
        self._is_running = True
        self._is_stopped = False
        listener_removers = (
            self._robot.on_stop(self._on_stop),
            self._robot.on_native_state(lambda _: self._state_arrived.set()),
        )
        done: list[InstructionDone] = []
        try:
            for index, instruction in enumerate(queue):
                took_s = await self._carry_out(instruction)
                if took_s is None:
                    return BotReport(tuple(done), tuple(each.label for each in queue[index:]))
                done.append(InstructionDone(instruction.label, took_s))
            return BotReport(tuple(done), ())
        finally:
            for remove_listener in listener_removers:
                remove_listener()
            self._is_running = False
            if self._robot.trouble is None:
                await self._robot.stop()

    async def _carry_out(self, instruction: Instruction) -> float | None:
        """Carry out one instruction; return how long it took in seconds, None if it was stopped."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            instruction.begin(self._get_state(), began)
            async with asyncio.timeout(instruction.limit_s):
                while not self._is_halted():
                    if instruction.step(self._get_state(), loop.time(), self._robot):
                        return loop.time() - began
                    self._state_arrived.clear()
                    await self._state_arrived.wait()
        except TimeoutError as error:
            if isinstance(error, RoteError):  # not the time limit above
                raise
            raise TimeLimitError(
                f"{instruction.label} did not finish within {instruction.limit_s:.1f} s",
                "Check what blocks the robot, or set a longer time limit.",
            ) from None
        return None

    def _on_stop(self) -> None:
        self._is_stopped = True
        self._state_arrived.set()

    def _is_halted(self) -> bool:
        """Return whether the queue was stopped; raise the robot's trouble if there is one."""
        if self._robot.trouble is not None:
            raise self._robot.trouble
        return self._is_stopped

    def _get_state(self) -> HighState:
        state = self._robot.native
        assert isinstance(state, HighState)
        return state


def _check_positive(value: float, maximum: float, what: str, unit: str) -> None:
    if not 0.0 < value <= maximum:  # NaN fails this comparison too
        raise BadRequestError(
            f"{what} of {value} {unit} is out of range", f"Choose up to {maximum:g} {unit}."
        )


def _check_on_feet(state: HighState, label: str) -> None:
    """Raise `BadRequestError` if the robot is not on its feet; `label` is the instruction."""
    if is_down(state):
        posture = "it lies" if state.mode == a1_commands.HighMode.LIE_DOWN else "its legs are soft"
        raise BadRequestError(
            f"{label} is not possible: {posture}",
            Text("Make it get up first: {get_up}.", get_up=Act.GET_UP),
        )


def _format_distance(forward_m: float, left_m: float) -> str:
    """Return a distance as text: 0.30 m back, 0.20 m to the left."""
    parts = []
    if forward_m or not left_m:
        parts.append(f"{abs(forward_m):.2f} m{' back' if forward_m < 0 else ''}")
    if left_m:
        parts.append(f"{abs(left_m):.2f} m to the {'left' if left_m > 0 else 'right'}")
    return " and ".join(parts)


def _format_pose_part(name: str, value: float) -> str:
    if name.endswith("_rad"):
        return f"{name.removesuffix('_rad')} {math.degrees(value):.3g} degrees"
    return f"height {value:+.3g} m"


def _compute_speed(remaining: float, gain: float, lowest: float, highest: float) -> float:
    """Return a signed speed that decreases with the remaining distance, within the limits."""
    return math.copysign(min(max(gain * abs(remaining), lowest), highest), remaining)


class _Walk:
    """Walks a distance; done when the robot stands at its end."""

    def __init__(self, forward_m: float, left_m: float, speed_m_s: float) -> None:
        self._distance_m = math.hypot(forward_m, left_m)
        angle_rad = math.atan2(left_m, forward_m)
        self._direction = (math.cos(angle_rad), math.sin(angle_rad))
        self._max_m_s = speed_m_s
        self._start_m = (0.0, 0.0)
        self._start_yaw_rad = 0.0
        self.label = f"a walk of {_format_distance(forward_m, left_m)}"
        self.limit_s = 2.0 * self._distance_m / speed_m_s + _EXTRA_TIME_S

    def begin(self, state: HighState, now: float) -> None:
        _check_on_feet(state, self.label)
        self._start_m = (state.position_m[0], state.position_m[1])
        self._start_yaw_rad = state.imu.rpy_rad[2]

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        # Only the distance counts: the coordinate frame of an older A1's position is unknown.
        walked_m = math.dist(state.position_m[:2], self._start_m)
        remaining_m = self._distance_m - walked_m
        speed = math.hypot(*state.velocity_m_s[:2])
        if abs(remaining_m) < NEAR_M:
            robot.modes.stand()
            return speed < STANDS_M_S and abs(state.yaw_speed_rad_s) < STANDS_RAD_S
        pace_m_s = _compute_speed(remaining_m, _GAIN, _MIN_M_S, self._max_m_s)
        yaw_error_rad = math.remainder(self._start_yaw_rad - state.imu.rpy_rad[2], math.tau)
        turn_rad_s = _HEADING_GAIN * yaw_error_rad
        turn_rad_s = min(max(turn_rad_s, -_MAX_HEADING_RAD_S), _MAX_HEADING_RAD_S)
        robot.walk(pace_m_s * self._direction[0], pace_m_s * self._direction[1], turn_rad_s)
        return False


class _Turn:
    """Turns by an angle; done when the robot has stopped turning at its end."""

    def __init__(self, angle_rad: float, speed_rad_s: float) -> None:
        self._remaining_rad = angle_rad
        self._max_rad_s = speed_rad_s
        self._last_yaw_rad = 0.0
        self.label = f"a turn of {math.degrees(angle_rad):.0f} degrees"
        self.limit_s = 2.0 * abs(angle_rad) / speed_rad_s + _EXTRA_TIME_S

    def begin(self, state: HighState, now: float) -> None:
        _check_on_feet(state, self.label)
        self._last_yaw_rad = state.imu.rpy_rad[2]

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        yaw_rad = state.imu.rpy_rad[2]
        # The yaw jumps by a full turn at half a turn, so only its change is counted.
        self._remaining_rad -= math.remainder(yaw_rad - self._last_yaw_rad, math.tau)
        self._last_yaw_rad = yaw_rad
        if abs(self._remaining_rad) < NEAR_RAD:
            robot.modes.stand()
            return abs(state.yaw_speed_rad_s) < STANDS_RAD_S
        turn_rad_s = _compute_speed(self._remaining_rad, 2.0 * _GAIN, _MIN_RAD_S, self._max_rad_s)
        robot.walk(turn_rad_s=turn_rad_s)
        return False


class _Pose:
    """Poses the body; done when it is in the pose and still."""

    limit_s = _EXTRA_TIME_S

    def __init__(self, pose: dict[str, float]) -> None:
        self._pose = pose
        parts = ", ".join(_format_pose_part(name, value) for name, value in pose.items() if value)
        self.label = f"a pose with {parts}" if parts else "standing"

    def begin(self, state: HighState, now: float) -> None:
        _check_on_feet(state, self.label)

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        robot.pose(**self._pose)
        roll, pitch = state.imu.rpy_rad[:2]
        error_rad = max(
            abs(roll - self._pose.get("roll_rad", 0.0)),
            abs(pitch - self._pose.get("pitch_rad", 0.0)),
        )
        is_still = math.hypot(*state.velocity_m_s[:2]) < STANDS_M_S
        is_turning = abs(state.yaw_speed_rad_s) >= STANDS_RAD_S
        is_posed = error_rad < _POSE_TOLERANCE_RAD and state.mode == a1_commands.HighMode.STAND
        return is_posed and is_still and not is_turning


class _Stand(_Pose):
    """Stands upright. A lying robot gets up first; it stands once its body rises no more."""

    limit_s = 2.0 * _EXTRA_TIME_S

    def __init__(self) -> None:
        super().__init__({})
        self._must_rise = False
        self._highest_m = self._rose_s = -math.inf

    def begin(self, state: HighState, now: float) -> None:
        self._must_rise = is_down(state)

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        if self._must_rise and state.body_height_m <= STANDING_HEIGHT_M:
            robot.modes.rise()
            return False
        if self._must_rise and state.body_height_m > self._highest_m + _MIN_RISE_M:
            self._highest_m, self._rose_s = state.body_height_m, now
        return super().step(state, now, robot) and now > self._rose_s + _RISEN_AFTER_S


class _LieDown:
    """Lies down; done when the body is low or the legs are soft."""

    limit_s = _EXTRA_TIME_S
    label = "lying down"

    def begin(self, state: HighState, now: float) -> None:
        """Do nothing: there is nothing to remember."""

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        if not is_down(state):
            robot.modes.lie_down()
            return False
        return state.mode == a1_commands.HighMode.DAMP or state.body_height_m < _LYING_HEIGHT_M


class _Wait:
    """Lets a time pass."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self.label = f"a wait of {seconds:g} s"
        self.limit_s = seconds + _EXTRA_TIME_S

    def begin(self, state: HighState, now: float) -> None:
        self._until = now + self._seconds

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        return now >= self._until


class _Until:
    """Waits for a condition. With `velocity` (forward, left, turn) it walks until then."""

    limit_s = MAX_WAIT_S

    def __init__(
        self, predicate: Predicate, label: str, velocity: tuple[float, float, float] | None = None
    ) -> None:
        self._predicate = predicate
        self._velocity = velocity
        self.label = label

    def begin(self, state: HighState, now: float) -> None:
        if self._velocity is not None:
            _check_on_feet(state, self.label)

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        if self._predicate(state):
            if self._velocity is not None:
                robot.modes.stand()
            return True
        if self._velocity is not None:
            robot.walk(*self._velocity)
        return False
