"""An asynchronous iterator over the states of a robot."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeVar

from rote.errors import RoteError

_State = TypeVar("_State")

MAX_WAITING = 256
"""Maximum number of states queued for a slow reader; beyond it the oldest are dropped."""


async def iterate_states(
    on_state: Callable[[Callable[[_State], object]], Callable[[], None]],
    on_loss: Callable[[Callable[[RoteError], None]], Callable[[], None]],
) -> AsyncIterator[_State]:
    """Yield states as they arrive; raises when the robot is lost.

    Both arguments are functions that take a listener and return a function that removes it.
    """
    queue: asyncio.Queue[_State | RoteError] = asyncio.Queue(MAX_WAITING)

    def put(item: _State | RoteError) -> None:
        if queue.full():
            queue.get_nowait()
        queue.put_nowait(item)

    undo = (on_state(put), on_loss(put))
    try:
        while True:
            item = await queue.get()
            if isinstance(item, RoteError):
                raise item
            yield item
    finally:
        for forget in undo:
            forget()
