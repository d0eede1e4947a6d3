"""Capture files as arrays: pcap and pcapng, plain or compressed, from a file or a pipe.

A `Capture` is read once, window by window, so memory does not grow with the file:

    with open_capture(path) as capture:
        for records in capture:      # packets in columns, in the file's order
            ...
    capture.warnings                 # what was wrong with the file, in sentences

A file that ends early or breaks in the middle gives every packet before that point, and a warning.
"""

import io
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import IO, NamedTuple, Self, cast

import numpy as np

from rote.capture.read.compressed import format_of, open_compressed
from rote.capture.read.record_scan import GUARD, Bytes, Ints
from rote.errors import BadRequestError, DecodeError
from rote.text import Act, Text

WINDOW = 4 << 20
MAX_PACKET_BYTES = 1 << 20
"""A record that claims more is taken for damage: no link rote knows has larger packets."""
MAX_BLOCK_BYTES = 16 << 20
_NG = b"\x0a\x0d\x0d\x0a"


class Records(NamedTuple):
    """Packets in columns. `data` is reused: copy what you need before the next ones are read."""

    data: Bytes
    """The packets, followed by GUARD bytes without meaning."""
    start: Ints
    captured: Ints
    original: Ints
    """The length of each on the wire; more than was captured if the capture cut it off."""
    time_ns: Ints
    linktype: Ints


class NotACaptureError(DecodeError):
    """The file is something else."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(
            f"{path} is not a capture: {reason}",
            "rote reads pcap and pcapng, plain or compressed with gzip, zstd or lz4, as tcpdump, "
            "Wireshark and PCAPdroid write them.",
        )
        self.args = (path, reason)


class Window:
    """A moving window over the bytes of a source: used bytes are dropped at the front, new ones
    added.
    """

    def __init__(self, source: io.BufferedIOBase, size: int = WINDOW) -> None:
        self.source = source
        self.data: Bytes = np.zeros(size + GUARD, np.uint8)
        self.filled = 0
        self.at = 0
        """The position of the window's first byte in the source."""
        self.ended = False
        self.trouble = ""

    def fill(self, least: int = 0) -> None:
        """Read until the window is full or the source ends; make room for `least` bytes."""
        if least + GUARD > self.data.size:
            grown = np.zeros(least + GUARD, np.uint8)
            grown[: self.filled] = self.data[: self.filled]
            self.data = grown
        view = memoryview(self.data.data)[: self.data.size - GUARD]
        while not self.ended and self.filled < len(view):
            got = self._read_source(view[self.filled :])
            self.filled += got
            self.ended = got == 0
        self.data[self.filled : self.filled + GUARD] = 0

    def _read_source(self, buffer: memoryview) -> int:
        try:
            return self.source.readinto1(buffer)
        except EOFError as error:
            self.trouble = f"the compressed file is damaged ({error})"
            return 0

    def drop(self, count: int) -> None:
        """Drop the first `count` bytes."""
        rest = self.filled - count
        self.data[:rest] = self.data[count : self.filled].copy()
        self.filled = rest
        self.at += count


class Capture:
    """A capture that is being read; iterate over it once."""

    def __init__(self, source: IO[bytes], name: str, window: int = WINDOW) -> None:
        self.name = name
        self.warnings: list[str] = []
        self.secrets: list[bytes] = []
        """Key log lines that the file itself carries (pcapng decryption secrets)."""
        self._owned: list[AbstractContextManager[object]] = [source]
        buffered = cast("io.BufferedReader", source)
        packed = format_of(buffered.peek(4)[:4])
        self.window = Window(open_compressed(buffered, packed) if packed else buffered, window)
        self.format = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for owned in reversed(self._owned):
            owned.__exit__(kind, error, trace)

    def __iter__(self) -> Iterator[Records]:
        # Here, so that neither format's module has to be imported for the other.
        from rote.capture.read import pcap_format as classic  # noqa: PLC0415
        from rote.capture.read import pcapng  # noqa: PLC0415

        self.window.fill()
        head = bytes(self.window.data[:28][: self.window.filled])
        if not head:
            raise NotACaptureError(self.name, self.window.trouble or "it is empty")
        if head[:4] == _NG:
            self.format = "pcapng"
            yield from pcapng.records(self)
            return
        header = classic.header(head)
        if header is None:
            seen = f"it begins with {head[:8].hex(' ')}"
            raise NotACaptureError(self.name, f"{self.window.trouble} {seen}".strip())
        self.format = header.description
        yield from classic.records(self, header)

    def warn(self, message: str) -> None:
        """Note once what is wrong with the file."""
        if message not in self.warnings:
            self.warnings.append(message)

    def cut_short(self, count: int) -> None:
        """Note how the file ended, if not between two packets."""
        window = self.window
        if window.trouble:
            self.warn(f"{window.trouble}; the {count:,} packets before that were read")
        elif window.filled:
            self.warn(
                f"the file ends in the middle of a packet: its last {window.filled:,} bytes are "
                f"the start of one; the {count:,} whole packets were read"
            )

    def broken_off(self, count: int, seen: str) -> None:
        """Note where reading had to stop."""
        self.warn(
            f"at byte {self.window.at:,} {seen}; the {count:,} packets before that were read, "
            "what follows was not"
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
