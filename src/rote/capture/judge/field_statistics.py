"""Is this byte a command? Statistics over a field of many packets give the answer.

A field that is presented as a "command id" can be a counter, a constant, a length, noise, or really
a choice among a few values. Each leaves a different trace: a counter steps by one, a length follows
the size, noise uses all values equally, a choice repeats a few.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_NEAR = 8
MIN = 16
"""With fewer packets than this, there is no verdict."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a field is, by statistics."""

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


def field_values(heads: NDArray[np.uint8], offset: int, width: int) -> NDArray[np.int64]:
    """Return the big-endian number that each row has at `offset`."""
    values = np.zeros(heads.shape[0], np.int64)
    for column in range(offset, offset + width):
        values = values << 8 | heads[:, column]
    return values


def judge(
    heads: NDArray[np.uint8], sizes: NDArray[np.int64], offset: int, width: int = 1
) -> Verdict:
    """Return what the field is in these packets, which are of one direction and in their order."""
    reaches = sizes >= offset + width
    values = field_values(heads[reaches], offset, width)
    sizes = sizes[reaches]
    count = values.size
    if count < MIN:
        why = f"only {count} packets reach that far; {MIN} are needed"
        return Verdict(offset, width, count, "too few", why)
    _, occurrences = np.unique(values, return_counts=True)
    shares = occurrences / count
    entropy = float(-(shares * np.log2(shares)).sum()) + 0.0
    kind, why = _classify_values(values, sizes, occurrences, (width, entropy))
    return Verdict(offset, width, count, kind, why, occurrences.size, round(entropy, 3))


def _classify_values(
    values: NDArray[np.int64],
    sizes: NDArray[np.int64],
    occurrences: NDArray[np.int64],
    measured: tuple[int, float],
) -> tuple[str, str]:
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
    expected = _expected_entropy(count, value_count)
    if 0.97 * expected <= entropy <= 1.03 * expected and different > 16:
        why = f"{entropy:.2f} bits of entropy where chance would give {expected:.2f}"
        return "random", why
    if different <= max(16, count // 50) and entropy < 0.7 * expected:
        common = np.sort(occurrences)[::-1][:3] / count
        parts = ", ".join(f"{share:.0%}" for share in common)
        return "enumeration", f"{different} values, the commonest with {parts} of the packets"
    return "mixed", f"{different} values and {entropy:.2f} bits of entropy fit no single pattern"


def _describe_counter(values: NDArray[np.int64], occurrences: NDArray[np.int64], width: int) -> str:
    """Describe how the values count; empty if they do not."""
    value_count = 256**width
    steps = (np.diff(values) + value_count // 2) % value_count - value_count // 2
    spread = _describe_spread(occurrences)
    small = steps[(steps > 0) & (steps <= _NEAR)]
    if small.size:
        common = int(np.bincount(small).argmax())
        share = float((steps == common).mean())
        if share >= 0.9:
            return f"{share:.1%} of the steps from packet to packet are +{common}; {spread}"
    # Late and lost packets disturb single steps, but not the overall direction.
    near = float((np.abs(steps) <= _NEAR).mean())
    onward = float((steps > 0).mean())
    if near >= 0.9 and onward >= 0.6 and float(steps.mean()) > 0:
        return f"{near:.1%} of the steps are within {_NEAR} of the last, mostly onward; {spread}"
    turns = int((steps == 1).sum())
    still = float(((steps == 0) | (steps == 1)).mean())
    if still >= 0.99 and turns >= 3 and turns + 1 >= occurrences.size:
        return f"it stands still or steps by 1, {turns} times: a higher byte of a counter"
    return ""


def _describe_spread(occurrences: NDArray[np.int64]) -> str:
    least, most = int(occurrences.min()), int(occurrences.max())
    if least < most:
        return f"its {occurrences.size} values come {least} to {most} times"
    return f"each of its {occurrences.size} values comes {'once' if most == 1 else f'{most} times'}"


def _describe_length(values: NDArray[np.int64], sizes: NDArray[np.int64], width: int) -> str:
    rest = (sizes - values) % 256**width
    usual = int(np.median(rest))
    share = float((rest == usual).mean())
    # Packets of the commonest size agree with any constant; the others decide.
    others = sizes != np.bincount(sizes).argmax()
    if others.any() and share >= 0.95 and float((rest[others] == usual).mean()) >= 0.8:
        return f"it is the datagram's size less {usual} in {share:.1%} of the packets"
    return ""


def _expected_entropy(count: int, value_count: int) -> float:
    """Return the approximate entropy of `count` fair draws from `value_count` values."""
    if count >= 8 * value_count:
        return math.log2(value_count) - (value_count - 1) / (2 * count * math.log(2))
    # Simulated once with a fixed seed: no formula is good for few draws.
    draws = np.random.default_rng(1).integers(0, min(value_count, 2**62), count)
    _, occurrences = np.unique(draws, return_counts=True)
    shares = occurrences / count
    return float(-(shares * np.log2(shares)).sum())
