"""Blocking calls: an event loop in a thread of its own, and proxies whose methods wait for it.

`proxy_of` fills a proxy class with the members of a class of the asynchronous API. What a blocking
method returns follows from the annotation of the asynchronous one:

    async def f() -> T, def f() -> Awaitable[T]   T, or its proxy if T has one
    def f() -> AsyncIterator[T]                   Iterator[T]
    def f() -> an asynchronous context manager    BlockingBlock
    def f() -> T                                  T
    a property of type T                          T, or its proxy if T has one

A positional argument that is a proxy is passed as its object, which keeps its own event loop.
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

_CANCEL_TIMEOUT_S = 10.0
"""Time limit for the tasks on the loop to end after they were cancelled."""
_JOIN_TIMEOUT_S = 5.0
T = TypeVar("T")
Proxy_co = TypeVar("Proxy_co", covariant=True)
Entered = TypeVar("Entered")
ProxyClass = TypeVar("ProxyClass", bound=type)


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

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result.

        Ctrl-C in this thread cancels the coroutine, and its clean-up is awaited: a playback, for
        example, stops the robot.
        """
        if threading.current_thread() is self._thread:
            coroutine.close()
            raise RuntimeError("a blocking call inside rote's own loop would deadlock")
        if self._loop.is_closed():
            coroutine.close()
            raise RuntimeError("the connection was closed")
        started: list[asyncio.Task[Any]] = []
        future = asyncio.run_coroutine_threadsafe(_run_and_register(coroutine, started), self._loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():  # False if the coroutine itself raised
                clean_up = _wait_cancelled(started, coroutine)
                asyncio.run_coroutine_threadsafe(clean_up, self._loop).result()
            raise

    def stop(self) -> None:
        """Cancel what still runs on the loop, then end the loop and its thread."""
        if self._loop.is_closed():
            return
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_cancel_all_tasks(), self._loop).result(
                _CANCEL_TIMEOUT_S
            )
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_JOIN_TIMEOUT_S)
        if not self._loop.is_running():
            self._loop.close()


async def _run_and_register(
    coroutine: Coroutine[Any, Any, T], started: list["asyncio.Task[Any]"]
) -> T:
    """Run a coroutine, and append its task to `started`."""
    task = asyncio.current_task()
    assert task is not None
    started.append(task)
    return await coroutine


async def _wait_cancelled(
    started: list["asyncio.Task[Any]"], coroutine: Coroutine[Any, Any, Any]
) -> None:
    """Wait until a cancelled coroutine has ended; close it if its task has not started."""
    if started:
        await asyncio.wait(started)
    coroutine.close()  # does nothing if it has ended


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
        return [*super().__dir__(), *_list_attributes(self._target)]

    if not TYPE_CHECKING:  # type checkers use the stub of `rote.sync`

        def __getattr__(self, name: str) -> Any:
            """Return an instance attribute of the target; its methods are in the proxy's class."""
            if name in _list_attributes(self._target):
                return getattr(self._target, name)
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _wait(self, function: Callable[[], Awaitable[Any]]) -> Any:
        """Call `function` on the loop, and wait for the result of its awaitable."""

        async def call() -> Any:
            return _make_proxy(self._thread, await function())

        return self._thread.run(call())

    def _call(self, function: Callable[[], T]) -> T:
        """Call `function` on the loop, and return what it returns."""
        if self._thread.ended:
            return function()  # the loop has ended, so nothing runs concurrently

        async def call() -> T:
            return function()

        return self._thread.run(call())

    def _iterate(self, function: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
        """Call `function` on the loop, and iterate over what it returns."""
        return _iterate_blocking(self._thread, self._call(function))

    def _block(self, function: Callable[[], Any]) -> "BlockingBlock[Any]":
        """Call `function` on the loop, and return its context manager as a blocking one."""
        return BlockingBlock(self._thread, self._call(function), _make_proxy)


def _list_attributes(target: object) -> list[str]:
    """Return the names of the public instance attributes of an object."""
    return [name for name in getattr(target, "__dict__", ()) if not name.startswith("_")]


_PROXIES: dict[type, type[Blocking]] = {}
"""The proxy of each class of the asynchronous API."""


def _make_proxy(thread: LoopThread, value: Any) -> Any:
    """Return the proxy of a value; the value itself if its class has none."""
    proxies = (_PROXIES[each] for each in type(value).__mro__ if each in _PROXIES)
    proxy = next(proxies, None)
    return value if proxy is None else proxy(thread, value)


def proxy_of(
    source: type, docs: Mapping[str, str], without: frozenset[str] = frozenset()
) -> Callable[[ProxyClass], ProxyClass]:
    """Return a class decorator that adds a blocking member for each public one of `source`.

    `docs` has the docstrings that differ from the asynchronous ones, by "Class.member". Members in
    `without`, and what the proxy has already, are left out.
    """

    def add_members(proxy: ProxyClass) -> ProxyClass:
        _PROXIES[source] = proxy
        for name, member in vars(source).items():
            is_private, is_inherited = name.startswith("_"), hasattr(Closable, name)
            if name in without or ((is_private or is_inherited) and name != "__aiter__"):
                continue
            doc = docs.get(f"{source.__name__}.{name}") or inspect.getdoc(member)
            if isinstance(member, property):
                setattr(proxy, name, _make_blocking_property(name, member, doc))
            elif inspect.isfunction(member):
                proxy_name = "__iter__" if name == "__aiter__" else name
                setattr(proxy, proxy_name, _make_blocking_method(name, member, doc))
        return proxy

    return add_members


def _make_blocking_property(name: str, member: property, doc: str | None) -> property:
    """Return a property of a proxy that reads `member` of its target."""
    assert member.fget is not None
    signature = inspect.signature(member.fget)
    returned = signature.return_annotation
    proxy = _PROXIES.get(returned) if inspect.isclass(returned) else None

    @functools.wraps(member.fget)
    def read(self: Blocking) -> Any:
        value = getattr(self._target, name)
        return value if proxy is None else proxy(self._thread, value)

    read.__signature__ = signature.replace(  # type: ignore[attr-defined]
        return_annotation=proxy or returned
    )
    return property(read, doc=doc)


def _make_blocking_method(name: str, method: Callable[..., Any], doc: str | None) -> Any:
    """Return a method of a proxy that calls `method` of its target, and waits for the result."""
    wrapper, returned = _find_wrapper(method)

    @functools.wraps(method)
    def call(self: Blocking, *args: Any, **options: Any) -> Any:
        # An argument that is a proxy is passed as its object.
        unwrapped = [arg._target if isinstance(arg, Blocking) else arg for arg in args]
        return wrapper(self, functools.partial(getattr(self._target, name), *unwrapped, **options))

    call.__doc__ = doc
    call.__annotations__ = {**method.__annotations__, "return": returned}
    call.__signature__ = inspect.signature(method).replace(  # type: ignore[attr-defined]
        return_annotation=returned
    )
    return call


def _find_wrapper(method: Callable[..., Any]) -> tuple[Callable[[Blocking, Any], Any], Any]:
    """Return the wrapper that makes a call of an asynchronous method blocking, and the annotation
    of its result.
    """
    annotation = inspect.signature(method).return_annotation
    if isinstance(annotation, str):  # the name of a class of the method's module
        annotation = getattr(method, "__globals__", {}).get(annotation, annotation)
    if inspect.iscoroutinefunction(method):
        return Blocking._wait, _find_proxy_class(annotation)
    origin, inner = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Awaitable:
        return Blocking._wait, _find_proxy_class(inner[0])
    if origin is AsyncIterator:
        return Blocking._iterate, Iterator[inner[0]]  # type: ignore[valid-type]
    if hasattr(annotation, "__aenter__"):
        entered = inspect.signature(annotation.__aenter__).return_annotation
        return Blocking._block, BlockingBlock[_find_proxy_class(entered)]  # type: ignore[misc]
    if hasattr(annotation, "__await__"):
        generator = inspect.signature(annotation.__await__).return_annotation
        result = typing.get_args(generator)[2]  # of Generator[yielded, sent, result]
        return Blocking._wait, _find_proxy_class(result)
    return Blocking._call, annotation


def _find_proxy_class(annotation: Any) -> Any:
    """Return the proxy of an annotated class; any other annotation unchanged."""
    return _PROXIES.get(annotation, annotation) if inspect.isclass(annotation) else annotation


def _iterate_blocking(thread: LoopThread, source: AsyncIterator[T]) -> Iterator[T]:
    """Yield the items of an asynchronous iterator on the loop of `thread`; close it at the end."""

    async def next_item() -> T:
        return await anext(source)

    async def close() -> None:
        if inspect.isasyncgen(source):
            await source.aclose()

    try:
        while True:
            try:
                yield thread.run(next_item())
            except StopAsyncIteration:
                return
    finally:
        with suppress(RuntimeError):
            thread.run(close())


class BlockingBlock(Generic[Proxy_co]):
    """An asynchronous block that is entered and left by a blocking `with`."""

    def __init__(
        self,
        thread: LoopThread,
        context: AbstractAsyncContextManager[Entered, bool | None],
        proxy: Callable[[LoopThread, Entered], Proxy_co],
    ) -> None:
        """`proxy` makes the block's value from what the asynchronous block returns."""
        self._thread = thread
        self._old_handlers: list[tuple[int, Any]] = []
        """The signals that are caught meanwhile, with the handler to restore."""

        async def enter() -> Proxy_co:
            return proxy(thread, await context.__aenter__())

        self._enter = enter
        self._leave = context.__aexit__

    def __enter__(self) -> Proxy_co:
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
                old_handler = signal.signal(number, _raise_system_exit)
                self._old_handlers.append((number, old_handler))

    def _restore_signals(self) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        while self._old_handlers:
            number, old_handler = self._old_handlers.pop()
            signal.signal(number, old_handler)


def _raise_system_exit(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)  # the exit code of a shell for a signal


class BlockingConnection(BlockingBlock[Proxy_co]):
    """A connection together with its thread: `with` is its block, `open` goes without one."""

    if not TYPE_CHECKING:  # type checkers know the members

        def __getattr__(self, name: str) -> Any:
            raise AttributeError(
                "this is not connected yet; write "
                f"`with rote.sync.connect(...) as robot: robot.{name}`"
            )

    def __enter__(self) -> Proxy_co:
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
            return False  # the robot was closed inside the block
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
