"""Random paths, retimed as fast as their limits allow: beside toppra's durations, on the path."""

import sys
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import numpy as np
import pytest
from benchmarks.peers import PEERS
from benchmarks.retime_search import Judged, judge, judge_with_toppra

from rote.motion.edit.retime import TOLERANCE_RAD

MOST = 1.3
"""The longest result, in times of toppra's."""


def require_limits_and_path(judged: Judged) -> None:
    assert judged.excess <= 1.0 + 1e-6, judged
    assert judged.off_rad <= TOLERANCE_RAD + 1e-4, judged  # measured between samples only so finely


@pytest.mark.parametrize(
    ("seed", "toppra_s"),
    [
        pytest.param(0, 12.01, id="29 joints in motion at both ends", marks=pytest.mark.soak),
        pytest.param(9, 8.44, id="7 noisy joints", marks=pytest.mark.soak),
        pytest.param(6, 2.42, id="7 joints that stop between moves"),
        pytest.param(343, 2.12, id="a pause at the end"),
    ],
)
def test_a_random_path_takes_little_longer_than_toppra_finds_possible(
    seed: int, toppra_s: float
) -> None:
    judged = judge(seed)
    require_limits_and_path(judged)
    assert judged.ours_s <= 1.2 * toppra_s


@pytest.mark.soak
def test_a_thousand_random_paths_take_little_longer_than_toppra_finds_possible() -> None:
    sys.path.append(str(PEERS / "retime"))
    if not find_spec("toppra"):
        pytest.skip("toppra is not installed; get it with: scripts/peers/benchmarks retime")
    with ProcessPoolExecutor() as workers:
        judged = list(workers.map(judge_with_toppra, range(1000), chunksize=4))
    for each in judged:
        require_limits_and_path(each)
    ratios = np.array([each.ratio for each in judged if each.ratio is not None])
    median, p95, worst = np.percentile(ratios, (50, 95, 100)).tolist()
    print(f"{ratios.size} paths beside toppra: median {median:.3f}, p95 {p95:.3f}, {worst:.3f}")
    assert ratios.size >= 900  # toppra finds no solution for a few
    assert median <= 1.05
    assert p95 <= 1.15
    assert worst <= MOST
