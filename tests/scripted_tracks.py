"""Tracks of the simulator's scripted hands."""

import numpy as np

from rote.model.registry import build_named
from rote.motion.track import Track
from rote.sim.hands import ScriptedHand


def make_scripted_track(
    script: str = "wave",
    seconds: float = 4.0,
    build: str = "g1-29",
    *,
    rate_hz: float = 100.0,
    start_s: float = 0.0,
) -> Track:
    """Return the motion that a scripted hand makes with all joints of a robot."""
    robot = build_named(build)
    hand = ScriptedHand(script, seconds, robot)
    times_s = np.arange(round(seconds * rate_hz) + 1) / rate_hz
    poses = np.array([hand.pose(at_s) for at_s in times_s.tolist()])
    return Track(times_s=start_s + times_s, joints_rad=poses, names=robot.names, variant=build)
