"""A cache of the summaries of a folder's files, so that listing many is quick.

It is stored beside the takes in `.listed.json`. The files stay authoritative: a file is identified
by its size, its time and its inode, and is read again if one of them differs. The cache may be
removed at any time.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

_CACHE_NAME = ".listed.json"
_VERSION = 1
_MAX_BYTES = 1 << 26


class Listing:
    """The cache of a folder: the facts about each file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _CACHE_NAME
        self._inside = f"{folder}{os.sep}"
        self._known = self._read_cache()
        self._used: dict[str, tuple[list[int], dict[str, Any]]] = {}
        self._changed = False

    def _read_cache(self) -> dict[str, Any]:
        """Return the cache; an empty one if it cannot be used."""
        with suppress(OSError, ValueError, RecursionError):
            if self._path.stat().st_size <= _MAX_BYTES:
                document = json.loads(self._path.read_bytes())
                if isinstance(document, dict) and document.get("version") == _VERSION:
                    files = document.get("files")
                    return files if isinstance(files, dict) else {}
        return {}

    def get(self, path: Path) -> dict[str, Any]:
        """Return the known facts about a file, to read and to extend; empty if it has changed."""
        try:
            found = os.stat(path)  # noqa: PTH116 - a thousand of them: half the time
        except OSError:
            return {}
        sign = [found.st_size, found.st_mtime_ns, found.st_ino]
        key = str(path).removeprefix(self._inside)
        known = self._known.get(key)
        sound = isinstance(known, list) and len(known) == 2 and isinstance(known[1], dict)
        if known is None or not sound or known[0] != sign:
            known = [sign, {}]
        self._used[key] = (known[0], known[1])
        facts: dict[str, Any] = known[1]
        return facts

    def add(self, facts: dict[str, Any], **more: object) -> None:
        """Add to the facts that `get` returned."""
        facts.update(more)
        self._changed = True

    def save(self) -> None:
        """Write the cache if something is new; a folder that cannot be written to has none."""
        if not self._changed:
            return
        files = {**self._known, **self._used}
        files = {key: facts for key, facts in files.items() if (self._path.parent / key).exists()}
        part = self._path.with_name(f"{_CACHE_NAME}.{os.getpid()}.part")
        with suppress(OSError):
            part.write_text(json.dumps({"version": _VERSION, "files": files}), encoding="utf-8")
            part.replace(self._path)
