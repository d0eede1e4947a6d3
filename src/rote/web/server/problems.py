"""The API's error answers: a status, a kind, a message and a remedy."""

import json
from typing import Any

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

    def document(self) -> dict[str, Any]:
        """Return the answer to the page."""
        return _document(self.kind, self.message, self.remedy)


class NotConnectedError(ProblemError):
    """No robot is connected."""

    def __init__(self) -> None:
        super().__init__(409, "not-connected", "no robot is connected", "Connect to one first.")
        self.args = ()


def busy(message: str) -> ProblemError:
    """Return the refusal of a request that must wait."""
    return ProblemError(409, "busy", message, "Wait until it has ended, or stop it.")


def status_of(error: Exception) -> int:
    """Return the HTTP status for a `RoteError`."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def document_of(error: Exception) -> dict[str, Any]:
    """Return the answer to the page for a `RoteError`."""
    if isinstance(error, RoteError):
        document = _document(error.kind, error.text, error.remedy)
        return document | ({"stage": error.stage} if isinstance(error, StageError) else {})
    return _document(
        "no-answer",
        str(error) or "the robot did not report its state in time",
        "Check the connection, then try again.",
    )


def _document(kind: str, message: str, remedy: str) -> dict[str, Any]:
    """Return a problem as plain sentences, and as sentences with their facts."""
    return {
        "error": kind,
        "message": str(message),
        "remedy": str(remedy),
        "texts": texts_of(message, remedy),
    }


def texts_of(message: str, remedy: str) -> dict[str, Any]:
    """Return message and remedy as sentences with their facts."""
    return {"message": as_json(message), "remedy": as_json(remedy)}


def finding_document(finding: Finding) -> dict[str, Any]:
    """Return a finding for the page: as data, and as sentences with their facts."""
    return {**finding.as_json(), "texts": texts_of(finding.message, finding.remedy)}


def to_json(document: Any) -> bytes:
    """Write JSON in ASCII, so that any text, even broken Unicode, can be sent."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii")
