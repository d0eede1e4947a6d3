"""The report as one page that needs nothing else: tables and drawings, no script, no request."""

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np

from rote.capture.judge.classify import PacketKind
from rote.capture.judge.timeline import iso
from rote.capture.report.report import Report

_WIDTH, _HEIGHT, _LEFT, _FOOT = 960, 160, 60, 20
_COLUMNS = 240
_MOST_ROWS = 500
_COLOURS = ("#3b6fb6", "#d1793b", "#4c9a5b", "#a14a8a", "#8a8f3b", "#777777")
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 1020px; padding: 0 1em;
       color: #1c1c1c; background: #fff }
h1 { font-size: 1.5em } h2 { font-size: 1.15em; margin-top: 2em }
table { border-collapse: collapse; width: 100% } td, th { text-align: left; padding: .25em .6em;
       border-bottom: 1px solid #ddd; vertical-align: top } td.n, th.n { text-align: right }
td { overflow-wrap: anywhere } td.s, td.n { white-space: nowrap } td.t { min-width: 9em }
.scroll { overflow-x: auto }
.warn { color: #9a3b00 } .dim { color: #666 } svg { max-width: 100% }
"""


def page(report: Report) -> str:
    """Return the whole page."""
    document = report.document()
    start, end = document["start"], document["end"]
    head = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>"
        for name, value in (
            ("file", report.name),
            ("format", report.format),
            ("from", start),
            ("to", end),
            ("packets", f"{document['packets']:,}"),
            ("UDP packets", f"{document['udp_packets']:,}"),
            ("DTLS records", f"{document['dtls_records']:,}"),
            ("STUN packets", f"{document['stun_packets']:,}"),
            ("RTP and RTCP packets", f"{document['srtp_packets']:,}"),
            ("documented teaching frames", f"{document['teaching_frames']:,}"),
        )
    )
    warnings = "".join(f'<p class="warn">{escape(words)}</p>' for words in report.warnings)
    title = f"What {escape(report.name)} holds"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{warnings}<table>{head}</table>"
        f"{_limits(report)}<h2>Packets over time</h2>{_activity(report)}"
        f"<h2>Time line</h2>{_timeline(report)}"
        f"<h2>Sizes of UDP datagrams</h2>{_histogram(report)}"
        f"<h2>Flows</h2>{_flows(report)}"
        f"<h2>Bytes offered as commands</h2>{_tests(report)}"
        "</body></html>\n"
    )


def _limits(report: Report) -> str:
    lines = "".join(f"<li>{escape(words)}</li>" for words in report.limits)
    return f"<h2>What cannot be known</h2><ul>{lines}</ul>" if lines else ""


def _table(headings: Sequence[str], rows: Iterable[Sequence[object]], marks: str) -> str:
    """Draw a table; `marks` has a letter for each column: number, short (kept on a line), text."""

    def cell(tag: str, index: int, value: object) -> str:
        return f'<{tag} class="{marks[index]}">{escape(str(value))}</{tag}>'

    top = "".join(cell("th", index, words) for index, words in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(cell("td", index, value) for index, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


def _flows(report: Report) -> str:
    rows = [
        (
            one.sides[0].source,
            one.sides[0].destination,
            one.protocol,
            one.name,
            f"{one.packets:,}",
            f"{one.wire_bytes:,}",
            one.why,
        )
        for one in report.conversations[:_MOST_ROWS]
    ]
    more = len(report.conversations) - len(rows)
    rest = f'<p class="dim">{more:,} more are in the JSON report.</p>' if more > 0 else ""
    headings = ("from", "to", "over", "what", "packets", "bytes", "why")
    return _table(headings, rows, "ssssnnt") + rest


def _timeline(report: Report) -> str:
    if not report.timeline:
        return '<p class="dim">Nothing that can be told from outside.</p>'
    rows = (
        (
            _moment(entry.start_ns),
            "" if entry.end_ns is None else _moment(entry.end_ns),
            entry.kind,
            f"{entry.confidence:.0%}",
            entry.evidence,
        )
        for entry in report.timeline[:_MOST_ROWS]
    )
    return _table(("from", "to", "what", "confidence", "evidence"), rows, "sssnt")


def _moment(time_ns: int) -> str:
    return iso(time_ns)[:23].replace("T", " ")


def _tests(report: Report) -> str:
    rows = (
        (test.direction, test.field, test.verdict.kind, test.verdict.why) for test in report.tests
    )
    return _table(("direction", "field", "is", "because"), rows, "ttst")


def _bars(table: np.ndarray, labels: Sequence[str], foot: tuple[str, str]) -> str:
    """Draw stacked bars: a column of `table` each, a row of it each colour."""
    tallest = max(1.0, float(table.sum(axis=0).max()) if table.size else 1.0)
    step = (_WIDTH - _LEFT) / max(1, table.shape[1])
    drawn = []
    for index in range(table.shape[1]):
        top = float(_HEIGHT)
        for row in np.flatnonzero(table[:, index]).tolist():
            height = float(table[row, index]) / tallest * (_HEIGHT - 10)
            top -= height
            drawn.append(
                f'<rect x="{_LEFT + index * step:.1f}" y="{top:.1f}" width="{max(step, 1):.1f}" '
                f'height="{max(height, 0.5):.1f}" fill="{_COLOURS[row % len(_COLOURS)]}"/>'
            )
    legend = " ".join(
        f'<tspan fill="{_COLOURS[row % len(_COLOURS)]}">\u25a0 {escape(words)}</tspan>'
        for row, words in enumerate(labels)
    )
    bottom = _HEIGHT + _FOOT
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 24}" role="img" font-size="12">'
        f'<text x="{_LEFT - 6}" y="14" text-anchor="end">{tallest:,.0f}</text>'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="#999"/>'
        f"{''.join(drawn)}"
        f'<text x="{_LEFT}" y="{_HEIGHT + 15}">{escape(foot[0])}</text>'
        f'<text x="{_WIDTH}" y="{_HEIGHT + 15}" text-anchor="end">{escape(foot[1])}</text>'
        f'<text x="{_LEFT}" y="{bottom + 15}">{legend}</text></svg>'
    )


def _shown(report: Report, kind: PacketKind) -> PacketKind:
    """Return what packets of a kind mostly turned out to be, with the rest of their flows."""
    moved = {new: 0 for one in report.conversations for old, new in one.moved if old == kind}
    for one in report.conversations:
        for (old, new), count in one.moved.items():
            if old == kind:
                moved[new] += count
    return max(moved, key=moved.__getitem__) if moved and kind not in report.totals else kind


def _activity(report: Report) -> str:
    activity = report.analysis.activity
    if not activity.moments:
        return '<p class="dim">No packets.</p>'
    low, high = min(activity.moments), max(activity.moments)
    columns = min(_COLUMNS, high - low + 1)
    shown = {kind: _shown(report, kind) for kind in report.analysis.flows.kind_totals()}
    labels = sorted(set(shown.values()), key=lambda kind: -report.totals.get(kind, 0))
    labels = labels[: len(_COLOURS)]
    table = np.zeros((len(labels), columns))
    for moment, counts in activity.moments.items():
        column = (moment - low) * columns // (high - low + 1)
        for kind, label in shown.items():
            if label in labels:
                table[labels.index(label), column] += counts[int(kind)]
    ends = iso(low * activity.width_ns), iso((high + 1) * activity.width_ns)
    return _bars(table, [kind.label for kind in labels], ends)


def _histogram(report: Report) -> str:
    sizes = report.analysis.sizes
    used = np.flatnonzero(sizes)
    if not used.size:
        return '<p class="dim">No UDP datagrams.</p>'
    most = int(used[-1]) + 1
    columns = min(_COLUMNS, most)
    table = np.zeros((1, columns))
    np.add.at(table[0], used * columns // most, sizes[used])
    return _bars(table, ["datagrams"], ("0 bytes", f"{most - 1:,} bytes"))
