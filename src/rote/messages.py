"""The messages that all wires share: commands, replies and reports.

Commands are named by imperatives, replies and reports by nouns. Times are whole milliseconds if the
wire carries them so, and the field's name says so. Nothing in this module depends on a wire format.
"""

from dataclasses import dataclass
from typing import Literal, get_args

from rote.model.family import MAX_MOTION_S, ModeTable
from rote.named_enum import NamedIntEnum
from rote.text import Act, Text

__all__ = [
    "MAX_ACTIONS", "MAX_NAME_BYTES", "MAX_DURATION_MS", "MAX_KEYFRAMES", "MAX_NOTE_BYTES",
    "HandScript", "HAND_SCRIPTS", "JOINT_COUNT", "COMPENSATIONS", "Phase", "Interpolation",
    "Code", "Keyframe",
    "TakeControl", "ReleaseControl", "ChangeMode", "SyncParameters", "MoveByHand", "Subscribe",
    "SignalReady", "EnterTeaching", "KeepTeaching", "ExitTeaching", "Record", "PauseRecording",
    "DiscardRecording", "RenameAction", "DeleteAction", "PlayPreset", "ReadController",
    "Say", "SetLight", "PlaySound", "StopSound", "HeardSpeech", "SoundState", "LANGUAGES",
    "SOUND_RATE_HZ", "SAMPLE_BYTES", "Sound",
    "ListActions", "SaveAction", "PlayAction", "BeginStream", "StreamPose", "StopMotion",
    "Command", "Status", "ActionEntry", "PresetEntry", "ActionList", "Controller", "Reply",
    "RobotState", "name_problem",
]  # fmt: skip

UNREPORTED_MODE = -1
"""The mode id used if the robot does not report its mode."""
MAX_ACTIONS = 15
"""How many taught actions a robot can store."""
MAX_NAME_BYTES = 31
"""The longest name of an action, in UTF-8 bytes; the field on the wire has 32, with a closing zero.
"""
MAX_DURATION_MS = round(MAX_MOTION_S * 1000)
"""The longest recording and the longest playback."""
MAX_KEYFRAMES = 20
MAX_NOTE_BYTES = 39
"""UTF-8 bytes of the note in a status; the frames' field has 40 with the closing zero."""
HandScript = Literal["wave", "bow", "clap", "drum"]
HAND_SCRIPTS: tuple[HandScript, ...] = get_args(HandScript)
"""The scripts by which the hand of a simulated robot can move its arms."""
JOINT_COUNT = 29
COMPENSATIONS = 11
"""Compensation values in a keep-alive of the frames; their meaning is unknown."""
LANGUAGES = {"zh": 0, "en": 1}
"""The languages that a G1 speaks, each with the number of its voice on the wire."""
SOUND_RATE_HZ = 16_000
"""Samples per second of a sound that a G1 plays: 16 bits each, one channel."""
SAMPLE_BYTES = 2
"""Bytes of a sample of a sound."""
RELEASE_PRESET = 99
"""The factory action that releases a held pose."""


class Phase(NamedIntEnum):
    """The phase of a playback."""

    NONE = 0
    APPROACH = 1
    PLAYING = 2
    RETURN = 3


class Interpolation(NamedIntEnum):
    """Interpolation between keyframes."""

    LINEAR = 0
    CUBIC = 1
    SMOOTH = 2


class Code(NamedIntEnum):
    """The codes with which a robot answers commands.

    7404 is in the documents. If a G1's own services have a code for the same answer, that number
    is used. The 741x are this project's choice.
    """

    OK = 0
    UNKNOWN_COMMAND = 3203
    BAD_PAYLOAD = 3204
    BUSY = 7400
    HOLDING = 7401
    NO_SUCH_ACTION = 7402
    WRONG_STATE = 7404
    NAME_EXISTS = 7405
    LOW_BATTERY = 7406
    MOTOR_ERROR = 7407
    NOT_INITIALISED = 7410
    STORE_FULL = 7411
    NOTHING_RECORDED = 7412
    UNSAFE = 7413
    SUPERSEDED = 7414
    STORE_FAILED = 7415
    NOT_TEACHING = 7416


ANY_STAND_BUTTONS = "L2+UP, then R1+Y with 29 joints, R1+X with fewer"
"""The buttons of a G1's remote that make it stand, if its build is not known."""


def _make_stand_remedy(buttons: str) -> Text:
    """Return how to make a robot stand; `buttons` are those of its remote, empty if unknown."""
    remote = f" (on the remote: {buttons})" if buttons else ""
    return Text(
        "Ensure the robot is in a balanced standing: {stand}{remote}.",
        stand=Act.STAND,
        remote=remote,
    )


CODE_TEXTS: dict[int, tuple[str, str]] = {
    Code.OK: ("done", ""),
    Code.UNKNOWN_COMMAND: (
        "it does not know this command",
        "Compare the versions of rote and of the robot's software: the robot's may be older.",
    ),
    Code.BAD_PAYLOAD: (
        "it could not read or accept the values sent",
        f"Check names (1 to {MAX_NAME_BYTES} UTF-8 bytes, no control characters), durations (up to "
        f"{MAX_MOTION_S:.0f} s) and frame counts (at most what is stored).",
    ),
    Code.BUSY: (
        "it is busy with another motion, another client is teaching, or too many are connected",
        Text("Wait until that has ended, or stop it: {stop}.", stop=Act.STOP),
    ),
    Code.HOLDING: (
        "its arms hold the pose of a factory action",
        Text("Release the arm: {stop}. The robot releases it by itself after 20 s.", stop=Act.STOP),
    ),
    Code.NO_SUCH_ACTION: (
        "there is no action of that name or number",
        Text("List the actions: {list}.", list=Act.LIST),
    ),
    Code.WRONG_STATE: ("it is not in a balanced standing", _make_stand_remedy(ANY_STAND_BUTTONS)),
    Code.NAME_EXISTS: (
        "filename already exists: the robot has an action of that name",
        "Choose another name.",
    ),
    Code.LOW_BATTERY: ("its battery is low", "Charge it."),
    Code.MOTOR_ERROR: ("a motor reports an error", "Check its faults, and let it cool."),
    Code.NOT_INITIALISED: (
        "the connection was not initialised",
        "Connect again; the robot may have been restarted.",
    ),
    Code.STORE_FULL: (
        f"all {MAX_ACTIONS} places for taught actions are taken: up to {MAX_ACTIONS} actions can "
        "be created",
        Text(
            "This wire cannot delete actions. A simulated robot can start with another store: "
            "{other}.",
            other=Act.OTHER_STORE,
        ),
    ),
    Code.NOTHING_RECORDED: (
        "nothing was recorded",
        "Teach first; a recording needs at least two samples (20 ms).",
    ),
    Code.UNSAFE: (
        "the motion would exceed a joint's position or speed limit",
        "Play it slower, or teach it again within the limits.",
    ),
    Code.SUPERSEDED: (
        "a newer stop or exit has cancelled this command",
        "Nothing was started. Send it again if it is still needed.",
    ),
    Code.NOT_TEACHING: (
        "it is not being taught, or not by you",
        "Enter teaching first: recording and scripted hands need soft arms.",
    ),
    Code.STORE_FAILED: (
        "its store failed",
        "Check the robot's own log. An unsaved recording is still there: save it again.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyframe:
    """One joint's position at one moment."""

    joint: int
    time_ms: int
    value_rad: float


# ---- commands -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeControl:
    """Open the control channel."""


@dataclass(frozen=True, slots=True)
class ReleaseControl:
    """Close the control channel: the client disconnects."""


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """Change the motion controller's mode to `mode`: a `Mode`, or any id that a newer robot may
    know.
    """

    mode: int


@dataclass(frozen=True, slots=True)
class SyncParameters:
    """Exchange parameters. Their meaning is not known, so they are opaque bytes."""

    data: bytes = b""


@dataclass(frozen=True, slots=True)
class MoveByHand:
    """Let the scripted hand of a simulated robot move its soft arms. Real robots have no
    such hand.
    """

    script: str
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """Ask for state reports: of the first 12 joints, or of all with `all_joints`."""

    all_joints: bool = False
    flags: int = 0
    """The other filter bits, as sent."""
    opaque: bytes = b""


@dataclass(frozen=True, slots=True)
class SignalReady:
    """Signal that the client has finished its initialisation."""


@dataclass(frozen=True, slots=True)
class EnterTeaching:
    """Make the arms soft (compliant)."""

    state: "RobotState | None" = None
    name: str = ""
    """The name of the recording, for wires that need it at the start."""
    compensation: tuple[float, ...] = ()
    """Contents of the keep-alives of this teaching, for wires that have them; zeros if empty."""


@dataclass(frozen=True, slots=True)
class KeepTeaching:
    """Keep the teaching alive; without it the arms hold again by themselves."""

    compensation: tuple[float, ...] = (0.0,) * COMPENSATIONS


@dataclass(frozen=True, slots=True)
class ExitTeaching:
    """Make the arms hold again."""


@dataclass(frozen=True, slots=True)
class Record:
    """Start or stop recording."""

    on: bool


@dataclass(frozen=True, slots=True)
class PauseRecording:
    """Pause the recording, or resume it; the arms stay soft."""

    paused: bool


@dataclass(frozen=True, slots=True)
class DiscardRecording:
    """Discard the recording `name`; if leaving teaching has stored it already, delete it."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameAction:
    """Rename a taught action."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DeleteAction:
    """Delete a taught action permanently."""

    name: str


@dataclass(frozen=True, slots=True)
class PlayPreset:
    """Play a factory action."""

    id: int


@dataclass(frozen=True, slots=True)
class Say:
    """Say something aloud."""

    text: str
    language: str = "en"
    """A key of `LANGUAGES`."""


@dataclass(frozen=True, slots=True)
class SetLight:
    """Give the light on the robot's head a colour."""

    red: int
    green: int
    blue: int


@dataclass(frozen=True, slots=True)
class Sound:
    """A decoded sound: 16-bit samples, little endian, with interleaved channels."""

    pcm: bytes
    rate_hz: int
    channels: int

    @property
    def seconds(self) -> float:
        """Its duration in seconds."""
        return len(self.pcm) / (SAMPLE_BYTES * self.channels * self.rate_hz)


@dataclass(frozen=True, slots=True)
class PlaySound:
    """Play a part of a sound: 16-bit samples, one channel, `SOUND_RATE_HZ`."""

    stream: str
    """The id of the sound: the next part has the same one; a new id interrupts the sound."""
    pcm: bytes


@dataclass(frozen=True, slots=True)
class StopSound:
    """End the sounds that this client plays."""


@dataclass(frozen=True, slots=True)
class ReadMode:
    """Ask for the mode; if the robot answers, the next state contains it."""


@dataclass(frozen=True, slots=True)
class ReadController:
    """Ask which controller drives the robot; the answer is a `Controller`."""


@dataclass(frozen=True, slots=True)
class ListActions:
    """Ask for the list of taught actions."""

    filter: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveAction:
    """Store the recording, or `keyframes` if given, under `name`.

    A recording is stored whole and at its own length. `duration_ms` and `frames` are then only
    the sender's description, and stored as such.
    """

    name: str
    created_s: int
    duration_ms: int
    frames: int = 0
    loop: bool = False
    save: bool = True
    speed_modifier: bool = False
    replace: bool = False
    """Replace an action of that name; otherwise a name that exists is refused."""
    keyframes: tuple[Keyframe, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayAction:
    """Play the taught action number `action`, counted from 1 in the list's order."""

    action: int
    frames: int = 0
    """How many frames to play from the start; 0 means all."""
    duration_ms: int = 0
    """Requested duration of the playback; 0 means as recorded."""
    interpolation: Interpolation = Interpolation.LINEAR
    loop: bool = False
    keyframes: tuple[Keyframe, ...] = ()
    """Play these instead of what is stored."""
    name: str = ""
    """The name of the same action, for wires that identify actions by name."""


@dataclass(frozen=True, slots=True)
class BeginStream:
    """Begin a stream of poses for the arms to follow; refused whenever playing would be."""

    hands: tuple[str, ...] = ()
    """The sides of the hands that follow too, on wires that support it."""


@dataclass(frozen=True, slots=True)
class StreamPose:
    """One pose to follow from now on. It is not answered, because the next one follows soon.

    The arms move to a weighted mean of two poses: `weight` of this one and 1 - `weight` of the
    robot's own. A stream ends properly when its weight is back at 0.
    """

    number: int
    """Increases within a stream, so that a delayed pose is not followed."""
    weight: float
    """From 0 to 1."""
    joints_rad: tuple[float, ...]
    """The positions of the taught joints, in the order of the build's `taught`."""
    hands_rad: tuple[float, ...] = ()
    """The positions of the hands that follow, in the order of their messages, left before right."""


@dataclass(frozen=True, slots=True)
class StopMotion:
    """Stop what is playing, with a soft return to rest. Always allowed."""


Command = (
    TakeControl
    | ReleaseControl
    | ChangeMode
    | SyncParameters
    | MoveByHand
    | Subscribe
    | SignalReady
    | EnterTeaching
    | KeepTeaching
    | ExitTeaching
    | Record
    | PauseRecording
    | DiscardRecording
    | RenameAction
    | DeleteAction
    | PlayPreset
    | Say
    | SetLight
    | PlaySound
    | StopSound
    | ReadMode
    | ReadController
    | ListActions
    | SaveAction
    | PlayAction
    | BeginStream
    | StreamPose
    | StopMotion
)

# ---- replies and reports ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class HeardSpeech:
    """Speech that the robot recognised."""

    text: str


@dataclass(frozen=True, slots=True)
class SoundState:
    """Whether the robot's loudspeaker plays something."""

    playing: bool


@dataclass(frozen=True, slots=True)
class Status:
    """The result of a command: done, or why not."""

    code: int = Code.OK
    note: str = ""
    """Free text of the robot, such as which client is teaching; usually empty."""


@dataclass(frozen=True, slots=True)
class ActionEntry:
    """One entry of the robot's list."""

    name: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class PresetEntry:
    """A factory action in the robot's list."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ActionList:
    """The taught actions in the order of their numbers, and the presets if the wire lists them."""

    actions: tuple[ActionEntry, ...] = ()
    presets: tuple[PresetEntry, ...] = ()
    notes: tuple[str, ...] = ()
    """The parts of the robot's answer that could not be read, as text."""


@dataclass(frozen=True, slots=True)
class Controller:
    """Which controller drives the robot: `ai` on a G1; an empty name in debug mode."""

    name: str

    @property
    def debug(self) -> bool:
        """Whether the robot is in debug mode: no controller runs, so nothing answers for
        its arms.
        """
        return not self.name


Reply = Status | ActionList | Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotState:
    """What the robot is doing at one moment of its own clock."""

    mode: int = -1
    """The id of the motion controller's state; -1 if it is not known."""
    arms_soft: bool = False
    recording: bool = False
    phase: Phase = Phase.NONE
    stopped_early: bool = False
    """The last playback did not run to its end."""
    joints_rad: tuple[float, ...]
    velocities_rad_s: tuple[float, ...]
    accelerometer_m_s2: tuple[float, ...] = (0.0, 0.0, 9.81)
    gyroscope_rad_s: tuple[float, ...] = (0.0, 0.0, 0.0)
    foot_force_n: tuple[float, ...] = (0.0, 0.0, 0.0, 0.0)
    time_us: int = 0
    temperatures_c: tuple[float, ...] = ()
    """The temperatures of the motors, if the wire reports them."""
    battery_percent: float | None = None
    faults: tuple[str, ...] = ()
    """What the robot reports as wrong with it, as text."""
    holding: bool = False
    """Whether the arms hold the last pose of a factory action."""
    silent_hands: tuple[str, ...] = ()
    """The sides of hands that stopped reporting: their joints keep the last position."""
    has_joints: bool = True
    """Whether the positions were measured for this state; otherwise they are the last known ones,
    or none.
    """
    has_phase: bool = True
    """Whether the robot reports what its arms do; otherwise `phase` and `recording` mean nothing.
    """

    @property
    def playing(self) -> bool:
        """Whether a playback is going on; its approach and its return count."""
        return self.phase is not Phase.NONE


def explain(code: int, modes: ModeTable | None = None) -> tuple[str, str]:
    """Return what a robot's code means, and what to do about it.

    With the `modes` of the robot's build, the remedy names the buttons for that build.
    """
    if code == Code.WRONG_STATE and modes is not None:
        return CODE_TEXTS[code][0], _make_stand_remedy(modes.stand_up_buttons)
    return CODE_TEXTS.get(
        code, ("for a reason it does not explain", "Look the code up in the docs.")
    )


_BIDIRECTIONAL = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
_LINE_BREAKS = frozenset("\u2028\u2029")
_SLASHES = frozenset("/\\")


def name_problem(
    name: str, most_bytes: int | None = MAX_NAME_BYTES, *, in_use: bool = False
) -> str | None:
    """Return what is wrong with the name of an action or a take, or with a tag; None if it is fine.

    `most_bytes` limits its length. A name that is `in_use` on a robot may contain characters that
    new names may not: slashes, line breaks, and characters that change the direction of the text.
    """
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        return "it contains characters that cannot be written as UTF-8"
    has_control = any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 for char in name)
    problems = {
        "it is empty": not name.strip(),
        f"it takes {size} bytes in UTF-8; at most {most_bytes} fit": (
            most_bytes is not None and size > most_bytes
        ),
        "it contains control characters": has_control,
        "it begins or ends with a space": name != name.strip(),
        "it contains a line break": not in_use and bool(_LINE_BREAKS.intersection(name)),
        "it contains characters that change the direction of the text": (
            not in_use and bool(_BIDIRECTIONAL.intersection(name))
        ),
        "it contains a slash": not in_use and bool(_SLASHES.intersection(name)),
    }
    return next((problem for problem, found in problems.items() if found), None)
