"""The data channel's messages against texts seen on real robots, themselves and garbage."""

import base64
import contextlib
import copy
import hashlib
import json
import pickle
import struct
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, DecodeError, PayloadError, TruncatedError
from rote.wire.services.faults import Change, Fault, Faults
from rote.wire.services.rpc import NO_STATUS, SERVICES, RpcRequest, RpcResponse
from rote.wire.webrtc import channel
from rote.wire.webrtc.channel import (
    MAX_ASSEMBLED,
    MAX_ASSEMBLIES,
    MAX_CHUNKS,
    MAX_MESSAGE,
    MAX_TOPIC,
    Assembler,
    ChannelMessage,
    Chunk,
    Complaint,
    Heartbeat,
    Inner,
    MediaRequest,
    MediaTrack,
    MessageTooLargeError,
    Subscription,
    Unknown,
    Validation,
    Value,
)

# ---- texts as they are seen ---------------------------------------------------------------------

PROBE = {"req_type": "rtt_probe_send_from_mechine", "uuid": "7", "time": 1.5}
SEEN: dict[str, tuple[str, Value]] = {
    "challenge": (
        '{"type":"validation","topic":"","data":"deadbeef"}',
        Validation("deadbeef"),
    ),
    "ok": (
        '{"type":"validation","topic":"","data":"Validation Ok."}',
        Validation("Validation Ok."),
    ),
    "heartbeat": (
        '{"type":"heartbeat","topic":"",'
        '"data":{"timeInStr":"2026-02-05 17:07:42","timeInNum":1770329262}}',
        Heartbeat("2026-02-05 17:07:42", 1770329262),
    ),
    "subscribe": ('{"type":"subscribe","topic":"rt/lf/lowstate"}', Subscription("rt/lf/lowstate")),
    "unsubscribe": (
        '{"type":"unsubscribe","topic":"rt/lf/lowstate"}',
        Subscription("rt/lf/lowstate", active=False),
    ),
    "joystick": (
        '{"type":"msg","topic":"rt/wirelesscontroller","data":{"lx":0,"ly":0.5}}',
        ChannelMessage("rt/wirelesscontroller", {"lx": 0, "ly": 0.5}),
    ),
    "arm state": (
        '{"type":"msg","topic":"rt/arm/action/state",'
        '"data":"{\\"holding\\":false,\\"id\\":99,\\"name\\":\\"release_arm\\"}"}',
        ChannelMessage("rt/arm/action/state", '{"holding":false,"id":99,"name":"release_arm"}'),
    ),
    "request": (
        '{"type":"req","topic":"rt/api/arm/request","data":{"header":{"identity":'
        '{"id":1618319458,"api_id":7106},"policy":{"priority":1,"noreply":false}},'
        '"parameter":"{\\"data\\": 27}","binary":[]}}',
        RpcRequest(service="arm", api_id=7106, id=1618319458, parameter='{"data": 27}', priority=1),
    ),
    "request with a lease": (
        '{"type":"req","topic":"rt/api/sport/request","data":{"header":{"identity":'
        '{"id":3,"api_id":7001},"policy":{"priority":0,"noreply":true},"lease":{"id":9}},'
        '"parameter":"","binary":[]}}',
        RpcRequest(service="sport", api_id=7001, id=3, noreply=True, lease=9),
    ),
    "response": (
        '{"type":"res","topic":"rt/api/arm/response","data":{"header":{"identity":'
        '{"id":1618319458,"api_id":7106},"status":{"code":7401}},"data":"{}"}}',
        RpcResponse(service="arm", api_id=7106, id=1618319458, code=7401, data="{}"),
    ),
    "part of a response": (
        '{"type":"res","topic":"rt/api/arm/response","data":{"header":{"identity":'
        '{"id":4,"api_id":7107},"status":{"code":0}},"data":"ab","content_info":'
        '{"enable_chunking":true,"chunk_index":2,"total_chunk_num":3}}}',
        Chunk(RpcResponse(service="arm", api_id=7107, id=4, data="ab"), 2, 3),
    ),
    "inner request": (
        '{"type":"rtc_inner_req","topic":"",'
        '"data":{"req_type":"public_network_status","uuid":"1"}}',
        Inner({"req_type": "public_network_status", "uuid": "1"}),
    ),
    "inner answer": (
        '{"type":"rtc_inner_req","topic":"","info":{"execution":"ok"}}',
        Inner({"execution": "ok"}, answer=True),
    ),
    "probe": (
        json.dumps({"type": "rtc_inner_req", "topic": "", "info": PROBE}),
        Inner(PROBE, answer=True),
    ),
    "err": ('{"type":"err","info":"Validation Needed."}', Complaint("Validation Needed.")),
    "errors": (
        '{"type":"errors","data":[[1769616901,200,1],[1769616902,301,268435456]]}',
        Faults(Change.ALL, (Fault(1769616901, 200, 1), Fault(1769616902, 301, 0x10000000))),
    ),
    "no errors": ('{"type":"errors","data":[]}', Faults(Change.ALL)),
    "add_error": (
        '{"type":"add_error","data":[1769616901,200,1]}',
        Faults(Change.ADDED, (Fault(1769616901, 200, 1),)),
    ),
    "rm_error": (
        '{"type":"rm_error","data":[1769616901,200,1]}',
        Faults(Change.REMOVED, (Fault(1769616901, 200, 1),)),
    ),
    "video on": (
        '{"type":"vid","topic":"","data":"on"}',
        MediaRequest(MediaTrack.VIDEO, active=True),
    ),
    "audio off": (
        '{"type":"aud","topic":"","data":"off"}',
        MediaRequest(MediaTrack.AUDIO, active=False),
    ),
    "report": (
        '{"type":"rtc_report","x":[1]}',
        Unknown("rtc_report", {"type": "rtc_report", "x": [1]}),
    ),
}
seen = pytest.mark.parametrize(("text", "value"), SEEN.values(), ids=SEEN.keys())


@seen
def test_a_message_seen_on_a_robot_is_read(text: str, value: Value) -> None:
    assert channel.decode(text) == value


@seen
def test_a_message_is_written_as_robots_and_their_clients_write_it(text: str, value: Value) -> None:
    message = channel.encode(value)
    assert isinstance(message, str)
    assert json.loads(message) == json.loads(text)


def test_every_type_there_is_has_been_seen() -> None:
    types = {json.loads(text)["type"] for text, _ in SEEN.values()}
    assert types == {*channel._DECODERS, "rtc_report"}
    assert {type(value) for _, value in SEEN.values()} == set(Value.__args__)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"type":"validation","data":"Validation Ok."}', Validation("Validation Ok.")),
        ('{"type":"heartbeat"}', Heartbeat()),
        ('{"type":"heartbeat","data":"12:00"}', Heartbeat()),
        ('{"type":"heartbeat","data":{"timeInStr":1,"timeInNum":"x"}}', Heartbeat()),
        ('{"type":"msg","topic":"rt/x"}', ChannelMessage("rt/x")),
        (
            '{"type":"req","topic":"rt/api/voice/request",'
            '"data":{"header":{"identity":{"id":-1,"api_id":1}}}}',
            RpcRequest(service="voice", api_id=1, id=-1),
        ),
        (
            '{"type":"res","topic":"rt/api/voice/response","data":{"header":{"identity":'
            '{"id":1,"api_id":1},"status":{"code":0}},"content_info":{"enable_chunking":false}}}',
            RpcResponse(service="voice", api_id=1, id=1),
        ),
        ('{"type":"levitate"}', Unknown("levitate", {"type": "levitate"})),
        ('{"type":""}', Unknown("", {"type": ""})),
    ],
)
def test_what_may_be_left_out_may_be_left_out(text: str, value: Value) -> None:
    assert channel.decode(text) == value


IDENTITY = '"header":{"identity":{"id":1,"api_id":2}'
REQUEST = '{"type":"req","topic":"rt/api/arm/request","data":'
RESPONSE = '{"type":"res","topic":"rt/api/arm/response","data":'
STATUS = IDENTITY + ',"status":{"code":0}}'
WRONG = [
    "",
    "null",
    "[]",
    '"msg"',
    "{",
    "{}",
    '{"type":1}',
    '{"type":null}',
    '{"type":"validation"}',
    '{"type":"validation","data":1}',
    '{"type":"subscribe"}',
    '{"type":"subscribe","topic":""}',
    '{"type":"unsubscribe","topic":["rt/x"]}',
    f'{{"type":"subscribe","topic":"{"x" * (MAX_TOPIC + 1)}"}}',
    '{"type":"msg","data":{}}',
    '{"type":"req","topic":"rt/api/arm/response","data":{' + STATUS + "}}",
    '{"type":"req","topic":"rt/x","data":{' + STATUS + "}}",
    REQUEST + "[]}",
    REQUEST + "{}}",
    REQUEST + '{"header":{}}}',
    REQUEST + '{"header":{"identity":{"id":1}}}}',
    REQUEST + '{"header":{"identity":{"id":"1","api_id":2}}}}',
    REQUEST + '{"header":{"identity":{"id":9223372036854775808,"api_id":2}}}}',
    REQUEST + "{" + IDENTITY + '},"parameter":{}}}',
    REQUEST + "{" + IDENTITY + ',"policy":{"noreply":1}}}}',
    REQUEST + "{" + IDENTITY + ',"policy":{"priority":"1"}}}}',
    REQUEST + "{" + IDENTITY + ',"lease":{"id":"1"}}}}',
    '{"type":"res","topic":"rt/api/arm/request","data":{' + STATUS + "}}",
    RESPONSE + "{" + STATUS + ',"content_info":{"enable_chunking":1}}}',
    RESPONSE + "{" + STATUS + ',"content_info":{"enable_chunking":true}}}',
    '{"type":"rtc_inner_req"}',
    '{"type":"rtc_inner_req","data":[]}',
    '{"type":"rtc_inner_req","info":"ok","data":{}}',
    '{"type":"err"}',
    '{"type":"err","info":{}}',
    '{"type":"errors"}',
    '{"type":"errors","data":[1,2,3]}',
    '{"type":"errors","data":[[1,2]]}',
    '{"type":"errors","data":[[1,2,"3"]]}',
    '{"type":"errors","data":[[1,2,-3]]}',
    '{"type":"add_error","data":[[1,2,3]]}',
    '{"type":"add_error","data":[]}',
    '{"type":"rm_error","data":{}}',
    '{"type":"vid"}',
    '{"type":"vid","data":true}',
    '{"type":"aud","data":"loud"}',
]


def odd(inside: str, topic: str = '"topic":"rt/api/arm/response",') -> str:
    return '{"type":"res",' + topic + '"data":{' + inside + "}}"


def answered(**how: Any) -> RpcResponse:
    return replace(RpcResponse(service="arm", api_id=2, id=1), **how)


ODD_RESPONSES: dict[str, tuple[str, RpcResponse]] = {
    "no status": (odd(IDENTITY + "}"), answered(code=NO_STATUS)),
    "a status without a code": (odd(IDENTITY + ',"status":{}}'), answered(code=NO_STATUS)),
    "null for a code": (odd(IDENTITY + ',"status":{"code":null}}'), answered(code=NO_STATUS)),
    "a code in words": (odd(IDENTITY + ',"status":{"code":"ok"}}'), answered(code=NO_STATUS)),
    "a code as text": (odd(IDENTITY + ',"status":{"code":"0"}}'), answered()),
    "a code with a point": (odd(IDENTITY + ',"status":{"code":7400.0}}'), answered(code=7400)),
    "ids as text": (
        odd('"header":{"identity":{"id":"1","api_id":"2"},"status":{"code":0}}'),
        answered(),
    ),
    "ids with a point": (
        odd('"header":{"identity":{"id":1.0,"api_id":2.0},"status":{"code":0}}'),
        answered(),
    ),
    "no api id": (
        odd('"header":{"identity":{"id":1},"status":{"code":0}}'),
        answered(api_id=0),
    ),
    "an object for its text": (odd(STATUS + ',"data":{"a":[1]}'), answered(data='{"a":[1]}')),
    "null for its text": (odd(STATUS + ',"data":null'), answered()),
    "a number for its text": (odd(STATUS + ',"data":5'), answered(data="5")),
    "a list for its parts": (odd(STATUS + ',"content_info":[]'), answered()),
    "an empty topic": (odd(STATUS, '"topic":"",'), answered(service="")),
    "no topic": (odd(STATUS, ""), answered(service="")),
    "a mark before it": ("\ufeff" + odd(STATUS), answered()),
    "a zero behind it": (odd(STATUS) + "\0", answered()),
    "a line break in a text": (odd(STATUS + ',"data":"a\nb"'), answered(data="a\nb")),
    "a zero in a text": (odd(STATUS + ',"data":"a\0b"'), answered(data="a\0b")),
    "half a character": (odd(STATUS + ',"data":"\\ud83d"'), answered(data="\ud83d")),
}


@pytest.mark.parametrize(("text", "response"), ODD_RESPONSES.values(), ids=ODD_RESPONSES.keys())
def test_an_odd_response_is_read_as_far_as_it_goes(text: str, response: RpcResponse) -> None:
    assert channel.decode(text) == response
    framed = channel.encode_frame(text, b"bytes")
    assert channel.decode(framed) == replace(response, binary=b"bytes")


def test_a_part_of_a_response_may_be_numbered_oddly() -> None:
    parts = ',"data":"ab","content_info":{"enable_chunking":1,"chunk_index":"2",'
    text = odd(STATUS + parts + '"total_chunk_num":3.0}')
    assert channel.decode(text) == Chunk(answered(data="ab"), 2, 3)


def test_half_a_character_in_a_frame_is_read() -> None:
    text = '{"type":"msg","topic":"rt/x","data":"\ud83d"}'.encode(errors="surrogatepass")
    frame = struct.pack("<HH", len(text), 0) + text
    assert channel.decode(frame) == ChannelMessage("rt/x", "\ud83d")


def test_what_a_response_lacks_is_said_with_what_was_seen() -> None:
    with pytest.raises(PayloadError, match='"seven"'):
        channel.decode(odd('"header":{"identity":{"id":"seven"}}'))


@pytest.mark.parametrize("text", WRONG)
def test_a_message_of_a_wrong_shape_is_refused(text: str) -> None:
    with pytest.raises(DecodeError) as caught:
        channel.decode(text)
    assert isinstance(caught.value, PayloadError) == (text not in {"", "{"})


@pytest.mark.parametrize(
    ("index", "count"), [(0, 1), (2, 1), (-1, 3), (1, 0), (1, MAX_CHUNKS + 1), (1, 2**62)]
)
def test_a_part_with_an_impossible_number_is_refused(index: int, count: int) -> None:
    response = RpcResponse(service="arm", api_id=1, id=1)
    with pytest.raises(PayloadError, match="part"):
        channel.decode(channel.encode(Chunk(response, index, count)))


# ---- size ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    ["x" * 10_000_000, b"x" * 10_000_000, "[" * (MAX_MESSAGE + 1)],
    ids=["text", "bytes", "just over"],
)
def test_a_message_too_large_is_refused_by_name_before_it_is_read(message: str | bytes) -> None:
    with pytest.raises(MessageTooLargeError, match="the maximum is") as caught:
        channel.decode(message)
    assert caught.value.size == len(message)


def test_a_large_message_within_the_bound_is_read() -> None:
    text = channel.encode(ChannelMessage("rt/x", "y" * (MAX_MESSAGE - 100)))
    assert channel.decode(text) == ChannelMessage("rt/x", "y" * (MAX_MESSAGE - 100))


def test_a_message_too_large_is_not_sent() -> None:
    with pytest.raises(BadRequestError, match="the maximum is"):
        channel.encode(ChannelMessage("rt/x", "y" * MAX_MESSAGE))


def test_the_error_travels() -> None:
    error = MessageTooLargeError(12)
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (str(again), again.size) == (str(error), 12)


# ---- validation, heartbeat, probe ---------------------------------------------------------------


def test_a_challenge_is_answered_with_the_digest_of_prefix_and_challenge() -> None:
    answer = channel.answer_challenge("deadbeef")
    assert answer == "1v5+EWNnnNzfjxAAgZF8lw=="
    assert base64.b64decode(answer) == hashlib.md5(b"UnitreeGo2_deadbeef").digest()


@given(st.text(st.characters()))
def test_any_challenge_has_an_answer(challenge: str) -> None:
    assert len(channel.answer_challenge(challenge)) == 24


def test_a_heartbeat_tells_local_time_and_unix_time() -> None:
    assert channel.make_heartbeat(1770329262.9, -5 * 3600) == Heartbeat(
        "2026-02-05 17:07:42", 1770329262
    )
    assert channel.make_heartbeat(0) == Heartbeat("1970-01-01 00:00:00", 0)


def test_a_probe_is_sent_back_as_it_came_and_nothing_else_is() -> None:
    assert channel.make_probe_echo(Inner(PROBE, answer=True)) == Inner(PROBE)
    assert channel.make_probe_echo(Inner(PROBE)) is None
    assert (
        channel.make_probe_echo(Inner({"req_type": "public_network_status"}, answer=True)) is None
    )


# ---- faults -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        (100, 1, "communication: an unknown fault (100/0x1)"),
        (300, 0x10, "motors: winding overheating (300/0x10)"),
        (301, 0x10000000, "motor 1: winding almost overheating (301/0x10000000)"),
        (399, 0x10, "motor 99: winding overheating (399/0x10)"),
        (3012, 0x11, "motor 12: an unknown fault and winding overheating (3012/0x11)"),
        (3999, 0x10, "motor 999: winding overheating (3999/0x10)"),
        (400, 2, "lidar: an unknown fault (400/0x2)"),
        (600, 8, "motion control: low battery (600/0x8)"),
        (1000, 0, "emergency stop: no fault (1000/0x0)"),
        (4000, 16, "an unknown part: an unknown fault (4000/0x10)"),
        (2999, 16, "an unknown part: an unknown fault (2999/0x10)"),
    ],
)
def test_a_fault_has_words(source: int, code: int, words: str) -> None:
    assert Fault(1769616901, source, code).message == words


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1))
def test_any_fault_has_words(source: int, code: int) -> None:
    assert f"({source}/0x{code:x})" in Fault(0, source, code).message


def test_faults_come_and_go_one_by_one() -> None:
    for faults in ((), (Fault(1, 2, 3), Fault(4, 5, 6))):
        with pytest.raises(BadRequestError, match="must contain one fault"):
            channel.encode(Faults(Change.ADDED, faults))


# ---- binary frames ------------------------------------------------------------------------------

CLOUD = '{"type":"msg","topic":"rt/utlidar/voxel_map_compressed","data":{"src_size":4}}'
PAYLOAD = bytes(range(200, 256))
NORMAL = struct.pack("<HH", len(CLOUD), 0) + CLOUD.encode() + PAYLOAD
WIDE = struct.pack("<HHII", 2, 0, len(CLOUD), 0) + CLOUD.encode() + PAYLOAD
VALUE = ChannelMessage("rt/utlidar/voxel_map_compressed", {"src_size": 4}, PAYLOAD)


@pytest.mark.parametrize("frame", [NORMAL, WIDE], ids=["normal", "wide"])
def test_both_layouts_of_a_frame_are_read(frame: bytes) -> None:
    assert channel.decode(frame) == VALUE


def test_both_layouts_of_a_frame_are_written() -> None:
    assert channel.encode(VALUE) == NORMAL
    assert channel.encode(VALUE, wide=True) == WIDE


def test_the_reserved_fields_of_a_frame_may_hold_anything() -> None:
    assert channel.decode(NORMAL[:2] + b"\x07\x01" + NORMAL[4:]) == VALUE
    assert channel.decode(WIDE[:8] + b"\1\2\3\4" + WIDE[12:]) == VALUE


def test_a_text_too_long_for_the_normal_layout_goes_into_a_wide_one() -> None:
    value = ChannelMessage("rt/x", "y" * 70_000, b"z")
    frame = channel.encode(value)
    assert frame[:4] == struct.pack("<HH", 2, 0)
    assert channel.decode(frame) == value


def test_a_text_of_two_bytes_is_not_taken_for_a_wide_frame() -> None:
    assert channel.decode_frame(channel.encode_frame("{}", b"zz")) == ("{}", b"zz")
    assert channel.decode_frame(b"\x02\x00\x07\x00{}zz") == ("{}", b"zz")


@pytest.mark.parametrize("frame", [NORMAL, WIDE], ids=["normal", "wide"])
def test_every_frame_that_ends_before_its_json_does_is_noticed(frame: bytes) -> None:
    for size in range(len(frame) - len(PAYLOAD)):
        with pytest.raises(TruncatedError):
            channel.decode(frame[:size])


@pytest.mark.parametrize("length", [0, 1, 5, len(CLOUD) - 1, len(CLOUD) + 1, 65_535])
def test_a_length_that_lies_is_noticed(length: int) -> None:
    for head in (struct.pack("<HH", length, 7), struct.pack("<HHII", 2, 0, length, 0)):
        with pytest.raises(DecodeError):
            channel.decode(head + CLOUD.encode() + PAYLOAD)


def test_a_length_of_four_gigabytes_is_noticed() -> None:
    with pytest.raises(TruncatedError) as caught:
        channel.decode(struct.pack("<HHII", 2, 0, 2**32 - 1, 0) + b"{}")
    assert (caught.value.needed, caught.value.got) == (12 + 2**32 - 1, 14)


def test_a_frame_whose_json_is_not_utf_8_is_refused() -> None:
    with pytest.raises(DecodeError, match="UTF-8"):
        channel.decode(struct.pack("<HH", 4, 0) + b'"\xff\xfe"')


def test_a_response_may_bring_bytes_and_an_unknown_message_too() -> None:
    response = RpcResponse(service="arm", api_id=1, id=2, binary=PAYLOAD)
    assert channel.decode(channel.encode(response)) == response
    unknown = Unknown("levitate", {"type": "levitate"}, PAYLOAD)
    assert channel.decode(channel.encode(unknown)) == unknown


def test_bytes_that_belong_to_nothing_are_refused() -> None:
    text = '{"type":"validation","data":"x"}'
    assert channel.decode(channel.encode_frame(text, b"")) == Validation("x")
    with pytest.raises(PayloadError, match="cannot have"):
        channel.decode(channel.encode_frame(text, b"z"))


# ---- there and back -----------------------------------------------------------------------------

int64 = st.integers(-(2**63), 2**63 - 1)
positive = st.integers(0, 2**63 - 1)
topics = st.text(min_size=1, max_size=40).filter(lambda topic: not topic.startswith("rt/api/"))
json_values = st.recursive(
    st.none()
    | st.booleans()
    | int64
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
objects = st.dictionaries(st.text(), json_values, max_size=3)
services = st.sampled_from(sorted(SERVICES))
requests = st.builds(
    RpcRequest,
    service=services,
    api_id=int64,
    id=int64,
    parameter=st.text(),
    priority=int64,
    noreply=st.booleans(),
    lease=int64,
)
responses = st.builds(
    RpcResponse,
    service=services | st.text(min_size=1, max_size=9).filter(lambda text: "/" not in text),
    api_id=int64,
    id=int64,
    code=int64,
    data=st.text(),
    binary=st.binary(),
)
faults = st.builds(Fault, positive, positive, positive)


@st.composite
def chunks(draw: st.DrawFn) -> Chunk:
    count = draw(st.integers(1, MAX_CHUNKS))
    return Chunk(draw(responses), draw(st.integers(1, count)), count)


values: st.SearchStrategy[Value] = st.one_of(
    st.builds(Validation, st.text()),
    st.builds(Heartbeat, st.text(), int64),
    st.builds(Subscription, st.text(min_size=1, max_size=MAX_TOPIC), st.booleans()),
    st.builds(ChannelMessage, topics, json_values, st.binary()),
    requests,
    responses,
    chunks(),
    st.builds(Inner, objects, st.booleans()),
    st.builds(Complaint, st.text()),
    st.builds(Faults, st.just(Change.ALL), st.lists(faults, max_size=3).map(tuple)),
    st.builds(Faults, st.sampled_from([Change.ADDED, Change.REMOVED]), st.tuples(faults)),
    st.builds(MediaRequest, st.sampled_from(MediaTrack), st.booleans()),
)


@given(values, st.booleans())
def test_any_value_comes_back_as_it_was(value: Value, wide: bool) -> None:
    assert channel.decode(channel.encode(value, wide=wide)) == value


@given(st.text().filter(lambda kind: kind not in channel._DECODERS), objects, st.binary())
def test_any_unknown_type_comes_back_as_it_was(
    kind: str, document: dict[str, Any], binary: bytes
) -> None:
    unknown = Unknown(kind, {**document, "type": kind}, binary)
    assert channel.decode(channel.encode(unknown)) == unknown


@given(st.text(), st.binary(), st.booleans())
def test_any_text_and_payload_come_back_from_a_frame(text: str, binary: bytes, wide: bool) -> None:
    assert channel.decode_frame(channel.encode_frame(text, binary, wide=wide)) == (text, binary)


@pytest.mark.parametrize("topic", ["", "x" * (MAX_TOPIC + 1)])
def test_a_topic_that_would_be_refused_is_not_sent(topic: str) -> None:
    for value in (Subscription(topic), ChannelMessage(topic)):
        with pytest.raises(BadRequestError, match="topic"):
            channel.encode(value)


# ---- garbage ------------------------------------------------------------------------------------

types = st.sampled_from(sorted(channel._DECODERS))
fields = st.sampled_from(["topic", "data", "info", "header", "x"])
near_misses = st.builds(
    lambda kind, rest: json.dumps({**rest, "type": kind}),
    types,
    st.dictionaries(fields, json_values | st.sampled_from(["rt/api/arm/request", "on"])),
)


@given(st.text() | json_values.map(json.dumps) | near_misses)
def test_any_text_raises_nothing_but_decode_error(text: str) -> None:
    with contextlib.suppress(DecodeError):
        channel.decode(text)


@given(
    st.binary()
    | st.binary().map(lambda tail: b"\2\0\0\0" + tail)
    | st.builds(channel.encode_frame, near_misses, st.binary())
)
def test_any_bytes_raise_nothing_but_decode_error(data: bytes) -> None:
    with contextlib.suppress(DecodeError):
        channel.decode(data)


def leaves(document: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the way to every part of a document, itself included."""
    inner: list[tuple[Any, Any]] = []
    if isinstance(document, dict):
        inner = list(document.items())
    elif isinstance(document, list):
        inner = list(enumerate(document))
    return [path, *(way for key, value in inner for way in leaves(value, (*path, key)))]


@pytest.mark.parametrize("text", [text for text, _ in SEEN.values()], ids=SEEN.keys())
@pytest.mark.parametrize(
    "put", [None, True, -1, 2**70, 1e999, "", "x" * 300, [], [[]], {}, {"id": 1}], ids=repr
)
def test_any_part_of_a_real_message_may_be_anything(text: str, put: object) -> None:
    for path in leaves(json.loads(text))[1:]:
        document = json.loads(text)
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = put
        with contextlib.suppress(DecodeError):
            channel.decode(json.dumps(document).replace("Infinity", "1e999"))
        del place[path[-1]]
        with contextlib.suppress(DecodeError):
            channel.decode(json.dumps(document))


# ---- chunks -------------------------------------------------------------------------------------


def part(index: int, count: int, data: str = "", *, number: int = 1, binary: bytes = b"") -> Chunk:
    response = RpcResponse(service="arm", api_id=7107, id=number, data=data, binary=binary)
    return Chunk(response, index, count)


def test_parts_make_a_whole_when_the_last_has_come() -> None:
    assembler = Assembler()
    assert assembler.add(part(1, 3, "ab", binary=b"1")) is None
    assert assembler.add(part(2, 3, "cd", binary=b"2")) is None
    assert len(assembler) == 1
    whole = assembler.add(part(3, 3, "ef", binary=b"3"))
    assert whole == RpcResponse(service="arm", api_id=7107, id=1, data="abcdef", binary=b"123")
    assert len(assembler) == 0


def test_one_part_is_a_whole() -> None:
    assert Assembler().add(part(1, 1, "all")) == part(1, 1, "all").response


@given(st.lists(st.text(max_size=3), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_parts_in_any_order_and_repeated_make_the_same_whole(texts: list[str], rng: Any) -> None:
    parts = [part(index + 1, len(texts), text) for index, text in enumerate(texts)]
    order = parts * 2
    rng.shuffle(order)
    assembler = Assembler()
    first = next(whole for chunk in order if (whole := assembler.add(chunk)) is not None)
    assert first.data == "".join(texts)


def test_a_repeated_part_neither_counts_nor_changes_anything() -> None:
    assembler = Assembler()
    for letter in "abcdef":
        assert assembler.add(part(1, 2, letter * (MAX_ASSEMBLED // 4))) is None
    whole = assembler.add(part(2, 2, "!"))
    assert whole is not None
    assert whole.data == "a" * (MAX_ASSEMBLED // 4) + "!"


def test_responses_are_put_together_side_by_side() -> None:
    assembler = Assembler()
    other = Chunk(RpcResponse(service="sport", api_id=7107, id=1, data="x"), 1, 2)
    assert assembler.add(part(1, 2, "a")) is None
    assert assembler.add(part(1, 2, "b", number=2)) is None
    assert assembler.add(other) is None
    assert len(assembler) == 3
    whole = assembler.add(part(2, 2, "c", number=2))
    assert whole is not None
    assert whole.data == "bc"


def test_parts_that_disagree_about_their_number_are_dropped() -> None:
    assembler = Assembler()
    assembler.add(part(1, 3))
    with pytest.raises(PayloadError, match="differ in their count or are too large"):
        assembler.add(part(2, 2))
    assert len(assembler) == 0


def test_parts_that_grow_without_measure_are_dropped() -> None:
    assembler = Assembler()
    megabytes = "x" * (MAX_ASSEMBLED // 4)
    for index in range(1, 5):
        assembler.add(part(index, 9, megabytes))
    with pytest.raises(PayloadError, match="differ in their count or are too large"):
        assembler.add(part(5, 9, "x"))
    assert len(assembler) == 0


def test_the_oldest_of_too_many_unfinished_responses_is_dropped() -> None:
    assembler = Assembler()
    for number in range(MAX_ASSEMBLIES + 1):
        assembler.add(part(1, 2, "a", number=number))
    assert len(assembler) == MAX_ASSEMBLIES
    assert assembler.add(part(2, 2, "b", number=0)) is None
    assert assembler.add(part(2, 2, "b", number=MAX_ASSEMBLIES)) is not None


def test_what_is_forgotten_begins_anew() -> None:
    assembler = Assembler()
    assembler.add(part(1, 2))
    assembler.forget(RpcRequest(service="arm", api_id=7107, id=1))
    assembler.forget(RpcRequest(service="arm", api_id=7107, id=99))
    assert len(assembler) == 0
    assert assembler.add(part(2, 2)) is None


@given(
    st.text() | st.text('"\\\n\U0001f916x', max_size=300),
    st.integers(1, 100),
    st.binary(max_size=3),
)
def test_a_split_response_is_put_together_again(text: str, most: int, binary: bytes) -> None:
    whole = RpcResponse(service="arm", api_id=7107, id=9, code=3, data=text, binary=binary)
    parts = channel.split_response(whole, most)
    if len(parts) == 1:
        assert parts == (whole,)
        return
    assembler = Assembler()
    results = []
    for part in parts:
        sent = channel.decode(channel.encode(part))
        assert isinstance(sent, Chunk)
        written = len(json.dumps(sent.response.data)) - 2
        assert written <= most or len(sent.response.data) == 1
        results.append(assembler.add(sent))
    assert results == [None] * (len(parts) - 1) + [whole]
    assert len(assembler) == 0


def test_a_response_in_too_many_parts_is_not_sent() -> None:
    long = RpcResponse(service="arm", api_id=7107, id=9, data="x" * (channel.MAX_CHUNKS + 1))
    assert len(channel.split_response(long, 2)) == channel.MAX_CHUNKS // 2 + 1
    with pytest.raises(BadRequestError, match="parts"):
        channel.split_response(long, 1)
