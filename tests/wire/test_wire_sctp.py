"""SCTP and the opening of channels, against aiortc, against themselves and against garbage."""

import contextlib

import pytest
from aiortc import rtcsctptransport as peer
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, PayloadError, TruncatedError
from rote.wire.packets import sctp
from rote.wire.packets.sctp import (
    ChannelOpened,
    Chunk,
    ChunkType,
    Data,
    ForwardTsn,
    Init,
    Open,
    Other,
    Packet,
    Sack,
)

U16, U32 = st.integers(0, 2**16 - 1), st.integers(0, 2**32 - 1)
BYTES = st.binary(max_size=40)
PAIRS = st.lists(st.tuples(U16, U16), max_size=4).map(tuple)
READ = {0, 1, 2, 3, 192}
CHUNKS: st.SearchStrategy[Chunk] = st.one_of(
    st.builds(Data, U32, U16, U16, U32, BYTES, st.integers(0, 15)),
    st.builds(Init, U32, U32, U16, U16, U32, BYTES, st.booleans()),
    st.builds(Sack, U32, U32, PAIRS, st.lists(U32, max_size=4).map(tuple)),
    st.builds(ForwardTsn, U32, PAIRS),
    st.builds(
        Other, st.integers(0, 255).filter(lambda n: n not in READ), BYTES, st.integers(0, 255)
    ),
)
PACKETS = st.builds(Packet, U16, U16, U32, st.lists(CHUNKS, max_size=5).map(tuple))


@given(PACKETS)
def test_a_packet_is_read_as_it_was_written_and_its_checksum_holds(packet: Packet) -> None:
    data = sctp.encode(packet)
    assert sctp.decode(data) == packet
    assert len(data) % 4 == 0
    assert sctp.checksum_holds(data)


@given(PACKETS, st.data())
def test_one_wrong_bit_breaks_the_checksum(packet: Packet, draw: st.DataObject) -> None:
    data = bytearray(sctp.encode(packet))
    bit = draw.draw(st.integers(0, len(data) * 8 - 1))
    data[bit // 8] ^= 1 << bit % 8
    assert not sctp.checksum_holds(bytes(data))


def test_the_checksum_is_the_published_one() -> None:
    assert sctp.crc32c(b"123456789") == 0xE3069283


@given(U32, U16, U16, BYTES, st.integers(0, 7))
def test_aiortc_reads_our_data_as_we_mean_it(
    number: int, stream: int, sequence: int, payload: bytes, flags: int
) -> None:
    chunk = Data(number, stream, sequence, 51, payload, flags)
    _, _, tag, (read,) = peer.parse_packet(sctp.encode(Packet(5000, 5000, 7, (chunk,))))
    assert isinstance(read, peer.DataChunk)
    assert tag == 7
    assert (read.tsn, read.stream_id, read.stream_seq, read.protocol) == chunk[:4]
    assert read.user_data == payload
    assert chunk.ends == bool(read.flags & peer.SCTP_DATA_LAST_FRAG)
    assert chunk.begins == bool(read.flags & peer.SCTP_DATA_FIRST_FRAG)
    assert chunk.unordered == bool(read.flags & peer.SCTP_DATA_UNORDERED)


@given(U32, PAIRS, st.lists(U32, max_size=3))
def test_we_read_what_aiortc_acknowledges(
    number: int, gaps: tuple[tuple[int, int], ...], repeated: list[int]
) -> None:
    chunk = peer.SackChunk()
    chunk.cumulative_tsn, chunk.advertised_rwnd = number, 131072
    chunk.gaps, chunk.duplicates = list(gaps), repeated
    (read,) = sctp.decode(peer.serialize_packet(5000, 5000, 9, chunk)).chunks
    assert read == Sack(number, 131072, gaps, tuple(repeated))


@pytest.mark.parametrize(
    ("chunk", "name"),
    [
        (Data(0, 0, 0, 51, b""), "DATA"),
        (Init(0, 0, 1, 1, 0), "INIT"),
        (Init(0, 0, 1, 1, 0, answer=True), "INIT_ACK"),
        (Sack(0, 0), "SACK"),
        (ForwardTsn(0), "FORWARD_TSN"),
        (Other(ChunkType.COOKIE_ECHO, b"biscuit"), "COOKIE_ECHO"),
        (Other(77), "chunk 77"),
    ],
)
def test_a_chunk_has_a_name(chunk: Chunk, name: str) -> None:
    assert sctp.get_chunk_name(chunk) == name


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (b"", TruncatedError),
        (bytes(12) + b"\0", TruncatedError),
        (bytes(12) + b"\0\3\0\3", DecodeError),
        (bytes(12) + b"\0\3\0\x09abcd", TruncatedError),
        (bytes(12) + b"\0\3\0\x08abcd", PayloadError),
        (bytes(12) + b"\1\0\0\x08abcd", PayloadError),
        (bytes(12) + b"\3\0\0\x08abcd", PayloadError),
        (bytes(12) + b"\3\0\0\x14" + bytes(8) + b"\0\1\0\1" + bytes(4), PayloadError),
        (bytes(12) + b"\xc0\0\0\x06ab\0\0", PayloadError),
        (bytes(12) + b"\xc0\0\0\x0aabcdef\0\0", PayloadError),
    ],
)
def test_chunks_that_lie_are_refused(body: bytes, error: type[DecodeError]) -> None:
    with pytest.raises(error):
        sctp.decode(body)


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_but_decode_error(data: bytes) -> None:
    sctp.checksum_holds(data)
    for read in (sctp.decode, sctp.decode_dcep):
        with contextlib.suppress(DecodeError):
            read(data)
            read(bytes(12) + data)


# ---- opening a channel --------------------------------------------------------------------------


@given(
    st.builds(
        Open,
        st.text(max_size=20),
        st.text(max_size=9),
        st.integers(0, 255),
        U16,
        U32,
    )
    | st.just(ChannelOpened())
)
def test_the_opening_of_a_channel_is_read_as_it_was_written(word: Open | ChannelOpened) -> None:
    assert sctp.decode_dcep(sctp.encode_dcep(word)) == word


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"\3\0", TruncatedError),
        (b"\4" + bytes(11), PayloadError),
        (sctp.encode_dcep(Open("data")) + b"x", PayloadError),
        (sctp.encode_dcep(Open("data"))[:-1] + b"\xff", PayloadError),
    ],
)
def test_what_opens_nothing_is_refused(payload: bytes, error: type[DecodeError]) -> None:
    with pytest.raises(error):
        sctp.decode_dcep(payload)
