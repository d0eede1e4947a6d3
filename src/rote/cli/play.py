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
    refuse_unused_options,
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
    from rote.robot.streamed_motion import TrackCheck
    from rote.robot.streaming import Streaming

_AT_REST = "the arms return to rest"
_BRAKED = "the legs are braked"
_ACTION_OPTIONS = {
    "duration",
    "loop",
    "interpolation",
    "frames",
    "keyframe",
    "is_name",
    "is_number",
}
"""Options that have an effect on actions of a robot only."""
_MOTION_OPTIONS = {"force", "by_name", "imported"}
"""Options that have an effect on motions of this computer only."""


ActionName = Annotated[
    str,
    typer.Argument(
        metavar="ACTION",
        help="The action's name, its number in rote list, or a file like wave.mcap.",
    ),
]
Speed = Annotated[
    float | None,
    typer.Option(metavar="FACTOR", help="0.05 to 4; 0.5 is half speed. Not with --duration."),
]
Duration = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Total duration of the playback.")
]
Loop = Annotated[bool, typer.Option("--loop", help="Loop until Ctrl-C.")]
InterpolationName = Annotated[
    str,
    typer.Option(
        metavar=choice(each.name.lower() for each in Interpolation),
        help="Interpolation between frames.",
    ),
]
Frames = Annotated[
    int,
    typer.Option(metavar="N", help="Play only the first N frames; 0 plays all.", min=0),
]
Keyframes = Annotated[
    list[str] | None,
    typer.Option(
        metavar="JOINT:MS:RAD",
        help="Play this keyframe instead of the stored ones, like 18:400:-0.3; up to 20 times.",
    ),
]
IsName = Annotated[
    bool, typer.Option("--name", help="Treat ACTION as a name even if it consists of digits.")
]
IsNumber = Annotated[
    bool,
    typer.Option("--number", help="Treat ACTION as a list index even if an action has that name."),
]
IsPreset = Annotated[
    bool, typer.Option("--preset", help="ACTION is a factory action, by its name or id.")
]
IsTake = Annotated[
    bool, typer.Option("--take", help="ACTION is a take on this computer: rote takes list.")
]
Force = Annotated[bool, typer.Option("--force", help="Play a file or take despite warnings.")]
MapByName = Annotated[
    bool, typer.Option("--map", help="Map a motion of another build by joint names.")
]
WithHands = Annotated[
    bool,
    typer.Option("--hands", help="Also play the hands of a file or take; by default arms only."),
]
AllowImported = Annotated[
    bool,
    typer.Option("--imported", help="Play an imported motion on a real robot without asking."),
]


def play(
    ctx: typer.Context,
    name: ActionName,
    speed: Speed = None,
    duration: Duration = None,
    loop: Loop = False,
    interpolation: InterpolationName = "linear",
    frames: Frames = 0,
    keyframe: Keyframes = None,
    is_name: IsName = False,
    is_number: IsNumber = False,
    preset: IsPreset = False,
    take: IsTake = False,
    force: Force = False,
    by_name: MapByName = False,
    hands: WithHands = False,
    imported: AllowImported = False,
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Play a taught action, a take or a file; Ctrl-C stops it softly."""
    target = RobotChoice(robot, key, keylog, timeout)
    is_motion = take or _is_file(name)
    if hands:
        _check_hands(target, is_motion and not preset)
    if preset:
        refuse_unused_options(
            ctx, _ACTION_OPTIONS | _MOTION_OPTIONS | {"speed", "take"}, "with --preset"
        )
        require_ability(target, "presets", "perform factory actions")
        return run(_perform_preset(target, name, as_json))
    if is_motion:
        refuse_unused_options(ctx, {"is_name", "is_number"}, "with a motion of this computer")
        if duration is not None or loop or interpolation != "linear" or frames or keyframe:
            # If the robot cannot play actions either, its error says so.
            require_ability(target, "play", "do that with a motion")
            raise BadRequestError(
                "a file or a take can be played with --speed only", "Leave out the other options."
            )
        require_ability(target, "stream", "stream a motion")
        track = takes.load_motion(name, take, takes.PLAY_IT, any_joints=True)
        speed = _choose_speed(track, target, as_json) if speed is None else speed
        options = _PlayOptions(speed, force, by_name, hands, imported)
        return run(_stream_motion(target, _check_motion(track, options, as_json), options, as_json))
    refuse_unused_options(ctx, _MOTION_OPTIONS, "with an action of the robot")
    if is_name and is_number:
        raise BadRequestError("--name and --number exclude each other", "Leave out one.")
    _check_actions(target, name, needs_frames=bool(frames or keyframe))
    tempo = {
        "speed": speed,
        "duration": duration,
        "loop": loop,
        "interpolation": interpolation,
        "frames": frames,
        "keyframes": _parse_keyframes(keyframe or []),
    }
    return run(_play_action(target, _RequestedAction(name, is_name, is_number), tempo, as_json))


def _check_hands(target: RobotChoice, is_motion: bool) -> None:
    """Raise an error if --hands has no effect on what is played, or on this robot."""
    if not is_motion:
        raise BadRequestError(
            "a robot's own actions have no hands", "Use --hands with a file, or with --take."
        )
    require_ability(target, "hands", "play hands")


def _check_actions(target: RobotChoice, name: str, *, needs_frames: bool) -> None:
    """Raise an error if the robot cannot play an action of its own in the requested way."""
    from rote.transport.wires import wire_of

    if "play" not in wire_of(target.url).abilities:
        raise BadRequestError(
            f"this robot stores no actions, so it cannot play {name!r} by name",
            f"Play a take of this computer: rote play {name} --take, or a file.",
        )
    if needs_frames:
        require_ability(target, "frames", "play a part of an action, or keyframes instead")


class _RequestedAction(NamedTuple):
    """The requested action: a name, or a number in the robot's list if it consists of digits."""

    text: str
    is_name: bool
    """Whether --name was given: digits are a name, too."""
    is_number: bool
    """Whether --number was given."""

    async def resolve(self, robot: "Robot") -> str | int:
        """Return the action's name or number.

        Raises `BadRequestError` if the text is the name of one action and the number of another.
        """
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

    keyframes = []
    for text in texts:
        try:
            joint, time_ms, value_rad = text.split(":")
            keyframes.append(
                Keyframe(joint=int(joint), time_ms=int(time_ms), value_rad=float(value_rad))
            )
        except ValueError:
            raise BadRequestError(
                f"{text!r} is not a keyframe",
                "Write JOINT:MS:RAD, like 18:400:-0.3; JOINT is a number of `rote robots g1`.",
            ) from None
    return tuple(keyframes)


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
"""Speed factor of the first playback of an imported motion on a real robot."""


def _choose_speed(track: "Track", target: RobotChoice, as_json: bool) -> float:
    """Return the default speed factor: 1, or less for the first time of an imported motion."""
    from rote.motion.files.agreed_origins import is_agreed
    from rote.transport.wires import wire_of

    is_simulated = wire_of(target.url).lives_here
    if is_simulated or is_agreed(track.origin):
        return 1.0
    if not as_json:
        print("Imported motion: playing at half speed the first time (override with --speed).")
    return _FIRST_SPEED


def _check_motion(track: "Track", options: _PlayOptions, as_json: bool) -> "TrackCheck":
    """Check a motion at its speed, before connecting to a robot, and print the findings.

    Raises an error if the findings forbid to play it, or forbid it without --force.
    """
    from rote.cli import output
    from rote.motion.track_build import family_of
    from rote.robot.streamed_motion import TrackCheck, check_at_speed

    with output.show_spinner("checking"):
        report = check_at_speed(track, options.speed, hands=options.hands)
    if not as_json:
        output.print_findings(output.console(), report.findings)
    report.permit(family_of(track), force=options.force)
    return TrackCheck(track, options.speed, report)


async def _stream_motion(
    target: RobotChoice, checked: "TrackCheck", options: _PlayOptions, as_json: bool
) -> int:
    from rote.cli import output

    screen = output.console(quiet=as_json)
    async with connect_to(target, "stream", quiet=as_json, reconnect=True) as robot:
        has_legs = robot.build.limbs == "legs"
        print_safety_notice(robot.build, as_json)
        async with stopping_softly(robot, _BRAKED if has_legs else _AT_REST, as_json):
            playing = await _start_streaming(robot, checked, options, as_json)
            await playing.started()
            if playing.left_out:
                screen.print(_describe_left_out_hands(playing.left_out), style="yellow")
            await show_playback(screen, playing)
            report = await playing
    if as_json:
        print_json({**asdict(report), "left_out": list(playing.left_out)})
    else:
        how_well = f"late by {report.late_p99_ms:.1f} ms (p99), {report.missed} missed."
        how_well += " The legs are braked now." if has_legs else ""
        output.print_stream_report(screen, report, how_well)
    return 0 if report.completed else 1


def _describe_left_out_hands(joints: Sequence[str]) -> str:
    return (
        f"The hands are left out ({len(joints)} joints of this motion): only the arms move. "
        "Add --hands to play them, too."
    )


async def _start_streaming(
    robot: "Robot", checked: "TrackCheck", options: _PlayOptions, as_json: bool
) -> "Streaming":
    """Begin to play; ask the user to confirm an imported motion, or one of another build.

    The robot refuses such a motion until it is confirmed, so a refusal asks, and then tries again.
    """
    from rote.cli import output
    from rote.errors import ImportedMotionError, OtherBuildError
    from rote.motion.files.agreed_origins import agree, is_agreed
    from rote.transport.wires import wire_of

    track = checked.track
    already_agreed = is_agreed(track.origin)
    confirmed = {"mapped": options.by_name, "imported": options.imported or already_agreed}
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
                checked=None if confirmed["mapped"] and not options.by_name else checked,
                mapped=confirmed["mapped"],
                imported=confirmed["imported"],
            )
        except (OtherBuildError, ImportedMotionError) as refusal:
            if as_json or not output.stdin_is_terminal():
                raise
            option, question = questions[type(refusal)]
            print(f"{one_line(str(refusal)).capitalize()}.")
            if not await output.ask_yes(question.format(speed=options.speed)):
                raise
            confirmed[option] = True
        else:
            is_simulated = wire_of(robot.url).lives_here
            if confirmed["imported"] and not already_agreed and not is_simulated:
                agree(track.origin)  # so that the next playback does not ask again
            return playing


async def _perform_preset(target: RobotChoice, name: str, as_json: bool) -> None:
    from rote.cli import output

    loop = asyncio.get_running_loop()
    async with connect_to(target, quiet=as_json, reconnect=True) as robot:
        print_safety_notice(robot.build, as_json)
        began_s = loop.time()
        async with stopping_softly(robot, _AT_REST, as_json):
            with output.show_spinner(f"performing {name}"):
                await robot.perform(int(name) if name.isdecimal() else name)
        seconds = loop.time() - began_s
    if as_json:
        print_json({"preset": name, "seconds": round(seconds, 3)})
    else:
        print(f"Performed {name} in {seconds:.1f} s.")


async def _play_action(
    target: RobotChoice, requested: _RequestedAction, options: Mapping[str, object], as_json: bool
) -> int:
    from rote.cli import output

    screen = output.console(quiet=as_json)
    async with connect_to(target, quiet=as_json, reconnect=True) as robot:
        action = await requested.resolve(robot)
        taught_action = await _find_action(action, robot)
        name = str(action) if taught_action is None else taught_action.name
        playing = robot.play(action, **options)  # type: ignore[arg-type] # checked by play itself
        if taught_action is not None:  # otherwise nothing will move
            print_safety_notice(robot.build, as_json)
        async with stopping_softly(robot, _AT_REST, as_json):
            await playing.started()
            await show_playback(screen, playing)
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
        duration = f" in {report.seconds:.1f} s."
        screen.print(output.styled(("Played", "green"), " ", (name, "bold"), duration))
    else:
        stopped = f"{name} was stopped before its end:"
        screen.print(output.styled((stopped, "yellow"), f" {report.reason}."))
    return 0 if report.completed else 1


async def _find_action(action: str | int, robot: "Robot") -> "TaughtAction | None":
    """Return an action by its name or number; None if missing (`play` raises the error)."""
    actions = await robot.actions()
    return actions.numbered(action) if isinstance(action, int) else actions.find(action)


async def show_playback(screen: "Console", playing: "Playing") -> None:
    """Show a playback's progress until it is over."""
    from rote.cli import output
    from rote.messages import Phase

    phase_labels = {Phase.APPROACH: "going to the start", Phase.RETURN: "returning"}
    with output.show_progress(screen, playing.name) as set_progress:
        async for progress in playing:
            label = phase_labels.get(progress.phase, f"{progress.remaining_s:4.1f} s left")
            if progress.round > 1:
                label = f"round {progress.round}, {label}; Ctrl-C stops"
            set_progress(progress.fraction, label)
