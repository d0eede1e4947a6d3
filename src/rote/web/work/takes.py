"""What is done to takes: files, curves, edits and checks, as functions for a child process.

They get the library's folder, and nothing of the server; answers for the page are JSON already.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, RoteError
from rote.model.family import MAX_MOTION_S, Build
from rote.model.registry import family_of, find_build
from rote.motion import files
from rote.motion.check.rules import check
from rote.motion.edit import operations as edit
from rote.motion.edit.steps import Step, apply, others_of
from rote.motion.edit.table import limbs_of
from rote.motion.files.library import (
    Entry,
    Library,
    Trashed,
    check_existing_name,
    check_name,
    write_new,
)
from rote.motion.files.thumbnail import thumbnail
from rote.motion.keyframes.proposal import propose
from rote.motion.track import Track
from rote.motion.track_build import build_of
from rote.robot.streaming import TrackCheck, check_robot
from rote.web.server.problems import ProblemError, finding_document, to_json

MAX_ROWS = 1500
CLOSED_RAD = 0.005
"""A motion that ends nearer to its beginning than this is a closed loop."""
_MAX_THUMBNAILS = 2048


class PlayableTake(NamedTuple):
    """A take that was checked, ready to be played."""

    checked: TrackCheck
    rounds: int
    """How many times over its track has the motion."""


# ---- the library --------------------------------------------------------------------------------


def entries(folder: Path, search: str, first: int, count: int | None, known: str) -> bytes:
    """Return the takes from number `first` on, each with its picture; `count` of them at most.

    Where they are the same as those whose tag is `known`, only that is said.
    """
    library = Library(folder)
    found = library.list(search)
    last = len(found) if count is None else first + count
    shown = [_document(library, entry) for entry in found[first:last]]
    tag = hashlib.sha256(to_json(shown)).hexdigest()[:16]
    same = tag == known
    return to_json({"takes": [] if same else shown, "total": len(found), "tag": tag, "same": same})


def save(folder: Path, track: Track, name: str) -> bytes:
    """Keep a track as a take."""
    library = Library(folder)
    return to_json(_document(library, library.save(track, name)))


def rename(folder: Path, old: str, new: str) -> bytes:
    """Give a take another name."""
    library = _with(folder, old)
    return to_json(_document(library, library.rename(old, new)))


def delete(folder: Path, name: str) -> None:
    """Move a take to the library's trash."""
    _with(folder, name).delete(name)


def delete_newest(folder: Path, name: str) -> None:
    """Move the newest version of a take to the library's trash."""
    _with(folder, name).delete_newest(name)


def write_file(track: Track, path: Path) -> None:
    """Write a track to a file of any format."""
    files.save(track, path)


def write_elsewhere(folder: Path, track: Track, name: str) -> str:
    """Write a track to a new file in a folder, and return its path."""
    return str(write_new(track, folder, name))


def tag(folder: Path, name: str, add: Sequence[str], remove: Sequence[str]) -> bytes:
    """Add tags to a take, and take others away."""
    library = _with(folder, name)
    return to_json(_document(library, library.tag(name, add, remove)))


def trash(folder: Path) -> bytes:
    """Return what was deleted, the newest first."""
    return to_json({"trash": [_trashed(each) for each in Library(folder).trash()]})


def _trashed(trashed: Trashed) -> dict[str, Any]:
    entry = trashed.entry
    readable = entry is not None and not entry.problem
    return {
        "id": trashed.id,
        "name": trashed.name,
        "deleted_s": round(trashed.deleted_s, 3),
        "versions": trashed.versions,
        "duration_s": round(entry.duration_s, 4) if entry is not None and readable else None,
    }


def restore(folder: Path, grave_id: str, to: str | None) -> bytes:
    """Bring a deleted take back."""
    library = Library(folder)
    return to_json(_document(library, library.restore(grave_id, to)))


def purge(folder: Path, grave_id: str) -> None:
    """Delete something from the trash for good."""
    Library(folder).purge(grave_id)


def import_file(
    folder: Path, path: Path, shown: str, name: str, *, degrees: bool, replace_it: bool
) -> bytes:
    """Add a file that was copied to `path`; people know it as `shown`."""
    if not replace_it and Library(folder).versions(check_name(name)):
        raise ProblemError(
            409,
            "name-taken",
            f"there is a take {name!r} already",
            "Choose another name, or save it as a new version.",
        )
    try:
        track = files.load(path, degrees=degrees)
    except BadRequestError as error:
        message = str(error).replace(str(path), shown)
        raise BadRequestError(message, error.remedy) from None
    if track.source == f"file {path.name}":
        track = replace(track, source=f"file {shown}")
    return save(folder, track, name)


def export_file(folder: Path, name: str, path: Path) -> None:
    """Write a take to a file of any format."""
    files.save(load(folder, name), path)


def motion(folder: Path, name: str) -> bytes:
    """Return all the page wants to know about a take."""
    track = load(folder, name)
    return to_json({"name": name, "rate_hz": round(track.rate_hz, 3), **curves(track)})


def load(folder: Path, name: str, version: int | None = None) -> Track:
    """Read a take, the newest version unless told otherwise."""
    library = _with(folder, name)
    try:
        return library.load(name, version)
    except BadRequestError as error:
        message = str(error).replace(f"{folder}/", "")
        raise BadRequestError(message, error.remedy) from None


def newest_version(folder: Path, name: str) -> int:
    """Return the number of a take's newest version."""
    return _with(folder, name).versions(name)[-1]


def _with(folder: Path, name: str) -> Library:
    """Return the library, which has a take of that name."""
    library = Library(folder)
    if not library.versions(check_existing_name(name)):
        raise ProblemError(
            404, "no-such-take", f"there is no take {name!r}", "Look at the list of takes."
        )
    return library


def _document(library: Library, entry: Entry) -> dict[str, Any]:
    build = find_build(entry.variant)
    return {
        "name": entry.name,
        "duration_s": round(entry.duration_s, 4),
        "samples": entry.samples,
        "version": entry.version,
        "versions": list(library.versions(entry.name)),
        "tags": list(entry.tags),
        "variant": entry.variant,
        "family": None if build is None else build.family,
        "title": entry.variant if build is None else build.title,
        "source": entry.source,
        "problem": entry.problem.replace(f"{library.folder}/", ""),
        "thumbnail": "" if entry.problem else _thumbnail(entry),
    }


def _thumbnail(entry: Entry) -> str:
    try:
        facts = entry.path.stat()
        return _drawn(entry.path, facts.st_mtime_ns, facts.st_size)
    except (OSError, RoteError):
        return ""


@lru_cache(_MAX_THUMBNAILS)
def _drawn(path: Path, _time_ns: int, _size: int) -> str:
    """Return a take's picture, drawn once for each version of its file."""
    return thumbnail(files.load(path, any_joints=True))


def curves(track: Track, start_s: float = 0.0, end_s: float | None = None) -> dict[str, Any]:
    """Return a track as the page draws it: at most 1500 rows, the last one among them.

    From `start_s` to `end_s`, with one row more on each side, so that a curve does not end inside.
    """
    rows = _rows(track, start_s, end_s)
    return {
        "names": list(track.names),
        "times_s": np.round(track.times_s[rows], 4).tolist(),
        "joints_rad": np.round(track.joints_rad[rows], 4).tolist(),
        "duration_s": round(track.duration_s, 4),
        "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in track.marks],
        "history": list(track.history),
    }


def _rows(track: Track, start_s: float, end_s: float | None) -> NDArray[np.intp]:
    """Return the rows to draw of a part of a track."""
    if not len(track):
        return np.zeros(0, dtype=np.intp)
    ends_s = [start_s, track.times_s[-1] if end_s is None else end_s]
    first = max(int(np.searchsorted(track.times_s, ends_s[0], side="right")) - 1, 0)
    last = min(int(np.searchsorted(track.times_s, ends_s[1])), len(track) - 1)
    first, last = min(first, last), max(first, last)
    return np.unique(np.linspace(first, last, min(last - first + 1, MAX_ROWS)).astype(np.intp))


# ---- edits --------------------------------------------------------------------------------------


def edited(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> Track:
    """Return a take after all steps; a version that is named may be one of a deleted take, so that
    edits of it can still be saved.
    """
    library, track = Library(folder), None
    if version is not None and not library.versions(check_existing_name(name)):
        track = library.load_deleted(name, version)
    if track is None:
        track = load(folder, name, version)
    others = {other: load(folder, other) for step in steps for other in others_of(step)}
    return apply(track, steps, others)


def playable(
    folder: Path,
    name: str,
    version: int | None,
    steps: Sequence[Step],
    build: Build,
    *,
    speed: float,
    force: bool,
    loop: bool = False,
) -> PlayableTake:
    """Return a take after all steps, checked, to be played by a robot of that build.

    With `loop`, a motion that ends where it begins is repeated for as long as one playback may
    take. Raises `BadRequestError` for a take of another family, and `UnsafeMotionError` if a check
    forbids it.
    """
    track = edited(folder, name, version, steps)
    check_robot(track, build)
    paced = edit.speed(track, speed) if speed != 1.0 else track
    paced, rounds = repeated(paced) if loop else (paced, 1)
    report = check(paced)
    report.permit(family_of(build), force=force)
    return PlayableTake(TrackCheck(paced, 1.0, report), rounds)


def repeated(track: Track) -> tuple[Track, int]:
    """Return a track that ends in its first pose as many times over as one playback may be long,
    and how many that is.

    Any other track is returned as it is: it is played again after a soft return.
    """
    if len(track) < 2 or not is_closed(track):
        return track, 1
    period_s = track.duration_s + float(np.median(np.diff(track.times_s)))
    rounds = int(MAX_MOTION_S / period_s)
    if rounds < 2:
        return track, 1
    shifts_s = period_s * np.arange(rounds)
    whole = replace(
        track,
        times_s=(shifts_s[:, None] + (track.times_s - track.times_s[0])[None, :]).ravel(),
        joints_rad=np.tile(track.joints_rad, (rounds, 1)),
        marks=(),
    )
    return whole, rounds


def is_closed(track: Track) -> bool:
    """Whether a track ends in its first pose, so that it can be repeated without a way back."""
    return bool(np.abs(track.joints_rad[-1] - track.joints_rad[0]).max() <= CLOSED_RAD)


def edit_and_save(
    folder: Path, name: str, version: int | None, steps: Sequence[Step], to: str, over: int | None
) -> bytes:
    """Keep an edited take under a name; refused if the newest version of that is not `over`."""
    newest = max(Library(folder).versions(check_existing_name(to)), default=0)
    track = edited(folder, name, version, steps)
    if over == 0 and newest:
        raise ProblemError(
            409,
            "name-taken",
            f"there is a take {to!r} already",
            "Choose another name, or save it as a new version.",
        )
    if over is not None and over != newest:
        what = f"has version {newest} now" if newest else "was deleted or renamed"
        raise ProblemError(
            409,
            "changed-take",
            f"the take {to!r} was changed elsewhere since it was opened here: it {what}",
            "Save it under another name, or as the newest version.",
        )
    return save(folder, track, to)


def look(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> bytes:
    """Return what the page shows of an edited take, and which version of it was edited."""
    version, track = _edited_version(folder, name, version, steps)
    return to_json({"version": version, **describe(track), **_checked(track)})


def checked(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> bytes:
    """Return only what speaks against playing an edited take."""
    version, track = _edited_version(folder, name, version, steps)
    return to_json({"version": version, **_checked(track)})


def _checked(track: Track) -> dict[str, Any]:
    report = check(track)
    findings = [finding_document(finding) for finding in report.findings]
    return {"findings": findings, "ok": report.ok}


def _edited_version(
    folder: Path, name: str, version: int | None, steps: Sequence[Step]
) -> tuple[int, Track]:
    """Return a take after all steps, and which version of it that is."""
    version = version or _with(folder, name).versions(name)[-1]
    return version, edited(folder, name, version, steps)


def glance(
    folder: Path,
    name: str,
    version: int | None,
    steps: Sequence[Step],
    part_s: tuple[float, float | None],
) -> bytes:
    """Return the same without a check, which takes longer than all else, and maybe of a part."""
    version, track = _edited_version(folder, name, version, steps)
    return to_json({"version": version, **describe(track, *part_s)})


def keyframes(
    folder: Path,
    name: str,
    version: int | None,
    steps: Sequence[Step],
    joints: Sequence[str] | None,
) -> bytes:
    """Return a few keyframes that an edited take passes through."""
    found, error_rad = propose(edited(folder, name, version, steps), joints)
    return to_json(
        {
            "keyframes": [
                {"joint": joint, "time_s": round(time_s, 4), "value_rad": round(value_rad, 5)}
                for joint, time_s, value_rad in found
            ],
            "max_error_rad": round(error_rad, 5),
        }
    )


def describe(track: Track, start_s: float = 0.0, end_s: float | None = None) -> dict[str, Any]:
    """Return curves, jerk and peak speed of a track, and whose it is; or the curves of a part."""
    build = build_of(track)
    jerk = edit.jerk_rms(track) if len(track) >= 4 and track.names else None
    drawn = curves(track, start_s, end_s)
    return {
        **drawn,
        "whole": len(drawn["times_s"]) == len(track),
        "build": None if build is None else build.name,
        "family": None if build is None else build.family,
        "title": track.variant if build is None else build.title,
        "limbs": limbs_of(track.names),
        "jerk": jerk,
        "peak_rad_s": round(_peak_rad_s(track), 3),
    }


def _peak_rad_s(track: Track) -> float:
    """Return the highest speed of any joint, from one sample to the next."""
    steps_rad = np.abs(np.diff(track.joints_rad, axis=0))
    return float((steps_rad / np.diff(track.times_s)[:, None]).max(initial=0.0))
