"""SCTP, which carries data channels inside DTLS, and the messages that open a channel.

    packet  u16 source port, u16 destination port, u32 tag, u32 CRC-32C (little-endian), chunks
    chunk   u8 type, u8 flags, u16 length with these four, value, padding to four
    DATA    u32 number, u16 stream, u16 sequence, u32 protocol, payload; a message is one or more

All other integers are big-endian. Decoders raise `DecodeError` and nothing else, for any bytes at
all; a chunk of an unknown type becomes an `Other`. RFC 9260, 8831, 8832, 3758 and 6525.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from rote.errors import DecodeError, PayloadError, TruncatedError

HEADER = 12
_HEAD = struct.Struct(">HHI4s")
_CHUNK = struct.Struct(">BBH")
_DATA = struct.Struct(">IHHI")
_INIT = struct.Struct(">IIHHI")
_SACK = struct.Struct(">IIHH")
_U32 = struct.Struct(">I")
_PAIR = struct.Struct(">HH")
_OPEN = struct.Struct(">BBHIHH")


class ChunkType(IntEnum):
    """The first byte of a chunk."""

    DATA = 0
    INIT = 1
    INIT_ACK = 2
    SACK = 3
    HEARTBEAT = 4
    HEARTBEAT_ACK = 5
    ABORT = 6
    SHUTDOWN = 7
    SHUTDOWN_ACK = 8
    ERROR = 9
    COOKIE_ECHO = 10
    COOKIE_ACK = 11
    SHUTDOWN_COMPLETE = 14
    RE_CONFIG = 130
    FORWARD_TSN = 192


class Protocol(IntEnum):
    """What the bytes of a message in a data channel are."""

    DCEP = 50
    TEXT = 51
    BINARY = 53
    EMPTY_TEXT = 56
    EMPTY_BINARY = 57


class Data(NamedTuple):
    """A message, or a piece of one."""

    number: int
    """The TSN: counts all pieces that one side sends."""
    stream: int
    sequence: int
    """Counts the messages of the stream."""
    protocol: int
    payload: bytes
    flags: int = 3

    @property
    def ends(self) -> bool:
        """Whether a message ends here."""
        return bool(self.flags & 1)

    @property
    def begins(self) -> bool:
        """Whether a message begins here."""
        return bool(self.flags & 2)

    @property
    def unordered(self) -> bool:
        """Whether the message need not wait for earlier ones."""
        return bool(self.flags & 4)


class Init(NamedTuple):
    """One side begins, or answers the beginning."""

    tag: int
    window: int
    outbound: int
    inbound: int
    number: int
    """The number of the first piece that this side will send."""
    parameters: bytes = b""
    answer: bool = False


class Sack(NamedTuple):
    """What has arrived: everything up to `number`, and the gap blocks beyond, counted from it."""

    number: int
    window: int
    gaps: tuple[tuple[int, int], ...] = ()
    repeated: tuple[int, ...] = ()


class ForwardTsn(NamedTuple):
    """The sender gives up everything up to `number`; by stream, up to a sequence."""

    number: int
    streams: tuple[tuple[int, int], ...] = ()


class Other(NamedTuple):
    """A chunk whose value is not decoded: cookies, heartbeats, the end, and unknown ones."""

    type: int
    """A `ChunkType` where it is a known one."""
    value: bytes = b""
    flags: int = 0


Chunk = Data | Init | Sack | ForwardTsn | Other


class Packet(NamedTuple):
    """One packet."""

    source: int
    destination: int
    tag: int
    chunks: tuple[Chunk, ...]


def name_of(chunk: Chunk) -> str:
    """Return the name of a chunk in the standards."""
    if isinstance(chunk, Other):
        known = chunk.type in _KNOWN
        return ChunkType(chunk.type).name if known else f"chunk {chunk.type}"
    if isinstance(chunk, Init):
        return "INIT_ACK" if chunk.answer else "INIT"
    return {Data: "DATA", Sack: "SACK", ForwardTsn: "FORWARD_TSN"}[type(chunk)]


_KNOWN = frozenset(kind.value for kind in ChunkType)


# ---- the checksum -------------------------------------------------------------------------------


def _table() -> tuple[int, ...]:
    table = []
    for start in range(256):
        value = start
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)
        table.append(value)
    return tuple(table)


_CRC_TABLE = _table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC_TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def checksum_holds(packet: bytes) -> bool:
    """Whether the checksum of a packet is right."""
    return packet[8:12] == crc32c(packet[:8] + bytes(4) + packet[12:]).to_bytes(4, "little")


# ---- reading ------------------------------------------------------------------------------------


def decode(packet: bytes) -> Packet:
    """Return the packet in these bytes. `checksum_holds` checks the checksum.

    Inside DTLS the checksum proves nothing that the decryption has not proven already.
    """
    if len(packet) < HEADER:
        raise TruncatedError(HEADER, len(packet))
    source, destination, tag, _ = _HEAD.unpack_from(packet)
    chunks: list[Chunk] = []
    at = HEADER
    while at < len(packet):
        if at + 4 > len(packet):
            raise TruncatedError(at + 4, len(packet))
        kind, flags, length = _CHUNK.unpack_from(packet, at)
        if length < 4:
            raise DecodeError(f"a chunk of {length} bytes, which is less than its header")
        if at + length > len(packet):
            raise TruncatedError(at + length, len(packet))
        chunks.append(_read_chunk(kind, flags, packet[at + 4 : at + length]))
        at += length + -length % 4
    return Packet(source, destination, tag, tuple(chunks))


def _read_chunk(kind: int, flags: int, value: bytes) -> Chunk:
    try:
        if kind == ChunkType.DATA:
            number, stream, sequence, protocol = _DATA.unpack_from(value)
            return Data(number, stream, sequence, protocol, value[_DATA.size :], flags)
        if kind in (ChunkType.INIT, ChunkType.INIT_ACK):
            init = Init._make((*_INIT.unpack_from(value), value[_INIT.size :], False))
            return init._replace(answer=kind == ChunkType.INIT_ACK)
        if kind == ChunkType.SACK:
            return _read_sack(value)
        if kind == ChunkType.FORWARD_TSN:
            (number,) = _U32.unpack_from(value)
            return ForwardTsn(number, tuple(_PAIR.iter_unpack(value[4:])))
    except struct.error:
        raise PayloadError(f"a chunk of type {kind} with {len(value)} bytes in it") from None
    return Other(kind, value, flags)


def _read_sack(value: bytes) -> Sack:
    number, window, gaps, repeated = _SACK.unpack_from(value)
    middle = _SACK.size + 4 * gaps
    if len(value) != middle + 4 * repeated:
        raise PayloadError(f"{gaps} gaps and {repeated} repetitions in {len(value)} bytes")
    return Sack(
        number,
        window,
        tuple(_PAIR.iter_unpack(value[_SACK.size : middle])),
        tuple(one for (one,) in _U32.iter_unpack(value[middle:])),
    )


# ---- writing ------------------------------------------------------------------------------------


def encode(packet: Packet) -> bytes:
    """Return the bytes of a packet, with its checksum."""
    head = struct.pack(">HHI", packet.source, packet.destination, packet.tag)
    body = b"".join(map(_write_chunk, packet.chunks))
    return head + crc32c(head + bytes(4) + body).to_bytes(4, "little") + body


def _write_chunk(chunk: Chunk) -> bytes:
    kind, flags, value = _written(chunk)
    return _CHUNK.pack(kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def _written(chunk: Chunk) -> tuple[int, int, bytes]:
    match chunk:
        case Data():
            return ChunkType.DATA, chunk.flags, _DATA.pack(*chunk[:4]) + chunk.payload
        case Init():
            kind = ChunkType.INIT_ACK if chunk.answer else ChunkType.INIT
            return kind, 0, _INIT.pack(*chunk[:5]) + chunk.parameters
        case Sack():
            counts = len(chunk.gaps), len(chunk.repeated)
            value = _SACK.pack(chunk.number, chunk.window, *counts)
            value += b"".join(_PAIR.pack(*gap) for gap in chunk.gaps)
            return ChunkType.SACK, 0, value + b"".join(map(_U32.pack, chunk.repeated))
        case ForwardTsn():
            streams = b"".join(_PAIR.pack(*stream) for stream in chunk.streams)
            return ChunkType.FORWARD_TSN, 0, _U32.pack(chunk.number) + streams
    return chunk.type, chunk.flags, chunk.value


# ---- opening a channel --------------------------------------------------------------------------


class Open(NamedTuple):
    """A request to open a channel."""

    label: str
    protocol: str = ""
    reliability: int = 0
    """0 for ordered and reliable."""
    priority: int = 0
    parameter: int = 0


class ChannelOpened(NamedTuple):
    """A channel is open; the robot's own stack never sends this."""


def encode_dcep(word: Open | ChannelOpened) -> bytes:
    """Return the message that opens a channel, or confirms it."""
    if isinstance(word, ChannelOpened):
        return b"\2"
    label, protocol = word.label.encode(), word.protocol.encode()
    numbers = word.reliability, word.priority, word.parameter
    return _OPEN.pack(3, *numbers, len(label), len(protocol)) + label + protocol


def decode_dcep(payload: bytes) -> Open | ChannelOpened:
    """Return the value of a message of protocol `Protocol.DCEP`."""
    if payload == b"\2":
        return ChannelOpened()
    if len(payload) < _OPEN.size:
        raise TruncatedError(_OPEN.size, len(payload))
    kind, reliability, priority, parameter, label, protocol = _OPEN.unpack_from(payload)
    if kind != 3 or len(payload) != _OPEN.size + label + protocol:
        raise PayloadError(f"{payload[:4].hex(' ')} neither opens a channel nor acknowledges one")
    texts = payload[_OPEN.size : _OPEN.size + label], payload[_OPEN.size + label :]
    try:
        name, sub = (text.decode() for text in texts)
    except UnicodeDecodeError:
        raise PayloadError("a channel whose label is not UTF-8") from None
    return Open(name, sub, reliability, priority, parameter)
