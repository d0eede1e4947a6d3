"""Marks are added, changed and removed like every other edit."""

from pathlib import Path

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.motion import files
from rote.motion.edit.table import EDITS
from rote.motion.track import Mark, Track


def track(*marks: Mark) -> Track:
    times_s = 5.0 + np.arange(201) / 100
    return Track(
        times_s=times_s, joints_rad=times_s[:, None] / 10, names=("left_elbow_joint",), marks=marks
    )


def done(old: Track, edit: str, **values: object) -> list[tuple[float, str]]:
    new = EDITS[edit].apply([old], values)
    assert len(new.history) == len(old.history) + 1
    return [(round(mark.time_s - 5.0, 3), mark.label) for mark in new.marks]


def test_a_mark_is_added_at_a_time_from_the_beginning() -> None:
    assert done(track(Mark(6.5, "b")), "mark", time_s=0.5, label=" a ") == [(0.5, "a"), (1.5, "b")]


def test_a_mark_is_renamed_moved_and_removed_and_the_others_stay() -> None:
    old = track(Mark(5.5, "a"), Mark(6.5, "b"))
    assert done(old, "change_mark", time_s=0.5, label="c") == [(0.5, "c"), (1.5, "b")]
    assert done(old, "change_mark", time_s=0.51, to_s=1.8) == [(1.5, "b"), (1.8, "a")]
    assert done(old, "remove_mark", time_s=1.5) == [(0.5, "a")]


def test_of_two_equal_marks_one_is_removed() -> None:
    assert done(track(Mark(5.5, "a"), Mark(5.5, "a")), "remove_mark", time_s=0.5) == [(0.5, "a")]


def test_a_mark_that_is_not_there_is_refused_with_those_that_are() -> None:
    asked: tuple[tuple[str, dict[str, str]], ...] = (
        ("remove_mark", {}),
        ("change_mark", {"label": "x"}),
    )
    for edit, values in asked:
        with pytest.raises(BadRequestError, match=r"no mark at 1\.00 s") as raised:
            done(track(Mark(5.5, "clap")), edit, time_s=1.0, **values)
        assert "clap at 0.50 s" in raised.value.remedy


@pytest.mark.parametrize("label", ["", "   ", "x" * 121, "two\nlines"])
def test_a_label_is_one_line_of_a_few_words(label: str) -> None:
    with pytest.raises(BadRequestError, match="the label"):
        done(track(), "mark", time_s=0.5, label=label)


def test_a_mark_outside_of_the_motion_is_refused() -> None:
    with pytest.raises(BadRequestError, match=r"the time of the mark is 2\.5 s"):
        done(track(), "mark", time_s=2.5, label="late")
    with pytest.raises(BadRequestError, match="no change to the mark"):
        done(track(Mark(5.5, "a")), "change_mark", time_s=0.5)


def test_marks_are_kept_in_a_file(tmp_path: Path) -> None:
    new = EDITS["mark"].apply([track()], {"time_s": 0.25, "label": "go"})
    files.save(new, tmp_path / "take.mcap")
    (mark,) = files.load(tmp_path / "take.mcap").marks
    assert (round(mark.time_s, 3), mark.label) == (5.25, "go")
