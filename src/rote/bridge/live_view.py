"""Publishes one robot live to a feed: its states, its description and its status."""

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from rote.bridge import foxglove, meshes
from rote.bridge.description import PACKAGE, urdf
from rote.bridge.foxglove import FoxgloveFeed
from rote.bridge.ros_messages import encode_diagnostics, encode_string
from rote.bridge.telemetry import StateClock, describe_status, make_diagnostics
from rote.errors import DecodeError
from rote.findings import Finding, Severity
from rote.messages import RobotState
from rote.model.family import Build
from rote.motion.files.joint_state import Encoder
from rote.robot.robot import Robot

STATUS_S = 0.5
_LOG_LEVELS = {Severity.ERROR: 4, Severity.WARNING: 3, Severity.NOTE: 2}
"""The levels of `foxglove.Log`."""

ModelOf = Callable[[Build], Path | None]
"""Returns the file with the real shapes of a build; None if there is none."""
FindingsOf = Callable[[], Sequence[Finding]]


class LiveView:
    """Publishes one robot to a feed, from `open` to `close`."""

    def __init__(
        self,
        feed: FoxgloveFeed,
        robot: Robot,
        findings: FindingsOf,
        model_of: ModelOf,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        min_interval_s: float = 0.0,
    ) -> None:
        """`findings` returns the robot's current findings, `model_of` the file with the shapes of a
        build. States are published at intervals of at least `min_interval_s` seconds.
        """
        self.robot = robot
        self._feed = feed
        self._findings = findings
        self._model_of = model_of
        self._now_ns = now_ns
        self._min_interval_ns = int(min_interval_s * 1e9)
        self._published_ns = 0
        self._clock = StateClock()
        self._build: Build | None = None
        self._encoder = Encoder(())
        self._published_findings: tuple[Finding, ...] | None = None
        self._remove_listener: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Start publishing; the description is published before the first state."""
        self._publish_description()
        self._remove_listener = self.robot.on_state(self._on_state)
        self._publish_status()

    def close(self) -> None:
        """Stop publishing. Safe to call twice."""
        if self._remove_listener is not None:
            self._remove_listener()
            self._remove_listener = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_state(self, state: RobotState) -> None:
        """Publish a state, if there are clients."""
        if not self._feed.clients or not state.has_joints:
            return
        now_ns = self._now_ns()
        if now_ns - self._published_ns < self._min_interval_ns:
            return
        self._published_ns = now_ns
        if self.robot.build is not self._build:
            self._publish_description()
        stamp_ns = self._clock.stamp_ns(state, now_ns)
        payload = self._encoder.encode(stamp_ns, state.joints_rad, state.velocities_rad_s)
        self._feed.publish(foxglove.JOINTS, stamp_ns, payload)

    def _publish_description(self) -> None:
        """Publish the description of the robot; repeated when its build or its hands change."""
        build = self._build = self.robot.build
        self._encoder = Encoder(build.names)
        path = self._model_of(build)
        links: frozenset[str] = frozenset()
        if path is not None:
            try:
                links = meshes.read_links(path)
            except (OSError, DecodeError):
                path = None
        self._feed.assets = None if path is None else partial(_read_mesh, path, build.family)
        described = encode_string(urdf(build, links))
        self._feed.publish(foxglove.DESCRIPTION, self._now_ns(), described)

    def _publish_status(self) -> None:
        """Publish the status, the diagnostics and new findings; repeated every `STATUS_S`."""
        self._timer = asyncio.get_running_loop().call_later(STATUS_S, self._publish_status)
        if not self._feed.clients:
            return
        if self.robot.build is not self._build:
            self._publish_description()
        state, now_ns, found = self.robot.state, self._now_ns(), tuple(self._findings())
        lines = encode_diagnostics(now_ns, make_diagnostics(self.robot, state, found))
        self._feed.publish(foxglove.DIAGNOSTICS, now_ns, lines)
        if state is not None:
            status = json.dumps(describe_status(self.robot, state)).encode()
            self._feed.publish(foxglove.STATUS, now_ns, status)
        if found != self._published_findings:
            self._published_findings = found
            for finding in found:
                self._feed.publish(foxglove.FINDINGS, now_ns, _encode_log(finding, now_ns))


def _read_mesh(path: Path, family: str, uri: str) -> bytes:
    """Return the shapes of the link that a URI names; raises `KeyError` for any other URI."""
    start, end = f"{PACKAGE}/{family}/", ".stl"
    if not uri.startswith(start) or not uri.endswith(end):
        raise KeyError(uri)
    return meshes.read_stl(path, uri[len(start) : -len(end)])


def _encode_log(finding: Finding, now_ns: int) -> bytes:
    """Return a finding as a `foxglove.Log` message in JSON."""
    second, rest_ns = divmod(now_ns, 10**9)
    return json.dumps(
        {
            "timestamp": {"sec": second, "nsec": rest_ns},
            "level": _LOG_LEVELS[finding.severity],
            "message": f"{finding.message} {finding.remedy}".strip(),
            "name": f"rote.{finding.kind.value}",
            "file": "",
            "line": 0,
        }
    ).encode()
