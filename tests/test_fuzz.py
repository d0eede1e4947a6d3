"""Broken datagrams by the thousand into everything that reads them.

Nothing but `DecodeError` may come out of the decoders, nothing at all out of a session, and
nothing may pile up. Many datagrams are sealed anew after they were damaged, so that they pass the
CRC and reach the code behind it; the tests check that they did.
"""

import contextlib
import gc
import random
import struct
import time
import tracemalloc
import zlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from rote import messages as m
from rote.errors import DecodeError
from rote.model.g1 import Mode
from rote.session.arm_stream import PoseReceived
from rote.session.events import Event, Requested
from rote.session.replay_cache import REMEMBERED
from rote.session.teaching import MAX_PENDING, Role, TeachingSession, TeachingSessionState
from rote.wire.teaching import codec as wire
from rote.wire.teaching import state as teaching_state
from rote.wire.teaching.codec import CommandId, Frame, MessageType

SAMPLE = 5_000
CAMPAIGN = 1_000_000
MAX_GROWTH_BYTES = 64 * 1024
"""Less than a byte per datagram in the sample, a fifteenth of one in the campaign."""

KEYFRAMES = tuple(
    m.Keyframe(joint=joint, time_ms=10 * joint, value_rad=joint / 10) for joint in range(20)
)
COMMANDS: list[m.Command] = [
    m.ChangeMode(Mode.WALK),
    m.MoveByHand("wave", 1000),
    m.EnterTeaching(),
    m.KeepTeaching(),
    m.ExitTeaching(),
    m.Record(on=True),
    m.Record(on=False),
    m.ListActions(),
    m.SaveAction(name="bow", created_s=1, duration_ms=1000, frames=100),
    m.SaveAction(name="häkchen", created_s=1, duration_ms=1000, keyframes=KEYFRAMES),
    m.PlayAction(action=1),
    m.PlayAction(action=2, interpolation=m.Interpolation.SMOOTH, keyframes=KEYFRAMES),
    m.StopMotion(),
    m.BeginStream(),
    m.StreamPose(1, 0.5, (0.1,) * 15),
    m.SyncParameters(b"parameters"),
    m.Subscribe(all_joints=True, flags=6, opaque=b"\x01" * 60),
    m.Subscribe(),
    m.SignalReady(),
]
ENDINGS: list[m.Command] = [m.TakeControl(), m.ReleaseControl()]
"""Rare, because each ends a conversation. The second is also how an opening is answered."""
REPLIES: list[m.Reply] = [
    m.Status(),
    m.Status(m.Code.WRONG_STATE),
    m.ActionList(),
    m.ActionList(tuple(m.ActionEntry(f"action {number}", number) for number in range(15))),
]


def state(time_us: int) -> m.RobotState:
    return m.RobotState(joints_rad=(0.5,) * 29, velocities_rad_s=(0.1,) * 29, time_us=time_us)


def seeds() -> list[bytes]:
    """Return a valid datagram of every kind."""
    made = [Frame(*parts[:1], 0, parts[1]) for parts in map(wire.encode_command, COMMANDS)]
    made += [
        Frame(command, 0, wire.encode_reply(reply))
        for command in CommandId
        for reply in (REPLIES if command is CommandId.LIST_ACTIONS else REPLIES[:2])
        if command is not CommandId.CONTROL_MODE
    ]
    for all_joints in (False, True):
        payload = teaching_state.encode_state(state(1_000_000), all_joints=all_joints)
        made += [Frame(0, 0, payload, MessageType.STATE)] * 4
    made += [Frame(0, 0, b"", MessageType.HEARTBEAT)] * 2
    return [wire.encode(frame) for frame in made]


SEEDS = seeds()
RARE_SEEDS = [
    wire.encode(Frame(command, 0, payload))
    for command, payload in map(wire.encode_command, ENDINGS)
]


# ---- damage -------------------------------------------------------------------------------------


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    damaged = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        damaged[rng.randrange(len(damaged))] ^= 1 << rng.randrange(8)
    return bytes(damaged)


def overwrite(rng: random.Random, data: bytes) -> bytes:
    start = rng.randrange(len(data))
    piece = rng.choice([b"\0", b"\xff", b"\x7f\xc0\0\0", b"\x80\0\0\0", rng.randbytes(8)])
    return (data[:start] + piece + data[start + len(piece) :])[: len(data)]


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randrange(len(data) + 1)]


def extend(rng: random.Random, data: bytes) -> bytes:
    return data + rng.randbytes(rng.randint(1, 100))


def splice(rng: random.Random, data: bytes) -> bytes:
    other = rng.choice(SEEDS)
    return data[: rng.randrange(len(data) + 1)] + other[rng.randrange(len(other) + 1) :]


def lie_about_the_length(rng: random.Random, data: bytes) -> bytes:
    return data[:13] + struct.pack(">H", rng.choice([0, 1, 44, 220, 65_535])) + data[15:]


def make_up(rng: random.Random, _: bytes) -> bytes:
    return rng.randbytes(rng.randrange(600))


def leave(_: random.Random, data: bytes) -> bytes:
    return data


DAMAGE: list[Callable[[random.Random, bytes], bytes]] = [
    *(leave, flip_bits, overwrite, truncate),
    *(extend, splice, lie_about_the_length, make_up),
]


def seal(data: bytes, sequence: int) -> bytes:
    """Make `data` a frame that passes every check but those of its content."""
    data = data.ljust(19, b"\0")
    payload = data[15:-4]
    kind = data[0] if data[0] in (0x17, 0x80, 0x81) else 0x17
    body = struct.pack(">B5sHIBH", kind, b"\xfe\xfd\0\1\0", sequence, 1, data[12], len(payload))
    body += payload
    return body + struct.pack(">I", zlib.crc32(body))


# ---- the campaign -------------------------------------------------------------------------------


@dataclass
class Figures:
    """What a campaign has seen."""

    datagrams: int = 0
    seconds: float = 0.0
    grown_bytes: int = 0
    read: Counter[str] = field(default_factory=Counter)
    """What the decoders accepted."""
    refused: Counter[str] = field(default_factory=Counter)
    """What they raised."""
    events: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    sessions: int = 0

    def __str__(self) -> str:
        return (
            f"{self.datagrams:,} datagrams in {self.seconds:.1f} s "
            f"({self.datagrams / self.seconds:,.0f}/s), {self.sessions:,} pairs of sessions, "
            f"memory grown by {self.grown_bytes:,} bytes after the first tenth\n"
            f"read:    {dict(self.read.most_common())}\n"
            f"refused: {dict(self.refused.most_common())}\n"
            f"events:  {dict(self.events.most_common())}\n"
            f"dropped: {dict(self.dropped.most_common())}"
        )


class Campaign:
    """A client and a robot under a rain of broken datagrams."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.figures = Figures()
        self.now = 1000.0
        self.last = SEEDS[0]
        self.begin()

    def begin(self) -> None:
        """Replace both sessions, every other time by two that know each other already."""
        self.client = TeachingSession(Role.CLIENT, now=self.now)
        self.robot = TeachingSession(Role.ROBOT, now=self.now)
        self.figures.sessions += 1
        self.client.open(self.now)
        if self.rng.random() < 0.5:
            while self.client.state is not TeachingSessionState.READY:
                self.robot.receive(self.client.outgoing()[0], self.now)
                self.client.receive(self.robot.outgoing()[0], self.now)
        self.take(self.client)
        self.take(self.robot)

    def run(self, count: int) -> Figures:
        """Rain `count` datagrams and return what was seen."""
        self.fill_caches()
        tracemalloc.start()
        try:
            started = time.perf_counter()
            self.rain(count // 10)
            before = self.memory()
            self.rain(count - count // 10)
            self.figures.grown_bytes = self.memory() - before
            self.figures.seconds = time.perf_counter() - started
        finally:
            tracemalloc.stop()
        return self.figures

    def fill_caches(self) -> None:
        # One layout is kept for each number of joints up to 1000: bounded, but not at once.
        for joints in range(1100):
            with contextlib.suppress(DecodeError):
                teaching_state.decode_state(struct.pack(">IHH", 0, joints, 0))

    def memory(self) -> int:
        self.begin()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    def rain(self, count: int) -> None:
        for _ in range(count):
            self.figures.datagrams += 1
            datagram = self.datagram()
            self.decode(datagram)
            self.feed(self.robot, datagram)
            self.feed(self.client, datagram)
            if self.rng.random() < 0.1:
                self.live_on()
            if not (self.client.live and self.robot.live) or self.rng.random() < 0.002:
                self.figures.dropped.update(self.client.dropped + self.robot.dropped)
                self.begin()

    def datagram(self) -> bytes:
        rng = self.rng
        if rng.random() < 0.05:
            return self.last  # once more
        seed = rng.choice(RARE_SEEDS if rng.random() < 0.002 else SEEDS)
        self.last = rng.choice(DAMAGE)(rng, seed)
        if rng.random() < 0.6:
            self.last = seal(self.last, self.sequence())
        return self.last

    def sequence(self) -> int:
        """Return a number that one of the sessions takes seriously, mostly."""
        rng = self.rng
        chance = rng.random()
        if chance < 0.002:
            return rng.randrange(65_536)
        if chance < 0.3 and self.client.pending:
            return rng.choice(list(self.client.pending)) + rng.randrange(2) & 0xFFFF
        return (self.robot.replay_cache.newest or 0) + rng.choice(
            [1, 1, 1, 2, 0, -1, -127, -129]
        ) & 0xFFFF

    def decode(self, datagram: bytes) -> None:
        """Let every decoder read it; an error that is no DecodeError ends the test."""
        try:
            frame = wire.decode(datagram)
        except DecodeError as error:
            self.figures.refused[type(error).__name__] += 1
            return
        self.figures.read["frame"] += 1
        readers: list[Callable[[], object]] = [
            lambda: wire.decode_command(frame.command, frame.payload),
            lambda: wire.decode_reply(frame.command, frame.payload),
            lambda: teaching_state.decode_state(frame.payload),
        ]
        for read in readers:
            try:
                self.figures.read[type(read()).__name__] += 1
            except DecodeError as error:
                self.figures.refused[type(error).__name__] += 1

    def feed(self, session: TeachingSession, datagram: bytes) -> None:
        session.receive(datagram, self.now)
        sent = self.take(session)
        assert len(sent) <= 1, "one datagram must not cause several"

    def take(self, session: TeachingSession) -> list[bytes]:
        """Take what a session has to tell and to send, and answer what it was asked."""
        for event in session.events():
            self.note(session, event)
        self.check_bounds(session)
        sent = session.outgoing()
        for datagram in sent:
            wire.decode(datagram)  # what a session sends can always be read
        return sent

    def note(self, session: TeachingSession, event: Event | PoseReceived) -> None:
        self.figures.events[type(event).__name__] += 1
        if isinstance(event, Requested) and self.rng.random() < 0.8:
            listed = isinstance(event.command, m.ListActions)
            session.reply(event.token, self.rng.choice(REPLIES if listed else REPLIES[:2]))

    def check_bounds(self, session: TeachingSession) -> None:
        assert len(session.pending) <= MAX_PENDING + 4
        assert len(session.own_tokens) <= 4
        assert len(session.replay_cache) <= REMEMBERED
        assert len(session.dropped) <= 16

    def live_on(self) -> None:
        """Let time pass, rarely much of it, and let the client ask for something."""
        rng = self.rng
        self.now += rng.choice([0.001, 0.01, 0.1, 0.5]) if rng.random() < 0.995 else 20.0
        for session in (self.client, self.robot):
            session.tick(self.now)
            self.take(session)
        self.robot.report(state(int(self.now * 1e6)))
        for datagram in self.take(self.robot):
            self.client.receive(datagram, self.now)
        self.take(self.client)
        if (
            self.client.state is TeachingSessionState.READY
            and len(self.client.pending) < MAX_PENDING
        ):
            self.client.request(rng.choice(COMMANDS), self.now)
            self.take(self.client)


def check(figures: Figures, count: int) -> None:
    assert figures.datagrams == count
    assert figures.grown_bytes < MAX_GROWTH_BYTES
    # The rain went through: everything that can be said was read, and everything happened.
    assert figures.read["frame"] > count // 3
    assert {kind.__name__ for kind in wire._ENCODERS} <= figures.read.keys()
    assert {"Status", "ActionList", "RobotState"} <= figures.read.keys()
    for error in ("DecodeError", "TruncatedError", "ChecksumError", "PayloadError"):
        assert figures.refused[error] > count // 100, error
    assert figures.events.keys() == {kind.__name__ for kind in Event.__args__}
    assert figures.events["Requested"] > count // 50
    for reason in ("repeated request", "stray request", "reply to nothing", "stale state"):
        assert figures.dropped[reason] > 0, reason


def test_a_sample_of_broken_datagrams_crash_nothing_and_leave_nothing_behind() -> None:
    check(Campaign(seed=1).run(SAMPLE), SAMPLE)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_a_million_broken_datagrams_crash_nothing_and_leave_nothing_behind() -> None:
    figures = Campaign(seed=2).run(CAMPAIGN)
    print(f"\n{figures}")
    check(figures, CAMPAIGN)
