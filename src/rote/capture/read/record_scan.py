"""Finds where the records of a capture file begin.

Each record states its own length, so the next one is found only through it: a chain. A loop in
Python follows four million per second at best. Here many lanes work in parallel: guess a record
near each of many places, follow all of them by array arithmetic, and accept the result only if
every record ends where the next begins, from the first byte to the last. A wrong guess costs time,
never truth.
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
"""How many bytes after a window's end may be read; they have no meaning."""
WORTH_LANES = 1 << 20
_SCAN = 512
_SPREAD = 16
"""A window of n bytes has as many lanes as the square root of n / _SPREAD: 512 in 4 MB."""


class RecordLayout(NamedTuple):
    """How a record states its length."""

    order: str
    """< or >."""
    length_at: int
    """Where the 32-bit length is."""
    added: int
    """Bytes that the length does not include."""
    smallest: int
    largest: int
    """The largest size of a record; anything larger is none."""


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
"""(data, first place, distance, places, end) -> one likely record near each place, ascending."""


def column(data: Bytes, dtype: str, at: int = 0) -> NDArray[Any]:
    """Return a view in which element i is the value at byte `at + i`, aligned or not."""
    kind = np.dtype(dtype)
    return np.ndarray((data.size - at - kind.itemsize + 1,), kind, data.data, at, (1,))


def walk(data: Bytes, end: int, layout: RecordLayout, guess: Guess) -> RecordChain:
    """Return the records of `data[:end]`; `data` continues for GUARD bytes."""
    if end >= WORTH_LANES:
        chain = _walk_in_lanes(data, end, layout, guess)
        if chain is not None:
            return chain
    return _walk_one_by_one(data, end, layout)


def _walk_one_by_one(data: Bytes, end: int, layout: RecordLayout) -> RecordChain:
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
    """Follow the records from guessed places in parallel; None if the lanes do not meet."""
    lanes = max(8, math.isqrt(end // _SPREAD))
    distance = end // lanes
    guessed = guess(data, distance, distance, lanes - 1, end)
    starts = np.concatenate((np.zeros(1, np.int64), guessed))
    limits = np.append(starts[1:], end)
    lengths = column(data, layout.order + "u4", layout.length_at)
    position, rows = starts, []
    # Twice what records of the smallest size would need; after that the guesses were bad.
    for step in range(1 + 2 * int((limits - starts).max()) // layout.smallest):
        if step % 8 == 0 and not (position < limits).any():
            break
        rows.append(position)
        size = lengths[position].astype(np.int64)
        size += layout.added
        # A wrong length leads past the end, and the proof below fails.
        if not layout.added:
            size[size < layout.smallest] = end
        size += position
        position = np.minimum(size, end, out=size)
    table = np.array([*rows, position]).T
    inside = table < limits[:, None]
    if inside[:, -1].any():
        return None
    # Each lane must reach exactly the place where the next one began.
    if (table[np.arange(starts.size), np.count_nonzero(inside, axis=1)] != limits).any():
        return None
    offsets = table[inside]
    last = int(offsets[-1] + lengths[offsets[-1]]) + layout.added
    sizes = np.diff(offsets, append=last)
    if sizes.min() < layout.smallest or sizes.max() > layout.largest:
        return None
    whole = offsets.size - int(last > end)
    return RecordChain(offsets[:whole], sizes[:whole], False)


def near(marked: NDArray[np.bool_], first: int, distance: int) -> Ints:
    """Return the places of a (place, byte) table that are True, as offsets, ascending."""
    row, byte = np.divmod(np.flatnonzero(marked), marked.shape[1])
    return (first + row * distance + byte).astype(np.int64)


def one_each(offsets: Ints, first: int, distance: int) -> Ints:
    """Keep the first offset near each place."""
    rows = (offsets - first) // distance
    return offsets[np.flatnonzero(np.diff(rows, prepend=-1))]


def windows(data: Bytes, dtype: str, at: int, distance: int, count: int) -> NDArray[np.generic]:
    """Return a (place, byte) view of the values that begin within a scan of each place."""
    kind = np.dtype(dtype)
    scan = min(_SCAN, distance)
    return np.ndarray((count, scan), kind, data.data, at, (distance, 1))
