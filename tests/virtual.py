"""An event loop whose clock jumps: waiting costs no time, and sockets on loopback still work.

While a thread works for the loop, its clock stands still: such work takes no time either.
"""

import asyncio
import os
import selectors
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar

from rote.platform import clock

T = TypeVar("T")

YIELDS = 3
"""How often the kernel's own thread may run before time passes: with one, a datagram was late once
in some thousand tests."""
PATIENCE_S = 90.0
"""Timeout for work in other threads, in real time: a busy computer may delay it for long."""


class _JumpingSelector(selectors.DefaultSelector):
    """Where the loop would wait, the clock is put forward instead."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.at_work = 0
        """How many threads work for the loop."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        # On a busy computer the kernel delivers datagrams on loopback a moment later, in a thread
        # of its own: let it, before time passes. The loop's own pipe is no socket of a test.
        if len(self.get_map()) > 1 and hasattr(os, "sched_yield"):
            for _ in range(YIELDS):
                os.sched_yield()
                if ready := super().select(0):
                    return ready
        # While threads work, and if nothing is scheduled, only another thread can go on.
        if self.at_work or timeout is None:
            ready = super().select(PATIENCE_S)
            assert ready, "the test waits for something that will never happen"
            return ready
        self.now += max(timeout, 0.0)
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop in which an hour passes in a moment."""

    def __init__(self) -> None:
        self.jumping = _JumpingSelector()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now

    def hang(self, seconds: float) -> None:
        """Let time pass while nothing runs, as on a computer that is busy elsewhere."""
        self.jumping.now += seconds

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., T], *args: Any
    ) -> asyncio.Future[T]:
        result = super().run_in_executor(executor, func, *args)
        self.jumping.at_work += 1
        result.add_done_callback(self._has_worked)
        return result

    def _has_worked(self, _: object) -> None:
        self.jumping.at_work -= 1


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(work)


def hang(seconds: float) -> None:
    """Let the running loop hang for `seconds` of its time."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    loop.hang(seconds)


class _Suspension:
    """Time that only clocks which count suspend have seen; it only grows, as on a computer."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._real = clock.suspended_s
        clock.suspended_s = self.read

    def read(self) -> float:
        return self._real() + self.seconds


_suspension: _Suspension | None = None


def suspend(seconds: float) -> None:
    """Suspend this computer, as its programs see it: the loop's own clock stands still."""
    global _suspension  # noqa: PLW0603 - the clock of the process is one, too
    if _suspension is None:
        _suspension = _Suspension()
    _suspension.seconds += seconds
