"""Every example runs as it stands, and a type checker finds a mistake in it."""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import notebook
import pytest

from forked import Script

ROOT = Path(__file__).parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
EXPECTED = {
    "teach_and_play": "done",
    "blocking": "completed: False",
    "own_hand": "the elbow moved 0.",
    "drive_pendant": "playable: True",
    "progress_bar": "completed: True",
    "pandas_table": "joints that moved: wave_arms.csv",
    "teach_edit_play": "completed: True",
    "learn_and_adapt": "completed: True",
    "watcher": "watched to the end",
    "error_handling": "still running",
    "two_robots": "both completed: True",
    "readme": "ready",
}
MISTAKES = {
    "a misspelt argument": ("seconds=2", "secnods=2", 'Unexpected keyword argument "secnods"'),
    "a misspelt method": ("robot.start(", "robot.begins(", 'has no attribute "begins"'),
    "a wrong type": ('robot.teach("drum")', "robot.teach(1)", 'has incompatible type "int"'),
    "a result that is not there": (".completed)", ".complete)", 'has no attribute "complete"'),
}
"""What somebody might write in examples/blocking.py, and what mypy says of it."""


def run_to_its_end(path: Path, home: Path) -> tuple[int, str, str]:
    """Run a program as it stands, in an empty folder and with a home of its own; return its exit
    code and what it printed.
    """
    home.mkdir()
    with Script(
        path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=home,
        env=os.environ | {"ROTE_HOME": str(home / "rote")},
    ) as process:
        out, err = process.communicate(timeout=90)
    return process.returncode, out, err


@pytest.mark.timeout(300)  # on a busy computer
def test_every_example_runs_to_its_end_and_is_at_most_a_screen(tmp_path: Path) -> None:
    """They wait for robots more than they compute: two at a time."""
    shown = tmp_path / "readme.py"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    shown.write_text(readme.split("```python\n")[1].split("```")[0], encoding="utf-8")
    assert shown.read_text(encoding="utf-8").count("\n") <= 12
    programs = [*EXAMPLES, shown]
    homes = [tmp_path / path.stem for path in programs]
    with ThreadPoolExecutor(2) as pool:
        ended = dict(zip(programs, pool.map(run_to_its_end, programs, homes), strict=True))
    for path, (code, out, err) in ended.items():
        assert (code, err) == (0, ""), path.name
        assert EXPECTED[path.stem] in out, path.name
        assert path.read_text(encoding="utf-8").count("\n") <= 50, path.name
    assert {path.stem for path in programs} == {*EXPECTED}


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_was_kept_with_what_its_cells_return(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert len(code) > 5
    kernel = notebook.Kernel()
    try:
        for count, cell in enumerate(code, start=1):
            printed, value = kernel.run("".join(cell["source"]), f"cell {count}")
            now = notebook.outputs(printed, value, count)
            assert cell["execution_count"] == count, "run python scripts/generate/notebook.py"
            kept = [output["output_type"] for output in cell["outputs"]]
            assert kept == [output["output_type"] for output in now], f"cell {count}"
    finally:
        kernel.close()


def checked(*paths: Path) -> tuple[int, str]:
    """Let mypy check programs as an editor does: strictly, against the installed package."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", *map(str, paths)],
        check=False,
        capture_output=True,
        text=True,
        cwd=ROOT,  # with what `make check` has read of numpy and the rest
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.timeout(300)  # the first time, mypy reads all of numpy
def test_a_type_checker_finds_planted_mistakes_and_nothing_in_the_examples(tmp_path: Path) -> None:
    program = (ROOT / "examples" / "blocking.py").read_text(encoding="utf-8")
    planted = {}
    for number, (what, (right, wrong, said)) in enumerate(MISTAKES.items()):
        assert right in program
        path = tmp_path / f"planted_{number}.py"
        path.write_text(program.replace(right, wrong), encoding="utf-8")
        planted[path] = (what, said)
    code, said = checked(*EXAMPLES, *planted)
    assert code == 1
    lines = said.splitlines()
    for path, (what, expected) in planted.items():
        found = [line for line in lines if path.name in line and "error" in line]
        assert any(expected in line for line in found), f"{what}: {found}"
    assert [line for line in lines if "planted" not in line] == []
