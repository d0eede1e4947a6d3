"""Reassembles fragmented IP packets.

Memory is bounded: a few hundred incomplete packets at most, none above 64 KiB. Overlapping pieces
are an old trick to make two readers see different packets; such a packet is refused as a whole.
"""

from typing import NamedTuple

_MAX_INCOMPLETE = 256
"""Maximum number of packets that wait for pieces at the same time."""
_MAX_PACKET_BYTES = 65_535
_MAX_PIECES = 1024
"""Maximum number of pieces per packet."""


class Piece(NamedTuple):
    """One fragment of an IP packet, and its position in the packet."""

    key: tuple[object, ...]
    """Source, destination, protocol and the packet's number."""
    offset: int
    """Position of `body` in the packet's payload, in bytes."""
    more: bool
    """Whether other fragments follow."""
    head: bytes
    """The IP header of the whole packet, apart from its length."""
    body: bytes


class _PartialPacket:
    """A packet with missing pieces."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        """The payload of each piece, by its offset."""
        self.head = b""
        self.payload_size: int | None = None
        """Known once the last piece has come."""
        self.received_bytes = 0
        self.refused = False


class Reassembly:
    """Collects pieces and returns whole IP packets."""

    def __init__(self) -> None:
        self._incomplete: dict[tuple[object, ...], _PartialPacket] = {}
        self.pieces = 0
        self.whole = 0
        self.refused = 0
        """Packets whose pieces overlap or contradict each other."""
        self.given_up = 0
        """Incomplete packets that were dropped to limit the memory."""

    @property
    def unfinished(self) -> int:
        """How many packets lack pieces, including those dropped to limit the memory."""
        return self.given_up + sum(not packet.refused for packet in self._incomplete.values())

    def add(self, piece: Piece) -> bytes | None:
        """Return the IP packet that `piece` completes; None if pieces are missing or refused."""
        self.pieces += 1
        packet = self._incomplete.get(piece.key)
        if packet is None:
            packet = self._incomplete[piece.key] = _PartialPacket()
            self._limit_incomplete()
        if packet.refused:
            return None
        if not _fits_packet(packet, piece):
            packet.refused, packet.pieces = True, {}
            self.refused += 1
            return None
        if piece.offset not in packet.pieces:
            packet.pieces[piece.offset] = piece.body
            packet.received_bytes += len(piece.body)
        if piece.offset == 0:
            packet.head = piece.head
        if not piece.more:
            packet.payload_size = piece.offset + len(piece.body)
        size = packet.payload_size
        if size is None or packet.received_bytes < size or not packet.head:
            return None
        del self._incomplete[piece.key]
        self.whole += 1
        return _join_pieces(packet)

    def _limit_incomplete(self) -> None:
        """Drop the oldest incomplete packet if there are too many."""
        if len(self._incomplete) > _MAX_INCOMPLETE:
            oldest = self._incomplete.pop(next(iter(self._incomplete)))
            if not oldest.refused:
                self.given_up += 1


def _fits_packet(packet: _PartialPacket, piece: Piece) -> bool:
    """Whether a piece is within the limits and agrees with the pieces received before."""
    end = piece.offset + len(piece.body)
    if end > _MAX_PACKET_BYTES or not piece.body or len(packet.pieces) >= _MAX_PIECES:
        return False
    if piece.more and len(piece.body) % 8:
        return False  # IP states offsets in units of 8 bytes, so only the last piece may be odd
    # The last piece states where the packet ends: no other may state it differently or reach
    # beyond it.
    size = packet.payload_size if piece.more else end
    if packet.payload_size not in (None, size) or (size is not None and end > size):
        return False
    if not piece.more and any(offset + len(body) > end for offset, body in packet.pieces.items()):
        return False
    if packet.pieces.get(piece.offset) == piece.body:
        return True  # an exact duplicate overlaps without contradicting
    return all(
        end <= offset or piece.offset >= offset + len(body)
        for offset, body in packet.pieces.items()
    )


def _join_pieces(packet: _PartialPacket) -> bytes:
    """Return the whole IP packet, with the length and the fragment field corrected."""
    body = b"".join(packet.pieces[offset] for offset in sorted(packet.pieces))
    head = bytearray(packet.head)
    if head[0] >> 4 == 4:
        head[2:4] = min(len(head) + len(body), _MAX_PACKET_BYTES).to_bytes(2)  # total length
        head[6:8] = bytes(2)  # flags and fragment offset
    else:
        head[4:6] = len(body).to_bytes(2)  # IPv6 states the length of the payload
    return bytes(head) + body
