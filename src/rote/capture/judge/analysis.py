"""One pass over a capture: read, decode, classify and count, in bounded memory."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.decode.dtls_numbering import APPLICATION, RecordRows, RecordTracks
from rote.capture.decode.packet_facts import MediaStreams, PacketFacts
from rote.capture.judge.classify import classify
from rote.capture.judge.flows import Flows
from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import Numbers, find_run_starts, stable_order
from rote.capture.read.packets import HEAD, UDP, DatagramBatch, PacketDecoder, big_endian
from rote.capture.read.reader import Capture, Records
from rote.capture.read.record_scan import Ints

KEEP_RECORDS = 4_000_000
"""Maximum number of encrypted records kept for the time line (time and length)."""
KEEP_RECORDS_STREAM = 1_000_000
"""Like `KEEP_RECORDS`, for a stream, which may never end."""
KEEP_HEADS = 2048
"""Maximum number of datagrams per direction whose first bytes are kept for field statistics."""
KEEP_HEADS_IN_ALL = 1 << 17
"""Like `KEEP_HEADS`, for all directions together."""
KEEP_COMMANDS = 100_000
"""Maximum number of commands and replies in teaching frames that are kept."""
_COMMAND, _POSE = 0x17, int.from_bytes(b"POSE")
"""First byte of a command, and the first bytes of a streamed pose. They repeat
wire/teaching/codec.py, which takes longer to load than a small capture to read."""
_KEEP_FRAMES = 100_000
"""Maximum number of teaching frames whose type and command are kept."""
_MAX_INTERVALS = 4096
_SIZE_COUNT = 65_536
"""Number of different sizes of datagrams."""


class KeptRows:
    """A table of numbers that keeps rows up to a limit."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._parts: list[tuple[np.ndarray, ...]] = []
        self._runs: _Runs | None = None
        self.count = 0
        self.left_out = 0

    def add(self, *columns: np.ndarray) -> None:
        """Keep rows up to the limit; do not change the arrays afterwards."""
        size = columns[0].size if columns[0].ndim == 1 else columns[0].shape[0]
        accepted = min(size, self._limit - self.count)
        self.left_out += size - accepted
        self.count += accepted
        if accepted:
            self._parts.append(tuple(column[:accepted] for column in columns))

    def columns(self) -> tuple[np.ndarray, ...] | None:
        """Return the kept rows as columns; None if there are none."""
        if not self._parts:
            return None
        if len(self._parts) > 1:
            joined = tuple(np.concatenate(parts) for parts in zip(*self._parts, strict=True))
            self._parts = [joined]
        return self._parts[0]

    def get_rows(self, key: int) -> tuple[np.ndarray, ...] | None:
        """Return the rows whose first column is `key`, in the order in which they were added.

        The first column itself is left out. None if there are no such rows. Call it only when no
        more rows will be added, because the rows are sorted once.
        """
        if not self._parts:
            return None
        if self._runs is None:
            self._runs = self._sort_parts()
        low, high = np.searchsorted(self._runs.key, (key, key + 1)).tolist()
        if low == high:
            return None
        ranges = (column[low:high].tolist() for column in self._runs[1:])
        pieces = [
            [column[begin:end] for column in self._parts[part][1:]]
            for part, begin, end in zip(*ranges, strict=True)
        ]
        return tuple(np.concatenate(columns) for columns in zip(*pieces, strict=True))

    def _sort_parts(self) -> "_Runs":
        """Sort each part by its first column, and return where the rows of each key are.

        A part is sorted alone, because it fits into the processor's cache.
        """
        runs = []
        for number, part in enumerate(self._parts):
            order = stable_order(part[0])
            self._parts[number] = tuple(column[order] for column in part)
            keys = self._parts[number][0]
            begin = find_run_starts(keys)
            end = np.append(begin[1:], keys.size)
            runs.append((keys[begin], np.full(begin.size, number), begin, end))
        columns = [np.concatenate(parts) for parts in zip(*runs, strict=True)]
        order = stable_order(columns[0])
        return _Runs(*(column[order] for column in columns))


class _Runs(NamedTuple):
    """For each key and part, from where to where the part's rows have that key; sorted by key."""

    key: np.ndarray
    part: np.ndarray
    begin: np.ndarray
    end: np.ndarray


class PacketActivity:
    """Counts packets of each kind over time.

    If there are too many intervals, they are joined in pairs.
    """

    def __init__(self) -> None:
        self.width_ns = 100_000_000
        """The length of an interval."""
        self.counts: dict[int, Ints] = {}
        """The number of packets of each kind, by the number of the interval since 1970."""

    def add(self, time_ns: Ints, kinds: PacketKinds) -> None:
        """Count the packets of a batch by their times and kinds."""
        if not time_ns.size:
            return
        interval = time_ns // self.width_ns
        low, high = int(interval.min()), int(interval.max())
        # Interval and kind in one number, so that one count serves both.
        if high - low < _MAX_INTERVALS:
            table = np.bincount((interval - low) * len(PacketKind) + kinds)
            self._merge_rows(table, np.arange(low, high + 1))
        else:  # the times are far apart: number only the intervals that occur
            intervals, number = np.unique(interval, return_inverse=True)
            self._merge_rows(np.bincount(number.ravel() * len(PacketKind) + kinds), intervals)
        while len(self.counts) > _MAX_INTERVALS:
            self._double_width()

    def _merge_rows(self, table: np.ndarray, intervals: np.ndarray) -> None:
        """Add a flat table of counts: for each of the intervals, the packets of each kind."""
        rows = np.zeros((intervals.size, len(PacketKind)), np.int64)
        rows.ravel()[: table.size] = table
        for index in np.flatnonzero(rows.any(axis=1)).tolist():
            key = int(intervals[index])
            previous = self.counts.get(key)
            self.counts[key] = rows[index] if previous is None else previous + rows[index]

    def _double_width(self) -> None:
        """Make intervals twice as long, which halves their number."""
        self.width_ns *= 2
        wider: dict[int, Ints] = {}
        for key, row in self.counts.items():
            previous = wider.get(key // 2)
            wider[key // 2] = row if previous is None else previous + row
        self.counts = wider


@dataclass(slots=True)
class Analysis:
    """Everything that one pass over a capture collects."""

    head: int = HEAD
    keep_records: int = KEEP_RECORDS
    decoder: PacketDecoder = field(init=False)
    flows: Flows = field(default_factory=Flows)
    tracks: RecordTracks = field(default_factory=RecordTracks)
    media: MediaStreams = field(default_factory=MediaStreams)
    details: PacketFacts = field(default_factory=PacketFacts)
    activity: PacketActivity = field(default_factory=PacketActivity)
    records: KeptRows = field(init=False)
    """Columns of the encrypted application records: direction, time, length."""
    heads: KeptRows = field(init=False)
    """Columns of the first UDP datagrams: direction, size, first bytes."""
    frames: KeptRows = field(init=False)
    """Columns of the documented teaching frames: direction, time, message type, command."""
    commands: list[tuple[int, int, bytes]] = field(default_factory=list)
    """Commands and replies in teaching frames, poses left out: direction, time, datagram."""
    commands_left_out: int = 0
    poses: dict[int, int] = field(default_factory=dict)
    """Streamed poses in teaching frames, by direction."""
    sizes: Ints = field(init=False)
    """How many UDP datagrams have each size."""
    udp: int = 0
    tcp: int = 0
    dtls: int = 0
    first_ns: int | None = None
    last_ns: int | None = None
    _heads_kept: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.decoder = PacketDecoder(self.head)
        self.records = KeptRows(self.keep_records)
        self.heads = KeptRows(KEEP_HEADS_IN_ALL)
        self.frames = KeptRows(_KEEP_FRAMES)
        self.sizes = np.zeros(_SIZE_COUNT, np.int64)
        self._heads_kept = np.zeros(0, np.int64)

    def run(self, capture: Capture) -> "Analysis":
        """Read a capture to its end."""
        for records in capture:
            self.add(records)
        return self

    def add(self, records: Records) -> None:
        """Process the packets of one window of a capture."""
        if records.time_ns.size:
            first, last = int(records.time_ns.min()), int(records.time_ns.max())
            self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
            self.last_ns = last if self.last_ns is None else max(last, self.last_ns)
        for batch in self.decoder.decode(records):
            if batch.size.size:
                self._add_batch(batch)

    def _add_batch(self, batch: DatagramBatch) -> None:
        """Classify the datagrams of a batch, and add them to all tables."""
        kinds, rows = classify(batch)
        flow = self.flows.add(batch, kinds)
        udp = batch.protocol == UDP
        datagrams = np.flatnonzero(udp)
        self.udp += datagrams.size
        self.tcp += udp.size - datagrams.size
        sizes = np.bincount(np.minimum(batch.full[datagrams], _SIZE_COUNT - 1))
        self.sizes[: sizes.size] += sizes
        self.activity.add(batch.time_ns, kinds)
        self._add_records(flow, batch, rows)
        self.media.add(flow, batch, kinds)
        self.details.add_batch(flow, batch, kinds, rows)
        self._add_heads(flow, batch, udp)
        frames = np.flatnonzero(kinds == PacketKind.TEACHING)
        if frames.size:
            message_type, command = batch.heads[frames, 0], batch.heads[frames, 12]
            self.frames.add(flow[frames], batch.time_ns[frames], message_type, command)
            self._add_commands(flow, batch, frames[message_type == _COMMAND])

    def _add_commands(self, flow: Numbers, batch: DatagramBatch, which: np.ndarray) -> None:
        """Keep the datagrams of commands and replies, up to a limit; only count streamed poses."""
        is_pose = big_endian(batch.heads[which], 15, 4) == _POSE  # after 15 bytes of header
        for number in flow[which[is_pose]].tolist():
            self.poses[number] = self.poses.get(number, 0) + 1
        others = which[~is_pose]
        accepted = min(others.size, KEEP_COMMANDS - len(self.commands))
        self.commands_left_out += others.size - accepted
        kept = others[:accepted]
        numbers, times_ns = flow[kept].tolist(), batch.time_ns[kept].tolist()
        self.commands += zip(numbers, times_ns, map(batch.payload, kept.tolist()), strict=True)

    def _add_records(self, flow: Numbers, batch: DatagramBatch, rows: RecordRows) -> None:
        """Follow the numbers of DTLS records; keep times and lengths of the encrypted ones."""
        self.dtls += rows.datagram.size
        if not rows.datagram.size:
            return
        record_flows = flow[rows.datagram]
        self.tracks.add(record_flows, rows)
        data = (rows.type == APPLICATION) & (rows.epoch > 0)
        if not data.all():
            record_flows, rows = record_flows[data], rows.part(data)
        self.records.add(
            record_flows.astype(np.int32),
            batch.time_ns[rows.datagram],
            rows.length.astype(np.uint16),
        )

    def _add_heads(self, flow: Numbers, batch: DatagramBatch, udp: np.ndarray) -> None:
        """Keep the first bytes of UDP datagrams, up to `KEEP_HEADS` per direction.

        `flow` is the direction of each packet, `udp` whether it is a UDP datagram.
        """
        flow_count = len(self.flows) + 1
        if self._heads_kept.size < flow_count:
            more = np.zeros(2 * flow_count - self._heads_kept.size, np.int64)
            self._heads_kept = np.append(self._heads_kept, more)
        selected = udp & (self._heads_kept[np.minimum(flow, flow_count)] < KEEP_HEADS)
        selected &= flow < self.flows.limit  # directions beyond the limit share this number
        which = np.flatnonzero(selected)
        if which.size:
            self._heads_kept += np.bincount(flow[which], minlength=self._heads_kept.size)
            self.heads.add(flow[which], batch.size[which], batch.heads[which])

    def get_heads(self, flow: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return first bytes and sizes of a direction's first datagrams; None if it has none."""
        rows = self.heads.get_rows(flow)
        return None if rows is None else (rows[1], rows[0])

    def get_records(self, flow: int) -> tuple[Ints, NDArray[np.uint16]]:
        """Return times and lengths of a direction's encrypted records."""
        rows = self.records.get_rows(flow)
        if rows is None:
            return np.zeros(0, np.int64), np.zeros(0, np.uint16)
        return rows[0], rows[1]
