"""Does the robot touch itself? A body of capsules and boxes, asked by mujoco. Needs `physics`.

The shapes are this project's own: as long as the joint table says, as thick as the robot looks.
They are good to about a centimetre. Links that are neighbours, or that touch when the robot
stands at ease, are not asked about.
"""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from rote.errors import MissingExtraError
from rote.messages import Interpolation
from rote.model.family import Joint, Vector
from rote.model.g1 import G1_JOINTS, G1_REST_RAD
from rote.motion.interpolate import sample
from rote.motion.kinematics import LINKS, Pose, poses, weights
from rote.motion.track import Array, Track

MOST_STEP_RAD = 0.03
"""No joint moves further from one pose that is looked at to the next: 2 cm at a stretched arm."""

_MOST_POSES = 30_000
_SAME_PLACE_HOPS = 2  # a link, its neighbours and theirs share a housing


class Shape(NamedTuple):
    """One primitive on a link: a capsule between two points, or a box around one."""

    link: str
    start_m: Vector
    end_m: Vector
    """A capsule's other end; a box's half sizes."""
    radius_m: float
    """0 for a box."""


class Contact(NamedTuple):
    """Two links that are near or in each other."""

    time_s: float
    a: str
    b: str
    distance_m: float
    """Below 0: so deep is one in the other."""


_MIDDLE = (
    Shape("pelvis", (0.0, -0.04, -0.06), (0.0, 0.04, -0.06), 0.065),
    Shape("torso_link", (0.0, 0.0, 0.0), (0.0, 0.0, 0.1), 0.065),
    Shape("torso_link", (0.0, 0.0, 0.195), (0.075, 0.095, 0.105), 0.0),
    Shape("torso_link", (0.005, 0.0, 0.36), (0.01, 0.0, 0.42), 0.07),
)
_LEFT = (
    Shape("hip_pitch_link", (0.0, 0.0, 0.0), (0.0, 0.05, -0.03), 0.05),
    Shape("hip_roll_link", (0.0, 0.0, 0.0), (0.025, 0.0, -0.124), 0.055),
    Shape("hip_yaw_link", (0.0, 0.0, 0.0), (-0.078, 0.002, -0.177), 0.055),
    Shape("knee_link", (0.0, 0.0, 0.0), (0.0, 0.0, -0.27), 0.045),
    Shape("ankle_roll_link", (0.035, 0.0, -0.02), (0.09, 0.035, 0.015), 0.0),
    Shape("shoulder_pitch_link", (0.0, 0.01, 0.0), (0.0, 0.04, -0.012), 0.04),
    Shape("shoulder_roll_link", (0.0, 0.0, 0.0), (0.0, 0.006, -0.09), 0.036),
    Shape("shoulder_yaw_link", (0.0, 0.0, 0.0), (0.0158, 0.0, -0.08), 0.036),
    Shape("elbow_link", (0.0, 0.0, -0.005), (0.1, 0.002, -0.01), 0.033),
    Shape("wrist_pitch_link", (0.0, 0.0, 0.0), (0.045, 0.0, 0.0), 0.032),
    Shape("wrist_yaw_link", (0.04, 0.0, 0.0), (0.13, 0.0, 0.0), 0.032),
)


def _other_side(shape: Shape) -> Shape:
    """Return the same shape on the right: y becomes -y, of a capsule's points."""
    (sx, sy, sz), (ex, ey, ez) = shape.start_m, shape.end_m
    end: Vector = (ex, -ey, ez) if shape.radius_m else shape.end_m
    return Shape(f"right_{shape.link}", (sx, -sy, sz), end, shape.radius_m)


SHAPES: tuple[Shape, ...] = (
    *_MIDDLE,
    *(shape._replace(link=f"left_{shape.link}") for shape in _LEFT),
    *(_other_side(shape) for shape in _LEFT),
)


def body_xml(margin_m: float = 0.0, apart: Sequence[tuple[str, str]] = ()) -> str:
    """Return the robot as MJCF, its pelvis fixed; pairs of links in `apart` never meet."""
    excludes = "".join(f'<exclude body1="{a}" body2="{b}"/>' for a, b in apart)
    return (
        '<mujoco model="g1"><compiler angle="radian" eulerseq="XYZ" autolimits="true"/>'
        # Two shapes are reported when nearer than the sum of their margins.
        f'<default><geom margin="{margin_m / 2:g}" density="0"/></default>'
        f'<worldbody><body name="pelvis">{_shapes_xml("pelvis")}{_children_xml("pelvis")}'
        f"</body></worldbody><contact>{excludes}</contact></mujoco>"
    )


def _children_xml(parent: str) -> str:
    return "".join(_link_xml(joint) for joint in G1_JOINTS if joint.parent == parent)


def _link_xml(joint: Joint) -> str:
    link, load = LINKS[joint.index], weights()
    mass, centre = load.masses_kg[joint.index], load.centres_m[joint.index]
    # Roll, pitch and yaw are about fixed axes, which is what capitals mean in `eulerseq`.
    place = f'pos="{_words(joint.origin_m)}" euler="{_words(joint.origin_rpy_rad)}"'
    return (
        f'<body name="{link}" {place}>'
        f'<inertial pos="{_words(centre)}" mass="{mass:g}" diaginertia="0.001 0.001 0.001"/>'
        f'<joint name="{joint.name}" axis="{_words(joint.axis)}" '
        f'range="{joint.lower_rad:g} {joint.upper_rad:g}"/>'
        f"{_shapes_xml(link)}{_children_xml(link)}</body>"
    )


def _shapes_xml(link: str) -> str:
    return "".join(_shape_xml(shape) for shape in SHAPES if shape.link == link)


def _shape_xml(shape: Shape) -> str:
    if shape.radius_m:
        ends = f"{_words(shape.start_m)} {_words(shape.end_m)}"
        return f'<geom type="capsule" fromto="{ends}" size="{shape.radius_m:g}"/>'
    return f'<geom type="box" pos="{_words(shape.start_m)}" size="{_words(shape.end_m)}"/>'


def _words(vector: Vector | Array) -> str:
    return " ".join(f"{value:.9g}" for value in vector)


class ContactModel:
    """The body, compiled; make one and ask it about many tracks."""

    def __init__(self, margin_m: float = 0.0) -> None:
        try:
            import mujoco  # noqa: PLC0415 - optional
        except ImportError as error:
            raise MissingExtraError("looking for contact", "physics") from error
        self._mujoco: Any = mujoco
        self.margin_m = margin_m
        apart = _neighbours()
        self._load(0.0, apart)
        at_ease = np.array([G1_REST_RAD, (0.0,) * len(G1_JOINTS)])
        apart |= {(found.a, found.b) for found in self._looked(np.zeros(2), at_ease)}
        self._load(margin_m, apart)

    def _load(self, margin_m: float, apart: set[tuple[str, str]]) -> None:
        xml = body_xml(margin_m, sorted(apart))
        self._model: Any = self._mujoco.MjModel.from_xml_string(xml)
        self._data: Any = self._mujoco.MjData(self._model)
        self._bodies = [self._model.body(i).name for i in range(self._model.nbody)]
        self._order = [self._model.joint(joint.name).qposadr[0] for joint in G1_JOINTS]
        self._body_of = np.asarray(self._model.geom_bodyid)

    def contacts(self, track: Track, start_pose: Pose | None = None) -> list[Contact]:
        """Return every pair of links nearer than the margin, once at its nearest moment."""
        if not len(track):
            return []
        nearest: dict[tuple[str, str], Contact] = {}
        for found in self._looked(*_fine(track.times_s, poses(track, start_pose))):
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
    """Return every pair of links that meet in a track, each once at its worst moment."""
    return ContactModel(margin_m).contacts(track)


def _neighbours() -> set[tuple[str, str]]:
    """Return the pairs of links, in alphabetical order, that are a hop or two apart."""
    parents = dict(zip(LINKS, (joint.parent for joint in G1_JOINTS), strict=True))
    near: dict[str, set[str]] = {link: {link} for link in (*LINKS, "pelvis")}
    for _ in range(_SAME_PLACE_HOPS):
        wider = {link: set(found) for link, found in near.items()}
        for link, parent in parents.items():
            wider[link] |= near[parent]
            wider[parent] |= near[link]
        near = wider
    return {(a, b) for a, found in near.items() for b in found if a < b}


def _fine(times_s: Array, poses_rad: Array) -> tuple[Array, Array]:
    """Return moments and poses so near each other that nothing slips through between two."""
    moved = np.abs(np.diff(poses_rad, axis=0)).max(axis=1)
    far = np.concatenate([[0.0], np.cumsum(moved + 1e-9)])  # a pause counts as a little way
    steps = int(min(np.ceil(far[-1] / MOST_STEP_RAD), _MOST_POSES))
    wanted = np.linspace(0.0, far[-1], steps + 1)
    at_s = np.interp(wanted, far, times_s)
    return at_s, sample(times_s, poses_rad, at_s, Interpolation.LINEAR)
