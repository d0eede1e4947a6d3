"""A request that was delayed begins no motion: neither by a stall of the server nor on its way."""

import asyncio
from pathlib import Path

import pytest

from rote.platform import clock
from rote.web.access.clients import SILENCE_S
from rote.web.services.hub import MAX_AGE_S, SETTLE_S
from virtual import hang, run
from web.pendant import Browser, one_browser

BEGINNINGS = {
    "/play": {"name": "wave"},
    "/play/take": {"take": "wave", "steps": []},
    "/perform": {"preset": 27},
    "/teach/start": {"name": "wave"},
    "/teach/hand": {"script": "wave", "seconds": 1.0},
    "/mode": {"target": "stand"},
    "/stage/go": {"show": "greet", "cast": {}},
    "/agent/begin": {"ticket": "t", "take": "wave", "speed": 1.0},
}


async def errors(page: Browser, **headers: str) -> dict[str, str]:
    """Return how each request that begins a motion is answered."""
    found = {}
    for path, body in BEGINNINGS.items():
        response = await page.ask("POST", path, json=body, headers=headers)
        found[path] = response.json().get("error", "")
    return found


def test_nothing_begins_right_after_a_stall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            suspended_s = clock.suspended_s()
            monkeypatch.setattr(clock, "suspended_s", lambda: suspended_s + 3.0)
            assert set((await errors(page)).values()) == {"stale-request"}
            assert (await page.get("/status"))["activity"]["kind"] == "idle"
            await asyncio.sleep(SETTLE_S)
            await page.status(lambda s: s["connection"]["state"] == "connected")
            async with asyncio.timeout(30.0):  # a busy computer may stall in earnest meanwhile
                while (await page.ask("POST", "/perform", json={"preset": 27})).status_code != 200:
                    await asyncio.sleep(SETTLE_S)

    run(story())


def test_a_request_that_was_delayed_on_its_way_begins_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await page.until(lambda: "beat" in page.latest)
            sent = {"X-Rote-Beat": str(page.latest["beat"]["time_s"])}
            await asyncio.sleep(MAX_AGE_S + 0.1)
            late = await errors(page, **sent)
            late.pop("/agent/begin")  # an agent is no page
            assert set(late.values()) == {"stale-request"}
            for odd in ("nan", "inf", "x", "1e300"):
                response = await page.ask(
                    "POST", "/perform", json={"preset": 27}, headers={"X-Rote-Beat": odd}
                )
                assert response.json()["error"] == "stale-request"
            stopped = await page.ask("POST", "/stop", json={}, headers=sent)
            assert stopped.status_code == 200, "a stop is never too late"
            fresh = {"X-Rote-Beat": str(page.latest["beat"]["time_s"])}
            response = await page.ask("POST", "/perform", json={"preset": 27}, headers=fresh)
            assert response.status_code == 200, response.text

    run(story())


def test_a_stall_of_the_server_is_not_blamed_on_the_browser(tmp_path: Path) -> None:
    async def story() -> None:
        async with one_browser(tmp_path) as (_, page):
            await page.post("/teach/start", name="wave")
            await asyncio.sleep(1.0)
            hang(SILENCE_S - 0.1)  # less than the robot's connection survives, more than a stall
            await page.until(lambda: any("Teaching" in each for each in page.notices()), 10)
            assert not [each for each in page.notices() if "browser" in each]
            assert [each for each in page.notices() if "This server was stalled" in each]

    run(story())
