"""Checks whether a track may be played; each problem has a number and a remedy.

Each kind of finding is reported once per joint, at its worst moment. Position, speed, gaps and the
build are facts. Acceleration, torque, heat, balance and contact are estimates, for a robot that
stands upright and carries only `payload_kg` in each hand. What cannot be estimated, because the
family's data has no masses, feet or shapes, is reported as a note.
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
from rote.motion.body.balance import Leaning, compute_leaning, has_arms, standing_axes
from rote.motion.body.contact import Contact, ContactModel
from rote.motion.body.kinematics import Frames, Kinematics, Pose, kinematics_of, whole_pose
from rote.motion.check.gaps import gap_findings
from rote.motion.check.limits import (
    MAX_PLAYED_RAD_S2,
    TOLERANCE_RAD,
    distance_outside_rad,
    find_position_violations,
    find_speed_violations,
    find_worst_rows,
    playback_limits_rad_s,
)
from rote.motion.check.report import CheckReport
from rote.motion.interpolate import MINIMUM_JERK_PEAK, sample
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, hand_joints, joints_by_name
from rote.text import Act, Names, Quantity, Span, Text, rad, seconds

__all__ = ["check", "check_contact", "check_gaps", "check_joints"]

JUMP_RAD = 0.05
"""A first pose this close to the current one needs no approach."""
CLEARANCE_M = 0.015
"""A hand nearer than this may touch: a joint error of 0.03 rad moves it that far."""
SLIGHT_M = 0.015
"""An overlap up to this may be no contact at all; a person has to inspect it."""
HANDS_MEET_M = 0.02
"""Hands may overlap by this much, as in a clap: rubber yields."""
BALANCE_M = 0.02
"""How far inside the feet the centre of mass should stay. The legs' balance controller is not
known, so only this far outside the feet is an error.
"""
NEAR_TORQUE, LASTING_TORQUE = 0.7, 0.4
"""Shares of a motor's maximum torque: for a moment, and on average. This project's estimate."""
# Between two samples, noise of 2 mrad looks like 50 rad/s2; over this time like 2.
_ACCELERATION_WINDOW_S = 0.05
_SLOW_HZ = 25.0  # weight and balance change no faster than a body does
_ANGLES = np.arange(72) * (2 * np.pi / 72)
_AROUND = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])
_ORDER = tuple(Severity)

_NO_SHAPES = "self-contact was not checked: the robot's shapes are not known"


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
    def has_masses(self) -> bool:
        """Whether the loads on its motors can be computed."""
        return any(joint.mass_kg > 0.0 for joint in self.motors)

    @property
    def stands(self) -> bool:
        """Whether its feet and its masses are known."""
        return self.body.stands(self.build) and bool(self.body.weights().masses_kg.any())


def check(
    track: Track,
    *,
    start_pose: Pose | None = None,
    build: Build | str | None = None,
    contact: bool = True,
    payload_kg: float = 0.0,
) -> CheckReport:
    """Return all problems with playing `track`, the worst first.

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
    robot = _find_robot(track, build)
    subject = _select_known_joints(track, robot)
    most_s = None if robot is None else robot.family.max_gap_s
    found = [
        *_check_build(track, build),
        *_check_duration(track),
        *gap_findings(track.times_s, most_s),
    ]
    found += _check_joint_limits(subject)
    if robot is not None:
        tripping = {finding.joint: finding for finding in _check_protection(subject, robot.family)}
        found = [f for f in found if f.kind is not FindingKind.POSITION or f.joint not in tripping]
        found += [*tripping.values(), *_note_missing_data(robot, contact=contact)]
        if subject.joints:
            full = robot.body.poses(track, start_pose, robot.build)
            found += _check_first_pose(subject, robot, start_pose)
            found += _check_loads(track, full, robot, payload_kg)
            if contact and robot.family.body.shapes:
                found += _contact_findings(track, start_pose, robot)
    return _make_report(found)


def _select_build(track: Track, build: Build | str | None) -> Build | None:
    """Return the requested build, or the one that the track names; None if there is none."""
    if isinstance(build, Build):
        return build
    return registry.find_build(build or track.variant)


def _find_robot(track: Track, build: Build | str | None) -> _CheckedRobot | None:
    """Return what a track is checked against; None if no robot has any of its joints."""
    found = _select_build(track, build) or build_of(track)
    family = None if found is None else registry.family_of(found)
    if found is None or family is None:
        return None
    return _CheckedRobot(found, family, kinematics_of(family))


def _select_known_joints(track: Track, robot: _CheckedRobot | None) -> _Subject:
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
    robot = _find_robot(track, build)
    if robot is None or not robot.family.body.shapes:
        return _make_report([_not_checked_note(FindingKind.COLLISION, _NO_SHAPES)])
    return _make_report(list(_contact_findings(track, start_pose, robot)))


def check_gaps(times_s: Array, *, most_s: float | None = None) -> CheckReport:
    """Return what `check` finds about gaps in a recording alone; `times_s` is (n,).

    With `most_s`, longer gaps are errors, whatever the usual distance of samples.
    """
    return _make_report(list(gap_findings(times_s, most_s)))


def check_joints(track: Track, build: Build | str | None = None) -> CheckReport:
    """Return what `check` finds about the joints' range, speed and acceleration alone."""
    track.require_samples(1)
    return _make_report(
        list(_check_joint_limits(_select_known_joints(track, _find_robot(track, build))))
    )


def _make_report(found: list[Finding]) -> CheckReport:
    return CheckReport(tuple(worst_first(found)))


def _not_checked_note(kind: FindingKind, message: str) -> Finding:
    """Return a note that something was not checked."""
    remedy = "Play it while the robot hangs or lies, or is clear of everything, slowly at first."
    return Finding(Severity.NOTE, message, remedy, kind=kind)


def _note_missing_data(robot: _CheckedRobot, *, contact: bool) -> Iterator[Finding]:
    """Yield one note that names all checks skipped because data is missing."""
    missing = {} if robot.has_masses else {"weight": FindingKind.TORQUE}
    missing |= {} if robot.stands else {"balance": FindingKind.BALANCE}
    missing |= (
        {"contact": FindingKind.COLLISION} if contact and not robot.family.body.shapes else {}
    )
    if list(missing) == ["contact"]:
        yield _not_checked_note(FindingKind.COLLISION, _NO_SHAPES)
    elif missing:
        *before, last = missing
        several = f"{', '.join(before)} and {last}" if before else last
        were = f"{several} {'were' if before else 'was'} not checked"
        yield _not_checked_note(missing[last], f"{were}: not known for {a_robot(robot.family)}")


# ---- the recording ------------------------------------------------------------------------------


def _check_build(track: Track, requested: Build | str | None) -> Iterator[Finding]:
    build = _select_build(track, requested)
    if build is None or not build.known:
        yield from _unknown_robot_findings(track, requested, build)
        return
    family, of = registry.family_of(build), build_of(track)
    if of is not None and of.family != build.family:
        unknown = next(joint for joint in track.names if joint not in build.names)
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VARIANT,
            message=f"{build.name} has no {unknown}: this is a motion of another robot",
            remedy="Play it on the robot that was taught it.",
        )
        return
    known = frozenset() if family is None else frozenset(family.names)
    hand_names = hand_joints(build)
    for joint, column in zip(track.names, track.joints_rad.T, strict=True):
        if joint not in build.names and joint not in hand_names:
            limit = MOVED_RAD if joint in known else None
            yield _unknown_joint_finding(build.name, joint, float(np.ptp(column)), limit)
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


def _unknown_robot_findings(
    track: Track, requested: Build | str | None, build: Build | None
) -> Iterator[Finding]:
    """Yield the findings for a track whose robot is unknown or cannot be streamed to."""
    name = requested if isinstance(requested, str) else track.variant
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


def _unknown_joint_finding(robot: str, joint: str, moved: float, limit: float | None) -> Finding:
    """Return the finding that the robot lacks a joint; `limit` is None if no robot has it."""
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


def _check_duration(track: Track) -> Iterator[Finding]:
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


# ---- joint limits -------------------------------------------------------------------------------


def _check_joint_limits(subject: _Subject) -> Iterator[Finding]:
    if subject.joints:
        yield from _check_positions(subject)
        yield from _check_speeds(subject)
        yield from _check_accelerations(subject)


def _check_positions(subject: _Subject) -> Iterator[Finding]:
    for violation in find_position_violations(subject.values, subject.joints):
        name = subject.joints[violation.column].name
        yield Finding(
            severity=Severity.ERROR if violation.excess > TOLERANCE_RAD else Severity.WARNING,
            kind=FindingKind.POSITION,
            joint=name,
            time_s=float(subject.times_s[violation.row]),
            value=violation.value,
            limit=violation.limit,
            margin=-violation.excess,
            unit="rad",
            message=Text("{joint} is at {where}", joint=name, where=violation.message),
            remedy="Teach it again with this joint further from its end, or trim that part away.",
        )


def _check_protection(subject: _Subject, family: Family) -> Iterator[Finding]:
    """Yield where the position protection would trip, which is before a joint's limit."""
    if not family.protected_rad or not subject.joints:
        return
    anywhere = (-np.inf, np.inf)
    ranges = [family.protected_rad.get(joint.name, anywhere) for joint in subject.joints]
    lower, upper = np.array(ranges).T
    left = distance_outside_rad(subject.values, lower, upper)
    for row, column in find_worst_rows(left, np.zeros(len(subject.joints))):
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


def _check_speeds(subject: _Subject) -> Iterator[Finding]:
    most = playback_limits_rad_s(subject.joints)
    for violation in find_speed_violations(subject.times_s, subject.values, most):
        name = subject.joints[violation.column].name
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VELOCITY,
            joint=name,
            time_s=float(subject.times_s[violation.row]),
            value=violation.value,
            limit=violation.limit,
            margin=-violation.excess,
            unit="rad/s",
            message=Text("{joint} moves at {speed}", joint=name, speed=violation.message),
            remedy=Text("Play it slower, or retime it: {retime}.", retime=Act.RETIME),
        )


def _check_accelerations(subject: _Subject) -> Iterator[Finding]:
    if len(subject.times_s) < 3:
        return
    window_s = max(_ACCELERATION_WINDOW_S, float(np.median(np.diff(subject.times_s))))
    before, after = (
        sample(subject.times_s, subject.values, subject.times_s + shift_s, Interpolation.LINEAR)
        for shift_s in (-window_s, window_s)
    )
    gains = np.abs(after - 2 * subject.values + before) / window_s**2
    limit = MAX_PLAYED_RAD_S2
    for row, column in find_worst_rows(gains, np.full(len(subject.joints), limit)):
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


def _check_first_pose(
    subject: _Subject, robot: _CheckedRobot, start_pose: Pose | None
) -> Iterator[Finding]:
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


# ---- loads and balance --------------------------------------------------------------------------


def _check_loads(
    track: Track, full: Array, robot: _CheckedRobot, payload_kg: float
) -> Iterator[Finding]:
    """Yield the effects of weight: on all motors except the legs', and on the balance."""
    if not robot.has_masses and not robot.stands:
        return
    every = max(1, int(track.rate_hz / _SLOW_HZ))
    rows = np.unique(np.append(np.arange(0, len(full), every), len(full) - 1))
    times_s, body = track.times_s[rows], robot.body
    frames, load = body.forward(full[rows]), body.weights(payload_kg)
    if robot.has_masses:
        motors = robot.motors
        torques = np.abs(body.gravity_torque_nm(frames, load))[:, [joint.index for joint in motors]]
        yield from _check_torques(times_s, torques, motors)
        yield from _check_heat(times_s, torques, motors)
    if robot.stands:
        margin_m = feet_margin_m(body, frames, body.centre_of_mass_m(frames, load))
        yield from _check_balance(times_s, margin_m)
        if has_arms(body):
            yield from _check_leaning(compute_leaning(body, times_s, frames, load))


def _check_torques(times_s: Array, torques: Array, motors: Sequence[Joint]) -> Iterator[Finding]:
    effort = np.array([joint.effort_nm for joint in motors])
    for row, column in find_worst_rows(torques, NEAR_TORQUE * effort):
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


def _check_heat(times_s: Array, torques: Array, motors: Sequence[Joint]) -> Iterator[Finding]:
    mean = np.sqrt(np.square(torques).mean(axis=0, keepdims=True))
    lasting = LASTING_TORQUE * np.array([joint.effort_nm for joint in motors])
    for _, column in find_worst_rows(mean, lasting):
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


def _check_balance(times_s: Array, inside_m: Array) -> Iterator[Finding]:
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


def _check_leaning(found: Leaning) -> Iterator[Finding]:
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


# ---- contact ------------------------------------------------------------------------------------


def _contact_findings(
    track: Track, start_pose: Pose | None, robot: _CheckedRobot
) -> Iterator[Finding]:
    try:
        model = ContactModel(robot.family, CLEARANCE_M)
    except MissingExtraError as error:
        yield Finding(
            severity=Severity.NOTE,
            kind=FindingKind.COLLISION,
            message=f"self-contact was not checked: {error}",
            remedy=error.remedy,
        )
        return
    for contact in model.find_contacts(track, start_pose, robot.build):
        if (finding := _contact_finding(contact, robot.body)) is not None:
            yield finding


def _contact_finding(contact: Contact, body: Kinematics) -> Finding | None:
    """Return the finding about two links this near, if there is one."""
    hands = [link in body.hands for link in (contact.a, contact.b)]
    touching = contact.distance_m < 0
    if not touching and not any(hands):
        return None
    # Reported joint angles are inexact and covers yield: a slight overlap may be no contact.
    slight = contact.distance_m >= -(HANDS_MEET_M if all(hands) else SLIGHT_M)
    limit = 0.0 if touching else CLEARANCE_M
    return Finding(
        severity=Severity.WARNING if slight else Severity.ERROR,
        kind=FindingKind.COLLISION if touching else FindingKind.CLEARANCE,
        joint=body.outermost_joint(contact.a, contact.b),
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
