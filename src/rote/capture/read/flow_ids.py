"""Numbers for keys: equal keys get equal numbers, for many keys at once.

A key is two 64-bit numbers. Recent keys are found in a table by array arithmetic; only new ones go
through a dictionary. Beyond `limit` keys all others share the number `limit`, so that a million
flows need no more memory than `limit` of them.
"""

import numpy as np
from numpy.typing import NDArray

KeyParts = NDArray[np.uint64]
Numbers = NDArray[np.int64]

_SLOT_BITS = 14
_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class Interner:
    """Gives keys numbers from 0 on, in the order of their first appearance."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.keys: list[tuple[int, int]] = []
        self.refused = 0
        """How often a key came that could not get a number."""
        self._numbers: dict[tuple[int, int], int] = {}
        slots = 1 << _SLOT_BITS
        self._a = np.zeros(slots, np.uint64)
        self._b = np.zeros(slots, np.uint64)
        self._number = np.full(slots, -1, np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def full(self) -> bool:
        """Whether new keys can get no number any more."""
        return len(self.keys) >= self.limit

    def numbers(self, a: KeyParts, b: KeyParts) -> Numbers:
        """Return the number of each key (a[i], b[i])."""
        slot = (((a * _MIX_A) ^ b) * _MIX_B >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
        found = self._number.take(slot)
        known = (self._a.take(slot) == a) & (self._b.take(slot) == b) & (found >= 0)
        if known.all():
            return found
        unknown = np.flatnonzero(~known)
        found[unknown] = self._number_new_keys(a[unknown], b[unknown], slot[unknown])
        return found

    def _number_new_keys(self, a: KeyParts, b: KeyParts, slot: Numbers) -> Numbers:
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
        new = np.ones(a.size, np.bool_)
        new[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
        which = np.flatnonzero(new)
        # In the order of appearance, so that the first flow of a capture is number 0.
        appeared = np.minimum.reduceat(order, which)
        numbers = np.zeros(which.size, np.int64)
        pairs = list(zip(a[which].tolist(), b[which].tolist(), strict=True))
        for index in np.argsort(appeared).tolist():
            numbers[index] = self._number_of(pairs[index])
        result = np.empty(a.size, np.int64)
        result[order] = numbers[np.cumsum(new) - 1]
        own = numbers < self.limit
        slots = slot[order][which][own]
        self._a[slots], self._b[slots] = a[which][own], b[which][own]
        self._number[slots] = numbers[own]
        self.refused += int((result == self.limit).sum())
        return result

    def _number_of(self, key: tuple[int, int]) -> int:
        number = self._numbers.get(key)
        if number is None:
            if self.full:
                return self.limit
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number


def by_number(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the order that sorts numbers from 0 on; equal ones keep their order.

    Numbers of 8 or 16 bits are sorted several times as fast as longer ones.
    """
    most = int(numbers.max()) if numbers.size else 0
    if most < 1 << 16:
        numbers = numbers.astype(np.uint8 if most < 1 << 8 else np.uint16)
    return np.argsort(numbers, kind="stable")


def run_starts(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return where runs of equal numbers begin."""
    new = np.ones(numbers.size, np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=new[1:])
    return np.flatnonzero(new)


def distinct(values: Numbers) -> Numbers:
    """Return the different values, ascending.

    `np.unique` would first import numpy's masked arrays, which takes half as long as all of numpy.
    """
    ordered = np.sort(values)
    return ordered[run_starts(ordered)]


def among(values: NDArray[np.generic], allowed: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which values are one of a few; `np.isin` takes longer to choose its method."""
    found = np.zeros(values.size, np.bool_)
    for one in allowed:
        found |= values == one
    return found
