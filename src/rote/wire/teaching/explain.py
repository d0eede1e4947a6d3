"""One teaching frame explained: its sender, every field with its value and its evidence grade."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

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
    find_direction,
    find_layout,
    read_fields,
    read_first_values,
)


@dataclass(frozen=True, slots=True)
class ExplainedFrame:
    """The content of one datagram, field by field."""

    datagram: bytes
    frame: teaching.Frame
    direction: FrameDirection
    direction_known: bool
    """Whether the direction is certain; otherwise a request and a reply look the same."""
    layout: FrameLayout | None
    values: tuple[FieldValue, ...]
    """Of the header, the payload and the checksum, in their order."""
    crc_valid: bool | None
    """None if the checksum is not there."""
    problem: str
    """Why rote would refuse the payload; empty if it would accept it."""
    defects: tuple[str, ...] = ()
    """What is missing from an incomplete frame, and what differs from the documented frame."""

    @property
    def has_command(self) -> bool:
        """Whether the bytes reach to the command."""
        return any(value.field.name == "command" for value in self.values)

    def document(self) -> dict[str, Any]:
        """Return what `rote frame decode --json` prints."""
        defects = {"defects": list(self.defects)} if self.defects else {}
        return {
            "command": f"0x{self.frame.command:02x}" if self.has_command else None,
            "direction": self.direction.value,
            "fields": {value.field.name: _describe_value(value) for value in self.values},
            "crc_valid": self.crc_valid,
            **defects,
        }


def explain(datagram: bytes, *, reply: bool | None = None) -> ExplainedFrame:
    """Explain a frame; `reply` states whether it is a reply, if that is known.

    A wrong checksum is accepted. Raises `DecodeError` for anything else that is invalid.
    """
    header = [*read_fields(HEADER, datagram)]
    crc_valid = True
    try:
        frame = teaching.decode(datagram)
    except ChecksumError:
        crc_valid = False
        frame = _make_frame(header, datagram[teaching.HEADER_SIZE : -4])
    direction, direction_known, layout = _interpret_frame(frame, reply)
    fields = () if layout is None else layout.fields
    return ExplainedFrame(
        datagram=datagram,
        frame=frame,
        direction=direction,
        direction_known=direction_known,
        layout=layout,
        values=(
            *header,
            *read_fields(fields, frame.payload, teaching.HEADER_SIZE),
            *read_fields((CRC,), datagram[-4:], len(datagram) - 4),
        ),
        crc_valid=crc_valid,
        problem=_find_problem(frame, direction),
    )


def _make_frame(header: Iterable[FieldValue], payload: bytes) -> teaching.Frame:
    """Return the frame with these fields of a header; a number that is missing is 0."""
    stated = {value.field.name: value.value for value in header}
    return teaching.Frame(
        int(stated.get("command", 0)),
        int(stated.get("sequence", 0)),
        payload,
        int(stated["message_type"]),
    )


def _interpret_frame(
    frame: teaching.Frame, reply: bool | None
) -> tuple[FrameDirection, bool, FrameLayout | None]:
    """Return the direction in which a frame is read, whether it is certain, and the layout.

    `reply` states whether the frame is a reply, if that is known.
    """
    evident = find_direction(frame.type, frame.command, frame.payload)
    direction = evident or FrameDirection.REQUEST
    if reply is not None and frame.type == teaching.MessageType.COMMAND:
        direction = FrameDirection.REPLY if reply else FrameDirection.REQUEST
    is_reply = direction is FrameDirection.REPLY
    layout = find_layout(frame.type, frame.command, frame.payload, reply=is_reply)
    return direction, evident is not None or reply is not None, layout


def explain_incomplete(
    data: bytes, unknown: Collection[int] = (), *, reply: bool | None = None
) -> ExplainedFrame:
    """Explain a frame that is truncated or not as documented, as far as its bytes go.

    `unknown` are the offsets whose bytes are not known. `defects` of the result names what is
    missing and what differs. Raises `DecodeError` if the bytes do not begin like a teaching frame.
    """
    data, without_reserved = _insert_reserved(data, unknown)
    known = _KnownBytes(data, frozenset(unknown))
    _require_beginning(known)
    header, defects = _keep_known(
        read_fields(HEADER, data.ljust(teaching.HEADER_SIZE, b"\0")), known
    )
    if without_reserved:
        defects.insert(0, _WITHOUT_RESERVED)
    defects += [
        f"{value.field.name} is {value.raw.hex(' ')}, not {value.field.default.hex(' ')}"
        for value in header
        if value.field.default and value.raw != value.field.default
    ]
    stated = {value.field.name: value.value for value in header}
    if "command" not in stated or "length" not in stated:
        return ExplainedFrame(
            datagram=data,
            frame=_make_frame(header, b""),
            direction=FrameDirection.EITHER,
            direction_known=False,
            layout=None,
            values=tuple(header),
            crc_valid=None,
            problem="",
            defects=(*defects, "the payload and the CRC-32 are missing"),
        )
    length = _find_payload_length(known, int(stated["length"]), defects)
    end = teaching.HEADER_SIZE + length
    frame = _make_frame(header, data[teaching.HEADER_SIZE : end].ljust(length, b"\0"))
    direction, direction_known, layout = _interpret_frame(frame, reply)
    payload_values, payload_defects = _explain_payload(frame, layout, known)
    crc_fields = read_fields((CRC,), data[end : end + 4].ljust(4, b"\0"), end)
    crc_values, crc_defects = _keep_known(crc_fields, known)
    crc_valid = None
    if crc_values and not known.unknown:
        crc_valid = crc_values[0].value == teaching.compute_crc(data[:end])
    return ExplainedFrame(
        datagram=data,
        frame=frame,
        direction=direction,
        direction_known=direction_known,
        layout=layout,
        values=(*header, *payload_values, *crc_values),
        crc_valid=crc_valid,
        problem="",
        defects=(*defects, *payload_defects, *crc_defects),
    )


def _explain_payload(
    frame: teaching.Frame, layout: FrameLayout | None, known: "_KnownBytes"
) -> tuple[list[FieldValue], list[str]]:
    """Return the known fields of an incomplete frame's payload, and its defects."""
    if layout is not None:
        return _keep_known(read_fields(layout.fields, frame.payload, teaching.HEADER_SIZE), known)
    length = len(frame.payload)
    defects = [f"command 0x{frame.command:02x} has no documented payload of {length} bytes"]
    if missing_bytes := length - known.count_known(teaching.HEADER_SIZE, length):
        defects.append(f"{missing_bytes} of {length} payload bytes are missing")
    return [], defects


_WITHOUT_RESERVED = (
    "the two reserved bytes 00 00 before 00 01 are missing, as in the dumps of `002`; the offsets "
    "below count them. Read as DTLS, such bytes are the header of an encrypted record"
)
_MIN_BYTES = 4
"""The message type and the magic: with fewer bytes, nothing identifies a teaching frame."""


class _KnownBytes(NamedTuple):
    """The bytes of an incomplete frame, and the offsets that are not known."""

    data: bytes
    unknown: frozenset[int]

    def count_known(self, start: int, size: int) -> int:
        """Return how many of `size` bytes from `start` on come before the first unknown one."""
        offsets = range(start, min(start + size, len(self.data)))
        for count, offset in enumerate(offsets):
            if offset in self.unknown:
                return count
        return len(offsets)


def _insert_reserved(data: bytes, unknown: Collection[int]) -> tuple[bytes, bool]:
    """Return the frame with its two reserved bytes, and whether they were missing.

    They are missing if the type indicator 00 01 is at offset 8, where the reserved bytes should be,
    and a command follows it.
    """
    begins_as_command = data[:4] == b"\x17\xfe\xfd\0"
    has_early_command = data[8:10] == b"\0\1" and bool({*data[10:11]} & teaching.COMMANDS)
    if unknown or not begins_as_command or not has_early_command:
        return data, False
    return data[:8] + b"\0\0" + data[8:], True


def _require_beginning(known: _KnownBytes) -> None:
    """Raise `DecodeError` unless the type is known and most of the fixed header bytes match."""
    data = known.data
    matches: list[bool] = []  # for each fixed byte that is known
    for value in read_fields(HEADER, data.ljust(teaching.HEADER_SIZE, b"\0")):
        if value.field.type is FieldType.BYTES:
            matches += [
                data[offset] == expected
                for offset, expected in enumerate(value.field.default, value.offset)
                if offset < len(data) and offset not in known.unknown
            ]
    has_type = bool(data) and 0 not in known.unknown and data[0] in set(teaching.MessageType)
    if len(data) < _MIN_BYTES or not has_type or 2 * sum(matches) <= len(matches):
        raise DecodeError(
            f"these {len(data)} bytes do not begin like a teaching frame: {data[:12].hex(' ')}"
        )


def _keep_known(
    values: Iterable[FieldValue], known: _KnownBytes
) -> tuple[list[FieldValue], list[str]]:
    """Return the fields whose bytes are known, and a description of each missing one.

    A field with several values is kept with those before its first unknown byte.
    """
    kept: list[FieldValue] = []
    missing: list[str] = []
    for value in values:
        size = len(value.raw)
        known_bytes = known.count_known(value.offset, size)
        if known_bytes == size:
            kept.append(value)
            continue
        if value.field.type is FieldType.ZERO:
            missing.append(f"{size - known_bytes} of {size} unused bytes are missing")
            continue
        count = known_bytes // value.field.unit_size
        if count and value.field.count != 1 and value.field.type is not FieldType.BYTES:
            kept.append(read_first_values(value, count))
        defect = f"cut off: {known_bytes} of {size} bytes are known" if known_bytes else "missing"
        missing.append(f"{value.field.name} is {defect}")
    return kept, missing


def _find_payload_length(known: _KnownBytes, stated: int, defects: list[str]) -> int:
    """Return the payload's length: as stated, or up to a valid CRC-32 at the end of the bytes.

    If the number of bytes does not fit the `stated` length, a description is added to `defects`.
    """
    size = len(known.data)
    surplus = size - teaching.OVERHEAD - stated
    if surplus == 0 or known.unknown:
        return stated
    stated_crc = int.from_bytes(known.data[-4:])
    if size >= teaching.OVERHEAD and stated_crc == teaching.compute_crc(known.data[:-4]):
        defects.append(
            f"the length is {stated}, but the CRC-32 is valid after {stated + surplus} bytes"
        )
        return stated + surplus
    if surplus > 0:
        defects.append(f"{surplus} bytes follow the end of the frame")
    else:
        whole = stated + teaching.OVERHEAD
        defects.append(f"the bytes end too early: {size} of the {whole} that the length requires")
    return stated


def _find_problem(frame: teaching.Frame, direction: FrameDirection) -> str:
    """Return why rote would refuse the payload of a frame; empty if it would accept it."""
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


def to_json_value(value: Any) -> Any:
    """Return a value as JSON data: bytes become hexadecimal, non-finite floats become texts."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, dict):
        return {name: to_json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [to_json_value(part) for part in value]
    if isinstance(value, float) and not -1e39 < value < 1e39:  # NaN, or beyond every f32
        return str(value)
    return value


def strip_markup(text: str) -> str:
    """Return a text of the field tables without its Markdown: links, code, and emphasised n."""
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", text).replace("`", "").replace("*n*", "n")


def find_grade(value: FieldValue) -> FieldGrade:
    """Return the grade of a field's value if the value has its own, otherwise the field's."""
    known = value.field.values.get(value.value) if isinstance(value.value, int) else None
    return known[1] if known else value.field.grade


def _describe_value(value: FieldValue) -> dict[str, Any]:
    """Return a field and its value as `rote frame decode --json` prints them."""
    field = value.field
    document: dict[str, Any] = {
        "value": to_json_value(value.value),
        "offset": value.offset,
        "size": len(value.raw),
        "type": field.type.value,
        "unit": field.unit,
        "grade": find_grade(value).value,
        "meaning": strip_markup(value.meaning or field.meaning),
        "why": strip_markup(field.why),
    }
    if field.bits and isinstance(value.value, int):
        document["bits"] = {
            bits.name: {"value": bits.extract(value.value), "grade": bits.grade.value}
            for bits in field.bits
        }
    if field.type is FieldType.GROUP:
        document["parts"] = {part.name: part.grade.value for part in field.parts}
    return document


def list_set_bits(value: FieldValue) -> list[tuple[FieldBits, int]]:
    """Return the groups of bits of a field that are not zero, each with its value."""
    if not isinstance(value.value, int):
        return []
    return [(bits, number) for bits in value.field.bits if (number := bits.extract(value.value))]
