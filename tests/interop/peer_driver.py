"""The unmodified `unitree-webrtc-connect` in a process of its own: what it saw, as lines of JSON.

    python peer_driver.py tour HOST --perform ID --play NAME    do all of it once, and leave
    python peer_driver.py hold HOST                             stay until standard input ends

The tour stops the preset soon, or with --patient waits for its end.

PYTHONPATH says which release. The last line says how it ended: {"event": "done", ...} with all that
was seen, or {"event": "failed", "error": ..., "message": ...} with the client's own error.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

ARM, LOWSTATE, ARM_STATE = "rt/api/arm/request", "rt/lf/lowstate", "rt/arm/action/state"
PERFORM, LIST, PLAY, STOP = 7106, 7107, 7108, 7113
PLAYING, RETURNING = 100, 99
PATIENCE_S = 20.0


def make_client(host: str, key: str | None) -> Any:
    """Return the client, not yet connected, as its examples make it."""
    # It imports this for a robot's voice, and fails where the machine has no sound library.
    sys.modules["sounddevice"] = ModuleType("sounddevice")
    driver = import_module("unitree_webrtc_connect.webrtc_driver")
    constants = import_module("unitree_webrtc_connect.constants")
    given = {"aes_128_key": key} if key else {}
    method = constants.WebRTCConnectionMethod.LocalSTA
    return driver.UnitreeWebRTCConnection(method, ip=host, **given)


class Tour:
    """What the client sees on its way round the robot's services."""

    def __init__(self, client: Any) -> None:
        self._topics = client.datachannel.pub_sub
        self._changed = asyncio.Event()
        self.counts = {LOWSTATE: 0, ARM_STATE: 0}
        self.joints = 0
        self.arms: list[tuple[int, str]] = []

    def watch(self) -> None:
        """Subscribe to the robot's state and to what its arms do."""
        self._topics.subscribe(LOWSTATE, self._lowstate)
        self._topics.subscribe(ARM_STATE, self._arm_state)

    def _lowstate(self, message: dict[str, Any]) -> None:
        self.counts[LOWSTATE] += 1
        self.joints = len(message["data"]["motor_state"])

    def _arm_state(self, message: dict[str, Any]) -> None:
        self.counts[ARM_STATE] += 1
        state = json.loads(message["data"])
        doing = (state["id"], state["name"])
        if self.arms[-1:] != [doing]:
            self.arms.append(doing)
            self._changed.set()

    async def until(self, doing: int) -> None:
        """Wait until the arms do this."""
        async with asyncio.timeout(PATIENCE_S):
            while not self.arms or self.arms[-1][0] != doing:
                self._changed.clear()
                await self._changed.wait()

    async def ask(self, api: int, parameter: object = "") -> tuple[int, str]:
        """Return the code and the data that come back."""
        asked = self._topics.publish_request_new(ARM, {"api_id": api, "parameter": parameter})
        response = (await asyncio.wait_for(asked, PATIENCE_S))["data"]
        return response["header"]["status"]["code"], response.get("data", "")


async def tour(client: Any, wanted: argparse.Namespace) -> dict[str, object]:
    """Do once what the robot's arms can be asked for."""
    here = Tour(client)
    here.watch()
    codes = {}
    codes["list"], data = await here.ask(LIST)
    presets, taught = json.loads(data)
    codes["play unknown"], _ = await here.ask(PLAY, {"action_name": "no such action"})

    began = time.monotonic()
    performing = asyncio.create_task(here.ask(PERFORM, {"data": wanted.perform}))
    await here.until(wanted.perform)
    if not wanted.patient:
        codes["stop preset"], _ = await here.ask(STOP)
    codes["perform"], _ = await performing
    performed_s = time.monotonic() - began

    codes["play"], _ = await here.ask(PLAY, {"action_name": wanted.play})
    await here.until(PLAYING)
    codes["stop"], _ = await here.ask(STOP)
    await here.until(RETURNING)
    return {
        "codes": codes,
        "presets": [(entry["id"], entry["name"]) for entry in presets],
        "taught": [(entry["name"], entry["time"]) for entry in taught],
        "performed_s": performed_s,
        "joints": here.joints,
        "counts": here.counts,
        "arms": here.arms,
    }


async def run(wanted: argparse.Namespace, say: Callable[..., None]) -> None:
    """Connect, do it, leave; or say what went wrong."""
    client = make_client(wanted.host, wanted.key)
    seen: dict[str, object] = {}
    try:
        await client.connect()
        say(event="connected")
        if wanted.what == "hold":
            await asyncio.to_thread(sys.stdin.read)
        else:
            seen = await tour(client, wanted)
        await client.disconnect()
    except (Exception, SystemExit) as error:  # older releases end the whole program
        say(event="failed", error=type(error).__name__, message=str(error))
    else:
        say(event="done", **seen)


def main() -> None:
    """Keep standard output for JSON: the client prints its own progress there."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)

    def say(**words: object) -> None:
        print(json.dumps(words), file=out, flush=True)

    parser = argparse.ArgumentParser()
    parser.add_argument("what", choices=("tour", "hold"))
    parser.add_argument("host")
    parser.add_argument("--key")
    parser.add_argument("--play")
    parser.add_argument("--perform", type=int)
    parser.add_argument("--patient", action="store_true")
    asyncio.run(run(parser.parse_args(), say))


if __name__ == "__main__":
    main()
