"""Work on shows for a child process: files, checks and curves.

The functions get the folders of the shows and of the takes; answers for the page are JSON.
NAME.json is a show, NAME.cast.json a cast, NAME.report.json the report of its last run. Sounds are
in the same folder.
"""

import hashlib
import json
import math
import time
import wave
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError, RoteError
from rote.motion.files.library import Library, check_name
from rote.platform.atomic_file import appearing
from rote.stage.show import file as shows
from rote.stage.show.check import CheckedShow, ShowFinding, check_show
from rote.stage.show.file import Cast, Show
from rote.stage.show.score import ClipError, Score, compile_role
from rote.stage.show.sheet import make_sheet, sheet_page
from rote.stage.show_files import ShowFiles
from rote.stage.show_lock import check_lock, lock_path, lock_show, unlock_show
from rote.web.server.problems import ProblemError, finding_document, to_json

if TYPE_CHECKING:
    from rote.web.schemas import shows as s

ENDING = ".json"
CAST, REPORT = ".cast", ".report"
SOUND_ENDING = ".wav"
MAX_EDITED_BYTES = 256 * 2**10
"""Maximum size of a show that a page can edit; the command line runs larger ones."""
MAX_ROWS = 600
ROWS_PER_S = 25
PEAKS = 400
_TRASH = ".trash"
_CHUNK = 2**16


# ---- names and files ----------------------------------------------------------------------------


def show_name(name: str) -> str:
    """Return a show's name, or raise `BadRequestError` saying what is wrong with it."""
    check_name(name)
    for reserved in (CAST, REPORT):
        if name.endswith(reserved):
            raise BadRequestError(
                f"the name {name!r} cannot be used: names that end in {reserved!r} are reserved",
                "Choose another name.",
            )
    return name


def sound_name(name: str) -> str:
    """Return a sound's file name, or raise `BadRequestError` saying what is wrong with it."""
    if not name.lower().endswith(SOUND_ENDING):
        raise BadRequestError(
            f"{name!r:.80} is not the name of a WAV file",
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
        raise ProblemError(
            404, "no-show", f"there is no show {name!r}", "Reload the list of shows."
        )
    return path


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(shows.MAX_BYTES + 1)  # one byte too many shows the parser the excess
    except OSError as error:
        raise BadRequestError(f"{path.name} cannot be read: {error.strerror}") from None


def _write_file(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with appearing(path) as file:
        file.write(data)


def _compute_tag(data: bytes) -> str:
    """Return a hash of a file's content, by which a page notices that the file was changed."""
    return hashlib.sha256(data).hexdigest()[:16]


def _encode_document(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, indent=2, ensure_ascii=False).encode() + b"\n"


# ---- the folder of shows ------------------------------------------------------------------------


def shelf(folder: Path) -> bytes:
    """Return the shows, casts and sounds in a folder as JSON; reports are left out."""
    shelf_document: s.ShowShelf = {"shows": [], "casts": {}, "sounds": [], "folder": str(folder)}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        if path.name.startswith(".") or not path.is_file():
            continue
        if path.name.lower().endswith(SOUND_ENDING):
            shelf_document["sounds"].append({"name": path.name, "duration_s": _read_length_s(path)})
        elif path.name.endswith(f"{CAST}{ENDING}"):
            if (cast := _read_cast(path)) is not None:
                shelf_document["casts"][path.name[: -len(f"{CAST}{ENDING}")]] = cast
        elif path.name.endswith(ENDING) and not path.name.endswith(f"{REPORT}{ENDING}"):
            shelf_document["shows"].append(_describe_show(path))
    return to_json(shelf_document)


def _describe_show(path: Path) -> "s.ShowEntry":
    name = path.name[: -len(ENDING)]
    try:
        show = shows.parse(_read_file(path))
    except BadRequestError as error:
        return {"name": name, "title": "", "roles": [], "sections": 0, "problem": str(error)}
    roles, sections = [role.name for role in show.roles], len(show.sections)
    return {
        "name": name,
        "title": show.title,
        "roles": roles,
        "sections": sections,
        "problem": "",
    }


def _read_cast(path: Path) -> dict[str, str] | None:
    """Return the robot of each role; None if the file is not a valid cast."""
    try:
        return dict(Cast.parse(json.loads(_read_file(path))).robots)
    except (RoteError, ValueError, RecursionError):
        return None


def open_show(folder: Path, takes: Path, name: str) -> bytes:
    """Return as JSON the content of a show's file, its tag for `save`, and whether it is locked."""
    path = _require_show_file(folder, name)
    data = _read_file(path)
    if len(data) > MAX_EDITED_BYTES:
        raise BadRequestError(
            f"the show {name!r} has {len(data) // 1024} KB; "
            f"a page edits up to {MAX_EDITED_BYTES // 1024} KB",
            "Split it into two shows.",
        )
    show = shows.parse(data)
    document = {
        "name": name,
        "tag": _compute_tag(data),
        "path": str(path),
        "show": json.loads(data),
        "lock": _describe_lock(path, show, files_of(folder, takes)),
    }
    return to_json(document)


def _describe_lock(path: Path, show: Show, show_files: ShowFiles) -> "s.ShowLock | None":
    """Return since when a show is locked, and why it is refused; None if it is not locked."""
    try:
        locked = check_lock(path, show, show_files)
    except BadRequestError as error:
        return {"locked": "", "problem": f"{error}. {error.remedy}"}
    return {"locked": locked, "problem": ""} if locked else None


def set_lock(folder: Path, takes: Path, name: str, *, locked: bool) -> bytes:
    """Lock a show as its files are now, or unlock it; return its lock."""
    path = _require_show_file(folder, name)
    show, show_files = shows.parse(_read_file(path)), files_of(folder, takes)
    if locked:
        lock_show(path, show, show_files)
    else:
        unlock_show(path)
    return to_json({"lock": _describe_lock(path, show, show_files)})


def make_sheet_page(folder: Path, name: str) -> str:
    """Return the cue sheet of a show as HTML; it names the robots of the cast that is kept."""
    show = shows.parse(_read_file(_require_show_file(folder, name)))
    cast_file = _cast_file(folder, name)
    robots = _read_cast(cast_file) if cast_file.is_file() else None
    return sheet_page(show, make_sheet(show, robots))


def save(
    folder: Path,
    takes: Path,
    name: str,
    document: Mapping[str, Any],
    known: str | None,
    *,
    replace_it: bool,
) -> bytes:
    """Save a show to its file; return the file's tag, path and lock as JSON.

    Without `replace_it`, raises `ProblemError` if the file's tag is not the `known` one, or, with
    None, if the file exists.
    """
    path, data = show_file(folder, name), _encode_document(document)
    show = shows.from_data(document)
    if not replace_it:
        _check_unchanged(path, name, known)
    _write_file(path, data)
    lock = _describe_lock(path, show, files_of(folder, takes))
    return to_json({"name": name, "tag": _compute_tag(data), "path": str(path), "lock": lock})


def _check_unchanged(path: Path, name: str, known: str | None) -> None:
    """Raise `ProblemError` if a show's file does not have the `known` tag; None: no file yet."""
    current_tag = _compute_tag(_read_file(path)) if path.is_file() else None
    if current_tag == known:
        return
    if current_tag is None:
        raise ProblemError(
            409,
            "show-deleted",
            f"the show {name!r} was deleted or renamed elsewhere since it was opened here",
            "Save it as a new show, or discard it.",
        )
    remedy = "Replace it, or keep this one under another name."
    if not known:
        raise ProblemError(409, "show-exists", f"the show {name!r} already exists", remedy)
    raise ProblemError(
        409,
        "changed-show",
        f"the show {name!r} was changed elsewhere since it was opened here",
        remedy,
    )


def save_cast(folder: Path, name: str, cast: Mapping[str, str]) -> None:
    """Save a cast to a file."""
    document = {"cast": dict(cast)}
    Cast.parse(document)
    _write_file(_cast_file(folder, name), _encode_document(document))


def save_report(folder: Path, name: str, report: Mapping[str, Any]) -> None:
    """Save the report of a show where `rote show report` can read it."""
    _write_file(folder / f"{show_name(name)}{REPORT}{ENDING}", _encode_document(report))


def rename(folder: Path, old: str, new: str) -> None:
    """Rename a show and the cast of the same name."""
    path, new_path = _require_show_file(folder, old), show_file(folder, new)
    if new_path.exists():
        raise ProblemError(
            409, "show-exists", f"the show {new!r} already exists", "Choose another name."
        )
    path.rename(new_path)
    if lock_path(path).exists():
        lock_path(path).rename(lock_path(new_path))
    else:
        lock_path(new_path).unlink(missing_ok=True)  # that of a show that was deleted elsewhere
    old_cast, new_cast = _cast_file(folder, old), _cast_file(folder, new)
    if old_cast.is_file() and not new_cast.exists():
        old_cast.rename(new_cast)


def delete(folder: Path, name: str) -> None:
    """Move a show to the trash folder beside it."""
    path = _require_show_file(folder, name)
    trash = folder / _TRASH
    trash.mkdir(exist_ok=True)
    # The time distinguishes deleted shows of the same name.
    path.rename(trash / f"{name} {time.time():.3f}{ENDING}")
    unlock_show(path)  # a new show of this name is not locked


# ---- checking and drawing -----------------------------------------------------------------------


def files_of(folder: Path, takes: Path) -> ShowFiles:
    """Return the files that shows use: sounds beside the shows, and the library of takes."""
    return ShowFiles(folder, Library(takes))


def check_sent_show(
    folder: Path, takes: Path, document: Mapping[str, Any], cast: Mapping[str, str] | None
) -> bytes:
    """Return as JSON the findings against running a show that a page has sent."""
    checked = _check_show(shows.from_data(document), folder, takes, cast)
    findings = [_describe_finding(each) for each in checked.findings]
    return to_json({"ok": checked.ok, "findings": findings})


def _describe_finding(found: ShowFinding) -> "s.ShowFindingNow":
    return {
        **finding_document(found.finding),
        "section": found.section or None,
        "role": found.role or None,
        "time_s": found.time_s,
    }


def _check_show(
    show: Show, folder: Path, takes: Path, cast: Mapping[str, str] | None
) -> CheckedShow:
    show_files = files_of(folder, takes)
    parsed_cast = None if cast is None else Cast.parse({"cast": dict(cast)})
    return check_show(show, show_files.take, show_files.sound_s, cast=parsed_cast)


def load_playable(
    folder: Path, takes: Path, name: str, cast: Mapping[str, str], known: str | None
) -> CheckedShow:
    """Read a show from its file, and check it with a cast before it is run.

    Raises `ProblemError` if the file's tag is not the `known` one, and `BadRequestError` if the
    show, its takes or its sounds were changed after the show was locked.
    """
    path = _require_show_file(folder, name)
    data = _read_file(path)
    if known is not None and _compute_tag(data) != known:
        raise ProblemError(
            409,
            "changed-show",
            f"the show {name!r} was changed elsewhere since it was opened here",
            "Check it again, then press GO.",
        )
    show = shows.parse(data)
    check_lock(path, show, files_of(folder, takes))
    return _check_show(show, folder, takes, cast)


def draw_section(folder: Path, takes: Path, document: Mapping[str, Any], section: str) -> bytes:
    """Return as JSON the motion of each role in a section, for drawing."""
    show = shows.from_data(document)
    drawn_section = next((each for each in show.sections if each.name == section), None)
    if drawn_section is None:
        raise BadRequestError(f"there is no section {section!r}", "Choose another one.")
    show_files = files_of(folder, takes)
    scores = []
    for role in show.roles:
        try:
            scores.append(compile_role(show, drawn_section, role.name, show_files.take))
        except ClipError:
            continue  # the check reports the reason
    lengths_s = [score.duration_s for score in scores] + [cue.at_s for cue in drawn_section.cues]
    drawings = [_describe_curves(score) for score in scores if score.motion is not None]
    longest_s = round(max(lengths_s, default=0.0), 3)
    return to_json({"section": section, "duration_s": longest_s, "roles": drawings})


def _describe_curves(score: Score) -> "s.RoleCurves":
    assert score.motion is not None
    track = score.motion.track
    row_count = min(MAX_ROWS, math.ceil(track.duration_s * ROWS_PER_S) + 1, len(track))
    rows = np.unique(np.linspace(0, len(track) - 1, max(row_count, 1)).astype(np.intp))
    return {
        "role": score.role,
        "at_s": score.motion.at_s,
        "build": track.variant,
        "names": list(track.names),
        "times_s": np.round(track.times_s[rows], 3).tolist(),
        "joints_rad": np.round(track.joints_rad[rows], 3).tolist(),
    }


# ---- sounds -------------------------------------------------------------------------------------


def _read_length_s(path: Path) -> float | None:
    """Return the length of a sound; None if the file is not a readable WAV file."""
    try:
        with wave.open(str(path), "rb") as sound:
            return round(sound.getnframes() / sound.getframerate(), 3)
    except (wave.Error, EOFError, OSError, ZeroDivisionError):
        return None


def sound_file(folder: Path, name: str) -> Path:
    """Return the file of an existing sound."""
    path = folder / sound_name(name)
    if not path.is_file() or path.is_symlink():  # a link may point outside the folder
        raise ProblemError(404, "no-sound", f"there is no sound {name!r}", "Add the file.")
    return path


def save_sound(folder: Path, path: Path, name: str, *, replace_it: bool) -> None:
    """Save a WAV file beside the shows."""
    target = folder / sound_name(name)
    if _read_length_s(path) is None:
        raise BadRequestError(f"{name!r} is not a WAV file", "Convert it to WAV, 16 bit.")
    if target.exists() and not replace_it:
        raise ProblemError(
            409, "sound-exists", f"the sound {name!r} already exists", "Choose another name."
        )
    _write_file(target, path.read_bytes())


def peaks(folder: Path, name: str) -> bytes:
    """Return as JSON the peaks of a sound: the loudest sample of each of at most `PEAKS` parts."""
    path = sound_file(folder, name)
    try:
        with wave.open(str(path), "rb") as sound:
            frames, rate = sound.getnframes(), sound.getframerate()
            peak_values = _compute_peaks(sound, frames)
            length_s = frames / rate
    except (wave.Error, EOFError, OSError, ZeroDivisionError) as error:
        raise BadRequestError(f"{name!r} is not a WAV file: {error}", "Convert it.") from None
    rounded = [round(float(each), 3) for each in peak_values]
    return to_json({"name": name, "duration_s": round(length_s, 3), "peaks": rounded})


def _compute_peaks(sound: wave.Wave_read, frames: int) -> "NDArray[np.float64]":
    """Return the peak of each of at most `PEAKS` parts; a frame is one sample of each channel."""
    parts = max(1, min(PEAKS, frames))
    peak_values = np.zeros(parts)
    width, channels, frames_read = sound.getsampwidth(), sound.getnchannels(), 0
    while data := sound.readframes(_CHUNK):
        data = data[: len(data) - len(data) % (width * channels)]  # the last frame may be cut off
        loudness = np.abs(_decode_samples(data, width)).reshape(-1, channels).max(axis=1)
        frame_numbers = np.arange(frames_read, frames_read + len(loudness))
        # Never beyond the last part, even if the header states too few frames.
        part_of_frame = np.minimum(frame_numbers * parts // max(frames, 1), parts - 1)
        np.maximum.at(peak_values, part_of_frame, loudness)
        frames_read += len(loudness)
    return peak_values


def _decode_samples(data: bytes, width: int) -> "NDArray[np.float64]":
    """Return WAV samples of `width` bytes as numbers from -1 to 1."""
    if width == 1:  # unsigned, unlike all wider samples
        return (np.frombuffer(data, np.uint8).astype(float) - 128.0) / 128.0
    if width == 3:  # NumPy has no such type: only the upper 16 of 24 bits are used
        sample_bytes = np.frombuffer(data, np.uint8).reshape(-1, 3)
        return np.ascontiguousarray(sample_bytes[:, 1:]).view("<i2").ravel().astype(float) / 2**15
    dtype = {2: "<i2", 4: "<i4"}.get(width)
    if dtype is None:
        raise wave.Error(f"samples of {width} bytes are not supported")
    return np.frombuffer(data, dtype).astype(float) / 2.0 ** (8 * width - 1)
