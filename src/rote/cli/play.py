"""rote play: play a taught action and watch it; Ctrl-C stops it softly."""

import asyncio
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli import takes
from rote.cli.a1 import motion as a1_motion
from rote.cli.options import (
    A1_SCHEME,
    EMBEDDED,
    Json,
    Key,
    Keylog,
    Robot,
    Target,
    print_json,
    reach,
    run,
    stopping_softly,
)
from rote.errors import BadRequestError, UnsupportedError

if TYPE_CHECKING:
    from rich.console import Console

    from rote.motion.track import Track
    from rote.robot.playing import Playing

_AT_REST = "the arms return to rest"


def play(
    name: Annotated[
        str, typer.Argument(help="The action's name, or a file with a motion, like wave.mcap.")
    ],
    speed: Annotated[
        float | None, typer.Option(help="0.05 to 4; 0.5 is half as fast. Not with --duration.")
    ] = None,
    duration: Annotated[float | None, typer.Option(help="Seconds it is to take.")] = None,
    loop: Annotated[bool, typer.Option("--loop", help="Again and again, until Ctrl-C.")] = False,
    interpolation: Annotated[str, typer.Option(help="linear, cubic or smooth.")] = "linear",
    preset: Annotated[
        bool, typer.Option("--preset", help="NAME is a factory action, by its name or id.")
    ] = False,
    take: Annotated[
        bool, typer.Option("--take", help="NAME is a take on this computer: rote takes list.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Play a file or take in spite of warnings.")
    ] = False,
    robot: Robot = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    as_json: Json = False,
) -> int:
    """Play a taught action, or a motion that is on this computer; Ctrl-C stops it softly."""
    target = Target(robot, key, keylog)
    if robot.startswith(A1_SCHEME):
        if preset or duration is not None or loop or interpolation != "linear":
            raise UnsupportedError("do that with a motion", "a1://")
        tempo = 1.0 if speed is None else speed
        return run(a1_motion.play(robot, a1_motion.load(name, take), tempo, as_json))
    if preset:
        return run(_perform(target, name, as_json))
    if take or _is_file(name):
        if duration is not None or loop or interpolation != "linear":
            raise BadRequestError("a motion of this computer has --speed only")
        tempo = 1.0 if speed is None else speed
        track = _checked(name, take, tempo, force, as_json)
        return run(_stream(target, track, (tempo, force), as_json))
    how = {"speed": speed, "duration": duration, "loop": loop, "interpolation": interpolation}
    return run(_play(target, name, how, as_json))


def _is_file(name: str) -> bool:
    """Whether a name is that of a file with a motion, by its ending."""
    suffix = Path(name).suffix.lower()
    if not suffix:  # an action, mostly: it need not wait for what reads files
        return False
    from rote.motion.files import FORMATS

    return suffix in FORMATS


def _checked(name: str, is_take: bool, speed: float, force: bool, as_json: bool) -> "Track":
    """Read a motion and see that it may be played, before a robot is asked for."""
    from rote.cli import show
    from rote.robot.streaming import checked

    with show.waiting("checking"):
        track = takes.motion(name, is_take, takes.PLAY_IT)
        report = checked(track, speed)
    if not as_json:
        show.findings(show.console(), report.findings)
    report.permit(force=force)
    return track


async def _stream(target: Target, track: "Track", how: tuple[float, bool], as_json: bool) -> int:
    from rote.cli import show

    speed, force = how
    screen = show.console(quiet=as_json)
    async with reach(target) as robot:
        playing = robot.play_track(track, speed=speed, force=force)
        async with stopping_softly(robot, _AT_REST, as_json):
            await playing.started()
            await watch(screen, playing)
            report = await playing
    if as_json:
        print_json(asdict(report))
    else:
        how_well = f"late by {report.late_p99_ms:.1f} ms (p99), {report.missed} missed."
        show.streamed(screen, report, how_well)
    return 0 if report.completed else 1


async def _perform(target: Target, name: str, as_json: bool) -> None:
    from rote.cli import show

    loop = asyncio.get_running_loop()
    async with reach(target) as robot:
        began = loop.time()
        async with stopping_softly(robot, _AT_REST, as_json):
            with show.waiting(f"performing {name}"):
                await robot.perform(int(name) if name.isdecimal() else name)
        seconds = loop.time() - began
    if as_json:
        print_json({"preset": name, "seconds": round(seconds, 3)})
    else:
        print(f"Performed {name} in {seconds:.1f} s.")


async def _play(target: Target, name: str, how: Mapping[str, object], as_json: bool) -> int:
    from rote.cli import show

    screen = show.console(quiet=as_json)
    async with reach(target) as robot:
        playing = robot.play(name, **how)  # type: ignore[arg-type] # checked by play itself
        async with stopping_softly(robot, _AT_REST, as_json):
            await playing.started()
            await watch(screen, playing)
            report = await playing
    if as_json:
        print_json(
            {"name": name, "completed": report.completed, "seconds": round(report.seconds, 3)}
        )
    elif report.completed:
        took = f" in {report.seconds:.1f} s."
        screen.print(show.styled(("Played", "green"), " ", (name, "bold"), took))
    else:
        stopped = f"{name} was stopped before its end,"
        screen.print(show.styled((stopped, "yellow"), " by a stop or by damping."))
    return 0 if report.completed else 1


async def watch(screen: "Console", playing: "Playing") -> None:
    """Show a playback's progress until it is over."""
    from rote.cli import show
    from rote.messages import Phase

    words = {Phase.APPROACH: "going to the start", Phase.RETURN: "returning"}
    with show.bar(screen, playing.name) as move:
        async for progress in playing:
            doing = words.get(progress.phase, f"{progress.remaining_s:4.1f} s left")
            if progress.round > 1:
                doing = f"round {progress.round}, {doing}; Ctrl-C stops"
            move(progress.fraction, doing)
