"""rote trial and rote sim --like on the command line."""

import json
import os
import pty
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import validator_for

import virtual
from forked import Rote
from rote.cli import main
from rote.errors import BadRequestError
from rote.sim.store import Store
from rote.sim.world import World
from rote.trial.output import build_output
from rote.trial.report import find_violation, read_report, schema
from rote.trial.runner import run_trial
from rote.trial.steps import TrialLevel
from trial_robots import SLOW, Answers, firmware, tried


def report_in(folder: Path, *quirks: str) -> Path:
    world = World(Store(":memory:"), firmware=firmware(*quirks, SLOW))
    build_output(virtual.run(tried("pipe", world, TrialLevel.LOOK))).write(folder)
    return folder


def test_a_trial_without_a_terminal_and_without_yes_asks_for_one_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["trial", "--robot", "sim://g1?store=:memory:"]) == 2
    assert "--yes" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--level", "run"], ["--out", "/dev/null"]])
def test_a_wrong_level_or_folder_is_refused_before_the_robot_is_asked(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trial", "--robot", "udp://192.0.2.1", "--yes", *arguments]) == 2
    assert "192.0.2.1" not in capsys.readouterr().err


def test_a_look_says_what_it_does_shows_what_it_writes_and_writes_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "trial"
    robot = "sim://g1?store=:memory:"
    assert main(["trial", "--robot", robot, "--yes", "--out", str(folder)]) == 0
    said = capsys.readouterr().out
    assert "Nothing moves." in said
    assert said.index("Files to write to") < said.index("Written.")
    names = {path.name for path in folder.iterdir()}
    assert names == {"report.json", "report.html", "conversation.jsonl", "capture.pcap"}
    assert json.loads((folder / "report.json").read_text())["robot"]["wire"] == "sim"


def test_compare_shows_what_differs_for_people_and_for_scripts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = str(report_in(tmp_path / "plain"))
    odd = str(report_in(tmp_path / "odd", "20-slots"))
    assert main(["trial", "compare", plain, odd]) == 0
    assert "slots" in capsys.readouterr().out
    assert main(["trial", "compare", plain, odd, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {"what": "slots", "first": 35, "second": 20} in told["differences"]
    assert main(["trial", "compare", plain, plain]) == 0
    assert "do not differ" in capsys.readouterr().out


@pytest.mark.parametrize(
    "damage",
    [
        {"refusals": [1]},
        {"refusals": [{"when": []}]},
        {"delays_s": {"arm/7107": ["soon"]}},
        {"shapes": {"answer": 3}},
        {"list": {"format": {"parts": 5}}},
    ],
)
def test_a_damaged_report_is_refused_in_words_where_it_is_compared(
    damage: dict[str, object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = report_in(tmp_path / "plain")
    file = plain / "report.json" if plain.is_dir() else plain
    report = json.loads(file.read_text())
    both = []
    for name in ("one", "other"):
        report["robot"] |= damage
        both.append(tmp_path / f"{name}.json")
        both[-1].write_text(json.dumps(report))
    report["robot"] |= {"delays_s": {"arm/7107": [0.1]}}
    both[-1].write_text(json.dumps(report))
    assert main(["trial", "compare", *map(str, both)]) == 2
    assert "damaged" in capsys.readouterr().err


@pytest.mark.slow
def test_sim_like_serves_a_robot_like_that_of_the_report(tmp_path: Path) -> None:
    folder = tmp_path / "trial"
    result = virtual.run(run_trial("sim://g1-23?store=:memory:", TrialLevel.LOOK, Answers()))
    build_output(result).write(folder)
    like = ["sim", "--like", str(folder), "--udp", "127.0.0.1:0", "--store", ":memory:", "--json"]
    process = Rote(
        *like,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "ROTE_HOME": str(tmp_path)},
    )
    try:
        assert process.stdout is not None
        ready = json.loads(process.stdout.readline())
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert (ready["event"], ready["build"]) == ("ready", "g1-23")


def test_sim_like_something_else_is_refused_with_a_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "x.json").write_text("{}")
    assert main(["sim", "--like", str(tmp_path / "x.json")]) == 2
    assert "report.json" in capsys.readouterr().err


# ---- moving unattended --------------------------------------------------------------------------

MOVE_UNATTENDED = ["trial", "--yes", "--level", "move", "--robot", "udp://127.0.0.1:9"]


@pytest.mark.parametrize("more", [[], ["--json"]])
def test_a_real_robot_does_not_move_unattended_without_a_terminal(
    more: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*MOVE_UNATTENDED, "--timeout", "0.3", *more]) == 2
    assert "move unattended" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "code"), [("yes", 2), ("", 2), ("move", 3)])
def test_a_real_robot_moves_unattended_only_after_the_word(typed: str, code: int) -> None:
    """With the word it goes on and finds no robot at that port (3)."""
    leader, follower = pty.openpty()
    process = Rote(
        *(*MOVE_UNATTENDED, "--timeout", "0.3"),
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    os.write(leader, f"{typed}\n".encode())
    out, err = process.communicate(timeout=30)
    os.close(leader)
    os.close(follower)
    assert "Type move to begin" in out
    assert process.returncode == code, err
    assert ("was not typed" in err) == (code == 2)


# ---- reports ------------------------------------------------------------------------------------


def broken(report: Any) -> Iterator[str]:
    """Leave out each value of a report in turn, or replace it by one of another type; yield what
    was done while the report is so.
    """
    for path in list(paths(report)):
        inner = report
        for name in path[:-1]:
            inner = inner[name]
        before = inner[path[-1]]
        for value in (LEFT_OUT, None, 1.5, "x", True, [], {}, [1], {"x": 1}):
            if value is not LEFT_OUT:
                inner[path[-1]] = value
            elif isinstance(inner, dict):
                del inner[path[-1]]
            yield f"{path} = {value}"
            inner[path[-1]] = before


LEFT_OUT = object()


def paths(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything in a document; of an array the first element only."""
    if at:
        yield at
    inner = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value[:1] if isinstance(value, list) else ())
    )
    for name, each in inner:
        yield from paths(each, (*at, name))


def shortened(value: Any) -> Any:
    """Return a document with two elements of each array: thousands of variants are checked."""
    if isinstance(value, dict):
        return {name: shortened(each) for name, each in value.items()}
    return [shortened(each) for each in value[:2]] if isinstance(value, list) else value


def test_a_report_is_accepted_exactly_if_its_schema_accepts_it(tmp_path: Path) -> None:
    report = shortened(json.loads((report_in(tmp_path / "trial") / "report.json").read_text()))
    rules = schema()
    judge = validator_for(rules)
    assert find_violation(report, rules) == ""
    refused = 0
    for what in broken(report):
        valid = judge.is_valid(report)
        assert (find_violation(report, rules) == "") == valid, what
        refused += not valid
    assert refused > 200


@pytest.mark.parametrize("damage", [{"level": "run"}, {"traces": []}, {"left": [1]}])
def test_a_report_that_its_schema_refuses_is_not_read(
    damage: dict[str, object], tmp_path: Path
) -> None:
    file = report_in(tmp_path / "trial") / "report.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **damage}))
    with pytest.raises(BadRequestError, match="damaged: report"):
        read_report(file)


def test_numbers_that_json_does_not_have_are_not_read(tmp_path: Path) -> None:
    file = report_in(tmp_path / "trial") / "report.json"
    for number in ("NaN", "Infinity", "1e999"):
        text = json.dumps({**json.loads(file.read_text()), "seconds": 4321})
        odd = tmp_path / "odd.json"
        odd.write_text(text.replace("4321", number))
        with pytest.raises(BadRequestError):
            read_report(odd)
