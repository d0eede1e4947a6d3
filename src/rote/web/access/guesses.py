"""Rate limit for guessed tokens: an address that sends many wrong ones has to wait."""

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

from rote.web.server.problems import ProblemError

MAX_WRONG = 10
"""Maximum number of wrong tokens of one address in `WINDOW_S`."""
WINDOW_S = 60.0
RETRY_S = 30
"""How long all tokens of that address are refused, right or wrong."""
_MAX_ADDRESSES = 4096


@dataclass(slots=True)
class _Record:
    wrong: int
    since_s: float
    free_s: float = 0.0


class Guesses:
    """Counts the wrong tokens of each address, and forgets them after a while."""

    def __init__(self) -> None:
        self._records: OrderedDict[str, _Record] = OrderedDict()

    def is_held_off(self, address: str) -> bool:
        """Whether tokens of this address are refused now."""
        record = self._records.get(_network_of(address))
        return record is not None and asyncio.get_running_loop().time() < record.free_s

    def check(self, address: str) -> None:
        """Raise `ProblemError` if this address has to wait."""
        if self.is_held_off(address):
            raise ProblemError(
                429,
                "too-many-guesses",
                "too many wrong tokens came from this address",
                f"Wait {RETRY_S} s, then open the link that the server printed when it began. "
                "A page that is open goes on.",
            )

    def note_wrong(self, address: str) -> None:
        """Count one wrong token."""
        now, network = asyncio.get_running_loop().time(), _network_of(address)
        record = self._records.pop(network, None)
        if record is None or now - record.since_s > WINDOW_S:
            record = _Record(0, now)
        record.wrong += 1
        if record.wrong >= MAX_WRONG:
            record.wrong, record.since_s, record.free_s = 0, now, now + RETRY_S
        self._records[network] = record
        while len(self._records) > _MAX_ADDRESSES:
            self._records.popitem(last=False)


def _network_of(address: str) -> str:
    """Return what one person typically has: an IPv4 address, or an IPv6 /64 network."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address):
        if found.ipv4_mapped is not None:
            return str(found.ipv4_mapped)
        return found.exploded[:19]
    return str(found)
