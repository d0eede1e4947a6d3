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
    """How it is mounted on the link above, row by row; None if both have the same orientation."""
    axis: int
    """The coordinate about which its joint turns it."""
    sign: float
    """1, or -1 if it turns the other way."""
    moment: tuple[float, float, float]
    """Mass times position: of its own centre of mass, and of all links below, at the next joint."""


class Arms:
    """The arms of a build."""

    def __init__(self, build: Build) -> None:
        tree = _Tree(family_for(build), build)
        chains = [_build_chain(tree, root) for root in tree.roots]
        self.columns: tuple[int, ...] = tuple(
            build.names.index(step.joint.name) for chain in chains for step in chain
        )
        """The columns of the arms' joints, each arm from the shoulder down."""
        self.shoulders: tuple[Shoulder, ...] = tuple(
            shoulder for chain in chains if (shoulder := _find_shoulder(chain, build)) is not None
        )
        self._build_links: list[tuple[tuple[_Link, ...], slice]] = []
        first = 0
        for chain in chains:
            self._build_links.append((_build_links(chain), slice(first, first + len(chain))))
            first += len(chain)

    def gravity_torque_nm(self, angles_rad: Array) -> Array:
        """Return the torque that gravity puts on the arms' joints, in the order of `columns`."""
        angles = angles_rad.tolist()
        torques: list[float] = []
        for links, part in self._build_links:
            torques += _one_arm_nm(links, angles[part])
        return np.array(torques)


# ---- the tree of links --------------------------------------------------------------------------


class _Step(NamedTuple):
    """A joint of an arm, relative to the link of the joint before."""

    joint: Joint
    origin_m: Array
    frame: Array


class _Load(NamedTuple):
    """A link with everything fixed to it, and the arm's next joint."""

    mass_kg: float
    moment: Array
    """Mass times position."""
    following: _Step | None


class _Tree:
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

    def _find_arm_roots(self, link: str, frame: Array) -> list[_Step]:
        """Return the first joint of each arm below a link, in the orientation of the base."""
        roots: list[_Step] = []
        for joint in self._children.get(link, ()):
            turned = frame @ _rotation_matrix(joint.origin_rpy_rad)
            if joint.name in self._driven:
                roots.append(_Step(joint, np.zeros(3), turned))
            else:
                roots += self._find_arm_roots(joint.link, turned)
        return roots

    def load(self, link: str) -> _Load:
        """Return a link with everything fixed to it; joints outside the arm count as fixed at 0.

        If an arm branches, it continues in the first branch; the others are fixed too.
        """
        mass_kg, moment, following = 0.0, np.zeros(3), None
        for mass in self._masses.get(link, ()):
            mass_kg += mass.mass_kg
            moment = moment + mass.mass_kg * np.array(mass.com_m)
        for joint in self._children.get(link, ()):
            origin, frame = np.array(joint.origin_m), _rotation_matrix(joint.origin_rpy_rad)
            if joint.name in self._driven and following is None:
                following = _Step(joint, origin, frame)
                continue
            below = self.load(joint.link)
            mass_kg += below.mass_kg
            moment = moment + below.mass_kg * origin + frame @ below.moment
            if below.following is not None and following is None:
                deeper = below.following
                position = origin + frame @ deeper.origin_m
                following = _Step(deeper.joint, position, frame @ deeper.frame)
        return _Load(mass_kg, moment, following)


class _ChainJoint(NamedTuple):
    """A joint of an arm with the load of its link."""

    joint: Joint
    origin_m: Array
    frame: Array
    load: _Load


def _build_chain(tree: _Tree, root: _Step) -> list[_ChainJoint]:
    """Return an arm's joints from the shoulder down."""
    chain: list[_ChainJoint] = []
    step: _Step | None = root
    while step is not None:
        load = tree.load(step.joint.link)
        chain.append(_ChainJoint(*step, load))
        step = load.following
    return chain


def _find_shoulder(chain: list[_ChainJoint], build: Build) -> Shoulder | None:
    """Return how an arm leans against the hip, if it begins with a pitch and a roll joint."""
    if [placed.joint.axis for placed in chain[:2]] != [Y, X]:
        return None
    pitch, roll = (build.names.index(placed.joint.name) for placed in chain[:2])
    outwards = 1.0 if chain[0].joint.origin_m[1] >= 0.0 else -1.0
    return Shoulder(pitch, roll, outwards, min(HIP_RAD, outwards * build.rest_rad[roll]))


# ---- weight -------------------------------------------------------------------------------------


def _build_links(chain: list[_ChainJoint]) -> tuple[_Link, ...]:
    """Return an arm's links from the shoulder down."""
    turns = [_axis_frame(placed.joint.axis) for placed in chain]
    above = [_UPRIGHT, *(turn for turn, _, _ in turns[:-1])]
    links: list[_Link] = []
    below_kg, below = 0.0, np.zeros(3)
    for placed, (turn, axis, sign), before in reversed(list(zip(chain, turns, above, strict=True))):
        x, y, z = (turn.T @ (placed.load.moment + below)).tolist()
        frame = before.T @ placed.frame @ turn
        straight = np.array_equal(frame, _UPRIGHT)
        rows = None if straight else tuple(frame.ravel().tolist())
        links.append(_Link(rows, axis, sign, (x, y, z)))
        below_kg += placed.load.mass_kg
        below = below_kg * placed.origin_m
    return tuple(reversed(links))


def _axis_frame(axis: Vector) -> tuple[Array, int, float]:
    """Return a frame in which the joint turns about a coordinate axis, its index and its sign."""
    unit = np.array(axis) / np.linalg.norm(axis)
    index = int(np.argmax(np.abs(unit)))
    if abs(unit[index]) == 1.0:
        return _UPRIGHT, index, float(unit[index])
    # Not a coordinate axis of the link: choose one axis along it, and two perpendicular ones.
    side = np.cross(unit, _UPRIGHT[int(np.argmin(np.abs(unit)))])
    side /= np.linalg.norm(side)
    return np.column_stack([side, np.cross(unit, side), unit]), 2, 1.0


def _rotation_matrix(rpy: Vector) -> Array:
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


def _one_arm_nm(links: tuple[_Link, ...], angles_rad: list[float]) -> list[float]:
    """Return the torques from the shoulder down.

    The direction of gravity is passed from link to link down to the wrist, then the loads back up.
    The three axes are written out: this runs 50 times a second, and lists of three cost more than
    the arithmetic.
    """
    x, y, z = 0.0, 0.0, -GRAVITY_M_S2
    seen: list[tuple[float, float, float, float]] = []
    for (frame, axis, sign, _), angle in zip(links, angles_rad, strict=True):
        if frame is not None:
            a, b, c, d, e, f, g, h, j = frame
            x, y, z = a * x + d * y + g * z, b * x + e * y + h * z, c * x + f * y + j * z
        cosine, sine = cos(angle), sign * sin(angle)
        if axis == 0:
            y, z = cosine * y + sine * z, cosine * z - sine * y
            seen.append((cosine, sine, y, z))
        elif axis == 1:
            z, x = cosine * z + sine * x, cosine * x - sine * z
            seen.append((cosine, sine, z, x))
        else:
            x, y = cosine * x + sine * y, cosine * y - sine * x
            seen.append((cosine, sine, x, y))
    torques: list[float] = []
    x = y = z = 0.0
    for (frame, axis, sign, own), (cosine, sine, down_i, down_k) in zip(
        links[::-1], seen[::-1], strict=True
    ):
        own_x, own_y, own_z = own
        x, y, z = own_x + x, own_y + y, own_z + z
        if axis == 0:
            torques.append(sign * (y * down_k - z * down_i))
            y, z = cosine * y - sine * z, cosine * z + sine * y
        elif axis == 1:
            torques.append(sign * (z * down_k - x * down_i))
            z, x = cosine * z - sine * x, cosine * x + sine * z
        else:
            torques.append(sign * (x * down_k - y * down_i))
            x, y = cosine * x - sine * y, cosine * y + sine * x
        if frame is not None:
            a, b, c, d, e, f, g, h, j = frame
            x, y, z = a * x + b * y + c * z, d * x + e * y + f * z, g * x + h * y + j * z
    torques.reverse()
    return torques
