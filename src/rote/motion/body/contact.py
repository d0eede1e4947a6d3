"""Does the robot touch itself? A body of convex shapes, asked by mujoco. Needs `physics`.

The shapes are those of the robot's family. A G1's lie around its published meshes, so what the
meshes show is found; docs/performance.md has the figures. Links that are neighbours, or that touch
when the robot stands at ease, are not asked about.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import groupby
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from rote.errors import BadRequestError, MissingExtraError
from rote.messages import Interpolation
from rote.model.family import Build, Family, Hull, Joint, Shape, Vector
from rote.motion.body.kinematics import Kinematics, Pose, kinematics_of
from rote.motion.interpolate import sample
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, family_of
from rote.text import Act, Text

MAX_STEP_RAD = 0.03
"""No joint moves further between two tested poses: 2 cm at the end of a stretched arm."""

_MAX_POSES = 30_000
_SAME_PLACE_HOPS = 2  # a link, its neighbours and theirs share a housing
_MIN_KG = 1e-3  # mujoco moves nothing without mass; for contact the mass does not matter


class Contact(NamedTuple):
    """Two links that are near or inside each other."""

    time_s: float
    """When they are nearest, or most of one is in the other."""
    a: str
    b: str
    distance_m: float
    """The least there is. Below 0: so deep, at least, is one in the other."""


def body_xml(family: Family, margin_m: float = 0.0, apart: Sequence[tuple[str, str]] = ()) -> str:
    """Return a robot as MJCF, its base fixed; pairs of links in `apart` never touch."""
    excludes = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in apart)
    hulls = "".join(
        f'<mesh name="{_mesh(number)}" vertex="{" ".join(map(_words, shape.corners_m))}"/>'
        for number, shape in enumerate(family.body.shapes)
        if isinstance(shape, Hull)
    )
    body, base = kinematics_of(family), family.body.base
    return (
        f'<mujoco model="{family.name}">'
        '<compiler angle="radian" eulerseq="XYZ" autolimits="true"/>'
        # Two shapes are reported when nearer than the sum of their margins.
        f'<default><geom margin="{margin_m / 2:g}" density="0"/></default>'
        f'<asset>{hulls}</asset><worldbody><body name="{base}">'
        f"{_shapes_xml(family, base)}{_children_xml(body, base)}</body></worldbody>"
        f"<contact>{excludes}</contact></mujoco>"
    )


def _children_xml(body: Kinematics, parent: str) -> str:
    return "".join(_link_xml(body, joint) for joint in body.joints if joint.parent == parent)


def _link_xml(body: Kinematics, joint: Joint) -> str:
    load = body.weights()
    mass, centre = load.masses_kg[joint.index], load.centres_m[joint.index]
    # Roll, pitch and yaw are about fixed axes, which is the meaning of capitals in `eulerseq`.
    place = f'pos="{_words(joint.origin_m)}" euler="{_words(joint.origin_rpy_rad)}"'
    inertial = f'pos="{_words(centre)}" mass="{max(mass, _MIN_KG):g}"'
    return (
        f'<body name="{joint.link}" {place}>'
        f'<inertial {inertial} diaginertia="0.001 0.001 0.001"/>'
        f'<joint name="{joint.name}" axis="{_words(joint.axis)}" '
        f'range="{joint.lower_rad:g} {joint.upper_rad:g}"/>'
        f"{_shapes_xml(body.family, joint.link)}{_children_xml(body, joint.link)}</body>"
    )


def _shapes_xml(family: Family, link: str) -> str:
    return "".join(
        _shape_xml(shape, number)
        for number, shape in enumerate(family.body.shapes)
        if shape.link == link
    )


def _mesh(number: int) -> str:
    """Return what the hull is called that is a family's shape of this number."""
    return f"shape_{number}"


def _shape_xml(shape: Shape | Hull, number: int) -> str:
    if isinstance(shape, Hull):
        return f'<geom type="mesh" mesh="{_mesh(number)}"/>'
    if shape.radius_m:
        ends = f"{_words(shape.start_m)} {_words(shape.end_m)}"
        return f'<geom type="capsule" fromto="{ends}" size="{shape.radius_m:g}"/>'
    return f'<geom type="box" pos="{_words(shape.start_m)}" size="{_words(shape.end_m)}"/>'


def _words(vector: Vector | Array) -> str:
    return " ".join(f"{value:.9g}" for value in vector)


class ContactModel:
    """The compiled body of a family; make one and use it for many tracks."""

    def __init__(self, family: Family, margin_m: float = 0.0) -> None:
        if not family.body.shapes:
            raise BadRequestError(
                f"nobody can look whether {a_robot(family)} touches itself: "
                "its shapes are not known",
                Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
            )
        try:
            import mujoco  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("looking for contact", "physics") from error
        self.mujoco: Any = mujoco
        self.margin_m = margin_m
        self._body = kinematics_of(family)
        self._model = model = _compiled(family, margin_m)
        self._bodies = [model.body(i).name for i in range(model.nbody)]

    @property
    def apart(self) -> list[tuple[str, str]]:
        """The pairs of links that are not asked about."""
        pairs = (divmod(int(pair), 1 << 16) for pair in self._model.exclude_signature)
        return [(self._bodies[one], self._bodies[other]) for one, other in pairs]

    def contacts(
        self, track: Track, start_pose: Pose | None = None, build: Build | None = None
    ) -> list[Contact]:
        """Return every pair of links nearer than the margin, once at its worst moment.

        `start_pose` is in the columns of `build`; the default build is the family's first.
        """
        if not len(track):
            return []
        build = build or self._body.family.default
        absent = _absent(self._body, build)
        poses_rad = self._body.poses(track, start_pose, build)
        looked = self.look(*_fine(track.times_s, poses_rad))
        worst: dict[tuple[str, str], _Meeting] = {}
        for time_s, group in groupby(looked, key=attrgetter("time_s")):
            for pair, now in _meetings(time_s, group).items():
                known = worst.get(pair)
                worst[pair] = now if known is None else known.with_later(now)
        found = [
            Contact(meeting.time_s, a, b, meeting.distance_m)
            for (a, b), meeting in worst.items()
            if a not in absent and b not in absent
        ]
        return sorted(found, key=attrgetter("distance_m"))

    def look(self, times_s: Array, poses_rad: Array) -> Iterator[Contact]:
        """Yield all shapes nearer than the margin in each of these poses, and in none between.

        Two links that meet with several shapes are there several times.
        """
        return _looked(self.mujoco, self._model, self._body, times_s, poses_rad)


class _Meeting(NamedTuple):
    """How near or deep two links are."""

    distance_m: float
    overlap_m: float
    """The depths of all shapes that are in each other, together: a link that goes through another
    meets many of its shapes, none of them deeper than it is thick. 0 where none touch."""
    time_s: float

    def with_later(self, later: "_Meeting") -> "_Meeting":
        """Return the worse of both moments, and the least distance of both."""
        least_m = min(self.distance_m, later.distance_m)
        worse = (later.overlap_m, -later.distance_m) > (self.overlap_m, -self.distance_m)
        return (later if worse else self)._replace(distance_m=least_m)


def _meetings(time_s: float, found: Iterable[Contact]) -> dict[tuple[str, str], _Meeting]:
    """Return for each pair of links what its shapes do at one moment."""
    meetings: dict[tuple[str, str], _Meeting] = {}
    for contact in found:
        pair = (contact.a, contact.b)
        distance_m, overlap_m, _ = meetings.get(pair, (np.inf, 0.0, time_s))
        meetings[pair] = _Meeting(
            min(distance_m, contact.distance_m), overlap_m + max(0.0, -contact.distance_m), time_s
        )
    return meetings


def _looked(
    mujoco: Any, model: Any, body: Kinematics, times_s: Array, poses_rad: Array
) -> Iterator[Contact]:
    data, bodies = mujoco.MjData(model), [model.body(i).name for i in range(model.nbody)]
    order = [model.joint(joint.name).qposadr[0] for joint in body.joints]
    body_of = np.asarray(model.geom_bodyid)
    for time_s, pose in zip(times_s.tolist(), poses_rad, strict=True):
        data.qpos[order] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if not data.ncon:
            continue
        pairs, distances = body_of[data.contact.geom], data.contact.dist
        for (one, other), distance_m in zip(pairs.tolist(), distances.tolist(), strict=True):
            a, b = sorted((bodies[one], bodies[other]))
            yield Contact(time_s, a, b, distance_m)


@lru_cache(maxsize=8)
def _compiled(family: Family, margin_m: float) -> Any:
    """Return mujoco's model of a family, which nobody changes; compiling takes 0.1 s."""
    import mujoco  # noqa: PLC0415 - optional

    body = kinematics_of(family)
    apart = neighbours(body)
    bare = mujoco.MjModel.from_xml_string(body_xml(family, 0.0, sorted(apart)))
    at_ease = np.array([_rest_rad(family), (0.0,) * len(family.joints)])
    apart |= {(found.a, found.b) for found in _looked(mujoco, bare, body, np.zeros(2), at_ease)}
    return mujoco.MjModel.from_xml_string(body_xml(family, margin_m, sorted(apart)))


def contacts(track: Track, margin_m: float = 0.0) -> list[Contact]:
    """Return every pair of links that touch in a track, each once at its worst moment."""
    family = family_of(track)
    if family is None:
        raise BadRequestError(
            "no robot that is known here has the track's joints, so nobody knows its shapes",
            Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
        )
    return ContactModel(family, margin_m).contacts(track)


def _rest_rad(family: Family) -> list[float]:
    """Return the rest positions of all joints of a family, those of other builds included."""
    rest = {name: angle for build in reversed(family.builds) for name, angle in build.rest.items()}
    return [rest.get(name, 0.0) for name in family.names]


def _absent(body: Kinematics, build: Build) -> set[str]:
    """Return the links that a build does not have: a joint may be locked, but a leg is missing."""
    return {
        joint.link for joint in body.joints if joint.part == "leg" and joint.name not in build.names
    }


def neighbours(body: Kinematics) -> set[tuple[str, str]]:
    """Return the pairs of links, in alphabetical order, that share a housing."""
    parents = {joint.link: joint.parent for joint in body.joints}
    near: dict[str, set[str]] = {link: {link} for link in (*body.links, body.family.body.base)}
    for _ in range(_SAME_PLACE_HOPS):
        wider = {link: set(found) for link, found in near.items()}
        for link, parent in parents.items():
            wider[link] |= near[parent]
            wider[parent] |= near[link]
        near = wider
    asked = {(min(pair), max(pair)) for pair in body.family.body.close_pairs}
    return {(a, b) for a, found in near.items() for b in found if a < b} - asked


def _fine(times_s: Array, poses_rad: Array) -> tuple[Array, Array]:
    """Return times and poses so close together that no contact is missed between two."""
    moved = np.abs(np.diff(poses_rad, axis=0)).max(axis=1)
    far = np.concatenate([[0.0], np.cumsum(moved + 1e-9)])  # a pause counts as a short way
    steps = int(min(np.ceil(far[-1] / MAX_STEP_RAD), _MAX_POSES))
    wanted = np.linspace(0.0, far[-1], steps + 1)
    at_s = np.interp(wanted, far, times_s)
    return at_s, sample(times_s, poses_rad, at_s, Interpolation.LINEAR)
