"""The recent events: they outlive a reload, and safety events stay until acknowledged."""

from pathlib import Path

import pytest

from rote.motion.files.library import Library
from rote.web.access.roles import PendantRole
from rote.web.access.security import Gate
from rote.web.server.problems import ProblemError
from rote.web.server.serve import serving
from rote.web.services.events import MAX_EVENTS, Event, EventLog
from rote.web.services.hub import Start
from virtual import run
from web.pendant import MEMORY, Pendant, one_browser, pendant, teach

TOKEN = "a-token-for-these-tests"


def test_events_outlive_a_reload(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (server, page):
            await teach(page, "wave")
            await page.socket.send('{"type":"stop"}')
            await page.until(lambda: "stopped" in page.latest)
            heard = [each["event"] for each in page.heard if each["type"] == "event"]
            assert [each["kind"] for each in heard] == ["saved", "stop"]
            notices = [each for each in page.heard if each["type"] == "notice"]
            assert [each["event"] for each in notices] == [each["id"] for each in heard]
            again = await server.browser(old=page.id)
            assert again.latest["events"]["events"] == heard
            assert (await page.get("/events"))["events"] == heard
            assert heard[0]["time_s"] > 1.7e9
            assert "'wave'" in heard[0]["message"]

    run(story())


def test_a_safety_event_stays_until_somebody_who_may_command_acknowledges_it(
    tmp_path: Path,
) -> None:
    async def story() -> None:
        async with pendant(tmp_path, "udp://127.0.0.1:9", token=TOKEN) as server:
            teacher = await server.browser_as(PendantRole.TEACHER)
            watcher = await server.browser_as(PendantRole.WATCH)
            await teacher.refused("/stop", 502)
            (event,) = (await watcher.get("/events"))["events"]
            assert (event["kind"], event["safety"]) == ("stop-unconfirmed", True)
            assert event["acknowledged"] is False
            await watcher.refused("/events/acknowledge", 403, id=event["id"])
            assert (await watcher.get("/events"))["events"] == [event]
            await teacher.post("/events/acknowledge", id=event["id"])
            await watcher.until(lambda: watcher.latest["event"]["event"]["acknowledged"])
            assert watcher.latest["event"]["event"]["id"] == event["id"]
            assert (await teacher.refused("/events/acknowledge", 404, id=99))["remedy"]

    run(story())


def test_recovered_takes_are_among_the_events(tmp_path: Path) -> None:
    async def story() -> None:
        start = Start(Library(tmp_path / "takes"), MEMORY, recovered=("wave",))
        async with serving(start, Gate(), 0) as server:
            one = Pendant(server.port, start.library, Gate())
            page = await one.browser()
            (event,) = page.latest["events"]["events"]
            assert event["kind"] == "recovered"
            assert "'wave'" in event["message"]
            await one.close()

    run(story())


def test_there_are_not_too_many_and_what_is_not_acknowledged_goes_last() -> None:
    changed: list[Event] = []
    log = EventLog(changed.append)
    first = log.add("lost", "The robot is lost.", safety=True)
    for number in range(2 * MAX_EVENTS):
        log.add("stop", f"Stop {number}.")
    kept = list(log)
    assert (len(kept), kept[0]) == (MAX_EVENTS, first)
    assert kept[-1].message == f"Stop {2 * MAX_EVENTS - 1}."
    log.acknowledge(first.id)
    log.acknowledge(first.id)
    assert changed[-1] is first
    assert len(changed) == 2 * MAX_EVENTS + 2
    log.add("stop", "One more.")
    assert first not in list(log)
    with pytest.raises(ProblemError):
        log.acknowledge(first.id)


@pytest.mark.parametrize(
    "body", [b"", b"{bad", b"[]", b'{"more":1}', b"stop=1", b"\xff", b"[" * 9999]
)
def test_no_mistake_in_its_body_prevents_a_stop(body: bytes, tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            for kind in ("application/json", "text/plain"):
                response = await page.ask(
                    "POST", "/stop", content=body, headers={"Content-Type": kind}
                )
                assert response.status_code == 200, response.text

    run(story())
