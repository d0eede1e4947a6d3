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

Callback = Callable[[], None]


def on_readable(
    loop: asyncio.AbstractEventLoop, watched: socket.socket, callback: Callback
) -> Callable[[], None]:
    """Call `callback` in the loop whenever `watched` is readable.

    Return a function that ends this; call it before the socket is closed.
    """
    descriptor = watched.fileno()
    try:
        loop.add_reader(descriptor, callback)
    except NotImplementedError:
        return _Watcher(loop, watched, callback).end
    return partial(_remove_reader, loop, descriptor)


def _remove_reader(loop: asyncio.AbstractEventLoop, descriptor: int) -> None:
    loop.remove_reader(descriptor)


class _Watcher:
    """Runs the callback in the loop whenever a thread finds the socket readable."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, watched: socket.socket, callback: Callback
    ) -> None:
        self._loop = loop
        self._watched = watched
        self._callback = callback
        self._ended = False
        self._callback_done = threading.Event()
        self._wake_socket, self._wake_receiver = socket.socketpair()
        threading.Thread(target=self._wait_for_socket, name="rote socket", daemon=True).start()

    def end(self) -> None:
        """End the thread; the callback is not called again. Safe to repeat."""
        self._ended = True
        self._wake_socket.close()  # makes the receiver readable, which wakes the thread
        self._callback_done.set()

    def _wait_for_socket(self) -> None:
        """Request the callback whenever the socket is readable, and wait until it has run."""
        with self._wake_receiver:
            while not self._ended:
                try:
                    readable = select.select([self._watched, self._wake_receiver], [], [])[0]
                except (OSError, ValueError):  # the socket was closed
                    return
                if self._wake_receiver in readable:  # `end` was called
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
                self._callback()
        finally:
            self._callback_done.set()
