"""Runs a show: sends every agent its score, begins sections together, and stops all agents."""

import asyncio
import contextlib
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rote.errors import BadRequestError, DecodeError, RoteError
from rote.platform.clock import Suspensions
from rote.platform.loop import clock_of
from rote.session.stage_agent import CONDUCTOR_LOST_S
from rote.session.stage_conductor import (
    CONFIRM_S,
    ConductorEvent,
    ConductorSession,
    SectionEnded,
    SectionRefused,
    StopConfirmed,
    StopUnconfirmed,
)
from rote.stage.keys import StageKeys
from rote.stage.score_file import name_of, pack
from rote.stage.show.file import CueKind, LossRule, Section
from rote.stage.show.score import Score
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import AgentReader, AgentState, Stop, decode_stop, encode_clock

STATE_S = 0.1
STOP_REPEAT_DELAYS_S = (0.015, 0.04)
"""Delays after which a stop is repeated, because messages may get lost."""
RECEIVE_S = 0.02
"""Interval at which the states of the agents are collected; each pass reads many states."""
Listener = Callable[[ConductorEvent], None]


class SectionError(RoteError):
    """A section did not begin, or was ended."""

    kind = "section"
    exit_code = 5

    def __init__(
        self,
        section: str,
        reason: str,
        agents: tuple[str, ...] = (),
        lost: tuple[str, ...] = (),
    ) -> None:
        super().__init__(section, reason, agents, lost)
        self.section, self.reason, self.agents = section, reason, agents
        self.lost = lost
        """The agents that took part and were lost after it had begun."""
        self._note_remedy()

    def __str__(self) -> str:
        who = f" ({', '.join(self.agents)})" if self.agents else ""
        return f"the section {self.section!r} does not go on: {self.reason}{who}"

    @property
    def remedy(self) -> str:
        """What to do next."""
        return "Look at the state of the stage, and begin it again."


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The confirmations of a stop."""

    confirmed_s: float | None
    """Time until all agents had confirmed; None if an agent has not."""
    unconfirmed: tuple[str, ...] = ()
    """The agents that have not confirmed: their robots must be stopped by their remotes."""


def _section_error(event: SectionRefused) -> SectionError:
    return SectionError(event.section, event.reason, event.agents, event.lost)


class Conductor:
    """The conductor of one stage."""

    def __init__(self, bus: StageBus, stage: str) -> None:
        self._bus, self._keys = bus, StageKeys(stage)
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self.session = ConductorSession(uuid.uuid4().hex, lambda: uuid.uuid4().hex)
        self._suspensions = Suspensions()
        self._ran_s = self._clock()
        """When one of our periodic tasks last ran."""
        self._blobs: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._readers: defaultdict[str, AgentReader] = defaultdict(AgentReader)
        self._listeners: list[Listener] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Conductor":
        self._bus.answer(self._keys.clock, lambda _key, _data: encode_clock(self._clock()))
        self._bus.answer(self._keys.blob("*"), self._find_blob)
        states = self._bus.collect(self._keys.state("*"))
        self._bus.subscribe(self._keys.stop, self._on_stop)
        self._bus.watch(self._keys.token("*"), self._on_presence)
        self._bus.announce(self._keys.stop, urgent=True)
        self._bus.declare(self._keys.conductor_token)
        self._tasks = [
            self._loop.create_task(self._publish_periodically()),
            self._loop.create_task(self._receive_states(states)),
        ]
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def on_event(self, listener: Listener) -> Callable[[], None]:
        """Call `listener` with every event. Return a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    @property
    def agents(self) -> Mapping[str, AgentState]:
        """The newest state of every agent."""
        return self.session.agents

    @property
    def stop_holds(self) -> Stop | None:
        """The stop that holds until it is reset; None if there is none."""
        return self.session.current.stop

    async def stop_answer(self) -> StopAnswer | None:
        """Wait until all agents have confirmed the stop that holds, or the time for it is over;
        return None if no stop holds.
        """
        until_s = self._clock() + CONFIRM_S + 2 * STATE_S
        while self.stop_holds is not None:
            if self.session.confirmed_s is not None:
                return StopAnswer(self.session.confirmed_s)
            if self._clock() > until_s:
                return StopAnswer(None, self.session.unconfirmed)
            await asyncio.sleep(RECEIVE_S)
        return None

    def alive(self, name: str) -> bool:
        """Whether an agent is connected and publishes states."""
        return self.session.alive(name, self._clock())

    async def wait_for_agents(self, names: tuple[str, ...], timeout_s: float) -> tuple[str, ...]:
        """Wait until these agents are alive and know the clock; return those that are missing."""
        until_s = self._clock() + timeout_s
        while missing := tuple(name for name in names if not self._is_ready(name)):
            if self._clock() > until_s:
                return missing
            await asyncio.sleep(0.05)
        return ()

    def _is_ready(self, name: str) -> bool:
        return self.alive(name) and self.agents[name].clock_bound_s < 0.010

    # ---- the show -------------------------------------------------------------------------------

    async def play(
        self,
        section: Section,
        scores: Mapping[str, Score],
        sounds: Mapping[str, bytes] | None = None,
    ) -> SectionEnded:
        """Play one section with these agents, each with its score; return their reports, and the
        lost agents.

        `sounds` has the samples of each sound that a robot plays.

        Raises `SectionError` if it does not begin, or is stopped.
        """
        names = {}
        for name, score in scores.items():
            sound_names = {cue.value for cue in score.cues if cue.kind is CueKind.SOUND}
            needs = {each: self._store_blob((sounds or {})[each]) for each in sorted(sound_names)}
            names[name] = self._store_blob(await asyncio.to_thread(pack, score, needs))
        stop_on_loss = section.on_loss is LossRule.STOP_ALL
        refused = self.session.play(section.name, names, self._clock(), stop_on_loss=stop_on_loss)
        self._notify_listeners(refused)
        for event in refused:
            if isinstance(event, SectionRefused):
                raise _section_error(event)
        begun = self.session.current.run
        assert begun is not None
        ended: asyncio.Future[SectionEnded] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if ended.done():
                return
            if isinstance(event, SectionEnded) and event.run == begun.id:
                ended.set_result(event)
            elif isinstance(event, SectionRefused) and event.run == begun.id:
                ended.set_exception(_section_error(event))

        remove_listener = self.on_event(handle_event)
        try:
            self._publish_now()
            return await ended
        except asyncio.CancelledError:
            self._notify_listeners(self.session.cancel("the conductor ends"))
            self._publish_now()
            raise
        finally:
            remove_listener()

    async def stop(self, by: str) -> StopAnswer:
        """Stop all agents, and wait for the confirmations. It holds until `reset`."""
        answer: asyncio.Future[StopAnswer] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if answer.done():
                return
            if isinstance(event, StopConfirmed):
                answer.set_result(StopAnswer(event.after_s))
            elif isinstance(event, StopUnconfirmed):
                answer.set_result(StopAnswer(None, event.agents))

        remove_listener = self.on_event(handle_event)
        stop, events = self.session.stop(by, self._clock())
        # On a busy computer Zenoh drops messages, also those of a stop. So the stop is repeated
        # soon, and from the next state on it is in every state; agents carry it out once.
        message = stop.encode()
        self._bus.publish(self._keys.stop, message)
        again = [
            self._loop.call_later(wait_s, self._bus.publish, self._keys.stop, message)
            for wait_s in STOP_REPEAT_DELAYS_S
        ]
        self._notify_listeners(events)
        try:
            return await asyncio.wait_for(answer, CONFIRM_S + 2.0)
        except TimeoutError:
            return StopAnswer(None, tuple(sorted(self.agents)))
        finally:
            remove_listener()
            for each in again:
                each.cancel()

    def reset(self) -> None:
        """Release all agents from a stop. Raises `BadRequestError` if none holds."""
        if not self.session.reset():
            raise BadRequestError("no stop holds, so there is nothing to reset")
        self._publish_now()

    # ---- the bus --------------------------------------------------------------------------------

    def _store_blob(self, data: bytes) -> str:
        name = name_of(data)
        with self._lock:
            self._blobs[name] = data
        return name

    def _find_blob(self, key: str, _data: bytes) -> bytes | None:
        with self._lock:
            return self._blobs.get(key.rpartition("/")[2])

    def _notice_stall(self) -> None:
        """End the section if this process stalled for so long that the agents have stopped.

        Their messages were not received meanwhile, so none of them counts as lost.
        """
        stalled_s, self._ran_s = self._clock() - self._ran_s, self._clock()
        if stalled_s > CONDUCTOR_LOST_S:
            self._notify_listeners(self.session.stall(stalled_s, self._ran_s))
            self._publish_now()

    async def _receive_states(self, states: Callable[[], dict[str, bytes]]) -> None:
        while True:
            self._notice_stall()
            if suspended_s := self._suspensions.take():
                self._notify_listeners(self.session.resume(suspended_s))
                self._publish_now()
            if messages := states():
                with self._publishing_changes():
                    read = [
                        each
                        for key, data in messages.items()
                        if (each := self._read_state(key, data))
                    ]
                    self._notify_listeners(self.session.on_agent_states(*read, now_s=self._clock()))
            await asyncio.sleep(RECEIVE_S)

    def _read_state(self, key: str, data: bytes) -> AgentState | None:
        name = self._keys.agent_in(key)
        try:
            message = self._readers[name].read(data)
        except DecodeError:
            return None
        return message if message.name == name else None  # an agent must not publish for another

    def _on_stop(self, _key: str, data: bytes) -> None:
        with contextlib.suppress(DecodeError), self._publishing_changes():
            self._notify_listeners(self.session.adopt(decode_stop(data), self._clock()))

    @contextlib.contextmanager
    def _publishing_changes(self) -> Iterator[None]:
        """Publish at once if the requests to the agents have changed."""
        before = self.session.current
        yield
        if self.session.current is not before:
            self._publish_now()

    def _on_presence(self, key: str, is_there: bool) -> None:
        self._notice_stall()
        if not is_there and (name := self._keys.agent_in(key)):
            self._notify_listeners(self.session.on_agent_gone(name, self._clock()))
            self._publish_now()

    async def _publish_periodically(self) -> None:
        while True:
            self._notice_stall()
            self._notify_listeners(self.session.tick(self._clock()))
            self._publish_now()
            await asyncio.sleep(STATE_S)

    def _publish_now(self) -> None:
        self._bus.publish(self._keys.conductor, self.session.state().encode())

    def _notify_listeners(self, events: list[ConductorEvent]) -> None:
        for event in events:
            for listener in tuple(self._listeners):
                try:
                    listener(event)
                except Exception as error:  # the show must go on, and so must its stop
                    self._loop.call_exception_handler(
                        {"message": "a listener of the conductor failed", "exception": error}
                    )
