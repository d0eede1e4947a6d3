"""Commands that talk to a robot: status, list, teach, play, stop, modes."""

import asyncio
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import EMBEDDED, Json, Robot, print_json, run
from rote.errors import BadRequestError, RefusedError

if TYPE_CHECKING:
    from rich.console import Console

    from rote.robot.g1 import G1
    from rote.robot.playing import Playing
    from rote.robot.teaching import Take

Name = Annotated[str, typer.Argument(help="The action's name.")]


def status(robot: Robot = EMBEDDED, as_json: Json = False) -> int:
    """Say how the robot is and what to do before it moves."""
    return run(_status(robot, as_json))


async def _status(url: str, as_json: bool) -> None:
    from rote.cli import show
    from rote.connection import connect

    async with connect(url) as robot:
        mode, found, actions = await robot.mode(), await robot.preflight(), await robot.actions()
        state = robot.state
        assert state is not None
    if as_json:
        print_json(
            {
                "robot": url,
                "mode": {"id": mode.id, "name": mode.name, "balanced": mode.balanced},
                "arms": "soft" if state.arms_soft else "holding",
                "recording": state.recording,
                "playing": state.playing,
                "taught": len(actions.taught),
                "free_places": actions.free_places,
                "findings": [
                    {"severity": f.severity.value, "message": f.words, "remedy": f.remedy}
                    for f in found
                ],
            }
        )
        return
    out = show.console()
    out.print(f"[bold]{url}[/]  mode {mode.id}, {mode.name}: {mode.words}")
    arms = "soft" if state.arms_soft else "moving" if state.playing else "holding"
    used = len(actions.taught)
    out.print(f"arms {arms}; {used} of {used + actions.free_places} places for actions taken")
    show.findings(out, found)
    if not found:
        out.print("[green]Ready to teach and to play.[/]")


def list_actions(robot: Robot = EMBEDDED, as_json: Json = False) -> int:
    """List the presets and the taught actions on the robot."""
    return run(_list(robot, as_json))


async def _list(url: str, as_json: bool) -> None:
    from rote.cli import show
    from rote.connection import connect

    async with connect(url) as robot:
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


def teach(
    name: Name,
    seconds: Annotated[
        float | None, typer.Option(help="How long to record; else until you press Enter.")
    ] = None,
    hand: Annotated[
        str | None,
        typer.Option(help="Simulated robot only: wave, bow, clap or drum moves the arms."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Also write the take to this CSV file.")
    ] = None,
    robot: Robot = EMBEDDED,
    as_json: Json = False,
) -> int:
    """Teach a motion by hand.

    The arms get soft, you move them, and the robot stores what you showed.
    """
    return run(_teach(robot, name, (seconds, hand, out), as_json))


async def _teach(
    url: str, name: str, how: tuple[float | None, str | None, Path | None], as_json: bool
) -> None:
    from rote.cli import show
    from rote.connection import connect
    from rote.motion.files import save_csv
    from rote.robot.base import check_name, check_seconds

    seconds, hand, path = how
    check_name(name)
    if hand is not None and seconds is None:
        seconds = 4.0
    if seconds is not None:
        check_seconds(seconds, "a recording")
    elif as_json or not show.stdin_is_terminal():
        raise BadRequestError("how long to record is not said", "Add --seconds 8, for example.")
    screen = show.console()
    async with connect(url) as robot:
        if not as_json:
            show.findings(screen, await robot.preflight())
            _warn(screen, hand)
        async with robot.teach(name) as take:
            if hand is not None:
                assert seconds is not None
                await robot.move_by_hand(hand, seconds)
            if seconds is None:
                await _until_enter(screen, take)
            else:
                await _for_seconds(screen, take, seconds, quiet=as_json)
    track = take.track
    if path is not None:
        save_csv(track, path)
    if as_json:
        print_json(
            {
                "name": name,
                "saved": take.saved,
                "duration_s": round(track.duration_s, 3),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 2),
                "file": None if path is None else str(path),
            }
        )
        return
    screen.print(
        f"[green]Saved[/] [bold]{name}[/]: {track.duration_s:.2f} s, "
        f"{len(track)} samples here at {track.rate_hz:.0f} Hz. The arms hold again."
    )
    if path is not None:
        screen.print(f"The take is in {path}.")
    screen.print(f"Play it: rote play {name}", style="dim")


def _warn(screen: "Console", hand: str | None) -> None:
    if hand is None:
        screen.print(
            "Keep the robot standing under control, with space around it. Hold its arms now: "
            "they get soft. Move smoothly, and away from its own body.",
            style="yellow",
        )


async def _for_seconds(screen: "Console", take: "Take", seconds: float, *, quiet: bool) -> None:
    from rote.cli import show

    loop = asyncio.get_running_loop()
    end = loop.time() + seconds
    if quiet:
        await asyncio.sleep(seconds)
        return
    with show.bar(screen, "recording") as move:
        while (left := end - loop.time()) > 0:
            move(1 - left / seconds, f"{left:4.1f} s left, {take.samples} samples")
            await asyncio.sleep(min(0.1, left))


async def _until_enter(screen: "Console", take: "Take") -> None:
    from rote.cli import show

    loop = asyncio.get_running_loop()
    pressed: asyncio.Future[None] = loop.create_future()

    def read() -> None:
        sys.stdin.readline()
        if not pressed.done():
            pressed.set_result(None)

    screen.print("[bold]Recording.[/] Press Enter to end.")
    began = loop.time()
    loop.add_reader(sys.stdin, read)
    try:
        with show.bar(screen, "recording") as move:
            while not pressed.done() and (spent := loop.time() - began) < 180:
                move(spent / 180, f"{180 - spent:3.0f} s left, {take.samples} samples")
                await asyncio.wait({pressed}, timeout=0.1)
    finally:
        loop.remove_reader(sys.stdin)


def play(
    name: Name,
    speed: Annotated[float | None, typer.Option(help="0.5 is half as fast.")] = None,
    duration: Annotated[float | None, typer.Option(help="Seconds it is to take.")] = None,
    loop: Annotated[bool, typer.Option("--loop", help="Again and again, until Ctrl-C.")] = False,
    interpolation: Annotated[str, typer.Option(help="linear, cubic or smooth.")] = "linear",
    robot: Robot = EMBEDDED,
    as_json: Json = False,
) -> int:
    """Play a taught action; Ctrl-C stops it softly."""
    how = {"speed": speed, "duration": duration, "loop": loop, "interpolation": interpolation}
    return run(_play(robot, name, how, as_json))


async def _play(url: str, name: str, how: Mapping[str, object], as_json: bool) -> int:
    from rote.cli import show
    from rote.connection import connect

    screen = show.console()
    async with connect(url) as robot:
        await _check_exists(robot, name)
        playing = robot.play(name, **how)  # type: ignore[arg-type] # checked by play itself
        try:
            await playing.started()
            if not as_json:
                await _watch(screen, playing)
            report = await playing
        except asyncio.CancelledError:
            await asyncio.shield(robot.stop())
            if not as_json:
                screen.print("[yellow]Stopped softly.[/]")
            raise
    if as_json:
        print_json(
            {"name": name, "completed": report.completed, "seconds": round(report.seconds, 3)}
        )
    elif report.completed:
        screen.print(f"[green]Played[/] [bold]{name}[/] in {report.seconds:.1f} s.")
    else:
        screen.print(f"[yellow]{name} was stopped before its end.[/]")
    return 0 if report.completed else 1


async def _check_exists(robot: "G1", name: str) -> None:
    """Name what there is, where the name is wrong."""
    actions = await robot.actions()
    if actions.find(name) is None:
        from rote.messages import Code

        known = ", ".join(action.name for action in actions.taught) or "nothing yet"
        raise RefusedError(
            Code.NO_SUCH_ACTION, f"there is no action {name!r}", f"On the robot: {known}."
        )


async def _watch(screen: "Console", playing: "Playing") -> None:
    from rote.cli import show
    from rote.messages import Phase

    words = {Phase.APPROACH: "going to the start", Phase.RETURN: "returning"}
    with show.bar(screen, playing.name) as move:
        async for progress in playing:
            doing = words.get(progress.phase, f"{progress.remaining_s:4.1f} s left")
            move(progress.fraction, doing)


def stop(robot: Robot = EMBEDDED, as_json: Json = False) -> int:
    """Stop what plays or is being taught, softly.

    This is a software stop, not an emergency stop.
    """
    return run(_stop(robot, as_json))


async def _stop(url: str, as_json: bool) -> None:
    from rote.connection import connect

    async with connect(url) as robot:
        await robot.mode()
        before = robot.state
        await robot.stop()
    was = "nothing"
    if before is not None and before.playing:
        was = "playing"
    elif before is not None and before.arms_soft:
        was = "teaching"
    if as_json:
        print_json({"stopped": True, "was": was})
        return
    words = {
        "nothing": "Nothing was moving; the robot confirmed the stop.",
        "playing": "Stopped the playback; the arms return softly.",
        "teaching": "Ended the teaching; the arms hold.",
    }
    print(words[was])


def modes(
    target: Annotated[
        str | None, typer.Argument(help="stand or damp; leave it out to see all modes.")
    ] = None,
    robot: Robot = EMBEDDED,
    as_json: Json = False,
) -> int:
    """Show the robot's modes, or change to one.

    `rote modes stand` brings it into a balanced standing, `rote modes damp` damps all joints.
    """
    return run(_modes(robot, target, as_json))


async def _modes(url: str, target: str | None, as_json: bool) -> None:
    from rote.cli import show
    from rote.connection import connect
    from rote.messages import MODES

    if target not in (None, "stand", "damp"):
        raise BadRequestError(f"there is no mode {target!r} to go to", "Use stand or damp.")
    out = show.console()
    async with connect(url) as robot:
        if target is None:
            mode = await robot.mode()
        else:
            with show.waiting(out, "changing the mode"):
                mode = await (robot.stand() if target == "stand" else robot.damp())
    if as_json:
        print_json({"id": mode.id, "name": mode.name, "balanced": mode.balanced})
        return
    for known, facts in MODES.items():
        here = "[bold green]>[/]" if known == mode.id else " "
        name = known.name.lower().replace("_", " ")
        teach_play = "teach and play" if facts.balanced else ""
        out.print(
            f"{here} {known.value:>3}  {name:<12} {facts.words:<42} {teach_play:<15}"
            f"[dim]{facts.buttons}[/]"
        )
    if mode.id not in {known.value for known in MODES}:
        out.print(f"The robot is in mode {mode.id}, which rote does not know.")
