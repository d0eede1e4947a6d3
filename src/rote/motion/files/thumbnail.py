"""A small picture of a track: an SVG of the joints that move most, or a line of text."""

import numpy as np

from rote.motion.track import Array, Track

__all__ = ["sketch", "thumbnail"]

_WIDTH, _HEIGHT, _MARGIN = 160, 48, 3
_MAX_LINES = 4  # of a picture, one per joint
_MAX_POINTS = 80
_STILL_RAD = 0.01
_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = ("#1f6feb", "#e8590c", "#2b8a3e", "#862e9c")


def thumbnail(track: Track) -> str:
    """Return an SVG picture as text: up to four lines over time, all on one scale.

    Lines are drawn relative to each joint's first position, so that a pose is flat and a motion is
    not.
    """
    columns = _most_moving_columns(track)
    drawn_rows = np.unique(np.linspace(0, len(track) - 1, min(len(track), _MAX_POINTS)).astype(int))
    moved = track.joints_rad[drawn_rows][:, columns] - track.joints_rad[:1, columns]
    x = _scale_to(track.times_s[drawn_rows], _WIDTH)
    y = _HEIGHT - _scale_to(moved, _HEIGHT)  # in SVG, y points down
    lines = [
        _format_polyline(x, y[:, line], colour, track.names[joint])
        for line, (joint, colour) in enumerate(zip(columns, _COLOURS, strict=False))
    ]
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(lines)}</svg>'


def sketch(track: Track, width: int = 20, most: int = 1) -> dict[str, str]:
    """Return a line of bars for each of the joints that move most, by its name.

    Bars are averages over equal parts of the time, all on one scale from the lowest to the highest.
    If no joint moves, its bars are all in the middle.
    """
    columns = _most_moving_columns(track)[:most]
    if not columns:
        return {}
    # A track of few samples has fewer bars than the width, rather than empty bars.
    edges = np.linspace(0, len(track), min(width, len(track)) + 1).astype(int)
    moved = track.joints_rad[:, columns] - track.joints_rad[:1, columns]
    means = np.add.reduceat(moved, edges[:-1], axis=0) / np.diff(edges)[:, None]
    low, high = float(means.min()), float(means.max())
    # A range below the noise of a sensor is not scaled up to look like a motion.
    fractions = (
        (means - low) / (high - low) if high - low > _STILL_RAD else np.full(means.shape, 0.5)
    )
    bars = np.minimum((fractions * len(_BARS)).astype(int), len(_BARS) - 1)
    return {
        track.names[joint]: "".join(_BARS[bar] for bar in bar_indices)
        for joint, bar_indices in zip(columns, bars.T.tolist(), strict=True)
    }


def _most_moving_columns(track: Track) -> list[int]:
    """Return the columns of up to four joints that move most, the one that moves most first."""
    ranges = np.ptp(track.joints_rad, axis=0)
    return [int(column) for column in np.argsort(-ranges, kind="stable")[:_MAX_LINES]]


def _scale_to(values: Array, size: int) -> Array:
    """Return values scaled to pixels within 0 to `size` and the margins; equal ones are centred."""
    if not values.size:
        return values
    low, high = float(values.min()), float(values.max())
    fractions = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    return np.asarray(_MARGIN + fractions * (size - 2 * _MARGIN))


def _format_polyline(x: Array, y: Array, colour: str, name: str) -> str:
    points = " ".join(f"{left:.1f},{down:.1f}" for left, down in zip(x, y, strict=True))
    title = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5" '
        f'stroke-linejoin="round"><title>{title}</title></polyline>'
    )
