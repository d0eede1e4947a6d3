"""RTP and RTCP headers, against themselves and against garbage."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, TruncatedError
from rote.wire import rtp
from rote.wire.rtp import Rtcp, RtcpType, Rtp

U32 = st.integers(0, 2**32 - 1)
WORDS = st.binary(max_size=5).map(lambda data: data * 4)
PACKETS = st.builds(
    Rtp,
    st.integers(0, 127).filter(lambda kind: not 64 <= kind <= 95),
    st.integers(0, 2**16 - 1),
    U32,
    U32,
    st.binary(max_size=30),
    st.booleans(),
    st.booleans(),
    st.lists(U32, max_size=15).map(tuple),
    st.none() | st.tuples(st.integers(0, 2**16 - 1), WORDS),
)


@given(PACKETS)
def test_media_is_read_as_it_was_written(packet: Rtp) -> None:
    datagram = rtp.encode_rtp(packet)
    assert rtp.decode_rtp(datagram) == packet
    assert not rtp.is_rtcp(datagram)
    with pytest.raises(DecodeError):
        rtp.decode_rtcp(datagram)


@given(st.integers(192, 223), st.integers(0, 31), U32, WORDS, st.booleans())
def test_a_report_is_read_as_it_was_written(
    kind: int, items: int, source: int, rest: bytes, padded: bool
) -> None:
    report = Rtcp(kind, items, 1 + len(rest) // 4, source, rest, padded)
    datagram = rtp.encode_rtcp(report)
    assert rtp.decode_rtcp(datagram) == report
    assert rtp.is_rtcp(datagram)
    with pytest.raises(DecodeError):
        rtp.decode_rtp(datagram + bytes(12))


def test_a_protected_report_is_longer_than_it_says() -> None:
    report = rtp.decode_rtcp(bytes.fromhex("81c90007 00000001") + bytes(24 + 14))
    assert report.type == RtcpType.RECEIVER_REPORT
    assert report.items == 1


@pytest.mark.parametrize(
    "datagram",
    [
        bytes.fromhex("8060") + bytes(9),
        bytes.fromhex("8f60") + bytes(60),
        bytes.fromhex("9060") + bytes(13),
        bytes.fromhex("9060") + bytes(12) + b"\0\1" + bytes(3),
    ],
)
def test_media_cut_short_is_no_media(datagram: bytes) -> None:
    with pytest.raises(TruncatedError):
        rtp.decode_rtp(datagram)


@pytest.mark.parametrize("datagram", [b"\x80\xc8\0\1", b"\x80\xc8\0\2" + bytes(4)])
def test_a_report_cut_short_is_no_report(datagram: bytes) -> None:
    with pytest.raises(TruncatedError):
        rtp.decode_rtcp(datagram)


@given(st.binary(max_size=40))
def test_arbitrary_bytes_raise_nothing_but_decode_error(data: bytes) -> None:
    rtp.is_rtcp(data)
    for read in (rtp.decode_rtp, rtp.decode_rtcp):
        with contextlib.suppress(DecodeError):
            read(data)
            read(b"\x9f" + data)
