"""Write the tables of fields and the worked examples of docs/protocol/frames.md.

The tables come from src/rote/wire/teaching/fields.py. An example is a command in the page, and the
block of text behind it is what the command prints.
"""

import io
import re
import shlex
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from generated_part import renew

from rote.cli import main as rote
from rote.wire.teaching.fields import (
    BY_KEY,
    CRC,
    DOCUMENTS,
    ENTRY,
    HEADER,
    KEYFRAME,
    MODE_FLAGS,
    REST,
    FieldBits,
    FieldType,
    FrameField,
)

PAGE = Path(__file__).parents[2] / "docs" / "protocol" / "frames.md"
MARK = re.compile(r"<!-- fields: ([a-z-]+): begin -->\n")
EXAMPLE = re.compile(r"```sh\n(rote frame [^\n]*)\n```\n\n```text\n(.*?)```\n", re.DOTALL)
_COLUMNS = "| offset | size | type | unit | field and allowed values | grade | why |"
_RULE = "|---|---|---|---|---|---|---|"
_MANY = {"joints": "n", "count": "c"}
"""How a count that a field tells is written."""


def table(key: str) -> str:
    """Return one table of the page."""
    if key == "documents":
        rows = [f"| `{one.key}` | `{one.file}` | {one.title} |" for one in DOCUMENTS]
        return "\n".join(["| here | file | title |", "|---|---|---|", *rows]) + "\n"
    if key == "mode-flags":
        rows = [_bits_row(bits) for bits in MODE_FLAGS]
        return (
            "\n".join(["| bits | field and values | grade | why |", "|---|---|---|---|", *rows])
            + "\n"
        )
    if key == "header":
        rows = [*_rows(HEADER)]
        rows += ["| 15 | *n* | | | payload, see below | contradicted | " + _PAYLOAD + " |"]
        rows += [_row(CRC, "15 + *n*", "4", "u32")]
    elif key == "keyframe":
        rows = [*_rows(KEYFRAME)]
    else:
        rows = [*_rows(BY_KEY[key].fields)]
    return "\n".join([_COLUMNS, _RULE, *rows]) + "\n"


_PAYLOAD = "at 15 in `000` and `004`, at 16 in `001` and the tables of `002`, at 13 in its dumps"


def _rows(fields: tuple[FrameField, ...]) -> Iterator[str]:
    fixed, per, what = 0, 0, ""
    for one in fields:
        offset = f"{fixed} + {per}*{what}*" if per else str(fixed)
        many = "" if isinstance(one.count, int) else _MANY.get(one.count, "")
        if one.type is FieldType.GROUP and many:
            yield from _parts(fixed)
        else:
            yield _row(one, offset, _size(one, many), _type(one, many))
        for value, (words, grade) in one.values.items():
            if one.name == "mode" or (one.name == "action" and grade is not one.grade):
                yield f"| {offset} | | | | = {value}: {words} | {grade.value} | |"
        for bits in one.bits if one.name != "mode_flags" else ():
            yield f"| {offset} | {_place(bits)} | | | {bits.name}: {bits.meaning} | {_graded(bits)}"
        if many:
            per, what = per + one.unit_size, many
        elif isinstance(one.count, int):
            fixed += one.unit_size * one.count


def _parts(start: int) -> Iterator[str]:
    at, step = start, sum(part.unit_size for part in ENTRY)
    for part in ENTRY:
        yield _row(part, f"{at} + {step}*i*", str(part.unit_size), _type(part, ""))
        at += part.unit_size


def _row(one: FrameField, offset: str, size: str, kind: str) -> str:
    name = "" if one.type is FieldType.ZERO else f"`{one.name}`: "
    return (
        f"| {offset} | {size} | {kind} | {one.unit} | {name}{one.meaning} | {one.grade.value} | "
        f"{one.why} |"
    )


def _size(one: FrameField, many: str) -> str:
    if one.count == REST:
        return "the rest"
    return f"{one.unit_size}*{many}*" if many else str(one.unit_size * int(one.count))


def _type(one: FrameField, many: str) -> str:
    if one.type is FieldType.GROUP:
        return f"{one.count} \u00d7 {one.unit_size}"
    if one.type is FieldType.ZERO:
        return ""
    kind = {FieldType.NAME: "bytes", FieldType.TEXT: "bytes"}.get(one.type, one.type)
    name = kind if isinstance(kind, str) else kind.value
    if many:
        return f"*{many}* \u00d7 {name}"
    several = isinstance(one.count, int) and one.count > 1 and name != "bytes"
    return f"{one.count} \u00d7 {name}" if several else name


def _place(bits: FieldBits) -> str:
    last = bits.low + bits.width - 1
    return f"bit {bits.low}" if bits.width == 1 else f"bits {bits.low} to {last}"


def _graded(bits: FieldBits) -> str:
    return f"{bits.grade.value} | {bits.why} |"


def _bits_row(bits: FieldBits) -> str:
    return f"| {_place(bits).split(' ', 1)[1]} | {bits.name}: {bits.meaning} | {_graded(bits)}"


def printed(line: str) -> str:
    """Return what a command of the page prints."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        code = rote(shlex.split(line)[1:])
    if code:
        raise SystemExit(f"{line}: {code}")
    return out.getvalue()


def main() -> None:
    """Renew all tables and all examples."""
    for key in MARK.findall(PAGE.read_text(encoding="utf-8")):
        begin, end = (f"<!-- fields: {key}: {which} -->\n" for which in ("begin", "end"))
        renew(PAGE, begin, end, table(key))
    text = EXAMPLE.sub(
        lambda found: f"```sh\n{found[1]}\n```\n\n```text\n{printed(found[1])}```\n",
        PAGE.read_text(encoding="utf-8"),
    )
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
