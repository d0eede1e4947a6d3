"""The A1 quadruped: its joints, their order, limits and positions, as frozen data.

Facts from Unitree's published description of the A1 (a1_description, BSD-3-Clause). The
order is that of the robot's motor messages: legs FR, FL, RR, RL, each hip, thigh, calf. All joints'
frames are parallel to the trunk's when all angles are zero; x is forward, y left, z up.
"""

from rote.model.family import (
    ZERO,
    BodyFacts,
    Build,
    Evidence,
    Family,
    Figure,
    FixedMass,
    Grade,
    Joint,
    ModeFacts,
    ModeTable,
    Point,
    StreamFacts,
    Vector,
    X,
    Y,
    chain,
)

__all__ = ["A1", "A1_BUILD"]

LEGS = ("FR", "FL", "RR", "RL")
"""Front right, front left, rear right, rear left: the order of feet and legs on every wire."""
JOINTS_PER_LEG = 3

_VELOCITY_RAD_S, _EFFORT_NM = 21.0, 33.5
_HIP_RAD = (-0.802851455917, 0.802851455917)
_THIGH_RAD = (-1.0471975512, 4.18879020479)
_CALF_RAD = (-2.69653369433, -0.916297857297)

HIP_X_M, HIP_Y_M = 0.1805, 0.047
"""The positions of the hip joints on the trunk, without signs."""
HIP_LENGTH_M = 0.0838
"""From the hip's axis sideways to the thigh's joint."""
THIGH_LENGTH_M = CALF_LENGTH_M = 0.2
FOOT_M: Vector = (0.0, 0.0, -CALF_LENGTH_M)
"""The foot in the calf's frame."""

TRUNK_MASS_KG = 6.0
FOOT_MASS_KG = 0.06
HIP_MASS_KG, THIGH_MASS_KG, CALF_MASS_KG = 0.696, 1.013, 0.166
MASS_KG = 13.741
"""The whole robot, with the feet and the inertial sensor."""


def _make_leg(number: int) -> tuple[Joint, Joint, Joint]:
    """Return hip, thigh and calf of the leg with this number in `LEGS`."""
    leg = LEGS[number]
    front = 1.0 if leg[0] == "F" else -1.0  # the sign of x
    left = 1.0 if leg[1] == "L" else -1.0  # the sign of y
    # link, its parent, axis, limits in rad, origin of the joint in the parent, mass, centre of mass
    rows: tuple[tuple[str, str, Vector, tuple[float, float], Vector, float, Vector], ...] = (
        (f"{leg}_hip", "trunk", X, _HIP_RAD, (front * HIP_X_M, left * HIP_Y_M, 0.0),
         HIP_MASS_KG, (-front * 0.003311, left * 0.000635, 3.1e-05)),
        (f"{leg}_thigh", f"{leg}_hip", Y, _THIGH_RAD, (0.0, left * HIP_LENGTH_M, 0.0),
         THIGH_MASS_KG, (-0.003237, -left * 0.022327, -0.027326)),
        (f"{leg}_calf", f"{leg}_thigh", Y, _CALF_RAD, (0.0, 0.0, -THIGH_LENGTH_M),
         CALF_MASS_KG, (0.006435, 0.0, -0.107388)),
    )  # fmt: skip
    hip, thigh, calf = (
        Joint(
            index=number * JOINTS_PER_LEG + position,
            name=f"{link}_joint",
            parent=parent,
            axis=axis,
            lower_rad=lower,
            upper_rad=upper,
            velocity_rad_s=_VELOCITY_RAD_S,
            effort_nm=_EFFORT_NM,
            origin_m=origin,
            origin_rpy_rad=(0.0, 0.0, 0.0),
            mass_kg=mass,
            com_m=com,
            link=link,
            part="leg",
        )
        for position, (link, parent, axis, (lower, upper), origin, mass, com) in enumerate(rows)
    )
    return hip, thigh, calf


A1_JOINTS: tuple[Joint, ...] = tuple(joint for leg in range(len(LEGS)) for joint in _make_leg(leg))

A1_STAND_RAD: tuple[float, ...] = (0.0, 0.67, -1.3) * len(LEGS)
"""The standing pose of Unitree's simulation (unitree_ros, BSD-3-Clause)."""

SDK_LIMITS_RAD: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "a1": ((-0.802, 0.802), (-1.05, 4.19), (-2.7, -0.916)),
    "go1": ((-1.047, 1.047), (-0.663, 2.966), (-2.721, -0.837)),
}
"""The limits of hip, thigh and calf in Unitree's library, measured on it; the same for all legs.
Folded on the ground an A1's calves are at about -2.75 rad, which is outside.
"""
POSITION_MARGIN_RAD = 0.087
"""How far inside these limits a joint must stay, by Unitree's position protection."""


# ---- the family ---------------------------------------------------------------------------------

KP_NM_RAD, KD_NM_S_RAD = 40.0, 2.0
"""The stiffness and damping of legs that are played; this project's choice."""
_HEAD_M: Vector = (0.26, 0.0, 0.02)


def _compute_protected_ranges() -> dict[str, tuple[float, float]]:
    """Return, by joint name, the range in rad that the position protection allows."""
    limits = SDK_LIMITS_RAD["a1"]
    return {
        joint.name: (
            limits[joint.index % JOINTS_PER_LEG][0] + POSITION_MARGIN_RAD,
            limits[joint.index % JOINTS_PER_LEG][1] - POSITION_MARGIN_RAD,
        )
        for joint in A1_JOINTS
    }


def _make_figure() -> Figure:
    """Return the figure of a trunk with a head on four legs; trails follow the front feet."""
    hips: dict[str, Point] = {
        leg: ("trunk", A1_JOINTS[number * JOINTS_PER_LEG].origin_m)
        for number, leg in enumerate(LEGS)
    }
    head: Point = ("trunk", _HEAD_M)
    trunk = [hips[leg] for leg in ("FR", "FL", "RL", "RR", "FR")]  # around it
    legs: dict[str, list[Point]] = {
        leg: [hip, (f"{leg}_thigh", ZERO), (f"{leg}_calf", ZERO), (f"{leg}_calf", FOOT_M)]
        for leg, hip in hips.items()
    }
    sticks = chain("", *trunk, head, hips["FL"])
    for leg, points in legs.items():
        sticks += chain("left" if leg[1] == "L" else "right", *points)
    return Figure(
        sticks=tuple(sticks),
        head=head,
        head_radius_m=0.04,
        trails=(legs["FL"][-1], legs["FR"][-1]),
        floor=tuple(point for points in legs.values() for point in points),
    )


A1_BUILD = Build(
    name="a1",
    family="a1",
    title="A1 or Go1 quadruped",
    joints=A1_JOINTS,
    taught=tuple(joint.name for joint in A1_JOINTS),
    streamed=tuple(joint.name for joint in A1_JOINTS),
    rest={joint.name: rest for joint, rest in zip(A1_JOINTS, A1_STAND_RAD, strict=True)},
    stream=StreamFacts(stiffness_nm_rad=KP_NM_RAD, damping_nm_s_rad=KD_NM_S_RAD),
)

A1_MODES = ModeTable(
    all=(
        ModeFacts(0, "idle", "standing idle", balanced=True, stiff=True),
        ModeFacts(1, "stand", "standing, its body turned or lowered", balanced=True, stiff=True),
        ModeFacts(2, "walk", "walking", balanced=True, stiff=True),
        ModeFacts(3, "walk to", "walking to a place", balanced=True, stiff=True),
        ModeFacts(5, "lie down", "lying down", balanced=False, stiff=True),
        ModeFacts(6, "get up", "getting up", balanced=False, stiff=True),
        ModeFacts(7, "damp", "damped: legs yield slowly", balanced=False, stiff=False),
        ModeFacts(8, "recover", "recovering a stand", balanced=False, stiff=True),
    ),
    standing=1,
    damp=7,
)
"""The modes of the walking controller; those above 2 are not in dialect 3.2."""

A1 = Family(
    name="a1",
    title="Unitree A1 or Go1 quadruped",
    joints=A1_JOINTS,
    builds=(A1_BUILD,),
    body=BodyFacts(
        base="trunk",
        base_mass_kg=TRUNK_MASS_KG,
        fixed=tuple(FixedMass(f"{leg}_calf", FOOT_MASS_KG, FOOT_M) for leg in LEGS),
        figure=_make_figure(),
    ),
    mirror={
        # FL_hip_joint and FR_hip_joint: the second letter is the side.
        joint.name: joint.name[0] + {"L": "R", "R": "L"}[joint.name[1]] + joint.name[2:]
        for joint in A1_JOINTS
    },
    modes=A1_MODES,
    wires=("a1",),
    works={
        "walk": Grade.PUBLISHED,
        "teach": Grade.PUBLISHED,
        "stream": Grade.PUBLISHED,
        "stop": Grade.PUBLISHED,
    },
    evidence={
        "joints": Evidence(Grade.PUBLISHED, "unitree_ros, a1_description (BSD-3-Clause)"),
        "slots": Evidence(Grade.PUBLISHED, "unitree_legged_sdk, comm.h"),
        "protection": Evidence(Grade.PUBLISHED, "unitree_legged_sdk 3.8, measured on its library"),
        "stream": Evidence(Grade.CHOSEN, "gains are this project's"),
    },
    soft_rad_s=0.8,
    soft_least_s=1.0,
    max_gap_s=0.25,
    protected_rad=_compute_protected_ranges(),
    keeps_actions=False,
)
