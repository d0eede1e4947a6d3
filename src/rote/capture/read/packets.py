"""From packets to datagrams: link, IP and UDP or TCP headers, for thousands of packets at once.

Headers are copied into rows of a table; then whole columns are compared and added. Only fragments
are taken out one by one; the packets they become are read in the same way again.
"""

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.model import Datagram
from rote.capture.read.flow_ids import Interner, distinct, is_one_of
from rote.capture.read.fragments import Piece, Reassembly
from rote.capture.read.reader import Records
from rote.capture.read.record_scan import GUARD, Bytes, Ints, column

TCP, UDP = 6, 17
HEAD = 40
"""How many bytes of each payload are copied into rows by default."""
LINKTYPES = {
    0: "BSD loopback",
    1: "Ethernet",
    9: "PPP",
    12: "raw IP",
    14: "raw IP",
    50: "PPP in HDLC framing",
    101: "raw IP",
    105: "IEEE 802.11",
    108: "OpenBSD loopback",
    113: "Linux cooked",
    127: "IEEE 802.11 with radiotap",
    228: "raw IPv4",
    229: "raw IPv6",
    276: "Linux cooked v2",
}
UNREAD_LINKS = {
    119: "IEEE 802.11 with a Prism header, Wi-Fi as it is in the air",
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
_MIN_ETHERTYPE = 0x0600
"""A smaller number in place of the ethertype is a length, and an LLC header follows."""
_SNAP = 0xAAAA03
"""The LLC header before a SNAP header: 3 bytes of organisation, 2 bytes of ethertype."""
_ETHERNET, _RADIOTAP = 1, 127
_PPP_LINKS, _WIFI_LINKS = (9, 50), (105, _RADIOTAP)
_RAW_IP_LINKS, _LOOPBACK_LINKS = (12, 14, 101, 228, 229), (0, 108)
_ETHERTYPE_LINKS = {_ETHERNET: (12, 14), 113: (14, 16), 276: (0, 20)}
"""Links with an ethertype: its offset in the header, and the size of the header."""
_MAX_PRESENT_WORDS, _RADIOTAP_HEAD = 5, 40
"""Words of radiotap that state its fields, and how many bytes they, a time and the flags take."""
_MAX_LABELS, _MAX_TUNNELS, _MAX_SAMPLES = 8, 4, 512
_IP_IN_IP, _IPV6_IN_IP, _GRE, _VXLAN_PORT = 4, 41, 47, 4789
_ICMP, _ICMP6 = 1, 58
_VLAN = (0x8100, 0x88A8, 0x9100)
_MAX_VLAN, _MAX_EXTENSIONS = 4, 8
_ADDRESS_FAMILIES = (2, 10, 24, 28, 30)
"""The numbers of IPv4 and IPv6 on Linux, macOS and the BSDs."""
_FRAGMENT, _AUTHENTICATION = 44, 51
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)
_MAX_ADDRESSES = 1 << 17
_MAX_APPS = 256
_TRAILER_BYTES, _TRAILER_MAGIC = 32, 0x01072021
"""PCAPdroid's trailer: magic number (4 bytes), user id (4), app name (20), checksum (4)."""
_PAYLOAD_OFFSET = 28
"""Offset of a UDP payload after an IPv4 header without options."""
Mask = NDArray[np.bool_]


class DatagramBatch(NamedTuple):
    """UDP datagrams and TCP segments in columns."""

    data: Bytes
    """The packets of the whole batch, one after the other."""
    time_ns: Ints
    flow_addresses: NDArray[np.uint64]
    """Source and destination address, as numbers of 32 bits each."""
    flow_ports: NDArray[np.uint64]
    """IP version, protocol and both ports."""
    start: Ints
    """Where the payload begins in `data`."""
    size: Ints
    """Captured bytes of the payload."""
    full: Ints
    """Bytes of the payload on the wire."""
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
        return DatagramBatch._make((self.data, *(values[which] for values in self[1:])))


class _IpPackets(NamedTuple):
    """IP packets in columns, before their headers are read."""

    data: Bytes
    time_ns: Ints
    wire: Ints
    at: Ints
    """Where the IP header begins."""
    end: Ints
    """Where the captured bytes end."""

    def part(self, which: NDArray[np.generic]) -> "_IpPackets":
        """Return the selected packets."""
        return _IpPackets(self.data, *(column[which] for column in self[1:]))


class _IpPayloads(NamedTuple):
    """The payloads of IP packets in columns, as their headers state them."""

    begin: Ints
    """-1 if the header is damaged."""
    end: Ints
    """May be after the captured bytes."""
    protocol: Ints
    is_fragment: Mask

    def part(self, which: NDArray[np.generic]) -> "_IpPayloads":
        return _IpPayloads._make(values[which] for values in self)


def copy_rows(data: Bytes, offsets: Ints, width: int) -> NDArray[np.uint8]:
    """Return the `width` bytes from each offset as (n, width); they may reach into the guard."""
    # In this view element i is the `width` bytes from offset i. Indexing it copies all rows in
    # one call, which is several times as fast as a two-dimensional index.
    windows = np.ndarray((data.size - width + 1,), f"V{width}", data.data, 0, (1,))
    rows: NDArray[np.uint8] = windows[np.minimum(offsets, data.size - width)].view(np.uint8)
    return rows.reshape(-1, width)


def replace_unprintable(text: str) -> str:
    """Replace unprintable characters by "?": text from the network could control a terminal."""
    if text.isprintable():
        return text
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def big_endian(table: NDArray[np.uint8], start: int, width: int = 2) -> Ints:
    """Return the big-endian number at byte `start` of each row, of 2, 4 or 8 bytes."""
    return table[:, start : start + width].view(f">u{width}")[:, 0].astype(np.int64)


class PacketDecoder:
    """Decodes the packets of a capture to datagrams, and counts those that are none.

    Incomplete packets and IPv6 addresses are kept from one batch to the next.
    """

    def __init__(self, head: int = HEAD) -> None:
        # A row of headers and payload may begin at the last byte, so it must fit into the guard.
        self.head = min(max(HEAD, head), GUARD - 64)
        """How many first bytes of each payload are copied."""
        self.packets = 0
        self.encrypted_wifi = 0
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
        """Yield the datagrams of IP packets, then those of packets in tunnels and in fragments.

        `depth` is the number of tunnels around the packets.
        """
        batch, pieces, tunnelled = self._read_ip_headers(network, unpack=depth < _MAX_TUNNELS)
        yield batch
        for inner in tunnelled:
            yield from self._decode_datagrams(inner, depth + 1)
        if pieces:
            whole = self._reassemble(pieces)
            if whole is not None:
                yield from self._decode_datagrams(whole, depth + 1)

    def _find_ip_packets(self, records: Records) -> _IpPackets:
        """Locate each packet's IP header; packets without one are counted and left out."""
        offset = np.full(records.start.size, -1, np.int64)
        end = records.start + records.captured
        # Nearly all captures have one link type; then a slice avoids copies.
        is_single = records.linktype.size and bool((records.linktype == records.linktype[0]).all())
        links = records.linktype[:1] if is_single else distinct(records.linktype)
        for link in links.tolist():
            selected = slice(None) if is_single else np.flatnonzero(records.linktype == link)
            if link not in LINKTYPES:
                count = int((records.linktype == link).sum())
                self.unknown_links[link] = self.unknown_links.get(link, 0) + count
                continue
            offset[selected] = self._find_ip(
                records.data, records.start[selected], end[selected], link
            )
            if link == _ETHERNET:
                self._collect_app_names(records.data, offset[selected], end[selected])
        found = offset >= 0
        network = _IpPackets(records.data, records.time_ns, records.original, offset, end)
        if found.all():
            return network
        which = np.flatnonzero(found)
        self.not_ip += offset.size - which.size
        return network.part(which)

    def _collect_app_names(self, data: Bytes, offset: Ints, end: Ints) -> None:
        """Collect the app names that PCAPdroid writes in a trailer after each packet."""
        uint32_at = column(data, ">u4")
        has_room = (offset >= 0) & (end - offset >= 20 + _TRAILER_BYTES)  # 20: an IPv4 header
        trailer = end[has_room] - _TRAILER_BYTES
        trailer = trailer[uint32_at[trailer] == _TRAILER_MAGIC]
        if trailer.size and len(self.apps) < _MAX_APPS:
            for name in set(copy_rows(data, trailer + 8, 20).view("S20").ravel().tolist()):
                self.apps.add(replace_unprintable(name.split(b"\0")[0].decode(errors="replace")))

    def _find_ip(self, data: Bytes, start: Ints, end: Ints, link: int) -> Ints:
        """Return where IP begins after a link's header; -1 if there is no IP."""
        offset, may_be_ipv4, may_be_ipv6, ethertype = _skip_link_header(data, start, link)
        if link in _WIFI_LINKS:
            self.encrypted_wifi += _count_encrypted_wifi(
                data, start, has_radiotap=link == _RADIOTAP
            )
        found = _has_ip_header(data, offset, end, may_be_ipv4, may_be_ipv6)
        if found.all():
            return offset
        missing = np.flatnonzero(~found)
        if ethertype.size == offset.size:
            offset[missing] = self._find_wrapped_ip(
                data, offset[missing], end[missing], ethertype[missing]
            )
        else:  # the link has no ethertypes: the packets are counted under 0
            _count_values(self.ethertypes, np.zeros(missing.size, np.int64))
            offset = np.where(found, offset, -1)
        return offset

    def _find_wrapped_ip(self, data: Bytes, offset: Ints, end: Ints, outer_type: Ints) -> Ints:
        """Return where IP begins after LLC/SNAP, PPPoE and MPLS; -1 if there is no IP."""
        offset, inner_type = _skip_wrapping(data, offset, outer_type)
        found = _has_ip_header(data, offset, end, inner_type == _IPV4, inner_type == _IPV6)
        for value in distinct(outer_type[found]).tolist() if found.any() else []:
            name = "MPLS" if value in _MPLS else "PPPoE" if value == _PPPOE else "LLC/SNAP"
            count = int((found & (outer_type == value)).sum())
            self.tunnels[name] = self.tunnels.get(name, 0) + count
        _count_values(self.ethertypes, inner_type[~found])
        return np.where(found, offset, -1)

    def _read_ip_headers(
        self, network: _IpPackets, *, unpack: bool = True
    ) -> tuple[DatagramBatch, list[tuple[int, Piece]], list[_IpPackets]]:
        """Return the datagrams in IP packets, the fragments with their times, and tunnelled IP.

        Everything else is counted. Tunnels are read only if `unpack` is true.
        """
        # One copy per packet holds the IP header, the UDP header and the first bytes of the
        # payload, as long as IPv4 has no options. `_read_transport_headers` copies all others.
        heads = copy_rows(network.data, network.at, _PAYLOAD_OFFSET + self.head)
        payloads = _read_ipv4(network, heads)
        version = heads[:, 0] >> 4
        ipv6 = np.flatnonzero(version == 6)
        if ipv6.size:
            ipv6_payloads = _read_ipv6(network.part(ipv6), heads[ipv6, :40])
            for values, ipv6_values in zip(payloads, ipv6_payloads, strict=True):
                values[ipv6] = ipv6_values
        begin, end, protocol, is_fragment = payloads
        pieces = [
            (int(network.time_ns[index]), piece)
            for index in np.flatnonzero(is_fragment).tolist()
            if (piece := _make_piece(network, index, int(begin[index]), int(end[index])))
        ]
        # Every payload that is read has at least the 8 bytes of a UDP header.
        is_whole = (begin > 0) & (begin + 8 <= end) & ~is_fragment
        is_transport = is_whole & ((protocol == UDP) | (protocol == TCP))
        tunnelled: list[_IpPackets] = []
        if not is_transport.all():
            self.pieces += int(is_fragment.sum())
            other = is_whole & ~is_transport
            if unpack and other.any():
                other = self._unpack_tunnels(network, payloads, other, tunnelled)
            self.damaged += int((~is_whole & ~is_fragment).sum())
            _count_values(self.other, protocol[other])
            self._collect_icmp(network, payloads, other)
            keep = np.flatnonzero(is_transport)
            network, heads, version = network.part(keep), heads.take(keep, axis=0), version[keep]
            payloads = payloads.part(keep)
        addresses = self._pack_addresses(heads, np.flatnonzero(version == 6))
        # Layout of `flow_ports`: version in bits 40 to 47, protocol in 32 to 39, then both ports,
        # which `_read_transport_headers` adds.
        flow_ports = (version.astype(np.int64) << 8 | payloads.protocol) << 32
        batch = self._read_transport_headers(network, heads, payloads, (addresses, flow_ports))
        if unpack:
            batch = self._unpack_vxlan(batch, tunnelled)
        return batch, pieces, tunnelled

    def _unpack_tunnels(
        self, network: _IpPackets, payloads: _IpPayloads, other: Mask, tunnelled: list[_IpPackets]
    ) -> Mask:
        """Append the packets inside IP in IP and GRE to `tunnelled`.

        `other` marks the packets that are neither UDP nor TCP. Return it without the unpacked ones.
        """
        begin, end, protocol, _ = payloads
        selected = np.flatnonzero(other & is_one_of(protocol, (_IP_IN_IP, _IPV6_IN_IP, _GRE)))
        if not selected.size:
            return other
        inner_start, inner_end = begin[selected].copy(), np.minimum(end, network.end)[selected]
        ethertype = np.where(protocol[selected] == _IPV6_IN_IP, _IPV6, _IPV4)
        gre = np.flatnonzero(protocol[selected] == _GRE)
        if gre.size:
            inner_start[gre], ethertype[gre] = _skip_gre_header(network.data, inner_start[gre])
        bridged = np.flatnonzero(ethertype == _BRIDGED)
        if bridged.size:
            inner_start[bridged], _, _, ethertype[bridged] = _skip_link_header(
                network.data, inner_start[bridged], _ETHERNET
            )
        is_ip = _has_ip_header(
            network.data, inner_start, inner_end, ethertype == _IPV4, ethertype == _IPV6
        )
        for number in (_IP_IN_IP, _IPV6_IN_IP, _GRE):
            count = int((is_ip & (protocol[selected] == number)).sum())
            if count:
                name = PROTOCOLS[number]
                self.tunnels[name] = self.tunnels.get(name, 0) + count
        unpacked = selected[is_ip]
        if unpacked.size:
            outer = network.part(unpacked)
            tunnelled.append(outer._replace(at=inner_start[is_ip], end=inner_end[is_ip]))
            other = other.copy()
            other[unpacked] = False
        return other

    def _unpack_vxlan(self, batch: DatagramBatch, tunnelled: list[_IpPackets]) -> DatagramBatch:
        """Append the packets inside VXLAN to `tunnelled`; return the batch without them."""
        destination_port = batch.flow_ports.astype(np.uint16)  # the last 16 bits
        which = np.flatnonzero(destination_port == _VXLAN_PORT)
        # 8 bytes of VXLAN and 14 of Ethernet.
        which = which[(batch.protocol[which] == UDP) & (batch.size[which] >= 22)]
        if not which.size:
            return batch
        header = big_endian(batch.heads[which], 0, 8)
        # The flag for a valid network number, and zeros in the reserved bytes.
        which = which[(header & 0x7FFFFFFF_000000FF) == 0x08000000_00000000]
        start = batch.start[which] + 8
        end = batch.start[which] + batch.size[which]
        offset, may_be_ipv4, may_be_ipv6, _ = _skip_link_header(batch.data, start, _ETHERNET)
        is_ip = _has_ip_header(batch.data, offset, end, may_be_ipv4, may_be_ipv6)
        unpacked = which[is_ip]
        if not unpacked.size:
            return batch
        self.tunnels["VXLAN"] = self.tunnels.get("VXLAN", 0) + int(unpacked.size)
        tunnelled.append(
            _IpPackets(
                batch.data, batch.time_ns[unpacked], batch.wire[unpacked], offset[is_ip], end[is_ip]
            )
        )
        keep = np.ones(batch.size.size, np.bool_)
        keep[unpacked] = False
        return batch.part(np.flatnonzero(keep))

    def _collect_icmp(self, network: _IpPackets, payloads: _IpPayloads, other: Mask) -> None:
        """Count the ICMP messages in `other` by type, and keep the first `_MAX_SAMPLES` of all."""
        begin, end, protocol, _ = payloads
        which = np.flatnonzero(other & is_one_of(protocol, (_ICMP, _ICMP6)))
        if not which.size:
            return
        type_and_code = copy_rows(network.data, begin[which], 2).astype(np.int64)
        is_ipv6 = (protocol[which] == _ICMP6).astype(np.int64)
        # Version, type and code in one number, so that one count serves all.
        counts = np.bincount(is_ipv6 << 16 | type_and_code[:, 0] << 8 | type_and_code[:, 1])
        for value in np.flatnonzero(counts).tolist():
            key = 6 if value >> 16 else 4, value >> 8 & 0xFF, value & 0xFF
            self.control_types[key] = self.control_types.get(key, 0) + int(counts[value])
        for index in which[: _MAX_SAMPLES - len(self.control)].tolist():
            stop = min(int(end[index]), int(network.end[index]))
            version = 6 if protocol[index] == _ICMP6 else 4
            self.control.append((version, network.data[int(begin[index]) : stop].tobytes()))

    def _read_transport_headers(
        self,
        network: _IpPackets,
        heads: NDArray[np.uint8],
        payloads: _IpPayloads,
        flow: tuple[NDArray[np.uint64], Ints],
    ) -> DatagramBatch:
        """Read the UDP and TCP headers. `heads` begin at the IP headers, and are overwritten.

        `flow` are the columns `flow_addresses` and `flow_ports` of the batch, still without ports.
        """
        begin, end, protocol, _ = payloads
        # The rows assume an IPv4 header of 20 bytes. After options or an IPv6 header, copy again.
        shifted = np.flatnonzero(begin != network.at + 20)
        if shifted.size:
            heads[shifted, 20:] = copy_rows(network.data, begin[shifted], heads.shape[1] - 20)
        # The 8 bytes of a UDP header: source port, destination port, length, checksum. TCP has the
        # same ports.
        udp_header = big_endian(heads, 20, 8)
        payload_heads = heads[:, _PAYLOAD_OFFSET:]
        start, full = begin + 8, (udp_header >> 16 & 0xFFFF) - 8
        udp = protocol == UDP
        # A UDP length of 0 means the length in IP, as in jumbograms and offloaded packets.
        without_length = np.flatnonzero((full < 0) | ~udp)
        if without_length.size:
            # Byte 12 of a TCP header has its length in units of 4 bytes.
            tcp_header_size = (heads[without_length, 20 + 12] >> 4).astype(np.int64) * 4
            start[without_length] = begin[without_length] + np.where(
                udp[without_length], 8, tcp_header_size
            )
            full[without_length] = end[without_length] - start[without_length]
            tcp = without_length[~udp[without_length]]
            payload_heads[tcp] = copy_rows(network.data, start[tcp], self.head)
        captured = np.minimum(end, network.end) - start
        return DatagramBatch(
            network.data,
            network.time_ns,
            flow[0],
            (flow[1] | udp_header >> 32 & 0xFFFF_FFFF).view(np.uint64),
            start,
            np.maximum(np.minimum(full, captured), 0),
            np.maximum(full, 0),
            network.wire,
            protocol.astype(np.uint8),
            payload_heads,
        )

    def _pack_addresses(
        self, heads: NDArray[np.uint8], ipv6: NDArray[np.intp]
    ) -> NDArray[np.uint64]:
        """Return source and destination of each packet in 64 bits: the column `flow_addresses`.

        An IPv6 address is replaced by a number of 32 bits; `ipv6` are the rows that have one.
        """
        pairs = big_endian(heads, 12, 8).view(np.uint64)  # both IPv4 addresses
        if ipv6.size:
            ipv6_heads = heads[ipv6, :40]
            source, destination = [
                self._addresses.numbers(
                    big_endian(ipv6_heads, offset, 8).view(np.uint64),
                    big_endian(ipv6_heads, offset + 8, 8).view(np.uint64),
                ).view(np.uint64)
                for offset in (8, 24)
            ]
            pairs[ipv6] = source << np.uint64(32) | destination
        return pairs

    def address(self, number: int, version: int) -> str:
        """Return an address as text: an IPv4 address, or the IPv6 address with this number."""
        if version == 4:
            return str(IPv4Address(number))
        if number >= len(self._addresses):
            return "::"
        high, low = self._addresses.keys[number]
        return str(IPv6Address(high << 64 | low))

    def ends(self, flow_addresses: int, flow_ports: int) -> tuple[tuple[str, int], tuple[str, int]]:
        """Return source and destination of a row of a batch: address and port of each."""
        version = flow_ports >> 40
        source = self.address(flow_addresses >> 32, version), flow_ports >> 16 & 0xFFFF
        return source, (self.address(flow_addresses & 0xFFFF_FFFF, version), flow_ports & 0xFFFF)

    def _reassemble(self, pieces: list[tuple[int, Piece]]) -> _IpPackets | None:
        """Return the packets that these pieces complete, in a new buffer; None if there are none.

        `pieces` are fragments with their times.
        """
        packets = [
            (time_ns, packet)
            for time_ns, piece in pieces
            if (packet := self.fragments.add(piece)) is not None
        ]
        if not packets:
            return None
        sizes = np.array([len(packet) for _, packet in packets], np.int64)
        ends = np.cumsum(sizes)
        joined = b"".join(packet for _, packet in packets) + bytes(GUARD)
        times = np.array([time_ns for time_ns, _ in packets], np.int64)
        return _IpPackets(np.frombuffer(joined, np.uint8), times, sizes, ends - sizes, ends)


def _count_values(totals: dict[int, int], values: Ints) -> None:
    """Add to `totals` how often each value occurs."""
    counts = np.bincount(values)
    for value in np.flatnonzero(counts).tolist():
        totals[value] = totals.get(value, 0) + int(counts[value])


def iter_datagrams(batches: Iterator[DatagramBatch], decoder: PacketDecoder) -> Iterator[Datagram]:
    """Yield complete UDP datagrams one by one."""
    ends: dict[tuple[int, int], tuple[tuple[str, int], tuple[str, int]]] = {}
    for batch in batches:
        udp = np.flatnonzero((batch.protocol == UDP) & (batch.size == batch.full))
        for index in udp.tolist():
            key = int(batch.flow_addresses[index]), int(batch.flow_ports[index])
            if key not in ends:
                ends[key] = decoder.ends(*key)
            yield Datagram(int(batch.time_ns[index]), *ends[key], batch.payload(index))


def _skip_link_header(data: Bytes, start: Ints, link: int) -> tuple[Ints, Mask, Mask, Ints]:
    """Return where a link's header ends, whether IPv4 and IPv6 may follow, and the ethertype.

    The ethertypes are empty if the link has none.
    """
    if link in _RAW_IP_LINKS:
        either = np.ones(1, np.bool_)
        return start, either, either, np.zeros(0, np.int64)
    if link in _LOOPBACK_LINKS:
        # The address family, in the byte order of the computer that captured: read as big-endian, a
        # small little-endian number is in the top byte.
        family = big_endian(copy_rows(data, start, 4), 0, 4)
        known = np.isin(family, _ADDRESS_FAMILIES) | np.isin(family >> 24, _ADDRESS_FAMILIES)
        return start + 4, known, known, np.zeros(0, np.int64)
    if link in _PPP_LINKS:
        return _skip_ppp_header(data, start)
    if link in _WIFI_LINKS:
        return _skip_wifi_header(data, start, has_radiotap=link == _RADIOTAP)
    type_at, header_size = _ETHERTYPE_LINKS[link]
    offset = start + header_size
    ethertype = big_endian(copy_rows(data, start + type_at, 2), 0)
    # A VLAN tag has 4 bytes; its last two are the ethertype of what follows.
    for _ in range(_MAX_VLAN):
        tagged = is_one_of(ethertype, _VLAN)
        if not tagged.any():
            break
        ethertype = np.where(tagged, big_endian(copy_rows(data, offset + 2, 2), 0), ethertype)
        offset = np.where(tagged, offset + 4, offset)
    return offset, ethertype == _IPV4, ethertype == _IPV6, ethertype


def _has_ip_header(
    data: Bytes, offset: Ints, end: Ints, may_be_ipv4: Mask, may_be_ipv6: Mask
) -> Mask:
    """Return at which offsets an IP header begins: its version fits, and it ends before `end`."""
    version = data[np.minimum(offset, data.size - 1)] >> 4
    has_header: Mask = may_be_ipv4 & (version == 4) & (offset + 20 <= end)
    has_header |= may_be_ipv6 & (version == 6) & (offset + 40 <= end)
    return has_header


def _skip_ppp_header(data: Bytes, start: Ints) -> tuple[Ints, Mask, Mask, Ints]:
    """Skip PPP: address and control, if they are not left out, and a protocol of 1 or 2 bytes."""
    head = copy_rows(data, start, 2)
    offset = start + 2 * ((head[:, 0] == 0xFF) & (head[:, 1] == 0x03))
    protocol = copy_rows(data, offset, 2)
    is_short = protocol[:, 0] & 1 == 1  # the first byte of a long protocol is even
    number = np.where(is_short, protocol[:, 0], big_endian(protocol, 0))
    is_ipv4, is_ipv6 = number == _PPP_IPV4, number == _PPP_IPV6
    return offset + np.where(is_short, 1, 2), is_ipv4, is_ipv6, np.zeros(0, np.int64)


def _skip_wifi_header(
    data: Bytes, start: Ints, *, has_radiotap: bool
) -> tuple[Ints, Mask, Mask, Ints]:
    """Skip the headers of 802.11 and LLC/SNAP; returns the same as `_skip_link_header`.

    Frames without data, encrypted frames and aggregates of several packets are not read.
    """
    offset = _skip_radiotap(data, start) if has_radiotap else start
    control = copy_rows(data, offset, 2)
    kind, flags = control[:, 0], control[:, 1]
    # 24 bytes; a fourth address (6 bytes) if the frame goes from one access point to another;
    # quality of service (2 bytes), possibly followed by throughput control (4 bytes).
    has_quality, has_order = kind & 0x80 != 0, flags & 0x80 != 0
    header_size = 24 + 6 * (flags & 3 == 3) + has_quality * (2 + 4 * has_order)
    quality = copy_rows(data, offset + header_size - np.where(has_order, 6, 2), 1)[:, 0]
    is_aggregate = has_quality & (quality & 0x80 != 0)
    offset = offset + header_size
    if has_radiotap:
        is_padded = _read_radiotap_padding(copy_rows(data, start, _RADIOTAP_HEAD))
        offset += np.where(is_padded, -header_size % 4, 0)
    snap = copy_rows(data, offset, 8)
    # Version 0, type 2 (data), and not one of the subtypes without data; not encrypted.
    is_data = (kind & 0x4F == 0x08) & (flags & 0x40 == 0) & ~is_aggregate
    is_data &= big_endian(snap, 0, 4) >> 8 == _SNAP
    ethertype = big_endian(snap, 6)
    is_ipv4, is_ipv6 = is_data & (ethertype == _IPV4), is_data & (ethertype == _IPV6)
    return offset + 8, is_ipv4, is_ipv6, np.zeros(0, np.int64)


def _skip_radiotap(data: Bytes, start: Ints) -> Ints:
    """Return where radiotap ends: its bytes 2 and 3 are its length, little-endian."""
    head = copy_rows(data, start, 4)
    return start + (head[:, 2].astype(np.int64) | head[:, 3].astype(np.int64) << 8)


def _count_encrypted_wifi(data: Bytes, start: Ints, *, has_radiotap: bool) -> int:
    """Return the number of data frames that are encrypted."""
    offset = _skip_radiotap(data, start) if has_radiotap else start
    control = copy_rows(data, offset, 2)
    is_data, is_encrypted = control[:, 0] & 0x0C == 0x08, control[:, 1] & 0x40 != 0
    return int((is_data & is_encrypted).sum())


def _read_radiotap_padding(head: NDArray[np.uint8]) -> Mask:
    """Return in which frames radiotap's flags state padding after the header of 802.11."""
    # From byte 4 on, words state which fields follow. The top bit of a word announces another word.
    present = head[:, 4:8].copy().view("<u4")[:, 0]
    word_count = np.ones(head.shape[0], np.int64)
    for word in range(1, _MAX_PRESENT_WORDS):
        has_next = head[:, 4 * word + 3] & 0x80 != 0
        word_count += (word_count == word) & has_next
    # The first field may be a time of 8 bytes, aligned to 8. The flags are the next.
    has_time, has_flags = present & 1 != 0, present & 2 != 0
    flags_at = 4 + 4 * word_count
    flags_at = np.where(has_time, (flags_at + 7) // 8 * 8 + 8, flags_at)
    flags = head[np.arange(head.shape[0]), np.minimum(flags_at, _RADIOTAP_HEAD - 1)]
    is_padded: Mask = has_flags & (flags & 0x20 != 0)
    return is_padded


def _skip_wrapping(data: Bytes, offset: Ints, ethertype: Ints) -> tuple[Ints, Ints]:
    """Skip LLC/SNAP, PPPoE and MPLS; return where the content begins, and its ethertype."""
    offset, ethertype = offset.copy(), ethertype.copy()
    llc = np.flatnonzero(ethertype < _MIN_ETHERTYPE)
    if llc.size:
        header = copy_rows(data, offset[llc], 8)
        # The organisation 0 means that an ethertype follows.
        is_snap = big_endian(header, 0, 4) == _SNAP << 8
        is_snap &= (header[:, 4] == 0) & (header[:, 5] == 0)
        ethertype[llc] = np.where(is_snap, big_endian(header, 6), ethertype[llc])
        offset[llc] += np.where(is_snap, 8, 0)
    session = np.flatnonzero(ethertype == _PPPOE)
    if session.size:
        protocol = big_endian(copy_rows(data, offset[session], 8), 6)
        ethertype[session[protocol == _PPP_IPV4]] = _IPV4
        ethertype[session[protocol == _PPP_IPV6]] = _IPV6
        offset[session] += 8
    # An MPLS label has 4 bytes, and its bit 8 marks the last one. No ethertype follows, only IP.
    labelled = np.flatnonzero(is_one_of(ethertype, _MPLS))
    for _ in range(_MAX_LABELS):
        if not labelled.size:
            break
        is_last = copy_rows(data, offset[labelled], 4)[:, 2] & 1 == 1
        offset[labelled] += 4
        ended = labelled[is_last]
        version = data[np.minimum(offset[ended], data.size - 1)] >> 4
        ethertype[ended[version == 4]] = _IPV4
        ethertype[ended[version == 6]] = _IPV6
        labelled = labelled[~is_last]
    return offset, ethertype


def _skip_gre_header(data: Bytes, offset: Ints) -> tuple[Ints, Ints]:
    """Return where the content of GRE begins, and its ethertype; 0 if it cannot be read."""
    header = copy_rows(data, offset, 4)
    flags, ethertype = big_endian(header, 0), big_endian(header, 2)
    # Checksum, key and sequence number are optional, 4 bytes each, each with its flag.
    size = 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + (flags >> 12 & 1))
    is_readable = flags & 0x4F07 == 0  # no routing, no recursion, version 0
    return offset + size, np.where(is_readable, ethertype, 0)


def _read_ipv4(network: _IpPackets, heads: NDArray[np.uint8]) -> _IpPayloads:
    """Read IPv4 headers; `heads` has the first bytes of each packet."""
    # Version and header length (1 byte), service (1), length (2), number (2), fragment (2).
    word = big_endian(heads, 0, 8)
    header_size = (word >> 56 & 15) * 4
    length = word >> 32 & 0xFFFF
    # Network cards that split packets themselves leave the length 0.
    without_length = np.flatnonzero(length == 0)
    length[without_length] = network.end[without_length] - network.at[without_length]
    begin = network.at + header_size
    begin[(header_size < 20) | (length < header_size)] = -1
    is_fragment = (word & 0x3FFF) != 0  # the fragment offset and the flag "more fragments"
    return _IpPayloads(begin, network.at + length, heads[:, 9].astype(np.int64), is_fragment)


def _read_ipv6(network: _IpPackets, heads: NDArray[np.uint8]) -> _IpPayloads:
    """Read IPv6 headers and their extensions; `heads` has the first 40 bytes of each packet."""
    length = big_endian(heads, 4)
    begin = network.at + 40
    end = np.where(length == 0, network.end, begin + length)
    next_header = heads[:, 6].astype(np.int64)  # the number of an extension or of a protocol
    is_fragment = np.zeros(begin.size, np.bool_)
    # Each iteration skips one extension header of all packets at once.
    for _ in range(_MAX_EXTENSIONS):
        is_captured = begin + 8 <= np.minimum(end, network.end)
        has_extension = np.isin(next_header, _EXTENSIONS) & ~is_fragment & is_captured
        selected = np.flatnonzero(has_extension)
        if not selected.size:
            break
        extension, number = copy_rows(network.data, begin[selected], 8), next_header[selected]
        is_fragment_header = number == _FRAGMENT
        # 0xFFF9: the fragment offset and the flag "more fragments".
        has_offset_or_more = (big_endian(extension, 2) & 0xFFF9) != 0
        is_fragment[selected] = is_fragment_header & has_offset_or_more
        # Lengths count units of 8 bytes without the first; the authentication header counts units
        # of 4 bytes without the first two.
        unit_bytes = np.where(number == _AUTHENTICATION, 4, 8)
        not_counted = np.where(number == _AUTHENTICATION, 2, 1)
        size = (extension[:, 1].astype(np.int64) + not_counted) * unit_bytes
        next_header[selected] = extension[:, 0]
        begin[selected] += np.where(is_fragment_header, 8, size)
    return _IpPayloads(begin, end, next_header, is_fragment)


def _make_piece(network: _IpPackets, index: int, body_start: int, body_end: int) -> Piece | None:
    """Return a fragment as a piece; None if the capture cut it off or it is inconsistent.

    `index` is its row in `network`; its payload is from `body_start` to `body_end`.
    """
    start = int(network.at[index])
    if body_start < 0 or body_end > int(network.end[index]) or body_end < body_start:
        return None
    head = network.data[start:body_start].tobytes()
    body = network.data[body_start:body_end].tobytes()
    # The key of a packet: IP version, protocol (only IPv4), number and both addresses.
    if head[0] >> 4 == 4:
        field = int.from_bytes(head[6:8])
        key: tuple[object, ...] = (4, head[9], head[4:6], head[12:20])
        return Piece(key, (field & 0x1FFF) * 8, bool(field & 0x2000), head, body)
    extension = head[-8:]  # the fragment header
    field = int.from_bytes(extension[2:4])
    key = (6, extension[4:8], head[8:40])
    # Without extensions: byte 6, the next header, becomes that of the fragment header.
    whole_head = head[:6] + extension[:1] + head[7:40]
    return Piece(key, field & 0xFFF8, bool(field & 1), whole_head, body)
