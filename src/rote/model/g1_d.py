"""The G1-D, a G1's arms on a lift and wheels: joints and geometry, as frozen data.

Facts from Unitree's published description (g1_d.urdf, BSD-3-Clause) and its arm example.
Wheels and lift are not joints here, because they are not in the motor messages: a separate service,
`agv`, moves them. The description is of the lift at its lowest; it rises by up to 0.42 m.

Names are those of the motor slots. The description calls the waist's pitch `Yaw_Joint`, though it
turns about y, and the yaw above it `torso_Joint`.
"""

from dataclasses import replace

from rote.model.dex3 import DEX3, DEX3_EVIDENCE, rest_mass
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
    Point,
    Service,
    Y,
    Z,
    chain,
    left_and_right,
)
from rote.model.g1 import (
    G1_JOINTS,
    G1_REST_RAD,
    HAND_END_M,
    LEFT_ARM,
    RIGHT_ARM,
    make_arm_sticks,
)

__all__ = ["G1_D"]

_BASE = "AGV_link"
_WAIST = (
    # The pitch is below the yaw, unlike on a G1. Its origin includes the lift at its lowest.
    Joint(
        index=0,
        name="waist_pitch_joint",
        parent=_BASE,
        axis=Y,
        lower_rad=-0.04363,
        upper_rad=2.3562,
        velocity_rad_s=5.0,
        effort_nm=80.0,
        origin_m=(0.055725030, 0.0002165, 0.6295),
        mass_kg=1.144,
        com_m=(7.4e-05, -0.00062, 0.071221),
        slot=14,
        part="waist",
    ),
    Joint(
        index=1,
        name="waist_yaw_joint",
        parent="waist_pitch_link",
        axis=Z,
        lower_rad=-2.7053,
        upper_rad=2.7053,
        velocity_rad_s=5.0,
        effort_nm=30.0,
        origin_m=(-0.0023536, -4.8782e-05, 0.104008566),
        mass_kg=8.562,
        com_m=(0.002601, 0.000257, 0.153719),
        slot=12,
        link="torso_link",
        part="waist",
    ),
)
_ARMS = (*LEFT_ARM, *RIGHT_ARM)
G1_D_JOINTS: tuple[Joint, ...] = (
    *_WAIST,
    # The arms are those of a G1, with the same numbers.
    *(
        replace(G1_JOINTS[slot], index=index, slot=slot)
        for index, slot in enumerate(_ARMS, start=2)
    ),
)

_SIDES = ("left", "right")

# ---- sticks -------------------------------------------------------------------------------------

# This project's own; the corners of the base and the height of the floor are estimated.
_FLOOR_M = -0.1
_NECK_M, _CHIN_M, _HEAD_M = (0.0, 0.0, 0.30), (0.01, 0.0, 0.35), (0.01, 0.0, 0.42)
_BASE_CORNERS: tuple[Point, ...] = tuple(
    (_BASE, (x, y, _FLOOR_M)) for x, y in ((0.25, 0.2), (0.25, -0.2), (-0.25, -0.2), (-0.25, 0.2))
)


G1_D_FIGURE = Figure(
    sticks=(
        *chain("", *_BASE_CORNERS, _BASE_CORNERS[0]),
        *chain("", (_BASE, (0.0, 0.0, _FLOOR_M)), (_BASE, (0.0, 0.0, 0.55))),
        *chain("", (_BASE, (0.0, 0.0, 0.55)), ("waist_pitch_link", ZERO), ("torso_link", ZERO)),
        *chain("", ("torso_link", ZERO), ("torso_link", _NECK_M), ("torso_link", _CHIN_M)),
        *make_arm_sticks("left"),
        *make_arm_sticks("right"),
    ),
    head=("torso_link", _HEAD_M),
    head_radius_m=0.075,
    trails=(("left_wrist_yaw_link", HAND_END_M), ("right_wrist_yaw_link", HAND_END_M)),
    floor=_BASE_CORNERS,
)

# ---- the family ---------------------------------------------------------------------------------

G1_D_BUILD = Build(
    name="g1-d",
    family="g1-d",
    title="G1-D: a G1's waist and arms on a lift and wheels",
    joints=G1_D_JOINTS,
    taught=tuple(joint.name for joint in G1_D_JOINTS if joint.name != "waist_pitch_joint"),
    rest={G1_JOINTS[slot].name: G1_REST_RAD[slot] for slot in _ARMS},
    no_stream=(
        "no source shows how to stream poses to the arms of a G1-D: Unitree's example commands "
        "all motors with rt/lowcmd, and no example uses rt/arm_sdk. The weight of the stream, "
        "and which other program commands the motors, are unknown"
    ),
)

_URDF = "unitree_ros 2fc4f30, robots/g1_d_description (BSD-3-Clause)"
_EXAMPLE = "unitree_sdk2 383865d, g1d_arm_example.cpp"
_LIKE_A_G1 = "the phone app has the same screens for a G1 and a G1-D; no trace of a G1-D is known"

G1_D = Family(
    name="g1-d",
    title="Unitree G1-D, a G1 on wheels",
    joints=G1_D_JOINTS,
    builds=(G1_D_BUILD,),
    body=BodyFacts(
        base=_BASE,
        base_mass_kg=37.0,
        fixed=(
            # Wheels, the three stages of the lift and the part that carries the waist.
            FixedMass(_BASE, 1.5, (0.000222030, 0.202791, -0.026502)),
            FixedMass(_BASE, 1.5, (0.000228030, -0.202791, -0.026502)),
            FixedMass(_BASE, 3.3, (0.000212360, 0.000025, 0.527250)),
            FixedMass(_BASE, 3.3, (0.000719030, -0.000062, 0.753516)),
            FixedMass(_BASE, 3.4, (0.000021730, 0.000010, 0.356341)),
            FixedMass(_BASE, 1.889, (0.040769030, -0.003770, 0.615228)),
            # The sign on the chest, and the head.
            FixedMass("torso_link", 0.001, (0.0039635, 0.0, -0.054)),
            FixedMass("torso_link", 1.036, (0.0092305, 0.000299, 0.395869)),
            *map(rest_mass, DEX3),
        ),
        tips=tuple((f"{side}_wrist_yaw_link", HAND_END_M) for side in _SIDES),
        figure=G1_D_FIGURE,
    ),
    mirror=left_and_right(G1_D_JOINTS),
    hands=DEX3,
    services=(Service("arm"), Service("agv")),
    wires=("sim", "webrtc"),
    works=dict.fromkeys(("list", "teach", "play", "rename", "delete", "stop"), Grade.INFERRED),
    evidence={
        "joints": Evidence(
            Grade.PUBLISHED, f"{_URDF}; wheels and lift are no joints of the motor messages"
        ),
        "slots": Evidence(
            Grade.PUBLISHED,
            f"{_EXAMPLE}; which joint of the waist is which is inferred by its axis",
        ),
        "modes": Evidence(
            Grade.INFERRED, "none seen: it stands on wheels, and is taken to be always ready"
        ),
        "services": Evidence(Grade.INFERRED, f"{_LIKE_A_G1}; agv: unitree_sdk2"),
        "taught": Evidence(Grade.INFERRED, "arms and the waist's yaw, as on a G1"),
        "stream": Evidence(Grade.INFERRED, f"nothing is streamed: {_EXAMPLE} uses rt/lowcmd alone"),
        **DEX3_EVIDENCE,
        "rest": Evidence(Grade.CHOSEN, "this project, after a G1"),
        "figure": Evidence(Grade.CHOSEN, "this project; the base's corners are estimated"),
    },
)
