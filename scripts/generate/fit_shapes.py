"""Fit the shapes for contact to the G1's published meshes, and write src/rote/model/g1_shapes.json.

    scripts/peers/benchmarks contact
    PYTHONPATH=.peers/contact/needs:. .venv/bin/python scripts/generate/fit_shapes.py

The meshes are never committed, only the numbers that come out.

Every link is cut by planes into pieces, always where that takes most volume from the convex hulls
of the two halves. Around each piece as few planes are laid as keep the outline within `EXCESS_M` of
its hull. So the mesh is inside of its shapes everywhere, and a contact of meshes is never missed.
Left and right get the same shapes, mirrored, around both meshes.
"""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import NamedTuple

import mujoco
import numpy as np
from benchmarks.contact import Meshes, asked_pairs, poses_rad
from benchmarks.g1_meshes import require_meshes, triangles
from scipy.spatial import ConvexHull, HalfspaceIntersection

from rote.model.g1 import G1, G1_REST_RAD, Corners, make_hulls
from rote.motion.body.contact import body_xml, neighbour_pairs
from rote.motion.body.kinematics import kinematics_of
from rote.motion.track import Array

TARGET = Path(__file__).parents[2] / "src/rote/model/g1_shapes.json"
PIECES = 60
"""Of all links in the middle and on the left together."""
MAX_PIECES = 110
"""When those are refined that touch where the meshes do not."""
TRIED_POSES, TRIED_SEED = 3000, 11
AT_ONCE = 6
PAD_M = 0.0002
"""So much larger than the mesh everywhere: numbers are rounded to tenths of a millimetre."""
TRIED_TRIANGLES = 2500
CUTS = 9
"""So many places are tried in each direction."""
DIRECTIONS = np.array(
    [v for v in product((-1, 0, 1), repeat=3) if v > (0, 0, 0) and np.count_nonzero(v) < 3], float
)
DIRECTIONS /= np.linalg.norm(DIRECTIONS, axis=1)[:, None]

# ---- meshes -------------------------------------------------------------------------------------


def both_sides(link: str) -> Array:
    """Return a link's triangles, with those of the right side, mirrored, if it is on the left."""
    own = triangles(link)
    if not link.startswith("left_"):
        return own
    other = triangles(link.replace("left_", "right_", 1)) * (1.0, -1.0, 1.0)
    return np.concatenate([own, other])


# ---- pieces -------------------------------------------------------------------------------------


def hull_of(points: Array) -> ConvexHull:
    """Return the convex hull of points, `PAD_M` larger, so that points in a plane have one too."""
    around = PAD_M * np.concatenate([np.eye(3), -np.eye(3)])
    outer = points[ConvexHull(points, qhull_options="QJ").vertices]
    return ConvexHull((outer[:, None] + around[None]).reshape(-1, 3))


def halves(piece: Array, normal: Array, offset_m: float) -> tuple[Array, Array]:
    """Return the triangles of a piece below and above a plane, cut where they cross it."""
    heights = piece @ normal - offset_m
    below, above = (heights <= 0).all(axis=1), (heights >= 0).all(axis=1)
    crossing = ~below & ~above
    cut = piece[crossing], heights[crossing]
    return (
        np.concatenate([piece[below], *_clipped(*cut, -1.0)]),
        np.concatenate([piece[above], *_clipped(*cut, 1.0)]),
    )


def _clipped(piece: Array, heights: Array, side: float) -> Iterator[Array]:
    """Yield the parts of crossing triangles on one side: a triangle each, or two."""
    inside = side * heights > 0
    for alone, count in ((True, 1), (False, 2)):
        rows = inside.sum(axis=1) == count
        tip = (inside[rows] == alone).argmax(axis=1)
        order = (tip[:, None] + np.arange(3)) % 3
        corners = np.take_along_axis(piece[rows], order[:, :, None], axis=1)
        tall = np.take_along_axis(heights[rows], order, axis=1)
        one, two = (
            corners[:, 0]
            + (tall[:, 0] / (tall[:, 0] - tall[:, k]))[:, None] * (corners[:, k] - corners[:, 0])
            for k in (1, 2)
        )
        if alone:
            yield np.stack([corners[:, 0], one, two], axis=1)
        else:
            yield np.stack([one, corners[:, 1], corners[:, 2]], axis=1)
            yield np.stack([one, corners[:, 2], two], axis=1)


def best_cut(piece: Array) -> tuple[float, Array, Array]:
    """Return the cut that takes most volume away, in m3, and both halves."""
    whole = ConvexHull(piece.reshape(-1, 3), qhull_options="QJ")
    # Some of its triangles, those at the hull among them, are enough to try cuts on.
    at_hull = np.unique(whole.vertices // 3)
    few = np.concatenate([piece[:: 1 + len(piece) // TRIED_TRIANGLES], piece[at_hull]])
    gains = []
    for normal in DIRECTIONS:
        heights = whole.points[whole.vertices] @ normal
        for offset_m in np.linspace(heights.min(), heights.max(), CUTS + 2)[1:-1]:
            parts = halves(few, normal, float(offset_m))
            if all(len(part) > 1 for part in parts):
                gains.append((gain(whole, parts), tuple(normal), float(offset_m)))
    if not gains:
        return 0.0, piece, piece
    _, way, offset_m = max(gains)
    parts = halves(piece, np.array(way), offset_m)
    return gain(whole, parts), *parts


def gain(whole: ConvexHull, parts: tuple[Array, Array]) -> float:
    """Return how much less volume the hulls of both parts have than that of the whole."""
    hulls = (ConvexHull(part.reshape(-1, 3), qhull_options="QJ") for part in parts)
    return float(whole.volume - sum(hull.volume for hull in hulls))


@dataclass(eq=False)
class Piece:
    """A part of a link's mesh."""

    link: str
    triangles: Array
    fine: bool = False
    """Whether its outline is as near as can be."""

    @cached_property
    def cut(self) -> tuple[float, Array, Array]:
        """The best cut."""
        return best_cut(self.triangles)

    def halves(self) -> list["Piece"]:
        """Return both halves."""
        return [Piece(self.link, half, self.fine) for half in self.cut[1:]]

    @cached_property
    def corners(self) -> Array:
        """The corners of its outline, (n, 3), in tenths of a millimetre."""
        return outline(self.triangles, FINE if self.fine else COARSE)


def cut_up(pieces: list[Piece], count: int) -> None:
    """Cut where it gains most, until there are so many pieces."""
    while len(pieces) < count:
        best = max(pieces, key=lambda piece: piece.cut[0])
        print(f"{len(pieces) + 1} pieces: {best.link} loses {best.cut[0] * 1e6:.0f} cm3")
        pieces.remove(best)
        pieces += best.halves()


def refined(pieces: list[Piece], chosen: set[int]) -> list[Piece]:
    """Return all pieces, those with these numbers with a finer outline, else cut in two."""
    found = [piece for number, piece in enumerate(pieces) if number not in chosen]
    for number in sorted(chosen):
        piece = pieces[number]
        found += piece.halves() if piece.fine else [Piece(piece.link, piece.triangles, fine=True)]
    return found


def part_what_is_apart(pieces: list[Piece]) -> list[Piece]:
    """Refine what touches at rest, or most often elsewhere, though the meshes do not."""
    meshes, poses = Meshes(), poses_rad(TRIED_POSES, seed=TRIED_SEED)
    pairs = set(asked_pairs(meshes))
    frames = kinematics_of(G1).forward(poses)
    real: dict[tuple[int, str, str], bool] = {}
    while True:
        found = list(touching(pieces, poses, pairs))
        row_before = -1
        for row, a, b in sorted({(row, a, b) for row, a, b, _ in found} - set(real)):
            if row != row_before:
                meshes.put(frames, row)
                row_before = row
            real[row, a, b] = meshes.touch(a, b)
        true_rows = {row for row, a, b, _ in found if real[row, a, b]}
        score: Counter[int] = Counter()
        for row, a, b, numbers in found:
            if not real[row, a, b]:
                score.update(dict.fromkeys(numbers, 1 if row in true_rows else 5))
        at_rest = list(touching(pieces, np.array([G1_REST_RAD, np.zeros(len(G1.joints))]), pairs))
        chosen = {number for *_, numbers in at_rest for number in numbers}
        false_rows = {row for row, *_ in found} - true_rows
        print(
            f"{len(pieces)} pieces: {len(false_rows)} of {len(poses)} poses are warned of falsely"
        )
        if not chosen and len(pieces) >= MAX_PIECES:
            return pieces
        chosen |= {number for number, _ in score.most_common(AT_ONCE)}
        pieces = refined(pieces, chosen)


def touching(
    pieces: list[Piece], poses: Array, pairs: set[tuple[str, str]]
) -> Iterator[tuple[int, str, str, set[int]]]:
    """Yield of all shapes that touch the pose, both links and the numbers of the pieces."""
    shapes = make_hulls(as_numbers(pieces))
    family = replace(G1, body=replace(G1.body, shapes=shapes))
    xml = body_xml(family, 0.0, sorted(neighbour_pairs(kinematics_of(family))))
    model = mujoco.MjModel.from_xml_string(xml)
    data = mujoco.MjData(model)
    order = [model.joint(joint.name).qposadr[0] for joint in G1.joints]
    left = [number for number, piece in enumerate(pieces) if piece.link.startswith("left_")]
    number_of = [*range(len(pieces)), *left]
    shape_of = [int(model.mesh(mesh).name.removeprefix("shape_")) for mesh in model.geom_dataid]
    for row, pose in enumerate(poses):
        data.qpos[order] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        for contact in np.asarray(data.contact.geom).tolist():
            both = [shape_of[geom] for geom in contact]
            a, b = sorted(shapes[shape].link for shape in both)
            if (a, b) in pairs:
                yield row, a, b, {number_of[shape] for shape in both}


# ---- outlines -----------------------------------------------------------------------------------


class Detail(NamedTuple):
    """How near an outline comes to the hull of its piece."""

    excess_m: float
    planes: int
    """At most so many are laid around it."""


COARSE, FINE = Detail(0.0015, 20), Detail(0.0006, 30)


def outline(piece: Array, detail: Detail) -> Array:
    """Return the corners of a polytope around a piece, (n, 3), in tenths of a millimetre."""
    hull = hull_of(piece.reshape(-1, 3))
    middle = hull.points[hull.vertices].mean(axis=0)
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    reach = (hull.points[hull.vertices] @ axes.T).max(axis=0)
    planes = np.column_stack([axes, -reach])
    while True:
        corners = HalfspaceIntersection(planes, middle).intersections
        beyond = corners @ hull.equations[:, :3].T + hull.equations[:, 3]
        corner, facet = np.unravel_index(beyond.argmax(), beyond.shape)
        if beyond[corner, facet] < detail.excess_m or len(planes) >= detail.planes:
            return np.unique(np.round(corners * 1e4), axis=0)
        planes = np.vstack([planes, hull.equations[facet]])


def as_numbers(pieces: list[Piece]) -> Corners:
    """Return the outlines as they are kept."""
    return tuple(
        (piece.link, tuple((int(x), int(y), int(z)) for x, y, z in piece.corners))
        for piece in pieces
    )


ABOUT = (
    "Convex hulls around the links of a G1, for contact, by scripts/generate/fit_shapes.py: "
    "[link, corners], each corner x, y, z in the link's frame in 0.1 mm. They enclose "
    "the meshes of the manufacturer's published description (g1_29dof_rev_1_0, BSD-3-Clause). "
    "The right side mirrors the left."
)


def shapes_text(shapes: Corners) -> str:
    """Return the file as text, with a line for each piece."""
    rows = ",\n".join(json.dumps(piece, separators=(",", ":")) for piece in shapes)
    return f'{{"about":{json.dumps(ABOUT)},\n"pieces":[\n{rows}\n]}}\n'


def main() -> None:
    """Fit, and write the numbers."""
    require_meshes()
    links = [G1.body.base, *(joint.link for joint in G1.joints)]
    pieces = [Piece(link, both_sides(link)) for link in links if not link.startswith("right_")]
    cut_up(pieces, PIECES)
    pieces = part_what_is_apart(pieces)
    shapes = as_numbers(sorted(pieces, key=lambda piece: links.index(piece.link)))
    TARGET.write_text(shapes_text(shapes), encoding="utf-8")
    print(f"{len(shapes)} shapes, {sum(len(piece.corners) for piece in pieces)} corners")


if __name__ == "__main__":
    main()
