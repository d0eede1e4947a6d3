"""Is this track fit to be played? Everything that speaks against it, with a number and a remedy.

Each kind of finding is reported once per joint, at its worst moment. Position, speed, gaps and
the variant are facts; acceleration, torque, heat, balance and contact are estimates, of a robot
that stands upright and carries only `payload_kg` in each hand.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError, MissingExtraError
from rote.messages import MAX_DURATION_MS, Interpolation
from rote.model.a1 import A1, A1_JOINTS, A1_STAND_RAD
from rote.model.family import Joint
from rote.model.g1 import FOOT_CORNERS_M, G1_23, G1_27, G1_29, G1_JOINTS, LEGS
from rote.motion.contact import Contact, ContactModel
from rote.motion.findings import CheckReport, Finding, Kind, Severity
from rote.motion.gaps import gaps
from rote.motion.interpolate import MINIMUM_JERK_PEAK, sample
from rote.motion.kinematics import (
    LINKS,
    Frames,
    Pose,
    centre_of_mass_m,
    forward,
    poses,
    weight_nm,
    weights,
    whole_pose,
)
from rote.motion.legs import is_of_an_a1, left_by_rad, protected_rad
from rote.motion.limits import MOST_PLAYED_RAD_S2, TOLERANCE_RAD, most_played_rad_s
from rote.motion.track import Array, Track

SOFT_RAD_S = 1.0
"""How fast a player goes to a first pose."""
JUMP_RAD = 0.05
"""A first pose so near needs no approach."""
CLEARANCE_M = 0.015
"""Nearer than this, a hand may touch: the shapes are good to about a centimetre."""
SLIGHT_M = 0.015
"""Links that meet so little may not meet at all, which a person has to look at."""
HANDS_MEET_M = 0.03
"""Hands may meet, as in a clap: the shapes are thicker than two palms by this."""
BALANCE_M = 0.02
"""The centre of mass should stay so far inside the feet. The legs' own balancing is not known
here: only so far outside them is it an error."""
NEAR_TORQUE, LASTING_TORQUE = 0.7, 0.4
"""Parts of a motor's greatest torque: for a moment, and on average. This project's estimate."""
LEG_GAP_S = 0.25
"""Legs for which nothing is known any longer than this are not played."""

_VARIANTS = {variant.name: variant for variant in (G1_29, G1_27, G1_23, A1)}
_KNOWN = {joint.name: joint for joint in G1_JOINTS}
_LEGS = {joint.name: joint for joint in A1_JOINTS}
_MOVED_RAD = 0.05
# Between two samples, noise of 2 mrad looks like 50 rad/s2; over this long like 2.
_ACCELERATION_WINDOW_S = 0.05
_SLOW_HZ = 25.0  # weight and balance change no faster than a body does
_FEET = (LINKS.index("left_ankle_roll_link"), LINKS.index("right_ankle_roll_link"))
_ANGLES = np.arange(72) * (2 * np.pi / 72)
_AROUND = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_ORDER = tuple(Severity)

_NOT_LOOKED_AT = Finding(
    severity=Severity.NOTE,
    kind=Kind.COLLISION,
    words="nobody looked at weight, balance and contact: of an A1 they are not known here",
    remedy="Play it while the robot hangs or lies, slowly at first.",
)
_HAND = "wrist"  # all links from the wrist on count as the hand


class _Subject(NamedTuple):
    """A track, as far as the robot knows its joints."""

    track: Track
    joints: tuple[Joint, ...]
    times_s: Array
    values: Array
    """(n, known joints)."""


def check(
    track: Track,
    *,
    start_pose: Pose | None = None,
    variant: str | None = None,
    contact: bool = True,
    payload_kg: float = 0.0,
) -> CheckReport:
    """Return everything that speaks against playing `track`, the worst first.

    `start_pose` is where the robot's 29 joints are now; without it, it stands at ease. `variant`
    is the robot's build, else the track's own. Without `contact` nothing is asked of mujoco. Of an
    A1, with its 12 joints, weight, balance and contact are not looked at.
    """
    track._need(1)
    if not 0.0 <= payload_kg <= 20.0:
        raise BadRequestError(f"a payload is 0 to 20 kg, not {payload_kg:g}")
    wanted = variant or track.variant
    on_legs = wanted == A1.name
    subject = _subject(track, on_legs)
    most_s = LEG_GAP_S if on_legs else None
    found = [*_variant(track, wanted), *_duration(track), *gaps(track.times_s, most_s)]
    found += _joints(subject)
    if on_legs:
        tripping = {finding.joint: finding for finding in _protection(subject)}
        found = [f for f in found if f.kind is not Kind.POSITION or f.joint not in tripping]
        found += [*tripping.values(), *_jump(subject, _legs_pose(start_pose), start_pose)]
        found.append(_NOT_LOOKED_AT)
    elif subject.joints:
        found += _jump(subject, whole_pose(start_pose), start_pose)
        found += _loads(track, poses(track, start_pose), payload_kg)
        if contact:
            found += _touching(track, start_pose)
    return _report(found)


def _legs_pose(start_pose: Pose | None) -> Array:
    pose = np.asarray(A1_STAND_RAD if start_pose is None else start_pose, dtype=np.float64)
    if pose.shape != (len(A1_JOINTS),):
        raise BadRequestError(f"an A1 has {len(A1_JOINTS)} joints, and this pose {pose.size}")
    return pose


def _subject(track: Track, on_legs: bool) -> _Subject:
    known = _LEGS if on_legs else _KNOWN
    joints = tuple(known[name] for name in track.names if name in known)
    columns = track._columns([joint.name for joint in joints])
    return _Subject(track, joints, track.times_s, track.joints_rad[:, columns])


def check_contact(track: Track, start_pose: Pose | None = None) -> CheckReport:
    """Return what `check` says of contact alone, which is the part that takes longest."""
    track._need(1)
    return _report(list(_touching(track, start_pose)))


def check_gaps(times_s: Array, *, most_s: float | None = None) -> CheckReport:
    """Return what `check` says of holes in a recording alone.

    With `most_s`, the longer ones are errors, however far apart samples usually are.
    """
    return _report(list(gaps(times_s, most_s)))


def check_joints(track: Track) -> CheckReport:
    """Return what `check` says of the joints' range, speed and acceleration alone."""
    track._need(1)
    return _report(list(_joints(_subject(track, track.variant == A1.name))))


def _report(found: list[Finding]) -> CheckReport:
    return CheckReport(tuple(sorted(found, key=lambda finding: _ORDER.index(finding.severity))))


# ---- what the recording says --------------------------------------------------------------------


def _variant(track: Track, name: str) -> Iterator[Finding]:
    if name not in _VARIANTS:
        yield Finding(
            severity=Severity.ERROR,
            kind=Kind.VARIANT,
            words=f"there is no robot {name!r}",
            remedy=f"Known are {', '.join(_VARIANTS)}.",
        )
        return
    names = _VARIANTS[name].names
    if is_of_an_a1(track) != (name == A1.name):
        stranger = next(joint for joint in track.names if joint not in names)
        yield Finding(
            severity=Severity.ERROR,
            kind=Kind.VARIANT,
            words=f"{name} has no {stranger}: this is a motion of another robot",
            remedy="Play it on the robot that was taught it.",
        )
        return
    for joint, column in zip(track.names, track.joints_rad.T, strict=True):
        moved = float(np.ptp(column))
        if joint not in names:
            known = joint in _KNOWN and name != A1.name
            still = known and moved <= _MOVED_RAD
            forced = "" if still else " --force"
            yield Finding(
                severity=Severity.WARNING if still else Severity.ERROR,
                kind=Kind.VARIANT,
                joint=joint,
                value=moved,
                limit=_MOVED_RAD if known else 0.0,
                margin=(_MOVED_RAD if known else 0.0) - moved,
                words=f"{name} has no {joint}, and the track moves it by {moved:.2f} rad",
                remedy=f"Leave it out: rote motion convert FILE OUT --variant {name}{forced}",
            )
    if missing := [joint for joint in names if joint not in track.names]:
        yield Finding(
            severity=Severity.NOTE,
            kind=Kind.VARIANT,
            value=float(len(missing)),
            words=f"the track leaves {len(missing)} joints of {name} alone: {', '.join(missing)}",
            remedy="Nothing to do: they stay where they are.",
        )


def _duration(track: Track) -> Iterator[Finding]:
    value, limit = track.duration_s, MAX_DURATION_MS / 1000
    if value > limit:
        yield Finding(
            severity=Severity.ERROR,
            kind=Kind.DURATION,
            value=value,
            limit=limit,
            margin=limit - value,
            words=f"it lasts {value:.4g} s, and at most {limit:.0f} s can be played",
            remedy="Trim it, or make it faster: rote motion trim, rote motion speed.",
        )


# ---- what the joints can do ---------------------------------------------------------------------


def _joints(subject: _Subject) -> Iterator[Finding]:
    if subject.joints:
        yield from _positions(subject)
        yield from _speeds(subject)
        yield from _accelerations(subject)


def _positions(subject: _Subject) -> Iterator[Finding]:
    lower = np.array([joint.lower_rad for joint in subject.joints])
    upper = np.array([joint.upper_rad for joint in subject.joints])
    beyond = np.maximum(lower - subject.values, subject.values - upper)
    for row, column in _worst(beyond, np.zeros(len(subject.joints))):
        joint, value = subject.joints[column], float(subject.values[row, column])
        excess = float(beyond[row, column])
        yield Finding(
            severity=Severity.ERROR if excess > TOLERANCE_RAD else Severity.WARNING,
            kind=Kind.POSITION,
            joint=joint.name,
            time_s=float(subject.times_s[row]),
            value=value,
            limit=joint.upper_rad if value > joint.upper_rad else joint.lower_rad,
            margin=-excess,
            words=f"{joint.name} is at {value:.2f} rad; it reaches "
            f"{joint.lower_rad:.2f} to {joint.upper_rad:.2f} rad",
            remedy="Teach it again with this joint further from its end, or trim that part away.",
        )


def _protection(subject: _Subject) -> Iterator[Finding]:
    """Yield where an A1's position protection would trip, which is before a joint's limit."""
    lower, upper = protected_rad(subject.joints)
    left = left_by_rad(subject.values, lower, upper)
    for row, column in _worst(left, np.zeros(len(subject.joints))):
        name, value = subject.joints[column].name, float(subject.values[row, column])
        yield Finding(
            severity=Severity.ERROR,
            kind=Kind.POSITION,
            joint=name,
            time_s=float(subject.times_s[row]),
            value=value,
            limit=float(upper[column] if value > upper[column] else lower[column]),
            margin=-float(left[row, column]),
            words=f"{name} is at {value:.3f} rad, and the position protection trips outside "
            f"{lower[column]:.3f} to {upper[column]:.3f} rad",
            remedy="Teach it further from the joint's stop, or trim that part away.",
        )


def _speeds(subject: _Subject) -> Iterator[Finding]:
    if len(subject.times_s) < 2:
        return
    speeds = np.abs(np.diff(subject.values, axis=0)) / np.diff(subject.times_s)[:, None]
    most = most_played_rad_s(subject.joints)
    for row, column in _worst(speeds, most):
        name, value, limit = subject.joints[column].name, speeds[row, column], most[column]
        yield Finding(
            severity=Severity.ERROR,
            kind=Kind.VELOCITY,
            joint=name,
            time_s=float(subject.times_s[row]),
            value=float(value),
            limit=float(limit),
            margin=float(limit - value),
            words=f"{name} moves at {value:.1f} rad/s, allowed {limit:.1f} rad/s",
            remedy="Play it slower, or retime it: rote motion retime.",
        )


def _accelerations(subject: _Subject) -> Iterator[Finding]:
    if len(subject.times_s) < 3:
        return
    window_s = max(_ACCELERATION_WINDOW_S, float(np.median(np.diff(subject.times_s))))
    before, after = (
        sample(subject.times_s, subject.values, subject.times_s + shift_s, Interpolation.LINEAR)
        for shift_s in (-window_s, window_s)
    )
    gains = np.abs(after - 2 * subject.values + before) / window_s**2
    limit = MOST_PLAYED_RAD_S2
    for row, column in _worst(gains, np.full(len(subject.joints), limit)):
        name, value = subject.joints[column].name, float(gains[row, column])
        yield Finding(
            severity=Severity.WARNING,
            kind=Kind.ACCELERATION,
            joint=name,
            time_s=float(subject.times_s[row]),
            value=value,
            limit=limit,
            margin=limit - value,
            words=f"{name} would need {value:.0f} rad/s2; about {limit:.0f} can be followed",
            remedy="Smooth it, or retime it: rote motion retime.",
        )


def _jump(subject: _Subject, whole: Array, start_pose: Pose | None) -> Iterator[Finding]:
    if not subject.joints:
        return
    far = np.abs(subject.values[0] - whole[[joint.index for joint in subject.joints]])
    column = int(far.argmax())
    value = float(far[column])
    if value <= JUMP_RAD:
        return
    name, needed_s = subject.joints[column].name, MINIMUM_JERK_PEAK * value / SOFT_RAD_S
    where = "where the robot stands at ease" if start_pose is None else "where the robot is"
    yield Finding(
        severity=Severity.NOTE if start_pose is None else Severity.WARNING,
        kind=Kind.JUMP,
        joint=name,
        time_s=float(subject.times_s[0]),
        value=value,
        limit=JUMP_RAD,
        margin=JUMP_RAD - value,
        words=f"{name} begins {value:.2f} rad from {where}",
        remedy=f"Let the player go there softly first; that takes {needed_s:.1f} s.",
    )


def _worst(values: Array, limits: Array) -> Iterator[tuple[int, int]]:
    """Yield, for each column above its limit, its worst row and itself."""
    for column, row in enumerate(values.argmax(axis=0).tolist()):
        if values[row, column] > limits[column]:
            yield row, column


# ---- what the body can bear ---------------------------------------------------------------------


def _loads(track: Track, full: Array, payload_kg: float) -> Iterator[Finding]:
    """Yield what weight does: to the motors of arms and waist, and to the balance."""
    every = max(1, int(track.rate_hz / _SLOW_HZ))
    rows = np.unique(np.append(np.arange(0, len(full), every), len(full) - 1))
    frames, load = forward(full[rows]), weights(payload_kg)
    torques = np.abs(weight_nm(frames, load))
    torques[:, LEGS] = 0.0
    times_s = track.times_s[rows]
    yield from _torques(times_s, torques)
    yield from _heat(times_s, torques)
    yield from _balance(times_s, frames, centre_of_mass_m(frames, load))


def _torques(times_s: Array, torques: Array) -> Iterator[Finding]:
    effort = np.array([joint.effort_nm for joint in G1_JOINTS])
    for row, column in _worst(torques, NEAR_TORQUE * effort):
        value, limit = float(torques[row, column]), float(effort[column])
        yield Finding(
            severity=Severity.ERROR if value > limit else Severity.WARNING,
            kind=Kind.TORQUE,
            joint=G1_JOINTS[column].name,
            time_s=float(times_s[row]),
            value=value,
            limit=limit,
            margin=limit - value,
            words=f"{G1_JOINTS[column].name} holds about {value:.0f} N.m; it can {limit:.0f} N.m",
            remedy="Carry less, or teach it with the arm closer to the body.",
        )


def _heat(times_s: Array, torques: Array) -> Iterator[Finding]:
    mean = np.sqrt(np.square(torques).mean(axis=0, keepdims=True))
    lasting = LASTING_TORQUE * np.array([joint.effort_nm for joint in G1_JOINTS])
    for _, column in _worst(mean, lasting):
        value, limit = float(mean[0, column]), float(lasting[column])
        yield Finding(
            severity=Severity.WARNING,
            kind=Kind.THERMAL,
            joint=G1_JOINTS[column].name,
            time_s=float(times_s[torques[:, column].argmax()]),
            value=value,
            limit=limit,
            margin=limit - value,
            words=f"{G1_JOINTS[column].name} holds about {value:.1f} N.m on average; "
            f"for long it should stay below {limit:.1f} N.m",
            remedy="Do not loop it, and let the motor cool between two runs.",
        )


def _balance(times_s: Array, frames: Frames, centres_m: Array) -> Iterator[Finding]:
    inside_m = feet_margin_m(frames, centres_m)
    row = int(inside_m.argmin())
    value = float(inside_m[row])
    if value >= BALANCE_M:
        return
    side = "outside the feet by" if value < 0 else "inside the feet by only"
    yield Finding(
        severity=Severity.ERROR if value < -BALANCE_M else Severity.WARNING,
        kind=Kind.BALANCE,
        time_s=float(times_s[row]),
        value=value,
        limit=BALANCE_M,
        margin=value - BALANCE_M,
        words=f"the centre of mass is {side} {abs(value) * 100:.1f} cm",
        remedy="Carry less, or teach it with the arms closer to the body.",
    )


def feet_margin_m(frames: Frames, centres_m: Array) -> Array:
    """Return how far the centre of mass is inside the feet's outline, (n,); below 0 outside.

    Down is where the soles look: the robot stands on both.
    """
    up = frames.turns[_FEET[0], :, 2] + frames.turns[_FEET[1], :, 2]
    up = up / np.linalg.norm(up, axis=0)
    ahead = np.array([[1.0], [0.0], [0.0]]) - up[:1] * up
    ahead = ahead / np.linalg.norm(ahead, axis=0)
    ground = np.stack([ahead, np.cross(up, ahead, axis=0)])
    corners = np.stack([frames.points_m(foot, at) for foot in _FEET for at in FOOT_CORNERS_M])
    away = np.einsum("gin,cin->gcn", ground, corners - centres_m.T[None])
    # The distance to a convex outline is the least over all directions of how far it reaches there.
    return np.asarray(np.einsum("gd,gcn->dcn", _AROUND, away).max(axis=1).min(axis=0))


# ---- what touches what --------------------------------------------------------------------------


def _touching(track: Track, start_pose: Pose | None) -> Iterator[Finding]:
    try:
        model = ContactModel(CLEARANCE_M)
    except MissingExtraError as error:
        yield Finding(
            severity=Severity.NOTE,
            kind=Kind.COLLISION,
            words=f"nobody looked whether the robot touches itself: {error}",
            remedy=error.remedy,
        )
        return
    for contact in model.contacts(track, start_pose):
        if (finding := _met(contact)) is not None:
            yield finding


def _met(contact: Contact) -> Finding | None:
    """Return what two links so near each other mean, if anything."""
    hands = [_HAND in link for link in (contact.a, contact.b)]
    touching = contact.distance_m < 0
    if not touching and not any(hands):
        return None
    # The shapes are good to about a centimetre: so little may be none.
    slight = contact.distance_m >= -(HANDS_MEET_M if all(hands) else SLIGHT_M)
    limit = 0.0 if touching else CLEARANCE_M
    # The outermost of the two is the one a person would move.
    link = max((contact.a, contact.b), key=lambda name: (_HAND in name, _outward(name)))
    return Finding(
        severity=Severity.WARNING if slight else Severity.ERROR,
        kind=Kind.COLLISION if touching else Kind.CLEARANCE,
        joint=G1_JOINTS[LINKS.index(link)].name,
        time_s=contact.time_s,
        value=contact.distance_m,
        limit=limit,
        margin=contact.distance_m - limit,
        words=f"{contact.a} and {contact.b} are {contact.distance_m * 100:.1f} cm apart"
        if not touching
        else f"{contact.a} meets {contact.b}, {-contact.distance_m * 100:.1f} cm deep",
        remedy="Look at it: rote motion show. Teach it again with more room between the two.",
    )


def _outward(link: str) -> int:
    """Return a link's place in its chain; the pelvis, which has no joint, is innermost."""
    return LINKS.index(link) if link in LINKS else -1
