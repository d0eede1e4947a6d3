"""rote a1: the A1 and Go1 quadrupeds from the command line."""

import math
import sys
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rote.cli.a1 import drive as a1_drive
from rote.cli.hexadecimal import parse_hex
from rote.cli.options import Json, print_json

if TYPE_CHECKING:
    from rote.wire.a1.codec import A1Frame

app = typer.Typer(
    name="a1",
    help="Work with an A1 or Go1 quadruped.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_OFF_VALUES = (2.146e9, 16_000.0)
"""The values with which a motor command leaves its position, or its velocity, uncontrolled."""
_FAULT_TEXTS = {
    "head": "a Go1's begins with fe ef",
    "crc": "its checksum is wrong",
}
_ALLOW_NEGATIVE = {"ignore_unknown_options": True}
"""Parses -1 as a number, not as an option."""

app.command("status")(a1_drive.status)
app.command("monitor")(a1_drive.monitor)
app.command("walk", context_settings=_ALLOW_NEGATIVE)(a1_drive.walk)
app.command("turn", context_settings=_ALLOW_NEGATIVE)(a1_drive.turn)
app.command("stand")(a1_drive.stand)
app.command("lie")(a1_drive.lie)
app.command("pose", context_settings=_ALLOW_NEGATIVE)(a1_drive.pose)


@app.callback()
def _define_group() -> None:
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

    datagram = parse_hex(sys.stdin.read() if hexadecimal == "-" else hexadecimal)
    frame = a1.inspect(datagram)
    document = _build_document(frame, datagram)
    if as_json:
        print_json(document)
    else:
        _print_document(document)
    return 0


def _build_document(frame: "A1Frame", datagram: bytes) -> dict[str, Any]:
    from rote.wire.a1.layout import crc

    dialects = [dialect.value for dialect in frame.dialects]
    # The wire carries the CRC little-endian; the document shows its highest byte first.
    stated_crc, computed_crc = frame.crc[::-1], crc(datagram[:-4])[::-1]
    return {
        "kind": frame.kind.value,
        "dialect": "|".join(dialects),
        "dialects": dialects,
        "length": len(datagram),
        "crc_ok": frame.crc_holds,
        "crc": {
            "holds": frame.crc_holds,
            "form": frame.seal.value if frame.seal else None,
            "stated": stated_crc.hex(),
            "computed": computed_crc.hex(),
        },
        "accepted": frame.fault is None,
        "fault": frame.fault.value if frame.fault else None,
        "fields": _to_json_value(frame.value),
        "reencoded": frame.encode().hex(),
    }


def _to_json_value(value: Any) -> Any:
    """Return a value as JSON data; NaN and infinity become texts."""
    from rote.wire.a1.motors import MotorCmds, MotorStates

    if isinstance(value, tuple) and hasattr(value, "_asdict"):  # a named tuple
        fields = {name: _to_json_value(field) for name, field in value._asdict().items()}
        if isinstance(fields.get("remote"), str):
            fields["remote_read"] = _decode_remote(bytes.fromhex(fields["remote"]))
        return {name: field for name, field in fields.items() if field is not None}
    if isinstance(value, tuple | MotorCmds | MotorStates):
        return [_to_json_value(item) for item in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _decode_remote(data: bytes) -> dict[str, Any]:
    """Return the pressed buttons of the remote, and the values of its sticks and of L2."""
    from rote.wire.a1.values import Button, Remote

    remote = Remote.unpack(data)
    axes = ("left_x", "left_y", "right_x", "right_y", "l2")
    pressed = [button.name for button in Button if button in remote.buttons]
    return {"buttons": pressed, **{axis: _to_json_value(getattr(remote, axis)) for axis in axes}}


def _print_document(document: dict[str, Any]) -> None:
    dialects = " or ".join(document["dialects"])
    print(f"{document['kind']}, dialect {dialects}, {document['length']} bytes")
    crc = document["crc"]
    form = f" ({crc['form']})" if crc["form"] else f"; computed {crc['computed']}"
    print(f"CRC {crc['stated']} {'holds' if crc['holds'] else 'does not hold'}{form}")
    if document["fault"] is not None:
        print(f"A receiver drops this frame: {_FAULT_TEXTS[document['fault']]}.")
    for name, field in document["fields"].items():
        if name == "motors":
            _print_motors(field)
        else:
            print(f"  {name}: {_format_field(field)}")


def _print_motors(motors: list[dict[str, Any]]) -> None:
    """Print one line for each motor, or one for a run of motors with equal fields."""
    first = 0
    for motor, run in groupby(motors):
        last = first + len(list(run)) - 1
        numbers = f"{first} to {last}" if last > first else first
        print(f"  motor {numbers}: {_format_field(motor)}")
        first = last + 1


def _format_field(field: Any) -> str:
    """Return a field as text; "off" is a position or velocity that is not controlled."""
    if isinstance(field, dict):
        return ", ".join(f"{name} {_format_field(value)}" for name, value in field.items())
    if isinstance(field, list):
        rows = [list(item.values()) if isinstance(item, dict) else item for item in field]
        return "(" + ", ".join(map(_format_field, rows)) + ")"
    if isinstance(field, float):
        return "off" if field in _OFF_VALUES else f"{field:.6g}"
    return str(field)
