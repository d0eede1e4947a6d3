"""Several conductors on one stage, in virtual time: an agent obeys one, and nothing resumes."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from rote.session.stage_agent import AgentPhase, AgentSession, LoadScore, StopRobot
from rote.session.stage_conductor import TAKEOVER_S, ConductorSession, Standing
from rote.session.stage_events import (
    ConductingBegan,
    SectionCommitted,
    SectionEnded,
    SectionRefused,
    StopBegan,
    StopConfirmed,
    StopUnconfirmed,
    Superseded,
)
from rote.wire.stage import AgentState, ConductorState, Run, Stop
from sampled import sample_parameters
from stage_world import Director, Member, Network, Robot, World

BAD = Network(loss=0.1, doubled=0.1, delay_s=0.002, jitter_s=0.004)
TAKEN_OVER_S = TAKEOVER_S + 0.5


def settled(seed: int = 1, network: Network | None = None, standbys: int = 1) -> World:
    """Return a stage with a conductor, standbys and three robots, which all know each other."""
    world = World(seed, network or Network(), [Robot() for _ in range(3)], standbys=standbys)
    world.run(2.0)
    assert [each.session.standing for each in world.directors] == [
        Standing.CONDUCTING,
        *[Standing.WAITING] * standbys,
    ]
    return world


def obeyed(world: World) -> set[str]:
    """Return the epochs of the conductors that agents obey."""
    return {each.session.conductor for each in world.members.values()}


def moving(world: World) -> list[bool]:
    return [member.robot.moving for member in world.members.values()]


def test_a_standby_takes_over_when_the_conductor_is_lost_and_nothing_moves_before_go() -> None:
    world = settled()
    first, standby = world.directors
    world.play("one")
    world.run(4.0)
    assert any(moving(world))
    first.session.show_section("one", ("robot1",))
    world.run(0.2)
    first.alive = False
    world.run(1.3)
    assert not any(moving(world)), "the robots have stopped before the takeover"
    assert standby.session.standing is Standing.WAITING
    world.run(TAKEN_OVER_S)
    assert standby.seen(ConductingBegan) == [ConductingBegan(2, "one", ("robot1",))]
    begun = [len(member.robot.began) for member in world.members.values()]
    world.run(10.0)
    assert [len(member.robot.began) for member in world.members.values()] == begun
    standby.play("one")
    world.run(8.0)
    (committed,) = standby.seen(SectionCommitted)
    assert [ended.section for ended in standby.seen(SectionEnded)] == ["one"]
    for member in world.members.values():  # by the clock of the conductor that they obey now
        assert member.robot.began[-1][1] == pytest.approx(committed.start_s, abs=0.003)


def test_a_standby_tells_a_conductor_that_has_ended_from_a_lost_one() -> None:
    world = settled()
    first, standby = world.directors
    first.session.show_section("two", ())
    first.session.end()
    world.run(0.5)
    first.alive = False
    world.run(TAKEN_OVER_S + 1.5)
    assert standby.seen(ConductingBegan) == [ConductingBegan(2, "two", (), other_has_ended=True)]


def test_a_lost_show_is_told_as_lost_although_a_later_conductor_ended_by_itself() -> None:
    world = settled()
    first, standby = world.directors
    first.session.show_section("two", ())
    world.run(0.2)
    first.stop()
    world.run(0.5)
    first.alive = False
    resetting = world.start_conductor()  # `rote show reset`, before the standby takes over
    world.run(1.8)
    assert resetting.conducts
    resetting.session.end()
    world.run(0.5)
    resetting.alive = False
    world.run(TAKEN_OVER_S + 1.5)
    (began,) = standby.seen(ConductingBegan)
    assert (began.section, began.other_has_ended) == ("two", False)


def test_a_standby_without_a_conductor_waits_for_one() -> None:
    world = World(1, Network(), [Robot()], standbys=1)
    world.directors[0].alive = False
    world.run(30.0)
    assert world.directors[1].session.standing is Standing.WAITING
    world.start_conductor()
    world.run(2.0)
    assert world.first.conducts
    assert world.directors[1].session.standing is Standing.WAITING


def test_a_standby_that_is_cut_off_takes_nothing_over() -> None:
    world = settled()
    first, standby = world.directors
    standby.side = 1
    world.run(10.0)
    assert standby.session.standing is Standing.WAITING
    standby.side = 0
    world.run(2.0)
    assert first.conducts
    assert standby.session.standing is Standing.WAITING


def test_a_standby_that_was_frozen_itself_takes_nothing_over() -> None:
    world = settled()
    first, standby = world.directors
    standby.freeze()
    world.run(10.0)
    standby.thaw()
    world.run(5.0)
    assert first.conducts
    assert standby.session.standing is Standing.WAITING


def test_a_conductor_that_comes_back_in_time_goes_on_and_the_standby_waits() -> None:
    world = settled()
    first, standby = world.directors
    first.freeze()
    world.run(2.0)
    first.thaw()
    world.run(5.0)
    assert first.conducts
    assert standby.session.standing is Standing.WAITING


def test_a_frozen_conductor_finds_itself_superseded_and_is_not_obeyed_again() -> None:
    world = settled()
    first, standby = world.directors
    world.play("one")
    world.run(4.0)
    first.freeze()
    world.run(5.0)
    begun = [len(member.robot.began) for member in world.members.values()]
    first.thaw()
    world.play("two")  # somebody had typed GO
    world.run(8.0)
    assert first.seen(Superseded) == [Superseded(2)]
    assert first.seen(SectionRefused)
    assert [len(member.robot.began) for member in world.members.values()] == begun
    assert obeyed(world) == {standby.session.current.epoch}


def test_after_a_partition_only_the_highest_term_conducts_and_nobody_begins_by_it() -> None:
    world = settled()
    first, standby = world.directors
    standby.side = world.members["robot2"].side = 1
    world.run(TAKEN_OVER_S + 1.5)
    assert first.conducts
    assert standby.conducts
    assert obeyed(world) == {first.session.current.epoch, standby.session.current.epoch}
    begun = [len(member.robot.began) for member in world.members.values()]
    standby.side = world.members["robot2"].side = 0
    world.run(2.0)
    assert (first.conducts, standby.conducts) == (False, True)
    assert obeyed(world) == {standby.session.current.epoch}
    assert [len(member.robot.began) for member in world.members.values()] == begun
    assert not any(moving(world))


def test_an_active_stop_survives_the_takeover_until_a_person_resets_it() -> None:
    world = settled()
    first, standby = world.directors
    stop = first.stop()
    world.run(0.5)
    first.alive = False
    world.run(TAKEN_OVER_S + 1.5)
    assert standby.conducts
    assert standby.session.current.stop == stop
    assert all(m.session.phase is AgentPhase.STOPPED for m in world.members.values())
    standby.play("one")
    world.run(3.0)
    assert [refused.reason for refused in standby.seen(SectionRefused)] == [
        "a stop is active; reset it first"
    ]
    standby.reset()
    world.run(1.0)
    standby.play("one")
    world.run(8.0)
    assert standby.seen(SectionEnded)


@pytest.mark.parametrize("who", ["standby", "superseded"])
def test_a_stop_of_a_conductor_that_does_not_conduct_stops_all_robots(who: str) -> None:
    world = settled()
    first, standby = world.directors
    conducting, other = first, standby
    if who == "superseded":
        first.freeze()
        world.run(TAKEN_OVER_S + 1.5)
        first.thaw()
        world.run(1.0)
        conducting, other = standby, first
    conducting.play("one")
    world.run(4.0)
    assert any(moving(world))
    stop = other.stop()
    world.run(0.5)
    assert not any(moving(world))
    assert other.seen(StopConfirmed)
    assert conducting.session.current.stop == stop
    conducting.reset()
    world.run(3.0)
    assert other.session.current.stop is None
    assert all(m.session.phase is AgentPhase.IDLE for m in world.members.values())


@pytest.mark.parametrize("restarted", [False, True])
def test_a_stop_of_a_standby_is_held_by_the_conductor_and_the_agents_that_start_later(
    restarted: bool,
) -> None:
    world = World(1, Network(), [Robot() for _ in range(2)], standbys=1)
    first, standby = world.directors
    first.alive = False
    if not restarted:
        for member in world.members.values():
            member.die()
    world.run(2.0)
    stop = standby.stop()
    world.run(3.0)
    if restarted:  # they confirm the stop and forget it, before a conductor learns of it
        assert standby.seen(StopConfirmed)
        for member in world.members.values():
            member.die()
        world.run(0.5)
    else:
        assert not standby.seen(StopConfirmed), "nobody has confirmed it"
        assert standby.seen(StopUnconfirmed) == [StopUnconfirmed(stop.id, ())]
    conductor = world.start_conductor()
    for member in world.members.values():
        member.start()
    world.run(2.0)
    assert conductor.session.current.stop is not None
    assert conductor.session.current.stop.id == stop.id
    conductor.play("one")
    world.run(8.0)
    assert not any(member.robot.began for member in world.members.values())
    conductor.reset()
    world.run(1.0)
    assert standby.session.current.stop is None
    conductor.play("two")
    world.run(8.0)
    assert all(member.robot.began for member in world.members.values())


def test_of_the_stops_of_two_standbys_that_reach_nobody_else_one_is_repeated() -> None:
    world = World(1, Network(), [Robot()], standbys=2)
    world.first.alive = False
    world.members["robot0"].die()
    standbys = world.directors[1:]
    stops = {standby.stop().id for standby in standbys}
    world.run(2.0)
    conductor = world.start_conductor()
    world.members["robot0"].start()
    world.run(2.0)
    assert conductor.session.current.stop is not None
    assert conductor.session.current.stop.id in stops
    conductor.reset()
    world.run(3.0)
    assert [standby.session.current.stop for standby in standbys] == [None, None]


def test_a_second_stop_that_the_conductor_misses_is_repeated_until_it_holds_it() -> None:
    world = settled()
    first, standby = world.directors
    first.stop()
    world.run(0.5)
    first.side = standby.side = 1  # no agent hears them either
    send_stop = standby.send_stop
    standby.send_stop = lambda stop: None  # type: ignore[method-assign]
    second = standby.stop()
    world.run(0.3)
    standby.send_stop = send_stop  # type: ignore[method-assign]
    assert first.session.current.stop != second
    assert standby.session.current.stop == second, "the first one does not replace it"
    world.run(0.5)
    assert first.session.current.stop == second
    first.side = standby.side = 0
    world.run(1.0)
    assert standby.session.find_stop_to_repeat(standby.now_s) is None
    assert all(m.session.phase is AgentPhase.STOPPED for m in world.members.values())


def test_a_conductor_that_only_reset_a_stop_does_not_unmute_the_robots_of_the_lost_show() -> None:
    world = settled()
    first, standby = world.directors
    first.session.show_section("two", ("robot1",))
    world.run(0.2)
    first.stop()
    world.run(0.5)
    resetting = world.start_conductor()  # `rote show reset`, before the standby takes over
    world.run(1.8)
    assert resetting.conducts
    resetting.reset()
    world.run(0.5)
    resetting.alive = False
    world.run(TAKEN_OVER_S + 1.5)
    assert standby.seen(ConductingBegan) == [ConductingBegan(3, "two", ("robot1",))]
    assert standby.session.current.stop is None


def test_stops_given_at_several_conductors_at_once_are_confirmed_without_a_flood() -> None:
    world = settled(network=BAD, standbys=2)
    world.run(1.0)
    usual = world.sent
    world.run(3.0)
    usual = world.sent - usual
    for director in world.directors:
        director.stop()
    before = world.sent
    world.run(3.0)
    assert world.sent - before < 1.5 * usual
    assert world.first.session.stops.confirmed_s is not None
    world.first.alive = False  # nobody conducts for a while
    for director in world.directors[1:]:
        director.stop()
    before = world.sent
    world.run(1.5)
    assert world.sent - before < usual
    world.run(3.0)
    assert all(each.session.phase is AgentPhase.STOPPED for each in world.members.values())


def test_two_standbys_never_conduct_both() -> None:
    for seed in range(4):
        world = settled(seed, BAD, standbys=2)
        world.first.alive = False
        world.run(TAKEN_OVER_S + 3.0)
        assert [each.conducts for each in world.directors].count(True) == 1
        assert len(obeyed(world)) == 1


def test_an_agent_that_remembers_a_lost_conductor_of_a_higher_term_is_conducted_again() -> None:
    world = settled()
    first, standby = world.directors
    late = world.members["robot2"]
    standby.side = late.side = 1
    world.run(TAKEN_OVER_S + 1.5)
    assert standby.conducts
    standby.alive = False
    world.run(1.5)
    late.side = 0
    world.run(3.0)
    assert first.conducts
    assert obeyed(world) == {first.session.current.epoch}
    assert first.session.current.term == 3


# ---- one agent, or one conductor, message by message --------------------------------------------


def test_an_agent_obeys_no_older_term_in_starts_commits_pauses_and_resets() -> None:
    agent = AgentSession("ann", "e")
    agent.on_conductor_state(ConductorState("b", 1, term=2), 0.0)
    run = Run("r", "one", {"ann": "sha"})
    assert agent.on_conductor_state(ConductorState("a", 9, run, term=1), 0.0) == []
    assert agent.on_conductor_state(ConductorState("a", 9, run, term=2), 0.0) == []
    assert agent.on_conductor_state(ConductorState("b", 2, run, term=2), 0.0) == [LoadScore("sha")]
    agent.on_loaded("sha")
    for state in (
        ConductorState("a", 10, Run("r", "one", {"ann": "sha"}, 5.0, committed=True), term=1),
        ConductorState("a", 11, Run("r", "one", {"ann": "sha"}, 5.0, holds=((1.0, None),)), term=1),
        ConductorState("a", 12, None, term=1),
    ):
        assert agent.on_conductor_state(state, 0.0) == []
    assert agent.run == run
    agent.on_stop(Stop("s", "a person"))
    agent.on_stopped("s")
    agent.on_conductor_state(ConductorState("a", 13, reset="s", term=1), 0.0)
    assert agent.state(0.0).phase == "stopped"
    agent.on_conductor_state(ConductorState("b", 3, reset="s", term=2), 0.0)
    assert agent.state(0.0).phase == "idle"


def test_an_agent_obeys_a_stop_of_any_conductor_but_none_that_was_reset() -> None:
    agent = AgentSession("ann", "e")
    agent.on_conductor_state(ConductorState("b", 1, term=2), 0.0)
    old = ConductorState("a", 9, stop=Stop("s", "a person"), term=1)
    assert agent.on_conductor_state(old, 0.0) == [StopRobot("s")]
    agent.on_stopped("s")
    agent.on_conductor_state(ConductorState("b", 2, reset="s", term=2), 0.0)
    assert agent.on_conductor_state(old, 0.0) == []
    assert agent.on_stop(Stop("s", "a person")) == []
    assert agent.on_stop(Stop("s2", "a person")) == [StopRobot("s2")]


def test_messages_of_a_superseded_conductor_do_not_keep_a_robot_moving() -> None:
    agent = AgentSession("ann", "e")
    agent.on_conductor_state(ConductorState("b", 1, term=2), 0.0)
    agent.on_conductor_state(ConductorState("a", 9, term=1), 1.5)
    state = agent.state(1.5)
    assert (state.term, state.conductor, state.conducted) == (2, "b", False)


def test_a_conductor_does_not_begin_while_an_agent_receives_another() -> None:
    conductor = ConductorSession("c", lambda: "id")
    beats = itertools.count(1)

    def hear(*, conducted: bool) -> list[object]:
        ann = AgentState("ann", "e", next(beats), term=4, conductor="b", conducted=conducted)
        return [
            event
            for event in conductor.on_agent_states(ann, now_s=0.0)
            if isinstance(event, ConductingBegan)
        ]

    assert hear(conducted=True) == []
    assert hear(conducted=False) == [ConductingBegan(5)]


def test_a_conductor_steps_down_for_an_agent_that_receives_a_higher_term() -> None:
    conductor = ConductorSession("c", lambda: "id")
    began = conductor.on_agent_states(AgentState("ann", "e", 1), now_s=0.0)
    assert ConductingBegan(1) in began
    obeying = AgentState("ann", "e", 2, term=2, conductor="b", conducted=True)
    assert conductor.on_agent_states(obeying, now_s=0.1) == [Superseded(2)]
    assert conductor.standing is Standing.SUPERSEDED
    assert conductor.play("one", {"ann": "sha"}, 0.1) == [
        SectionRefused("id", "one", "another conductor has taken over")
    ]


def test_a_resumed_computer_does_not_outrank_a_conductor_of_the_same_term() -> None:
    low, high = ConductorSession("a" * 8, lambda: "id"), ConductorSession("b" * 8, lambda: "id")
    for _ in range(3):
        before = low.current.rank
        low.resume(10.0)
        assert before < low.current.rank < high.current.rank


# ---- anything at any moment ---------------------------------------------------------------------


@dataclass
class Trial:
    """A stage with trouble at random moments, and what must never happen in it."""

    world: World
    resets: set[str] = field(default_factory=set)

    @property
    def ends(self) -> list[Director | Member]:
        return [*self.world.directors, *self.world.members.values()]

    def pick(self) -> Director:
        return self.world.chance.choice(self.world.directors)

    def pick_working(self) -> Director:
        working = [each for each in self.world.directors if each.works]
        return self.world.chance.choice(working or self.world.directors)

    def go(self) -> None:
        self.pick_working().play("one", stop_on_loss=self.world.chance.random() < 0.5)

    def stop(self) -> None:
        director = self.pick_working()
        if director.works:
            director.stop()

    def reset(self) -> None:
        director = self.pick_working()
        stop = director.session.current.stop
        if director.works and stop is not None and not director.session.refusal:
            # The newest stop replaces those before it, so they are reset together.
            self.resets |= {began.stop.id for began in director.seen(StopBegan)}
            director.reset()

    def split(self) -> None:
        for each in self.ends:
            each.side = self.world.chance.randrange(2)

    def heal(self) -> None:
        for each in self.ends:
            each.side = 0

    def freeze(self) -> None:
        self.pick().freeze()

    def thaw(self) -> None:
        director = self.pick()
        if director.frozen:
            director.thaw()

    def suspend(self) -> None:
        director = self.pick_working()
        if director.works:
            director.note(director.session.resume(30.0))

    def kill(self) -> None:
        self.pick().alive = False

    def start(self) -> None:
        """Start a conductor; `rote show run` refuses to while another one is connected."""
        if len(self.world.directors) < 6:
            if self.world.chance.random() < 0.5:
                self.world.start_standby()
            elif not any(each.alive for each in self.world.directors):
                self.world.start_conductor()

    def crash_agent(self) -> None:
        member = self.world.chance.choice([*self.world.members.values()])
        member.die()
        self.world.after(self.world.chance.uniform(0.2, 3.0), member.start)

    def check_obedience(self) -> None:
        """Each motion belongs to a GO of the conductor that its agent obeyed when it began."""
        epochs = {run: each.first_epoch for each in self.world.directors for run in each.runs}
        committed = {
            event.run: event.start_s
            for each in self.world.directors
            for event in each.seen(SectionCommitted)
        }
        for member in self.world.members.values():
            for run, epoch in member.robot.obeyed:
                assert epoch.partition(".")[0] == epochs[run], "a run of another conductor"
            for run, start_s in member.robot.began:
                assert run in committed, "it began without everybody being ready"
                assert start_s == pytest.approx(committed[run], abs=0.011)

    def check_stops(self) -> None:
        for member in self.world.members.values():
            if member.received_stops - self.resets:
                assert member.session.phase is AgentPhase.STOPPED, "a stop was forgotten"


def check_one_conductor(seed: int) -> None:
    """Partitions, loss, delay, frozen and killed conductors, GO, STOP and reset at any moment."""
    world = World(seed, BAD, [Robot() for _ in range(3)], standbys=1 + seed % 2)
    world.run(3.0)
    trial = Trial(world)
    troubles: list[Callable[[], None]] = [
        *(trial.go, trial.go, trial.go, trial.stop, trial.reset, trial.split, trial.heal),
        *(trial.freeze, trial.thaw, trial.thaw, trial.suspend, trial.kill, trial.start),
        trial.crash_agent,
    ]
    trial.go()
    for _ in range(10):
        world.run(world.chance.choice((0.1, 1.0, 4.0)) * world.chance.random())
        world.chance.choice(troubles)()
    world.run(4.0)  # agents that were started again have connected
    starts = [len(member.robot.began) for member in world.members.values()]
    underway = [member.session.run for member in world.members.values()]
    trial.heal()
    for director in world.directors:
        if director.frozen:
            director.thaw()
    world.run(10.0)
    trial.check_obedience()
    trial.check_stops()
    begun = [len(member.robot.began) for member in world.members.values()]
    for before, after, run in zip(starts, begun, underway, strict=True):
        assert after == before or run is not None, "it began because the network healed"
    assert not any(moving(world))

    conducting = [each for each in world.directors if each.conducts]
    waiting = [each for each in world.directors if each.alive and not each.conducts]
    if not conducting:
        assert all(
            each.session.is_standby or each.session.standing is Standing.SUPERSEDED
            for each in waiting
        )
        return
    (conductor,) = conducting
    assert obeyed(world) == {conductor.session.current.epoch}
    # The show can go on, by a person.
    if conductor.session.current.stop is not None:
        conductor.reset()
        world.run(1.0)
    done = len(conductor.seen(SectionEnded)) + len(conductor.seen(SectionRefused))
    conductor.play("last")
    world.run(10.0)
    assert len(conductor.seen(SectionEnded)) + len(conductor.seen(SectionRefused)) == done + 1
    assert conductor.events[-1][1].__class__ in (SectionEnded, SectionRefused)


@pytest.mark.parametrize("seeds", sample_parameters([0, 4, 8], 1))
def test_whatever_happens_each_agent_obeys_one_conductor_and_a_person(seeds: int) -> None:
    for seed in range(seeds, seeds + 4):
        check_one_conductor(seed)


@pytest.mark.soak
def test_one_conductor_in_two_thousand_stages() -> None:
    for seed in range(12, 2000):
        check_one_conductor(seed)
