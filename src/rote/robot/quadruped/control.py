"""Runs a user's control function for an A1's motors, called by deadline and supervised.

The function runs in its own thread. Its commands go to a sender that makes the robot safe if the
next command does not arrive within `HOLD_S`, so a stalled function cannot leave the legs driven.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol, TypeAlias

import numpy as np

from rote.errors import BadRequestError, ProtectionError, RoteError
from rote.model.a1 import KD_NM_S_RAD
from rote.robot.quadruped.loop import Deadlines, LoopFunc, LoopStats
from rote.robot.quadruped.safety import Safety
from rote.session.a1 import Level
from rote.wire.a1.motors import (
    BRAKE,
    LEG_MOTORS,
    POSITION_OFF_RAD,
    SERVO,
    MotorCmd,
    MotorCmds,
    MotorStates,
)
from rote.wire.a1.values import Command, Dialect, HighState, LowCmd, LowState

State: TypeAlias = HighState | LowState
Step: TypeAlias = Callable[[LowState, float], "MotorCmds | LowCmd | None"]
"""Maps the newest state and the seconds since the start to a motor command; None ends the run.
"""

HOLD_S = 0.016
"""How long a command is valid. With the sender's own period, the robot is safe within 20 ms."""
PERIOD_RANGE_S = (0.001, 0.008)
_LAST_COMMAND_S = 0.5
"""How long the last command is valid, until the event loop repeats it."""


class A1RobotClient(Protocol):
    """The client interface that an `A1` uses; see `rote.transport.a1.client.A1Client`."""

    url: str
    level: Level
    isolated: bool
    """Whether a separate process sends the commands."""
    latest: State | None
    state_received_s: float

    @property
    def dialect(self) -> Dialect:
        """The dialect of the robot."""

    def now(self) -> float:
        """The clock of the connection, in seconds."""

    def poll(self) -> State | None:
        """Read what has arrived, and return the newest state; from any thread."""

    def command(self, command: Command, hold_s: float | None = None) -> None:
        """Send a command repeatedly."""

    def trip(self, command: Command | None = None) -> None:
        """Make the robot safe at once and refuse commands until `arm`; from any thread."""

    def arm(self) -> None:
        """Accept commands again."""

    def on_state(self, listener: Callable[[State], object]) -> Callable[[], None]:
        """Call `listener` with every state."""

    def on_trouble(self, listener: Callable[[RoteError], object]) -> Callable[[], None]:
        """Call `listener` when the robot was made safe or is lost."""

    async def close(self) -> None:
        """Close the connection."""


class Control:
    """One run of a control function. Await `run`."""

    def __init__(
        self,
        client: A1RobotClient,
        safety: Safety,
        step: Step,
        period_s: float,
        commanded: MotorCmds | None = None,
    ) -> None:
        """`commanded` is the command that drives the motors until the first one of `step`."""
        if not PERIOD_RANGE_S[0] <= period_s <= PERIOD_RANGE_S[1]:
            raise BadRequestError(
                f"a control period of {period_s} s is out of range",
                f"Choose {PERIOD_RANGE_S[0]} to {PERIOD_RANGE_S[1]} s.",
            )
        self._client = client
        self._safety = safety
        self._step = step
        self._period_s = period_s
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[bool] = self._loop.create_future()
        self._checked_state: State | None = None
        """The state that was checked last; each is checked once."""
        self._last_command = None if commanded is None else LowCmd(motors=commanded)
        self._lock = threading.Lock()
        """Held while a command is sent, so that no command follows that of a stop."""
        self._is_stopped = self._is_over = False
        self._began_s = 0.0

    @property
    def last_motors(self) -> MotorCmds | None:
        """The last motor command."""
        return None if self._last_command is None else self._last_command.motors

    def stop(self) -> None:
        """End the run: the legs hold the measured position, or brake."""
        with self._lock:
            if self._is_stopped:
                return
            self._is_stopped = self._is_over = True
            state = self._client.poll()
            if self._last_command is not None and isinstance(state, LowState):
                held = hold_position(self._last_command.motors, state.motors)
                self._last_command = self._last_command._replace(motors=held)
                with suppress(RoteError):  # a lost robot was braked when it went silent
                    self._client.command(self._last_command, _LAST_COMMAND_S)
        self._set_result(None, completed=False)

    async def run(
        self, *, cpu: int | None = None, realtime: bool = False
    ) -> tuple[LoopStats, bool]:
        """Call the function until it returns None; return the statistics, and whether it finished.

        Raises what the function raised, after the robot was made safe. A cancelled run leaves the
        motors braked.
        """
        self._safety.reset()
        self._began_s = self._client.now()
        remove_listener = self._client.on_trouble(self._on_trouble)
        ticker: LoopFunc | _LoopTicker
        if self._client.isolated:
            ticker = LoopFunc("control", self._period_s, self._tick, cpu=cpu, realtime=realtime)
        else:
            ticker = _LoopTicker(self._loop, self._period_s, self._tick)
        try:
            ticker.start()
            completed = await asyncio.shield(self._ended)
            if self._last_command is not None:
                self._client.command(self._last_command)
        except BaseException:
            self._is_over = True
            with suppress(RoteError):
                self._client.command(LowCmd(motors=BRAKED))
            raise
        finally:
            self._is_over = True
            ticker.end()
            remove_listener()
            if not self._ended.done():
                self._ended.cancel()
        return ticker.stats(), completed

    def _tick(self) -> None:
        """Check the newest state, call the control function, and send its command."""
        if self._is_over:
            return
        try:
            state = self._client.poll()
            now = self._client.now()
            assert isinstance(state, LowState)
            age_s = now - self._client.state_received_s
            # Power violations are counted, so a state is checked again only if it may be too old.
            if state is not self._checked_state or age_s > HOLD_S:
                self._checked_state = state
                self._safety.check(state, age_s, self.last_motors)
            commanded = self._step(state, now - self._began_s)
            if commanded is not None and not self._is_over:
                self._send_command(commanded)
            elif not self._is_over:
                self._extend_last_command()
                self._set_result(None, completed=True)
        except Exception as error:
            if not self._is_over:
                self._client.trip()
                self._set_result(_as_protection_error(error), completed=False)

    def _send_command(self, commanded: "MotorCmds | LowCmd") -> None:
        """Check and send what the control function returned, unless the run is over."""
        command = LowCmd(motors=commanded) if isinstance(commanded, MotorCmds) else commanded
        if not isinstance(command, LowCmd):
            raise TypeError(
                f"a control function must return MotorCmds, not {type(commanded).__name__}"
            )
        command = command._replace(motors=self._safety.limit(command.motors))
        with self._lock:
            if not self._is_over:
                self._last_command = command
                self._client.command(command, HOLD_S)

    def _extend_last_command(self) -> None:
        """End the run, and keep the last command valid until `run` repeats it."""
        with self._lock:
            if not self._is_over and self._last_command is not None:
                self._client.command(self._last_command, _LAST_COMMAND_S)
            self._is_over = True

    def _on_trouble(self, error: RoteError) -> None:
        self._is_over = True
        self._set_result(error, completed=False)

    def _set_result(self, error: Exception | None, *, completed: bool) -> None:
        """End `run` with an error or a result; later calls have no effect. Safe from any thread."""

        def set_ended() -> None:
            if self._ended.done():
                return
            if error is not None:
                self._ended.set_exception(error)
            else:
                self._ended.set_result(completed)

        self._loop.call_soon_threadsafe(set_ended)


BRAKED = MotorCmds.servo(mode=BRAKE)
"""All motors damp themselves."""


def hold_position(commanded: MotorCmds, now: MotorStates) -> MotorCmds:
    """Return the command that stops legs driven by `commanded`.

    A motor with a target position keeps its stiffness and holds the measured position; a motor
    driven by velocity or torque only is braked.
    """
    legs = slice(0, LEG_MOTORS)
    has_target = (commanded.mode[legs] == SERVO) & (commanded.kp_nm_rad[legs] > 0.0)
    has_target &= commanded.q_rad[legs] != np.float32(POSITION_OFF_RAD)
    rows = zip(
        has_target.tolist(),
        now.q_rad[legs].tolist(),
        commanded.kp_nm_rad[legs].tolist(),
        commanded.kd_nm_s_rad[legs].tolist(),
        strict=True,
    )
    return MotorCmds.of(
        MotorCmd(SERVO, now_rad, 0.0, 0.0, stiffness, max(damping, KD_NM_S_RAD))
        if is_held
        else MotorCmd(BRAKE)
        for is_held, now_rad, stiffness, damping in rows
    )


def _as_protection_error(error: Exception) -> Exception:
    """Convert the refusal of a command to a `ProtectionError`; return other errors unchanged."""
    if isinstance(error, BadRequestError):
        trip = ProtectionError("command", str(error), error.remedy)
        trip.__cause__ = error
        return trip
    return error


class _LoopTicker:
    """Like `LoopFunc`, but in the event loop: for a sender that is not a separate process."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, period_s: float, function: Callable[[], object]
    ) -> None:
        self._loop = loop
        self._function = function
        self._deadlines = Deadlines(period_s, loop.time())
        self._timer: asyncio.Handle | None = None

    def start(self) -> None:
        """Begin to call the function."""
        self._timer = self._loop.call_soon(self._run_tick)

    def end(self) -> None:
        """Stop calling the function."""
        if self._timer is not None:
            self._timer.cancel()

    def stats(self) -> LoopStats:
        """Return how well the deadlines were met."""
        return self._deadlines.stats()

    def _run_tick(self) -> None:
        self._deadlines.begin(self._loop.time())
        self._function()
        self._deadlines.end(self._loop.time())
        self._timer = self._loop.call_at(self._deadlines.due_s, self._run_tick)
