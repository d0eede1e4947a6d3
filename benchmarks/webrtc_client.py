"""A client of a robot in a process of its own: `python -m benchmarks.webrtc_client WHO HOST CORE`.

Each number read from standard input is a turn: connect, ask so many times, leave; what was measured
is printed as a line of JSON. WHO is `rote`, `rote's loop` for the same on the loop that the command
line and the blocking API choose, or `peer` for the release of `unitree-webrtc-connect` that
PYTHONPATH names.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import AsyncExitStack
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

TOPICS = ("rt/lf/lowstate", "rt/lf/sportmodestate", "rt/arm/action/state")
"""What rote's client always watches."""


class Rote:
    """Rote's client."""

    async def connect(self, host: str) -> None:
        """Connect, and watch."""
        import rote
        from rote.wire.services.rpc import CHECK_MODE

        self._call = CHECK_MODE
        self._stack = AsyncExitStack()
        connection = rote.connect(f"webrtc://{host}", family="g1")
        self._port: Any = (await self._stack.enter_async_context(connection))._client

    def watch(self) -> None:
        """It does already."""

    async def ask(self) -> None:
        """Ask which controller is in charge."""
        await self._port.call(self._call)

    async def leave(self) -> None:
        """Disconnect."""
        await self._stack.aclose()


class Peer:
    """The other client, as its examples use it."""

    async def connect(self, host: str) -> None:
        """Connect; it watches nothing yet."""
        # It imports this for a robot's voice, and fails where the machine has no sound library.
        sys.modules["sounddevice"] = ModuleType("sounddevice")
        driver = import_module("unitree_webrtc_connect.webrtc_driver")
        method = import_module("unitree_webrtc_connect.constants").WebRTCConnectionMethod.LocalSTA
        self._client = driver.UnitreeWebRTCConnection(method, ip=host)
        await self._client.connect()
        self._topics = self._client.datachannel.pub_sub
        self._latest: dict[str, Any] = {}

    def watch(self) -> None:
        """Keep the latest of the topics that rote's client watches."""
        for topic in TOPICS:
            self._topics.subscribe(topic, lambda said: self._latest.update({said["topic"]: said}))

    async def ask(self) -> None:
        """Ask which controller is in charge."""
        topic = "rt/api/motion_switcher/request"
        response = await self._topics.publish_request_new(topic, {"api_id": 1001})
        assert response["data"]["header"]["status"]["code"] == 0, response

    async def leave(self) -> None:
        """Disconnect."""
        await self._client.disconnect()


CLIENTS: dict[str, type[Rote | Peer]] = {"rote": Rote, "rote's loop": Rote, "peer": Peer}


def resident_mb() -> float:
    """Return how much memory this process has."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


async def time_requests(client: Rote | Peer, count: int) -> list[float]:
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        await client.ask()
        taken.append(time.perf_counter() - start)
    return taken


async def take_turn(client: Rote | Peer, host: str, count: int) -> dict[str, object]:
    """Connect, ask, leave."""
    start = time.perf_counter()
    await client.connect(host)
    connected_s = time.perf_counter() - start
    unwatched_s = await time_requests(client, count)
    client.watch()
    watching_s = await time_requests(client, count)
    memory_mb = resident_mb()
    await client.leave()
    return {
        "connect_s": connected_s,
        "unwatched_s": unwatched_s,
        "watching_s": watching_s,
        "memory_mb": memory_mb,
    }


def main() -> None:
    """Keep standard output for JSON: the other client prints its own progress there."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    who, host, core = sys.argv[1:]
    os.sched_setaffinity(0, {int(core)})
    loops: dict[str, Any] = {}
    if who == "rote's loop":
        loops["loop_factory"] = import_module("rote.platform.loop").new_loop
    for line in sys.stdin:
        with asyncio.Runner(**loops) as runner:
            turn = runner.run(take_turn(CLIENTS[who](), host, int(line)))
        print(json.dumps(turn), file=out, flush=True)


if __name__ == "__main__":
    main()
