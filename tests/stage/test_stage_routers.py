"""A stage with routers of its own: conductor and agents are clients of them."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

import rote
from rote.cli import main
from rote.errors import BadRequestError, LinkError
from rote.platform.system import free_port
from rote.stage.agent import Agent
from rote.stage.folder import StageFolder, read_invitation
from rote.stage.show.file import Section, Trigger, TriggerKind
from rote.stage.stage import open_stage
from rote.stage.watcher import watching
from rote.transport.zenoh.bus import ROUTER_FILE, StageBus
from stage.test_stage_agent import LEFT, score
from stage.test_stage_bus import Heard, publish_until

pytest.importorskip("zenoh", reason="eclipse-zenoh is not installed")


def make_stage(tmp_path: Path, *agents: str) -> StageFolder:
    routers = [f"127.0.0.1:{free_port()}" for _ in range(2)]
    made = StageFolder.new(tmp_path / "stage", "try", routers=routers)
    for name in agents:
        made.invite(name)
    return made


@asynccontextmanager
async def routing(made: StageFolder) -> AsyncIterator[list[StageBus]]:
    routers = [await StageBus.route(folder) for folder in made.router_folders]
    try:
        yield routers
    finally:
        for router in routers:
            await router.close()


@asynccontextmanager
async def following(made: StageFolder, name: str, router: str) -> AsyncIterator[Agent]:
    """Run an agent with a simulated robot that is connected to one router."""
    invitation = read_invitation(made.folder / f"{name}.invitation.json")
    with invitation.credentials() as credentials:
        bus = await StageBus.join(router, credentials)
    async with rote.connect("sim://g1?store=:memory:") as robot:
        agent = Agent(bus, robot, name, made.name)
        task = asyncio.create_task(agent.run())
        try:
            yield agent
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            await bus.close()


def test_robots_at_two_routers_play_together_and_are_stopped(tmp_path: Path) -> None:
    made = make_stage(tmp_path, "ann", "bob")
    section = Section("one", Trigger(TriggerKind.GO), ())

    async def story() -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(routing(made))
            for name, router in zip(("ann", "bob"), made.routers, strict=True):
                await stack.enter_async_context(following(made, name, router))
            stage = await stack.enter_async_context(open_stage(made.folder))
            conductor = stage.conductor
            assert await conductor.wait_for_agents(("ann", "bob"), 30.0) == ()
            with pytest.raises(BadRequestError, match="another conductor runs the stage try"):
                await made.open_bus()
            parts = {name: score(LEFT, "one") for name in ("ann", "bob")}
            played = await conductor.play(section, parts)
            assert {name: each and each.completed for name, each in played.reports.items()} == {
                "ann": True,
                "bob": True,
            }
            async with watching(made.folder) as watcher:
                assert watcher.conducted
                assert await watcher.stop("another terminal") == ()
                held = conductor.active_stop
                assert held is not None
                assert held.by == "another terminal"

    asyncio.run(story())


def test_a_stage_without_a_conductor_is_stopped_through_its_routers(tmp_path: Path) -> None:
    made = make_stage(tmp_path, "ann")

    async def story() -> None:
        async with routing(made), following(made, "ann", made.endpoint) as agent:
            async with watching(made.folder) as watcher:
                assert not watcher.conducted
                assert await watcher.stop("a test") == ()
            assert agent.session.phase == "stopped"

    asyncio.run(story())


def test_agents_stay_connected_when_a_router_ends(tmp_path: Path) -> None:
    made = make_stage(tmp_path, "ann")
    invitation = read_invitation(made.folder / "ann.invitation.json")

    async def story(ends: int) -> None:
        heard = Heard()
        with invitation.credentials() as credentials:  # read again to connect again
            async with routing(made) as routers:
                ann = await StageBus.join(invitation.endpoint, credentials)
                watcher = await StageBus.join(made.routers[1 - ends], made.credentials)
                await end_one(routers[ends], ann, watcher, heard)

    async def end_one(router: StageBus, ann: StageBus, watcher: StageBus, heard: Heard) -> None:
        watcher.subscribe(made.keys.state("*"), lambda key, data: heard.append((key, data)))
        own = (made.keys.state("ann"), b"after")
        try:
            await publish_until(ann, made.keys.state("ann"), b"before", lambda: heard)
            await router.close()
            await publish_until(ann, *own, lambda: own in heard)
        finally:
            await ann.close()
            await watcher.close()

    for ends in range(2):
        asyncio.run(story(ends))


def test_routers_let_an_agent_publish_its_own_state_and_nothing_else(tmp_path: Path) -> None:
    made = make_stage(tmp_path, "ann", "bob")
    keys = made.keys

    async def story() -> None:
        heard = Heard()
        async with routing(made):
            conductor = await made.open_bus()
            with read_invitation(made.folder / "ann.invitation.json").credentials() as credentials:
                ann = await StageBus.join(made.routers[1], credentials)
            try:
                for key in (keys.state("*"), keys.stop, keys.reset):
                    conductor.subscribe(key, lambda key, data: heard.append((key, data)))
                await publish_until(ann, keys.state("ann"), b"first", lambda: heard)
                for _ in range(5):
                    for key in (keys.state("bob"), keys.stop, keys.reset, keys.conductor):
                        ann.publish(key, b"forged")
                last = (keys.state("ann"), b"last")
                await publish_until(ann, *last, lambda: last in heard)
                assert {key for key, _ in heard} == {keys.state("ann")}
            finally:
                await ann.close()
                await conductor.close()

    asyncio.run(story())


def test_the_configuration_of_a_router_names_who_is_invited(tmp_path: Path) -> None:
    made = make_stage(tmp_path, "ann", "bob")

    def read_names(folder: Path) -> set[str]:
        settings = json.loads((folder / ROUTER_FILE).read_text())
        subjects = settings["access_control"]["subjects"]
        assert settings["access_control"]["default_permission"] == "deny"
        return {name for each in subjects for name in each.get("cert_common_names", ())}

    assert [*map(read_names, made.router_folders)] == [{"ann", "bob", "conductor", "router"}] * 2
    made.revoke("bob")
    assert [*map(read_names, made.router_folders)] == [{"ann", "conductor", "router"}] * 2
    before = (made.router_folders[0] / "router.pem").read_bytes()
    made.renew()
    assert (made.router_folders[0] / "router.pem").read_bytes() != before
    with pytest.raises(BadRequestError, match="cannot be the name of an agent"):
        made.invite("router")


def test_a_router_that_cannot_be_run_or_reached_is_refused_in_words(tmp_path: Path) -> None:
    made = make_stage(tmp_path)

    async def story() -> None:
        with pytest.raises(LinkError, match="cannot be reached"):
            await made.open_bus()
        with pytest.raises(BadRequestError, match="cannot be read"):
            await StageBus.route(tmp_path)
        (tmp_path / ROUTER_FILE).write_text("[]")
        with pytest.raises(BadRequestError, match="is not the configuration of a router"):
            await StageBus.route(tmp_path)

    asyncio.run(story())


def test_a_stage_is_made_with_an_address_or_routers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stage", "new", str(tmp_path / "a")]) != 0
    both = ["--at", "127.0.0.1:1", "--router", "127.0.0.1:2"]
    assert main(["stage", "new", str(tmp_path / "b"), *both]) != 0
    assert "either this computer's address" in capsys.readouterr().err
    routers = ["--router", "10.0.0.1:7447", "--router", "10.0.0.2"]
    assert main(["stage", "new", str(tmp_path / "c"), *routers]) == 0
    assert "rote stage router" in capsys.readouterr().out
    assert StageFolder(tmp_path / "c").routers == ("10.0.0.1:7447", "10.0.0.2")
    assert main(["stage", "invite", "ann", "--stage", str(tmp_path / "c")]) == 0
    assert "Start the routers again" in capsys.readouterr().out
    assert main(["stage", "router", str(tmp_path)]) != 0
    assert "Name the folder of a router" in capsys.readouterr().err
