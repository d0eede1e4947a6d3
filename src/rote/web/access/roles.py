"""The roles of browsers (watch, command, teacher), and the access of a request."""

from enum import Enum
from typing import Any, NamedTuple

from rote.web.server.problems import ProblemError

SCOPE_KEY = "rote.access"
"""The ASGI scope key under which the guard stores the `Access` of a request."""


class PendantRole(Enum):
    """The role of the link that a browser was opened with. Every role may stop the robot."""

    WATCH = "watch"
    """Sees everything, moves and changes nothing."""
    COMMAND = "command"
    """May take command."""
    TEACHER = "teacher"
    """May take command, and lock it against all other roles."""

    @property
    def may_command(self) -> bool:
        """Whether a browser of this role may ever command."""
        return self is not PendantRole.WATCH

    @property
    def rank(self) -> int:
        """Position in the order of permissions, the lowest first."""
        return list(PendantRole).index(self)


class Access(NamedTuple):
    """The identity of a request: the role of its token, and its browser's own cookie."""

    role: PendantRole = PendantRole.TEACHER
    seat: str | None = None
    """A random cookie of the browser; None for scripts, which keep no cookies."""

    def require_role(self, role: PendantRole) -> None:
        """Raise `ProblemError` if this access has a lower role."""
        if self.role.rank < role.rank:
            raise _role_too_low_error(role)


LOCAL = Access()
"""A user at this computer when no token is required."""


def access_of(scope: Any) -> Access:
    """Return the access that the guard has stored; without a guard, the lowest role."""
    access = scope.get(SCOPE_KEY)
    return access if isinstance(access, Access) else Access(PendantRole.WATCH)


def _role_too_low_error(role: PendantRole) -> ProblemError:
    if role is PendantRole.TEACHER:
        return ProblemError(
            403,
            "not-teacher",
            "only a teacher may do this",
            "Open the teacher's link, the first that the server printed when it started.",
        )
    return ProblemError(
        403,
        "watch-only",
        "this browser was opened with a link that only watches",
        "Ask for a link that commands; stopping is always allowed.",
    )
