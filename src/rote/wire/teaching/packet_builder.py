"""The packet builder and the checksum of the documents, by the names they have there.

They wrap the teaching frames of `rote.wire.teaching.codec` for code written after the documents.
"""

from rote.wire.teaching.codec import Frame, compute_crc, encode

__all__ = ["PacketBuilder", "calculate_crc32", "verify_crc32"]

_CRC_BYTES = 4


class PacketBuilder:
    """Builds command packets and numbers them from 0, wrapping after 65535."""

    def __init__(self) -> None:
        self.sequence = 0

    def build(self, cmd_id: int, payload: bytes) -> bytes:
        """Return a whole packet of type 0x17: header, payload and CRC-32."""
        packet = encode(Frame(cmd_id, self.sequence, bytes(payload)))
        self.sequence = (self.sequence + 1) & 0xFFFF
        return packet


def calculate_crc32(packet_data: bytes) -> int:
    """Return the CRC-32 of a packet: of all its bytes but the last four."""
    return compute_crc(packet_data[:-_CRC_BYTES])


def verify_crc32(packet_data: bytes) -> bool:
    """Whether the last four bytes of a packet are the CRC-32 of those before them."""
    stated = int.from_bytes(packet_data[-_CRC_BYTES:], "big")
    return len(packet_data) > _CRC_BYTES and stated == calculate_crc32(packet_data)
