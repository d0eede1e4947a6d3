"""The processes of the benchmark `stage`: agents, a relay that is a bad network, and echoes.

python -m benchmarks.stage_worker ROLE ARGUMENT... ; lines of JSON are said on standard output, with
the monotonic clock, which all processes of a computer share.
"""

import asyncio
import json
import random
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any

DELAY_S, JITTER_S, STALLS, STALL_S = 0.002, 0.004, 0.01, 0.08
NOW_KEY, ECHO_KEY = "rote/try/now", "rote/try/echo"
PING_KEY, PONG_KEY = "rote/try/ping", "rote/try/pong"


def say(**facts: Any) -> None:
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


# ---- a relay ------------------------------------------------------------------------------------


async def relay(port: str, target: str, jitter: str) -> None:
    """Carry TCP from one port to another, late: 2 ms, 4 ms more in the mean, one in 100 stalls."""
    chance, bad = random.Random(1), jitter == "bad"

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        loop = asyncio.get_running_loop()
        queue: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()

        async def deliver() -> None:
            while True:
                due_s, data = await queue.get()
                await asyncio.sleep(max(0.0, due_s - loop.time()))
                writer.write(data)

        delivering = loop.create_task(deliver())
        try:
            while data := await reader.read(65536):
                late_s = 0.0
                if bad:
                    late_s = DELAY_S + chance.expovariate(1 / JITTER_S)
                    late_s += STALL_S if chance.random() < STALLS else 0.0
                queue.put_nowait((loop.time() + late_s, data))
        except ConnectionError:
            pass
        finally:
            delivering.cancel()
            writer.close()

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there = await asyncio.open_connection("127.0.0.1", int(target))
        await asyncio.gather(carry(reader, there[1]), carry(there[0], writer))

    server = await asyncio.start_server(accept, "127.0.0.1", int(port))
    say(ready=True)
    await server.serve_forever()


# ---- agents whose robots only note when they are told -------------------------------------------


async def clocked_agents(endpoint: str, *names: str) -> None:
    """Run agents, and say again and again how well each knows the clock."""
    await agents(endpoint, *names, clocked=True)


async def agents(endpoint: str, *names: str, clocked: bool = False) -> None:
    """Run agents with such robots, all in this process."""
    from benchmarks.noting_robot import NotingRobot
    from rote.stage.agent import Agent
    from rote.stage.stage import TRY_STAGE
    from rote.transport.zenoh.bus import StageBus

    buses, made = [], []
    for name in names:
        bus = await StageBus.join(endpoint)
        buses.append(bus)

        def arrived(_key: str, data: bytes, name: str = name) -> None:
            say(name=name, what="now", s=time.monotonic(), round=data.decode())

        bus.subscribe(NOW_KEY, arrived)
        made.append(Agent(bus, NotingRobot(name), name, TRY_STAGE))

    async def clock() -> None:
        while clocked:
            await asyncio.sleep(0.2)
            now_s = time.monotonic()
            for agent in made:
                known = agent.session.clock
                if (bound_s := known.bound_s(now_s)) < 1.0:
                    # Both clocks are this computer's: whatever the offset is, is its error.
                    error_s = abs(known.offset_s(now_s))
                    say(name=agent.name, what="clock", error_s=error_s, bound_s=bound_s)

    try:
        await asyncio.gather(clock(), *(agent.run() for agent in made))
    finally:
        for bus in buses:
            await bus.close()


# ---- a real simulated robot, told "now" or by its agent -----------------------------------------


def track_of(share: float, samples: int = 400) -> Any:
    """Return a motion whose first pose is a share of the way to a far one: the ways differ."""
    from dataclasses import replace

    import numpy as np

    from rote.model.g1 import G1_29
    from rote.stage.demo import demo_take

    take = demo_take("wave")
    rest = np.array(G1_29.rest_rad)
    poses = rest + share * (take.joints_rad - rest)
    return replace(take, times_s=take.times_s[:samples], joints_rad=poses[:samples])


async def robot(endpoint: str, name: str, share: str) -> None:
    """Run a simulated robot with its agent; told "now" it plays its track at once."""
    import rote
    from rote.messages import Phase
    from rote.stage.agent import Agent
    from rote.stage.stage import TRY_STAGE
    from rote.transport.zenoh.bus import StageBus

    bus = await StageBus.join(endpoint)
    track, tasks = track_of(float(share)), set[asyncio.Task[Any]]()
    loop = asyncio.get_running_loop()
    try:
        async with rote.connect("sim://g1") as one:
            before = Phase.NONE

            def look(state: Any) -> None:
                nonlocal before
                if state.phase is Phase.PLAYING and before is not Phase.PLAYING:
                    say(name=name, what="moves", s=time.monotonic())
                before = state.phase

            async def play() -> None:
                error = ""
                try:
                    await one.play_track(track, force=True)
                except rote.RoteError as problem:
                    error = str(problem)
                say(name=name, what="ended", s=time.monotonic(), error=error)

            one.on_state(look)
            bus.subscribe(NOW_KEY, lambda _key, _data: tasks.add(loop.create_task(play())))
            await Agent(bus, one, name, TRY_STAGE).run()
    finally:
        await bus.close()


# ---- a request and its answer -------------------------------------------------------------------


async def router(endpoint: str) -> None:
    from rote.transport.zenoh.bus import StageBus

    bus = await StageBus.conduct(endpoint)
    say(ready=True)
    try:
        await asyncio.Event().wait()
    finally:
        await bus.close()


async def echo(endpoint: str) -> None:
    from rote.transport.zenoh.bus import StageBus

    bus = await StageBus.join(endpoint)
    bus.answer(ECHO_KEY, lambda _key, data: data)
    bus.subscribe(PING_KEY, lambda _key, data: bus.publish(PONG_KEY, data))
    say(ready=True)
    try:
        await asyncio.Event().wait()
    finally:
        await bus.close()


async def nats_echo(folder: str, address: str) -> None:
    sys.path.append(folder)
    import nats  # type: ignore[import-not-found, import-untyped, unused-ignore]

    client = await nats.connect(address)

    async def answer(message: Any) -> None:
        await message.respond(message.data)

    async def back(message: Any) -> None:
        await client.publish("pong", message.data)

    await client.subscribe("echo", cb=answer)
    await client.subscribe("ping", cb=back)
    await client.flush()
    say(ready=True)
    await asyncio.Event().wait()


ROLES: dict[str, Callable[..., Awaitable[None]]] = {
    "relay": relay,
    "agents": agents,
    "clocked_agents": clocked_agents,
    "robot": robot,
    "router": router,
    "echo": echo,
    "nats_echo": nats_echo,
}


def main() -> None:
    from rote.platform.loop import new_loop

    role, *arguments = sys.argv[1:]

    async def work() -> None:
        await ROLES[role](*arguments)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(work())


if __name__ == "__main__":
    main()
