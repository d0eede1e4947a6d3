"""Commands that make a single request to a robot: status, list, rename, delete, stop, modes."""

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
    describe_failed_stop,
    print_json,
    require_ability,
    run,
)
from rote.cli.wording import finding_json
from rote.errors import BadRequestError, LinkError, RoteError
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.messages import RobotState
    from rote.robot.api_values import ModeReport
    from rote.robot.robot import Robot


def status(
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Show the robot's state, and what to do before it moves."""
    return run(_show_status(RobotChoice(robot, key, keylog, timeout), as_json))


_NO_ACTIONS_REMEDY = "Its motions are on this computer: rote takes list."


async def _show_status(target: RobotChoice, as_json: bool) -> None:
    from rote.cli import output

    async with connect_to(target, "states") as robot:
        mode = await robot.modes.read() if "mode" in robot.abilities else None
        findings = await robot.preflight()
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
                "arms": "soft" if state.arms_soft else "holding" if state.has_phase else None,
                "recording": state.recording,
                "playing": state.playing,
                "taught": None if actions is None else len(actions.taught),
                "free_places": None if actions is None else actions.free_places,
                "battery_percent": state.battery_percent,
                "hottest_c": max(state.temperatures_c, default=None),
                "faults": list(state.faults),
                "findings": [finding_json(finding) for finding in findings],
            }
        )
        return
    out = output.console()
    mode_text = "" if mode is None else f"  mode {mode.id}, {mode.name}: {mode.label}"
    out.print(output.styled((target.url, "bold"), mode_text))
    out.print(f"{build.title} ({build.name})")
    if build.hands:
        attached = ", ".join(f"{hand.side} {hand.name}" for hand in build.hands)
        out.print(f"hands: {attached}")
    if actions is not None:
        used = len(actions.taught)
        slots = f"{used} of {used + actions.free_places} slots for actions used"
        out.print(f"{build.limbs} {_describe_limbs(state)}; {slots}")
    if health := output.describe_health(state, build):
        out.print(health)
    output.print_findings(out, findings)
    if not findings:
        out.print("Ready to teach and to play.", style="green")


def _describe_limbs(state: "RobotState") -> str:
    if not state.has_phase:
        return "not reported"
    if state.arms_soft:
        return "soft"
    return "moving" if state.playing else "holding"


def list_actions(
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """List the presets and the taught actions on the robot."""
    return run(_list_actions(RobotChoice(robot, key, keylog, timeout), as_json))


async def _list_actions(target: RobotChoice, as_json: bool) -> None:
    from rote.cli import output

    require_ability(target, "list", "store actions", _NO_ACTIONS_REMEDY)
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
    output.print_actions(output.console(), actions)


def rename(
    old: Name,
    new: Annotated[str, typer.Argument(metavar="NAME", help="Its new name.")],
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Rename a taught action; an existing name is refused."""
    return run(_rename_action(RobotChoice(robot, key, keylog, timeout), old, new, as_json))


async def _rename_action(target: RobotChoice, old: str, new: str, as_json: bool) -> None:
    require_ability(target, "list", "store actions", _NO_ACTIONS_REMEDY)
    async with connect_to(target) as robot:
        await robot.rename(old, new)
    if as_json:
        print_json({"renamed": old, "to": new})
    else:
        print(f"Renamed {old} to {new}.")


def delete(
    name: Name,
    yes: Annotated[bool, typer.Option("--yes", help="Delete without asking.")] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Delete a taught action permanently. Asks first."""
    return run(_delete_action(RobotChoice(robot, key, keylog, timeout), name, yes, as_json))


async def _delete_action(target: RobotChoice, name: str, confirmed: bool, as_json: bool) -> int:
    from rote.cli import output

    require_ability(target, "list", "store actions", _NO_ACTIONS_REMEDY)
    if not confirmed and (as_json or not output.stdin_is_terminal()):
        raise BadRequestError(
            "deleting needs a confirmation, and there is no terminal to ask on",
            "Add --yes to delete it.",
        )
    async with connect_to(target) as robot:
        robot.check_can_delete()
        action = (await robot.actions()).find(name)
        if action is not None and not confirmed:
            print(
                f"Delete {name!r} ({action.duration_s:.1f} s) from the robot? "
                "This cannot be undone."
            )
            if not await output.ask_yes("Type yes to delete it: "):
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
    return run(_stop_robot(RobotChoice(robot, key, keylog, timeout), as_json))


@contextmanager
def _explain_failed_stop(url: str) -> Iterator[None]:
    """Make every error in the block begin with what the stop failed to do, and with a remedy."""
    # Not `wire_of`: it raises an error for a wrong URL, which must be explained too.
    limbs = "legs" if url.lower().startswith(("a1:", "sim://a1")) else "arms"
    try:
        yield
    except RoteError as error:
        error.headline = describe_failed_stop(error, limbs)
        raise
    except OSError as error:
        link_error = LinkError(str(error))
        link_error.headline = describe_failed_stop(error, limbs)
        raise link_error from error
    except BaseException as error:  # Ctrl-C, or a bug, whose traceback follows
        headline = describe_failed_stop(error, limbs, sent=True)
        print(f"rote: {headline}", file=sys.stderr, flush=True)
        raise


async def _stop_robot(target: RobotChoice, as_json: bool) -> None:
    from rote.cli import output
    from rote.connection import stop as stop_at
    from rote.transport.wires import wire_of

    with _explain_failed_stop(target.url), output.show_spinner(f"stopping {target.url}"):
        wire = wire_of(target.url)
        stopped = await stop_at(
            target.url, key=target.choose_key(), keylog=target.keylog, timeout=target.timeout_s
        )
    if as_json:
        state = {"state": stopped.state} if stopped.state else {}
        print_json({"stopped": True, "was": stopped.was, **state})
        return
    if stopped.state:
        print(f"Stopped: {stopped.state}.")
    else:
        rest_note = "; nothing moves now" if stopped.at_rest else ""
        print(_STOPPED_TEXTS.get(stopped.was, f"The robot confirmed the stop{rest_note}."))
    is_embedded_robot = "hand" in wire.abilities and "rename" in wire.abilities
    if is_embedded_robot:
        print(
            "This embedded robot existed only in this command. To stop a motion of another "
            "terminal, press Ctrl-C there; for one robot in several terminals, run: rote sim."
        )


_STOPPED_TEXTS: dict[str | None, str] = {
    "nothing": "Nothing was moving; the robot confirmed the stop.",
    "playing": "Stopped the playback; the arms return softly.",
    "teaching": "Ended the teaching; the arms hold.",
}
"""The message for each activity that a stop ended."""


_REQUESTABLE_MODES = ("stand", "damp")


def modes(
    target: Annotated[
        str | None,
        typer.Argument(metavar="|".join(_REQUESTABLE_MODES), help="Leave it out to see all modes."),
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
    return run(_show_or_change_mode(RobotChoice(robot, key, keylog, timeout), target, yes, as_json))


_DAMP_WARNING = (
    "Damping makes all joints limp, legs and arms: a standing robot sinks to the floor, and "
    "may fall. Hold it, or hang it up, before you go on. (For soft arms alone: rote teach.)"
)


async def _damp_robot(robot: "Robot", confirmed: bool, as_json: bool) -> "ModeReport | None":
    """Damp the joints. If the robot could fall, ask first, and return None if the user refuses."""
    from rote.cli import output
    from rote.errors import CautionError

    try:
        return await robot.modes.damp(yes=confirmed)
    except CautionError:
        if as_json or not output.stdin_is_terminal():
            raise
    print(_DAMP_WARNING)
    if not await output.ask_yes("Type yes to damp it: "):
        print("Nothing was changed.")
        return None
    return await robot.modes.damp(yes=True)


async def _show_or_change_mode(
    robot_choice: RobotChoice, target: str | None, confirmed: bool, as_json: bool
) -> int:
    from rote.cli import output

    if target not in (None, *_REQUESTABLE_MODES):
        raise BadRequestError(f"unknown mode {target!r}", "Use stand or damp.")
    require_ability(
        robot_choice, "mode", "change to a G1's modes", "Use: rote a1 stand, or rote a1 lie"
    )
    out = output.console()
    async with connect_to(robot_choice) as robot:
        mode: ModeReport | None
        if target is None:
            mode = await robot.modes.read()
        elif target == "stand":
            with output.show_spinner("changing the mode"):
                mode = await robot.modes.stand()
        else:
            mode = await _damp_robot(robot, confirmed, as_json)
        modes = () if robot.family is None else robot.family.modes.all
    if mode is None:
        return 1
    if as_json:
        print_json({"id": mode.id, "name": mode.name, "balanced": mode.balanced})
    elif target is None:
        output.print_modes(out, mode.id, modes)
    else:
        out.print(f"The robot is in mode {mode.id}, {mode.name}: {mode.label}.")
    return 0
