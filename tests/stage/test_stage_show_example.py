"""The example shows: nothing but notes, on any computer."""

from pathlib import Path

import pytest

from rote.findings import Severity
from rote.stage.show.check import check_show
from rote.stage.show.file import CueKind
from rote.stage.show_files import read_cast, read_show

FOLDER = Path(__file__).parents[2] / "examples" / "show"


def test_the_example_show_is_fit_to_be_run() -> None:
    show, files = read_show(FOLDER / "two_greet.json")
    cast = read_cast(FOLDER / "cast.json")
    checked = check_show(show, files.take, files.sound_s, cast=cast)
    found = [each for each in checked.findings if each.finding.severity is not Severity.NOTE]
    assert not found
    assert files.sound("chime.wav", 16_000, 1).seconds == pytest.approx(0.5)
    assert set(checked.scores) == {(s, r) for s in ("hello", "bow") for r in ("", "left", "right")}


def test_the_example_of_three_robots_lasts_for_two_minutes_with_sound_light_and_pauses() -> None:
    show, files = read_show(FOLDER / "three_meet.json")
    checked = check_show(
        show, files.take, files.sound_s, cast=read_cast(FOLDER / "three_cast.json")
    )
    assert {each.finding.severity for each in checked.findings} == {Severity.NOTE}
    lengths_s = [
        max(score.duration_s for (name, _), score in checked.scores.items() if name == section.name)
        for section in show.sections
    ]
    assert 90.0 <= sum(lengths_s) <= 120.0, "and the moves to and from rest"
    cues = [cue for section in show.sections for cue in section.cues]
    assert {cue.value for cue in cues if cue.args} == {"/light/1", "/light/2", "/light/3"}
    assert {cue.kind for cue in cues} == {CueKind.SOUND, CueKind.OSC}, "any robot can play it"
    assert [section.hold for section in show.sections] == [False, False, True, False]
