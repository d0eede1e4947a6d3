"""The simulated hands of a robot: motors that follow their own commands, and relax without them.

A finger has no weight here. It moves to its target as fast as its stiffness and its motor allow,
stops at its limits, and stays where it is when its motors relax. During teaching, the simulated
operator also opens and closes the hands a little.
"""

import math

import numpy as np

from rote.model.family import Build, Hand
from rote.model.registry import family_of
from rote.motion.track import Array
from rote.wire.dds.hands import HandCommand, HandReading

HAND_HZ = 100.0
"""Report rate of a hand. The real rate is not published; this is the one in public examples."""
WARM_C = 28.0
_FULL_RATE_PER_S = 8.0
"""The rate per second at which a finger with full stiffness approaches its target."""
_GUIDED_SHARE, _GUIDED_BEAT_S, _GUIDED_RATE_PER_S = 0.35, 2.0, 6.0
"""A hand guided by the operator: how far it closes, as a share of the farthest limit, the seconds
of one closing and opening, and the rate per second at which it follows.
"""


def hands_named(name: str, build: Build) -> tuple[Hand, ...]:
    """Return the left and right hand of a type such as `dex3`; empty if no such hand fits."""
    family = family_of(build)
    return () if family is None else tuple(hand for hand in family.hands if hand.name == name)


class SimulatedHand:
    """The motors of one hand; the caller advances the time."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand
        self._lower = np.array([joint.lower_rad for joint in hand.joints])
        self._upper = np.array([joint.upper_rad for joint in hand.joints])
        self._max_speed_rad_s = np.array([joint.velocity_rad_s for joint in hand.joints])
        self.joints_rad: Array = np.clip(np.zeros(len(hand.joints)), self._lower, self._upper)
        self._speeds: Array = np.zeros(len(hand.joints))
        # A hand closes towards its farthest limits.
        furthest = np.where(self._upper > -self._lower, self._upper, self._lower)
        self._closed_rad = _GUIDED_SHARE * furthest
        self._command: HandCommand | None = None
        self._last_command_s = self._guided_since_s = -math.inf  # never
        self._updated_s = 0.0

    @property
    def relaxed(self) -> bool:
        """Whether the hand's motors give no torque."""
        command = self._command
        return command is None or not command.driven or max(command.stiffness_nm_rad) <= 0.0

    def obey(self, command: HandCommand, now_s: float) -> None:
        """Follow a command until the next one."""
        self._command, self._last_command_s = command, now_s

    def advance(self, now_s: float, *, moved_by_hand: bool) -> bool:
        """Advance to `now_s`; if `moved_by_hand`, the operator moves relaxed fingers.

        Return whether the motors have just relaxed because the commands stopped.
        """
        elapsed_s, self._updated_s = now_s - self._updated_s, now_s
        just_relaxed = self._relax_without_commands(now_s)
        command, before_rad = self._command, self.joints_rad
        if command is not None and not self.relaxed:
            stiffness = np.array(command.stiffness_nm_rad) / self.hand.stiffness_nm_rad
            self._move_towards(
                np.array(command.joints_rad), _FULL_RATE_PER_S * stiffness, elapsed_s
            )
        elif moved_by_hand:
            self._move_as_guided(now_s, elapsed_s)
        if not moved_by_hand:
            self._guided_since_s = -math.inf
        if elapsed_s > 0.0:
            self._speeds = (self.joints_rad - before_rad) / elapsed_s
        return just_relaxed

    def _relax_without_commands(self, now_s: float) -> bool:
        """Drop a command that has timed out; return whether that relaxed the motors."""
        command, silent_s = self._command, now_s - self._last_command_s
        if command is None or not command.timeout or silent_s <= self.hand.timeout_s:
            return False
        was_relaxed, self._command = self.relaxed, None
        return not was_relaxed

    def _move_as_guided(self, now_s: float, elapsed_s: float) -> None:
        """Close and open the relaxed hand a little, as the operator who guides it does."""
        if self._guided_since_s == -math.inf:
            self._guided_since_s = now_s
        beats = (now_s - self._guided_since_s) / _GUIDED_BEAT_S
        closing = 0.5 - 0.5 * math.cos(2.0 * math.pi * beats)
        rate_per_s = np.full(len(self.joints_rad), _GUIDED_RATE_PER_S)
        self._move_towards(self._closed_rad * closing, rate_per_s, elapsed_s)

    def _move_towards(self, target_rad: Array, rate_per_s: Array, elapsed_s: float) -> None:
        """Approach a target at `rate_per_s`, within the joints' limits and speeds."""
        target = np.clip(target_rad, self._lower, self._upper)
        step = (target - self.joints_rad) * (1.0 - np.exp(-rate_per_s * elapsed_s))
        max_step_rad = self._max_speed_rad_s * elapsed_s
        self.joints_rad = self.joints_rad + np.clip(step, -max_step_rad, max_step_rad)

    def read(self) -> HandReading:
        """Return the hand's current state."""
        return HandReading(
            tuple(self.joints_rad.tolist()),
            tuple(self._speeds.tolist()),
            (WARM_C,) * len(self.hand.joints),
        )
