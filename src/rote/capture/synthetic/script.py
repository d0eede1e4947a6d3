"""The messages of a made-up session, as both sides send them.

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
    to_robot: bool
    value: channel.Value


class ScriptMessage(NamedTuple):
    """One message of a data channel, as it was sent."""

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
    """Return the messages of client and robot in the data channel, from the moment it is open."""
    end_s = 24.0
    lines = list(_greeting_lines()) + list(_request_lines())
    lines += [
        ScriptLine(at / 10, False, _arm_state_message(at / 10)) for at in range(3, int(end_s * 10))
    ]
    for at in range(2, int(end_s), 2):
        beat = channel.heartbeat_at(1_769_635_657 + at)
        lines += [ScriptLine(float(at), True, beat), ScriptLine(at + 0.004, False, beat)]
    return sorted(lines, key=lambda line: line.time_s)


def _greeting_lines() -> Iterator[ScriptLine]:
    challenge = "c0ffee" * 4
    yield ScriptLine(0.01, False, channel.Validation(challenge))
    yield ScriptLine(0.03, True, channel.Validation(channel.answer_to(challenge)))
    yield ScriptLine(0.05, False, channel.Validation(channel.VALIDATION_OK))
    yield ScriptLine(0.12, False, faults.Faults(faults.Change.ALL))
    yield ScriptLine(0.2, True, channel.Subscription(rpc.ARM_STATE_TOPIC))


def _request_lines() -> Iterator[ScriptLine]:
    taught = RpcTaughtAction(NAME, TEACH_S)
    begin, end = rpc.start_teaching(NAME), 3.0 + TEACH_S
    asked: list[tuple[float, Call, float, str]] = [
        (1.0, rpc.LIST_ACTIONS, 0.021, rpc.encode_actions(_PRESETS, _FACTORY)),
        (3.0, begin, 0.33, ""),
        *((3.0 + n, rpc.KEEP_TEACHING, 0.024, "") for n in range(1, int(TEACH_S))),
        (end, rpc.STOP_TEACHING, 0.024, ""),
        (end + 0.5, rpc.LIST_ACTIONS, 0.021, rpc.encode_actions(_PRESETS, (*_FACTORY, taught))),
        (13.0, rpc.play_taught(NAME), 0.338, ""),
        (20.0, rpc.rename_taught(NAME, NEW_NAME), 0.036, ""),
        (21.0, rpc.execute_preset(1), 0.02, ""),
    ]
    for number, (at, call, latency_s, data) in enumerate(asked, 1):
        yield ScriptLine(at, True, call.request(number))
        code = 7404 if call.api_id == rpc.ArmApi.EXECUTE_PRESET else 0
        answer = RpcResponse(
            service=call.service, api_id=call.api_id, id=number, code=code, data=data
        )
        yield ScriptLine(at + latency_s, False, answer)


def _arm_state_message(time_s: float) -> channel.ChannelMessage:
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
    """Return a teaching session in the documented frames."""
    taught = m.ActionEntry(NEW_NAME, int(TEACH_S * 1000))
    save = m.SaveAction(
        name=NEW_NAME,
        created_s=1_769_635_657,
        duration_ms=taught.duration_ms,
        keyframes=(m.Keyframe(joint=15, time_ms=4000, value_rad=-0.5),),
    )
    end_s = 2.0 + TEACH_S
    plot: list[tuple[float, m.Command, m.Reply]] = [
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
    numbered: list[ScriptFrame] = []
    for number, (at, command, reply) in enumerate(sorted(plot, key=lambda part: part[0])):
        kind, payload = teaching.encode_command(command)
        asked = teaching.encode(teaching.Frame(kind, number, payload))
        said = teaching.encode(teaching.Frame(kind, number, teaching.encode_reply(reply)))
        numbered += [ScriptFrame(at, True, asked), ScriptFrame(at + 0.003, False, said)]
    numbered += _state_frames(end_s + 1.0 + PLAY_S)
    return sorted(numbered, key=lambda frame: frame.time_s)


def _state_frames(end_s: float) -> Iterator[ScriptFrame]:
    for number in range(int((end_s - 0.1) * 50)):
        at = 0.1 + number / 50
        soft = 1.5 <= at < 2.2 + TEACH_S
        angle = 0.3 * math.sin(at) if soft else 0.0
        state = m.RobotState(
            arms_soft=soft,
            recording=2.0 <= at < 2.0 + TEACH_S,
            joints_rad=(angle,) * m.JOINT_COUNT,
            velocities_rad_s=(0.0,) * m.JOINT_COUNT,
            time_us=int(at * 1e6),
        )
        payload = teaching_state.encode_state(state, all_joints=False)
        frame = teaching.Frame(0, number & 0xFFFF, payload, teaching.MessageType.STATE)
        yield ScriptFrame(at, False, teaching.encode(frame))
    for number in range(int(end_s / 4.5)):
        beat = teaching.Frame(0, number, b"", teaching.MessageType.HEARTBEAT)
        yield ScriptFrame(4.5 * (number + 1), True, teaching.encode(beat))


# ---- to an A1 -----------------------------------------------------------------------------------


def walk() -> list[ScriptFrame]:
    """Return a short walk of an A1, with a hundred commands and states per second."""
    dialect = a1_values.Dialect.A1_3_3
    steps: list[ScriptFrame] = []
    for number in range(300):
        at = number / 100
        mode, speed = (2, 0.2) if 100 <= number < 200 else (1, 0.0)
        command = a1_values.HighCmd(mode=mode, gait=int(mode == 2), velocity_m_s=(speed, 0.0))
        moved = max(0, min(100, number - 100)) / 100 * 0.2
        state = a1_values.HighState(
            mode=mode, gait=0, progress=0.0, position_m=(moved, 0.0, 0.0), foot_raise_height_m=0.08
        )
        steps.append(ScriptFrame(at, True, a1.encode(command, dialect)))
        steps.append(ScriptFrame(at + 0.002, False, a1.encode(a1.fit(state, dialect), dialect)))
    return steps
