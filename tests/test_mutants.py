"""The script that breaks safety-relevant code sees which tests notice."""

import json
import subprocess
import time
from pathlib import Path

import mutants
import pytest

from left_processes import is_running

MODULE = "src/rote/web/access/roles.py"
TEST = "tests/web/test_web_roles.py"
SOURCE = """
def may(level: int) -> bool:
    return level >= 2


def greet() -> str:
    return "hello" if 1 else "bye"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # The tests of this project need no plugins, which take most of the time of a start.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    for name, text in {
        MODULE: SOURCE,
        "src/rote/__init__.py": "",
        "src/rote/web/__init__.py": "",
        TEST: "from rote.web.access.roles import may\n\n\ndef test_it():\n    assert may(2)\n",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    return tmp_path


def listed(project: Path, **changes: str) -> Path:
    """Write a fixed list of changes of the module."""
    path = project / "fixed.json"
    entries = [
        {"file": MODULE, "original": original, "mutated": mutated, "test": TEST}
        for original, mutated in changes.items()
    ]
    path.write_text(json.dumps(entries), encoding="utf-8")
    return path


def run(project: Path, fixed: Path, *more: str) -> int:
    return mutants.main(["--sample", "0", "--workers", "1", *more], project, fixed)


@pytest.mark.slow
def test_a_mutant_that_a_test_notices_is_killed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, listed(project, **{"level >= 2": "level >= 3"})) == 0
    assert "the fixed list: 1 of 1 killed" in capsys.readouterr().out
    assert (project / MODULE).read_text(encoding="utf-8") == SOURCE


@pytest.mark.slow
def test_a_survivor_of_the_fixed_list_is_printed_and_fails(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {"level >= 2": "level >= 3", '"hello"': '"bye"'}
    assert run(project, listed(project, **changes), "--no-baseline") == 1
    said = capsys.readouterr().out
    assert "the fixed list: 1 of 2 killed" in said
    assert f'survives: {MODULE}:7: "hello"  ->  "bye"' in said


@pytest.mark.slow
def test_a_list_that_does_not_fit_the_code_any_more_fails(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(project, listed(project, **{"level > 7": "level > 8", "return": "yield"})) == 1
    said = capsys.readouterr().err
    assert "has this 0 times, not once: 'level > 7'" in said
    assert "has this 2 times" in said


@pytest.mark.slow
def test_tests_that_fail_without_a_mutant_prove_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / TEST).write_text("def test_it() -> None:\n    assert False\n", encoding="utf-8")
    assert run(project, listed(project, **{"level >= 2": "level >= 3"})) == 1
    assert "without any mutant" in capsys.readouterr().err


@pytest.mark.slow
def test_too_many_survivors_of_the_sample_fail(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # Of the mutants of this module one is noticed: the comparison that is turned round.
    assert mutants.main(["--sample", "9", "--no-baseline"], project, listed(project)) == 1
    killed, survivors = capsys.readouterr().out.split("the sample with seed")
    assert f"killed by {TEST}::test_it in" in killed
    assert "level >= 2  ->  (level < 2)" in killed
    assert "1  ->  10" in survivors
    assert "level >= 2" not in survivors


LEAVES_A_PROCESS = """
import subprocess, sys, time
from pathlib import Path

def test_it() -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=%s
    )
    Path(%r).write_text(str(child.pid))
    time.sleep(%s)
    child.returncode = 0
"""


@pytest.mark.quiet  # it limits the time of a test run that it starts
@pytest.mark.parametrize("new_session", [False, True])
@pytest.mark.parametrize("late", [False, True])
def test_no_process_of_a_test_outlives_it(
    project: Path, *, new_session: bool, late: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    pid = project / "pid"
    test = LEAVES_A_PROCESS % (new_session, str(pid), 600 if late else 0)
    (project / TEST).write_text(test, encoding="utf-8")
    fixed = listed(project, **{"level >= 2": "level >= 3"})
    limit = ["--timeout", "5"] if late else []
    assert run(project, fixed, "--no-baseline", *limit) == (0 if late else 1)
    assert ("did not end in time: " in capsys.readouterr().out) is late
    left = int(pid.read_text(encoding="utf-8"))
    until_s = time.monotonic() + 10.0  # a killed process ends when it is scheduled next
    while is_running(left) and time.monotonic() < until_s:
        time.sleep(0.02)
    assert not is_running(left)


def test_every_kind_of_change_is_made_once_and_leaves_python() -> None:
    source = """
import logging

def act(a: int, b: bool = False) -> int:
    logging.info("not changed")
    if not b and a is None or a < 5:
        raise ValueError
    act(zip(a, strict=True))
    return 0
"""
    found = {
        (mutant.original, mutant.mutated): mutant
        for mutant in mutants.mutants_of("x.py", source.encode(), ())
    }
    assert set(found) == {
        ("False", "True"),
        ("not b and a is None or a < 5", "((not b and a is None) and a < 5)"),
        ("not b and a is None", "(not b or a is None)"),
        ("not b", "(b)"),
        ("a is None", "(a is not None)"),
        ("a < 5", "(a >= 5)"),
        ("5", "50"),
        ("raise ValueError", "pass"),
        ("act(zip(a, strict=True))", "pass"),
        ("0", "1"),
    }
    for mutant in found.values():
        compile(mutant.source, "x.py", "exec")


def test_the_fixed_list_fits_the_code() -> None:
    for mutant in mutants.read_fixed(mutants.FIXED, mutants.ROOT):
        assert mutant.source
        for test in mutant.tests:
            path, _, name = test.partition("::")
            text = (mutants.ROOT / path).read_text(encoding="utf-8")
            assert f"def {name.partition('[')[0]}" in text or not name, test


def test_every_module_of_the_sample_exists_and_so_do_its_tests() -> None:
    for pattern, tests in mutants.TESTS.items():
        assert list((mutants.ROOT / "src" / "rote").glob(pattern)), pattern
        for test in tests:
            assert (mutants.ROOT / test).is_file(), test
