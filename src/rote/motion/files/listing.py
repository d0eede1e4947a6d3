"""What the files of a folder said when they were last read, so that a list of many is quick.

It is a note beside the takes, `.listed.json`, and never the truth: a file is known again by its
size, its time and its place on the disk, and is read again where one of them differs. The note may
be removed at any time.
"""

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

_NOTE = ".listed.json"
_VERSION = 1
_MAX_BYTES = 1 << 26


class Listing:
    """The note of a folder: what was said of each file."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / _NOTE
        self._inside = f"{folder}{os.sep}"
        self._known = self._read()
        self._used: dict[str, tuple[list[int], dict[str, Any]]] = {}
        self._changed = False

    def _read(self) -> dict[str, Any]:
        """Return the note; one that cannot be used is none."""
        with suppress(OSError, ValueError, RecursionError):
            if self._path.stat().st_size <= _MAX_BYTES:
                note = json.loads(self._path.read_bytes())
                if isinstance(note, dict) and note.get("version") == _VERSION:
                    files = note.get("files")
                    return files if isinstance(files, dict) else {}
        return {}

    def get(self, path: Path) -> dict[str, Any]:
        """Return what is known of a file, to be read and added to; empty where it has changed."""
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
        """Add to what `get` returned."""
        facts.update(more)
        self._changed = True

    def save(self) -> None:
        """Write the note where something is new; a folder that cannot be written to has none."""
        if not self._changed:
            return
        files = {**self._known, **self._used}
        files = {key: facts for key, facts in files.items() if (self._path.parent / key).exists()}
        part = self._path.with_name(f"{_NOTE}.{os.getpid()}.part")
        with suppress(OSError):
            part.write_text(json.dumps({"version": _VERSION, "files": files}), encoding="utf-8")
            part.replace(self._path)
