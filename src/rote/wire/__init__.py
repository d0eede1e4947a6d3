"""Bytes to values and back; stateless, no I/O. One module per wire.

`PacketBuilder` and `verify_crc32`, which the documents name, can be imported from here.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rote.wire.teaching.packet_builder import PacketBuilder, calculate_crc32, verify_crc32

__all__ = ["PacketBuilder", "calculate_crc32", "verify_crc32"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'rote.wire' has no attribute {name!r}")
    from rote.wire.teaching import packet_builder  # noqa: PLC0415 - loads a codec that few programs need

    return getattr(packet_builder, name)
