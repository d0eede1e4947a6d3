"""Measure the processor time of every test: `pytest --processor-time FILE`.

FILE gets one JSON object per test, dearest first: its id, wall-clock seconds, and processor seconds
of the test process and of the child processes that ended during the test. A child that outlives its
test, such as a server of a module, is counted where it ends.

`python tests/processor_time.py FILE` prints the dearest tests of such a file as a Markdown table.
"""

import json
import resource
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

OPTION = "--processor-time"
SHOWN = 100
"""The number of tests in the table."""
_KEY = "processor_time"


def add_options(parser: pytest.Parser) -> None:
    """Add `--processor-time FILE`."""
    parser.addoption(OPTION, type=Path, help="write the processor time of every test to this file")


def register(config: pytest.Config) -> None:
    """Measure if asked to."""
    if path := config.getoption(OPTION):
        config.pluginmanager.register(_Meter(path, is_worker=hasattr(config, "workerinput")))


class _Meter:
    def __init__(self, path: Path, *, is_worker: bool) -> None:
        self._path = path
        self._is_worker = is_worker
        self._spent: dict[str, list[float]] = {}

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        item.user_properties.append((_KEY, _read_clocks()))
        return (yield)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if self._is_worker or report.when != "teardown":
            return
        for name, value in report.user_properties:
            if name == _KEY:
                assert isinstance(value, (list, tuple))
                self._spent[report.nodeid] = [float(seconds) for seconds in value]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if call.when == "teardown":
            begun: tuple[float, ...] = dict(item.user_properties)[_KEY]  # type: ignore[assignment]
            spent = [now - then for now, then in zip(_read_clocks(), begun, strict=True)]
            report.user_properties = [(_KEY, spent)]
        return report

    def pytest_sessionfinish(self) -> None:
        if self._is_worker:
            return
        rows = [
            {
                "test": test,
                "wall_s": round(wall, 3),
                "own_s": round(own, 3),
                "children_s": round(children, 3),
            }
            for test, (wall, own, children) in sorted(
                self._spent.items(), key=lambda row: -sum(row[1][1:])
            )
        ]
        self._path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _read_clocks() -> tuple[float, float, float]:
    own, children = (
        resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    )
    return (
        time.perf_counter(),
        own.ru_utime + own.ru_stime,
        children.ru_utime + children.ru_stime,
    )


def _print_table(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    total = sum(row["own_s"] + row["children_s"] for row in rows)
    shown = sum(row["own_s"] + row["children_s"] for row in rows[:SHOWN])
    print(
        f"{len(rows)} tests take {total:.0f} s of processor time, these {SHOWN} take {shown:.0f} s:"
    )
    print("\n| test | processor s | of it in other processes | wall-clock s |\n|---|--:|--:|--:|")
    for row in rows[:SHOWN]:
        name = row["test"].removeprefix("tests/").replace("|", "\\|")
        processor_s = row["own_s"] + row["children_s"]
        print(f"| `{name}` | {processor_s:.1f} | {row['children_s']:.1f} | {row['wall_s']:.1f} |")


if __name__ == "__main__":
    _print_table(Path(sys.argv[1]))
