"""Connecting to an A1 from the command line."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING

from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.robot.quadruped.robot import A1


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
