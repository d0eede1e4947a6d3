"""A stage in virtual time: together or not at all, and a stop that stops everybody."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from rote.session.stage_agent import AgentPhase, AgentSession, BeginRun, DropRun, LoadScore
from rote.session.stage_clock import StageClock
from rote.session.stage_conductor import ConductorSession
from rote.session.stage_events import (
    AgentFound,
    AgentLost,
    ConductingBegan,
    SectionCommitted,
    SectionEnded,
    SectionRefused,
    StopConfirmed,
    StopUnconfirmed,
)
from rote.session.stage_section import LOAD_S, SectionPhase
from rote.wire.stage import AgentState, ConductorState, Run, Stop, decode_clock, encode_clock
from sampled import sample_parameters
from stage_world import Member, Network, Robot, World

BAD = Network(loss=0.1, doubled=0.1, delay_s=0.002, jitter_s=0.004)


def robots(count: int = 3) -> list[Robot]:
    return [Robot(lead_s=0.5 + 0.2 * number) for number in range(count)]


def settled(seed: int = 1, network: Network | None = None, count: int = 3) -> World:
    """Return a stage on which everybody has found everybody."""
    world = World(seed, network or Network(), robots(count))
    world.run(2.0)
    return world


def test_robots_with_different_ways_to_their_first_pose_begin_together() -> None:
    world = settled()
    world.play()
    world.run(8.0)
    (committed,) = world.seen(SectionCommitted)
    starts = [member.robot.began for member in world.members.values()]
    assert all(len(each) == 1 for each in starts)
    for ((_, start_s),) in starts:
        assert start_s == pytest.approx(committed.start_s, abs=0.003)
    (ended,) = world.seen(SectionEnded)
    assert ended.lost == ()
    assert set(ended.reports) == set(world.members)


def test_a_section_after_another_begins_too() -> None:
    world = settled()
    for section in ("one", "two", "three"):
        world.play(section)
        world.run(8.0)
    assert [event.section for event in world.seen(SectionEnded)] == ["one", "two", "three"]


def test_nobody_begins_when_one_is_not_ready_in_time() -> None:
    world = World(1, Network(), [Robot(), Robot(prepares_s=5.0), Robot()])
    world.run(2.0)
    world.play()
    world.run(15.0)
    (refused,) = world.seen(SectionRefused)
    assert refused.agents == ("robot1",)
    assert all(not member.robot.began for member in world.members.values())


def test_a_robot_whose_way_is_too_long_for_the_time_left_keeps_all_from_beginning() -> None:
    world = World(1, Network(), [Robot(), Robot(lead_s=2.9)])
    world.run(2.0)
    world.play()
    world.run(10.0)
    assert world.seen(SectionRefused)
    assert all(not member.robot.began for member in world.members.values())


def test_with_an_uncertain_clock_nothing_is_armed() -> None:
    world = settled(network=Network(delay_s=0.03))
    world.play()
    world.run(10.0)
    (refused,) = world.seen(SectionRefused)
    assert "clock" in refused.reason
    assert all(not member.robot.began for member in world.members.values())


def test_who_is_absent_is_named_before_anything_begins() -> None:
    world = settled()
    world.members["robot1"].die()
    world.run(0.5)
    world.play()
    (refused,) = world.seen(SectionRefused)
    assert refused.agents == ("robot1",)


def test_a_stop_stops_everybody_holds_and_is_reset_by_a_person_alone() -> None:
    world = settled()
    world.play()
    world.run(4.0)
    assert any(member.robot.moving for member in world.members.values())
    world.stop()
    world.run(0.5)
    assert not any(member.robot.moving for member in world.members.values())
    assert world.seen(StopConfirmed)
    world.play("two")
    world.run(5.0)
    assert world.seen(SectionRefused)
    assert world.conductor.section.phase is SectionPhase.NONE
    assert world.conductor.stops.active is not None
    assert world.conductor.stops.reset()
    world.run(1.0)
    world.play("three")
    world.run(8.0)
    assert world.seen(SectionEnded)


def test_a_second_stop_is_carried_out_and_confirmed_too() -> None:
    world = settled()
    first = world.stop()
    world.run(0.5)
    second = world.stop("somebody else")
    world.run(0.5)
    assert first.id != second.id
    assert [event.stop for event in world.seen(StopConfirmed)] == [first.id, second.id]


def test_who_does_not_confirm_a_stop_is_named() -> None:
    world = settled()
    world.members["robot2"].hung = True
    world.stop()
    world.run(2.0)
    (unconfirmed,) = world.seen(StopUnconfirmed)
    assert unconfirmed.agents == ("robot2",)


def test_a_stop_holds_over_a_restart_of_the_conductor() -> None:
    world = settled()
    stop = world.stop()
    world.run(0.5)
    world.start_conductor()
    world.run(2.0)
    assert world.conductor.section.phase is SectionPhase.NONE
    assert world.conductor.stops.active is not None
    assert world.conductor.current.stop is not None
    assert world.conductor.current.stop.id == stop.id
    assert all(m.session.phase is AgentPhase.STOPPED for m in world.members.values())


def test_a_hung_loop_with_a_living_session_counts_as_lost() -> None:
    world = settled()
    world.members["robot0"].hung = True
    world.run(1.5)
    (lost,) = world.seen(AgentLost)
    assert lost == AgentLost("robot0")


def test_without_a_conductor_nobody_moves_for_long() -> None:
    world = settled()
    world.play()
    world.run(4.0)
    assert any(member.robot.moving for member in world.members.values())
    world.first.alive = False
    world.run(1.3)
    assert not any(member.robot.moving for member in world.members.values())


def test_the_loss_of_one_stops_all_or_not_as_the_section_says() -> None:
    for stop_on_loss in (True, False):
        world = settled()
        world.play(stop_on_loss=stop_on_loss)
        world.run(3.8)
        world.members["robot1"].die()
        world.run(0.5)
        others = [world.members[name].robot.moving for name in ("robot0", "robot2")]
        assert others == [not stop_on_loss] * 2
        world.run(5.0)
        assert bool(world.seen(SectionEnded)) is not stop_on_loss


def test_an_agent_that_comes_back_in_a_section_waits_for_the_next() -> None:
    world = settled()
    world.play(stop_on_loss=False)
    world.run(3.8)
    late = world.members["robot1"]
    late.die()
    world.run(0.6)
    late.start()
    world.run(5.0)
    assert len(late.robot.began) == 1
    world.play("two")
    world.run(8.0)
    assert len(late.robot.began) == 2


TROUBLES: dict[str, Callable[[World, Member], object]] = {
    "none": lambda _world, _member: None,
    "stop": lambda world, _member: world.stop(),
    "die": lambda _world, member: member.die(),
    "cut": lambda _world, member: setattr(member, "cut", True),
    "hang": lambda _world, member: member.hang(),
    "conductor": lambda world, _member: setattr(world.first, "alive", False),
    "cancel": lambda world, _member: world.cancel(),
}


def check_together_or_not_at_all(seed: int) -> None:
    """Loss, reorder, doubled and late messages; deaths, cuts and stops at any moment."""
    world = World(seed, BAD, robots(3))
    world.run(3.0)
    world.play(stop_on_loss=seed % 2 == 0)
    trouble = world.chance.choice(list(TROUBLES))
    world.run(world.chance.uniform(0.0, 5.0))
    member = world.chance.choice(list(world.members.values()))
    happened_s = world.now_s
    TROUBLES[trouble](world, member)
    world.run(9.0)

    committed = {event.run: event.start_s for event in world.seen(SectionCommitted)}
    for each in world.members.values():
        for run, start_s in each.robot.began:
            assert run in committed, "it began without everybody being ready"
            assert start_s == pytest.approx(committed[run], abs=0.011)
        assert not each.robot.moving, "it is still moving"
        if trouble == "conductor" or (trouble == "cut" and each is member):
            ends = [when for when, moving in each.robot.moves if not moving and when > happened_s]
            assert all(when < happened_s + 1.5 for when in ends)
    if trouble == "stop":
        (confirmed,) = world.seen(StopConfirmed)
        at_s = next(when for when, event in world.events if event is confirmed)
        begun = [
            when for each in world.members.values() for when, moving in each.robot.moves if moving
        ]
        assert all(when <= at_s for when in begun)
    if trouble == "none":
        assert len(world.seen(SectionEnded)) + len(world.seen(SectionRefused)) == 1


@pytest.mark.parametrize("seeds", sample_parameters([0, 20, 40], 1))
def test_whatever_the_network_does_it_is_together_or_not_at_all(seeds: int) -> None:
    for seed in range(seeds, seeds + 20):
        check_together_or_not_at_all(seed)


@pytest.mark.soak
def test_two_thousand_bad_networks() -> None:
    for seed in range(60, 2000):
        check_together_or_not_at_all(seed)


def test_the_clocks_error_stays_within_its_bound() -> None:
    world = settled(network=Network(delay_s=0.001, jitter_s=0.005))
    for _ in range(200):
        world.run(0.1)
        for member in world.members.values():
            clock = member.session.clock
            theirs_s = member.now_s + clock.offset_s(member.now_s)
            assert abs(theirs_s - world.now_s) <= clock.bound_s(member.now_s)


def test_answers_that_were_quick_in_one_direction_each_make_the_clock_better_than_any_of_them() -> (
    None
):
    clock = StageClock()
    clock.add(0.0, 0.011, 100.001)  # quick there, 10 ms back
    assert clock.bound_s(0.011) == pytest.approx(0.0055)
    clock.add(0.02, 0.031, 100.030)  # 10 ms there, quick back
    assert clock.bound_s(0.031) == pytest.approx(0.001, abs=1e-5)
    assert clock.offset_s(0.031) == pytest.approx(100.0, abs=1e-5)
    assert clock.round_trip_s == pytest.approx(0.011)


def test_a_clock_that_was_set_is_known_by_its_newest_answers() -> None:
    clock = StageClock()
    for number in range(10):
        clock.add(number, number + 0.002, number + 100.001)
    clock.add(10.0, 10.002, 10.001 + 500.0)
    assert clock.offset_s(10.002) == pytest.approx(500.0, abs=0.001)
    assert clock.bound_s(10.002) == pytest.approx(0.001)


def test_a_clock_without_answers_is_known_to_nobody() -> None:
    clock = StageClock()
    assert clock.bound_s(0.0) == float("inf")
    clock.add(5.0, 4.0, 100.0)
    assert clock.bound_s(5.0) == float("inf")


def test_a_robot_that_tells_its_long_way_at_loading_gets_the_time_for_it() -> None:
    world = World(1, Network(), [Robot(), Robot(lead_s=2.9, tells_s=2.9)])
    world.run(2.0)
    world.play()
    world.run(12.0)
    (committed,) = world.seen(SectionCommitted)
    for member in world.members.values():
        ((_, start_s),) = member.robot.began
        assert start_s == pytest.approx(committed.start_s, abs=0.003)


@pytest.mark.parametrize("time_s", [float("nan"), float("inf"), -float("inf")])
def test_an_answer_that_is_no_time_tells_nobody_the_clock(time_s: float) -> None:
    assert decode_clock(encode_clock(12.5)) == 12.5
    assert decode_clock(encode_clock(time_s)) is None
    assert decode_clock(b"") is None


# ---- one agent, message by message --------------------------------------------------------------


class Talk:
    """An agent that is told one thing after the other; its clock is the conductor's."""

    def __init__(self) -> None:
        self.session = AgentSession("ann", "e")
        self.number = 0
        self.hear()  # a new conductor has a new clock
        self.session.clock.add(0.0, 0.0, 0.0)

    def hear(self, run: Run | None = None, now_s: float = 0.0, **more: Any) -> list[Any]:
        self.number += 1
        said = ConductorState("c", self.number, run=run)
        return self.session.on_conductor_state(replace(said, **more), now_s)

    def armed(self, lead_s: float = 1.0) -> Run:
        """Bring it to where only the word to begin is missing; return the run, which is to begin
        at 10 s."""
        run = Run("r", "one", {"ann": "sha"})
        self.hear(run)
        self.session.on_loaded("sha", lead_s)
        run = replace(run, start_s=10.0)
        self.hear(run)
        self.session.on_prepared("r", lead_s)
        assert self.session.phase is AgentPhase.ARMED
        return replace(run, committed=True)


def test_a_reset_holds_only_for_a_robot_that_was_seen_to_stop() -> None:
    talk = Talk()
    talk.hear(stop=Stop("s", "a person"))
    assert talk.hear(Run("r", "one", {"ann": "sha"}), reset="s") == []
    assert talk.session.phase is AgentPhase.STOPPED
    talk.session.on_stopped("another stop")
    assert talk.hear(Run("r", "one", {"ann": "sha"}), reset="s") == []
    talk.session.on_stopped("s")
    assert talk.hear(Run("r", "one", {"ann": "sha"}), reset="another") == []
    assert talk.hear(Run("r", "one", {"ann": "sha"}), reset="s") == [LoadScore("sha")]


def test_a_conductor_that_was_replaced_is_not_obeyed_again() -> None:
    talk = Talk()
    talk.hear()
    talk.hear(epoch="the new one")
    assert talk.hear(Run("r", "one", {"ann": "sha"})) == []
    assert talk.session.run is None
    new = talk.hear(Run("r", "one", {"ann": "sha"}), epoch="the new one")
    assert new == [LoadScore("sha")]


def test_a_run_that_was_refused_is_not_tried_again() -> None:
    talk = Talk()
    run = Run("r", "one", {"ann": "sha"})
    talk.hear(run)
    talk.session.on_loaded("sha", fault="it is damaged")
    assert talk.hear(run) == []
    assert talk.session.phase is AgentPhase.IDLE
    assert talk.session.state(0.0).fault == "it is damaged"


def test_a_run_that_ended_with_the_loss_of_the_conductor_does_not_begin_when_it_is_back() -> None:
    talk = Talk()
    run = talk.armed()
    assert talk.session.tick(1.0) == []
    assert talk.session.tick(1.1) == [DropRun("r", "the conductor is lost")]
    assert talk.hear(run, now_s=2.0) == []
    assert talk.session.run is None


def test_only_the_run_that_is_being_armed_can_become_armed() -> None:
    talk = Talk()
    run = Run("r", "one", {"ann": "sha"})
    talk.hear(run)
    talk.session.on_prepared("r", 1.0)
    assert talk.session.phase is AgentPhase.LOADING
    talk.session.on_loaded("sha", 1.0)
    talk.hear(replace(run, start_s=10.0))
    talk.session.on_prepared("an older run", 1.0)
    assert (talk.session.phase, talk.session.state(0.0).armed) == (AgentPhase.ARMING, "")
    talk.session.on_prepared("r", 1.0)
    committed = replace(run, start_s=10.0, committed=True)
    assert talk.hear(committed) == [BeginRun(committed, 10.0)]
    talk.session.on_prepared("r", 1.0)
    assert talk.hear(committed) == [], "it begins once"
    talk.hear(None)
    talk.session.on_prepared("r", 1.0)
    assert talk.session.state(0.0).phase == "idle"


def test_a_robot_that_cannot_be_made_ready_refuses_the_run_with_the_reason() -> None:
    talk = Talk()
    run = Run("r", "one", {"ann": "sha"})
    talk.hear(run)
    talk.session.on_loaded("sha", 1.0)
    talk.hear(replace(run, start_s=10.0))
    talk.session.on_prepared("r", 0.0, "its arms are soft")
    state = talk.session.state(0.0)
    assert (state.phase, state.fault, state.fault_of) == ("idle", "its arms are soft", "r")
    assert talk.hear(replace(run, start_s=10.0, committed=True)) == []


@pytest.mark.parametrize(("late_s", "begins"), [(-0.5, True), (0.019, True), (0.021, False)])
def test_who_hears_the_word_to_begin_too_late_does_not_begin(late_s: float, begins: bool) -> None:
    talk = Talk()
    run = talk.armed(lead_s=1.0)
    effects = talk.hear(run, now_s=9.0 + late_s)
    if begins:
        (begin,) = effects
        assert (begin.run, begin.start_s) == (run, pytest.approx(10.0))
    else:
        assert effects == [DropRun("r", "too late")]
        assert "too late" in talk.session.state(0.0).fault
        assert talk.hear(run, now_s=9.1) == []


def test_a_suspended_agent_forgets_the_clock_and_never_begins_what_was_armed() -> None:
    talk = Talk()
    run = talk.armed()
    (dropped,) = talk.session.resume(0.4)
    assert dropped == DropRun("r", "its computer was suspended for 0.4 s")
    assert talk.session.clock.answers == 0
    assert talk.hear(run, now_s=1.0) == []
    assert talk.session.state(0.0).fault_of == "r"
    assert talk.session.resume(0.4) == []


# ---- one clock ----------------------------------------------------------------------------------


def test_an_answer_grows_uncertain_by_a_ten_thousandth_of_its_age() -> None:
    clock = StageClock()
    clock.add(9.998, 10.0, 500.0)
    assert clock.bound_s(10.0) == pytest.approx(0.001)
    assert clock.bound_s(70.0) == pytest.approx(0.001 + 60 * 100e-6)


def test_an_answer_that_came_before_its_question_is_ignored() -> None:
    clock = StageClock()
    clock.add(10.0, 9.9, 500.0)
    assert clock.answers == 0
    clock.add(10.0, 10.0, 500.0)
    assert (clock.answers, clock.offset_s(10.0)) == (1, 490.0)


# ---- one conductor, message by message ----------------------------------------------------------


def test_each_loss_and_each_return_of_an_agent_is_told_once() -> None:
    conductor = ConductorSession("c", lambda: "id")

    def beat(number: int, now_s: float) -> list[Any]:
        return conductor.on_agent_states(AgentState("ann", "e", number), now_s=now_s)

    assert beat(1, 0.0) == [AgentFound("ann"), ConductingBegan(1)]
    assert beat(2, 0.5) == []
    for number, lost_s in ((3, 2.0), (5, 5.0)):
        assert conductor.tick(lost_s) == [AgentLost("ann")]
        assert conductor.tick(lost_s + 0.1) == []
        assert beat(number, lost_s + 0.5) == [AgentFound("ann")]
        assert beat(number + 1, lost_s + 0.6) == []


def test_a_robot_that_does_not_load_its_score_is_named_after_twenty_seconds() -> None:
    conductor = ConductorSession("c", lambda: "id")
    beats = itertools.count(1)

    def hear(now_s: float) -> list[Any]:
        ann = AgentState("ann", "e", next(beats), loaded="sha")
        return conductor.on_agent_states(ann, AgentState("bob", "e", ann.beat), now_s=now_s)

    hear(0.0)
    assert conductor.play("one", {"ann": "sha", "bob": "other"}, 0.0) == []
    for tenth in range(200):
        assert hear(tenth / 10) == []
    (refused,) = hear(LOAD_S + 0.1)
    assert refused == SectionRefused("id", "one", "not loaded within 20 s", ("bob",))


def test_a_suspended_conductor_has_a_new_epoch_and_keeps_its_stop() -> None:
    world = settled()
    world.play()
    world.run(8.0)
    world.play("two")
    epoch = world.conductor.current.epoch
    suspended, refused = world.conductor.resume(30.0)
    assert (suspended.seconds, refused.section) == (30.0, "two")  # type: ignore[union-attr]
    assert world.conductor.current.epoch != epoch
    stop = world.stop()
    world.run(1.0)
    assert len(world.conductor.resume(30.0)) == 1
    assert world.conductor.current.stop == stop
    world.run(2.0)
    assert all(each.session.phase is AgentPhase.STOPPED for each in world.members.values())
    world.conductor.stops.reset()
    world.run(2.0)
    world.play("three")
    world.run(8.0)
    assert [event.section for event in world.seen(SectionEnded)] == ["one", "three"]
