"""Arms that follow streamed poses within limits, and return to rest by themselves.

Whatever a client streams, no setpoint leaves the joints' limits or is faster than a playback. If
the poses stop, or one is not safe, the arms brake and return softly to rest.
"""

from collections.abc import Callable

import numpy as np

from rote.errors import UnsafeMotionError
from rote.messages import Code, Phase, StreamPose
from rote.model.family import Build
from rote.motion.check.limits import TOLERANCE_RAD, playback_limits_rad_s
from rote.motion.track import Array
from rote.sim.body import STEP_S
from rote.sim.columns import Columns
from rote.sim.player import JointSetpoint, Playback
from rote.sim.refusal import RefusalError

SILENCE_S = 0.1
"""After this long without a pose, the arms return."""
FIRST_S = 2.0
"""The first pose may take longer: the answer before it may be lost and repeated."""
_SMOOTHING = 0.2
"""Share of the remaining distance that a setpoint moves in one step. Poses arrive in bursts;
without this smoothing the arms would shake.
"""


class StreamedPlayback(Playback):
    """A playback whose motion arrives pose by pose."""

    def __init__(self, pose_rad: Array, on_failure: Callable[[str], None], build: Build) -> None:
        """Begin at `pose_rad`; `on_failure` is called with a reason if the stream ends early."""
        # Not super().__init__(): it needs the whole motion, which is not known yet.
        columns = self._columns = Columns(build)
        self._taught = columns.taught
        self._lower, self._upper = columns.lower_rad[self._taught], columns.upper_rad[self._taught]
        self._min_rad, self._max_rad = self._lower - TOLERANCE_RAD, self._upper + TOLERANCE_RAD
        self._max_step = playback_limits_rad_s(build.joints) * STEP_S
        self._min_step = -self._max_step
        self.loops = False
        self._parts = []
        self._reset_to(pose_rad)
        self.following = True
        """Whether poses are still accepted; afterwards it only returns to rest."""
        self._on_failure = on_failure
        # Where the robot would be without a stream, step by step.
        self._rest_poses = self._plan_return_to_rest(pose_rad)
        self._pose = pose_rad.copy()
        self._weight = 0.0
        self._joint_weights = np.zeros_like(pose_rad)  # 0 for joints that are not streamed
        self._was_fully_followed = False
        """Whether a pose had the weight 1."""
        self._steps = 0
        self._timeout_step = round(FIRST_S / STEP_S)

    @property
    def phase(self) -> Phase:
        """APPROACH while the weight rises, PLAYING while it is full, RETURN when it falls."""
        if not self.following:
            return super().phase
        if not self._was_fully_followed:
            return Phase.APPROACH
        return Phase.PLAYING if self._weight == 1.0 else Phase.RETURN

    def follow(self, pose: StreamPose) -> None:
        """Follow this pose from now on.

        If it is unsafe, return to rest and raise `UnsafeMotionError`.
        """
        if not self.following:
            raise RefusalError(Code.SUPERSEDED)
        try:
            positions = self._check_pose(pose)
        except UnsafeMotionError:
            self._fail_stream("an unsafe pose was streamed: the arms return")
            raise
        ended = pose.weight == 0.0 and self._weight > 0.0
        self._pose[self._taught], self._joint_weights[self._taught] = positions, pose.weight
        self._weight = pose.weight
        self._was_fully_followed |= pose.weight == 1.0
        self._timeout_step = self._steps + round(SILENCE_S / STEP_S)
        if ended:
            self.stop()

    def stop(self) -> None:
        """Accept no more poses; slow down from here, then go softly back to rest."""
        self.following = False
        super().stop()

    def step(self) -> JointSetpoint | None:
        """Return the next setpoint; None when the arms have returned to rest."""
        if self.following and self._steps >= self._timeout_step:
            self._fail_stream(f"no pose for {SILENCE_S:g} s: the arms return")
        if not self.following:
            return super().step()
        rest_pose = self._rest_poses[min(self._steps, len(self._rest_poses) - 1)]
        target = rest_pose + self._joint_weights * (self._pose - rest_pose)
        self._steps += 1
        move = _SMOOTHING * (target - self._last.pose_rad)
        move = np.minimum(np.maximum(move, self._min_step), self._max_step)
        self._last = JointSetpoint(self.phase, self._last.pose_rad + move, move / STEP_S)
        return self._last

    def next_steps(self, max_steps: int) -> tuple[Array, Array]:
        """Take no steps in advance while poses are still streaming in."""
        return super().next_steps(0 if self.following else max_steps)

    def _fail_stream(self, message: str) -> None:
        self.stop()
        self._on_failure(message)

    def _check_pose(self, pose: StreamPose) -> Array:
        """Return the positions of a pose, clipped to the joints' limits.

        Raises `UnsafeMotionError` if they are beyond the limits by more than the tolerance.
        """
        time_s, build = self._steps * STEP_S, self._columns.build
        # Written this way round, the comparison refuses NaN as well.
        if not 0.0 <= pose.weight <= 1.0:
            reason = f"a weight of {pose.weight}, allowed 0 to 1"
            raise UnsafeMotionError("every joint", time_s, reason)
        if (count := len(pose.joints_rad)) != len(build.taught):
            reason = f"{count} positions, not {len(build.taught)}"
            raise UnsafeMotionError("every joint", time_s, reason)
        positions = np.array(pose.joints_rad)
        safe = (positions >= self._min_rad) & (positions <= self._max_rad)
        if not safe.all():
            unsafe = int(np.argmin(safe))
            joint = build.taught_joints[unsafe]
            reason = (
                f"{positions[unsafe]:.2f} rad, "
                f"allowed {joint.lower_rad:.2f} to {joint.upper_rad:.2f} rad"
            )
            raise UnsafeMotionError(joint.name, time_s, reason)
        return np.asarray(np.minimum(np.maximum(positions, self._lower), self._upper))
