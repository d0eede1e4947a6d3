"""A track is sound or does not exist, and cannot be changed."""

import sys
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, MissingExtraError
from rote.motion.track import Array, Mark, Track

NAMES = ("left_elbow_joint", "right_elbow_joint")


def track_at(*times_s: float) -> Track:
    return Track(times_s=np.array(times_s), joints_rad=np.zeros((len(times_s), 2)), names=NAMES)


def test_a_track_keeps_what_it_was_given() -> None:
    joints: Array = np.array([[0.1, 0.2], [0.3, 0.4]])
    track = Track(times_s=np.array([5.0, 6.0]), joints_rad=joints, names=NAMES, source="a test")
    assert track.times_s.tolist() == [5.0, 6.0]
    assert track.joints_rad.tolist() == joints.tolist()
    assert (track.names, track.variant, track.source) == (NAMES, "g1-29", "a test")


@pytest.mark.parametrize("shape", [(2, 2), (4, 2), (3, 1), (3, 3), (3,), (6,), (3, 2, 1)])
def test_joints_of_another_shape_than_times_and_names_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(BadRequestError, match="3 times and 2 names"):
        Track(times_s=np.arange(3.0), joints_rad=np.zeros(shape), names=NAMES)


def test_a_track_without_samples_is_refused() -> None:
    with pytest.raises(BadRequestError, match="at least one sample"):
        track_at()


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_time_that_is_not_a_number_is_refused(bad: float) -> None:
    with pytest.raises(BadRequestError, match="not a number"):
        track_at(0.0, bad, 2.0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_an_angle_that_is_not_a_number_is_refused(bad: float) -> None:
    joints = np.zeros((3, 2))
    joints[2, 1] = bad
    with pytest.raises(BadRequestError, match="not a number"):
        Track(times_s=np.arange(3.0), joints_rad=joints, names=NAMES)


@pytest.mark.parametrize("times_s", [(0.0, 1.0, 1.0, 2.0), (0.0, 1.0, 0.5, 2.0)])
def test_times_that_do_not_increase_are_refused_by_their_row(times_s: tuple[float, ...]) -> None:
    with pytest.raises(BadRequestError, match="row 2 "):
        track_at(*times_s)


def test_the_arrays_of_a_track_cannot_be_written_to() -> None:
    track = track_at(0.0, 1.0)
    with pytest.raises(ValueError, match="read-only"):
        track.times_s[0] = 9.0
    with pytest.raises(ValueError, match="read-only"):
        track.joints_rad[0, 0] = 9.0


def test_the_fields_of_a_track_cannot_be_replaced() -> None:
    track = track_at(0.0, 1.0)
    with pytest.raises(FrozenInstanceError):
        track.source = "another"  # type: ignore[misc]  # that is the point of the test


def test_a_track_does_not_follow_the_arrays_it_was_made_from() -> None:
    times_s, joints = np.array([0.0, 1.0]), np.zeros((2, 2))
    track = Track(times_s=times_s, joints_rad=joints, names=NAMES)
    times_s[0] = -7.0
    joints[:] = 7.0
    assert track.times_s.tolist() == [0.0, 1.0]
    assert not track.joints_rad.any()
    assert times_s.flags.writeable, "the caller's own array must stay the caller's"


def test_a_track_of_one_sample_has_no_duration_rate_or_gap() -> None:
    track = track_at(4.0)
    assert len(track) == 1
    assert (track.duration_s, track.rate_hz, track.longest_gap_s) == (0.0, 0.0, 0.0)


def test_rate_and_longest_gap_are_measured_from_the_times() -> None:
    track = track_at(10.0, 10.1, 10.2, 10.7, 11.0)
    assert track.duration_s == pytest.approx(1.0)
    assert track.rate_hz == pytest.approx(4.0)
    assert track.longest_gap_s == pytest.approx(0.5)


@given(st.integers(2, 300), st.floats(1.0, 1000.0), st.floats(-1e6, 1e6))
def test_an_even_track_has_the_rate_it_was_sampled_at(
    count: int, rate_hz: float, begin_s: float
) -> None:
    track = track_at(*(begin_s + np.arange(count) / rate_hz))
    assert track.rate_hz == pytest.approx(rate_hz, rel=1e-4)
    assert track.longest_gap_s == pytest.approx(1 / rate_hz, rel=1e-4)
    assert track.duration_s == pytest.approx((count - 1) / rate_hz, rel=1e-4)


# ---- marks and history --------------------------------------------------------------------------


def marked(*times_s: float) -> Track:
    marks = tuple(Mark(time_s, f"at {time_s}") for time_s in times_s)
    return Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 2)), names=NAMES, marks=marks)


def test_a_track_has_neither_marks_nor_history_unless_given() -> None:
    track = track_at(0.0, 1.0)
    assert (track.marks, track.history) == ((), ())


def test_marks_are_kept_in_the_order_of_their_times() -> None:
    assert [mark.time_s for mark in marked(2.0, 0.5, 1.0).marks] == [0.5, 1.0, 2.0]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_mark_that_is_at_no_time_is_refused_by_its_words(bad: float) -> None:
    with pytest.raises(BadRequestError, match=f"'at {bad}'"):
        marked(1.0, bad)


def test_a_mark_cannot_be_changed() -> None:
    mark = Mark(1.0, "clap")
    with pytest.raises(FrozenInstanceError):
        mark.label = "bow"  # type: ignore[misc]  # that is the point of the test


def test_an_edited_track_has_one_line_more_and_leaves_the_first_alone() -> None:
    track = marked(1.0)
    edited = track.edited("once", joints_rad=np.ones((3, 2))).edited("twice", marks=())
    assert (track.history, edited.history) == ((), ("once", "twice"))
    assert not track.joints_rad.any()
    assert edited.joints_rad.all()
    assert (len(track.marks), len(edited.marks)) == (1, 0)
    assert edited.names == track.names
    assert not edited.joints_rad.flags.writeable


def test_a_track_becomes_a_table_of_pandas() -> None:
    joints: Array = np.array([[0.1, 0.2], [0.3, 0.4]])
    table = Track(times_s=np.array([5.0, 6.0]), joints_rad=joints, names=NAMES).to_pandas()
    assert list(table.columns) == list(NAMES)
    assert table.index.name == "time_s"
    assert table.loc[6.0, "left_elbow_joint"] == 0.3
    table.loc[6.0, "left_elbow_joint"] = 1.0  # a table of one's own
    assert joints[1, 0] == 0.3


def test_a_table_without_pandas_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(MissingExtraError) as caught:
        track_at(0.0, 1.0).to_pandas()
    assert "[pandas]" in caught.value.remedy
