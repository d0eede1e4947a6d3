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
    """The points whose paths are drawn, left and right, (2, 3, n): hands, or front feet."""
    sides: tuple[str, ...]
    """For each stick: left, right, or empty for the middle."""
    head_radius_m: float


def pose_sticks(track: Track, times_s: Array) -> Sticks:
    """Return the sticks of a track's robot in its poses at these times."""
    family = family_of(track)
    if family is None:
        raise BadRequestError(
            "the robot cannot be drawn: no known robot has any of the track's joints",
            Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
        )
    poses_rad = kinematics_of(family).poses(track, build=build_of(track))
    return sticks(family, sample(track.times_s, poses_rad, times_s, Interpolation.LINEAR))


def sticks(family: Family, poses_rad: Array) -> Sticks:
    """Return the sticks of a robot in these poses, (n, joints of the family).

    In each pose the robot stands on the floor.
    """
    body, figure = kinematics_of(family), figure_of(family)
    frames = body.forward(poses_rad)

    def locate(point: Point) -> Array:
        return body.at(frames, point)

    floor = np.zeros((3, len(poses_rad)))  # below the base
    floor[2] = np.min([locate(point)[2] for point in figure.floor], axis=0)
    ends = np.array([[locate(start), locate(end)] for _, start, end in figure.sticks])
    trails = np.array([locate(point) for point in figure.trails])
    sides = tuple(side for side, _, _ in figure.sticks)
    return Sticks(
        ends - floor, locate(figure.head) - floor, trails - floor, sides, figure.head_radius_m
    )


@cache
def figure_of(family: Family) -> Figure:
    """Return how a family is drawn: by its own figure, or else by its tree of joints.

    In the tree, a stick leads from each joint to each joint mounted on its link, or to its link's
    centre of mass if there is none. There is no head.
    """
    return family.body.figure or _figure_from_joints(kinematics_of(family))


def _figure_from_joints(body: Kinematics) -> Figure:
    family, joints = body.family, body.joints
    parent_links = {joint.parent for joint in joints}
    ends: dict[str, Point] = {joint.link: (joint.link, joint.com_m) for joint in joints}
    leaves = [joint for joint in joints if joint.link not in parent_links]
    sides = _find_joint_sides(body)
    sticks = [(sides[joint.name], (joint.parent, ZERO), (joint.link, ZERO)) for joint in joints]
    sticks += [(sides[joint.name], (joint.link, ZERO), ends[joint.link]) for joint in leaves]
    base: Point = (family.body.base, ZERO)
    tips = family.body.tips
    return Figure(
        sticks=tuple(sticks),
        head=base,
        head_radius_m=0.0,
        trails=(tips[0], tips[1]) if len(tips) > 1 else _choose_trail_points(leaves, ends, sides),
        floor=(base, *(point for _, start, end in sticks for point in (start, end))),
    )


def _find_joint_sides(body: Kinematics) -> dict[str, str]:
    """Return for each joint name the side of the joint: left, right, or "" in the middle.

    A joint mounted on a link of one side belongs to that side. Otherwise a joint with a mirrored
    partner is on the side where it is if all angles are 0.
    """
    left_m = body.forward(np.zeros((1, len(body.joints)))).positions_m[:, 1, 0]
    sides: dict[str, str] = {}
    for index in body.order:
        joint, parent = body.joints[index], body.parents[index]
        parent_side = sides[body.joints[parent].name] if parent >= 0 else ""
        if parent_side or joint.name not in body.family.mirror or left_m[index] == 0.0:
            sides[joint.name] = parent_side
        else:
            sides[joint.name] = "left" if left_m[index] > 0 else "right"
    return sides


def _choose_trail_points(
    leaves: list[Joint], ends: dict[str, Point], sides: dict[str, str]
) -> tuple[Point, Point]:
    """Return the end of the first limb on the left, and that of the first one on the right.

    For a side without a limb it is the end of the first limb of all.
    """

    def find_first_end(side: str) -> Point:
        limb = next((joint for joint in leaves if sides[joint.name] == side), leaves[0])
        return ends[limb.link]

    return find_first_end("left"), find_first_end("right")
