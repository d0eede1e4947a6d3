"""A page in a real browser as a client: it hides its addresses behind names, or tells none."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from chromium_script import write_chromium_script
from interop.processes import HERE, Network, Robot, has_address_beyond_loopback

PAGE = Path(__file__).parents[2] / "page"
PATIENCE_S = 90.0


def _missing() -> str:
    """Return why there is nothing to test with; empty where there is."""
    if shutil.which("node") is None or shutil.which("chromium") is None:
        return "node or chromium is not installed"
    if not (PAGE / "node_modules" / "playwright-core").is_dir():
        return "the page's tools are not there: scripts/page --tools"
    if not has_address_beyond_loopback():
        return "the only address is on loopback, which WebRTC does not use"
    return ""


pytestmark = pytest.mark.skipif(bool(_missing()), reason=_missing())


def visit(robot: Robot, chromium: str, *, hide: bool) -> dict[str, Any]:
    """Let a page ask the robot for its actions; return what it saw."""
    task = {
        "page": str(PAGE),
        "chromium": chromium,
        "offer": f"http://{robot.host}:8081/offer",
        "hide": hide,
    }
    done = subprocess.run(
        ["node", str(HERE / "browser_driver.mjs")],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    seen: dict[str, Any] = json.loads(done.stdout)
    return seen


@pytest.mark.parametrize("hide", [False, True], ids=["names", "nothing"])
def test_a_page_connects_that_tells_only_names_of_its_addresses_or_none(
    hide: bool, tmp_path: Path
) -> None:
    with Robot(Network(), "legacy") as robot:
        seen = visit(robot, write_chromium_script(tmp_path), hide=hide)
        # A browser that tells addresses would not show what this test is about.
        assert seen["candidates"]
        assert all(one.split(" ")[4].endswith(".local") for one in seen["candidates"])
        assert seen["kind"] == "application/json"
        assert seen["code"] == 0
        assert seen["list"][1][0]["name"] == "Waist_Drum_Dance"
