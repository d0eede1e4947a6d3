"""A small picture of a track: an SVG of the joints that move most, or a line of text."""

import numpy as np

from rote.motion.track import Array, Track

__all__ = ["sketch", "thumbnail"]

_WIDTH, _HEIGHT, _EDGE = 160, 48, 3
_MAX_LINES = 4
_MAX_POINTS = 80
_STILL_RAD = 0.01
_BARS = "▁▂▃▄▅▆▇█"
_COLOURS = ("#1f6feb", "#e8590c", "#2b8a3e", "#862e9c")


def thumbnail(track: Track) -> str:
    """Return an SVG picture as text: up to four lines over time, all on one scale.

    Lines are drawn relative to each joint's first position, so that a pose is flat and a motion is
    not.
    """
    chosen = _most_moving(track)
    at = np.unique(np.linspace(0, len(track) - 1, min(len(track), _MAX_POINTS)).astype(int))
    moved = track.joints_rad[at][:, chosen] - track.joints_rad[:1, chosen]
    x = _scale_to(track.times_s[at], _WIDTH)
    y = _HEIGHT - _scale_to(moved, _HEIGHT)
    lines = [
        _polyline(x, y[:, column], colour, track.names[joint])
        for column, (joint, colour) in enumerate(zip(chosen, _COLOURS, strict=False))
    ]
    size = f'width="{_WIDTH}" height="{_HEIGHT}" viewBox="0 0 {_WIDTH} {_HEIGHT}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{"".join(lines)}</svg>'


def sketch(track: Track, width: int = 20, most: int = 1) -> dict[str, str]:
    """Return a line of bars for each of the joints that move most, by its name.

    Bars are averages over equal parts of the time, all on one scale from the lowest to the highest.
    A joint that rests is a flat line in the middle.
    """
    chosen = _most_moving(track)[:most]
    if not chosen:
        return {}
    # A track of few samples has fewer bars than the width, rather than empty bars.
    edges = np.linspace(0, len(track), min(width, len(track)) + 1).astype(int)
    moved = track.joints_rad[:, chosen] - track.joints_rad[:1, chosen]
    means = np.add.reduceat(moved, edges[:-1], axis=0) / np.diff(edges)[:, None]
    low, high = float(means.min()), float(means.max())
    # Less than the noise of a sensor is no motion.
    share = (means - low) / (high - low) if high - low > _STILL_RAD else np.full(means.shape, 0.5)
    bars = np.minimum((share * len(_BARS)).astype(int), len(_BARS) - 1)
    return {
        track.names[joint]: "".join(_BARS[bar] for bar in column)
        for joint, column in zip(chosen, bars.T.tolist(), strict=True)
    }


def _most_moving(track: Track) -> list[int]:
    """Return the columns that move most, the one that moves most first."""
    if not len(track):
        return []
    ranges = np.ptp(track.joints_rad, axis=0)
    return [int(joint) for joint in np.argsort(-ranges, kind="stable")[:_MAX_LINES]]


def _scale_to(values: Array, size: int) -> Array:
    """Scale values to a picture `size` wide; equal ones to the middle."""
    if not values.size:
        return values
    low, high = float(values.min()), float(values.max())
    share = (values - low) / (high - low) if high > low else np.full(values.shape, 0.5)
    return np.asarray(_EDGE + share * (size - 2 * _EDGE))


def _polyline(x: Array, y: Array, colour: str, name: str) -> str:
    points = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True))
    title = name.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return (
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5" '
        f'stroke-linejoin="round"><title>{title}</title></polyline>'
    )
