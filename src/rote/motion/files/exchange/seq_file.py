"""Choreonoid's sequences, the format of Unitree's own example that plays a G1's arms.

The file is YAML; a full YAML reader would take minutes for a long motion, and a malicious file
could make it use all memory. Only the subset in these files is read here: a list of components, one
of which holds the joints, with its frames one below the other.
"""

import re

import numpy as np

from rote.motion.files.exchange.contents import (
    Contents,
    list_arm_joints,
    list_joints_in_motor_order,
    read_bytes,
)
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.track import Array

_KEY = re.compile(r"^\s*(?:-\s+)?([A-Za-z_]\w*)\s*:(.*)$")  # `key: value`, `- key: value`
_ITEM = re.compile(r"^(\s*)-(?:\s|$)")  # the begin of an entry of a list
_RATE_KEYS = frozenset({"framerate", "frame_rate"})
_JOINTS = re.compile(r"JointDisplacement|JointPos", re.IGNORECASE)
_MAX_WIDTH = 200


def may_be_first_line(line: str) -> bool:
    """Return whether a sequence may begin with this line."""
    return bool(re.match(r"^\s*(#.*|type\s*:.*|%YAML.*|---.*|components\s*:.*)$", line))


def read_seq(location: FileLocation) -> Contents:
    """Read the frames of the component that holds the joints."""
    try:
        lines = read_bytes(location).decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise location.error("it cannot be read as text in UTF-8") from None
    top_values, components = _read_components(lines, location)
    # If none states that it holds joints, the second one is assumed to.
    candidates = [each for each in components if each.holds_joints] or components[1:2]
    if not candidates or candidates[0].frames is None:
        raise location.error("none of its components holds frames of joints")
    component = candidates[0]
    rows = _read_frames(lines, component, location)
    fps = _read_rate(component.values, location) or _read_rate(top_values, location)
    if component.values.get("hasframetime", "").lower() == "true":
        fps = _compute_rate_hz(rows[:, 0], location)
        rows = rows[:, 1:]
    names = (
        list_arm_joints()
        if rows.shape[1] == len(list_arm_joints())
        else list_joints_in_motor_order(rows.shape[1])
    )
    if names is None:
        raise location.error(
            f"its frames have {rows.shape[1]} numbers; 14 are both arms of a G1, 29 its whole body"
        )
    return Contents(names=names, joints_rad=rows, fps=fps)


class _Component:
    """One entry of the list of components, at this indentation."""

    def __init__(self, indent: int) -> None:
        self.indent = indent
        self.values: dict[str, str] = {}
        """Its values by lower-case key."""
        self.frames: range | None = None
        """The indices of the lines with its frames; None if it has none."""

    @property
    def holds_joints(self) -> bool:
        content = self.values.get("content", "") or self.values.get("purpose", "")
        return bool(_JOINTS.search(content))


def _read_components(
    lines: list[str], location: FileLocation
) -> tuple[dict[str, str], list[_Component]]:
    """Return the values at the top of the file by lower-case key, and the components."""
    top_values: dict[str, str] = {}
    components: list[_Component] = []
    in_components = False
    number = 0
    while number < len(lines):
        line = lines[number]
        number += 1
        if in_components and (item := _ITEM.match(line)):
            indent = len(item.group(1))
            # A deeper entry belongs to a list within a component.
            if not components or indent == components[0].indent:
                components.append(_Component(indent))
        key = _KEY.match(line)
        if key is None:
            continue
        name, value = key.group(1).lower(), key.group(2).strip().strip("\"'")
        if not in_components:
            top_values[name] = value
            in_components = name == "components"
        elif components:
            if name == "frames":
                begin, number = number, _find_end_of_frames(lines, number)
                components[-1].frames = range(begin, number)
            else:
                components[-1].values.setdefault(name, value)
    if not components:
        raise location.error("it has no list of components")
    return top_values, components


def _find_end_of_frames(lines: list[str], number: int) -> int:
    """Return the index of the line after the frames that begin at line `number`.

    It has a key, or only the dash of the next component.
    """
    while number < len(lines) and lines[number].strip() != "-" and not _KEY.match(lines[number]):
        number += 1
    return number


def _read_frames(lines: list[str], component: _Component, location: FileLocation) -> Array:
    """Return the numbers of each frame, (n, width); refuse the first invalid frame."""
    assert component.frames is not None
    begin, end = component.frames.start, component.frames.stop
    frame_lines = [line.split("#", 1)[0] for line in lines[begin:end]]  # without comments
    rows = re.findall(r"\[([^\]\[]*)\]", "\n".join(frame_lines))  # frames like [0.1, 0.2]
    if not rows:
        rows = _flatten_nested(frame_lines)
    if not rows:
        raise location.error("its frames hold no numbers")
    widths = [row.count(",") + 1 for row in rows]
    width = widths[0]
    for number, row_width in enumerate(widths, start=1):
        if row_width != width:
            raise location.error(f"frame {number} has {row_width} numbers, not {width}")
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
    """Return frames of which each number has a line, each frame as numbers with commas.

    A frame begins with `- - ` and its first number; the others follow `- `.
    """
    rows: list[list[str]] = []
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("- - "):
            rows.append([stripped[4:]])
        elif stripped.startswith("- ") and rows:
            rows[-1].append(stripped[2:])
    return [",".join(row) for row in rows]


def _read_rate(values: dict[str, str], location: FileLocation) -> float | None:
    """Return the frames a second that these values state; None if they state none."""
    for name in _RATE_KEYS:
        if name in values:
            try:
                return float(values[name])
            except ValueError:
                raise location.error(f"its frame rate is {values[name]!r:.40}") from None
    return None


def _compute_rate_hz(times_s: Array, location: FileLocation) -> float:
    """Return the rate of frames at these times; refuse uneven ones, apart from rounding."""
    steps = np.diff(times_s)
    if not steps.size or steps.min() <= 0:
        raise location.error("its frame times do not increase")
    if steps.max() - steps.min() > 0.01 * steps.mean() + 1e-6:
        raise location.error("its frames are not evenly spaced; only a constant rate is supported")
    return float(1.0 / steps.mean())
