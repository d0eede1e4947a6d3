"""The packets of a capture one by one, field by field: teaching frames and DTLS records."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rote.capture.decode.teaching_dialogue import FrameDirections
from rote.capture.model import iso
from rote.capture.read.datagram import Datagram
from rote.capture.read.packets import PacketDecoder, datagrams, harmless
from rote.capture.read.reader import open_capture
from rote.errors import DecodeError
from rote.wire.packets import dtls
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.explain import ExplainedFrame, explain, grade_of, plain, plainly, set_bits
from rote.wire.teaching.fields import FieldType, FieldValue, FrameDirection

_BYTES_SHOWN = 8
_VALUES_SHOWN = 4


@dataclass(frozen=True, slots=True)
class ListedPacket:
    """One datagram: a teaching frame, or DTLS records, which the seed documents take for some."""

    number: int
    """Among the UDP datagrams of the capture, from 1."""
    datagram: Datagram
    frame: ExplainedFrame | None = None
    records: tuple[dtls.DtlsRecord, ...] = ()

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        one = self.datagram
        head = {
            "number": self.number,
            "time": iso(one.time_ns),
            "source": end(one.source),
            "destination": end(one.destination),
            "bytes": len(one.payload),
        }
        if self.frame is not None:
            name = self.frame.layout.key if self.frame.layout else ""
            return head | {"kind": "teaching frame", "frame": name} | self.frame.document()
        return head | {
            "kind": "DTLS",
            "records": [_record_document(record) for record in self.records],
        }


@dataclass(slots=True)
class PacketList:
    """The packets of a capture, and how many others there were."""

    others: int = 0
    """UDP datagrams that are neither."""
    warnings: list[str] = field(default_factory=list)

    def read(self, path: Path | str) -> Iterator[ListedPacket]:
        """Yield the packets of a file, one by one and in its order."""
        decoder, directions = PacketDecoder(), FrameDirections()
        with open_capture(path) as capture:
            batches = (batch for records in capture for batch in decoder.decode(records))
            for number, one in enumerate(datagrams(batches, decoder), 1):
                listed = _list_datagram(number, one, directions)
                if listed is None:
                    self.others += 1
                else:
                    yield listed
            self.warnings += capture.warnings


def _list_datagram(number: int, one: Datagram, directions: FrameDirections) -> ListedPacket | None:
    try:
        frame = teaching.decode(one.payload)
    except DecodeError:
        if one.payload[1:2] != b"\xfe":  # all versions whose header can be read
            return None
        try:
            return ListedPacket(number, one, records=tuple(dtls.decode_records(one.payload)))
        except DecodeError:
            return None
    direction = directions.of(one.source, one.destination, frame)
    return ListedPacket(number, one, explain(one.payload, reply=direction is FrameDirection.REPLY))


def end(one: tuple[str, int]) -> str:
    """Return an address and a port as text."""
    host, port = one
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _record_document(record: dtls.DtlsRecord) -> dict[str, Any]:
    return {
        "content_type": record.type,
        "epoch": record.epoch,
        "number": record.sequence,
        "length": len(record.fragment),
    }


def packet_lines(one: ListedPacket) -> Iterator[str]:
    """Yield the printed lines of one packet."""
    ends = f"{end(one.datagram.source)} -> {end(one.datagram.destination)}"
    size = len(one.datagram.payload)
    yield f"#{one.number}  {iso(one.datagram.time_ns)[11:26]}  {ends}  {size} bytes"
    if one.frame is not None:
        yield from frame_lines(one.frame)
    at = 0
    for record in one.records:
        yield f"  DTLS record, no command: content type {record.type}, epoch {record.epoch}"
        number = record.sequence.to_bytes(6, "big").hex(" ")
        low = f"its low byte 0x{record.sequence & 0xFF:02x} is not a command"
        yield _format_line(
            at + 5, at + 10, number, "record number", f"{record.sequence}, {low}", ""
        )
        length = len(record.fragment)
        shown = length.to_bytes(2, "big").hex(" ")
        yield _format_line(at + 11, at + 12, shown, "length", str(length), "")
        what = "encrypted" if record.epoch else "not encrypted"
        raw = _shorten_hex(record.fragment)
        yield _format_line(at + 13, at + 12 + length, raw, "contents", what, "")
        at += 13 + length


def frame_lines(frame: ExplainedFrame, *, why: bool = False) -> Iterator[str]:
    """Yield the printed lines of a teaching frame: its kind, then every field with its grade."""
    key = frame.layout.key if frame.layout else "no known payload"
    unsure = "" if frame.told else " or its reply, which looks the same"
    crc = "CRC-32 holds" if frame.crc_valid else "CRC-32 does not hold"
    size = len(frame.datagram)
    command = f"0x{frame.frame.command:02x} {key}"
    yield f"  {command}, {frame.direction.value}{unsure}, {size} bytes; {crc}"
    if frame.problem:
        yield f"  rote does not accept it: {frame.problem}"
    for value in frame.values:
        last = value.offset + max(0, len(value.raw) - 1)
        raw = _shorten_hex(value.raw)
        text = harmless(_describe_value(value))
        yield _format_line(value.offset, last, raw, value.field.name, text, grade_of(value).value)
        for bits, number in set_bits(value):
            yield _format_line(None, None, "", f"  {bits.name}", str(number), bits.grade.value)
        if why and value.field.why:
            yield f"{'':>12}{plainly(value.field.why)}"


def _format_line(
    first: int | None, last: int | None, raw: str, name: str, value: str, grade: str
) -> str:
    span = "" if first is None else f"{first}-{last}"
    return f"  {span:<9} {raw:<27} {name:<19} {value:<34} {grade}".rstrip()


def _shorten_hex(raw: bytes) -> str:
    more = " ..." if len(raw) > _BYTES_SHOWN else ""
    return raw[:_BYTES_SHOWN].hex(" ") + more


def _describe_value(value: FieldValue) -> str:
    given, field = value.value, value.field
    if field.type in (FieldType.ZERO, FieldType.BYTES):
        shown = plain(given)[: 2 * _BYTES_SHOWN] if field.type is FieldType.BYTES else "not zero"
        return shown if any(given) or not given else "zeros"
    if isinstance(given, list):
        return _format_list(given)
    if isinstance(given, str):
        return repr(given)
    as_hex = field.name in ("message_type", "command", "crc") or bool(field.bits)
    text = f"0x{given:02x}" if as_hex and given else _format_number(given)
    unit = f" {field.unit}" if field.unit else ""
    return f"{text}{unit}" + (f": {value.message}" if value.message else "")


def _format_list(given: list[Any]) -> str:
    if given and not any(given):
        return f"{len(given)} zeros"
    shown = [
        " ".join(map(_format_number, one.values()))
        if isinstance(one, dict)
        else _format_number(one)
        for one in given[:_VALUES_SHOWN]
    ]
    more = ", ..." if len(given) > _VALUES_SHOWN else ""
    return ", ".join(shown) + more if shown else "none"


def _format_number(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
