"""The processes of the benchmark `stage`: agents, a relay that is a bad network, and echoes.

python -m benchmarks.stage_worker ROLE ARGUMENT... ; lines of JSON are said on standard output, with
the monotonic clock, which all processes of a computer share.
"""

import asyncio
import json
import random
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import numpy as np

DELAY_S, JITTER_S, STALLS, STALL_S = 0.002, 0.004, 0.01, 0.08
LEAD_S = 0.5
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


class NotingPlaying:
    """A playback that begins at its time, by a thread with priority as a stream has."""

    def __init__(self, name: str, start: Any) -> None:
        self._name = name
        self._stopped = threading.Event()
        self._task = asyncio.get_running_loop().create_task(self._run(start))

    @property
    def done(self) -> bool:
        return self._task.done()

    async def _run(self, start: Any) -> Any:
        from rote.robot.api_values import StreamReport

        at_s = await start.wait(LEAD_S)
        began_s = await asyncio.to_thread(self._begin, at_s)
        if not self._stopped.is_set():
            say(name=self._name, what="start", s=began_s, at_s=at_s)
        late_ms = 1000 * (began_s - at_s)
        return StreamReport(
            name="",
            completed=not self._stopped.is_set(),
            seconds=0.0,
            rate_hz=250.0,
            late_p99_ms=late_ms,
            late_max_ms=late_ms,
            missed=0,
            start_late_ms=late_ms,
        )

    def _begin(self, at_s: float) -> float:
        from rote.platform import realtime

        done: list[float] = []

        def wait() -> None:
            realtime.precise_timers()
            realtime.real_time()
            self._stopped.wait(max(0.0, at_s - time.monotonic()))
            done.append(time.monotonic())

        thread = threading.Thread(target=wait)
        thread.start()
        thread.join()
        return done[0]

    def stop(self) -> None:
        """Keep it from beginning, if it has not begun."""
        self._stopped.set()

    async def wait(self) -> Any:
        return await asyncio.shield(self._task)

    def __await__(self) -> Any:
        return self.wait().__await__()


class NotingRobot:
    """A robot that does nothing and says when it was told to."""

    abilities = frozenset({"stream", "stop", "states"})
    state = None

    def __init__(self, name: str) -> None:
        from rote.model.g1 import G1_29

        self.name, self.url, self.build = name, f"noting://{name}", G1_29
        self._playings: list[NotingPlaying] = []

    async def states(self) -> AsyncIterator[None]:
        await asyncio.Event().wait()
        yield None

    async def preflight(self) -> list[Any]:
        return []

    async def stop(self) -> None:
        for each in self._playings:
            each.stop()
        self._playings.clear()
        say(name=self.name, what="stop", s=time.monotonic())

    def play_track(self, _track: Any, *, at: Any, **_: Any) -> NotingPlaying:
        self._playings.append(NotingPlaying(self.name, at))
        return self._playings[-1]


async def clocked_agents(endpoint: str, *names: str) -> None:
    """Run agents, and say again and again how well each knows the clock."""
    await agents(endpoint, *names, clocked=True)


async def agents(endpoint: str, *names: str, clocked: bool = False) -> None:
    """Run agents with such robots, all in this process."""
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
        robot: Any = NotingRobot(name)
        made.append(Agent(bus, robot, name, TRY_STAGE))

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
