"""Pictures of tracks over time, as PNG or SVG. Needs the extra `plot`.

Only this module imports matplotlib. `blank_figure` returns a figure and `save` writes it; `figure`
uses both.
"""

import warnings
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rote.errors import BadRequestError, MissingExtraError
from rote.findings import Finding, Severity
from rote.model.family import Joint
from rote.motion.check.gaps import find_gaps
from rote.motion.draw.spread import Spread
from rote.motion.files.disk import write_atomically
from rote.motion.track import Array, Mark, Track
from rote.motion.track_build import joints_of

PICTURES = (".png", ".svg")
FIRST, SECOND, INK, PALE = "#1f6feb", "#e8590c", "#343a40", "#adb5bd"

_PANELS, _COLUMNS = 6, 3
_BEYOND = "#c92a2a"
_SIGNS = {
    Severity.ERROR: ("X", "#c92a2a"),
    Severity.WARNING: ("^", "#f08c00"),
    Severity.NOTE: ("o", "#868e96"),
}
_ROOM = 0.12  # of what is shown, above and below
_MIN_RANGE_RAD = 0.2  # a joint at rest is not magnified to its noise
_STILL_RAD = 0.01  # a joint that moves less is not drawn by default
_MAX_SIGNS = 60
_MARK_SIGNS = 28  # how much of a mark's label fits beside its line
_MARK_ROOM = 0.045  # of the width: marks nearer than this share one label
_SIGNS_PER_IN, _ENTRY_SIGNS = 13.0, 9  # of the legend: how many fit, and what an entry takes beside

_Entry = tuple[str, dict[str, Any]]
"""A label of the legend, and how its symbol is drawn."""


def blank_figure(width_in: float, height_in: float, dpi: int, what: str = "drawing a plot") -> Any:
    """Return an empty figure that needs no screen."""
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

    ending = picture_format(path)
    when = {"Date": None} if ending == "svg" else {}
    with (
        rc_context({"svg.hashsalt": "rote"}),
        warnings.catch_warnings(),
        write_atomically(path) as file,
    ):
        # A character that the font lacks is drawn as a box; no warning is needed.
        warnings.filterwarnings("ignore", message="Glyph", category=UserWarning)
        figure.savefig(file, format=ending, metadata=when)


def printable_label(text: str, most: int = _MAX_SIGNS) -> str:
    """Return a short text without unprintable characters."""
    drawable = "".join(sign for sign in text if sign.isprintable())
    return drawable if len(drawable) <= most else drawable[: most - 1] + "…"


def picture_format(path: Path) -> str:
    """Return `png` or `svg`, by the file's ending."""
    ending = path.suffix.lower()
    if ending not in PICTURES:
        raise BadRequestError(
            f"{path} has no ending of a picture", f"Name a file that ends in {', '.join(PICTURES)}."
        )
    return ending[1:]


def plot_pair(taught: Track, played: Track, path: Path, *, title: str, lag_s: float = 0.0) -> None:
    """Draw the joints that moved most, taught against played, into a picture file."""
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
    """Draw joints over time into a picture file: those named, or those that move most.

    What is out of a joint's range is shaded, and the bar beside each panel shows how much of the
    range is used. Times are the track's own; the `other` take begins at the same time. Gaps in a
    recording are dotted. `findings` of a check are marked at their times, and their joints are
    drawn before those that move more. Two titles name the two takes.
    """
    picture_format(path)
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
    columns = min(len(names), _COLUMNS)
    rows = -(-len(names) // columns)
    figure = blank_figure(max(3.8 * columns, 5.5), 2.5 * rows + 1.1, 110)
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    known = joints_of(track)
    for axis, name in zip(axes.ravel(), names, strict=False):
        low, high = _draw_joint(axis, track, other, name)
        if name in known:
            _draw_limits(axis, known[name], low, high)
        _draw_findings(axis, track, name, findings)
        for mark in _marks_within(track):
            axis.axvline(mark.time_s, color=INK, lw=0.8, ls=(0, (4, 3)), alpha=0.6, gid="mark",
                         zorder=1.0)  # fmt: skip
    for axis in axes.ravel()[len(names) :]:
        axis.set_visible(False)
    _label_axes(axes, track, len(names))
    entries = [] if other is None else _take_entries(track, other, title)
    if not known.keys().isdisjoint(names):
        entries.append(("range used", {"color": FIRST, "lw": 7, "alpha": 0.55}))
    _draw_legend(figure, entries + _severity_entries(findings))
    text = title if isinstance(title, str) else " and ".join(map(printable_label, title))
    figure.suptitle(printable_label(text, 2 * _MAX_SIGNS), fontsize=12, color=INK, parse_math=False)
    return figure


def plot_spread(
    band: Spread, path: Path, *, joints: Collection[str] | None = None, title: str = ""
) -> None:
    """Draw the band that several takes fill into a picture file: of joints named, or those that
    differ most. Pale is from the least to the most, darker one standard deviation.
    """
    picture_format(path)
    mean = band.mean
    if joints is None:
        width = (band.high_rad - band.low_rad).max(axis=0)
        names = tuple(mean.names[i] for i in sorted(np.argsort(width)[::-1][:_PANELS].tolist()))
    else:
        names = mean.choose_joints(joints)
    columns = min(len(names), _COLUMNS)
    rows = -(-len(names) // columns)
    figure = blank_figure(max(3.8 * columns, 5.5), 2.5 * rows + 1.1, 110)
    axes = figure.subplots(rows, columns, sharex=True, squeeze=False)
    for axis, name in zip(axes.ravel(), names, strict=False):
        _draw_band(axis, band, mean.names.index(name))
        _style_axis(axis, name)
    for axis in axes.ravel()[len(names) :]:
        axis.set_visible(False)
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
        printable_label(title, 2 * _MAX_SIGNS), fontsize=12, color=INK, parse_math=False
    )
    save(figure, path)


def _draw_band(axis: Any, band: Spread, column: int) -> None:
    times_s, middle = band.mean.times_s, band.mean.joints_rad[:, column]
    low, high = band.low_rad[:, column], band.high_rad[:, column]
    off = band.deviation_rad[:, column]
    axis.fill_between(times_s, low, high, color=FIRST, alpha=0.18, lw=0, gid="all takes")
    axis.fill_between(
        times_s, middle - off, middle + off, color=FIRST, alpha=0.3, lw=0, gid="deviation"
    )
    axis.plot(times_s, middle, color=FIRST, lw=1.8, gid="average")
    bottom, top = float(low.min()), float(high.max())
    spare = max(_MIN_RANGE_RAD - (top - bottom), 0.0) / 2
    room = _ROOM * max(top - bottom, _MIN_RANGE_RAD) + spare
    axis.set_ylim(bottom - room, top + room)


def _marks_within(track: Track) -> list[Mark]:
    """Return the marks within the track; one far outside would stretch the picture."""
    first_s, last_s = track.times_s[0], track.times_s[-1]
    return [mark for mark in track.marks if first_s <= mark.time_s <= last_s]


def _select_joints(
    track: Track, other: Track | None, findings: Sequence[Finding]
) -> tuple[str, ...]:
    """Return the names of up to six joints that move most in either take, in the track's order."""
    ranges = np.ptp(track.joints_rad, axis=0)
    if other is not None and len(other):
        shared = [name for name in track.names if name in other.names]
        moved = np.ptp(other.joints_rad[:, other.columns_of(shared)], axis=0)
        columns = track.columns_of(shared)
        ranges[columns] = np.maximum(ranges[columns], moved)
    found = {f.joint for f in findings if f.severity is not Severity.NOTE}
    order = sorted(range(len(track.names)), key=lambda i: (track.names[i] in found, ranges[i]))
    chosen = [i for i in order if track.names[i] in found or ranges[i] > _STILL_RAD] or order
    return tuple(track.names[column] for column in sorted(chosen[-_PANELS:]))


def _draw_joint(axis: Any, track: Track, other: Track | None, name: str) -> tuple[float, float]:
    """Draw one joint of both takes; return the least and the largest angle shown."""
    values = track.joints_rad[:, track.names.index(name)]
    shown = [values]
    dot = "o" if len(track) == 1 else None
    wide = {"lw": 4, "alpha": 0.35} if other else {"lw": 1.8}
    _draw_line(axis, track.times_s, values, color=FIRST, marker=dot, gid="take", **wide)
    if other is not None and len(other) and name in other.names:
        shown.append(other.joints_rad[:, other.names.index(name)])
        times_s = other.times_s - other.times_s[0] + track.times_s[0]
        _draw_line(axis, times_s, shown[-1], color=SECOND, lw=1.4, gid="other take")
    low, high = (float(f([f(part) for part in shown])) for f in (np.min, np.max))
    spare = max(_MIN_RANGE_RAD - (high - low), 0.0) / 2
    room = _ROOM * max(high - low, _MIN_RANGE_RAD) + spare
    axis.set_ylim(low - room, high + room)
    _style_axis(axis, name)
    return low, high


def _draw_line(axis: Any, times_s: Array, values: Array, **how: Any) -> None:
    """Draw a line that is open at gaps in the recording, with dots across them."""
    rows = find_gaps(times_s)
    after = [row + 1 for row in rows]
    axis.plot(np.insert(times_s, after, np.nan), np.insert(values, after, np.nan), **how)
    for row in rows:
        ends = slice(row, row + 2)
        axis.plot(times_s[ends], values[ends], color=how["color"], lw=1.2, ls=":", gid="hole")


def _draw_limits(axis: Any, joint: Joint, low: float, high: float) -> None:
    """Shade what is out of range, and show beside the panel how much of the range is used."""
    bottom, top = axis.get_ylim()
    for start, end in ((min(bottom, joint.lower_rad) - 1.0, joint.lower_rad),
                       (joint.upper_rad, max(top, joint.upper_rad) + 1.0)):  # fmt: skip
        axis.axhspan(start, end, color=_BEYOND, alpha=0.1, lw=0, zorder=0, gid="out of reach")
    axis.set_ylim(bottom, top)
    bar = axis.inset_axes((1.02, 0.0, 0.022, 1.0))
    bar.set(ylim=(joint.lower_rad, joint.upper_rad), xticks=[], yticks=[], facecolor="#eef1f4")
    bar.spines[:].set_visible(False)
    within = joint.lower_rad <= low and high <= joint.upper_rad
    thin = (joint.upper_rad - joint.lower_rad) / 100
    bar.axhspan(low - thin, high + thin, color=FIRST if within else _BEYOND, alpha=0.55, lw=0)
    for y, limit in ((0.0, joint.lower_rad), (1.0, joint.upper_rad)):
        bar.text(1.6, y, f"{limit:.1f}", transform=bar.transAxes, fontsize=7, color="#868e96",
                 va="bottom" if y == 0.0 else "top")  # fmt: skip


def _draw_findings(axis: Any, track: Track, name: str, findings: Sequence[Finding]) -> None:
    """Draw a symbol at each finding of this joint, and a line for those of no joint."""
    values = track.joints_rad[:, track.names.index(name)]
    for finding in findings:
        if finding.time_s is None:
            continue
        sign, colour = _SIGNS[finding.severity]
        if finding.joint is None:
            axis.axvline(finding.time_s, color=colour, lw=1.2, ls=":", gid=str(finding.kind))
        elif finding.joint == name:
            value = np.interp(finding.time_s, track.times_s, values)
            axis.plot(finding.time_s, value, sign, color=colour, ms=8, mec="white", mew=0.8,
                      zorder=5, gid=str(finding.kind))  # fmt: skip


def _style_axis(axis: Any, name: str) -> None:
    axis.set_title(name.removesuffix("_joint").replace("_", " "), fontsize=10, parse_math=False)
    axis.grid(alpha=0.25)
    axis.spines[["top", "right"]].set_visible(False)
    axis.margins(x=0.01)


def _label_axes(axes: Any, track: Track, count: int) -> None:
    """Label the axes and the marks; the time axis is under the lowest panel of each column."""
    columns = axes.shape[1]
    for place, axis in enumerate(axes.ravel()[:count]):
        if place + columns >= count:
            axis.set_xlabel("time, s")
            axis.tick_params(labelbottom=True)
        if place % columns == 0:
            axis.set_ylabel("angle, rad")
        if place < columns:
            _label_marks(axis, _marks_within(track))


def _label_marks(axis: Any, marks: Sequence[Mark]) -> None:
    """Draw labels beside the lines of marks, under the curves and over other marks' lines."""
    begin_s, end_s = axis.get_xlim()
    room_s = _MARK_ROOM * (end_s - begin_s)
    for time_s, text in _group_mark_labels(marks, room_s):
        at_end = time_s > end_s - room_s
        axis.annotate(
            text, (time_s, 1.0), xycoords=axis.get_xaxis_transform(),
            xytext=(-2 if at_end else 2, -2), textcoords="offset points", fontsize=7, color=INK,
            rotation=90, va="top", ha="right" if at_end else "left", in_layout=False, clip_on=True,
            parse_math=False, zorder=1.5,
            bbox={"fc": "white", "ec": "none", "alpha": 0.8, "pad": 0.5},
        )  # fmt: skip


def _group_mark_labels(marks: Sequence[Mark], room_s: float) -> list[tuple[float, str]]:
    """Return the positions of labels beside marks; one that is too near is counted by the one
    before.
    """
    near: list[list[Mark]] = []
    for mark in marks:
        if near and mark.time_s - near[-1][0].time_s < room_s:
            near[-1].append(mark)
        else:
            near.append([mark])
    more = [f" +{len(group) - 1}" if len(group) > 1 else "" for group in near]
    return [
        (group[0].time_s, printable_label(group[0].label, _MARK_SIGNS - len(rest)) + rest)
        for group, rest in zip(near, more, strict=True)
    ]


def _take_entries(track: Track, other: Track, title: str | tuple[str, str]) -> list[_Entry]:
    """Return the legend's entries of two takes, with names that distinguish them."""
    names = (title or track.source, other.source) if isinstance(title, str) else title
    if names[0] == names[1]:
        names = "", ""
    return [
        (names[0] or "first take", {"color": FIRST, "lw": 4, "alpha": 0.35}),
        (names[1] or "second take", {"color": SECOND, "lw": 1.4}),
    ]


def _severity_entries(findings: Sequence[Finding]) -> list[_Entry]:
    """Return the legend's entries of the symbols for findings."""
    shown = [
        (severity, *_SIGNS[severity])
        for severity in Severity
        if any(f.severity is severity and f.time_s is not None for f in findings)
    ]
    return [(str(s), {"ls": "", "marker": sign, "color": c, "ms": 8}) for s, sign, c in shown]


def _draw_legend(figure: Any, entries: Sequence[_Entry]) -> None:
    """Explain the lines, bars and symbols below the panels, in one row or two columns."""
    if not entries:
        return
    fitting = int(figure.get_figwidth() * _SIGNS_PER_IN)
    needed = sum(len(text) + _ENTRY_SIGNS for text, _ in entries)
    columns, most = len(entries), _MAX_SIGNS
    if needed > fitting:
        columns, most = 2, fitting // 2 - _ENTRY_SIGNS
    lines = [figure.axes[0].plot([], [], **how)[0] for _, how in entries]
    labels = [printable_label(text, most) for text, _ in entries]
    legend = figure.legend(
        lines, labels, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
    for label in legend.get_texts():
        label.set_parse_math(False)
