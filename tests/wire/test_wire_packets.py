"""The documents' packet builder and checksum, under their own names."""

import struct

import pytest

import documented_client
from rote.errors import BadRequestError
from rote.wire import PacketBuilder, calculate_crc32, verify_crc32
from rote.wire.teaching.codec import decode


def test_the_builder_builds_what_the_documents_builder_builds() -> None:
    ours, theirs = PacketBuilder(), documented_client.PacketBuilder()
    ours.sequence = theirs.sequence = 0xFFFE
    for command, payload in [
        (0x1A, bytes(44)),
        (0x0D, b"\0\0\0\1" + bytes(144)),
        (0x41, b"\7" * 184),
    ]:
        packet = ours.build(command, payload)
        assert packet == theirs.build(command, payload)
        assert decode(packet)[:3] == (command, (ours.sequence - 1) & 0xFFFF, payload)
    assert ours.sequence == 1, "it wraps after 65535"


def test_a_packet_that_cannot_be_built_takes_no_number() -> None:
    builder = PacketBuilder()
    with pytest.raises(BadRequestError):
        builder.build(0x100, b"")
    assert builder.sequence == 0


def test_a_checksum_is_verified() -> None:
    packet = PacketBuilder().build(0x1A, bytes(44))
    assert verify_crc32(packet)
    assert calculate_crc32(packet) == struct.unpack(">I", packet[-4:])[0]
    for place in (0, 20, len(packet) - 1):
        wrong = bytearray(packet)
        wrong[place] ^= 1
        assert not verify_crc32(bytes(wrong))


@pytest.mark.parametrize("packet", [b"", b"\0", bytes(4)])
def test_too_few_bytes_verify_as_nothing(packet: bytes) -> None:
    assert not verify_crc32(packet)


def test_the_documents_printed_bytes_do_not_verify() -> None:
    """They are DTLS records: see docs/protocol/evidence.md."""
    printed = bytes.fromhex(
        "17fefd000100c93e000000011a002c11fbb3b4d2fc8c074310664e5ad455"
        "bc7def9e847c3c396c4eb4b34f3b7ff0f22198998c3c75890ce0e61142e0"
    )
    assert not verify_crc32(printed)
