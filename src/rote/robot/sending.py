"""Single frames written by the user: decoded, checked, and passed on as messages.

No bytes are passed through. A frame is decoded to a message first, so that it is handled like the
corresponding method: a play waits for arms at rest, a stop overtakes, and a mode that lets the
robot sink must be requested by name.
"""

from collections.abc import Sequence

import numpy as np

from rote import messages as m
from rote.errors import BadRequestError, DecodeError
from rote.model.family import Build, Joint
from rote.motion.check.limits import check_joint_speeds, check_positions
from rote.wire.teaching import codec as wire

_ONCE = np.zeros(1)


def read(command: int, payload: bytes, build: Build) -> m.Command:
    """Decode and check a command frame for a robot of that build.

    A payload of less than 44 bytes, the shortest there is, is padded with zeros. Raises
    `BadRequestError` if it cannot be decoded or must not be sent alone, and `UnsafeMotionError` if
    it exceeds a joint's limits.
    """
    if command not in wire.COMMANDS:
        known = ", ".join(f"0x{each:02x}" for each in sorted(wire.COMMANDS))
        raise BadRequestError(
            f"there is no command 0x{command:02x}, so it cannot be checked and is not sent"
            if 0 <= command <= 0xFF
            else f"{command} is not a command: it is one byte",
            f"Use one of: {known}.",
        )
    try:
        message = wire.decode_command(command, bytes(payload).ljust(wire.SHORT, b"\0"))
    except DecodeError as error:
        raise BadRequestError(
            f"this payload of command 0x{command:02x} is not sent: {error}",
            "The layouts are in docs/protocol/frames.md.",
        ) from None
    _check_alone(message)
    _check_numbers(message, build)
    return message


def _check_alone(message: m.Command) -> None:
    """Raise `BadRequestError` for messages that rote itself has to manage."""
    if isinstance(message, m.TakeControl | m.ReleaseControl):
        raise BadRequestError(
            "0x09 begins or ends the conversation, which is done by connecting and leaving",
            "Connect again, or leave the robot's block.",
        )
    if isinstance(message, m.BeginStream | m.StreamPose):
        raise BadRequestError(
            "single poses are not sent: they need a soft way to the first one and back",
            "Use robot.play_track.",
        )
    if isinstance(message, m.Subscribe) and not message.all_joints:
        raise BadRequestError(
            "a subscription without all joints would leave rote without the arms",
            "Set bit 0 of the filter flags.",
        )


def _check_numbers(message: m.Command, build: Build) -> None:
    if isinstance(message, m.EnterTeaching) and message.state is not None:
        joints = build.joints[: len(message.state.joints_rad)]
        positions = message.state.joints_rad[: len(joints)]
        check_positions(_ONCE, np.array([positions]), joints)
        _check_speeds(message.state.velocities_rad_s[: len(joints)], joints)
    elif isinstance(message, m.SaveAction | m.PlayAction):
        check_keyframes(message.keyframes, build)
    if isinstance(message, m.SaveAction) and not 1 <= message.duration_ms <= m.MAX_DURATION_MS:
        raise BadRequestError(
            f"a duration of {message.duration_ms} ms is out of range",
            f"Choose 1 to {m.MAX_DURATION_MS} ms.",
        )


def _check_speeds(speeds_rad_s: Sequence[float], joints: Sequence[Joint]) -> None:
    times_s = np.array([0.0, 1.0])
    travelled = np.array([np.zeros(len(joints)), np.array(speeds_rad_s)])
    most_rad_s = np.array([joint.velocity_rad_s for joint in joints])
    check_joint_speeds(times_s, travelled, joints, most_rad_s)


def check_keyframes(keyframes: Sequence[m.Keyframe], build: Build) -> tuple[m.Keyframe, ...]:
    """Return the keyframes if all are known, taught joints within their limits."""
    if len(keyframes) > m.MAX_KEYFRAMES:
        raise BadRequestError(
            f"{len(keyframes)} keyframes; at most {m.MAX_KEYFRAMES} fit", "Leave some out."
        )
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < len(build.joints):
            raise BadRequestError(
                f"there is no joint {keyframe.joint}",
                f"{build.title} has the joints 0 to {len(build.joints) - 1}.",
            )
        if keyframe.joint not in build.taught_columns:
            raise BadRequestError(
                f"{build.names[keyframe.joint]} is not taught or played: it keeps the balance",
                f"Use: {', '.join(build.taught)}.",
            )
        if not 0 <= keyframe.time_ms <= 0xFFFF:
            raise BadRequestError(f"a keyframe at {keyframe.time_ms} ms", "At most 65,535 ms fit.")
        joint = build.joints[keyframe.joint]
        at_s = np.array([keyframe.time_ms / 1000])
        check_positions(at_s, np.array([[keyframe.value_rad]]), [joint])
    return tuple(keyframes)
