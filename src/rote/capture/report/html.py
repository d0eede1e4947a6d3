"""The report as one self-contained page: tables and drawings, no script, no request."""

import math
from collections.abc import Iterable, Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from rote.capture.model import PacketKind, TimelineEntry, iso
from rote.capture.report.report import Report

_WIDTH, _HEIGHT, _LEFT, _FOOT = 960, 160, 90, 20
_COLUMNS = 240
_LANE = 22
_SMALLEST = 8
"""Smaller sizes are drawn at the left edge."""
_BELOW_ONE = 0.3
"""How much of a decade a single packet is drawn above the base line."""
_MAX_ROWS = 500
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


def render_page(report: Report) -> str:
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
            ("of these", ", ".join(f"{n:,} {label}" for label, n in report.accounted.items())),
            ("UDP packets", f"{document['udp_packets']:,}"),
            ("DTLS records", f"{document['dtls_records']:,}"),
            ("STUN packets", f"{document['stun_packets']:,}"),
            ("RTP and RTCP packets, secured or not", f"{document['srtp_packets']:,}"),
            ("documented teaching frames", f"{document['teaching_frames']:,}"),
        )
    )
    warnings = "".join(f'<p class="warn">{escape(warning)}</p>' for warning in report.warnings)
    title = f"What {escape(report.name)} holds"
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>{warnings}<table>{head}</table>"
        f"{_render_limits(report)}<h2>Packets over time</h2>{_render_activity(report)}"
        f"<h2>Time line</h2>{_render_lanes(report)}{_render_timeline(report)}"
        f"{_render_teaching(report)}<h2>Sizes of UDP datagrams</h2>{_render_histogram(report)}"
        f"<h2>Flows</h2>{_render_flows(report)}"
        f"<h2>Bytes offered as commands</h2>{_render_tests(report)}"
        "</body></html>\n"
    )


def _render_limits(report: Report) -> str:
    lines = "".join(f"<li>{escape(limit)}</li>" for limit in report.limits)
    return f"<h2>What cannot be known</h2><ul>{lines}</ul>" if lines else ""


def _render_table(headings: Sequence[str], rows: Iterable[Sequence[object]], marks: str) -> str:
    """Draw a table; `marks` has a letter for each column: number, short (kept on a line), text."""

    def cell(tag: str, index: int, value: object) -> str:
        return f'<{tag} class="{marks[index]}">{escape(str(value))}</{tag}>'

    top = "".join(cell("th", index, heading) for index, heading in enumerate(headings))
    body = "".join(
        "<tr>" + "".join(cell("td", index, value) for index, value in enumerate(row)) + "</tr>"
        for row in rows
    )
    return f'<div class="scroll"><table><tr>{top}</tr>{body}</table></div>'


def _render_flows(report: Report) -> str:
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
        for one in report.conversations[:_MAX_ROWS]
    ]
    more = len(report.conversations) - len(rows)
    rest = f'<p class="dim">{more:,} more are in the JSON report.</p>' if more > 0 else ""
    headings = ("from", "to", "over", "what", "packets", "bytes", "why")
    return _render_table(headings, rows, "ssssnnt") + rest


def _render_timeline(report: Report) -> str:
    if not report.timeline:
        return '<p class="dim">Nothing can be inferred from outside.</p>'
    rows = (
        (
            _time_text(entry.start_ns),
            "" if entry.end_ns is None else _time_text(entry.end_ns),
            entry.kind,
            f"{entry.confidence:.0%}",
            entry.evidence,
        )
        for entry in report.timeline[:_MAX_ROWS]
    )
    return _render_table(("from", "to", "what", "confidence", "evidence"), rows, "sssnt")


def _render_teaching(report: Report) -> str:
    if report.teaching is None:
        return ""
    counts = ", ".join(
        f"0x{command:02x}: {count:,}" for command, count in report.teaching.commands.items()
    )
    names = ", ".join(report.teaching.actions) or "none"
    rows = (
        (
            _time_text(one.time_ns),
            one.client,
            f"0x{one.command:02x}",
            one.request_text,
            one.outcome,
            "" if one.latency_s is None else f"{one.latency_s * 1000:.0f} ms",
        )
        for one in report.teaching.exchanges[:_MAX_ROWS]
    )
    headings = ("at", "client", "command", "asked", "answer", "after")
    return (
        f"<h2>Teaching frames</h2><p>{escape(counts)}</p><p>Actions: {escape(names)}</p>"
        f"{_render_table(headings, rows, 'sssttn')}"
    )


def _time_text(time_ns: int) -> str:
    return iso(time_ns)[:23].replace("T", " ")


def _render_tests(report: Report) -> str:
    rows = (
        (test.direction, test.field, test.verdict.kind, test.verdict.why) for test in report.tests
    )
    return _render_table(("direction", "field", "is", "because"), rows, "ttst")


class _Scale(NamedTuple):
    """How a height is drawn: in proportion, or by its logarithm."""

    highest: float
    logarithmic: bool = False

    def height(self, value: float) -> float:
        """Return how high a value is drawn; on a logarithmic scale 1 is a little above 0."""
        if value <= 0:
            return 0.0
        height_px = _HEIGHT - 10
        if not self.logarithmic:
            return value / self.highest * height_px
        return (
            (math.log10(value) + _BELOW_ONE) / (math.log10(self.highest) + _BELOW_ONE) * height_px
        )

    def marks(self) -> list[float]:
        """Return the values that are written at the left."""
        if not self.logarithmic:
            return [self.highest]
        return [10.0**power for power in range(int(math.log10(self.highest)) + 1)]


def _render_bars(
    table: np.ndarray,
    labels: Sequence[str],
    feet: Sequence[tuple[float, str]],
    *,
    logarithmic: bool = False,
) -> str:
    """Draw stacked bars: one bar per column of `table`, one colour per row.

    `feet` are the labels below, each with its place from 0 to 1.
    """
    scale = _Scale(max(1.0, float(table.sum(axis=0).max()) if table.size else 1.0), logarithmic)
    step = (_WIDTH - _LEFT) / max(1, table.shape[1])
    drawn = []
    for index in range(table.shape[1]):
        sum_, top = 0.0, 0.0
        for row in np.flatnonzero(table[:, index]).tolist():
            sum_ += float(table[row, index])
            height = scale.height(sum_) - top
            top = scale.height(sum_)
            drawn.append(
                f'<rect x="{_LEFT + index * step:.1f}" y="{_HEIGHT - top:.1f}" '
                f'width="{max(step, 1):.1f}" height="{max(height, 0.5):.1f}" '
                f'fill="{_COLOURS[row % len(_COLOURS)]}"/>'
            )
    legend = " ".join(
        f'<tspan fill="{_COLOURS[row % len(_COLOURS)]}">\u25a0 {escape(label)}</tspan>'
        for row, label in enumerate(labels)
    )
    marks = "".join(
        f'<text x="{_LEFT - 6}" y="{_HEIGHT - scale.height(value) + 4:.1f}" text-anchor="end">'
        f'{value:,.0f}</text><line x1="{_LEFT}" x2="{_WIDTH}" stroke="#eee" '
        f'y1="{_HEIGHT - scale.height(value):.1f}" y2="{_HEIGHT - scale.height(value):.1f}"/>'
        for value in scale.marks()
    )
    bottom = _HEIGHT + _FOOT
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 24}" role="img" font-size="12">{marks}'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="#999"/>'
        f"{''.join(drawn)}{_render_bar_labels(feet, _HEIGHT + 15)}"
        f'<text x="{_LEFT}" y="{bottom + 15}">{legend}</text></svg>'
    )


def _render_bar_labels(feet: Sequence[tuple[float, str]], y: int) -> str:
    """Write the labels below a drawing."""
    anchors = {0.0: "start", 1.0: "end"}
    return "".join(
        f'<text x="{_LEFT + place * (_WIDTH - _LEFT):.1f}" y="{y}" '
        f'text-anchor="{anchors.get(place, "middle")}">{escape(text)}</text>'
        for place, text in feet
    )


def _render_lanes(report: Report) -> str:
    """Draw the time line: a lane for each kind, as wide as the whole capture."""
    first, last = report.analysis.first_ns, report.analysis.last_ns
    if first is None or last is None or not report.timeline:
        return ""
    span = max(1, last - first)
    kinds = list(dict.fromkeys(entry.kind for entry in report.timeline))
    drawn = []
    for lane, kind in enumerate(kinds):
        y, colour = lane * _LANE, _COLOURS[lane % len(_COLOURS)]
        drawn.append(
            f'<text x="{_LEFT - 6}" y="{y + 14}" text-anchor="end">{escape(kind)}</text>'
            f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{y + _LANE}" y2="{y + _LANE}" '
            'stroke="#eee"/>'
        )
        entries = (entry for entry in report.timeline[:_MAX_ROWS] if entry.kind == kind)
        drawn += [_render_lane_bar(entry, first, span, y, colour) for entry in entries]
    bottom = len(kinds) * _LANE
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + _FOOT}" role="img" font-size="12">{"".join(drawn)}'
        f'<text x="{_LEFT}" y="{bottom + 15}">{escape(_time_text(first))}</text>'
        f'<text x="{_WIDTH}" y="{bottom + 15}" text-anchor="end">{escape(_time_text(last))}</text>'
        "</svg>"
    )


def _render_lane_bar(entry: TimelineEntry, first: int, span: int, y: int, colour: str) -> str:
    """Draw one line of the time line; the more certain, the darker."""
    lane_px = _WIDTH - _LEFT
    x = _LEFT + (entry.start_ns - first) / span * lane_px
    end_ns = entry.start_ns if entry.end_ns is None else entry.end_ns
    width = max(3.0, (end_ns - entry.start_ns) / span * lane_px)
    time_text = _time_text(entry.start_ns)[11:]
    title = f"{time_text} {entry.kind}, {entry.confidence:.0%}: {entry.evidence}"
    return (
        f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_LANE - 6}" '
        f'fill="{colour}" fill-opacity="{0.25 + 0.75 * entry.confidence:.2f}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _shown_kind(report: Report, kind: PacketKind) -> PacketKind:
    """Return what packets of a kind mostly turned out to be, considering the rest of their
    flows.
    """
    moved = {new: 0 for one in report.conversations for old, new in one.moved if old == kind}
    for one in report.conversations:
        for (old, new), count in one.moved.items():
            if old == kind:
                moved[new] += count
    return max(moved, key=moved.__getitem__) if moved and kind not in report.totals else kind


def _render_activity(report: Report) -> str:
    activity = report.analysis.activity
    if not activity.moments:
        return '<p class="dim">No packets.</p>'
    low, high = min(activity.moments), max(activity.moments)
    columns = min(_COLUMNS, high - low + 1)
    shown = {kind: _shown_kind(report, kind) for kind in report.analysis.flows.kind_totals()}
    labels = sorted(set(shown.values()), key=lambda kind: -report.totals.get(kind, 0))
    labels = labels[: len(_COLOURS)]
    table = np.zeros((len(labels), columns))
    for moment, counts in activity.moments.items():
        column = (moment - low) * columns // (high - low + 1)
        for kind, label in shown.items():
            if label in labels:
                table[labels.index(label), column] += counts[int(kind)]
    ends = iso(low * activity.width_ns), iso((high + 1) * activity.width_ns)
    return _render_bars(table, [kind.label for kind in labels], ((0.0, ends[0]), (1.0, ends[1])))


def _render_histogram(report: Report) -> str:
    """Draw how many datagrams have each size, both on a logarithmic scale."""
    sizes = report.analysis.sizes
    used = np.flatnonzero(sizes)
    if not used.size:
        return '<p class="dim">No UDP datagrams.</p>'
    top = max(64.0, float(used[-1]) + 1)
    span = math.log2(top / _SMALLEST)
    place = np.log2(np.maximum(used, _SMALLEST) / _SMALLEST) / span
    columns = np.minimum((place * _COLUMNS).astype(np.int64), _COLUMNS - 1)
    table = np.zeros((1, _COLUMNS))
    np.add.at(table[0], columns, sizes[used])
    powers = range(int(math.log2(_SMALLEST)) + 1, int(math.log2(top)) + 1)
    feet = [(math.log2(2**power / _SMALLEST) / span, f"{2**power:,}") for power in powers]
    feet = [(place, label) for place, label in feet if place < 0.95]
    feet = [(0.0, f"to {_SMALLEST} bytes"), *feet, (1.0, f"{int(top) - 1:,} bytes")]
    return _render_bars(
        table, ["datagrams of a size, both on a logarithmic scale"], feet, logarithmic=True
    )
