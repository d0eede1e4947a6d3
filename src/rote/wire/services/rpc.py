"""Requests and responses: the layer that WebRTC and DDS share, and the services of a G1.

    rt/api/<service>/request    identity {id, api_id}, policy {priority, noreply}, lease {id};
                                parameter, a text: JSON or nothing
    rt/api/<service>/response   identity {id, api_id}, status {code}; data, a text; binary

An api id means something only together with its service: 7106 executes a preset of `arm` and is an
arm task of `sport`. Decoders raise `DecodeError` and nothing else, for any input at all. Facts are
from spec/datachannel.md and spec/dds.md; what is a guess there is called one here.
"""

import json
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple, NoReturn, TypeVar

from rote import messages as m
from rote.errors import BadRequestError, DecodeError, PayloadError
from rote.wire.services.lenient import number, seen, whole

ARM, SPORT, VOICE = "arm", "sport", "voice"
MOTION_SWITCHER, ROBOT_STATE = "motion_switcher", "robot_state"

NO_STATUS = -(2**31)
"""The code of a response without a status."""

# What a code means and what to do about it, by service ("" is any) and code: numbers clash, and
# 7001 to 7009 are codes of one service and api ids of another.
CODES: dict[tuple[str, int], tuple[str, str]] = {
    ("", 0): ("done", ""),
    ("", 100): ("it could not accept the values sent", "Check them against the service's limits."),
    ("", 3001): ("something unknown went wrong", "Try again; look at the robot's own messages."),
    ("", 3102): ("nobody took the request", "See that the service runs and is not in debug mode."),
    ("", 3103): ("the client does not know this api", "Use a client as new as the robot."),
    ("", 3104): (
        "the service did not answer in time",
        "Look at what the robot does, then ask again.",
    ),
    ("", 3105): ("the answer was to another question", "Ask again."),
    ("", 3106): ("the answer could not be read", "Compare the versions of both ends."),
    ("", 3107): ("the client's lease is not valid", "Take the lease again."),
    ("", 3201): ("the service could not send its answer", "Look at what the robot does."),
    ("", 3202): ("the service failed inside", "Try again; restart the robot if it stays so."),
    ("", 3203): (
        "the service does not know this api",
        "The robot's software may be older: update it.",
    ),
    ("", 3204): ("it could not read or accept the values sent", "Check names and numbers."),
    ("", 3205): ("another client holds the lease", "Let the other client end first."),
    ("", 3206): ("there is no such lease", "Take the lease again."),
    ("", 3207): ("there is a lease already", "Let the other client end first."),
    (SPORT, 4101): ("the path sent is not valid", "Check its points."),
    (SPORT, 4201): ("the motion took too long", "Try again."),
    (SPORT, 4205): (
        "the motion controller is not initialised",
        "Wait until the robot has started.",
    ),
    (SPORT, 7301): (
        "the controller's state is not available",
        "Make the robot stand first: L2+UP.",
    ),
    (SPORT, 7302): ("there is no such controller state", "Ask the robot which it has."),
    (SPORT, 7303): ("there is no such task", "Choose another."),
    (SPORT, 7304): ("the controller may not return to that state", "Damp it first: L2+B."),
    (ROBOT_STATE, 5201): ("the service could not be switched", "Ask for the list of services."),
    (ROBOT_STATE, 5202): ("that service is protected", "It cannot be switched off."),
    (MOTION_SWITCHER, 7001): ("it could not accept the values sent", "Check them."),
    (MOTION_SWITCHER, 7002): ("it is switching already", "Wait a moment and ask again."),
    (MOTION_SWITCHER, 7003): ("its event failed", "Ask again."),
    (MOTION_SWITCHER, 7004): ("there is no controller of that name", "On a G1 it is: ai."),
    (MOTION_SWITCHER, 7005): ("its command failed", "Ask again."),
    (MOTION_SWITCHER, 7006): ("the check failed", "Ask again."),
    (MOTION_SWITCHER, 7007): ("the controller could not be selected", "Damp the robot, ask again."),
    (MOTION_SWITCHER, 7008): ("the controller could not be released", "Damp the robot, ask again."),
    (MOTION_SWITCHER, 7009): ("customising failed", "Ask again."),
    (ARM, 7399): ("the arm service failed", "Try again."),
    (ARM, 7400): ("its arms are in use by another motion", "Wait until it has ended, or stop it."),
    (ARM, 7401): ("its arms hold a pose", "Release them (preset 99), or repeat the same preset."),
    (ARM, 7402): ("there is no such action", "List what there is; it differs from robot to robot."),
    (ARM, 7403): ("the action's file cannot be read", "Teach it again, or delete it."),
    (ARM, 7404): (
        "its controller's state does not allow it",
        "Make it stand balanced: L2+UP, R1+X.",
    ),
    (ARM, 7405): ("an action of that name already exists", "Choose another name."),
    (ARM, 7406): ("its battery is low", "Charge it."),
    (ARM, 7407): ("a motor reports an error", "Look at the robot's faults; let it cool."),
}


def explain(service: str, code: int) -> tuple[str, str]:
    """Return what a service's code means and what to do about it."""
    if code == NO_STATUS:
        return "its answer does not say whether it was done", "Look at what the robot does."
    unknown = ("for a reason it does not explain", "Look the code up in the docs.")
    return CODES.get((service, code)) or CODES.get(("", code), unknown)


ARM_STATE_TOPIC = "rt/arm/action/state"
"""The topic on which a G1 reports ten times per second what its arms do; see `decode_arm_state`."""

AUDIO_TOPIC = "rt/audio_msg"
"""The topic on which a G1 reports what it hears, and whether it plays a sound; see
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


def _refuse_constant(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


# Made once: `json.loads` and `json.dumps` with arguments make a new one for every text. Robots put
# line breaks and other control characters into texts unescaped.
_READER = json.JSONDecoder(parse_constant=_refuse_constant, strict=False)
_AROUND = "\ufeff\0"
"""Characters around a JSON text that are ignored: a byte order mark, and closing zeros of C
strings.
"""
_WRITER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


def read_json(text: str) -> object:
    """Return the value of a JSON text."""
    try:
        value: object = _READER.decode(text if text[:1] in "[{" else text.strip(_AROUND))
    except (ValueError, RecursionError) as error:
        if text.endswith("\0"):
            return read_json(text.rstrip(_AROUND))
        raise DecodeError(f"{text[:40]!r} cannot be read as JSON: {error}") from None
    return value


def write_json(value: object) -> str:
    """Return `value` as a JSON text in ASCII."""
    try:
        return _WRITER.encode(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise BadRequestError(f"this cannot be written as JSON: {error}") from None


def read(document: object, key: str, kind: type[_T], default: _T | None = None) -> _T:
    """Return the value of `key` in an object; it must be of `kind`, and present unless there is a
    default.

    Numbers must be finite and fit into 64 bits, as in DDS.
    """
    if not isinstance(document, dict):
        raise PayloadError(f"a {type(document).__name__} where an object with {key!r} belongs")
    value = document.get(key, default)
    if kind is float and type(value) is int and abs(value) < 2**63:
        value = float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise PayloadError(f"{key!r} is missing or not a {kind.__name__}")
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
        """The text of the answer, which some robots send after it, as bytes."""
        if self.data or not self.binary:
            return self.data
        try:
            return self.binary.decode(errors="surrogatepass")
        except UnicodeDecodeError:
            return ""


_TOPIC_ENDS = {RpcRequest: "request", RpcResponse: "response"}


def topic_of(message: RpcRequest | RpcResponse) -> str:
    """Return the topic of a request or a response."""
    return f"rt/api/{message.service}/{_TOPIC_ENDS[type(message)]}"


def service_of(topic: str, kind: type[RpcRequest] | type[RpcResponse]) -> str:
    """Return the service whose requests, or responses, use `topic`."""
    end = _TOPIC_ENDS[kind]
    service = topic.removeprefix("rt/api/").removesuffix(f"/{end}")
    if not service or topic != f"rt/api/{service}/{end}" or "/" in service:
        raise PayloadError(f"{topic[:80]!r} is not a topic for a {end}")
    return service


def check_service(service: str) -> None:
    """Raise `BadRequestError` for a service that rote never sends requests to."""
    if service not in SERVICES:
        known = ", ".join(sorted(SERVICES))
        raise BadRequestError(f"rote does not ask a service {service!r}", f"It asks: {known}.")


# ---- requests of the services -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Call:
    """A request without its number; `request` adds one."""

    service: str
    api_id: int
    parameter: str = ""
    binary: bytes = b""

    def request(self, number: int, *, noreply: bool = False) -> RpcRequest:
        """Return the request with the id `number`."""
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
"""Asks for the presets and taught actions; `decode_actions` reads the answer."""
KEEP_TEACHING = Call(ARM, ArmApi.TEACH, write_json({"action_name": ""}))
"""Keeps teaching alive. Send it every second; after ten seconds without it the teaching ends."""
STOP_TEACHING = Call(ARM, ArmApi.TEACH)
"""End the recording and keep it."""
STOP_TAUGHT = Call(ARM, ArmApi.STOP_TAUGHT)
"""Stop the taught action that is playing; the arms return within about four seconds."""
GET_FSM = Call(SPORT, SportApi.GET_FSM)
"""Asks for the state of the motion controller; `decode_value` reads the answer."""
CHECK_MODE = Call(MOTION_SWITCHER, MotionSwitcherApi.CHECK_MODE)
"""Asks which controller drives the robot; `decode_mode_check` reads the answer."""


def execute_preset(action: int) -> Call:
    """Perform a factory action; the answer comes when it is over."""
    # Of Unitree's clients one sends "data" and one "action_id"; "data" is proven (fw 1.5.3.8).
    return Call(ARM, ArmApi.EXECUTE_PRESET, write_json({"data": action}))


def speak(text: str, speaker: int, index: int) -> Call:
    """Speak a text; `index` numbers the utterances."""
    parameter = {"index": index, "speaker_id": speaker, "text": text}
    return Call(VOICE, VoiceApi.SPEAK, write_json(parameter))


def play_sound(app: str, stream: str, pcm: bytes) -> Call:
    """Play a part of a sound: the same stream id continues it, another one interrupts it."""
    parameter = {"app_name": app, "stream_id": stream}
    return Call(VOICE, VoiceApi.PLAY, write_json(parameter), pcm)


def stop_sound(app: str) -> Call:
    """End the sounds of an application."""
    return Call(VOICE, VoiceApi.STOP, write_json({"app_name": app}))


def decode_audio(text: str) -> m.HeardSpeech | m.SoundState | None:
    """Read a message on `AUDIO_TOPIC`; None if it is neither speech nor a sound state."""
    document = read_json(text)
    if not isinstance(document, dict):
        return None
    state, heard = document.get("play_state"), document.get("text")
    if isinstance(heard, str) and heard.strip():
        return m.HeardSpeech(heard.strip())
    if type(state) is int:
        return m.SoundState(state == 1)
    return None


def set_light(red: int, green: int, blue: int) -> Call:
    """Give the head's light a colour, 0 to 255 each; calls are 200 ms apart."""
    return Call(VOICE, VoiceApi.SET_LIGHT, write_json({"R": red, "G": green, "B": blue}))


def play_taught(name: str) -> Call:
    """Play a taught action; the answer comes when it begins."""
    return Call(ARM, ArmApi.PLAY_TAUGHT, write_json({"action_name": _require_name(name)}))


def rename_taught(name: str, new_name: str) -> Call:
    """Rename a taught action."""
    names = {"pre_name": _require_name(name), "new_name": _require_new_name(new_name, None)}
    return Call(ARM, ArmApi.RENAME_TAUGHT, write_json(names))


def start_teaching(name: str) -> Call:
    """Make the arms soft and record; a taught action of that name is overwritten without asking."""
    return Call(ARM, ArmApi.TEACH, write_json({"action_name": _require_new_name(name)}))


def pause_teaching(*, paused: bool) -> Call:
    """Pause the recording or resume it. One source mentions this; no capture shows it."""
    return Call(ARM, ArmApi.PAUSE_TEACHING, write_json({"pause": paused}))


def delete_taught(name: str) -> Call:
    """Delete a taught action; some public projects mistake this api for playing one."""
    return Call(ARM, ArmApi.DELETE_TAUGHT, write_json({"action_name": _require_name(name)}))


def set_fsm(fsm: int) -> Call:
    """Change the state of the motion controller; code 0 does not prove it, so ask afterwards."""
    return Call(SPORT, SportApi.SET_FSM, encode_value(fsm))


def _require_name(name: str) -> str:
    # The robot checks the length of an existing name, but without a name 7110 means something else.
    if not name:
        raise BadRequestError("an action without a name", "Name it.")
    return name


def _require_new_name(name: str, most_bytes: int | None = m.MAX_NAME_BYTES) -> str:
    # Which names a new action may get is up to the robot and its client; here is what can be sent.
    if problem := m.name_problem(name, most_bytes, in_use=True):
        raise BadRequestError(f"the name {name!r} cannot be used: {problem}", "Choose another.")
    return name


def decode_preset(parameter: str) -> int:
    """Return the requested preset, under either key or under both."""
    document = read_json(parameter)
    presets = {read(document, key, int, -1) for key in ("data", "action_id")} - {-1}
    if len(presets) != 1:
        raise PayloadError("the preset is missing, or there are two")
    return presets.pop()


def decode_name(parameter: str, key: str = "action_name") -> str:
    """Return the taught action to be played or deleted."""
    if name := read(read_json(parameter), key, str):
        return name
    raise PayloadError(f"{key!r} is empty")


def decode_rename(parameter: str) -> tuple[str, str]:
    """Return the old and the new name."""
    return decode_name(parameter, "pre_name"), decode_name(parameter, "new_name")


def decode_teach(parameter: str) -> str | None:
    """Return the name under which to start recording, "" to continue, None to stop."""
    return read(read_json(parameter), "action_name", str) if parameter else None


def decode_pause(parameter: str) -> bool:
    """Return whether the recording is to pause."""
    return read(read_json(parameter), "pause", bool)


# ---- answers of the services --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RpcPreset:
    """A factory action and its conditions, which are empty if every robot has it in any state."""

    id: int
    name: str
    fsm: tuple[int, ...] = ()
    mode_machine: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RpcTaughtAction:
    """A taught action."""

    name: str
    seconds: float


def encode_actions(presets: tuple[RpcPreset, ...], taught: tuple[RpcTaughtAction, ...]) -> str:
    """Return the answer to `LIST_ACTIONS`."""
    first: list[dict[str, Any]] = []
    for preset in presets:
        gates = {"fsm": preset.fsm, "mode_machine": preset.mode_machine}
        open_gates = {key: list(values) for key, values in gates.items() if values}
        first.append({**open_gates, "id": preset.id, "name": preset.name})
    return write_json([first, [{"name": t.name, "time": t.seconds} for t in taught]])


class DecodedActions(NamedTuple):
    """The contents of an answer to `LIST_ACTIONS`."""

    presets: tuple[RpcPreset, ...]
    taught: tuple[RpcTaughtAction, ...]
    notes: tuple[str, ...] = ()
    """What could not be read, one sentence each; the rest is not affected."""


def decode_actions(data: str) -> DecodedActions:
    """Return the presets and the taught actions in an answer to `LIST_ACTIONS`, entry by entry.

    Two lists are usual. In a single list, or in a third, an entry with an id is a preset. A taught
    action without a name is called `?` and its position; one without a time lasts 0 s.
    """
    lists = read_json(data)
    if not isinstance(lists, list):
        raise PayloadError(f"the list of actions is {seen(lists)}, not two lists")
    reader = _ActionReader()
    if lists and not any(isinstance(part, list) for part in lists):
        lists = [lists]  # its entries are not in a list of their own
    for index, entries in enumerate(lists):
        if not isinstance(entries, list):
            reader.notes.append(f"list {index + 1} of the actions is {seen(entries)}")
            continue
        if index > 1:
            reader.notes.append(f"list {index + 1} of the actions is one that rote does not know")
        usual = len(lists) > 1 and index < 2
        for entry in entries:
            reader.read(entry, preset=index == 0 if usual else _id_of(entry) is not None)
    return DecodedActions(tuple(reader.presets), tuple(reader.taught), tuple(reader.notes))


class _ActionReader:
    """Reads entry by entry, and notes what is odd."""

    def __init__(self) -> None:
        self.presets: list[RpcPreset] = []
        self.taught: list[RpcTaughtAction] = []
        self.notes: list[str] = []

    def read(self, entry: object, *, preset: bool) -> None:
        """Process one entry of either kind."""
        (self._read_preset if preset else self._read_taught)(entry)

    def _read_preset(self, entry: object) -> None:
        preset_id, index = _id_of(entry), len(self.presets) + 1
        name = self._read_name(
            entry, f"preset {preset_id if preset_id is not None else index}", index
        )
        if preset_id is None:
            self.notes.append(f"the preset {seen(name)} has no id, so it cannot be played")
            return
        fsm, machine = (
            self._read_condition(entry, "fsm", name),
            self._read_condition(entry, "mode_machine", name),
        )
        self.presets.append(RpcPreset(preset_id, name, fsm, machine))

    def _read_taught(self, entry: object) -> None:
        index = len(self.taught) + 1
        name = self._read_name(entry, f"taught action {index}", index)
        time = entry.get("time") if isinstance(entry, dict) else None
        seconds = number(time)
        if seconds is None or not 0.0 <= seconds < 2**31:
            self.notes.append(f"the duration of {seen(name)} is unknown: 'time' is {seen(time)}")
            seconds = 0.0
        self.taught.append(RpcTaughtAction(name, seconds))

    def _read_name(self, entry: object, what: str, index: int) -> str:
        name = entry.get("name") if isinstance(entry, dict) else entry
        if isinstance(name, str):
            return name
        self.notes.append(f"{what} has no name: {seen(entry)}")
        return f"?{index}"

    def _read_condition(self, entry: object, key: str, name: str) -> tuple[int, ...]:
        value = entry.get(key) if isinstance(entry, dict) else None
        if value is None:
            return ()
        numbers = [whole(each) for each in (value if isinstance(value, list) else [value])]
        if None in numbers:
            self.notes.append(f"{key!r} of the preset {seen(name)} is {seen(value)}")
        return tuple(each for each in numbers if each is not None)


def _id_of(entry: object) -> int | None:
    """Return a preset's id; a bare number is one too."""
    if isinstance(entry, dict):
        return whole(entry.get("id"))
    return None if isinstance(entry, str) else whole(entry)


def encode_value(value: int) -> str:
    """Return one number in the form that `sport` takes and answers."""
    return write_json({"data": value})


def decode_value(data: str) -> int:
    """Return the number that `sport` was asked to set, or answers with."""
    document = read_json(data)
    value = whole(document.get("data") if isinstance(document, dict) else document)
    if value is None:
        raise PayloadError(f"'data' is a whole number, not in {seen(document)}")
    return value


def encode_mode_check(name: str, form: str = "0") -> str:
    """Return the answer to `CHECK_MODE`."""
    return write_json({"form": form, "name": name})


def decode_mode_check(data: str) -> str:
    """Return the controller's name in an answer to `CHECK_MODE`; an empty one means debug mode."""
    return read(read_json(data), "name", str)


class RpcActivity(Enum):
    """What the arms can be doing."""

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
    id: int = 0
    name: str = ""

    @property
    def activity(self) -> RpcActivity:
        """What the id means."""
        return _ACTIVITIES.get(self.id, RpcActivity.PRESET)

    @property
    def label(self) -> str:
        """What the arms do, for a person."""
        number = f" {self.id}" if self.activity is RpcActivity.PRESET else ""
        name = f" ({self.name})" if self.name else ""
        return self.activity.value + number + name + (", holding" if self.holding else "")


def encode_arm_state(state: ArmState) -> str:
    """Return the text a robot publishes."""
    return write_json({"holding": state.holding, "id": state.id, "name": state.name})


def decode_arm_state(text: str) -> ArmState:
    """Return what a robot has published."""
    return read_arm_state(read_json(text))


def read_arm_state(value: object) -> ArmState:
    """Return the state of a robot's arms, from an object with an id or from a bare id."""
    document = value if isinstance(value, dict) else {"id": value}
    state_id = whole(document.get("id"))
    if state_id is None:
        raise PayloadError(f"'id' of the arms' state is a number, not {seen(document.get('id'))}")
    holding, name = document.get("holding"), document.get("name")
    return ArmState(
        holding=bool(whole(holding)) if not isinstance(holding, bool) else holding,
        id=state_id,
        name=name if isinstance(name, str) else "",
    )
