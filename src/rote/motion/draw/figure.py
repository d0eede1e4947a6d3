"""Draws the robot as a stick figure, from the front and the right side. Needs the extra `plot`.

Sticks nearer to the viewer are thicker, stronger and on top. Left and right have a colour each, and
a thin line shows the recent path of the hands, or front feet.
"""

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.motion.draw.figure_body import Sticks, pose_sticks
from rote.motion.draw.plot import FIRST, INK, PALE, SECOND, blank_figure, require_picture_name, save
from rote.motion.files.disk import write_atomically
from rote.motion.track import Array, Track

LEFT, RIGHT, MIDDLE, _GREY = FIRST, SECOND, "#495057", "#868e96"  # colours
MAX_PICTURES = 900
"""Maximum number of pictures in a GIF: a minute at 15 Hz."""
USUAL_PICTURES, USUAL_HZ, _MIN_HZ = 200, 15.0, 1.0
"""Default maximum number of pictures, default rate, and the lowest rate of longer motions."""

_FEATURE = "drawing the robot"
_UNIT_CIRCLE = np.stack([np.cos(np.arange(40) * np.pi / 20), np.sin(np.arange(40) * np.pi / 20)])
_THIN, _THICK = 2.2, 5.0  # width of the farthest and the nearest stick, in points
_FADED = 0.55  # the share of white in the colour of the farthest stick
_DEPTH_M = 0.3  # distance from the base at which a stick counts as the nearest or the farthest
_BORDER_M = 0.07
_TRAIL_STEPS = 4  # points of a hand's trail from one picture of a GIF to the next
_TRAIL_S = 0.5  # duration of a trail
_LAST_SHOWN_CS = 60  # a GIF counts time in hundredths of a second
_COLOURS = 48
_MAXCOVERAGE = 1  # the Pillow method of choosing colours that keeps the paper white
_POSE_STEPS = 6 * _TRAIL_STEPS  # points of a hand's trail from one pose of a strip to the next


class View(NamedTuple):
    """A viewpoint: the directions to the right on the paper and towards the viewer."""

    label: str
    right: Array
    near: Array


FRONT = View("front", np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]))
# A little from the front, so that the left is not hidden behind the right.
SIDE = View("right side", np.array([0.966, 0.259, 0.0]), np.array([0.259, -0.966, 0.0]))

_SIDE_COLOURS = {"": MIDDLE, "left": LEFT, "right": RIGHT}


class _DrawnRobot:
    """One robot on the paper, seen from one side; `show` draws it in another pose.

    `offset` is the position on the paper, in m, of the floor below its base.
    """

    def __init__(self, axis: Any, view: View, offset: tuple[float, float], body: Sticks) -> None:
        self._view = view
        self._body = body
        self._offset: Array = np.array(offset)
        self._trails = [axis.plot([], [], color=c, lw=1.1, alpha=0.5)[0] for c in (LEFT, RIGHT)]
        # A white edge around each stick shows which of two crossing sticks is nearer.
        self._edges = [
            axis.plot([], [], color="white", solid_capstyle="butt")[0] for _ in body.sides
        ]
        self._sticks = [axis.plot([], [], solid_capstyle="round")[0] for _ in body.sides]
        (self._head,) = axis.fill([0.0], [0.0], facecolor=MIDDLE, edgecolor="white", lw=1.2)

    def _project(self, points_m: Array) -> Array:
        """Return the positions on the paper, (2, k), of points, (3, k), in m."""
        flat: Array = np.stack([self._view.right @ points_m, points_m[2]])
        return flat + self._offset[:, None]

    def show(self, row: int, since: int) -> None:
        """Draw the pose with this number, and the path of the hands from pose `since` to it."""
        body = self._body
        for index, side in enumerate(body.sides):
            ends = body.ends_m[index, :, :, row].T
            depth = float((self._view.near @ ends).mean()) / _DEPTH_M
            nearness = (min(max(depth, -1.0), 1.0) + 1.0) / 2  # from 0, far, to 1, near
            width = _THIN + (_THICK - _THIN) * nearness
            edge, stick = self._edges[index], self._sticks[index]
            edge.set(data=self._project(ends), lw=width + 2.0, zorder=2.0 + nearness)
            # Right above its own edge, below the edges of nearer sticks.
            stick.set(data=self._project(ends), lw=width, zorder=2.0001 + nearness)
            stick.set_color(_fade_colour(_SIDE_COLOURS[side], _FADED * (1.0 - nearness)))
        head = self._project(body.head_m[:, row : row + 1])
        self._head.set(xy=(head + body.head_radius_m * _UNIT_CIRCLE).T, zorder=2.5)
        for trail, hand in zip(self._trails, body.hands_m, strict=True):
            trail.set_data(self._project(hand[:, since : row + 1]))


def _fade_colour(colour: str, share: float) -> tuple[float, ...]:
    """Return a colour "#rrggbb" mixed with a share of white, 0 to 1, as red, green and blue."""
    parts = (int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5))
    return tuple(part + (1.0 - part) * share for part in parts)


def draw_frames(track: Track, path: Path, *, count: int = 6) -> None:
    """Draw a strip of `count` poses, evenly in time, into a picture file: PNG or SVG."""
    require_picture_name(path)  # before the drawing, which takes long
    save(frames_figure(track, count=count), path)


def frames_figure(track: Track, *, count: int = 6) -> Any:
    """Return the picture that `draw_frames` saves, as a matplotlib figure."""
    track.require_samples(1)
    if not 1 <= count <= 24:
        raise BadRequestError(f"a strip has 1 to 24 poses, not {count}")
    steps = (count - 1) * _POSE_STEPS if track.duration_s else 0
    times_s = np.linspace(track.times_s[0], track.times_s[-1], steps + 1)
    body = pose_sticks(track, times_s)
    rows = range(0, steps + 1, _POSE_STEPS)  # of `times_s`, one for each pose
    left_m, width_m, height_m = _measure_extent(body)
    high_m, margin_m = height_m + 0.08, 0.12
    size = (margin_m + width_m * len(rows), 2 * high_m)
    axis = _make_axes(size, 2.3 / high_m, 110)
    views = ((FRONT, high_m), (SIDE, 0.0))
    for column, row in enumerate(rows):
        across_m = margin_m + column * width_m - left_m
        for view, up_m in views:
            robot = _DrawnRobot(axis, view, (across_m, up_m), body)
            robot.show(row, max(row - _POSE_STEPS, 0))
        axis.text(across_m, size[1] - 0.02, f"{times_s[row]:.2f} s", ha="center", va="top",
                  color=INK, fontsize=10)  # fmt: skip
    for view, up_m in views:
        axis.plot([margin_m, size[0]], [up_m, up_m], color=PALE, lw=1.0, zorder=1)
        axis.text(margin_m / 2, up_m + height_m / 2, view.label, rotation=90, ha="center",
                  va="center", color=_GREY, fontsize=9)  # fmt: skip
    return axis.figure


def draw_gif(track: Track, path: Path, *, rate_hz: float | None = None) -> None:
    """Draw the motion as an animated GIF at its own speed, about `rate_hz` pictures per second.

    The default is 15, and fewer if that makes more than 200 pictures.
    """
    track.require_samples(1)
    if path.suffix.lower() != ".gif":
        raise BadRequestError(f"{path} is not a GIF file name", "Name a file that ends in .gif.")
    if rate_hz is None:
        rate_hz = choose_rate_hz(track.duration_s)
    if not _MIN_HZ <= rate_hz <= 50.0:
        raise BadRequestError(f"a GIF shows 1 to 50 pictures a second, not {rate_hz:g}")
    step_cs = round(100 / rate_hz)
    # The last picture is at the end or after it; 1e-6 allows for rounding.
    pictures = int(np.ceil(track.duration_s * 100 / step_cs - 1e-6)) + 1
    if pictures > MAX_PICTURES:
        raise BadRequestError(
            f"{track.duration_s:.0f} s make {pictures} pictures; at most {MAX_PICTURES} are drawn",
            "Trim the track, or in Python pass a lower rate_hz.",
        )
    frames = _render_gif_images(track, step_cs, pictures)
    durations_ms = [step_cs * 10] * (pictures - 1) + [_LAST_SHOWN_CS * 10]
    with write_atomically(path) as file:
        frames[0].save(file, "GIF", save_all=True, append_images=frames[1:], duration=durations_ms,
                       loop=0)  # fmt: skip


def choose_rate_hz(duration_s: float) -> float:
    """Return the default number of pictures per second for a motion of this duration."""
    step_cs = max(round(100 / USUAL_HZ), int(np.ceil(100 * duration_s / (USUAL_PICTURES - 1))))
    return max(100 / step_cs, _MIN_HZ)


def _render_gif_images(track: Track, step_cs: int, pictures: int) -> list[Any]:
    """Return the pictures of a GIF, all with the same palette of colours."""
    step_s = step_cs / 100
    steps = np.arange((pictures - 1) * _TRAIL_STEPS + 1)
    times_s = track.times_s[0] + steps * (step_s / _TRAIL_STEPS)
    body = pose_sticks(track, times_s)
    images = list(_render_images(body, np.minimum(times_s, track.times_s[-1]), step_s))
    # The palette is chosen from a sheet of at most six pictures, one below the other.
    samples = images[:: math.ceil(len(images) / 6)]
    width, height = samples[0].size
    sheet = samples[0].resize((width, height * len(samples)))
    for number, image in enumerate(samples):
        sheet.paste(image, (0, number * height))
    palette = sheet.quantize(_COLOURS, method=_MAXCOVERAGE)
    return [image.quantize(palette=palette, dither=0) for image in images]


def _render_images(body: Sticks, times_s: Array, step_s: float) -> Iterator[Any]:
    """Yield a picture for every `_TRAIL_STEPS`-th pose, so every `step_s` seconds."""
    left_m, width_m, height_m = _measure_extent(body)
    axis = _make_axes((2 * width_m, height_m + 0.12), 3.6 / height_m, 100)
    from PIL import Image  # noqa: PLC0415 - optional; matplotlib needs it too

    robots = []
    for column, view in enumerate((FRONT, SIDE)):
        robots.append(_DrawnRobot(axis, view, (column * width_m - left_m, 0.0), body))
        axis.text((column + 0.5) * width_m, height_m + 0.11, view.label, ha="center", va="top",
                  color=_GREY, fontsize=9)  # fmt: skip
    axis.plot([0.0, 2 * width_m], [0.0, 0.0], color=PALE, lw=1.2, zorder=1)
    time_label = axis.text(width_m, 0.03, "", color=INK, fontsize=10, ha="center")
    trail_poses = round(_TRAIL_S / step_s * _TRAIL_STEPS)
    canvas = axis.figure.canvas
    for row in range(0, len(times_s), _TRAIL_STEPS):
        for robot in robots:
            robot.show(row, max(row - trail_poses, 0))
        time_label.set_text(f"{times_s[row]:.2f} s")
        canvas.draw()
        yield Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")


def _measure_extent(body: Sticks) -> tuple[float, float, float]:
    """Return the leftmost position in both views, and the width and height of all poses, in m."""
    count = body.head_m.shape[1]
    points_m = np.concatenate([body.ends_m.reshape(-1, 3, count), body.head_m[None]])
    horizontal = [np.einsum("pin,i->pn", points_m, view.right) for view in (FRONT, SIDE)]
    left, right = float(np.min(horizontal)) - _BORDER_M, float(np.max(horizontal)) + _BORDER_M
    top = max(float(points_m[:, 2].max()), float(body.head_m[2].max()) + body.head_radius_m)
    return left, right - left, top + _BORDER_M


def _make_axes(size_m: tuple[float, float], inches_per_m: float, dpi: int) -> Any:
    """Return axes without a frame, of this size in metres, that fill their figure."""
    below_m = 0.04
    figure = blank_figure(
        size_m[0] * inches_per_m, (size_m[1] + below_m) * inches_per_m, dpi, _FEATURE
    )
    figure.set_layout_engine("none")
    axis = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axis.set(xlim=(0.0, size_m[0]), ylim=(-below_m, size_m[1]))
    axis.set_axis_off()
    return axis
