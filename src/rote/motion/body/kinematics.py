"""The positions of the links, their masses and centres of mass, for many poses at once.

Everything is in the frame of the family's base link, x forward, y left, z up. A pose has one angle
for each joint of the family's table; `Kinematics.poses` makes them from a track that has fewer.
"""

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rote.errors import BadRequestError
from rote.model.family import Build, Family, Joint, Point, Vector
from rote.motion.track import Array, Track

Pose = Sequence[float] | Array
"""Angles in rad, in the columns of a build."""

GRAVITY_M_S2 = 9.81

# For a rotation about axis x, y or z: the two columns of the orientation that the angle mixes.
_MIXED_COLUMNS = {0: (1, 2), 1: (2, 0), 2: (0, 1)}
_BASE = -1  # the index of the base link, which no joint moves
_HAND_PARTS = frozenset({"wrist", "finger"})


class Frames(NamedTuple):
    """Every link in every pose, by the index of its joint."""

    positions_m: Array
    """The position of each link's joint, (joints, 3, n)."""
    rotations: Array
    """The orientation of each link: columns are its axes; (joints, 3, 3, n)."""

    def points_m(self, link: int, point_m: ArrayLike) -> Array:
        """Return the position of a point of a link in every pose, (3, n)."""
        point = np.asarray(point_m, dtype=np.float64)
        offset_m = np.einsum("ijn,j->in", self.rotations[link], point)
        return np.asarray(self.positions_m[link] + offset_m)


class LinkMasses(NamedTuple):
    """The mass of each link with everything fixed to it, and its centre in the link's frame."""

    masses_kg: Array
    """(joints,)."""
    centres_m: Array
    """(joints, 3)."""


class _Hinge(NamedTuple):
    """A joint in the form that `Kinematics.update` needs."""

    parent: int
    """The index of the link that it is mounted on; -1 for the base."""
    origin_m: Vector
    tilt: Array | None
    """The orientation of its mounting on the parent, (3, 3); None if it is not turned."""
    axis: Array
    """A unit vector."""
    coordinate_axis: tuple[int, float] | None
    """The index and sign of the coordinate axis about which it turns; None for an oblique axis."""


def rotation(rpy_rad: Vector) -> Array:
    """Return the (3, 3) matrix of a roll, a pitch and a yaw about fixed axes, in this order."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy_rad), np.sin(rpy_rad)
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def whole_pose(start_pose: Pose | None, build: Build) -> Array:
    """Return `start_pose`, by default the rest pose of a build, as an array; refuse a wrong one."""
    pose: Array = np.array(build.rest_rad if start_pose is None else start_pose, dtype=np.float64)
    count = len(build.names)
    if pose.shape != (count,) or not np.isfinite(pose).all():
        raise BadRequestError(
            f"a pose is {count} angles in rad for the {count} joints of {build.name}, "
            f"not these {pose.size}: {pose}",
            "Give the positions of all joints in the robot's order.",
        )
    return pose


class Kinematics:
    """The body of a family, computed once from its joints; get it from `kinematics_of`."""

    def __init__(self, family: Family) -> None:
        self.family = family
        self.joints = family.joints
        self.links = tuple(joint.link for joint in family.joints)
        """The links, by the index of their joint."""
        self.order = tuple(range(len(family.joints)))
        """The joints' indices: in a family each joint comes after that of its parent link."""
        self.parents = tuple(
            self.links.index(joint.parent) if joint.parent in self.links else _BASE
            for joint in family.joints
        )
        """The index of the link that each joint is mounted on; -1 for the base."""
        self.chains = tuple(self.chain(link) for link, _ in family.body.tips)
        """The joints that move each tip of the arms."""
        self.hands = frozenset(
            {joint.link for joint in family.joints if joint.part in _HAND_PARTS}
            | {link for link, _ in family.body.tips}
        )
        """The links that count as a hand: all from the wrist on."""
        self._hinges = [self._make_hinge(joint) for joint in family.joints]

    def _make_hinge(self, joint: Joint) -> _Hinge:
        axis: Array = np.array(joint.axis, dtype=np.float64)
        axis = axis / np.linalg.norm(axis)
        main_axis = int(np.abs(axis).argmax())
        # Without a tilt, and about a coordinate axis, `update` needs no matrix product.
        is_along_main_axis = abs(axis[main_axis]) == 1.0
        return _Hinge(
            parent=self.parents[joint.index],
            origin_m=joint.origin_m,
            tilt=rotation(joint.origin_rpy_rad) if any(joint.origin_rpy_rad) else None,
            axis=axis,
            coordinate_axis=(main_axis, float(axis[main_axis])) if is_along_main_axis else None,
        )

    def chain(self, link: str) -> frozenset[str]:
        """Return the names of the joints between the base and a link; empty for an unknown link."""
        names = []
        index = self.links.index(link) if link in self.links else _BASE
        while index != _BASE:
            names.append(self.joints[index].name)
            index = self.parents[index]
        return frozenset(names)

    def stands(self, build: Build) -> bool:
        """Return whether a build stands on feet: they are known, and it has the legs for them."""
        feet = self.family.body.feet
        return bool(feet) and all(self.chain(foot.link) <= set(build.names) for foot in feet)

    def outermost_joint(self, *links: str) -> str | None:
        """Return the name of the joint of the outermost link, which a person would move to separate
        these links. None if no joint moves any of them: the base, or the floor.
        """
        moving = [joint for joint in self.joints if joint.link in links]
        outermost = max(
            moving, key=lambda joint: (joint.link in self.hands, joint.index), default=None
        )
        return None if outermost is None else outermost.name

    def poses(
        self, track: Track, start_pose: Pose | None = None, build: Build | None = None
    ) -> Array:
        """Return the track's poses with all joints of the family, (n, joints).

        A joint that the track does not have stays as in `start_pose`, which is in the columns of
        the build, or at rest; one that the build does not have is locked at 0. Joints that the
        family does not know are left out; fingers are among them, and count as at rest with the
        palm.
        """
        build = build or self.family.default
        index = {joint.name: joint.index for joint in self.joints}
        body_names = build.bare.names  # without hands, whose columns are the last ones
        pose = np.zeros(len(self.joints))
        pose[[index[name] for name in body_names]] = whole_pose(start_pose, build)[
            : len(body_names)
        ]
        all_poses = np.repeat(pose[None, :], len(track), axis=0)
        known = [name for name in track.names if name in index]
        all_poses[:, [index[name] for name in known]] = track.joints_rad[:, track.columns_of(known)]
        return all_poses

    def forward(self, poses_rad: Array) -> Frames:
        """Return the positions and orientations of all links; `poses_rad` is (n, joints)."""
        count = len(poses_rad)
        frames = Frames(
            np.empty((len(self.links), 3, count)), np.empty((len(self.links), 3, 3, count))
        )
        self.update(frames, poses_rad, self.order)
        return frames

    def update(self, frames: Frames, poses_rad: Array, joints: Sequence[int]) -> None:
        """Write the positions and orientations of the links of these joints into `frames`.

        `joints` are ascending indices. The links that these joints are mounted on must be up to
        date; any other link that these joints move is outdated afterwards.
        """
        positions, rotations = frames
        identity = np.repeat(np.eye(3)[:, :, None], len(poses_rad), axis=2)
        for index in joints:
            hinge, angles = self._hinges[index], poses_rad[:, index]
            mounting = rotations[hinge.parent] if hinge.parent != _BASE else identity
            position = positions[index]
            position[:] = np.einsum("ijn,j->in", mounting, hinge.origin_m)
            if hinge.parent != _BASE:
                position += positions[hinge.parent]
            if hinge.tilt is not None:
                mounting = np.einsum("ijn,jk->ikn", mounting, hinge.tilt)
            _write_link_orientation(
                rotations[index], mounting, hinge, np.cos(angles), np.sin(angles)
            )

    def at(self, frames: Frames, point: Point) -> Array:
        """Return the position of a point of a link, or of the base, (3, n)."""
        link, offset_m = point
        if link in self.links:
            return frames.points_m(self.links.index(link), offset_m)
        return np.repeat(np.array(offset_m)[:, None], frames.positions_m.shape[2], axis=1)

    def tips_m(self, frames: Frames) -> Array:
        """Return the positions of the tips of the arms, (n, tips, 3): the middle of each hand."""
        tips = [self.at(frames, tip) for tip in self.family.body.tips]
        positions = np.array(tips).reshape(len(tips), 3, frames.positions_m.shape[2])
        return np.ascontiguousarray(positions.transpose(2, 0, 1))

    def link_masses(self, payload_kg: float = 0.0) -> LinkMasses:
        """Return the masses of the links, including parts fixed to them, such as a head or a hand.

        `payload_kg` is held at each tip of the arms.
        """
        masses = np.array([joint.mass_kg for joint in self.joints])
        centres = np.array([joint.com_m for joint in self.joints])
        body = self.family.body
        fixed = [(mass.link, mass.mass_kg, mass.com_m) for mass in body.fixed]
        fixed += [(link, payload_kg, offset_m) for link, offset_m in body.tips]
        for name, mass_kg, centre_m in fixed:
            if name in self.links and mass_kg > 0.0:
                link = self.links.index(name)
                total_kg = masses[link] + mass_kg
                moment = masses[link] * centres[link] + mass_kg * np.array(centre_m)
                masses[link], centres[link] = total_kg, moment / total_kg
        return LinkMasses(masses, centres)

    def base_mass(self) -> tuple[float, Array]:
        """Return the mass of the base with everything fixed to it, in kg, and its centre, (3,)."""
        body = self.family.body
        parts = [(body.base_mass_kg, body.base_com_m)]
        parts += [(each.mass_kg, each.com_m) for each in body.fixed if each.link == body.base]
        masses = np.array([mass for mass, _ in parts])
        centres = np.array([centre for _, centre in parts])
        total = float(masses.sum())
        return total, np.asarray(masses @ centres / total) if total else np.zeros(3)

    def centre_of_mass_m(self, frames: Frames, load: LinkMasses) -> Array:
        """Return the centre of mass of the whole robot, (n, 3)."""
        base_kg, centre = self.base_mass()
        total = _compute_mass_moments(frames, load).sum(axis=0) + base_kg * centre[:, None]
        return np.asarray(total.T / (base_kg + load.masses_kg.sum()))

    def axes(self, frames: Frames, joints: Sequence[int] | None = None) -> Array:
        """Return the directions of the axes of all joints, or of these indices, (joints, 3, n)."""
        directions = []
        for joint in self.order if joints is None else joints:
            hinge, orientation = self._hinges[joint], frames.rotations[joint]
            if hinge.coordinate_axis is None:
                directions.append(np.einsum("ijn,j->in", orientation, hinge.axis))
            else:
                index, sign = hinge.coordinate_axis
                directions.append(sign * orientation[:, index])
        return np.array(directions)

    def gravity_torque_nm(self, frames: Frames, load: LinkMasses) -> Array:
        """Return the torque of gravity on each joint of an upright robot, (n, joints).

        It is that of the weight of all links that the joint moves. So it is meaningless for legs,
        which support the body.
        """
        masses, moments = load.masses_kg.copy(), _compute_mass_moments(frames, load)
        # Add each link to its parent, outermost first: then each has the sum of all it carries.
        for link in reversed(self.order):
            if (parent := self.parents[link]) != _BASE:
                masses[parent] += masses[link]
                moments[parent] += moments[link]
        about_joints = moments - masses[:, None, None] * frames.positions_m  # mass * lever arm
        axes = self.axes(frames)
        # axis . (mass * lever arm x (0, 0, -g))
        torque = -GRAVITY_M_S2 * (axes[:, 0] * about_joints[:, 1] - axes[:, 1] * about_joints[:, 0])
        return np.asarray(torque.T)


@cache
def kinematics_of(family: Family) -> Kinematics:
    """Return the body of a family; it is computed once."""
    return Kinematics(family)


def _write_link_orientation(
    orientation: Array, mounting: Array, hinge: _Hinge, cosine: Array, sine: Array
) -> None:
    """Write the orientation of a link: its mounting, turned about its hinge; both are (3, 3, n).

    This is Rodrigues' formula. For a hinge along a coordinate axis it only mixes two columns.
    """
    if hinge.coordinate_axis is None:
        x, y, z = hinge.axis
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        rotation_matrix = np.eye(3)[:, :, None] + sine * cross[:, :, None]
        rotation_matrix += (1.0 - cosine) * (cross @ cross)[:, :, None]
        orientation[:] = np.einsum("ijn,jkn->ikn", mounting, rotation_matrix)
        return
    axis, sign = hinge.coordinate_axis
    sine = sine if sign > 0 else -sine
    one, other = _MIXED_COLUMNS[axis]
    orientation[:, axis] = mounting[:, axis]
    orientation[:, one] = cosine * mounting[:, one] + sine * mounting[:, other]
    orientation[:, other] = cosine * mounting[:, other] - sine * mounting[:, one]


def _compute_mass_moments(frames: Frames, load: LinkMasses) -> Array:
    """Return the mass of each link times the position of its centre, in kg m, (joints, 3, n)."""
    centres = frames.positions_m + np.einsum("lijn,lj->lin", frames.rotations, load.centres_m)
    return np.asarray(load.masses_kg[:, None, None] * centres)
