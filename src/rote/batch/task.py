"""What a batch does with each motion. The same function runs in a process and on a Ray node."""

import errno
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any, NamedTuple

from rote.batch.inputs import ENDINGS, Input
from rote.errors import BadRequestError, RoteError
from rote.findings import Finding, Severity
from rote.motion.body.preview import Base, preview
from rote.motion.check.rules import check
from rote.motion.edit.fit import fit
from rote.motion.edit.operations import to_build
from rote.motion.files import list_reading_notes, load, save
from rote.motion.files.exchange import import_motion, is_own_file
from rote.motion.formats import NATIVE
from rote.motion.track import Track

_DISK_FULL = frozenset({errno.ENOSPC, errno.EDQUOT})

Row = dict[str, Any]
"""A line of the results file."""


class TaskKind(StrEnum):
    """What is done with each motion."""

    CHECK = "check"
    CONVERT = "convert"
    FIT = "fit"
    PREVIEW = "preview"


class RowStatus(StrEnum):
    """The result for one motion, best first."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    """A finding forbids playing it."""
    FAILED = "failed"
    """It could not be read, processed or written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A task and its options; options that its kind does not use keep their defaults."""

    kind: TaskKind
    build: str | None = None
    """The build that motions are checked for or converted to; by default each keeps its own."""
    contact: bool = True
    payload_kg: float = 0.0
    ending: str = NATIVE.ending
    """The format of the files that are written."""
    degrees: bool = False
    """Whether files in rote's own formats contain degrees."""
    fps: float | None = None
    """The rate of files that do not state theirs."""
    force: bool = False
    """Convert to `build` even if joints that move are lost."""
    keep_tempo: bool = False
    """Fit without changing the length, even if a motion has no marks."""
    slow_down: bool = False
    """Fit by slowing down, even if a motion has marks."""
    base: Base = "fixed"

    def as_json(self) -> dict[str, Any]:
        """Return the task as JSON data; equal tasks return equal data."""
        return asdict(self)


def process_input(task: Task, item: Input, out: Path) -> Row:
    """Process one motion and return its row; an error becomes a failed row.

    Output files go to the folder `out`, which all machines of a cluster share. Raises
    `BadRequestError` if the disk is full: that is not a fault of the motion.
    """
    # The hash is taken first: if the file changes while it is read, it is processed again.
    digest = hash_file(item.path)
    try:
        return _process_motion(task, item, load_motion(task, item.path), out, digest)
    except Exception as error:  # one bad file must not end the batch
        reason = error if isinstance(error, OSError) else error.__cause__
        if isinstance(reason, OSError) and reason.errno in _DISK_FULL:
            raise make_disk_error(out, reason) from error
        if isinstance(error, RoteError):
            return make_failed_row(item, digest, str(error), str(error.remedy))
        return make_failed_row(item, digest, f"{type(error).__name__}: {error}")


def make_disk_error(out: Path, error: OSError) -> BadRequestError:
    """Return the error for a results folder that cannot be written to."""
    return BadRequestError(
        f"{out} cannot be written: {error.strerror}",
        "Free some space, and repeat the command to continue.",
    )


def make_failed_row(item: Input, digest: str, error: str, remedy: str = "") -> Row:
    """Return the row of a motion that could not be processed."""
    return {
        **_make_common_columns(item, digest, RowStatus.FAILED),
        "error": error,
        "remedy": remedy,
    }


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's content; empty if it cannot be read."""
    try:
        if not path.is_file():  # opening a pipe would wait for its other end
            return ""
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):  # ValueError: no file can have such a name
        return ""


def _make_common_columns(item: Input, digest: str, status: RowStatus) -> Row:
    return {"name": item.name, "file": str(item.path), "sha256": digest, "status": status.value}


class LoadedMotion(NamedTuple):
    """A motion, and what was assumed when it was read."""

    track: Track
    notes: tuple[Finding, ...]


def load_motion(task: Task, path: Path) -> LoadedMotion:
    """Read a motion file of rote or of another program; raises `RoteError` if it cannot be read."""
    if is_own_file(path):
        track = load(path, degrees=task.degrees)
        return LoadedMotion(track, list_reading_notes(track, path))
    imported = import_motion(path, fps=task.fps)
    return LoadedMotion(imported.track, imported.notes)


def _process_motion(task: Task, item: Input, motion: LoadedMotion, out: Path, digest: str) -> Row:
    """Do what the task requires with a motion that was read, and return its row."""
    track = motion.track
    findings: Sequence[Finding] = ()
    extra_columns: dict[str, Any] = {}
    match task.kind:
        case TaskKind.CHECK:
            findings = _check_track(task, track)
        case TaskKind.CONVERT:
            if task.build is not None:
                track = to_build(track, task.build, force=task.force)
            extra_columns = _write_track(task, item, track, out)
        case TaskKind.FIT:
            before_s = track.duration_s
            track = fit(track, keep_tempo=task.keep_tempo, slow_down=task.slow_down)
            findings = _check_track(task, track)
            extra_columns = {
                **_write_track(task, item, track, out),
                "done": track.history[-1],
                "seconds_before": round(before_s, 6),
            }
        case TaskKind.PREVIEW:
            result = preview(track, base=task.base, payload_kg=task.payload_kg)
            findings = result.findings
            extra_columns = {"follows": result.ok, "upright": result.upright}
    return {
        **_make_common_columns(item, digest, _find_status(findings)),
        "seconds": round(track.duration_s, 6),
        "samples": len(track),
        "joints": len(track.names),
        "findings": [finding.as_json() for finding in (*findings, *motion.notes)],
        **extra_columns,
    }


def _check_track(task: Task, track: Track) -> tuple[Finding, ...]:
    return check(track, build=task.build, contact=task.contact, payload_kg=task.payload_kg).findings


def _find_status(findings: Sequence[Finding]) -> RowStatus:
    severities = {finding.severity for finding in findings}
    if Severity.ERROR in severities:
        return RowStatus.ERROR
    return RowStatus.WARNING if Severity.WARNING in severities else RowStatus.OK


def _write_track(task: Task, item: Input, track: Track, out: Path) -> dict[str, Any]:
    """Write a motion below `out`; return the columns of its row that describe the file."""
    name = _make_output_name(task, item)
    path = out / name
    path.parent.mkdir(parents=True, exist_ok=True)
    return {"out": name, "lost": save(track, path)}


def _make_output_name(task: Task, item: Input) -> str:
    """Return the name of an input with the ending of the output instead of its own.

    The new ending is appended to the old one if another motion in the folder could have the same
    output: `a.json` beside `a.csv`, or `a.csv.json` beside both.
    """
    endings = [*ENDINGS, *map(str.upper, ENDINGS)]
    similar_files = {item.path.with_suffix(ending) for ending in endings} - {item.path}
    path_without_ending = item.path.with_suffix("")
    if path_without_ending.suffix.lower() in ENDINGS:
        similar_files.add(path_without_ending)
    if any(path.exists() for path in similar_files):
        return f"{item.name}{task.ending}"
    return f"{item.name.removesuffix(item.path.suffix)}{task.ending}"
