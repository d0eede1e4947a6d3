"""An impaired network on request: loss, delay, duplication, reordering, corruption, and a cut.

The random numbers are seeded, so that a failure can be repeated.
"""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from rote.errors import BadRequestError

_OVERTAKEN_S = 0.03
"""Maximum extra delay of a reordered datagram, in seconds: later datagrams overtake it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impairment:
    """How bad the network is. Probabilities are per datagram and direction."""

    loss: float = 0.0
    delay_s: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    cut_after_s: float | None = None
    """After this long nothing passes any more..."""
    cut_for_s: float = float("inf")
    """...for this long."""
    seed: int = 0

    def __post_init__(self) -> None:
        for what in ("loss", "duplicate", "reorder", "corrupt"):
            if not 0.0 <= getattr(self, what) <= 1.0:
                raise BadRequestError(f"{what} is a share from 0 to 1", "0.1 is one in ten.")
        if not 0.0 <= self.delay_s <= 10.0:
            raise BadRequestError(
                f"a delay is 0 to 10 s, not {self.delay_s:g} s", "Write 50ms for milliseconds."
            )


class Disturber:
    """Delivers or drops datagrams according to an `Impairment`."""

    def __init__(self, impairment: Impairment) -> None:
        self._impairment = impairment
        self._random = random.Random(impairment.seed)
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    def pass_on(self, datagram: bytes, deliver: Callable[[bytes], None]) -> None:
        """Call `deliver` with the datagram: delayed, duplicated, corrupted, or not at all."""
        impairment = self._impairment
        if impairment.cut_after_s is not None:
            cut_s = self._loop.time() - self._began - impairment.cut_after_s
            if 0 <= cut_s < impairment.cut_for_s:
                return
        copies = 2 if self._random.random() < impairment.duplicate else 1
        for _ in range(copies):
            if self._random.random() < impairment.loss:
                continue
            arriving = datagram
            if self._random.random() < impairment.corrupt:
                arriving = self._flip_one_bit(datagram)
            delay_s = impairment.delay_s
            if self._random.random() < impairment.reorder:
                delay_s += _OVERTAKEN_S * self._random.random()
            self._loop.call_later(delay_s, deliver, arriving)

    def _flip_one_bit(self, datagram: bytes) -> bytes:
        altered = bytearray(datagram)
        if altered:
            altered[self._random.randrange(len(altered))] ^= 1 << self._random.randrange(8)
        return bytes(altered)
