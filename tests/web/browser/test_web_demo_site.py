"""The demo without a server: it works from plain files, and its edits are those of the package."""

import json
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import demo_site
import numpy as np
import page_build
import pytest

from chromium_script import write_chromium_script
from rote.errors import BadRequestError
from rote.model.g1 import G1_29
from rote.motion import files
from rote.motion.edit.steps import apply
from rote.motion.track import Track
from rote.stage.demo import demo_take
from rote.web.work.drawing import make_drawing
from rote.web.work.takes import describe

PAGE = page_build.PAGE
STORY = Path(__file__).with_name("story_demo.mjs")
PATIENCE_S = 300

pytestmark = [
    pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed"),
    pytest.mark.skipif(
        not (PAGE / "node_modules" / "playwright-core").is_dir(),
        reason="the page's tools are not there: scripts/page --tools",
    ),
    pytest.mark.timeout(2 * PATIENCE_S),
]

RunEdits = Callable[[list[list[dict[str, Any]]]], list[dict[str, Any]]]

ELBOW, YAW = "right_elbow_joint", "right_shoulder_yaw_joint"
EDITS: list[list[dict[str, Any]]] = [
    [{"op": "trim", "start_s": 0.5, "end_s": 3.25}],
    [{"op": "trim", "start_s": 1.0, "end_s": 3.99}, {"op": "trim", "start_s": 0.0, "end_s": 1.5}],
    [{"op": "speed", "factor": 1.5}],
    [{"op": "reverse"}],
    [{"op": "mirror"}],
    [{"op": "mirror", "joints": ["left_arm"]}],
    [{"op": "keep", "joints": ["right_arm", "waist_yaw_joint"]}],
    [{"op": "drop", "joints": ["left_leg", YAW]}],
    [{"op": "keyframe", "time_s": 1.2, "pose": {ELBOW: 0.4, YAW: -0.1}}],
    [{"op": "keyframe", "time_s": 3.99, "pose": {ELBOW: 9.0 / 7}, "before_s": 1.0, "after_s": 0.2}],
    [
        {"op": "mark", "time_s": 1.0, "label": "up"},
        {"op": "mark", "time_s": 2.0, "label": "down"},
        {"op": "change_mark", "time_s": 2.0, "label": "low", "to_s": 2.5},
        {"op": "speed", "factor": 2.0},
        {"op": "reverse"},
        {"op": "remove_mark", "time_s": 1.495},
    ],
]
REFUSED: list[list[dict[str, Any]]] = [
    [{"op": "trim", "start_s": 2.0, "end_s": 1.0}],
    [{"op": "keyframe", "time_s": 1.0, "pose": {ELBOW: 5.0}}],
    [{"op": "remove_mark", "time_s": 1.0}],
    [{"op": "keep", "joints": ["tail_joint"]}],
]
RUN_EDITS = """
const { applySteps, jerkOf, peakSpeedOf } = await import(process.argv[1]);
let text = "";
for await (const part of process.stdin) text += part;
const { tracks, joints, limbs, edits } = JSON.parse(text);
const context = { joints, limbs };
const answers = edits.map((steps) => {
  try {
    const track = applySteps(tracks.wave, steps, context);
    return { ...track, jerk: jerkOf(track), peak_rad_s: peakSpeedOf(track) };
  } catch (error) {
    return { refused: error.constructor.name, message: error.message };
  }
});
console.log(JSON.stringify(answers));
"""


@pytest.fixture(scope="module")
def run_edits(tmp_path_factory: pytest.TempPathFactory) -> RunEdits:
    """A function that applies lists of steps to the wave by the demo's TypeScript."""
    bundle = tmp_path_factory.mktemp("edits") / "edits.mjs"
    esbuild = [str(PAGE / "node_modules" / ".bin" / "esbuild"), "src/demo/edits.ts"]
    options = ["--bundle", "--format=esm", "--keep-names", "--log-level=error"]
    subprocess.run([*esbuild, *options, f"--outfile={bundle}"], cwd=PAGE, check=True)
    samples = demo_site.demo_data(shapes=False)["samples"]
    context = {
        "tracks": {each["entry"]["name"]: each["track"] for each in samples},
        "joints": make_drawing(G1_29)["joints"],
        "limbs": samples[0]["robot"]["limbs"],
    }

    def run(edits: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
        done = subprocess.run(
            ["node", "--input-type=module", "-e", RUN_EDITS, bundle.as_uri()],
            input=json.dumps({**context, "edits": edits}),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        answers: list[dict[str, Any]] = json.loads(done.stdout)
        return answers

    return run


def _edited(steps: list[dict[str, Any]]) -> Track:
    return apply(demo_take("wave"), steps, {name: demo_take(name) for name in ("bow", "wave")})


def test_an_edit_of_the_demo_gives_what_the_package_gives(run_edits: RunEdits) -> None:
    for steps, found in zip(EDITS, run_edits(EDITS), strict=True):
        expected = _edited(steps)
        assert found.get("refused") is None, (steps, found)
        assert found["names"] == list(expected.names)
        np.testing.assert_allclose(found["times_s"], expected.times_s, atol=1e-6)
        np.testing.assert_allclose(found["joints_rad"], expected.joints_rad, atol=1e-6)
        assert found["history"] == list(expected.history)
        assert [mark["label"] for mark in found["marks"]] == [m.label for m in expected.marks]
        np.testing.assert_allclose(
            [mark["time_s"] for mark in found["marks"]],
            [mark.time_s for mark in expected.marks],
            atol=1e-6,
        )
        shown = describe(expected)
        assert found["peak_rad_s"] == pytest.approx(shown["peak_rad_s"], abs=1e-3)
        assert found["jerk"] == pytest.approx(shown["jerk"], rel=0.01)


def test_an_edit_that_the_package_refuses_is_refused_by_the_demo(run_edits: RunEdits) -> None:
    for steps, found in zip(REFUSED, run_edits(REFUSED), strict=True):
        begin = f"step {len(steps)}, {steps[-1]['op']}: "
        assert found.get("refused") == "EditError", (steps, found)
        assert found["message"].startswith(begin)
        with pytest.raises(BadRequestError, match=begin):
            _edited(steps)


def test_an_edit_that_only_the_package_can_do_is_left_to_it(run_edits: RunEdits) -> None:
    left: list[list[dict[str, Any]]] = [
        [{"op": "smooth"}], [{"op": "trim", "auto": True}], [{"op": "fit"}], [{"op": "retime"}]
    ]  # fmt: skip
    assert {found["refused"] for found in run_edits(left)} == {"NeedsRoteError"}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built demo."""
    folder = tmp_path_factory.mktemp("site") / "demo"
    assert demo_site.build_demo(folder) <= 5_000_000
    return folder


class _Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def address(demo: Path) -> Iterator[str]:
    """Where a plain file server has the demo, in a folder below its root."""
    handler = partial(_Handler, directory=str(demo.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/demo/"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed")
def test_the_demo_plays_stops_and_edits_from_files_alone(
    demo: Path, address: str, tmp_path: Path
) -> None:
    picture = tmp_path / "failed.png"
    task = {
        "page": str(PAGE),
        "chromium": write_chromium_script(tmp_path),
        "url": address,
        "picture": str(picture),
        "shapes": (demo / "g1.glb").is_file(),
    }
    done = subprocess.run(
        ["node", str(STORY)],
        input=json.dumps(task),
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    for step in report["steps"]:
        print(f"{step['ms']} ms  {step['name']}")
    assert report["failure"] is None, f"{report['failure']} {report['said']} (see {picture})"
    assert report["console"] == []
    assert report["elsewhere"] == []
    downloaded = tmp_path / "beat.csv"
    downloaded.write_text(report["csv"], encoding="utf-8")
    np.testing.assert_allclose(
        files.load(downloaded).joints_rad, demo_take("drum").joints_rad, atol=1e-6
    )


def test_the_page_of_rote_web_contains_nothing_of_the_demo() -> None:
    if not (page_build.STATIC / "index.html").is_file():
        pytest.skip("the page is not built: scripts/page")
    assert not any(
        b"demo.json" in path.read_bytes() for path in (page_build.STATIC / "assets").glob("*.js")
    )
