"""From a URL to a robot: what is no wire, or does not go with it, is refused before anything."""

import asyncio
from typing import Any

import numpy as np
import pytest

import virtual
from rote import connection
from rote.connection import connect, connect_a1, stop
from rote.errors import BadRequestError, RefusedError
from rote.robot.quadruped.bot import Bot
from rote.robot.quadruped.safety import Safety
from rote.session.a1 import Level
from rote.sim.store import Store
from rote.sim.world import World
from rote.wire.a1.values import Dialect


def refusal(url: str, **how: Any) -> BadRequestError:
    async def story() -> None:
        async with connect(url, **how):
            pytest.fail("there is no such robot")

    with pytest.raises(BadRequestError) as caught:
        virtual.run(story())
    return caught.value


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("", ""),
        ("127.0.0.1", "Did you mean webrtc://127.0.0.1? "),
        ("ftp://host", ""),
        ("webrtcs://x", "Did you mean webrtc://? "),
        ("memory://g1", ""),
    ],
)
def test_what_is_no_wire_is_refused_with_those_that_are(url: str, near: str) -> None:
    refused = refusal(url)
    assert str(refused).startswith(f"{url!r} does not name a wire that rote knows")
    assert (
        refused.remedy == f"{near}Begin it with one of: a1://, dds://, sim://, udp://, webrtc://."
    )


@pytest.mark.parametrize("scheme", ["a1", "dds", "sim", "udp", "webrtc"])
def test_what_is_no_address_is_refused(scheme: str) -> None:
    assert f"'{scheme}://[::1' is not an address" in str(refusal(f"{scheme}://[::1"))


@pytest.mark.parametrize(
    "url",
    ["sim://g2", "sim://g1/path", "sim://g1?shop=x", "sim://g1?x", "sim://g1?store="],
)
def test_another_simulated_robot_is_not_known(url: str) -> None:
    assert "sim://g1" in refusal(url).remedy


@pytest.mark.parametrize("timeout", [0.0, -1.0, 601.0, float("nan")])
def test_a_wait_out_of_range_is_refused(timeout: float) -> None:
    assert "600" in refusal("sim://g1?store=:memory:", timeout=timeout).remedy


@pytest.mark.parametrize("url", ["a1://dog", "dds://lo", "sim://g1", "udp://127.0.0.1"])
def test_a_key_goes_with_webrtc_only(url: str) -> None:
    assert "webrtc://" in str(refusal(url, key="00" * 16))
    assert "webrtc://" in str(refusal(url, keylog="keys.log"))


@pytest.mark.parametrize("url", ["a1://dog", "dds://lo", "webrtc://ap", "udp://127.0.0.1"])
def test_a_world_goes_with_a_simulated_robot_only(url: str) -> None:
    store = Store(":memory:")
    assert "sim://" in str(refusal(url, world=World(store)))
    store.close()


def test_the_store_of_a_world_of_ones_own_is_left_open() -> None:
    async def story() -> None:
        store = Store(":memory:")
        async with connect(world=World(store)) as robot:
            assert (await robot.actions()).taught == ()
        assert store.entries() == ()
        store.close()

    virtual.run(story())


def test_the_embedded_robot_renames_and_deletes() -> None:
    async def story() -> None:
        async with connect("sim://g1?store=:memory:") as robot:
            for name in ("wave", "bow"):
                async with robot.teach(name):
                    await robot.move_by_hand(name, 1.0)
                    await asyncio.sleep(1.0)
            await robot.rename("wave", "hello")
            await robot.delete("bow")
            assert [action.name for action in (await robot.actions()).taught] == ["hello"]
            with pytest.raises(RefusedError):
                await robot.rename("wave", "again")
            with pytest.raises(RefusedError):
                await robot.delete("bow")

    virtual.run(story())


# ---- an A1 inside this process ------------------------------------------------------------------


def test_a_simulated_a1_lives_inside_this_process_and_walks() -> None:
    async def main() -> None:
        async with connect("sim://a1?dialect=3.2", family="a1") as robot:
            assert (robot.level, robot.dialect) == (Level.HIGH, Dialect.A1_3_2)
            await Bot(robot).walk(0.2).execute()
            assert robot.status().place_m == pytest.approx((0.2, 0.0), abs=0.03)

    virtual.run(main())


def test_its_motors_are_reached_by_its_url_or_by_what_it_is_wanted_for_and_it_hangs_then() -> None:
    async def main() -> None:
        async with connect("sim://a1?hand=paw", family="a1", ability="teach") as robot:
            assert robot.level is Level.LOW
            async with robot.teach("paw") as take:
                await asyncio.sleep(2.0)
            assert float(np.ptp(take.track.joints_rad[:, 1])) > 0.3
            assert (await robot.play_track(take.track)).completed
        async with connect_a1("sim://a1?level=low", safety=Safety(from_folded=False)) as robot:
            assert robot.level is Level.LOW
        stopped = await stop("sim://a1")
        assert stopped.was == "nothing"

    virtual.run(main())


@pytest.mark.parametrize(
    "url",
    ["sim://a1?level=middle", "sim://a1?mode=dance", "sim://a1?hand=foot", "sim://a1?store=x",
     "sim://a1/path", "sim://a1?dialect=4", "sim://a1?x"],
)  # fmt: skip
def test_a_simulated_a1_that_there_is_not_is_refused(url: str) -> None:
    assert refusal(url).remedy
    with pytest.raises(BadRequestError, match="is not an A1"):
        virtual.run(_open_a1("sim://g1"))


async def _open_a1(url: str) -> None:
    async with connect_a1(url):
        raise AssertionError


def test_a_simulated_a1_takes_no_world_of_a_g1() -> None:
    store = Store(":memory:")
    assert "stores actions" in str(refusal("sim://a1", world=World(store)))
    store.close()


def test_a_robots_key_is_in_no_repr() -> None:
    secret = "0123456789abcdef" * 2
    assert secret not in repr(connection._ConnectOptions("webrtc://x", key=secret))
    webrtc = pytest.importorskip("rote.transport.webrtc.stack", reason="aiortc is not installed")
    assert secret not in repr(webrtc.WebRtcTarget(host="x", key=secret))
