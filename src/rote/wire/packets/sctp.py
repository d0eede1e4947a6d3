"""SCTP, which carries data channels inside DTLS, and the messages that open a channel.

    packet  u16 source port, u16 destination port, u32 tag, u32 CRC-32C (little-endian), chunks
    chunk   u8 type, u8 flags, u16 length with these four, value, padding to four
    DATA    u32 number, u16 stream, u16 sequence, u32 protocol, payload; a message is one or more

All other integers are big-endian. Decoders raise only `DecodeError`, for any bytes; a chunk of an
unknown type becomes an `Other`. RFC 9260, 8831, 8832, 3758 and 6525.
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
_OPEN_TYPE, _ACK = 3, b"\2"
"""The first byte of a request to open a channel, and the whole message that confirms it."""


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
    """The TSN, which counts all pieces that one side sends."""
    stream: int
    sequence: int
    """Counts the messages of the stream."""
    protocol: int
    payload: bytes
    flags: int = 3
    """By default a whole message: it begins and ends here."""

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
    """One side's request to begin an association, or the answer to it."""

    tag: int
    """Identifies the association in every packet to this side."""
    window: int
    """How many bytes this side can buffer."""
    outbound: int
    """Number of streams that this side will send."""
    inbound: int
    """Maximum number of streams that it accepts."""
    number: int
    """The number of the first piece that this side will send."""
    parameters: bytes = b""
    answer: bool = False


class Sack(NamedTuple):
    """A report of what has arrived: everything up to `number`, and blocks of later pieces."""

    number: int
    window: int
    """How many more bytes this side can buffer."""
    gaps: tuple[tuple[int, int], ...] = ()
    """The first and the last piece of each later block, counted from `number`."""
    repeated: tuple[int, ...] = ()
    """Numbers of pieces that arrived more than once."""


class ForwardTsn(NamedTuple):
    """The sender will not repeat anything up to `number`; `streams` has (stream, sequence)."""

    number: int
    streams: tuple[tuple[int, int], ...] = ()


class Other(NamedTuple):
    """A chunk whose value is not decoded: cookies, heartbeats, shutdown, and unknown types."""

    type: int
    """A `ChunkType` if it is known."""
    value: bytes = b""
    flags: int = 0


Chunk = Data | Init | Sack | ForwardTsn | Other


class Packet(NamedTuple):
    """One packet."""

    source: int
    destination: int
    tag: int
    chunks: tuple[Chunk, ...]


def get_chunk_name(chunk: Chunk) -> str:
    """Return the name that the standards give a chunk."""
    if isinstance(chunk, Other):
        known = chunk.type in _KNOWN_TYPES
        return ChunkType(chunk.type).name if known else f"chunk {chunk.type}"
    if isinstance(chunk, Init):
        return "INIT_ACK" if chunk.answer else "INIT"
    return {Data: "DATA", Sack: "SACK", ForwardTsn: "FORWARD_TSN"}[type(chunk)]


_KNOWN_TYPES = frozenset(kind.value for kind in ChunkType)


# ---- the checksum -------------------------------------------------------------------------------


_CRC_POLYNOMIAL = 0x82F63B78
"""Castagnoli's polynomial with its bits reversed."""


def _make_crc_table() -> tuple[int, ...]:
    """Return how each value of a byte changes a CRC-32C."""
    table = []
    for byte in range(256):
        change = byte
        for _ in range(8):
            change = change >> 1 ^ (_CRC_POLYNOMIAL if change & 1 else 0)
        table.append(change)
    return tuple(table)


_CRC_TABLE = _make_crc_table()


def crc32c(data: bytes) -> int:
    """Return the CRC-32C (Castagnoli) of bytes."""
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ _CRC_TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


def checksum_holds(packet: bytes) -> bool:
    """Whether the checksum of a packet, its bytes 8 to 11, is valid."""
    # It is computed with zeros in its own place.
    return packet[8:12] == crc32c(packet[:8] + bytes(4) + packet[12:]).to_bytes(4, "little")


# ---- reading ------------------------------------------------------------------------------------


def decode(packet: bytes) -> Packet:
    """Return the packet in these bytes. `checksum_holds` checks the checksum.

    Inside DTLS the decryption already proves that the packet is undamaged.
    """
    if len(packet) < HEADER:
        raise TruncatedError(HEADER, len(packet))
    source, destination, tag, _ = _HEAD.unpack_from(packet)
    chunks: list[Chunk] = []
    offset = HEADER
    while offset < len(packet):
        if offset + 4 > len(packet):
            raise TruncatedError(offset + 4, len(packet))
        kind, flags, length = _CHUNK.unpack_from(packet, offset)
        if length < 4:
            raise DecodeError(f"a chunk of {length} bytes is shorter than its header")
        if offset + length > len(packet):
            raise TruncatedError(offset + length, len(packet))
        chunks.append(_read_chunk(kind, flags, packet[offset + 4 : offset + length]))
        offset += length + -length % 4  # padded to a multiple of four
    return Packet(source, destination, tag, tuple(chunks))


def _read_chunk(kind: int, flags: int, value: bytes) -> Chunk:
    """Return a chunk from its type, flags and value."""
    try:
        if kind == ChunkType.DATA:
            number, stream, sequence, protocol = _DATA.unpack_from(value)
            return Data(number, stream, sequence, protocol, value[_DATA.size :], flags)
        if kind in (ChunkType.INIT, ChunkType.INIT_ACK):
            head, parameters = _INIT.unpack_from(value), value[_INIT.size :]
            return Init._make((*head, parameters, kind == ChunkType.INIT_ACK))
        if kind == ChunkType.SACK:
            return _read_sack(value)
        if kind == ChunkType.FORWARD_TSN:
            (number,) = _U32.unpack_from(value)
            return ForwardTsn(number, tuple(_PAIR.iter_unpack(value[4:])))
    except struct.error:
        raise PayloadError(f"a chunk of type {kind} cannot have {len(value)} bytes") from None
    return Other(kind, value, flags)


def _read_sack(value: bytes) -> Sack:
    number, window, gap_count, repeat_count = _SACK.unpack_from(value)
    gaps_end = _SACK.size + _PAIR.size * gap_count
    if len(value) != gaps_end + _U32.size * repeat_count:
        raise PayloadError(
            f"{gap_count} gaps and {repeat_count} repetitions do not fit {len(value)} bytes"
        )
    return Sack(
        number,
        window,
        tuple(_PAIR.iter_unpack(value[_SACK.size : gaps_end])),
        tuple(repeated for (repeated,) in _U32.iter_unpack(value[gaps_end:])),
    )


# ---- writing ------------------------------------------------------------------------------------


def encode(packet: Packet) -> bytes:
    """Return the bytes of a packet, with its checksum."""
    head = struct.pack(">HHI", packet.source, packet.destination, packet.tag)
    body = b"".join(map(_write_chunk, packet.chunks))
    return head + crc32c(head + bytes(4) + body).to_bytes(4, "little") + body


def _write_chunk(chunk: Chunk) -> bytes:
    kind, flags, value = _encode_chunk_value(chunk)
    return _CHUNK.pack(kind, flags, 4 + len(value)) + value + bytes(-len(value) % 4)


def _encode_chunk_value(chunk: Chunk) -> tuple[int, int, bytes]:
    """Return the type of a chunk, its flags, and its value: first the numbers, in their order."""
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
    """Maximum number of repetitions, or time for them in ms, of an unreliable channel."""


class ChannelOpened(NamedTuple):
    """A channel is open; the robot's own stack never sends this."""


def encode_dcep(message: Open | ChannelOpened) -> bytes:
    """Return the message that opens a channel, or confirms that it is open."""
    if isinstance(message, ChannelOpened):
        return _ACK
    label, protocol = message.label.encode(), message.protocol.encode()
    numbers = message.reliability, message.priority, message.parameter
    return _OPEN.pack(_OPEN_TYPE, *numbers, len(label), len(protocol)) + label + protocol


def decode_dcep(payload: bytes) -> Open | ChannelOpened:
    """Return the value of a message of protocol `Protocol.DCEP`."""
    if payload == _ACK:
        return ChannelOpened()
    if len(payload) < _OPEN.size:
        raise TruncatedError(_OPEN.size, len(payload))
    kind, reliability, priority, parameter, label_size, protocol_size = _OPEN.unpack_from(payload)
    if kind != _OPEN_TYPE or len(payload) != _OPEN.size + label_size + protocol_size:
        raise PayloadError(f"{payload[:4].hex(' ')} neither opens a channel nor acknowledges one")
    label_end = _OPEN.size + label_size
    try:
        label, protocol = payload[_OPEN.size : label_end].decode(), payload[label_end:].decode()
    except UnicodeDecodeError:
        raise PayloadError("the label or protocol of a channel is not UTF-8") from None
    return Open(label, protocol, reliability, priority, parameter)
