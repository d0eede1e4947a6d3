"""Connecting to an A1 safely: which level is needed, whether it stands, and how to stop it.

A client of an A1's motors takes them from the walking controller, and a standing robot sinks. So
the walking controller is queried first, if it can be reached, and a standing robot is refused.
"""

import asyncio
import math
from contextlib import suppress
from typing import NamedTuple
from urllib.parse import parse_qsl

from rote.errors import (
    BadRequestError,
    LinkError,
    RemoteProtocolError,
    TimeLimitError,
    UnsupportedError,
)
from rote.robot.quadruped.posture import is_down, standing_robot_error, stands
from rote.robot.quadruped.robot import A1, MOTORS
from rote.session.a1 import Level
from rote.text import Act, Text
from rote.transport.a1.client import A1Client, open_client, walking_url
from rote.transport.link import split_url
from rote.transport.wires import EXAMINE
from rote.wire.a1.values import HighState

_READ_STATE_S = 1.0
_HANDOVER_S = 1.1
"""How long a robot must receive nothing at one level before it obeys the other; a guess."""
_STANDS_S, _STILL_M_S, _STILL_RAD_S, _STILL_STATES = 2.0, 0.03, 0.05, 10


def is_low(url: str) -> bool:
    """Whether a URL names the low level, the motors."""
    return dict(parse_qsl(split_url(url).query)).get("level") == Level.LOW.value


def url_for_ability(url: str, ability: str) -> str:
    """Return the URL of the level that has an ability; raise `UnsupportedError` if the URL names
    the other.
    """
    if ability == EXAMINE:
        return walking_url(url)
    if ability not in MOTORS or is_low(url):
        return url
    if "level=" in url:
        what = MOTORS[ability]
        raise UnsupportedError(what, "a1:// at the high level", ("a1://...?level=low",))
    return f"{url}{'&' if '?' in url else '?'}level=low"


async def read_walking_state(url: str) -> HighState | None:
    """Return the walking controller's state; None if it does not answer.

    Like every connection to it, this makes it stand still.
    """
    client: A1Client | None = None
    try:
        client = await open_client(f"{walking_url(url)}&sender=loop", timeout=_READ_STATE_S)
        state = client.latest
    except (LinkError, RemoteProtocolError):
        return None
    finally:
        if client is not None:
            await client.close()
    assert isinstance(state, HighState)
    return state


async def check_not_standing(url: str, *, read_only: bool = False) -> None:
    """Raise `BadRequestError` if the robot stands and its motors would be taken over.

    With `read_only` it is also refused if that is unknown.
    """
    state = await read_walking_state(url)
    if state is not None and stands(state):
        raise standing_robot_error(
            Text("Leave level=low out, or lay it down first: {lie}.", lie=Act.LIE_DOWN)
            if read_only
            else ""
        )
    if state is not None:
        await asyncio.sleep(_HANDOVER_S)
    elif read_only:
        raise BadRequestError(
            "it is unknown whether the robot stands; if it does, it would sink if its motors were "
            f"taken over: no walking controller answers at {walking_url(url)}",
            "Ask the walking controller at its own port: a1://HOST:PORT",
        )


class A1StopResult(NamedTuple):
    """What a stop has done."""

    was: str
    state: str


async def stop(url: str, *, timeout: float = 5.0) -> A1StopResult:
    """Stop a robot: it stands still, or its motors brake if it does not stand anyway."""
    if not is_low(url):
        return await _stop_walking(url, timeout)
    state = await read_walking_state(url)
    if state is not None and stands(state):
        # Braked motors would let it fall, so such a robot is stopped by its walking controller.
        return await _stop_walking(walking_url(url), timeout)
    client = await open_client(url, timeout=timeout)
    try:
        await A1(client).stop()
        await asyncio.sleep(0.1)
    finally:
        await client.close()
    was = "unknown" if state is None else "down"
    return A1StopResult(
        was, "the motors brake; a program that drives them goes on until it is ended"
    )


async def _stop_walking(url: str, timeout: float) -> A1StopResult:
    client = await open_client(url, timeout=timeout)
    try:
        robot = A1(client)
        before = robot.native
        await robot.stop()
        assert isinstance(before, HighState)
        if is_down(before):
            return A1StopResult("down", "the robot was not on its feet, and stays down")
        # Judged by speed: since the first command its mode is already "stand".
        was = "walking" if _is_moving(before) else "standing"
        if not await _wait_until_standing_still(robot):
            raise TimeLimitError(
                "the robot still moves after a stop: another program drives it",
                "End that program with Ctrl-C, or stop the robot with its remote.",
            )
    finally:
        await client.close()
    return A1StopResult(was, "the robot stands still")


def _is_moving(state: HighState) -> bool:
    speed_m_s = math.hypot(*state.velocity_m_s[:2])
    return speed_m_s > _STILL_M_S or abs(state.yaw_speed_rad_s) > _STILL_RAD_S


async def _wait_until_standing_still(robot: A1) -> bool:
    """Whether it stops in time, and stays motionless for a moment."""
    still = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_STANDS_S):
            async for state in robot.native_states():
                assert isinstance(state, HighState)
                still = 0 if _is_moving(state) else still + 1
                if still >= _STILL_STATES:
                    return True
    return False
