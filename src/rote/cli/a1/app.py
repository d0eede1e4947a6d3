"""rote a1: the A1 and Go1 quadrupeds from the command line."""

import math
import sys
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.a1 import drive as a1_drive
from rote.cli.hexadecimal import hex_bytes
from rote.cli.options import Json, print_json

if TYPE_CHECKING:
    from rote.wire.a1.codec import A1Frame

app = typer.Typer(
    name="a1",
    help="Work with an A1 or Go1 quadruped.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_OFF = (2.146e9, 16_000.0)
"""The values that ask for no position, and for no velocity."""
_WHY = {
    "head": "a Go1's begins with fe ef",
    "crc": "its checksum is wrong",
}
_NEGATIVE = {"ignore_unknown_options": True}
"""So that -1 is a number and no option."""

app.command("status")(a1_drive.status)
app.command("monitor")(a1_drive.monitor)
app.command("walk", context_settings=_NEGATIVE)(a1_drive.walk)
app.command("turn", context_settings=_NEGATIVE)(a1_drive.turn)
app.command("stand")(a1_drive.stand)
app.command("lie")(a1_drive.lie)
app.command("pose", context_settings=_NEGATIVE)(a1_drive.pose)


@app.callback()
def _a1() -> None:
    """Work with an A1 or Go1 quadruped."""


@app.command("decode")
def decode(
    hexadecimal: Annotated[
        str, typer.Argument(metavar="HEX", help="A datagram in hexadecimal, or - to read it.")
    ],
    as_json: Json = False,
) -> int:
    """Decode a datagram of an A1 or Go1: kind, dialect, fields and CRC."""
    from rote.wire.a1 import codec as a1

    datagram = hex_bytes(sys.stdin.read() if hexadecimal == "-" else hexadecimal)
    frame = a1.inspect(datagram)
    document = _document(frame, datagram)
    if as_json:
        print_json(document)
    else:
        _print_document(document)
    return 0


def _document(frame: "A1Frame", datagram: bytes) -> dict[str, Any]:
    from rote.wire.a1.layout import crc

    dialects = [dialect.value for dialect in frame.dialects]
    return {
        "kind": frame.kind.value,
        "dialect": "|".join(dialects),
        "dialects": dialects,
        "length": len(datagram),
        "crc_ok": frame.crc_holds,
        "crc": {
            "holds": frame.crc_holds,
            "form": frame.seal.value if frame.seal else None,
            "stated": frame.crc[::-1].hex(),
            "computed": crc(datagram[:-4])[::-1].hex(),
        },
        "accepted": frame.fault is None,
        "fault": frame.fault.value if frame.fault else None,
        "fields": _json_value(frame.value),
        "reencoded": frame.encode().hex(),
    }


def _json_value(value: Any) -> Any:
    """Return a value as JSON data; NaN and infinity become texts."""
    from rote.wire.a1.motors import MotorCmds, MotorStates

    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        fields = {name: _json_value(field) for name, field in value._asdict().items()}
        if isinstance(fields.get("remote"), str):
            fields["remote_read"] = _decode_remote(bytes.fromhex(fields["remote"]))
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, tuple | MotorCmds | MotorStates):
        return [_json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _decode_remote(wire: bytes) -> dict[str, Any]:
    from rote.wire.a1.values import Button, Remote

    remote = Remote.unpack(wire)
    sticks = ("left_x", "left_y", "right_x", "right_y", "l2")
    held = [button.name for button in Button if button in remote.buttons]
    return {"buttons": held, **{stick: _json_value(getattr(remote, stick)) for stick in sticks}}


def _print_document(document: dict[str, Any]) -> None:
    dialects = " or ".join(document["dialects"])
    print(f"{document['kind']}, dialect {dialects}, {document['length']} bytes")
    crc = document["crc"]
    form = f" ({crc['form']})" if crc["form"] else f"; by the bytes it is {crc['computed']}"
    print(f"CRC {crc['stated']} {'holds' if crc['holds'] else 'does not hold'}{form}")
    if document["fault"] is not None:
        print(f"A receiver drops this frame: {_WHY[document['fault']]}.")
    for name, field in document["fields"].items():
        if name == "motors":
            _show_motors(field)
        else:
            print(f"  {name}: {_format_field(field)}")


def _show_motors(motors: list[dict[str, Any]]) -> None:
    for _, alike in groupby(enumerate(motors), lambda numbered: numbered[1]):
        (first, motor), *others = alike
        numbers = f"{first} to {others[-1][0]}" if others else first
        print(f"  motor {numbers}: {_format_field(motor)}")


def _format_field(field: Any) -> str:
    if isinstance(field, dict):
        return ", ".join(f"{name} {_format_field(value)}" for name, value in field.items())
    if isinstance(field, list):
        rows = [list(item.values()) if isinstance(item, dict) else item for item in field]
        return "(" + ", ".join(map(_format_field, rows)) + ")"
    if isinstance(field, float):
        return "off" if field in _OFF else f"{field:.6g}"
    return str(field)
