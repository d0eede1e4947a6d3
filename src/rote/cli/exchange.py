"""Import of other programs' motions: converted, checked, and reported."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rote.cli.options import print_json
from rote.cli.wording import finding_json
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.findings import Finding
    from rote.motion.files.exchange import ImportedMotion
    from rote.motion.files.library import Entry, Library

_LEROBOT = "lerobot"


class ImportOptions(NamedTuple):
    """What is to be taken in, and how."""

    file: Path
    name: str | None
    degrees: bool
    format: str | None
    fps: float | None
    quat: str | None
    upper_body: bool
    licence: str
    address: str
    episodes: tuple[int, ...]

    @property
    def own_way(self) -> bool:
        """Whether nothing was asked that only files of other programs have."""
        return self.format is None and not any(
            (self.fps, self.quat, self.upper_body, self.licence, self.address)
        )


class _Taken(NamedTuple):
    """A take that came in, and what is known of it."""

    entry: "Entry"
    joints: tuple[str, ...]
    left_out: tuple[str, ...]
    findings: "Sequence[Finding]"

    def as_json(self) -> dict[str, object]:
        """Return what `--json` prints."""
        return {
            "take": self.entry.name,
            "joints": list(self.joints),
            "left_out": list(self.left_out),
            "findings": [*map(finding_json, self.findings)],
        }


def import_file(options: ImportOptions, shelf: "Library", as_json: bool) -> None:
    """Take a file into the library, and print what came in."""
    if options.episodes and options.format != _LEROBOT and not options.file.is_dir():
        raise BadRequestError("--episode is for data sets: --as lerobot", "Leave it out.")
    if options.format == _LEROBOT or (options.format is None and options.file.is_dir()):
        _import_dataset(options, shelf, as_json)
        return
    if options.own_way and _is_own(options.file):
        _import_own(options, shelf, as_json)
        return
    from rote.motion.files.exchange import import_motion

    if options.degrees:
        raise BadRequestError(
            "--degrees is for files of rote's own formats", "Each other format has its unit."
        )
    found = import_motion(
        options.file,
        options.format,
        fps=options.fps,
        quat=options.quat,
        upper_body=options.upper_body,
        licence=options.licence,
        address=options.address,
    )
    taken = _check_and_save(found, options.name or options.file.stem, shelf)
    if as_json:
        print_json(taken.as_json())
    else:
        _print_import(taken, found)


def _is_own(file: Path) -> bool:
    """Whether a file is one of rote's own: by its ending, and by how it begins where others share
    the ending.
    """
    from rote.motion.files import disk
    from rote.motion.files.exchange.npz_motion import array_names
    from rote.motion.formats import FORMATS

    ending = file.suffix.lower()
    if not file.exists() or ending not in FORMATS:
        # An unknown ending may be another program's; a file that is not there is said by the
        # reader of its ending.
        return not file.exists() and ending in FORMATS
    if ending == ".csv":
        with disk.open_checked(file) as opened:
            return opened.read(16).lstrip(b"\xef\xbb\xbf").startswith(b"t")
    if ending == ".npz":
        with disk.open_checked(file) as opened:
            names = array_names(opened.read())
        return not names or "times_s" in names or "joints_rad" in names
    return True


def _import_own(options: ImportOptions, shelf: "Library", as_json: bool) -> None:
    from rote.cli.takes import document
    from rote.motion.files import load

    track = load(options.file, degrees=options.degrees)
    entry = shelf.save(track, options.name or options.file.stem)
    if as_json:
        taken = _Taken(entry, track.names, (), track.check().findings)
        print_json({**document(entry), **taken.as_json()})
    else:
        print(f"{entry.name}: {entry.duration_s:.2f} s, version {entry.version}")


def _import_dataset(options: ImportOptions, shelf: "Library", as_json: bool) -> None:
    from rote.cli import output
    from rote.motion.files.exchange.lerobot_read import import_lerobot

    found = import_lerobot(
        options.file,
        options.episodes or None,
        upper_body=options.upper_body,
        licence=options.licence,
        address=options.address,
    )
    stem = options.name or options.file.resolve().name
    many = len(found) > 1
    taken = []
    with output.bar(output.console(quiet=as_json), "episodes") as move:
        for count, (number, motion) in enumerate(found.items(), start=1):
            taken.append(_check_and_save(motion, f"{stem}-{number}" if many else stem, shelf))
            move(count / len(found), f"{count} of {len(found)}")
    if as_json:
        documents = [each.as_json() for each in taken]
        print_json({"takes": documents} if many else documents[0])
        return
    for each, motion in zip(taken, found.values(), strict=True):
        _print_import(each, motion)


def _check_and_save(found: "ImportedMotion", name: str, shelf: "Library") -> _Taken:
    """Check a motion and put it into the library."""
    from rote.cli import output
    from rote.motion.check.rules import check

    with output.waiting("checking"):
        report = check(found.track)
    entry = shelf.save(found.track, name)
    findings = (*report.errors, *report.warnings)
    rest = [each for each in report.findings if each not in findings]
    return _Taken(entry, found.track.names, found.left_out, (*findings, *found.notes, *rest))


def _print_import(taken: _Taken, found: "ImportedMotion") -> None:
    from rote.cli import output
    from rote.findings import Severity

    track, entry = found.track, taken.entry
    base = "" if track.root is None else ", with the path of its base"
    print(
        f"{entry.name}: {track.duration_s:.2f} s, {len(track)} samples of {len(track.names)} joints"
        f"{base}; read as {found.format}, version {entry.version}"
    )
    if taken.left_out:
        print(f"Left out: {', '.join(taken.left_out)}.")
    output.findings(output.console(), taken.findings)
    if any(each.severity is Severity.ERROR for each in taken.findings):
        print(f"Not playable as it is. Make it so: rote motion fit {entry.name} NEW --take")
