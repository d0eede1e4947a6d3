"""rote capture scrub: a copy of a capture that can be shared."""

from pathlib import Path
from typing import Annotated

import typer

from rote.cli.options import Json, Overwrite, print_json


def scrub(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capture, pcap or pcapng.")],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="Where to write the copy.")],
    keep_unknown: Annotated[
        bool,
        typer.Option(
            "--keep-unknown", help="Keep undecodable data; only known names are replaced in it."
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a copy in which addresses, serial numbers, tokens and names are replaced.

    The same name gets the same pseudonym throughout. What is encrypted stays; what cannot be read
    becomes zeros. Times, sizes and ports stay. Look at the copy before you share it.
    """
    from rote.capture.scrub.scrub import scrub as clean
    from rote.platform.atomic_file import check_new

    check_new(to, overwrite)
    done = clean(file, to, keep_unknown=keep_unknown)
    if as_json:
        print_json({name: getattr(done, name) for name in done.__slots__})
        return
    print(f"{done.packets:,} packets written to {to}.")
    _print_counts("Replaced", {k: _replaced_text(count) for k, count in done.replaced.items()})
    _print_counts("Kept, because it is encrypted", _packets(done.encrypted))
    _print_counts("Cleared, because it cannot be read", _packets(done.cleared))
    _print_counts("Kept, and may hold names that nothing marks as names", _packets(done.unjudged))
    if done.dropped:
        print(f"{done.dropped:,} blocks of the file with names, comments or secrets were left out.")
    for warning in done.warnings:
        print(f"Note: {warning}.")


def _replaced_text(count: dict[str, int]) -> str:
    different, times = count["different"], count["times"]
    return f"{different:,} different, {times:,} time{'s' * (times != 1)}"


def _packets(counts: dict[str, int]) -> dict[str, str]:
    return {kind: f"{count:,} packet{'s' * (count != 1)}" for kind, count in counts.items()}


def _print_counts(title: str, counts: dict[str, str]) -> None:
    if counts:
        print(f"{title}:")
    for kind, count in sorted(counts.items()):
        print(f"  {kind}: {count}")
