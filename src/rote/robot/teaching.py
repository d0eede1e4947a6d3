"""Teaching: a block in which the arms are soft, after which they hold again, however it ends."""

import asyncio
import signal
import threading
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from rote import messages as m
from rote.errors import LinkError, RefusedError, RoteError, UnsupportedError
from rote.host.loop import to_the_end
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.motion.record import Recorder
from rote.motion.track import Track
from rote.robot.base import Port
from rote.robot.keeping import Keeper

if TYPE_CHECKING:
    from rote.motion.files.library import Library  # who keeps no takes need not load it

Asker = Callable[[m.Command], Awaitable[m.Reply]]

_STILL_THERE = (
    "Nothing was saved. The robot holds the recording until the next one: robot.save keeps it. "
    "Or teach again."
)
_TEACH_AGAIN = "Look what the robot has kept: rote list. Then teach again."


class Take:
    """One recording: being made inside the block, and here on our side after it."""

    def __init__(self, name: str, port: Port, ask: Asker) -> None:
        self.name = name
        self._port = port
        self._ask = ask
        self._paused = False
        self.saved = False
        """Whether the robot has stored it under its name."""
        self.file: Path | None = None
        """Where it is on our own disk, once the block is over, if it was to be kept."""
        self.file_problem: RoteError | None = None
        """Why it is not there."""
        self._recorder = Recorder(f"teach {name} over {port.wire}")
        self._track: Track | None = None
        self._discarded = False

    @property
    def track(self) -> Track:
        """The joints as the robot reported them, at the rate it reported them."""
        return self._track if self._track is not None else self._recorder.track()

    @property
    def samples(self) -> int:
        """How many states have been recorded so far."""
        return len(self._recorder)

    @property
    def discarded(self) -> bool:
        """Whether the robot is to store nothing."""
        return self._discarded

    def discard(self) -> None:
        """Do not save this take on the robot when the block ends."""
        self._discarded = True

    async def pause(self) -> None:
        """Leave out what happens from now on, on wires that can; the arms stay soft."""
        await self._pause(paused=True)

    async def resume(self) -> None:
        """Record again."""
        await self._pause(paused=False)

    async def _pause(self, *, paused: bool) -> None:
        if "pause" not in self._port.abilities:
            raise UnsupportedError("pause a recording", f"{self._port.wire}://", ("webrtc://",))
        await self._ask(m.PauseRecording(paused))
        self._paused = paused

    def _add(self, state: RobotState) -> bool:
        return state.recording and not self._paused and self._recorder.add(state)

    def _finish(self) -> None:
        self._track = self._recorder.track()


class Teaching:
    """`async with robot.teach("wave") as take`: the arms are soft inside the block.

    They hold again however it ends: by success, an exception, cancellation, a lost answer, Ctrl-C
    or a signal that asks the process to end. The robot stores the take only if the block succeeded.
    If the robot falls silent, or somebody else ends the teaching, the block is interrupted and
    `PeerLostError` or `RefusedError` is raised.
    """

    def __init__(
        self,
        port: Port,
        ask: Asker,
        check: Callable[[], Awaitable[bool]],
        name: str,
        library: "Library | None" = None,
    ) -> None:
        """Teach what `check` lets pass; it returns whether the robot has an action of that name."""
        self._port = port
        self._ask = ask
        self._check = check
        self._library = library
        self._keeper: Keeper | None = None
        self._take = Take(name, port, ask)
        self._loss: RoteError | None = None
        self._task: asyncio.Task[object] | None = None
        self._undo: list[Callable[[], object]] = []
        self._signal: int | None = None
        self._refused = False
        self._is_ours = False
        self._was_soft = False
        self._ending = False
        self._began_s = 0.0
        self._lasted_s = 0.0

    async def __aenter__(self) -> Take:
        self._is_ours = not await self._check()
        self._keep()
        self._task = asyncio.current_task()
        self._undo.append(self._port.on_loss(self._on_loss))
        self._catch_signals()
        try:
            # Inside the try: if only the answer is lost, the arms are soft all the same.
            await self._enter()
            self._undo.append(self._port.on_state(self._see))
            await self._ask(m.Record(on=True))
            self._began_s = asyncio.get_running_loop().time()
        except BaseException as error:
            await self._end(error)
            raise
        return self._take

    async def _enter(self) -> None:
        """Ask for soft arms. What the robot has under the name is ours once it says yes; until
        then, and if it never answers, only if there was nothing before."""
        try:
            await self._ask(m.EnterTeaching(self._port.latest, self._take.name))
        except RefusedError:
            self._refused = True
            raise
        self._is_ours = True

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end(error)

    async def _end(self, error: BaseException | None) -> None:
        """Make the arms hold, then save or tell why not."""
        self._ending = True
        self._lasted_s = asyncio.get_running_loop().time() - self._began_s
        interruption = error
        try:
            if not self._refused and not isinstance(self._loss, LinkError):
                await to_the_end(self._ask(m.ExitTeaching()))
                if self._is_ours and (error is not None or self._take.discarded):
                    await to_the_end(self._ask(m.DiscardRecording(self._take.name)))
        except RefusedError:
            # It is there and was not ours to end; what went wrong first matters more.
            if error is None:
                raise
        except asyncio.CancelledError as cancelled:
            interruption = cancelled
        finally:
            for undo in self._undo:
                undo()
            self._take._finish()
            await to_the_end(self._settle(wanted=error is None or self._loss is not None))
        self._raise_interruption(interruption)
        if interruption is not error:
            raise interruption or AssertionError
        if error is None and not self._take.discarded:
            await self._save()

    def _keep(self) -> None:
        """Begin to write the take to disk; what the disk refuses is told before arms get soft."""
        if self._library is not None:
            source = f"teach {self._take.name} over {self._port.wire}"
            width = len(self._port.latest.positions_rad) if self._port.latest else len(G1_29.names)
            writer = self._library.record(self._take.name, G1_29.names[:width], source=source)
            self._keeper = Keeper(writer)

    async def _settle(self, *, wanted: bool) -> None:
        """Complete the file, or throw it away. What came before a loss is worth keeping."""
        if self._keeper is None:
            return
        if wanted and not self._take.discarded:
            self._take.file = await self._keeper.finish()
            self._take.file_problem = self._keeper.problem
        else:
            await self._keeper.discard()

    async def _save(self) -> None:
        # By the robot's clock where it was heard: on a bad network our own began much too late.
        lasted_s = self._take.track.duration_s or self._lasted_s
        duration_ms = min(max(1, round(lasted_s * 1000)), m.MAX_DURATION_MS)
        save = m.SaveAction(
            name=self._take.name, created_s=int(time.time()), duration_ms=duration_ms
        )
        await self._ask(save)
        self._take.saved = True

    # ---- interruptions --------------------------------------------------------------------------

    def _see(self, state: RobotState) -> None:
        if self._take._add(state) and self._keeper is not None:
            self._keeper.add(state)
        if self._was_soft and not state.arms_soft and self._loss is None and not self._ending:
            # Somebody stopped it, or the robot itself did: the person must not go on unrecorded.
            self._on_loss(
                RefusedError(
                    m.Code.NOT_TEACHING,
                    "the teaching was ended by another client, or by the robot itself",
                    _STILL_THERE if "save" in self._port.abilities else _TEACH_AGAIN,
                )
            )
        self._was_soft = state.arms_soft

    def _on_loss(self, error: RoteError) -> None:
        self._loss = error
        self._interrupt()

    def _on_signal(self, number: int) -> None:
        self._signal = number
        self._interrupt()

    def _interrupt(self) -> None:
        if self._task is not None and not self._ending:
            self._task.cancel()

    def _catch_signals(self) -> None:
        """Turn SIGTERM and SIGHUP into a cancellation, where nobody else handles them."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                loop.add_signal_handler(number, self._on_signal, number)
                self._undo.append(partial(loop.remove_signal_handler, number))

    def _raise_interruption(self, error: BaseException | None) -> None:
        """Turn a cancellation of our own making into what caused it."""
        if self._loss is not None:
            if isinstance(error, asyncio.CancelledError) and self._task is not None:
                self._task.uncancel()
            raise self._loss from error
        if self._signal is not None:
            raise SystemExit(128 + self._signal) from error
