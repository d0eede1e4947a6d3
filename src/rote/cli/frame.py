"""rote frame: one teaching frame explained, or made field by field.

The commands of `rote frame make` are made from the tables of fields.
"""

import sys
from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rote.cli.hexadecimal import hex_bytes
from rote.cli.numbers import floats, whole_number
from rote.cli.options import Json, print_json
from rote.cli.tree import complete
from rote.errors import BadRequestError, DecodeError

if TYPE_CHECKING:
    from rote.wire.teaching.fields import FrameField, FrameLayout

app = typer.Typer(
    name="frame",
    help="Explain and make the documented teaching frames, byte by byte.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class _Makers(TyperGroup):
    """The commands of `rote frame make`, made when one is asked for: other commands need none."""

    def list_commands(self, ctx: Any) -> list[str]:
        self.commands = self.commands or _makers()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self.list_commands(ctx)
        return super().get_command(ctx, cmd_name)


make = typer.Typer(
    name="make",
    cls=_Makers,
    help="Make one frame; each field is an option. Nothing is sent.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_NEGATIVE = {"ignore_unknown_options": True}
"""So that -1 is a number and no option."""
_WHOLE = "Give a whole UDP payload: 15 bytes of header, the payload, 4 bytes of CRC."


@make.callback()
def _make() -> None:
    """Make one frame; each field is an option. Nothing is sent."""


@app.callback()
def _frame() -> None:
    """Explain and make the documented teaching frames, byte by byte."""


@app.command("decode")
def decode(
    hexadecimal: Annotated[
        list[str], typer.Argument(metavar="HEX", help="A frame in hexadecimal, or - to read it.")
    ],
    reply: Annotated[
        bool | None,
        typer.Option("--reply/--request", help="Direction, if the frame does not contain it."),
    ] = None,
    why: Annotated[
        bool, typer.Option("--why", help="Also show the reason for each grade.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Decode a teaching frame: command, direction, every field with its evidence grade."""
    from rote.capture.report.packet_list import frame_lines
    from rote.wire.teaching.explain import explain

    datagram = hex_bytes(sys.stdin.read() if hexadecimal == ["-"] else "".join(hexadecimal))
    try:
        frame = explain(datagram, reply=reply)
    except DecodeError as error:
        raise BadRequestError(f"this is not a teaching frame: {error}", _remedy(datagram)) from None
    if as_json:
        print_json(frame.document())
    else:
        print("\n".join(line[2:] for line in frame_lines(frame, why=why)))
    return 0


def _remedy(datagram: bytes) -> str:
    from rote.wire.packets.dtls import ContentType, decode_records

    try:
        (record,) = decode_records(datagram)
    except (DecodeError, ValueError):  # not DTLS, or not one record
        return _WHOLE
    if record.type != ContentType.APPLICATION_DATA:
        return _WHOLE
    return (
        f"As a DTLS record it is complete: number {record.sequence}, {len(record.fragment)} "
        "encrypted bytes. See docs/protocol/evidence.md."
    )


# ---- make ----------------------------------------------------------------------------------------


def _row(one: "FrameField", text: str) -> dict[str, Any]:
    """Return a row of a group: its parts, with colons between them."""
    from rote.wire.teaching.fields import FieldType

    pieces = text.rsplit(":", len(one.parts) - 1)
    if len(pieces) != len(one.parts):
        form = ":".join(part.name.upper() for part in one.parts)
        raise typer.BadParameter(f"{text!r} is not {form}")
    read: dict[FieldType, Callable[[str], Any]] = {FieldType.NAME: str, FieldType.F32: _one_float}
    return {
        part.name: read.get(part.type, whole_number)(piece)
        for part, piece in zip(one.parts, pieces, strict=True)
    }


def _one_float(text: str) -> float:
    return floats(text)[0]


def _option_fields(layout: "FrameLayout") -> list["FrameField"]:
    """Return the fields that are options: all but zeros, marks and counts."""
    from rote.wire.teaching.fields import FieldType

    counted = {one.count for one in layout.fields}
    return [
        one
        for one in layout.fields
        if one.type is not FieldType.ZERO
        and one.name not in counted
        and one.name not in ("tag", "zero")
    ]


def _option(one: "FrameField") -> tuple[Any, Any]:
    """Return the type of a field's option, and its default."""
    from rote.wire.teaching.explain import plainly
    from rote.wire.teaching.fields import FieldType

    flag = f"--{one.name.replace('_', '-')}"
    unit = f", {one.unit}" if one.unit else ""
    help_text = f"{plainly(one.meaning)}{unit} ({one.grade.value})"
    if one.type is FieldType.GROUP:
        form = ":".join(part.name.upper() for part in one.parts)
        kind: Any = list[str]
        option = typer.Option(
            flag.removesuffix("s"), metavar=form, help=f"{help_text}; may be repeated"
        )
        return Annotated[kind, option], ()
    if one.type in (FieldType.NAME, FieldType.TEXT):
        return Annotated[str, typer.Option(flag, metavar="NAME", help=help_text)], one.default
    if one.type is FieldType.BYTES:
        return Annotated[str, typer.Option(flag, metavar="HEX", help=help_text)], one.default.hex()
    several = one.count != 1
    form = "N,N,..." if several else "N"
    return Annotated[str, typer.Option(flag, metavar=form, help=help_text)], str(one.default)


def _parse_option(one: "FrameField", text: Any) -> Any:
    from rote.wire.teaching.fields import FieldType

    if one.type is FieldType.GROUP:
        return [_row(one, row) for row in text]
    if one.type in (FieldType.NAME, FieldType.TEXT):
        return text
    if one.type is FieldType.BYTES:
        return hex_bytes(text) if text else b""
    if one.type is FieldType.F32:
        return floats(text) if one.count != 1 else _one_float(text)
    return (
        [whole_number(part) for part in text.split(",")] if one.count != 1 else whole_number(text)
    )


def _maker(layout: "FrameLayout") -> Callable[..., int]:
    """Return the command that makes frames of one kind."""
    fields = _option_fields(layout)

    def run(**asked: Any) -> int:
        _print(layout, {one.name: _parse_option(one, asked[one.name]) for one in fields}, asked)
        return 0

    options: dict[str, tuple[Any, Any]] = {one.name: _option(one) for one in fields}
    if layout.key == "status":
        help_text = "The command it answers, such as 0x0d."
        options["answers"] = (
            Annotated[str, typer.Option("--command", metavar="N", help=help_text)],
            "0x0d",
        )
    help_text = "Sequence number; a reply has that of its request."
    options["sequence"] = (
        Annotated[str, typer.Option("--sequence", metavar="N", help=help_text)],
        "0",
    )
    options["as_json"] = Json, False
    run.__name__ = layout.key.replace("-", "_")
    run.__doc__ = layout.summary
    run.__annotations__ = {name: kind for name, (kind, _) in options.items()} | {"return": int}
    vars(run)["__signature__"] = Signature(
        [
            Argument(name, Argument.KEYWORD_ONLY, annotation=kind, default=default)
            for name, (kind, default) in options.items()
        ]
    )
    return run


def _print(layout: "FrameLayout", given: dict[str, Any], asked: dict[str, Any]) -> None:
    import struct

    from rote.wire.teaching import codec as teaching
    from rote.wire.teaching.explain import explain
    from rote.wire.teaching.fields import FrameDirection, write

    for one in layout.fields:  # a list tells its own length
        counted = next((each for each in layout.fields if each.count == one.name), None)
        if counted is not None:
            given[one.name] = len(given[counted.name])
    command = whole_number(asked["answers"]) if "answers" in asked else layout.command
    try:
        payload = write(layout, given)
        frame = teaching.Frame(command, whole_number(asked["sequence"]), payload, layout.type)
        datagram = teaching.encode(frame)
    except (struct.error, ValueError, OverflowError) as error:
        raise BadRequestError(
            f"this frame cannot be written: {error}", f"See: rote frame make {layout.key} --help"
        ) from None
    made = explain(datagram, reply=layout.direction is FrameDirection.REPLY)
    if made.problem:
        print(f"Note: rote would not accept this frame: {made.problem}.", file=sys.stderr)
    if asked["as_json"]:
        print_json({"hex": datagram.hex(), **made.document()})
        return
    for at in range(0, len(datagram), 16):
        print(datagram[at : at + 16].hex(" "))


def _makers() -> dict[str, Any]:
    """Return a command for each kind of frame, and hidden ones by the number of its command."""
    from rote.wire.teaching.fields import LAYOUTS, FrameDirection

    made = typer.Typer(rich_markup_mode=None)
    numbered: set[str] = set()
    for layout in LAYOUTS:
        maker = _maker(layout)
        made.command(layout.key, help=layout.summary, context_settings=_NEGATIVE)(maker)
        number = f"0x{layout.command:02x}"
        is_request = layout.direction is FrameDirection.REQUEST and layout.command
        if is_request and number not in numbered:  # the first kind is the documents'
            numbered.add(number)
            hidden = made.command(
                number, help=layout.summary, hidden=True, context_settings=_NEGATIVE
            )
            hidden(maker)
    group = typer.main.get_group(made)
    complete(group)
    return dict(group.commands)


app.add_typer(make)
