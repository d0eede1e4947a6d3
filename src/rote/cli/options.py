"""Options that several commands share."""

import json
import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.client.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.model.family import Build
    from rote.robot.api_values import Waiting
    from rote.robot.robot import Robot

RobotUrl = Annotated[
    str,
    typer.Option(
        "--robot",
        envvar="ROTE_ROBOT",
        metavar="URL",
        help="webrtc://HOST, webrtc://SERIAL, webrtc://ap, dds://INTERFACE, udp://HOST[:49504], "
        "a1://HOST, or sim://g1 for the embedded simulated robot.",
    ),
]
Key = Annotated[
    str | None,
    typer.Option(
        "--key",
        envvar="ROTE_KEY",
        metavar="HEX",
        help="webrtc:// only: the robot's own key, for firmware from 1.5.1.",
        show_envvar=True,
    ),
]
Keylog = Annotated[
    Path | None,
    typer.Option(
        "--keylog",
        metavar="FILE",
        help="webrtc:// only: add the session's secrets to FILE, so that Wireshark can read it.",
    ),
]
Name = Annotated[str, typer.Argument(help="The action's name.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def run(work: Coroutine[Any, Any, int | None]) -> int:
    """Run a command to its end and return its exit code; signals that ask to end unwind it."""
    import asyncio

    from rote.host.loop import new_loop

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
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)}
    ours = [number for number, former in before.items() if former is not signal.SIG_IGN]  # nohup
    for number in ours:
        loop.add_signal_handler(number, unwind, number)
    try:
        return await work
    except asyncio.CancelledError:
        if not heard:
            raise
        return 128 + heard[0]
    finally:
        for number in ours:
            loop.remove_signal_handler(number)
            signal.signal(number, before[number] or signal.SIG_DFL)


Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there under that name.")
]


@dataclass(frozen=True, slots=True)
class RobotChoice:
    """Which robot, and what is needed to connect to it."""

    url: str
    key: str | None = None
    keylog: Path | None = None

    @property
    def arguments(self) -> str:
        """The options that make another command use the same robot; the key is left out."""
        if self.url == EMBEDDED or "ROTE_ROBOT" in os.environ:
            return ""
        return f" --robot {shlex.quote(self.url)}"


@asynccontextmanager
async def connect_to(
    target: RobotChoice, ability: str | None = None, *, quiet: bool = False
) -> "AsyncIterator[Robot]":
    """Connect to a robot for an ability; a terminal shows that it is waiting.

    Later waits are printed too, unless `quiet`, for JSON.
    """
    from rote.cli import output
    from rote.client.wires import wire_of
    from rote.connection import connect

    # A key in the environment is for any robot that needs one; a key given as an option is for this
    # one.
    wanted = target.key if wire_of(target.url).takes_key else None
    async with AsyncExitStack() as stack:
        with output.waiting(f"connecting to {target.url}"):
            robot = await stack.enter_async_context(
                connect(
                    target.url,
                    key=wanted,
                    keylog=target.keylog,
                    reconnect=False,
                    ability=ability,
                )
            )
        if not quiet:
            stack.callback(robot.on_waiting(_tell_waiting))
        yield robot


def _tell_waiting(waiting: "Waiting | None") -> None:
    """Print on standard error what is waited for, even in a script: it explains the delay."""
    from rote.robot.api_values import Waits

    if waiting is None:
        return
    events = {
        Waits.RELEASE: "the arms come to rest",
        Waits.LISTED: f"the robot lists {waiting.name!r}",
    }
    told = f"Waiting until {events[waiting.why]}, {waiting.most_s:.0f} s at most."
    print(told, file=sys.stderr, flush=True)


def need(target: RobotChoice, ability: str, what: str, remedy: str = "") -> None:
    """Raise `UnsupportedError` if the wire of a robot cannot do what a command is for.

    This is checked before a connection is made; what the robot itself cannot do is reported by it.
    """
    from rote.client.wires import unsupported, wire_of

    wire = wire_of(target.url)
    if ability not in wire.abilities | wire.perhaps:
        raise unsupported(what, wire.scheme, ability, remedy)


@asynccontextmanager
async def stopping_softly(
    robot: "Robot", how_left: str, as_json: bool = False
) -> AsyncIterator[None]:
    """Stop the robot softly if Ctrl-C or a signal ends the block, and print how it is left."""
    import asyncio

    try:
        yield
    except asyncio.CancelledError:
        await asyncio.shield(robot.stop())
        tell_stopped(how_left, as_json)
        raise


def tell_to_keep_clear(build: "Build", as_json: bool) -> None:
    """Say before a session's first motion what a person has to see to, as the phone app does.

    It goes to standard error, so that it is in the log of whoever runs this unattended.
    """
    from rote.cli import output

    if as_json:
        return
    standing = "" if output.limbs(build) == "legs" else "the robot stands under control, "
    print(
        f"Before it moves: {standing}there is space around it, and somebody has the remote "
        "in hand for an emergency stop. Ctrl-C stops softly.",
        file=sys.stderr,
        flush=True,
    )


def tell_stopped(how_left: str, as_json: bool, **more: object) -> None:
    """Tell the person who interrupted a command how the robot was left."""
    if as_json:
        print_json({"stopped": True, "state": how_left, **more})
    else:
        print(f"Stopped softly: {how_left}.", file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    print(json.dumps(document, ensure_ascii=False), flush=True)
