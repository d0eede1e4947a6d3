"""Datagrams that Unitree's library sent, accepted or rejected, and a slow CRC to check by."""

from pathlib import Path
from typing import NamedTuple


class Sample(NamedTuple):
    name: str
    verdict: str
    crc: str
    datagram: bytes


def _read() -> dict[str, Sample]:
    path = Path(__file__).parent / "data" / "a1_datagrams.txt"
    rows = [line.split(" | ") for line in path.read_text().splitlines() if line[0] != "#"]
    return {row[0]: Sample(row[0], row[1], row[2], bytes.fromhex(row[3])) for row in rows}


SAMPLES = _read()


def bitwise_crc(frame: bytes) -> bytes:
    """The word CRC bit by bit, as it is described: MSB first, from ones, without a final xor."""
    register = 0xFFFFFFFF
    for start in range(0, len(frame) // 4 * 4 - 4, 4):
        register ^= int.from_bytes(frame[start : start + 4], "little")
        for _ in range(32):
            register = (register << 1) ^ (0x04C11DB7 if register & 0x80000000 else 0)
            register &= 0xFFFFFFFF
    return register.to_bytes(4, "little")


def sealed(frame: bytes) -> bytes:
    """The frame with its last four bytes made the plain CRC."""
    return frame[:-4] + bitwise_crc(frame)
