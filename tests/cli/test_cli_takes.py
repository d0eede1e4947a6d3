"""Takes at the command line: edited like files, brought back from the trash, recovered."""

import json
from pathlib import Path

import pytest

from motion.motion_tracks import full_disk
from rote.cli import main
from rote.cli.teach import save_elsewhere
from rote.errors import BadRequestError
from rote.model.g1 import G1_29
from rote.motion.files import load
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.platform.paths import takes_folder
from rote.robot.take import Take
from rote.sim.presets import action_from_script


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    return (code, *capsys.readouterr())


@pytest.fixture(autouse=True)
def shelf() -> Library:
    """The user's takes: hello and bye."""
    library = Library(takes_folder())
    for name, hand in (("hello", "wave"), ("bye", "drum")):
        action = action_from_script(hand, hand, 1.0)
        assert action.times_s is not None
        assert action.joints_rad is not None
        track = Track(times_s=action.times_s, joints_rad=action.joints_rad, names=G1_29.names)
        library.save(track, name)
    return library


# ---- rote motion --take --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        "motion info --take hello",
        "motion info hello --take",
        "motion check --take hello --no-contact",
        "motion compare --take hello bye",
        "motion best --take hello bye",
        "motion compress --take hello --bound 0.5",
        "motion plot --take hello --other bye --out OUT.svg",
        "motion trim --take hello OUT.csv --start 0.2",
        "motion blend --take hello bye OUT.csv",
        "motion average --take hello hello --out OUT.csv",
        "motion convert --take hello OUT.csv",
    ],
)
def test_a_take_works_like_a_file(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = line.replace("OUT", str(tmp_path / "out")).split()
    code, out, err = ask(capsys, *words)
    assert code in (0, 5), err
    assert out


def test_a_result_without_an_ending_is_a_take(
    shelf: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = ask(capsys, "motion", "trim", "--take", "hello", "short", "--end", 0.5, "--json")
    assert code == 0
    assert json.loads(out)["file"] == "short"
    assert shelf.load("short").duration_s == pytest.approx(0.5, abs=0.05)
    assert shelf.load("hello").duration_s > 0.8


def test_a_take_is_replaced_only_by_overwrite_and_the_older_one_stays(
    shelf: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("motion", "trim", "--take", "hello", "hello", "--end", 0.5)
    code, _, err = ask(capsys, *line)
    assert code == 2
    assert "--overwrite" in err
    assert shelf.versions("hello") == (1,)
    assert ask(capsys, *line, "--overwrite")[0] == 0
    assert shelf.versions("hello") == (1, 2)
    assert shelf.load("hello", 1).duration_s > 0.8


def test_a_file_that_is_a_take_is_pointed_to(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = ask(capsys, "motion", "info", "hello.mcap")
    assert code == 2
    assert "--take" in err


def test_a_take_that_is_not_there_is_refused_with_those_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, err = ask(capsys, "motion", "info", "--take", "helo")
    assert code == 2
    assert "bye, hello" in err


# ---- rote takes restore --------------------------------------------------------------------------


def test_a_deleted_take_comes_back_with_its_versions(
    shelf: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf.save(shelf.load("hello"), "hello", ["dear"])
    code, out, _ = ask(capsys, "takes", "delete", "hello")
    assert code == 0
    assert "rote takes restore hello" in out
    assert not shelf.has("hello")
    assert ask(capsys, "takes", "restore") == (0, "hello\n", "")
    code, out, _ = ask(capsys, "takes", "restore", "hello", "--json")
    assert code == 0
    assert json.loads(out)["version"] == 2
    assert json.loads(out)["tags"] == ["dear"]
    assert shelf.versions("hello") == (1, 2)
    assert ask(capsys, "takes", "restore")[1] == "There are no takes in the trash.\n"


def test_the_one_that_was_deleted_last_comes_back_first(
    shelf: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = shelf.load("hello"), shelf.load("bye")
    shelf.delete("hello")
    shelf.save(second, "hello")
    shelf.delete("hello")
    assert ask(capsys, "takes", "restore", "hello", "--name", "last")[0] == 0
    assert ask(capsys, "takes", "restore", "hello")[0] == 0
    assert shelf.load("last").joints_rad.tolist() == second.joints_rad.tolist()
    assert shelf.load("hello").joints_rad.tolist() == first.joints_rad.tolist()


def test_a_take_that_is_there_is_never_replaced_by_a_deleted_one(
    shelf: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    track = shelf.load("hello")
    shelf.delete("hello")
    shelf.save(track, "hello")
    code, _, err = ask(capsys, "takes", "restore", "hello")
    assert code == 2
    assert "already" in err
    assert shelf.deleted() == ("hello",)
    assert shelf.versions("hello") == (1,)


def test_what_is_not_in_the_trash_is_refused_with_what_is(
    shelf: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    shelf.delete("bye")
    code, _, err = ask(capsys, "takes", "restore", "hello")
    assert code == 2
    assert "There are bye." in err


# ---- rote motion recover -------------------------------------------------------------------------


def test_a_file_that_was_cut_off_is_recovered_and_stays(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, cut, out = tmp_path / "whole.mcap", tmp_path / "cut.mcap.part", tmp_path / "out.csv"
    assert ask(capsys, "takes", "export", "hello", whole)[0] == 0
    content = whole.read_bytes()
    cut.write_bytes(content[: -len(content) // 8])
    code, told, err = ask(capsys, "motion", "recover", cut, out, "--json")
    assert (code, err) == (0, "")
    assert json.loads(told)["samples"] == len(load(out))
    assert 2 <= len(load(out)) <= len(load(whole))
    assert cut.read_bytes() == content[: -len(content) // 8]
    assert ask(capsys, "motion", "recover", cut, out)[0] == 2
    assert ask(capsys, "motion", "recover", cut, out, "--overwrite")[0] == 0


def test_a_whole_file_is_recovered_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole, out = tmp_path / "whole.mcap", tmp_path / "out.mcap"
    assert ask(capsys, "takes", "export", "hello", whole)[0] == 0
    assert ask(capsys, "motion", "recover", whole, out)[0] == 0
    assert load(out).joints_rad.tolist() == load(whole).joints_rad.tolist()
    assert ask(capsys, "motion", "recover", whole, whole, "--overwrite")[0] == 2


@pytest.mark.parametrize("content", [b"", b"no recording at all", b"\x89MCAP0\r\n"])
def test_what_holds_no_recording_is_refused(
    content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broken, out = tmp_path / "broken.mcap", tmp_path / "out.csv"
    broken.write_bytes(content)
    code, _, err = ask(capsys, "motion", "recover", broken, out)
    assert code == 2
    assert "broken.mcap" in err
    assert not out.exists()


# ---- rote teach on a full disk -------------------------------------------------------------------

MEMORY = ("--robot", "sim://g1?store=:memory:")
HAND = ("--hand", "wave", "--seconds", "3")


def test_a_full_disk_is_told_while_recording_and_a_lost_take_at_the_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with full_disk(20_000):  # enough to begin with
        code, out, err = ask(capsys, "teach", "mine", *HAND, "--json", *MEMORY)
    assert code == 0, "the robot has it"
    assert json.loads(out)["take"] is None
    assert "Recording goes on in memory" in err
    assert "the take is LOST" in err


def test_a_take_that_the_library_refuses_is_written_to_another_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.mcap").write_bytes(b"something else")
    take = Take("mine", G1_29, "sim")
    for number in range(50):
        take.add(10_000 * number, [0.01 * number] * len(G1_29.names))
    take.file_problem = BadRequestError("the disk is full")
    save_elsewhere(take)
    assert take.file == tmp_path / "mine 2.mcap"
    assert len(load(take.file)) == take.samples
    assert f"rote takes import '{take.file}'" in capsys.readouterr().err
    assert (tmp_path / "mine.mcap").read_bytes() == b"something else"
