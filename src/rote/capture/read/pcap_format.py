"""The pcap format: a header of 24 bytes, then each packet after 16 bytes of time and length."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rote.capture.read.reader import MAX_PACKET_BYTES, Capture, Records
from rote.capture.read.record_scan import (
    Bytes,
    Ints,
    RecordLayout,
    column,
    near,
    one_each,
    walk,
    windows,
)

# magic: (nanoseconds a tick, size of a record's header, further bytes in the file's header)
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
    """The contents of the file header."""

    order: str
    tick_ns: int
    record_header: int
    size: int
    linktype: int

    @property
    def description(self) -> str:
        """What kind of file it is."""
        order = "little" if self.order == "<" else "big"
        return f"pcap, {'nano' if self.tick_ns == 1 else 'micro'}seconds, {order}-endian"


def header(head: bytes) -> PcapHeader | None:
    """Return the file's header; None if it is not pcap."""
    if len(head) < 24:
        return None
    for order in "<>":
        (magic,) = struct.unpack_from(order + "I", head)
        if magic in _MAGICS:
            tick_ns, record_header, more = _MAGICS[magic]
            (linktype,) = struct.unpack_from(order + "I", head, 20)
            return PcapHeader(order, tick_ns, record_header, 24 + more, linktype & _LINKTYPE_BITS)
    return None


def records(capture: Capture, header: PcapHeader) -> Iterator[Records]:
    """Yield the packets after the header."""
    window = capture.window
    window.drop(header.size)
    layout = RecordLayout(
        header.order, 8, header.record_header, header.record_header, MAX_PACKET_BYTES + 24
    )
    count = 0
    while True:
        window.fill()
        chain = walk(window.data, window.filled, layout, _RecordGuess(header))
        if chain.offsets.size:
            count += chain.offsets.size
            yield _make_records(window.data, chain.offsets, chain.sizes, header)
            window.drop(chain.end)
        if chain.broken:
            (size,) = struct.unpack_from(header.order + "I", window.data.data, 8)
            capture.broken_off(count, f"a packet claims {size:,} bytes")
            return
        if window.ended:
            capture.cut_short(count)
            return


def _make_records(data: Bytes, offsets: Ints, sizes: Ints, header: PcapHeader) -> Records:
    heads = np.ndarray((data.size - 15,), "V16", data.data, 0, (1,))[offsets]
    fields = heads.view(header.order + "u4").reshape(-1, 4)
    seconds, fraction, original = (fields[:, at].astype(np.int64) for at in (0, 1, 3))
    return Records(
        data,
        offsets + header.record_header,
        sizes - header.record_header,
        original,
        seconds * 1_000_000_000 + fraction * header.tick_ns,
        np.broadcast_to(np.int64(header.linktype), offsets.shape),
    )


class _RecordGuess:
    """Finds likely records: a time near the first packet's, and a second record behind."""

    def __init__(self, header: PcapHeader) -> None:
        self.header = header

    def __call__(self, data: Bytes, first: int, distance: int, count: int, end: int) -> Ints:
        order, record_header = self.header.order, self.header.record_header
        at, highest = (2, 3) if order == "<" else (0, 0)
        highs = windows(data, "u1", first + highest, distance, count)
        found = near(highs == data[highest], first, distance)
        top = column(data, order + "u2", at)
        high_byte = top[0]
        found = found[top[found] == high_byte]
        numbers = column(data, order + "u4")
        found = found[self._are_likely_headers(numbers, found, end)]
        behind = found + record_header + numbers[found + 8]
        likely = (behind < end - record_header) & (top[np.minimum(behind, end)] == high_byte)
        found, behind = found[likely], behind[likely]
        return one_each(found[self._are_likely_headers(numbers, behind, end)], first, distance)

    def _are_likely_headers(self, numbers: np.ndarray, at: Ints, end: int) -> np.ndarray:
        at = np.minimum(at, end)
        captured, original = numbers[at + 8], numbers[at + 12]
        fraction = numbers[at + 4] < 1_000_000_000 // self.header.tick_ns
        sane: np.ndarray = fraction & (captured <= original) & (original <= MAX_PACKET_BYTES)
        return sane
