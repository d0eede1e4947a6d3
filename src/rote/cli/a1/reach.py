"""Reaching an A1 from the command line, and stopping it.

Who talks to an A1's motors takes them from the walking controller, and a robot that stands sinks.
So the walking controller is asked first, where it can be reached, and one that stands is refused.
"""

import asyncio
import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple

from rote.cli.options import A1_SCHEME
from rote.errors import BadRequestError, LinkError, RemoteProtocolError, TimeLimitError

if TYPE_CHECKING:
    from rote.robot.a1.robot import A1
    from rote.wire.a1.values import HighState

_LOOK_S = 1.0
_HANDOVER_S = 1.1
"""How long a robot has to hear nothing at one level before it obeys the other; a guess."""
_STANDS_S, _STILL_M_S, _STILL_RAD_S, _STILL_STATES = 2.0, 0.03, 0.05, 10


@asynccontextmanager
async def reach(url: str | None) -> "AsyncIterator[A1]":
    """Connect to an A1; on a terminal it shows that it is waiting."""
    from rote.cli import show
    from rote.connection import connect_a1

    named = checked(url)
    async with AsyncExitStack() as stack:
        with show.waiting(f"connecting to {named}"):
            robot = await stack.enter_async_context(connect_a1(named))
        yield robot


def checked(url: str | None) -> str:
    """Return the URL, or raise `BadRequestError` where it names no A1."""
    if url is None or not url.startswith(A1_SCHEME):
        raise BadRequestError(
            "which A1 is not said" if url is None else f"{url!r} is not an A1",
            "Add --robot a1://192.168.123.161, or set ROTE_ROBOT; for a simulated one run: "
            "rote sim --a1 127.0.0.1",
        )
    return url


def is_low(url: str) -> bool:
    """Whether a URL names the motors."""
    from rote.client.a1.client import read_url
    from rote.session.a1 import Level

    return read_url(url).level is Level.LOW


async def look(url: str) -> "HighState | None":
    """Ask the walking controller how the robot is; None where none answers.

    It is told to stand still by that, as by everybody who connects to it.
    """
    from rote.client.a1.client import walking_url
    from rote.connection import connect_a1
    from rote.wire.a1.values import HighState

    try:
        async with connect_a1(f"{walking_url(url)}&sender=loop", timeout=_LOOK_S) as robot:
            state = robot.state
    except (LinkError, RemoteProtocolError):
        return None
    assert isinstance(state, HighState)
    return state


@asynccontextmanager
async def motors(url: str, *, only_to_look: bool = False) -> "AsyncIterator[A1]":
    """Connect to the motors of a robot, unless it stands.

    `only_to_look` refuses where that is not known, too.
    """
    from rote.cli import show
    from rote.client.a1.client import walking_url
    from rote.robot.a1.robot import stands

    with show.waiting("asking the walking controller"):
        state = await look(url)
        if state is not None and stands(state):
            raise BadRequestError(
                "the robot stands, and would sink where its motors are talked to",
                "Lay it down first: rote a1 lie. A hanging one too: its legs must be soft."
                if not only_to_look
                else "Leave level=low out, or lay it down first: rote a1 lie.",
            )
        if state is not None:
            await asyncio.sleep(_HANDOVER_S)
    if state is None and only_to_look:
        raise BadRequestError(
            "whether the robot stands is not known, and if it does, it would sink where its "
            f"motors are talked to: no walking controller answers at {walking_url(url)}",
            "Ask the walking controller at its own port: a1://HOST:PORT",
        )
    async with reach(url) as robot:
        yield robot


class Stopped(NamedTuple):
    """What a stop has done."""

    was: str
    state: str


async def stop(url: str) -> Stopped:
    """Stop a robot: it stands still, or its motors brake where it does not stand anyway."""
    from rote.client.a1.client import walking_url
    from rote.robot.a1.robot import stands

    if not is_low(url):
        return await _stand_still(url)
    state = await look(url)
    if state is not None and stands(state):
        # Braked motors would let it fall: what stops such a robot is its walking controller.
        return await _stand_still(walking_url(url))
    async with reach(url) as robot:
        await robot.stop()
        await asyncio.sleep(0.1)
    was = "unknown" if state is None else "down"
    return Stopped(was, "the motors brake; a program that drives them goes on until it is ended")


async def _stand_still(url: str) -> Stopped:
    from rote.robot.a1.robot import is_down
    from rote.wire.a1.values import HighState

    async with reach(url) as robot:
        before = robot.state
        await robot.stop()
        assert isinstance(before, HighState)
        if is_down(before):
            return Stopped("down", "the robot was not on its feet, and stays down")
        # By its speed: it was told to stand still from the first word on, and its mode says so.
        was = "walking" if _moves(before) else "standing"
        if not await _stands_still(robot):
            raise TimeLimitError(
                "the robot was told to stop, and still moves: another program drives it",
                "End that program with Ctrl-C, or stop the robot with its remote.",
            )
    return Stopped(was, "the robot stands still")


def _moves(state: "HighState") -> bool:
    speed_m_s = math.hypot(*state.velocity_m_s[:2])
    return speed_m_s > _STILL_M_S or abs(state.yaw_speed_rad_s) > _STILL_RAD_S


async def _stands_still(robot: "A1") -> bool:
    """Whether it comes to stand, and keeps standing for a moment."""
    from rote.wire.a1.values import HighState

    still = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_STANDS_S):
            async for state in robot.states():
                assert isinstance(state, HighState)
                still = 0 if _moves(state) else still + 1
                if still >= _STILL_STATES:
                    return True
    return False
