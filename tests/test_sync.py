"""The blocking API: the same words, usable in scripts, in threads and inside a running loop."""

import asyncio
import gc
import inspect
import signal
import threading
from typing import Any

import pytest

import rote
from rote.errors import BadRequestError, RefusedError

URL = "sim://g1?store=:memory:"


def test_teach_list_and_play_without_await() -> None:
    with rote.sync.connect(URL) as robot:
        assert robot.actions().taught == ()
        assert robot.mode().balanced
        assert robot.preflight() == []
        with robot.teach("mine") as take:
            robot.move_by_hand("wave", 0.3)
            while take.samples < 30:
                next(robot.states())
        assert take.saved
        assert take.track.rate_hz == pytest.approx(100, rel=0.05)
        assert [action.name for action in robot.actions().taught] == ["mine"]
        assert robot.play("mine").completed


def teach_a_drum(robot: Any) -> None:
    with robot.teach("mine"):
        robot.move_by_hand("drum", 0.2)
        for _ in zip(range(30), robot.states(), strict=False):
            pass


def test_a_started_playback_can_be_watched_and_stopped() -> None:
    with rote.sync.connect(URL) as robot:
        teach_a_drum(robot)
        playing = robot.start("mine", loop=True)
        phases = set()
        for progress in playing:
            phases.add(progress.phase)
            if progress.phase is rote.Phase.PLAYING:
                break
        assert not playing.done
        playing.stop()
        assert playing.done
        assert not playing.wait().completed  # type: ignore[unreachable]
        assert "blocking" in repr(playing)
        assert "stop" in dir(playing)


def test_errors_come_through_as_they_are() -> None:
    with rote.sync.connect(URL) as robot:
        with pytest.raises(RefusedError):
            robot.play("nothing")
        with pytest.raises(BadRequestError):
            robot.teach("")
        with pytest.raises(AttributeError):
            robot.dance()  # type: ignore[attr-defined]
        with pytest.raises(TypeError, match="not iterable"):
            iter(robot)  # type: ignore[call-overload]
    with pytest.raises(BadRequestError):
        rote.sync.connect("sim://spot").__enter__()
    connection = rote.sync.connect(URL)
    with pytest.raises(AttributeError, match=r"with rote\.sync\.connect"):
        connection.actions()  # type: ignore[attr-defined]
    with connection as robot:
        assert "speed" in str(inspect.signature(robot.play))


def test_a_failed_block_leaves_the_arms_holding_and_nothing_saved() -> None:
    with rote.sync.connect(URL) as robot:
        with pytest.raises(KeyError):
            with robot.teach("mine"):
                raise KeyError
        assert not next(robot.states()).arms_soft
        assert robot.actions().taught == ()


def test_it_works_inside_a_running_loop_as_in_jupyter() -> None:
    async def cell() -> int:
        count: list[int] = []
        with rote.sync.connect(URL) as robot:
            count.append(len(robot.actions().taught))
        return sum(count)

    assert asyncio.run(cell()) == 0


def test_no_thread_is_left_behind() -> None:
    before = threading.active_count()
    for _ in range(3):
        with rote.sync.connect(URL) as robot:
            robot.mode()
    assert threading.active_count() == before


def test_a_signal_unwinds_a_blocking_teach_block() -> None:
    with rote.sync.connect(URL) as robot:
        with pytest.raises(SystemExit) as caught:
            with robot.teach("mine"):
                signal.raise_signal(signal.SIGTERM)
        assert caught.value.code == 128 + signal.SIGTERM
        assert not next(robot.states()).arms_soft
        assert robot.actions().taught == ()
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_ctrl_c_in_a_blocking_playback_stops_the_robot() -> None:
    with rote.sync.connect(URL) as robot:
        teach_a_drum(robot)
        main = threading.get_ident()

        def interrupt(state: rote.RobotState) -> None:
            if state.phase is rote.Phase.PLAYING:
                forget()
                signal.pthread_kill(main, signal.SIGINT)

        forget = robot.on_state(interrupt)
        with pytest.raises(KeyboardInterrupt):
            robot.play("mine", loop=True)
        assert next(robot.states()).phase is rote.Phase.RETURN


def test_what_still_runs_when_a_connection_ends_is_ended_with_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with rote.sync.connect(URL) as robot:
        states = robot.states()
        with robot.teach("mine"):
            for _ in zip(range(30), states, strict=False):
                pass
        robot.start("mine", loop=True)
    gc.collect()
    assert not caplog.records  # asyncio complains of tasks that were forgotten


def test_two_robots_fit_in_one_process() -> None:
    with rote.sync.connect(URL) as one, rote.sync.connect(URL) as other:
        with one.teach("mine") as take:
            take.discard()
            next(one.states())
            assert not next(other.states()).arms_soft
        assert other.actions().taught == ()
