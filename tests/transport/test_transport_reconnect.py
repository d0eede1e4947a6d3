"""A robot that goes and comes back: what fails meanwhile, and what flows again by itself."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from rig import Rig, client_of, rig
from rote import connect
from rote.errors import LinkError, PeerLostError, RoteError, StageTimeoutError
from rote.messages import RobotState
from rote.model.g1 import Mode
from rote.robot.message_robot import G1
from rote.sim.webrtc import WebRtcDoor
from rote.transport.base_client import RECONNECT_DELAYS_S
from rote.transport.impair import Impairment
from rote.transport.link import Carrier
from rote.transport.services.client import ServicesClient
from rote.transport.services.connection import RpcConnection
from rote.transport.webrtc.connection import ChannelConnection
from rote.wire.services import rpc
from rote.wire.services.lowstate import SPORT_TOPIC
from webrtc_ends import ScriptedRobot, Talking, answering, census, run


class House:
    """A simulated robot whose door can be shut and opened again at the same address."""

    def __init__(self, one: Rig) -> None:
        self.one = one
        self.world = one.world
        self.url = one.url
        (door,) = one.simulator._doors
        assert isinstance(door, WebRtcDoor)
        self._door = door
        self._address = self._door.address

    async def shut(self) -> None:
        await self._door.close()

    async def open(self) -> None:
        await self._door.close()
        self._door = WebRtcDoor(self._door.services, self._door.signalling)
        self.one.simulator._doors[:] = [self._door]
        await self._door.open(*self._address)


@asynccontextmanager
async def house(impairment: Impairment | None = None) -> AsyncIterator[House]:
    async with rig("webrtc", impairment=impairment) as one:
        yield House(one)


async def until_back(robot: G1, within_s: float) -> float:
    """Wait until the robot answers again; return how long that took."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    async with asyncio.timeout(within_s):
        while True:
            try:
                await robot.actions()
                return loop.time() - began
            except LinkError:
                await asyncio.sleep(0.1)


def test_what_waits_fails_and_what_is_asked_meanwhile_fails_at_once() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        async with house() as there, connect(there.url, family="g1") as robot:
            losses: list[RoteError] = []
            client_of(robot, ServicesClient).on_loss(losses.append)
            waiting = asyncio.create_task(robot.perform("shake_hand"))  # takes seconds
            await asyncio.sleep(1.0)
            left = loop.time()
            await there.shut()
            with pytest.raises(PeerLostError, match="state is unknown"):
                await waiting
            assert loop.time() - left <= 3.0
            for _ in range(5):
                asked = loop.time()
                with pytest.raises(PeerLostError):
                    await robot.actions()
                assert loop.time() == asked
                await asyncio.sleep(1.0)
            assert len(losses) == 1

    run(story())


def test_a_network_that_is_cut_fails_what_waits_within_three_seconds() -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        cut = Impairment(cut_after_s=2.0, cut_for_s=20.0)
        async with house(cut) as there:
            cut_at = loop.time() + 2.0
            async with connect(there.url, family="g1") as robot:
                waiting = asyncio.create_task(robot.perform("shake_hand"))
                with pytest.raises(PeerLostError, match="silent"):
                    await waiting
                assert 0 < loop.time() - cut_at <= 3.0

    run(story())


def test_the_robot_is_found_again_and_everything_flows_as_before() -> None:
    async def story() -> None:
        async with house() as there, connect(there.url, family="g1") as robot:
            port = client_of(robot, ServicesClient)
            states: list[RobotState] = []
            modes: list[object] = []
            robot.on_state(states.append)
            forget = robot.on_topic("rt/lf/bmsstate", print)
            robot.on_topic(SPORT_TOPIC, lambda message: modes.append(message.data))
            await asyncio.sleep(1.0)
            assert states
            assert port.reconnects == 0
            await there.shut()
            await asyncio.sleep(0.2)
            states.clear()
            modes.clear()
            late: list[object] = []
            robot.on_topic(rpc.ARM_STATE_TOPIC, lambda message: late.append(message.data))
            forget()
            await asyncio.sleep(5.0)
            assert states == []
            there.world.machine.mode = Mode.WALK_WAIST
            await there.open()
            assert await until_back(robot, 20.0) <= RECONNECT_DELAYS_S[3] + 0.5
            assert port.reconnects == 1
            await asyncio.sleep(1.0)
            assert len(states) > 40
            assert states[-1].mode == Mode.WALK_WAIST
            assert modes
            assert late
            async with robot.teach("after"):
                await robot.move_by_hand("wave", 1.0)
                await asyncio.sleep(1.0)
            assert [action.name for action in (await robot.actions()).taught] == ["after"]

    run(story())


def test_it_is_found_again_as_often_as_it_goes() -> None:
    async def story() -> None:
        async with house() as there, connect(there.url, family="g1") as robot:
            for count in range(1, 6):
                await there.open()
                await asyncio.sleep(0.1)
                # Patience begins anew each time.
                assert await until_back(robot, 5.0) <= 1.0
                assert client_of(robot, ServicesClient).reconnects == count

    run(story())


def test_attempts_become_rarer_and_never_end() -> None:
    async def story() -> None:
        dials: list[float] = []
        loop = asyncio.get_running_loop()

        async def dial() -> Carrier:
            dials.append(loop.time())
            raise StageTimeoutError("signal", "nobody", "Wait.")

        port = RpcConnection("services://robot", ChannelConnection(dial))
        with pytest.raises(StageTimeoutError):
            await port.open()
        assert len(dials) == 1  # the first must succeed

        port = RpcConnection("services://robot", ChannelConnection(dial))
        port._opened.set_result(None)
        port._handle_loss(3.0)
        await asyncio.sleep(600.0)
        pauses = [round(b - a, 1) for a, b in itertools.pairwise(dials[1:])]
        assert pauses[:5] == list(RECONNECT_DELAYS_S[1:])
        assert set(pauses[5:]) == {RECONNECT_DELAYS_S[-1]}
        assert len(pauses) > 35
        await port.close()
        await asyncio.sleep(600.0)
        assert len(dials) == len(pauses) + 2

    run(story())


@pytest.mark.parametrize("stage", ["dial", "close"])
def test_an_attempt_that_fails_by_our_own_fault_is_told_and_not_the_last(stage: str) -> None:
    class Clumsy(ScriptedRobot):
        async def close(self) -> None:
            await super().close()
            if stage == "close":
                raise OSError("too many open files")

    async def story() -> None:
        robots: list[ScriptedRobot] = []
        told: list[dict[str, object]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: told.append(context))
        dials = itertools.count(1)

        async def dial() -> Carrier:
            number = next(dials)
            if number == 2 and stage == "dial":
                raise OSError("too many open files")
            robots.append(Clumsy() if number == 1 else ScriptedRobot())
            return robots[-1]

        port = RpcConnection("services://robot", ChannelConnection(dial))
        await port.open()
        robots[0].lost()
        await asyncio.sleep(3.0)
        assert port.reconnects == 1
        (context,) = told
        assert isinstance(context["exception"], OSError)
        assert "services://robot" in str(context["message"])
        await port.close()

    run(story())


def test_a_robot_stays_lost_where_that_was_asked_for() -> None:
    async def story() -> None:
        async with house() as there, connect(there.url, reconnect=False, family="g1") as robot:
            await there.open()
            await asyncio.sleep(20.0)
            with pytest.raises(PeerLostError):
                await robot.actions()
            assert client_of(robot, ServicesClient).reconnects == 0

    run(story())


@pytest.mark.parametrize("after_s", [0.0, 0.5, 0.505, 0.51, 1.6, 4.0])
def test_closing_while_connecting_again_ends_at_once_and_leaves_nothing(after_s: float) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        before = await census()
        async with house() as there:
            async with connect(there.url, family="g1") as robot:
                await there.shut()
                if after_s < 1.0:
                    await there.open()  # so that it is in the middle of something
                await asyncio.sleep(after_s)
                closing = loop.time()
                assert robot
            assert loop.time() - closing < 0.1
        assert await census() == before

    run(story())


def test_an_attempt_that_fails_lets_go_of_the_robot_at_once() -> None:
    class Mute(Talking):
        def speak(self) -> None:
            pass

    async def story() -> None:
        robots: list[Talking] = []

        async def answer(offer: str) -> str:
            robots.append(Mute() if robots else Talking())
            return await robots[-1].answer(offer)

        async with answering(answer) as url, connect(url):
            await robots[0].close()
            await asyncio.sleep(4.0)  # 0.5 s of patience and 3 s for the validation
            assert [one.gone for one in robots] == [False, True]
        for one in robots:
            await one.close()

    run(story())


def test_a_loss_in_the_moment_of_success_is_not_overlooked() -> None:
    """The robot's ok and its end come in one turn of the loop."""

    class Leaving(ScriptedRobot):
        def send(self, message: str | bytes) -> None:
            super().send(message)
            self._loop.call_soon(self.lost)

    async def story() -> None:
        robots: list[ScriptedRobot] = []

        async def dial() -> Carrier:
            robots.append(Leaving() if len(robots) in (1, 2) else ScriptedRobot())
            return robots[-1]

        port = RpcConnection("services://robot", ChannelConnection(dial))
        await port.open()
        robots[0].lost()
        await asyncio.sleep(60.0)
        assert [robot.closed for robot in robots] == [True, True, True, False]
        assert port.reconnects == 1
        call = asyncio.create_task(port.call(rpc.GET_FSM))
        await asyncio.sleep(0.1)
        robots[-1].answer(robots[-1].requests[0])
        await call
        await port.close()

    run(story())


def test_a_robot_that_leaves_as_soon_as_it_has_let_us_in_is_tried_again() -> None:
    class Leaving(Talking):
        def _hear(self, message: str | bytes) -> None:
            super()._hear(message)
            if isinstance(self.heard[-1], rpc.RpcRequest):
                self.leaving = asyncio.ensure_future(self.end.close())

    async def story() -> None:
        robots: list[Talking] = []

        async def answer(offer: str) -> str:
            robots.append(Leaving() if len(robots) in (1, 2, 3) else Talking())
            return await robots[-1].answer(offer)

        async with answering(answer) as url, connect(url, family="g1") as robot:
            await robots[0].close()
            await asyncio.sleep(30.0)
            port = client_of(robot, ServicesClient)
            assert len(robots) == 5
            assert (await port.call(rpc.GET_FSM)).data == '{"data":500}'
            assert port.reconnects >= 1
        for one in robots:
            await one.close()

    run(story())


def test_the_mode_is_read_anew_from_a_robot_that_does_not_publish_it() -> None:
    async def story() -> None:
        robots: list[Talking] = []

        async def answer(offer: str) -> str:
            robots.append(Talking(mode=500 + len(robots)))
            return await robots[-1].answer(offer)

        async with answering(answer) as url, connect(url, family="g1") as robot:
            port = client_of(robot, ServicesClient)
            assert port.reports.mode == 500
            await robots[0].close()
            await asyncio.sleep(2.0)
            assert (port.reconnects, port.reports.mode) == (1, 501)
        for one in robots:
            await one.close()

    run(story())
