"""A secret of this computer, from which the web UI derives its cookies and its links."""

import secrets
from pathlib import Path

from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing

_BYTES = 32
_REMEDY = "Make that folder writable, or choose another with ROTE_HOME."


def server_key(path: Path) -> bytes:
    """Return the secret in a file that only its owner may read; created if missing."""
    try:
        found = path.read_bytes()
    except FileNotFoundError:
        found = b""
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}", _REMEDY) from error
    if len(found) == _BYTES:
        return found
    made = secrets.token_bytes(_BYTES)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadRequestError(f"{path} cannot be written: {error.strerror}", _REMEDY) from error
    with appearing(path, private=True, remedy=_REMEDY) as file:
        file.write(made)
    return made
