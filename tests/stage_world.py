"""A whole stage in virtual time: one conductor, some agents, and a network that loses messages."""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from rote.session.stage_agent import (
    AgentEffect,
    AgentSession,
    BeginRun,
    DropRun,
    LoadScore,
    PrepareRun,
    StopRobot,
)
from rote.session.stage_conductor import ConductorEvent, ConductorSession
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
    moves: list[tuple[float, bool]] = field(default_factory=list)


class Member:
    """An agent with its robot, and a clock of its own."""

    def __init__(self, world: "World", name: str, robot: Robot) -> None:
        self.world, self.name, self.robot = world, name, robot
        self.ahead_s = world.chance.uniform(-1000.0, 1000.0)
        self.drift = world.chance.uniform(-50e-6, 50e-6)
        self.dead = self.hung = self.cut = False
        self.start()

    def start(self) -> None:
        """Begin, or begin anew after a crash."""
        self.generation = object()
        self.session = AgentSession(self.name, f"{self.name}-{next(self.world.ids)}")
        self.dead = self.hung = False
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
        self.world.send(self, lambda: self.world.to_conductor(data))

    def ask_clock(self) -> None:
        sent_s, generation = self.now_s, self.generation

        def answered(theirs_s: float) -> None:
            if self.generation is generation and not self.dead and not self.hung:
                self.session.clock.add(sent_s, self.now_s, theirs_s)

        def asked() -> None:
            if self.world.conductor_alive:
                theirs_s = self.world.now_s
                self.world.send(self, lambda: answered(theirs_s))

        self.world.send(self, asked)

    def hear(self, data: bytes) -> None:
        if not self.dead and not self.hung:
            self.do(self.session.on_conductor_state(decode_conductor(data), self.now_s))

    def hear_stop(self, data: bytes) -> None:
        if not self.dead and not self.hung:
            self.do(self.session.on_stop(decode_stop(data)))

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
        self.world.after(self.world.network.delay_s, lambda: self.world.gone(self.name))


class World:
    """Time, the network, and everybody on it."""

    def __init__(self, seed: int, network: Network, robots: list[Robot]) -> None:
        self.chance = random.Random(seed)
        self.network = network
        self.now_s = 0.0
        self.ids = itertools.count()
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self.events: list[tuple[float, ConductorEvent]] = []
        self.conductor_alive = True
        self.heard_all_s = 0.0
        self.start_conductor()
        self.members = {
            f"robot{number}": Member(self, f"robot{number}", robot)
            for number, robot in enumerate(robots)
        }

    def start_conductor(self) -> None:
        self.conductor = ConductorSession(f"c{next(self.ids)}", lambda: f"id{next(self.ids)}")
        self.conductor_alive = True
        conductor = self.conductor

        def again() -> None:
            if self.conductor is conductor and self.conductor_alive:
                self.note(conductor.tick(self.now_s))
                self.publish()
                self.after(STATE_S, again)

        again()

    def after(self, seconds: float, what: Callable[[], None]) -> None:
        heapq.heappush(self._queue, (self.now_s + max(seconds, 0.0), next(self._order), what))

    def run(self, seconds: float) -> None:
        end_s = self.now_s + seconds
        while self._queue and self._queue[0][0] <= end_s:
            self.now_s, _, what = heapq.heappop(self._queue)
            what()
        self.now_s = end_s

    def send(self, member: Member, deliver: Callable[[], None]) -> None:
        """Carry a message between the conductor and an agent, in either direction."""
        net = self.network
        for _ in range(2 if self.chance.random() < net.doubled else 1):
            if self.chance.random() < net.loss or member.cut:
                continue
            jitter_s = self.chance.expovariate(1 / net.jitter_s) if net.jitter_s else 0.0

            def arrive() -> None:
                if not member.cut:
                    deliver()

            self.after(net.delay_s + jitter_s, arrive)

    def publish(self) -> None:
        self.tell(self.conductor.state())

    def tell(self, state: ConductorState) -> None:
        data = state.encode()
        for member in self.members.values() if hasattr(self, "members") else ():
            self.send(member, partial(member.hear, data))

    def to_conductor(self, data: bytes) -> None:
        if self.conductor_alive:
            before = self.conductor.current
            self.note(self.conductor.on_agent_states(decode_agent(data), now_s=self.now_s))
            if self.conductor.current != before:
                self.publish()

    def gone(self, name: str) -> None:
        if self.conductor_alive:
            self.note(self.conductor.on_agent_gone(name, self.now_s))
            self.publish()

    def note(self, events: list[ConductorEvent]) -> None:
        self.events += [(self.now_s, event) for event in events]

    def play(self, section: str = "one", *, stop_on_loss: bool = True) -> None:
        scores = dict.fromkeys(self.members, f"sha-{section}")
        self.note(self.conductor.play(section, scores, self.now_s, stop_on_loss=stop_on_loss))
        self.publish()

    def cancel(self) -> None:
        self.note(self.conductor.cancel("changed my mind"))
        self.publish()

    def stop(self, by: str = "a person") -> Stop:
        stop, events = self.conductor.stop(by, self.now_s)
        self.note(events)
        data = stop.encode()
        for member in self.members.values():
            self.send(member, partial(member.hear_stop, data))
        self.publish()
        return stop

    def seen(self, kind: type[T]) -> list[T]:
        return [event for _, event in self.events if isinstance(event, kind)]
