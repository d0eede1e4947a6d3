"""The bus of a stage in memory, for tests in virtual time: every message arrives at once."""

import asyncio
from collections.abc import Callable
from fnmatch import fnmatchcase

from rote.carrier.zenoh_bus import Answerer, Listener
from rote.errors import LinkError


class MemoryBus:
    """What `StageBus` does, for a conductor and agents in one event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: list[tuple[str, Listener]] = []
        self._answerers: list[tuple[str, Answerer]] = []

    def publish(self, key: str, data: bytes) -> None:
        for wanted, listener in self._listeners:
            if fnmatchcase(key, wanted):
                self._loop.call_soon(listener, key, data)

    def announce(self, key: str, *, urgent: bool = False) -> None:
        """All messages are equally quick."""

    def subscribe(self, key: str, listener: Listener, *, newest: bool = False) -> None:
        del newest
        self._listeners.append((key, listener))

    def collect(self, key: str) -> Callable[[], dict[str, bytes]]:
        waiting: dict[str, bytes] = {}
        self.subscribe(key, waiting.__setitem__)

        def take() -> dict[str, bytes]:
            taken = dict(waiting)
            waiting.clear()
            return taken

        return take

    def answer(self, key: str, answerer: Answerer) -> None:
        self._answerers.append((key, answerer))

    async def ask(self, key: str, timeout_s: float, data: bytes = b"") -> bytes:
        answers: list[bytes] = []
        self.ask_for(key, timeout_s, answers.append, data)
        await asyncio.sleep(0.001)
        if not answers:
            raise LinkError(f"nobody has answered {key}")
        return answers[0]

    def ask_for(
        self, key: str, _timeout_s: float, answered: Callable[[bytes], None], data: bytes = b""
    ) -> None:
        for wanted, answerer in self._answerers:
            if fnmatchcase(key, wanted) and (answer := answerer(key, data)) is not None:
                self._loop.call_soon(answered, answer)

    def declare(self, key: str) -> None:
        """Nobody is lost in one process."""

    def watch(self, key: str, listener: Callable[[str, bool], None]) -> None:
        """Nobody is lost in one process."""
