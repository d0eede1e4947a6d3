"""Work on shows for a child process: files, checks and curves.

They get the folder of the shows and that of the takes; answers for the page are JSON already.
NAME.json is a show, NAME.cast.json a cast, NAME.report.json how it went. Sounds lie beside them.
"""

import hashlib
import json
import math
import time
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, RoteError
from rote.motion.files.library import Library, check_name
from rote.platform.atomic_file import appearing
from rote.stage.show import file as shows
from rote.stage.show.check import CheckedShow, ShowFinding, check_show
from rote.stage.show.file import Cast, Show
from rote.stage.show.score import ClipError, Score, compile_role
from rote.stage.stage import ShowFiles
from rote.web.server.problems import ProblemError, finding_document, to_json

ENDING = ".json"
CAST, REPORT = ".cast", ".report"
SOUND_ENDING = ".wav"
MAX_EDITED_BYTES = 256 * 2**10
"""A larger show is run by the command line; a page cannot send it back."""
MAX_ROWS = 600
ROWS_PER_S = 25
PEAKS = 400
_TRASH = ".trash"
_CHUNK = 2**16


# ---- names and files ----------------------------------------------------------------------------


def show_name(name: str) -> str:
    """Return a show's name, or raise `BadRequestError` saying what is wrong with it."""
    check_name(name)
    for taken in (CAST, REPORT):
        if name.endswith(taken):
            raise BadRequestError(
                f"the name {name!r} cannot be used: {taken!r} ends the names of other files",
                "Choose another one.",
            )
    return name


def sound_name(name: str) -> str:
    """Return a sound's file name, or raise `BadRequestError` saying what is wrong with it."""
    if not name.lower().endswith(SOUND_ENDING):
        raise BadRequestError(
            f"{name!r:.80} is no WAV file by its name",
            f"Convert it, so that it ends in {SOUND_ENDING}.",
        )
    check_name(name[: -len(SOUND_ENDING)])
    return name


def show_file(folder: Path, name: str) -> Path:
    """Return the file of a show; it may not exist."""
    return folder / f"{show_name(name)}{ENDING}"


def _cast_file(folder: Path, name: str) -> Path:
    return folder / f"{show_name(name)}{CAST}{ENDING}"


def _require_show_file(folder: Path, name: str) -> Path:
    path = show_file(folder, name)
    if not path.is_file():
        raise ProblemError(404, "no-show", f"there is no show {name!r}", "Look at the list again.")
    return path


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(shows.MAX_BYTES + 1)
    except OSError as error:
        raise BadRequestError(f"{path.name} cannot be read: {error.strerror}") from None


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as file:
        file.write(data)


def _tag(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _encode_document(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


# ---- the shelf ----------------------------------------------------------------------------------


def shelf(folder: Path) -> bytes:
    """Return the shows, casts and sounds as JSON."""
    entries, casts, sounds = [], {}, []
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.name.lower().endswith(SOUND_ENDING):
            sounds.append({"name": path.name, "duration_s": _length_s(path)})
        elif path.name.endswith(f"{CAST}{ENDING}"):
            if (cast := _cast(path)) is not None:
                casts[path.name[: -len(f"{CAST}{ENDING}")]] = cast
        elif path.name.endswith(ENDING) and not path.name.endswith(f"{REPORT}{ENDING}"):
            entries.append(_entry(path))
    return to_json({"shows": entries, "casts": casts, "sounds": sounds, "folder": str(folder)})


def _entry(path: Path) -> dict[str, Any]:
    entry = {"name": path.name[: -len(ENDING)], "title": "", "roles": [], "sections": 0}
    try:
        show = shows.parse(_read(path))
    except BadRequestError as error:
        return {**entry, "problem": str(error)}
    roles = [role.name for role in show.roles]
    found = {"title": show.title, "roles": roles, "sections": len(show.sections)}
    return {**entry, **found, "problem": ""}


def _cast(path: Path) -> dict[str, str] | None:
    try:
        return dict(Cast.parse(json.loads(_read(path))).robots)
    except (RoteError, ValueError, RecursionError):
        return None


def open_show(folder: Path, name: str) -> bytes:
    """Return a show as its file has it, and the tag of that file."""
    path = _require_show_file(folder, name)
    data = _read(path)
    if len(data) > MAX_EDITED_BYTES:
        raise BadRequestError(
            f"the show {name!r} has {len(data) // 1024} KB; "
            f"a page edits up to {MAX_EDITED_BYTES // 1024} KB",
            "Make two shows of it.",
        )
    shows.parse(data)
    document = {"name": name, "tag": _tag(data), "path": str(path), "show": json.loads(data)}
    return to_json(document)


def save(
    folder: Path, name: str, document: Mapping[str, Any], known: str | None, *, replace_it: bool
) -> bytes:
    """Save a show to its file, unless another program has changed it since it was opened."""
    path, data = show_file(folder, name), _encode_document(document)
    shows.from_data(document)
    there = _tag(_read(path)) if path.is_file() else None
    if there is None and known is not None and not replace_it:
        raise ProblemError(
            409,
            "show-deleted",
            f"the show {name!r} was deleted or renamed elsewhere since it was opened here",
            "Save it again as a new show, or throw this one away.",
        )
    if there is not None and there != known and not replace_it:
        raise ProblemError(
            409,
            "changed-show" if known else "show-exists",
            f"the show {name!r} was changed elsewhere since it was opened here"
            if known
            else f"the show {name!r} already exists",
            "Replace it, or keep this one under another name.",
        )
    _write(path, data)
    return to_json({"name": name, "tag": _tag(data), "path": str(path)})


def save_cast(folder: Path, name: str, cast: Mapping[str, str]) -> None:
    """Save a cast to a file."""
    document = {"cast": dict(cast)}
    Cast.parse(document)
    _write(_cast_file(folder, name), _encode_document(document))


def save_report(folder: Path, name: str, report: Mapping[str, Any]) -> None:
    """Save the report of a show where `rote show report` can read it."""
    _write(folder / f"{show_name(name)}{REPORT}{ENDING}", _encode_document(report))


def rename(folder: Path, old: str, new: str) -> None:
    """Rename a show and the cast of the same name."""
    path, to = _require_show_file(folder, old), show_file(folder, new)
    if to.exists():
        raise ProblemError(
            409, "show-exists", f"the show {new!r} already exists", "Choose another name."
        )
    path.rename(to)
    cast, cast_to = _cast_file(folder, old), _cast_file(folder, new)
    if cast.is_file() and not cast_to.exists():
        cast.rename(cast_to)


def delete(folder: Path, name: str) -> None:
    """Move a show to the trash folder beside it."""
    path = _require_show_file(folder, name)
    trash = folder / _TRASH
    trash.mkdir(exist_ok=True)
    path.rename(trash / f"{name} {time.time():.3f}{ENDING}")


# ---- checking and drawing -----------------------------------------------------------------------


def files_of(folder: Path, takes: Path) -> ShowFiles:
    """Return where the takes and sounds of shows are."""
    return ShowFiles(folder, Library(takes))


def check_sent_show(
    folder: Path, takes: Path, document: Mapping[str, Any], cast: Mapping[str, str] | None
) -> bytes:
    """Return the findings against running a show that a page has sent."""
    found = _check(shows.from_data(document), folder, takes, cast)
    findings = [_finding(each) for each in found.findings]
    return to_json({"ok": found.ok, "findings": findings})


def _finding(found: ShowFinding) -> dict[str, Any]:
    where = {"section": found.section or None, "role": found.role or None}
    return {**finding_document(found.finding), **where, "time_s": found.time_s}


def _check(show: Show, folder: Path, takes: Path, cast: Mapping[str, str] | None) -> CheckedShow:
    own = files_of(folder, takes)
    named = None if cast is None else Cast.parse({"cast": dict(cast)})
    return check_show(show, own.take, own.sound_s, cast=named)


def load_playable(
    folder: Path, takes: Path, name: str, cast: Mapping[str, str], known: str | None
) -> CheckedShow:
    """Return a show by its file, checked, to be run; refused if the file is not the known one."""
    data = _read(_require_show_file(folder, name))
    if known is not None and _tag(data) != known:
        raise ProblemError(
            409,
            "changed-show",
            f"the show {name!r} was changed elsewhere since it was opened here",
            "Check it again, then press GO.",
        )
    return _check(shows.parse(data), folder, takes, cast)


def draw_section(folder: Path, takes: Path, document: Mapping[str, Any], section: str) -> bytes:
    """Return what every role does in a section, as motions to be drawn."""
    show = shows.from_data(document)
    found = next((each for each in show.sections if each.name == section), None)
    if found is None:
        raise BadRequestError(f"there is no section {section!r}", "Choose another one.")
    own = files_of(folder, takes)
    scores = []
    for role in show.roles:
        try:
            scores.append(compile_role(show, found, role.name, own.take))
        except ClipError:
            continue  # the check says why
    lengths_s = [score.duration_s for score in scores] + [cue.at_s for cue in found.cues]
    drawings = [_drawing(score) for score in scores if score.motion is not None]
    longest_s = round(max(lengths_s, default=0.0), 3)
    return to_json({"section": section, "duration_s": longest_s, "roles": drawings})


def _drawing(score: Score) -> dict[str, Any]:
    assert score.motion is not None
    track = score.motion.track
    wanted = min(MAX_ROWS, math.ceil(track.duration_s * ROWS_PER_S) + 1, len(track))
    rows = np.unique(np.linspace(0, len(track) - 1, max(wanted, 1)).astype(np.intp))
    return {
        "role": score.role,
        "at_s": score.motion.at_s,
        "build": track.variant,
        "names": list(track.names),
        "times_s": np.round(track.times_s[rows], 3).tolist(),
        "joints_rad": np.round(track.joints_rad[rows], 3).tolist(),
    }


# ---- sounds -------------------------------------------------------------------------------------


def _length_s(path: Path) -> float | None:
    try:
        with wave.open(str(path), "rb") as sound:
            return round(sound.getnframes() / sound.getframerate(), 3)
    except (wave.Error, EOFError, OSError, ZeroDivisionError):
        return None


def sound_file(folder: Path, name: str) -> Path:
    """Return the file of an existing sound."""
    path = folder / sound_name(name)
    if not path.is_file() or path.is_symlink():
        raise ProblemError(404, "no-sound", f"there is no sound {name!r}", "Add the file.")
    return path


def save_sound(folder: Path, path: Path, name: str, *, replace_it: bool) -> None:
    """Save a WAV file beside the shows."""
    to = folder / sound_name(name)
    if _length_s(path) is None:
        raise BadRequestError(f"{name!r} is no WAV file", "Convert it to WAV, 16 bit.")
    if to.exists() and not replace_it:
        raise ProblemError(
            409, "sound-exists", f"the sound {name!r} already exists", "Choose another name."
        )
    _write(to, path.read_bytes())


def peaks(folder: Path, name: str) -> bytes:
    """Return a sound as it is drawn: the loudest sample of each of some hundred parts."""
    path = sound_file(folder, name)
    try:
        with wave.open(str(path), "rb") as sound:
            frames, rate = sound.getnframes(), sound.getframerate()
            loud = _peak_per_part(sound, frames)
            length_s = frames / rate
    except (wave.Error, EOFError, OSError, ZeroDivisionError) as error:
        raise BadRequestError(f"{name!r} is no WAV file: {error}", "Convert it.") from None
    shown = [round(float(each), 3) for each in loud]
    return to_json({"name": name, "duration_s": round(length_s, 3), "peaks": shown})


def _peak_per_part(sound: wave.Wave_read, frames: int) -> "NDArray[np.float64]":
    """Return the peak of each of at most `PEAKS` parts; the file is read in chunks."""
    parts = max(1, min(PEAKS, frames))
    loud = np.zeros(parts)
    width, channels, done = sound.getsampwidth(), sound.getnchannels(), 0
    while data := sound.readframes(_CHUNK):
        data = data[: len(data) - len(data) % (width * channels)]  # it may have been cut off
        values = np.abs(_samples(data, width)).reshape(-1, channels).max(axis=1)
        places = (np.arange(done, done + len(values)) * parts) // max(frames, 1)
        np.maximum.at(loud, np.minimum(places, parts - 1), values)
        done += len(values)
    return loud


def _samples(data: bytes, width: int) -> "NDArray[np.float64]":
    """Return PCM samples from -1 to 1; of 24 bits only the upper 16 are used."""
    if width == 1:
        return (np.frombuffer(data, np.uint8).astype(float) - 128.0) / 128.0
    if width == 3:
        three = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return np.ascontiguousarray(three[:, 1:]).view("<i2").ravel().astype(float) / 2**15
    kind = {2: "<i2", 4: "<i4"}.get(width)
    if kind is None:
        raise wave.Error(f"samples of {width} bytes")
    return np.frombuffer(data, kind).astype(float) / 2.0 ** (8 * width - 1)
