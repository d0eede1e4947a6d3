"""The Dex3-1 hand with three fingers and seven motors, left and right, as frozen data.

Facts from Unitree's published description of a G1 with these hands (g1_29dof_with_hand_rev_1_0,
BSD-3-Clause). The palm is fixed to the wrist; the origins of the first joints include its offset.
Where sources disagree on a number, the smaller one is used.
"""

from rote.model.family import ZERO, Evidence, FixedMass, Grade, Hand, Joint, Vector, Y, Z

__all__ = ["DEX3", "DEX3_LEFT", "DEX3_RIGHT"]

TOPICS = "rt/dex3/{side}/{message}"

PALM_M: Vector = (0.0415, 0.003, 0.0)
"""The position of the left palm in the frame of the wrist-yaw link."""
PALM_MASS_KG = 0.37283854
PALM_COM_M: Vector = (0.06214634836, -0.00050869656, -0.00058171093)
"""The centre of mass of the left palm, in its own frame."""

# Of the left hand: name, parent (empty: the palm), axis, lower and upper rad, rad/s, N.m,
#     origin in the parent, mass and centre of mass of the child link
_ROWS: tuple[
    tuple[str, str, Vector, float, float, float, float, Vector, float, Vector], ...
] = (
    ("thumb_0", "", Y, -1.04719755, 1.04719755, 3.14, 2.45,
     (0.0255, 0.0, 0.0), 0.08623657, (-0.0008842458, -0.00863407079, 0.00094429336)),
    ("thumb_1", "thumb_0", Z, -0.61086523, 1.04719755, 12.0, 1.4,
     (-0.0025, -0.0193, 0.0), 0.0588507, (-0.00082788768, -0.03547435774, -0.0003808996)),
    ("thumb_2", "thumb_1", Z, 0.0, 1.74532925, 12.0, 1.4,
     (0.0, -0.0458, 0.0), 0.02030626, (-0.00171735242, -0.02628192939, 0.00010778879)),
    ("middle_0", "", Z, -1.57079632, 0.0, 12.0, 1.4,
     (0.0777, 0.0016, -0.0285), 0.0588507, (0.03547435774, 0.00082788768, 0.0003808996)),
    ("middle_1", "middle_0", Z, -1.74532925, 0.0, 12.0, 1.4,
     (0.0458, 0.0, 0.0), 0.02030626, (0.02628192939, 0.00171735242, -0.00010778879)),
    ("index_0", "", Z, -1.57079632, 0.0, 12.0, 1.4,
     (0.0777, 0.0016, 0.0285), 0.0588507, (0.03547435774, 0.00082788768, 0.0003808996)),
    ("index_1", "index_0", Z, -1.74532925, 0.0, 12.0, 1.4,
     (0.0458, 0.0, 0.0), 0.02030626, (0.02628192939, 0.00171735242, -0.00010778879)),
)  # fmt: skip


def _place_on_side(left_m: Vector, side: str) -> Vector:
    """Return a point of the left hand, or its mirror image if `side` is right."""
    x, y, z = left_m
    return left_m if side == "left" else (x, _negate(y), z)


def _negate(number: float) -> float:
    return -number if number else 0.0  # not -0.0


def _add_vectors(one: Vector, other: Vector) -> Vector:
    return (one[0] + other[0], one[1] + other[1], one[2] + other[2])


def _make_joint(slot: int, side: str) -> Joint:
    """Return the joint in a row of the table, for the hand of this side."""
    (name, parent, axis, lower, upper, velocity, effort, origin, mass, com) = _ROWS[slot]
    if side == "right" and axis == Z:  # the axes of both hands have the same direction
        lower, upper = _negate(upper), _negate(lower)
    return Joint(
        index=slot,
        name=f"{side}_hand_{name}_joint",
        parent=f"{side}_hand_{parent}_link" if parent else f"{side}_wrist_yaw_link",
        axis=axis,
        lower_rad=lower,
        upper_rad=upper,
        velocity_rad_s=velocity,
        effort_nm=effort,
        origin_m=_place_on_side(origin if parent else _add_vectors(PALM_M, origin), side),
        mass_kg=mass,
        com_m=_place_on_side(com, side),
        part="finger",
    )


_URDF = "unitree_ros 0e3af09, robots/g1_description, g1_29dof_with_hand_rev_1_0 (BSD-3-Clause)"
_ORDERS = {
    "left": Evidence(
        Grade.REPORTED, "thumb, middle, index: xr_teleoperate 540f34f, hand_retargeting.py"
    ),
    "right": Evidence(
        Grade.CONTRADICTED,
        "thumb, middle, index by xr_teleoperate 540f34f, hand_retargeting.py; thumb, index, middle "
        "by the names in its robot_hand_unitree.py. Which of the two fingers moves is not certain; "
        "their limits and masses are equal",
    ),
}


def _make_hand(side: str) -> Hand:
    return Hand(
        name="dex3",
        side=side,
        joints=tuple(_make_joint(slot, side) for slot in range(len(_ROWS))),
        state_topic=TOPICS.format(side=side, message="state"),
        command_topic=TOPICS.format(side=side, message="cmd"),
        evidence=_ORDERS[side],
    )


DEX3_LEFT, DEX3_RIGHT = _make_hand("left"), _make_hand("right")
DEX3 = (DEX3_LEFT, DEX3_RIGHT)

DEX3_EVIDENCE = {
    "hands": Evidence(Grade.PUBLISHED, f"{_URDF}; topics: unitree_sdk2 33d5835, dex3_subscribe"),
    "hands_order": _ORDERS["right"],
    "hands_messages": Evidence(
        Grade.PUBLISHED,
        "HandCmd_, HandState_ and PressSensorState_ of unitree_sdk2_python 1e06cc6 and "
        "unitree_ros2 9f8c812; the mode byte: unitree_sdk2 33d5835, dex3_subscribe; its timeout of "
        "1 s: the manual's page dexterous_hand. Older declarations (unitree_sdk2 242ac13) have "
        "other fields behind the motors, and are not matched",
    ),
    "hands_gains": Evidence(
        Grade.PUBLISHED,
        "1.5 N.m/rad and 0.1 N.m.s/rad to grip, 0 and 0 to stop: unitree_sdk2 33d5835, "
        "dex3_subscribe",
    ),
    "hands_limits": Evidence(
        Grade.CONTRADICTED,
        "the thumb's second joint ends at 0.611 rad (the URDF of the G1), 0.724 (those of the hand "
        "and the G1-D) or 0.742 (an example, right hand only); the first turns with 3.14 or 6.857 "
        "rad/s. The smaller numbers are used",
    ),
}
"""The evidence that a family with these hands adds to its own."""


def rest_mass(hand: Hand) -> FixedMass:
    """Return the mass of a hand with its palm, all joints at 0, in the wrist-yaw link's frame."""
    wrist = f"{hand.side}_wrist_yaw_link"
    palm_com_m = _place_on_side(_add_vectors(PALM_M, PALM_COM_M), hand.side)
    origins: dict[str, Vector] = {wrist: ZERO}
    masses = [(PALM_MASS_KG, palm_com_m)]
    for joint in hand.joints:
        origins[joint.link] = _add_vectors(origins[joint.parent], joint.origin_m)
        masses.append((joint.mass_kg, _add_vectors(origins[joint.link], joint.com_m)))
    total_kg = sum(mass_kg for mass_kg, _ in masses)
    x, y, z = (sum(kg * com_m[axis] for kg, com_m in masses) / total_kg for axis in range(3))
    return FixedMass(wrist, total_kg, (x, y, z))
