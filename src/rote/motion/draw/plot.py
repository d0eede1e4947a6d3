"""Pictures of tracks over time, as PNG or SVG. Needs the extra `plot`.

Only this module imports matplotlib. `blank_figure` returns a figure and `save` writes it; `figure`
uses both.
"""

import math
import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rote.errors import BadRequestError, MissingExtraError
from rote.findings import Finding, Severity
from rote.model.family import Joint
from rote.motion.check.limits import find_gaps
from rote.motion.draw.spread import Spread
from rote.motion.files.disk import write_atomically
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import joints_of

PICTURES = (".png", ".svg")  # the endings of picture files
FIRST, SECOND, INK, PALE = "#1f6feb", "#e8590c", "#343a40", "#adb5bd"

_PANELS, _COLUMNS = 6, 3  # the maximum number of panels, and of columns of panels
_OUT_OF_RANGE = "#c92a2a"
_SYMBOLS = {
    Severity.ERROR: ("X", "#c92a2a"),
    Severity.WARNING: ("^", "#f08c00"),
    Severity.NOTE: ("o", "#868e96"),
}
_MARGIN = 0.12  # above and below the curves, as a share of their range
_MIN_RANGE_RAD = 0.2  # a joint at rest is not magnified to its noise
_STILL_RAD = 0.01  # a joint that moves less is not drawn by default
_MAX_LABEL = 60
_MAX_MARK_LABEL = 28  # characters of a mark's label that fit beside its line
_MARK_SPACING = 0.045  # as a share of the width: marks nearer than this share one label
# Of the legend: characters per inch, and the width of an entry's symbol in characters.
_CHARACTERS_PER_IN, _SYMBOL_CHARACTERS = 13.0, 9

_Entry = tuple[str, dict[str, Any]]
"""A label of the legend, and how its symbol is drawn."""


def blank_figure(width_in: float, height_in: float, dpi: int, what: str = "drawing a plot") -> Any:
    """Return an empty figure that needs no screen; an error calls its purpose `what`."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415 - optional
        from matplotlib.figure import Figure  # noqa: PLC0415 - optional
    except ImportError as error:
        raise MissingExtraError(what, "plot") from error
    figure = Figure(figsize=(width_in, height_in), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write a figure in the format of the file's ending; the same figure gives the same file."""
    from matplotlib import rc_context  # noqa: PLC0415 - optional

    require_picture_name(path)
    file_format = path.suffix.lower().removeprefix(".")
    # Without a date, and with a constant salt for its ids, an SVG is always the same.
    metadata = {"Date": None} if file_format == "svg" else {}
    with (
        rc_context({"svg.hashsalt": "rote"}),
        warnings.catch_warnings(),
        write_atomically(path) as file,
    ):
        # A character that the font lacks is drawn as a box; no warning is needed.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(file, format=file_format, metadata=metadata)


def printable_label(text: str, max_length: int = _MAX_LABEL) -> str:
    """Return a text without unprintable characters, cut to `max_length` characters."""
    drawable = "".join(character for character in text if character.isprintable())
    return drawable if len(drawable) <= max_length else drawable[: max_length - 1] + "…"


def require_picture_name(path: Path) -> None:
    """Raise `BadRequestError` unless the file's ending is that of a picture."""
    if path.suffix.lower() not in PICTURES:
        raise BadRequestError(
            f"{path} is not a picture file name", f"Name a file that ends in {', '.join(PICTURES)}."
        )


def plot_pair(taught: Track, played: Track, path: Path, *, title: str, lag_s: float = 0.0) -> None:
    """Draw the joints that moved most, as taught and as played, into a picture file.

    `played` is drawn `lag_s` earlier, so that both curves are comparable.
    """
    figure = blank_figure(11, 6.2, 110)
    moved = np.argsort(np.ptp(taught.joints_rad, axis=0))[::-1][:_PANELS]
    axes = figure.subplots(2, 3, sharex=True).ravel()
    for axis in axes[moved.size :]:
        axis.set_visible(False)
    for axis, joint in zip(axes, sorted(moved), strict=False):
        axis.plot(taught.times_s, taught.joints_rad[:, joint], color=FIRST, lw=4, alpha=0.35)
        axis.plot(played.times_s - lag_s, played.joints_rad[:, joint], color=SECOND, lw=1.4)
        _style_axis(axis, taught.names[joint])
    for axis in axes[3:]:
        axis.set_xlabel("time, s")
    for axis in axes[::3]:
        axis.set_ylabel("angle, rad")
    lines = [*axes[0].get_lines()]
    figure.legend(lines, ["taught by hand", "played back"], loc="outside lower center", ncols=2)
    figure.suptitle(title, fontsize=12, parse_math=False)
    save(figure, path)


def plot_track(
    track: Track,
    path: Path,
    *,
    other: Track | None = None,
    joints: Collection[str] | None = None,
    title: str | tuple[str, str] = "",
    findings: Sequence[Finding] = (),
) -> None:
    """Draw joints over time into a picture file: the named ones, or those that move most.

    Angles out of a joint's range are shaded, and the bar beside each panel shows how much of the
    range is used. Times are the track's own; the `other` take is shifted to begin at the same time.
    Gaps in a recording are dotted. `findings` of a check are marked at their times, and joints with
    findings are preferred to those that move more. Two titles name the two takes.
    """
    require_picture_name(path)  # before the drawing, which takes long
    figure = track_figure(track, other=other, joints=joints, title=title, findings=findings)
    save(figure, path)


def track_figure(
    track: Track,
    *,
    other: Track | None = None,
    joints: Collection[str] | None = None,
    title: str | tuple[str, str] = "",
    findings: Sequence[Finding] = (),
) -> Any:
    """Return the picture that `plot_track` saves, as a matplotlib figure."""
    track.require_samples(1)
    names = (
        _select_joints(track, other, findings) if joints is None else track.choose_joints(joints)
    )
    figure, axes = _make_panels(len(names))
    known = joints_of(track)
    for axis, name in zip(axes.ravel(), names, strict=False):
        low, high = _draw_joint(axis, track, other, name)
        if name in known:
            _draw_limits(axis, known[name], low, high)
        _draw_findings(axis, track, name, findings)
        for mark in _marks_within(track):
            axis.axvline(mark.time_s, color=INK, lw=0.8, ls=(0, (4, 3)), alpha=0.6, gid="mark",
                         zorder=1.0)  # fmt: skip
    _label_axes(axes, track, len(names))
    entries = [] if other is None else _make_take_legend(track, other, title)
    if not known.keys().isdisjoint(names):
        entries.append(("range used", {"color": FIRST, "lw": 7, "alpha": 0.55}))
    _draw_legend(figure, entries + _make_severity_legend(findings))
    text = title if isinstance(title, str) else " and ".join(map(printable_label, title))
    figure.suptitle(printable_label(text, 2 * _MAX_LABEL), fontsize=12, color=INK, parse_math=False)
    return figure


def plot_spread(
    band: Spread, path: Path, *, joints: Collection[str] | None = None, title: str = ""
) -> None:
    """Draw the band of several takes into a picture file, for the named joints or those that differ
    most.

    The pale band reaches from the lowest to the highest angle. The darker band is one standard
    deviation wide on either side of the average.
    """
    require_picture_name(path)  # before the drawing, which takes long
    mean = band.mean
    if joints is None:
        widths = (band.high_rad - band.low_rad).max(axis=0)
        widest = np.argsort(widths)[::-1][:_PANELS]
        names = tuple(mean.names[column] for column in sorted(widest.tolist()))
    else:
        names = mean.choose_joints(joints)
    figure, axes = _make_panels(len(names))
    for axis, name in zip(axes.ravel(), names, strict=False):
        _draw_band(axis, band, mean.names.index(name))
        _style_axis(axis, name)
    _label_axes(axes, mean, len(names))
    _draw_legend(
        figure,
        [
            ("average", {"color": FIRST, "lw": 1.8}),
            ("one standard deviation", {"color": FIRST, "lw": 7, "alpha": 0.45}),
            (f"all {band.takes} takes", {"color": FIRST, "lw": 7, "alpha": 0.18}),
        ],
    )
    figure.suptitle(
        printable_label(title, 2 * _MAX_LABEL), fontsize=12, color=INK, parse_math=False
    )
    save(figure, path)


def _make_panels(count: int) -> tuple[Any, Any]:
    """Return a figure, and the axes of its panels in rows and columns; surplus ones are hidden."""
    columns = min(count, _COLUMNS)
    rows = math.ceil(count / columns)
    figure = blank_figure(max(3.8 * columns, 5.5), 2.5 * rows + 1.1, 110)
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axis in axes.ravel()[count:]:
        axis.set_visible(False)
    return figure, axes


def _draw_band(axis: Any, band: Spread, column: int) -> None:
    times_s, mean = band.mean.times_s, band.mean.joints_rad[:, column]
    low, high = band.low_rad[:, column], band.high_rad[:, column]
    deviation = band.deviation_rad[:, column]
    axis.fill_between(times_s, low, high, color=FIRST, alpha=0.18, lw=0, gid="all takes")
    axis.fill_between(
        times_s, mean - deviation, mean + deviation, color=FIRST, alpha=0.3, lw=0, gid="deviation"
    )
    axis.plot(times_s, mean, color=FIRST, lw=1.8, gid="average")
    _set_angle_range(axis, float(low.min()), float(high.max()))


def _set_angle_range(axis: Any, low: float, high: float) -> None:
    """Show the angles from `low` to `high` with a margin, and at least `_MIN_RANGE_RAD`."""
    padding = max(_MIN_RANGE_RAD - (high - low), 0.0) / 2
    margin = _MARGIN * max(high - low, _MIN_RANGE_RAD) + padding
    axis.set_ylim(low - margin, high + margin)


def _marks_within(track: Track) -> list[Mark]:
    """Return the marks within the track; one far outside would stretch the picture."""
    first_s, last_s = track.times_s[0], track.times_s[-1]
    return [mark for mark in track.marks if first_s <= mark.time_s <= last_s]


def _select_joints(
    track: Track, other: Track | None, findings: Sequence[Finding]
) -> tuple[str, ...]:
    """Return the names of up to six joints to draw, in the track's order.

    They are those with findings, and then those that move most in either take.
    """
    ranges = np.ptp(track.joints_rad, axis=0)
    if other is not None and len(other):
        shared = [name for name in track.names if name in other.names]
        moved = np.ptp(other.joints_rad[:, other.columns_of(shared)], axis=0)
        columns = track.columns_of(shared)
        ranges[columns] = np.maximum(ranges[columns], moved)
    joints_with_findings = {f.joint for f in findings if f.severity is not Severity.NOTE}
    has_finding = [name in joints_with_findings for name in track.names]
    by_relevance = sorted(range(len(ranges)), key=lambda i: (has_finding[i], ranges[i]))
    relevant = [i for i in by_relevance if has_finding[i] or ranges[i] > _STILL_RAD]
    chosen = relevant or by_relevance
    return tuple(track.names[column] for column in sorted(chosen[-_PANELS:]))


def _draw_joint(axis: Any, track: Track, other: Track | None, name: str) -> tuple[float, float]:
    """Draw one joint of both takes; return the lowest and the highest angle of the curves."""
    values = track.joints_rad[:, track.names.index(name)]
    curves = [values]
    dot = "o" if len(track) == 1 else None
    style = {"lw": 4, "alpha": 0.35} if other else {"lw": 1.8}
    _draw_line(axis, track.times_s, values, color=FIRST, marker=dot, gid="take", **style)
    if other is not None and len(other) and name in other.names:
        curves.append(other.joints_rad[:, other.names.index(name)])
        times_s = other.times_s - other.times_s[0] + track.times_s[0]
        _draw_line(axis, times_s, curves[-1], color=SECOND, lw=1.4, gid="other take")
    low = float(min(part.min() for part in curves))
    high = float(max(part.max() for part in curves))
    _set_angle_range(axis, low, high)
    _style_axis(axis, name)
    return low, high


def _draw_line(axis: Any, times_s: Array, values: Array, **style: Any) -> None:
    """Draw a curve; gaps in the recording are dotted."""
    rows = find_gaps(times_s)
    after = [row + 1 for row in rows]
    # A line is interrupted where a value is NaN.
    axis.plot(np.insert(times_s, after, np.nan), np.insert(values, after, np.nan), **style)
    for row in rows:
        ends = slice(row, row + 2)
        axis.plot(times_s[ends], values[ends], color=style["color"], lw=1.2, ls=":", gid="hole")


def _draw_limits(axis: Any, joint: Joint, low: float, high: float) -> None:
    """Shade angles out of range, and draw a bar that shows how much of the range is used.

    `low` and `high` are the lowest and the highest angle of the curves.
    """
    bottom, top = axis.get_ylim()
    below = (min(bottom, joint.lower_rad) - 1.0, joint.lower_rad)
    above = (joint.upper_rad, max(top, joint.upper_rad) + 1.0)
    for start, end in (below, above):
        axis.axhspan(start, end, color=_OUT_OF_RANGE, alpha=0.1, lw=0, zorder=0, gid="out of reach")
    axis.set_ylim(bottom, top)  # the shades must not enlarge the panel
    bar = axis.inset_axes((1.02, 0.0, 0.022, 1.0))
    bar.set(ylim=(joint.lower_rad, joint.upper_rad), xticks=[], yticks=[], facecolor="#eef1f4")
    bar.spines[:].set_visible(False)
    is_within = joint.lower_rad <= low and high <= joint.upper_rad
    half_thickness = (joint.upper_rad - joint.lower_rad) / 100  # a joint at rest shows too
    bar.axhspan(
        low - half_thickness,
        high + half_thickness,
        color=FIRST if is_within else _OUT_OF_RANGE,
        alpha=0.55,
        lw=0,
    )
    for y, limit in ((0.0, joint.lower_rad), (1.0, joint.upper_rad)):
        bar.text(1.6, y, f"{limit:.1f}", transform=bar.transAxes, fontsize=7, color="#868e96",
                 va="bottom" if y == 0.0 else "top")  # fmt: skip


def _draw_findings(axis: Any, track: Track, name: str, findings: Sequence[Finding]) -> None:
    """Draw a symbol at each finding about this joint, and a line at each one about no joint."""
    values = track.joints_rad[:, track.names.index(name)]
    for finding in findings:
        if finding.time_s is None:
            continue
        symbol, colour = _SYMBOLS[finding.severity]
        if finding.joint is None:
            axis.axvline(finding.time_s, color=colour, lw=1.2, ls=":", gid=str(finding.kind))
        elif finding.joint == name:
            value = np.interp(finding.time_s, track.times_s, values)
            axis.plot(finding.time_s, value, symbol, color=colour, ms=8, mec="white", mew=0.8,
                      zorder=5, gid=str(finding.kind))  # fmt: skip


def _style_axis(axis: Any, name: str) -> None:
    axis.set_title(name.removesuffix("_joint").replace("_", " "), fontsize=10, parse_math=False)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.01)


def _label_axes(axes: Any, track: Track, count: int) -> None:
    """Label the axes and the marks; the time axis is under the lowest panel of each column."""
    columns = axes.shape[1]
    for index, axis in enumerate(axes.ravel()[:count]):
        if index + columns >= count:
            axis.set_xlabel("time, s")
            axis.tick_params(labelbottom=True)
        if index % columns == 0:
            axis.set_ylabel("angle, rad")
        if index < columns:
            _label_marks(axis, _marks_within(track))


def _label_marks(axis: Any, marks: Sequence[Mark]) -> None:
    """Draw labels beside the lines of marks, under the curves and over other marks' lines."""
    begin_s, end_s = axis.get_xlim()
    spacing_s = _MARK_SPACING * (end_s - begin_s)
    for time_s, text in _group_mark_labels(marks, spacing_s):
        at_end = time_s > end_s - spacing_s
        axis.annotate(
            text, (time_s, 1.0), xycoords=axis.get_xaxis_transform(),
            xytext=(-2 if at_end else 2, -2), textcoords="offset points", fontsize=7, color=INK,
            rotation=90, va="top", ha="right" if at_end else "left", in_layout=False, clip_on=True,
            parse_math=False, zorder=1.5,
            bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.5},
        )  # fmt: skip


def _group_mark_labels(marks: Sequence[Mark], spacing_s: float) -> list[tuple[float, str]]:
    """Return the times and texts of mark labels.

    Marks less than `spacing_s` after the first one of a group share its label, such as "a +2".
    """
    groups: list[list[Mark]] = []
    for mark in marks:
        if groups and mark.time_s - groups[-1][0].time_s < spacing_s:
            groups[-1].append(mark)
        else:
            groups.append([mark])
    suffixes = [f" +{len(group) - 1}" if len(group) > 1 else "" for group in groups]
    return [
        (group[0].time_s, printable_label(group[0].label, _MAX_MARK_LABEL - len(suffix)) + suffix)
        for group, suffix in zip(groups, suffixes, strict=True)
    ]


def _make_take_legend(track: Track, other: Track, title: str | tuple[str, str]) -> list[_Entry]:
    """Return the legend's entries of two takes.

    `title` names the first take, or is a pair that names both. Equal names are replaced by "first
    take" and "second take".
    """
    names = (title or track.source, other.source) if isinstance(title, str) else title
    if names[0] == names[1]:
        names = "", ""
    return [
        (names[0] or "first take", {"color": FIRST, "lw": 4, "alpha": 0.35}),
        (names[1] or "second take", {"color": SECOND, "lw": 1.4}),
    ]


def _make_severity_legend(findings: Sequence[Finding]) -> list[_Entry]:
    """Return the legend's entries of the symbols for findings."""
    shown = [
        (severity, *_SYMBOLS[severity])
        for severity in Severity
        if any(f.severity is severity and f.time_s is not None for f in findings)
    ]
    return [(str(s), {"ls": "", "marker": sign, "color": c, "ms": 8}) for s, sign, c in shown]


def _draw_legend(figure: Any, entries: Sequence[_Entry]) -> None:
    """Explain the lines, bars and symbols below the panels, in one row or two columns."""
    if not entries:
        return
    available_characters = int(figure.get_figwidth() * _CHARACTERS_PER_IN)
    needed_characters = sum(len(text) + _SYMBOL_CHARACTERS for text, _ in entries)
    columns, max_length = len(entries), _MAX_LABEL
    if needed_characters > available_characters:
        columns, max_length = 2, available_characters // 2 - _SYMBOL_CHARACTERS
    lines = [figure.axes[0].plot([], [], **style)[0] for _, style in entries]
    labels = [printable_label(text, max_length) for text, _ in entries]
    legend = figure.legend(
        lines, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
    for label in legend.get_texts():
        label.set_parse_math(False)
