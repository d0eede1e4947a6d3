"""The counter test: what a byte is, by statistics."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.capture.judge.field_statistics import judge

RNG = np.random.default_rng(5)
COUNT = 1200


def heads(column: np.ndarray, width: int = 1) -> np.ndarray:
    """Return packets with a field of `width` at offset 3, and noise around it."""
    table = RNG.integers(0, 256, (column.size, 12), np.uint8)
    for place in range(width):
        table[:, 3 + place] = column >> 8 * (width - 1 - place) & 0xFF
    return table


def verdict(column: np.ndarray, sizes: np.ndarray | None = None, width: int = 1) -> str:
    sizes = np.full(column.size, 57) if sizes is None else sizes
    return judge(heads(column, width), sizes, 3, width).kind


COUNTED = np.arange(COUNT) + 265


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (COUNTED & 0xFF, "counter"),
        (COUNTED >> 8, "counter"),
        (COUNTED * 3 & 0xFF, "counter"),
        (np.full(COUNT, 0x1A), "constant"),
        (RNG.integers(0, 256, COUNT), "random"),
        (RNG.choice([9, 10, 13, 26, 43, 65], COUNT), "enumeration"),
        (RNG.choice([0, 1], COUNT), "enumeration"),
    ],
)
def test_a_field_is_called_what_it_is(column: np.ndarray, kind: str) -> None:
    assert verdict(column) == kind


def test_a_counter_with_lost_and_late_packets_is_still_one() -> None:
    numbers = COUNTED[RNG.random(COUNT) > 0.05]
    for at in range(0, numbers.size - 1, 9):
        numbers[[at, at + 1]] = numbers[[at + 1, at]]
    assert verdict(numbers & 0xFF) == "counter"


def test_a_wide_counter_is_one_and_wide_noise_is_noise() -> None:
    assert verdict(COUNTED + 250 * 256, width=4) == "counter"
    assert verdict(RNG.integers(0, 2**32, COUNT), width=4) == "random"


def test_a_length_goes_with_the_size() -> None:
    sizes = RNG.choice([57, 161, 197, 233, 500], COUNT, p=[0.9, 0.04, 0.03, 0.02, 0.01])
    assert verdict(sizes - 13, sizes, width=2) == "length"
    assert verdict(sizes - 13 & 0xFF, sizes) == "length"


def test_a_choice_is_not_a_length_because_most_packets_have_one_size() -> None:
    sizes = np.where(RNG.random(COUNT) < 0.98, 57, 161)
    assert verdict(RNG.choice([5, 44], COUNT, p=[0.005, 0.995]), sizes) == "enumeration"


def test_few_packets_are_not_judged() -> None:
    found = judge(heads(np.arange(40)), np.array([57] * 10 + [2] * 30), 3)
    assert found.kind == "too few"
    assert "10 packets" in found.why


def test_the_reason_has_numbers_in_it() -> None:
    found = judge(heads(COUNTED & 0xFF), np.full(COUNT, 57), 3)
    assert "100.0% of the steps" in found.why
    assert found.values == 256
    assert found.document()["kind"] == "counter"


@given(st.lists(st.integers(0, 255), min_size=16, max_size=200), st.integers(1, 200))
def test_any_bytes_get_some_verdict(values: list[int], size: int) -> None:
    found = judge(heads(np.array(values)), np.full(len(values), size), 3)
    assert found.kind
    assert found.why
