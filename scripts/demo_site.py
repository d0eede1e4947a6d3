"""Build the demo: the page as static files, which needs no server. `make demo-site` calls it.

    demo_site.py [FOLDER]     by default site/demo, where the documentation links to it

The page is built from page/src/demo. `demo.json` beside it has the package's own sample motions,
the answers of `rote web` about them, and the robot that plays them.
"""

import asyncio
import json
import shutil
import sys
import tempfile
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import numpy as np
import page_build
from fastapi import Response

from rote import __version__
from rote.messages import HAND_SCRIPTS
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.stage.demo import demo_take
from rote.web.routes import robot as robot_routes
from rote.web.routes import takes as take_routes
from rote.web.services.edits import edit_table
from rote.web.work import takes as take_work
from rote.web.work.drawing import make_drawing

OUT = page_build.ROOT / "site" / "demo"
MAX_BYTES = 5_000_000
_DIGITS = 7
"""Digits of an angle: with fewer, the rounding dominates the jerk."""


def build_demo(out: Path = OUT) -> int:
    """Build the demo in a folder; return its size in bytes.

    Raises `CannotBuildError` if a tool is missing, or the folder is larger than `MAX_BYTES`.
    """
    page_build.bundle_page(out, "--mode", "demo")
    licences = [page_build.bundled_licences()]
    shapes = page_build.MODEL / "g1.glb"
    if shapes.is_file():
        shutil.copy(shapes, out)
        licences.append((page_build.MODEL / page_build.LICENCES).read_text(encoding="utf-8"))
    (out / page_build.LICENCES).write_text("\n".join(licences), encoding="utf-8")
    document = demo_data(shapes=shapes.is_file())
    (out / "demo.json").write_text(json.dumps(document, separators=(",", ":")), encoding="utf-8")
    size = sum(path.stat().st_size for path in out.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise page_build.CannotBuildError(
            f"it has {size / 1e6:.1f} MB; {MAX_BYTES / 1e6:.0f} MB are allowed. Make it smaller"
        )
    return size


def demo_data(*, shapes: bool) -> dict[str, Any]:
    """Return what the demo's page reads at its start; `shapes` says if g1.glb is there."""
    with tempfile.TemporaryDirectory(prefix="rote-demo-") as name:
        folder = Path(name)
        for script in HAND_SCRIPTS:
            Library(folder).save(demo_take(script), script)
        entries = json.loads(take_work.entries(folder, "", 0, None, ""))["takes"]
        samples = [_sample(folder, entry) for entry in entries]
    return {
        "version": __version__,
        "model": {**make_drawing(G1_29), "model": shapes},
        "robots": _answer(robot_routes.robots()),
        "edits": edit_table(),
        "formats": _answer(take_routes.formats())["formats"],
        "samples": samples,
    }


def _answer(route: Coroutine[Any, Any, Response]) -> Any:
    """Return the document that a route of `rote web` answers with."""
    return json.loads(bytes(asyncio.run(route).body))


def _sample(folder: Path, entry: dict[str, Any]) -> dict[str, Any]:
    name = entry["name"]
    track = take_work.load(folder, name)
    shown = take_work.describe(track)
    return {
        "entry": entry,
        "check": json.loads(take_work.check_edited(folder, name, None, [])),
        "robot": {key: shown[key] for key in ("build", "family", "title", "limbs")},
        "track": {
            "names": list(track.names),
            "times_s": np.round(track.times_s, _DIGITS).tolist(),
            "joints_rad": np.round(track.joints_rad, _DIGITS).tolist(),
            "marks": shown["marks"],
            "history": shown["history"],
            "source": track.source,
        },
    }


def main(arguments: list[str]) -> int:
    """Build it in the folder of the arguments; return the exit code."""
    out = Path(arguments[0]).resolve() if arguments else OUT
    try:
        size = build_demo(out)
    except page_build.CannotBuildError as error:
        print(f"The demo cannot be built: {error}. Then: make demo-site.", file=sys.stderr)
        return 3
    print(f"The demo is in {out}: {size / 1e6:.1f} MB. Try it: python -m http.server -d {out}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
