"""The sticks that a robot is drawn with: those of its family, or of its tree of joints."""

from functools import cache
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.model.family import ZERO, Family, Figure, Joint, Point
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.interpolate import sample
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of
from rote.text import Act, Text


class Sticks(NamedTuple):
    """A robot in n poses, on a floor at height 0."""

    ends_m: Array
    """(sticks, 2, 3, n)."""
    head_m: Array
    """(3, n)."""
    hands_m: Array
    """The points that leave a trail, left and right, (2, 3, n): hands, or front feet."""
    sides: tuple[str, ...]
    """For each stick: left, right, or empty for the middle."""
    head_radius_m: float


def body_of(track: Track, times_s: Array) -> Sticks:
    """Return the poses of a track's robot at these times."""
    family = family_of(track)
    if family is None:
        raise BadRequestError(
            "no known robot has any of the track's joints, and no other robot is drawn",
            Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
        )
    poses_rad = kinematics_of(family).poses(track, build=build_of(track))
    return sticks(family, sample(track.times_s, poses_rad, times_s, Interpolation.LINEAR))


def sticks(family: Family, poses_rad: Array) -> Sticks:
    """Return a robot in these poses, (n, joints of the family), each standing on the floor."""
    body, figure = kinematics_of(family), figure_of(family)
    frames = body.forward(poses_rad)

    def at(point: Point) -> Array:
        return body.at(frames, point)

    floor = np.zeros((3, len(poses_rad)))
    floor[2] = np.min([at(point)[2] for point in figure.floor], axis=0)
    ends = np.array([[at(start), at(end)] for _, start, end in figure.sticks])
    trails = np.array([at(point) for point in figure.trails])
    sides = tuple(side for side, _, _ in figure.sticks)
    return Sticks(
        ends - floor, at(figure.head) - floor, trails - floor, sides, figure.head_radius_m
    )


@cache
def figure_of(family: Family) -> Figure:
    """Return how a family is drawn; by default from its tree of joints.

    Then each joint has a stick to each joint that is mounted on its link, and a joint without
    further ones has a stick to its link's centre of mass. There is no head.
    """
    return family.body.figure or _figure_from_joints(kinematics_of(family))


def _figure_from_joints(body: Kinematics) -> Figure:
    family, joints = body.family, body.joints
    carrying = {joint.parent for joint in joints}
    ends: dict[str, Point] = {joint.link: (joint.link, joint.com_m) for joint in joints}
    leaves = [joint for joint in joints if joint.link not in carrying]
    sides = _joint_sides(body)
    drawn = [(sides[joint.name], (joint.parent, ZERO), (joint.link, ZERO)) for joint in joints]
    drawn += [(sides[joint.name], (joint.link, ZERO), ends[joint.link]) for joint in leaves]
    base: Point = (family.body.base, ZERO)
    tips = family.body.tips
    return Figure(
        sticks=tuple(drawn),
        head=base,
        head_radius_m=0.0,
        trails=(tips[0], tips[1]) if len(tips) > 1 else _trail_points(leaves, ends, sides),
        floor=(base, *(point for _, start, end in drawn for point in (start, end))),
    )


def _joint_sides(body: Kinematics) -> dict[str, str]:
    """Return left or right for each joint, by its position at 0; neither for one without a partner.

    Joints mounted on a joint of a side belong to that side too.
    """
    middle_m = body.forward(np.zeros((1, len(body.joints)))).positions_m[:, 1, 0]
    sides: dict[str, str] = {}
    for index in body.order:
        joint, parent = body.joints[index], body.parents[index]
        above = sides[body.joints[parent].name] if parent >= 0 else ""
        paired = joint.name in body.family.mirror and middle_m[index] != 0.0
        sides[joint.name] = above or (
            ("left" if middle_m[index] > 0 else "right") if paired else ""
        )
    return sides


def _trail_points(
    leaves: list[Joint], ends: dict[str, Point], sides: dict[str, str]
) -> tuple[Point, Point]:
    """Return the ends of the first limb on the left and on the right; otherwise of the first of
    all.
    """

    def first(side: str) -> Point:
        limb = next((joint for joint in leaves if sides[joint.name] == side), leaves[0])
        return ends[limb.link]

    return first("left"), first("right")
