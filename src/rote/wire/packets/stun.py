"""STUN as ICE uses it: connectivity checks, which side decides, and the sender's address as seen.

    u16 type, u16 n, magic cookie 2112A442, 12 bytes transaction, n bytes attributes
    attribute: u16 type, u16 n, n bytes, padding to four

All integers are big-endian. The cookie and the lengths make STUN recognisable by structure; a
fingerprint, if there is one, proves it. Decoders raise `DecodeError` and nothing else, for any
bytes at all. RFC 8489 and 8445.
"""

import struct
import zlib
from enum import IntEnum
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

from rote.errors import DecodeError, TruncatedError

MAGIC = 0x2112A442
HEADER = 20
_HEAD = struct.Struct(">HHI12s")
_PAIR = struct.Struct(">HH")
_FINGERPRINT_XOR = 0x5354554E


class Class(IntEnum):
    """The class of a message: request, indication, success or error."""

    REQUEST = 0
    INDICATION = 1
    SUCCESS = 2
    ERROR = 3


class Method(IntEnum):
    """The request's method; those above 1 belong to relays (TURN)."""

    BINDING = 1
    ALLOCATE = 3
    REFRESH = 4
    SEND = 6
    DATA = 7
    CREATE_PERMISSION = 8
    CHANNEL_BIND = 9


class Attribute(IntEnum):
    """The attributes that are read here."""

    MAPPED_ADDRESS = 0x0001
    USERNAME = 0x0006
    MESSAGE_INTEGRITY = 0x0008
    ERROR_CODE = 0x0009
    REALM = 0x0014
    NONCE = 0x0015
    XOR_MAPPED_ADDRESS = 0x0020
    PRIORITY = 0x0024
    USE_CANDIDATE = 0x0025
    SOFTWARE = 0x8022
    FINGERPRINT = 0x8028
    ICE_CONTROLLED = 0x8029
    ICE_CONTROLLING = 0x802A


class StunMessage(NamedTuple):
    """One message, with its attributes unchanged."""

    class_: int
    transaction: bytes
    attributes: tuple[tuple[int, bytes], ...] = ()
    method: int = Method.BINDING

    def attribute(self, kind: int) -> bytes | None:
        """Return the value of an attribute, or None if it is not there."""
        return next((value for number, value in self.attributes if number == kind), None)

    @property
    def label(self) -> str:
        """What kind of message this is, for a person."""
        known = self.method in _METHODS
        method = Method(self.method).name if known else f"method {self.method:#x}"
        return f"{method} {Class(self.class_).name}".lower().replace("_", " ")

    @property
    def username(self) -> str:
        """The user whose password protects this, `RECEIVER:SENDER` in ICE; empty if not stated."""
        return (self.attribute(Attribute.USERNAME) or b"").decode(errors="replace")

    @property
    def priority(self) -> int | None:
        """The priority that the sender gives this candidate pair."""
        value = self.attribute(Attribute.PRIORITY)
        return int.from_bytes(value) if value is not None and len(value) == 4 else None

    @property
    def controlling(self) -> bool | None:
        """Whether the sender decides which pair is used; None if it is not stated."""
        if self.attribute(Attribute.ICE_CONTROLLING) is not None:
            return True
        return None if self.attribute(Attribute.ICE_CONTROLLED) is None else False

    @property
    def mapped(self) -> tuple[str, int] | None:
        """The address of the receiver of this message, as the sender sees it."""
        value = self.attribute(Attribute.XOR_MAPPED_ADDRESS)
        return None if value is None else _read_xor_address(value, self.transaction)

    @property
    def error(self) -> tuple[int, str] | None:
        """The error: a number and a reason."""
        value = self.attribute(Attribute.ERROR_CODE)
        if value is None or len(value) < 4:
            return None
        return value[2] % 8 * 100 + value[3], value[4:].decode(errors="replace")


_METHODS = frozenset(method.value for method in Method)


def _pad(size: int) -> int:
    return -size % 4


def xor_address(address: tuple[str, int], transaction: bytes) -> bytes:
    """Return the value of XOR-MAPPED-ADDRESS."""
    host, port = address
    ip = IPv6Address(host) if ":" in host else IPv4Address(host)
    mask = (MAGIC.to_bytes(4) + transaction)[: len(ip.packed)]
    hidden = bytes(a ^ b for a, b in zip(ip.packed, mask, strict=True))
    return _PAIR.pack(1 if ip.version == 4 else 2, port ^ MAGIC >> 16) + hidden


def _read_xor_address(value: bytes, transaction: bytes) -> tuple[str, int] | None:
    if len(value) not in (8, 20) or value[1] != (1 if len(value) == 8 else 2):
        return None
    port = int.from_bytes(value[2:4]) ^ MAGIC >> 16
    mask = MAGIC.to_bytes(4) + transaction
    packed = bytes(a ^ b for a, b in zip(value[4:], mask, strict=False))
    ip = IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed)
    return str(ip), port


def decode(datagram: bytes) -> StunMessage:
    """Return the message that a datagram is."""
    if len(datagram) < HEADER:
        raise TruncatedError(HEADER, len(datagram))
    kind, length, magic, transaction = _HEAD.unpack_from(datagram)
    if kind >> 14 or magic != MAGIC:
        raise DecodeError(f"{datagram[:8].hex(' ')} is not how a STUN message begins")
    if length % 4 or len(datagram) != HEADER + length:
        raise DecodeError(f"a STUN message that states {HEADER + length} and has {len(datagram)}")
    attributes: list[tuple[int, bytes]] = []
    at = HEADER
    while at < len(datagram):
        number, size = _PAIR.unpack_from(datagram, at)
        at += 4
        if at + size > len(datagram):
            raise TruncatedError(at + size, len(datagram))
        attributes.append((number, datagram[at : at + size]))
        at += size + _pad(size)
    class_ = kind >> 7 & 2 | kind >> 4 & 1
    method = kind & 0xF | kind >> 1 & 0x70 | kind >> 2 & 0xF80
    return StunMessage(class_, transaction, tuple(attributes), method)


def encode(
    message: StunMessage, *, password: str | None = None, fingerprint: bool = False
) -> bytes:
    """Return the datagram for `message`, with a password's integrity check and a fingerprint if
    asked.

    Both are attributes: a message that was decoded already has them.
    """
    method, class_ = message.method, message.class_
    kind = method & 0xF | (method & 0x70) << 1 | (method & 0xF80) << 2
    kind |= (class_ & 1) << 4 | (class_ & 2) << 7
    body = b"".join(_write_attribute(number, value) for number, value in message.attributes)
    if password is not None:
        import hashlib  # noqa: PLC0415 - loads OpenSSL, which reading does not need
        import hmac  # noqa: PLC0415

        covered = _HEAD.pack(kind, len(body) + 24, MAGIC, message.transaction) + body
        tag = hmac.new(password.encode(), covered, hashlib.sha1).digest()
        body += _write_attribute(Attribute.MESSAGE_INTEGRITY, tag)
    if fingerprint:
        covered = _HEAD.pack(kind, len(body) + 8, MAGIC, message.transaction) + body
        crc = zlib.crc32(covered) ^ _FINGERPRINT_XOR
        body += _write_attribute(Attribute.FINGERPRINT, crc.to_bytes(4))
    return _HEAD.pack(kind, len(body), MAGIC, message.transaction) + body


def _write_attribute(number: int, value: bytes) -> bytes:
    return _PAIR.pack(number, len(value)) + value + bytes(_pad(len(value)))


def fingerprint_holds(datagram: bytes) -> bool | None:
    """Whether the fingerprint of a message is right; None if its last attribute is none."""
    if len(datagram) < HEADER + 8:
        return None
    number, size = _PAIR.unpack_from(datagram, len(datagram) - 8)
    if (number, size) != (Attribute.FINGERPRINT, 4):
        return None
    crc = zlib.crc32(datagram[:-8]) ^ _FINGERPRINT_XOR
    return crc == int.from_bytes(datagram[-4:])
