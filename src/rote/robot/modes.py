"""The modes of a robot's motion controller: read, and changed to stand or to damp."""

import asyncio
from collections.abc import Awaitable
from contextlib import suppress

from rote import messages as m
from rote.errors import CautionError, DecodeError, NoAnswerError, RefusedError, UnsupportedError
from rote.messages import Code
from rote.model.family import Build, ModeTable
from rote.model.registry import family_of
from rote.robot.api_values import UNREPORTED_MODE, ModeReport
from rote.robot.link import BY_FORCE, REPORT_MACHINE, RobotLink
from rote.text import Act, Text
from rote.transport.wires import unsupported

MODE_CHANGE_S = 10.0
"""Timeout for a mode that the robot accepted to be reported, in seconds."""


class MessageModes:
    """What `robot.modes` is for a robot that speaks `rote.messages`."""

    def __init__(self, link: RobotLink) -> None:
        self._link = link

    @property
    def _table(self) -> ModeTable:
        return mode_table_of(self._link.build)

    async def read(self) -> ModeReport:
        """Return the mode the robot is in; its id is -1 if the robot does not report it."""
        state = await self._link.next_state()
        if state.mode == UNREPORTED_MODE and "controller" in self._link.abilities:
            with suppress(RefusedError, NoAnswerError, DecodeError):
                await self._link.ask(m.ReadMode())
            state = self._link.client.latest or state
        return ModeReport.of(state.mode, self._table)

    async def stand(self) -> ModeReport:
        """Bring the robot into a balanced stand, mode by mode, and wait until it stands.

        Return the mode it is in then. Raises `CautionError` if rote knows no way there from the
        current mode.
        """
        self._check_changeable()
        while not (mode := await self.read()).balanced:
            if mode.id not in self._table.to_stand:
                raise CautionError(
                    f"rote knows no way from mode {mode.id}, {mode.name}, to a balanced stand",
                    "The robot was not asked. Use its remote: L2+UP, then R1+X.",
                    Code.WRONG_STATE,
                )
            *others, last = self._table.to_stand[mode.id]
            for following in others:
                with suppress(NoAnswerError):
                    await self._change(following)
                    break
            else:
                await self._change(last)
        return mode

    async def damp(self, *, yes: bool = False) -> ModeReport:
        """Damp all joints: they go limp, and a standing robot sinks to the floor.

        Hold the robot or hang it on its gantry first, then pass `yes=True`. Without `yes`, a robot
        whose joints hold raises `CautionError` and stays as it is. (The documents call the soft
        arms of teaching "damping" too; that is `teach`.)
        """
        self._check_changeable()
        if self._table.damp is None:
            raise UnsupportedError("damp its joints", f"{self._link.build.title}")
        if not yes:
            await self._check_safe_to_damp()
        return await self._change(self._table.damp)

    def lie_down(self) -> Awaitable[ModeReport]:
        """Raise `UnsupportedError`: robots of this kind have no command to lie down."""
        raise unsupported("lie down", self._link.client.wire, "lie")

    async def enter(self, mode: int) -> None:
        """Enter a mode in which the joints hold; raise `CautionError` for any other mode."""
        self._check_changeable()
        facts = self._table.find(mode)
        if facts is None or not facts.stiff:
            raise CautionError(
                f"mode {mode:d} may let the robot sink, and is not entered by a single frame",
                Text("Use {sure}, or the robot's remote.", sure=Act.SINK),
            )
        await self._change(mode)

    async def check_balanced(self) -> None:
        """Raise `CautionError` for a mode without balance; an unknown mode is left to the robot."""
        if self._link.build.known:
            mode = await self.read()
            if mode.known and not mode.balanced:
                message, remedy = m.explain(Code.WRONG_STATE)
                raise CautionError(
                    f"{message}: mode {mode.id}, {mode.name}",
                    f"{remedy} {BY_FORCE}",
                    Code.WRONG_STATE,
                )

    async def _change(self, mode: int) -> ModeReport:
        await self._link.ask(m.ChangeMode(mode))
        # Accepted is not done: ask until the robot reports the mode.
        try:
            async with asyncio.timeout(MODE_CHANGE_S):
                async for state in self._link.states():
                    if state.mode == mode:
                        break
        except TimeoutError:
            raise NoAnswerError(
                f"the robot accepted mode {mode:d} and is still not in it",
                "Look at the robot; try the buttons of its remote.",
            ) from None
        return ModeReport.of(mode, self._table)

    async def _check_safe_to_damp(self) -> None:
        """Raise `CautionError` if joints hold, or may hold: a robot standing on them would sink."""
        mode = await self.read()
        facts = self._table.find(mode.id)
        if facts is None or facts.stiff:
            raise CautionError(
                f"damping makes all joints go limp, and a standing robot sinks to the floor: "
                f"it is in mode {mode.id}, {mode.name}",
                Text("Hold it or hang it up first, then confirm: {sure}.", sure=Act.SINK),
            )

    def _check_changeable(self) -> None:
        """Raise `UnsupportedError` if this wire, or rote for this machine, cannot change modes."""
        self._link.require_ability("mode", "change its mode")
        build = self._link.build
        if not build.known:
            raise UnsupportedError(
                f"be put into another mode by rote: it is {build.title}",
                "this robot",
                remedy=REPORT_MACHINE,
            )


def mode_table_of(build: Build) -> ModeTable:
    """Return the modes of a build; an unknown machine has none."""
    family = family_of(build)
    return ModeTable(all=()) if family is None else family.modes
