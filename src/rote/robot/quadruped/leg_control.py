"""Commands the legs of one A1 or Go1; every command is checked and supervised here."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Protocol

import numpy as np

from rote.errors import (
    BadRequestError,
    ProtectionError,
    RefusedError,
    RoteError,
    UnsupportedError,
)
from rote.messages import Code, Phase
from rote.motion.track import Array
from rote.robot.link import StopCounter, iterate_states
from rote.robot.quadruped import command_check
from rote.robot.quadruped.commands import is_down, is_standing
from rote.robot.quadruped.control import BRAKED, A1RobotClient, Control, State, Step, hold_position
from rote.robot.quadruped.loop import LoopStats
from rote.robot.quadruped.safety import Safety
from rote.session.a1 import Level, make_neutral_command
from rote.transport.a1.client import STALE_S
from rote.transport.base_client import add_listener
from rote.wire.a1.motors import LEG_MOTORS, MotorCmds
from rote.wire.a1.values import Command, Dialect, HighState, LowCmd, LowState

HOLD_RANGE_S = (0.01, 0.5)
"""The shortest and longest `hold_s`, after which a command expires, in seconds."""
_STATE_TIMEOUT_S = 0.5
"""Timeout for a state before an operation begins, in seconds."""


class LegMotionPlayback(Protocol):
    """What `LegControl` needs of a playback."""

    @property
    def phase(self) -> Phase:
        """The phase of the playback."""

    def give_up(self) -> None:
        """Never begin, if it still waits for its time."""


class LegControl:
    """Commands and protects the legs of one robot, and keeps track of what drives them."""

    def __init__(self, client: A1RobotClient, safety: Safety | None = None) -> None:
        self.client = client
        self.safety = safety or Safety("go1" if client.dialect is Dialect.GO1 else "a1")
        self.trouble: RoteError | None = None
        """The tripped protection or the lost connection; no commands are accepted until `arm`."""
        self.stops = StopCounter()
        self.is_soft = False
        """Whether the legs are being taught."""
        self._stop_listeners: list[Callable[[], None]] = []
        self._control: Control | None = None
        self._playback: LegMotionPlayback | None = None
        self._is_driven = False
        self._commanded: MotorCmds | None = None
        """The current motor command while no control function runs."""
        self._is_stop_hold = False
        """Whether that command is the hold of a stop."""
        client.on_state(self._on_state)
        client.on_trouble(self._set_trouble)

    @property
    def level(self) -> Level:
        """What it is connected to: the walking controller (high) or the motors (low)."""
        return self.client.level

    @property
    def dialect(self) -> Dialect:
        """The robot's dialect."""
        return self.client.dialect

    @property
    def phase(self) -> Phase:
        """The phase of the newest playback."""
        return Phase.NONE if self._playback is None else self._playback.phase

    def note_playback(self, playback: LegMotionPlayback) -> None:
        """Remember the newest playback; a stop prevents it from beginning."""
        self._playback = playback

    # ---- states ---------------------------------------------------------------------------------

    def latest_state(self) -> State:
        """Return the newest state as the robot sent it."""
        assert self.client.latest is not None, "a connected robot has sent a state"
        return self.client.latest

    def measured_rad(self) -> Array:
        """Return the measured angles of the twelve joints, in rad."""
        state = self.latest_state()
        assert state.motors is not None
        return np.array(state.motors.q_rad[:LEG_MOTORS], dtype=np.float64)

    def states(self) -> AsyncIterator[State]:
        """Yield states as the robot sends them; raises when it is lost."""
        return iterate_states(self.client.on_state, self.on_loss)

    async def wait_for_state(self) -> None:
        """Wait for a new state; raise `ProtectionError` if none arrives in time."""
        try:
            async with asyncio.timeout(_STATE_TIMEOUT_S):
                async for _ in self.states():
                    return
        except TimeoutError:
            raise _make_stale_error(self.client.now() - self.client.state_received_s) from None

    def on_loss(self, listener: Callable[[RoteError], None]) -> Callable[[], None]:
        """Call `listener` when the robot is lost; a tripped protection is no loss. Return a
        function that removes it.
        """

        def on_trouble(error: RoteError) -> None:
            if not isinstance(error, ProtectionError):
                listener(error)

        return self.client.on_trouble(on_trouble)

    # ---- stops ----------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Stop whatever is running. Always allowed, and safe to repeat.

        A walking robot stands. Driven legs hold the last measured position, and brake if they were
        driven by velocity or torque alone.
        """
        self.stops.add_stop()
        self._notify_stopped()
        self._give_up_playback()
        if self._control is not None:
            self._control.stop()
        elif self.level is Level.HIGH and self.trouble is None:
            self.client.command(make_neutral_command(self.level, self.dialect))
            self._is_driven = False
        elif self._is_driven and not self._is_stop_hold:
            self._hold_legs()

    def damp(self) -> None:
        """Make the legs go limp softly, at once; no command is accepted until `arm`."""
        self._give_up_playback()
        if self._control is not None:
            self._control.stop()
        self.client.trip()
        self._set_trouble(
            ProtectionError("stop", "damping was requested", "Call robot.arm() to go on.")
        )

    def arm(self) -> None:
        """Accept commands again."""
        self.client.arm()
        self.trouble = None
        self._is_driven = False
        self.safety.reset()

    def on_stop(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Call `listener` when the robot is stopped, or in trouble. Return a function that removes
        it.
        """
        return add_listener(self._stop_listeners, listener)

    def on_teaching_end(self, listener: Callable[[RoteError], None]) -> Callable[[], None]:
        """Call `listener` with the error that ends a teaching: trouble, or a stop. Return a
        function that removes it.
        """
        return self.on_stop(lambda: listener(self.trouble or _make_stopped_error()))

    def _notify_stopped(self) -> None:
        for listener in tuple(self._stop_listeners):
            listener()

    def _give_up_playback(self) -> None:
        if self._playback is not None:
            self._playback.give_up()

    def _hold_legs(self) -> None:
        """Hold the legs at their measured position, or brake them if it is unknown."""
        state, motors = self.client.poll(), BRAKED
        is_fresh = self.client.now() - self.client.state_received_s <= STALE_S[self.level]
        if is_fresh and self._commanded is not None and isinstance(state, LowState):
            motors = hold_position(self._commanded, state.motors)
        self.client.command(LowCmd(motors=motors))
        self._commanded, self._is_stop_hold = motors, True

    # ---- commands -------------------------------------------------------------------------------

    def send(self, command: Command, hold_s: float | None = None, *, force: bool = False) -> None:
        """Check a user's command and send it repeatedly, for `hold_s` or until the next command."""
        is_low = isinstance(command, LowCmd)
        self.require_level(
            Level.LOW if is_low else Level.HIGH, f"be sent a {type(command).__name__}"
        )
        if hold_s is not None and not HOLD_RANGE_S[0] <= hold_s <= HOLD_RANGE_S[1]:
            raise BadRequestError(
                f"hold_s of {hold_s} s is out of range",
                f"Choose {HOLD_RANGE_S[0]:g} to {HOLD_RANGE_S[1]:g} s.",
            )
        self.check_not_busy()
        self._send_checked(self._check_command(command, force=force), hold_s)

    def send_motors(self, motors: MotorCmds) -> None:
        """Check and send a motor command."""
        self.require_level(Level.LOW, "drive motors")
        self.check_not_busy()
        self._send_checked(self._check_command(LowCmd(motors=motors), force=False))

    def send_high(self, command: Command) -> None:
        """Send a command, already checked, to the walking controller."""
        self.require_level(Level.HIGH, "walk or pose")
        self._send_checked(command)

    def make_soft(self, command: LowCmd) -> None:
        """Make the legs soft for a teaching. This drives nothing, so states are not checked."""
        self._send_checked(command, for_teaching=True)
        self._is_driven, self.is_soft = False, True

    def end_softness(self) -> None:
        """Record that the legs are not being taught any more."""
        self.is_soft = False

    async def run_control_function(
        self,
        step: Step,
        period_s: float = 0.002,
        *,
        cpu: int | None = None,
        realtime: bool = False,
        stop_count: int | None = None,
    ) -> tuple[LoopStats, bool]:
        """Run a control function; return the statistics, and whether it ran to its own end.

        Raises `RefusedError` if a stop was requested since `stop_count` was read.
        """
        stop_count = self.stops.count if stop_count is None else stop_count
        self.require_level(Level.LOW, "drive motors")
        self.check_not_busy()
        await self.wait_for_state()
        self.check_not_busy()  # again, because the wait takes time
        self.stops.check_none_since(stop_count)
        commanded = self._commanded if self._is_driven else None
        self._control = Control(self.client, self.safety, step, period_s, commanded)
        self._is_driven = self._is_stop_hold = False
        try:
            stats, completed = await self._control.run(cpu=cpu, realtime=realtime)
            self._is_driven = True
            self._commanded, self._is_stop_hold = self._control.last_motors, not completed
            return stats, completed
        except Exception as error:
            if isinstance(error, ProtectionError) and self.trouble is None:
                self._set_trouble(error)
            elif self.trouble is None:
                self._set_trouble(
                    ProtectionError("control", f"the control function raised {error!r}")
                )
            raise
        finally:
            self._control = None

    def _send_checked(
        self, command: Command, hold_s: float | None = None, *, for_teaching: bool = False
    ) -> None:
        """Send a validated command, unless the legs are busy or the robot's state is stale.

        It is repeated for `hold_s`; None until the next command.
        """
        self.check_not_busy(for_teaching=for_teaching)
        self._check_not_stale()
        self.client.command(command, hold_s)
        self._is_stop_hold = False
        self._is_driven = command != make_neutral_command(self.level, self.dialect)
        self._commanded = command.motors if isinstance(command, LowCmd) else None

    # ---- guarding -------------------------------------------------------------------------------

    def check_not_busy(self, *, for_teaching: bool = False) -> None:
        """Raise `trouble` if there is any. Raise `BadRequestError` if a control function drives the
        legs, or if they are being taught and the caller is not the teaching (`for_teaching`).
        """
        if self.trouble is not None:
            raise self.trouble
        if self._control is not None:
            raise BadRequestError(
                "a control function drives the motors", "Stop it first: await robot.stop()."
            )
        if self.is_soft and not for_teaching:
            raise BadRequestError("the legs are being taught", "Leave the teaching first.")

    def require_level(self, level: Level, what: str, remedy: str = "") -> None:
        """Raise `UnsupportedError` about `what` if the connection is not at that level."""
        if self.level is not level:
            connected = f"a1:// at the {self.level.value} level"
            required = f"a1://...?level={level.value}"
            raise UnsupportedError(what, connected, (required,), remedy)

    def _check_command(self, command: Command, *, force: bool) -> Command:
        state = self.latest_state()
        if isinstance(command, LowCmd):
            assert isinstance(state, LowState)
            return command_check.check_low(command, self.dialect, self.safety, state)
        assert isinstance(state, HighState)
        position_m = (state.position_m[0], state.position_m[1])
        observed = command_check.ObservedState(position_m, is_down(state), is_standing(state))
        command_check.check_high(command, self.dialect, observed, force=force)
        return command

    def _check_not_stale(self) -> None:
        """Raise `ProtectionError` if the newest state is stale."""
        self.client.poll()
        silence_s = self.client.now() - self.client.state_received_s
        if silence_s > STALE_S[self.level]:
            raise _make_stale_error(silence_s)

    def _on_state(self, state: State) -> None:
        """Make the robot safe if a state trips a protection."""
        # `Control` checks the states while a control function runs.
        if self._control is not None:
            return
        try:
            if self._is_driven:
                self.safety.check(state, commanded=self._commanded)
            elif self.is_soft:
                self.safety.check_remote(state)
        except ProtectionError as error:
            self.client.trip()
            self._set_trouble(error)

    def _set_trouble(self, error: RoteError) -> None:
        if self.trouble is None:
            self.trouble = error
            self._is_driven = False
            self._notify_stopped()


def _make_stale_error(silence_s: float) -> ProtectionError:
    return ProtectionError(
        "stale",
        f"no state arrived for {1000 * silence_s:.0f} ms, so no command is sent",
        "Check the robot and the network, then try again.",
    )


def _make_stopped_error() -> RefusedError:
    return RefusedError(
        Code.NOT_TEACHING,
        "the teaching was ended by a stop",
        "Use what was recorded until then, or teach again.",
    )
