"""The pendant in a real browser: what a person does, at a desk and on a phone."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "page"
BUILT = ROOT / "src" / "rote" / "web" / "static" / "index.html"
STORY = Path(__file__).with_name("story.mjs")
STORY_CLASS = Path(__file__).with_name("story_class.mjs")
STORY_A1 = Path(__file__).with_name("story_a1.mjs")
HELD_A1 = Path(__file__).with_name("held_a1.py")
PATIENCE_S = 400


def _missing() -> str:
    """Return why there is nothing to test with; empty where there is."""
    if shutil.which("node") is None:
        return "node is not installed"
    if shutil.which("chromium") is None:
        return "chromium is not installed: apt-get install chromium"
    if not (PAGE / "node_modules" / "playwright-core").is_dir():
        return "the page's tools are not there: scripts/page --tools"
    if not BUILT.is_file():
        return "the page is not built: scripts/page"
    return ""


pytestmark = [
    pytest.mark.skipif(bool(_missing()), reason=_missing()),
    pytest.mark.timeout(PATIENCE_S + 60),
]


@contextmanager
def _serving(home: Path, *more: str) -> Iterator[dict[str, str]]:
    """Run a pendant with an empty library, and yield what it tells scripts of itself."""
    serve = [sys.executable, "-m", "rote", "web", "--no-browser", "--port", "0", "--json", *more]
    environment = {**os.environ, "ROTE_HOME": str(home)}
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        ready = server.stdout.readline()
        assert ready, "rote web did not start"
        try:
            yield json.loads(ready)
        finally:
            server.send_signal(signal.SIGINT)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


@pytest.fixture
def pendant(tmp_path: Path) -> Iterator[str]:
    """The address of a pendant with an empty library."""
    with _serving(tmp_path) as ready:
        yield ready["url"]


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _told(
    task: dict[str, Any], story: Path = STORY, before: tuple[str, ...] = ()
) -> dict[str, Any]:
    """Let the browser live the story, and return its report."""
    done = subprocess.run(
        [*before, "node", str(story)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report: dict[str, Any] = json.loads(done.stdout)
    return report


@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [(1440, 900, "dark"), (360, 740, "light")],
    ids=["desk", "phone"],
)
def test_a_person_teaches_edits_plays_and_stops_with_no_error_on_the_console(
    pendant: str, tmp_path: Path, width: int, height: int, scheme: str
) -> None:
    port = _free_port()
    picture = tmp_path / "failed.png"
    task = {
        "url": pendant,
        "width": width,
        "height": height,
        "scheme": scheme,
        "page": str(PAGE),
        "chromium": shutil.which("chromium"),
        "picture": str(picture),
        "sim": [sys.executable, "-m", "rote", "sim", "--udp", f"127.0.0.1:{port}", "--serial", ""],
        "simUrl": f"udp://127.0.0.1:{port}",
    }
    _judge(_told(task), picture, 17)


def _judge(report: dict[str, Any], picture: Path, steps: int) -> None:
    for step in report["steps"]:
        print(f"{step['ms']} ms  {step['name']}")
    last = report["steps"][-1]["name"]
    assert report["failure"] is None, (
        f"{last}: {report['failure']} {report.get('said')} (see {picture})"
    )
    assert report["console"] == []
    assert len([step for step in report["steps"] if not step.get("again")]) == steps


def test_a_class_sees_who_is_here_and_who_commands(tmp_path: Path) -> None:
    """A teacher, a pupil and a watcher: names, roles, the countdown and the lock; over HTTPS."""
    with _serving(tmp_path, "--tls", "--token", "a-token-for-a-class") as ready:
        task = {
            "url": ready["url"],
            "commandUrl": ready["command_url"],
            "watchUrl": ready["watch_url"],
            "page": str(PAGE),
            "chromium": shutil.which("chromium"),
            "pictures": str(tmp_path),
        }
        _judge(_told(task, STORY_CLASS), tmp_path, 6)


@pytest.fixture
def a1() -> Iterator[str]:
    """The address of a simulated A1 that stands; somebody holds its legs once they are soft."""
    number = os.getpid()
    host = f"127.87.{number // 250 % 250 + 1}.{number % 250 + 1}"
    simulate = [sys.executable, str(HELD_A1), host]
    with subprocess.Popen(simulate, stdout=subprocess.PIPE, text=True) as robot:
        assert robot.stdout is not None
        yield json.loads(robot.stdout.readline())["url"]
        robot.terminate()


def test_a_person_teaches_plays_and_stops_an_a1(pendant: str, a1: str, tmp_path: Path) -> None:
    picture = tmp_path / "failed.png"
    task = {
        "url": pendant,
        "simUrl": a1,
        "width": 1000,
        "height": 700,
        "page": str(PAGE),
        "chromium": shutil.which("chromium"),
        "picture": str(picture),
    }
    # Motors come before pictures, also where the computer has too much to do.
    nice = ("nice",) if shutil.which("nice") else ()
    _judge(_told(task, STORY_A1, nice), picture, 7)
