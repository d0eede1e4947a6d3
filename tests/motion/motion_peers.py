"""Peers that thin a motion, and motions to thin: the measure of `rote.motion.keyframes.search`.

Each peer spends a budget over all joints and returns the chosen sample indices, one list per joint.
"""

import heapq
import math
from itertools import pairwise

import numpy as np

from rote.messages import Interpolation, Keyframe
from rote.motion.interpolate import minimum_jerk, sample_keyframes
from rote.motion.track import Array, Track

Paths = list[list[int]]


def wave(seed: int, *, duration_s: float = 5.0, rate_hz: float = 100.0, joints: int = 29) -> Track:
    """3 to 5 joints raised and lowered calmly, a third of them waving meanwhile; noise on all."""
    random = np.random.default_rng(seed)
    times_s = np.arange(round(duration_s * rate_hz) + 1) / rate_hz
    poses = np.repeat(random.uniform(-0.5, 0.5, (1, joints)), times_s.size, axis=0)
    active = random.permutation(joints)[: int(random.integers(3, 6))]
    for place, joint in enumerate(active):
        up_s = random.uniform(0.05, 0.25) * duration_s
        down_s = random.uniform(0.75, 0.9) * duration_s
        height = random.uniform(0.4, 1.4) * random.choice([-1.0, 1.0])
        take_s = 0.2 * duration_s
        ends = np.array([0.0]), np.array([1.0])
        raised = minimum_jerk(*ends, (times_s - up_s) / take_s)[:, 0]
        lowered = minimum_jerk(*ends, (times_s - down_s + take_s / 2) / take_s)[:, 0]
        poses[:, joint] += height * (raised - lowered)
        if place < max(1, active.size // 3):
            turns = random.uniform(1.0, 1.6) * (times_s - up_s - take_s)
            envelope = raised * (1.0 - lowered)
            poses[:, joint] += random.uniform(0.2, 0.5) * envelope * np.sin(2 * math.pi * turns)
    poses += random.normal(0.0, 0.002, poses.shape)
    return Track(times_s=times_s, joints_rad=poses, names=tuple(f"j{n}" for n in range(joints)))


def errors(track: Track, paths: Paths, how: Interpolation) -> Array:
    """Return the error of every sample, played from the chosen samples."""
    at_s = track.times_s - track.times_s[0]
    keyframes = tuple(
        Keyframe(
            joint=joint,
            time_ms=round(float(at_s[node]) * 1000),
            value_rad=float(track.joints_rad[node, joint]),
        )
        for joint, path in enumerate(paths)
        for node in path
    )
    played = sample_keyframes(keyframes, track.joints_rad[0], np.rint(at_s * 1000) / 1000, how)
    return np.abs(played - track.joints_rad)


def uniform(track: Track, count: int, how: Interpolation) -> Paths:
    """The joints that move most get equally many, equally spaced; the best of all such."""
    swing = np.ptp(track.joints_rad, axis=0)
    order = np.argsort(-swing)
    found: list[tuple[float, Paths]] = []
    for some in range(1, min(count, swing.size) + 1):
        each = min(count // some, len(track) - 1)
        nodes = [round(n * (len(track) - 1) / each) for n in range(1, each + 1)]
        paths: Paths = [[] for _ in swing]
        for joint in order[:some]:
            paths[joint] = nodes
        found.append((float(errors(track, paths, how).max()), paths))
    return min(found)[1]


def greedy(track: Track, count: int, how: Interpolation) -> Paths:
    """Ramer-Douglas-Peucker over all joints: a keyframe where the error is greatest, again."""
    paths: Paths = [[] for _ in track.names]
    wrong = errors(track, paths, how)
    for _ in range(count):
        node, joint = divmod(int(wrong.argmax()), wrong.shape[1])
        if wrong[node, joint] < 1e-12:
            break
        paths[joint] = sorted([*paths[joint], node])
        column = Track(
            times_s=track.times_s, joints_rad=track.joints_rad[:, joint : joint + 1], names=("j",)
        )
        wrong[:, joint] = errors(column, [paths[joint]], how)[:, 0]
    return paths


def visvalingam(track: Track, count: int, how: Interpolation) -> Paths:
    """Drop the sample with the smallest triangle, of all joints, until `count` are left."""
    del how  # triangles know only straight lines
    times_s, joints_rad = track.times_s, track.joints_rad
    size = len(track)

    def area(joint: int, left: int, node: int, right: int) -> float:
        y = joints_rad[:, joint]
        if right == size:  # the last keyframe: without it the one before is held
            return float(abs(y[node] - y[left]) * (times_s[-1] - times_s[left]))
        before, after = times_s[node] - times_s[left], times_s[right] - times_s[left]
        return float(abs(before * (y[right] - y[left]) - after * (y[node] - y[left])) / 2)

    left = {(joint, n): n - 1 for joint in range(len(track.names)) for n in range(1, size)}
    right = {key: key[1] + 1 for key in left}
    current = {key: area(key[0], left[key], key[1], right[key]) for key in left}
    heap = [(value, key) for key, value in current.items()]
    heapq.heapify(heap)
    while len(current) > count:
        value, key = heapq.heappop(heap)
        if current.get(key) != value:
            continue
        del current[key]
        joint, before, after = key[0], left[key], right[key]
        if before > 0:
            right[joint, before] = after
        if after < size:
            left[joint, after] = before
        for node in (before, after):
            if 0 < node < size:
                there = (joint, node)
                # Never smaller than what was dropped already, as Visvalingam has it.
                current[there] = max(value, area(joint, left[there], node, right[there]))
                heapq.heappush(heap, (current[there], there))
    paths: Paths = [[] for _ in track.names]
    for joint, node in sorted(current):
        paths[joint].append(node)
    assert all(a < b for path in paths for a, b in pairwise(path))
    return paths
