"""A copy of a capture that can be shown to others: identifiers are replaced, the rest stays.

Addresses, hardware addresses, serial numbers, tokens and names are replaced, by the same ones in
every packet and of the same length; checksums are corrected; encrypted parts stay as they are. What
cannot be read is cleared, unless it is to be kept. From a pcapng everything is removed that is not
a packet or needed to read one: names, comments, secrets. The copy appears when it is complete.

What stays: times, sizes, ports, and names in texts that nothing marks as names.
"""

import gzip
import secrets
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from rote.capture.read.compressed import format_of, open_compressed
from rote.capture.read.reader import MAX_BLOCK_BYTES, MAX_PACKET_BYTES, NotACaptureError
from rote.capture.scrub.identifiers import MAX_IDENTIFIERS
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.capture.scrub.rewrite import Rewriter
from rote.capture.synthetic.ethernet import block
from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing

_NG = b"\x0a\x0d\x0d\x0a"
_ORDERS = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xa1\xb2\x3c\x4d": ">",
    b"\x34\xcd\xb2\xa1": "<",
    b"\xa1\xb2\xcd\x34": ">",
}
_MODIFIED = frozenset((b"\x34\xcd\xb2\xa1", b"\xa1\xb2\xcd\x34"))
_SECTION, _INTERFACE, _OLD_PACKET, _SIMPLE, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 2, 3, 5, 6
_KEPT_OPTIONS = {_INTERFACE: frozenset((9, 14)), _STATISTICS: frozenset(range(2, 9))}

Change = Callable[[int, bytes], bytes]


@dataclass(slots=True)
class Scrubbed:
    """What was done."""

    packets: int = 0
    names: int = 0
    """Names, serial numbers and tokens that were learned."""
    blanked: int = 0
    """Packets, or parts of them, that could not be read and are zeros now."""
    dropped: int = 0
    """Blocks of the file that contained names, comments or secrets, or that are unknown."""
    replaced: dict[str, dict[str, int]] = field(default_factory=dict)
    """By kind of identifier: how many `different` ones, and how many `times`."""
    cleared: dict[str, int] = field(default_factory=dict)
    """Packets, or parts of them, that are zeros now, by kind."""
    encrypted: dict[str, int] = field(default_factory=dict)
    """Packets that were kept because they are encrypted, by kind."""
    unjudged: dict[str, int] = field(default_factory=dict)
    """Packets that may identify a person or device in an unknown way, by kind."""
    warnings: list[str] = field(default_factory=list)


def scrub(
    source: Path, target: Path, key: bytes | None = None, *, keep_unknown: bool = False
) -> Scrubbed:
    """Write a copy of `source` without identifiers; the same key gives the same pseudonyms.

    `keep_unknown` keeps what cannot be read, and replaces only known identifiers in it. Raises
    `BadRequestError` if a file cannot be read, `NotACaptureError` if it is not a capture.
    """
    rewriter = Rewriter(Pseudonyms(key or secrets.token_bytes(32)), keep_unknown=keep_unknown)
    done = Scrubbed()
    if target.exists() and source.exists() and target.samefile(source):
        raise BadRequestError(
            f"{target} would be overwritten while it is read", "Name another file."
        )

    def learn(linktype: int, packet: bytes) -> bytes:
        rewriter.learn(linktype, packet)
        return packet

    rewriter.start(learning=True)
    with _open_source(source) as (file, _):
        for _ in _rewrite_file(file, learn, Scrubbed(), source):
            pass
    rewriter.start(learning=False)
    with (
        _open_source(source) as (file, packed),
        appearing(target) as out,
        _compress_like(out, packed) as sink,
    ):
        for piece in _rewrite_file(file, rewriter.rewrite, done, source):
            sink.write(piece)
    _fill_account(rewriter, done, keep_unknown=keep_unknown)
    return done


def _fill_account(rewriter: Rewriter, done: Scrubbed, *, keep_unknown: bool) -> None:
    """Record what was replaced, cleared and kept."""
    account = rewriter.payloads.account
    done.names, done.blanked = rewriter.identifiers.names, rewriter.blanked
    done.replaced = rewriter.tally.document()
    done.encrypted = dict(+account.kept)
    done.cleared, done.unjudged = dict(+account.cleared), dict(+account.unjudged)
    (done.unjudged if keep_unknown else done.cleared).update(rewriter.unread)
    if anonymous := rewriter.payloads.handshakes.anonymous:
        done.unjudged["certificates without a name"] = anonymous
    if rewriter.identifiers.refused:
        done.warnings.append(
            f"more than {MAX_IDENTIFIERS:,} identifiers: {rewriter.identifiers.refused:,} more are "
            "replaced only where a protocol says what they are"
        )


@contextmanager
def _open_source(path: Path) -> Iterator[tuple[IO[bytes], bool]]:
    """Open a capture; yield its contents, and whether it is compressed."""
    try:
        if path.exists() and not path.is_file():
            raise BadRequestError(f"{path} cannot be read: it is not a file")
        with path.open("rb") as file:
            compression = format_of(file.read(4))
            file.seek(0)
            yield (
                (cast("IO[bytes]", open_compressed(file, compression)) if compression else file),
                bool(compression),
            )
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequestError(f"{path} cannot be read: {reason}") from None


@contextmanager
def _compress_like(out: BinaryIO, packed: bool) -> Iterator[IO[bytes]]:
    """Compress the output with gzip if the input was compressed, in whatever format."""
    if not packed:
        yield out
        return
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as file:
        yield cast("IO[bytes]", file)


class _EarlyEndError(Exception):
    """The file ends, or is damaged, here."""


def _read_exactly(file: IO[bytes], size: int) -> bytes:
    try:
        data = file.read(size)
        if len(data) < size:
            file.read(1)  # raises what is wrong with a compressed file
    except (EOFError, OSError) as error:
        raise _EarlyEndError(f"cannot be unpacked any further ({error})") from None
    if len(data) < size:
        raise _EarlyEndError("ends in the middle of a packet" if data else "")
    return data


def _rewrite_file(file: IO[bytes], change: Change, done: Scrubbed, path: Path) -> Iterator[bytes]:
    """Yield the new file piece by piece, up to the last whole packet."""
    try:
        magic = _read_exactly(file, 4)
    except _EarlyEndError as error:
        if str(error):
            raise NotACaptureError(str(path), f"it {error}") from None
        magic = b""
    if magic == _NG:
        walk = _rewrite_pcapng(file, change, done)
    elif magic in _ORDERS:
        walk = _rewrite_pcap(file, magic, change, done)
    else:
        seen = f"it begins with {magic.hex(' ')}" if magic else "it is empty"
        raise NotACaptureError(str(path), seen)
    try:
        yield from walk
    except _EarlyEndError as error:
        if str(error):
            done.warnings.append(f"{path} {error}; what came before is kept")


def _rewrite_pcap(file: IO[bytes], magic: bytes, change: Change, done: Scrubbed) -> Iterator[bytes]:
    order = _ORDERS[magic]
    head = _read_exactly(file, 20)
    linktype = struct.unpack(order + "I", head[16:])[0] & 0xFFFF
    yield magic + head
    record = struct.Struct(order + ("IIII8x" if magic in _MODIFIED else "IIII"))
    while True:
        start = _read_exactly(file, record.size)
        size = record.unpack(start)[2]
        if size > MAX_PACKET_BYTES:
            raise _EarlyEndError(f"claims a packet of {size} bytes, which cannot be")
        packet = _read_exactly(file, size)
        done.packets += 1
        yield start + change(linktype, packet)


class _PacketSpan(NamedTuple):
    """Position of the packet in a block."""

    interface: int
    start: int
    size: int


def _rewrite_pcapng(file: IO[bytes], change: Change, done: Scrubbed) -> Iterator[bytes]:
    order = "<"
    links: list[tuple[int, int]] = []
    head, kind_bytes = b"", _NG
    while True:
        size_bytes = _read_exactly(file, 4)
        if kind_bytes == _NG:
            head = _read_exactly(file, 4)
            order = "<" if head == b"\x4d\x3c\x2b\x1a" else ">"
            links = []
        kind, size = struct.unpack(order + "II", kind_bytes + size_bytes)
        if size % 4 or not 12 + len(head) <= size <= MAX_BLOCK_BYTES:
            raise _EarlyEndError(f"claims a block of {size} bytes, which cannot be")
        body = head + _read_exactly(file, size - 8 - len(head))
        if struct.unpack(order + "I", body[-4:])[0] != size:
            raise _EarlyEndError("has a block whose two lengths differ")
        try:
            yield _rewrite_block(kind, body[:-4], order, links, change, done)
        except (struct.error, IndexError):
            done.dropped += 1
        head, kind_bytes = b"", _read_exactly(file, 4)


def _rewrite_block(
    kind: int,
    body: bytes,
    order: str,
    links: list[tuple[int, int]],
    change: Change,
    done: Scrubbed,
) -> bytes:
    if kind == _SECTION:
        # Its length would be wrong, so it is left out.
        return block(kind, body[:8] + b"\xff" * 8, order)
    if kind == _INTERFACE:
        link, _, snaplen = struct.unpack_from(order + "HHI", body)
        links.append((link, snaplen))
        return block(kind, body[:8] + _keep_options(kind, body[8:], order), order)
    if kind == _STATISTICS:
        return block(kind, body[:12] + _keep_options(kind, body[12:], order), order)
    if kind not in (_PACKET, _SIMPLE, _OLD_PACKET):
        done.dropped += 1
        return b""
    span = _find_packet(kind, body, order, links)
    if span.start + span.size > len(body):
        raise IndexError
    packet = body[span.start : span.start + span.size]
    done.packets += 1
    return block(kind, body[: span.start] + change(links[span.interface][0], packet), order)


def _find_packet(kind: int, body: bytes, order: str, links: list[tuple[int, int]]) -> _PacketSpan:
    if kind == _PACKET:
        interface, _, _, size = struct.unpack_from(order + "IIII", body)
        return _PacketSpan(interface, 20, size)
    if kind == _OLD_PACKET:
        interface, _, _, _, size = struct.unpack_from(order + "HHIII", body)
        return _PacketSpan(interface, 20, size)
    (original,) = struct.unpack_from(order + "I", body)
    snaplen = links[0][1] or MAX_PACKET_BYTES
    return _PacketSpan(0, 4, min(original, snaplen, len(body) - 4))


def _keep_options(kind: int, data: bytes, order: str) -> bytes:
    """Return only the options needed to read the packets."""
    kept, at = b"", 0
    while at + 4 <= len(data):
        code, size = struct.unpack_from(order + "HH", data, at)
        end = at + 4 + size + -size % 4
        if code == 0 or end > len(data):
            break
        if code in _KEPT_OPTIONS[kind]:
            kept += data[at:end]
        at = end
    return kept + bytes(4) if kept else b""
