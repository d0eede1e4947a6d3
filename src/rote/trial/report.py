"""Builds the report of a trial as a JSON document, and reads reports from files.

The format is published as a JSON schema (`SCHEMA_FILE`); `read_report` accepts nothing else.
"""

import json
import math
import platform
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rote import __version__
from rote.errors import BadRequestError
from rote.trial.judgement import judge
from rote.trial.runner import TrialResult
from rote.wire.services.json_shape import shape_of

FORMAT = "rote-trial-1"
SCHEMA_FILE = "report.schema.json"
MAX_REPORT_BYTES = 64 * 2**20
_TRACES = 4000


def build_report(result: TrialResult) -> dict[str, Any]:
    """Return the report of a trial; it still contains identifiers."""
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
                "used": one.used,
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
        "traces": _thin_traces(result),
        "left": result.left,
    }
    finite: dict[str, Any] = _replace_non_finite(document)
    return finite


def _replace_non_finite(value: Any) -> Any:
    """Replace NaN and infinity, which JSON does not have, by None."""
    if isinstance(value, dict):
        return {str(name): _replace_non_finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_replace_non_finite(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _thin_traces(result: TrialResult) -> dict[str, list[Any]]:
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
    """Number of facts of a report by outcome."""

    agree: int
    differ: int
    used: int
    """Steps relied on them, which does not test them."""
    untested: int


def count_facts(report: dict[str, Any]) -> FactCounts:
    """Count the facts of a report."""
    agrees = [fact["agrees"] for fact in report["facts"]]
    used = sum(fact["agrees"] is None and fact.get("used", False) for fact in report["facts"])
    return FactCounts(agrees.count(True), agrees.count(False), used, agrees.count(None) - used)


def schema() -> dict[str, Any]:
    """Return the JSON schema of a report."""
    text = (Path(__file__).parent / SCHEMA_FILE).read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    return read


def read_report(path: Path) -> dict[str, Any]:
    """Read a report file, or the report in a trial's folder; raise `BadRequestError`."""
    file = path / "report.json" if path.is_dir() else path
    remedy = "Name a report.json, or the folder that `rote trial` wrote."
    try:
        if file.stat().st_size > MAX_REPORT_BYTES:
            raise BadRequestError(f"{file} is too long for a report", remedy)
        document = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadRequestError(f"{file} cannot be read: {reason}", remedy) from None
    except (UnicodeError, ValueError, RecursionError):
        raise BadRequestError(f"{file} is not JSON", remedy) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadRequestError(f"{file} is not a report of a trial ({FORMAT})", remedy)
    if wrong := violation(document, schema()):
        raise BadRequestError(f"{file} is damaged: {wrong}", remedy)
    return document


def _refuse_constant(name: str) -> None:
    raise ValueError(f"JSON has no {name}")


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: type(value) is int or (type(value) is float and math.isfinite(value)),
    "integer": lambda value: _TYPES["number"](value) and value % 1 == 0,
}


def violation(value: Any, rule: dict[str, Any], path: str = "report") -> str:
    """Return how a value violates a JSON schema; empty if it does not.

    Supports only the keywords that the report schema uses.
    """
    kinds = rule.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(_TYPES[kind](value) for kind in kinds):
        return f"{path} is not {' or '.join(kinds)}"
    allowed = rule.get("enum", [rule["const"]] if "const" in rule else None)
    if allowed is not None and not any(
        type(value) is type(each) and value == each for each in allowed
    ):
        return f"{path} is none of {', '.join(map(str, allowed))}"
    if isinstance(value, list) and "items" in rule:
        inner = ((each, rule["items"], f"{path}[{at}]") for at, each in enumerate(value))
        return next(filter(None, (violation(*each) for each in inner)), "")
    if not isinstance(value, dict):
        return ""
    for name in rule.get("required", ()):
        if name not in value:
            return f"{path}.{name} is missing"
    known, others = rule.get("properties", {}), rule.get("additionalProperties", {})
    fields = ((each, known.get(name, others), f"{path}.{name}") for name, each in value.items())
    return next(filter(None, (violation(*each) for each in fields)), "")
