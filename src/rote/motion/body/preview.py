"""Simulates how a robot would play a track, with mujoco. Needs the extra `physics`.

The track drives a servo in each joint with the motors' real torque. With a fixed base the body is
held, as on a gantry. With a free base the robot stands on its own feet with stiff legs: the
controller that balances a real robot is not simulated, so a robot that stays upright here needs no
balancing at all.
"""

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError
from rote.findings import Finding, FindingKind, Severity, worst_first
from rote.messages import Interpolation
from rote.model.family import Build, Family, Joint
from rote.motion.body.kinematics import Kinematics, kinematics_of
from rote.motion.body.preview_body import (
    CANCELLED_SHARE,
    FLOOR,
    STEP_S,
    PreviewBody,
    choose_gains,
    compile_body,
)
from rote.motion.interpolate import sample
from rote.motion.track import Array, Track
from rote.motion.track_build import a_robot, build_of, family_of, joints_by_name
from rote.text import Act, Text, rad, seconds

Base = Literal["fixed", "free"]

FOLLOWS_RAD, LOST_RAD = 0.1, 0.5
"""A joint further from its target than the first follows badly; than the second, not at all."""
MAX_SATURATED_SHARE = 0.1
"""A motor may be at its full torque for a moment, but not for a larger share of the time."""
FALLEN_RAD = 0.6
"""A robot that leans further does not recover."""
MAX_S = 600.0

_SETTLE_S, _FALL_S = 1.0, 1.0  # time to settle in the first pose, and to fall after the last
_ACHIEVED_EVERY = 5  # steps from one sample of the achieved track to the next: 100 Hz
_GRAVITY_EVERY = 10  # steps from one computation of the gravity torques to the next
_FULL_TORQUE_SHARE = 1.0 - 1e-6  # of the maximum torque; rounding makes it a little less


@dataclass(frozen=True, slots=True, kw_only=True)
class JointPreview:
    """How one joint behaved."""

    joint: str
    rms_error_rad: float
    max_error_rad: float
    max_error_at_s: float
    saturated_share: float
    """The share of the time at which the motor gave its full torque, 0 to 1."""
    saturated_at_s: float | None
    """When it first gave its full torque, on the clock of the track; None if never."""
    peak_torque_nm: float
    effort_nm: float
    """Its maximum torque."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Touch:
    """Two links that touched, or a link and the floor."""

    a: str
    b: str
    first_s: float
    depth_m: float
    """Maximum depth to which one was pressed into the other; real links are hard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """The result of a preview. All times are on the clock of the track, whatever the speed."""

    base: Base
    speed: float
    payload_kg: float
    duration_s: float
    """How long the motion took at this speed."""
    joints: tuple[JointPreview, ...]
    contacts: tuple[Touch, ...]
    """In the order they happened."""
    upright: bool | None
    """Whether the robot never fell; None if the base is fixed."""
    most_tilt_rad: float
    fell_at_s: float | None
    real_time_factor: float | None
    """Seconds of motion per second of computing; None if no clock was given."""
    findings: tuple[Finding, ...]
    achieved: Track
    """The simulated motion, at 100 Hz."""

    @property
    def ok(self) -> bool:
        """Whether it was played without errors and without a fall."""
        errors = [finding for finding in self.findings if finding.severity is Severity.ERROR]
        return not errors and self.upright is not False

    @property
    def worst(self) -> JointPreview:
        """The joint that was furthest from its target."""
        return max(self.joints, key=lambda joint: joint.max_error_rad)

    def as_json(self) -> dict[str, Any]:
        """Return what `rote preview --json` prints: everything except the achieved track."""
        return {
            "ok": self.ok,
            "base": self.base,
            "speed": self.speed,
            "payload_kg": self.payload_kg,
            "duration_s": self.duration_s,
            "upright": self.upright,
            "most_tilt_rad": self.most_tilt_rad,
            "fell_at_s": self.fell_at_s,
            "real_time_factor": self.real_time_factor,
            "joints": [asdict(joint) for joint in self.joints],
            "contacts": [asdict(touch) for touch in self.contacts],
            "findings": [finding.as_json() for finding in self.findings],
        }


class _PreviewRobot(NamedTuple):
    """The robot on which a track is simulated."""

    build: Build
    family: Family
    body: Kinematics
    joints: tuple[Joint, ...]
    """The joints of the family, with the motors of the build."""

    @property
    def legs(self) -> list[int]:
        """The indices of the joints of the legs."""
        return [joint.index for joint in self.joints if joint.part == "leg"]

    def clip_to_range(self, poses_rad: Array) -> Array:
        """Return the poses limited to the joints' range."""
        lower = np.array([joint.lower_rad for joint in self.joints])
        upper = np.array([joint.upper_rad for joint in self.joints])
        return np.clip(poses_rad, lower, upper)


class _ServoPlan(NamedTuple):
    """The commands to the servos, step by step."""

    times_s: Array
    """On the clock of the track, (n,); its first or last time while the body settles."""
    targets_rad: Array
    """The angles of the track, (n, joints), even outside the joints' range."""
    controls: Array
    """The inputs of mujoco's servos, (n, joints)."""
    in_motion: NDArray[np.bool_]
    """Whether a step belongs to the motion, and not to the time before or after."""


class _SimulatedMotion(NamedTuple):
    """The simulated motion, up to the end or to a fall."""

    joints_rad: Array
    torques_nm: Array
    """(n, joints), like `joints_rad`."""
    tilts_rad: Array
    """The tilt of the base, (n,)."""
    touches: dict[tuple[str, str], tuple[int, float]]
    """For each pair of links that touched, the first step and the largest depth in m."""


def preview(
    track: Track,
    *,
    base: Base = "fixed",
    speed: float = 1.0,
    payload_kg: float = 0.0,
    clock: Callable[[], float] | None = None,
) -> Preview:
    """Simulate a track on the body of its robot and return the result, which is deterministic.

    `base` is fixed or free, `speed` a factor. Each hand carries `payload_kg`, which the controller
    does not know. Joints that the track does not have stay at rest; so do all joints of the legs if
    the base is free. `clock`, such as `time.perf_counter`, is used only to measure the speed of the
    computation. Raises `BadRequestError` if the robot's body is not known well enough, and
    `MissingExtraError`.
    """
    _check_arguments(track, base, speed, payload_kg)
    robot = _find_robot(track, base)
    free = base == "free"
    plan = _plan_commands(track, robot, speed, free=free)
    start = robot.clip_to_range(plan.targets_rad[0])
    body = compile_body(robot.build, robot.family, start, free=free, payload_kg=payload_kg)
    feet = frozenset(foot.link for foot in robot.family.body.feet) if free else None
    started_s = clock() if clock else 0.0
    run = _simulate(body, plan.controls, feet)
    took_s = clock() - started_s if clock else 0.0
    duration_s = track.duration_s / speed
    steps = len(run.joints_rad)  # fewer than planned if the robot fell
    fell_at_s = float(plan.times_s[steps - 1]) if steps < len(plan.controls) else None
    joints, contacts = _summarise_joints(track, robot, plan, run), _list_touches(plan, run)
    return Preview(
        base=base,
        speed=speed,
        payload_kg=payload_kg,
        duration_s=duration_s,
        joints=joints,
        contacts=contacts,
        upright=fell_at_s is None if free else None,
        most_tilt_rad=float(run.tilts_rad.max()),
        fell_at_s=fell_at_s,
        real_time_factor=duration_s / took_s if took_s else None,
        findings=_make_findings(robot, joints, contacts, fell_at_s, free=free),
        achieved=_make_achieved_track(track, robot, plan, run),
    )


def _check_arguments(track: Track, base: str, speed: float, payload_kg: float) -> None:
    track.require_samples(1)
    if base not in get_args(Base):
        raise BadRequestError(f"the base must be {' or '.join(get_args(Base))}, not {base!r}")
    if not 0.05 <= speed <= 10.0:
        raise BadRequestError(f"the speed must be 0.05 to 10 times the recorded one, not {speed:g}")
    if not 0.0 <= payload_kg <= 20.0:
        raise BadRequestError(f"the payload must be 0 to 20 kg, not {payload_kg:g}")
    if track.duration_s / speed > MAX_S:
        raise BadRequestError(
            f"the motion takes {track.duration_s / speed:.0f} s, but at most {MAX_S:.0f} s can "
            "be simulated",
            "Trim it, or choose a higher speed.",
        )


def _find_robot(track: Track, base: str) -> _PreviewRobot:
    """Return the robot of a track, or raise an error if its body is not known well enough."""
    build, family = build_of(track), family_of(track)
    if build is None or family is None:
        raise BadRequestError(
            "no known robot has any of the track's joints",
            Text("Draw its curves instead: {plot}.", plot=Act.PLOT),
        )
    if unknown := _describe_missing_data(build, family, base):
        raise BadRequestError(
            f"{a_robot(family)} cannot be previewed: {unknown}",
            Text(
                "Check it instead ({check}), then play it slowly on a simulated robot.",
                check=Act.CHECK,
            ),
        )
    known = joints_by_name(build)
    joints = tuple(known[joint.name] for joint in family.joints)
    return _PreviewRobot(build, family, kinematics_of(family), joints)


def _describe_missing_data(build: Build, family: Family, base: str) -> str:
    """Return which data a preview needs and this body lacks; empty if it has everything."""
    if not family.body.shapes:
        return "its shapes are not known"
    if not all(joint.mass_kg > 0.0 and joint.effort_nm > 0.0 for joint in family.joints):
        return "its masses and motors are not known"
    stands = kinematics_of(family).stands(build)
    return "" if stands or base == "fixed" else f"{build.name} has no feet to stand on"


def _plan_commands(track: Track, robot: _PreviewRobot, speed: float, *, free: bool) -> _ServoPlan:
    """Return the commands to the servos: positions, speeds, and part of the gravity torques.

    They begin before the motion and end after it, so that the body can settle and fall.
    """
    duration_s = track.duration_s / speed
    steps = np.arange(-round(_SETTLE_S / STEP_S), round((duration_s + _FALL_S) / STEP_S))
    since_start_s: Array = np.multiply(steps, STEP_S, dtype=np.float64)
    times_s: Array = track.times_s[0] + np.clip(since_start_s, 0.0, duration_s) * speed
    body, legs = robot.body, robot.legs
    poses_rad = body.poses(track, build=robot.build)
    targets = sample(track.times_s, poses_rad, times_s, Interpolation.LINEAR)
    if free:
        targets[:, legs] = [robot.build.rest.get(robot.joints[leg].name, 0.0) for leg in legs]
    clipped = robot.clip_to_range(targets)
    speeds = np.gradient(clipped, STEP_S, axis=0)
    # Gravity torques change no faster than a body moves: some rows are computed, the rest
    # interpolated. Legs carry the body, so that these torques are meaningless for them.
    rows = np.unique(np.append(np.arange(0, steps.size, _GRAVITY_EVERY), steps.size - 1))
    gravity_nm = body.gravity_torque_nm(body.forward(clipped[rows]), body.link_masses())
    gravity_nm[:, legs] = 0.0
    gravity_nm = sample(since_start_s[rows], gravity_nm, since_start_s, Interpolation.LINEAR)
    # A servo's force is stiffness * (control - angle) - damping * speed, so any other force is
    # added to the control, divided by the stiffness.
    servos = choose_gains(robot.family, free=free)
    forces_nm = servos.damping * speeds - CANCELLED_SHARE * gravity_nm
    controls = clipped + forces_nm / servos.stiffness
    in_motion = (since_start_s >= 0.0) & (since_start_s <= duration_s)
    return _ServoPlan(times_s, targets, controls, in_motion)


def _simulate(body: PreviewBody, controls: Array, feet: frozenset[str] | None) -> _SimulatedMotion:
    """Step a body with these controls, (n, joints), to the end or until it falls.

    `feet` are the links that may touch the floor; None if the base is fixed.
    """
    model, data, step = body.model, body.data, body.mujoco.mj_step
    positions, torques = np.empty_like(controls), np.empty_like(controls)
    tilts = np.zeros(len(controls))
    touches: dict[tuple[str, str], tuple[int, float]] = {}
    for row, control in enumerate(controls):
        positions[row] = data.qpos[body.qpos_indices]
        if feet is not None:
            _, x, y, _ = data.qpos[3:7]  # the base's quaternion, after its position
            tilts[row] = np.arccos(max(-1.0, 1.0 - 2.0 * (x * x + y * y)))
        data.ctrl[:] = control
        step(model, data)
        torques[row] = data.actuator_force
        for pair, depth_m in _iter_touching_links(body, feet or frozenset()):
            first, deepest_m = touches.get(pair, (row, 0.0))
            touches[pair] = (first, max(deepest_m, depth_m))
        if tilts[row] > FALLEN_RAD:
            return _SimulatedMotion(
                positions[: row + 1], torques[: row + 1], tilts[: row + 1], touches
            )
    return _SimulatedMotion(positions, torques, tilts, touches)


def _iter_touching_links(
    body: PreviewBody, feet: frozenset[str]
) -> Iterator[tuple[tuple[str, str], float]]:
    """Yield each pair of links that touch now, and the depth; feet may stand on the floor."""
    if not body.data.ncon:
        return
    pairs, distances = body.link_of_shape[body.data.contact.geom], body.data.contact.dist
    for (one, other), distance_m in zip(pairs.tolist(), distances.tolist(), strict=True):
        a, b = sorted((body.links[one], body.links[other]))
        if FLOOR not in {a, b} or not {a, b} & feet:
            yield (a, b), -distance_m


def _select_motion_rows(plan: _ServoPlan, run: _SimulatedMotion) -> NDArray[np.intp]:
    """Return the numbers of the simulated steps that belong to the motion.

    If the robot fell before the motion began, this is only the last step.
    """
    last = len(run.joints_rad) - 1
    rows = np.flatnonzero(plan.in_motion[: last + 1])
    return rows if rows.size else np.array([last])


def _summarise_joints(
    track: Track, robot: _PreviewRobot, plan: _ServoPlan, run: _SimulatedMotion
) -> tuple[JointPreview, ...]:
    """Return how the joints of the track and the other joints of its build behaved."""
    rows = _select_motion_rows(plan, run)
    times_s = plan.times_s[rows]
    errors = np.abs(run.joints_rad[rows] - plan.targets_rad[rows])
    torques = np.abs(run.torques_nm[rows])
    is_saturated = torques >= _FULL_TORQUE_SHARE * np.array(
        [joint.effort_nm for joint in robot.joints]
    )
    reported = {*track.names, *robot.build.names}
    return tuple(
        JointPreview(
            joint=joint.name,
            rms_error_rad=float(np.sqrt(np.square(errors[:, column]).mean())),
            max_error_rad=float(errors[:, column].max()),
            max_error_at_s=float(times_s[errors[:, column].argmax()]),
            saturated_share=float(is_saturated[:, column].mean()),
            saturated_at_s=float(times_s[is_saturated[:, column].argmax()])
            if is_saturated[:, column].any()
            else None,
            peak_torque_nm=float(torques[:, column].max()),
            effort_nm=joint.effort_nm,
        )
        for column, joint in enumerate(robot.joints)
        if joint.name in reported
    )


def _list_touches(plan: _ServoPlan, run: _SimulatedMotion) -> tuple[Touch, ...]:
    return tuple(
        Touch(a=a, b=b, first_s=float(plan.times_s[row]), depth_m=depth_m)
        for (a, b), (row, depth_m) in sorted(run.touches.items(), key=lambda item: item[1][0])
    )


def _make_achieved_track(
    track: Track, robot: _PreviewRobot, plan: _ServoPlan, run: _SimulatedMotion
) -> Track:
    rows = _select_motion_rows(plan, run)[::_ACHIEVED_EVERY]
    joints = [joint for joint in robot.joints if joint.name in track.names]
    return Track(
        times_s=plan.times_s[rows],
        joints_rad=run.joints_rad[rows][:, [joint.index for joint in joints]],
        names=tuple(joint.name for joint in joints),
        variant=track.variant,
        source="physics preview",
        marks=track.marks,
        history=(*track.history, "run on a simulated body"),
        origin=track.origin,
    )


# ---- findings -----------------------------------------------------------------------------------


def _make_findings(
    robot: _PreviewRobot,
    joints: tuple[JointPreview, ...],
    contacts: tuple[Touch, ...],
    fell_at_s: float | None,
    *,
    free: bool,
) -> tuple[Finding, ...]:
    """Return the problems with playing it, the worst first.

    The stiff legs of a standing robot are left out: their torques say nothing about real legs.
    """
    findings = [
        *_make_fall_findings(fell_at_s),
        *(_make_contact_finding(touch, robot.body) for touch in contacts),
    ]
    leg_names = {robot.joints[leg].name for leg in robot.legs}
    for joint in joints:
        if not free or joint.joint not in leg_names:
            findings += [*_make_torque_findings(joint), *_make_tracking_findings(joint)]
    return tuple(worst_first(findings))


def _make_fall_findings(fell_at_s: float | None) -> Iterator[Finding]:
    if fell_at_s is not None:
        yield Finding(
            severity=Severity.WARNING,  # a real robot balances
            kind=FindingKind.BALANCE,
            time_s=fell_at_s,
            value=FALLEN_RAD,
            limit=FALLEN_RAD,
            margin=0.0,
            unit="s",
            message=Text(
                "without its balance controller the robot falls over at {when}",
                when=seconds(fell_at_s),
            ),
            remedy="Play it slower, carry less, or teach it with the arms closer to the body.",
        )


def _make_contact_finding(touch: Touch, body: Kinematics) -> Finding:
    are_hands = {touch.a, touch.b} <= body.hands
    return Finding(
        severity=Severity.WARNING if are_hands else Severity.ERROR,
        kind=FindingKind.COLLISION,
        joint=body.outermost_joint(touch.a, touch.b),
        time_s=touch.first_s,
        value=-touch.depth_m,
        limit=0.0,
        margin=-touch.depth_m,
        message=f"{touch.a} collides with {touch.b}",
        remedy=Text(
            "Look at it: {show}. Then teach it again with more room between the two.", show=Act.SHOW
        ),
    )


def _make_torque_findings(joint: JointPreview) -> Iterator[Finding]:
    if joint.saturated_at_s is not None:
        yield Finding(
            severity=Severity.ERROR
            if joint.saturated_share > MAX_SATURATED_SHARE
            else Severity.WARNING,
            kind=FindingKind.TORQUE,
            joint=joint.joint,
            time_s=joint.saturated_at_s,
            value=joint.peak_torque_nm,
            limit=joint.effort_nm,
            margin=joint.effort_nm - joint.peak_torque_nm,
            message=Text(
                "{joint} is at its full torque of {effort} for {share} of the time",
                joint=joint.joint,
                effort=f"{joint.effort_nm:g} N.m",
                share=f"{joint.saturated_share:.0%}",
            ),
            remedy=Text("Play it slower, smooth it, or retime it: {retime}.", retime=Act.RETIME),
        )


def _make_tracking_findings(joint: JointPreview) -> Iterator[Finding]:
    if joint.max_error_rad > FOLLOWS_RAD:
        limit = LOST_RAD if joint.max_error_rad > LOST_RAD else FOLLOWS_RAD
        yield Finding(
            severity=Severity.ERROR if limit == LOST_RAD else Severity.WARNING,
            kind=FindingKind.POSITION,
            joint=joint.joint,
            time_s=joint.max_error_at_s,
            value=joint.max_error_rad,
            limit=limit,
            margin=limit - joint.max_error_rad,
            unit="rad",
            message=Text(
                "{joint} is up to {far} from where it should be",
                joint=joint.joint,
                far=rad(joint.max_error_rad),
            ),
            remedy=Text("Play it slower, carry less, or retime it: {retime}.", retime=Act.RETIME),
        )
