"""DTLS records in columns: their numbers, what is missing, and what came twice.

The header of a record is never encrypted. Its number increases by one with each record that a side
sends under one set of keys (an epoch); a missing number is a lost record.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.read.flow_ids import Interner, by_number, run_starts
from rote.capture.read.packets import DatagramBatch, big, rows
from rote.capture.read.record_scan import Ints

HEADER = 13
APPLICATION = 23
HANDSHAKE = 22
_MAX_IN_ONE = 64
_REMEMBERED = 512
_MAX_TRACKS = 1 << 16
_LARGEST = 2**14 + 2048


class RecordRows(NamedTuple):
    """Records in columns, in the order they were sent."""

    datagram: NDArray[np.intp]
    """The index of its datagram in the batch."""
    at: Ints
    """Where its content begins in the data."""
    type: Ints
    version: Ints
    epoch: Ints
    sequence: Ints
    length: Ints

    def part(self, which: NDArray[np.generic]) -> "RecordRows":
        """Return the selected rows."""
        return RecordRows(*(column[which] for column in self))


def split(batch: DatagramBatch, which: NDArray[np.intp], fields: tuple[Ints, Ints]) -> RecordRows:
    """Return the records of datagrams that consist of records to their last byte.

    `fields` are the numbers in bytes 0 to 7 and 5 to 12 of every datagram of the batch.
    """
    index, at = which, batch.start[which]
    left, have = batch.full[which], batch.size[which]
    front, back = fields[0][which], fields[1][which]
    parts: list[RecordRows] = []
    unsound: list[NDArray[np.intp]] = []
    # One record per turn, for all datagrams at once: `at` is where each datagram's next record
    # begins, `left` how many bytes the datagram still has, `have` how many were captured. A
    # datagram leaves the arrays when it ends or turns out to be no DTLS.
    for _ in range(_MAX_IN_ONE):
        if not index.size:
            break
        found = RecordRows(
            index,
            at + HEADER,
            # Header: type (1 byte), version (2), epoch (2), sequence (6), length (2). `front` is
            # bytes 0 to 7, `back` bytes 5 to 12, so that both are one 64-bit number.
            front >> 56 & 0xFF,
            front >> 40 & 0xFFFF,
            front >> 24 & 0xFFFF,
            back >> 16 & 0xFFFF_FFFF_FFFF,
            back & 0xFFFF,
        )
        rest = left - HEADER - found.length
        sound = (found.type >= 20) & (found.type <= 26) & (rest >= 0) & (found.length <= _LARGEST)
        sound &= (found.version == 0xFEFD) | (found.version == 0xFEFF)
        if not sound.all():
            unsound.append(index[~sound])
        parts.append(found if sound.all() else found.part(np.flatnonzero(sound)))
        more = np.flatnonzero(sound & (rest > 0))
        step = HEADER + found.length[more]
        index, at, left = index[more], at[more] + step, rest[more]
        have = have[more] - step
        # If the capture cut the datagram off, the visible records are enough.
        seen = np.flatnonzero(have >= HEADER)
        cut = index[(have < HEADER) & (batch.size[index] == batch.full[index])]
        unsound.append(cut)
        index, at, left, have = index[seen], at[seen], left[seen], have[seen]
        table = rows(batch.data, at, HEADER)
        front, back = big(table, 0, 8), big(table, 5, 8)
    # What is left has more records than allowed.
    unsound.append(index)
    bad = np.zeros(batch.size.size, np.bool_)
    bad[np.concatenate(unsound)] = True
    return _join_rows(parts, bad)


def _join_rows(parts: list[RecordRows], bad: NDArray[np.bool_]) -> RecordRows:
    """Return all records in the order of their datagrams, without those of bad datagrams."""
    if not parts:
        none = np.zeros(0, np.int64)
        return RecordRows(none.astype(np.intp), *(none for _ in range(6)))
    if len(parts) == 1 and not bad.any():
        return parts[0]
    joined = RecordRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(joined.datagram, kind="stable")
    return joined.part(order[~bad[joined.datagram[order]]])


class NumberSteps(NamedTuple):
    """The steps between successive numbers in each of several streams."""

    stream: Ints
    value: Ints
    step: Ints
    """The difference to the previous value in the same stream; 0 for a stream's first."""
    fresh: NDArray[np.bool_]
    """Whether it is a stream's first."""
    starts: NDArray[np.intp]
    """Where each stream begins; the rows are sorted by stream."""


class FollowedNumbers:
    """Remembers the last number of each stream."""

    def __init__(self) -> None:
        self._last = np.zeros(0, np.int64)
        self._known = np.zeros(0, np.bool_)

    def follow(self, stream: Ints, value: Ints) -> NumberSteps:
        """Return the steps between these numbers, and from the remembered ones to them."""
        need = int(stream.max()) + 1 if stream.size else 0
        if need > self._last.size:
            self._last = np.resize(np.append(self._last, np.zeros(need, np.int64)), 2 * need)
            self._known = np.append(self._known, np.zeros(2 * need, np.bool_))[: 2 * need]
        # A stable sort by stream keeps the order within each stream, so that a difference to the
        # row before is a step; only the first row of each stream needs the remembered number.
        if stream.size and not (stream == stream[0]).all():
            order = by_number(stream)
            stream, value = stream[order], value[order]
        starts = run_starts(stream)
        before = np.empty_like(value)
        before[1:] = value[:-1]
        fresh = np.zeros(value.size, np.bool_)
        fresh[starts] = ~self._known[stream[starts]]
        before[starts] = np.where(fresh[starts], value[starts], self._last[stream[starts]])
        ends = np.append(starts[1:], value.size) - 1 if starts.size else starts
        self._last[stream[ends]] = value[ends]
        self._known[stream[ends]] = True
        return NumberSteps(stream, value, value - before, fresh, starts)


class RecordTrack(NamedTuple):
    """The records of one direction under one set of keys."""

    flow: int
    epoch: int
    records: int
    lowest: int
    highest: int
    repeated: int
    """Records with a number that came before."""
    out_of_order: int
    missing: int
    """Numbers between the lowest and the highest that did not come."""

    def document(self) -> dict[str, int]:
        """Return what `--json` shows."""
        names = ("epoch", "records", "lowest", "highest", "repeated", "out_of_order", "missing")
        return {name: getattr(self, name) for name in names}


def _combine_key(track: Ints, value: Ints) -> Ints:
    """Return 15 bits of the track and all 48 of the number: enough to recognise one soon after."""
    return (track & 0x7FFF) << 48 | value


class RecordTracks:
    """Follows the numbers of all records, in bounded memory."""

    def __init__(self) -> None:
        self._keys = Interner(_MAX_TRACKS)
        self._followed = FollowedNumbers()
        self._count = np.zeros(0, np.int64)
        self._low = np.zeros(0, np.int64)
        self._high = np.zeros(0, np.int64)
        self._repeated = np.zeros(0, np.int64)
        self._late = np.zeros(0, np.int64)
        self._recent = np.zeros(0, np.int64)

    def add(self, flow: Ints, records: RecordRows) -> None:
        """Process the records of a batch, with the flow of each."""
        if not flow.size:
            return
        numbers = self._keys.numbers(flow.astype(np.uint64), records.epoch.astype(np.uint64))
        self._grow_tables(len(self._keys) + 1)
        track, value, step, fresh, starts = self._followed.follow(numbers, records.sequence)
        size = self._count.size
        self._count += np.bincount(track, minlength=size)
        which = track[starts]
        self._low[which] = np.minimum(self._low[which], np.minimum.reduceat(value, starts))
        self._high[which] = np.maximum(self._high[which], np.maximum.reduceat(value, starts))
        # Nearly always every record is the successor of the one before: then nothing came twice.
        if np.count_nonzero(step == 1) + np.count_nonzero(fresh) != step.size:
            again = self._find_repeats(track, value)
            self._repeated += np.bincount(track[again], minlength=size)
            self._late += np.bincount(track[(step < 0) & ~again], minlength=size)
        self._recent = _combine_key(track[-_REMEMBERED:], value[-_REMEMBERED:])

    def _find_repeats(self, track: Ints, value: Ints) -> NDArray[np.bool_]:
        """Return which records came before, in this batch or just before it."""
        combined = _combine_key(track, value)
        # The first occurrence in this batch is new unless the last batch ended with it; all others
        # are repetitions.
        _, first = np.unique(combined, return_index=True)
        again = np.ones(combined.size, np.bool_)
        again[first] = np.isin(combined[first], self._recent)
        return again

    def _grow_tables(self, need: int) -> None:
        if need <= self._count.size:
            return
        more = 2 * need - self._count.size
        zeros = np.zeros(more, np.int64)
        self._count = np.append(self._count, zeros)
        self._low = np.append(self._low, np.full(more, 2**62))
        self._high = np.append(self._high, zeros)
        self._repeated = np.append(self._repeated, zeros)
        self._late = np.append(self._late, zeros)

    def tracks(self) -> list[RecordTrack]:
        """Return what is known about each direction and epoch."""
        found = []
        for number, (flow, epoch) in enumerate(self._keys.keys):
            count, low, high = (
                int(column[number]) for column in (self._count, self._low, self._high)
            )
            repeated = int(self._repeated[number])
            missing = max(0, high - low + 1 - (count - repeated))
            late = int(self._late[number])
            found.append(RecordTrack(flow, epoch, count, low, high, repeated, late, missing))
        return found
