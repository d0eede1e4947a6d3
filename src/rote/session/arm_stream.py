"""A client's stream of poses to a robot's motors, and a soft end from any pose.

The robot follows the stream in proportion to its weight, which rises and falls with the poses. A
stream must not simply end: the arms would stay as stiff as last commanded, or drop. So the arms are
braked to a standstill while the weight falls softly to 0.

Hands may follow in the same stream. They have no weight; instead the stiffness of their motors
rises and falls with it.
"""

from collections import deque
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from rote import messages as m
from rote.errors import BadRequestError
from rote.messages import Phase, StreamPose
from rote.model.family import Build, Hand
from rote.model.registry import family_of


class PoseReceived(NamedTuple):
    """The client sent a streamed pose; no answer is expected."""

    command: m.Command


class PoseStream:
    """Whether a session has a pose stream, and which pose is its newest; on either end."""

    def __init__(self) -> None:
        self.token: int | None = None
        """The token of the request that began the stream; None if there is no stream."""
        self._requested_token: int | None = None
        self._newest_pose = -1

    def on_request(self, token: int, message: m.Command) -> None:
        """Process a request. A stop ends the stream; a new stream begins only with its reply."""
        if isinstance(message, m.BeginStream):
            self._requested_token = token
        elif isinstance(message, m.StopMotion):
            self.token = self._requested_token = None

    def on_reply(self, token: int, reply: m.Reply) -> None:
        """Process the reply to the request `token`; it may accept a requested stream."""
        if token == self._requested_token:
            self._requested_token = None
            if isinstance(reply, m.Status) and reply.code == m.Code.OK:
                self.token, self._newest_pose = token, -1

    def check_pose(self, token: int, number: int) -> str:
        """Return why pose `number` of the stream `token` is rejected; "" if it is accepted.

        An accepted pose becomes the newest one; older ones are rejected from then on.
        """
        if token != self.token:
            return "pose of no stream"
        if number <= self._newest_pose:
            return "stale pose"
        self._newest_pose = number
        return ""


FADE_HZ = 250.0
"""Setpoints per second of a release."""
FADE_MAX_S = 5.0
NOT_TRACKING_RAD, NOT_TRACKING_S = 0.5, 0.5
"""Arms this far from the commanded position, for this long, are not tracking."""
_BRAKE_S = 0.3
"""Time in which moving joints brake to a standstill."""
_MIN_SPEED_INTERVAL_S = 0.02
"""Minimum time over which the speed of poses is measured: two poses may have arrived at once."""
_MAX_RECENT = 64
"""Maximum number of setpoints kept to measure the speed."""
_MAX_RAD_S = 4.0
_PEAK_TO_MEAN_SPEED = 1.875
"""The peak speed of a minimum-jerk move, as a multiple of its mean speed."""


class ArmSetpoint(NamedTuple):
    """What the robot is commanded at one moment."""

    joints_rad: tuple[float, ...]
    """The positions of the streamed joints, in the order of `Build.streamed`."""
    weight: float
    hands_rad: tuple[float, ...] = ()
    """The positions of the hands in the stream, in the order of their messages."""


class ArmStream:
    """One stream, from its beginning to its last setpoint; computes what the robot is sent."""

    def __init__(
        self, joints_rad: tuple[float, ...], build: Build, hands: tuple[Hand, ...] = ()
    ) -> None:
        """Begin at the current joint positions; joints that no pose moves stay there.

        `hands` are the attached hands to stream to.
        """
        streamed, family = build.streamed_columns, family_of(build)
        if family is None or not set(build.taught_columns) <= set(streamed):
            raise BadRequestError(f"poses cannot be streamed to {build.name}")
        hand_columns = [column for hand in hands for column in build.columns_of(hand)]
        joints = [build.joints[column] for column in (*streamed, *hand_columns)]
        self._streamed_columns, self._hand_columns = streamed, hand_columns
        self._taught_columns = build.taught_columns
        self._taught_indices = tuple(map(streamed.index, build.taught_columns))
        """The index of each taught joint among the streamed joints."""
        self._lower_rad = np.array([joint.lower_rad for joint in joints])
        self._upper_rad = np.array([joint.upper_rad for joint in joints])
        self._rest_pose_rad = np.array([build.rest_rad[column] for column in streamed])
        self._soft_rad_s, self._min_fade_s = family.soft_rad_s, family.soft_least_s
        self.last = self._hold_setpoint(joints_rad, 0.0)
        self.following = True
        """Whether poses are accepted; False after `fade`."""
        self._recent_setpoints: deque[tuple[float, ArmSetpoint]] = deque(maxlen=_MAX_RECENT)
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
            tuple(joints_rad[column] for column in self._streamed_columns),
            weight,
            tuple(joints_rad[column] for column in self._hand_columns),
        )

    def make_setpoint(self, pose: StreamPose) -> ArmSetpoint:
        """Return the setpoint of a pose, without recording it."""
        positions = list(self.last.joints_rad)
        for index, position in zip(self._taught_indices, pose.joints_rad, strict=True):
            positions[index] = position
        if len(pose.hands_rad) != len(self.last.hands_rad):
            raise BadRequestError(
                f"the pose has {len(pose.hands_rad)} hand joints, but the stream has "
                f"{len(self.last.hands_rad)}"
            )
        return ArmSetpoint(tuple(positions), pose.weight, pose.hands_rad)

    def follow(self, pose: StreamPose, now: float) -> ArmSetpoint:
        """Return the setpoint of the next pose, and record it."""
        setpoint = self.make_setpoint(pose)
        self.record(setpoint, now)
        return setpoint

    def record(self, setpoint: ArmSetpoint, now: float) -> None:
        """Record the setpoint that is sent now."""
        self.last = setpoint
        self._recent_setpoints.append((now, setpoint))
        if setpoint.weight == 1.0:
            self._reached_full_weight = True

    def is_not_tracking(self, joints_rad: tuple[float, ...], now: float) -> bool:
        """Whether the robot's joints, by column, have been far from their setpoints for too long.

        Then something blocks them, or the robot does not obey.
        """
        commanded = self.last.joints_rad
        pairs = zip(self._taught_columns, self._taught_indices, strict=True)
        error_rad = max(abs(joints_rad[column] - commanded[index]) for column, index in pairs)
        if self.phase is not Phase.PLAYING or error_rad < NOT_TRACKING_RAD:
            self._not_tracking_since = None
        elif self._not_tracking_since is None:
            self._not_tracking_since = now
        return (
            self._not_tracking_since is not None
            and now - self._not_tracking_since >= NOT_TRACKING_S
        )

    def restart_from(self, joints_rad: tuple[float, ...] | None) -> None:
        """Replace the last setpoint by measured joint positions, by column; None if unknown.

        The robot may have moved the arms by itself since the last setpoint. A setpoint at the
        measured positions with full weight does not move them, whatever weight the robot still
        applies. If the positions are unknown, only a setpoint with weight 0 commands no motion.
        """
        self._recent_setpoints.clear()
        if joints_rad is None:
            self.last = self.last._replace(weight=0.0)
        else:
            self.last = self._hold_setpoint(joints_rad, 1.0)

    def fade(self) -> list[ArmSetpoint]:
        """Accept no more poses; return the setpoints that release the arms softly.

        They are to be sent at `FADE_HZ`. The joints brake while the weight falls to 0.
        """
        self.following = False
        count = int(np.ceil(self._compute_fade_duration_s() * FADE_HZ))
        times_s = np.arange(1, count + 1) / FADE_HZ
        share = times_s / times_s[-1]
        # A minimum-jerk curve begins and ends without speed and acceleration.
        weights = self.last.weight * (1.0 - share**3 * (10.0 - 15.0 * share + 6.0 * share**2))
        weights[-1] = 0.0
        positions = self._brake_joints(times_s).tolist()
        arms = len(self._rest_pose_rad)
        return [
            ArmSetpoint(tuple(row[:arms]), weight, tuple(row[arms:]))
            for row, weight in zip(positions, weights.clip(0.0, 1.0).tolist(), strict=True)
        ]

    def _compute_fade_duration_s(self) -> float:
        """Return in what time the arms can reach the rest pose without exceeding the soft speed.

        As the weight falls, the robot moves the arms by itself, presumably to that pose.
        """
        from_rest_rad = np.abs(np.array(self.last.joints_rad) - self._rest_pose_rad)
        distance_rad = float(from_rest_rad.max()) * self.last.weight
        duration_s = _PEAK_TO_MEAN_SPEED * distance_rad / self._soft_rad_s
        return min(max(self._min_fade_s, duration_s), FADE_MAX_S)

    def _brake_joints(self, times_s: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """Return the positions at these times of all joints, which brake to a standstill."""
        positions = np.array(self.last.joints_rad + self.last.hands_rad)
        # Constant deceleration to a standstill: the distance is the integral of a falling line.
        braking_s = np.minimum(times_s, _BRAKE_S)
        coasted = np.outer(braking_s - braking_s**2 / (2 * _BRAKE_S), self._measure_recent_speed())
        # Joints that are beyond a limit already stay there.
        lowest = np.minimum(self._lower_rad, positions)
        highest = np.maximum(self._upper_rad, positions)
        return np.asarray(np.clip(positions + coasted, lowest, highest))

    def _measure_recent_speed(self) -> npt.NDArray[np.float64]:
        """Return the speed of each joint in the latest poses, limited to a plausible value."""
        if len(self._recent_setpoints) < 2:
            return np.zeros(len(self._lower_rad))
        last_s, last = self._recent_setpoints[-1]
        earlier = list(self._recent_setpoints)[-2::-1]  # the newest first, without the last
        # The newest setpoint that is old enough, or the oldest.
        first_s, first = next(
            (entry for entry in earlier if last_s - entry[0] >= _MIN_SPEED_INTERVAL_S), earlier[-1]
        )
        seconds = last_s - first_s
        if not 0.0 < seconds < _BRAKE_S:
            return np.zeros(len(self._lower_rad))
        step = np.array(last.joints_rad + last.hands_rad)
        step -= np.array(first.joints_rad + first.hands_rad)
        return np.asarray(np.clip(step / seconds, -_MAX_RAD_S, _MAX_RAD_S))
