"""Every block of code in the documentation runs as it stands there, in its order."""

import re
import tomllib
from pathlib import Path

import pytest

from documentation import PAGES, ROOT, RUN, SHOWN, Reader, blocks, has_code

KINDS = {
    "not run", "line not run", "run first", "run with", "with file", "within", "arguments",
    "raises",
}  # fmt: skip
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


def test_no_block_is_overlooked() -> None:
    for page in PAGES:
        fences = re.findall(r"^ *(?:```|~~~)", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert len(fences) == 2 * len(blocks(page)), page


@pytest.mark.timeout(300)  # the robots of some pages move in real time
@pytest.mark.parametrize("page", [page for page in PAGES if has_code(page)], ids=name)
def test_what_a_page_shows_can_be_done(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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
    if reader.too_busy:
        pytest.skip("; ".join(reader.too_busy))
