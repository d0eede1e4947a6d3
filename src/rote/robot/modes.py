"""The modes of a robot's motion controller: read, and changed to stand or to damp."""

import asyncio
from collections.abc import Awaitable, Sequence
from contextlib import suppress

from rote import messages as m
from rote.errors import CautionError, DecodeError, NoAnswerError, RefusedError, UnsupportedError
from rote.messages import UNREPORTED_MODE, Code
from rote.model.family import ModeTable
from rote.model.registry import modes_of
from rote.robot.api_values import ModeReport
from rote.robot.link import BY_FORCE, REPORT_MACHINE, RobotLink
from rote.text import Act, Text
from rote.transport.wires import unsupported

MODE_CHANGE_TIMEOUT_S = 10.0
"""Timeout in seconds for the robot to report a mode that it accepted."""


class MessageModes:
    """Implements `robot.modes` for a robot that understands `rote.messages`."""

    def __init__(self, link: RobotLink) -> None:
        self._link = link

    @property
    def _mode_table(self) -> ModeTable:
        return modes_of(self._link.build)

    async def read(self) -> ModeReport:
        """Return the mode the robot is in; its id is -1 if the robot does not report it."""
        state = await self._link.next_state()
        if state.mode == UNREPORTED_MODE and "controller" in self._link.abilities:
            with suppress(RefusedError, NoAnswerError, DecodeError):
                await self._link.ask(m.ReadMode())  # the next state contains the mode
            state = self._link.client.latest or state
        return ModeReport.of(state.mode, self._mode_table)

    async def stand(self) -> ModeReport:
        """Bring the robot into a balanced stand, mode by mode, and wait until it stands.

        Return the final mode. Raises `CautionError` if rote knows no safe mode changes from the
        current mode to a stand.
        """
        self._check_changeable()
        while not (mode := await self.read()).balanced:
            if mode.id not in self._mode_table.to_stand:
                raise CautionError(
                    f"rote cannot bring the robot from mode {mode.id}, {mode.name}, to a balanced "
                    "stand",
                    f"Nothing was sent. {self._make_remote_remedy()}",
                    Code.WRONG_STATE,
                )
            await self._enter_first_possible(self._mode_table.to_stand[mode.id])
        return mode

    async def _enter_first_possible(self, modes: Sequence[int]) -> None:
        """Enter the first of these modes that the robot can enter; raise if it can enter none."""
        for mode in modes[:-1]:
            with suppress(NoAnswerError, RefusedError):
                await self._change_mode(mode)
                return
        await self._change_mode(modes[-1])

    def _make_remote_remedy(self) -> str:
        known = self._link.client.recognised
        buttons = self._mode_table.stand_up_buttons if known else m.ANY_STAND_BUTTONS
        return f"Use the robot's remote: {buttons}." if buttons else "Use the robot's remote."

    async def damp(self, *, yes: bool = False) -> ModeReport:
        """Damp all joints: they go limp, and a standing robot sinks to the floor.

        Hold the robot or hang it on its gantry first, then pass `yes=True`. Without `yes`, a robot
        whose joints hold raises `CautionError` and stays as it is. (The documents call the soft
        arms of teaching "damping" too; that is `teach`.)
        """
        self._check_changeable()
        if self._mode_table.damp is None:
            raise UnsupportedError("damp its joints", f"{self._link.build.title}")
        if not yes:
            await self._check_safe_to_damp()
        return await self._change_mode(self._mode_table.damp)

    def lie_down(self) -> Awaitable[ModeReport]:
        """Raise `UnsupportedError`: robots of this kind have no command to lie down."""
        raise unsupported("lie down", self._link.client.wire, "lie")

    async def enter(self, mode: int) -> None:
        """Enter a mode in which the joints hold; raise `CautionError` for any other mode."""
        self._check_changeable()
        facts = self._mode_table.find(mode)
        if facts is None or not facts.stiff:
            raise CautionError(
                f"mode {mode:d} may make the robot sink, so rote does not send it as a "
                "single frame",
                Text("Use {sure}, or the robot's remote.", sure=Act.SINK),
            )
        await self._change_mode(mode)

    async def check_balanced(self) -> None:
        """Raise `CautionError` if the current mode is known to be unbalanced."""
        if self._link.build.known:
            mode = await self.read()
            if mode.known and not mode.balanced:
                message, remedy = self._link.explain(Code.WRONG_STATE)
                raise CautionError(
                    f"{message}: mode {mode.id}, {mode.name}",
                    f"{remedy} {BY_FORCE}",
                    Code.WRONG_STATE,
                )

    async def _change_mode(self, mode: int) -> ModeReport:
        await self._link.ask(m.ChangeMode(mode))
        # Acceptance does not mean that the mode was entered: wait until the robot reports it.
        try:
            async with asyncio.timeout(MODE_CHANGE_TIMEOUT_S):
                async for state in self._link.states():
                    if state.mode == mode:
                        break
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {mode:d}, but did not enter it in "
                f"{MODE_CHANGE_TIMEOUT_S:.0f} s",
                "Look at the robot; try the buttons of its remote.",
            ) from None
        return ModeReport.of(mode, self._mode_table)

    async def _check_safe_to_damp(self) -> None:
        """Raise `CautionError` if joints hold, or may hold: a robot standing on them would sink."""
        mode = await self.read()
        facts = self._mode_table.find(mode.id)
        if facts is None or facts.stiff:
            raise CautionError(
                f"damping makes all joints go limp, and a standing robot sinks to the floor: "
                f"it is in mode {mode.id}, {mode.name}",
                Text("Hold it or hang it up first, then confirm: {sure}.", sure=Act.SINK),
            )

    def _check_changeable(self) -> None:
        """Raise `UnsupportedError` if this wire cannot change modes, or rote does not know the
        machine.
        """
        self._link.require_ability("mode", "change its mode")
        build = self._link.build
        if not build.known:
            raise UnsupportedError(
                f"have its mode changed by rote: it is {build.title}",
                "this robot",
                remedy=REPORT_MACHINE,
            )
