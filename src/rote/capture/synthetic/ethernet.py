"""Packets made from datagrams, with right checksums, and capture files made from packets."""

import struct
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

from rote.capture.read.datagram import Datagram
from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing

ETHERNET = 1
_IPV4 = struct.Struct(">BBHHHBBH4s4s")
_IPV6 = struct.Struct(">IHBB16s16s")
_PCAP_HEAD = struct.Struct("<IHHiIII")
_PCAP_RECORD = struct.Struct("<IIII")
_UDP = 17
_SNAPLEN = 262_144


def checksum(data: bytes, start: int = 0) -> int:
    """Return the checksum of the Internet protocols: the complement of the sum of 16-bit words."""
    total: int = start + sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def pseudo_header(source: bytes, destination: bytes, protocol: int, size: int) -> bytes:
    """Return what a transport's checksum covers in addition to the transport's own bytes."""
    if len(source) == 4:
        return source + destination + struct.pack(">BBH", 0, protocol, size)
    return source + destination + struct.pack(">II", size, protocol)


def _hardware_address(address: IPv4Address | IPv6Address) -> bytes:
    """Return a locally administered hardware address for an IP address."""
    if address.is_multicast:
        return b"\x01\0\x5e" + (address.packed[-3] & 0x7F).to_bytes() + address.packed[-2:]
    return b"\x02\0" + address.packed[-4:]


def udp_frame(datagram: Datagram, number: int = 0) -> bytes:
    """Return a datagram in UDP, in IP, in an Ethernet frame."""
    source, destination = (ip_address(end[0]) for end in datagram[1:3])
    size = 8 + len(datagram.payload)
    head = struct.pack(">HHHH", datagram.source[1], datagram.destination[1], size, 0)
    pseudo = pseudo_header(source.packed, destination.packed, _UDP, size)
    sum_ = checksum(pseudo + head + datagram.payload) or 0xFFFF
    udp = head[:6] + sum_.to_bytes(2) + datagram.payload
    if source.version == 4:
        ends = source.packed, destination.packed
        blank = _IPV4.pack(0x45, 0, 20 + size, number & 0xFFFF, 0x4000, 64, _UDP, 0, *ends)
        internet = blank[:10] + checksum(blank).to_bytes(2) + blank[12:]
        kind = 0x0800
    else:
        internet = _IPV6.pack(6 << 28, size, _UDP, 64, source.packed, destination.packed)
        kind = 0x86DD
    return (
        _hardware_address(destination)
        + _hardware_address(source)
        + kind.to_bytes(2)
        + internet
        + udp
    )


def write(path: Path, datagrams: Iterable[Datagram]) -> int:
    """Write a capture of these datagrams, as pcapng if the name ends so; return their number."""
    ng = path.suffix == ".pcapng"
    count = 0
    with appearing(path) as file:
        file.write(_ng_start() if ng else _PCAP_HEAD.pack(0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN, 1))
        for datagram in datagrams:
            if len(datagram.payload) > 65_507:
                raise BadRequestError(
                    f"a datagram of {len(datagram.payload)} bytes fits into no packet"
                )
            frame = udp_frame(datagram, count)
            file.write((_ng_packet if ng else _pcap_packet)(datagram.time_ns, frame))
            count += 1
    return count


def _pcap_packet(time_ns: int, frame: bytes) -> bytes:
    seconds, rest = divmod(time_ns, 10**9)
    return _PCAP_RECORD.pack(seconds, rest, len(frame), len(frame)) + frame


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Return a block of a pcapng file."""
    body += bytes(-len(body) % 4)
    size = 12 + len(body)
    return struct.pack(order + "II", kind, size) + body + struct.pack(order + "I", size)


def _ng_start() -> bytes:
    section = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    nanoseconds = struct.pack("<HHB3xHH", 9, 1, 9, 0, 0)
    interface = struct.pack("<HHI", ETHERNET, 0, _SNAPLEN) + nanoseconds
    return section + block(1, interface)


def _ng_packet(time_ns: int, frame: bytes) -> bytes:
    high, low = divmod(time_ns, 2**32)
    return block(6, struct.pack("<IIIII", 0, high, low, len(frame), len(frame)) + frame)
