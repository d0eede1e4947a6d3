"""The page's own tests, types and size, where the tools that build it are there."""

import gzip
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "page"
BUILT = ROOT / "src" / "rote" / "web" / "static"
MAX_BYTES = 1_500_000


def _missing() -> str:
    """Return why the page's tools cannot be run; empty where they can."""
    if shutil.which("node") is None:
        return "node is not installed"
    if not (PAGE / "node_modules" / ".ready").is_file():
        return "the page's tools are not there: scripts/page --tools"
    return ""


needs_tools = pytest.mark.skipif(bool(_missing()), reason=_missing())
needs_page = pytest.mark.skipif(
    not (BUILT / "index.html").is_file(), reason="the page is not built: make page"
)


@needs_tools
@pytest.mark.parametrize("tool", [("vitest", "run", "--no-color"), ("tsc", "--noEmit")])
def test_the_pages_own_tests_and_types_are_right(tool: tuple[str, ...]) -> None:
    command = ["node", f"node_modules/.bin/{tool[0]}", *tool[1:]]
    done = subprocess.run(
        command, cwd=PAGE, capture_output=True, text=True, timeout=110, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@needs_page
def test_the_page_is_small_and_loads_nothing_from_elsewhere() -> None:
    files = [path for path in BUILT.rglob("*") if path.is_file() and path.name != ".stamp"]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MAX_BYTES
    shown = (BUILT / "index.html").read_text(encoding="utf-8")
    asked = re.findall(r'(?:src|href)="([^"]+)"', shown)
    assert asked
    assert all(address.startswith("./") for address in asked), asked
    assert "<style" not in shown
    assert " style=" not in shown


def test_what_the_page_is_built_from_is_pinned_and_names_no_host() -> None:
    lock = (PAGE / "package-lock.json").read_text(encoding="utf-8")
    assert "://" not in lock
    packages = json.loads(lock)["packages"]
    assert len(packages) > 20
    assert [name for name, one in packages.items() if name and "integrity" not in one] == []
    wanted = json.loads((PAGE / "package.json").read_text(encoding="utf-8"))
    versions = wanted["dependencies"] | wanted["devDependencies"]
    assert [name for name, version in versions.items() if not version[0].isdigit()] == []
