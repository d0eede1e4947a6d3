"""Claim: shaping and checking a motion takes less time than a person notices.

All in processor time, 29 joints at 100 Hz, the median of a few rounds. The motions are generated:
five joints of an arm, or both arms and the waist, raised and lowered every five seconds, every
third of them waving meanwhile, with 2 mrad of noise on all 29, as a sensor has it. The goals for
keyframes are for the arm; both arms, and joints that all drift slowly, are shown beside it. A
budget on 60 s is spent on every n-th sample (`SEARCHED_SAMPLES` says which), a bound on all of
them but where joints drift and steps are smooth (`MANY_STRETCHES`). A list of a thousand takes is a
whole command. What playing a track costs is measured by `stream`.
"""

import math
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.size import size
from benchmarks.table import Row, cpu_s, take_turns
from rote.messages import Interpolation
from rote.model.g1 import G1, G1_29, G1_REST_RAD, RIGHT_ARM, TAUGHT_JOINTS
from rote.motion.body.contact import ContactModel
from rote.motion.check.rules import check
from rote.motion.edit.retime import retime
from rote.motion.files.library import Library
from rote.motion.keyframes.search import SEARCHED_SAMPLES, compress_to_bound, compress_to_budget
from rote.motion.track import Array, Track

ROUNDS = size(3, 1)
SHORT_S, TEN_S, LONG_S = size((5.0, 10.0, 60.0), (0.5, 0.5, 1.0))
BOUND_RAD = 0.05
HAND_MM = 10.0
BUDGET = size(20, 3)
TAKES = size(1000, 3)
EVERY_S = SHORT_S
BOTH = (Interpolation.LINEAR, Interpolation.SMOOTH)


def waving(
    seconds: float, moved: Sequence[int] = RIGHT_ARM[:5], *, noise_rad: float = 0.002
) -> Track:
    """Return joints that are raised, wave and are lowered, again and again."""
    chance = np.random.default_rng(1)
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    joints = np.repeat(np.array(G1_REST_RAD)[None, :], times_s.size, axis=0)
    within_s = times_s % EVERY_S
    raised = _eased((within_s - 0.5) / 1.0) - _eased((within_s - 3.5) / 1.0)
    for place, index in enumerate(moved):
        by_rad = chance.uniform(-0.35, 0.35) * raised
        waves = 0.15 * (place % 3 == 0) * np.sin(2 * math.pi * chance.uniform(0.8, 1.4) * times_s)
        joints[:, index] += by_rad + waves * raised
    joints[:, _rolls()] += np.outer(raised, (0.6, -0.6))  # away from the hips
    joints += chance.normal(0.0, noise_rad, joints.shape)
    return Track(times_s=times_s, joints_rad=joints, names=G1_29.names, source="a benchmark")


def drifting(seconds: float) -> Track:
    """Return joints that all go slowly wherever chance leads them: long stretches, hard to tell."""
    chance = np.random.default_rng(1)
    times_s = np.arange(round(100 * seconds) + 1) / 100.0
    ways = chance.normal(0.0, 0.01, (times_s.size, len(G1_29.names))).cumsum(axis=0)
    smooth = np.apply_along_axis(np.convolve, 0, ways, np.full(100, 0.01), "same")
    joints = np.array(G1_REST_RAD) + 0.3 * smooth / np.abs(smooth).max(axis=0)
    return Track(times_s=times_s, joints_rad=joints, names=G1_29.names, source="a benchmark")


def _eased(fractions: Array) -> Array:
    u = np.clip(fractions, 0.0, 1.0)
    return np.asarray(u * u * (3.0 - 2.0 * u))


def _rolls() -> list[int]:
    return [G1_29.names.index(f"{side}_shoulder_roll_joint") for side in ("left", "right")]


def slowest(work: Callable[[Interpolation], object]) -> Callable[[], float]:
    """Return a measure: milliseconds for the slower of both ways to interpolate."""
    return lambda: 1000.0 * max(cpu_s(lambda how=how: work(how)) for how in BOTH)  # type: ignore[misc]


def bound_by(track: Track, how: Interpolation) -> float:
    """Return the milliseconds that a bound takes."""
    return 1000.0 * cpu_s(lambda: compress_to_bound(track, BOUND_RAD, how))


def list_ms() -> float:
    """Return the milliseconds that a list of many takes takes; the first is not counted."""
    with TemporaryDirectory() as home:
        library = Library(Path(home) / "takes")
        first = library.save(waving(3.0), "take 0000").path
        for number in range(1, TAKES):
            shutil.copy(first, first.with_name(f"take {number:04d}.mcap"))
        command = [sys.executable, "-m", "rote", "takes", "list"]
        # As a person runs it: compiled modules are kept.
        kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        surroundings = {**kept, "ROTE_HOME": home}
        taken = [
            child_cpu_s(
                lambda: subprocess.run(command, check=True, capture_output=True, env=surroundings)
            )
            for _ in range(size(7, 2))
        ]
    return 1000.0 * median(taken[1:])


def child_cpu_s(work: Callable[[], object]) -> float:
    """Return the processor time of the processes that `work` starts and waits for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    work()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def run() -> list[Row]:
    short, long = waving(SHORT_S), waving(LONG_S)
    both, both_long = waving(SHORT_S, TAUGHT_JOINTS), waving(LONG_S, TAUGHT_JOINTS)
    ten = waving(TEN_S, TAUGHT_JOINTS, noise_rad=0.0)
    grid = -(-len(long) // SEARCHED_SAMPLES)
    ContactModel(G1)  # its library is imported once

    def bound(track: Track) -> Callable[[], float]:
        return slowest(lambda how: compress_to_bound(track, BOUND_RAD, how))

    def budget(track: Track) -> Callable[[], float]:
        return slowest(lambda how: compress_to_budget(track, BUDGET, how))

    to_bound, to_budget = f"to {BOUND_RAD} rad", f"to {BUDGET} keyframes"
    claims: dict[str, tuple[float, Callable[[], float]]] = {
        f"motion: compress 5 s {to_bound}, an arm": (50.0, bound(short)),
        f"motion: compress 5 s {to_budget}, an arm": (600.0, budget(short)),
        f"motion: compress 5 s {to_budget}, both arms": (600.0, budget(both)),
        f"motion: compress 60 s {to_bound}, an arm": (1000.0, bound(long)),
        f"motion: compress 60 s {to_budget}, 1 of {grid} samples": (2000.0, budget(both_long)),
        "motion: check 60 s, without contact": (
            100.0,
            lambda: 1000.0 * cpu_s(lambda: check(both_long, contact=False)),
        ),
        "motion: check 60 s, with contact": (
            3000.0,
            lambda: 1000.0 * cpu_s(lambda: check(both_long)),
        ),
        "motion: retime 10 s": (2000.0, lambda: 1000.0 * cpu_s(lambda: retime(ten))),
    }
    drift = drifting(LONG_S)
    for rad in (BOUND_RAD, 0.03):
        claims[f"motion: compress 60 s to {rad} rad, all joints drift, smooth"] = (
            2000.0,
            lambda rad=rad: (  # type: ignore[misc]
                1000.0 * cpu_s(lambda: compress_to_bound(drift, rad, Interpolation.SMOOTH))
            ),
        )
    claims["motion: compress 5 s to 20 keyframes with free values"] = (
        10_000.0,
        lambda: (
            1000.0
            * cpu_s(lambda: compress_to_budget(both, BUDGET, Interpolation.LINEAR, free=True))
        ),
    )
    beside = {
        f"motion: compress {seconds} s {to_bound}, {moved}, {how.name.lower()}": partial(
            bound_by, track, how
        )
        for how in BOTH
        for seconds, moved, track in (
            (5, "both arms", both),
            (60, "both arms", both_long),
            (60, "all joints drift", drift),
        )
    } | {
        f"motion: compress 5 s {to_bound}, hands within {HAND_MM:g} mm": slowest(
            lambda how: compress_to_bound(short, BOUND_RAD, how, hand_mm=HAND_MM)
        ),
    }
    listed = list_ms()
    taken = take_turns(ROUNDS, {name: measure for name, (_, measure) in claims.items()})
    rows = [
        Row(name, "ms", taken[name], most, "limit", at_most=1) for name, (most, _) in claims.items()
    ]
    rows.append(
        Row(f"motion: rote takes list, {TAKES:,} takes", "ms", listed, 500.0, "limit", at_most=1)
    )
    return rows + [
        Row(name, "ms", measure(), rows[0].ours, "5 s of an arm")
        for name, measure in beside.items()
    ]
