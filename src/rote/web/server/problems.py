"""The API's error answers: a status, a kind, a message and a remedy."""

import json
from typing import TYPE_CHECKING, Any, cast

from rote.errors import (
    BadRequestError,
    DecodeError,
    LinkError,
    ProtocolError,
    RoteError,
    StageError,
)
from rote.findings import Finding
from rote.text import as_json

if TYPE_CHECKING:
    from rote.web.schemas.robot import FindingNow, Problem, TextNow, Texts

_STATUSES: tuple[tuple[type[Exception], int], ...] = (
    (BadRequestError, 400),
    (DecodeError, 400),
    (LinkError, 502),
    (ProtocolError, 502),
    (TimeoutError, 502),
    (RoteError, 409),
)


class ProblemError(Exception):
    """A request that is refused here, before anything is sent to a robot."""

    def __init__(self, status: int, kind: str, message: str, remedy: str = "") -> None:
        super().__init__(status, kind, message, remedy)
        self.status = status
        self.kind = kind
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return self.message

    def document(self) -> "Problem":
        """Return the answer to the page."""
        return _make_document(self.kind, self.message, self.remedy)


class NotConnectedError(ProblemError):
    """No robot is connected."""

    def __init__(self) -> None:
        super().__init__(409, "not-connected", "no robot is connected", "Connect to one first.")
        self.args = ()  # those of this `__init__`, with which copies are made


def busy(message: str) -> ProblemError:
    """Return the error for a request that must wait for the end of something else."""
    return ProblemError(409, "busy", message, "Wait until it has ended, or stop it.")


def status_of(error: Exception) -> int:
    """Return the HTTP status for a `RoteError` or a `TimeoutError`."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def make_problem(error: Exception) -> "Problem":
    """Return the answer to the page for a `RoteError` or a `TimeoutError`."""
    if isinstance(error, RoteError):
        document = _make_document(error.kind, error.text, error.remedy)
        if isinstance(error, StageError):
            document["stage"] = error.stage
        return document
    return _make_document(
        "no-answer",
        str(error) or "the robot did not report its state in time",
        "Check the connection, then try again.",
    )


def _make_document(kind: str, message: str, remedy: str) -> "Problem":
    """Return a problem as plain sentences, and as templates with their facts."""
    return {
        "error": kind,
        "message": str(message),
        "remedy": str(remedy),
        "texts": texts_of(message, remedy),
    }


def text_of(message: str) -> "TextNow":
    """Return a sentence as JSON: its template, and the facts to fill in."""
    return cast("TextNow", as_json(message))


def texts_of(message: str, remedy: str) -> "Texts":
    """Return message and remedy as templates, each with the facts to fill in."""
    return {"message": text_of(message), "remedy": text_of(remedy)}


def finding_document(finding: Finding) -> "FindingNow":
    """Return a finding for the page: its data, and its sentences as templates with facts."""
    texts = texts_of(finding.message, finding.remedy)
    return cast("FindingNow", {**finding.as_json(), "texts": texts})


def to_json(document: Any) -> bytes:
    """Write JSON in ASCII, so that any text, even broken Unicode, can be sent."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
