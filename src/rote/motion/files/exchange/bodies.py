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

_MIN_FOUR_W_SQUARED = 0.01  # below this, dividing by w is too inexact
_SOLE_SAMPLES = 500  # about as many samples of a motion determine the height of its base


class LinkPoses(NamedTuple):
    """The pose of each link in the world; samples are the last axis, for speed."""

    names: tuple[str, ...]
    position_m: Array
    """(3, links, n)."""
    quaternion_wxyz: Array
    """(4, links, n)."""


def _get_kinematics(build: Build) -> Kinematics:
    """Return the kinematics of a build's family."""
    family = registry.family_of(build)
    assert family is not None
    return kinematics_of(family)


def compute_link_poses(track: Track, root: RootPath, build: Build) -> LinkPoses:
    """Return the pose of each link in the world; the first is the base, which follows `root`."""
    body = _get_kinematics(build)
    frames = body.forward(body.poses(track, build=build))
    base_rotation = _make_rotation_matrices(root.quaternion_wxyz)
    positions = np.empty((3, 1 + len(body.links), len(track)))
    positions[:, 0] = root.position_m.T
    for axis in range(3):
        rotated = sum(base_rotation[axis][k] * frames.positions_m[:, k] for k in range(3))
        positions[axis, 1:] = rotated + root.position_m[:, axis]
    quaternions = np.empty((4, 1 + len(body.links), len(track)))
    quaternions[:, 0] = root.quaternion_wxyz.T
    quaternions[:, 1:] = _multiply_quaternions(
        root.quaternion_wxyz.T, to_quaternions(frames.rotations)
    )
    return LinkPoses((body.family.body.base, *body.links), positions, quaternions)


def compute_speeds(values: Array, step_s: float) -> Array:
    """Return the rate of change, per second, of evenly spaced values along the last axis.

    It is the central difference, and at both ends the difference to the only neighbour.
    """
    rates = np.empty_like(values)
    rates[..., 1:-1] = (values[..., 2:] - values[..., :-2]) / (2.0 * step_s)
    rates[..., 0] = (values[..., 1] - values[..., 0]) / step_s
    rates[..., -1] = (values[..., -1] - values[..., -2]) / step_s
    return rates


def compute_angular_velocities(quaternion_wxyz: Array, step_s: float) -> Array:
    """Return the angular velocities in rad/s, (3, links, n), of (4, links, n) orientations.

    Each is the rotation from the sample before to the sample after, divided by the time between.
    """
    last = quaternion_wxyz.shape[-1] - 1
    samples = np.arange(last + 1)
    after = quaternion_wxyz[..., np.minimum(samples + 1, last)]
    before = quaternion_wxyz[..., np.maximum(samples - 1, 0)]
    inverse_before = (before[0], -before[1], -before[2], -before[3])
    w, x, y, z = _multiply_quaternions(after, inverse_before)
    # (x, y, z) is the axis times the sine of half the angle. A small angle is twice its half sine.
    half_sine = np.sqrt(x * x + y * y + z * z)
    angle = 2.0 * np.arctan2(half_sine, np.abs(w))
    scale = np.where(half_sine > 1e-12, angle / np.maximum(half_sine, 1e-12), 2.0)
    scale *= np.where(w < 0, -1.0, 1.0)  # q and -q are the same rotation
    is_end = (samples == 0) | (samples == last)
    scale /= np.where(is_end, 1.0, 2.0) * step_s
    return np.stack([x * scale, y * scale, z * scale])


def make_standing_root(track: Track, build: Build) -> RootPath:
    """Return the path of a base that stands still: upright, with its lowest sole on the floor."""
    body = _get_kinematics(build)
    step = max(len(track) // _SOLE_SAMPLES, 1)
    frames = body.forward(body.poses(track, build=build)[::step])
    lowest_m = [
        float(body.at(frames, (foot.link, corner))[2].min())
        for foot in body.family.body.feet
        for corner in foot.corners_m
    ]
    return RootPath.standing(len(track), -min(lowest_m) if lowest_m else 0.0)


def _multiply_quaternions(a: Sequence[Array] | Array, b: Sequence[Array] | Array) -> Array:
    """Return the products of quaternions, whose first axis is w, x, y and z."""
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


def _make_rotation_matrices(quaternion_wxyz: Array) -> list[list[Array]]:
    """Return the rotation matrices of (n, 4) quaternions as rows of entries, each (n,)."""
    w, x, y, z = quaternion_wxyz.T
    return [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]


def to_quaternions(rotations: Array) -> Array:
    """Return the quaternions, (4, links, n), of rotation matrices, (links, 3, 3, n)."""
    xx, yy, zz = (rotations[:, index, index] for index in range(3))
    four_w_squared = 1.0 + xx + yy + zz  # w is the scalar part
    twice_w = np.sqrt(np.maximum(four_w_squared, _MIN_FOUR_W_SQUARED))
    quaternions = np.stack(
        [
            twice_w / 2.0,
            (rotations[:, 2, 1] - rotations[:, 1, 2]) / (2.0 * twice_w),
            (rotations[:, 0, 2] - rotations[:, 2, 0]) / (2.0 * twice_w),
            (rotations[:, 1, 0] - rotations[:, 0, 1]) / (2.0 * twice_w),
        ]
    )
    # At about half a turn w is near 0.
    for link, sample in np.argwhere(four_w_squared < _MIN_FOUR_W_SQUARED).tolist():
        quaternions[:, link, sample] = _to_quaternion(rotations[link, :, :, sample])
    return quaternions


def _to_quaternion(m: Array) -> Array:
    """Return the quaternion of one (3, 3) rotation matrix, computed from its largest component."""
    x, y, z = m.diagonal()
    a, b, c = m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]
    d, e, f = m[0, 1] + m[1, 0], m[0, 2] + m[2, 0], m[1, 2] + m[2, 1]
    # Row i is the quaternion times 4 times its component i.
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
