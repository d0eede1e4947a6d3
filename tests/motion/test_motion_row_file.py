"""Recording without the `mcap` extra: rows of numbers while it goes on, an NPZ file at the end."""

import sys
from pathlib import Path

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.motion.files import disk, load
from rote.motion.files.library import Library
from rote.motion.files.take_writer import TakeWriter, recover, unfinished
from rote.motion.track import Mark

NAMES = ("left_elbow_joint", "right_elbow_joint")


@pytest.fixture(autouse=True)
def _no_mcap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcap", None)


def filled(writer: TakeWriter, samples: int) -> None:
    for number in range(samples):
        writer.add(number / 97, [number / 1000, -0.5])


def test_a_recording_becomes_a_take_that_lost_nothing(tmp_path: Path) -> None:
    library = Library(tmp_path)
    writer = library.record("wave", NAMES, variant="g1-29", source="teach wave")
    filled(writer, 200)
    assert writer.part.name == "wave.npz.part"
    assert library.unfinished() == ()  # it goes on
    assert writer.finish(marks=(Mark(0.5, "here"),), tags=("greeting",)) == tmp_path / "wave.npz"
    track = library.load("wave")
    assert np.array_equal(track.times_s, np.arange(200) / 97)
    assert np.array_equal(track.joints_rad[:, 0], np.arange(200) / 1000)
    assert (track.names, track.variant, track.source) == (NAMES, "g1-29", "teach wave")
    assert track.marks == (Mark(0.5, "here"),)
    (entry,) = library.list("greeting")
    assert (entry.samples, entry.version) == (200, 1)
    assert sorted(path.name for path in tmp_path.iterdir() if path.name[0] != ".") == ["wave.npz"]


def test_what_was_recorded_before_a_crash_is_recovered(tmp_path: Path) -> None:
    library = Library(tmp_path)
    writer = library.record("wave", NAMES)
    filled(writer, 200)
    writer._file.close()  # as if the process had died
    with writer.part.open("ab") as file:
        file.write(b"half a row")
    (part,) = library.unfinished()
    assert library.recover(part).name == "wave"
    track = library.load("wave")
    assert len(track) == 200
    assert track.history == ("recover a recording that was cut off",)
    assert library.unfinished() == ()
    assert (tmp_path / "trash" / "wave" / "wave.npz.part").exists()


def test_rows_after_a_damaged_one_are_not_recovered(tmp_path: Path) -> None:
    with pytest.raises(KeyError), TakeWriter(tmp_path / "wave.npz", NAMES) as writer:
        filled(writer, 50)
        raise KeyError
    (part,) = unfinished(tmp_path)
    data = bytearray(part.read_bytes())
    begin = data.index(b"\n") + 1
    data[begin + 24 * 30 : begin + 24 * 30 + 8] = np.array([np.nan]).tobytes()
    part.write_bytes(data)
    assert len(recover(part)) == 30


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "not a recording"),
        (b"no json\n", "not a recording"),
        (b"[" * 100_000, "not a recording"),
        (b"7\n", "does not hold a track"),
        (b'{"names": ["left_elbow_joint"]}\n', "nothing in it"),
        (b'{"names": ["left_elbow_joint"]}\n' + bytes(16), "nothing in it"),
        (b'{"names": ["left_elbow_joint"]}\n' + bytes(160), "nothing in it"),
    ],
)
def test_what_is_no_recording_is_refused_and_kept(
    tmp_path: Path, data: bytes, problem: str
) -> None:
    part = tmp_path / "wave.npz.part"
    part.write_bytes(data)
    with pytest.raises(BadRequestError, match=problem):
        recover(part)
    assert part.read_bytes() == data


def test_a_recording_that_could_not_be_read_again_ends_before_that(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MAX_BYTES", 4000)
    with TakeWriter(tmp_path / "wave.npz", NAMES) as writer:
        with pytest.raises(BadRequestError, match="can be read again"):
            filled(writer, 1000)
        kept = len(writer)
        monkeypatch.setattr(disk, "MAX_BYTES", 2 << 20)
    assert len(load(tmp_path / "wave.npz")) == kept > 100


def test_a_recording_without_samples_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="2 samples"):
        TakeWriter(tmp_path / "wave.npz", NAMES).finish()
    assert list(tmp_path.iterdir()) == []
