"""The report of a trial as a document, and reports read from files.

Its form is published as a JSON schema (`SCHEMA_FILE`); `read_report` accepts nothing else.
"""

import json
import math
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rote import __version__
from rote.errors import BadRequestError
from rote.trial.judgement import judge
from rote.trial.runner import TrialResult
from rote.wire.json_shape import shape_of

FORMAT = "rote-trial-1"
SCHEMA_FILE = "report.schema.json"
MAX_REPORT_BYTES = 64 * 2**20
_TRACES = 4000
_NEEDED: dict[str, type] = {
    "format": str,
    "level": str,
    "ended": str,
    "robot": dict,
    "facts": list,
    "steps": list,
}


def report_of(result: TrialResult) -> dict[str, Any]:
    """Return the report of a trial; identifiers are still in it."""
    recorder = result.recorder
    assert recorder is not None
    robot = dict(result.measured)
    robot["delays_s"] = {
        api: [round(delay, 4) for delay in delays]
        for api, delays in sorted(recorder.delays_s.items())
    }
    robot["odd_messages"] = recorder.odd
    robot["text_marks"] = sorted(recorder.marks)
    if recorder.answers and "chunks" not in recorder.marks:
        robot.setdefault("shapes", {})["answer"] = shape_of(recorder.answers)
    results = {one.step.id: (one.result, one.note) for one in result.steps}
    judged = judge(robot, result.wire, results)
    document = {
        "format": FORMAT,
        "rote": __version__,
        "system": platform.system(),
        "made": datetime.now(UTC).date().isoformat(),
        "level": result.level.value,
        "ended": result.ended,
        "reason": result.reason,
        "seconds": round(result.seconds, 1),
        "robot": robot,
        "facts": [
            {
                "id": one.fact.id,
                "assumed": one.fact.assumed,
                "seen": one.seen,
                "agrees": one.agrees,
                "grade": one.fact.grade,
                "says": one.fact.says,
                "page": one.fact.page,
                "step": one.fact.step,
                "note": one.note,
            }
            for one in judged
        ],
        "steps": [
            {
                "id": one.step.id,
                "title": one.step.title,
                "level": one.step.level.value,
                "result": one.result,
                "note": one.note,
                "at_s": one.at_s,
                "seconds": one.seconds,
            }
            for one in result.steps
        ],
        "timeline": [
            {"at_s": mark.at_s, "kind": mark.kind, "text": mark.text} for mark in result.timeline
        ],
        "traces": _traces(result),
        "left": result.left,
    }
    finite: dict[str, Any] = _finite(document)
    return finite


def _finite(value: Any) -> Any:
    """Return a document without numbers that JSON does not have."""
    if isinstance(value, dict):
        return {str(name): _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _traces(result: TrialResult) -> dict[str, list[Any]]:
    assert result.recorder is not None
    rows = result.recorder.traces
    rows = rows[:: max(1, -(-len(rows) // _TRACES))]
    return {
        "at_s": [round(row.at_s, 3) for row in rows],
        "speed_rad_s": [round(row.speed_rad_s, 3) for row in rows],
        "away_rad": [round(row.away_rad, 3) for row in rows],
    }


@dataclass(frozen=True, slots=True)
class FactCounts:
    """How many facts a report says what about."""

    agree: int
    differ: int
    untested: int


def counts(report: dict[str, Any]) -> FactCounts:
    """Count the facts of a report."""
    agrees = [fact.get("agrees") for fact in report["facts"]]
    return FactCounts(agrees.count(True), agrees.count(False), agrees.count(None))


def schema() -> dict[str, Any]:
    """Return the JSON schema of a report."""
    text = (Path(__file__).parent / SCHEMA_FILE).read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def read_report(path: Path) -> dict[str, Any]:
    """Read a report, or the report in the folder that a trial left; raise `BadRequestError`."""
    file = path / "report.json" if path.is_dir() else path
    remedy = "Name a report.json, or the folder that `rote trial` wrote."
    try:
        if file.stat().st_size > MAX_REPORT_BYTES:
            raise BadRequestError(f"{file} is too long for a report", remedy)
        document = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadRequestError(f"{file} cannot be read: {reason}", remedy) from None
    except (UnicodeError, ValueError, RecursionError):
        raise BadRequestError(f"{file} is not JSON", remedy) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadRequestError(f"{file} is not a report of a trial ({FORMAT})", remedy)
    for name, kind in _NEEDED.items():
        if not isinstance(document.get(name), kind):
            raise BadRequestError(f"{file} is damaged: {name!r} is missing or wrong", remedy)
    if not isinstance(document["robot"].get("wire"), str):
        raise BadRequestError(f"{file} is damaged: it does not say by which wire", remedy)
    for fact in document["facts"]:
        if not isinstance(fact, dict) or not {"id", "assumed", "seen", "agrees"} <= fact.keys():
            raise BadRequestError(f"{file} is damaged: a fact is incomplete", remedy)
    return document
