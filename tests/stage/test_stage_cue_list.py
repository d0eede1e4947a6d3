"""A cue list in virtual time: GO, BACK, jumps, skips, mute, lamps, and going on after a STOP."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, cast

import pytest

import virtual
from rote.cli.show import _Keys
from rote.errors import BadRequestError
from rote.messages import Phase
from rote.session.stage_agent import AgentPhase
from rote.session.stage_events import SectionEnded, StopBegan
from rote.stage.conductor import Conductor, SectionError, SupersededError
from rote.stage.cues import CueState, Lamp
from rote.stage.report import SectionReport
from rote.stage.reset import find_readiness
from rote.stage.score_file import pack
from rote.stage.show.check import CheckedShow
from rote.stage.show.file import (
    Cast,
    Clip,
    RoleLoss,
    Section,
    Show,
    ShowRole,
    Trigger,
    TriggerKind,
    find_droppable,
    from_data,
)
from rote.stage.stage import TRY_STAGE, Stage
from rote.transport.zenoh.bus import StageBus
from rote.wire.osc import OscMessage
from rote.wire.stage import ConductorState
from stage.test_stage_agent import LEFT, score
from stage.test_stage_report import break_stop
from stage_memory import MemoryStage, memory_stage
from stage_world import Network, Robot, World

NAMES = ("one", "two", "three")


def three_sections() -> CheckedShow:
    sections = tuple(
        Section(name, Trigger(TriggerKind.AFTER), (Clip("left", "bend"),)) for name in NAMES
    )
    scores = {(name, "left"): score(LEFT, name) for name in NAMES}
    return CheckedShow(Show("", (ShowRole("left"),), sections), scores, ())


@dataclass
class CueRun:
    """A show that plays on a stage with one robot."""

    one: MemoryStage
    task: "asyncio.Task[None]"
    played: list[SectionReport] = field(default_factory=list)
    interruptions: list[SectionError] = field(default_factory=list)

    @property
    def status(self) -> Any:
        found = self.one.stage.cues
        assert found is not None
        return found

    async def until_state(self, state: CueState, section: str) -> None:
        await self.one.until(
            lambda: self.task.done() or (self.status.state, self.status.section) == (state, section)
        )
        if self.task.done():
            await self.task
            raise AssertionError("the show is over")

    async def until_moving(self) -> None:
        await self.one.until(lambda: self.one.rig.world.state().phase is Phase.PLAYING)

    @property
    def names(self) -> list[str]:
        return [each.name for each in self.played]


@asynccontextmanager
async def cue_run(
    first: str = "", *, stays: bool = True, checked: CheckedShow | None = None
) -> AsyncIterator[CueRun]:
    async with memory_stage() as one:
        run: CueRun

        async def play() -> None:
            async for section in one.stage.sections(
                checked or three_sections(),
                Cast({"left": "ann"}),
                first=first,
                on_interrupted=run.interruptions.append if stays else None,
            ):
                run.played.append(section)

        run = CueRun(one, asyncio.get_running_loop().create_task(asyncio.sleep(0)))
        run.task = asyncio.create_task(play())
        try:
            await asyncio.sleep(0.05)
            yield run
        finally:
            run.task.cancel()
            await asyncio.gather(run.task, return_exceptions=True)


@asynccontextmanager
async def standing_by(
    one: MemoryStage, tell: Callable[[str], None] = lambda _text: None
) -> AsyncIterator[Stage]:
    """Open a standby on the stage."""
    async with Conductor(cast("StageBus", one.bus), TRY_STAGE, standby=True) as conductor:
        stage = Stage(conductor, tell, mute=True)
        await one.until(lambda: "ann:" in stage.other_conductor)
        try:
            yield stage
        finally:
            await stage.close()


def test_a_show_begins_with_the_named_section_and_shows_where_it_is() -> None:
    async def story() -> None:
        async with cue_run("two") as run:
            await run.until_state(CueState.STARTING, "two")
            assert (run.status.following, run.status.left_s) == ("three", None)
            await run.until_state(CueState.PLAYING, "two")
            assert run.status.lamps == {"ann": Lamp.PLAYING}
            assert 0.0 < run.status.left_s <= score(LEFT, "two").duration_s
            assert "two: playing, " in run.status.line
            await run.task
            assert run.names == ["two", "three"]
            assert run.one.stage.cues is None

    virtual.run(story())


def test_an_unknown_section_is_refused_before_anything_moves() -> None:
    async def story() -> None:
        async with cue_run("tow") as run:
            with pytest.raises(BadRequestError, match="no section 'tow'") as caught:
                await run.task
            assert "two" in caught.value.remedy
            assert run.one.rig.world.state().phase is Phase.NONE
            with pytest.raises(BadRequestError, match="no show is under way"):
                run.one.stage.back()

    virtual.run(story())


def test_back_in_a_section_ends_it_softly_and_it_waits_for_go() -> None:
    async def story() -> None:
        async with cue_run() as run:
            await run.until_moving()
            run.one.stage.back()
            await run.until_state(CueState.WAITING, "one")
            await run.one.until(lambda: run.one.rig.world.state().phase is Phase.NONE)
            assert run.one.conductor.active_stop is None, "BACK is no stop"
            await asyncio.sleep(30.0)
            assert run.status.state is CueState.WAITING, "it begins only with GO"
            assert run.status.waits_for == "GO"
            run.one.stage.go()
            await run.task
            assert run.names == list(NAMES)
            assert ["BACK" in str(each) for each in run.interruptions] == [True]

    virtual.run(story())


def test_jumps_and_skips_select_a_section_that_waits_for_go() -> None:
    async def story() -> None:
        async with cue_run() as run:
            await run.until_moving()
            run.one.stage.jump("three")
            await run.until_state(CueState.WAITING, "three")
            run.one.stage.back()
            await run.until_state(CueState.WAITING, "two")
            with pytest.raises(BadRequestError, match="no section 'tow'"):
                run.one.stage.jump("tow")
            run.one.stage.skip()
            await run.until_state(CueState.WAITING, "three")
            run.one.stage.go()
            await run.task
            assert run.names == ["three"]

    virtual.run(story())


def test_a_show_goes_on_after_a_stop_only_when_it_was_reset() -> None:
    async def story() -> None:
        async with cue_run() as run:
            await run.until_moving()
            await run.one.stage.stop("a test")
            await run.until_state(CueState.STOPPED, "one")
            assert run.status.lamps == {"ann": Lamp.STOPPED}
            run.one.stage.go()
            await asyncio.sleep(10.0)
            assert "a stop is active" in str(run.interruptions[-1])
            assert run.one.rig.world.state().phase is Phase.NONE
            run.one.stage.reset()
            await asyncio.sleep(10.0)
            assert run.status.state is CueState.WAITING, "a reset moves nothing"
            run.one.stage.go()
            await run.task
            assert run.names == list(NAMES)

    virtual.run(story())


def test_without_a_person_a_stop_ends_the_show_as_before() -> None:
    async def story() -> None:
        async with cue_run(stays=False) as run:
            await run.until_moving()
            await run.one.stage.stop("a test")
            with pytest.raises(SectionError, match="a test"):
                await run.task

    virtual.run(story())


def test_a_muted_robot_stops_softly_at_once_and_stays_out_until_it_is_unmuted() -> None:
    async def story() -> None:
        async with cue_run() as run:
            stage = run.one.stage
            await run.until_moving()
            stage.mute("ann")
            await run.one.until(lambda: run.one.rig.world.state().phase is Phase.NONE)
            await run.task
            assert [each.left_out for each in run.played] == [(), ("ann",), ("ann",)]
            assert stage.muted == {"ann"}
        async with cue_run() as run:
            with pytest.raises(BadRequestError, match="the robot 'eve' is not in the cast"):
                run.one.stage.mute("eve")
            run.one.stage.mute("ann")
            run.one.stage.mute("ann", muted=False)
            await run.until_moving()

    virtual.run(story())


def test_osc_controls_the_cue_list_and_nonsense_changes_nothing() -> None:
    async def story() -> None:
        async with cue_run() as run:
            stage = run.one.stage
            await run.until_moving()
            stage.osc.receive(OscMessage("/rote/jump", ("nowhere",)))
            stage.osc.receive(OscMessage("/rote/jump", ()))
            stage.osc.receive(OscMessage("/rote/mute", (1,)))
            assert (run.status.section, run.status.state is CueState.WAITING) == ("one", False)
            stage.osc.receive(OscMessage("/rote/jump", ("two",)))
            await run.until_state(CueState.WAITING, "two")
            stage.osc.receive(OscMessage("/rote/skip"))
            await run.until_state(CueState.WAITING, "three")
            stage.osc.receive(OscMessage("/rote/back"))
            await run.until_state(CueState.WAITING, "two")
            stage.osc.receive(OscMessage("/rote/mute", ("ann",)))
            assert run.status.lamps == {"ann": Lamp.MUTED}
            stage.osc.receive(OscMessage("/rote/unmute", ("ann",)))
            stage.osc.receive(OscMessage("/rote/go"))
            await run.task
            assert run.names == ["two", "three"]

    virtual.run(story())


def test_the_keyboard_resets_a_stop_after_a_look_and_a_yes() -> None:
    async def story() -> None:
        async with cue_run() as run:
            told: list[str] = []
            keys = _Keys(run.one.stage, told.append)
            await run.until_moving()
            for line in ("s", "r", "no", "r"):
                await keys._run_key_line(line)
            assert "  ann: ready" in told
            assert "The STOP stays active." in told
            assert find_readiness(run.one.conductor) is not None
            await keys._run_key_line("yes")
            assert run.one.conductor.active_stop is None
            await asyncio.sleep(1.0)
            await keys._run_key_line("j three")
            await run.until_state(CueState.WAITING, "three")
            await keys._run_key_line("what")
            assert "s STOP all robots" in told[-1]
            await keys._run_key_line("q")
            await run.task
            assert run.names == []

    virtual.run(story())


def test_the_keyboard_resets_no_stop_that_was_not_shown() -> None:
    async def story() -> None:
        async with cue_run() as run:
            told: list[str] = []
            keys = _Keys(run.one.stage, told.append)
            await run.until_moving()
            await keys._run_key_line("s")
            await keys._run_key_line("r")
            await run.one.stage.stop("the safety officer")
            await keys._run_key_line("yes")
            assert run.one.conductor.active_stop is not None
            assert "has changed" in told[-1]

    virtual.run(story())


@pytest.mark.parametrize("ending", ["back", "finish", "stop and reset"])
def test_a_section_that_is_ended_while_it_is_packed_never_begins(
    ending: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with cue_run("three") as run:
            stage, loop = run.one.stage, asyncio.get_running_loop()
            tasks: list[asyncio.Task[None]] = []

            async def stop_and_reset() -> None:
                await stage.stop("a test")
                stage.reset()

            def end(acted: threading.Event) -> None:
                if ending == "stop and reset":
                    tasks.append(loop.create_task(stop_and_reset()))
                else:
                    {"back": stage.back, "finish": stage.finish}[ending]()
                loop.call_soon(acted.set)

            def pack_late(*args: Any) -> bytes:
                acted = threading.Event()
                loop.call_soon_threadsafe(end, acted)
                assert acted.wait(20.0)
                return pack(*args)

            await run.until_moving()
            stage.jump("two")
            await run.until_state(CueState.WAITING, "two")
            await run.one.until(lambda: run.one.rig.world.state().phase is Phase.NONE, 15.0)
            monkeypatch.setattr("rote.stage.conductor.pack", pack_late)
            stage.go()
            for _ in range(400):
                await asyncio.sleep(0.02)
                assert run.one.rig.world.state().phase is not Phase.PLAYING
            assert run.played == []
            await asyncio.gather(*tasks)

    virtual.run(story())


def following(trigger: Trigger) -> CheckedShow:
    """Return a show whose second section has this trigger, and whose first is played twice."""
    checked = three_sections()
    one, two, three = checked.show.sections
    sections = (replace(one, loop=2), replace(two, start=trigger), three)
    return replace(checked, show=replace(checked.show, sections=sections))


@pytest.mark.parametrize("pass_number", [1, 2])
def test_a_section_that_a_robot_did_not_complete_is_followed_by_nothing_without_go(
    pass_number: int,
) -> None:
    """The conductor's messages are lost for so short that it does not notice it."""

    async def story() -> None:
        async with cue_run(checked=following(Trigger(TriggerKind.AFTER))) as run:
            await run.one.until(lambda: len(run.played) == pass_number - 1)
            await run.until_state(CueState.PLAYING, "one")
            await run.until_moving()
            run.one.bus.drops = lambda key: key == run.one.keys.conductor
            await run.one.until(lambda: run.one.agent.session.run is None, 1.2)
            run.one.bus.drops = lambda _: False
            await run.until_state(CueState.WAITING, "one")
            assert run.status.waits_for == "GO"
            assert [each.incomplete for each in run.played[pass_number - 1 :]] == [("ann",)]
            assert "not all robots completed it (ann)" in str(run.interruptions[-1])
            await asyncio.sleep(30.0)
            assert run.one.rig.world.state().phase is Phase.NONE
            assert run.status.state is CueState.WAITING
            run.one.stage.go()
            await run.task
            assert run.names[pass_number:] == ["one", "one", "two", "three"]

    virtual.run(story())


def test_without_a_person_a_show_ends_after_a_section_that_was_not_completed() -> None:
    async def story() -> None:
        async with cue_run(stays=False) as run:
            await run.until_moving()
            run.one.bus.drops = lambda key: key == run.one.keys.conductor
            await run.one.until(lambda: run.one.agent.session.run is None, 1.2)
            run.one.bus.drops = lambda _: False
            with pytest.raises(SectionError, match="not all robots completed it"):
                await run.task
            assert run.names == ["one"]

    virtual.run(story())


def test_a_lost_robot_that_the_show_may_drop_does_not_hold_up_the_next_section() -> None:
    may_drop = replace(three_sections().show.roles[0], on_loss=RoleLoss.DROP)

    async def story() -> None:
        checked = three_sections()
        checked = replace(checked, show=replace(checked.show, roles=(may_drop,)))
        async with cue_run("two", checked=checked) as run:
            await run.until_moving()
            run.one.bus.drops = lambda key: key == run.one.keys.state("ann")
            await run.task
            assert [each.lost for each in run.played] == [("ann",), ()]
            assert run.interruptions == []

    virtual.run(story())


@pytest.mark.parametrize("trigger", [Trigger(TriggerKind.AFTER, 30.0), Trigger()])
def test_a_conductor_that_stalled_between_two_sections_begins_nothing_by_itself(
    trigger: Trigger,
) -> None:
    async def story() -> None:
        async with cue_run(checked=following(trigger)) as run:
            await run.until_state(CueState.WAITING, "two")
            run.one.conductor._last_run_s -= 60.0  # as after SIGSTOP
            await asyncio.sleep(30.0)
            assert run.one.rig.world.state().phase is Phase.NONE
            assert (run.status.state, run.status.waits_for) == (CueState.WAITING, "GO")
            reasons = [each.reason for each in run.interruptions]
            is_automatic = trigger.on is TriggerKind.AFTER
            assert [each.startswith("the conductor stalled for 60") for each in reasons] == (
                [True] if is_automatic else []
            )
            run.one.stage.go()
            await run.task
            assert run.names == ["one", *NAMES]

    virtual.run(story())


@pytest.mark.parametrize("is_suspended", [False, True])
def test_a_go_that_was_given_while_the_conductor_hung_is_refused(is_suspended: bool) -> None:
    async def story() -> None:
        async with cue_run("two") as run, asyncio.timeout(300.0):
            stage = run.one.stage
            await run.until_moving()
            stage.back()
            await run.until_state(CueState.WAITING, "two")
            if is_suspended:
                virtual.suspend(3.0)
            else:
                run.one.conductor._last_run_s -= 3.0  # as after SIGSTOP
            for late in (stage.go, stage.resume):
                with pytest.raises(BadRequestError, match="hung until just now"):
                    late()
            await asyncio.sleep(10.0)
            assert run.status.state is CueState.WAITING
            assert run.one.rig.world.state().phase is Phase.NONE
            stage.go()
            await run.task
            assert run.names[-2:] == ["two", "three"]

    virtual.run(story())


def test_a_go_just_before_the_conductor_hangs_begins_nothing_after_it() -> None:
    async def story() -> None:
        async with cue_run("two") as run, asyncio.timeout(300.0):
            await run.until_moving()
            run.one.stage.back()
            await run.until_state(CueState.WAITING, "two")
            await asyncio.sleep(1.0)
            run.one.stage.go()
            run.one.conductor._last_run_s -= 3.0  # SIGSTOP, before the waiting section noticed GO
            run.one.conductor._notice_stall()
            await asyncio.sleep(10.0)
            assert run.status.state is CueState.WAITING
            assert run.one.rig.world.state().phase is Phase.NONE
            run.one.stage.go()
            await run.task
            assert run.names[-2:] == ["two", "three"]

    virtual.run(story())


def test_a_go_is_refused_until_the_conductor_has_caught_up() -> None:
    async def story() -> None:
        async with cue_run("two") as run, asyncio.timeout(300.0):
            conductor = run.one.conductor
            await run.until_moving()
            run.one.stage.back()
            await run.until_state(CueState.WAITING, "two")
            conductor._last_run_s -= 3.0
            for _ in range(5):  # what waited in memory and sockets is processed slowly
                await asyncio.sleep(0.2)
                conductor._last_run_s -= 0.3
                with pytest.raises(BadRequestError, match="hung until just now"):
                    run.one.stage.go()
            await asyncio.sleep(0.6)
            run.one.stage.go()
            await run.task

    virtual.run(story())


def test_a_section_that_is_packed_while_the_conductor_stalls_never_begins(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with cue_run("three") as run:
            loop = asyncio.get_running_loop()

            def pack_late(*args: Any) -> bytes:
                noticed = threading.Event()

                def stall() -> None:
                    run.one.conductor._last_run_s -= 3.0
                    run.one.conductor._notice_stall()
                    noticed.set()

                loop.call_soon_threadsafe(stall)
                assert noticed.wait(20.0)
                return pack(*args)

            await run.until_moving()
            run.one.stage.back()
            await run.until_state(CueState.WAITING, "three")
            await run.one.until(lambda: run.one.rig.world.state().phase is Phase.NONE, 15.0)
            monkeypatch.setattr("rote.stage.conductor.pack", pack_late)
            run.one.stage.go()
            await run.one.until(lambda: len(run.interruptions) == 2)
            assert "cancelled before it began" in run.interruptions[-1].reason
            assert run.played == []

    virtual.run(story())


def droppable(world: World, *names: str) -> None:
    """Begin a section that may go on without these agents."""
    scores = dict.fromkeys(world.members, "sha-one")
    world.first.note(world.conductor.play("one", scores, world.now_s, may_drop=names))
    world.first.publish()


@pytest.mark.parametrize("lost_after_s", [0.3, 2.0, 3.5, 4.5])
def test_the_others_go_on_without_a_lost_robot_if_the_show_file_allows_it(
    lost_after_s: float,
) -> None:
    world = World(1, Network(), [Robot(length_s=3.0), Robot(length_s=3.0)])
    world.run(2.0)
    droppable(world, "robot1")
    world.run(lost_after_s)
    world.members["robot1"].die()
    world.run(12.0)
    (ended,) = world.seen(SectionEnded)
    assert ended.lost == ("robot1",)
    assert len(world.members["robot0"].robot.began) == 1
    assert not world.seen(StopBegan)


@pytest.mark.parametrize("lost_after_s", [0.3, 2.0, 3.5, 4.5])
def test_the_loss_of_a_robot_that_the_show_needs_stops_or_refuses_all(lost_after_s: float) -> None:
    world = World(1, Network(), [Robot(length_s=3.0), Robot(length_s=3.0)])
    world.run(2.0)
    droppable(world, "robot1")
    world.run(lost_after_s)
    world.members["robot0"].die()
    world.run(12.0)
    assert not world.seen(SectionEnded)
    assert not world.members["robot1"].robot.moving


def test_a_role_says_in_the_show_file_that_its_robot_may_be_dropped() -> None:
    section = {"name": "one", "clips": [{"role": "a", "take": "x"}]}
    data: dict[str, Any] = {
        "rote_show": 1,
        "roles": {"a": {}, "b": {"on_loss": "drop"}},
        "sections": [section],
    }
    assert find_droppable(from_data(data), Cast({"a": "ann", "b": "bob"})) == {"bob"}
    data["roles"] = {"a": {"on_loss": "maybe"}}
    with pytest.raises(BadRequestError, match="'maybe' is not known"):
        from_data(data)


@pytest.mark.parametrize(
    "what", ["a stop that was reset", "such a stop in an automatic show", "another conductor"]
)
def test_what_comes_between_two_sections_lets_nothing_begin_by_itself(what: str) -> None:
    """At the end of a section, when nobody waits for its end or for the next trigger."""

    async def story() -> None:
        interruptions: list[SectionError] = []
        async with memory_stage() as one:
            sections = one.stage.sections(
                three_sections(),
                Cast({"left": "ann"}),
                automatic="automatic" in what,
                on_interrupted=interruptions.append,
            )
            assert (await anext(sections)).name == "one"
            if what == "another conductor":
                other = ConductorState("another", 1, term=9)
                one.bus.publish(one.keys.conductor, other.encode())
                await asyncio.sleep(0.1)
                with pytest.raises(SupersededError):
                    await asyncio.wait_for(anext(sections), 60.0)
                return
            await one.stage.stop("a test")
            one.stage.reset()
            following = asyncio.ensure_future(anext(sections))
            for _ in range(400):
                await asyncio.sleep(0.02)
                assert one.rig.world.state().phase is not Phase.PLAYING
            status = one.stage.cues
            assert status is not None
            assert (status.state, status.section) == (CueState.WAITING, "two")
            assert len(interruptions) == 1
            one.stage.go()
            assert (await following).name == "two"
            await sections.aclose()  # type: ignore[attr-defined]

    virtual.run(story())


def test_a_superseded_conductor_does_not_wait_for_go() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            other = ConductorState("another", 1, term=9)
            one.bus.publish(one.keys.conductor, other.encode())
            await asyncio.sleep(0.1)
            sections = one.stage.sections(
                three_sections(), Cast({"left": "ann"}), first="two", selected=True
            )
            with pytest.raises(SupersededError):
                await asyncio.wait_for(anext(sections), 60.0)

    virtual.run(story())


def test_a_robot_that_has_not_confirmed_a_stop_is_named_and_has_its_own_lamp() -> None:
    async def story() -> None:
        async with cue_run() as run:
            one, told = run.one, list[str]()
            one.stage._notify_user = told.append
            async with standing_by(one, told.append) as standby:
                await run.until_moving()
                stop = one.robot.stop
                break_stop(one)
                await standby.stop("the standby")
                assert one.agent.session.phase is AgentPhase.STOPPED
                assert run.status.lamps == {"ann": Lamp.UNCONFIRMED}
                assert "ann:UNCONFIRMED" in standby.other_conductor
                line = "STOP was NOT confirmed by ann: use the remote!"
                await one.until(lambda: told.count(line) == 2)  # at the conductor and the standby
                one.robot.stop = stop  # type: ignore[method-assign]

    virtual.run(story())
