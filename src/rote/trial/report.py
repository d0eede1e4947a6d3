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
from rote.wire.services.json_shape import learn_shape

FORMAT = "rote-trial-1"
SCHEMA_FILE = "report.schema.json"
MAX_REPORT_BYTES = 64 * 2**20
_MAX_TRACES = 4000
"""Maximum number of traces in a report."""


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
        robot.setdefault("shapes", {})["answer"] = learn_shape(recorder.answers)
    results = {done.step.id: (done.result, done.note) for done in result.steps}
    judged_facts = judge(robot, result.wire, results)
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
                "id": judged.fact.id,
                "assumed": judged.fact.assumed,
                "seen": judged.seen,
                "agrees": judged.agrees,
                "grade": judged.fact.grade,
                "says": judged.fact.says,
                "page": judged.fact.page,
                "step": judged.fact.step,
                "note": judged.note,
                "used": judged.used,
            }
            for judged in judged_facts
        ],
        "steps": [
            {
                "id": done.step.id,
                "title": done.step.title,
                "level": done.step.level.value,
                "result": done.result,
                "note": done.note,
                "at_s": done.at_s,
                "seconds": done.seconds,
            }
            for done in result.steps
        ],
        "timeline": [
            {"at_s": mark.at_s, "kind": mark.kind, "text": mark.text} for mark in result.timeline
        ],
        "traces": _thin_traces(result),
        "left": result.left,
    }
    finite_document: dict[str, Any] = _replace_non_finite(document)
    return finite_document


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
    """Return the traces as columns; of more than `_MAX_TRACES`, only every n-th is kept."""
    assert result.recorder is not None
    rows = result.recorder.traces
    rows = rows[:: max(1, math.ceil(len(rows) / _MAX_TRACES))]
    return {
        "at_s": [round(row.at_s, 3) for row in rows],
        "speed_rad_s": [round(row.speed_rad_s, 3) for row in rows],
        "away_rad": [round(row.away_rad, 3) for row in rows],
    }


@dataclass(frozen=True, slots=True)
class FactCounts:
    """How many facts of a report agree, differ, were only used, or were not tested."""

    agree: int
    differ: int
    used: int
    """Facts that steps relied on, which does not test them."""
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
    """Return the report in a file or in a trial's folder. Raises `BadRequestError` if it is not a
    valid report.
    """
    file = path / "report.json" if path.is_dir() else path
    remedy = "Use a report.json file, or the folder that `rote trial` wrote."
    try:
        if file.stat().st_size > MAX_REPORT_BYTES:
            raise BadRequestError(f"{file} is too large for a report", remedy)
        document = json.loads(file.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise BadRequestError(f"{file} cannot be read: {reason}", remedy) from None
    except (UnicodeError, ValueError, RecursionError):
        raise BadRequestError(f"{file} is not JSON", remedy) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadRequestError(f"{file} is not a report of a trial ({FORMAT})", remedy)
    if problem := find_violation(document, schema()):
        raise BadRequestError(f"{file} is damaged: {problem}", remedy)
    return document


def _refuse_constant(name: str) -> None:
    """Refuse NaN and infinity, which Python's JSON parser would accept."""
    raise ValueError(f"JSON has no {name}")


_IS_OF_TYPE: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": lambda value: type(value) is int or (type(value) is float and math.isfinite(value)),
    "integer": lambda value: _IS_OF_TYPE["number"](value) and value % 1 == 0,
}


def find_violation(value: Any, rule: dict[str, Any], path: str = "report") -> str:
    """Return how a value violates a rule of a JSON schema; "" if it does not.

    `path` names the value in the message. Supports only the keywords that the report schema uses.
    """
    types = rule.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(_IS_OF_TYPE[type_](value) for type_ in types):
        return f"{path} is not {' or '.join(types)}"
    allowed = rule.get("enum", [rule["const"]] if "const" in rule else None)
    # Python considers True equal to 1, and JSON does not.
    if allowed is not None and not any(
        type(value) is type(constant) and value == constant for constant in allowed
    ):
        return f"{path} must be one of {', '.join(map(str, allowed))}"
    inner: list[tuple[Any, dict[str, Any], str]] = []
    if isinstance(value, list):
        item_rule = rule.get("items", {})
        inner = [(item, item_rule, f"{path}[{index}]") for index, item in enumerate(value)]
    elif isinstance(value, dict):
        for name in rule.get("required", ()):
            if name not in value:
                return f"{path}.{name} is missing"
        rules, other_rule = rule.get("properties", {}), rule.get("additionalProperties", {})
        inner = [(value[name], rules.get(name, other_rule), f"{path}.{name}") for name in value]
    violations = (find_violation(*arguments) for arguments in inner)
    return next(filter(None, violations), "")
