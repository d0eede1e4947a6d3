"""The example show: nothing but notes, on any computer."""

from pathlib import Path

import pytest

from rote.findings import Severity
from rote.stage.show.check import check_show
from rote.stage.stage import read_cast, read_show

FOLDER = Path(__file__).parents[2] / "examples" / "show"


def test_the_example_show_is_fit_to_be_run() -> None:
    show, files = read_show(FOLDER / "two_greet.json")
    cast = read_cast(FOLDER / "cast.json")
    checked = check_show(show, files.take, files.sound_s, cast=cast)
    found = [each for each in checked.findings if each.finding.severity is not Severity.NOTE]
    assert not found
    assert files.sound("chime.wav", 16_000, 1).seconds == pytest.approx(0.5)
    assert set(checked.scores) == {(s, r) for s in ("hello", "bow") for r in ("", "left", "right")}
