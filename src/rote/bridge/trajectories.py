"""Converts a `JointTrajectory` to a track that can be checked and played."""

import math

import numpy as np

from rote.bridge.ros_messages import Trajectory
from rote.errors import BadRequestError
from rote.messages import RobotState
from rote.model.family import MAX_MOTION_S, Build
from rote.motion.track import Track

MAX_POINTS = 100_000
_AT_ONCE_S = 1e-6
_BETWEEN_S = 0.02


def track_of(trajectory: Trajectory, build: Build, state: RobotState | None) -> Track:
    """Return a trajectory as a track of a build, from the robot's current pose.

    If the first point is later than the start, the track begins at the current pose, as in ROS 2.
    Between points the joints are interpolated linearly. Raises `BadRequestError` for a trajectory
    that cannot be played.
    """
    names, points = trajectory.names, trajectory.points
    _check_trajectory(trajectory, build)
    times_s = [point.at_s for point in points]
    rows = [point.positions_rad for point in points]
    if times_s[0] > _AT_ONCE_S:
        if state is None or not state.joints_told or len(state.joints_rad) < len(build.names):
            raise BadRequestError("the robot has not reported its joint positions", "Try it again.")
        rows.insert(0, tuple(state.joints_rad[build.names.index(name)] for name in names))
        times_s.insert(0, 0.0)
    if len(rows) < 2:
        raise BadRequestError(
            "a trajectory of one pose at time 0 is not a motion",
            "Give the point a time_from_start.",
        )
    known_s, poses = np.array(times_s), np.array(rows)
    count = max(2, math.ceil((known_s[-1] - known_s[0]) / _BETWEEN_S) + 1)
    at_s = np.union1d(np.linspace(known_s[0], known_s[-1], count), known_s)
    at_s = at_s[np.concatenate([[True], np.diff(at_s) > 1e-9])]
    even = np.stack([np.interp(at_s, known_s, column) for column in poses.T], axis=1)
    return Track(
        times_s=at_s, joints_rad=even, names=names, variant=build.name, source="a ROS 2 trajectory"
    )


def _check_trajectory(trajectory: Trajectory, build: Build) -> None:
    names, points = trajectory.names, trajectory.points
    if not names or not points or len(points) > MAX_POINTS:
        raise BadRequestError(
            f"a trajectory of {len(names)} joints and {len(points)} points cannot be played"
        )
    strange = [name for name in names if name not in build.taught]
    if strange or len(set(names)) != len(names):
        what = strange[0] if strange else "a joint twice"
        raise BadRequestError(
            f"{build.title} does not play {what}", f"It plays: {', '.join(build.taught)}."
        )
    before_s = -1.0
    for number, point in enumerate(points):
        if len(point.positions_rad) != len(names):
            raise BadRequestError(
                f"point {number} has {len(point.positions_rad)} positions for {len(names)} joints"
            )
        if not all(map(math.isfinite, (*point.positions_rad, point.at_s))):
            raise BadRequestError(f"point {number} has a value that is not a number")
        if point.at_s <= before_s or not 0.0 <= point.at_s <= MAX_MOTION_S:
            raise BadRequestError(
                f"point {number} is at {point.at_s:g} s, which is not after the one before, or "
                f"later than {MAX_MOTION_S:g} s"
            )
        before_s = point.at_s
