"""Every format by the same door: exact or with its loss stated, and bad files refused in words."""

import io
import json
import os
import tempfile
import tracemalloc
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motion.motion_tracks import assert_same, assert_same_numbers, full_disk, tracks, waving
from rote.errors import BadRequestError
from rote.model.g1 import G1_23, G1_29
from rote.motion import files
from rote.motion.files import disk, metadata
from rote.motion.formats import FORMATS
from rote.motion.track import Mark, Track
from sampled import sample_examples

SUFFIXES = tuple(FORMATS)
EXACT = tuple(suffix for suffix, found in FORMATS.items() if not found.loss)
ROW = {".csv": "row", ".json": "sample", ".npz": "row", ".mcap": "message"}
FIRST = {".csv": 2, ".json": 1, ".npz": 1, ".mcap": 1}
NAN, INF = float("nan"), float("inf")


def unchecked(track: Track, **changes: Any) -> Track:
    """Return a track that could not be made, to see what the file of such a one is worth."""
    broken = replace(track)
    for name, value in changes.items():
        object.__setattr__(broken, name, value)
    return broken


def changed(track: Track, row: int, column: int, value: float) -> Track:
    """Return the track with one angle changed, or with column -1 one time."""
    times_s, joints_rad = track.times_s.copy(), track.joints_rad.copy()
    if column < 0:
        times_s[row] = value
    else:
        joints_rad[row, column] = value
    return unchecked(track, times_s=times_s, joints_rad=joints_rad)


# ---- there and back -----------------------------------------------------------------------------


def test_the_native_format_and_two_more_lose_nothing() -> None:
    assert EXACT == (".mcap", ".npz", ".json")


@pytest.mark.parametrize("suffix", EXACT)
@sample_examples(20)
@given(track=tracks())
def test_an_exact_format_keeps_every_field_to_the_last_bit(suffix: str, track: Track) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"take{suffix}"
        assert files.save(track, path) == ""
        assert_same(files.load(path), track)
        assert list(Path(folder).iterdir()) == [path]


@sample_examples(20)
@given(track=tracks())
def test_csv_keeps_the_numbers_and_says_that_the_words_are_lost(track: Track) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "take.csv"
        loss = files.save(track, path)
        found = files.load(path)
    assert_same_numbers(found, track)
    assert (found.marks, found.history, found.source) == ((), (), "file take.csv")
    for word in ("variant", "source", "marks", "history"):
        assert word in loss


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_capital_endings_are_understood(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"TAKE{suffix.upper()}"
    files.save(waving(), path)
    assert_same_numbers(files.load(path), waving())


@pytest.mark.parametrize("name", ["take.txt", "take", "take.mcap.bak"])
def test_an_ending_nobody_knows_is_refused_with_those_that_are_known(
    tmp_path: Path, name: str
) -> None:
    with pytest.raises(BadRequestError, match="the format of") as refused:
        files.save(waving(), tmp_path / name)
    assert ".mcap, .npz, .json or .csv" in refused.value.remedy
    with pytest.raises(BadRequestError, match="the format of"):
        files.load(tmp_path / name)


# ---- whole or not there -------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"take{suffix}"
    files.save(waving(), path)
    before = path.read_bytes()
    rng = np.random.default_rng(1)
    long = waving(20_000)
    large = replace(long, joints_rad=long.joints_rad + rng.normal(0, 0.1, long.joints_rad.shape))
    with full_disk(100_000), pytest.raises(BadRequestError, match="cannot be written"):
        files.save(large, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_reading_changes_nothing(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"take{suffix}"
    files.save(waving(), path)
    before = path.read_bytes()
    path.chmod(0o400)
    files.load(path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_words_that_no_file_can_hold_leave_none(tmp_path: Path, suffix: str) -> None:
    for bad in (
        replace(waving(), source="\ud800"),
        replace(waving(), marks=(Mark(0.0, "\ud800"),)),
    ):
        with pytest.raises(BadRequestError, match="UTF-8"):
            files.save(bad, tmp_path / f"take{suffix}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_file_larger_than_is_read_is_not_written(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MAX_BYTES", 1000)
    with pytest.raises(BadRequestError, match="can be read again"):
        files.save(waving(), tmp_path / f"take{suffix}")
    assert list(tmp_path.iterdir()) == []


# ---- refused: which file, which row -------------------------------------------------------------


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("column", "value"), [(0, NAN), (1, INF), (2, -INF)])
def test_a_value_that_is_not_a_number_is_named_by_its_row(
    tmp_path: Path, suffix: str, column: int, value: float
) -> None:
    path = tmp_path / f"take{suffix}"
    FORMATS[suffix].save(changed(waving(), 7, column, value), path)
    named = waving().names[column] if suffix in {".csv", ".npz"} else ""
    row = f"{ROW[suffix]} {FIRST[suffix] + 7}"
    wanted = rf"take\{suffix}: {row} cannot be read.*{named}.*not a number"
    with pytest.raises(BadRequestError, match=wanted):
        files.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("value", [0.19, 0.05], ids=["repeated", "back"])
def test_times_that_repeat_or_go_back_are_named_by_their_row(
    tmp_path: Path, suffix: str, value: float
) -> None:
    path = tmp_path / f"take{suffix}"
    FORMATS[suffix].save(changed(waving(), 20, -1, value), path)
    wanted = rf"{ROW[suffix]} {FIRST[suffix] + 20} cannot be read.*{value} is not later"
    with pytest.raises(BadRequestError, match=wanted):
        files.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_degrees_are_told_by_their_size_and_converted_on_request(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"take{suffix}"
    degrees = replace(waving(), joints_rad=np.degrees(waving().joints_rad))
    FORMATS[suffix].save(degrees, path)
    row = int(np.argmax((np.abs(degrees.joints_rad) > 2 * np.pi).any(axis=1)))
    wanted = rf"{ROW[suffix]} {FIRST[suffix] + row} .*left_shoulder.*look like degrees"
    with pytest.raises(BadRequestError, match=wanted) as refused:
        files.load(path)
    assert "degrees=True" in refused.value.remedy
    found = files.load(path, degrees=True)
    np.testing.assert_allclose(found.joints_rad, waving().joints_rad, rtol=1e-12, atol=1e-12)
    assert found.history[-1] == "degrees to rad"


def test_angles_that_could_not_be_loaded_are_not_saved(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="degrees"):
        files.save(changed(waving(), 3, 0, 90.0), tmp_path / "take.json")


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize(("count", "found"), [(0, "none|no joint states"), (1, "has 1")])
def test_nothing_and_one_sample_are_no_motion(
    tmp_path: Path, suffix: str, count: int, found: str
) -> None:
    track = unchecked(waving(), times_s=np.arange(float(count)), joints_rad=np.zeros((count, 3)))
    path = tmp_path / f"take{suffix}"
    FORMATS[suffix].save(track, path)
    with pytest.raises(BadRequestError, match=rf"take\{suffix}.*({found})"):
        files.load(path)
    with pytest.raises(BadRequestError, match="2 samples"):
        files.save(track, tmp_path / f"other{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_joint_the_robot_does_not_have_is_named_with_the_one_that_was_meant(
    tmp_path: Path, suffix: str
) -> None:
    path = tmp_path / f"take{suffix}"
    names = ("left_elbow", "waist_yaw_joint", "nose")
    files.save(waving(names=names), path)
    with pytest.raises(BadRequestError, match=r"no joint 'left_elbow' \(and 1 more") as refused:
        files.load(path)
    assert "left_elbow_joint" in refused.value.remedy
    assert files.load(path, any_joints=True).names == names


def test_a_joint_like_no_other_is_refused_with_those_there_are(tmp_path: Path) -> None:
    files.save(waving(names=("%",)), tmp_path / "take.json")
    with pytest.raises(BadRequestError, match="no joint '%'") as refused:
        files.load(tmp_path / "take.json")
    assert "right_wrist_yaw_joint" in refused.value.remedy


def test_a_joint_of_the_full_robot_is_wrong_for_a_smaller_one(tmp_path: Path) -> None:
    track = replace(waving(names=("left_wrist_yaw_joint",)), variant=G1_23.name)
    files.save(track, tmp_path / "take.json")
    with pytest.raises(BadRequestError, match="g1-23 has no joint 'left_wrist_yaw_joint'"):
        files.load(tmp_path / "take.json")


def test_the_joints_of_a_robot_unknown_here_are_its_own_business(tmp_path: Path) -> None:
    track = replace(waving(names=("tail",)), variant="dog-1")
    files.save(track, tmp_path / "take.json")
    assert_same(files.load(tmp_path / "take.json"), track)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("names", [("a", "a"), ("a", "")], ids=["twice", "empty"])
def test_joints_need_one_name_each(tmp_path: Path, suffix: str, names: tuple[str, ...]) -> None:
    track = waving(names=names)
    with pytest.raises(BadRequestError, match="needs its own name"):
        files.save(track, tmp_path / f"take{suffix}")
    FORMATS[suffix].save(track, tmp_path / f"take{suffix}")
    with pytest.raises(BadRequestError, match="needs its own name"):
        files.load(tmp_path / f"take{suffix}", any_joints=True)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"take{suffix}"
    path.touch()
    os.truncate(path, disk.MAX_BYTES + 1)
    with pytest.raises(BadRequestError, match=r"^\S+ cannot be read: .*at most 256 MB") as caught:
        files.load(path)
    assert caught.value.remedy


@pytest.mark.parametrize("suffix", [".json", ".npz", ".csv"])
def test_times_that_are_no_seconds_are_named_by_their_row(tmp_path: Path, suffix: str) -> None:
    track = waving(3)
    stamps = unchecked(track, times_s=1.7e18 + np.arange(3) * 1e7)
    path = tmp_path / f"take{suffix}"
    FORMATS[suffix].save(stamps, path)
    first = FORMATS[suffix].file_location(path).first_row
    with pytest.raises(BadRequestError, match=rf" {first} cannot be read: its time 1.7e\+18"):
        files.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_too_many_samples_are_refused(
    tmp_path: Path, suffix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / f"take{suffix}"
    files.save(waving(), path)
    monkeypatch.setattr(metadata, "MAX_SAMPLES", 50)
    with pytest.raises(BadRequestError, match="more than"):
        files.load(path)
    with pytest.raises(BadRequestError, match="more than"):
        files.save(waving(), tmp_path / f"other{suffix}")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_what_is_no_file_is_refused_without_waiting(tmp_path: Path, suffix: str) -> None:
    pipe = tmp_path / f"pipe{suffix}"
    os.mkfifo(pipe)
    for path in (pipe, tmp_path / f"nowhere{suffix}"):
        with pytest.raises(BadRequestError, match=rf"\{suffix} cannot be read"):
            files.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(data=st.binary(max_size=300))
def test_arbitrary_bytes_are_refused(suffix: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"take{suffix}"
        path.write_bytes(data)
        with pytest.raises(BadRequestError, match="take"):
            files.load(path)


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(share=st.floats(0, 1), new=st.integers(0, 255))
def test_a_damaged_byte_gives_a_track_or_a_bad_request(suffix: str, share: float, new: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"take{suffix}"
        files.save(waving(10), path)
        data = bytearray(path.read_bytes())
        data[int(share * (len(data) - 1))] = new
        path.write_bytes(data)
        try:
            found = files.load(path, any_joints=True)
        except BadRequestError:
            return
        assert len(found) >= 2


@pytest.mark.parametrize("suffix", SUFFIXES)
@given(share=st.floats(0, 0.999))
def test_a_file_cut_off_gives_fewer_samples_or_a_bad_request(suffix: str, share: float) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"take{suffix}"
        files.save(waving(10), path)
        os.truncate(path, int(share * path.stat().st_size))
        try:
            found = files.load(path)
        except BadRequestError:
            return
        assert suffix == ".csv"  # text of whole rows is a whole file: nothing tells what is gone
        assert len(found) <= 10


# ---- JSON of others -----------------------------------------------------------------------------


def json_of(folder: Path, **changes: object) -> Path:
    fields: dict[str, object] = {
        "names": ["waist_yaw_joint"], "times_s": [0, 0.5], "joints_rad": [[0], [0.25]],
    }  # fmt: skip
    path = folder / "take.json"
    kept = {name: value for name, value in (fields | changes).items() if value is not None}
    path.write_text(json.dumps(kept))
    return path


def test_three_fields_make_a_json_track(tmp_path: Path) -> None:
    found = files.load(json_of(tmp_path))
    assert found.times_s.tolist() == [0.0, 0.5]
    assert (found.variant, found.source, found.marks) == (G1_29.name, "file take.json", ())


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"times_s": None}, "no list 'times_s'"),
        ({"joints_rad": {}}, "no list 'joints_rad'"),
        ({"names": "waist"}, "names cannot be read"),
        ({"names": [1]}, "names cannot be read"),
        ({"times_s": [0]}, "1 times and 2 samples"),
        ({"joints_rad": [[0], [1, 2]]}, "sample 2 cannot be read: it has 2 angles"),
        ({"joints_rad": [[0], 1]}, "sample 2 cannot be read: it has no list"),
        ({"joints_rad": [["0"], [1]]}, "sample 1 cannot be read: .*not a number"),
        ({"joints_rad": [[0], [True]]}, "sample 2 cannot be read: .*not a number"),
        ({"times_s": [0, 10**400]}, "sample 2 cannot be read: .*too large"),
        ({"variant": 29}, "variant cannot be read"),
        ({"source": []}, "source cannot be read"),
        ({"history": [None]}, "history cannot be read"),
        ({"marks": [3]}, "marks cannot be read"),
        ({"marks": [{"words": "up"}]}, "has no time"),
        ({"marks": [{"time_s": 10**400, "words": "up"}]}, "has no time"),
        ({"marks": [{"time_s": 1}]}, "marks cannot be read"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_json_that_is_no_track_is_refused_in_words(
    tmp_path: Path, changes: dict[str, object], problem: str
) -> None:
    with pytest.raises(BadRequestError, match=rf"take\.json: .*{problem}"):
        files.load(json_of(tmp_path, **changes))


@pytest.mark.parametrize("text", ["[]", "3", '"track"', "null", "{", "[" * 100_000, "\x00"])
def test_json_of_something_else_is_refused_in_words(tmp_path: Path, text: str) -> None:
    path = tmp_path / "take.json"
    path.write_text(text)
    with pytest.raises(BadRequestError, match=r"take\.json: it (cannot be read|does not hold)"):
        files.load(path)


# ---- NPZ of others ------------------------------------------------------------------------------


def npz_of(folder: Path, **changes: Any) -> Path:
    fields: dict[str, Any] = {
        "names": np.array(["waist_yaw_joint"]),
        "times_s": np.array([0, 1], dtype=np.int32),
        "joints_rad": np.array([[0.0], [0.25]], dtype=np.float32),
    }
    path = folder / "take.npz"
    kept = {name: value for name, value in (fields | changes).items() if value is not None}
    np.savez(path, **kept)
    return path


def test_three_arrays_make_an_npz_track(tmp_path: Path) -> None:
    found = files.load(npz_of(tmp_path))
    assert found.joints_rad.tolist() == [[0.0], [0.25]]
    assert found.source == "file take.npz"


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"times_s": None}, "no array 'times_s', only joints_rad, names"),
        ({"times_s": np.array(["0", "1"])}, "times_s are of type"),
        ({"times_s": np.array([0.0, np.longdouble("1e4000")])}, "row 2 cannot be read"),
        ({"joints_rad": np.zeros((3, 1))}, "shape"),
        ({"joints_rad": np.zeros(2)}, "shape"),
        ({"joints_rad": np.zeros((2, 2))}, "1 joint names and 2 times"),
        ({"names": np.array([1])}, "not a list of words"),
        ({"names": np.array("waist")}, "not a list of words"),
        ({"document": np.frombuffer(b"{", np.uint8)}, "document cannot be read"),
        ({"document": np.frombuffer(b"[]", np.uint8)}, "does not hold a track"),
        ({"names": np.array([{}], dtype=object)}, "cannot be read as NPZ.*Python objects"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_npz_that_is_no_track_is_refused_in_words(
    tmp_path: Path, changes: dict[str, Any], problem: str
) -> None:
    with pytest.raises(BadRequestError, match=rf"take\.npz: .*{problem}"):
        files.load(npz_of(tmp_path, **changes))


def test_numpy_reads_our_npz_alone(tmp_path: Path) -> None:
    files.save(waving(), tmp_path / "take.npz")
    with np.load(tmp_path / "take.npz") as arrays:
        assert arrays["names"].tolist() == list(waving().names)
        assert arrays["joints_rad"].tolist() == waving().joints_rad.tolist()


def packed(member: str, data: bytes) -> bytes:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr(member, data)
    return archive.getvalue()


def header(shape: str) -> bytes:
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: packed("times_s.npy", bytes(disk.MAX_BYTES + 1)), "unpacks to 16 MB"),
        (lambda: packed("times_s.npy", header("(10**30,)")), "cannot be read as NPZ"),
        (lambda: packed("times_s.npy", header("(99999999999,)")), "cannot be read as NPZ"),
        (lambda: packed("x.txt", b"hello"), "no array 'names'"),
    ],
    ids=["bomb", "no shape", "empty promise", "another archive"],
)
def test_archives_that_promise_too_much_are_refused(
    tmp_path: Path, make: Callable[[], bytes], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk, "MAX_BYTES", 16 * 2**20)  # to make an archive of 256 MB takes long
    (tmp_path / "take.npz").write_bytes(make())
    with pytest.raises(BadRequestError, match=problem):
        files.load(tmp_path / "take.npz")


class Zeros(NamedTuple):
    """An array of zeros, which packs to a thousandth."""

    shape: tuple[int, ...]
    dtype: str = "u1"

    def pack(self, archive: zipfile.ZipFile, name: str) -> None:
        file = io.BytesIO()
        np.save(file, np.zeros(self.shape, self.dtype))
        archive.writestr(f"{name}.npy", file.getbuffer())


BOMBS: dict[str, tuple[dict[str, Zeros], str]] = {
    "bytes that become numbers of eight bytes": (
        {"joints_rad": Zeros((100_000_000,))},
        "unpacks to 762 MB",
    ),
    "times that do not grow": (
        {"times_s": Zeros((900_000,)), "joints_rad": Zeros((900_000, 29))},
        "row 2 cannot be read",
    ),
    "angles without times": (
        {"joints_rad": Zeros((900_000, 29))},
        "29 joint names and 2 times",
    ),
    "a document without end": (
        {"document": Zeros((100_000_000,))},
        "document unpack to 95 MB",
    ),
    "an array that nobody asked for": (
        {"more": Zeros((100_000_000,))},
        "row 2 cannot be read",
    ),
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, bomb: str) -> None:
    changes, problem = BOMBS[bomb]
    members = {
        "names": Zeros((29,), "U1"),
        "times_s": Zeros((2,)),
        "joints_rad": Zeros((2, 29)),
    } | changes
    path = tmp_path / "take.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, zeros in members.items():
            zeros.pack(archive, name)
    assert path.stat().st_size < 300_000
    tracemalloc.start()
    try:
        with pytest.raises(BadRequestError, match=problem):
            files.load(path)
        assert tracemalloc.get_traced_memory()[1] < 64 * 2**20
    finally:
        tracemalloc.stop()


def test_a_header_that_contradicts_the_directory_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "take.npz"
    for shape in ("(1000,)", "(-1,)", "(0, 5)"):
        path.write_bytes(packed("times_s.npy", header(shape) + bytes(24)))
        with pytest.raises(BadRequestError, match="its header states"):
            files.load(path)


def test_times_in_milliseconds_are_recognised_and_the_history_says_so(tmp_path: Path) -> None:
    path = tmp_path / "ms.csv"
    rows = [f"{10 * n},{0.001 * n}" for n in range(200)]
    path.write_text("\n".join(["t,left_elbow_joint", *rows]))
    track = files.load(path)
    assert track.duration_s == pytest.approx(1.99)
    assert track.rate_hz == pytest.approx(100.0)
    assert track.history == (
        "the times were read as milliseconds: as seconds they would be too far apart",
    )


def test_a_few_poses_seconds_apart_are_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "poses.csv"
    path.write_text("t,left_elbow_joint\n0,0\n100,0.5\n200,0")
    assert files.load(path).duration_s == 200.0
    assert files.load(path).history == ()
