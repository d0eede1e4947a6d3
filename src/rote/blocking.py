"""Blocking calls: an event loop in a thread of its own, and proxies whose methods wait for it.

`proxy_of` fills a proxy class with the members of a class of the asynchronous API. What a blocking
method returns follows from the annotation of the asynchronous one:

    async def f() -> T, def f() -> Awaitable[T]   T, or its proxy if T has one
    def f() -> AsyncIterator[T]                   Iterator[T]
    def f() -> an asynchronous context manager    BlockingBlock
    def f() -> T                                  T
    a property of type T                          T, or its proxy if T has one
"""

import asyncio
import atexit
import functools
import inspect
import signal
import threading
import typing
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from rote.errors import RoteError
from rote.platform.loop import new_loop
from rote.platform.system import end_signals

_END_S = 10.0
T = TypeVar("T")
Face_co = TypeVar("Face_co", covariant=True)
Entered = TypeVar("Entered")
Kind = TypeVar("Kind", bound=type)


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
            raise RuntimeError("a blocking call inside rote's own loop would deadlock")
        if self._loop.is_closed():
            work.close()
            raise RuntimeError("the connection was closed")
        begun: list[asyncio.Task[Any]] = []
        future = asyncio.run_coroutine_threadsafe(_run_noting_task(work, begun), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                asyncio.run_coroutine_threadsafe(_wait_cancelled(begun, work), self._loop).result()
            raise

    def stop(self) -> None:
        """Cancel what still runs on the loop, then end the loop and its thread."""
        if self._loop.is_closed():
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancel_all_tasks(), self._loop).result(_END_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5.0)
        if not self._loop.is_running():
            self._loop.close()


async def _run_noting_task(work: Coroutine[Any, Any, T], begun: list["asyncio.Task[Any]"]) -> T:
    task = asyncio.current_task()
    assert task is not None
    begun.append(task)
    return await work


async def _wait_cancelled(begun: list["asyncio.Task[Any]"], work: Coroutine[Any, Any, Any]) -> None:
    """Wait until a cancelled coroutine has ended. One that has not started is dropped."""
    if begun:
        await asyncio.wait(begun)
    work.close()


async def _cancel_all_tasks() -> None:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    for task in others:
        task.cancel()
    if others:
        await asyncio.wait(others)


class Blocking:
    """A proxy for an object of the asynchronous API: its methods block and return the results."""

    def __init__(self, thread: LoopThread, target: Any) -> None:
        self._thread = thread
        self._target = target

    def __repr__(self) -> str:
        return f"<blocking {self._target!r}>"

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *_own_attributes(self._target)]

    if not TYPE_CHECKING:  # type checkers use the stub of `rote.sync`

        def __getattr__(self, name: str) -> Any:
            """Return an instance attribute of the target; its methods are in the proxy's class."""
            if name in _own_attributes(self._target):
                return getattr(self._target, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _wait(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Call `ask` on the loop, and wait for the result of its awaitable."""

        async def call() -> Any:
            return _face_of(self._thread, await ask())

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
        return _iterate_blocking(self._thread, self._call(ask))

    def _block(self, ask: Callable[[], Any]) -> "BlockingBlock[Any]":
        """Call `ask` on the loop, and return its asynchronous context manager as a blocking one."""
        return BlockingBlock(self._thread, self._call(ask), _face_of)


def _own_attributes(target: object) -> list[str]:
    return [name for name in getattr(target, "__dict__", ()) if not name.startswith("_")]


_FACES: dict[type, type[Blocking]] = {}
"""The proxy of each class of the asynchronous API."""


def _face_of(thread: LoopThread, value: Any) -> Any:
    """Return the proxy of a value; the value itself if its class has none."""
    faces = (_FACES[each] for each in type(value).__mro__ if each in _FACES)
    face = next(faces, None)
    return value if face is None else face(thread, value)


def proxy_of(
    source: type, docs: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Callable[[Kind], Kind]:
    """Return a class decorator that adds a blocking member for each public one of `source`.

    `docs` has the docstrings that differ from the asynchronous ones, by "Class.member". Members in
    `without`, and what the proxy has already, are left out.
    """

    def fill(face: Kind) -> Kind:
        _FACES[source] = face
        for name, member in vars(source).items():
            if (name.startswith("_") and name != "__aiter__") or name in without:
                continue
            if hasattr(Closable, name) and name != "__aiter__":
                continue
            doc = docs.get(f"{source.__name__}.{name}") or inspect.getdoc(member)
            if isinstance(member, property):
                setattr(face, name, _blocking_property(name, member, doc))
            elif inspect.isfunction(member):
                its_name = "__iter__" if name == "__aiter__" else name
                setattr(face, its_name, _blocking_method(name, member, doc))
        return face

    return fill


def _blocking_property(name: str, member: property, doc: str | None) -> property:
    assert member.fget is not None

    signature = inspect.signature(member.fget)
    returned = signature.return_annotation
    face = _FACES.get(returned) if inspect.isclass(returned) else None

    @functools.wraps(member.fget)
    def read(self: Blocking) -> Any:
        value = getattr(self._target, name)
        return value if face is None else face(self._thread, value)

    read.__signature__ = signature.replace(  # type: ignore[attr-defined]
        return_annotation=face or returned
    )
    return property(read, doc=doc)


def _blocking_method(name: str, method: Callable[..., Any], doc: str | None) -> Any:
    how, returned = _blocking_result(method)

    @functools.wraps(method)
    def call(self: Blocking, *args: Any, **options: Any) -> Any:
        return how(self, functools.partial(getattr(self._target, name), *args, **options))

    call.__doc__ = doc
    call.__annotations__ = {**method.__annotations__, "return": returned}
    call.__signature__ = inspect.signature(method).replace(  # type: ignore[attr-defined]
        return_annotation=returned
    )
    return call


def _blocking_result(method: Callable[..., Any]) -> tuple[Callable[[Blocking, Any], Any], Any]:
    """Return the wrapper that makes a call of an asynchronous method blocking, and the annotation
    of its result.
    """
    annotation = inspect.signature(method).return_annotation
    if isinstance(annotation, str):
        annotation = getattr(method, "__globals__", {}).get(annotation, annotation)
    if inspect.iscoroutinefunction(method):
        return Blocking._wait, _face_annotation(annotation)
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Awaitable:
        return Blocking._wait, _face_annotation(inner[0])
    if origin is AsyncIterator:
        return Blocking._iterate, Iterator[inner[0]]  # type: ignore[valid-type]
    if hasattr(annotation, "__aenter__"):
        entered = inspect.signature(annotation.__aenter__).return_annotation
        return Blocking._block, BlockingBlock[_face_annotation(entered)]  # type: ignore[misc]
    if hasattr(annotation, "__await__"):
        generator = inspect.signature(annotation.__await__).return_annotation
        return Blocking._wait, _face_annotation(typing.get_args(generator)[2])
    return Blocking._call, annotation


def _face_annotation(annotation: Any) -> Any:
    return _FACES.get(annotation, annotation) if inspect.isclass(annotation) else annotation


def _iterate_blocking(thread: LoopThread, source: AsyncIterator[T]) -> Iterator[T]:
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
                self._restore.append((number, signal.signal(number, _raise_system_exit)))

    def _restore_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        while self._restore:
            signal.signal(*self._restore.pop())


def _raise_system_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class BlockingConnection(BlockingBlock[Face_co]):
    """A connection together with its thread: `with` is its block, `open` goes without one."""

    if not TYPE_CHECKING:  # type checkers know the members

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


class Closable(Blocking):
    """The proxy of a robot, which can be closed."""

    _connection: BlockingConnection[Self] | None = None
    """Set if the robot was opened without a block."""

    def _keep_open(self, connection: "BlockingConnection[Self]") -> Self:
        """Stay connected until `close`, or until the interpreter ends."""
        self._connection = connection
        atexit.register(self._close_at_exit)
        return self

    def close(self) -> None:
        """End what was begun over this connection, then close it. Safe to repeat.

        Joints that are being taught hold, a playback stops softly. A `with rote.sync.connect(...)`
        block closes the connection by itself.
        """
        if self._thread.ended:
            return
        connection, self._connection = self._connection, None
        try:
            self._wait(self._target.close)
        finally:
            if connection is not None:
                atexit.unregister(self._close_at_exit)
                connection.__exit__(None, None, None)

    def _close_at_exit(self) -> None:
        with suppress(RoteError):
            self.close()
