"""Two robots at once: one is taught, and both play, the second one mirrored."""

import asyncio

import rote


async def main() -> None:
    async with (
        rote.connect("sim://g1?store=:memory:") as left,
        rote.connect("sim://g1?store=:memory:") as right,
    ):
        async with left.teach("wave") as take:
            await left.move_by_hand("wave", seconds=2)
            await asyncio.sleep(2)
        wave = take.track.trim(auto=True)
        async with asyncio.TaskGroup() as both:  # if one fails, the other stops softly
            one = both.create_task(play(left, wave))
            other = both.create_task(play(right, wave.mirror()))
        print("both completed:", one.result() and other.result())


async def play(robot: rote.Robot, track: rote.Track) -> bool:
    return (await robot.play_track(track, force=True)).completed


asyncio.run(main())
