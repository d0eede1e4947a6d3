"""Claim: the average of several performances is nearer to the motion than one of them.

A motion is performed with another timing each time, and with a hand's wobble. What counts is how
far the result passes from the poses of the true motion, in their order; its own timing is free.
Beside the average there are a single performance, and the mean of all at equal shares of their
time, as numpy would make it.
"""

import numpy as np

from benchmarks.size import size
from benchmarks.table import Row
from rote.model.g1 import G1_29
from rote.motion.track import Array, Track

RATE_HZ, SECONDS, JOINTS = 100.0, 4.0, 7
TAKES = (3, 5, 10)
TRIALS = size(20, 1)


def true_motion(chance: np.random.Generator, positions: Array) -> Array:
    """Return the poses at shares of the motion, (n, joints)."""
    turns = chance.uniform(1.0, 4.0, JOINTS)
    phases = chance.uniform(0.0, 2 * np.pi, JOINTS)
    swing = np.sin(2 * np.pi * turns * positions[:, None] + phases)
    return np.asarray(chance.uniform(0.2, 0.8, JOINTS) * swing)


def perform(seed: int, chance: np.random.Generator) -> Track:
    """Return the motion of a seed with a timing and a wobble of its own."""
    seconds = SECONDS * chance.uniform(0.85, 1.15)
    times_s = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    share = times_s / times_s[-1]
    waves = np.arange(1, 4)
    sizes = chance.uniform(-0.12, 0.12, 3) / waves
    warped = share + (sizes * np.sin(np.pi * waves * share[:, None])).sum(axis=1) / np.pi
    shaken = np.sin(2 * np.pi * chance.uniform(0.5, 3.0, JOINTS) * times_s[:, None])
    wobble = 0.03 * chance.standard_normal(JOINTS) * shaken
    poses = true_motion(np.random.default_rng(seed), np.clip(warped, 0.0, 1.0)) + wobble
    return Track(times_s=times_s, joints_rad=poses, names=G1_29.names[-JOINTS:])


def distance_rad(seed: int, poses: Array) -> float:
    """Return the mean distance from the poses of the true motion, matched in their order."""
    truth = true_motion(np.random.default_rng(seed), np.linspace(0.0, 1.0, 200))
    distances = np.linalg.norm(truth[:, None] - poses[None], axis=2)
    costs = np.full(len(poses), np.inf)
    costs[0] = 0.0
    for row in distances:
        costs = np.minimum.accumulate(costs) + row
    return float(costs.min()) / len(truth)


def mean_of(takes: list[Track]) -> Array:
    """Return the mean of all takes at equal shares of their time."""
    shares = np.linspace(0.0, 1.0, len(takes[0]))
    columns = [
        [np.interp(shares * take.duration_s, take.times_s, joint) for joint in take.joints_rad.T]
        for take in takes
    ]
    return np.asarray(np.mean(columns, axis=0).T)


def run() -> list[Row]:
    rows = []
    for count in TAKES[: size(None, 1)]:
        found = []
        for seed in range(TRIALS):
            chance = np.random.default_rng(1000 + seed)
            takes = [perform(seed, chance) for _ in range(count)]
            average = takes[0].average(*takes[1:])
            found.append(
                (
                    distance_rad(seed, average.joints_rad),
                    np.median([distance_rad(seed, take.joints_rad) for take in takes]),
                    distance_rad(seed, mean_of(takes)),
                )
            )
        ours, single, mean = (1000 * np.mean(found, axis=0)).tolist()
        rows += [
            Row(f"average: {count} takes", "mrad", ours, single, "one take", at_most=1.0),
            Row(f"average: {count} takes", "mrad", ours, mean, "mean by time", at_most=1.0),
        ]
    return rows
