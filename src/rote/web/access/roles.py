"""What a browser may do: watch, command, or teach a class; and how a request shows who it is."""

from enum import Enum
from typing import Any, NamedTuple

from rote.web.server.problems import ProblemError

SCOPE_KEY = "rote.access"
"""Where the guard leaves an `Access` for whatever answers the request."""


class PendantRole(Enum):
    """Whose link a browser was opened with. Everybody may stop the robot."""

    WATCH = "watch"
    """Sees everything, moves and changes nothing."""
    COMMAND = "command"
    """May take command."""
    TEACHER = "teacher"
    """May take command, and lock it against everybody else."""

    @property
    def may_command(self) -> bool:
        """Whether a browser of this role may ever command."""
        return self is not PendantRole.WATCH

    @property
    def rank(self) -> int:
        """How much it may do, compared with the others."""
        return list(PendantRole).index(self)


class Access(NamedTuple):
    """What a request has shown of itself: the role of its token, and its browser's own cookie."""

    role: PendantRole = PendantRole.TEACHER
    seat: str | None = None
    """A random cookie of the browser; None for scripts, which keep no cookies."""

    def need(self, role: PendantRole) -> None:
        """Raise `ProblemError` where this role may do less."""
        if self.role.rank < role.rank:
            raise _too_low(role)


LOCAL = Access()
"""Somebody at this computer, where no token is asked for."""


def access_of(scope: Any) -> Access:
    """Return what the guard has found out about a request; without a guard, the least."""
    access = scope.get(SCOPE_KEY)
    return access if isinstance(access, Access) else Access(PendantRole.WATCH)


def _too_low(role: PendantRole) -> ProblemError:
    if role is PendantRole.TEACHER:
        return ProblemError(
            403,
            "not-teacher",
            "only a teacher may do this",
            "Open the teacher's link, the first that the server printed when it began.",
        )
    return ProblemError(
        403,
        "watch-only",
        "this browser was opened with a link that only watches",
        "Ask for a link that commands; stopping is always allowed.",
    )
