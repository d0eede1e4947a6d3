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

_MAX_AGREED = 10_000


def is_agreed(origin: Origin | None) -> bool:
    """Return whether motions of this origin may be played without asking a person.

    The user's own motions have no origin, and never need an agreement.
    """
    return origin is None or (bool(origin.digest) and origin.digest in _read_agreed())


def agree(origin: Origin | None) -> None:
    """Store that a person has agreed to play motions of this origin on a real robot.

    An error while storing is ignored: the person is then asked again next time.
    """
    if origin is None or not origin.digest:
        return
    path = agreed_file()
    with suppress(OSError, RoteError), disk.lock_folder(path.parent):
        agreed = _read_agreed()
        agreed.pop(origin.digest, None)  # it moves to the end, where the newest are kept
        agreed[origin.digest] = f"{origin.file} ({origin.format})"
        newest = dict(list(agreed.items())[-_MAX_AGREED:])
        with appearing(path, remedy=disk.HOME_REMEDY) as file:
            file.write(json.dumps(newest, ensure_ascii=False, indent=1).encode("utf-8"))


def _read_agreed() -> dict[str, str]:
    """Return a description of each agreed origin, by its digest; none if the file is unreadable."""
    try:
        agreed = json.loads(agreed_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return agreed if isinstance(agreed, dict) else {}
