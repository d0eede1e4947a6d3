"""How a bad network is asked for, and described."""

import pytest

from rote.errors import BadRequestError
from rote.transport.impair import Impairment, describe_impairment, parse_seconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [("50ms", 0.05), ("3.2s", 3.2), ("3", 3.0), (" 1.5 s ", 1.5), (".5", 0.5), ("0", 0.0)],
)
def test_a_duration_is_read_with_its_unit(text: str, wanted: float) -> None:
    assert parse_seconds(text) == pytest.approx(wanted)


@pytest.mark.parametrize("text", ["", "s", "-1s", "1m", "1e3", "1 2", "nan", "1,5s", "5 minutes"])
def test_what_is_not_a_duration_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        parse_seconds(text)
    assert repr(text) in str(caught.value)
    assert "50ms" in caught.value.remedy


def test_a_good_network_needs_no_words() -> None:
    assert describe_impairment(Impairment(seed=5)) == ""


def test_a_bad_network_is_described_by_all_it_does() -> None:
    bad = Impairment(
        loss=0.1, duplicate=0.02, reorder=0.05, corrupt=0.001, delay_s=0.05, cut_after_s=3.2
    )
    assert describe_impairment(bad) == (
        "10 % lost, 2 % duplicated, 5 % reordered, 0.1 % corrupted, 50 ms late, cut off after 3.2 s"
    )


def test_a_network_cut_at_once_is_worth_a_word() -> None:
    assert describe_impairment(Impairment(cut_after_s=0.0)) == "cut off after 0 s"
