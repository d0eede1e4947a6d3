"""Numbers with names that print as their names."""

from enum import IntEnum

_NUMERIC = frozenset("bcdeEfFgGnoxX%")
"""The presentation types that format a number."""


class NamedIntEnum(IntEnum):
    """An `IntEnum` whose members print as their names: `print(Phase.PLAYING)` shows PLAYING.

    A format for numbers, as in `f"{code:d}"`, shows the number; so does JSON.
    """

    def __str__(self) -> str:
        return self.name

    def __format__(self, spec: str) -> str:
        return format(int(self) if spec[-1:] in _NUMERIC else self.name, spec)
