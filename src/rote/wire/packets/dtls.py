"""DTLS as a capture shows it: records, and the handshake messages in them.

    record      u8 type, u16 version, u16 epoch, u48 sequence, u16 n, n bytes
    handshake   u8 type, u24 length, u16 message, u24 offset, u24 n, n bytes of the whole

All integers are big-endian. Until the epoch becomes 1 everything can be read; from then on only the
headers can. In DTLS 1.3 even those are short and partly hidden. Decoders raise only `DecodeError`,
for any bytes. RFC 6347 and 9147; dtls_handshake.py reads the messages.
"""

import struct
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple

from rote.errors import DecodeError, PayloadError, TruncatedError

RECORD_HEADER = 13
MAX_FRAGMENT = 2**14 + 2048
"""The largest content of a record, with everything that encryption adds."""
MAX_HANDSHAKE = 2**17
"""Maximum size of a handshake message; a chain of certificates has a few thousand bytes."""
MAX_OPEN = 16
"""Maximum number of handshake messages that wait for missing pieces."""

_RECORD = struct.Struct(">BHHHIH")
_FRAGMENT_HEADER = 12
_TAG_BYTES = 16
"""The size of an authentication tag, in all cipher suites that are known here."""


class ContentType(IntEnum):
    """What a record holds."""

    CHANGE_CIPHER_SPEC = 20
    ALERT = 21
    HANDSHAKE = 22
    APPLICATION_DATA = 23
    HEARTBEAT = 24
    CONNECTION_ID = 25
    ACK = 26
    HIDDEN = -1
    """A record of DTLS 1.3, whose type is encrypted too."""


class Version(IntEnum):
    """The numbers of the versions."""

    DTLS_1_0 = 0xFEFF
    DTLS_1_2 = 0xFEFD
    DTLS_1_3 = 0xFEFC

    @property
    def label(self) -> str:
        """The version as shown to the user."""
        return self.name.replace("_", " ", 1).replace("_", ".")


class HandshakeType(IntEnum):
    """The first byte of a handshake message."""

    HELLO_REQUEST = 0
    CLIENT_HELLO = 1
    SERVER_HELLO = 2
    HELLO_VERIFY_REQUEST = 3
    NEW_SESSION_TICKET = 4
    ENCRYPTED_EXTENSIONS = 8
    CERTIFICATE = 11
    SERVER_KEY_EXCHANGE = 12
    CERTIFICATE_REQUEST = 13
    SERVER_HELLO_DONE = 14
    CERTIFICATE_VERIFY = 15
    CLIENT_KEY_EXCHANGE = 16
    FINISHED = 20


class Suite(NamedTuple):
    """A cipher suite, and how it protects records if that is known here."""

    name: str
    aead: str = ""
    """`aes-gcm`, `chacha20-poly1305`, or empty if it cannot be decrypted here."""
    key_bytes: int = 0
    fixed_iv_bytes: int = 0
    explicit_nonce_bytes: int = 0
    prf: str = "sha256"

    @property
    def overhead(self) -> int:
        """How many bytes a record is longer than its content; 0 if that is not known."""
        return self.explicit_nonce_bytes + _TAG_BYTES if self.aead else 0


def _make_gcm_suite(key_exchange: str, bits: int) -> Suite:
    prf = "sha384" if bits == 256 else "sha256"
    name = f"TLS_{key_exchange}_WITH_AES_{bits}_GCM_{prf.upper()}"
    return Suite(name, "aes-gcm", bits // 8, fixed_iv_bytes=4, explicit_nonce_bytes=8, prf=prf)


def _make_chacha_suite(key_exchange: str) -> Suite:
    name = f"TLS_{key_exchange}_WITH_CHACHA20_POLY1305_SHA256"
    return Suite(name, "chacha20-poly1305", key_bytes=32, fixed_iv_bytes=12)


CIPHER_SUITES: dict[int, Suite] = {
    0x009C: _make_gcm_suite("RSA", 128),
    0x009D: _make_gcm_suite("RSA", 256),
    0x009E: _make_gcm_suite("DHE_RSA", 128),
    0x009F: _make_gcm_suite("DHE_RSA", 256),
    0xC02B: _make_gcm_suite("ECDHE_ECDSA", 128),
    0xC02C: _make_gcm_suite("ECDHE_ECDSA", 256),
    0xC02F: _make_gcm_suite("ECDHE_RSA", 128),
    0xC030: _make_gcm_suite("ECDHE_RSA", 256),
    0xCCA8: _make_chacha_suite("ECDHE_RSA"),
    0xCCA9: _make_chacha_suite("ECDHE_ECDSA"),
    0xCCAA: _make_chacha_suite("DHE_RSA"),
    0xC009: Suite("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA"),
    0xC00A: Suite("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA"),
    0xC013: Suite("TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA"),
    0xC014: Suite("TLS_ECDHE_RSA_WITH_AES_256_CBC_SHA"),
    0xC023: Suite("TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA256"),
    0xC024: Suite("TLS_ECDHE_ECDSA_WITH_AES_256_CBC_SHA384"),
    0x1301: Suite("TLS_AES_128_GCM_SHA256"),
    0x1302: Suite("TLS_AES_256_GCM_SHA384"),
    0x1303: Suite("TLS_CHACHA20_POLY1305_SHA256"),
}


def find_suite(number: int) -> Suite:
    """Return the cipher suite with this number; an unknown one is named by the number."""
    return CIPHER_SUITES.get(number, Suite(f"cipher suite 0x{number:04x}"))


# ---- records ------------------------------------------------------------------------------------


class DtlsRecord(NamedTuple):
    """One record: its header and its content, which is encrypted unless the epoch is 0."""

    type: int
    """A `ContentType`."""
    epoch: int
    sequence: int
    """In a hidden record, only the low bits; the same applies to the epoch."""
    fragment: bytes
    version: int = Version.DTLS_1_2


_TYPES = frozenset(range(ContentType.CHANGE_CIPHER_SPEC, ContentType.ACK + 1))
_VERSIONS = frozenset({Version.DTLS_1_0, Version.DTLS_1_2})


def encode_record(record: DtlsRecord) -> bytes:
    """Return the bytes of a record that is not hidden."""
    high, low = divmod(record.sequence, 2**32)
    head = _RECORD.pack(record.type, record.version, record.epoch, high, low, len(record.fragment))
    return head + record.fragment


def decode_records(datagram: bytes) -> tuple[DtlsRecord, ...]:
    """Return the records that fill a datagram to its last byte."""
    records: list[DtlsRecord] = []
    offset = 0
    while offset < len(datagram) or not records:  # an empty datagram raises `TruncatedError`
        # A hidden record begins with the bits 001; other records begin with a type from 20 to 26.
        is_hidden = offset < len(datagram) and datagram[offset] >> 5 == 0b001
        read = _read_hidden_record if is_hidden else _read_record
        record, offset = read(datagram, offset)
        records.append(record)
    return tuple(records)


def _read_record(datagram: bytes, offset: int) -> tuple[DtlsRecord, int]:
    """Return the record at `offset`, and the offset of its end."""
    start = offset + RECORD_HEADER
    if len(datagram) < start:
        raise TruncatedError(start, len(datagram))
    kind, version, epoch, high, low, length = _RECORD.unpack_from(datagram, offset)
    if kind not in _TYPES or version not in _VERSIONS:
        begin = datagram[offset : offset + 3].hex(" ")
        raise DecodeError(f"not a DTLS record: it begins with {begin}")
    if length > MAX_FRAGMENT:
        raise DecodeError(f"the DTLS record has {length} bytes; the maximum is {MAX_FRAGMENT}")
    end = start + length
    if end > len(datagram):
        raise TruncatedError(end, len(datagram))
    return DtlsRecord(kind, epoch, high << 32 | low, datagram[start:end], version), end


def _read_hidden_record(datagram: bytes, offset: int) -> tuple[DtlsRecord, int]:
    """Return the DTLS 1.3 record at `offset`, and the offset of its end.

    The bits of its first byte are 001, whether it has a connection id, whether its sequence number
    has 16 bits instead of 8, whether it has a length, and the two low bits of the epoch.
    """
    first_byte = datagram[offset]
    if first_byte & 0b1_0000:
        raise DecodeError("the DTLS 1.3 record has a connection id of unknown length")
    sequence_bytes = 2 if first_byte & 0b1000 else 1
    has_length = bool(first_byte & 0b100)
    start = offset + 1 + sequence_bytes + 2 * has_length
    if len(datagram) < start:
        raise TruncatedError(start, len(datagram))
    sequence = int.from_bytes(datagram[offset + 1 : offset + 1 + sequence_bytes])
    end = start + int.from_bytes(datagram[start - 2 : start]) if has_length else len(datagram)
    # Encrypted content has a tag, and at least one byte: its type.
    if end - start < _TAG_BYTES + 1:
        raise DecodeError(f"a DTLS 1.3 record of {end - start} bytes is too short for its tag")
    if end > len(datagram):
        raise TruncatedError(end, len(datagram))
    fragment = datagram[start:end]
    epoch = first_byte & 0b11
    return DtlsRecord(ContentType.HIDDEN, epoch, sequence, fragment, Version.DTLS_1_3), end


# ---- handshake messages -------------------------------------------------------------------------


class Fragment(NamedTuple):
    """A piece of a handshake message, or all of it."""

    type: int
    """A `HandshakeType` if it is known."""
    length: int
    """Of the whole message."""
    number: int
    """Of the message, counted by its sender."""
    offset: int
    """Of this piece in the message."""
    body: bytes


class Handshake(NamedTuple):
    """A whole handshake message."""

    type: int
    number: int
    body: bytes


def encode_fragment(fragment: Fragment) -> bytes:
    """Return the bytes of a piece of a handshake message."""
    return b"".join(
        (
            bytes((fragment.type,)),
            fragment.length.to_bytes(3),
            fragment.number.to_bytes(2),
            fragment.offset.to_bytes(3),
            len(fragment.body).to_bytes(3),
            fragment.body,
        )
    )


def decode_fragments(payload: bytes) -> tuple[Fragment, ...]:
    """Return the pieces of handshake messages that fill a record."""
    fragments: list[Fragment] = []
    begin = 0
    while begin < len(payload) or not fragments:  # an empty payload raises `TruncatedError`
        start = begin + _FRAGMENT_HEADER
        if start > len(payload):
            raise TruncatedError(start, len(payload))
        header = payload[begin:start]
        numbers = (header[1:4], header[4:6], header[6:9], header[9:12])
        length, number, offset, size = map(int.from_bytes, numbers)
        if offset + size > length:
            raise PayloadError(
                f"a piece ends at byte {offset + size}, but its message has {length} bytes"
            )
        if start + size > len(payload):
            raise TruncatedError(start + size, len(payload))
        body = payload[start : start + size]
        fragments.append(Fragment(header[0], length, number, offset, body))
        begin = start + size
    return tuple(fragments)


@dataclass(slots=True)
class _PartialMessage:
    """A message of which some pieces have arrived."""

    type: int
    body: bytearray
    received: bytearray = field(init=False)
    """For each byte of the body 1 if it has arrived, otherwise 0."""

    def __post_init__(self) -> None:
        self.received = bytearray(len(self.body))


class HandshakeAssembler:
    """Joins the pieces of one side's handshake messages, which may arrive in any order."""

    def __init__(self) -> None:
        self._incomplete: dict[int, _PartialMessage] = {}

    def __len__(self) -> int:
        return len(self._incomplete)

    def add(self, fragment: Fragment) -> Handshake | None:
        """Return the message if `fragment` completes it, otherwise None."""
        if fragment.length > MAX_HANDSHAKE:
            raise PayloadError(
                f"the handshake message has {fragment.length} bytes; the maximum is {MAX_HANDSHAKE}"
            )
        if len(fragment.body) == fragment.length:
            self._incomplete.pop(fragment.number, None)
            return Handshake(fragment.type, fragment.number, fragment.body)
        partial = self._incomplete.get(fragment.number)
        if partial is None or (partial.type, len(partial.body)) != (fragment.type, fragment.length):
            # The first piece, or one of another message with the same number, which replaces it.
            partial = _PartialMessage(fragment.type, bytearray(fragment.length))
            self._incomplete.pop(fragment.number, None)
            self._incomplete[fragment.number] = partial
            if len(self._incomplete) > MAX_OPEN:
                # The oldest is the least likely to be completed.
                del self._incomplete[next(iter(self._incomplete))]
        end = fragment.offset + len(fragment.body)
        partial.body[fragment.offset : end] = fragment.body
        partial.received[fragment.offset : end] = b"\1" * len(fragment.body)
        if 0 in partial.received:
            return None
        del self._incomplete[fragment.number]
        return Handshake(partial.type, fragment.number, bytes(partial.body))
