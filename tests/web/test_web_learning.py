"""A page learns a motion from several takes, adapts it, and saves it as a take."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rote.motion.edit.hand_path import hand_positions_m
from rote.motion.track import Track
from rote.web.services.learning import MAX_MODELS
from scripted_tracks import make_scripted_track
from virtual import run
from web.pendant import Pendant, one_browser

NAMES = ["one", "two", "three"]


def repeated(script: str, seed: int, seconds: float = 2.0) -> Track:
    """A scripted motion as a person repeats it: each time a little larger or smaller."""
    track = make_scripted_track(script, seconds, rate_hz=50.0)
    size = 0.05 * np.random.default_rng(seed).normal(size=len(track.names))
    bulge = np.sin(np.pi * track.times_s / seconds)[:, None] ** 2
    larger = (np.ptp(track.joints_rad, axis=0) > 0.01) * bulge * size
    return replace(track, joints_rad=track.joints_rad + larger)


def save_takes(server: Pendant) -> None:
    for seed, name in enumerate(NAMES):
        server.library.save(repeated("wave", seed), name)


def target(track: Track, time_s: float, up_m: float) -> dict[str, Any]:
    """A point above the path of the right hand."""
    path = hand_positions_m(track, "right")
    x_m, y_m, z_m = path[int(np.abs(track.times_s - time_s).argmin())].tolist()
    return {"hand": "right", "time_s": time_s, "x_m": x_m, "y_m": y_m, "z_m": z_m + up_m}


def test_a_motion_is_learned_adapted_and_saved_as_a_take(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            save_takes(server)
            band = await page.post("/learn", takes=NAMES)
            assert (band["build"], band["takes"]) == ("g1-29", NAMES)
            assert band["duration_s"] == pytest.approx(2.0, abs=0.1)
            mean, spread = np.array(band["joints_rad"]), np.array(band["spread_rad"])
            assert mean.shape == spread.shape == (len(band["times_s"]), len(band["names"]))
            assert len(band["times_s"]) <= 200
            shoulder = band["names"].index("right_shoulder_pitch_joint")
            assert spread[len(spread) // 2, shoulder] > 5 * spread[0, shoulder]
            point = target(repeated("wave", 0), 1.0, up_m=0.03)
            asked = {"id": band["id"], "through": [point], "duration_s": 2.5}
            quick = await page.post("/learn/adapt", **asked, check=False)
            assert (quick["findings"], quick["ok"]) == (None, None)
            seen = await page.post("/learn/adapt", **asked)
            assert (seen["ok"], seen["joints_rad"]) == (True, quick["joints_rad"])
            assert not server.library.versions("new")
            entry = await page.post("/learn/save", **asked, name="new", over=0)
            assert (entry["name"], entry["version"]) == ("new", 1)
            saved = server.library.load("new")
            assert saved.joints_rad == pytest.approx(np.array(seen["joints_rad"]), abs=1e-4)
            assert saved.source == "learned from 3 takes"
            there = hand_positions_m(saved, "right")[np.abs(saved.times_s - 1.0).argmin()]
            assert there == pytest.approx([point["x_m"], point["y_m"], point["z_m"]], abs=0.005)
            taken = await page.refused("/learn/save", 409, **asked, name="new", over=0)
            assert taken["error"] == "name-taken"

    run(story())


def test_points_far_from_the_takes_and_out_of_reach_are_explained(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            save_takes(server)
            model = (await page.post("/learn", takes=NAMES))["id"]
            far = target(repeated("wave", 0), 1.0, up_m=-0.15)
            adapted = await page.post("/learn/adapt", id=model, through=[far], check=False)
            (warning,) = adapted["far"]
            assert (warning["hand"], warning["time_s"]) == ("right", 1.0)
            assert warning["std"] > 3.0
            gone = {**far, "x_m": 2.0}
            refused = await page.refused("/learn/adapt", 400, id=model, through=[gone])
            assert "out of reach" in refused["message"]
            start = {"right_elbow_joint": 0.3}
            led = await page.post("/learn/adapt", id=model, start=start, check=False)
            elbow = led["names"].index("right_elbow_joint")
            assert led["joints_rad"][0][elbow] == pytest.approx(0.3, abs=0.01)
            await page.refused("/learn/adapt", 400, id=model, end={"tail": 0.1})

    run(story())


def test_takes_that_cannot_be_learned_from_are_explained(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            save_takes(server)
            server.library.save(repeated("bow", 0), "bow")
            few = await page.refused("/learn", 400, takes=NAMES[:2])
            assert "too few" in few["message"]
            other = await page.refused("/learn", 400, takes=[*NAMES, "bow"])
            assert "another motion" in other["message"]
            await page.refused("/learn", 404, takes=[*NAMES, "gone"])
            still = repeated("wave", 0)
            held = np.tile(still.joints_rad[:1], (len(still), 1))
            for name in ("still 1", "still 2", "still 3"):
                server.library.save(replace(still, joints_rad=held), name)
            resting = await page.refused("/learn", 400, takes=["still 1", "still 2", "still 3"])
            assert "does not move enough to learn from" in resting["message"]
            assert "teach it again" in resting["remedy"]

    run(story())


def test_the_server_keeps_the_learned_motions_that_were_used_last(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            save_takes(server)
            first, second = [(await page.post("/learn", takes=NAMES))["id"] for _ in range(2)]
            for _ in range(MAX_MODELS - 2):
                await page.post("/learn", takes=NAMES)
            await page.post("/learn/adapt", id=first, check=False)
            await page.post("/learn", takes=NAMES)
            await page.post("/learn/adapt", id=first, check=False)
            gone = await page.refused("/learn/adapt", 404, id=second, check=False)
            assert gone["error"] == "no-such-motion"

    run(story())
