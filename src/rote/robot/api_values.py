"""Value types of the API: the client interface, actions, modes, progress and reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Protocol

from rote import messages as m
from rote.errors import BadRequestError, RoteError
from rote.messages import UNREPORTED_MODE, Phase, RobotState
from rote.model.family import MAX_MOTION_S, Build, ModeTable


class RobotClient(Protocol):
    """The client interface that a robot object uses; each wire implements it in `transport`."""

    url: str
    wire: str
    stop_pending: bool
    """Whether a stop was requested, or is due because arms may be soft, and the robot has not
    confirmed it.
    """
    stop_reason: str
    """Why the latest stream ended early, as one sentence; "" if it did not, or if unknown."""

    @property
    def abilities(self) -> frozenset[str]:
        """What can be done over this wire."""

    @property
    def latest(self) -> RobotState | None:
        """The newest state of the robot."""

    @property
    def build(self) -> Build:
        """Which machine the robot is."""

    @property
    def recognised(self) -> bool:
        """Whether the robot has reported which machine it is; otherwise `build` is assumed."""

    @property
    def missing(self) -> tuple[str, ...]:
        """The joints whose positions the robot does not report."""

    @property
    def clockless(self) -> bool:
        """Whether the robot reports no time, so that states have this computer's time."""

    async def ask(self, command: m.Command) -> m.Reply:
        """Send a command and return the robot's reply. Raises `LinkError` if none comes."""

    def on_state(self, listener: Callable[[RobotState], object]) -> Callable[[], None]:
        """Call `listener` with every state. Return a function that removes it."""

    def on_audio(
        self, listener: Callable[[m.HeardSpeech | m.SoundState], object]
    ) -> Callable[[], None]:
        """Call `listener` with recognised speech and with loudspeaker start and end events.
        Return a function that removes it.
        """

    def on_loss(self, listener: Callable[[RoteError], None]) -> Callable[[], None]:
        """Call `listener` with the error when the robot is lost. Return a function that
        removes it.
        """

    async def close(self) -> None:
        """Close the connection."""

    def ready(self, poses: Sequence[m.StreamPose]) -> Callable[[int], bool]:
        """Prepare the poses of the current stream. Return `send(index)`, which sends one of them
        and expects no reply; once the stream has ended, it sends nothing and returns False.

        Needs the ability "stream".
        """

    def on_topic(
        self, topic: str, listener: "Callable[[TopicMessage], None]"
    ) -> Callable[[], None]:
        """Call `listener` with every message on a topic. Needs the ability "topics"."""


class TopicMessage(Protocol):
    """A message that a robot publishes on a topic."""

    @property
    def topic(self) -> str:
        """The name of the topic."""

    @property
    def data(self) -> object:
        """The content: JSON of any kind."""


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
    """In seconds; 0 if the robot does not report it."""
    position: int
    """Its number in the robot's list, from 1."""


@dataclass(frozen=True, slots=True)
class Actions:
    """Everything the robot can play."""

    presets: tuple[Preset, ...]
    taught: tuple[TaughtAction, ...]
    notes: tuple[str, ...] = ()
    """The parts of the robot's answer that could not be read, one sentence each."""

    @property
    def is_readable(self) -> bool:
        """Whether anything of the robot's list could be read."""
        return bool(self.presets or self.taught or not self.notes)

    @property
    def free_places(self) -> int:
        """Estimated number of motions that can still be taught; robots do not report it."""
        return max(0, m.MAX_ACTIONS - len(self.taught))

    def find(self, name: str) -> TaughtAction | None:
        """Return the taught action of that name, or None. Names are case-sensitive."""
        return next((action for action in self.taught if action.name == name), None)

    def numbered(self, number: int) -> TaughtAction | None:
        """Return the action of that number, counted from 1 in the robot's list, or None."""
        return next((action for action in self.taught if action.position == number), None)


class Waits(Enum):
    """What rote waits for before it continues by itself."""

    RELEASE = "release"
    """Waiting until the arms are at rest after a teaching; nothing is played before."""
    LISTED = "listed"
    """Waiting until the robot lists the action it was just taught."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A wait of rote for the robot, which has begun."""

    why: Waits
    name: str
    """The action to be played, or the action that was taught."""
    most_s: float
    """The longest time to wait, in seconds."""


WaitListener = Callable[[Waiting | None], object]
"""Called with a wait when it begins, and with None when it is over."""


@dataclass(frozen=True, slots=True)
class ModeReport:
    """The mode the robot is in."""

    id: int
    name: str
    label: str
    balanced: bool
    """Whether motions can be taught and played in this mode, as far as is known."""
    known: bool = True
    """Whether rote knows the mode. If not, the robot decides what the mode allows."""

    @classmethod
    def of(cls, mode_id: int, modes: ModeTable) -> "ModeReport":
        """Return the report of a mode id; a mode that is not in `modes` is marked as unknown."""
        mode_id = int(mode_id)  # prints as a number even if it came as a `Mode`
        mode = modes.find(mode_id)
        if mode_id == UNREPORTED_MODE:
            return cls(mode_id, "unknown", "the robot does not report its mode", False, known=False)
        if mode is None:
            return cls(mode_id, "unknown", "a mode that rote does not know", False, known=False)
        return cls(mode_id, mode.name, mode.label, mode.balanced)


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of a playback."""

    phase: Phase
    fraction: float
    """The position in the motion itself, 0 to 1; 0 during the approach, 1 during the return."""
    remaining_s: float
    round: int
    """1, and one more for each repetition of a looped motion."""
    state: RobotState


@dataclass(frozen=True, slots=True)
class PlayReport:
    """How a playback ended."""

    name: str
    completed: bool
    """False if it was stopped before its end."""
    seconds: float
    """The time from the robot's acceptance to the end of the soft return."""
    reason: str = field(default="", kw_only=True)
    """One sentence why a playback that did not complete ended; "" if it completed."""


@dataclass(frozen=True, slots=True)
class StreamReport(PlayReport):
    """How a streamed playback ended, and how well its poses kept their deadlines."""

    rate_hz: float
    """How many poses per second were sent."""
    late_p99_ms: float
    late_max_ms: float
    """How late poses were sent: `late_p99_ms` is the 99th percentile, this is the maximum."""
    missed: int
    """Poses that were skipped because the next one was due already."""
    start_late_ms: float | None = None
    """Lateness of the motion's own first pose (after the approach); None if it was not sent."""


@dataclass(frozen=True, slots=True)
class SoundReport:
    """How a sound was played by a robot's loudspeaker."""

    seconds: float
    """Length of the sound in seconds."""
    began_after_s: float | None
    """When the robot reported that it plays, from the request on; None if it did not report."""
    completed: bool = True
    """Whether it played to its end."""


MAX_SPEECH_CHARS = 500
"""Maximum number of characters to speak at once; this project's choice."""


def check_name(name: str, *, may_be_long: bool = False, in_use: bool = False) -> str:
    """Return the name of a new action; raise `BadRequestError` if it cannot be used.

    The documented frames and rote's own files limit a name to 31 bytes; `may_be_long` lifts that
    limit. A name that is `in_use` on a robot is checked less strictly: see `name_problem`.
    """
    check_nonempty_name(name)
    max_bytes = None if may_be_long else m.MAX_NAME_BYTES
    if problem := m.name_problem(name, max_bytes, in_use=in_use):
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}",
            f"Choose a name of 1 to {m.MAX_NAME_BYTES} bytes without line breaks, slashes "
            "or control characters. If an action on the robot has this name, rename it "
            "first.",
        )
    return name


def check_nonempty_name(name: str) -> str:
    """Return the name of an action on the robot; raise `BadRequestError` if it is empty."""
    if not isinstance(name, str):
        raise TypeError(f"a name is a str, not {type(name).__name__}")
    if not name:
        raise BadRequestError("the action name is empty", "Give it a name.")
    return name


def check_seconds(seconds: float, what: str) -> float:
    """Return a duration in seconds; raise `BadRequestError` if it is too short or too long.

    `what` is the subject of the error text, such as "a playback".
    """
    # NaN fails every comparison, so it is refused here too.
    if not 0.001 <= seconds <= MAX_MOTION_S:
        raise BadRequestError(
            f"{what} of {seconds} s is out of range",
            f"Choose 0.001 to {MAX_MOTION_S:.0f} s.",
        )
    return float(seconds)


def check_speech(text: str, language: str) -> m.Say:
    """Return the command to speak a text; raise `BadRequestError` if the robot cannot speak it."""
    if not text.strip() or len(text) > MAX_SPEECH_CHARS or not text.isprintable():
        raise BadRequestError(
            f"speech needs 1 to {MAX_SPEECH_CHARS} printable characters, not {text!r:.60}"
        )
    if language not in m.LANGUAGES:
        raise BadRequestError(
            f"the language {language!r:.20} is not supported", f"Choose {' or '.join(m.LANGUAGES)}."
        )
    return m.Say(text, language)


def check_colour(red: int, green: int, blue: int) -> m.SetLight:
    """Return the command for a light's colour; raise `BadRequestError` for parts out of range."""
    for part in (red, green, blue):
        if type(part) is not int or not 0 <= part <= 255:
            raise BadRequestError(f"a colour is three numbers from 0 to 255, not {part!r:.20}")
    return m.SetLight(red, green, blue)
