"""The clocks that count the time during which the computer was suspended."""

import asyncio
import time
from collections.abc import Callable

import pytest

import virtual
from rote.platform import clock
from rote.platform.loop import new_loop


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


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, new_loop])
def test_the_stall_clock_of_a_real_loop_goes_as_fast_as_that_of_the_loop(
    factory: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def watch() -> tuple[float, float]:
        loop = asyncio.get_running_loop()
        now = clock.stall_clock(loop)
        began_s, loop_began_s = now(), loop.time()
        await asyncio.sleep(0.05)
        return now() - began_s, loop.time() - loop_began_s

    with asyncio.Runner(loop_factory=factory) as runner:
        passed_s, loop_passed_s = runner.run(watch())
    assert passed_s > 0.045
    assert passed_s == pytest.approx(loop_passed_s, abs=0.1)


def test_timers_of_the_loop_do_not_see_a_suspend() -> None:
    async def watch() -> float:
        loop = asyncio.get_running_loop()
        began = loop.time()
        virtual.suspend(30.0)
        await asyncio.sleep(1.0)
        return loop.time() - began

    assert virtual.run(watch()) == pytest.approx(1.0, abs=0.01)
