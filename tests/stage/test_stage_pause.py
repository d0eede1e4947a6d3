"""A section is paused and goes on: together, checked and without a jump; in virtual time."""

import asyncio
from dataclasses import replace

import numpy as np
import pytest

import virtual
from rote.errors import BadRequestError, DecodeError
from rote.messages import Phase
from rote.model.g1 import G1_29
from rote.stage import agent, agent_part
from rote.stage.cues import CueState, Lamp
from rote.stage.section_time import SectionTime
from rote.stage.show.check import CheckedShow, check_show
from rote.stage.show.file import Cast, Cue, CueKind, from_data
from rote.stage.show.score import HOLD_PADDING_S, Score
from rote.wire.osc import OscMessage
from rote.wire.stage import ConductorState, Run, decode_conductor
from stage.test_stage_agent import LEFT, bent
from stage.test_stage_cue_list import CueRun, cue_run, three_sections
from stage_memory import memory_stage


async def pause(run: CueRun) -> None:
    """Pause the section that plays, and wait until the robot holds its pose."""
    await run.one.until(lambda: run.one.conductor.agents["ann"].pausable)
    run.one.stage.pause()
    await run.one.until(lambda: run.one.conductor.session.section.not_held == ())


def arms(run: CueRun) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array(run.one.rig.world.state().joints_rad)


def test_a_paused_section_holds_its_pose_and_goes_on_to_its_end() -> None:
    async def story() -> None:
        async with cue_run("three") as run:
            await run.until_state(CueState.PLAYING, "three")
            await pause(run)
            assert run.status.state is CueState.PAUSED
            assert run.status.lamps == {"ann": Lamp.PAUSED}
            assert run.one.conductor.active_stop is None, "a pause is no stop"
            await asyncio.sleep(1.0)
            left_s, before = run.status.left_s, arms(run)
            await asyncio.sleep(20.0)
            assert run.status.left_s == pytest.approx(left_s)
            assert np.abs(arms(run) - before).max() < 0.02
            assert run.one.rig.world.state().phase is Phase.PLAYING
            fastest = 0.0
            run.one.stage.go()
            last, last_s = arms(run), asyncio.get_running_loop().time()
            while not run.task.done():
                await asyncio.sleep(0.02)
                now, now_s = arms(run), asyncio.get_running_loop().time()
                fastest = max(fastest, np.abs(now - last).max() / (now_s - last_s))
                last, last_s = now, now_s
            await run.task
            assert fastest < 3.0, "no jump on resume"
            (section,) = run.played
            assert section.incomplete == ()

    virtual.run(story())


@pytest.mark.parametrize("ending", ["stop", "conductor lost", "back", "mute"])
def test_a_paused_robot_is_stopped_like_any_other(ending: str) -> None:
    async def story() -> None:
        async with cue_run() as run:
            await run.until_state(CueState.PLAYING, "one")
            await pause(run)
            if ending == "stop":
                answer = await run.one.stage.stop("a test")
                assert answer.confirmed_s is not None
            elif ending == "conductor lost":
                run.one.bus.drops = lambda key: key == run.one.conductor._keys.conductor
            elif ending == "back":
                run.one.stage.back()
            else:
                run.one.stage.mute("ann")
            await run.one.until(lambda: run.one.rig.world.state().phase is Phase.NONE, 15.0)
            await asyncio.sleep(0.5)
            assert run.one.agent._part is None
            with pytest.raises(BadRequestError, match="it is not paused"):
                run.one.stage.resume()

    virtual.run(story())


def test_a_section_goes_on_only_when_the_arms_are_where_the_pause_holds_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def story() -> None:
        async with cue_run() as run:
            await run.until_state(CueState.PLAYING, "one")
            with pytest.raises(BadRequestError, match="it is not paused"):
                run.one.stage.resume()
            await pause(run)
            with pytest.raises(BadRequestError, match="paused already"):
                run.one.stage.pause()
            with monkeypatch.context() as displaced:
                displaced.setattr(agent_part, "HELD_RAD", -1.0)  # whatever is measured is too far
                await asyncio.sleep(0.5)
                with pytest.raises(BadRequestError, match=r"does not hold its pose \(ann\)"):
                    run.one.stage.resume()
                assert run.status.state is CueState.PAUSED
            await asyncio.sleep(0.5)
            run.one.stage.resume()
            await run.until_state(CueState.STARTING, "two")

    virtual.run(story())


def test_a_pause_that_is_too_long_ends_softly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent, "MAX_PAUSE_S", 10.0)

    async def story() -> None:
        async with cue_run("three") as run:
            await run.until_state(CueState.PLAYING, "three")
            await pause(run)
            await run.task
            assert "paused for more than" in run.played[0].faults["ann"]
            assert run.played[0].incomplete == ("ann",)
            await run.one.until(lambda: run.one.rig.world.state().phase is Phase.NONE, 15.0)

    virtual.run(story())


@pytest.mark.parametrize("ending", ["mute", "stop"])
def test_a_paused_section_without_robots_does_not_wait_for_its_cues(ending: str) -> None:
    show = three_sections()
    cue = Cue(CueKind.OSC, 1.0, "", "/light")
    checked = replace(show, scores={**show.scores, ("one", ""): Score("one", "", cues=(cue,))})

    async def story() -> None:
        async with cue_run(checked=checked) as run:
            await run.until_state(CueState.PLAYING, "one")
            await pause(run)
            if ending == "stop":
                await run.one.stage.stop("a test")
            else:
                run.one.stage.mute("ann")
            state = CueState.WAITING if ending == "mute" else CueState.STOPPED
            await run.until_state(state, "one")
            await run.one.until(lambda: run.interruptions)
            reason = "ended in a pause" if ending == "mute" else "stopped by a test"
            assert reason in str(run.interruptions[0])

    virtual.run(story())


def test_a_pause_before_the_section_has_begun_is_refused_and_osc_pauses() -> None:
    async def story() -> None:
        async with cue_run("three") as run:
            await run.until_state(CueState.STARTING, "three")
            with pytest.raises(BadRequestError, match="no section is playing"):
                run.one.stage.pause()
            await run.until_state(CueState.PLAYING, "three")
            await run.one.until(lambda: run.one.conductor.agents["ann"].pausable)
            run.one.stage.osc.receive(OscMessage("/rote/pause"))
            await run.until_state(CueState.PAUSED, "three")
            run.one.stage.osc.receive(OscMessage("/rote/resume"))
            assert run.status.state is CueState.PAUSED, "the robot still slows down"
            await run.one.until(lambda: run.one.conductor.session.section.not_held == ())
            run.one.stage.osc.receive(OscMessage("/rote/resume"))
            await run.task
            assert run.names == ["three"]

    virtual.run(story())


def test_what_is_due_in_or_after_a_pause_is_due_later_by_the_pause() -> None:
    time = SectionTime(lambda: 30.0)
    time.holds = ((10.0, 15.0), (20.0, None))
    assert time.is_paused
    assert [time.shift(due_s) for due_s in (9.0, 10.0, 14.0, 15.0)] == [9.0, 15.0, 19.0, None]
    assert time.held_s == 15.0

    async def story() -> float:
        loop = asyncio.get_running_loop()
        time = SectionTime(loop.time)
        began_s = loop.time()
        waiting = asyncio.create_task(time.wait_until(began_s + 5.0))
        await asyncio.sleep(1.0)
        time.holds = ((began_s + 2.0, None),)
        await asyncio.sleep(60.0)
        assert not waiting.done()
        time.holds = ((began_s + 2.0, began_s + 70.0),)
        assert await waiting == began_s + 73.0
        return loop.time() - began_s

    assert virtual.run(story()) == pytest.approx(73.0)


def test_holds_survive_the_wire_and_nonsense_does_not() -> None:
    run = Run("r", "one", {"ann": "sha"}, 1.0, True, ((2.0, 3.0), (4.0, None)))
    data = ConductorState("c", 1, run).encode()
    assert decode_conductor(data).run == run
    for wrong in (b'"holds":[[2.0]]', b'"holds":7', b'"holds":[["a",null]]'):
        begin, end = data.index(b'"holds"'), data.index(b"]]") + 2
        with pytest.raises(DecodeError):
            decode_conductor(data[:begin] + wrong + data[end:])


def held_section() -> CheckedShow:
    data = {
        "rote_show": 1,
        "roles": {"left": {}, "right": {}},
        "sections": [
            {
                "name": "one",
                "hold": True,
                "clips": [
                    {"role": "left", "take": "half", "to_s": 2.0},
                    {"role": "right", "take": "whole", "at_s": 1.0},
                ],
            },
            {"name": "two", "clips": [{"role": "left", "take": "half"}]},
        ],
    }
    return check_show(from_data(data), lambda _: bent(LEFT), lambda _: 0.0, contact=False)


def held_alone() -> CheckedShow:
    """The same show for the left robot alone."""
    checked = held_section()
    alone = {key: each for key, each in checked.scores.items() if key[1] == "left"}
    return CheckedShow(checked.show, alone, ())


def test_all_roles_of_a_section_with_hold_end_together_in_their_last_poses() -> None:
    checked = held_section()
    assert checked.ok
    left, right = (checked.scores["one", role].motion for role in ("left", "right"))
    assert left is not None
    assert right is not None
    assert left.end_s == pytest.approx(right.end_s) == pytest.approx(5.0 + HOLD_PADDING_S)
    late = left.track.times_s > 2.1
    assert np.ptp(left.track.joints_rad[late], axis=0).max() == 0.0
    assert checked.scores["two", "left"].motion.end_s == pytest.approx(4.0)  # type: ignore[union-attr]


def test_a_section_with_hold_keeps_the_last_pose_until_go_which_begins_the_next() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            show = held_alone()
            played: list[str] = []

            async def play() -> None:
                cast = Cast({"left": "ann"})
                async for section in one.stage.sections(show, cast, begun=True):
                    played.append(section.name)  # noqa: PERF401 - read meanwhile

            playing = asyncio.create_task(play())
            await one.until(lambda: one.stage.cues and one.stage.cues.state is CueState.PAUSED)
            await one.until(lambda: one.conductor.session.section.not_held == ())
            await asyncio.sleep(15.0)
            away = np.abs(np.array(one.rig.world.state().joints_rad) - np.array(G1_29.rest_rad))
            assert away.max() == pytest.approx(0.3, abs=0.03), "the pose at 2 s of the take"
            assert played == []
            one.stage.go()
            await playing
            assert played == ["one", "two"], "one GO ends the hold and begins the next section"

    virtual.run(story())


def test_an_automatic_show_does_not_hold_a_section_for_a_go_that_never_comes() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            playing = one.stage.play(held_alone(), Cast({"left": "ann"}), automatic=True)
            report = await asyncio.wait_for(playing, 60.0)
            assert [section.name for section in report.sections] == ["one", "two"]

    virtual.run(story())


def test_an_action_of_the_robot_cannot_be_held_at_its_end() -> None:
    section = {"name": "one", "hold": True, "clips": [{"role": "a", "action": "stored"}]}
    data = {"rote_show": 1, "roles": {"a": {}}, "sections": [section]}
    checked = check_show(from_data(data), lambda _: bent(LEFT), lambda _: 0.0)
    assert not checked.ok
    assert "cannot be held" in str(checked.findings[0].finding.message)


@pytest.mark.parametrize("after_s", [0.15, 0.6, 1.1])
def test_a_second_pause_while_the_robots_speed_up_is_refused_and_harms_nothing(
    after_s: float,
) -> None:
    async def story() -> None:
        async with cue_run("three") as run:
            await run.until_state(CueState.PLAYING, "three")
            await pause(run)
            run.one.stage.go()
            await asyncio.sleep(after_s)
            with pytest.raises(BadRequestError, match="speeding up"):
                run.one.stage.pause()
            await run.task
            (section,) = run.played
            assert (section.incomplete, section.faults) == ((), {})

    virtual.run(story())


def test_a_robot_that_another_client_stopped_does_not_count_as_held() -> None:
    async def story() -> None:
        async with cue_run("three") as run:
            await run.until_state(CueState.PLAYING, "three")
            await pause(run)
            async with run.one.rig.connect() as other:
                await other.stop()
                await asyncio.sleep(8.0)
            assert run.task.done() or run.one.conductor.session.section.not_held == ("ann",)

    virtual.run(story())


def test_a_go_at_a_hold_begins_nothing_in_the_next_show() -> None:
    async def story() -> None:
        async with memory_stage() as one:
            checked = held_section()
            alone = {key: each for key, each in checked.scores.items() if key[1] == "left"}
            show = CheckedShow(checked.show, alone, ())

            async def play(begun: bool) -> None:
                async for _ in one.stage.sections(show, Cast({"left": "ann"}), begun=begun):
                    pass

            first = asyncio.create_task(play(begun=True))
            await one.until(lambda: one.stage.cues and one.stage.cues.state is CueState.PAUSED)
            await one.until(lambda: one.conductor.session.section.not_held == ())
            one.stage.go()
            await asyncio.sleep(0.7)
            await one.stage.stop("a test")
            await asyncio.gather(first, return_exceptions=True)
            await asyncio.sleep(10.0)
            one.stage.reset()
            await asyncio.sleep(2.0)
            second = asyncio.create_task(play(begun=False))
            await asyncio.sleep(8.0)
            assert one.stage.cues is not None
            assert one.stage.cues.state is CueState.WAITING
            assert one.rig.world.state().phase is not Phase.PLAYING
            second.cancel()
            await asyncio.gather(second, return_exceptions=True)

    virtual.run(story())
