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
from rote.motion.check.limits import (
    MAX_PLAYED_RAD_S2,
    TOLERANCE_RAD,
    compute_distances_outside_rad,
    find_position_violations,
    find_speed_violations,
    find_worst_rows,
    make_gap_findings,
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
"""Links that overlap by no more than this may not really touch; a person has to inspect them."""
HANDS_MEET_M = 0.02
"""Hands may overlap by this much, as in a clap: rubber yields."""
BALANCE_M = 0.02
"""Distance inside the feet's outline that the centre of mass should keep. The legs' balance
controller is not known, so it is an error only if it is this far outside.
"""
SPEED_STEP_RAD_S = 0.4
"""A larger change of speed from one sample to the next is a knock: it is reported."""
NEAR_TORQUE, LASTING_TORQUE = 0.7, 0.4
"""Shares of a motor's maximum torque: for a moment, and on average. This project's estimate."""
# Between two samples, noise of 2 mrad looks like 50 rad/s2; over this time like 2.
_ACCELERATION_WINDOW_S = 0.05
# A step of speed is measured over this time, and at least this many samples, on either side.
_STEP_WINDOW_S, _MIN_STEP_SAMPLES = 0.05, 5
_STEP_ABOVE_NOISE = 8.0  # a real step exceeds this multiple of the median; noise reaches about 5
# With fewer samples a quick motion looks like a step. A robot that reports 50 states a second does
# so only on average, so the limit is lower.
_MIN_STEP_HZ = 47.0
_LOAD_HZ = 25.0  # loads and balance change no faster than a body moves
_ANGLES = np.arange(72) * (2 * np.pi / 72)
_DIRECTIONS = np.stack([np.cos(_ANGLES), np.sin(_ANGLES)])  # on the ground, every 5 degrees

_NO_SHAPES = "self-contact was not checked: the robot's shapes are not known"


class _KnownPart(NamedTuple):
    """A track, limited to the joints that the robot has."""

    joints: tuple[Joint, ...]
    times_s: Array
    joints_rad: Array
    """(n, joints)."""


@dataclass(frozen=True, slots=True)
class _CheckedRobot:
    """The robot for which a track is checked: its build, its family, and the body of the family."""

    build: Build
    family: Family
    body: Kinematics

    @property
    def motors(self) -> list[Joint]:
        """The joints that carry weight and whose torque is known; legs are not among them."""
        joints = self.build.bare.joints
        return [joint for joint in joints if joint.part != "leg" and joint.effort_nm > 0.0]

    @property
    def has_masses(self) -> bool:
        """Whether the loads on its motors can be computed."""
        return any(joint.mass_kg > 0.0 for joint in self.motors)

    @property
    def stands(self) -> bool:
        """Whether it stands on feet that are known, and its masses are known."""
        return self.body.stands(self.build) and bool(self.body.link_masses().masses_kg.any())


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
        raise BadRequestError(f"the payload must be 0 to 20 kg, not {payload_kg:g}")
    robot = _find_robot(track, build)
    known = _select_known_joints(track, robot)
    max_gap_s = None if robot is None else robot.family.max_gap_s
    findings = [
        *_check_build(track, build),
        *_check_duration(track),
        *make_gap_findings(track.times_s, max_gap_s),
    ]
    findings += _check_joint_limits(known)
    if robot is not None:
        # The protection trips before a joint reaches its limit, so its finding replaces that one.
        trips = {finding.joint: finding for finding in _check_protection(known, robot.family)}
        findings = [
            finding
            for finding in findings
            if finding.kind is not FindingKind.POSITION or finding.joint not in trips
        ]
        findings += [*trips.values(), *_note_missing_data(robot, contact=contact)]
        if known.joints:
            poses_rad = robot.body.poses(track, start_pose, robot.build)
            findings += _check_first_pose(known, robot, start_pose)
            findings += _check_loads(track, poses_rad, robot, payload_kg)
            if contact and robot.family.body.shapes:
                findings += _check_contacts(track, start_pose, robot)
    return _make_report(findings)


def _select_build(track: Track, build: Build | str | None) -> Build | None:
    """Return the requested build, or the one that the track names; None if there is none."""
    if isinstance(build, Build):
        return build
    return registry.find_build(build or track.variant)


def _find_robot(track: Track, build: Build | str | None) -> _CheckedRobot | None:
    """Return the robot for which a track is checked; None if no robot has any of its joints."""
    chosen_build = _select_build(track, build) or build_of(track)
    family = None if chosen_build is None else registry.family_of(chosen_build)
    if chosen_build is None or family is None:
        return None
    return _CheckedRobot(chosen_build, family, kinematics_of(family))


def _select_known_joints(track: Track, robot: _CheckedRobot | None) -> _KnownPart:
    joints_of_robot = {} if robot is None else joints_by_name(robot.build)
    joints = tuple(joints_of_robot[name] for name in track.names if name in joints_of_robot)
    columns = track.columns_of([joint.name for joint in joints])
    return _KnownPart(joints, track.times_s, track.joints_rad[:, columns])


def check_contact(
    track: Track,
    start_pose: Pose | None = None,
    build: Build | str | None = None,
    *,
    clearance_m: float = CLEARANCE_M,
) -> CheckReport:
    """Return what `check` finds about contact alone, the slowest check.

    Arguments are those of `check`. With a clearance of 0 links that only come near are not
    reported, which takes a fifth of the time.
    """
    track.require_samples(1)
    robot = _find_robot(track, build)
    if robot is None or not robot.family.body.shapes:
        return _make_report([_make_not_checked_note(FindingKind.COLLISION, _NO_SHAPES)])
    return _make_report(list(_check_contacts(track, start_pose, robot, clearance_m)))


def check_gaps(times_s: Array, *, most_s: float | None = None) -> CheckReport:
    """Return what `check` finds about gaps in a recording alone; `times_s` is (n,).

    A gap longer than `most_s` is an error; by default, that depends on the usual distance.
    """
    return _make_report(list(make_gap_findings(times_s, most_s)))


def check_joints(track: Track, build: Build | str | None = None) -> CheckReport:
    """Return what `check` finds about the joints' range, speed and acceleration alone."""
    track.require_samples(1)
    return _make_report(
        list(_check_joint_limits(_select_known_joints(track, _find_robot(track, build))))
    )


def _make_report(findings: list[Finding]) -> CheckReport:
    return CheckReport(tuple(worst_first(findings)))


def _make_not_checked_note(kind: FindingKind, message: str) -> Finding:
    """Return a note that something was not checked."""
    remedy = "Play it slowly at first, with the robot suspended, lying down or clear of everything."
    return Finding(Severity.NOTE, message, remedy, kind=kind)


def _note_missing_data(robot: _CheckedRobot, *, contact: bool) -> Iterator[Finding]:
    """Yield one note that names all checks skipped because data is missing."""
    missing: dict[str, FindingKind] = {}
    if not robot.has_masses:
        missing["weight"] = FindingKind.TORQUE
    if not robot.stands:
        missing["balance"] = FindingKind.BALANCE
    if contact and not robot.family.body.shapes:
        missing["contact"] = FindingKind.COLLISION
    if list(missing) == ["contact"]:
        yield _make_not_checked_note(FindingKind.COLLISION, _NO_SHAPES)
    elif missing:
        *others, last = missing
        subject = f"{', '.join(others)} and {last} were" if others else f"{last} was"
        message = f"{subject} not checked: there is no data for {a_robot(robot.family)}"
        yield _make_not_checked_note(missing[last], message)


# ---- the recording ------------------------------------------------------------------------------


def _check_build(track: Track, requested: Build | str | None) -> Iterator[Finding]:
    build = _select_build(track, requested)
    if build is None or not build.known:
        yield from _make_unknown_robot_findings(track, requested, build)
        return
    family, track_build = registry.family_of(build), build_of(track)
    if track_build is not None and track_build.family != build.family:
        unknown = next(joint for joint in track.names if joint not in build.names)
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VARIANT,
            message=f"{build.name} has no {unknown}: this is a motion of another robot",
            remedy="Play it on the robot that was taught it.",
        )
        return
    family_names = frozenset() if family is None else frozenset(family.names)
    hand_names = hand_joints(build)
    for joint, column in zip(track.names, track.joints_rad.T, strict=True):
        if joint not in build.names and joint not in hand_names:
            limit = MOVED_RAD if joint in family_names else None
            yield _make_unknown_joint_finding(build.name, joint, float(np.ptp(column)), limit)
    if missing := [joint for joint in build.bare.names if joint not in track.names]:
        several = f"{len(missing)} joints of {build.name}"
        yield Finding(
            severity=Severity.NOTE,
            kind=FindingKind.VARIANT,
            value=float(len(missing)),
            message=Text(
                "the track does not move {several}: {names}",
                several=several,
                names=Names(tuple(missing)),
            ),
            remedy="Nothing to do: they stay where they are.",
        )


def _make_unknown_robot_findings(
    track: Track, requested: Build | str | None, build: Build | None
) -> Iterator[Finding]:
    """Yield the findings for a track whose robot is unknown or cannot be streamed to."""
    name = requested if isinstance(requested, str) else track.variant
    yield Finding(
        severity=Severity.ERROR,
        kind=FindingKind.VARIANT,
        message=f"there is no robot {name!r}" if build is None else build.no_stream,
        remedy=f"Known robots: {', '.join(registry.names())}.",
    )
    if build is None and build_of(track) is None:
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VARIANT,
            value=float(len(track.names)),
            message=Text("no robot has these joints: {names}", names=Names(track.names)),
            remedy="Play it on the robot that was taught it, by that robot's own services.",
        )


def _make_unknown_joint_finding(
    robot: str, joint: str, moved: float, limit: float | None
) -> Finding:
    """Return the finding that the robot lacks a joint, which the track moves by `moved` rad.

    A joint of another build of its family may move by `limit`; for any other joint that is None.
    """
    is_still = limit is not None and moved <= limit
    return Finding(
        severity=Severity.WARNING if is_still else Severity.ERROR,
        kind=FindingKind.VARIANT,
        joint=joint,
        value=moved,
        limit=limit or 0.0,
        margin=(limit or 0.0) - moved,
        unit="rad",
        message=Text(
            "{robot} has no {joint}, but the track moves it by {moved}",
            robot=robot,
            joint=joint,
            moved=rad(moved),
        ),
        remedy=Text(
            "Remove this joint: {to_build}, for {robot}{forced}.",
            to_build=Act.TO_BUILD,
            robot=robot,
            forced="" if is_still else Text(", with {force}", force=Act.FORCE),
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
                "the motion lasts {value}, but at most {limit} can be played",
                value=seconds(value, 1),
                limit=seconds(limit, 0),
            ),
            remedy=Text(
                "Trim it, or make it faster: {trim}, {speed}.", trim=Act.TRIM, speed=Act.SPEED
            ),
        )


# ---- joint limits -------------------------------------------------------------------------------


def _check_joint_limits(known: _KnownPart) -> Iterator[Finding]:
    if known.joints:
        yield from _check_positions(known)
        yield from _check_speeds(known)
        acceleration_findings = list(_check_accelerations(known))
        yield from acceleration_findings
        reported = {finding.joint for finding in acceleration_findings}
        yield from (step for step in _check_speed_steps(known) if step.joint not in reported)


def _check_positions(known: _KnownPart) -> Iterator[Finding]:
    for violation in find_position_violations(known.joints_rad, known.joints):
        name = known.joints[violation.column].name
        yield Finding(
            severity=Severity.ERROR if violation.excess > TOLERANCE_RAD else Severity.WARNING,
            kind=FindingKind.POSITION,
            joint=name,
            time_s=float(known.times_s[violation.row]),
            value=violation.value,
            limit=violation.limit,
            margin=-violation.excess,
            unit="rad",
            message=Text("{joint} is at {where}", joint=name, where=violation.message),
            remedy="Teach it again with this joint further from its limit, or trim that part away.",
        )


def _check_protection(known: _KnownPart, family: Family) -> Iterator[Finding]:
    """Yield a finding for each joint that would trip the robot's position protection."""
    if not family.protected_rad or not known.joints:
        return
    unlimited = (-np.inf, np.inf)
    ranges = [family.protected_rad.get(joint.name, unlimited) for joint in known.joints]
    lower, upper = np.array(ranges).T
    outside_rad = compute_distances_outside_rad(known.joints_rad, lower, upper)
    for row, column in find_worst_rows(outside_rad, np.zeros(len(known.joints))):
        name, value = known.joints[column].name, float(known.joints_rad[row, column])
        low, high = float(lower[column]), float(upper[column])
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.POSITION,
            joint=name,
            time_s=float(known.times_s[row]),
            value=value,
            limit=high if value > high else low,
            margin=-float(outside_rad[row, column]),
            unit="rad",
            message=Text(
                "{joint} is at {value}, but the position protection trips outside {safe}",
                joint=name,
                value=rad(value, 3),
                safe=Span(low, high, "rad", 3),
            ),
            remedy="Teach it again with this joint further from its limit, or trim that part away.",
        )


def _check_speeds(known: _KnownPart) -> Iterator[Finding]:
    limits_rad_s = playback_limits_rad_s(known.joints)
    for violation in find_speed_violations(known.times_s, known.joints_rad, limits_rad_s):
        name = known.joints[violation.column].name
        yield Finding(
            severity=Severity.ERROR,
            kind=FindingKind.VELOCITY,
            joint=name,
            time_s=float(known.times_s[violation.row]),
            value=violation.value,
            limit=violation.limit,
            margin=-violation.excess,
            unit="rad/s",
            message=Text("{joint} moves at {speed}", joint=name, speed=violation.message),
            remedy=Text("Play it slower, or retime it: {retime}.", retime=Act.RETIME),
        )


def _check_accelerations(known: _KnownPart) -> Iterator[Finding]:
    if len(known.times_s) < 3:
        return
    window_s = max(_ACCELERATION_WINDOW_S, float(np.median(np.diff(known.times_s))))
    before, after = (
        sample(known.times_s, known.joints_rad, known.times_s + shift_s, Interpolation.LINEAR)
        for shift_s in (-window_s, window_s)
    )
    # The second difference over the window: between two samples, noise would dominate.
    accelerations = np.abs(after - 2 * known.joints_rad + before) / window_s**2
    limit = MAX_PLAYED_RAD_S2
    for row, column in find_worst_rows(accelerations, np.full(len(known.joints), limit)):
        name, value = known.joints[column].name, float(accelerations[row, column])
        yield Finding(
            severity=Severity.WARNING,
            kind=FindingKind.ACCELERATION,
            joint=name,
            time_s=float(known.times_s[row]),
            value=value,
            limit=limit,
            margin=limit - value,
            unit="rad/s2",
            message=Text(
                "{joint} would need {value}; its motor can follow about {limit}",
                joint=name,
                value=Quantity(value, "rad/s2", 0),
                limit=Quantity(limit, "rad/s2", 0),
            ),
            remedy=Text("Smooth it, or retime it: {retime}.", retime=Act.RETIME),
        )


def _check_speed_steps(known: _KnownPart) -> Iterator[Finding]:
    """Yield a note for each joint whose speed changes from one sample to the next, as at a cut.

    At each sample, one parabola is fitted to the samples before it and one to those after it. In a
    smooth motion both have the same speed there, however high the acceleration.
    """
    rate_hz = (len(known.times_s) - 1) / max(float(np.ptp(known.times_s)), 1e-9)
    side_samples = max(_MIN_STEP_SAMPLES, round(_STEP_WINDOW_S * rate_hz))
    if len(known.times_s) <= 2 * side_samples or rate_hz < _MIN_STEP_HZ:
        return
    times_s = np.linspace(known.times_s[0], known.times_s[-1], len(known.times_s))
    values = sample(known.times_s, known.joints_rad, times_s, Interpolation.CUBIC)
    # A parabola through the sample itself: values - centre = speed * distance + c * distance**2.
    # The first row of the pseudo-inverse gives its speed, as a weighted sum of the values.
    powers = np.arange(1.0, side_samples + 1)[:, None] ** np.array([1.0, 2.0])
    weights = np.linalg.pinv(powers)[0]
    centre = values[side_samples:-side_samples]
    after, before = np.zeros_like(centre), np.zeros_like(centre)
    count = len(centre)
    for distance, weight in enumerate(weights.tolist(), start=1):
        later, earlier = side_samples + distance, side_samples - distance
        after += weight * rate_hz * (values[later : later + count] - centre)
        before -= weight * rate_hz * (values[earlier : earlier + count] - centre)
    steps = np.abs(after - before)
    noise = _STEP_ABOVE_NOISE * np.median(steps, axis=0)
    for row, column in find_worst_rows(steps, np.maximum(noise, SPEED_STEP_RAD_S)):
        name, value = known.joints[column].name, float(steps[row, column])
        yield Finding(
            severity=Severity.NOTE,
            kind=FindingKind.ACCELERATION,
            joint=name,
            time_s=float(times_s[side_samples + row]),
            value=value,
            limit=SPEED_STEP_RAD_S,
            margin=SPEED_STEP_RAD_S - value,
            unit="rad/s",
            message=Text(
                "{joint} changes its speed by {value} from one sample to the next",
                joint=name,
                value=Quantity(value, "rad/s", 2),
            ),
            remedy=Text("Smooth it, or retime it: {retime}.", retime=Act.RETIME),
        )


def _check_first_pose(
    known: _KnownPart, robot: _CheckedRobot, start_pose: Pose | None
) -> Iterator[Finding]:
    current_rad = dict(
        zip(robot.build.names, whole_pose(start_pose, robot.build).tolist(), strict=True)
    )
    distances_rad = np.array(
        [
            abs(value - current_rad.get(joint.name, value))
            for joint, value in zip(known.joints, known.joints_rad[0].tolist(), strict=True)
        ]
    )
    column = int(distances_rad.argmax())
    value = float(distances_rad[column])
    if value <= JUMP_RAD:
        return
    needed_s = MINIMUM_JERK_PEAK * value / robot.family.soft_rad_s
    name = known.joints[column].name
    where = "the robot's rest pose" if start_pose is None else "the robot's current pose"
    yield Finding(
        severity=Severity.NOTE if start_pose is None else Severity.WARNING,
        kind=FindingKind.JUMP,
        joint=name,
        time_s=float(known.times_s[0]),
        value=value,
        limit=JUMP_RAD,
        margin=JUMP_RAD - value,
        unit="rad",
        message=Text("{joint} begins {far} from {where}", joint=name, far=rad(value), where=where),
        remedy=Text(
            "Let the player move there softly first; that takes {needed}.",
            needed=seconds(needed_s, 1),
        ),
    )


# ---- loads and balance --------------------------------------------------------------------------


def _check_loads(
    track: Track, poses_rad: Array, robot: _CheckedRobot, payload_kg: float
) -> Iterator[Finding]:
    """Yield findings about torque and heat of all motors except the legs', and about balance."""
    if not robot.has_masses and not robot.stands:
        return
    step = max(1, int(track.rate_hz / _LOAD_HZ))
    rows = np.unique(np.append(np.arange(0, len(poses_rad), step), len(poses_rad) - 1))
    times_s, body = track.times_s[rows], robot.body
    frames, load = body.forward(poses_rad[rows]), body.link_masses(payload_kg)
    if robot.has_masses:
        motors = robot.motors
        torques = np.abs(body.gravity_torque_nm(frames, load))[:, [joint.index for joint in motors]]
        yield from _check_torques(times_s, torques, motors)
        yield from _check_heat(times_s, torques, motors)
    if robot.stands:
        margins_m = compute_feet_margins_m(body, frames, body.centre_of_mass_m(frames, load))
        yield from _check_balance(times_s, margins_m)
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
    rms_nm = np.sqrt(np.square(torques).mean(axis=0, keepdims=True))
    limits_nm = LASTING_TORQUE * np.array([joint.effort_nm for joint in motors])
    for _, column in find_worst_rows(rms_nm, limits_nm):
        value, limit = float(rms_nm[0, column]), float(limits_nm[column])
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
                "{joint} holds about {value} on average; over a long time it should stay below "
                "{limit}",
                joint=name,
                value=Quantity(value, "N.m", 1),
                limit=Quantity(limit, "N.m", 1),
            ),
            remedy="Do not loop it, and let the motor cool between two runs.",
        )


def _check_balance(times_s: Array, margins_m: Array) -> Iterator[Finding]:
    row = int(margins_m.argmin())
    value = float(margins_m[row])
    if value >= BALANCE_M:
        return
    side = "outside the feet by" if value < 0 else "inside the feet by only"
    distance = Quantity(abs(value) * 100, "cm", 1)
    yield Finding(
        severity=Severity.ERROR if value < -BALANCE_M else Severity.WARNING,
        kind=FindingKind.BALANCE,
        time_s=float(times_s[row]),
        value=value,
        limit=BALANCE_M,
        margin=value - BALANCE_M,
        unit="m",
        message=Text("the centre of mass is {side} {away}", side=side, away=distance),
        remedy="Carry less, or teach it with the arms closer to the body.",
    )


def _check_leaning(leaning: Leaning) -> Iterator[Finding]:
    is_held = leaning.held
    if not is_held.any():
        return
    row = int(np.where(is_held, leaning.margins_nm, np.inf).argmin())
    value = float(leaning.moments_nm[row])
    limits, direction = (
        (leaning.front_limits_nm, "forward") if value > 0 else (leaning.back_limits_nm, "back")
    )
    limit = float(limits[row])
    yield Finding(
        severity=Severity.WARNING,
        kind=FindingKind.LEANING,
        time_s=float(leaning.times_s[row]),
        value=value,
        limit=limit,
        margin=float(leaning.margins_nm[row]),
        unit="N.m",
        message=Text(
            "the arms pull the robot {direction} with {value} about its ankles, for {long} "
            "above {limit}, so it leans",
            direction=direction,
            value=Quantity(abs(value), "N.m", 1),
            limit=Quantity(abs(limit), "N.m", 1),
            long=seconds(leaning.held_s, 1),
        ),
        remedy="Carry less, or teach it with the arms closer to the body.",
    )


def compute_feet_margins_m(body: Kinematics, frames: Frames, centres_m: Array) -> Array:
    """Return how far the centre of mass is inside the feet's outline, (n,); below 0 outside.

    Down is perpendicular to the soles: the robot stands on all of them.
    """
    feet = body.family.body.feet
    ground_axes = np.stack(standing_axes(body, frames))
    corners = np.stack(
        [body.at(frames, (foot.link, corner)) for foot in feet for corner in foot.corners_m]
    )
    offsets = np.einsum("gin,cin->gcn", ground_axes, corners - centres_m.T[None])
    # Seen from a point, a convex outline extends to some distance in each direction; the smallest
    # of these distances is that to its nearest edge.
    return np.asarray(np.einsum("gd,gcn->dcn", _DIRECTIONS, offsets).max(axis=1).min(axis=0))


# ---- contact ------------------------------------------------------------------------------------


def _check_contacts(
    track: Track, start_pose: Pose | None, robot: _CheckedRobot, clearance_m: float = CLEARANCE_M
) -> Iterator[Finding]:
    try:
        model = ContactModel(robot.family, clearance_m)
    except MissingExtraError as error:
        yield Finding(
            severity=Severity.NOTE,
            kind=FindingKind.COLLISION,
            message=f"self-contact was not checked: {error}",
            remedy=error.remedy,
        )
        return
    for contact in model.find_contacts(track, start_pose, robot.build):
        if (finding := _make_contact_finding(contact, robot.body)) is not None:
            yield finding


def _make_contact_finding(contact: Contact, body: Kinematics) -> Finding | None:
    """Return the finding about two links; None if they do not touch and neither is a hand."""
    are_hands = [link in body.hands for link in (contact.a, contact.b)]
    is_touching = contact.distance_m < 0
    if not is_touching and not any(are_hands):
        return None
    # Reported joint angles are inexact and covers yield: a slight overlap may be no contact.
    is_slight = contact.distance_m >= -(HANDS_MEET_M if all(are_hands) else SLIGHT_M)
    limit = 0.0 if is_touching else CLEARANCE_M
    return Finding(
        severity=Severity.WARNING if is_slight else Severity.ERROR,
        kind=FindingKind.COLLISION if is_touching else FindingKind.CLEARANCE,
        joint=body.outermost_joint(contact.a, contact.b),
        time_s=contact.time_s,
        value=contact.distance_m,
        limit=limit,
        margin=contact.distance_m - limit,
        unit="m",
        message=Text(
            "{a} and {b} overlap by {far}" if is_touching else "{a} and {b} are {far} apart",
            a=contact.a,
            b=contact.b,
            far=Quantity(abs(contact.distance_m) * 100, "cm", 1),
        ),
        remedy=Text(
            "Look at it: {show}. Then teach it again with more room between the two.", show=Act.SHOW
        ),
    )
