"""Let simulated robots keep time although other tests compute: a real robot has its own computer.

On Linux a priority belongs to a thread, and the threads and processes that it starts inherit it.
Only root may raise one; elsewhere nothing changes.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

_NICE = -5


def take_precedence() -> None:
    """Raise the priority of the calling thread, and of what it starts from now on."""
    with suppress(OSError, AttributeError):
        os.setpriority(os.PRIO_PROCESS, 0, _NICE)


@contextmanager
def precedence() -> Iterator[None]:
    """Take precedence inside the block."""
    if not hasattr(os, "getpriority"):
        yield
        return
    before = os.getpriority(os.PRIO_PROCESS, 0)
    take_precedence()
    try:
        yield
    finally:
        os.setpriority(os.PRIO_PROCESS, 0, before)
