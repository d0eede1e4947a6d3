"""A robot that only this file knows, registered as a third party would, goes all the way.

It is connected, taught, kept on disk in every format, edited, checked, compared, drawn, played and
stopped: by the API, at the command line and by the page's API. No file under src/ knows its name.
"""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import virtual
from rote.cli import main
from rote.connection import connect
from rote.errors import OtherBuildError, UnsafeMotionError
from rote.model import registry
from rote.model.family import Family
from rote.motion import files
from rote.motion.check.rules import check
from rote.motion.compare import compare
from rote.motion.draw.figure import draw_frames
from rote.motion.draw.plot import plot_track
from rote.motion.edit import operations as edit
from rote.motion.edit.mirror import mirror
from rote.motion.edit.retime import retime
from rote.motion.files.library import Library
from rote.motion.formats import FORMATS
from rote.motion.track import Track
from third_party import installed, package
from web.pendant import CHILDREN, one_browser

NAME = "wobbler"
NAMES = ("body_joint", "left_ear_joint", "right_ear_joint")
ROBOT = '''
"""A robot that nobody else has: a body that turns, and an ear on each side."""

from rote.model.family import (
    BodyFacts, Build, Evidence, Family, Grade, Joint, StreamFacts, X, Z, left_and_right,
)

def ear(index, side, y):
    return Joint(
        index=index, slot=10 + index, name=f"{side}_ear_joint", parent="body_link", axis=X,
        lower_rad=-0.5, upper_rad=1.5, velocity_rad_s=3.0, effort_nm=2.0,
        origin_m=(0.0, y, 0.3), mass_kg=0.2, com_m=(0.0, y, 0.0),
    )

JOINTS = (
    Joint(
        index=0, slot=4, name="body_joint", parent="foot", axis=Z, lower_rad=-1.0, upper_rad=1.0,
        velocity_rad_s=2.0, effort_nm=5.0, origin_m=(0.0, 0.0, 0.1), mass_kg=2.0, part="waist",
    ),
    ear(1, "left", 0.1),
    ear(2, "right", -0.1),
)
NAMES = tuple(joint.name for joint in JOINTS)
WOBBLER = Family(
    name="wobbler", title="Wobbler, a toy", joints=JOINTS,
    builds=(
        Build(
            name="wobbler-3", family="wobbler", title="Wobbler with a body that turns",
            joints=JOINTS, taught=NAMES, streamed=NAMES, stream=StreamFacts(), machines=(91,),
            rest={"left_ear_joint": 0.2, "right_ear_joint": -0.2},
        ),
        Build(
            name="wobbler-2", family="wobbler", joints=JOINTS[1:], taught=NAMES[1:],
            streamed=NAMES[1:], stream=StreamFacts(), machines=(92,),
        ),
    ),
    body=BodyFacts(base="foot", base_mass_kg=1.0),
    mirror=left_and_right(JOINTS),
    works={"teach": Grade.CHOSEN},
    evidence={"joints": Evidence(Grade.CHOSEN, "a test")},
)
'''
URL = f"sim://{NAME}?store=:memory:"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where pip would have put the package."""
    folder = tmp_path_factory.mktemp("site")
    source = folder / "source.txt"
    source.write_text(ROBOT, encoding="utf-8")
    return package(folder / "packages", source, NAME, NAME.upper())


@pytest.fixture(scope="module", autouse=True)
def family(site: Path) -> Iterator[Family]:
    with installed(site, NAME) as found:
        CHILDREN.close()  # those that were started before do not have the package
        yield found
    CHILDREN.close()


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROTE_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("ROTE_ROBOT", raising=False)
    return tmp_path


@pytest.fixture(scope="module")
def taught(family: Family, tmp_path_factory: pytest.TempPathFactory) -> Track:
    """What it was taught by a hand, over the same frames as any robot."""
    library = Library(tmp_path_factory.mktemp("takes"))

    async def story() -> Track:
        async with connect(URL) as robot:
            assert (robot.family, robot.build) == (family, family.default)
            assert await robot.preflight() == []
            async with robot.teach("wiggle", library=library) as take:
                await robot.move_by_hand("wave", 2.0)
                await asyncio.sleep(2.0)
            assert take.saved
            assert [action.name for action in (await robot.actions()).taught] == ["wiggle"]
            assert take.file is not None
            kept = files.load(take.file)
            assert np.allclose(kept.joints_rad, take.track.joints_rad)
            return take.track

    return virtual.run(story())


# ---- taught, and in every format ----------------------------------------------------------------


def test_no_file_of_ours_knows_it() -> None:
    source = Path(registry.__file__).parents[1]
    texts = (path.read_text(encoding="utf-8").lower() for path in source.rglob("*.py"))
    assert not any(NAME in text for text in texts)


def test_its_take_has_its_own_joints_and_moves(family: Family, taught: Track) -> None:
    assert taught.names == family.default.names
    assert taught.variant == "wobbler-3"
    assert np.ptp(taught.joints_rad, axis=0).min() > 0.05


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_its_take_survives_every_format(taught: Track, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"wiggle{suffix}"
    files.save(taught, path)
    again = files.load(path)
    assert (again.names, again.variant) == (taught.names, taught.variant)
    assert np.allclose(again.joints_rad, taught.joints_rad)


def test_it_is_trimmed_smoothed_retimed_and_mirrored(taught: Track) -> None:
    short = edit.trim(taught, 0.2, 1.5)
    smooth = edit.smooth(short, 4.0)
    timed = retime(smooth)
    turned = mirror(timed)
    left, right = (turned.names.index(f"{side}_ear_joint") for side in ("left", "right"))
    assert np.allclose(turned.joints_rad[:, left], -timed.joints_rad[:, right])
    assert np.allclose(mirror(turned).joints_rad, timed.joints_rad)
    assert turned.variant == "wobbler-3"
    assert compare(short, smooth).rms_rad < 0.05


def test_it_is_checked_against_its_own_limits(family: Family, taught: Track) -> None:
    assert check(taught).ok
    wild = taught.joints_rad.copy()
    wild[len(wild) // 2, 0] = 1.4  # a G1 has no such joint, and this one no such angle
    bad = Track(times_s=taught.times_s, joints_rad=wild, names=taught.names, variant=taught.variant)
    with pytest.raises(UnsafeMotionError) as raised:
        check(bad, build=family.default).permit()
    assert raised.value.joint == "body_joint"


def test_it_is_drawn_as_curves_and_as_a_figure(taught: Track, tmp_path: Path) -> None:
    plot_track(taught, tmp_path / "curves.png")
    draw_frames(taught, tmp_path / "figure.png", count=3)
    assert (tmp_path / "curves.png").stat().st_size > 5000
    assert (tmp_path / "figure.png").stat().st_size > 2000


# ---- played and stopped -------------------------------------------------------------------------


def test_it_plays_its_action_and_a_track_and_stops(taught: Track) -> None:
    async def story() -> None:
        async with connect(URL) as robot:
            async with robot.teach("wiggle"):
                await robot.move_by_hand("wave", 1.0)
                await asyncio.sleep(1.0)
            assert (await robot.play("wiggle", speed=0.5)).completed
            assert (await robot.play_track(taught, force=True)).completed
            playing = await robot.start("wiggle", loop=True)
            await asyncio.sleep(1.0)
            await robot.stop()
            assert not (await playing).completed
            assert robot.state is not None
            assert not robot.state.arms_soft

    virtual.run(story())


def test_its_smaller_build_asks_before_it_plays_what_the_larger_one_was_taught(
    taught: Track,
) -> None:
    async def story() -> None:
        async with connect("sim://wobbler-2?store=:memory:") as robot:
            with pytest.raises(OtherBuildError, match="body_joint"):
                robot.play_track(taught, force=True)
            assert (await robot.play_track(taught, force=True, mapped=True)).completed

    virtual.run(story())


# ---- at the command line ------------------------------------------------------------------------


def told(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    code = main([*arguments, "--json"])
    out, err = capsys.readouterr()
    assert code == 0, err
    document: dict[str, Any] = json.loads(out)
    return document


def test_the_command_line_teaches_lists_plays_and_keeps_it(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # In real time a busy computer sends the poses of a take too late, which ends the playback.
    monkeypatch.setattr("rote.platform.loop.new_loop", virtual.VirtualLoop)
    to = ("--robot", f"sim://{NAME}?store={home / 'wobbler.sqlite'}")
    assert told(capsys, "status", *to)["build"] == "wobbler-3"
    taught = told(capsys, "teach", "wiggle", "--hand", "wave", "--seconds", "1", *to)
    assert taught["saved"]
    assert taught["build"] == "wobbler-3"
    (action,) = told(capsys, "list", *to)["taught"]
    assert action["name"] == "wiggle"
    assert told(capsys, "play", "wiggle", *to)["completed"]
    (take,) = told(capsys, "takes", "list")["takes"]
    assert take["variant"] == "wobbler-3"
    assert told(capsys, "play", "wiggle", "--take", "--force", *to)["completed"]
    assert told(capsys, "stop", *to)["stopped"]
    out = home / "wiggle.npz"
    told(capsys, "takes", "export", "wiggle", str(out))
    for verb in ("mirror", "smooth", "retime"):
        assert told(capsys, "motion", verb, str(out), str(home / f"{verb}.npz"))["samples"]
    assert told(capsys, "motion", "check", str(out))["ok"]
    robots = told(capsys, "robots")["robots"]
    assert {"wobbler-3", "wobbler-2"} <= {one["build"] for one in robots}


def test_a_simulated_one_is_served_to_other_programs_by_its_name(site: Path, home: Path) -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    command = [sys.executable, "-m", "rote", "sim", "--robot", NAME, "--udp", "127.0.0.1:0"]
    with subprocess.Popen(
        [*command, "--store", ":memory:", "--json"], stdout=subprocess.PIPE, env=environment
    ) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert ready["build"] == "wobbler-3"

            async def story() -> None:
                async with connect(f"{ready['url']}?build=wobbler-3") as robot:
                    async with robot.teach("wiggle") as take:
                        await robot.move_by_hand("bow", 0.5)
                        await asyncio.sleep(0.5)
                    assert take.track.names == robot.build.names
                    assert (await robot.play("wiggle")).completed

            asyncio.run(story())
        finally:
            process.terminate()


# ---- by the page's API --------------------------------------------------------------------------


def test_the_pages_api_shows_teaches_edits_plays_and_stops_it(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path, URL) as (_, page):
            assert (await page.get("/status"))["build"] == "wobbler-3"
            joints = (await page.get("/robot/joints"))["joints"]
            assert [joint["name"] for joint in joints] == list(NAMES)
            await page.post("/teach/start", name="wiggle")
            await page.post("/teach/hand", script="wave", seconds=1)
            await asyncio.sleep(1.0)
            curve = await page.get("/teach/curve")
            assert curve["names"] == list(NAMES)
            assert (await page.post("/teach/finish", save=True))["saved"]
            steps = [{"op": "mirror"}, {"op": "smooth", "cutoff_hz": 4}]
            assert (await page.post("/edit", take="wiggle", steps=steps))["ok"]
            await page.status(lambda status: status["activity"]["kind"] == "idle")
            await page.post("/play", name="wiggle")
            assert (await page.post("/stop"))["stopped"] == "playing"

    virtual.run(story())
