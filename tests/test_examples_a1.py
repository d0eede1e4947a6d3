"""The examples for an A1 do on the simulated one what the documents say of them."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

import virtual

FOLDER = Path(__file__).parents[1] / "examples" / "a1"
HANGS = "sim://a1?level=low"


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_example_is_tried_and_at_most_a_screen() -> None:
    paths = sorted(FOLDER.glob("*.py"))
    assert [path.stem for path in paths] == ["position", "sdk_walk", "torque", "velocity", "walk"]
    for path in paths:
        assert path.read_text(encoding="utf-8").count("\n") <= 55


@pytest.mark.parametrize(
    "dialect", ["3.3.4", *(pytest.param(name, marks=pytest.mark.soak) for name in ("3.3", "go1"))]
)
def test_it_poses_walks_goes_to_a_place_and_lies_down(
    dialect: str, capsys: pytest.CaptureFixture[str]
) -> None:
    virtual.run(example("walk").main(f"sim://a1?dialect={dialect}"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [
        "stand", "stand", "walk", "walk", "walk to", "it lies",
    ]  # fmt: skip
    assert "0.23 m high" in lines[1]
    x, y = map(float, re.findall(r"-?\d+\.\d+(?:e-\d+)?", lines[4])[:2])
    assert (x, y) == pytest.approx((0.5, 0.0), abs=0.05)


def test_a_leg_is_driven_by_position(capsys: pytest.CaptureFixture[str]) -> None:
    virtual.run(example("position").main(HANGS))
    steps, thigh, calf = re.findall(r"-?\d+\.?\d*", capsys.readouterr().out)
    assert int(steps) == pytest.approx(3000, abs=5)
    assert (float(thigh), float(calf)) == pytest.approx((1.2, -2.0), abs=0.1)


def test_a_calf_is_driven_by_velocity(capsys: pytest.CaptureFixture[str]) -> None:
    virtual.run(example("velocity").main(HANGS))
    assert re.search(r"turned round [678] times", capsys.readouterr().out)


def test_a_thigh_is_driven_by_torque(capsys: pytest.CaptureFixture[str]) -> None:
    virtual.run(example("torque").main(HANGS))
    angle = re.findall(r"at (-?\d+\.\d+) rad", capsys.readouterr().out)[0]
    assert float(angle) == pytest.approx(1.1, abs=0.15)


@pytest.mark.quiet  # on a busy computer its 20 ms take longer, and it walks farther
def test_a_program_for_unitrees_library_walks() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", FOLDER / "sdk_walk.py"],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stderr) == (0, "")
    walked = re.findall(r"walked (\d\.\d+) m", done.stdout)[0]
    assert float(walked) == pytest.approx(0.6, abs=0.25)
