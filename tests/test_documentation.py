"""Every block of code in the documentation runs as it stands there, in its order."""

import json
import re
import tomllib
from pathlib import Path

import pytest

from documentation import (
    PAGES,
    ROOT,
    RUN,
    SHORTER,
    SHOWN,
    Reader,
    blocks,
    check_installable,
    has_code,
)

KINDS = {
    "not run", "line not run", "run first", "run with", "with file", "within", "arguments",
    "raises",
}  # fmt: skip
NOT_RUN = {
    ("README", "make test"): "runs this test",
    ("CONTRIBUTING", "make demo"): "README shows it first, and there it is run",
    ("CONTRIBUTING", ".venv/bin/pre-commit"): "changes the checkout",
    ("CONTRIBUTING", "make test-fast"): "runs this test",
    ("docs/cli", "mkdir -p ~/.local"): "sets up the reader's own shell",
    ("docs/cli", "mkdir -p ~/.zfunc"): "sets up the reader's own shell",
    ("docs/cli", "mkdir -p ~/.config/fish"): "sets up the reader's own shell",
    ("docs/first-hour", "rote trial"): "asks the person at the keyboard",
    ("docs/first-hour", "rote teach"): "waits for the person at the keyboard",
    ("docs/first-hour", "rote play"): "plays what was taught by hand",
    ("docs/show", "rote stage demo"): "tests/stage runs it",
    ("docs/show", "rote stage new my-stage --at"): "needs three terminals",
    ("docs/show", "rote stage new my-stage --router"): "needs three computers",
    ("docs/show", "rote show run show.json"): "needs two conductors; tests/stage runs it",
    ("docs/bridges", "export ROS_DOMAIN_ID"): "needs ROS 2",
    ("docs/bridges", "rote web --agents"): "needs a terminal; tests/bridge runs it",
    ("docs/trial", "rote trial --robot webrtc"): "needs a robot",
    ("docs/trial", ".venv/bin/pytest"): "needs a robot, and runs this test",
    ("docs/install", "pip uninstall"): "removes the package under test",
    ("docs/exchange", "pip install ./packages"): "installs lerobot with torch",
    ("docs/capture", "tcpdump"): "needs a network interface and a right",
    ("docs/capture", "rote capture live"): "needs a network interface and a right",
}
"""All that no reader runs here, by the page and the beginning of the block or line."""
COMMAND = re.compile(r"^\$? ?(rote|pip|make|python|export|sudo|npm)\b", re.MULTILINE)


def name(page: Path) -> str:
    return str(page.relative_to(ROOT).with_suffix(""))


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_a_block_is_run_or_says_why_not(page: Path) -> None:
    for block in blocks(page):
        assert block.language in (*RUN, *SHOWN), f"{block}: say in which language this is"
        assert {kind for kind, _ in block.notes} <= KINDS, f"{block}: an unknown note"
        if block.language == "text":
            assert not COMMAND.search(block.code), f"{block}: these are commands, so sh"
        for reason in [*block.all("not run"), *block.all("line not run")]:
            assert len(reason.split()) > 2, f"{block}: say why it is not run"
        if block.language == "toml":
            tomllib.loads(block.code)
        if block.language == "json":
            json.loads(block.code)


def test_nothing_else_is_left_out() -> None:
    left_out = set()
    for page in PAGES:
        for block in blocks(page):
            if block.language in RUN and block.one("not run") is not None:
                left_out.add((name(page), block.code))
            for said in block.all("line not run"):
                left_out.add((name(page), said.partition(": ")[0]))
    for page_name, beginning in NOT_RUN:
        assert any(page == page_name and code.startswith(beginning) for page, code in left_out)
    assert len(left_out) == len(NOT_RUN), left_out


@pytest.mark.parametrize("wanted", ["rote-robot[nothing]", "rote-robots", "rote-robot[all", "./x"])
def test_a_page_cannot_tell_to_install_what_there_is_not(wanted: str) -> None:
    check_installable("rote-robot[all]")
    with pytest.raises(AssertionError):
        check_installable(wanted)


def test_no_block_is_overlooked() -> None:
    for page in PAGES:
        fences = re.findall(r"^ *(?:```|~~~)", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page


def test_every_motion_that_is_run_shorter_is_shown_by_a_page() -> None:
    shown = "".join(block.code for page in PAGES for block in blocks(page))
    assert [pattern for pattern in SHORTER if not re.search(pattern, shown)] == []


@pytest.mark.parametrize("page", ["first-hour", "troubleshooting"])
def test_a_text_that_a_page_quotes_is_one_of_the_product(page: str) -> None:
    product = "".join(
        re.sub(r'"\s*f?"', "", path.read_text(encoding="utf-8"))  # sentences over several lines
        for folder, ending in ((ROOT / "src" / "rote", "*.py"), (ROOT / "page" / "src", "*.ts"))
        for path in sorted(folder.rglob(ending))
    )
    written = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    quoted = re.findall(r"(?<!\*)\*([^*\n]+)\*(?!\*)", written)
    assert len(quoted) > 3
    # A figure of an example is a placeholder in the source.
    parts = [part for quote in quoted for part in re.split(r" [\d.]+ s\b|\.\.\. s", quote)]
    assert [part for part in parts if part.strip() not in product] == []


@pytest.mark.timeout(300)  # the robots of some pages move in real time
@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)], ids=name)
def test_what_a_page_shows_can_be_done(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("cyclonedds", reason="the pages show robots on DDS, too")
    folder = tmp_path / "folder"
    folder.mkdir()
    reader = Reader(page, folder, monkeypatch)
    try:
        for block in blocks(page):
            if block.language in RUN and block.one("not run") is None:
                try:
                    reader.run(block)
                except Exception as error:
                    error.add_note(f"in {block}")
                    raise
        reader.leave()
    finally:
        reader.give_up()
