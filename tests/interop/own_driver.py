"""Rote's own client in a process of its own, for where the test itself cannot reach the robot.

    python own_driver.py teach HOST NAME     teach an action of a second, and list what is there
    python own_driver.py list HOST           list what is there

The last line says how it ended, as `peer_driver.py` says it. ROTE_KEY is the robot's key.
"""

import asyncio
import json
import sys

import rote
from rote.errors import RoteError


async def run(what: str, host: str, *names: str) -> dict[str, object]:
    """Return what was seen."""
    try:
        async with rote.connect(f"webrtc://{host}") as robot:
            if what == "teach":
                async with robot.teach(names[0]):
                    await asyncio.sleep(1.0)
            taught = [action.name for action in (await robot.actions()).taught]
    except RoteError as error:
        return {"event": "failed", "error": type(error).__name__, "message": str(error)}
    return {"event": "done", "taught": taught}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(run(*sys.argv[1:]))), flush=True)
