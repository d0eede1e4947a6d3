"""The clocks that count the time during which the computer was suspended."""

import asyncio
import time

import pytest

import virtual
from rote.platform import clock


def test_a_computer_that_is_awake_adds_nothing_to_its_suspended_time() -> None:
    first = clock.suspended_s()
    time.sleep(0.05)
    assert clock.suspended_s() - first == pytest.approx(0.0, abs=0.002)


def test_the_stall_clock_counts_waiting_stalls_and_suspends_alike() -> None:
    async def watch() -> float:
        now = clock.stall_clock(asyncio.get_running_loop())
        began = now()
        await asyncio.sleep(2.0)
        virtual.hang(3.0)
        virtual.suspend(30.0)
        return now() - began

    assert virtual.run(watch()) == pytest.approx(35.0, abs=0.01)


def test_timers_of_the_loop_do_not_see_a_suspend() -> None:
    async def watch() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        virtual.suspend(30.0)
        await asyncio.sleep(1.0)
        return loop.time() - began

    assert virtual.run(watch()) == pytest.approx(1.0, abs=0.01)
