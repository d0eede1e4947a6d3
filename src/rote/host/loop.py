"""The event loop rote runs on where the choice is its own: uvloop's where it is installed; the
clock to keep deadlines with on any loop, and waiting that no cancellation cuts short."""

import asyncio
import os
import time
from collections.abc import Awaitable, Callable


def new_loop() -> asyncio.AbstractEventLoop:
    """Return a new loop; a round trip over loopback takes two thirds of the time on uvloop."""
    if not all(map(_is_open, (0, 1, 2))):
        return asyncio.new_event_loop()  # uvloop gives up where a standard stream is closed
    try:
        import uvloop  # noqa: PLC0415 - optional, the extra `fast`
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


def clock_of(loop: asyncio.AbstractEventLoop) -> Callable[[], float]:
    """Return the clock to keep deadlines with: uvloop's own stands still for a millisecond at a
    time, and otherwise shows what `time.monotonic` does."""
    return time.monotonic if type(loop).__module__.startswith("uvloop") else loop.time


async def to_the_end(work: Awaitable[object]) -> None:
    """Wait for `work` even through cancellations, which are raised afterwards."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait({task})
        except asyncio.CancelledError as error:
            cancelled = error
    task.result()
    if cancelled is not None:
        raise cancelled


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
