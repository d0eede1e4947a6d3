"""Who may what: secret ids, the roles of links, the countdown, the lock, and names."""

import asyncio
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rote.errors import BadRequestError
from rote.web.access.clients import HANDOVER_S, IDLE_SILENCE_S, MAX_NAME, SILENCE_S, Clients
from rote.web.access.roles import Access, PendantRole, access_of
from rote.web.access.security import WATCHER_PATHS
from rote.web.server.app import openapi_document
from rote.web.server.problems import ProblemError
from virtual import run
from web.pendant import Browser, Pendant, one_browser, pendant, teach

TOKEN = "a-token-for-these-tests"
TEACHER, COMMAND, WATCH = (
    Access(role) for role in (PendantRole.TEACHER, PendantRole.COMMAND, PendantRole.WATCH)
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# ---- the rules ----------------------------------------------------------------------------------


def test_command_passes_after_a_countdown_and_only_to_somebody_who_is_here() -> None:
    clock = Clock()
    clients = Clients(clock)
    first, second = clients.join(access=COMMAND), clients.join(access=COMMAND)
    clients.take_command(second.id)
    assert clients.commander == first.id
    clock.now += HANDOVER_S - 0.5
    clients.finish_handover()
    assert clients.commander == first.id
    assert clients.describe_command(you=True)["next"] == {"number": 2, "name": None, "in_s": 0.5}
    clock.now += 0.5
    clients.finish_handover()
    assert clients.commander == second.id
    assert clients.describe_command(you=True)["next"] is None
    clients.take_command(first.id)
    clients.leave(first)
    clock.now += HANDOVER_S
    clients.finish_handover()
    assert clients.commander == second.id


def test_a_countdown_is_called_off_by_whom_it_concerns_and_by_nobody_else() -> None:
    clients = Clients(Clock())
    first, second, third = (clients.join(access=COMMAND) for _ in range(3))
    clients.cancel_handover(third.id)  # there is none: nothing happens
    clients.take_command(second.id)
    with pytest.raises(ProblemError, match="passing to another"):
        clients.take_command(third.id)
    with pytest.raises(ProblemError, match="another browser commands"):
        clients.cancel_handover(third.id)
    for concerned in (first, second):
        clients.take_command(second.id)
        clients.cancel_handover(concerned.id)
        assert clients.handover is None
    teacher = clients.join(access=TEACHER)
    clients.take_command(teacher.id)
    with pytest.raises(ProblemError, match="only a teacher"):
        clients.cancel_handover(first.id)
    clients.cancel_handover(teacher.id)
    assert clients.handover is None


def test_who_only_watches_never_commands() -> None:
    clients = Clients(Clock())
    watcher = clients.join(access=WATCH)
    assert clients.commander is None
    for ask in (clients.require_command, clients.take_command, clients.release_command):
        with pytest.raises(ProblemError, match="only watches"):
            ask(watcher.id)
    with pytest.raises(ProblemError, match="only a teacher"):
        clients.lock(watcher.id, locked=True)
    commander = clients.join(access=COMMAND)
    with pytest.raises(ProblemError, match="only watches"):
        clients.give_command(commander.id, watcher.number)
    assert clients.commander == commander.id


def test_a_lock_takes_command_at_once_and_a_teacher_gives_it() -> None:
    clock = Clock()
    clients = Clients(clock)
    pupil, other = clients.join(access=COMMAND), clients.join(access=COMMAND)
    teacher = clients.join(access=TEACHER)
    with pytest.raises(ProblemError, match="only a teacher"):
        clients.lock(pupil.id, locked=True)
    clients.take_command(other.id)
    clients.lock(teacher.id, locked=True)
    assert (clients.commander, clients.handover) == (teacher.id, None)
    for ask in (clients.take_command, clients.require_command):
        with pytest.raises(ProblemError, match=r"locked|another browser"):
            ask(pupil.id)
    clients.give_command(teacher.id, pupil.number)
    clock.now += HANDOVER_S
    clients.finish_handover()
    clients.require_command(pupil.id)
    with pytest.raises(ProblemError, match="locked"):
        clients.take_command(other.id)
    clients.leave(pupil)
    assert clients.drop_silent_commander(busy=False)
    with pytest.raises(ProblemError, match="locked"):
        clients.require_command(other.id)
    assert clients.join(pupil.id, COMMAND) is pupil  # a reload does not lose it
    clients.require_command(pupil.id)
    clients.release_command(pupil.id)
    with pytest.raises(ProblemError, match="locked"):
        clients.require_command(pupil.id)
    assert clients.join(access=COMMAND).id != clients.commander
    clients.lock(teacher.id, locked=False)
    clients.require_command(other.id)


def test_another_browser_with_the_id_is_not_its_owner() -> None:
    clock = Clock()
    clients = Clients(clock)
    owner = Access(PendantRole.COMMAND, "the owner's cookie")
    commander = clients.join(access=owner)
    clients.require_command(commander.id, owner)
    thieves = (
        Access(PendantRole.COMMAND, "another cookie"),
        Access(PendantRole.COMMAND),
        Access(PendantRole.WATCH, "the owner's cookie"),
    )
    for thief in thieves:
        clock.now += SILENCE_S + 0.1
        for ask in (
            clients.require_command,
            clients.take_command,
            clients.release_command,
            clients.cancel_handover,
        ):
            with pytest.raises(ProblemError, match="does not know"):
                ask(commander.id, thief)
        assert clock.now - commander.seen_s > SILENCE_S  # nor is the owner taken for alive
        clients.note_alive(commander.id)
    clients.leave(commander)
    assert all(clients.join(commander.id, thief) is not commander for thief in thieves)
    assert clients.join(commander.id, owner) is commander


def test_who_comes_back_by_another_link_is_somebody_else() -> None:
    clients = Clients(Clock())
    watcher = clients.join(access=Access(PendantRole.WATCH, "cookie"))
    clients.leave(watcher)
    teacher = clients.join(watcher.id, Access(PendantRole.TEACHER, "cookie"))
    assert teacher.access.role is PendantRole.TEACHER
    assert teacher is not watcher


def test_a_number_is_never_given_twice() -> None:
    clock = Clock()
    clients = Clients(clock)
    first = clients.join()
    clients.leave(first)
    clock.now += IDLE_SILENCE_S + 1
    assert clients.join().number == 2
    with pytest.raises(ProblemError, match="browser 1 is not connected"):
        clients.give_command(next(iter(clients)).id, 1)


@pytest.mark.parametrize("name", ["x" * (MAX_NAME + 1), "a\x00b", "a\u202eb", "\ud800"])
def test_what_is_no_name_is_refused(name: str) -> None:
    clients = Clients(Clock())
    client = clients.join()
    with pytest.raises(BadRequestError, match="too long or contains characters"):
        clients.set_name(client.id, name)
    assert client.name is None
    assert clients.set_name(client.id, "  Ada \n Lovelace ").name == "Ada Lovelace"
    assert clients.set_name(client.id, "").name is None


def test_without_a_guard_a_request_may_do_the_least() -> None:
    assert access_of({}).role is PendantRole.WATCH
    assert access_of({"rote.access": "teacher"}).role is PendantRole.WATCH


# ---- with a robot -------------------------------------------------------------------------------

ASKED = ("/status", "/people", "/links", "/actions", "/takes", "/robots", "/robot/joints")


def test_nobody_is_told_the_id_of_another(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, first):
            second = await server.browser()
            await second.connected()
            answers = [json.dumps(await second.get(path)) for path in ASKED]
            refused = await second.refused("/play", 403, name="wave")
            taken = await second.post("/command/take")
            await second.post("/people/me", name="Bo")
            await second.post("/command/keep")
            await second.take_command()
            await first.until(lambda: first.latest["status"]["commander"]["name"] == "Bo")
            told = json.dumps([second.heard, answers, refused, taken])
            assert first.id not in told
            assert second.id in told  # it is told its own
            assert second.id not in json.dumps([first.heard, await first.get("/status")])

    run(story())


async def class_of(server: Pendant) -> tuple[Browser, Browser, Browser]:
    """A teacher, who commands, a pupil and a watcher."""
    teacher = await server.browser_as(PendantRole.TEACHER)
    await teacher.connected()
    pupil = await server.browser_as(PendantRole.COMMAND)
    return teacher, pupil, await server.browser_as(PendantRole.WATCH)


def handover_of(page: Browser) -> Any:
    """Who is about to command, as a page was told last; None for nobody."""
    return page.latest["status"]["commander"]["next"]


# Every request that moves the robot or changes something, but a stop.
MOVING: list[tuple[str, dict[str, Any]]] = [
    ("/connect", {"url": "sim://g1"}),
    ("/disconnect", {}),
    ("/mode", {"target": "stand"}),
    ("/command/take", {}),
    ("/command/release", {}),
    ("/command/give", {"number": 1}),
    ("/command/lock", {"locked": True}),
    ("/teach/start", {"name": "x"}),
    ("/teach/finish", {"save": True}),
    ("/teach/hand", {"script": "wave", "seconds": 1}),
    ("/teach/drag", {"joint": None}),
    ("/actions/rename", {"old": "wave", "new": "x"}),
    ("/actions/delete", {"name": "wave"}),
    ("/play", {"name": "wave"}),
    ("/play/take", {"take": "wave"}),
    ("/perform", {"preset": 1}),
    ("/pause", {"paused": True}),
    ("/takes/rename", {"old": "wave", "new": "x"}),
    ("/takes/delete", {"name": "wave"}),
    ("/takes/tag", {"name": "wave", "add": ["x"]}),
    ("/edit/save", {"take": "wave", "name": "x"}),
    ("/learn/save", {"id": "1", "name": "x"}),
]


def test_a_link_that_watches_moves_and_changes_nothing_and_stops(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            teacher, pupil, watcher = await class_of(server)
            await teach(teacher, "wave")
            assert [each.latest["hello"]["role"] for each in (teacher, pupil, watcher)] == [
                "teacher", "command", "watch",
            ]  # fmt: skip
            for path, body in MOVING:
                assert (await watcher.refused(path, 403, **body))["error"] in {
                    "watch-only", "not-teacher", "not-commanding",
                }, path  # fmt: skip
            # Nor with the id of the one that commands, which it would have had to steal.
            for path, body in MOVING:
                stolen = await watcher.ask(
                    "POST", path, json=body, headers={"X-Rote-Client": teacher.id}
                )
                assert stolen.status_code == 403, path
            assert (await watcher.ask("GET", "/discover")).status_code == 403
            assert (await watcher.get("/links"))["command"] is None
            assert await watcher.get("/takes/wave")
            await teacher.post("/play", name="wave", loop=True)
            await watcher.status(lambda s: s["activity"]["kind"] == "playing")
            assert (await watcher.post("/stop"))["stopped"] == "playing"
            await teacher.status(lambda s: s["activity"]["kind"] == "idle")
            assert (await teacher.get("/status"))["commander"]["you"]

    run(story())


def test_every_request_that_changes_something_is_refused_to_a_watching_link_as_json(
    tmp_path: Path,
) -> None:
    documented = openapi_document()["paths"]
    posts = {path for path, methods in documented.items() if methods.keys() - {"get"}}
    assert posts > WATCHER_PATHS
    others = {"/", "/index.html", "/api", "/api/stage/no-such-route", "/assets/page.js"}

    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            shown = {"Authorization": f"Bearer {server.gate.tokens[PendantRole.WATCH]}"}
            for path in sorted(posts - WATCHER_PATHS | others):
                for content in (b"", b"{}", b"no JSON"):
                    response = await server.http.post(path, headers=shown, content=content)
                    assert response.status_code == 403, path
                    assert response.headers["content-type"] == "application/json", path
                    assert response.json()["error"] == "watch-only", path

    run(story())


def test_everybody_sees_the_countdown_and_a_teacher_locks_at_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            teacher, pupil, watcher = await class_of(server)
            await pupil.post("/people/me", name="Bo")
            await pupil.post("/command/take")
            everybody = (teacher, pupil, watcher)
            loop = asyncio.get_running_loop()
            began_s = loop.time()
            for page in everybody:
                await page.until(partial(handover_of, page))
                following = handover_of(page)
                assert (following["number"], following["name"]) == (2, "Bo")
                assert 0 < following["in_s"] <= HANDOVER_S
            await pupil.status(lambda s: s["commander"]["you"])
            assert loop.time() - began_s == pytest.approx(HANDOVER_S, abs=0.5)
            assert (await teacher.refused("/mode", 403, target="stand"))["error"]
            await pupil.post("/teach/start", name="wave")
            await asyncio.sleep(0.5)
            locked = await teacher.post("/command/lock", locked=True)
            assert (locked["you"], locked["locked"]) == (True, True)
            assert (await pupil.refused("/teach/finish", 403, save=True))["error"]
            assert (await pupil.refused("/command/take", 403))["error"] == "locked"
            assert (await teacher.post("/teach/finish", save=True))["saved"]

    run(story())


def test_names_are_seen_by_all_and_those_who_leave_are_not(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            teacher, pupil, watcher = await class_of(server)
            await watcher.post("/people/me", name="Cy")
            await teacher.until(lambda: "Cy" in json.dumps(teacher.latest["people"]))
            assert (await pupil.get("/people"))["people"] == [
                {"number": 1, "name": None, "role": "teacher"},
                {"number": 2, "name": None, "role": "command"},
                {"number": 3, "name": "Cy", "role": "watch"},
            ]
            await watcher.leave()
            await teacher.until(lambda: len(teacher.latest["people"]["people"]) == 2)
            assert (await pupil.refused("/people/me", 400, name="\x00"))["error"]

    run(story())


def test_a_stolen_id_neither_plays_nor_keeps_a_silent_commander_alive(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            page = await server.browser(Cookie="rote_seat=mine")
            await page.connected()
            await teach(page, "wave")
            thief = await server.browser(Cookie="rote_seat=another")
            await page.post("/play", name="wave", loop=True)
            page.silent = True
            gone_s = asyncio.get_running_loop().time()
            stolen = {"X-Rote-Client": page.id}
            while not any("is gone" in told for told in thief.notices()):
                for path, body in (("/play", {"name": "wave"}), ("/command/take", {})):
                    answer = await thief.ask("POST", path, json=body, headers=stolen)
                    assert (answer.status_code, answer.json()["error"]) == (403, "unknown-client")
                await asyncio.sleep(0.2)
            assert asyncio.get_running_loop().time() - gone_s < 3.5
            await page.leave()
            again = await server.browser(page.id, Cookie="rote_seat=another")
            assert again.id != page.id
            assert (await server.browser(page.id, Cookie="rote_seat=mine")).id == page.id

    run(story())


def test_the_page_gives_each_browser_a_cookie_of_its_own(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            first = (await server.http.get("/")).headers["set-cookie"]
            server.http.cookies.clear()
            second = (await server.http.get("/")).headers["set-cookie"]
            assert {"HttpOnly", "SameSite=Strict"} <= set(first.split("; "))
            assert first.partition(";")[0] != second.partition(";")[0]
            assert "set-cookie" not in (await server.http.get("/")).headers  # it has one

    run(story())
