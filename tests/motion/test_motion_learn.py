"""A motion learned from several takes: what it keeps, how it is adapted, what it refuses."""

import json
import time
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from rote.errors import BadRequestError
from rote.findings import Severity
from rote.model.registry import build_named
from rote.motion.compare import compare, merge
from rote.motion.edit.hand_path import hand_positions_m
from rote.motion.edit.retarget import to_robot
from rote.motion.files.model_file import load_model, save_model
from rote.motion.learn import HandPoint, MotionModel, learn
from rote.motion.track import Array, Track
from rote.sim.hands import SCRIPTS, ScriptedHand
from scripted_tracks import make_scripted_track

G1 = build_named("g1-29")
SECONDS = 4.0


def noisy_take(script: str, seed: int) -> Track:
    """Return a scripted motion as a person repeats it: another tempo, other amplitudes, drift."""
    random = np.random.default_rng([seed, len(script)])
    seconds = SECONDS * random.uniform(0.85, 1.15)
    times_s = np.arange(round(seconds * 100) + 1) / 100
    late_s = 0.08 * np.sin(2 * np.pi * random.uniform(0.8, 1.4) * times_s / seconds)
    hand = ScriptedHand(script, SECONDS, G1)
    moments = np.clip((times_s + late_s) / seconds, 0.0, 1.0) * SECONDS
    poses = np.array([hand.pose(at_s) for at_s in moments.tolist()])
    moving = np.ptp(poses, axis=0) > 0.01
    bulge = np.sin(np.pi * times_s / seconds)[:, None] ** 2
    poses = poses + moving * bulge * random.normal(0.0, 0.05, poses.shape[1])
    return Track(times_s=times_s, joints_rad=poses, names=G1.names, variant="g1-29")


@cache
def model_of(script: str) -> MotionModel:
    return learn([noisy_take(script, seed) for seed in range(5)])


def hand_at(track: Track, at_s: float) -> Array:
    row = int(np.abs(track.times_s - at_s).argmin())
    return np.asarray(hand_positions_m(track, "right")[row])


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_what_was_learned_is_nearer_to_the_motion_than_any_take(script: str) -> None:
    truth = make_scripted_track(script)
    takes = [noisy_take(script, seed) for seed in range(5)]
    learned = compare(model_of(script).adapt(), truth).rms_rad
    single = float(np.median([compare(take, truth).rms_rad for take in takes]))
    assert learned <= 0.7 * single


@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_an_adapted_motion_meets_its_points_and_its_ends(script: str) -> None:
    model, random = model_of(script), np.random.default_rng(3)
    learned = model.adapt()
    for _ in range(3):
        at_s = float(random.uniform(0.3, 0.7)) * model.duration_s
        point = hand_at(learned, at_s) + random.uniform(-0.02, 0.02, 3)
        result = model.adapt(through=[HandPoint(at_s, *point.tolist())])
        assert hand_at(result, at_s) == pytest.approx(point, abs=0.005)
        assert result.joints_rad[[0, -1]] == pytest.approx(learned.joints_rad[[0, -1]], abs=0.01)


def mixed_point(model: MotionModel, at_s: float, chance: np.random.Generator) -> HandPoint:
    """Return where the right hand is at a time of a random mixture of the takes."""
    shares = chance.normal(0.0, 1.0, len(model.deviations)) / np.sqrt(len(model.deviations) - 1)
    mixed = replace(model, mean=model.mean + np.tensordot(shares, model.deviations, 1))
    return HandPoint(at_s, *hand_at(mixed.adapt(), at_s).tolist())


@pytest.mark.parametrize("count", [4, pytest.param(250, marks=pytest.mark.soak)])
@pytest.mark.parametrize("script", sorted(SCRIPTS))
def test_every_conditioning_inside_what_was_taught_is_exact_and_passes_the_check(
    script: str, count: int
) -> None:
    model, chance = model_of(script), np.random.default_rng(11)
    learned = model.adapt()
    times_ms = []
    for _ in range(count):
        row = int(chance.uniform(0.25, 0.75) * (len(learned) - 1))
        point = mixed_point(model, float(learned.times_s[row]), chance)
        begin = time.process_time()
        result = model.adapt(through=[point])
        times_ms.append(1000 * (time.process_time() - begin))
        assert hand_at(result, point.time_s) == pytest.approx(point[1:4], abs=0.005)
        assert result.joints_rad[[0, -1]] == pytest.approx(learned.joints_rad[[0, -1]], abs=0.01)
        errors = [each for each in result.check().findings if each.severity is Severity.ERROR]
        assert errors == []
    if count > 100:
        assert np.quantile(times_ms, 0.99) < 40.0


def test_a_joint_that_stays_in_all_takes_stays_in_every_adapted_motion() -> None:
    model = model_of("wave")
    still = [name for name in model.names if "knee" in name or "ankle" in name or "hip" in name]
    learned = model.adapt()
    point = hand_at(learned, 2.0) + np.array([0.02, 0.01, 0.02])
    for result in (learned, model.adapt(through=[HandPoint(2.0, *point.tolist())])):
        angles = result.joints_rad[:, result.columns_of(still)]
        assert np.ptp(angles, axis=0).max() < 1e-9
        assert angles[0] == pytest.approx(np.array([G1.rest[name] for name in still]), abs=1e-9)


def test_several_points_of_one_hand_are_all_met() -> None:
    model = model_of("wave")
    learned = model.adapt()
    points = [
        HandPoint(at_s, *(hand_at(learned, at_s) + by).tolist())
        for at_s, by in ((1.503, [0.02, 0.0, -0.03]), (2.1, [0.0, 0.03, 0.0]), (2.6, [0.01] * 3))
    ]
    result = model.adapt(through=points)
    for point in points:
        assert hand_at(result, point.time_s) == pytest.approx(point[1:4], abs=0.005)
    with pytest.raises(BadRequestError, match="nearly the same time"):
        model.adapt(through=[points[0], points[0]._replace(time_s=1.5031)])


def test_a_motion_in_which_the_robot_would_touch_itself_is_refused() -> None:
    pytest.importorskip("mujoco")
    with pytest.raises(BadRequestError, match="would touch itself at"):
        model_of("bow").adapt(through=[HandPoint(2.0, 0.05, -0.02, 0.15)])


def test_ends_and_duration_are_as_asked_for() -> None:
    model = model_of("wave")
    start = {"right_elbow_joint": 0.5, "left_elbow_joint": 0.7}
    result = model.adapt(start=start, end={"right_elbow_joint": 0.9}, duration_s=6.0)
    assert result.duration_s == pytest.approx(6.0)
    assert result.joints_rad[0, result.columns_of(start)] == pytest.approx([0.5, 0.7], abs=0.01)
    assert result.joints_rad[-1, result.columns_of(["right_elbow_joint"])] == pytest.approx(0.9)
    assert not [each for each in result.check().findings if each.severity is Severity.ERROR]


def test_a_motion_that_would_be_too_fast_gets_slower() -> None:
    result = model_of("drum").adapt(duration_s=0.4)
    assert result.duration_s > 0.4
    assert "fit" in result.history[-1]


def test_a_point_far_from_the_takes_gets_a_warning() -> None:
    model = model_of("wave")
    near = hand_at(model.adapt(), 2.0)
    result = model.adapt(through=[HandPoint(2.0, near[0], near[1] - 0.03, near[2] - 0.15)])
    assert "standard deviations from the takes" in result.history[-1]
    assert "standard" not in model.adapt(through=[HandPoint(2.0, *near.tolist())]).history[-1]


def test_what_cannot_be_reached_is_refused() -> None:
    model = model_of("wave")
    with pytest.raises(BadRequestError, match="out of reach"):
        model.adapt(through=[HandPoint(2.0, 1.5, 0.0, 0.5)])
    with pytest.raises(BadRequestError, match="outside the motion"):
        model.adapt(through=[HandPoint(9.0, 0.3, -0.2, 0.2)])
    with pytest.raises(BadRequestError, match="not a number"):
        model.adapt(through=[HandPoint(2.0, float("nan"), 0.0, 0.2)])
    with pytest.raises(BadRequestError, match="right_elbow_joint"):
        model.adapt(start={"right_elbow_joint": 6.0})
    with pytest.raises(BadRequestError, match="has no tail"):
        model.adapt(end={"tail": 0.0})
    with pytest.raises(BadRequestError, match="cannot last"):
        model.adapt(duration_s=float("nan"))


def test_too_few_takes_and_takes_of_another_motion_are_refused() -> None:
    waves = [noisy_take("wave", seed) for seed in range(3)]
    with pytest.raises(BadRequestError, match="2 takes are too few"):
        learn(waves[:2])
    with pytest.raises(BadRequestError, match="take 4 is another motion"):
        learn([*waves, noisy_take("bow", 0)])
    with pytest.raises(BadRequestError, match="different joints"):
        learn([*waves, waves[0].keep("right_arm")])


def at_rest(seed: int, build: str = "g1-29", tremor_rad: float = 0.003) -> Track:
    """Return a take in which a person held the arms still, with the tremor of a hand."""
    joints = build_named(build)
    chance = np.random.default_rng(seed)
    poses = np.array(joints.rest_rad) + chance.normal(0.0, tremor_rad, (301, len(joints.names)))
    return Track(times_s=np.arange(301) / 100, joints_rad=poses, names=joints.names, variant=build)


def test_takes_in_which_nothing_moves_are_refused() -> None:
    with pytest.raises(BadRequestError, match="take 1 does not move enough"):
        learn([at_rest(seed) for seed in range(3)])
    with pytest.raises(BadRequestError, match="take 1 does not move enough"):
        learn([at_rest(seed, tremor_rad=0.0) for seed in range(3)])
    with pytest.raises(BadRequestError, match="take 3 does not move enough"):
        learn([noisy_take("wave", 0), noisy_take("wave", 1), at_rest(0)])


def test_takes_of_another_robot_too_short_or_too_long_are_refused() -> None:
    waves = [noisy_take("wave", seed) for seed in range(3)]
    with pytest.raises(BadRequestError, match="take 4 was made on another robot: r1"):
        learn([*waves, make_scripted_track(build="r1")])
    one = replace(waves[0], times_s=np.zeros(1), joints_rad=waves[0].joints_rad[:1])
    with pytest.raises(BadRequestError, match=r"take 2 lasts 0\.00 s"):
        learn([waves[0], one, waves[2]])
    two = replace(waves[0], times_s=np.array([0.0, 1.0]), joints_rad=waves[0].joints_rad[:2])
    with pytest.raises(BadRequestError, match="3 samples"):
        learn([two, two, two])
    long = replace(waves[0], times_s=waves[0].times_s * 600.0 / waves[0].duration_s)
    with pytest.raises(BadRequestError, match=r"take 1 lasts 600\.00 s"):
        learn([long, *waves])


def test_a_point_names_one_hand() -> None:
    with pytest.raises(BadRequestError, match="no hand 'both'") as refused:
        model_of("wave").adapt(through=[HandPoint(2.0, 0.3, -0.2, 0.2, "both")])
    assert "left or right" in refused.value.remedy


def test_a_model_survives_its_file(tmp_path: Path) -> None:
    path, model = tmp_path / "wave.model", model_of("wave")
    save_model(model, path)
    assert (load_model(path).adapt().joints_rad == model.adapt().joints_rad).all()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[]",
        "null",
        '{"format": "learned motion 1"}',
        '{"format": "other", "names": []}',
        '{"format": "learned motion 1", "names": ["a"], "variant": "g1-29", "duration_s": 1, '
        '"mean": [[1]], "deviations": [[[1]]]}',
        '{"format": "learned motion 1", "names": ["a"], "variant": "g1-29", "duration_s": 1, '
        '"mean": [[1], [2, 3]], "deviations": []}',
        '{"format": "learned motion 1", "names": 5, "variant": "g1-29", "duration_s": 1, '
        '"mean": [], "deviations": []}',
        "[" * 100_000,
        '{"format": ' * 100_000,
    ],
)
def test_a_file_that_is_no_model_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.model"
    path.write_text(text)
    with pytest.raises(BadRequestError, match="not a learned motion"):
        load_model(path)


HOSTILE: dict[str, dict[str, object]] = {
    "NaN": {"mean": [[float("nan")] * 2] * 8},
    "infinity": {"deviations": [[[float("inf")] * 2] * 8] * 3},
    "a number too large for a float": {"mean": [[10**400] * 2] * 8},
    "an angle that no joint reaches": {"mean": [[1e300] * 2] * 8},
    "a deviation that no joint reaches": {"deviations": [[[1e300] * 2] * 8] * 3},
    "text for a number": {"mean": [["one"] * 2] * 8},
    "null for a number": {"mean": [[None] * 2] * 8},
    "one dimension": {"mean": [0.0] * 8},
    "four dimensions": {"deviations": [[[[0.0] * 2] * 8] * 3]},
    "other bases": {"deviations": [[[0.0] * 2] * 9] * 3},
    "too few bases": {"mean": [[0.0] * 2] * 7, "deviations": [[[0.0] * 2] * 7] * 3},
    "too many bases": {"mean": [[0.0] * 2] * 5000, "deviations": [[[0.0] * 2] * 5000] * 3},
    "rows of different lengths": {"mean": [[0.0] * 2] * 7 + [[0.0]]},
    "two takes": {"deviations": [[[0.0] * 2] * 8] * 2},
    "no takes": {"deviations": []},
    "no joints": {"names": [], "mean": [[]] * 8, "deviations": [[[]] * 8] * 3},
    "a joint twice": {"names": ["right_elbow_joint"] * 2},
    "names that are not text": {"names": [["a"], {"b": 1}]},
    "a robot that is not text": {"variant": ["g1-29"]},
    "no duration": {"duration_s": None},
    "an endless duration": {"duration_s": float("inf")},
    "a negative duration": {"duration_s": -1.0},
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_model_is_refused_as_it_is_read(
    tmp_path: Path, change: dict[str, object]
) -> None:
    fine: dict[str, object] = {
        "format": "learned motion 1",
        "names": ["right_elbow_joint", "left_elbow_joint"],
        "variant": "g1-29",
        "duration_s": 1.0,
        "mean": [[0.1] * 2] * 8,
        "deviations": [[[0.01] * 2] * 8] * 3,
    }
    path = tmp_path / "fine.model"
    path.write_text(json.dumps(fine))
    assert np.isfinite(load_model(path).adapt().joints_rad).all()
    path.write_text(json.dumps(fine | change))
    with pytest.raises(BadRequestError, match="not a learned motion"):
        load_model(path)


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.model"
    with path.open("wb") as file:
        file.truncate(10**12)
    with pytest.raises(BadRequestError, match="larger than"):
        load_model(path)


# ---- parts of several takes ---------------------------------------------------------------------


def test_the_beginning_of_one_take_and_the_end_of_another() -> None:
    first, second = make_scripted_track("wave"), make_scripted_track("wave").speed(0.8)
    lifted = second.joints_rad.copy()
    lifted[:, second.names.index("left_elbow_joint")] += 0.3
    second = second.edited("lift", joints_rad=lifted)
    result = merge([first, second], [(2.0, 2.0)], blend_s=0.4)
    column = first.names.index("left_elbow_joint")
    change = result.joints_rad[:, column] - first.joints_rad[:, column]
    assert change[:170] == pytest.approx(0.0, abs=1e-9)
    assert change[230:] == pytest.approx(0.3, abs=1e-6)
    assert (result.times_s == first.times_s).all()
    with pytest.raises(BadRequestError, match="no takes to merge"):
        merge([], [(1.0, 1.0)])
    with pytest.raises(BadRequestError, match="no take 3"):
        merge([first, second], [(1.0, 3.0)])


# ---- to another robot ---------------------------------------------------------------------------

HUMANOIDS = ("g1-29", "g1-27", "g1-23", "r1", "r1-air")


@pytest.mark.each_once("source", "target")
@pytest.mark.parametrize("target", HUMANOIDS)
@pytest.mark.parametrize("source", HUMANOIDS)
def test_hands_of_another_robot_follow_without_breaking_limits(source: str, target: str) -> None:
    track = make_scripted_track(build=source)
    result = to_robot(track, target)
    assert result.variant == target
    assert not [each for each in result.check().findings if each.severity is Severity.ERROR]
    if "hands within" in result.history[-1]:
        within_mm = float(result.history[-1].split("within ")[1].split(" mm")[0])
        assert within_mm <= 20
        ratio = float(result.history[-1].rsplit(" ", 1)[1])
        path, other = hand_positions_m(track, "right"), hand_positions_m(result, "right")
        spans = np.ptp(other, axis=0).max() / np.ptp(path, axis=0).max()
        assert spans == pytest.approx(ratio, rel=0.15)


def test_a_robot_without_arms_cannot_follow() -> None:
    with pytest.raises(BadRequestError):
        to_robot(make_scripted_track("wave"), "a1")
