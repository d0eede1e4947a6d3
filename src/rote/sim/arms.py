"""The simulated arms of any build: their weight, and how they lean against the hip.

An arm is a chain of joints of the parts `arm` and `wrist`. Links behind joints that a build does
not have are fixed and add to the weight on its last joint. The robot stands upright.
"""

from math import cos, sin
from typing import NamedTuple

import numpy as np

from rote.model.family import Build, Family, FixedMass, Joint, Vector, X, Y
from rote.motion.track import Array
from rote.sim.columns import family_for

GRAVITY_M_S2 = 9.81
HIP_RAD = 0.2
"""Roll angle at which an arm touches the hip, unless its rest angle is smaller."""

_ARM_PARTS = ("arm", "wrist")
_UPRIGHT: Array = np.eye(3)


class Shoulder(NamedTuple):
    """An arm that can lean against the hip when it hangs down."""

    pitch: int
    roll: int
    """The columns of its first two joints."""
    outwards: float
    """The sign of a roll away from the body."""
    hip_rad: float
    """The roll at which it touches the hip; positive is outwards."""


class _Link(NamedTuple):
    """The properties of an arm's link that matter for its weight, in its own coordinates."""

    frame: tuple[float, ...] | None
    """Orientation relative to the link above, as a matrix row by row; None if both are the same."""
    axis: int
    """The coordinate about which its joint turns it."""
    sign: float
    """1, or -1 if it turns the other way."""
    moment: tuple[float, float, float]
    """Mass times position, of its own centre of mass and of the mass of all links below, which
    counts as if it were at the next joint.
    """


class Arms:
    """The arms of a build."""

    def __init__(self, build: Build) -> None:
        tree = _LinkTree(family_for(build), build)
        chains = [_build_chain(tree, root) for root in tree.roots]
        self.columns: tuple[int, ...] = tuple(
            build.names.index(link.joint.name) for chain in chains for link in chain
        )
        """The columns of the arms' joints, each arm from the shoulder down."""
        self.shoulders: tuple[Shoulder, ...] = tuple(
            shoulder for chain in chains if (shoulder := _find_shoulder(chain, build)) is not None
        )
        self._links_by_arm: list[tuple[tuple[_Link, ...], slice]] = []
        """For each arm its links, and which of `columns` are its joints."""
        first = 0
        for chain in chains:
            self._links_by_arm.append((_build_links(chain), slice(first, first + len(chain))))
            first += len(chain)

    def gravity_torque_nm(self, angles_rad: Array) -> Array:
        """Return the torque that gravity puts on the arms' joints, in the order of `columns`."""
        angles = angles_rad.tolist()
        torques: list[float] = []
        for links, arm_slice in self._links_by_arm:
            torques += _compute_gravity_torques_nm(links, angles[arm_slice])
        return np.array(torques)


# ---- the tree of links --------------------------------------------------------------------------


class _JointMount(NamedTuple):
    """An arm joint, and where it is mounted on the link of the previous joint."""

    joint: Joint
    origin_m: Array
    frame: Array


class _Load(NamedTuple):
    """Mass and moment of a link with everything fixed to it, and the arm's next joint."""

    mass_kg: float
    moment: Array
    """Mass times position."""
    next_mount: _JointMount | None


class _LinkTree:
    """The links of a family, with the masses they have in one build."""

    def __init__(self, family: Family, build: Build) -> None:
        self._masses: dict[str, list[FixedMass]] = {}
        for mass in family.masses(build):
            self._masses.setdefault(mass.link, []).append(mass)
        self._children: dict[str, list[Joint]] = {}
        for joint in family.joints:
            self._children.setdefault(joint.parent, []).append(joint)
        self._driven = {joint.name for joint in build.joints if joint.part in _ARM_PARTS}
        self.roots = self._find_arm_roots(family.body.base, _UPRIGHT)

    def _find_arm_roots(self, link: str, frame: Array) -> list[_JointMount]:
        """Return the first joint of each arm below a link; `frame` is the link's orientation."""
        roots: list[_JointMount] = []
        for joint in self._children.get(link, ()):
            joint_frame = frame @ _make_rotation_matrix(joint.origin_rpy_rad)
            if joint.name in self._driven:
                # Only the orientation of an arm's root matters for its weight.
                roots.append(_JointMount(joint, np.zeros(3), joint_frame))
            else:
                roots += self._find_arm_roots(joint.link, joint_frame)
        return roots

    def sum_load(self, link: str) -> _Load:
        """Sum the masses of a link and of all that is fixed to it; other joints are fixed at 0.

        If an arm branches, it continues in the first branch; the others are fixed too.
        """
        mass_kg, moment, next_mount = 0.0, np.zeros(3), None
        for mass in self._masses.get(link, ()):
            mass_kg += mass.mass_kg
            moment = moment + mass.mass_kg * np.array(mass.com_m)
        for joint in self._children.get(link, ()):
            origin, frame = np.array(joint.origin_m), _make_rotation_matrix(joint.origin_rpy_rad)
            if joint.name in self._driven and next_mount is None:
                next_mount = _JointMount(joint, origin, frame)
                continue
            below = self.sum_load(joint.link)
            mass_kg += below.mass_kg
            moment = moment + below.mass_kg * origin + frame @ below.moment
            if below.next_mount is not None and next_mount is None:
                mount_below = below.next_mount
                position = origin + frame @ mount_below.origin_m
                next_mount = _JointMount(mount_below.joint, position, frame @ mount_below.frame)
        return _Load(mass_kg, moment, next_mount)


class _ChainJoint(NamedTuple):
    """A joint of an arm with the load of its link."""

    joint: Joint
    origin_m: Array
    frame: Array
    load: _Load


def _build_chain(tree: _LinkTree, root: _JointMount) -> list[_ChainJoint]:
    """Return an arm's joints from the shoulder down."""
    chain: list[_ChainJoint] = []
    mount: _JointMount | None = root
    while mount is not None:
        load = tree.sum_load(mount.joint.link)
        chain.append(_ChainJoint(*mount, load))
        mount = load.next_mount
    return chain


def _find_shoulder(chain: list[_ChainJoint], build: Build) -> Shoulder | None:
    """Return an arm's shoulder, or None if it does not begin with a pitch and a roll joint."""
    if [link.joint.axis for link in chain[:2]] != [Y, X]:
        return None
    pitch, roll = (build.names.index(link.joint.name) for link in chain[:2])
    # The y axis points to the left, so a positive roll moves a left arm outwards.
    outwards = 1.0 if chain[0].joint.origin_m[1] >= 0.0 else -1.0
    return Shoulder(pitch, roll, outwards, min(HIP_RAD, outwards * build.rest_rad[roll]))


# ---- weight -------------------------------------------------------------------------------------


def _build_links(chain: list[_ChainJoint]) -> tuple[_Link, ...]:
    """Return an arm's links from the shoulder down, each with the load of all links below.

    The coordinates of each link are turned so that one of them is the axis of its joint.
    """
    axis_frames = [_find_axis_frame(link.joint.axis) for link in chain]
    parent_frames = [_UPRIGHT, *(frame for frame, _, _ in axis_frames[:-1])]
    from_hand = reversed(list(zip(chain, axis_frames, parent_frames, strict=True)))
    links: list[_Link] = []
    mass_below_kg, moment_below = 0.0, np.zeros(3)
    for link, (axis_frame, axis, sign), parent_frame in from_hand:
        x, y, z = (axis_frame.T @ (link.load.moment + moment_below)).tolist()
        frame = parent_frame.T @ link.frame @ axis_frame
        rows = None if np.array_equal(frame, _UPRIGHT) else tuple(frame.ravel().tolist())
        links.append(_Link(rows, axis, sign, (x, y, z)))
        # Seen from the link above, all mass below is at the joint; what it weighs about the joint
        # depends on the angles.
        mass_below_kg += link.load.mass_kg
        moment_below = mass_below_kg * link.origin_m
    return tuple(reversed(links))


def _find_axis_frame(axis: Vector) -> tuple[Array, int, float]:
    """Return a frame that contains the joint's axis, the index of that axis, and its sign."""
    unit = np.array(axis) / np.linalg.norm(axis)
    index = int(np.argmax(np.abs(unit)))
    if abs(unit[index]) == 1.0:
        return _UPRIGHT, index, float(unit[index])
    # Not a coordinate axis of the link: choose one axis along it, and two perpendicular ones.
    side = np.cross(unit, _UPRIGHT[int(np.argmin(np.abs(unit)))])
    side /= np.linalg.norm(side)
    return np.column_stack([side, np.cross(unit, side), unit]), 2, 1.0


def _make_rotation_matrix(rpy: Vector) -> Array:
    """Return the matrix that rotates about x by roll, then y by pitch, then z by yaw."""
    roll, pitch, yaw = rpy
    cr, sr, cp, sp = np.cos(roll), np.sin(roll), np.cos(pitch), np.sin(pitch)
    cy, sy = np.cos(yaw), np.sin(yaw)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def _compute_gravity_torques_nm(links: tuple[_Link, ...], angles_rad: list[float]) -> list[float]:
    """Return the gravity torques on one arm's joints from the shoulder down.

    The first loop rotates gravity into each link's frame, from the shoulder down; the second sums
    the loads from the hand up. The axes are written out because loops over them would be slower.
    """
    x, y, z = 0.0, 0.0, -GRAVITY_M_S2
    # By joint: cosine and sine of its angle, and the two components of gravity across its axis.
    rotations: list[tuple[float, float, float, float]] = []
    for (frame, axis, sign, _), angle in zip(links, angles_rad, strict=True):
        if frame is not None:  # multiply by the transposed 3 x 3 matrix
            a, b, c, d, e, f, g, h, j = frame
            x, y, z = a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + j * z
        cosine, sine = cos(angle), sign * sin(angle)
        if axis == 0:
            y, z = cosine * y + sine * z, cosine * z - sine * y
            rotations.append((cosine, sine, y, z))
        elif axis == 1:
            z, x = cosine * z + sine * x, cosine * x - sine * z
            rotations.append((cosine, sine, z, x))
        else:
            x, y = cosine * x + sine * y, cosine * y - sine * x
            rotations.append((cosine, sine, x, y))
    torques: list[float] = []
    x = y = z = 0.0
    for (frame, axis, sign, moment), (cosine, sine, gravity_1, gravity_2) in zip(
        links[::-1], rotations[::-1], strict=True
    ):
        moment_x, moment_y, moment_z = moment
        x, y, z = moment_x + x, moment_y + y, moment_z + z
        if axis == 0:
            torques.append(sign * (y * gravity_2 - z * gravity_1))
            y, z = cosine * y - sine * z, cosine * z + sine * y
        elif axis == 1:
            torques.append(sign * (z * gravity_2 - x * gravity_1))
            z, x = cosine * z - sine * x, cosine * x + sine * z
        else:
            torques.append(sign * (x * gravity_2 - y * gravity_1))
            x, y = cosine * x - sine * y, cosine * y + sine * x
        if frame is not None:  # multiply by the 3 x 3 matrix
            a, b, c, d, e, f, g, h, j = frame
            x, y, z = a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + j * z
    torques.reverse()
    return torques
