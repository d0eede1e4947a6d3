"""However something ends, the arms hold or come to rest, and what is reported is true."""

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable
from contextlib import suppress

import numpy as np
import pytest

import rote
import virtual
from rig import SERVICES_HZ, Pipe, Rig, client_of, rig
from rote import messages as m
from rote.connection import connect
from rote.errors import (
    BadRequestError,
    CautionError,
    NoAnswerError,
    PeerLostError,
    RefusedError,
    RoteError,
    TimeLimitError,
)
from rote.messages import Code, Phase
from rote.motion.track import Track
from rote.robot.api_values import Waiting, Waits
from rote.robot.message_robot import G1
from rote.robot.ticker import TimedStart
from rote.sim.fsm import ArmActivity
from rote.sim.quirks import Quirk, Quirks
from rote.transport.impair import Impairment
from rote.transport.link import Link, Receiver
from rote.transport.services.client import ServicesClient
from rote.transport.udp.client import TeachingClient
from rote.wire.services.rpc import ArmApi, VoiceApi
from rote.wire.teaching import codec as frames
from test_services_wire import lose_answers

Story = Callable[[Rig, G1], Awaitable[None]]


def tell(story: Story, wire: str = "services", *quirks: str, polite: bool = True) -> None:
    async def run() -> None:
        own = rig(wire, quirks=quirks, polite=polite, services_hz=SERVICES_HZ)
        async with own as one, one.connect() as robot:
            await story(one, robot)

    virtual.run(run())


def store(one: Rig, seconds: float, *, loop: bool = False) -> str:
    """Store an action that moves until just before its end."""
    ends_ms = round(seconds * 1000)
    keyframes = (m.Keyframe(joint=15, time_ms=ends_ms - 100, value_rad=0.3),)
    save = m.SaveAction(
        name="stored", created_s=0, duration_ms=ends_ms, keyframes=keyframes, loop=loop
    )
    assert one.world.obey("test", save) == m.Status(Code.OK)
    return "stored"


def sent_calls(pipe: Pipe) -> list[tuple[int, str]]:
    """Return a list to which each request of the client is added: its number and parameter."""
    sent: list[tuple[int, str]] = []
    send = pipe.send

    def noting(message: str | bytes) -> None:
        if isinstance(message, str):
            said = json.loads(message)
            if said.get("type") == "req":
                data = said["data"]
                sent.append((data["header"]["identity"]["api_id"], data.get("parameter", "")))
        send(message)

    pipe.send = noting  # type: ignore[method-assign]
    return sent


def lose_teaching_requests(pipe: Pipe) -> None:
    send = pipe.send

    def lossy(message: str | bytes) -> None:
        if f'"api_id":{int(ArmApi.TEACH)}' not in str(message).replace(" ", ""):
            send(message)

    pipe.send = lossy  # type: ignore[method-assign]


# ---- teaching -----------------------------------------------------------------------------------


@pytest.mark.parametrize("wire", ["memory", "services"])
def test_a_stop_before_the_arms_are_asked_to_be_soft_keeps_them_stiff(wire: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        teaching = robot.teach("wave")
        await robot.stop()
        with pytest.raises(RefusedError) as caught:
            async with teaching:
                raise AssertionError("the arms are soft after a stop")
        assert caught.value.code == Code.SUPERSEDED
        assert not one.world.body.soft

    tell(story, wire)


@pytest.mark.parametrize(
    "error", [RefusedError(7404, "no"), NoAnswerError("silence"), TimeoutError()]
)
def test_arms_hold_although_the_recording_could_not_be_stopped(error: Exception) -> None:
    async def story(one: Rig, robot: G1) -> None:
        client = client_of(robot)
        send = client.ask

        async def ask(command: m.Command) -> m.Reply:
            if command == m.Record(on=False):
                raise error
            return await send(command)

        client.ask = ask  # type: ignore[method-assign]
        with suppress(RoteError):  # whether it was saved does not matter here
            async with robot.teach("wave"):
                await asyncio.sleep(1.0)
                assert one.world.body.soft
        assert not one.world.body.soft

    tell(story, "memory")


def test_the_recording_is_stopped_before_the_teaching_is_left() -> None:
    async def story(one: Rig, robot: G1) -> None:
        asked: list[m.Command] = []
        client = client_of(robot)
        send = client.ask

        async def ask(command: m.Command) -> m.Reply:
            asked.append(command)
            return await send(command)

        client.ask = ask  # type: ignore[method-assign]
        async with robot.teach("wave"):
            await asyncio.sleep(1.0)
        off = asked.index(m.Record(on=False))
        assert asked[off + 1] == m.ExitTeaching()

    tell(story, "memory")


@pytest.mark.parametrize("wire", ["memory", "services"])
def test_closing_a_robot_ends_the_teaching_before_the_connection(wire: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        await robot.teach("wave").__aenter__()
        await asyncio.sleep(1.0)
        await robot.close()
        notes = [notice.message for notice in one.world.notices]
        assert not one.world.body.soft
        assert "teaching ended: the arms hold" in notes
        assert "the teaching client has left: the arms hold" not in notes

    tell(story, wire)


@pytest.mark.parametrize("closed_first", [True, False])
def test_closing_a_robot_waits_for_a_teaching_that_ends_in_another_task(
    closed_first: bool,
) -> None:
    """As when `asyncio.run` ends all tasks at once."""

    async def story() -> None:
        async with rig("dds") as one:
            robot = await rote.open(one.url)

            async def teach() -> None:
                async with robot.teach("wave"):
                    await asyncio.sleep(60.0)

            teaching = asyncio.create_task(teach())
            await asyncio.sleep(1.5)
            assert one.world.body.soft
            guard = next(each for each in asyncio.all_tasks() if each.get_name()[:5] == "close")
            tasks = (guard, teaching) if closed_first else (teaching, guard)
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            assert not one.world.body.soft
            assert teaching.cancelled()

    virtual.run(story())


@pytest.mark.parametrize("turns", range(8))
@pytest.mark.parametrize("wire", ["memory", "services"])
def test_arms_hold_when_a_second_cancel_comes_some_turns_after_the_first(
    wire: str, turns: int
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        async def teach() -> None:
            async with robot.teach("wave"):
                await asyncio.sleep(3600)

        task = asyncio.create_task(teach())
        await asyncio.sleep(1.5)
        task.cancel()
        for _ in range(turns):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not one.world.body.soft

    tell(story, wire)


def test_an_unanswered_end_of_a_teaching_is_not_hidden_behind_the_blocks_own_error() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(NoAnswerError) as caught:
            async with robot.teach("wave"):
                await asyncio.sleep(0.6)
                lose_teaching_requests(one.pipes[0])
                raise KeyError
        assert isinstance(caught.value.__context__, KeyError)
        assert one.world.body.soft, "which the error tells"

    tell(story)


def test_a_refused_teaching_leaves_nothing_to_keep_alive_or_to_end() -> None:
    async def story(one: Rig, robot: G1) -> None:
        store(one, 20.0)
        async with one.bystander() as other:
            await other.start("stored")
            await asyncio.sleep(1.0)
            with pytest.raises(RefusedError):
                await client_of(robot).ask(m.EnterTeaching(name="wave"))
            sent = sent_calls(one.pipes[0])
            await asyncio.sleep(3.5)
            assert not [each for each in sent if each[0] == ArmApi.TEACH]
            await robot.stop()
            assert not [each for each in sent if each[0] == ArmApi.TEACH]

    tell(story)


def test_after_a_loss_nothing_is_kept_alive_and_the_arms_are_unknown() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(PeerLostError):
            async with robot.teach("wave"):
                await asyncio.sleep(1.0)
                one.mute = True
                await one.die(silently_for_the_client=False)
                await asyncio.sleep(3600)
        assert robot.stop_pending
        client = client_of(robot, ServicesClient)
        assert not client.reports.arms_known
        assert client.teaching._keep_alive_timer is None

    tell(story)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_ends_a_teaching_gives_its_exit_code(number: int) -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(SystemExit) as caught:
            async with robot.teach("wave"):
                await asyncio.sleep(1.0)
                signal.raise_signal(number)
                await asyncio.sleep(3600)
        assert caught.value.code == 128 + number
        assert not one.world.body.soft

    tell(story, "memory")


# ---- playing ------------------------------------------------------------------------------------


def test_a_motion_that_should_be_over_is_stopped() -> None:
    async def story(one: Rig, robot: G1) -> None:
        store(one, 2.0, loop=True)  # the robot repeats it, which this play does not know
        with pytest.raises(TimeLimitError):
            await robot.play("stored")
        assert one.world.stopped_early
        assert one.world.phase in (Phase.RETURN, Phase.NONE)

    tell(story, "memory")


def test_giving_up_a_wait_for_a_playback_does_not_stop_the_robot() -> None:
    async def story(one: Rig, robot: G1) -> None:
        playing = await robot.start(store(one, 5.0))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.0):
                await playing.wait()
        assert (await playing).completed

    tell(story, "memory")


def test_a_stop_just_before_the_end_is_not_called_completed() -> None:
    async def story(one: Rig, robot: G1) -> None:
        playing = await robot.start(store(one, 12.0))
        while (progress := playing.progress) is None or progress.remaining_s > 0.3:
            await asyncio.sleep(0.02)
        await robot.stop()
        assert not (await playing).completed

    tell(story)


def test_a_stop_releases_a_pose_that_the_arms_hold() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await robot.perform("heart")
        await asyncio.sleep(0.5)
        assert one.world.holding
        await robot.stop()
        assert not one.world.holding

    tell(story)


@pytest.mark.parametrize("reports", [True, False])
def test_a_stop_without_a_status_is_believed_only_if_the_arms_are_seen_at_rest(
    reports: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story(one: Rig, robot: G1) -> None:
        await robot.start(store(one, 30.0))
        await asyncio.sleep(3.0)
        assert one.world.phase is not Phase.NONE
        monkeypatch.setitem(one.world._handlers, m.StopMotion, lambda *_: None)  # it plays on
        with pytest.raises(NoAnswerError, match="does not report whether it stopped"):
            await robot.stop()
        assert robot.stop_pending

    tell(story, "services", "no-status", *(() if reports else ("no-arm-state",)))


def test_an_answer_without_a_status_is_not_taken_for_done() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(NoAnswerError, match="without a status"):
            await robot.audio.light(1, 2, 3)

    tell(story, "services", "no-status")


def test_a_request_that_does_something_is_sent_once_though_its_answer_is_lost() -> None:
    async def story(one: Rig, robot: G1) -> None:
        lose_answers(one.pipes[0], VoiceApi.SET_LIGHT)
        sent = sent_calls(one.pipes[0])
        with pytest.raises(NoAnswerError):
            await robot.audio.light(1, 2, 3)
        assert [api for api, _ in sent].count(VoiceApi.SET_LIGHT) == 1

    tell(story, "services")


def test_a_timed_start_that_fails_after_the_robot_accepted_stops_it() -> None:
    async def story(one: Rig, robot: G1) -> None:
        loop = asyncio.get_running_loop()
        times_s = np.linspace(0.0, 3.0, 301)
        elbow = 0.9 + 0.1 * np.sin(times_s)
        track = Track(times_s=times_s, joints_rad=elbow[:, None], names=("left_elbow_joint",))
        start = TimedStart()
        playing = robot.play_track(track, at=start)
        start.at(loop.time() + await start.lead_s + 0.05)
        while one.world.machine.activity is not ArmActivity.PLAYING:
            await asyncio.sleep(0.001)
        virtual.hang(2.0)  # the robot has accepted, and this program is held up
        with pytest.raises(BadRequestError, match="s late, so its arms"):
            await playing
        notes = [notice.message for notice in one.world.notices]
        assert "stopped: the arms return softly" in notes

    tell(story, "memory")


# ---- what is reported ---------------------------------------------------------------------------


def test_joints_that_are_not_reported_any_more_are_not_shown_as_measured() -> None:
    async def story(one: Rig, robot: G1) -> None:
        await asyncio.sleep(1.0)
        assert robot.state is not None
        assert robot.state.joints_rad
        silent = Quirk(
            name="silent", group="joints", wires=("webrtc",), what="", lowstate=lambda _: None
        )
        one.pipes[0].robot.quirks = Quirks([silent])
        await asyncio.sleep(2.0)
        assert robot.state.joints_rad
        assert not robot.state.has_joints
        await asyncio.sleep(1.5)
        assert robot.state.joints_rad == ()

    tell(story)


def test_damping_in_an_unknown_mode_is_refused_without_a_yes() -> None:
    async def story(one: Rig, robot: G1) -> None:
        before = one.world.machine.mode
        with pytest.raises(CautionError, match="sinks"):
            await robot.modes.damp()
        assert one.world.machine.mode == before

    tell(story, "services", "mode-null")


def test_a_request_that_a_robot_never_answers_fails_in_time() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with rig("memory") as one:

            async def dial(receive: Receiver) -> Link:
                def lossy(datagram: bytes) -> None:
                    frame = frames.decode(datagram)
                    if frame.command != frames.CommandId.LIST_ACTIONS:
                        receive(datagram)

                return one.memory.connect(lossy)

            client = TeachingClient("memory://g1")
            await client.open(dial)
            asked_at = loop.time()
            async with asyncio.timeout(20.0):
                with pytest.raises(NoAnswerError, match="though it is connected"):
                    await G1(client).actions()
            assert loop.time() - asked_at < 10.0
            await client.close()

    virtual.run(story())


def test_no_pose_is_sent_after_a_loss_nor_after_the_reconnect() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        cut = Impairment(cut_after_s=2.0, cut_for_s=4.0)
        async with rig("udp", impairment=cut) as one, one.connect() as robot:
            client = client_of(robot, TeachingClient)
            state = await anext(robot.states())
            await client.ask(m.BeginStream())
            pose = m.StreamPose(1, 0.0, state.joints_rad[: len(robot.build.taught)])
            send = client.ready([pose])
            assert send(0)
            until = loop.time() + 5.0
            while client._failure is None and loop.time() < until:
                await asyncio.sleep(0.05)
            assert not send(0), "after the loss"
            while client._failure is not None and loop.time() < until + 10.0:
                await asyncio.sleep(0.05)
            assert client.reconnects == 1
            assert not send(0), "after the reconnect"

    virtual.run(story())


# ---- waits --------------------------------------------------------------------------------------


def test_without_phase_reports_a_motion_is_asked_for_when_the_joints_are_still() -> None:
    async def story(one: Rig, robot: G1) -> None:
        loop = asyncio.get_running_loop()
        async with robot.teach("wave"):
            await robot.move_by_hand("wave", 2.0)
            await asyncio.sleep(2.0)
        waits: list[Waiting | None] = []
        robot.on_waiting(waits.append)
        taught_at = loop.time()
        await robot.start("wave")
        assert 0.45 < loop.time() - taught_at < 1.5
        assert [each.why for each in waits if each] == [Waits.RELEASE]

    tell(story, "memory", "frames-page")


def test_arms_that_another_client_uses_after_our_teaching_are_refused_within_the_release() -> None:
    async def story(one: Rig, robot: G1) -> None:
        loop = asyncio.get_running_loop()
        store(one, 60.0)
        async with robot.teach("wave") as take:
            await asyncio.sleep(0.6)
            take.discard()
        async with one.bystander() as other:
            while one.world.occupied:
                await asyncio.sleep(0.05)
            await other.start("stored")
            asked_at = loop.time()
            with pytest.raises(RefusedError) as caught:
                await robot.play("stored")
            assert caught.value.code == Code.BUSY
            assert 3.0 < loop.time() - asked_at < 12.0

    tell(story, polite=False)


def test_a_failed_teaching_that_replaced_an_action_leaves_none_of_its_own() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("wave"):
            await asyncio.sleep(0.6)
        await asyncio.sleep(3.0)
        with pytest.raises(KeyError):
            async with robot.teach("wave", overwrite=True):
                await asyncio.sleep(0.6)
                raise KeyError
        assert not one.world.store.entries()

    tell(story)


def test_a_robot_that_reports_nothing_of_its_arms_is_taught_for_as_long_as_wanted() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("wave") as take:
            await asyncio.sleep(8.0)
        assert take.saved

    tell(story, "services", "no-arm-state")


@pytest.mark.parametrize("wire", ["udp", "webrtc"])
def test_a_robot_connected_without_reconnect_stays_lost(wire: str) -> None:
    async def story() -> None:
        cut = Impairment(cut_after_s=2.0, cut_for_s=3.5)
        async with (
            rig(wire, impairment=cut, services_hz=SERVICES_HZ) as one,
            connect(one.url, family="g1", reconnect=False) as robot,
        ):
            await asyncio.sleep(20.0)
            assert client_of(robot).reconnects == 0  # type: ignore[attr-defined]
            with pytest.raises(PeerLostError):
                await robot.actions()
            with pytest.raises(PeerLostError):
                await robot.stop()
            assert robot.stop_pending

    virtual.run(story())
