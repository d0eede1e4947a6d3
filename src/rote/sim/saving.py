"""Builds actions for the store from a recording or from received keyframes."""

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
"""Tolerance between a stated duration and the recording's own: the clocks differ."""


def action_from_recording(
    samples: Sequence[Array], command: SaveAction, build: Build
) -> StoredAction:
    """Return the whole recording at its own length as an action.

    The frames and the duration of a save describe it, and neither cut nor stretch it.
    """
    joints = np.array(samples)
    times_s = np.arange(len(joints), dtype=np.float64) * (STEP_S * RECORD_EVERY)
    return StoredAction(
        name=command.name,
        created_s=command.created_s,
        duration_ms=max(1, round(float(times_s[-1]) * 1000)),
        loop=command.loop,
        times_s=times_s,
        joints_rad=joints,
        names=build.names,
        stated_frames=command.frames,
        stated_ms=command.duration_ms,
    )


def describe_disagreement(action: StoredAction) -> str:
    """Describe what was stored if its sender described it differently; "" if it agrees."""
    other_count = action.stated_frames not in (0, action.frames)
    other_length = abs(action.duration_ms - action.stated_ms) > OWN_LENGTH_S * 1000
    if not other_count and not other_length:
        return ""
    return f"kept all {action.frames} frames, {action.duration_ms / 1000:.2f} s"


def action_from_keyframes(command: SaveAction, build: Build) -> StoredAction:
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
