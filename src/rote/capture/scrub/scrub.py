"""A copy of a capture that can be shown to others: identifiers are replaced, contents are zeros.

The copy begins as zeros. Headers and fields of known protocols are kept, and addresses and names
in them replaced, by the same ones in every packet and of the same length; checksums are corrected.
Of the file itself only times, lengths and links are copied: no names, comments or secrets of a
pcapng. The copy appears when it is complete.
"""

import gzip
import secrets
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

from rote.capture.read.compressed import format_of
from rote.capture.read.reader import Capture, open_capture
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.capture.scrub.rewrite import ETHERNET, Rewriter
from rote.capture.synthetic.ethernet import block
from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing

_PCAP_HEAD, _PCAP_RECORD = struct.Struct("<IHHiIII"), struct.Struct("<IIII")
_NG_PACKET = struct.Struct("<IIIII")
_NANOSECONDS = 0xA1B23C4D
_SNAPLEN = 262_144
_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6


@dataclass(slots=True)
class Scrubbed:
    """What was done."""

    packets: int = 0
    replaced: dict[str, dict[str, int]] = field(default_factory=dict)
    """By kind of identifier: how many `different` ones, and how many `times`."""
    cleared: dict[str, int] = field(default_factory=dict)
    """Packets that have zeros instead of some or all contents, by kind."""
    encrypted: dict[str, int] = field(default_factory=dict)
    """Packets whose encrypted contents were kept, by kind."""
    warnings: list[str] = field(default_factory=list)


def scrub(source: Path, target: Path, key: bytes | None = None) -> Scrubbed:
    """Write a copy of `source` without identifiers; the same key gives the same pseudonyms.

    Raises `BadRequestError` if a file cannot be read, `NotACaptureError` if it is no capture.
    """
    if target.exists() and source.exists() and target.samefile(source):
        raise BadRequestError(
            f"{target} would be overwritten while it is read", "Name another file."
        )
    if source.exists() and not source.is_file():
        raise BadRequestError(f"{source} cannot be read: it is not a file")
    names, done = Pseudonyms(key or secrets.token_bytes(32)), Scrubbed()
    rewriter = Rewriter(names)
    with (
        open_capture(source) as capture,
        appearing(target) as out,
        _compress_like(source, out) as sink,
    ):
        for piece in _rewrite_file(capture, rewriter, done):
            sink.write(piece)
    done.replaced = names.tally.document()
    done.cleared = dict(+rewriter.payloads.cleared)
    done.encrypted = dict(+rewriter.payloads.encrypted)
    done.warnings = capture.warnings
    return done


@contextmanager
def _compress_like(source: Path, out: BinaryIO) -> Iterator[IO[bytes]]:
    """Compress the output with gzip if the input is compressed, in whatever format."""
    with source.open("rb") as file:
        packed = format_of(file.read(4))
    if not packed:
        yield out
        return
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as compressed:
        yield cast("IO[bytes]", compressed)


def _rewrite_file(capture: Capture, rewriter: Rewriter, done: Scrubbed) -> Iterator[bytes]:
    """Yield the new file piece by piece: pcapng for a pcapng, otherwise pcap."""
    links: dict[int, int] = {}
    for records in capture:
        columns = (column.tolist() for column in records[1:])
        for start, size, original, time_ns, link in zip(*columns, strict=True):
            if link not in links:
                yield _link_header(capture, link, first=not links)
                links[link] = len(links)
            done.packets += 1
            packet = rewriter.rewrite(link, records.data[start : start + size].tobytes())
            if capture.format == "pcapng":
                time = time_ns >> 32 & 0xFFFF_FFFF, time_ns & 0xFFFF_FFFF
                yield block(_PACKET, _NG_PACKET.pack(links[link], *time, size, original) + packet)
            else:
                time = time_ns // 10**9 & 0xFFFF_FFFF, time_ns % 10**9
                yield _PCAP_RECORD.pack(*time, size, original) + packet
    if not links:
        yield _link_header(capture, ETHERNET, first=True)


def _link_header(capture: Capture, link: int, *, first: bool) -> bytes:
    """Return the description of a link that comes before its packets, with the file's start."""
    if capture.format != "pcapng":
        return _PCAP_HEAD.pack(_NANOSECONDS, 2, 4, 0, 0, _SNAPLEN, link)
    section = block(_SECTION, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) if first else b""
    in_nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    return section + block(_INTERFACE, struct.pack("<HHI", link, 0, _SNAPLEN) + in_nanoseconds)
