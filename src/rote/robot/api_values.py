"""The words of the API: what a robot can do, what it has, and what it says about itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from rote import messages as m
from rote.errors import BadRequestError, RoteError
from rote.messages import Phase, RobotState
from rote.model.family import MAX_MOTION_S, Build, Modes

UNTOLD_MODE = -1
"""Stands for the id of a mode that the robot does not tell."""


class Port(Protocol):
    """What a robot needs of a wire. One shell in `client` per wire provides it."""

    url: str
    wire: str
    abilities: frozenset[str]
    latest: RobotState | None

    @property
    def build(self) -> Build:
        """Which machine the robot is."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The joints whose position the robot does not tell."""

    @property
    def clockless(self) -> bool:
        """Whether the robot does not tell its time, so that states have this computer's."""

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the robot's reply."""

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state; returns what ends that."""

    def on_loss(self, listener: Callable[[RoteError], None]) -> Callable[[], None]:
        """Call `listener` when the robot is lost; returns what ends that."""

    async def close(self) -> None:
        """Let go."""

    def ready(self, poses: Iterable[m.StreamPose]) -> Callable[[int], bool]:
        """Make the poses of the stream that was begun ready; returns what sends one by its place,
        unanswered. That returns False, and sends nothing, once the stream was ended. Only wires
        with the ability "stream" can."""

    def on_topic(
        self, topic: str, listener: "Callable[[TopicMessage], None]"
    ) -> Callable[[], None]:
        """Call `listener` with what is published on a topic, on wires with the ability "topics"."""


class TopicMessage(Protocol):
    """What a robot publishes on a topic."""

    @property
    def topic(self) -> str:
        """Where."""

    @property
    def data(self) -> object:
        """What: JSON of any kind."""


@dataclass(frozen=True, slots=True)
class Preset:
    """A factory action."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class TaughtAction:
    """A motion stored on the robot."""

    name: str
    duration_s: float
    """0 where the robot does not tell it."""
    position: int
    """Its number in the robot's list, from 1."""


@dataclass(frozen=True, slots=True)
class Actions:
    """Everything the robot can play."""

    presets: tuple[Preset, ...]
    taught: tuple[TaughtAction, ...]
    notes: tuple[str, ...] = ()
    """What of the robot's answer could not be read, one sentence for each."""

    @property
    def free_places(self) -> int:
        """How many more motions can be taught, as far as rote knows: robots do not tell it."""
        return max(0, m.MAX_ACTIONS - len(self.taught))

    def find(self, name: str) -> TaughtAction | None:
        """Return the taught action of that name, or None. Names are case sensitive."""
        return next((action for action in self.taught if action.name == name), None)

    def numbered(self, number: int) -> TaughtAction | None:
        """Return the taught action of that number, counted from 1 in the list's order, or None."""
        return next((action for action in self.taught if action.position == number), None)


class Waits(Enum):
    """What rote waits for before it goes on by itself."""

    RELEASE = "release"
    """The arms come to rest after a teaching, and nothing is played before they have."""
    LISTED = "listed"
    """The robot does not yet list what it was just taught."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that is waited for, on the robot's behalf."""

    why: Waits
    name: str
    """The action that is to be played, or was taught."""
    most_s: float
    """How long at most."""


WaitListener = Callable[[Waiting | None], object]
"""Is told of a wait as it begins, and None when it is over."""


@dataclass(frozen=True, slots=True)
class ModeReport:
    """The mode the robot is in."""

    id: int
    name: str
    label: str
    balanced: bool
    """Whether motions can be taught and played in it, as far as is known."""
    known: bool = True
    """Whether rote knows the mode; of another one only the robot knows what can be done in it."""

    @classmethod
    def of(cls, mode_id: int, modes: Modes) -> "ModeReport":
        """Describe a mode by its id; unknown ones are said to be unknown."""
        mode = modes.find(mode_id)
        if mode_id == UNTOLD_MODE:
            return cls(mode_id, "unknown", "the robot does not tell its mode", False, known=False)
        if mode is None:
            return cls(mode_id, "unknown", "a mode rote does not know", False, known=False)
        return cls(mode_id, mode.name, mode.label, mode.balanced)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a playback is."""

    phase: Phase
    fraction: float
    """Of the motion itself, 0 to 1; the approach counts as 0, the return as 1."""
    remaining_s: float
    round: int
    """1, and counting up where the motion is played in a loop."""
    state: RobotState


@dataclass(frozen=True, slots=True)
class PlayReport:
    """How a playback ended."""

    name: str
    completed: bool
    """False where it was stopped before its end."""
    seconds: float
    """From the robot's acceptance to the end of the soft return."""


@dataclass(frozen=True, slots=True)
class StreamReport(PlayReport):
    """How a streamed playback ended, and how well its poses kept their deadlines."""

    rate_hz: float
    """How many poses a second were sent."""
    late_p99_ms: float
    late_max_ms: float
    """How late poses were sent: 99 in 100 less than the first, none more than the second."""
    missed: int
    """Poses that were so late that a later one was sent instead."""


def check_name(name: str, *, may_be_long: bool = False) -> str:
    """Return the name of a new action, or raise `BadRequestError` saying what is wrong with it.

    31 bytes are what the documented frames and rote's own files hold. Where a robot's services are
    asked, it may be `may_be_long`: then the robot itself decides.
    """
    check_named(name)
    most = None if may_be_long else m.MAX_NAME_BYTES
    if problem := m.name_problem(name, most):
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}",
            f"Choose one of 1 to {m.MAX_NAME_BYTES} bytes without control characters. The length "
            "is rote's own limit: a robot's services may take a longer one, and `rename` asks "
            "them. An action of the robot that has such a name is renamed first.",
        )
    return name


def check_named(name: str) -> str:
    """Return the name of an action that is on the robot; how it may look is the robot's choice."""
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    if not name:
        raise BadRequestError("an action without a name", "Name it.")
    return name


def check_seconds(seconds: float, what: str) -> float:
    """Return a duration, or raise `BadRequestError` where it is longer than any motion."""
    # NaN fails every comparison, so it is refused here too.
    if not 0.001 <= seconds <= MAX_MOTION_S:
        raise BadRequestError(
            f"{what} of {seconds} s is not possible",
            f"Choose more than 0 and at most {MAX_MOTION_S:.0f} s.",
        )
    return float(seconds)
