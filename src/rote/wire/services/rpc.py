"""Requests and responses: the layer that WebRTC and DDS share, and the services of a G1.

    rt/api/<service>/request    identity {id, api_id}, policy {priority, noreply}, lease {id};
                                parameter, a text: JSON or nothing
    rt/api/<service>/response   identity {id, api_id}, status {code}; data, a text; binary

An api id has a meaning only together with its service: 7106 executes a preset of `arm` and is an
arm task of `sport`. Decoders raise only `DecodeError`, for any input. Facts are from
spec/datachannel.md and spec/dds.md; guesses are marked as such.
"""

import json
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple, NoReturn, TypeVar

from rote import messages as m
from rote.errors import BadRequestError, DecodeError, PayloadError
from rote.wire.services.lenient import describe_value, read_number, read_whole

ARM, SPORT, VOICE = "arm", "sport", "voice"
MOTION_SWITCHER, ROBOT_STATE = "motion_switcher", "robot_state"

NO_STATUS = -(2**31)
"""The code of a response without a status."""

MODE_REFUSED = 1001
"""The code of an R1's `sport` for a mode that it refuses, or that it is in already."""

# What a code means and what to do about it, by service ("" is any) and code: numbers clash, and
# 7001 to 7009 are codes of one service and api ids of another.
CODES: dict[tuple[str, int], tuple[str, str]] = {
    ("", 0): ("done", ""),
    ("", 100): (
        "it could not accept the values sent",
        "Check the values against the service's limits.",
    ),
    ("", 3001): ("an unknown error occurred", "Try again, and check the robot's own messages."),
    ("", 3102): (
        "no service accepted it",
        "Check that the service is running, and that the robot is not in debug mode.",
    ),
    ("", 3103): ("the client does not know this api", "Use a client as new as the robot."),
    ("", 3104): (
        "the service did not answer in time",
        "Look at what the robot does, then try again.",
    ),
    ("", 3105): ("the answer belongs to another request", "Try again."),
    ("", 3106): ("the answer could not be read", "Compare the versions of both ends."),
    ("", 3107): ("the client's lease is not valid", "Take the lease again."),
    ("", 3201): ("the service could not send its answer", "Look at what the robot does."),
    ("", 3202): (
        "the service failed internally",
        "Try again; if it still fails, restart the robot.",
    ),
    ("", 3203): (
        "the service does not know this api",
        "The robot's software may be older: update it.",
    ),
    ("", 3204): ("it could not read or accept the values sent", "Check names and numbers."),
    ("", 3205): ("another client holds the lease", "Let the other client end first."),
    ("", 3206): ("there is no such lease", "Take the lease again."),
    ("", 3207): ("there is a lease already", "Let the other client end first."),
    (SPORT, 127): (
        "it does not carry this request out",
        "Use the robot's remote: an R1 refuses a velocity in every state.",
    ),
    (SPORT, MODE_REFUSED): (
        "it cannot change to that state from its current one, or is in it already",
        "Check its state. An R1 can be damped in every state, and can then be made to stand.",
    ),
    (SPORT, 1003): ("there is no such controller state", "Ask the robot which states it has."),
    (SPORT, 4101): ("the path sent is not valid", "Check the points of the path."),
    (SPORT, 4201): ("the motion took too long", "Try again."),
    (SPORT, 4205): (
        "the motion controller is not initialised",
        "Wait until the robot has started.",
    ),
    (SPORT, 7301): (
        "the controller's state is not available",
        "Make the robot stand first: L2+UP.",
    ),
    (SPORT, 7302): ("there is no such controller state", "Ask the robot which states it has."),
    (SPORT, 7303): ("there is no such task", "Choose another task."),
    (SPORT, 7304): ("the controller may not return to that state", "Damp it first: L2+B."),
    (ROBOT_STATE, 5201): ("the service could not be switched", "List the robot's services."),
    (ROBOT_STATE, 5202): ("that service is protected", "Leave it on: it cannot be switched off."),
    (MOTION_SWITCHER, 7001): ("it could not accept the values sent", "Check the values."),
    (MOTION_SWITCHER, 7002): ("it is switching already", "Wait a moment and try again."),
    (MOTION_SWITCHER, 7003): ("its event failed", "Try again."),
    (MOTION_SWITCHER, 7004): ("there is no controller of that name", "Use the name ai on a G1."),
    (MOTION_SWITCHER, 7005): ("its command failed", "Try again."),
    (MOTION_SWITCHER, 7006): ("the check failed", "Try again."),
    (MOTION_SWITCHER, 7007): (
        "the controller could not be selected",
        "Damp the robot, then try again.",
    ),
    (MOTION_SWITCHER, 7008): (
        "the controller could not be released",
        "Damp the robot, then try again.",
    ),
    (MOTION_SWITCHER, 7009): ("customising failed", "Try again."),
    (ARM, 7399): ("the arm service failed", "Try again."),
    (ARM, 7400): ("its arms are in use by another motion", "Wait until it has ended, or stop it."),
    (ARM, 7401): ("its arms hold a pose", "Release them (preset 99), or repeat the same preset."),
    (ARM, 7402): ("there is no such action", "List the actions: they differ from robot to robot."),
    (ARM, 7403): ("the action's file cannot be read", "Teach it again, or delete it."),
    (ARM, 7404): (
        "its controller's state does not allow it",
        f"Make it stand balanced: {m.ANY_STAND_BUTTONS}.",
    ),
    (ARM, 7405): (
        "filename already exists: the robot has an action of that name",
        "Choose another name.",
    ),
    (ARM, 7406): ("its battery is low", "Charge it."),
    (ARM, 7407): ("a motor reports an error", "Look at the robot's faults; let it cool."),
}


def explain(service: str, code: int) -> tuple[str, str]:
    """Return what the code of a service's response means, and what to do about it."""
    if code == NO_STATUS:
        return "its answer has no status", "Look at what the robot does."
    unknown = ("for a reason it does not explain", "Look the code up in the docs.")
    return CODES.get((service, code)) or CODES.get(("", code), unknown)


ARM_STATE_TOPIC = "rt/arm/action/state"
"""The topic on which a G1 reports ten times per second what its arms do; see `decode_arm_state`."""

AUDIO_TOPIC = "rt/audio_msg"
"""The topic on which a G1 reports recognised speech and whether it plays a sound; see
`decode_audio`."""

_T = TypeVar("_T")


class ArmApi(IntEnum):
    """The requests of the service `arm`."""

    EXECUTE_PRESET = 7106
    LIST_ACTIONS = 7107
    PLAY_TAUGHT = 7108
    RENAME_TAUGHT = 7109
    TEACH = 7110
    PAUSE_TEACHING = 7111
    DELETE_TAUGHT = 7112
    STOP_TAUGHT = 7113


class VoiceApi(IntEnum):
    """The requests of the service `voice`."""

    SPEAK = 1001
    RECOGNISE = 1002
    PLAY = 1003
    STOP = 1004
    GET_VOLUME = 1005
    SET_VOLUME = 1006
    SET_LIGHT = 1010


class SportApi(IntEnum):
    """The requests of the service `sport`, the motion controller."""

    GET_FSM = 7001
    GET_FSM_MODE = 7002
    GET_BALANCE_MODE = 7003
    GET_SWING_HEIGHT = 7004
    GET_STAND_HEIGHT = 7005
    GET_PHASE = 7006
    SET_FSM = 7101
    SET_BALANCE_MODE = 7102
    SET_SWING_HEIGHT = 7103
    SET_STAND_HEIGHT = 7104
    SET_VELOCITY = 7105
    SET_ARM_TASK = 7106
    SET_SPEED_MODE = 7107


class MotionSwitcherApi(IntEnum):
    """The requests of the service `motion_switcher`, which selects the controller."""

    CHECK_MODE = 1001
    SELECT_MODE = 1002
    RELEASE_MODE = 1003
    SET_SILENT = 1004
    GET_SILENT = 1005


class RobotStateApi(IntEnum):
    """The requests of the service `robot_state`."""

    SWITCH_SERVICE = 1001
    SET_REPORT_FREQUENCY = 1002
    LIST_SERVICES = 1003
    SET_LOW_POWER = 1004  # which of these two sets and which gets is a guess
    GET_LOW_POWER = 1005
    GET_PACKAGE_VERSION = 1006


APIS: dict[tuple[str, int], IntEnum] = {
    (service, api.value): api
    for service, apis in (
        (ARM, ArmApi),
        (SPORT, SportApi),
        (MOTION_SWITCHER, MotionSwitcherApi),
        (ROBOT_STATE, RobotStateApi),
        (VOICE, VoiceApi),
    )
    for api in apis
}
"""The meaning of an api id, by service and id."""

# An allow-list, not a deny-list: robots have a service, bashrunner, that runs scripts on their
# computer, and nothing in rote may ever be able to reach it.
SERVICES = frozenset(service for service, _ in APIS)
"""The services a request can be built for."""


# ---- JSON ---------------------------------------------------------------------------------------


def _refuse_constant(name: str) -> NoReturn:
    """Refuse NaN and Infinity, which Python's decoder accepts although they are not JSON."""
    raise ValueError(f"{name} is not JSON")


# Made once: `json.loads` and `json.dumps` with arguments make a new object for every text. Not
# strict, because robots put line breaks and other control characters into texts unescaped.
_READER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)
_IGNORED = "\ufeff\0"
"""Characters around a JSON text that are ignored: a byte order mark, and the NUL that ends a C
string.
"""
_WRITER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def read_json(text: str) -> object:
    """Return the value of a JSON text; a byte order mark and NULs around it are ignored."""
    try:
        # Most texts are objects or lists, which need not be searched for ignored characters.
        value: object = _READER.decode(text if text[:1] in "[{" else text.strip(_IGNORED))
    except (ValueError, RecursionError) as error:
        if text.endswith("\0"):
            return read_json(text.rstrip(_IGNORED))
        raise DecodeError(f"{text[:40]!r} cannot be read as JSON: {error}") from None
    return value


def write_json(value: object) -> str:
    """Return `value` as a JSON text in ASCII."""
    try:
        return _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequestError(f"this cannot be written as JSON: {error}") from None


def read_field(document: object, key: str, type_: type[_T], default: _T | None = None) -> _T:
    """Return the value of `key` in a JSON object, or `default`.

    Raises `PayloadError` if there is neither, or if the value is not of the type `type_`. Numbers
    must be finite and fit into 64 bits, as in DDS. A whole number is valid as a float, but a bool
    is not valid as a number.
    """
    if not isinstance(document, dict):
        raise PayloadError(f"expected an object with {key!r}, not a {type(document).__name__}")
    value = document.get(key, default)
    if type_ is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if not isinstance(value, type_) or (isinstance(value, bool) and type_ is not bool):
        raise PayloadError(f"{key!r} is missing or not a {type_.__name__}")
    if isinstance(value, int | float) and not -(2**63) <= value < 2**63:  # nor NaN, nor infinity
        raise PayloadError(f"{key!r} is too large")
    return value


# ---- requests and responses ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcRequest:
    """One request to one service."""

    service: str
    api_id: int
    id: int
    """Chosen by the client; the response repeats it."""
    parameter: str = ""
    priority: int = 0
    noreply: bool = False
    lease: int = 0
    binary: bytes = b""
    """Bytes beside the parameter, for example a sound; only DDS carries them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcResponse:
    """The answer to the request of the same service, api id and id."""

    service: str
    """Empty if the robot leaves it out; then the id alone identifies the request."""
    api_id: int
    """0 if the robot leaves it out."""
    id: int
    code: int = 0
    """0 means done, `NO_STATUS` not stated; `explain` returns the meaning of the others."""
    data: str = ""
    binary: bytes = b""

    @property
    def text(self) -> str:
        """The text of the answer: `data`, or if that is empty the bytes, if they are text."""
        if self.data or not self.binary:
            return self.data
        try:
            return self.binary.decode(errors="surrogatepass")
        except UnicodeDecodeError:
            return ""


_TOPIC_ENDS = {RpcRequest: "request", RpcResponse: "response"}


def make_topic(message: RpcRequest | RpcResponse) -> str:
    """Return the topic on which a request or a response is sent."""
    return f"rt/api/{message.service}/{_TOPIC_ENDS[type(message)]}"


def parse_topic(topic: str, message_type: type[RpcRequest] | type[RpcResponse]) -> str:
    """Return the service whose requests, or responses, are sent on `topic`."""
    end = _TOPIC_ENDS[message_type]
    service = topic.removeprefix("rt/api/").removesuffix(f"/{end}")
    if not service or topic != f"rt/api/{service}/{end}" or "/" in service:
        raise PayloadError(f"{topic[:80]!r} is not a topic for a {end}")
    return service


def check_service(service: str) -> None:
    """Raise `BadRequestError` for a service that rote never sends requests to."""
    if service not in SERVICES:
        known = ", ".join(sorted(SERVICES))
        raise BadRequestError(
            f"rote sends no requests to the service {service!r}", f"Allowed services: {known}."
        )


# ---- requests of the services -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A request without an id; the method `request` adds one."""

    service: str
    api_id: int
    parameter: str = ""
    binary: bytes = b""

    def request(self, number: int, *, noreply: bool = False) -> RpcRequest:
        """Return the request with the id `number`; with `noreply` the robot does not answer it."""
        check_service(self.service)
        return RpcRequest(
            service=self.service,
            api_id=self.api_id,
            id=number,
            parameter=self.parameter,
            noreply=noreply,
            binary=self.binary,
        )


LIST_ACTIONS = Call(ARM, ArmApi.LIST_ACTIONS)
"""Request the presets and taught actions; `decode_actions` reads the answer."""
KEEP_TEACHING = Call(ARM, ArmApi.TEACH, write_json({"action_name": ""}))
"""Keep teaching alive. Send it every second; after ten seconds without it the teaching ends."""
STOP_TEACHING = Call(ARM, ArmApi.TEACH)
"""End the recording and keep it."""
STOP_TAUGHT = Call(ARM, ArmApi.STOP_TAUGHT)
"""Stop the taught action that is playing; the arms return within about four seconds."""
GET_FSM = Call(SPORT, SportApi.GET_FSM)
"""Request the state of the motion controller; `decode_value` reads the answer."""
CHECK_MODE = Call(MOTION_SWITCHER, MotionSwitcherApi.CHECK_MODE)
"""Request which controller drives the robot; `decode_mode_check` reads the answer."""
LIST_SERVICES = Call(ROBOT_STATE, RobotStateApi.LIST_SERVICES)
"""Request the processes behind the services; `decode_running_services` reads the answer."""


def execute_preset(action: int) -> Call:
    """Return the call that performs a factory action; the answer comes when it is over."""
    # One of Unitree's clients sends "data", another "action_id"; "data" is proven (fw 1.5.3.8).
    return Call(ARM, ArmApi.EXECUTE_PRESET, write_json({"data": action}))


def speak(text: str, speaker: int, index: int) -> Call:
    """Return the call that speaks a text; `index` numbers the utterances."""
    parameter = {"index": index, "speaker_id": speaker, "text": text}
    return Call(VOICE, VoiceApi.SPEAK, write_json(parameter))


def play_sound(app: str, stream: str, pcm: bytes) -> Call:
    """Return the call that plays a part of a sound.

    A part with the same `stream` continues the sound; a part with another one interrupts it.
    """
    parameter = {"app_name": app, "stream_id": stream}
    return Call(VOICE, VoiceApi.PLAY, write_json(parameter), pcm)


def stop_sound(app: str) -> Call:
    """Return the call that ends the sounds of an application."""
    return Call(VOICE, VoiceApi.STOP, write_json({"app_name": app}))


def decode_audio(text: str) -> m.HeardSpeech | m.SoundState | None:
    """Return the message in a text on `AUDIO_TOPIC`; None if it is neither speech nor a state."""
    document = read_json(text)
    if not isinstance(document, dict):
        return None
    play_state, speech = document.get("play_state"), document.get("text")
    if isinstance(speech, str) and speech.strip():
        return m.HeardSpeech(speech.strip())
    if type(play_state) is int:
        return m.SoundState(play_state == 1)
    return None


def set_light(red: int, green: int, blue: int) -> Call:
    """Return the call that sets the colour of the head's light, 0 to 255 each.

    Send such calls at least 200 ms apart.
    """
    return Call(VOICE, VoiceApi.SET_LIGHT, write_json({"R": red, "G": green, "B": blue}))


def play_taught(name: str) -> Call:
    """Return the call that plays a taught action; the answer comes when it begins."""
    return Call(ARM, ArmApi.PLAY_TAUGHT, write_json({"action_name": _require_name(name)}))


def rename_taught(name: str, new_name: str) -> Call:
    """Return the call that renames a taught action."""
    names = {"pre_name": _require_name(name), "new_name": _require_new_name(new_name, None)}
    return Call(ARM, ArmApi.RENAME_TAUGHT, write_json(names))


def start_teaching(name: str) -> Call:
    """Return the call that makes the arms soft and starts recording.

    The robot overwrites a taught action of that name without asking.
    """
    return Call(ARM, ArmApi.TEACH, write_json({"action_name": _require_new_name(name)}))


def pause_teaching(*, paused: bool) -> Call:
    """Return the call that pauses the recording or resumes it.

    One source mentions it; no capture shows it.
    """
    return Call(ARM, ArmApi.PAUSE_TEACHING, write_json({"pause": paused}))


def delete_taught(name: str) -> Call:
    """Return the call that deletes a taught action.

    Some public projects mistake its api id for the one that plays an action.
    """
    return Call(ARM, ArmApi.DELETE_TAUGHT, write_json({"action_name": _require_name(name)}))


def set_fsm(fsm: int) -> Call:
    """Return the call that changes the state of the motion controller.

    Code 0 in the answer does not prove the change: read the state afterwards.
    """
    return Call(SPORT, SportApi.SET_FSM, encode_value(fsm))


def _require_name(name: str) -> str:
    # The robot checks all other names itself; with an empty name, api 7110 keeps teaching alive.
    if not name:
        raise BadRequestError("the name of the action is empty", "Enter a name.")
    return name


def _require_new_name(name: str, max_bytes: int | None = m.MAX_NAME_BYTES) -> str:
    # The robot and its client restrict names further; this checks only what can be sent.
    if problem := m.name_problem(name, max_bytes, in_use=True):
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}", "Choose another name."
        )
    return name


def decode_preset(parameter: str) -> int:
    """Return the id of the requested preset, which may be under either key or under both."""
    document = read_json(parameter)
    presets = {read_field(document, key, int, -1) for key in ("data", "action_id")} - {-1}
    if len(presets) != 1:
        raise PayloadError("the request must name exactly one preset")
    return presets.pop()


def decode_name(parameter: str, key: str = "action_name") -> str:
    """Return the name of a taught action under `key` in a request's parameter."""
    if name := read_field(read_json(parameter), key, str):
        return name
    raise PayloadError(f"{key!r} is empty")


def decode_rename(parameter: str) -> tuple[str, str]:
    """Return the old and the new name in the parameter of a request to rename an action."""
    return decode_name(parameter, "pre_name"), decode_name(parameter, "new_name")


def decode_teach(parameter: str) -> str | None:
    """Return the name under which to start recording, "" to keep recording, None to stop.

    Only an empty parameter means stop; an object without a name, such as `{}`, means keep.
    """
    return read_field(read_json(parameter), "action_name", str, "") if parameter else None


def decode_pause(parameter: str) -> bool:
    """Return whether the recording is to pause, from the parameter of `PAUSE_TEACHING`."""
    return read_field(read_json(parameter), "pause", bool)


# ---- answers of the services --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RpcPreset:
    """A factory action and its conditions; an empty condition is always met."""

    id: int
    name: str
    fsm: tuple[int, ...] = ()
    """The states of the motion controller in which it may be performed."""
    mode_machine: tuple[int, ...] = ()
    """The numbers of the machines that have it."""


@dataclass(frozen=True, slots=True)
class RpcTaughtAction:
    """A taught action."""

    name: str
    seconds: float


def encode_actions(presets: tuple[RpcPreset, ...], taught: tuple[RpcTaughtAction, ...]) -> str:
    """Return the answer to `LIST_ACTIONS`."""
    preset_entries: list[dict[str, Any]] = []
    for preset in presets:
        limits = {"fsm": preset.fsm, "mode_machine": preset.mode_machine}
        conditions = {key: list(values) for key, values in limits.items() if values}
        preset_entries.append({**conditions, "id": preset.id, "name": preset.name})
    taught_entries = [{"name": action.name, "time": action.seconds} for action in taught]
    return write_json([preset_entries, taught_entries])


class DecodedActions(NamedTuple):
    """The contents of an answer to `LIST_ACTIONS`."""

    presets: tuple[RpcPreset, ...]
    taught: tuple[RpcTaughtAction, ...]
    notes: tuple[str, ...] = ()
    """What could not be read, one sentence each; other entries are not affected."""


def decode_actions(data: str) -> DecodedActions:
    """Return the presets and the taught actions in an answer to `LIST_ACTIONS`, entry by entry.

    Two lists are usual. In a single list, or in a third, an entry with an id is a preset. A taught
    action without a name is called `?` and its position; one without a time lasts 0 s.
    """
    lists = read_json(data)
    if not isinstance(lists, list):
        raise PayloadError(f"the list of actions is {describe_value(lists)}, not two lists")
    reader = _ActionReader()
    if lists and not any(isinstance(part, list) for part in lists):
        lists = [lists]  # one list of entries, not a list of lists
    for index, entries in enumerate(lists):
        if not isinstance(entries, list):
            reader.notes.append(f"list {index + 1} of the actions is {describe_value(entries)}")
            continue
        if index > 1:
            reader.notes.append(f"list {index + 1} of the actions is not known to rote")
        is_usual = len(lists) > 1 and index < 2  # presets first, taught actions second
        for entry in entries:
            has_id = _read_preset_id(entry) is not None
            reader.read_entry(entry, is_preset=index == 0 if is_usual else has_id)
    return DecodedActions(tuple(reader.presets), tuple(reader.taught), tuple(reader.notes))


class _ActionReader:
    """Reads a list of actions entry by entry, and collects notes on invalid entries."""

    def __init__(self) -> None:
        self.presets: list[RpcPreset] = []
        self.taught: list[RpcTaughtAction] = []
        self.notes: list[str] = []

    def read_entry(self, entry: object, *, is_preset: bool) -> None:
        """Process one entry of either kind."""
        if is_preset:
            self._read_preset(entry)
        else:
            self._read_taught(entry)

    def _read_preset(self, entry: object) -> None:
        preset_id, index = _read_preset_id(entry), len(self.presets) + 1
        label = f"preset {preset_id if preset_id is not None else index}"
        name = self._read_name(entry, label, index)
        if preset_id is None:
            self.notes.append(
                f"the preset {describe_value(name)} has no id, so it cannot be played"
            )
            return
        fsm = self._read_condition(entry, "fsm", name)
        machine = self._read_condition(entry, "mode_machine", name)
        self.presets.append(RpcPreset(preset_id, name, fsm, machine))

    def _read_taught(self, entry: object) -> None:
        index = len(self.taught) + 1
        name = self._read_name(entry, f"taught action {index}", index)
        time = entry.get("time") if isinstance(entry, dict) else None
        seconds = read_number(time)
        if seconds is None or not 0.0 <= seconds < 2**31:
            self.notes.append(
                f"duration of {describe_value(name)} unknown: 'time' is {describe_value(time)}"
            )
            seconds = 0.0
        self.taught.append(RpcTaughtAction(name, seconds))

    def _read_name(self, entry: object, label: str, index: int) -> str:
        """Return an entry's name, or `?` and its index; `label` is what a note calls the entry."""
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(name, str):
            return name
        self.notes.append(f"{label} has no name: {describe_value(entry)}")
        return f"?{index}"

    def _read_condition(self, entry: object, key: str, name: str) -> tuple[int, ...]:
        """Return the numbers under `key`, which may be a list or one number; note invalid ones."""
        value = entry.get(key) if isinstance(entry, dict) else None
        if value is None:
            return ()
        numbers = [read_whole(item) for item in (value if isinstance(value, list) else [value])]
        if None in numbers:
            self.notes.append(
                f"{key!r} of the preset {describe_value(name)} is {describe_value(value)}"
            )
        return tuple(value for value in numbers if value is not None)


def _read_preset_id(entry: object) -> int | None:
    """Return a preset's id from its object or from a bare number; None without one."""
    if isinstance(entry, dict):
        return read_whole(entry.get("id"))
    return None if isinstance(entry, str) else read_whole(entry)


def encode_value(value: int) -> str:
    """Return one number in the form that `sport` takes and answers."""
    return write_json({"data": value})


def decode_value(data: str) -> int:
    """Return the number in a request to `sport`, or in its answer."""
    document = read_json(data)
    value = read_whole(document.get("data") if isinstance(document, dict) else document)
    if value is None:
        raise PayloadError(f"expected a whole number as 'data', not {describe_value(document)}")
    return value


def encode_mode_check(name: str, form: str = "0") -> str:
    """Return the answer to `CHECK_MODE`."""
    return write_json({"form": form, "name": name})


def decode_mode_check(data: str) -> str:
    """Return the controller's name in an answer to `CHECK_MODE`; an empty one means debug mode."""
    return read_field(read_json(data), "name", str)


def decode_running_services(data: str) -> frozenset[str]:
    """Return the names of the running processes (status 0) in an answer to `LIST_SERVICES`."""
    services = read_json(data)
    if not isinstance(services, list):
        raise PayloadError(f"expected a list of services, not a {type(services).__name__}")
    return frozenset(
        name
        for service in services
        if isinstance(service, dict) and read_whole(service.get("status")) == 0
        if isinstance(name := service.get("name"), str)
    )


class RpcActivity(Enum):
    """The activities of the arms."""

    IDLE = "idle"
    RECORDING = "recording"
    PLAYING = "playing"
    RELEASING = "releasing"
    PRESET = "preset"


_ACTIVITIES = {
    0: RpcActivity.IDLE,
    -1: RpcActivity.RECORDING,
    100: RpcActivity.PLAYING,
    99: RpcActivity.RELEASING,
}


@dataclass(frozen=True, slots=True)
class ArmState:
    """What the arms do, as published on `ARM_STATE_TOPIC`."""

    holding: bool = False
    """Whether the arms hold a pose."""
    id: int = 0
    """A preset's id, or a number that means another activity."""
    name: str = ""

    @property
    def activity(self) -> RpcActivity:
        """The activity that the id means; any unlisted id is a preset's."""
        return _ACTIVITIES.get(self.id, RpcActivity.PRESET)

    @property
    def label(self) -> str:
        """What the arms do, as shown to the user."""
        preset_id = f" {self.id}" if self.activity is RpcActivity.PRESET else ""
        name = f" ({self.name})" if self.name else ""
        return self.activity.value + preset_id + name + (", holding" if self.holding else "")


def encode_arm_state(state: ArmState) -> str:
    """Return the text that a robot publishes on `ARM_STATE_TOPIC`."""
    return write_json({"holding": state.holding, "id": state.id, "name": state.name})


def decode_arm_state(text: str) -> ArmState:
    """Return the state in a text published on `ARM_STATE_TOPIC`."""
    return read_arm_state(read_json(text))


def read_arm_state(value: object) -> ArmState:
    """Return the state of a robot's arms, from an object with an id or from a bare id."""
    document = value if isinstance(value, dict) else {"id": value}
    state_id = read_whole(document.get("id"))
    if state_id is None:
        raise PayloadError(
            f"'id' of the arms' state must be a number, not {describe_value(document.get('id'))}"
        )
    holding, name = document.get("holding"), document.get("name")
    return ArmState(
        holding=holding is True or bool(read_whole(holding)),  # a number counts too
        id=state_id,
        name=name if isinstance(name, str) else "",
    )
