"""Call a function whenever a socket is readable, on every event loop.

The default loop on Windows has no `add_reader`: there a thread waits for the socket, and waits
again after the callback has run.
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
    """Call `act` in the loop whenever `one` is readable; return a function that ends this.

    Call that function before the socket is closed.
    """
    number = one.fileno()
    try:
        loop.add_reader(number, act)
    except NotImplementedError:
        return _Watcher(loop, one, act).end
    return partial(_remove_reader, loop, number)


def _remove_reader(loop: asyncio.AbstractEventLoop, number: int) -> None:
    loop.remove_reader(number)


class _Watcher:
    """A thread that waits for a socket."""

    def __init__(self, loop: asyncio.AbstractEventLoop, one: socket.socket, act: Act) -> None:
        self._loop = loop
        self._one = one
        self._act = act
        self._ended = False
        self._callback_done = threading.Event()
        self._wake_end, self._thread_end = socket.socketpair()
        threading.Thread(target=self._wait_for_socket, name="rote socket", daemon=True).start()

    def end(self) -> None:
        """End the thread; `act` is not called again. Safe to repeat."""
        self._ended = True
        self._wake_end.close()  # wakes it
        self._callback_done.set()

    def _wait_for_socket(self) -> None:
        with self._thread_end:
            while not self._ended:
                try:
                    ready = select.select([self._one, self._thread_end], [], [])[0]
                except (OSError, ValueError):  # the socket was closed
                    return
                if self._thread_end in ready:
                    return
                self._callback_done.clear()
                try:
                    self._loop.call_soon_threadsafe(self._run_callback)
                except RuntimeError:  # the loop was closed
                    return
                self._callback_done.wait()

    def _run_callback(self) -> None:
        try:
            if not self._ended:
                self._act()
        finally:
            self._callback_done.set()
