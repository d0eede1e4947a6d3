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
    """Which file to import, and how."""

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
    def is_for_rote_file(self) -> bool:
        """Whether the options fit one of rote's own files: none is for other programs' files."""
        return self.format is None and not any(
            (self.fps, self.quat, self.upper_body, self.licence, self.address)
        )


class _ImportedTake(NamedTuple):
    """An imported take and its findings."""

    entry: "Entry"
    joints: tuple[str, ...]
    left_out: tuple[str, ...]
    findings: "Sequence[Finding]"

    def as_json(self) -> dict[str, object]:
        """Return the JSON document of `--json`."""
        return {
            "take": self.entry.name,
            "joints": list(self.joints),
            "left_out": list(self.left_out),
            "findings": [*map(finding_json, self.findings)],
        }


def import_file(options: ImportOptions, library: "Library", as_json: bool) -> None:
    """Import a file into the library, and print the result."""
    if options.episodes and options.format != _LEROBOT and not options.file.is_dir():
        raise BadRequestError("--episode is for datasets: --as lerobot", "Leave it out.")
    if options.format == _LEROBOT or (options.format is None and options.file.is_dir()):
        _import_dataset(options, library, as_json)
        return
    from rote.motion.files.exchange import import_motion, is_own_file

    if options.is_for_rote_file and is_own_file(options.file):
        _import_rote_file(options, library, as_json)
        return

    if options.degrees:
        raise BadRequestError(
            "--degrees is for files of rote's own formats",
            "Leave it out: the unit of other formats is known.",
        )
    motion = import_motion(
        options.file,
        options.format,
        fps=options.fps,
        quat=options.quat,
        upper_body=options.upper_body,
        licence=options.licence,
        address=options.address,
    )
    take = _check_and_save(motion, options.name or options.file.stem, library)
    if as_json:
        print_json(take.as_json())
    else:
        _print_import(take, motion)


def _import_rote_file(options: ImportOptions, library: "Library", as_json: bool) -> None:
    from rote.cli.takes import build_document, print_reading_notes
    from rote.motion.files import load

    track = load(options.file, degrees=options.degrees)
    print_reading_notes(track, options.file)
    entry = library.save(track, options.name or options.file.stem)
    if as_json:
        take = _ImportedTake(entry, track.names, (), track.check().findings)
        print_json({**build_document(entry), **take.as_json()})
    else:
        print(f"{entry.name}: {entry.duration_s:.2f} s, version {entry.version}")


def _import_dataset(options: ImportOptions, library: "Library", as_json: bool) -> None:
    """Import each episode of a LeRobot dataset as a take, and print the results."""
    from rote.cli import output
    from rote.motion.files.exchange.lerobot_read import import_lerobot

    motions = import_lerobot(
        options.file,
        options.episodes or None,
        upper_body=options.upper_body,
        licence=options.licence,
        address=options.address,
    )
    stem = options.name or options.file.resolve().name
    is_many = len(motions) > 1
    imported = []
    with output.show_progress(output.console(quiet=as_json), "episodes") as set_progress:
        for count, (episode, motion) in enumerate(motions.items(), start=1):
            name = f"{stem}-{episode}" if is_many else stem
            imported.append(_check_and_save(motion, name, library))
            set_progress(count / len(motions), f"{count} of {len(motions)}")
    if as_json:
        documents = [take.as_json() for take in imported]
        print_json({"takes": documents} if is_many else documents[0])
        return
    for take, motion in zip(imported, motions.values(), strict=True):
        _print_import(take, motion)


def _check_and_save(motion: "ImportedMotion", name: str, library: "Library") -> _ImportedTake:
    """Check a motion and save it; errors and warnings come first in the result's findings."""
    from rote.cli import output
    from rote.motion.check.rules import check

    with output.show_spinner("checking"):
        report = check(motion.track)
    entry = library.save(motion.track, name)
    problems = (*report.errors, *report.warnings)
    other_findings = [each for each in report.findings if each not in problems]
    return _ImportedTake(
        entry, motion.track.names, motion.left_out, (*problems, *motion.notes, *other_findings)
    )


def _print_import(take: _ImportedTake, motion: "ImportedMotion") -> None:
    from rote.cli import output
    from rote.findings import Severity

    track, entry = motion.track, take.entry
    base_note = "" if track.root is None else ", with the path of its base"
    print(
        f"{entry.name}: {track.duration_s:.2f} s, {len(track)} samples of {len(track.names)} joints"
        f"{base_note}; read as {motion.format}, version {entry.version}"
    )
    if take.left_out:
        print(f"Left out: {', '.join(take.left_out)}.")
    output.print_findings(output.console(), take.findings)
    if any(each.severity is Severity.ERROR for each in take.findings):
        print(f"Not playable yet. To make it playable: rote motion fit {entry.name} NEW --take")
