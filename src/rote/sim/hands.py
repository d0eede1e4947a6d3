"""Scripted hands: a wave, a bow, a clap and a drum roll, as a person would move the soft arms.

A hand goes through poses by minimum-jerk moves, with a small tremor. It holds all soft joints, even
those it does not move: a soft joint that is not held sinks under its weight, wrists first.

The scripts name joints of a humanoid. Joints that a build does not have are left out; in a build
that has none of them, every taught joint swings gently.
"""

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rote.errors import BadRequestError
from rote.model.family import MAX_MOTION_S, Build
from rote.motion.track import Array
from rote.sim.columns import DEFAULT_BUILD, Columns


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A pose to go to, and a swing around it; angles in rad by the names of joints."""

    description: str
    pose: dict[str, float]
    swing: dict[str, float] = field(default_factory=dict)
    beat_s: float = 0.8
    """Time for one swing there and back."""


SCRIPTS: dict[str, Script] = {
    "wave": Script(
        description="the right hand is raised and waves",
        pose={
            "right_shoulder_pitch": -1.3, "right_shoulder_roll": -0.5,
            "right_shoulder_yaw": 0.0, "right_elbow": -0.1, "right_wrist_roll": 0.0,
        },
        swing={"right_shoulder_yaw": 0.45, "right_wrist_roll": 0.3},
    ),
    "bow": Script(
        description="one arm folds before the body, the other opens, as on a stage",
        pose={
            "right_shoulder_pitch": -0.4, "right_shoulder_yaw": 0.9, "right_elbow": 0.5,
            "left_shoulder_pitch": 0.2, "left_shoulder_roll": 0.9, "left_elbow": 0.9,
            "waist_yaw": 0.0,
        },
        swing={"waist_yaw": 0.15, "left_shoulder_roll": 0.1},
        beat_s=1.6,
    ),
    "clap": Script(
        description="both hands meet before the chest",
        pose={
            "right_shoulder_pitch": -0.7, "left_shoulder_pitch": -0.7,
            "right_shoulder_roll": -0.1, "left_shoulder_roll": 0.1,
            "right_shoulder_yaw": 0.02, "left_shoulder_yaw": -0.02,
            "right_elbow": 0.4, "left_elbow": 0.4,
        },
        swing={"right_shoulder_yaw": 0.15, "left_shoulder_yaw": -0.15},
        beat_s=0.6,
    ),
    "drum": Script(
        description="the hands beat a drum in turn",
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
"""A script that takes less than this many seconds moves less, so that it is not faster."""
_GENTLE_RAD, _GENTLE_SHARE, _GENTLE_BEAT_S = 0.25, 0.2, 1.6
"""Swing of joints on a build that no script fits: the angle in rad, limited to a share of the
joint's range, and the seconds of one swing there and back."""
_TREMOR_RAD = 0.003
_TREMOR_HZ = np.array([7.9, 9.3, 11.1])


class ScriptedHand:
    """A hand that performs a script once, in `seconds`, then releases the joints."""

    def __init__(
        self, name: str, seconds: float, build: Build = DEFAULT_BUILD, seed: int = 0
    ) -> None:
        if name not in SCRIPTS:
            known = ", ".join(sorted(SCRIPTS))
            raise BadRequestError(f"unknown hand script {name!r}", f"Choose one of: {known}.")
        if not 0 < seconds <= MAX_MOTION_S:
            raise BadRequestError(
                f"a scripted hand can move for up to {MAX_MOTION_S:g} s, not {seconds:g} s"
            )
        columns = Columns(build)
        self.seconds = seconds
        self._joint_count = len(build.joints)
        self._held = columns.taught
        self._times_s, self._poses = _make_via_points(
            _fit_script(SCRIPTS[name], columns), columns, seconds
        )
        self._time_list = self._times_s.tolist()
        random = np.random.default_rng(seed)
        self._tremor_phases = random.uniform(0, 2 * np.pi, (len(_TREMOR_HZ), self._held.size))

    def grip(self, time_s: float) -> Array | None:
        """Return the target positions of the joints it holds; None once it has released them."""
        if time_s > self.seconds:
            return None
        pose = self.pose(time_s)
        tremor = np.sin(2 * np.pi * _TREMOR_HZ[:, None] * time_s + self._tremor_phases).sum(axis=0)
        grip: Array = np.full(self._joint_count, np.nan)
        grip[self._held] = pose[self._held] + _TREMOR_RAD / 2 * tremor
        return grip

    def pose(self, time_s: float) -> Array:
        """Return the pose of the script at that time, without the tremor."""
        last = len(self._time_list) - 2
        index = min(max(bisect_right(self._time_list, time_s) - 1, 0), last)
        begin_s, end_s = self._time_list[index], self._time_list[index + 1]
        share = min(max((time_s - begin_s) / (end_s - begin_s), 0.0), 1.0)
        # Minimum jerk, as in `rote.motion.interpolate`, but for a single pose.
        blend = share**3 * (10.0 - 15.0 * share + 6.0 * share * share)
        start = self._poses[index]
        pose: Array = start + (self._poses[index + 1] - start) * blend
        return pose


class _FittedScript(NamedTuple):
    """A script fitted to one build: the middle pose, the swing around it, and the beat."""

    middle_rad: Array
    swing_rad: Array
    beat_s: float


def _fit_script(script: Script, columns: Columns) -> _FittedScript:
    """Fit a script to the joints of a build, within their limits."""
    names = [name.removesuffix("_joint") for name in columns.build.names]
    if not set(names).intersection(script.pose):
        return _make_gentle_swing(columns)
    middle, swing = columns.rest_rad.copy(), np.zeros_like(columns.rest_rad)
    for values, target in ((script.pose, middle), (script.swing, swing)):
        for joint, value in values.items():
            if joint in names:
                target[names.index(joint)] = value
    middle = np.clip(middle, columns.lower_rad + abs(swing), columns.upper_rad - abs(swing))
    return _FittedScript(middle, swing, script.beat_s)


def _make_gentle_swing(columns: Columns) -> _FittedScript:
    """Return a small swing of every taught joint, around its rest or as near as limits allow."""
    range_rad = columns.upper_rad - columns.lower_rad
    swing = np.zeros_like(range_rad)
    swing[columns.taught] = np.minimum(_GENTLE_RAD, _GENTLE_SHARE * range_rad[columns.taught])
    middle = np.clip(columns.rest_rad, columns.lower_rad + swing, columns.upper_rad - swing)
    return _FittedScript(middle, swing, _GENTLE_BEAT_S)


def _make_via_points(
    fitted: _FittedScript, columns: Columns, seconds: float
) -> tuple[Array, Array]:
    """Return the times and poses that the hand passes: out, swings, and back to rest."""
    size = min(1.0, seconds / _FULL_SIZE_S)
    rest = columns.rest_rad
    middle, swing = rest + size * (fitted.middle_rad - rest), size * fitted.swing_rad
    out_s = min(0.9, 0.3 * seconds)
    swinging_s = seconds - 2 * out_s
    swing_count = max(1, round(swinging_s / (fitted.beat_s / 2)))
    swing_times_s = np.linspace(out_s, seconds - out_s, swing_count + 1)
    # The joints swing from one side of the middle pose to the other.
    poses = [middle + swing * (1 if index % 2 else -1) for index in range(swing_count + 1)]
    return np.array([0.0, *swing_times_s, seconds]), np.array([rest, *poses, rest])
