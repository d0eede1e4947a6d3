"""rote play: play a taught action and watch it; Ctrl-C stops it softly."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from rote.cli import takes
from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Keylog,
    RobotChoice,
    RobotUrl,
    Timeout,
    choice,
    connect_to,
    print_json,
    print_safety_notice,
    refuse_idle,
    require_ability,
    run,
    stopping_softly,
)
from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.platform.console_text import one_line
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rich.console import Console

    from rote.messages import Keyframe
    from rote.motion.track import Track
    from rote.robot.api_values import TaughtAction
    from rote.robot.playing import Playing
    from rote.robot.robot import Robot
    from rote.robot.streaming import Streaming, TrackCheck

_AT_REST = "the arms return to rest"
_BRAKED = "the legs are braked"
_OF_ACTIONS = {"duration", "loop", "interpolation", "frames", "keyframe", "is_name", "is_number"}
_OF_MOTIONS = {"force", "by_name", "imported"}
"""The options that are for actions of a robot only, and for motions of this computer only."""


def play(
    ctx: typer.Context,
    name: Annotated[
        str,
        typer.Argument(
            metavar="ACTION",
            help="The action's name, its number in rote list, or a file like wave.mcap.",
        ),
    ],
    speed: Annotated[
        float | None,
        typer.Option(metavar="FACTOR", help="0.05 to 4; 0.5 is half speed. Not with --duration."),
    ] = None,
    duration: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Total duration of the playback.")
    ] = None,
    loop: Annotated[bool, typer.Option("--loop", help="Loop until Ctrl-C.")] = False,
    interpolation: Annotated[
        str,
        typer.Option(
            metavar=choice(each.name.lower() for each in Interpolation),
            help="Interpolation between frames.",
        ),
    ] = "linear",
    frames: Annotated[
        int,
        typer.Option(metavar="N", help="Play only the first N frames; 0 plays all.", min=0),
    ] = 0,
    keyframe: Annotated[
        list[str] | None,
        typer.Option(
            metavar="JOINT:MS:RAD",
            help="Play this keyframe instead of the stored ones, like 18:400:-0.3; up to 20 times.",
        ),
    ] = None,
    is_name: Annotated[
        bool, typer.Option("--name", help="Treat ACTION as a name even if it consists of digits.")
    ] = False,
    is_number: Annotated[
        bool,
        typer.Option(
            "--number", help="Treat ACTION as a list index even if an action has that name."
        ),
    ] = False,
    preset: Annotated[
        bool, typer.Option("--preset", help="ACTION is a factory action, by its name or id.")
    ] = False,
    take: Annotated[
        bool, typer.Option("--take", help="ACTION is a take on this computer: rote takes list.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Play a file or take despite warnings.")
    ] = False,
    by_name: Annotated[
        bool,
        typer.Option("--map", help="Map a motion of another build by joint names."),
    ] = False,
    hands: Annotated[
        bool,
        typer.Option(
            "--hands", help="Also play the hands of a file or take; by default arms only."
        ),
    ] = False,
    imported: Annotated[
        bool,
        typer.Option("--imported", help="Play an imported motion on a real robot without asking."),
    ] = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Play a taught action, a take or a file; Ctrl-C stops it softly."""
    from rote.transport.wires import wire_of

    target = RobotChoice(robot, key, keylog, timeout)
    if hands:
        if preset or not (take or _is_file(name)):
            raise BadRequestError(
                "a robot's own actions have no hands", "Use --hands with a file, or with --take."
            )
        require_ability(target, "hands", "play hands")
    if preset:
        refuse_idle(ctx, _OF_ACTIONS | _OF_MOTIONS | {"speed", "take"}, "with --preset")
        require_ability(target, "presets", "perform factory actions")
        return run(_perform(target, name, as_json))
    if take or _is_file(name):
        refuse_idle(ctx, {"is_name", "is_number"}, "with a motion of this computer")
        if duration is not None or loop or interpolation != "linear" or frames or keyframe:
            require_ability(target, "play", "do that with a motion")
            raise BadRequestError("a motion of this computer has --speed only")
        require_ability(target, "stream", "stream a motion")
        track = takes.motion(name, take, takes.PLAY_IT, any_joints=True)
        options = _PlayOptions(
            _first_speed(track, target, as_json) if speed is None else speed,
            force,
            by_name,
            hands,
            imported,
        )
        return run(_stream(target, _check_motion(track, options, as_json), options, as_json))
    refuse_idle(ctx, _OF_MOTIONS, "with an action of the robot")
    if is_name and is_number:
        raise BadRequestError("--name and --number exclude each other", "Leave out one.")
    if "play" not in wire_of(target.url).abilities:
        raise BadRequestError(
            f"this robot keeps no actions, so it cannot play {name!r} by name",
            f"Play a take of this computer: rote play {name} --take, or a file.",
        )
    if frames or keyframe:
        require_ability(target, "frames", "play a part of an action, or keyframes instead")
    tempo = {
        "speed": speed,
        "duration": duration,
        "loop": loop,
        "interpolation": interpolation,
        "frames": frames,
        "keyframes": _parse_keyframes(keyframe or []),
    }
    return run(_play(target, _RequestedAction(name, is_name, is_number), tempo, as_json))


class _RequestedAction(NamedTuple):
    """The requested action: a name, or a list number if it consists of digits."""

    text: str
    is_name: bool
    is_number: bool

    async def of(self, robot: "Robot") -> str | int:
        """Return the name or the number; refuse if both would match different actions."""
        if self.is_name or not self.text.isdecimal():
            if self.is_number:
                raise BadRequestError(f"{self.text!r} is not a number", "Leave --number out.")
            return self.text
        number = int(self.text)
        if self.is_number:
            return number
        actions = await robot.actions()
        named, numbered = actions.find(self.text), actions.numbered(number)
        if named is None or named == numbered:
            return number
        if numbered is None:
            return self.text
        raise BadRequestError(
            f"{self.text} is the number of {numbered.name!r} and the name of another action",
            f"Choose one: rote play {self.text} --number, or rote play {self.text} --name.",
        )


def _parse_keyframes(texts: Sequence[str]) -> "tuple[Keyframe, ...]":
    from rote.messages import Keyframe

    found = []
    for text in texts:
        try:
            joint, time_ms, value_rad = text.split(":")
            found.append(
                Keyframe(joint=int(joint), time_ms=int(time_ms), value_rad=float(value_rad))
            )
        except ValueError:
            raise BadRequestError(
                f"{text!r} is not a keyframe", "Write JOINT:MS:RAD, like 18:400:-0.3."
            ) from None
    return tuple(found)


def _is_file(name: str) -> bool:
    """Whether a name has the extension of a motion file."""
    suffix = Path(name).suffix.lower()
    if not suffix:  # usually an action: then the code that reads files need not be imported
        return False
    from rote.motion.formats import FORMATS

    return suffix in FORMATS


class _PlayOptions(NamedTuple):
    """How a motion of this computer is to be played."""

    speed: float
    force: bool
    by_name: bool
    hands: bool
    imported: bool


_FIRST_SPEED = 0.5
"""Speed of the first playback of an imported motion on a real robot."""


def _first_speed(track: "Track", target: RobotChoice, as_json: bool) -> float:
    """Return the default speed of a motion."""
    from rote.motion.files.agreed_origins import is_agreed
    from rote.transport.wires import wire_of

    if wire_of(target.url).lives_here or is_agreed(track.origin):
        return 1.0
    if not as_json:
        print("Imported motion: playing at half speed the first time (override with --speed).")
    return _FIRST_SPEED


def _check_motion(track: "Track", options: _PlayOptions, as_json: bool) -> "TrackCheck":
    """Check that a motion may be played, before connecting to a robot."""
    from rote.cli import output
    from rote.motion.track_build import family_of
    from rote.robot.streaming import TrackCheck, check_at_speed

    with output.waiting("checking"):
        report = check_at_speed(track, options.speed, hands=options.hands)
    if not as_json:
        output.findings(output.console(), report.findings)
    report.permit(family_of(track), force=options.force)
    return TrackCheck(track, options.speed, report)


async def _stream(
    target: RobotChoice, checked: "TrackCheck", options: _PlayOptions, as_json: bool
) -> int:
    from rote.cli import output

    screen = output.console(quiet=as_json)
    async with connect_to(target, "stream", quiet=as_json, reconnect=True) as robot:
        legs = output.limbs(robot.build) == "legs"
        print_safety_notice(robot.build, as_json)
        async with stopping_softly(robot, _BRAKED if legs else _AT_REST, as_json):
            playing = await _start_streaming(robot, checked, options, as_json)
            await playing.started()
            if playing.left_out:
                screen.print(output.styled((_left_out_text(playing.left_out), "yellow")))
            await watch(screen, playing)
            report = await playing
    if as_json:
        print_json({**asdict(report), "left_out": list(playing.left_out)})
    else:
        how_well = f"late by {report.late_p99_ms:.1f} ms (p99), {report.missed} missed."
        how_well += " The legs are braked now." if legs else ""
        output.print_stream_report(screen, report, how_well)
    return 0 if report.completed else 1


def _left_out_text(joints: Sequence[str]) -> str:
    return (
        f"The hands are left out ({len(joints)} joints of this motion): only the arms move. "
        "Add --hands to play them, too."
    )


async def _start_streaming(
    robot: "Robot", checked: "TrackCheck", options: _PlayOptions, as_json: bool
) -> "Streaming":
    """Begin to play. The user may confirm what is refused otherwise: an imported motion, or one
    of another build.
    """
    from rote.cli import output
    from rote.errors import ImportedMotionError, OtherBuildError
    from rote.motion.files.agreed_origins import agree, is_agreed
    from rote.transport.wires import wire_of

    track, known = checked.track, is_agreed(checked.track.origin)
    yes = {"mapped": options.by_name, "imported": options.imported or known}
    questions = {
        OtherBuildError: ("mapped", "Type yes to play it by the names of its joints: "),
        ImportedMotionError: ("imported", "Type yes to play it at {speed:g} times its speed: "),
    }
    while True:
        try:
            playing = robot.play_track(
                track,
                speed=options.speed,
                force=options.force,
                hands=options.hands,
                # The check is valid for the robot's own build only.
                checked=None if yes["mapped"] and not options.by_name else checked,
                mapped=yes["mapped"],
                imported=yes["imported"],
            )
        except (OtherBuildError, ImportedMotionError) as refused:
            if as_json or not output.stdin_is_terminal():
                raise
            option, question = questions[type(refused)]
            print(f"{one_line(str(refused)).capitalize()}.")
            if not await output.ask_yes(question.format(speed=options.speed)):
                raise
            yes[option] = True
        else:
            if yes["imported"] and not known and not wire_of(robot.url).lives_here:
                agree(track.origin)
            return playing


async def _perform(target: RobotChoice, name: str, as_json: bool) -> None:
    from rote.cli import output

    loop = asyncio.get_running_loop()
    async with connect_to(target, quiet=as_json, reconnect=True) as robot:
        print_safety_notice(robot.build, as_json)
        began = loop.time()
        async with stopping_softly(robot, _AT_REST, as_json):
            with output.waiting(f"performing {name}"):
                await robot.perform(int(name) if name.isdecimal() else name)
        seconds = loop.time() - began
    if as_json:
        print_json({"preset": name, "seconds": round(seconds, 3)})
    else:
        print(f"Performed {name} in {seconds:.1f} s.")


async def _play(
    target: RobotChoice, which: _RequestedAction, options: Mapping[str, object], as_json: bool
) -> int:
    from rote.cli import output

    screen = output.console(quiet=as_json)
    async with connect_to(target, quiet=as_json, reconnect=True) as robot:
        action = await which.of(robot)
        found = await _find_action(action, robot)
        name = str(action) if found is None else found.name
        playing = robot.play(action, **options)  # type: ignore[arg-type] # checked by play itself
        if found is not None:  # else nothing will move
            print_safety_notice(robot.build, as_json)
        async with stopping_softly(robot, _AT_REST, as_json):
            await playing.started()
            await watch(screen, playing)
            report = await playing
    if as_json:
        print_json(
            {
                "name": name,
                "completed": report.completed,
                "seconds": round(report.seconds, 3),
                "reason": report.reason,
            }
        )
    elif report.completed:
        took = f" in {report.seconds:.1f} s."
        screen.print(output.styled(("Played", "green"), " ", (name, "bold"), took))
    else:
        stopped = f"{name} was stopped before its end:"
        screen.print(output.styled((stopped, "yellow"), f" {report.reason}."))
    return 0 if report.completed else 1


async def _find_action(action: str | int, robot: "Robot") -> "TaughtAction | None":
    """Return an action by its name or number; None if missing (`play` raises the error)."""
    actions = await robot.actions()
    return actions.numbered(action) if isinstance(action, int) else actions.find(action)


async def watch(screen: "Console", playing: "Playing") -> None:
    """Show a playback's progress until it is over."""
    from rote.cli import output
    from rote.messages import Phase

    labels = {Phase.APPROACH: "going to the start", Phase.RETURN: "returning"}
    with output.bar(screen, playing.name) as move:
        async for progress in playing:
            doing = labels.get(progress.phase, f"{progress.remaining_s:4.1f} s left")
            if progress.round > 1:
                doing = f"round {progress.round}, {doing}; Ctrl-C stops"
            move(progress.fraction, doing)
