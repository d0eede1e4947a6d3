"""Ctrl-C while a robot moves: it is stopped softly before the command ends."""

import asyncio
import io
import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest

import virtual
from a1_rig import pair
from forked import Rote
from rig import free_domain, rig
from rote import messages as m
from rote.cli import main
from rote.cli.options import describe_failed_stop, run, stopping_softly
from rote.connection import _wait_for_phase, connect, stop
from rote.errors import NotConfirmedError, RefusedError, RoteError, TimeLimitError
from rote.messages import Keyframe
from rote.robot.robot import Robot
from rote.sim.server import Simulator
from rote.sim.store import Store, StoredAction
from rote.sim.world import World
from rote.transport.impair import Impairment

WAVE = StoredAction(
    name="wave",
    created_s=1,
    duration_ms=1000,
    keyframes=(Keyframe(joint=18, time_ms=0, value_rad=0.5),),
)


async def interrupted(
    robot: Robot, as_json: bool = False, *, again_after_s: float | None = None
) -> None:
    """Wait beside a robot that moves, and be interrupted, perhaps twice."""

    async def wait() -> None:
        async with stopping_softly(robot, "it rests", as_json):
            await asyncio.sleep(3600)

    waiting = asyncio.create_task(wait())
    await asyncio.sleep(1.0)
    waiting.cancel()
    if again_after_s is not None:
        await asyncio.sleep(again_after_s)
        assert not waiting.done()
        waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


def test_a_g1_is_stopped_and_a_person_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        store = Store(":memory:")
        store.save(WAVE)
        async with connect(world=World(store)) as robot:
            playing = await robot.start("wave", loop=True)
            await interrupted(robot)
            assert not (await playing).completed
        assert capsys.readouterr() == ("", "Stopped softly: it rests.\n")
        store.close()

    virtual.run(story())


def test_a_stop_that_does_not_get_through_is_sent_until_it_is_confirmed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story() -> None:
        loop = asyncio.get_running_loop()
        cut = Impairment(cut_after_s=3.0, cut_for_s=6.0)
        cut_at = loop.time() + 3.0
        async with rig("udp", impairment=cut) as one:
            one.world.store.save(replace(WAVE, duration_ms=60_000))
            async with connect(one.url) as robot:
                await robot.start("wave", loop=True)
                await asyncio.sleep(cut_at + 0.1 - loop.time() - 1.0)
                await interrupted(robot)
                assert not robot.stop_pending
            assert one.world.stopped_early
            assert loop.time() < cut_at + 6.0 + 3.0
        err = capsys.readouterr().err
        assert err.startswith("The robot did NOT confirm the stop; use the remote (L2+B): ")
        assert "L2+B" in err
        assert err.endswith("Stopped softly: it rests.\n")
        assert err.count("NOT") == 1

    virtual.run(story())


def test_a_stop_is_sent_again_although_standard_error_is_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Closed(io.StringIO):
        def write(self, text: str, /) -> int:
            raise BrokenPipeError

    async def story() -> None:
        loop = asyncio.get_running_loop()
        cut_at = loop.time() + 3.0
        async with rig("udp", impairment=Impairment(cut_after_s=3.0, cut_for_s=6.0)) as one:
            one.world.store.save(replace(WAVE, duration_ms=60_000))
            async with connect(one.url) as robot:
                await robot.start("wave", loop=True)
                await asyncio.sleep(cut_at + 0.1 - loop.time() - 1.0)
                monkeypatch.setattr(sys, "stderr", Closed())
                await interrupted(robot)
                assert not robot.stop_pending
            assert one.world.stopped_early

    virtual.run(story())


def test_an_a1_stands_and_a_script_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        async with pair() as (_, _, robot):
            robot.walk(0.3)
            await interrupted(robot, as_json=True)
            await asyncio.sleep(1.0)
            assert robot.status().mode != "walk"
        out, err = capsys.readouterr()
        assert json.loads(out) == {"stopped": True, "state": "it rests"}
        assert err == ""

    virtual.run(story())


@pytest.mark.parametrize("wire", ["memory", "udp"])
def test_a_robot_that_says_nothing_after_a_stop_was_stopped_all_the_same(wire: str) -> None:
    async def story() -> None:
        async with rig(wire) as one, one.connect() as g1:
            await g1.stop()
            assert await _wait_for_phase(g1) is not None
            await one.die()
            assert await _wait_for_phase(g1) is None

    virtual.run(story())


def test_what_goes_wrong_otherwise_is_left_to_others() -> None:
    async def story() -> None:
        async with pair() as (_, _, robot):
            robot.walk(0.3)
            with pytest.raises(KeyError):
                async with stopping_softly(robot, "it rests"):
                    raise KeyError("a bug")
            await asyncio.sleep(0.5)
            assert robot.status().mode == "walk"

    virtual.run(story())


@pytest.fixture
def as_under_nohup() -> Iterator[None]:
    """SIGHUP is ignored, and SIGTERM is for who calls a command."""
    before = [
        (signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_IGN)),
        (signal.SIGTERM, signal.signal(signal.SIGTERM, nothing)),
    ]
    yield
    for number, former in before:
        signal.signal(number, former)


def nothing(number: int, frame: object) -> None:
    """Hear a signal."""


async def hears(number: int) -> int:
    signal.raise_signal(number)
    await asyncio.sleep(0.05)
    return 7


@pytest.mark.usefixtures("as_under_nohup")
def test_a_command_under_nohup_outlives_a_hang_up_and_can_still_be_ended() -> None:
    assert run(hears(signal.SIGHUP)) == 7
    assert run(hears(signal.SIGTERM)) == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    assert signal.getsignal(signal.SIGTERM) is nothing


# ---- a stop that fails --------------------------------------------------------------------------

NOT_REACHED = "the stop did NOT reach the robot; use the remote (L2+B"
LEGS = ": its legs go limp"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port of loopback that takes datagrams and connections and never answers."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(tcp.getsockname())
        yield tcp.getsockname()[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("url", "code", "more"),
    [
        ("udp://127.0.0.1:9", 3, ""),
        ("udp://127.0.0.1:{silent}", 3, ""),
        ("udp://nohost.invalid", 3, ""),
        ("udp://127.0.0.1:99999", 2, ""),
        ("webrtc://127.0.0.1:9", 3, ""),
        ("webrtc://127.0.0.1:{silent}", 3, ""),
        ("webrtc://nohost.invalid", 3, ""),
        ("dds://lo?domain={domain}", 3, ""),
        ("dds://nope0", 2, ""),
        ("a1://127.0.0.1:9", 3, LEGS),
        ("a1://127.0.0.1:{silent}", 3, LEGS),
        ("a1://127.0.0.1:{silent}?level=low", 3, LEGS),
        ("a1://nohost.invalid", 3, LEGS),
        ("http://127.0.0.1", 2, ""),
        ("sim://r2d2", 2, ""),
    ],
)
def test_a_stop_that_reaches_no_robot_says_so_first(
    url: str, code: int, more: str, silent_port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    if url.startswith("dds:"):
        pytest.importorskip("cyclonedds")
    robot = url.format(silent=silent_port, domain=free_domain("no robot"))
    began = time.monotonic()
    assert main(["stop", "--robot", robot, "--timeout", "0.3"]) == code
    assert time.monotonic() - began < 10.0
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"rote: {NOT_REACHED}{more}): ")
    assert main(["stop", "--robot", robot, "--timeout", "0.3", "--json"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err)["message"].startswith(f"{NOT_REACHED}{more}): ")


@pytest.mark.parametrize("option", ["--robt", "--timeout=x", "--timeout=-1", "--key=00"])
def test_a_mistyped_stop_says_first_that_nothing_was_stopped(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["stop", "--robot", "udp://127.0.0.1:9", option]) == 2
    assert capsys.readouterr().err.startswith(f"rote: {NOT_REACHED}): ")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stop_that_a_signal_ends_says_that_it_was_not_confirmed(
    number: int, silent_port: int
) -> None:
    process = Rote(
        *("stop", "--robot", f"udp://127.0.0.1:{silent_port}", "-v"),
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    assert any("connecting" in line for line in process.stderr)
    process.send_signal(number)
    err = process.communicate(timeout=30)[1]
    assert "rote: the robot did NOT confirm the stop; use the remote (L2+B)\n" in err
    assert process.returncode == 128 + number


def test_a_connected_robot_that_does_not_answer_the_stop_has_not_confirmed_it() -> None:
    class Deaf(World):
        def obey(self, client: object, command: m.Command) -> m.Reply:
            if isinstance(command, m.StopMotion):
                raise RuntimeError("this request is lost")
            return super().obey(client, command)

    async def story() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        simulator = Simulator(Deaf(Store(":memory:")))
        url = await simulator.serve_udp("127.0.0.1", 0)
        with pytest.raises(NotConfirmedError) as caught:
            await stop(url)
        assert describe_failed_stop(caught.value).startswith("the robot did NOT confirm the stop;")
        await simulator.close()

    virtual.run(story())


@pytest.mark.parametrize(
    ("error", "limbs", "headline"),
    [
        (RefusedError(7400, "busy"), "arms", "the robot did NOT accept the stop"),
        (TimeLimitError("it still moves"), "legs", "the robot did NOT stop"),
    ],
)
def test_a_stop_without_effect_points_to_the_remote(
    error: RoteError, limbs: str, headline: str
) -> None:
    more = LEGS if limbs == "legs" else ""
    assert describe_failed_stop(error, limbs) == f"{headline}; use the remote (L2+B{more})"


@pytest.mark.parametrize("wire", ["memory", "udp"])
def test_ctrl_c_that_cannot_stop_the_robot_says_so_and_a_second_one_gives_up(
    wire: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async def story() -> None:
        with pytest.raises(RoteError) as caught:
            async with rig(wire) as one, one.connect() as g1:
                one.world.store.save(WAVE)
                await g1.start("wave", loop=True)
                await one.die()
                await interrupted(g1, again_after_s=30.0)
        headline = "the robot did NOT confirm the stop; use the remote (L2+B)"
        assert caught.value.headline == headline

    virtual.run(story())
    printed = "".join(capsys.readouterr())
    assert printed.startswith("The robot did NOT confirm the stop; use the remote (L2+B): ")
    assert "Stopped softly" not in printed


def test_a_second_ctrl_c_does_not_cut_the_stop_short(capsys: pytest.CaptureFixture[str]) -> None:
    async def story() -> None:
        store = Store(":memory:")
        store.save(WAVE)
        async with connect(world=World(store)) as robot:
            playing = await robot.start("wave", loop=True)
            beside = asyncio.create_task(interrupted(robot))
            await asyncio.sleep(1.0)
            for _ in range(5):
                for task in asyncio.all_tasks():
                    if task.get_coro().__name__ == "wait":  # type: ignore[union-attr]
                        task.cancel()
                await asyncio.sleep(0)
            await beside
            assert not (await playing).completed
        store.close()

    virtual.run(story())
    assert capsys.readouterr().err == "Stopped softly: it rests.\n"


def test_a_second_ctrl_c_before_the_answer_to_the_stop_waits_for_that_answer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def story() -> None:
        async with rig("udp", impairment=Impairment(delay_s=0.2)) as one:
            one.world.store.save(WAVE)
            async with connect(one.url) as robot:
                playing = await robot.start("wave", loop=True)
                await interrupted(robot, again_after_s=0.1)
                assert not robot.stop_pending, "the robot has confirmed it"
                assert not (await playing).completed

    virtual.run(story())
    assert capsys.readouterr().err == "Stopped softly: it rests.\n"
