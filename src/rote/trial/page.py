"""The report as a self-contained HTML page: it loads nothing and runs no scripts."""

import json
from html import escape
from typing import Any

from rote.platform.html_page import Html, render_document, render_table
from rote.trial.judgement import describe_situation
from rote.trial.report import count_facts

_WIDTH, _HEIGHT, _LEFT = 920, 120, 60
"""Size of a drawing, and the width of the labels at its left, in pixels."""
_LANES, _LETTER_WIDTH = 6, 5.6
"""Number of rows for the names of steps, and the width of a letter in pixels."""
_COLOURS = {
    "recording": "#d9822b",
    "soft": "#e8b06a",
    "approach": "#7aa6da",
    "playing": "#2f6db5",
    "return": "#9bb8c9",
    "holding a pose": "#8a6bbf",
    "at rest": "#e6e8eb",
}
_RESULTS = {"done": "works", "skipped": "skipped", "cannot": "not possible", "failed": "failed"}
_ENDED = {
    "complete": "The trial reached its last step.",
    "interrupted": "The trial was interrupted; the report is partial.",
    "lost": "The connection was lost; the report is partial.",
    "ended": "The operator ended the trial; the report is partial.",
}
_STYLE = """
code{font-size:.85em;background:#f2f4f6;padding:0 .25em;border-radius:3px}
.cards{display:flex;gap:1rem;flex-wrap:wrap;margin:1rem 0}
.card{border:1px solid #e3e7eb;border-radius:8px;padding:.6rem 1rem;min-width:7rem}
.card b{display:block;font-size:1.5rem}.yes{color:#1d7a46}.no{color:#b3261e}
svg{width:100%;height:auto;background:#fafbfc;border:1px solid #e3e7eb;border-radius:6px;
margin:.4rem 0}
svg text{font:11px system-ui,sans-serif;fill:#51606f}
.key span{display:inline-block;margin-right:1rem}
.key i{display:inline-block;width:.8em;height:.8em;border-radius:2px;margin-right:.35em}
"""


def render_page(report: dict[str, Any]) -> str:
    """Return a report as an HTML page."""
    robot = report["robot"]
    untested = [fact for fact in report["facts"] if fact["agrees"] is None]
    title = f"Trial of {robot.get('build') or 'a robot'} over {robot['wire']}"
    parts = [
        f"<p class=dim>{escape(report['made'])}, rote {escape(report['rote'])}, level "
        f"<b>{escape(report['level'])}</b>, {report['seconds']:g} s. "
        f"{_ENDED.get(report['ended'], '')} {escape(report['reason'])}</p>",
        _render_cards(report),
        _render_differences(report),
        _render_steps(report),
        _render_timeline(report),
        _render_plot(report, "away_rad", "largest distance of a joint from its initial angle, rad"),
        _render_plot(report, "speed_rad_s", "fastest joint, rad/s"),
        _render_measurements(robot),
        _render_topics(robot),
        _render_delays(robot),
        _render_refusals(robot),
        _render_facts("Facts that agree", [f for f in report["facts"] if f["agrees"] is True]),
        _render_facts("Facts used, not tested", [f for f in untested if f.get("used")]),
        _render_facts("Facts not tested", [f for f in untested if not f.get("used")]),
        "<p class=dim>The trial replaced serials, addresses, keys and names in this report. "
        "Nothing was uploaded.</p>",
    ]
    return render_document(title, "\n".join(part for part in parts if part), _STYLE)


def _render_cards(report: dict[str, Any]) -> str:
    facts = count_facts(report)
    done = sum(step["result"] == "done" for step in report["steps"])
    cards = (
        ("yes", facts.agree, "facts agree"),
        ("no" if facts.differ else "dim", facts.differ, "facts differ"),
        ("dim", facts.used, "used, not tested"),
        ("dim", facts.untested, "not tested"),
        ("", f"{done} of {len(report['steps'])}", "steps done"),
    )
    return (
        "<div class=cards>"
        + "".join(
            f'<div class=card><b class="{css}">{number}</b>{label}</div>'
            for css, number, label in cards
        )
        + "</div>"
    )


def _format_value(value: Any) -> str:
    """Return a measured value as people read it; a long one is cut."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:200]


def _render_code(text: object) -> Html:
    return Html(f"<code>{escape(str(text))}</code>")


def _render_span(css: str, text: str) -> Html:
    return Html(f'<span class="{css}">{escape(text)}</span>')


def _render_differences(report: dict[str, Any]) -> str:
    rows = [
        (
            fact["says"],
            _format_value(fact["assumed"]),
            _render_span("no", _format_value(fact["seen"])),
            _render_code(fact["id"]),
        )
        for fact in report["facts"]
        if fact["agrees"] is False
    ]
    if not rows:
        return "<h2>What differs</h2><p>All tested facts agree with what rote assumes.</p>"
    return "<h2>What differs from what rote assumes</h2>" + render_table(
        ("fact", "assumed", "measured", "id"), rows
    )


def _render_steps(report: dict[str, Any]) -> str:
    rows = []
    for step in report["steps"]:
        css = {"done": "yes", "failed": "no"}.get(step["result"], "dim")
        result = _render_span(css, _RESULTS.get(step["result"], step["result"]))
        took = f"{step['seconds']:.1f} s"
        rows.append((step["title"], step["level"], result, took, step["note"]))
    return "<h2>Steps</h2>" + render_table(("step", "level", "result", "duration", "note"), rows)


def _compute_pixels_per_second(report: dict[str, Any]) -> float:
    return (_WIDTH - _LEFT - 10) / max(float(report["seconds"]), 1.0)


def _render_timeline(report: dict[str, Any]) -> str:
    """Return a drawing of the arms' activities as bars, and of the steps as labels below them."""
    if not report["timeline"]:
        return ""
    scale = _compute_pixels_per_second(report)
    shapes = [
        '<text x="4" y="30">arms</text><text x="4" y="64">steps</text>',
        *_render_activity_bars(report, scale),
        *_render_step_labels(report, scale),
        _render_axis(report, scale, 66 + 13 * _LANES),
    ]
    box = f'viewBox="0 0 {_WIDTH} {76 + 13 * _LANES}" role="img" aria-label="time line"'
    svg = f"<svg {box}>{''.join(shapes)}</svg>"
    return f"<h2>Time line</h2>{svg}<p class=key>{_render_activity_key(report)}</p>"


def _list_marks(report: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    return [mark for mark in report["timeline"] if mark["kind"] == kind]


def _render_activity_bars(report: dict[str, Any], scale: float) -> list[str]:
    """Return a bar for each activity, which lasts until the next one or the end of the trial."""
    activities = _list_marks(report, "activity")
    ends_s = [*(mark["at_s"] for mark in activities[1:]), report["seconds"]]
    bars = []
    for mark, end_s in zip(activities, ends_s, strict=False):  # a silent robot has no activity
        x, width = _LEFT + mark["at_s"] * scale, max((end_s - mark["at_s"]) * scale, 0.5)
        colour = _COLOURS.get(mark["text"], "#c9ced4")
        bars.append(
            f'<rect x="{x:.1f}" y="14" width="{width:.1f}" height="24" fill="{colour}">'
            f"<title>{escape(mark['text'])} from {mark['at_s']:g} s</title></rect>"
        )
    return bars


def _render_step_labels(report: dict[str, Any], scale: float) -> list[str]:
    """Return a tick and a name for each step; names that would overlap go into different rows."""
    lane_ends = [0.0] * _LANES
    labels = []
    for mark in _list_marks(report, "step"):
        x, width = _LEFT + mark["at_s"] * scale, _LETTER_WIDTH * len(mark["text"]) + 8
        start = min(x, _WIDTH - 6 - width)
        free_lanes = [lane for lane in range(_LANES) if lane_ends[lane] <= start]
        lane = free_lanes[0] if free_lanes else _LANES - 1
        lane_ends[lane] = start + width
        labels.append(
            f'<line x1="{x:.1f}" y1="44" x2="{x:.1f}" y2="52" stroke="#51606f"/>'
            f'<text x="{start:.1f}" y="{64 + 13 * lane}">{escape(mark["text"])}</text>'
        )
    return labels


def _render_activity_key(report: dict[str, Any]) -> str:
    """Return the colours of the activities that occur."""
    occurring = {mark["text"] for mark in _list_marks(report, "activity")}
    return "".join(
        f'<span><i style="background:{colour}"></i>{activity}</span>'
        for activity, colour in _COLOURS.items()
        if activity in occurring
    )


def _render_axis(report: dict[str, Any], scale: float, y: float) -> str:
    """Return time labels at the height `y`, spaced so that there are about a dozen at most."""
    intervals_s = (1, 2, 5, 10, 20, 30, 60, 120)
    step_s = next((step_s for step_s in intervals_s if report["seconds"] / step_s <= 12), 300)
    ticks = range(0, int(report["seconds"]) + 1, step_s)
    return "".join(
        f'<text x="{_LEFT + at_s * scale:.1f}" y="{y:.0f}">{at_s} s</text>' for at_s in ticks
    )


def _render_plot(report: dict[str, Any], name: str, title: str) -> str:
    """Return one column of the traces as a curve over time; empty if it has too few values."""
    times, values = report["traces"]["at_s"], report["traces"].get(name, [])
    # A robot may report a speed that is not a number.
    samples = [
        (at_s, value) for at_s, value in zip(times, values, strict=False) if value is not None
    ]
    if len(samples) < 2:
        return ""
    largest = max(0.05, *(value for _, value in samples))
    scale = _compute_pixels_per_second(report)

    def find_y(share: float) -> float:
        """Return the y coordinate of a share of the largest value; y points down."""
        return _HEIGHT - 10 - share * (_HEIGHT - 30)

    points = " ".join(
        f"{_LEFT + at_s * scale:.1f},{find_y(value / largest):.1f}" for at_s, value in samples
    )
    grid = "".join(
        f'<text x="4" y="{find_y(share) + 4:.0f}">{largest * share:.2f}</text>'
        f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{find_y(share):.0f}" '
        f'y2="{find_y(share):.0f}" stroke="#e3e7eb"/>'
        for share in (0.0, 0.5, 1.0)
    )
    line = f'<polyline points="{points}" fill="none" stroke="#2f6db5" stroke-width="1.3"/>'
    label = f'<text x="{_LEFT}" y="13">{escape(title)}</text>'
    axis = _render_axis(report, scale, _HEIGHT + 8)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 14}" role="img" aria-label="{escape(title)}">'
        f"{grid}{line}{label}{axis}</svg>"
    )


_LABELLED_VALUES = (
    ("firmware", "firmware"), ("signalling", "signalling type"), ("mode", "mode"),
    ("mode_machine", "mode_machine"), ("slots", "motor slots"), ("joints_told", "reported joints"),
    ("dialect", "dialect"), ("a1_level", "level"), ("clockless", "states without time"),
    ("message_bytes", "longest message, bytes"),
)  # fmt: skip


def _render_measurements(robot: dict[str, Any]) -> str:
    rows = [
        (label, _format_value(robot[name]))
        for name, label in _LABELLED_VALUES
        if robot.get(name) is not None
    ]
    for section in (
        "discovery",
        "connect",
        "services",
        "teaching",
        "names",
        "playing",
        "preset",
        "a1",
    ):
        for name, value in (robot.get(section) or {}).items():
            if name not in ("stages", "all_lingers_s"):
                rows.append((f"{section}: {str(name).replace('_', ' ')}", _format_value(value)))
    rows += [
        (f"stage {stage['stage']}", f"{stage['seconds']:g} s")
        for stage in (robot.get("connect") or {}).get("stages", ())
    ]
    return "<h2>Measurements</h2>" + render_table(("name", "value"), rows)


def _render_topics(robot: dict[str, Any]) -> str:
    topics = robot.get("topics") or {}
    rows = [
        (_render_code(topic), f"{rate['hz']:g}", f"{rate['bytes']:g}")
        for topic, rate in topics.items()
    ]
    return "<h2>Topics</h2>" + render_table(("topic", "per second", "bytes"), rows) if rows else ""


def _render_delays(robot: dict[str, Any]) -> str:
    """Return the response times as dots, one row for each request."""
    delays = {api: values for api, values in robot.get("delays_s", {}).items() if values}
    if not delays:
        return ""
    longest_s = max(max(values) for values in delays.values()) or 1.0
    height = 18 * len(delays) + 26
    shapes = []
    for row, (api, values) in enumerate(delays.items()):
        y = 16 + 18 * row
        shapes.append(f'<text x="4" y="{y + 4}">{escape(api)} ({len(values)})</text>')
        for value in values:
            x = 190 + value / longest_s * (_WIDTH - 260)
            shapes.append(
                f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="#2f6db5" fill-opacity=".45">'
                f"<title>{1000 * value:.0f} ms</title></circle>"
            )
    shapes.append(f'<text x="190" y="{height - 4}">0</text>')
    shapes.append(f'<text x="{_WIDTH - 60}" y="{height - 4}">{1000 * longest_s:.0f} ms</text>')
    return (
        f'<h2>Response times</h2><svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="response times">{"".join(shapes)}</svg>'
    )


def _render_refusals(robot: dict[str, Any]) -> str:
    rows = [
        (
            describe_situation(row["when"]),
            _render_code(row["api"]),
            _format_value(row["assumed"]),
            _render_span(
                "yes" if row["assumed"] == row["code"] else "no", _format_value(row["code"])
            ),
        )
        for row in robot.get("refusals") or ()
    ]
    if not rows:
        return ""
    return "<h2>Answers and refusals</h2>" + render_table(
        ("situation", "request", "assumed code", "code"), rows
    )


def _render_facts(title: str, facts: list[dict[str, Any]]) -> str:
    rows = [
        (
            fact["says"],
            fact["grade"],
            _format_value(fact["seen"]) if fact["seen"] is not None else fact["note"],
            _render_code(fact["id"]),
        )
        for fact in facts
    ]
    if not rows:
        return ""
    return f"<h2>{title} ({len(rows)})</h2>" + render_table(
        ("fact", "grade", "measured", "id"), rows
    )
