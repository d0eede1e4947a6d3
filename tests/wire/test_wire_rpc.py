"""What services can be asked and what they answer, against texts seen on real robots."""

import contextlib
import dataclasses
import io
import json
import tokenize
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote import messages as m
from rote.errors import BadRequestError, DecodeError, PayloadError, RefusedError
from rote.session import rpc as session_rpc
from rote.wire.services import rpc
from rote.wire.services.rpc import (
    ArmApi,
    ArmState,
    Call,
    RpcActivity,
    RpcPreset,
    RpcRequest,
    RpcResponse,
    RpcTaughtAction,
)
from rote.wire.webrtc import channel

SOURCES = [Path(str(module.__file__)) for module in (rpc, channel, session_rpc)]
FORBIDDEN = "bash" + "runner"
TRICKY = 'say "hi" \\ é 🤖'

int64 = st.integers(-(2**63), 2**63 - 1)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
KEYS = ["data", "action_id", "action_name", "pre_name", "new_name", "pause", "name", "id", "time"]
near_misses = st.dictionaries(st.sampled_from(KEYS), json_values).map(json.dumps)
any_text = st.text() | json_values.map(json.dumps) | near_misses
names = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=7)
    .map(str.strip)
    .filter(bool)
)


# ---- services and api ids -----------------------------------------------------------------------


def test_the_same_number_means_different_things_to_different_services() -> None:
    assert rpc.APIS["arm", 7106] is ArmApi.EXECUTE_PRESET
    assert rpc.APIS["sport", 7106] is rpc.SportApi.SET_ARM_TASK
    assert rpc.APIS["motion_switcher", 1001] is rpc.MotionSwitcherApi.CHECK_MODE
    assert rpc.APIS["robot_state", 1001] is rpc.RobotStateApi.SWITCH_SERVICE
    assert ("arm", 1001) not in rpc.APIS


@pytest.mark.parametrize(
    ("service", "ids"),
    [
        ("arm", range(7106, 7114)),
        ("sport", [*range(7001, 7007), *range(7101, 7108)]),
        ("motion_switcher", range(1001, 1006)),
        ("robot_state", range(1001, 1007)),
    ],
)
def test_every_documented_api_id_has_a_name(service: str, ids: list[int]) -> None:
    assert sorted(api for owner, api in rpc.APIS if owner == service) == list(ids)


@pytest.mark.parametrize("service", [FORBIDDEN, FORBIDDEN.upper(), "", "arm ", "loco", "arm/x"])
def test_no_request_can_be_built_for_a_service_that_is_not_listed(service: str) -> None:
    with pytest.raises(BadRequestError, match="sends no requests") as caught:
        Call(service, 1001, "{}").request(1)
    assert "motion_switcher" in caught.value.remedy
    with pytest.raises(BadRequestError, match="sends no requests"):
        channel.encode(RpcRequest(service=service, api_id=1001, id=1))


def test_a_request_for_that_service_cannot_be_smuggled_past_the_list_either() -> None:
    topic = f"rt/api/{FORBIDDEN}/request"
    body = {"header": {"identity": {"id": 1, "api_id": 1001}}, "parameter": "{}"}
    with pytest.raises(BadRequestError, match="cannot be published"):
        channel.encode(channel.ChannelMessage(topic, body))
    with pytest.raises(BadRequestError, match="known"):
        channel.encode(channel.Unknown("req", {"topic": topic, "data": body}))


def test_the_service_that_runs_scripts_is_named_once_where_it_says_why_it_is_refused() -> None:
    found = [
        (path.name, token.type)
        for path in SOURCES
        for token in tokenize.generate_tokens(io.StringIO(path.read_text("utf-8")).readline)
        if FORBIDDEN in token.string.lower()
    ]
    assert found == [("rpc.py", tokenize.COMMENT)]


# ---- topics -------------------------------------------------------------------------------------

ASKED = RpcRequest(service="arm", api_id=7107, id=1)
ANSWERED = RpcResponse(service="arm", api_id=7107, id=1)


def test_requests_and_responses_have_topics_of_their_own() -> None:
    assert rpc.make_topic(ASKED) == "rt/api/arm/request"
    assert rpc.make_topic(ANSWERED) == "rt/api/arm/response"
    assert rpc.parse_topic("rt/api/arm/request", RpcRequest) == "arm"
    assert rpc.parse_topic("rt/api/motion_switcher/response", RpcResponse) == "motion_switcher"


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "rt/api/arm/response",
        "rt/api//request",
        "rt/api/request",
        "rt/api/arm/extra/request",
        "rt/api/arm/request/",
        "x/rt/api/arm/request",
        "arm/request",
        "rt/lf/lowstate",
    ],
)
def test_other_topics_belong_to_no_service(topic: str) -> None:
    with pytest.raises(PayloadError, match="not a topic for a request"):
        rpc.parse_topic(topic, RpcRequest)


def test_requests_and_responses_cannot_be_changed() -> None:
    for message in (ASKED, ANSWERED):
        with pytest.raises(dataclasses.FrozenInstanceError):
            message.id = 2  # type: ignore[misc]  # that is the point


# ---- JSON ---------------------------------------------------------------------------------------


@given(any_text)
def test_any_text_is_read_or_refused_with_a_decode_error(text: str) -> None:
    with contextlib.suppress(DecodeError):
        rpc.read_json(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1,]",
        "nul",
        "NaN",
        "-Infinity",
        '{"a": NaN}',
        "[" * 100_000,
        "1" * 5000,
        "\ufeff",
        "1\0x",
    ],
    ids=lambda text: repr(text[:12]),
)
def test_what_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(DecodeError, match="cannot be read as JSON"):
        rpc.read_json(text)


def endless() -> object:
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    return nested


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"bytes", {1, 2}], ids=repr)
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(BadRequestError, match="cannot be written"):
        rpc.write_json({"data": value})


def test_what_is_nested_too_deeply_is_refused() -> None:
    with pytest.raises(BadRequestError, match="cannot be written"):
        rpc.write_json(endless())


@pytest.mark.parametrize("value", [1, -(2**63), 2**63 - 1])
def test_a_whole_number_is_read_as_such(value: int) -> None:
    assert rpc.read_field({"a": value}, "a", int) == value


def test_a_whole_number_is_read_where_a_fraction_may_stand() -> None:
    read = rpc.read_field({"a": 11}, "a", float)
    assert (read, type(read)) == (11.0, float)


@pytest.mark.parametrize(
    ("document", "kind"),
    [
        ({}, int),
        ({"a": None}, int),
        ({"a": True}, int),
        ({"a": True}, float),
        ({"a": 1}, bool),
        ({"a": 1.0}, int),
        ({"a": "1"}, int),
        ({"a": 2**63}, int),
        ({"a": -(2**63) - 1}, int),
        ({"a": 10**400}, int),
        ({"a": 10**400}, float),
        ({"a": float("inf")}, float),
        ({"a": float("nan")}, float),
        ({"a": 1}, str),
        ([], int),
        ("a", int),
        (None, int),
    ],
    ids=repr,
)
def test_a_value_of_another_kind_or_too_large_is_refused(document: object, kind: type) -> None:
    with pytest.raises(PayloadError):
        rpc.read_field(document, "a", kind)


def test_a_default_stands_in_for_what_is_missing_but_not_for_what_is_wrong() -> None:
    assert rpc.read_field({}, "a", int, 7) == 7
    assert rpc.read_field({}, "a", bool, False) is False
    with pytest.raises(PayloadError):
        rpc.read_field({"a": None}, "a", int, 7)


# ---- calls --------------------------------------------------------------------------------------

# Parameters as they were seen on the wire or read in a client that works; JSON, so the blanks vary.
CALLS: dict[str, tuple[Call, str, int, str]] = {
    "preset": (rpc.execute_preset(27), "arm", 7106, '{"data": 27}'),
    "list": (rpc.LIST_ACTIONS, "arm", 7107, ""),
    "play": (rpc.play_taught("shakehand"), "arm", 7108, '{"action_name":"shakehand"}'),
    "rename": (rpc.rename_taught("a", "b"), "arm", 7109, '{"pre_name":"a","new_name":"b"}'),
    "start": (
        rpc.start_teaching("2026-01-28_21:27:37"),
        "arm",
        7110,
        '{"action_name":"2026-01-28_21:27:37"}',
    ),
    "keep": (rpc.KEEP_TEACHING, "arm", 7110, '{"action_name":""}'),
    "stop": (rpc.STOP_TEACHING, "arm", 7110, ""),
    "pause": (rpc.pause_teaching(paused=True), "arm", 7111, '{"pause":true}'),
    "resume": (rpc.pause_teaching(paused=False), "arm", 7111, '{"pause":false}'),
    "delete": (rpc.delete_taught("a b"), "arm", 7112, '{"action_name":"a b"}'),
    "stop playing": (rpc.STOP_TAUGHT, "arm", 7113, ""),
    "get fsm": (rpc.GET_FSM, "sport", 7001, ""),
    "set fsm": (rpc.set_fsm(500), "sport", 7101, '{"data":500}'),
    "check": (rpc.CHECK_MODE, "motion_switcher", 1001, ""),
}


@pytest.mark.parametrize(
    ("call", "service", "api_id", "parameter"), CALLS.values(), ids=CALLS.keys()
)
def test_a_call_says_what_real_clients_say(
    call: Call, service: str, api_id: int, parameter: str
) -> None:
    assert (call.service, call.api_id) == (service, api_id)
    if parameter:
        assert json.loads(call.parameter) == json.loads(parameter)
    else:
        assert call.parameter == ""


def test_a_call_with_a_number_is_a_request() -> None:
    request = rpc.execute_preset(27).request(5, noreply=True)
    assert request == RpcRequest(
        service="arm", api_id=7106, id=5, parameter='{"data":27}', noreply=True
    )
    assert not rpc.STOP_TAUGHT.request(6).noreply


@pytest.mark.parametrize(
    "parameter",
    ['{"data": 27}', '{"action_id":27}', '{"data":27,"action_id":27}', ' {"x": 1, "data":27}'],
)
def test_a_preset_is_understood_under_either_key(parameter: str) -> None:
    assert rpc.decode_preset(parameter) == 27


@pytest.mark.parametrize(
    "parameter",
    ["", "{}", "27", "[27]", '{"data":27,"action_id":26}', '{"data":"27"}', '{"data":27.0}'],
)
def test_a_preset_that_is_not_said_or_said_twice_is_refused(parameter: str) -> None:
    with pytest.raises(DecodeError):
        rpc.decode_preset(parameter)


@given(names)
def test_any_name_survives_in_every_call(name: str) -> None:
    assert rpc.decode_name(rpc.play_taught(name).parameter) == name
    assert rpc.decode_name(rpc.delete_taught(name).parameter) == name
    assert rpc.decode_teach(rpc.start_teaching(name).parameter) == name
    assert rpc.decode_rename(rpc.rename_taught(name, name[::-1]).parameter) == (name, name[::-1])


def test_a_quote_in_a_name_survives() -> None:
    assert rpc.decode_name(rpc.play_taught(TRICKY).parameter) == TRICKY
    assert rpc.decode_teach(rpc.start_teaching(TRICKY).parameter) == TRICKY


def test_starting_keeping_and_stopping_are_told_apart() -> None:
    assert rpc.decode_teach(rpc.start_teaching("wave").parameter) == "wave"
    assert rpc.decode_teach(rpc.KEEP_TEACHING.parameter) == ""
    assert rpc.decode_teach(rpc.STOP_TEACHING.parameter) is None


@pytest.mark.parametrize("paused", [True, False])
def test_pausing_and_going_on_are_told_apart(paused: bool) -> None:
    assert rpc.decode_pause(rpc.pause_teaching(paused=paused).parameter) is paused


@pytest.mark.parametrize(
    "build",
    [
        lambda: rpc.play_taught(""),
        lambda: rpc.delete_taught(""),
        lambda: rpc.rename_taught("", "b"),
        lambda: rpc.rename_taught("a", ""),
        lambda: rpc.start_teaching(""),  # or it would keep alive what another has begun
        lambda: rpc.start_teaching("a" * 32),
        lambda: rpc.start_teaching("a\nb"),
        lambda: rpc.rename_taught("a", "\ud800"),
    ],
)
def test_a_name_that_cannot_be_used_is_refused_before_it_is_sent(
    build: Callable[[], Call],
) -> None:
    with pytest.raises(BadRequestError):
        build()


def test_an_action_may_exist_under_a_name_longer_than_a_new_one_may_be() -> None:
    assert rpc.decode_name(rpc.play_taught("a" * 99).parameter) == "a" * 99


DECODERS: list[Callable[[str], object]] = [
    rpc.decode_preset,
    rpc.decode_name,
    rpc.decode_rename,
    rpc.decode_teach,
    rpc.decode_pause,
    rpc.decode_value,
    rpc.decode_actions,
    rpc.decode_mode_check,
    rpc.decode_arm_state,
]


@given(any_text)
def test_any_text_raises_nothing_but_decode_error(text: str) -> None:
    for decode in DECODERS:
        with contextlib.suppress(DecodeError):
            decode(text)


@pytest.mark.parametrize("parameter", ["{}", '{"action_name":""}', '{"action_name":1}', "null"])
def test_an_action_without_a_name_is_refused(parameter: str) -> None:
    with pytest.raises(PayloadError):
        rpc.decode_name(parameter)


# ---- answers ------------------------------------------------------------------------------------

# From the log of a G1 Air, shortened.
REAL_LIST = (
    '[[{"id":99,"name":"release_arm"},{"fsm":[500,501],"id":1,"name":"turn_back_wave"},'
    '{"id":31,"mode_machine":[4],"name":"extend_right_arm_forward"}],'
    '[{"name":"Waist_Drum_Dance","time":9.5},{"name":"touch me not","time":11}]]'
)
PRESETS = (
    RpcPreset(99, "release_arm"),
    RpcPreset(1, "turn_back_wave", (500, 501)),
    RpcPreset(31, "extend_right_arm_forward", (), (4,)),
)
TAUGHT = (RpcTaughtAction("Waist_Drum_Dance", 9.5), RpcTaughtAction("touch me not", 11.0))


def test_a_real_list_of_actions_is_read() -> None:
    assert rpc.decode_actions(REAL_LIST) == (PRESETS, TAUGHT, ())


def test_a_list_of_actions_is_written_as_robots_write_it() -> None:
    assert json.loads(rpc.encode_actions(PRESETS, TAUGHT)) == json.loads(REAL_LIST)
    assert rpc.encode_actions((), ()) == "[[],[]]"


gates = st.lists(int64, max_size=3).map(tuple)
seconds = st.floats(0, 200)


@given(
    st.lists(st.builds(RpcPreset, int64, st.text(), gates, gates), max_size=4).map(tuple),
    st.lists(st.builds(RpcTaughtAction, st.text(), seconds), max_size=4).map(tuple),
)
def test_any_list_of_actions_comes_back_as_it_was(
    presets: tuple[RpcPreset, ...], taught: tuple[RpcTaughtAction, ...]
) -> None:
    assert rpc.decode_actions(rpc.encode_actions(presets, taught)) == (presets, taught, ())


@pytest.mark.parametrize("data", ["", "{}", "null", "7", '"none"', "[[]", '{"data":[[],[]]}'])
def test_what_is_no_list_of_actions_is_refused_with_what_was_seen(data: str) -> None:
    with pytest.raises(DecodeError) as caught:
        rpc.decode_actions(data)
    assert data[:8] in str(caught.value)


A, B = '{"id":1,"name":"a"}', '{"name":"b","time":2}'
# What a robot sends, the presets and taught actions in it, and the number of notes.
ODD_LISTS: dict[str, tuple[str, tuple[RpcPreset, ...], tuple[RpcTaughtAction, ...], int]] = {
    "no lists": ("[]", (), (), 0),
    "one list": (f"[[{A},{B}]]", (RpcPreset(1, "a"),), (RpcTaughtAction("b", 2.0),), 0),
    "one list that is flat": (f"[{A},{B}]", (RpcPreset(1, "a"),), (RpcTaughtAction("b", 2.0),), 0),
    "one list of names": (
        '["b","c"]',
        (),
        (RpcTaughtAction("b", 0.0), RpcTaughtAction("c", 0.0)),
        2,
    ),
    "three lists": (f"[[{A}],[{B}],[]]", (RpcPreset(1, "a"),), (RpcTaughtAction("b", 2.0),), 1),
    "a full third list": (
        f"[[],[],[{A},{B}]]",
        (RpcPreset(1, "a"),),
        (RpcTaughtAction("b", 2.0),),
        1,
    ),
    "an object for a list": ("[{},[" + B + "]]", (), (RpcTaughtAction("b", 2.0),), 1),
    "null for a list": ("[[" + A + "],null]", (RpcPreset(1, "a"),), (), 1),
    "presets by id alone": ("[[1],[]]", (RpcPreset(1, "?1"),), (), 1),
    "presets by name alone": ('[["wave"],[]]', (), (), 1),
    "a preset without a name": ('[[{"id":1}],[]]', (RpcPreset(1, "?1"),), (), 1),
    "a preset without an id": ('[[{"name":"a"},' + A + "],[]]", (RpcPreset(1, "a"),), (), 1),
    "an id as text": ('[[{"id":"1","name":"a"}],[]]', (RpcPreset(1, "a"),), (), 0),
    "an id with a point": ('[[{"id":99.0,"name":"a"}],[]]', (RpcPreset(99, "a"),), (), 0),
    "half an id": ('[[{"id":1.5,"name":"a"}],[]]', (), (), 1),
    "one mode": ('[[{"id":1,"name":"a","fsm":500}],[]]', (RpcPreset(1, "a", (500,)),), (), 0),
    "modes as text": (
        '[[{"id":1,"name":"a","fsm":["500"]}],[]]',
        (RpcPreset(1, "a", (500,)),),
        (),
        0,
    ),
    "null for modes": ('[[{"id":1,"name":"a","fsm":null}],[]]', (RpcPreset(1, "a"),), (), 0),
    "odd modes": ('[[{"id":1,"name":"a","fsm":[5,{}]}],[]]', (RpcPreset(1, "a", (5,)),), (), 1),
    "no time": ('[[],[{"name":"b"}]]', (), (RpcTaughtAction("b", 0.0),), 1),
    "null for a time": ('[[],[{"name":"b","time":null}]]', (), (RpcTaughtAction("b", 0.0),), 1),
    "a time as text": ('[[],[{"name":"b","time":"9.5"}]]', (), (RpcTaughtAction("b", 9.5),), 0),
    "a time in words": ('[[],[{"name":"b","time":"long"}]]', (), (RpcTaughtAction("b", 0.0),), 1),
    "a time without end": ('[[],[{"name":"b","time":1e999}]]', (), (RpcTaughtAction("b", 0.0),), 1),
    "a time before": ('[[],[{"name":"b","time":-1}]]', (), (RpcTaughtAction("b", 0.0),), 1),
    "a taught action by a number": ("[[],[1]]", (), (RpcTaughtAction("?1", 0.0),), 2),
    "a taught action by name": ('[[],["b"]]', (), (RpcTaughtAction("b", 0.0),), 1),
    "a taught action without a name": ('[[],[{"time":3}]]', (), (RpcTaughtAction("?1", 3.0),), 1),
    "null for a taught action": (
        f"[[],[null,{B}]]",
        (),
        (RpcTaughtAction("?1", 0.0), RpcTaughtAction("b", 2.0)),
        2,
    ),
    "a list behind a mark": ("\ufeff[[],[" + B + "]]\0", (), (RpcTaughtAction("b", 2.0),), 0),
    "a name with a line break": (
        '[[],[{"name":"b\nc","time":2}]]',
        (),
        (RpcTaughtAction("b\nc", 2.0),),
        0,
    ),
    "half a character": (
        '[[],[{"name":"\\ud83d","time":2}]]',
        (),
        (RpcTaughtAction("\ud83d", 2.0),),
        0,
    ),
}


@pytest.mark.parametrize(
    ("data", "presets", "taught", "notes"), ODD_LISTS.values(), ids=ODD_LISTS.keys()
)
def test_an_odd_entry_is_shown_with_what_is_known_and_hides_nothing_else(
    data: str, presets: tuple[RpcPreset, ...], taught: tuple[RpcTaughtAction, ...], notes: int
) -> None:
    read = rpc.decode_actions(data)
    assert (read.presets, read.taught) == (presets, taught)
    assert len(read.notes) == notes
    assert all(note.isascii() for note in read.notes)


@given(int64)
def test_any_value_comes_back_as_it_was(value: int) -> None:
    assert rpc.decode_value(rpc.encode_value(value)) == value
    assert rpc.decode_value(rpc.set_fsm(value).parameter) == value


def test_a_real_check_of_the_controller_is_read() -> None:
    assert rpc.decode_mode_check('{"form":"0","name":"ai"}') == "ai"
    assert rpc.decode_mode_check('{"form":"0","name":""}') == ""
    assert json.loads(rpc.encode_mode_check("ai")) == {"form": "0", "name": "ai"}
    with pytest.raises(PayloadError):
        rpc.decode_mode_check('{"form":"0"}')


@pytest.mark.parametrize(
    ("text", "activity", "words"),
    [
        ('{"holding":false,"id":0,"name":""}', RpcActivity.IDLE, "idle"),
        ('{"holding":false,"id":-1,"name":"bow"}', RpcActivity.RECORDING, "recording (bow)"),
        ('{"holding":false,"id":100,"name":"bow"}', RpcActivity.PLAYING, "playing (bow)"),
        (
            '{"holding":false,"id":99,"name":"release_arm"}',
            RpcActivity.RELEASING,
            "releasing (release_arm)",
        ),
        (
            '{"holding":false,"id":27,"name":"shake_hand"}',
            RpcActivity.PRESET,
            "preset 27 (shake_hand)",
        ),
        ('{"holding":true,"id":15,"name":""}', RpcActivity.PRESET, "preset 15, holding"),
    ],
)
def test_the_state_of_the_arms_has_a_meaning(text: str, activity: RpcActivity, words: str) -> None:
    state = rpc.decode_arm_state(text)
    assert state.activity is activity
    assert state.label == words
    assert json.loads(rpc.encode_arm_state(state)) == json.loads(text)


@given(st.builds(ArmState, st.booleans(), int64, st.text()))
def test_any_state_of_the_arms_comes_back_as_it_was(state: ArmState) -> None:
    assert rpc.decode_arm_state(rpc.encode_arm_state(state)) == state


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('{"holding":0,"id":0,"name":""}', ArmState()),
        ('{"holding":1,"id":15}', ArmState(holding=True, id=15)),
        ('{"id":"100","name":null}', ArmState(id=100)),
        ('{"holding":null,"id":99.0,"name":7}', ArmState(id=99)),
        ("-1", ArmState(id=-1)),
        ('"100"', ArmState(id=100)),
        ('{"id":100,"name":"b"}\0', ArmState(id=100, name="b")),
    ],
)
def test_an_odd_state_of_the_arms_is_read_as_far_as_it_goes(text: str, state: ArmState) -> None:
    assert rpc.decode_arm_state(text) == state


@pytest.mark.parametrize(
    ("data", "value"),
    [('{"data":"500"}', 500), ('{"data":500.0}', 500), ("500", 500), ('{"data":-1}', -1)],
)
def test_an_odd_value_is_read(data: str, value: int) -> None:
    assert rpc.decode_value(data) == value


@pytest.mark.parametrize(
    "data", ["", "{}", '{"data":null}', '{"data":true}', '{"data":5.5}', "[5]", '{"data":"x"}']
)
def test_a_value_that_is_none_is_refused(data: str) -> None:
    with pytest.raises(DecodeError):
        rpc.decode_value(data)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"holding":true}', '{"id":null}', '"{}"'])
def test_a_state_of_another_shape_is_refused(text: str) -> None:
    with pytest.raises(DecodeError):
        rpc.decode_arm_state(text)


# ---- codes --------------------------------------------------------------------------------------

GENERIC = [0, 100, 3001, *range(3102, 3108), *range(3201, 3208)]
OWN = {
    "sport": [127, 1001, 1003, 4101, 4201, 4205, 7301, 7302, 7303, 7304],
    "robot_state": [5201, 5202],
    "motion_switcher": list(range(7001, 7010)),
    "arm": list(range(7399, 7408)),
}


def test_every_documented_code_is_in_the_table_and_nothing_else() -> None:
    documented = {("", code) for code in GENERIC}
    documented |= {(service, code) for service, codes in OWN.items() for code in codes}
    assert set(rpc.CODES) == documented


def test_every_code_but_ok_has_words_and_a_remedy() -> None:
    for (_, code), (words, remedy) in rpc.CODES.items():
        assert words
        assert words[0].islower()
        assert bool(remedy) == (code != 0)
        assert not remedy or remedy.endswith(".")


def test_a_code_is_explained_by_its_service_first() -> None:
    assert "switching" in rpc.explain("motion_switcher", 7002)[0]
    assert rpc.explain("sport", 7002)[0] == "for a reason it does not explain"
    assert rpc.explain("arm", 3203) == rpc.explain("anything", 3203)
    assert "hold" in rpc.explain("arm", 7401)[0]
    assert "99" in rpc.explain("arm", 7401)[1]
    assert rpc.explain("arm", 0) == ("done", "")


def test_the_words_fit_the_error_a_person_sees() -> None:
    error = RefusedError(7401, *rpc.explain("arm", 7401))
    assert str(error) == "the robot refused: its arms hold a pose (code 7401)"


def test_codes_known_to_all_wires_mean_the_same_here() -> None:
    for code in (m.Code.UNKNOWN_COMMAND, m.Code.BAD_PAYLOAD, m.Code.NAME_EXISTS):
        assert rpc.explain("arm", code)[0] != "for a reason it does not explain"
    assert rpc.explain("arm", m.Code.NAME_EXISTS)[0] == m.CODE_TEXTS[m.Code.NAME_EXISTS][0]


def test_running_services_are_read_from_a_bare_array() -> None:
    listed = [
        {"name": "ai_sport", "status": 0, "protect": 0},
        {"name": "g1_arm_example", "status": 1},
        {"name": "vui_service", "status": "0"},
        {"name": 7, "status": 0},
        "odd",
    ]
    assert rpc.decode_running_services(json.dumps(listed)) == {"ai_sport", "vui_service"}
    for text in ("{}", "7", "["):
        with pytest.raises(DecodeError):
            rpc.decode_running_services(text)
