"""One UDP datagram of a capture, as the slower parts (decryption, scrubbing) take it."""

from typing import NamedTuple


class Datagram(NamedTuple):
    """What one side sent the other, and when."""

    time_ns: int
    """Since 1970, UTC."""
    source: tuple[str, int]
    """Address and port."""
    destination: tuple[str, int]
    payload: bytes
