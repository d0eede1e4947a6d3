"""Rewrites one packet with other addresses and names, the same length, and right checksums.

Encrypted parts stay; payloads.py handles the other payloads. Unknown links and protocols are
cleared, unless unknown contents are to be kept.
"""

import struct
from contextlib import suppress

from rote.capture.scrub.identifiers import Identifiers, Tally
from rote.capture.scrub.payloads import Flow, Payloads
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.capture.synthetic.ethernet import checksum, pseudo_header

ETHERNET, NULL, LOOP, COOKED, COOKED_2 = 1, 0, 108, 113, 276
RAW = frozenset((12, 14, 101, 228, 229))
_VLAN = frozenset((0x8100, 0x88A8, 0x9100))
_IP, _IP6, _ARP = 0x0800, 0x86DD, 0x0806
_ICMP, _IGMP, _TCP, _UDP, _ICMP6, _NONE, _ESP = 1, 2, 6, 17, 58, 59, 50
_EXTENSIONS = frozenset((0, 43, 60))
_FRAGMENT = 44
_CHECKSUM_AT = {_TCP: 16, _UDP: 6, _ICMP: 2, _ICMP6: 2}
_DHCP_PORTS = frozenset((67, 68))
_DHCP_ADDRESSES = frozenset((3, 6, 28, 42, 50, 54))
_DHCP_PLAIN = frozenset((1, 51, 52, 53, 55, 57, 58, 59))
_DHCP6_PORTS = frozenset((546, 547))
_TCP_OPTIONS = frozenset((2, 3, 4, 5, 8))
"""Options that contain only numbers; others may contain addresses."""


class Rewriter:
    """Rewrites packets, with one set of names for all."""

    def __init__(self, names: Pseudonyms, *, keep_unknown: bool = False) -> None:
        self.tally = Tally()
        self.identifiers = Identifiers(names, self.tally)
        self.payloads = Payloads(self.identifiers, names, keep_unknown=keep_unknown)
        self.unread: dict[str, int] = {}
        """Packets, or parts of them, of links and protocols that are not read here, by kind."""
        self._names = names
        self._keep_unknown = keep_unknown
        self._learning = False
        self._packet = bytearray()

    @property
    def blanked(self) -> int:
        """Number of packets, or parts of them, that were filled with zeros."""
        cleared = sum(self.payloads.account.cleared.values())
        return cleared + (0 if self._keep_unknown else sum(self.unread.values()))

    def start(self, *, learning: bool) -> None:
        """Start a pass over the capture: first to learn, then to rewrite."""
        self.payloads.start(learning=learning)

    def learn(self, linktype: int, packet: bytes) -> None:
        """Collect the identifiers in a packet."""
        self._learning = True
        self._rewrite_link(linktype, packet)
        self._learning = False

    def rewrite(self, linktype: int, packet: bytes) -> bytes:
        """Return the packet with replaced names and addresses."""
        self._rewrite_link(linktype, packet)
        return bytes(self._packet)

    # ---- links ----------------------------------------------------------------------------------

    def _rewrite_link(self, linktype: int, packet: bytes) -> None:
        self._packet = bytearray(packet)
        at, kind = 0, 0
        try:
            if linktype == ETHERNET:
                at, kind = self._rewrite_ethernet()
            elif linktype in RAW:
                kind = _IP if self._packet[0] >> 4 == 4 else _IP6
            elif linktype in (NULL, LOOP):
                at, kind = 4, _IP if self._packet[4] >> 4 == 4 else _IP6
            elif linktype == COOKED:
                self._replace_hardware_address(6, min(self._read_uint16(4), 8))
                at, kind = 16, self._read_uint16(14)
            elif linktype == COOKED_2:
                self._replace_hardware_address(12, min(self._packet[11], 8))
                at, kind = 20, self._read_uint16(0)
            self._rewrite_network(kind, at)
        except (struct.error, IndexError):
            self._clear_unread(at, kind="packets that end too early")

    def _rewrite_ethernet(self) -> tuple[int, int]:
        self._replace_hardware_address(0, 6)
        self._replace_hardware_address(6, 6)
        at, kind = 14, self._read_uint16(12)
        while kind in _VLAN:
            at, kind = at + 4, self._read_uint16(at + 2)
        return at, kind

    def _replace_hardware_address(self, at: int, size: int) -> None:
        old = bytes(self._packet[at : at + size])
        if size and len(old) == size:
            new = self._names.hardware(old)
            self._packet[at : at + size] = new
            if self._learning and size == 6:
                self.identifiers.add_hardware(old)
            elif new != old and not self._learning:
                self.tally.add("hardware address", old)

    def _read_uint16(self, at: int) -> int:
        value: int = struct.unpack_from(">H", self._packet, at)[0]
        return value

    def _clear_unread(
        self, at: int, end: int | None = None, kind: str = "unknown protocols"
    ) -> None:
        """Clear bytes that cannot be read, or only replace known identifiers if they are kept."""
        end = len(self._packet) if end is None else end
        if end <= at:
            return
        if not self._learning:
            self.unread[kind] = self.unread.get(kind, 0) + 1
        old = bytes(self._packet[at:end])
        if not self._keep_unknown:
            self._packet[at:end] = bytes(end - at)
        elif self._learning:
            self.identifiers.learn(old)
        else:
            self._packet[at:end] = self.identifiers.replace(old, raw=True)

    def _rewrite_network(self, kind: int, at: int) -> None:
        if kind == _IP and self._packet[at] >> 4 == 4:
            self._rewrite_ipv4(at)
        elif kind == _IP6 and self._packet[at] >> 4 == 6:
            self._rewrite_ipv6(at)
        elif kind == _ARP:
            self._rewrite_arp(at)
        else:
            self._clear_unread(at)

    def _rewrite_arp(self, at: int) -> None:
        hardware, protocol = self._packet[at + 4], self._packet[at + 5]
        if (hardware, protocol) != (6, 4) or len(self._packet) < at + 28:
            self._clear_unread(at)
            return
        for start in (at + 8, at + 18):
            self._replace_hardware_address(start, 6)
            self._replace_address(start + 6, 4)
        self._packet[at + 28 :] = bytes(len(self._packet) - at - 28)

    # ---- internet -------------------------------------------------------------------------------

    def _replace_address(self, at: int, size: int) -> None:
        old = bytes(self._packet[at : at + size])
        if len(old) == size:
            new = (self._names.ipv4 if size == 4 else self._names.ipv6)(old)
            self._packet[at : at + size] = new
            if self._learning:
                (self.identifiers.add_ipv4 if size == 4 else self.identifiers.add_ipv6)(old)
            elif new != old:
                self.tally.add("IPv4 address" if size == 4 else "IPv6 address", old)

    def _rewrite_ipv4(self, at: int, *, quoted: bool = False) -> None:
        head = (self._packet[at] & 15) * 4
        total, offset = self._read_uint16(at + 2), self._read_uint16(at + 6)
        if head < 20 or len(self._packet) < at + head:
            self._clear_unread(at + 1)
            return
        before = bytes(self._packet[at + 12 : at + 20])
        self._replace_address(at + 12, 4)
        self._replace_address(at + 16, 4)
        self._packet[at + 20 : at + head] = b"\1" * (head - 20)  # options may contain a route
        self._packet[at + 10 : at + 12] = b"\0\0"
        self._packet[at + 10 : at + 12] = checksum(bytes(self._packet[at : at + head])).to_bytes(2)
        end = at + total if total else len(self._packet)
        self._clear_padding(at + max(total, head), quoted=quoted)
        whole = not offset & 0x3FFF and end <= len(self._packet) and not quoted
        part = _TransportPart(at + head, min(end, len(self._packet)), before, (at + 12, 4), whole)
        self._rewrite_transport(self._packet[at + 9], part, first=not offset & 0x1FFF)

    def _rewrite_ipv6(self, at: int, *, quoted: bool = False) -> None:
        if len(self._packet) < at + 40:
            self._clear_unread(at + 1)
            return
        before = bytes(self._packet[at + 8 : at + 40])
        self._replace_address(at + 8, 16)
        self._replace_address(at + 24, 16)
        total, kind = self._read_uint16(at + 4), self._packet[at + 6]
        end = at + 40 + total if total else len(self._packet)
        self._clear_padding(end, quoted=quoted)
        start, first, whole = at + 40, True, end <= len(self._packet) and not quoted
        while kind in _EXTENSIONS or kind == _FRAGMENT:
            following = self._packet[start]
            size = 8
            if kind == _FRAGMENT:
                first, whole = self._read_uint16(start + 2) < 8, False
            else:
                size += 8 * self._packet[start + 1]
                if kind == 43:
                    self._clear_unread(start + 4, min(start + size, len(self._packet)))
            start, kind = start + size, following
        part = _TransportPart(start, min(end, len(self._packet)), before, (at + 8, 16), whole)
        self._rewrite_transport(kind, part, first=first)

    def _clear_padding(self, end: int, *, quoted: bool) -> None:
        """Clear the padding behind a packet: it can contain old memory contents."""
        if not quoted and end < len(self._packet):
            self._packet[end:] = bytes(len(self._packet) - end)

    # ---- transports -----------------------------------------------------------------------------

    def _rewrite_transport(self, kind: int, part: "_TransportPart", *, first: bool) -> None:
        at, end = part.start, part.end
        if kind in (_TCP, _UDP) and first:
            self._rewrite_tcp_or_udp(kind, part)
        elif kind in (_TCP, _UDP) and not first:
            self._packet[at:end] = self.payloads.other(bytes(self._packet[at:end]), "IP fragments")
        elif kind in (_ICMP, _ICMP6) and first and end - at >= 8:
            self._rewrite_icmp(kind, part)
        elif kind == _IGMP and first and end - at >= 8:
            self._rewrite_igmp(at, end)
        elif kind not in (_ESP, _NONE):
            self._clear_unread(at, end)

    def _rewrite_igmp(self, at: int, end: int) -> None:
        """Replace the groups in IGMP, and the senders in its third version."""
        if end - at == 8:
            return
        for offset in range(at + 8, end - 3, 4):
            self._replace_address(offset, 4)
        self._packet[at + 2 : at + 4] = b"\0\0"
        self._packet[at + 2 : at + 4] = checksum(bytes(self._packet[at:end])).to_bytes(2)

    def _rewrite_tcp_or_udp(self, kind: int, part: "_TransportPart") -> None:
        at, end = part.start, part.end
        smallest = 8 if kind == _UDP else 20
        if end - at < smallest:
            # Quoted in an error message, or cut off: the ports are no secret, the checksum is.
            self._clear_unread(min(at + 4, end), end, "packets that end too early")
            return
        half = len(part.before) // 2
        source, destination = part.before[:half], part.before[half:]
        flow = Flow(source, self._read_uint16(at), destination, self._read_uint16(at + 2))
        ports = {flow.source_port, flow.destination_port}
        head = 8 if kind == _UDP else max((self._packet[at + 12] >> 4) * 4, 20)
        start = min(at + head, end)
        payload = bytes(self._packet[start:end])
        if kind == _TCP:
            self._clear_tcp_options(at + 20, start)
            (sequence,) = struct.unpack_from(">I", self._packet, at + 4)
            self._packet[start:end] = self.payloads.segment(flow, sequence, payload)
        elif ports <= _DHCP_PORTS:
            self._rewrite_dhcp(start, end)
        elif ports <= _DHCP6_PORTS:
            self._clear_unread(min(start + 4, end), end, "DHCPv6")
        else:
            self._packet[start:end] = self.payloads.datagram(flow, payload)
        self._update_checksum(kind, part)

    def _clear_tcp_options(self, at: int, end: int) -> None:
        while at < end and self._packet[at] != 0:
            if self._packet[at] == 1:
                at += 1
                continue
            size = self._packet[at + 1] if at + 1 < end else 0
            if size < 2 or at + size > end:
                self._packet[at:end] = b"\1" * (end - at)
                return
            if self._packet[at] not in _TCP_OPTIONS:
                self._packet[at : at + size] = b"\1" * size
            at += size

    def _rewrite_dhcp(self, at: int, end: int) -> None:
        """Replace addresses and hardware addresses by their position, options by their kind."""
        if end - at < 240:
            self._clear_unread(at, end)
            return
        for offset in range(at + 12, at + 28, 4):
            self._replace_address(offset, 4)
        self._replace_hardware_address(at + 28, 6)
        self._packet[at + 34 : at + 236] = bytes(202)
        offset = at + 240
        while offset + 1 < end and self._packet[offset] != 255:
            code, size = self._packet[offset], self._packet[offset + 1]
            start, stop = offset + 2, min(offset + 2 + size, end)
            if code == 0:
                offset += 1
                continue
            if code in _DHCP_ADDRESSES:
                for each in range(start, stop - 3, 4):
                    self._replace_address(each, 4)
            elif code == 61 and size == 7:
                self._replace_hardware_address(start + 1, 6)
            elif code not in _DHCP_PLAIN:
                self._packet[start:stop] = self._replace_dhcp_text(bytes(self._packet[start:stop]))
            offset = stop

    def _replace_dhcp_text(self, old: bytes) -> bytes:
        if self._learning:
            self.identifiers.add(old)
            self.identifiers.learn(old)
        if all(32 <= byte < 127 for byte in old):
            return self._names.name(old)
        return self._names.opaque(old)

    def _rewrite_icmp(self, kind: int, part: "_TransportPart") -> None:
        """Rewrite ICMP: errors quote a packet, neighbour messages contain addresses."""
        at, end = part.start, part.end
        number = self._packet[at]
        with suppress(struct.error, IndexError):
            if kind == _ICMP and number in (3, 4, 5, 11, 12):
                if number == 5:
                    self._replace_address(at + 4, 4)
                self._rewrite_quoted_packet(at + 8, end, 4)
            elif kind == _ICMP6 and number in (1, 2, 3, 4):
                self._rewrite_quoted_packet(at + 8, end, 6)
            elif kind == _ICMP6 and 133 <= number <= 137:
                self._rewrite_neighbour_message(number, at, end)
            elif kind == _ICMP6 and 130 <= number <= 132:
                self._replace_address(at + 8, 16)
            elif kind == _ICMP6 and number == 143:
                self._rewrite_listener_report(at + 8, end)
            else:
                self._packet[at + 8 : end] = self.payloads.other(
                    bytes(self._packet[at + 8 : end]), "contents of ICMP"
                )
        self._update_checksum(kind, part)

    def _rewrite_listener_report(self, at: int, end: int) -> None:
        """Replace groups and senders in a report of multicast listeners."""
        while at + 20 <= end:
            more, senders = self._packet[at + 1], self._read_uint16(at + 2)
            for offset in range(at + 4, min(at + 20 + 16 * senders, end - 15), 16):
                self._replace_address(offset, 16)
            start = at + 20 + 16 * senders
            at = start + 4 * more
            self._packet[min(start, end) : min(at, end)] = bytes(min(at, end) - min(start, end))

    def _rewrite_quoted_packet(self, at: int, end: int, version: int) -> None:
        if end - at < 20 or self._packet[at] >> 4 != version:
            self._clear_unread(at, end)
            return
        rest, self._packet = self._packet[end:], self._packet[:end]
        (self._rewrite_ipv4 if version == 4 else self._rewrite_ipv6)(at, quoted=True)
        self._packet += rest

    def _rewrite_neighbour_message(self, number: int, at: int, end: int) -> None:
        start = {133: 8, 134: 16, 135: 24, 136: 24, 137: 40}[number] + at
        for offset in range(at + 8, start, 16):
            if number > 134:
                self._replace_address(offset, 16)
        while start + 8 <= end:
            kind, size = self._packet[start], 8 * self._packet[start + 1]
            if size == 0 or start + size > end:
                self._clear_unread(start, end)
                return
            if kind in (1, 2):
                self._replace_hardware_address(start + 2, 6)
            elif kind == 3 and size == 32:
                self._replace_address(start + 16, 16)
            elif kind != 5:
                self._clear_unread(start + 2, start + size)
            start += size

    def _update_checksum(self, kind: int, part: "_TransportPart") -> None:
        """Correct the checksum."""
        at, end = part.start, part.end
        offset = at + _CHECKSUM_AT[kind]
        if offset + 2 > end:
            return
        stated = self._read_uint16(offset)
        where, width = part.addresses
        ends = bytes(self._packet[where : where + 2 * width])
        if kind == _UDP and stated == 0 and width == 4:
            return  # there was no checksum, and none is added
        if part.whole:
            self._packet[offset : offset + 2] = b"\0\0"
            covered = bytes(self._packet[at:end])
            if kind != _ICMP:
                pseudo = pseudo_header(ends[:width], ends[width:], kind, len(covered))
                covered = pseudo + covered
            self._packet[offset : offset + 2] = (checksum(covered) or 0xFFFF).to_bytes(2)
        elif kind == _UDP and width == 4:
            self._packet[offset : offset + 2] = b"\0\0"  # the rest is not known
        elif kind != _ICMP:
            # The old checksum, minus the old addresses, plus the new ones.
            total = (~stated & 0xFFFF) + checksum(part.before) + (~checksum(ends) & 0xFFFF)
            self._packet[offset : offset + 2] = checksum(b"", total).to_bytes(2)


class _TransportPart:
    """Where the transport header is in a packet."""

    __slots__ = ("addresses", "before", "end", "start", "whole")

    def __init__(
        self, start: int, end: int, before: bytes, addresses: tuple[int, int], whole: bool
    ) -> None:
        self.start = start
        self.end = max(start, end)
        self.before = before
        """The addresses before."""
        self.addresses = addresses
        """Where they are, and the length of one."""
        self.whole = whole
        """Whether everything that the checksum covers was captured."""
