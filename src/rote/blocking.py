"""Blocking calls: an event loop in a thread of its own, and proxies whose methods wait for it.

`rote.blocking_robots` has a proxy for each class of the asynchronous API; `rote.sync` makes them.
"""

import asyncio
import atexit
import inspect
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from rote.errors import RoteError
from rote.platform.loop import new_loop
from rote.platform.system import end_signals

_END_S = 10.0
T = TypeVar("T")
Target_co = TypeVar("Target_co", covariant=True)
Face_co = TypeVar("Face_co", covariant=True)
Entered = TypeVar("Entered")


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rote", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> bool:
        """Whether the loop was stopped."""
        return self._loop.is_closed()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result.

        Ctrl-C in this thread cancels the coroutine, and its clean-up is awaited: a playback, for
        example, stops the robot.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a blocking call inside rote's own loop would wait for itself")
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the connection was closed")
        begun: list[asyncio.Task[Any]] = []
        future = asyncio.run_coroutine_threadsafe(_noted(work, begun), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                asyncio.run_coroutine_threadsafe(_ended(begun, work), self._loop).result()
            raise

    def stop(self) -> None:
        """Cancel what still runs on the loop, then end the loop and its thread."""
        if self._loop.is_closed():
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result(_END_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        if not self._loop.is_running():
            self._loop.close()


async def _noted(work: Coroutine[Any, Any, T], begun: list["asyncio.Task[Any]"]) -> T:
    task = asyncio.current_task()
    assert task is not None
    begun.append(task)
    return await work


async def _ended(begun: list["asyncio.Task[Any]"], work: Coroutine[Any, Any, Any]) -> None:
    """Wait until a cancelled coroutine has ended. One that has not started is dropped."""
    if begun:
        await asyncio.wait(begun)
    work.close()


async def _end_all() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)


class Blocking(Generic[Target_co]):
    """A proxy for an object of the asynchronous API: its methods block and return the results."""

    def __init__(self, thread: LoopThread, target: Target_co) -> None:
        self._thread = thread
        self._target = target

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"

    def _run(self, ask: Callable[[], Awaitable[T]]) -> T:
        """Call `ask` on the loop, and wait for what it returns."""

        async def call() -> T:
            return await ask()

        return self._thread.run(call())

    def _call(self, ask: Callable[[], T]) -> T:
        """Call `ask` on the loop, and return what it returns."""
        if self._thread.ended:
            return ask()  # nothing else can be going on

        async def call() -> T:
            return ask()

        return self._thread.run(call())

    def _iterate(self, ask: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        """Call `ask` on the loop, and iterate over what it returns."""
        return _iterate(self._thread, self._call(ask))


def _iterate(thread: LoopThread, source: AsyncIterator[T]) -> Iterator[T]:
    async def following() -> T:
        return await anext(source)

    async def close() -> None:
        if inspect.isasyncgen(source):
            await source.aclose()

    try:
        while True:
            try:
                yield thread.run(following())
            except StopAsyncIteration:
                return
    finally:
        with suppress(RuntimeError):
            thread.run(close())


class BlockingBlock(Generic[Face_co]):
    """An asynchronous block that is entered and left by a blocking `with`."""

    def __init__(
        self,
        thread: LoopThread,
        context: AbstractAsyncContextManager[Entered, bool | None],
        face: Callable[[LoopThread, Entered], Face_co],
    ) -> None:
        """`face` makes the block's value from what the asynchronous block returns."""
        self._thread = thread
        self._restore: list[tuple[int, Any]] = []

        async def enter() -> Face_co:
            return face(thread, await context.__aenter__())

        self._enter = enter
        self._leave = context.__aexit__

    def __enter__(self) -> Face_co:
        self._catch_signals()
        try:
            return self._thread.run(self._enter())
        except BaseException:
            self._restore_signals()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        async def leave() -> bool:
            return bool(await self._leave(kind, error, trace))

        try:
            return self._thread.run(leave())
        finally:
            self._restore_signals()

    def _catch_signals(self) -> None:
        """Turn SIGTERM and SIGHUP into an exception that unwinds the block, unless they are handled
        already.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in end_signals():
            if signal.getsignal(number) is signal.SIG_DFL:
                self._restore.append((number, signal.signal(number, _unwind)))

    def _restore_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        while self._restore:
            signal.signal(*self._restore.pop())


def _unwind(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class BlockingConnection(BlockingBlock[Face_co]):
    """A connection together with its thread: `with` is its block, `open` goes without one."""

    if not TYPE_CHECKING:  # a checker knows what there is

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                "this is not connected yet; write "
                f"`with rote.sync.connect(...) as robot: robot.{name}`"
            )

    def __enter__(self) -> Face_co:
        try:
            return super().__enter__()
        except BaseException:
            self._thread.stop()
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if self._thread.ended:
            self._restore_signals()
            return False  # it was closed inside the block
        try:
            return super().__exit__(kind, error, trace)
        finally:
            self._thread.stop()


class Closable(Blocking[Target_co]):
    """The proxy of a robot, which can be closed."""

    _connection: BlockingConnection[Self] | None = None
    """Set where the robot was opened without a block."""

    def _keep_open(self, connection: "BlockingConnection[Self]") -> Self:
        """Stay connected until `_close`, or until the interpreter ends."""
        self._connection = connection
        atexit.register(self._at_exit)
        return self

    def _close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Close the robot, and end the thread of a robot that was opened without a block."""
        if self._thread.ended:
            return
        connection, self._connection = self._connection, None
        try:
            self._run(close)
        finally:
            if connection is not None:
                atexit.unregister(self._at_exit)
                connection.__exit__(None, None, None)

    def _at_exit(self) -> None:
        with suppress(RoteError):
            self.close()

    def close(self) -> None:
        """Close the connection."""
        raise NotImplementedError
