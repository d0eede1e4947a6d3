"""A copy that begins as zeros: only what is kept or replaced explicitly gets into it."""

from collections.abc import Callable

from rote.errors import DecodeError


class MaskedCopy:
    """A copy of `old`, all zeros until a field is kept, or a pseudonym put in its place."""

    __slots__ = ("new", "old", "written")

    def __init__(self, old: bytes) -> None:
        self.old = old
        self.new = bytearray(len(old))
        self.written = 0
        """Bytes that were kept or replaced."""

    def number(self, at: int, size: int = 2, order: str = ">") -> int:
        """Return a number of the original; raises `DecodeError` if it ends before that."""
        if not 0 <= at <= len(self.old) - size:
            raise DecodeError(f"{len(self.old)} bytes end before the number at {at}")
        return int.from_bytes(self.old[at : at + size], "little" if order == "<" else "big")

    def keep(self, at: int, size: int = 1) -> None:
        """Keep bytes of the original, as far as there are any."""
        self.put(at, self.old[at : at + size])

    def put(self, at: int, value: bytes) -> None:
        """Write a value, unless the original ends before it does."""
        if at + len(value) <= len(self.old):
            self.new[at : at + len(value)] = value
            self.written += len(value)

    def replace(self, at: int, size: int, pseudonym: Callable[[bytes], bytes]) -> None:
        """Write the pseudonym of a value; one that is cut off stays zeros."""
        if size > 0 and len(old := self.old[at : at + size]) == size:
            self.put(at, pseudonym(old))

    def embed(self, at: int, inner: "MaskedCopy") -> None:
        """Write the copy of a part."""
        self.new[at : at + len(inner.new)] = inner.new
        self.written += inner.written

    def end_at(self, stop: int) -> None:
        """Treat what follows as absent, such as the padding behind a packet: it stays zeros."""
        self.old = self.old[:stop]
