"""Which motions of others a person has agreed to play on a real robot.

A motion that was imported is not played on a real robot before somebody said yes to it. The yes
counts for the file it came from and so for every edit of it; it is kept in the data folder.
"""

import json
from contextlib import suppress

from rote.errors import RoteError
from rote.motion.files import disk
from rote.motion.track import Origin
from rote.platform.atomic_file import appearing
from rote.platform.paths import agreed_file

_MAX = 10_000


def agreed(origin: Origin | None) -> bool:
    """Whether motions of this origin may be played without asking; those of one's own may."""
    return origin is None or (bool(origin.digest) and origin.digest in _known())


def agree(origin: Origin | None) -> None:
    """Note that a person said yes. Where that cannot be written, they are asked again."""
    if origin is None or not origin.digest:
        return
    path = agreed_file()
    with suppress(OSError, RoteError), disk.alone(path.parent):
        known = _known()
        known.pop(origin.digest, None)
        known[origin.digest] = f"{origin.file} ({origin.format})"
        newest = dict(list(known.items())[-_MAX:])
        with appearing(path, remedy=disk.ANOTHER_HOME) as file:
            file.write(json.dumps(newest, ensure_ascii=False, indent=1).encode("utf-8"))


def _known() -> dict[str, str]:
    """Return what was agreed to; what cannot be read counts as nothing."""
    try:
        found = json.loads(agreed_file().read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
