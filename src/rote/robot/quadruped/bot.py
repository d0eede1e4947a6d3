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
from rote.robot.quadruped.posture import UP_M, is_down
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
_GAIN, _HEADING_GAIN = 1.5, 1.0
_MIN_M_S, _MIN_RAD_S = 0.04, 0.08
"""Below these speeds, the legs hardly step."""
_POSE_RAD = 0.03
_DOWN_M = 0.15
"""A body this low is lying."""
_RISES_M, _RISEN_S = 0.003, 0.2
"""A body that has risen by less than this for this long has finished getting up."""
_SPARE_S = 5.0


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
    """What was not carried out, because the robot was stopped."""

    @property
    def completed(self) -> bool:
        """Whether all was carried out."""
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
        self._runs = False
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
        fastest = a1_commands.ASIDE_M_S if left_m else a1_commands.BACKWARD_M_S
        _check_positive(speed_m_s, fastest, "a speed", "m/s")
        return self._enqueue(_Walk(forward_m, left_m, speed_m_s), limit_s)

    def turn(
        self, angle_rad: float, *, speed_rad_s: float = SPEED_RAD_S, limit_s: float | None = None
    ) -> "Bot":
        """Turn on the spot by an angle in rad: to the left, or to the right if negative."""
        if not abs(angle_rad) <= MAX_ANGLE_RAD:
            raise BadRequestError(
                f"a turn of {angle_rad} rad is out of range", "Choose at most two rounds."
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
        """Stand for a time."""
        _check_positive(seconds, MAX_WAIT_S, "a wait", "s")
        return self._enqueue(_Wait(seconds), seconds + _SPARE_S)

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
        if self._runs:
            raise BadRequestError("the bot is carrying out its queue", "Wait for its end.")
        if limit_s is not None:
            _check_positive(limit_s, 3600.0, "a time limit", "s")
            instruction.limit_s = limit_s
        self._queue.append(instruction)
        return self

    # ---- carrying them out ----------------------------------------------------------------------

    async def stop(self) -> None:
        """Interrupt everything; the robot stands. Always allowed."""
        self._on_stop()
        await self._robot.stop()

    async def execute(self) -> BotReport:
        """Carry out the queue, which is empty afterwards, and leave the robot standing.

        Return what was done and what was left. Raises `TimeLimitError` if an instruction takes too
        long, `ProtectionError` if a protection tripped, and `LinkError` if the robot was lost.
        """
        if self._runs:
            raise BadRequestError("the bot is carrying out its queue already")
        queue, self._queue = self._queue, []
        self._runs = True
        self._is_stopped = False
        undo = (
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
            for forget in undo:
                forget()
            self._runs = False
            if self._robot.trouble is None:
                await self._robot.stop()

    async def _carry_out(self, instruction: Instruction) -> float | None:
        """Carry out one instruction; return how long it took in seconds, None if it was stopped."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            instruction.begin(self._current_state(), began)
            async with asyncio.timeout(instruction.limit_s):
                while not self._is_halted():
                    if instruction.step(self._current_state(), loop.time(), self._robot):
                        return loop.time() - began
                    self._state_arrived.clear()
                    await self._state_arrived.wait()
        except TimeoutError as error:
            if isinstance(error, RoteError):
                raise
            raise TimeLimitError(
                f"{instruction.label} was not done within {instruction.limit_s:.1f} s",
                "See what keeps the robot, or give it a longer limit.",
            ) from None
        return None

    def _on_stop(self) -> None:
        self._is_stopped = True
        self._state_arrived.set()

    def _is_halted(self) -> bool:
        if self._robot.trouble is not None:
            raise self._robot.trouble
        return self._is_stopped

    def _current_state(self) -> HighState:
        state = self._robot.native
        assert isinstance(state, HighState)
        return state


def _check_positive(value: float, most: float, what: str, unit: str) -> None:
    if not 0.0 < value <= most:  # NaN fails this comparison too
        raise BadRequestError(
            f"{what} of {value} {unit} is out of range", f"Choose up to {most:g} {unit}."
        )


def _check_on_feet(state: HighState, label: str) -> None:
    """Raise an error at once if the instruction needs a robot on its feet and it lies."""
    if is_down(state):
        how = "it lies" if state.mode == a1_commands.HighMode.LIE_DOWN else "its legs are soft"
        raise BadRequestError(
            f"{label} is not possible: {how}",
            Text("Let it get up first: {get_up}.", get_up=Act.GET_UP),
        )


def _distance_text(forward_m: float, left_m: float) -> str:
    """Return a distance as text: 0.30 m back, 0.20 m to the left."""
    parts = []
    if forward_m or not left_m:
        parts.append(f"{abs(forward_m):.2f} m{' back' if forward_m < 0 else ''}")
    if left_m:
        parts.append(f"{abs(left_m):.2f} m to the {'left' if left_m > 0 else 'right'}")
    return " and ".join(parts)


def _pose_part_text(name: str, value: float) -> str:
    if name.endswith("_rad"):
        return f"{name.removesuffix('_rad')} {math.degrees(value):.3g} degrees"
    return f"height {value:+.3g} m"


def _speed_for_distance(left: float, gain: float, least: float, most: float) -> float:
    """Return a speed that decreases with the remaining distance."""
    return math.copysign(min(max(gain * abs(left), least), most), left)


class _Walk:
    def __init__(self, forward_m: float, left_m: float, speed_m_s: float) -> None:
        self._distance_m = math.hypot(forward_m, left_m)
        angle = math.atan2(left_m, forward_m)
        self._along = (math.cos(angle), math.sin(angle))
        self._speed = speed_m_s
        self._from = (0.0, 0.0)
        self._yaw = 0.0
        self.label = f"a walk of {_distance_text(forward_m, left_m)}"
        self.limit_s = 2.0 * self._distance_m / speed_m_s + _SPARE_S

    def begin(self, state: HighState, now: float) -> None:
        _check_on_feet(state, self.label)
        self._from = (state.position_m[0], state.position_m[1])
        self._yaw = state.imu.rpy_rad[2]

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        # By distance, not by direction: the frame of an older A1's position is not known.
        gone = math.hypot(state.position_m[0] - self._from[0], state.position_m[1] - self._from[1])
        left = self._distance_m - gone
        speed = math.hypot(*state.velocity_m_s[:2])
        if abs(left) < NEAR_M:
            robot.modes.stand()
            return speed < STANDS_M_S and abs(state.yaw_speed_rad_s) < STANDS_RAD_S
        pace = _speed_for_distance(left, _GAIN, _MIN_M_S, self._speed)
        off = math.remainder(self._yaw - state.imu.rpy_rad[2], math.tau)
        turn = min(max(_HEADING_GAIN * off, -0.3), 0.3)
        robot.walk(pace * self._along[0], pace * self._along[1], turn)
        return False


class _Turn:
    def __init__(self, angle_rad: float, speed_rad_s: float) -> None:
        self._left = angle_rad
        self._speed = speed_rad_s
        self._yaw = 0.0
        self.label = f"a turn of {math.degrees(angle_rad):.0f} degrees"
        self.limit_s = 2.0 * abs(angle_rad) / speed_rad_s + _SPARE_S

    def begin(self, state: HighState, now: float) -> None:
        _check_on_feet(state, self.label)
        self._yaw = state.imu.rpy_rad[2]

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        yaw = state.imu.rpy_rad[2]
        self._left -= math.remainder(yaw - self._yaw, math.tau)
        self._yaw = yaw
        if abs(self._left) < NEAR_RAD:
            robot.modes.stand()
            return abs(state.yaw_speed_rad_s) < STANDS_RAD_S
        robot.walk(turn_rad_s=_speed_for_distance(self._left, 2.0 * _GAIN, _MIN_RAD_S, self._speed))
        return False


class _Pose:
    limit_s = _SPARE_S

    def __init__(self, pose: dict[str, float]) -> None:
        self._pose = pose
        parts = ", ".join(_pose_part_text(name, value) for name, value in pose.items() if value)
        self.label = f"a pose with {parts}" if parts else "standing"

    def begin(self, state: HighState, now: float) -> None:
        _check_on_feet(state, self.label)

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        robot.pose(**self._pose)
        roll, pitch = state.imu.rpy_rad[:2]
        off = max(
            abs(roll - self._pose.get("roll_rad", 0.0)),
            abs(pitch - self._pose.get("pitch_rad", 0.0)),
        )
        still = math.hypot(*state.velocity_m_s[:2]) < STANDS_M_S
        turns = abs(state.yaw_speed_rad_s) >= STANDS_RAD_S
        return off < _POSE_RAD and still and not turns and state.mode == a1_commands.HighMode.STAND


class _Stand(_Pose):
    limit_s = 2.0 * _SPARE_S

    def __init__(self) -> None:
        super().__init__({})
        self._rises = False
        self._highest_m = self._rose_s = -math.inf

    def begin(self, state: HighState, now: float) -> None:
        self._rises = is_down(state)

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        if self._rises and state.body_height_m <= UP_M:
            robot.modes.rise()
            return False
        if self._rises and state.body_height_m > self._highest_m + _RISES_M:
            self._highest_m, self._rose_s = state.body_height_m, now
        return super().step(state, now, robot) and now > self._rose_s + _RISEN_S


class _LieDown:
    limit_s = _SPARE_S
    label = "lying down"

    def begin(self, state: HighState, now: float) -> None:
        """Do nothing: there is nothing to remember."""

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        if not is_down(state):
            robot.modes.lie_down()
            return False
        return state.mode == a1_commands.HighMode.DAMP or state.body_height_m < _DOWN_M


class _Wait:
    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self.label = f"a wait of {seconds:g} s"
        self.limit_s = seconds + _SPARE_S

    def begin(self, state: HighState, now: float) -> None:
        self._until = now + self._seconds

    def step(self, state: HighState, now: float, robot: A1) -> bool:
        return now >= self._until


class _Until:
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
