"""The documentation can be built as a site, and its links lead somewhere."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from documentation import PAGES, ROOT

NEEDED = ("mkdocs", "material", "mkdocstrings")
LINK = re.compile(r"\]\(([^)#\s]+)(#[^)\s]*)?\)")


def built(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr


@pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in NEEDED),
    reason="the packages of the dependency group `docs` are not installed",
)
@pytest.mark.timeout(600)  # it computes for long, beside other tests
def test_the_site_is_built_without_a_warning_and_has_the_public_api(tmp_path: Path) -> None:
    built(tmp_path)
    reference = (tmp_path / "reference" / "rote.html").read_text(encoding="utf-8")
    for name in (
        "connect",
        "open",
        "Robot.teach",
        "Take",
        "Track",
        "Track.trim",
        "load",
        "Playing",
    ):
        assert f'id="rote.{name}"' in reference
    start = (tmp_path / "index.html").read_text(encoding="utf-8")
    assert start.index("quickstart.html") < start.index("architecture.html")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_file_leads_to_one(page: Path) -> None:
    for link, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link
