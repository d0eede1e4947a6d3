"""Capture files as arrays: pcap and pcapng, plain or compressed, from a file or a pipe.

A `Capture` is read once, window by window, so memory does not grow with the file:

    with open_capture(path) as capture:
        for records in capture:      # packets in columns, in the file's order
            ...
    capture.warnings                 # what was wrong with the file, in sentences

A file that ends early or breaks in the middle gives every packet before that point, and a warning.
"""

import io
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self, cast

import numpy as np

from rote.capture.read.compressed import detect_compression, open_compressed
from rote.capture.read.record_scan import (
    GUARD,
    Bytes,
    Ints,
    RecordLayout,
    column,
    find_first_in_rows,
    find_marked_offsets,
    scan_view,
    walk_records,
)
from rote.errors import BadRequestError, DecodeError
from rote.text import Act, Text

# ---- the reader ----------------------------------------------------------------------------------


WINDOW = 4 << 20
"""Number of bytes of a file that are in memory at a time."""
MAX_PACKET_BYTES = 1 << 20
"""A packet that claims more is taken for damage: no link that rote knows has larger ones."""
MAX_BLOCK_BYTES = 16 << 20
PCAPNG_MAGIC = b"\x0a\x0d\x0d\x0a"


class Records(NamedTuple):
    """Packets in columns. `data` is reused: copy what you need before the next iteration."""

    data: Bytes
    """The packets, followed by GUARD bytes without meaning."""
    start: Ints
    """Where each begins in `data`."""
    captured: Ints
    """How many bytes of each were captured."""
    original: Ints
    """The length of each on the wire; more than was captured if the capture cut it off."""
    time_ns: Ints
    linktype: Ints


class NotACaptureError(DecodeError):
    """The file is neither pcap nor pcapng."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not a capture: {reason}",
            "rote reads pcap and pcapng, plain or compressed with gzip, zstd or lz4, as tcpdump, "
            "Wireshark and PCAPdroid write them.",
        )
        self.args = (path, reason)


class Window:
    """A window that moves over a file: used bytes are dropped in front, new ones read behind."""

    def __init__(self, source: io.BufferedIOBase, size: int = WINDOW) -> None:
        self.source = source
        self.data: Bytes = np.zeros(size + GUARD, np.uint8)
        self.filled = 0
        """Number of bytes in the window; GUARD zeros follow them."""
        self.source_offset = 0
        """The position of the window's first byte in the source."""
        self.ended = False
        self.damage = ""
        """Why the source cannot be read to its end; empty if it can."""

    def fill(self, min_size: int = 0) -> None:
        """Read until the window is full or the source ends; first enlarge it to `min_size`."""
        if min_size + GUARD > self.data.size:
            grown = np.zeros(min_size + GUARD, np.uint8)
            grown[: self.filled] = self.data[: self.filled]
            self.data = grown
        view = memoryview(self.data.data)[: self.data.size - GUARD]
        while not self.ended and self.filled < len(view):
            count = self._read_source(view[self.filled :])
            self.filled += count
            self.ended = count == 0
        self.data[self.filled : self.filled + GUARD] = 0

    def _read_source(self, buffer: memoryview) -> int:
        """Read into `buffer`; return the number of bytes, 0 at the end and at damage."""
        try:
            return self.source.readinto1(buffer)
        except EOFError as error:
            self.damage = f"the compressed file is damaged ({error})"
            return 0

    def drop(self, count: int) -> None:
        """Drop the first `count` bytes."""
        remaining = self.filled - count
        self.data[:remaining] = self.data[count : self.filled].copy()
        self.filled = remaining
        self.source_offset += count


class Capture:
    """A capture that is being read; iterate over it once."""

    def __init__(self, source: IO[bytes], name: str, window: int = WINDOW) -> None:
        self.name = name
        self.warnings: list[str] = []
        self.secrets: list[bytes] = []
        """Key log lines that the file itself carries (pcapng decryption secrets)."""
        self._source = source
        buffered = cast("io.BufferedReader", source)
        compression = detect_compression(buffered.peek(4)[:4])
        self.window = Window(
            open_compressed(buffered, compression) if compression else buffered, window
        )
        self.format = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._source.close()

    def __iter__(self) -> Iterator[Records]:
        # Imported here, so that only the module of the file's format is loaded.
        from rote.capture.read import pcapng  # noqa: PLC0415

        self.window.fill()
        head = bytes(self.window.data[: min(_HEADER_BYTES, self.window.filled)])
        if not head:
            raise NotACaptureError(self.name, self.window.damage or "it is empty")
        if head[:4] == PCAPNG_MAGIC:
            self.format = "pcapng"
            yield from pcapng.read_records(self)
            return
        header = read_header(head)
        if header is None:
            start = f"it begins with {head[:8].hex(' ')}"
            raise NotACaptureError(self.name, f"{self.window.damage} {start}".strip())
        self.format = header.description
        yield from read_records(self, header)

    def warn(self, message: str) -> None:
        """Add a warning about the file, unless it has been added before."""
        if message not in self.warnings:
            self.warnings.append(message)

    def warn_cut_short(self, packets_read: int) -> None:
        """Warn if the file ended at damage or in the middle of a packet."""
        window = self.window
        if window.damage:
            self.warn(f"{window.damage}; the {packets_read:,} packets before that were read")
        elif window.filled:
            self.warn(
                f"the file ends in the middle of a packet: its last {window.filled:,} bytes are "
                f"the start of one; the {packets_read:,} whole packets were read"
            )

    def warn_broken(self, packets_read: int, problem: str) -> None:
        """Warn that reading stopped in the middle of the file, at which byte, and why."""
        self.warn(
            f"at byte {self.window.source_offset:,} {problem}; "
            f"only the {packets_read:,} packets before it were read"
        )


def open_capture(path: Path | str, window: int = WINDOW) -> Capture:
    """Open a capture; `-` is standard input."""
    if str(path) == "-":
        if sys.stdin is None or sys.stdin.isatty():
            raise BadRequestError(
                "there is no capture on standard input",
                Text("Pipe one in, for example: {pipe}", pipe=Act.PIPE_CAPTURE),
            )
        return Capture(sys.stdin.buffer, "standard input", window)
    try:
        source = Path(path).open("rb")  # noqa: SIM115 - the capture closes it
    except OSError as error:
        reason = error.strerror or str(error)
        raise BadRequestError(f"{path} cannot be read: {reason}", "Check the path.") from error
    return Capture(source, str(path), window)


# ---- the formats ---------------------------------------------------------------------------------


_HEADER_BYTES = 24
# magic: (nanoseconds per tick, size of a record's header, bytes of the file's header beyond 24)
_MAGICS = {
    0xA1B2C3D4: (1000, 16, 0),
    0xA1B23C4D: (1, 16, 0),
    0xA1B2CD34: (1000, 24, 0),  # Kuznetsov's: interface, protocol and packet type follow
    0x1C0001AC: (1, 16, 4),  # written by test hardware
    0x1C0001AB: (1, 16, 4),
}
_LINKTYPE_BITS = 0x03FF_FFFF
"""The bits above these state the length of the frame check sequence, in files of some writers."""


class PcapHeader(NamedTuple):
    """What the header of a pcap file states."""

    order: str
    """The byte order: < or >."""
    tick_ns: int
    """The unit of the fraction of a second in time stamps."""
    record_header: int
    """The size of the header before each packet, in bytes."""
    size: int
    """The size of this header, in bytes."""
    linktype: int

    @property
    def description(self) -> str:
        """The format as text, such as `pcap, microseconds, little-endian`."""
        order = "little" if self.order == "<" else "big"
        return f"pcap, {'nano' if self.tick_ns == 1 else 'micro'}seconds, {order}-endian"


def read_header(head: bytes) -> PcapHeader | None:
    """Decode the first bytes of a file as a pcap header; return None if they are not one."""
    if len(head) < _HEADER_BYTES:
        return None
    for order in "<>":
        (magic,) = struct.unpack_from(order + "I", head)
        if magic in _MAGICS:
            tick_ns, record_header, further_bytes = _MAGICS[magic]
            (linktype,) = struct.unpack_from(order + "I", head, 20)
            size = _HEADER_BYTES + further_bytes
            return PcapHeader(order, tick_ns, record_header, size, linktype & _LINKTYPE_BITS)
    return None


def read_records(capture: Capture, header: PcapHeader) -> Iterator[Records]:
    """Yield the packets of a pcap file, one window of them at a time."""
    window = capture.window
    window.drop(header.size)
    layout = RecordLayout(
        order=header.order,
        length_at=8,
        added=header.record_header,
        smallest=header.record_header,
        largest=MAX_PACKET_BYTES + 24,  # the largest header of a record
    )
    count = 0
    while True:
        window.fill()
        chain = walk_records(window.data, window.filled, layout, _RecordGuess(header))
        if chain.offsets.size:
            count += chain.offsets.size
            yield _make_records(window.data, chain.offsets, chain.sizes, header)
            window.drop(chain.end)
        if chain.broken:
            (size,) = struct.unpack_from(header.order + "I", window.data.data, layout.length_at)
            capture.warn_broken(count, f"a packet claims {size:,} bytes")
            return
        if window.ended:
            capture.warn_cut_short(count)
            return


def _make_records(data: Bytes, offsets: Ints, sizes: Ints, header: PcapHeader) -> Records:
    """Return the packets of the records at `offsets`, in columns."""
    # Element i of the view is the 16 bytes from offset i. In a record header they are four numbers:
    # seconds, fraction of a second in ticks, captured length, original length.
    heads = np.ndarray((data.size - 15,), "V16", data.data, 0, (1,))[offsets]
    fields = heads.view(header.order + "u4").reshape(-1, 4)
    seconds, fraction, original = (fields[:, index].astype(np.int64) for index in (0, 1, 3))
    return Records(
        data,
        offsets + header.record_header,
        sizes - header.record_header,
        original,
        seconds * 1_000_000_000 + fraction * header.tick_ns,
        np.broadcast_to(np.int64(header.linktype), offsets.shape),
    )


class _RecordGuess:
    """Finds likely records: a time near the first packet's, and another record right after."""

    def __init__(self, header: PcapHeader) -> None:
        self.header = header

    def __call__(self, data: Bytes, first: int, distance: int, count: int, end: int) -> Ints:
        """Return likely records of `data`, as described at `record_scan.Guess`."""
        order, record_header = self.header.order, self.header.record_header
        # The upper half of the seconds, with which a record begins, changes only every 18 hours, so
        # most packets share it. Its upper byte is compared first: that is the fastest.
        upper_half_at, upper_byte_at = (2, 3) if order == "<" else (0, 0)
        upper_bytes = scan_view(data, "u1", first + upper_byte_at, distance, count)
        offsets = find_marked_offsets(upper_bytes == data[upper_byte_at], first, distance)
        upper_half_of = column(data, order + "u2", upper_half_at)
        usual_half = upper_half_of[0]
        offsets = offsets[upper_half_of[offsets] == usual_half]
        uint32_at = column(data, order + "u4")
        offsets = offsets[self._are_likely_headers(uint32_at, offsets, end)]
        next_offsets = offsets + record_header + uint32_at[offsets + 8]
        is_likely = (next_offsets < end - record_header) & (
            upper_half_of[np.minimum(next_offsets, end)] == usual_half
        )
        offsets, next_offsets = offsets[is_likely], next_offsets[is_likely]
        is_confirmed = self._are_likely_headers(uint32_at, next_offsets, end)
        return find_first_in_rows(offsets[is_confirmed], first, distance)

    def _are_likely_headers(self, uint32_at: np.ndarray, offsets: Ints, end: int) -> np.ndarray:
        """Return at which offsets a plausible record header begins: fraction and lengths fit.

        `uint32_at` has the 32-bit number at each byte.
        """
        offsets = np.minimum(offsets, end)
        fraction, captured, original = (uint32_at[offsets + field] for field in (4, 8, 12))
        are_likely: np.ndarray = (
            (fraction < 1_000_000_000 // self.header.tick_ns)
            & (captured <= original)
            & (original <= MAX_PACKET_BYTES)
        )
        return are_likely
