"""DTLS as a capture shows it: records, and the handshake messages in them.

    record      u8 type, u16 version, u16 epoch, u48 sequence, u16 n, n bytes
    handshake   u8 type, u24 length, u16 message, u24 offset, u24 n, n bytes of the whole

All integers are big-endian. Until the epoch becomes 1 everything can be read; from then on only the
headers can. In DTLS 1.3 even those are short and partly hidden. What reads raises `DecodeError` and
nothing else, for any bytes at all. RFC 6347 and 9147; dtls_handshake.py reads the messages.
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
"""The largest handshake message that is accepted: a chain of certificates has a few
thousand bytes.
"""
MAX_OPEN = 16
"""The most handshake messages that wait for missing pieces."""

_RECORD = struct.Struct(">BHHHIH")
_FRAGMENT_HEADER = 12


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
        """The version for a person."""
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
        return self.explicit_nonce_bytes + 16 if self.aead else 0


def _gcm_cipher(key_exchange: str, bits: int) -> Suite:
    prf = "sha384" if bits == 256 else "sha256"
    name = f"TLS_{key_exchange}_WITH_AES_{bits}_GCM_{prf.upper()}"
    return Suite(name, "aes-gcm", bits // 8, 4, 8, prf)


def _chacha_cipher(key_exchange: str) -> Suite:
    name = f"TLS_{key_exchange}_WITH_CHACHA20_POLY1305_SHA256"
    return Suite(name, "chacha20-poly1305", 32, 12)


CIPHER_SUITES: dict[int, Suite] = {
    0x009C: _gcm_cipher("RSA", 128),
    0x009D: _gcm_cipher("RSA", 256),
    0x009E: _gcm_cipher("DHE_RSA", 128),
    0x009F: _gcm_cipher("DHE_RSA", 256),
    0xC02B: _gcm_cipher("ECDHE_ECDSA", 128),
    0xC02C: _gcm_cipher("ECDHE_ECDSA", 256),
    0xC02F: _gcm_cipher("ECDHE_RSA", 128),
    0xC030: _gcm_cipher("ECDHE_RSA", 256),
    0xCCA8: _chacha_cipher("ECDHE_RSA"),
    0xCCA9: _chacha_cipher("ECDHE_ECDSA"),
    0xCCAA: _chacha_cipher("DHE_RSA"),
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


def suite_of(number: int) -> Suite:
    """Return what is known about a cipher suite; for most, only the number."""
    return CIPHER_SUITES.get(number, Suite(f"cipher suite 0x{number:04x}"))


# ---- records ------------------------------------------------------------------------------------


class DtlsRecord(NamedTuple):
    """One record: its header and its content, which is encrypted unless the epoch is 0."""

    type: int
    """A `ContentType`."""
    epoch: int
    sequence: int
    """In a hidden record only the low bits, as of the epoch."""
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
    at = 0
    while at < len(datagram) or not records:
        read = _read_hidden if datagram[at : at + 1] and datagram[at] >> 5 == 1 else _read_record
        record, at = read(datagram, at)
        records.append(record)
    return tuple(records)


def _read_record(datagram: bytes, at: int) -> tuple[DtlsRecord, int]:
    if len(datagram) - at < RECORD_HEADER:
        raise TruncatedError(at + RECORD_HEADER, len(datagram))
    kind, version, epoch, high, low, length = _RECORD.unpack_from(datagram, at)
    if kind not in _TYPES or version not in _VERSIONS:
        raise DecodeError(f"{datagram[at : at + 3].hex(' ')} is not how a DTLS record begins")
    if length > MAX_FRAGMENT:
        raise DecodeError(f"a DTLS record of {length} bytes; {MAX_FRAGMENT} are the most")
    start, end = at + RECORD_HEADER, at + RECORD_HEADER + length
    if end > len(datagram):
        raise TruncatedError(end, len(datagram))
    return DtlsRecord(kind, epoch, high << 32 | low, datagram[start:end], version), end


def _read_hidden(datagram: bytes, at: int) -> tuple[DtlsRecord, int]:
    """Read the short header of DTLS 1.3: 001, connection id, long sequence, length, epoch."""
    first = datagram[at]
    if first & 0x10:
        raise DecodeError("a DTLS 1.3 record with a connection id of unknown length")
    wide, stated = 1 + (first >> 3 & 1), first >> 2 & 1
    start = at + 1 + wide + 2 * stated
    if len(datagram) < start:
        raise TruncatedError(start, len(datagram))
    sequence = int.from_bytes(datagram[at + 1 : at + 1 + wide])
    end = start + int.from_bytes(datagram[start - 2 : start]) if stated else len(datagram)
    # Protected content has a tag of 16 bytes, and at least its type.
    if end - start < 17:
        raise DecodeError(f"a DTLS 1.3 record of {end - start} bytes, which cannot hold its tag")
    if end > len(datagram):
        raise TruncatedError(end, len(datagram))
    fragment = datagram[start:end]
    return DtlsRecord(ContentType.HIDDEN, first & 3, sequence, fragment, Version.DTLS_1_3), end


# ---- handshake messages -------------------------------------------------------------------------


class Fragment(NamedTuple):
    """A piece of a handshake message, or all of it."""

    type: int
    """A `HandshakeType` where it is a known one."""
    length: int
    """Of the whole message."""
    message: int
    offset: int
    body: bytes


class Handshake(NamedTuple):
    """A whole handshake message."""

    type: int
    message: int
    body: bytes


def encode_fragment(fragment: Fragment) -> bytes:
    """Return the bytes of a piece of a handshake message."""
    return b"".join(
        (
            bytes((fragment.type,)),
            fragment.length.to_bytes(3),
            fragment.message.to_bytes(2),
            fragment.offset.to_bytes(3),
            len(fragment.body).to_bytes(3),
            fragment.body,
        )
    )


def decode_fragments(payload: bytes) -> tuple[Fragment, ...]:
    """Return the pieces of handshake messages that fill a record."""
    fragments: list[Fragment] = []
    at = 0
    while at < len(payload) or not fragments:
        start = at + _FRAGMENT_HEADER
        if start > len(payload):
            raise TruncatedError(start, len(payload))
        numbers = (payload[at + 1 : at + 4], payload[at + 4 : at + 6], payload[at + 6 : at + 9])
        length, message, offset = map(int.from_bytes, numbers)
        size = int.from_bytes(payload[at + 9 : start])
        if offset + size > length:
            raise PayloadError(f"bytes {offset} to {offset + size} of a message of {length}")
        if start + size > len(payload):
            raise TruncatedError(start + size, len(payload))
        body = payload[start : start + size]
        fragments.append(Fragment(payload[at], length, message, offset, body))
        at = start + size
    return tuple(fragments)


@dataclass(slots=True)
class _Unfinished:
    type: int
    body: bytearray
    have: bytearray = field(init=False)

    def __post_init__(self) -> None:
        self.have = bytearray(len(self.body))


class HandshakeAssembler:
    """Joins one side's handshake messages, whatever the order of their pieces."""

    def __init__(self) -> None:
        self._open: dict[int, _Unfinished] = {}

    def __len__(self) -> int:
        return len(self._open)

    def add(self, fragment: Fragment) -> Handshake | None:
        """Return the message that `fragment` completes; a repeated piece changes nothing."""
        if fragment.length > MAX_HANDSHAKE:
            raise PayloadError(
                f"a handshake message of {fragment.length} bytes; {MAX_HANDSHAKE} are the most"
            )
        if len(fragment.body) == fragment.length:
            self._open.pop(fragment.message, None)
            return Handshake(fragment.type, fragment.message, fragment.body)
        known = self._open.get(fragment.message)
        if known is None or (known.type, len(known.body)) != (fragment.type, fragment.length):
            known = _Unfinished(fragment.type, bytearray(fragment.length))
            self._open.pop(fragment.message, None)
            self._open[fragment.message] = known
            if len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]  # the oldest is unlikely to be completed
        end = fragment.offset + len(fragment.body)
        known.body[fragment.offset : end] = fragment.body
        known.have[fragment.offset : end] = b"\1" * len(fragment.body)
        if 0 in known.have:
            return None
        del self._open[fragment.message]
        return Handshake(known.type, fragment.message, bytes(known.body))
