"""Options that several commands share."""

import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.errors import (
    BadRequestError,
    LinkError,
    NotConfirmedError,
    PeerLostError,
    RefusedError,
    RoteError,
    TimeLimitError,
)
from rote.platform.console_text import json_text
from rote.platform.system import end_signals, on_signal
from rote.transport.wires import EMBEDDED

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
        help="webrtc:// only: append the session's secrets to FILE for decryption in Wireshark.",
    ),
]
TIMEOUT_S = 5.0
_STOP_AGAIN_S = 0.5
"""Delay before a stop that did not reach the robot is sent again."""
Timeout = Annotated[
    float,
    typer.Option("--timeout", metavar="SECONDS", help="Timeout for an answer of the robot."),
]
Name = Annotated[str, typer.Argument(metavar="ACTION", help="The action's name.")]
HELP = ("-h", "--help")
"""The options that show the help of a command."""
Json = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]


def run(work: Coroutine[Any, Any, int | None]) -> int:
    """Run a command to its end and return its exit code; termination signals cancel it.

    The handlers stay until the loop is closed: a signal meanwhile must not change the exit code.
    """
    # Ctrl-C too: by default a second one would abandon a stop that is under way.
    numbers = (signal.SIGINT, *end_signals())
    former = {one: signal.getsignal(one) for one in numbers}
    handled = [one for one in numbers if former[one] is not signal.SIG_IGN]  # nohup
    unwound = _cancel_on_signals(work, handled)
    try:
        import asyncio

        from rote.platform.loop import new_loop

        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(unwound) or 0
    finally:
        # Ctrl-C may come before the loop runs; then nothing else closes these.
        unwound.close()
        work.close()
        for number in handled:
            signal.signal(number, former[number] or signal.SIG_DFL)


async def _cancel_on_signals(
    work: Coroutine[Any, Any, int | None], handled: Sequence[int]
) -> int | None:
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def unwind(number: int) -> None:
        received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in handled:
        on_signal(loop, number, partial(unwind, number))
    try:
        code = await work
        return 128 + received[0] if received and code == 128 + signal.SIGINT else code
    except asyncio.CancelledError:
        if not received:
            raise
        return 128 + received[0]


Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace an existing item of that name.")
]


def choice(values: Iterable[str]) -> str:
    """Return the metavar of an option with a fixed set of values."""
    return f"[{'|'.join(values)}]"


def refuse_idle(ctx: typer.Context, names: Iterable[str], why: str) -> None:
    """Raise `BadRequestError` if one of these options was given but would have no effect.

    `names` are those of the command's parameters; `why` completes "--speed does nothing".
    """
    for param in ctx.command.params:
        given = ctx.get_parameter_source(str(param.name))
        if param.name in names and given is not None and given.name == "COMMANDLINE":
            raise BadRequestError(f"{max(param.opts, key=len)} does nothing {why}", "Leave it out.")


@dataclass(frozen=True, slots=True)
class RobotChoice:
    """Which robot, and what is needed to connect to it."""

    url: str
    key: str | None = None
    keylog: Path | None = None
    timeout_s: float = TIMEOUT_S

    def key_for(self) -> str | None:
        """Return the key if the robot's wire takes one.

        A key in the environment is for any robot that needs one; one that was given as an option is
        for this robot, and refused if it has no effect.
        """
        from rote.transport.wires import wire_of

        if wire_of(self.url).takes_key:
            return self.key
        if self.key is not None and self.key != os.environ.get("ROTE_KEY"):
            raise BadRequestError("--key is for webrtc:// only", "Leave it out.")
        return None

    @property
    def arguments(self) -> str:
        """The options that make another command use the same robot; the key is left out."""
        if self.url == EMBEDDED or "ROTE_ROBOT" in os.environ:
            return ""
        return f" --robot {shlex.quote(self.url)}"


@asynccontextmanager
async def connect_to(
    target: RobotChoice,
    ability: str | None = None,
    *,
    quiet: bool = False,
    every_state: bool = False,
    reconnect: bool = False,
) -> "AsyncIterator[Robot]":
    """Connect to a robot for an ability; a terminal shows a spinner meanwhile.

    Later waits are printed too, unless `quiet`, for JSON. With `reconnect` a lost robot is
    connected again, so that a stop reaches it.
    """
    from rote.cli import output
    from rote.connection import connect

    async with AsyncExitStack() as stack:
        with output.waiting(f"connecting to {target.url}"):
            robot = await stack.enter_async_context(
                connect(
                    target.url,
                    timeout=target.timeout_s,
                    key=target.key_for(),
                    keylog=target.keylog,
                    reconnect=reconnect,
                    ability=ability,
                    every_state=every_state,
                )
            )
        if not quiet:
            stack.callback(robot.on_waiting(_print_waiting))
        yield robot


def _print_waiting(waiting: "Waiting | None") -> None:
    """Print on standard error why the command waits, even in a script: it explains the delay."""
    from rote.robot.api_values import Waits

    if waiting is None:
        return
    events = {
        Waits.RELEASE: "the arms come to rest",
        Waits.LISTED: f"the robot lists {waiting.name!r}",
    }
    message = f"Waiting until {events[waiting.why]}, {waiting.most_s:.0f} s at most."
    print(message, file=sys.stderr, flush=True)


def require_ability(target: RobotChoice, ability: str, what: str, remedy: str = "") -> None:
    """Raise `UnsupportedError` if the wire of a robot cannot do what a command is for.

    This is checked before connecting; what the robot itself cannot do is reported by the robot.
    """
    from rote.transport.wires import unsupported, wire_of

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
        await _stop_until_confirmed(robot)
        print_stopped(how_left, as_json)
        raise


async def _stop_until_confirmed(robot: "Robot") -> None:
    """Stop the robot. If it does not confirm the stop, print so and try again until it does.

    Ctrl-C does not interrupt the first attempt; after that it gives up.
    """
    import asyncio

    from rote.platform.loop import to_the_end

    try:
        with suppress(asyncio.CancelledError):
            await to_the_end(robot.stop())
    except RoteError as error:
        error.headline = failed_stop(error, robot.build.limbs, sent=True)
        if not isinstance(error, LinkError) or not robot.stop_pending:
            raise
        with suppress(OSError):  # the stop is sent again even if standard error is closed
            print(
                f"{error.headline[0].upper()}{error.headline[1:]}: {error}. The stop is sent again "
                "until the robot confirms it; Ctrl-C gives up.",
                file=sys.stderr,
                flush=True,
            )
        try:
            await _repeat_stop(robot)
        except asyncio.CancelledError:
            raise error from None


async def _repeat_stop(robot: "Robot") -> None:
    """Repeat the stop until it reaches the robot."""
    import asyncio

    while True:
        await asyncio.sleep(_STOP_AGAIN_S)
        with suppress(LinkError):
            await robot.stop()
            return


def failed_stop(error: BaseException, limbs: str = "arms", *, sent: bool = False) -> str:
    """Return the headline for a failed stop, and what to use instead.

    `limbs` are what the robot moves; `sent`: whether it was connected when the stop was requested.
    """
    if isinstance(error, RefusedError):
        what = "the robot did NOT accept the stop"
    elif isinstance(error, TimeLimitError):
        what = "the robot did NOT stop"
    elif sent or isinstance(error, NotConfirmedError | PeerLostError):
        what = "the robot did NOT confirm the stop"
    else:
        what = "the stop did NOT reach the robot"
    buttons = "L2+B: its legs go limp" if limbs == "legs" else "L2+B"
    return f"{what}; use the remote ({buttons})"


def print_safety_notice(build: "Build", as_json: bool) -> None:
    """Print the safety notice before a session's first motion, as the phone app does.

    It goes to standard error, so that the log of an unattended run contains it.
    """
    from rote.cli import output

    if as_json:
        return
    standing = "" if output.limbs(build) == "legs" else "the robot stands under control, "
    print(
        f"Before it moves: {standing}there is space around it, and a person has the remote "
        "in hand for an emergency stop. Ctrl-C stops softly.",
        file=sys.stderr,
        flush=True,
    )


def print_stopped(how_left: str, as_json: bool, **more: object) -> None:
    """Print how the robot was left after an interrupt, if the output is still open."""
    with suppress(OSError):
        if as_json:
            print_json({"stopped": True, "state": how_left, **more})
        else:
            print(f"Stopped softly: {how_left}.", file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    print(json_text(document), flush=True)
