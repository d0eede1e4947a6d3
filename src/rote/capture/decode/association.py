"""Reassembles SCTP: packets of both sides in, whole messages out, in the order of each stream.

A capture may lack packets that the receiver got, and they are not sent again. So messages after a
gap wait only for a while, and keep their time of arrival.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rote.errors import DecodeError
from rote.wire.packets import sctp

MAX_HELD = 32 * 2**20
"""Maximum number of bytes of one side that wait for missing ones."""
MAX_WAITING = 1024
"""Maximum number of messages of a stream that wait for a missing one."""
MAX_REMEMBERED = 2**16
"""Number of recent sequence numbers kept to recognise repeated pieces; older pieces count as
repeated."""


class Delivered(NamedTuple):
    """One message, at the moment when it and all earlier ones in its stream were complete."""

    time_ns: int
    from_client: bool
    """Whether the DTLS client sent it, which need not be the robot's client."""
    stream: int
    protocol: int
    payload: bytes


@dataclass(slots=True)
class _PieceRun:
    """Consecutive pieces of one message."""

    first: int
    last: int
    """The numbers of the first and the last piece."""
    pieces: list[sctp.Data]
    size: int
    """Payload in bytes."""
    time_ns: int = 0

    @property
    def whole(self) -> bool:
        """Whether the run is a complete message."""
        return self.pieces[0].begins and self.pieces[-1].ends


@dataclass(slots=True)
class _Stream:
    """The messages of one stream, which are delivered in the order of their sequence numbers."""

    expected: int = 0
    """The sequence number of the next message."""
    time_ns: int = 0
    """The time of the last message that was delivered."""
    waiting: dict[int, _PieceRun] = field(default_factory=dict)
    """Messages that wait for a missing one, by sequence number."""

    def count_missing_before_next(self) -> int:
        """Return how many messages are missing before the next one that waits."""
        return min((number - self.expected) % 2**16 for number in self.waiting)


class Inbound:
    """Reassembles the messages that one side sends."""

    def __init__(self) -> None:
        self.repeated = 0
        self.lost = 0
        """Messages that are not in the capture, or not completely."""
        self._first: int | None = None
        self._highest: int | None = None
        self._seen: set[int] = set()
        self._by_first: dict[int, _PieceRun] = {}
        self._by_last: dict[int, _PieceRun] = {}
        """Incomplete messages, by the numbers of their first and last pieces."""
        self._streams: dict[int, _Stream] = {}
        self._waiting_bytes = 0

    def start(self, number: int) -> Iterator[_PieceRun]:
        """Set the number of this side's first piece.

        If it changes, a new association begins: yield the waiting messages first.
        """
        if self._first is not None and self._first != number:
            yield from self.flush()
            self._highest = None
            self._seen.clear()
            self._streams.clear()
        self._first = number
        if self._highest is None:
            self._highest = number - 1

    def add(self, time_ns: int, piece: sctp.Data) -> Iterator[_PieceRun]:
        """Yield the messages that `piece` completes."""
        number = self._unwrap_number(piece.number)
        if number in self._seen or number <= self._highest_number() - MAX_REMEMBERED:
            self.repeated += 1
            return
        self._remember_number(number)
        run = self._join_pieces(number, piece)
        if run.whole:
            del self._by_first[run.first], self._by_last[run.last]
            run.time_ns = time_ns
            yield from self._deliver_in_order(run)
        while self._waiting_bytes > MAX_HELD:
            yield from self._free_memory()

    def flush(self) -> Iterator[_PieceRun]:
        """Yield all waiting messages at the end of the capture."""
        for stream in self._streams.values():
            while stream.waiting:
                yield from self._skip_lost(stream, stream.count_missing_before_next())
        self.lost += len(self._by_first)
        self._by_first.clear()
        self._by_last.clear()
        self._waiting_bytes = 0

    # ---- numbers --------------------------------------------------------------------------------

    def _highest_number(self) -> int:
        return self._highest if self._highest is not None else 0

    def _unwrap_number(self, number: int) -> int:
        """Extend a 32-bit number, which wraps, to the nearest one to the highest so far."""
        if self._highest is None:
            self._highest = number
        return self._highest + (number - self._highest + 2**31) % 2**32 - 2**31

    def _remember_number(self, number: int) -> None:
        self._seen.add(number)
        if number > self._highest_number():
            self._highest = number
        if len(self._seen) > 2 * MAX_REMEMBERED:
            limit = self._highest_number() - MAX_REMEMBERED
            self._seen = {seen for seen in self._seen if seen > limit}

    # ---- pieces and messages --------------------------------------------------------------------

    def _join_pieces(self, number: int, piece: sctp.Data) -> _PieceRun:
        """Join a piece with the adjacent ones of its message; return the resulting run."""
        run = _PieceRun(number, number, [piece], len(piece.payload))
        self._waiting_bytes += run.size
        left = None if piece.begins else self._by_last.get(number - 1)
        if left is not None and _are_of_one_message(left.pieces[-1], piece):
            del self._by_last[left.last]
            left.pieces.append(piece)
            left.last, left.size = number, left.size + run.size
            run = left
        right = None if piece.ends else self._by_first.get(number + 1)
        if right is not None and _are_of_one_message(piece, right.pieces[0]):
            del self._by_first[right.first]
            run.pieces += right.pieces
            run.last, run.size = right.last, run.size + right.size
        self._by_first[run.first] = self._by_last[run.last] = run
        return run

    def _deliver_in_order(self, run: _PieceRun) -> Iterator[_PieceRun]:
        """Yield a message and those that waited for it, or let it wait for an earlier one."""
        piece = run.pieces[0]
        stream = self._streams.setdefault(piece.stream, _Stream())
        # Sequence numbers wrap, so a number far ahead is an old one.
        ahead = (piece.sequence - stream.expected) % 2**16
        if piece.unordered or ahead >= 2**15:
            self._waiting_bytes -= run.size
            yield run
            return
        stream.waiting[piece.sequence] = run
        yield from self._pop_in_order(stream)
        if len(stream.waiting) > MAX_WAITING:
            yield from self._skip_lost(stream, stream.count_missing_before_next())

    def _pop_in_order(self, stream: _Stream) -> Iterator[_PieceRun]:
        """Yield the waiting messages up to the next missing one."""
        while (run := stream.waiting.pop(stream.expected, None)) is not None:
            stream.expected = (stream.expected + 1) % 2**16
            self._waiting_bytes -= run.size
            run.time_ns = stream.time_ns = max(run.time_ns, stream.time_ns)
            yield run

    def _skip_lost(self, stream: _Stream, count: int) -> Iterator[_PieceRun]:
        """Count the next `count` messages as lost; yield those that waited for them."""
        self.lost += count
        stream.expected = (stream.expected + count) % 2**16
        yield from self._pop_in_order(stream)

    def _free_memory(self) -> Iterator[_PieceRun]:
        """Yield messages that wait for a missing one; if there are none, drop an incomplete one."""
        for stream in self._streams.values():
            if stream.waiting:
                yield from self._skip_lost(stream, stream.count_missing_before_next())
                return
        oldest = self._by_first.pop(next(iter(self._by_first)))
        del self._by_last[oldest.last]
        self._waiting_bytes -= oldest.size
        self.lost += 1


def _are_of_one_message(left: sctp.Data, right: sctp.Data) -> bool:
    return not left.ends and not right.begins and left.stream == right.stream


class Association:
    """Both sides of one SCTP association."""

    def __init__(self) -> None:
        self.sides = {True: Inbound(), False: Inbound()}
        """The messages of the DTLS client (True) and of the server."""
        self.chunks: Counter[str] = Counter()
        """How many chunks of each kind there were."""
        self.bad = 0
        """Packets that are not SCTP."""

    def receive(self, time_ns: int, from_client: bool, packet: bytes) -> Iterator[Delivered]:
        """Yield the messages that a packet completes."""
        try:
            chunks = sctp.decode(packet).chunks
        except DecodeError:
            self.bad += 1
            return
        for chunk in chunks:
            self.chunks[sctp.get_chunk_name(chunk)] += 1
            side = self.sides[from_client]
            runs: Iterator[_PieceRun] = iter(())
            if isinstance(chunk, sctp.Data):
                runs = side.add(time_ns, chunk)
            elif isinstance(chunk, sctp.Init):
                runs = side.start(chunk.number)
            for run in runs:
                yield _make_delivered(from_client, run)

    def end(self) -> Iterator[Delivered]:
        """Yield all waiting messages at the end of the capture."""
        for from_client, inbound in self.sides.items():
            for run in inbound.flush():
                yield _make_delivered(from_client, run)


def _make_delivered(from_client: bool, run: _PieceRun) -> Delivered:
    first = run.pieces[0]
    payload = b"".join(piece.payload for piece in run.pieces)
    return Delivered(run.time_ns, from_client, first.stream, first.protocol, payload)
