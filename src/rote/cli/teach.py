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
from rote.cli.numbers import floats
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
    print_json,
    print_stopped,
    require_ability,
    run,
)
from rote.errors import BadRequestError, LinkError, RoteError
from rote.messages import HAND_SCRIPTS
from rote.motion.formats import endings
from rote.platform.atomic_file import check_new
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rich.console import Console

    from rote.model.family import Build
    from rote.robot.robot import Robot
    from rote.robot.take import Take

_ARMS_READY = (
    "Keep the robot standing under control, with space around it. Its arms are about to get "
    "soft: hold them. Move smoothly, and away from its own body. Ctrl-C discards."
)
_LEGS_READY = (
    "The robot must lie or hang: its legs are about to get soft and carry nothing. "
    "Move them smoothly. Ctrl-C discards."
)
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
        typer.Option("--force", help="Try even if rote objects: store full, unbalanced mode."),
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

    The arms get soft, you move them, and the robot stores what you showed. Ctrl-C discards it.
    """
    if hand is not None and seconds is None:
        seconds = _DEFAULT_HAND_S
    target = RobotChoice(robot, key, keylog, timeout)
    frame_options = _FrameOptions(loop, tuple(floats(compensation)) if compensation else ())
    options = _TeachOptions(
        target, name, seconds, hand, out, overwrite, force, as_json, frame_options
    )
    return run(_teach(options))


@dataclass(frozen=True, slots=True)
class _FrameOptions:
    """Options that only the documented frames support."""

    loop: bool = False
    compensation: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class _TeachOptions:
    """The options of the command line."""

    target: RobotChoice
    name: str
    seconds: float | None
    hand: str | None
    out: Path | None
    overwrite: bool
    force: bool
    as_json: bool
    frame_options: _FrameOptions = _FrameOptions()


async def _teach(options: _TeachOptions) -> None:
    from rote.cli import output

    _check_options(options)
    takes.rescue()
    screen = output.console(quiet=options.as_json)
    async with connect_to(options.target, "teach", quiet=options.as_json) as robot:
        # All checks come before the user is asked to hold the robot.
        overwrite = options.overwrite and "overwrite" in robot.abilities
        await robot.check_teachable(options.name, overwrite=overwrite, force=options.force)
        output.findings(screen, await robot.preflight())
        limbs, take = output.limbs(robot.build), None
        try:
            await _get_ready(screen, options, robot.build)
            async with robot.teach(
                options.name,
                overwrite=overwrite,
                force=options.force,
                library=takes.library(),
                loop=options.frame_options.loop,
                compensation=options.frame_options.compensation,
            ) as take:
                await _record(screen, robot, take, options)
        except asyncio.CancelledError:
            _print_interrupted(options, take, limbs)
            raise
        except RoteError as error:
            if isinstance(error, LinkError):
                held = "are braked" if limbs == "legs" else "hold"
                error.headline = (
                    f"the {limbs} may still be soft: the robot did NOT confirm that they {held}"
                )
            if take is not None:
                save_elsewhere(take)
            if take is not None and take.file is not None and not options.as_json:
                kept = f"The recording up to that point is kept: rote takes show {take.file.stem}"
                print(kept, file=sys.stderr, flush=True)
            raise
        keeps = "list" in robot.abilities
    if options.out is not None and take.samples:
        _save_out(take, options.out, keeps=keeps)
    else:
        save_elsewhere(take)
    _print_result(screen, options, take, keeps=keeps)


def _warn_if_unwritable(take: "Take", warned: bool) -> bool:
    """Print once that a take cannot be written while it is recorded; return whether it was."""
    if take.file_problem is not None and not warned:
        print(
            f"rote: the take cannot be written: {take.file_problem}. Recording goes on in memory.",
            file=sys.stderr,
            flush=True,
        )
    return take.file_problem is not None


def save_elsewhere(take: "Take") -> None:
    """Write a take to another folder if the library's disk refuses it, and print where it is."""
    from rote.motion.files.disk import spare_folders
    from rote.motion.files.library import write_new

    if take.file is not None or take.file_problem is None or take.samples < 2:
        return
    track = take.track
    for folder in spare_folders(track.joints_rad.nbytes):
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


def _save_out(take: "Take", out: Path, *, keeps: bool) -> None:
    """Write the take for --out; if that fails, print where the motion is stored anyway."""
    from rote.motion.files import save

    try:
        save(take.track, out)
    except OSError:
        save_elsewhere(take)
        where = f"the action {take.name!r} is on the robot" if keeps else "it was taught"
        kept = f", and its take is in {take.file}" if take.file is not None else ""
        print(f"Only --out failed: {where}{kept}.", file=sys.stderr, flush=True)
        raise


def _print_interrupted(options: _TeachOptions, take: "Take | None", limbs: str) -> None:
    """After Ctrl-C, print what is stored on the robot and on this computer."""
    left = "the legs are braked" if limbs == "legs" else "the arms hold"
    kept = take is not None and take.on_robot
    what = f"the action {options.name!r} is on the robot" if kept else "nothing was saved"
    if kept and take is not None and take.file is not None:
        what += f", its take is in {take.file}"
    print_stopped(f"{what}, and {left}", options.as_json, saved=kept)


def _check_options(options: _TeachOptions) -> None:
    from rote.cli import output
    from rote.robot.api_values import check_name, check_seconds

    check_name(options.name)
    require_ability(options.target, "teach", "be taught by hand")
    if options.hand is not None:
        require_ability(options.target, "hand", "have a scripted hand at the legs")
    if options.overwrite and options.out is None:  # with a file, --overwrite is for that
        require_ability(
            options.target, "overwrite", "keep actions, so that none can be overwritten"
        )
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
        raise BadRequestError(f"there is no hand {hand!r}", f"Use one of: {known}.")


def _check_writable(path: Path, *, overwrite: bool) -> None:
    from rote.motion.files import format_of

    format_of(path)
    check_new(path, overwrite)
    if not os.access(path.parent, os.W_OK):
        raise BadRequestError(f"{path.parent} cannot be written to", "Choose another folder.")


async def _get_ready(screen: "Console", options: _TeachOptions, build: "Build") -> None:
    """Give the user time to take hold of the arms, or legs."""
    from rote.cli import output

    what = output.limbs(build)
    if what == "legs":
        # If this runs unattended, the log must show it too.
        print(_LEGS_READY, file=sys.stderr, flush=True)
    if options.hand is not None or options.as_json or not output.stdin_is_terminal():
        return
    if what == "arms":
        screen.print(_ARMS_READY, style="yellow")
    if options.seconds is None:
        screen.print(f"Press Enter when you hold the {what}.")
        if not await output.enter_pressed():  # the end of the input: no operator holds them
            raise BadRequestError("the input ended, so nothing got soft", "Press Enter to begin.")
        return
    for left in range(_COUNTDOWN_S, 0, -1):
        screen.print(f"{left}...")
        await asyncio.sleep(1)


async def _record(screen: "Console", robot: "Robot", take: "Take", options: _TeachOptions) -> None:
    if options.hand is not None:
        assert options.seconds is not None
        await robot.move_by_hand(options.hand, options.seconds)
    if options.seconds is None:
        await _until_enter(screen, take)
    else:
        await for_seconds(screen, take, options.seconds)


async def for_seconds(screen: "Console", take: "Take", seconds: float) -> None:
    """Let a recording run for a time, with a progress bar."""
    from rote.cli import output

    loop = asyncio.get_running_loop()
    end, warned = loop.time() + seconds, False
    with output.bar(screen, "recording") as move:
        while (left := end - loop.time()) > 0:
            warned = _warn_if_unwritable(take, warned)
            move(1 - left / seconds, f"{left:4.1f} s left, {take.samples} samples")
            await asyncio.sleep(min(0.1, left))


async def _until_enter(screen: "Console", take: "Take") -> None:
    from rote.cli import output
    from rote.messages import MAX_DURATION_MS

    screen.print(output.styled(("Recording.", "bold"), " Press Enter to end."))
    loop = asyncio.get_running_loop()
    most = MAX_DURATION_MS / 1000
    began, warned = loop.time(), False
    pressed = asyncio.ensure_future(output.enter_pressed())
    try:
        with output.bar(screen, "recording") as move:
            while not pressed.done() and (spent := loop.time() - began) < most:
                warned = _warn_if_unwritable(take, warned)
                message = f"{spent:5.1f} s of at most {most:.0f}, {take.samples} samples"
                move(spent / most, message)
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


def _describe_result(take: "Take", *, keeps: bool) -> tuple[str, str]:
    """Return the verb and the rest of the sentence that reports a teaching."""
    from rote.cli import output

    track = take.track
    result = f": {track.duration_s:.2f} s, recorded at {track.rate_hz:.0f} Hz. "
    if not keeps:
        return "Recorded", f"{result}The {output.limbs(take.build)} are braked again."
    if not take.samples:
        lasts = "" if take.robot_s is None else f": {take.robot_s:.1f} s"
        result = f" on the robot{lasts}. "
    verb = "Saved" if take.saved else "Taught"
    return verb, f"{result}The arms hold again, and may return softly."


def _print_result(screen: "Console", options: _TeachOptions, take: "Take", *, keeps: bool) -> None:
    """Print the result of a teaching; a robot that `keeps` actions has it too."""
    from rote.cli import output
    from rote.robot.take import Lack

    track = take.track
    if options.as_json:
        written = None if options.out is None or not take.samples else str(options.out)
        kept_here = take.file is not None or written is not None
        print_json(
            {
                "name": options.name,
                "saved": take.saved if keeps else kept_here,
                "duration_s": round(track.duration_s, 3),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 2),
                "build": take.build.name,
                "lacks": sorted(lack.value for lack in take.lacks),
                "robot_s": take.robot_s,
                "robot_note": take.robot_note,
                "file": written,
                "take": None if take.file is None else str(take.file),
            }
        )
        return
    verb, result = _describe_result(take, keeps=keeps)
    screen.print(output.styled((verb, "green"), " ", (options.name, "bold"), result))
    if take.robot_note:
        screen.print(f"The robot reports: {output.printable(take.robot_note)}.", style="yellow")
    for lack in (lack for lack in Lack if lack in take.lacks):
        screen.print(_LACK_TEXTS[lack.value], style="yellow")
    only_here = "" if keeps else f"; {output.robot(take.build)} itself keeps none"
    if options.out is not None and take.samples:
        screen.print(f"The take is in {options.out}{only_here}.")
    elif take.file is not None:
        screen.print(f"The take is in {take.file}{only_here}.", style="dim")
    if take.file_problem is not None and take.file is None:
        screen.print(f"The take is not on this computer: {take.file_problem}", style="yellow")
    if options.out is not None and not take.samples:
        screen.print(f"Nothing is in {options.out}: there is no take.", style="yellow")
    by_take = "" if keeps else " --take"
    called = f"{output.command(sys.argv[0])} play {shlex.quote(options.name)}{by_take}"
    screen.print(f"Play it: {called}{options.target.arguments}", style="dim")
