"""Teach the embedded simulated robot a wave, then play it back.

With a real robot, give its URL and move the arms yourself instead of `move_by_hand`.
"""

import asyncio

import rote


async def main() -> None:
    async with rote.connect("sim://g1?store=:memory:") as robot:
        async with robot.teach("wave") as take:  # the arms are soft inside the block
            await robot.move_by_hand("wave", seconds=3)
            await asyncio.sleep(3)
        print(f"taught {take.track.duration_s:.2f} s at {take.track.rate_hz:.0f} Hz")
        async for progress in robot.play("wave", interpolation="cubic"):
            print(f"\r{progress.phase.name.lower():<9} {progress.fraction:4.0%}", end="")
        print("\ndone")


asyncio.run(main())
