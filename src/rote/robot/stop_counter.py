"""Counts the stops of one robot, so that no motion begins after a stop that came later."""

from rote.errors import RefusedError
from rote.messages import Code, explain


class StopCounter:
    """The number of stops requested over one connection.

    An operation reads `count` when it is requested, and compares it before it moves anything.
    """

    def __init__(self) -> None:
        self.count = 0

    def add_stop(self) -> None:
        """Count one more stop."""
        self.count += 1

    def check_none_since(self, count: int) -> None:
        """Raise `RefusedError` if a stop was requested since `count` was read."""
        if self.count != count:
            raise RefusedError(Code.SUPERSEDED, *explain(Code.SUPERSEDED))
