"""The posture modes of a quadruped's walking controller: stand, lie down, get up, damp."""

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any

from rote.errors import TimeLimitError
from rote.model.a1 import A1_MODES
from rote.robot.api_values import ModeReport
from rote.robot.quadruped import commands as a1_commands
from rote.robot.quadruped.commands import STANDING_HEIGHT_M, HighMode, is_standing
from rote.robot.quadruped.leg_control import LegControl
from rote.session.a1 import Level
from rote.wire.a1.values import Dialect, HighState

_GET_UP_TIMEOUT_S = 5.0


class _SentCommand:
    """The awaitable result of a command that was already sent: a report of the commanded mode.

    Awaiting it first waits for `wait_until_done`, if given.
    """

    def __init__(
        self, mode: HighMode, wait_until_done: Callable[[], Awaitable[object]] | None = None
    ) -> None:
        self._mode = mode
        self._wait_until_done = wait_until_done

    def __await__(self) -> Generator[Any, None, ModeReport]:
        if self._wait_until_done is not None:
            yield from self._wait_until_done().__await__()
        return ModeReport.of(self._mode, A1_MODES)


class A1Modes:
    """Implements `robot.modes` for an A1 or Go1, and adds `rise` and `get_up`."""

    def __init__(self, legs: LegControl) -> None:
        self._legs = legs

    async def read(self) -> ModeReport:
        """Return the mode of the walking controller."""
        self._legs.require_level(Level.HIGH, "report its mode")
        state = self._legs.latest_state()
        assert isinstance(state, HighState)
        return ModeReport.of(state.mode, A1_MODES)

    def stand(self) -> Awaitable[ModeReport]:
        """Stand upright on the spot. The command is sent when this returns.

        Awaiting it waits until the robot stands; a lying robot gets up.
        """
        self._legs.send_high(a1_commands.pose_command(self._legs.dialect))
        return _SentCommand(HighMode.STAND, self._get_up_if_lying)

    def damp(self, *, yes: bool = False) -> Awaitable[ModeReport]:
        """Make the legs go limp softly, at once: all motors damp themselves. The robot sinks.

        This is the robot's emergency stop, so it never asks for confirmation: `yes` has no effect.

        The command is sent when this returns; there is no need to await it. The high level of
        dialect 3.2 has no such command; there the robot stands.
        """
        self._legs.damp()
        return _SentCommand(HighMode.DAMP)

    def lie_down(self) -> Awaitable[ModeReport]:
        """Lie down; dialect 3.2 cannot. The command is sent when this returns."""
        self._legs.send_high(a1_commands.mode_command(self._legs.dialect, HighMode.LIE_DOWN))
        return _SentCommand(HighMode.LIE_DOWN)

    def rise(self) -> None:
        """Begin to get up; `get_up` also waits for it."""
        if self._legs.dialect is not Dialect.A1_3_2:
            self._legs.send_high(a1_commands.mode_command(self._legs.dialect, HighMode.GET_UP))
        else:
            self.stand()

    async def get_up(self) -> None:
        """Get up from lying or from damping; return when the robot stands.

        Raises `TimeLimitError` if it does not stand in time.
        """
        self.rise()
        try:
            async with asyncio.timeout(_GET_UP_TIMEOUT_S):
                async for state in self._legs.states():
                    if isinstance(state, HighState) and state.body_height_m > STANDING_HEIGHT_M:
                        break
        except TimeoutError:
            raise TimeLimitError(
                f"the robot did not get up within {_GET_UP_TIMEOUT_S:g} s",
                "Check that nothing blocks it, and that it lies on its belly.",
            ) from None
        self.stand()

    async def _get_up_if_lying(self) -> None:
        state = self._legs.latest_state()
        assert isinstance(state, HighState)
        if not is_standing(state):
            await self.get_up()
