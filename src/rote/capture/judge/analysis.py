"""One pass over a capture: read, decode, name and count, in memory that does not grow with it."""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.decode.dtls_numbering import APPLICATION, RecordRows, RecordTracks
from rote.capture.decode.media import MediaStreams
from rote.capture.decode.packet_facts import PacketFacts
from rote.capture.judge.classify import name
from rote.capture.judge.flows import Flows
from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import Numbers, by_number, run_starts
from rote.capture.read.packets import HEAD, UDP, DatagramBatch, PacketDecoder, big
from rote.capture.read.reader import Capture, Records
from rote.capture.read.record_scan import Ints

KEEP_RECORDS = 4_000_000
"""How many encrypted records are kept for the time line (time and length)..."""
KEEP_RECORDS_STREAM = 1_000_000
"""...and in a stream, which may never end."""
KEEP_HEADS = 2048
"""How many first bytes are kept of each direction, for statistics on single bytes..."""
KEEP_HEADS_IN_ALL = 1 << 17
"""...and of all together."""
KEEP_COMMANDS = 100_000
"""Commands and replies in teaching frames that are read one by one."""
_COMMAND, _POSE = 0x17, int.from_bytes(b"POSE")
"""First byte of a command, and the first bytes of a streamed pose. They repeat
wire/teaching/codec.py, which takes longer to load than a small capture to read."""
_MAX_BUCKETS = 4096
_LARGEST = 65_536


class KeptRows:
    """Rows of numbers, kept up to a limit."""

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
        """Return what was kept; None if nothing was."""
        if not self._parts:
            return None
        if len(self._parts) > 1:
            joined = tuple(np.concatenate(parts) for parts in zip(*self._parts, strict=True))
            self._parts = [joined]
        return self._parts[0]

    def of(self, key: int) -> tuple[np.ndarray, ...] | None:
        """Return the rows whose first column is `key`, in their order; None if there are none.

        Call it when nothing more is added: the rows are sorted once.
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
        """Sort each part by its first column; a part fits into the processor's cache."""
        runs = []
        for number, part in enumerate(self._parts):
            order = by_number(part[0])
            self._parts[number] = tuple(column[order] for column in part)
            keys = self._parts[number][0]
            begin = run_starts(keys)
            end = np.append(begin[1:], keys.size)
            runs.append((keys[begin], np.full(begin.size, number), begin, end))
        columns = [np.concatenate(parts) for parts in zip(*runs, strict=True)]
        order = by_number(columns[0])
        return _Runs(*(column[order] for column in columns))


class _Runs(NamedTuple):
    """Where the rows of each key are, sorted by the key."""

    key: np.ndarray
    part: np.ndarray
    begin: np.ndarray
    end: np.ndarray


class PacketActivity:
    """Packets of each kind per interval; intervals grow longer so that their number stays small."""

    def __init__(self) -> None:
        self.width_ns = 100_000_000
        self.moments: dict[int, Ints] = {}

    def add(self, time_ns: Ints, kinds: PacketKinds) -> None:
        """Count a batch."""
        if not time_ns.size:
            return
        moment = time_ns // self.width_ns
        low, high = int(moment.min()), int(moment.max())
        if high - low < _MAX_BUCKETS:
            table = np.bincount((moment - low) * len(PacketKind) + kinds)
            self._merge_rows(table, np.arange(low, high + 1))
        else:
            values, number = np.unique(moment, return_inverse=True)
            self._merge_rows(np.bincount(number.ravel() * len(PacketKind) + kinds), values)
        while len(self.moments) > _MAX_BUCKETS:
            self._double_width()

    def _merge_rows(self, table: np.ndarray, moments: np.ndarray) -> None:
        rows = np.zeros((moments.size, len(PacketKind)), np.int64)
        rows.ravel()[: table.size] = table
        for index in np.flatnonzero(rows.any(axis=1)).tolist():
            key = int(moments[index])
            known = self.moments.get(key)
            self.moments[key] = rows[index] if known is None else known + rows[index]

    def _double_width(self) -> None:
        self.width_ns *= 2
        wider: dict[int, Ints] = {}
        for key, row in self.moments.items():
            known = wider.get(key // 2)
            wider[key // 2] = row if known is None else known + row
        self.moments = wider


@dataclass(slots=True)
class Analysis:
    """Everything that one pass collects."""

    head: int = HEAD
    keep_records: int = KEEP_RECORDS
    decoder: PacketDecoder = field(init=False)
    flows: Flows = field(default_factory=Flows)
    tracks: RecordTracks = field(default_factory=RecordTracks)
    media: MediaStreams = field(default_factory=MediaStreams)
    details: PacketFacts = field(default_factory=PacketFacts)
    activity: PacketActivity = field(default_factory=PacketActivity)
    records: KeptRows = field(init=False)
    """Encrypted application records: direction, time, length."""
    heads: KeptRows = field(init=False)
    """Of UDP: direction, size, first bytes."""
    frames: KeptRows = field(init=False)
    """Documented teaching frames: direction, time, message type, command."""
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
    _heads_of: Ints = field(init=False)

    def __post_init__(self) -> None:
        self.decoder = PacketDecoder(self.head)
        self.records = KeptRows(self.keep_records)
        self.heads = KeptRows(KEEP_HEADS_IN_ALL)
        self.frames = KeptRows(100_000)
        self.sizes = np.zeros(_LARGEST, np.int64)
        self._heads_of = np.zeros(0, np.int64)

    def run(self, capture: Capture) -> "Analysis":
        """Read a capture to its end."""
        for records in capture:
            self.add(records)
        return self

    def add(self, records: Records) -> None:
        """Process some packets."""
        if records.time_ns.size:
            first, last = int(records.time_ns.min()), int(records.time_ns.max())
            self.first_ns = first if self.first_ns is None else min(first, self.first_ns)
            self.last_ns = last if self.last_ns is None else max(last, self.last_ns)
        for batch in self.decoder.decode(records):
            if batch.size.size:
                self._add_batch(batch)

    def _add_batch(self, batch: DatagramBatch) -> None:
        kinds, rows = name(batch)
        flow = self.flows.add(batch, kinds)
        udp = batch.protocol == UDP
        datagrams = np.flatnonzero(udp)
        self.udp += datagrams.size
        self.tcp += udp.size - datagrams.size
        sizes = np.bincount(np.minimum(batch.full[datagrams], _LARGEST - 1))
        self.sizes[: sizes.size] += sizes
        self.activity.add(batch.time_ns, kinds)
        self._add_records(flow, batch, rows)
        self.media.add(flow, batch, kinds)
        self.details.add_batch(flow, batch, kinds, rows)
        self._add_heads(flow, batch, udp)
        frames = np.flatnonzero(kinds == PacketKind.TEACHING)
        if frames.size:
            kind, command = (batch.heads[frames, at] for at in (0, 12))
            self.frames.add(flow[frames], batch.time_ns[frames], kind, command)
            self._add_commands(flow, batch, frames[kind == _COMMAND])

    def _add_commands(self, flow: Numbers, batch: DatagramBatch, which: np.ndarray) -> None:
        posed = big(batch.heads[which], 15, 4) == _POSE
        for number in flow[which[posed]].tolist():
            self.poses[number] = self.poses.get(number, 0) + 1
        others = which[~posed]
        accepted = min(others.size, KEEP_COMMANDS - len(self.commands))
        self.commands_left_out += others.size - accepted
        kept = others[:accepted]
        numbers, times_ns = flow[kept].tolist(), batch.time_ns[kept].tolist()
        self.commands += zip(numbers, times_ns, map(batch.payload, kept.tolist()), strict=True)

    def _add_records(self, flow: Numbers, batch: DatagramBatch, rows: RecordRows) -> None:
        self.dtls += rows.datagram.size
        if not rows.datagram.size:
            return
        of = flow[rows.datagram]
        self.tracks.add(of, rows)
        data = (rows.type == APPLICATION) & (rows.epoch > 0)
        if not data.all():
            of, rows = of[data], rows.part(data)
        self.records.add(
            of.astype(np.int32), batch.time_ns[rows.datagram], rows.length.astype(np.uint16)
        )

    def _add_heads(self, flow: Numbers, batch: DatagramBatch, udp: np.ndarray) -> None:
        need = len(self.flows) + 1
        if self._heads_of.size < need:
            more = np.zeros(2 * need - self._heads_of.size, np.int64)
            self._heads_of = np.append(self._heads_of, more)
        selected = udp & (self._heads_of[np.minimum(flow, need)] < KEEP_HEADS)
        selected &= flow < self.flows.limit
        which = np.flatnonzero(selected)
        if which.size:
            self._heads_of += np.bincount(flow[which], minlength=self._heads_of.size)
            self.heads.add(flow[which], batch.size[which], batch.heads[which])

    def heads_of(self, flow: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return first bytes and sizes of a direction's first datagrams."""
        kept = self.heads.of(flow)
        return None if kept is None else (kept[1], kept[0])

    def records_of(self, flow: int) -> tuple[Ints, NDArray[np.uint16]]:
        """Return times and lengths of a direction's encrypted records."""
        kept = self.records.of(flow)
        if kept is None:
            return np.zeros(0, np.int64), np.zeros(0, np.uint16)
        return kept[0], kept[1]
