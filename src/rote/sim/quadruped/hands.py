"""Scripted hands for the legs of a simulated A1: shake a paw, stretch, wag.

A hand starts from the pose of a standing robot, moves out smoothly, swings, and comes back, with a
small tremor.
"""

import numpy as np

from rote.errors import BadRequestError
from rote.model.a1 import A1_JOINTS, A1_STAND_RAD
from rote.model.family import MAX_MOTION_S
from rote.motion.track import Array
from rote.sim.hands import Script
from rote.sim.quadruped.walker import minimum_jerk
from rote.transport.impair import parse_seconds

_INDEX = {joint.name.removesuffix("_joint"): joint.index for joint in A1_JOINTS}
_HIPS = {"FR_hip": 0.25, "FL_hip": 0.25, "RR_hip": -0.25, "RL_hip": -0.25}
SCRIPTS: dict[str, Script] = {
    "paw": Script(
        description="the right front leg is lifted and shaken",
        pose={"FR_hip": -0.1, "FR_thigh": 0.0, "FR_calf": -1.7},
        swing={"FR_thigh": 0.2, "FR_calf": 0.15},
    ),
    "stretch": Script(
        description="the front legs are drawn out, one after the other",
        pose={"FR_thigh": 0.0, "FR_calf": -1.2, "FL_thigh": 0.0, "FL_calf": -1.2},
        swing={"FR_thigh": 0.25, "FL_thigh": -0.25},
        beat_s=1.6,
    ),
    "wag": Script(description="all legs sway from side to side", pose={}, swing=_HIPS, beat_s=1.2),
}

_REST = np.array(A1_STAND_RAD)
_PAUSE_S = 1.0
"""Pause before a script is repeated."""
_TREMOR_RAD, _TREMOR_HZ = 0.0015, 9.3


class A1Hand:
    """A hand that performs a script, once or, with `repeats`, until it is removed."""

    def __init__(
        self, name: str, duration_s: float, *, repeats: bool = False, seed: int = 0
    ) -> None:
        if name not in SCRIPTS:
            known = ", ".join(sorted(SCRIPTS))
            raise BadRequestError(f"unknown hand {name!r} for an A1", f"Choose one of: {known}.")
        if not 1.0 <= duration_s <= MAX_MOTION_S:
            raise BadRequestError(
                f"a scripted hand can move for 1 to {MAX_MOTION_S:.0f} s, not {duration_s:g} s"
            )
        script = SCRIPTS[name]
        self.seconds = duration_s
        self._repeats = repeats
        self._out_s = min(0.9, 0.3 * duration_s)
        self._beat_s = script.beat_s
        self._held = np.zeros(_REST.size, dtype=bool)
        self._out, self._swing = np.zeros(_REST.size), np.zeros(_REST.size)
        """Offset of the script's pose from a standing robot, and the swing around it."""
        for joint, angle in script.pose.items():
            self._out[_INDEX[joint]] = angle - _REST[_INDEX[joint]]
            self._held[_INDEX[joint]] = True
        for joint, angle in script.swing.items():
            self._swing[_INDEX[joint]] = angle
            self._held[_INDEX[joint]] = True
        self._tremor_phases = np.random.default_rng(seed).uniform(0, 2 * np.pi, _REST.size)

    def grip(self, time_s: float) -> Array | None:
        """Return the target positions of the 12 joints, NaN for joints that it does not hold.

        None means that it has released the legs for good.
        """
        if self._repeats:
            time_s %= self.seconds + _PAUSE_S
        if time_s > self.seconds:
            return np.full(_REST.size, np.nan) if self._repeats else None
        tremor = _TREMOR_RAD * np.sin(2 * np.pi * _TREMOR_HZ * time_s + self._tremor_phases)
        return np.where(self._held, self.pose(time_s) + tremor, np.nan)

    def pose(self, time_s: float) -> Array:
        """Return the pose of the script at that time, without the tremor."""
        blend = minimum_jerk(min(time_s, self.seconds - time_s) / self._out_s)
        swing = np.sin(2 * np.pi * (time_s - self._out_s) / self._beat_s) * self._swing
        pose: Array = _REST + blend * (self._out + swing)
        return pose


def parse_hand(text: str, seed: int = 0) -> A1Hand:
    """Parse `paw` or `paw:6s`: a hand that repeats its script, which takes 4 s by default."""
    name, _, length = text.strip().partition(":")
    return A1Hand(name, parse_seconds(length) if length else 4.0, repeats=True, seed=seed)
