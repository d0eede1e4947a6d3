"""Without an extra, or without all of them: what needs it names it, all else works."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from rote.platform.distribution import (
    NOT_FROM,
    NOT_ON_AARCH64_LINUX,
    how_to_get,
    install_line,
)

ROOT = Path(__file__).parents[1]
EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))[
    "project"
]["optional-dependencies"]
MODULES = {
    "fast": ["uvloop"],
    "plot": ["matplotlib", "PIL"],
    "webrtc": ["aiortc", "aioice", "av", "pylibsrtp", "OpenSSL", "cryptography", "ifaddr"],
    "mcap": ["mcap", "lz4", "zstandard"],
    "lerobot": ["pyarrow"],
    "physics": ["mujoco"],
    "pandas": ["pandas"],
    "sound": ["miniaudio"],
    "stage": ["zenoh"],
    "mcp": ["mcp", "mcp_types", "httpx2", "httpcore2"],
    "dds": ["cyclonedds"],
    "ray": ["ray"],
    "web": [
        *("fastapi", "starlette", "uvicorn", "websockets"),
        *("python_multipart", "multipart", "qrcode"),
    ],
}
"""What each extra brings that no other one brings, as modules."""
SHARED = ["h11"]

# Commands that need an extra, and what they are to say of it.
NEED: dict[str, list[list[str]]] = {
    "fast": [],
    "plot": [["motion", "plot", "wave.npz", "--out", "wave.png"]],
    "webrtc": [
        ["sim", "--webrtc", "127.0.0.1:0"],
        ["status", "--robot", "webrtc://127.0.0.1"],
        ["discover", "--seconds", "0.1"],
        ["capture", "make", "made.pcap"],
    ],
    "mcap": [
        ["takes", "export", "hello", "hello.mcap"],
        ["motion", "convert", "wave.npz", "wave.mcap"],
        ["capture", "made.pcap.zst"],
    ],
    "lerobot": [["motion", "lerobot", "wave.npz", "--out", "dataset", "--task", "wave"]],
    "physics": [["preview", "wave.npz"]],
    "pandas": [],
    "sound": [],
    "stage": [["agent", "sim://g1", "--name", "ann", "--at", "127.0.0.1:9"]],
    "dds": [["sim", "--dds", "lo"], ["status", "--robot", "dds://lo"], ["ros"]],
    "mcp": [["mcp"]],
    "ray": [["batch", "check", "wave.npz", "--out", "checked", "--ray", "auto"]],
    "web": [["web", "--no-browser", "--port", "0"], ["watch", "--foxglove", "0"]],
}
# Commands that work without any: the first few with each extra missing, all with all missing.
WORK = [
    ["teach", "hello", "--hand", "wave", "--seconds", "0.2", "--json"],
    ["takes", "export", "hello", "wave.npz"],
    ["takes", "list"],
    ["list"],
    ["takes", "show", "hello"],
    ["motion", "trim", "wave.npz", "cut.json", "--auto"],
    ["motion", "check", "cut.json"],
    ["robots"],
]
FEW = 3


def work_without(extras: list[str]) -> list[list[str]]:
    """Return what is to work without some extras."""
    return WORK if len(extras) == len(MODULES) else WORK[:FEW]


def outcomes(folder: Path, sets: list[list[str]]) -> list[list[dict[str, Any]]]:
    """Return what became of all these commands, without each set of extras."""
    wishes = []
    for extras in sets:
        own = folder / "+".join(extras)
        own.mkdir()
        (own / "made.pcap.zst").write_bytes(b"\x28\xb5\x2f\xfd" + bytes(16))
        missing = [name for extra in extras for name in MODULES[extra]]
        if len(extras) == len(MODULES):
            missing += SHARED
        commands = work_without(extras) + [each for one in extras for each in NEED[one]]
        wishes.append({"folder": str(own), "missing": missing, "commands": commands})
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("without_packages.py")), json.dumps(wishes)],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    told: list[list[dict[str, Any]]] = json.loads(done.stdout)
    return told


@pytest.mark.slow
def test_a_missing_extra_is_named_where_it_is_needed_and_nowhere_missed(tmp_path: Path) -> None:
    sets = [*([name] for name in MODULES), [*MODULES]]
    for extras, told in zip(sets, outcomes(tmp_path, sets), strict=True):
        without = f"without {'+'.join(extras)}: "
        for one in told:
            assert not one["trace"], f"{without}{one['arguments']}: {one['trace']}"
            assert "Traceback" not in one["err"], without
        for one in told[: len(work_without(extras))]:
            assert one["code"] == 0, f"{without}{one}"
        for extra in extras:
            for command in NEED[extra]:
                (one,) = [each for each in told if each["arguments"] == command]
                assert one["code"] == 1, f"{without}{one}"
                assert how_to_get(extra) in " ".join(one["err"].split()), f"{without}{one}"
        home = tmp_path / "+".join(extras) / "home"
        kept = [path.suffix for path in (home / "takes").glob("hello.*")]
        assert kept == [".npz" if "mcap" in extras else ".mcap"], without


def test_every_extra_is_explained_where_one_installs() -> None:
    shown = (ROOT / "docs" / "install.md").read_text(encoding="utf-8")
    assert {*re.findall(r"^\| `([a-z]+)` \|", shown, re.MULTILINE)} == {*EXTRAS, "all"}


def test_every_extra_is_tested_here() -> None:
    assert {*MODULES} == {*NEED} == {*EXTRAS} - {"all"}
    (everything,) = EXTRAS["all"]
    assert {*everything.removeprefix("rote-robot[").removesuffix("]").split(",")} == {*MODULES} - {
        "ray"  # for clusters only, and as large as all others together
    }


def test_an_extra_that_a_python_cannot_have_says_so_and_has_a_marker() -> None:
    marked = {
        extra: re.findall(r"python_version < '([\d.]+)'", " ".join(wanted))
        for extra, wanted in EXTRAS.items()
        if any("python_version" in one for one in wanted)
    }
    assert marked == {
        extra: [".".join(map(str, version))] for extra, (_, version) in NOT_FROM.items()
    }
    assert how_to_get("dds", (3, 13)) == f"Run: {install_line('dds')}"
    assert "no package for Python 3.14" in how_to_get("dds", (3, 14))
    assert how_to_get("web", (3, 14)) == "Run: pip install 'rote-robot[web]'"


def test_an_extra_without_a_package_for_a_machine_says_so() -> None:
    markers = {extra: needed for extra, (needed, *_) in EXTRAS.items() if "aarch64" in needed}
    assert set(markers) == set(NOT_ON_AARCH64_LINUX)
    for extra in markers:
        assert "for Linux on aarch64" in how_to_get(extra, (3, 13), ("linux", "aarch64"))
        assert how_to_get(extra, (3, 13), ("darwin", "aarch64")) == f"Run: {install_line(extra)}"
