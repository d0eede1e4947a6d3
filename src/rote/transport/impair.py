"""An impaired network on request: loss, delay, duplication, reordering, corruption, and a cut.

The random numbers are seeded, so that a failure can be repeated.
"""

import asyncio
import random
import re
from collections.abc import Callable
from dataclasses import dataclass

from rote.errors import BadRequestError

_MAX_REORDER_S = 0.03
"""Maximum extra delay of a reordered datagram: later datagrams overtake it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Impairment:
    """The faults of an impaired network.

    `loss`, `duplicate`, `reorder` and `corrupt` are probabilities per datagram and direction.
    """

    loss: float = 0.0
    delay_s: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    corrupt: float = 0.0
    cut_after_s: float | None = None
    """Seconds after which the connection is cut; None for never."""
    cut_for_s: float = float("inf")
    """Seconds for which it stays cut."""
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("loss", "duplicate", "reorder", "corrupt"):
            if not 0.0 <= getattr(self, name) <= 1.0:
                raise BadRequestError(
                    f"{name} must be a probability from 0 to 1", "For one in ten, write 0.1."
                )
        if not 0.0 <= self.delay_s <= 10.0:
            raise BadRequestError(
                f"a delay must be 0 to 10 s, not {self.delay_s:g} s",
                "For milliseconds, write the unit: 50ms.",
            )


class Disturber:
    """Delivers or drops datagrams according to an `Impairment`."""

    def __init__(self, impairment: Impairment) -> None:
        self._impairment = impairment
        self._random = random.Random(impairment.seed)
        self._loop = asyncio.get_running_loop()
        self._began_s = self._loop.time()

    def pass_on(self, datagram: bytes, deliver: Callable[[bytes], None]) -> None:
        """Call `deliver` with the datagram: delayed, duplicated, corrupted, or not at all."""
        impairment = self._impairment
        if impairment.cut_after_s is not None:
            cut_began_s = self._began_s + impairment.cut_after_s
            if 0 <= self._loop.time() - cut_began_s < impairment.cut_for_s:
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
                delay_s += _MAX_REORDER_S * self._random.random()
            self._loop.call_later(delay_s, deliver, arriving)

    def _flip_one_bit(self, datagram: bytes) -> bytes:
        altered = bytearray(datagram)
        if altered:
            altered[self._random.randrange(len(altered))] ^= 1 << self._random.randrange(8)
        return bytes(altered)


_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+)\s*(ms|s|)\s*")


def parse_seconds(text: str) -> float:
    """Return the number of seconds in a text like `50ms`, `3.2s` or `3.2`."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise BadRequestError(f"{text!r} is not a duration", "Write it like 50ms or 3.2s.")
    return float(match[1]) / (1000.0 if match[2] == "ms" else 1.0)


def describe_impairment(impairment: Impairment) -> str:
    """Return a text like "10 % lost, 50 ms late"; empty without any fault."""
    parts = [
        f"{100 * value:g} % {effect}"
        for value, effect in (
            (impairment.loss, "lost"),
            (impairment.duplicate, "duplicated"),
            (impairment.reorder, "reordered"),
            (impairment.corrupt, "corrupted"),
        )
        if value
    ]
    if impairment.delay_s:
        parts.append(f"{1000 * impairment.delay_s:g} ms late")
    if impairment.cut_after_s is not None:
        parts.append(f"cut off after {impairment.cut_after_s:g} s")
    return ", ".join(parts)
