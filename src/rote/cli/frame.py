"""rote frame: explain one teaching frame, or make one field by field.

The commands of `rote frame make` are built from the tables of fields.
"""

import sys
from collections.abc import Callable
from functools import cache
from inspect import Parameter as Argument
from inspect import Signature
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from rote.cli.hexadecimal import HexDump, parse_hex, read_hex_dump
from rote.cli.options import Json, parse_floats, parse_whole_number, print_json
from rote.cli.tree import add_common_options
from rote.errors import BadRequestError, DecodeError

if TYPE_CHECKING:
    from rote.wire.teaching.explain import ExplainedFrame
    from rote.wire.teaching.fields import FrameField, FrameLayout

app = typer.Typer(
    name="frame",
    help="Explain and make the documented teaching frames, byte by byte.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


class _MakeGroup(TyperGroup):
    """The commands of `rote frame make`, built on first use, because other commands need none."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(_build_make_commands())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _build_make_commands().get(cmd_name)


make = typer.Typer(
    name="make",
    cls=_MakeGroup,
    help="Make one frame; each field is an option. Nothing is sent.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
_ALLOW_NEGATIVE = {"ignore_unknown_options": True}
"""Settings with which -1 is parsed as a number, not as an option."""
_WHOLE_FRAME_REMEDY = "Give a whole UDP payload: 15 bytes of header, the payload, 4 bytes of CRC."


@make.callback()
def _make() -> None:
    """Make one frame; each field is an option. Nothing is sent."""


@app.callback()
def _frame() -> None:
    """Explain and make the documented teaching frames, byte by byte."""


@app.command("decode")
def decode(
    hexadecimal: Annotated[
        list[str],
        typer.Argument(metavar="HEX", help="A frame in hexadecimal or as a dump, or - to read it."),
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
    """Decode a teaching frame: command, direction, every field with its evidence grade.

    A truncated frame is decoded as far as it goes, and what is missing is named. Dumps may contain
    offsets, comments, an ASCII column, and ?? for unknown bytes.
    """
    from rote.capture.report.packet_list import format_frame

    dump = read_hex_dump(sys.stdin.read() if hexadecimal == ["-"] else " ".join(hexadecimal))
    frame = _explain_dump(dump, reply)
    for note in dump.notes:
        print(f"Note: left out: {note}.", file=sys.stderr)
    if as_json:
        print_json(frame.document())
    else:
        print("\n".join(line[2:] for line in format_frame(frame, why=why)))  # not indented
    return 0


def _explain_dump(dump: HexDump, reply: bool | None) -> "ExplainedFrame":
    """Explain a whole frame, or an incomplete one as far as it goes.

    Raises `BadRequestError` if the bytes are not a teaching frame.
    """
    from rote.wire.teaching.explain import explain, explain_incomplete

    if not dump.unknown:
        try:
            return explain(dump.data, reply=reply)
        except DecodeError as error:
            remedy = _suggest_remedy(dump.data)
            if remedy != _WHOLE_FRAME_REMEDY:  # a whole DTLS record
                raise BadRequestError(f"this is not a teaching frame: {error}", remedy) from None
    try:
        return explain_incomplete(dump.data, dump.unknown, reply=reply)
    except DecodeError as error:
        message = f"this is not a teaching frame: {error}"
        raise BadRequestError(message, _WHOLE_FRAME_REMEDY) from None


def _suggest_remedy(datagram: bytes) -> str:
    """Return the remedy for bytes that are not a teaching frame; another one for a DTLS record."""
    from rote.wire.packets.dtls import ContentType, decode_records

    try:
        (record,) = decode_records(datagram)
    except (DecodeError, ValueError):  # not DTLS, or not one record
        return _WHOLE_FRAME_REMEDY
    if record.type != ContentType.APPLICATION_DATA:
        return _WHOLE_FRAME_REMEDY
    return (
        f"As a DTLS record it is complete: number {record.sequence}, {len(record.fragment)} "
        "encrypted bytes. See docs/protocol/evidence.md."
    )


# ---- make ----------------------------------------------------------------------------------------


def _parse_row(field: "FrameField", text: str) -> dict[str, Any]:
    """Parse one row of a group, such as the keyframe `15:4000:-0.5`: its parts by their names."""
    from rote.wire.teaching.fields import FieldType

    # Split from the right, because the first part may be a name with colons.
    pieces = text.rsplit(":", len(field.parts) - 1)
    if len(pieces) != len(field.parts):
        expected = ":".join(part.name.upper() for part in field.parts)
        raise typer.BadParameter(f"{text!r} is not {expected}")
    parsers: dict[FieldType, Callable[[str], Any]] = {
        FieldType.NAME: str,
        FieldType.F32: _parse_float,
    }
    return {
        part.name: parsers.get(part.type, parse_whole_number)(piece)
        for part, piece in zip(field.parts, pieces, strict=True)
    }


def _parse_float(text: str) -> float:
    return parse_floats(text)[0]


def _list_option_fields(layout: "FrameLayout") -> list["FrameField"]:
    """Return the fields that become options: all except constants and counts."""
    from rote.wire.teaching.fields import FieldType

    counted = {field.count for field in layout.fields}
    return [
        field
        for field in layout.fields
        if field.type is not FieldType.ZERO
        and field.name not in counted
        and field.name not in ("tag", "zero")
    ]


def _build_option(field: "FrameField") -> tuple[Any, Any]:
    """Return the type of a field's option, and its default."""
    from rote.wire.teaching.explain import strip_markup
    from rote.wire.teaching.fields import FieldType

    flag = f"--{field.name.replace('_', '-')}"
    unit = f", {field.unit}" if field.unit else ""
    help_text = f"{strip_markup(field.meaning)}{unit} ({field.grade.value})"
    if field.type is FieldType.GROUP:
        metavar = ":".join(part.name.upper() for part in field.parts)
        kind: Any = list[str]
        option = typer.Option(
            flag.removesuffix("s"), metavar=metavar, help=f"{help_text}; may be repeated"
        )
        return Annotated[kind, option], ()
    if field.type in (FieldType.NAME, FieldType.TEXT):
        return Annotated[str, typer.Option(flag, metavar="NAME", help=help_text)], field.default
    if field.type is FieldType.BYTES:
        option = typer.Option(flag, metavar="HEX", help=help_text)
        return Annotated[str, option], field.default.hex()
    metavar = "N" if field.count == 1 else "N,N,..."
    return Annotated[str, typer.Option(flag, metavar=metavar, help=help_text)], str(field.default)


def _parse_option(field: "FrameField", text: Any) -> Any:
    """Return the value of a field from the text of its option; a group has a list of texts."""
    from rote.wire.teaching.fields import FieldType

    if field.type is FieldType.GROUP:
        return [_parse_row(field, row) for row in text]
    if field.type in (FieldType.NAME, FieldType.TEXT):
        return text
    if field.type is FieldType.BYTES:
        return parse_hex(text) if text else b""
    if field.type is FieldType.F32:
        return parse_floats(text) if field.count != 1 else _parse_float(text)
    return (
        [parse_whole_number(part) for part in text.split(",")]
        if field.count != 1
        else parse_whole_number(text)
    )


def _build_make_command(layout: "FrameLayout") -> Callable[..., int]:
    """Return the command that makes frames of one kind.

    Typer reads the options of a command from the signature of its function, so this builds one.
    """
    fields = _list_option_fields(layout)

    def run(**args: Any) -> int:
        _print_frame(
            layout,
            {field.name: _parse_option(field, args[field.name]) for field in fields},
            args,
        )
        return 0

    options: dict[str, tuple[Any, Any]] = {field.name: _build_option(field) for field in fields}
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


def _print_frame(layout: "FrameLayout", values: dict[str, Any], args: dict[str, Any]) -> None:
    """Make a frame from the values of its fields, and print it.

    `args` has the options that are not fields: `sequence`, `as_json`, and `answers` of a status.
    """
    import struct

    from rote.wire.teaching import codec as teaching
    from rote.wire.teaching.explain import explain
    from rote.wire.teaching.fields import FrameDirection, write_payload

    for field in layout.fields:  # a count is the length of its list
        counted = next((other for other in layout.fields if other.count == field.name), None)
        if counted is not None:
            values[field.name] = len(values[counted.name])
    command = parse_whole_number(args["answers"]) if "answers" in args else layout.command
    try:
        payload = write_payload(layout, values)
        frame = teaching.Frame(command, parse_whole_number(args["sequence"]), payload, layout.type)
        datagram = teaching.encode(frame)
    except (struct.error, ValueError, OverflowError) as error:
        raise BadRequestError(
            f"this frame cannot be written: {error}", f"See: rote frame make {layout.key} --help"
        ) from None
    explained = explain(datagram, reply=layout.direction is FrameDirection.REPLY)
    if args["as_json"]:
        problem = {"problem": str(explained.problem)} if explained.problem else {}
        print_json({"hex": datagram.hex(), **explained.document(), **problem})
        return
    if explained.problem:
        print(f"Note: rote would not accept this frame: {explained.problem}.", file=sys.stderr)
    for start in range(0, len(datagram), 16):
        print(datagram[start : start + 16].hex(" "))


@cache
def _build_make_commands() -> dict[str, Any]:
    """Return the commands by their names: one for each kind of frame.

    The number and the long name of a documented request are hidden names of its command.
    """
    from rote.wire.teaching.fields import LAYOUTS, get_command_numbers, is_documented_request

    app = typer.Typer(rich_markup_mode=None)
    visible_names = {layout.key for layout in LAYOUTS}
    for layout in LAYOUTS:
        maker = _build_make_command(layout)
        app.command(layout.key, help=layout.summary, context_settings=_ALLOW_NEGATIVE)(maker)
        if not is_documented_request(layout):
            continue
        names = [name for name, number in get_command_numbers().items() if number == layout.command]
        for name in (f"0x{layout.command:02x}", *names):
            if name not in visible_names:
                add_hidden = app.command(
                    name, help=layout.summary, hidden=True, context_settings=_ALLOW_NEGATIVE
                )
                add_hidden(maker)
    group = typer.main.get_group(app)
    add_common_options(group)
    return dict(group.commands)


app.add_typer(make)
