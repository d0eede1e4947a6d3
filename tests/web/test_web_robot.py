"""The one connection: lost and back, changed, refused; and the end of the server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rig import free_domain, rig
from rote import messages as m
from rote.errors import WarnedMotionError
from rote.messages import Phase
from rote.model.dex3 import DEX3
from rote.model.g1 import Mode
from rote.motion.files.library import Library
from rote.sim.arm_motion import HOLD_TAUGHT_S
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.web.services import teaching
from rote.web.services.hub import Hub, Start
from rote.web.services.takes import TakeService
from virtual import run
from web.pendant import CHILDREN, MEMORY, one_browser, pendant, teach


@asynccontextmanager
async def one_hub(folder: Path) -> AsyncIterator[Hub]:
    """What is behind the API, with its robot connected and nobody asking."""
    hub = Hub(Start(Library(folder / "takes"), MEMORY, children=CHILDREN))
    await hub.open()
    while hub.connection.connected is None:
        await asyncio.sleep(0.05)
    try:
        yield hub
    finally:
        await hub.close()


def test_a_lost_robot_is_told_of_and_comes_back_by_itself(tmp_path: Path) -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        url = await simulator.serve_udp("127.0.0.1", 0)
        port = int(url.rpartition(":")[2])
        async with one_browser(tmp_path, url) as (_, page):
            await teach(page, "wave")
            await page.post("/play", name="wave", loop=True)
            await simulator.close()
            lost = await page.status(lambda s: s["connection"]["state"] == "lost")
            assert lost["connection"]["message"]
            assert lost["connection"]["remedy"]
            assert lost["mode"] is None
            await page.notice("The robot is lost")
            before = await page.get("/actions")
            assert ([one["name"] for one in before["taught"]], before["now"]) == (["wave"], False)
            assert (await page.refused("/play", 502, name="wave"))["remedy"]
            assert (await page.refused("/stop", 502))["message"]
            await page.socket.send('{"type":"stop"}')
            await page.notice("STOP was NOT confirmed")
            again = Simulator(World(store))
            await again.serve_udp("127.0.0.1", port)
            back = await page.status(lambda s: s["connection"]["state"] == "connected", 60)
            assert back["activity"]["kind"] == "idle"
            await page.notice("The robot is back.")
            assert (await page.get("/actions"))["now"] is True
            await page.post("/play", name="wave")
            await again.close()
        store.close()

    run(story())


@pytest.mark.parametrize("wire", ["udp", "webrtc", "dds"])
def test_the_page_teaches_plays_and_stops_over_every_wire(wire: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page), rig(wire) as one:
            await page.post("/connect", url=one.url)
            there = await page.status(
                lambda s: (
                    (s["connection"]["state"], s["connection"]["url"]) == ("connected", one.url)
                ),
                60,
            )
            await teach(page, "wave")
            assert [action["name"] for action in (await page.get("/actions"))["taught"]] == ["wave"]
            await page.post("/play", name="wave")
            await page.status(lambda s: s["activity"]["phase"] == "playing")
            assert one.world.phase is not Phase.NONE
            assert (await page.post("/stop"))["stopped"] == "playing"
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            if "stream" in there["abilities"]:
                await page.post("/play/take", take="wave")
                await page.status(lambda s: s["activity"]["kind"] == "idle", 60)
                assert not one.world.stopped_early

    run(story())


def test_a_page_turns_to_another_robot_and_lets_go(tmp_path: Path) -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        url = await simulator.serve_udp("127.0.0.1", 0)
        async with one_browser(tmp_path) as (_, page):
            await page.post("/teach/start", name="wave")
            assert (await page.refused("/connect", 409, url=url))["error"] == "busy"
            await page.post("/teach/finish", save=False)
            assert (await page.post("/connect", url=url))["connection"]["state"] == "connecting"
            there = await page.status(
                lambda s: (s["connection"]["state"], s["connection"]["url"]) == ("connected", url)
            )
            assert "drag" not in there["abilities"]
            assert there["connection"]["simulated"]
            await page.post("/teach/start", name="cut off")
            off = await page.post("/disconnect")
            assert off["connection"]["state"] == "off"
            assert not simulator.world.body.soft
            assert (await page.refused("/play", 409, name="x"))["error"] == "not-connected"
            assert (await page.post("/stop"))["stopped"] == "nothing"
            assert (await page.ask("GET", "/preflight")).status_code == 409
            await page.post("/connect", url="sim://g1")
            await page.status(lambda s: s["connection"]["state"] == "connected")
        await simulator.close()
        store.close()

    run(story())


@pytest.mark.parametrize(
    "url",
    [
        "sim://g1?store=/tmp/evil.sqlite", "sim://../../etc", "file:///etc/passwd", "", "g1",
        "udp://", "udp://[", "http://127.0.0.1/", "webrtc://x?keylog=/tmp/x", "sim://g1/../x",
        "dds://", "dds://lo?file=/etc/passwd", "a1://", "a1://127.0.0.1?file=/etc/passwd",
    ],
)  # fmt: skip
def test_a_page_names_no_file_of_this_computer(tmp_path: Path, url: str) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            assert (await page.refused("/connect", 400, url=url))["error"] == "bad-request"
            assert (await page.get("/status"))["connection"]["state"] == "connected"

    run(story())


def test_a_robot_that_is_not_there_is_tried_again_and_a_wrong_wire_is_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, "udp://127.0.0.1:9") as server:
            page = await server.browser()
            lost = await page.status(lambda s: s["connection"]["state"] == "lost", 60)
            assert "no robot answered" in lost["connection"]["message"]
        async with pendant(tmp_path, "sim://nobody") as server:
            page = await server.browser()
            off = await page.status(lambda s: s["connection"]["message"].startswith("'sim"))
            assert off["connection"]["state"] == "off"
            assert off["connection"]["remedy"]

    run(story())


def test_the_robot_stands_damps_and_says_what_is_wrong(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            status = page.latest["status"]
            assert status["battery_percent"] > 50
            assert len(status["temperatures_c"]) == 29
            assert (await page.get("/preflight"))["findings"] == []
            unasked = await page.refused("/mode", 409, target="damp")
            assert "sinks to the floor" in unasked["message"]
            await page.post("/mode", target="damp", yes=True)
            damped = await page.status(lambda s: s["mode"] and s["mode"]["id"] == Mode.DAMP)
            assert not damped["mode"]["balanced"]
            (finding, *_) = (await page.get("/preflight"))["findings"]
            assert finding["severity"] == "error"
            refusal = await page.refused("/teach/start", 409, name="wave")
            assert "balanced" in refusal["message"]
            assert (await page.post("/mode", target="stand"))["mode"]["balanced"]
            await page.post("/teach/start", name="wave")
            assert (await page.refused("/mode", 409, target="stand"))["error"] == "busy"
            assert (await page.refused("/teach/start", 409, name="b"))["error"] == "busy"
            await asyncio.sleep(1)
            assert (await page.post("/stop"))["stopped"] == "teaching"
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            await page.notice("kept as the take 'wave'")
            # Who stopped it need not be told by the robot that somebody did.
            assert not any("ended" in words for words in page.notices())

    run(story())


def test_a_refusal_before_a_teaching_has_begun_leaves_the_robot_free(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await teach(page, "wave")
            refusal = await page.refused("/teach/start", 409, name="wave")
            assert "already exists" in refusal["message"]
            assert (await page.get("/status"))["activity"]["kind"] == "idle"
            await page.post("/teach/start", name="wave", overwrite=True)

    run(story())


def test_arms_on_their_way_back_from_a_teaching_are_not_at_rest(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_hub(tmp_path) as hub:
            assert hub.connection.embedded is not None
            world = hub.connection.embedded.world
            world.obey("somebody", m.EnterTeaching(world.state(), ""))
            await asyncio.sleep(0.2)
            world.obey("somebody", m.ExitTeaching())
            await asyncio.sleep(HOLD_TAUGHT_S + 0.1)
            back = hub.status.document(None)["activity"]
            assert (back["kind"], back["name"], back["phase"]) == ("playing", "", "return")
            await hub.teaching.teach("wave")  # the next teaching need not wait for it
            await hub.teaching.finish(save=False)
            await asyncio.sleep(HOLD_TAUGHT_S + 5)
            assert hub.status.document(None)["activity"]["kind"] == "idle"

    run(story())


def test_a_playback_that_is_stopped_stays_as_far_as_it_was(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await teach(page, "wave", seconds=3)
            await page.post("/play", name="wave")
            await page.status(lambda s: s["activity"]["fraction"] > 0.2)
            await page.post("/stop")
            back = await page.status(lambda s: s["activity"]["phase"] == "return")
            assert 0.2 < back["activity"]["fraction"] < 0.6

    run(story())


def test_a_factory_action_is_told_by_its_name(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            assert (await page.post("/perform", preset=18))["activity"]["name"] == "high five"
            assert (
                "performing 'high five'"
                in (await page.refused("/perform", 409, preset=15))["message"]
            )
            await page.post("/stop")

    run(story())


def test_a_factory_action_that_is_accepted_and_never_begins_is_reported(tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            rig("webrtc", quirks=("never-moves",)) as one,
            one_browser(tmp_path, one.url) as (_, page),
        ):
            await page.post("/perform", preset=27)
            await page.notice("did not show it begin within 3 s")
            await page.status(lambda s: s["activity"]["kind"] == "idle")

    run(story())


def test_a_warned_motion_is_played_only_by_force(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await teach(page, "clap", "clap", seconds=3)
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            refusal = await page.refused("/play/take", 409, take="clap")
            assert refusal["error"] == "warned-motion"
            await page.post("/play/take", take="clap", force=True)
            assert (await page.post("/stop"))["stopped"] == "playing"
            track = server.library.load("clap")
        async with one_hub(tmp_path) as hub:
            # Without force the last check, from where the arms are, has its say too.
            with pytest.raises(WarnedMotionError):
                await hub.playing.play_track(track, "clap")
            assert not hub.activities.busy

    run(story())


def test_a_stop_right_after_the_start_of_a_teaching_ends_it_too(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            for number in range(3):
                await page.post("/teach/start", name=f"short {number}")
                assert (await page.post("/stop"))["stopped"] == "teaching"
                await page.status(lambda s: s["activity"]["kind"] == "idle", 3)
                await page.until(lambda: page.latest["state"]["soft"] is False)

    run(story())


def test_a_stop_before_a_playback_has_begun_is_no_error_to_who_asked_for_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await teach(page, "wave", seconds=1)
            for path, body in (
                ("/play", {"name": "wave"}),
                ("/play/take", {"take": "wave", "steps": []}),
            ):
                for pause_s in (0.0, 0.005, 0.02):
                    asked = asyncio.create_task(page.ask("POST", path, json=body))
                    await asyncio.sleep(pause_s)
                    await page.status(lambda s: s["activity"]["kind"] == "playing")
                    assert (await page.post("/stop"))["stopped"] == "playing"
                    assert (await asked).status_code == 200, (await asked).text
                    await page.status(lambda s: s["activity"]["kind"] == "idle")

    run(story())


def test_a_held_pose_is_let_go_by_a_stop(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await page.post("/perform", preset=15)
            await page.status(lambda s: s["holding"])
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            assert (await page.post("/stop"))["stopped"] == "holding"
            await page.status(lambda s: not s["holding"])

    run(story())


def test_a_recording_that_is_full_ends_and_is_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teaching, "MAX_MOTION_S", 3.0)

    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await page.post("/teach/start", name="long")
            await page.notice("3 s are full")
            await page.status(lambda s: s["activity"]["kind"] == "idle")
            assert server.library.load("long").duration_s > 2.5
            assert [action["name"] for action in (await page.get("/actions"))["taught"]] == ["long"]

    run(story())


def test_a_server_that_ends_leaves_the_arms_holding_and_the_take_kept(tmp_path: Path) -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        url = await simulator.serve_udp("127.0.0.1", 0)
        async with one_browser(tmp_path, url) as (server, page):
            await page.post("/teach/start", name="wave")
            await asyncio.sleep(1)
            assert simulator.world.body.soft
        assert not simulator.world.body.soft
        assert len(server.library.load("wave")) > 50
        await simulator.close()
        store.close()

    run(story())


def test_the_joints_describe_a_tree_from_the_pelvis(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, MEMORY) as server:
            page = await server.browser()
            document = await page.get("/robot/joints")
            links = {"pelvis"} | {joint["link"] for joint in document["joints"]}
            assert all(joint["parent"] in links for joint in document["joints"])
            assert len(document["joints"]) == len(document["rest_rad"]) == 29
            assert sum(joint["taught"] for joint in document["joints"]) == 15
            model = await page.ask("GET", "/robot/model")
            assert model.status_code in {200, 404}

    run(story())


def test_robots_on_the_network_are_found(tmp_path: Path) -> None:
    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        async with one_browser(tmp_path) as (_, page):
            await simulator.serve_discovery("E2100TEST0000001", "127.0.0.1")
            found = await page.get("/discover?serial=E2100TEST0000001&seconds=1")
            assert {
                "serial": "E2100TEST0000001",
                "address": "127.0.0.1",
                "url": "webrtc://127.0.0.1",
            } in found["robots"]
            assert (await page.ask("GET", "/discover?seconds=99")).status_code == 422
        await simulator.close()
        store.close()

    run(story())


def test_a_defect_is_admitted_and_the_server_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def break_down(*_: object) -> None:
        raise RuntimeError("a secret of the inside")

    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            monkeypatch.setattr(TakeService, "entries", break_down)
            answer = await page.ask("GET", "/takes")
            assert (answer.status_code, answer.json()["error"]) == (500, "defect")
            assert "secret" not in answer.text
            monkeypatch.undo()
            assert (await page.get("/takes"))["takes"] == []

    run(story())
    assert "/api/takes failed" in caplog.text


# ---- hands --------------------------------------------------------------------------------------


def test_the_page_knows_the_fingers_of_a_robot_that_wears_hands(tmp_path: Path) -> None:
    pytest.importorskip("cyclonedds")

    async def story() -> None:
        store = Store(":memory:")
        simulator = Simulator(World(store))
        door = await simulator.serve_dds("lo", free_domain("web"), lowstate_hz=100.0, hands=DEX3)
        async with one_browser(tmp_path, door.url) as (server, page):
            names = [joint["name"] for joint in (await page.get("/robot/joints"))["joints"]]
            assert names[-14:] == [name for hand in DEX3 for name in hand.names]
            await page.until(lambda: len(page.latest["state"]["joints_rad"]) == len(names))
            await teach(page, "grip", seconds=2)
            taken = server.library.load("grip")
            assert list(taken.names) == names
            await asyncio.sleep(5.0)  # the arms return
            await page.post("/play/take", take="grip", force=True)
            await page.notice("hands of this motion are left out")
            await page.post("/stop")
        await simulator.close()
        store.close()

    run(story())


@pytest.mark.parametrize(
    ("quirk", "words"),
    [
        ("20-slots", "does not report 9 of its joints: "),
        ("lowstate-1hz", "reports its joints less than 10 times per second"),
        ("no-dq", ""),
    ],
)
def test_the_status_mentions_what_makes_a_take_poor(quirk: str, words: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with (
            rig("webrtc", quirks=(quirk,)) as robot,
            one_browser(tmp_path, robot.url) as told,
        ):
            page = told[1]
            await asyncio.sleep(4.0)
            status = await page.get("/status")
            found = [each["message"] for each in status["findings"] if each["kind"] == "state"]
            assert [words in each for each in found] == ([True] if words else [])

    run(story())
