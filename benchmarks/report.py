"""The results of one run as JSON, and the tables of docs/performance.md that are made of them.

`python -m benchmarks.report` makes the tables again from benchmarks/results.json.
"""

import json
import os
import platform
import re
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.table import Row, markdown

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).with_name("results.json")
PAGE = ROOT / "docs" / "performance.md"
_PART = re.compile(r"<!-- ([a-z0-9_]+): begin -->\n.*?<!-- \1: end -->", re.DOTALL)
_SUMMARY = "run"


@dataclass
class Measured:
    """What one claim gave."""

    rows: list[Row] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    """Peers that are not installed; their rows are left out."""
    failed: str = ""
    """Why it could not be measured."""
    alone: str = ""
    """When and at which load it was measured, if not with the others."""

    def document(self) -> dict[str, Any]:
        """Return the JSON of this claim."""
        rows = [row.document() for row in self.rows]
        return {**vars(self), "rows": rows}

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Measured":
        """Return what `document` was made of."""
        rows = [Row(**row) for row in document["rows"]]
        return cls(**{**document, "rows": rows})


@dataclass
class Results:
    """One run of the benchmarks."""

    date: str
    machine: str
    load: tuple[float, float]
    """The load averages of the last minute before and after the run; a run itself makes some."""
    minutes: float
    claims: dict[str, Measured]

    def document(self) -> dict[str, Any]:
        """Return the JSON of this run."""
        claims = {name: measured.document() for name, measured in self.claims.items()}
        return {**vars(self), "load": list(self.load), "claims": claims}

    @classmethod
    def of(cls, document: dict[str, Any]) -> "Results":
        """Return what `document` was made of."""
        before, after = document["load"]
        claims = {name: Measured.of(each) for name, each in document["claims"].items()}
        return cls(**{**document, "load": (before, after), "claims": claims})

    @property
    def failed(self) -> dict[str, str]:
        """The claims that could not be measured, and why."""
        return {name: each.failed for name, each in self.claims.items() if each.failed}


def today() -> str:
    """Return the date, in UTC."""
    return f"{datetime.now(UTC):%Y-%m-%d}"


def describe_machine() -> str:
    """Return processor, number of cores, and Python."""
    model = platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        names = re.findall(r"^model name\s*: (.*)$", info.read_text(encoding="utf-8"), re.MULTILINE)
        model = names[0] if names else model
    return f"{os.cpu_count()} cores of {model}, Python {platform.python_version()}"


def summarise(results: Results) -> str:
    """Return what stands above the tables: when and where, and which goals were missed."""
    before, after = results.load
    rows = [row for measured in results.claims.values() for row in measured.rows]
    missed = [row for row in rows if row.met is False]
    met = sum(row.met is True for row in rows)
    lines = [
        f"Run of {results.date}, {results.minutes:.0f} minutes, on {results.machine}; load "
        f"{before:.1f} before it and {after:.1f} after it. {met} goals met, {len(missed)} missed"
        + (":" if missed else "."),
    ]
    if missed:
        lines += ["", markdown(missed)]
    lines += [f"\n`{name}` could not be measured: {why}." for name, why in results.failed.items()]
    return "\n".join(lines)


def table_of(results: Results, claim: str) -> str:
    """Return the table of a claim, and what is missing in it."""
    measured = results.claims.get(claim)
    if measured is None or not measured.rows:
        return "Not measured in this run."
    return "\n".join(
        [
            markdown(measured.rows),
            *(f"\nLeft out: {why}." for why in measured.missing),
            *([f"\nMeasured alone: {measured.alone}."] if measured.alone else []),
        ]
    )


def render_page(page: str, results: Results) -> str:
    """Return the page with the tables of a run in all parts that are generated."""

    def renew(found: re.Match[str]) -> str:
        name = found[1]
        content = summarise(results) if name == _SUMMARY else table_of(results, name)
        return f"<!-- {name}: begin -->\n\n{content}\n\n<!-- {name}: end -->"

    return _PART.sub(renew, page)


def generated_parts(page: str) -> set[str]:
    """Return the names of all claims that have a table in a page."""
    return {found[1] for found in _PART.finditer(page)} - {_SUMMARY}


def load_results() -> Results:
    """Return the run that the page shows."""
    return Results.of(json.loads(RESULTS.read_text(encoding="utf-8")))


def replace_claims(last: Results, results: Results) -> Results:
    """Return the last run with the claims of another one, which say that they are."""
    before, after = results.load
    for measured in results.claims.values():
        measured.alone = f"{results.date}, load {before:.1f} before it and {after:.1f} after it"
    return replace(last, claims={**last.claims, **results.claims})


def write_results(results: Results) -> None:
    """Write the JSON of a run, and the page's tables."""
    RESULTS.write_text(json.dumps(results.document(), indent=1) + "\n", encoding="utf-8")
    write_page(results)


def write_page(results: Results) -> None:
    """Write the page's tables."""
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(render_page(page, results), encoding="utf-8")


if __name__ == "__main__":
    write_page(load_results())
