"""What the page is told of a teaching: its pauses, and what the arms do when it has ended."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest

from rote.sim.arm_motion import HOLD_TAUGHT_S
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from virtual import run
from web.pendant import Browser, Document, Pendant, one_browser, pendant, teach

ARM = "right_shoulder_pitch_joint"


@asynccontextmanager
async def over_webrtc(
    folder: Path, *, polite: bool = True
) -> AsyncIterator[tuple[Pendant, Browser, World]]:
    store = Store(":memory:")
    simulator = Simulator(World(store, polite=polite))
    try:
        door = await simulator.serve_webrtc("127.0.0.1", 0, latency=False)
        async with one_browser(folder, door.url) as (server, page):
            yield server, page, simulator.world
    finally:
        await simulator.close()
        store.close()


def joint(page: Browser, name: str = ARM) -> float:
    names = World(Store(":memory:")).build.names
    return float(page.latest["state"]["joints_rad"][names.index(name)])


def test_while_it_is_paused_counter_curve_and_take_stand_still_for_everybody(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with over_webrtc(tmp_path) as (server, page, _):
            await page.post("/teach/start", name="wave")
            await page.post("/teach/hand", script="wave", seconds=3.0)
            await asyncio.sleep(1.5)
            assert (await page.get("/status"))["paused"] is False
            await page.post("/pause", paused=True)
            other = await server.browser()
            assert other.latest["status"]["paused"] is True
            first = await page.get("/status")
            assert first["paused"] is True
            curve = await page.get("/teach/curve")
            await asyncio.sleep(8.0)
            again = await page.get("/status")
            for fact in ("elapsed_s", "samples", "fraction"):
                assert again["activity"][fact] == first["activity"][fact], fact
            assert await page.get("/teach/curve") == curve
            await page.post("/pause", paused=False)
            await page.until(lambda: page.latest["status"]["paused"] is False)
            await asyncio.sleep(1.5)
            status = await page.get("/status")
            assert status["activity"]["elapsed_s"] == pytest.approx(3.0, abs=0.5)
            taught = await page.post("/teach/finish", save=True)
            assert taught["duration_s"] < 7.0, "the pause is not in it, a soft way is"
            assert (await page.get("/status"))["paused"] is False

    run(story())


def test_a_motion_that_was_paused_is_bridged_softly_and_can_be_played(tmp_path: Path) -> None:
    async def story() -> None:
        async with over_webrtc(tmp_path) as (server, page, world):
            await page.post("/teach/start", name="wave")
            await page.post("/teach/hand", script="wave", seconds=3.0)
            await asyncio.sleep(1.5)
            await page.post("/pause", paused=True)
            await asyncio.sleep(6.0)  # the hand is gone: the arm sinks far
            await page.post("/pause", paused=False)
            await asyncio.sleep(1.0)
            await page.post("/teach/finish", save=True)
            track = server.library.load("wave")
            speeds = np.abs(np.diff(track.joints_rad, axis=0)) / np.diff(track.times_s)[:, None]
            assert np.diff(track.times_s).max() < 0.2, "no hole"
            checked: Document = await page.post("/edit", take="wave")
            assert [f["kind"] for f in checked["findings"] if f["severity"] == "error"] == []
            assert speeds.max() < 8.0
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            await page.post("/play", name="wave")
            await page.status(lambda s: s["activity"]["phase"] == "playing")
            await page.status(lambda s: s["activity"]["kind"] == "idle", 60)
            assert not world.stopped_early

    run(story())


@pytest.mark.parametrize("how", ["stop", "discard", "save"])
def test_arms_that_were_taught_hold_first_and_the_page_counts_until_they_return(
    tmp_path: Path, how: str
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            assert (await page.get("/status"))["return_in_s"] is None
            await page.post("/teach/start", name="wave")
            await page.post("/teach/drag", joint=ARM, value_rad=-1.2)
            await asyncio.sleep(2.0)
            if how == "stop":
                told = await page.post("/stop")
                assert f"in {HOLD_TAUGHT_S:.0f} s they return softly" in told["message"]
            else:
                await page.post("/teach/finish", save=how == "save")
            status = await page.get("/status")
            assert status["return_in_s"] == pytest.approx(HOLD_TAUGHT_S, abs=1.0)
            assert status["return_s"] > 1.0
            await page.status(lambda s: s["activity"]["kind"] == "idle", 3)
            there = joint(page)
            await asyncio.sleep(HOLD_TAUGHT_S - 2.0)
            assert joint(page) == pytest.approx(there, abs=0.1), "they hold"
            assert there < -0.9
            await page.status(lambda s: s["activity"]["phase"] == "return")
            assert (await page.get("/status"))["return_in_s"] is None
            await page.status(lambda s: s["activity"]["phase"] == "none")
            assert joint(page) > -0.5

    run(story())


def test_one_more_stop_does_not_send_held_arms_off_and_asking_does(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await page.post("/teach/start", name="wave")
            await page.post("/teach/drag", joint=ARM, value_rad=-1.2)
            await asyncio.sleep(2.0)
            await page.post("/stop")
            await asyncio.sleep(3.0)
            assert (await page.post("/stop"))["stopped"] == "holding"
            status = await page.get("/status")
            assert status["activity"]["phase"] == "none"
            assert status["return_in_s"] == pytest.approx(HOLD_TAUGHT_S, abs=0.5)
            await asyncio.sleep(3.0)
            assert joint(page) < -0.9
            await page.post("/perform", preset=99)
            await page.status(lambda s: s["activity"]["phase"] == "return")
            assert (await page.get("/status"))["return_in_s"] is None

    run(story())


def test_over_the_wire_of_a_g1_it_is_said_that_the_robot_itself_returns_its_arms(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with over_webrtc(tmp_path) as (_, page, _):
            await page.post("/teach/start", name="wave")
            await asyncio.sleep(1.0)
            message = (await page.post("/stop"))["message"]
            assert "the robot itself returns them to rest" in message
            assert "in about 4 s" in message

    run(story())


def test_where_no_robot_is_connected_nothing_is_said_to_return(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, "udp://127.0.0.1:9") as server:
            page = await server.browser()
            status = await page.get("/status")
            assert (status["paused"], status["return_in_s"]) == (False, None)

    run(story())


def test_people_are_told_why_nothing_happens_for_a_while(tmp_path: Path) -> None:
    async def story() -> None:
        async with over_webrtc(tmp_path, polite=False) as (_, page, _):
            await teach(page, "wave", seconds=1.0)
            await page.notice("Waiting until the robot lists 'wave'")

    run(story())
