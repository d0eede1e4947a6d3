"""The documentation can be built as a site, and its links lead somewhere."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chromium_script import write_chromium_script
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
def test_the_site_is_built_without_a_warning_has_the_public_api_and_can_be_searched(
    tmp_path: Path,
) -> None:
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
    scripts = re.findall(r'<script[^>]* src="([^"]*)"', start)
    assert scripts
    assert not [script for script in scripts if "://" in script], (
        "nothing is fetched from elsewhere"
    )
    if shutil.which("chromium") is not None:
        assert count_found(tmp_path, "damping") > 5


def count_found(site: Path, word: str) -> int:
    """Search the site, opened as a file, and return how many pages have a word."""
    shown = subprocess.run(
        [write_chromium_script(site), "--headless", "--no-sandbox", "--disable-gpu",
         f"--user-data-dir={site}.user",
         "--virtual-time-budget=60000", "--dump-dom", f"file://{site}/index.html?q={word}"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout  # fmt: skip
    found = re.search(r"(\d+) matching documents", shown)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_link_to_a_file_leads_to_one(page: Path) -> None:
    for link, _ in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" not in link:
            assert (page.parent / link).exists(), link
