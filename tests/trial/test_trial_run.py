"""A trial on every wire: what it measures, how it ends, and how it leaves the robot."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import virtual
from rig import Pipe
from rote import messages as m
from rote.errors import BadRequestError
from rote.model.g1 import Mode
from rote.sim.behaviour import LOGGED
from rote.sim.quirks import Quirk
from rote.sim.server import Simulator
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.trial.page import render_page
from rote.trial.report import build_report, count_facts
from rote.trial.runner import (
    ENDED,
    INTERRUPTED,
    LOST,
    UNCONFIRMED,
    TrialResult,
    parse_level,
    run_trial,
)
from rote.trial.steps import TrialLevel, TrialStep, steps_for
from rote.wire.services.rpc import ArmApi
from rote.wire.teaching import codec as teaching
from trial_robots import PIPE_URL, SLOW, Answers, by_pipe, firmware, served, tried

LOOK, HOLD, MOVE = TrialLevel


def world(*quirks: str | Quirk, mode: Mode | None = None, **changes: Any) -> World:
    return World(Store(":memory:"), firmware=firmware(*quirks, **changes), mode=mode)


def agreeing(result: TrialResult) -> dict[str, Any]:
    return {fact["id"]: fact["seen"] for fact in build_report(result)["facts"] if fact["agrees"]}


# ---- every wire ---------------------------------------------------------------------------------


def test_a_trial_of_the_embedded_robot_runs_unattended_in_under_two_minutes() -> None:
    guide = Answers()
    result = virtual.run(run_trial("sim://g1?store=:memory:", MOVE, guide))
    assert (result.ended, result.left) == ("complete", [])
    assert result.seconds < 120
    assert {each for each, how in guide.ended.items() if how == "done"} >= {
        "connect", "listen", "list", "teach", "overwrite", "names", "lapse", "play", "stop",
        "refused",
    }  # fmt: skip
    measured = result.measured
    assert measured["teaching"]["lapse_s"] == pytest.approx(13.5, abs=0.2)
    assert measured["teaching"]["listed_s"] == pytest.approx(2.0, abs=0.2)
    assert measured["playing"]["first_step_rad"] < 0.1
    assert [fact for fact in build_report(result)["facts"] if fact["agrees"] is False] == []


def test_a_trial_by_the_services_measures_what_the_logs_of_a_real_robot_show() -> None:
    robot = world(SLOW)
    owners = m.SaveAction(
        name="mine",
        created_s=0,
        duration_ms=500,
        keyframes=(m.Keyframe(joint=15, time_ms=400, value_rad=0.1),),
    )
    assert robot.obey("test", owners) == m.Status(m.Code.OK)
    before = robot.store.entries()
    guide = Listening(robot)
    result = virtual.run(tried("pipe", robot, MOVE, guide))
    assert (result.ended, result.left) == ("complete", [])
    guide.check_holds()
    teaching, playing = result.measured["teaching"], result.measured["playing"]
    assert teaching["lapse_s"] == pytest.approx(10.5, abs=0.6)
    assert teaching["release_s"] == pytest.approx(4.1, abs=0.2)
    assert playing["return_s"] == pytest.approx(4.1, abs=0.3)
    assert result.measured["preset"]["answered_at_end"] is True
    assert result.measured["list"]["format"]["parts"][0]["presets"]
    delays = result.recorder.delays_s if result.recorder else {}
    assert delays["arm/7107"][0] == pytest.approx(0.02, abs=0.005)
    assert delays["arm/7108"][0] == pytest.approx(0.33, abs=0.02)
    assert {"arm.7106", "arm.7111", "teaching.lapse", "teaching.overwrites"} <= agreeing(
        result
    ).keys()
    assert robot.store.entries() == before  # the owner's own are left as they are


def test_a_look_by_webrtc_tells_the_stages_the_signalling_and_the_topics() -> None:
    result = virtual.run(tried("webrtc", world(), LOOK))
    measured = result.measured
    assert measured["signalling"] == "2"
    assert [stage["stage"] for stage in measured["connect"]["stages"]] == [
        "discover", "signal", "ICE", "DTLS", "channel", "validation",
    ]  # fmt: skip
    assert measured["topics"]["rt/lf/lowstate"]["hz"] == pytest.approx(50, abs=2)
    assert measured["topics"]["rt/arm/action/state"]["hz"] == pytest.approx(10, abs=1)
    assert (measured["slots"], measured["mode_machine"]) == (35, 5)
    assert "signalling.static-key" in agreeing(result)


def test_a_look_by_dds_counts_all_states_and_asks_the_versions() -> None:
    result = virtual.run(tried("dds", world(), LOOK, lowstate_hz=100.0))
    measured = result.measured
    assert measured["topics"]["rt/lowstate"]["hz"] == pytest.approx(100, rel=0.1)
    assert measured["services"]["versions"]["arm"] == "1.0.0.14"
    assert "rt/arm_sdk" in measured["bus"]["seen"]
    differs = [fact["id"] for fact in build_report(result)["facts"] if fact["agrees"] is False]
    assert differs == ["dds.lowstate"]  # this one reports 100 times a second


@pytest.mark.parametrize(
    ("url", "done"),
    [
        ("sim://a1?dialect=go1", ["a1-connect", "a1-listen", "a1-stand", "a1-pose", "a1-walk"]),
        ("sim://a1?level=low", ["a1-connect", "a1-listen", "a1-joint"]),
    ],
)
def test_an_a1_and_a_go1_have_a_trial_too(
    url: str, done: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.trial.a1_steps.LISTEN_S", 1.0)  # 500 states
    guide = Answers()
    result = virtual.run(run_trial(url, MOVE, guide))
    assert result.ended == "complete"
    assert [each for each, how in guide.ended.items() if how == "done"] == done
    assert [fact for fact in build_report(result)["facts"] if fact["agrees"] is False] == []


# ---- safety -------------------------------------------------------------------------------------


def test_a_look_asks_nothing_that_softens_or_moves_the_robot() -> None:
    robot = world(SLOW)
    result = virtual.run(tried("pipe", robot, LOOK))
    assert result.recorder is not None
    asked = {entry.api for entry in result.recorder.conversation if entry.sent and entry.api}
    softening = {f"arm/{api}" for api in (7106, 7108, 7109, 7110, 7111, 7112)} | {"sport/7101"}
    assert not asked & softening
    assert not [notice for notice in robot.notices if "teaching" in notice.message]


def test_ctrl_c_in_a_teaching_leaves_arms_that_hold_and_a_report() -> None:
    robot = world(SLOW)

    async def story() -> TrialResult:
        teaching = asyncio.Event()
        guide = Answers(begun=lambda step: teaching.set() if step.id == "teach" else None)
        async with served("pipe", robot) as (url, opener):
            task = asyncio.create_task(run_trial(url, HOLD, guide, opener=opener))
            await teaching.wait()
            await asyncio.sleep(2.0)
            assert robot.body.soft
            task.cancel()
            result = await task
            assert not robot.body.soft
            return result

    result = virtual.run(story())
    assert result.ended == INTERRUPTED
    assert result.measured["slots"] == 35
    report = build_report(result)
    assert {step["id"] for step in report["steps"]} >= {"connect", "listen", "list"}
    assert robot.store.entries() == ()


def test_ctrl_c_in_a_lapse_leaves_arms_that_hold() -> None:
    robot = World(Store(":memory:"))

    async def story() -> TrialResult:
        lapsing = asyncio.Event()
        guide = Answers(begun=lambda step: lapsing.set() if step.id == "lapse" else None)
        async with served("udp", robot) as (url, _):
            task = asyncio.create_task(run_trial(url, HOLD, guide))
            await lapsing.wait()
            await asyncio.sleep(2.0)
            assert robot.body.soft
            task.cancel()
            return await task

    assert virtual.run(story()).ended == INTERRUPTED
    assert not robot.body.soft


def test_a_lost_robot_ends_the_trial_with_what_was_learned() -> None:
    async def story() -> TrialResult:
        simulator = Simulator(World(Store(":memory:")))
        url = await simulator.serve_udp("127.0.0.1", 0)
        teaching = asyncio.Event()
        guide = Answers(begun=lambda step: teaching.set() if step.id == "teach" else None)
        task = asyncio.create_task(run_trial(url, HOLD, guide))
        await teaching.wait()
        await asyncio.sleep(1.0)
        await simulator.close()
        return await task

    result = virtual.run(story())
    assert result.ended == LOST
    assert result.measured["joints_told"] == 29
    assert [step["result"] for step in build_report(result)["steps"]][:2] == ["done", "done"]


def test_a_step_that_takes_too_long_is_ended_and_the_arms_hold(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    robot = world(SLOW)
    short = tuple(
        step if step.id != "teach" else replace(step, limit_s=1.5)
        for step in steps_for(HOLD, "webrtc")
    )
    monkeypatch.setattr("rote.trial.runner.steps_for", lambda *_: short[:7])
    guide = Answers()
    result = virtual.run(tried("pipe", robot, HOLD, guide))
    assert guide.ended["teach"] == "failed"
    assert "longer than 1.5 s" in next(s.note for s in result.steps if s.step.id == "teach")
    assert not robot.body.soft


def test_an_error_inside_a_step_ends_the_step_and_not_the_trial() -> None:
    robot = world("list-refused", SLOW)
    guide = Answers()
    result = virtual.run(tried("pipe", robot, MOVE, guide))
    assert result.ended == "complete"
    assert guide.ended["teach"] == "failed"
    assert guide.ended["lapse"] in ("failed", "done")
    assert not robot.body.soft


@pytest.mark.parametrize("quirks", [("no-arm-state",), ()])
def test_arms_that_did_not_hear_that_they_shall_hold_are_told_again(quirks: tuple[str]) -> None:
    """Whether the step ends as impossible, because no soft arms are reported, or as done."""
    robot = world(SLOW, *quirks, behaviour=replace(LOGGED, lapse_s=3600.0))
    soft: dict[str, bool] = {}

    class Watching(Answers):
        def end(self, step: TrialStep, result: str, note: str, seconds: float) -> None:
            super().end(step, result, note, seconds)
            soft[step.id] = bool(robot.body.soft)

    guide = Watching({step.id: "skip" for step in steps_for(HOLD, "webrtc") if step.id != "lapse"})
    virtual.run(run_trial(PIPE_URL, HOLD, guide, opener=by_pipe(robot, LosingPipe)))
    assert guide.ended["lapse"] == ("cannot" if quirks else "done")
    assert soft["lapse"] is False


class LosingPipe(Pipe):
    """Loses the first request for arms that hold, and every stop of a playback: with another
    firmware that may end no teaching.
    """

    def __init__(self, services: Services) -> None:
        super().__init__(services)
        self._lost_hold = False

    def send(self, message: str | bytes) -> None:
        text = message if isinstance(message, str) else ""
        ends = f'"api_id":{int(ArmApi.TEACH)}' in text and '"parameter":""' in text
        if ends and not self._lost_hold:
            self._lost_hold = True
        elif f'"api_id":{int(ArmApi.STOP_TAUGHT)}' not in text:
            super().send(message)


def test_a_robot_without_balance_refuses_and_the_trial_tells_with_which_code() -> None:
    robot = world(SLOW, mode=Mode.DAMP)
    result = virtual.run(tried("pipe", robot, HOLD))
    rows = {row["when"]: row["code"] for row in result.measured["refusals"]}
    assert rows["taught without balance"] == 7404
    assert robot.store.entries() == ()


# ---- the person ---------------------------------------------------------------------------------


def test_a_person_can_skip_a_step_and_end_the_trial() -> None:
    guide = Answers({"listen": "skip", "teach": "end"})
    result = virtual.run(tried("pipe", world(SLOW), MOVE, guide))
    assert result.ended == ENDED
    assert guide.ended["listen"] == "skipped"
    assert "teach" not in guide.ended
    assert guide.asked[-1].id == "teach"


def test_every_step_is_asked_for_before_it_begins() -> None:
    begun: list[str] = []
    guide = Answers()
    guide.begun = lambda step: begun.append(step.id) if step in guide.asked else None
    virtual.run(tried("pipe", world(SLOW), LOOK, guide))
    assert begun == [step.id for step in guide.asked]


def test_an_unknown_level_names_the_known_ones() -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_level("run")
    assert "look, hold, move" in str(caught.value.remedy)


def test_a_trial_by_frames_asks_for_no_motion_of_the_owners() -> None:
    robot = world()
    owners = m.SaveAction(
        name="mine",
        created_s=0,
        duration_ms=500,
        keyframes=(m.Keyframe(joint=15, time_ms=400, value_rad=0.1),),
    )
    assert robot.obey("test", owners) == m.Status(m.Code.OK)
    result = virtual.run(run_trial("sim://g1?store=:memory:", MOVE, Answers(), world=robot))
    assert result.recorder is not None
    frames = [
        teaching.decode(bytes.fromhex(entry.message))
        for entry in result.recorder.conversation
        if entry.sent and entry.api == "0x41"
    ]
    commands = [teaching.decode_command(frame.command, frame.payload) for frame in frames]
    played = {each.action for each in commands if isinstance(each, m.PlayAction)}
    assert played == {2, 250}  # the trial's own, and one that is not there


# ---- what the operator reads --------------------------------------------------------------------


class Listening(Answers):
    """Notes every sentence, and whether the arms were soft at that moment."""

    def __init__(self, robot: World, begun: Callable[[TrialStep], None] = lambda _: None) -> None:
        super().__init__(begun=begun)
        self.robot = robot
        self.notes: list[tuple[str, bool]] = []

    def note(self, message: str) -> None:
        self.notes.append((message, bool(self.robot.body.soft)))

    def check_holds(self) -> None:
        """Check that the arms were said to hold twice, and held each time."""
        soft = [soft for message, soft in self.notes if message == "the arms are soft"]
        held = [soft for message, soft in self.notes if message == "the arms hold again"]
        assert len(held) == len(soft) == 2
        assert not any(held)


@pytest.mark.parametrize("wire", [pytest.param("pipe", marks=pytest.mark.soak), "udp"])
def test_arms_are_said_to_hold_only_when_they_do(wire: str) -> None:
    robot = world()
    guide = Listening(robot)
    virtual.run(tried(wire, robot, HOLD, guide))
    guide.check_holds()


def test_a_robot_killed_while_soft_is_not_said_to_hold_nor_to_keep_actions() -> None:
    robot = World(Store(":memory:"))

    async def story() -> tuple[TrialResult, list[str]]:
        simulator = Simulator(robot)
        url = await simulator.serve_udp("127.0.0.1", 0)
        teaching = asyncio.Event()
        guide = Listening(robot, lambda step: teaching.set() if step.id == "teach" else None)
        task = asyncio.create_task(run_trial(url, HOLD, guide))
        await teaching.wait()
        await asyncio.sleep(1.0)
        assert robot.body.soft
        await simulator.close()
        return await task, [message for message, _ in guide.notes]

    result, notes = virtual.run(story())
    assert result.ended == LOST
    assert "the arms hold again" not in notes
    assert notes[-1] == f"The arms may still be soft: hold them. {UNCONFIRMED}"
    assert not result.stop_confirmed
    assert result.left == []


def test_an_action_that_was_saved_before_the_loss_is_said_to_remain() -> None:
    robot = World(Store(":memory:"))

    async def story() -> TrialResult:
        simulator = Simulator(robot)
        url = await simulator.serve_udp("127.0.0.1", 0)
        again = asyncio.Event()
        guide = Answers(begun=lambda step: again.set() if step.id == "overwrite" else None)
        task = asyncio.create_task(run_trial(url, HOLD, guide))
        await again.wait()
        await asyncio.sleep(1.0)
        await simulator.close()
        return await task

    assert virtual.run(story()).left == ["rote-trial"]


def test_a_lost_robot_that_is_back_is_stopped_by_a_new_connection() -> None:
    async def story() -> TrialResult:
        simulator = Simulator(World(Store(":memory:")))
        url = await simulator.serve_udp("127.0.0.1", 0)
        teaching = asyncio.Event()
        guide = Answers(begun=lambda step: teaching.set() if step.id == "teach" else None)
        task = asyncio.create_task(run_trial(url, HOLD, guide))
        await teaching.wait()
        await asyncio.sleep(1.0)
        await simulator.close()
        await asyncio.sleep(5.0)  # until the client counts it as lost
        again = Simulator(World(Store(":memory:")))
        assert await again.serve_udp("127.0.0.1", int(url.rpartition(":")[2])) == url
        result = await task
        await again.close()
        return result

    result = virtual.run(story())
    assert result.ended == LOST
    assert result.stop_confirmed


def test_an_inner_time_out_is_not_called_the_steps_limit() -> None:
    robot = world(SLOW)
    guide = Answers({step.id: "skip" for step in steps_for(HOLD, "webrtc") if step.id != "teach"})

    class Mute(Pipe):
        """Loses every request to teach."""

        def send(self, message: str | bytes) -> None:
            if f'"api_id":{int(ArmApi.TEACH)}' not in str(message):
                super().send(message)

    result = virtual.run(run_trial(PIPE_URL, HOLD, guide, opener=by_pipe(robot, Mute)))
    note = next(one.note for one in result.steps if one.step.id == "teach")
    assert guide.ended["teach"] == "failed"
    assert "longer than" not in note
    assert "answer" in note


def test_facts_that_a_step_only_uses_do_not_count_as_agreeing() -> None:
    result = virtual.run(run_trial("sim://g1?store=:memory:", MOVE, Answers()))
    report = build_report(result)
    frames = [fact for fact in report["facts"] if fact["page"] == "frames"]
    used = [fact for fact in frames if fact["used"]]
    assert len(frames) == 80
    assert len(used) == 68
    assert all(fact["agrees"] is None and fact["seen"] is None for fact in frames)
    assert all("used, not tested" in fact["note"] for fact in used)
    told = count_facts(report)
    assert (told.agree, told.differ, told.used) == (0, 0, 68)
    assert "Facts used, not tested (68)" in render_page(report)
