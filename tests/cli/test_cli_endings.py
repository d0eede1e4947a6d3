"""However a command ends, the arms hold or rest, and its words and its exit code are true.

Commands and `rote sim` are processes of their own; a second client sees what the body does.
"""

import asyncio
import json
import os
import pty
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from forked import Rote
from rote.connection import connect
from rote.messages import Phase, RobotState
from rote.robot.robot import Robot
from rote.sim.presets import action_from_script
from rote.sim.store import Store

INT, TERM, HUP = signal.SIGINT, signal.SIGTERM, signal.SIGHUP
SOFTLY = {"play": "Stopped softly: the arms return to rest.", "teach": "and the arms hold."}
COMMANDS = {
    "play": ["play", "wave", "--loop"],
    "teach": ["teach", "mine", "--hand", "wave", "--seconds", "60"],
    "trial": ["trial", "--yes", "--level", "hold"],
    "stop": ["stop"],
}


class Hall:
    """A simulated robot in a process of its own."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.env = {**os.environ, "ROTE_HOME": str(home)}
        store = Store(home / "sim.sqlite")
        store.save(action_from_script("wave", "wave", 2.0))
        store.close()
        options = ["--udp", "127.0.0.1:0", "--store", str(home / "sim.sqlite"), "--json"]
        self.sim = Rote("sim", *options, stdout=subprocess.PIPE, text=True, env=self.env)
        assert self.sim.stdout is not None
        self.url: str = json.loads(self.sim.stdout.readline())["url"]

    def start(self, command: str, *, full: bool = False) -> Rote:
        more = ["--out", str(self.home / "report")] if command == "trial" else []
        with Path("/dev/full" if full else os.devnull).open("w") as nowhere:
            return Rote(
                *(*COMMANDS[command], *more, "--robot", self.url),
                stdin=subprocess.DEVNULL,
                stdout=nowhere if full else subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=self.env,
            )


@pytest.fixture
def hall(tmp_path: Path) -> Iterator[Hall]:
    one = Hall(tmp_path)
    yield one
    one.sim.send_signal(signal.SIGCONT)
    one.sim.kill()
    one.sim.communicate()


async def until(robot: Robot, so: Callable[[RobotState], bool], limit_s: float = 40.0) -> None:
    async with asyncio.timeout(limit_s):
        async for state in robot.states():
            if so(state):
                return


def is_busy(state: RobotState) -> bool:
    return state.arms_soft or state.phase is Phase.PLAYING


def is_safe(state: RobotState) -> bool:
    return not state.arms_soft and not state.recording and state.phase is Phase.NONE


async def taken(process: Rote) -> None:
    """Wait until no signal is pending: of several, the system delivers the lowest number first."""
    status = Path(f"/proc/{process.pid}/status")
    with suppress(FileNotFoundError):
        while re.search(r"S(?:ig|hd)Pnd:\t0*[1-9a-f]", await asyncio.to_thread(status.read_text)):
            await asyncio.sleep(0.001)
    await asyncio.sleep(0.01)


async def ended(process: Rote, limit_s: float = 40.0) -> tuple[int, str]:
    """Wait for a command's end; return its exit code and all that it printed."""
    texts = await asyncio.to_thread(process.communicate, None, limit_s)
    return process.returncode, "".join(text or "" for text in texts)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "numbers"),
    [
        ("play", (INT, INT, INT)),
        ("play", (HUP,)),
        ("teach", (INT, INT, INT)),
        ("teach", (TERM, INT)),
        ("trial", (INT, INT)),
        ("trial", (TERM,)),
    ],
)
def test_signals_leave_arms_that_hold_and_say_so(
    command: str, numbers: tuple[signal.Signals, ...], hall: Hall
) -> None:
    async def story() -> None:
        async with connect(hall.url) as robot:
            process = hall.start(command)
            await until(robot, is_busy)
            for number in numbers:
                process.send_signal(number)
                await taken(process)
            code, said = await ended(process)
            await until(robot, is_safe, 5.0)
            assert code in (128 + numbers[0], -numbers[-1])
            assert SOFTLY.get(command, "The robot confirmed the stop.") in said
            assert "Traceback" not in said

    asyncio.run(story())


@pytest.mark.slow
@pytest.mark.parametrize("command", ["play", "teach"])
def test_a_closed_or_full_output_changes_neither_the_stop_nor_the_exit_code(
    command: str, hall: Hall
) -> None:
    async def story() -> None:
        for full in (False, True):
            async with connect(hall.url) as robot:
                process = hall.start(command, full=full)
                await until(robot, is_busy)
                for stream in (process.stdout, process.stderr):
                    if stream is not None:
                        stream.close()
                process.send_signal(INT)
                assert await asyncio.to_thread(process.wait, 40) == 128 + INT
                await until(robot, is_safe, 5.0)

    asyncio.run(story())


@pytest.mark.slow
def test_output_that_cannot_be_written_is_an_error_and_a_closed_pipe_is_none() -> None:
    with Path("/dev/full").open("w") as full:
        process = Rote("modes", stdout=full, stderr=subprocess.PIPE, text=True)
    assert process.communicate(timeout=40)[1] == (
        "rote: the operating system reported: no space left on device\n"
        "      Free some space, or write to another disk.\n"
    )
    assert process.returncode == 1
    process = Rote("modes", stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    assert process.communicate(timeout=40)[1] == ""
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "first"),
    [
        ("teach", "rote: the arms may still be soft: the robot did NOT confirm that they hold: "),
        ("trial", "The arms may still be soft: hold them. The robot did NOT confirm the stop"),
    ],
)
def test_a_robot_that_does_not_confirm_is_not_said_to_be_safe(
    command: str, first: str, hall: Hall
) -> None:
    async def story() -> None:
        async with connect(hall.url) as robot:
            process = hall.start(command)
            await until(robot, is_busy)
            hall.sim.send_signal(signal.SIGSTOP)
            process.send_signal(INT)
            code, said = await ended(process)
            assert code == 3, said
            assert first in said
            assert "Stopped softly" not in said
            hall.sim.send_signal(signal.SIGCONT)
            with suppress(Exception):
                await robot.stop()

    asyncio.run(story())


@pytest.mark.slow
@pytest.mark.parametrize("is_read", [True, False])
def test_play_sends_a_lost_stop_again_whether_or_not_somebody_reads(
    is_read: bool, hall: Hall
) -> None:
    async def story() -> None:
        async with connect(hall.url) as robot:
            process = hall.start("play")
            await until(robot, is_busy)
            hall.sim.send_signal(signal.SIGSTOP)
            assert process.stderr is not None
            if not is_read:
                process.stderr.close()
            process.send_signal(INT)
            if is_read:
                lines = iter(process.stderr.readline, "")
                again = await asyncio.to_thread(
                    lambda: any("The robot did NOT confirm the stop; use" in one for one in lines)
                )
                assert again
            else:
                await asyncio.sleep(6.0)
            assert process.poll() is None
            hall.sim.send_signal(signal.SIGCONT)
            if is_read:
                code, said = await ended(process)
                assert "Stopped softly" in said
            else:
                code = await asyncio.to_thread(process.wait, 40)
                assert process.stdout is not None
                process.stdout.close()
            assert code == 128 + INT
        async with connect(hall.url) as robot:
            await until(robot, is_safe, 5.0)

    asyncio.run(story())


@pytest.mark.slow
def test_arms_do_not_get_soft_when_the_terminal_is_gone_before_enter(hall: Hall) -> None:
    leader, follower = pty.openpty()
    process = Rote(
        *("teach", "mine", "--robot", hall.url),
        stdin=follower,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=hall.env,
    )
    os.close(follower)
    assert process.stdout is not None
    assert any("Press Enter" in line for line in process.stdout)
    began = time.monotonic()
    os.close(leader)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert time.monotonic() - began < 20
    assert "nothing got soft" in err


@pytest.mark.slow
def test_a_stop_whose_output_nobody_reads_has_stopped_the_robot(hall: Hall) -> None:
    async def story() -> None:
        async with connect(hall.url) as robot:
            playing = hall.start("play")
            await until(robot, is_busy)
            stop = hall.start("stop")
            assert stop.stdout is not None
            stop.stdout.close()
            await asyncio.to_thread(stop.wait, 40)
            await until(robot, is_safe, 5.0)
            assert stop.stderr is not None
            with stop.stderr:
                assert "NOT" not in stop.stderr.read()
            code, said = await ended(playing)
            assert code == 1
            assert "stopped before its end" in said

    asyncio.run(story())
