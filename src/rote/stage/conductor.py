"""Runs a show: sends every agent its score, begins sections together, and stops all agents."""

import asyncio
import contextlib
import math
import threading
import uuid
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass

from rote.errors import BadRequestError, DecodeError, RoteError
from rote.platform.clock import Suspensions
from rote.platform.loop import clock_of
from rote.session.stage_agent import CONDUCTOR_LOST_S
from rote.session.stage_conductor import ConductorSession, Standing
from rote.session.stage_events import (
    ConductingBegan,
    ConductorEvent,
    SectionEnded,
    SectionRefused,
    StopConfirmed,
    StopUnconfirmed,
    Superseded,
)
from rote.session.stage_stops import CONFIRM_S
from rote.stage.keys import StageKeys
from rote.stage.score_file import name_of, pack
from rote.stage.show.file import CueKind, LossRule, Section
from rote.stage.show.score import Score
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import (
    AgentReader,
    AgentState,
    LeadChange,
    Stop,
    decode_conductor,
    decode_reset,
    decode_stop,
    encode_clock,
)

STATE_S = 0.1
IDLE_STATE_S = 0.2
"""Interval of the conductor's states while no section plays and no stop is active; a change is
published at once."""
STOP_REPEAT_DELAYS_S = (0.015, 0.04)
"""Delays after which a stop is repeated, because messages may get lost."""
RECEIVE_S = 0.02
"""Interval at which the states of the agents are collected; each pass reads many states."""
LATE_GO_S = 0.5
"""After this computer hung: time in which GO is refused, because it may have been given before."""
_HICCUP_S = 0.1
"""A stall of this length within `LATE_GO_S` restarts it: commands from before may still wait."""
Listener = Callable[[ConductorEvent], None]


class SectionError(RoteError):
    """A section, or the show before its first section, did not begin or was ended."""

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
        agents = f" ({', '.join(self.agents)})" if self.agents else ""
        if not self.section:
            return f"the show cannot begin: {self.reason}{agents}"
        return f"the section {self.section!r} was ended or refused: {self.reason}{agents}"

    @property
    def remedy(self) -> str:
        """What to do next."""
        return "Check the state of the stage, then begin the section again."


class SupersededError(SectionError):
    """Another conductor has taken over the stage; the show does not go on here."""

    kind = "superseded"

    def __init__(self, section: str) -> None:
        super().__init__(section, "another conductor has taken over")

    def __str__(self) -> str:
        return "another conductor has taken over this stage; this one no longer conducts"

    @property
    def remedy(self) -> str:
        """What to do next."""
        return "Go on at that conductor. This one can be started again as its standby."


@dataclass(frozen=True, slots=True)
class StopAnswer:
    """The confirmations of a stop."""

    confirmed_s: float | None
    """Time until all agents had confirmed; None if an agent has not."""
    unconfirmed: tuple[str, ...] = ()
    """The agents that have not confirmed: their robots must be stopped by their remotes."""


def _make_section_error(event: SectionRefused) -> SectionError:
    return SectionError(event.section, event.reason, event.agents, event.lost)


class Conductor:
    """The conductor of one stage."""

    def __init__(self, bus: StageBus, stage: str, *, standby: bool = False) -> None:
        """A `standby` conducts only after it has received and lost another conductor."""
        self._bus, self._keys = bus, StageKeys(stage)
        self._loop = asyncio.get_running_loop()
        self._clock = clock_of(self._loop)
        self.session = ConductorSession(uuid.uuid4().hex, lambda: uuid.uuid4().hex, standby=standby)
        self._withdraw_token: Callable[[], None] = lambda: None
        self._suspensions = Suspensions()
        self._last_run_s = self._clock()
        """When one of our periodic tasks last ran."""
        self._continued_s = -math.inf
        """When this process last continued after a stall or suspension."""
        self._blobs: dict[str, bytes] = {}
        self._blobs_lock = threading.Lock()
        self._readers: defaultdict[str, AgentReader] = defaultdict(AgentReader)
        self._listeners: list[Listener] = []
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> "Conductor":
        self._bus.answer(self._keys.clock, self._answer_clock)
        self._bus.answer(self._keys.blob("*"), self._find_blob)
        states = self._bus.collect(self._keys.state("*"))
        self._bus.subscribe(self._keys.stop, self._on_stop)
        self._bus.subscribe(self._keys.reset, self._on_reset)
        self._bus.subscribe(self._keys.conductor, self._on_conductor_state, newest=True, own=False)
        self._bus.watch(self._keys.token("*"), self._on_presence)
        self._bus.announce(self._keys.stop, urgent=True)
        if not self.session.is_standby:
            self._withdraw_token = self._bus.declare(self._keys.conductor_token)
        self._tasks = [
            self._loop.create_task(self._publish_periodically()),
            self._loop.create_task(self._receive_states(states)),
        ]
        return self

    async def __aexit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            self.cancel("the conductor ends")
            if kind is None or issubclass(kind, asyncio.CancelledError | KeyboardInterrupt):
                self.session.end()
                self._publish_now()
        finally:
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
        return self.session.agents.states

    @property
    def active_stop(self) -> Stop | None:
        """The stop that is active until it is reset; None if there is none."""
        return self.session.stops.active

    async def wait_for_stop_answer(self) -> StopAnswer | None:
        """Wait until all agents have confirmed the active stop; give up soon after `CONFIRM_S`.

        The answer names the agents that have not confirmed; it is None if no stop is active.
        """
        until_s = self._clock() + CONFIRM_S + 2 * STATE_S
        while self.active_stop is not None:
            stops = self.session.stops
            if stops.confirmed_s is not None:
                return StopAnswer(stops.confirmed_s)
            if self._clock() > until_s:
                return StopAnswer(None, stops.unconfirmed)
            await asyncio.sleep(RECEIVE_S)
        return None

    def alive(self, name: str) -> bool:
        """Whether an agent is connected and publishes states."""
        return self.session.agents.is_alive(name, self._clock())

    async def wait_for_agents(self, names: tuple[str, ...], timeout_s: float) -> tuple[str, ...]:
        """Wait until these agents are alive and know the clock; return those that are missing."""
        until_s = self._clock() + timeout_s
        while True:
            self.require_conducting()
            missing = tuple(name for name in names if not self._is_ready(name))
            if not missing or self._clock() > until_s:
                return missing
            await asyncio.sleep(0.05)

    def _is_ready(self, name: str) -> bool:
        if not self.alive(name):
            return False
        state = self.agents[name]
        return state.conductor == self.session.epoch and state.clock_bound_s < 0.010

    # ---- the show -------------------------------------------------------------------------------

    async def play(
        self,
        section: Section,
        scores: Mapping[str, Score],
        sounds: Mapping[str, bytes] | None = None,
        may_drop: Collection[str] = (),
    ) -> SectionEnded:
        """Play one section; `scores` has the score of each agent.

        `sounds` has the samples of each sound that a robot plays. If an agent of `may_drop` is
        lost, the others go on. Return the agents' reports and the lost agents. Raises
        `SectionError` if the section does not begin, or is stopped.
        """
        self.require_conducting()
        score_hashes, endings = {}, self.session.endings
        for name, score in scores.items():
            sound_names = {cue.value for cue in score.cues if cue.kind is CueKind.SOUND}
            hashes = {each: self._store_blob((sounds or {})[each]) for each in sorted(sound_names)}
            score_hashes[name] = self._store_blob(await asyncio.to_thread(pack, score, hashes))
        if self.session.endings != endings:
            raise SectionError(section.name, "it was cancelled before it began")
        stop_on_loss = section.on_loss is LossRule.STOP_ALL
        events = self.session.play(
            section.name, score_hashes, self._clock(), stop_on_loss=stop_on_loss, may_drop=may_drop
        )
        self._notify_listeners(events)
        for event in events:
            if isinstance(event, SectionRefused):
                raise _make_section_error(event)
        run = self.session.section.run
        assert run is not None
        ended: asyncio.Future[SectionEnded] = self._loop.create_future()

        def handle_event(event: ConductorEvent) -> None:
            if ended.done():
                return
            if isinstance(event, SectionEnded) and event.run == run.id:
                ended.set_result(event)
            elif isinstance(event, SectionRefused) and event.run == run.id:
                is_superseded = self.session.standing is Standing.SUPERSEDED
                ended.set_exception(
                    SupersededError(section.name) if is_superseded else _make_section_error(event)
                )

        remove_listener = self.on_event(handle_event)
        try:
            self._publish_now()
            return await ended
        except asyncio.CancelledError:
            self.cancel("the conductor ends")
            raise
        finally:
            remove_listener()

    def require_conducting(self) -> None:
        """Raise an error if another conductor conducts: `SupersededError` if for good."""
        if self.session.standing is Standing.SUPERSEDED:
            raise SupersededError("")
        if reason := self.session.refusal:
            raise BadRequestError(reason, "Do it at that conductor. STOP works here, too.")

    def refuse_late_go(self) -> None:
        """Raise `BadRequestError` if GO may have been given while this computer hung.

        It was given for what the person saw before, and would move the robots only now.
        """
        self._notice_stall()
        self._notice_suspension()
        if self._clock() - self._continued_s < LATE_GO_S:
            raise BadRequestError(
                "this computer hung until just now, so this GO may have been given before",
                "Look at the robots, then give GO again.",
            )

    def cancel(self, reason: str) -> None:
        """End the section: moving robots stop softly. No stop needs to be reset after it."""
        self._notify_listeners(self.session.cancel(reason))
        self._publish_now()

    def pause(self) -> None:
        """Pause the section that plays. It is not a stop: the robots hold their poses.

        Raises `BadRequestError` if it cannot be paused now; then nothing has changed.
        """
        self.require_conducting()
        refusal = self.session.section.pause(self._clock())
        self._publish_unless_refused(refusal, "the section cannot be paused")

    def resume(self) -> None:
        """Let a paused section go on along the same path, all robots together.

        Raises `BadRequestError` if a robot does not hold its pose; then all stay paused.
        """
        refusal = self.session.section.resume(self._clock())
        self._publish_unless_refused(refusal, "the section cannot go on")

    def _publish_unless_refused(self, refusal: tuple[str, tuple[str, ...]], what: str) -> None:
        reason, names = refusal
        if reason:
            concerned = f" ({', '.join(names)})" if names else ""
            raise BadRequestError(
                f"{what}: {reason}{concerned}", "Try again in a moment, or stop all robots."
            )
        self._publish_now()

    @property
    def holds(self) -> tuple[tuple[float, float | None], ...]:
        """The pauses of the section, by this clock; the end of an open one is None."""
        run = self.session.section.run
        return () if run is None else run.holds

    def set_lead(self, agent: str, name: str, seconds: float | None) -> None:
        """Change how early an agent requests an action or sound; None to measure it again."""
        self._bus.publish(self._keys.leads(agent), LeadChange(name, seconds).encode())

    def leave_out(self, name: str) -> None:
        """Take an agent out of the section: it stops softly, and the others go on."""
        if self.session.section.leave_out(name):
            self._publish_now()

    async def stop(self, by: str) -> StopAnswer:
        """Stop all agents, and wait for the confirmations. The stop is active until `reset`."""
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
        # On a busy computer Zenoh drops messages, even a stop. So the stop is repeated soon, and
        # every state from the next one on contains it; agents carry it out once.
        message = stop.encode()
        self._bus.publish(self._keys.stop, message)
        repetitions = [
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
            for repetition in repetitions:
                repetition.cancel()

    def reset(self) -> None:
        """Release all agents from a stop. Raises `BadRequestError` if none is active."""
        self.require_conducting()
        if not self.session.stops.reset():
            raise BadRequestError("no stop is active, so there is nothing to reset")
        self._publish_now()

    def reset_stop(self, stop: Stop) -> bool:
        """Release all agents from this stop; return False if it is not the active one."""
        if not self.session.stops.is_active(stop.id):
            return False
        self.reset()
        return True

    # ---- the bus --------------------------------------------------------------------------------

    def _store_blob(self, data: bytes) -> str:
        name = name_of(data)
        with self._blobs_lock:
            self._blobs[name] = data
        return name

    def _find_blob(self, key: str, _data: bytes) -> bytes | None:
        with self._blobs_lock:
            return self._blobs.get(key.rpartition("/")[2])

    def _answer_clock(self, _key: str, epoch: bytes) -> bytes | None:
        """Answer an agent that obeys this conductor with its clock. It runs in any thread."""
        is_ours = epoch == self.session.epoch.encode()
        return encode_clock(self._clock()) if is_ours else None

    def _on_conductor_state(self, key: str, data: bytes) -> None:
        """Process a state of another conductor."""
        self._notice_stall()
        try:
            state = decode_conductor(data)
        except DecodeError:
            self._on_stop(key, data)
            return
        with self._publishing_changes():
            self._notify_listeners(self.session.on_conductor_state(state, self._clock()))

    def show_section(self, section: str, muted: Collection[str]) -> None:
        """Publish the position of the cue list, for a standby that takes over."""
        self.session.show_section(section, muted)
        self._publish_now()

    def _notice_stall(self) -> None:
        """End the section if this process stalled for so long that the agents have stopped.

        No agent counts as lost, because their messages could not be received during the stall.
        """
        previous_s, self._last_run_s = self._last_run_s, self._clock()
        stalled_s = self._last_run_s - previous_s
        is_late = previous_s - self._continued_s < LATE_GO_S  # it may not have caught up yet
        if stalled_s > (_HICCUP_S if is_late else CONDUCTOR_LOST_S):
            self._continued_s = self._last_run_s
        if stalled_s > CONDUCTOR_LOST_S:
            self._notify_listeners(self.session.stall(stalled_s, self._last_run_s))
            self._publish_now()

    def _notice_suspension(self) -> None:
        """End the section if this computer was suspended."""
        if suspended_s := self._suspensions.take():
            self._continued_s = self._clock()
            self._notify_listeners(self.session.resume(suspended_s))
            self._publish_now()

    async def _receive_states(self, states: Callable[[], dict[str, bytes]]) -> None:
        while True:
            self._notice_stall()
            self._notice_suspension()
            if messages := states():
                with self._publishing_changes():
                    read = [self._read_state(key, data) for key, data in messages.items()]
                    valid = filter(None, read)
                    self._notify_listeners(
                        self.session.on_agent_states(*valid, now_s=self._clock())
                    )
            await asyncio.sleep(RECEIVE_S)

    def _read_state(self, key: str, data: bytes) -> AgentState | None:
        """Return the state of an agent; None if it is malformed, or under another agent's key."""
        name = self._keys.agent_in(key)
        try:
            message = self._readers[name].read(data)
        except DecodeError:
            self._on_stop(key, data)
            return None
        return message if message.name == name else None

    def _on_stop(self, _key: str, data: bytes) -> None:
        """Adopt a stop, whatever its key: after a reconnect Zenoh may deliver it under another."""
        with contextlib.suppress(DecodeError), self._publishing_changes():
            self._notify_listeners(self.session.adopt(decode_stop(data), self._clock()))

    def _on_reset(self, key: str, data: bytes) -> None:
        """Reset the active stop if a request of another program names it."""
        try:
            reset = decode_reset(data)
        except DecodeError:
            self._on_stop(key, data)
            return
        if self.session.stops.is_active(reset.reset) and not self.session.refusal:
            self.reset()

    @contextlib.contextmanager
    def _publishing_changes(self) -> Iterator[None]:
        """Publish at once if the requests to the agents have changed."""
        before = self.session.current
        yield
        if self.session.current != before:
            self._publish_now()

    def _on_presence(self, key: str, is_present: bool) -> None:
        self._notice_stall()
        if not is_present and (name := self._keys.agent_in(key)):
            self._notify_listeners(self.session.on_agent_gone(name, self._clock()))
            self._publish_now()

    async def _publish_periodically(self) -> None:
        while True:
            self._notice_stall()
            self._notify_listeners(self.session.tick(self._clock()))
            self._publish_now()
            if stop := self.session.find_stop_to_repeat(self._clock()):
                self._bus.publish(self._keys.stop, stop.encode())
            is_idle = self.session.section.run is None and self.active_stop is None
            await asyncio.sleep(IDLE_STATE_S if is_idle else STATE_S)

    def _publish_now(self) -> None:
        """Publish the requests to the agents, if they obey this conductor."""
        if self.session.standing is Standing.CONDUCTING:
            self._bus.publish(self._keys.conductor, self.session.state().encode())

    def _notify_listeners(self, events: list[ConductorEvent]) -> None:
        for event in events:
            if isinstance(event, Superseded):
                self._withdraw_token()
            elif isinstance(event, ConductingBegan) and self.session.is_standby:
                self._withdraw_token = self._bus.declare(self._keys.conductor_token)
            for listener in tuple(self._listeners):
                try:
                    listener(event)
                except Exception as error:  # a listener must not break the show or its stop
                    self._loop.call_exception_handler(
                        {"message": "a listener of the conductor failed", "exception": error}
                    )
