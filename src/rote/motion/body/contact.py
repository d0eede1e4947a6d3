"""Self-contact of a robot, found by mujoco on a body of convex shapes. Needs the extra `physics`.

The shapes are those of the robot's family. Those of a G1 enclose its published meshes, so every
contact of the meshes is found; docs/performance.md has the figures. Neighbouring links, and links
that touch in the rest pose, are not tested.
"""

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
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
"""Maximum motion of a joint between two tested poses: 2 cm at the end of a stretched arm."""

_MAX_POSES = 30_000
_HOUSING_JOINTS = 2  # links at most this many joints apart share a housing
_STILL_RAD = 1e-5  # a joint that moves less stays where it is; at 1 m that is 0.01 mm
_MIN_KG = 1e-3  # mujoco needs a mass and an inertia; for contact they do not matter


class Contact(NamedTuple):
    """Two links that are near or inside each other."""

    time_s: float
    """The time at which they are nearest, or overlap most."""
    a: str
    b: str
    """The names of the links, in alphabetical order."""
    distance_m: float
    """The smallest distance. Below 0, the links overlap by at least this depth."""


def body_xml(
    family: Family, margin_m: float = 0.0, excluded_pairs: Sequence[tuple[str, str]] = ()
) -> str:
    """Return a robot with a fixed base as MJCF, mujoco's XML format.

    Shapes nearer than `margin_m` are reported, except for those of `excluded_pairs` of links.
    """
    excludes = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in excluded_pairs)
    hulls = "".join(
        f'<mesh name="{_mesh_name(number)}" '
        f'vertex="{" ".join(map(_format_vector, shape.corners_m))}"/>'
        for number, shape in enumerate(family.body.shapes)
        if isinstance(shape, Hull)
    )
    body, base = kinematics_of(family), family.body.base
    return (
        f'<mujoco model="{family.name}">'
        '<compiler angle="radian" eulerseq="XYZ" autolimits="true"/>'
        # Two shapes are reported if they are nearer than the sum of their margins.
        f'<default><geom margin="{margin_m / 2:g}" density="0"/></default>'
        f'<asset>{hulls}</asset><worldbody><body name="{base}">'
        f"{_write_shapes_xml(family, base)}{_write_children_xml(body, base)}</body></worldbody>"
        f"<contact>{excludes}</contact></mujoco>"
    )


def _write_children_xml(body: Kinematics, parent: str) -> str:
    return "".join(_write_link_xml(body, joint) for joint in body.joints if joint.parent == parent)


def _write_link_xml(body: Kinematics, joint: Joint) -> str:
    load = body.link_masses()
    mass, centre = load.masses_kg[joint.index], load.centres_m[joint.index]
    # Roll, pitch and yaw are about fixed axes, which is the meaning of capitals in `eulerseq`.
    frame = f'pos="{_format_vector(joint.origin_m)}" euler="{_format_vector(joint.origin_rpy_rad)}"'
    inertial = f'pos="{_format_vector(centre)}" mass="{max(mass, _MIN_KG):g}"'
    return (
        f'<body name="{joint.link}" {frame}>'
        f'<inertial {inertial} diaginertia="0.001 0.001 0.001"/>'
        f'<joint name="{joint.name}" axis="{_format_vector(joint.axis)}" '
        f'range="{joint.lower_rad:g} {joint.upper_rad:g}"/>'
        f"{_write_shapes_xml(body.family, joint.link)}"
        f"{_write_children_xml(body, joint.link)}</body>"
    )


def _write_shapes_xml(family: Family, link: str) -> str:
    return "".join(
        _write_shape_xml(shape, number)
        for number, shape in enumerate(family.body.shapes)
        if shape.link == link
    )


def _mesh_name(number: int) -> str:
    """Return the mesh name of the family's shape with this number."""
    return f"shape_{number}"


def _write_shape_xml(shape: Shape | Hull, number: int) -> str:
    if isinstance(shape, Hull):
        return f'<geom type="mesh" mesh="{_mesh_name(number)}"/>'
    if shape.radius_m:
        ends = f"{_format_vector(shape.start_m)} {_format_vector(shape.end_m)}"
        return f'<geom type="capsule" fromto="{ends}" size="{shape.radius_m:g}"/>'
    centre, half_sizes = _format_vector(shape.start_m), _format_vector(shape.end_m)
    return f'<geom type="box" pos="{centre}" size="{half_sizes}"/>'


def _format_vector(vector: Vector | Array) -> str:
    return " ".join(f"{value:.9g}" for value in vector)


class ContactModel:
    """The compiled body of a family; make one and use it for many tracks."""

    def __init__(self, family: Family, margin_m: float = 0.0) -> None:
        if not family.body.shapes:
            raise BadRequestError(
                f"self-contact of {a_robot(family)} cannot be checked: its shapes are not known",
                Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
            )
        try:
            import mujoco  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("the check for contact", "physics") from error
        self.mujoco: Any = mujoco
        self.margin_m = margin_m
        self._body = kinematics_of(family)
        self._model = model = _compile_model(family, margin_m)
        self._bodies = [model.body(i).name for i in range(model.nbody)]

    @property
    def excluded_pairs(self) -> list[tuple[str, str]]:
        """The pairs of links that are not tested."""
        # mujoco stores the numbers of two links as (one << 16) + other.
        pairs = (divmod(int(pair), 1 << 16) for pair in self._model.exclude_signature)
        return [(self._bodies[one], self._bodies[other]) for one, other in pairs]

    def find_contacts(
        self, track: Track, start_pose: Pose | None = None, build: Build | None = None
    ) -> list[Contact]:
        """Return each pair of links that comes nearer than the margin, at its worst moment.

        `start_pose` is in the columns of `build`; the default build is the family's first.
        """
        build = build or self._body.family.default
        absent = _find_absent_links(self._body, build)
        poses_rad = self._body.poses(track, start_pose, build)
        contacts = self._iter_moving_contacts(*_resample_finely(track.times_s, poses_rad))
        worst: dict[tuple[str, str], _Meeting] = {}  # by pair of links
        for time_s, group in groupby(contacts, key=attrgetter("time_s")):
            for pair, now in _collect_meetings(time_s, group).items():
                before = worst.get(pair)
                worst[pair] = now if before is None else before.merge_later(now)
        found = [
            Contact(meeting.time_s, a, b, meeting.distance_m)
            for (a, b), meeting in worst.items()
            if a not in absent and b not in absent
        ]
        return sorted(found, key=attrgetter("distance_m"))

    def iter_contacts(self, times_s: Array, poses_rad: Array) -> Iterator[Contact]:
        """Yield all shapes nearer than the margin in each of these poses, but not between them.

        Two links with several shapes in contact are yielded several times.
        """
        return _iter_contacts(self.mujoco, self._model, self._body, times_s, poses_rad)

    def _iter_moving_contacts(self, times_s: Array, poses_rad: Array) -> Iterator[Contact]:
        """Yield what `iter_contacts` yields; two links that never move only in the first pose.

        So an arm that moves is not delayed by the legs, which touch each other in no later pose.
        """
        is_moving = np.ptp(poses_rad, axis=0) > _STILL_RAD
        moving_joints = frozenset(
            _find_first_joint(joint, self._body)
            for joint in self._body.joints
            if is_moving[joint.index]
        )
        later_model = _compile_moving_model(self._body.family, self.margin_m, moving_joints)
        return _iter_contacts(self.mujoco, self._model, self._body, times_s, poses_rad, later_model)


class _Meeting(NamedTuple):
    """The distance or overlap of two links at one moment."""

    distance_m: float
    overlap_m: float
    """The sum of the depths of all overlapping shapes; 0 if none touch. A link that passes through
    another meets many of its shapes, none of them deeper than its thickness."""
    time_s: float

    def merge_later(self, later: "_Meeting") -> "_Meeting":
        """Return the moment with more overlap or, if equal, less distance.

        Its distance is the smaller one of both moments.
        """
        min_distance_m = min(self.distance_m, later.distance_m)
        is_later_worse = (later.overlap_m, -later.distance_m) > (self.overlap_m, -self.distance_m)
        return (later if is_later_worse else self)._replace(distance_m=min_distance_m)


def _collect_meetings(
    time_s: float, contacts: Iterable[Contact]
) -> dict[tuple[str, str], _Meeting]:
    """Return the distance and overlap of each pair of links at one moment."""
    meetings: dict[tuple[str, str], _Meeting] = {}
    for contact in contacts:
        pair = (contact.a, contact.b)
        distance_m, overlap_m, _ = meetings.get(pair, (np.inf, 0.0, time_s))
        meetings[pair] = _Meeting(
            min(distance_m, contact.distance_m), overlap_m + max(0.0, -contact.distance_m), time_s
        )
    return meetings


def _iter_contacts(
    mujoco: Any,
    model: Any,
    body: Kinematics,
    times_s: Array,
    poses_rad: Array,
    later_model: Any = None,
) -> Iterator[Contact]:
    """Yield what `ContactModel.iter_contacts` yields, for any model of mujoco.

    With `later_model`, a model of the same body, that is used after the first pose.
    """
    data, bodies = mujoco.MjData(model), [model.body(i).name for i in range(model.nbody)]
    qpos_indices = np.array([model.joint(joint.name).qposadr[0] for joint in body.joints])
    body_of_shape = np.asarray(model.geom_bodyid)
    for time_s, pose in zip(times_s.tolist(), poses_rad, strict=True):
        data.qpos[qpos_indices] = pose
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        model = later_model or model
        if not data.ncon:
            continue
        pairs, distances = body_of_shape[data.contact.geom], data.contact.dist
        for (one, other), distance_m in zip(pairs.tolist(), distances.tolist(), strict=True):
            a, b = sorted((bodies[one], bodies[other]))
            yield Contact(time_s, a, b, distance_m)


@lru_cache(maxsize=8)
def _compile_model(family: Family, margin_m: float) -> Any:
    """Return mujoco's model of a family, without the pairs of links that touch at rest.

    Do not modify it: it is cached, because compiling takes 0.1 s.
    """
    import mujoco  # noqa: PLC0415 - optional

    body = kinematics_of(family)
    excluded_pairs = neighbour_pairs(body)
    model_without_margin = mujoco.MjModel.from_xml_string(
        body_xml(family, 0.0, sorted(excluded_pairs))
    )
    rest_poses = np.array([_rest_pose_rad(family), (0.0,) * len(family.joints)])
    excluded_pairs |= {
        (contact.a, contact.b)
        for contact in _iter_contacts(mujoco, model_without_margin, body, np.zeros(2), rest_poses)
    }
    return mujoco.MjModel.from_xml_string(body_xml(family, margin_m, sorted(excluded_pairs)))


def _find_first_joint(joint: Joint, body: Kinematics) -> str:
    """Return the name of the first joint of an arm, a leg or another part that a joint belongs to.

    If one joint moves, the whole part counts as moving, so that few models are needed.
    """
    while (parent := body.parents[joint.index]) >= 0 and body.joints[parent].part == joint.part:
        joint = body.joints[parent]
    return joint.name


@lru_cache(maxsize=16)
def _compile_moving_model(family: Family, margin_m: float, moving_joints: frozenset[str]) -> Any:
    """Return mujoco's model of a family that does not test two links which both stay.

    A link stays if none of `moving_joints` is between it and the base.
    """
    body, model = kinematics_of(family), copy(_compile_model(family, margin_m))
    still_links = [link for link in body.links if moving_joints.isdisjoint(body.chain(link))]
    still_bodies = [model.body(link).id for link in (family.body.base, *still_links)]
    # Two shapes are tested if the type of one is among the affinities of the other.
    model.geom_conaffinity[np.isin(model.geom_bodyid, still_bodies)] = 0
    return model


def find_contacts(track: Track, margin_m: float = 0.0) -> list[Contact]:
    """Return each pair of links that comes nearer than `margin_m`, at its worst moment.

    Raises `BadRequestError` if the robot or its shapes are unknown.
    """
    family = family_of(track)
    if family is None:
        raise BadRequestError(
            "no known robot has the track's joints, so its shapes are not known",
            Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
        )
    return ContactModel(family, margin_m).find_contacts(track)


def _rest_pose_rad(family: Family) -> list[float]:
    """Return the rest positions of all joints of a family; the first build that has one counts."""
    rest = {name: angle for build in reversed(family.builds) for name, angle in build.rest.items()}
    return [rest.get(name, 0.0) for name in family.names]


def _find_absent_links(body: Kinematics, build: Build) -> set[str]:
    """Return the links of the legs that a build lacks; its other missing joints are only locked."""
    return {
        joint.link for joint in body.joints if joint.part == "leg" and joint.name not in build.names
    }


def neighbour_pairs(body: Kinematics) -> set[tuple[str, str]]:
    """Return the pairs of links that share a housing, each pair in alphabetical order."""
    parents = {joint.link: joint.parent for joint in body.joints}
    all_links = (*body.links, body.family.body.base)
    neighbours: dict[str, set[str]] = {link: {link} for link in all_links}
    for _ in range(_HOUSING_JOINTS):  # each round adds the links one joint further
        further = {link: set(links) for link, links in neighbours.items()}
        for link, parent in parents.items():
            further[link] |= neighbours[parent]
            further[parent] |= neighbours[link]
        neighbours = further
    close_pairs = {(min(pair), max(pair)) for pair in body.family.body.close_pairs}
    return {(a, b) for a, links in neighbours.items() for b in links if a < b} - close_pairs


def _resample_finely(times_s: Array, poses_rad: Array) -> tuple[Array, Array]:
    """Return times and poses between which no joint moves further than `MAX_STEP_RAD`.

    For a very long track the number of poses is limited, and the steps are larger.
    """
    moved_rad = np.abs(np.diff(poses_rad, axis=0)).max(axis=1)
    # The sum of the steps so far; 1e-9 lets it increase in a pause too, as `interp` requires.
    path_rad = np.concatenate([[0.0], np.cumsum(moved_rad + 1e-9)])
    steps = int(min(np.ceil(path_rad[-1] / MAX_STEP_RAD), _MAX_POSES))
    at_s = np.interp(np.linspace(0.0, path_rad[-1], steps + 1), path_rad, times_s)
    return at_s, sample(times_s, poses_rad, at_s, Interpolation.LINEAR)
