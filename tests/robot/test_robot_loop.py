"""LoopFunc: deadlines that do not drift, late calls left out, errors told, a clean stop."""

import ctypes
import itertools
import os
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import virtual
from rote.errors import BadRequestError, TimeLimitError
from rote.platform import realtime
from rote.robot.quadruped.loop import Deadlines, LoopFunc

PERIOD_S = 0.002


@settings(max_examples=60)
@given(st.lists(st.floats(0.0, 0.02), min_size=1, max_size=50))
def test_deadlines_stay_on_their_grid_and_none_is_made_up_for(busy_s: list[float]) -> None:
    beats = Deadlines(PERIOD_S, 100.0)
    now = 100.0
    starts = []
    for took in busy_s:
        now = max(now, beats.due_s)
        starts.append(beats.due_s)
        beats.begin(now)
        now += took
        beats.end(now)
        assert beats.due_s > now - PERIOD_S - 1e-9, "a deadline long gone is not waited for"
    steps = [round((due - 100.0) / PERIOD_S, 6) for due in starts]
    assert all(step == round(step) for step in steps)
    assert all(later > earlier for earlier, later in itertools.pairwise(steps))
    stats = beats.stats()
    assert stats.ticks == len(busy_s)
    assert stats.late == round((beats.due_s - 100.0) / PERIOD_S) - len(busy_s)
    assert stats.busy_max_us == pytest.approx(max(busy_s) * 1e6, abs=1.0)


def test_a_loop_in_time_has_its_rate_and_no_deviation() -> None:
    beats = Deadlines(PERIOD_S, 0.0)
    for _ in range(1001):
        beats.begin(beats.due_s)
        beats.end(beats.due_s + 0.001)
    stats = beats.stats()
    assert stats.rate_hz == pytest.approx(500.0)
    assert stats.late == 0
    assert stats.deviation_max_us < 0.01


def test_a_late_tick_shows_in_the_deviation() -> None:
    beats = Deadlines(PERIOD_S, 0.0)
    for late_s in (0.0, 0.0003, 0.0):
        beats.begin(beats.due_s + late_s)
        beats.end(beats.due_s + 0.001)
    assert beats.stats().deviation_max_us == pytest.approx(300.0)
    assert Deadlines(PERIOD_S, 0.0).stats().rate_hz == 0.0


def test_only_the_newest_deviations_are_kept() -> None:
    beats = Deadlines(PERIOD_S, 0.0)
    beats.begin(0.5)
    beats.end(0.5)
    for _ in range(1 << 17):
        beats.begin(beats.due_s)
        beats.end(beats.due_s)
    assert beats.stats().deviation_max_us < 1000.0


def test_it_calls_its_function_in_a_thread_until_it_is_stopped() -> None:
    threads = set()
    enough = threading.Event()

    def function() -> None:
        threads.add(threading.current_thread())
        if loop.stats().ticks > 5:
            enough.set()

    loop = LoopFunc("test", 0.001, function)
    with loop:
        assert enough.wait(10)
        is_running = loop.running
    assert is_running
    assert not loop.running
    assert len(threads) == 1
    assert threads != {threading.current_thread()}
    assert loop.stop().ticks > 5, "stopping twice is safe"


def test_a_long_wait_is_ended_at_once() -> None:
    called = threading.Event()
    loop = LoopFunc("slow", 60.0, called.set).start()
    assert called.wait(10)
    began = time.monotonic()
    assert loop.stop().ticks == 1
    assert time.monotonic() - began < 10


def test_what_the_function_raises_ends_the_loop_and_is_told() -> None:
    def function() -> None:
        raise ZeroDivisionError("a bug")

    loop = LoopFunc("broken", PERIOD_S, function).start()
    with pytest.raises(ZeroDivisionError, match="a bug"):
        loop.join(10)
    assert not loop.running
    with pytest.raises(ZeroDivisionError):
        loop.stop()


def test_the_function_may_stop_its_own_loop() -> None:
    def function() -> None:
        loop.stop()

    loop = LoopFunc("self", PERIOD_S, function)
    assert loop.start().join(10).ticks == 1


def test_a_function_that_hangs_does_not_hang_who_stops_it() -> None:
    entered, release = threading.Event(), threading.Event()

    def function() -> None:
        entered.set()
        release.wait(20)

    loop = LoopFunc("stuck", PERIOD_S, function).start()
    assert entered.wait(10)
    with pytest.raises(TimeLimitError, match=r"did not return within 0\.05 s"):
        loop.stop(0.05)
    release.set()
    loop.join(10)


def test_an_error_in_the_block_is_not_hidden_by_the_loop() -> None:
    with pytest.raises(KeyError), LoopFunc("test", PERIOD_S, lambda: None) as loop:
        raise KeyError
    loop.join(10)


@pytest.mark.parametrize("period_s", [0.0, -1.0, float("nan"), 0.0001, 61.0])
def test_a_period_that_is_none_is_refused(period_s: float) -> None:
    with pytest.raises(BadRequestError, match="period"):
        LoopFunc("test", period_s, lambda: None)


def test_a_loop_is_made_as_in_the_documents_with_its_cpu_before_the_function() -> None:
    called = threading.Event()
    cpu = max(os.sched_getaffinity(0))
    for pinned, wanted in ((cpu, cpu or None), (0, None), (-1, None)):
        called.clear()
        loop = LoopFunc("UDPRecv", PERIOD_S, pinned, called.set)
        assert loop.cpu == wanted, "0 or less is any CPU"
        loop.start()
        assert called.wait(5.0)
        loop.shutdown()
        assert not loop.running
    with pytest.raises(BadRequestError, match="may not use CPU 4096"):
        LoopFunc("UDPRecv", PERIOD_S, 4096, called.set)
    with pytest.raises(TypeError, match="function"):
        LoopFunc("UDPRecv", PERIOD_S, 1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="one function"):
        LoopFunc("UDPRecv", PERIOD_S, called.set, called.set)  # type: ignore[call-overload]


def test_what_cannot_run_is_refused() -> None:
    with pytest.raises(TypeError, match="function"):
        LoopFunc("test", PERIOD_S, None)  # type: ignore[call-overload]
    with pytest.raises(BadRequestError, match="may not use CPU 4096"):
        LoopFunc("test", PERIOD_S, lambda: None, cpu=4096)
    loop = LoopFunc("test", PERIOD_S, lambda: None).start()
    with pytest.raises(BadRequestError, match="started already"):
        loop.start()
    loop.stop()


def test_it_runs_on_the_cpu_it_is_given_and_nobody_else_does() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)  # 0 is a CPU like any other
    seen: list[set[int]] = []
    loop = LoopFunc(
        "pinned", PERIOD_S, lambda: seen.append(os.sched_getaffinity(threading.get_native_id())),
        cpu=cpu,
    )  # fmt: skip
    with loop:
        while not seen:
            time.sleep(0.001)
    assert seen[0] == {cpu}
    assert os.sched_getaffinity(0) == before


def test_priority_is_asked_for_and_its_absence_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    loop = LoopFunc("eager", PERIOD_S, lambda: None, realtime=True).start()
    loop.stop()
    assert not loop.has_priority


def test_a_system_without_precise_timers_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert not realtime.request_precise_timers()


def test_calls_that_were_missed_while_the_computer_was_suspended_count_as_late() -> None:
    calls: list[int] = []

    def step() -> None:
        calls.append(len(calls))
        if len(calls) == 5:
            virtual.suspend(10.0)
        elif len(calls) == 10:
            loop.end()

    loop = LoopFunc("suspended", 0.01, step)
    stats = loop.start().join(10.0)
    assert len(calls) == 10, "none is made up for"
    assert stats.late >= 990
