"""The process that releases the arms if a program that streams over DDS is killed."""

import asyncio
import errno
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import rote
from fault_cells import lifted
from rig import DDS_HZ, client_of, free_domain
from rote.model.g1 import Mode
from rote.sim.server import Simulator
from rote.sim.store import Store
from rote.sim.world import World
from rote.transport.dds.guardian import Guardian
from rote.transport.dds.participant import DdsTarget

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no such process")

TESTS = Path(__file__).parent.parent


@asynccontextmanager
async def dds_robot() -> AsyncIterator[str]:
    """Run a robot on DDS in real time, and yield its URL."""
    store = Store(":memory:")
    simulator = Simulator(World(store, mode=Mode.WALK, polite=True))
    try:
        yield (await simulator.serve_dds("lo", free_domain("guard"), lowstate_hz=DDS_HZ)).url
    finally:
        await simulator.close()
        store.close()


async def client(program: str, url: str) -> subprocess.CompletedProcess[str]:
    """Run a program that streams to a robot."""
    command = [sys.executable, "-c", program, url]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), *sys.path])}
    return await asyncio.to_thread(
        subprocess.run,
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=60.0,
    )


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


FORKS = """
import asyncio, os, signal, sys, time, rote
from fault_cells import lifted

async def main():
    async with rote.connect(sys.argv[1]) as robot:
        playing = robot.play_track(lifted())
        await playing.started()
        await asyncio.sleep(2.0)
        forked = os.fork()
        if forked == 0:
            os.close(1), os.close(2)
            time.sleep(60.0)
            os._exit(0)
        print(robot._client.guardian.process.pid, forked, flush=True)
        os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(main())
"""


@pytest.mark.slow
def test_the_arms_are_released_although_a_forked_process_outlives_the_program() -> None:
    async def story() -> None:
        async with dds_robot() as url:
            ended = await client(FORKS, url)
            guardian, forked = map(int, ended.stdout.split())
            try:
                until = time.monotonic() + 8.0
                while is_there(guardian) and time.monotonic() < until:
                    await asyncio.sleep(0.1)
                assert is_there(forked)
                assert not is_there(guardian), "it waits for the end of the forked process"
            finally:
                os.kill(forked, signal.SIGKILL)

    asyncio.run(story())


NEVER_CLOSED = """
import asyncio, sys, rote
from fault_cells import lifted

async def main():
    robot = await rote.open(sys.argv[1])
    await robot.play_track(lifted()).started()
    await asyncio.sleep(1.5)
    print(robot._client.guardian.process.pid)

loop = asyncio.new_event_loop()
loop.run_until_complete(main())
"""


@pytest.mark.slow
def test_a_program_that_never_closes_its_robot_ends_without_an_error() -> None:
    async def story() -> None:
        async with dds_robot() as url:
            ended = await client(NEVER_CLOSED, url)
            assert ended.stderr == ""
            assert ended.returncode == 0
            assert not is_there(int(ended.stdout))

    asyncio.run(story())


def test_a_guardian_that_was_killed_is_replaced_for_the_next_stream() -> None:
    async def story() -> None:
        async with dds_robot() as url, rote.connect(url, family="g1") as robot:
            port: Any = client_of(robot)
            await robot.play_track(lifted()).started()
            first = port.guardian.process
            await robot.stop()
            first.kill()
            await asyncio.to_thread(first.wait)
            await asyncio.sleep(5.0)
            await robot.play_track(lifted()).started()
            assert port.guardian.process.pid != first.pid
            assert port.guardian.is_running

    asyncio.run(story())


def test_a_full_disk_refuses_the_shared_memory_instead_of_killing_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class FullDisk:
        """A file that can be made larger and has no room: memory mapped to it raises SIGBUS."""

        def __init__(self) -> None:
            self._file = tempfile.SpooledTemporaryFile()  # noqa: SIM115

        def __enter__(self) -> "FullDisk":
            return self

        def __exit__(self, *_: object) -> None:
            self._file.close()

        def write(self, _: bytes) -> int:
            raise OSError(errno.ENOSPC, "no space left on device")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._file, name)

    monkeypatch.setattr(tempfile, "TemporaryFile", FullDisk)
    with pytest.raises(OSError, match="no space left"):
        Guardian(DdsTarget("lo", free_domain("guard")))
