"""One robot shown live: its states, its description and how it is, to all who watch a feed."""

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
from rote.bridge.telemetry import StateClock, diagnostics_of, status_of
from rote.errors import DecodeError
from rote.findings import Finding, Severity
from rote.messages import RobotState
from rote.model.family import Build
from rote.motion.files.joint_state import Encoder
from rote.robot.robot import Robot

STATUS_S = 0.5
_LOG_LEVELS = {Severity.ERROR: 4, Severity.WARNING: 3, Severity.NOTE: 2}

ModelOf = Callable[[Build], Path | None]
"""Returns the file with the real shapes of a build; None where there is none."""
FindingsOf = Callable[[], Sequence[Finding]]


class LiveView:
    """Tells a feed of one robot, from `open` to `close`."""

    def __init__(
        self,
        feed: FoxgloveFeed,
        robot: Robot,
        findings: FindingsOf,
        model_of: ModelOf,
        *,
        now_ns: Callable[[], int] = time.time_ns,
        least_s: float = 0.0,
    ) -> None:
        """States nearer to each other than `least_s` are left out."""
        self.robot = robot
        self._feed = feed
        self._findings = findings
        self._model_of = model_of
        self._now_ns = now_ns
        self._least_ns = int(least_s * 1e9)
        self._told_ns = 0
        self._clock = StateClock()
        self._build: Build | None = None
        self._encoder = Encoder(())
        self._found: tuple[Finding, ...] | None = None
        self._forget: Callable[[], None] | None = None
        self._timer: asyncio.TimerHandle | None = None

    def open(self) -> None:
        """Begin. Who joins before the first state can ask for the description and its meshes."""
        self._describe()
        self._forget = self.robot.on_state(self._see)
        self._look()

    def close(self) -> None:
        """End. Safe to call twice."""
        if self._forget is not None:
            self._forget()
            self._forget = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _see(self, state: RobotState) -> None:
        """Publish a state, if somebody watches."""
        if not self._feed.clients or not state.joints_told:
            return
        now_ns = self._now_ns()
        if now_ns - self._told_ns < self._least_ns:
            return
        self._told_ns = now_ns
        if self.robot.build is not self._build:
            self._describe()
        stamp_ns = self._clock.stamp_ns(state, now_ns)
        payload = self._encoder.encode(stamp_ns, state.joints_rad, state.velocities_rad_s)
        self._feed.publish(foxglove.JOINTS, stamp_ns, payload)

    def _describe(self) -> None:
        """Publish which robot it is; done again when hands are put on, or it turns out another."""
        build = self._build = self.robot.build
        self._encoder = Encoder(build.names)
        path = self._model_of(build)
        links: frozenset[str] = frozenset()
        if path is not None:
            try:
                links = meshes.links_of(path)
            except (OSError, DecodeError):
                path = None
        self._feed.assets = None if path is None else partial(_mesh, path, build.family)
        described = encode_string(urdf(build, links))
        self._feed.publish(foxglove.DESCRIPTION, self._now_ns(), described)

    def _look(self) -> None:
        """Publish how the robot is, now and then."""
        self._timer = asyncio.get_running_loop().call_later(STATUS_S, self._look)
        if not self._feed.clients:
            return
        if self.robot.build is not self._build:
            self._describe()
        state, now_ns, found = self.robot.state, self._now_ns(), tuple(self._findings())
        lines = encode_diagnostics(now_ns, diagnostics_of(self.robot, state, found))
        self._feed.publish(foxglove.DIAGNOSTICS, now_ns, lines)
        if state is not None:
            told = json.dumps(status_of(self.robot, state)).encode()
            self._feed.publish(foxglove.STATUS, now_ns, told)
        if found != self._found:
            self._found = found
            for each in found:
                self._feed.publish(foxglove.FINDINGS, now_ns, _log(each, now_ns))


def _mesh(path: Path, family: str, uri: str) -> bytes:
    """Return the shapes of a link by its URI; raises `KeyError` for any other."""
    start, end = f"{PACKAGE}/{family}/", ".stl"
    if not uri.startswith(start) or not uri.endswith(end):
        raise KeyError(uri)
    return meshes.stl_of(path, uri[len(start) : -len(end)])


def _log(finding: Finding, now_ns: int) -> bytes:
    """Return a finding as a line of a log."""
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
