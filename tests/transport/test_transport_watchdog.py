"""A program that holds up its own loop while a robot's arms are soft hears of it, in real time."""

import asyncio
import inspect
import logging
import threading
import time

import pytest

import virtual
from rig import rig
from rote.transport.watchdog import Watchdog


def watchdogs() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "rote watchdog"]


@pytest.mark.slow
def test_blocking_the_loop_while_teaching_is_said_aloud_in_under_two_seconds(
    caplog: pytest.LogCaptureFixture,
) -> None:
    line = 0

    async def story() -> float:
        nonlocal line
        async with rig("services") as one, one.connect() as robot:
            async with robot.teach("mine"):
                await asyncio.sleep(0.1)
                assert not caplog.records
                began = time.time()
                line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
                time.sleep(1.9)  # noqa: ASYNC251 - the very mistake
            for thread in watchdogs():
                thread.join(1.0)  # it was told to end, and does so by itself
            assert not watchdogs()
        return began

    with caplog.at_level(logging.WARNING, "rote"):
        began = asyncio.run(story())
    (record,) = caplog.records
    assert record.created - began < 2.0
    assert f"{__file__}:{line} " in record.getMessage()
    assert "rote.sync" in record.getMessage()
    assert record.levelno == logging.WARNING


def test_a_loop_that_runs_hears_nothing_and_no_thread_stays(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.transport.watchdog.WARN_AFTER_S", 0.2)
    monkeypatch.setattr("rote.transport.watchdog._CHECK_S", 0.02)

    async def story() -> None:
        watchdog = Watchdog(asyncio.get_running_loop(), "somebody waits")
        watchdog.watch(on=False)
        watchdog.watch(on=True)
        watchdog.watch(on=True)
        (thread,) = watchdogs()
        await asyncio.sleep(0.3)
        watchdog.watch(on=False)
        watchdog.watch(on=False)
        thread.join(1.0)
        assert not watchdogs()
        time.sleep(0.25)  # noqa: ASYNC251 - nobody waits now

    asyncio.run(story())
    assert not caplog.records


def test_each_hold_up_is_told_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.transport.watchdog.WARN_AFTER_S", 0.1)
    monkeypatch.setattr("rote.transport.watchdog._CHECK_S", 0.02)

    async def story() -> None:
        watchdog = Watchdog(asyncio.get_running_loop(), "somebody waits")
        watchdog.watch(on=True)
        for _ in range(2):
            time.sleep(0.2)  # noqa: ASYNC251
            await asyncio.sleep(0.05)
        watchdog.watch(on=False)

    asyncio.run(story())
    assert len(caplog.records) == 2
    assert all("somebody waits" in record.getMessage() for record in caplog.records)


def test_a_suspended_computer_is_told_apart_from_a_blocked_loop(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rote.transport.watchdog._CHECK_S", 0.02)

    async def story() -> None:
        watchdog = Watchdog(asyncio.get_running_loop(), "the arms are soft")
        watchdog.watch(on=True)
        await asyncio.sleep(0.1)
        virtual.suspend(12.0)
        await asyncio.sleep(0.2)
        watchdog.watch(on=False)

    with caplog.at_level(logging.WARNING, "rote"):
        asyncio.run(story())
    (record,) = caplog.records
    assert record.getMessage() == "this computer was suspended for 12.0 s: the arms are soft"
