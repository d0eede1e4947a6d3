"""Commands that ask a robot one thing: status, list, rename, delete, stop, modes."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Keylog,
    Name,
    RobotChoice,
    RobotUrl,
    Timeout,
    connect_to,
    failed_stop,
    print_json,
    require_ability,
    run,
)
from rote.cli.wording import finding_json, worded
from rote.errors import BadRequestError, LinkError, RoteError
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.robot.api_values import ModeReport
    from rote.robot.robot import Robot


def status(
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Say how the robot is and what to do before it moves."""
    return run(_status(RobotChoice(robot, key, keylog, timeout), as_json))


_KEEPS_NONE = "Its motions are on this computer: rote takes list."


async def _status(target: RobotChoice, as_json: bool) -> None:
    from rote.cli import output

    async with connect_to(target, "states") as robot:
        mode = await robot.modes.read() if "mode" in robot.abilities else None
        found = await robot.preflight()
        actions = await robot.actions() if "list" in robot.abilities else None
        state, build = robot.state, robot.build
        assert state is not None
    if as_json:
        print_json(
            {
                "robot": target.url,
                "family": build.family,
                "build": build.name,
                "hands": [
                    {
                        "name": hand.name,
                        "side": hand.side,
                        "reports": hand.side not in state.silent_hands,
                    }
                    for hand in build.hands
                ],
                "mode": mode and {"id": mode.id, "name": mode.name, "balanced": mode.balanced},
                "arms": "soft" if state.arms_soft else "holding" if state.phase_told else None,
                "recording": state.recording,
                "playing": state.playing,
                "taught": None if actions is None else len(actions.taught),
                "free_places": None if actions is None else actions.free_places,
                "battery_percent": state.battery_percent,
                "hottest_c": max(state.temperatures_c, default=None),
                "faults": list(state.faults),
                "findings": [{**finding_json(f), "message": worded(f.message)} for f in found],
            }
        )
        return
    out = output.console()
    shown_mode = "" if mode is None else f"  mode {mode.id}, {mode.name}: {mode.label}"
    out.print(output.styled((target.url, "bold"), shown_mode))
    out.print(f"{build.title} ({build.name})")
    if build.hands:
        worn = ", ".join(f"{hand.side} {hand.name}" for hand in build.hands)
        out.print(f"hands: {worn}")
    limbs = "soft" if state.arms_soft else "moving" if state.playing else "holding"
    limbs = limbs if state.phase_told else "not reported"
    if actions is not None:
        used = len(actions.taught)
        places = f"{used} of {used + actions.free_places} places for actions taken"
        out.print(f"{output.limbs(build)} {limbs}; {places}")
    if health := output.health(state, build):
        out.print(health)
    output.findings(out, found)
    if not found:
        out.print("Ready to teach and to play.", style="green")


def list_actions(
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """List the presets and the taught actions on the robot."""
    return run(_list(RobotChoice(robot, key, keylog, timeout), as_json))


async def _list(target: RobotChoice, as_json: bool) -> None:
    from rote.cli import output

    require_ability(target, "list", "keep actions", _KEEPS_NONE)
    async with connect_to(target) as robot:
        actions = await robot.actions()
    if as_json:
        print_json(
            {
                "presets": [{"id": p.id, "name": p.name} for p in actions.presets],
                "taught": [{"name": a.name, "duration_s": a.duration_s} for a in actions.taught],
                "notes": list(actions.notes),
            }
        )
        return
    output.actions(output.console(), actions)


def rename(
    old: Name,
    new: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Rename a taught action; a name that is taken is refused."""
    return run(_rename(RobotChoice(robot, key, keylog, timeout), (old, new), as_json))


async def _rename(target: RobotChoice, names: tuple[str, str], as_json: bool) -> None:
    require_ability(target, "list", "keep actions", _KEEPS_NONE)
    async with connect_to(target) as robot:
        await robot.rename(*names)
    if as_json:
        print_json({"renamed": names[0], "to": names[1]})
    else:
        print(f"Renamed {names[0]} to {names[1]}.")


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Delete a taught action permanently. Asks first."""
    return run(_delete(RobotChoice(robot, key, keylog, timeout), name, yes, as_json))


async def _delete(target: RobotChoice, name: str, sure: bool, as_json: bool) -> int:
    from rote.cli import output

    require_ability(target, "list", "keep actions", _KEEPS_NONE)
    if not sure and (as_json or not output.stdin_is_terminal()):
        raise BadRequestError(
            "deleting needs a confirmation, and there is no terminal to ask on",
            "Add --yes to delete it.",
        )
    async with connect_to(target) as robot:
        robot.check_can_delete()
        action = (await robot.actions()).find(name)
        if action is not None and not sure:
            print(
                f"Delete {name!r} ({action.duration_s:.1f} s) from the robot? "
                "This cannot be undone."
            )
            if not await output.ask_yes():
                print("Nothing was deleted.")
                return 1
        await robot.delete(name)
    if as_json:
        print_json({"deleted": name})
    else:
        print(f"Deleted {name}.")
    return 0


def stop(
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Stop playback or teaching softly; a walking A1 halts and stands.

    This is a software stop, not an emergency stop.
    """
    return run(_stop(RobotChoice(robot, key, keylog, timeout), as_json))


@contextmanager
def _heading_failed_stop(url: str) -> Iterator[None]:
    """Put the failure first in every message about a failed stop."""
    limbs = "legs" if url.lower().startswith(("a1:", "sim://a1")) else "arms"
    try:
        yield
    except RoteError as error:
        error.headline = failed_stop(error, limbs)
        raise
    except OSError as error:
        failed = LinkError(str(error))
        failed.headline = failed_stop(error, limbs)
        raise failed from error
    except BaseException as error:  # Ctrl-C, or a bug, whose traceback follows
        headline = failed_stop(error, limbs, sent=True)
        print(f"rote: {headline}", file=sys.stderr, flush=True)
        raise


async def _stop(target: RobotChoice, as_json: bool) -> None:
    from rote.cli import output
    from rote.connection import stop as stop_at
    from rote.transport.wires import wire_of

    with _heading_failed_stop(target.url), output.waiting(f"stopping {target.url}"):
        wire = wire_of(target.url)
        stopped = await stop_at(
            target.url, key=target.key_for(), keylog=target.keylog, timeout=target.timeout_s
        )
    if as_json:
        state = {"state": stopped.state} if stopped.state else {}
        print_json({"stopped": True, "was": stopped.was, **state})
        return
    if stopped.state:
        print(f"Stopped: {stopped.state}.")
    else:
        still = "; nothing moves now" if stopped.at_rest else ""
        print(_STOPPED.get(stopped.was, f"The robot confirmed the stop{still}."))
    if "hand" in wire.abilities and "rename" in wire.abilities:
        print(
            "This embedded robot existed only in this command. To stop a motion of another "
            "terminal, press Ctrl-C there; for one robot in several terminals, run: rote sim."
        )


_STOPPED: dict[str | None, str] = {
    "nothing": "Nothing was moving; the robot confirmed the stop.",
    "playing": "Stopped the playback; the arms return softly.",
    "teaching": "Ended the teaching; the arms hold.",
}
"""The message for each activity that a stop ended."""


_TARGETS = ("stand", "damp")


def modes(
    target: Annotated[
        str | None,
        typer.Argument(metavar="|".join(_TARGETS), help="Leave it out to see all modes."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="damp only: do not ask.")] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Show the robot's modes, or change to one.

    `rote modes stand` brings it into a balanced stand. `rote modes damp` makes all joints
    limp: a standing robot sinks to the floor, so it asks first. For soft arms use `rote teach`.
    """
    if yes and target != "damp":
        raise BadRequestError("--yes is for damp only", "Leave it out.")
    return run(_modes(RobotChoice(robot, key, keylog, timeout), target, yes, as_json))


_SINKS = (
    "Damping makes all joints limp, legs and arms: a standing robot sinks to the floor, and "
    "may fall. Hold it, or hang it up, before you go on. (For soft arms alone: rote teach.)"
)


async def _damp(robot: "Robot", sure: bool, as_json: bool) -> "ModeReport | None":
    """Damp the joints; if the robot would sink, only after a confirmation."""
    from rote.cli import output
    from rote.errors import CautionError

    try:
        return await robot.modes.damp(yes=sure)
    except CautionError:
        if as_json or not output.stdin_is_terminal():
            raise
    print(_SINKS)
    if not await output.ask_yes("Type yes to damp it: "):
        print("Nothing was changed.")
        return None
    return await robot.modes.damp(yes=True)


async def _modes(at: RobotChoice, target: str | None, sure: bool, as_json: bool) -> int:
    from rote.cli import output

    if target not in (None, *_TARGETS):
        raise BadRequestError(f"there is no mode {target!r} to go to", "Use stand or damp.")
    require_ability(at, "mode", "change to a G1's modes", "Use: rote a1 stand, or rote a1 lie")
    out = output.console()
    async with connect_to(at) as robot:
        mode: ModeReport | None
        if target is None:
            mode = await robot.modes.read()
        elif target == "stand":
            with output.waiting("changing the mode"):
                mode = await robot.modes.stand()
        else:
            mode = await _damp(robot, sure, as_json)
        modes = () if robot.family is None else robot.family.modes.all
    if mode is None:
        return 1
    if as_json:
        print_json({"id": mode.id, "name": mode.name, "balanced": mode.balanced})
    elif target is None:
        output.modes(out, mode.id, modes)
    else:
        out.print(f"The robot is in mode {mode.id}, {mode.name}: {mode.label}.")
    return 0
