"""Sends single frames composed by the user, each handled like the corresponding method.

No bytes are passed through. A frame is decoded to a message and checked first: a play waits until
the arms are at rest, a stop is sent first, and a mode that lets the robot sink is refused.
"""

from collections.abc import Sequence

import numpy as np

from rote import messages as m
from rote.errors import BadRequestError, DecodeError
from rote.model.family import Build, Joint
from rote.motion.check.limits import check_joint_speeds, check_positions
from rote.robot.action_store import ActionStore
from rote.robot.arm_requests import ArmRequests
from rote.robot.link import RobotLink
from rote.robot.modes import MessageModes
from rote.wire.teaching import codec as wire

_ONE_TIME_S = np.zeros(1)
"""The time of a single pose, for checks that expect a track."""


class FrameSender:
    """Sends documented frames to one robot, on wires that carry them."""

    def __init__(
        self, link: RobotLink, store: ActionStore, arms: ArmRequests, modes: MessageModes
    ) -> None:
        self._link = link
        self._store = store
        self._arms = arms
        self._modes = modes

    async def send(self, command: int, payload: bytes) -> m.Reply:
        """Decode, check and send one frame; return the robot's answer."""
        self._link.require_ability("frames", "send single frames")
        message = decode_frame(command, payload, self._link.build)
        match message:
            case m.StopMotion():
                await self._link.stop()
            case m.EnterTeaching():
                await self._modes.check_balanced()
                await self._arms.enter_teaching(message)
                self._arms.note_teaching_began()
            case m.ExitTeaching():
                await self._link.ask(message)
                self._arms.note_teaching_ended("")  # a teaching by frames has no name yet
            case m.PlayAction():
                stop_count = self._link.stops.count
                action = await self._store.find_action(message.action)
                await self._arms.request_motion(message, action.name, stop_count, lambda: None)
            case m.ChangeMode():
                await self._modes.enter(message.mode)
            case m.SaveAction():
                return await self._store.save(message)
            case _:
                return await self._link.ask(message)
        return m.Status()

    async def sync_parameters(self, parameters: bytes) -> None:
        """Send parameters, up to 44 bytes that only the robot understands."""
        self._link.require_ability("frames", "sync parameters")
        await self._link.ask(m.SyncParameters(bytes(parameters)))


def decode_frame(command: int, payload: bytes, build: Build) -> m.Command:
    """Decode and check a command frame for a robot of that build.

    A payload of less than 44 bytes, the shortest valid length, is padded with zeros. Raises
    `BadRequestError` if it cannot be decoded or must not be sent alone, and `UnsafeMotionError` if
    it exceeds a joint's limits.
    """
    if command not in wire.COMMANDS:
        known = ", ".join(f"0x{each:02x}" for each in sorted(wire.COMMANDS))
        raise BadRequestError(
            f"command 0x{command:02x} is unknown, so it cannot be checked and is not sent"
            if 0 <= command <= 0xFF
            else f"{command} is not a command: a command is one byte, 0 to 255",
            f"Use one of: {known}.",
        )
    try:
        message = wire.decode_command(command, bytes(payload).ljust(wire.SHORT, b"\0"))
    except DecodeError as error:
        raise BadRequestError(
            f"rote does not send this payload of command 0x{command:02x}: {error}",
            "The layouts are in docs/protocol/frames.md.",
        ) from None
    _check_sendable_alone(message)
    _check_numbers(message, build)
    return message


def _check_sendable_alone(message: m.Command) -> None:
    """Raise `BadRequestError` for a message that must not be sent alone: rote manages it."""
    if isinstance(message, m.TakeControl | m.ReleaseControl):
        raise BadRequestError(
            "0x09 takes or releases control, which rote does when it connects and closes",
            "Connect again, or leave the `async with` block of the robot.",
        )
    if isinstance(message, m.BeginStream | m.StreamPose):
        raise BadRequestError(
            "single poses are not sent: a stream needs a soft approach and a soft return",
            "Use robot.play_track.",
        )
    if isinstance(message, m.Subscribe) and not message.all_joints:
        raise BadRequestError(
            "a subscription must include all joints: rote needs the arms",
            "Set bit 0 of the filter flags.",
        )


def _check_numbers(message: m.Command, build: Build) -> None:
    """Raise an error if positions, speeds, keyframes or the duration exceed their limits."""
    if isinstance(message, m.EnterTeaching) and message.state is not None:
        joints = build.joints[: len(message.state.joints_rad)]
        positions = message.state.joints_rad[: len(joints)]
        check_positions(_ONE_TIME_S, np.array([positions]), joints)
        _check_speeds(message.state.velocities_rad_s[: len(joints)], joints)
    elif isinstance(message, m.SaveAction | m.PlayAction):
        check_keyframes(message.keyframes, build)
    if isinstance(message, m.SaveAction) and not 1 <= message.duration_ms <= m.MAX_DURATION_MS:
        raise BadRequestError(
            f"a duration of {message.duration_ms} ms is out of range",
            f"Choose 1 to {m.MAX_DURATION_MS} ms.",
        )


def _check_speeds(speeds_rad_s: Sequence[float], joints: Sequence[Joint]) -> None:
    # As a track of one second: in that time a joint travels by the amount of its speed.
    times_s = np.array([0.0, 1.0])
    poses_rad = np.array([np.zeros(len(joints)), np.array(speeds_rad_s)])
    max_rad_s = np.array([joint.velocity_rad_s for joint in joints])
    check_joint_speeds(times_s, poses_rad, joints, max_rad_s)


def check_keyframes(keyframes: Sequence[m.Keyframe], build: Build) -> tuple[m.Keyframe, ...]:
    """Return the keyframes; raise an error unless all are of taught joints within their limits."""
    if len(keyframes) > m.MAX_KEYFRAMES:
        raise BadRequestError(
            f"{len(keyframes)} keyframes are too many: at most {m.MAX_KEYFRAMES} fit",
            "Leave some out.",
        )
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < len(build.joints):
            raise BadRequestError(
                f"there is no joint {keyframe.joint}",
                f"{build.title} has the joints 0 to {len(build.joints) - 1}.",
            )
        if keyframe.joint not in build.taught_columns:
            raise BadRequestError(
                f"{build.names[keyframe.joint]} cannot be played: the balance controller needs it",
                f"Use: {', '.join(build.taught)}.",
            )
        if not 0 <= keyframe.time_ms <= 0xFFFF:
            raise BadRequestError(
                f"a keyframe at {keyframe.time_ms} ms is out of range", "Choose 0 to 65535 ms."
            )
        joint = build.joints[keyframe.joint]
        at_s = np.array([keyframe.time_ms / 1000])
        check_positions(at_s, np.array([[keyframe.value_rad]]), [joint])
    return tuple(keyframes)
