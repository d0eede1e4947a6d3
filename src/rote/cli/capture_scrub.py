"""rote capture scrub: a copy of a capture that can be shared."""

from pathlib import Path
from typing import Annotated

import typer

from rote.cli.options import Json, Overwrite, print_json


def scrub(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A capture, pcap or pcapng.")],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="Where to write the copy.")],
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a copy in which addresses and names are replaced, and contents are zeros.

    The same name gets the same pseudonym throughout. Headers, times, sizes and ports stay, and so
    do contents that are proven to be encrypted.
    """
    from rote.capture.scrub.scrub import scrub as clean
    from rote.platform.atomic_file import check_new

    check_new(to, overwrite)
    done = clean(file, to)
    if as_json:
        print_json({name: getattr(done, name) for name in done.__slots__})
        return
    print(f"{done.packets:,} packets written to {to}.")
    _print_counts("Replaced", {k: _replaced_text(count) for k, count in done.replaced.items()})
    _print_counts("Kept, because it is encrypted", _packets(done.encrypted))
    _print_counts("Contents cleared", _packets(done.cleared))
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
