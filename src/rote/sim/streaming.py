"""Arms that follow streamed poses, limited in position and speed, and return to rest by themselves.

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
_FOLLOWS = 0.2
"""Share of the remaining distance that a setpoint moves in one step. Poses arrive in bursts;
without this smoothing the arms would shake.
"""


class StreamedPlayback(Playback):
    """A playback whose motion arrives pose by pose."""

    def __init__(self, pose_rad: Array, on_failure: Callable[[str], None], build: Build) -> None:
        columns = self._columns = Columns(build)
        self._taught = columns.taught
        self._lower, self._upper = columns.lower_rad[self._taught], columns.upper_rad[self._taught]
        self._least, self._most = self._lower - TOLERANCE_RAD, self._upper + TOLERANCE_RAD
        self._most_a_step = playback_limits_rad_s(build.joints) * STEP_S
        self._least_a_step = -self._most_a_step
        self._loop = False
        self._parts = []
        self._reset_to(pose_rad)
        self.following = True
        """Whether poses are still accepted; afterwards it only returns to rest."""
        self._on_failure = on_failure
        self._own = self._return_to_rest(
            pose_rad
        )  # the pose that the robot would have without a stream
        self._pose = pose_rad.copy()
        self._weight = 0.0
        self._shares = np.zeros_like(pose_rad)  # the weight, on the joints that are streamed
        self._reached = False
        self._steps = 0
        self._silent_at = round(FIRST_S / STEP_S)

    @property
    def phase(self) -> Phase:
        """The phase by the weight: rising, full, or falling again."""
        if not self.following:
            return super().phase
        if not self._reached:
            return Phase.APPROACH
        return Phase.PLAYING if self._weight == 1.0 else Phase.RETURN

    def follow(self, pose: StreamPose) -> None:
        """Follow this pose from now on; if it is unsafe, return to rest and raise an error."""
        if not self.following:
            raise RefusalError(Code.SUPERSEDED)
        try:
            positions = self._check_pose(pose)
        except UnsafeMotionError:
            self._fail_stream("an unsafe pose was streamed: the arms return")
            raise
        ended = pose.weight == 0.0 < self._weight
        self._pose[self._taught], self._shares[self._taught] = positions, pose.weight
        self._weight = pose.weight
        self._reached |= pose.weight == 1.0
        self._silent_at = self._steps + round(SILENCE_S / STEP_S)
        if ended:
            self.stop()

    def stop(self) -> None:
        """Accept no more poses; slow down from here, then go softly back to rest."""
        self.following = False
        super().stop()

    def step(self) -> JointSetpoint | None:
        """Return the next setpoint, or None when it is over."""
        if self.following and self._steps >= self._silent_at:
            self._fail_stream(f"no pose for {SILENCE_S:g} s: the arms return")
        if not self.following:
            return super().step()
        own = self._own[min(self._steps, len(self._own) - 1)]
        target = own + self._shares * (self._pose - own)
        self._steps += 1
        step = _FOLLOWS * (target - self._last.pose_rad)
        step = np.minimum(np.maximum(step, self._least_a_step), self._most_a_step)
        self._last = JointSetpoint(self.phase, self._last.pose_rad + step, step / STEP_S)
        return self._last

    def next_steps(self, most: int) -> tuple[Array, Array]:
        """No lookahead while poses are still streaming in."""
        return super().next_steps(0 if self.following else most)

    def _fail_stream(self, message: str) -> None:
        self.stop()
        self._on_failure(message)

    def _check_pose(self, pose: StreamPose) -> Array:
        """Return the positions of a pose within the joints' limits, or refuse it."""
        time_s, build = self._steps * STEP_S, self._columns.build
        # Written this way round, the comparison refuses NaN as well.
        if not 0.0 <= pose.weight <= 1.0:
            reason = f"a weight of {pose.weight}, allowed 0 to 1"
            raise UnsafeMotionError("every joint", time_s, reason)
        if (count := len(pose.joints_rad)) != len(build.taught):
            reason = f"{count} positions, not {len(build.taught)}"
            raise UnsafeMotionError("every joint", time_s, reason)
        positions = np.array(pose.joints_rad)
        safe = (positions >= self._least) & (positions <= self._most)
        if not safe.all():
            worst = int(np.argmin(safe))
            joint = build.taught_joints[worst]
            reason = (
                f"{positions[worst]:.2f} rad, "
                f"allowed {joint.lower_rad:.2f} to {joint.upper_rad:.2f} rad"
            )
            raise UnsafeMotionError(joint.name, time_s, reason)
        return np.asarray(np.minimum(np.maximum(positions, self._lower), self._upper))
