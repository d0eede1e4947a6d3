"""Is this track fit to be played? Everything that speaks against it, with a number and a remedy.

Each kind of finding is reported once per joint, at its worst moment. Position, speed, gaps and the
build are facts. Acceleration, torque, heat, balance and contact are estimates, for a robot that
stands upright and carries only `payload_kg` in each hand. What cannot be estimated, because the
family's data has no weights, feet or shapes, is reported as a note.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError, MissingExtraError
from rote.findings import Finding, FindingKind, Severity, worst_first
from rote.messages import Interpolation
from rote.model import registry
from rote.model.family import MAX_MOTION_S, MOVED_RAD, Build, Family, Joint
from rote.motion.body.balance import Leaning, has_arms, leaning_of, standing_axes
from rote.motion.body.contact import Contact, ContactModel
from rote.motion.body.kinematics import Frames, Kinematics, Pose, kinematics_of, whole_pose
from rote.motion.check.gaps import gaps
from rote.motion.check.limits import (
    MAX_PLAYED_RAD_S2,
    TOLERANCE_RAD,
    left_by_rad,
    most_played_rad_s,
    positions_beyond,
    speeds_beyond,
    worst_rows,
)
from rote.motion.check.report import CheckReport
from rote.motion.interpolate import MINIMUM_JERK_PEAK, sample
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, hand_joints, joints_by_name
from rote.text import Act, Names, Quantity, Span, Text, rad, seconds

__all__ = ["check", "check_contact", "check_gaps", "check_joints"]

JUMP_RAD = 0.05
"""A first pose this near needs no approach."""
CLEARANCE_M = 0.015
"""Nearer than this, a hand may touch: a joint that is 0.03 rad off moves it so far."""
SLIGHT_M = 0.015
"""Links that meet so little may not meet at all, which a person has to look at."""
HANDS_MEET_M = 0.02
"""Hands may meet, as in a clap: rubber gives way."""
BALANCE_M = 0.02
"""How far inside the feet the centre of mass should stay. The legs' own balancing is not known
here, so only this far outside the feet is an error.
"""
NEAR_TORQUE, LASTING_TORQUE = 0.7, 0.4
"""Shares of a motor's maximum torque: for a moment, and on average. This project's estimate."""
# Between two samples, noise of 2 mrad looks like 50 rad/s2; over this time like 2.
_ACCELERATION_WINDOW_S = 0.05
_SLOW_HZ = 25.0  # weight and balance change no faster than a body does
_ANGLES = np.arange(72) * (2 * np.pi / 72)
_AROUND = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_ORDER = tuple(Severity)

_NO_SHAPES = "nobody looked whether the robot touches itself: its shapes are not known"


class _Subject(NamedTuple):
    """A track, limited to the joints that the robot has."""

    track: Track
    joints: tuple[Joint, ...]
    times_s: Array
    values: Array
    """(n, known joints)."""


@dataclass(frozen=True, slots=True)
class _CheckedRobot:
    """A build, and the body of its family."""

    build: Build
    family: Family
    body: Kinematics

    @property
    def motors(self) -> list[Joint]:
        """The joints that carry weight and whose torque is known; legs are not among them."""
        return [j for j in self.build.bare.joints if j.part != "leg" and j.effort_nm > 0.0]

    @property
    def weighs(self) -> bool:
        """Whether the loads on its motors can be computed."""
        return any(joint.mass_kg > 0.0 for joint in self.motors)

    @property
    def stands(self) -> bool:
        """Whether its feet and its weight are known."""
        return self.body.stands(self.build) and bool(self.body.weights().masses_kg.any())


def check(
    track: Track,
    *,
    start_pose: Pose | None = None,
    build: Build | str | None = None,
    contact: bool = True,
    payload_kg: float = 0.0,
) -> CheckReport:
    """Return everything that speaks against playing `track`, the worst first.

    `build` is the robot's build or its name; the default is the track's own. `start_pose` are the
    current joint positions in rad, in the columns of the build; the default is its rest pose. With
    `contact=False` the check for contact, which needs mujoco, is left out. `payload_kg` is the mass
    in each hand, 0 to 20 kg.

    The result's `permit` raises `UnsafeMotionError` if the track must not be played. This function
    itself raises only `BadRequestError`, for a wrong argument.
    """
    track.require_samples(1)
    if not 0.0 <= payload_kg <= 20.0:
        raise BadRequestError(f"a payload is 0 to 20 kg, not {payload_kg:g}")
    robot = _robot(track, build)
    subject = _subject(track, robot)
    most_s = None if robot is None else robot.family.max_gap_s
    found = [*_variant(track, build), *_duration(track), *gaps(track.times_s, most_s)]
    found += _joints(subject)
    if robot is not None:
        tripping = {finding.joint: finding for finding in _protection(subject, robot.family)}
        found = [f for f in found if f.kind is not FindingKind.POSITION or f.joint not in tripping]
        found += [*tripping.values(), *_not_looked_at(robot, contact=contact)]
        if subject.joints:
            full = robot.body.poses(track, start_pose, robot.build)
            found += _jump(subject, robot, start_pose)
            found += _loads(track, full, robot, payload_kg)
            if contact and robot.family.body.shapes:
                found += _touching(track, start_pose, robot)
    return _report(found)


def _named(track: Track, build: Build | str | None) -> Build | None:
    """Return the build that is asked for, or that the track names; None if there is none."""
    if isinstance(build, Build):
        return build
    return registry.find_build(build or track.variant)


def _robot(track: Track, build: Build | str | None) -> _CheckedRobot | None:
    """Return what a track is checked against; None if no robot has any of its joints."""
    found = _named(track, build) or build_of(track)
    family = None if found is None else registry.family_of(found)
    if found is None or family is None:
        return None
    return _CheckedRobot(found, family, kinematics_of(family))


def _subject(track: Track, robot: _CheckedRobot | None) -> _Subject:
    known = {} if robot is None else joints_by_name(robot.build)
    joints = tuple(known[name] for name in track.names if name in known)
    columns = track.columns_of([joint.name for joint in joints])
    return _Subject(track, joints, track.times_s, track.joints_rad[:, columns])


def check_contact(
    track: Track, start_pose: Pose | None = None, build: Build | str | None = None
) -> CheckReport:
    """Return what `check` finds about contact alone, the slowest part of it.

    Arguments are those of `check`.
    """
    track.require_samples(1)
    robot = _robot(track, build)
    if robot is None or not robot.family.body.shapes:
        return _report([_note(FindingKind.COLLISION, _NO_SHAPES)])
    return _report(list(_touching(track, start_pose, robot)))


def check_gaps(times_s: Array, *, most_s: float | None = None) -> CheckReport:
    """Return what `check` finds about gaps in a recording alone; `times_s` is (n,).

    With `most_s`, longer gaps are errors, whatever the usual distance of samples.
    """
    return _report(list(gaps(times_s, most_s)))


def check_joints(track: Track, build: Build | str | None = None) -> CheckReport:
    """Return what `check` finds about the joints' range, speed and acceleration alone."""
    track.require_samples(1)
    return _report(list(_joints(_subject(track, _robot(track, build)))))


def _report(found: list[Finding]) -> CheckReport:
    return CheckReport(tuple(worst_first(found)))


def _note(kind: FindingKind, message: str) -> Finding:
    """Return a note that something was not checked."""
    remedy = "Play it while the robot hangs or lies, or is clear of everything, slowly at first."
    return Finding(Severity.NOTE, message, remedy, kind=kind)


def _not_looked_at(robot: _CheckedRobot, *, contact: bool) -> Iterator[Finding]:
    """Yield one note that names everything that was not checked because data is missing."""
    missing = {} if robot.weighs else {"weight": FindingKind.TORQUE}
    missing |= {} if robot.stands else {"balance": FindingKind.BALANCE}
    missing |= (
        {"contact": FindingKind.COLLISION} if contact and not robot.family.body.shapes else {}
    )
    if list(missing) == ["contact"]:
        yield _note(FindingKind.COLLISION, _NO_SHAPES)
    elif missing:
        *before, last = missing
        several = f"{', '.join(before)} and {last}" if before else last
        what = f"of {a_robot(robot.family)} {'they are' if before else 'it is'} not known here"
        yield _note(missing[last], f"nobody looked at {several}: {what}")


# ---- what the recording says --------------------------------------------------------------------


def _variant(track: Track, asked: Build | str | None) -> Iterator[Finding]:
    build = _named(track, asked)
    if build is None or not build.known:
        yield from _no_robot(track, asked, build)
        return
    family, of = registry.family_of(build), build_of(track)
    if of is not None and of.family != build.family:
        stranger = next(joint for joint in track.names if joint not in build.names)
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VARIANT,
            message=f"{build.name} has no {stranger}: this is a motion of another robot",
            remedy="Play it on the robot that was taught it.",
        )
        return
    known = frozenset() if family is None else frozenset(family.names)
    worn = hand_joints(build)
    for joint, column in zip(track.names, track.joints_rad.T, strict=True):
        if joint not in build.names and joint not in worn:
            limit = MOVED_RAD if joint in known else None
            yield _stranger(build.name, joint, float(np.ptp(column)), limit)
    if missing := [joint for joint in build.bare.names if joint not in track.names]:
        several = f"{len(missing)} joints of {build.name}"
        yield Finding(
            severity=Severity.NOTE,
            kind=FindingKind.VARIANT,
            value=float(len(missing)),
            message=Text(
                "the track leaves {several} alone: {names}",
                several=several,
                names=Names(tuple(missing)),
            ),
            remedy="Nothing to do: they stay where they are.",
        )


def _no_robot(track: Track, asked: Build | str | None, build: Build | None) -> Iterator[Finding]:
    """Yield the finding if it is not known which robot is meant, or what it is."""
    name = asked if isinstance(asked, str) else track.variant
    yield Finding(
        severity=Severity.ERROR,
        kind=FindingKind.VARIANT,
        message=f"there is no robot {name!r}" if build is None else build.no_stream,
        remedy=f"Known are {', '.join(registry.names())}.",
    )
    if build is None and build_of(track) is None:
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VARIANT,
            value=float(len(track.names)),
            message=Text("no robot has these joints: {names}", names=Names(track.names)),
            remedy="Play it on the robot that was taught it, by that robot's own services.",
        )


def _stranger(robot: str, joint: str, moved: float, limit: float | None) -> Finding:
    """Return the finding that a robot has no such joint; `limit` is None if no robot has it."""
    still = limit is not None and moved <= limit
    return Finding(
        severity=Severity.WARNING if still else Severity.ERROR,
        kind=FindingKind.VARIANT,
        joint=joint,
        value=moved,
        limit=limit or 0.0,
        margin=(limit or 0.0) - moved,
        unit="rad",
        message=Text(
            "{robot} has no {joint}, and the track moves it by {moved}",
            robot=robot,
            joint=joint,
            moved=rad(moved),
        ),
        remedy=Text(
            "Leave it out: {to_build}, for {robot}{forced}.",
            to_build=Act.TO_BUILD,
            robot=robot,
            forced="" if still else Text(", with {force}", force=Act.FORCE),
        ),
    )


def _duration(track: Track) -> Iterator[Finding]:
    value, limit = track.duration_s, MAX_MOTION_S
    if value > limit:
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.DURATION,
            value=value,
            limit=limit,
            margin=limit - value,
            unit="s",
            message=Text(
                "it lasts {value}, and at most {limit} can be played",
                value=seconds(value, 1),
                limit=seconds(limit, 0),
            ),
            remedy=Text(
                "Trim it, or make it faster: {trim}, {speed}.", trim=Act.TRIM, speed=Act.SPEED
            ),
        )


# ---- what the joints can do ---------------------------------------------------------------------


def _joints(subject: _Subject) -> Iterator[Finding]:
    if subject.joints:
        yield from _positions(subject)
        yield from _speeds(subject)
        yield from _accelerations(subject)


def _positions(subject: _Subject) -> Iterator[Finding]:
    for beyond in positions_beyond(subject.values, subject.joints):
        name = subject.joints[beyond.column].name
        yield Finding(
            severity=Severity.ERROR if beyond.by > TOLERANCE_RAD else Severity.WARNING,
            kind=FindingKind.POSITION,
            joint=name,
            time_s=float(subject.times_s[beyond.row]),
            value=beyond.value,
            limit=beyond.limit,
            margin=-beyond.by,
            unit="rad",
            message=Text("{joint} is at {where}", joint=name, where=beyond.message),
            remedy="Teach it again with this joint further from its end, or trim that part away.",
        )


def _protection(subject: _Subject, family: Family) -> Iterator[Finding]:
    """Yield where a position protection would trip, which is before a joint's limit."""
    if not family.protected_rad or not subject.joints:
        return
    anywhere = (-np.inf, np.inf)
    ranges = [family.protected_rad.get(joint.name, anywhere) for joint in subject.joints]
    lower, upper = np.array(ranges).T
    left = left_by_rad(subject.values, lower, upper)
    for row, column in worst_rows(left, np.zeros(len(subject.joints))):
        name, value = subject.joints[column].name, float(subject.values[row, column])
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.POSITION,
            joint=name,
            time_s=float(subject.times_s[row]),
            value=value,
            limit=float(upper[column] if value > upper[column] else lower[column]),
            margin=-float(left[row, column]),
            unit="rad",
            message=Text(
                "{joint} is at {value}, and the position protection trips outside {safe}",
                joint=name,
                value=rad(value, 3),
                safe=Span(float(lower[column]), float(upper[column]), "rad", 3),
            ),
            remedy="Teach it further from the joint's stop, or trim that part away.",
        )


def _speeds(subject: _Subject) -> Iterator[Finding]:
    most = most_played_rad_s(subject.joints)
    for beyond in speeds_beyond(subject.times_s, subject.values, most):
        name = subject.joints[beyond.column].name
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VELOCITY,
            joint=name,
            time_s=float(subject.times_s[beyond.row]),
            value=beyond.value,
            limit=beyond.limit,
            margin=-beyond.by,
            unit="rad/s",
            message=Text("{joint} moves at {speed}", joint=name, speed=beyond.message),
            remedy=Text("Play it slower, or retime it: {retime}.", retime=Act.RETIME),
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
    limit = MAX_PLAYED_RAD_S2
    for row, column in worst_rows(gains, np.full(len(subject.joints), limit)):
        name, value = subject.joints[column].name, float(gains[row, column])
        yield Finding(
            severity=Severity.WARNING,
            kind=FindingKind.ACCELERATION,
            joint=name,
            time_s=float(subject.times_s[row]),
            value=value,
            limit=limit,
            margin=limit - value,
            unit="rad/s2",
            message=Text(
                "{joint} would need {value}; about {limit} can be followed",
                joint=name,
                value=Quantity(value, "rad/s2", 0),
                limit=Quantity(limit, "rad/s2", 0),
            ),
            remedy=Text("Smooth it, or retime it: {retime}.", retime=Act.RETIME),
        )


def _jump(subject: _Subject, robot: _CheckedRobot, start_pose: Pose | None) -> Iterator[Finding]:
    whole = dict(zip(robot.build.names, whole_pose(start_pose, robot.build).tolist(), strict=True))
    far = np.array(
        [
            abs(value - whole.get(joint.name, value))
            for joint, value in zip(subject.joints, subject.values[0].tolist(), strict=True)
        ]
    )
    column = int(far.argmax())
    value = float(far[column])
    if value <= JUMP_RAD:
        return
    needed_s = MINIMUM_JERK_PEAK * value / robot.family.soft_rad_s
    name = subject.joints[column].name
    where = "where the robot stands at ease" if start_pose is None else "where the robot is"
    yield Finding(
        severity=Severity.NOTE if start_pose is None else Severity.WARNING,
        kind=FindingKind.JUMP,
        joint=name,
        time_s=float(subject.times_s[0]),
        value=value,
        limit=JUMP_RAD,
        margin=JUMP_RAD - value,
        unit="rad",
        message=Text("{joint} begins {far} from {where}", joint=name, far=rad(value), where=where),
        remedy=Text(
            "Let the player go there softly first; that takes {needed}.",
            needed=seconds(needed_s, 1),
        ),
    )


# ---- what the body can bear ---------------------------------------------------------------------


def _loads(track: Track, full: Array, robot: _CheckedRobot, payload_kg: float) -> Iterator[Finding]:
    """Yield the effects of weight: on all motors except the legs', and on the balance."""
    if not robot.weighs and not robot.stands:
        return
    every = max(1, int(track.rate_hz / _SLOW_HZ))
    rows = np.unique(np.append(np.arange(0, len(full), every), len(full) - 1))
    times_s, body = track.times_s[rows], robot.body
    frames, load = body.forward(full[rows]), body.weights(payload_kg)
    if robot.weighs:
        motors = robot.motors
        torques = np.abs(body.weight_nm(frames, load))[:, [joint.index for joint in motors]]
        yield from _torques(times_s, torques, motors)
        yield from _heat(times_s, torques, motors)
    if robot.stands:
        margin_m = feet_margin_m(body, frames, body.centre_of_mass_m(frames, load))
        yield from _balance(times_s, margin_m)
        if has_arms(body):
            yield from _leaning(leaning_of(body, times_s, frames, load))


def _torques(times_s: Array, torques: Array, motors: Sequence[Joint]) -> Iterator[Finding]:
    effort = np.array([joint.effort_nm for joint in motors])
    for row, column in worst_rows(torques, NEAR_TORQUE * effort):
        value, limit = float(torques[row, column]), float(effort[column])
        name = motors[column].name
        yield Finding(
            severity=Severity.ERROR if value > limit else Severity.WARNING,
            kind=FindingKind.TORQUE,
            joint=name,
            time_s=float(times_s[row]),
            value=value,
            limit=limit,
            margin=limit - value,
            unit="N.m",
            message=Text(
                "{joint} holds about {value}; it can hold {limit}",
                joint=name,
                value=Quantity(value, "N.m", 0),
                limit=Quantity(limit, "N.m", 0),
            ),
            remedy="Carry less, or teach it with the arm closer to the body.",
        )


def _heat(times_s: Array, torques: Array, motors: Sequence[Joint]) -> Iterator[Finding]:
    mean = np.sqrt(np.square(torques).mean(axis=0, keepdims=True))
    lasting = LASTING_TORQUE * np.array([joint.effort_nm for joint in motors])
    for _, column in worst_rows(mean, lasting):
        value, limit = float(mean[0, column]), float(lasting[column])
        name = motors[column].name
        yield Finding(
            severity=Severity.WARNING,
            kind=FindingKind.THERMAL,
            joint=name,
            time_s=float(times_s[torques[:, column].argmax()]),
            value=value,
            limit=limit,
            margin=limit - value,
            unit="N.m",
            message=Text(
                "{joint} holds about {value} on average; for long it should stay below {limit}",
                joint=name,
                value=Quantity(value, "N.m", 1),
                limit=Quantity(limit, "N.m", 1),
            ),
            remedy="Do not loop it, and let the motor cool between two runs.",
        )


def _balance(times_s: Array, inside_m: Array) -> Iterator[Finding]:
    row = int(inside_m.argmin())
    value = float(inside_m[row])
    if value >= BALANCE_M:
        return
    side = "outside the feet by" if value < 0 else "inside the feet by only"
    away = Quantity(abs(value) * 100, "cm", 1)
    yield Finding(
        severity=Severity.ERROR if value < -BALANCE_M else Severity.WARNING,
        kind=FindingKind.BALANCE,
        time_s=float(times_s[row]),
        value=value,
        limit=BALANCE_M,
        margin=value - BALANCE_M,
        unit="m",
        message=Text("the centre of mass is {side} {away}", side=side, away=away),
        remedy="Carry less, or teach it with the arms closer to the body.",
    )


def _leaning(found: Leaning) -> Iterator[Finding]:
    held = found.held
    if not held.any():
        return
    row = int(np.where(held, found.margins_nm, np.inf).argmin())
    value = float(found.moments_nm[row])
    limits, way = (
        (found.front_limits_nm, "forward") if value > 0 else (found.back_limits_nm, "back")
    )
    limit = float(limits[row])
    yield Finding(
        severity=Severity.WARNING,
        kind=FindingKind.LEANING,
        time_s=float(found.times_s[row]),
        value=value,
        limit=limit,
        margin=float(found.margins_nm[row]),
        unit="N.m",
        message=Text(
            "the arms pull the robot {way} with {value} about its ankles, for {long} "
            "above {limit}, so it leans",
            way=way,
            value=Quantity(abs(value), "N.m", 1),
            limit=Quantity(abs(limit), "N.m", 1),
            long=seconds(found.held_s, 1),
        ),
        remedy="Carry less, or teach it with the arms closer to the body.",
    )


def feet_margin_m(body: Kinematics, frames: Frames, centres_m: Array) -> Array:
    """Return how far the centre of mass is inside the feet's outline, (n,); below 0 outside.

    Down is perpendicular to the soles: the robot stands on all of them.
    """
    feet = body.family.body.feet
    ground = np.stack(standing_axes(body, frames))
    corners = np.stack(
        [body.at(frames, (foot.link, corner)) for foot in feet for corner in foot.corners_m]
    )
    away = np.einsum("gin,cin->gcn", ground, corners - centres_m.T[None])
    # The distance to a convex outline is the minimum, over all directions, of how far it extends
    # there.
    return np.asarray(np.einsum("gd,gcn->dcn", _AROUND, away).max(axis=1).min(axis=0))


# ---- what touches what --------------------------------------------------------------------------


def _touching(track: Track, start_pose: Pose | None, robot: _CheckedRobot) -> Iterator[Finding]:
    try:
        model = ContactModel(robot.family, CLEARANCE_M)
    except MissingExtraError as error:
        yield Finding(
            severity=Severity.NOTE,
            kind=FindingKind.COLLISION,
            message=f"nobody looked whether the robot touches itself: {error}",
            remedy=error.remedy,
        )
        return
    for contact in model.contacts(track, start_pose, robot.build):
        if (finding := _met(contact, robot.body)) is not None:
            yield finding


def _met(contact: Contact, body: Kinematics) -> Finding | None:
    """Return what it means that two links are so near, if anything."""
    hands = [link in body.hands for link in (contact.a, contact.b)]
    touching = contact.distance_m < 0
    if not touching and not any(hands):
        return None
    # Joints are not exactly where they say, and covers give way: so little may be none.
    slight = contact.distance_m >= -(HANDS_MEET_M if all(hands) else SLIGHT_M)
    limit = 0.0 if touching else CLEARANCE_M
    return Finding(
        severity=Severity.WARNING if slight else Severity.ERROR,
        kind=FindingKind.COLLISION if touching else FindingKind.CLEARANCE,
        joint=body.outermost(contact.a, contact.b),
        time_s=contact.time_s,
        value=contact.distance_m,
        limit=limit,
        margin=contact.distance_m - limit,
        unit="m",
        message=Text(
            "{a} meets {b}, {far} deep" if touching else "{a} and {b} are {far} apart",
            a=contact.a,
            b=contact.b,
            far=Quantity(abs(contact.distance_m) * 100, "cm", 1),
        ),
        remedy=Text(
            "Look at it: {show}. Teach it again with more room between the two.", show=Act.SHOW
        ),
    )
