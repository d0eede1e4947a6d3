"""A client written from the documents alone: their packet builder and their controller's sequence.

Nothing of rote is used here. Where the documents leave a value open, it is what their own code
would send: zeros.
"""

import asyncio
import socket
import struct
import time
import zlib


class PacketBuilder:
    """The documents' own, field by field."""

    def __init__(self) -> None:
        self.sequence = 0

    def build(self, cmd_id: int, payload: bytes) -> bytes:
        head = bytes([0x17, 0xFE, 0xFD, 0x00, 0x01, 0x00]) + struct.pack(">H", self.sequence)
        packet = head + bytes([0, 0, 0, 1, cmd_id]) + struct.pack(">H", len(payload)) + payload
        self.sequence = (self.sequence + 1) & 0xFFFF
        return packet + struct.pack(">I", zlib.crc32(packet) & 0xFFFFFFFF)


class DocumentedController:
    """Speaks to a robot at a host and port, as the documents' controller would."""

    def __init__(self, host: str, port: int) -> None:
        self.builder = PacketBuilder()
        self.states = 0
        self.last_flags = 0
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.setblocking(False)
        self._socket.connect((host, port))

    def close(self) -> None:
        self._socket.close()

    async def send_command(self, cmd_id: int, payload: bytes = bytes(44)) -> bytes:
        """Send one packet, and return the payload of its answer."""
        sequence = self.builder.sequence
        self._socket.send(self.builder.build(cmd_id, payload))
        for _ in range(100):
            await asyncio.sleep(0.01)
            answer = self._heard(cmd_id, sequence)
            if answer is not None:
                return answer
        raise AssertionError(f"no answer to 0x{cmd_id:02x}")

    def _heard(self, cmd_id: int, sequence: int) -> bytes | None:
        """Take in what has arrived: the answer, or states."""
        answer = None
        while True:
            try:
                packet = self._socket.recv(2000)
            except BlockingIOError:
                return answer
            assert struct.unpack(">I", packet[-4:])[0] == zlib.crc32(packet[:-4])
            assert packet[1:6] == b"\xfe\xfd\x00\x01\x00"
            assert len(packet) == 19 + struct.unpack_from(">H", packet, 13)[0]
            if packet[0] == 0x81:
                self.states += 1
                self.last_flags = struct.unpack_from(">I", packet, 15)[0]
                assert len(packet) == 167, "who asks for nothing else gets the documented 12 joints"
            elif packet[0] == 0x17:
                assert packet[12] == cmd_id
                assert struct.unpack_from(">H", packet, 6)[0] == sequence
                answer = packet[15:-4]

    async def listen(self, seconds: float) -> None:
        """Let time pass, and hear the states that arrive meanwhile."""
        for _ in range(round(seconds / 0.1)):
            await asyncio.sleep(0.1)
            assert self._heard(0, 0) is None

    async def init_connection(self) -> list[int]:
        return [code(await self.send_command(cmd_id)) for cmd_id in (0x09, 0x0A, 0x0B, 0x0C)]

    async def list_actions(self) -> list[tuple[str, int]]:
        payload = await self.send_command(0x1A)
        found = []
        for i in range(int.from_bytes(payload[0:2], "big")):
            offset = 2 + i * 36
            name = payload[offset : offset + 32].rstrip(b"\0").decode("utf-8")
            found.append((name, int.from_bytes(payload[offset + 32 : offset + 36], "big")))
        return found

    async def enter_teaching(self) -> int:
        payload = bytearray(148)
        payload[0:4] = struct.pack(">I", 0x00000001)
        return code(await self.send_command(0x0D, bytes(payload)))

    async def keep_alive(self) -> int:
        return code(await self.send_command(0x0D, b"\x7f" * 44))

    async def record(self, flag: int) -> int:
        return code(await self.send_command(0x0F, struct.pack(">I", flag) + bytes(40)))

    async def save_action(self, name: str, duration_ms: int) -> int:
        payload = bytearray(220)
        payload[0 : len(name)] = name.encode("utf-8")
        struct.pack_into(">I", payload, 32, int(time.time()))
        struct.pack_into(">I", payload, 36, duration_ms)
        struct.pack_into(">I", payload, 40, 50)
        struct.pack_into(">I", payload, 44, 0x00000001)
        return code(await self.send_command(0x2B, bytes(payload)))

    async def play_action(self, action_id: int) -> int:
        payload = struct.pack(">I", action_id) + bytes(180)
        return code(await self.send_command(0x41, payload))

    async def exit_teaching(self) -> int:
        return code(await self.send_command(0x0E))


def code(payload: bytes) -> int:
    assert len(payload) == 44
    return int.from_bytes(payload[:4], "big")
