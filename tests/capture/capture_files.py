"""Captures written by hand: every link, both formats, any damage."""

import random
import struct
from collections.abc import Callable, Iterable
from ipaddress import ip_address
from pathlib import Path

from rote.wire.packets import stun

START_NS = 1_769_441_304_700_721_000
PHONE, ROBOT = ("10.215.173.1", 55371), ("192.168.137.164", 49504)
PHONE6, ROBOT6 = ("2001:db8::1", 55371), ("2001:db8:1::a4", 49504)
Packet = tuple[int, bytes]
End = tuple[str, int]


# ---- packets --------------------------------------------------------------------------------


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f">{len(data) // 2}H", data[: len(data) // 2 * 2]))
    if len(data) % 2:
        total += data[-1] << 8
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ip4(
    source: str,
    destination: str,
    protocol: int,
    body: bytes,
    *,
    fragment: int = 0,
    number: int = 1,
    options: bytes = b"",
) -> bytes:
    words = 5 + len(options) // 4
    ends = ip_address(source).packed + ip_address(destination).packed
    head = struct.pack(
        ">BBHHHBBH", 0x40 | words, 0, words * 4 + len(body), number, fragment, 64, protocol, 0
    )
    head += ends + options
    return head[:10] + checksum(head).to_bytes(2) + head[12:] + body


def ip6(source: str, destination: str, protocol: int, body: bytes) -> bytes:
    ends = ip_address(source).packed + ip_address(destination).packed
    return struct.pack(">IHBB", 6 << 28, len(body), protocol, 64) + ends + body


def udp_part(source: End, destination: End, payload: bytes) -> bytes:
    head = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0)
    pseudo = ip_address(source[0]).packed + ip_address(destination[0]).packed
    pseudo += struct.pack(">HH", 17, 8 + len(payload))
    found = checksum(pseudo + head + payload) or 0xFFFF
    return head[:6] + found.to_bytes(2) + payload


def udp(source: End, destination: End, payload: bytes) -> bytes:
    wrap = ip6 if ":" in source[0] else ip4
    return wrap(source[0], destination[0], 17, udp_part(source, destination, payload))


def tcp(source: End, destination: End, payload: bytes, sequence: int = 1) -> bytes:
    head = struct.pack(">HHIIBBHHH", source[1], destination[1], sequence, 1, 0x50, 24, 999, 0, 0)
    return ip4(source[0], destination[0], 6, head + payload)


def _kind(packet: bytes) -> bytes:
    return b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"


def ethernet(packet: bytes, *tags: bytes) -> bytes:
    middle = b"".join(tag + b"\x00\x07" for tag in tags)
    return bytes.fromhex("020000000001 020000000002") + middle + _kind(packet) + packet


LINKS: dict[int, Callable[[bytes], bytes]] = {
    0: lambda p: struct.pack("<I", 2 if p[0] >> 4 == 4 else 30) + p,
    1: ethernet,
    12: lambda p: p,
    14: lambda p: p,
    101: lambda p: p,
    108: lambda p: struct.pack(">I", 2 if p[0] >> 4 == 4 else 24) + p,
    113: lambda p: bytes.fromhex("0000 0001 0006 020000000001 0000") + _kind(p) + p,
    228: lambda p: p,
    229: lambda p: p,
    276: lambda p: _kind(p) + bytes.fromhex("0000 00000001 0001 00 06 020000000001 0000") + p,
}
TSHARK_LINKS = {link: wrap for link, wrap in LINKS.items() if link not in (12, 14)}
"""12 and 14 mean raw IP on some systems and other things on others; tshark takes the latter."""


# ---- files ----------------------------------------------------------------------------------


def pcap(
    packets: Iterable[Packet],
    linktype: int = 101,
    *,
    order: str = "<",
    magic: int = 0xA1B2C3D4,
    cut: int = 65_535,
) -> bytes:
    tick = 1 if magic in (0xA1B23C4D, 0x1C0001AC, 0x1C0001AB) else 1000
    more = bytes(8) if magic == 0xA1B2CD34 else b""
    file = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65_535, linktype)
    file += bytes(4) if magic >> 16 == 0x1C00 else b""
    parts = [file]
    for time_ns, packet in packets:
        second, rest = divmod(time_ns, 10**9)
        kept = packet[:cut]
        parts.append(struct.pack(order + "IIII", second, rest // tick, len(kept), len(packet)))
        parts.append(more + kept)
    return b"".join(parts)


def block(order: str, kind: int, body: bytes) -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", 12 + len(body))
    return struct.pack(order + "I", kind) + size + body + size


def section(order: str = "<") -> bytes:
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def interface(
    linktype: int, order: str = "<", resolution: int | None = None, offset_s: int = 0
) -> bytes:
    options = b""
    if resolution is not None:
        options += struct.pack(order + "HHB3x", 9, 1, resolution)
    if offset_s:
        options += struct.pack(order + "HHq", 14, 8, offset_s)
    if options:
        options += bytes(4)
    return block(order, 1, struct.pack(order + "HHI", linktype, 0, 0) + options)


def enhanced(ticks: int, packet: bytes, order: str = "<", number: int = 0) -> bytes:
    high, low = divmod(ticks, 2**32)
    head = struct.pack(order + "IIIII", number, high, low, len(packet), len(packet))
    return block(order, 6, head + packet)


def old_packet(ticks: int, packet: bytes, order: str = "<", number: int = 0) -> bytes:
    high, low = divmod(ticks, 2**32)
    head = struct.pack(order + "HHIIII", number, 0, high, low, len(packet), len(packet))
    return block(order, 2, head + packet)


def simple(packet: bytes, order: str = "<") -> bytes:
    return block(order, 3, struct.pack(order + "I", len(packet)) + packet)


def pcapng(packets: Iterable[Packet], linktype: int = 101, *, order: str = "<") -> bytes:
    body = b"".join(enhanced(time_ns // 1000, packet, order) for time_ns, packet in packets)
    return section(order) + interface(linktype, order) + body


def write(folder: Path, data: bytes, name: str = "some.pcap") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# ---- traffic --------------------------------------------------------------------------------


def record(
    sequence: int, size: int, *, kind: int = 23, epoch: int = 1, fill: bytes | None = None
) -> bytes:
    head = struct.pack(">BHH", kind, 0xFEFD, epoch) + sequence.to_bytes(6)
    body = random.Random(sequence).randbytes(size) if fill is None else fill
    return head + size.to_bytes(2) + body


def check(transaction: int, *, answer: bool = False) -> bytes:
    number = transaction.to_bytes(12)
    if answer:
        mapped = stun.encode_xor_address(("192.168.137.220", 37757), number)
        attributes = ((stun.Attribute.XOR_MAPPED_ADDRESS, mapped), (0x8029, bytes(8)))
        return stun.encode(
            stun.StunMessage(stun.Class.SUCCESS, number, attributes), fingerprint=True
        )
    attributes = ((stun.Attribute.USERNAME, b"j9vY:P91s"), (0x802A, bytes(8)))
    return stun.encode(stun.StunMessage(stun.Class.REQUEST, number, attributes), fingerprint=True)


def phone_side(records: int = 1500) -> list[Packet]:
    """Return the traffic of a phone that teaches a robot: only its own side is encrypted records.

    Numbered from 265, nine of ten an acknowledgement, a heartbeat every two seconds, keep-alives
    once a second from the 6th second on to the 14th, two STUN checks and one report a second.
    """
    found: list[Packet] = []
    rng = random.Random(7)
    wanted = {at * 2_000_000_000: 132 for at in range(15)}
    wanted |= {6_370_000_000: 216, 14_630_000_000: 160}
    wanted |= {6_740_000_000 + at * 1_002_000_000: 180 + 16 * (at % 3 == 1) for at in range(8)}
    moments = sorted({*wanted, *(at * 20_000_000 + 7_000_000 for at in range(records))})[:records]
    for number, at in enumerate(moments):
        size = wanted.get(at, 44)
        payload = record(265 + number, size)
        found.append((START_NS + at, udp(PHONE, ROBOT, payload)))
    for at in range(20):
        found.append((START_NS + at * 10**9 + 1, udp(PHONE, ROBOT, check(at))))
        found.append((START_NS + at * 10**9 + 2, udp(ROBOT, PHONE, check(at, answer=True))))
        report = bytes.fromhex("80c9000100000001") + struct.pack(">I", 0x80000000 | at)
        found.append((START_NS + at * 10**9 + 3, udp(PHONE, ROBOT, report + rng.randbytes(10))))
    return sorted(found)
