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
"""The table has 2 to this power slots."""
_MIX_A, _MIX_B = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)


class Interner:
    """Gives keys numbers from 0 on, in the order of their first appearance."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.keys: list[tuple[int, int]] = []
        self.refused = 0
        """How often a key came that could not get a number of its own."""
        self._numbers: dict[tuple[int, int], int] = {}
        # A table of recent keys: both halves of the key in each slot and its number, or -1.
        slot_count = 1 << _SLOT_BITS
        self._a_in_slot = np.zeros(slot_count, np.uint64)
        self._b_in_slot = np.zeros(slot_count, np.uint64)
        self._number_in_slot = np.full(slot_count, -1, np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def full(self) -> bool:
        """Whether the limit is reached, so that new keys get no number of their own."""
        return len(self.keys) >= self.limit

    def numbers(self, a: KeyParts, b: KeyParts) -> Numbers:
        """Return the number of each key (a[i], b[i]); a new key gets the next number."""
        # A hash of the key is the slot in which it may be.
        slot = (((a * _MIX_A) ^ b) * _MIX_B >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
        numbers = self._number_in_slot.take(slot)
        is_known = (self._a_in_slot.take(slot) == a) & (self._b_in_slot.take(slot) == b)
        is_known &= numbers >= 0
        if is_known.all():
            return numbers
        unknown = np.flatnonzero(~is_known)
        numbers[unknown] = self._number_unknown_keys(a[unknown], b[unknown], slot[unknown])
        return numbers

    def _number_unknown_keys(self, a: KeyParts, b: KeyParts, slot: Numbers) -> Numbers:
        """Return the numbers of keys that the table lacks, and store them in their slots."""
        # After sorting, equal keys are neighbours, so each different key is looked up only once.
        order = np.lexsort((b, a))
        a, b = a[order], b[order]
        is_different = np.ones(a.size, np.bool_)
        is_different[1:] = (a[1:] != a[:-1]) | (b[1:] != b[:-1])
        first_rows = np.flatnonzero(is_different)
        keys = list(zip(a[first_rows].tolist(), b[first_rows].tolist(), strict=True))
        # In the order of appearance, so that the first flow of a capture is number 0.
        appeared = np.minimum.reduceat(order, first_rows)
        key_numbers = np.zeros(first_rows.size, np.int64)
        for index in np.argsort(appeared).tolist():
            key_numbers[index] = self._find_or_assign_number(keys[index])
        result = np.empty(a.size, np.int64)
        result[order] = key_numbers[np.cumsum(is_different) - 1]
        has_number = key_numbers < self.limit
        stored_rows = first_rows[has_number]
        slots = slot[order][stored_rows]
        self._a_in_slot[slots], self._b_in_slot[slots] = a[stored_rows], b[stored_rows]
        self._number_in_slot[slots] = key_numbers[has_number]
        self.refused += int((result == self.limit).sum())
        return result

    def _find_or_assign_number(self, key: tuple[int, int]) -> int:
        """Return the number of a key; beyond the limit, a new key gets `limit`."""
        number = self._numbers.get(key)
        if number is None:
            if self.full:
                return self.limit
            number = self._numbers[key] = len(self.keys)
            self.keys.append(key)
        return number


def stable_order(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the indices that sort non-negative numbers; equal numbers keep their order.

    Small numbers are first narrowed to 8 or 16 bits, because that sorts several times as fast.
    """
    largest = int(numbers.max()) if numbers.size else 0
    if largest < 1 << 16:
        numbers = numbers.astype(np.uint8 if largest < 1 << 8 else np.uint16)
    return np.argsort(numbers, kind="stable")


def find_run_starts(numbers: NDArray[np.integer]) -> NDArray[np.intp]:
    """Return the indices at which runs of equal numbers begin."""
    is_start = np.ones(numbers.size, np.bool_)
    np.not_equal(numbers[1:], numbers[:-1], out=is_start[1:])
    return np.flatnonzero(is_start)


def distinct(values: Numbers) -> Numbers:
    """Return the different values in ascending order.

    `np.unique` would first import numpy's masked arrays, which takes half as long as all of numpy.
    """
    ordered = np.sort(values)
    return ordered[find_run_starts(ordered)]


def is_one_of(values: NDArray[np.generic], allowed: tuple[int, ...]) -> NDArray[np.bool_]:
    """Return which values are allowed; for few allowed values this is faster than `np.isin`."""
    is_allowed = np.zeros(values.size, np.bool_)
    for value in allowed:
        is_allowed |= values == value
    return is_allowed
