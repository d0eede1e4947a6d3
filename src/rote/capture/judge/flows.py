"""The table of flows: packets, bytes and times of each direction, filled by array arithmetic."""

from typing import NamedTuple

import numpy as np

from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import Interner, Numbers
from rote.capture.read.packets import DatagramBatch

MAX_FLOWS = 1 << 16
"""Maximum number of directions with their own row; all others share one more row."""
_KINDS = len(PacketKind)
_BY_NUMBER = tuple(PacketKind)
_NEVER = 2**62


class Direction(NamedTuple):
    """Counts of what one side sent to the other."""

    number: int
    """Its row in the table of flows."""
    source: tuple[int, int, int]
    """IP version, address as a number, port."""
    destination: tuple[int, int, int]
    protocol: int
    packets: int
    wire_bytes: int
    first_ns: int
    last_ns: int
    kinds: dict[PacketKind, int]


class Flows:
    """The table of directions."""

    def __init__(self, limit: int = MAX_FLOWS) -> None:
        self._keys = Interner(limit)
        self.limit = limit
        self._newest_ns = -_NEVER
        self._wire = np.zeros(0, np.int64)
        self._first = np.zeros(0, np.int64)
        self._last = np.zeros(0, np.int64)
        self._kinds = np.zeros((0, _KINDS), np.int64)

    def __len__(self) -> int:
        return len(self._keys)

    @property
    def left_out(self) -> int:
        """How many packets belong to directions without a row."""
        return self._keys.refused

    def add(self, batch: DatagramBatch, kinds: PacketKinds) -> Numbers:
        """Count a batch; return the row of each packet's direction."""
        previous_count = len(self._keys)
        rows = self._keys.numbers(batch.flow_addresses, batch.flow_ports)
        if not rows.size:
            return rows
        self._grow_tables(len(self._keys) + 1)
        wire = np.bincount(rows, batch.wire)
        self._wire[: wire.size] += wire.astype(np.int64)
        # Row and kind in one number, so that one count serves both.
        pairs = np.bincount(rows * _KINDS + kinds)
        self._kinds.ravel()[: pairs.size] += pairs
        self._add_times(rows, batch.time_ns, previous_count)
        return rows

    def _add_times(self, rows: Numbers, time_ns: Numbers, previous_count: int) -> None:
        """Update the first and last time of each direction by those of a batch.

        `rows` are the rows of the packets' directions. Rows from `previous_count` on are new.
        """
        if time_ns[0] < self._newest_ns or (time_ns[1:] < time_ns[:-1]).any():
            np.minimum.at(self._first, rows, time_ns)
            np.maximum.at(self._last, rows, time_ns)
            self._newest_ns = max(self._newest_ns, int(time_ns.max()))
            return
        # In order, as nearly always. The last assignment to a row is the one that stays; for the
        # first times it must be the earliest, so they are assigned backwards.
        self._last[rows] = time_ns
        new = np.flatnonzero(rows >= previous_count)[::-1]
        self._first[rows[new]] = time_ns[new]
        self._newest_ns = int(time_ns[-1])

    def _grow_tables(self, row_count: int) -> None:
        size = self._first.size
        if row_count <= size:
            return
        more = min(2 * row_count, self.limit + 1) - size
        self._wire = np.append(self._wire, np.zeros(more, np.int64))
        self._first = np.append(self._first, np.full(more, _NEVER))
        self._last = np.append(self._last, np.full(more, -_NEVER))
        self._kinds = np.vstack((self._kinds, np.zeros((more, _KINDS), np.int64)))

    def kind_totals(self) -> dict[PacketKind, int]:
        """Return how many packets are of each kind, including those without a row."""
        totals = self._kinds.sum(axis=0)
        return {kind: int(totals[kind]) for kind in PacketKind if totals[kind]}

    def directions(self) -> list[Direction]:
        """Return all rows, in the order of their first packets."""
        count = len(self._keys)
        columns = (self._kinds.sum(axis=1), self._wire, self._first, self._last)
        packets, wire, first, last = (column[:count].tolist() for column in columns)
        kinds: list[dict[PacketKind, int]] = [{} for _ in range(count)]
        row, kind = np.nonzero(self._kinds[:count])
        counts = self._kinds[row, kind].tolist()
        for number, kind_number, packet_count in zip(
            row.tolist(), kind.tolist(), counts, strict=True
        ):
            kinds[number][_BY_NUMBER[kind_number]] = packet_count
        # A key: `flow_addresses` and `flow_ports` (with version and protocol) of a batch.
        return [
            Direction(
                number=number,
                source=(b >> 40, a >> 32, b >> 16 & 0xFFFF),
                destination=(b >> 40, a & 0xFFFF_FFFF, b & 0xFFFF),
                protocol=b >> 32 & 0xFF,
                packets=packets[number],
                wire_bytes=wire[number],
                first_ns=first[number],
                last_ns=last[number],
                kinds=kinds[number],
            )
            for number, (a, b) in enumerate(self._keys.keys)
        ]
