"""A client's stream of poses to a robot's motors, and a soft end from any pose.

The robot follows the stream in proportion to its weight, which rises and falls with the poses. A
stream must not simply end: the arms would stay as stiff as last commanded, or drop. So the arms are
braked to a stand, and then the weight goes softly to 0.

Hands may follow in the same stream. They have no weight; instead the stiffness of their motors
rises and falls with it.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rote.errors import BadRequestError
from rote.messages import Phase, StreamPose
from rote.model.family import Build, Hand
from rote.model.registry import family_of

FADE_HZ = 250.0
FADE_MAX_S = 5.0
NOT_TRACKING_RAD, NOT_TRACKING_S = 0.5, 0.5
"""Arms this far from the commanded position, for this long, are not tracking."""
_BRAKE_S = 0.3
_SPEED_OVER_S = 0.02
"""The time over which the speed of poses is measured: two of them may have arrived at once."""
_MAX_RECENT = 64
"""Maximum number of setpoints kept for that: more than fit into that time at any rate."""
_MAX_RAD_S = 4.0
_PEAK = 1.875
"""The peak speed of a minimum-jerk move, as a multiple of its mean speed."""


class ArmSetpoint(NamedTuple):
    """What the robot is commanded at one moment."""

    joints_rad: tuple[float, ...]
    """The positions of the streamed joints, in the order of `Build.streamed`."""
    weight: float
    hands_rad: tuple[float, ...] = ()
    """The positions of the hands in the stream, in the order of their messages."""


class ArmStream:
    """One stream, from its beginning to its last setpoint."""

    def __init__(
        self, joints_rad: tuple[float, ...], build: Build, hands: tuple[Hand, ...] = ()
    ) -> None:
        """Begin at the current joint positions of a build; joints that no pose moves stay there.

        `hands` are the attached hands to stream to.
        """
        streamed, family = build.streamed_columns, family_of(build)
        if family is None or not set(build.taught_columns) <= set(streamed):
            raise BadRequestError(f"poses cannot be streamed to {build.name}")
        fingers = [column for hand in hands for column in build.columns_of(hand)]
        joints = [build.joints[column] for column in (*streamed, *fingers)]
        self._streamed, self._fingers = streamed, fingers
        self._columns = build.taught_columns
        self._indices = tuple(map(streamed.index, build.taught_columns))
        """The indices of a pose's joints among the streamed ones."""
        self._lower = np.array([joint.lower_rad for joint in joints])
        self._upper = np.array([joint.upper_rad for joint in joints])
        self._rest = np.array([build.rest_rad[column] for column in streamed])
        self._soft_rad_s, self._fade_least_s = family.soft_rad_s, family.soft_least_s
        self.last = self._hold_setpoint(joints_rad, 0.0)
        self.following = True
        """Whether poses are accepted; False after `fade`."""
        self._recent: deque[tuple[float, ArmSetpoint]] = deque(maxlen=_MAX_RECENT)
        self._reached_full_weight = False
        self._not_tracking_since: float | None = None

    @property
    def phase(self) -> Phase:
        """The phase of the playback, by the weight."""
        if not self.following:
            return Phase.RETURN
        if not self._reached_full_weight:
            return Phase.APPROACH
        return Phase.PLAYING if self.last.weight == 1.0 else Phase.RETURN

    def _hold_setpoint(self, joints_rad: tuple[float, ...], weight: float) -> ArmSetpoint:
        """Return the setpoint at which joints in these positions, by column, do not move."""
        return ArmSetpoint(
            tuple(joints_rad[column] for column in self._streamed),
            weight,
            tuple(joints_rad[column] for column in self._fingers),
        )

    def setpoint(self, pose: StreamPose) -> ArmSetpoint:
        """Return the setpoint of a pose, without recording it."""
        positions = list(self.last.joints_rad)
        for index, position in zip(self._indices, pose.joints_rad, strict=True):
            positions[index] = position
        if len(pose.hands_rad) != len(self.last.hands_rad):
            raise BadRequestError(
                f"a pose with {len(pose.hands_rad)} joints of hands in a stream to "
                f"{len(self.last.hands_rad)}"
            )
        return ArmSetpoint(tuple(positions), pose.weight, pose.hands_rad)

    def follow(self, pose: StreamPose, now: float) -> ArmSetpoint:
        """Return the setpoint of the next pose, and record it."""
        setpoint = self.setpoint(pose)
        self.record(setpoint, now)
        return setpoint

    def record(self, setpoint: ArmSetpoint, now: float) -> None:
        """Record the setpoint that is sent now."""
        self.last = setpoint
        self._recent.append((now, setpoint))
        if setpoint.weight == 1.0:
            self._reached_full_weight = True

    def is_not_tracking(self, joints_rad: tuple[float, ...], now: float) -> bool:
        """Whether the robot's joints, by column, have been far from their setpoints for too long.

        Something blocks them, or the robot does not obey: its next move cannot be predicted.
        """
        commanded = self.last.joints_rad
        apart = max(
            abs(joints_rad[c] - commanded[p])
            for c, p in zip(self._columns, self._indices, strict=True)
        )
        if self.phase is not Phase.PLAYING or apart < NOT_TRACKING_RAD:
            self._not_tracking_since = None
        elif self._not_tracking_since is None:
            self._not_tracking_since = now
        return (
            self._not_tracking_since is not None
            and now - self._not_tracking_since >= NOT_TRACKING_S
        )

    def restart_from(self, joints_rad: tuple[float, ...] | None) -> None:
        """Take measured joint positions, by column, for the last setpoint; None if none are known.

        The robot may have moved the arms by itself since the last setpoint. Their measured
        position with full weight does not move them, however much of the last weight is left.
        Without a position the only setpoint that commands nothing has weight 0.
        """
        self._recent.clear()
        if joints_rad is None:
            self.last = self.last._replace(weight=0.0)
        else:
            self.last = self._hold_setpoint(joints_rad, 1.0)

    def fade(self) -> list[ArmSetpoint]:
        """Accept no more poses; return the setpoints that release the arms softly, `FADE_HZ` per
        second.
        """
        self.following = False
        positions = np.array(self.last.joints_rad + self.last.hands_rad)
        arms = len(self._rest)
        far = float(np.abs(positions[:arms] - self._rest).max()) * self.last.weight
        seconds = min(max(self._fade_least_s, _PEAK * far / self._soft_rad_s), FADE_MAX_S)
        count = int(np.ceil(seconds * FADE_HZ))
        times = np.arange(1, count + 1) / FADE_HZ
        # Constant deceleration to a stand: the distance is the area under a line that falls to 0.
        left = np.minimum(times, _BRAKE_S)
        coasted = np.outer(left - left**2 / (2 * _BRAKE_S), self._recent_speed())
        lowest, highest = np.minimum(self._lower, positions), np.maximum(self._upper, positions)
        braked = np.clip(positions + coasted, lowest, highest)
        share = times / times[-1]
        weights = self.last.weight * (1.0 - share**3 * (10.0 - 15.0 * share + 6.0 * share**2))
        weights[-1] = 0.0
        return [
            ArmSetpoint(tuple(row[:arms]), weight, tuple(row[arms:]))
            for row, weight in zip(braked.tolist(), weights.clip(0.0, 1.0).tolist(), strict=True)
        ]

    def _recent_speed(self) -> npt.NDArray[np.float64]:
        """Return the speed of the latest poses, limited to a plausible value."""
        if len(self._recent) < 2:
            return np.zeros(len(self._lower))
        last_s, last = self._recent[-1]
        earlier = list(self._recent)[-2::-1]
        # The newest that is old enough to measure by, or the oldest there is.
        first_s, first = next((o for o in earlier if last_s - o[0] >= _SPEED_OVER_S), earlier[-1])
        seconds = last_s - first_s
        if not 0.0 < seconds < _BRAKE_S:
            return np.zeros(len(self._lower))
        step = np.array(last.joints_rad + last.hands_rad)
        step -= np.array(first.joints_rad + first.hands_rad)
        return np.asarray(np.clip(step / seconds, -_MAX_RAD_S, _MAX_RAD_S))
