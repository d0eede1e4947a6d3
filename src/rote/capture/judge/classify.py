"""What each datagram is, by its structure and never by its port alone.

The tests run over columns of first bytes. Magic numbers and lengths decide most; where only a
checksum can (teaching frames, A1), the few candidates are checked one by one. What looks like media
is only a candidate here: media.py confirms it by sequence numbers from packet to packet.
"""

import zlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.capture.decode.dtls_numbering import RecordRows, split
from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import KeyParts, among
from rote.capture.read.packets import UDP, DatagramBatch, big
from rote.capture.read.record_scan import Ints, column
from rote.errors import DecodeError
from rote.wire import discovery

Mask = NDArray[np.bool_]
Where = NDArray[np.intp]

STUN_COOKIE = 0x2112A442
_RTPS = int.from_bytes(b"RTPS")
_HTTP = tuple(int.from_bytes(word) for word in (b"GET ", b"POST", b"HTTP", b"HEAD", b"PUT "))
_TEACHING_OVERHEAD, _TEACHING_TYPES = 19, (0x17, 0x80, 0x81)
# Bytes 1 to 5 of a teaching frame, FE FD 00 01 00, in the number of bytes 0 to 7 shifted right by
# 16; and its bytes 8 to 11, 00 00 00 01, in the number of bytes 5 to 12.
_TEACHING_MASK, _TEACHING_HEAD = 0xFFFFFF_FFFF, 0xFEFD00_0100
_INDICATOR_MASK, _INDICATOR = 0xFFFF_FFFF_00, 0x0000_0001_00
_MDNS_GROUP = np.uint64(0xE00000FB)
_MDNS_PORT = 5353
# The sizes of all frames of an A1 or Go1: only datagrams of these sizes are worth a CRC.
A1_SIZES = (113, 129, 143, 256, 265, 610, 614, 771, 807, 1025, 1087)
_MAX_ITEMS = 64
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
_CLASSES = (1, 3, 4, 254, 255)


class NamedBatch(NamedTuple):
    """The kinds of a batch, and the DTLS records that were found."""

    kinds: PacketKinds
    records: RecordRows


def name(batch: DatagramBatch) -> NamedBatch:
    """Return the kind of each datagram of a batch."""
    heads, size = batch.heads, batch.size
    kinds = np.zeros(size.size, np.uint8)
    first = big(heads, 0, 8)
    # The order decides. Teaching frames are tested before DTLS, because both begin with 17 FE FD 00
    # and only a CRC tells them apart. Every later test looks only at rows that are still 0.
    udp = batch.protocol == UDP
    if not udp.all():
        tcp = np.flatnonzero(~udp)
        kinds[tcp] = _classify_segments(batch.part(tcp), first[tcp])
    kinds[np.flatnonzero(udp & (batch.full == 0))] = PacketKind.EMPTY
    fields = first, big(heads, 5, 8)
    kinds[_find_teaching_frames(batch, fields, kinds == 0)] = PacketKind.TEACHING
    version = first >> 40 & 0xFFFF
    likely = ((version == 0xFEFD) | (version == 0xFEFF)) & (kinds == 0) & (size >= 13)
    records = split(batch, np.flatnonzero(likely), fields)
    kinds[records.datagram] = PacketKind.DTLS
    rest = np.flatnonzero(kinds == 0)
    if rest.size:
        kinds[rest] = _classify_others(batch.part(rest), first[rest])
    return NamedBatch(kinds, records)


def _find_teaching_frames(batch: DatagramBatch, fields: tuple[Ints, Ints], open_: Mask) -> Where:
    """Return the datagrams that are documented frames: those with a matching CRC. The rest
    is DTLS.
    """
    first, middle = fields
    like = ((first >> 16 & _TEACHING_MASK) == _TEACHING_HEAD) & open_
    likely = np.flatnonzero(like & ((middle & _INDICATOR_MASK) == _INDICATOR))
    heads, size = batch.heads[likely], batch.size[likely]
    sound = among(heads[:, 0], _TEACHING_TYPES) & (size == batch.full[likely])
    likely = likely[sound & (big(heads, 13) + _TEACHING_OVERHEAD == size)]
    starts, ends = batch.start[likely], batch.start[likely] + batch.size[likely] - 4
    stated = column(batch.data, ">u4")[ends]
    view = batch.data.data
    computed = [
        zlib.crc32(view[start:end])
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
    ]
    valid: Where = likely[stated == np.array(computed, np.uint32)]
    return valid


def _filter_by_payload(batch: DatagramBatch, likely: Where, test: Callable[[bytes], bool]) -> Where:
    view = batch.data.data
    starts = batch.start[likely]
    ends = starts + batch.size[likely]
    good = [
        index
        for index, start, end in zip(likely.tolist(), starts.tolist(), ends.tolist(), strict=True)
        if test(bytes(view[start:end]))
    ]
    return np.array(good, np.intp)


def _classify_others(batch: DatagramBatch, first: Ints) -> PacketKinds:
    """Return the kinds of what is neither DTLS nor a teaching frame."""
    heads, size, full = batch.heads, batch.size, batch.full
    kinds = np.zeros(size.size, np.uint8)
    top = heads[:, 0]
    # Each assignment overwrites the ones before it, so the order is from weak to strong evidence:
    # two bits, then headers with ranges, then names, checksums and magic numbers. `top >> 6` are
    # the version bits: 1 is a short header of QUIC, 2 is RTP.
    kinds[(top >> 6 == 1) & (size >= _QUIC_SHORTEST)] = PacketKind.QUIC_SHORT
    media = (top >> 6 == 2) & (size >= 8)
    # RTCP has packet types 192 to 223, and states its length in words without the first.
    report = media & (heads[:, 1] >= 192) & (heads[:, 1] <= 223)
    report &= (big(heads, 2) + 1) * 4 <= full
    kinds[media & ~report & (size >= 12)] = PacketKind.RTP
    kinds[report] = PacketKind.RTCP
    kinds[_is_quic(heads, size, first)] = PacketKind.QUIC
    named = np.flatnonzero(_is_dns(heads, size, first))
    kinds[named] = PacketKind.DNS
    kinds[named[_is_mdns(batch.flow_a[named], batch.flow_b[named])]] = PacketKind.MDNS
    kinds[named[_is_netbios_name(heads[named], 12)]] = PacketKind.NETBIOS
    _name_services(batch, first, kinds)
    # A checksum costs one call per datagram; the size leaves few candidates.
    sized = among(full, A1_SIZES) & (size == full)
    kinds[_filter_by_payload(batch, np.flatnonzero(sized), _is_a1)] = PacketKind.A1
    kinds[(first >> 32 == _RTPS) & (heads[:, 4] == 2) & (size >= 20)] = PacketKind.RTPS
    objects = np.flatnonzero((top == ord("{")) & (size == full))
    kinds[_filter_by_payload(batch, objects, _is_discovery)] = PacketKind.DISCOVERY
    length = first >> 32 & 0xFFFF
    # The cookie, a length in whole words, and a datagram that is as long as it says.
    stun = (top < 4) & ((first & 0xFFFF_FFFF) == STUN_COOKIE) & (length % 4 == 0)
    kinds[stun & (length + 20 == full) & (size >= 20)] = PacketKind.STUN
    return kinds


def _is_a1(payload: bytes) -> bool:
    from rote.wire.a1 import codec as a1  # noqa: PLC0415 - only where there is a datagram of such a length

    frame = a1.inspect(payload)
    return frame.seal is not None and frame.fault is not a1.FrameFault.HEAD


def _is_discovery(payload: bytes) -> bool:
    if discovery.NAME.encode() not in payload:
        return False
    try:
        document = discovery.json_object(payload, "discovery")
    except DecodeError:
        return False
    return document.get("name") == discovery.NAME


def _read_ports(batch: DatagramBatch) -> tuple[Ints, Ints]:
    """Return source and destination ports."""
    both = batch.flow_b.view(np.int64)
    return both >> 16 & 0xFFFF, both & 0xFFFF


def _is_quic(heads: NDArray[np.uint8], size: Ints, first: Ints) -> Mask:
    """Whether it has a long header: its two top bits, a known version, a plausible
    connection id.
    """
    long = (heads[:, 0] >= 0x80) & (size >= _QUIC_SHORTEST) & (heads[:, 5] <= _QUIC_MAX_ID)
    which = np.flatnonzero(long)
    version = first[which] >> 24 & 0xFFFF_FFFF
    known = among(version, _QUIC_VERSIONS) & ((heads[which, 0] >= 0xC0) | (version == 0))
    # The mask is narrowed in place, so that the version is compared only where the header fits.
    long[which] = known | among(version >> 8, _GOOGLE_QUIC)
    return np.asarray(long)


def _is_netbios_name(heads: NDArray[np.uint8], at: int) -> Mask:
    """Whether there is a label of 32 letters from A to P, as far as the heads reach."""
    found = heads[:, at] == _NETBIOS_LABEL
    which = np.flatnonzero(found)
    letters = heads[which, at + 1 : at + 1 + _NETBIOS_LABEL]
    found[which] = ((letters >= ord("A")) & (letters <= ord("P"))).all(axis=1)
    return np.asarray(found)


def _name_services(batch: DatagramBatch, first: Ints, kinds: PacketKinds) -> None:
    """Set the kinds of network services. Without a magic number, the port must agree too."""
    heads, size, top = batch.heads, batch.size, batch.heads[:, 0]
    source, destination = _read_ports(batch)
    kinds[among(first, _SSDP)] = PacketKind.SSDP
    kinds[among(first >> 32, _XML) & (destination == _WSD_PORT)] = PacketKind.WSD
    kinds[among(first >> 32, _XML) & (source == _WSD_PORT)] = PacketKind.WSD
    either = (source == _NTP_PORT) | (destination == _NTP_PORT)
    version, mode = top >> 3 & 7, top & 7
    clock = either & (version >= 1) & (version <= 4) & (mode >= 1)
    kinds[clock & ((size >= 48) | ((mode >= 6) & (size >= 8)))] = PacketKind.NTP
    likely = ((top == 1) | (top == 2)) & (heads[:, 2] <= 16) & (size >= _DHCP_COOKIE_AT + 4)
    which = np.flatnonzero(likely)
    cookie = column(batch.data, ">u4")[batch.start[which] + _DHCP_COOKIE_AT]
    kinds[which[cookie == _DHCP_COOKIE]] = PacketKind.DHCP
    sixth = among(source, _DHCP6_PORTS) & among(destination, _DHCP6_PORTS)
    kinds[sixth & (top >= 1) & (top <= 36) & (size >= 4)] = PacketKind.DHCP
    datagrams = (top >= 0x10) & (top <= 0x16) & _is_netbios_name(heads, 14)
    kinds[datagrams] = PacketKind.NETBIOS


def _is_dns(heads: NDArray[np.uint8], size: Ints, first: Ints) -> Mask:
    """Whether there is a plausible header, small counts, and a name made of labels."""
    # `first` is the 8 bytes: id, flags, number of questions, number of answers. Opcode above 5, or
    # the reserved bit 0x40, means that it is no DNS.
    flags = first >> 32 & 0xFFFF
    counts = np.stack((first >> 16 & 0xFFFF, first & 0xFFFF, big(heads, 8), big(heads, 10)))
    response = flags >> 15 == 1
    sane = (size >= 17) & (flags >> 11 & 0xF <= 5) & (flags & 0x40 == 0)
    sane &= (counts <= _MAX_ITEMS).all(axis=0) & (counts.sum(axis=0) > 0)
    sane &= response | (counts[0] > 0)
    which = np.flatnonzero(sane)
    sane[which] = _has_name(heads[which], np.minimum(size[which], heads.shape[1]))
    return np.asarray(sane)


def _has_name(heads: NDArray[np.uint8], size: Ints) -> Mask:
    """Whether valid labels follow the header, as far as the heads reach."""
    # One label per turn, for all rows at once: `at` is where each row's next label begins, and
    # `walking` are the rows whose name has not ended.
    row = np.arange(heads.shape[0])
    at = np.full(heads.shape[0], 12)
    good = np.ones(heads.shape[0], np.bool_)
    walking = good.copy()
    last = heads.shape[1] - 1
    for _ in range(last):
        step = heads[row, np.minimum(at, last)].astype(np.int64)
        walking &= at < size
        # 1 to 63 is the length of a label, 192 and above a pointer, 0 the end; the rest is not
        # allowed.
        good &= ~(walking & (step > 63) & (step < 192))
        walking &= good & (step > 0) & (step < 64)
        if not walking.any():
            break
        at = np.where(walking, at + 1 + step, at)
    ended = np.minimum(at, last)
    # If the name ends within the head, type and class follow: the class must be a known one.
    visible = (heads[row, ended] == 0) & (ended + 5 <= size)
    # mDNS uses the top bit of the class for something else.
    high = heads[row, np.minimum(ended + 3, last)] & 0x7F
    low = heads[row, np.minimum(ended + 4, last)]
    return np.asarray(good & (~visible | ((high == 0) & among(low, _CLASSES))))


def _is_mdns(flow_a: KeyParts, flow_b: KeyParts) -> Mask:
    """Whether a DNS message goes to the group for mDNS, or between its ports."""
    ports = flow_b & np.uint64(0xFFFF), flow_b >> np.uint64(16) & np.uint64(0xFFFF)
    group = flow_a & np.uint64(0xFFFF_FFFF) == _MDNS_GROUP
    return np.asarray(group | (ports[0] == _MDNS_PORT) | (ports[1] == _MDNS_PORT))


def _classify_segments(batch: DatagramBatch, first: Ints) -> PacketKinds:
    """Return the kinds of TCP segments: those that begin with TLS, HTTP or DNS."""
    size, full = batch.size, batch.full
    kinds = np.full(size.size, PacketKind.TCP, np.uint8)
    kinds[among(first >> 32, _HTTP) & (size >= 4)] = PacketKind.HTTP
    content, version, length = first >> 56, first >> 40 & 0xFFFF, first >> 24 & 0xFFFF
    # The top byte of a signed number; types of TLS are small, so the sign does not matter.
    tls = (content >= 20) & (content <= 24) & (version >= 0x0300) & (version <= 0x0304)
    kinds[tls & (length > 0) & (length <= 18_432) & (size >= 5)] = PacketKind.TLS
    # In TCP a DNS message follows its length. It fills the segment, or the port is that of DNS.
    stated = (first >> 48 & 0xFFFF) + 2
    which = np.flatnonzero((stated <= full) & (size >= 19))
    if which.size:
        source, destination = _read_ports(batch)
        port = (source[which] == _DNS_PORT) | (destination[which] == _DNS_PORT)
        which = which[port | (stated[which] == full[which])]
    if which.size:
        heads = batch.heads[which, 2:]
        is_dns = _is_dns(heads, size[which] - 2, big(batch.heads[which], 2, 8))
        kinds[which[is_dns]] = PacketKind.DNS
    kinds[full == 0] = PacketKind.EMPTY
    return kinds
