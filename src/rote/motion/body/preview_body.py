"""The robot as a body with servos, inertia and a floor, for `preview`.

Masses and torques are Unitree's; the rotors' inertia is that of its motors, as published by others.
A link's own inertia is estimated: that of an ellipsoid of its size. The gains are this project's
choice, the arms' about twice as stiff as those of common remote controls.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from rote.errors import MissingExtraError
from rote.model.family import Build, Family, Hull, Joint, Shape, Vector
from rote.motion.body.contact import ContactModel, body_xml
from rote.motion.body.kinematics import kinematics_of
from rote.motion.track import Array
from rote.motion.track_build import joints_by_name

STEP_S = 0.002
FLOOR = "floor"
CANCELLED_SHARE = 0.7
"""The share of the gravity torques that the controller cancels; the rest makes the arms sag."""

# By a motor's torque in N.m: the inertia of rotor and gears at the joint, in kg.m2; others are
# interpolated. A torque of 35 N.m comes from two motors of 25 N.m.
_ROTORS_NM = (5.0, 25.0, 35.0, 88.0, 139.0)
_ROTORS_KG_M2 = (0.00425, 0.00361, 0.00722, 0.01018, 0.0251)
_MIN_SIZE_M = 0.05  # links without a shape are small, but not points
# Stiffness in N.m/rad and damping in N.m.s/rad: of joints without their own gains, and by part.
_ARM_GAINS = (150.0, 8.0)
_GAINS = {"waist": (400.0, 12.0), "wrist": (60.0, 1.5), "head": (60.0, 1.5), "finger": (5.0, 0.1)}
_ANKLE_JOINTS = 2  # of a leg, counted from the foot


class Gains(NamedTuple):
    """The servos' gains, each (joints,): torque = stiffness * error + damping * speed error."""

    stiffness: Array
    damping: Array


def choose_gains(family: Family, *, free: bool) -> Gains:
    """Return the servo gains; a robot on its own feet has stiff legs."""
    leg, ankle = ((2000.0, 60.0), (3000.0, 40.0)) if free else ((300.0, 10.0), (100.0, 3.0))
    part_gains = {**_GAINS, "leg": leg}
    ankle_indices = _find_ankle_indices(family)
    rows = [
        ankle if joint.index in ankle_indices else part_gains.get(joint.part, _ARM_GAINS)
        for joint in family.joints
    ]
    stiffness, damping = np.array(rows).T
    return Gains(stiffness, damping)


def _find_ankle_indices(family: Family) -> set[int]:
    """Return the indices of the two joints nearest to each foot."""
    body, indices = kinematics_of(family), set[int]()
    for foot in family.body.feet:
        index = body.links.index(foot.link)
        for _ in range(_ANKLE_JOINTS):
            indices.add(index)
            index = body.parents[index]
    return indices - {-1}  # the base, which has no joint


class PreviewBody(NamedTuple):
    """A compiled body, ready to be stepped."""

    mujoco: Any
    model: Any
    data: Any
    links: tuple[str, ...]
    """The names of the links, by mujoco's number; number 0 is the world, here the floor."""
    link_of_shape: Any
    """The number of the link that each shape is part of."""
    qpos_indices: Any
    """The index of each joint's angle in `qpos`, (joints,)."""


def compile_body(
    build: Build, family: Family, pose_rad: Array, *, free: bool, payload_kg: float
) -> PreviewBody:
    """Return the body of a build in a pose, which has an angle for each joint of the family.

    If `free` it stands on a floor, otherwise its base is fixed. Each hand carries `payload_kg`.
    """
    try:
        contact = ContactModel(family)
    except MissingExtraError as error:
        raise MissingExtraError("a physics preview", error.extra) from error
    mujoco, base = contact.mujoco, family.body.base
    spec = mujoco.MjSpec.from_string(_body_xml(family))
    spec.option.timestep = STEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # stable with strong damping
    _set_masses(spec, family, payload_kg)
    joints_of_build = joints_by_name(build)
    gains = choose_gains(family, free=free)
    for joint in family.joints:
        _add_servo(mujoco, spec, joints_of_build[joint.name], gains)
    if free:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        spec.body(base).add_freejoint()
    model = spec.compile()
    data = mujoco.MjData(model)
    qpos_indices = np.array([model.joint(joint.name).qposadr[0] for joint in family.joints])
    if free:
        data.qpos[2] = compute_standing_height_m(family, pose_rad)  # z of the base
    data.qpos[qpos_indices] = pose_rad
    links = (FLOOR, *(model.body(number).name for number in range(1, model.nbody)))
    return PreviewBody(mujoco, model, data, links, np.asarray(model.geom_bodyid), qpos_indices)


@lru_cache(maxsize=8)
def _body_xml(family: Family) -> str:
    """Return a robot as MJCF. It is cached, because writing it takes longer than compiling it."""
    return body_xml(family, 0.0, ContactModel(family).excluded_pairs)


def compute_standing_height_m(family: Family, pose_rad: Array) -> float:
    """Return the height of the base if the lowest point of the feet is on the floor."""
    body, feet = kinematics_of(family), {foot.link for foot in family.body.feet}
    frames = body.forward(pose_rad[None, :])
    lowest_m = [
        body.at(frames, (shape.link, corner))[2, 0] - _get_radius_m(shape)
        for shape in family.body.shapes
        if shape.link in feet
        for corner in _list_low_points(shape)
    ]
    return -float(min(lowest_m))


def _get_radius_m(shape: Shape | Hull) -> float:
    return 0.0 if isinstance(shape, Hull) else shape.radius_m


def _list_low_points(shape: Shape | Hull) -> Sequence[Vector]:
    """Return all corners of a hull, the lower corners of a box, or the two ends of a capsule."""
    if isinstance(shape, Hull):
        return shape.corners_m
    if shape.radius_m:
        return [shape.start_m, shape.end_m]
    (x, y, z), (half_x, half_y, half_z) = shape.start_m, shape.end_m
    return [(x + i * half_x, y + k * half_y, z - half_z) for i in (-1.0, 1.0) for k in (-1.0, 1.0)]


def _set_masses(spec: Any, family: Family, payload_kg: float) -> None:
    """Set the mass of each link, including parts fixed to it and the payload of the hands."""
    body = kinematics_of(family)
    load = body.link_masses(payload_kg)
    for link, mass_kg, centre_m in zip(body.links, load.masses_kg, load.centres_m, strict=True):
        _set_mass(spec.body(link), family, float(mass_kg), centre_m)
    _set_mass(spec.body(family.body.base), family, *body.base_mass())


def _set_mass(link: Any, family: Family, mass_kg: float, centre_m: Array) -> None:
    link.explicitinertial = True
    link.mass, link.ipos = mass_kg, centre_m
    link.inertia = compute_inertia_kg_m2(family, link.name, mass_kg)


def compute_inertia_kg_m2(family: Family, link: str, mass_kg: float) -> Array:
    """Return a link's inertia about its three axes: that of an ellipsoid as large as its shapes.

    An ellipsoid with diameters a, b and c has the inertia m / 20 * (b**2 + c**2) about its first
    axis.
    """
    lows, highs = [np.full(3, -_MIN_SIZE_M / 2)], [np.full(3, _MIN_SIZE_M / 2)]
    for shape in family.body.shapes:
        if shape.link == link:
            points, half_size = np.array(_list_low_points(shape)), np.full(3, _get_radius_m(shape))
            if isinstance(shape, Shape) and not shape.radius_m:  # a box, given by its centre
                points, half_size = np.array([shape.start_m]), np.array(shape.end_m)
            lows.append(points.min(axis=0) - half_size)
            highs.append(points.max(axis=0) + half_size)
    squares = np.square(np.max(highs, axis=0) - np.min(lows, axis=0))
    return np.asarray(mass_kg / 20.0 * (squares.sum() - squares))


def _add_servo(mujoco: Any, spec: Any, joint: Joint, gains: Gains) -> None:
    """Add a motor with a servo to a joint.

    mujoco's force is gain * control + bias, where the bias is -stiffness * angle - damping * speed.
    """
    spec.joint(joint.name).armature = np.interp(joint.effort_nm, _ROTORS_NM, _ROTORS_KG_M2)
    stiffness, damping = gains.stiffness[joint.index], gains.damping[joint.index]
    servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    servo.gainprm[0] = stiffness
    servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    servo.biasprm[1], servo.biasprm[2] = -stiffness, -damping
    servo.forcelimited = True
    servo.forcerange = [-joint.effort_nm, joint.effort_nm]
