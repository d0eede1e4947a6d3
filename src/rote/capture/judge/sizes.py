"""What the sizes of encrypted records show: acknowledgements or data, and which cipher.

A record contains an SCTP packet and what the cipher adds. SCTP has a header of 12 bytes; an
acknowledgement without gaps has 16 more, a piece of a message 16 more and then the message, padded
to four. So sizes suggest a record's content but never prove it.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Lengths = NDArray[np.integer]
HEADER, SACK, DATA = 12, 16, 16
_CHACHA, _GCM = 16, 24
CIPHERS = {_CHACHA: "ChaCha20-Poly1305", _GCM: "AES-GCM"}


class InferredCipher(NamedTuple):
    """How many bytes the cipher adds to each record, and how that is known."""

    overhead: int
    name: str
    known: bool
    """Whether the handshake stated it; otherwise it is inferred from the sizes."""
    why: str


class SizeReading(NamedTuple):
    """What records of one size are likely to be."""

    record_bytes: int
    """With the header of 13 bytes, as the seed documents and Wireshark count."""
    records: int
    plain_bytes: int
    meaning: str

    def document(self) -> dict[str, int | str]:
        """Return what `--json` shows."""
        return {
            "record_bytes": self.record_bytes,
            "records": self.records,
            "plain_bytes": self.plain_bytes,
            "meaning": self.meaning,
        }


def infer(lengths: Lengths) -> InferredCipher | None:
    """Guess the cipher from the lengths of one direction's records; None if nothing fits."""
    if not lengths.size:
        return None
    counts = np.bincount(lengths, minlength=_GCM + HEADER + SACK + 1)
    shares = {}
    for overhead in (_CHACHA, _GCM):
        fits = int(counts[overhead + HEADER + 4 :: 4].sum()) / lengths.size
        acknowledgements = int(counts[overhead + HEADER + SACK]) / lengths.size
        shares[overhead] = fits, acknowledgements
    overhead = max(shares, key=lambda key: (shares[key][1], -key))
    fits, acknowledgements = shares[overhead]
    if fits < 0.95 or acknowledgements < 0.02:
        return None
    why = (
        f"inferred: {acknowledgements:.0%} of the records have exactly the {overhead + 28} bytes "
        f"of an SCTP acknowledgement under {CIPHERS[overhead]}, {fits:.0%} leave a multiple of 4"
    )
    return InferredCipher(overhead, CIPHERS[overhead], False, why)


def is_acknowledgement(lengths: Lengths, overhead: int) -> np.ndarray:
    """Return which records contain an acknowledgement without gaps, and nothing else."""
    found: np.ndarray = lengths == overhead + HEADER + SACK
    return found


def readings(lengths: Lengths, cipher: InferredCipher | None) -> list[SizeReading]:
    """Return what the records of each size probably are, the commonest size first."""
    counts = np.bincount(lengths)
    sizes = np.flatnonzero(counts)
    counts = counts[sizes]
    order = np.argsort(-counts, kind="stable")
    found = []
    for size, count in zip(sizes[order].tolist(), counts[order].tolist(), strict=True):
        plain = size - cipher.overhead if cipher else 0
        found.append(SizeReading(size + 13, count, plain, _describe_size(plain, cipher)))
    return found


def _describe_size(plain: int, cipher: InferredCipher | None) -> str:
    if cipher is None:
        return "unknown: no cipher fits the sizes"
    rest = plain - HEADER
    under = f"under {cipher.name}"
    if rest == SACK:
        return f"SCTP acknowledgement (SACK), {under}"
    if plain % 4 or rest < 4:
        return f"no SCTP packet {under}"
    if rest < DATA:
        return f"SCTP control, {under}"
    if rest <= SACK + 12:
        return f"SCTP acknowledgement with gaps, or a message of {rest - DATA} bytes, {under}"
    return f"SCTP data: a message of up to {rest - DATA} bytes, {under}"
