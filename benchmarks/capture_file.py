"""Makes the captures that `benchmarks.capture` measures: the mixture of a phone beside a robot."""

import random
import struct
from collections.abc import Iterator
from pathlib import Path

from rote.wire.teaching.codec import Frame, encode

PHONE, ROBOT, CLOUD = bytes((10, 215, 173, 1)), bytes((192, 168, 12, 1)), bytes((203, 0, 113, 9))
START_S = 1_790_000_000
_IP = struct.Struct(">BBHHHBBH4s4s")
_RECORD = struct.Struct("<IIII")
_QUESTION = bytes.fromhex("0100000100000000000005726f626f74076578616d706c650000010001")


def _ip(protocol: int, source: bytes, destination: bytes, body: bytes) -> bytes:
    head = _IP.pack(0x45, 0, 20 + len(body), 0, 0x4000, 64, protocol, 0, source, destination)
    return head + body


def udp(source: tuple[bytes, int], destination: tuple[bytes, int], payload: bytes) -> bytes:
    """Return an IP packet with a datagram; checksums are left out, as network cards do."""
    ports = struct.pack(">HHHH", source[1], destination[1], 8 + len(payload), 0)
    return _ip(17, source[0], destination[0], ports + payload)


def _tls(sequence: int, record: bytes) -> bytes:
    head = struct.pack(">HHIIBBHHH", 40000, 443, sequence & 0xFFFF_FFFF, 1, 0x50, 24, 1000, 0, 0)
    return _ip(6, PHONE, CLOUD, head + record)


def packets(count: int, seed: int = 1) -> Iterator[bytes]:
    """Yield IP packets: 83 % DTLS, 12 TLS over TCP, 3 DNS, and a little of the rest."""
    rng = random.Random(seed)
    noise = rng.randbytes(4096)
    here, there = (PHONE, 55371), (ROBOT, 49504)
    sent, heard, sequence, media, streamed = 264, 0, 0, 0, 0
    for _ in range(count):
        draw = rng.random()
        cut = rng.randrange(2048)
        if draw < 0.83:
            outward = rng.random() < 0.55
            size = 44 if outward and draw < 0.6 else rng.choice((68, 100, 116, 132, 148, 184))
            sent, heard = (sent + 1, heard) if outward else (sent, heard + 1)
            number = sent if outward else heard
            head = b"\x17\xfe\xfd\x00\x01" + number.to_bytes(6) + size.to_bytes(2)
            ends = (here, there) if outward else (there, here)
            yield udp(*ends, head + noise[cut : cut + size])
        elif draw < 0.95:
            part = noise[cut : cut + 40]
            streamed += 45
            yield _tls(streamed, b"\x17\x03\x03\x00\x28" + part)
        elif draw < 0.98:
            yield udp((PHONE, 30000 + cut), (CLOUD, 53), rng.randbytes(2) + _QUESTION)
        elif draw < 0.987:
            yield udp(here, there, b"\0\1\0\0\x21\x12\xa4\x42" + noise[cut : cut + 12])
        elif draw < 0.994:
            media = (media + 1) & 0xFFFF
            head = b"\x80\x77" + media.to_bytes(2) + bytes(7) + b"\x01"
            yield udp(there, here, head + noise[cut : cut + 90])
        else:
            sequence = (sequence + 1) & 0xFFFF
            yield udp((PHONE, 49000), (ROBOT, 49504), encode(Frame(0x0D, sequence, bytes(44))))


def write(path: Path, count: int) -> None:
    """Write a raw IP pcap of `count` packets."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for index, packet in enumerate(packets(count)):
            second, micro = divmod(index * 91, 1_000_000)
            head = _RECORD.pack(START_S + second, micro, len(packet), len(packet))
            file.write(head + packet)
