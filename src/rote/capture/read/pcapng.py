"""The pcapng format: blocks with their length at both ends, interfaces with their own clocks."""

import struct
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rote.capture.read.flow_ids import distinct
from rote.capture.read.reader import (
    MAX_BLOCK_BYTES,
    MAX_PACKET_BYTES,
    PCAPNG_MAGIC,
    Capture,
    Records,
    Window,
)
from rote.capture.read.record_scan import (
    Bytes,
    Ints,
    RecordChain,
    RecordLayout,
    column,
    find_first_in_rows,
    find_marked_offsets,
    scan_view,
    walk_records,
)

SECTION, INTERFACE, OLD_PACKET, SIMPLE, PACKET = 0x0A0D0D0A, 1, 2, 3, 6
SECRETS = 10
_TLS_KEY_LOG = 0x544C534B
_MAX_INTERFACES = 4096
_MAX_SECRETS_BYTES = 1 << 20
_RESOLUTION_OPTION, _OFFSET_OPTION = 9, 14
_MAX_OFFSET_S = 2**33
"""A larger offset of a clock is wrong, and in nanoseconds it would not fit into 64 bits."""
_PACKETS = (OLD_PACKET, SIMPLE, PACKET)


class CaptureInterface(NamedTuple):
    """An interface of the capture, and the unit of its time stamps."""

    linktype: int
    resolution: int = 6
    """As in the file: 10 to this power is the number of ticks per second. If the top bit is set,
    it is 2 to the power of the other 7 bits."""
    offset_s: int = 0
    """Seconds that are added to every time stamp."""

    def to_ns(self, ticks: np.ndarray) -> Ints:
        """Convert time stamps of this interface to nanoseconds since 1970."""
        power = self.resolution & 0x7F
        if self.resolution & 0x80:
            # Whole seconds stay integers, because a float would lose nanoseconds.
            seconds = ticks >> np.uint64(min(power, 63))
            fraction = (ticks & np.uint64((1 << min(power, 63)) - 1)).astype(np.float64)
            fraction_ns = (fraction * (1e9 / 2.0**power)).astype(np.int64)
            nanoseconds = seconds.astype(np.int64) * 1_000_000_000 + fraction_ns
        elif power <= 9:
            nanoseconds = (ticks * np.uint64(10 ** (9 - power))).astype(np.int64)
        else:
            nanoseconds = (ticks // np.uint64(10 ** min(power - 9, 19))).astype(np.int64)
        return nanoseconds + np.int64(self.offset_s) * 1_000_000_000


class _Section:
    """What is needed to read the blocks of one section: a part of a file with one byte order."""

    def __init__(self, order: str) -> None:
        self.order = order
        self.interfaces: list[CaptureInterface] = []
        self.last_ns = 0
        """The time of the last packet, for packets without a time."""
        self.layout = RecordLayout(
            order=order, length_at=4, added=0, smallest=12, largest=MAX_BLOCK_BYTES
        )


def read_records(capture: Capture) -> Iterator[Records]:
    """Yield the packets of a pcapng file, one window of them at a time."""
    window, count = capture.window, 0
    section = _Section("<")
    while True:
        window.fill()
        if _begins_with_section(window):
            order = _read_byte_order(window.data)
            if order is None:
                capture.warn_broken(count, "a section has no byte order")
                return
            section = _Section(order)
        chain, problem = _find_valid_blocks(window.data, window.filled, section)
        if chain.offsets.size:
            for found in _read_packets(capture, window.data, chain, section):
                count += found.start.size
                yield found
            window.drop(chain.end)
        elif not chain.broken and not window.ended:
            window.fill(min_size=2 * window.filled)  # a block is larger than the window
        if chain.broken:
            capture.warn_broken(count, problem)
            return
        stopped_at_section = chain.offsets.size > 0 and _begins_with_section(window)
        if window.ended and not stopped_at_section:
            capture.warn_cut_short(count)
            return


def _begins_with_section(window: Window) -> bool:
    """Whether the window begins with the header of a section, at least up to its byte order."""
    return window.filled >= 16 and window.data[:4].tobytes() == PCAPNG_MAGIC


def _read_byte_order(data: Bytes) -> str | None:
    """Return the byte order that the header of a section states: < or >; None if it is damaged."""
    magic = data[8:12].tobytes()
    return {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}.get(magic)


def _find_valid_blocks(data: Bytes, end: int, section: _Section) -> tuple[RecordChain, str]:
    """Return the blocks before the next section or the first invalid block.

    Also returns why that block is invalid, as text.
    """
    order = section.order
    chain = walk_records(data, end, section.layout, _BlockGuess(order))
    uint32_at = column(data, order + "u4")
    offsets, sizes = chain.offsets, chain.sizes
    problem = ""
    if chain.broken:
        kind, length = struct.unpack_from(order + "II", data.data, chain.end)
        problem = f"a block claims {length:,} bytes"
        if kind == SECTION and chain.end:  # perhaps it has the other byte order
            chain = chain._replace(broken=False)
    sections = np.flatnonzero(uint32_at[offsets] == SECTION)
    sections = sections[sections > 0]
    if sections.size:
        chain = RecordChain(offsets[: sections[0]], sizes[: sections[0]], False)
    # A block repeats its length in its last 4 bytes.
    lengths_at_end = uint32_at[chain.offsets + chain.sizes - 4]
    is_wrong = (lengths_at_end != chain.sizes) | (chain.sizes % 4 != 0)
    if is_wrong.any():
        first = int(is_wrong.argmax())
        chain = RecordChain(chain.offsets[:first], chain.sizes[:first], True)
        problem = "a block's two lengths differ"
    return chain, problem


class _BlockGuess:
    """Finds likely packet blocks: the type, and the same length at both ends."""

    def __init__(self, order: str) -> None:
        self.order = order

    def __call__(self, data: Bytes, first: int, distance: int, count: int, end: int) -> Ints:
        """Return likely blocks of `data`, as described at `record_scan.Guess`."""
        kinds = scan_view(data, self.order + "u4", first, distance, count)
        offsets = find_marked_offsets(kinds == PACKET, first, distance)
        uint32_at = column(data, self.order + "u4")
        sizes = uint32_at[offsets + 4].astype(np.int64)
        fits = (sizes >= 32) & (sizes % 4 == 0) & (offsets + sizes <= end)
        offsets, sizes = offsets[fits], sizes[fits]
        has_same_length = uint32_at[offsets + sizes - 4] == sizes
        return find_first_in_rows(offsets[has_same_length], first, distance)


def _read_packets(
    capture: Capture, data: Bytes, chain: RecordChain, section: _Section
) -> Iterator[Records]:
    """Yield the packets of a chain, and process the blocks between them in their order."""
    kinds = column(data, section.order + "u4")[chain.offsets]
    other_blocks = np.flatnonzero(~np.isin(kinds, _PACKETS))
    begin = 0
    for index in [*other_blocks.tolist(), kinds.size]:  # at last, the end of the chain
        if index > begin:
            part = slice(begin, index)
            records = _parse_packet_blocks(
                capture, data, (chain.offsets[part], chain.sizes[part], kinds[part]), section
            )
            if records.start.size:
                yield records
        if index < kinds.size:
            start, size = int(chain.offsets[index]), int(chain.sizes[index])
            _handle_block(capture, int(kinds[index]), data[start : start + size].tobytes(), section)
        begin = index + 1


def _handle_block(capture: Capture, kind: int, block: bytes, section: _Section) -> None:
    """Record the interface or the decryption secrets in a block; ignore other blocks."""
    if kind == INTERFACE and len(block) >= 20:
        if len(section.interfaces) < _MAX_INTERFACES:
            section.interfaces.append(_parse_interface(block, section.order))
        else:
            capture.warn(f"more than {_MAX_INTERFACES:,} interfaces; the others were left out")
    elif kind == SECRETS and len(block) >= 20:
        secret_kind, length = struct.unpack_from(section.order + "II", block, 8)
        kept_bytes = sum(map(len, capture.secrets))
        if secret_kind == _TLS_KEY_LOG and kept_bytes + length <= _MAX_SECRETS_BYTES:
            capture.secrets.append(block[16:-4][:length])  # padding may follow the secrets


def _parse_interface(block: bytes, order: str) -> CaptureInterface:
    """Decode the block that describes an interface, with the options for its clock."""
    (linktype,) = struct.unpack_from(order + "H", block, 8)
    resolution, offset_s = 6, 0
    position = 16
    while position + 4 <= len(block) - 4:
        code, length = struct.unpack_from(order + "HH", block, position)
        value = block[position + 4 : position + 4 + length]
        if code == 0:
            break
        if code == _RESOLUTION_OPTION and len(value) == 1:
            resolution = value[0]
        elif code == _OFFSET_OPTION and len(value) == 8:
            (offset_s,) = struct.unpack(order + "q", value)
        position += 4 + length + -length % 4
    offset_s = max(-_MAX_OFFSET_S, min(offset_s, _MAX_OFFSET_S))
    return CaptureInterface(linktype, resolution, offset_s)


def _parse_packet_blocks(
    capture: Capture, data: Bytes, blocks: tuple[Ints, Ints, np.ndarray], section: _Section
) -> Records:
    """Return the packets of packet blocks; those that contradict the file are left out.

    `blocks` are the offset, size and type of each block.
    """
    offsets, sizes, kinds = blocks
    uint32_at = column(data, section.order + "u4")
    # Offsets in a block: interface 8 (in old blocks only 16 bits), high and low half of the time
    # 12 and 16, captured length 20, original length 24, packet 28. A simple block has only the
    # original length at 8 and the packet at 12. All end with 4 bytes of the block's length.
    is_simple, is_old = kinds == SIMPLE, kinds == OLD_PACKET
    available = sizes - np.where(is_simple, 16, 32)
    original = uint32_at[offsets + np.where(is_simple, 8, 24)].astype(np.int64)
    captured = np.where(
        is_simple, np.minimum(original, available), uint32_at[offsets + 20].astype(np.int64)
    )
    interface = uint32_at[offsets + 8].astype(np.int64)
    if is_old.any():
        short = column(data, section.order + "u2")[offsets + 8].astype(np.int64)
        interface = np.where(is_old, short, interface)
    interface[is_simple] = 0
    is_known = interface < len(section.interfaces)
    is_fitting = (captured <= available) & (available >= 0) & (captured <= MAX_PACKET_BYTES)
    for is_left_out, problem in (
        (~is_known, "packets of interfaces that the file does not describe"),
        (is_known & ~is_fitting, "packets longer than their block"),
    ):
        if is_left_out.any():
            capture.warn(f"{int(is_left_out.sum()):,} {problem} were left out")
    keep = np.flatnonzero(is_known & is_fitting)
    offsets, interface, is_simple = offsets[keep], interface[keep], is_simple[keep]
    high, low = (uint32_at[offsets + half].astype(np.uint64) for half in (12, 16))
    ticks = high << np.uint64(32) | low
    time_ns, linktype = _read_times_and_links(ticks, interface, section)
    if is_simple.any():
        capture.warn("simple packet blocks carry no time; they have the time of the one before")
        _fill_missing_times(time_ns, is_simple, section.last_ns)
    if time_ns.size:
        section.last_ns = int(time_ns[-1])
    start = offsets + np.where(is_simple, 12, 28)
    return Records(data, start, captured[keep], original[keep], time_ns, linktype)


def _read_times_and_links(
    ticks: np.ndarray, interface: Ints, section: _Section
) -> tuple[Ints, Ints]:
    """Return the time and the link type of each packet, by its interface."""
    time_ns, linktype = np.zeros(ticks.size, np.int64), np.zeros(ticks.size, np.int64)
    for number in distinct(interface).tolist():
        selected = interface == number
        described = section.interfaces[number]
        time_ns[selected] = described.to_ns(ticks[selected])
        linktype[selected] = described.linktype
    return time_ns, linktype


def _fill_missing_times(time_ns: Ints, is_missing: np.ndarray, before_ns: int) -> None:
    """Replace each missing time with the last known one before it, or with `before_ns`."""
    known = np.where(is_missing, -1, np.arange(time_ns.size))
    last_known = np.maximum.accumulate(known)
    time_ns[:] = np.where(last_known >= 0, time_ns[np.maximum(last_known, 0)], before_ns)
