"""The R1 humanoid: joints, limits, geometry and what is known of its modes, as frozen data.

Facts from Unitree's published description of the R1 and the R1 Air (R1.urdf, R1_AIR.urdf,
BSD-3-Clause), rounded to a nanometre. Slots are those of unitree_sdk2's r1/defines.h; the family's
table leaves out the slots that no joint has, so an index is not a slot here.

Of nearly everything beyond that there are two readings (docs/robots.md). Nothing is streamed.
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
    Service,
    Vector,
    X,
    Y,
    Z,
    chain,
    joint_of,
    left_and_right,
)

__all__ = ["R1", "R1_26", "R1_AIR"]

# fmt: off
# name, motor slot, parent link, axis, lower rad, upper rad, rad/s, N.m,
#     origin in the parent, roll-pitch-yaw there, mass and centre of mass of the child link
_ROWS: tuple[
    tuple[str, int, str, Vector, float, float, float, float, Vector, Vector, float, Vector], ...
] = (
    ("left_hip_pitch_joint", 0, "pelvis_link", Y, -2.932153143, 2.548180708, 18.8, 60.0,
     (0.0325, 0.070467245, -0.090235068), (-0.436332313, 0.0, 0.0),
     0.935482, (-0.003907, 0.0415, -0.043716)),
    ("left_hip_roll_joint", 1, "left_hip_pitch_link", X, -1.047197551, 1.745329252, 18.8, 60.0,
     (0.0248, 0.045, -0.053), (0.436332313, 0.0, 0.0), 0.207609, (-0.008002, -0.00206, -0.032798)),
    ("left_hip_yaw_joint", 2, "left_hip_roll_link", Z, -2.7402, 2.7402, 18.8, 60.0,
     (-0.019450707, -0.0006, -0.0618), (0.0, 0.0, 0.0), 1.73967, (-0.010059, -0.004848, -0.093609)),
    ("left_knee_joint", 3, "left_hip_yaw_link", Y, -0.174532925, 2.42600766, 18.8, 60.0,
     (-0.02315, 0.01866, -0.15930073), (0.0, 0.0, 0.0), 2.26585, (-0.010632, -0.018101, -0.135947)),
    ("left_ankle_pitch_joint", 4, "left_knee_link", Y, -0.87266, 0.57596, 30.0, 50.0,
     (-0.016813889, -0.020581073, -0.309174756), (0.0, 0.0, 0.0),
     0.071231, (-0.000104, 0.0, -0.00772)),
    ("left_ankle_roll_joint", 5, "left_ankle_pitch_link", X, -0.2618, 0.2618, 30.0, 50.0,
     (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.473048, (0.029823, 0.0, -0.033123)),
    ("right_hip_pitch_joint", 6, "pelvis_link", Y, -2.932153143, 2.548180708, 18.8, 60.0,
     (0.0325, -0.070467245, -0.090235068), (0.436332313, 0.0, 0.0),
     0.935482, (-0.003907, -0.0415, -0.043716)),
    ("right_hip_roll_joint", 7, "right_hip_pitch_link", X, -1.745329252, 1.047197551, 18.8, 60.0,
     (0.0248, -0.045, -0.053), (-0.436332313, 0.0, 0.0), 0.207609, (-0.008002, 0.00206, -0.032798)),
    ("right_hip_yaw_joint", 8, "right_hip_roll_link", Z, -2.7402, 2.7402, 18.8, 60.0,
     (-0.019450707, 0.0006, -0.0618), (0.0, 0.0, 0.0), 1.73967, (-0.010059, 0.004848, -0.093609)),
    ("right_knee_joint", 9, "right_hip_yaw_link", Y, -0.17453, 2.42600766, 18.8, 60.0,
     (-0.02315, -0.01866, -0.15930073), (0.0, 0.0, 0.0), 2.26585, (-0.010632, 0.018101, -0.135947)),
    ("right_ankle_pitch_joint", 10, "right_knee_link", Y, -0.87266, 0.57596, 30.0, 50.0,
     (-0.016813889, 0.020581073, -0.309174756), (0.0, 0.0, 0.0),
     0.071231, (-0.000104, 0.0, -0.00772)),
    ("right_ankle_roll_joint", 11, "right_ankle_pitch_link", X,
     -0.261799388, 0.261799388, 30.0, 50.0,
     (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.473048, (0.029823, 0.0, -0.033123)),
    ("waist_roll_joint", 12, "pelvis_link", X, -0.5236, 0.5236, 18.8, 60.0,
     (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.920736, (0.030601, 0.0, 0.004788)),
    ("waist_yaw_joint", 13, "waist_roll_link", Z, -2.618, 2.618, 18.8, 60.0,
     (0.0325, 0.0, 0.049), (0.0, 0.0, 0.0), 6.024198, (-0.000648, -5.2e-05, 0.144497)),
    ("left_shoulder_pitch_joint", 15, "waist_yaw_link", Y, -3.1416, 2.0944, 18.8, 60.0,
     (0.0, 0.085688, 0.19749), (0.26187, 0.0, 0.0),
     0.83794992, (0.00294386, 0.04476868, -0.02286868)),
    ("left_shoulder_roll_joint", 16, "left_shoulder_pitch_link", X, -0.22689, 2.4784, 18.8, 60.0,
     (0.03445, 0.047132, -0.025693), (-0.26187, 0.0, 0.0),
     0.740212, (-0.037828, 0.003967, -0.066496)),
    ("left_shoulder_yaw_joint", 17, "left_shoulder_roll_link", Z, -1.9199, 1.9199, 33.4, 33.0,
     (-0.03445, 0.0043, -0.10835), (0.0, 0.0, 0.0), 0.738441, (0.013143, -0.004355, -0.072948)),
    ("left_elbow_joint", 18, "left_shoulder_yaw_link", Y, -0.97564, 2.1852, 33.4, 33.0,
     (0.016191, 0.026461, -0.082858), (0.0, 0.0, 0.0), 0.759419, (0.072371, -0.024612, -0.011566)),
    ("left_wrist_roll_joint", 19, "left_elbow_link", X, -1.9199, 1.9199, 33.4, 33.0,
     (0.11218, -0.03002, -0.011702), (0.0, 0.0, 0.0), 0.324767, (0.068045, -0.001688, 0.001392)),
    ("right_shoulder_pitch_joint", 22, "waist_yaw_link", Y, -3.1416, 2.0944, 18.8, 60.0,
     (0.0, -0.085688, 0.19749), (-0.26187, 0.0, 0.0),
     0.83794992, (0.00294386, -0.04476868, -0.02286868)),
    ("right_shoulder_roll_joint", 23, "right_shoulder_pitch_link", X, -2.47849, 0.2268, 18.8, 60.0,
     (0.03445, -0.047132, -0.025693), (0.26187, 0.0, 0.0),
     0.740212, (-0.037828, -0.003967, -0.066496)),
    ("right_shoulder_yaw_joint", 24, "right_shoulder_roll_link", Z, -1.9199, 1.9199, 33.4, 33.0,
     (-0.03445, -0.0043, -0.10835), (0.0, 0.0, 0.0), 0.738441, (0.013143, 0.004355, -0.072948)),
    ("right_elbow_joint", 25, "right_shoulder_yaw_link", Y, -0.97564, 2.1852, 33.4, 33.0,
     (0.016191, -0.026461, -0.082858), (0.0, 0.0, 0.0), 0.759419, (0.072371, 0.024612, -0.011566)),
    ("right_wrist_roll_joint", 26, "right_elbow_link", X, -1.9199, 1.9199, 33.4, 33.0,
     (0.11218, 0.03002, -0.011702), (0.0, 0.0, 0.0), 0.324767, (0.068045, 0.001688, 0.001392)),
    ("head_pitch_joint", 29, "waist_yaw_link", Y, -0.62832, 0.62832, 33.4, 33.0,
     (-0.006, 0.03155, 0.255), (0.0, 0.0, 0.0), 0.39234316, (-0.00059489, -0.03725763, 0.05301107)),
    ("head_yaw_joint", 30, "head_pitch_link", Z, -2.0071, 2.0071, 33.4, 33.0,
     (0.0010126, -0.03155, 0.1165), (0.0, 0.0, 0.0),
     0.92216186, (0.01528363, 0.00011624, -0.00435893)),
)
# fmt: on


def _make_joint(index: int) -> Joint:
    name, slot, *_ = row = _ROWS[index]
    return joint_of(index, (name, *row[2:]), slot=slot)


R1_JOINTS: tuple[Joint, ...] = tuple(_make_joint(index) for index in range(len(_ROWS)))

_SIDES = ("left", "right")
_TORSO = "waist_yaw_link"
_ARM_PARTS = ("arm", "wrist")
_HAND_COM_M: dict[str, Vector] = {
    "left": (0.068045, -0.001688, 0.001392),
    "right": (0.068045, 0.001688, 0.001392),
}
"""The hand is part of the wrist-roll link; this is that link's centre of mass."""

_LEG_REST_RAD = {"hip_pitch": -0.1, "knee": 0.3, "ankle_pitch": -0.2}
_ARM_REST_RAD = {"shoulder_pitch": 0.2, "elbow": 1.0}
_REST = {
    **{
        f"{side}_{joint}_joint": rest
        for side in _SIDES
        for joint, rest in (_LEG_REST_RAD | _ARM_REST_RAD).items()
    },
    "left_shoulder_roll_joint": 0.2,
    "right_shoulder_roll_joint": -0.2,
}
"""Standing like a G1."""

# ---- modes --------------------------------------------------------------------------------------

STAND, AFTER_ARM_SDK, STAND_AIR = 811, 816, 830
R1_MODES = ModeTable(
    all=(
        ModeFacts(STAND, "stand", "balanced standing and walking", balanced=True, stiff=True),
        # It is not known whether it keeps its balance there, so it is neither taught nor played.
        ModeFacts(
            AFTER_ARM_SDK,
            "after arm_sdk",
            "reached by streaming to the arms; it cannot walk, and does not come back by itself",
            balanced=False,
            stiff=True,
        ),
        ModeFacts(
            STAND_AIR, "stand (Air)", "an Air's balanced standing", balanced=True, stiff=True
        ),
    ),
    standing=STAND,
    distinctive=frozenset({STAND, AFTER_ARM_SDK, STAND_AIR}),
)

# ---- sticks -------------------------------------------------------------------------------------

# This project's own: the soles and the ends of hands and neck are estimated.
_NECK_M, _HAND_END_M = (0.0, 0.0, 0.25), (0.12, 0.0, 0.0)
_HEEL_M, _TOES_M = (-0.05, 0.0, -0.045), ((0.12, 0.03, -0.045), (0.12, -0.03, -0.045))


def _limb_sticks(side: str) -> list[tuple[str, Point, Point]]:
    """Return the sticks of one side: leg and foot, and from the neck to the hand."""
    foot, hand = f"{side}_ankle_roll_link", f"{side}_wrist_roll_link"
    leg: list[Point] = [(f"{side}_{link}_link", ZERO) for link in ("hip_roll", "knee")]
    sole: list[Point] = [(foot, corner) for corner in (_HEEL_M, *_TOES_M, _HEEL_M)]
    arm: list[Point] = [(f"{side}_{link}_link", ZERO) for link in ("shoulder_roll", "elbow")]
    return [
        *chain(side, ("pelvis_link", ZERO), *leg, (foot, ZERO), *sole),
        *chain(side, (_TORSO, _NECK_M), *arm, (hand, ZERO), (hand, _HAND_END_M)),
    ]


R1_FIGURE = Figure(
    sticks=(
        *chain(
            "", ("pelvis_link", ZERO), (_TORSO, ZERO), (_TORSO, _NECK_M), ("head_yaw_link", ZERO)
        ),
        *_limb_sticks("left"),
        *_limb_sticks("right"),
    ),
    head=("head_yaw_link", ZERO),
    head_radius_m=0.08,
    trails=(("left_wrist_roll_link", _HAND_END_M), ("right_wrist_roll_link", _HAND_END_M)),
    floor=tuple((f"{side}_ankle_roll_link", end) for side in _SIDES for end in (_HEEL_M, *_TOES_M)),
)

# ---- builds -------------------------------------------------------------------------------------

_NO_STREAM = (
    "sources contradict each other on how poses are streamed to an R1: the weight of the stream is "
    "mode_pr from 0 to 100 (unitree_sdk2), or the position of motor slot 31 from 0 to 1 "
    "(xr_teleoperate); the waist's slot 12 is its roll (unitree_sdk2) or its yaw (xr_teleoperate). "
    "The wrong one of each moves another joint, or all at once"
)


def _make_build(
    name: str, title: str, absent: frozenset[str], fixed: tuple[FixedMass, ...]
) -> Build:
    joints = tuple(joint for joint in R1_JOINTS if joint.name not in absent)
    return Build(
        name=name,
        family="r1",
        title=title,
        joints=joints,
        taught=tuple(
            joint.name
            for joint in joints
            if joint.part in _ARM_PARTS or joint.name == "waist_yaw_joint"
        ),
        rest=_REST,
        no_stream=_NO_STREAM,
        fixed=fixed,
    )


# An Air is one rigid piece from the pelvis to the head, and from the elbow to the hand.
_NOT_OF_AN_AIR = frozenset(
    joint.name for joint in R1_JOINTS if joint.part in {"waist", "wrist", "head"}
)
_AIR_MASSES = (
    FixedMass("pelvis_link", 6.988703, (0.030305, 0.001648, 0.202416)),
    FixedMass("left_elbow_link", 0.986213, (0.147283, -0.026821, -0.010613)),
    FixedMass("right_elbow_link", 0.986213, (0.147283, 0.026821, -0.010613)),
)
R1_26 = _make_build("r1", "R1 with 26 joints", frozenset(), ())
R1_AIR = _make_build("r1-air", "R1 Air with 20 joints", _NOT_OF_AN_AIR, _AIR_MASSES)

_URDF = "unitree_ros 8ab3359 r1_description, 3d8d582 r1_air_description (BSD-3-Clause)"
_LIKE_A_G1 = "the phone app has the same screens for a G1 and an R1; no trace of an R1 is known"

R1 = Family(
    name="r1",
    title="Unitree R1 humanoid",
    joints=R1_JOINTS,
    builds=(R1_26, R1_AIR),
    body=BodyFacts(
        base="pelvis_link",
        base_mass_kg=2.24682,
        base_com_m=(0.026921, 0.000184, -0.070405),
        # The sensor in the pelvis; of each leg the motors and rods that move the ankle.
        fixed=(
            FixedMass("pelvis_link", 0.00319, (0.074214, 0.000594, -0.074345)),
            FixedMass("left_knee_link", 0.108916, (0.014828, -0.02058, -0.131565)),
            FixedMass("left_ankle_roll_link", 0.00864, (0.021, 0.0, -0.0094)),
            FixedMass("right_knee_link", 0.108916, (0.014828, 0.02058, -0.131565)),
            FixedMass("right_ankle_roll_link", 0.00864, (0.021, 0.0, -0.0094)),
        ),
        tips=tuple((f"{side}_wrist_roll_link", _HAND_COM_M[side]) for side in _SIDES),
        figure=R1_FIGURE,
    ),
    mirror=left_and_right(R1_JOINTS),
    modes=R1_MODES,
    services=(Service("arm"), Service("sport", older_name="loco")),
    wires=("sim", "webrtc"),
    serials=("E",),
    signalling=3,
    answers_everybody=False,
    works=dict.fromkeys(("list", "teach", "play", "rename", "delete", "stop"), Grade.INFERRED),
    evidence={
        "joints": Evidence(Grade.PUBLISHED, _URDF),
        "slots": Evidence(
            Grade.PUBLISHED,
            "unitree_sdk2 21d0a3b, r1/defines.h; those of an Air are inferred from it",
        ),
        "waist": Evidence(
            Grade.CONTRADICTED,
            "slot 12 is the waist's roll (unitree_sdk2 21d0a3b), or its yaw (xr_teleoperate "
            "18015ef)",
        ),
        "modes": Evidence(
            Grade.REPORTED,
            "unitree-webrtc-connect 2.2.0 (811, 830); unitree_sdk2_python issue 182 (816). How to "
            "reach another mode, or to damp, is not known",
        ),
        "services": Evidence(Grade.INFERRED, _LIKE_A_G1),
        "loco": Evidence(
            Grade.CONTRADICTED,
            "of sport it serves 7001, 7101, 7105 and 7108 (unitree-webrtc-connect 2.2.0), or 7106 "
            "for 7108 (phanthymotus-driver issue 27); 7105 always answers 127 (xr_teleoperate "
            "issue 319, unitree_sdk2_python issue 168)",
        ),
        "taught": Evidence(Grade.INFERRED, "arms and the waist's yaw, as on a G1"),
        "signalling": Evidence(Grade.REPORTED, "unitree-webrtc-connect 2.2.0"),
        "stream": Evidence(
            Grade.CONTRADICTED,
            "weight in mode_pr, 0 to 100 (unitree_sdk2 21d0a3b, r1_pub.h), or at motor slot 31 "
            "(xr_teleoperate 18015ef); afterwards it cannot walk (unitree_sdk2_python issue 182)",
        ),
        "rest": Evidence(Grade.CHOSEN, "this project, after a G1"),
        "figure": Evidence(Grade.CHOSEN, "this project; soles and ends of hands are estimated"),
    },
)
