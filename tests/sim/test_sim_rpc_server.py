"""One client of the simulated robot's services, message by message."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

import virtual
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29, G1_ARMS, Mode
from rote.sim.firmware import DEFAULT, Firmware
from rote.sim.rpc_server import RpcClientSession
from rote.sim.services import Services
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.services import rpc
from rote.wire.services.faults import Change, Fault, Faults
from rote.wire.services.lowstate import (
    BMS_TOPIC,
    LOWSTATE_TOPIC,
    SPORT_TOPIC,
    decode_battery,
    decode_lowstate,
)
from rote.wire.webrtc import channel
from rote.wire.webrtc.channel import (
    ChannelMessage,
    Inner,
    MediaRequest,
    MediaTrack,
    Subscription,
    Validation,
    Value,
)

CHALLENGE = "c0ffee"
TOPICS = (LOWSTATE_TOPIC, SPORT_TOPIC, BMS_TOPIC, rpc.ARM_STATE_TOPIC)


class Client:
    """Somebody at the other end of the channel; the world's time follows the loop's."""

    def __init__(self, services: Services) -> None:
        self.world = services.world
        self.heard: list[Value] = []
        self.closed: list[str] = []
        self.robot = RpcClientSession(
            services,
            lambda message: self.heard.append(channel.decode(message)),
            challenge=CHALLENGE,
            on_close=lambda: self.closed.append("closed"),
        )

    def say(self, *values: Value) -> None:
        for value in values:
            self.robot.receive(channel.encode(value))

    def ask(self, call: rpc.Call, number: int = 1) -> None:
        self.say(call.request(number))

    def enter(self) -> None:
        self.say(Validation(channel.answer_challenge(CHALLENGE)))

    def take(self) -> list[Value]:
        heard, self.heard = self.heard, []
        return heard

    def codes(self) -> list[int]:
        return [value.code for value in self.take() if isinstance(value, rpc.RpcResponse)]

    async def wait(self, seconds: float, *, alive: bool = True) -> None:
        for _ in range(round(seconds / 0.1)):
            await asyncio.sleep(0.1)
            self.world.advance(0.1)
            if alive:
                self.say(channel.Heartbeat())


def tell(
    story: Callable[[Client], Awaitable[None]],
    *,
    latency: bool = True,
    build: Build = G1_29,
    firmware: Firmware = DEFAULT,
) -> None:
    async def run() -> None:
        store = Store(":memory:")
        world = World(store, build=build, firmware=firmware)
        client = Client(Services(world, latency=latency))
        try:
            await story(client)
        finally:
            client.robot.close()
            store.close()

    virtual.run(run())


@pytest.mark.parametrize(
    ("build", "slots", "machine"),
    [(G1_23, 35, 4), (G1_23, 29, 4), (G1_27, 40, 6), (G1_ARMS, 29, 9)],
)
def test_a_state_has_as_many_motors_as_the_firmware_says(
    build: Build, slots: int, machine: int
) -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.say(Subscription(LOWSTATE_TOPIC))
        await client.wait(0.2)
        told = [value.data for value in client.take() if isinstance(value, ChannelMessage)][-1]
        assert isinstance(told, dict)
        assert (told["mode_machine"], len(told["motor_state"])) == (machine, slots)
        at_rest = [told["motor_state"][slot]["q"] for slot in build.slots]
        assert at_rest == pytest.approx(client.world.body.joints_rad.tolist(), abs=0.01)

    tell(story, build=build, firmware=replace(DEFAULT, slots=slots))


def faults_in(values: list[Value]) -> list[tuple[Change, list[tuple[int, int]]]]:
    return [
        (value.change, [(fault.source, fault.code) for fault in value.faults])
        for value in values
        if isinstance(value, Faults)
    ]


def test_all_faults_are_told_right_after_validation_and_every_five_seconds() -> None:
    async def story(client: Client) -> None:
        client.world.health.discharge_battery()
        await client.wait(1.0)
        assert faults_in(client.take()) == []
        client.enter()
        assert client.take() == [
            Validation(channel.VALIDATION_OK),
            Faults(Change.ALL, client.world.health.faults),
        ]
        await client.wait(10.0)
        assert faults_in(client.take()) == [(Change.ALL, [(600, 8)])] * 2

    tell(story)


def test_a_fault_that_comes_or_goes_is_told_at_once_and_once() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.take()
        client.world.health.add_fault(100, 1)
        client.world.health.overheat_motor(3)
        await client.wait(0.1)
        added = faults_in(client.take())
        assert sorted(added, key=str) == [
            (Change.ADDED, [(100, 1)]),
            (Change.ADDED, [(3003, 0x10)]),
        ]
        client.world.health.clear_fault(100, 1)
        await client.wait(0.1)
        assert faults_in(client.take()) == [(Change.REMOVED, [(100, 1)])]
        await client.wait(1.0)
        assert faults_in(client.take()) == []

    tell(story)


def test_a_fault_has_the_time_it_came() -> None:
    async def story(client: Client) -> None:
        client.world.health.add_fault(100, 1)
        client.enter()
        (fault,) = client.world.health.faults
        assert Faults(Change.ALL, (Fault(fault.unix_s, 100, 1),)) in client.take()
        assert fault.unix_s > 1_700_000_000

    tell(story)


def test_topics_come_as_often_as_on_a_real_robot() -> None:
    async def story(client: Client) -> None:
        client.enter()
        await client.wait(1.0)
        assert not [value for value in client.take() if isinstance(value, ChannelMessage)]
        client.say(*map(Subscription, TOPICS))
        await client.wait(10.0)
        messages = [value for value in client.take() if isinstance(value, ChannelMessage)]
        counts = {topic: sum(m.topic == topic for m in messages) for topic in TOPICS}
        expected = {LOWSTATE_TOPIC: 500, SPORT_TOPIC: 100, BMS_TOPIC: 10, rpc.ARM_STATE_TOPIC: 100}
        for topic, count in expected.items():
            assert abs(counts[topic] - count) <= max(1, count // 50), topic
        last = {message.topic: message.data for message in messages}
        joints = decode_lowstate(last[LOWSTATE_TOPIC])
        assert joints.mode_machine == 5
        assert len(joints.temperatures_c) == 35
        assert 99 <= decode_battery(last[BMS_TOPIC]) <= 100

    tell(story)


def test_a_client_that_falls_silent_is_given_up_and_its_carrier_can_go() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.ask(rpc.start_teaching("mine"))
        await client.wait(1.0)
        assert client.world.body.soft
        await client.wait(9.0, alive=False)
        assert client.closed == []
        await client.wait(1.5, alive=False)
        assert client.closed == ["closed"]
        assert not client.world.body.soft
        client.robot.close()
        client.enter()
        assert client.closed == ["closed"]

    tell(story)


def test_answers_take_the_time_a_real_robot_takes() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.ask(rpc.start_teaching("mine"))
        await client.wait(0.3)
        assert client.codes() == []
        await client.wait(0.1)
        assert client.codes() == [0]
        client.ask(rpc.LIST_ACTIONS, 2)
        await client.wait(0.1)
        assert client.codes() == [0]

    tell(story)


def test_without_latency_an_answer_is_there_at_once() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.take()
        client.ask(rpc.start_teaching("mine"))
        assert client.codes() == [0]

    tell(story, latency=False)


def test_a_preset_is_answered_when_it_is_over_also_without_latency() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.ask(rpc.execute_preset(27))
        await client.wait(4.0)
        assert client.codes() == []
        await client.wait(0.5)
        assert client.codes() == [0]

    tell(story, latency=False)


def test_a_client_that_leaves_before_its_answer_gets_none() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.ask(rpc.start_teaching("mine"))
        client.ask(rpc.execute_preset(27), 2)
        client.robot.close()
        client.take()
        await client.wait(1.0)
        assert client.take() == []

    tell(story)


def test_in_debug_mode_requests_stay_unanswered_and_topics_silent() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.say(*map(Subscription, TOPICS))
        client.ask(rpc.Call("motion_switcher", 1003))
        await client.wait(0.1)
        client.take()
        client.ask(rpc.LIST_ACTIONS, 2)
        await client.wait(5.0)
        heard = client.take()
        topics = {value.topic for value in heard if isinstance(value, ChannelMessage)}
        assert topics == {LOWSTATE_TOPIC, BMS_TOPIC}
        assert not [value for value in heard if isinstance(value, rpc.RpcResponse)]
        client.ask(rpc.CHECK_MODE, 3)
        await client.wait(0.1)
        assert client.codes() == [0]
        assert client.world.machine.mode == Mode.DAMP

    tell(story)


def test_the_robots_own_webrtc_service_answers() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.take()
        client.say(Inner({"req_type": "public_network_status", "uuid": "7"}))
        client.say(Inner({"req_type": "disable_traffic_saving", "instruction": "on"}))
        client.say(Inner({"req_type": "something else"}))
        network, saving = client.take()
        assert network == Inner(
            {
                "req_type": "public_network_status",
                "uuid": "7",
                "status": "NetworkStatus.ON_WIFI_CONNECTED",
            },
            answer=True,
        )
        assert isinstance(saving, Inner)
        assert saving.answer
        assert saving.data["execution"] == "ok"

    tell(story)


def test_media_are_accepted_and_a_hand_that_makes_no_sense_is_not() -> None:
    async def story(client: Client) -> None:
        client.enter()
        client.take()
        client.say(
            MediaRequest(MediaTrack.VIDEO, active=True),
            MediaRequest(MediaTrack.AUDIO, active=False),
        )
        client.say(ChannelMessage("rt/rote/hand", {"script": 5}), ChannelMessage("rt/other", "x"))
        assert client.take() == []
        client.ask(rpc.start_teaching("mine"))
        client.say(ChannelMessage("rt/rote/hand", {"script": "wave", "duration_ms": 1000}))
        assert client.world.body.held_by_hand

    tell(story)


def test_the_first_message_is_the_challenge() -> None:
    async def story(client: Client) -> None:
        assert client.take() == [Validation(CHALLENGE)]
        client.robot.receive(json.dumps({"type": "heartbeat", "data": {}}))
        assert client.take() == [channel.Complaint(channel.VALIDATION_NEEDED)]

    tell(story)
