"""Reassembles SCTP: packets of both sides in, whole messages out, in the order of each stream.

A capture is not a receiver: it may have missed what the receiver got, and nothing is sent again
because of it. So messages after a gap wait only for a while, and keep their time of arrival.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rote.errors import DecodeError
from rote.wire.packets import sctp

MAX_HELD = 32 * 2**20
"""The most bytes of one side that wait for missing ones."""
MAX_WAITING = 1024
"""The most messages of a stream that wait for a missing one."""
MAX_REMEMBERED = 2**16
"""How far back a repeated piece is recognised; an older one must be a repetition."""


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
    pieces: list[sctp.Data]
    size: int
    time_ns: int = 0

    @property
    def whole(self) -> bool:
        return self.pieces[0].begins and self.pieces[-1].ends


@dataclass(slots=True)
class _Stream:
    expected: int = 0
    time_ns: int = 0
    """The time of the last message that was delivered."""
    held: dict[int, _PieceRun] = field(default_factory=dict)

    def next_ahead(self) -> int:
        """How many messages are missing before the nearest one that is here."""
        return min((number - self.expected) % 2**16 for number in self.held)


class Inbound:
    """What one side sends."""

    def __init__(self) -> None:
        self.repeated = 0
        self.lost = 0
        """Messages that are not in the capture, or not completely."""
        self._first: int | None = None
        self._highest: int | None = None
        self._seen: set[int] = set()
        self._by_first: dict[int, _PieceRun] = {}
        self._by_last: dict[int, _PieceRun] = {}
        self._streams: dict[int, _Stream] = {}
        self._held = 0

    def start(self, number: int) -> Iterator[_PieceRun]:
        """Set this side's first number; a different one means a restart."""
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
        if number in self._seen or number <= self._highest_known() - MAX_REMEMBERED:
            self.repeated += 1
            return
        self._remember_number(number)
        run = self._join_pieces(number, piece)
        if run.whole:
            del self._by_first[run.first], self._by_last[run.last]
            run.time_ns = time_ns
            yield from self._deliver_in_order(run)
        while self._held > MAX_HELD:
            yield from self._give_up()

    def flush(self) -> Iterator[_PieceRun]:
        """Yield all waiting messages; nothing more will come."""
        for stream in self._streams.values():
            while stream.held:
                yield from self._skip_lost(stream, stream.next_ahead())
        self.lost += len(self._by_first)
        self._by_first.clear()
        self._by_last.clear()
        self._held = 0

    # ---- numbers --------------------------------------------------------------------------------

    def _highest_known(self) -> int:
        return self._highest if self._highest is not None else 0

    def _unwrap_number(self, number: int) -> int:
        """Return the number as if it had never wrapped."""
        if self._highest is None:
            self._highest = number
        return self._highest + (number - self._highest + 2**31) % 2**32 - 2**31

    def _remember_number(self, number: int) -> None:
        self._seen.add(number)
        if number > self._highest_known():
            self._highest = number
        if len(self._seen) > 2 * MAX_REMEMBERED:
            limit = self._highest_known() - MAX_REMEMBERED
            self._seen = {each for each in self._seen if each > limit}

    # ---- pieces and messages --------------------------------------------------------------------

    def _join_pieces(self, number: int, piece: sctp.Data) -> _PieceRun:
        run = _PieceRun(number, number, [piece], len(piece.payload))
        self._held += run.size
        left = None if piece.begins else self._by_last.get(number - 1)
        if left is not None and _belong_together(left.pieces[-1], piece):
            del self._by_last[left.last]
            left.pieces.append(piece)
            left.last, left.size = number, left.size + run.size
            run = left
        right = None if piece.ends else self._by_first.get(number + 1)
        if right is not None and _belong_together(piece, right.pieces[0]):
            del self._by_first[right.first]
            run.pieces += right.pieces
            run.last, run.size = right.last, run.size + right.size
        self._by_first[run.first] = self._by_last[run.last] = run
        return run

    def _deliver_in_order(self, run: _PieceRun) -> Iterator[_PieceRun]:
        piece = run.pieces[0]
        stream = self._streams.setdefault(piece.stream, _Stream())
        ahead = (piece.sequence - stream.expected) % 2**16
        if piece.unordered or ahead >= 2**15:  # unordered, or older than expected
            self._held -= run.size
            yield run
            return
        stream.held[piece.sequence] = run
        yield from self._pop_in_order(stream)
        if len(stream.held) > MAX_WAITING:
            yield from self._skip_lost(stream, stream.next_ahead())

    def _pop_in_order(self, stream: _Stream) -> Iterator[_PieceRun]:
        while (run := stream.held.pop(stream.expected, None)) is not None:
            stream.expected = (stream.expected + 1) % 2**16
            self._held -= run.size
            run.time_ns = stream.time_ns = max(run.time_ns, stream.time_ns)
            yield run

    def _skip_lost(self, stream: _Stream, ahead: int) -> Iterator[_PieceRun]:
        self.lost += ahead
        stream.expected = (stream.expected + ahead) % 2**16
        yield from self._pop_in_order(stream)

    def _give_up(self) -> Iterator[_PieceRun]:
        """Free memory: yield messages that wait for others, or drop the oldest partial one."""
        for stream in self._streams.values():
            if stream.held:
                yield from self._skip_lost(stream, stream.next_ahead())
                return
        oldest = self._by_first.pop(next(iter(self._by_first)))
        del self._by_last[oldest.last]
        self._held -= oldest.size
        self.lost += 1


def _belong_together(left: sctp.Data, right: sctp.Data) -> bool:
    return not left.ends and not right.begins and left.stream == right.stream


class Association:
    """Both sides of one SCTP association."""

    def __init__(self) -> None:
        self.sides = {True: Inbound(), False: Inbound()}
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
            self.chunks[sctp.name_of(chunk)] += 1
            side = self.sides[from_client]
            runs: Iterator[_PieceRun] = iter(())
            if isinstance(chunk, sctp.Data):
                runs = side.add(time_ns, chunk)
            elif isinstance(chunk, sctp.Init):
                runs = side.start(chunk.number)
            for run in runs:
                yield _join_delivered(from_client, run)

    def end(self) -> Iterator[Delivered]:
        """Yield what still waits; the capture is over."""
        for from_client, inbound in self.sides.items():
            for run in inbound.flush():
                yield _join_delivered(from_client, run)


def _join_delivered(from_client: bool, run: _PieceRun) -> Delivered:
    first = run.pieces[0]
    payload = b"".join(piece.payload for piece in run.pieces)
    return Delivered(run.time_ns, from_client, first.stream, first.protocol, payload)
