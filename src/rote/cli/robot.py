"""Commands that ask a robot one thing: status, list, rename, delete, stop, modes."""

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import (
    A1_SCHEME,
    EMBEDDED,
    Json,
    Key,
    Keylog,
    Name,
    NotForA1Error,
    Robot,
    Target,
    print_json,
    reach,
    run,
)
from rote.errors import BadRequestError, RoteError

if TYPE_CHECKING:
    from rote.messages import RobotState
    from rote.robot.g1 import G1

_STATE_S = 1.0


def status(
    robot: Robot = EMBEDDED, key: Key = None, keylog: Keylog = None, as_json: Json = False
) -> int:
    """Say how the robot is and what to do before it moves."""
    return run(_status(Target(robot, key, keylog), as_json))


def _refuse_a1(url: str, what: str, instead: str) -> None:
    if url.startswith(A1_SCHEME):
        raise NotForA1Error(what, instead)


def _refuse_actions(url: str) -> None:
    _refuse_a1(url, "keep actions", "Its motions are on this computer: rote takes list.")


async def _status(target: Target, as_json: bool) -> None:
    from rote.cli import show

    _refuse_a1(target.url, "tell a G1's status", f"Use: rote a1 status{target.words}")
    async with reach(target) as robot:
        mode, found, actions = await robot.mode(), await robot.preflight(), await robot.actions()
        state = robot.state
        assert state is not None
    if as_json:
        print_json(
            {
                "robot": target.url,
                "mode": {"id": mode.id, "name": mode.name, "balanced": mode.balanced},
                "arms": "soft" if state.arms_soft else "holding",
                "recording": state.recording,
                "playing": state.playing,
                "taught": len(actions.taught),
                "free_places": actions.free_places,
                "battery_percent": state.battery_percent,
                "hottest_c": max(state.temperatures_c, default=None),
                "faults": list(state.faults),
                "findings": [
                    {"severity": f.severity.value, "message": f.words, "remedy": f.remedy}
                    for f in found
                ],
            }
        )
        return
    out = show.console()
    told = f"  mode {mode.id}, {mode.name}: {mode.words}"
    out.print(show.styled((target.url, "bold"), told))
    arms = "soft" if state.arms_soft else "moving" if state.playing else "holding"
    used = len(actions.taught)
    out.print(f"arms {arms}; {used} of {used + actions.free_places} places for actions taken")
    if health := show.health(state):
        out.print(health)
    show.findings(out, found)
    if not found:
        out.print("Ready to teach and to play.", style="green")


def list_actions(
    robot: Robot = EMBEDDED, key: Key = None, keylog: Keylog = None, as_json: Json = False
) -> int:
    """List the presets and the taught actions on the robot."""
    return run(_list(Target(robot, key, keylog), as_json))


async def _list(target: Target, as_json: bool) -> None:
    from rote.cli import show

    _refuse_actions(target.url)
    async with reach(target) as robot:
        actions = await robot.actions()
    if as_json:
        print_json(
            {
                "presets": [{"id": p.id, "name": p.name} for p in actions.presets],
                "taught": [{"name": a.name, "duration_s": a.duration_s} for a in actions.taught],
            }
        )
        return
    show.actions(show.console(), actions)


def rename(
    old: Name,
    new: Annotated[str, typer.Argument(help="Its new name.")],
    robot: Robot = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    as_json: Json = False,
) -> int:
    """Rename a taught action; a name that is taken is refused."""
    return run(_rename(Target(robot, key, keylog), (old, new), as_json))


async def _rename(target: Target, names: tuple[str, str], as_json: bool) -> None:
    _refuse_actions(target.url)
    async with reach(target) as robot:
        await robot.rename(*names)
    if as_json:
        print_json({"renamed": names[0], "to": names[1]})
    else:
        print(f"Renamed {names[0]} to {names[1]}.")


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    robot: Robot = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    as_json: Json = False,
) -> int:
    """Delete a taught action for good. It asks first."""
    return run(_delete(Target(robot, key, keylog), name, yes, as_json))


async def _delete(target: Target, name: str, sure: bool, as_json: bool) -> int:
    from rote.cli import show

    _refuse_actions(target.url)
    if not sure and (as_json or not show.stdin_is_terminal()):
        raise BadRequestError(
            "nobody can be asked whether to delete it", "Add --yes if you mean it."
        )
    async with reach(target) as robot:
        robot.check_can_delete()
        action = (await robot.actions()).find(name)
        if action is not None and not sure:
            print(
                f"Delete {name!r} ({action.duration_s:.1f} s) from the robot? There is no way back."
            )
            if not await show.agreed():
                print("Nothing was deleted.")
                return 1
        await robot.delete(name)
    if as_json:
        print_json({"deleted": name})
    else:
        print(f"Deleted {name}.")
    return 0


def stop(
    robot: Robot = EMBEDDED, key: Key = None, keylog: Keylog = None, as_json: Json = False
) -> int:
    """Stop what plays or is being taught, softly. A walking A1 stands still.

    This is a software stop, not an emergency stop.
    """
    if robot.startswith(A1_SCHEME):
        return run(_stop_a1(robot, as_json))
    return run(_stop(Target(robot, key, keylog), as_json))


async def _stop_a1(url: str, as_json: bool) -> None:
    from rote.cli.a1 import reach as a1_reach

    stopped = await a1_reach.stop(url)
    if as_json:
        print_json({"stopped": True, "was": stopped.was, "state": stopped.state})
    else:
        print(f"Stopped: {stopped.state}.")


async def _stop(target: Target, as_json: bool) -> None:
    async with reach(target) as robot:
        # Nothing is asked before the stop; what went on is what is known anyway, or seen after it.
        before = robot.state
        await robot.stop()
        after = None if before is not None else await _next_state(robot)
    was = _what_went_on(before, after)
    if as_json:
        print_json({"stopped": True, "was": was})
        return
    words = {
        None: "The robot confirmed the stop; nothing moves now."
        if after is not None
        else "The robot confirmed the stop.",
        "nothing": "Nothing was moving; the robot confirmed the stop.",
        "playing": "Stopped the playback; the arms return softly.",
        "teaching": "Ended the teaching; the arms hold.",
    }
    print(words[was])
    if target.url.startswith("sim:"):
        print(
            "This embedded robot lived in this command alone. To stop a motion of another "
            "terminal, press Ctrl-C there; for one robot in several terminals, run: rote sim."
        )


async def _next_state(robot: "G1") -> "RobotState | None":
    """Return the next state; None where none comes, which makes a stop no less a stop."""
    with suppress(TimeoutError, RoteError):
        async with asyncio.timeout(_STATE_S):
            async for state in robot.states():
                return state
    return None


def _what_went_on(before: "RobotState | None", after: "RobotState | None") -> str | None:
    """Return what was stopped; None where that is not known. Arms still return after a stop."""
    seen = before or after
    if seen is not None and seen.playing:
        return "playing"
    if before is None:
        return None
    return "teaching" if before.arms_soft else "nothing"


def modes(
    target: Annotated[
        str | None, typer.Argument(help="stand or damp; leave it out to see all modes.")
    ] = None,
    robot: Robot = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    as_json: Json = False,
) -> int:
    """Show the robot's modes, or change to one.

    `rote modes stand` brings it into a balanced standing, `rote modes damp` damps all joints.
    """
    return run(_modes(Target(robot, key, keylog), target, as_json))


async def _modes(at: Target, target: str | None, as_json: bool) -> None:
    from rote.cli import show

    if target not in (None, "stand", "damp"):
        raise BadRequestError(f"there is no mode {target!r} to go to", "Use stand or damp.")
    _refuse_a1(at.url, "change to a G1's modes", "Use: rote a1 stand, or rote a1 lie")
    out = show.console()
    async with reach(at) as robot:
        if target is None:
            mode = await robot.mode()
        else:
            with show.waiting("changing the mode"):
                mode = await (robot.stand() if target == "stand" else robot.damp())
    if as_json:
        print_json({"id": mode.id, "name": mode.name, "balanced": mode.balanced})
        return
    if target is None:
        show.modes(out, mode.id)
    else:
        out.print(f"The robot is in mode {mode.id}, {mode.name}: {mode.words}.")
