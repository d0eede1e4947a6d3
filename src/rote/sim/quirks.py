"""Known oddities of robot firmware, by name, that a simulated robot can reproduce.

Each was observed on a robot, in a recorded message or in another client's bug reports, or would
result from a small mistake in firmware. They are for testing clients: `rote sim --quirk NAME`.

`Quirk` has one hook for each kind of message that a quirk can change. Several quirks can be
combined; quirks with the same hook are applied in the table's order.
"""

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from rote.errors import BadRequestError
from rote.messages import Phase, RobotState

_T = TypeVar("_T")
Document = dict[str, Any]
UDP, WEBRTC, DDS = "udp", "webrtc", "dds"
SERVICES = (WEBRTC, DDS)
GROUPS = {
    "plays": "Playing, and the state of the arms",
    "joints": "States of the joints",
    "mode": "The mode",
    "lists": "The list of actions",
    "answers": "Answers and texts",
    "connection": "The connection",
    "frames": "UDP frames",
}
"""The groups in the order of the table, with a title for each."""


class Refused:
    """Marker in place of a value: requests for it get 3203, and it is not published."""


class Missing:
    """Marker in place of a value: the message has no such field."""


LATE_ARM_STATE_S = 3.0
LATE_ANSWER_S = 4.0
FIXED_TICK_MS = 81_000
SMALL_MESSAGE = 256
"""The longest message, in bytes, that a robot with `small-message-size` accepts."""
_CHUNK = 20
"""Characters per part of an answer that is split."""
_ESCAPED_LINE_BREAK = re.compile(r"(?<!\\)((?:\\\\)*)\\n")
"""`\\n` in JSON text; after an odd number of further backslashes it would be no line break."""


def _unchanged(value: Any) -> Any:
    """Return the message as it is: the hook of a quirk that does not change it."""
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class Quirk:
    """One oddity: its name, its description, and the hooks that implement it.

    A hook gets a message and returns the message that the robot sends instead.
    """

    name: str
    group: str
    wires: tuple[str, ...]
    what: str
    """The one-line description."""
    never_moves: bool = False
    busy_after_playing: bool = False
    arm_state: Callable[[Document], object] = _unchanged
    """The published arm state; None if nothing is published."""
    arm_state_late_s: float = 0.0
    lowstate: Callable[[Document], Document | None] = _unchanged
    """A joint state on the data channel; None if nothing is published."""
    state: Callable[[RobotState], RobotState | None] = _unchanged
    """A joint state for DDS, where no field can be missing; None if nothing is published."""
    lowstate_hz: float | None = None
    mode: Callable[[int], object] = _unchanged
    """The number of the mode, wherever it is sent."""
    actions: Callable[[list[Any]], object] = _unchanged
    """The lists of actions."""
    list_refused: bool = False
    answer_late_s: float = 0.0
    data: Callable[[str], str] = _unchanged
    """The text in an answer."""
    response: Callable[[Document], Document] = _unchanged
    """A whole answer of the data channel."""
    binary: bool = False
    """Whether the text of an answer is sent after it, in a binary frame."""
    max_chars: int | None = None
    """Maximum characters per message; longer answers are split."""
    message: Callable[[str], str] = _unchanged
    """A whole message of the data channel."""
    extra: tuple[str, ...] = ()
    """Messages that are sent before each answer."""
    description: Callable[[str], str] = _unchanged
    """The SDP of the robot's answer to an offer."""
    message_size: int | None = None
    """The longest message that the robot announces it accepts."""
    frame_state: Callable[[RobotState], RobotState] = _unchanged
    """A state before it is written as a UDP frame."""
    documented_joints: bool = False
    """Whether UDP frames contain 12 joints, whatever the client requests."""


# ---- hooks, or functions that make them ---------------------------------------------------------


def _remove_keys(*keys: str) -> Callable[[Document], Document]:
    """Return a hook that removes keys from a message."""
    return lambda document: {key: value for key, value in document.items() if key not in keys}


def _change_motors(change: Callable[[list[Any]], object]) -> Callable[[Document], Document]:
    """Return a hook that changes the motors in a joint state."""
    return lambda document: {**document, "motor_state": change(document["motor_state"])}


def _remove_imu(document: Document) -> Document:
    return {**document, "imu_state": {}}


def _change_each_taught(change: Callable[[Document], object]) -> Callable[[list[Any]], object]:
    """Return a hook that changes each taught action; the second list contains them."""
    return lambda lists: [lists[0], [change(entry) for entry in lists[1]]]


def _change_each_preset(change: Callable[[Document], object]) -> Callable[[list[Any]], object]:
    """Return a hook that changes each preset; the first list contains them."""
    return lambda lists: [[change(entry) for entry in lists[0]], lists[1]]


def _keep_names_only(lists: list[Any]) -> object:
    return [[entry.get("name", "") for entry in entries] for entries in lists]


def _add_preset(name: str) -> Callable[[list[Any]], object]:
    """Return a hook that adds a preset to the first list of actions."""
    return lambda lists: [[*lists[0], {"id": 98, "name": name}], lists[1]]


def _change_identity(change: Callable[[Document], Document]) -> Callable[[Document], Document]:
    """Return a hook that changes the part of an answer that identifies its request."""

    def change_header(body: Document) -> Document:
        header = body["header"]
        return {**body, "header": {**header, "identity": change(header["identity"])}}

    return _change_body(change_header)


def _change_body(change: Callable[[Document], Document]) -> Callable[[Document], Document]:
    """Return a hook that changes the `data` of an answer."""
    return lambda document: {**document, "data": change(document["data"])}


def _change_code(change: Callable[[int], object]) -> Callable[[Document], Document]:
    """Return a hook that changes the status code of an answer."""

    def change_header(body: Document) -> Document:
        header = body["header"]
        return {**body, "header": {**header, "status": {"code": change(header["status"]["code"])}}}

    return _change_body(change_header)


def _remove_status(body: Document) -> Document:
    header = {key: value for key, value in body["header"].items() if key != "status"}
    return {**body, "header": header}


def _parse_answer_data(body: Document) -> Document:
    """Replace the JSON text in an answer by its value."""
    try:
        return {**body, "data": json.loads(body["data"])}
    except ValueError:  # a plain text, or one part of a longer one
        return body


def _unescape_line_breaks(text: str) -> str:
    """Unescape the line breaks in a JSON text; add others after its first comma and at its end."""
    return _ESCAPED_LINE_BREAK.sub(r"\1\n", text).replace(",", ",\r\n", 1) + "\n"


def _add_unreadable_candidate(sdp: str) -> str:
    return sdp.replace("a=candidate:", "a=candidate:1 1 udp here\r\na=candidate:", 1)


def _fix_time(state: RobotState) -> RobotState:
    return replace(state, time_us=1000 * FIXED_TICK_MS)


def _reduce_to_documented_state(state: RobotState) -> RobotState:
    """Keep only what the documents mention: the joints, and the flag that the arms are soft."""
    return replace(
        state, mode=-1, recording=False, phase=Phase.NONE, stopped_early=False, time_us=0
    )


def _make_slots_quirk(count: int) -> Quirk:
    """Return a quirk that pads the motors of joint states to `count`, or cuts them."""
    return Quirk(
        name=f"{count}-slots",
        group="joints",
        wires=(WEBRTC,),
        what=f"states of the joints have {count} motor slots, whatever joints the robot has",
        lowstate=_change_motors(lambda motors: (motors + [{"q": 0.0, "dq": 0.0}] * count)[:count]),
    )


# ---- the table ----------------------------------------------------------------------------------

_TABLE = (
    Quirk(
        name="never-moves",
        group="plays",
        wires=(UDP, *SERVICES),
        what="a request to play is answered with 0, but the robot does not move",
        never_moves=True,
    ),
    Quirk(
        name="no-arm-state",
        group="plays",
        wires=SERVICES,
        what="`rt/arm/action/state` is never published",
        arm_state=lambda _: None,
    ),
    Quirk(
        name="arm-state-number",
        group="plays",
        wires=SERVICES,
        what="the arms' state is a bare number, such as 100",
        arm_state=lambda document: document["id"],
    ),
    Quirk(
        name="arm-state-no-names",
        group="plays",
        wires=SERVICES,
        what="the arms' state has an id and no name",
        arm_state=_remove_keys("name"),
    ),
    Quirk(
        name="arm-state-other-shape",
        group="plays",
        wires=SERVICES,
        what="the arms' state is an object of another shape, without an id",
        arm_state=lambda document: {"state": {"running": document["id"] != 0}},
    ),
    Quirk(
        name="arm-state-late",
        group="plays",
        wires=SERVICES,
        what=f"the arms' state is published {LATE_ARM_STATE_S:g} s late",
        arm_state_late_s=LATE_ARM_STATE_S,
    ),
    Quirk(
        name="busy-after-playing",
        group="plays",
        wires=(UDP, *SERVICES),
        what="a request to play is refused with 7400 until the last release has ended",
        busy_after_playing=True,
    ),
    Quirk(
        name="no-lowstate",
        group="joints",
        wires=SERVICES,
        what="states of the joints are never published (`rt/lf/lowstate`, on DDS `rt/lowstate`)",
        lowstate=lambda _: None,
        state=lambda _: None,
    ),
    Quirk(
        name="no-tick",
        group="joints",
        wires=SERVICES,
        what="states of the joints have no `tick`; on DDS it is 0",
        lowstate=_remove_keys("tick"),
        state=lambda state: replace(state, time_us=0),
    ),
    Quirk(
        name="fixed-tick",
        group="joints",
        wires=(UDP, *SERVICES),
        what="the clock of its states, `tick`, never advances",
        lowstate=lambda document: {**document, "tick": FIXED_TICK_MS},
        state=_fix_time,
        frame_state=_fix_time,
    ),
    Quirk(
        name="no-dq",
        group="joints",
        wires=SERVICES,
        what="states of the joints have no velocity `dq`; on DDS it is 0",
        lowstate=_change_motors(lambda motors: [_remove_keys("dq")(motor) for motor in motors]),
        state=lambda state: replace(state, velocities_rad_s=(0.0,) * len(state.velocities_rad_s)),
    ),
    Quirk(
        name="no-imu",
        group="joints",
        wires=SERVICES,
        what="states of the joints have no accelerometer and no gyroscope; on DDS they are 0",
        lowstate=_remove_imu,
        state=lambda state: replace(
            state, accelerometer_m_s2=(0.0,) * 3, gyroscope_rad_s=(0.0,) * 3
        ),
    ),
    Quirk(
        name="null-motors",
        group="joints",
        wires=(WEBRTC,),
        what="every motor in a state of the joints is null",
        lowstate=_change_motors(lambda motors: [None] * len(motors)),
    ),
    Quirk(
        name="some-null-motors",
        group="joints",
        wires=(WEBRTC,),
        what="every fifth motor in a state of the joints is null",
        lowstate=_change_motors(
            lambda motors: [None if index % 5 == 0 else motor for index, motor in enumerate(motors)]
        ),
    ),
    _make_slots_quirk(20),
    _make_slots_quirk(29),
    _make_slots_quirk(12),
    Quirk(
        name="lowstate-1hz",
        group="joints",
        wires=SERVICES,
        what="states of the joints are published once a second",
        lowstate_hz=1.0,
    ),
    Quirk(
        name="lowstate-500hz",
        group="joints",
        wires=SERVICES,
        what="states of the joints are published 500 times a second, also over WebRTC",
        lowstate_hz=500.0,
    ),
    Quirk(
        name="mode-refused",
        group="mode",
        wires=SERVICES,
        what="a request for its mode (7001) is refused with 3203, and the mode is not published",
        mode=lambda _: Refused,
    ),
    Quirk(
        name="mode-minus-1",
        group="mode",
        wires=SERVICES,
        what="it reports the mode -1",
        mode=lambda _: -1,
    ),
    Quirk(
        name="mode-text",
        group="mode",
        wires=SERVICES,
        what='the number of its mode is a text: "500"',
        mode=lambda mode: str(int(mode)),
    ),
    Quirk(
        name="mode-float",
        group="mode",
        wires=SERVICES,
        what="the number of its mode has a fraction: 500.0",
        mode=float,
    ),
    Quirk(
        name="mode-null",
        group="mode",
        wires=SERVICES,
        what="the number of its mode is null",
        mode=lambda _: None,
    ),
    Quirk(
        name="mode-missing",
        group="mode",
        wires=SERVICES,
        what="the field of its mode is missing",
        mode=lambda _: Missing,
    ),
    Quirk(
        name="list-no-time",
        group="lists",
        wires=SERVICES,
        what="taught actions have no `time`",
        actions=_change_each_taught(_remove_keys("time")),
    ),
    Quirk(
        name="list-null-time",
        group="lists",
        wires=SERVICES,
        what="the `time` of taught actions is null",
        actions=_change_each_taught(lambda entry: {**entry, "time": None}),
    ),
    Quirk(
        name="list-text-time",
        group="lists",
        wires=SERVICES,
        what='the `time` of taught actions is a text with a unit: "3.2s"',
        actions=_change_each_taught(lambda entry: {**entry, "time": f"{entry.get('time')}s"}),
    ),
    Quirk(
        name="list-no-name",
        group="lists",
        wires=SERVICES,
        what="each list begins with an entry that has no name",
        actions=lambda lists: [[{"id": 98}, *lists[0]], [{"time": 3.2}, *lists[1]]],
    ),
    Quirk(
        name="list-float-id",
        group="lists",
        wires=SERVICES,
        what="ids of presets have a fraction: 99.0",
        actions=_change_each_preset(lambda entry: {**entry, "id": float(entry["id"])}),
    ),
    Quirk(
        name="list-null-fsm",
        group="lists",
        wires=SERVICES,
        what="the condition `fsm` of presets is null",
        actions=_change_each_preset(lambda entry: {**entry, "fsm": None}),
    ),
    Quirk(
        name="list-number-fsm",
        group="lists",
        wires=SERVICES,
        what="the condition `fsm` of presets is one number instead of a list",
        actions=_change_each_preset(lambda entry: {**entry, "fsm": 500}),
    ),
    Quirk(
        name="list-names-only",
        group="lists",
        wires=SERVICES,
        what="both lists contain only names",
        actions=_keep_names_only,
    ),
    Quirk(
        name="list-one",
        group="lists",
        wires=SERVICES,
        what="there is one list, with presets and taught actions",
        actions=lambda lists: [[*lists[0], *lists[1]]],
    ),
    Quirk(
        name="list-three",
        group="lists",
        wires=SERVICES,
        what="there is a third list, of something else",
        actions=lambda lists: [*lists, [{"name": "formation", "robots": 2}]],
    ),
    Quirk(
        name="list-refused",
        group="lists",
        wires=(UDP, *SERVICES),
        what="a request for the list of actions is refused",
        list_refused=True,
    ),
    Quirk(
        name="code-text",
        group="answers",
        wires=(WEBRTC,),
        what='the code of an answer is a text: "0"',
        response=_change_code(str),
    ),
    Quirk(
        name="code-float",
        group="answers",
        wires=(WEBRTC,),
        what="the code of an answer has a fraction: 0.0",
        response=_change_code(float),
    ),
    Quirk(
        name="no-status",
        group="answers",
        wires=(WEBRTC,),
        what="answers have neither a status nor a code",
        response=_change_body(_remove_status),
    ),
    Quirk(
        name="no-api-id",
        group="answers",
        wires=(WEBRTC,),
        what="answers have no api id",
        response=_change_identity(_remove_keys("api_id")),
    ),
    Quirk(
        name="id-text",
        group="answers",
        wires=(WEBRTC,),
        what='the id of an answer is a text: "17"',
        response=_change_identity(lambda identity: {**identity, "id": str(identity["id"])}),
    ),
    Quirk(
        name="data-object",
        group="answers",
        wires=(WEBRTC,),
        what="the data of an answer is an object instead of its JSON text",
        response=_change_body(_parse_answer_data),
    ),
    Quirk(
        name="empty-topic",
        group="answers",
        wires=(WEBRTC,),
        what="answers have an empty topic",
        response=lambda document: {**document, "topic": ""},
    ),
    Quirk(
        name="binary-answers",
        group="answers",
        wires=(WEBRTC,),
        what="the text of an answer follows it in a binary frame",
        binary=True,
    ),
    Quirk(
        name="chunked-answers",
        group="answers",
        wires=(WEBRTC,),
        what=f"answers are split into parts of {_CHUNK} characters",
        max_chars=_CHUNK,
    ),
    Quirk(
        name="byte-order-mark",
        group="answers",
        wires=SERVICES,
        what="texts begin with a byte order mark",
        data=lambda text: "\ufeff" + text if text else text,
        message=lambda text: "\ufeff" + text,
    ),
    Quirk(
        name="nul",
        group="answers",
        wires=SERVICES,
        what="texts end with a NUL character",
        data=lambda text: text + "\0" if text else text,
        message=lambda text: text + "\0",
    ),
    Quirk(
        name="line-breaks",
        group="answers",
        wires=SERVICES,
        what="texts contain line breaks, also within a name",
        actions=_add_preset("two\nlines"),
        data=_unescape_line_breaks,
        message=_unescape_line_breaks,
    ),
    Quirk(
        name="lone-surrogate",
        group="answers",
        wires=SERVICES,
        what="a name contains half a character: a lone surrogate",
        actions=_add_preset("half \ud83d"),
    ),
    Quirk(
        name="late-answers",
        group="answers",
        wires=SERVICES,
        what=f"every answer is {LATE_ANSWER_S:g} s late",
        answer_late_s=LATE_ANSWER_S,
    ),
    Quirk(
        name="unknown-messages",
        group="answers",
        wires=(WEBRTC,),
        what="messages of unknown types, and empty ones, precede each answer",
        extra=('{"type":"rtc_report","data":{"fps":15}}', '{"type":"news"}', "[]", ""),
    ),
    Quirk(
        name="unreadable-candidate",
        group="connection",
        wires=(WEBRTC,),
        what="its answer to an offer has an ICE candidate that cannot be read",
        description=_add_unreadable_candidate,
    ),
    Quirk(
        name="small-message-size",
        group="connection",
        wires=(WEBRTC,),
        what=f"it announces a maximum message size of {SMALL_MESSAGE} bytes",
        message_size=SMALL_MESSAGE,
    ),
    Quirk(
        name="frames-page",
        group="frames",
        wires=(UDP,),
        what="states have only bit 0 of the flags, and no metadata, as in the documents",
        frame_state=_reduce_to_documented_state,
    ),
    Quirk(
        name="frames-12-joints",
        group="frames",
        wires=(UDP,),
        what="states contain 12 joints, even for a client that requests all",
        documented_joints=True,
    ),
)
QUIRKS: dict[str, Quirk] = {quirk.name: quirk for quirk in _TABLE}
"""All quirks by name, in the order in which they are applied."""


class Quirks:
    """A combination of quirks.

    It has one method for each kind of message; each returns the message that the robot sends
    instead.
    """

    def __init__(self, chosen: Iterable[Quirk] = ()) -> None:
        by_name = {quirk.name: quirk for quirk in chosen}
        unlisted = tuple(quirk for name, quirk in by_name.items() if name not in QUIRKS)
        self.chosen = tuple(quirk for quirk in _TABLE if quirk.name in by_name) + unlisted
        quirks = self.chosen
        self.never_moves = any(quirk.never_moves for quirk in quirks)
        self.busy_after_playing = any(quirk.busy_after_playing for quirk in quirks)
        self.list_refused = any(quirk.list_refused for quirk in quirks)
        self.documented_joints = any(quirk.documented_joints for quirk in quirks)
        self.binary = any(quirk.binary for quirk in quirks)
        self.arm_state_late_s = max((quirk.arm_state_late_s for quirk in quirks), default=0.0)
        self.answer_late_s = max((quirk.answer_late_s for quirk in quirks), default=0.0)
        self.lowstate_hz = _find_first_not_none(quirk.lowstate_hz for quirk in quirks)
        self.max_chars = _find_first_not_none(quirk.max_chars for quirk in quirks)
        self.message_size = _find_first_not_none(quirk.message_size for quirk in quirks)
        self.extra = tuple(text for quirk in quirks for text in quirk.extra)

    def __bool__(self) -> bool:
        return bool(self.chosen)

    def change_arm_state(self, document: Document) -> object:
        """Return the arm state to publish; None if nothing is published."""
        result: object = document
        for quirk in self.chosen:
            if isinstance(result, dict):
                result = quirk.arm_state(result)
        return result

    def change_lowstate(self, document: Document) -> Document | None:
        """Return the joint state to publish on the data channel; None if nothing is published."""
        return self._apply_changes([quirk.lowstate for quirk in self.chosen], document)

    def change_state(self, state: RobotState) -> RobotState | None:
        """Return the joint state for DDS to encode; None if nothing is published."""
        return self._apply_changes([quirk.state for quirk in self.chosen], state)

    def change_mode(self, number: int) -> object:
        """Return the value to send as the mode: any JSON value, `Refused` or `Missing`."""
        changes = [quirk.mode for quirk in self.chosen if quirk.mode is not _unchanged]
        # Only one is applied: its result may not be a number any more.
        return changes[0](number) if changes else number

    def change_actions(self, lists: list[Any]) -> object:
        """Return the value to send as the two lists of actions."""
        result: object = lists
        for quirk in self.chosen:
            if isinstance(result, list) and len(result) > 1:  # otherwise there is no second list
                result = quirk.actions(result)
        return result

    def change_data(self, text: str) -> str:
        """Return the `data` text to send in an answer."""
        return self._apply_changes([quirk.data for quirk in self.chosen], text) or ""

    def change_response(self, document: Document) -> Document:
        """Return the whole answer to send on the data channel, as a JSON document."""
        return self._apply_changes([quirk.response for quirk in self.chosen], document) or {}

    def change_message(self, text: str) -> str:
        """Return the text to send as a message on the data channel."""
        return self._apply_changes([quirk.message for quirk in self.chosen], text) or ""

    def change_description(self, sdp: str) -> str:
        """Return the SDP to send in answer to an offer."""
        return self._apply_changes([quirk.description for quirk in self.chosen], sdp) or ""

    def change_frame_state(self, state: RobotState) -> RobotState:
        """Return the state to encode as a UDP frame."""
        return self._apply_changes([quirk.frame_state for quirk in self.chosen], state) or state

    @staticmethod
    def _apply_changes(changes: Iterable[Callable[[_T], _T | None]], value: _T) -> _T | None:
        """Apply the changes one after the other, until one returns None."""
        result: _T | None = value
        for change in changes:
            if result is not None:
                result = change(result)
        return result


def _find_first_not_none(values: Iterable[Any]) -> Any:
    return next((value for value in values if value is not None), None)


NO_QUIRKS = Quirks()


def quirks_named(names: Iterable[str]) -> Quirks:
    """Return the quirks of these names; one name may be a comma-separated list."""
    chosen = []
    for name in (part.strip() for text in names for part in text.split(",")):
        if not name:
            continue
        if name not in QUIRKS:
            raise BadRequestError(f"unknown quirk {name!r}", f"Known quirks: {', '.join(QUIRKS)}.")
        chosen.append(QUIRKS[name])
    return Quirks(chosen)
