"""Takes that cannot be written: nothing is lost, and the page is told at once."""

import asyncio
import tempfile
from pathlib import Path

import pytest

from motion.motion_tracks import full_disk
from rote.errors import StoreError
from rote.motion import files
from rote.motion.files.library import Library
from rote.web.services.takes import TakeService
from virtual import run
from web.pendant import MEMORY, Browser, Document, one_browser, teach
from web.test_web_library import sway
from web.test_web_lost_robot import cuttable

BEGINS = 20_000
"""Enough for a file to begin, and not for a take."""


async def taught_on_a_full_disk(page: Browser, first: str, **finish: object) -> Document:
    """Teach while the disk is full, and finish."""
    with full_disk(BEGINS):
        await page.post("/teach/start", name=first)
        await page.post("/teach/hand", script="wave", seconds=4.0)
        await page.status(lambda s: s["storage_problem"] is not None, 10)
        status = await page.get("/status")
        assert status["activity"]["kind"] == "teaching", "recording goes on"
        assert "cannot be written" in status["storage_problem"]["message"]["template"]
        await page.notice("Recording goes on in memory")
        await asyncio.sleep(1.0)
        return await page.post("/teach/finish", save=True, **finish)


def test_a_full_disk_is_told_at_once_and_the_take_stays_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))

    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            taught = await taught_on_a_full_disk(page, "wave")
            assert taught["kept"] is False
            assert taught["saved"] is True, "the robot has it"
            assert taught["unsaved"] is not None
            assert not server.library.has("wave")
            (unsaved,) = (await page.get("/status"))["unsaved"]
            assert unsaved["samples"] == taught["samples"] > 100
            assert str(home) in unsaved["folders"]
            kinds = [each["kind"] for each in (await page.get("/events"))["events"]]
            assert "not-saved" in kinds
            path = f"/takes/unsaved/{taught['unsaved']}/file?format=csv"
            file = await page.ask("GET", path)
            assert file.status_code == 200
            assert len(file.text.splitlines()) > taught["samples"]
            wanted = {"id": taught["unsaved"], "name": "wave"}
            await page.refused("/takes/unsaved/save", 400, **wanted, folder="/etc")
            saved = await page.post("/takes/unsaved/save", **wanted, folder=str(home))
            assert files.load(Path(saved["path"])).duration_s == pytest.approx(
                taught["duration_s"], abs=0.01
            )
            assert (await page.get("/status"))["unsaved"] == []
            assert (await page.ask("GET", path)).status_code == 404

    run(story())


def test_an_unsaved_take_is_saved_once_there_is_room_or_discarded(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            first = await taught_on_a_full_disk(page, "first")
            second = await taught_on_a_full_disk(page, "second", name="renamed")
            unsaved = (await page.get("/status"))["unsaved"]
            assert [each["name"] for each in unsaved] == ["first", "renamed"]
            await page.post("/takes/unsaved/save", id=first["unsaved"], name="first")
            assert server.library.load("first").duration_s == pytest.approx(first["duration_s"])
            await page.post("/takes/unsaved/discard", id=second["unsaved"])
            assert (await page.get("/status"))["unsaved"] == []
            assert (await page.refused("/takes/unsaved/discard", 404, id="u9"))["remedy"]

    run(story())


def test_a_take_that_could_not_be_written_at_first_is_written_at_the_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            with full_disk(BEGINS):
                await page.post("/teach/start", name="wave")
                await page.status(lambda s: s["storage_problem"] is not None, 10)
            taught = await page.post("/teach/finish", save=True)
            assert (taught["kept"], taught["unsaved"]) == (True, None)
            assert server.library.load("wave").duration_s == pytest.approx(taught["duration_s"])
            assert list(server.library.unfinished()) == []

    run(story())


@pytest.mark.parametrize("wire", ["sim", "udp", "webrtc"])
@pytest.mark.parametrize("known", [False, True])
def test_a_take_is_on_the_disk_all_the_time_while_it_gets_its_name(
    tmp_path: Path, wire: str, known: bool
) -> None:
    async def story(page: Browser, library: Library) -> None:
        if known:
            library.save(sway(), "old")
            (library.folder / "new.mcap" / "in the way").mkdir(parents=True)
        before = library.versions("old")
        await page.post("/teach/start", name="old")
        await page.post("/teach/hand", script="wave", seconds=1.0)
        await asyncio.sleep(1.0)
        if not known:
            library.save(sway(), "new")
        refused = await page.ask("POST", "/teach/finish", json={"save": True, "name": "new"})
        assert refused.status_code == 400, refused.text
        assert len(library.versions("old")) == len(before) + 1, "it is there under its first name"
        assert library.load("old").duration_s > 0.5
        await page.notice("kept as the take 'old'")

    async def on_wire() -> None:
        if wire == "sim":
            async with one_browser(tmp_path, MEMORY) as (server, page):
                await story(page, server.library)
        else:
            async with cuttable(tmp_path, wire) as (_, page, _):
                await story(page, Library(tmp_path / "takes"))

    run(on_wire())


def test_a_renamed_take_leaves_nothing_under_its_first_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await teach(page, "old")
            first = server.library.load("old")
            await page.post("/actions/delete", name="old")
            await page.post("/teach/start", name="old")
            await page.post("/teach/hand", script="wave", seconds=1.0)
            await asyncio.sleep(1.0)
            taught = await page.post("/teach/finish", save=True, name="new")
            assert (taught["take"], taught["saved"], taught["kept"]) == ("new", True, True)
            assert len(server.library.load("new")) == taught["samples"]
            assert server.library.versions("old") == (1,)
            assert len(server.library.load("old")) == len(first)
            actions = await page.get("/actions")
            assert [each["name"] for each in actions["taught"]] == ["new"]
            kinds = [each["kind"] for each in (await page.get("/events"))["events"]]
            assert kinds.count("saved") == 2

    run(story())


def test_deleting_the_newest_version_leaves_the_one_before(tmp_path: Path) -> None:
    library = Library(tmp_path / "takes")
    library.save(sway(1.0), "sway")
    library.save(sway(2.0), "sway")
    library.delete_newest("sway")
    assert library.load("sway").duration_s == pytest.approx(1.0, abs=0.1)
    assert library.trash()[0].name == "sway"
    library.delete_newest("sway")
    assert not library.has("sway")
    assert len(library.trash()) == 2


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="there is no folder in memory")
@pytest.mark.parametrize("fails", ["the folder", "the file"])
def test_an_unsaved_take_can_be_downloaded_though_the_temporary_folder_is_full(
    fails: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            taught = await taught_on_a_full_disk(page, "wave")
            if fails == "the folder":
                monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
            else:
                write = TakeService.export_unsaved

                async def full(takes: TakeService, take_id: str, path: Path) -> None:
                    if path.is_relative_to(tempfile.gettempdir()):
                        raise StoreError(f"{path} cannot be written: no space left", "Make room.")
                    await write(takes, take_id, path)

                monkeypatch.setattr(TakeService, "export_unsaved", full)
            file = await page.ask("GET", f"/takes/unsaved/{taught['unsaved']}/file?format=csv")
            assert file.status_code == 200, file.text
            assert len(file.text.splitlines()) > taught["samples"]

    before = set(Path("/dev/shm").glob("rote-*"))
    run(story())
    assert set(Path("/dev/shm").glob("rote-*")) <= before
