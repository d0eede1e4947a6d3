"""Claim: no contact that the robot's real meshes show is missed, and few are only thought to be.

10,000 poses of a G1, by chance but always the same: 4,000 with waist and arms anywhere in their
range, 4,000 with them near rest, 2,000 with all joints near rest. The truth is exact: triangle
against triangle of the published meshes, by python-fcl, for all pairs of links that are no
neighbours and do not touch at rest. A contact is a pair of links in a pose. Missed is one of the
meshes that the shapes do not have; how deep it was is the shortest way that parts the two meshes. A
false warning is a pose in which shapes touch and no meshes do. The figures of the shapes before,
capsules and boxes drawn by hand, were measured once on the same poses.
"""

import sys
import time
from importlib import import_module
from itertools import combinations, product
from typing import Any, NamedTuple

import numpy as np

from benchmarks.g1_meshes import NEEDS, require_meshes, triangles
from benchmarks.size import size
from benchmarks.table import Row
from rote.model.family import Family
from rote.model.g1 import G1, G1_JOINTS, G1_REST_RAD
from rote.motion.body.contact import ContactModel
from rote.motion.body.kinematics import Frames, kinematics_of
from rote.motion.track import Array

POSES = size(10_000, 30)
ANYWHERE, NEAR_REST = 0.4, 0.4
"""Parts of the poses; in the rest of them all joints are near rest, the legs too."""
BEFORE_FALSE_CONTACTS, BEFORE_FALSE = 6_622, 178
"""By the shapes before, on the same poses: false contacts, and poses that were warned of falsely.
They missed 12,660 contacts."""
MAX_MISSED_SHARE, MAX_MISSED_M = 0.001, 0.005

Pair = tuple[str, str]
_WAIST = ("torso_link", "waist_yaw_link")
"""The two forks of the waist's universal joint, which lie in each other 2.5 mm apart. They touch
where roll and pitch are both far out, which is their joints' business."""
_BODY = kinematics_of(G1)
_LINKS = (G1.body.base, *_BODY.links)
_WAYS = [np.array(way) / np.linalg.norm(way) for way in product((-1, 0, 1), repeat=3) if any(way)]
_FAR_M, _NEAR_M = 0.1, 0.0002  # what is looked for when two meshes are parted, and how finely


def poses_rad(count: int = POSES, seed: int = 7) -> Array:
    """Return the poses, (count, joints); the shapes were fitted with another seed."""
    chance = np.random.default_rng(seed)
    lower, upper = (
        np.array([getattr(joint, name) for joint in G1_JOINTS])
        for name in ("lower_rad", "upper_rad")
    )
    above = np.array([joint.part != "leg" for joint in G1_JOINTS])
    poses = np.tile(G1_REST_RAD, (count, 1))
    first, second = int(ANYWHERE * count), int((ANYWHERE + NEAR_REST) * count)
    poses[:first, above] = chance.uniform(lower[above], upper[above], (first, above.sum()))
    poses[first:second, above] += chance.normal(0.0, 0.4, (second - first, above.sum()))
    poses[second:] += chance.normal(0.0, 0.3, (count - second, len(G1_JOINTS)))
    return np.asarray(np.clip(poses, lower, upper))


class Meshes:
    """All links as triangles, for exact contact."""

    def __init__(self) -> None:
        require_meshes()
        sys.path.append(str(NEEDS))
        fcl = self._fcl = import_module("fcl")  # a peer, which not everybody has
        self._objects: dict[str, Any] = {}
        self._boxes: dict[str, tuple[Array, Array]] = {}
        for link in _LINKS:
            corners = triangles(link).reshape(-1, 3)
            model = fcl.BVHModel()
            model.beginModel(len(corners), len(corners) // 3)
            model.addSubModel(corners, np.arange(len(corners)).reshape(-1, 3))
            model.endModel()
            self._objects[link] = fcl.CollisionObject(model, fcl.Transform())
            low, high = corners.min(axis=0), corners.max(axis=0)
            self._boxes[link] = ((low + high) / 2, (high - low) / 2)
        self._places: dict[str, tuple[Array, Array]] = {}

    def put(self, frames: Frames, row: int) -> None:
        """Put all links where they are in one pose."""
        for link in _LINKS:
            turn, place_m = np.eye(3), np.zeros(3)
            if link in _BODY.links:
                index = _BODY.links.index(link)
                turn, place_m = (
                    frames.rotations[index, :, :, row],
                    frames.positions_m[index, :, row],
                )
            self._places[link] = (turn, place_m)
            self._objects[link].setTransform(self._fcl.Transform(turn, place_m))

    def touching(self, pairs: list[Pair]) -> set[Pair]:
        """Return which of these pairs touch where they are."""
        middles = np.array(
            [turn @ self._boxes[k][0] + at for k, (turn, at) in self._places.items()]
        )
        radii = np.array([np.linalg.norm(self._boxes[link][1]) for link in self._places])
        apart = np.linalg.norm(middles[:, None] - middles[None], axis=2) - radii - radii[:, None]
        number = {link: index for index, link in enumerate(self._places)}
        near = (pair for pair in pairs if apart[number[pair[0]], number[pair[1]]] < 0)
        return {pair for pair in near if self.touch(*pair)}

    def touch(self, a: str, b: str) -> bool:
        """Return whether two links touch where they are."""
        return self._boxes_touch(a, b) and self._collide(a, b)

    def depth_m(self, a: str, b: str) -> float:
        """Return the shortest of some ways by which one link is moved to part the two."""
        turn, place_m = self._places[b]
        shortest = _FAR_M
        for way in _WAYS:
            low, high = 0.0, shortest
            while high - low > _NEAR_M:
                middle = (low + high) / 2
                self._objects[b].setTransform(self._fcl.Transform(turn, place_m + middle * way))
                low, high = (middle, high) if self._collide(a, b) else (low, middle)
            shortest = min(shortest, high)
        self._objects[b].setTransform(self._fcl.Transform(turn, place_m))
        return shortest

    def _collide(self, a: str, b: str) -> bool:
        fcl = self._fcl
        asked = fcl.CollisionRequest(num_max_contacts=1, enable_contact=False)
        return bool(fcl.collide(self._objects[a], self._objects[b], asked, fcl.CollisionResult()))

    def _boxes_touch(self, a: str, b: str) -> bool:
        """Return whether no face of the boxes around two links parts them."""
        (turn_a, place_a), (turn_b, place_b) = self._places[a], self._places[b]
        (middle_a, half_a), (middle_b, half_b) = self._boxes[a], self._boxes[b]
        between = turn_b @ middle_b + place_b - turn_a @ middle_a - place_a
        mixed = np.abs(turn_a.T @ turn_b)
        apart_a = np.abs(turn_a.T @ between) > half_a + mixed @ half_b
        apart_b = np.abs(turn_b.T @ between) > half_b + mixed.T @ half_a
        return not (apart_a.any() or apart_b.any())


def asked_pairs(meshes: Meshes) -> list[Pair]:
    """Return all pairs but neighbours and those whose meshes touch at rest, or with all at 0."""
    neighbour_pairs = {tuple(sorted((joint.parent, joint.link))) for joint in G1_JOINTS} | {_WAIST}
    pairs = [(a, b) for a, b in combinations(sorted(_LINKS), 2) if (a, b) not in neighbour_pairs]
    frames = _BODY.forward(np.array([G1_REST_RAD, np.zeros(len(G1_JOINTS))]))
    for row in range(2):
        meshes.put(frames, row)
        pairs = [pair for pair in pairs if not meshes.touch(*pair)]
    return pairs


class Compared(NamedTuple):
    """What shapes find, beside what meshes show."""

    contacts: int
    missed: int
    deepest_missed_m: float
    false_contacts: int
    touching: int
    """Poses in which meshes touch."""
    false_warnings: int
    ours_us: float
    exact_us: float
    """What a pose takes, in microseconds."""


def compared(poses: Array, family: Family = G1) -> Compared:
    """Compare the shapes of a G1 with its meshes."""
    meshes, model = Meshes(), ContactModel(family)
    pairs = asked_pairs(meshes)
    start_s = time.process_time()
    found = _found(model, poses, set(pairs))
    ours_s = time.process_time() - start_s
    frames = _BODY.forward(poses)
    contacts = missed = false_contacts = touching = false_warnings = 0
    deepest_m = exact_s = 0.0
    for row, ours in enumerate(found):
        meshes.put(frames, row)
        start_s = time.process_time()
        real = meshes.touching(pairs)
        exact_s += time.process_time() - start_s
        contacts, touching = contacts + len(real), touching + bool(real)
        false_contacts += len(ours - real)
        false_warnings += bool(ours) and not real
        for pair in real - ours:
            missed += 1
            deepest_m = max(deepest_m, meshes.depth_m(*pair))
    each = 1e6 / len(poses)
    return Compared(
        contacts, missed, deepest_m, false_contacts, touching, false_warnings,
        ours_s * each, exact_s * each,
    )  # fmt: skip


def _found(model: ContactModel, poses: Array, pairs: set[Pair]) -> list[set[Pair]]:
    """Return the pairs that touch by our shapes, pose by pose."""
    found: list[set[Pair]] = [set() for _ in poses]
    for contact in model.iter_contacts(np.arange(float(len(poses))), poses):
        if contact.distance_m < 0.0 and (contact.a, contact.b) in pairs:
            found[int(contact.time_s)].add((contact.a, contact.b))
    return found


def run() -> list[Row]:
    """Compare, and say how far it is from the goals."""
    found = compared(poses_rad())
    print(f"{found}", file=sys.stderr)
    share, most = 100.0 * found.missed / found.contacts, 100.0 * MAX_MISSED_SHARE
    free = POSES - found.touching
    return [
        Row(f"contact: missed of {found.contacts:,}", "%", share, most, "limit", at_most=1),
        Row(
            "contact: deepest missed", "mm",
            1000 * found.deepest_missed_m, 1000 * MAX_MISSED_M, "limit", at_most=1,
        ),
        Row(
            f"contact: false warnings, of {free:,} free poses", "poses",
            found.false_warnings, BEFORE_FALSE, "the shapes before", at_most=1,
        ),
        Row(
            "contact: false contacts", "pairs",
            found.false_contacts, BEFORE_FALSE_CONTACTS, "the shapes before", at_most=1,
        ),
        Row("contact: a pose", "us", found.ours_us, found.exact_us, "python-fcl, exact"),
    ]  # fmt: skip
