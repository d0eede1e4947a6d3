"""The poses of all links of a G1 in the world during a motion, which trainers need.

Links are in the order of the joints' table, the pelvis first; that is the order of mjlab's bodies.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rote.model import registry
from rote.model.family import Build
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.body.root_path import RootPath
from rote.motion.track import Array, Track

_SAFE = 0.01  # four times the square of w; below it, w is not divided by
_SOLE_SAMPLES = 500  # of a motion are looked at for how high its base stands


class Bodies(NamedTuple):
    """Every link at every sample, in the world; samples are the last axis, for speed."""

    names: tuple[str, ...]
    position_m: Array
    """(3, links, n)."""
    quaternion_wxyz: Array
    """(4, links, n)."""


def body_of(build: Build) -> Kinematics:
    """Return the body of a build's family."""
    family = registry.family_of(build)
    assert family is not None
    return kinematics_of(family)


def bodies(track: Track, root: RootPath, build: Build) -> Bodies:
    """Return the pose of each link; the first is the base, which follows the root."""
    body = body_of(build)
    frames = body.forward(body.poses(track, build=build))
    base, count = _rotation_matrices(root.quaternion_wxyz), len(track)
    places = np.empty((3, 1 + len(body.links), count))
    places[:, 0] = root.position_m.T
    for axis in range(3):
        turned = sum(base[axis][k] * frames.positions_m[:, k] for k in range(3))
        places[axis, 1:] = turned + root.position_m[:, axis]
    turns = np.empty((4, 1 + len(body.links), count))
    turns[:, 0] = root.quaternion_wxyz.T
    turns[:, 1:] = _multiply_quaternions(root.quaternion_wxyz.T, _quaternions_of(frames.turns))
    return Bodies((body.family.body.base, *body.links), places, turns)


def speeds(values: Array, step_s: float) -> Array:
    """Return the rate of change of evenly spaced values along the last axis."""
    rates = np.empty_like(values)
    rates[..., 1:-1] = (values[..., 2:] - values[..., :-2]) / (2.0 * step_s)
    rates[..., 0] = (values[..., 1] - values[..., 0]) / step_s
    rates[..., -1] = (values[..., -1] - values[..., -2]) / step_s
    return rates


def angular_velocities(quaternion_wxyz: Array, step_s: float) -> Array:
    """Return the angular velocity in the world of (4, links, n) orientations, (3, links, n)."""
    last = quaternion_wxyz.shape[-1] - 1
    at = np.arange(last + 1)
    after = quaternion_wxyz[..., np.minimum(at + 1, last)]
    before = quaternion_wxyz[..., np.maximum(at - 1, 0)]
    w, x, y, z = _multiply_quaternions(after, (before[0], -before[1], -before[2], -before[3]))
    sine = np.sqrt(x * x + y * y + z * z)
    angle = 2.0 * np.arctan2(sine, np.abs(w))
    share = np.where(sine > 1e-12, angle / np.maximum(sine, 1e-12), 2.0) * np.where(
        w < 0, -1.0, 1.0
    )
    share /= np.where((at == 0) | (at == last), 1.0, 2.0) * step_s
    return np.stack([x * share, y * share, z * share])


def standing_root(track: Track, build: Build) -> RootPath:
    """Return the root of a robot that stands still: upright, with its soles on the floor."""
    body = body_of(build)
    every = max(len(track) // _SOLE_SAMPLES, 1)
    frames = body.forward(body.poses(track, build=build)[::every])
    soles = [
        float(body.at(frames, (foot.link, corner))[2].min())
        for foot in body.family.body.feet
        for corner in foot.corners_m
    ]
    return RootPath.standing(len(track), -min(soles) if soles else 0.0)


def _multiply_quaternions(a: Sequence[Array] | Array, b: Sequence[Array] | Array) -> Array:
    """Return products of quaternions; w, x, y and z are the first axis."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return np.stack(
        [
            aw * bw - ax * bx - ay * by - az * bz,
            aw * bx + ax * bw + ay * bz - az * by,
            aw * by - ax * bz + ay * bw + az * bx,
            aw * bz + ax * by - ay * bx + az * bw,
        ]
    )


def _rotation_matrices(quaternion_wxyz: Array) -> list[list[Array]]:
    """Return the rows of the rotation matrices of (n, 4) quaternions, each entry (n,)."""
    w, x, y, z = quaternion_wxyz.T
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]


def _quaternions_of(turns: Array) -> Array:
    """Return the quaternions, (4, links, n), of rotation matrices, (links, 3, 3, n)."""
    xx, yy, zz = (turns[:, index, index] for index in range(3))
    square = 1.0 + xx + yy + zz  # four times that of w
    twice = np.sqrt(np.maximum(square, _SAFE))
    found = np.stack(
        [
            twice / 2.0,
            (turns[:, 2, 1] - turns[:, 1, 2]) / (2.0 * twice),
            (turns[:, 0, 2] - turns[:, 2, 0]) / (2.0 * twice),
            (turns[:, 1, 0] - turns[:, 0, 1]) / (2.0 * twice),
        ]
    )
    for link, sample in np.argwhere(square < _SAFE).tolist():  # about half a turn: w is near 0
        found[:, link, sample] = _one_quaternion(turns[link, :, :, sample])
    return found


def _one_quaternion(turn: Array) -> Array:
    """Return the quaternion of one matrix, divided by its largest component."""
    x, y, z = turn.diagonal()
    a, b, c = turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]
    d, e, f = turn[0, 1] + turn[1, 0], turn[0, 2] + turn[2, 0], turn[1, 2] + turn[2, 1]
    rows = np.array(
        [
            [1 + x + y + z, a, b, c],
            [a, 1 + x - y - z, d, e],
            [b, d, 1 - x + y - z, f],
            [c, e, f, 1 - x - y + z],
        ]
    )
    largest = int(rows.diagonal().argmax())
    return np.asarray(rows[largest] / (2.0 * np.sqrt(rows[largest, largest])))
