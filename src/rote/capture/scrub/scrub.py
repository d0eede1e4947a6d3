"""A copy of a capture that can be shown to others: identifiers are replaced, contents are zeros.

The copy begins as zeros. Headers and fields of known protocols are kept, and addresses and names
in them replaced, by the same ones in every packet and of the same length; checksums are corrected.
Of the file itself only times, lengths and link types are copied: no names, comments or secrets of a
pcapng. The copy appears when it is complete.
"""

import gzip
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple, cast

from rote.capture.read.compressed import detect_compression
from rote.capture.read.reader import Capture, open_capture
from rote.capture.scrub.payloads import Flow, Payloads
from rote.capture.scrub.pseudonyms import MaskedCopy, Pseudonyms
from rote.capture.synthetic.ethernet import (
    checksum,
    encode_link,
    encode_packet,
    pseudo_header,
)
from rote.errors import BadRequestError, DecodeError
from rote.platform.atomic_file import appearing

# ---- packets -------------------------------------------------------------------------------------

ETHERNET, NULL, LOOP, COOKED, COOKED_2 = 1, 0, 108, 113, 276
RAW = frozenset((12, 14, 101, 228, 229))
_VLAN = frozenset((0x8100, 0x88A8, 0x9100))
_IP, _IP6, _ARP = 0x0800, 0x86DD, 0x0806
_ICMP, _IGMP, _TCP, _UDP, _ICMP6, _NONE = 1, 2, 6, 17, 58, 59
_ROUTING, _FRAGMENT = 43, 44
_EXTENSIONS = frozenset((0, _ROUTING, _FRAGMENT, 60))
_QUOTABLE = _EXTENSIONS | {_TCP, _UDP, _ICMP6}
_ERRORS = {_ICMP: (3, 4, 5, 11, 12), _ICMP6: (1, 2, 3, 4)}
"""Types of ICMP messages that quote the packet that caused them."""


class _TransportPart(NamedTuple):
    """Where the transport header and the payload of an IP packet are."""

    start: int
    end: int
    """Where the captured bytes end."""
    length: int | None
    """Length on the wire; None in the first of several fragments."""
    address: int
    """Where the two addresses of the IP header begin."""
    width: int
    """Size of one address."""
    quoted: bool
    """Whether an ICMP error quotes the packet."""


class Rewriter:
    """Masks packets, with one set of pseudonyms for all."""

    def __init__(self, names: Pseudonyms) -> None:
        self.payloads = Payloads(names)
        self._names = names

    def rewrite(self, linktype: int, packet: bytes) -> bytes:
        """Return a packet with other names and addresses, and with zeros for contents."""
        copy = MaskedCopy(packet)
        try:
            self._mask_link(linktype, copy)
        except DecodeError:
            self.payloads.cleared["packets that end too early"] += 1
        return bytes(copy.new)

    # ---- links ----------------------------------------------------------------------------------

    def _mask_link(self, linktype: int, copy: MaskedCopy) -> None:
        """Mask the link header, then the packet in it."""
        offset, ethertype = 0, 0
        if linktype == ETHERNET:
            copy.replace(0, 6, self._names.hardware)
            copy.replace(6, 6, self._names.hardware)
            copy.keep(12, 2)  # the ethertype
            offset, ethertype = 14, copy.read_number(12)
            while ethertype in _VLAN:
                copy.keep(offset, 4)
                offset, ethertype = offset + 4, copy.read_number(offset + 2)
        elif linktype in RAW:
            ethertype = _IP if copy.read_number(0, 1) >> 4 == 4 else _IP6
        elif linktype in (NULL, LOOP):
            copy.keep(0, 4)  # the address family
            offset, ethertype = 4, _IP if copy.read_number(4, 1) >> 4 == 4 else _IP6
        elif linktype == COOKED:
            copy.keep(0, 6)  # direction, type and length of the hardware address
            copy.replace(6, min(copy.read_number(4), 8), self._names.hardware)
            copy.keep(14, 2)
            offset, ethertype = 16, copy.read_number(14)
        elif linktype == COOKED_2:
            copy.keep(0, 12)  # ethertype, interface, type, direction and length of the address
            copy.replace(12, min(copy.read_number(11, 1), 8), self._names.hardware)
            offset, ethertype = 20, copy.read_number(0)
        self._mask_network(copy, ethertype, offset)

    def _mask_network(self, copy: MaskedCopy, ethertype: int, offset: int) -> None:
        """Mask an IP or ARP packet; anything else stays zeros and is counted."""
        version = copy.read_number(offset, 1) >> 4
        if ethertype == _IP and version == 4:
            self._mask_ipv4(copy, offset)
        elif ethertype == _IP6 and version == 6:
            self._mask_ipv6(copy, offset)
        elif ethertype == _ARP and copy.read_number(offset + 4) == 0x0604:
            # Addresses of 6 and 4 bytes: those of the sender, then those of the target.
            copy.keep(offset, 8)
            for start in (offset + 8, offset + 18):
                copy.replace(start, 6, self._names.hardware)
                copy.replace(start + 6, 4, self._names.ipv4)
        else:
            self.payloads.cleared["unknown protocols"] += 1

    # ---- internet -------------------------------------------------------------------------------

    def _mask_ipv4(self, copy: MaskedCopy, offset: int, *, quoted: bool = False) -> None:
        """Replace the addresses of an IPv4 header, correct its checksum, and mask its content.

        `quoted` means that an ICMP error quotes the packet.
        """
        header_size = (copy.read_number(offset, 1) & 15) * 4
        total, fragment_field = copy.read_number(offset + 2), copy.read_number(offset + 6)
        # Only its checksum proves that quoted bytes are an IP header.
        is_damaged = quoted and checksum(copy.old[offset : offset + header_size]) != 0
        if header_size < 20 or offset + header_size > len(copy.old) or is_damaged:
            raise DecodeError("the IP header is incomplete or damaged")
        copy.keep(offset, 10)
        copy.replace(offset + 12, 4, self._names.ipv4)
        copy.replace(offset + 16, 4, self._names.ipv4)
        copy.put(offset + 10, checksum(bytes(copy.new[offset : offset + header_size])).to_bytes(2))
        end = offset + max(total, header_size) if total else len(copy.old)
        copy.end_at(end)
        has_more_fragments = fragment_field & 0x2000
        length = None if has_more_fragments else end - offset - header_size
        part = _TransportPart(
            offset + header_size, min(end, len(copy.old)), length, offset + 12, 4, quoted
        )
        self._mask_transport(copy, copy.old[offset + 9], part, is_first=not fragment_field & 0x1FFF)

    def _mask_ipv6(self, copy: MaskedCopy, offset: int, *, quoted: bool = False) -> None:
        """Replace the addresses of an IPv6 header, keep its extensions, and mask its content.

        `quoted` means that an ICMP error quotes the packet.
        """
        total, kind = copy.read_number(offset + 4), copy.read_number(offset + 6, 1)
        if offset + 40 > len(copy.old) or (quoted and kind not in _QUOTABLE):
            raise DecodeError("the IP header is incomplete or damaged")
        copy.keep(offset, 8)
        copy.replace(offset + 8, 16, self._names.ipv6)
        copy.replace(offset + 24, 16, self._names.ipv6)
        end = offset + 40 + total if total else len(copy.old)
        copy.end_at(end)
        start, first, more = offset + 40, True, False
        while kind in _EXTENSIONS:
            # Of the other extensions only the next header and the size stay: zeros are padding.
            copy.keep(start, {_FRAGMENT: 8, _ROUTING: 4}.get(kind, 2))
            size = 8
            if kind == _FRAGMENT:
                fragment_field = copy.read_number(start + 2)
                first, more = fragment_field < 8, bool(fragment_field & 1)
            else:
                size += 8 * copy.read_number(start + 1, 1)
            start, kind = start + size, copy.read_number(start, 1)
        length = None if more else max(end - start, 0)
        part = _TransportPart(start, min(end, len(copy.old)), length, offset + 8, 16, quoted)
        self._mask_transport(copy, kind, part, is_first=first)

    # ---- transports -----------------------------------------------------------------------------

    def _mask_transport(
        self, copy: MaskedCopy, kind: int, part: _TransportPart, *, is_first: bool
    ) -> None:
        """Mask what an IP packet carries; `kind` is the number of the protocol.

        Only the first fragment of a packet has a transport header; others become zeros.
        """
        if not is_first:
            self.payloads.cleared["IP fragments"] += 1
        elif kind in (_TCP, _UDP) and part.quoted:
            # The ports, and the length of UDP, as far as they are quoted.
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
        """Keep the UDP header, mask the payload, and correct the checksum."""
        offset = part.start
        copy.keep(offset, 6)  # ports and length
        stated = copy.read_number(offset + 4)
        # In the first of several fragments only the header states the length.
        length = stated if stated >= 8 else max(part.length or 0, part.end - offset)
        end = max(min(offset + length, part.end), offset + 8)
        payload = self.payloads.mask_datagram(_flow_of(copy, part), copy.old[offset + 8 : end])
        copy.put(offset + 8, payload)
        if copy.read_number(offset + 6) or part.width == 16:  # 0 in IPv4 means no checksum
            self._put_checksum(copy, _UDP, part._replace(end=end, length=length), 6)

    def _mask_tcp(self, copy: MaskedCopy, part: _TransportPart) -> None:
        """Keep the TCP header without its options, mask the payload, and correct the checksum."""
        offset = part.start
        copy.keep(offset, 16)
        copy.keep(offset + 18, 2)  # the urgent pointer, after the checksum
        header_size = (copy.read_number(offset + 12, 1) >> 4) * 4
        start = offset + header_size
        if header_size < 20 or start > part.end:
            raise DecodeError("a TCP header that ends too early")
        copy.put(
            start, self.payloads.mask_segment(_flow_of(copy, part), copy.old[start : part.end])
        )
        self._put_checksum(copy, _TCP, part, 16)

    def _mask_icmp(self, copy: MaskedCopy, kind: int, part: _TransportPart) -> None:
        """Keep type and code of an ICMP or IGMP message; mask the packet that an error quotes."""
        offset, message_type = part.start, copy.read_number(part.start, 1)
        copy.keep(offset, 2)
        if message_type in _ERRORS.get(kind, ()):
            self._mask_quoted_packet(copy, kind, offset + 8, part.end)
        self.payloads.cleared["contents of ICMP and IGMP"] += part.end > offset + 4
        self._put_checksum(copy, kind, part, 2)

    def _mask_quoted_packet(self, copy: MaskedCopy, kind: int, offset: int, end: int) -> None:
        """Mask the IP packet that an ICMP error quotes, as far as it was captured.

        `kind` is the protocol of the error: ICMP or ICMPv6.
        """
        inner = MaskedCopy(copy.old[offset:end])
        try:
            if kind == _ICMP and inner.read_number(0, 1) >> 4 == 4:
                self._mask_ipv4(inner, 0, quoted=True)
            elif kind == _ICMP6 and inner.read_number(0, 1) >> 4 == 6:
                self._mask_ipv6(inner, 0, quoted=True)
        except DecodeError:
            self.payloads.cleared["packets that end too early"] += 1
        copy.embed(offset, inner)

    def _put_checksum(self, copy: MaskedCopy, kind: int, part: _TransportPart, offset: int) -> None:
        """Write the checksum of the masked transport at `offset` of its header.

        Bytes that were not captured, or are in another fragment, count as zeros. Without the
        length, which the pseudo header contains, the checksum stays 0.
        """
        covered = bytes(copy.new[part.start : part.end])
        if kind not in (_ICMP, _IGMP):  # only these have no pseudo header
            if part.length is None:
                return
            addresses = _addresses_of(bytes(copy.new), part)
            covered = pseudo_header(*addresses, kind, part.length) + covered
        value = checksum(covered)
        if value == 0 and kind == _UDP:
            value = 0xFFFF  # 0 would mean that there is no checksum
        if part.start + offset + 2 <= part.end:
            copy.put(part.start + offset, value.to_bytes(2))


def _addresses_of(data: bytes, part: _TransportPart) -> tuple[bytes, bytes]:
    """Return the source and destination address of a packet."""
    middle = part.address + part.width
    return data[part.address : middle], data[middle : middle + part.width]


def _flow_of(copy: MaskedCopy, part: _TransportPart) -> Flow:
    ports = copy.read_number(part.start), copy.read_number(part.start + 2)
    ends = frozenset(zip(_addresses_of(copy.old, part), ports, strict=True))
    return Flow(ends, frozenset(ports))


# ---- files ---------------------------------------------------------------------------------------


@dataclass(slots=True)
class Scrubbed:
    """What was replaced, cleared and kept in a copy, as numbers."""

    packets: int = 0
    replaced: dict[str, dict[str, int]] = field(default_factory=dict)
    """By kind of identifier: how many `different` ones, and how many `times`."""
    cleared: dict[str, int] = field(default_factory=dict)
    """Number of packets that have zeros instead of some or all contents, by kind."""
    encrypted: dict[str, int] = field(default_factory=dict)
    """Number of packets whose encrypted contents were kept, by kind."""
    warnings: list[str] = field(default_factory=list)


def scrub(source: Path, target: Path, key: bytes | None = None) -> Scrubbed:
    """Write a copy of `source` without identifiers; the same key gives the same pseudonyms.

    Raises `BadRequestError` if a file cannot be read, `NotACaptureError` if it is no capture.
    """
    if target.exists() and source.exists() and target.samefile(source):
        raise BadRequestError(f"{target} is both input and output", "Choose another output file.")
    if source.exists() and not source.is_file():
        raise BadRequestError(f"{source} cannot be read: it is not a file")
    names, counts = Pseudonyms(key or secrets.token_bytes(32)), Scrubbed()
    rewriter = Rewriter(names)
    with (
        open_capture(source) as capture,
        appearing(target) as out,
        _compress_like(source, out) as sink,
    ):
        for piece in _rewrite_file(capture, rewriter, counts):
            sink.write(piece)
    counts.replaced = names.tally.document()
    counts.cleared = dict(+rewriter.payloads.cleared)
    counts.encrypted = dict(+rewriter.payloads.encrypted)
    counts.warnings = capture.warnings
    return counts


@contextmanager
def _compress_like(source: Path, out: BinaryIO) -> Iterator[IO[bytes]]:
    """Yield a file that writes to `out`: through gzip if the source is compressed in any format."""
    with source.open("rb") as file:
        compression = detect_compression(file.read(4))
    if not compression:
        yield out
        return
    with gzip.GzipFile(fileobj=out, mode="wb", mtime=0, filename="") as compressed:
        yield cast("IO[bytes]", compressed)


def _rewrite_file(capture: Capture, rewriter: Rewriter, counts: Scrubbed) -> Iterator[bytes]:
    """Yield the masked copy of a file piece by piece, in the same format: pcapng or pcap."""
    links: dict[int, int] = {}  # link types, with the number of their interface in a pcapng
    for records in capture:
        columns = (column.tolist() for column in records[1:])
        pcapng = capture.format == "pcapng"
        for start, size, original, time_ns, link in zip(*columns, strict=True):
            if link not in links:
                yield encode_link(link, pcapng=pcapng, first=not links)
                links[link] = len(links)
            counts.packets += 1
            packet = rewriter.rewrite(link, records.data[start : start + size].tobytes())
            yield encode_packet(packet, time_ns, original, pcapng=pcapng, interface=links[link])
    if not links:
        yield encode_link(ETHERNET, pcapng=capture.format == "pcapng")
