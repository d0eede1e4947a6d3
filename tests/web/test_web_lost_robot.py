"""A robot that is lost and comes back: no stop is forgotten, no arms stay soft unnoticed."""

import asyncio
from collections.abc import AsyncIterator, Hashable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from rig import Rig, rig
from rote import messages as m
from rote.errors import RefusedError
from rote.messages import Phase
from rote.robot.message_robot import MessageRobot
from rote.transport.impair import Impairment
from rote.web.services.stop_sender import STOP_ANSWER_S
from virtual import run
from web.pendant import Browser, one_browser

WIRES = ("udp", "webrtc", "dds")
LONG_S = 40.0


class Link:
    """The network between pendant and robot, which can be cut and restored."""

    def __init__(self) -> None:
        link = self
        self.is_cut = False

        class Cuttable(Impairment):
            """An impairment whose copies are cut with it."""

            @property
            def cut_after_s(self) -> float | None:
                return 0.0 if link.is_cut else None

            @cut_after_s.setter
            def cut_after_s(self, value: float | None) -> None:
                pass

        self.impairment: Impairment = Cuttable()

    def cut(self) -> None:
        self.is_cut = True

    def restore(self) -> None:
        self.is_cut = False


@asynccontextmanager
async def cuttable(folder: Path, wire: str) -> AsyncIterator[tuple[Rig, Browser, Link]]:
    """A pendant whose robot has a long action, behind a link that can be cut."""
    link = Link()
    async with rig(wire, impairment=link.impairment) as one:
        keyframes = tuple(
            m.Keyframe(joint=15, time_ms=int(1000 * at_s), value_rad=0.3 * (at_s % 4) / 4)
            for at_s in range(2, int(LONG_S), 2)
        )
        save = m.SaveAction(
            name="long", created_s=0, duration_ms=int(1000 * LONG_S), keyframes=keyframes
        )
        assert one.world.obey("test", save) == m.Status(m.Code.OK)
        async with one_browser(folder, one.url) as (_, page):
            yield one, page, link


async def play_long(page: Browser) -> None:
    await page.post("/play", name="long")
    await page.status(lambda s: s["activity"]["phase"] == "playing")


async def lose(page: Browser, link: Link) -> None:
    link.cut()
    await page.status(lambda s: s["connection"]["state"] == "lost", 60)


async def regain(page: Browser, link: Link) -> None:
    link.restore()
    await page.status(lambda s: s["connection"]["state"] == "connected", 60)


def phase(one: Rig) -> Phase:
    return one.world.phase


def kinds(page: Browser) -> list[str]:
    return [each["event"]["kind"] for each in page.heard if each["type"] == "event"]


@pytest.mark.parametrize("wire", WIRES)
def test_a_stop_while_the_link_is_cut_is_sent_first_after_the_reconnect(
    wire: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, wire) as (one, page, link):
            await play_long(page)
            await asyncio.sleep(1.0)
            link.cut()
            loop = asyncio.get_running_loop()
            pressed_s = loop.time()
            refused = await page.refused("/stop", 502)
            assert loop.time() - pressed_s < STOP_ANSWER_S + 0.3
            assert refused["error"] == "stop-unconfirmed"
            assert "remote" in refused["message"]
            await page.status(lambda s: s["connection"]["state"] == "lost", 60)
            status = await page.get("/status")
            assert "NOT confirmed" in status["unconfirmed_stop"]["message"]
            assert status["unconfirmed_stop"]["since_s"] > 1.0
            assert phase(one) is Phase.PLAYING
            await regain(page, link)
            assert phase(one) is not Phase.PLAYING, "it was stopped before it counts as back"
            assert one.world.stopped_early
            after = await page.status(lambda s: s["unconfirmed_stop"] is None, 5)
            assert after["connection"]["state"] == "connected"
            assert kinds(page).index("stop-unconfirmed") < kinds(page).index("stop-confirmed")
            await asyncio.sleep(8.0)
            assert one.world.phase is Phase.NONE

    run(story())


def test_a_stop_without_any_connection_is_kept_and_its_socket_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, link):
            await play_long(page)
            await lose(page, link)
            assert (await page.get("/status"))["unconfirmed_stop"] is None
            await page.socket.send('{"type":"stop"}')
            await page.until(lambda: "stopped" in page.latest)
            assert page.latest["stopped"]["confirmed"] is False
            assert "NOT confirmed" in page.latest["stopped"]["message"]
            safety = [each for each in (await page.get("/events"))["events"] if each["safety"]]
            assert [each["kind"] for each in safety] == ["lost", "stop-unconfirmed"]
            assert "may still move" in safety[0]["message"]
            await regain(page, link)
            assert one.world.phase is not Phase.PLAYING

    run(story())


def test_a_robot_that_answers_no_stop_gets_it_again_without_a_reconnect(tmp_path: Path) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, _):
            await play_long(page)
            obey, refused = one.world.obey, list[m.Command]()

            def refuse(client: Hashable, command: m.Command) -> m.Reply:
                if isinstance(command, m.StopMotion) and len(refused) < 3:
                    refused.append(command)
                    return m.Status(m.Code.BUSY)
                return obey(client, command)

            one.world.obey = refuse  # type: ignore[method-assign]
            assert (await page.refused("/stop", 502))["error"] == "stop-unconfirmed"
            await page.status(lambda s: s["unconfirmed_stop"] is None, 5)
            assert len(refused) == 3
            assert one.world.phase is not Phase.PLAYING

    run(story())


def test_another_robot_gets_no_stop_of_the_one_before_and_that_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (_, page, link), rig("udp") as other:
            await play_long(page)
            await lose(page, link)
            await page.refused("/stop", 502)
            asked: list[m.Command] = []
            obey = other.world.obey

            def note(client: Hashable, command: m.Command) -> m.Reply:
                asked.append(command)
                return obey(client, command)

            other.world.obey = note  # type: ignore[method-assign]
            await page.post("/connect", url=other.url)
            await page.status(lambda s: s["connection"]["state"] == "connected", 30)
            await asyncio.sleep(2.0)
            assert not [each for each in asked if isinstance(each, m.StopMotion)]
            assert (await page.get("/status"))["unconfirmed_stop"] is None
            await page.notice("never confirmed the STOP")

    run(story())


@pytest.mark.parametrize("wire", WIRES)
def test_a_playback_found_after_a_reconnect_has_its_name_and_progress(
    wire: str, tmp_path: Path
) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, wire) as (one, page, link):
            await play_long(page)
            began_s = asyncio.get_running_loop().time()
            await asyncio.sleep(2.0)
            await lose(page, link)
            await regain(page, link)
            found = await page.status(lambda s: s["activity"]["phase"] == "playing", 10)
            activity, now_s = found["activity"], asyncio.get_running_loop().time()
            assert one.world.phase is Phase.PLAYING
            assert (activity["kind"], activity["name"]) == ("playing", "long")
            assert activity["duration_s"] == pytest.approx(LONG_S, abs=0.1)
            assert activity["fraction"] == pytest.approx((now_s - began_s) / LONG_S, abs=0.08)
            assert (await page.post("/stop"))["stopped"] == "playing"
            rests = await page.status(lambda s: s["activity"]["phase"] == "none", 20)
            assert (rests["activity"]["kind"], rests["activity"]["name"]) == ("idle", "")

    run(story())


@pytest.mark.parametrize("wire", WIRES)
def test_a_teaching_that_was_cut_off_ends_after_the_reconnect(wire: str, tmp_path: Path) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, wire) as (one, page, link):
            await page.post("/teach/start", name="wave")
            status = await page.status(lambda s: s["soft"] is not None, 5)
            assert status["soft"] == {"by": "teaching", "can_hold": True}
            await asyncio.sleep(1.0)
            await lose(page, link)
            assert one.world.body.soft, "the robot does not know yet"
            assert (await page.get("/status"))["soft"]["by"] == "unknown"
            await regain(page, link)
            await asyncio.sleep(3.0)
            assert not one.world.body.soft
            after = await page.status(lambda s: s["soft"] is None, 5)
            assert after["activity"]["kind"] == "idle" or after["activity"]["phase"] == "return"
            lost = [each for each in (await page.get("/events"))["events"] if each["safety"]]
            assert any("may still be soft" in each["message"] for each in lost)
            assert any("'wave'" in each["message"] for each in lost), "where the recording is"

    run(story())


def test_arms_that_another_client_made_soft_are_shown_and_can_be_made_to_hold(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, _), one.connect() as other:

            async def teach_them() -> None:
                with pytest.raises(RefusedError):
                    async with other.teach("theirs"):
                        await asyncio.sleep(60.0)

            theirs = asyncio.create_task(teach_them())
            status = await page.status(lambda s: s["soft"] is not None, 5)
            assert status["soft"] == {"by": "elsewhere", "can_hold": True}
            assert status["activity"]["kind"] == "idle"
            await asyncio.sleep(3.0)
            assert one.world.body.soft, "nobody here ends the teaching of others"
            assert (await page.post("/stop"))["stopped"] == "teaching"
            assert not one.world.body.soft
            await page.status(lambda s: s["soft"] is None, 5)
            await theirs

    run(story())


def test_a_browser_that_goes_while_its_robot_is_lost_has_it_stopped(tmp_path: Path) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, link):
            watcher = Browser(page.port, page.socket, page.http)
            await play_long(page)
            await lose(page, link)
            await page.leave()
            await asyncio.sleep(4.0)
            link.restore()
            await watcher.status(lambda s: s["connection"]["state"] == "connected", 60)
            assert one.world.phase is not Phase.PLAYING
            for task in watcher._tasks:
                task.cancel()

    run(story())


def test_a_stop_by_request_is_among_the_events(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            watcher = await server.browser()
            await page.post("/perform", preset=27)
            await page.status(lambda s: s["activity"]["phase"] == "playing")
            await page.post("/stop")
            await watcher.notice("Stopped")
            assert kinds(watcher) == ["stop"]

    run(story())


def test_a_stop_that_fails_in_an_unforeseen_way_is_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, _):
            await play_long(page)
            stop, sent = MessageRobot.stop, list[MessageRobot]()

            async def fail_twice(robot: MessageRobot) -> None:
                sent.append(robot)
                if len(sent) < 3:
                    raise OSError(105, "No buffer space available")
                await stop(robot)

            monkeypatch.setattr(MessageRobot, "stop", fail_twice)
            refused = await page.refused("/stop", 502)
            assert refused["error"] == "stop-unconfirmed"
            await page.status(lambda s: s["unconfirmed_stop"] is None, 5)
            assert phase(one) is not Phase.PLAYING

    run(story())


def test_a_stop_that_a_disconnect_overtakes_is_reported(tmp_path: Path) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (_, page, link):
            link.cut()
            stopping = asyncio.create_task(page.refused("/stop", 502))
            await asyncio.sleep(STOP_ANSWER_S / 4)
            await page.post("/disconnect")
            assert "never confirmed the STOP" in (await stopping)["message"]
            assert kinds(page) == ["stop-unconfirmed"]
            link.restore()
            await asyncio.sleep(5.0)  # the stop that is still being sent ends

    run(story())


def test_nothing_begins_while_a_stop_is_not_confirmed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, _):

            async def refuse(_: MessageRobot) -> None:
                raise RefusedError(m.Code.BUSY, "busy", "")

            with monkeypatch.context() as patch:
                patch.setattr(MessageRobot, "stop", refuse)
                await page.refused("/stop", 502)
                for path in ("/play", "/teach/start"):
                    refused = await page.refused(path, 409, name="long")
                    assert refused["error"] == "stop-pending"
            assert phase(one) is Phase.NONE
            await page.status(lambda s: s["unconfirmed_stop"] is None, 5)
            await page.post("/play", name="long")

    run(story())
