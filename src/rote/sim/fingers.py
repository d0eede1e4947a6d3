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
_FULL_RAD_S = 8.0
"""The rate per second at which a finger with full stiffness approaches its target."""
_LED_SHARE, _LED_BEAT_S, _LED_PER_S = 0.35, 2.0, 6.0
"""How far the operator closes a hand, as a share of the farthest limit, and how fast."""


def hands_named(name: str, build: Build) -> tuple[Hand, ...]:
    """Return the hands of that name that fit a build; empty if none do."""
    family = family_of(build)
    return () if family is None else tuple(h for h in family.hands if h.name == name)


class Fingers:
    """The motors of one hand; the caller advances the time."""

    def __init__(self, hand: Hand) -> None:
        self.hand = hand
        self._lower = np.array([joint.lower_rad for joint in hand.joints])
        self._upper = np.array([joint.upper_rad for joint in hand.joints])
        self._fastest = np.array([joint.velocity_rad_s for joint in hand.joints])
        self.joints_rad: Array = np.clip(np.zeros(len(hand.joints)), self._lower, self._upper)
        self._speeds: Array = np.zeros(len(hand.joints))
        # A hand closes towards its farthest limits.
        furthest = np.where(self._upper > -self._lower, self._upper, self._lower)
        self._closed = _LED_SHARE * furthest
        self._command: HandCommand | None = None
        self._commanded_s = self._led_since_s = -math.inf
        self._at_s = 0.0

    @property
    def relaxed(self) -> bool:
        """Whether its motors give no torque."""
        command = self._command
        return command is None or not command.driven or max(command.stiffness_nm_rad) <= 0.0

    def obey(self, command: HandCommand, now_s: float) -> None:
        """Follow a command until the next one."""
        self._command, self._commanded_s = command, now_s

    def advance(self, now_s: float, *, led: bool) -> bool:
        """Advance to `now_s`; if `led`, the operator moves relaxed fingers.

        Return whether the motors have just relaxed because the commands stopped.
        """
        seconds, self._at_s = now_s - self._at_s, now_s
        command, ceased = self._command, False
        if (
            command is not None
            and command.timeout
            and now_s - self._commanded_s > self.hand.timeout_s
        ):
            ceased = not self.relaxed
            self._command = command = None
        before = self.joints_rad
        if command is not None and not self.relaxed:
            stiffness = np.array(command.stiffness_nm_rad) / self.hand.stiffness_nm_rad
            self._move_towards(np.array(command.joints_rad), _FULL_RAD_S * stiffness, seconds)
        elif led:
            if self._led_since_s == -math.inf:
                self._led_since_s = now_s
            beats = (now_s - self._led_since_s) / _LED_BEAT_S
            closing = 0.5 - 0.5 * math.cos(2.0 * math.pi * beats)
            self._move_towards(self._closed * closing, np.full(len(before), _LED_PER_S), seconds)
        if not led:
            self._led_since_s = -math.inf
        if seconds > 0.0:
            self._speeds = (self.joints_rad - before) / seconds
        return ceased

    def _move_towards(self, target_rad: Array, per_s: Array, seconds: float) -> None:
        """Move towards a target, within the joints' limits and speeds."""
        target = np.clip(target_rad, self._lower, self._upper)
        step = (target - self.joints_rad) * (1.0 - np.exp(-per_s * seconds))
        most = self._fastest * seconds
        self.joints_rad = self.joints_rad + np.clip(step, -most, most)

    def reading(self) -> HandReading:
        """Return the hand's current state."""
        return HandReading(
            tuple(self.joints_rad.tolist()),
            tuple(self._speeds.tolist()),
            (WARM_C,) * len(self.hand.joints),
        )
