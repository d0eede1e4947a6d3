"""The robot as a body that falls, swings and is driven: servos, inertia and a floor. For `preview`.

Masses and torques are the manufacturer's, the rotors' inertia is that of its motors as others
have published it. A link's own inertia is estimated: that of an egg of its size. The gains are
this project's choice, the arms' about twice as stiff as those of common remote controls.
"""

from typing import Any, NamedTuple

import numpy as np

from rote.errors import MissingExtraError
from rote.model.family import Joint
from rote.model.g1 import G1_JOINTS, PELVIS_COM_M, PELVIS_MASS_KG
from rote.motion.contact import SHAPES, ContactModel, body_xml
from rote.motion.kinematics import LINKS, forward, weights
from rote.motion.track import Array

STEP_S = 0.002
FLOOR = "floor"
CANCELS = 0.7
"""How much of the weight of arms and torso the controller carries by itself; the rest is sag."""

# By a motor's torque in N.m: the inertia of rotor and gears at the joint, in kg.m2. Where the
# torque is 35 N.m, two of the motors of 25 N.m share the work.
_ROTOR_KG_M2 = {5.0: 0.00425, 25.0: 0.00361, 35.0: 0.00722, 88.0: 0.01018, 139.0: 0.0251}
FEET = ("left_ankle_roll_link", "right_ankle_roll_link")
_LEAST_SIZE_M = 0.05  # links without a shape of their own are small, but no points


class Gains(NamedTuple):
    """What the servos do: torque = stiffness * error + damping * speed error; each (29,)."""

    stiffness: Array
    damping: Array


def gains(*, free: bool) -> Gains:
    """Return the servos' gains; on its own feet the robot has stiff legs."""
    legs, ankles = ((2000.0, 60.0), (3000.0, 40.0)) if free else ((300.0, 10.0), (100.0, 3.0))
    by_name = {"hip": legs, "knee": legs, "ankle": ankles, "waist": (400.0, 12.0)}
    by_name |= {"shoulder": (150.0, 8.0), "elbow": (150.0, 8.0), "wrist": (60.0, 1.5)}
    words = (joint.name.removeprefix("left_").removeprefix("right_") for joint in G1_JOINTS)
    return Gains(*np.array([by_name[word.partition("_")[0]] for word in words]).T)


class Body(NamedTuple):
    """A compiled body, ready to be stepped."""

    mujoco: Any
    model: Any
    data: Any
    links: tuple[str, ...]
    """By mujoco's number; the world, which is the floor, is 0."""
    of_shape: Any
    """The number of the link each shape is on."""
    first: int
    """Where in `qpos` the 29 angles begin."""


def build(pose_rad: Array, *, free: bool, payload_kg: float) -> Body:
    """Return the body in a pose; if `free` it stands on a floor, else its pelvis is held."""
    try:
        contact = ContactModel()
    except MissingExtraError as error:
        raise MissingExtraError("a physics preview", error.extra) from error
    mujoco = contact._mujoco
    spec = mujoco.MjSpec.from_string(body_xml(0.0, _apart(contact)))
    spec.option.timestep = STEP_S
    spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    load = weights(payload_kg)
    for joint in G1_JOINTS:
        mass, centre = float(load.masses_kg[joint.index]), load.centres_m[joint.index]
        _weigh(spec.body(LINKS[joint.index]), mass, centre)
        _drive(mujoco, spec, joint, gains(free=free))
    _weigh(spec.body("pelvis"), PELVIS_MASS_KG, np.array(PELVIS_COM_M))
    if free:
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1])
        spec.body("pelvis").add_freejoint()
    model = spec.compile()
    data = mujoco.MjData(model)
    first = model.nq - len(G1_JOINTS)
    if free:
        data.qpos[2] = standing_m(pose_rad)
    data.qpos[first:] = pose_rad
    links = (FLOOR, *(model.body(number).name for number in range(1, model.nbody)))
    return Body(mujoco, model, data, links, np.asarray(model.geom_bodyid), first)


def standing_m(pose_rad: Array) -> float:
    """Return how high the pelvis is when the soles are on the floor."""
    frames = forward(pose_rad[None, :])
    soles = [
        frames.points_m(LINKS.index(shape.link), np.array(shape.start_m) + corner)[2, 0]
        for shape in SHAPES
        if shape.link in FEET
        for corner in _corners(shape.end_m)
    ]
    return -float(min(soles))


def _corners(half_m: tuple[float, float, float]) -> list[Array]:
    """Return the lower corners of a box around 0."""
    return [np.array([x, y, -1.0]) * half_m for x in (-1.0, 1.0) for y in (-1.0, 1.0)]


def _apart(contact: ContactModel) -> list[tuple[str, str]]:
    """Return the pairs of links that never count as touching, as in the search for contact."""
    pairs = (divmod(int(pair), 1 << 16) for pair in contact._model.exclude_signature)
    return [(contact._bodies[one], contact._bodies[other]) for one, other in pairs]


def _weigh(link: Any, mass_kg: float, centre_m: Array) -> None:
    link.explicitinertial = True
    link.mass, link.ipos = mass_kg, centre_m
    link.inertia = inertia_kg_m2(link.name, mass_kg)


def inertia_kg_m2(link: str, mass_kg: float) -> Array:
    """Return a link's inertia about its three axes: that of an egg as large as its shapes."""
    lows, highs = [np.full(3, -_LEAST_SIZE_M / 2)], [np.full(3, _LEAST_SIZE_M / 2)]
    for shape in SHAPES:
        if shape.link == link:
            ends = np.array([shape.start_m, shape.end_m])
            half = np.full(3, shape.radius_m)
            if not shape.radius_m:
                ends, half = ends[:1], ends[1]
            lows.append(ends.min(axis=0) - half)
            highs.append(ends.max(axis=0) + half)
    squares = np.square(np.max(highs, axis=0) - np.min(lows, axis=0))
    return np.asarray(mass_kg / 20.0 * (squares.sum() - squares))


def _drive(mujoco: Any, spec: Any, joint: Joint, servos: Gains) -> None:
    """Put a motor with a servo on a joint."""
    spec.joint(joint.name).armature = _ROTOR_KG_M2[joint.effort_nm]
    stiffness, damping = servos.stiffness[joint.index], servos.damping[joint.index]
    servo = spec.add_actuator(name=joint.name, target=joint.name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
    servo.gainprm[0] = stiffness
    servo.biastype = mujoco.mjtBias.mjBIAS_AFFINE
    servo.biasprm[1], servo.biasprm[2] = -stiffness, -damping
    servo.forcelimited = True
    servo.forcerange = [-joint.effort_nm, joint.effort_nm]
