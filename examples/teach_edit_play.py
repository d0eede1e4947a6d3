"""From a hand to a file to a robot: teach, edit, check, save, load and play."""

import asyncio

import rote


async def main() -> None:
    async with rote.connect("sim://g1?store=:memory:") as robot:
        async with robot.teach("wave") as take:  # the arms are soft inside the block
            await robot.move_by_hand("wave", seconds=3)  # with a real robot, move them yourself
            await asyncio.sleep(3)

        wave = take.track.trim(auto=True).smooth(cutoff_hz=4).close_loop()
        wave.save("wave.mcap")  # or .npz, .json, .csv

        loaded = rote.load("wave.mcap")
        print(*loaded.history, sep="\n")
        report = rote.check(loaded, build=robot.build)
        for finding in report.findings:
            print(f"{finding.severity}: {finding.message}")
        if report.ok:
            played = await robot.play_track(loaded, force=True)  # `force` plays despite warnings
            print(f"played {loaded.duration_s:.1f} s, completed: {played.completed}")


asyncio.run(main())
