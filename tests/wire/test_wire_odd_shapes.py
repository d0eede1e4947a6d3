"""JSON of any shape where a robot's should be: read as far as it goes, or refused."""

import contextlib
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError
from rote.model.g1 import G1_29
from rote.wire.services import rpc
from rote.wire.services.lowstate import decode_battery, decode_fsm, decode_lowstate, select_joints
from rote.wire.webrtc import channel

NUMBERS = st.one_of(
    st.integers(-(2**70), 2**70),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([500, 500.0, "500", "99.0", -1, 0, "", None, True]),
)
TEXTS = st.one_of(st.text(max_size=8), st.sampled_from(["name", "\ud83d", "a\0b", "a\nb", "3.2s"]))
KEYS = st.sampled_from(
    [
        "id",
        "name",
        "time",
        "fsm",
        "data",
        "holding",
        "motor_state",
        "q",
        "dq",
        "tick",
        "soc",
        "imu_state",
        "accelerometer",
        "temperature",
        "fsm_id",
        "mode_machine",
        "header",
        "status",
        "identity",
        "code",
        "api_id",
        "type",
        "topic",
        "content_info",
        "enable_chunking",
    ]
)
SHAPES: st.SearchStrategy[Any] = st.recursive(
    NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=12,
)


@given(SHAPES)
def test_a_list_of_any_shape_is_read_entry_by_entry_or_refused(shape: object) -> None:
    with contextlib.suppress(DecodeError):
        told = rpc.decode_actions(json.dumps(shape))
        assert all(isinstance(action.name, str) for action in told.taught)
        assert all(isinstance(preset.name, str) for preset in told.presets)
        assert all(0.0 <= action.seconds < 2**31 for action in told.taught)
        assert all(isinstance(preset.id, int) for preset in told.presets)


@given(st.lists(SHAPES, max_size=3), st.lists(SHAPES, max_size=3))
def test_one_odd_entry_hides_no_other(before: list[object], after: list[object]) -> None:
    lists = [[*before, {"id": 7, "name": "bow"}], [*after, {"name": "mine", "time": 2.0}]]
    told = rpc.decode_actions(json.dumps(lists))
    assert rpc.RpcPreset(7, "bow") in told.presets
    assert rpc.RpcTaughtAction("mine", 2.0) in told.taught


@given(SHAPES, st.lists(SHAPES, max_size=40))
def test_a_lowstate_of_any_shape_is_joints_or_refused(rest: object, motors: list[object]) -> None:
    for shape in (rest, {"motor_state": motors}, {"motor_state": [*motors, {"q": 0.5}]}):
        with contextlib.suppress(DecodeError):
            joints = select_joints(decode_lowstate(shape), G1_29)
            assert len(joints.joints_rad) == len(G1_29.names)
            assert len(joints.velocities_rad_s) in (0, len(G1_29.names))


@given(SHAPES)
def test_other_topics_and_answers_of_any_shape_are_read_or_refused(shape: object) -> None:
    text = json.dumps(shape)
    for read in (rpc.read_arm_state, decode_fsm, decode_battery):
        with contextlib.suppress(DecodeError):
            read(shape)
    for decode in (rpc.decode_arm_state, rpc.decode_value, rpc.decode_mode_check):
        with contextlib.suppress(DecodeError):
            decode(text)


@given(SHAPES, st.sampled_from(["res", "msg", "errors", "rtc_inner_req", "validation"]))
def test_a_message_of_any_shape_is_a_value_or_refused(shape: object, kind: str) -> None:
    message = {"type": kind, "topic": "rt/api/arm/response", "data": shape}
    text = json.dumps(message)
    for whole in (text, "\ufeff" + text, text + "\0", channel.encode_frame(text, b"{}")):
        with contextlib.suppress(DecodeError):
            channel.decode(whole)
