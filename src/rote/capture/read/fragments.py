"""Reassembles fragmented IP packets.

Memory is bounded: a few hundred incomplete packets at most, none above 64 KiB. Overlapping pieces
are an old trick to make two readers see two packets; such a packet is refused as a whole.
"""

from typing import NamedTuple

_MAX_OPEN = 256
_MAX_SIZE = 65_535
_MAX_PIECES = 1024


class Piece(NamedTuple):
    """One fragment, and where it belongs."""

    key: tuple[object, ...]
    """Source, destination, protocol and the packet's number."""
    offset: int
    more: bool
    head: bytes
    """The IP header of the whole packet, apart from its length."""
    body: bytes


class _Open:
    """A packet with missing pieces."""

    def __init__(self) -> None:
        self.pieces: dict[int, bytes] = {}
        self.head = b""
        self.size: int | None = None
        self.held = 0
        self.refused = False


class Reassembly:
    """Takes pieces and gives back whole IP packets."""

    def __init__(self) -> None:
        self._open: dict[tuple[object, ...], _Open] = {}
        self.pieces = 0
        self.whole = 0
        self.refused = 0
        """Packets whose pieces overlap or contradict each other."""
        self.given_up = 0
        """Packets dropped incomplete to make room."""

    @property
    def unfinished(self) -> int:
        """How many packets still miss pieces."""
        return self.given_up + sum(not one.refused for one in self._open.values())

    def add(self, piece: Piece) -> bytes | None:
        """Return the IP packet that `piece` completes."""
        self.pieces += 1
        packet = self._open.get(piece.key)
        if packet is None:
            packet = self._open[piece.key] = _Open()
            self._make_room()
        if packet.refused:
            return None
        if not _fits_packet(packet, piece):
            packet.refused, packet.pieces = True, {}
            self.refused += 1
            return None
        if piece.offset not in packet.pieces:
            packet.pieces[piece.offset] = piece.body
            packet.held += len(piece.body)
        if piece.offset == 0:
            packet.head = piece.head
        if not piece.more:
            packet.size = piece.offset + len(piece.body)
        if packet.size is None or packet.held < packet.size or not packet.head:
            return None
        del self._open[piece.key]
        self.whole += 1
        return _join_pieces(packet)

    def _make_room(self) -> None:
        if len(self._open) > _MAX_OPEN:
            oldest = next(iter(self._open))
            self.given_up += not self._open.pop(oldest).refused


def _fits_packet(packet: _Open, piece: Piece) -> bool:
    end = piece.offset + len(piece.body)
    if end > _MAX_SIZE or not piece.body or len(packet.pieces) >= _MAX_PIECES:
        return False
    if piece.more and len(piece.body) % 8:
        return False
    size = packet.size if piece.more else end
    if packet.size not in (None, size) or (size is not None and end > size):
        return False
    if not piece.more and any(at + len(body) > end for at, body in packet.pieces.items()):
        return False
    if packet.pieces.get(piece.offset) == piece.body:
        return True  # the same piece twice is a duplicate, not a trick
    return all(end <= at or piece.offset >= at + len(body) for at, body in packet.pieces.items())


def _join_pieces(packet: _Open) -> bytes:
    body = b"".join(packet.pieces[at] for at in sorted(packet.pieces))
    head = bytearray(packet.head)
    if head[0] >> 4 == 4:
        head[2:4] = min(len(head) + len(body), _MAX_SIZE).to_bytes(2)
        head[6:8] = bytes(2)
    else:
        head[4:6] = len(body).to_bytes(2)
    return bytes(head) + body
