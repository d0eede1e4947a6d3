"""Finds where the records of a capture file begin.

Each record states its own length, so the next one is found only through it: a chain. A loop in
Python follows at most four million records per second. Here many lanes work in parallel: guess a
record near each of many offsets, follow all of them by array arithmetic, and accept the result only
if every record ends where the next begins, from the first byte to the last. A wrong guess costs
time but cannot give a wrong result.
"""

import math
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
Ints = NDArray[np.int64]

GUARD = 512
"""Number of bytes after a window's end that may be read; they have no meaning."""
MIN_BYTES_FOR_LANES = 1 << 20
"""Shorter windows are read in a plain loop, which is faster for them."""
_SCANNED_BYTES = 512
"""Number of bytes in which a record is guessed for each lane."""
_BYTES_PER_LANE_SQUARED = 16
"""A window of n bytes has sqrt(n / this) lanes: 512 in 4 MB."""


class RecordLayout(NamedTuple):
    """How a record states its length."""

    order: str
    """The byte order: < or >."""
    length_at: int
    """Offset of the 32-bit length in the record."""
    added: int
    """Bytes that the length does not include."""
    smallest: int
    """The smallest size of a record in bytes."""
    largest: int
    """The largest size of a record in bytes; anything larger is damage."""


class RecordChain(NamedTuple):
    """The whole records of a window."""

    offsets: Ints
    sizes: Ints
    broken: bool
    """Whether the chain ends at invalid data, and not at the window's end."""

    @property
    def end(self) -> int:
        """Where the first record after the chain begins."""
        return int(self.offsets[-1] + self.sizes[-1]) if self.offsets.size else 0


Guess = Callable[[Bytes, int, int, int, int], Ints]
"""(data, first offset, distance, count, end) -> a likely record near each of `count` offsets that
are `distance` bytes apart, ascending."""


def column(data: Bytes, dtype: str, offset: int = 0) -> NDArray[Any]:
    """Return a view in which element i is the value at byte `offset + i`, aligned or not."""
    item = np.dtype(dtype)
    return np.ndarray((data.size - offset - item.itemsize + 1,), item, data.data, offset, (1,))


def walk_records(data: Bytes, end: int, layout: RecordLayout, guess: Guess) -> RecordChain:
    """Return where the records of `data[:end]` begin; `data` continues for GUARD bytes.

    `guess` proposes records in the middle, from which long data is read in parallel.
    """
    if end >= MIN_BYTES_FOR_LANES:
        chain = _walk_in_lanes(data, end, layout, guess)
        if chain is not None:
            return chain
    return _walk_one_by_one(data, end, layout)


def _walk_one_by_one(data: Bytes, end: int, layout: RecordLayout) -> RecordChain:
    """Follow the records in a plain loop, up to the window's end or the first invalid length."""
    unpack = struct.Struct(layout.order + "I").unpack_from
    view = data.data
    offsets: list[int] = []
    position, broken = 0, False
    _, length_at, added, smallest, largest = layout
    last = end - smallest
    append = offsets.append
    while position <= last:
        size = unpack(view, position + length_at)[0] + added
        if size < smallest or size > largest:
            broken = True
            break
        if position + size > end:
            break
        append(position)
        position += size
    starts = np.array(offsets, np.int64)
    return RecordChain(starts, np.diff(starts, append=position), broken)


def _walk_in_lanes(data: Bytes, end: int, layout: RecordLayout, guess: Guess) -> RecordChain | None:
    """Follow the records from many guessed offsets at once; return None if a guess was wrong.

    A lane is the records from one guessed offset up to the next.
    """
    lane_count = max(8, math.isqrt(end // _BYTES_PER_LANE_SQUARED))
    distance = end // lane_count
    guessed = guess(data, distance, distance, lane_count - 1, end)
    starts = np.concatenate((np.zeros(1, np.int64), guessed))
    limits = np.append(starts[1:], end)
    lengths = column(data, layout.order + "u4", layout.length_at)
    # Each step moves all lanes by one record: `position` has one offset per lane.
    position, steps = starts, []
    # Twice what records of the smallest size would need; after that the guesses were bad.
    for step in range(1 + 2 * int((limits - starts).max()) // layout.smallest):
        if step % 8 == 0 and not (position < limits).any():  # checked seldom, to save time
            break
        steps.append(position)
        size = lengths[position].astype(np.int64)
        size += layout.added
        # A length that is too small would stop the lane; past the end, the check below fails.
        if not layout.added:
            size[size < layout.smallest] = end
        size += position
        position = np.minimum(size, end, out=size)
    table = np.array([*steps, position]).T  # one row per lane
    inside = table < limits[:, None]
    if inside[:, -1].any():
        return None
    # Each lane must reach exactly the offset at which the next one began.
    if (table[np.arange(starts.size), np.count_nonzero(inside, axis=1)] != limits).any():
        return None
    offsets = table[inside]
    last = int(offsets[-1] + lengths[offsets[-1]]) + layout.added
    sizes = np.diff(offsets, append=last)
    if sizes.min() < layout.smallest or sizes.max() > layout.largest:
        return None
    whole_count = offsets.size - int(last > end)  # the window may cut off the last record
    return RecordChain(offsets[:whole_count], sizes[:whole_count], False)


def find_marked_offsets(marked: NDArray[np.bool_], first: int, distance: int) -> Ints:
    """Return the offsets of the True cells, ascending; row i begins at `first + i * distance`."""
    row, byte = np.divmod(np.flatnonzero(marked), marked.shape[1])
    return (first + row * distance + byte).astype(np.int64)


def find_first_in_rows(offsets: Ints, first: int, distance: int) -> Ints:
    """Return the first offset of each row; row i begins at `first + i * distance`."""
    rows = (offsets - first) // distance
    return offsets[np.flatnonzero(np.diff(rows, prepend=-1))]


def scan_view(
    data: Bytes, dtype: str, start: int, distance: int, count: int
) -> NDArray[np.generic]:
    """Return a (row, byte) view of `count` rows: the value at each of the row's first bytes.

    Row i begins at `start + i * distance`.
    """
    width = min(_SCANNED_BYTES, distance)
    return np.ndarray((count, width), np.dtype(dtype), data.data, start, (distance, 1))
