"""How a robot that keeps its own actions is taught: by commands, as it reports its state."""

import asyncio
import time
from collections.abc import Awaitable, Callable

from rote import messages as m
from rote.errors import LinkError, RefusedError, RoteError
from rote.messages import RobotState
from rote.robot.base import Port
from rote.robot.take import Take
from rote.text import Act, Text

Asker = Callable[[m.Command], Awaitable[m.Reply]]

_STILL_THERE = (
    "Nothing was saved. The robot holds the recording until the next one: robot.save keeps it. "
    "Or teach again."
)
_TEACH_AGAIN = Text("Look what the robot has kept: {list}. Then teach again.", list=Act.LIST)


class MessageLesson:
    """One teaching of a robot that understands `rote.messages`."""

    def __init__(
        self, port: Port, ask: Asker, name: str, check: Callable[[], Awaitable[bool]]
    ) -> None:
        """Teach what `check` lets pass; it returns whether the robot has an action of that name."""
        self._port = port
        self._ask = ask
        self._name = name
        self._may = check
        self._take: Take | None = None
        self._end: Callable[[RoteError], None] = lambda _: None
        self._undo: list[Callable[[], None]] = []
        self._loss: RoteError | None = None
        self._refused = False
        self._is_ours = False
        self._was_soft = False
        self._silent_hands: tuple[str, ...] = ()
        self._ending = False
        self._began_s = self._lasted_s = 0.0

    async def check(self) -> None:
        """Raise what forbids the teaching."""
        self._is_ours = not await self._may()

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Ask for soft arms, and for a recording."""
        self._take, self._end = take, end
        self._undo.append(self._port.on_loss(self._lose))
        await self._enter()
        self._undo.append(self._port.on_state(self._see))
        await self._ask(m.Record(on=True))
        self._began_s = asyncio.get_running_loop().time()

    async def _enter(self) -> None:
        """Ask for soft arms. What the robot has under the name is ours once it says yes; until
        then, and if it never answers, only if there was nothing before."""
        try:
            await self._ask(m.EnterTeaching(self._port.latest, self._name))
        except RefusedError:
            self._refused = True
            raise
        self._is_ours = True

    async def hold(self, *, keep: bool) -> None:
        """Leave teaching; the robot forgets what it recorded unless it is to `keep` it."""
        self._ending = True
        self._lasted_s = asyncio.get_running_loop().time() - self._began_s
        if self._refused or isinstance(self._loss, LinkError):
            return
        await self._ask(m.ExitTeaching())
        if self._is_ours and not keep:
            await self._ask(m.DiscardRecording(self._name))

    def leave(self) -> None:
        """Hear no more of the robot."""
        for undo in self._undo:
            undo()

    async def save(self, take: Take) -> None:
        """Have the robot store the recording."""
        # By the robot's clock where it was heard: on a bad network our own began much too late.
        lasted_s = take.track.duration_s or self._lasted_s
        duration_ms = min(max(1, round(lasted_s * 1000)), m.MAX_DURATION_MS)
        save = m.SaveAction(name=take.name, created_s=int(time.time()), duration_ms=duration_ms)
        await self._ask(save)
        take.saved = True

    def _see(self, state: RobotState) -> None:
        assert self._take is not None
        if state.recording:
            self._take.add(state.time_us, self._in_its_columns(self._take, state))
            for side in state.silent_hands:
                if side not in self._silent_hands:
                    self._take.mark(f"the {side} hand stopped reporting here")
            self._silent_hands = state.silent_hands
        if self._was_soft and not state.arms_soft and self._loss is None and not self._ending:
            # Somebody stopped it, or the robot itself did: the person must not go on unrecorded.
            self._lose(
                RefusedError(
                    m.Code.NOT_TEACHING,
                    "the teaching was ended by another client, or by the robot itself",
                    _STILL_THERE if "save" in self._port.abilities else _TEACH_AGAIN,
                )
            )
        self._was_soft = state.arms_soft

    def _in_its_columns(self, take: Take, state: RobotState) -> tuple[float, ...]:
        """Return the positions of a state in the columns that the take began with.

        A hand may be heard for the first time after that: it is not in this take.
        """
        now = self._port.build
        if now is take.build or now.bare is not take.build.bare:
            return state.positions_rad
        told = dict(zip(now.names, state.positions_rad, strict=False))
        return tuple(told[name] for name in take.build.names if name in told)

    def _lose(self, error: RoteError) -> None:
        self._loss = error
        self._end(error)
