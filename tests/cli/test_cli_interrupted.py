"""Ctrl-C at any moment: the right exit code, a true message or none, and no traceback."""

import asyncio
import gc
import importlib
import os
import signal
import subprocess
import warnings
from pathlib import Path

import pytest

from forked import Rote
from rote.cli import main
from rote.cli.options import run
from rote.platform.paths import data_folder, store_file
from rote.sim.presets import action_from_script
from rote.sim.store import Store

ENDED = 128 + signal.SIGINT
NOISE = ("Traceback", "never awaited", "Exception ignored", "was destroyed", "never retrieved")


def interrupted(moment: str, *arguments: str, times: int = 1) -> tuple[int, str]:
    """Run a command until it logs `moment`, and press Ctrl-C; return its exit code, and what it
    says from then on without its log.
    """
    process = Rote(
        *(*arguments, "-v"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "ROTE_HOME": str(data_folder())},
    )
    assert process.stderr is not None
    before = []
    for line in process.stderr:
        before.append(line)
        if moment in line:
            break
    else:
        raise AssertionError(f"it never came to {moment!r}: {''.join(before)}")
    for _ in range(times):
        process.send_signal(signal.SIGINT)
    said = process.communicate(timeout=60)[1]
    assert not any(noise in said for noise in NOISE), said
    logged = ("ask ", "reply ", "connect", "disconnect")
    shown = [line for line in said.splitlines() if not line[13:].startswith(logged)]
    return process.returncode, "\n".join(shown)


@pytest.mark.slow
@pytest.mark.parametrize("times", [1, pytest.param(2, marks=pytest.mark.soak)])
@pytest.mark.parametrize("wire", ["udp", "webrtc", "a1"])
def test_while_it_connects_it_says_nothing(wire: str, times: int) -> None:
    robot = f"{wire}://127.0.0.1:9"
    assert interrupted("connecting", "status", "--robot", robot, times=times) == (ENDED, "")


@pytest.mark.slow
@pytest.mark.parametrize("moment", ["ask EnterTeaching", "ask Record"])
def test_while_it_teaches_it_says_that_nothing_was_saved(moment: str) -> None:
    code, said = interrupted(moment, "teach", "x", "--hand", "wave", "--seconds", "30")
    assert (code, said) == (
        ENDED,
        "Stopped softly: nothing was saved, and the arms hold.",
    )
    store = Store(store_file("g1"))
    assert store.entries() == ()
    store.close()


@pytest.mark.slow
def test_while_it_plays_it_says_how_the_robot_is_left() -> None:
    store = Store(store_file("g1"))
    store.save(action_from_script("wave", "wave", 1.0))
    store.close()
    code, said = interrupted("ask PlayAction", "play", "wave", "--loop")
    assert (code, said) == (ENDED, "Stopped softly: the arms return to rest.")


@pytest.mark.slow
def test_the_demo_ends_without_a_word(tmp_path: Path) -> None:
    assert interrupted("ask Record", "demo", "--out", str(tmp_path / "demo")) == (ENDED, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize(
    ("module", "options"),
    [
        ("rote.cli.simulate", ["--udp", "127.0.0.1:0", "--store", ":memory:"]),
        ("rote.cli.a1.simulate", ["--a1", "127.0.0.1:0"]),
    ],
)
def test_a_simulated_robot_ends_with_0_as_soon_as_it_has_said_that_it_is_ready(
    module: str, options: list[str], number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[object] = []

    def say_and_end(event: dict[str, object]) -> None:
        said.append(event["event"])
        os.kill(os.getpid(), number)

    monkeypatch.setattr(importlib.import_module(module), "print_json", say_and_end)
    assert main(["sim", *options, "--json"]) == 0
    assert said[0] == "ready"


def test_before_the_loop_runs_no_coroutine_is_left_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    async def work() -> int:
        return 0

    monkeypatch.setattr(asyncio.Runner, "run", interrupt)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        with pytest.raises(KeyboardInterrupt):
            run(work())
        gc.collect()
    assert [str(warning.message) for warning in told if "awaited" in str(warning.message)] == []
