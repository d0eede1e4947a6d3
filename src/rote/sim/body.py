"""The simulated body: joints with servos, weight in the arms, and hands that can pull on them.

Each joint is a rotating mass with a servo: torque = stiffness * error + damping * speed error,
limited to the motor's torque, with a setpoint of limited speed. Arms have their real weight, of
which the controller cancels a part; the rest is the sag one sees. Legs and waist have none: the
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
"""Steps between two computations of the arms' weight: 50 Hz."""
HAND_EVERY = 5
"""Steps between two calls of a hand's `grip`: 100 Hz."""
STILL_WEIGHINGS, STILL_RAD_S = 5, 1e-12
"""A body slower than this, and unchanged to the last bit for this many weighings, falls asleep."""
MAX_RAD_S = 12.0
"""Speed limit of every setpoint; a slower motor limits it further."""
HOLDING_CANCELS = 0.7
SOFT_CANCELS = 0.85
"""Share of the arms' weight that the controller cancels: while holding, and while soft."""
_HANGS_RAD, _HIP_NM_RAD = 0.6, 60.0


class _Servo(NamedTuple):
    """Servo properties by body part; the values are this project's choice."""

    stiffness: float
    damping: float
    inertia: float
    soft_damping: float
    friction: float
    hand_stiffness: float
    """How firmly a hand holds it, how much it damps, and how strong it is."""
    hand_damping: float
    hand_nm: float


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

    They are not attributes of the body: access to attributes is slower if there are more than 30.
    """

    def __init__(self, columns: Columns) -> None:
        build = columns.build
        servos = [_SERVOS.get(joint.part, _SERVOS["arm"]) for joint in build.joints]
        table = np.ascontiguousarray(np.array(servos).T)
        stiffness, damping, self.inertia, soft_damping, self.friction = table[:5]
        # A hand never pulls on a leg that is not taught: the robot stands on it.
        held = np.array(
            [joint.part != "leg" or joint.name in build.taught for joint in build.joints]
        )
        hand_stiffness, hand_damping, self.hand_nm = table[5:] * held
        # Stiffness and damping: of a servo, of a soft joint, and of a hand.
        self.gains = np.array([stiffness, damping])
        self.soft_gains = np.array([np.zeros(len(servos)), soft_damping])
        self.hand_gains = np.array([hand_stiffness, hand_damping])
        self.hand_back_nm = -self.hand_nm
        self.lower_rad, self.upper_rad = columns.lower_rad, columns.upper_rad
        self.effort_nm, self.effort_back_nm = columns.effort_nm, -columns.effort_nm
        # A gearbox turns no faster than its motor, however hard a hand pulls.
        self.fastest, self.fastest_back = columns.velocity_rad_s, -columns.velocity_rad_s
        self.most_a_step = np.minimum(columns.velocity_rad_s, MAX_RAD_S) * STEP_S
        self.least_a_step = -self.most_a_step
        self.least = np.array(
            [columns.lower_rad, self.fastest_back, self.effort_back_nm, self.least_a_step]
        )
        self.most = np.array([columns.upper_rad, self.fastest, self.effort_nm, self.most_a_step])
        """Limits of position, speed, torque, and setpoint move per step."""
        self.step_s = np.full(len(servos), STEP_S)
        self.speed_per_nm = STEP_S / self.inertia
        """What a torque adds to a joint's speed in a step."""


class _Scratch:
    """Preallocated arrays that a step writes into; their contents are valid within one step."""

    def __init__(self, count: int) -> None:
        self.parts = np.zeros((2, count))
        self.position_part: Array = self.parts[0]
        self.speed_part: Array = self.parts[1]
        self.moved, self.possible = np.zeros((2, count))
        self.runs = [_StepRun(steps, count) for steps in range(GRAVITY_EVERY + 1)]
        """By the number of steps taken at once."""


class _StepRun:
    """The arrays for several steps taken at once.

    Creating a view costs as much as summing the array, so all views are created once.
    """

    def __init__(self, steps: int, count: int) -> None:
        self.goals, self.goal_parts = np.zeros((2, steps, 2, count))
        self.goal_positions, self.goal_speeds = self.goals[:, 0], self.goals[:, 1]
        self.position_parts, self.speed_parts = self.goal_parts[:, 0], self.goal_parts[:, 1]
        self.pushes = np.zeros((steps, count))
        """What the goals and the weight add to the speed."""
        limited = np.zeros((steps + 1, 4, count))
        """Position, speed, torque and setpoint move, before the first step and after each."""
        self.start = limited[0, :2]
        self.before, self.after = limited[:-1, :2], limited[1:, :2]
        self.torques_nm, self.moves = limited[1:, 2], limited[1:, 3]
        self.limited = limited[1:]
        self.allowed = np.zeros((2, steps, 4, count), dtype=bool)
        self.steps: list[tuple[Array, Array, Array, Array]] = [
            (push, row[:2], row[0], row[1])
            for push, row in zip(self.pushes, self.limited, strict=True)
        ]
        """By step: its push, its state, and the two parts of that."""


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
        self._weighed = _as_slice(self._arms.columns)
        self._state = np.array([columns.rest_rad, np.zeros(count)])
        self.joints_rad: Array = self._state[0]
        self.speeds_rad_s: Array = self._state[1]
        self.torques_nm = np.zeros(count)
        # The servos' targets, stacked like the state: position and speed.
        self._goals = np.array([columns.rest_rad, np.zeros(count)])
        self._setpoint: Array = self._goals[0]
        self._goal_speeds: Array = self._goals[1]
        self._weight, self._carried = np.zeros(count), np.zeros(count)
        self._soft = np.zeros(count, dtype=bool)
        self._hand: PullingHand | None = None
        self._hand_since_s = 0.0
        self._steps = self._motionless_weighings = 0
        self._last_positions = self._asleep = b""
        self.soften(())

    def soften(
        self, joints: tuple[int, ...], *, cancels: float = SOFT_CANCELS, damped: bool = True
    ) -> None:
        """Make these joints soft and let all others hold where they are, without a jump.

        `cancels` is the share of the arms' weight that the controller carries meanwhile. With 0 and
        not `damped`, the motors give no torque at all.
        """
        soft = np.zeros_like(self._soft)
        soft[np.asarray(joints, dtype=int)] = True
        servos = self._servos
        newly_held = self._soft & ~soft
        self._setpoint[newly_held] = self.joints_rad[newly_held]
        self._soft = soft
        self._follows = np.where(soft, 0.0, 1.0)
        self._gains = np.where(soft, servos.soft_gains if damped else 0.0, servos.gains)
        self._cancels = np.where(soft, cancels, HOLDING_CANCELS)
        # The change of speed in a step is linear in the goals and in the state (with damping).
        self._pulls = self._gains * servos.speed_per_nm
        self._keeps = -self._pulls
        self._keeps[1] += 1.0 - servos.friction * servos.speed_per_nm
        self._update_carried_weight()
        self._leaning = tuple(arm for arm in self._arms.shoulders if soft[arm.roll])
        self._grip: tuple[Array, Array] | None = None
        self._wake_up()

    @property
    def soft(self) -> tuple[int, ...]:
        """The joints that are soft."""
        return tuple(int(index) for index in np.flatnonzero(self._soft))

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
        if self._asleep and self._asleep == self._step_inputs(target_rad, target_speed_rad_s):
            return
        if weighs:
            self._compute_weight()
        self._move_setpoint(target_rad, target_speed_rad_s)
        more = self._apply_motors()
        if self._hand is not None:
            self._add_hand_torques(now_s, more)
        if self._leaning:
            self._add_hip_contact(more)
        self._integrate_step(more)
        if weighs:
            self._sleep_if_motionless(target_rad, target_speed_rad_s)

    def run(self, targets_rad: Array, target_speeds_rad_s: Array) -> None:
        """Advance by a step for each row, as `step` does; no hand may hold the body meanwhile."""
        first, count = 0, len(targets_rad)
        while first < count:
            last = min(count, first + GRAVITY_EVERY - self._steps % GRAVITY_EVERY)
            targets, speeds = targets_rad[first:last], target_speeds_rad_s[first:last]
            if not self._run_to_weighing(targets, speeds):
                for target, speed in zip(targets, speeds, strict=True):
                    self.step(0.0, target, speed)
            first = last

    def _run_to_weighing(self, targets_rad: Array, target_speeds_rad_s: Array) -> bool:
        """Take steps at once, of which only the first may weigh.

        Returns False, without any effect, if they have to be taken one by one.
        """
        if self._asleep or self._leaning or self._hand is not None:
            return False
        if self._steps % GRAVITY_EVERY:
            return self._run_freely(targets_rad, target_speeds_rad_s)
        self._compute_weight()
        return self._run_freely(targets_rad, target_speeds_rad_s, weighs=True)

    def _run_freely(
        self, targets_rad: Array, target_speeds_rad_s: Array, *, weighs: bool = False
    ) -> bool:
        """Take steps without applying limits.

        Returns False, without any effect, if a limit was exceeded; also if the first step `weighs`
        and nothing has changed since the last weighing, because the body may fall asleep.
        """
        count = len(targets_rad)
        run = self._scratch.runs[count]
        run.goal_positions[:] = targets_rad
        np.multiply(target_speeds_rad_s, self._follows, run.goal_speeds)
        run.start[:] = self._state
        self._integrate_run(run)
        np.subtract(targets_rad[0], self._setpoint, run.moves[0])
        np.subtract(targets_rad[1:], targets_rad[:-1], run.moves[1:])
        self._compute_motor_torques(run.goals, run.before, run.goal_parts, run.torques_nm)
        if not self._is_within_limits(run):
            return False
        if weighs:
            positions_bytes = run.after[0, 0].tobytes() + run.goals[0].tobytes()
            if positions_bytes == self._last_positions:
                return False
            self._motionless_weighings, self._last_positions = 0, positions_bytes
        self._state[:], self._goals[:] = run.after[-1], run.goals[-1]
        self.torques_nm = run.torques_nm[-1].copy()
        self._steps += count
        return True

    def _integrate_run(self, run: _StepRun) -> None:
        """Compute the state after each step from the previous state, the goals and the weight."""
        scratch, step_s = self._scratch, self._servos.step_s
        parts, position_part, speed_part = scratch.parts, scratch.position_part, scratch.speed_part
        moved, keeps = scratch.moved, self._keeps
        np.multiply(run.goals, self._pulls, run.goal_parts)
        np.add(run.position_parts, run.speed_parts, run.pushes)
        np.add(run.pushes, self._falls, run.pushes)
        state: Array = self._state
        position: Array = self.joints_rad
        for push, state_then, position_then, speed_then in run.steps:
            np.multiply(state, keeps, parts)
            np.add(position_part, speed_part, speed_then)
            np.add(speed_then, push, speed_then)
            np.multiply(speed_then, step_s, moved)
            np.add(position, moved, position_then)
            state, position = state_then, position_then

    def _is_within_limits(self, run: _StepRun) -> bool:
        np.greater_equal(run.limited, self._servos.least, run.allowed[0])
        np.less_equal(run.limited, self._servos.most, run.allowed[1])
        return int(np.count_nonzero(run.allowed)) == run.allowed.size

    def _compute_motor_torques(
        self, goals: Array, states: Array, parts: Array, torques_nm: Array
    ) -> None:
        """Write the motors' torques, without a limit; `parts` is overwritten."""
        np.subtract(goals, states, parts)
        np.multiply(parts, self._gains, parts)
        np.add(parts[..., 0, :], parts[..., 1, :], torques_nm)
        np.subtract(torques_nm, self._carried, torques_nm)

    def _compute_weight(self) -> None:
        """Compute the gravity torques on the arms."""
        if self._arms.columns:
            arms_rad = self.joints_rad[self._weighed]
            self._weight[self._weighed] = self._arms.gravity_torque_nm(arms_rad)
        self._update_carried_weight()

    def _update_carried_weight(self) -> None:
        """Compute the share of the weight that the controller carries, and the rest."""
        self._carried = self._cancels * self._weight
        self._falls = (self._weight - self._carried) * self._servos.speed_per_nm

    def _move_setpoint(self, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Move the setpoint towards its target, as fast as it may."""
        servos = self._servos
        if target_rad.tobytes() != self._setpoint.tobytes():
            move = target_rad - self._setpoint
            allowed = np.maximum(move, servos.least_a_step)
            np.minimum(allowed, servos.most_a_step, out=allowed)
            if allowed.tobytes() == move.tobytes():
                self._setpoint[:] = target_rad
            else:
                self._setpoint += allowed
        np.multiply(target_speed_rad_s, self._follows, self._goal_speeds)

    def _apply_motors(self) -> Array:
        """Set the motor torques within their limits; return the difference to unlimited ones."""
        servos, torques = self._servos, np.empty_like(self.torques_nm)
        self._compute_motor_torques(self._goals, self._state, self._scratch.parts, torques)
        possible = np.maximum(torques, servos.effort_back_nm)
        self.torques_nm = np.minimum(possible, servos.effort_nm, out=possible)
        return np.subtract(possible, torques, torques)

    def _spring_torques_nm(self, goals: Array, gains: Array) -> Array:
        """Return stiffness * error + damping * speed error."""
        parts = goals - self._state
        parts *= gains
        torques: Array = parts[0] + parts[1]
        return torques

    def _add_hand_torques(self, now_s: float, more_nm: Array) -> None:
        """Add the hand's torques; its target positions are read every few steps."""
        if self._steps % HAND_EVERY == 0 or self._grip is None:
            self._update_grip(now_s)
        if self._grip is not None:
            servos, pull = self._servos, self._spring_torques_nm(*self._grip)
            np.maximum(pull, servos.hand_back_nm, out=pull)
            np.minimum(pull, servos.hand_nm, out=pull)
            more_nm += pull

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

    def _add_hip_contact(self, more_nm: Array) -> None:
        """Add the contact force of a soft, hanging arm against the hip."""
        for pitch, roll, outwards, hip_rad in self._leaning:
            if abs(self.joints_rad.item(pitch)) < _HANGS_RAD:
                inside = hip_rad - outwards * self.joints_rad.item(roll)
                if inside > 0.0:
                    more_nm[roll] += outwards * _HIP_NM_RAD * inside

    def _integrate_step(self, more_nm: Array) -> None:
        """Advance speeds and positions by one step; a joint at its mechanical stop stays there.

        `more_nm` is added to the unlimited motor torques.
        """
        speeds, positions, servos = self.speeds_rad_s, self.joints_rad, self._servos
        scratch = self._scratch
        moved, possible, parts = scratch.moved, scratch.possible, scratch.parts
        np.multiply(self._goals, self._pulls, parts)
        push = np.add(scratch.position_part, scratch.speed_part, possible)
        np.add(push, self._falls, push)
        np.multiply(self._state, self._keeps, parts)
        np.add(scratch.position_part, scratch.speed_part, speeds)
        np.add(speeds, push, speeds)
        np.multiply(more_nm, servos.speed_per_nm, moved)
        np.add(speeds, moved, speeds)
        np.maximum(speeds, servos.fastest_back, out=speeds)
        np.minimum(speeds, servos.fastest, out=speeds)
        np.multiply(speeds, servos.step_s, moved)
        np.add(positions, moved, positions)
        np.maximum(positions, servos.lower_rad, out=possible)
        np.minimum(possible, servos.upper_rad, out=possible)
        if possible.tobytes() != positions.tobytes():
            speeds[possible != positions] = 0.0
            positions[:] = possible

    # ---- sleep ----------------------------------------------------------------------------------

    def _sleep_if_motionless(self, target_rad: Array, target_speed_rad_s: Array) -> None:
        """Fall asleep after several weighings without motion; any change wakes the body.

        The remaining speeds are too small to change a position by its last bit.
        """
        positions_bytes = self.joints_rad.tobytes() + self._goals.tobytes()
        self._motionless_weighings = (
            self._motionless_weighings + 1 if positions_bytes == self._last_positions else 0
        )
        self._last_positions, self._asleep = positions_bytes, b""
        motionless = self._motionless_weighings >= STILL_WEIGHINGS and self._hand is None
        if motionless and np.abs(self.speeds_rad_s).max() < STILL_RAD_S:
            self._asleep = self._step_inputs(target_rad, target_speed_rad_s)

    def _wake_up(self) -> None:
        self._motionless_weighings, self._asleep = 0, b""

    def _step_inputs(self, target_rad: Array, target_speed_rad_s: Array) -> bytes:
        """Return everything that can make one step differ from another, to the last bit."""
        arrays = (self._state, self._goals, target_rad, target_speed_rad_s)
        return b"".join([array.tobytes() for array in arrays])


def _as_slice(columns: tuple[int, ...]) -> slice | list[int]:
    """Return consecutive columns as a slice, which is faster to use."""
    if columns and columns == tuple(range(columns[0], columns[0] + len(columns))):
        return slice(columns[0], columns[0] + len(columns))
    return list(columns)
