"""What one agent does when words come late, twice or in the middle; in virtual time."""

import asyncio
import dataclasses
import errno
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, cast

import numpy as np
import pytest

import virtual
from rote.errors import NoAnswerError, RoteError
from rote.messages import Phase
from rote.model.g1 import G1_29
from rote.motion.files.agreed_origins import agree
from rote.motion.track import Origin, Track
from rote.platform import paths
from rote.robot.playing import Playing
from rote.session.stage_agent import AgentPhase
from rote.stage.agent import STATE_S
from rote.stage.conductor import SectionError
from rote.stage.demo import play_demo
from rote.stage.keys import StageKeys
from rote.stage.score_file import name_of, pack
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import Cast, Clip, LossRule, Section, Show, ShowRole, Trigger, TriggerKind
from rote.stage.show.score import PlacedAction, PlacedTrack, Score
from rote.stage.stage import TRY_STAGE
from rote.stage.watcher import StageWatcher
from rote.transport.zenoh.bus import StageBus
from rote.wire.stage import AgentState, Reset, Stop, decode_conductor, decode_stop
from stage_memory import MemoryStage, TableBus, memory_stage

LEFT, RIGHT = "left_elbow_joint", "right_elbow_joint"


def bent(joint: str, seconds: float = 4.0) -> Track:
    """Return a motion of one joint, there and back."""
    times_s = np.linspace(0.0, seconds, round(100 * seconds) + 1)
    rest_rad = G1_29.rest_rad[G1_29.names.index(joint)]
    values = rest_rad + 0.3 * np.sin(np.pi * times_s / seconds) ** 2
    return Track(times_s=times_s, joints_rad=values[:, None], names=(joint,), variant="g1-29")


def score(joint: str, section: str, *, actions: tuple[PlacedAction, ...] = ()) -> Score:
    return Score(section, "left", PlacedTrack(0.0, bent(joint)), actions)


async def moved_while(one: MemoryStage, work: "asyncio.Future[Any]") -> set[str]:
    """Return which joints went away from rest until some work was done."""
    seen: set[str] = set()
    async with asyncio.timeout(60.0):
        while not work.done():
            joints_rad = one.rig.world.state().joints_rad
            far = np.abs(np.array(joints_rad) - np.array(G1_29.rest_rad)) > 0.1
            seen |= {name for name, away in zip(G1_29.names, far, strict=True) if away}
            await asyncio.sleep(0.02)
    return seen


def test_a_score_that_comes_after_its_section_was_cancelled_is_not_played() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            late, wanted = score(LEFT, "one"), score(RIGHT, "two")
            key = one.keys.blob(name_of(pack(late)))
            one.bus.answers_after_s[key] = 1.5
            first = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": late}))
            await one.until(lambda: one.agent.session.run is not None)
            first.cancel()
            with suppress(asyncio.CancelledError):
                await first
            second = asyncio.ensure_future(one.conductor.play(Section("two"), {"ann": wanted}))
            assert await moved_while(one, second) == {RIGHT}
            assert (await second).reports["ann"] is not None

    virtual.run(story())


def test_nothing_is_left_prepared_by_a_load_that_a_stop_came_into() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            late = score(LEFT, "one")
            key = one.keys.blob(name_of(pack(late)))
            one.bus.answers_after_s[key] = 1.5
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": late}))
            await one.until(lambda: one.agent.session.run is not None)
            await one.stage.stop("a test")
            with pytest.raises(SectionError, match="a test"):
                await playing
            await asyncio.sleep(5.0)
            assert one.agent._part is None

    virtual.run(story())


def test_an_action_that_fails_ends_the_whole_part_of_the_robot() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            mixed = score(LEFT, "one", actions=(PlacedAction(1.5, "not there"),))
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": mixed}))
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            with suppress(RoteError):
                reports = (await playing).reports
                assert reports["ann"] is not None
                assert not reports["ann"].completed
            await one.until(lambda: one.agent.session.run is None)
            assert one.rig.world.state().phase in (Phase.RETURN, Phase.NONE)

    virtual.run(story())


def test_a_stop_that_the_robot_does_not_answer_is_repeated_when_the_conductor_is_lost() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            whole = score(LEFT, "one")
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": whole}))
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            robot, tries = one.robot, 0
            stop = robot.stop

            async def deaf() -> None:
                nonlocal tries
                tries += 1
                if tries == 1:
                    raise NoAnswerError("the robot did not answer", "Try again.")
                await stop()

            robot.stop = deaf  # type: ignore[method-assign]
            assert one.conductor._tasks
            for task in one.conductor._tasks:
                task.cancel()  # the conductor falls silent
            await one.until(lambda: one.rig.world.state().phase is Phase.RETURN, 3.0)
            assert tries > 1
            playing.cancel()

    virtual.run(story())


def test_a_stop_that_the_network_drops_is_said_again_before_the_next_state() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            whole = score(LEFT, "one")
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": whole}))
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            keys = one.keys
            lost: list[str] = []

            def drops(key: str) -> bool:
                first = key == keys.stop and not lost
                lost.extend([key] * first)
                return first or key == keys.conductor

            one.bus.drops = drops  # the first stop, and what would say it again
            answer = await one.conductor.stop("a test")
            assert lost == [keys.stop]
            assert answer.confirmed_s is not None
            assert answer.confirmed_s < 0.08
            with pytest.raises(SectionError, match="a test"):
                await playing

    virtual.run(story())


def waiting_show() -> CheckedShow:
    """Return a show whose only section begins by itself after a while."""
    start = Trigger(TriggerKind.AFTER, 30.0)
    section = Section("late", start, (Clip("left", "bend"),))
    show = Show("", (ShowRole("left"),), (section,))
    return CheckedShow(show, {("late", "left"): score(LEFT, "late")}, ())


def test_a_stop_ends_a_show_that_waits_for_its_next_section() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            show = asyncio.ensure_future(one.stage.play(waiting_show(), Cast({"left": "ann"})))
            await asyncio.sleep(5.0)
            await one.stage.stop("a test")
            await asyncio.sleep(1.0)
            one.stage.reset()
            with pytest.raises(SectionError, match="a test"):
                await show
            assert one.rig.world.state().phase is Phase.NONE

    virtual.run(story())


def test_a_section_that_is_refused_does_not_end_the_one_that_plays() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            with pytest.raises(SectionError, match="under way"):
                await one.conductor.play(Section("two"), {"ann": score(RIGHT, "two")})
            report = (await playing).reports["ann"]
            assert report is not None
            assert report.completed

    virtual.run(story())


@pytest.mark.parametrize("dies", [False, True])
def test_the_demo_ends_also_where_its_last_section_never_begins(
    dies: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.stage.demo._TAKE_S", 1.5)

    async def story() -> None:
        async with memory_stage() as one:
            told: list[str] = []

            def tell(text: str) -> None:
                told.append(text)
                if "STOP" in text and dies:
                    one.running.cancel()  # the agent ends between two sections

            playing = asyncio.ensure_future(play_demo(one.stage, ("ann",), tell))
            async with asyncio.timeout(120.0):
                if dies:
                    with pytest.raises(SectionError, match="ann"):
                        await playing
                else:
                    report = await playing
                    assert len(report.sections) == 2
                    assert report.stopped_within_s is not None

    virtual.run(story())


@pytest.mark.parametrize("rule", LossRule)
def test_whoever_is_lost_in_a_section_is_named_in_its_report(rule: LossRule) -> None:
    section = Section("one", Trigger(TriggerKind.GO), (Clip("left", "bend"),), on_loss=rule)
    show = CheckedShow(
        Show("", (ShowRole("left"),), (section,)), {("one", "left"): score(LEFT, "one")}, ()
    )

    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.stage.play(show, Cast({"left": "ann"}), automatic=True)
            )
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            said = StageKeys(TRY_STAGE).state("ann")
            one.bus.drops = lambda key: key == said
            if rule is LossRule.GO_ON:
                report = await playing
                assert report.sections[0].lost == ("ann",)
                assert report.as_json()["sections"][0]["lost"] == ["ann"]
            else:
                with pytest.raises(SectionError, match="the loss of ann") as caught:
                    await playing
                assert caught.value.lost == ("ann",)

    virtual.run(story())


def test_a_stop_from_another_terminal_waits_for_who_is_heard_a_little_later() -> None:
    async def story() -> None:
        keys, table = StageKeys(TRY_STAGE), TableBus()
        watcher = StageWatcher(
            cast("StageBus", table), keys, conducted=True, invited=("ann", "bob")
        )
        loop, stopped = asyncio.get_running_loop(), [""]
        table.subscribe(keys.stop, lambda _, data: stopped.__setitem__(0, decode_stop(data).id))

        async def tell(name: str, first_s: float, *, confirms: bool) -> None:
            await asyncio.sleep(first_s)
            for beat in range(1, 100):
                done = stopped[0] if confirms else ""
                table.publish(keys.state(name), AgentState(name, "e", beat, stopped=done).encode())
                await asyncio.sleep(0.1)

        ann = loop.create_task(tell("ann", 0.01, confirms=True))
        bob = loop.create_task(tell("bob", 0.09, confirms=False))
        assert await watcher.stop("a test") == ("bob",)
        ann.cancel()
        bob.cancel()

    virtual.run(story())


@pytest.mark.parametrize("key", ["leads", "conductor", "state", "reset"])
def test_a_stop_that_is_delivered_under_another_key_stops_and_never_resets(key: str) -> None:
    """When a router froze, Zenoh 1.10.2 was seen to deliver messages under the keys of others."""

    async def story() -> None:
        async with memory_stage() as one:
            keys = {
                "leads": one.keys.leads("ann"),
                "conductor": one.keys.conductor,
                "state": one.keys.state("ann"),
                "reset": one.keys.reset,
            }
            stop = Stop("s1", "a test")
            one.bus.publish(keys[key], stop.encode())
            await one.until(lambda: one.agent.session.phase is AgentPhase.STOPPED, 1.0)
            await one.until(lambda: active_stop(one) == stop.id, 1.0)
            one.bus.publish(one.keys.reset, stop.encode())
            await asyncio.sleep(1.0)
            assert active_stop(one) == stop.id
            one.bus.publish(one.keys.reset, Reset("another").encode())
            await asyncio.sleep(1.0)
            assert active_stop(one) == stop.id
            one.bus.publish(one.keys.reset, Reset(stop.id).encode())
            await one.until(lambda: one.agent.session.phase is AgentPhase.IDLE, 1.0)

    virtual.run(story())


def active_stop(one: MemoryStage) -> str | None:
    stop = one.conductor.active_stop
    return None if stop is None else stop.id


@contextmanager
def full_disk() -> Iterator[None]:
    """Let every file that is written fail, as on a full disk."""

    def fail(_handle: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        yield


def facts_of(one: MemoryStage) -> tuple[str, ...]:
    return one.conductor.agents["ann"].facts


def test_a_full_disk_beside_one_robot_does_not_hold_up_the_show() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            one.rig.fill(1)
            acting = Score("one", "left", None, (PlacedAction(1.0, "stored 0"),))
            full = os.strerror(errno.ENOSPC)
            with full_disk():
                async with asyncio.timeout(60.0):
                    ended = await one.conductor.play(Section("one"), {"ann": acting})
                await one.until(lambda: any(full in each for each in facts_of(one)))
            assert ended.reports["ann"] is not None
            assert ended.reports["ann"].completed
            async with asyncio.timeout(60.0):
                await one.conductor.play(Section("one"), {"ann": acting})
            await one.until(lambda: not one.conductor.agents["ann"].facts)
            assert json.loads(paths.agent_file(TRY_STAGE, "ann").read_text())["leads_s"]

    virtual.run(story())


def test_an_error_that_was_not_foreseen_ends_a_robots_part_and_stops_it() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            mixed = score(LEFT, "one", actions=(PlacedAction(1.5, "broken"),))

            async def broken(*_: object, **__: object) -> None:
                raise RuntimeError("out of order")

            one.robot.start = broken  # type: ignore[method-assign, assignment]
            async with asyncio.timeout(60.0):
                ended = await one.conductor.play(Section("one"), {"ann": mixed})
            assert ended.reports["ann"] is not None
            assert not ended.reports["ann"].completed
            assert "out of order" in one.conductor.agents["ann"].fault
            assert one.rig.world.state().phase in (Phase.RETURN, Phase.NONE)

    virtual.run(story())


def test_a_stop_that_fails_in_any_way_is_repeated_and_shown_until_it_succeeds() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            whole = score(LEFT, "one")
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": whole}))
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            robot, fails = one.robot, True
            stop = robot.stop

            async def failing() -> None:
                if fails:
                    raise ValueError("the driver is out of order")
                await stop()

            robot.stop = failing  # type: ignore[method-assign]
            answer = await one.conductor.stop("a test")
            assert answer.unconfirmed == ("ann",)
            facts = one.conductor.agents["ann"].facts
            assert any("could not be stopped" in each for each in facts), facts
            fails = False
            await one.until(lambda: one.conductor.agents["ann"].stopped, 2.0)
            await one.until(lambda: not one.conductor.agents["ann"].facts, 2.0)
            with pytest.raises(SectionError, match="a test"):
                await playing

    virtual.run(story())


def test_an_action_that_was_stopped_at_the_robot_is_not_reported_as_completed() -> None:
    async def story() -> None:
        async with memory_stage() as one, one.rig.bystander() as other:
            one.rig.fill(1)
            acting = Score("one", "left", None, (PlacedAction(1.0, "stored 0"),))
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": acting}))
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            await other.stop()
            ended = await playing
            assert ended.reports["ann"] is not None
            assert not ended.reports["ann"].completed
            assert "stopped" in ended.faults["ann"]

    virtual.run(story())


def suspend(one: MemoryStage, seconds: float, *, conductor: bool = False) -> None:
    """Suspend the agent's computer, or the conductor's: here both are one."""
    other = one.agent if conductor else one.conductor
    other._suspensions.take = lambda: 0.0  # type: ignore[method-assign]
    virtual.suspend(seconds)


def test_an_agent_that_was_suspended_before_the_start_does_not_begin_late() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            await one.until(lambda: one.agent.session.phase is AgentPhase.RUNNING)
            assert one.rig.world.state().phase is Phase.NONE, "its start is still to come"
            suspend(one, 0.4)
            with pytest.raises(SectionError, match=r"its computer was suspended for 0.4 s .ann"):
                await playing
            for _ in range(500):
                assert one.rig.world.state().phase is Phase.NONE
                await asyncio.sleep(0.02)

    virtual.run(story())


def test_an_agent_that_was_suspended_in_a_section_stops_its_robot_and_reports_why() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            one.rig.fill(1)
            later = score(LEFT, "one", actions=(PlacedAction(30.0, "stored 0"),))
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": later}))
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            suspend(one, 0.4)
            ended = await asyncio.wait_for(playing, 2.0)
            assert "suspended for 0.4 s" in ended.faults["ann"]
            await one.until(lambda: one.rig.world.state().phase is Phase.NONE, 10.0)
            report = one.conductor.agents["ann"].report
            assert report is not None
            assert not report.completed

    virtual.run(story())


def test_a_suspended_agent_stops_its_robot_before_it_hears_from_the_conductor() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            one.bus.drops = lambda key: key == one.keys.conductor
            suspend(one, 0.4)
            await one.until(lambda: one.rig.world.state().phase is Phase.RETURN, 0.2)
            playing.cancel()
            with suppress(asyncio.CancelledError):
                await playing

    virtual.run(story())


def test_an_action_is_not_begun_by_an_agent_that_was_suspended_before_it() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            one.rig.fill(1)
            acting = Score("one", "left", None, (PlacedAction(1.0, "stored 0"),))
            begun: list[str] = []
            start = one.robot.start

            async def noting(name: str, **options: Any) -> Playing:
                begun.append(name)
                return await start(name, **options)

            one.robot.start = noting  # type: ignore[method-assign, assignment]
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": acting}))
            await one.until(lambda: one.agent.session.phase is AgentPhase.RUNNING)
            part = one.agent._part
            assert part is not None
            due_s = one.conductor.session.current.run.start_s + 0.5  # type: ignore[union-attr, operator]
            loop = asyncio.get_running_loop()
            # The resumed program runs its timers in order of their time: this one before the look.
            loop.call_at(due_s - 1e-6, suspend, one, 0.4)
            with suppress(SectionError):
                await playing
            assert begun == []

    virtual.run(story())


def test_after_a_suspension_an_agent_asks_for_the_clock_again_before_anything_is_armed() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            one.bus.drops = lambda key: key == one.keys.clock
            answers = one.bus.answerers
            one.bus.answerers = [each for each in answers if each[0] != one.keys.clock]
            await asyncio.sleep(3.0)
            assert one.agent.session.clock.answers
            suspend(one, 0.4)
            await one.until(lambda: one.conductor.agents["ann"].clock_bound_s > 1.0, 1.0)
            assert one.agent.session.clock.answers == 0
            one.bus.answerers = answers
            await one.until(lambda: one.conductor.agents["ann"].clock_bound_s < 0.01, 3.0)

    virtual.run(story())


def test_a_conductor_that_was_suspended_cancels_the_section_and_says_why() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            epoch = one.conductor.session.current.epoch
            suspend(one, 30.0, conductor=True)
            with pytest.raises(
                SectionError, match=r"conductor's computer was suspended for 30.0 s"
            ):
                await asyncio.wait_for(playing, 1.0)
            assert one.conductor.session.current.epoch != epoch
            await one.until(lambda: one.rig.world.state().phase is Phase.RETURN, 1.0)

    virtual.run(story())


@pytest.mark.parametrize("on", [TriggerKind.AFTER, TriggerKind.GO])
def test_a_section_that_waits_for_a_time_does_not_begin_after_a_suspension(
    on: TriggerKind,
) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            section = Section("late", Trigger(on, 30.0), (Clip("left", "bend"),))
            show = Show("", (ShowRole("left"),), (section,))
            checked = CheckedShow(show, {("late", "left"): score(LEFT, "late")}, ())
            playing = asyncio.ensure_future(one.stage.play(checked, Cast({"left": "ann"})))
            await asyncio.sleep(5.0)
            suspend(one, 3600.0, conductor=True)
            await asyncio.sleep(1.0)
            if on is TriggerKind.GO:
                one.stage.go()
                assert (await playing).sections[0].incomplete == ()
            else:
                with pytest.raises(SectionError, match=r"was suspended for 3600.0 s"):
                    await asyncio.wait_for(playing, 1.0)

    virtual.run(story())


def make_deaf(one: MemoryStage) -> list[float]:
    """Let the robot answer no stop any more; return a list of the times it was asked to."""
    times_s: list[float] = []
    loop = asyncio.get_running_loop()

    async def deaf() -> None:
        times_s.append(loop.time())
        raise NoAnswerError("the robot did not answer", "Try again.")

    one.robot.stop = deaf  # type: ignore[method-assign]
    return times_s


@pytest.mark.parametrize(
    "told",
    ["while it plays", "after a stop", "after a stop at rest", "after the conductor is lost"],
)
def test_an_agent_that_ends_tries_for_three_seconds_to_stop_a_deaf_robot(told: str) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            if told == "after a stop at rest":
                await playing
            else:
                await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            tried_s = make_deaf(one)
            if told.startswith("after a stop"):
                assert (await one.conductor.stop("a test")).unconfirmed == ("ann",)
            elif told == "after the conductor is lost":
                one.bus.drops = lambda key: key == one.keys.conductor
                await asyncio.sleep(1.5)
            ended_s = asyncio.get_running_loop().time()
            one.running.cancel()
            await asyncio.wait({one.running})
            took_s = asyncio.get_running_loop().time() - ended_s
            assert 2.9 < took_s < 3.2
            assert len([each for each in tried_s if each >= ended_s]) > 20
            playing.cancel()
            with suppress(SectionError, asyncio.CancelledError):
                await playing

    virtual.run(story())


def test_a_section_that_comes_into_another_is_prepared_when_the_robot_is_at_rest() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            first = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            await asyncio.sleep(2.0)
            one.bus.drops = lambda key: key == one.keys.conductor
            first.cancel()
            await asyncio.wait({first})
            second = asyncio.ensure_future(
                one.conductor.play(Section("two"), {"ann": score(RIGHT, "two")})
            )
            await asyncio.sleep(0.3)
            one.bus.drops = lambda _: False  # the agent hears of the second only now
            await one.until(lambda: one.agent.session.phase is AgentPhase.READY)
            assert one.rig.world.state().phase is Phase.NONE
            report = (await second).reports["ann"]
            assert report is not None
            assert report.completed

    virtual.run(story())


def test_a_foreign_motion_is_played_on_a_real_robot_only_after_a_person_agreed() -> None:
    async def story() -> None:
        async with memory_stage("udp") as one:
            origin = Origin("unitree-csv", "dance.csv", digest="d" * 64)
            track = dataclasses.replace(bent(LEFT), origin=origin)
            foreign = Score("one", "left", PlacedTrack(0.0, track))
            with pytest.raises(SectionError, match=r"dance\.csv"):
                await one.conductor.play(Section("one"), {"ann": foreign})
            assert one.rig.world.state().phase is Phase.NONE
            agree(origin)
            assert not (await one.conductor.play(Section("one"), {"ann": foreign})).faults

    virtual.run(story())


def test_a_stop_is_published_in_the_moment_it_is_asked_for() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            loop, heard_s = asyncio.get_running_loop(), list[float]()
            one.bus.subscribe(one.keys.stop, lambda *_: heard_s.append(loop.time()))
            asked_s = loop.time()
            await one.conductor.stop("a test")
            assert heard_s[0] - asked_s < 0.001
            assert one.bus.urgent == {one.keys.stop}

    virtual.run(story())


def test_a_stop_of_another_program_is_published_by_the_conductor_in_that_moment() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            loop, keys, stops_s = asyncio.get_running_loop(), one.keys, list[float]()

            def note(_key: str, data: bytes) -> None:
                if decode_conductor(data).stop is not None:
                    stops_s.append(loop.time())

            one.bus.subscribe(keys.conductor, note)
            await asyncio.sleep(0.03)
            asked_s = loop.time()
            one.bus.publish(keys.stop, Stop("one", "another terminal").encode())
            await one.until(lambda: stops_s)
            assert stops_s[0] - asked_s < 0.015

    virtual.run(story())


def test_the_end_of_an_agents_session_in_a_section_stops_all_in_that_moment() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = asyncio.ensure_future(
                one.conductor.play(Section("one"), {"ann": score(LEFT, "one")})
            )
            await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
            loop, keys, stops = asyncio.get_running_loop(), one.keys, list[float]()

            def note(_key: str, data: bytes) -> None:
                if decode_conductor(data).stop is not None:
                    stops.append(loop.time())

            one.bus.subscribe(keys.conductor, note)
            await asyncio.sleep(0.03)
            gone_s = loop.time()
            one.bus.end_session(keys.token("ann"))
            with pytest.raises(SectionError, match="the loss of ann") as caught:
                await playing
            assert caught.value.lost == ("ann",)
            await one.until(lambda: stops)
            assert stops[0] - gone_s < 0.015

    virtual.run(story())


def test_bytes_that_are_no_stop_are_ignored_by_the_conductor() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            faults: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))
            for data in (b"", b"{}", b'{"id": ""}', b'{"id": 3}', b"\xff"):
                one.bus.publish(one.keys.stop, data)
            await asyncio.sleep(0.5)
            assert faults == []
            assert one.conductor.active_stop is None

    virtual.run(story())


def test_a_listener_that_fails_keeps_no_stop_from_being_confirmed() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            faults: list[dict[str, Any]] = []
            asyncio.get_running_loop().set_exception_handler(lambda _, fault: faults.append(fault))

            def broken(_event: object) -> None:
                raise KeyError("out of order")

            one.conductor.on_event(broken)
            answer = await one.conductor.stop("a test")
            assert answer.confirmed_s is not None
            assert {type(each["exception"]) for each in faults} == {KeyError}

    virtual.run(story())


def test_a_robot_whose_clock_is_not_known_well_enough_is_not_gathered() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            assert await one.conductor.wait_for_agents(("ann", "bob"), 0.5) == ("bob",)
            clock = one.keys.clock
            one.bus.answerers = [each for each in one.bus.answerers if each[0] != clock]
            await asyncio.sleep(0.001)  # an answer may be on its way to the session
            one.agent.session.clock.forget()
            await asyncio.sleep(0.5)
            assert await one.conductor.wait_for_agents(("ann",), 0.5) == ("ann",)

    virtual.run(story())


@pytest.mark.parametrize("speed", [1.0, 0.5])
def test_an_action_is_played_at_the_speed_of_its_score(speed: float) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            one.rig.fill(1)
            acting = Score("one", "left", None, (PlacedAction(1.0, "stored 0", speed),))
            playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": acting}))
            played_s = 0.0
            while not playing.done():
                played_s += 0.01 * (one.rig.world.state().phase is Phase.PLAYING)
                await asyncio.sleep(0.01)
            assert played_s == pytest.approx(0.5 / speed, abs=0.1)

    virtual.run(story())


def test_an_action_is_reported_and_learned_by_when_the_body_began_to_move() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            one.rig.fill(1)
            acting = Score("one", "left", None, (PlacedAction(1.0, "stored 0"),))
            loop = asyncio.get_running_loop()
            for late_s in (-0.1, 0.0):  # the first time the lead is a guess, then it is known
                playing = asyncio.ensure_future(one.conductor.play(Section("one"), {"ann": acting}))
                await one.until(lambda: one.agent.session.phase is AgentPhase.RUNNING)
                run = one.conductor.session.current.run
                assert run is not None
                assert run.start_s is not None
                await one.until(lambda: one.rig.world.state().phase is Phase.PLAYING)
                moved_s = loop.time() - run.start_s - 1.0
                report = (await playing).reports["ann"]
                assert report is not None
                assert report.skew_s == pytest.approx(moved_s, abs=0.03)
                assert report.skew_s == pytest.approx(late_s, abs=0.03)

    virtual.run(story())


def test_a_stop_is_confirmed_as_soon_as_the_robot_has_stopped() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            confirmed_s: list[float] = []
            for _ in range(10):  # at any time between two periodic messages of the agent
                answer = await one.conductor.stop("a test")
                assert answer.confirmed_s is not None
                confirmed_s.append(answer.confirmed_s)
                one.conductor.reset()
                await asyncio.sleep(0.37)
            assert max(confirmed_s) < STATE_S / 2

    virtual.run(story())
