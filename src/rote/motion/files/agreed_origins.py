"""Which imported motions a person has agreed to play on a real robot.

An imported motion is not played on a real robot before a person has agreed to it. The agreement
covers the file it came from, and so every edit of it. It is stored in the data folder.
"""

import json
from contextlib import suppress

from rote.errors import RoteError
from rote.motion.files import disk
from rote.motion.track import Origin
from rote.platform.atomic_file import appearing
from rote.platform.paths import agreed_file

_MAX = 10_000


def is_agreed(origin: Origin | None) -> bool:
    """Whether motions of this origin may be played without asking; the user's own motions may."""
    return origin is None or (bool(origin.digest) and origin.digest in _read_agreed())


def agree(origin: Origin | None) -> None:
    """Store that a person has agreed. If that cannot be written, they are asked again."""
    if origin is None or not origin.digest:
        return
    path = agreed_file()
    with suppress(OSError, RoteError), disk.lock_folder(path.parent):
        known = _read_agreed()
        known.pop(origin.digest, None)
        known[origin.digest] = f"{origin.file} ({origin.format})"
        newest = dict(list(known.items())[-_MAX:])
        with appearing(path, remedy=disk.ANOTHER_HOME) as file:
            file.write(json.dumps(newest, ensure_ascii=False, indent=1).encode("utf-8"))


def _read_agreed() -> dict[str, str]:
    """Return the agreed origins; none if the file cannot be read."""
    try:
        found = json.loads(agreed_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
