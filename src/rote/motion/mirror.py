"""Left becomes right: the motion a person in a mirror would make."""

from collections.abc import Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.model import G1_JOINTS, Joint
from rote.model_a1 import A1_JOINTS
from rote.motion.limits import check_positions
from rote.motion.track import Array, Track

_JOINTS = {joint.name: joint for joint in (*G1_JOINTS, *A1_JOINTS)}
_SIDES = {"left": "right", "right": "left", "FL": "FR", "FR": "FL", "RL": "RR", "RR": "RL"}
# The mirror is the plane between left and right, y = 0. A turn is no arrow but a sense of
# rotation, so it is the axis in the mirror's plane that changes sign: roll and yaw, not pitch.
_TURNED = np.array([-1.0, 1.0, -1.0])


def mirror(track: Track) -> Track:
    """Return `track` with left and right exchanged; twice is the identity.

    `UnsafeMotionError` names the joint that would leave its range: left and right limits differ.
    """
    joints = [_joint(name) for name in track.names]
    columns = [track.names.index(_partner(joint, track.names)) for joint in joints]
    signs = _signs(joints, [joints[column] for column in columns])
    joints_rad = track.joints_rad[:, columns] * signs
    check_positions(track.times_s, joints_rad, joints)
    return track._edited("mirror left and right", joints_rad=joints_rad)


def _joint(name: str) -> Joint:
    if name not in _JOINTS:
        raise BadRequestError(
            f"{name} cannot be mirrored: it is no joint of a G1 or A1",
            "Drop it from the track first.",
        )
    return _JOINTS[name]


def _partner(joint: Joint, names: Sequence[str]) -> str:
    """Return the joint on the other side; one in the middle is its own."""
    side, _, rest = joint.name.partition("_")
    other = f"{_SIDES[side]}_{rest}" if side in _SIDES else joint.name
    if other not in names:
        raise BadRequestError(
            f"{joint.name} cannot be mirrored: the track has no {other}",
            f"Drop {joint.name}, or bring the track to a whole variant first.",
        )
    return other


def _signs(joints: Sequence[Joint], partners: Sequence[Joint]) -> Array:
    """Return, per joint, 1 or -1: how its axis lies to its partner's in the mirror; (joints,)."""
    axes = np.array([joint.axis for joint in joints]).reshape(-1, 3)
    others = np.array([joint.axis for joint in partners]).reshape(-1, 3)
    signs: Array = np.sign((axes * others * _TURNED).sum(axis=1))
    return signs
