"""What can be said: commands, replies and reports. The vocabulary all wires share.

Commands are imperatives, replies and reports are things. Times are whole milliseconds where a wire
carries them so, and the field's name says it. Nothing here knows a byte.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import Literal, get_args

from rote.model.family import MAX_MOTION_S
from rote.text import Act, Text

__all__ = [
    "MAX_ACTIONS", "MAX_NAME_BYTES", "MAX_DURATION_MS", "MAX_KEYFRAMES", "MAX_NOTE_BYTES",
    "HandScript", "HAND_SCRIPTS", "JOINT_COUNT", "COMPENSATIONS", "Phase", "Interpolation",
    "Code", "Keyframe",
    "TakeControl", "ReleaseControl", "ChangeMode", "SyncParameters", "MoveByHand", "Subscribe",
    "SignalReady", "EnterTeaching", "KeepTeaching", "ExitTeaching", "Record", "PauseRecording",
    "DiscardRecording", "RenameAction", "DeleteAction", "PlayPreset", "ReadController",
    "ListActions", "SaveAction", "PlayAction", "BeginStream", "StreamPose", "StopMotion",
    "Command", "Status", "ActionEntry", "PresetEntry", "ActionList", "Controller", "Reply",
    "RobotState", "name_problem",
]  # fmt: skip

MAX_ACTIONS = 15
"""Places for taught actions on a robot."""
MAX_NAME_BYTES = 31
"""UTF-8 bytes of an action's name; the wires' field has 32 with the closing zero."""
MAX_DURATION_MS = round(MAX_MOTION_S * 1000)
"""The longest recording and the longest playback."""
MAX_KEYFRAMES = 20
MAX_NOTE_BYTES = 39
"""UTF-8 bytes of the note in a status; the frames' field has 40 with the closing zero."""
HandScript = Literal["wave", "bow", "clap", "drum"]
HAND_SCRIPTS: tuple[HandScript, ...] = get_args(HandScript)
"""What the scripted hand of a simulated robot can show."""
JOINT_COUNT = 29
COMPENSATIONS = 11
"""Compensation values in a keep-alive of the frames; nobody knows what they mean."""
RELEASE_PRESET = 99
"""The factory action that lets go of a held pose."""


class Phase(IntEnum):
    """How far a playback is."""

    NONE = 0
    APPROACH = 1
    PLAYING = 2
    RETURN = 3


class Interpolation(IntEnum):
    """How to get from one keyframe to the next."""

    LINEAR = 0
    CUBIC = 1
    SMOOTH = 2


class Code(IntEnum):
    """What a robot answers. 7404 is stated by the documents; where a G1's own services have a code
    for the same thing, that number is used; the 741x are this project's choice."""

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


WORDS: dict[int, tuple[str, str]] = {
    Code.OK: ("done", ""),
    Code.UNKNOWN_COMMAND: (
        "it does not know this command",
        "Compare the versions of both ends: the robot's may be older.",
    ),
    Code.BAD_PAYLOAD: (
        "it could not read or accept the values sent",
        f"Check names (1 to {MAX_NAME_BYTES} UTF-8 bytes, no control characters), durations (up to "
        f"{MAX_MOTION_S:.0f} s) and frame counts (at most what is stored).",
    ),
    Code.BUSY: (
        "it is busy with another motion, or another client is teaching",
        Text("Wait until it has ended, or stop it: {stop}.", stop=Act.STOP),
    ),
    Code.HOLDING: (
        "its arms hold the pose of a factory action",
        Text("Let it go: {stop}. It lets go by itself after 20 s.", stop=Act.STOP),
    ),
    Code.NO_SUCH_ACTION: (
        "there is no action of that name or number",
        Text("See what there is: {list}.", list=Act.LIST),
    ),
    Code.WRONG_STATE: (
        "it is not in a balanced standing",
        Text("Make it stand first: {stand} (on the remote: L2+UP, then R1+X).", stand=Act.STAND),
    ),
    Code.NAME_EXISTS: (
        "an action of that name already exists",
        "Choose another name.",
    ),
    Code.LOW_BATTERY: ("its battery is low", "Charge it."),
    Code.MOTOR_ERROR: ("a motor reports an error", "Look at its faults; let it cool."),
    Code.NOT_INITIALISED: (
        "the connection was not initialised",
        "Connect again; the robot may have been restarted.",
    ),
    Code.STORE_FULL: (
        f"all {MAX_ACTIONS} places for taught actions are taken",
        Text(
            "This wire cannot delete. A simulated robot can begin with another store: {other}.",
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
        "a newer stop or exit has overtaken this command",
        "Nothing was started. Ask again if you still want it.",
    ),
    Code.NOT_TEACHING: (
        "it is not being taught, or not by you",
        "Enter teaching first: recording and hands need soft arms.",
    ),
    Code.STORE_FAILED: (
        "its store failed",
        "Look at the robot's own messages. A recording not saved is still there: save it again.",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Keyframe:
    """One joint's value at one moment."""

    joint: int
    time_ms: int
    value_rad: float


# ---- commands -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeControl:
    """Open the control channel."""


@dataclass(frozen=True, slots=True)
class ReleaseControl:
    """Close the control channel: the client is leaving."""


@dataclass(frozen=True, slots=True)
class ChangeMode:
    """Bring the motion controller into `mode` (a `Mode`, or any id a newer robot may know)."""

    mode: int


@dataclass(frozen=True, slots=True)
class SyncParameters:
    """Exchange parameters; nobody knows which, so they are opaque."""

    data: bytes = b""


@dataclass(frozen=True, slots=True)
class MoveByHand:
    """Let the simulated robot's scripted hand move its soft arms. A real robot has no such hand."""

    script: str
    duration_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscribe:
    """Ask for state reports; with `all_joints`, for all of them instead of the first 12."""

    all_joints: bool = False
    flags: int = 0
    """The other filter bits, as sent."""
    opaque: bytes = b""


@dataclass(frozen=True, slots=True)
class SignalReady:
    """Say that the client is ready: initialisation is over."""


@dataclass(frozen=True, slots=True)
class EnterTeaching:
    """Make the arms soft."""

    state: "RobotState | None" = None
    name: str = ""
    """What the recording will be called, for wires that want to know at the start."""
    compensation: tuple[float, ...] = ()
    """What the keep-alives of this teaching are to say, for wires that have it; zeros if empty."""


@dataclass(frozen=True, slots=True)
class KeepTeaching:
    """Say that somebody is still teaching; without it the arms hold again by themselves."""

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
    """Take no samples for a while, or go on; the arms stay soft."""

    paused: bool


@dataclass(frozen=True, slots=True)
class DiscardRecording:
    """Forget the recording `name`; where leaving teaching has stored it, remove it again."""

    name: str


@dataclass(frozen=True, slots=True)
class RenameAction:
    """Give a taught action another name."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class DeleteAction:
    """Remove a taught action for good."""

    name: str


@dataclass(frozen=True, slots=True)
class PlayPreset:
    """Play a factory action."""

    id: int


@dataclass(frozen=True, slots=True)
class ReadMode:
    """Ask for the mode; the next state tells it, where the robot answers."""


@dataclass(frozen=True, slots=True)
class ReadController:
    """Ask which controller drives the robot; the answer is a `Controller`."""


@dataclass(frozen=True, slots=True)
class ListActions:
    """Ask which taught actions there are."""

    filter: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveAction:
    """Store the recording, or `keyframes` where given, under `name`.

    A recording is stored whole and at its own length. `duration_ms` and `frames` are then only what
    the sender says of it, and kept as that.
    """

    name: str
    created_s: int
    duration_ms: int
    frames: int = 0
    loop: bool = False
    save: bool = True
    speed_modifier: bool = False
    keyframes: tuple[Keyframe, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PlayAction:
    """Play the taught action number `action`, counted from 1 in the list's order."""

    action: int
    frames: int = 0
    """How many frames from the start; 0 means all."""
    duration_ms: int = 0
    """How long it is to take; 0 means as recorded."""
    interpolation: Interpolation = Interpolation.LINEAR
    loop: bool = False
    keyframes: tuple[Keyframe, ...] = ()
    """Instead of what is stored."""
    name: str = ""
    """The same action by its name, for wires that know it so."""


@dataclass(frozen=True, slots=True)
class BeginStream:
    """Let the arms follow poses that this client will send; refused as a play would be."""

    hands: tuple[str, ...] = ()
    """The sides of the hands that follow too, on wires that can."""


@dataclass(frozen=True, slots=True)
class StreamPose:
    """Follow this from now on. It is not answered: the next one comes soon.

    The arms go to (1 - weight) of the robot's own pose and `weight` of this one. A stream ends well
    when its weight comes back to 0.
    """

    number: int
    """Counting up within a stream, so that one that was overtaken is not followed."""
    weight: float
    """From 0 to 1."""
    joints_rad: tuple[float, ...]
    """Of the joints that are taught, in the order of `model.TAUGHT_JOINTS`."""
    hands_rad: tuple[float, ...] = ()
    """Of the hands that follow, in the order of their messages, left before right."""


@dataclass(frozen=True, slots=True)
class StopMotion:
    """Stop what is playing, with a soft return. Always allowed."""


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
class Status:
    """Done, or why not."""

    code: int = Code.OK
    note: str = ""
    """What the robot adds in its own words, such as who is teaching; mostly nothing."""


@dataclass(frozen=True, slots=True)
class ActionEntry:
    """One line of the robot's list."""

    name: str
    duration_ms: int


@dataclass(frozen=True, slots=True)
class PresetEntry:
    """A factory action, as the robot lists it."""

    id: int
    name: str


@dataclass(frozen=True, slots=True)
class ActionList:
    """The taught actions in the order of their numbers, and presets where the wire has them."""

    actions: tuple[ActionEntry, ...] = ()
    presets: tuple[PresetEntry, ...] = ()
    notes: tuple[str, ...] = ()
    """What of the robot's answer could not be read, in words."""


@dataclass(frozen=True, slots=True)
class Controller:
    """Which controller drives the robot: `ai` on a G1, none in debug mode."""

    name: str

    @property
    def debug(self) -> bool:
        """Whether none does, so that nobody answers for the arms."""
        return not self.name


Reply = Status | ActionList | Controller


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotState:
    """What the robot is doing at one moment of its own clock."""

    mode: int = -1
    """The id of the motion controller's state; -1 where it is not known."""
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
    """Of the motors, where the wire tells them."""
    battery_percent: float | None = None
    faults: tuple[str, ...] = ()
    """What the robot says is wrong with it, in words."""
    holding: bool = False
    """The arms keep the last pose of a factory action."""
    silent_hands: tuple[str, ...] = ()
    """The sides of hands that have stopped reporting: their joints keep the last position."""
    joints_told: bool = True
    """Whether the positions were measured for this state; else they are the last that were told, or
    none."""
    phase_told: bool = True
    """Whether the robot says what its arms do; else `phase` and `recording` are no statement."""

    @property
    def playing(self) -> bool:
        """Whether a playback, its approach and its return included, is going on."""
        return self.phase is not Phase.NONE


def explain(code: int) -> tuple[str, str]:
    """Return what a robot's code means and what to do about it."""
    return WORDS.get(code, ("for a reason it does not explain", "Look the code up in the docs."))


def name_problem(name: str, most_bytes: int | None = MAX_NAME_BYTES) -> str | None:
    """Return what is wrong with an action's name, or None; without `most_bytes` it may be long."""
    try:
        size = len(name.encode("utf-8"))
    except UnicodeEncodeError:
        return "it holds characters that cannot be written as UTF-8"
    if not name.strip():
        return "it is empty"
    if most_bytes is not None and size > most_bytes:
        return f"it takes {size} bytes in UTF-8; at most {most_bytes} fit"
    if any(ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 for c in name):
        return "it holds control characters"
    if name != name.strip():
        return "it begins or ends with a space"
    return None
