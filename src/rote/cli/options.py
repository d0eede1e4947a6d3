"""Options that several commands share."""

import json
import signal
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from rote.robot.g1 import G1

Robot = Annotated[
    str,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="udp://HOST[:49504], or sim://g1 for the embedded simulated robot.",
    ),
]
Name = Annotated[str, typer.Argument(help="The action's name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
EMBEDDED = "sim://g1"


def run(work: Coroutine[Any, Any, int | None]) -> int:
    """Run a command to its end and return its exit code; signals that ask to end unwind it."""
    import asyncio

    from rote.transport.loop import new_loop

    with asyncio.Runner(loop_factory=new_loop) as runner:
        return runner.run(_unwound_by_signals(work)) or 0


async def _unwound_by_signals(work: Coroutine[Any, Any, int | None]) -> int | None:
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    heard: list[int] = []

    def unwind(number: int) -> None:
        heard.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, unwind, number)
    try:
        return await work
    except asyncio.CancelledError:
        if not heard:
            raise
        return 128 + heard[0]
    finally:
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.remove_signal_handler(number)


@asynccontextmanager
async def reach(url: str) -> "AsyncIterator[G1]":
    """Connect to a robot; on a terminal it shows that it is waiting."""
    from rote.cli import show
    from rote.connection import connect

    async with AsyncExitStack() as stack:
        with show.waiting(f"connecting to {url}"):
            robot = await stack.enter_async_context(connect(url))
        yield robot


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(document, ensure_ascii=False), flush=True)
