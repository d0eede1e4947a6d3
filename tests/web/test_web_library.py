"""The library as the page sees it: many takes in pages, files with their units, and the trash."""

import asyncio
import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rote.model.g1 import G1_29
from rote.motion import files
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.web.access.security import Gate
from virtual import run
from web.pendant import Browser, one_browser, pendant

ELBOW = "right_elbow_joint"


def sway(seconds: float = 1.0, far_rad: float = 0.2, *, closed: bool = True) -> Track:
    """An elbow that goes out, and back where it is `closed`."""
    times_s = np.arange(round(seconds * 50) + 1) / 50
    joints_rad = np.repeat(np.array(G1_29.rest_rad)[None, :], len(times_s), axis=0)
    turns = 1.0 if closed else 0.5
    course = 0.5 - 0.5 * np.cos(2 * np.pi * turns * times_s / times_s[-1])
    joints_rad[:, G1_29.names.index(ELBOW)] += far_rad * course
    return Track(
        times_s=times_s, joints_rad=joints_rad, names=G1_29.names, variant=G1_29.name, source="made"
    )


def written(folder: Path, track: Track, name: str = "wave.csv") -> dict[str, tuple[str, bytes]]:
    path = folder / name
    files.save(track, path)
    return {"file": (name, path.read_bytes())}


# ---- many takes ---------------------------------------------------------------------------------


def test_takes_come_in_pages_and_a_page_that_is_known_is_not_sent_again(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            for number in range(5):
                server.library.save(sway(), f"take {number}")
            first = await page.get("/takes?first=0&count=2")
            assert [take["name"] for take in first["takes"]] == ["take 0", "take 1"]
            assert (first["total"], first["same"]) == (5, False)
            last = await page.get("/takes?first=4&count=2")
            assert [take["name"] for take in last["takes"]] == ["take 4"]
            assert (await page.get("/takes?first=6&count=2"))["takes"] == []
            known = await page.get(f"/takes?first=0&count=2&known={first['tag']}")
            assert (known["takes"], known["same"], known["total"]) == ([], True, 5)
            await page.post("/takes/tag", name="take 1", add=["new"])
            changed = await page.get(f"/takes?first=0&count=2&known={first['tag']}")
            assert not changed["same"]
            assert changed["takes"][1]["tags"] == ["new"]
            assert len((await page.get("/takes"))["takes"]) == 5

    run(story())


# ---- files --------------------------------------------------------------------------------------


def test_a_file_gets_the_name_and_the_unit_that_a_person_says(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            track = sway()
            sent = {"file": ("old.csv", _in_degrees(track))}
            refused = await page.ask("POST", "/takes/upload", files=sent, data={"name": "bow"})
            assert refused.status_code == 400
            assert "degrees" in refused.json()["message"]
            assert refused.json()["texts"]["remedy"]["facts"], "the page says it in its own words"
            how = {"name": "bow", "unit": "deg"}
            entry = (await page.ask("POST", "/takes/upload", files=sent, data=how)).json()
            assert entry["name"] == "bow"
            kept = server.library.load("bow")
            assert kept.joints_rad == pytest.approx(track.joints_rad, abs=1e-3)

    run(story())


def _in_degrees(track: Track) -> bytes:
    """Return a track as a CSV file whose angles are in degrees."""
    rows = np.column_stack([track.times_s, np.degrees(track.joints_rad)])
    lines = [",".join(("t", *track.names)), *(",".join(map(repr, row)) for row in rows.tolist())]
    return "\n".join(lines).encode()


def test_a_name_that_exists_is_refused_unless_a_new_version_is_wanted(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(), "wave")
            sent = written(tmp_path, sway(2.0))
            no = {"replace": "false"}
            refused = await page.ask("POST", "/takes/upload", files=sent, data=no)
            assert (refused.status_code, refused.json()["error"]) == (409, "name-taken")
            assert server.library.versions("wave") == (1,)
            assert (await page.ask("POST", "/takes/upload", files=sent)).status_code == 200
            assert server.library.versions("wave") == (1, 2)

    run(story())


# ---- the trash ----------------------------------------------------------------------------------


def test_what_was_deleted_is_listed_restored_and_deleted_for_good(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            library = server.library
            library.save(sway(1.0), "wave")
            library.save(sway(2.0), "wave")
            await page.post("/takes/delete", name="wave")
            (one,) = (await page.get("/takes/trash"))["trash"]
            assert (one["name"], one["versions"]) == ("wave", 2)
            assert one["duration_s"] == pytest.approx(2.0)
            entry = await page.post("/takes/restore", id=one["id"])
            assert (entry["name"], entry["versions"]) == ("wave", [1, 2])
            assert library.load("wave", 1).duration_s == pytest.approx(1.0)
            assert (await page.get("/takes/trash"))["trash"] == []
            await page.post("/takes/delete", name="wave")
            library.save(sway(3.0), "wave")
            refused = await page.refused("/takes/restore", 400, id=one["id"])
            assert "already" in refused["message"]
            await page.post("/takes/restore", id=one["id"], to="old wave")
            assert library.load("old wave").duration_s == pytest.approx(2.0)
            await page.post("/takes/delete", name="old wave")
            (old,) = (await page.get("/takes/trash"))["trash"]
            await page.post("/takes/purge", id=old["id"])
            assert (await page.get("/takes/trash"))["trash"] == []
            assert library.load("wave").duration_s == pytest.approx(3.0)

    run(story())


@pytest.mark.parametrize("odd", ["..", "../wave", "/etc", ".", "wave/..", "nothing", "a\0b"])
def test_nothing_outside_the_trash_can_be_restored_or_deleted(tmp_path: Path, odd: str) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(), "wave")
            server.library.save(sway(), "bow")
            server.library.delete("bow")
            for path in ("/takes/restore", "/takes/purge"):
                await page.refused(path, 400, id=odd)
            assert server.library.versions("wave") == (1,)
            assert len(server.library.trash()) == 1

    run(story())


def test_two_takes_of_one_name_lie_in_the_trash_side_by_side(tmp_path: Path) -> None:
    library = Library(tmp_path)
    for seconds in (1.0, 2.0):
        library.save(sway(seconds), "wave")
        library.delete("wave")
    found = {each.id: each for each in library.trash()}
    assert {each.name for each in found.values()} == {"wave"}
    library.restore("wave")
    assert library.load("wave").duration_s == pytest.approx(1.0)
    assert library.restore("wave 2", "bow").duration_s == pytest.approx(2.0)
    assert library.trash() == ()


# ---- playing and putting on the robot -----------------------------------------------------------


def test_a_take_that_is_closed_is_looped_without_a_return_until_it_is_stopped(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(2.0), "sway")
            await page.post("/play/take", take="sway", loop=True)
            phases: list[str] = []

            def third(status: dict[str, Any]) -> bool:
                phases.append(status["activity"]["phase"])
                return int(status["activity"]["round"]) >= 3

            status = await page.status(third)
            assert status["activity"]["duration_s"] == pytest.approx(2.0, abs=0.05)
            assert "return" not in phases
            await page.post("/stop")
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            await asyncio.sleep(3.0)
            assert (await page.get("/status"))["activity"]["kind"] == "idle"

    run(story())


def test_a_take_that_is_not_closed_is_looped_with_a_soft_return_between_rounds(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(1.0, closed=False), "reach")
            await page.post("/play/take", take="reach", loop=True, force=True)
            phases: list[str] = []

            def second(status: dict[str, Any]) -> bool:
                phases.append(status["activity"]["phase"])
                return int(status["activity"]["round"]) == 2

            await page.status(second)
            assert "return" in phases
            await page.post("/stop")
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            assert (await page.get("/status"))["stops"] == 1
            await asyncio.sleep(3.0)
            assert (await page.get("/status"))["activity"]["kind"] == "idle"

    run(story())


def test_a_take_is_put_on_the_robot_and_played_there(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(2.0, 0.4), "sway")
            stored = await page.post("/takes/store", take="sway", name="mine")
            assert stored["keyframes"] > 0
            assert stored["max_error_rad"] < 0.1
            assert [each["name"] for each in (await page.get("/actions"))["taught"]] == ["mine"]
            refused = await page.refused("/takes/store", 409, take="sway", name="mine")
            assert "exist" in refused["message"] or "already" in refused["message"]
            await page.post("/play", name="mine")
            await page.status(lambda s: s["activity"]["kind"] == "idle")

    run(story())


# ---- compressed ---------------------------------------------------------------------------------


async def _raw(page: Browser, path: str, **headers: str) -> Any:
    """Ask, and keep the body as it came."""
    sent = {"X-Rote-Client": page.id, "Accept-Encoding": "gzip", **page.headers, **headers}
    async with page.http.stream("GET", path, headers=sent) as response:
        body = b"".join([chunk async for chunk in response.aiter_raw()])
    return response, body


def test_lists_and_page_files_are_compressed_and_secrets_are_not(tmp_path: Path) -> None:
    async def story() -> None:
        gate = Gate(token="a-token-for-a-class")
        async with pendant(tmp_path, gate=gate) as server:
            page = await server.browser(Authorization="Bearer a-token-for-a-class")
            for number in range(4):
                server.library.save(sway(), f"take {number}")
            response, body = await _raw(page, "/api/takes")
            assert response.headers["content-encoding"] == "gzip"
            assert "accept-encoding" in response.headers["vary"].lower()
            plain, whole = await _raw(page, "/api/takes", **{"Accept-Encoding": "identity"})
            assert "content-encoding" not in plain.headers
            assert gzip.decompress(body) == whole
            assert len(body) < len(whole) / 2
            # What holds a token, or what others have chosen beside an id, is never compressed.
            await page.post("/people/me", name="x" * 40)
            for path in ("/api/links", "/api/status", "/api/people", "/api/actions"):
                secret, _ = await _raw(page, path)
                assert secret.status_code == 200
                assert "content-encoding" not in secret.headers

    run(story())


def test_an_answer_by_range_or_without_a_body_is_left_as_it_is(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            response, body = await _raw(page, "/openapi.json")
            assert response.headers["content-encoding"] == "gzip"
            assert int(response.headers["content-length"]) == len(body)
            ranged, _ = await _raw(page, "/openapi.json", Range="bytes=0-10")
            assert "content-encoding" not in ranged.headers
            headed = await page.http.request("HEAD", "/", headers={"Accept-Encoding": "gzip"})
            assert "content-encoding" not in headed.headers

    run(story())


# ---- a robot to try -----------------------------------------------------------------------------


def test_a_simulated_a1_is_offered_and_its_levels_are_reached_from_the_page(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            (offered,) = (await page.get("/robots"))["led"]
            assert offered["build"] == "a1"
            url = offered["url"]
            for wanted, ability in (("look", "walk"), ("teach", "teach")):
                await page.post("/connect", url=url, wanted=wanted)
                status = await page.status(lambda s: s["connection"]["state"] == "connected")
                assert status["connection"]["url"] == url
                assert status["connection"]["simulated"]
                assert ability in status["abilities"], status["abilities"]
            await page.refused("/connect", 400, url="sim://a1?store=/etc/passwd")

    run(story())
