"""Does the robot touch itself? A body of capsules and boxes, tested by mujoco. Needs `physics`.

The shapes are those of the robot's family, accurate to about a centimetre. Pairs of links that are
neighbours, or that touch when the robot stands at rest, are not tested.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rote.errors import BadRequestError, MissingExtraError
from rote.messages import Interpolation
from rote.model.family import Build, Family, Joint, Shape, Vector
from rote.motion.interpolate import sample
from rote.motion.kinematics import Kinematics, Pose, kinematics_of
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
    a: str
    b: str
    distance_m: float
    """Below 0: how deep one is inside the other."""


def body_xml(family: Family, margin_m: float = 0.0, apart: Sequence[tuple[str, str]] = ()) -> str:
    """Return a robot as MJCF, its base fixed; pairs of links in `apart` never touch."""
    excludes = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in apart)
    body, base = kinematics_of(family), family.body.base
    return (
        f'<mujoco model="{family.name}">'
        '<compiler angle="radian" eulerseq="XYZ" autolimits="true"/>'
        # Two shapes are reported when nearer than the sum of their margins.
        f'<default><geom margin="{margin_m / 2:g}" density="0"/></default>'
        f'<worldbody><body name="{base}">{_shapes_xml(family, base)}{_children_xml(body, base)}'
        f"</body></worldbody><contact>{excludes}</contact></mujoco>"
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
    return "".join(_shape_xml(shape) for shape in family.body.shapes if shape.link == link)


def _shape_xml(shape: Shape) -> str:
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
        self._mujoco: Any = mujoco
        self._body = kinematics_of(family)
        self.margin_m = margin_m
        apart = _neighbours(self._body)
        self._load(0.0, apart)
        at_ease = np.array([_rest_rad(family), (0.0,) * len(family.joints)])
        apart |= {(found.a, found.b) for found in self._looked(np.zeros(2), at_ease)}
        self._load(margin_m, apart)

    def _load(self, margin_m: float, apart: set[tuple[str, str]]) -> None:
        xml = body_xml(self._body.family, margin_m, sorted(apart))
        self._model: Any = self._mujoco.MjModel.from_xml_string(xml)
        self._data: Any = self._mujoco.MjData(self._model)
        self._bodies = [self._model.body(i).name for i in range(self._model.nbody)]
        self._order = [self._model.joint(joint.name).qposadr[0] for joint in self._body.joints]
        self._body_of = np.asarray(self._model.geom_bodyid)

    def contacts(
        self, track: Track, start_pose: Pose | None = None, build: Build | None = None
    ) -> list[Contact]:
        """Return every pair of links nearer than the margin, once at its nearest moment.

        `start_pose` is in the columns of `build`; the default build is the family's first.
        """
        if not len(track):
            return []
        build = build or self._body.family.default
        absent = _absent(self._body, build)
        nearest: dict[tuple[str, str], Contact] = {}
        poses_rad = self._body.poses(track, start_pose, build)
        for found in self._looked(*_fine(track.times_s, poses_rad)):
            if found.a in absent or found.b in absent:
                continue
            known = nearest.get((found.a, found.b))
            if known is None or found.distance_m < known.distance_m:
                nearest[found.a, found.b] = found
        return sorted(nearest.values(), key=lambda contact: contact.distance_m)

    def _looked(self, times_s: Array, poses_rad: Array) -> Iterator[Contact]:
        kinematics, collision = self._mujoco.mj_kinematics, self._mujoco.mj_collision
        model, data = self._model, self._data
        for time_s, pose in zip(times_s.tolist(), poses_rad, strict=True):
            data.qpos[self._order] = pose
            kinematics(model, data)
            collision(model, data)
            if not data.ncon:
                continue
            pairs, distances = self._body_of[data.contact.geom], data.contact.dist
            for (one, other), distance_m in zip(pairs.tolist(), distances.tolist(), strict=True):
                a, b = sorted((self._bodies[one], self._bodies[other]))
                yield Contact(time_s, a, b, distance_m)


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


def _neighbours(body: Kinematics) -> set[tuple[str, str]]:
    """Return the pairs of links, in alphabetical order, that are one or two joints apart."""
    parents = {joint.link: joint.parent for joint in body.joints}
    near: dict[str, set[str]] = {link: {link} for link in (*body.links, body.family.body.base)}
    for _ in range(_SAME_PLACE_HOPS):
        wider = {link: set(found) for link, found in near.items()}
        for link, parent in parents.items():
            wider[link] |= near[parent]
            wider[parent] |= near[link]
        near = wider
    return {(a, b) for a, found in near.items() for b in found if a < b}


def _fine(times_s: Array, poses_rad: Array) -> tuple[Array, Array]:
    """Return times and poses so close together that no contact is missed between two."""
    moved = np.abs(np.diff(poses_rad, axis=0)).max(axis=1)
    far = np.concatenate([[0.0], np.cumsum(moved + 1e-9)])  # a pause counts as a short way
    steps = int(min(np.ceil(far[-1] / MAX_STEP_RAD), _MAX_POSES))
    wanted = np.linspace(0.0, far[-1], steps + 1)
    at_s = np.interp(wanted, far, times_s)
    return at_s, sample(times_s, poses_rad, at_s, Interpolation.LINEAR)
