"""Tools for captures: make one, share one, show one in Wireshark; read the phone app's log."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, print_json
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.capture.decode.applog import AppLog

Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace what is there under that name.")
]


def applog(
    file: Annotated[Path, typer.Argument(help="A log of Unitree's phone app, as text.")],
    utc_offset: Annotated[
        float, typer.Option(help="Hours by which the phone's clock was ahead of UTC.")
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Show what the phone app asked, what the robot answered, and what it was doing.

    It reads the log that Unitree's app keeps on the phone, where you have one: no capture, no keys.
    """
    from rote.capture.decode.applog import read

    try:
        year = datetime.fromtimestamp(file.stat().st_mtime, UTC).year
        with file.open(encoding="utf-8", errors="replace") as lines:
            log = read(lines, year=year, utc_offset_s=utc_offset * 3600)
    except OSError as error:
        raise BadRequestError(
            f"{file} cannot be read: {error.strerror}", "Check the path."
        ) from None
    if not log.messages:
        raise BadRequestError(
            f"{file} is no log of the phone app: none of its {log.lines:,} lines has a message "
            "between app and robot",
            "Give the log that Unitree's app keeps on the phone, as text: docs/capture.md.",
        )
    if as_json:
        print_json(_document(log))
        return
    print(f"{log.lines} lines, {log.messages} messages, {log.unknown} lines without one")
    for at, event in _events(log):
        print(f"{at}  {event}")


def _document(log: "AppLog") -> dict[str, object]:
    from rote.capture.judge.timeline import iso

    return {
        "lines": log.lines,
        "messages": log.messages,
        "unknown": log.unknown,
        "pairs": [pair.document() for pair in log.pairs],
        "states": [{"time": iso(at), "state": state.label} for at, state in log.states],
        "faults": [
            {"time": iso(at), "present": present, "fault": fault.message}
            for at, present, fault in log.faults
        ],
        "timeline": [entry.document() for entry in log.timeline],
    }


def _events(log: "AppLog") -> list[tuple[str, str]]:
    from rote.capture.judge.timeline import iso

    rows = [(pair.asked_ns, _asked(pair.name, pair.latency_s, pair.outcome)) for pair in log.pairs]
    rows += [(at, f"the arms: {state.label}") for at, state in log.states]
    rows += [
        (at, f"{'a fault' if present else 'no longer'}: {fault.message}")
        for at, present, fault in log.faults
    ]
    return [(iso(at), event) for at, event in sorted(rows)]


def _asked(name: str, latency_s: float | None, outcome: str) -> str:
    took = "" if latency_s is None else f" after {latency_s * 1000:.0f} ms"
    return f"{name}: {outcome}{took}"


def scrub(
    file: Annotated[Path, typer.Argument(help="A capture, pcap or pcapng.")],
    to: Annotated[Path, typer.Argument(metavar="COPY", help="Where to write the copy.")],
    keep_unknown: Annotated[
        bool,
        typer.Option(
            "--keep-unknown", help="Keep what cannot be read; only known names are replaced in it."
        ),
    ] = False,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a copy in which addresses, serial numbers, tokens and names are replaced.

    The same name gets the same pseudonym throughout. What is encrypted stays; what cannot be read
    becomes zeros. Times, sizes and ports stay. Look at the copy before you share it.
    """
    from rote.atomic_file import check_new
    from rote.capture.scrub.scrub import scrub as clean

    check_new(to, overwrite)
    done = clean(file, to, keep_unknown=keep_unknown)
    if as_json:
        print_json({name: getattr(done, name) for name in done.__slots__})
        return
    print(f"{done.packets:,} packets written to {to}.")
    _print_counts("Replaced", {k: _replaced(count) for k, count in done.replaced.items()})
    _print_counts("Kept, because it is encrypted", _packets(done.encrypted))
    _print_counts("Cleared, because it cannot be read", _packets(done.cleared))
    _print_counts("Kept, and may hold names that nothing marks as names", _packets(done.unjudged))
    if done.dropped:
        print(f"{done.dropped:,} blocks of the file with names, comments or secrets were left out.")
    for warning in done.warnings:
        print(f"Note: {warning}.")


def _replaced(count: dict[str, int]) -> str:
    different, times = count["different"], count["times"]
    return f"{different:,} different, {times:,} time{'s' * (times != 1)}"


def _packets(counts: dict[str, int]) -> dict[str, str]:
    return {kind: f"{count:,} packet{'s' * (count != 1)}" for kind, count in counts.items()}


def _print_counts(title: str, counts: dict[str, str]) -> None:
    if counts:
        print(f"{title}:")
    for kind, count in sorted(counts.items()):
        print(f"  {kind}: {count}")


def make(
    file: Annotated[Path, typer.Argument(help="Where to write it: .pcap or .pcapng.")],
    kind: Annotated[str, typer.Option(help="webrtc, frames or a1.")] = "webrtc",
    cipher: Annotated[str, typer.Option(help="chacha20, aes128 or aes256.")] = "chacha20",
    keylog: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the session's secrets there.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Another seed, other random numbers.")] = 0,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a capture of a teaching session, to learn from and to test with."""
    from rote.atomic_file import check_new
    from rote.capture.synthetic.build import make as build

    for path in (file, keylog):
        if path is not None:
            check_new(path, overwrite)
    count = build(file, kind, cipher=cipher, keylog=keylog, seed=seed)
    if as_json:
        print_json({"file": str(file), "packets": count})
        return
    keys = f" --keylog {keylog}" if keylog is not None else ""
    print(f"{count} packets of a made-up session are in {file}.\nTry: rote capture {file}{keys}")


def dissector(
    file: Annotated[
        Path | None, typer.Argument(help="Where to write it; without, it is printed.")
    ] = None,
    overwrite: Overwrite = False,
    as_json: Json = False,
) -> None:
    """Write a dissector for Wireshark: teaching frames, A1 frames, the data channel."""
    from rote.atomic_file import appearing, check_new
    from rote.capture.report.dissector import lua

    text = lua()
    if file is not None:
        check_new(file, overwrite)
        with appearing(file) as out:
            out.write(text.encode())
    if as_json:
        print_json({"text": text} if file is None else {"file": str(file)})
    elif file is None:
        print(text, end="")
    else:
        print(f"Written. Try: wireshark -X lua_script:{file}")
