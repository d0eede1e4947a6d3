"""`pytest --workers N` reports what pytest in one process would, whatever the tests do."""

import os
from itertools import pairwise
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.slow

CONFTEST = """
import sys
sys.path.insert(0, {folder!r})
import forked_workers

def pytest_addoption(parser):
    forked_workers.add_options(parser)

def pytest_configure(config):
    forked_workers.register(config, classify)

def classify(item):
    for kind in forked_workers.Kind:
        if kind.name.lower() in item.nodeid:
            return kind
    return forked_workers.Kind.COMPUTING
"""
MANY = """
import os, sys
from pathlib import Path
import pytest

ERRORS = sys.stderr  # as a package would keep it that is imported now

@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    yield tmp_path_factory.mktemp("module")
    with Path({noted!r}).open("a") as file:
        file.write("ended\\n")

@pytest.mark.parametrize("number", range(50))
def test_it(number, folder, tmp_path, capfd):
    os.write(1, b"%d" % number)
    assert capfd.readouterr().out == str(number)
    assert not os.fstat(ERRORS.fileno()).st_size
    with Path({noted!r}).open("a") as file:
        file.write(f"{{os.getpid()}}\\n")
"""


@pytest.fixture(autouse=True)
def _project(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(CONFTEST.format(folder=str(Path(__file__).parent)))


def run(pytester: pytest.Pytester, *options: str) -> pytest.RunResult:
    # What plug-ins import takes longer than these tests.
    unused = ("xdist", "schemathesis", "hypothesispytest", "pytest_cov")
    without = [option for name in unused for option in ("-p", f"no:{name}")]
    return pytester.runpytest_subprocess("--workers", "3", *without, *options)


def test_all_tests_run_once_in_processes_that_end_their_fixtures(
    pytester: pytest.Pytester,
) -> None:
    noted = pytester.path / "noted"
    for name in ("one", "two", "patient"):
        pytester.makepyfile(**{f"test_{name}": MANY.format(noted=str(noted))})
    run(pytester).assert_outcomes(passed=150)
    lines = noted.read_text().split()
    processes = {line for line in lines if line != "ended"}
    assert len(lines) - lines.count("ended") == 150
    assert len(processes) == 3
    assert 3 <= lines.count("ended") <= 5  # once for each file in each process that ran a part


NOTES_WHEN = """
import os, time
from pathlib import Path
import pytest

@pytest.mark.parametrize("number", range(4))
def test_it(number):
    begun = time.monotonic()
    time.sleep(0.1)
    with Path({noted!r}).open("a") as file:
        file.write(f"{kind} {{begun}} {{time.monotonic()}} {{os.nice(0)}}\\n")
"""


def test_quiet_tests_run_one_at_a_time_beside_others_of_low_priority(
    pytester: pytest.Pytester,
) -> None:
    noted = pytester.path / "noted"
    for file in ("computing", "patient_one", "patient_two", "quiet_one", "quiet_two"):
        kind = file.partition("_")[0]
        pytester.makepyfile(**{f"test_{file}": NOTES_WHEN.format(noted=str(noted), kind=kind)})
    run(pytester).assert_outcomes(passed=20)
    rows = [line.split() for line in noted.read_text().splitlines()]
    usual = os.nice(0)
    assert {int(row[3]) for row in rows if row[0] != "computing"} == {usual}
    assert all(int(row[3]) > usual for row in rows if row[0] == "computing")
    spans = [(float(row[1]), float(row[2])) for row in rows if row[0] == "patient"]
    quiet = sorted((float(row[1]), float(row[2])) for row in rows if row[0] == "quiet")
    assert len(quiet) == 8
    assert max(end for _, end in spans) <= quiet[0][0]
    assert all(end <= begin for (_, end), (begin, _) in pairwise(quiet))


def test_failures_skips_and_what_was_printed_are_reported(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def test_fails():
            print("printed before")
            assert 1 == 2

        def test_is_skipped():
            pytest.skip("not here")

        @pytest.fixture
        def broken():
            raise ValueError("in a fixture")

        def test_has_no_fixture(broken):
            pass

        def test_passes():
            pass
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1, skipped=1, errors=1, passed=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*in a fixture", "*assert 1 == 2", "*printed before*"])


def test_a_process_that_dies_fails_its_test_and_the_others_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import os, pytest

        @pytest.mark.parametrize("number", range(9))
        def test_it(number):
            if number == 4:
                os.kill(os.getpid(), 9)
        """
    )
    result = run(pytester)
    result.assert_outcomes(failed=1, passed=8)
    result.stdout.fnmatch_lines(["*the process that ran this test ended with -9*"])


def test_the_first_failure_ends_the_run_if_requested(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import time, pytest

        @pytest.mark.parametrize("number", range(1000))
        def test_it(number):
            time.sleep(0.01)
            assert number != 2
        """
    )
    result = run(pytester, "-x")
    outcomes = result.parseoutcomes()
    assert outcomes["failed"] == 1
    assert outcomes["passed"] < 500
