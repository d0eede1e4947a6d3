"""The tools of an agent: inspect, check, simulate, edit, propose and stop.

These tools never move a real robot themselves: they propose motions to a pendant that a person has
started, and the person approves each in its page. Without a pendant, everything is simulated in
this process.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rote.bridge.pendant_client import PendantClient
from rote.bridge.tickets import TICKET_S, motion_digest
from rote.connection import connect
from rote.errors import BadRequestError, NotApprovedError
from rote.findings import Finding
from rote.messages import RobotState
from rote.motion.check.report import CheckReport
from rote.motion.edit.steps import Step, apply, other_take_names
from rote.motion.edit.table import EDITS, SEVERAL, Parameter
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.motion.track_build import build_of, family_of
from rote.robot.robot import Robot
from rote.robot.streamed_motion import check_at_speed
from rote.transport.wires import EMBEDDED, wire_of

_POLL_S = 0.5
"""Interval at which the state of a proposal or of a motion is requested from the pendant."""
_MAX_TAKES = 200
_MAX_STEPS = 100
_MOVED_RAD = 0.0175
"""A joint counts as moved if its range is larger than this: one degree."""

ReportProgress = Callable[[float, float, str], Awaitable[None]]
"""Called with the progress: the amount done, the total, and a description."""
Document = dict[str, Any]


async def _ignore_progress(_done: float, _all: float, _what: str) -> None:
    """The default of `report_progress`."""


def check_simulated(url: str) -> None:
    """Raise `BadRequestError` for a robot that is not simulated in this process."""
    if not wire_of(url).lives_here:
        raise BadRequestError(
            f"an agent cannot connect to {url} directly",
            "Ask a person to start the pendant for that robot with access for agents, and use its "
            "watching link.",
        )


@dataclass(slots=True)
class _Movement:
    """The ranges and peak speeds of a robot's joints during a playback."""

    names: tuple[str, ...]
    lowest: list[float] = field(default_factory=list)
    highest: list[float] = field(default_factory=list)
    peak_rad_s: list[float] = field(default_factory=list)

    def add_state(self, state: RobotState) -> None:
        """Extend the ranges and peak speeds by one state."""
        angles, speeds = state.joints_rad, [abs(speed) for speed in state.velocities_rad_s]
        if not self.lowest:
            self.lowest, self.highest = list(angles), list(angles)
            self.peak_rad_s = speeds or [0.0] * len(angles)
            return
        self.lowest = [min(pair) for pair in zip(self.lowest, angles, strict=True)]
        self.highest = [max(pair) for pair in zip(self.highest, angles, strict=True)]
        if speeds:
            self.peak_rad_s = [max(pair) for pair in zip(self.peak_rad_s, speeds, strict=True)]

    def describe_moved_joints(self) -> Document:
        """Return the range and peak speed of each joint that moved by more than a degree."""
        rows = zip(self.names, self.lowest, self.highest, self.peak_rad_s, strict=False)
        return {
            name: {
                "min_rad": round(low, 4),
                "max_rad": round(high, 4),
                "peak_rad_s": round(speed, 3),
            }
            for name, low, high, speed in rows
            if high - low > _MOVED_RAD
        }


class AgentTools:
    """The tools of one agent, for the takes on this computer and one robot."""

    def __init__(
        self, library: Library, *, robot: str = EMBEDDED, pendant: PendantClient | None = None
    ) -> None:
        """`robot` is the URL of the simulated robot that is used without a pendant."""
        check_simulated(robot)
        self._library = library
        self._url = robot
        self._pendant = pendant
        self._stack = AsyncExitStack()
        self._robot: Robot | None = None
        self._moving: set[Robot] = set()
        """Simulated robots on which a motion is playing."""
        self._opening = asyncio.Lock()

    async def close(self) -> None:
        """Stop all motions, and disconnect from the simulated robot."""
        await self._stop_simulated()
        await self._stack.aclose()
        if self._pendant is not None:
            await self._pendant.close()

    # ---- inspecting -----------------------------------------------------------------------------

    async def inspect(self, what: str = "robot", take: str | None = None) -> Document:
        """Describe `take` if it is given; otherwise `what`: "robot", "takes" or "edits"."""
        if take is not None:
            return await asyncio.to_thread(self._describe_take, take)
        if what == "takes":
            return await asyncio.to_thread(self._list_takes)
        if what == "edits":
            return {"edits": _list_edits()}
        if self._pendant is not None:
            return await self._inspect_pendant(self._pendant)
        robot = await self._open_simulated_robot()
        state = robot.state
        return {
            "robot": robot.url,
            "build": robot.build.name,
            "title": robot.build.title,
            "simulated": True,
            "approval": "not needed: this robot is simulated",
            "findings": [_encode_finding(finding) for finding in await robot.preflight()],
            "playing": state is not None and state.playing,
            "joints_rad": {} if state is None else _encode_pose(robot, state),
        }

    async def _inspect_pendant(self, pendant: PendantClient) -> Document:
        status = await pendant.get("/status")
        connection = status.get("connection") or {}
        copied = ("build", "title", "mode", "battery_percent", "faults", "activity", "proposal")
        findings = [
            {key: finding.get(key) for key in ("severity", "message", "remedy")}
            for finding in status.get("findings") or []
        ]
        return {
            "robot": connection.get("url"),
            "connection": connection.get("state"),
            "simulated": bool(connection.get("simulated")),
            "approval": f"a person holds a button in the pendant at {pendant.url}, within "
            f"{TICKET_S:.0f} s of each proposal",
            "findings": findings,
            **{key: status.get(key) for key in copied},
        }

    def _list_takes(self) -> Document:
        entries = self._library.list()
        return {
            "takes": [
                {
                    "name": entry.name,
                    "version": entry.version,
                    "seconds": round(entry.duration_s, 3),
                    "robot": entry.variant,
                    "tags": list(entry.tags),
                    "problem": entry.problem,
                }
                for entry in entries[:_MAX_TAKES]
            ],
            "left_out": max(0, len(entries) - _MAX_TAKES),
        }

    def _describe_take(self, name: str) -> Document:
        track, version = self._load_take(name, None)
        build = build_of(track)
        ranges_rad = np.ptp(track.joints_rad, axis=0) if len(track) else np.zeros(len(track.names))
        return {
            "name": name,
            "version": version,
            "versions": list(self._library.versions(name)),
            "seconds": round(track.duration_s, 3),
            "samples": len(track),
            "robot": track.variant if build is None else build.title,
            "source": track.source,
            "history": list(track.history),
            "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in track.marks],
            "motion": motion_digest(track),
            "joints": {
                joint: {
                    "min_rad": round(float(track.joints_rad[:, column].min()), 4),
                    "max_rad": round(float(track.joints_rad[:, column].max()), 4),
                }
                for column, joint in enumerate(track.names)
                if ranges_rad[column] > _MOVED_RAD
            },
        }

    # ---- checking and simulating ----------------------------------------------------------------

    async def check(self, take: str, version: int | None = None, speed: float = 1.0) -> Document:
        """Return the findings about playing a take at that speed; nothing moves."""
        track, version = await asyncio.to_thread(self._load_take, take, version)
        report = await asyncio.to_thread(check_at_speed, track, speed)
        return {
            "take": take,
            "version": version,
            "speed": speed,
            "ok": _may_play(report, track),
            "findings": [_encode_finding(finding) for finding in report.findings],
            "motion": motion_digest(track),
        }

    async def simulate(
        self,
        take: str,
        version: int | None = None,
        speed: float = 1.0,
        report_progress: ReportProgress = _ignore_progress,
    ) -> Document:
        """Play a take on a new simulated robot of the take's build; return what moved."""
        track, version = await asyncio.to_thread(self._load_take, take, version)
        build = build_of(track)
        name = "g1" if build is None else build.name
        async with connect(f"sim://{name}?store=:memory:") as robot:
            played = await self._play_track(robot, track, speed, report_progress)
        return {"take": take, "version": version, "speed": speed, "robot": f"sim://{name}"} | played

    # ---- editing --------------------------------------------------------------------------------

    async def edit(self, take: str, steps: list[Document], version: int | None = None) -> Document:
        """Edit a take and save the result as its newest version; the older ones stay."""
        if not 1 <= len(steps) <= _MAX_STEPS:
            raise BadRequestError(
                f"an edit cannot have {len(steps)} steps", f"Give 1 to {_MAX_STEPS} steps."
            )
        return await asyncio.to_thread(self._apply_edits, take, steps, version)

    def _apply_edits(self, take: str, steps: Sequence[Step], version: int | None) -> Document:
        """Edit a take, save and check the result, and return the new version with the findings."""
        for number, step in enumerate(steps, start=1):
            if not isinstance(step.get("op"), str):
                raise BadRequestError(
                    f"step {number} has no `op`", f"It is one of: {', '.join(EDITS)}."
                )
        track, version = self._load_take(take, version)
        others = {
            name: self._load_take(name, None)[0]
            for step in steps
            for name in other_take_names(step)
        }
        edited = apply(track, steps, others)
        entry = self._library.save(edited, take)
        report = check_at_speed(edited)
        return {
            "take": take,
            "edited_version": version,
            "version": entry.version,
            "seconds": round(edited.duration_s, 3),
            "motion": motion_digest(edited),
            "ok": _may_play(report, edited),
            "findings": [_encode_finding(finding) for finding in report.findings],
        }

    # ---- moving ---------------------------------------------------------------------------------

    async def propose(
        self,
        take: str,
        version: int | None = None,
        speed: float = 1.0,
        report_progress: ReportProgress = _ignore_progress,
    ) -> Document:
        """Play a take: at once on the simulated robot, otherwise after a person has approved it in
        the pendant.
        """
        track, version = await asyncio.to_thread(self._load_take, take, version)
        if self._pendant is not None:
            digest = motion_digest(track)
            motion = {"take": take, "version": version, "speed": speed, "motion": digest}
            return await self._play_with_approval(self._pendant, motion, report_progress)
        robot = await self._open_simulated_robot()
        played = await self._play_track(robot, track, speed, report_progress)
        return {"take": take, "version": version, "speed": speed, "robot": robot.url} | played

    async def _play_with_approval(
        self, pendant: PendantClient, motion: Document, report_progress: ReportProgress
    ) -> Document:
        """Propose a motion, wait for a person's approval, play it, and return the result."""
        clock = asyncio.get_running_loop().time
        proposal = await pendant.post("/agent/propose", **motion)
        began_s, ticket = clock(), str(proposal["ticket"])
        while proposal["state"] in {"waiting", "held"}:
            await report_progress(
                min(clock() - began_s, TICKET_S),
                TICKET_S,
                f"a person has to hold the button in the pendant at {pendant.url}",
            )
            await asyncio.sleep(_POLL_S)
            proposal = await pendant.get(f"/agent/ticket/{ticket}")
        if proposal["state"] != "approved":
            raise NotApprovedError(
                f"no person approved this motion: the proposal is {proposal['state']}",
                "Nothing has moved.",
            )
        await pendant.post("/agent/begin", ticket=ticket, **motion)
        while True:
            ended = (await pendant.get(f"/agent/ticket/{ticket}"))["ended"]
            if ended is not None:
                break
            activity = (await pendant.get("/status"))["activity"]
            await report_progress(float(activity["fraction"]), 1.0, f"playing {motion['take']}")
            await asyncio.sleep(_POLL_S)
        return {
            **motion,
            "robot": proposal["robot"],
            "build": proposal["build"],
            "played": ended["completed"],
            "reason": ended["reason"],
        }

    async def stop(self) -> Document:
        """Stop all motions at once: of the pendant's robot and of simulated robots."""
        if self._pendant is None:
            return {"stopped": await self._stop_simulated()}
        answer, simulated = await asyncio.gather(
            self._pendant.post("/stop"), self._stop_simulated(), return_exceptions=True
        )
        if isinstance(answer, BaseException):
            raise answer
        if isinstance(simulated, BaseException):
            raise simulated
        return {"stopped": answer.get("stopped"), "message": answer.get("message")}

    async def _stop_simulated(self) -> bool:
        """Stop all simulated robots; return whether there are any."""
        robots = set(self._moving)
        if self._robot is not None:
            robots.add(self._robot)
        results = await asyncio.gather(*(robot.stop() for robot in robots), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        return bool(robots)

    # ---- helpers --------------------------------------------------------------------------------

    def _load_take(self, name: str, version: int | None) -> tuple[Track, int]:
        """Return a version of a take, by default the newest, and the version's number."""
        versions = self._library.versions(name)
        if not versions:
            raise BadRequestError(
                f"there is no take {name!r}", "List the takes to see their names."
            )
        version = versions[-1] if version is None else version
        return self._library.load(name, version), version

    async def _open_simulated_robot(self) -> Robot:
        async with self._opening:
            if self._robot is None:
                self._robot = await self._stack.enter_async_context(connect(self._url))
            return self._robot

    async def _play_track(
        self, robot: Robot, track: Track, speed: float, report_progress: ReportProgress
    ) -> Document:
        """Play a track on a simulated robot; return how it ended, and what moved."""
        if robot in self._moving:
            raise BadRequestError(
                "the simulated robot is busy", "Wait until its motion ends, or stop it."
            )
        movement = _Movement(robot.build.names)
        self._moving.add(robot)
        remove_listener = robot.on_state(movement.add_state)
        try:
            playing = robot.play_track(track, speed=speed)
            async for progress in playing:
                await report_progress(progress.fraction, 1.0, "playing on the simulated robot")
            report = await playing
        finally:
            remove_listener()
            self._moving.discard(robot)
        return {
            "completed": report.completed,
            "reason": report.reason,
            "seconds": round(report.seconds, 3),
            "joints": movement.describe_moved_joints(),
        }


def _may_play(report: CheckReport, track: Track) -> bool:
    """Whether a robot may play the track without `force`: no errors, and no serious warnings."""
    return report.ok and not report.needs_force(family_of(track))


def _encode_finding(finding: Finding) -> Document:
    """Return a finding as JSON, without empty fields."""
    document = finding.as_json()
    return {key: value for key, value in document.items() if value not in (None, "", [])}


def _encode_pose(robot: Robot, state: RobotState) -> Document:
    return {
        name: round(value, 4)
        for name, value in zip(robot.build.names, state.joints_rad, strict=False)
    }


def _list_edits() -> list[Document]:
    """Return the table of edits with their names and parameters."""
    return [
        {
            "op": edit.name,
            "summary": edit.summary,
            **({"others": "names of takes"} if edit.tracks == SEVERAL else {}),
            **({"other": "the name of a take"} if edit.tracks == 2 else {}),
            "parameters": {
                parameter.name: _describe_parameter(parameter) for parameter in edit.parameters
            },
        }
        for edit in EDITS.values()
    ]


def _describe_parameter(parameter: Parameter) -> str:
    required = ", required" if parameter.required else ""
    return f"{parameter.kind.value}{required}: {parameter.help}"
