"""A show is printed as a cue sheet, and locked against changes before it is run."""

import json
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rote.cli import main
from rote.errors import BadRequestError
from rote.stage.show.file import from_data
from rote.stage.show.sheet import make_sheet, sheet_page
from rote.stage.show_files import read_show
from rote.stage.show_lock import check_lock, lock_show

EXAMPLE = Path(__file__).parents[2] / "examples" / "show"


class PageReader(HTMLParser):
    """Collects the tags and texts of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def evening(name: str = "hello") -> dict[str, object]:
    return {
        "rote_show": 1,
        "title": "<Evening>",
        "roles": {"left": {}, "right": {}},
        "sections": [
            {
                "name": name,
                "clips": [
                    {"role": "right", "take": "bow", "at_s": 61.5, "mirror": True, "speed": 0.5},
                    {"role": "left", "take": "wave", "from_s": 1},
                ],
                "cues": [
                    {"at_s": 2, "osc": "/cue/1", "to": "10.0.0.2:53000", "args": [1, "x"]},
                    {"at_s": 0.5, "role": "left", "light": [255, 0, 0]},
                ],
            },
            {
                "name": "end",
                "start": {"on": "after", "seconds": 2},
                "loop": 2,
                "clips": [{"role": "left", "action": "stored"}],
            },
        ],
    }


def test_a_sheet_has_one_line_per_clip_and_cue_in_order() -> None:
    lines = make_sheet(from_data(evening()), {"left": "ann"})
    assert [tuple(line) for line in lines] == [
        ("hello", "0:00.00", "left (ann)", "take wave (from 1 s to the end)", "GO"),
        ("", "0:00.50", "left (ann)", "light #ff0000", ""),
        ("", "0:02.00", "-", "osc /cue/1 1 x to 10.0.0.2:53000", ""),
        ("", "1:01.50", "right", "take bow (mirrored, speed 0.5)", ""),
        (
            "end",
            "0:00.00",
            "left (ann)",
            "action stored",
            "2 s after the previous section, 2 times",
        ),
    ]


def test_the_page_of_a_sheet_shows_names_as_they_are() -> None:
    show = from_data(evening("<script>alert(1)</script>"))
    page = sheet_page(show, make_sheet(show))
    parser = PageReader()
    parser.feed(page)
    assert "script" not in parser.tags
    assert parser.tags.count("tr") == 1 + 5
    assert {"<Evening>", "<script>alert(1)</script>"} <= set(parser.texts)


def test_a_sheet_is_printed_for_people_browsers_and_scripts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    file = str(EXAMPLE / "two_greet.json")
    assert main(["show", "sheet", file, "--cast", str(EXAMPLE / "cast.json")]) == 0
    assert "trigger" in capsys.readouterr().out
    assert main(["show", "sheet", file, "--html"]) == 0
    assert capsys.readouterr().out.startswith("<!doctype html>")
    assert main(["show", "sheet", file, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["lines"]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return a copy of the example show."""
    shutil.copytree(EXAMPLE, tmp_path / "show")
    return tmp_path / "show" / "two_greet.json"


def test_a_locked_show_that_was_changed_is_refused_with_what_was_changed(file: Path) -> None:
    show, files = read_show(file)
    assert check_lock(file, show, files) == ""
    lock_show(file, show, files)
    assert check_lock(file, show, files).startswith("20")
    sounds = sorted(each for each in file.parent.iterdir() if each.suffix == ".wav")
    assert sounds
    sounds[0].write_bytes(sounds[0].read_bytes() + b"\0")
    file.write_text(file.read_text() + "\n")
    with pytest.raises(BadRequestError, match="changed after it was locked") as caught:
        check_lock(file, show, files)
    assert "the show file" in str(caught.value)
    assert f"sound '{sounds[0].name}'" in str(caught.value)
    sounds[0].unlink()
    with pytest.raises(BadRequestError, match=sounds[0].name):
        check_lock(file, show, files)


def test_a_lock_is_checked_by_the_commands_and_removed_by_unlock(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["show", "lock", str(file)]) == 0
    file.write_text(file.read_text() + "\n")
    cast = str(file.parent / "cast.json")
    run = ["show", "run", str(file), "--cast", cast, "--stage", str(file.parent / "none")]
    for command in (["show", "check", str(file)], run):
        assert main(command) != 0
        assert "changed after it was locked" in " ".join(capsys.readouterr().err.split())
    assert main(["show", "unlock", str(file)]) == 0
    assert capsys.readouterr().out == "Unlocked.\n"
    assert main(["show", "unlock", str(file)]) == 0
    file.with_name("two_greet.json.lock").write_text("[]")
    assert main(["show", "check", str(file)]) != 0
    assert "cannot be read" in " ".join(capsys.readouterr().err.split())
