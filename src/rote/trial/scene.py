"""What the steps of a trial work with: the robot, its tap, what was recorded and measured."""

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

OWN = "rote-trial"
"""How the names of all actions begin that a trial makes."""


class StepImpossibleError(Exception):
    """A step cannot be done with this robot; its text says why."""


class TrialGuide(Protocol):
    """Who asks the person, and shows what happens."""

    async def ask(self, step: TrialStep) -> str:
        """Return `go`, `skip` or `end`."""

    def begin(self, step: TrialStep) -> None:
        """Show that a step begins."""

    def note(self, message: str) -> None:
        """Show what happens within a step."""

    def end(self, step: TrialStep, result: str, note: str, seconds: float) -> None:
        """Show how a step ended."""


@dataclass(frozen=True, slots=True)
class TimelineMark:
    """Something that happened."""

    at_s: float
    kind: str
    """`step`, `activity` or `note`."""
    text: str


@dataclass(slots=True)
class Scene:
    """One trial that is going on."""

    robot: Robot
    tap: Tap
    recorder: TrialRecorder
    url: str
    wire: str
    note: Callable[[str], None]
    another: Callable[[], AbstractAsyncContextManager[Robot]]
    """Connects a second client to the same robot."""
    measured: dict[str, Any] = field(default_factory=dict)
    timeline: list[TimelineMark] = field(default_factory=list)
    own: set[str] = field(default_factory=set)
    """The trial's own actions that may be on the robot: what has to be deleted."""
    saved: set[str] = field(default_factory=set)
    """Those of which the robot confirmed that it stored them."""
    soft: bool = False
    """Whether arms may be soft that a stop does not make hold: the client knows of no teaching."""

    @property
    def now_s(self) -> float:
        """How long the trial has run."""
        return self.recorder.now_s

    @property
    def has_services(self) -> bool:
        """Whether the robot is asked by its services."""
        return self.wire in ("webrtc", "dds")

    def put(self, section: str, **values: Any) -> None:
        """Add to what was measured."""
        self.measured.setdefault(section, {}).update(values)

    def mark(self, kind: str, text: str) -> None:
        """Add to the time line."""
        self.timeline.append(TimelineMark(round(self.now_s, 3), kind, text))

    # ---- what was seen --------------------------------------------------------------------------

    def spans(self, from_s: float) -> list[tuple[str, float, float]]:
        """Return what the arms did since then: the word, its begin and its end."""
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
        """Return when a request was first sent since then."""
        kept = self.recorder.conversation
        return next((e.at_s for e in kept if e.sent and e.api == api and e.at_s >= from_s), None)

    def last_sent_at(self, api: str, from_s: float) -> float | None:
        """Return when a request was last sent since then."""
        kept = reversed(self.recorder.conversation)
        return next((e.at_s for e in kept if e.sent and e.api == api and e.at_s >= from_s), None)

    def answered_at(self, api: str, from_s: float) -> float | None:
        """Return when a request was first answered since then."""
        kept = self.recorder.conversation
        return next(
            (e.at_s for e in kept if not e.sent and e.api == api and e.at_s >= from_s), None
        )

    def last_code(self, api: str, from_s: float) -> int | None:
        """Return the code of the last answer to a request since then."""
        kept = reversed(self.recorder.conversation)
        return next(
            (e.code for e in kept if not e.sent and e.api == api and e.at_s >= from_s), None
        )

    async def until(self, so: Callable[[RobotState], bool], limit_s: float) -> float | None:
        """Wait for a state like that; return when it came, or None."""
        try:
            async with asyncio.timeout(limit_s):
                async for state in self.robot.states():
                    if so(state):
                        return self.now_s
        except TimeoutError:
            return None
        return None

    async def rest(self, limit_s: float = 15.0) -> None:
        """Wait until the arms are at rest, and a moment longer, if the robot reports that."""

        def still(state: RobotState) -> bool:
            idle = state.phase is Phase.NONE and not state.recording and not state.holding
            return idle and not state.arms_soft

        await self.until(still, limit_s)
        await asyncio.sleep(0.3)

    # ---- refusals -------------------------------------------------------------------------------

    async def code_of(self, work: Awaitable[object]) -> int | None:
        """Return the code with which something is refused; 0 if it is not, None without answer."""
        try:
            await work
        except RefusedError as refused:
            return int(refused.code)
        except RoteError as error:
            self.note(str(error))
            return None
        return 0

    def refusal(self, api: str, when: str, assumed: int, seen: int | None) -> None:
        """Note how a request was answered in one situation."""
        rows = self.measured.setdefault("refusals", [])
        rows.append({"api": api, "when": when, "assumed": assumed, "code": seen})


def rounded(seconds: float | None, digits: int = 3) -> float | None:
    """Return a time as reports have it."""
    return None if seconds is None else round(seconds, digits)
