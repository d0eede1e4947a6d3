"""DDS from the client's side: types that kill nobody, threads that meet the loop, soft ends."""

import asyncio
import gc
import hashlib
import os
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("cyclonedds")

from cyclonedds.idl import make_idl_struct, types

import virtual
from dds_descriptions import count_forbidden_kinds, describe_type
from rig import DDS_HZ, Rig, client_of, free_domain, rig
from rote.cli.wording import worded
from rote.connection import connect
from rote.errors import (
    BadRequestError,
    CautionError,
    LinkError,
    NoAnswerError,
    PeerLostError,
    RefusedError,
    RoteError,
    UnsafeMotionError,
)
from rote.messages import BeginStream, Code, Phase, RobotState, Status, StopMotion, StreamPose
from rote.model.dex3 import DEX3_LEFT
from rote.model.family import Build
from rote.model.g1 import G1 as G1_FAMILY
from rote.model.g1 import G1_23, G1_29, G1_REST_RAD, Mode
from rote.motion.compare import deviation
from rote.motion.record import Recorder
from rote.motion.track import Track
from rote.robot.message_robot import G1
from rote.robot.streaming import PoseStreaming
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.dds import types as dds_types
from rote.transport.dds.client import DdsClient
from rote.transport.dds.connection import request_topic, response_topic
from rote.transport.dds.participant import Bus, DdsTarget, Outlet, list_interfaces, read_url
from rote.transport.dds.settings import make_settings
from rote.transport.impair import Impairment
from rote.wire.dds import cdr
from rote.wire.dds import hands as dds_hands
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc

Story = Callable[[Rig, G1], Awaitable[None]]

# Of the identity and description that CycloneDDS tells of each type. They equal what 0.10.2 makes
# of the vendor's declarations; a changed one is another type to every robot.
DESCRIBED = {
    "Request_": "a3a11755b7a7885b295f7e2bf9fe6e6a4e04a4db50471daed5a16d46f0695b10",
    "Response_": "b6da96ee64726d04fdba4f80298f08a08ea114f65d241cc2dfaa7efb47cad0ae",
    "String_": "493044fe9e6e28cce4caaf9998f552604c7ed029f949429efdb4cc2c27aff77d",
    "LowCmd_": "b9c36d43ed6e8c4e1f73be9b0a831b99025cf6665147a0074e75a75f747780f8",
    "LowState_": "645dccd69df93c4679d28ca37961e75e6f1964954df8cdd27c114257b0a6056a",
    "HandCmd_": "919a7f2e8e5f148a93d56b4d6ce86cdad624ccebad2f015ec40bc92ff164935c",
    "HandState_": "1b02cc565a2ba553161dc9956a0fd3276445028cb95c16492112d1f2ea6eaa7e",
    "SportModeState_": "9e7e5e89bbf30298fe900af10fc1c2633ea80b64d33ac597f5404a58df923e54",
    "BmsState_": "c8ef53de144315c44973c69e087996477458b223649b57a75f2914d9c3441971",
}


def tell(story: Story, mode: Mode = Mode.WALK, impairment: Impairment | None = None) -> None:
    async def run() -> None:
        async with rig("dds", mode=mode, impairment=impairment) as one, one.connect() as robot:
            await story(one, robot)

    virtual.run(run())


def raised(seconds: float = 4.0) -> Track:
    """Both elbows go up and down once."""
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    elbow = 1.0 - 0.6 * np.sin(np.pi * times_s / seconds)
    names = ("left_elbow_joint", "right_elbow_joint")
    return Track(times_s=times_s, joints_rad=np.column_stack([elbow, elbow]), names=names)


class Overheard:
    """All commands to the arms, as anybody in the domain can hear them."""

    def __init__(self, world: World | None = None) -> None:
        """With a `world`, a release may begin again where its arms are."""
        self.commands: list[dds_lowlevel.ArmCommand] = []
        self._world = world
        self._apart: list[float] = []
        """How far each command is from the arms."""
        self._bus = Bus(DdsTarget("lo", free_domain()))
        self._bus.reader(dds_lowlevel.ARM_SDK_TOPIC, dds_types.LOWCMD, self._take, depth=10_000)

    def _take(self, data: bytes) -> None:
        assert data[-4:] != bytes(4)  # decoding checks the CRC that is there
        command = dds_lowlevel.decode_arm_command(data, G1_29)
        self.commands.append(command)
        if self._world is not None:
            arms_rad = self._world.body.joints_rad[list(G1_29.streamed_columns)]
            self._apart.append(float(np.abs(arms_rad - np.array(command.joints_rad)).max()))

    @property
    def weights(self) -> list[float]:
        return [command.weight for command in self.commands]

    def check_soft(self) -> None:
        """No jump in weight or place, and nothing left hanging in the air."""
        places = np.array([command.joints_rad for command in self.commands])
        obeyed = np.array(self.weights)[1:, None]  # a new stream begins anywhere, without weight
        weights = [0.0, *self.weights]
        steps, rises = np.abs(obeyed * np.diff(places, axis=0)), np.abs(np.diff(weights))
        again = np.array([apart < 0.03 for apart in self._apart] or [False] * len(rises))
        again &= np.array(weights[:-1]) == 0.0
        assert (rises[again] >= 0.03).sum() <= 1
        assert steps[~again[1:]].max() < 0.03
        assert rises[~again].max() < 0.03
        assert weights[-1] == 0.0
        assert all(command.stiff for command in self.commands)

    def close(self) -> None:
        self._bus.close()


# ---- types --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", dds_types.ALL, ids=lambda kind: kind.__name__)
def test_a_type_is_the_robots_own_byte_for_byte(kind: dds_types.Type) -> None:
    described = b"".join(describe_type(kind))
    assert hashlib.sha256(described).hexdigest() == DESCRIBED[kind.__name__]


@pytest.mark.parametrize("kind", dds_types.ALL, ids=lambda kind: kind.__name__)
def test_no_type_holds_what_would_kill_a_peer_on_0_10_2(kind: dds_types.Type) -> None:
    assert count_forbidden_kinds(kind) == 0


@pytest.mark.parametrize("member", [types.uint8, types.int8])
def test_the_guard_finds_such_a_member_however_deep(member: type) -> None:
    within = make_idl_struct("Within", "test.Within", {"octet": member})
    listed = make_idl_struct("Listed", "test.Listed", {"many": types.sequence[within]})  # type: ignore[misc]
    for kind in (within, listed):
        assert count_forbidden_kinds(kind) > 0


def test_what_is_packed_by_hand_is_what_the_library_packs() -> None:
    state = RobotState(joints_rad=(0.25,) * 29, velocities_rad_s=(0.5,) * 29)
    reading = dds_hands.HandReading((0.25,) * 7, (0.5,) * 7, (31.0,) * 7)
    request = rpc.RpcRequest(service="arm", api_id=7107, id=3, parameter="{}")
    for kind, packed in (
        (dds_types.LOWSTATE, dds_lowlevel.encode_lowstate(state, build=G1_29)),
        (
            dds_types.LOWCMD,
            dds_lowlevel.encode_arm_command([0.5] * 17, 0.5, build=G1_29, mode_machine=5),
        ),
        (dds_types.HAND_STATE, dds_hands.encode_state(reading, DEX3_LEFT)),
        (dds_types.HAND_COMMAND, dds_hands.encode_command([0.0] * 7, 0.5, hand=DEX3_LEFT)),
        (dds_types.REQUEST, cdr.encode_request(request)),
        (dds_types.TEXT, cdr.encode_text("hello")),
        (dds_types.SPORT, cdr.encode_mode(501)),
        (dds_types.BATTERY, cdr.encode_battery(80.0)),
    ):
        assert kind.deserialize(packed).serialize(use_version_2=False) == packed


# ---- the bus ------------------------------------------------------------------------------------


def test_a_url_names_an_interface_and_maybe_a_domain() -> None:
    assert read_url(urlsplit("dds://eth0")) == DdsTarget("eth0", 0)
    assert read_url(urlsplit("dds://enP8p1s0?domain=7")) == DdsTarget("enP8p1s0", 7)
    named = read_url(urlsplit("dds://eth0?build=g1-23&domain=7"))
    assert named == DdsTarget("eth0", 7, G1_23)
    with pytest.raises(BadRequestError, match="no robot 'g2'"):
        read_url(urlsplit("dds://eth0?build=g2"))
    for wrong in (
        "dds://",
        "dds://lo/x",
        "dds://lo?domain=x",
        "dds://lo?domain=230",
        "dds://lo?a=1",
    ):
        with pytest.raises(BadRequestError) as caught:
            read_url(urlsplit(wrong))
        assert "dds://eth0" in caught.value.remedy


def test_only_on_loopback_peers_are_found_without_multicast_too() -> None:
    assert "<AllowMulticast>spdp" in make_settings("lo")
    assert "127.0.0.1" in make_settings("lo")
    assert "Multicast" not in make_settings("eth0")
    assert 'name="eth0"' in make_settings("eth0")


def test_settings_of_the_users_own_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def open_and_close() -> None:
        Bus(DdsTarget("lo", free_domain())).close()

    quiet = "<Tracing><Verbosity>none</Verbosity></Tracing>"
    mine = f"<CycloneDDS><Domain Id='any'>{quiet}</Domain></CycloneDDS>"
    for before in (None, mine):
        if before is not None:
            monkeypatch.setenv("CYCLONEDDS_URI", before)
        asyncio.run(open_and_close())
        assert os.environ.get("CYCLONEDDS_URI") == before


_PEER = """
import sys
from cyclonedds.domain import DomainParticipant
from cyclonedds.idl.types import uint32
from cyclonedds.idl import make_idl_struct
from cyclonedds.pub import DataWriter
from cyclonedds.topic import Topic
domain = DomainParticipant(int(sys.argv[1]))
writer = DataWriter(domain, Topic(domain, "rt/of_a_peer", make_idl_struct("T", "T", {"x": uint32})))
print("there", flush=True)
sys.stdin.read()
"""
_BY_MULTICAST = "<Interfaces><NetworkInterface name='lo' multicast='true'/></Interfaces>"
_BY_PORTS = (
    "<Interfaces><NetworkInterface name='lo' multicast='false'/></Interfaces>"
    "<AllowMulticast>false</AllowMulticast></General><Discovery>"
    "<ParticipantIndex>auto</ParticipantIndex><Peers><Peer address='127.0.0.1'/></Peers>"
    "</Discovery><General>"
)


@pytest.mark.slow
@pytest.mark.parametrize("how", [_BY_MULTICAST, _BY_PORTS], ids=["multicast", "unicast"])
def test_on_loopback_peers_with_and_without_multicast_are_found(how: str) -> None:
    settings = f"<CycloneDDS><Domain><General>{how}</General></Domain></CycloneDDS>"
    domain = free_domain("peers")

    async def look() -> None:
        bus = Bus(DdsTarget("lo", domain))
        try:
            async with asyncio.timeout(10.0):
                while "rt/of_a_peer" not in bus.discovered_topics()[0]:
                    await asyncio.sleep(0.05)
        finally:
            bus.close()

    peer = subprocess.Popen(
        [sys.executable, "-c", _PEER, str(domain)],
        env={**os.environ, "CYCLONEDDS_URI": settings},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert peer.stdout is not None
    try:
        assert peer.stdout.readline() == "there\n"
        asyncio.run(look())
    finally:
        peer.communicate(timeout=10)


@pytest.mark.parametrize("mine", ["name='lo'", "name='lo' multicast='true'", "address='127.0.0.1'"])
def test_settings_that_name_the_same_interface_are_joined(
    mine: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def open_and_close() -> None:
        Bus(DdsTarget("lo", free_domain("joined"))).close()

    inside = f"<General><Interfaces><NetworkInterface {mine}/></Interfaces></General>"
    monkeypatch.setenv("CYCLONEDDS_URI", f"<CycloneDDS><Domain>{inside}</Domain></CycloneDDS>")
    asyncio.run(open_and_close())


def test_settings_that_name_an_interface_which_is_not_there_are_blamed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def open_one() -> None:
        Bus(DdsTarget("lo", free_domain("blamed")))

    inside = "<General><Interfaces><NetworkInterface name='nowhere0'/></Interfaces></General>"
    monkeypatch.setenv("CYCLONEDDS_URI", f"<CycloneDDS><Domain>{inside}</Domain></CycloneDDS>")
    with pytest.raises(LinkError, match="CYCLONEDDS_URI names the interface 'nowhere0'"):
        asyncio.run(open_one())


def test_other_settings_that_may_be_wrong_are_named_in_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def open_one() -> None:
        Bus(DdsTarget("lo", free_domain("wrong")))

    inside = "<Discovery><Ports><Base>70000</Base></Ports></Discovery>"  # beyond the last port
    monkeypatch.setenv("CYCLONEDDS_URI", f"<CycloneDDS><Domain>{inside}</Domain></CycloneDDS>")
    with pytest.raises(LinkError, match="DDS cannot use lo") as caught:
        asyncio.run(open_one())
    assert worded(caught.value.remedy).endswith("CYCLONEDDS_URI is set and may also be wrong.")


def test_an_interface_that_is_not_there_is_refused_with_those_that_are() -> None:
    async def open_one() -> None:
        Bus(DdsTarget("nowhere0"))

    with pytest.raises(BadRequestError) as caught:
        asyncio.run(open_one())
    assert "lo" in list_interfaces()
    assert "lo" in caught.value.remedy


def test_what_comes_on_foreign_threads_is_taken_in_the_loop_in_its_order_and_whole() -> None:
    async def run() -> None:
        bus = Bus(DdsTarget("lo", free_domain()))
        taken: list[tuple[str, int]] = []
        bus.reader(
            "rt/test",
            dds_types.TEXT,
            lambda data: taken.append((cdr.decode_text(data), threading.get_ident())),
            depth=500,
        )
        writer = bus.writer("rt/test", dds_types.TEXT)

        def write() -> None:
            for number in range(300):
                writer.write(cdr.encode_text(str(number)))

        thread = threading.Thread(target=write)
        thread.start()
        async with asyncio.timeout(20):
            while len(taken) < 300:
                await asyncio.sleep(0.005)
        thread.join()
        assert [text for text, _ in taken] == [str(number) for number in range(300)]
        assert {ident for _, ident in taken} == {threading.get_ident()}
        bus.close()
        bus.close()
        with pytest.raises(LinkError, match="could not send to rt/test"):
            writer.write(cdr.encode_text("late"))

    asyncio.run(run())


def test_a_paced_reader_hands_over_the_newest_and_afterwards_each_again() -> None:
    async def run() -> None:
        bus = Bus(DdsTarget("lo", free_domain()))
        taken: list[str] = []
        inlet = bus.reader(
            "rt/test", dds_types.TEXT, lambda data: taken.append(cdr.decode_text(data)), depth=500
        )
        writer = bus.writer("rt/test", dds_types.TEXT, depth=500)

        async def until(text: str) -> None:
            async with asyncio.timeout(20):
                while text not in taken:
                    await asyncio.sleep(0.005)

        writer.write(cdr.encode_text("first"))
        await until("first")
        inlet.pace(0.05)
        for number in range(200):
            writer.write(cdr.encode_text(str(number)))
        await until("199")
        assert 1 < len(taken) < 20, "the newest at each look, and no other"
        inlet.pace(None)
        for number in range(200, 300):
            writer.write(cdr.encode_text(str(number)))
        await until("299")
        assert taken[-100:] == [str(number) for number in range(200, 300)]
        inlet.pace(0.01)
        bus.close()
        await asyncio.sleep(0.03)

    asyncio.run(run())


TWO_WRITERS = """
import asyncio, sys, threading, time
from rote.transport.dds import types as dds_types
from rote.transport.dds.participant import Bus, DdsTarget
from rote.wire.dds import cdr

async def run():
    bus, listening = Bus(DdsTarget("lo", int(sys.argv[1]))), threading.Event()
    inlet = bus.reader("rt/test", dds_types.TEXT, lambda _: None, depth=1)

    def wake():
        listening.set()
        time.sleep(0.2)

    inlet.waker._wake = wake
    first, second = (bus.writer("rt/test", dds_types.TEXT) for _ in range(2))
    thread = threading.Thread(target=first.write, args=(cdr.encode_text("first"),))
    thread.start()
    listening.wait()
    second.write(cdr.encode_text("second"))
    thread.join()
    bus.close()

asyncio.run(run())
"""


def test_a_write_while_a_listener_of_the_same_reader_runs_does_not_freeze_the_process() -> None:
    command = [sys.executable, "-c", TWO_WRITERS, str(free_domain("two writers"))]
    subprocess.run(command, check=True, timeout=60)


def test_a_bus_that_is_forgotten_leaves_the_domain_by_itself() -> None:
    async def run() -> None:
        bus = Bus(DdsTarget("lo", free_domain()))
        writer = bus.writer("rt/test", dds_types.TEXT)
        for _ in range(3):
            other = Bus(bus.target)
            other.reader("rt/test", dds_types.TEXT, lambda _: None, depth=1)
            assert writer.matched == 1
            del other
            gc.collect()
            async with asyncio.timeout(10.0):
                while writer.matched:
                    await asyncio.sleep(0.01)
            writer.write(cdr.encode_text("there is no reader, and nothing crashes"))
        bus.close()

    asyncio.run(run())


NEVER_CLOSED = """
import asyncio, sys
from rote.transport.dds.participant import Bus, DdsTarget

async def open_bus():
    return Bus(DdsTarget("lo", int(sys.argv[1])))

bus = asyncio.run(open_bus())
bus.itself = bus  # so that it is freed only when the interpreter ends
"""


@pytest.mark.slow
def test_a_bus_that_is_never_closed_does_not_keep_the_program_from_ending() -> None:
    command = [sys.executable, "-c", NEVER_CLOSED, str(free_domain("never closed"))]
    subprocess.run(command, check=True, timeout=30)


def test_the_topics_of_others_are_seen_and_our_own_are_not() -> None:
    async def run() -> None:
        ours, theirs = Bus(DdsTarget("lo", free_domain())), Bus(DdsTarget("lo", free_domain()))
        ours.writer("rt/ours", dds_types.TEXT)
        theirs.writer("rt/written", dds_types.TEXT)
        theirs.reader("rt/read", dds_types.TEXT, lambda _: None, depth=1)
        assert ours.discovered_topics() == ({"rt/written"}, {"rt/read"})
        theirs.close()
        assert ours.discovered_topics() == (set(), set())
        ours.close()

    asyncio.run(run())


# ---- who is there, and who is not ---------------------------------------------------------------


async def nobody(domain: int) -> NoAnswerError:
    with pytest.raises(NoAnswerError, match="no robot answered") as caught:
        async with connect(f"dds://lo?domain={domain}", timeout=1.5):
            pass
    assert "rote sim" in worded(caught.value.remedy)
    return caught.value


def test_an_empty_domain_other_dds_and_a_deaf_computer_are_told_apart() -> None:
    async def run() -> None:
        domain = free_domain()
        assert "there is no other DDS program" in str(await nobody(domain))
        other = Bus(DdsTarget("lo", domain))
        other.writer("chatter", dds_types.TEXT)
        assert "but no G1" in str(await nobody(domain))
        other.writer(dds_lowlevel.LOWSTATE_TOPIC, dds_types.LOWSTATE)
        deaf = await nobody(domain)
        assert "no sample of it arrives" in str(deaf)
        assert "firewall" in deaf.remedy
        other.close()

    virtual.run(run())


def test_in_debug_mode_it_says_which_service_is_missing_and_why() -> None:
    async def story(one: Rig, robot: G1) -> None:
        one.world.drive("")
        await asyncio.sleep(0.5)
        with pytest.raises(
            NoAnswerError, match="no program takes requests to the service 'arm'"
        ) as no:
            await robot.actions()
        assert "debug mode" in no.value.remedy
        assert await robot.controller() == ""
        async with one.connect() as late:  # who comes now gets in all the same
            assert await late.controller() == ""
        one.world.drive("ai")
        await asyncio.sleep(0.5)
        assert (await robot.actions()).taught == ()

    tell(story)


def test_an_old_robot_is_told_by_the_names_it_has() -> None:
    async def run() -> None:
        domain = free_domain()
        old = Bus(DdsTarget("lo", domain))
        joints = old.writer(dds_lowlevel.LOWSTATE_TOPIC, dds_types.LOWSTATE)
        for topic in (request_topic("loco"), request_topic("motion_switcher")):
            old.reader(topic, dds_types.REQUEST, lambda _: None, depth=1)
        old.reader(dds_lowlevel.OLD_ARM_SDK_TOPIC, dds_types.LOWCMD, lambda _: None, depth=1)
        state = RobotState(joints_rad=(0.0,) * 29, velocities_rad_s=(0.0,) * 29)

        async def publish() -> None:
            for tick in range(100_000):
                now = RobotState(
                    joints_rad=state.joints_rad,
                    velocities_rad_s=state.velocities_rad_s,
                    time_us=tick * 10_000,
                )
                joints.write(dds_lowlevel.encode_lowstate(now, build=G1_29))
                await asyncio.sleep(0.01)

        publishing = asyncio.create_task(publish())
        client = DdsClient(f"dds://lo?domain={domain}", DdsTarget("lo", domain))
        await client.open()
        with pytest.raises(NoAnswerError, match="'loco'") as caught:
            await client.call(rpc.GET_FSM)
        assert "8.2.0.0" in caught.value.remedy
        with pytest.raises(NoAnswerError, match="'arm'"):
            await client.call(rpc.LIST_ACTIONS)
        with pytest.raises(NoAnswerError, match="'robot_state'"):
            await client.call(rpc.Call(rpc.ROBOT_STATE, 1003))
        with pytest.raises(NoAnswerError, match=dds_lowlevel.OLD_ARM_SDK_TOPIC):
            await G1(client).play_track(raised())
        await client.close()
        publishing.cancel()
        old.close()

    virtual.run(run())


def test_a_request_that_cannot_be_sent_says_so_and_is_not_taken_for_unanswered() -> None:
    async def story(one: Rig, robot: G1) -> None:
        client = client_of(robot, DdsClient)
        assert client.dds.topics is not None

        def fail(data: bytes) -> None:
            raise LinkError("DDS could not send to rt/api/arm/request: timeout", "Try again.")

        client.dds.topics._requests["arm"].write = fail  # type: ignore[method-assign]
        with pytest.raises(LinkError, match="could not send") as caught:
            await robot.actions()
        assert not isinstance(caught.value, NoAnswerError)

    tell(story)


@pytest.mark.parametrize(("service", "version"), [("arm", "1.0.0.14"), ("robot_state", "1.0.0.2")])
def test_a_service_tells_its_version(service: str, version: str) -> None:
    async def story(one: Rig, robot: G1) -> None:
        client = client_of(robot, DdsClient)
        assert await client.version(service) == version

    tell(story)


def test_garbage_on_a_topic_is_counted_and_does_no_harm() -> None:
    async def story(one: Rig, robot: G1) -> None:
        client = client_of(robot, DdsClient)
        liar = Bus(DdsTarget("lo", free_domain()))
        liar.writer(rpc.ARM_STATE_TOPIC, dds_types.TEXT).write(cdr.encode_text("{]"))
        await asyncio.sleep(0.1)
        assert client.session.dropped["telemetry"] == 1
        assert (await robot.actions()).taught == ()
        liar.close()

    tell(story)


def test_a_lost_robot_that_comes_back_is_found_again() -> None:
    async def story(one: Rig, robot: G1) -> None:
        client = client_of(robot, DdsClient)
        await asyncio.sleep(6.0)
        assert client.reconnects == 1
        assert (await robot.actions()).taught == ()

    tell(story, impairment=Impairment(cut_after_s=1.0, cut_for_s=3.0))


# ---- states -------------------------------------------------------------------------------------


def test_at_500_hz_every_state_is_recorded_and_fifty_a_second_are_shown() -> None:
    async def run() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        door = await simulator.serve_dds("lo", free_domain())
        async with connect(door.url) as robot:
            seen: list[RobotState] = []
            forget = robot.on_state(seen.append)
            await asyncio.sleep(1.0)
            forget()
            assert len(seen) == pytest.approx(50, abs=1)
            async with robot.teach("mine") as take:
                await robot.move_by_hand("wave", 1.0)
                await asyncio.sleep(1.0)
            assert take.track.rate_hz == pytest.approx(500.0)
            assert np.diff(take.track.times_s) == pytest.approx(0.002)
        await simulator.close()
        store.close()

    virtual.run(run())


# ---- streaming ----------------------------------------------------------------------------------


def test_a_take_is_streamed_back_closely() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("drum") as take:
            await robot.move_by_hand("drum", 1.5)
            await asyncio.sleep(1.5)
        await asyncio.sleep(4.5)
        overheard, played = Overheard(), Recorder()
        robot.on_state(lambda s: played.add(s) if s.phase is Phase.PLAYING else None)
        report = await robot.play_track(take.track, rate_hz=500.0)
        assert report.completed
        assert report.rate_hz == pytest.approx(500.0)
        apart = deviation(take.track, played.track(), G1_29.names[15:])
        assert apart.rms_rad < 0.02
        overheard.check_soft()
        assert max(overheard.weights) == 1.0
        assert {c.mode_machine for c in overheard.commands} == {G1_29.machines[0]}
        waist = {c.joints_rad[1:3] for c in overheard.commands}
        assert len(waist) == 1  # what is not taught is held where it was
        overheard.close()

    tell(story)


class Publisher:
    """A robot of any build on DDS, which takes commands to its arms and has no services."""

    def __init__(self, build: Build, machine: int) -> None:
        self.domain = free_domain("publisher")
        self.commands: list[bytes] = []
        self._bus = Bus(DdsTarget("lo", self.domain))
        self._joints = self._bus.writer(dds_lowlevel.LOWSTATE_TOPIC, dds_types.LOWSTATE)
        self._mode = self._bus.writer("rt/sportmodestate", dds_types.SPORT)
        self._bus.reader(
            dds_lowlevel.ARM_SDK_TOPIC, dds_types.LOWCMD, self.commands.append, depth=10_000
        )
        self._state = RobotState(
            joints_rad=build.rest_rad, velocities_rad_s=(0.0,) * len(build.names)
        )
        self._build = replace(build, machines=(machine,))
        self._publishing = asyncio.create_task(self._publish())

    async def _publish(self) -> None:
        for tick in range(100_000):
            now = replace(self._state, time_us=tick * 10_000)
            self._joints.write(dds_lowlevel.encode_lowstate(now, build=self._build))
            self._mode.write(cdr.encode_mode(Mode.WALK))
            await asyncio.sleep(0.01)

    def close(self) -> None:
        self._publishing.cancel()
        self._bus.close()


async def beginning(
    build: Build, machine: int, named: Build | None = None
) -> tuple[DdsClient, list[bytes], Exception | None]:
    """Begin a stream to a robot of a build, end it, and return what came of it."""
    robot = Publisher(build, machine)
    client = DdsClient("dds://lo", DdsTarget("lo", robot.domain, named))
    await client.open()
    await asyncio.sleep(0.1)
    error: Exception | None = None
    try:
        await client.ask(BeginStream())
        send = client.ready([StreamPose(0, 0.5, (0.1,) * len(client.build.taught))] * 2)
        assert send(0)
    except RoteError as caught:
        error = caught
    await client.close()
    await asyncio.sleep(0.1)
    robot.close()
    return client, robot.commands, error


@pytest.mark.parametrize("build", G1_FAMILY.builds, ids=lambda build: build.name)
def test_every_build_is_streamed_to_by_its_own_slots_and_let_go_of(build: Build) -> None:
    async def run() -> None:
        machine = build.machines[-1]
        client, commands, error = await beginning(build, machine)
        assert error is None
        assert client.build.name == build.name
        told = [dds_lowlevel.decode_arm_command(data, build) for data in commands]
        assert told[-1].weight == 0.0
        assert {command.mode_machine for command in told} == {machine}
        for data in commands:
            motors = np.frombuffer(data, dds_lowlevel.LOWCMD, 1, 4)[0]["motors"]
            for slot in range(dds_lowlevel.MOTORS):
                assert build.owns(slot) or not (motors[slot]["q"] or motors[slot]["kp"])

    virtual.run(run())


@pytest.mark.parametrize(
    ("machine", "named"), [(77, None), (0, None), (77, G1_29), (0, G1_29), (5, G1_23)]
)
def test_nothing_is_streamed_to_a_machine_that_is_not_what_it_should_be(
    machine: int, named: Build | None
) -> None:
    async def run() -> None:
        client, commands, error = await beginning(G1_29, machine, named)
        assert isinstance(error, CautionError)
        assert error.remedy
        assert commands == []
        assert client.latest is not None  # it is watched all the same
        assert len(client.latest.joints_rad) == len(client.build.names)

    virtual.run(run())


def test_a_robot_that_does_not_tell_its_joints_can_be_asked_and_stopped() -> None:
    async def run() -> None:
        bus = Bus(DdsTarget("lo", free_domain("silent")))
        answers: dict[str, Outlet] = {}

        def answer(service: str, data: bytes) -> None:
            request = cdr.decode_request(data, service)
            response = rpc.RpcResponse(service=service, api_id=request.api_id, id=request.id)
            answers[service].write(cdr.encode_response(response))

        for service in ("arm", "sport", "motion_switcher"):
            answers[service] = bus.writer(response_topic(service), dds_types.RESPONSE)
            take = partial(answer, service)
            bus.reader(request_topic(service), dds_types.REQUEST, take, depth=8)
        client = DdsClient("dds://lo", DdsTarget("lo", bus.target.domain))
        await client.open()
        assert await client.ask(StopMotion()) == Status()
        assert client.latest is None
        with pytest.raises(NoAnswerError):
            await client.ask(BeginStream())
        await client.close()
        bus.close()

    virtual.run(run())


@pytest.mark.parametrize("how", ["robot", "cancel", "leave", "cease"])
def test_a_stream_ends_softly_however_it_is_ended(how: str) -> None:
    async def run() -> None:
        async with rig("dds") as one:
            overheard = Overheard()
            async with one.connect() as robot:
                streaming = robot.play_track(raised())
                await streaming.started()
                await asyncio.sleep(1.2)
                assert one.world.state().phase is Phase.PLAYING
                assert overheard.weights[-1] == 1.0
                if how == "cease":
                    assert isinstance(streaming, PoseStreaming)
                    streaming._ticker.stop()  # as if this program hung, and woke up again
                    assert not (await streaming).completed
                elif how == "cancel":
                    with pytest.raises(TimeoutError):
                        async with asyncio.timeout(0.1):
                            await streaming
                elif how != "leave":
                    await robot.stop()
                    assert not (await streaming).completed
                    assert (await robot.play_track(raised(1.0))).completed
            await asyncio.sleep(4.0)
            overheard.check_soft()
            assert one.world.phase is Phase.NONE
            assert np.abs(one.world.body.setpoint_rad - G1_REST_RAD).max() < 1e-6
            overheard.close()

    virtual.run(run())


def test_a_robot_that_falls_silent_is_let_go_of_softly_and_found_again_to_be_streamed_to() -> None:
    async def story(one: Rig, robot: G1) -> None:
        overheard = Overheard(one.world)
        with pytest.raises(PeerLostError):
            await robot.play_track(raised(20.0))
        await asyncio.sleep(5.0)
        overheard.check_soft()
        assert one.world.phase is Phase.NONE
        assert (await robot.play_track(raised(1.0))).completed
        overheard.check_soft()
        overheard.close()

    tell(story, impairment=Impairment(cut_after_s=3.0, cut_for_s=4.0))


def test_who_leaves_a_robot_that_fell_silent_still_lets_go_of_it_softly() -> None:
    async def run() -> None:
        async with rig("dds", impairment=Impairment(cut_after_s=3.0)) as one:
            overheard = Overheard()
            with pytest.raises(PeerLostError):
                async with one.connect() as robot:
                    await robot.play_track(raised(20.0))
            await asyncio.sleep(0.1)
            overheard.check_soft()
            overheard.close()

    virtual.run(run())


@pytest.mark.parametrize("whom", ["who leaves", "everybody"])
def test_who_is_cancelled_while_leaving_lets_go_softly_all_the_same(whom: str) -> None:
    async def leave(one: Rig, left: asyncio.Future[DdsClient]) -> None:
        async with one.connect() as robot:
            client = client_of(robot, DdsClient)
            streaming = robot.play_track(raised())
            await streaming.started()
            await asyncio.sleep(1.2)
            left.set_result(client)

    async def run() -> None:
        async with rig("dds") as one:
            overheard = Overheard()
            before = asyncio.all_tasks()
            left: asyncio.Future[DdsClient] = asyncio.get_running_loop().create_future()
            leaving = asyncio.create_task(leave(one, left))
            client = await left
            await asyncio.sleep(0.2)
            for _ in range(3):  # a program that is told to end, again and again
                ours = asyncio.all_tasks() - before if whom == "everybody" else {leaving}
                for task in ours:
                    task.cancel()
                await asyncio.sleep(0.01)
            with pytest.raises(asyncio.CancelledError):
                await leaving
            await asyncio.sleep(0.1)
            overheard.check_soft()
            assert client.dds.topics is None
            overheard.close()

    virtual.run(run())


def test_a_stream_is_refused_while_the_arms_are_not_free() -> None:
    async def story(one: Rig, robot: G1) -> None:
        streaming = robot.play_track(raised(2.0))
        await streaming.started()
        with pytest.raises(RefusedError) as caught:
            await robot.play_track(raised())
        assert caught.value.code == Code.BUSY
        assert (await streaming).completed
        await robot.perform("both_hands_up")
        await asyncio.sleep(0.2)
        with pytest.raises(RefusedError) as caught:
            await robot.play_track(raised(), force=True)
        assert caught.value.code == Code.HOLDING

    tell(story)


def test_a_robot_that_does_not_balance_is_not_streamed_to() -> None:
    async def story(one: Rig, robot: G1) -> None:
        with pytest.raises(RefusedError) as caught:
            await robot.play_track(raised())
        assert caught.value.code == Code.WRONG_STATE

    tell(story, Mode.LOCK_STAND)


def test_arms_that_somebody_else_takes_away_are_let_go_of_and_the_end_is_told() -> None:
    async def story(one: Rig, robot: G1) -> None:
        overheard = Overheard()
        streaming = robot.play_track(raised(20.0))
        await streaming.started()
        await asyncio.sleep(9.0)  # the elbows are 0.6 rad from rest
        async with one.bystander() as other:
            await other.stop()
        assert not (await streaming).completed
        overheard.check_soft()
        assert len(overheard.commands) < 15 * 250
        overheard.close()

    tell(story)


def test_an_unsafe_track_is_refused_before_anything_is_told() -> None:
    async def story(one: Rig, robot: G1) -> None:
        overheard = Overheard()
        times_s, elbow = np.array([0.0, 0.02, 1.0]), np.array([[1.0], [0.0], [0.0]])
        with pytest.raises(UnsafeMotionError):
            robot.play_track(Track(times_s=times_s, joints_rad=elbow, names=("left_elbow_joint",)))
        await asyncio.sleep(1.0)
        assert overheard.commands == []
        overheard.close()

    tell(story)


def test_a_stream_survives_a_bad_network() -> None:
    bad = Impairment(loss=0.05, duplicate=0.05, reorder=0.1, corrupt=0.01, delay_s=0.01, seed=3)

    async def story(one: Rig, robot: G1) -> None:
        poses: list[tuple[float, ...]] = []
        robot.on_state(lambda state: poses.append(state.joints_rad))
        assert (await robot.play_track(raised())).completed
        lowest = np.array(poses)[:, G1_29.names.index("left_elbow_joint")].min()
        assert lowest == pytest.approx(0.4, abs=0.1)

    tell(story, impairment=bad)


def test_the_rig_tells_the_joints_as_often_as_it_says() -> None:
    async def story(one: Rig, robot: G1) -> None:
        async with robot.teach("mine") as take:
            await asyncio.sleep(1.0)
        assert take.track.rate_hz == pytest.approx(DDS_HZ)

    tell(story)
