"""rote a1 status, monitor, walk, turn, stand, lie, pose: a quadruped from the command line."""

import asyncio
import math
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import TIMEOUT_S, Json, Timeout, print_json, run, stopping_softly
from rote.errors import BadRequestError, UnsupportedError
from rote.transport.wires import EMBEDDED_A1

if TYPE_CHECKING:
    from rote.robot.quadruped.bot import Bot
    from rote.robot.quadruped.robot import A1
    from rote.robot.quadruped.status import A1Status

_Robot = Annotated[
    str,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="a1://HOST[:PORT], with ?level=low for the motors and &dialect=3.2, 3.3, 3.3.4 or "
        "go1 if it should not be detected; or sim://a1 for the embedded simulated robot.",
    ),
]
_Limit = Annotated[float | None, typer.Option("--limit", metavar="SECONDS", help="Time limit.")]


def status(robot: _Robot = EMBEDDED_A1, timeout: Timeout = TIMEOUT_S, as_json: Json = False) -> int:
    """Show the robot's status."""

    async def print_status() -> None:
        # Naming the ability selects a level at which connecting does not make the robot go limp.
        async with connect_to(robot, timeout, "states") as quadruped:
            state = quadruped.status()
        if as_json:
            print_json(asdict(state))
        else:
            _print_status(state)

    return run(print_status())


def monitor(
    robot: _Robot = EMBEDDED_A1,
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
    return run(_monitor_state((robot, timeout), seconds, 1.0 / rate, as_json))


def walk(
    distance: Annotated[
        float, typer.Argument(metavar="METRES", help="Metres forward; negative is back.")
    ],
    left: Annotated[
        float, typer.Option(metavar="METRES", help="Metres to the left as well.")
    ] = 0.0,
    speed: Annotated[float, typer.Option(metavar="M/S", help="Metres per second.")] = 0.4,
    limit: _Limit = None,
    robot: _Robot = EMBEDDED_A1,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Walk a distance, then stand."""
    return run(
        _execute_plan(
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
    robot: _Robot = EMBEDDED_A1,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Turn on the spot by an angle, then stand."""
    _check_turn(degrees, speed)
    angle, speed_rad_s = math.radians(degrees), math.radians(speed)
    return run(
        _execute_plan(
            (robot, timeout),
            lambda bot: bot.turn(angle, speed_rad_s=speed_rad_s, limit_s=limit),
            as_json,
        )
    )


def stand(robot: _Robot = EMBEDDED_A1, timeout: Timeout = TIMEOUT_S, as_json: Json = False) -> int:
    """Stand upright; a robot that lies gets up first."""
    return run(_execute_plan((robot, timeout), lambda bot: bot.stand(), as_json))


def lie(robot: _Robot = EMBEDDED_A1, timeout: Timeout = TIMEOUT_S, as_json: Json = False) -> int:
    """Lie down, which teaching requires; not available in dialect 3.2."""
    return run(
        _execute_plan(
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
    robot: _Robot = EMBEDDED_A1,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Stand with the body turned or lowered for a while."""
    _check_pose(roll=roll, pitch=pitch, yaw=yaw)

    def hold_pose(bot: "Bot") -> "Bot":
        return bot.pose(
            roll_rad=math.radians(roll),
            pitch_rad=math.radians(pitch),
            yaw_rad=math.radians(yaw),
            body_height_m=height,
        ).wait(seconds)

    return run(_execute_plan((robot, timeout), hold_pose, as_json))


def _check_pose(**degrees: float) -> None:
    """Raise `BadRequestError` for an angle out of range; all are in degrees."""
    from rote.robot.quadruped.commands import SPANS

    for name, value in degrees.items():
        limit = math.degrees(SPANS[f"{name}_rad"][1])
        if not abs(value) <= limit:
            raise BadRequestError(
                f"a {name} of {value:g} degrees is out of range",
                f"Choose -{int(limit)} to {int(limit)} degrees.",
            )


def _check_turn(degrees: float, speed_deg_s: float) -> None:
    """Raise `BadRequestError` for an angle or a speed out of range."""
    from rote.robot.quadruped.bot import MAX_ANGLE_RAD
    from rote.robot.quadruped.commands import TURN_RAD_S

    if not abs(degrees) <= math.degrees(MAX_ANGLE_RAD):
        raise BadRequestError(
            f"a turn of {degrees:g} degrees is out of range",
            "Choose -720 to 720 degrees, two full turns.",
        )
    limit_deg_s = round(math.degrees(TURN_RAD_S))
    if not 0.0 < speed_deg_s <= limit_deg_s:
        raise BadRequestError(
            f"a turning speed of {speed_deg_s:g} degrees a second is out of range",
            f"Choose up to {limit_deg_s}.",
        )


_Target = tuple[str, float]
"""The robot's URL, and the timeout for its answers in seconds."""


async def _execute_plan(
    target: _Target,
    add_steps: "Callable[[Bot], Bot]",
    as_json: bool,
    *,
    how_left: str = "the robot stands still",
) -> int:
    """Connect, execute the steps that `add_steps` adds to a `Bot`, and print what was done.

    Ctrl-C stops the robot softly; `how_left` says what it does then.
    """
    from rote.robot.quadruped.approach import is_low
    from rote.robot.quadruped.bot import Bot

    if is_low(check_a1_url(target[0])):
        raise UnsupportedError("walk", "a1:// at the low level", ("a1://...?level=high",))
    async with connect_to(*target) as robot:
        bot = add_steps(Bot(robot))
        async with stopping_softly(robot, how_left, as_json):
            report = await bot.execute()
        state = robot.status()
    if as_json:
        print_json({"completed": report.completed, **asdict(report), "status": asdict(state)})
        return 0 if report.completed else 1
    for step in report.done:
        print(f"Done in {step.seconds:.1f} s: {step.label}.")
    for message in report.left:
        print(f"Stopped: {message}.")
    return 0 if report.completed else 1


async def _monitor_state(
    target: _Target, seconds: float | None, interval_s: float, as_json: bool
) -> None:
    """Print a status every `interval_s`, for this time or until Ctrl-C."""
    loop = asyncio.get_running_loop()
    # Naming the ability selects a level at which connecting does not make the robot go limp.
    async with connect_to(*target, "states") as robot:
        end_s = math.inf if seconds is None else loop.time() + seconds
        next_s = loop.time()
        async for _ in robot.native_states():
            if (now := loop.time()) >= end_s:
                break
            if now < next_s:
                continue
            next_s = max(next_s + interval_s, now)  # after a delay, do not catch up
            state = robot.status()
            if as_json:
                print_json(asdict(state))
            else:
                print(_format_status(state), flush=True)


def _format_status(state: "A1Status") -> str:
    position = ""
    if state.place_m is not None:
        position = f" at {state.place_m[0]:+.2f} {state.place_m[1]:+.2f} m"
    height = "" if state.height_m is None else f", {state.height_m:.2f} m high"
    radians = (state.roll_rad, state.pitch_rad, state.yaw_rad)
    roll, pitch, yaw = (math.degrees(angle) for angle in radians)
    angles = f"roll {roll:+.0f} pitch {pitch:+.0f} yaw {yaw:+.0f} degrees"
    return f"{state.mode}{position}{height}, {angles}"


def _print_status(state: "A1Status") -> None:
    print(f"{state.level} level, dialect {state.dialect}")
    print(_format_status(state))
    if state.joints_rad is not None:
        for leg, name in enumerate(("FR", "FL", "RR", "RL")):  # front right to rear left
            hip, thigh, calf = state.joints_rad[3 * leg : 3 * leg + 3]
            print(f"  {name}: hip {hip:+.2f} thigh {thigh:+.2f} calf {calf:+.2f} rad")
    if state.hottest_c is not None:
        print(f"The hottest motor has {state.hottest_c} °C.")
    if state.battery_percent is not None:
        print(f"The battery has {state.battery_percent} %.")


@asynccontextmanager
async def connect_to(url: str, timeout_s: float, ability: str | None = None) -> "AsyncIterator[A1]":
    """Connect to an A1 to use an ability, and show a spinner on a terminal until connected."""
    from rote.cli import output
    from rote.connection import connect

    a1_url = check_a1_url(url)
    async with AsyncExitStack() as stack:
        with output.show_spinner(f"connecting to {a1_url}"):
            robot = await stack.enter_async_context(
                connect(a1_url, family="a1", timeout=timeout_s, ability=ability)
            )
        yield robot


def check_a1_url(url: str) -> str:
    """Return the URL, or raise `BadRequestError` if it is not that of an A1 or Go1."""
    from rote.transport.wires import wire_of

    if "walk" not in wire_of(url).abilities:
        raise BadRequestError(
            f"{url!r} is not an A1", f"Use --robot a1://192.168.123.161, or {EMBEDDED_A1}."
        )
    return url
