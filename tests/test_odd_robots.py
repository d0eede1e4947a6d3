"""Every oddity of firmware that the simulated robot can have, met by the client on each wire."""

from pathlib import Path

import pytest

from odd_robots import cases, documented, meet, title

DOCUMENT = Path(__file__).parents[1] / "docs" / "reliability.md"
CASES = cases()
ODDITIES = list(dict.fromkeys(quirks for quirks, _ in CASES))


def today(quirks: tuple[str, ...], wire: str) -> bool:
    """Whether this one is met in every run: each on one wire; `make soak` meets them on all."""
    wires = [each for others, each in CASES if others == quirks]
    return wire == wires[ODDITIES.index(quirks) % len(wires)]


@pytest.mark.parametrize(
    ("quirks", "wire"),
    [
        pytest.param(
            quirks,
            wire,
            id=f"{wire}-{'+'.join(quirks)}",
            marks=() if today(quirks, wire) else pytest.mark.soak,
        )
        for quirks, wire in CASES
    ],
)
def test_an_odd_robot_ends_in_no_false_success_no_hang_and_no_lost_take(
    quirks: tuple[str, ...], wire: str
) -> None:
    told = documented(DOCUMENT.read_text(encoding="utf-8"))
    assert meet(quirks, wire).words == told.get((title(quirks), wire)), (
        "another outcome than docs/reliability.md has: python scripts/odd_robots.py"
    )


def test_the_table_names_no_robot_that_there_is_not() -> None:
    told = documented(DOCUMENT.read_text(encoding="utf-8"))
    assert set(told) == {(title(quirks), wire) for quirks, wire in CASES}
