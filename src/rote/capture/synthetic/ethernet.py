"""Builds packets with valid checksums from datagrams, and writes them as capture files."""

import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from rote.capture.model import Datagram
from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing

ETHERNET = 1
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_UDP = 17
_SNAPLEN = 262_144


def checksum(data: bytes, start: int = 0) -> int:
    """Return the checksum of the Internet protocols: the complement of the sum of 16-bit words.

    `start` is added to the sum. Over data with a valid checksum the result is 0.
    """
    total: int = start + sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(source: bytes, destination: bytes, protocol: int, size: int) -> bytes:
    """Return the bytes that the checksum of UDP or TCP covers in addition to the segment.

    `size` is that of the segment; the addresses are packed, of IPv4 or IPv6.
    """
    if len(source) == 4:
        return source + destination + struct.pack(">BBH", 0, protocol, size)
    return source + destination + struct.pack(">II", size, protocol)


def _make_hardware_address(address: IPv4Address | IPv6Address) -> bytes:
    """Return a hardware address for an IP address: a group's own, or a locally administered one."""
    if address.is_multicast:
        return b"\x01\0\x5e" + (address.packed[-3] & 0x7F).to_bytes() + address.packed[-2:]
    return b"\x02\0" + address.packed[-4:]


def udp_frame(datagram: Datagram, number: int = 0) -> bytes:
    """Return a datagram as an Ethernet frame with IP and UDP headers; `number` is that of IPv4."""
    source, destination = (ip_address(end[0]) for end in datagram[1:3])
    size = 8 + len(datagram.payload)
    head = struct.pack(">HHHH", datagram.source[1], datagram.destination[1], size, 0)
    pseudo = pseudo_header(source.packed, destination.packed, _UDP, size)
    udp_checksum = checksum(pseudo + head + datagram.payload) or 0xFFFF
    udp = head[:6] + udp_checksum.to_bytes(2) + datagram.payload
    if source.version == 4:
        addresses = source.packed, destination.packed
        blank = _IPV4.pack(0x45, 0, 20 + size, number & 0xFFFF, 0x4000, 64, _UDP, 0, *addresses)
        internet = blank[:10] + checksum(blank).to_bytes(2) + blank[12:]
        ethertype = 0x0800
    else:
        internet = _IPV6.pack(6 << 28, size, _UDP, 64, source.packed, destination.packed)
        ethertype = 0x86DD
    return (
        _make_hardware_address(destination)
        + _make_hardware_address(source)
        + ethertype.to_bytes(2)
        + internet
        + udp
    )


def write(path: Path, datagrams: Iterable[Datagram]) -> int:
    """Write datagrams as a pcapng or pcap, depending on the file's suffix; return their number."""
    pcapng = path.suffix == ".pcapng"
    count = 0
    with appearing(path) as file:
        file.write(encode_link(ETHERNET, pcapng=pcapng))
        for datagram in datagrams:
            size = len(datagram.payload)
            if size > 65_507:
                raise BadRequestError(f"a datagram of {size} bytes is too long for UDP")
            frame = udp_frame(datagram, count)
            file.write(encode_packet(frame, datagram.time_ns, len(frame), pcapng=pcapng))
            count += 1
    return count


def encode_link(linktype: int, *, pcapng: bool, first: bool = True) -> bytes:
    """Return the description of a link type, which comes before its packets in a file.

    In a pcap that is the header of the file. In a pcapng it is an interface; before the `first`
    one, the file begins with a section. Times are in nanoseconds.
    """
    if not pcapng:
        return struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN, linktype)
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) if first else b""
    resolution = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)  # option 9: 10 to the power of -9 seconds
    return section + block(1, struct.pack("<HHI", linktype, 0, _SNAPLEN) + resolution)


def encode_packet(
    packet: bytes, time_ns: int, original_size: int, *, pcapng: bool, interface: int = 0
) -> bytes:
    """Return a packet as it is in a file, with its time and its size before it was cut off."""
    sizes = len(packet), original_size
    if pcapng:
        time = time_ns >> 32 & 0xFFFF_FFFF, time_ns & 0xFFFF_FFFF
        return block(6, struct.pack("<IIIII", interface, *time, *sizes) + packet)
    seconds, nanoseconds = divmod(time_ns, 10**9)
    return struct.pack("<IIII", seconds & 0xFFFF_FFFF, nanoseconds, *sizes) + packet


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a block of a pcapng file: its type, length, padded body and length again."""
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)
