"""Learns a motion from several takes, and adapts it: other ends, other points, another duration.

The model is a probabilistic movement primitive: the takes are aligned in time, each is a weighted
sum of basis functions, and the weights have a mean and a covariance. To adapt the motion, the model
is conditioned on poses at the ends and on positions of a hand. A few takes vary in few directions,
so a smooth prior is added to their covariance; without it hardly any point could be reached. A
remaining distance between a hand and its point is removed by inverse kinematics.

A phase is a moment of the motion: 0 at the beginning, 1 at the end.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.findings import Severity
from rote.motion.check.rules import check_contact
from rote.motion.compare import average, sample_aligned
from rote.motion.edit.align import align
from rote.motion.edit.fit import fit
from rote.motion.edit.hand_path import ArmSolver, move_hand
from rote.motion.edit.tempo import is_too_fast
from rote.motion.interpolate import average_gaussian
from rote.motion.keyframes.edit import check_pose_limits
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, joints_of
from rote.text import Text, rad, seconds

__all__ = ["HandPoint", "MotionModel", "learn"]

MIN_TAKES = 3
FAR_STD = 3.0
"""A point further than this many standard deviations from the takes gets a warning."""

_BASIS_S = 0.08  # time between the centres of two basis functions
_MIN_BASES, _MAX_BASES = 8, 1500
_MAX_LEARNED_S = _MAX_BASES * _BASIS_S
_RIDGE = 1e-6  # regularization of the least-squares fit
_MAX_DIFFERENCE = 0.5  # of a take from the median, as a share of the movement in the motion
_TREMOR_RAD = 0.03  # a difference below this is the tremor of a hand
_TREMOR_S = 0.06  # standard deviation of the smoothing that removes a tremor
_MAX_RAD = 20.0  # no joint of a robot turns this far
_PRIOR_RAD = 0.15  # standard deviation of the prior
_PRIOR_PHASE = 0.15  # length scale of the prior, in phase
_HAND_STD_M = 0.01  # uncertainty of a taught hand position
_MAX_STEP_M = 0.05  # the position of a hand is linear enough over this distance
_MAX_ROUNDS = 20
_CONVERGED_M = 1e-4  # conditioning stops when all hands are this near to their points
_HAND_TOLERANCE_M = 5e-4  # a hand this near to its point needs no correction
_RATE_HZ = 100.0
_DURATION_S = (0.1, 600.0)


class HandPoint(NamedTuple):
    """Where a hand is to be at one moment of a motion, in the frame of the robot's base."""

    time_s: float
    x_m: float
    y_m: float
    z_m: float
    hand: str = "right"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MotionModel:
    """A motion learned from several takes. Raises `BadRequestError` if its parts do not fit."""

    names: tuple[str, ...]
    variant: str
    duration_s: float
    mean: Array
    """The mean weights, (bases, joints)."""
    deviations: Array
    """The weights of each take less the mean, (takes, bases, joints)."""

    def __post_init__(self) -> None:
        same_shape = self.mean.ndim == 2 and self.deviations.shape[1:] == self.mean.shape
        fits = same_shape and self.mean.shape[1] == len(self.names) > 0
        if not fits or not _MIN_BASES <= len(self.mean) <= _MAX_BASES:
            raise BadRequestError("the arrays of a learned motion have sizes that do not match")
        if len(set(self.names)) != len(self.names):
            raise BadRequestError("a learned motion names a joint twice")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.deviations).all()):
            raise BadRequestError("a learned motion holds a value that is not a number")
        if max(np.abs(self.mean).max(), np.abs(self.deviations).max(initial=0.0)) > _MAX_RAD:
            raise BadRequestError(f"a learned motion turns a joint by more than {_MAX_RAD:g} rad")
        if len(self.deviations) < MIN_TAKES:
            raise BadRequestError(f"a learned motion needs {MIN_TAKES} takes or more")
        _require_duration(self.duration_s)

    def adapt(
        self,
        *,
        start: Mapping[str, float] | None = None,
        end: Mapping[str, float] | None = None,
        through: Sequence[HandPoint] = (),
        duration_s: float | None = None,
    ) -> Track:
        """Return the motion with other end poses, led through points, or with another duration.

        `start` and `end` are angles in rad by joint; a joint that is left out begins and ends as
        learned. A result that is too fast is slowed down. The last line of the history warns of
        points far from the takes. Raises `BadRequestError` for a pose beyond the limits, a point
        that is out of reach, or a motion in which the robot would touch itself; contact is checked
        if mujoco is installed.
        """
        length_s = self.duration_s if duration_s is None else duration_s
        _require_duration(length_s)
        count = max(round(length_s * _RATE_HZ), 2) + 1
        distribution = _PoseDistribution(self)
        for phase, pose in ((0.0, start or {}), (1.0, end or {})):
            distribution.pin_pose(phase, pose)
        notes = distribution.lead_through(through, length_s)
        phases = _make_phases_including(count, [point.time_s / length_s for point in through])
        track = Track(
            times_s=phases * length_s,
            joints_rad=distribution.mean_poses(phases),
            names=self.names,
            variant=self.variant,
            source=f"learned from {len(self.deviations)} takes",
        )
        track = distribution.correct_hands(_keep_in_range(track), through)
        line = "; ".join(["adapt the learned motion", *notes])
        if is_too_fast(track):
            track = fit(track, slow_down=True)
            line += f"; {track.history[-1]}"
        _require_no_contact(track)
        return replace(track, history=(line,))

    def band(self, count: int) -> tuple[Array, Array]:
        """Return mean and standard deviation of the takes' joint angles, in rad.

        Both are (count, joints), at `count` evenly spaced phases from 0 to 1.
        """
        bases = _evaluate_bases(np.linspace(0.0, 1.0, count), len(self.mean))
        deviations = np.einsum("nb,tbj->tnj", bases, self.deviations)
        return bases @ self.mean, np.sqrt(np.square(deviations).sum(axis=0) / (len(deviations) - 1))

    def distance_std(self, point: HandPoint, duration_s: float | None = None) -> float:
        """Return how many standard deviations of the takes a point is from their mean.

        The point's time is in a motion of `duration_s`, by default the learned duration.
        """
        length_s = self.duration_s if duration_s is None else duration_s
        return _PoseDistribution(self).distance_std(point, point.time_s / length_s)


class _PoseConstraint(NamedTuple):
    """A linear function of the pose at one moment, and the value it must have."""

    phase: float
    matrix: Array
    """(values, joints)."""
    value: Array
    """(values,)."""
    spread: Array
    """How the takes vary at this moment, (takes, joints)."""
    miss_m: float = 0.0
    """How far the hand is from its point; 0 for a pose."""


class _PoseDistribution:
    """The distribution of the poses over the phase, conditioned on constraints."""

    def __init__(self, model: MotionModel) -> None:
        self._model = model
        self._mean = model.mean
        # Scaled so that the sum of their products over the takes is the covariance.
        self._deviations = model.deviations / np.sqrt(len(model.deviations) - 1)
        self._constraints: list[_PoseConstraint] = []
        # For each constrained value, the factor by which its covariance with a pose moves the pose.
        self._gains: Array = np.zeros(0)
        self._hand_positions: dict[str, _HandPosition] = {}

    def _get_hand_position(self, hand: str) -> "_HandPosition":
        if hand not in self._hand_positions:
            self._hand_positions[hand] = _HandPosition(self._model, hand)
        return self._hand_positions[hand]

    def mean_poses(self, phases: Array) -> Array:
        """Return the mean poses at these phases with all constraints met, (n, joints)."""
        # A constraint changes the mean by its covariance with the poses times its gains. One part
        # of the covariance is that of the takes, which changes the weights; the other is the prior.
        weights, first_gain = self._mean.copy(), 0
        prior_part = np.zeros((len(phases), len(self._model.names)))
        for constraint in self._constraints:
            end_gain = first_gain + len(constraint.value)
            pull = constraint.matrix.T @ self._gains[first_gain:end_gain]
            first_gain = end_gain
            weights += np.einsum("t,tbj->bj", constraint.spread @ pull, self._deviations)
            prior_part += _compute_prior_covariance(phases - constraint.phase)[:, None] * pull
        return np.asarray(_evaluate_bases(phases, len(weights)) @ weights + prior_part)

    def _compute_unconditioned_pose(self, phase: float) -> Array:
        """Return the mean pose of the takes at a phase, (joints,), regardless of constraints."""
        bases = _evaluate_bases(np.array([phase]), len(self._mean))
        return np.asarray((bases @ self._mean)[0])

    def _compute_spread(self, phase: float) -> Array:
        """Return how the takes vary at a phase, (takes, joints)."""
        bases = _evaluate_bases(np.array([phase]), len(self._mean))[0]
        return np.asarray(np.einsum("b,tbj->tj", bases, self._deviations))

    def pin_pose(self, phase: float, pose: Mapping[str, float]) -> None:
        """Constrain all joints at a phase: to their angle in `pose`, otherwise as learned."""
        names = self._model.names
        learned = self.mean_poses(np.array([phase]))[0]
        unknown = [name for name in pose if name not in names]
        if unknown:
            raise BadRequestError(
                f"the learned motion has no {unknown[0]}", f"It has: {', '.join(names)}."
            )
        if pose:
            check_pose_limits(_make_single_pose(self._model, learned), pose)
        value = np.array([pose.get(name, learned[column]) for column, name in enumerate(names)])
        constraint = _PoseConstraint(phase, np.eye(len(names)), value, self._compute_spread(phase))
        self._apply_constraints([*self._constraints, constraint])

    def lead_through(self, points: Sequence[HandPoint], length_s: float) -> list[str]:
        """Constrain hands to positions; return a warning for each that is far from the takes.

        A hand's position is not linear in the joints, so it is linearized again in each round.
        """
        warnings: list[str] = []
        for point in points:
            _require_valid_point(point, length_s)
            std = self.distance_std(point, point.time_s / length_s)
            if std > FAR_STD:
                warnings.append(
                    f"the {point.hand} hand at {point.time_s:.2f} s is {std:.1f} standard "
                    "deviations from the takes"
                )
        pinned_poses = list(self._constraints)
        least_miss_m, best = np.inf, (self._constraints, self._gains)
        for _ in range(_MAX_ROUNDS):
            linearized = [self._linearize(point, point.time_s / length_s) for point in points]
            miss_m = max((constraint.miss_m for constraint in linearized), default=0.0)
            if miss_m < least_miss_m:
                least_miss_m, best = miss_m, (self._constraints, self._gains)
            if miss_m < _CONVERGED_M:
                break
            self._apply_constraints([*pinned_poses, *linearized])
        self._constraints, self._gains = best
        return warnings

    def correct_hands(self, track: Track, points: Sequence[HandPoint]) -> Track:
        """Return the track with each hand that misses a point led through all of its points.

        The track must have a sample at the time of each point.
        """
        # A little earlier, because a sample may be at the time of its point only up to rounding.
        rows = np.searchsorted(track.times_s, [point.time_s - 1e-9 for point in points])
        inaccurate_hands = {
            point.hand
            for point, row in zip(points, rows.tolist(), strict=True)
            if self._measure_miss_m(point, track.joints_rad[row]) > _HAND_TOLERANCE_M
        }
        for hand in sorted(inaccurate_hands):
            times_and_positions = [point[:4] for point in points if point.hand == hand]
            track = move_hand(track, hand, through=times_and_positions)
        return track

    def _measure_miss_m(self, point: HandPoint, pose: Array) -> float:
        """Return the distance in m of a point's hand from the point in a pose, (joints,)."""
        position, _ = self._get_hand_position(point.hand).linearize(pose)
        return float(np.linalg.norm(np.array(point[1:4]) - position))

    def _apply_constraints(self, constraints: list[_PoseConstraint]) -> None:
        """Replace the constraints, and compute their gains."""
        covariance = np.block(
            [[_compute_covariance(one, two) for two in constraints] for one in constraints]
        )
        # The equations stay solvable if a constraint follows from others.
        covariance += 1e-9 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))
        residuals = [
            constraint.value
            - constraint.matrix @ self._compute_unconditioned_pose(constraint.phase)
            for constraint in constraints
        ]
        self._gains = np.linalg.solve(covariance, np.concatenate(residuals))
        self._constraints = constraints

    def _linearize(self, point: HandPoint, phase: float) -> _PoseConstraint:
        """Return a constraint that brings a hand to a point, or one step nearer to it.

        The hand's position is linearized about the present pose.
        """
        pose = self.mean_poses(np.array([phase]))[0]
        position, jacobian = self._get_hand_position(point.hand).linearize(pose)
        offset_m = np.array([point.x_m, point.y_m, point.z_m]) - position
        miss_m = float(np.linalg.norm(offset_m))
        offset_m *= min(1.0, _MAX_STEP_M / max(miss_m, 1e-9))
        value = offset_m + jacobian @ pose
        return _PoseConstraint(phase, jacobian, value, self._compute_spread(phase), miss_m)

    def distance_std(self, point: HandPoint, phase: float) -> float:
        """Return how many standard deviations of the takes a point is from their mean."""
        position, jacobian = self._get_hand_position(point.hand).linearize(
            self._compute_unconditioned_pose(phase)
        )
        spread = jacobian @ self._compute_spread(phase).T
        covariance = spread @ spread.T + _HAND_STD_M**2 * np.eye(3)
        offset = np.array([point.x_m, point.y_m, point.z_m]) - position
        return float(np.sqrt(offset @ np.linalg.solve(covariance, offset)))


def _compute_prior_covariance(phase_distances: Array) -> Array:
    """Return the prior covariance of a joint's angles at moments this far apart in phase."""
    return np.asarray(_PRIOR_RAD**2 * np.exp(-0.5 * (phase_distances / _PRIOR_PHASE) ** 2))


def _compute_covariance(one: _PoseConstraint, two: _PoseConstraint) -> Array:
    """Return the covariance of the constrained values of two constraints, (values, values)."""
    from_takes = (one.matrix @ one.spread.T) @ (two.matrix @ two.spread.T).T
    prior = float(_compute_prior_covariance(np.array(one.phase - two.phase)))
    return np.asarray(from_takes + prior * (one.matrix @ two.matrix.T))


def _require_valid_point(point: HandPoint, length_s: float) -> None:
    """Raise `BadRequestError` for a point outside a motion of this length, or not finite."""
    if not 0.0 < point.time_s < length_s:
        raise BadRequestError(
            Text(
                "the point at {time} is outside the motion of {duration}",
                time=seconds(point.time_s),
                duration=seconds(length_s),
            ),
            "Choose a time between its ends.",
        )
    if not np.isfinite(point[1:4]).all():
        raise BadRequestError("a point has a position that is not a number")


def learn(takes: Sequence[Track]) -> MotionModel:
    """Return the model of several takes of one motion.

    Raises `BadRequestError` if there are fewer than three, they have different joints or robots,
    one of them is another motion, too short or too long, or hardly moves.
    """
    if len(takes) < MIN_TAKES:
        raise BadRequestError(
            Text("{count} takes are too few to learn from", count=len(takes)),
            Text("Give {least} or more.", least=MIN_TAKES),
        )
    for number, take in enumerate(takes, 1):
        _require_learnable(take, number, takes[0])
    mean = average(takes)
    aligned = np.array([sample_aligned(take, align(mean, take), mean.names) for take in takes])
    _require_same_motion(aligned)
    phases = (mean.times_s - mean.times_s[0]) / mean.duration_s
    basis_count = min(max(round(mean.duration_s / _BASIS_S), _MIN_BASES), _MAX_BASES)
    bases = _evaluate_bases(phases, basis_count)
    # The weights of each take, by least squares. The ridge draws them to the mean pose, not to 0:
    # so a joint that never moves stays where it is.
    ridge = _RIDGE * len(phases) * np.eye(basis_count)
    mean_pose = aligned.mean(axis=(0, 1))
    weights = np.linalg.solve(bases.T @ bases + ridge, bases.T) @ (aligned - mean_pose) + mean_pose
    mean_weights = weights.mean(axis=0)
    return MotionModel(
        names=mean.names,
        variant=mean.variant,
        duration_s=mean.duration_s,
        mean=mean_weights,
        deviations=weights - mean_weights,
    )


def _require_learnable(take: Track, number: int, first: Track) -> None:
    """Raise `BadRequestError` if a take is too short or long, hardly moves, or is of another robot.

    `number` is that of the take, counted from 1; its robot must be that of the `first` take.
    """
    low_s, high_s = _DURATION_S[0], _MAX_LEARNED_S
    if not low_s <= take.duration_s <= high_s:
        raise BadRequestError(
            Text(
                "take {number} lasts {duration}; only motions of {low} to {high} can be learned",
                number=number,
                duration=seconds(take.duration_s),
                low=seconds(low_s, 1),
                high=seconds(high_s, 0),
            ),
            "Leave it out, or cut all takes into the same parts and learn each part.",
        )
    take.require_samples(3)
    build, expected = build_of(take), build_of(first)
    if build is not None and expected is not None and build.family != expected.family:
        raise BadRequestError(
            Text(
                "take {number} was made on another robot: {other}; the first was made on {robot}",
                number=number,
                other=build.name,
                robot=expected.name,
            ),
            "Learn from takes of one robot.",
        )
    moved_rad = np.ptp(average_gaussian(take.joints_rad, _TREMOR_S * take.rate_hz), axis=0).max()
    if moved_rad < _TREMOR_RAD:
        raise BadRequestError(
            Text(
                "take {number} does not move enough to learn from: no joint moves by more than "
                "{moved}",
                number=number,
                moved=rad(moved_rad, 3),
            ),
            Text(
                "Leave it out, or teach it again; a joint has to move by {least}.",
                least=rad(_TREMOR_RAD),
            ),
        )


def _require_duration(duration_s: float) -> None:
    low, high = _DURATION_S
    if not low <= duration_s <= high:
        raise BadRequestError(
            Text("a motion cannot last {duration}", duration=seconds(duration_s)),
            Text("Choose {low} to {high}.", low=seconds(low, 1), high=seconds(high, 0)),
        )


def _make_phases_including(count: int, required: Sequence[float]) -> Array:
    """Return `count` nearly even phases from 0 to 1 that include all `required` ones.

    Raises `BadRequestError` if two required phases are nearer than two samples.
    """
    phases = np.linspace(0.0, 1.0, count)
    for phase in required:
        # The nearest sample is moved there; the first and last stay.
        phases[min(max(round(phase * (count - 1)), 1), count - 2)] = phase
    if (np.diff(phases) <= 0.0).any() or not set(required) <= set(phases.tolist()):
        raise BadRequestError(
            "two points are at nearly the same time",
            Text("Leave {least} or more between them.", least=seconds(2 / _RATE_HZ)),
        )
    return phases


def _evaluate_bases(phases: Array, count: int) -> Array:
    """Return normalized Gaussian basis functions, (n, count)."""
    centres = np.linspace(0.0, 1.0, count)
    width = 1.0 / (count - 1)
    values = np.exp(-0.5 * ((phases[:, None] - centres) / width) ** 2)
    return np.asarray(values / values.sum(axis=1, keepdims=True))


def _require_same_motion(aligned: Array) -> None:
    """Raise `BadRequestError` if a take is of another motion; `aligned` is (takes, n, joints).

    A take is compared with the median of all takes. Differences and movements are the root mean
    square over time of the length of the vector of all joints, in rad.
    """
    median = np.median(aligned, axis=0)
    moved = float(np.sqrt(np.square(median - median.mean(axis=0)).sum(axis=1).mean()))
    for number, take in enumerate(aligned, 1):
        difference = float(np.sqrt(np.square(take - median).sum(axis=1).mean()))
        if difference > max(_MAX_DIFFERENCE * moved, _TREMOR_RAD):
            raise BadRequestError(
                Text(
                    "take {number} is another motion: it is {away} from the others, and the motion "
                    "itself moves by {moved}",
                    number=number,
                    away=rad(difference),
                    moved=rad(moved),
                ),
                "Leave it out, or teach it again.",
            )


def _make_single_pose(model: MotionModel, pose: Array) -> Track:
    return Track(
        times_s=np.zeros(1), joints_rad=pose[None], names=model.names, variant=model.variant
    )


class _HandPosition:
    """The position of a hand as a function of a model's pose."""

    def __init__(self, model: MotionModel, hand: str) -> None:
        self._solver = ArmSolver(_make_single_pose(model, np.zeros(len(model.names))), [hand])
        indices = {joint.name: joint.index for joint in self._solver.kinematics.joints}
        self._model_columns = [column for column, name in enumerate(model.names) if name in indices]
        self._robot_columns = [indices[model.names[column]] for column in self._model_columns]
        self._joint_count = len(model.names)

    def linearize(self, pose: Array) -> tuple[Array, Array]:
        """Return the position, (3,), and its change with each joint of the model, (3, joints)."""
        robot_pose = self._solver.poses_rad[0].copy()
        robot_pose[self._robot_columns] = pose[self._model_columns]
        position, robot_jacobian = self._solver.linearize_hand(robot_pose)
        jacobian = np.zeros((3, self._joint_count))
        jacobian[:, self._model_columns] = robot_jacobian[:, self._robot_columns]
        return position, jacobian


def _require_no_contact(track: Track) -> None:
    """Raise `BadRequestError` if links of the robot would touch each other."""
    for finding in check_contact(track, clearance_m=0.0).findings:
        if finding.severity is Severity.ERROR:
            raise BadRequestError(
                Text(
                    "the robot would touch itself at {time}: {what}",
                    time=seconds((finding.time_s or 0.0) - float(track.times_s[0])),
                    what=finding.message,
                ),
                "Lead the hand another way, or learn from takes in which nothing touches.",
            )


def _keep_in_range(track: Track) -> Track:
    """Return the track with each joint within its range."""
    known = joints_of(track)
    low = np.array([known[n].lower_rad if n in known else -np.inf for n in track.names])
    high = np.array([known[n].upper_rad if n in known else np.inf for n in track.names])
    return replace(track, joints_rad=np.clip(track.joints_rad, low, high))
