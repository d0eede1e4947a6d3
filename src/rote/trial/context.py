"""What the steps of a trial share: the robot, its tap, the recording and the measurements."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

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


class ActivitySpan(NamedTuple):
    """A period during which the arms had one activity, in seconds since the trial began."""

    activity: str
    begin_s: float
    end_s: float

    @property
    def duration_s(self) -> float:
        """How long the activity lasted."""
        return self.end_s - self.begin_s


@dataclass(slots=True)
class TrialContext:
    """State of one running trial."""

    robot: Robot
    tap: Tap
    recorder: TrialRecorder
    url: str
    wire: str
    note: Callable[[str], None]
    """Shows a message to the operator."""
    connect_another: Callable[[], AbstractAsyncContextManager[Robot]]
    """Connects a second client to the same robot."""
    measured: dict[str, Any] = field(default_factory=dict)
    """The measurements, most of them in sections; the section `robot` of the report."""
    timeline: list[TimelineMark] = field(default_factory=list)
    own_actions: set[str] = field(default_factory=set)
    """The trial's own actions that may be on the robot and have to be deleted."""
    saved_actions: set[str] = field(default_factory=set)
    """Own actions that the robot confirmed as stored."""
    arms_may_be_soft: bool = False
    """Whether the arms may be soft although the client is not teaching; a stop would not make them
    hold then.
    """

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

    # ---- observations ---------------------------------------------------------------------------

    def find_activity_spans(self, from_s: float) -> list[ActivitySpan]:
        """Return the activities of the arms since `from_s`, one after the other."""
        spans: list[ActivitySpan] = []
        for at_s, state in self.recorder.states:
            if at_s < from_s or not state.has_phase:
                continue
            activity = activity_of(state)
            if spans:  # an activity lasts until the next state
                spans[-1] = spans[-1]._replace(end_s=at_s)
            if not spans or spans[-1].activity != activity:
                spans.append(ActivitySpan(activity, at_s, at_s))
        return spans

    def find_first_request_s(self, api: str, from_s: float) -> float | None:
        """Return when a request was first sent since `from_s`; None if it was not."""
        return min(self._list_times(api, from_s, sent=True), default=None)

    def find_last_request_s(self, api: str, from_s: float) -> float | None:
        """Return when a request was last sent since `from_s`; None if it was not."""
        return max(self._list_times(api, from_s, sent=True), default=None)

    def find_first_answer_s(self, api: str, from_s: float) -> float | None:
        """Return when a request was first answered since `from_s`; None if it was not."""
        return min(self._list_times(api, from_s, sent=False), default=None)

    def _list_times(self, api: str, from_s: float, *, sent: bool) -> list[float]:
        """Return the times of the recorded requests (`sent`) or answers of an api."""
        return [
            message.at_s
            for message in self.recorder.conversation
            if message.sent is sent and message.api == api and message.at_s >= from_s
        ]

    async def wait_for_state(
        self, predicate: Callable[[RobotState], bool], limit_s: float
    ) -> float | None:
        """Wait for a matching state; return its arrival time, or None after `limit_s` seconds."""
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

    # ---- answers --------------------------------------------------------------------------------

    async def await_answer_code(self, request: Awaitable[object]) -> int | None:
        """Await a request; return 0 if accepted, the code of its refusal, or None if it failed."""
        try:
            await request
        except RefusedError as refused:
            return int(refused.code)
        except RoteError as error:
            self.note(str(error))
            return None
        return 0

    def add_answer_code(self, api: str, when: str, assumed: int, code: int | None) -> None:
        """Record the answer's code in a situation (`when`), and the code that rote assumes."""
        rows = self.measured.setdefault("refusals", [])
        rows.append({"api": api, "when": when, "assumed": assumed, "code": code})


def round_or_none(value: float | None, digits: int = 3) -> float | None:
    """Round a measurement for the report; None stays None."""
    return None if value is None else round(value, digits)
