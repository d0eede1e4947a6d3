"""rote robots: the table of families and builds, for people and for scripts."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from robot_packages import TRIPOD, install
from rote.cli import main
from rote.model import registry
from rote.model.family import Grade
from rote.model.r1 import R1_26


def ask(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(("robots", *arguments)) == 0
    return capsys.readouterr().out


@pytest.fixture
def _tripod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    install(tmp_path / "site", monkeypatch, "tripod = tripods:TRIPOD", "tripods", TRIPOD)
    yield
    sys.modules.pop("tripods", None)
    registry.forget()


def test_every_build_has_a_row_with_what_works_and_on_what_evidence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    header, *rows, hint = ask(capsys).splitlines()
    assert " ".join(header.split()) == "family build joints what works on what evidence"
    assert [row.split()[1] for row in rows] == list(registry.names())
    r1 = next(row for row in rows if row.split()[1] == "r1")
    assert r1.split()[:3] == ["r1", "r1", "26"]
    assert "list, teach, play, rename, delete, stop (inferred)" in r1
    assert "stream" in r1.partition("published")[2].partition("contradicted")[0]
    assert hint.endswith("rote robots NAME")


def test_scripts_get_every_build_with_exactly_five_facts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = json.loads(ask(capsys, "--json"))
    assert list(document) == ["robots"]
    grades = {grade.value for grade in Grade}
    for robot in document["robots"]:
        assert list(robot) == ["family", "build", "joints", "works", "evidence"]
        build = registry.build_named(robot["build"])
        assert (robot["family"], robot["joints"]) == (build.family, len(build.joints))
        assert set(robot["works"].values()) <= grades
        for evidence in robot["evidence"].values():
            assert list(evidence) == ["grade", "source"]
            assert evidence["grade"] in grades
            assert evidence["source"]
    assert [robot["build"] for robot in document["robots"]] == list(registry.names())


def test_one_build_is_shown_with_its_joints_and_why_nothing_is_streamed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = ask(capsys, "r1")
    rows = {words[0]: words for words in map(str.split, shown.splitlines()) if words}
    assert set(R1_26.names) <= set(rows)
    assert rows["head_yaw_joint"][1:4] == ["30", "-2.007", "2.007"]
    assert rows["left_elbow_joint"][-1] == "taught"
    assert f"Nothing is streamed to it: {R1_26.no_stream}." in shown
    assert "Mode 811, stand: balanced standing and walking (teach, play)." in shown
    modes = "811, 812, 813, 814, 815, 816, 830, 831, 833"
    assert f"Recognised by mode {modes} (the family); to choose it: ?build=r1." in shown
    assert "Evidence, waist: contradicted; " in shown


def test_a_family_s_name_shows_its_usual_build(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, "g1")
    assert shown.startswith("g1-29: G1 with 29 joints.")
    assert "Recognised by mode_machine 5, 11, 13, 15, 2; to choose it: ?build=g1-29." in shown
    assert "Streamed by rt/arm_sdk, the weight at slot 29." in shown
    assert (
        "Hand dex3, right, rt/dex3/right/state and rt/dex3/right/cmd: right_hand_thumb_0" in shown
    )


def test_a_build_that_nothing_tells_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ask(capsys, "g1-d")
    assert "Recognised by nothing known; to choose it: ?build=g1-d." in shown
    assert "Mode 0, ready: " in shown


def test_a_name_with_json_gives_that_build_alone(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(ask(capsys, "g1-23", "--json"))
    assert [(robot["build"], robot["joints"]) for robot in document["robots"]] == [("g1-23", 23)]


def test_an_unknown_name_is_a_wrong_call_and_says_which_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(("robots", "h2")) == 2
    said = capsys.readouterr().err
    assert "there is no robot 'h2'" in said
    assert "g1-29, g1-27, g1-23" in said


@pytest.mark.usefixtures("_tripod")
def test_a_robot_of_another_package_is_listed_and_shown(
    capsys: pytest.CaptureFixture[str],
) -> None:
    document = json.loads(ask(capsys, "--json"))
    assert document["robots"][-1] == {
        "family": "tripod",
        "build": "tripod-1",
        "joints": 1,
        "works": {},
        "evidence": {},
    }
    assert "Nothing is streamed to it: the format is not known." in ask(capsys, "tripod")
    assert ask(capsys).splitlines()[-2].split() == ["tripod", "tripod-1", "1"]
