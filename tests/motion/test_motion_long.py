"""Long takes: whatever is written is read again, and everything can be done to it.

`make soak` runs ten minutes and an hour of 29 joints at 500 Hz; `make test` a bounded sample.
"""

import os
from pathlib import Path

import numpy as np
import pytest

from motion.motion_tracks import assert_same
from rote.errors import BadRequestError
from rote.model.g1 import G1_29, G1_REST_RAD
from rote.motion import files
from rote.motion.compare import average, compare
from rote.motion.edit import align
from rote.motion.edit import retime as retime_module
from rote.motion.edit.retime import retime
from rote.motion.edit.spline import find_spline_peaks
from rote.motion.files import disk, metadata
from rote.motion.files.mcap_file import load_mcap, read_summary, recover
from rote.motion.files.take_writer import TakeWriter
from rote.motion.track import Mark, Track

RATE_HZ = 500.0


def long_take(seconds: float, joints: int = 29, *, shift_s: float = 0.0) -> Track:
    """Return joints that all swing, each at its own pace, with what a sensor adds."""
    times_s = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    chance = np.random.default_rng(round(1000 * shift_s) + 1)
    values = chance.normal(0.0, 5e-4, (times_s.size, joints))
    for column, hz in enumerate(np.linspace(0.1, 0.4, joints)):
        swing = 0.1 * np.sin(2 * np.pi * hz * (times_s + shift_s * np.sin(times_s / 7)))
        values[:, column] += G1_REST_RAD[column] + swing
    values.setflags(write=False)
    return Track(
        times_s=times_s,
        joints_rad=values,
        names=G1_29.names[:joints],
        source="teach long over udp",
        marks=(Mark(seconds / 2, "the middle"),),
    )


def record(path: Path, track: Track) -> Path:
    """Write a take as it is written while somebody teaches."""
    with TakeWriter(path, track.names, variant=track.variant, source=track.source) as writer:
        for time_s, row in zip(track.times_s.tolist(), track.joints_rad, strict=True):
            writer.add(time_s, row.tolist())
        return writer.finish(marks=track.marks)


def test_a_take_that_unpacks_to_more_than_fits_in_memory_at_once_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = long_take(20.0, joints=3)
    monkeypatch.setattr(disk, "MAX_BYTES", 300_000)
    files.save(track, tmp_path / "saved.mcap")
    record(tmp_path / "taught.mcap", track)
    for path in sorted(tmp_path.iterdir()):
        assert path.stat().st_size > disk.MAX_BYTES
        assert_same(files.load(path), track)
        assert_same(recover(path), track)
        assert read_summary(path).samples == len(track)


def test_a_long_take_that_was_cut_off_is_recovered_to_its_last_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = long_take(20.0, joints=3)
    path = record(tmp_path / "taught.mcap", track)
    os.truncate(path, path.stat().st_size - 100)
    monkeypatch.setattr(disk, "MAX_BYTES", 300_000)
    found = recover(path)
    assert len(found) == len(track)
    assert np.array_equal(found.joints_rad, track.joints_rad)
    os.truncate(path, path.stat().st_size * 3 // 4)
    found = recover(path)
    assert 0.7 * len(track) < len(found) < 0.8 * len(track)
    assert np.array_equal(found.joints_rad, track.joints_rad[: len(found)])


def test_other_formats_refuse_to_write_what_they_could_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = long_take(20.0, joints=3)
    still = Track(times_s=track.times_s, joints_rad=np.zeros((len(track), 3)), names=track.names)
    monkeypatch.setattr(disk, "MAX_BYTES", 200_000)
    for suffix in (".npz", ".json", ".csv"):
        # Zeros are small in an archive, and large when they are unpacked.
        with pytest.raises(BadRequestError, match="can be read again") as refused:
            files.save(still, tmp_path / f"take{suffix}")
        assert ".mcap" in refused.value.remedy
    assert list(tmp_path.iterdir()) == []


def test_many_joints_have_fewer_samples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    track = long_take(2.0, joints=3)
    files.save(track, tmp_path / "take.mcap")
    monkeypatch.setattr(metadata, "MAX_VALUES", 4000)
    with pytest.raises(BadRequestError, match="more than 1,000 samples"):
        load_mcap(tmp_path / "take.mcap")
    with pytest.raises(BadRequestError, match="more than 1,000 samples"):
        files.save(track, tmp_path / "other.mcap")


def assert_equal(found: Track, wanted: Track) -> None:
    """Check what `assert_same` does, without a list of fifty million numbers."""
    assert np.array_equal(found.times_s, wanted.times_s)
    assert np.array_equal(found.joints_rad, wanted.joints_rad)
    assert (found.names, found.source, found.marks) == (wanted.names, wanted.source, wanted.marks)


@pytest.mark.soak
@pytest.mark.parametrize("minutes", [10, 60])
def test_soak_a_long_take_is_written_and_read_again(tmp_path: Path, minutes: int) -> None:
    track = long_take(60.0 * minutes)
    files.save(track, tmp_path / "saved.mcap")
    assert_equal(files.load(tmp_path / "saved.mcap"), track)
    (tmp_path / "saved.mcap").unlink()
    path = record(tmp_path / "taught.mcap", track)
    assert_equal(files.load(path), track)
    os.truncate(path, path.stat().st_size - 1000)
    found = recover(path)
    assert len(found) == len(track)
    assert np.array_equal(found.joints_rad, track.joints_rad)


def test_a_take_of_more_samples_than_are_searched_is_compared_and_averaged_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    track, later = long_take(10.0, joints=2), long_take(10.0, joints=2, shift_s=0.1)
    full = compare(track, later)
    monkeypatch.setattr(align, "SEARCHED_SAMPLES", 500)
    found = compare(track, later)
    assert found.lag_s == pytest.approx(full.lag_s, abs=0.01)
    assert found.rms_rad < 0.001  # they differ in timing, and in noise of 0.0005
    assert compare(average([track, later]), track).rms_rad < 0.001


def test_a_take_of_more_samples_than_a_path_has_is_retimed_within_its_limits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retime_module, "_LONG_PATH_STEPS", 500)
    track = long_take(10.0, joints=2)
    done = retime(track, velocity=0.1, acceleration=1.0, jerk=20.0)
    assert done.duration_s > track.duration_s
    speed, acceleration, jerk = find_spline_peaks(1 / RATE_HZ, done.joints_rad)
    assert speed.max() <= 0.1 * (1 + 1e-6)
    assert acceleration.max() <= 1.0 * (1 + 1e-6)
    assert jerk.max() <= 20.0 * (1 + 1e-6)
