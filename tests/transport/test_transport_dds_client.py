"""A stream over DDS whose client stalls, is suspended, loses the robot or is killed: the simulated
body shows that no joint is faster than the soft limit, and that the arms come to rest.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("cyclonedds")

import virtual
from rig import Body, Rig, client_of, rig
from rote.errors import RefusedError
from rote.messages import BeginStream, Code, Phase
from rote.model.g1 import G1_29
from rote.motion.track import Track
from rote.robot.message_robot import G1
from rote.session.arm_stream import ArmSetpoint
from rote.sim.dds import DdsDoor, _Network
from rote.transport.dds import types as dds_types
from rote.transport.dds.client import DdsClient
from rote.transport.dds.participant import Bus
from rote.transport.impair import Impairment
from rote.wire.dds import lowlevel as dds_lowlevel

RATE_HZ = 100.0
"""Poses per second here. The usual 250 take longer to compute and show nothing more."""
SOFT_RAD_S = 1.1
"""The soft limit of 1 rad/s, and what the servos of the simulated arms overshoot."""


def raised(seconds: float = 5.0, far_rad: float = 1.4) -> Track:
    """Both elbows go up by 0.7 rad/s and stay there."""
    times_s = np.arange(round(seconds * 100) + 1) / 100.0
    elbow = 1.0 - np.minimum(0.7 * times_s, far_rad)
    names = ("left_elbow_joint", "right_elbow_joint")
    return Track(times_s=times_s, joints_rad=np.column_stack([elbow, elbow]), names=names)


Story = Callable[[Rig, G1, Body], Awaitable[None]]


def tell(story: Story, *, quirks: tuple[str, ...] = ()) -> None:
    async def run() -> None:
        async with rig("dds", quirks=quirks) as one, one.connect() as robot:
            await story(one, robot, Body(one))
            await released(one)
            rest = np.array(one.world.build.rest_rad)
            assert np.abs(one.world.body.setpoint_rad - rest).max() < 0.01

    virtual.run(run())


async def released(one: Rig) -> None:
    """Wait until nothing drives the arms, for 6 s at most, and then until they are at rest."""
    async with asyncio.timeout(6.0):
        while one.world.phase is not Phase.NONE:
            await asyncio.sleep(0.1)
    rest = np.array(one.world.build.rest_rad)
    async with asyncio.timeout(5.0):
        while np.abs(one.world.body.setpoint_rad - rest).max() >= 0.01:
            await asyncio.sleep(0.1)
    await asyncio.sleep(0.5)
    assert one.world.phase is Phase.NONE


def cut(one: Rig, *, off: bool = True) -> None:
    """Lose all states and commands, until it is called with `off=False`."""
    (door,) = one.simulator._doors
    assert isinstance(door, DdsDoor)
    door.network = _Network(Impairment(loss=1.0)) if off else None


class Commands:
    """All commands to the arms, as everyone in the domain receives them."""

    def __init__(self, one: Rig) -> None:
        self.weights: list[float] = []
        self.apart_rad: list[float] = []
        """How far a commanded joint is from where the body has it."""
        self._world = one.world
        (door,) = one.simulator._doors
        assert isinstance(door, DdsDoor)
        self._bus = Bus(door.target)
        self._bus.reader(dds_lowlevel.ARM_SDK_TOPIC, dds_types.LOWCMD, self._take, depth=10_000)

    def _take(self, data: bytes) -> None:
        command = dds_lowlevel.decode_arm_command(data, G1_29)
        there = self._world.body.joints_rad[list(G1_29.streamed_columns)]
        self.weights.append(command.weight)
        self.apart_rad.append(float(np.abs(there - command.joints_rad).max()))

    def close(self) -> None:
        self._bus.close()


@pytest.mark.each_once("stop_client", "stall_s")
@pytest.mark.parametrize("stop_client", [virtual.hang, virtual.suspend])
@pytest.mark.parametrize(
    "stall_s",
    [
        0.05,
        0.15,
        0.5,
        pytest.param(1.0, marks=pytest.mark.soak),
        pytest.param(3.0, marks=pytest.mark.soak),
        30.0,
    ],
)
def test_after_a_stall_no_joint_is_faster_than_the_soft_limit(
    stall_s: float, stop_client: Callable[[float], None]
) -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        commands = Commands(one)
        playing = robot.play_track(raised(), force=True, rate_hz=RATE_HZ)
        await playing.started()
        await asyncio.sleep(4.0)
        await asyncio.sleep(0.001)  # what was sent has arrived
        body.forget()
        commands.apart_rad.clear()
        commands.weights.clear()
        body.go_on(stall_s, stop_client)
        report = await playing
        # The simulated robot would soften a jump, which a real one may not: look at the command.
        assert commands.weights[0] == 0.0 or commands.apart_rad[0] < 0.15
        commands.close()
        await released(one)
        assert body.peak_rad_s < SOFT_RAD_S
        assert report.completed is (stall_s < 0.3)
        how = "suspended for" if stop_client is virtual.suspend else "sent no pose for"
        assert (how in report.reason) is (stall_s > 0.3), report.reason

    tell(story)


@pytest.mark.parametrize("stop_client", [virtual.hang, virtual.suspend])
def test_a_stall_in_mid_release_continues_from_where_the_arms_are(
    stop_client: Callable[[float], None],
) -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        playing = robot.play_track(raised(), force=True, rate_hz=RATE_HZ)
        await playing.started()
        await asyncio.sleep(4.0)
        body.forget()
        stopping = asyncio.create_task(robot.stop())
        await asyncio.sleep(0.7)
        assert one.world.phase is not Phase.NONE
        body.go_on(1.0, stop_client)
        await stopping
        await released(one)
        assert body.peak_rad_s < SOFT_RAD_S

    tell(story)


@pytest.mark.parametrize(
    "cut_s", [0.2, *(pytest.param(each, marks=pytest.mark.soak) for each in (0.5, 1.0, 2.0)), 6.0]
)
def test_a_stream_without_states_fades_and_goes_on_from_the_measured_pose(cut_s: float) -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        playing = robot.play_track(raised(), force=True, rate_hz=RATE_HZ)
        await playing.started()
        await asyncio.sleep(4.0)
        body.forget()
        cut(one)
        await asyncio.sleep(min(cut_s, 0.5))
        assert (client_of(robot, DdsClient)._streamer.phase is Phase.RETURN) is (cut_s > 0.3)
        await asyncio.sleep(cut_s - min(cut_s, 0.5))
        cut(one, off=False)
        report = await playing
        assert report.completed is (cut_s < 0.3)
        assert ("no joint positions for 0.3 s" in report.reason) is (cut_s > 0.3)
        await released(one)
        assert body.peak_rad_s < SOFT_RAD_S

    tell(story)


def test_arms_that_held_during_a_cut_are_released_when_the_robot_is_there_again() -> None:
    """A robot may hold its last pose while no commands arrive, unlike the simulated one."""

    async def story(one: Rig, robot: G1, body: Body) -> None:
        commands = Commands(one)
        playing = robot.play_track(raised(), force=True, rate_hz=RATE_HZ)
        await playing.started()
        await asyncio.sleep(4.0)
        cut(one)
        await asyncio.sleep(4.0)
        assert commands.weights[-1] == 0.0
        commands.weights.clear()
        cut(one, off=False)
        await playing
        await asyncio.sleep(2.0)
        assert commands.weights[0] > 0.99
        assert commands.weights[-1] == 0.0
        commands.close()

    tell(story)


@pytest.mark.parametrize("quirk", ["lowstate-1hz"])
def test_a_robot_that_reports_slowly_is_streamed_to(quirk: str) -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        await asyncio.sleep(8.0)  # in which the client learns how often it reports
        assert (await robot.play_track(raised(), force=True, rate_hz=RATE_HZ)).completed

    tell(story, quirks=(quirk,))


# ---- killed ------------------------------------------------------------------------------------

STREAMS = """
import asyncio, sys
import numpy as np
from rote import connect
from rote.motion.track import Track

async def run():
    times_s = np.arange(2001) / 100.0
    elbow = 1.0 - np.minimum(0.7 * times_s, 1.4)
    names = ("left_elbow_joint", "right_elbow_joint")
    track = Track(times_s=times_s, joints_rad=np.column_stack([elbow, elbow]), names=names)
    async with connect(sys.argv[1], family="g1") as robot:
        await robot.play_track(track, force=True)

asyncio.run(run())
"""


@pytest.mark.slow
@pytest.mark.quiet  # it counts commands of a process
def test_the_arms_of_a_killed_program_are_released_softly() -> None:
    """In real time, with a program in a process of its own and SIGKILL."""

    async def story() -> None:
        async with rig("dds") as one:
            body, commands = Body(one), Commands(one)
            program = await asyncio.create_subprocess_exec(sys.executable, "-c", STREAMS, one.url)
            async with asyncio.timeout(30.0):
                while one.world.state().phase is not Phase.PLAYING:
                    await asyncio.sleep(0.05)
            await asyncio.sleep(2.5)  # the arms are up, and stay there
            assert commands.weights[-1] == 1.0
            body.forget()
            commands.weights.clear()
            program.kill()
            await program.wait()
            async with asyncio.timeout(10.0):
                while commands.weights[-1:] != [0.0] or one.world.state().phase is not Phase.NONE:
                    await asyncio.sleep(0.05)
            weights = commands.weights
            assert weights == sorted(weights, reverse=True)
            assert len(weights) > 200, "softly"
            assert body.peak_rad_s < SOFT_RAD_S
            rest = np.array(one.world.build.rest_rad)
            assert np.abs(one.world.body.setpoint_rad - rest).max() < 0.01
            commands.close()

    asyncio.run(story())


# ---- stopped, and refused ------------------------------------------------------------------------


def test_a_stop_ends_a_stream_without_asking_a_service() -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        commands = Commands(one)
        playing = robot.play_track(raised(), force=True, rate_hz=RATE_HZ)
        await playing.started()
        await asyncio.sleep(3.0)
        asked = client_of(robot, DdsClient).session
        before = next(asked._tokens)
        await robot.stop()
        assert next(asked._tokens) == before + 1, "no request was sent"
        await asyncio.sleep(0.1)
        assert 0.0 < commands.weights[-1] < 1.0
        assert (await playing).reason == "this program requested a stop"
        commands.close()

    tell(story)


@pytest.mark.parametrize("busy", ["arms", "stream"])
def test_nothing_is_streamed_to_busy_arms(busy: str) -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        client = client_of(robot, DdsClient)
        if busy == "arms":
            client.reports.note_arms(replace(client.reports.arms, id=-1))  # it records
        else:
            await client.ask(BeginStream())
        with pytest.raises(RefusedError) as refused:
            await client.ask(BeginStream())
        assert refused.value.code == Code.BUSY

    tell(story)


def test_commands_carry_the_machine_that_the_robot_reports() -> None:
    async def story(one: Rig, robot: G1, body: Body) -> None:
        client = client_of(robot, DdsClient)
        pose = ArmSetpoint((0.0,) * len(G1_29.streamed), 0.0)
        (command,) = client._encode_setpoints([pose], G1_29, ())
        expected = dds_lowlevel.encode_arm_command(
            pose.joints_rad, 0.0, build=G1_29, mode_machine=client.identity.machine
        )
        assert client.identity.machine > 0
        assert command.arms == expected

    tell(story)
