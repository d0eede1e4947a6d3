"""Teaching an A1: a block in which its legs can be moved by hand, after which they are braked."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rote.errors import RoteError
from rote.host.loop import to_the_end
from rote.messages import RobotState
from rote.model.a1 import A1
from rote.motion.track import Track
from rote.robot.a1.control import BRAKED, A1Port, State
from rote.robot.a1.motion import SOFT, LegRecorder
from rote.robot.keeping import Keeper
from rote.wire.a1.motors import LEG_MOTORS
from rote.wire.a1.values import LowCmd, LowState

if TYPE_CHECKING:
    from rote.motion.files.library import Library  # who keeps no takes need not load it


class LegTake:
    """One recording: being made inside the block, and here after it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.file: Path | None = None
        """Where it is on our own disk, once the block is over, if it was to be kept."""
        self.file_problem: RoteError | None = None
        """Why it is not there."""
        self._recorder = LegRecorder(f"teach {name} over a1")

    @property
    def track(self) -> Track:
        """The legs as the robot reported them."""
        return self._recorder.track()

    @property
    def samples(self) -> int:
        """How many states have been recorded so far."""
        return len(self._recorder)


class LegTeaching:
    """`async with robot.teach("sit") as take`: the legs are soft inside the block.

    They are braked again however it ends, which on an A1 means: it stays lying or hanging where it
    is. If the robot falls silent, or somebody stops it, the legs are braked at once, the block is
    interrupted and the error raised; what was recorded until then is kept.
    """

    def __init__(
        self,
        port: A1Port,
        begin: Callable[[LowCmd], None],
        on_end: Callable[[Callable[[RoteError], None]], Callable[[], None]],
        name: str,
        library: "Library | None" = None,
    ) -> None:
        """Teach by `begin`; `on_end` calls back with why it must end before the block does."""
        self._port = port
        self._begin = begin
        self._on_end = on_end
        self._library = library
        self._take = LegTake(name)
        self._keeper: Keeper | None = None
        self._undo: list[Callable[[], None]] = []
        self._task: asyncio.Task[object] | None = None
        self._trouble: RoteError | None = None
        self._ending = False

    async def __aenter__(self) -> LegTake:
        if self._library is not None:
            source = self._take.track.source
            writer = self._library.record(self._take.name, A1.names, variant=A1.name, source=source)
            self._keeper = Keeper(writer)
        try:
            self._begin(LowCmd(motors=SOFT))
        except BaseException:
            await self._settle(wanted=False)
            raise
        self._task = asyncio.current_task()
        self._undo = [self._port.on_state(self._see), self._on_end(self._interrupt)]
        return self._take

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending = True
        for undo in self._undo:
            undo()
        if self._trouble is None:
            self._port.command(LowCmd(motors=BRAKED))
        interruption = error
        try:
            await to_the_end(self._settle(wanted=error is None or self._trouble is not None))
        except asyncio.CancelledError as cancelled:
            interruption = cancelled
        if self._trouble is not None:
            if isinstance(interruption, asyncio.CancelledError) and self._task is not None:
                self._task.uncancel()
            raise self._trouble from interruption
        if interruption is not None and interruption is not error:
            raise interruption

    def _see(self, state: State) -> None:
        assert isinstance(state, LowState)
        joints = tuple(state.motors.q_rad[:LEG_MOTORS].tolist())
        now = self._port.now()
        recorder = self._take._recorder
        if recorder.add(joints, state.tick, now) and self._keeper is not None:
            self._keeper.add(
                RobotState(positions_rad=joints, velocities_rad_s=(), time_us=recorder.ticks)
            )

    def _interrupt(self, error: RoteError) -> None:
        if self._trouble is None:
            self._trouble = error
            with suppress(RoteError):  # a robot that is lost was braked when it fell silent
                self._port.command(LowCmd(motors=BRAKED))
            if self._task is not None and not self._ending:
                self._task.cancel()

    async def _settle(self, *, wanted: bool) -> None:
        if self._keeper is None:
            return
        if wanted and self._take._recorder.tick_s != 1e-6:
            await self._save_anew(self._keeper)
        elif wanted and self._take.samples:
            self._take.file = await self._keeper.finish()
            self._take.file_problem = self._keeper.problem
        else:
            await self._keeper.discard()

    async def _save_anew(self, keeper: Keeper) -> None:
        """Save what was written with the wrong times, as only now can be known."""
        assert self._library is not None
        try:
            entry = await asyncio.to_thread(self._library.save, self._take.track, self._take.name)
        except RoteError as error:
            self._take.file_problem = error
            await keeper.leave()
        else:
            self._take.file = entry.path
            await keeper.discard()
