"""A process that releases the arms softly if the program that streams to them is killed.

A killed program cannot lower the weight of its stream, and a robot may hold the arms at the last
weight forever. The program writes each setpoint to memory that it shares with the process. The
process waits for the end of a pipe, which the system closes with the program. Programs that were
forked from it keep the pipe open, so the process also checks whether it still has the same parent.
The last setpoint of every stream that ends properly has weight 0: then there is nothing to release.
"""

import asyncio
import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from typing import IO, NamedTuple

from rote.errors import LinkError
from rote.model.family import Build, Hand, attach_hands
from rote.model.registry import family_of, find_build
from rote.platform import clock, system
from rote.platform.loop import in_thread
from rote.session.arm_stream import FADE_HZ, ArmSetpoint, ArmStream
from rote.transport.dds import types
from rote.transport.dds.participant import Bus, DdsTarget
from rote.wire.dds import hands as dds_hands
from rote.wire.dds import lowlevel as dds_lowlevel

_STALE_SETPOINT_S = 0.1
"""The arms may no longer be at a setpoint that is older than this."""
_FIND_S, _STATE_S = 3.0, 1.0
"""Timeouts for finding the robot, and for a state of it."""
_ENDS_WITHIN_S = 3.0
"""Timeout for the process to end after its pipe was closed."""
_PARENT_S = 0.1
"""Time between two checks whether the program still runs."""
# The shared memory: the index of the newer slot in one byte, 7 unused bytes, and two slots. A slot
# has the time, the weight and the positions; it is larger than any robot needs.
_SLOT = struct.Struct("<64d")
_SLOTS_OFFSET = 8


def _now() -> float:
    """Return the time by a clock that all processes share, suspend included."""
    return time.monotonic() + clock.suspended_s()


class _SentSetpoint(NamedTuple):
    """A setpoint, and when it was sent."""

    at_s: float
    weight: float
    positions_rad: tuple[float, ...]
    """Of the streamed joints, then of the hands."""


class _SharedSetpoints:
    """The last two setpoints, in memory shared by two processes. The index of the newer one is
    written last: a program that is killed while it writes leaves the setpoint before it intact.
    """

    def __init__(self, file: int) -> None:
        self._memory = mmap.mmap(file, _SLOTS_OFFSET + 2 * _SLOT.size)

    def write(self, setpoint: ArmSetpoint) -> None:
        """Make this the newest setpoint."""
        slot = 1 - self._memory[0]
        numbers = (_now(), setpoint.weight, *setpoint.joints_rad, *setpoint.hands_rad)
        struct.pack_into(
            f"<{len(numbers)}d", self._memory, _SLOTS_OFFSET + slot * _SLOT.size, *numbers
        )
        self._memory[0] = slot

    def clear(self) -> None:
        """Set both to zero, which is weight 0: nothing to release."""
        self._memory[:] = bytes(len(self._memory))

    def read(self) -> tuple[_SentSetpoint, _SentSetpoint]:
        """Return the older and the newer setpoint."""
        newest = self._memory[0]
        slots = (1 - newest, newest)
        rows = [
            _SLOT.unpack_from(self._memory, _SLOTS_OFFSET + slot * _SLOT.size) for slot in slots
        ]
        older, newer = (_SentSetpoint(at_s, weight, tuple(rad)) for at_s, weight, *rad in rows)
        return older, newer

    def close(self) -> None:
        """Unmap the memory."""
        self._memory.close()


class Guardian:
    """Controls the guardian process, from the program that streams."""

    def __init__(self, target: DdsTarget) -> None:
        """Start the process; raises `OSError` if that is not possible."""
        with tempfile.TemporaryFile() as file:
            # A file with holes would kill this program on a full disk as soon as it is written to.
            file.write(bytes(_SLOTS_OFFSET + 2 * _SLOT.size))
            file.flush()
            self._setpoints = _SharedSetpoints(file.fileno())
            bus_arguments = (target.interface, str(target.domain), str(int(target.multicast)))
            own_arguments = (str(file.fileno()), str(os.getpid()))
            command = [sys.executable, "-m", __name__, *bus_arguments, *own_arguments]
            self.process = subprocess.Popen(  # noqa: S603 - ourselves
                command,
                pass_fds=(file.fileno(),),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """Whether the process has not ended."""
        return self.process.poll() is None

    def begin(self, build: Build, hands: tuple[Hand, ...], machine: int) -> None:
        """Guard a new stream to a build and these hands.

        `machine` is the number of the build that the robot reports and that setpoints repeat.
        """
        self._setpoints.clear()
        message = {
            "build": build.bare.name,
            "hands": [hand.side for hand in build.hands],
            "streamed": [hand.side for hand in hands],
            "machine": machine,
        }
        assert self.process.stdin is not None
        with suppress(OSError):  # it has died
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()

    def note(self, setpoint: ArmSetpoint) -> None:
        """Note a setpoint that was sent; from any thread, but not concurrently."""
        self._setpoints.write(setpoint)

    def abandon(self) -> None:
        """Free the resources shared with a process that has ended by itself."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        self._setpoints.close()

    async def close(self) -> None:
        """End the process; it releases the arms first if they are not released yet."""
        assert self.process.stdin is not None
        with suppress(OSError):
            self.process.stdin.close()
        try:
            await in_thread(self.process.wait, _ENDS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            await in_thread(self.process.wait)
        self._setpoints.close()


def can_guard(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether a process can guard a stream of this loop: it cannot in the virtual time of tests."""
    return system.can_pass_sockets() and abs(loop.time() - time.monotonic()) < 1.0


def encode_hands(setpoint: ArmSetpoint, hands: tuple[Hand, ...]) -> list[bytes]:
    """Return the command of each hand; the setpoint has the positions of one hand after another."""
    commands, first = [], 0
    for hand in hands:
        hand_rad = setpoint.hands_rad[first : first + len(hand.joints)]
        first += len(hand.joints)
        commands.append(dds_hands.encode_command(hand_rad, setpoint.weight, hand=hand))
    return commands


# ---- the process --------------------------------------------------------------------------------


class _AbandonedStream:
    """Takes over the arm stream of a program that has ended, and releases the arms."""

    def __init__(self, bus: Bus, message: dict[str, object]) -> None:
        """`message` is what `Guardian.begin` sent: the build, the sides with a hand (`hands`), the
        sides whose fingers were streamed (`streamed`), and the robot's `machine`.
        """
        bare = find_build(str(message["build"]))
        assert bare is not None
        family = family_of(bare)
        sides, streamed = message["hands"], message["streamed"]
        assert family is not None
        assert isinstance(sides, list)
        assert isinstance(streamed, list)
        attached = tuple(hand for hand in family.hands if hand.side in sides)
        self._hands = tuple(hand for hand in attached if hand.side in streamed)
        self._build, self._machine = attach_hands(bare, attached), int(str(message["machine"]))
        self._bus = bus
        self._arms = bus.writer(dds_lowlevel.ARM_SDK_TOPIC, types.LOWCMD)
        self._fingers = [bus.writer(hand.command_topic, types.HAND_COMMAND) for hand in self._hands]

    async def release(self, older: _SentSetpoint, newer: _SentSetpoint) -> None:
        """Release the arms from the last setpoint, or from their position if that is too old."""
        stream = ArmStream(self._build.rest_rad, self._build, self._hands)
        for sent in (older, newer):
            stream.record(self._to_setpoint(sent), sent.at_s)
        give_up_s = _now() + _FIND_S
        while not self._arms.matched and _now() < give_up_s:  # noqa: ASYNC110 - DDS has no event
            await asyncio.sleep(0.005)
        hands_rest_rad = self._build.rest_rad[len(self._build.bare.joints) :]
        if _now() - newer.at_s > _STALE_SETPOINT_S:
            body_rad = await self._measure_joints()
            stream.restart_from(None if body_rad is None else body_rad + hands_rest_rad)
            # The fingers' positions are not measured, so they keep their last setpoint.
            stream.last = stream.last._replace(hands_rad=self._to_setpoint(newer).hands_rad)
        while not await self._write_fade(stream):
            self._hands, self._fingers = (), []  # hands relax when their commands cease
            body_rad = await self._measure_joints()
            stream.restart_from(None if body_rad is None else body_rad + hands_rest_rad)

    async def _write_fade(self, stream: ArmStream) -> bool:
        """Write the setpoints that release the arms.

        Returns False at once if a new reader appears: the robot may have restarted in another pose.
        """
        loop = asyncio.get_running_loop()
        due_s, known = loop.time(), self._arms.readers()
        for setpoint in stream.fade():
            if not self._arms.readers() <= known:
                return False
            self._write_setpoint(setpoint)
            # After a delay, the setpoints follow at up to twice the usual rate.
            due_s = max(due_s + 1.0 / FADE_HZ, loop.time() + 0.5 / FADE_HZ)
            await asyncio.sleep(due_s - loop.time())
        return True

    def _to_setpoint(self, sent: _SentSetpoint) -> ArmSetpoint:
        arm_count = len(self._build.streamed)
        end = arm_count + sum(len(hand.joints) for hand in self._hands)
        positions = sent.positions_rad  # unused numbers of the slot follow
        return ArmSetpoint(positions[:arm_count], sent.weight, positions[arm_count:end])

    async def _measure_joints(self) -> tuple[float, ...] | None:
        """Return the positions of the body's joints; None if the robot reports none in time."""
        state: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def on_state(data: bytes) -> None:
            if not state.done():
                state.set_result(data)

        self._bus.reader(
            dds_lowlevel.LOWSTATE_TOPIC, types.LOWSTATE, on_state, depth=1, reliable=False
        )
        try:
            async with asyncio.timeout(_STATE_S):
                return dds_lowlevel.decode_joints(await state, self._build.bare).joints_rad
        except TimeoutError:
            return None

    def _write_setpoint(self, setpoint: ArmSetpoint) -> None:
        with suppress(LinkError):
            self._arms.write(
                dds_lowlevel.encode_arm_command(
                    setpoint.joints_rad,
                    setpoint.weight,
                    build=self._build,
                    mode_machine=self._machine,
                )
            )
            hand_commands = encode_hands(setpoint, self._hands)
            for outlet, hand_command in zip(self._fingers, hand_commands, strict=True):
                outlet.write(hand_command)


async def _read_line(lines: asyncio.StreamReader, parent: int) -> bytes:
    """Return the next line from the program; empty once the program has ended."""
    while True:
        with suppress(TimeoutError):
            async with asyncio.timeout(_PARENT_S):
                return await lines.readline()
        if os.getppid() != parent:  # programs forked from it may keep its end of the pipe open
            return b""


async def _run_guardian(
    target: DdsTarget, setpoints: _SharedSetpoints, pipe: IO[bytes], parent: int
) -> None:
    """Wait until the program ends, and release the arms if they are not released yet."""
    bus = Bus(target)
    stream: _AbandonedStream | None = None
    lines = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(lines), pipe
    )
    while line := await _read_line(lines, parent):
        stream = _AbandonedStream(bus, json.loads(line))
    older, newer = setpoints.read()
    if stream is not None and newer.weight > 0.0:
        await stream.release(older, newer)
    bus.close()


def main(arguments: list[str]) -> None:
    """Run the process: `arguments` are the interface, the domain, 1 if samples are sent by
    multicast, the descriptor of the file of setpoints, and the id of the program's process.
    """
    # Only the parent ends this process; Ctrl-C at a terminal must not.
    for number in (signal.SIGINT, *system.end_signals()):
        signal.signal(number, signal.SIG_IGN)
    interface, domain, multicast, file, parent = arguments
    target = DdsTarget(interface, int(domain), multicast=multicast == "1")
    asyncio.run(_run_guardian(target, _SharedSetpoints(int(file)), sys.stdin.buffer, int(parent)))


if __name__ == "__main__":
    main(sys.argv[1:])
