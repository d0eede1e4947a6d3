"""Motions of Kimodo and ARDY for a G1, as NPZ: a rotation matrix for each bone of a skeleton.

Their world is y up and z forward. The skeleton has a bone for the pelvis, one for each joint, and
one for each toe and hand, which no motor moves. A rotation matrix turns a bone against its parent.
In the rest pose of the skeleton all frames of the links have the axes of the world, so the matrix
also holds the rotation with which a joint is mounted on its parent.

Motions that Kimodo generates turn a joint after its mounting, as the robot does. Motions that it
converted from angles are mounted after the turn. The two differ for joints whose axis is tilted by
the mounting; the reading that leaves less of the rotations unexplained is used.
"""

import numpy as np

from rote.model import registry
from rote.model.family import Joint
from rote.motion.body.kinematics import rotation
from rote.motion.files.exchange.bodies import to_quaternions
from rote.motion.files.exchange.contents import Contents
from rote.motion.files.exchange.npz_motion import open_arrays, read_finite, read_fps
from rote.motion.files.metadata import FileLocation, check_length
from rote.motion.files.npz_file import NpzArrays
from rote.motion.track import Array

POSITIONS, _LOCAL, _GLOBAL = "posed_joints", "local_rot_mats", "global_rot_mats"
ROTATIONS = (_LOCAL, _GLOBAL)
"""Rotations against the parent bone, or against the world. A file is recognised by `POSITIONS` and
one of these arrays."""

_ROOT = "root_positions"  # of the pelvis; without it, the first of `POSITIONS`
_LIMBS = (6, 6, 3, 7, 7)
"""The joints of each limb in the order of the motors: legs, waist and arms."""
_END_BONES = (1, 1, 0, 1, 1)
"""The bones at the end of each limb that no motor moves: toes and hands."""
_BONE_COUNT = 1 + sum(_LIMBS) + sum(_END_BONES)
_HUMAN_SKELETONS = {77: "SOMA", 30: "SOMA", 22: "SMPL-X"}
_AXES = [2, 0, 1]  # the axes of the file that are x, y and z of the robot
_MAX_SKEW = 0.02  # largest error in the products of a matrix's columns
_NOTED_RAD = 0.1  # a larger residual rotation, which no joint can make, gets a note


def read_kimodo_npz(location: FileLocation) -> Contents:
    """Read the rotations of 34 bones as the angles of 29 joints."""
    with open_arrays(location, (POSITIONS, *ROTATIONS, _ROOT)) as arrays:
        rotations, position = _read_rotations(arrays, location)
        fps = read_fps(arrays, location)
    body = registry.build_named("g1-29").joints
    angles, residuals_rad = _find_angles(body, rotations)
    worst = int(residuals_rad.argmax())
    worst_rad = residuals_rad[worst]
    note = (
        f"bones turn in ways that no joint can, {body[worst].name} by up to "
        f"{worst_rad:.2f} rad; only the turn about each joint's axis was read"
    )
    return Contents(
        names=tuple(joint.name for joint in body),
        joints_rad=angles,
        fps=fps,
        position_m=position[:, _AXES],
        quaternions=to_quaternions(rotations[:, :1].transpose(1, 2, 3, 0))[:, 0].T,
        notes=(note,) if worst_rad > _NOTED_RAD else (),
    )


def _list_bone_indices() -> list[int]:
    """Return the index of each joint's bone, in the order of the motors."""
    indices: list[int] = []
    bone = 1  # after the pelvis
    for joints, ends in zip(_LIMBS, _END_BONES, strict=True):
        indices += range(bone, bone + joints)
        bone += joints + ends
    return indices


def _read_rotations(arrays: NpzArrays, location: FileLocation) -> tuple[Array, Array]:
    """Return the rotations of the bones, and the position of the pelvis.

    The rotations, (n, 30, 3, 3), are those of the pelvis and of each joint's bone against its
    parent, in the axes of the robot. The position, (n, 3), is in the axes of the file.
    """
    name = _GLOBAL if _GLOBAL in arrays and _LOCAL not in arrays else _LOCAL
    shape = arrays.header(name).shape
    if len(shape) == 4 and shape[1] in _HUMAN_SKELETONS:
        raise location.error(
            f"it is a motion of a person: {shape[1]} bones of {_HUMAN_SKELETONS[shape[1]]}",
            "Generate it for a G1, or retarget it first.",
        )
    if len(shape) != 4 or shape[1:] != (_BONE_COUNT, 3, 3):
        raise location.error(f"its {name} are of shape {shape}, not (n, {_BONE_COUNT}, 3, 3)")
    check_length(shape[0], _BONE_COUNT * 9, location)
    position_name = _ROOT if _ROOT in arrays else POSITIONS
    expected = (shape[0], 3) if position_name == _ROOT else (shape[0], _BONE_COUNT, 3)
    if arrays.header(position_name).shape != expected:
        raise location.error(
            f"its {position_name} are of shape {arrays.header(position_name).shape}, not {expected}"
        )
    position = read_finite(arrays, position_name, location)
    rotations = read_finite(arrays, name, location)[:, [0, *_list_bone_indices()]]
    _check_rotations(rotations, name, location)
    # From the axes of the file to those of the robot: the same order for rows and columns.
    rotations = rotations[..., _AXES, :][..., :, _AXES]
    if name == _GLOBAL:  # against the world: make them rotations against the parent
        parent_rotations = rotations[:, _list_parent_indices()]
        rotations[:, 1:] = parent_rotations.swapaxes(-1, -2) @ rotations[:, 1:]
    return rotations, position if position_name == _ROOT else position[:, 0]  # 0 is the pelvis


def _check_rotations(rotations: Array, name: str, location: FileLocation) -> None:
    """Refuse matrices that are not rotations: perpendicular columns of length 1, not mirrored."""
    skew = np.abs(rotations.swapaxes(-1, -2) @ rotations - np.eye(3)).max(axis=(2, 3))
    is_invalid = ~((skew <= _MAX_SKEW) & (np.linalg.det(rotations) > 0)).all(axis=1)
    if is_invalid.any():
        raise location.error(
            f"its {name} are not rotations in sample {int(is_invalid.argmax()) + 1}"
        )


def _list_parent_indices() -> list[int]:
    """Return the index of each joint's parent: 0 is the pelvis, the joints begin at 1."""
    body = registry.build_named("g1-29").joints
    links = [joint.link for joint in body]
    return [1 + links.index(joint.parent) if joint.parent in links else 0 for joint in body]


def _find_angles(body: tuple[Joint, ...], rotations: Array) -> tuple[Array, Array]:
    """Return the angles, (n, joints), and the largest residual rotation of each joint, in rad.

    Of both readings that the module describes, it uses the one with smaller residuals.
    """
    mounts = np.array([rotation(joint.origin_rpy_rad) for joint in body])
    axes = np.array([joint.axis for joint in body])
    unmount = mounts.swapaxes(-1, -2)
    mounted_first, turned_first = unmount @ rotations[:, 1:], rotations[:, 1:] @ unmount
    readings = [_split_rotation(each, axes) for each in (mounted_first, turned_first)]
    angles, residuals_rad = min(readings, key=lambda reading: float(np.square(reading[1]).sum()))
    return angles, residuals_rad.max(axis=0, initial=0.0)


def _split_rotation(rotations: Array, axes: Array) -> tuple[Array, Array]:
    """Return the angle about each axis that comes nearest to a rotation, and the angle left over.

    `rotations` is (n, joints, 3, 3), `axes` (joints, 3), both results are (n, joints), in rad.
    """
    # The rotation by minus the angle, after this one, has the trace
    # axis_share + sine * sin(angle) + cosine * cos(angle), which is largest at atan2(sine, cosine).
    trace = np.trace(rotations, axis1=-2, axis2=-1)
    axis_share = np.einsum("ji,njik,jk->nj", axes, rotations, axes)
    spin = np.stack([rotations[..., (k + 2) % 3, (k + 1) % 3] for k in range(3)], axis=-1)
    spin -= np.stack([rotations[..., (k + 1) % 3, (k + 2) % 3] for k in range(3)], axis=-1)
    sine, cosine = (spin * axes).sum(axis=-1), trace - axis_share
    # The trace of a rotation is 1 + 2 * the cosine of its angle.
    residual_cosine = (np.hypot(sine, cosine) + axis_share - 1.0) / 2.0
    return np.arctan2(sine, cosine), np.arccos(np.clip(residual_cosine, -1.0, 1.0))
