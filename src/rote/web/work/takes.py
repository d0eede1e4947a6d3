"""Work on takes for a child process: files, curves, edits and checks.

The functions get the library's folder, and nothing of the server; answers for the page are JSON.
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
from rote.motion.edit.steps import Step, apply, other_take_names
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
    """How many times the track contains the motion."""


# ---- the library --------------------------------------------------------------------------------


def entries(folder: Path, search: str, first: int, count: int | None, known: str) -> bytes:
    """Return the takes from number `first` on, each with its picture; `count` of them at most.

    If their tag is `known`, the answer says so and contains no takes.
    """
    library = Library(folder)
    found = library.list(search)
    last = len(found) if count is None else first + count
    shown = [_entry_document(library, entry) for entry in found[first:last]]
    tag = hashlib.sha256(to_json(shown)).hexdigest()[:16]
    same = tag == known
    return to_json({"takes": [] if same else shown, "total": len(found), "tag": tag, "same": same})


def save(folder: Path, track: Track, name: str) -> bytes:
    """Save a track as a take."""
    library = Library(folder)
    return to_json(_entry_document(library, library.save(track, name)))


def rename(folder: Path, old: str, new: str) -> bytes:
    """Rename a take."""
    library = _library_with(folder, old)
    return to_json(_entry_document(library, library.rename(old, new)))


def delete(folder: Path, name: str) -> None:
    """Move a take to the library's trash."""
    _library_with(folder, name).delete(name)


def delete_newest(folder: Path, name: str) -> None:
    """Move the newest version of a take to the library's trash."""
    _library_with(folder, name).delete_newest(name)


def write_file(track: Track, path: Path) -> None:
    """Write a track to a file of any format."""
    files.save(track, path)


def write_elsewhere(folder: Path, track: Track, name: str) -> str:
    """Write a track to a new file in a folder, and return its path."""
    return str(write_new(track, folder, name))


def tag(folder: Path, name: str, add: Sequence[str], remove: Sequence[str]) -> bytes:
    """Add tags to a take, and remove others."""
    library = _library_with(folder, name)
    return to_json(_entry_document(library, library.tag(name, add, remove)))


def trash(folder: Path) -> bytes:
    """Return what was deleted, the newest first."""
    return to_json({"trash": [_trash_document(each) for each in Library(folder).trash()]})


def _trash_document(trashed: Trashed) -> dict[str, Any]:
    entry = trashed.entry
    readable = entry is not None and not entry.problem
    return {
        "id": trashed.id,
        "name": trashed.name,
        "deleted_s": round(trashed.deleted_s, 3),
        "versions": trashed.versions,
        "duration_s": round(entry.duration_s, 4) if entry is not None and readable else None,
    }


def restore(folder: Path, trash_id: str, to: str | None) -> bytes:
    """Restore a deleted take."""
    library = Library(folder)
    return to_json(_entry_document(library, library.restore(trash_id, to)))


def purge(folder: Path, trash_id: str) -> None:
    """Delete an item of the trash permanently."""
    Library(folder).purge(trash_id)


def import_file(
    folder: Path, path: Path, shown: str, name: str, *, degrees: bool, replace_it: bool
) -> bytes:
    """Add a file that was copied to `path`; `shown` is its original name."""
    if not replace_it and Library(folder).versions(check_name(name)):
        raise ProblemError(
            409,
            "name-taken",
            f"the take {name!r} already exists",
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
    """Return a take with its curves."""
    track = load(folder, name)
    return to_json({"name": name, "rate_hz": round(track.rate_hz, 3), **curves(track)})


def load(folder: Path, name: str, version: int | None = None) -> Track:
    """Read a take, by default the newest version."""
    library = _library_with(folder, name)
    try:
        return library.load(name, version)
    except BadRequestError as error:
        message = str(error).replace(f"{folder}/", "")
        raise BadRequestError(message, error.remedy) from None


def newest_version(folder: Path, name: str) -> int:
    """Return the number of a take's newest version."""
    return _library_with(folder, name).versions(name)[-1]


def _library_with(folder: Path, name: str) -> Library:
    """Return the library; raise `ProblemError` if it has no take of that name."""
    library = Library(folder)
    if not library.versions(check_existing_name(name)):
        raise ProblemError(
            404, "no-such-take", f"there is no take {name!r}", "Look at the list of takes."
        )
    return library


def _entry_document(library: Library, entry: Entry) -> dict[str, Any]:
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
        return _cached_thumbnail(entry.path, facts.st_mtime_ns, facts.st_size)
    except (OSError, RoteError):
        return ""


@lru_cache(_MAX_THUMBNAILS)
def _cached_thumbnail(path: Path, _time_ns: int, _size: int) -> str:
    """Return a take's picture, drawn once for each version of its file."""
    return thumbnail(files.load(path, any_joints=True))


def curves(track: Track, start_s: float = 0.0, end_s: float | None = None) -> dict[str, Any]:
    """Return a track as the page draws it: at most 1500 rows, the last one among them.

    From `start_s` to `end_s`, with one row more on each side, so that a curve does not end inside.
    """
    rows = _rows_to_draw(track, start_s, end_s)
    return {
        "names": list(track.names),
        "times_s": np.round(track.times_s[rows], 4).tolist(),
        "joints_rad": np.round(track.joints_rad[rows], 4).tolist(),
        "duration_s": round(track.duration_s, 4),
        "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in track.marks],
        "history": list(track.history),
    }


def _rows_to_draw(track: Track, start_s: float, end_s: float | None) -> NDArray[np.intp]:
    """Return the rows to draw of a part of a track."""
    if not len(track):
        return np.zeros(0, dtype=np.intp)
    ends_s = [start_s, track.times_s[-1] if end_s is None else end_s]
    first = max(int(np.searchsorted(track.times_s, ends_s[0], side="right")) - 1, 0)
    last = min(int(np.searchsorted(track.times_s, ends_s[1])), len(track) - 1)
    first, last = min(first, last), max(first, last)
    return np.unique(np.linspace(first, last, min(last - first + 1, MAX_ROWS)).astype(np.intp))


# ---- edits --------------------------------------------------------------------------------------


def edit_take(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> Track:
    """Return a take after all steps. `version` may be one of a deleted take, so that edits of it
    can still be saved.
    """
    library, track = Library(folder), None
    if version is not None and not library.versions(check_existing_name(name)):
        track = library.load_deleted(name, version)
    if track is None:
        track = load(folder, name, version)
    others = {other: load(folder, other) for step in steps for other in other_take_names(step)}
    return apply(track, steps, others)


def load_playable(
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
    track = edit_take(folder, name, version, steps)
    check_robot(track, build)
    paced = edit.speed(track, speed) if speed != 1.0 else track
    paced, rounds = repeat_closed(paced) if loop else (paced, 1)
    report = check(paced)
    report.permit(family_of(build), force=force)
    return PlayableTake(TrackCheck(paced, 1.0, report), rounds)


def repeat_closed(track: Track) -> tuple[Track, int]:
    """Repeat a closed track for as long as one playback may take; return it and the number of
    repetitions.

    Any other track is returned unchanged: it is played again after a soft return.
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
    """Whether a track ends in its first pose, so that it can be repeated without a return."""
    return bool(np.abs(track.joints_rad[-1] - track.joints_rad[0]).max() <= CLOSED_RAD)


def edit_and_save(
    folder: Path, name: str, version: int | None, steps: Sequence[Step], to: str, over: int | None
) -> bytes:
    """Save an edited take as `to`; refused if the newest version of that is not `over`."""
    newest = max(Library(folder).versions(check_existing_name(to)), default=0)
    track = edit_take(folder, name, version, steps)
    if over == 0 and newest:
        raise ProblemError(
            409,
            "name-taken",
            f"the take {to!r} already exists",
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


def preview(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> bytes:
    """Return the edited take as the page shows it, and the version that was edited."""
    version, track = _edited_version(folder, name, version, steps)
    return to_json({"version": version, **describe(track), **_check_document(track)})


def check_edited(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> bytes:
    """Return only the findings against playing an edited take."""
    version, track = _edited_version(folder, name, version, steps)
    return to_json({"version": version, **_check_document(track)})


def _check_document(track: Track) -> dict[str, Any]:
    report = check(track)
    findings = [finding_document(finding) for finding in report.findings]
    return {"findings": findings, "ok": report.ok}


def _edited_version(
    folder: Path, name: str, version: int | None, steps: Sequence[Step]
) -> tuple[int, Track]:
    """Return a take after all steps, and which version of it that is."""
    version = version or _library_with(folder, name).versions(name)[-1]
    return version, edit_take(folder, name, version, steps)


def edited_curves(
    folder: Path,
    name: str,
    version: int | None,
    steps: Sequence[Step],
    part_s: tuple[float, float | None],
) -> bytes:
    """Return the curves of an edited take, optionally of a time range, without the slow check."""
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
    found, error_rad = propose(edit_take(folder, name, version, steps), joints)
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
    """Return build, jerk, peak speed and curves of a track, or the curves of a time range."""
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
