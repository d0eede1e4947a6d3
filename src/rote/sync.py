"""The same API, blocking: one background loop per connection, and no second set of classes.

    with rote.sync.connect("sim://g1") as robot:
        with robot.teach("wave") as take:
            input("Move the arms, then press Enter.")
        robot.play("wave", speed=0.8)

Every call runs on an event loop in its own thread. So it works in scripts, in Jupyter, and inside a
program that already runs a loop. `robot.play` blocks until the motion is over. `robot.start`
returns as soon as the robot has accepted; its result has `stop`, `wait` and `progress`.
"""

import asyncio
import functools
import inspect
import signal
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, suppress
from types import FrameType, TracebackType
from typing import Any, Unpack

from rote.client.wires import EMBEDDED
from rote.connection import Options
from rote.connection import connect as _connect
from rote.host.loop import new_loop
from rote.robot.playing import Playing

__all__ = ["connect", "Blocking"]

_END_S = 10.0


class _LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self) -> None:
        self._loop = new_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rote", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
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
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_end_all(), self._loop).result(_END_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        if not self._loop.is_running():
            self._loop.close()


async def _noted(work: Coroutine[Any, Any, Any], begun: list["asyncio.Task[Any]"]) -> Any:
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


class Blocking:
    """A proxy for an object of the asynchronous API: its methods block and return the results."""

    def __init__(self, thread: _LoopThread, target: object) -> None:
        self._thread = thread
        self._target = target

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._target, name)
        return self._blocking(value) if inspect.ismethod(value) else value

    def __dir__(self) -> list[str]:
        return dir(self._target)

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"

    def __iter__(self) -> Iterator[Any]:
        if not hasattr(self._target, "__aiter__"):
            raise TypeError(f"{self._target!r} cannot be iterated")
        return _iterate(self._thread, self._target.__aiter__())

    def _blocking(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            result = method(*args, **kwargs)
            return await result if isinstance(result, Awaitable) else result

        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return _wrap(self._thread, self._thread.run(call(*args, **kwargs)))

        functools.update_wrapper(wrapper, method)
        return wrapper


def _wrap(thread: _LoopThread, result: Any) -> Any:
    if isinstance(result, Playing):
        return Blocking(thread, result)
    if isinstance(result, AbstractAsyncContextManager):
        return _BlockingContext(thread, result)
    if isinstance(result, AsyncIterator):
        return _iterate(thread, result)
    return result


def _iterate(thread: _LoopThread, source: AsyncIterator[Any]) -> Iterator[Any]:
    async def following() -> Any:
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


class _BlockingContext:
    """An asynchronous context manager that is entered and left by a blocking `with`."""

    def __init__(self, thread: _LoopThread, context: AbstractAsyncContextManager[Any]) -> None:
        self._thread = thread
        self._context = context
        self._restore: list[tuple[int, Any]] = []

    def __enter__(self) -> Any:
        self._catch_signals()

        async def enter() -> Any:
            return await self._context.__aenter__()

        try:
            return _wrap(self._thread, self._thread.run(enter()))
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
            return bool(await self._context.__aexit__(kind, error, trace))

        try:
            return bool(self._thread.run(leave()))
        finally:
            self._restore_signals()

    def _catch_signals(self) -> None:
        """Turn SIGTERM and SIGHUP into an exception that unwinds the block, unless they are handled
        already.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        for number in (signal.SIGTERM, signal.SIGHUP):
            if signal.getsignal(number) is signal.SIG_DFL:
                self._restore.append((number, signal.signal(number, _unwind)))

    def _restore_signals(self) -> None:
        while self._restore:
            signal.signal(*self._restore.pop())


def _unwind(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Connection(_BlockingContext):
    """A connection together with its thread."""

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"this is not connected yet; write `with rote.sync.connect(...) as robot: robot.{name}`"
        )

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        try:
            return super().__exit__(kind, error, trace)
        finally:
            self._thread.stop()

    def __enter__(self) -> Any:
        try:
            return Blocking(self._thread, super().__enter__())
        except BaseException:
            self._thread.stop()
            raise


def connect(
    url: str = EMBEDDED, *, family: str | None = None, **options: Unpack[Options]
) -> _Connection:
    """Connect to the robot at `url` for as long as the `with` block runs.

    Arguments and errors are those of `rote.connect`. The block's value is a `Blocking` proxy of the
    robot: the same methods, without `await`.
    """
    return _Connection(_LoopThread(), _connect(url, family=family, **options))
