"""The pendant in a real browser: what a person does, at a desk and on a phone."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import wave
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chromium_script import write_chromium_script
from forked import Rote
from rote.model.g1 import G1_29
from rote.model.registry import build_named
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.stage.demo import demo_take
from scripted_tracks import make_scripted_track

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "page"
BUILT = ROOT / "src" / "rote" / "web" / "static" / "index.html"
STORY = Path(__file__).with_name("story.mjs")
STORY_EDITOR = Path(__file__).with_name("story_editor.mjs")
STORY_CLASS = Path(__file__).with_name("story_class.mjs")
SCREENS = Path(__file__).with_name("screens.mjs")
STORY_LIBRARY = Path(__file__).with_name("story_library.mjs")
STORY_AXE = Path(__file__).with_name("story_axe.mjs")
STORY_SHOW = Path(__file__).with_name("story_show.mjs")
STORY_A1 = Path(__file__).with_name("story_a1.mjs")
STORY_TABS = Path(__file__).with_name("story_tabs.mjs")
STORY_LEARN = Path(__file__).with_name("story_learn.mjs")
STORY_TRUTH = Path(__file__).with_name("story_truth.mjs")
RUN_STORIES = Path(__file__).with_name("run_stories.mjs")
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


def _needs(program: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@contextmanager
def _serving(home: Path, *more: str, compiles: bool = True) -> Iterator[dict[str, Any]]:
    """Run a web server with an empty library; yield its JSON line and its process id."""
    serve = ["web", "--no-browser", "--port", "0", "--json", *more]
    environment = {**os.environ, "ROTE_HOME": str(home)}
    if not compiles:
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
    with Rote(*serve, stdout=subprocess.PIPE, text=True, env=environment) as server:
        assert server.stdout is not None
        ready = server.stdout.readline()
        assert ready, "rote web did not start"
        try:
            yield {**json.loads(ready), "pid": server.pid}
        finally:
            server.send_signal(signal.SIGCONT)  # a story may have failed while it was frozen
            server.send_signal(signal.SIGINT)
            try:
                server.wait(20)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


RunStory = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def chromium(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_chromium_script(tmp_path_factory.mktemp("browser"))


@pytest.fixture(scope="module")
def run_story(chromium: str) -> Iterator[RunStory]:
    """Run a story, all in one Chromium with contexts of their own; return its report."""
    with ExitStack() as stack:
        runner: subprocess.Popen[str] | None = None

        def start_runner() -> subprocess.Popen[str]:
            settings = json.dumps({"page": str(PAGE), "chromium": chromium})
            made = stack.enter_context(
                subprocess.Popen(
                    ["node", str(RUN_STORIES), settings],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            assert made.stdin is not None
            stack.callback(made.stdin.close)  # it ends then
            return made

        def run_in_browser(task: dict[str, Any], story: Path = STORY) -> dict[str, Any]:
            nonlocal runner
            if runner is None or runner.poll() is not None:
                runner = start_runner()
            assert runner.stdin is not None
            assert runner.stdout is not None
            given = {"story": str(story), "task": {"page": str(PAGE), **task}}
            runner.stdin.write(f"{json.dumps(given)}\n")
            runner.stdin.flush()
            timer = threading.Timer(PATIENCE_S, runner.kill)
            timer.start()
            line = runner.stdout.readline()
            timer.cancel()
            assert line, f"{story.name} has ended without a report"
            told = json.loads(line)
            assert "error" not in told, told["error"]
            report: dict[str, Any] = told["report"]
            return report

        yield run_in_browser


@pytest.fixture
def pendant(tmp_path: Path) -> Iterator[str]:
    """The address of a pendant with an empty library."""
    with _serving(tmp_path) as ready:
        yield ready["url"]


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("width", "height", "scheme"),
    [
        pytest.param(1440, 900, "dark", id="desk"),
        # Other stories have phones, too.
        pytest.param(360, 740, "light", id="phone", marks=pytest.mark.soak),
    ],
)
def test_a_person_teaches_edits_plays_and_stops_with_no_error_on_the_console(
    run_story: RunStory, pendant: str, tmp_path: Path, width: int, height: int, scheme: str
) -> None:
    port = _free_port()
    picture = tmp_path / "failed.png"
    task = {
        "url": pendant,
        "width": width,
        "height": height,
        "scheme": scheme,
        "picture": str(picture),
        "sim": [sys.executable, "-m", "rote", "sim", "--udp", f"127.0.0.1:{port}", "--serial", ""],
        "simUrl": f"udp://127.0.0.1:{port}",
    }
    _judge(run_story(task), picture, 17)


def test_stop_is_always_seen_and_the_page_tells_what_the_arms_will_do(
    run_story: RunStory, pendant: str, tmp_path: Path
) -> None:
    picture = tmp_path / "failed.png"
    task = {
        "url": pendant,
        "picture": str(picture),
        "pictures": os.environ.get("ROTE_PICTURES"),
    }
    _judge(run_story(task, SCREENS), picture, 8)


@pytest.mark.parametrize(
    ("story", "steps"),
    [
        # The server is frozen with SIGSTOP while a motion plays and while it teaches.
        pytest.param("silentServer", 5, id="silent-server"),
        # A simulated robot is frozen while it plays and while it is taught.
        pytest.param("silentRobot", 6, id="silent-robot"),
        pytest.param("fullDisk", 3, id="full-disk", marks=_needs("prlimit")),
    ],
)
def test_what_the_page_shows_is_true_while_a_part_fails(
    run_story: RunStory, tmp_path: Path, story: str, steps: int
) -> None:
    picture, port = tmp_path / "failed.png", _free_port()
    # A server that may write only 1,000 bytes would leave cut-off compiled modules behind.
    with _serving(tmp_path, compiles=story != "fullDisk") as ready:
        task = {
            "url": ready["url"],
            "pid": ready["pid"],
            "story": story,
            "picture": str(picture),
            "pictures": os.environ.get("ROTE_PICTURES"),
            "sim": [sys.executable, "-m", "rote", "sim", "--udp", f"127.0.0.1:{port}",
                    "--serial", "", "--store", str(tmp_path / "robot.json")],
            "simUrl": f"udp://127.0.0.1:{port}",
            "rote": [sys.executable, "-m", "rote"],
        }  # fmt: skip
        _judge(run_story(task, STORY_TRUTH), picture, steps)


def _sway() -> Track:
    """An elbow that goes out and back, in two seconds."""
    times_s = np.arange(101) / 50
    joints_rad = np.repeat(np.array(G1_29.rest_rad)[None, :], len(times_s), axis=0)
    elbow = joints_rad[:, G1_29.names.index("right_elbow_joint")]
    elbow += 0.2 - 0.2 * np.cos(np.pi * times_s)
    return Track(
        times_s=times_s, joints_rad=joints_rad, names=G1_29.names, variant=G1_29.name, source="made"
    )


def _english() -> list[str]:
    """Return the page's English sentences that German says otherwise, by the page's own files."""
    script = """
      import { transformSync } from 'esbuild';
      import { readFileSync } from 'node:fs';
      const made = {};
      for (const name of ['texts', 'texts-de']) {
        const written = readFileSync(`src/${name}.ts`, 'utf-8');
        const source = written.replace(/^export const TEXTS.*$/m, '');
        const code = transformSync(source, { loader: 'ts', format: 'esm' }).code
          .replace(/import .*languages.*/g, '');
        const packed = Buffer.from(code).toString('base64');
        made[name] = await import(`data:text/javascript;base64,${packed}`);
      }
      const found = [];
      const walk = (one, other) => {
        for (const [key, value] of Object.entries(one)) {
          if (typeof value === 'object') walk(value, other?.[key] ?? {});
          else if (typeof value === 'string' && value !== other?.[key]) found.push(value);
        }
      };
      walk(made.texts.ENGLISH, made['texts-de'].GERMAN);
      console.log(JSON.stringify(found));
    """
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script],
        cwd=PAGE,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    found: list[str] = json.loads(done.stdout)
    assert len(found) > 200
    return found


def test_the_library_the_cues_and_the_language_do_what_a_person_expects(
    run_story: RunStory, pendant: str, tmp_path: Path
) -> None:
    picture, csv = tmp_path / "failed.png", tmp_path / "sway.csv"
    files.save(_sway(), csv)
    entry = {
        "duration_s": 2.0, "samples": 101, "version": 1, "versions": [1], "tags": [],
        "variant": G1_29.name, "family": G1_29.family, "title": G1_29.title, "source": "made",
        "problem": "", "thumbnail": "",
    }  # fmt: skip
    task = {
        "url": pendant,
        "picture": str(picture),
        "csv": csv.read_text(encoding="utf-8"),
        "entry": entry,
        "english": _english(),
        "pictures": os.environ.get("ROTE_PICTURES"),
    }
    _judge(run_story(task, STORY_LIBRARY), picture, 10)


@pytest.mark.skipif(
    not (PAGE / "node_modules" / "axe-core").is_dir(), reason="axe-core is not there: scripts/page"
)
@pytest.mark.parametrize(
    ("whole", "steps"),
    [
        # All that opens on the screens of a phone, and the screens of a desk in dark and German.
        pytest.param(False, 2, id="sample"),
        pytest.param(True, 3, id="whole", marks=pytest.mark.soak),
    ],
)
def test_axe_finds_nothing_on_any_screen(
    run_story: RunStory, pendant: str, tmp_path: Path, whole: bool, steps: int
) -> None:
    picture = tmp_path / "failed.png"
    task = {
        "url": pendant,
        "picture": str(picture),
        "whole": whole,
    }
    _judge(run_story(task, STORY_AXE), picture, steps)


def _judge(report: dict[str, Any], picture: Path, steps: int) -> None:
    for step in report["steps"]:
        print(f"{step['ms']} ms  {step['name']}")
    last = report["steps"][-1]["name"]
    assert report["failure"] is None, (
        f"{last}: {report['failure']} {report.get('said')} (see {picture})"
    )
    assert report["console"] == []
    assert len([step for step in report["steps"] if not step.get("again")]) == steps


def test_a_class_sees_who_is_here_and_who_commands(run_story: RunStory, tmp_path: Path) -> None:
    """A teacher, a pupil and a watcher: names, roles, the countdown and the lock; over HTTPS."""
    with _serving(tmp_path, "--tls", "--token", "a-token-for-a-class") as ready:
        task = {
            "url": ready["url"],
            "commandUrl": ready["command_url"],
            "watchUrl": ready["watch_url"],
            "pictures": str(tmp_path),
        }
        _judge(run_story(task, STORY_CLASS), tmp_path, 8)


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


@pytest.mark.quiet  # its legs want a command every 2 ms, and brake without one for 16 ms
def test_a_person_teaches_plays_and_stops_an_a1(
    run_story: RunStory, pendant: str, a1: str, tmp_path: Path
) -> None:
    picture = tmp_path / "failed.png"
    task = {
        "url": pendant,
        "simUrl": a1,
        "width": 1000,
        "height": 700,
        "picture": str(picture),
    }
    _judge(run_story(task, STORY_A1), picture, 8)


def _motion(names: tuple[str, ...], variant: str, seconds: float) -> Track:
    """A calm motion at 100 Hz that takes each joint another way, within its limits."""
    joints = {joint.name: joint for joint in build_named(variant).joints}
    times_s = np.arange(round(seconds * 100) + 1) / 100
    rest = [build_named(variant).rest.get(name, 0.0) for name in names]
    columns = []
    for k, (name, at_rest) in enumerate(zip(names, rest, strict=True)):
        far = 0.45 if "elbow" in name else 0.3
        low, high = joints[name].lower_rad + far, joints[name].upper_rad - far
        columns.append(
            np.clip(at_rest + 0.2, low, high) + far * np.sin((0.8 + 0.05 * k) * times_s + k)
        )
    return Track(times_s=times_s, joints_rad=np.column_stack(columns), names=names, variant=variant)


ARMS = tuple(
    name
    for name in build_named("g1-29").names
    if any(part in name for part in ("shoulder", "elbow", "wrist"))
)


def test_a_person_edits_by_time_line_keyframes_hands_and_marks(
    run_story: RunStory, tmp_path: Path
) -> None:
    """The editor's own things, and that a long take opens quickly and a quadruped's is drawn."""
    library = Library(tmp_path / "takes")
    for name, seconds in (("wave", 6.0), ("other", 2.0)):
        library.save(_motion(ARMS, "g1-29", seconds), name)
    library.save(make_scripted_track("wave", 6.0), "hello")
    library.save(_motion(build_named("g1-29").names, "g1-29", 180.0), "long")
    library.save(_motion(build_named("a1").names, "a1", 3.0), "trot")
    picture = tmp_path / "failed.png"
    with _serving(tmp_path) as ready:
        task = {
            "url": ready["url"],
            "picture": str(picture),
            "pictures": os.environ.get("ROTE_PICTURES"),
            "only": os.environ.get("ROTE_ONLY", "").split("|")
            if "ROTE_ONLY" in os.environ
            else None,
        }
        report = run_story(task, STORY_EDITOR)
    print(f"a take of 180 s opened in {report['opened_ms']} ms")
    _judge(report, picture, 13)


@pytest.mark.skipif(
    not (PAGE / "node_modules" / "axe-core").is_dir(), reason="axe-core is not there: scripts/page"
)
def test_a_person_learns_from_three_takes_and_saves_the_adapted_motion(
    run_story: RunStory, tmp_path: Path
) -> None:
    library = Library(tmp_path / "takes")
    takes = ["wave 1", "wave 2", "wave 3"]
    once = make_scripted_track("wave", 3.0).keep(ARMS)
    for number, name in enumerate(takes):
        size = 0.05 * np.sin(np.arange(len(ARMS)) + 2 * number)
        bulge = np.sin(np.pi * once.times_s / once.duration_s)[:, None] ** 2
        library.save(replace(once, joints_rad=once.joints_rad + size * bulge), name)
    picture = tmp_path / "failed.png"
    with _serving(tmp_path) as ready:
        task = {
            "url": ready["url"],
            "takes": takes,
            "picture": str(picture),
            "pictures": os.environ.get("ROTE_PICTURES"),
        }
        _judge(run_story(task, STORY_LEARN), picture, 5)


def test_two_tabs_lose_no_edits_of_each_other(run_story: RunStory, tmp_path: Path) -> None:
    """Two tabs at one take; slow edits and saves, deleted takes and shows, names over 31 bytes."""
    library = Library(tmp_path / "takes")
    for name in ("wave", "other", "short"):
        library.save(_motion(ARMS, "g1-29", 3.0), name)
    long, longer = f"a take {'ä' * 16}", f"take {'o' * 40}"
    file = library.folder / "short.mcap"
    for name in (long, longer):
        shutil.copy(file, file.with_name(f"{name}.mcap"))
    picture = tmp_path / "failed.png"
    with _serving(tmp_path) as ready:
        task = {
            "url": ready["url"],
            "picture": str(picture),
            "long": long,
            "longer": longer,
        }
        _judge(run_story(task, STORY_TABS), picture, 7)


def _bell(path: Path) -> Path:
    """A tone that fades, as a WAV file."""
    times_s = np.arange(8000) / 8000
    tone = np.sin(2 * np.pi * 440 * times_s) * np.exp(-3 * times_s)
    with wave.open(str(path), "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes((tone * 30000).astype("<i2").tobytes())
    return path


@pytest.mark.quiet  # a conductor or agent that is kept waiting for a second ends the section
def test_a_person_makes_a_show_checks_it_and_presses_go_and_stop(
    run_story: RunStory, tmp_path: Path
) -> None:
    """A show in ten clicks and its cue list, takes on lanes, and the command line's own file."""
    pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")
    library = Library(tmp_path / "takes")
    for name in ("wave", "bow"):
        library.save(demo_take(name), name)
    picture = tmp_path / "failed.png"
    with _serving(tmp_path, "--stage-robots", "3") as ready:
        task = {
            "url": ready["url"],
            "picture": str(picture),
            "pictures": os.environ.get("ROTE_PICTURES"),
            "sound": str(_bell(tmp_path / "bell.wav")),
            "rote": [sys.executable, "-m", "rote"],
            "home": str(tmp_path),
            "file": str(tmp_path / "shows" / "greeting.json"),
        }
        _judge(run_story(task, STORY_SHOW), picture, 12)
