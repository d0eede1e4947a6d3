"""Moments at other times, marks on a beat, and the parts of a motion."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.motion.edit.tempo import is_too_fast
from rote.motion.edit.warp import (
    TEMPO_FACTOR,
    beat,
    find_key_poses_s,
    keep_part,
    segments,
    split_at_marks,
    warp,
)
from rote.motion.interpolate import sample
from rote.motion.track import Array, Mark, Track
from rote.sim.hands import SCRIPTS
from scripted_tracks import make_scripted_track


def scripted(script: str = "wave", seconds: float = 6.0) -> Track:
    return make_scripted_track(script, seconds, start_s=5.0)


def pose_at(track: Track, since_s: float) -> Array:
    at = np.array([track.times_s[0] + since_s])
    return np.asarray(sample(track.times_s, track.joints_rad, at, Interpolation.CUBIC)[0])


def marked(track: Track, *since_s: float) -> Track:
    marks = tuple(Mark(float(track.times_s[0]) + each, f"at {each:g}") for each in since_s)
    return replace(track, marks=marks)


# ---- moments ------------------------------------------------------------------------------------


def test_a_moved_moment_is_reached_at_its_new_time() -> None:
    track = marked(scripted(), 2.0)
    result = warp(track, [(2.0, 2.4), (4.0, 3.9)])
    assert pose_at(result, 2.4) == pytest.approx(pose_at(track, 2.0), abs=0.01)
    assert pose_at(result, 3.9) == pytest.approx(pose_at(track, 4.0), abs=0.01)
    assert result.duration_s == pytest.approx(track.duration_s)
    assert result.marks[0].time_s - result.times_s[0] == pytest.approx(2.4, abs=0.011)
    assert "2.00 s to 2.40 s" in result.history[-1]


def test_the_path_of_the_joints_stays() -> None:
    track = scripted()
    result = warp(track, [(3.0, 3.5)])
    far = np.abs(result.joints_rad[:, None, :] - track.joints_rad[None]).max(axis=2).min(axis=1)
    assert far.max() < 0.02


def test_the_end_can_be_moved_too() -> None:
    result = warp(scripted(), [(6.0, 9.0)])
    assert result.duration_s == pytest.approx(9.0)


def test_a_result_that_would_be_too_fast_is_brought_within_the_limits_or_says_where() -> None:
    result = warp(scripted(), [(0.9, 0.15)])
    assert not is_too_fast(result) or "beyond the limits" in result.history[-1]


def test_the_history_says_where_the_tempo_is_far_from_the_recorded_one() -> None:
    result = warp(scripted("bow"), [(2.0, 2.0), (3.0, 4.0), (4.0, 4.4)])
    line = result.history[-1]
    slower, faster = (
        re.search(r"(0\.\d+) times the recorded tempo from (\S+) s to (\S+) s", line),
        re.search(r"([2-9]\S*) times the recorded tempo from (\S+) s to (\S+) s", line),
    )
    assert slower is not None
    assert faster is not None
    assert float(slower[1]) < 1 / TEMPO_FACTOR
    assert float(faster[1]) > TEMPO_FACTOR
    assert 2.0 <= float(slower[2]) < float(slower[3]) <= float(faster[2]) + 0.1
    assert 4.4 <= float(faster[3]) <= 4.6
    assert "recorded tempo" not in warp(scripted("bow"), [(3.0, 3.2)]).history[-1]


def test_the_history_says_that_limits_of_unknown_joints_are_not_checked() -> None:
    tail = Track(times_s=np.arange(101) / 50, joints_rad=np.zeros((101, 1)), names=("tail",))
    assert "those of tail are not known" in warp(tail, [(1.0, 1.2)]).history[-1]


@pytest.mark.parametrize(
    "moves", [[(2.0, 4.0), (3.0, 3.0)], [(2.0, -1.0)], [(9.0, 3.0)], [(2.0, 6.5)], [(2.0, 0.001)]]
)
def test_impossible_moves_are_refused(moves: list[tuple[float, float]]) -> None:
    with pytest.raises(BadRequestError):
        warp(scripted(), moves)


@given(st.floats(0.5, 5.5), st.floats(0.1, 5.9))
def test_time_never_runs_backwards(old_s: float, new_s: float) -> None:
    track = marked(scripted(), 1.0, 2.0, 3.0, 4.0, 5.0)
    result = warp(track, [(old_s, new_s)])
    order = [mark.label for mark in result.marks]
    assert order == [mark.label for mark in track.marks]
    assert np.isfinite(result.joints_rad).all()


# ---- on the beat --------------------------------------------------------------------------------


@pytest.mark.parametrize("bpm", [60.0, 100.0, 140.0])
def test_marks_are_on_the_beat(bpm: float) -> None:
    track = marked(scripted("bow"), 0.5, 1.6, 3.1, 4.4)
    result = beat(track, bpm)
    step_s = 60.0 / bpm
    since = np.array([mark.time_s for mark in result.marks]) - track.marks[0].time_s
    assert np.abs(since / step_s - np.round(since / step_s)).max() < 0.02 / step_s
    for old, new in zip(track.marks, result.marks, strict=True):
        assert abs(new.time_s - old.time_s) <= step_s / 2 + 0.011


def test_half_beats_are_nearer() -> None:
    track = marked(scripted("bow"), 0.5, 1.75, 3.25)
    half = beat(track, 60.0, per_beat=2.0)
    assert [mark.time_s - 5.5 for mark in half.marks] == pytest.approx([0.0, 1.0, 3.0], abs=0.02)


def test_a_part_that_would_be_too_fast_gets_more_beats_and_the_history_says_so() -> None:
    track = scripted("bow")
    quick = warp(marked(track, 0.1, 1.2, 2.0), [])
    result = beat(quick, 600.0)
    times_s = [mark.time_s for mark in result.marks]
    assert times_s == sorted(times_s)
    faster = beat(marked(track.speed(6.0), 0.01, 0.16, 0.3), 1000.0)
    assert "takes" in faster.history[-1] or not is_too_fast(faster)


def test_a_beat_says_where_the_tempo_is_far_from_the_recorded_one() -> None:
    track = marked(scripted("bow"), 0.5, 1.0, 1.5, 3.0)
    assert "times the recorded tempo from" in beat(track, 40.0).history[-1]
    assert "recorded tempo" not in beat(track, 120.0).history[-1]


def test_a_beat_needs_two_marks() -> None:
    with pytest.raises(BadRequestError, match="1 mark;"):
        beat(marked(scripted(), 1.0), 120.0)
    with pytest.raises(BadRequestError, match="0 marks;"):
        beat(scripted(), 120.0)


# ---- parts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seconds", [3.0, 6.0, 10.0])
@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_key_poses_are_those_of_the_script(script: str, seconds: float) -> None:
    truth = script_moments_s(script, seconds)
    found = find_key_poses_s(scripted(script, seconds))
    hits = sum(min(abs(each - label) for label in truth) < 0.12 for each in found)
    assert 2 * hits / (len(found) + len(truth)) >= 0.9


def script_moments_s(script: str, seconds: float) -> list[float]:
    """Return the labels: the script goes out, swings a few times, and comes back."""
    out_s = min(0.9, 0.3 * seconds)
    swings = max(1, round((seconds - 2 * out_s) / (SCRIPTS[script].beat_s / 2)))
    return [0.0, *np.linspace(out_s, seconds - out_s, swings + 1).tolist(), seconds]


def test_a_pause_divides_a_motion_and_its_parts_can_be_taken_out() -> None:
    first, second = scripted("bow", 3.0), scripted("wave", 3.0)
    both = first.concatenate(second, bridge_s=0.5)
    parts = split_at_marks(segments(both))
    assert [label for label, _ in parts][:2] == ["part 1", "part 2"]
    assert sum(part.duration_s for _, part in parts) == pytest.approx(both.duration_s, abs=0.2)


def test_one_part_is_cut_out_by_its_label() -> None:
    track = marked(scripted("bow"), 1.0, 2.5, 4.0)
    part = keep_part(track, "at 2.5")
    assert part.times_s[[0, -1]] == pytest.approx([7.5, 9.0])
    assert part.history[-1] == "part: at 2.5"
    assert keep_part(track, "beginning").duration_s == pytest.approx(1.0)
    assert keep_part(track, "at 4").duration_s == pytest.approx(2.0)
    with pytest.raises(BadRequestError, match="no part 'at 9'") as refused:
        keep_part(track, "at 9")
    assert "beginning, at 1, at 2.5, at 4" in str(refused.value.remedy)
    with pytest.raises(BadRequestError) as refused:
        keep_part(scripted(), "part 1")
    assert "segments" in str(refused.value.remedy)


def test_marks_that_are_there_stay() -> None:
    track = marked(scripted("bow"), 0.0)
    result = segments(track)
    assert track.marks[0] in result.marks
    assert len(result.marks) > 3


def test_a_motion_without_movement_is_one_part() -> None:
    still = Track(times_s=np.arange(100) / 50, joints_rad=np.zeros((100, 1)), names=("a",))
    assert [mark.label for mark in segments(still).marks] == ["part 1"]
