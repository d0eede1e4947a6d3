"""DTLS records in columns: their numbers, what is missing, and what came twice.

The header of a record is never encrypted. Its number increases by one with each record that a side
sends under one set of keys (an epoch); a missing number is a lost record.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.read.flow_ids import Interner, find_run_starts, stable_order
from rote.capture.read.packets import DatagramBatch, big_endian, copy_rows
from rote.capture.read.record_scan import Ints

HEADER = 13
APPLICATION = 23
HANDSHAKE = 22
_MAX_RECORDS_PER_DATAGRAM = 64
_MAX_REMEMBERED = 512
"""Number of records of the previous batch that are compared to find repetitions."""
_MAX_TRACKS = 1 << 16
_MAX_RECORD_BYTES = 2**14 + 2048


class RecordRows(NamedTuple):
    """DTLS records in columns, in the order in which they were sent."""

    datagram: NDArray[np.intp]
    """The index of its datagram in the batch."""
    at: Ints
    """Where its content begins in the batch's data."""
    type: Ints
    version: Ints
    epoch: Ints
    sequence: Ints
    length: Ints

    def part(self, which: NDArray[np.generic]) -> "RecordRows":
        """Return the selected rows."""
        return RecordRows(*(column[which] for column in self))


def split_into_records(
    batch: DatagramBatch, which: NDArray[np.intp], fields: tuple[Ints, Ints]
) -> RecordRows:
    """Return the DTLS records of those datagrams that consist of records to their last byte.

    `which` are the datagrams to split. `fields` are the 64-bit numbers in bytes 0 to 7 and 5 to 12
    of every datagram of the batch.
    """
    index, offset = which, batch.start[which]
    bytes_left, bytes_captured = batch.full[which], batch.size[which]
    front, back = fields[0][which], fields[1][which]
    parts: list[RecordRows] = []
    invalid_datagrams: list[NDArray[np.intp]] = []
    # Each iteration reads one record of all datagrams at once: `offset` is where each datagram's
    # next record begins, `bytes_left` how many bytes the datagram still has, `bytes_captured` how
    # many of them were captured. A datagram leaves the arrays when it ends or proves not to be
    # DTLS.
    for _ in range(_MAX_RECORDS_PER_DATAGRAM):
        if not index.size:
            break
        rows = _read_headers(index, offset, front, back)
        bytes_after = bytes_left - HEADER - rows.length
        is_valid = _find_valid_headers(rows) & (bytes_after >= 0)
        if not is_valid.all():
            invalid_datagrams.append(index[~is_valid])
        parts.append(rows if is_valid.all() else rows.part(np.flatnonzero(is_valid)))
        continuing = np.flatnonzero(is_valid & (bytes_after > 0))
        record_bytes = HEADER + rows.length[continuing]
        index, bytes_left = index[continuing], bytes_after[continuing]
        offset = offset[continuing] + record_bytes
        bytes_captured = bytes_captured[continuing] - record_bytes
        # The next header is missing. If the capture cut the datagram off, the visible records are
        # enough; otherwise it is not DTLS.
        readable = np.flatnonzero(bytes_captured >= HEADER)
        truncated = index[(bytes_captured < HEADER) & (batch.size[index] == batch.full[index])]
        invalid_datagrams.append(truncated)
        index, offset = index[readable], offset[readable]
        bytes_left, bytes_captured = bytes_left[readable], bytes_captured[readable]
        table = copy_rows(batch.data, offset, HEADER)
        front, back = big_endian(table, 0, 8), big_endian(table, 5, 8)
    # The remaining datagrams have more records than allowed.
    invalid_datagrams.append(index)
    is_invalid = np.zeros(batch.size.size, np.bool_)
    is_invalid[np.concatenate(invalid_datagrams)] = True
    return _join_rows(parts, is_invalid)


def _read_headers(
    index: NDArray[np.intp], offset: NDArray[np.intp], front: Ints, back: Ints
) -> RecordRows:
    """Return the record headers; `front` is their bytes 0 to 7, `back` their bytes 5 to 12."""
    # Header: type (1 byte), version (2), epoch (2), sequence (6), length (2).
    return RecordRows(
        index,
        offset + HEADER,
        front >> 56 & 0xFF,
        front >> 40 & 0xFFFF,
        front >> 24 & 0xFFFF,
        back >> 16 & 0xFFFF_FFFF_FFFF,
        back & 0xFFFF,
    )


def _find_valid_headers(rows: RecordRows) -> NDArray[np.bool_]:
    """Return which headers have a type, version and length that DTLS 1.2 and 1.3 allow."""
    has_type = (rows.type >= 20) & (rows.type <= 26)
    has_version = (rows.version == 0xFEFD) | (rows.version == 0xFEFF)
    return np.asarray(has_type & has_version & (rows.length <= _MAX_RECORD_BYTES))


def _join_rows(parts: list[RecordRows], is_invalid: NDArray[np.bool_]) -> RecordRows:
    """Join the records and sort them by datagram; leave out those of invalid datagrams."""
    if not parts:
        empty = np.zeros(0, np.int64)
        return RecordRows(empty.astype(np.intp), *(empty for _ in range(6)))
    if len(parts) == 1 and not is_invalid.any():
        return parts[0]
    joined = RecordRows(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
    order = np.argsort(joined.datagram, kind="stable")
    return joined.part(order[~is_invalid[joined.datagram[order]]])


class NumberSteps(NamedTuple):
    """The steps between successive numbers in each of several streams."""

    stream: Ints
    value: Ints
    """The number itself."""
    step: Ints
    """The difference to the previous value in the same stream; 0 for a stream's first."""
    is_first: NDArray[np.bool_]
    """Whether it is the first value that was ever seen in its stream."""
    starts: NDArray[np.intp]
    """The rows at which each stream begins; the rows are sorted by stream."""


class FollowedNumbers:
    """Remembers the last number of each stream."""

    def __init__(self) -> None:
        self._last = np.zeros(0, np.int64)
        self._known = np.zeros(0, np.bool_)

    def follow(self, stream: Ints, value: Ints) -> NumberSteps:
        """Return the step to each number from the one before it in its stream."""
        size = int(stream.max()) + 1 if stream.size else 0
        if size > self._last.size:
            # What `np.resize` fills in has no meaning, because `_known` is False there.
            self._last = np.resize(np.append(self._last, np.zeros(size, np.int64)), 2 * size)
            self._known = np.append(self._known, np.zeros(2 * size, np.bool_))[: 2 * size]
        # A stable sort by stream keeps the order within each stream, so that a difference to the
        # row before is a step; only the first row of each stream needs the remembered number.
        if stream.size and not (stream == stream[0]).all():
            order = stable_order(stream)
            stream, value = stream[order], value[order]
        starts = find_run_starts(stream)
        previous = np.empty_like(value)
        previous[1:] = value[:-1]
        is_first = np.zeros(value.size, np.bool_)
        is_first[starts] = ~self._known[stream[starts]]
        previous[starts] = np.where(is_first[starts], value[starts], self._last[stream[starts]])
        ends = np.append(starts[1:], value.size) - 1 if starts.size else starts
        self._last[stream[ends]] = value[ends]
        self._known[stream[ends]] = True
        return NumberSteps(stream, value, value - previous, is_first, starts)


class RecordTrack(NamedTuple):
    """Counts of the records of one direction under one set of keys (an epoch)."""

    flow: int
    epoch: int
    records: int
    lowest: int
    highest: int
    repeated: int
    """Records whose number had come before."""
    out_of_order: int
    """Records that came after one with a higher number."""
    missing: int
    """Numbers between the lowest and the highest that did not come."""

    def document(self) -> dict[str, int]:
        """Return what `--json` shows."""
        names = ("epoch", "records", "lowest", "highest", "repeated", "out_of_order", "missing")
        return {name: getattr(self, name) for name in names}


def _combine_key(track: Ints, value: Ints) -> Ints:
    """Return a key for each record: 15 bits of its track and all 48 of its sequence number."""
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
        self._out_of_order = np.zeros(0, np.int64)
        self._recent = np.zeros(0, np.int64)
        """Keys of the last records of the previous batch, to recognise repetitions."""

    def add(self, flow: Ints, records: RecordRows) -> None:
        """Process the records of a batch, with the flow of each."""
        if not flow.size:
            return
        numbers = self._keys.numbers(flow.astype(np.uint64), records.epoch.astype(np.uint64))
        self._grow_tables(len(self._keys) + 1)
        track, value, step, is_first, starts = self._followed.follow(numbers, records.sequence)
        size = self._count.size
        self._count += np.bincount(track, minlength=size)
        tracks = track[starts]
        self._low[tracks] = np.minimum(self._low[tracks], np.minimum.reduceat(value, starts))
        self._high[tracks] = np.maximum(self._high[tracks], np.maximum.reduceat(value, starts))
        # Nearly always each number is one more than the last, so nothing repeats.
        if np.count_nonzero(step == 1) + np.count_nonzero(is_first) != step.size:
            is_repeat = self._find_repeats(track, value)
            self._repeated += np.bincount(track[is_repeat], minlength=size)
            is_out_of_order = (step < 0) & ~is_repeat
            self._out_of_order += np.bincount(track[is_out_of_order], minlength=size)
        self._recent = _combine_key(track[-_MAX_REMEMBERED:], value[-_MAX_REMEMBERED:])

    def _find_repeats(self, track: Ints, value: Ints) -> NDArray[np.bool_]:
        """Return which records repeat one of this batch or of the end of the last batch."""
        combined = _combine_key(track, value)
        # The first occurrence in this batch is new unless the last batch ended with it; all others
        # are repetitions.
        _, first = np.unique(combined, return_index=True)
        is_repeat = np.ones(combined.size, np.bool_)
        is_repeat[first] = np.isin(combined[first], self._recent)
        return is_repeat

    def _grow_tables(self, row_count: int) -> None:
        if row_count <= self._count.size:
            return
        more = 2 * row_count - self._count.size
        zeros = np.zeros(more, np.int64)
        self._count = np.append(self._count, zeros)
        self._low = np.append(self._low, np.full(more, 2**62))  # higher than any number
        self._high = np.append(self._high, zeros)
        self._repeated = np.append(self._repeated, zeros)
        self._out_of_order = np.append(self._out_of_order, zeros)

    def tracks(self) -> list[RecordTrack]:
        """Return the counts of each direction and epoch."""
        all_tracks = []
        for number, (flow, epoch) in enumerate(self._keys.keys):
            columns = (self._count, self._low, self._high)
            count, low, high = (int(column[number]) for column in columns)
            repeated = int(self._repeated[number])
            out_of_order = int(self._out_of_order[number])
            missing = max(0, high - low + 1 - (count - repeated))
            all_tracks.append(
                RecordTrack(flow, epoch, count, low, high, repeated, out_of_order, missing)
            )
        return all_tracks
