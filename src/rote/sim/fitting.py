"""Adapts an action that was taught on another build, by joint names."""

from dataclasses import replace

import numpy as np

from rote.errors import UnsafeMotionError
from rote.messages import Code
from rote.model.family import MOVED_RAD, Build
from rote.motion.track import Array
from rote.sim.refusal import RefusalError
from rote.sim.store import StoredAction


def fit_action(action: StoredAction, build: Build) -> tuple[StoredAction, tuple[str, ...]]:
    """Return the action in the columns of `build`, and warnings about joints left out.

    Raises `UnsafeMotionError` if the action lacks a taught joint of the build.
    """
    if action.names == build.names:
        return action, ()
    fitted = _fit_keyframes(action, build) if action.keyframes else _fit_frames(action, build)
    message = f"{action.name!r} was taught on a robot with other joints"
    if left_out := [name for name in _moved_joints(action) if name not in build.names]:
        message += f": {', '.join(left_out)} is left out"
    return fitted, (message,)


def _fit_frames(action: StoredAction, build: Build) -> StoredAction:
    assert action.joints_rad is not None
    for name in build.taught:
        if name not in action.names:
            reason = f"{action.name!r} was taught on a robot that does not have it"
            raise UnsafeMotionError(name, 0.0, reason, "Teach it again on this robot.")
    joints: Array = np.tile(np.array(build.rest_rad), (len(action.joints_rad), 1))
    for column, name in enumerate(build.names):
        if name in action.names:
            joints[:, column] = action.joints_rad[:, action.names.index(name)]
    return replace(action, joints_rad=joints, names=build.names)


def _fit_keyframes(action: StoredAction, build: Build) -> StoredAction:
    """Keep the keyframes of joints that the build has; other joints stay where they are."""
    keyframes = tuple(
        replace(keyframe, joint=build.names.index(action.names[keyframe.joint]))
        for keyframe in action.keyframes
        if action.names[keyframe.joint] in build.names
    )
    if not keyframes:
        raise RefusalError(Code.BAD_PAYLOAD)
    return replace(action, keyframes=keyframes, names=build.names)


def _moved_joints(action: StoredAction) -> list[str]:
    if action.joints_rad is None:
        return [action.names[joint] for joint in sorted({k.joint for k in action.keyframes})]
    moved = np.ptp(action.joints_rad, axis=0) > MOVED_RAD
    return [name for name, moves in zip(action.names, moved.tolist(), strict=True) if moves]
