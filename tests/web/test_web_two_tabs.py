"""Two pages, one take or one show: neither overwrites what the other has saved."""

from pathlib import Path

import pytest

from rote.motion.files.library import Library
from virtual import run
from web.pendant import one_browser
from web.test_web_library import sway

TRIM = [{"op": "trim", "start_s": 0.5, "end_s": 1.5}]
LONG = "a take that was copied here from another computer, with a long name"
SHOW = {"rote_show": 1, "roles": {"left": {}}, "sections": []}


def test_a_save_over_a_version_that_is_not_known_is_refused(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(3.0), "sway")
            edit = {"take": "sway", "version": 1, "steps": TRIM, "name": "sway"}
            before = (await page.get("/status"))["takes_changes"]
            saved = await page.post("/edit/save", **edit, over=1)
            assert saved["version"] == 2
            assert (await page.get("/status"))["takes_changes"] > before
            refused = await page.refused("/edit/save", 409, **edit, over=1)
            assert refused["error"] == "changed-take"
            assert "version 2" in refused["message"]
            assert server.library.versions("sway") == (1, 2)
            taken = await page.refused("/edit/save", 409, **edit, over=0)
            assert taken["error"] == "name-taken"
            assert (await page.post("/edit/save", **edit))["version"] == 3, "as the newest anyway"
            assert (await page.post("/edit/save", **(edit | {"name": "new"}), over=0))["name"]

    run(story())


def test_a_draft_of_a_deleted_take_can_be_edited_and_saved_as_new(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.save(sway(3.0), "sway")
            server.library.save(sway(2.0), "sway")
            await page.post("/takes/delete", name="sway")
            edit = {"take": "sway", "version": 1, "steps": TRIM}
            curves = await page.post("/edit/curves", **edit)
            assert curves["duration_s"] == pytest.approx(1.0, abs=0.05)
            assert (await page.post("/edit/check", **edit))["version"] == 1
            whole = await page.post("/edit/curves", take="sway", version=2)
            assert whole["duration_s"] == pytest.approx(2.0, abs=0.05)
            gone = await page.refused("/edit/save", 409, **edit, name="sway", over=2)
            assert "deleted" in gone["message"]
            await page.post("/edit/save", **edit, name="sway", over=0)
            assert server.library.load("sway").duration_s == pytest.approx(1.0, abs=0.05)
            missing = {"take": "never", "version": 1, "steps": TRIM}
            assert (await page.refused("/edit/curves", 404, **missing))["error"] == "no-such-take"
            assert (await page.refused("/edit/curves", 404, take="nor")) is not None

    run(story())


def test_a_take_with_a_long_name_is_opened_tagged_edited_renamed_and_deleted(
    tmp_path: Path,
) -> None:
    library = Library(tmp_path / "takes")
    library.save(sway(3.0), "short")
    (library.folder / "short.mcap").rename(library.folder / f"{LONG}.mcap")

    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            (entry,) = (await page.get("/takes"))["takes"]
            assert (entry["name"], entry["problem"]) == (LONG, "")
            assert (await page.get(f"/takes/{LONG}"))["duration_s"] > 1.0
            assert (await page.post("/takes/tag", name=LONG, add=["old"]))["tags"] == ["old"]
            assert (await page.post("/edit/check", take=LONG))["version"] == 1
            edit = {"take": LONG, "steps": TRIM, "name": LONG}
            assert (await page.post("/edit/save", **edit, over=1))["version"] == 2
            await page.post("/takes/delete", name=LONG)
            (trashed,) = (await page.get("/takes/trash"))["trash"]
            assert (await page.post("/takes/restore", id=trashed["id"]))["name"] == LONG
            await page.refused("/takes/rename", 400, old=LONG, new=f"{LONG} again")
            assert (await page.post("/takes/rename", old=LONG, new="short"))["name"] == "short"
            far_too_long = "x" * 250
            assert (await page.refused("/edit/check", 400, take=far_too_long))["remedy"]

    run(story())


def test_a_show_that_was_deleted_elsewhere_does_not_come_back_by_itself(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            saved = await page.post("/shows/save", name="greet", show=SHOW, known=None)
            await page.post("/shows/delete", name="greet")
            draft = {"name": "greet", "show": SHOW, "known": saved["tag"]}
            assert (await page.refused("/shows/save", 409, **draft))["error"] == "show-deleted"
            assert (await page.get("/shows"))["shows"] == []
            assert (await page.post("/shows/save", **draft, replace=True))["tag"] == saved["tag"]

    run(story())
