"""What the steps of a trial share: the robot, its tap, the recording and the measurements."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol

from rote.errors import RefusedError, RoteError
from rote.messages import Phase, RobotState
from rote.robot.robot import Robot
from rote.transport.tap import Tap
from rote.trial.recorder import TrialRecorder, activity_of
from rote.trial.steps import TrialStep

OWN_NAME = "rote-trial"
"""The trial's own action; the names of all actions that a trial creates start with it."""


class StepImpossibleError(Exception):
    """A step cannot be done with this robot; the message gives the reason."""


class TrialGuide(Protocol):
    """Asks the operator before each step and shows progress."""

    async def ask(self, step: TrialStep) -> str:
        """Return `go`, `skip` or `end`."""

    def begin(self, step: TrialStep) -> None:
        """Show that a step begins."""

    def note(self, message: str) -> None:
        """Show a message during a step."""

    def end(self, step: TrialStep, result: str, note: str, seconds: float) -> None:
        """Show how a step ended."""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """One event of the time line."""

    at_s: float
    kind: str
    """`step`, `activity` or `note`."""
    text: str


@dataclass(slots=True)
class TrialContext:
    """State of one running trial."""

    robot: Robot
    tap: Tap
    recorder: TrialRecorder
    url: str
    wire: str
    note: Callable[[str], None]
    connect_another: Callable[[], AbstractAsyncContextManager[Robot]]
    """Connects a second client to the same robot."""
    measured: dict[str, Any] = field(default_factory=dict)
    timeline: list[TimelineMark] = field(default_factory=list)
    own_actions: set[str] = field(default_factory=set)
    """The trial's own actions that may be on the robot and have to be deleted."""
    saved_actions: set[str] = field(default_factory=set)
    """Own actions that the robot confirmed as stored."""
    arms_may_be_soft: bool = False
    """Whether arms may be soft although the client knows of no teaching: a stop would not make them
    hold."""

    @property
    def now_s(self) -> float:
        """Seconds since the trial began."""
        return self.recorder.now_s

    @property
    def has_services(self) -> bool:
        """Whether the wire uses the robot's services."""
        return self.wire in ("webrtc", "dds")

    def add_measured(self, section: str, **values: Any) -> None:
        """Add values to a section of the measurements."""
        self.measured.setdefault(section, {}).update(values)

    def mark(self, kind: str, text: str) -> None:
        """Add an event to the time line."""
        self.timeline.append(TimelineMark(round(self.now_s, 3), kind, text))

    # ---- what was observed ----------------------------------------------------------------------

    def activity_spans(self, from_s: float) -> list[tuple[str, float, float]]:
        """Return the activities of the arms since `from_s` as (activity, begin, end)."""
        found: list[tuple[str, float, float]] = []
        for at_s, state in self.recorder.states:
            if at_s < from_s or not state.phase_told:
                continue
            word = activity_of(state)
            if found and found[-1][0] == word:
                found[-1] = word, found[-1][1], at_s
            else:
                if found:
                    found[-1] = found[-1][0], found[-1][1], at_s
                found.append((word, at_s, at_s))
        return found

    def sent_at(self, api: str, from_s: float) -> float | None:
        """Return when a request was first sent since `from_s`."""
        kept = self.recorder.conversation
        return next((e.at_s for e in kept if e.sent and e.api == api and e.at_s >= from_s), None)

    def last_sent_at(self, api: str, from_s: float) -> float | None:
        """Return when a request was last sent since `from_s`."""
        kept = reversed(self.recorder.conversation)
        return next((e.at_s for e in kept if e.sent and e.api == api and e.at_s >= from_s), None)

    def answered_at(self, api: str, from_s: float) -> float | None:
        """Return when a request was first answered since `from_s`."""
        kept = self.recorder.conversation
        return next(
            (e.at_s for e in kept if not e.sent and e.api == api and e.at_s >= from_s), None
        )

    def last_code(self, api: str, from_s: float) -> int | None:
        """Return the code of the last answer to a request since `from_s`."""
        kept = reversed(self.recorder.conversation)
        return next(
            (e.code for e in kept if not e.sent and e.api == api and e.at_s >= from_s), None
        )

    async def wait_for_state(
        self, predicate: Callable[[RobotState], bool], limit_s: float
    ) -> float | None:
        """Wait for a state that matches; return when it came, or None after `limit_s`."""
        try:
            async with asyncio.timeout(limit_s):
                async for state in self.robot.states():
                    if predicate(state):
                        return self.now_s
        except TimeoutError:
            return None
        return None

    async def wait_until_idle(self, limit_s: float = 15.0) -> None:
        """Wait until the robot reports that its arms are idle, and a moment longer."""

        def is_idle(state: RobotState) -> bool:
            idle = state.phase is Phase.NONE and not state.recording and not state.holding
            return idle and not state.arms_soft

        await self.wait_for_state(is_idle, limit_s)
        await asyncio.sleep(0.3)

    # ---- refusals -------------------------------------------------------------------------------

    async def refusal_code(self, work: Awaitable[object]) -> int | None:
        """Return the code with which `work` is refused; 0 if accepted, None without an answer."""
        try:
            await work
        except RefusedError as refused:
            return int(refused.code)
        except RoteError as error:
            self.note(str(error))
            return None
        return 0

    def add_refusal(self, api: str, when: str, assumed: int, seen: int | None) -> None:
        """Record how a request was answered in one situation."""
        rows = self.measured.setdefault("refusals", [])
        rows.append({"api": api, "when": when, "assumed": assumed, "code": seen})


def rounded(seconds: float | None, digits: int = 3) -> float | None:
    """Round a time for the report."""
    return None if seconds is None else round(seconds, digits)
