"""What a robot remembers of requests, so that a repeated one is answered again but done once."""

from dataclasses import dataclass

from rote import messages as m
from rote.wire import teaching as wire
from rote.wire.teaching import Frame

REMEMBERED = 128
"""Requests a robot remembers; one older than that is a stray of the network."""

_BEGINNING = wire.encode_command(m.TakeControl())
# What a stray may still do: begin anew, and end what moves. Ending twice harms nobody.
_NEVER_STRAY = {
    _BEGINNING,
    (_BEGINNING[0], bytes(len(_BEGINNING[1]))),  # zeros take control too
    *(wire.encode_command(c) for c in (m.ExitTeaching(), m.StopMotion())),
}


@dataclass(slots=True)
class AnsweredRequest:
    """A request the robot has seen, told from others by its CRC."""

    crc: bytes
    command: int
    at: float
    reply: bytes | None = None


def is_older(sequence: int, than: int) -> bool:
    """Compare two sequence numbers that wrap after 65535."""
    return 0 < (than - sequence) & 0xFFFF < 0x8000


class Memory:
    """The newest number heard, and the requests within `REMEMBERED` numbers of it."""

    def __init__(self, memory_s: float) -> None:
        self.newest: int | None = None
        self._memory_s = memory_s
        self._seen: dict[int, AnsweredRequest] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def get(self, sequence: int) -> AnsweredRequest | None:
        """Return the request of that number, if it is remembered."""
        return self._seen.get(sequence)

    def repeated(self, sequence: int, crc: bytes, now: float) -> AnsweredRequest | None:
        """Return what is known of this very request, where it came before."""
        known = self._seen.get(sequence)
        if known is not None and known.crc == crc and now - known.at < self._memory_s:
            return known
        return None

    def is_stray(self, frame: Frame) -> bool:
        """Whether a request is older than memory reaches."""
        if self.newest is None or not is_older(frame.sequence, self.newest):
            return False
        old = (self.newest - frame.sequence) & 0xFFFF >= REMEMBERED
        return old and (frame.command, frame.payload) not in _NEVER_STRAY

    def add(self, frame: Frame, crc: bytes, now: float) -> None:
        """Remember a request; `move_on` to its number follows."""
        self._seen[frame.sequence] = AnsweredRequest(crc, frame.command, now)

    def begin(self, frame: Frame, crc: bytes, now: float) -> None:
        """Forget everything before this request: its client begins anew."""
        self._seen = {frame.sequence: AnsweredRequest(crc, frame.command, now)}
        self.newest = frame.sequence

    def move_on(self, sequence: int) -> None:
        """Note the newest number heard, and forget what lies too far behind it."""
        if self.newest is None:
            self.newest = sequence
        if is_older(sequence, self.newest):
            return
        ahead = (sequence - self.newest) & 0xFFFF
        if ahead == 1:  # as nearly always
            self._seen.pop((sequence - REMEMBERED) & 0xFFFF, None)
            self.newest = sequence
            return
        if ahead >= REMEMBERED:
            self._seen = {n: known for n, known in self._seen.items() if n == sequence}
        for step in range(1, min(ahead, REMEMBERED) + 1):
            self._seen.pop((self.newest + step - REMEMBERED) & 0xFFFF, None)
        self.newest = sequence
