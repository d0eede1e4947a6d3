"""Calls a function whenever a socket can be read, on every event loop.

The loop that Windows starts has no `add_reader`. There a thread waits for the socket, and waits
again when the loop has acted.
"""

import asyncio
import select
import socket
import threading
from collections.abc import Callable
from functools import partial

Act = Callable[[], None]


def on_readable(
    loop: asyncio.AbstractEventLoop, one: socket.socket, act: Act
) -> Callable[[], None]:
    """Call `act` in the loop whenever `one` can be read; return a function that ends this.

    It has to be ended before the socket is closed.
    """
    number = one.fileno()
    try:
        loop.add_reader(number, act)
    except NotImplementedError:
        return _Watcher(loop, one, act).end
    return partial(_remove, loop, number)


def _remove(loop: asyncio.AbstractEventLoop, number: int) -> None:
    loop.remove_reader(number)


class _Watcher:
    """A thread that waits for a socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, one: socket.socket, act: Act) -> None:
        self._loop = loop
        self._one = one
        self._act = act
        self._ended = False
        self._acted = threading.Event()
        self._ours, self._theirs = socket.socketpair()
        threading.Thread(target=self._watch, name="rote socket", daemon=True).start()

    def end(self) -> None:
        """Call nothing any more; the thread ends by itself. Safe to repeat."""
        self._ended = True
        self._ours.close()  # wakes it
        self._acted.set()

    def _watch(self) -> None:
        with self._theirs:
            while not self._ended:
                try:
                    ready = select.select([self._one, self._theirs], [], [])[0]
                except (OSError, ValueError):  # the socket was closed
                    return
                if self._theirs in ready:
                    return
                self._acted.clear()
                try:
                    self._loop.call_soon_threadsafe(self._turn)
                except RuntimeError:  # the loop was closed
                    return
                self._acted.wait()

    def _turn(self) -> None:
        try:
            if not self._ended:
                self._act()
        finally:
            self._acted.set()
