"""Learn a motion from three takes, and play it with the hand led through another point."""

import asyncio

import rote


async def main() -> None:
    async with rote.connect("sim://g1?store=:memory:") as robot:
        takes = []
        for number in range(3):
            async with robot.teach(f"wave {number + 1}") as take:
                # With a real robot, move its arms yourself.
                await robot.move_by_hand("wave", seconds=2.6 + 0.2 * number)
                await asyncio.sleep(2.6 + 0.2 * number)
            takes.append(take.track.trim(auto=True))

        # In a thread: what computes for seconds must not keep this program from its robot.
        model = await asyncio.to_thread(rote.learn, takes)
        print(f"learned from {len(takes)} takes: {model.duration_s:.1f} s")

        # In m from the pelvis. Takes of a script hardly vary, so that this is far from them.
        higher = rote.HandPoint(model.duration_s / 2, 0.30, -0.30, 0.32, "right")
        adapted = await asyncio.to_thread(model.adapt, through=[higher], duration_s=3.0)
        print(adapted.history[-1])
        played = await robot.play_track(adapted, force=True)  # `force` plays despite warnings
        print(f"played {adapted.duration_s:.1f} s, completed: {played.completed}")


asyncio.run(main())
