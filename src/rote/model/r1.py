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
    left_and_right,
    make_joint,
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
    row = _ROWS[index]
    name, slot = row[:2]
    return make_joint(index, (name, *row[2:]), slot=slot)


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

ZERO_TORQUE, DAMP, LOCK_STAND = 0, 1, 4
STAND, AFTER_ARM_SDK, STAND_AIR = 811, 816, 830
_LIE_DOWN, _ARM_SDK_GAIT, _LOCOMOTION = 702, 833, 815
_UNTAUGHT_MODES = (
    (LOCK_STAND, "lock stand", "standing with locked joints, no balance"),
    (5, "keep", "holding its pose"),
    (6, "move to", "moving to a pose"),
    (7, "sit down", "sitting down"),
    *((dance, f"dance {dance}", "dancing or boxing") for dance in range(601, 609)),
    (701, "get up", "getting up from the ground"),
    (_LIE_DOWN, "lie down", "lying down"),
    (812, "walk 812", "walking, 24 joints"),
    (813, "walk 813", "walking with straight knees"),
    (814, "walk 814", "walking, 24 joints"),
    (_LOCOMOTION, "walk 815", "walking and running"),
    (
        AFTER_ARM_SDK,
        "after arm_sdk",
        "entered when the arms are streamed to; the robot cannot walk in it, "
        "and does not leave it by itself",
    ),
    (831, "arm_sdk (Air)", "walking with arms that follow arm_sdk"),
    (_ARM_SDK_GAIT, "arm_sdk 833", "walking with arms that follow arm_sdk"),
)
"""Modes in which joints hold, and in which an R1 is neither taught nor played: whether it keeps its
balance while its arms are soft is not known.
"""
_LIMP_MODES = (
    ModeFacts(ZERO_TORQUE, "zero torque", "no torque: every joint hangs free", False, False),
    ModeFacts(DAMP, "damp", "damped: joints yield slowly", False, False),
)
_ALL_MODES = (
    *_LIMP_MODES,
    *(ModeFacts(id_, name, label, False, True) for id_, name, label in _UNTAUGHT_MODES),
    ModeFacts(STAND, "stand", "balanced standing and walking", balanced=True, stiff=True),
    ModeFacts(STAND_AIR, "stand (Air)", "an Air's balanced standing", balanced=True, stiff=True),
)

# The modes to which each mode may change; a mode that is not listed may change to all.
_CHANGES: dict[int, tuple[int, ...]] = {
    ZERO_TORQUE: (DAMP, LOCK_STAND, 5),
    DAMP: (ZERO_TORQUE, LOCK_STAND, 5),
    5: (ZERO_TORQUE, DAMP, LOCK_STAND),
    STAND: (DAMP, LOCK_STAND, _LIE_DOWN),
    812: (DAMP,),
    813: (DAMP,),
    814: (DAMP,),
    _LOCOMOTION: (DAMP, LOCK_STAND, _LIE_DOWN, _ARM_SDK_GAIT),
    AFTER_ARM_SDK: (DAMP, LOCK_STAND),
    STAND_AIR: (DAMP, LOCK_STAND, _LIE_DOWN, _ARM_SDK_GAIT),
    831: (DAMP, LOCK_STAND),
    _ARM_SDK_GAIT: (DAMP, LOCK_STAND, _LOCOMOTION),
}
_IDS = tuple(mode.id for mode in _ALL_MODES)
_CHANGE_S, _DAMP_S = 1.0, 0.2
"""Durations of a change of mode, and of damping; guesses."""

R1_MODES = ModeTable(
    all=_ALL_MODES,
    standing=STAND,
    damp=DAMP,
    # The only change to a stand that a log of a real robot shows.
    to_stand={LOCK_STAND: (STAND,)},
    moves={
        (before, after): _DAMP_S if after == DAMP else _CHANGE_S
        for before in _IDS
        for after in _CHANGES.get(before, _IDS)
        if after != before
    },
    distinctive=frozenset({*range(STAND, AFTER_ARM_SDK + 1), STAND_AIR, 831, _ARM_SDK_GAIT}),
    silent=frozenset({5, 6, 7, 800, 804, 805, 813, 814}),
)

# ---- sticks -------------------------------------------------------------------------------------

# This project's own: the soles and the ends of hands and neck are estimated.
_NECK_M, _HAND_END_M = (0.0, 0.0, 0.25), (0.12, 0.0, 0.0)
_HEEL_M, _TOES_M = (-0.05, 0.0, -0.045), ((0.12, 0.03, -0.045), (0.12, -0.03, -0.045))


def _make_limb_sticks(side: str) -> list[tuple[str, Point, Point]]:
    """Return the sticks of one side: from the pelvis to the foot, and from the neck to the hand."""
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
        *_make_limb_sticks("left"),
        *_make_limb_sticks("right"),
    ),
    head=("head_yaw_link", ZERO),
    head_radius_m=0.08,
    trails=(("left_wrist_roll_link", _HAND_END_M), ("right_wrist_roll_link", _HAND_END_M)),
    floor=tuple((f"{side}_ankle_roll_link", end) for side in _SIDES for end in (_HEEL_M, *_TOES_M)),
)

# ---- builds -------------------------------------------------------------------------------------

_NO_STREAM = (
    "sources contradict each other on how to stream poses to an R1: the weight of the stream is "
    "mode_pr from 0 to 100 (unitree_sdk2), or the position of motor slot 31 from 0 to 1 "
    "(xr_teleoperate); the waist's slot 12 is its roll (unitree_sdk2) or its yaw "
    "(xr_teleoperate). A wrong choice moves another joint, or all joints at once"
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
_ABSENT_FROM_AIR = frozenset(
    joint.name for joint in R1_JOINTS if joint.part in {"waist", "wrist", "head"}
)
_AIR_MASSES = (
    FixedMass("pelvis_link", 6.988703, (0.030305, 0.001648, 0.202416)),
    FixedMass("left_elbow_link", 0.986213, (0.147283, -0.026821, -0.010613)),
    FixedMass("right_elbow_link", 0.986213, (0.147283, 0.026821, -0.010613)),
)
R1_26 = _make_build("r1", "R1 with 26 joints", frozenset(), ())
R1_AIR = _make_build("r1-air", "R1 Air with 20 joints", _ABSENT_FROM_AIR, _AIR_MASSES)

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
    answers_general_search=False,
    arm_state_s=3.0,
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
            Grade.SEEN,
            "0, 1, 4, 811, 816, and 811 to 4 to 811 to 1 to 0, on an R1 EDU (xr_teleoperate issue "
            "319)",
        ),
        "other modes": Evidence(
            Grade.REPORTED,
            "read from the firmware: unitree_ui 037aae4, docs/r1_action_list.md: the ids, the "
            "changes that each mode allows, damping from every mode, and the modes that are not "
            "reported",
        ),
        "services": Evidence(Grade.INFERRED, _LIKE_A_G1),
        "loco": Evidence(
            Grade.SEEN,
            "sport serves 7001 and 7101, with 1001 for a mode that it refuses or is in, and 1003 "
            "for one that it does not know; 7105 answers 127, 7002 and 7107 answer 3203 "
            "(xr_teleoperate issue 319, unitree_sdk2_python issue 168). Its 7108 is a motion and "
            "7106 belongs to arm (reported: unitree_ui 037aae4)",
        ),
        "taught": Evidence(Grade.INFERRED, "arms and the waist's yaw, as on a G1"),
        "signalling": Evidence(Grade.REPORTED, "unitree-webrtc-connect 2.2.0"),
        "stream": Evidence(
            Grade.CONTRADICTED,
            "weight in mode_pr, 0 to 100 (unitree_sdk2 21d0a3b, r1_pub.h), or at motor slot 31 "
            "(xr_teleoperate 18015ef); a mode_pr other than 0 and 1 leads from 811 to 816, "
            "where it cannot walk (unitree_sdk2_python issue 182); it acts only in 816, 831 and "
            "833 (unitree_ui 037aae4)",
        ),
        "rest": Evidence(Grade.CHOSEN, "this project, after a G1"),
        "figure": Evidence(Grade.CHOSEN, "this project; soles and ends of hands are estimated"),
    },
)
