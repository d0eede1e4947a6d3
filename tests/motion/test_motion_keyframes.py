"""Are the keyframes the best there are? Brute force says so on small motions, peers on large."""

import itertools
import time
from functools import reduce

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from motion.motion_peers import errors, greedy, uniform, visvalingam, wave
from rote.errors import BadRequestError, UnsafeMotionError
from rote.messages import Interpolation
from rote.motion.interpolate import sample_keyframes
from rote.motion.keyframes import graph as keyframe_graph
from rote.motion.keyframes import search as module
from rote.motion.keyframes.search import (
    ABSURD_RAD,
    Compressed,
    Measure,
    check_faithful,
    compress_to_bound,
    compress_to_budget,
)
from rote.motion.track import Array, Track
from sampled import sample_parameters

BOTH = (Interpolation.LINEAR, Interpolation.SMOOTH)
MEASURES: tuple[Measure, ...] = ("max", "rms")
both_ways = pytest.mark.parametrize("how", BOTH, ids=lambda how: how.name.lower())


def small(seed: int, *, begin_s: float = 0.0) -> Track:
    """1 or 2 joints of 2 to 8 samples: a random walk, uneven in time for odd seeds."""
    random = np.random.default_rng(seed)
    size, joints = int(random.integers(2, 9)), int(random.integers(1, 3))
    gaps = random.integers(1, 80, size) if seed % 2 else np.full(size, 10)
    poses = np.cumsum(random.normal(0.0, 0.3, (size, joints)), axis=0)
    names = ("left", "right")[:joints]
    return Track(times_s=begin_s + np.cumsum(gaps) / 1000, joints_rad=poses, names=names)


def ramp(times_s: Array) -> Track:
    return Track(times_s=times_s, joints_rad=np.sin(times_s)[:, None], names=("elbow",))


def brute_force(track: Track, how: Interpolation, measure: Measure) -> list[float]:
    """Return the least error for 0, 1, 2... keyframes in all, over every subset of the samples."""
    nodes = range(1, len(track))
    most = len(nodes)
    curves = []
    for joint in range(len(track.names)):
        alone = Track(
            times_s=track.times_s, joints_rad=track.joints_rad[:, [joint]], names=("alone",)
        )
        curve = []
        for count in range(most + 1):
            all_wrong = [
                errors(alone, [list(path)], how) for path in itertools.combinations(nodes, count)
            ]
            curve.append(min(w.max() if measure == "max" else (w**2).sum() for w in all_wrong))
        curves.append(curve)

    def join(one: list[float], other: list[float]) -> list[float]:
        joined = [np.inf] * (len(one) + len(other) - 1)
        for (i, a), (j, b) in itertools.product(enumerate(one), enumerate(other)):
            joined[i + j] = min(joined[i + j], max(a, b) if measure == "max" else a + b)
        return joined

    exact = np.minimum.accumulate(reduce(join, curves))
    size = track.joints_rad.size
    return [float(e) if measure == "max" else float(np.sqrt(e / size)) for e in exact]


def error_of(found: Compressed, measure: Measure) -> float:
    return found.max_error_rad if measure == "max" else found.rms_error_rad


@both_ways
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", sample_parameters(range(16), 6))
def test_a_budget_gives_the_error_that_brute_force_gives(
    seed: int, measure: Measure, how: Interpolation
) -> None:
    track = small(seed)
    for count, least in enumerate(brute_force(track, how, measure)):
        found = compress_to_budget(track, count, how, measure)
        assert len(found.keyframes) <= count
        assert error_of(found, measure) == pytest.approx(least, abs=2e-7)


@both_ways
@pytest.mark.parametrize("seed", sample_parameters(range(16), 6))
def test_a_bound_is_met_and_one_keyframe_fewer_cannot_meet_it(
    seed: int, how: Interpolation
) -> None:
    track = small(seed)
    least = [
        brute_force(
            Track(times_s=track.times_s, joints_rad=track.joints_rad[:, [j]], names=("j",)),
            how,
            "max",
        )
        for j in range(len(track.names))
    ]
    for bound_rad in (0.0, 0.01, 0.05, 0.1, 0.2, 0.4, 0.8, *least[0]):
        found = compress_to_bound(track, bound_rad, how)
        assert found.max_error_rad <= bound_rad + 2e-12
        for joint, curve in enumerate(least):
            fewest = next(k for k, e in enumerate(curve) if e <= bound_rad + 1e-12)
            assert sum(k.joint == joint for k in found.keyframes) == fewest


@both_ways
def test_small_pieces_of_work_give_the_same_keyframes(
    how: Interpolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = wave(1, duration_s=2.0, joints=4)
    whole = compress_to_bound(track, 0.03, how)
    monkeypatch.setattr(keyframe_graph, "_CHUNK", 3000)
    pieces = compress_to_bound(track, 0.03, how)
    assert len(pieces.keyframes) == len(whole.keyframes)
    assert pieces.max_error_rad <= 0.03 + 1e-12


@both_ways
@pytest.mark.parametrize("seed", sample_parameters(range(6), 2))
def test_a_long_track_gets_as_few_keyframes_as_a_short_one(
    seed: int, how: Interpolation, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = wave(seed, duration_s=2.0, joints=5)
    for bound_rad in (0.01, 0.05, 0.2):
        short = compress_to_bound(track, bound_rad, how)
        monkeypatch.setattr(keyframe_graph, "_LONG_TRACK", 0)
        long = compress_to_bound(track, bound_rad, how)
        monkeypatch.undo()
        assert len(long.keyframes) == len(short.keyframes)
        assert long.max_error_rad <= bound_rad + 2e-12


@both_ways
@given(seed=st.integers(0, 10_000), bound_rad=st.floats(0.0, 1.0), size=st.integers(2, 70))
def test_no_stretch_within_the_bound_is_ruled_out_by_its_block(
    how: Interpolation, seed: int, bound_rad: float, size: int
) -> None:
    random = np.random.default_rng(seed)
    times_s = np.cumsum(random.integers(1, 30, size)) / 1000.0
    values = np.cumsum(random.normal(0.0, 0.2, size))
    blend = keyframe_graph.BLENDS[how]
    allowed = keyframe_graph.find_open_blocks(times_s, values, blend, bound_rad)
    for first, last in itertools.combinations(range(size), 2):
        inner = slice(first, last + 1)
        u = (times_s[inner] - times_s[first]) / (times_s[last] - times_s[first])
        played = values[first] + blend.at(u) * (values[last] - values[first])
        if np.abs(played - values[inner]).max() <= bound_rad:
            assert allowed[first // keyframe_graph._BLOCK, last // keyframe_graph._BLOCK], (
                first,
                last,
            )


@given(
    seed=st.integers(0, 10_000),
    bound_rad=st.floats(0.0, 1.0),
    size=st.integers(2, 60),
    panel=st.sampled_from([1, 2, 7, 128]),
)
def test_a_line_is_drawn_to_every_sample_that_it_may_go_to_and_to_no_other(
    seed: int, bound_rad: float, size: int, panel: int
) -> None:
    random = np.random.default_rng(seed)
    times_s = np.cumsum(random.integers(1, 30, size)) / 1000.0
    values = np.cumsum(random.normal(0.0, 0.2, size))
    starts = np.flatnonzero(random.random(size) < 0.3)
    parents = np.where(random.random(size) < 0.2, 0, -1)
    waiting = parents < 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(keyframe_graph, "_PANEL", panel)
        reached = keyframe_graph.LineSearch(times_s, values, parents).reach_samples(
            starts, bound_rad
        )
    for end in range(size):
        allowed = []
        for start in starts[starts < end].tolist():
            inner = slice(start, end + 1)
            u = (times_s[inner] - times_s[start]) / (times_s[end] - times_s[start])
            played = values[start] + u * (values[end] - values[start])
            over_rad = np.abs(played - values[inner]).max() - bound_rad
            if abs(over_rad) < 1e-9:
                return  # by a hair: either is right
            if over_rad < 0:
                allowed.append(start)
        assert (end in reached) == bool(allowed and waiting[end])
        if end in reached:
            assert parents[end] in allowed


@pytest.mark.parametrize("seed", sample_parameters(range(12), 2))
def test_no_peer_beats_the_budget(seed: int) -> None:
    how = BOTH[seed % 2]
    track = wave(seed, joints=7, rate_hz=50.0)
    for measure in MEASURES:
        found = error_of(compress_to_budget(track, 20, how, measure), measure)
        for peer in (uniform, greedy, visvalingam):
            wrong = errors(track, peer(track, 20, how), how)
            theirs = wrong.max() if measure == "max" else np.sqrt(np.mean(wrong**2))
            assert found <= theirs + 1e-8, peer.__name__


@both_ways
@pytest.mark.parametrize("measure", MEASURES)
def test_the_stated_errors_are_those_of_playing_the_keyframes(
    measure: Measure, how: Interpolation
) -> None:
    track = wave(3, joints=5, rate_hz=50.0)
    found = compress_to_budget(track, 12, how, measure)
    wrong = np.abs(
        sample_keyframes(found.keyframes, track.joints_rad[0], track.times_s, how)
        - track.joints_rad
    )
    row, joint = np.unravel_index(wrong.argmax(), wrong.shape)
    assert found.max_error_rad == pytest.approx(wrong.max(), abs=1e-12)
    assert found.rms_error_rad == pytest.approx(np.sqrt(np.mean(wrong**2)), abs=1e-12)
    assert (found.worst_joint, found.worst_time_s) == (track.names[joint], track.times_s[row])
    assert found.interpolation is how


def test_a_track_that_begins_later_has_the_same_keyframes() -> None:
    assert (
        compress_to_bound(small(4), 0.1, Interpolation.SMOOTH).keyframes
        == compress_to_bound(small(4, begin_s=1000.0), 0.1, Interpolation.SMOOTH).keyframes
    )


def test_keyframes_are_in_order_on_samples_and_never_at_the_start() -> None:
    track = wave(5, joints=5, rate_hz=50.0)
    found = compress_to_bound(track, 0.02, Interpolation.SMOOTH).keyframes
    assert [(k.time_ms, k.joint) for k in found] == sorted({(k.time_ms, k.joint) for k in found})
    for keyframe in found:
        assert keyframe.time_ms > 0
        assert keyframe.value_rad == track.joints_rad[keyframe.time_ms // 20, keyframe.joint]


def test_a_joint_that_rests_needs_no_keyframe() -> None:
    track = Track(times_s=np.arange(9.0), joints_rad=np.full((9, 2), 0.7), names=("a", "b"))
    assert compress_to_bound(track, 0.0, Interpolation.LINEAR).keyframes == ()
    for measure in MEASURES:
        found = compress_to_budget(track, 20, Interpolation.SMOOTH, measure)
        assert (found.keyframes, found.max_error_rad) == ((), 0.0)


@pytest.mark.parametrize("measure", MEASURES)
def test_a_long_track_is_searched_thinly_and_measured_fully(
    measure: Measure, monkeypatch: pytest.MonkeyPatch
) -> None:
    track = wave(6, duration_s=1.0, joints=3)
    exact = error_of(compress_to_budget(track, 8, Interpolation.SMOOTH, measure), measure)
    monkeypatch.setattr(module, "SEARCHED_SAMPLES", 30)
    found = compress_to_budget(track, 8, Interpolation.SMOOTH, measure)
    assert all(k.time_ms % 40 == 0 for k in found.keyframes)
    assert exact - 1e-8 <= error_of(found, measure) <= 3 * exact + 0.02


def test_the_number_of_an_interpolation_plays_as_the_name_does() -> None:
    named = compress_to_budget(small(2), 2, Interpolation.SMOOTH)
    assert compress_to_budget(small(2), 2, 2) == named  # type: ignore[arg-type]


def test_keyframes_of_another_motion_are_refused_with_the_number_and_the_advice() -> None:
    found = compress_to_budget(ramp(np.linspace(0.0, 6.0, 61)), 1, Interpolation.LINEAR)
    assert found.absurd
    with pytest.raises(UnsafeMotionError, match=r"elbow.*rad; the limit is 0\.150 rad$") as caught:
        check_faithful(found)
    assert "robot.play_track" in caught.value.remedy
    check_faithful(found, limit_rad=found.max_error_rad)


def test_faithful_keyframes_pass_the_check() -> None:
    found = compress_to_bound(ramp(np.linspace(0.0, 6.0, 61)), ABSURD_RAD, Interpolation.LINEAR)
    assert not found.absurd
    check_faithful(found)


@pytest.mark.parametrize(
    ("how", "words"), [(Interpolation.CUBIC, "overshoots"), (7, "unknown interpolation 7")]
)
def test_an_interpolation_that_cannot_be_used_is_refused(how: Interpolation, words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        compress_to_bound(small(1), 0.1, how)
    with pytest.raises(BadRequestError, match=words):
        compress_to_budget(small(1), 3, how)


@pytest.mark.parametrize(
    ("times_s", "words"),
    [
        ([0.0], "two samples"),
        ([0.0, 30.0, 65.536], r"the motion lasts 65\.536 s, but keyframes reach only 65\.535 s"),
        ([0.0, 0.0101, 0.0102], "in one millisecond"),
    ],
)
def test_a_track_that_does_not_fit_keyframes_is_refused(times_s: list[float], words: str) -> None:
    with pytest.raises(BadRequestError, match=words):
        compress_to_bound(ramp(np.array(times_s)), 0.1, Interpolation.LINEAR)


def test_the_longest_time_of_the_wire_fits() -> None:
    found = compress_to_bound(ramp(np.array([0.0, 30.0, 65.535])), 0.0, Interpolation.LINEAR)
    assert found.keyframes[-1].time_ms == 65_535


def test_a_track_without_joints_is_refused() -> None:
    track = Track(times_s=np.arange(3.0), joints_rad=np.zeros((3, 0)), names=())
    with pytest.raises(BadRequestError, match="at least one joint"):
        compress_to_budget(track, 3, Interpolation.LINEAR)


def test_a_track_with_a_value_that_is_not_a_number_cannot_be_made() -> None:
    with pytest.raises(BadRequestError, match="not a number"):
        Track(times_s=np.arange(2.0), joints_rad=np.array([[0.0], [np.nan]]), names=("a",))


@pytest.mark.parametrize("bound_rad", [-0.1, np.nan, np.inf])
def test_a_bound_that_is_no_bound_is_refused(bound_rad: float) -> None:
    with pytest.raises(BadRequestError, match="error bound"):
        compress_to_bound(small(1), bound_rad, Interpolation.LINEAR)


def test_a_budget_that_is_no_budget_is_refused() -> None:
    with pytest.raises(BadRequestError, match="is negative"):
        compress_to_budget(small(1), -1, Interpolation.LINEAR)
    with pytest.raises(BadRequestError, match="unknown error measure 'mean'"):
        compress_to_budget(small(1), 1, Interpolation.LINEAR, "mean")  # type: ignore[arg-type]


@pytest.mark.soak
@pytest.mark.timeout(3000)
@both_ways
def test_the_budget_is_far_better_than_greedy_on_200_motions(how: Interpolation) -> None:
    ratios, bound_ms, budget_ms = [], [], []
    for seed in range(200):
        track = wave(seed)
        begin = time.perf_counter()
        compress_to_bound(track, 0.05, how)
        middle = time.perf_counter()
        found = compress_to_budget(track, 20, how)
        end = time.perf_counter()
        bound_ms.append((middle - begin) * 1000)
        budget_ms.append((end - middle) * 1000)
        for peer in (greedy, uniform, visvalingam):
            theirs = float(errors(track, peer(track, 20, how), how).max())
            assert found.max_error_rad <= theirs + 1e-8, (seed, peer.__name__)
            if peer is greedy:
                ratios.append(found.max_error_rad / theirs)
    print(
        f"\n{how.name.lower()}: median ratio to greedy {np.median(ratios):.2f}; median time "
        f"{np.median(bound_ms):.0f} ms to a bound, {np.median(budget_ms):.0f} ms to a budget"
    )
    assert np.median(ratios) <= 0.6


def test_where_joints_drift_slowly_smooth_steps_are_few_and_within_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = np.random.default_rng(4)
    ways = random.normal(0.0, 0.01, (900, 2)).cumsum(axis=0)
    drift = np.apply_along_axis(np.convolve, 0, ways, np.full(60, 1 / 60), "same")
    track = Track(
        times_s=np.arange(900) / 100,
        joints_rad=drift,
        names=("left_elbow_joint", "waist_yaw_joint"),
    )
    monkeypatch.setattr(keyframe_graph, "MANY_STRETCHES", 1000)
    monkeypatch.setattr(keyframe_graph, "_FEW_STRETCHES", 5000)
    fewest = compress_to_bound(track, 0.02, Interpolation.SMOOTH, exact=True)
    quick = compress_to_bound(track, 0.02, Interpolation.SMOOTH)
    for found in (fewest, quick):
        assert np.abs(module.played_track(track, found).joints_rad - drift).max() <= 0.02 + 1e-9
    assert len(fewest.keyframes) <= len(quick.keyframes) <= 1.5 * len(fewest.keyframes)
    every = keyframe_graph.choose_node_step(drift[:, 0], 0.02)
    assert every > 1
    nodes = [frame.time_ms // 10 for frame in quick.keyframes if frame.joint == 0]
    assert all(node % every == 0 or node == 899 for node in nodes)
