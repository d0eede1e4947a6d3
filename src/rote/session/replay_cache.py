"""Cache of recent requests: a repeated one is answered again but carried out only once."""

from dataclasses import dataclass

from rote import messages as m
from rote.wire.teaching import codec as wire
from rote.wire.teaching.codec import Frame

REMEMBERED = 128
"""Maximum number of requests remembered; an older one was delayed by the network."""

_BEGINNING = wire.encode_command(m.TakeControl())
# A delayed request may still start over or stop the robot. Stopping twice is harmless.
_NEVER_STRAY = {
    _BEGINNING,
    (_BEGINNING[0], bytes(len(_BEGINNING[1]))),  # zeros take control too
    *(wire.encode_command(c) for c in (m.ExitTeaching(), m.StopMotion())),
}


@dataclass(slots=True)
class AnsweredRequest:
    """A request that the robot has received, identified by its CRC."""

    crc: bytes
    command: int
    at: float
    reply: bytes | None = None


def is_older(sequence: int, than: int) -> bool:
    """Whether `sequence` is older than `than`; sequence numbers wrap after 65535."""
    return 0 < (than - sequence) & 0xFFFF < 0x8000


class ReplayCache:
    """The newest sequence number, and the requests within `REMEMBERED` numbers of it."""

    def __init__(self, memory_s: float) -> None:
        self.newest: int | None = None
        self._memory_s = memory_s
        self._seen: dict[int, AnsweredRequest] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def get(self, sequence: int) -> AnsweredRequest | None:
        """Return the request of that number, if it is remembered."""
        return self._seen.get(sequence)

    def find_repeated(self, sequence: int, crc: bytes, now: float) -> AnsweredRequest | None:
        """Return the same request, if it was received before."""
        known = self._seen.get(sequence)
        if known is not None and known.crc == crc and now - known.at < self._memory_s:
            return known
        return None

    def is_stray(self, frame: Frame) -> bool:
        """Whether a request is older than the remembered ones."""
        if self.newest is None or not is_older(frame.sequence, self.newest):
            return False
        old = (self.newest - frame.sequence) & 0xFFFF >= REMEMBERED
        return old and (frame.command, frame.payload) not in _NEVER_STRAY

    def add(self, frame: Frame, crc: bytes, now: float) -> None:
        """Remember a request; call `move_on` with its number next."""
        self._seen[frame.sequence] = AnsweredRequest(crc, frame.command, now)

    def restart(self, frame: Frame, crc: bytes, now: float) -> None:
        """Forget everything before this request: its client starts over."""
        self._seen = {frame.sequence: AnsweredRequest(crc, frame.command, now)}
        self.newest = frame.sequence

    def advance(self, sequence: int) -> None:
        """Note the newest number, and forget what is too old."""
        if self.newest is None:
            self.newest = sequence
        if is_older(sequence, self.newest):
            return
        ahead = (sequence - self.newest) & 0xFFFF
        if ahead == 1:  # the usual case
            self._seen.pop((sequence - REMEMBERED) & 0xFFFF, None)
            self.newest = sequence
            return
        if ahead >= REMEMBERED:
            self._seen = {n: known for n, known in self._seen.items() if n == sequence}
        for step in range(1, min(ahead, REMEMBERED) + 1):
            self._seen.pop((self.newest + step - REMEMBERED) & 0xFFFF, None)
        self.newest = sequence
