"""The event loop rote runs on where the choice is its own: uvloop's where it is installed."""

import asyncio
import os


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


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
