"""Moves the path of a hand: shifted, scaled or led through points; the joints of the arm follow.

Each sample is solved by inverse kinematics: of all poses that put the hand onto its new path, the
one nearest to the recorded pose, so that the elbow stays where it was as far as possible. All
samples are solved together. Positions are in the frame of the robot's base, in m: x forward, y
left, z up.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import BadRequestError
from rote.model.family import Point
from rote.motion.body.kinematics import Frames, Kinematics, kinematics_of
from rote.motion.check.limits import MAX_PLAYED_RAD_S2
from rote.motion.edit.operations import track_time_s
from rote.motion.edit.spline import clamped_spline
from rote.motion.edit.through import move_nearest_sample
from rote.motion.interpolate import average_gaussian, minimum_jerk
from rote.motion.track import Array, Track
from rote.motion.track_build import build_of, family_of
from rote.text import Quantity, Text, seconds

__all__ = ["ArmSolver", "hand_positions_m", "move_hand"]

HANDS = ("left", "right")
MAX_ERROR_M = 0.001
"""The greatest distance of a hand from its new path; beyond it the edit is refused."""
MAX_TURN_RAD = 0.02
"""The greatest change of a hand's orientation, if that is kept."""
_MAX_ACCELERATION_RATIO = 1.1  # of the new peak acceleration to the recorded one
_BLENDS_S = (0.3, 0.5, 0.8, 1.2, 2.0, 3.0)  # times to fade in and out that are tried
_MAX_SOLVED = 2  # blends that are solved before the longest one, to bound the time
# Standard deviations of the smoothing of the posture, and of the solved joints.
_POSTURE_WIDTHS_S = (0.0, 0.1, 0.3)
_SMOOTHING_WIDTHS_S = (0.0, 0.01, 0.02, 0.03, 0.04, 0.08)
_FADE_WIDTHS = 4.0  # at the ends the smoothing fades out over this many standard deviations
_STEP_M = 0.03  # a longer shift is solved in steps of this length
_STEP_ROUNDS = 2  # iterations per step but the last
_LAST_ROUNDS = 60  # iterations of the last step, at most
_STRAIGHT_ROUNDS = 2  # iterations that take the path of the hand for straight
_SOFTNESS_M2 = 1e-5  # squared distance from the path, in m2, that weighs as much as a turn of 1 rad
_MAX_STEP_RAD = 0.3  # of a joint in one iteration
_MIN_DAMPING = 1.0  # after an iteration that did not improve a sample
_SETTLED_RAD = 2e-5  # a pose that changes by less in an iteration is solved
_BARRIER = 0.003  # nearer to its limit than the root of this, in rad, a joint yields to others
_MAX_APPROACH = 0.9  # share of the distance to a limit that one iteration may use
_MIN_ROOM_RAD = 1e-4  # between the preferred angle and a limit, so that the barrier stays finite
_MAX_USED = 1.0 - 1e-9  # share of this room, for the same reason
_TURN_WEIGHT_M = 0.15  # an orientation error of 1 rad counts as this distance
_NEAR_END_S = 0.02  # a point nearer to an end that stays would cause a jump


class _LinearTask(NamedTuple):
    """The error of a hand at each sample, and its derivative by the joints of the arm."""

    error: Array
    """(n, 3), or (n, 6) with the orientation."""
    jacobian: Array
    """(n, 3 or 6, joints)."""
    size_m: Array
    """The length of the error, (n,)."""
    axes: Array
    """The axes of the joints, (n, joints, 3)."""


class _SampleSubset(NamedTuple):
    """Some of the samples of a track, and the frames of the links in them."""

    rows: slice | NDArray[np.intp]
    frames: Frames
    """Scratch space: only links that the arm does not move are up to date."""


class ArmSolver:
    """Inverse kinematics of the arms of a track, for all of its samples at once."""

    def __init__(self, track: Track, hands: Sequence[str]) -> None:
        build, family = build_of(track), family_of(track)
        if build is None or family is None:
            raise BadRequestError(
                "no known robot has the joints of this motion, so its hands cannot be computed",
                "Convert it to the joints of a known robot first.",
            )
        self.kinematics: Kinematics = kinematics_of(family)
        self.poses_rad = self.kinematics.poses(track, build=build)
        # These lists have an element per hand: its tip, and the joints of its arm.
        self.tips: list[Point] = [self._find_tip(hand) for hand in hands]
        self.names = [
            self._find_arm_joints(hand, tip, track)
            for hand, tip in zip(hands, self.tips, strict=True)
        ]
        joints = {joint.name: joint for joint in self.kinematics.joints}
        arms = [[joints[name] for name in names] for names in self.names]
        self.columns = [np.array([joint.index for joint in arm]) for arm in arms]
        self._low = [np.array([joint.lower_rad for joint in arm]) for arm in arms]
        self._high = [np.array([joint.upper_rad for joint in arm]) for arm in arms]
        self._chains = [self._find_chain_indices(tip) for tip in self.tips]
        # The poses that the solution stays near to.
        self._posture = self.poses_rad
        self._recorded_frames = self._compute_frames(self.poses_rad)
        self._all_samples = _SampleSubset(
            slice(None), Frames(*(array.copy() for array in self._recorded_frames))
        )
        # In each chain, the links from the first joint of the arm on.
        self._moving_links = [
            [index for index in chain if index >= columns[0]]
            for chain, columns in zip(self._chains, self.columns, strict=True)
        ]

    def _find_tip(self, hand: str) -> Point:
        """Return the middle of a hand, `left` or `right`, as a point of the robot's body."""
        if hand not in HANDS:
            raise BadRequestError(
                f"there is no hand {hand!r}", "Name one hand, also for a point: left or right."
            )
        for tip in self.kinematics.family.body.tips:
            if any(name.startswith(f"{hand}_") for name in self.kinematics.chain(tip[0])):
                return tip
        raise BadRequestError(
            f"the position of the {hand} hand of a {self.kinematics.family.title} is not known",
            "This edit needs a robot with arms.",
        )

    def _find_arm_joints(self, hand: str, tip: Point, track: Track) -> list[str]:
        """Return the joints of the track that move a hand's tip and belong to its arm.

        They are in the order from the shoulder to the hand.

        Raises `BadRequestError` if they are fewer than 3: then a hand can follow hardly any path.
        """
        chain = self.kinematics.chain(tip[0])
        moved = {name for name in chain.intersection(track.names) if name.startswith(f"{hand}_")}
        names = [joint.name for joint in self.kinematics.joints if joint.name in moved]
        if len(names) < 3:
            raise BadRequestError(
                Text(
                    "the motion has {count} joints of the {hand} arm; a hand needs 3 or more",
                    count=len(names),
                    hand=hand,
                ),
                "Choose the other hand, or a motion that moves this arm.",
            )
        return names

    def _find_chain_indices(self, tip: Point) -> list[int]:
        """Return the indices of the joints from the base to a tip, in this order."""
        index, indices = self.kinematics.links.index(tip[0]), list[int]()
        while index >= 0:
            indices.insert(0, index)
            index = self.kinematics.parents[index]
        return indices

    def _compute_frames(self, poses: Array) -> Frames:
        """Return the frames of the links from the base to the hands; no others are computed."""
        count = len(self.kinematics.links)
        frames = Frames(np.zeros((count, 3, len(poses))), np.zeros((count, 3, 3, len(poses))))
        needed = {index for chain in self._chains for index in chain}
        self.kinematics.update(frames, poses, sorted(needed))
        return frames

    def positions_m(self, frames: Frames | None = None) -> Array:
        """Return the positions of the hands, (hands, n, 3); by default the recorded ones."""
        frames = frames or self._recorded_frames
        return np.array([self.kinematics.at(frames, tip).T for tip in self.tips])

    def shoulders_m(self) -> Array:
        """Return the positions of the first joint of each arm, (hands, n, 3)."""
        return np.array(
            [self._recorded_frames.positions_m[columns[0]].T for columns in self.columns]
        )

    def arm_length_m(self, hand: int) -> float:
        """Return the length of an arm from its first joint to the middle of the hand."""
        link, offset_m = self.tips[hand]
        index = self.kinematics.links.index(link)
        length_m = float(np.linalg.norm(offset_m))
        while index != self.columns[hand][0]:
            length_m += float(np.linalg.norm(self.kinematics.joints[index].origin_m))
            index = self.kinematics.parents[index]
        return length_m

    def linearize_hand(self, pose: Array) -> tuple[Array, Array]:
        """Return the first hand's position, (3,), and its derivative by each joint, (3, joints).

        `pose` has one angle for each joint of the family; the track must have one sample.
        """
        columns, frames = self.columns[0].tolist(), self._all_samples.frames
        self.kinematics.update(frames, pose[None], self._chains[0])
        position = self.kinematics.at(frames, self.tips[0])[:, 0]
        axes = self.kinematics.axes(frames, columns)[..., 0]
        jacobian = np.zeros((3, len(pose)))
        jacobian[:, columns] = np.cross(axes, position - frames.positions_m[columns][..., 0]).T
        return position, jacobian

    def solve(
        self,
        offsets_m: Array,
        keep_orientation: bool = False,
        posture: Array | None = None,
        solved: Array | None = None,
    ) -> Array:
        """Return the poses, (n, joints), with the hands moved by `offsets_m`, (hands, n, 3).

        Of all such poses they are the nearest to `posture`, by default to the recorded ones. Where
        the path is out of reach, the hand comes as near as the solver finds. `solved` are poses on
        the path for another posture, to begin from.
        """
        self._posture = self.poses_rad if posture is None else posture
        poses = self._posture.copy() if solved is None else solved.copy()
        paths_m = self.positions_m() + offsets_m
        for hand, offset_m in enumerate(offsets_m):
            # Newton steps converge only near the solution, so the hand is moved step by step.
            steps = 1
            if solved is None:
                steps = max(1, int(np.ceil(np.linalg.norm(offset_m, axis=1).max() / _STEP_M)))
            for step in range(1, steps + 1):
                target_m = paths_m[hand] - offset_m * (1.0 - step / steps)
                rounds = _STEP_ROUNDS if step < steps else _LAST_ROUNDS
                self._minimise_cost(poses, hand, target_m, keep_orientation, rounds)
        return poses

    def estimate(self, offsets_m: Array) -> Array:
        """Return roughly what `solve` returns, by a single Newton step."""
        poses = self.poses_rad.copy()
        paths_m = self.positions_m() + offsets_m
        for hand, columns in enumerate(self.columns):
            angles = poses[:, columns]
            task = self._linearize(poses, hand, paths_m[hand], self._all_samples)
            no_damping = np.zeros(len(poses))
            poses[:, columns] = self._take_newton_step(
                angles, hand, task, no_damping, self._all_samples
            )
        return poses

    def _minimise_cost(
        self, poses: Array, hand: int, target_m: Array, keep_orientation: bool, rounds: int
    ) -> None:
        """Reduce the cost of each sample, in place, by up to `rounds` damped Newton steps.

        The cost is the squared distance of the hand from `target_m`, (n, 3), and the squared change
        of the preferred pose with a barrier at the limits. Its minimum changes smoothly from sample
        to sample. It ends early when no pose changes any more.
        """
        # `rows` are the samples that still change.
        columns, samples, rows = self.columns[hand], self._all_samples, np.arange(len(poses))
        task = self._linearize(poses, hand, target_m, samples, keep_orientation)
        costs = self._compute_costs(poses[:, columns], hand, task, samples)
        damping = np.zeros(len(poses))
        for number in range(rounds):
            tried = poses[rows]
            angles = tried[:, columns]
            tried[:, columns] = self._take_newton_step(
                angles, hand, task, damping, samples, bends=number >= _STRAIGHT_ROUNDS
            )
            new_task = self._linearize(tried, hand, target_m[rows], samples, keep_orientation)
            new_costs = self._compute_costs(tried[:, columns], hand, new_task, samples)
            improved = new_costs <= costs
            moving = np.abs(tried[:, columns] - angles).max(axis=1) > _SETTLED_RAD
            poses[rows[improved]] = tried[improved]
            costs[improved] = new_costs[improved]
            for values, new_values in zip(task, new_task, strict=True):
                values[improved] = new_values[improved]
            # A sample that got worse tries a smaller step in the next round.
            damping = np.where(improved, damping / 10, np.maximum(damping * 10, _MIN_DAMPING))
            if not moving.any():
                break
            if moving.sum() < len(rows) / 2:
                # Most samples are solved, so the others are worth a copy of their own.
                rows, costs, damping = rows[moving], costs[moving], damping[moving]
                task = _LinearTask(*(array[moving] for array in task))
                samples = _SampleSubset(
                    rows, Frames(*(array[..., rows] for array in self._recorded_frames))
                )

    def _compute_costs(
        self, angles: Array, hand: int, task: _LinearTask, samples: _SampleSubset
    ) -> Array:
        """Return what `_minimise_cost` reduces, (n,)."""
        cost, _, _ = self._compute_posture_cost(angles, hand, samples)
        return np.asarray(cost.sum(axis=1) + np.square(task.size_m) / (2.0 * _SOFTNESS_M2))

    def _compute_posture_cost(
        self, angles: Array, hand: int, samples: _SampleSubset
    ) -> tuple[Array, Array, Array]:
        """Return the cost of leaving the posture and its two derivatives, each (n, joints).

        The cost is half the squared change of each joint plus a barrier, which is flat at the
        preferred angle and infinite at the limit: near its limit a joint yields to the others.
        """
        preferred = self._posture[samples.rows][:, self.columns[hand]]
        change = angles - preferred
        up = np.maximum(self._high[hand] - preferred, _MIN_ROOM_RAD)
        down = np.maximum(preferred - self._low[hand], _MIN_ROOM_RAD)
        room = np.where(change > 0.0, up, -down)
        used = np.minimum(change / room, _MAX_USED)
        free = 1.0 - used
        cost = 0.5 * change**2 + _BARRIER * (-np.log(free) - used - 0.5 * used**2)
        gradient = change + _BARRIER / room * (1.0 / free - 1.0 - used)
        curvature = 1.0 + _BARRIER / room**2 * (1.0 / free**2 - 1.0)
        return cost, gradient, curvature

    def _linearize(
        self,
        poses: Array,
        hand: int,
        target_m: Array,
        samples: _SampleSubset,
        keep_orientation: bool = False,
    ) -> _LinearTask:
        """Return the error of a hand at each sample, linearized in the joints of its arm."""
        (link_name, _), columns = self.tips[hand], self.columns[hand]
        frames = samples.frames
        self.kinematics.update(frames, poses, self._moving_links[hand])
        position_m = self.kinematics.at(frames, self.tips[hand]).T
        axes = self.kinematics.axes(frames, columns.tolist())
        lever_arms = position_m.T[None] - frames.positions_m[columns]
        error = target_m - position_m
        jacobian = np.cross(axes, lever_arms, axis=1).transpose(2, 1, 0)
        if keep_orientation:
            link = self.kinematics.links.index(link_name)
            recorded = self._recorded_frames.rotations[link][..., samples.rows]
            turn = _compute_turn(frames.rotations[link], recorded)
            error = np.hstack([error, _TURN_WEIGHT_M * turn])
            turn_jacobian = _TURN_WEIGHT_M * axes.transpose(2, 1, 0)
            jacobian = np.concatenate([jacobian, turn_jacobian], axis=1)
        return _LinearTask(error, jacobian, np.linalg.norm(error, axis=1), axes.transpose(2, 0, 1))

    def _take_newton_step(
        self,
        angles: Array,
        hand: int,
        task: _LinearTask,
        damping: Array,
        samples: _SampleSubset,
        *,
        bends: bool = False,
    ) -> Array:
        """Return the joints of an arm after a damped Newton step, (n, joints of the arm).

        `damping`, (n,), makes the step of a sample smaller. With `bends`, the step takes into
        account that the hand moves on an arc, without which it converges slowly near a limit.
        """
        low, high = self._low[hand], self._high[hand]
        _, gradient, curvature = self._compute_posture_cost(angles, hand, samples)
        # The posture's curvature is diagonal, so the step is solved for the 3 or 6 multipliers of
        # the hand's error instead of for all joints.
        compliance = 1.0 / (curvature + damping[:, None])
        weighted = task.jacobian * compliance[:, None, :]
        square = weighted @ task.jacobian.transpose(0, 2, 1)
        square += _SOFTNESS_M2 * np.eye(square.shape[1])
        residual = task.error + np.einsum("nij,nj->ni", weighted, gradient)
        multipliers = np.linalg.solve(square, residual[..., None])[..., 0]
        change = np.einsum("nji,nj->ni", weighted, multipliers) - compliance * gradient
        if bends:
            bent_change, is_descent = _solve_on_arcs(task, multipliers, gradient, 1.0 / compliance)
            change[is_descent] = bent_change[is_descent]
        too_long = np.abs(change).max(axis=1, keepdims=True) / _MAX_STEP_RAD
        change /= np.maximum(too_long, 1.0)
        # A step ends before the limit, because the barrier is infinite there.
        min_change = np.minimum(_MAX_APPROACH * (low - angles), 0.0)
        max_change = np.maximum(_MAX_APPROACH * (high - angles), 0.0)
        return np.asarray(angles + np.clip(change, min_change, max_change))

    def ranges(self) -> list[tuple[NDArray[np.intp], Array, Array]]:
        """Return the columns of each arm, and the lowest and highest angles of its joints."""
        return list(zip(self.columns, self._low, self._high, strict=True))

    def errors(self, poses: Array, offsets_m: Array) -> tuple[Array, Array]:
        """Return how far each hand is from its path, in m, and how far it is turned; (hands, n).

        The turn from the recorded orientation is the sine of the angle.
        """
        frames = self._compute_frames(poses)
        distances_m = np.linalg.norm(
            self.positions_m(frames) - self.positions_m() - offsets_m, axis=2
        )
        links = [self.kinematics.links.index(link) for link, _ in self.tips]
        turns_rad = [
            np.linalg.norm(
                _compute_turn(frames.rotations[link], self._recorded_frames.rotations[link]), axis=1
            )
            for link in links
        ]
        return distances_m, np.array(turns_rad)


def _solve_on_arcs(
    task: _LinearTask, multipliers: Array, gradient: Array, curvature: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Return a Newton step with the second derivative of the position, and where it descends.

    `multipliers` are the forces at the hand that a step without it needs, (n, 3 or 6); `gradient`
    and `curvature` are those of the posture, (n, joints).
    """
    # The second derivative by two joints is the axis of the inner one times the Jacobian of the
    # outer one, as vectors.
    torques = np.cross(multipliers[:, None, :3], task.axes)
    bends = np.triu(torques @ task.jacobian[:, :3])
    bends += np.triu(bends, 1).transpose(0, 2, 1)
    transposed = task.jacobian.transpose(0, 2, 1)
    hessian = transposed @ task.jacobian / _SOFTNESS_M2 - bends
    joints = np.arange(curvature.shape[1])
    hessian[:, joints, joints] += curvature
    descent = (transposed @ task.error[..., None])[..., 0] / _SOFTNESS_M2 - gradient
    change = np.asarray(np.linalg.solve(hessian, descent[..., None])[..., 0], dtype=np.float64)
    descends: NDArray[np.bool_] = np.einsum("ni,ni->n", change, descent) > 0.0
    return change, descends


def _compute_turn(actual: Array, target: Array) -> Array:
    """Return the rotation vectors from one orientation to the other, both (3, 3, n); (n, 3).

    Their length is the sine of the angle.
    """
    return np.asarray(np.cross(actual, target, axisa=0, axisb=0, axisc=2).sum(axis=0) / 2.0)


def hand_positions_m(track: Track, hand: str) -> Array:
    """Return the path of a hand, `left` or `right`, (n, 3), in m from the robot's base."""
    return np.asarray(ArmSolver(track, [hand]).positions_m()[0])


def move_hand(
    track: Track,
    hand: str,
    by: Sequence[float] | None = None,
    scale: float = 1.0,
    through: Sequence[Sequence[float]] | None = None,
    start_s: float | None = None,
    end_s: float | None = None,
    blend_s: float | None = None,
    keep_orientation: bool = False,
    move_ends: bool = False,
) -> Track:
    """Return the track with the path of a hand moved; `hand` is `left`, `right` or `both`.

    `by` shifts the path, in m. `scale` makes it larger or smaller about its middle. `through` are
    points (time in s, x, y, z in m) that the hand passes at these times. The change is limited to
    the span from `start_s` to `end_s`, and fades in and out over `blend_s` seconds, by default as
    quickly as the recorded accelerations allow. The ends of the span stay unless `move_ends`. With
    `both`, the hands keep their distance, so that they can carry something, and `through` are
    points of the middle between them.

    Raises `BadRequestError` if a hand would miss its path by more than a millimetre, or the arm
    could follow it only by a jump. The last line of the history states an acceleration above 1.1
    times the recorded one.
    """
    track.require_samples(3)
    if by is None and scale == 1.0 and not through:
        raise BadRequestError(
            "no change of the hand was given", "Give a shift, a scale or a point."
        )
    # From here on, the times of the span are on the track's own clock, and those of points count
    # from the start of the span.
    span_start_s = track_time_s(track, 0.0 if start_s is None else start_s, "the start")
    span_end_s = track_time_s(track, track.duration_s if end_s is None else end_s, "the end")
    length_s, skipped_s = span_end_s - span_start_s, span_start_s - float(track.times_s[0])
    points = sorted(
        [float(time_s) - skipped_s, *map(float, position_m)]
        for time_s, *position_m in through or ()
    )
    points_s = [time_s for time_s, *_ in points]
    _require_inside_span(points_s, length_s, move_ends)
    track = _add_samples_at(track, [span_start_s + time_s for time_s in points_s])
    solver = ArmSolver(track, HANDS if hand == "both" else (hand,))
    change = _PathChange(
        times_s=track.times_s - span_start_s,
        length_s=length_s,
        path_m=solver.positions_m().mean(axis=0),
        by_m=np.zeros(3) if by is None else np.asarray(by, dtype=np.float64),
        scale=scale,
        points=np.array(points).reshape(-1, 4),
        move_ends=move_ends,
    )
    poses = _solve_shortest_blend(track, solver, change, blend_s, keep_orientation)
    joints_rad = track.joints_rad.copy()
    for names, columns in zip(solver.names, solver.columns, strict=True):
        joints_rad[:, track.columns_of(names)] = poses[:, columns]
    line = f"move the {'hands' if hand == 'both' else f'{hand} hand'} {change}"
    if change.is_shifted:
        line += _describe_acceleration(track.times_s, solver.poses_rad, poses)
    return track.edited(line, times_s=track.times_s, joints_rad=joints_rad, root=track.root)


def _describe_acceleration(times_s: Array, recorded_rad: Array, moved_rad: Array) -> str:
    """Return a clause for the history if the motion accelerates noticeably more than recorded."""
    recorded_peak = max(_find_peak_acceleration(times_s, recorded_rad), 1e-9)
    ratio = _find_peak_acceleration(times_s, moved_rad) / recorded_peak
    if ratio <= _MAX_ACCELERATION_RATIO:
        return ""
    return f"; it accelerates {ratio:.1f} times as much as recorded"


def _require_inside_span(times_s: Sequence[float], length_s: float, move_ends: bool) -> None:
    """Raise `BadRequestError` for a point outside the span, at an end that stays, or given twice.

    Times are seconds since the start of the span.
    """
    if length_s < 2 * _NEAR_END_S:
        raise BadRequestError(
            "the span of the change is too short", f"Leave {2 * _NEAR_END_S:g} s or more."
        )
    margin_s = 0.0 if move_ends else _NEAR_END_S
    for at_s in times_s:
        if not margin_s <= at_s <= length_s - margin_s:
            raise BadRequestError(
                Text(
                    "a point {time} after the start of the change is outside the change, or at one "
                    "of its ends, which stay",
                    time=seconds(at_s),
                ),
                "Choose a time between the ends, or let the ends move.",
            )
    if len({round(at_s, 6) for at_s in times_s}) != len(times_s):
        raise BadRequestError("two points are at the same time", "Give each its own time.")


def _add_samples_at(track: Track, times_s: Sequence[float]) -> Track:
    """Return the track with a sample exactly at each of these times of its clock."""
    for at_s in times_s:
        if np.abs(track.times_s - at_s).min() < 1e-9:
            continue
        moved_s, joints_rad = move_nearest_sample(track, at_s)
        root = None if track.root is None else track.root.at(track.times_s, moved_s)
        track = replace(track, times_s=moved_s, joints_rad=joints_rad, root=root)
    return track


class _PathChange(NamedTuple):
    """By how much a hand's path is moved at each time."""

    times_s: Array
    """The times of the samples since the start of the span, (n,)."""
    length_s: float
    """The length of the span."""
    path_m: Array
    """The recorded path, (n, 3)."""
    by_m: Array
    """The shift, (3,)."""
    scale: float
    points: Array
    """The points to pass: time since the start of the span, x, y and z; (points, 4)."""
    move_ends: bool

    def __str__(self) -> str:
        parts = []
        if self.by_m.any():
            parts.append("by " + ", ".join(f"{each:g}" for each in self.by_m) + " m")
        if self.scale != 1.0:
            parts.append(f"scaled by {self.scale:g}")
        if len(self.points):
            parts.append(f"through {len(self.points)} point{'s' if len(self.points) > 1 else ''}")
        return ", ".join(parts)

    @property
    def is_shifted(self) -> bool:
        """Whether the whole path is shifted or scaled, not only led through points."""
        return bool(self.by_m.any()) or self.scale != 1.0

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Whether each sample is in the span."""
        return np.asarray((self.times_s >= 0.0) & (self.times_s <= self.length_s))

    def offsets_m(self, blend_s: float) -> Array:
        """Return by how much the hand is moved at each sample, (n, 3)."""
        middle = self.path_m[self.inside].mean(axis=0)
        full_offsets = self.by_m + (self.scale - 1.0) * (self.path_m - middle)
        offsets = full_offsets * self.share(blend_s)[:, None]
        if len(self.points):
            offsets = offsets + self._offsets_to_points(offsets)
        return np.asarray(offsets)

    def share(self, blend_s: float) -> Array:
        """Return the share of the change at each sample, (n,): 0 outside the span, 1 inside.

        Unless the ends move too, it rises from 0 and falls to 0 over `blend_s` seconds.
        """
        if self.move_ends:
            return self.inside.astype(np.float64)
        blend_s = min(blend_s, self.length_s / 2)
        to_end_s = np.minimum(self.times_s, self.length_s - self.times_s)
        return minimum_jerk(np.zeros(1), np.ones(1), to_end_s / blend_s)[:, 0]

    def _offsets_to_points(self, offsets: Array) -> Array:
        """Return the change that, added to `offsets`, leads through the points, (n, 3)."""
        rows = np.searchsorted(self.times_s, self.points[:, 0] - 1e-9)
        missing = self.points[:, 1:] - (self.path_m + offsets)[rows]
        knots_s = np.concatenate([[0.0], self.times_s[rows], [self.length_s]])
        end_values = missing[[0, -1]] if self.move_ends else np.zeros((2, 3))
        values = np.vstack([end_values[:1], missing, end_values[1:]])
        # A point may be at an end of the span, if the ends move.
        is_distinct = np.concatenate([[True], np.diff(knots_s) > 1e-9])
        further_offsets = clamped_spline(knots_s[is_distinct], values[is_distinct], self.times_s)
        further_offsets[~self.inside] = 0.0
        return further_offsets


def _solve_shortest_blend(
    track: Track,
    solver: ArmSolver,
    change: _PathChange,
    blend_s: float | None,
    keep_orientation: bool,
) -> Array:
    """Return the poses of the shortest blend that keeps the recorded accelerations, (n, joints).

    If none does, the longest is taken and its change is smoothed. Raises `BadRequestError` if a
    hand misses its path.
    """
    half_s = change.length_s / 2
    blends_s = [each_s for each_s in _BLENDS_S if each_s < half_s] + [half_s]
    if blend_s is not None:
        blends_s = [blend_s]
    elif change.move_ends or not change.is_shifted:
        blends_s = [half_s]  # nothing is faded
    max_acceleration = _MAX_ACCELERATION_RATIO * _find_peak_acceleration(
        track.times_s, solver.poses_rad
    )

    def is_smooth(poses: Array) -> bool:
        return _find_peak_acceleration(track.times_s, poses) <= max_acceleration

    solve_count = 0
    for candidate_s in blends_s:
        offsets_m = np.repeat(change.offsets_m(candidate_s)[None], len(solver.tips), axis=0)
        is_last = candidate_s == blends_s[-1]
        # Solving takes long, so a blend is solved only if an estimate is smooth enough.
        is_worth_solving = solve_count < _MAX_SOLVED and is_smooth(solver.estimate(offsets_m))
        if not is_last and not is_worth_solving:
            continue
        poses = solver.solve(offsets_m, keep_orientation)
        solve_count += 1
        if is_last or is_smooth(poses):
            break
    if change.is_shifted and not is_smooth(poses):
        attempt = _PathAttempt(solver, change, offsets_m, keep_orientation)
        poses = _smooth_change(attempt, poses, max_acceleration)
    _require_reached(track, solver, poses, offsets_m, keep_orientation)
    _require_no_jump(track, solver, poses)
    return poses


class _PathAttempt(NamedTuple):
    """A path that the hands are to follow, for `_smooth_change`."""

    solver: ArmSolver
    change: _PathChange
    offsets_m: Array
    keep_orientation: bool

    def smooth(self, poses: Array, width_s: float) -> Array:
        """Return the poses with their difference from the recorded ones averaged over time.

        `width_s` is the standard deviation of the average; 0 changes nothing.
        """
        if not width_s:
            return poses
        recorded, times_s = self.solver.poses_rad, self.change.times_s
        width = width_s * (len(times_s) - 1) / float(times_s[-1] - times_s[0])
        change = average_gaussian(poses - recorded, width)
        share = self.change.share(_FADE_WIDTHS * width_s)
        # No joint leaves its range further than in one of the two motions.
        low, high = np.minimum(recorded, poses), np.maximum(recorded, poses)
        for columns, lower, upper in self.solver.ranges():
            low[:, columns] = np.minimum(low[:, columns], lower)
            high[:, columns] = np.maximum(high[:, columns], upper)
        return np.clip(recorded + share[:, None] * change, low, high)

    def is_reached(self, poses: Array) -> bool:
        """Return whether the hands are on their paths."""
        errors_m, turned_rad = self.solver.errors(poses, self.offsets_m)
        is_turned = self.keep_orientation and turned_rad.max() > MAX_TURN_RAD
        return bool(errors_m.max() <= MAX_ERROR_M) and not is_turned


def _smooth_change(attempt: _PathAttempt, poses: Array, max_acceleration: float) -> Array:
    """Return poses with less acceleration whose hands are still on their paths.

    First the change of the joints is averaged over time, as far as the error of the hands permits.
    Then they are solved again for the posture that results from a wider average. The search ends
    at `max_acceleration` rad/s2.
    """
    solver, times_s = attempt.solver, attempt.change.times_s
    best, lowest_peak = poses, _find_peak_acceleration(times_s, poses)
    if not attempt.is_reached(poses):
        return poses
    for posture_s in _POSTURE_WIDTHS_S:
        solved = poses
        if posture_s:
            posture = attempt.smooth(poses, posture_s)
            solved = solver.solve(attempt.offsets_m, attempt.keep_orientation, posture, poses)
        for width_s in _SMOOTHING_WIDTHS_S:
            tried = attempt.smooth(solved, width_s)
            if not attempt.is_reached(tried):
                break
            if (peak := _find_peak_acceleration(times_s, tried)) < lowest_peak:
                best, lowest_peak = tried, peak
            if lowest_peak <= max_acceleration:
                return best
    return best


def _compute_accelerations(times_s: Array, poses: Array) -> Array:
    """Return the absolute accelerations at the inner samples, in rad/s2, (n - 2, joints)."""
    speeds = np.diff(poses, axis=0) / np.diff(times_s)[:, None]
    steps_s = (times_s[2:] - times_s[:-2])[:, None] / 2
    return np.asarray(np.abs(np.diff(speeds, axis=0) / steps_s))


def _find_peak_acceleration(times_s: Array, poses: Array) -> float:
    """Return the greatest acceleration of any joint, in rad/s2."""
    return float(_compute_accelerations(times_s, poses).max())


def _require_no_jump(track: Track, solver: ArmSolver, poses: Array) -> None:
    """Raise `BadRequestError` if the arm would have to jump from one posture into another.

    Near a stretched arm two postures reach the same point, and the nearer one may change.
    """
    accelerations = _compute_accelerations(track.times_s, poses).max(axis=1)
    recorded = _find_peak_acceleration(track.times_s, solver.poses_rad)
    if accelerations.max() > max(MAX_PLAYED_RAD_S2, _MAX_ACCELERATION_RATIO * recorded):
        at_s = track.times_s[int(accelerations.argmax()) + 1] - track.times_s[0]
        raise BadRequestError(
            Text("the arm would have to jump into another posture at {time}", time=seconds(at_s)),
            "Move it less or another way, or limit the change to a part of the motion.",
        )


def _require_reached(
    track: Track, solver: ArmSolver, poses: Array, offsets_m: Array, keep_orientation: bool
) -> None:
    """Raise `BadRequestError` if a hand misses its path, with the distance and the time."""
    errors_m, turned_rad = solver.errors(poses, offsets_m)
    hand, row = np.unravel_index(int(errors_m.argmax()), errors_m.shape)
    max_error_m, max_turn = float(errors_m[hand, row]), float(turned_rad.max())
    at_s = track.times_s[row] - track.times_s[0]
    if keep_orientation and (max_error_m > MAX_ERROR_M or max_turn > MAX_TURN_RAD):
        turned_degrees = float(np.degrees(np.arcsin(min(max_turn, 1.0))))  # `max_turn` is a sine
        raise BadRequestError(
            Text(
                "the hand cannot keep its orientation: at {time} it would be {far} beside its "
                "path, and it would turn by {turned}",
                time=seconds(at_s),
                far=Quantity(1000 * max_error_m, "mm", 0),
                turned=Quantity(turned_degrees, "degrees", 0),
            ),
            "Move it less, or leave its orientation free.",
        )
    if max_error_m > MAX_ERROR_M:
        raise BadRequestError(
            Text(
                "the hand misses its new path by {far} at {time}: it is out of reach",
                far=Quantity(1000 * max_error_m, "mm", 0),
                time=seconds(at_s),
            ),
            "Move it less, or another way.",
        )
