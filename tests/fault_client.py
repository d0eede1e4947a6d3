"""A client in a process of its own, for `test_faults.py`: it says when it is in its phase.

python tests/fault_client.py URL PHASE FOLDER
"""

import asyncio
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import rote
from fault_cells import lifted, swung
from rote.errors import RoteError
from rote.messages import Phase
from rote.motion.files.library import Library


def ready() -> None:
    print("ready", flush=True)


async def play(robot: Any) -> None:
    playing = await robot.start("stored")
    async for progress in playing:
        if progress.phase is Phase.PLAYING and progress.fraction > 0.2:
            ready()
            break
    await playing


async def stream(robot: Any, track: Any) -> None:
    playing = robot.play_track(track)
    await playing.started()
    await asyncio.sleep(3.0)
    ready()
    await playing


async def teach(robot: Any, folder: Path) -> None:
    async with robot.teach("mine", library=Library(folder)):
        await asyncio.sleep(1.5)
        ready()
        await asyncio.sleep(3.0)


async def main(url: str, phase: str, folder: Path) -> None:
    async with rote.connect(url) as robot:
        if phase == "teaching":
            await teach(robot, folder)
        elif phase == "action":
            await play(robot)
        else:
            await stream(robot, swung() if url.startswith("a1:") else lifted())


if __name__ == "__main__":
    with suppress(RoteError):  # a robot that has returned meanwhile may refuse the rest
        asyncio.run(main(sys.argv[1], sys.argv[2], Path(sys.argv[3])))
