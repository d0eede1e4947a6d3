"""Masks one packet: headers stay with other addresses and right checksums, the rest is zeros."""

from typing import NamedTuple

from rote.capture.scrub.masked_copy import MaskedCopy
from rote.capture.scrub.payloads import Flow, Payloads
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.capture.synthetic.ethernet import checksum, pseudo_header
from rote.errors import DecodeError

ETHERNET, NULL, LOOP, COOKED, COOKED_2 = 1, 0, 108, 113, 276
RAW = frozenset((12, 14, 101, 228, 229))
_VLAN = frozenset((0x8100, 0x88A8, 0x9100))
_IP, _IP6, _ARP = 0x0800, 0x86DD, 0x0806
_ICMP, _IGMP, _TCP, _UDP, _ICMP6, _NONE = 1, 2, 6, 17, 58, 59
_ROUTING, _FRAGMENT = 43, 44
_EXTENSIONS = frozenset((0, _ROUTING, _FRAGMENT, 60))
_QUOTABLE = _EXTENSIONS | {_TCP, _UDP, _ICMP6}
_ERRORS = {_ICMP: (3, 4, 5, 11, 12), _ICMP6: (1, 2, 3, 4)}


class _TransportPart(NamedTuple):
    """The transport in a packet."""

    start: int
    end: int
    """Where the captured bytes end..."""
    length: int | None
    """...and how long it was; None in the first of several fragments."""
    address: int
    """Where the two addresses begin..."""
    width: int
    """...and the size of one."""
    quoted: bool


class Rewriter:
    """Masks packets, with one set of pseudonyms for all."""

    def __init__(self, names: Pseudonyms) -> None:
        self.payloads = Payloads(names)
        self._names = names

    def rewrite(self, linktype: int, packet: bytes) -> bytes:
        """Return the packet with other names and addresses."""
        copy = MaskedCopy(packet)
        try:
            self._mask_link(linktype, copy)
        except DecodeError:
            self.payloads.cleared["packets that end too early"] += 1
        return bytes(copy.new)

    # ---- links ----------------------------------------------------------------------------------

    def _mask_link(self, linktype: int, copy: MaskedCopy) -> None:
        at, kind = 0, 0
        if linktype == ETHERNET:
            copy.replace(0, 6, self._names.hardware)
            copy.replace(6, 6, self._names.hardware)
            copy.keep(12, 2)
            at, kind = 14, copy.number(12)
            while kind in _VLAN:
                copy.keep(at, 4)
                at, kind = at + 4, copy.number(at + 2)
        elif linktype in RAW:
            kind = _IP if copy.number(0, 1) >> 4 == 4 else _IP6
        elif linktype in (NULL, LOOP):
            copy.keep(0, 4)
            at, kind = 4, _IP if copy.number(4, 1) >> 4 == 4 else _IP6
        elif linktype == COOKED:
            copy.keep(0, 6)
            copy.replace(6, min(copy.number(4), 8), self._names.hardware)
            copy.keep(14, 2)
            at, kind = 16, copy.number(14)
        elif linktype == COOKED_2:
            copy.keep(0, 12)
            copy.replace(12, min(copy.number(11, 1), 8), self._names.hardware)
            at, kind = 20, copy.number(0)
        self._mask_network(copy, kind, at)

    def _mask_network(self, copy: MaskedCopy, kind: int, at: int) -> None:
        version = copy.number(at, 1) >> 4
        if kind == _IP and version == 4:
            self._mask_ipv4(copy, at)
        elif kind == _IP6 and version == 6:
            self._mask_ipv6(copy, at)
        elif kind == _ARP and copy.number(at + 4) == 0x0604:
            copy.keep(at, 8)
            for start in (at + 8, at + 18):
                copy.replace(start, 6, self._names.hardware)
                copy.replace(start + 6, 4, self._names.ipv4)
        else:
            self.payloads.cleared["unknown protocols"] += 1

    # ---- internet -------------------------------------------------------------------------------

    def _mask_ipv4(self, copy: MaskedCopy, at: int, *, quoted: bool = False) -> None:
        head = (copy.number(at, 1) & 15) * 4
        total, offset = copy.number(at + 2), copy.number(at + 6)
        # A quotation has no protocol number that proves it, so its checksum must.
        damaged = quoted and checksum(copy.old[at : at + head]) != 0
        if head < 20 or at + head > len(copy.old) or damaged:
            raise DecodeError("no whole IP header")
        copy.keep(at, 10)
        copy.replace(at + 12, 4, self._names.ipv4)
        copy.replace(at + 16, 4, self._names.ipv4)
        copy.put(at + 10, checksum(bytes(copy.new[at : at + head])).to_bytes(2))
        stop = at + max(total, head) if total else len(copy.old)
        copy.end_at(stop)
        length = None if offset & 0x2000 else stop - at - head
        part = _TransportPart(at + head, min(stop, len(copy.old)), length, at + 12, 4, quoted)
        self._mask_transport(copy, copy.old[at + 9], part, first=not offset & 0x1FFF)

    def _mask_ipv6(self, copy: MaskedCopy, at: int, *, quoted: bool = False) -> None:
        total, kind = copy.number(at + 4), copy.number(at + 6, 1)
        if at + 40 > len(copy.old) or (quoted and kind not in _QUOTABLE):
            raise DecodeError("no whole IP header")
        copy.keep(at, 8)
        copy.replace(at + 8, 16, self._names.ipv6)
        copy.replace(at + 24, 16, self._names.ipv6)
        stop = at + 40 + total if total else len(copy.old)
        copy.end_at(stop)
        start, first, more = at + 40, True, False
        while kind in _EXTENSIONS:
            # Zeros are padding in the other extensions.
            copy.keep(start, {_FRAGMENT: 8, _ROUTING: 4}.get(kind, 2))
            size = 8
            if kind == _FRAGMENT:
                place = copy.number(start + 2)
                first, more = place < 8, bool(place & 1)
            else:
                size += 8 * copy.number(start + 1, 1)
            start, kind = start + size, copy.number(start, 1)
        length = None if more else max(stop - start, 0)
        part = _TransportPart(start, min(stop, len(copy.old)), length, at + 8, 16, quoted)
        self._mask_transport(copy, kind, part, first=first)

    # ---- transports -----------------------------------------------------------------------------

    def _mask_transport(
        self, copy: MaskedCopy, kind: int, part: _TransportPart, *, first: bool
    ) -> None:
        if not first:
            self.payloads.cleared["IP fragments"] += 1
        elif kind in (_TCP, _UDP) and part.quoted:
            copy.keep(part.start, min(6 if kind == _UDP else 4, max(part.end - part.start, 0)))
        elif kind == _UDP:
            self._mask_udp(copy, part)
        elif kind == _TCP:
            self._mask_tcp(copy, part)
        elif kind in (_ICMP, _IGMP, _ICMP6) and not part.quoted:
            self._mask_icmp(copy, kind, part)
        elif kind != _NONE:
            self.payloads.cleared["unknown protocols"] += 1

    def _mask_udp(self, copy: MaskedCopy, part: _TransportPart) -> None:
        at = part.start
        copy.keep(at, 6)
        stated = copy.number(at + 4)
        # In the first of several fragments only the header states the length.
        length = stated if stated >= 8 else max(part.length or 0, part.end - at)
        stop = max(min(at + length, part.end), at + 8)
        payload = self.payloads.mask_datagram(_flow_of(copy, part), copy.old[at + 8 : stop])
        copy.put(at + 8, payload)
        if copy.number(at + 6) or part.width == 16:  # 0 in IPv4: there was none
            self._put_checksum(copy, _UDP, part._replace(end=stop, length=length), 6)

    def _mask_tcp(self, copy: MaskedCopy, part: _TransportPart) -> None:
        at = part.start
        copy.keep(at, 16)
        copy.keep(at + 18, 2)
        head = (copy.number(at + 12, 1) >> 4) * 4
        start = at + head
        if head < 20 or start > part.end:
            raise DecodeError("a TCP header that ends too early")
        copy.put(
            start, self.payloads.mask_segment(_flow_of(copy, part), copy.old[start : part.end])
        )
        self._put_checksum(copy, _TCP, part, 16)

    def _mask_icmp(self, copy: MaskedCopy, kind: int, part: _TransportPart) -> None:
        """Keep type and code of a message, and the packet that an error quotes."""
        at, number = part.start, copy.number(part.start, 1)
        copy.keep(at, 2)
        if number in _ERRORS.get(kind, ()):
            self._mask_quoted_packet(copy, kind, at + 8, part.end)
        self.payloads.cleared["contents of ICMP and IGMP"] += part.end > at + 4
        self._put_checksum(copy, kind, part, 2)

    def _mask_quoted_packet(self, copy: MaskedCopy, kind: int, at: int, end: int) -> None:
        inner = MaskedCopy(copy.old[at:end])
        try:
            if kind == _ICMP and inner.number(0, 1) >> 4 == 4:
                self._mask_ipv4(inner, 0, quoted=True)
            elif kind == _ICMP6 and inner.number(0, 1) >> 4 == 6:
                self._mask_ipv6(inner, 0, quoted=True)
        except DecodeError:
            self.payloads.cleared["packets that end too early"] += 1
        copy.embed(at, inner)

    def _put_checksum(self, copy: MaskedCopy, kind: int, part: _TransportPart, offset: int) -> None:
        """Write the checksum; bytes that were not captured, or are in a fragment, count as zeros.

        Without the length it cannot be computed, and stays 0.
        """
        covered = bytes(copy.new[part.start : part.end])
        if kind not in (_ICMP, _IGMP):
            if part.length is None:
                return
            ends = _addresses_of(bytes(copy.new), part)
            covered = pseudo_header(*ends, kind, part.length) + covered
        value = checksum(covered)
        if part.start + offset + 2 <= part.end:
            copy.put(part.start + offset, (value or 0xFFFF * (kind == _UDP)).to_bytes(2))


def _addresses_of(data: bytes, part: _TransportPart) -> tuple[bytes, bytes]:
    middle = part.address + part.width
    return data[part.address : middle], data[middle : middle + part.width]


def _flow_of(copy: MaskedCopy, part: _TransportPart) -> Flow:
    ports = copy.number(part.start), copy.number(part.start + 2)
    ends = frozenset(zip(_addresses_of(copy.old, part), ports, strict=True))
    return Flow(ends, frozenset(ports))
