"""Requests and responses as DDS packs them, byte for byte, and whatever else arrives."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, DecodeError, PayloadError, TruncatedError
from rote.wire.cdr_layout import HEADER
from rote.wire.dds import cdr
from rote.wire.services.rpc import RpcRequest, RpcResponse

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(st.characters(codec="utf-8"), max_size=40)


def request(number: int = 1, **how: object) -> RpcRequest:
    return RpcRequest(service="arm", api_id=7107, id=number, **how)  # type: ignore[arg-type]


def test_a_request_is_packed_as_the_vendors_type_is() -> None:
    packed = cdr.encode_request(request(5, parameter="{}", priority=2, noreply=True, lease=3))
    assert packed.hex(" ", -4) == (
        "00010000 05000000 00000000 c31b0000 00000000 03000000 00000000 "
        "02000000 01000000 03000000 7b7d0000 00000000"
    )


def test_a_response_is_packed_as_the_vendors_type_is() -> None:
    response = RpcResponse(service="arm", api_id=7107, id=5, code=7402, data="abc", binary=b"\x09")
    assert cdr.encode_response(response).hex(" ", -4) == (
        "00010000 05000000 00000000 c31b0000 00000000 ea1c0000 04000000 61626300 01000000 09"
    )


@given(INT64, INT64, INT64, INT32, st.booleans(), TEXT)
def test_every_request_comes_back(
    number: int, api: int, lease: int, priority: int, noreply: bool, parameter: str
) -> None:
    asked = RpcRequest(
        service="sport",
        api_id=api,
        id=number,
        parameter=parameter,
        priority=priority,
        noreply=noreply,
        lease=lease,
    )
    assert cdr.decode_request(cdr.encode_request(asked), "sport") == asked


@given(INT64, INT64, INT32, TEXT, st.binary(max_size=20))
def test_every_response_comes_back(
    number: int, api: int, code: int, data: str, binary: bytes
) -> None:
    said = RpcResponse(service="arm", api_id=api, id=number, code=code, data=data, binary=binary)
    assert cdr.decode_response(cdr.encode_response(said), "arm") == said


@given(TEXT)
def test_every_text_comes_back(text: str) -> None:
    assert cdr.decode_text(cdr.encode_text(text)) == text


@pytest.mark.parametrize("mode", [0, 1, 500, 801])
def test_a_mode_comes_back(mode: int) -> None:
    assert cdr.decode_mode(cdr.encode_mode(mode)) == mode


@pytest.mark.parametrize("percent", [0.0, 42.0, 100.0])
def test_a_battery_comes_back(percent: float) -> None:
    assert cdr.decode_battery(cdr.encode_battery(percent)) == percent


def test_a_battery_that_is_too_full_is_not_believed() -> None:
    packed = bytearray(cdr.encode_battery(100.0))
    place = packed.index(bytes([100, 100]))
    packed[place] = 101
    with pytest.raises(PayloadError):
        cdr.decode_battery(bytes(packed))


DECODERS = (
    lambda data: cdr.decode_request(data, "arm"),
    lambda data: cdr.decode_response(data, "arm"),
    cdr.decode_text,
    cdr.decode_mode,
    cdr.decode_battery,
)


@given(st.sampled_from(DECODERS), st.binary(max_size=80), st.booleans())
def test_arbitrary_bytes_never_raise_anything_but_decode_error(
    decode: object, data: bytes, headed: bool
) -> None:
    with contextlib.suppress(DecodeError):
        decode(HEADER + data if headed else data)  # type: ignore[operator]


@pytest.mark.parametrize("decode", DECODERS)
def test_what_ends_too_early_is_truncated(decode: object) -> None:
    for data in (b"", b"\0", HEADER, HEADER + b"\1\0\0\0"):
        with pytest.raises(TruncatedError):
            decode(data)  # type: ignore[operator]


def test_a_request_cut_anywhere_is_truncated() -> None:
    whole = cdr.encode_request(request(parameter="hello"))
    for end in range(len(whole)):
        with pytest.raises(TruncatedError):
            cdr.decode_request(whole[:end], "arm")


def test_other_encodings_are_refused_with_a_remedy() -> None:
    with pytest.raises(DecodeError) as caught:
        cdr.decode_text(b"\x00\x00" + cdr.encode_text("x")[2:])
    assert "CycloneDDS" in caught.value.remedy


@pytest.mark.parametrize("raw", [b"\x02\0\0\0ab", b"\x03\0\0\0\xff\xff\0", b"\0\0\0\0"])
def test_a_text_without_its_end_or_in_another_encoding_is_refused(raw: bytes) -> None:
    with pytest.raises(PayloadError):
        cdr.decode_text(HEADER + raw)


def test_what_dds_cannot_hold_is_refused_before_it_is_sent() -> None:
    with pytest.raises(BadRequestError):
        cdr.encode_request(request(2**63))
    with pytest.raises(BadRequestError):
        cdr.encode_request(request(parameter="\ud800"))
    with pytest.raises(BadRequestError):
        cdr.encode_response(RpcResponse(service="arm", api_id=1, id=1, code=2**31))
