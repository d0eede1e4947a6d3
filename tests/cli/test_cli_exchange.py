"""Motions of other programs at the command line: in, out, and asked before they are played."""

import json
from pathlib import Path

import numpy as np
import pytest

from motion.exchange_files import MADE, whole_body, written
from rote.cli import main
from rote.model.g1 import G1_29
from rote.motion.files.exchange import EXCHANGE
from rote.motion.files.library import Library
from rote.motion.track import Track
from rote.platform.paths import takes_folder


def ask(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    return (code, *capsys.readouterr())


@pytest.mark.parametrize("name", MADE)
def test_an_import_prints_its_four_facts(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, name, whole_body(30))
    line = ("takes", "import", file, "--as", name, "--upper-body", "--json")
    code, out, err = ask(capsys, *line)
    assert code == 0, err
    said = json.loads(out)
    assert list(said) == ["take", "joints", "left_out", "findings"]
    assert said["take"] == name
    assert set(said["joints"]) == set(G1_29.names[15:])
    assert len(said["left_out"]) == (0 if name == "seq" else 15)
    for finding in said["findings"]:
        assert {"joint", "time_s", "margin", "message"} <= set(finding)
    origin = Library(takes_folder()).load(name).origin
    assert origin is not None
    assert origin.format == name


def test_a_file_of_ones_own_still_comes_in_as_it_was(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times_s = np.arange(20) / 10
    track = Track(times_s=times_s, joints_rad=np.zeros((20, 1)), names=("left_elbow_joint",))
    for ending in ("csv", "npz", "json", "mcap"):
        track.save(tmp_path / f"own-{ending}.{ending}")
        code, out, err = ask(capsys, "takes", "import", tmp_path / f"own-{ending}.{ending}")
        assert code == 0, err
        assert "version 1" in out
        assert Library(takes_folder()).load(f"own-{ending}").origin is None


def test_two_readings_are_both_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = written(tmp_path, "unitree-csv", whole_body(facing_rad=0.0))
    code, _, err = ask(capsys, "takes", "import", file)
    assert code == 2
    assert "read as xyzw" in err
    assert "read as wxyz" in err
    assert not Library(takes_folder()).list()


def test_the_help_names_every_format(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = ask(capsys, "takes", "import", "--help")
    assert code == 0
    assert all(name in out for name in EXCHANGE)


def test_a_take_goes_out_for_training(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Library(takes_folder()).save(whole_body(), "walk")
    out_file = tmp_path / "walk.npz"
    code, out, err = ask(capsys, "takes", "export", "walk", out_file, "--as", "mjlab", "--json")
    assert code == 0, err
    assert "lost" in json.loads(out)
    assert np.load(out_file)["joint_pos"].shape[1] == 29
    code, _, err = ask(capsys, "takes", "export", "walk", tmp_path / "x.npz", "--fps", "30")
    assert code == 2
    assert "--as" in err


def test_fit_says_what_it_changed_and_what_is_left(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, "gmr", whole_body(30))
    ask(capsys, "takes", "import", file)
    code, out, err = ask(capsys, "motion", "fit", "gmr", "good", "--take", "--json")
    assert code == 0, err
    said = json.loads(out)
    assert said["done"].startswith("fit: left out, because the robot does not play them")
    assert isinstance(said["findings"], list)
    assert set(Library(takes_folder()).load("good").names) == set(G1_29.taught)


def test_through_takes_the_short_name_of_a_joint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, out_file = tmp_path / "in.npz", tmp_path / "out.npz"
    whole_body(90).save(source)
    line = ("motion", "through", source, out_file, "--at", "1.2", "--joint", "right_elbow=0.9")
    code, out, err = ask(capsys, *line)
    assert code == 0, err
    assert "through 1.20 s: right_elbow_joint 0.900 rad" in out


def test_spread_says_where_takes_differ_and_draws_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times_s = np.arange(101) / 50
    for name, wide in (("a", 0.3), ("b", 0.5), ("c", 0.6)):
        swing = wide * np.sin(np.pi * times_s)[:, None]
        track = Track(times_s=times_s, joints_rad=swing, names=("left_elbow_joint",))
        track.save(tmp_path / f"{name}.npz")
    files = [tmp_path / f"{name}.npz" for name in "abc"]
    picture = tmp_path / "band.svg"
    code, out, err = ask(capsys, "motion", "spread", *files, "--out", picture, "--json")
    assert code == 0, err
    assert json.loads(out)["joints"]["left_elbow_joint"]["width_rad"] == pytest.approx(
        0.3, abs=0.05
    )
    assert picture.exists()


def test_a_strangers_motion_is_not_played_on_a_real_robot_without_a_person(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times_s = np.arange(60) / 30
    calm = whole_body(60)
    rest = np.tile(G1_29.rest_rad, (60, 1))
    rest[:, G1_29.names.index("right_elbow_joint")] -= 0.2 * np.sin(np.pi * times_s) ** 2
    file = written(tmp_path, "gmr", Track(
        times_s=calm.times_s, joints_rad=rest, names=calm.names, root=calm.root
    ))  # fmt: skip
    assert ask(capsys, "takes", "import", file, "--upper-body")[0] == 0
    with_robot = ("--robot", "udp://127.0.0.1:9", "--timeout", "0.2")
    code, out, err = ask(capsys, "play", "gmr", "--take", "--force", *with_robot)
    assert code != 0
    assert "half speed the first time" in out
    code, out, err = ask(capsys, "play", "gmr", "--take", "--force", "--json")
    assert code == 0, err
    assert json.loads(out)["completed"] is True
