"""A whole stage in virtual time: conductors, some agents, and a network that loses messages.

The network may fall apart into sides: a message arrives only if both ends are on the same one.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from rote.session.stage_agent import (
    CONDUCTOR_LOST_S,
    AgentEffect,
    AgentSession,
    BeginRun,
    DropRun,
    LoadScore,
    PrepareRun,
    StopRobot,
)
from rote.session.stage_conductor import ConductorSession, Standing
from rote.session.stage_events import ConductorEvent, SectionCommitted
from rote.wire.stage import (
    ConductorState,
    StartReport,
    Stop,
    decode_agent,
    decode_conductor,
    decode_stop,
)

T = TypeVar("T")
TICK_S = 0.05
STATE_S = 0.1
STOP_REPEATS_S = (0.015, 0.04)


@dataclass
class Network:
    """How messages fare."""

    loss: float = 0.0
    doubled: float = 0.0
    delay_s: float = 0.002
    jitter_s: float = 0.0


@dataclass
class Robot:
    """What a robot did, by true time."""

    lead_s: float = 0.8
    tells_s: float = 0.0
    """The lead it knows at loading."""
    length_s: float = 1.5
    prepares_s: float = 0.1
    stops_s: float = 0.05
    moving: bool = False
    began: list[tuple[str, float]] = field(default_factory=list)
    """Each start of a motion: the run, and when the section began for this robot."""
    obeyed: list[tuple[str, str]] = field(default_factory=list)
    """Each start of a motion: the run, and the epoch of the conductor that the agent obeyed."""
    moves: list[tuple[float, bool]] = field(default_factory=list)


class Member:
    """An agent with its robot, and a clock of its own."""

    def __init__(self, world: "World", name: str, robot: Robot) -> None:
        self.world, self.name, self.robot = world, name, robot
        self.ahead_s = world.chance.uniform(-1000.0, 1000.0)
        self.drift = world.chance.uniform(-50e-6, 50e-6)
        self.dead = self.hung = self.cut = False
        self.side = 0
        self.start()

    def start(self) -> None:
        """Begin, or begin anew after a crash."""
        self.generation = object()
        self.session = AgentSession(self.name, f"{self.name}-{next(self.world.ids)}")
        self.dead = self.hung = False
        self.received_stops: set[str] = set()
        self.plan: object = None
        self._repeat(STATE_S, self.publish)
        self._repeat(TICK_S, lambda: self.do(self.session.tick(self.now_s)))
        self._repeat(0.1, self.ask_clock)

    @property
    def now_s(self) -> float:
        return self.world.now_s * (1 + self.drift) + self.ahead_s

    def true_s(self, own_s: float) -> float:
        return (own_s - self.ahead_s) / (1 + self.drift)

    def _repeat(self, every_s: float, what: Callable[[], None]) -> None:
        generation = self.generation

        def again() -> None:
            if self.generation is not generation or self.dead:
                return
            if not self.hung:
                what()
            self.world.after(every_s, again)

        self.world.after(self.world.chance.uniform(0, every_s), again)

    def later(self, seconds: float, what: Callable[[], None]) -> None:
        """Do something in this agent's loop, unless it has died or hangs by then."""
        generation = self.generation

        def due() -> None:
            if self.generation is generation and not self.dead and not self.hung:
                what()

        self.world.after(seconds, due)

    def publish(self) -> None:
        data = self.session.state(self.now_s).encode()
        for director in self.world.directors:
            self.world.send(self, director, partial(director.hear_agent, data))

    def ask_clock(self) -> None:
        sent_s, generation, epoch = self.now_s, self.generation, self.session.conductor

        def answered(theirs_s: float) -> None:
            works = self.generation is generation and not self.dead and not self.hung
            if works and self.session.conductor == epoch:
                self.session.clock.add(sent_s, self.now_s, theirs_s)

        def asked(director: "Director") -> None:
            if director.works and director.session.current.epoch == epoch:
                self.world.send(director, self, partial(answered, director.now_s))

        for director in self.world.directors:
            self.world.send(self, director, partial(asked, director))

    def hear(self, data: bytes) -> None:
        if not self.dead and not self.hung:
            before = self.session.state(self.now_s).rank
            state = decode_conductor(data)
            self.do(self.session.on_conductor_state(state, self.now_s))
            assert self.session.state(self.now_s).rank >= before, "it obeys an older conductor"
            if state.stop is not None:
                self.received_stops.add(state.stop.id)

    def hear_stop(self, data: bytes) -> None:
        if not self.dead and not self.hung:
            stop = decode_stop(data)
            self.do(self.session.on_stop(stop))
            self.received_stops.add(stop.id)

    def do(self, effects: list[AgentEffect]) -> None:
        for effect in effects:
            if isinstance(effect, LoadScore):
                score = effect.score
                self.later(0.1, partial(self.session.on_loaded, score, self.robot.tells_s))
            elif isinstance(effect, PrepareRun):
                run = effect.run.id
                self.later(
                    self.robot.prepares_s,
                    partial(self.session.on_prepared, run, self.robot.lead_s),
                )
            elif isinstance(effect, BeginRun):
                self.begin(effect)
            elif isinstance(effect, DropRun):
                self.plan = None
                self.rest()
            elif isinstance(effect, StopRobot):
                self.plan = None
                stop = effect.stop

                def stopped(stop: str = stop) -> None:
                    self.rest()
                    self.session.on_stopped(stop)

                self.later(self.robot.stops_s, stopped)

    def begin(self, effect: BeginRun) -> None:
        self.plan = plan = object()
        run = effect.run.id

        def set_off() -> None:
            if self.plan is not plan:
                return
            self.session.on_began(run)
            self.move(True)
            self.robot.began.append((run, self.true_s(effect.start_s)))
            self.robot.obeyed.append((run, self.session.conductor))
            self.later(self.robot.lead_s + self.robot.length_s, end)

        def end() -> None:
            if self.plan is not plan:
                return
            self.move(False)
            self.session.on_ended(run, StartReport(run, 0.001, 0.004, self.robot.lead_s))

        self.later(max(0.0, effect.start_s - self.robot.lead_s - self.now_s), set_off)

    def move(self, moving: bool) -> None:
        self.robot.moving = moving
        self.robot.moves.append((self.world.now_s, moving))

    def rest(self) -> None:
        if self.robot.moving:
            self.move(False)

    def hang(self) -> None:
        """Hang: the stream's own watchdog lets the robot return softly."""
        self.hung = True
        self.world.after(0.7, self.rest)

    def die(self) -> None:
        """End like a killed process: its robot's own watchdog lets it return softly."""
        self.dead = True
        self.world.after(0.3, self.rest)
        for director in self.world.directors:
            if director.side == self.side:
                self.world.after(self.world.network.delay_s, partial(director.hear_gone, self.name))


class Director:
    """A conductor with a clock of its own, which works like `rote.stage.conductor.Conductor`."""

    def __init__(self, world: "World", *, standby: bool, ahead_s: float) -> None:
        self.world, self.ahead_s, self.side = world, ahead_s, 0
        self.first_epoch = f"c{next(world.ids):09}"
        self.session = ConductorSession(
            self.first_epoch, lambda: f"id{next(world.ids)}", standby=standby
        )
        self.alive, self.frozen = True, False
        self.events: list[tuple[float, ConductorEvent]] = []
        self.runs: set[str] = set()
        self._waiting: list[Callable[[], None]] = []
        """What arrived while it was frozen."""
        self._last_s = self.now_s
        self._repeat()

    @property
    def works(self) -> bool:
        return self.alive and not self.frozen

    @property
    def conducts(self) -> bool:
        return self.alive and self.session.standing is Standing.CONDUCTING

    @property
    def now_s(self) -> float:
        return self.world.now_s + self.ahead_s

    def freeze(self) -> None:
        """Be stopped by SIGSTOP."""
        self.frozen = True

    def thaw(self) -> None:
        """Go on: half of what arrived meanwhile is processed, before or after its own loop."""
        self.frozen = False
        waiting, self._waiting = self._waiting, []
        for what in waiting:
            if self.world.chance.random() < 0.5:
                self.world.after(self.world.chance.uniform(0.0, 2 * STATE_S), what)

    def _repeat(self) -> None:
        if self.works:
            self._notice_stall()
            self.note(self.session.tick(self.now_s))
            self.publish()
            if stop := self.session.find_stop_to_repeat(self.now_s):
                self.send_stop(stop)
        if self.alive:
            self.world.after(STATE_S, self._repeat)

    def _notice_stall(self) -> None:
        stalled_s, self._last_s = self.now_s - self._last_s, self.now_s
        if stalled_s > CONDUCTOR_LOST_S:
            self.note(self.session.stall(stalled_s, self.now_s))

    def _receive(self, what: Callable[[], list[ConductorEvent]]) -> None:
        if self.frozen:
            self._waiting.append(lambda: self._receive(what))
        elif self.alive:
            self._notice_stall()
            before = self.session.current
            self.note(what())
            if self.session.current != before:
                self.publish()

    def hear_agent(self, data: bytes) -> None:
        self._receive(lambda: self.session.on_agent_states(decode_agent(data), now_s=self.now_s))

    def hear_conductor(self, data: bytes) -> None:
        self._receive(lambda: self.session.on_conductor_state(decode_conductor(data), self.now_s))

    def hear_stop(self, data: bytes) -> None:
        self._receive(lambda: self.session.adopt(decode_stop(data), self.now_s))

    def hear_gone(self, name: str) -> None:
        self._receive(lambda: self.session.on_agent_gone(name, self.now_s))

    def note(self, events: list[ConductorEvent]) -> None:
        for event in events:
            known = event
            if isinstance(event, SectionCommitted):
                known = replace(event, start_s=event.start_s - self.ahead_s)
            self.events.append((self.world.now_s, known))

    def publish(self) -> None:
        if self.session.standing is Standing.CONDUCTING:
            self.tell(self.session.state())

    def tell(self, state: ConductorState) -> None:
        data = state.encode()
        for member in self.world.members.values():
            self.world.send(self, member, partial(member.hear, data))
        for other in self.world.directors:
            if other is not self:
                self.world.send(self, other, partial(other.hear_conductor, data))

    def send_stop(self, stop: Stop) -> None:
        data = stop.encode()
        for member in self.world.members.values():
            self.world.send(self, member, partial(member.hear_stop, data))
        for other in self.world.directors:
            if other is not self:
                self.world.send(self, other, partial(other.hear_stop, data))

    def play(self, section: str = "one", *, stop_on_loss: bool = True) -> None:
        """Give GO."""
        scores = dict.fromkeys(self.world.members, f"sha-{section}")
        self.note(self.session.play(section, scores, self.now_s, stop_on_loss=stop_on_loss))
        if self.session.current.run is not None:
            self.runs.add(self.session.current.run.id)
        self.publish()

    def stop(self, by: str = "a person") -> Stop:
        stop, events = self.session.stop(by, self.now_s)
        self.note(events)
        for wait_s in (0.0, *STOP_REPEATS_S):
            self.world.after(wait_s, partial(self.send_stop, stop))
        self.publish()
        return stop

    def reset(self) -> None:
        if not self.session.refusal:
            self.session.stops.reset()
            self.publish()

    def seen(self, kind: type[T]) -> list[T]:
        return [event for _, event in self.events if isinstance(event, kind)]


class World:
    """Time, the network, and everybody on it."""

    def __init__(
        self, seed: int, network: Network, robots: list[Robot], *, standbys: int = 0
    ) -> None:
        self.chance = random.Random(seed)
        self.network = network
        self.now_s = 0.0
        self.ids = itertools.count()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.sent = 0
        """How many messages were sent."""
        self.members: dict[str, Member] = {}
        self.directors: list[Director] = []
        self.directors.append(Director(self, standby=False, ahead_s=0.0))
        self.members |= {
            f"robot{number}": Member(self, f"robot{number}", robot)
            for number, robot in enumerate(robots)
        }
        for _ in range(standbys):
            self.start_standby()

    @property
    def first(self) -> Director:
        """The conductor that was started last and is no standby."""
        return next(each for each in reversed(self.directors) if not each.session.is_standby)

    @property
    def conductor(self) -> ConductorSession:
        return self.first.session

    @property
    def events(self) -> list[tuple[float, ConductorEvent]]:
        return [event for director in self.directors for event in director.events]

    def start_conductor(self) -> Director:
        """Start another conductor in place of the first, whose process is ended."""
        self.first.alive = False
        self.directors.append(Director(self, standby=False, ahead_s=0.0))
        return self.directors[-1]

    def start_standby(self) -> Director:
        ahead_s = self.chance.uniform(-1000.0, 1000.0)
        self.directors.append(Director(self, standby=True, ahead_s=ahead_s))
        return self.directors[-1]

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now_s + max(seconds, 0.0), next(self._order), what))

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self._queue and self._queue[0][0] <= end_s:
            self.now_s, _, what = heapq.heappop(self._queue)
            what()
        self.now_s = end_s

    def send(
        self, sender: Member | Director, receiver: Member | Director, deliver: Callable[[], None]
    ) -> None:
        """Carry a message between two that are on the same side of the network."""
        net, ends = self.network, (sender, receiver)

        def is_cut() -> bool:
            cut = any(isinstance(end, Member) and end.cut for end in ends)
            return cut or sender.side != receiver.side

        self.sent += 1
        for _ in range(2 if self.chance.random() < net.doubled else 1):
            if self.chance.random() < net.loss or is_cut():
                continue
            jitter_s = self.chance.expovariate(1 / net.jitter_s) if net.jitter_s else 0.0

            def arrive() -> None:
                if not is_cut():
                    deliver()

            self.after(net.delay_s + jitter_s, arrive)

    def play(self, section: str = "one", *, stop_on_loss: bool = True) -> None:
        self.first.play(section, stop_on_loss=stop_on_loss)

    def cancel(self) -> None:
        self.first.note(self.conductor.cancel("changed my mind"))
        self.first.publish()

    def stop(self, by: str = "a person") -> Stop:
        return self.first.stop(by)

    def seen(self, kind: type[T]) -> list[T]:
        return [event for _, event in self.events if isinstance(event, kind)]
