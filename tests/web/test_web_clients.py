"""Who watches, who commands, and what happens when that one falls silent."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.web.access import clients as clients_module
from rote.web.access.clients import (
    HANDOVER_S,
    IDLE_SILENCE_S,
    MAX_CLIENTS,
    RESERVED,
    SILENCE_S,
    Client,
    Clients,
    Outbox,
)
from rote.web.access.roles import Access, PendantRole
from rote.web.routes.live import FULL
from rote.web.server.problems import ProblemError
from virtual import run
from web.pendant import one_browser, pendant, teach

TOKEN = "a-token-for-these-tests"
ROLES = ("watch", "command", "teacher")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# ---- the rules ----------------------------------------------------------------------------------


def test_the_first_commands_and_another_takes_over_only_on_purpose() -> None:
    clock = Clock()
    clients = Clients(clock)
    first, second = clients.join(), clients.join()
    clients.require_command(first.id)
    with pytest.raises(ProblemError, match="another browser"):
        clients.require_command(second.id)
    with pytest.raises(ProblemError, match="another browser"):
        clients.release_command(second.id)
    clients.take_command(second.id)
    clock.now += HANDOVER_S
    clients.finish_handover()
    clients.require_command(second.id)
    with pytest.raises(ProblemError):
        clients.require_command(first.id)
    clients.release_command(second.id)
    clients.require_command(first.id)  # nobody commanded, so who asks does
    assert clients.commander == first.id


@pytest.mark.parametrize("name", [None, "", "somebody"])
def test_who_is_not_known_commands_nothing(name: str | None) -> None:
    clients = Clients(Clock())
    for ask in (clients.require_command, clients.take_command, clients.release_command):
        with pytest.raises(ProblemError, match="does not know"):
            ask(name)
    assert clients.commander is None


@pytest.mark.parametrize(("busy", "patience_s"), [(True, SILENCE_S), (False, IDLE_SILENCE_S)])
def test_silence_ends_a_command_sooner_while_the_robot_moves(busy: bool, patience_s: float) -> None:
    clock = Clock()
    clients = Clients(clock)
    client = clients.join()
    clock.now += 5
    clients.note_alive(client.id)
    clock.now += patience_s
    assert not clients.drop_silent_commander(busy=busy)
    clock.now += 0.01
    assert clients.drop_silent_commander(busy=busy)
    assert clients.commander is None
    assert not clients.drop_silent_commander(busy=busy)  # it is told once


def test_at_rest_one_that_has_left_commands_no_more_and_a_reload_commands_again() -> None:
    clients = Clients(Clock())
    first, second = clients.join(), clients.join()
    clients.leave(first)
    assert not clients.drop_silent_commander(
        busy=True
    )  # it may be back before the robot has to stop
    assert clients.drop_silent_commander(busy=False)
    assert clients.join(first.id) is first
    assert clients.commander == first.id
    clients.leave(first)
    assert clients.drop_silent_commander(busy=False)
    clients.require_command(second.id)
    assert clients.join(first.id) is first
    assert clients.commander == second.id


def test_who_reloads_is_who_it_was_and_who_stays_away_is_forgotten() -> None:
    clock = Clock()
    clients = Clients(clock)
    first, second = clients.join(), clients.join()
    assert clients.join(first.id) is not first  # it is still here: nobody else can be it
    clients.leave(first)
    clock.now += 2
    assert clients.join(first.id) is first
    clients.require_command(first.id)
    clients.leave(second)
    clock.now += IDLE_SILENCE_S + 0.1
    clients.note_alive(first.id)
    assert clients.join(second.id).id != second.id


def test_there_is_room_for_many_and_not_for_all() -> None:
    clients = Clients(Clock())
    for _ in range(MAX_CLIENTS):
        clients.join()
    with pytest.raises(ProblemError, match=str(MAX_CLIENTS)):
        clients.join()


Move = st.tuples(
    st.sampled_from(
        ["join", "leave", "back", "take", "release", "require", "alive", "wait", "look"]
    ),
    st.integers(0, 4),
)


@given(st.lists(Move, max_size=60))
def test_whatever_happens_at_most_one_commands_and_it_has_been_heard(
    moves: list[tuple[str, int]],
) -> None:
    clock = Clock()
    clients = Clients(clock)
    known: list[Client] = []
    for move, which in moves:
        client = known[which % len(known)] if known else None
        if move == "join":
            known.append(clients.join())
        elif move == "wait":
            clock.now += which
        elif move == "look":
            clients.finish_handover()
            clients.drop_silent_commander(busy=bool(which % 2))
        elif client is not None:
            _do(clients, move, client)
        there = {each.id: each for each in clients}
        if move == "look" and clients.commander is not None:
            silent_s = clock.now - there[clients.commander].seen_s
            assert silent_s <= (SILENCE_S if which % 2 else IDLE_SILENCE_S)


def _do(clients: Clients, move: str, client: Client) -> None:
    try:
        match move:
            case "leave":
                clients.leave(client)
            case "back":
                clients.join(client.id)
            case "alive":
                clients.note_alive(client.id)
            case _:
                getattr(clients, f"{move}_command")(client.id)
                asked = clients.handover is not None and clients.handover.to is client
                assert (clients.commander == client.id or asked) == (move != "release")
    except ProblemError:
        # Only one who does not command, or who has left for long, is refused.
        there = {each.id for each in clients}
        assert clients.commander != client.id or client.id not in there


def test_a_slow_browser_misses_states_and_no_words() -> None:
    async def story() -> None:
        outbox = Outbox()
        for number in range(5):
            outbox.set_state(f"state {number}")
            outbox.add_message(f"word {number}")
        heard = [await outbox.next() for _ in range(6)]
        assert heard == [*(f"word {number}" for number in range(5)), "state 4"]
        waiting = asyncio.create_task(outbox.next())
        await asyncio.sleep(1)
        assert not waiting.done()
        outbox.set_state("state 5")
        assert await waiting == "state 5"

    run(story())


# ---- with a robot -------------------------------------------------------------------------------


def test_a_browser_that_does_not_read_is_owed_the_newest_64_messages() -> None:
    async def story() -> list[str]:
        outbox = Outbox()
        for number in range(100):
            outbox.add_message(str(number))
        outbox.set_state("state")
        return [await outbox.next() for _ in range(65)]

    assert run(story()) == [*map(str, range(36, 100)), "state"]


def test_two_browsers_watch_one_commands_and_both_may_stop(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, first):
            await teach(first, "wave")
            second = await server.browser()
            await second.connected()
            assert first.id != second.id
            assert first.latest["status"]["commander"]["you"] is True
            commander = second.latest["status"]["commander"]
            assert (commander["you"], commander["number"]) == (False, 1)
            refusal = await second.refused("/play", 403, name="wave")
            assert refusal["error"] == "not-commanding"
            await first.post("/play", name="wave", loop=True)
            await second.status(lambda s: s["activity"]["kind"] == "playing")
            states = second.latest["state"]["time_s"]
            await second.socket.send('{"type":"stop"}')
            await first.notice("Stopped")
            await second.until(lambda: "stopped" in second.latest)
            assert second.latest["stopped"]["stopped"] == "playing"
            assert "stopped" not in first.latest
            await first.status(lambda s: s["activity"]["kind"] == "idle")
            await second.until(lambda: second.latest["state"]["time_s"] > states)
            await second.take_command()
            await second.post("/play", name="wave")
            assert (await second.refused("/command/release", 409))["error"] == "busy"
            assert (await first.post("/stop"))["stopped"] == "playing"
            await second.status(lambda s: s["activity"]["kind"] == "idle")
            await second.post("/command/release")
            await first.status(lambda s: s["commander"]["number"] is None)

    run(story())


@pytest.mark.parametrize("how", ["silent", "closed"])
@pytest.mark.parametrize("doing", ["teaching", "playing"])
def test_a_lost_commander_stops_the_robot_within_three_seconds(
    tmp_path: Path, doing: str, how: str
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await teach(page, "wave")
            watcher = await server.browser()
            if doing == "teaching":
                await page.post("/teach/start", name="lost")
            else:
                await page.post("/play", name="wave", loop=True)
            await asyncio.sleep(1)
            loop = asyncio.get_running_loop()
            page.silent, gone_s = True, loop.time()
            if how == "closed":
                await page.leave()
            await watcher.notice("is gone")
            assert loop.time() - gone_s < 3
            await watcher.status(lambda s: s["activity"]["kind"] == "idle")
            await watcher.until(lambda: watcher.latest["state"]["soft"] is False)
            if doing == "teaching":
                # The robot has not stored it, and what was recorded is not lost.
                names = [action["name"] for action in (await watcher.get("/actions"))["taught"]]
                assert names == ["wave"]
                assert len(server.library.load("lost")) > 50
            await watcher.post("/play", name="wave")  # the command was free to take

    run(story())


def test_the_next_browser_commands_as_soon_as_the_last_one_is_closed(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            watcher = await server.browser()
            await page.leave()
            await watcher.status(lambda s: s["commander"]["number"] is None, 1.5)
            await watcher.post("/mode", target="stand")
            assert (await watcher.get("/status"))["commander"]["you"]
            assert watcher.notices() == []

    run(story())


def test_a_page_that_is_reloaded_goes_on_commanding(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await page.post("/teach/start", name="wave")
            await page.leave()
            await asyncio.sleep(1.5)
            again = await server.browser(old=page.id)
            assert again.id == page.id
            await asyncio.sleep(4)
            assert again.latest["status"]["activity"]["kind"] == "teaching"
            assert (await again.post("/teach/finish", save=True))["saved"]

    run(story())


def test_states_come_thirty_times_a_second_or_five_at_rest_and_statuses_each_second(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            page.heard.clear()
            before = page.states
            await asyncio.sleep(4)
            assert page.states - before == pytest.approx(4 * 5, abs=4)
            assert 3 <= sum(message["type"] == "status" for message in page.heard) <= 6
            state = page.latest["state"]
            assert set(state) == {"type", "time_s", "joints_rad", "mode", "phase", "soft"}
            assert len(state["joints_rad"]) == 29
            await page.post("/teach/start", name="wave")
            await page.post("/teach/hand", script="wave", seconds=4.0)
            before = page.states
            await asyncio.sleep(2)
            assert page.states - before == pytest.approx(2 * 30, abs=6)

    run(story())


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"type":5}', '"stop"', b"\x00\xff"])
def test_nonsense_on_the_socket_is_no_stop_and_no_end(tmp_path: Path, text: str | bytes) -> None:
    async def story() -> None:
        async with pendant(tmp_path) as server:
            page = await server.browser()
            await page.socket.send(text)
            before = page.latest.get("state", {}).get("time_s", 0)
            await page.until(lambda: page.latest.get("state", {}).get("time_s", 0) > before + 1)
            assert page.notices() == []
            assert json.dumps(page.latest["hello"])

    run(story())


def test_one_browser_too_many_is_told_that_the_server_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clients_module, "MAX_CLIENTS", 2)

    async def story() -> None:
        async with pendant(tmp_path) as server:
            first = await server.browser()
            await server.browser()
            third = await server.browser(until="full")
            assert third.latest["full"]["role"] == "teacher"
            assert third.latest["full"]["remedy"]
            await third.socket.wait_closed()
            assert third.socket.close_code == FULL
            assert (await first.get("/status"))["commander"]["you"]
            assert (await first.get("/people"))["free"] == dict.fromkeys(ROLES, 0)

    run(story())


def test_watchers_leave_places_for_a_teacher_and_stops_need_none(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, token=TOKEN) as server:
            most = MAX_CLIENTS - RESERVED[PendantRole.WATCH]
            watchers = [await server.browser_as(PendantRole.WATCH) for _ in range(most)]
            shown = {"Authorization": f"Bearer {server.gate.tokens[PendantRole.WATCH]}"}
            late = await server.browser(until="full", **shown)
            assert str(most) in late.latest["full"]["message"]
            assert (await server.http.post("/api/stop", headers=shown)).json()["confirmed"]
            teacher = await server.browser_as(PendantRole.TEACHER)
            free = (await teacher.get("/people"))["free"]
            assert free == {"watch": 0, "command": 7, "teacher": 15}
            assert teacher.latest["people"]["free"] == free
            await watchers[0].leave()
            await teacher.until(lambda: teacher.latest["people"]["free"]["watch"] == 0)
            await watchers[1].leave()
            await teacher.until(lambda: teacher.latest["people"]["free"]["watch"] == 1)
            assert (await server.browser_as(PendantRole.WATCH)).id

    run(story())


def test_browsers_that_have_left_take_no_place() -> None:
    clients = Clients(Clock())
    for _ in range(3 * MAX_CLIENTS):
        clients.leave(clients.join(None, Access(PendantRole.WATCH)))
    assert len(list(clients)) <= 2 * MAX_CLIENTS
    assert clients.count_free_slots()["watch"] == MAX_CLIENTS - RESERVED[PendantRole.WATCH]


def test_signs_of_life_come_without_a_robot_and_while_nothing_changes(tmp_path: Path) -> None:
    async def story() -> None:
        async with pendant(tmp_path, "udp://127.0.0.1:9") as server:
            page = await server.browser()
            page.arrivals_s.clear()
            await asyncio.sleep(10.0)
            pauses_s = [later - earlier for earlier, later in pairwise(page.arrivals_s)]
            assert len(pauses_s) > 20
            assert max(pauses_s) < 0.45
            assert sum(message["type"] == "beat" for message in page.heard) > 20

    run(story())


def test_a_sign_of_life_never_displaces_a_message() -> None:
    async def story() -> None:
        outbox = Outbox()
        outbox.add_message("first")
        for _ in range(200):
            outbox.add_beat(1.0)
        assert await outbox.next() == "first"
        outbox.add_beat(2.0)
        assert await outbox.next() == '{"type":"beat","time_s":2.000}'

    run(story())


def test_a_request_is_a_sign_of_life_too() -> None:
    clock = Clock()
    clients = Clients(clock)
    page = clients.join()
    for _ in range(5):
        clock.now += 0.8 * SILENCE_S
        clients.require_command(page.id)
        assert not clients.drop_silent_commander(busy=True)
    clock.now += 1.1 * SILENCE_S
    assert clients.drop_silent_commander(busy=True)
