"""LeRobot's own programs with our plug-in: only where lerobot is installed, which no set-up does.

It brings torch and a hundred packages. It was run by hand; docs/exchange.md says with which
versions, and how.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from interop.processes import robot_on_dds
from rote.motion.files.lerobot import export_lerobot
from rote.motion.track import Track

NAMES = ("left_elbow_joint", "right_elbow_joint")
SHOULDER = "kRightShoulderPitch.q"
PLUGIN = Path(__file__).parents[2] / "packages" / "lerobot_robot_rote"

pytest.importorskip("lerobot", reason="lerobot is not installed: it brings torch, a gigabyte")


@pytest.fixture
def package(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PLUGIN))
    return import_module("lerobot_robot_rote")


@pytest.fixture
def robot(package: Any) -> Any:
    return package.RoteRobot(package.RoteRobotConfig(url="sim://g1", contact=False))


@pytest.fixture(params=["sim", "dds"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "sim":
        yield "sim://g1"
        return
    pytest.importorskip("cyclonedds", reason="cyclonedds is not installed, so there is no DDS")
    with robot_on_dds("lerobot") as served:
        yield served


def run(program: str, url: str, folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Run one of LeRobot's programs, which has no network."""
    options = (
        "--robot.type=rote", f"--robot.url={url}", "--dataset.repo_id=me/set",
        f"--dataset.root={folder}", "--play_sounds=false",
    )  # fmt: skip
    return subprocess.run(
        [sys.executable, "-m", f"lerobot.scripts.lerobot_{program}", *options, *more],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def record(url: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return run(
        "record", url, folder, "--teleop.type=rote_hand", "--teleop.script=wave",
        "--teleop.script_s=3", "--dataset.single_task=wave", "--dataset.num_episodes=2",
        "--dataset.episode_time_s=3", "--dataset.reset_time_s=1", "--dataset.fps=30",
        "--dataset.push_to_hub=false", "--dataset.video=false",
    )  # fmt: skip


def documented_commands() -> list[list[str]]:
    """Return the commands of LeRobot in docs/exchange.md, each as its arguments."""
    text = (PLUGIN.parents[1] / "docs" / "exchange.md").read_text(encoding="utf-8")
    block = text.partition("pip install ./packages/lerobot_robot_rote\n")[2].partition("```")[0]
    return [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]


@pytest.mark.timeout(900)
def test_the_documented_commands_record_and_replay(tmp_path: Path) -> None:
    commands = documented_commands()
    assert [command[0] for command in commands] == ["lerobot-record", "lerobot-replay"]
    for program, *options in commands:
        done = subprocess.run(
            [Path(sys.executable).with_name(program), *options, "--play_sounds=false"],
            env={**os.environ, "HF_HUB_OFFLINE": "1"},
            cwd=tmp_path, capture_output=True, text=True, timeout=400, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stderr[-2000:]}"


def test_a_robot_observes_follows_and_refuses(robot: Any) -> None:
    robot.connect()
    try:
        assert set(robot.get_observation()) == set(robot.observation_features)
        assert "kLeftElbow.q" in robot.action_features
        sent = robot.send_action({"kLeftElbow.q": 0.8, "kLeftKnee.q": 0.3})
        assert sent == {"kLeftElbow.q": 0.8}
        with pytest.raises(ValueError, match="no joint"):
            robot.send_action({"gripper.pos": 0.5})
        with pytest.raises(ValueError, match="left_knee_joint should move"):
            robot.send_action({"kLeftKnee.q": 0.9})
    finally:
        robot.disconnect()
    assert not robot.is_connected


@pytest.mark.timeout(600)
def test_lerobot_reads_an_appended_data_set_and_replays_it(tmp_path: Path) -> None:
    times_s = np.arange(31) / 30
    elbows = Track(
        times_s=times_s, joints_rad=np.outer(1.0 - 0.2 * times_s, (1.0, 0.9)), names=NAMES
    )
    folder = tmp_path / "set"
    for append in (False, True):
        export_lerobot([elbows], folder, fps=30, task="bend", as_driver=True, append=append)
    datasets = import_module("lerobot.datasets.lerobot_dataset")
    assert len(datasets.LeRobotDataset("me/set", root=folder)) == 62
    replayed = run("replay", "sim://g1", folder, "--dataset.episode=1")
    assert replayed.returncode == 0, replayed.stderr


@pytest.mark.timeout(600)
def test_lerobot_records_arms_that_are_led_by_hand_and_replays_them(
    url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "set"
    recorded = record(url, folder)
    assert recorded.returncode == 0, recorded.stderr
    found = import_module("lerobot.datasets.lerobot_dataset").LeRobotDataset("me/set", root=folder)
    assert (found.num_episodes, found.fps, found.meta.robot_type) == (2, 30, "rote")
    column = found.features["action"]["names"].index(SHOULDER)
    shoulder_rad = np.array(found.hf_dataset["action"])[:, column]
    assert np.ptp(shoulder_rad) > 0.5  # the hand was raised
    replayed = run("replay", url, folder, "--dataset.episode=0")
    assert replayed.returncode == 0, replayed.stderr


def test_over_webrtc_lerobot_is_told_that_no_poses_can_be_streamed(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    refused = record("webrtc://ap", folder)
    assert refused.returncode != 0
    assert "webrtc:// cannot stream poses" in refused.stderr
    assert not folder.exists()


@pytest.mark.parametrize("robot_first", [False, True])
def test_robot_and_hand_meet_in_either_order(package: Any, robot: Any, robot_first: bool) -> None:
    hand = package.RoteHand(package.RoteHandConfig(script="wave", script_s=2.0))
    pair = (robot, hand) if robot_first else (hand, robot)
    try:
        for each in pair:
            each.connect()
        assert hand.action_features == robot.action_features
        action = hand.get_action()
        assert set(action) == set(robot.action_features)
        assert robot.send_action(action) == action
        with pytest.raises(ValueError, match="led by hand"):
            robot.send_action({**action, "kLeftElbow.q": action["kLeftElbow.q"] + 0.2})
    finally:
        for each in pair:
            each.disconnect()
    with pytest.raises(RuntimeError, match="none is connected"):
        hand.get_action()
