"""Random paths to retime: swings, moves with stops, noise, few and many joints, many rates.

Each seed gives one path and its limits, always the same. `judge` retimes it as fast as the limits
allow and measures the result without the code under test: its duration beside toppra's, the limits
at twenty times the rate, and how near it passes to each recorded pose.
"""

import math
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from benchmarks.retime_peers import Limits, along, toppra_s
from benchmarks.table import Row
from rote.messages import Interpolation
from rote.model.g1 import G1_29
from rote.motion.edit.retime import TOLERANCE_RAD, retime
from rote.motion.interpolate import minimum_jerk, sample
from rote.motion.track import Array, Track

KINDS = ("swing", "noise", "stops", "pause")
FINER = 20


class Judged(NamedTuple):
    """What came of one path."""

    seed: int
    kind: str
    joints: int
    rate_hz: float
    recorded_s: float
    ours_s: float
    toppra_s: float | None
    """None if it was not run, or finds no solution."""
    excess: float
    """The largest speed or acceleration, relative to its limit, at twenty times the rate."""
    off_rad: float
    """The largest distance of a recorded pose from the result."""

    @property
    def ratio(self) -> float | None:
        return None if self.toppra_s is None else self.ours_s / self.toppra_s


def random_path(seed: int) -> tuple[str, Track, Limits]:
    """Return the path of a seed, what kind it is, and limits without an effective jerk limit."""
    chance = np.random.default_rng(seed)
    kind = KINDS[seed % len(KINDS)]
    joints = int(chance.choice([1, 2, 7, 14, 23, 29]))
    rate_hz = float(chance.choice([50.0, 100.0, 200.0]))
    seconds = float(chance.uniform(1.5, 5.0))
    times_s = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    if kind in ("swing", "noise"):
        hz = chance.uniform(0.2, 1.8, joints)
        phase = chance.uniform(0.0, 2 * math.pi, joints)
        joints_rad = chance.uniform(0.1, 0.9, joints) * np.sin(
            2 * math.pi * hz * times_s[:, None] + phase
        )
        if kind == "noise":
            joints_rad += chance.uniform(0.0003, 0.002) * chance.standard_normal(joints_rad.shape)
    else:
        joints_rad = _moves(chance, times_s, joints, pauses=kind == "pause")
    track = Track(times_s=times_s, joints_rad=joints_rad, names=G1_29.names[:joints])
    fast = float(chance.choice([1.5, 2.0, 3.0, 5.0]))
    limits = Limits(fast, float(chance.choice([4.0, 8.0])) * fast, 1e6)
    return kind, track, limits


def _moves(chance: np.random.Generator, times_s: Array, joints: int, *, pauses: bool) -> Array:
    """Return moves from pose to pose, all joints at rest between them; with `pauses` also after."""
    stops = int(chance.integers(2, 6))
    at_s = np.linspace(0.0, float(times_s[-1]), stops + 1)
    joints_rad = np.zeros((len(times_s), joints))
    for begin_s, end_s in pairwise(at_s.tolist()):
        share = chance.uniform(0.3, 0.8) if pauses else 1.0
        gone = (times_s - begin_s) / ((end_s - begin_s) * share)
        joints_rad += minimum_jerk(np.zeros(joints), chance.uniform(-0.8, 0.8, joints), gone)
    return joints_rad


def judge(seed: int) -> Judged:
    """Retime the path of a seed at its own rate, and measure the result."""
    kind, track, limits = random_path(seed)
    done = retime(
        track,
        velocity=limits.rad_s,
        acceleration=limits.rad_s2,
        jerk=limits.rad_s3,
        rate_hz=track.rate_hz,
        fastest=True,
    )
    return Judged(
        seed,
        kind,
        len(track.names),
        track.rate_hz,
        track.duration_s,
        done.duration_s,
        None,
        excess(done, limits),
        deviation_rad(done, track),
    )


def judge_with_toppra(seed: int) -> Judged:
    """Return the same with toppra's duration on the path that rote follows."""
    _, track, limits = random_path(seed)
    return judge(seed)._replace(toppra_s=toppra_s(*along(track, poses=2000), limits))


def search_rows(paths: int) -> list[Row]:
    """Return the rows of a search over the first `paths` seeds."""
    with ProcessPoolExecutor() as workers:
        judged = list(workers.map(judge_with_toppra, range(paths)))
    ratios = np.array([each.ratio for each in judged if each.ratio is not None])
    name = f"retime: {ratios.size} random paths"
    found = [
        Row(
            f"{name}, {what}",
            "times",
            float(np.percentile(ratios, share)),
            1.0,
            "toppra",
            None,
            most,
        )
        for what, share, most in (("median", 50, 1.05), ("p95", 95, 1.15), ("worst", 100, 1.3))
    ]
    most = max(each.excess for each in judged)
    return [*found, Row(f"{name}, speed and acceleration", "times", most, 1.0, "limit", None, 1.0)]


def excess(track: Track, limits: Limits) -> float:
    """Return the largest speed or acceleration of what players show, relative to its limit.

    It is measured over intervals as long as a sample, twenty of them beginning in each sample, with
    the first and last pose held.
    """
    step_s = track.duration_s / (len(track) - 1)
    held = np.pad(track.joints_rad, ((2, 2), (0, 0)), mode="edge")
    at_s: Array = np.arange((len(held) - 1.0) * FINER + 1) * (step_s / FINER)
    held_s: Array = np.arange(float(len(held))) * step_s
    shown = sample(held_s, held, at_s, Interpolation.CUBIC)
    speeds = (shown[FINER:] - shown[:-FINER]) / step_s
    gains = (speeds[FINER:] - speeds[:-FINER]) / step_s
    return max(
        float(np.abs(speeds).max()) / limits.rad_s, float(np.abs(gains).max()) / limits.rad_s2
    )


def deviation_rad(done: Track, recorded: Track) -> float:
    """Return the largest distance in a joint from a recorded pose to the result, in its order."""
    step_s = done.duration_s / (len(done) - 1) / FINER
    at_s: Array = np.arange((len(done) - 1.0) * FINER + 1) * step_s
    times_s = done.times_s - done.times_s[0]
    shown = sample(times_s, done.joints_rad, at_s, Interpolation.CUBIC)
    # A quick joint goes far from one of these moments to the next, so that the nearest is searched
    # between them as well.
    between_s: Array = np.linspace(-step_s, step_s, 2 * FINER + 1)
    reached, worst = 0, 0.0
    for pose in recorded.joints_rad:
        far = np.abs(shown[reached:] - pose).max(axis=1)
        near = far <= TOLERANCE_RAD
        chosen = int(near.argmax()) if near.any() else int(far.argmin())
        least = float(far[chosen])
        reached += chosen
        if least > TOLERANCE_RAD:
            around = sample(
                times_s, done.joints_rad, at_s[reached] + between_s, Interpolation.CUBIC
            )
            least = float(np.abs(around - pose).max(axis=1).min())
        worst = max(worst, least)
    return worst
