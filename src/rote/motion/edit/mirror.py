"""Mirrors a motion: left becomes right."""

from collections.abc import Collection, Sequence

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import Family, Joint
from rote.motion.check.limits import check_positions
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, family_of, joints_by_name

__all__ = ["mirror"]

# The mirror is the plane between left and right, y = 0. A rotation is an axial vector: its
# components in the mirror's plane, roll and yaw, change sign; pitch does not.
_TURNED = np.array([-1.0, 1.0, -1.0])
_ASKEW = 0.5  # an axis and its mirror image further apart than this are no pair


def mirror(track: Track, joints: Collection[str] | None = None) -> Track:
    """Return `track` with left and right exchanged; twice is the identity.

    A joint whose partner the track lacks becomes its partner: a right arm alone becomes a left arm.
    With `joints` only these change: each does what its partner does, and the partner stays. Raises
    `UnsafeMotionError` for a joint that would leave its range: left and right limits differ.
    """
    if joints is not None:
        return _mirror_joints(track, track.choose_joints(joints))
    pairs = _joint_pairs(track)
    own = [joint for joint, _ in pairs]
    # Joints present on both sides exchange values, the others their names: columns keep their
    # order.
    moved = [(joint, other) if other in own else (other, joint) for joint, other in pairs]
    taken = track.columns_of([source.name for _, source in moved])
    joints_rad = track.joints_rad[:, taken] * _axis_signs(pairs)
    check_positions(track.times_s, joints_rad, [joint for joint, _ in moved])
    names = tuple(joint.name for joint, _ in moved)
    root = None if track.root is None else track.root.mirror()
    return track.edited("mirror left and right", joints_rad=joints_rad, names=names, root=root)


def _mirror_joints(track: Track, names: Sequence[str]) -> Track:
    """Return the track with these joints as the mirror image of their partners."""
    pairs = [(joint, other) for joint, other in _joint_pairs(track) if joint.name in names]
    for joint, other in pairs:
        if other.name not in track.names:
            raise BadRequestError(
                f"{joint.name} has nothing to be the image of: the track has no {other.name}",
                "Choose joints whose partner on the other side is in the motion.",
            )
    taken = track.joints_rad[:, track.columns_of([other.name for _, other in pairs])]
    image = taken * _axis_signs(pairs)
    check_positions(track.times_s, image, [joint for joint, _ in pairs])
    joints_rad = track.joints_rad.copy()
    joints_rad[:, track.columns_of([joint.name for joint, _ in pairs])] = image
    return track.edited(f"mirror image: {', '.join(names)}", joints_rad=joints_rad)


def _joint_pairs(track: Track) -> list[tuple[Joint, Joint]]:
    """Return each joint of a track with the one on the other side; one in the middle with
    itself.
    """
    if not track.names:
        return []
    build, family = build_of(track), family_of(track)
    if build is None or family is None:
        raise _mirror_error(track.names[0], "no known robot has it")
    known = joints_by_name(build)
    others = {**_hand_joint_pairs(family), **family.mirror}
    pairs = []
    for name in track.names:
        if name not in known:
            raise _mirror_error(name, f"it is not a joint of {a_robot(family)}")
        if not family.mirror:
            raise _mirror_error(
                name, f"it is not known which joints of {a_robot(family)} are a pair"
            )
        pairs.append((known[name], known[others.get(name, name)]))
    return pairs


def _hand_joint_pairs(family: Family) -> dict[str, str]:
    """Return the opposite joints of the hands, by name: two hands of one name are a pair."""
    return {
        name: other
        for hand in family.hands
        for opposite in family.hands
        if opposite.name == hand.name and opposite.side != hand.side
        for name, other in zip(hand.names, opposite.names, strict=False)
    }


def _mirror_error(name: str, why: str) -> BadRequestError:
    return BadRequestError(f"{name} cannot be mirrored: {why}", "Drop it from the track first.")


def _axis_signs(pairs: Sequence[tuple[Joint, Joint]]) -> Array:
    """Return 1 or -1 per joint: the direction of its axis relative to its partner's mirror
    image.
    """
    axes = np.array([joint.axis for joint, _ in pairs]).reshape(-1, 3)
    others = np.array([other.axis for _, other in pairs]).reshape(-1, 3)
    along: Array = (axes * others * _TURNED).sum(axis=1)
    for (joint, _), cosine in zip(pairs, along.tolist(), strict=True):
        if abs(cosine) < _ASKEW:
            raise _mirror_error(joint.name, "its axis has no mirror image on the other side")
    return np.asarray(np.sign(along))
