"""The G1 humanoid: joints, limits, geometry, modes and builds, as frozen data.

Facts from Unitree's published description of the G1 (g1_29dof_rev_1_0, BSD-3-Clause);
the position limits equal those printed on its developer page. The order is that of the robot's own
motor messages, so on a G1 a joint's index is its motor slot as well.
"""

import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import overload

from rote.model.dex3 import DEX3, DEX3_EVIDENCE
from rote.model.family import (
    ZERO,
    BodyFacts,
    Build,
    Evidence,
    Family,
    Figure,
    FixedMass,
    Foot,
    Grade,
    Hull,
    Joint,
    JointRow,
    ModeFacts,
    ModeTable,
    Point,
    Service,
    StreamFacts,
    Vector,
    X,
    Y,
    Z,
    chain,
    left_and_right,
    make_joint,
)
from rote.named_enum import NamedIntEnum

__all__ = ["G1", "G1_29", "G1_27", "G1_23", "G1_ARMS", "Mode"]

# fmt: off
_G1_ROWS: tuple[JointRow, ...] = (
    ("left_hip_pitch_joint", "pelvis", Y, -2.5307, 2.8798, 32.0, 88.0,
     (0.0, 0.064452, -0.1027), (0.0, 0.0, 0.0), 1.35, (0.002741, 0.047791, -0.02606)),
    ("left_hip_roll_joint", "left_hip_pitch_link", X, -0.5236, 2.9671, 20.0, 139.0,
     (0.0, 0.052, -0.030465), (0.0, -0.1749, 0.0), 1.52, (0.029812, -0.001045, -0.087934)),
    ("left_hip_yaw_joint", "left_hip_roll_link", Z, -2.7576, 2.7576, 32.0, 88.0,
     (0.025001, 0.0, -0.12412), (0.0, 0.0, 0.0), 1.702, (-0.057709, -0.010981, -0.15078)),
    ("left_knee_joint", "left_hip_yaw_link", Y, -0.087267, 2.8798, 20.0, 139.0,
     (-0.078273, 0.0021489, -0.17734), (0.0, 0.1749, 0.0), 1.932, (0.005457, 0.003964, -0.12074)),
    ("left_ankle_pitch_joint", "left_knee_link", Y, -0.87267, 0.5236, 30.0, 35.0,
     (0.0, -9.4445e-05, -0.30001), (0.0, 0.0, 0.0), 0.074, (-0.007269, 0.0, 0.011137)),
    ("left_ankle_roll_joint", "left_ankle_pitch_link", X, -0.2618, 0.2618, 30.0, 35.0,
     (0.0, 0.0, -0.017558), (0.0, 0.0, 0.0), 0.608, (0.026505, 0.0, -0.016425)),
    ("right_hip_pitch_joint", "pelvis", Y, -2.5307, 2.8798, 32.0, 88.0,
     (0.0, -0.064452, -0.1027), (0.0, 0.0, 0.0), 1.35, (0.002741, -0.047791, -0.02606)),
    ("right_hip_roll_joint", "right_hip_pitch_link", X, -2.9671, 0.5236, 20.0, 139.0,
     (0.0, -0.052, -0.030465), (0.0, -0.1749, 0.0), 1.52, (0.029812, 0.001045, -0.087934)),
    ("right_hip_yaw_joint", "right_hip_roll_link", Z, -2.7576, 2.7576, 32.0, 88.0,
     (0.025001, 0.0, -0.12412), (0.0, 0.0, 0.0), 1.702, (-0.057709, 0.010981, -0.15078)),
    ("right_knee_joint", "right_hip_yaw_link", Y, -0.087267, 2.8798, 20.0, 139.0,
     (-0.078273, -0.0021489, -0.17734), (0.0, 0.1749, 0.0), 1.932, (0.005457, -0.003964, -0.12074)),
    ("right_ankle_pitch_joint", "right_knee_link", Y, -0.87267, 0.5236, 30.0, 35.0,
     (0.0, 9.4445e-05, -0.30001), (0.0, 0.0, 0.0), 0.074, (-0.007269, 0.0, 0.011137)),
    ("right_ankle_roll_joint", "right_ankle_pitch_link", X, -0.2618, 0.2618, 30.0, 35.0,
     (0.0, 0.0, -0.017558), (0.0, 0.0, 0.0), 0.608, (0.026505, 0.0, -0.016425)),
    ("waist_yaw_joint", "pelvis", Z, -2.618, 2.618, 32.0, 88.0,
     (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 0.214, (0.003494, 0.000233, 0.018034)),
    ("waist_roll_joint", "waist_yaw_link", X, -0.52, 0.52, 30.0, 35.0,
     (-0.0039635, 0.0, 0.044), (0.0, 0.0, 0.0), 0.086, (0.0, 2.3e-05, 0.0)),
    ("waist_pitch_joint", "waist_roll_link", Y, -0.52, 0.52, 30.0, 35.0,
     (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), 6.78, (0.000931, 0.000346, 0.15082)),
    ("left_shoulder_pitch_joint", "torso_link", Y, -3.0892, 2.6704, 37.0, 25.0,
     (0.0039563, 0.10022, 0.24778), (0.27931, 5.4949e-05, -0.00019159),
     0.718, (0.0, 0.035892, -0.011628)),
    ("left_shoulder_roll_joint", "left_shoulder_pitch_link", X, -1.5882, 2.2515, 37.0, 25.0,
     (0.0, 0.038, -0.013831), (-0.27925, 0.0, 0.0), 0.643, (-0.000227, 0.00727, -0.063243)),
    ("left_shoulder_yaw_joint", "left_shoulder_roll_link", Z, -2.618, 2.618, 37.0, 25.0,
     (0.0, 0.00624, -0.1032), (0.0, 0.0, 0.0), 0.734, (0.010773, -0.002949, -0.072009)),
    ("left_elbow_joint", "left_shoulder_yaw_link", Y, -1.0472, 2.0944, 37.0, 25.0,
     (0.015783, 0.0, -0.080518), (0.0, 0.0, 0.0), 0.6, (0.064956, 0.004454, -0.010062)),
    ("left_wrist_roll_joint", "left_elbow_link", X, -1.972222054, 1.972222054, 37.0, 25.0,
     (0.1, 0.00188791, -0.01), (0.0, 0.0, 0.0),
     0.08544498, (0.01713944778, 0.00053759094, 4.8864e-07)),
    ("left_wrist_pitch_joint", "left_wrist_roll_link", Y, -1.614429558, 1.614429558, 22.0, 5.0,
     (0.038, 0.0, 0.0), (0.0, 0.0, 0.0),
     0.48404956, (0.02299989837, -0.00111685314, -0.00111658096)),
    ("left_wrist_yaw_joint", "left_wrist_pitch_link", Z, -1.614429558, 1.614429558, 22.0, 5.0,
     (0.046, 0.0, 0.0), (0.0, 0.0, 0.0),
     0.08457647, (0.02200381568, 0.00049485096, 0.00053861123)),
    ("right_shoulder_pitch_joint", "torso_link", Y, -3.0892, 2.6704, 37.0, 25.0,
     (0.0039563, -0.10021, 0.24778), (-0.27931, 5.4949e-05, 0.00019159),
     0.718, (0.0, -0.035892, -0.011628)),
    ("right_shoulder_roll_joint", "right_shoulder_pitch_link", X, -2.2515, 1.5882, 37.0, 25.0,
     (0.0, -0.038, -0.013831), (0.27925, 0.0, 0.0), 0.643, (-0.000227, -0.00727, -0.063243)),
    ("right_shoulder_yaw_joint", "right_shoulder_roll_link", Z, -2.618, 2.618, 37.0, 25.0,
     (0.0, -0.00624, -0.1032), (0.0, 0.0, 0.0), 0.734, (0.010773, 0.002949, -0.072009)),
    ("right_elbow_joint", "right_shoulder_yaw_link", Y, -1.0472, 2.0944, 37.0, 25.0,
     (0.015783, 0.0, -0.080518), (0.0, 0.0, 0.0), 0.6, (0.064956, -0.004454, -0.010062)),
    ("right_wrist_roll_joint", "right_elbow_link", X, -1.972222054, 1.972222054, 37.0, 25.0,
     (0.1, -0.00188791, -0.01), (0.0, 0.0, 0.0),
     0.08544498, (0.01713944778, -0.00053759094, 4.8864e-07)),
    ("right_wrist_pitch_joint", "right_wrist_roll_link", Y, -1.614429558, 1.614429558, 22.0, 5.0,
     (0.038, 0.0, 0.0), (0.0, 0.0, 0.0),
     0.48404956, (0.02299989837, 0.00111685314, -0.00111658096)),
    ("right_wrist_yaw_joint", "right_wrist_pitch_link", Z, -1.614429558, 1.614429558, 22.0, 5.0,
     (0.046, 0.0, 0.0), (0.0, 0.0, 0.0),
     0.08457647, (0.02200381568, -0.00049485096, 0.00053861123)),
)
# fmt: on


def _make_joint(index: int) -> Joint:
    row = _G1_ROWS[index]
    link = "torso_link" if row[0] == "waist_pitch_joint" else ""
    return make_joint(index, row, link=link)


G1_JOINTS: tuple[Joint, ...] = tuple(_make_joint(index) for index in range(len(_G1_ROWS)))

# Joints, by their index.
LEGS = tuple(range(12))
WAIST_YAW = 12
LEFT_ARM = tuple(range(15, 22))
RIGHT_ARM = tuple(range(22, 29))
TAUGHT_JOINTS = (WAIST_YAW, *LEFT_ARM, *RIGHT_ARM)
"""The joints that are taught and played: both arms and the waist's yaw. The balance controller
moves the legs, and of the waist a real G1 records only the yaw.
"""

HAND_MASS_KG = 0.17
HAND_COM_M: Vector = (0.0951, 0.0, 0.0022)
"""The rubber hand's centre of mass in the frame of the wrist-yaw link."""
G1_REST_RAD: tuple[float, ...] = (
    -0.1, 0.0, 0.0, 0.3, -0.2, 0.0,
    -0.1, 0.0, 0.0, 0.3, -0.2, 0.0,
    0.0, 0.0, 0.0,
    0.2, 0.2, 0.0, 1.0, 0.0, 0.0, 0.0,
    0.2, -0.2, 0.0, 1.0, 0.0, 0.0, 0.0,
)  # fmt: skip
"""Standing with slightly bent knees and hanging arms; in the order of `G1_JOINTS`."""

PELVIS_MASS_KG = 3.814
PELVIS_COM_M: Vector = (0.0, 0.0, -0.07603)
HEAD_MASS_KG = 1.036
HEAD_COM_M: Vector = (0.0092305, 0.000299, 0.405869)
"""The head's centre of mass in the frame of the torso link, to which it is fixed; the pelvis is the
root.
"""

FOOT_CORNERS_M: tuple[Vector, ...] = (
    (-0.05, 0.025, -0.035), (-0.05, -0.025, -0.035), (0.12, 0.03, -0.035), (0.12, -0.03, -0.035),
)  # fmt: skip
"""The corners of a sole in the frame of the ankle-roll link; the same left and right."""


# ---- modes --------------------------------------------------------------------------------------


class Mode(NamedIntEnum):
    """The states of a G1's motion controller; the values are its own ids."""

    ZERO_TORQUE = 0
    DAMP = 1
    LOCK_STAND = 4
    WALK = 500
    WALK_WAIST = 501
    RUN = 801
    RUN_29 = 802


def _make_mode_facts(
    mode: Mode, label: str, balanced: bool, stiff: bool, buttons: str
) -> ModeFacts:
    name = mode.name.lower().replace("_", " ")
    return ModeFacts(mode.value, name, label, balanced, stiff, buttons)


MODES: dict[Mode, ModeFacts] = {
    Mode(facts.id): facts
    for facts in (
        _make_mode_facts(
            Mode.ZERO_TORQUE, "no torque: every joint hangs free", False, False, "after power-on"
        ),
        _make_mode_facts(Mode.DAMP, "damped: joints yield slowly", False, False, "L2+B"),
        _make_mode_facts(
            Mode.LOCK_STAND, "standing with locked joints, no balance", False, True, "L2+UP"
        ),
        _make_mode_facts(Mode.WALK, "balanced standing and walking", True, True, "R1+X"),
        _make_mode_facts(Mode.WALK_WAIST, "balanced, with a free waist", True, True, "R1+Y"),
        _make_mode_facts(Mode.RUN, "running, 23 joints", True, True, "R2+A"),
        _make_mode_facts(Mode.RUN_29, "running, 29 joints", True, True, "R2+A"),
    )
}
WALKING = (Mode.WALK, Mode.WALK_WAIST)
RUNNING = (Mode.RUN, Mode.RUN_29)
"""Running, for robots with 23 and with 29 joints; a robot knows only the one of its build."""

# All allowed changes of mode and their durations in s; the durations are this project's guess.
MOVES: dict[tuple[Mode, Mode], float] = {
    (Mode.ZERO_TORQUE, Mode.DAMP): 0.2,
    (Mode.DAMP, Mode.ZERO_TORQUE): 0.2,
    (Mode.DAMP, Mode.LOCK_STAND): 2.0,
    (Mode.LOCK_STAND, Mode.DAMP): 0.2,
    (Mode.LOCK_STAND, Mode.WALK): 1.0,
    (Mode.LOCK_STAND, Mode.WALK_WAIST): 1.0,
    (Mode.WALK, Mode.LOCK_STAND): 1.0,
    (Mode.WALK, Mode.WALK_WAIST): 0.5,
    (Mode.WALK, Mode.DAMP): 0.2,
    (Mode.WALK_WAIST, Mode.LOCK_STAND): 1.0,
    (Mode.WALK_WAIST, Mode.WALK): 0.5,
    (Mode.WALK_WAIST, Mode.DAMP): 0.2,
    **{(Mode.LOCK_STAND, run): 1.0 for run in RUNNING},
    **{(walk, run): 0.5 for walk in WALKING for run in RUNNING},
    **{(run, walk): 0.5 for walk in WALKING for run in RUNNING},
    **{(run, Mode.DAMP): 0.2 for run in RUNNING},
}


def _make_modes(*walks: Mode) -> ModeTable:
    """Return the modes of a build that stands in the first of `walks`, or else in another of them.

    Mode 500, by R1+X on the remote, is for a waist of one joint. A G1 whose waist has three joints
    stands in mode 501; its newer software accepts a request for 500 but does not enter it.
    """
    return ModeTable(
        all=tuple(MODES.values()),
        standing=walks[0],
        damp=Mode.DAMP,
        moves={(before.value, after.value): seconds for (before, after), seconds in MOVES.items()},
        to_stand={
            Mode.ZERO_TORQUE: (Mode.DAMP,),
            Mode.DAMP: (Mode.LOCK_STAND,),
            Mode.LOCK_STAND: walks,
        },
    )


G1_MODES = _make_modes(Mode.WALK, Mode.WALK_WAIST)
G1_29_MODES = _make_modes(Mode.WALK_WAIST, Mode.WALK)

# ---- shapes and sticks --------------------------------------------------------------------------


Corners = Sequence[tuple[str, Sequence[tuple[int, int, int]]]]
"""Convex hulls: for each its link, and its corners in the link's frame in tenths of a mm."""
_SHAPES_FILE = Path(__file__).with_name("g1_shapes.json")


def make_hulls(pieces: Corners) -> tuple[Hull, ...]:
    """Return the hulls with these corners, and the mirror images of those on the left."""
    hulls = []
    for link, corners in pieces:
        hulls.append(Hull(link, tuple((1e-4 * x, 1e-4 * y, 1e-4 * z) for x, y, z in corners)))
    mirrored = [
        Hull(
            hull.link.replace("left_", "right_", 1),
            tuple((x, -y, z) for x, y, z in hull.corners_m),
        )
        for hull in hulls
        if hull.link.startswith("left_")
    ]
    return (*hulls, *mirrored)


class G1Shapes(Sequence[Hull]):
    """The hulls of a G1, read on first use because few commands check contact."""

    @cached_property
    def _hulls(self) -> tuple[Hull, ...]:
        return make_hulls(json.loads(_SHAPES_FILE.read_text(encoding="utf-8"))["pieces"])

    def __len__(self) -> int:
        return len(self._hulls)

    @overload
    def __getitem__(self, index: int) -> Hull: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Hull, ...]: ...
    def __getitem__(self, index: int | slice) -> Hull | tuple[Hull, ...]:
        return self._hulls[index]


G1_SHAPES = G1Shapes()

_NECK_M, _CHIN_M, _HEAD_M = (0.0, 0.0, 0.30), (0.01, 0.0, 0.35), (0.01, 0.0, 0.42)
HAND_END_M: Vector = (0.13, 0.0, 0.0)
_HEEL_M, _TOES_M = (-0.05, 0.0, -0.03), ((0.12, 0.03, -0.03), (0.12, -0.03, -0.03))


def _make_limb_sticks(side: str) -> list[tuple[str, Point, Point]]:
    """Return the sticks of one side: from the pelvis to the foot, and from the neck to the hand."""
    foot = f"{side}_ankle_roll_link"
    leg: list[Point] = [(f"{side}_{link}_link", ZERO) for link in ("hip_roll", "knee")]
    sole: list[Point] = [(foot, corner) for corner in (_HEEL_M, *_TOES_M, _HEEL_M)]
    return [*chain(side, ("pelvis", ZERO), *leg, (foot, ZERO), *sole), *make_arm_sticks(side)]


def make_arm_sticks(side: str) -> list[tuple[str, Point, Point]]:
    """Return the sticks from the neck to the hand of one side."""
    arm: list[Point] = [
        (f"{side}_{link}_link", ZERO) for link in ("shoulder_roll", "elbow", "wrist_pitch")
    ]
    return chain(side, ("torso_link", _NECK_M), *arm, (f"{side}_wrist_yaw_link", HAND_END_M))


_SIDES = ("left", "right")
_FOOT_LINKS = tuple(f"{side}_ankle_roll_link" for side in _SIDES)
G1_FIGURE = Figure(
    sticks=(
        *chain("", ("pelvis", ZERO), ("torso_link", _NECK_M), ("torso_link", _CHIN_M)),
        *_make_limb_sticks("left"),
        *_make_limb_sticks("right"),
    ),
    head=("torso_link", _HEAD_M),
    head_radius_m=0.075,
    trails=(("left_wrist_yaw_link", HAND_END_M), ("right_wrist_yaw_link", HAND_END_M)),
    floor=tuple((link, corner) for link in _FOOT_LINKS for corner in FOOT_CORNERS_M),
)

# ---- builds -------------------------------------------------------------------------------------

# Smaller builds keep the slots of the joints they have; these other slots stay empty: a G1 with
# 23 joints has slots 0 to 12, 15 to 19 and 22 to 26.
_WAIST_SLOTS = frozenset({13, 14})  # roll and pitch
_WRIST_SLOTS = frozenset({20, 21, 27, 28})  # pitch and yaw
_ARMS = frozenset((*LEFT_ARM, *RIGHT_ARM))
_REST = {joint.name: rest for joint, rest in zip(G1_JOINTS, G1_REST_RAD, strict=True)}
_STREAM = StreamFacts(
    topic="rt/arm_sdk",
    weight_slot=29,
    stiffness_nm_rad=60.0,
    damping_nm_s_rad=1.5,
    rival_service="g1_arm_example",
)
"""How waist and arms follow a stream; the gains are those of Unitree's examples."""
_UPPER_BODY = range(12, 29)
"""The motors that `rt/arm_sdk` moves: waist and arms, as far as a build has them."""

# Stronger motors of some values of mode_machine: maximum speed in rad/s, and torque in N.m.
_STRONG_HIPS = {f"{side}_hip_pitch_joint": (20.0, 139.0) for side in _SIDES}
_STRONG_WRISTS = {
    f"{side}_wrist_{turn}_joint": (27.0, 13.4) for side in _SIDES for turn in ("pitch", "yaw")
}
_MOTORS = {
    10: _STRONG_HIPS,
    11: _STRONG_HIPS,
    12: _STRONG_HIPS,
    13: _STRONG_WRISTS,
    14: _STRONG_WRISTS,
    15: _STRONG_HIPS | _STRONG_WRISTS,
    16: _STRONG_HIPS | _STRONG_WRISTS,
}


def _make_build(
    name: str,
    title: str,
    absent: frozenset[int],
    machines: tuple[int, ...],
    fixed: tuple[FixedMass, ...] = (),
    modes: ModeTable | None = None,
) -> Build:
    """Return a build without the joints of the indices in `absent`; see `Build` for the others."""
    joints = tuple(joint for joint in G1_JOINTS if joint.index not in absent)
    return Build(
        name=name,
        family="g1",
        title=title,
        joints=joints,
        taught=tuple(joint.name for joint in joints if joint.index in TAUGHT_JOINTS),
        streamed=tuple(joint.name for joint in joints if joint.index in _UPPER_BODY),
        rest={joint.name: _REST[joint.name] for joint in joints},
        machines=machines,
        motors={machine: _MOTORS[machine] for machine in machines if machine in _MOTORS},
        modes=modes,
        stream=_STREAM,
        fixed=fixed,
    )


_ALL_JOINTS = frozenset(range(len(G1_JOINTS)))
G1_29 = _make_build(
    "g1-29", "G1 with 29 joints", frozenset(), (5, 11, 13, 15, 2), modes=G1_29_MODES
)
G1_27 = _make_build(
    "g1-27", "G1 with 27 joints, its waist locked", _WAIST_SLOTS, (6, 12, 14, 16, 3)
)
# One rubber hand on the wrist's roll link, instead of three links and a hand.
_WRISTS_23 = (
    FixedMass("left_wrist_roll_link", 0.35692864, (0.1079465665, 0.00163511945, 0.00202244863)),
    FixedMass("right_wrist_roll_link", 0.35692864, (0.1079465665, -0.00163511945, 0.00202244863)),
)
G1_23 = _make_build(
    "g1-23", "G1 with 23 joints", _WAIST_SLOTS | _WRIST_SLOTS, (4, 10, 1), fixed=_WRISTS_23
)
G1_ARMS = _make_build(
    "g1-arms", "two arms of a G1, without legs and waist", _ALL_JOINTS - _ARMS, (9,)
)

_URDF = "unitree_ros d6f13aa, robots/g1_description (BSD-3-Clause)"

G1 = Family(
    name="g1",
    title="Unitree G1 humanoid",
    joints=G1_JOINTS,
    builds=(G1_29, G1_27, G1_23, G1_ARMS),
    body=BodyFacts(
        base="pelvis",
        base_mass_kg=PELVIS_MASS_KG,
        base_com_m=PELVIS_COM_M,
        fixed=(
            FixedMass("torso_link", HEAD_MASS_KG, HEAD_COM_M),
            FixedMass("left_wrist_yaw_link", HAND_MASS_KG, HAND_COM_M),
            FixedMass("right_wrist_yaw_link", HAND_MASS_KG, HAND_COM_M),
        ),
        tips=(("left_wrist_yaw_link", HAND_COM_M), ("right_wrist_yaw_link", HAND_COM_M)),
        feet=tuple(Foot(link, FOOT_CORNERS_M) for link in _FOOT_LINKS),
        shapes=G1_SHAPES,
        close_pairs=(
            *(("torso_link", f"{side}_shoulder_roll_link") for side in _SIDES),
            *(("pelvis", f"{side}_hip_roll_link") for side in _SIDES),
        ),
        figure=G1_FIGURE,
    ),
    mirror=left_and_right(G1_JOINTS),
    modes=G1_MODES,
    hands=DEX3,
    services=(
        Service("arm", "1.0.0.14"),
        Service("sport", "1.0.0.0", "loco"),
        Service("motion_switcher", "1.0.0.1"),
    ),
    wires=("sim", "udp", "webrtc", "dds"),
    serials=("E",),
    works={
        "list": Grade.SEEN,
        "teach": Grade.SEEN,
        "play": Grade.SEEN,
        "stop": Grade.SEEN,
        "rename": Grade.REPORTED,
        "delete": Grade.REPORTED,
        "presets": Grade.SEEN,
        "modes": Grade.SEEN,
        "stream": Grade.PUBLISHED,
    },
    evidence={
        "joints": Evidence(Grade.PUBLISHED, _URDF),
        "slots": Evidence(Grade.PUBLISHED, "unitree_sdk2 21d0a3b, g1_pub.h"),
        "builds": Evidence(Grade.PUBLISHED, f"{_URDF}, README.md: the table of mode_machine"),
        "modes": Evidence(Grade.PUBLISHED, "the manufacturer's developer pages"),
        "standing": Evidence(
            Grade.SEEN,
            "501 with 29 joints, where 500 is confirmed and ignored: a G1 EDU+ with 1.5.3.8 "
            "(mercho40/C3PO, docs/ROBOT-API.md), xr_teleoperate issues 312 and 322",
        ),
        "presets": Evidence(
            Grade.SEEN, "7106 with data, and the list of 7107: the same G1 EDU+ (mercho40/C3PO)"
        ),
        "services": Evidence(Grade.SEEN, "logs and captures of a G1 Air; docs/protocol"),
        "stream": Evidence(Grade.PUBLISHED, "unitree_sdk2 21d0a3b, the arm_sdk examples"),
        **DEX3_EVIDENCE,
        "rest": Evidence(Grade.CHOSEN, "this project"),
        "leaning": Evidence(
            Grade.CHOSEN, "this project, from the feet's length and the robot's weight"
        ),
        "shapes": Evidence(Grade.PUBLISHED, f"{_URDF}: laid around its meshes by this project"),
    },
)
