"""The summary of a batch, and its report as one self-contained HTML page."""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from rote.batch.task import Row, RowStatus, Task, load_motion
from rote.errors import RoteError
from rote.findings import Severity
from rote.motion.files.thumbnail import thumbnail
from rote.platform.html_page import render_document, render_table

_MAX_WORST = 24  # motions that the report shows
STATUS_TITLES = {
    RowStatus.OK: "no findings",
    RowStatus.WARNING: "with warnings",
    RowStatus.ERROR: "not playable",
    RowStatus.FAILED: "failed",
}


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """Counts over all motions of a batch."""

    statuses: dict[RowStatus, int]
    findings: dict[tuple[str, str], int]
    """The number of motions by severity and kind of finding, the most frequent first."""
    seconds: float
    """The length of all motions together."""
    worst: tuple[Row, ...]
    """The rows of the worst motions, the worst first."""

    @property
    def motions(self) -> int:
        """The number of motions."""
        return sum(self.statuses.values())

    @property
    def ok(self) -> bool:
        """Whether no motion failed and nothing forbids playing one."""
        return not self.statuses[RowStatus.ERROR] and not self.statuses[RowStatus.FAILED]

    def as_json(self) -> dict[str, Any]:
        """Return the summary as JSON data."""
        return {
            "motions": self.motions,
            "seconds": round(self.seconds, 3),
            **{status.value: count for status, count in self.statuses.items()},
            "findings": [
                {"severity": severity, "kind": kind, "motions": count}
                for (severity, kind), count in self.findings.items()
            ],
            "worst": [row["name"] for row in self.worst],
        }


def summarise(rows: Iterable[Row]) -> BatchSummary:
    """Count the rows of a batch."""
    statuses: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    seconds = 0.0
    worst: list[tuple[tuple[int, int, float], int, Row]] = []
    for number, row in enumerate(rows):
        statuses[row["status"]] += 1
        seconds += row.get("seconds", 0.0)
        kinds.update({(f["severity"], f["kind"]) for f in row.get("findings", ())})
        if row["status"] != RowStatus.OK:
            # `worst` is a heap: a new entry replaces the least bad one. The number decides between
            # rows of equal rank, because rows are dictionaries and cannot be compared.
            entry = (_rank_row(row), -number, row)
            if len(worst) < _MAX_WORST:
                heapq.heappush(worst, entry)
            else:
                heapq.heappushpop(worst, entry)
    return BatchSummary(
        statuses={status: statuses[status] for status in RowStatus},
        findings=dict(kinds.most_common()),
        seconds=seconds,
        worst=tuple(row for _, _, row in sorted(worst, key=lambda entry: entry[:2], reverse=True)),
    )


def _rank_row(row: Row) -> tuple[int, int, float]:
    """Return how bad a row is: by status, number of errors, and the largest excess over a limit."""
    findings = row.get("findings", ())
    errors = sum(finding["severity"] == Severity.ERROR for finding in findings)
    excess = max(
        (abs(f["value"] / f["limit"]) for f in findings if f["value"] is not None and f["limit"]),
        default=0.0,
    )
    return list(RowStatus).index(RowStatus(row["status"])), errors, excess


def render_report(summary: BatchSummary, task: Task) -> str:
    """Return the report as a page that loads nothing and runs no script."""
    title = f"Batch {task.kind}: {summary.motions:,} motions"
    options = ", ".join(
        f"{name} {value}" for name, value in task.as_json().items() if name != "kind"
    )
    counts = render_table(
        ("result", "motions"),
        [(STATUS_TITLES[status], f"{count:,}") for status, count in summary.statuses.items()],
        classes="tn",
    )
    findings = render_table(
        ("severity", "finding", "motions"),
        [(severity, kind, f"{count:,}") for (severity, kind), count in summary.findings.items()],
        classes="ttn",
    )
    worst = "".join(_render_motion(row, task) for row in summary.worst)
    return render_document(
        title,
        f'<p class="dim">{summary.seconds / 60:,.1f} minutes of motion. Options: {escape(options)}.'
        f"</p>{counts}<h2>Findings</h2>{findings}<h2>Worst motions</h2><table>{worst}</table>",
    )


def _render_motion(row: Row, task: Task) -> str:
    """Return the row of the report's table for a motion: its drawing, name and problems."""
    texts = [row["error"]] if "error" in row else []
    texts += [f["message"] for f in row.get("findings", ()) if f["severity"] != Severity.NOTE]
    lines = "".join(f"<div>{escape(text)}</div>" for text in texts)
    return (
        f"<tr><td>{_draw_motion(row, task)}</td><td><b>{escape(row['name'])}</b>{lines}</td></tr>"
    )


def _draw_motion(row: Row, task: Task) -> str:
    """Return a drawing of a motion as SVG; empty if its file cannot be read."""
    if row["status"] == RowStatus.FAILED:
        return ""
    try:
        return thumbnail(load_motion(task, Path(row["file"])).track)
    except (RoteError, OSError):
        return ""
