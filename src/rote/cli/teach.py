"""rote teach: the arms become soft, a person moves them, the robot stores the motion."""

import asyncio
import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
    choice,
    connect_to,
    parse_floats,
    print_json,
    print_stopped,
    require_ability,
    run,
)
from rote.errors import BadRequestError, LinkError, RoteError
from rote.messages import HAND_SCRIPTS
from rote.motion.formats import endings
from rote.platform.atomic_file import check_new
from rote.transport.wires import EMBEDDED, EMBEDDED_A1

if TYPE_CHECKING:
    from rich.console import Console

    from rote.robot.robot import Robot
    from rote.robot.take import Take

_ARMS_WARNING = (
    "Safety: Before teaching, keep the robot standing under control. Ensure smooth trajectories, "
    "stable balance, and avoid self-collision or singularities.\n"
    'The arms are about to get soft, which the app asks as "Enter damping mode?": hold them. '
    "Ctrl-C discards."
)
"""The first sentences are those of the phone app's own question before teaching."""
_LEGS_WARNING = (
    "The robot must lie or hang: its legs are about to get soft and carry nothing. "
    "Move them smoothly. Ctrl-C discards."
)
_NO_HAND_WARNING = "This robot is simulated: nothing moves its {limbs} by itself. {remedy}"
_COUNTDOWN_S = 3
_DEFAULT_HAND_S = 4.0


def teach(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The action's name.")],
    seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="Recording time; by default until you press Enter."),
    ] = None,
    hand: Annotated[
        str | None,
        typer.Option(
            metavar=choice(HAND_SCRIPTS), help="Simulated robot only: a script moves its arms."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help=f"Also write the take here: {endings()}."),
    ] = None,
    overwrite: Overwrite = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Teach even if the store is full or the robot does not balance."
        ),
    ] = False,
    loop: Annotated[
        bool, typer.Option("--loop", help="Mark the action to be played in a loop.")
    ] = False,
    compensation: Annotated[
        str,
        typer.Option(
            metavar="A,B,...", help="The 11 values in the keep-alive frames; by default 0."
        ),
    ] = "",
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Teach a motion by hand.

    The arms get soft, you move them, and the robot stores the motion. Ctrl-C discards it.
    """
    if hand is not None and seconds is None:
        seconds = _DEFAULT_HAND_S
    target = RobotChoice(robot, key, keylog, timeout)
    frame_options = _FrameOptions(loop, tuple(parse_floats(compensation)) if compensation else ())
    options = _TeachOptions(
        target, name, seconds, hand, out, overwrite, force, as_json, frame_options
    )
    return run(_teach_action(options))


@dataclass(frozen=True, slots=True)
class _FrameOptions:
    """Options that only the documented frames support."""

    loop: bool = False
    compensation: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _TeachOptions:
    """The options of `rote teach`."""

    target: RobotChoice
    name: str
    seconds: float | None
    hand: str | None
    out: Path | None
    overwrite: bool
    force: bool
    as_json: bool
    frame_options: _FrameOptions = _FrameOptions()


async def _teach_action(options: _TeachOptions) -> None:
    from rote.cli import output

    _check_options(options)
    takes.recover_unfinished_takes()
    screen = output.console(quiet=options.as_json)
    async with connect_to(options.target, "teach", quiet=options.as_json) as robot:
        # All checks come before the user is asked to hold the robot.
        overwrite = options.overwrite and "overwrite" in robot.abilities
        await robot.check_teachable(options.name, overwrite=overwrite, force=options.force)
        output.print_findings(screen, await robot.preflight())
        limbs = robot.build.limbs
        take = None
        _warn_if_no_hand(options, robot)
        try:
            await _wait_until_user_is_ready(screen, options, limbs)
            async with robot.teach(
                options.name,
                overwrite=overwrite,
                force=options.force,
                library=takes.library(),
                loop=options.frame_options.loop,
                compensation=options.frame_options.compensation,
            ) as take:
                await _record_motion(screen, robot, take, options)
        except asyncio.CancelledError:
            _print_interrupted(options, take, limbs)
            raise
        except RoteError as error:
            if isinstance(error, LinkError):
                error.headline = _describe_lost_link(limbs)
            if take is not None:
                _keep_partial_take(take, options.as_json)
            raise
        stores_actions = "list" in robot.abilities
    if options.out is not None and take.samples:
        _save_out(take, options.out, stores_actions=stores_actions)
    else:
        save_elsewhere(take)
    _print_result(screen, options, take, stores_actions=stores_actions)


def _describe_lost_link(limbs: str) -> str:
    hold_phrase = "are braked" if limbs == "legs" else "hold"
    return f"the {limbs} may still be soft: the robot did NOT confirm that they {hold_phrase}"


def _keep_partial_take(take: "Take", as_json: bool) -> None:
    """Save the take of a failed recording, and print how to show it."""
    save_elsewhere(take)
    if take.file is not None and not as_json:
        message = f"The recording up to that point is kept: rote takes show {take.file.stem}"
        print(message, file=sys.stderr, flush=True)


def _warn_if_no_hand(options: _TeachOptions, robot: "Robot") -> None:
    """Warn if nothing will move the limbs of a simulated robot."""
    if "hand" in robot.abilities and options.hand is None:
        remedy = "Add --hand wave for a scripted hand, or move them with the mouse: rote web."
    elif options.target.url == EMBEDDED_A1:
        remedy = "For a scripted hand: --robot 'sim://a1?hand=paw'."
    else:
        return
    if not options.as_json:
        message = _NO_HAND_WARNING.format(limbs=robot.build.limbs, remedy=remedy)
        print(message, file=sys.stderr, flush=True)


def _warn_if_unwritable(take: "Take", was_warned: bool) -> bool:
    """Print a warning, once, if a take cannot be written; return whether it cannot."""
    if take.file_problem is not None and not was_warned:
        print(
            f"rote: the take cannot be written: {take.file_problem}. Recording goes on in memory.",
            file=sys.stderr,
            flush=True,
        )
    return take.file_problem is not None


def save_elsewhere(take: "Take") -> None:
    """Write a take to another folder if the library's disk refuses it, and print where it is."""
    from rote.motion.files.disk import find_spare_folders
    from rote.motion.files.library import write_new

    if take.file is not None or take.file_problem is None or take.samples < 2:
        return  # saved, not refused, or too short to be a track
    track = take.track
    for folder in find_spare_folders(track.joints_rad.nbytes):
        try:
            take.file = write_new(track, folder, take.name)
        except RoteError:
            continue
        print(
            f"rote: {take.file_problem}. The take is in {take.file}: once there is free space, run "
            f"rote takes import {shlex.quote(str(take.file))}",
            file=sys.stderr,
            flush=True,
        )
        return
    print("rote: the take is LOST: no folder has enough free space", file=sys.stderr, flush=True)


def _save_out(take: "Take", out: Path, *, stores_actions: bool) -> None:
    """Write the take to the file of --out; if that fails, print where else the motion is."""
    from rote.motion.files import save

    try:
        save(take.track, out)
    except OSError:
        save_elsewhere(take)
        action_note = (
            f"the action {take.name!r} is on the robot" if stores_actions else "it was taught"
        )
        take_note = f", and its take is in {take.file}" if take.file is not None else ""
        print(f"Only --out failed: {action_note}{take_note}.", file=sys.stderr, flush=True)
        raise


def _print_interrupted(options: _TeachOptions, take: "Take | None", limbs: str) -> None:
    """After Ctrl-C, print what is stored on the robot and on this computer."""
    limbs_note = "the legs are braked" if limbs == "legs" else "the arms hold"
    is_on_robot = take is not None and take.on_robot
    stored_note = (
        f"the action {options.name!r} is on the robot" if is_on_robot else "nothing was saved"
    )
    if is_on_robot and take is not None and take.file is not None:
        stored_note += f", its take is in {take.file}"
    print_stopped(f"{stored_note}, and {limbs_note}", options.as_json, saved=is_on_robot)


def _check_options(options: _TeachOptions) -> None:
    from rote.cli import output
    from rote.robot.api_values import check_name, check_seconds

    check_name(options.name)
    require_ability(options.target, "teach", "be taught by hand")
    if options.hand is not None:
        require_ability(options.target, "hand", "have a scripted hand at the legs")
    if options.overwrite and options.out is None:  # with a file, --overwrite is for that
        require_ability(options.target, "overwrite", "store actions, so --overwrite has no effect")
    if options.frame_options != _FrameOptions():
        require_ability(options.target, "frames", "be taught with a loop or compensation")
    if options.seconds is not None:
        check_seconds(options.seconds, "a recording")
    elif options.as_json or not output.stdin_is_terminal():
        raise BadRequestError("the recording time is missing", "Add --seconds 8, for example.")
    if options.hand is not None:
        check_hand(options.hand)
    if options.out is not None:
        _check_writable(options.out, overwrite=options.overwrite)


def check_hand(hand: str) -> None:
    """Raise `BadRequestError` if there is no scripted hand of this name."""
    if hand not in HAND_SCRIPTS:
        known = ", ".join(HAND_SCRIPTS)
        raise BadRequestError(f"unknown hand script {hand!r}", f"Use one of: {known}.")


def _check_writable(path: Path, *, overwrite: bool) -> None:
    from rote.motion.files import format_of

    format_of(path)
    check_new(path, overwrite)
    if not os.access(path.parent, os.W_OK):
        raise BadRequestError(f"{path.parent} cannot be written to", "Choose another folder.")


async def _wait_until_user_is_ready(screen: "Console", options: _TeachOptions, limbs: str) -> None:
    """Give the user at the terminal time to take hold of the arms or legs."""
    from rote.cli import output

    if limbs == "legs":
        # If this runs unattended, the log must show it too.
        print(_LEGS_WARNING, file=sys.stderr, flush=True)
    if options.hand is None and not options.as_json and output.stdin_is_terminal():
        await wait_until_held(screen, limbs, counts_down=options.seconds is not None)


async def wait_until_held(screen: "Console", limbs: str, *, counts_down: bool) -> None:
    """Ask the user to hold the limbs; then wait for Enter, or if `counts_down` for 3 seconds."""
    from rote.cli import output

    if limbs == "arms":
        screen.print(_ARMS_WARNING, style="yellow")
    if not counts_down:
        screen.print(f"Press Enter when you hold the {limbs}.")
        if not await output.wait_for_enter():  # the end of the input: no operator holds them
            raise BadRequestError("the input ended, so nothing got soft", "Press Enter to begin.")
        return
    for seconds_left in range(_COUNTDOWN_S, 0, -1):
        screen.print(f"{seconds_left}...")
        await asyncio.sleep(1)


async def _record_motion(
    screen: "Console", robot: "Robot", take: "Take", options: _TeachOptions
) -> None:
    if options.hand is not None:
        assert options.seconds is not None
        await robot.move_by_hand(options.hand, options.seconds)
    if options.seconds is None:
        await _record_until_enter(screen, take)
    else:
        await record_for_seconds(screen, take, options.seconds)


async def record_for_seconds(screen: "Console", take: "Take", seconds: float) -> None:
    """Let a recording run for this time, and show a progress bar."""
    from rote.cli import output

    loop = asyncio.get_running_loop()
    end_s = loop.time() + seconds
    was_warned = False
    with output.show_progress(screen, "recording") as set_progress:
        while (remaining_s := end_s - loop.time()) > 0:
            was_warned = _warn_if_unwritable(take, was_warned)
            set_progress(
                1 - remaining_s / seconds, f"{remaining_s:4.1f} s left, {take.samples} samples"
            )
            await asyncio.sleep(min(0.1, remaining_s))


async def _record_until_enter(screen: "Console", take: "Take") -> None:
    """Let a recording run until Enter or its maximum duration, and show a progress bar."""
    from rote.cli import output
    from rote.messages import MAX_DURATION_MS

    screen.print(output.styled(("Recording.", "bold"), " Press Enter to end."))
    loop = asyncio.get_running_loop()
    max_s = MAX_DURATION_MS / 1000
    began_s = loop.time()
    was_warned = False
    pressed = asyncio.ensure_future(output.wait_for_enter())
    try:
        with output.show_progress(screen, "recording") as set_progress:
            while not pressed.done() and (elapsed_s := loop.time() - began_s) < max_s:
                was_warned = _warn_if_unwritable(take, was_warned)
                message = f"{elapsed_s:5.1f} s of at most {max_s:.0f}, {take.samples} samples"
                set_progress(elapsed_s / max_s, message)
                await asyncio.wait({pressed}, timeout=0.1)
    finally:
        pressed.cancel()


_LACK_TEXTS = {
    "positions": "The robot reports no joint positions: the action is on it, but there is no take.",
    "joints": "The robot does not report all joints: the others stay at rest in the take.",
    "clock": "The robot does not report its time: the take uses this computer's clock.",
    "rate": "The robot reports its joints too rarely: the take contains poses, hardly the motion.",
}
"""What a take lacks, by the value of its `Lack`."""


def _describe_result(take: "Take", *, stores_actions: bool) -> tuple[str, str]:
    """Return the sentence that reports a taught motion: its verb, and what follows the name."""
    result = f": {take.duration_s:.2f} s, recorded at {take.rate_hz:.0f} Hz. "
    if not stores_actions:
        return "Recorded", f"{result}The {take.build.limbs} are braked again."
    if not take.samples:
        duration = "" if take.robot_s is None else f": {take.robot_s:.1f} s"
        result = f" on the robot{duration}. "
    verb = "Saved" if take.saved else "Taught"
    return verb, f"{result}The arms hold again, and may return softly."


def _print_result(
    screen: "Console", options: _TeachOptions, take: "Take", *, stores_actions: bool
) -> None:
    """Print what was recorded, where it is stored, and how to play it.

    `stores_actions` means that the robot has stored the motion too.
    """
    from rote.cli import output
    from rote.robot.take import Lack

    if options.as_json:
        written = None if options.out is None or not take.samples else str(options.out)
        is_on_computer = take.file is not None or written is not None
        print_json(
            {
                "name": options.name,
                "saved": take.saved if stores_actions else is_on_computer,
                "duration_s": round(take.duration_s, 3),
                "samples": take.samples,
                "rate_hz": round(take.rate_hz, 2),
                "moved": take.moved,
                "build": take.build.name,
                "lacks": sorted(lack.value for lack in take.lacks),
                "robot_s": take.robot_s,
                "robot_note": take.robot_note,
                "file": written,
                "take": None if take.file is None else str(take.file),
            }
        )
        return
    verb, result = _describe_result(take, stores_actions=stores_actions)
    screen.print(output.styled((verb, "green"), " ", (options.name, "bold"), result))
    if take.robot_note:
        screen.print(
            f"The robot reports: {output.make_printable(take.robot_note)}.", style="yellow"
        )
    if take.moved is False:
        screen.print("Nothing moved during the recording.", style="yellow")
    for lack in Lack:
        if lack in take.lacks:
            screen.print(_LACK_TEXTS[lack.value], style="yellow")
    only_here = "" if stores_actions else f"; {output.describe_robot(take.build)} itself keeps none"
    if options.out is not None and take.samples:
        screen.print(f"The take is in {options.out}{only_here}.")
    elif take.file is not None:
        screen.print(f"The take is in {take.file}{only_here}.", style="dim")
    if take.file_problem is not None and take.file is None:
        screen.print(f"The take is not on this computer: {take.file_problem}", style="yellow")
    if options.out is not None and not take.samples:
        screen.print(f"Nothing is in {options.out}: there is no take.", style="yellow")
    option = "" if stores_actions else " --take"
    command = f"{output.find_command_name(sys.argv[0])} play {shlex.quote(options.name)}{option}"
    screen.print(f"Play it: {command}{options.target.arguments}", style="dim")
