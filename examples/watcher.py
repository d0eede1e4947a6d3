"""Watch a robot: what it does, as it changes, and what to know before it moves."""

import asyncio

import rote

URL = "sim://g1?store=:memory:"  # a robot in another terminal: udp://127.0.0.1:49504


async def watch(robot: rote.Robot) -> None:
    before = None
    async for state in robot.states():  # 50 times a second
        now = (state.phase, state.arms_soft, state.recording)
        if now != before:
            soft = "soft" if state.arms_soft else "holding"
            print(f"{state.time_us / 1e6:7.2f} s  {state.phase:<8}  arms {soft}")
            before = now


async def main() -> None:
    async with rote.connect(URL) as robot:
        for finding in await robot.preflight():
            print(f"{finding.severity}: {finding.message} {finding.remedy}")
        watching = asyncio.create_task(watch(robot))
        async with robot.teach("drum"):
            await robot.move_by_hand("drum", seconds=1)
            await asyncio.sleep(1)
        await robot.play("drum")
        watching.cancel()
        print("watched to the end")


asyncio.run(main())
