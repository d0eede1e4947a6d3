"""Scripted hands: a wave, a bow, a clap and a drum roll, as a person would lead the soft arms.

A hand goes through poses by minimum-jerk moves and trembles a little, as hands do. It holds all
joints that are soft, also those it does not move: what nobody holds sinks, wrists first.
"""

from bisect import bisect_right
from dataclasses import dataclass, field

import numpy as np

from rote.errors import BadRequestError
from rote.model.g1 import G1_JOINTS, TAUGHT_JOINTS
from rote.motion.track import Array
from rote.sim.body import REST_RAD

_INDEX = {joint.name.removesuffix("_joint"): joint.index for joint in G1_JOINTS}


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A pose to go to, and a swing around it."""

    words: str
    pose: dict[str, float]
    swing: dict[str, float] = field(default_factory=dict)
    beat_s: float = 0.8
    """Time for one swing there and back."""


SCRIPTS: dict[str, Script] = {
    "wave": Script(
        words="the right hand is raised and waves",
        pose={
            "right_shoulder_pitch": -1.3, "right_shoulder_roll": -0.5,
            "right_shoulder_yaw": 0.0, "right_elbow": -0.1, "right_wrist_roll": 0.0,
        },
        swing={"right_shoulder_yaw": 0.45, "right_wrist_roll": 0.3},
    ),
    "bow": Script(
        words="one arm folds before the body, the other opens, as on a stage",
        pose={
            "right_shoulder_pitch": -0.4, "right_shoulder_yaw": 0.9, "right_elbow": 0.5,
            "left_shoulder_pitch": 0.2, "left_shoulder_roll": 0.9, "left_elbow": 0.9,
            "waist_yaw": 0.0,
        },
        swing={"waist_yaw": 0.15, "left_shoulder_roll": 0.1},
        beat_s=1.6,
    ),
    "clap": Script(
        words="both hands meet before the chest",
        pose={
            "right_shoulder_pitch": -0.7, "left_shoulder_pitch": -0.7,
            "right_shoulder_roll": -0.1, "left_shoulder_roll": 0.1,
            "right_shoulder_yaw": 0.15, "left_shoulder_yaw": -0.15,
            "right_elbow": 0.4, "left_elbow": 0.4,
        },
        swing={"right_shoulder_yaw": 0.15, "left_shoulder_yaw": -0.15},
        beat_s=0.6,
    ),
    "drum": Script(
        words="the hands beat a drum in turn",
        pose={
            "right_shoulder_pitch": -0.4, "left_shoulder_pitch": -0.4,
            "right_elbow": 0.3, "left_elbow": 0.3,
        },
        swing={"right_elbow": 0.35, "left_elbow": -0.35, "right_wrist_pitch": 0.2,
               "left_wrist_pitch": -0.2},
        beat_s=0.5,
    ),
}  # fmt: skip

_FULL_SIZE_S = 2.5
"""A shorter performance is smaller, so that it is no faster."""
_TREMOR_RAD = 0.003
_TREMOR_HZ = np.array([7.9, 9.3, 11.1])


class ScriptedHand:
    """A hand that performs a script once, in `seconds`, and lets go."""

    def __init__(self, name: str, seconds: float, seed: int = 0) -> None:
        if name not in SCRIPTS:
            known = ", ".join(sorted(SCRIPTS))
            raise BadRequestError(f"there is no hand {name!r}", f"Choose one of: {known}.")
        if not 0 < seconds <= 180:
            raise BadRequestError(f"a hand moves for up to 180 s, not {seconds}")
        script = SCRIPTS[name]
        self.seconds = seconds
        self._held = np.array(TAUGHT_JOINTS)
        self._times_s, self._poses = _via_points(script, seconds)
        self._moments = self._times_s.tolist()
        random = np.random.default_rng(seed)
        self._phases = random.uniform(0, 2 * np.pi, (3, self._held.size))

    def grip(self, time_s: float) -> Array | None:
        """Return where the hand wants the joints it holds; None when it has let go."""
        if time_s > self.seconds:
            return None
        pose = self.pose(time_s)
        tremor = np.sin(2 * np.pi * _TREMOR_HZ[:, None] * time_s + self._phases).sum(axis=0)
        grip: Array = np.full(len(G1_JOINTS), np.nan)
        grip[self._held] = pose[self._held] + _TREMOR_RAD / 2 * tremor
        return grip

    def pose(self, time_s: float) -> Array:
        """Return the pose the script is in, without the tremor."""
        last = len(self._moments) - 2
        left = min(max(bisect_right(self._moments, time_s) - 1, 0), last)
        begin, end = self._moments[left], self._moments[left + 1]
        u = min(max((time_s - begin) / (end - begin), 0.0), 1.0)
        start = self._poses[left]
        pose: Array = start + (self._poses[left + 1] - start) * (
            u**3 * (10.0 - 15.0 * u + 6.0 * u * u)
        )
        return pose


def _via_points(script: Script, seconds: float) -> tuple[Array, Array]:
    """Return the moments and the poses a script goes through: out, to and fro, and home."""
    size = min(1.0, seconds / _FULL_SIZE_S)
    middle, swing = REST_RAD.copy(), np.zeros_like(REST_RAD)
    for joint, value in script.pose.items():
        index = _INDEX[joint]
        middle[index] = REST_RAD[index] + size * (value - REST_RAD[index])
    for joint, value in script.swing.items():
        swing[_INDEX[joint]] = size * value
    out_s = min(0.9, 0.3 * seconds)
    swinging_s = seconds - 2 * out_s
    turns = max(1, round(swinging_s / (script.beat_s / 2)))
    inner = np.linspace(out_s, seconds - out_s, turns + 1)
    poses = [middle + swing * (1 if turn % 2 else -1) for turn in range(turns + 1)]
    return np.array([0.0, *inner, seconds]), np.array([REST_RAD, *poses, REST_RAD])
