"""What the hub does when things happen at the same time; no HTTP between."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from starlette.websockets import WebSocket

from rig import rig
from robot.test_robot_imported import waving
from rote.errors import (
    BadRequestError,
    ImportedMotionError,
    LinkError,
    NotApprovedError,
    RefusedError,
)
from rote.messages import Phase
from rote.motion.files.agreed_origins import is_agreed
from rote.motion.files.library import Library
from rote.motion.track import Origin
from rote.stage.conductor import StopAnswer
from rote.stage.keys import StageKeys
from rote.stage.stage import TRY_STAGE
from rote.web.access.roles import LOCAL, SCOPE_KEY
from rote.web.routes.live import serve_browser
from rote.web.schemas import robot as s
from rote.web.schemas.shows import StageGo
from rote.web.services.hub import Hub, Start, _describe_stage_stop
from rote.web.services.stage import PendantStage
from stage_memory import memory_stage
from virtual import run
from web.pendant import CHILDREN, MEMORY
from web.test_web_library import sway
from web.test_web_lost_robot import cuttable, phase

OTHER = "sim://g1-23"
SECRET = "ABCD-EFGH"


@asynccontextmanager
async def hub_with(
    folder: Path, *takes: str, stage: PendantStage | None = None
) -> AsyncIterator[Hub]:
    """A hub whose simulated robot is connected, with these takes."""
    library = Library(folder / "takes")
    for name in takes:
        library.save(sway(), name)
    hub = Hub(Start(library, MEMORY, stage=stage, secret=SECRET, children=CHILDREN))
    await hub.open()
    try:
        await until_connected(hub)
        yield hub
    finally:
        await hub.close()


async def until_connected(hub: Hub) -> None:
    while hub.connection.connected is None:
        await asyncio.sleep(0.05)


async def phases_for(hub: Hub, seconds: float) -> set[Phase]:
    """Return what the robot does in the next seconds."""
    seen: set[Phase] = set()
    robot = hub.connection.robot
    forget = robot.on_state(lambda state: seen.add(state.phase))
    await asyncio.sleep(seconds)
    forget()
    return seen


def test_a_stop_while_a_take_is_checked_keeps_the_robot_still(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path, "sway") as hub:
            playing = asyncio.create_task(hub.play_take(s.PlayTake(take="sway", force=True)))
            await asyncio.sleep(0)  # it is read and checked now, by another process
            assert not playing.done()
            await hub.stop()
            await playing
            assert await phases_for(hub, 3.0) == {Phase.NONE}
            await hub.play_take(s.PlayTake(take="sway", force=True))
            assert hub.activities.busy, "the next one is played"

    run(story())


def test_what_was_asked_of_one_robot_is_not_played_by_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            hub.takes.library.save(sway(170.0, 0.4), "long")  # which takes a while to check
            wanted = s.PlayTake(take="long", force=True, mapped=True)
            playing = asyncio.create_task(hub.play_take(wanted))
            await asyncio.sleep(0)  # it is read and checked now, by another process
            await hub.connect(OTHER, None)
            assert not playing.done()
            await until_connected(hub)
            with pytest.raises(RefusedError, match="another robot"):
                await playing
            assert not hub.activities.busy
            assert await phases_for(hub, 1.0) == {Phase.NONE}

    asyncio.run(story())  # in virtual time no robot is connected while another process works


def test_an_action_asked_of_one_robot_is_not_played_by_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            await hub.teaching.teach("wave")
            await asyncio.sleep(1.0)
            await hub.teaching.finish(save=True)
            playing = asyncio.create_task(hub.play("wave", speed=None, loop=False))
            await asyncio.sleep(0)
            await hub.connect(OTHER, None)
            await until_connected(hub)
            with pytest.raises((RefusedError, LinkError)):
                await playing
            assert not hub.activities.busy

    run(story())


def test_two_stops_close_together_both_keep_a_take_from_being_played(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path, "sway") as hub:
            first = asyncio.create_task(hub.stop())
            await asyncio.sleep(0)
            playing = asyncio.create_task(hub.play_take(s.PlayTake(take="sway", force=True)))
            await asyncio.sleep(0)
            await asyncio.gather(first, hub.stop())
            await playing
            assert not hub.activities.busy

    run(story())


def test_what_was_approved_for_one_robot_is_not_played_by_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            hub.takes.library.save(sway(50.0, 0.4), "long")  # which takes a while to check
            client = hub.join(None, "0")
            wanted = s.ProposeMotion(take="long")
            ticket = await hub.agents.propose(wanted)
            press = s.PressApproval(ticket=ticket.id, digest=ticket.proposed.digest, secret=SECRET)
            hub.agents.begin_approval(press, client.id)
            await asyncio.sleep(2.0)
            hub.agents.approve(ticket.id, client.id)
            beginning = asyncio.create_task(hub.agents.begin(ticket.id, wanted))
            await asyncio.sleep(0)  # it is read once more, while the person goes to another robot
            await hub.connect(OTHER, None)
            await until_connected(hub)
            hub.clients.note_alive(client.id)
            with pytest.raises((NotApprovedError, LinkError)):
                await beginning
            assert not hub.activities.busy

    run(story())


def test_who_commands_is_watched_even_if_nothing_can_be_shown(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            hub.takes.library.save(sway(50.0, 0.4), "long")
            client = hub.join(None, "0")
            await hub.play_take(s.PlayTake(take="long", force=True))
            hub.clients.note_alive(client.id)
            assert hub.connection.embedded is not None
            hub.connection.embedded.world.health.battery_percent = float("nan")
            await asyncio.sleep(1.0)
            assert hub.activities.busy
            hub.clients.leave(client)
            await asyncio.sleep(10.0)
            assert not hub.activities.busy

    run(story())


def test_a_browser_that_leaves_before_it_was_let_in_takes_no_place(tmp_path: Path) -> None:
    async def gone(message: Any) -> None:
        raise OSError("the other end is gone")

    async def nothing() -> Any:
        return {"type": "websocket.connect"}

    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            scope = {"type": "websocket", "query_string": b"", "headers": [], SCOPE_KEY: LOCAL}
            for _ in range(3):
                with pytest.raises((OSError, RuntimeError)):
                    await serve_browser(WebSocket(scope, nothing, gone), hub)
            assert hub.clients.people() == []

    run(story())


def test_a_show_that_goes_on_by_itself_needs_somebody_who_commands(tmp_path: Path) -> None:
    clips = [{"role": "left", "take": "sway"}]
    show = {
        "rote_show": 1,
        "roles": {"left": {}},
        "sections": [
            {"name": "one", "clips": clips},
            {"name": "two", "clips": clips, "start": {"on": "after", "seconds": 20.0}},
        ],
    }
    (tmp_path / "shows").mkdir()
    (tmp_path / "shows" / "greet.json").write_text(json.dumps(show))

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                client = hub.join(None, "0")
                await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, force=True))
                seen = set()
                while (run_now := hub.stage.document()["run"]) is None or run_now[
                    "state"
                ] != "waiting":
                    hub.clients.note_alive(client.id)
                    assert hub.needs_commander, "nobody may give up the command now"
                    seen.add(run_now and run_now["state"])
                    await asyncio.sleep(0.1)
                assert "playing" in seen
                assert hub.needs_commander, "the next section will begin without a GO"
                hub.clients.leave(client)
                await one.until(lambda: one.conductor.active_stop is not None, 10.0)
                await asyncio.sleep(21.0)
                assert one.rig.world.state().phase is Phase.NONE

    run(story())


def test_the_page_names_who_was_lost_in_a_section(tmp_path: Path) -> None:
    clips = [{"role": "left", "take": "sway"}]
    section = {"name": "one", "clips": clips, "on_loss": "go-on"}
    show = {"rote_show": 1, "roles": {"left": {}}, "sections": [section]}
    (tmp_path / "shows").mkdir()
    (tmp_path / "shows" / "greet.json").write_text(json.dumps(show))

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                client = hub.join(None, "0")
                await hub.stage.go(StageGo(show="greet", cast={"left": "ann"}, force=True))
                while (last := hub.stage.document()["last"]) is None:
                    hub.clients.note_alive(client.id)
                    if one.rig.world.state().phase is Phase.PLAYING:
                        one.bus.drops = lambda key: key == StageKeys(TRY_STAGE).state("ann")
                    await asyncio.sleep(0.1)
                assert [each["lost"] for each in last["sections"]] == [["ann"]]
                assert (last["ended"], last["lost"]) == ("", [])

    run(story())


def test_a_show_sends_osc_to_private_addresses_alone(tmp_path: Path) -> None:
    def written(to: str) -> str:
        cue = {"at_s": 0.5, "osc": "/light/1", "to": to}
        clips = [{"role": "left", "take": "sway"}]
        section = {"name": "one", "clips": clips, "cues": [cue]}
        return json.dumps({"rote_show": 1, "roles": {"left": {}}, "sections": [section]})

    (tmp_path / "shows").mkdir()

    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",), osc_open=True)
            async with hub_with(tmp_path, "sway", stage=pendant) as hub:
                file = tmp_path / "shows" / "greet.json"
                wanted = StageGo(show="greet", cast={"left": "ann"}, force=True)
                file.write_text(written("203.0.113.7:53000"))
                with pytest.raises(BadRequestError, match="private network"):
                    await hub.stage.go(wanted)
                assert hub.stage.document()["run"] is None
                file.write_text(written("127.0.0.1:9"))
                await hub.stage.go(wanted)
                assert hub.stage.document()["run"] is not None

    run(story())


def test_the_worst_of_all_robots_is_told(tmp_path: Path) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann", "bob"))
            async with hub_with(tmp_path, stage=pendant) as hub:
                await one.until(lambda: one.conductor.alive("ann"), 10.0)
                assert hub.stage.document()["worst"] == {"state": "lost", "robots": ["bob"]}
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, stage=pendant) as hub:
                client = hub.join(None, "0")
                assert hub.stage.document()["worst"] == {"state": "rest", "robots": ["ann"]}
                one.bus.drops = lambda key: key == StageKeys(TRY_STAGE).state("ann")
                await hub.stop()
                hub.clients.note_alive(client.id)
                worst = hub.stage.document()["worst"]
                assert worst == {"state": "stop-unconfirmed", "robots": ["ann"]}
                assert hub.stage.document()["robots"][0]["stopped"] is False
                await asyncio.sleep(3.0)
                kinds = [event.kind for event in hub.events if event.safety]
                assert "stop-unconfirmed" in kinds
                assert any("confirmed by ann" in event.message for event in hub.events)
                one.bus.drops = lambda key: False
                stopped = {"state": "stopped", "robots": ["ann"]}
                await one.until(lambda: hub.stage.document()["worst"] == stopped, 10.0)

    run(story())


@pytest.mark.parametrize(
    ("answer", "words", "failed"),
    [
        (StopAnswer(0.1), "All robots on the stage have confirmed", False),
        (StopAnswer(None), "No robot of the stage is connected", False),
        (StopAnswer(None, ("ann", "bob")), "not confirmed by ann, bob: use the remote", True),
        (LinkError("no network"), "could not be sent to the stage: use the remotes", True),
        (None, "not all robots have confirmed it yet", False),
    ],
)
def test_what_became_of_a_stop_of_the_stage_is_told(
    answer: StopAnswer | Exception | None, words: str, failed: bool
) -> None:
    async def stop() -> StopAnswer:
        if answer is None:
            await asyncio.sleep(60.0)
        if isinstance(answer, StopAnswer):
            return answer
        raise answer or AssertionError

    async def story() -> None:
        stopping = asyncio.create_task(stop())
        await asyncio.wait({stopping}, timeout=0.1)
        message, is_failed = _describe_stage_stop(stopping)
        assert words in message
        assert is_failed is failed
        stopping.cancel()

    run(story())


def test_a_stage_that_cannot_be_told_to_stop_is_an_unconfirmed_stop(tmp_path: Path) -> None:
    async def story() -> None:
        async with memory_stage() as one:
            pendant = PendantStage(one.stage, "try", ("ann",))
            async with hub_with(tmp_path, stage=pendant) as hub:

                def publish(key: str, data: bytes) -> None:
                    raise LinkError("no network")

                before, one.bus.publish = one.bus.publish, publish  # type: ignore[method-assign]
                did = await hub.stop()
                one.bus.publish = before  # type: ignore[method-assign]
                assert not did.confirmed
                assert "could not be sent to the stage" in did.message
                events = [event for event in hub.events if event.safety]
                assert "could not be sent to the stage" in events[-1].message

    run(story())


def test_a_motion_that_others_made_is_played_only_after_a_yes(tmp_path: Path) -> None:
    async def story() -> None:
        async with rig("udp") as one:
            hub = Hub(Start(Library(tmp_path / "takes"), one.url, children=CHILDREN))
            await hub.open()
            try:
                await until_connected(hub)
                track = waving(Origin("gmr", "dance.pkl", "", "", "0123"))
                for _ in range(2):
                    with pytest.raises(ImportedMotionError):
                        await hub.playing.play_track(track, "dance", force=True)
                    assert not hub.activities.busy
                    assert not is_agreed(track.origin)
                # A stop that comes first swallows the refusal; that is no yes either.
                asking = asyncio.create_task(hub.playing.play_track(track, "dance", force=True))
                await asyncio.gather(hub.stop(), asking, return_exceptions=True)
                assert not is_agreed(track.origin)
                await hub.playing.play_track(track, "dance", force=True, imported=True)
                assert is_agreed(track.origin)
                await hub.stop()
                while hub.activities.busy or one.world.phase is not Phase.NONE:
                    await asyncio.sleep(0.1)
                await hub.playing.play_track(track, "dance", force=True)
                assert hub.activities.busy, "it was agreed to once and for all"
            finally:
                await hub.close()

    run(story())


@pytest.mark.parametrize("how", ["disconnect", "close"])
def test_the_end_of_the_pendant_stops_the_robot_at_once(tmp_path: Path, how: str) -> None:
    async def story() -> None:
        async with cuttable(tmp_path, "udp") as (one, page, _):
            hub = Hub(Start(Library(tmp_path / "others"), one.url, children=CHILDREN))
            await hub.open()
            await until_connected(hub)
            await hub.play("long", speed=None, loop=False)
            while phase(one) is not Phase.PLAYING:
                await asyncio.sleep(0.1)
            ending = asyncio.create_task(getattr(hub, how)())
            async with asyncio.timeout(2.9):  # before the end would give up waiting for the motion
                while phase(one) is Phase.PLAYING:
                    await asyncio.sleep(0.02)
            await ending
            await hub.close()
            assert page.id

    run(story())


def test_playing_on_a_simulated_robot_is_no_yes_for_a_real_one(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            track = waving(Origin("gmr", "dance.pkl", "", "", "4567"))
            await hub.playing.play_track(track, "dance", force=True)
            assert hub.activities.busy
            assert not is_agreed(track.origin)

    run(story())


def test_a_closed_hub_follows_no_robot_for_its_viewers(tmp_path: Path) -> None:
    async def story() -> None:
        async with hub_with(tmp_path) as hub:
            assert hub.views.join(lambda: None) is not None
            assert hub.views._timer is not None
        assert hub.views._timer is None

    run(story())
