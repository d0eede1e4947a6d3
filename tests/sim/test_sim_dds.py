"""The simulated robot's door on DDS, asked and streamed to by whoever is in its domain."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cyclonedds")

import virtual
from rig import free_domain
from rote import messages as m
from rote.messages import Phase
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29, G1_ARMS, G1_REST_RAD, Mode
from rote.sim.dds import DdsDoor
from rote.sim.firmware import firmware_of
from rote.sim.quirks import quirks_named
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.dds import types
from rote.transport.dds.participant import Bus, DdsTarget
from rote.transport.impair import Impairment
from rote.wire.dds import cdr
from rote.wire.dds import lowlevel as dds_lowlevel
from rote.wire.services import rpc
from sampled import sample_parameters

REST = tuple(G1_29.rest[name] for name in G1_29.streamed)
AWAY = tuple(value + (0.4 if place == 6 else 0.0) for place, value in enumerate(REST))
"""The left elbow 0.4 rad from rest."""


class Someone:
    """Anybody in the robot's domain, with no client of ours."""

    def __init__(self, simulator: Simulator, door: DdsDoor) -> None:
        self.simulator, self.world, self.door = simulator, simulator.world, door
        self.bus = Bus(door.target)
        self.responses: list[rpc.RpcResponse] = []
        self.states: list[bytes] = []
        self.texts: list[str] = []
        self.modes: list[int] = []
        self.percents: list[float] = []
        self._number = 0
        for service in ("arm", "sport", "motion_switcher", "robot_state"):
            self._listen(f"rt/api/{service}/response", types.RESPONSE, self._response(service))
        self._listen(dds_lowlevel.LOWSTATE_TOPIC, types.LOWSTATE, self.states.append)
        self._listen(
            rpc.ARM_STATE_TOPIC, types.TEXT, lambda d: self.texts.append(cdr.decode_text(d))
        )
        self._listen(
            "rt/sportmodestate", types.SPORT, lambda d: self.modes.append(cdr.decode_mode(d))
        )
        self._listen(
            "rt/lf/bmsstate", types.BATTERY, lambda d: self.percents.append(cdr.decode_battery(d))
        )
        self.arms = self.bus.writer(dds_lowlevel.ARM_SDK_TOPIC, types.LOWCMD)
        self.asks = {
            service: self.bus.writer(f"rt/api/{service}/request", types.REQUEST, depth=64)
            for service in ("arm", "sport", "motion_switcher", "robot_state")
        }

    def _listen(self, topic: str, kind: types.Type, take: Callable[[bytes], None]) -> None:
        self.bus.reader(topic, kind, take, depth=1000)

    def _response(self, service: str) -> Callable[[bytes], None]:
        return lambda data: self.responses.append(cdr.decode_response(data, service))

    def ask(self, service: str, api: int, parameter: str = "", *, noreply: bool = False) -> None:
        self._number += 1
        request = rpc.RpcRequest(
            service=service, api_id=api, id=self._number, parameter=parameter, noreply=noreply
        )
        self.asks[service].write(cdr.encode_request(request))

    async def answered(
        self, service: str, api: int, parameter: str = "", within_s: float = 1.0
    ) -> rpc.RpcResponse:
        self.ask(service, api, parameter)
        async with asyncio.timeout(within_s):
            while not self.responses or self.responses[-1].id != self._number:
                await asyncio.sleep(0.01)
        return self.responses[-1]

    def command(self, positions: tuple[float, ...], weight: float) -> None:
        self.arms.write(
            dds_lowlevel.encode_arm_command(positions, weight, build=G1_29, mode_machine=4)
        )

    async def stream(self, seconds: float, weight: float = 1.0) -> None:
        for _ in range(round(seconds * 100)):
            self.command(AWAY, weight)
            await asyncio.sleep(0.01)

    def noted(self, words: str) -> int:
        return sum(words in notice.message for notice in self.world.notices)


@asynccontextmanager
async def someone(
    *,
    mode: Mode = Mode.WALK,
    hz: float = 100.0,
    impairment: Impairment | None = None,
    build: Build = G1_29,
    quirks: str = "",
) -> AsyncIterator[Someone]:
    store = Store(":memory:")
    firmware = replace(firmware_of(build), quirks=quirks_named([quirks]))
    world = World(store, build=build, mode=mode, firmware=firmware)
    simulator = Simulator(world, impairment=impairment)
    door = await simulator.serve_dds("lo", free_domain(), lowstate_hz=hz)
    one = Someone(simulator, door)
    try:
        yield one
    finally:
        one.bus.close()
        await simulator.close()
        await door.close()
        store.close()


def test_states_are_told_as_often_as_a_robot_does() -> None:
    async def run() -> None:
        async with someone(hz=500.0) as one:
            await asyncio.sleep(0.2)
            for heard in (one.states, one.texts, one.modes, one.percents):
                heard.clear()
            await asyncio.sleep(2.0)
            assert len(one.states) == pytest.approx(1000, abs=2)
            ticks_ms = [dds_lowlevel.read_tick_and_machine(state)[0] for state in one.states]
            assert np.diff(ticks_ms).tolist() == [2] * (len(one.states) - 1)
            assert len(one.texts) == pytest.approx(20, abs=1)
            assert set(one.texts) == {'{"holding":false,"id":0,"name":""}'}
            assert set(one.modes) == {Mode.WALK}
            assert len(one.percents) == 2

    virtual.run(run())


def test_services_answer_everybody_under_their_numbers_and_some_not_at_all() -> None:
    async def run() -> None:
        async with someone() as one:
            assert (await one.answered("arm", 1)).data == "1.0.0.14"
            assert rpc.decode_value((await one.answered("sport", 7001)).data) == Mode.WALK
            assert (await one.answered("arm", 9999)).code == 3203
            assert (await one.answered("arm", 7108, "{]")).code == 3204
            before = len(one.responses)
            one.ask("arm", 7107, noreply=True)
            await asyncio.sleep(1.0)
            assert len(one.responses) == before

    virtual.run(run())


def test_a_preset_is_answered_when_it_is_over() -> None:
    async def run() -> None:
        async with someone() as one:
            began = one.world.time_s
            assert (await one.answered("arm", 7106, '{"action_id":26}', within_s=20.0)).code == 0
            assert one.world.time_s - began > 1.0

    virtual.run(run())


def test_a_service_that_is_off_or_dead_in_debug_mode_has_no_reader() -> None:
    async def run() -> None:
        async with someone() as one:
            assert one.asks["arm"].matched == one.asks["sport"].matched == 1
            off = '{"name":"g1_arm_example","switch":0}'
            assert (await one.answered("robot_state", 1001, off)).code == 0
            await asyncio.sleep(0.2)
            assert (one.asks["arm"].matched, one.asks["sport"].matched) == (0, 1)
            assert (await one.answered("motion_switcher", 1003)).code == 0
            await asyncio.sleep(0.2)
            assert (one.asks["arm"].matched, one.asks["sport"].matched) == (0, 0)
            one.texts.clear()
            await asyncio.sleep(1.0)
            assert one.texts == []
            assert (await one.answered("motion_switcher", 1002, '{"name":"ai"}')).code == 0
            await asyncio.sleep(0.2)
            assert (one.asks["arm"].matched, one.asks["sport"].matched) == (0, 1)

    virtual.run(run())


def test_arms_follow_as_far_as_the_weight_goes() -> None:
    async def run() -> None:
        async with someone() as one:
            for weight in (0.5, 1.0):
                await one.stream(3.0, weight)
                elbow = one.world.body.joints_rad[18] - G1_29.rest_rad[18]
                assert elbow == pytest.approx(0.4 * weight, abs=0.08)
            for weight in np.linspace(1.0, 0.0, 50).tolist():
                one.command(AWAY, weight)
                await asyncio.sleep(0.01)
            await asyncio.sleep(5.0)
            assert one.world.phase is Phase.NONE
            assert one.world.body.setpoint_rad == pytest.approx(G1_29.rest_rad)
            assert not one.world.stopped_early

    virtual.run(run())


@pytest.mark.parametrize("build", [G1_27, G1_23, G1_ARMS], ids=lambda build: build.name)
def test_every_build_that_can_be_streamed_to_follows_by_its_own_slots(build: Build) -> None:
    elbow = build.names.index("left_elbow_joint")

    async def run() -> None:
        async with someone(build=build) as one:
            away = [build.rest[name] for name in build.streamed]
            away[build.streamed.index("left_elbow_joint")] += 0.4
            for _ in range(200):
                data = dds_lowlevel.encode_arm_command(away, 1.0, build=build, mode_machine=0)
                one.arms.write(data)
                await asyncio.sleep(0.01)
            moved = one.world.body.setpoint_rad - np.array(build.rest_rad)
            assert moved[elbow] == pytest.approx(0.4, abs=0.01)
            moved[elbow] = 0.0
            assert np.abs(moved).max() < 1e-6
            assert dds_lowlevel.decode_joints(one.states[-1], build).joints_rad == pytest.approx(
                one.world.body.joints_rad.tolist(), abs=0.02
            )

    virtual.run(run())


def test_a_robot_that_follows_no_stream_moves_nothing_and_says_so_once() -> None:
    mute = replace(G1_29, streamed=(), stream=None, no_stream="sources disagree")

    async def run() -> None:
        async with someone(build=mute) as one:
            await one.stream(1.0)
            assert one.world.phase is Phase.NONE
            assert one.noted("sources disagree") == 1
            await asyncio.sleep(1.0)
            await one.stream(0.2)
            assert one.noted("sources disagree") == 2

    virtual.run(run())


def test_commands_without_weight_move_nothing() -> None:
    async def run() -> None:
        async with someone() as one:
            await one.stream(1.0, 0.0)
            assert one.world.phase is Phase.NONE
            assert one.noted("playing") == 0

    virtual.run(run())


def test_when_the_commands_cease_the_arms_go_home_and_a_later_stream_is_obeyed() -> None:
    async def run() -> None:
        async with someone() as one:
            await one.stream(2.0)
            await asyncio.sleep(6.0)
            assert one.world.phase is Phase.NONE
            assert one.world.stopped_early
            await one.stream(1.0)
            assert one.noted("playing 'a stream'") == 2

    virtual.run(run())


def test_a_stream_that_somebody_stops_does_not_begin_again_by_itself() -> None:
    async def run() -> None:
        async with someone() as one:
            await one.stream(2.0)
            assert one.world.obey("somebody", m.StopMotion()) == m.Status()
            await one.stream(6.0)
            assert one.world.phase is Phase.NONE
            await one.stream(0.1, 0.0)
            await one.stream(0.1, 1.0)
            assert one.world.phase is not Phase.NONE

    virtual.run(run())


def test_a_robot_that_does_not_stand_says_once_that_it_does_not_follow() -> None:
    async def run() -> None:
        async with someone(mode=Mode.DAMP) as one:
            await one.stream(1.0)
            assert one.noted("the arms do not follow") == 1

    virtual.run(run())


def test_damaged_commands_and_senseless_words_are_noted_and_harm_nothing() -> None:
    async def run() -> None:
        async with someone() as one:
            wrong = bytearray(
                dds_lowlevel.encode_arm_command(AWAY, 1.0, build=G1_29, mode_machine=4)
            )
            wrong[60] ^= 1
            one.arms.write(bytes(wrong))
            hand = one.bus.writer("rt/rote/hand", types.TEXT)
            hand.write(cdr.encode_text('{"script":5}'))
            await asyncio.sleep(0.1)
            assert one.noted("could not be read") == 2
            assert one.world.phase is Phase.NONE
            assert (await one.answered("arm", 1)).code == 0

    virtual.run(run())


def test_on_a_bad_network_requests_arrive_and_states_get_lost() -> None:
    async def run() -> None:
        bad = Impairment(loss=0.3, delay_s=0.02, reorder=0.3, duplicate=0.3, corrupt=0.1)
        async with someone(impairment=bad) as one:
            for _ in range(20):
                assert (await one.answered("arm", 1)).code == 0
            one.states.clear()
            await asyncio.sleep(2.0)
            assert 60 < len(one.states) < 190
            ticks = [dds_lowlevel.read_tick_and_machine(state)[0] for state in one.states]
            assert ticks == sorted(set(ticks))

    virtual.run(run())


def test_clients_are_counted_and_a_closed_door_has_none() -> None:
    async def run() -> None:
        async with someone() as one:
            assert one.simulator.clients == 1
            other = Bus(one.door.target)
            other.writer("rt/api/motion_switcher/request", types.REQUEST)
            assert one.simulator.clients == 2
            other.close()
            assert one.simulator.clients == 1
            assert one.door.url == f"dds://lo?domain={free_domain()}"
            await one.door.close()
            assert one.door.clients == 0
            await asyncio.sleep(0.1)  # what is said into a closed door is lost
            assert DdsTarget("eth0") == DdsTarget("eth0", 0)

    virtual.run(run())


@pytest.mark.parametrize("gap_s", sample_parameters([0.15, 0.9, 0.3, 0.6], 2))
def test_a_gap_in_the_commands_ramps_down_and_the_arms_go_on_when_they_come_again(
    gap_s: float,
) -> None:
    async def run() -> None:
        async with someone() as one:
            await one.stream(2.0)
            away = one.world.body.setpoint_rad
            await asyncio.sleep(gap_s)
            assert one.noted("the arms ramp down") == 1
            lower = np.abs(one.world.body.setpoint_rad - G1_REST_RAD)
            assert (lower < np.abs(away - G1_REST_RAD) + 1e-9).all()
            assert one.world.phase is not Phase.NONE
            rows = []
            for _ in range(200):
                await one.stream(0.01)
                rows.append(one.world.body.setpoint_rad)
            assert np.abs(one.world.body.setpoint_rad - away).max() < 1e-3
            assert np.abs(np.diff(rows, axis=0)).max() / 0.01 < 2.0, "no jump back"
            assert one.noted("playing 'a stream'") == 1
            assert not one.world.stopped_early

    virtual.run(run())


def test_after_a_long_gap_the_same_commands_begin_a_stream_that_ramps_up() -> None:
    async def run() -> None:
        async with someone() as one:
            await one.stream(2.0)
            away = one.world.body.setpoint_rad
            await asyncio.sleep(8.0)
            assert one.world.phase is Phase.NONE
            await one.stream(0.1)
            early = one.world.body.setpoint_rad
            await one.stream(2.0)
            assert np.abs(early - away).max() > 0.5 * np.abs(G1_REST_RAD - away).max()
            assert np.abs(one.world.body.setpoint_rad - away).max() < 1e-3

    virtual.run(run())


def test_a_stream_that_somebody_stops_in_a_gap_stays_stopped() -> None:
    async def run() -> None:
        async with someone() as one:
            await one.stream(2.0)
            await asyncio.sleep(0.2)
            assert one.world.obey("somebody", m.StopMotion()) == m.Status()
            await one.stream(6.0)
            assert one.world.phase is Phase.NONE
            assert one.noted("playing 'a stream'") == 1

    virtual.run(run())


# ---- odd firmware -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("quirk", "states", "texts", "modes"),
    [
        ("", 200, 20, {500}),
        ("no-lowstate", 0, 20, {500}),
        ("lowstate-1hz", 2, 20, {500}),
        ("lowstate-500hz", 1000, 20, {500}),
        ("no-arm-state", 200, 0, {500}),
        ("mode-refused", 200, 20, set()),
        ("mode-missing", 200, 20, set()),
        ("mode-minus-1", 200, 20, {2**32 - 1}),
    ],
)
def test_a_quirk_changes_what_is_published_on_dds(
    quirk: str, states: int, texts: int, modes: set[int]
) -> None:
    async def run() -> None:
        async with someone(quirks=quirk) as one:
            await asyncio.sleep(0.2)
            for heard in (one.states, one.texts, one.modes):
                heard.clear()
            await asyncio.sleep(2.0)
            assert len(one.states) == pytest.approx(states, abs=2)
            assert len(one.texts) == pytest.approx(texts, abs=1)
            assert set(one.modes) == modes

    virtual.run(run())


def test_quirks_of_answers_are_heard_on_dds_too() -> None:
    async def run() -> None:
        quirks = "list-names-only,mode-text,byte-order-mark,nul,late-answers"
        async with someone(quirks=quirks) as one:
            began = one.world.time_s
            listed = await one.answered("arm", 7107, within_s=6.0)
            assert one.world.time_s - began == pytest.approx(4.0, abs=0.2)
            assert (listed.data[0], listed.data[-1]) == ("\ufeff", "\0")
            assert '"release_arm"' in listed.data
            assert '"id"' not in listed.data
            mode = await one.answered("sport", 7001, within_s=6.0)
            assert mode.data == '\ufeff{"data":"500"}\0'
            began = one.world.time_s
            assert (await one.answered("arm", 7106, '{"data":26}', within_s=20.0)).code == 0
            assert one.world.time_s - began > 1.0 + 4.0

    virtual.run(run())
