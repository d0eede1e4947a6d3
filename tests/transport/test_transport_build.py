"""Clients by build: which robot it is, states in its columns, odd telemetry, what is refused."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from rote import messages as m
from rote.errors import BadRequestError, CautionError, NoAnswerError, RefusedError
from rote.messages import RobotState
from rote.model.family import Build
from rote.model.g1 import G1, G1_23, G1_29
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.link import Link, Receiver
from rote.transport.services.client import ServicesClient
from rote.transport.udp.client import TeachingClient
from rote.transport.webrtc.connection import ChannelConnection
from rote.wire.services import rpc
from rote.wire.services.lowstate import LOWSTATE_TOPIC, SPORT_TOPIC, encode_lowstate
from rote.wire.webrtc import channel
from webrtc_ends import ScriptedRobot, run


def state_of(build: Build, time_us: int = 0) -> RobotState:
    """Return a state in the columns of a build, each joint elsewhere."""
    count = len(build.names)
    return RobotState(
        joints_rad=tuple(n / 10 for n in range(count)),
        velocities_rad_s=(0.5,) * count,
        temperatures_c=(40.0,) * count,
        time_us=time_us,
    )


def lowstate(build: Build = G1_29, **changes: object) -> dict[str, Any]:
    return encode_lowstate(state_of(build, 1_000_000), build=build) | changes


class Odd(ScriptedRobot):
    """A robot whose mode is read as the test says, and which says what it is told to."""

    def __init__(self, mode: dict[str, object] | None = None) -> None:
        super().__init__()
        self._mode = {"data": '{"data":500}'} if mode is None else mode

    def send(self, message: str | bytes) -> None:
        super().send(message)
        if self.requests and self.requests[-1].api_id == rpc.SportApi.GET_FSM:
            self.answer(self.requests.pop(), **self._mode)

    async def publish(self, topic: str, data: object) -> None:
        self.say(channel.ChannelMessage(topic, data))
        await asyncio.sleep(0.01)


Story = Callable[[ServicesClient, Odd], Awaitable[None]]


def tell(story: Story, build: Build | None = None, mode: dict[str, object] | None = None) -> None:
    async def whole() -> None:
        robot = Odd(mode)

        async def dial() -> Odd:
            return robot

        client = ServicesClient("webrtc://robot", ChannelConnection(dial), build=build)
        await client.open()
        try:
            await story(client, robot)
        finally:
            await client.close()

    run(whole())


async def answered(asking: Awaitable[m.Reply], robot: Odd, **how: object) -> m.Reply:
    """Return the reply to what is asked once the robot has answered the requests for it."""
    task = asyncio.ensure_future(asking)
    await asyncio.sleep(0.1)
    while robot.requests:  # a stop is several
        robot.answer(robot.requests.pop(), **how)
    return await task


# ---- services -----------------------------------------------------------------------------------


@pytest.mark.parametrize("build", G1.builds, ids=lambda build: build.name)
def test_states_are_in_the_columns_of_the_build_that_the_robot_says_it_is(build: Build) -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        before = client.recognised
        await robot.publish(LOWSTATE_TOPIC, lowstate(build))
        assert (before, client.recognised) == (False, True)
        assert client.build.name == build.name
        assert client.latest is not None
        assert client.latest.joints_rad == state_of(build).joints_rad
        assert client.latest.velocities_rad_s == state_of(build).velocities_rad_s
        assert client.latest.temperatures_c == state_of(build).temperatures_c
        assert client.build_note == ""
        assert client.missing == ()

    tell(story)


def test_an_unknown_machine_is_watched_by_slot_and_its_services_work() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        await robot.publish(LOWSTATE_TOPIC, lowstate(mode_machine=77))
        assert not client.recognised
        assert client.build.names[:2] == ("slot_0", "slot_1")
        assert client.latest is not None
        assert len(client.latest.joints_rad) == len(client.build.names) == 35
        assert "77" in client.build_note
        listed = await answered(client.ask(m.ListActions()), robot, data="[[],[]]")
        assert listed == m.ActionList()
        for command in (
            m.PlayAction(action=1, name="a"),
            m.StopMotion(),
            m.EnterTeaching(name="b"),
        ):
            assert await answered(client.ask(command), robot, data="") == m.Status()

    tell(story)


@pytest.mark.parametrize("heard", [True, False])
def test_an_unknown_machine_is_not_put_into_another_mode_unless_it_is_named(heard: bool) -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        if heard:
            await robot.publish(LOWSTATE_TOPIC, lowstate(mode_machine=0))
        with pytest.raises(CautionError, match="rote refuses") as caught:
            await client.ask(m.ChangeMode(4))
        assert "?build=NAME" in caught.value.remedy
        assert robot.requests == []

    async def named(client: ServicesClient, robot: Odd) -> None:
        if heard:
            await robot.publish(LOWSTATE_TOPIC, lowstate(mode_machine=0))
        changing = asyncio.ensure_future(client.ask(m.ChangeMode(500)))
        await asyncio.sleep(1.5)
        robot.answer(robot.requests.pop(), data="")
        assert await changing == m.Status()

    tell(story)
    tell(named, build=G1_29)


def test_a_build_that_was_named_is_kept_against_the_robot_and_noted() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        assert client.build is G1_23
        await robot.publish(LOWSTATE_TOPIC, lowstate(G1_29))
        assert client.build is G1_23
        assert "g1-29" in client.build_note
        assert client.latest is not None
        assert len(client.latest.joints_rad) == 23

    tell(story, build=G1_23)


def test_a_mode_that_only_an_r1_has_makes_it_one() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        await robot.publish(LOWSTATE_TOPIC, lowstate(G1_29))
        assert client.build.family == "g1"
        await robot.publish(SPORT_TOPIC, {"fsm_id": 811})
        await robot.publish(LOWSTATE_TOPIC, lowstate(G1_29))
        assert client.build.family == "r1"
        assert client.latest is not None
        assert len(client.latest.joints_rad) == len(client.build.names)

    tell(story)


def test_a_robot_without_a_clock_is_timed_by_ours_and_never_backwards() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        times: list[int] = []
        client.on_state(lambda state: times.append(state.time_us))
        for tick in (None, None, 5, None):
            await robot.publish(LOWSTATE_TOPIC, lowstate(tick=tick))
            await asyncio.sleep(0.09)
        steps = [after - before for before, after in itertools.pairwise(times)]
        assert steps == pytest.approx([100_000] * 3, rel=0.01)

    tell(story)


def test_what_a_robot_does_not_tell_is_empty_and_named() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        motors: list[object] = [{"q": 0.25} for _ in range(35)]
        motors[3] = None
        await robot.publish(LOWSTATE_TOPIC, {"mode_machine": 5, "motor_state": motors})
        state = client.latest
        assert state is not None
        assert client.build is G1_29
        missing = [client.missing]
        assert state.joints_rad[3] == G1_29.rest_rad[3]
        assert set(state.joints_rad[:3] + state.joints_rad[4:]) == {0.25}
        assert state.velocities_rad_s == state.accelerometer_m_s2 == state.temperatures_c == ()
        motors[3] = {"q": 0.5}
        await robot.publish(LOWSTATE_TOPIC, {"mode_machine": 5, "motor_state": motors})
        missing.append(client.missing)
        assert missing == [(G1_29.names[3],), ()]
        assert client.session.dropped == {}

    tell(story)


@pytest.mark.parametrize(
    "mode",
    [
        {"code": 3203},
        {"code": -1},
        {"data": '{"data":"500"}'},
        {"data": '{"data":500.0}'},
        {"data": "{}"},
        {"data": ""},
        {"data": '{"data":-1}'},
    ],
    ids=str,
)
def test_a_robot_whose_mode_is_refused_or_odd_can_be_connected_and_stopped(
    mode: dict[str, object],
) -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        assert client.reports.mode == (500 if "500" in str(mode) else -1)
        assert await answered(client.ask(m.StopMotion()), robot, data="") == m.Status()

    tell(story, mode=mode)


def test_an_answer_without_a_status_is_neither_a_success_nor_a_refusal() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        task = asyncio.ensure_future(client.ask(m.DeleteAction("a")))
        await asyncio.sleep(0.1)
        request = robot.requests.pop()
        identity = f'{{"id":"{request.id}"}}'
        text = f'{{"type":"res","topic":"","data":{{"header":{{"identity":{identity}}}}}}}'
        robot._receive(text)
        with pytest.raises(NoAnswerError, match="answered without a status"):
            await task

    tell(story)


def test_an_odd_entry_of_a_list_is_noted_and_hides_nothing_else() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        data = '[[{"id":1,"name":"wave"}],[{"name":"bow"},{"name":"drum","time":2}]]'
        listed = await answered(client.ask(m.ListActions()), robot, data=data)
        assert isinstance(listed, m.ActionList)
        assert listed.actions == (m.ActionEntry("bow", 0), m.ActionEntry("drum", 2000))
        assert listed.presets == (m.PresetEntry(1, "wave"),)
        (note,) = listed.notes
        assert "bow" in note

    tell(story)


@pytest.mark.parametrize("said", ['{"id":"100"}', {"id": 100}, 100, "100"])
def test_the_state_of_the_arms_is_read_in_any_shape(said: object) -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        await robot.publish(rpc.ARM_STATE_TOPIC, said)
        await robot.publish(LOWSTATE_TOPIC, lowstate())
        assert client.latest is not None
        assert client.latest.playing

    tell(story)


def test_a_request_longer_than_the_robot_takes_is_refused_and_not_lost() -> None:
    async def story(client: ServicesClient, robot: Odd) -> None:
        robot.max_message_bytes = 300
        with pytest.raises(BadRequestError, match="accepts at most 300"):
            await client.ask(m.DeleteAction("a" * 300))
        assert robot.requests == []
        assert await answered(client.ask(m.DeleteAction("a")), robot) == m.Status()

    tell(story)


# ---- teaching frames ----------------------------------------------------------------------------


def told(joints: int, build: Build | None = None) -> TeachingClient:
    """Return a client that was told one state of so many joints."""

    async def whole() -> TeachingClient:
        client = TeachingClient("memory://robot", build=build)
        client._publish_state(
            RobotState(joints_rad=(0.0,) * joints, velocities_rad_s=(0.0,) * joints)
        )
        for command in (m.BeginStream(), m.ChangeMode(4)):
            if client.build_note:
                with pytest.raises(CautionError):
                    await client.ask(command)
        return client

    return run(whole())


@pytest.mark.parametrize("build", G1.builds, ids=lambda build: build.name)
def test_a_robot_on_teaching_frames_is_known_by_its_number_of_joints(build: Build) -> None:
    client = told(len(build.names))
    assert client.build is build
    assert client.recognised
    assert client.build_note == ""


def test_a_number_of_joints_that_no_g1_has_makes_it_unknown() -> None:
    client = told(8)
    assert not client.build.known
    assert len(client.build.names) == 8
    assert not client.recognised
    assert "8 joints" in client.build_note


def test_a_build_that_was_named_is_kept_and_a_contradiction_is_noted() -> None:
    assert told(23, G1_23).build_note == ""
    client = told(29, G1_23)
    assert client.build is G1_23
    assert "29" in client.build_note


def test_before_its_first_state_it_is_the_one_named_or_the_usual_g1() -> None:
    async def whole() -> None:
        assert TeachingClient("memory://robot").build is G1_29
        assert not TeachingClient("memory://robot").recognised
        assert TeachingClient("memory://robot", build=G1_23).build is G1_23

    run(whole())


def test_the_simulated_robot_is_known_when_it_was_heard() -> None:
    async def whole() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        port = simulator.serve_memory()

        async def dial(receive: Receiver) -> Link:
            return port.connect(receive)

        client = TeachingClient("memory://g1")
        await client.open(dial)
        await asyncio.sleep(0.1)
        assert client.recognised
        assert client.build is G1_29
        assert client.latest is not None
        assert len(client.latest.joints_rad) == 29
        await client.close()
        await simulator.close()
        store.close()

    run(whole())


def test_a_caution_is_caught_as_a_refusal() -> None:
    assert issubclass(CautionError, RefusedError)
