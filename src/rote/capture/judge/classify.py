"""Classifies each datagram by its structure, never by its port alone.

The tests run over columns of first bytes. Magic numbers and lengths decide most; where only a
checksum can (teaching frames, A1), the few candidates are checked one by one. What looks like media
is only a candidate here: `packet_facts.MediaStreams` confirms it by its sequence numbers.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.decode.dtls_numbering import RecordRows, split_into_records
from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import KeyParts, is_one_of
from rote.capture.read.packets import UDP, DatagramBatch, big_endian
from rote.capture.read.record_scan import Ints, column
from rote.errors import DecodeError
from rote.wire import discovery

Mask = NDArray[np.bool_]
Where = NDArray[np.intp]

STUN_COOKIE = 0x2112A442
_RTPS = int.from_bytes(b"RTPS")
_HTTP = tuple(int.from_bytes(word) for word in (b"GET ", b"POST", b"HTTP", b"HEAD", b"PUT "))
_TEACHING_OVERHEAD, _TEACHING_TYPES = 19, (0x17, 0x80, 0x81)  # 15 bytes of header, 4 of CRC
# Bytes 1 to 5 of a teaching frame, FE FD 00 01 00, in the number of bytes 0 to 7 shifted right by
# 16; and its bytes 8 to 11, 00 00 00 01, in the number of bytes 5 to 12.
_TEACHING_MASK, _TEACHING_HEAD = 0xFFFFFF_FFFF, 0xFEFD00_0100
_INDICATOR_MASK, _INDICATOR = 0xFFFF_FFFF_00, 0x0000_0001_00
_MDNS_GROUP = np.uint64(0xE00000FB)
_MDNS_PORT = 5353
# The sizes of all frames of an A1 or Go1: only datagrams of these sizes are worth a CRC.
A1_SIZES = (113, 129, 143, 256, 265, 610, 614, 771, 807, 1025, 1087)
_MAX_DNS_ENTRIES = 64
# Version negotiation, QUIC 1 and 2, and drafts 23 to 34.
_QUIC_VERSIONS = (0, 1, 0x6B3343CF, *range(0xFF000017, 0xFF000023))
_GOOGLE_QUIC = (0x513034, 0x513035, 0x543035)
"""The first three letters of Q043 to Q050, and of T050 and T051."""
_QUIC_MAX_ID, _QUIC_SHORTEST = 20, 21
_SSDP = tuple(int.from_bytes(text) for text in (b"M-SEARCH", b"NOTIFY *", b"HTTP/1.1"))
_XML = tuple(int.from_bytes(text) for text in (b"<?xm", b"<s:E", b"<soa", b"<SOA", b"<env"))
_NTP_PORT, _WSD_PORT, _DNS_PORT = 123, 3702, 53
_DHCP6_PORTS = (546, 547)
_DHCP_COOKIE, _DHCP_COOKIE_AT = 0x63825363, 236
_NETBIOS_LABEL = 32
_DNS_CLASSES = (1, 3, 4, 254, 255)


class ClassifiedBatch(NamedTuple):
    """The kinds of a batch, and the DTLS records that were found."""

    kinds: PacketKinds
    records: RecordRows


def classify(batch: DatagramBatch) -> ClassifiedBatch:
    """Return the kind of each datagram of a batch."""
    heads, size = batch.heads, batch.size
    kinds = np.zeros(size.size, np.uint8)
    first = big_endian(heads, 0, 8)
    # The order matters. Teaching frames are tested before DTLS, because both begin with 17 FE FD 00
    # and only a CRC tells them apart. Later tests consider only rows that are still 0.
    udp = batch.protocol == UDP
    if not udp.all():
        tcp = np.flatnonzero(~udp)
        kinds[tcp] = _classify_segments(batch.part(tcp), first[tcp])
    kinds[np.flatnonzero(udp & (batch.full == 0))] = PacketKind.EMPTY
    fields = first, big_endian(heads, 5, 8)
    kinds[_find_teaching_frames(batch, fields, kinds == 0)] = PacketKind.TEACHING
    version = first >> 40 & 0xFFFF
    may_be_dtls = ((version == 0xFEFD) | (version == 0xFEFF)) & (kinds == 0) & (size >= 13)
    records = split_into_records(batch, np.flatnonzero(may_be_dtls), fields)
    kinds[records.datagram] = PacketKind.DTLS
    others = np.flatnonzero(kinds == 0)
    if others.size:
        kinds[others] = _classify_others(batch.part(others), first[others])
    return ClassifiedBatch(kinds, records)


def _find_teaching_frames(
    batch: DatagramBatch, fields: tuple[Ints, Ints], candidates: Mask
) -> Where:
    """Return which candidates are documented teaching frames: those with a matching CRC.

    `fields` are the 64-bit numbers in bytes 0 to 7 and 5 to 12 of each datagram.
    """
    first, middle = fields
    has_fixed_bytes = ((first >> 16 & _TEACHING_MASK) == _TEACHING_HEAD) & candidates
    likely = np.flatnonzero(has_fixed_bytes & ((middle & _INDICATOR_MASK) == _INDICATOR))
    heads, size = batch.heads[likely], batch.size[likely]
    has_known_type = is_one_of(heads[:, 0], _TEACHING_TYPES) & (size == batch.full[likely])
    likely = likely[has_known_type & (big_endian(heads, 13) + _TEACHING_OVERHEAD == size)]
    starts, ends = batch.start[likely], batch.start[likely] + batch.size[likely] - 4
    stated = column(batch.data, ">u4")[ends]
    view = batch.data.data
    computed = [
        zlib.crc32(view[start:end])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    valid: Where = likely[stated == np.array(computed, np.uint32)]
    return valid


def _filter_by_payload(
    batch: DatagramBatch, candidates: Where, test: Callable[[bytes], bool]
) -> Where:
    """Return those of the candidates whose payload passes a test."""
    view = batch.data.data
    starts = batch.start[candidates]
    ends = starts + batch.size[candidates]
    passing = [
        index
        for index, start, end in zip(
            candidates.tolist(), starts.tolist(), ends.tolist(), strict=True
        )
        if test(bytes(view[start:end]))
    ]
    return np.array(passing, np.intp)


def _classify_others(batch: DatagramBatch, first: Ints) -> PacketKinds:
    """Return the kinds of datagrams that are neither DTLS nor teaching frames.

    `first` is the number in bytes 0 to 7 of each.
    """
    heads, size, full = batch.heads, batch.size, batch.full
    kinds = np.zeros(size.size, np.uint8)
    first_byte = heads[:, 0]
    # Each assignment overwrites the ones before it, so the order is from weak to strong evidence:
    # two bits, then headers with ranges, then names, checksums and magic numbers. The top two bits
    # of the first byte are a version: 1 is a short header of QUIC, 2 is RTP.
    kinds[(first_byte >> 6 == 1) & (size >= _QUIC_SHORTEST)] = PacketKind.QUIC_SHORT
    is_media = (first_byte >> 6 == 2) & (size >= 8)
    # RTCP has packet types 192 to 223, and states its length in words without the first.
    is_report = is_media & (heads[:, 1] >= 192) & (heads[:, 1] <= 223)
    is_report &= (big_endian(heads, 2) + 1) * 4 <= full
    kinds[is_media & ~is_report & (size >= 12)] = PacketKind.RTP
    kinds[is_report] = PacketKind.RTCP
    kinds[_is_quic(heads, size, first)] = PacketKind.QUIC
    dns = np.flatnonzero(_is_dns(heads, size, first))
    kinds[dns] = PacketKind.DNS
    kinds[dns[_is_mdns(batch.flow_addresses[dns], batch.flow_ports[dns])]] = PacketKind.MDNS
    kinds[dns[_is_netbios_name(heads[dns], 12)]] = PacketKind.NETBIOS
    _classify_services(batch, first, kinds)
    # A checksum costs one call per datagram; the size leaves few candidates.
    has_a1_size = is_one_of(full, A1_SIZES) & (size == full)
    kinds[_filter_by_payload(batch, np.flatnonzero(has_a1_size), _is_a1)] = PacketKind.A1
    kinds[(first >> 32 == _RTPS) & (heads[:, 4] == 2) & (size >= 20)] = PacketKind.RTPS
    json_objects = np.flatnonzero((first_byte == ord("{")) & (size == full))
    kinds[_filter_by_payload(batch, json_objects, _is_discovery)] = PacketKind.DISCOVERY
    length = first >> 32 & 0xFFFF
    # The cookie, a length in whole words, and a datagram that is as long as it says.
    is_stun = (first_byte < 4) & ((first & 0xFFFF_FFFF) == STUN_COOKIE) & (length % 4 == 0)
    kinds[is_stun & (length + 20 == full) & (size >= 20)] = PacketKind.STUN
    return kinds


def _is_a1(payload: bytes) -> bool:
    """Whether a payload is a frame of an A1 or Go1, with a valid CRC."""
    from rote.wire.a1 import codec as a1  # noqa: PLC0415 - rare, and slow to load

    frame = a1.inspect(payload)
    return frame.seal is not None and frame.fault is not a1.FrameFault.HEAD


def _is_discovery(payload: bytes) -> bool:
    if discovery.NAME.encode() not in payload:
        return False
    try:
        document = discovery.decode_json_object(payload, "discovery")
    except DecodeError:
        return False
    return document.get("name") == discovery.NAME


def _read_ports(batch: DatagramBatch) -> tuple[Ints, Ints]:
    """Return source and destination ports, which are the last 32 bits of `flow_ports`."""
    packed = batch.flow_ports.view(np.int64)
    return packed >> 16 & 0xFFFF, packed & 0xFFFF


def _is_quic(heads: NDArray[np.uint8], size: Ints, first: Ints) -> Mask:
    """Return which rows have QUIC's long header: both top bits, a known version, a short id."""
    # Byte 0 has flags, bytes 1 to 4 the version, byte 5 the length of the connection id.
    is_long_header = (
        (heads[:, 0] >= 0x80) & (size >= _QUIC_SHORTEST) & (heads[:, 5] <= _QUIC_MAX_ID)
    )
    selected = np.flatnonzero(is_long_header)
    version = first[selected] >> 24 & 0xFFFF_FFFF
    # The second bit is set as well, except in version negotiation, which is version 0.
    has_both_bits = (heads[selected, 0] >= 0xC0) | (version == 0)
    has_known_version = is_one_of(version, _QUIC_VERSIONS) & has_both_bits
    # The mask is narrowed in place, so that the version is compared only where the header fits.
    is_long_header[selected] = has_known_version | is_one_of(version >> 8, _GOOGLE_QUIC)
    return np.asarray(is_long_header)


def _is_netbios_name(heads: NDArray[np.uint8], offset: int) -> Mask:
    """Return which rows have a NetBIOS name at `offset`: a label of 32 letters from A to P."""
    is_name = heads[:, offset] == _NETBIOS_LABEL
    selected = np.flatnonzero(is_name)
    letters = heads[selected, offset + 1 : offset + 1 + _NETBIOS_LABEL]
    is_name[selected] = ((letters >= ord("A")) & (letters <= ord("P"))).all(axis=1)
    return np.asarray(is_name)


def _classify_services(batch: DatagramBatch, first: Ints, kinds: PacketKinds) -> None:
    """Set the kinds of network services. Without a magic number, the port must agree too."""
    heads, size, first_byte = batch.heads, batch.size, batch.heads[:, 0]
    source, destination = _read_ports(batch)
    kinds[is_one_of(first, _SSDP)] = PacketKind.SSDP
    kinds[is_one_of(first >> 32, _XML) & (destination == _WSD_PORT)] = PacketKind.WSD
    kinds[is_one_of(first >> 32, _XML) & (source == _WSD_PORT)] = PacketKind.WSD
    has_ntp_port = (source == _NTP_PORT) | (destination == _NTP_PORT)
    # NTP: the first byte has the version and the mode. A message has 48 bytes; only control
    # messages, modes 6 and 7, are shorter.
    version, mode = first_byte >> 3 & 7, first_byte & 7
    is_ntp = has_ntp_port & (version >= 1) & (version <= 4) & (mode >= 1)
    kinds[is_ntp & ((size >= 48) | ((mode >= 6) & (size >= 8)))] = PacketKind.NTP
    # DHCP: a request (1) or reply (2), with a hardware address of at most 16 bytes.
    may_be_dhcp = (
        ((first_byte == 1) | (first_byte == 2))
        & (heads[:, 2] <= 16)
        & (size >= _DHCP_COOKIE_AT + 4)
    )
    which = np.flatnonzero(may_be_dhcp)
    cookie = column(batch.data, ">u4")[batch.start[which] + _DHCP_COOKIE_AT]
    kinds[which[cookie == _DHCP_COOKIE]] = PacketKind.DHCP
    # DHCPv6 has only a type of message, 1 to 36, and NetBIOS datagrams one of 0x10 to 0x16.
    is_dhcp6 = is_one_of(source, _DHCP6_PORTS) & is_one_of(destination, _DHCP6_PORTS)
    kinds[is_dhcp6 & (first_byte >= 1) & (first_byte <= 36) & (size >= 4)] = PacketKind.DHCP
    is_netbios = (first_byte >= 0x10) & (first_byte <= 0x16) & _is_netbios_name(heads, 14)
    kinds[is_netbios] = PacketKind.NETBIOS


def _is_dns(heads: NDArray[np.uint8], size: Ints, first: Ints) -> Mask:
    """Return which rows have a plausible DNS header, small counts, and a name made of labels."""
    # `first` is the 8 bytes: id, flags, number of questions, number of answers. DNS has no opcode
    # above 5, and its reserved bit 0x40 is 0.
    flags = first >> 32 & 0xFFFF
    counts = np.stack(
        (first >> 16 & 0xFFFF, first & 0xFFFF, big_endian(heads, 8), big_endian(heads, 10))
    )
    is_response = flags >> 15 == 1
    is_plausible = (size >= 17) & (flags >> 11 & 0xF <= 5) & (flags & 0x40 == 0)
    is_plausible &= (counts <= _MAX_DNS_ENTRIES).all(axis=0) & (counts.sum(axis=0) > 0)
    is_plausible &= is_response | (counts[0] > 0)
    selected = np.flatnonzero(is_plausible)
    is_plausible[selected] = _has_name(heads[selected], np.minimum(size[selected], heads.shape[1]))
    return np.asarray(is_plausible)


def _has_name(heads: NDArray[np.uint8], size: Ints) -> Mask:
    """Return which rows have valid labels after the DNS header, as far as the rows reach."""
    # Each iteration reads one label of all rows at once: `offset` is where each row's next label
    # begins, and `is_unfinished` marks the rows whose name has not ended.
    row = np.arange(heads.shape[0])
    offset = np.full(heads.shape[0], 12)
    is_valid = np.ones(heads.shape[0], np.bool_)
    is_unfinished = is_valid.copy()
    last = heads.shape[1] - 1
    for _ in range(last):
        label_size = heads[row, np.minimum(offset, last)].astype(np.int64)
        is_unfinished &= offset < size
        # 1 to 63 is the length of a label, 192 and above a pointer, 0 the end; the rest is not
        # allowed.
        is_valid &= ~(is_unfinished & (label_size > 63) & (label_size < 192))
        is_unfinished &= is_valid & (label_size > 0) & (label_size < 64)
        if not is_unfinished.any():
            break
        offset = np.where(is_unfinished, offset + 1 + label_size, offset)
    ended = np.minimum(offset, last)
    # If the name ends within the head, type and class follow: the class must be a known one.
    visible = (heads[row, ended] == 0) & (ended + 5 <= size)
    # mDNS uses the top bit of the class for something else.
    high = heads[row, np.minimum(ended + 3, last)] & 0x7F
    low = heads[row, np.minimum(ended + 4, last)]
    return np.asarray(is_valid & (~visible | ((high == 0) & is_one_of(low, _DNS_CLASSES))))


def _is_mdns(flow_addresses: KeyParts, flow_ports: KeyParts) -> Mask:
    """Return which DNS messages go to the mDNS group, or from or to its port."""
    ports = flow_ports & np.uint64(0xFFFF), flow_ports >> np.uint64(16) & np.uint64(0xFFFF)
    group = flow_addresses & np.uint64(0xFFFF_FFFF) == _MDNS_GROUP
    return np.asarray(group | (ports[0] == _MDNS_PORT) | (ports[1] == _MDNS_PORT))


def _classify_segments(batch: DatagramBatch, first: Ints) -> PacketKinds:
    """Return the kinds of TCP segments: TLS, HTTP or DNS if they begin like it, otherwise TCP.

    `first` is the number in bytes 0 to 7 of each payload.
    """
    size, full = batch.size, batch.full
    kinds = np.full(size.size, PacketKind.TCP, np.uint8)
    kinds[is_one_of(first >> 32, _HTTP) & (size >= 4)] = PacketKind.HTTP
    content, version, length = first >> 56, first >> 40 & 0xFFFF, first >> 24 & 0xFFFF
    # The header of a record: content type, version, length. `first` is signed, but the types of TLS
    # are small, so the sign does not matter.
    is_tls = (content >= 20) & (content <= 24) & (version >= 0x0300) & (version <= 0x0304)
    kinds[is_tls & (length > 0) & (length <= 18_432) & (size >= 5)] = PacketKind.TLS
    # In TCP a DNS message follows its length. It fills the segment, or the port is that of DNS.
    stated = (first >> 48 & 0xFFFF) + 2
    candidates = np.flatnonzero((stated <= full) & (size >= 19))
    if candidates.size:
        source, destination = _read_ports(batch)
        has_dns_port = (source[candidates] == _DNS_PORT) | (destination[candidates] == _DNS_PORT)
        candidates = candidates[has_dns_port | (stated[candidates] == full[candidates])]
    if candidates.size:
        heads = batch.heads[candidates, 2:]
        is_dns = _is_dns(heads, size[candidates] - 2, big_endian(batch.heads[candidates], 2, 8))
        kinds[candidates[is_dns]] = PacketKind.DNS
    kinds[full == 0] = PacketKind.EMPTY
    return kinds
