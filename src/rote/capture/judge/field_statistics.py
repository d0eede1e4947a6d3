"""Is this byte a command? Statistics over a field of many packets give the answer.

A field that is presented as a "command id" can be a counter, a constant, a length, noise, or really
a choice among a few values. Each leaves a different trace: a counter steps by one, a length follows
the size, noise uses all values equally, a choice repeats a few.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_MAX_NEAR_STEP = 8
MIN_PACKETS = 16
"""With fewer packets than this, there is no verdict."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the field at a byte offset of many packets is, by statistics."""

    offset: int
    width: int
    packets: int
    kind: str
    """constant, counter, length, random, enumeration, mixed, or too few."""
    why: str
    values: int = 0
    """How many different values there are."""
    entropy_bits: float = 0.0

    def document(self) -> dict[str, object]:
        """Return what `--json` shows."""
        names = ("offset", "width", "packets", "kind", "why", "values", "entropy_bits")
        return {name: getattr(self, name) for name in names}


def read_field(heads: NDArray[np.uint8], offset: int, width: int) -> NDArray[np.int64]:
    """Return the big-endian number of `width` bytes that each row has at `offset`."""
    values = np.zeros(heads.shape[0], np.int64)
    for column in range(offset, offset + width):
        values = values << 8 | heads[:, column]
    return values


def judge(
    heads: NDArray[np.uint8], sizes: NDArray[np.int64], offset: int, width: int = 1
) -> Verdict:
    """Return what the field at `offset` is, from many packets of one direction.

    `heads` has the first bytes of each packet, `sizes` its size; they are in the order sent.
    """
    has_field = sizes >= offset + width
    values = read_field(heads[has_field], offset, width)
    sizes = sizes[has_field]
    count = values.size
    if count < MIN_PACKETS:
        why = f"only {count} packets reach that far; {MIN_PACKETS} are needed"
        return Verdict(offset, width, count, "too few", why)
    _, occurrences = np.unique(values, return_counts=True)
    shares = occurrences / count
    entropy = float(-(shares * np.log2(shares)).sum()) + 0.0  # + 0.0 makes -0.0 positive
    kind, why = _classify_values(values, sizes, occurrences, (width, entropy))
    return Verdict(offset, width, count, kind, why, occurrences.size, round(entropy, 3))


def _classify_values(
    values: NDArray[np.int64],
    sizes: NDArray[np.int64],
    occurrences: NDArray[np.int64],
    measured: tuple[int, float],
) -> tuple[str, str]:
    """Return the kind of a field and why.

    `occurrences` is how often each different value occurs; `measured` is width and entropy.
    """
    width, entropy = measured
    count, different = values.size, occurrences.size
    if different == 1:
        return "constant", f"every packet has {int(values[0])} (0x{int(values[0]):0{2 * width}x})"
    counter = _describe_counter(values, occurrences, width)
    if counter:
        return "counter", counter
    length = _describe_length(values, sizes, width)
    if length:
        return "length", length
    value_count = 256**width
    expected = _estimate_entropy(count, value_count)
    if 0.97 * expected <= entropy <= 1.03 * expected and different > 16:
        why = f"{entropy:.2f} bits of entropy where chance would give {expected:.2f}"
        return "random", why
    if different <= max(16, count // 50) and entropy < 0.7 * expected:
        common = np.sort(occurrences)[::-1][:3] / count
        parts = ", ".join(f"{share:.0%}" for share in common)
        return "enumeration", f"{different} values, the commonest with {parts} of the packets"
    return "mixed", f"{different} values and {entropy:.2f} bits of entropy fit no single pattern"


def _describe_counter(values: NDArray[np.int64], occurrences: NDArray[np.int64], width: int) -> str:
    """Describe how the values count up; empty if they do not."""
    value_count = 256**width
    # Values wrap, so the largest steps up are steps down.
    steps = (np.diff(values) + value_count // 2) % value_count - value_count // 2
    spread = _describe_spread(occurrences)
    small_steps = steps[(steps > 0) & (steps <= _MAX_NEAR_STEP)]
    if small_steps.size:
        common = int(np.bincount(small_steps).argmax())
        share = float((steps == common).mean())
        if share >= 0.9:
            return f"{share:.1%} of the steps from packet to packet are +{common}; {spread}"
    # Late and lost packets disturb single steps, but not the overall direction.
    near_share = float((np.abs(steps) <= _MAX_NEAR_STEP).mean())
    onward_share = float((steps > 0).mean())
    if near_share >= 0.9 and onward_share >= 0.6 and float(steps.mean()) > 0:
        near_text = f"{near_share:.1%} of the steps are within {_MAX_NEAR_STEP} of the last"
        return f"{near_text}, mostly onward; {spread}"
    single_steps = int((steps == 1).sum())
    still_share = float(((steps == 0) | (steps == 1)).mean())
    if still_share >= 0.99 and single_steps >= 3 and single_steps + 1 >= occurrences.size:
        return f"it stays or steps by 1, {single_steps} times: a higher byte of a counter"
    return ""


def _describe_spread(occurrences: NDArray[np.int64]) -> str:
    lowest, highest = int(occurrences.min()), int(occurrences.max())
    if lowest < highest:
        return f"its {occurrences.size} values come {lowest} to {highest} times"
    times = "once" if highest == 1 else f"{highest} times"
    return f"each of its {occurrences.size} values comes {times}"


def _describe_length(values: NDArray[np.int64], sizes: NDArray[np.int64], width: int) -> str:
    """Describe how the values follow the datagram's size; empty if they do not."""
    difference = (sizes - values) % 256**width
    usual = int(np.median(difference))
    share = float((difference == usual).mean())
    # Packets of the most frequent size agree with any constant; the others decide.
    others = sizes != np.bincount(sizes).argmax()
    if others.any() and share >= 0.95 and float((difference[others] == usual).mean()) >= 0.8:
        return f"it is the datagram's size less {usual} in {share:.1%} of the packets"
    return ""


def _estimate_entropy(count: int, value_count: int) -> float:
    """Return the approximate entropy of `count` fair draws from `value_count` values."""
    if count >= 8 * value_count:  # the Miller-Madow approximation
        return math.log2(value_count) - (value_count - 1) / (2 * count * math.log(2))
    # Simulated once with a fixed seed: no formula is good for few draws.
    draws = np.random.default_rng(1).integers(0, min(value_count, 2**62), count)
    _, occurrences = np.unique(draws, return_counts=True)
    shares = occurrences / count
    return float(-(shares * np.log2(shares)).sum())
