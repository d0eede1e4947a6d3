"""The pendant with an A1: drawn, laid down, taught by its legs, played and stopped."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from a1_hand import Hand
from a1_rig import LoggedWorld, is_damping
from rote.errors import BadRequestError
from rote.messages import Phase
from rote.model.a1 import A1, A1_STAND_RAD
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.session.a1 import Level
from rote.sim.quadruped.simulator import HIGH_PORT, LOW_PORT, A1Simulator
from rote.web.schemas.robot import ModeNow
from rote.web.services.connection_keeper import check_url
from rote.web.services.hub import Hub, Start
from rote.wire.a1.values import Command, Dialect, LowCmd
from virtual import run
from web.pendant import CHILDREN, Browser, Document, Pendant, one_browser, pendant


class Dog(NamedTuple):
    world: LoggedWorld
    url: str
    """Of its motors; the same port has the walking controller."""

    @property
    def was_driven(self) -> bool:
        """Whether anybody has talked to its motors."""
        return any(isinstance(command, LowCmd) for _, command in self.world.told)


@asynccontextmanager
async def dog(start: str = "hung", port: int = 0) -> AsyncIterator[Dog]:
    """A simulated A1 of dialect 3.2, which has both levels at one port."""
    world = LoggedWorld(dialect=Dialect.A1_3_2, start=start)
    async with A1Simulator(world, high_port=port, low_port=port) as simulator:
        yield Dog(world, f"{simulator.url(Level.LOW)}&sender=loop")


@asynccontextmanager
async def one_dog(folder: Path) -> AsyncIterator[tuple[Dog, Pendant, Browser]]:
    """A hanging A1, and a page that is connected to its motors."""
    async with dog() as one, one_browser(folder, one.url) as (server, page):
        yield one, server, page


async def teach(one: Dog, page: Browser, name: str = "paw", seconds: float = 2.0) -> Document:
    """Let a hand swing the legs of a robot that is taught."""
    one.world.attach(Hand(np.array(A1_STAND_RAD)))
    await page.post("/teach/start", name=name)
    await asyncio.sleep(seconds)
    return await page.post("/teach/finish", save=True)


async def idle(page: Browser) -> Document:
    return await page.status(lambda s: s["activity"]["kind"] == "idle")


def still(names: tuple[str, ...], pose: tuple[float, ...], variant: str) -> Track:
    times_s = np.arange(0.0, 1.0, 0.02)
    rows = np.tile(np.array(pose), (len(times_s), 1))
    return Track(times_s=times_s, joints_rad=rows, names=names, variant=variant)


# ---- taught, played and stopped -----------------------------------------------------------------


def test_its_legs_are_taught_into_the_library_played_and_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_dog(tmp_path) as (one, server, page):
            status = page.latest["status"]
            assert (status["build"], status["family"], status["mode"]) == ("a1", "a1", None)
            assert {"teach", "stream", "stop"} <= set(status["abilities"])
            assert not {"list", "presets", "mode"} & set(status["abilities"])
            assert status["findings"] == []
            assert len(page.latest["state"]["joints_rad"]) == 12
            taught = await teach(one, page)
            assert (taught["take"], taught["saved"]) == ("paw", True)
            assert taught["samples"] > 500
            await page.until(lambda: page.latest["state"]["soft"] is False)
            assert is_damping(one.world.newest)
            (take,) = (await page.get("/takes"))["takes"]
            assert (take["name"], take["family"]) == ("paw", "a1")
            edited = await page.post("/edit", take="paw", steps=[{"op": "mirror"}])
            assert (edited["build"], edited["ok"]) == ("a1", True)
            await page.post("/play/take", take="paw")
            await page.status(lambda s: s["activity"]["phase"] == "playing")
            await page.status(lambda s: s["activity"]["fraction"] > 0.2)
            stopped = await page.post("/stop")
            assert stopped["stopped"] == "playing"
            assert "legs" in stopped["message"]
            await idle(page)
            assert server.library.load("paw").names == A1.names
            # Once more to its end: nothing of the stop is left.
            await page.post("/play/take", take="paw", speed=2.0)
            await page.status(lambda s: s["activity"]["kind"] == "playing")
            await idle(page)

    run(story())


def test_a_stop_while_its_legs_are_soft_brakes_them_and_keeps_what_was_recorded(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with one_dog(tmp_path) as (one, server, page):
            await page.post("/teach/start", name="cut off")
            await asyncio.sleep(1)
            assert page.latest["state"]["soft"]
            assert not is_damping(one.world.newest)
            stopped = await page.post("/stop")
            assert (stopped["stopped"], "legs are braked" in stopped["message"]) == (
                "teaching",
                True,
            )
            await idle(page)
            await page.notice("kept as the take 'cut off'")
            await asyncio.sleep(0.1)
            assert is_damping(one.world.newest)
            assert len(server.library.load("cut off")) > 100
            # At rest it stops too, and twice.
            assert (await page.post("/stop"))["stopped"] == "nothing"
            assert (await page.post("/stop"))["stopped"] == "nothing"

    run(story())


def test_a_take_of_its_legs_can_be_renamed_and_thrown_away_at_its_end(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_dog(tmp_path) as (_, server, page):
            await page.post("/teach/start", name="motion 1")
            await asyncio.sleep(0.5)
            taught = await page.post("/teach/finish", save=True, name="sit")
            assert (taught["take"], taught["saved"]) == ("sit", True)
            await page.post("/teach/start", name="rubbish")
            await page.post("/pause", paused=True)
            await page.post("/pause", paused=False)
            assert not (await page.post("/teach/finish", save=False))["saved"]
            assert [entry.name for entry in server.library.list()] == ["sit"]

    run(story())


def test_what_it_cannot_do_is_refused_in_words(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_dog(tmp_path) as (_, _, page):
            assert (await page.ask("GET", "/actions")).status_code == 409
            for path, body in (
                ("/play", {"name": "wave"}),
                ("/perform", {"preset": 1}),
                ("/mode", {"target": "stand"}),
                ("/mode", {"target": "lie"}),
                ("/actions/delete", {"name": "wave"}),
                ("/teach/start", {"name": "wave", "overwrite": True}),
            ):
                assert (await page.refused(path, 409, **body))["error"] == "unsupported", path
            assert (await page.get("/status"))["activity"]["kind"] == "idle"

    run(story())


def test_a_protection_that_trips_is_told_and_connecting_anew_goes_on(tmp_path: Path) -> None:
    async def story() -> None:
        async with dog() as one:
            hub = Hub(Start(Library(tmp_path / "takes"), one.url, children=CHILDREN))
            await hub.open()
            try:
                await _connected(hub)
                robot = hub.connection.robot
                await robot.modes.damp()
                await asyncio.sleep(1.5)
                (finding, *_) = hub.status.document(None)["findings"]
                assert (finding["severity"], "damping" in finding["message"]) == ("error", True)
                assert hub.status.document(None)["faults"]
                await hub.connection.open(one.url)
                await _connected(hub)
                assert hub.connection.robot is not robot
                assert hub.status.document(None)["findings"] == []
                await hub.teaching.teach("again")
                await hub.teaching.finish(save=False)
            finally:
                await hub.close()

    run(story())


# ---- which level --------------------------------------------------------------------------------


async def _connected(hub: Hub) -> None:
    async with asyncio.timeout(60):
        while hub.connection.report.state in {"connecting", "lost"}:
            await asyncio.sleep(0.05)
    assert hub.connection.report.state == "connected", hub.connection.report


async def _told(hub: Hub, state: str) -> None:
    async with asyncio.timeout(60):
        while hub.connection.report.state != state:
            await asyncio.sleep(0.05)


def test_one_that_stands_is_not_made_to_sink(tmp_path: Path) -> None:
    async def story() -> None:
        async with dog("stand") as one, pendant(tmp_path, one.url) as server:
            page = await server.browser()
            off = await page.status(lambda s: s["connection"]["state"] == "off", 60)
            assert "would sink" in off["connection"]["message"]
            assert off["connection"]["remedy"]
            assert "teach" in off["elsewhere"]
            assert not one.was_driven

    run(story())


def test_a_page_that_sees_it_stand_is_refused_its_motors_and_stays_connected(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        world = LoggedWorld(start="stand")
        async with (
            A1Simulator(world) as simulator,
            one_browser(tmp_path, simulator.url(Level.HIGH)) as (_, page),
        ):
            url = simulator.url(Level.HIGH)
            refusal = await page.refused("/connect", 400, url=url, wanted="teach")
            assert "would sink" in refusal["message"]
            status = await page.get("/status")
            assert status["connection"]["state"] == "connected"
            assert status["mode"]["balanced"]
            assert not any(_low(told) for _, told in world.told)

    asyncio.run(story())  # a process sends, which takes real time


def test_motors_come_back_after_a_loss_only_where_the_robot_does_not_stand(tmp_path: Path) -> None:
    async def story() -> None:
        async with dog() as one:
            port = int(one.url.partition("?")[0].rpartition(":")[2])
            hub = Hub(Start(Library(tmp_path / "takes"), one.url, children=CHILDREN))
            await hub.connection.open(one.url, ability="teach")
            await _connected(hub)
        try:
            await _told(hub, "lost")
            async with dog("stand", port) as risen:
                await _told(hub, "off")
                assert "stands" in hub.connection.report.message
                assert not risen.was_driven
        finally:
            await hub.close()

    run(story())


def test_two_who_connect_at_once_leave_one_conversation(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_dog(tmp_path) as (one, _, page):
            url = one.url.partition("&")[0]
            asked = [page.ask("POST", "/connect", json={"url": url}) for _ in range(3)]
            assert {each.status_code for each in await asyncio.gather(*asked)} == {200}
            await page.status(lambda s: s["connection"]["state"] == "connected", 60)
            tasks = [
                task for task in asyncio.all_tasks() if task.get_name().startswith("rote line")
            ]
            assert len(tasks) == 1

    run(story())


def _mode_of(hub: Hub) -> ModeNow:
    mode = hub.status.document(None)["mode"]
    assert mode is not None
    return mode


def test_from_its_walking_controller_it_is_laid_down_taught_and_stood_up(tmp_path: Path) -> None:
    host = "127.86.1.1"  # its usual ports, at an address that no other test has

    async def story() -> None:
        world = LoggedWorld(start="stand")
        async with A1Simulator(world, host, high_port=HIGH_PORT, low_port=LOW_PORT):
            url = f"a1://{host}?sender=loop"
            hub = Hub(Start(Library(tmp_path / "takes"), url, children=CHILDREN))
            await hub.open()
            try:
                await _connected(hub)
                assert {"mode", "lie", "stop"} <= hub.connection.abilities
                assert {"teach", "stream"} <= hub.connection.abilities_at_other_levels
                assert _mode_of(hub)["balanced"]
                with pytest.raises(BadRequestError, match="would sink"):
                    hub.connection.robot.check_wanted("teach")
                assert hub.connection.report.state == "connected"
                await hub.connection.open(url, ability="teach")
                with pytest.raises(AssertionError, match="would sink"):
                    await _connected(hub)
                assert not any(_low(told) for _, told in world.told)
                await hub.connection.open(url, ability="examine")
                await _connected(hub)
                await hub.connection.robot.modes.lie_down()
                await asyncio.sleep(3)
                assert _mode_of(hub)["name"] == "lie down"
                await hub.connection.open(url, ability="teach")
                await _connected(hub)
                assert hub.connection.url.endswith("level=low")
                await hub.teaching.teach("sit")
                await asyncio.sleep(1)
                assert (await hub.teaching.finish(save=True)).saved
                await hub.connection.open(hub.connection.url, ability="examine")
                await _connected(hub)
                await asyncio.sleep(2)
                assert (await hub.connection.robot.modes.stand()).balanced
                assert world.body.height_m > 0.2
            finally:
                await hub.close()

    run(story())


def _low(command: Command) -> bool:
    return isinstance(command, LowCmd)


@pytest.mark.parametrize(
    "url",
    [
        "a1://192.168.123.161", "a1://192.168.123.10?level=low", "a1://h:8082?dialect=3.3&level=high",
        "udp://h:1?build=g1-23", "webrtc://ap?build=r1-edu", "dds://eth0?domain=1&build=g1-23", "sim://g1-23",
    ],
)  # fmt: skip
def test_a_page_may_say_what_a_wire_understands(url: str) -> None:
    assert check_url(url) == url


@pytest.mark.parametrize(
    "url", ["a1://h?sender=loop", "a1://h?local=1", "a1://h/x", "a1://", "sim://a1", "sim://g1?x=1"]
)
def test_a_page_may_say_nothing_else(url: str) -> None:
    with pytest.raises(BadRequestError) as caught:
        check_url(url)
    assert caught.value.remedy


# ---- takes of others ----------------------------------------------------------------------------


def test_a_take_of_another_family_is_shown_edited_and_not_played(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_dog(tmp_path) as (_, server, page):
            server.library.save(still(G1_29.names, G1_29.rest_rad, G1_29.name), "arms")
            server.library.save(still(A1.names, A1_STAND_RAD, "a1"), "legs")
            families = {
                take["name"]: take["family"] for take in (await page.get("/takes"))["takes"]
            }
            assert families == {"arms": "g1", "legs": "a1"}
            assert (await page.post("/edit", take="arms"))["build"] == "g1-29"
            refusal = await page.refused("/play/take", 400, take="arms")
            assert "a motion of a G1, but the robot is an A1" in refusal["message"]
            saved = await page.post(
                "/edit/save", take="arms", steps=[{"op": "speed", "factor": 0.5}], name="slow"
            )
            assert saved["family"] == "g1"
            assert (await page.get("/status"))["activity"]["kind"] == "idle"
        async with one_browser(tmp_path) as (_, page):
            refusal = await page.refused("/play/take", 400, take="legs")
            assert "a motion of an A1, but the robot is a G1" in refusal["message"]
            assert page.latest["state"]["phase"] == Phase.NONE.name.lower()

    run(story())
