"""Runs `rote ros` and nodes of an independent RTPS implementation in one network; prints a report.

The nodes are rosless's, which knows nothing of rote: what it understands, ROS 2 does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import rosless as _rosless

rosless: Any = _rosless
DOMAIN = 7
ELBOW = "left_elbow_joint"


def within(seconds: float, found: Callable[[], Any]) -> Any:
    """Ask until something is found."""
    until_s = time.monotonic() + seconds
    while time.monotonic() < until_s:
        if result := found():
            return result
        time.sleep(0.05)
    return None


class Results:
    """What the bridge says became of requests."""

    def __init__(self, node: Any) -> None:
        self._heard = node.subscribe("/rote/result", "std_msgs/msg/String", reliability="reliable")

    def next(self) -> dict[str, Any]:
        message = self._heard.read(timeout=30.0)
        told: dict[str, Any] = {} if message is None else json.loads(message.data)
        return told


def point(rad: float, at_s: float) -> dict[str, Any]:
    time_ns = round(at_s * 1e9)
    at = {"sec": time_ns // 10**9, "nanosec": time_ns % 10**9}
    return {"positions": [rad], "time_from_start": at}


def main() -> None:
    """Watch, ask, be refused, and stop; print what happened."""
    command = [sys.executable, "-m", "rote", "ros", "--interface", "lo", "--domain", str(DOMAIN)]
    bridge = subprocess.Popen(
        [*command, "--json", "--robot", "sim://g1?store=:memory:"],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ,
    )
    report: dict[str, Any] = {}
    try:
        assert bridge.stdout is not None
        report["ready"] = json.loads(bridge.stdout.readline())
        _watch(report)
    finally:
        bridge.send_signal(signal.SIGINT)
        report["code"] = bridge.wait(30)
    print(json.dumps(report))


def _watch(report: dict[str, Any]) -> None:
    # ROS 2 has one octet in an empty message, as rosbags writes it; rosless has none by itself.
    rosless.register_type("std_msgs/msg/Empty", "uint8 structure_needs_at_least_one_member\n")
    node, other = rosless.Node(domain=DOMAIN), rosless.Node(domain=DOMAIN)
    graph = within(30.0, lambda: (g := node.graph()) and len(g.topics) >= 7 and g)
    assert graph, "nothing was discovered"
    report["topics"] = {each.name: each.type_name for each in graph.topics}
    report["services"] = {each.name: each.type_name for each in graph.services}
    results = Results(node)
    states = node.subscribe("/joint_states", "sensor_msgs/msg/JointState", reliability="reliable")
    state = states.read(timeout=30.0)
    report["state"] = [list(state.name), list(state.position), state.header.stamp.sec]
    late = other.subscribe(
        "/robot_description",
        "std_msgs/msg/String",
        reliability="reliable",
        durability="transient_local",
    )
    report["description"] = late.read(timeout=30.0).data
    lines = node.subscribe("/diagnostics", "diagnostic_msgs/msg/DiagnosticArray")
    report["diagnostics"] = [each.name for each in lines.read(timeout=30.0).status]
    kind = "trajectory_msgs/msg/JointTrajectory"
    ours, theirs = (each.advertise("/rote/joint_trajectory", kind) for each in (node, other))
    stops = other.advertise("/rote/stop", "std_msgs/msg/Empty")
    assert within(30.0, lambda: all(each.subscriber_count for each in (ours, theirs, stops)))
    time.sleep(0.5)
    for name, joint, points in (
        ("knee", "left_knee_joint", [point(0.1, 1.0)]),
        ("fast", ELBOW, [point(0.5, 0.01)]),
        ("backwards", ELBOW, [point(0.2, 1.0), point(0.3, 0.5)]),
        ("far", ELBOW, [point(5.0, 3.0)]),
    ):
        ours.send({"joint_names": [joint], "points": points})
        report[name] = results.next()
    ours.send({"joint_names": [ELBOW], "points": [point(0.3, 2.0), point(0.1, 20.0)]})
    report["begun"] = results.next()
    ours.send({"joint_names": [ELBOW], "points": [point(0.1, 1.0)]})
    report["second"] = results.next()
    moved = within(20.0, lambda: _elbow(states) > 0.25)
    report["moved"] = bool(moved)
    stops.send({})
    report["stopped"] = [results.next(), results.next()]
    theirs.send({"joint_names": [ELBOW], "points": [point(0.1, 1.0)]})
    report["other"] = results.next()


def _elbow(states: Any) -> float:
    state = states.read(timeout=5.0)
    return 0.0 if state is None else float(state.position[list(state.name).index(ELBOW)])


if __name__ == "__main__":
    main()
