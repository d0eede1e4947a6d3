"""Locks a show: a file beside it has the hash of the show and of every take and sound it uses."""

import datetime
import hashlib
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Protocol

from rote.errors import BadRequestError, RoteError
from rote.motion.track import Track
from rote.platform.atomic_file import appearing
from rote.stage.show.file import CueKind, Show

_VERSION = 1


class LockedFiles(Protocol):
    """Where the takes and sounds of a show are found."""

    def take(self, name: str) -> Track:
        """Return a take. Raises `BadRequestError` if there is none of that name."""

    def find_sound(self, name: str) -> Path:
        """Return the file of a sound. Raises `BadRequestError` if there is none."""


def lock_path(show_file: Path) -> Path:
    """Return the file that locks a show."""
    return show_file.with_name(f"{show_file.name}.lock")


def lock_show(show_file: Path, show: Show, files: LockedFiles) -> Path:
    """Lock a show as it is now, and return the lock's file. An older lock is replaced.

    Raises `BadRequestError` if a take or a sound is missing.
    """
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    document = {
        "rote_show_lock": _VERSION,
        "locked": now,
        "hashes": {name: compute() for name, compute in _list_parts(show_file, show, files)},
    }
    path = lock_path(show_file)
    with appearing(path) as file:
        file.write(json.dumps(document, indent=1).encode())
    return path


def unlock_show(show_file: Path) -> bool:
    """Remove a show's lock; return False if there is none."""
    path = lock_path(show_file)
    is_locked = path.exists()
    path.unlink(missing_ok=True)
    return is_locked


def check_lock(show_file: Path, show: Show, files: LockedFiles) -> str:
    """Return when a show was locked; "" if it is not.

    Raises `BadRequestError` that names the parts which have changed since.
    """
    try:
        document = json.loads(lock_path(show_file).read_text("utf-8"))
        locked, hashes = str(document["locked"]), dict(document["hashes"])
    except FileNotFoundError:
        return ""
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise BadRequestError(
            f"the lock of this show cannot be read: {error}", "Unlock the show, and lock it again."
        ) from None
    if changed := _find_changes(hashes, show_file, show, files):
        raise BadRequestError(
            f"the show was changed after it was locked on {locked}: {', '.join(changed)}",
            "Restore what was changed, or unlock the show, rehearse it and lock it again.",
        )
    return locked


def _find_changes(
    hashes: Mapping[str, str], show_file: Path, show: Show, files: LockedFiles
) -> list[str]:
    changed, checked = [], set()
    for name, compute in _list_parts(show_file, show, files):
        checked.add(name)
        try:
            is_same = hashes.get(name) == compute()
        except RoteError:  # it is missing
            is_same = False
        if not is_same:
            changed.append(name)
    return changed + sorted(hashes.keys() - checked)


def _list_parts(
    show_file: Path, show: Show, files: LockedFiles
) -> list[tuple[str, Callable[[], str]]]:
    """Return each part of a show, and a function that computes its hash."""
    takes = sorted({clip.take for each in show.sections for clip in each.clips if clip.take})
    cues = [cue for section in show.sections for cue in section.cues]
    sounds = sorted({cue.value for cue in cues if cue.kind is CueKind.SOUND})
    parts: list[tuple[str, Callable[[], str]]] = [("the show file", partial(_hash_file, show_file))]
    parts += [(f"take {name!r}", partial(_hash_take, files, name)) for name in takes]
    parts += [(f"sound {name!r}", partial(_hash_sound, files, name)) for name in sounds]
    return parts


def _hash_sound(files: LockedFiles, name: str) -> str:
    return _hash_file(files.find_sound(name))


def _hash_file(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}") from None


def _hash_take(files: LockedFiles, name: str) -> str:
    """Return the hash of what a robot plays of a take; its tags and notes may change."""
    track = files.take(name)
    digest = hashlib.sha256("\0".join((track.variant, *track.names)).encode())
    digest.update(track.times_s.tobytes())
    digest.update(track.joints_rad.tobytes())
    return digest.hexdigest()
