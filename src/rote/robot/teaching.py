"""The `async with robot.teach(...)` block: joints are soft inside, and hold again after it."""

import asyncio
import signal
import threading
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from rote.errors import LinkError, RefusedError, RoteError
from rote.platform.loop import in_thread, to_the_end
from rote.platform.system import end_signals, on_signal
from rote.robot.link import Unfinished
from rote.robot.take import BackgroundTakeWriter, Take

if TYPE_CHECKING:
    from rote.motion.files.library import Library  # imported only if takes are kept


class TeachingBackend(Protocol):
    """The robot-specific part of teaching; each kind of robot implements it."""

    async def check(self) -> None:
        """Raise if teaching is not allowed, before anything goes soft."""

    async def begin(self, take: Take, end: Callable[[RoteError], None]) -> None:
        """Make the joints soft and add every pose to `take`.

        Call `end` if the teaching must end before its block does.
        """

    async def hold(self, *, keep: bool) -> None:
        """Make the joints hold again; discard the robot's recording unless `keep` is true.

        Called after every `begin`, even one that failed.
        """

    def stop_listening(self) -> None:
        """Add no more poses."""

    async def save(self, take: Take) -> None:
        """Have the robot store the take, if robots of this kind store actions."""


class Teaching:
    """`async with robot.teach("wave") as take`: joints are soft inside the block.

    They hold again however it ends: by success, an exception, cancellation, a lost answer, Ctrl-C,
    or a termination signal. The robot stores the take only if the block succeeded.
    If the robot goes silent, or another client ends the teaching, the block is interrupted and
    `PeerLostError` or `RefusedError` is raised; the samples so far stay on this computer.
    """

    def __init__(
        self,
        backend: TeachingBackend,
        take: Take,
        library: "Library | None" = None,
        unfinished: Unfinished | None = None,
    ) -> None:
        """The teaching is registered in `unfinished` while its joints may be soft."""
        self._backend = backend
        self._unfinished = Unfinished() if unfinished is None else unfinished
        self._take = take
        self._library = library
        self._writer: BackgroundTakeWriter | None = None
        self._interruption: RoteError | None = None
        """The error that interrupted the block."""
        self._task: asyncio.Task[object] | None = None
        self._cleanups: list[Callable[[], object]] = []
        self._signal: int | None = None
        self._ending = False

    async def __aenter__(self) -> Take:
        await self._backend.check()
        self._open_take_file()
        self._task = asyncio.current_task()
        self._catch_signals()
        self._unfinished.add(self, self._end_abandoned)
        try:
            # Inside the try: if only the reply is lost, the joints are soft anyway.
            await self._backend.begin(self._take, self._interrupt)
        except BaseException as error:
            await self._end_teaching(error)
            raise
        return self._take

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._end_teaching(error)

    async def _end_abandoned(self) -> None:
        """End the teaching when the connection closes: the joints hold, and nothing is stored."""
        await self._end_teaching(LinkError("the connection was closed"))

    async def _end_teaching(self, error: BaseException | None) -> None:
        """Make the joints hold, then save the take, or raise the error that interrupted it."""
        self._ending = True
        ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # A task that closes the connection meanwhile must only wait for this end.
        self._unfinished.add(self, partial(asyncio.wait, {ended}))
        take = self._take
        cancellation: asyncio.CancelledError | None = None
        try:
            keep = error is None and not take.discarded
            await to_the_end(self._backend.hold(keep=keep))
        except RefusedError:
            # The robot replied that no teaching of ours is running; the first error matters more.
            if error is None:
                raise
        except asyncio.CancelledError as cancelled:
            cancellation = cancelled
        finally:
            self._unfinished.remove(self)
            ended.set_result(None)
            self._backend.stop_listening()
            for cleanup in self._cleanups:
                cleanup()
            await to_the_end(
                self._finish_take_file(keep=error is None or self._interruption is not None)
            )
        self._raise_interruption(cancellation or error)
        if cancellation is not None:
            raise cancellation
        if error is None and not take.discarded:
            await self._backend.save(take)

    # ---- this computer's disk -------------------------------------------------------------------

    def _open_take_file(self) -> None:
        """Open the file of the take; a disk error is raised while nothing is soft yet."""
        if self._library is not None:
            take = self._take
            writer = self._library.record(
                take.name, take.build.names, variant=take.build.name, source=take.source
            )
            self._writer = BackgroundTakeWriter(writer, self._note_file_problem)
            self._cleanups.append(take.on_sample(self._writer.add))

    def _note_file_problem(self, error: RoteError) -> None:
        self._take.file_problem = error

    async def _finish_take_file(self, *, keep: bool) -> None:
        """Complete the take's file, or write it again from memory if its times are not the robot's
        or writing failed. Delete it if `keep` is false, the take is discarded, or it has no pose.
        """
        take, writer = self._take, self._writer
        if writer is None:
            return
        if not keep or take.discarded or not take.samples:
            await writer.discard()
        elif take.clock_is_the_robots:
            take.file = await writer.finish(take.track.marks)
            take.file_problem = writer.problem
            if take.file is None and take.samples > 1:
                await self._save_again(writer)
        else:
            await self._save_again(writer)

    async def _save_again(self, writer: BackgroundTakeWriter) -> None:
        """Write the whole take as a new file in place of the one of `writer`."""
        assert self._library is not None
        try:
            entry = await in_thread(self._library.save, self._take.track, self._take.name)
        except RoteError as error:
            self._take.file_problem = error
            await writer.close_incomplete()
        else:
            self._take.file, self._take.file_problem = entry.path, None
            await writer.discard()

    # ---- interruptions --------------------------------------------------------------------------

    def _interrupt(self, error: RoteError) -> None:
        if self._interruption is None:
            self._interruption = error
            self._cancel_block()

    def _on_signal(self, number: int) -> None:
        self._signal = number
        self._cancel_block()

    def _cancel_block(self) -> None:
        if self._task is not None and not self._ending:
            self._task.cancel()

    def _catch_signals(self) -> None:
        """Turn termination signals into a cancellation, unless they have a handler already."""
        if threading.current_thread() is not threading.main_thread():
            return
        loop = asyncio.get_running_loop()
        for number in end_signals():
            if signal.getsignal(number) is signal.SIG_DFL:
                self._cleanups.append(on_signal(loop, number, partial(self._on_signal, number)))

    def _raise_interruption(self, error: BaseException | None) -> None:
        """Raise the error or exit that caused the cancellation of the block, if there is one."""
        if self._interruption is not None:
            if isinstance(error, asyncio.CancelledError) and self._task is not None:
                self._task.uncancel()  # the cancellation was that of `_cancel_block`
            raise self._interruption from error
        if self._signal is not None:  # the exit code of a shell for a signal
            raise SystemExit(128 + self._signal) from error
