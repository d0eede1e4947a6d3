"""STUN as ICE uses it: connectivity checks, the controlling side, and mapped addresses.

    u16 type, u16 n, magic cookie 2112A442, 12 bytes transaction, n bytes attributes
    attribute: u16 type, u16 n, n bytes, padding to four

All integers are big-endian. The cookie and the lengths make STUN recognisable by structure; an
optional fingerprint proves it. Decoders raise only `DecodeError`, for any bytes. RFC 8489 and 8445.
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
    """The class of a message."""

    REQUEST = 0
    INDICATION = 1
    SUCCESS = 2
    ERROR = 3


class Method(IntEnum):
    """What is requested; the methods above 1 belong to relays (TURN)."""

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
    """A `Class`."""
    transaction: bytes
    attributes: tuple[tuple[int, bytes], ...] = ()
    method: int = Method.BINDING

    def attribute(self, kind: int) -> bytes | None:
        """Return the value of an attribute, or None if it is not there."""
        return next((value for number, value in self.attributes if number == kind), None)

    @property
    def label(self) -> str:
        """The method and the class of the message, as shown to the user."""
        known = self.method in _METHODS
        method = Method(self.method).name if known else f"method {self.method:#x}"
        return f"{method} {Class(self.class_).name}".lower().replace("_", " ")

    @property
    def username(self) -> str:
        """The user whose password protects the message, `RECEIVER:SENDER` in ICE; empty if not
        stated."""
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
        return None if value is None else _decode_xor_address(value, self.transaction)

    @property
    def error(self) -> tuple[int, str] | None:
        """The number of the error and its reason; None if the message states none."""
        value = self.attribute(Attribute.ERROR_CODE)
        if value is None or len(value) < 4:
            return None
        hundreds = value[2] % 8  # the other bits are reserved
        return hundreds * 100 + value[3], value[4:].decode(errors="replace")


_METHODS = frozenset(method.value for method in Method)


_IPV4, _IPV6 = 1, 2
"""The families of addresses."""


def _compute_padding(size: int) -> int:
    """Return the number of bytes that fill `size` bytes up to a multiple of four."""
    return -size % 4


def encode_xor_address(address: tuple[str, int], transaction: bytes) -> bytes:
    """Return a host and port as the value of XOR-MAPPED-ADDRESS.

    They are masked with the magic cookie and the transaction, so that no router rewrites them.
    """
    host, port = address
    ip = IPv6Address(host) if ":" in host else IPv4Address(host)
    mask = (MAGIC.to_bytes(4) + transaction)[: len(ip.packed)]
    masked = bytes(a ^ b for a, b in zip(ip.packed, mask, strict=True))
    return _PAIR.pack(_IPV4 if ip.version == 4 else _IPV6, port ^ MAGIC >> 16) + masked


def _decode_xor_address(value: bytes, transaction: bytes) -> tuple[str, int] | None:
    """Reverse `encode_xor_address`; None if the value is invalid."""
    if len(value) not in (8, 20) or value[1] != (_IPV4 if len(value) == 8 else _IPV6):
        return None
    port = int.from_bytes(value[2:4]) ^ MAGIC >> 16
    mask = MAGIC.to_bytes(4) + transaction
    packed = bytes(a ^ b for a, b in zip(value[4:], mask, strict=False))
    ip = IPv4Address(packed) if len(packed) == 4 else IPv6Address(packed)
    return str(ip), port


def decode(datagram: bytes) -> StunMessage:
    """Return the message in a datagram."""
    if len(datagram) < HEADER:
        raise TruncatedError(HEADER, len(datagram))
    kind, length, magic, transaction = _HEAD.unpack_from(datagram)
    if kind >> 14 or magic != MAGIC:
        raise DecodeError(f"not a STUN message: it begins with {datagram[:8].hex(' ')}")
    if length % 4 or len(datagram) != HEADER + length:
        raise DecodeError(
            f"the STUN message states {HEADER + length} bytes but has {len(datagram)}"
        )
    attributes: list[tuple[int, bytes]] = []
    offset = HEADER
    while offset < len(datagram):
        number, size = _PAIR.unpack_from(datagram, offset)
        offset += 4
        if offset + size > len(datagram):
            raise TruncatedError(offset + size, len(datagram))
        attributes.append((number, datagram[offset : offset + size]))
        offset += size + _compute_padding(size)
    method, class_ = _split_type(kind)
    return StunMessage(class_, transaction, tuple(attributes), method)


def _split_type(number: int) -> tuple[int, int]:
    """Return the method and the class in the type of a message.

    The two bits of the class are bits 8 and 4; the bits of the method are around them.
    """
    method = number & 0xF | number >> 1 & 0x70 | number >> 2 & 0xF80
    return method, number >> 7 & 2 | number >> 4 & 1


def _join_type(method: int, class_: int) -> int:
    """Reverse `_split_type`."""
    number = method & 0xF | (method & 0x70) << 1 | (method & 0xF80) << 2
    return number | (class_ & 1) << 4 | (class_ & 2) << 7


def encode(
    message: StunMessage, *, password: str | None = None, fingerprint: bool = False
) -> bytes:
    """Return the datagram for `message`.

    A `password` adds an integrity check, and `fingerprint` a fingerprint. Both are attributes, so
    do not add them to a decoded message that already has them.
    """
    kind = _join_type(message.method, message.class_)
    body = b"".join(_write_attribute(number, value) for number, value in message.attributes)
    # Each check covers a header whose length already includes the check itself: 24 or 8 bytes.
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
    return _PAIR.pack(number, len(value)) + value + bytes(_compute_padding(len(value)))


def fingerprint_holds(datagram: bytes) -> bool | None:
    """Whether the fingerprint is valid; None if the last attribute is not a fingerprint."""
    if len(datagram) < HEADER + 8:  # the size of the attribute
        return None
    number, size = _PAIR.unpack_from(datagram, len(datagram) - 8)
    if (number, size) != (Attribute.FINGERPRINT, 4):
        return None
    crc = zlib.crc32(datagram[:-8]) ^ _FINGERPRINT_XOR
    return crc == int.from_bytes(datagram[-4:])
