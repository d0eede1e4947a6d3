"""The packets of a capture one by one, field by field: teaching frames and DTLS records."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rote.capture.decode.teaching_dialogue import FrameDirections
from rote.capture.model import Datagram, iso
from rote.capture.read.packets import PacketDecoder, iter_datagrams, replace_unprintable
from rote.capture.read.reader import open_capture
from rote.errors import DecodeError
from rote.wire.packets import dtls
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.explain import (
    ExplainedFrame,
    explain,
    find_grade,
    list_set_bits,
    strip_markup,
    to_json_value,
)
from rote.wire.teaching.fields import FieldType, FieldValue, FrameDirection

_BYTES_SHOWN = 8
_VALUES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ListedPacket:
    """One datagram: a teaching frame, or DTLS records, which the seed documents take for frames."""

    number: int
    """Its number among the UDP datagrams of the capture, from 1."""
    datagram: Datagram
    frame: ExplainedFrame | None = None
    records: tuple[dtls.DtlsRecord, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        datagram = self.datagram
        head = {
            "number": self.number,
            "time": iso(datagram.time_ns),
            "source": format_endpoint(datagram.source),
            "destination": format_endpoint(datagram.destination),
            "bytes": len(datagram.payload),
        }
        if self.frame is not None:
            name = self.frame.layout.key if self.frame.layout else ""
            return head | {"kind": "teaching frame", "frame": name} | self.frame.document()
        return head | {
            "kind": "DTLS",
            "records": [_describe_record(record) for record in self.records],
        }


@dataclass(slots=True)
class PacketList:
    """Lists the teaching frames and DTLS datagrams of a capture, and counts all others."""

    others: int = 0
    """UDP datagrams that are neither teaching frames nor DTLS."""
    warnings: list[str] = field(default_factory=list)

    def read(self, path: Path | str) -> Iterator[ListedPacket]:
        """Yield the listed packets of a file, one by one and in its order."""
        decoder, directions = PacketDecoder(), FrameDirections()
        with open_capture(path) as capture:
            batches = (batch for records in capture for batch in decoder.decode(records))
            for number, datagram in enumerate(iter_datagrams(batches, decoder), 1):
                listed = _list_datagram(number, datagram, directions)
                if listed is None:
                    self.others += 1
                else:
                    yield listed
            self.warnings += capture.warnings


def _list_datagram(
    number: int, datagram: Datagram, directions: FrameDirections
) -> ListedPacket | None:
    """Return a datagram with its frame or records; None if it has neither."""
    try:
        frame = teaching.decode(datagram.payload)
    except DecodeError:
        if datagram.payload[1:2] != b"\xfe":  # the first byte of every version of DTLS
            return None
        try:
            return ListedPacket(
                number, datagram, records=tuple(dtls.decode_records(datagram.payload))
            )
        except DecodeError:
            return None
    direction = directions.determine(datagram.source, datagram.destination, frame)
    return ListedPacket(
        number, datagram, explain(datagram.payload, reply=direction is FrameDirection.REPLY)
    )


def format_endpoint(endpoint: tuple[str, int]) -> str:
    """Return an address and a port as text."""
    host, port = endpoint
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _describe_record(record: dtls.DtlsRecord) -> dict[str, Any]:
    return {
        "content_type": record.type,
        "epoch": record.epoch,
        "number": record.sequence,
        "length": len(record.fragment),
    }


def format_packet(packet: ListedPacket) -> Iterator[str]:
    """Yield the printed lines of one packet."""
    datagram = packet.datagram
    ends = f"{format_endpoint(datagram.source)} -> {format_endpoint(datagram.destination)}"
    size = len(datagram.payload)
    yield f"#{packet.number}  {iso(datagram.time_ns)[11:26]}  {ends}  {size} bytes"
    if packet.frame is not None:
        yield from format_frame(packet.frame)
    # In the header of a record, bytes 5 to 10 are its number, 11 and 12 the length.
    offset = 0
    for record in packet.records:
        yield f"  DTLS record, no command: content type {record.type}, epoch {record.epoch}"
        number = record.sequence.to_bytes(6, "big").hex(" ")
        low = f"its low byte 0x{record.sequence & 0xFF:02x} is not a command"
        yield _format_line(
            offset + 5, offset + 10, number, "record number", f"{record.sequence}, {low}", ""
        )
        length = len(record.fragment)
        shown = length.to_bytes(2, "big").hex(" ")
        yield _format_line(offset + 11, offset + 12, shown, "length", str(length), "")
        what = "encrypted" if record.epoch else "not encrypted"
        raw = _shorten_hex(record.fragment)
        yield _format_line(offset + 13, offset + 12 + length, raw, "contents", what, "")
        offset += 13 + length


def format_frame(frame: ExplainedFrame, *, why: bool = False) -> Iterator[str]:
    """Yield the printed lines of a teaching frame: its kind, then every field with its grade.

    With `why`, the reason for each grade follows.
    """
    key = frame.layout.key if frame.layout else "no known payload"
    unsure = "" if frame.direction_known else " or its reply, which looks the same"
    crc = {True: "CRC-32 holds", False: "CRC-32 does not hold", None: "CRC-32 not checked"}
    size = len(frame.datagram)
    command = f"0x{frame.frame.command:02x} {key}"
    kind = f"{command}, {frame.direction.value}{unsure}" if frame.has_command else "cut-off header"
    yield f"  {kind}, {size} bytes; {crc[frame.crc_valid]}"
    yield from (f"  {defect}" for defect in frame.defects)
    if frame.problem:
        yield f"  rote does not accept it: {frame.problem}"
    for value in frame.values:
        last = value.offset + max(0, len(value.raw) - 1)
        raw = _shorten_hex(value.raw)
        text = replace_unprintable(_describe_value(value))
        yield _format_line(value.offset, last, raw, value.field.name, text, find_grade(value).value)
        for bits, number in list_set_bits(value):
            yield _format_line(None, None, "", f"  {bits.name}", str(number), bits.grade.value)
        if why and value.field.why:
            yield f"{'':>12}{strip_markup(value.field.why)}"


def _format_line(
    first: int | None, last: int | None, raw: str, name: str, value: str, grade: str
) -> str:
    """Return the line of a field: the range of its bytes, the bytes, name, value and grade."""
    span = "" if first is None else f"{first}-{last}"
    return f"  {span:<9} {raw:<27} {name:<19} {value:<34} {grade}".rstrip()


def _shorten_hex(raw: bytes) -> str:
    more = " ..." if len(raw) > _BYTES_SHOWN else ""
    return raw[:_BYTES_SHOWN].hex(" ") + more


def _describe_value(value: FieldValue) -> str:
    """Return the value of a field as text, with its unit and meaning."""
    content, field = value.value, value.field
    if field.type in (FieldType.ZERO, FieldType.BYTES):
        if content and not any(content):
            return "zeros"
        if field.type is FieldType.ZERO:
            return "not zero"
        return str(to_json_value(content))[: 2 * _BYTES_SHOWN]
    if isinstance(content, list):
        return _format_list(content)
    if isinstance(content, str):
        return repr(content)
    as_hex = field.name in ("message_type", "command", "crc") or bool(field.bits)
    text = f"0x{content:02x}" if as_hex and content else _format_number(content)
    unit = f" {field.unit}" if field.unit else ""
    return f"{text}{unit}" + (f": {value.meaning}" if value.meaning else "")


def _format_list(content: list[Any]) -> str:
    """Return the first items as text; an item is a number, or the parts of a group."""
    if content and not any(content):
        return f"{len(content)} zeros"
    shown = [
        " ".join(map(_format_number, item.values()))
        if isinstance(item, dict)
        else _format_number(item)
        for item in content[:_VALUES_SHOWN]
    ]
    more = ", ..." if len(content) > _VALUES_SHOWN else ""
    return ", ".join(shown) + more if shown else "none"


def _format_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
