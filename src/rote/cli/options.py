"""Options that several commands share."""

import os
import shlex
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import partial, wraps
from inspect import Parameter, Signature, signature
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


def parse_whole_number(text: str) -> int:
    """Return an integer: decimal, or with the prefix 0x, 0o or 0b."""
    try:
        return int(text, 0)
    except ValueError:
        raise BadRequestError(f"{text!r} is not a whole number", "Write 26 or 0x1a.") from None


def parse_floats(text: str) -> list[float]:
    """Return the numbers of a comma-separated list."""
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise BadRequestError(
            f"{text!r} is not a comma-separated list of numbers", "Write it like 0.5,-1,2."
        ) from None


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
EXIT_NOT_PLAYABLE = 5
"""Exit code of the commands that check motions, if a motion cannot be played."""
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
    signals = (signal.SIGINT, *end_signals())
    former_handlers = {each: signal.getsignal(each) for each in signals}
    # A signal that is ignored, as under nohup, stays ignored.
    handled = [each for each in signals if former_handlers[each] is not signal.SIG_IGN]
    cancellable = _cancel_on_signals(work, handled)
    try:
        import asyncio

        from rote.platform.loop import new_loop

        with asyncio.Runner(loop_factory=new_loop) as runner:
            return runner.run(cancellable) or 0
    finally:
        # Ctrl-C may come before the loop runs; then nothing else closes these.
        cancellable.close()
        work.close()
        for number in handled:
            signal.signal(number, former_handlers[number] or signal.SIG_DFL)


async def _cancel_on_signals(
    work: Coroutine[Any, Any, int | None], handled: Sequence[int]
) -> int | None:
    """Run `work`, which these signals cancel; return its exit code, or 128 + the signal."""
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    received: list[int] = []

    def cancel_task(number: int) -> None:
        received.append(number)
        task.cancel()

    loop = asyncio.get_running_loop()
    for number in handled:
        on_signal(loop, number, partial(cancel_task, number))
    try:
        code = await work
        # A command that handles its cancellation returns the code of Ctrl-C for every signal.
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


def expand_option_classes(command: Callable[..., int]) -> Callable[..., int]:
    """Return a command with one option for each field of its parameters that are dataclasses.

    Typer reads the options of a command from the signature of its function, so this makes one.
    """
    groups: dict[str, Any] = {}
    options: list[Parameter] = []
    for each in signature(command).parameters.values():
        if is_dataclass(each.annotation):
            groups[each.name] = each.annotation
            options += [
                Parameter(
                    field.name, Parameter.KEYWORD_ONLY, annotation=field.type, default=field.default
                )
                for field in fields(each.annotation)
            ]
        else:
            options.append(each.replace(kind=Parameter.KEYWORD_ONLY))

    @wraps(command)
    def run_command(**values: Any) -> int:
        for name, kind in groups.items():
            values[name] = kind(**{field.name: values.pop(field.name) for field in fields(kind)})
        return command(**values)

    run_command.__annotations__ = {each.name: each.annotation for each in options}
    vars(run_command)["__signature__"] = Signature(options)
    return run_command


def refuse_unused_options(ctx: typer.Context, names: Iterable[str], why: str) -> None:
    """Raise `BadRequestError` if one of these options was given although it has no effect.

    `names` are the names of the command's parameters. `why` completes "--speed does nothing ...".
    """
    for param in ctx.command.params:
        source = ctx.get_parameter_source(str(param.name))
        if param.name in names and source is not None and source.name == "COMMANDLINE":
            raise BadRequestError(f"{max(param.opts, key=len)} does nothing {why}", "Leave it out.")


@dataclass(frozen=True, slots=True)
class RobotChoice:
    """Which robot, and what is needed to connect to it."""

    url: str
    key: str | None = None
    keylog: Path | None = None
    timeout_s: float = TIMEOUT_S

    def choose_key(self) -> str | None:
        """Return the key if the robot's wire takes one, otherwise None.

        Raises `BadRequestError` if `--key` was given although it has no effect. A key from the
        environment raises no error, because it may be for other robots.
        """
        from rote.transport.wires import wire_of

        if wire_of(self.url).takes_key:
            return self.key
        if self.key is not None and self.key != os.environ.get("ROTE_KEY"):
            raise BadRequestError("--key is for webrtc:// only", "Leave it out.")
        return None

    @property
    def arguments(self) -> str:
        """The options, without the key, with which another command uses the same robot."""
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
    """Connect to a robot to use an ability, and show a spinner on a terminal until connected.

    Unless `quiet`, later waits for the robot are printed too. With `reconnect`, a lost connection
    is opened again, so that a stop reaches the robot.
    """
    from rote.cli import output
    from rote.connection import connect

    async with AsyncExitStack() as stack:
        with output.show_spinner(f"connecting to {target.url}"):
            robot = await stack.enter_async_context(
                connect(
                    target.url,
                    timeout=target.timeout_s,
                    key=target.choose_key(),
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
    """Raise `UnsupportedError` if the wire of a robot lacks an ability that a command needs.

    `what` completes "the wire cannot ...". This check needs no connection. Once connected, the
    robot itself may lack the ability.
    """
    from rote.transport.wires import unsupported, wire_of

    wire = wire_of(target.url)
    if ability not in wire.abilities | wire.perhaps:
        raise unsupported(what, wire.scheme, ability, remedy)


@asynccontextmanager
async def stopping_softly(
    robot: "Robot", how_left: str, as_json: bool = False
) -> AsyncIterator[None]:
    """Stop the robot softly if Ctrl-C or a signal ends the block, and print `how_left`.

    `how_left` says what the robot does after the stop, such as "the arms return to rest".
    """
    import asyncio

    try:
        yield
    except asyncio.CancelledError:
        await stop_until_confirmed(robot)
        print_stopped(how_left, as_json)
        raise


async def stop_until_confirmed(robot: "Robot") -> None:
    """Stop the robot. If it does not confirm the stop, print this and try again until it does.

    Ctrl-C does not interrupt the first attempt; later Ctrl-C ends the attempts.
    """
    import asyncio

    from rote.platform.loop import to_the_end

    try:
        with suppress(asyncio.CancelledError):
            await to_the_end(robot.stop())
    except RoteError as error:
        error.headline = describe_failed_stop(error, robot.build.limbs, sent=True)
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


def describe_failed_stop(error: BaseException, limbs: str = "arms", *, sent: bool = False) -> str:
    """Return the headline for a failed stop: what failed, and which remote buttons to press.

    `limbs` is "arms" or "legs". `sent` means that the stop was sent over an open connection.
    """
    if isinstance(error, RefusedError):
        failure = "the robot did NOT accept the stop"
    elif isinstance(error, TimeLimitError):
        failure = "the robot did NOT stop"
    elif sent or isinstance(error, NotConfirmedError | PeerLostError):
        failure = "the robot did NOT confirm the stop"
    else:
        failure = "the stop did NOT reach the robot"
    buttons = "L2+B: its legs go limp" if limbs == "legs" else "L2+B"
    return f"{failure}; use the remote ({buttons})"


def print_safety_notice(build: "Build", as_json: bool) -> None:
    """Print the safety notice of the phone app; call it before the first motion.

    It goes to standard error, so that the log of an unattended run contains it.
    """
    if as_json:
        return
    standing = "" if build.limbs == "legs" else "the robot standing under control with "
    print(
        f"Before playback, keep {standing}enough space. Operator must hold remote or app for "
        "emergency stop. Ctrl-C stops softly.",
        file=sys.stderr,
        flush=True,
    )


def print_stopped(how_left: str, as_json: bool, **details: object) -> None:
    """Print what the robot does after an interrupt; do nothing if the output is closed."""
    with suppress(OSError):
        if as_json:
            print_json({"stopped": True, "state": how_left, **details})
        else:
            print(f"Stopped softly: {how_left}.", file=sys.stderr, flush=True)


def print_json(document: object) -> None:
    """Print one JSON document on standard output."""
    print(json_text(document), flush=True)
