"""RTP streams: confirmed by their sequence numbers, with their losses.

Two bits mark "media", and every fourth random datagram has them. A stream is accepted if its source
number repeats and its sequence advances in small steps.
"""

from typing import NamedTuple

import numpy as np

from rote.capture.decode.dtls_numbering import FollowedNumbers
from rote.capture.model import PacketKind
from rote.capture.read.flow_ids import Interner, distinct
from rote.capture.read.packets import DatagramBatch, big

_MAX_STREAMS = 4096
_SMALL_STEP = 64


class MediaStream(NamedTuple):
    """The media of one source in one direction."""

    flow: int
    source: int
    packets: int
    lost: int
    payload_types: tuple[int, ...]
    believed: bool


class MediaStreams:
    """Follows the streams of a capture, in bounded memory."""

    def __init__(self) -> None:
        self._keys = Interner(_MAX_STREAMS)
        self._followed = FollowedNumbers()
        size = _MAX_STREAMS + 1
        self._count = np.zeros(size, np.int64)
        self._travelled = np.zeros(size, np.int64)
        self._small = np.zeros(size, np.int64)
        self._types: dict[int, set[int]] = {}

    def add(self, flow: np.ndarray, batch: DatagramBatch, kinds: np.ndarray) -> None:
        """Process the media of a batch, with the flow of each datagram."""
        which = np.flatnonzero(kinds == PacketKind.RTP)
        if not which.size:
            return
        heads = batch.heads[which]
        source = big(heads, 8, 4).astype(np.uint64)
        numbers = self._keys.numbers(flow[which].astype(np.uint64), source)
        for pair in distinct(numbers << 7 | (heads[:, 1] & 0x7F)).tolist():
            self._types.setdefault(pair >> 7, set()).add(pair & 0x7F)
        stream, _, step, fresh, _ = self._followed.follow(numbers, big(heads, 2))
        # Sequence numbers have 16 bits and wrap.
        step = (step + 0x8000 & 0xFFFF) - 0x8000
        size = self._count.size
        self._count += np.bincount(stream, minlength=size)
        self._travelled += np.bincount(stream, step, minlength=size).astype(np.int64)
        small = (np.abs(step) <= _SMALL_STEP) & ~fresh
        self._small += np.bincount(stream[small], minlength=size)

    def streams(self) -> list[MediaStream]:
        """Return the accepted streams; the rest is other traffic."""
        found = []
        for number, (flow, source) in enumerate(self._keys.keys):
            count = int(self._count[number])
            lost = max(0, int(self._travelled[number]) + 1 - count)
            believed = count >= 3 and int(self._small[number]) >= 0.8 * (count - 1)
            types = tuple(sorted(self._types.get(number, ())))
            found.append(MediaStream(flow, source, count, lost, types, believed))
        return found
