"""The report as one self-contained page: tables and drawings, no script, no request."""

import math
from collections import Counter
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

import numpy as np

from rote.capture.model import PacketKind, TimelineEntry, iso
from rote.capture.report.report import Report
from rote.platform.html_page import render_document, render_table

_WIDTH, _HEIGHT, _LEFT, _FOOT = 960, 160, 90, 20
"""Of a drawing in pixels: width, height of the bars, space for labels at the left and below."""
_COLUMNS = 240
_LANE = 22
"""Height of a row of the time line in pixels."""
_SMALLEST = 8
"""Smaller sizes, in bytes, are drawn at the left edge."""
_BELOW_ONE = 0.3
"""Height of a single packet on the logarithmic scale, in decades."""
_MAX_ROWS = 500
_COLOURS = ("#3b6fb6", "#d1793b", "#4c9a5b", "#a14a8a", "#8a8f3b", "#777777")


def render_page(report: Report) -> str:
    """Return the report as an HTML page."""
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
    return render_document(
        f"What {report.name} holds",
        f"{warnings}<table>{head}</table>"
        f"{_render_limits(report)}<h2>Packets over time</h2>{_render_packets_over_time(report)}"
        f"<h2>Time line</h2>{_render_lanes(report)}{_render_timeline(report)}"
        f"{_render_teaching(report)}<h2>Sizes of UDP datagrams</h2>{_render_histogram(report)}"
        f"<h2>Flows</h2>{_render_flows(report)}"
        f"<h2>Bytes offered as commands</h2>{_render_field_tests(report)}",
    )


def _render_limits(report: Report) -> str:
    lines = "".join(f"<li>{escape(limit)}</li>" for limit in report.limits)
    return f"<h2>What cannot be known</h2><ul>{lines}</ul>" if lines else ""


def _render_flows(report: Report) -> str:
    rows = [
        (
            conversation.sides[0].source,
            conversation.sides[0].destination,
            conversation.protocol,
            conversation.name,
            f"{conversation.packets:,}",
            f"{conversation.wire_bytes:,}",
            conversation.why,
        )
        for conversation in report.conversations[:_MAX_ROWS]
    ]
    more = len(report.conversations) - len(rows)
    note = f'<p class="dim">{more:,} more are in the JSON report.</p>' if more > 0 else ""
    headings = ("from", "to", "over", "what", "packets", "bytes", "why")
    return render_table(headings, rows, "ssssnnt") + note


def _render_timeline(report: Report) -> str:
    if not report.timeline:
        return '<p class="dim">Nothing can be inferred from outside.</p>'
    rows = (
        (
            _format_time(entry.start_ns),
            "" if entry.end_ns is None else _format_time(entry.end_ns),
            entry.kind,
            f"{entry.confidence:.0%}",
            entry.evidence,
        )
        for entry in report.timeline[:_MAX_ROWS]
    )
    return render_table(("from", "to", "what", "confidence", "evidence"), rows, "sssnt")


def _render_teaching(report: Report) -> str:
    if report.teaching is None:
        return ""
    counts = ", ".join(
        f"0x{command:02x}: {count:,}" for command, count in report.teaching.commands.items()
    )
    names = ", ".join(report.teaching.actions) or "none"
    rows = (
        (
            _format_time(exchange.time_ns),
            exchange.client,
            f"0x{exchange.command:02x}",
            exchange.request_text,
            exchange.outcome,
            "" if exchange.latency_s is None else f"{exchange.latency_s * 1000:.0f} ms",
        )
        for exchange in report.teaching.exchanges[:_MAX_ROWS]
    )
    headings = ("at", "client", "command", "asked", "answer", "after")
    return (
        f"<h2>Teaching frames</h2><p>{escape(counts)}</p><p>Actions: {escape(names)}</p>"
        f"{render_table(headings, rows, 'sssttn')}"
    )


def _format_time(time_ns: int) -> str:
    return iso(time_ns)[:23].replace("T", " ")


def _render_field_tests(report: Report) -> str:
    rows = (
        (test.direction, test.field, test.verdict.kind, test.verdict.why) for test in report.tests
    )
    return render_table(("direction", "field", "is", "because"), rows, "ttst")


class _Scale(NamedTuple):
    """Converts values to heights in pixels, linearly or by logarithm."""

    highest: float
    """The value at the top."""
    logarithmic: bool = False

    def height(self, value: float) -> float:
        """Return the height of a value in pixels; on a logarithmic scale 1 is a little above 0."""
        if value <= 0:
            return 0.0
        height_px = _HEIGHT - 10
        if not self.logarithmic:
            return value / self.highest * height_px
        return (
            (math.log10(value) + _BELOW_ONE) / (math.log10(self.highest) + _BELOW_ONE) * height_px
        )

    def scale_marks(self) -> list[float]:
        """Return the values labelled on the axis."""
        if not self.logarithmic:
            return [self.highest]
        return [10.0**power for power in range(int(math.log10(self.highest)) + 1)]


def _render_bars(
    table: np.ndarray,
    labels: Sequence[str],
    bar_labels: Sequence[tuple[float, str]],
    *,
    logarithmic: bool = False,
) -> str:
    """Draw stacked bars: one bar per column of `table`, one colour per row.

    `labels` name the rows. `bar_labels` are written below: the position from 0 to 1, and the text.
    """
    scale = _Scale(max(1.0, float(table.sum(axis=0).max()) if table.size else 1.0), logarithmic)
    step = (_WIDTH - _LEFT) / max(1, table.shape[1])
    drawn = []
    for index in range(table.shape[1]):
        total, top = 0.0, 0.0
        for row in np.flatnonzero(table[:, index]).tolist():
            total += float(table[row, index])
            height = scale.height(total) - top
            top = scale.height(total)
            drawn.append(
                f'<rect x="{_LEFT + index * step:.1f}" y="{_HEIGHT - top:.1f}" '
                f'width="{max(step, 1):.1f}" height="{max(height, 0.5):.1f}" '
                f'fill="{_COLOURS[row % len(_COLOURS)]}"/>'
            )
    legend = " ".join(
        f'<tspan fill="{_COLOURS[row % len(_COLOURS)]}">\u25a0 {escape(label)}</tspan>'
        for row, label in enumerate(labels)
    )
    scale_marks = "".join(
        f'<text x="{_LEFT - 6}" y="{_HEIGHT - scale.height(value) + 4:.1f}" text-anchor="end">'
        f'{value:,.0f}</text><line x1="{_LEFT}" x2="{_WIDTH}" stroke="#eee" '
        f'y1="{_HEIGHT - scale.height(value):.1f}" y2="{_HEIGHT - scale.height(value):.1f}"/>'
        for value in scale.scale_marks()
    )
    bottom = _HEIGHT + _FOOT
    return (
        f'<svg viewBox="0 0 {_WIDTH} {bottom + 24}" role="img" font-size="12">{scale_marks}'
        f'<line x1="{_LEFT}" x2="{_WIDTH}" y1="{_HEIGHT}" y2="{_HEIGHT}" stroke="#999"/>'
        f"{''.join(drawn)}{_render_bar_labels(bar_labels, _HEIGHT + 15)}"
        f'<text x="{_LEFT}" y="{bottom + 15}">{legend}</text></svg>'
    )


def _render_bar_labels(bar_labels: Sequence[tuple[float, str]], y: int) -> str:
    """Write labels at the height `y`, each at its position from 0 (left) to 1 (right)."""
    anchors = {0.0: "start", 1.0: "end"}
    return "".join(
        f'<text x="{_LEFT + position * (_WIDTH - _LEFT):.1f}" y="{y}" '
        f'text-anchor="{anchors.get(position, "middle")}">{escape(text)}</text>'
        for position, text in bar_labels
    )


def _render_lanes(report: Report) -> str:
    """Draw the time line: a row for each kind of entry, as wide as the whole capture."""
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
        f'<text x="{_LEFT}" y="{bottom + 15}">{escape(_format_time(first))}</text>'
        f'<text x="{_WIDTH}" y="{bottom + 15}" text-anchor="end">'
        f"{escape(_format_time(last))}</text>"
        "</svg>"
    )


def _render_lane_bar(entry: TimelineEntry, first: int, span: int, y: int, colour: str) -> str:
    """Draw an entry of the time line as a bar; the more certain, the darker.

    The time line begins at `first` and lasts for `span`, both in nanoseconds.
    """
    lane_px = _WIDTH - _LEFT
    x = _LEFT + (entry.start_ns - first) / span * lane_px
    end_ns = entry.start_ns if entry.end_ns is None else entry.end_ns
    width = max(3.0, (end_ns - entry.start_ns) / span * lane_px)
    time_text = _format_time(entry.start_ns)[11:]
    title = f"{time_text} {entry.kind}, {entry.confidence:.0%}: {entry.evidence}"
    return (
        f'<rect x="{x:.1f}" y="{y + 3}" width="{width:.1f}" height="{_LANE - 6}" '
        f'fill="{colour}" fill-opacity="{0.25 + 0.75 * entry.confidence:.2f}">'
        f"<title>{escape(title)}</title></rect>"
    )


def _find_shown_kind(report: Report, kind: PacketKind) -> PacketKind:
    """Return the kind to show for packets of `kind`, which their flows may have reclassified."""
    if kind in report.totals:
        return kind
    moved: Counter[PacketKind] = Counter()
    for conversation in report.conversations:
        for (old, new), count in conversation.moved.items():
            if old == kind:
                moved[new] += count
    return moved.most_common(1)[0][0] if moved else kind


def _render_packets_over_time(report: Report) -> str:
    """Draw the number of packets over time, with a colour for each of the most frequent kinds."""
    activity = report.analysis.activity
    if not activity.counts:
        return '<p class="dim">No packets.</p>'
    low, high = min(activity.counts), max(activity.counts)
    columns = min(_COLUMNS, high - low + 1)
    shown = {kind: _find_shown_kind(report, kind) for kind in report.analysis.flows.kind_totals()}
    frequent = sorted(set(shown.values()), key=lambda kind: -report.totals.get(kind, 0))
    drawn_kinds = frequent[: len(_COLOURS)]
    table = np.zeros((len(drawn_kinds), columns))
    for moment, counts in activity.counts.items():
        column = (moment - low) * columns // (high - low + 1)
        for kind, shown_as in shown.items():
            if shown_as in drawn_kinds:
                table[drawn_kinds.index(shown_as), column] += counts[int(kind)]
    end_times = iso(low * activity.width_ns), iso((high + 1) * activity.width_ns)
    bar_labels = ((0.0, end_times[0]), (1.0, end_times[1]))
    return _render_bars(table, [kind.label for kind in drawn_kinds], bar_labels)


def _render_histogram(report: Report) -> str:
    """Draw how many datagrams have each size, both on a logarithmic scale."""
    counts = report.analysis.sizes
    used = np.flatnonzero(counts)
    if not used.size:
        return '<p class="dim">No UDP datagrams.</p>'
    top = max(64.0, float(used[-1]) + 1)
    span = math.log2(top / _SMALLEST)
    # From 0 for the smallest size to 1 for the largest.
    position = np.log2(np.maximum(used, _SMALLEST) / _SMALLEST) / span
    columns = np.minimum((position * _COLUMNS).astype(np.int64), _COLUMNS - 1)
    table = np.zeros((1, _COLUMNS))
    np.add.at(table[0], columns, counts[used])
    powers = range(int(math.log2(_SMALLEST)) + 1, int(math.log2(top)) + 1)
    bar_labels = [(math.log2(2**power / _SMALLEST) / span, f"{2**power:,}") for power in powers]
    # A label near the right end would overlap the last one.
    bar_labels = [(position, label) for position, label in bar_labels if position < 0.95]
    bar_labels = [(0.0, f"to {_SMALLEST} bytes"), *bar_labels, (1.0, f"{int(top) - 1:,} bytes")]
    return _render_bars(
        table, ["datagrams of a size, both on a logarithmic scale"], bar_labels, logarithmic=True
    )
