"""One teaching frame explained: its sender, every field with its value and its evidence grade."""

import re
from dataclasses import dataclass
from typing import Any

from rote.errors import ChecksumError, DecodeError
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.fields import (
    CRC,
    HEADER,
    FieldBits,
    FieldGrade,
    FieldType,
    FieldValue,
    FrameDirection,
    FrameLayout,
    direction_of,
    layout_of,
    read,
)


@dataclass(frozen=True, slots=True)
class ExplainedFrame:
    """What one datagram says, field by field."""

    datagram: bytes
    frame: teaching.Frame
    direction: FrameDirection
    told: bool
    """Whether the frame itself tells the direction; else a request and a reply look the same."""
    layout: FrameLayout | None
    values: tuple[FieldValue, ...]
    """Of the header, the payload and the checksum, in their order."""
    crc_valid: bool
    problem: str
    """Why a robot of rote would not accept the payload; empty where it would."""

    def document(self) -> dict[str, Any]:
        """Return what `rote frame decode --json` prints."""
        return {
            "command": f"0x{self.frame.command:02x}",
            "direction": self.direction.value,
            "fields": {value.field.name: _describe_value(value) for value in self.values},
            "crc_valid": self.crc_valid,
        }


def explain(datagram: bytes, *, reply: bool | None = None) -> ExplainedFrame:
    """Explain a frame; `reply` says which side sent it, if that is known.

    A wrong checksum is no error here. Whatever else is no teaching frame raises `DecodeError`.
    """
    crc_valid = True
    try:
        frame = teaching.decode(datagram)
    except ChecksumError:
        crc_valid = False
        kind, command = datagram[0], datagram[12]
        sequence = int.from_bytes(datagram[6:8], "big")
        frame = teaching.Frame(command, sequence, datagram[teaching.HEADER_SIZE : -4], kind)
    told = direction_of(frame.type, frame.command, frame.payload)
    direction = told or FrameDirection.REQUEST
    if reply is not None and frame.type == teaching.MessageType.COMMAND:
        direction = FrameDirection.REPLY if reply else FrameDirection.REQUEST
    answers = direction is FrameDirection.REPLY
    layout = layout_of(frame.type, frame.command, frame.payload, reply=answers)
    values = [*read(HEADER, datagram)]
    if layout is not None:
        values += read(layout.fields, frame.payload, teaching.HEADER_SIZE)
    values += read((CRC,), datagram[-4:], len(datagram) - 4)
    return ExplainedFrame(
        datagram,
        frame,
        direction,
        told is not None or reply is not None,
        layout,
        tuple(values),
        crc_valid,
        _find_problem(frame, direction),
    )


def _find_problem(frame: teaching.Frame, direction: FrameDirection) -> str:
    try:
        if frame.type == teaching.MessageType.STATE:
            teaching_state.decode_state(frame.payload)
        elif frame.type == teaching.MessageType.COMMAND:
            decode = (
                teaching.decode_reply
                if direction is FrameDirection.REPLY
                else teaching.decode_command
            )
            decode(frame.command, frame.payload)
    except DecodeError as error:
        return str(error)
    return ""


def plain(value: Any) -> Any:
    """Return a value in what JSON has: bytes become hexadecimal, odd floats become words."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not -1e39 < value < 1e39:
        return str(value)
    return value


def plainly(text: str) -> str:
    """Return text of the tables without its marks for the docs: links, code, emphasis."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*n*", "n")


def grade_of(value: FieldValue) -> FieldGrade:
    """Return the grade of a field, or that of its value where it has one of its own."""
    known = value.field.values.get(value.value) if isinstance(value.value, int) else None
    return known[1] if known else value.field.grade


def _describe_value(value: FieldValue) -> dict[str, Any]:
    field = value.field
    document: dict[str, Any] = {
        "value": plain(value.value),
        "offset": value.offset,
        "size": len(value.raw),
        "type": field.type.value,
        "unit": field.unit,
        "grade": grade_of(value).value,
        "meaning": plainly(value.message or field.meaning),
        "why": plainly(field.why),
    }
    if field.bits and isinstance(value.value, int):
        document["bits"] = {
            bits.name: {"value": bits.of(value.value), "grade": bits.grade.value}
            for bits in field.bits
        }
    if field.type is FieldType.GROUP:
        document["parts"] = {part.name: part.grade.value for part in field.parts}
    return document


def set_bits(value: FieldValue) -> list[tuple[FieldBits, int]]:
    """Return the bits of a field that are not zero."""
    if not isinstance(value.value, int):
        return []
    return [(bits, number) for bits in value.field.bits if (number := bits.of(value.value))]
