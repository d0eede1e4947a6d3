"""rote store: store a motion of this computer as an action on the robot."""

from typing import Annotated, NamedTuple

import typer

from rote.cli import takes
from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Keylog,
    Overwrite,
    RobotChoice,
    RobotUrl,
    Timeout,
    connect_to,
    print_json,
    require_ability,
    run,
)
from rote.messages import MAX_KEYFRAMES
from rote.transport.wires import EMBEDDED


def store(
    motion: Annotated[
        str, typer.Argument(metavar="FILE", help="A file with a motion, like wave.mcap.")
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="The action's name on the robot.")],
    take: Annotated[
        bool, typer.Option("--take", help="FILE is a take on this computer: rote takes list.")
    ] = False,
    budget: Annotated[
        int, typer.Option(metavar="N", help="Maximum number of keyframes.")
    ] = MAX_KEYFRAMES,
    loop: Annotated[
        bool, typer.Option("--loop", help="Mark the action to be played in a loop until stopped.")
    ] = False,
    overwrite: Overwrite = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> None:
    """Store a motion of this computer on the robot, as keyframes.

    Refused if the allowed keyframes cannot reproduce the motion closely enough.

    Works over udp:// and sim:// only. `rote play FILE` plays any motion without storing it.
    """
    options = _StoreOptions(motion, take, name, budget, loop, overwrite)
    run(_store_motion(RobotChoice(robot, key, keylog, timeout), options, as_json))


class _StoreOptions(NamedTuple):
    """Which motion to store, and how."""

    motion: str
    """A file, or if `is_take` the name of a take."""
    is_take: bool
    name: str
    """The action's name on the robot."""
    budget: int
    """Maximum number of keyframes."""
    loop: bool
    overwrite: bool


async def _store_motion(target: RobotChoice, options: _StoreOptions, as_json: bool) -> None:
    from rote.cli import output

    require_ability(target, "store", "store a motion that the robot was not taught")
    from rote.motion.files.agreed_origins import is_agreed

    remedy = "Name the take: rote store {name} NAME --take"
    track = takes.load_motion(options.motion, options.is_take, remedy)
    async with connect_to(target) as robot:
        with output.show_spinner("searching keyframes"):
            stored = await robot.store_track(
                track,
                options.name,
                budget=options.budget,
                overwrite=options.overwrite,
                loop=options.loop,
                imported=is_agreed(track.origin),
            )
    if as_json:
        print_json(
            {
                "name": options.name,
                "keyframes": len(stored.keyframes),
                "max_error_rad": stored.max_error_rad,
                "rms_error_rad": stored.rms_error_rad,
            }
        )
        return
    error = f"{stored.max_error_rad:.3f} rad off at most"
    print(f"Stored {options.name} as {len(stored.keyframes)} keyframes, {error}.")
