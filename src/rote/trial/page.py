"""The report as a self-contained HTML page: it loads nothing and runs no scripts."""

import json
from collections.abc import Sequence
from html import escape
from typing import Any

from rote.trial.report import count_facts

_WIDTH, _HEIGHT, _LEFT = 920, 120, 60
_LANES, _LETTER = 6, 5.6
"""Rows for the names of steps, and the width of a letter."""
_COLOURS = {
    "recording": "#d9822b",
    "soft": "#e8b06a",
    "approach": "#7aa6da",
    "playing": "#2f6db5",
    "return": "#9bb8c9",
    "holding a pose": "#8a6bbf",
    "at rest": "#e6e8eb",
}
_RESULTS = {"done": "works", "skipped": "skipped", "cannot": "not here", "failed": "failed"}
_ENDED = {
    "complete": "It ran to its last step.",
    "interrupted": "It was interrupted; this is what was learned until then.",
    "lost": "The robot was lost; this is what was learned until then.",
    "ended": "It was ended by the person; this is what was learned until then.",
}
_STYLE = """
:root{color-scheme:light}
body{font:15px/1.5 system-ui,sans-serif;color:#1c2530;background:#fff;max-width:1000px;
margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin-bottom:.2rem}h2{font-size:1.15rem;margin:2rem 0 .5rem}
table{border-collapse:collapse;width:100%;font-size:.9rem}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #e3e7eb;vertical-align:top}
th{font-weight:600;color:#51606f}
code{font-size:.85em;background:#f2f4f6;padding:0 .25em;border-radius:3px}
.cards{display:flex;gap:1rem;flex-wrap:wrap;margin:1rem 0}
.card{border:1px solid #e3e7eb;border-radius:8px;padding:.6rem 1rem;min-width:7rem}
.card b{display:block;font-size:1.5rem}.yes{color:#1d7a46}.no{color:#b3261e}.dim{color:#6b7785}
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
    title = f"Trial of {robot.get('build') or 'a robot'} by {robot['wire']}"
    parts = [
        f"<h1>{escape(title)}</h1>",
        f"<p class=dim>{escape(report['made'])}, rote {escape(report['rote'])}, level "
        f"<b>{escape(report['level'])}</b>, {report['seconds']:g} s. "
        f"{_ENDED.get(report['ended'], '')} {escape(report['reason'])}</p>",
        _render_cards(report),
        _render_differences(report),
        _render_steps(report),
        _render_timeline(report),
        _render_plot(report, "away_rad", "farthest joint from its first place, rad"),
        _render_plot(report, "speed_rad_s", "fastest joint, rad/s"),
        _render_measurements(robot),
        _render_topics(robot),
        _render_delays(robot),
        _render_refusals(robot),
        _render_facts("What agrees", [f for f in report["facts"] if f["agrees"] is True]),
        _render_facts("What was used, not tested", [f for f in untested if f.get("used")]),
        _render_facts("What was not tested", [f for f in untested if not f.get("used")]),
        "<p class=dim>Serials, addresses, keys and names were replaced before this was written. "
        "Nothing was sent anywhere.</p>",
    ]
    body = "\n".join(part for part in parts if part)
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
        f"</title><style>{_STYLE}</style></head><body>\n{body}\n</body></html>\n"
    )


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
        + "".join(f'<div class=card><b class="{css}">{n}</b>{what}</div>' for css, n, what in cards)
        + "</div>"
    )


def _format_value(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}"
    return escape(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)[:200])


def _render_table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    head = "".join(f"<th>{name}</th>" for name in heads)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _render_differences(report: dict[str, Any]) -> str:
    rows = [
        (
            escape(fact["says"]),
            _format_value(fact["assumed"]),
            f"<b class=no>{_format_value(fact['seen'])}</b>",
            f"<code>{escape(fact['id'])}</code>",
        )
        for fact in report["facts"]
        if fact["agrees"] is False
    ]
    if not rows:
        return "<h2>What differs</h2><p>Nothing that was tested differs from what rote assumed.</p>"
    return "<h2>What differs from what rote assumed</h2>" + _render_table(
        ("rote assumed that", "assumed", "seen", "fact"), rows
    )


def _render_steps(report: dict[str, Any]) -> str:
    rows = []
    for step in report["steps"]:
        css = {"done": "yes", "failed": "no"}.get(step["result"], "dim")
        word = _RESULTS.get(step["result"], step["result"])
        note = escape(step["note"])
        rows.append(
            (
                escape(step["title"]),
                step["level"],
                f'<span class="{css}">{word}</span>',
                f"{step['seconds']:.1f} s",
                note,
            )
        )
    return "<h2>Steps</h2>" + _render_table(("step", "level", "result", "took", ""), rows)


def _pixels_per_second(report: dict[str, Any]) -> float:
    return (_WIDTH - _LEFT - 10) / max(float(report["seconds"]), 1.0)


def _render_timeline(report: dict[str, Any]) -> str:
    marks = report["timeline"]
    if not marks:
        return ""
    scale = _pixels_per_second(report)
    shapes = ['<text x="4" y="30">arms</text><text x="4" y="64">steps</text>']
    activities = [mark for mark in marks if mark["kind"] == "activity"]
    ends = [mark["at_s"] for mark in activities[1:]] + [report["seconds"]]
    for mark, end_s in zip(activities, ends, strict=True):
        x, width = _LEFT + mark["at_s"] * scale, max((end_s - mark["at_s"]) * scale, 0.5)
        colour = _COLOURS.get(mark["text"], "#c9ced4")
        shapes.append(
            f'<rect x="{x:.1f}" y="14" width="{width:.1f}" height="24" fill="{colour}">'
            f"<title>{escape(mark['text'])} from {mark['at_s']:g} s</title></rect>"
        )
    ends_at = [0.0] * _LANES
    for mark in (each for each in marks if each["kind"] == "step"):
        x, width = _LEFT + mark["at_s"] * scale, _LETTER * len(mark["text"]) + 8
        start = min(x, _WIDTH - 6 - width)
        lane = next((n for n in range(_LANES) if ends_at[n] <= start), _LANES - 1)
        ends_at[lane] = start + width
        shapes.append(
            f'<line x1="{x:.1f}" y1="44" x2="{x:.1f}" y2="52" stroke="#51606f"/>'
            f'<text x="{start:.1f}" y="{64 + 13 * lane}">{escape(mark["text"])}</text>'
        )
    shapes.append(_render_axis(report, scale, 66 + 13 * _LANES))
    key = "".join(
        f'<span><i style="background:{colour}"></i>{word}</span>'
        for word, colour in _COLOURS.items()
        if any(mark["text"] == word for mark in activities)
    )
    box = f'viewBox="0 0 {_WIDTH} {76 + 13 * _LANES}" role="img" aria-label="time line"'
    svg = f"<svg {box}>{''.join(shapes)}</svg>"
    return f"<h2>Time line</h2>{svg}<p class=key>{key}</p>"


def _render_axis(report: dict[str, Any], scale: float, y: float) -> str:
    step_s = next((s for s in (1, 2, 5, 10, 20, 30, 60, 120) if report["seconds"] / s <= 12), 300)
    ticks = range(0, int(report["seconds"]) + 1, step_s)
    return "".join(
        f'<text x="{_LEFT + at_s * scale:.1f}" y="{y:.0f}">{at_s} s</text>' for at_s in ticks
    )


def _render_plot(report: dict[str, Any], name: str, title: str) -> str:
    times, values = report["traces"]["at_s"], report["traces"].get(name, [])
    # A robot may report a speed that is not a number.
    samples = [(at_s, v) for at_s, v in zip(times, values, strict=False) if v is not None]
    if len(samples) < 2:
        return ""
    most, scale = max(0.05, *(value for _, value in samples)), _pixels_per_second(report)
    points = " ".join(
        f"{_LEFT + at_s * scale:.1f},{_HEIGHT - 10 - value / most * (_HEIGHT - 30):.1f}"
        for at_s, value in samples
    )
    grid = "".join(
        f'<text x="4" y="{_HEIGHT - 6 - share * (_HEIGHT - 30):.0f}">{most * share:.2f}</text>'
        f'<line x1="{_LEFT}" x2="{_WIDTH - 10}" y1="{_HEIGHT - 10 - share * (_HEIGHT - 30):.0f}" '
        f'y2="{_HEIGHT - 10 - share * (_HEIGHT - 30):.0f}" stroke="#e3e7eb"/>'
        for share in (0.0, 0.5, 1.0)
    )
    line = f'<polyline points="{points}" fill="none" stroke="#2f6db5" stroke-width="1.3"/>'
    label = f'<text x="{_LEFT}" y="13">{escape(title)}</text>'
    axis = _render_axis(report, scale, _HEIGHT + 8)
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT + 14}" role="img" aria-label="{escape(title)}">'
        f"{grid}{line}{label}{axis}</svg>"
    )


_SHOWN = (
    ("firmware", "firmware"), ("signalling", "variant of signalling"), ("mode", "mode"),
    ("mode_machine", "mode_machine"), ("slots", "motor slots"), ("joints_told", "joints told"),
    ("dialect", "dialect"), ("a1_level", "level of the robot"), ("clockless", "tells no time"),
    ("message_bytes", "longest message, bytes"),
)  # fmt: skip


def _render_measurements(robot: dict[str, Any]) -> str:
    rows = [
        (label, _format_value(robot[name])) for name, label in _SHOWN if robot.get(name) is not None
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
                rows.append(
                    (f"{section}: {escape(str(name)).replace('_', ' ')}", _format_value(value))
                )
    rows += [
        (f"stage {escape(stage['stage'])}", f"{stage['seconds']:g} s")
        for stage in (robot.get("connect") or {}).get("stages", ())
    ]
    return "<h2>What was measured</h2>" + _render_table(("", ""), rows)


def _render_topics(robot: dict[str, Any]) -> str:
    topics = robot.get("topics") or {}
    rows = [
        (f"<code>{escape(topic)}</code>", f"{rate['hz']:g}", f"{rate['bytes']:g}")
        for topic, rate in topics.items()
    ]
    return "<h2>Topics</h2>" + _render_table(("topic", "per second", "bytes"), rows) if rows else ""


def _render_delays(robot: dict[str, Any]) -> str:
    delays = {api: values for api, values in robot.get("delays_s", {}).items() if values}
    if not delays:
        return ""
    most = max(max(values) for values in delays.values()) or 1.0
    height = 18 * len(delays) + 26
    shapes = []
    for row, (api, values) in enumerate(delays.items()):
        y = 16 + 18 * row
        shapes.append(f'<text x="4" y="{y + 4}">{escape(api)} ({len(values)})</text>')
        for value in values:
            x = 190 + value / most * (_WIDTH - 260)
            shapes.append(
                f'<circle cx="{x:.1f}" cy="{y}" r="4" fill="#2f6db5" fill-opacity=".45">'
                f"<title>{1000 * value:.0f} ms</title></circle>"
            )
    shapes.append(f'<text x="190" y="{height - 4}">0</text>')
    shapes.append(f'<text x="{_WIDTH - 60}" y="{height - 4}">{1000 * most:.0f} ms</text>')
    return (
        f'<h2>How long answers take</h2><svg viewBox="0 0 {_WIDTH} {height}" role="img" '
        f'aria-label="delays of answers">{"".join(shapes)}</svg>'
    )


def _render_refusals(robot: dict[str, Any]) -> str:
    rows = [
        (
            escape(str(row["when"])),
            f"<code>{escape(str(row['api']))}</code>",
            _format_value(row["assumed"]),
            f'<span class="{"yes" if row["assumed"] == row["code"] else "no"}">'
            f"{_format_value(row['code'])}</span>",
        )
        for row in robot.get("refusals") or ()
    ]
    if not rows:
        return ""
    return "<h2>Answers and refusals</h2>" + _render_table(
        ("when", "asked", "assumed", "code"), rows
    )


def _render_facts(title: str, facts: list[dict[str, Any]]) -> str:
    rows = [
        (
            escape(fact["says"]),
            escape(fact["grade"]),
            _format_value(fact["seen"]) if fact["seen"] is not None else escape(fact["note"]),
            f"<code>{escape(fact['id'])}</code>",
        )
        for fact in facts
    ]
    if not rows:
        return ""
    return f"<h2>{title} ({len(rows)})</h2>" + _render_table(
        ("fact", "grade until now", "seen", "id"), rows
    )
