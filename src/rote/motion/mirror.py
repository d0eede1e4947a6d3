"""Left becomes right: the motion a person in a mirror would make."""

from collections.abc import Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.model.a1 import A1_JOINTS
from rote.model.family import Joint
from rote.model.g1 import G1_JOINTS
from rote.motion.limits import check_positions
from rote.motion.track import Array, Track

_JOINTS = {joint.name: joint for joint in (*G1_JOINTS, *A1_JOINTS)}
_SIDES = {"left": "right", "right": "left", "FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}
# The mirror is the plane between left and right, y = 0. A turn is no arrow but a sense of
# rotation, so it is the axis in the mirror's plane that changes sign: roll and yaw, not pitch.
_TURNED = np.array([-1.0, 1.0, -1.0])


def mirror(track: Track) -> Track:
    """Return `track` with left and right exchanged; twice is the identity.

    A joint whose partner the track lacks becomes its partner: a right arm alone a left arm alone.
    `UnsafeMotionError` names the joint that would leave its range: left and right limits differ.
    """
    joints = [_joint(name) for name in track.names]
    partners = [_partner(joint) for joint in joints]
    # What is there on both sides changes places, and the rest its names: columns keep their order.
    moved = [
        (joint, partner) if partner in joints else (partner, joint)
        for joint, partner in zip(joints, partners, strict=True)
    ]
    taken = track._columns([source.name for _, source in moved])
    joints_rad = track.joints_rad[:, taken] * _signs(joints, partners)
    check_positions(track.times_s, joints_rad, [joint for joint, _ in moved])
    names = tuple(joint.name for joint, _ in moved)
    return track._edited("mirror left and right", joints_rad=joints_rad, names=names)


def _joint(name: str) -> Joint:
    if name not in _JOINTS:
        raise BadRequestError(
            f"{name} cannot be mirrored: it is no joint of a G1 or A1",
            "Drop it from the track first.",
        )
    return _JOINTS[name]


def _partner(joint: Joint) -> Joint:
    """Return the joint on the other side; one in the middle is its own."""
    side, _, rest = joint.name.partition("_")
    return _JOINTS[f"{_SIDES[side]}_{rest}"] if side in _SIDES else joint


def _signs(joints: Sequence[Joint], partners: Sequence[Joint]) -> Array:
    """Return, per joint, 1 or -1: how its axis lies to its partner's in the mirror; (joints,)."""
    axes = np.array([joint.axis for joint in joints]).reshape(-1, 3)
    others = np.array([joint.axis for joint in partners]).reshape(-1, 3)
    signs: Array = np.sign((axes * others * _TURNED).sum(axis=1))
    return signs
