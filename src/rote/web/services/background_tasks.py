"""Tasks that a service runs in the background until it is closed."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class BackgroundTasks:
    """Keeps tasks from being collected, and cancels those that still run."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Task[T]":
        """Run `work` in the background."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def cancel(self) -> None:
        """Cancel all tasks. Safe to call twice."""
        for task in tuple(self._tasks):
            task.cancel()

    async def close(self) -> None:
        """Cancel all tasks and wait for their end."""
        self.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
