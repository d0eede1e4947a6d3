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

    Reads the log that Unitree's app keeps on the phone, so it needs no capture and no keys.
    """
    from rote.capture.decode.applog import read

    try:
        # Time stamps in the log may lack the year.
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
        print_json(_build_document(log))
        return
    print(f"{log.lines} lines, {log.messages} messages, {log.unknown} other lines")
    for time, description in _list_events(log):
        print(f"{time}  {description}")


def _build_document(log: "AppLog") -> dict[str, object]:
    from rote.capture.model import iso

    return {
        "lines": log.lines,
        "messages": log.messages,
        "unknown": log.unknown,
        "pairs": [pair.document() for pair in log.pairs],
        "states": [{"time": iso(time_ns), "state": state.label} for time_ns, state in log.states],
        "faults": [
            {"time": iso(time_ns), "present": present, "fault": fault.message}
            for time_ns, present, fault in log.faults
        ],
        "timeline": [entry.document() for entry in log.timeline],
    }


def _list_events(log: "AppLog") -> list[tuple[str, str]]:
    """Return the time and the description of each event, in order of time."""
    from rote.capture.model import iso

    events = [
        (pair.asked_ns, _describe_request(pair.name, pair.latency_s, pair.outcome))
        for pair in log.pairs
    ]
    events += [(time_ns, f"the arms: {state.label}") for time_ns, state in log.states]
    events += [
        (time_ns, f"{'a fault' if present else 'no longer'}: {fault.message}")
        for time_ns, present, fault in log.faults
    ]
    return [(iso(time_ns), description) for time_ns, description in sorted(events)]


def _describe_request(name: str, latency_s: float | None, outcome: str) -> str:
    delay = "" if latency_s is None else f" after {latency_s * 1000:.0f} ms"
    return f"{name}: {outcome}{delay}"
