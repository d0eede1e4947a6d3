"""The status that pages show: the connection, the robot, its activity and the client in command."""

import asyncio
from contextlib import suppress
from dataclasses import asdict
from typing import cast

from rote.errors import RoteError
from rote.findings import Finding, worst_first
from rote.messages import Phase, RobotState
from rote.robot import preflight
from rote.robot.api_values import Actions, ModeReport
from rote.robot.robot import Robot
from rote.web.access.clients import Clients
from rote.web.schemas import robot as s
from rote.web.server.problems import finding_document, text_of, texts_of
from rote.web.services.actions import ActionService
from rote.web.services.activity import ActivityService, CutOff, PendantActivity
from rote.web.services.agents import AgentService
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.stop_sender import StopSender
from rote.web.services.takes import TakeService
from rote.web.services.teaching import TeachingService

# ---- findings ------------------------------------------------------------------------------------

_FINDINGS_S = 1.0


class RobotFindings:
    """What is wrong or unusual about the connected robot."""

    def __init__(self, connection: ConnectionKeeper, actions: ActionService) -> None:
        self._connection, self._actions = connection, actions
        self._controller: str | None = None
        self.inspected: list[Finding] = []
        """Preflight of a robot that stores no actions; otherwise findings from several states."""

    async def inspect_after_connect(self, robot: Robot) -> None:
        """Inspect a robot that was just connected, once its actions are known."""
        self.inspected = await robot.preflight() if "list" not in robot.abilities else []

    async def read_controller(self, robot: Robot) -> None:
        """Ask a robot that was just connected which controller is selected."""
        self._controller = await robot.controller()

    async def refresh_forever(self) -> None:
        """Update `inspected` once per second, without sending anything to the robot."""
        while True:
            await asyncio.sleep(_FINDINGS_S)
            robot = self._connection.connected
            if robot is None:
                continue
            inspect = robot.take_findings if "list" in robot.abilities else robot.preflight
            with suppress(RoteError, TimeoutError):
                found = await inspect()
                if robot is self._connection.connected:
                    self.inspected = found

    def list_findings(self) -> list[Finding]:
        """Return the preflight findings; nothing is sent to the robot."""
        robot = self._connection.connected
        return [] if robot is None else self.judge_state(robot, robot.state)

    def judge_state(self, robot: Robot, state: RobotState | None) -> list[Finding]:
        """Return the preflight findings of a robot in this state."""
        if "list" not in robot.abilities:
            return self.inspected
        known = Actions((), ()) if self._actions.known is None else self._actions.known
        found = preflight.find_problems(state, known, robot.build, self._controller)
        return worst_first([*found, *self.inspected])


# ---- the status ----------------------------------------------------------------------------------


class StatusService:
    """Collects the status from all services."""

    def __init__(
        self,
        *,
        connection: ConnectionKeeper,
        clients: Clients,
        stop_sender: StopSender,
        activities: ActivityService,
        teaching: TeachingService,
        actions: ActionService,
        findings: RobotFindings,
        agents: AgentService,
        takes: TakeService,
    ) -> None:
        self._connection, self._clients, self._stop_sender = connection, clients, stop_sender
        self._activities, self._teaching = activities, teaching
        self._actions, self._findings = actions, findings
        self._agents, self._takes = agents, takes
        self._loop = asyncio.get_running_loop()

    def make_change_key(self) -> tuple[object, ...]:
        """Return a value that changes whenever pages must get a new status at once."""
        state, activity = self._connection.state, self._activities.activity
        return (
            self._connection.report,
            (self._clients.commander, self._clients.locked, self._clients.handover),
            self._clients.changes,
            tuple(self._findings.inspected),
            self._make_proposal_key(),
            None if activity is None else (activity, activity.kind, activity.take is None),
            (self._teaching.paused, self._activities.return_in_s is None),
            None if state is None else (state.mode, state.phase, state.holding, state.faults),
            (self._stop_sender.unconfirmed, self._activities.soft_reason(), self._actions.changes),
            (self._takes.changes, self._teaching.storage_problem, tuple(self._takes.unsaved)),
        )

    def document(self, client: str | None) -> s.PendantStatus:
        """Return everything that a page shows as status."""
        return self.document_for(you=client is not None and client == self._clients.commander)

    def document_for(self, *, you: bool) -> s.PendantStatus:
        """Return the status for the client in command (`you`), or for the others."""
        state = self._connection.state
        robot = self._connection.connected
        findings = [] if robot is None else self._findings.judge_state(robot, state)
        wire, return_in_s = self._connection.wire, self._activities.return_in_s
        after_teaching = None if wire is None else wire.after_teaching
        soft, storage_problem = self._activities.soft_reason(), self._teaching.storage_problem
        report = self._connection.report
        return {
            "connection": {
                "state": report.state,
                "message": report.message,
                "remedy": report.remedy,
                "stage": report.stage,
                "texts": texts_of(report.message, report.remedy),
                "url": self._connection.url or None,
                "wire": None if wire is None else wire.scheme,
                "simulated": "hand" in self._connection.abilities
                or (wire is not None and wire.lives_here),
            },
            "mode": _describe_mode(robot, state),
            "build": None if robot is None else robot.build.name,
            "family": None if robot is None else robot.build.family,
            "title": None if robot is None else robot.build.title,
            "battery_percent": None if state is None else state.battery_percent,
            "temperatures_c": [] if state is None else [round(c, 1) for c in state.temperatures_c],
            "faults": [] if state is None else list(state.faults),
            "findings": [finding_document(finding) for finding in findings],
            "abilities": sorted(self._connection.abilities),
            "elsewhere": sorted(self._connection.abilities_at_other_levels),
            "activity": self._describe_activity(),
            "commander": self._clients.describe_command(you=you),
            "holding": state is not None and state.holding,
            "stops": self._activities.stops,
            "paused": self._teaching.paused,
            "return_in_s": None if return_in_s is None else round(return_in_s, 2),
            "return_s": None if after_teaching is None else after_teaching.return_s,
            "proposal": self._agents.document(),
            "unconfirmed_stop": self._describe_unconfirmed_stop(),
            "soft": None if soft is None else {"by": soft[0], "can_hold": soft[1]},
            "actions_changes": self._actions.changes,
            "takes_changes": self._takes.changes,
            "storage_problem": None
            if storage_problem is None
            else texts_of(storage_problem.text, storage_problem.remedy),
            "unsaved": [each.document() for each in self._takes.unsaved.values()],
        }

    def _describe_unconfirmed_stop(self) -> s.UnconfirmedStop | None:
        stop = self._stop_sender.unconfirmed
        if stop is None:
            return None
        since_s = round(self._loop.time() - stop.since_s, 2)
        return {"since_s": since_s, "message": stop.message, "text": text_of(stop.message)}

    def _make_proposal_key(self) -> tuple[object, ...]:
        """Return a value that changes with the proposal, but not with its remaining time."""
        proposal = self._agents.document()
        return () if proposal is None else (proposal["ticket"], proposal["state"])

    def _describe_activity(self) -> s.ActivityNow:
        robot, activity = self._connection.connected, self._activities.activity
        state = None if robot is None else robot.state
        phase = Phase.NONE if state is None else state.phase
        document: s.ActivityNow = {
            "kind": "idle",
            "name": "",
            "phase": cast("s.PhaseName", phase.name.lower()),
            "elapsed_s": 0.0,
            "duration_s": None,
            "fraction": 0.0,
            "round": 1,
            "samples": 0,
        }
        if activity is None:
            # What moves is another client's activity, or the return to rest after a teaching.
            if phase is not Phase.NONE:
                document["kind"] = "playing"
            if (found := self._activities.surviving_playback) is not None:
                self._add_surviving_playback(document, found)
            return document
        elapsed_s = activity.elapsed_s(self._loop.time())
        document["kind"], document["name"] = activity.kind, activity.name
        document["elapsed_s"], document["duration_s"] = round(elapsed_s, 2), activity.duration_s
        _add_progress(document, activity, elapsed_s)
        return document

    def _add_surviving_playback(self, document: s.ActivityNow, cut_off: CutOff) -> None:
        """Add the progress of a playback that continued while the connection was lost."""
        activity, now_s = cut_off.activity, self._loop.time()
        duration_s, fraction = activity.duration_s, cut_off.fraction
        if duration_s:
            fraction += (now_s - cut_off.at_s) / duration_s
        document["kind"], document["name"] = activity.kind, activity.name
        document["elapsed_s"] = round(activity.elapsed_s(now_s), 2)
        document["duration_s"] = duration_s
        document["fraction"], document["round"] = round(min(fraction, 1.0), 4), cut_off.round


def _describe_mode(robot: Robot | None, state: RobotState | None) -> s.ModeNow | None:
    """Return the mode of a robot; None if it reports none, or no state has arrived yet."""
    if robot is None or state is None or robot.family is None or "mode" not in robot.abilities:
        return None
    return cast("s.ModeNow", asdict(ModeReport.of(state.mode, robot.family.modes)))


def _add_progress(document: s.ActivityNow, activity: PendantActivity, elapsed_s: float) -> None:
    """Add how much of a playback was played, or of the maximum time of a teaching has elapsed."""
    progress = activity.halted
    if progress is None and activity.playing is not None:
        progress = activity.playing.progress
    if progress is not None:
        fraction, document["round"] = activity.in_round(progress)
        document["fraction"] = round(fraction, 4)
    elif activity.kind == "teaching" and activity.duration_s:
        document["fraction"] = round(min(elapsed_s / activity.duration_s, 1.0), 4)
        document["samples"] = activity.take.samples if activity.take else 0
