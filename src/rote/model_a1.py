"""What an A1 is: its joints, their order, limits and places, as frozen data.

Facts from the manufacturer's published description of the A1 (a1_description, BSD-3-Clause). The
order is that of the robot's motor messages: legs FR, FL, RR, RL, each hip, thigh, calf. All joints'
frames are parallel to the trunk's when all angles are zero; x is forward, y left, z up.
"""

from rote.model import Joint, Variant, Vector, X, Y

LEGS = ("FR", "FL", "RR", "RL")
"""Front right, front left, rear right, rear left: the order of feet and legs on every wire."""
JOINTS_PER_LEG = 3

_VELOCITY_RAD_S, _EFFORT_NM = 21.0, 33.5
_HIP_RAD = (-0.802851455917, 0.802851455917)
_THIGH_RAD = (-1.0471975512, 4.18879020479)
_CALF_RAD = (-2.69653369433, -0.916297857297)

HIP_X_M, HIP_Y_M = 0.1805, 0.047
"""Where the hip joints are on the trunk, but for their signs."""
HIP_LENGTH_M = 0.0838
"""From the hip's axis sideways to the thigh's joint."""
THIGH_LENGTH_M = CALF_LENGTH_M = 0.2
FOOT_M: Vector = (0.0, 0.0, -CALF_LENGTH_M)
"""The foot in the calf's frame."""

TRUNK_MASS_KG = 6.0
FOOT_MASS_KG = 0.06
HIP_MASS_KG, THIGH_MASS_KG, CALF_MASS_KG = 0.696, 1.013, 0.166
MASS_KG = 13.741
"""All of it, the feet and the inertial sensor included."""


def _leg(number: int) -> tuple[Joint, Joint, Joint]:
    leg = LEGS[number]
    front = 1.0 if leg[0] == "F" else -1.0
    left = 1.0 if leg[1] == "L" else -1.0
    # name of the link, its parent, axis, limits, where the joint sits, mass, centre of mass
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
            index=number * JOINTS_PER_LEG + place,
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
        )
        for place, (link, parent, axis, (lower, upper), origin, mass, com) in enumerate(rows)
    )
    return hip, thigh, calf


A1_JOINTS: tuple[Joint, ...] = tuple(joint for leg in range(len(LEGS)) for joint in _leg(leg))
A1 = Variant(name="a1", joints=A1_JOINTS)

A1_STAND_RAD: tuple[float, ...] = (0.0, 0.67, -1.3) * len(LEGS)
"""Standing, as the manufacturer's simulation does (unitree_ros, BSD-3-Clause)."""

SDK_LIMITS_RAD: dict[str, tuple[tuple[float, float], tuple[float, float], tuple[float, float]]] = {
    "a1": ((-0.802, 0.802), (-1.05, 4.19), (-2.7, -0.916)),
    "go1": ((-1.047, 1.047), (-0.663, 2.966), (-2.721, -0.837)),
}
"""Hip, thigh and calf as the manufacturer's library limits them, measured on it; the same for all
legs. Folded on the ground an A1's calves are at about -2.75 rad, outside of them."""
POSITION_MARGIN_RAD = 0.087
"""How far inside these a joint has to stay, by the manufacturer's position protection."""


def link_of(joint: Joint) -> str:
    """Return the name of the link that hangs on a joint of an A1."""
    return joint.name.removesuffix("_joint")
