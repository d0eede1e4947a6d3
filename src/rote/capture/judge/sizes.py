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
"""Bytes of SCTP: the header of a packet, an acknowledgement, the header of a piece of data."""
_CHACHA, _GCM = 16, 24
"""Bytes that a cipher adds to each record."""
_MIN_FITTING_SHARE, _MIN_ACKNOWLEDGEMENTS = 0.95, 0.02
"""Minimum shares of the records that fit the cipher, and that are acknowledgements."""
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
    """Size with the header of 13 bytes, as the seed documents and Wireshark count."""
    records: int
    """Number of records of this size."""
    plain_bytes: int
    """Size of the decrypted content; 0 if the cipher is not known."""
    meaning: str

    def document(self) -> dict[str, int | str]:
        """Return what `--json` shows."""
        return self._asdict()


def infer_cipher(lengths: Lengths) -> InferredCipher | None:
    """Infer the cipher from the lengths of one direction's records; None if none fits.

    Under the right cipher, nearly all contents are whole words of 4 bytes, as SCTP is, and some
    have exactly the size of an acknowledgement.
    """
    if not lengths.size:
        return None
    counts = np.bincount(lengths, minlength=_GCM + HEADER + SACK + 1)
    shares = {}
    for overhead in (_CHACHA, _GCM):
        fitting_share = int(counts[overhead + HEADER + 4 :: 4].sum()) / lengths.size
        acknowledgement_share = int(counts[overhead + HEADER + SACK]) / lengths.size
        shares[overhead] = fitting_share, acknowledgement_share
    # The cipher with more acknowledgements; if both have as many, the one that adds less.
    overhead = max(shares, key=lambda key: (shares[key][1], -key))
    fitting_share, acknowledgement_share = shares[overhead]
    if fitting_share < _MIN_FITTING_SHARE or acknowledgement_share < _MIN_ACKNOWLEDGEMENTS:
        return None
    name, size = CIPHERS[overhead], overhead + HEADER + SACK
    why = (
        f"inferred: {acknowledgement_share:.0%} of the records have exactly the {size} bytes of an "
        f"SCTP acknowledgement under {name}, {fitting_share:.0%} leave a multiple of 4"
    )
    return InferredCipher(overhead, name, False, why)


def is_acknowledgement(lengths: Lengths, overhead: int) -> np.ndarray:
    """Return which records have the size of an acknowledgement without gaps, and nothing else.

    `overhead` is the number of bytes that the cipher adds.
    """
    is_ack: np.ndarray = lengths == overhead + HEADER + SACK
    return is_ack


def describe_sizes(lengths: Lengths, cipher: InferredCipher | None) -> list[SizeReading]:
    """Return what the records of each size probably are, the most frequent size first."""
    counts = np.bincount(lengths)
    sizes = np.flatnonzero(counts)
    counts = counts[sizes]
    order = np.argsort(-counts, kind="stable")
    size_readings = []
    for size, count in zip(sizes[order].tolist(), counts[order].tolist(), strict=True):
        plain = size - cipher.overhead if cipher else 0
        size_readings.append(SizeReading(size + 13, count, plain, _describe_size(plain, cipher)))
    return size_readings


def _describe_size(plain: int, cipher: InferredCipher | None) -> str:
    """Return what a record with `plain` bytes of decrypted content probably is."""
    if cipher is None:
        return "unknown: no cipher fits the sizes"
    after_header = plain - HEADER
    under = f"under {cipher.name}"
    if after_header == SACK:
        return f"SCTP acknowledgement (SACK), {under}"
    if plain % 4 or after_header < 4:
        return f"no SCTP packet {under}"
    if after_header < DATA:
        return f"SCTP control, {under}"
    if after_header <= SACK + 12:  # three gaps of 4 bytes
        return (
            f"SCTP acknowledgement with gaps, or a message of {after_header - DATA} bytes, {under}"
        )
    return f"SCTP data: a message of up to {after_header - DATA} bytes, {under}"
