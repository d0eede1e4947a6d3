"""A stage in one process and in virtual time: the bus is a table, and robots are simulated."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import cast

from rig import Rig, rig
from rote.errors import LinkError
from rote.robot.message_robot import G1
from rote.stage.agent import Agent
from rote.stage.conductor import Conductor
from rote.stage.keys import StageKeys
from rote.stage.stage import TRY_STAGE, Stage
from rote.transport.zenoh.bus import Answerer, Listener, StageBus


class TableBus:
    """The network of a stage without a network: what `StageBus` does, by a table."""

    def __init__(self) -> None:
        self._listeners: list[tuple[str, Listener]] = []
        self.answerers: list[tuple[str, Answerer]] = []
        self._watchers: list[Callable[[str, bool], None]] = []
        self.answers_after_s: dict[str, float] = {}
        """How long an answer to a question for this key takes."""
        self.drops: Callable[[str], bool] = lambda _: False
        """Whether a message for this key is lost."""
        self.urgent: set[str] = set()
        """The keys whose messages overtake others on a real bus."""

    def announce(self, key: str, *, urgent: bool = False) -> None:
        if urgent:  # all messages are equally quick here
            self.urgent.add(key)

    def publish(self, key: str, data: bytes) -> None:
        loop = asyncio.get_running_loop()
        if self.drops(key):
            return
        for pattern, listener in self._listeners:
            if fnmatchcase(key, pattern):
                loop.call_soon(listener, key, data)

    def subscribe(
        self, key: str, listener: Listener, *, newest: bool = False, own: bool = True
    ) -> None:
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
        self.answerers.append((key, answerer))

    def _answered(self, key: str, data: bytes) -> bytes | None:
        matching = [each for pattern, each in self.answerers if fnmatchcase(key, pattern)]
        answers = [answer for each in matching if (answer := each(key, data)) is not None]
        return answers[0] if answers else None

    async def ask(self, key: str, timeout_s: float, data: bytes = b"") -> bytes:
        await asyncio.sleep(self.answers_after_s.get(key, 0.0))
        answer = self._answered(key, data)
        if answer is None:
            raise LinkError(f"nobody has answered {key}")
        return answer

    def ask_for(
        self, key: str, timeout_s: float, answered: Callable[[bytes], None], data: bytes = b""
    ) -> None:
        if (answer := self._answered(key, data)) is not None:
            answered(answer)

    def declare(self, key: str) -> Callable[[], None]:
        """Nobody asks here who is there."""
        return lambda: None

    def watch(self, key: str, listener: Callable[[str, bool], None]) -> None:
        self._watchers.append(listener)

    def end_session(self, token: str) -> None:
        """Tell the watchers that the session behind a token has ended."""
        for listener in self._watchers:
            listener(token, False)


@dataclass
class MemoryStage:
    """A conductor, one agent, and the simulated robot behind it."""

    bus: TableBus
    stage: Stage
    conductor: Conductor
    agent: Agent
    rig: Rig
    robot: G1
    running: "asyncio.Task[None]" = field(repr=False)

    keys = StageKeys(TRY_STAGE)

    async def until(self, found: Callable[[], object], within_s: float = 60.0) -> None:
        async with asyncio.timeout(within_s):
            while not found():
                await asyncio.sleep(0.01)


@asynccontextmanager
async def memory_stage(wire: str = "memory") -> AsyncIterator[MemoryStage]:
    """Run a stage with one robot, called ann."""
    table = TableBus()
    bus = cast("StageBus", table)
    async with rig(wire) as one, one.connect() as robot, Conductor(bus, TRY_STAGE) as conductor:
        agent = Agent(bus, robot, "ann", TRY_STAGE)
        running = asyncio.create_task(agent.run())
        stage = Stage(conductor, mute=True)
        try:
            assert await conductor.wait_for_agents(("ann",), 30.0) == ()
            yield MemoryStage(table, stage, conductor, agent, one, robot, running)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
            await stage.close()
