"""RTP and RTCP as a capture shows them: the headers, which SRTP leaves in the clear.

    RTP    2 bits version 2, padding, extension, 4 bits n; marker, 7 bits payload type;
           u16 sequence, u32 timestamp, u32 source, n x u32 contributors, extension, payload
    RTCP   2 bits version 2, padding, 5 bits count; u8 type; u16 length in words - 1; u32 source

All integers are big-endian. The two share a port; the second byte tells them apart (RFC 5761). What
reads raises `DecodeError` and nothing else, for any bytes at all. RFC 3550 and 3711.
"""

import struct
from enum import IntEnum
from typing import NamedTuple

from rote.errors import DecodeError, TruncatedError

_RTP = struct.Struct(">BBHII")
_RTCP = struct.Struct(">BBHI")
_U32 = struct.Struct(">I")


class Rtp(NamedTuple):
    """One packet of media."""

    payload_type: int
    sequence: int
    timestamp: int
    source: int
    payload: bytes
    """Encrypted in SRTP, with the tag at its end; any padding is still in it."""
    marker: bool = False
    padded: bool = False
    contributors: tuple[int, ...] = ()
    extension: tuple[int, bytes] | None = None
    """A profile and its words."""


class RtcpType(IntEnum):
    """What a report is about."""

    SENDER_REPORT = 200
    RECEIVER_REPORT = 201
    DESCRIPTION = 202
    BYE = 203
    APPLICATION = 204
    TRANSPORT_FEEDBACK = 205
    PAYLOAD_FEEDBACK = 206
    EXTENDED_REPORT = 207


class Rtcp(NamedTuple):
    """The first header of a report about media; in SRTCP whatever follows is encrypted."""

    type: int
    """An `RtcpType` where it is a known one."""
    items: int
    """How many things the first part is about."""
    words: int
    """How long the first part of the report is, in words of four bytes and less one."""
    source: int
    rest: bytes
    padded: bool = False


def is_rtcp(datagram: bytes) -> bool:
    """Tell a report from media; of what is neither, nothing is said."""
    return len(datagram) > 1 and 192 <= datagram[1] <= 223


def decode_rtp(datagram: bytes) -> Rtp:
    """Return the packet of media that a datagram is."""
    if len(datagram) < _RTP.size:
        raise TruncatedError(_RTP.size, len(datagram))
    first, second, sequence, timestamp, source = _RTP.unpack_from(datagram)
    if first >> 6 != 2 or is_rtcp(datagram):
        raise DecodeError(f"{datagram[:2].hex(' ')} is not how an RTP packet begins")
    at = _RTP.size + 4 * (first & 0xF)
    extension = None
    if first & 0x10:
        extension, at = _extension(datagram, at)
    if at > len(datagram):
        raise TruncatedError(at, len(datagram))
    contributors = struct.unpack_from(f">{first & 0xF}I", datagram, _RTP.size)
    return Rtp(
        second & 0x7F,
        sequence,
        timestamp,
        source,
        datagram[at:],
        bool(second & 0x80),
        bool(first & 0x20),
        contributors,
        extension,
    )


def _extension(datagram: bytes, at: int) -> tuple[tuple[int, bytes], int]:
    if at + 4 > len(datagram):
        raise TruncatedError(at + 4, len(datagram))
    profile, words = struct.unpack_from(">HH", datagram, at)
    start, end = at + 4, at + 4 + 4 * words
    return (profile, datagram[start:end]), end


def encode_rtp(packet: Rtp) -> bytes:
    """Return the datagram for a packet of media."""
    first = 0x80 | packet.padded << 5 | (packet.extension is not None) << 4
    first |= len(packet.contributors)
    second = packet.marker << 7 | packet.payload_type
    head = _RTP.pack(first, second, packet.sequence, packet.timestamp, packet.source)
    head += b"".join(map(_U32.pack, packet.contributors))
    if packet.extension is not None:
        profile, data = packet.extension
        head += struct.pack(">HH", profile, len(data) // 4) + data
    return head + packet.payload


def decode_rtcp(datagram: bytes) -> Rtcp:
    """Return the first header of the report that a datagram is."""
    if len(datagram) < _RTCP.size:
        raise TruncatedError(_RTCP.size, len(datagram))
    first, kind, words, source = _RTCP.unpack_from(datagram)
    if first >> 6 != 2 or not is_rtcp(datagram):
        raise DecodeError(f"{datagram[:2].hex(' ')} is not how an RTCP report begins")
    if 4 * (words + 1) > len(datagram):
        raise TruncatedError(4 * (words + 1), len(datagram))
    padded = bool(first & 0x20)
    return Rtcp(kind, first & 0x1F, words, source, datagram[_RTCP.size :], padded)


def encode_rtcp(report: Rtcp) -> bytes:
    """Return the datagram for a report."""
    first = 0x80 | report.padded << 5 | report.items
    return _RTCP.pack(first, report.type, report.words, report.source) + report.rest
