"""The pcapng format: blocks with their length at both ends, interfaces with their own clocks."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rote.capture.read.flow_ids import distinct
from rote.capture.read.reader import MAX_BLOCK_BYTES, MAX_PACKET_BYTES, Capture, Records
from rote.capture.read.record_scan import (
    Bytes,
    Ints,
    RecordChain,
    RecordLayout,
    column,
    near,
    one_each,
    walk,
    windows,
)

SECTION, INTERFACE, OLD_PACKET, SIMPLE, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
SECRETS = 10
_TLS_KEY_LOG = 0x544C534B
_MAX_INTERFACES = 4096
_MAX_SECRETS = 1 << 20
_RESOLUTION, _OFFSET = 9, 14
_PACKETS = (OLD_PACKET, SIMPLE, PACKET)


class CaptureInterface(NamedTuple):
    """An interface of the capture, and the unit of its time stamps."""

    linktype: int
    snaplen: int
    resolution: int = 6
    """As in the option: a power of ten, or of two if the top bit is set."""
    offset_s: int = 0

    def to_ns(self, ticks: np.ndarray) -> Ints:
        """Return times of this interface in nanoseconds since 1970."""
        power = self.resolution & 0x7F
        if self.resolution & 0x80:
            seconds = ticks >> np.uint64(min(power, 63))
            fraction = (ticks & np.uint64((1 << min(power, 63)) - 1)).astype(np.float64)
            part = (fraction * (1e9 / 2.0**power)).astype(np.int64)
            nanoseconds = seconds.astype(np.int64) * 1_000_000_000 + part
        elif power <= 9:
            nanoseconds = (ticks * np.uint64(10 ** (9 - power))).astype(np.int64)
        else:
            nanoseconds = (ticks // np.uint64(10 ** min(power - 9, 19))).astype(np.int64)
        return nanoseconds + np.int64(self.offset_s) * 1_000_000_000


class _Section:
    """What is needed to read the blocks of one section."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.interfaces: list[CaptureInterface] = []
        self.last_ns = 0
        self.layout = RecordLayout(order, 4, 0, 12, MAX_BLOCK_BYTES)


def records(capture: Capture) -> Iterator[Records]:
    """Yield the packets of all sections."""
    window, count = capture.window, 0
    section = _Section("<")
    while True:
        window.fill()
        starts_section = window.filled >= 16 and window.data[:4].tobytes() == b"\x0a\x0d\x0d\x0a"
        if starts_section:
            order = _byte_order(window.data)
            if order is None:
                capture.broken_off(count, "a section has no byte order")
                return
            section = _Section(order)
        chain, why = _valid_chain(window.data, window.filled, section)
        if chain.offsets.size:
            for found in _read_packets(capture, window.data, chain, section):
                count += found.start.size
                yield found
            window.drop(chain.end)
        elif not chain.broken and not window.ended:
            window.fill(least=2 * window.filled)
        if chain.broken:
            capture.broken_off(count, why)
            return
        if window.ended and not _another_section(window.data, window.filled, chain):
            capture.cut_short(count)
            return


def _another_section(data: Bytes, filled: int, chain: RecordChain) -> bool:
    """Whether reading stopped at a new section, and not because bytes are missing."""
    return chain.offsets.size > 0 and filled >= 16 and data[:4].tobytes() == b"\x0a\x0d\x0d\x0a"


def _byte_order(data: Bytes) -> str | None:
    magic = data[8:12].tobytes()
    return {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(magic)


def _valid_chain(data: Bytes, end: int, section: _Section) -> tuple[RecordChain, str]:
    """Return the chain up to the next section's start or the first invalid block."""
    order = section.order
    chain = walk(data, end, section.layout, _BlockGuess(order))
    numbers = column(data, order + "u4")
    offsets, sizes = chain.offsets, chain.sizes
    why = ""
    if chain.broken:
        kind, length = struct.unpack_from(order + "II", data.data, chain.end)
        why = f"a block claims {length:,} bytes"
        if kind == SECTION and chain.end:  # perhaps it has the other byte order
            chain = chain._replace(broken=False)
    sections = np.flatnonzero(numbers[offsets] == SECTION)
    sections = sections[sections > 0]
    if sections.size:
        chain = RecordChain(offsets[: sections[0]], sizes[: sections[0]], False)
    wrong = (numbers[chain.offsets + chain.sizes - 4] != chain.sizes) | (chain.sizes % 4 != 0)
    if wrong.any():
        first = int(wrong.argmax())
        chain = RecordChain(chain.offsets[:first], chain.sizes[:first], True)
        why = "a block's two lengths differ"
    return chain, why


def _guess_blocks(order: str, data: Bytes, first: int, distance: int, count: int) -> Ints:
    kinds = windows(data, order + "u4", first, distance, count)
    return near(kinds == PACKET, first, distance)


class _BlockGuess:
    """Finds likely packet blocks: the type, and the same length at both ends."""

    def __init__(self, order: str) -> None:
        self.order = order

    def __call__(self, data: Bytes, first: int, distance: int, count: int, end: int) -> Ints:
        found = _guess_blocks(self.order, data, first, distance, count)
        numbers = column(data, self.order + "u4")
        sizes = numbers[found + 4].astype(np.int64)
        fits = (sizes >= 32) & (sizes % 4 == 0) & (found + sizes <= end)
        found, sizes = found[fits], sizes[fits]
        return one_each(found[numbers[found + sizes - 4] == sizes], first, distance)


def _read_packets(
    capture: Capture, data: Bytes, chain: RecordChain, section: _Section
) -> Iterator[Records]:
    """Yield the packets of a chain, split where an interface is described between them."""
    kinds = column(data, section.order + "u4")[chain.offsets]
    others = np.flatnonzero(~np.isin(kinds, _PACKETS))
    begin = 0
    for index in [*others.tolist(), kinds.size]:
        if index > begin:
            part = slice(begin, index)
            found = _packet_records(
                capture, data, (chain.offsets[part], chain.sizes[part], kinds[part]), section
            )
            if found.start.size:
                yield found
        if index < kinds.size:
            at, size = int(chain.offsets[index]), int(chain.sizes[index])
            _handle_block(capture, int(kinds[index]), data[at : at + size].tobytes(), section)
        begin = index + 1


def _handle_block(capture: Capture, kind: int, block: bytes, section: _Section) -> None:
    """Process a block that is not a packet."""
    if kind == INTERFACE and len(block) >= 20:
        if len(section.interfaces) < _MAX_INTERFACES:
            section.interfaces.append(_parse_interface(block, section.order))
        else:
            capture.warn(f"more than {_MAX_INTERFACES:,} interfaces; the others were left out")
    elif kind == SECRETS and len(block) >= 20:
        what, length = struct.unpack_from(section.order + "II", block, 8)
        held = sum(map(len, capture.secrets))
        if what == _TLS_KEY_LOG and held + length <= _MAX_SECRETS:
            capture.secrets.append(block[16:-4][:length])


def _parse_interface(block: bytes, order: str) -> CaptureInterface:
    linktype, snaplen = struct.unpack_from(order + "H2xI", block, 8)
    resolution, offset_s = 6, 0
    position = 16
    while position + 4 <= len(block) - 4:
        code, length = struct.unpack_from(order + "HH", block, position)
        value = block[position + 4 : position + 4 + length]
        if code == 0:
            break
        if code == _RESOLUTION and len(value) == 1:
            resolution = value[0]
        elif code == _OFFSET and len(value) == 8:
            (offset_s,) = struct.unpack(order + "q", value)
        position += 4 + length + -length % 4
    return CaptureInterface(linktype, snaplen, resolution, max(-(2**33), min(offset_s, 2**33)))


def _packet_records(
    capture: Capture, data: Bytes, blocks: tuple[Ints, Ints, np.ndarray], section: _Section
) -> Records:
    """Return the packets of blocks that are all packets."""
    offsets, sizes, kinds = blocks
    numbers = column(data, section.order + "u4")
    simple, old = kinds == SIMPLE, kinds == OLD_PACKET
    available = sizes - np.where(simple, 16, 32)
    original = numbers[offsets + np.where(simple, 8, 24)].astype(np.int64)
    captured = np.where(
        simple, np.minimum(original, available), numbers[offsets + 20].astype(np.int64)
    )
    interface = numbers[offsets + 8].astype(np.int64)
    if old.any():
        short = column(data, section.order + "u2")[offsets + 8].astype(np.int64)
        interface = np.where(old, short, interface)
    interface[simple] = 0
    known = interface < len(section.interfaces)
    fits = (captured <= available) & (available >= 0) & (captured <= MAX_PACKET_BYTES)
    for wrong, problem in (
        (~known, "packets of interfaces that the file does not describe"),
        (known & ~fits, "packets longer than their block"),
    ):
        if wrong.any():
            capture.warn(f"{int(wrong.sum()):,} {problem} were left out")
    keep = np.flatnonzero(known & fits)
    offsets, interface, simple = offsets[keep], interface[keep], simple[keep]
    high, low = (numbers[offsets + at].astype(np.uint64) for at in (12, 16))
    ticks = high << np.uint64(32) | low
    time_ns, linktype = _times_and_links(ticks, interface, section)
    if simple.any():
        capture.warn("simple packet blocks carry no time; they have the time of the one before")
        _carry_times(time_ns, simple, section.last_ns)
    if time_ns.size:
        section.last_ns = int(time_ns[-1])
    start = offsets + np.where(simple, 12, 28)
    return Records(data, start, captured[keep], original[keep], time_ns, linktype)


def _times_and_links(ticks: np.ndarray, interface: Ints, section: _Section) -> tuple[Ints, Ints]:
    time_ns, linktype = np.zeros(ticks.size, np.int64), np.zeros(ticks.size, np.int64)
    for number in distinct(interface).tolist():
        its = interface == number
        facts = section.interfaces[number]
        time_ns[its] = facts.to_ns(ticks[its])
        linktype[its] = facts.linktype
    return time_ns, linktype


def _carry_times(time_ns: Ints, without: np.ndarray, before_ns: int) -> None:
    index = np.where(without, -1, np.arange(time_ns.size))
    index = np.maximum.accumulate(index)
    time_ns[:] = np.where(index >= 0, time_ns[np.maximum(index, 0)], before_ns)
