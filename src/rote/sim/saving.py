"""From a recording, or from keyframes that were sent, to an action for the store."""

import math
from collections.abc import Sequence

import numpy as np

from rote.messages import Code, Keyframe, SaveAction
from rote.model.family import Build
from rote.motion.track import Array
from rote.sim.body import STEP_S
from rote.sim.refusal import RefusalError
from rote.sim.store import StoredAction

RECORD_EVERY = 5
"""Steps between two samples of a recording: 100 Hz."""
OWN_LENGTH_S = 0.25
"""A save whose duration is this close to the recording's own length means that length."""


def recorded(samples: Sequence[Array], command: SaveAction, build: Build) -> StoredAction:
    """Return the recording, or the requested part of it, as an action."""
    joints = np.array(samples[: command.frames or None])
    times_s = np.arange(len(joints), dtype=np.float64) * (STEP_S * RECORD_EVERY)
    own_ms = max(1, round(float(times_s[-1]) * 1000))
    # The client's clock is not the robot's: a duration close to the recording's length means all of
    # it.
    meant_own = abs(own_ms - command.duration_ms) <= OWN_LENGTH_S * 1000
    return StoredAction(
        name=command.name,
        created_s=command.created_s,
        duration_ms=own_ms if meant_own else command.duration_ms,
        loop=command.loop,
        times_s=times_s,
        joints_rad=joints,
        names=build.names,
    )


def keyframed(command: SaveAction, build: Build) -> StoredAction:
    """Return the keyframes of a save command as an action."""
    return StoredAction(
        name=command.name,
        created_s=command.created_s,
        duration_ms=command.duration_ms,
        loop=command.loop,
        keyframes=command.keyframes,
        names=build.names,
    )


def check_keyframes(keyframes: tuple[Keyframe, ...], build: Build) -> None:
    """Check every number that reaches the joints, whichever wire brought it."""
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < len(build.joints) or not math.isfinite(keyframe.value_rad):
            raise RefusalError(Code.BAD_PAYLOAD)
