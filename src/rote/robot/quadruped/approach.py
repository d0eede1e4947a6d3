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
from rote.robot.quadruped.commands import is_down, is_standing, make_standing_robot_error
from rote.robot.quadruped.robot import A1, MOTORS
from rote.session.a1 import Level
from rote.text import Act, Text
from rote.transport.a1.client import A1Client, open_client, walking_url
from rote.transport.link import split_url
from rote.transport.wires import EXAMINE
from rote.wire.a1.values import HighState

_READ_TIMEOUT_S = 1.0
_HANDOVER_S = 1.1
"""Time without commands at one level after which a robot obeys the other, in seconds; a guess."""
_STANDSTILL_TIMEOUT_S = 2.0
_STILL_M_S, _STILL_RAD_S = 0.03, 0.05  # a robot that is slower stands still
_STILL_STATES = 10  # that many states in a row prove it


def is_low(url: str) -> bool:
    """Whether a URL names the low level, the motors."""
    return dict(parse_qsl(split_url(url).query)).get("level") == Level.LOW.value


def url_for_ability(url: str, ability: str) -> str:
    """Return the URL with the level that an ability needs. Raises `UnsupportedError` if the URL
    already names the other level.
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

    Connecting to the walking controller makes the robot stand still.
    """
    client: A1Client | None = None
    try:
        client = await open_client(f"{walking_url(url)}&sender=loop", timeout=_READ_TIMEOUT_S)
        state = client.latest
    except (LinkError, RemoteProtocolError):
        return None
    finally:
        if client is not None:
            await client.close()
    assert isinstance(state, HighState)
    return state


async def check_not_standing(url: str, *, read_only: bool = False) -> None:
    """Raise `BadRequestError` if the robot stands: taking over its motors would make it sink.

    With `read_only` it also raises if the walking controller does not answer.
    """
    state = await read_walking_state(url)
    if state is not None and is_standing(state):
        raise make_standing_robot_error(
            Text(
                "Remove level=low from the URL, or lay the robot down first: {lie}.",
                lie=Act.LIE_DOWN,
            )
            if read_only
            else ""
        )
    if state is not None:
        await asyncio.sleep(_HANDOVER_S)
    elif read_only:
        raise BadRequestError(
            "it is unknown whether the robot stands, because no walking controller answers at "
            f"{walking_url(url)}; a standing robot would sink if its motors were taken over",
            "Give the port of the walking controller: a1://HOST:PORT",
        )


class A1StopResult(NamedTuple):
    """The result of a stop: what the robot did before, and its state now, as texts."""

    was: str
    state: str


async def stop(url: str, *, timeout: float = 5.0) -> A1StopResult:
    """Stop a robot: a standing or walking robot stands still, otherwise its motors brake."""
    if not is_low(url):
        return await _stop_walking(url, timeout)
    state = await read_walking_state(url)
    if state is not None and is_standing(state):
        # Braked motors would let a standing robot fall, so its walking controller stops it.
        return await _stop_walking(walking_url(url), timeout)
    client = await open_client(url, timeout=timeout)
    try:
        await A1(client).stop()
        await asyncio.sleep(0.1)  # the client repeats the command meanwhile
    finally:
        await client.close()
    was = "unknown" if state is None else "down"
    return A1StopResult(
        was, "the motors brake; a program that drives them continues until you end it"
    )


async def _stop_walking(url: str, timeout: float) -> A1StopResult:
    """Stop a robot by its walking controller. Raises `TimeLimitError` if it keeps moving."""
    client = await open_client(url, timeout=timeout)
    try:
        robot = A1(client)
        before = robot.native
        await robot.stop()
        assert isinstance(before, HighState)
        if is_down(before):
            return A1StopResult("down", "the robot was not on its feet, and stays down")
        # Judged by speed: connecting has already changed its mode to "stand".
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
    """Wait until the robot stays motionless for a moment; return False if it does not in time."""
    still_states = 0
    with suppress(TimeoutError):
        async with asyncio.timeout(_STANDSTILL_TIMEOUT_S):
            async for state in robot.native_states():
                assert isinstance(state, HighState)
                still_states = 0 if _is_moving(state) else still_states + 1
                if still_states >= _STILL_STATES:
                    return True
    return False
