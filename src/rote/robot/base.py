"""The words of the API: what a robot can do, what it has, and what it says about itself."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

from rote import messages as m
from rote.errors import BadRequestError, RoteError
from rote.messages import Phase, RobotState
from rote.model.family import MAX_MOTION_S, Build, Modes


class Port(Protocol):
    """What a robot needs of a wire. One shell in `client` per wire provides it."""

    url: str
    wire: str
    abilities: frozenset[str]
    latest: RobotState | None

    @property
    def build(self) -> Build:
        """Which machine the robot is."""

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
    position: int
    """Its number in the robot's list, from 1."""


@dataclass(frozen=True, slots=True)
class Actions:
    """Everything the robot can play."""

    presets: tuple[Preset, ...]
    taught: tuple[TaughtAction, ...]

    @property
    def free_places(self) -> int:
        """How many more motions can be taught."""
        return m.MAX_ACTIONS - len(self.taught)

    def find(self, name: str) -> TaughtAction | None:
        """Return the taught action of that name, or None. Names are case sensitive."""
        return next((action for action in self.taught if action.name == name), None)


@dataclass(frozen=True, slots=True)
class ModeReport:
    """The mode the robot is in."""

    id: int
    name: str
    words: str
    balanced: bool
    """Whether motions can be taught and played in it."""

    @classmethod
    def of(cls, mode_id: int, modes: Modes) -> "ModeReport":
        """Describe a mode by its id; unknown ones are said to be unknown."""
        mode = modes.find(mode_id)
        if mode is None:
            return cls(mode_id, "unknown", "a mode rote does not know", balanced=False)
        return cls(mode_id, mode.name, mode.words, mode.balanced)


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


def check_name(name: str) -> str:
    """Return the name, or raise `BadRequestError` saying what is wrong with it."""
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    if problem := m.name_problem(name):
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}",
            f"Choose one of 1 to {m.MAX_NAME_BYTES} bytes without control characters.",
        )
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
