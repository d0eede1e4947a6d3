"""One UDP datagram of a capture, for the slower parts (decryption, scrubbing)."""

from typing import NamedTuple


class Datagram(NamedTuple):
    """A datagram, with its addresses and its time."""

    time_ns: int
    """Since 1970, UTC."""
    source: tuple[str, int]
    """Address and port."""
    destination: tuple[str, int]
    payload: bytes
