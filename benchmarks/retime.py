"""Claim: a retimed motion is nearly as quick as its limits allow.

Durations of what is returned beside those of toppra (no limit of jerk) and ruckig (with one), at
500 Hz, as fast as the limits allow. Moves from rest to rest go straight, so that both mean the same
as rote. Along other paths toppra gets the path that rote goes along, its noise taken out, by 400
points, and the limits between its grid points too. ruckig knows no path between two poses, so
beside a path with a limit of jerk there is toppra's duration without: less than any can be. What is
not installed is left out, and said; scripts/peers/benchmarks gets them.
"""

import math
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np

from benchmarks.peers import PEERS, report_missing
from benchmarks.size import size
from benchmarks.table import Row
from rote.model.g1 import G1_29
from rote.motion.edit.retime import recorded_path, retime
from rote.motion.interpolate import minimum_jerk
from rote.motion.track import Array, Track

RATE_HZ = size(500.0, 50.0)
NO_JERK = 1e6


class Limits(NamedTuple):
    """The same for all joints."""

    rad_s: float
    rad_s2: float
    rad_s3: float


USUAL, CALM = Limits(10.0, 40.0, 800.0), Limits(2.0, 8.0, 200.0)


def move(*far_rad: float, seconds: float = 2.0) -> Track:
    """Return a calm move from 0 to these angles."""
    times_s = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    ends = np.array(far_rad)
    return Track(
        times_s=times_s,
        joints_rad=minimum_jerk(np.zeros(ends.size), ends, times_s / seconds),
        names=G1_29.names[: ends.size],
    )


def swing(joints: int, seconds: float, seed: int) -> Track:
    """Return joints that swing, each at its own pace, from rest to rest."""
    chance = np.random.default_rng(seed)
    times_s = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    ends = np.sin(math.pi * times_s / seconds)[:, None] ** 2
    swings = np.sin(2 * math.pi * chance.uniform(0.2, 0.6, joints) * times_s[:, None])
    joints_rad = ends * swings * chance.uniform(0.2, 0.5, joints)
    return Track(times_s=times_s, joints_rad=joints_rad, names=G1_29.names[:joints])


MOVES = {
    "1 rad": (move(1.0), USUAL),
    "5 joints": (move(1.0, 0.5, -0.3, 0.2, 0.8), USUAL),
    "0.5 rad": (move(0.5, -0.25), USUAL),
    "0.2 rad": (move(0.2, -0.1, seconds=1.0), USUAL),
    "2 rad, calm": (move(2.0, 1.0, seconds=3.0), CALM),
}
PATHS = {
    f"{joints} joints swing{', calm' * (limits is CALM)}": (swing(joints, 6.0, seed), limits)
    for joints, seed in ((1, 9), (5, 0), (29, 5))
    for limits in (USUAL, CALM)
}


def ours_s(track: Track, limits: Limits, jerk: float) -> float:
    done = retime(
        track,
        velocity=limits.rad_s,
        acceleration=limits.rad_s2,
        jerk=jerk,
        rate_hz=RATE_HZ,
        fastest=True,
    )
    return done.duration_s


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


def along(track: Track) -> tuple[Array, Array]:
    """Return the path of a track by few poses, over what the joints move rather than over time."""
    step_s, poses_rad = recorded_path(track)
    rates = np.gradient(poses_rad, step_s, axis=0)
    bends = np.gradient(rates, step_s, axis=0)
    moved = np.linalg.norm(rates, axis=1)
    pace = np.sqrt(
        moved**2 + (0.03 * np.linalg.norm(bends, axis=1)) ** 2 + (0.02 * moved.max()) ** 2
    )
    places = np.concatenate([[0.0], np.cumsum((pace[1:] + pace[:-1]) / 2 * step_s)])
    few = np.unique(np.linspace(0, len(places) - 1, 400).astype(int))
    return places[few], poses_rad[few]


def run() -> list[Row]:
    rows = []
    sys.path.append(str(PEERS / "retime"))
    for peer in ("toppra", "ruckig"):
        if not find_spec(peer):
            report_missing(f"no {peer}: run scripts/peers/benchmarks")
    for name, (track, limits) in list(MOVES.items())[: size(None, 1)]:
        if find_spec("toppra"):
            ends = track.joints_rad[[0, -1]]
            other = toppra_s(np.array([0.0, 1.0]), ends, limits)
            rows += _row(f"move {name}", ours_s(track, limits, NO_JERK), other, "toppra", 1.05)
        if find_spec("ruckig"):
            ours, other = ours_s(track, limits, limits.rad_s3), ruckig_s(track, limits)
            rows += _row(f"move {name}, jerk limited", ours, other, "ruckig", 1.10)
    for name, (track, limits) in list(PATHS.items())[: size(None, 1)]:
        if find_spec("toppra"):
            other = toppra_s(*along(track), limits)
            rows += _row(name, ours_s(track, limits, NO_JERK), other, "toppra", 1.05)
            ours = ours_s(track, limits, limits.rad_s3)
            rows += _row(f"{name}, jerk limited", ours, other, "toppra without", None)
    return rows


def _row(name: str, ours: float, other: float | None, whose: str, most: float | None) -> list[Row]:
    if other is None:
        print(f"retime: {whose} finds no way for {name}", file=sys.stderr)
        return []
    return [Row(f"retime: {name}", "s", ours, other, whose, at_most=most)]
