"""Registry of the teachings and playbacks that a connection has begun and not ended."""

from collections.abc import Awaitable, Callable

from rote.errors import RoteError


class Unfinished:
    """The unfinished teachings and playbacks of one robot, each with a function that ends it."""

    def __init__(self) -> None:
        self._ends: dict[object, Callable[[], Awaitable[object]]] = {}
        self._lost: set[object] = set()

    def add(self, what: object, end: Callable[[], Awaitable[object]]) -> None:
        """Remember that `what` has begun, and that `end` ends it."""
        self._ends[what] = end

    def remove(self, what: object) -> None:
        """Forget what is over. Safe to repeat."""
        self._ends.pop(what, None)

    def lose(self, what: object) -> None:
        """Note that the robot was lost while `what` went on, so that nothing reports its end."""
        self._lost.add(what)

    def settle(self) -> None:
        """Forget what was lost: the robot has confirmed a stop, or begun another motion."""
        while self._lost:
            self.remove(self._lost.pop())

    async def end(self) -> None:
        """End everything: joints that are being taught hold, a playback stops softly.

        Everything is tried even if something fails; then the first error is raised.
        """
        first: RoteError | None = None
        while self._ends:
            _, end = self._ends.popitem()
            try:
                await end()
            except RoteError as error:
                first = first or error
        if first is not None:
            raise first
