"""rote store: store a motion of this computer as an action on the robot."""

from typing import Annotated

import typer

from rote.cli import takes
from rote.cli.options import Json, Key, Keylog, RobotChoice, RobotUrl, connect_to, print_json, run
from rote.client.wires import EMBEDDED
from rote.messages import MAX_KEYFRAMES


def store(
    motion: Annotated[str, typer.Argument(help="A file with a motion, like wave.mcap.")],
    name: Annotated[str, typer.Argument(help="The action's name on the robot.")],
    take: Annotated[
        bool, typer.Option("--take", help="MOTION is a take on this computer: rote takes list.")
    ] = False,
    budget: Annotated[int, typer.Option(help="At most so many keyframes.")] = MAX_KEYFRAMES,
    loop: Annotated[
        bool, typer.Option("--loop", help="Have it played again and again, until it is stopped.")
    ] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    as_json: Json = False,
) -> None:
    """Store a motion of this computer on the robot, as keyframes; refused where they are too few.

    Only the documented frames can: udp:// and sim://. `rote play FILE` plays any motion as it is.
    """
    how = (budget, loop)
    run(_store(RobotChoice(robot, key, keylog), (motion, take), name, how, as_json))


async def _store(
    target: RobotChoice, motion: tuple[str, bool], name: str, how: tuple[int, bool], as_json: bool
) -> None:
    from rote.cli import output

    track = takes.motion(*motion, "Name the take: rote store {name} NAME --take")
    async with connect_to(target) as robot:
        with output.waiting("searching keyframes"):
            stored = await robot.store_track(track, name, budget=how[0], loop=how[1])
    if as_json:
        print_json(
            {
                "name": name,
                "keyframes": len(stored.keyframes),
                "max_error_rad": stored.max_error_rad,
                "rms_error_rad": stored.rms_error_rad,
            }
        )
        return
    off = f"{stored.max_error_rad:.3f} rad off at most"
    print(f"Stored {name} as {len(stored.keyframes)} keyframes, {off}.")
