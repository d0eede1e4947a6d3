"""Tracks as CSV: what is written is read again, and a file is whole or not there."""

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motion.motion_tracks import full_disk
from rote.errors import BadRequestError
from rote.model.family import Build
from rote.model.g1 import G1_23, G1_27, G1_29
from rote.motion.files.csv_file import load_csv, save_csv
from rote.motion.track import Track

NAMES = ("left_elbow_joint", "right_elbow_joint")


def small_track(value: float = 0.5, names: tuple[str, ...] = NAMES) -> Track:
    times_s = np.array([0.0, 0.01, 0.02])
    return Track(times_s=times_s, joints_rad=np.full((3, len(names)), value), names=names)


def written(folder: Path, text: str) -> Path:
    path = folder / "track.csv"
    path.write_text(text, encoding="utf-8")
    return path


# ---- there and back -----------------------------------------------------------------------------


@given(
    widths_s=st.lists(st.floats(0.001, 10.0), max_size=20),
    begin_s=st.floats(-1000.0, 1000.0),
    angles=st.lists(st.floats(-10.0, 10.0), min_size=3, max_size=3),
)
def test_a_written_track_is_read_again(
    widths_s: list[float], begin_s: float, angles: list[float]
) -> None:
    times_s = begin_s + np.cumsum([0.0, *widths_s])
    joints = np.outer(np.cos(times_s), angles)
    track = Track(times_s=times_s, joints_rad=joints, names=("a", "b", "c"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "track.csv"
        save_csv(track, path)
        again = load_csv(path)
    assert again.names == track.names
    assert again.times_s.tolist() == track.times_s.tolist()
    assert again.joints_rad.tolist() == track.joints_rad.tolist()


def test_names_with_commas_quotes_and_other_alphabets_survive(tmp_path: Path) -> None:
    names = ('a, "b"', "коліно", "肘")
    save_csv(small_track(names=names), tmp_path / "track.csv")
    assert load_csv(tmp_path / "track.csv").names == names


def test_a_file_of_no_samples_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match=r"track\.csv.*but this one has none"):
        load_csv(written(tmp_path, "t,a\n"))


@pytest.mark.parametrize("variant", [G1_23, G1_27, G1_29], ids=lambda variant: variant.name)
def test_the_joints_tell_which_build_of_the_robot_it_is(tmp_path: Path, variant: Build) -> None:
    save_csv(small_track(names=variant.names), tmp_path / "track.csv")
    assert load_csv(tmp_path / "track.csv").variant == variant.name


def test_the_mark_that_spreadsheets_put_first_is_no_part_of_the_header(tmp_path: Path) -> None:
    assert load_csv(written(tmp_path, "\ufefft,a\n0.0,1\n")).names == ("a",)


def test_times_closer_than_a_microsecond_stay_apart(tmp_path: Path) -> None:
    track = Track(times_s=np.array([0.0, 1e-7]), joints_rad=np.zeros((2, 1)), names=("a",))
    save_csv(track, tmp_path / "track.csv")
    assert load_csv(tmp_path / "track.csv").times_s.tolist() == [0.0, 1e-7]


def test_a_loaded_track_says_which_file_it_came_from(tmp_path: Path) -> None:
    save_csv(small_track(), tmp_path / "bow.csv")
    assert load_csv(tmp_path / "bow.csv").source == "file bow.csv"


def test_the_file_is_one_that_a_spreadsheet_reads(tmp_path: Path) -> None:
    save_csv(small_track(0.25), tmp_path / "track.csv")
    assert (tmp_path / "track.csv").read_text(encoding="utf-8").splitlines() == [
        "t,left_elbow_joint,right_elbow_joint",
        "0.000000,0.25,0.25",
        "0.010000,0.25,0.25",
        "0.020000,0.25,0.25",
    ]


# ---- whole or not there -------------------------------------------------------------------------


def test_saving_makes_the_folders_it_needs_and_leaves_only_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "track.csv"
    save_csv(small_track(), path)
    assert list(path.parent.iterdir()) == [path]


def test_saving_again_replaces_the_file(tmp_path: Path) -> None:
    path = tmp_path / "track.csv"
    save_csv(small_track(0.1), path)
    save_csv(small_track(0.2), path)
    assert load_csv(path).joints_rad[0, 0] == 0.2
    assert list(tmp_path.iterdir()) == [path]


def test_a_disk_that_fills_up_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "track.csv"
    save_csv(small_track(0.1), path)
    before = path.read_bytes()
    times_s = np.arange(50_000) / 100.0
    large = Track(times_s=times_s, joints_rad=np.full((times_s.size, 2), 0.2), names=NAMES)
    with full_disk(100_000), pytest.raises(BadRequestError, match="File too large"):
        save_csv(large, path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_name_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="UTF-8"):
        save_csv(small_track(names=("a", "\ud800")), tmp_path / "track.csv")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_place_of_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "track.csv"
    path.mkdir()
    with pytest.raises(BadRequestError):
        save_csv(small_track(), path)
    assert list(tmp_path.iterdir()) == [path]


# ---- refused ------------------------------------------------------------------------------------

ROWS = "t,a,b\n0.0,1,2\n0.1,3,4\n"


@pytest.mark.parametrize(
    "row",
    ["0.2,5", "0.2,5,6,7", "0.2,five,6", "0.2,5,", "", "now,5,6", "0.2;5;6"],
    ids=["short", "long", "a word", "an empty cell", "empty", "no time", "semicolons"],
)
@pytest.mark.parametrize("number", [2, 4])
def test_a_row_that_cannot_be_used_is_named_by_its_number(
    tmp_path: Path, row: str, number: int
) -> None:
    lines = ROWS.splitlines()
    lines.insert(number - 1, row)
    path = written(tmp_path, "\n".join([*lines, "9.0,0,0", ""]))
    with pytest.raises(BadRequestError, match=rf"track\.csv: row {number} cannot be read"):
        load_csv(path)


@pytest.mark.parametrize(
    "header",
    ["", "time,a,b\n0,1,2\n", "t\n0\n", "0.0,1,2\n", "\n0,1,2\n", "T,a\n0,1\n"],
    ids=["empty file", "other word", "no joints", "no header", "blank", "capital"],
)
def test_a_file_without_the_header_is_refused(tmp_path: Path, header: str) -> None:
    with pytest.raises(BadRequestError, match="first row must be 't'"):
        load_csv(written(tmp_path, header))


def test_times_that_do_not_increase_are_refused(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="not later than the one before"):
        load_csv(written(tmp_path, "t,a\n0.0,1\n0.2,1\n0.1,1\n"))


@pytest.mark.parametrize("cell", ["nan", "inf", "-inf", "much"])
def test_a_cell_that_is_not_a_number_is_refused_by_its_column(tmp_path: Path, cell: str) -> None:
    with pytest.raises(BadRequestError, match=r"row 3 cannot be read: b is .*not a number"):
        load_csv(written(tmp_path, f"t,a,b\n0.0,1,1\n0.2,1,{cell}\n"))
    with pytest.raises(BadRequestError, match=r"row 3 cannot be read: (its time|t) is .*number"):
        load_csv(written(tmp_path, f"t,a\n0.0,1\n{cell},1\n"))


def test_semicolons_are_told_from_commas(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="first row must be 't'") as caught:
        load_csv(written(tmp_path, "t;a\n0,0;1\n"))
    assert caught.value.remedy == "Put commas between the cells."


def test_a_missing_file_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match=r"nowhere\.csv cannot be read"):
        load_csv(tmp_path / "nowhere.csv")


def test_a_folder_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="cannot be read"):
        load_csv(tmp_path)


@pytest.mark.parametrize("data", [b"\xff\xfe\x00\x01", b"t,a\n0,\x00\xff\n"])
def test_a_file_that_is_no_text_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "track.csv"
    path.write_bytes(data)
    with pytest.raises(BadRequestError, match="cannot be read as UTF-8") as caught:
        load_csv(path)
    assert "UTF-8" in caught.value.remedy


def test_a_cell_that_no_number_is_as_long_as_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match="cannot be read as CSV"):
        load_csv(written(tmp_path, f"t,a\n0,{'1' * 200_000}\n"))


@pytest.mark.parametrize("end", ["\n", "\n\n", "\r\n\r\n", ""])
def test_blank_lines_after_the_last_row_are_no_rows(tmp_path: Path, end: str) -> None:
    assert len(load_csv(written(tmp_path, ROWS.rstrip() + end))) == 2


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_a_track_or_a_bad_request(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "track.csv"
        path.write_bytes(b"t,a,b\n" + data)
        try:
            track = load_csv(path)
        except BadRequestError:
            return
        assert track.names == ("a", "b")
