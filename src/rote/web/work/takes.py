"""Work on takes for a child process: files, curves, edits and checks.

The functions get the library's folder, and nothing of the server; answers for the page are JSON.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

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
from rote.motion.keyframes.edit import propose_keyframes
from rote.motion.track import Track
from rote.motion.track_build import build_of
from rote.robot.streamed_motion import TrackCheck, check_robot
from rote.web.server.problems import ProblemError, finding_document, to_json

if TYPE_CHECKING:
    from rote.web.schemas import robot as s

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
    """Return at most `count` takes from number `first` on as JSON, each with its picture.

    The answer has a tag, a hash of these takes. If the tag is `known`, the takes are left out.
    """
    library = Library(folder)
    all_entries = library.list(search)
    last = len(all_entries) if count is None else first + count
    shown = [_describe_entry(library, entry) for entry in all_entries[first:last]]
    tag = hashlib.sha256(to_json(shown)).hexdigest()[:16]
    unchanged = tag == known
    takes = [] if unchanged else shown
    answer: s.Takes = {"takes": takes, "total": len(all_entries), "tag": tag, "same": unchanged}
    return to_json(answer)


def save(folder: Path, track: Track, name: str) -> bytes:
    """Save a track as a take; return its library entry as JSON."""
    library = Library(folder)
    return to_json(_describe_entry(library, library.save(track, name)))


def rename(folder: Path, old: str, new: str) -> bytes:
    """Rename a take; return its library entry as JSON."""
    library = _open_library_with(folder, old)
    return to_json(_describe_entry(library, library.rename(old, new)))


def delete(folder: Path, name: str) -> None:
    """Move a take to the library's trash."""
    _open_library_with(folder, name).delete(name)


def delete_newest(folder: Path, name: str) -> None:
    """Move the newest version of a take to the library's trash."""
    _open_library_with(folder, name).delete_newest(name)


def write_file(track: Track, path: Path) -> None:
    """Write a track to a file of any format."""
    files.save(track, path)


def write_elsewhere(folder: Path, track: Track, name: str) -> str:
    """Write a track to a new file in a folder, and return its path."""
    return str(write_new(track, folder, name))


def tag(folder: Path, name: str, add: Sequence[str], remove: Sequence[str]) -> bytes:
    """Add tags to a take, and remove others; return its library entry as JSON."""
    library = _open_library_with(folder, name)
    return to_json(_describe_entry(library, library.tag(name, add, remove)))


def trash(folder: Path) -> bytes:
    """Return the deleted takes as JSON, the newest first."""
    return to_json({"trash": [_describe_trashed(each) for each in Library(folder).trash()]})


def _describe_trashed(trashed: Trashed) -> "s.TrashedTake":
    entry = trashed.entry
    duration_s = None if entry is None or entry.problem else round(entry.duration_s, 4)
    return {
        "id": trashed.id,
        "name": trashed.name,
        "deleted_s": round(trashed.deleted_s, 3),
        "versions": trashed.versions,
        "duration_s": duration_s,
    }


def restore(folder: Path, trash_id: str, to: str | None) -> bytes:
    """Restore a deleted take, under the name `to` if given; return its library entry as JSON."""
    library = Library(folder)
    return to_json(_describe_entry(library, library.restore(trash_id, to)))


def purge(folder: Path, trash_id: str) -> None:
    """Delete an item of the trash permanently."""
    Library(folder).purge(trash_id)


def import_file(
    folder: Path, path: Path, original_name: str, name: str, *, degrees: bool, replace_it: bool
) -> bytes:
    """Add a motion file to the library as the take `name`; return its library entry as JSON.

    The upload was copied to `path`; the user knows it by its `original_name`.
    """
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
        message = str(error).replace(str(path), original_name)
        raise BadRequestError(message, error.remedy) from None
    if track.source == f"file {path.name}":
        track = replace(track, source=f"file {original_name}")
    return save(folder, track, name)


def export_file(folder: Path, name: str, path: Path) -> None:
    """Write a take to a file of any format."""
    files.save(load(folder, name), path)


def motion(folder: Path, name: str) -> bytes:
    """Return a take with its curves as JSON."""
    track = load(folder, name)
    return to_json({"name": name, "rate_hz": round(track.rate_hz, 3), **curves(track)})


def load(folder: Path, name: str, version: int | None = None) -> Track:
    """Read a take, by default the newest version."""
    library = _open_library_with(folder, name)
    try:
        return library.load(name, version)
    except BadRequestError as error:
        message = str(error).replace(f"{folder}/", "")
        raise BadRequestError(message, error.remedy) from None


def newest_version(folder: Path, name: str) -> int:
    """Return the number of a take's newest version."""
    return _open_library_with(folder, name).versions(name)[-1]


def _open_library_with(folder: Path, name: str) -> Library:
    """Return the library; raise `ProblemError` if it has no take of that name."""
    library = Library(folder)
    if not library.versions(check_existing_name(name)):
        raise ProblemError(
            404, "no-such-take", f"there is no take {name!r}", "Look at the list of takes."
        )
    return library


def _describe_entry(library: Library, entry: Entry) -> "s.TakeEntry":
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
        "thumbnail": "" if entry.problem else _draw_thumbnail(entry),
    }


def _draw_thumbnail(entry: Entry) -> str:
    try:
        file_status = entry.path.stat()
        return _cached_thumbnail(entry.path, file_status.st_mtime_ns, file_status.st_size)
    except (OSError, RoteError):
        return ""


@lru_cache(_MAX_THUMBNAILS)
def _cached_thumbnail(path: Path, _time_ns: int, _size: int) -> str:
    """Return a take's picture; it is drawn again if the time or size of the file changes."""
    return thumbnail(files.load(path, any_joints=True))


def curves(track: Track, start_s: float = 0.0, end_s: float | None = None) -> dict[str, Any]:
    """Return a track as the page draws it: at most 1500 rows from `start_s` to `end_s`.

    They include the samples just outside that range, so that curves reach its edges.
    """
    rows = _select_rows(track, start_s, end_s)
    return {
        "names": list(track.names),
        "times_s": np.round(track.times_s[rows], 4).tolist(),
        "joints_rad": np.round(track.joints_rad[rows], 4).tolist(),
        "duration_s": round(track.duration_s, 4),
        "marks": [{"time_s": mark.time_s, "label": mark.label} for mark in track.marks],
        "history": list(track.history),
    }


def _select_rows(track: Track, start_s: float, end_s: float | None) -> NDArray[np.intp]:
    """Return the numbers of the rows to draw: at most `MAX_ROWS`, spread evenly over a time range.

    They include the rows just before and after the range.
    """
    last_s = track.times_s[-1] if end_s is None else end_s
    row_before = max(int(np.searchsorted(track.times_s, start_s, side="right")) - 1, 0)
    row_after = min(int(np.searchsorted(track.times_s, last_s)), len(track) - 1)
    first, last = sorted((row_before, row_after))  # the page may send an end before the start
    count = min(last - first + 1, MAX_ROWS)
    return np.unique(np.linspace(first, last, count).astype(np.intp))


# ---- edits --------------------------------------------------------------------------------------


def edit_take(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> Track:
    """Return a take after applying all edit steps.

    If the take was deleted, its `version` is read from the trash, so that edits can still be saved.
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
    """Return a take after all edit steps, checked, to be played by a robot of that build.

    With `loop`, a motion that ends where it begins is repeated for as long as one playback may
    take. Raises `BadRequestError` for a take of another family, and `UnsafeMotionError` if a check
    forbids it.
    """
    track = edit_take(folder, name, version, steps)
    check_robot(track, build)
    track_at_speed = edit.speed(track, speed) if speed != 1.0 else track
    track_at_speed, rounds = repeat_closed(track_at_speed) if loop else (track_at_speed, 1)
    report = check(track_at_speed)
    report.permit(family_of(build), force=force)
    return PlayableTake(TrackCheck(track_at_speed, 1.0, report), rounds)


def repeat_closed(track: Track) -> tuple[Track, int]:
    """Repeat a track that ends in its first pose for as long as one playback may take.

    Returns the track and how many times it contains the motion. Any other track is returned
    unchanged: the player repeats it after a soft return.
    """
    if len(track) < 2 or not is_closed(track):
        return track, 1
    # One sample interval separates the last pose from the first one of the next round.
    period_s = track.duration_s + float(np.median(np.diff(track.times_s)))
    rounds = int(MAX_MOTION_S / period_s)
    if rounds < 2:
        return track, 1
    shifts_s = period_s * np.arange(rounds)
    repeated = replace(
        track,
        times_s=(shifts_s[:, None] + (track.times_s - track.times_s[0])[None, :]).ravel(),
        joints_rad=np.tile(track.joints_rad, (rounds, 1)),
        marks=(),
    )
    return repeated, rounds


def is_closed(track: Track) -> bool:
    """Whether a track ends in its first pose, so that it can be repeated without a return."""
    return bool(np.abs(track.joints_rad[-1] - track.joints_rad[0]).max() <= CLOSED_RAD)


def edit_and_save(
    folder: Path, name: str, version: int | None, steps: Sequence[Step], to: str, over: int | None
) -> bytes:
    """Save an edited take as the take `to`, under the condition `over` as in `save_over`."""
    check_existing_name(to)
    return save_over(folder, edit_take(folder, name, version, steps), to, over)


def save_over(folder: Path, track: Track, to: str, over: int | None) -> bytes:
    """Save a track as the take `to`; return its library entry as JSON.

    Raises `ProblemError` if the newest version of `to` is not `over`. With 0, `to` must not exist
    yet; with None, any version is accepted.
    """
    newest = max(Library(folder).versions(check_existing_name(to)), default=0)
    if over == 0 and newest:
        raise ProblemError(
            409,
            "name-taken",
            f"the take {to!r} already exists",
            "Choose another name, or save it as a new version.",
        )
    if over is not None and over != newest:
        change = f"has version {newest} now" if newest else "was deleted or renamed"
        raise ProblemError(
            409,
            "changed-take",
            f"the take {to!r} was changed elsewhere since it was opened here: it {change}",
            "Save it under another name, or as the newest version.",
        )
    return save(folder, track, to)


def preview(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> bytes:
    """Return as JSON an edited take with its curves and findings, and which version was edited."""
    version, track = _edit_version(folder, name, version, steps)
    return to_json({"version": version, **describe(track), **check_and_describe(track)})


def check_edited(folder: Path, name: str, version: int | None, steps: Sequence[Step]) -> bytes:
    """Return as JSON only the findings against playing an edited take."""
    version, track = _edit_version(folder, name, version, steps)
    return to_json({"version": version, **check_and_describe(track)})


def check_and_describe(track: Track) -> dict[str, Any]:
    """Return the findings against playing a track, as the page shows them."""
    report = check(track)
    findings = [finding_document(finding) for finding in report.findings]
    return {"findings": findings, "ok": report.ok}


def _edit_version(
    folder: Path, name: str, version: int | None, steps: Sequence[Step]
) -> tuple[int, Track]:
    """Return the version that is edited, by default the newest, and the take after all steps."""
    version = version or _open_library_with(folder, name).versions(name)[-1]
    return version, edit_take(folder, name, version, steps)


def edited_curves(
    folder: Path,
    name: str,
    version: int | None,
    steps: Sequence[Step],
    part_s: tuple[float, float | None],
) -> bytes:
    """Return as JSON the curves of an edited take in the range `part_s`, without the slow check."""
    version, track = _edit_version(folder, name, version, steps)
    return to_json({"version": version, **describe(track, *part_s)})


def keyframes(
    folder: Path,
    name: str,
    version: int | None,
    steps: Sequence[Step],
    joints: Sequence[str] | None,
) -> bytes:
    """Return as JSON a few keyframes that approximate an edited take, and their maximum error."""
    proposed, error_rad = propose_keyframes(edit_take(folder, name, version, steps), joints)
    return to_json(
        {
            "keyframes": [
                {"joint": joint, "time_s": round(time_s, 4), "value_rad": round(value_rad, 5)}
                for joint, time_s, value_rad in proposed
            ],
            "max_error_rad": round(error_rad, 5),
        }
    )


def describe(track: Track, start_s: float = 0.0, end_s: float | None = None) -> dict[str, Any]:
    """Return what the page shows of a track: robot, limbs, jerk, speed, and curves of a range."""
    build = build_of(track)
    jerk = edit.jerk_rms(track) if len(track) >= 4 and track.names else None
    rows = _select_rows(track, start_s, end_s)
    has_all_rows = bool(rows[-1] - rows[0] + 1 == len(rows))
    return {
        **curves(track, start_s, end_s),
        "whole": has_all_rows,
        "build": None if build is None else build.name,
        "family": None if build is None else build.family,
        "title": track.variant if build is None else build.title,
        "limbs": limbs_of(track.names),
        "jerk": jerk,
        "peak_rad_s": round(_compute_peak_rad_s(track), 3),
    }


def _compute_peak_rad_s(track: Track) -> float:
    """Return the highest speed of any joint, from one sample to the next."""
    steps_rad = np.abs(np.diff(track.joints_rad, axis=0))
    return float((steps_rad / np.diff(track.times_s)[:, None]).max(initial=0.0))
