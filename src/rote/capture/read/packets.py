"""From packets to datagrams: link, IP and UDP or TCP headers, for thousands of packets at once.

Headers are gathered into rows, and columns of the rows are compared and added. Only fragments are
taken out one by one; what they become is read the same way again.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.read.datagram import Datagram
from rote.capture.read.flow_ids import Interner, distinct
from rote.capture.read.fragments import Piece, Reassembly
from rote.capture.read.reader import Records
from rote.capture.read.record_scan import GUARD, Bytes, Ints, column

TCP, UDP = 6, 17
HEAD = 40
"""Bytes of each payload that come along in rows, unless more are asked for."""
LINKTYPES = {
    0: "BSD loopback",
    1: "Ethernet",
    12: "raw IP",
    14: "raw IP",
    101: "raw IP",
    108: "OpenBSD loopback",
    113: "Linux cooked",
    228: "raw IPv4",
    229: "raw IPv6",
    276: "Linux cooked v2",
}
BLOCK = 32_768
"""Packets that are worked on together: few enough to stay in the processor's cache."""

_IPV4, _IPV6 = 0x0800, 0x86DD
_VLAN = (0x8100, 0x88A8, 0x9100)
_MAX_VLAN, _MAX_EXTENSIONS = 4, 8
_FAMILIES = (2, 10, 24, 28, 30)
_FRAGMENT, _AUTHENTICATION = 44, 51
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)
_MAX_ADDRESSES = 1 << 17
_TRAILER, _TRAILER_MAGIC = 32, 0x01072021
_PAYLOAD_AT = 28
"""Where a payload begins behind IPv4 without options, and UDP."""
Mask = NDArray[np.bool_]


class Batch(NamedTuple):
    """UDP datagrams and TCP segments side by side."""

    data: Bytes
    time_ns: Ints
    flow_a: NDArray[np.uint64]
    """Source and destination address, as numbers."""
    flow_b: NDArray[np.uint64]
    """IP version, protocol and both ports."""
    start: Ints
    """Where the payload begins in `data`."""
    size: Ints
    """How much of it was captured..."""
    full: Ints
    """...and how long it was."""
    wire: Ints
    """Bytes of the whole packet on the wire."""
    protocol: NDArray[np.uint8]
    heads: NDArray[np.uint8]
    """(n, HEAD) first bytes of each payload; beyond `size` they mean nothing."""

    def payload(self, index: int) -> bytes:
        """Return what one datagram carries, as far as it was captured."""
        start = int(self.start[index])
        return self.data[start : start + int(self.size[index])].tobytes()

    def part(self, which: NDArray[np.generic] | slice) -> "Batch":
        """Return some of them."""
        return Batch(
            self.data,
            self.time_ns[which],
            self.flow_a[which],
            self.flow_b[which],
            self.start[which],
            self.size[which],
            self.full[which],
            self.wire[which],
            self.protocol[which],
            self.heads[which],
        )


class _Network(NamedTuple):
    """IP packets side by side, before what they carry is looked at."""

    data: Bytes
    time_ns: Ints
    wire: Ints
    at: Ints
    """Where the IP header begins."""
    end: Ints
    """Where the captured bytes end."""

    def part(self, which: NDArray[np.generic]) -> "_Network":
        return _Network(self.data, *(column[which] for column in self[1:]))


def rows(data: Bytes, at: Ints, width: int) -> NDArray[np.uint8]:
    """Return (n, width) bytes from each place; places near the end read on into the guard."""
    places = np.ndarray((data.size - width + 1,), f"V{width}", data.data, 0, (1,))
    found: NDArray[np.uint8] = places[np.minimum(at, data.size - width)].view(np.uint8)
    return found.reshape(-1, width)


def harmless(text: str) -> str:
    """Return text from the network without what would act on a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def big(table: NDArray[np.uint8], at: int, width: int = 2) -> Ints:
    """Return a big-endian number in each row."""
    return table[:, at : at + width].view(f">u{width}")[:, 0].astype(np.int64)


class Decoder:
    """Reads records; what spans several of them (fragments, addresses) is remembered."""

    def __init__(self, head: int = HEAD) -> None:
        self.head = min(max(HEAD, head), GUARD - 64)
        self.packets = 0
        self.not_ip = 0
        self.other: dict[int, int] = {}
        """Packets of IP protocols other than UDP and TCP, by number."""
        self.damaged = 0
        self.unknown_links: dict[int, int] = {}
        self.fragments = Reassembly()
        self.apps: set[str] = set()
        """Apps that PCAPdroid names behind each packet."""
        self._addresses = Interner(_MAX_ADDRESSES)

    def decode(self, records: Records) -> Iterator[Batch]:
        """Yield the datagrams of `records`, in blocks, in the file's order."""
        self.packets += records.start.size
        for begin in range(0, records.start.size, BLOCK):
            block = slice(begin, begin + BLOCK)
            part = Records(records.data, *(array[block] for array in records[1:]))
            network = self._network(part)
            batch, pieces = self._transport(network)
            yield batch
            if pieces:
                whole = self._reassembled(pieces)
                if whole is not None:
                    yield self._transport(whole)[0]

    def _network(self, records: Records) -> _Network:
        """Find the IP headers."""
        at = np.full(records.start.size, -1, np.int64)
        end = records.start + records.captured
        one = records.linktype.size and bool((records.linktype == records.linktype[0]).all())
        links = records.linktype[:1] if one else distinct(records.linktype)
        for link in links.tolist():
            its = slice(None) if one else np.flatnonzero(records.linktype == link)
            if link not in LINKTYPES:
                seen = int((records.linktype == link).sum())
                self.unknown_links[link] = self.unknown_links.get(link, 0) + seen
                continue
            at[its] = _internet(records.data, records.start[its], end[its], link)
            if link == 1:
                self._note_apps(records.data, at[its], end[its])
        found = at >= 0
        network = _Network(records.data, records.time_ns, records.original, at, end)
        if found.all():
            return network
        which = np.flatnonzero(found)
        self.not_ip += at.size - which.size
        return network.part(which)

    def _note_apps(self, data: Bytes, at: Ints, end: Ints) -> None:
        """PCAPdroid can add a trailer that says which app a packet is of."""
        magic = column(data, ">u4")
        likely = (at >= 0) & (end - at >= 20 + _TRAILER)
        trailer = end[likely] - _TRAILER
        trailer = trailer[magic[trailer] == _TRAILER_MAGIC]
        if trailer.size and len(self.apps) < 256:
            for name in set(rows(data, trailer + 8, 20).view("S20").ravel().tolist()):
                self.apps.add(harmless(name.split(b"\0")[0].decode(errors="replace")))

    def _transport(self, network: _Network) -> tuple[Batch, list[tuple[int, Piece]]]:
        """Read the IP headers, and find what they carry."""
        heads = rows(network.data, network.at, _PAYLOAD_AT + self.head)
        at, end, protocol, fragment = _fourth(network, heads)
        version = heads[:, 0] >> 4
        six = np.flatnonzero(version == 6)
        if six.size:
            at[six], end[six], protocol[six], fragment[six] = _sixth(
                network.part(six), heads[six, :40]
            )
        pieces = [
            (int(network.time_ns[index]), piece)
            for index in np.flatnonzero(fragment).tolist()
            if (piece := _piece(network, index, int(at[index]), int(end[index])))
        ]
        sound = (at > 0) & (at + 8 <= end) & ~fragment
        ours = sound & ((protocol == UDP) | (protocol == TCP))
        if not ours.all():
            self._count_others(protocol, sound & ~ours, ~sound & ~fragment)
            keep = np.flatnonzero(ours)
            network, heads = network.part(keep), heads.take(keep, axis=0)
            at, end, protocol, version = at[keep], end[keep], protocol[keep], version[keep]
        addresses = self._addresses_of(heads, np.flatnonzero(version == 6))
        flow_b = (version.astype(np.int64) << 8 | protocol) << 32
        return self._batch(network, heads, (at, end, protocol), (addresses, flow_b)), pieces

    def _batch(
        self,
        network: _Network,
        heads: NDArray[np.uint8],
        found: tuple[Ints, Ints, Ints],
        flow: tuple[NDArray[np.uint64], Ints],
    ) -> Batch:
        """Read the UDP and TCP headers; `heads` begin at the IP headers, and are written to."""
        at, end, protocol = found
        moved = np.flatnonzero(at != network.at + 20)
        if moved.size:  # behind options or an IPv6 header
            heads[moved, 20:] = rows(network.data, at[moved], heads.shape[1] - 20)
        word = big(heads, 20, 8)
        payloads = heads[:, _PAYLOAD_AT:]
        start, full = at + 8, (word >> 16 & 0xFFFF) - 8
        udp = protocol == UDP
        # A UDP length of 0 means "what IP says", as in jumbograms and offloaded packets.
        unsaid = np.flatnonzero((full < 0) | ~udp)
        if unsaid.size:
            tcp_header = (heads[unsaid, 32] >> 4).astype(np.int64) * 4
            start[unsaid] = at[unsaid] + np.where(udp[unsaid], 8, tcp_header)
            full[unsaid] = end[unsaid] - start[unsaid]
            tcp = unsaid[~udp[unsaid]]
            payloads[tcp] = rows(network.data, start[tcp], self.head)
        captured = np.minimum(end, network.end) - start
        return Batch(
            network.data,
            network.time_ns,
            flow[0],
            (flow[1] | word >> 32 & 0xFFFF_FFFF).view(np.uint64),
            start,
            np.maximum(np.minimum(full, captured), 0),
            np.maximum(full, 0),
            network.wire,
            protocol.astype(np.uint8),
            payloads,
        )

    def _addresses_of(self, heads: NDArray[np.uint8], six: NDArray[np.intp]) -> NDArray[np.uint64]:
        """Return both addresses in 64 bits; those of IPv6 by their numbers here."""
        pairs = big(heads, 12, 8).view(np.uint64)
        if six.size:
            long = heads[six, :40]
            ends = [
                self._addresses.numbers(
                    big(long, at, 8).view(np.uint64), big(long, at + 8, 8).view(np.uint64)
                ).view(np.uint64)
                for at in (8, 24)
            ]
            pairs[six] = ends[0] << np.uint64(32) | ends[1]
        return pairs

    def address(self, number: int, version: int) -> str:
        """Return an address of a batch in its usual writing."""
        if version == 4:
            return str(IPv4Address(number))
        if number >= len(self._addresses):
            return "::"
        high, low = self._addresses.keys[number]
        return str(IPv6Address(high << 64 | low))

    def ends(self, flow_a: int, flow_b: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return source and destination of a flow: address and port of each."""
        version = flow_b >> 40
        source = self.address(flow_a >> 32, version), flow_b >> 16 & 0xFFFF
        return source, (self.address(flow_a & 0xFFFF_FFFF, version), flow_b & 0xFFFF)

    def _count_others(self, protocol: Ints, other: Mask, damaged: Mask) -> None:
        self.damaged += int(damaged.sum())
        if other.any():
            counts = np.bincount(protocol[other], minlength=1)
            for number in np.flatnonzero(counts).tolist():
                self.other[number] = self.other.get(number, 0) + int(counts[number])

    def _reassembled(self, pieces: list[tuple[int, Piece]]) -> _Network | None:
        """Return the packets that these pieces complete, in a buffer of their own."""
        found = [
            (time_ns, packet)
            for time_ns, piece in pieces
            if (packet := self.fragments.add(piece)) is not None
        ]
        if not found:
            return None
        sizes = np.array([len(packet) for _, packet in found], np.int64)
        ends = np.cumsum(sizes)
        joined = b"".join(packet for _, packet in found) + bytes(GUARD)
        times = np.array([time_ns for time_ns, _ in found], np.int64)
        return _Network(np.frombuffer(joined, np.uint8), times, sizes, ends - sizes, ends)


def datagrams(batches: Iterator[Batch], decoder: Decoder) -> Iterator[Datagram]:
    """Yield UDP datagrams one by one, for those who need each of them whole."""
    ends: dict[tuple[int, int], tuple[tuple[str, int], tuple[str, int]]] = {}
    for batch in batches:
        udp = np.flatnonzero((batch.protocol == UDP) & (batch.size == batch.full))
        for index in udp.tolist():
            key = int(batch.flow_a[index]), int(batch.flow_b[index])
            if key not in ends:
                ends[key] = decoder.ends(*key)
            yield Datagram(int(batch.time_ns[index]), *ends[key], batch.payload(index))


def _internet(data: Bytes, start: Ints, end: Ints, link: int) -> Ints:
    """Return where IP begins behind a link's header; -1 where it does not."""
    at, four, six = _announced(data, start, link)
    version = data[np.minimum(at, data.size - 1)] >> 4
    found = four & (version == 4) & (at + 20 <= end)
    found |= six & (version == 6) & (at + 40 <= end)
    return at if found.all() else np.where(found, at, -1)


def _announced(data: Bytes, start: Ints, link: int) -> tuple[Ints, Mask, Mask]:
    """Return where a link's header ends, and whether it lets IPv4 and IPv6 follow."""
    if link in (12, 14, 101, 228, 229):
        either = np.ones(1, np.bool_)
        return start, either, either
    if link in (0, 108):
        family = big(rows(data, start, 4), 0, 4)
        known = np.isin(family, _FAMILIES) | np.isin(family >> 24, _FAMILIES)
        return start + 4, known, known
    type_at, header = {1: (12, 14), 113: (14, 16), 276: (0, 20)}[link]
    at = start + header
    kind = big(rows(data, start + type_at, 2), 0)
    for _ in range(_MAX_VLAN):
        tagged = (kind == _VLAN[0]) | (kind == _VLAN[1]) | (kind == _VLAN[2])
        if not tagged.any():
            break
        kind = np.where(tagged, big(rows(data, at + 2, 2), 0), kind)
        at = np.where(tagged, at + 4, at)
    return at, kind == _IPV4, kind == _IPV6


def _fourth(network: _Network, heads: NDArray[np.uint8]) -> tuple[Ints, Ints, Ints, Mask]:
    """Return where IPv4 payloads begin and end, their protocols, and which are fragments."""
    word = big(heads, 0, 8)  # version and header length, service, length, number, fragment
    header = (word >> 56 & 15) * 4
    total = word >> 32 & 0xFFFF
    unsaid = np.flatnonzero(total == 0)  # as network cards write that cut packets themselves
    total[unsaid] = network.end[unsaid] - network.at[unsaid]
    at = network.at + header
    at[(header < 20) | (total < header)] = -1
    return at, network.at + total, heads[:, 9].astype(np.int64), (word & 0x3FFF) != 0


def _sixth(network: _Network, heads: NDArray[np.uint8]) -> tuple[Ints, Ints, Ints, Mask]:
    """The same for IPv6, behind its extension headers."""
    length = big(heads, 4)
    at = network.at + 40
    end = np.where(length == 0, network.end, at + length)
    kind = heads[:, 6].astype(np.int64)
    fragment = np.zeros(at.size, np.bool_)
    for _ in range(_MAX_EXTENSIONS):
        more = np.isin(kind, _EXTENSIONS) & ~fragment & (at + 8 <= np.minimum(end, network.end))
        which = np.flatnonzero(more)
        if not which.size:
            break
        table = rows(network.data, at[which], 8)
        fragmented = kind[which] == _FRAGMENT
        fragment[which] = fragmented & ((big(table, 2) & 0xFFF9) != 0)
        steps = np.where(kind[which] == _AUTHENTICATION, 4, 8)
        extra = np.where(kind[which] == _AUTHENTICATION, 2, 1)
        size = np.where(fragmented, 8, (table[:, 1].astype(np.int64) + extra) * steps)
        kind[which] = table[:, 0]
        at[which] += size
    return at, end, kind, fragment


def _piece(network: _Network, index: int, at: int, end: int) -> Piece | None:
    """Return a fragment as a piece; None where the capture cut it off or it makes no sense."""
    start = int(network.at[index])
    if at < 0 or end > int(network.end[index]) or end < at:
        return None
    head = network.data[start:at].tobytes()
    body = network.data[at:end].tobytes()
    if head[0] >> 4 == 4:
        field = int.from_bytes(head[6:8])
        key: tuple[object, ...] = (4, head[9], head[4:6], head[12:20])
        return Piece(key, (field & 0x1FFF) * 8, bool(field & 0x2000), head, body)
    extension = head[-8:]
    field = int.from_bytes(extension[2:4])
    key = (6, extension[4:8], head[8:40])
    fixed = head[:6] + extension[:1] + head[7:40]
    return Piece(key, field & 0xFFF8, bool(field & 1), fixed, body)
