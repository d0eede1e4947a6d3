"""The status that pages show: the connection, the robot, its activity and the client in command."""

import asyncio
from dataclasses import asdict
from typing import Any

from rote.messages import Phase, RobotState
from rote.robot.api_values import ModeReport
from rote.robot.robot import Robot
from rote.text import as_json
from rote.web.access.clients import Clients
from rote.web.server.problems import finding_document, texts_of
from rote.web.services.actions import ActionService
from rote.web.services.activity import ActivityService, CutOff, PendantActivity
from rote.web.services.agents import AgentService
from rote.web.services.connection_keeper import ConnectionKeeper
from rote.web.services.robot_findings import RobotFindings
from rote.web.services.stop_sender import StopSender
from rote.web.services.takes import TakeService
from rote.web.services.teaching import TeachingService


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

    def key(self) -> tuple[object, ...]:
        """Return a value that changes whenever pages must get a new status at once."""
        state, activity = self._connection.state, self._activities.activity
        return (
            self._connection.report,
            (self._clients.commander, self._clients.locked, self._clients.handover),
            self._clients.changes,
            tuple(self._findings.inspected),
            self._proposal_key(),
            None if activity is None else (activity, activity.kind, activity.take is None),
            (self._teaching.paused, self._activities.return_in_s is None),
            None if state is None else (state.mode, state.phase, state.holding, state.faults),
            (self._stop_sender.unconfirmed, self._activities.soft_reason(), self._actions.changes),
            (self._takes.changes, self._teaching.storage_problem, tuple(self._takes.unsaved)),
        )

    def document(self, client: str | None) -> dict[str, Any]:
        """Return everything that a page shows as status."""
        return self.document_for(you=client is not None and client == self._clients.commander)

    def document_for(self, *, you: bool) -> dict[str, Any]:
        """Return the status for the client in command (`you`), or for the others."""
        state = self._connection.state
        robot = self._connection.connected
        found = [] if robot is None else self._findings.judge_state(robot, state)
        wire, left_s = self._connection.wire, self._activities.return_in_s
        after = None if wire is None else wire.after_teaching
        soft, disk = self._activities.soft_reason(), self._teaching.storage_problem
        return {
            "connection": {
                **asdict(self._connection.report),
                "texts": texts_of(self._connection.report.message, self._connection.report.remedy),
                "url": self._connection.url or None,
                "wire": None if wire is None else wire.scheme,
                "simulated": "hand" in self._connection.abilities
                or (wire is not None and wire.lives_here),
            },
            "mode": _mode_document(robot, state),
            "build": None if robot is None else robot.build.name,
            "family": None if robot is None else robot.build.family,
            "title": None if robot is None else robot.build.title,
            "battery_percent": None if state is None else state.battery_percent,
            "temperatures_c": [] if state is None else [round(c, 1) for c in state.temperatures_c],
            "faults": [] if state is None else list(state.faults),
            "findings": [finding_document(one) for one in found],
            "abilities": sorted(self._connection.abilities),
            "elsewhere": sorted(self._connection.elsewhere),
            "activity": self._activity_document(),
            "commander": self._clients.describe_command(you=you),
            "holding": state is not None and state.holding,
            "stops": self._activities.stops,
            "paused": self._teaching.paused,
            "return_in_s": None if left_s is None else round(left_s, 2),
            "return_s": None if after is None else after.return_s,
            "proposal": self._agents.document(),
            "unconfirmed_stop": self._unconfirmed_stop(),
            "soft": None if soft is None else {"by": soft[0], "can_hold": soft[1]},
            "actions_changes": self._actions.changes,
            "takes_changes": self._takes.changes,
            "storage_problem": None if disk is None else texts_of(disk.text, disk.remedy),
            "unsaved": [each.document() for each in self._takes.unsaved.values()],
        }

    def _unconfirmed_stop(self) -> dict[str, Any] | None:
        stop = self._stop_sender.unconfirmed
        if stop is None:
            return None
        since_s = round(self._loop.time() - stop.since_s, 2)
        return {"since_s": since_s, "message": stop.message, "text": as_json(stop.message)}

    def _proposal_key(self) -> tuple[object, ...]:
        """Return what identifies a change of the proposal; the remaining time does not."""
        proposal = self._agents.document() or {}
        return (proposal.get("ticket"), proposal.get("state"))

    def _activity_document(self) -> dict[str, Any]:
        robot, activity = self._connection.connected, self._activities.activity
        state = None if robot is None else robot.state
        phase = Phase.NONE if state is None else state.phase
        document = {
            "kind": "idle",
            "name": "",
            "phase": phase.name.lower(),
            "elapsed_s": 0.0,
            "duration_s": None,
            "fraction": 0.0,
            "round": 1,
            "samples": 0,
        }
        if activity is None:
            # The activity of another client, or the return to rest after a teaching.
            if phase is not Phase.NONE:
                document["kind"] = "playing"
            found = self._activities.surviving_playback
            return document if found is None else document | self._surviving_document(found)
        elapsed_s = activity.elapsed_s(self._loop.time())
        document |= {"kind": activity.kind, "name": activity.name}
        document |= {"elapsed_s": round(elapsed_s, 2), "duration_s": activity.duration_s}
        return document | _progress_document(activity, elapsed_s)

    def _surviving_document(self, found: CutOff) -> dict[str, Any]:
        """Return the progress of a playback that continued while the connection was lost."""
        activity, now_s = found.activity, self._loop.time()
        length_s = activity.duration_s
        fraction, number = found.fraction, found.round
        if length_s:
            fraction += (now_s - found.at_s) / length_s
        return {
            "kind": activity.kind,
            "name": activity.name,
            "elapsed_s": round(activity.elapsed_s(now_s), 2),
            "duration_s": length_s,
            "fraction": round(min(fraction, 1.0), 4),
            "round": number,
        }


def _mode_document(robot: Robot | None, state: RobotState | None) -> dict[str, Any] | None:
    """Return the mode of a robot; None if it reports none, or no state has arrived yet."""
    if robot is None or state is None or robot.family is None or "mode" not in robot.abilities:
        return None
    return asdict(ModeReport.of(state.mode, robot.family.modes))


def _progress_document(activity: PendantActivity, elapsed_s: float) -> dict[str, Any]:
    progress = activity.halted
    if progress is None and activity.playing is not None:
        progress = activity.playing.progress
    if progress is not None:
        fraction, number = activity.in_round(progress)
        return {"fraction": round(fraction, 4), "round": number}
    if activity.kind == "teaching" and activity.duration_s:
        fraction = min(elapsed_s / activity.duration_s, 1.0)
        return {
            "fraction": round(fraction, 4),
            "samples": activity.take.samples if activity.take else 0,
        }
    return {}
