"""The page on architecture shows the packages that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rote"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_picture_shows_every_package_and_root_module() -> None:
    picture = PAGE.partition("```text\nsrc/rote/\n")[2].partition("```")[0]
    shown = re.findall(r"^  ([a-z0-9_]+(?:/|\.py)) ", picture, re.MULTILINE)
    assert shown
    present = {path.name for path in SOURCE.glob("*.py")}
    present |= {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert set(shown) == present - {"__init__.py", "__main__.py"}
