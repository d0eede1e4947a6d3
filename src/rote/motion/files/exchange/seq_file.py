"""Choreonoid's sequences, the format of Unitree's own example that plays a G1's arms.

The file is YAML; a full YAML reader would take minutes for a long motion, and a malicious file
could make it use all memory. Only the subset in these files is read here: a list of components, one
of which holds the joints, with its frames one below the other.
"""

import re

import numpy as np

from rote.motion.files.exchange.contents import Contents, arm_joints, joints_in_order, read_bytes
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.track import Array

_KEY = re.compile(r"^\s*(?:-\s+)?([A-Za-z_]\w*)\s*:(.*)$")
_ITEM = re.compile(r"^(\s*)-(?:\s|$)")
_RATE = frozenset({"framerate", "frame_rate"})
_JOINTS = re.compile(r"JointDisplacement|JointPos", re.IGNORECASE)
_MAX_WIDTH = 200


def is_first_line(line: str) -> bool:
    """Whether a line may be the first line of such a file."""
    return bool(re.match(r"^\s*(#.*|type\s*:.*|%YAML.*|---.*|components\s*:.*)$", line))


def read_seq(location: FileLocation) -> Contents:
    """Read the component that holds the joints."""
    try:
        lines = read_bytes(location).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise location.error("it cannot be read as text in UTF-8") from None
    top, parts = _read_components(lines, location)
    chosen = [part for part in parts if part.holds_joints] or parts[1:2]
    if not chosen or chosen[0].frames is None:
        raise location.error("none of its components holds frames of joints")
    part = chosen[0]
    rows = _read_frames(lines, part, location)
    fps = _read_rate(part.values, location) or _read_rate(top, location)
    if part.values.get("hasframetime", "").lower() == "true":
        rows, fps = rows[:, 1:], _compute_rate_hz(rows[:, 0], location)
    names = arm_joints() if rows.shape[1] == len(arm_joints()) else joints_in_order(rows.shape[1])
    if names is None:
        raise location.error(
            f"its frames have {rows.shape[1]} numbers; 14 are both arms of a G1, 29 its whole body"
        )
    return Contents(names=names, joints_rad=rows, fps=fps)


class _Component:
    """One entry of the list of components: its keys, and where its frames are."""

    def __init__(self, indent: int) -> None:
        self.indent = indent
        self.values: dict[str, str] = {}
        self.frames: range | None = None

    @property
    def holds_joints(self) -> bool:
        content = self.values.get("content", "") or self.values.get("purpose", "")
        return bool(_JOINTS.search(content))


def _read_components(
    lines: list[str], location: FileLocation
) -> tuple[dict[str, str], list[_Component]]:
    """Return the keys at the top, and the components with the lines of their frames."""
    top: dict[str, str] = {}
    parts: list[_Component] = []
    inside = False
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if inside and (item := _ITEM.match(line)):
            indent = len(item.group(1))
            if not parts or indent == parts[0].indent:
                parts.append(_Component(indent))
        key = _KEY.match(line)
        if key is None:
            continue
        name, value = key.group(1).lower(), key.group(2).strip().strip("\"'")
        if not inside:
            top[name] = value
            inside = name == "components"
        elif parts:
            if name == "frames":
                begin, number = number, _end_of_frames(lines, number)
                parts[-1].frames = range(begin, number)
            else:
                parts[-1].values.setdefault(name, value)
    if not parts:
        raise location.error("it has no list of components")
    return top, parts


def _end_of_frames(lines: list[str], number: int) -> int:
    """Return the line after the frames that begin at a line: the next key or entry."""
    while number < len(lines) and lines[number].strip() != "-" and not _KEY.match(lines[number]):
        number += 1
    return number


def _read_frames(lines: list[str], part: _Component, location: FileLocation) -> Array:
    assert part.frames is not None
    begin, end = part.frames.start, part.frames.stop
    some = [line.split("#", 1)[0] for line in lines[begin:end]]
    text = "\n".join(some)
    rows = re.findall(r"\[([^\]\[]*)\]", text)
    if not rows:
        rows = _flatten_nested(some)
    if not rows:
        raise location.error("its frames hold no numbers")
    widths = [row.count(",") for row in rows]
    odd = next((number for number, width in enumerate(widths) if width != widths[0]), None)
    if odd is not None:
        raise location.error(f"frame {odd + 1} has {widths[odd] + 1} numbers, not {widths[0] + 1}")
    width = widths[0] + 1
    if width > _MAX_WIDTH:
        raise location.error(f"its frames have {width} numbers")
    check_length(len(rows), width, location)
    try:
        values = np.array(list(map(float, ",".join(rows).split(","))))
    except ValueError as error:
        raise location.error(f"a frame cannot be read: {error!s:.80}") from None
    if not np.isfinite(values).all():
        sample = int(np.argmin(np.isfinite(values))) // width
        raise location.error(f"frame {sample + 1} holds something that is not a number")
    return values.reshape(len(rows), width)


def _flatten_nested(lines: list[str]) -> list[str]:
    """Return frames that are written as lists below lists, each as numbers with commas."""
    rows: list[list[str]] = []
    for line in lines:
        bare = line.strip()
        if bare.startswith("- - "):
            rows.append([bare[4:]])
        elif bare.startswith("- ") and rows:
            rows[-1].append(bare[2:])
    return [",".join(row) for row in rows]


def _read_rate(values: dict[str, str], location: FileLocation) -> float | None:
    for name in _RATE:
        if name in values:
            try:
                return float(values[name])
            except ValueError:
                raise location.error(f"its frame rate is {values[name]!r:.40}") from None
    return None


def _compute_rate_hz(times_s: Array, location: FileLocation) -> float:
    steps = np.diff(times_s)
    if not steps.size or steps.min() <= 0:
        raise location.error("its frame times do not increase")
    if steps.max() - steps.min() > 0.01 * steps.mean() + 1e-6:
        raise location.error("its frames are not evenly spaced; only a constant rate is supported")
    return float(1.0 / steps.mean())
