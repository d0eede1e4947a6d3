"""What robots are: joints, their order, limits and places, as frozen data.

Facts from the manufacturer's published description of the G1 (g1_29dof_rev_1_0, BSD-3-Clause);
the position limits equal those printed on its developer page. The order is that of the robot's own
motor messages, so a joint's index here is its index on every wire.
"""

from dataclasses import dataclass, field

Vector = tuple[float, float, float]

X: Vector = (1.0, 0.0, 0.0)
Y: Vector = (0.0, 1.0, 0.0)
Z: Vector = (0.0, 0.0, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Joint:
    """One hinge and the link that hangs on it."""

    index: int
    """Position in the robot's motor messages, 0 to 28."""
    name: str
    parent: str
    """The link it is mounted on."""
    axis: Vector
    lower_rad: float
    upper_rad: float
    velocity_rad_s: float
    effort_nm: float
    origin_m: Vector
    """Where it sits in the parent link's frame."""
    origin_rpy_rad: Vector
    mass_kg: float
    """Mass of the child link."""
    com_m: Vector
    """Centre of mass of the child link, in its own frame."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """A build of a robot: which joints it has, in the order of a track's columns."""

    name: str
    joints: tuple[Joint, ...]
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(joint.name for joint in self.joints))


# fmt: off
# name, parent link, axis, lower rad, upper rad, rad/s, N.m,
#     origin in the parent, roll-pitch-yaw there, mass and centre of mass of the child link
_G1_ROWS: tuple[
    tuple[str, str, Vector, float, float, float, float, Vector, Vector, float, Vector], ...
] = (
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


def _joint(index: int) -> Joint:
    (name, parent, axis, lower, upper, velocity, effort, origin, rpy, mass, com) = _G1_ROWS[index]
    return Joint(
        index=index,
        name=name,
        parent=parent,
        axis=axis,
        lower_rad=lower,
        upper_rad=upper,
        velocity_rad_s=velocity,
        effort_nm=effort,
        origin_m=origin,
        origin_rpy_rad=rpy,
        mass_kg=mass,
        com_m=com,
    )


G1_JOINTS: tuple[Joint, ...] = tuple(_joint(index) for index in range(len(_G1_ROWS)))

# Smaller builds keep the indices of the joints they have; the other motor slots stay empty.
_WAIST_LOCKED = frozenset({13, 14})
_NO_WRISTS = frozenset({20, 21, 27, 28})

G1_29 = Variant(name="g1-29", joints=G1_JOINTS)
G1_27 = Variant(name="g1-27", joints=tuple(j for j in G1_JOINTS if j.index not in _WAIST_LOCKED))
G1_23 = Variant(
    name="g1-23",
    joints=tuple(j for j in G1_JOINTS if j.index not in _WAIST_LOCKED | _NO_WRISTS),
)

LEGS = tuple(range(12))
WAIST_YAW = 12
LEFT_ARM = tuple(range(15, 22))
RIGHT_ARM = tuple(range(22, 29))
TAUGHT_JOINTS = (WAIST_YAW, *LEFT_ARM, *RIGHT_ARM)
"""What teaching moves and playing drives: both arms and the waist's yaw. The balance controller
keeps the legs; of the waist a real G1 records the yaw alone."""

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
"""Standing at ease: knees a little bent, arms hanging; in the order of `G1_JOINTS`."""

PELVIS_MASS_KG = 3.814
PELVIS_COM_M: Vector = (0.0, 0.0, -0.07603)
HEAD_MASS_KG = 1.036
HEAD_COM_M: Vector = (0.0092305, 0.000299, 0.405869)
"""The head is fixed to the torso link, in whose frame this is; the pelvis is the root."""

FOOT_CORNERS_M: tuple[Vector, ...] = (
    (-0.05, 0.025, -0.035), (-0.05, -0.025, -0.035), (0.12, 0.03, -0.035), (0.12, -0.03, -0.035),
)  # fmt: skip
"""Where a sole carries weight, in the frame of the ankle-roll link; left and right are alike."""


def link_of(joint: Joint) -> str:
    """Return the name of the link that hangs on a joint."""
    return "torso_link" if joint.name == "waist_pitch_joint" else joint.name[:-5] + "link"
