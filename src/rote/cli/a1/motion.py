"""rote teach and rote play on an A1: its legs, moved by hand and played from this computer."""

import asyncio
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rote.cli.a1.reach import is_low, motors
from rote.cli.options import print_json, stopping_softly, tell_stopped
from rote.errors import BadRequestError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from rich.console import Console

    from rote.motion.files.library import Library
    from rote.motion.track import Track
    from rote.robot.a1.teaching import LegTake


def low(url: str, what: str) -> str:
    """Return the URL of the motors: legs are taught and played there and nowhere else."""
    if "level=" not in url:
        return f"{url}{'&' if '?' in url else '?'}level=low"
    if not is_low(url):
        raise UnsupportedError(what, "a1:// at the high level", ("a1://...?level=low",))
    return url


class Teaching(NamedTuple):
    """How legs are to be taught."""

    name: str
    library: "Library | None"
    get_ready: "Callable[[], Awaitable[None]]"
    """What lasts until the legs may get soft."""
    record: "Callable[[LegTake], Awaitable[None]]"
    """What lasts as long as the recording."""


async def teach(url: str, how: Teaching, as_json: bool) -> "LegTake":
    """Record a take of a robot that does not stand."""
    async with motors(low(url, "be taught by hand")) as robot:
        try:
            await how.get_ready()
            async with robot.teach(how.name, library=how.library) as take:
                await how.record(take)
        except asyncio.CancelledError:
            tell_stopped("nothing was saved, and the legs are braked", as_json, saved=False)
            raise
        return take


def report(screen: "Console", take: "LegTake", out: Path | None, as_json: bool) -> None:
    """Tell what became of a take."""
    from rote.cli import show

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
    told = f": {track.duration_s:.2f} s at {track.rate_hz:.0f} Hz. The legs are braked again."
    screen.print(show.styled(("Recorded", "green"), " ", (take.name, "bold"), told))
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

    if not is_take and not Path(name).suffix:
        raise BadRequestError(
            f"an A1 keeps no actions, so it cannot play {name!r} by name",
            f"Play a take of this computer: rote play {name} --take, or a file.",
        )
    return takes.motion(name, is_take, takes.PLAY_IT, any_joints=True)


async def play(url: str, track: "Track", speed: float, as_json: bool) -> int:
    """Play a track on a robot that does not stand; Ctrl-C brakes the legs."""
    from rote.cli import show

    screen = show.console(quiet=as_json)
    at = low(url, "play a motion")
    async with motors(at) as robot, stopping_softly(robot, "the legs are braked", as_json):
        with show.waiting("playing"):
            report = await robot.play_track(track, speed=speed)
    if as_json:
        print_json(asdict(report))
    else:
        how_well = f"{report.missed} missed. The legs are braked now."
        show.streamed(screen, report, how_well)
    return 0 if report.completed else 1
