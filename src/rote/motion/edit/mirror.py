"""Mirrors a motion: left becomes right."""

from collections.abc import Collection, Sequence
from itertools import product

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import Family, Joint
from rote.motion.check.limits import check_positions
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, family_of, joints_by_name

__all__ = ["mirror"]

# The mirror is the plane between left and right, y = 0. A rotation is an axial vector: its
# components in the mirror's plane, roll and yaw, change sign; pitch does not.
_MIRROR_SIGNS = np.array([-1.0, 1.0, -1.0])
_MIN_COSINE = 0.5  # between an axis and the mirror image of its partner's


def mirror(track: Track, joints: Collection[str] | None = None) -> Track:
    """Return `track` with left and right exchanged; twice is the identity.

    A joint whose partner is not in the track becomes its partner: a right arm alone becomes a left
    arm. With `joints` only these change: each does what its partner does, and the partner stays as
    it is. Raises `UnsafeMotionError` for a joint that would leave its range: left and right limits
    differ.
    """
    if joints is not None:
        return _mirror_joints(track, track.choose_joints(joints))
    pairs = _find_joint_pairs(track)
    present = [joint for joint, _ in pairs]
    # Pairs of (new joint, source of its values), one per column. Two joints of the track exchange
    # their values; a joint without its partner is renamed to it.
    assignments = [(joint, other) if other in present else (other, joint) for joint, other in pairs]
    source_columns = track.columns_of([source.name for _, source in assignments])
    joints_rad = track.joints_rad[:, source_columns] * _compute_axis_signs(pairs)
    check_positions(track.times_s, joints_rad, [joint for joint, _ in assignments])
    names = tuple(joint.name for joint, _ in assignments)
    root = None if track.root is None else track.root.mirror()
    return track.edited("mirror left and right", joints_rad=joints_rad, names=names, root=root)


def mirror_columns(track: Track) -> tuple[list[int], Array]:
    """Return the source of each column of the mirrored motion: a column of the track, and a sign.

    `track.joints_rad[:, columns] * signs` is the mirrored motion, without a check of its limits.
    Raises `BadRequestError` if a joint has no partner in the track.
    """
    pairs = _find_joint_pairs(track)
    return list(track.columns_of([other.name for _, other in pairs])), _compute_axis_signs(pairs)


def _mirror_joints(track: Track, names: Sequence[str]) -> Track:
    """Return the track with these joints as the mirror image of their partners."""
    pairs = [(joint, other) for joint, other in _find_joint_pairs(track) if joint.name in names]
    for joint, other in pairs:
        if other.name not in track.names:
            raise BadRequestError(
                f"{joint.name} cannot be mirrored alone: the track has no {other.name}",
                "Choose joints whose partner on the other side is in the motion.",
            )
    partners_rad = track.joints_rad[:, track.columns_of([other.name for _, other in pairs])]
    mirrored = partners_rad * _compute_axis_signs(pairs)
    check_positions(track.times_s, mirrored, [joint for joint, _ in pairs])
    joints_rad = track.joints_rad.copy()
    joints_rad[:, track.columns_of([joint.name for joint, _ in pairs])] = mirrored
    return track.edited(f"mirror image: {', '.join(names)}", joints_rad=joints_rad)


def _find_joint_pairs(track: Track) -> list[tuple[Joint, Joint]]:
    """Return each joint of a track with its partner on the other side.

    A joint in the middle is its own partner. Raises `BadRequestError` if no robot has a joint, or
    the pairs of its family are not known.
    """
    if not track.names:
        return []
    build, family = build_of(track), family_of(track)
    if build is None or family is None:
        raise _make_mirror_error(track.names[0], "no known robot has it")
    known = joints_by_name(build)
    partners = {**_find_hand_joint_pairs(family), **family.mirror}
    pairs = []
    for name in track.names:
        if name not in known:
            raise _make_mirror_error(name, f"it is not a joint of {a_robot(family)}")
        if not family.mirror:
            raise _make_mirror_error(
                name, f"it is not known which joints of {a_robot(family)} are a pair"
            )
        pairs.append((known[name], known[partners.get(name, name)]))
    return pairs


def _find_hand_joint_pairs(family: Family) -> dict[str, str]:
    """Return by name the partner of each hand joint: two hands of one name are a pair."""
    partners: dict[str, str] = {}
    for hand, opposite in product(family.hands, repeat=2):
        if opposite.name == hand.name and opposite.side != hand.side:
            partners.update(zip(hand.names, opposite.names, strict=False))
    return partners


def _make_mirror_error(name: str, why: str) -> BadRequestError:
    return BadRequestError(f"{name} cannot be mirrored: {why}", "Drop it from the track first.")


def _compute_axis_signs(pairs: Sequence[tuple[Joint, Joint]]) -> Array:
    """Return a sign per joint: -1 if its axis is opposite to the mirror image of its partner's.

    Raises `BadRequestError` if the two axes are far from parallel.
    """
    axes = np.array([joint.axis for joint, _ in pairs]).reshape(-1, 3)
    partner_axes = np.array([other.axis for _, other in pairs]).reshape(-1, 3)
    cosines: Array = (axes * partner_axes * _MIRROR_SIGNS).sum(axis=1)
    for (joint, _), cosine in zip(pairs, cosines.tolist(), strict=True):
        if abs(cosine) < _MIN_COSINE:
            raise _make_mirror_error(
                joint.name, "its axis does not match that of its partner on the other side"
            )
    return np.asarray(np.sign(cosines))
