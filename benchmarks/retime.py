"""Claim: a retimed motion is nearly as quick as its limits allow.

Durations of what is returned beside those of toppra (no limit of jerk) and ruckig (with one), at
500 Hz, as fast as the limits allow. Moves from rest to rest go straight, so that both mean the same
as rote. Along other paths toppra gets the path that rote goes along, its noise taken out, by 400
points, and the limits between its grid points too. ruckig knows no path between two poses, so
beside a path with a limit of jerk there is toppra's duration without: less than any can be. Random
paths are retimed at their own rates. What is not installed is left out, and said;
scripts/peers/benchmarks gets them.
"""

import math
import sys
from importlib.util import find_spec

import numpy as np

from benchmarks.peers import PEERS, report_missing
from benchmarks.retime_peers import Limits, along, ruckig_s, toppra_s
from benchmarks.retime_search import search_rows
from benchmarks.size import size
from benchmarks.table import Row
from rote.model.g1 import G1_29
from rote.motion.edit.retime import retime
from rote.motion.interpolate import minimum_jerk
from rote.motion.track import Track

RATE_HZ = size(500.0, 50.0)
NO_JERK = 1e6


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
    if find_spec("toppra"):
        rows += search_rows(paths=size(200, 2))
    return rows


def _row(name: str, ours: float, other: float | None, whose: str, most: float | None) -> list[Row]:
    if other is None:
        print(f"retime: {whose} finds no way for {name}", file=sys.stderr)
        return []
    return [Row(f"retime: {name}", "s", ours, other, whose, at_most=most)]
