"""A robot written from docs/protocol/frames.md alone, to try rote's client on. No rote in here.

Its arms are one joint, the right elbow: a hand leads it to and fro while it is soft and recorded.
It writes down every command it heard, and how soft it was when it heard it.
"""

import asyncio
import math
import struct
import zlib
from typing import NamedTuple, cast

Address = tuple[str, int]
JOINTS, ELBOW = 29, 25
OK, BUSY, NO_SUCH, NOT_READY, NOTHING = 0, 7400, 7402, 7410, 7412
ORDER = (0x09, 0x0A, 0x0B, 0x0C)


class Heard(NamedTuple):
    """A command, its payload, and whether the arms were soft after it."""

    command: int
    payload: bytes
    soft: bool


class Action(NamedTuple):
    name: str
    ms: int
    poses: tuple[float, ...]


class DocumentedRobot(asyncio.DatagramProtocol):
    """Serves one client."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.heard: list[Heard] = []
        self.actions: list[Action] = []
        self.steps = 0
        self.soft = self.recording = False
        self.elbow = 0.0
        self.fastest = 0.0
        self._goal: list[float] = []
        self._buffer: list[float] = []
        self._client: Address | None = None
        self._sequence = 0
        self._time_us = 1_000_000
        self._answers: dict[tuple[int, bytes], bytes] = {}
        self._timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.DatagramTransport", transport)
        self._tick()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self.transport.close()

    # ---- what it does, a hundred times a second ----

    def _tick(self) -> None:
        self._timer = self.loop.call_later(0.01, self._tick)
        self._time_us += 10_000
        before = self.elbow
        if self.soft and self.recording:
            self.elbow = 0.4 * math.sin(len(self._buffer) * 0.03)
            self._buffer.append(self.elbow)
        elif not self.soft and self._goal:
            self.elbow = self._goal.pop(0)
        self.fastest = max(self.fastest, abs(self.elbow - before) / 0.01)
        if self.steps >= 3 and self._client is not None:
            self._send(0x81, 0, self._count(), self._state())

    def _state(self) -> bytes:
        positions = [self.elbow if joint == ELBOW else 0.0 for joint in range(JOINTS)]
        floats = positions + [0.0] * (JOINTS + 10)
        flags = int(self.soft)
        return struct.pack(f">IHH{len(floats)}fQ", flags, JOINTS, 0, *floats, self._time_us)

    def _count(self) -> int:
        self._sequence = (self._sequence + 1) & 0xFFFF
        return self._sequence

    def _send(self, kind: int, command: int, sequence: int, payload: bytes) -> None:
        head = struct.pack(
            ">B5sH4sBH", kind, b"\xfe\xfd\0\1\0", sequence, b"\0\0\0\1", command, len(payload)
        )
        packet = head + payload + struct.pack(">I", zlib.crc32(head + payload))
        self.transport.sendto(packet, self._client)

    # ---- what it hears ----

    def datagram_received(self, data: bytes, addr: Address) -> None:
        assert zlib.crc32(data[:-4]) == int.from_bytes(data[-4:], "big")
        kind, fixed, sequence, rest, command, length = struct.unpack_from(">B5sH4sBH", data)
        payload = data[15:-4]
        assert (fixed, rest, length) == (b"\xfe\xfd\0\1\0", b"\0\0\0\1", len(payload))
        self._client = addr
        if kind != 0x17:
            return
        known = self._answers.get((sequence, data[-4:]))
        if known is None:
            known = self._answers[sequence, data[-4:]] = self._obey(command, payload)
            self.heard.append(Heard(command, payload, self.soft))
        self._send(0x17, command, sequence, known)

    def _obey(self, command: int, payload: bytes) -> bytes:
        if command in ORDER:
            return self._greet(command, payload)
        if self.steps < len(ORDER):
            return _status(NOT_READY)
        if command == 0x1A:
            entries = b"".join(struct.pack(">32sI", a.name.encode(), a.ms) for a in self.actions)
            return (struct.pack(">H", len(self.actions)) + entries).ljust(220, b"\0")
        return _status(self._do(command, payload))

    def _greet(self, command: int, payload: bytes) -> bytes:
        word = int.from_bytes(payload[:4], "big")
        if command == 0x09 and word == 3:
            self.soft, self.steps = False, 0
        elif command == 0x09:
            assert word == 1
            self.steps = 1
        else:
            self.steps = max(self.steps, ORDER.index(command) + 1)
        return _status(OK)

    def _do(self, command: int, payload: bytes) -> int:
        word = int.from_bytes(payload[:4], "big")
        if command == 0x0D:
            assert len(payload) in (148, 44)
            self.soft = self.soft or (len(payload) == 148 and bool(word & 1))
        elif command == 0x0E:
            self._hold()
        elif command == 0x0F:
            self.recording = bool(word)
            self._buffer = [] if word else self._buffer
        elif command == 0x2B:
            return self._save(payload)
        elif command == 0x41:
            return self._play(word)
        return OK

    def _hold(self) -> None:
        self.soft = self.recording = False
        self._goal = _way(self.elbow, 0.0)

    def _save(self, payload: bytes) -> int:
        if self.recording:
            return BUSY
        if len(self._buffer) < 2:
            return NOTHING
        assert len(payload) == 220
        assert payload[47] & 1, "the save bit"
        name = payload[:32].partition(b"\0")[0].decode()
        poses, self._buffer = tuple(self._buffer), []
        self.actions.append(Action(name, 10 * (len(poses) - 1), poses))
        return OK

    def _play(self, number: int) -> int:
        if number == 0:
            self._hold()
            return OK
        if self.recording:
            return BUSY
        if number > len(self.actions):
            return NO_SUCH
        self.soft = False
        poses = self.actions[number - 1].poses
        self._goal = [*_way(self.elbow, poses[0]), *poses, *_way(poses[-1], 0.0)]
        return OK


def _way(start: float, end: float) -> list[float]:
    """A soft way of at least 0.4 s, no faster than 1 rad/s."""
    steps = max(40, round(abs(end - start) * 157))
    share = ((1 - math.cos(math.pi * step / steps)) / 2 for step in range(1, steps + 1))
    return [start + (end - start) * part for part in share]


def _status(code: int) -> bytes:
    return struct.pack(">I", code).ljust(44, b"\0")
