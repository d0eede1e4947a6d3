"""The simulated body: joints with servos, weight in the arms, and hands that can pull on them.

Each joint is a rotating mass with a servo: torque = stiffness * error + damping * speed error,
limited to the motor's torque, with a setpoint of limited speed. Arms have their real weight, of
which the controller carries a part; the rest makes them sag. Legs and waist have no weight: the
balance controller that would hold them is not simulated.

A second takes 500 steps, so a step has to be cheap: a numpy call on few numbers costs half a
microsecond whatever it does. Similar arrays are stacked and computed in one call; a motionless body
sleeps. A step in which nothing reaches a limit is linear in the state and the goals, so everything
that does not depend on the state is computed beforehand. If the next goals are known, `run` takes
all steps up to the next weighing this way and then checks the limits once; if one was exceeded, it
repeats the steps one by one. Both ways give the same numbers to the last bit.
"""

from typing import NamedTuple, Protocol

import numpy as np

from rote.model.family import Build
from rote.motion.track import Array
from rote.sim.arms import Arms
from rote.sim.columns import Columns

STEP_S = 0.002
GRAVITY_EVERY = 10
"""Steps between two weighings, which compute the weight of the arms: 50 Hz."""
HAND_EVERY = 5
"""Steps between two calls of a hand's `grip`: 100 Hz."""
STILL_WEIGHINGS, STILL_RAD_S = 5, 1e-12
"""A body slower than this, and unchanged to the last bit for this many weighings, falls asleep."""
MAX_RAD_S = 12.0
"""Speed limit of every setpoint; a slower motor limits it further."""
HOLDING_WEIGHT_SHARE = 0.7
SOFT_WEIGHT_SHARE = 0.85
"""Share of the arms' weight that the controller carries: while holding, and while soft."""
_HANGING_PITCH_RAD, _HIP_STIFFNESS_NM_RAD = 0.6, 60.0
"""Below this shoulder pitch an arm hangs beside the hip, which pushes it away like this spring."""


class _Servo(NamedTuple):
    """Servo properties by body part; the values are this project's choice."""

    stiffness: float
    damping: float
    inertia: float
    soft_damping: float
    friction: float
    hand_stiffness: float
    hand_damping: float
    max_hand_nm: float
    """Stiffness, damping and maximum torque of a hand that holds the joint."""


_SERVOS = {
    "leg": _Servo(300.0, 8.0, 0.5, 8.0, 0.5, 300.0, 10.0, 60.0),
    "waist": _Servo(200.0, 6.0, 0.4, 6.0, 0.5, 60.0, 4.0, 20.0),
    "arm": _Servo(80.0, 3.0, 0.08, 1.5, 0.1, 120.0, 3.0, 20.0),
    "wrist": _Servo(40.0, 1.0, 0.01, 0.23, 0.02, 25.0, 0.4, 5.0),
    "head": _Servo(40.0, 1.0, 0.02, 0.3, 0.02, 25.0, 0.4, 5.0),
    "finger": _Servo(2.0, 0.05, 0.001, 0.02, 0.002, 2.0, 0.03, 1.0),
}


class _Servos:
    """The servos of a build, as arrays by column; arrays that are used together are stacked.

    They are not attributes of `SimBody` because classes with over 30 attributes access them slower.
    """

    def __init__(self, columns: Columns) -> None:
        build = columns.build
        servos = [_SERVOS.get(joint.part, _SERVOS["arm"]) for joint in build.joints]
        table = np.ascontiguousarray(np.array(servos).T)  # a row for each property of `_Servo`
        stiffness, damping, self.inertia, soft_damping, self.friction = table[:5]
        # A hand never pulls on a leg that is not taught: the robot stands on it.
        can_be_pulled = np.array(
            [joint.part != "leg" or joint.name in build.taught for joint in build.joints]
        )
        hand_stiffness, hand_damping, self.max_hand_nm = table[5:] * can_be_pulled
        # Stiffness and damping: of a servo, of a soft joint, and of a hand.
        self.gains = np.array([stiffness, damping])
        self.soft_gains = np.array([np.zeros(len(servos)), soft_damping])
        self.hand_gains = np.array([hand_stiffness, hand_damping])
        self.min_hand_nm = -self.max_hand_nm
        self.lower_rad, self.upper_rad = columns.lower_rad, columns.upper_rad
        self.max_effort_nm, self.min_effort_nm = columns.effort_nm, -columns.effort_nm
        # A gearbox turns no faster than its motor, however hard a hand pulls.
        self.max_speed_rad_s, self.min_speed_rad_s = columns.velocity_rad_s, -columns.velocity_rad_s
        self.max_step = np.minimum(columns.velocity_rad_s, MAX_RAD_S) * STEP_S
        self.min_step = -self.max_step
        self.lower_limits = np.array(
            [columns.lower_rad, self.min_speed_rad_s, self.min_effort_nm, self.min_step]
        )
        self.upper_limits = np.array(
            [columns.upper_rad, self.max_speed_rad_s, self.max_effort_nm, self.max_step]
        )
        """Limits of position, speed, torque, and setpoint move per step."""
        self.step_s = np.full(len(servos), STEP_S)
        self.speed_per_nm = STEP_S / self.inertia
        """Change of a joint's speed per N.m in a step."""


class _Scratch:
    """Preallocated arrays that a step writes into; their contents are valid within one step.

    `count` is the number of joints.
    """

    def __init__(self, count: int) -> None:
        self.parts = np.zeros((2, count))
        """Two products, of coefficients with positions and with speeds, that are then added."""
        self.position_part: Array = self.parts[0]
        self.speed_part: Array = self.parts[1]
        self.moved, self.other = np.zeros((2, count))
        """Distances moved in a step, and any other intermediate result."""
        self.batches = [_StepBatch(steps, count) for steps in range(GRAVITY_EVERY + 1)]
        """The batches, by their number of steps."""


class _StepBatch:
    """The arrays for several steps taken at once.

    Creating a view costs as much as summing the array, so all views are created once.
    """

    def __init__(self, steps: int, count: int) -> None:
        # The goals of each step (position and speed), and their products with coefficients.
        self.goals, self.goal_parts = np.zeros((2, steps, 2, count))
        self.goal_positions, self.goal_speeds = self.goals[:, 0], self.goals[:, 1]
        self.position_parts, self.speed_parts = self.goal_parts[:, 0], self.goal_parts[:, 1]
        self.pushes = np.zeros((steps, count))
        """Change of speed by the goals and the weight."""
        rows = np.zeros((steps + 1, 4, count))
        """Position, speed, torque and setpoint move, before the first step and after each."""
        self.start = rows[0, :2]
        self.before, self.after = rows[:-1, :2], rows[1:, :2]
        """The state (position and speed) before and after each step."""
        self.torques_nm, self.moves = rows[1:, 2], rows[1:, 3]
        self.limited = rows[1:]
        """The four quantities that have limits, after each step."""
        self.allowed = np.zeros((2, steps, 4, count), dtype=bool)
        self.steps: list[tuple[Array, Array, Array, Array]] = [
            (push, row[:2], row[0], row[1])
            for push, row in zip(self.pushes, self.limited, strict=True)
        ]
        """For each step: its push, and the state after it: the whole, its positions, its speeds."""


class PullingHand(Protocol):
    """A hand that pulls on the joints."""

    def grip(self, time_s: float) -> Array | None:
        """Return the hand's target positions by column; NaN for joints that it does not hold.

        `time_s` counts from when the hand took hold. None means that it has released the joints for
        good.
        """


class SimBody:
    """Positions, speeds and torques of all joints, advanced step by step.

    Positions and speeds are changed in place: copy what you keep.
    """

    def __init__(self, build: Build) -> None:
        count = len(build.joints)
        self.build = build
        columns = Columns(build)
        self._servos, self._arms = _Servos(columns), Arms(build)
        self._scratch = _Scratch(count)
        self._arm_columns = _to_slice(self._arms.columns)
        self._state = np.array([columns.rest_rad, np.zeros(count)])
        self.joints_rad: Array = self._state[0]
        self.speeds_rad_s: Array = self._state[1]
        self.torques_nm = np.zeros(count)
        # The servos' targets, stacked like the state: position and speed.
        self._goals = np.array([columns.rest_rad, np.zeros(count)])
        self._setpoint: Array = self._goals[0]
        self._goal_speeds: Array = self._goals[1]
        self._weight, self._carried = np.zeros(count), np.zeros(count)
        """Torque of gravity on each joint, and the part of it that the controller carries."""
        self._soft = np.zeros(count, dtype=bool)
        self._hand: PullingHand | None = None
        self._hand_since_s = 0.0
        self._steps = self._motionless_weighings = 0
        self._last_positions_and_goals = self._sleeping_inputs = b""
        """Positions and goals at the last weighing, and the step inputs of a body that sleeps;
        empty if it is awake."""
        self.soften(())

    def soften(
        self,
        joints: tuple[int, ...],
        *,
        carried_share: float = SOFT_WEIGHT_SHARE,
        damped: bool = True,
    ) -> None:
        """Make these joints soft and let all others hold where they are, without a jump.

        `carried_share` is the share of the weight of soft arms that the controller carries. With 0,
        and without `damped`, the motors of soft joints give no torque.
        """
        soft = np.zeros_like(self._soft)
        soft[np.asarray(joints, dtype=int)] = True
        servos = self._servos
        newly_held = self._soft & ~soft
        self._setpoint[newly_held] = self.joints_rad[newly_held]
        self._soft = soft
        self.soft: tuple[int, ...] = tuple(np.flatnonzero(soft).tolist())
        """The joints that are soft."""
        self._goal_speed_gain = np.where(soft, 0.0, 1.0)  # a soft joint follows no target speed
        self._gains = np.where(soft, servos.soft_gains if damped else 0.0, servos.gains)
        self._weight_share = np.where(soft, carried_share, HOLDING_WEIGHT_SHARE)
        # A joint's next speed is linear in its goals and its state: these are the coefficients.
        self._speed_per_goal = self._gains * servos.speed_per_nm
        self._speed_per_state = -self._speed_per_goal
        self._speed_per_state[1] += 1.0 - servos.friction * servos.speed_per_nm
        self._update_carried_weight()
        self._leaning = tuple(arm for arm in self._arms.shoulders if soft[arm.roll])
        self._grip: tuple[Array, Array] | None = None
        """The goals and gains of the hand; None until they are read again."""
        self._wake_up()

    @property
    def setpoint_rad(self) -> Array:
        """The positions that the servos aim for."""
        return self._setpoint.copy()

    def attach(self, hand: PullingHand | None, now_s: float) -> None:
        """Let a hand take hold of the body; None removes it."""
        self._hand, self._hand_since_s, self._grip = hand, now_s, None
        self._wake_up()

    @property
    def held_by_hand(self) -> bool:
        """Whether a hand is pulling."""
        return self._hand is not None

    def step(self, now_s: float, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Advance by `STEP_S` towards a target; soft joints ignore it."""
        weighs = self._steps % GRAVITY_EVERY == 0
        self._steps += 1
        if self._sleeps_through(target_rad, target_speed_rad_s):
            return
        if weighs:
            self._compute_weight()
        self._move_setpoint(target_rad, target_speed_rad_s)
        extra_nm = self._apply_motors()
        if self._hand is not None:
            self._add_hand_torques(now_s, extra_nm)
        if self._leaning:
            self._add_hip_contact(extra_nm)
        self._integrate_step(extra_nm)
        if weighs:
            self._sleep_if_motionless(target_rad, target_speed_rad_s)

    def run(self, targets_rad: Array, target_speeds_rad_s: Array) -> None:
        """Advance by one step per row, as `step` does; no hand may be attached."""
        first, count = 0, len(targets_rad)
        while first < count:
            last = min(count, first + GRAVITY_EVERY - self._steps % GRAVITY_EVERY)
            targets, speeds = targets_rad[first:last], target_speeds_rad_s[first:last]
            if not self._run_until_weighing(targets, speeds):
                for target, speed in zip(targets, speeds, strict=True):
                    self.step(0.0, target, speed)
            first = last

    def hold(self, target_rad: Array, target_speed_rad_s: Array, count: int) -> None:
        """Advance by `count` steps towards one target, as `step` does; no hand may be attached."""
        if self._sleeps_through(target_rad, target_speed_rad_s):
            self._steps += count
            return
        shape = (count, len(target_rad))
        self.run(np.broadcast_to(target_rad, shape), np.broadcast_to(target_speed_rad_s, shape))

    def _run_until_weighing(self, targets_rad: Array, target_speeds_rad_s: Array) -> bool:
        """Take all steps at once; only the first may be a weighing.

        Returns False, with the state unchanged, if they have to be taken one by one.
        """
        if self._sleeping_inputs or self._leaning or self._hand is not None:
            return False
        if self._steps % GRAVITY_EVERY:
            return self._run_without_limits(targets_rad, target_speeds_rad_s)
        self._compute_weight()
        return self._run_without_limits(targets_rad, target_speeds_rad_s, weighs=True)

    def _run_without_limits(
        self, targets_rad: Array, target_speeds_rad_s: Array, *, weighs: bool = False
    ) -> bool:
        """Take all steps at once without applying limits.

        Returns False, with the state unchanged, if a limit was exceeded, or if the first step
        `weighs` and nothing has changed since the last weighing: then the body may fall asleep.
        """
        count = len(targets_rad)
        batch = self._scratch.batches[count]
        batch.goal_positions[:] = targets_rad
        np.multiply(target_speeds_rad_s, self._goal_speed_gain, batch.goal_speeds)
        batch.start[:] = self._state
        self._integrate_batch(batch)
        np.subtract(targets_rad[0], self._setpoint, batch.moves[0])
        np.subtract(targets_rad[1:], targets_rad[:-1], batch.moves[1:])
        self._compute_motor_torques(batch.goals, batch.before, batch.goal_parts, batch.torques_nm)
        if not self._is_within_limits(batch):
            return False
        if weighs:
            positions_and_goals = batch.after[0, 0].tobytes() + batch.goals[0].tobytes()
            if positions_and_goals == self._last_positions_and_goals:
                return False
            self._motionless_weighings = 0
            self._last_positions_and_goals = positions_and_goals
        self._state[:], self._goals[:] = batch.after[-1], batch.goals[-1]
        self.torques_nm = batch.torques_nm[-1].copy()
        self._steps += count
        return True

    def _integrate_batch(self, batch: _StepBatch) -> None:
        """Compute the state after each step from the previous state, the goals and the weight."""
        scratch, step_s = self._scratch, self._servos.step_s
        parts, position_part, speed_part = scratch.parts, scratch.position_part, scratch.speed_part
        moved, speed_per_state = scratch.moved, self._speed_per_state
        np.multiply(batch.goals, self._speed_per_goal, batch.goal_parts)
        np.add(batch.position_parts, batch.speed_parts, batch.pushes)
        np.add(batch.pushes, self._speed_from_weight, batch.pushes)
        state: Array = self._state
        position: Array = self.joints_rad
        for push, next_state, next_position, next_speed in batch.steps:
            np.multiply(state, speed_per_state, parts)
            np.add(position_part, speed_part, next_speed)
            np.add(next_speed, push, next_speed)
            np.multiply(next_speed, step_s, moved)
            np.add(position, moved, next_position)
            state, position = next_state, next_position

    def _is_within_limits(self, batch: _StepBatch) -> bool:
        np.greater_equal(batch.limited, self._servos.lower_limits, batch.allowed[0])
        np.less_equal(batch.limited, self._servos.upper_limits, batch.allowed[1])
        return int(np.count_nonzero(batch.allowed)) == batch.allowed.size

    def _compute_motor_torques(
        self, goals: Array, states: Array, parts: Array, torques_nm: Array
    ) -> None:
        """Write the motors' torques into `torques_nm`, without limits; `parts` is scratch space."""
        np.subtract(goals, states, parts)
        np.multiply(parts, self._gains, parts)
        np.add(parts[..., 0, :], parts[..., 1, :], torques_nm)
        np.subtract(torques_nm, self._carried, torques_nm)

    def _compute_weight(self) -> None:
        """Compute the gravity torques on the arms."""
        if self._arms.columns:
            arms_rad = self.joints_rad[self._arm_columns]
            self._weight[self._arm_columns] = self._arms.gravity_torque_nm(arms_rad)
        self._update_carried_weight()

    def _update_carried_weight(self) -> None:
        """Split the weight into the share that the controller carries and the rest."""
        self._carried = self._weight_share * self._weight
        # The rest accelerates the joints.
        self._speed_from_weight = (self._weight - self._carried) * self._servos.speed_per_nm

    def _move_setpoint(self, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Move the setpoint towards its target, within the speed limit."""
        servos = self._servos
        if target_rad.tobytes() != self._setpoint.tobytes():
            move = target_rad - self._setpoint
            allowed = np.maximum(move, servos.min_step)
            np.minimum(allowed, servos.max_step, out=allowed)
            if allowed.tobytes() == move.tobytes():
                self._setpoint[:] = target_rad  # exactly, which adding the move might not reach
            else:
                self._setpoint += allowed
        np.multiply(target_speed_rad_s, self._goal_speed_gain, self._goal_speeds)

    def _apply_motors(self) -> Array:
        """Set the motor torques within their limits; return limited minus unlimited torques.

        The difference corrects `_integrate_step`, which computes with unlimited torques.
        """
        servos, torques = self._servos, np.empty_like(self.torques_nm)
        self._compute_motor_torques(self._goals, self._state, self._scratch.parts, torques)
        limited = np.maximum(torques, servos.min_effort_nm)
        self.torques_nm = np.minimum(limited, servos.max_effort_nm, out=limited)
        return np.subtract(limited, torques, torques)

    def _compute_spring_torques_nm(self, goals: Array, gains: Array) -> Array:
        """Return stiffness * error + damping * speed error."""
        parts = goals - self._state
        parts *= gains
        torques: Array = parts[0] + parts[1]
        return torques

    def _add_hand_torques(self, now_s: float, extra_nm: Array) -> None:
        """Add the hand's torques; its target positions are read every few steps."""
        if self._steps % HAND_EVERY == 0 or self._grip is None:
            self._update_grip(now_s)
        if self._grip is not None:
            servos, pull = self._servos, self._compute_spring_torques_nm(*self._grip)
            np.maximum(pull, servos.min_hand_nm, out=pull)
            np.minimum(pull, servos.max_hand_nm, out=pull)
            extra_nm += pull

    def _update_grip(self, now_s: float) -> None:
        """Read the hand's target positions; joints that it does not hold are not pulled."""
        assert self._hand is not None
        grip_rad = self._hand.grip(now_s - self._hand_since_s)
        if grip_rad is None:
            self._hand = self._grip = None
            return
        # A hand moves soft joints only; it does not overpower joints that hold.
        held = ~np.isnan(grip_rad) & self._soft
        goals = np.zeros_like(self._goals)
        goals[0, held] = grip_rad[held]
        self._grip = (goals, self._servos.hand_gains * held)

    def _add_hip_contact(self, extra_nm: Array) -> None:
        """Add the contact force of a soft, hanging arm against the hip."""
        for pitch, roll, outwards, hip_rad in self._leaning:
            if abs(self.joints_rad.item(pitch)) < _HANGING_PITCH_RAD:
                overlap_rad = hip_rad - outwards * self.joints_rad.item(roll)
                if overlap_rad > 0.0:
                    extra_nm[roll] += outwards * _HIP_STIFFNESS_NM_RAD * overlap_rad

    def _integrate_step(self, extra_nm: Array) -> None:
        """Advance speeds and positions by one step; a joint at its mechanical stop stays there.

        `extra_nm` is added to the unlimited motor torques.
        """
        speeds, positions, servos = self.speeds_rad_s, self.joints_rad, self._servos
        scratch = self._scratch
        moved, parts = scratch.moved, scratch.parts
        # The next speed is a sum of terms from the goals, the weight, the state and extra torques.
        np.multiply(self._goals, self._speed_per_goal, parts)
        push = np.add(scratch.position_part, scratch.speed_part, scratch.other)
        np.add(push, self._speed_from_weight, push)
        np.multiply(self._state, self._speed_per_state, parts)
        np.add(scratch.position_part, scratch.speed_part, speeds)
        np.add(speeds, push, speeds)
        np.multiply(extra_nm, servos.speed_per_nm, moved)
        np.add(speeds, moved, speeds)
        np.maximum(speeds, servos.min_speed_rad_s, out=speeds)
        np.minimum(speeds, servos.max_speed_rad_s, out=speeds)
        np.multiply(speeds, servos.step_s, moved)
        np.add(positions, moved, positions)
        reachable = np.maximum(positions, servos.lower_rad, out=scratch.other)
        np.minimum(reachable, servos.upper_rad, out=reachable)
        if reachable.tobytes() != positions.tobytes():
            speeds[reachable != positions] = 0.0
            positions[:] = reachable

    # ---- sleep ----------------------------------------------------------------------------------

    def _sleep_if_motionless(self, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Fall asleep after several weighings without motion; any change wakes the body.

        The remaining speeds are too small to change a position by its last bit.
        """
        positions_and_goals = self.joints_rad.tobytes() + self._goals.tobytes()
        if positions_and_goals == self._last_positions_and_goals:
            self._motionless_weighings += 1
        else:
            self._motionless_weighings = 0
        self._last_positions_and_goals, self._sleeping_inputs = positions_and_goals, b""
        motionless = self._motionless_weighings >= STILL_WEIGHINGS and self._hand is None
        if motionless and np.abs(self.speeds_rad_s).max() < STILL_RAD_S:
            self._sleeping_inputs = self._pack_step_inputs(target_rad, target_speed_rad_s)

    def _sleeps_through(self, target_rad: Array, target_speed_rad_s: Array) -> bool:
        """Whether the body sleeps, and a step towards this target would not wake it."""
        return bool(self._sleeping_inputs) and self._sleeping_inputs == self._pack_step_inputs(
            target_rad, target_speed_rad_s
        )

    def _wake_up(self) -> None:
        self._motionless_weighings, self._sleeping_inputs = 0, b""

    def _pack_step_inputs(self, target_rad: Array, target_speed_rad_s: Array) -> bytes:
        """Return all inputs of a step as bytes; equal bytes mean an identical step."""
        arrays = (self._state, self._goals, target_rad, target_speed_rad_s)
        return b"".join([array.tobytes() for array in arrays])


def _to_slice(columns: tuple[int, ...]) -> slice | list[int]:
    """Return columns as a slice, which is faster, if they are consecutive; otherwise as a list."""
    if columns and columns == tuple(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[0] + len(columns))
    return list(columns)
