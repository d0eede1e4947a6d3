"""LeRobot's own programs with our plug-in: only where lerobot is installed, which no set-up does.

It brings torch and a hundred packages. It was run by hand; docs/exchange.md says with which
versions, and how.
"""

import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from rote.motion.files.lerobot import export_lerobot
from rote.motion.track import Track

NAMES = ("left_elbow_joint", "right_elbow_joint")
PLUGIN = Path(__file__).parents[2] / "packages" / "lerobot_robot_rote"

pytest.importorskip("lerobot", reason="lerobot is not installed: it brings torch, a gigabyte")


@pytest.fixture
def robot(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(PLUGIN))
    package = import_module("lerobot_robot_rote")
    return package.RoteRobot(package.RoteRobotConfig(url="sim://g1", contact=False))


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
    run = subprocess.run(
        [
            sys.executable, "-m", "lerobot.scripts.lerobot_replay", "--robot.type=rote",
            "--robot.url=sim://g1", "--dataset.repo_id=me/set", f"--dataset.root={folder}",
            "--dataset.episode=1", "--play_sounds=false",
        ],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
