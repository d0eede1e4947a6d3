"""rote send: one documented frame for an experiment, checked like everything else."""

from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.hexadecimal import hex_bytes
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
from rote.transport.wires import EMBEDDED

if TYPE_CHECKING:
    from rote.messages import Reply


def send(
    command: Annotated[
        str,
        typer.Argument(
            metavar="COMMAND", help="The command: 0x1a, 26, or its name, like list-actions."
        ),
    ],
    payload: Annotated[
        str,
        typer.Argument(help="The payload in hex; filled up to 44 bytes.", metavar="[HEX]"),
    ] = "",
    robot: RobotUrl = EMBEDDED,
    key: Key = None,
    keylog: Keylog = None,
    timeout: Timeout = TIMEOUT_S,
    as_json: Json = False,
) -> int:
    """Send one documented frame and show the answer; for experiments.

    It is read and checked before it is sent: what `rote play` or `rote modes` would refuse is
    refused here. Only the documented frames can: udp:// and sim://. Parameters, for example:
    rote send parameter-sync 0102.
    """
    wanted = hex_bytes(payload) if payload else b""
    return run(_send(RobotChoice(robot, key, keylog, timeout), _command(command), wanted, as_json))


def _command(text: str) -> int:
    from rote.wire.teaching.codec import COMMANDS, CommandId

    for each in sorted(COMMANDS):
        if text.lower().replace("_", "-") == CommandId(each).name.lower().replace("_", "-"):
            return each
    try:
        return int(text, 0)
    except ValueError:
        known = ", ".join(
            f"0x{each:02x} {CommandId(each).name.lower().replace('_', '-')}"
            for each in sorted(COMMANDS)
        )
        raise BadRequestError(f"there is no command {text!r}", f"There are: {known}.") from None


async def _send(target: RobotChoice, command: int, payload: bytes, as_json: bool) -> None:
    require_ability(target, "frames", "send single frames")
    async with connect_to(target, quiet=as_json) as robot:
        reply = await robot.send(command, payload)
    document = {"command": f"0x{command:02x}", **_reply_document(reply)}
    if as_json:
        print_json(document)
    else:
        print(", ".join(f"{name} {value}" for name, value in document.items() if value != ""))


def _reply_document(reply: "Reply") -> dict[str, object]:
    from rote import messages as m
    from rote.cli import output

    if isinstance(reply, m.ActionList):
        return {"code": 0, "actions": [output.printable(entry.name) for entry in reply.actions]}
    if isinstance(reply, m.Status):
        return {"code": int(reply.code), "note": output.printable(reply.note)}
    return {"code": 0}
