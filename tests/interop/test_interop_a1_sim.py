"""Unitree's own library, from the PyPI wheel `unitree-legged-sdk`, drives the simulated robot.

The wheel holds the library for the Go1, unmodified. It runs in a process of its own, since it
prints and keeps its sockets' buffers for the whole process; so does the robot.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from interop.processes import LAUNCH, PEERS

FOLDER = PEERS / "unitree-legged-sdk"
PROBE = "from unitree_legged_sdk import robot_interface as sdk; sdk.HighCmd()"
BEGIN = """
import json, socket, sys, time
sys.path.insert(0, sys.argv[1])
from unitree_legged_sdk import robot_interface as sdk

port = int(sys.argv[2])
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    probe.bind(("127.0.0.1", 0))
    local = probe.getsockname()[1]

def run(udp, command, state, seconds, got):
    # As Unitree's examples do, every 2 ms.
    begin = time.monotonic()
    turn = 0
    while time.monotonic() - begin < seconds:
        verdict = udp.Recv()
        got[verdict] = got.get(verdict, 0) + 1
        udp.GetRecv(state)
        udp.SetSend(command)
        udp.Send()
        turn += 1
        time.sleep(max(0.0, begin + 0.002 * turn - time.monotonic()))
"""
WALK = """
udp = sdk.UDP(0xEE, local, "127.0.0.1", port)
command, state, got = sdk.HighCmd(), sdk.HighState(), {}
udp.InitCmdData(command)
run(udp, command, state, 0.3, got)
at = list(state.position)
command.mode, command.gaitType, command.velocity = 2, 1, [0.4, 0.0]
run(udp, command, state, 1.5, got)
speed, mode = state.velocity[0], state.mode
command.velocity, command.yawSpeed = [0.0, 0.0], 0.6
run(udp, command, state, 1.0, got)
turning = state.yawSpeed
command.mode, command.yawSpeed, command.euler, command.bodyHeight = 1, 0.0, [0.0, 0.2, 0.0], -0.04
run(udp, command, state, 1.0, got)
document = {
    "ahead": state.position[0] - at[0], "aside": state.position[1] - at[1], "speed": speed,
    "mode": mode, "turning": turning, "rpy": list(state.imu.rpy), "height": state.bodyHeight,
    "knee": state.motorState[2].q, "force": sum(state.footForce), "charge": state.bms.SOC,
    "got": got,
}
"""
SERVO = """
udp = sdk.UDP(0xFF, local, "127.0.0.1", port)
command, state, got = sdk.LowCmd(), sdk.LowState(), {}
udp.InitCmdData(command)
wanted = [0.0, 0.8, -1.5] * 4
motors = command.motorCmd
for motor, angle in zip(motors, wanted):
    motor.q, motor.dq, motor.Kp, motor.Kd, motor.tau = angle, 0.0, 80.0, 3.0, 0.0
command.motorCmd = motors
run(udp, command, state, 1.5, got)
document = {
    "q": [motor.q for motor in state.motorState][:12],
    "wanted": wanted,
    "torque": [motor.tauEst for motor in state.motorState][:12],
    "warm": state.motorState[0].temperature,
    "tick": state.tick,
    "force": sum(state.footForce),
    "got": got,
}
"""
END = """
print(json.dumps(document), file=sys.stderr)
"""


def why_not() -> str:
    """Return why Unitree's library is not to be had; nothing where it is."""
    if not FOLDER.exists():
        return f"Unitree's library is not in {FOLDER}; get it with: scripts/peers/clients"
    path = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); {PROBE}"
    tried = subprocess.run(
        [sys.executable, "-c", path], capture_output=True, text=True, check=False
    )
    return "" if tried.returncode == 0 else f"Unitree's library: {tried.stderr.strip()[-200:]}"


WHY_NOT = why_not()
pytestmark = pytest.mark.skipif(bool(WHY_NOT), reason=WHY_NOT)


@contextmanager
def robot(level: str, *options: str) -> Iterator[int]:
    """A simulated Go1 in a process of its own; the port of one level."""
    command = ["-m", "rote", "sim", "--a1", "127.0.0.1:0", "--dialect", "go1", "--json", *options]
    with subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *command], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
        port = next(urlsplit(url).port for url in ready["urls"] if url.endswith(level))
        assert port is not None
        yield port
        process.kill()


def drive(port: int, script: str) -> dict[str, Any]:
    """Let Unitree's library do something; what it saw comes on standard error, for it prints."""
    command = [sys.executable, "-c", BEGIN + script + END, str(FOLDER), str(port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    document: dict[str, Any] = json.loads(done.stderr.splitlines()[-1])
    return document


def test_the_makers_library_walks_turns_and_poses_the_simulated_robot() -> None:
    with robot("high") as port:
        seen = drive(port, WALK)
    assert seen["mode"] == 2
    assert seen["speed"] == pytest.approx(0.4, abs=0.02)
    # It sends by its own clock, on a machine that may be busy with something else.
    assert seen["ahead"] == pytest.approx(0.6, abs=0.15)
    assert seen["turning"] == pytest.approx(0.6, abs=0.02)
    assert seen["rpy"][2] == pytest.approx(0.6, abs=0.2)
    assert seen["rpy"][1] == pytest.approx(0.2, abs=0.03)
    assert seen["height"] == pytest.approx(0.24, abs=0.02)
    assert seen["force"] == pytest.approx(125, abs=25)
    assert -2.7 < seen["knee"] < -1.0
    assert seen["charge"] in (99, 100)
    # What it refused (-3) would be a checksum of ours that it does not hold for one.
    assert seen["got"].get("0", 0) > 30
    assert "-3" not in seen["got"]


def test_the_makers_library_holds_the_joints_of_the_simulated_robot() -> None:
    with robot("low") as port:
        seen = drive(port, SERVO)
    assert seen["q"] == pytest.approx(seen["wanted"], abs=0.15)
    assert all(torque > 1.0 for torque in seen["torque"][2::3])
    assert seen["warm"] >= 25
    assert seen["tick"] > 1_000_000
    assert seen["force"] == pytest.approx(125, abs=25)
    assert seen["got"].get("0", 0) > 30
    assert "-3" not in seen["got"]
