"""The messages of an invented session, as both sides send them.

The same steps on each wire: connect, list, teach, list again, play, rename, disconnect.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

from rote import messages as m
from rote.wire.a1 import codec as a1
from rote.wire.a1 import values as a1_values
from rote.wire.services import faults, rpc
from rote.wire.services.rpc import ArmState, Call, RpcResponse, RpcTaughtAction
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import state as teaching_state
from rote.wire.webrtc import channel

NAME, NEW_NAME = "2026-01-28_21:27:37", "greeting"
TEACH_S, PLAY_S = 8.0, 5.0
_FACTORY = (RpcTaughtAction("Waist_Drum_Dance", 9.5), RpcTaughtAction("Scratch_head", 6.1))
_PRESETS = (rpc.RpcPreset(99, "release_arm"), rpc.RpcPreset(1, "turn_back_wave", (500, 501)))


class ScriptLine(NamedTuple):
    """One message of a data channel."""

    time_s: float
    """Seconds after the channel was opened."""
    to_robot: bool
    value: channel.Value


class ScriptMessage(NamedTuple):
    """One message of a data channel, already encoded."""

    time_s: float
    to_robot: bool
    message: str | bytes


class ScriptFrame(NamedTuple):
    """One datagram of a protocol without a session."""

    time_s: float
    to_robot: bool
    payload: bytes


# ---- by WebRTC ----------------------------------------------------------------------------------


def webrtc() -> list[ScriptLine]:
    """Return the messages of client and robot in the data channel, in order of time."""
    end_s = 24.0
    lines = list(_make_greeting_lines()) + list(_make_request_lines())
    lines += [  # ten states per second
        ScriptLine(number / 10, False, _make_arm_state(number / 10))
        for number in range(3, int(end_s * 10))
    ]
    for time_s in range(2, int(end_s), 2):
        heartbeat = channel.make_heartbeat(1_769_635_657 + time_s)
        lines += [
            ScriptLine(float(time_s), True, heartbeat),
            ScriptLine(time_s + 0.004, False, heartbeat),
        ]
    return sorted(lines, key=lambda line: line.time_s)


def _make_greeting_lines() -> Iterator[ScriptLine]:
    """Yield the first messages: the robot validates the client, and the client subscribes."""
    challenge = "c0ffee" * 4
    yield ScriptLine(0.01, False, channel.Validation(challenge))
    yield ScriptLine(0.03, True, channel.Validation(channel.answer_challenge(challenge)))
    yield ScriptLine(0.05, False, channel.Validation(channel.VALIDATION_OK))
    yield ScriptLine(0.12, False, faults.Faults(faults.Change.ALL))
    yield ScriptLine(0.2, True, channel.Subscription(rpc.ARM_STATE_TOPIC))


def _make_request_lines() -> Iterator[ScriptLine]:
    """Yield the requests of the session, each followed by the robot's response."""
    taught = RpcTaughtAction(NAME, TEACH_S)
    begin, end = rpc.start_teaching(NAME), 3.0 + TEACH_S
    # Time, request, latency and data of the response.
    exchanges: list[tuple[float, Call, float, str]] = [
        (1.0, rpc.LIST_ACTIONS, 0.021, rpc.encode_actions(_PRESETS, _FACTORY)),
        (3.0, begin, 0.33, ""),
        *((3.0 + n, rpc.KEEP_TEACHING, 0.024, "") for n in range(1, int(TEACH_S))),
        (end, rpc.STOP_TEACHING, 0.024, ""),
        (end + 0.5, rpc.LIST_ACTIONS, 0.021, rpc.encode_actions(_PRESETS, (*_FACTORY, taught))),
        (13.0, rpc.play_taught(NAME), 0.338, ""),
        (20.0, rpc.rename_taught(NAME, NEW_NAME), 0.036, ""),
        (21.0, rpc.execute_preset(1), 0.02, ""),
    ]
    for number, (time_s, call, latency_s, data) in enumerate(exchanges, 1):
        yield ScriptLine(time_s, True, call.request(number))
        code = 7404 if call.api_id == rpc.ArmApi.EXECUTE_PRESET else 0  # one request is refused
        answer = RpcResponse(
            service=call.service, api_id=call.api_id, id=number, code=code, data=data
        )
        yield ScriptLine(time_s + latency_s, False, answer)


def _make_arm_state(time_s: float) -> channel.ChannelMessage:
    """Return the state of the arms at a time: teaching, then playing, then releasing."""
    state = ArmState()
    if 3.3 <= time_s < 3.0 + TEACH_S:
        state = ArmState(id=-1, name=NAME)
    elif 13.3 <= time_s < 13.3 + PLAY_S:
        state = ArmState(id=100, name=NAME)
    elif 13.3 + PLAY_S <= time_s < 17.4 + PLAY_S:
        state = ArmState(id=99, name="release_arm")
    return channel.ChannelMessage(rpc.ARM_STATE_TOPIC, rpc.encode_arm_state(state))


# ---- by the documented frames -------------------------------------------------------------------


def frames() -> list[ScriptFrame]:
    """Return a teaching session in the documented frames, in order of time."""
    taught = m.ActionEntry(NEW_NAME, int(TEACH_S * 1000))
    save = m.SaveAction(
        name=NEW_NAME,
        created_s=1_769_635_657,
        duration_ms=taught.duration_ms,
        keyframes=(m.Keyframe(joint=15, time_ms=4000, value_rad=-0.5),),
    )
    end_s = 2.0 + TEACH_S
    steps: list[tuple[float, m.Command, m.Reply]] = [
        (0.00, m.TakeControl(), m.Status()),
        (0.02, m.SyncParameters(), m.Status()),
        (0.04, m.Subscribe(), m.Status()),
        (0.06, m.SignalReady(), m.Status()),
        (1.00, m.ListActions(), m.ActionList()),
        (1.50, m.EnterTeaching(), m.Status()),
        (2.00, m.Record(True), m.Status()),
        *((1.5 + 4.5 * n, m.KeepTeaching(), m.Status()) for n in range(1, 1 + int(TEACH_S / 4.5))),
        (end_s, m.Record(False), m.Status()),
        (end_s + 0.2, m.ExitTeaching(), m.Status()),
        (end_s + 0.5, save, m.Status()),
        (end_s + 0.6, m.ListActions(), m.ActionList((taught,))),
        (end_s + 1.0, m.PlayAction(action=1), m.Status()),
    ]
    script_frames: list[ScriptFrame] = []
    for number, (time_s, command, reply) in enumerate(sorted(steps, key=lambda step: step[0])):
        kind, payload = teaching.encode_command(command)
        request_frame = teaching.encode(teaching.Frame(kind, number, payload))
        reply_frame = teaching.encode(teaching.Frame(kind, number, teaching.encode_reply(reply)))
        script_frames += [
            ScriptFrame(time_s, True, request_frame),
            ScriptFrame(time_s + 0.003, False, reply_frame),
        ]
    script_frames += _make_state_frames(end_s + 1.0 + PLAY_S)
    return sorted(script_frames, key=lambda frame: frame.time_s)


def _make_state_frames(end_s: float) -> Iterator[ScriptFrame]:
    """Yield the robot's states at 50 Hz, and the client's heartbeats."""
    for number in range(int((end_s - 0.1) * 50)):
        time_s = 0.1 + number / 50
        is_soft = 1.5 <= time_s < 2.2 + TEACH_S
        angle = 0.3 * math.sin(time_s) if is_soft else 0.0
        state = m.RobotState(
            arms_soft=is_soft,
            recording=2.0 <= time_s < 2.0 + TEACH_S,
            joints_rad=(angle,) * m.JOINT_COUNT,
            velocities_rad_s=(0.0,) * m.JOINT_COUNT,
            time_us=int(time_s * 1e6),
        )
        payload = teaching_state.encode_state(state, all_joints=False)
        frame = teaching.Frame(0, number & 0xFFFF, payload, teaching.MessageType.STATE)
        yield ScriptFrame(time_s, False, teaching.encode(frame))
    for number in range(int(end_s / 4.5)):
        heartbeat = teaching.Frame(0, number, b"", teaching.MessageType.HEARTBEAT)
        yield ScriptFrame(4.5 * (number + 1), True, teaching.encode(heartbeat))


# ---- to an A1 -----------------------------------------------------------------------------------


def walk() -> list[ScriptFrame]:
    """Return the datagrams of an A1 that walks for a second: 100 commands and states per second."""
    dialect = a1_values.Dialect.A1_3_3
    script_frames: list[ScriptFrame] = []
    for number in range(300):
        time_s = number / 100
        mode, speed = (2, 0.2) if 100 <= number < 200 else (1, 0.0)
        command = a1_values.HighCmd(mode=mode, gait=int(mode == 2), velocity_m_s=(speed, 0.0))
        moved_m = max(0, min(100, number - 100)) / 100 * 0.2
        state = a1_values.HighState(
            mode=mode,
            gait=0,
            progress=0.0,
            position_m=(moved_m, 0.0, 0.0),
            foot_raise_height_m=0.08,
        )
        script_frames.append(ScriptFrame(time_s, True, a1.encode(command, dialect)))
        script_frames.append(
            ScriptFrame(time_s + 0.002, False, a1.encode(a1.fit(state, dialect), dialect))
        )
    return script_frames
