"""A take on our own disk while it is made: kept, thrown away, or rescued."""

import asyncio
import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import virtual
from motion.motion_tracks import full_disk
from rig import rig
from rote.errors import BadRequestError, PeerLostError
from rote.model.g1 import G1_29
from rote.motion.files.library import Library
from rote.motion.record import Sample
from rote.robot.message_robot import G1
from rote.robot.take import BackgroundTakeWriter


async def wave(robot: G1, library: Library, seconds: float = 1.0) -> Path | None:
    async with robot.teach("mine", library=library) as take:
        await robot.move_by_hand("wave", seconds)
        await asyncio.sleep(seconds)
    assert take.file_problem is None
    return take.file


@pytest.mark.parametrize("wire", ["memory", "webrtc"])
def test_a_take_is_on_disk_as_it_was_recorded(wire: str, tmp_path: Path) -> None:
    async def run() -> None:
        library = Library(tmp_path)
        async with rig(wire) as one, one.connect() as robot:
            async with robot.teach("mine", library=library) as take:
                await robot.move_by_hand("wave", 1.0)
                await asyncio.sleep(1.0)
        assert take.file == tmp_path / "mine.mcap"
        kept = library.load("mine")
        assert np.allclose(kept.joints_rad, take.track.joints_rad)
        assert np.allclose(kept.times_s, take.track.times_s, atol=1e-9)
        assert kept.source == f"teach mine over {one.wire}"

    virtual.run(run())


@pytest.mark.parametrize("how", ["discard", "fail", "cancel"])
def test_what_is_not_wanted_leaves_no_file(how: str, tmp_path: Path) -> None:
    async def run() -> None:
        async with rig("memory") as one, one.connect() as robot:

            async def teach() -> None:
                async with robot.teach("mine", library=Library(tmp_path)) as take:
                    await asyncio.sleep(0.5)
                    if how == "discard":
                        take.discard()
                    elif how == "fail":
                        raise KeyError
                    else:
                        await asyncio.sleep(3600)

            task = asyncio.create_task(teach())
            if how == "cancel":
                await asyncio.sleep(2.0)
                task.cancel()
            (outcome,) = await asyncio.gather(task, return_exceptions=True)
            wanted = {"discard": type(None), "fail": KeyError, "cancel": asyncio.CancelledError}
            assert isinstance(outcome, wanted[how])

    virtual.run(run())
    assert not list(tmp_path.glob("*.mcap*"))


def test_what_came_before_a_loss_is_kept(tmp_path: Path) -> None:
    async def run() -> None:
        library = Library(tmp_path)
        async with rig("memory") as one, one.connect() as robot:
            with pytest.raises(PeerLostError):
                async with robot.teach("mine", library=library):
                    await asyncio.sleep(1.0)
                    await one.simulator.close()
                    await asyncio.sleep(3600)
        assert library.load("mine").duration_s == pytest.approx(1.0, abs=0.1)

    virtual.run(run())


def test_a_disk_that_takes_nothing_is_told_before_the_arms_get_soft(tmp_path: Path) -> None:
    async def run() -> None:
        blocked = tmp_path / "file"
        blocked.write_text("in the way")
        async with rig("memory") as one, one.connect() as robot:
            with pytest.raises(BadRequestError, match="cannot be written"):
                await wave(robot, Library(blocked))
            assert not one.world.body.soft
            assert "arms are soft" not in " ".join(n.message for n in one.world.notices)

    virtual.run(run())


def test_a_disk_that_fails_later_does_not_disturb_the_teaching(tmp_path: Path) -> None:
    async def run() -> None:
        async with rig("memory") as one, one.connect() as robot:
            with full_disk(20_000):  # enough to begin with
                async with robot.teach("mine", library=Library(tmp_path / "shelf")) as take:
                    await asyncio.sleep(3.0)
            assert take.saved
            assert take.file is None
            assert isinstance(take.file_problem, BadRequestError)

    virtual.run(run())


def test_a_disk_that_is_full_in_the_middle_of_a_chunk_is_told_of(tmp_path: Path) -> None:
    async def run() -> None:
        library = Library(tmp_path)
        keeper = BackgroundTakeWriter(library.record("mine", G1_29.names))
        poses = np.random.default_rng(1).uniform(-1.0, 1.0, (1500, len(G1_29.names)))
        with full_disk(20_000):  # enough to begin with
            for number, pose in enumerate(poses.tolist()):  # 1 MB, before it is time to flush
                time_us = 100 * number
                keeper.add(Sample(time_us, tuple(pose)))
            assert await keeper.finish() is None
        assert isinstance(keeper.problem, BadRequestError)
        assert "cannot be written" in str(keeper.problem)

    virtual.run(run())


KILLED = """
import asyncio, sys, rote
from pathlib import Path
from rote.motion.files.library import Library

async def main():
    async with rote.connect("sim://g1?store=:memory:") as robot:
        async with robot.teach("mine", library=Library(Path(sys.argv[1]))) as take:
            await robot.move_by_hand("wave", 60)
            while True:
                await asyncio.sleep(0.05)
                print(take.track.duration_s, flush=True)

asyncio.run(main())
"""


@pytest.mark.slow
def test_a_killed_process_loses_at_most_the_last_second(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    for line in process.stdout:
        reached_s = float(line)
        if reached_s > 1.6:
            break
    process.send_signal(signal.SIGKILL)
    process.communicate()
    library = Library(tmp_path)
    (part,) = library.unfinished()
    entry = library.recover(part)
    assert entry.duration_s >= reached_s - 1.0
    assert json.dumps(entry.tags) == "[]"
    assert library.unfinished() == ()
