"""rote send: one documented frame for an experiment, checked like everything else."""

from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.hexadecimal import parse_hex
from rote.cli.options import (
    TIMEOUT_S,
    Json,
    Key,
    Keylog,
    RobotChoice,
    RobotUrl,
    Timeout,
    connect_to,
    print_json,
    require_ability,
    run,
)
from rote.errors import BadRequestError
from rote.text import suggest_names
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.messages import Reply


def send(
    command: Annotated[
        str,
        typer.Argument(
            metavar="COMMAND",
            help="The command: 0x1a, 26, or its name, like list (see rote frame make).",
        ),
    ],
    payload: Annotated[
        str,
        typer.Argument(help="The payload in hex, padded to 44 bytes.", metavar="[HEX]"),
    ] = "",
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Send one documented frame and show the answer; for experiments.

    It is decoded and checked before it is sent: what `rote play` or `rote modes` would refuse is
    refused here. Works over udp:// and sim:// only. With a payload, for example:
    rote send parameter-sync 0102.
    """
    payload_bytes = parse_hex(payload) if payload else b""
    return run(
        _send_frame(
            RobotChoice(robot, key, keylog, timeout),
            _parse_command(command),
            payload_bytes,
            as_json,
        )
    )


def _parse_command(text: str) -> int:
    """Return the number of a command that was given as a number or a name."""
    from rote.wire.teaching.fields import get_command_numbers

    names = get_command_numbers()
    name = text.lower().replace("_", "-")
    if name in names:
        return names[name]
    try:
        return int(text, 0)
    except ValueError:
        known = ", ".join(f"0x{number:02x} {name}" for name, number in names.items())
        remedy = f"{suggest_names(name, [*names])} Use one of: {known}.".lstrip()
        raise BadRequestError(f"there is no command {text!r}", remedy) from None


async def _send_frame(target: RobotChoice, command: int, payload: bytes, as_json: bool) -> None:
    require_ability(target, "frames", "send single frames")
    async with connect_to(target, quiet=as_json) as robot:
        reply = await robot.send(command, payload)
    document = {"command": f"0x{command:02x}", **_describe_reply(reply)}
    if as_json:
        print_json(document)
    else:
        print(", ".join(f"{name} {value}" for name, value in document.items() if value != ""))


def _describe_reply(reply: "Reply") -> dict[str, object]:
    """Return the code of a reply, and its actions or its note."""
    from rote import messages as m
    from rote.cli import output

    if isinstance(reply, m.ActionList):
        return {
            "code": 0,
            "actions": [output.make_printable(entry.name) for entry in reply.actions],
        }
    if isinstance(reply, m.Status):
        return {"code": int(reply.code), "note": output.make_printable(reply.note)}
    return {"code": 0}
