"""The durations that toppra and ruckig find, for the same limits of all joints."""

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from benchmarks.size import size
from rote.motion.edit.retime import recorded_path
from rote.motion.track import Array, Track


class Limits(NamedTuple):
    """The same for all joints."""

    rad_s: float
    rad_s2: float
    rad_s3: float


def ruckig_s(track: Track, limits: Limits) -> float:
    """Return how long ruckig takes from the first pose to the last."""
    ruckig: Any = import_module("ruckig")
    joints = len(track.names)
    asked = ruckig.InputParameter(joints)
    asked.current_position = track.joints_rad[0].tolist()
    asked.target_position = track.joints_rad[-1].tolist()
    asked.max_velocity = [limits.rad_s] * joints
    asked.max_acceleration = [limits.rad_s2] * joints
    asked.max_jerk = [limits.rad_s3] * joints
    found = ruckig.Trajectory(joints)
    ruckig.Ruckig(joints).calculate(asked, found)
    return float(found.duration)


def toppra_s(places: Array, poses_rad: Array, limits: Limits) -> float | None:
    """Return how long toppra takes along a spline through poses; None where it finds no way."""
    toppra: Any = import_module("toppra")
    constraint, algorithm = (
        import_module(f"toppra.{name}") for name in ("constraint", "algorithm")
    )
    toppra.setup_logging("CRITICAL")
    joints = poses_rad.shape[1]
    fast = constraint.JointVelocityConstraint(np.array([[-limits.rad_s, limits.rad_s]] * joints))
    bent = constraint.JointAccelerationConstraint(
        np.array([[-limits.rad_s2, limits.rad_s2]] * joints),
        discretization_scheme=constraint.DiscretizationType.Interpolation,
    )
    path = toppra.SplineInterpolator(places, poses_rad, bc_type="natural")
    found = []
    for points in (500, 1000, 2000)[: size(3, 1)]:  # it fails on some grids
        grid = np.linspace(places[0], places[-1], points + 1)
        tried = algorithm.TOPPRA([fast, bent], path, gridpoints=grid, solver_wrapper="seidel")
        trajectory = tried.compute_trajectory(0, 0)
        if trajectory is not None:
            found.append(float(trajectory.duration))
    return min(found, default=None)


def along(track: Track, poses: int = 400) -> tuple[Array, Array]:
    """Return the path of a track by few poses, over what the joints move rather than over time."""
    step_s, poses_rad = recorded_path(track)
    rates = np.gradient(poses_rad, step_s, axis=0)
    bends = np.gradient(rates, step_s, axis=0)
    moved = np.linalg.norm(rates, axis=1)
    pace = np.sqrt(
        moved**2 + (0.03 * np.linalg.norm(bends, axis=1)) ** 2 + (0.02 * moved.max()) ** 2
    )
    places = np.concatenate([[0.0], np.cumsum((pace[1:] + pace[:-1]) / 2 * step_s)])
    few = np.unique(np.linspace(0, len(places) - 1, poses).astype(int))
    return places[few], poses_rad[few]
