"""What a person does with the pendant, from teaching to stopping, through the API alone."""

import asyncio
import json
from pathlib import Path

import pytest

from rig import rig
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from virtual import run
from web.pendant import Browser, Pendant, one_browser, teach


def test_a_motion_is_taught_seen_found_edited_checked_played_and_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            started = await page.post("/teach/start", name="wave")
            assert started["activity"]["kind"] == "teaching"
            await page.post("/teach/hand", script="wave", seconds=3)
            await asyncio.sleep(1.5)
            first = await page.get("/teach/curve?from=0")
            assert first["times_s"][0] == 0
            await asyncio.sleep(1.5)
            seen = len(first["times_s"])
            more = await page.get(f"/teach/curve?from={seen}")
            assert more["times_s"][0] > first["times_s"][-1]
            assert len(more["names"]) == len(more["joints_rad"][0]) == 29
            taught = await page.post("/teach/finish", save=True)
            assert (taught["take"], taught["saved"]) == ("wave", True)
            assert taught["duration_s"] == pytest.approx(3, abs=0.5)

            actions = await page.get("/actions")
            assert [action["name"] for action in actions["taught"]] == ["wave"]
            (take,) = (await page.get("/takes?search=WAV"))["takes"]
            assert (take["name"], take["problem"]) == ("wave", "")
            assert take["thumbnail"].startswith("<svg")
            motion = await page.get("/takes/wave")
            assert motion["duration_s"] == pytest.approx(taught["duration_s"], abs=0.05)

            await edit_and_keep(server, page)

            playing = await page.post("/play", name="wave", loop=True)
            assert playing["activity"]["kind"] == "playing"
            moving = await page.status(lambda s: s["activity"]["fraction"] > 0.3)
            assert moving["activity"]["duration_s"] == pytest.approx(3, abs=0.5)
            stopped = await page.post("/stop")
            assert stopped["stopped"] == "playing"
            await page.status(lambda s: s["activity"]["kind"] == "idle")

    run(story())


async def edit_and_keep(server: Pendant, page: Browser) -> None:
    """Trim and mirror the take `wave`, and keep it as `wave left`."""
    steps = [{"op": "trim", "start_s": 0.2, "end_s": 2.4}, {"op": "mirror"}]
    edited = await page.post("/edit", take="wave", steps=steps)
    assert edited["ok"]
    assert edited["duration_s"] == pytest.approx(2.2, abs=0.05)
    assert [line.split()[0] for line in edited["history"][-2:]] == ["trim:", "mirror"]
    right, left = (
        edited["names"].index(f"{side}_shoulder_pitch_joint") for side in ("right", "left")
    )
    rows = edited["joints_rad"]
    assert _moves(rows, left) > 0.5
    assert _moves(rows, right) < 0.2
    kept = await page.post("/edit/save", take="wave", steps=steps, name="wave left")
    assert (kept["name"], kept["version"]) == ("wave left", 1)
    assert server.library.load("wave left").history == tuple(edited["history"])


def _moves(rows: list[list[float]], column: int) -> float:
    values = [row[column] for row in rows]
    return max(values) - min(values)


def test_a_take_gets_its_name_when_it_is_done(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await teach(page, "old", "bow", 1)
            for draft, final in (("draft", "fine"), ("old", "other")):
                if draft == "old":
                    await page.post("/actions/delete", name="old")
                await page.post("/teach/start", name=draft)
                await asyncio.sleep(1)
                assert (await page.refused("/teach/finish", 400, save=True, name="a/b"))["remedy"]
                taught = await page.post("/teach/finish", save=True, name=final)
                assert (taught["take"], taught["saved"]) == (final, True)
            names = [action["name"] for action in (await page.get("/actions"))["taught"]]
            assert names == ["fine", "other"]
            assert [entry.name for entry in server.library.list()] == ["fine", "old", "other"]
            assert server.library.versions("old") == (1,)

    run(story())


def test_on_the_wire_of_a_g1_a_take_is_renamed_too_and_presets_are_performed(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store, polite=True))
        try:
            door = await simulator.serve_webrtc("127.0.0.1", 0, latency=False)
            async with one_browser(tmp_path, door.url) as (server, page):
                status = page.latest["status"]
                assert status["connection"]["wire"] == "webrtc"
                assert "drag" not in status["abilities"]
                await page.post("/teach/start", name="draft")
                await asyncio.sleep(1.5)
                await page.post("/pause", paused=True)
                await page.post("/pause", paused=False)
                assert (await page.refused("/teach/drag", 409, joint=None))[
                    "error"
                ] == "unsupported"
                await page.post("/teach/finish", save=True, name="bow")
                names = [action["name"] for action in (await page.get("/actions"))["taught"]]
                assert names == ["bow"]
                assert [entry.name for entry in server.library.list()] == ["bow"]
                await page.post("/perform", preset=26)
                await page.status(lambda s: s["activity"]["kind"] == "performing")
                assert (await page.refused("/play", 409, name="bow"))["error"] == "busy"
                await page.post("/stop")
                await page.status(lambda s: s["activity"]["kind"] == "idle")
                assert (await page.refused("/perform", 409, preset=1234))["error"] == "refused"
                await page.post("/actions/rename", old="bow", new="bow 2")
                await page.post("/actions/delete", name="bow 2")
                assert (await page.refused("/play", 409, name="bow 2"))["error"] == "refused"
        finally:
            await simulator.close()
            store.close()

    run(story())


def test_what_is_discarded_is_kept_nowhere(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await page.post("/teach/start", name="oops")
            await asyncio.sleep(1)
            taught = await page.post("/teach/finish", save=False)
            assert (taught["take"], taught["saved"]) == (None, False)
            assert (await page.get("/actions"))["taught"] == []
            assert server.library.list() == ()
            assert (await page.refused("/teach/finish", 409, save=True))["error"] == "refused"

    run(story())


def test_a_joint_of_the_embedded_robot_follows_a_finger_softly(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            assert (await page.refused("/teach/drag", 409, joint=None))["error"] == "refused"
            await page.post("/teach/start", name="nod")
            assert (await page.refused("/teach/drag", 400, joint="left_knee_joint"))["remedy"]
            elbow = 18
            before = page.latest["state"]["joints_rad"][elbow]
            await page.post("/teach/drag", joint="left_elbow_joint", value_rad=before - 0.8)
            await asyncio.sleep(0.1)
            assert abs(page.latest["state"]["joints_rad"][elbow] - before) < 0.4
            await asyncio.sleep(1.5)
            assert page.latest["state"]["joints_rad"][elbow] == pytest.approx(before - 0.8, abs=0.1)
            await page.post("/teach/drag", joint=None)
            taught = await page.post("/teach/finish", save=True)
            assert taught["saved"]

    run(story())


def test_a_finger_takes_over_from_a_scripted_hand_and_keeps_hold(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await page.post("/teach/start", name="nod")
            elbow, wrist = 18, 20
            await page.post("/teach/drag", joint="left_elbow_joint", value_rad=0.3)
            await asyncio.sleep(1)
            await page.post("/teach/hand", script="wave", seconds=1)
            await asyncio.sleep(1.5)
            before = page.latest["state"]["joints_rad"][elbow]
            await page.post("/teach/drag", joint="left_elbow_joint", value_rad=before - 0.6)
            await page.post("/teach/drag", joint="left_wrist_pitch_joint", value_rad=0.5)
            await asyncio.sleep(4)
            pose = page.latest["state"]["joints_rad"]
            assert pose[elbow] == pytest.approx(before - 0.6, abs=0.1)
            assert pose[wrist] == pytest.approx(0.5, abs=0.1)
            await page.post("/teach/finish", save=False)

    run(story())


def test_the_embedded_robot_performs_renames_and_deletes(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await teach(page, "one", seconds=1)
            await page.post("/actions/rename", old="one", new="two")
            assert [a["name"] for a in (await page.get("/actions"))["taught"]] == ["two"]
            await page.post("/actions/delete", name="two")
            gone = await page.refused("/actions/delete", 409, name="two")
            assert "no action" in gone["message"]
            assert {"id": 26, "name": "wave_above_head"} in (await page.get("/actions"))["presets"]
            await page.post("/perform", preset=26)
            await page.status(lambda s: s["activity"]["phase"] == "playing")
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            assert (await page.refused("/perform", 409, preset=7))["error"] == "refused"

    run(story())


def test_a_file_comes_in_by_upload_and_goes_out_in_any_format(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await teach(page, "wave", seconds=1)
            for ending in ("mcap", "csv", "npz", "json"):
                got = await page.ask("GET", f"/takes/wave/file?format={ending}")
                assert got.status_code == 200
                assert f"wave.{ending}" in got.headers["content-disposition"]
                sent = {"file": (f"C:\\tmp\\from {ending}.{ending}", got.content)}
                entry = (await page.ask("POST", "/takes/upload", files=sent)).json()
                assert entry["name"] == f"from {ending}"
                assert entry["samples"] == len(server.library.load("wave"))
            tagged = await page.post("/takes/tag", name="from csv", add=["Arms"])
            assert tagged["tags"] == ["arms"]
            assert len((await page.get("/takes?search=arms"))["takes"]) == 1
            for name in ("a\nb", "a\u202eb", "a/b", "a\u2028b"):
                await page.refused("/takes/tag", 400, name="from csv", add=[name])
                await page.refused("/takes/rename", 400, old="from csv", new=name)
                await page.refused("/actions/rename", 400, old="wave", new=name)
                await page.refused("/teach/start", 400, name=name)
            await page.post("/takes/rename", old="from csv", new="mine")
            await page.post("/takes/delete", name="mine")
            assert "mine" not in [entry.name for entry in server.library.list()]

    run(story())


BROKEN = [
    ("broken.csv", b"time_s,left_elbow_joint\n0.0,hello\n", "broken.csv"),
    ("broken.mcap", b"not an mcap file", "broken.mcap"),
    ("broken.npz", b"PK\x03\x04 and no more", "broken.npz"),
    ("broken.json", b"{", "broken.json"),
    ("photo.png", b"\x89PNG", "unknown file extension"),
    ("../../etc/passwd", b"root", "unknown file extension"),
    (".csv", b"", ""),
    ("..csv", b"", "cannot be used"),
]


def test_a_broken_file_is_refused_in_words_and_leaves_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            for called, content, words in BROKEN:
                sent = {"file": (called, content)}
                response = await page.ask("POST", "/takes/upload", files=sent)
                assert response.status_code == 400, (called, response.text)
                assert words in response.json()["message"], called
                assert "/tmp" not in response.text
            assert server.library.list() == ()

    run(story())


def test_steps_that_cannot_be_are_named(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await teach(page, "wave", seconds=2)
            steps = [{"op": "reverse"}, {"op": "smooth", "cutoff_hz": 900}]
            refusal = await page.refused("/edit", 400, take="wave", steps=steps)
            assert refusal["message"].startswith("step 2, smooth:")
            assert (await page.refused("/edit", 404, take="nobody", steps=[]))["error"]
            other = [{"op": "concatenate", "other": "nobody", "bridge_s": 1}]
            assert (await page.refused("/edit", 404, take="wave", steps=other))["error"]
            twice = [{"op": "concatenate", "other": "wave", "bridge_s": 2}]
            assert (await page.refused("/edit", 422, take="wave", steps=twice * 101))["error"]
            endless = await page.refused(
                "/edit", 400, take="wave", steps=[{"op": "speed", "factor": 0.05}] * 3
            )
            assert endless["message"].startswith("after step 3, speed,")
            all_of_them = [
                {"op": "trim_idle"},
                {"op": "smooth", "cutoff_hz": 4},
                {"op": "speed", "factor": 0.5},
                {"op": "cross_fade", "other": "wave", "overlap_s": 1.5},
                {"op": "close_loop", "seconds": 2},
                {"op": "retime"},
            ]
            edited = await page.post("/edit", take="wave", steps=all_of_them)
            assert len(edited["history"]) >= len(all_of_them)
            assert edited["jerk"] > 0
            assert len(edited["times_s"]) <= 1500

    run(story())


def test_a_take_that_cannot_be_read_is_listed_with_its_problem(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            server.library.folder.mkdir()
            (server.library.folder / "bad.mcap").write_bytes(b"rubbish")
            (entry,) = (await page.get("/takes"))["takes"]
            assert entry["problem"]
            assert (entry["thumbnail"], str(tmp_path) in json.dumps(entry)) == ("", False)
            assert (await page.refused("/edit", 400, take="bad", steps=[]))["message"]

    run(story())


def test_an_edited_take_is_streamed_unless_it_is_not_safe(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await teach(page, "wave", seconds=2)
            await page.post("/play/take", take="wave", steps=[{"op": "mirror"}], speed=0.8)
            await page.status(lambda s: s["activity"]["fraction"] > 0.2)
            await page.post("/stop")
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            fast = [{"op": "speed", "factor": 20}]
            unsafe = await page.refused("/play/take", 409, take="wave", steps=fast)
            assert unsafe["error"] == "unsafe-motion"

    run(story())


@pytest.mark.parametrize("loop", [False, True])
def test_a_playback_that_is_cut_short_says_why(tmp_path: Path, *, loop: bool) -> None:
    """Another client stops the robot in the middle of a stream."""

    async def story() -> None:
        async with rig("udp") as one, one_browser(tmp_path, one.url) as (_, page):
            await _play_taken(page, loop=loop)
            async with one.connect() as other:
                await other.stop()
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            events = (await page.get("/events"))["events"]
            (ended,) = [each for each in events if each["kind"] == "ended"]
            what = "The loop" if loop else "Playing 'wave'"
            assert ended["message"] == (
                f"{what} has ended early: the robot reports that it was stopped."
            )
            await page.notice(ended["message"])

    run(story())


def test_a_playback_that_is_stopped_here_is_not_called_cut_short(tmp_path: Path) -> None:
    async def story() -> None:
        async with rig("udp") as one, one_browser(tmp_path, one.url) as (_, page):
            await _play_taken(page, loop=False)
            await page.post("/stop")
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            events = (await page.get("/events"))["events"]
            assert [each["message"] for each in events if each["kind"] == "ended"] == []

    run(story())


async def _play_taken(page: Browser, *, loop: bool) -> None:
    """Teach a take and stream it; return in the middle of it."""
    await page.post("/teach/start", name="wave")
    await page.post("/teach/hand", script="wave", seconds=3)
    await asyncio.sleep(3.2)
    await page.post("/teach/finish", save=True)
    await page.status(lambda s: s["activity"]["kind"] == "idle" and not s["return_in_s"])
    await page.post("/play/take", take="wave", force=True, loop=loop)
    await page.status(lambda s: s["activity"]["fraction"] > 0.3)
