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

# For a rotation about axis k: the two columns that the angle mixes.
_MIXED = {0: (1, 2), 1: (2, 0), 2: (0, 1)}
_BASE = -1
_HAND_PARTS = frozenset({"wrist", "finger"})


class Frames(NamedTuple):
    """Every link in every pose, by the index of its joint."""

    positions_m: Array
    """The position of each link's joint, (joints, 3, n)."""
    turns: Array
    """The orientation of each link: columns are its axes; (joints, 3, 3, n)."""

    def points_m(self, link: int, point_m: ArrayLike) -> Array:
        """Return the position of a point of a link, (3, n)."""
        point = np.asarray(point_m, dtype=np.float64)
        place: Array = self.positions_m[link] + np.einsum("ijn,j->in", self.turns[link], point)
        return place


class LinkMasses(NamedTuple):
    """The mass of each link with everything fixed to it, and its centre in the link's frame."""

    masses_kg: Array
    """(joints,)."""
    centres_m: Array
    """(joints, 3)."""


class _Hinge(NamedTuple):
    """A joint in the form that `forward` needs."""

    joint_index: int
    """Its index in the family's table."""
    parent: int
    origin_m: Vector
    tilt: Array | None
    """Its orientation on its parent, (3, 3); None if it is not turned."""
    axis: Array
    """A unit vector."""
    along: tuple[int, float] | None
    """Which axis of its frame it rotates about, and with which sign; None if it is no axis of the
    frame.
    """


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
    """Return one angle per column of a build: `start_pose`, or its rest position."""
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
        self._hinges = [self._make_hinge(family.joints[index]) for index in self.order]

    def _make_hinge(self, joint: Joint) -> _Hinge:
        axis: Array = np.array(joint.axis, dtype=np.float64)
        axis = axis / np.linalg.norm(axis)
        main = int(np.abs(axis).argmax())
        return _Hinge(
            joint.index,
            self.parents[joint.index],
            joint.origin_m,
            rotation(joint.origin_rpy_rad) if any(joint.origin_rpy_rad) else None,
            axis,
            (main, float(axis[main])) if abs(axis[main]) == 1.0 else None,
        )

    def chain(self, link: str) -> frozenset[str]:
        """Return the names of the joints between the base and a link."""
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
        """Return the joint that a person would move to separate these links: that of the outermost.

        None if none of them is moved by a joint: the base, or the floor.
        """
        own = [joint for joint in self.joints if joint.link in links]
        found = max(own, key=lambda joint: (joint.link in self.hands, joint.index), default=None)
        return None if found is None else found.name

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
        pose, body = np.zeros(len(self.joints)), build.bare.names
        pose[[index[name] for name in body]] = whole_pose(start_pose, build)[: len(body)]
        full = np.repeat(pose[None, :], len(track), axis=0)
        known = [name for name in track.names if name in index]
        full[:, [index[name] for name in known]] = track.joints_rad[:, track.columns_of(known)]
        return full

    def forward(self, poses_rad: Array) -> Frames:
        """Return the positions of all links; `poses_rad` is (n, joints)."""
        angles = poses_rad.T
        cosines, sines = np.cos(angles), np.sin(angles)
        count = angles.shape[1]
        places, turns = (
            np.empty((len(self.links), 3, count)),
            np.empty((len(self.links), 3, 3, count)),
        )
        trunk = np.repeat(np.eye(3)[:, :, None], count, axis=2)
        for hinge in self._hinges:
            base = turns[hinge.parent] if hinge.parent != _BASE else trunk
            place = places[hinge.joint_index]
            place[:] = np.einsum("ijn,j->in", base, hinge.origin_m)
            if hinge.parent != _BASE:
                place += places[hinge.parent]
            if hinge.tilt is not None:
                base = np.einsum("ijn,jk->ikn", base, hinge.tilt)
            _write_rotation(
                turns[hinge.joint_index],
                base,
                hinge,
                cosines[hinge.joint_index],
                sines[hinge.joint_index],
            )
        return Frames(places, turns)

    def at(self, frames: Frames, point: Point) -> Array:
        """Return the position of a point of a link, or of the base, (3, n)."""
        link, offset_m = point
        if link in self.links:
            return frames.points_m(self.links.index(link), offset_m)
        return np.repeat(np.array(offset_m)[:, None], frames.positions_m.shape[2], axis=1)

    def tips_m(self, frames: Frames) -> Array:
        """Return the positions of the tips of the arms, (n, tips, 3): the middle of each hand."""
        tips = [self.at(frames, tip) for tip in self.family.body.tips]
        both = np.array(tips).reshape(len(tips), 3, frames.positions_m.shape[2])
        return np.ascontiguousarray(both.transpose(2, 0, 1))

    def weights(self, payload_kg: float = 0.0) -> LinkMasses:
        """Return the masses of the links with what is fixed to them, a head or a hand.

        `payload_kg` is held at each tip of the arms.
        """
        masses = np.array([joint.mass_kg for joint in self.joints])
        centres = np.array([joint.com_m for joint in self.joints])
        body = self.family.body
        fixed = [(mass.link, mass.mass_kg, mass.com_m) for mass in body.fixed]
        fixed += [(link, payload_kg, offset_m) for link, offset_m in body.tips]
        for name, mass_kg, centre in fixed:
            if name in self.links and mass_kg > 0.0:
                link = self.links.index(name)
                total = masses[link] + mass_kg
                centres[link] = (masses[link] * centres[link] + mass_kg * np.array(centre)) / total
                masses[link] = total
        return LinkMasses(masses, centres)

    def base_mass(self) -> tuple[float, Array]:
        """Return the mass of the base and everything fixed to it, in kg, and its centre; (3,)."""
        body = self.family.body
        parts = [(body.base_mass_kg, body.base_com_m)]
        parts += [(each.mass_kg, each.com_m) for each in body.fixed if each.link == body.base]
        masses, centres = np.array([mass for mass, _ in parts]), np.array([at for _, at in parts])
        total = float(masses.sum())
        return total, np.asarray(masses @ centres / total) if total else np.zeros(3)

    def centre_of_mass_m(self, frames: Frames, load: LinkMasses) -> Array:
        """Return the centre of mass of the whole robot, (n, 3)."""
        base_kg, centre = self.base_mass()
        total = _mass_moments(frames, load).sum(axis=0) + base_kg * centre[:, None]
        return np.asarray(total.T / (base_kg + load.masses_kg.sum()))

    def axes(self, frames: Frames) -> Array:
        """Return the direction of each joint's axis, (joints, 3, n)."""
        axes = np.empty_like(frames.positions_m)
        for hinge in self._hinges:
            turn = frames.turns[hinge.joint_index]
            if hinge.along is None:
                axes[hinge.joint_index] = np.einsum("ijn,j->in", turn, hinge.axis)
            else:
                main, sense = hinge.along
                axes[hinge.joint_index] = sense * turn[:, main]
        return axes

    def gravity_torque_nm(self, frames: Frames, load: LinkMasses) -> Array:
        """Return the torque of gravity on each joint of an upright robot, (n, joints).

        It is that of the links beyond the joint; it is meaningless for the legs, which support the
        body.
        """
        masses, moments = load.masses_kg.copy(), _mass_moments(frames, load)
        for link in reversed(self.order):
            if (parent := self.parents[link]) != _BASE:
                masses[parent] += masses[link]
                moments[parent] += moments[link]
        arms = moments - masses[:, None, None] * frames.positions_m
        axes = self.axes(frames)
        # axis . (arm x (0, 0, -g))
        torque = -GRAVITY_M_S2 * (axes[:, 0] * arms[:, 1] - axes[:, 1] * arms[:, 0])
        return np.asarray(torque.T)


@cache
def kinematics_of(family: Family) -> Kinematics:
    """Return the body of a family; it is computed once."""
    return Kinematics(family)


def _write_rotation(turn: Array, base: Array, hinge: _Hinge, cosine: Array, sine: Array) -> None:
    """Write the orientation of a link into `turn`; `base` is its mounting; both (3, 3, n)."""
    if hinge.along is None:
        x, y, z = hinge.axis
        cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
        turned = np.eye(3)[:, :, None] + sine * cross[:, :, None]
        turned += (1.0 - cosine) * (cross @ cross)[:, :, None]
        turn[:] = np.einsum("ijn,jkn->ikn", base, turned)
        return
    axis, sense = hinge.along
    sine = sine if sense > 0 else -sine
    i, k = _MIXED[axis]
    turn[:, axis] = base[:, axis]
    turn[:, i] = cosine * base[:, i] + sine * base[:, k]
    turn[:, k] = cosine * base[:, k] - sine * base[:, i]


def _mass_moments(frames: Frames, load: LinkMasses) -> Array:
    """Return mass times centre of each link, (joints, 3, n)."""
    centres = frames.positions_m + np.einsum("lijn,lj->lin", frames.turns, load.centres_m)
    return np.asarray(load.masses_kg[:, None, None] * centres)
