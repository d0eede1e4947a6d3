"""Made playable in its own tempo: the length and the marks stay."""

import json
from pathlib import Path

import numpy as np
import pytest

from rote.cli import main
from rote.errors import BadRequestError
from rote.findings import FindingKind, Severity
from rote.model.g1 import G1_29
from rote.motion.edit.fit import fit
from rote.motion.edit.tempo import MAX_SHIFT_S
from rote.motion.files import load
from rote.motion.track import Array, Mark, Track

ELBOW, SHOULDER = "right_elbow_joint", "right_shoulder_pitch_joint"
FAST = {FindingKind.VELOCITY, FindingKind.ACCELERATION}


def too_fast(track: Track) -> list[str]:
    findings = track.check(contact=False).findings
    return [str(f) for f in findings if f.kind in FAST and f.severity is not Severity.NOTE]


def pose_at(track: Track, at_s: float) -> Array:
    return np.array([np.interp(at_s, track.times_s, each) for each in track.joints_rad.T])


def quick_reach(marks: tuple[Mark, ...] = ()) -> Track:
    """Return 3 s of calm with a reach of 1 rad from 1.4 to 1.6 s, at up to 9.4 rad/s."""
    times_s = np.arange(601) / 200.0
    share = np.clip((times_s - 1.4) / 0.2, 0.0, 1.0)
    reach = share**3 * (10 - 15 * share + 6 * share**2)
    return Track(
        times_s=times_s,
        joints_rad=np.column_stack([reach, 0.2 * np.sin(times_s)]),
        names=(ELBOW, SHOULDER),
        marks=marks,
    )


def dance() -> Track:
    """Return 131 s at 30 frames a second with a mark every half second, too fast in places."""
    rng = np.random.default_rng(7)
    times_s = np.arange(131 * 30 + 1) / 30.0
    names = tuple(name for name in G1_29.taught if "shoulder" in name or "elbow" in name)
    swing = np.zeros((times_s.size, len(names)))
    for hz, wide in ((0.25, 0.3), (1.0, 0.3), (2.0, 0.25)):
        swing += wide * np.sin(2 * np.pi * (hz * times_s[:, None] + rng.random(len(names))))
    swing *= 1.0 + (np.abs(times_s - 60.0) < 10.0)[:, None]
    swing[rng.integers(0, times_s.size, 6), rng.integers(0, len(names), 6)] += 0.8
    joints = {joint.name: joint for joint in G1_29.joints}
    middle = np.array([(joints[name].lower_rad + joints[name].upper_rad) / 2 for name in names])
    beats = tuple(Mark(0.5 * index, f"beat {index}") for index in range(1, 262))
    return Track(times_s=times_s, joints_rad=middle + swing, names=names, marks=beats)


def test_a_dance_of_131_s_is_playable_and_stays_131_s_with_every_mark_in_its_place() -> None:
    track = dance()
    assert too_fast(track)
    after = fit(track)
    assert after.duration_s == pytest.approx(131.0, abs=1e-9)
    assert after.times_s[0] == track.times_s[0]
    assert after.marks == track.marks
    assert too_fast(after) == []
    line = after.history[-1]
    assert "131.00 s and 261 marks kept" in line
    assert "smoothed, by up to" in line
    assert "beyond the limits" not in line
    calm = np.abs(after.times_s - 100.0) < 0.5
    before = np.column_stack(
        [np.interp(after.times_s, track.times_s, each) for each in track.joints_rad.T]
    )
    assert np.abs(after.joints_rad - before)[calm].max() < 0.03, "a calm part was changed"


def test_time_is_taken_from_the_calm_around_a_quick_reach_and_no_mark_moves() -> None:
    marks = (Mark(1.2, "one"), Mark(1.801, "two"))
    track = quick_reach(marks)
    assert too_fast(track)
    after = fit(track)
    assert too_fast(after) == []
    assert (after.duration_s, after.marks) == (track.duration_s, marks)
    for mark in marks:
        assert pose_at(after, mark.time_s) == pytest.approx(pose_at(track, mark.time_s), abs=2e-3)
    assert after.joints_rad[-1] == pytest.approx(track.joints_rad[-1], abs=1e-9)
    assert "time moved by up to" in after.history[-1]
    half_s = [
        np.interp(0.25, each.joints_rad[200:401, 0], each.times_s[200:401])
        for each in (track, after)
    ]
    assert 0.005 < half_s[0] - half_s[1] <= MAX_SHIFT_S + 0.01


def test_a_spike_is_smoothed_and_the_rest_stays() -> None:
    times_s = np.arange(601) / 200.0
    values = 0.5 + 0.3 * np.sin(times_s)
    values[300] += 1.0
    after = fit(Track(times_s=times_s, joints_rad=values[:, None], names=(ELBOW,)), keep_tempo=True)
    calm = 0.5 + 0.3 * np.sin(after.times_s)
    off = np.abs(after.joints_rad[:, 0] - calm)
    assert off.max() < 0.2
    assert off[np.abs(after.times_s - 1.5) > 0.6].max() < 1e-6
    assert too_fast(after) == []


def test_what_cannot_be_met_in_the_tempo_is_reported_with_its_size_and_moment() -> None:
    times_s = np.arange(601) / 200.0
    values = np.where((times_s > 1.0) & (times_s < 2.0), 2.6, -3.0)
    after = fit(
        Track(times_s=times_s, joints_rad=values[:, None], names=(SHOULDER,)), keep_tempo=True
    )
    assert after.duration_s == 3.0
    (finding,) = [f for f in after.check(contact=False).errors if f.kind is FindingKind.VELOCITY]
    assert f"{SHOULDER} {finding.value:.1f} of 10.0 rad/s at" in after.history[-1]
    assert "beyond the limits in this tempo" in after.history[-1]


def test_either_way_can_be_chosen_and_marks_decide_otherwise() -> None:
    plain, marked = quick_reach(), quick_reach((Mark(1.0, "beat"),))
    assert fit(plain).duration_s > 3.0
    assert fit(plain, keep_tempo=True).duration_s == 3.0
    assert fit(marked).duration_s == 3.0
    assert fit(marked, slow_down=True).duration_s > 3.0
    with pytest.raises(BadRequestError, match="tempo"):
        fit(plain, keep_tempo=True, slow_down=True)


def test_the_command_line_has_an_option_for_each_way(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out_file = str(tmp_path / "in.npz"), str(tmp_path / "out.npz")
    quick_reach().save(source)
    assert main(["motion", "fit", source, out_file, "--keep-tempo", "--json"]) == 0
    assert "3.00 s and 0 marks kept" in json.loads(capsys.readouterr().out)["done"]
    assert load(out_file).duration_s == 3.0
    code = main(["motion", "fit", source, out_file, "--keep-tempo", "--slow-down", "--overwrite"])
    assert code == 2
    assert "Choose one" in capsys.readouterr().err
