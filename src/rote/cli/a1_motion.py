"""rote teach and rote play on an A1: its legs, moved by hand and played from this computer."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from rote.cli.a1_drive import reach
from rote.cli.options import print_json, stopping_softly
from rote.errors import BadRequestError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console

    from rote.motion.files.library import Library
    from rote.motion.track import Track
    from rote.robot.a1_teaching import LegTake

SCHEME = "a1:"


def low(url: str) -> str:
    """Return the URL of the motors: legs are taught and played there and nowhere else."""
    if "level=" in url:
        return url
    return f"{url}{'&' if '?' in url else '?'}level=low"


async def teach(
    url: str,
    name: str,
    library: "Library | None",
    record: "Callable[[LegTake], Awaitable[None]]",
) -> "LegTake":
    """Record a take while `record` lasts."""
    async with reach(low(url)) as robot:
        async with robot.teach(name, library=library) as take:
            await record(take)
        return take


def report(screen: "Console", take: "LegTake", out: Path | None, as_json: bool) -> None:
    """Tell what became of a take."""
    track = take.track
    if as_json:
        print_json(
            {
                "name": take.name,
                "saved": take.file is not None or out is not None,
                "duration_s": round(track.duration_s, 3),
                "samples": len(track),
                "rate_hz": round(track.rate_hz, 2),
                "file": None if out is None else str(out),
                "take": None if take.file is None else str(take.file),
            }
        )
        return
    screen.print(
        f"[green]Recorded[/] [bold]{take.name}[/]: {track.duration_s:.2f} s at "
        f"{track.rate_hz:.0f} Hz. The legs are braked again."
    )
    if (where := out or take.file) is not None:
        screen.print(f"The take is in {where}; an A1 itself keeps none.", style="dim")
    if take.file_problem is not None:
        screen.print(f"The take is not on this computer: {take.file_problem}", style="yellow")


def check_teachable(hand: str | None, overwrite: bool) -> None:
    """Raise `UnsupportedError` for what an A1 cannot do."""
    if hand is not None:
        raise UnsupportedError("have a scripted hand at the legs", "a1://", ("sim://",))
    if overwrite:
        raise UnsupportedError("keep actions, so that none can be overwritten", "a1://")


def load(name: str, is_take: bool) -> "Track":
    """Read a motion of this computer; an A1 itself keeps none."""
    from rote.cli import takes
    from rote.motion.files import load as load_file

    if is_take:
        return takes.library().load(name)
    if not Path(name).suffix:
        raise BadRequestError(
            f"an A1 keeps no actions, so it cannot play {name!r} by name",
            f"Play a take of this computer: rote play {name} --take, or a file.",
        )
    return load_file(Path(name), any_joints=True)


async def play(url: str, track: "Track", speed: float, as_json: bool) -> int:
    """Play a track; Ctrl-C holds the legs where they are, and then lets them sink softly."""
    from rote.cli import show

    screen = show.console(quiet=as_json)
    async with reach(low(url)) as robot, stopping_softly(robot):
        with show.waiting("playing"):
            report = await robot.play_track(track, speed=speed)
    if as_json:
        print_json(asdict(report))
    else:
        how_well = f"{report.missed} missed. The legs are braked now."
        show.streamed(screen, report, how_well)
    return 0 if report.completed else 1
