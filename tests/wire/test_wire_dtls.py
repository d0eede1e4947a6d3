"""DTLS against the bytes of real handshakes, against itself and against garbage."""

import contextlib
import hashlib
import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, PayloadError, TruncatedError
from rote.wire.packets import dtls, dtls_handshake
from rote.wire.packets.dtls import (
    ContentType,
    DtlsRecord,
    Fragment,
    Handshake,
    HandshakeAssembler,
    HandshakeType,
    Version,
)
from rote.wire.packets.dtls_handshake import (
    Certificate,
    ClientHello,
    ClientKeyExchange,
    ExtensionType,
    HandshakeContent,
    HelloVerifyRequest,
    ServerHello,
    ServerKeyExchange,
)

# The 57-byte "command" that earlier readings of captures took for a protocol of its own.
MISREAD = bytes.fromhex("17fefd0001 00000000010d 002c") + bytes(44)

U16 = st.integers(0, 2**16 - 1)
RECORDS = st.builds(
    DtlsRecord,
    st.sampled_from([20, 21, 22, 23, 24, 25, 26]),
    U16,
    st.integers(0, 2**48 - 1),
    st.binary(max_size=60),
    st.sampled_from([0xFEFF, 0xFEFD]),
)
RANDOMS = st.binary(min_size=32, max_size=32)
SHORT = st.binary(max_size=32)
EXTENSIONS = st.lists(st.tuples(U16, st.binary(max_size=20)), max_size=5).map(tuple)
SAID: st.SearchStrategy[HandshakeContent] = st.one_of(
    st.builds(
        ClientHello,
        random=RANDOMS,
        version=U16,
        session=SHORT,
        cookie=SHORT,
        cipher_suites=st.lists(U16, max_size=9).map(tuple),
        extensions=EXTENSIONS,
    ),
    st.builds(
        ServerHello,
        random=RANDOMS,
        version=U16,
        session=SHORT,
        cipher_suite=U16,
        extensions=EXTENSIONS,
    ),
    st.builds(HelloVerifyRequest, SHORT, U16),
    st.builds(Certificate, st.lists(st.binary(max_size=50), max_size=3).map(tuple)),
    st.builds(ServerKeyExchange, U16, SHORT),
    st.builds(ClientKeyExchange, SHORT),
)


# ---- records ------------------------------------------------------------------------------------


def test_the_misread_command_is_a_record_with_a_counter() -> None:
    (record,) = dtls.decode_records(MISREAD)
    assert (record.type, record.epoch, record.sequence) == (ContentType.APPLICATION_DATA, 1, 0x10D)
    assert len(record.fragment) == 44


@given(st.lists(RECORDS, min_size=1, max_size=4))
def test_records_are_read_as_they_were_written(records: list[DtlsRecord]) -> None:
    datagram = b"".join(map(dtls.encode_record, records))
    assert dtls.decode_records(datagram) == tuple(records)


@given(st.lists(RECORDS, min_size=1, max_size=3), st.data())
def test_records_cut_short_are_no_records(records: list[DtlsRecord], data: st.DataObject) -> None:
    datagram = b"".join(map(dtls.encode_record, records))
    ends = set(itertools.accumulate(13 + len(record.fragment) for record in records))
    cut = data.draw(st.integers(0, len(datagram) - 1).filter(lambda at: at not in ends))
    with pytest.raises(TruncatedError):
        dtls.decode_records(datagram[:cut])


@pytest.mark.parametrize(
    ("start", "why"),
    [
        ("13fefd", "not a DTLS record: it begins with"),
        ("170303", "not a DTLS record: it begins with"),
        ("17fefd0001000000000001ffff", "the maximum is"),
    ],
)
def test_what_is_no_record_is_refused_with_a_reason(start: str, why: str) -> None:
    with pytest.raises(DecodeError, match=why):
        dtls.decode_records(bytes.fromhex(start).ljust(40, b"\0"))


@pytest.mark.parametrize(
    ("head", "sequence"), [("2a 1234", 0x1234), ("22 34", 0x34), ("2e 1234 0014", 0x1234)]
)
def test_a_record_of_dtls_1_3_shows_the_low_bits_only(head: str, sequence: int) -> None:
    (record,) = dtls.decode_records(bytes.fromhex(head) + bytes(20))
    assert record == DtlsRecord(ContentType.HIDDEN, 2, sequence, bytes(20), Version.DTLS_1_3)


@pytest.mark.parametrize("datagram", ["3a 1234", "2e 12", "2a 1234 00", "2e 1234 0020"])
def test_a_record_of_dtls_1_3_that_cannot_be_one_is_refused(datagram: str) -> None:
    with pytest.raises(DecodeError):
        dtls.decode_records(bytes.fromhex(datagram) + bytes(12 if len(datagram) == 12 else 0))
    with pytest.raises(DecodeError):
        dtls.decode_records(bytes.fromhex("2e 1234 0020") + bytes(31))


def test_versions_and_suites_have_names() -> None:
    assert [version.label for version in Version] == ["DTLS 1.0", "DTLS 1.2", "DTLS 1.3"]
    assert dtls.find_suite(0xC02B).name == "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    assert dtls.find_suite(0xC030).prf == "sha384"
    assert (dtls.find_suite(0xC02B).overhead, dtls.find_suite(0xCCA9).overhead) == (24, 16)
    assert dtls.find_suite(0xC00A).overhead == 0
    assert dtls.find_suite(0x1234).name == "cipher suite 0x1234"


# ---- pieces of messages -------------------------------------------------------------------------


@given(st.lists(st.tuples(st.integers(0, 255), U16, st.binary(max_size=40)), min_size=1))
def test_pieces_are_read_as_they_were_written(parts: list[tuple[int, int, bytes]]) -> None:
    pieces = tuple(Fragment(kind, 99 + len(body), n, 99, body) for kind, n, body in parts)
    assert dtls.decode_fragments(b"".join(map(dtls.encode_fragment, pieces))) == pieces


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (b"", TruncatedError),
        (bytes(11), TruncatedError),
        (dtls.encode_fragment(Fragment(1, 9, 0, 0, bytes(9)))[:-1], TruncatedError),
        (dtls.encode_fragment(Fragment(1, 8, 0, 0, bytes(9))), PayloadError),
        (dtls.encode_fragment(Fragment(1, 9, 0, 1, bytes(9))), PayloadError),
    ],
)
def test_pieces_that_lie_are_refused(payload: bytes, error: type[DecodeError]) -> None:
    with pytest.raises(error):
        dtls.decode_fragments(payload)


@given(st.binary(min_size=1, max_size=300), st.integers(1, 50), st.integers(0, 9), st.randoms())
def test_a_message_is_whole_when_its_last_piece_is_there_whatever_the_order(
    body: bytes, size: int, overlap: int, chance: random.Random
) -> None:
    pieces = [
        Fragment(11, len(body), 3, start, body[start : start + size + overlap])
        for start in range(0, len(body), size)
    ]
    pieces += chance.sample(pieces, len(pieces) // 2)
    chance.shuffle(pieces)
    assembler = HandshakeAssembler()
    found = [whole for piece in pieces if (whole := assembler.add(piece))]
    assert found
    assert set(found) == {Handshake(11, 3, body)}


def test_messages_whose_pieces_are_missing_are_forgotten_one_day() -> None:
    assembler = HandshakeAssembler()
    for number in range(100):
        assert assembler.add(Fragment(11, 1000, number, 0, bytes(10))) is None
    assert len(assembler) == dtls.MAX_OPEN


def test_a_piece_of_another_message_of_the_same_number_begins_anew() -> None:
    assembler = HandshakeAssembler()
    assert assembler.add(Fragment(11, 4, 0, 0, b"ab")) is None
    assert assembler.add(Fragment(12, 4, 0, 2, b"yz")) is None
    assert assembler.add(Fragment(12, 4, 0, 0, b"wx")) == Handshake(12, 0, b"wxyz")
    assert len(assembler) == 0


def test_a_claim_of_sixteen_megabytes_takes_no_memory() -> None:
    with pytest.raises(PayloadError, match="the maximum is"):
        HandshakeAssembler().add(Fragment(11, 2**24 - 1, 0, 0, b"a"))


# ---- what messages say --------------------------------------------------------------------------


@given(SAID, U16)
def test_what_is_said_is_read_as_it_was_written(said: HandshakeContent, number: int) -> None:
    handshake = dtls_handshake.encode_handshake(said, number)
    assert handshake.number == number
    assert dtls_handshake.decode_handshake(handshake) == said


@given(st.integers(0, 255), st.binary(max_size=80))
def test_arbitrary_messages_raise_nothing_but_decode_error(kind: int, body: bytes) -> None:
    with contextlib.suppress(DecodeError):
        dtls_handshake.decode_handshake(Handshake(kind, 0, body))


@given(st.binary(max_size=80))
def test_arbitrary_bytes_raise_nothing_but_decode_error(data: bytes) -> None:
    for read in (dtls.decode_records, dtls.decode_fragments):
        with contextlib.suppress(DecodeError):
            read(data)
            read(b"\x16\xfe\xfd" + data)


def test_a_hello_tells_its_extensions() -> None:
    hello = ClientHello(
        random=bytes(32),
        extensions=(
            (ExtensionType.USE_SRTP, bytes.fromhex("0004 0001 0007 00")),
            (ExtensionType.EXTENDED_MASTER_SECRET, b""),
            (ExtensionType.SUPPORTED_VERSIONS, bytes.fromhex("04 fefc fefd")),
        ),
    )
    assert hello.srtp_profiles == (1, 7)
    assert hello.extended_master_secret
    assert hello.versions == (Version.DTLS_1_3, Version.DTLS_1_2)
    assert hello.extension(1) is None


def test_a_plain_hello_has_one_version_and_no_media() -> None:
    hello = ServerHello(random=bytes(32), version=Version.DTLS_1_0)
    assert hello.versions == (Version.DTLS_1_0,)
    assert hello.srtp_profiles == ()
    assert not hello.extended_master_secret
    newer = ServerHello(
        random=bytes(32), extensions=((ExtensionType.SUPPORTED_VERSIONS, b"\xfe\xfc"),)
    )
    assert newer.versions == (Version.DTLS_1_3,)


def test_a_certificate_has_the_fingerprint_an_sdp_announces() -> None:
    fingerprint = Certificate((b"first", b"second")).fingerprint
    assert fingerprint.replace(":", "").lower() == hashlib.sha256(b"first").hexdigest()
    assert Certificate(()).fingerprint == ""


def test_a_key_exchange_on_a_curve_without_a_name_is_not_read() -> None:
    handshake = Handshake(HandshakeType.SERVER_KEY_EXCHANGE, 0, b"\1\0\x17\0")
    assert dtls_handshake.decode_handshake(handshake) is None
