"""Claim: a motion can be moved, learned and brought to another robot, exactly and at once.

A hand's path is shifted by 5 cm beside mink, which solves one sample after another for the same
path, with the same limits and the recorded pose as its posture; MuJoCo computes where both hands
are. A motion learned from five noisy takes of each scripted one is led through random points inside
what was taught, beside the ProMP of movement-primitives, which gets the solved pose of the arm at
that moment because it knows no hand. For leave-one-out, a model of four takes and the best of these
four are compared with the motion without noise. What is not installed is left out, and said;
scripts/peers/benchmarks gets it.
"""

import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from itertools import permutations

import numpy as np

from benchmarks.adapt_peers import MinkArm, ProMPArm, hand_path_m
from benchmarks.peers import PEERS, report_missing
from benchmarks.size import size
from benchmarks.table import Row, cpu_s, take_turns
from rote.findings import Severity
from rote.model.registry import build_named
from rote.motion.compare import compare
from rote.motion.edit.hand_path import hand_positions_m, move_hand
from rote.motion.edit.retarget import to_robot
from rote.motion.interpolate import minimum_jerk
from rote.motion.learn import HandPoint, MotionModel, learn
from rote.motion.track import Array, Track
from rote.sim.hands import SCRIPTS, ScriptedHand

RATE_HZ = 100
BUILD = "g1-29"
HAND = "right"
UP_M = np.array([0.0, 0.0, 0.05])
BLEND_S = 1.0
TAKES = 5
POINTS = size(250, 2)
HUMANOIDS = size(("g1-29", "g1-27", "g1-23", "g1-d", "r1", "r1-air"), ("g1-29", "r1"))
PLAYED = dict(list(SCRIPTS.items())[: size(None, 1)])


def scripted(script: str, seconds: float, build: str = BUILD) -> Track:
    """Return a scripted motion without its tremor."""
    joints = build_named(build)
    hand = ScriptedHand(script, seconds, joints)
    times_s = np.arange(round(seconds * RATE_HZ) + 1) / RATE_HZ
    poses = np.array([hand.pose(at_s) for at_s in times_s.tolist()])
    return Track(times_s=times_s, joints_rad=poses, names=joints.names, variant=build)


def noisy_take(script: str, seed: int, seconds: float = 4.0) -> Track:
    """Return a scripted motion as a person repeats it: another tempo, other angles."""
    chance = np.random.default_rng([seed, len(script)])
    times_s = np.arange(round(seconds * chance.uniform(0.85, 1.15) * RATE_HZ) + 1) / RATE_HZ
    share = times_s / times_s[-1]
    late_s = 0.08 * np.sin(2 * np.pi * chance.uniform(0.8, 1.4) * share)
    moments = np.clip(share * seconds + late_s, 0.0, seconds)
    joints = build_named(BUILD)
    hand = ScriptedHand(script, seconds, joints)
    poses = np.array([hand.pose(at_s) for at_s in moments.tolist()])
    moving = np.ptp(poses, axis=0) > 0.01
    away = chance.normal(0.0, 0.05, poses.shape[1])
    poses += moving * away * np.sin(np.pi * share)[:, None] ** 2
    return Track(times_s=times_s, joints_rad=poses, names=joints.names, variant=BUILD)


def peak_rad_s2(track: Track) -> float:
    return float(np.abs(np.diff(track.joints_rad, 2, axis=0)).max() * RATE_HZ**2)


def run() -> list[Row]:
    sys.path.append(str(PEERS / "adapt"))
    for module, peer in (("mink", "mink"), ("movement_primitives", "movement-primitives")):
        if not find_spec(module):
            report_missing(f"no {peer}: run scripts/peers/benchmarks")
    return [*_shift_rows(), *_learn_rows(), *_leave_one_out_rows(), *_robot_rows()]


def _shift_rows() -> list[Row]:
    """Shift a hand's path in 10 s of motion."""
    errors_m, calls, times_s = [], [], [0.0]
    tracks = [scripted(script, size(10.0, 2.0)) for script in PLAYED]
    for track in tracks:
        result = move_hand(track, HAND, by=UP_M.tolist(), blend_s=BLEND_S)
        errors_m.append(_errors_m(result, _shifted_m(track)))
        chosen = move_hand(track, HAND, by=UP_M.tolist())
        calls.append(peak_rad_s2(chosen) / peak_rad_s2(track))
        spent = take_turns(3, {"ours": partial(cpu_s, partial(_shift, track))})
        times_s.append(spent["ours"])
    error_mm = 1000 * max(errors_m)
    rows = [
        Row("adapt: hand shifted, error", "mm", error_mm, 1.0, "limit", at_most=1.0),
        Row("adapt: hand shifted, 10 s", "ms", 1000 * max(times_s), 200.0, "limit", at_most=1.0),
        Row("adapt: hand shifted, acceleration", "times", max(calls), 1.1, "limit", at_most=1.0),
        _near_limit_row(),
    ]
    if find_spec("mink"):
        arm, track = MinkArm(build_named(BUILD), HAND), tracks[0]
        taken_s, moved = arm.follow(track, _shifted_m(track))
        error_peer = 1000 * _errors_m(moved, _shifted_m(track))
        ours = 1000 * errors_m[0]
        rows += [
            Row("adapt: wave shifted, error", "mm", ours, error_peer, "mink"),
            Row(
                "adapt: wave shifted", "ms", 1000 * times_s[1], 1000 * taken_s, "mink", at_most=1.0
            ),
        ]
    return rows


def _near_limit_row() -> Row:
    """Move both hands of a clap to where their arms are nearly at their limits."""
    track = scripted("clap", size(10.0, 2.0))
    move = partial(move_hand, track, "both", by=(0.05, 0.05, 0.05))
    spent_s = take_turns(3, {"ours": partial(cpu_s, move)})["ours"]
    claim = "adapt: hands near their limits, 10 s"
    return Row(claim, "ms", 1000 * spent_s, 200.0, "limit", at_most=1.0)


def _shift(track: Track) -> Track:
    return move_hand(track, HAND, by=UP_M.tolist(), blend_s=BLEND_S)


def _shifted_m(track: Track) -> Array:
    """Return where the hand is to be at each sample, (n, 3)."""
    to_end_s = np.minimum(track.times_s, track.duration_s - track.times_s)
    blend_s = min(BLEND_S, track.duration_s / 2)
    share = minimum_jerk(np.zeros(1), np.ones(1), to_end_s / blend_s)
    return np.asarray(hand_positions_m(track, HAND) + share * UP_M)


def _errors_m(track: Track, wanted_m: Array) -> float:
    return float(np.linalg.norm(hand_path_m(track, HAND) - wanted_m, axis=1).max())


def _learn_rows() -> list[Row]:
    """Lead learned motions through points inside what was taught."""
    chance = np.random.default_rng(7)
    ours: list[tuple[float, ...]] = []
    peers: list[tuple[float, ...]] = []
    for script in PLAYED:
        takes = [noisy_take(script, seed) for seed in range(TAKES)]
        model = learn(takes)
        mean = model.adapt()
        peer = ProMPArm(takes, HAND) if find_spec("movement_primitives") else None
        for number in range(POINTS):
            row = int(chance.uniform(0.25, 0.75) * (len(mean) - 1))
            point = _taught_point_m(model, mean, row, chance)
            ours.append(_adapt(model, mean, row, point))
            if peer is not None and number < size(5, 1):
                peers.append(peer.lead_through(row / (len(mean) - 1), point))
    error_m, ends_rad, _, _ = np.max(ours, axis=0).tolist()
    faulty = sum(each[3] for each in ours)
    spent_s = float(np.median([each[2] for each in ours]))
    most_ms = 1000 * float(np.quantile([each[2] for each in ours], 0.99))
    count = len(ours)
    rows = [
        Row(f"adapt: {count} learned, error", "mm", 1000 * error_m, 5.0, "limit", at_most=1.0),
        Row(f"adapt: {count} learned, ends", "mrad", 1000 * ends_rad, 10.0, "limit", at_most=1.0),
        Row(f"adapt: {count} learned, errors", "findings", faulty, 0.0, "limit", at_most=1.0),
        Row("adapt: a learned motion, p99", "ms", most_ms, 50.0, "limit", at_most=1.0),
    ]
    if peers:
        error_peer, spent_peer = np.max([each[0] for each in peers]), np.median(peers, axis=0)[1]
        whose = "movement-primitives"
        rows += [
            Row("adapt: learned, error", "mm", 1000 * error_m, 1000 * float(error_peer), whose),
            Row("adapt: learned", "ms", 1000 * spent_s, 1000 * float(spent_peer), whose),
        ]
    return rows


def _taught_point_m(
    model: MotionModel, mean: Track, row: int, chance: np.random.Generator
) -> Array:
    """Return where the hand is in a random mixture of the takes, at a sample of their mean."""
    weights = chance.normal(0.0, 1.0, len(model.deviations)) / np.sqrt(len(model.deviations) - 1)
    mixed = MotionModel(
        names=model.names,
        variant=model.variant,
        duration_s=model.duration_s,
        mean=model.mean + np.tensordot(weights, model.deviations, 1),
        deviations=model.deviations,
    )
    pose_rad = mixed.band(len(mean))[0][row : row + 1]
    return np.asarray(hand_path_m(replace(_part(mean, row), joints_rad=pose_rad), HAND)[0])


def _part(track: Track, first: int, count: int = 1) -> Track:
    """Return a few samples of a track."""
    rows = slice(first, first + count)
    return replace(track, times_s=track.times_s[rows], joints_rad=track.joints_rad[rows])


def _adapt(model: MotionModel, mean: Track, row: int, point: Array) -> tuple[float, ...]:
    """Return how far the hand is from its point in m, the ends in rad, the time in s, and the
    number of errors that the check finds: limits and contact.
    """
    x_m, y_m, z_m = point.tolist()
    wanted = HandPoint(float(mean.times_s[row]), x_m, y_m, z_m, HAND)
    results: list[Track] = []
    spent_s = cpu_s(lambda: results.append(model.adapt(through=[wanted])))
    (result,) = results
    # What was too fast got slower, and then the moment is elsewhere.
    passed = _part(result, row) if len(result) == len(mean) else result
    away_m = np.linalg.norm(hand_path_m(passed, HAND) - point, axis=1).min()
    ends_rad = np.abs(result.joints_rad[[0, -1]] - mean.joints_rad[[0, -1]]).max()
    errors = [each for each in result.check().findings if each.severity is Severity.ERROR]
    return float(away_m), float(ends_rad), spent_s, float(len(errors))


def _leave_one_out_rows() -> list[Row]:
    """Compare a model of all takes but one with the best of these takes."""
    ratios = []
    for script in PLAYED:
        truth = scripted(script, 4.0)
        takes = [noisy_take(script, seed) for seed in range(TAKES)]
        single = [compare(take, truth).rms_rad for take in takes]
        for left_out in range(size(TAKES, 1)):
            kept = [take for number, take in enumerate(takes) if number != left_out]
            best = min(each for number, each in enumerate(single) if number != left_out)
            ratios.append(compare(learn(kept).adapt(), truth).rms_rad / best)
    median = float(np.median(ratios))
    return [Row("adapt: leave-one-out", "of one take", median, 0.7, "limit", at_most=1.0)]


def _robot_rows() -> list[Row]:
    """Bring every scripted motion from every humanoid to every other."""
    most_mm = 0.0
    for source, target in permutations(HUMANOIDS, 2):
        for script in PLAYED:
            line = to_robot(scripted(script, 4.0, source), target).history[-1]
            if "hands within " in line:
                most_mm = max(most_mm, float(line.split("hands within ")[1].split(" mm")[0]))
    return [Row("adapt: to another robot", "mm", most_mm, 20.0, "limit", at_most=1.0)]
