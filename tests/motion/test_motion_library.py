"""A library of takes: nothing saved is ever lost, and the files alone say what there is."""

import json
import os
import shutil
import sys
import tempfile
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from motion.motion_tracks import assert_same, waving
from rote.errors import BadRequestError
from rote.motion import files
from rote.motion.files import library as library_module
from rote.motion.files.library import Library
from rote.motion.files.mcap_file import save_mcap
from rote.motion.files.thumbnail import sketch, thumbnail
from rote.motion.track import Track

NAMES = waving().names
NAME = st.sampled_from(["wave", "bow", "clap 2"])


@pytest.fixture
def library(tmp_path: Path) -> Library:
    return Library(tmp_path / "takes")


def take(value: float) -> Track:
    return replace(waving(), joints_rad=np.full((60, 3), value))


def value_of(track: Track) -> float:
    return float(track.joints_rad[0, 0])


# ---- save, load, list ---------------------------------------------------------------------------


def test_a_saved_take_is_loaded_as_it_was(library: Library) -> None:
    entry = library.save(waving(), "wave", tags=("Hello", "arm "))
    assert_same(library.load("wave"), waving())
    assert (entry.name, entry.version, entry.samples, entry.joints) == ("wave", 1, 60, 3)
    assert entry.duration_s == pytest.approx(0.59)
    assert (entry.variant, entry.source) == ("g1-29", "teach wave over udp")
    assert (entry.tags, entry.problem) == (("hello", "arm"), "")
    assert library.list() == (entry,)


def test_an_empty_library_is_empty_and_makes_no_folder(library: Library) -> None:
    assert library.list() == ()
    assert library.unfinished() == ()
    assert not library.folder.exists()


def test_saving_again_keeps_what_was_there(library: Library) -> None:
    for version in (1, 2, 3):
        assert library.save(take(version / 10), "wave").version == version
    assert library.versions("wave") == (1, 2, 3)
    assert [value_of(library.load("wave", version)) for version in (1, 2, 3)] == [0.1, 0.2, 0.3]
    assert value_of(library.load("wave")) == 0.3
    assert len(library.list()) == 1


@pytest.mark.parametrize(
    ("search", "names"),
    [
        ("", ["bow", "wave"]),
        ("WAV", ["wave"]),
        ("greeting", ["bow", "wave"]),
        ("greeting polite", ["bow"]),
        ("udp", ["wave"]),
        ("jump", []),
    ],
)
def test_search_looks_at_names_tags_and_sources(
    library: Library, search: str, names: list[str]
) -> None:
    library.save(waving(), "wave", tags=("greeting",))
    library.save(replace(waving(), source=""), "bow", tags=("greeting", "polite"))
    assert [entry.name for entry in library.list(search)] == names


def test_files_put_there_by_hand_are_takes(library: Library, tmp_path: Path) -> None:
    library.save(waving(), "wave")
    other = tmp_path / "elsewhere.mcap"
    save_mcap(take(0.5), other)
    shutil.copy(other, library.folder / "found.mcap")
    (library.folder / "notes.txt").write_text("not a take")
    assert [entry.name for entry in library.list()] == ["found", "wave"]
    assert value_of(library.load("found")) == 0.5


def test_a_broken_file_is_listed_with_its_problem(library: Library) -> None:
    library.save(waving(), "wave")
    (library.folder / "broken.mcap").write_bytes(b"hello")
    (library.folder / "worse.npz").write_bytes(b"hello")
    broken, wave, worse = library.list()
    assert "not an MCAP file" in broken.problem
    assert "NPZ" in worse.problem
    assert wave.problem == ""


@pytest.mark.parametrize(
    "name", ["", " ", "../x", "a/b", ".hidden", "x" * 240, "a\nb", "a\\b", "trash"]
)
def test_names_that_are_no_file_names_are_refused(library: Library, name: str) -> None:
    for attempt in (
        lambda: library.save(waving(), name),
        lambda: library.load(name),
        lambda: library.record(name, NAMES),
        lambda: library.delete(name),
    ):
        with pytest.raises(BadRequestError, match="cannot be used"):
            attempt()
    assert not list(library.folder.rglob("*.mcap*"))


def test_what_is_not_there_is_refused_with_what_is(library: Library) -> None:
    library.save(waving(), "wave")
    assert library.has("wave")
    assert not library.has("bow")
    with pytest.raises(BadRequestError, match="no take 'bow'") as refused:
        library.load("bow")
    assert "wave" in refused.value.remedy
    with pytest.raises(BadRequestError, match="no version 7") as refused:
        library.load("wave", 7)
    assert "It has 1." in refused.value.remedy


def test_a_track_that_is_no_motion_is_not_saved(library: Library) -> None:
    library.save(take(0.1), "wave")
    with pytest.raises(BadRequestError, match="2 samples"):
        library.save(waving(1), "wave")
    assert library.versions("wave") == (1,)
    assert value_of(library.load("wave")) == 0.1


def test_a_folder_that_cannot_be_is_a_bad_request(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(BadRequestError, match="cannot be written"):
        Library(tmp_path / "file").save(waving(), "wave")


# ---- tags, names, trash -------------------------------------------------------------------------


def test_tags_come_and_go_and_the_take_stays(library: Library) -> None:
    library.save(waving(), "wave", tags=("a",))
    assert library.tag("wave", add=("b", "A")).tags == ("a", "b")
    assert library.tag("wave", add=("c",), remove=("a",)).tags == ("b", "c")
    assert_same(library.load("wave"), waving())
    assert library.versions("wave") == (1,)
    with pytest.raises(BadRequestError, match="tag is empty"):
        library.tag("wave", add=(" ",))


def test_a_new_name_takes_the_versions_along(library: Library) -> None:
    library.save(take(0.1), "wave")
    library.save(take(0.2), "wave")
    assert library.rename("wave", "hello").version == 2
    assert [entry.name for entry in library.list()] == ["hello"]
    assert value_of(library.load("hello", 1)) == 0.1
    library.save(take(0.3), "wave")
    with pytest.raises(BadRequestError, match="already"):
        library.rename("wave", "hello")
    with pytest.raises(BadRequestError, match="no take"):
        library.rename("nobody", "somebody")


def test_what_is_deleted_lies_in_the_trash_with_its_versions(library: Library) -> None:
    for value in (0.1, 0.2):
        library.save(take(value), "wave")
    grave = library.delete("wave")
    assert library.list() == ()
    assert grave.parent.name == "trash"
    assert value_of(Library(grave).load("wave")) == 0.2
    assert (grave / "versions" / "1.mcap").exists()
    library.save(take(0.3), "wave")
    assert library.delete("wave") != grave
    assert value_of(Library(grave).load("wave")) == 0.2


def test_a_trash_that_cannot_be_keeps_the_take(library: Library) -> None:
    library.save(take(0.1), "wave")
    (library.folder / "trash").touch()
    with pytest.raises(BadRequestError, match="cannot be written"):
        library.delete("wave")
    assert value_of(library.load("wave")) == 0.1


# ---- recording ----------------------------------------------------------------------------------


def test_a_recording_is_in_the_library_when_it_is_finished(library: Library) -> None:
    library.save(take(0.1), "wave")
    with library.record("wave", NAMES, source="teach wave") as writer:
        writer.add(0.0, [0.7] * 3)
        writer.add(0.5, [0.7] * 3)
        assert library.versions("wave") == (1,)
        assert library.unfinished() == ()
    assert library.versions("wave") == (1, 2)
    assert value_of(library.load("wave")) == 0.7
    assert value_of(library.load("wave", 1)) == 0.1


def cut_off(library: Library, name: str, samples: int) -> Path:
    with pytest.raises(KeyError), library.record(name, NAMES) as writer:
        for number in range(samples):
            writer.add(number / 100, [0.7] * 3)
        raise KeyError
    return writer.part


def test_a_recording_that_was_cut_off_becomes_a_take(library: Library) -> None:
    library.save(take(0.1), "wave")
    part = cut_off(library, "wave", 123)
    assert library.unfinished() == (part,)
    entry = library.recover(part)
    assert (entry.name, entry.version, entry.samples) == ("wave", 2, 123)
    assert library.load("wave").history == ("recover a recording that was cut off",)
    assert library.unfinished() == ()
    assert (library.folder / "trash" / "wave" / part.name).exists()


def test_a_recording_with_nothing_in_it_goes_to_the_trash(library: Library) -> None:
    part = cut_off(library, "wave", 0)
    with pytest.raises(BadRequestError, match="nothing in it"):
        library.recover(part)
    assert library.unfinished() == ()
    assert library.list() == ()
    assert (library.folder / "trash" / "wave" / part.name).exists()


def test_a_recording_that_goes_on_cannot_be_recovered(library: Library) -> None:
    with library.record("wave", NAMES) as writer:
        writer.add(0.0, [0.7] * 3)
        with pytest.raises(BadRequestError, match="not an interrupted recording"):
            library.recover(writer.part)
        writer.add(0.5, [0.7] * 3)
    assert library.versions("wave") == (1,)


def test_a_crash_between_keeping_the_old_and_naming_the_new_loses_nothing(
    library: Library,
) -> None:
    library.save(take(0.1), "wave")
    library.save(take(0.2), "wave")
    versions = library.folder / "versions" / "wave"
    (library.folder / "wave.mcap").rename(versions / "2.mcap")
    assert library.versions("wave") == (1, 2)
    assert value_of(library.load("wave")) == 0.2
    assert library.tag("wave", add=("x",)).tags == ("x",)
    assert library.save(take(0.3), "wave").version == 3
    assert [value_of(library.load("wave", version)) for version in (1, 2, 3)] == [0.1, 0.2, 0.3]


# ---- without mcap -------------------------------------------------------------------------------


def test_without_mcap_takes_are_npz_and_still_have_versions(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.save(take(0.1), "wave")
    library.save(take(0.1), "bow")
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "mcap", None)
        entry = library.save(take(0.2), "wave", tags=("x",))
        assert (entry.path.suffix, entry.version, entry.tags) == (".npz", 2, ("x",))
        assert library.tag("wave", add=("y",)).tags == ("x", "y")
        assert value_of(library.load("wave")) == 0.2
        assert "optional package" in library.list("bow")[0].problem
    assert library.save(take(0.3), "wave").path.suffix == ".mcap"
    assert [value_of(library.load("wave", version)) for version in (1, 2, 3)] == [0.1, 0.2, 0.3]


def test_of_two_current_files_the_later_one_is_the_newest(library: Library) -> None:
    from rote.motion.files.npz_file import save_npz

    library.save(take(0.1), "wave")
    save_npz(take(0.2), library.folder / "wave.npz")
    os.utime(library.folder / "wave.npz", (1, 1))
    assert value_of(library.load("wave")) == 0.1
    assert value_of(library.load("wave", 1)) == 0.2
    library.save(take(0.3), "wave")
    assert [value_of(library.load("wave", version)) for version in (1, 2, 3)] == [0.2, 0.1, 0.3]


# ---- anything, in any order ---------------------------------------------------------------------


class Shelf(RuleBasedStateMachine):
    """A library against a dictionary of lists."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.library = Library(Path(self.folder.name))
        self.model: dict[str, list[float]] = {}
        self.count = 0

    def teardown(self) -> None:
        self.folder.cleanup()

    @rule(name=NAME)
    def save(self, name: str) -> None:
        self.count += 1
        self.library.save(take(self.count / 1000), name)
        self.model.setdefault(name, []).append(self.count / 1000)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), to=NAME)
    def rename(self, data: st.DataObject, to: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        if to in self.model:
            with pytest.raises(BadRequestError):
                self.library.rename(name, to)
        else:
            self.library.rename(name, to)
            self.model[to] = self.model.pop(name)

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def delete(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        grave = self.library.delete(name)
        values = self.model.pop(name)
        assert value_of(Library(grave).load(name)) == values[-1]

    @precondition(lambda self: self.model)
    @rule(data=st.data(), tag=st.sampled_from("xyz"))
    def tag(self, data: st.DataObject, tag: str) -> None:
        name = data.draw(st.sampled_from(sorted(self.model)))
        assert tag in self.library.tag(name, add=(tag,)).tags

    @invariant()
    def the_files_say_what_was_done(self) -> None:
        assert [entry.name for entry in self.library.list()] == sorted(self.model)
        for name, values in self.model.items():
            versions = self.library.versions(name)
            assert [value_of(self.library.load(name, v)) for v in versions] == values


TestShelf = Shelf.TestCase
TestShelf.settings = settings(max_examples=15, stateful_step_count=12, deadline=None)


# ---- thumbnails ---------------------------------------------------------------------------------


def lines_of(svg: str) -> dict[str, list[tuple[float, float]]]:
    found = {}
    for line in ET.fromstring(svg):
        points = [pair.split(",") for pair in line.attrib["points"].split()]
        found[str(line[0].text)] = [(float(x), float(y)) for x, y in points]
    return found


def test_a_thumbnail_shows_the_joints_that_move_most() -> None:
    swing = np.sin(np.linspace(0, 6, 500))
    sizes = np.array([0.1, 0.0, 0.9, 0.2, 0.5, 0.4])
    names = tuple(f"<joint & {number}>" for number in range(6))
    track = Track(
        times_s=np.arange(500) / 100.0, joints_rad=np.outer(swing, sizes) + 1.0, names=names
    )
    lines = lines_of(thumbnail(track))
    assert list(lines) == [names[2], names[4], names[5], names[3]]
    for points in lines.values():
        assert len(points) <= 80
        assert all(3 <= x <= 157 and 3 <= y <= 45 for x, y in points)
        assert [x for x, _ in points] == sorted(x for x, _ in points)
    most, least = lines[names[2]], lines[names[3]]
    assert np.ptp([y for _, y in most]) == pytest.approx(42.0, abs=0.2)
    assert np.ptp([y for _, y in least]) == pytest.approx(42 * 0.2 / 0.9, abs=0.2)
    assert len(thumbnail(track)) < 6000


def test_a_pose_is_a_flat_line_and_nothing_is_an_empty_picture() -> None:
    points = lines_of(thumbnail(take(0.3)))[NAMES[0]]
    assert {y for _, y in points} == {24.0}
    assert lines_of(thumbnail(waving(1, ()))) == {}
    assert set(lines_of(thumbnail(waving(1)))) == set(NAMES)


def test_a_sketch_rises_and_falls_as_the_joint_does_that_moves_most() -> None:
    ((joint, line),) = sketch(waving(100)).items()
    assert joint == NAMES[-1]
    assert len(line) == 20
    assert (max(line), min(line)) == ("█", "▁")
    assert line.index("█") < line.index("▁")  # a sine goes up first
    both = sketch(waving(100), width=10, most=2)
    assert list(both) == [NAMES[-1], NAMES[-2]]
    # On one scale: who moves less is lower at the top.
    assert max(both[NAMES[-2]]) < max(both[NAMES[-1]])


def test_a_sketch_of_little_is_short_and_of_rest_is_flat() -> None:
    assert sketch(waving(1, ())) == {}
    assert [len(line) for line in sketch(waving(3), most=9).values()] == [3, 3, 3]
    still = replace(waving(50), joints_rad=np.full((50, 3), 0.4))
    assert set("".join(sketch(still).values())) == {"▅"}


def test_takes_are_sketched_until_enough_was_read(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, count in (("a", 60), ("b", 50), ("c", 40)):
        library.save(waving(count), name)
    assert set(library.sketches(library.list())) == {"a", "b", "c"}
    monkeypatch.setattr(library_module, "MAX_SKETCHED", 100)
    assert set(library.sketches(library.list())) == {"a", "c"}


def test_a_take_that_cannot_be_read_has_no_sketch(library: Library) -> None:
    library.save(waving(30), "good")
    listed = library.save(waving(30), "gone since")
    (library.folder / "bad.mcap").write_bytes(b"nothing")
    entries = library.list()
    listed.path.unlink()
    assert [entry.name for entry in entries] == ["bad", "gone since", "good"]
    assert set(library.sketches(entries)) == {"good"}


# ---- what was read before -----------------------------------------------------------------------


def test_a_list_is_the_same_when_it_is_not_read_again(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("bow", "wave"):
        library.save(waving(), name, tags=("arm",))
        library.save(take(0.2), name, tags=("leg",))
    first = library.list()
    lines = library.sketches(first)

    def unread(path: Path) -> object:
        raise AssertionError(f"{path} is read again")

    monkeypatch.setattr("rote.motion.files.mcap_file.read_summary", unread)
    monkeypatch.setattr("rote.motion.files.load", unread)
    assert library.list() == first
    assert library.list("leg bow") == first[:1]
    assert library.sketches(first) == lines


def test_a_file_that_changed_is_read_again_whoever_changed_it(library: Library) -> None:
    library.save(waving(60), "wave")
    library.save(waving(50), "bow")
    library.sketches(library.list())
    (library.folder / "bow.mcap").replace(library.folder / "wave.mcap")
    (found,) = library.list()
    assert (found.name, found.samples) == ("wave", 50)
    files.save(take(0.1), library.folder / "wave.mcap")
    assert library.list()[0].samples == 60
    assert set(library.sketches(library.list())["wave"]) == {"▅"}


@pytest.mark.parametrize(
    "note",
    [
        b"",
        b"[]",
        b"\xff",
        b'{"version": 1, "files": []}',
        b'{"version": 1, "files": {"wave.mcap": 3}}',
        b'{"version": 9, "files": {}}',
    ],
)
def test_a_note_that_makes_no_sense_is_as_good_as_none(library: Library, note: bytes) -> None:
    library.save(waving(), "wave")
    wanted = library.list()
    path = library.folder / ".listed.json"
    assert path.exists()
    path.write_bytes(note)
    assert library.list() == wanted
    known = json.loads(path.read_bytes())
    known["files"]["wave.mcap"][1]["take"] = ["many"]
    path.write_text(json.dumps(known), encoding="utf-8")
    assert library.list() == wanted


def test_folders_and_files_may_be_text(tmp_path: Path) -> None:
    folder = str(tmp_path / "takes")
    files.save(waving(), str(tmp_path / "wave.npz"))
    takes = Library(folder)
    takes.save(files.load(str(tmp_path / "wave.npz")), "wave")
    assert_same(Library(Path(folder)).load("wave"), takes.load("wave"))
    assert files.format_of("wave.CSV").name == "csv"
    with pytest.raises(BadRequestError, match="is not known"):
        files.load("wave")


def test_the_library_of_this_computer_is_in_its_data_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path))
    assert library_module.library().folder == tmp_path / "takes"
    assert library_module.library("elsewhere").folder == Path("elsewhere")
