"""rote mirror: one robot is moved by hand, and others follow it live."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    RobotChoice,
    Timeout,
    choice,
    connect_to,
    print_json,
    print_safety_notice,
    print_stopped,
    require_ability,
    run,
    stop_until_confirmed,
)
from rote.errors import BadRequestError
from rote.messages import HAND_SCRIPTS

if TYPE_CHECKING:
    from rich.console import Console

    from rote.robot.leading import FollowerStatus, Mirroring
    from rote.robot.robot import Robot

_REFRESH_S = 0.1
_END_STATE = "the followers return to rest, and the leader's arms hold"
_MAX_SECONDS = 6 * 3600.0


def mirror(
    leader: Annotated[
        str, typer.Argument(metavar="LEADER", help="URL of the robot that you move.")
    ],
    followers: Annotated[
        list[str], typer.Argument(metavar="FOLLOWER...", help="URLs of the robots that follow.")
    ],
    mirrored: Annotated[
        bool, typer.Option("--mirrored", help="Exchange left and right, as in a mirror.")
    ] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Leave the leader's arms stiff: follow what it plays."),
    ] = False,
    seconds: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", help="End after this time; by default with Enter."),
    ] = None,
    hand: Annotated[
        str | None,
        typer.Option(
            metavar=choice(HAND_SCRIPTS), help="Simulated leader only: a script moves its arms."
        ),
    ] = None,
    key: Key = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Move one robot by hand and let others follow it live.

    The leader's arms get soft; a leader that plays is only watched. The followers approach slowly,
    then follow within their limits; one that would touch itself holds. Ctrl-C stops all softly.
    """
    options = _MirrorOptions(leader, tuple(followers), mirrored, watch, seconds, hand, as_json)
    return run(_connect_and_mirror(options, key, timeout))


@dataclass(frozen=True, slots=True)
class _MirrorOptions:
    """The options of `rote mirror`."""

    leader: str
    followers: tuple[str, ...]
    mirrored: bool
    watch: bool
    seconds: float | None
    hand: str | None
    as_json: bool


async def _connect_and_mirror(options: _MirrorOptions, key: str | None, timeout_s: float) -> int:
    from rote.cli import output

    _check_options(options)
    screen = output.console(quiet=options.as_json)
    robots: list[Robot] = []
    async with AsyncExitStack() as stack:
        for url in (options.leader, *options.followers):
            target = _choose_robot(url, key, timeout_s)
            connection = connect_to(target, None, quiet=options.as_json, reconnect=True)
            robots.append(await stack.enter_async_context(connection))
        for robot in robots:
            output.print_findings(screen, await robot.preflight())
        try:
            began_s = asyncio.get_running_loop().time()
            mirroring = await _run_mirroring(screen, robots, options)
        except asyncio.CancelledError:
            await _stop_all(robots)
            print_stopped(_END_STATE, options.as_json)
            raise
        seconds = asyncio.get_running_loop().time() - began_s
    _print_result(screen, options, mirroring, seconds)
    return 0


def _check_options(options: _MirrorOptions) -> None:
    """Raise an error for impossible options, before connecting to any robot."""
    from rote.cli.teach import check_hand
    from rote.robot.leading import check_distinct

    check_distinct([options.leader, *options.followers])
    leader = RobotChoice(options.leader)
    if not options.watch:
        require_ability(leader, "teach", "be moved by hand", "Add --watch to follow what it plays.")
    for url in options.followers:
        require_ability(RobotChoice(url), "stream", "follow another robot")
    if options.hand is not None:
        if options.watch:
            raise BadRequestError("--hand does nothing with --watch", "Leave out one.")
        check_hand(options.hand)
        require_ability(leader, "hand", "have a scripted hand")
    if options.seconds is not None and not 0.0 < options.seconds <= _MAX_SECONDS:
        raise BadRequestError(
            f"{options.seconds} s is out of range", f"Choose up to {_MAX_SECONDS:.0f} s."
        )
    if options.seconds is None and options.as_json:
        raise BadRequestError("the time is missing", "Add --seconds 30, for example.")


def _choose_robot(url: str, key: str | None, timeout_s: float) -> RobotChoice:
    """Return how to connect to one of the robots; --key is for those whose wire takes one."""
    from rote.transport.wires import wire_of

    return RobotChoice(url, key if wire_of(url).takes_key else None, None, timeout_s)


async def _run_mirroring(
    screen: "Console", robots: "Sequence[Robot]", options: _MirrorOptions
) -> "Mirroring":
    """Let the robots follow until the time is over or the user ends it."""
    from rote.cli import output
    from rote.cli.teach import wait_until_held

    leader, *followers = robots
    # By default the leader gets soft unless it plays.
    soft = False if options.watch else None
    leading = leader.lead(*followers, mirrored=options.mirrored, soft=soft)
    print_safety_notice(followers[0].build, options.as_json)
    is_attended = not options.as_json and output.stdin_is_terminal()
    leader_plays = leader.state is not None and leader.state.playing
    user_moves_leader = options.hand is None and not options.watch and not leader_plays
    if is_attended and user_moves_leader:
        await wait_until_held(screen, "arms", counts_down=options.seconds is not None)
    async with leading as mirroring:
        for follower in mirroring.followers:
            if follower.unchecked:
                print(f"{follower.url}: {follower.unchecked}", file=sys.stderr, flush=True)
        if options.hand is not None:
            await leader.move_by_hand(options.hand, options.seconds or _MAX_SECONDS)
        await _show_until_end(screen, mirroring, options.seconds, is_attended)
    return mirroring


async def _show_until_end(
    screen: "Console", mirroring: "Mirroring", seconds: float | None, is_attended: bool
) -> None:
    """Show the progress until the time is over, or without a time until the user presses Enter."""
    from rote.cli import output

    loop = asyncio.get_running_loop()
    began_s = loop.time()
    hold_message = ""
    enter_pressed = None
    if seconds is None and is_attended:
        screen.print("Press Enter to end.")
        enter_pressed = asyncio.ensure_future(output.wait_for_enter())
    try:
        with output.show_progress(screen, "following") as set_progress:
            while seconds is None or loop.time() < began_s + seconds:
                set_progress(
                    0.0 if seconds is None else (loop.time() - began_s) / seconds,
                    "; ".join(_describe_follower(each) for each in mirroring.followers),
                )
                hold_message = _print_new_hold(screen, mirroring, hold_message)
                remaining_s = _REFRESH_S if seconds is None else began_s + seconds - loop.time()
                if not await mirroring.wait(max(0.0, min(_REFRESH_S, remaining_s))):
                    # Mirroring was interrupted: let the cancellation arrive here.
                    await asyncio.sleep(0)
                if enter_pressed is not None and enter_pressed.done():
                    return
    finally:
        if enter_pressed is not None:
            enter_pressed.cancel()


def _describe_follower(status: "FollowerStatus") -> str:
    if status.held:
        return f"held: {status.held}"
    if not status.reached:
        return "approaching slowly"
    text = "following" if status.lag_ms is None else f"lag {status.lag_ms:.0f} ms"
    return f"{text}, at its limit: {', '.join(status.limited)}" if status.limited else text


def _print_new_hold(screen: "Console", mirroring: "Mirroring", previous: str) -> str:
    """Print why followers hold, unless the reason is the same as before; return the reason."""
    message = "; ".join(
        f"{each.url} holds: {each.held}" for each in mirroring.followers if each.held
    )
    # Only the text before the comma: measurements, which change all the time, follow it.
    if message and message.partition(",")[0] != previous.partition(",")[0]:
        screen.print(message, style="yellow")
    return message


async def _stop_all(robots: "Sequence[Robot]") -> None:
    """Stop all robots at once, each until it confirms; raise the first failure."""
    stops = [asyncio.ensure_future(stop_until_confirmed(robot)) for robot in robots]
    try:
        await asyncio.wait(stops)
    except asyncio.CancelledError:  # Ctrl-C again: give up
        for stop in stops:
            stop.cancel()
        await asyncio.wait(stops)
    for stop in stops:
        stop.result()


def _print_result(
    screen: "Console", options: _MirrorOptions, mirroring: "Mirroring", seconds: float
) -> None:
    if options.as_json:
        print_json(
            {
                "leader": options.leader,
                "mirrored": options.mirrored,
                "soft": mirroring.soft,
                "seconds": round(seconds, 3),
                "followers": [asdict(each) for each in mirroring.followers],
            }
        )
        return
    for each in mirroring.followers:
        lag = "not measured: too little motion"
        if each.lag_p99_ms is not None:
            lag = f"{each.lag_p50_ms:.0f} ms, p99 {each.lag_p99_ms:.0f} ms"
        screen.print(f"{each.url}: {each.poses} poses, held {each.holds} times; lag {lag}.")
    screen.print(f"Ended after {seconds:.1f} s: {_END_STATE}.")
