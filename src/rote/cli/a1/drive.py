"""rote a1 status, monitor, walk, turn, stand, lie, pose: a quadruped from the command line."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import TIMEOUT_S, Json, Timeout, print_json, run, stopping_softly
from rote.errors import BadRequestError, UnsupportedError

if TYPE_CHECKING:
    from rote.robot.quadruped.bot import Bot
    from rote.robot.quadruped.robot import A1
    from rote.robot.quadruped.status import A1Status

_Robot = Annotated[
    str | None,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="a1://HOST[:PORT], with ?level=low for the motors and &dialect=3.2, 3.3, 3.3.4 or "
        "go1 if it should not be detected.",
    ),
]
_Limit = Annotated[float | None, typer.Option("--limit", metavar="SECONDS", help="Time limit.")]


def status(robot: _Robot = None, timeout: Timeout = TIMEOUT_S, as_json: Json = False) -> int:
    """Show the robot's status."""

    async def tell() -> None:
        async with _connect_to_observe((robot, timeout)) as quadruped:
            state = quadruped.status()
        if as_json:
            print_json(asdict(state))
        else:
            _print_status(state)

    return run(tell())


def monitor(
    robot: _Robot = None,
    timeout: Timeout = TIMEOUT_S,
    seconds: Annotated[
        float | None, typer.Option(metavar="SECONDS", help="Duration; by default until Ctrl-C.")
    ] = None,
    rate: Annotated[float, typer.Option(metavar="HZ", help="Lines per second, 0.1 to 100.")] = 5.0,
    as_json: Json = False,
) -> int:
    """Show the robot's state continuously."""
    if not 0.1 <= rate <= 100.0 or (seconds is not None and not 0 < seconds <= 86_400):
        raise BadRequestError("that rate or time is out of range", "Use --rate 5 --seconds 10.")
    return run(_monitor((robot, timeout), seconds, 1.0 / rate, as_json))


def walk(
    distance: Annotated[
        float, typer.Argument(metavar="METRES", help="Metres forward; negative is back.")
    ],
    left: Annotated[
        float, typer.Option(metavar="METRES", help="Metres to the left as well.")
    ] = 0.0,
    speed: Annotated[float, typer.Option(metavar="M/S", help="Metres per second.")] = 0.4,
    limit: _Limit = None,
    robot: _Robot = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Walk a distance, then stand."""
    return run(
        _execute(
            (robot, timeout),
            lambda bot: bot.walk(distance, left, speed_m_s=speed, limit_s=limit),
            as_json,
        )
    )


def turn(
    degrees: Annotated[
        float, typer.Argument(metavar="DEGREES", help="Degrees to the left; negative is right.")
    ],
    speed: Annotated[float, typer.Option(metavar="DEG/S", help="Degrees per second.")] = 45.0,
    limit: _Limit = None,
    robot: _Robot = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Turn on the spot by an angle, then stand."""
    _check_turn(degrees, speed)
    angle, speed_rad_s = math.radians(degrees), math.radians(speed)
    return run(
        _execute(
            (robot, timeout),
            lambda bot: bot.turn(angle, speed_rad_s=speed_rad_s, limit_s=limit),
            as_json,
        )
    )


def stand(robot: _Robot = None, timeout: Timeout = TIMEOUT_S, as_json: Json = False) -> int:
    """Stand upright; a robot that lies gets up first."""
    return run(_execute((robot, timeout), lambda bot: bot.stand(), as_json))


def lie(robot: _Robot = None, timeout: Timeout = TIMEOUT_S, as_json: Json = False) -> int:
    """Lie down, as before its legs are taught; not in dialect 3.2."""
    return run(
        _execute(
            (robot, timeout), lambda bot: bot.lie_down(), as_json, how_left="the robot lies down"
        )
    )


def pose(
    roll: Annotated[float, typer.Option(metavar="DEGREES", help="Degrees.")] = 0.0,
    pitch: Annotated[
        float, typer.Option(metavar="DEGREES", help="Degrees; positive looks down.")
    ] = 0.0,
    yaw: Annotated[float, typer.Option(metavar="DEGREES", help="Degrees.")] = 0.0,
    height: Annotated[
        float, typer.Option(metavar="METRES", help="Height above or below the default, in metres.")
    ] = 0.0,
    seconds: Annotated[
        float, typer.Option(metavar="SECONDS", help="How long to hold the pose.")
    ] = 3.0,
    robot: _Robot = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Stand with the body turned or lowered for a while."""
    _check_pose(roll=roll, pitch=pitch, yaw=yaw)

    def plan(bot: "Bot") -> "Bot":
        return bot.pose(
            roll_rad=math.radians(roll),
            pitch_rad=math.radians(pitch),
            yaw_rad=math.radians(yaw),
            body_height_m=height,
        ).wait(seconds)

    return run(_execute((robot, timeout), plan, as_json))


def _check_pose(**degrees: float) -> None:
    """Raise the errors for angles in degrees, as the user typed them."""
    from rote.robot.quadruped.commands import SPANS

    for name, value in degrees.items():
        most = math.degrees(SPANS[f"{name}_rad"][1])
        if not abs(value) <= most:
            raise BadRequestError(
                f"a {name} of {value:g} degrees is out of range",
                f"Choose -{int(most)} to {int(most)} degrees.",
            )


def _check_turn(degrees: float, speed: float) -> None:
    from rote.robot.quadruped.bot import MAX_ANGLE_RAD
    from rote.robot.quadruped.commands import TURN_RAD_S

    if not abs(degrees) <= math.degrees(MAX_ANGLE_RAD):
        raise BadRequestError(
            f"a turn of {degrees:g} degrees is out of range", "Choose at most two rounds: 720."
        )
    if not 0.0 < speed <= (most := round(math.degrees(TURN_RAD_S))):
        raise BadRequestError(
            f"a turning speed of {speed:g} degrees a second is out of range",
            f"Choose up to {most}.",
        )


_Which = tuple[str | None, float]
"""The robot's URL, and how long to wait for its answers in seconds."""


def _connect_to_observe(which: _Which) -> "AbstractAsyncContextManager[A1]":
    """Connect to read the robot's state, at a level that does not make it go limp."""
    return connect_to(*which, "states")


async def _execute(
    which: _Which,
    plan: "Callable[[Bot], Bot]",
    as_json: bool,
    *,
    how_left: str = "the robot stands still",
) -> int:
    from rote.robot.quadruped.approach import is_low
    from rote.robot.quadruped.bot import Bot

    if is_low(check_a1_url(which[0])):
        raise UnsupportedError("walk", "a1:// at the low level", ("a1://...?level=high",))
    async with connect_to(*which) as robot:
        bot = plan(Bot(robot))
        async with stopping_softly(robot, how_left, as_json):
            report = await bot.execute()
        state = robot.status()
    if as_json:
        print_json({"completed": report.completed, **asdict(report), "status": asdict(state)})
        return 0 if report.completed else 1
    for done in report.done:
        print(f"Done in {done.seconds:.1f} s: {done.label}.")
    for message in report.left:
        print(f"Stopped: {message}.")
    return 0 if report.completed else 1


async def _monitor(which: _Which, seconds: float | None, every_s: float, as_json: bool) -> None:
    loop = asyncio.get_running_loop()
    async with _connect_to_observe(which) as robot:
        end = math.inf if seconds is None else loop.time() + seconds
        due = loop.time()
        async for _ in robot.native_states():
            if (now := loop.time()) >= end:
                break
            if now < due:
                continue
            due = max(due + every_s, now)
            state = robot.status()
            print_json(asdict(state)) if as_json else print(_status_line(state), flush=True)


def _status_line(state: "A1Status") -> str:
    where = (
        "" if state.place_m is None else f" at {state.place_m[0]:+.2f} {state.place_m[1]:+.2f} m"
    )
    height = "" if state.height_m is None else f", {state.height_m:.2f} m high"
    angles = (math.degrees(angle) for angle in (state.roll_rad, state.pitch_rad, state.yaw_rad))
    roll, pitch, yaw = angles
    return (
        f"{state.mode}{where}{height}, roll {roll:+.0f} pitch {pitch:+.0f} yaw {yaw:+.0f} degrees"
    )


def _print_status(state: "A1Status") -> None:
    print(f"{state.level} level, dialect {state.dialect}")
    print(_status_line(state))
    if state.joints_rad is not None:
        for leg, name in enumerate(("FR", "FL", "RR", "RL")):
            hip, thigh, calf = state.joints_rad[3 * leg : 3 * leg + 3]
            print(f"  {name}: hip {hip:+.2f} thigh {thigh:+.2f} calf {calf:+.2f} rad")
    if state.hottest_c is not None:
        print(f"The hottest motor has {state.hottest_c} °C.")
    if state.battery_percent is not None:
        print(f"The battery has {state.battery_percent} %.")


# ---- connecting ---------------------------------------------------------------------------------


@asynccontextmanager
async def connect_to(
    url: str | None, timeout_s: float, ability: str | None = None
) -> "AsyncIterator[A1]":
    """Connect to an A1; a terminal shows a spinner meanwhile."""
    from rote.cli import output
    from rote.connection import connect

    named = check_a1_url(url)
    async with AsyncExitStack() as stack:
        with output.waiting(f"connecting to {named}"):
            robot = await stack.enter_async_context(
                connect(named, family="a1", timeout=timeout_s, ability=ability)
            )
        yield robot


def check_a1_url(url: str | None) -> str:
    """Return the URL, or raise `BadRequestError` if it names no A1."""
    from rote.transport.wires import wire_of

    if url is None or "walk" not in wire_of(url).abilities:
        raise BadRequestError(
            "the A1's URL is missing" if url is None else f"{url!r} is not an A1",
            "Add --robot a1://192.168.123.161, or set ROTE_ROBOT; for a simulated one run: "
            "rote sim --a1 127.0.0.1",
        )
    return url
