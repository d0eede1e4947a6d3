"""One end of a session with an A1 or a Go1: the protocol state machine, without I/O or clock.

Feed it what happens (`open`, `command`, `report`, `receive`, `tick`, `close`) with the time it
happened; then send what `outgoing` returns, act on what `events` returns, and call `tick` again no
later than `due`. The same class plays both roles:

- CLIENT repeats its command, learns the dialect from the first state, and detects states that stop,
  jump in time or contain NaN.
- ROBOT emits commands as events, answers each with a state, and detects when commands stop.

    NEW ── open ──▶ SEEKING ── state ──▶ LIVE ◀──▶ STALE ──▶ LOST, CLOSED          the client
    NEW ── command ────────────────────▶ LIVE ◀──▶ STALE ──▶ NEW                   the robot

There is no handshake, no goodbye and no sequence number: the robot sends states to the client that
sends it commands. One state per command is a guess; the high level of a Go1 reportedly sends 50
states a second, and `paced` makes a robot do that.
"""

from collections import Counter
from dataclasses import dataclass
from enum import Enum, auto
from functools import cache
from typing import NamedTuple, TypeAlias

from rote.errors import BadRequestError, DecodeError, LocalProtocolError
from rote.session.events import PeerLost
from rote.session.teaching import Role
from rote.wire.a1 import codec as wire
from rote.wire.a1 import values as a1_values
from rote.wire.a1.codec import Seal
from rote.wire.a1.motors import (
    BRAKE,
    MotorCmds,
)
from rote.wire.a1.values import (
    A1FrameKind,
    Command,
    Dialect,
    HighCmd,
    HighState,
    LowCmd,
    LowState,
    ScaledHighCmd,
)
from rote.wire.a1.values import State as RobotState

_NEVER = float("inf")
_MAX_STATES_BEHIND = 3
"""After this many out-of-order states in a row, the robot's clock is assumed to have jumped."""


class Level(Enum):
    """What a client talks to: the walking controller, or the motors."""

    HIGH = "high"
    LOW = "low"


class A1SessionState(Enum):
    """The states of a session."""

    NEW = auto()
    SEEKING = auto()
    LIVE = auto()
    STALE = auto()
    LOST = auto()
    CLOSED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class A1Timing:
    """All waiting times, in seconds."""

    period_s: float = 0.002
    """Interval at which a client repeats its command."""
    connect_s: float = 5.0
    stale_s: float = 0.05
    lost_s: float = 1.0
    watchdog_s: float = 0.03
    """A robot that receives no command for this long makes itself safe, as an A1 reportedly does.
    """
    forget_s: float = 1.0
    """After this time without a command, a robot stops sending states to the client."""
    jump_s: float = 0.5
    """Maximum time by which a robot's clock may run ahead of ours between two states."""
    ticks_per_s: float = 1e6
    """Resolution of the robot's clock, by Unitree's header."""


# ---- events -------------------------------------------------------------------------------------


class Learned(NamedTuple):
    """The first state arrived; the robot uses one of these dialects."""

    dialects: tuple[Dialect, ...]


class A1Reported(NamedTuple):
    """The robot sent its state."""

    state: RobotState


class Commanded(NamedTuple):
    """The client sent a command; answer with `report`."""

    command: Command


class WentStale(NamedTuple):
    """Nothing was received for a while. A client should make the robot safe; a robot, itself."""

    silence_s: float


class Recovered(NamedTuple):
    """The peer sends again after this silence."""

    silence_s: float


class Jumped(NamedTuple):
    """The robot's clock went from `before` to `after`, which no running clock does."""

    before: int
    after: int


class Mismatched(NamedTuple):
    """Frames of another than the requested dialect arrive; reported once per dialect."""

    dialects: tuple[Dialect, ...]


Event: TypeAlias = (
    Learned | A1Reported | Commanded | WentStale | Recovered | Jumped | Mismatched | PeerLost
)

_COMMANDS = {Level.HIGH: A1FrameKind.HIGH_CMD, Level.LOW: A1FrameKind.LOW_CMD}
_STATES = {Level.HIGH: A1FrameKind.HIGH_STATE, Level.LOW: A1FrameKind.LOW_STATE}
_PROBED_DIALECTS = {
    Level.HIGH: (Dialect.A1_3_3_4, Dialect.A1_3_2, Dialect.GO1),
    Level.LOW: (Dialect.A1_3_3_4, Dialect.GO1),
}
"""One dialect for each encoding of a command."""


@cache
def make_neutral_command(level: Level, dialect: Dialect) -> Command:
    """Return the neutral command: stand idle, or at the low level brake all motors."""
    if level is Level.LOW:
        return LowCmd(motors=MotorCmds.servo(mode=BRAKE))
    return ScaledHighCmd() if dialect is Dialect.A1_3_2 else HighCmd()


class A1Session:
    """One end of one session with an A1 or a Go1."""

    def __init__(
        self,
        role: Role,
        level: Level,
        *,
        dialect: Dialect | None = None,
        timing: A1Timing | None = None,
        seal: Seal | None = None,
        paced: bool = False,
    ) -> None:
        if role is Role.ROBOT and dialect is None:
            raise BadRequestError("role ROBOT requires a dialect")
        self.role = role
        self.level = level
        self.dialect = dialect
        """CLIENT: None until it is detected."""
        self.state = A1SessionState.NEW
        self.timing = timing or A1Timing()
        self.seal = seal
        """The form of the CRC for a Go1; None is the usual one."""
        self.paced = paced
        """ROBOT: send each state that is reported, not one state for each command."""
        self.sent = 0
        self.received = 0
        self.late = 0
        """CLIENT: number of periods in which no command was sent, because `tick` came too late."""
        self.dropped: Counter[str] = Counter()
        """Number of dropped datagrams, by reason."""
        self._outgoing: list[bytes] = []
        self._events: list[Event] = []
        self._opened_at = _NEVER
        self._received_at = _NEVER
        self._reported_mismatches: set[tuple[Dialect, ...]] = set()
        # CLIENT
        self._current_datagrams: tuple[bytes, ...] = ()
        self._send_at = _NEVER
        self._last_tick: int | None = None
        self._states_behind = 0
        # ROBOT
        self._owes_state = False

    # ---- output ---------------------------------------------------------------------------------

    def outgoing(self) -> list[bytes]:
        """Return the datagrams to send, once."""
        datagrams, self._outgoing = self._outgoing, []
        return datagrams

    def events(self) -> list[Event]:
        """Return what has happened, once."""
        events, self._events = self._events, []
        return events

    @property
    def live(self) -> bool:
        """Whether the session is neither lost nor closed."""
        return self.state not in (A1SessionState.LOST, A1SessionState.CLOSED)

    @property
    def due(self) -> float:
        """When to call `tick` next at the latest; infinity if there is nothing to wait for."""
        if not self.live:
            return _NEVER
        return min(self._send_at, self._compute_stale_time(), self._compute_loss_time())

    # ---- what either end does -------------------------------------------------------------------

    def receive(self, datagram: bytes, now: float) -> None:
        """Process one datagram from the peer; unusable ones are dropped and counted."""
        if not self.live or (self.role is Role.CLIENT and self.state is A1SessionState.NEW):
            self.dropped["after the end" if not self.live else "before the beginning"] += 1
            return
        frame = self._decode_valid(datagram)
        if frame is None:
            return
        if isinstance(frame.value, HighState | LowState):
            self._receive_state(frame.value, frame.dialects, now)
        else:
            self._receive_command(frame.value, now)

    def tick(self, now: float) -> None:
        """Send the command and detect a silent peer, if either is due at `now`."""
        if not self.live:
            return
        if now >= self._compute_loss_time():
            self._lose_peer(now)
            return
        if now >= self._compute_stale_time():
            self.state = A1SessionState.STALE
            self._events.append(WentStale(now - self._received_at))
        if now >= self._send_at:
            # Stay in step with the period, but do not send what was missed.
            missed = int((now - self._send_at) / self.timing.period_s)
            self.late += missed
            self._send_current(self._send_at + (missed + 1) * self.timing.period_s)

    def close(self) -> None:
        """End the session; a client sends the neutral command once more."""
        if (
            self.role is Role.CLIENT
            and self.dialect
            and self.state in (A1SessionState.LIVE, A1SessionState.STALE)
        ):
            self._current_datagrams = (
                self._encode(make_neutral_command(self.level, self.dialect)),
            )
            self._send_current(_NEVER)
        self.state = A1SessionState.CLOSED

    def _decode_valid(self, datagram: bytes) -> wire.A1Frame | None:
        """Return the frame, or None and count why it is dropped."""
        try:
            frame = wire.inspect(datagram)
        except DecodeError:
            self.dropped["unknown length"] += 1
            return None
        kinds = _STATES if self.role is Role.CLIENT else _COMMANDS
        if frame.fault is not None:
            self.dropped[frame.fault.value] += 1
        elif frame.kind is not kinds[self.level]:
            self.dropped["another kind"] += 1
        elif self.dialect is not None and self.dialect not in frame.dialects:
            self.dropped["another dialect"] += 1
            if frame.dialects not in self._reported_mismatches:
                self._reported_mismatches.add(frame.dialects)
                self._events.append(Mismatched(frame.dialects))
        elif not wire.is_finite(frame.value):
            self.dropped["not a number"] += 1
        else:
            return frame
        return None

    def _record_arrival(self, now: float) -> None:
        """Note that a valid frame arrived, so the peer is not silent."""
        if self.state is A1SessionState.STALE:
            self._events.append(Recovered(now - self._received_at))
        self.state = A1SessionState.LIVE
        self.received += 1
        self._received_at = now

    def _compute_stale_time(self) -> float:
        """Return when the peer counts as stale if nothing more arrives."""
        if self.state is not A1SessionState.LIVE:
            return _NEVER
        is_client = self.role is Role.CLIENT
        return self._received_at + (self.timing.stale_s if is_client else self.timing.watchdog_s)

    def _compute_loss_time(self) -> float:
        """Return when the peer counts as lost if nothing more arrives."""
        if self.state is A1SessionState.SEEKING:
            return self._opened_at + self.timing.connect_s
        if self.state is A1SessionState.NEW:
            return _NEVER
        is_client = self.role is Role.CLIENT
        return self._received_at + (self.timing.lost_s if is_client else self.timing.forget_s)

    def _lose_peer(self, now: float) -> None:
        silent_since = (
            self._opened_at if self.state is A1SessionState.SEEKING else self._received_at
        )
        # A robot stays available for the next client.
        self.state = A1SessionState.LOST if self.role is Role.CLIENT else A1SessionState.NEW
        self._send_at = _NEVER
        self._events.append(PeerLost(now - silent_since))

    def _encode(self, value: a1_values.Value) -> bytes:
        assert self.dialect is not None
        return wire.encode(value, self.dialect, seal=self._select_seal(self.dialect))

    def _select_seal(self, dialect: Dialect) -> Seal | None:
        return self.seal if dialect is Dialect.GO1 else None

    # ---- CLIENT ---------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """Start sending the neutral command, in every encoding if the dialect is unknown; `Learned`
        or `PeerLost` follows."""
        if self.role is Role.ROBOT or self.state is not A1SessionState.NEW:
            raise LocalProtocolError("only a new client session can be opened")
        self.state = A1SessionState.SEEKING
        self._opened_at = now
        dialects = (self.dialect,) if self.dialect else _PROBED_DIALECTS[self.level]
        self._current_datagrams = tuple(
            wire.encode(
                make_neutral_command(self.level, dialect), dialect, seal=self._select_seal(dialect)
            )
            for dialect in dialects
        )
        self._send_current(now + self.timing.period_s)

    def command(self, command: Command, now: float) -> None:
        """Send `command` now, and then every period until another one."""
        if self.role is Role.ROBOT or self.state not in (A1SessionState.LIVE, A1SessionState.STALE):
            raise LocalProtocolError(
                f"a {self.role.name} in the state {self.state.name} cannot send commands",
                "Wait for the robot's first state.",
            )
        if isinstance(command, LowCmd) is not (self.level is Level.LOW):
            raise BadRequestError(
                f"a {type(command).__name__} cannot be sent at the {self.level.value} level"
            )
        self._current_datagrams = (self._encode(command),)
        self._send_current(now + self.timing.period_s)

    def _send_current(self, next_at: float) -> None:
        """Send the current command, and again at `next_at`."""
        self._outgoing += self._current_datagrams
        self.sent += len(self._current_datagrams)
        self._send_at = next_at

    def _receive_state(self, state: RobotState, dialects: tuple[Dialect, ...], now: float) -> None:
        if self.state is A1SessionState.SEEKING:
            if self.dialect is None:
                # The low level is the same in all dialects of an A1.
                self.dialect = dialects[-1]
            self._current_datagrams = (
                self._encode(make_neutral_command(self.level, self.dialect)),
            )
            self._events.append(Learned(dialects))
        elif not self._check_order(state.tick, now):
            self.dropped["overtaken"] += 1
            return
        self._last_tick = state.tick
        self._record_arrival(now)
        self._events.append(A1Reported(state))

    def _check_order(self, tick: int | None, now: float) -> bool:
        """Return whether a state is to be used; emit `Jumped` if the robot's clock jumped.

        `tick` is the clock in the state. A state that is older than the last was overtaken, but
        several such states in a row mean that the clock jumped back.
        """
        if tick is None or self._last_tick is None:
            return True
        ahead = (tick - self._last_tick) % 2**32  # the clock has 32 bits and wraps
        is_behind = ahead >= 2**31
        self._states_behind = self._states_behind + 1 if is_behind else 0
        if is_behind and self._states_behind < _MAX_STATES_BEHIND:
            return False
        max_ahead_s = now - self._received_at + self.timing.jump_s
        if is_behind or ahead / self.timing.ticks_per_s > max_ahead_s:
            self._states_behind = 0
            self._events.append(Jumped(self._last_tick, tick))
        return True

    # ---- ROBOT ----------------------------------------------------------------------------------

    def report(self, state: RobotState) -> bool:
        """Send the robot's state if a client is to get it now; return whether it was sent.

        It is to get one state for each command, or each state if the session is `paced`.
        """
        if self.role is Role.CLIENT:
            raise LocalProtocolError("only a session in the role ROBOT can report states")
        datagram = self._encode(state)
        is_due = self.state in (A1SessionState.LIVE, A1SessionState.STALE) and (
            self.paced or self._owes_state
        )
        if is_due:
            self._owes_state = False
            self._outgoing.append(datagram)
            self.sent += 1
        return is_due

    def _receive_command(self, command: Command, now: float) -> None:
        self._owes_state = True
        self._record_arrival(now)
        self._events.append(Commanded(command))
