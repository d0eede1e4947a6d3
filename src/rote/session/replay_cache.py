"""Cache of recent requests, so that a repeated one is answered again but carried out only once."""

from dataclasses import dataclass

from rote import messages as m
from rote.wire.teaching import codec as wire
from rote.wire.teaching.codec import Frame

REMEMBERED = 128
"""Maximum number of requests remembered."""

_TAKE_CONTROL = wire.encode_command(m.TakeControl())
# Requests that are carried out however late they arrive. Stopping twice is harmless.
_ACCEPTED_LATE = {
    _TAKE_CONTROL,
    (_TAKE_CONTROL[0], bytes(len(_TAKE_CONTROL[1]))),  # zeros take control too
    *(wire.encode_command(c) for c in (m.ExitTeaching(), m.StopMotion())),
}


@dataclass(slots=True)
class RememberedRequest:
    """A request that the robot has received, identified by its CRC."""

    crc: bytes
    command: int
    received_at: float
    reply: bytes | None = None
    """The datagram that answered it; None if it is not answered yet."""


def is_older(sequence: int, than: int) -> bool:
    """Whether `sequence` is older than `than`; sequence numbers wrap after 65535."""
    # A number is older if it is less than half the range behind.
    return 0 < (than - sequence) & 0xFFFF < 0x8000


class ReplayCache:
    """The newest sequence number, and the requests within `REMEMBERED` numbers of it."""

    def __init__(self, memory_s: float) -> None:
        self.newest: int | None = None
        self._memory_s = memory_s
        self._seen: dict[int, RememberedRequest] = {}

    def __len__(self) -> int:
        return len(self._seen)

    def get(self, sequence: int) -> RememberedRequest | None:
        """Return the request of that number, if it is remembered."""
        return self._seen.get(sequence)

    def find_repeated(self, sequence: int, crc: bytes, now: float) -> RememberedRequest | None:
        """Return the remembered request with this number and CRC, if it is not too long ago."""
        request = self._seen.get(sequence)
        if request is None or request.crc != crc:
            return None
        return request if now - request.received_at < self._memory_s else None

    def is_stray(self, frame: Frame) -> bool:
        """Whether a request is too old to be carried out: older than the remembered ones."""
        if self.newest is None or not is_older(frame.sequence, self.newest):
            return False
        is_forgotten = (self.newest - frame.sequence) & 0xFFFF >= REMEMBERED
        return is_forgotten and (frame.command, frame.payload) not in _ACCEPTED_LATE

    def add(self, frame: Frame, crc: bytes, now: float) -> None:
        """Remember a request; call `advance` with its number next."""
        self._seen[frame.sequence] = RememberedRequest(crc, frame.command, now)

    def restart(self, frame: Frame, crc: bytes, now: float) -> None:
        """Forget everything before this request: its client starts over."""
        self._seen = {frame.sequence: RememberedRequest(crc, frame.command, now)}
        self.newest = frame.sequence

    def advance(self, sequence: int) -> None:
        """Set the newest sequence number, and forget requests that are too old."""
        if self.newest is None:
            self.newest = sequence
        if is_older(sequence, self.newest):
            return
        ahead = (sequence - self.newest) & 0xFFFF
        if ahead >= REMEMBERED:  # all other requests are too old
            self._seen = {n: request for n, request in self._seen.items() if n == sequence}
        else:
            oldest = self.newest - REMEMBERED + 1
            for old in range(oldest, oldest + ahead):
                self._seen.pop(old & 0xFFFF, None)
        self.newest = sequence
