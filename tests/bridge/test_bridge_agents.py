"""Agents: the official MCP client looks, checks, edits and simulates; it moves no robot unasked."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import mcp_types
import numpy as np
import pytest
from mcp import Client, StdioServerParameters

from rote.bridge.agent_tools import AgentTools
from rote.bridge.mcp_server import make_server
from rote.bridge.pendant_client import PendantClient
from rote.bridge.tickets import HOLD_S, TICKET_S, make_secret
from rote.cli import main
from rote.errors import BadRequestError
from rote.messages import Phase
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.web.access.roles import PendantRole
from rote.web.access.security import Gate
from rote.web.server.app import create_app
from rote.web.server.serve import link, serving
from rote.web.services.hub import Start
from virtual import run
from web.pendant import CHILDREN, Browser, Pendant

TOKEN = "a-token-for-these-tests"
SECRET = "K7QM-3XVD"
JOINT = "left_elbow_joint"


def nod(seconds: float = 0.5, far_rad: float = 0.1) -> Track:
    """A small motion of one elbow."""
    times_s = np.linspace(0.0, seconds, 26)
    way = 0.5 * (1 - np.cos(2 * np.pi * times_s / seconds))
    return Track(times_s=times_s, joints_rad=(far_rad * way)[:, None], names=(JOINT,))


def answered(result: Any) -> dict[str, Any]:
    assert not result.is_error, result.content
    document: dict[str, Any] = result.structured_content
    return document


def problem(result: Any) -> dict[str, Any]:
    assert result.is_error
    text: str = result.content[0].text
    document: dict[str, Any] = json.loads(text[text.index("{") :])
    return document


# ---- without a pendant: all is simulated --------------------------------------------------------


def test_an_agent_looks_checks_edits_and_simulates_and_the_default_robot_is_simulated(
    tmp_path: Path,
) -> None:
    library = Library(tmp_path)
    library.save(nod(), "nod")

    async def work() -> None:
        tools = AgentTools(library, robot="sim://g1?store=:memory:")
        async with Client(make_server(tools, real=False)) as agent:
            told = {each.name for each in (await agent.list_tools()).tools}
            assert told == {"look", "check", "simulate", "edit", "propose", "stop"}
            robot = answered(await agent.call_tool("look", {}))
            assert robot["simulated"] is True
            takes = answered(await agent.call_tool("look", {"what": "takes"}))["takes"]
            assert [each["name"] for each in takes] == ["nod"]
            edits = answered(await agent.call_tool("look", {"what": "edits"}))["edits"]
            assert {"smooth", "speed", "mirror"} <= {each["op"] for each in edits}
            report = answered(await agent.call_tool("check", {"take": "nod"}))
            assert report["ok"], report
            first = library.load("nod", 1)
            made = answered(
                await agent.call_tool(
                    "edit", {"take": "nod", "steps": [{"op": "speed", "factor": 0.5}]}
                )
            )
            assert (made["edited_version"], made["version"]) == (1, 2)
            assert made["seconds"] == pytest.approx(1.0, abs=0.05)
            assert np.array_equal(library.load("nod", 1).joints_rad, first.joints_rad)
            steps: list[tuple[float, str]] = []

            async def progress(progress: float, total: float | None, message: str | None) -> None:
                steps.append((progress, message or ""))

            played = answered(
                await agent.call_tool(
                    "simulate", {"take": "nod", "version": 1}, progress_callback=progress
                )
            )
            assert played["completed"]
            assert played["joints"][JOINT]["max_rad"] > 0.05
            assert len(steps) > 3
            moved = answered(await agent.call_tool("propose", {"take": "nod", "version": 1}))
            assert moved["completed"]
            assert moved["robot"].startswith("sim://")
            look = answered(await agent.call_tool("look", {"take": "nod"}))
            assert look["motion"] == made["motion"]

    run(work())


def test_what_an_agent_asks_wrongly_is_explained_and_changes_nothing(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save(nod(far_rad=6.0), "wild")

    async def work() -> None:
        tools = AgentTools(library, robot="sim://g1?store=:memory:")
        async with Client(make_server(tools, real=False)) as agent:
            for tool, body, kind in (
                ("check", {"take": "none"}, "bad-request"),
                ("check", {"take": "../../etc/passwd"}, "bad-request"),
                ("propose", {"take": "wild"}, "unsafe-motion"),
                ("simulate", {"take": "wild"}, "unsafe-motion"),
                ("edit", {"take": "wild", "steps": [{"op": "explode"}]}, "bad-request"),
                ("edit", {"take": "wild", "steps": [{"cutoff_hz": 3}]}, "bad-request"),
                ("edit", {"take": "wild", "steps": [{"op": "speed", "factor": -1}]}, "bad-request"),
            ):
                told = problem(await agent.call_tool(tool, body))
                assert told["error"] == kind, told
                assert told["message"], told
            assert not answered(await agent.call_tool("check", {"take": "wild"}))["ok"]
            assert library.versions("wild") == (1,)

    run(work())


def test_a_stop_of_an_agent_ends_what_it_simulates(tmp_path: Path) -> None:
    library = Library(tmp_path)
    library.save(nod(20.0), "long")

    async def work() -> None:
        tools = AgentTools(library, robot="sim://g1?store=:memory:")
        async with Client(make_server(tools, real=False)) as agent:
            playing = asyncio.create_task(agent.call_tool("propose", {"take": "long"}))
            await asyncio.sleep(4.0)
            assert answered(await agent.call_tool("stop", {}))["stopped"] is True
            assert answered(await playing)["completed"] is False

    run(work())


@pytest.mark.parametrize("url", ["dds://eth0", "webrtc://192.0.2.1", "udp://127.0.0.1", "a1://x"])
def test_the_tools_connect_to_simulated_robots_only(url: str, tmp_path: Path) -> None:
    async def work() -> None:
        with pytest.raises(BadRequestError, match="cannot connect"):
            AgentTools(Library(tmp_path), robot=url)

    run(work())


@pytest.mark.parametrize(
    "link", ["http://127.0.0.1:8600/", "ftp://x/?token=abc", "127.0.0.1", "http://[/?token=a"]
)
def test_a_pendant_is_named_by_a_link_with_its_token(link: str) -> None:
    with pytest.raises(BadRequestError, match="not a pendant's link"):
        PendantClient(link)


def test_the_command_speaks_mcp_over_standard_input_and_output(tmp_path: Path) -> None:
    Library(tmp_path / "takes").save(nod(), "nod")
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "rote", "mcp"],
        env={"ROTE_HOME": str(tmp_path)},
    )

    async def work() -> None:
        async with Client(command) as agent:
            assert len((await agent.list_tools()).tools) == 6
            takes = answered(await agent.call_tool("look", {"what": "takes"}))["takes"]
            assert [each["name"] for each in takes] == ["nod"]

    asyncio.run(work())


# ---- with a pendant: a person has to hold a button ----------------------------------------------


class Stage:
    """A pendant for agents, its robot elsewhere, a person at its page, and an agent."""

    def __init__(
        self, pendant: Pendant, person: Browser, agent: Client, world: World, watch: str
    ) -> None:
        self.pendant, self.person, self.agent, self.world = pendant, person, agent, world
        self.library = pendant.library
        self.watch = watch
        self.simulator: Simulator
        self.elicited = 0
        self.moved: list[Phase] = []
        """Every phase of a playback that the robot was seen in."""

    async def proposal(self) -> dict[str, Any]:
        """Wait until the page shows a proposal."""
        status = await self.person.status(lambda s: s["proposal"])
        shown: dict[str, Any] = status["proposal"]
        return shown

    async def approve(self, shown: dict[str, Any]) -> None:
        """Do what a person does: read it, type the secret, hold the button."""
        await self.person.post(
            "/agent/press", ticket=shown["ticket"], digest=shown["digest"], secret=SECRET
        )
        await asyncio.sleep(HOLD_S + 0.1)
        await self.person.post("/agent/hold", ticket=shown["ticket"])

    async def as_agent(self, path: str, **body: Any) -> httpx.Response:
        """Post something with all that an agent knows: the watching link."""
        headers = {"Authorization": f"Bearer {self.watch}"}
        return await self.pendant.http.post(f"/api{path}", json=body, headers=headers)


async def _agree(context: Any, params: Any) -> mcp_types.ElicitResult:
    """Say yes to whatever a server asks: no person is asked."""
    return mcp_types.ElicitResult(action="accept", content={"approved": True})


@asynccontextmanager
async def stage(folder: Path) -> AsyncIterator[Stage]:
    world = World(Store(":memory:"))
    async with AsyncExitStack() as stack:
        robot = Simulator(world)
        stack.push_async_callback(robot.close)
        url = await robot.serve_udp("127.0.0.1", 0)
        library, gate = Library(folder / "takes"), Gate(token=TOKEN)
        library.save(nod(), "nod")
        async with serving(
            Start(library, url, secret=SECRET, children=CHILDREN), gate, 0
        ) as server:
            pendant = Pendant(server.port, library, gate)
            try:
                person = await pendant.browser_as(PendantRole.TEACHER)
                await person.connected()
                await person.take_command()
                watching = PendantClient(link(gate, server.port, PendantRole.WATCH))
                tools = AgentTools(library, robot="sim://g1?store=:memory:", pendant=watching)
                agent = Client(make_server(tools, real=True), elicitation_callback=_agree)
                async with agent:
                    one = Stage(pendant, person, agent, world, gate.tokens[PendantRole.WATCH])
                    one.simulator = robot
                    looking = asyncio.create_task(_look(one))
                    yield one
                    looking.cancel()
            finally:
                await pendant.close()


async def _look(one: Stage) -> None:
    while True:
        if one.world.phase is not Phase.NONE:
            one.moved.append(one.world.phase)
        await asyncio.sleep(0.02)


def test_a_person_who_holds_the_button_lets_an_agent_move_the_robot_once(tmp_path: Path) -> None:
    async def work() -> None:
        async with stage(tmp_path) as one:
            asked = asyncio.create_task(one.agent.call_tool("propose", {"take": "nod"}))
            shown = await one.proposal()
            assert (shown["take"], shown["version"], shown["speed"]) == ("nod", 1, 1.0)
            assert 0 < shown["left_s"] <= TICKET_S
            assert not one.moved
            await one.approve(shown)
            assert answered(await asked)["played"] is True
            assert Phase.PLAYING in one.moved
            one.moved.clear()
            again = await one.as_agent(
                "/agent/begin", ticket=shown["ticket"], take="nod", version=1, speed=1.0
            )
            assert again.status_code == 409
            assert "used" in again.json()["message"]
            await asyncio.sleep(5.0)
            assert not one.moved

    run(work())


@pytest.mark.parametrize("end", ["stop", "loss"])
def test_a_playback_that_was_cut_short_is_not_said_to_have_been_played(
    end: str, tmp_path: Path
) -> None:
    async def work() -> None:
        async with stage(tmp_path) as one:
            asked = asyncio.create_task(
                one.agent.call_tool("propose", {"take": "nod", "speed": 0.3})
            )
            await one.approve(await one.proposal())
            await one.person.status(lambda s: s["activity"]["kind"] == "playing")
            await asyncio.sleep(1.0)
            assert one.world.phase is not Phase.NONE
            if end == "stop":
                await one.person.post("/stop")
            else:
                await one.simulator.close()
            told = answered(await asked)
            assert told["played"] is False
            assert told["reason"]

    run(work())


def test_a_no_and_a_stop_end_a_proposal(tmp_path: Path) -> None:
    async def work() -> None:
        async with stage(tmp_path) as one:
            for end, state in (("refuse", "refused"), ("stop", "void")):
                asked = asyncio.create_task(one.agent.call_tool("propose", {"take": "nod"}))
                shown = await one.proposal()
                if end == "refuse":
                    await one.person.post("/agent/refuse", ticket=shown["ticket"])
                else:
                    await one.agent.call_tool("stop", {})
                told = problem(await asked)
                assert told["error"] == "not-approved", told
                assert state in told["message"], told
            assert not one.moved

    run(work())


Attempt = Callable[[Stage, int], Awaitable[None]]


async def accepts_everything(one: Stage, number: int) -> None:
    """The client says yes to whatever it is asked; nobody at the page does."""
    wanted = {"take": "nod", "speed": 0.5 + 0.001 * (number % 500)}
    asked = asyncio.create_task(one.agent.call_tool("propose", wanted))
    if number % 10 != 9:  # else nobody is at the page at all, for a minute
        await one.person.post("/agent/refuse", ticket=(await one.proposal())["ticket"])
    told = problem(await asked)
    assert told["error"] == "not-approved"


async def posts_to_the_approval_route(one: Stage, number: int) -> None:
    """The agent posts what the page would post, with guessed secrets and borrowed names."""
    ticket = (await one.as_agent("/agent/propose", take="nod", version=1)).json()
    known = {"ticket": ticket["ticket"], "digest": ticket["digest"]}
    secret = (make_secret(), "", SECRET)[number % 3]  # even the right one: it may not command
    for path, body in (
        ("/agent/press", {**known, "secret": secret}),
        ("/agent/hold", {"ticket": ticket["ticket"]}),
        ("/play/take", {"take": "nod"}),
        ("/perform", {"preset": 18}),
        ("/command/take", {}),
    ):
        answer = await one.as_agent(path, **body)
        assert answer.status_code in {403, 409}, (path, answer.text)
    begun = await one.as_agent("/agent/begin", ticket=ticket["ticket"], take="nod", version=1)
    assert begun.status_code == 409
    assert "no person has approved" in begun.json()["message"]
    await one.person.post("/agent/refuse", ticket=ticket["ticket"])


async def alters_it_after_the_approval(one: Stage, number: int) -> None:
    """A person approves, and the agent has another motion begun: other bytes, version or speed."""
    wanted = {"take": "nod", "version": 1, "speed": 1.0}
    ticket = (await one.as_agent("/agent/propose", **wanted)).json()
    await one.approve(await one.proposal())
    path = one.library.folder / "nod.mcap"
    before = path.read_bytes()
    if number % 3 == 0:  # the file itself, behind everybody's back
        other = Library(one.library.folder / "elsewhere")
        other.save(nod(far_rad=0.1001), "nod")
        path.write_bytes((other.folder / "nod.mcap").read_bytes())
        (other.folder / "nod.mcap").unlink()
    elif number % 3 == 1:
        wanted["speed"] = 1.2
    else:
        one.library.save(nod(far_rad=0.2), "nod2")
        wanted |= {"take": "nod2", "version": one.library.versions("nod2")[-1]}
    try:
        begun = await one.as_agent("/agent/begin", ticket=ticket["ticket"], **wanted)
    finally:
        path.write_bytes(before)
    assert begun.status_code == 409, begun.text
    assert "not the approved motion" in begun.json()["message"]


async def replays_a_ticket(one: Stage, number: int) -> None:
    """A ticket that was used, refused or stopped is shown again."""
    wanted = {"take": "nod", "version": 1, "speed": 1.0}
    ticket = (await one.as_agent("/agent/propose", **wanted)).json()["ticket"]
    if number % 2:
        await one.person.post("/agent/refuse", ticket=ticket)
    else:
        await one.approve(await one.proposal())
        await one.as_agent("/stop")
    for _ in range(2):
        begun = await one.as_agent("/agent/begin", ticket=ticket, **wanted)
        assert begun.status_code == 409, begun.text


ATTEMPTS: tuple[Attempt, ...] = (
    accepts_everything,
    posts_to_the_approval_route,
    alters_it_after_the_approval,
    replays_a_ticket,
)


async def attempted(folder: Path, attempts: int) -> tuple[int, list[Phase]]:
    """Try to move the robot; return how often, and in which phases of a playback it was seen."""
    async with stage(folder) as one:
        for number in range(attempts):
            await ATTEMPTS[number % len(ATTEMPTS)](one, number // len(ATTEMPTS))
        await asyncio.sleep(5.0)
        return attempts, one.moved


def test_no_agent_moves_the_robot_that_a_person_has_not_approved(tmp_path: Path) -> None:
    assert run(attempted(tmp_path, 8)) == (8, [])


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_thousand_attempts_of_agents_move_nothing(tmp_path: Path) -> None:
    assert run(attempted(tmp_path, 1000)) == (1000, [])


def test_a_pendant_for_agents_asks_every_program_of_this_computer_for_a_token(
    tmp_path: Path,
) -> None:
    with pytest.raises(BadRequestError, match="every program"):
        create_app(Start(Library(tmp_path), secret=SECRET), Gate())


def test_a_pendant_without_agents_takes_no_proposal(tmp_path: Path) -> None:
    async def work() -> None:
        gate = Gate(token=TOKEN)
        async with serving(Start(Library(tmp_path), "sim://g1?store=:memory:"), gate, 0) as server:
            pendant = Pendant(server.port, Library(tmp_path), gate)
            try:
                person = await pendant.browser_as(PendantRole.TEACHER)
                told = await person.refused("/agent/propose", 403, take="nod")
                assert told["error"] == "no-agents"
            finally:
                await pendant.close()

    run(work())


def test_a_log_does_not_have_the_link_of_the_pendant(tmp_path: Path) -> None:
    log = tmp_path / "rote.log"
    main(["mcp", "--pendant", "ftp://x/?token=a-secret-token", "--log", str(log)])
    told = log.read_text(encoding="utf-8")
    assert "mcp --pendant" in told
    assert "a-secret-token" not in told
