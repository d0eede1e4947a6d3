"""rote applog: the requests of the phone app and the robot's answers, from the app's log."""

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rote.cli.options import Json, print_json
from rote.errors import BadRequestError

if TYPE_CHECKING:
    from rote.capture.decode.applog import AppLog


def applog(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="A text log of Unitree's phone app.")
    ],
    utc_offset: Annotated[
        float,
        typer.Option(metavar="HOURS", help="Hours by which the phone's clock was ahead of UTC."),
    ] = 0.0,
    as_json: Json = False,
) -> None:
    """Show the phone app's requests and the robot's answers.

    It reads the log that Unitree's app keeps on the phone: no capture and no keys are needed.
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
            f"{file} is not a log of the phone app: none of its {log.lines:,} lines has a message "
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
    from rote.capture.model import iso

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
    from rote.capture.model import iso

    rows = [
        (pair.asked_ns, _request_line(pair.name, pair.latency_s, pair.outcome))
        for pair in log.pairs
    ]
    rows += [(at, f"the arms: {state.label}") for at, state in log.states]
    rows += [
        (at, f"{'a fault' if present else 'no longer'}: {fault.message}")
        for at, present, fault in log.faults
    ]
    return [(iso(at), event) for at, event in sorted(rows)]


def _request_line(name: str, latency_s: float | None, outcome: str) -> str:
    took = "" if latency_s is None else f" after {latency_s * 1000:.0f} ms"
    return f"{name}: {outcome}{took}"
