"""From packets to datagrams: link, IP and UDP or TCP headers, for thousands of packets at once.

Headers are copied into rows of a table; then whole columns are compared and added. Only fragments
are taken out one by one; the packets they become are read in the same way again.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.read.datagram import Datagram
from rote.capture.read.flow_ids import Interner, among, distinct
from rote.capture.read.fragments import Piece, Reassembly
from rote.capture.read.reader import Records
from rote.capture.read.record_scan import GUARD, Bytes, Ints, column

TCP, UDP = 6, 17
HEAD = 40
"""How many bytes of each payload are copied into rows by default."""
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
UNREAD_LINKS = {
    105: "IEEE 802.11, Wi-Fi as it is in the air",
    119: "IEEE 802.11 with a Prism header, Wi-Fi as it is in the air",
    127: "IEEE 802.11 with radiotap, Wi-Fi as it is in the air",
    163: "IEEE 802.11 with an AVS header, Wi-Fi as it is in the air",
    187: "Bluetooth HCI",
    189: "USB",
    192: "PPI, mostly Wi-Fi as it is in the air",
    195: "IEEE 802.15.4",
    201: "Bluetooth HCI",
    220: "USB",
    227: "CAN",
    249: "USB",
    251: "Bluetooth Low Energy",
    256: "Bluetooth Low Energy",
}
"""Links that are counted and not read."""
ETHERTYPES = {
    0x0806: "ARP",
    0x22F0: "AVTP",
    0x8035: "RARP",
    0x8863: "PPPoE discovery",
    0x8899: "Realtek",
    0x888E: "EAPOL",
    0x88CC: "LLDP",
    0x88E1: "HomePlug",
    0x88F7: "PTP",
    0x8912: "HomePlug",
    0x893A: "IEEE 1905",
    0x9000: "Ethernet loopback",
}
PROTOCOLS = {
    1: "ICMP",
    2: "IGMP",
    4: "IP in IP",
    41: "IPv6 in IP",
    47: "GRE",
    50: "ESP",
    51: "AH",
    58: "ICMPv6",
    59: "no next header",
    89: "OSPF",
    103: "PIM",
    112: "VRRP",
    132: "SCTP",
}
BLOCK = 32_768
"""How many packets are processed together: few enough to stay in the processor's cache."""

_IPV4, _IPV6 = 0x0800, 0x86DD
_PPPOE, _MPLS, _PPP_IPV4, _PPP_IPV6, _BRIDGED = 0x8864, (0x8847, 0x8848), 0x21, 0x57, 0x6558
_MAX_LABELS, _MAX_TUNNELS, _MAX_SAMPLES = 8, 4, 512
_IP_IN_IP, _IPV6_IN_IP, _GRE, _VXLAN_PORT = 4, 41, 47, 4789
_ICMP, _ICMP6 = 1, 58
_VLAN = (0x8100, 0x88A8, 0x9100)
_MAX_VLAN, _MAX_EXTENSIONS = 4, 8
_FAMILIES = (2, 10, 24, 28, 30)
_FRAGMENT, _AUTHENTICATION = 44, 51
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)
_MAX_ADDRESSES = 1 << 17
_TRAILER, _TRAILER_MAGIC = 32, 0x01072021
_PAYLOAD_AT = 28
"""Where a payload begins after UDP and IPv4 without options."""
Mask = NDArray[np.bool_]


class DatagramBatch(NamedTuple):
    """UDP datagrams and TCP segments in columns."""

    data: Bytes
    time_ns: Ints
    flow_a: NDArray[np.uint64]
    """Source and destination address, as numbers of 32 bits each."""
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
    """(n, HEAD) first bytes of each payload; beyond `size` they have no meaning."""

    def payload(self, index: int) -> bytes:
        """Return the payload of one datagram, as far as it was captured."""
        start = int(self.start[index])
        return self.data[start : start + int(self.size[index])].tobytes()

    def part(self, which: NDArray[np.generic] | slice) -> "DatagramBatch":
        """Return the selected datagrams."""
        return DatagramBatch(
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


class _IpPackets(NamedTuple):
    """IP packets in columns, before their content is read."""

    data: Bytes
    time_ns: Ints
    wire: Ints
    at: Ints
    """Where the IP header begins."""
    end: Ints
    """Where the captured bytes end."""

    def part(self, which: NDArray[np.generic]) -> "_IpPackets":
        return _IpPackets(self.data, *(column[which] for column in self[1:]))


def rows(data: Bytes, at: Ints, width: int) -> NDArray[np.uint8]:
    """Return (n, width) bytes from each place; places near the end read on into the guard."""
    # A view in which element i is the `width` bytes from place i, one byte apart: indexing it
    # copies all rows in one call, which is several times quicker than a two-dimensional index.
    windows = np.ndarray((data.size - width + 1,), f"V{width}", data.data, 0, (1,))
    found: NDArray[np.uint8] = windows[np.minimum(at, data.size - width)].view(np.uint8)
    return found.reshape(-1, width)


def harmless(text: str) -> str:
    """Return text from the network without characters that would control a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def big(table: NDArray[np.uint8], at: int, width: int = 2) -> Ints:
    """Return a big-endian number of each row."""
    return table[:, at : at + width].view(f">u{width}")[:, 0].astype(np.int64)


class PacketDecoder:
    """Decodes records; fragments and addresses are remembered from one batch to the next."""

    def __init__(self, head: int = HEAD) -> None:
        self.head = min(max(HEAD, head), GUARD - 64)
        self.packets = 0
        self.not_ip = 0
        self.other: dict[int, int] = {}
        """Packets of IP protocols other than UDP and TCP, by number."""
        self.damaged = 0
        self.pieces = 0
        """Packets that are a fragment of a larger one."""
        self.unknown_links: dict[int, int] = {}
        self.ethertypes: dict[int, int] = {}
        """Packets that are not IP, by their ethertype; below 1536 it is LLC."""
        self.tunnels: dict[str, int] = {}
        """Packets that were read inside another protocol, by its name."""
        self.control: list[tuple[int, bytes]] = []
        """The first ICMP messages: IP version, and the message."""
        self.control_types: dict[tuple[int, int, int], int] = {}
        """How many ICMP messages there are by IP version, type and code."""
        self.fragments = Reassembly()
        self.apps: set[str] = set()
        """Apps that PCAPdroid names after each packet."""
        self._addresses = Interner(_MAX_ADDRESSES)

    def decode(self, records: Records) -> Iterator[DatagramBatch]:
        """Yield the datagrams of `records`, in blocks, in the file's order."""
        self.packets += records.start.size
        for begin in range(0, records.start.size, BLOCK):
            block = slice(begin, begin + BLOCK)
            part = Records(records.data, *(array[block] for array in records[1:]))
            yield from self._decode_datagrams(self._find_ip_packets(part))

    def _decode_datagrams(self, network: _IpPackets, depth: int = 0) -> Iterator[DatagramBatch]:
        """Yield the datagrams of IP packets, then those of packets inside them."""
        batch, pieces, inside = self._read_ip_headers(network, unpack=depth < _MAX_TUNNELS)
        yield batch
        for inner in inside:
            yield from self._decode_datagrams(inner, depth + 1)
        if pieces:
            whole = self._reassemble(pieces)
            if whole is not None:
                yield from self._decode_datagrams(whole, depth + 1)

    def _find_ip_packets(self, records: Records) -> _IpPackets:
        """Find the IP headers."""
        at = np.full(records.start.size, -1, np.int64)
        end = records.start + records.captured
        # Nearly all captures have one link type; then a slice avoids copies.
        one = records.linktype.size and bool((records.linktype == records.linktype[0]).all())
        links = records.linktype[:1] if one else distinct(records.linktype)
        for link in links.tolist():
            its = slice(None) if one else np.flatnonzero(records.linktype == link)
            if link not in LINKTYPES:
                seen = int((records.linktype == link).sum())
                self.unknown_links[link] = self.unknown_links.get(link, 0) + seen
                continue
            at[its] = self._find_ip(records.data, records.start[its], end[its], link)
            if link == 1:
                self._note_apps(records.data, at[its], end[its])
        found = at >= 0
        network = _IpPackets(records.data, records.time_ns, records.original, at, end)
        if found.all():
            return network
        which = np.flatnonzero(found)
        self.not_ip += at.size - which.size
        return network.part(which)

    def _note_apps(self, data: Bytes, at: Ints, end: Ints) -> None:
        """Note the apps in PCAPdroid's trailers, which name the app of each packet."""
        magic = column(data, ">u4")
        likely = (at >= 0) & (end - at >= 20 + _TRAILER)
        trailer = end[likely] - _TRAILER
        trailer = trailer[magic[trailer] == _TRAILER_MAGIC]
        if trailer.size and len(self.apps) < 256:
            for name in set(rows(data, trailer + 8, 20).view("S20").ravel().tolist()):
                self.apps.add(harmless(name.split(b"\0")[0].decode(errors="replace")))

    def _find_ip(self, data: Bytes, start: Ints, end: Ints, link: int) -> Ints:
        """Return where IP begins after a link's header; -1 if there is no IP."""
        at, four, six, kind = _skip_link_header(data, start, link)
        version = data[np.minimum(at, data.size - 1)] >> 4
        found = four & (version == 4) & (at + 20 <= end)
        found |= six & (version == 6) & (at + 40 <= end)
        if found.all():
            return at
        missed = np.flatnonzero(~found)
        if kind.size == at.size:
            at[missed] = self._find_wrapped_ip(data, at[missed], end[missed], kind[missed])
        else:
            self._count_ethertypes(np.zeros(missed.size, np.int64))
            at = np.where(found, at, -1)
        return at

    def _find_wrapped_ip(self, data: Bytes, at: Ints, end: Ints, kind: Ints) -> Ints:
        """Look for IP behind LLC/SNAP, PPPoE and MPLS; -1 if there is none."""
        outer = kind
        at, kind = _skip_wrapping(data, at, kind)
        version = data[np.minimum(at, data.size - 1)] >> 4
        found = (kind == _IPV4) & (version == 4) & (at + 20 <= end)
        found |= (kind == _IPV6) & (version == 6) & (at + 40 <= end)
        for value in distinct(outer[found]).tolist() if found.any() else []:
            name = "MPLS" if value in _MPLS else "PPPoE" if value == _PPPOE else "LLC/SNAP"
            count = int((found & (outer == value)).sum())
            self.tunnels[name] = self.tunnels.get(name, 0) + count
        self._count_ethertypes(kind[~found])
        return np.where(found, at, -1)

    def _count_ethertypes(self, kinds: Ints) -> None:
        if kinds.size:
            counts = np.bincount(kinds)
            for value in np.flatnonzero(counts).tolist():
                self.ethertypes[value] = self.ethertypes.get(value, 0) + int(counts[value])

    def _read_ip_headers(
        self, network: _IpPackets, *, unpack: bool = True
    ) -> tuple[DatagramBatch, list[tuple[int, Piece]], list[_IpPackets]]:
        """Read the IP headers, and find what they carry: datagrams, fragments, IP again."""
        # One copy per packet holds the IP header, the UDP header and the first bytes of the
        # payload, as long as IPv4 has no options. `_batch` copies again for all others.
        heads = rows(network.data, network.at, _PAYLOAD_AT + self.head)
        at, end, protocol, fragment = _read_ipv4(network, heads)
        version = heads[:, 0] >> 4
        six = np.flatnonzero(version == 6)
        if six.size:
            at[six], end[six], protocol[six], fragment[six] = _read_ipv6(
                network.part(six), heads[six, :40]
            )
        pieces = [
            (int(network.time_ns[index]), piece)
            for index in np.flatnonzero(fragment).tolist()
            if (piece := _make_piece(network, index, int(at[index]), int(end[index])))
        ]
        sound = (at > 0) & (at + 8 <= end) & ~fragment
        ours = sound & ((protocol == UDP) | (protocol == TCP))
        inside: list[_IpPackets] = []
        if not ours.all():
            self.pieces += int(fragment.sum())
            other = sound & ~ours
            if unpack and other.any():
                other = self._unpack_tunnels(network, (at, end, protocol), other, inside)
            self._count_others(protocol, other, ~sound & ~fragment)
            self._note_control(network, (at, end, protocol), other)
            keep = np.flatnonzero(ours)
            network, heads = network.part(keep), heads.take(keep, axis=0)
            at, end, protocol, version = at[keep], end[keep], protocol[keep], version[keep]
        addresses = self._addresses_of(heads, np.flatnonzero(version == 6))
        # Layout of `flow_b`: version in bits 40 to 47, protocol in 32 to 39, then both ports, which
        # `_batch` adds.
        flow_b = (version.astype(np.int64) << 8 | protocol) << 32
        batch = self._read_transport_headers(
            network, heads, (at, end, protocol), (addresses, flow_b)
        )
        if unpack:
            batch = self._without_vxlan(batch, inside)
        return batch, pieces, inside

    def _unpack_tunnels(
        self,
        network: _IpPackets,
        found: tuple[Ints, Ints, Ints],
        other: Mask,
        inside: list[_IpPackets],
    ) -> Mask:
        """Take out IP in IP and GRE; return which packets are left."""
        at, end, protocol = found
        likely = other & among(protocol, (_IP_IN_IP, _IPV6_IN_IP, _GRE))
        which = np.flatnonzero(likely)
        if not which.size:
            return other
        inner, stop = at[which].copy(), np.minimum(end, network.end)[which]
        kind = np.where(protocol[which] == _IPV6_IN_IP, _IPV6, _IPV4)
        gre = np.flatnonzero(protocol[which] == _GRE)
        if gre.size:
            inner[gre], kind[gre] = _behind_gre(network.data, inner[gre])
        bridged = np.flatnonzero(kind == _BRIDGED)
        if bridged.size:
            inner[bridged], _, _, kind[bridged] = _skip_link_header(network.data, inner[bridged], 1)
        version = network.data[np.minimum(inner, network.data.size - 1)] >> 4
        good = (kind == _IPV4) & (version == 4) & (inner + 20 <= stop)
        good |= (kind == _IPV6) & (version == 6) & (inner + 40 <= stop)
        for number in (_IP_IN_IP, _IPV6_IN_IP, _GRE):
            count = int((good & (protocol[which] == number)).sum())
            if count:
                name = PROTOCOLS[number]
                self.tunnels[name] = self.tunnels.get(name, 0) + count
        taken = which[good]
        if taken.size:
            outer = network.part(taken)
            inside.append(outer._replace(at=inner[good], end=stop[good]))
            other = other.copy()
            other[taken] = False
        return other

    def _without_vxlan(self, batch: DatagramBatch, inside: list[_IpPackets]) -> DatagramBatch:
        """Take out Ethernet frames that are carried in UDP."""
        which = np.flatnonzero(batch.flow_b.astype(np.uint16) == _VXLAN_PORT)  # the last 16 bits
        which = which[(batch.protocol[which] == UDP) & (batch.size[which] >= 22)]
        if not which.size:
            return batch
        header = big(batch.heads[which], 0, 8)
        # The flag for a valid network number, and zeros in the reserved bytes.
        which = which[(header & 0x7FFFFFFF_000000FF) == 0x08000000_00000000]
        start = batch.start[which] + 8
        stop = batch.start[which] + batch.size[which]
        at, four, six, _ = _skip_link_header(batch.data, start, 1)
        version = batch.data[np.minimum(at, batch.data.size - 1)] >> 4
        good = (four & (version == 4) & (at + 20 <= stop)) | (
            six & (version == 6) & (at + 40 <= stop)
        )
        taken = which[good]
        if not taken.size:
            return batch
        self.tunnels["VXLAN"] = self.tunnels.get("VXLAN", 0) + int(taken.size)
        inside.append(
            _IpPackets(batch.data, batch.time_ns[taken], batch.wire[taken], at[good], stop[good])
        )
        keep = np.ones(batch.size.size, np.bool_)
        keep[taken] = False
        return batch.part(np.flatnonzero(keep))

    def _note_control(
        self, network: _IpPackets, found: tuple[Ints, Ints, Ints], other: Mask
    ) -> None:
        """Count ICMP messages, and keep the first."""
        at, end, protocol = found
        which = np.flatnonzero(other & among(protocol, (_ICMP, _ICMP6)))
        if not which.size:
            return
        table = rows(network.data, at[which], 2).astype(np.int64)
        six = (protocol[which] == _ICMP6).astype(np.int64)
        # Version, type and code in one number, so that one count serves all.
        counts = np.bincount(six << 16 | table[:, 0] << 8 | table[:, 1])
        for value in np.flatnonzero(counts).tolist():
            key = 6 if value >> 16 else 4, value >> 8 & 0xFF, value & 0xFF
            self.control_types[key] = self.control_types.get(key, 0) + int(counts[value])
        for index in which[: _MAX_SAMPLES - len(self.control)].tolist():
            stop = min(int(end[index]), int(network.end[index]))
            version = 6 if protocol[index] == _ICMP6 else 4
            self.control.append((version, network.data[int(at[index]) : stop].tobytes()))

    def _read_transport_headers(
        self,
        network: _IpPackets,
        heads: NDArray[np.uint8],
        found: tuple[Ints, Ints, Ints],
        flow: tuple[NDArray[np.uint64], Ints],
    ) -> DatagramBatch:
        """Read the UDP and TCP headers. `heads` begin at the IP headers, and are overwritten."""
        at, end, protocol = found
        moved = np.flatnonzero(at != network.at + 20)
        if moved.size:  # after options or an IPv6 header
            heads[moved, 20:] = rows(network.data, at[moved], heads.shape[1] - 20)
        # The 8 bytes of a UDP header: source port, destination port, length, checksum. TCP has the
        # same ports.
        word = big(heads, 20, 8)
        payloads = heads[:, _PAYLOAD_AT:]
        start, full = at + 8, (word >> 16 & 0xFFFF) - 8
        udp = protocol == UDP
        # A UDP length of 0 means the length in IP, as in jumbograms and offloaded packets.
        unsaid = np.flatnonzero((full < 0) | ~udp)
        if unsaid.size:
            tcp_header = (heads[unsaid, 32] >> 4).astype(np.int64) * 4
            start[unsaid] = at[unsaid] + np.where(udp[unsaid], 8, tcp_header)
            full[unsaid] = end[unsaid] - start[unsaid]
            tcp = unsaid[~udp[unsaid]]
            payloads[tcp] = rows(network.data, start[tcp], self.head)
        captured = np.minimum(end, network.end) - start
        return DatagramBatch(
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
        """Return both addresses in 64 bits; an IPv6 address is replaced by its number here."""
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
        """Return an address of a batch as text."""
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

    def _reassemble(self, pieces: list[tuple[int, Piece]]) -> _IpPackets | None:
        """Return the packets that these pieces complete, in a new buffer."""
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
        return _IpPackets(np.frombuffer(joined, np.uint8), times, sizes, ends - sizes, ends)


def datagrams(batches: Iterator[DatagramBatch], decoder: PacketDecoder) -> Iterator[Datagram]:
    """Yield complete UDP datagrams one by one."""
    ends: dict[tuple[int, int], tuple[tuple[str, int], tuple[str, int]]] = {}
    for batch in batches:
        udp = np.flatnonzero((batch.protocol == UDP) & (batch.size == batch.full))
        for index in udp.tolist():
            key = int(batch.flow_a[index]), int(batch.flow_b[index])
            if key not in ends:
                ends[key] = decoder.ends(*key)
            yield Datagram(int(batch.time_ns[index]), *ends[key], batch.payload(index))


def _skip_link_header(data: Bytes, start: Ints, link: int) -> tuple[Ints, Mask, Mask, Ints]:
    """Return where a link's header ends, whether IPv4 and IPv6 may follow, and the ethertype."""
    if link in (12, 14, 101, 228, 229):
        either = np.ones(1, np.bool_)
        return start, either, either, np.zeros(0, np.int64)
    if link in (0, 108):
        # BSD loopback: the address family in the byte order of the computer that captured.
        family = big(rows(data, start, 4), 0, 4)
        known = np.isin(family, _FAMILIES) | np.isin(family >> 24, _FAMILIES)
        return start + 4, known, known, np.zeros(0, np.int64)
    type_at, header = {1: (12, 14), 113: (14, 16), 276: (0, 20)}[link]
    at = start + header
    kind = big(rows(data, start + type_at, 2), 0)
    for _ in range(_MAX_VLAN):
        tagged = (kind == _VLAN[0]) | (kind == _VLAN[1]) | (kind == _VLAN[2])
        if not tagged.any():
            break
        kind = np.where(tagged, big(rows(data, at + 2, 2), 0), kind)
        at = np.where(tagged, at + 4, at)
    return at, kind == _IPV4, kind == _IPV6, kind


def _skip_wrapping(data: Bytes, at: Ints, kind: Ints) -> tuple[Ints, Ints]:
    """Skip LLC/SNAP, PPPoE and MPLS; return where the content begins, and its ethertype."""
    at, kind = at.copy(), kind.copy()
    snap = np.flatnonzero(kind < 0x0600)
    if snap.size:
        table = rows(data, at[snap], 8)
        is_snap = big(table, 0, 4) >> 8 == 0xAAAA03
        is_snap &= (table[:, 3] == 0) & (table[:, 4] == 0) & (table[:, 5] == 0)
        kind[snap] = np.where(is_snap, big(table, 6), kind[snap])
        at[snap] += np.where(is_snap, 8, 0)
    session = np.flatnonzero(kind == _PPPOE)
    if session.size:
        protocol = big(rows(data, at[session], 8), 6)
        kind[session[protocol == _PPP_IPV4]] = _IPV4
        kind[session[protocol == _PPP_IPV6]] = _IPV6
        at[session] += 8
    labelled = np.flatnonzero(among(kind, _MPLS))
    for _ in range(_MAX_LABELS):
        if not labelled.size:
            break
        last = rows(data, at[labelled], 4)[:, 2] & 1 == 1
        at[labelled] += 4
        ended = labelled[last]
        version = data[np.minimum(at[ended], data.size - 1)] >> 4
        kind[ended[version == 4]] = _IPV4
        kind[ended[version == 6]] = _IPV6
        labelled = labelled[~last]
    return at, kind


def _behind_gre(data: Bytes, at: Ints) -> tuple[Ints, Ints]:
    """Return where the content of GRE begins, and its ethertype; 0 if it cannot be read."""
    table = rows(data, at, 4)
    flags, kind = big(table, 0), big(table, 2)
    # Checksum, key and sequence number are present if their flags say so, 4 bytes each.
    size = 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
    readable = flags & 0x4F07 == 0  # no routing, no recursion, version 0
    return at + size, np.where(readable, kind, 0)


def _read_ipv4(network: _IpPackets, heads: NDArray[np.uint8]) -> tuple[Ints, Ints, Ints, Mask]:
    """Return where IPv4 payloads begin and end, their protocols, and which are fragments."""
    word = big(heads, 0, 8)  # version and header length, service, length, number, fragment
    header = (word >> 56 & 15) * 4
    total = word >> 32 & 0xFFFF
    unsaid = np.flatnonzero(total == 0)  # as network cards write that cut packets themselves
    total[unsaid] = network.end[unsaid] - network.at[unsaid]
    at = network.at + header
    # -1 marks a damaged header. 0x3FFF are the fragment offset and the flag "more fragments".
    at[(header < 20) | (total < header)] = -1
    return at, network.at + total, heads[:, 9].astype(np.int64), (word & 0x3FFF) != 0


def _read_ipv6(network: _IpPackets, heads: NDArray[np.uint8]) -> tuple[Ints, Ints, Ints, Mask]:
    """Return the same for IPv6, after its extension headers."""
    length = big(heads, 4)
    at = network.at + 40
    end = np.where(length == 0, network.end, at + length)
    kind = heads[:, 6].astype(np.int64)
    fragment = np.zeros(at.size, np.bool_)
    # One extension header per turn, for all packets at once.
    for _ in range(_MAX_EXTENSIONS):
        more = np.isin(kind, _EXTENSIONS) & ~fragment & (at + 8 <= np.minimum(end, network.end))
        which = np.flatnonzero(more)
        if not which.size:
            break
        table = rows(network.data, at[which], 8)
        fragmented = kind[which] == _FRAGMENT
        fragment[which] = fragmented & ((big(table, 2) & 0xFFF9) != 0)
        # Lengths count units of 8 bytes without the first; the authentication header counts units
        # of 4 bytes without the first two.
        steps = np.where(kind[which] == _AUTHENTICATION, 4, 8)
        extra = np.where(kind[which] == _AUTHENTICATION, 2, 1)
        size = np.where(fragmented, 8, (table[:, 1].astype(np.int64) + extra) * steps)
        kind[which] = table[:, 0]
        at[which] += size
    return at, end, kind, fragment


def _make_piece(network: _IpPackets, index: int, at: int, end: int) -> Piece | None:
    """Return a fragment as a piece; None if the capture cut it off or it is inconsistent."""
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
