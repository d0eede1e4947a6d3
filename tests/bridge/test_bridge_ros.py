"""ROS 2 without ROS: names, types, refusals; and nodes of an independent RTPS implementation."""

import asyncio
import json
import os
import struct
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import rote
from interop.processes import Network, network_of_its_own
from rig import free_domain
from rote.bridge.ros2 import make_track
from rote.bridge.ros_messages import Trajectory, TrajectoryPoint
from rote.cli import main
from rote.errors import BadRequestError, RefusedError
from rote.messages import RobotState
from rote.model.g1 import G1_29
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World

pytest.importorskip("cyclonedds", reason="CycloneDDS has no package for this Python")
rosless = pytest.importorskip("rosless", reason="rosless has no package for this system")

from dds_descriptions import count_forbidden_kinds  # noqa: E402
from rote.bridge.ros2 import RosBridge, RosResult, check_domain, service_topics, topic_of  # noqa: E402
from rote.motion.files.library import Library  # noqa: E402
from rote.transport.dds import ros_types as kinds  # noqa: E402
from rote.transport.dds.participant import Bus, DdsTarget  # noqa: E402
from rote.wire.cdr_layout import HEADER  # noqa: E402

ROS_TYPES = (
    kinds.JOINT_STATE,
    kinds.DIAGNOSTICS,
    kinds.TRAJECTORY,
    kinds.EMPTY,
    *kinds.TRIGGER,
    *kinds.NAMED,
)
DRIVER = Path(__file__).with_name("ros_driver.py")
ELBOW = "left_elbow_joint"
REST = RobotState(
    joints_rad=tuple(G1_29.rest_rad), velocities_rad_s=(0.0,) * len(G1_29.joints), time_us=1
)


# ---- names and types ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["/joint_states", "/rote/joint_trajectory", "/a/b_2/c"])
def test_topics_are_named_as_another_implementation_names_them(name: str) -> None:
    assert topic_of(name) == rosless.mangle_topic(name)


def test_services_have_two_topics() -> None:
    assert service_topics("/rote/stop") == ("rq/rote/stopRequest", "rr/rote/stopReply")


@pytest.mark.parametrize("name", ["", "joint_states", "/", "/a//b", "/1a", "/a b", "/a/", "/é"])
def test_what_ros_does_not_allow_as_a_name_is_refused(name: str) -> None:
    with pytest.raises(BadRequestError, match="not a ROS 2 name"):
        topic_of(name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        (kinds.JOINT_STATE, "sensor_msgs/msg/JointState"),
        (kinds.DIAGNOSTICS, "diagnostic_msgs/msg/DiagnosticArray"),
        (kinds.TRAJECTORY, "trajectory_msgs/msg/JointTrajectory"),
        (kinds.EMPTY, "std_msgs/msg/Empty"),
    ],
)
def test_types_are_named_as_another_implementation_names_them(kind: Any, name: str) -> None:
    assert kind.__idl_typename__.replace(".", "::") == rosless.mangle_type(name)


@pytest.mark.parametrize("kind", ROS_TYPES, ids=lambda kind: kind.__name__)
def test_no_type_crashes_the_programs_of_a_robot_that_hears_of_it(kind: Any) -> None:
    assert count_forbidden_kinds(kind) == 0


# ---- domains ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("url", "interface", "domain"),
    [
        ("dds://eth0", "eth0", 0),
        ("dds://eth0", "lo", 0),
        ("dds://eth0?domain=5", "eth1", 5),
        ("webrtc://192.0.2.1", "eth0", 0),
        ("udp://192.0.2.1", "eth0", 0),
    ],
)
def test_the_robots_own_domain_is_refused(url: str, interface: str, domain: int) -> None:
    with pytest.raises(BadRequestError, match="domain"):
        check_domain(url, interface, domain)


@pytest.mark.parametrize(
    ("url", "interface", "domain"),
    [("dds://eth0", "eth0", 1), ("sim://g1", "eth0", 0), ("webrtc://192.0.2.1", "lo", 0)],
)
def test_other_domains_are_fine(url: str, interface: str, domain: int) -> None:
    check_domain(url, interface, domain)


def test_the_command_refuses_the_robots_domain_before_it_connects(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["ros", "--robot", "dds://lo", "--domain", "0"]) == 2
    assert "the robot itself uses domain 0" in capsys.readouterr().err


# ---- trajectories -------------------------------------------------------------------------------


def trajectory(*points: tuple[float, float], name: str = ELBOW) -> Trajectory:
    made = tuple(TrajectoryPoint((rad,), at_s) for rad, at_s in points)
    return Trajectory((name,), made, 0)


def test_a_trajectory_leads_from_where_the_robot_is_through_its_points() -> None:
    column = G1_29.names.index(ELBOW)
    track = make_track(trajectory((0.3, 1.0), (0.1, 2.5)), G1_29, REST)
    assert track.times_s[0] == 0.0
    assert track.joints_rad[0, 0] == REST.joints_rad[column]
    assert track.times_s[-1] == 2.5
    for at_s, rad in ((1.0, 0.3), (1.75, 0.2), (2.5, 0.1)):
        assert np.interp(at_s, track.times_s, track.joints_rad[:, 0]) == pytest.approx(rad)
    begun = make_track(trajectory((0.3, 0.0), (0.1, 1.0)), G1_29, None)
    assert begun.joints_rad[0, 0] == 0.3


@pytest.mark.parametrize(
    "wrong",
    [
        trajectory(),
        trajectory((0.3, 0.0)),
        trajectory((0.3, 1.0), (0.2, 1.0)),
        trajectory((0.3, -1.0), (0.2, 1.0)),
        trajectory((float("nan"), 1.0)),
        trajectory((0.3, float("inf"))),
        trajectory((0.3, 1000.0)),
        trajectory((0.3, 1.0), name="left_knee_joint"),
        trajectory((0.3, 1.0), name="nose"),
        Trajectory((ELBOW, ELBOW), (TrajectoryPoint((0.1, 0.1), 1.0),), 0),
        Trajectory((ELBOW,), (TrajectoryPoint((0.1, 0.1), 1.0),), 0),
        Trajectory((), (), 0),
    ],
)
def test_a_trajectory_that_cannot_be_played_is_refused(wrong: Trajectory) -> None:
    with pytest.raises(BadRequestError):
        make_track(wrong, G1_29, REST)


def test_a_trajectory_begins_nowhere_while_the_robot_does_not_tell_its_joints() -> None:
    untold = replace(REST, has_joints=False)
    few = replace(REST, joints_rad=REST.joints_rad[:3])
    for state in (None, untold, few):
        with pytest.raises(BadRequestError, match="has not reported"):
            make_track(trajectory((0.3, 1.0)), G1_29, state)


def test_a_stop_while_a_motion_is_read_keeps_the_robot_still(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save(make_track(trajectory((0.9, 2.0)), G1_29, REST), "bend")

    async def work() -> None:
        async with rote.connect("sim://g1?store=:memory:") as robot:
            bridge = RosBridge(robot, DdsTarget("lo", free_domain("stops")), library)
            name = HEADER + struct.pack("<I", 5) + b"bend\0"
            try:
                playing = asyncio.create_task(bridge.play_named("a node", name))
                await asyncio.sleep(0)  # it is read now, by another thread
                assert await bridge.stop_robot() == "stopped"
                with pytest.raises(RefusedError):
                    await playing
                assert await bridge.play_named("a node", name), "the next one is played"
            finally:
                await bridge.close()

    asyncio.run(work())


# ---- services, as CycloneDDS's middleware asks them ---------------------------------------------


def test_services_answer_who_asked_and_refuse_what_cannot_be(tmp_path: Path) -> None:
    async def work() -> None:
        told: list[RosResult] = []
        async with rote.connect("sim://g1?store=:memory:") as robot:
            target = DdsTarget("lo", free_domain("services"))
            bridge = RosBridge(robot, target, Library(tmp_path), on_result=told.append)
            bridge.open()
            client = Bus(target)
            try:
                stop = await _asked(client, "/rote/stop", kinds.TRIGGER, b"\0")
                assert (stop[0], stop[2]) == ((7, 41), "stopped")
                assert stop[1]
                listed = await _asked(client, "/rote/list", kinds.TRIGGER, b"\0")
                assert json.loads(listed[2]) == {"takes": [], "actions": []}
                name = b"none\0"
                play = await _asked(
                    client, "/rote/play", kinds.NAMED, struct.pack("<I", len(name)) + name
                )
                assert not play[1]
                assert "none" in play[2]
                assert [each.success for each in told] == [True, True, False]
            finally:
                client.close()
                await bridge.close()

    asyncio.run(work())


async def _asked(
    bus: Bus, name: str, types: tuple[Any, Any], body: bytes
) -> tuple[tuple[int, int], bool, str]:
    """Ask a service, and return to whom it answers, its success and its message."""
    request, reply = service_topics(name)
    heard: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
    bus.reader(reply, types[1], heard.set_result, depth=5)
    outlet = bus.writer(request, types[0])
    async with asyncio.timeout(30.0):
        while not outlet.matched:
            await asyncio.sleep(0.02)
        await asyncio.sleep(0.3)
        outlet.write(HEADER + struct.pack("<Qq", 7, 41) + body)
        data = await heard
    client, number, success = struct.unpack_from("<Qq?", data, 4)
    (size,) = struct.unpack_from("<I", data, 24)
    return (client, number), success, data[28 : 28 + size - 1].decode()


# ---- nodes of others ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What nodes of rosless have seen of `rote ros`, in a network of their own."""
    with network_of_its_own() as network:
        if not isinstance(network, Network):
            pytest.skip(network)
        route = "ip link set lo multicast on && ip route add 224.0.0.0/4 dev lo"
        subprocess.run([*network.enter, "sh", "-c", route], check=True, timeout=20)
        done = subprocess.run(
            [*network.enter, sys.executable, str(DRIVER)],
            env={**os.environ, "ROTE_HOME": str(tmp_path_factory.mktemp("home"))},
            capture_output=True,
            text=True,
            timeout=110,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def test_a_node_of_another_implementation_finds_the_robot_and_reads_it(
    report: dict[str, Any],
) -> None:
    assert (
        report["topics"]
        | {
            "/joint_states": "sensor_msgs/msg/JointState",
            "/robot_description": "std_msgs/msg/String",
            "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray",
            "/rote/joint_trajectory": "trajectory_msgs/msg/JointTrajectory",
        }
        == report["topics"]
    )
    assert report["services"]["/rote/stopRequest"] == "std_srvs/srv/Trigger_Request"
    names, positions, second = report["state"]
    assert tuple(names) == G1_29.names
    assert positions == pytest.approx(G1_29.rest_rad, abs=0.02)
    assert second > 1_700_000_000
    assert report["description"].startswith("<?xml")
    assert "robot" in report["diagnostics"]


def test_what_a_node_asks_for_is_checked_before_anything_moves(report: dict[str, Any]) -> None:
    for name, words in (
        ("knee", "does not play the joint left_knee_joint"),
        ("fast", "rad/s"),
        ("backwards", "must be later than the point before"),
        ("far", "left_elbow_joint"),
    ):
        assert report[name]["success"] is False, report[name]
        assert words in report[name]["message"], report[name]


def test_one_motion_and_one_commander_at_a_time_and_anybody_stops(report: dict[str, Any]) -> None:
    assert report["begun"]["success"], report["begun"]
    assert "is playing" in report["second"]["message"]
    assert report["moved"]
    assert {each["asked"] for each in report["stopped"]} == {"/rote/stop", "motion"}
    assert "another node commands the robot" in report["other"]["message"]
    assert report["code"] in {0, 130}


# ---- all states ---------------------------------------------------------------------------------


def test_every_state_of_a_robot_on_dds_is_told_where_somebody_wants_them() -> None:
    async def rate_hz(url: str, *, every_state: bool) -> float:
        """Return how many states there are in a second of the robot's own clock."""
        times_us: list[int] = []
        async with rote.connect(url, every_state=every_state) as robot:
            async for state in robot.states():
                times_us.append(state.time_us)
                if times_us[-1] - times_us[0] > 500_000:
                    break
        return (len(times_us) - 1) / (times_us[-1] - times_us[0]) * 1e6

    async def work() -> None:
        simulator = Simulator(World(Store(":memory:")))
        domain = free_domain("every-state")
        try:
            await simulator.serve_dds("lo", domain, latency=False)
            url = f"dds://lo?domain={domain}"
            thinned = await rate_hz(url, every_state=False)
            assert await rate_hz(url, every_state=True) > 2 * thinned
            assert thinned < 110
        finally:
            await simulator.close()

    asyncio.run(work())
