"""Select the fast tests (`pytest --fast`), and fail those that are not fast.

Fast tests compute: they start no program and wait for nothing in real time. All others carry the
mark `slow`, or stand in one of the `SLOW` folders and files. With `--fast`, a test without that
mark fails if it starts a program or waits longer than `MOST_WAITED_S`: the selection stays fast.
"""

import multiprocessing.process
import selectors
import subprocess
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

OPTION = "--fast"
SLOW_MARKS = ("slow", "quiet", "soak")
SLOW = (
    *("batch", "bridge", "contract", "interop", "robot", "stage", "trial", "web"),
    "capture/test_capture_decrypt.py",
    "capture/test_capture_dissector.py",
    "capture/test_capture_leaks.py",
    "capture/test_capture_report.py",
    "cli/test_cli_a1_drive.py",
    "cli/test_cli_a1_reach.py",
    "cli/test_cli_completion.py",
    "cli/test_cli_dds.py",
    "cli/test_cli_endings.py",
    "cli/test_cli_hostile_text.py",
    "cli/test_cli_motion.py",
    "cli/test_cli_trial.py",
    "cli/test_cli_webrtc.py",
    "motion/test_motion_compare.py",
    "motion/test_motion_figure.py",
    "motion/test_motion_free_values.py",
    "motion/test_motion_plot.py",
    "motion/test_motion_preview.py",
    "motion/test_motion_retime.py",
    "motion/test_motion_retime_search.py",
    "motion/test_motion_through.py",
    "session/test_session_stage.py",
    "sim/test_sim_a1.py",
    "sim/test_sim_body.py",
    "sim/test_sim_dds.py",
    "test_a_new_robot.py",
    "test_bad_network.py",
    "test_behaviour.py",
    "test_benchmarks.py",
    "test_distribution.py",
    "test_documentation.py",
    "test_examples.py",
    "test_examples_a1.py",
    "test_faults.py",
    "test_finite_numbers.py",
    "test_from_the_documents.py",
    "test_legged_sdk.py",
    "test_missing_extras.py",
    "test_mutants.py",
    "test_odd_robots.py",
    "test_open.py",
    "test_platforms.py",
    "test_services_wire.py",
    "test_site.py",
    "test_teaching_controller.py",
    "test_webrtc_endurance.py",
    "transport/test_transport_arm_streamer.py",
    "transport/test_transport_dds.py",
    "transport/test_transport_dds_client.py",
    "transport/test_transport_dds_guardian.py",
    "transport/test_transport_stop_pending.py",
)
"""Folders and files in which tests wait, start programs, or take over 0.1 s of processor time on
average (measured with `--processor-time`).
"""
MOST_WAITED_S = 1.0
"""Maximum time in seconds that a fast test may wait: sleep, or poll sockets that stay silent."""


def add_options(parser: pytest.Parser) -> None:
    """Add `--fast`."""
    parser.addoption(
        OPTION, action="store_true", help="only tests without programs and without waiting"
    )


def is_slow(item: pytest.Item) -> bool:
    """Return whether a test carries one of the marks that say so."""
    return any(item.get_closest_marker(mark) for mark in SLOW_MARKS)


def register(config: pytest.Config) -> None:
    """Select and watch the tests if only fast ones are to run."""
    if config.getoption(OPTION):
        config.pluginmanager.register(_Watch())


class _Watch:
    """Leaves slow tests out, and counts the programs and the waiting time of each other one."""

    def __init__(self) -> None:
        self._started: list[str] = []
        self._waited_s = 0.0

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        here = Path(__file__).parent
        return True if any(collection_path == here / name for name in SLOW) else None

    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        slow = [item for item in items if is_slow(item)]
        if slow:
            config.hook.pytest_deselected(items=slow)
            items[:] = [item for item in items if not is_slow(item)]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self._started.clear()
        self._waited_s = 0.0
        with pytest.MonkeyPatch.context() as patch:
            self._count_programs(patch)
            self._count_waiting(patch)
            return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        result = yield
        if self._started:
            pytest.fail(f"it starts programs ({self._started[0]}): mark it slow", pytrace=False)
        if self._waited_s > MOST_WAITED_S:
            pytest.fail(f"it waits for {self._waited_s:.1f} s: mark it slow", pytrace=False)
        return result

    def _count_programs(self, patch: pytest.MonkeyPatch) -> None:
        popen, start = subprocess.Popen.__init__, multiprocessing.process.BaseProcess.start

        def counted_popen(process: Any, args: Any, *rest: Any, **options: Any) -> None:
            if "ldconfig" not in str(args):  # the first import of a package may look for a library
                self._started.append(str(args))
            popen(process, args, *rest, **options)

        def counted_start(process: Any) -> None:
            self._started.append(process.name)
            start(process)

        patch.setattr(subprocess.Popen, "__init__", counted_popen)
        patch.setattr(multiprocessing.process.BaseProcess, "start", counted_start)

    def _count_waiting(self, patch: pytest.MonkeyPatch) -> None:
        sleep, select = time.sleep, selectors.DefaultSelector.select

        def counted_sleep(seconds: float) -> None:
            self._waited_s += seconds
            sleep(seconds)

        def counted_select(selector: Any, timeout: float | None = None) -> Any:
            ready = select(selector, timeout)
            if not ready and timeout is not None:
                self._waited_s += max(timeout, 0.0)
            return ready

        patch.setattr(time, "sleep", counted_sleep)
        patch.setattr(selectors.DefaultSelector, "select", counted_select)
