"""The documented UDP teaching frames: header, CRC and every payload.

`fields` describes every field; the structs here are compiled from it. `decode` and the payload
decoders raise only `DecodeError`, for any bytes.

Factory robots do not use this protocol: 17 FE FD is also how every DTLS 1.2 record begins, and the
captures from which it was derived are DTLS. Only a matching CRC identifies a teaching frame.
"""

import math
import struct
import zlib
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, NamedTuple

from rote import messages as m
from rote.errors import BadRequestError, ChecksumError, DecodeError, PayloadError, TruncatedError
from rote.wire.teaching import fields
from rote.wire.teaching.fields import BY_KEY, HEADER, compile_fields, get_bit_masks
from rote.wire.teaching.state import decode_state, encode_state, require_finite

CommandId = fields.CommandId
MessageType = fields.MessageType
SHORT, PLAY, SAVE, NAME_BYTES = fields.SHORT, fields.PLAY, fields.SAVE, fields.NAME_BYTES

_HEADER, _CRC = compile_fields(HEADER), compile_fields((fields.CRC,))
_MAGIC_AND_FLAGS, _ZERO_AND_INDICATOR = (
    HEADER[index].default + HEADER[index + 1].default for index in (1, 4)
)
HEADER_SIZE = _HEADER.size
OVERHEAD = HEADER_SIZE + _CRC.size
MAX_PAYLOAD = 65_507 - OVERHEAD
"""The largest payload that fits into one UDP datagram over IPv4."""

_STRUCTS = {key: compile_fields(layout.fields) for key, layout in BY_KEY.items()}
"""The struct of each payload, without the fields whose number of values varies."""
_KEYFRAME, _ENTRY = compile_fields(fields.KEYFRAME), compile_fields(fields.ENTRY)
_SAVE_BITS = get_bit_masks(BY_KEY["save"], "save_flags")
_ALL_JOINTS_BIT = get_bit_masks(BY_KEY["subscribe"], "filter")["all_joints"]
_LOOP_BIT = get_bit_masks(BY_KEY["play"], "interpolation")["loop"]
_HAND_TAG, _STREAM_TAG, _POSE_TAG = _TAGS = tuple(
    BY_KEY[key].tag for key in ("hand", "stream", "pose")
)
"""Tags at the start of a parameter sync that mark rote's own extensions."""
_FULL_WEIGHT = 0xFFFF
_STEPS_PER_RAD = 10_000
_TAKE_AS_ZERO, _TAKE, _CHANGE, _RELEASE = range(4)
"""The modes of command 0x09. The documents' own controller sends 0 to take control."""


class Frame(NamedTuple):
    """One datagram. A named tuple, because one is made for every datagram that arrives and a frozen
    dataclass takes twice as long to make (benchmarks/codec.py)."""

    command: int
    """A `CommandId` if it is known; any byte is legal on the wire."""
    sequence: int
    payload: bytes = b""
    type: int = 0x17
    """A `MessageType`."""


_TYPES = frozenset(kind.value for kind in MessageType)


def encode(frame: Frame) -> bytes:
    """Return the datagram for `frame`."""
    payload = frame.payload
    if len(payload) > MAX_PAYLOAD:
        raise BadRequestError(f"a payload of {len(payload)} bytes does not fit into a datagram")
    try:
        body = (
            _HEADER.pack(
                frame.type,
                _MAGIC_AND_FLAGS,
                frame.sequence,
                _ZERO_AND_INDICATOR,
                frame.command,
                len(payload),
            )
            + payload
        )
    except struct.error as error:
        raise BadRequestError(f"this frame cannot be written: {error}") from None
    return body + _CRC.pack(compute_crc(body))


def compute_crc(body: bytes) -> int:
    """Return the CRC-32 of a frame: of everything before its last four bytes."""
    return zlib.crc32(body)


def decode(datagram: bytes) -> Frame:
    """Return the frame in `datagram`, or raise `DecodeError` saying what is wrong with it."""
    size = len(datagram)
    if size < OVERHEAD:
        raise TruncatedError(OVERHEAD, size, _hint_at_dtls(datagram))
    kind, magic, sequence, indicator, command, length = _HEADER.unpack_from(datagram)
    if kind not in _TYPES or magic != _MAGIC_AND_FLAGS or indicator != _ZERO_AND_INDICATOR:
        raise DecodeError(
            f"these {size} bytes do not begin like a teaching frame: {datagram[:12].hex(' ')}"
            + _hint_at_dtls(datagram)
        )
    if size != length + OVERHEAD:
        if size < length + OVERHEAD:
            raise TruncatedError(length + OVERHEAD, size, _hint_at_dtls(datagram))
        surplus = size - length - OVERHEAD
        raise DecodeError(f"{surplus} bytes follow the end of the frame" + _hint_at_dtls(datagram))
    end = size - 4
    (stated,) = _CRC.unpack_from(datagram, end)
    computed = compute_crc(datagram[:end])
    if stated != computed:
        raise ChecksumError(
            stated,
            computed,
            "; bytes that begin like a teaching frame and fail the CRC are most likely a DTLS "
            "record",
        )
    return Frame(command, sequence, datagram[HEADER_SIZE:end], kind)


def _hint_at_dtls(datagram: bytes) -> str:
    """Return a hint if the bytes begin with a complete DTLS record; otherwise an empty text."""
    # A record has a header of 13 bytes, which ends with the length of the content.
    end_of_record = 13 + int.from_bytes(datagram[11:13])
    if datagram[:3] == b"\x17\xfe\xfd" and end_of_record <= len(datagram):
        return "; they are most likely a DTLS record"
    return ""


# ---- commands -----------------------------------------------------------------------------------


def encode_command(message: m.Command) -> tuple[CommandId, bytes]:
    """Return the command byte and the payload for `message`."""
    if type(message) not in _ENCODERS:
        raise BadRequestError(f"teaching frames have no command for {type(message).__name__}")
    key, get_values = _ENCODERS[type(message)]
    try:
        values = get_values(message)
        payload = values if isinstance(values, bytes) else _STRUCTS[key].pack(*values)
    except (struct.error, OverflowError) as error:
        raise BadRequestError(f"{message} cannot be written: {error}") from None
    return BY_KEY[key].command, payload


def decode_command(command: int, payload: bytes) -> m.Command:
    """Return the message of a command frame.

    Raises `DecodeError` if the command is unknown or its payload is invalid.
    """
    decoder = _DECODERS.get(command)
    if decoder is None:
        raise DecodeError(f"unknown command 0x{command:02x}")
    return decoder(payload)


def _unpack_payload(key: str, payload: bytes) -> tuple[Any, ...]:
    """Return the values in a payload of the layout `BY_KEY[key]`, whose length is fixed."""
    layout = _STRUCTS[key]
    if len(payload) != layout.size:
        raise PayloadError(f"the payload of {key} is {layout.size} bytes long, not {len(payload)}")
    return layout.unpack(payload)


def _decode_control_mode(payload: bytes) -> m.Command:
    mode, target = _unpack_payload("control-mode", payload)
    if mode in (_TAKE, _TAKE_AS_ZERO):
        return m.TakeControl()
    if mode == _CHANGE:
        return m.ChangeMode(target)
    if mode == _RELEASE:
        return m.ReleaseControl()
    raise PayloadError(f"unknown control mode {mode}")


_SHORT_POSE_JOINTS = 15
"""A pose of this many joints is as long as other commands. A pose of n joints, for any other n,
states n and has 11 + 2n bytes: an odd length, which distinguishes the two."""


@cache
def _make_pose_struct(count: int) -> struct.Struct:
    return compile_fields(BY_KEY["pose-n"].fields, count)


def _encode_pose(message: m.StreamPose) -> bytes:
    """Return the payload of a streamed pose, in the short layout for 15 joints."""
    try:
        if not message.joints_rad:
            raise BadRequestError("the streamed pose has no joints")
        weight = round(message.weight * _FULL_WEIGHT)
        joints = [round(position * _STEPS_PER_RAD) for position in message.joints_rad]
        count = len(joints)
        if count == _SHORT_POSE_JOINTS:
            return _STRUCTS["pose"].pack(_POSE_TAG, message.number, weight, *joints)
        return _make_pose_struct(count).pack(_POSE_TAG, message.number, weight, count, *joints)
    except ValueError:
        raise BadRequestError("the streamed pose contains a non-finite value") from None


def encode_pose(pose: m.StreamPose, stream: int) -> bytes:
    """Return the datagram of a pose in the stream that the request number `stream` began."""
    command, payload = encode_command(pose)
    return encode(Frame(command, stream, payload))


def is_pose(frame: Frame) -> bool:
    """Whether a command frame is a streamed pose. Such a frame is not answered, and its sequence
    number is that of the request which began the stream."""
    return frame.command == CommandId.PARAMETER_SYNC and frame.payload.startswith(_POSE_TAG)


def _decode_pose(payload: bytes) -> m.StreamPose:
    """Return a streamed pose from either of its layouts, which differ in length."""
    if len(payload) == SHORT:
        _, number, weight, *joints = _STRUCTS["pose"].unpack(payload)
    else:
        head_size = _STRUCTS["pose-n"].size
        count, odd = divmod(len(payload) - head_size, 2)  # two bytes for each joint
        if odd or count < 1 or payload[head_size - 1] != count:  # the head ends with the count
            raise PayloadError(
                f"a pose of n joints is {SHORT} bytes long for 15 and 11 + 2n for others, "
                f"not {len(payload)}"
            )
        _, number, weight, _, *joints = _make_pose_struct(count).unpack(payload)
    positions = tuple(joint / _STEPS_PER_RAD for joint in joints)
    return m.StreamPose(number, weight / _FULL_WEIGHT, positions)


def _decode_parameters(payload: bytes) -> m.Command:
    """Return the message of a parameter sync, which may be an extension of rote."""
    if payload.startswith(_POSE_TAG):
        return _decode_pose(payload)
    (data,) = _unpack_payload("parameter-sync", payload)
    if not payload.startswith(_TAGS):
        return m.SyncParameters(data.rstrip(b"\0"))
    if payload.startswith(_STREAM_TAG):
        return m.BeginStream()
    _, duration_ms, name = _unpack_payload("hand", payload)
    return m.MoveByHand(_unpack_name(name), duration_ms)


def _encode_parameters(message: m.SyncParameters) -> tuple[bytes]:
    if len(message.data) > SHORT or message.data.startswith(_TAGS):
        tags = ", ".join(tag.decode() for tag in _TAGS)
        raise BadRequestError(
            f"parameters must have at most {SHORT} bytes and must not begin with {tags}"
        )
    return (message.data,)


def _encode_subscribe(message: m.Subscribe) -> bytes:
    flags = _STRUCTS["subscribe"].pack((message.flags & ~_ALL_JOINTS_BIT) | message.all_joints)
    max_opaque = fields.SUBSCRIBE_MAX - len(flags)
    if len(message.opaque) > max_opaque:
        raise BadRequestError(f"a subscription holds at most {max_opaque} further bytes")
    return (flags + message.opaque).ljust(SHORT, b"\0")


def _decode_subscribe(payload: bytes) -> m.Command:
    if not SHORT <= len(payload) <= fields.SUBSCRIBE_MAX:
        raise PayloadError(
            f"a subscription is {SHORT} to {fields.SUBSCRIBE_MAX} bytes long, not {len(payload)}"
        )
    head = _STRUCTS["subscribe"]
    (flags,) = head.unpack_from(payload)
    opaque = payload[head.size :].rstrip(b"\0")
    all_joints = bool(flags & _ALL_JOINTS_BIT)
    return m.Subscribe(all_joints=all_joints, flags=flags & ~_ALL_JOINTS_BIT, opaque=opaque)


def _decode_ready(payload: bytes) -> m.Command:
    # The documents specify 1, but their own controller sends 0.
    if _unpack_payload("ready", payload)[0] > 1:
        raise PayloadError("the value of the ready signal is neither 0 nor 1")
    return m.SignalReady()


def _encode_enter(message: m.EnterTeaching) -> bytes:
    """Return the payload of enter teaching: a state, or zeros, with the damping bit set."""
    payload = bytearray(fields.FULL_STATE)
    if message.state is not None:
        payload = bytearray(encode_state(message.state, all_joints=False))
    payload[3] |= 1  # the lowest bit of the big-endian mode flags
    return bytes(payload)


def _decode_teaching(payload: bytes) -> m.Command:
    """Return the message of command 0x0D: a short payload keeps teaching, a long one enters it."""
    if len(payload) == SHORT:
        compensation = _unpack_payload("keep-teaching", payload)
        return m.KeepTeaching(require_finite(compensation, "the compensation"))
    _unpack_payload("enter-teaching", payload)
    state = decode_state(payload)
    if not state.arms_soft:
        raise PayloadError("the damping bit of enter teaching is not set")
    return m.EnterTeaching(state)


def _encode_keep(message: m.KeepTeaching) -> tuple[float, ...]:
    if not math.isfinite(sum(message.compensation)):
        raise BadRequestError("the compensation contains a non-finite value")
    return message.compensation


def _decode_record(payload: bytes) -> m.Command:
    (flag,) = _unpack_payload("record", payload)
    if flag > 1:
        raise PayloadError(f"the record toggle must be 0 or 1, not {flag}")
    return m.Record(bool(flag))


def _encode_save(message: m.SaveAction) -> tuple[Any, ...]:
    return (
        _pack_name(message.name),
        message.created_s,
        message.duration_ms,
        len(message.keyframes) or message.frames,
        sum(mask for name, mask in _SAVE_BITS.items() if getattr(message, name)),
        _pack_keyframes(message.keyframes),
    )


def _decode_save(payload: bytes) -> m.Command:
    name, created_s, duration_ms, frames, flags, slots = _unpack_payload("save", payload)
    return m.SaveAction(
        name=_unpack_name(name),
        created_s=created_s,
        duration_ms=duration_ms,
        frames=frames,
        # Without keyframes, `frames` only describes the recording.
        keyframes=_unpack_keyframes(slots, used=frames if any(slots) else 0),
        **{bit: bool(flags & mask) for bit, mask in _SAVE_BITS.items()},
    )


def _encode_play(message: m.PlayAction) -> tuple[Any, ...]:
    if message.action < 1:
        raise BadRequestError(f"actions are numbered from 1, not {message.action}")
    keyframes = _pack_keyframes(message.keyframes)
    if keyframes and not any(keyframes[-_KEYFRAME.size :]):
        raise BadRequestError("an all-zero keyframe at the end reads as an unused slot")
    flags = message.interpolation | (_LOOP_BIT if message.loop else 0)
    return message.action, message.frames, message.duration_ms, flags, keyframes


def _decode_play(payload: bytes) -> m.Command:
    action, frames, duration_ms, flags, slots = _unpack_payload("play", payload)
    if action == 0:
        return m.StopMotion()
    try:
        interpolation = m.Interpolation(flags & ~_LOOP_BIT)
    except ValueError:
        raise PayloadError(f"unknown interpolation {flags & ~_LOOP_BIT}") from None
    used = math.ceil(len(slots.rstrip(b"\0")) / _KEYFRAME.size)
    return m.PlayAction(
        action=action,
        frames=frames,
        duration_ms=duration_ms,
        interpolation=interpolation,
        loop=bool(flags & _LOOP_BIT),
        keyframes=_unpack_keyframes(slots, used),
    )


# ---- parts --------------------------------------------------------------------------------------


def _pack_name(name: str) -> bytes:
    # The robot and its client restrict names further; this checks only what fits a frame.
    if problem := m.name_problem(name, in_use=True):
        raise BadRequestError(
            f"the name {name!r} cannot be used: {problem}", "Choose another name."
        )
    return name.encode("utf-8")


def _unpack_name(field: bytes) -> str:
    """Return the name in a field of 32 bytes; raise `PayloadError` if it is invalid."""
    text, terminator, padding = field.partition(b"\0")
    if not terminator:
        raise PayloadError("the name is not terminated by a zero")
    if any(padding):
        raise PayloadError("the name has bytes after its terminating zero")
    try:
        name = text.decode("utf-8")
    except UnicodeDecodeError:
        raise PayloadError("the name is not UTF-8") from None
    if problem := m.name_problem(name, in_use=True):
        raise PayloadError(f"the name cannot be used: {problem}")
    return name


def _pack_note(note: str) -> bytes:
    packed = note.encode("utf-8")
    if len(packed) > m.MAX_NOTE_BYTES:
        raise BadRequestError(f"the note has {len(packed)} bytes; at most {m.MAX_NOTE_BYTES} fit")
    return packed


def _unpack_note(field: bytes) -> str:
    """Return the note of a status, which is an extension; empty if it is not printable text."""
    try:
        note = field.partition(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return note if note.isprintable() else ""


def _pack_keyframes(keyframes: tuple[m.Keyframe, ...]) -> bytes:
    if not keyframes:
        return b""
    if len(keyframes) > m.MAX_KEYFRAMES:
        raise BadRequestError(
            f"there are {len(keyframes)} keyframes; at most {m.MAX_KEYFRAMES} fit"
        )
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < m.JOINT_COUNT or not math.isfinite(keyframe.value_rad):
            raise BadRequestError(f"invalid joint or value: {keyframe}")
    packed = b"".join(_KEYFRAME.pack(k.joint, k.time_ms, k.value_rad) for k in keyframes)
    if not any(packed):
        raise BadRequestError("keyframes that are all zero read as no keyframes")
    return packed


def _unpack_keyframes(slots: bytes, used: int) -> tuple[m.Keyframe, ...]:
    """Return the first `used` keyframes of a save or play; the other slots must be zeros."""
    if used > m.MAX_KEYFRAMES:
        raise PayloadError(f"the frame states {used} keyframes; at most {m.MAX_KEYFRAMES} fit")
    if any(slots[used * _KEYFRAME.size :]):
        raise PayloadError(f"there are keyframes after the stated number of {used}")
    keyframes = []
    for joint, time_ms, value in _KEYFRAME.iter_unpack(slots[: used * _KEYFRAME.size]):
        if joint >= m.JOINT_COUNT or not math.isfinite(value):
            raise PayloadError(f"invalid keyframe: joint {joint}, value {value}")
        keyframes.append(m.Keyframe(joint=joint, time_ms=time_ms, value_rad=value))
    return tuple(keyframes)


# ---- replies ------------------------------------------------------------------------------------


@lru_cache(maxsize=16)  # most replies are the same few
def encode_reply(reply: m.Reply) -> bytes:
    """Return the payload of a reply."""
    try:
        if isinstance(reply, m.Status):
            return _STRUCTS["status"].pack(reply.code, _pack_note(reply.note))
        if not isinstance(reply, m.ActionList):
            raise BadRequestError(f"teaching frames have no reply for {reply}")
        if len(reply.actions) > m.MAX_ACTIONS:
            raise BadRequestError(
                f"there are {len(reply.actions)} actions; at most {m.MAX_ACTIONS} fit"
            )
        entries = (_ENTRY.pack(_pack_name(a.name), a.duration_ms) for a in reply.actions)
        count = _STRUCTS["list-reply"].pack(len(reply.actions))
        return (count + b"".join(entries)).ljust(SAVE, b"\0")
    except struct.error as error:
        raise BadRequestError(f"{reply} cannot be written: {error}") from None


def decode_reply(command: int, payload: bytes) -> m.Reply:
    """Return the message of a reply to `command`: an action list or a status."""
    if command != CommandId.LIST_ACTIONS or len(payload) == SHORT:
        code, note = _unpack_payload("status", payload)
        return m.Status(code, _unpack_note(note))
    if len(payload) < SAVE:
        raise PayloadError(f"an action list is at least {SAVE} bytes long, not {len(payload)}")
    head = _STRUCTS["list-reply"]
    (count,) = head.unpack_from(payload)
    end = head.size + count * _ENTRY.size
    if count > m.MAX_ACTIONS or end > len(payload):
        raise PayloadError(f"{len(payload)} bytes cannot hold a list of {count} actions")
    entries = _ENTRY.iter_unpack(payload[head.size : end])
    return m.ActionList(tuple(m.ActionEntry(_unpack_name(name), ms) for name, ms in entries))


# ---- tables -------------------------------------------------------------------------------------

_ENCODERS: dict[type, tuple[str, Callable[..., bytes | tuple[Any, ...]]]] = {
    m.TakeControl: ("control-mode", lambda _: (_TAKE, 0)),
    m.ReleaseControl: ("control-mode", lambda _: (_RELEASE, 0)),
    m.ChangeMode: ("control-mode", lambda c: (_CHANGE, c.mode)),
    m.SyncParameters: ("parameter-sync", _encode_parameters),
    m.MoveByHand: ("hand", lambda c: (_HAND_TAG, c.duration_ms, _pack_name(c.script))),
    m.BeginStream: ("stream", lambda _: (_STREAM_TAG,)),
    m.StreamPose: ("pose", _encode_pose),
    m.Subscribe: ("subscribe", _encode_subscribe),
    m.SignalReady: ("ready", lambda _: (1,)),
    m.EnterTeaching: ("enter-teaching", _encode_enter),
    m.KeepTeaching: ("keep-teaching", _encode_keep),
    m.ExitTeaching: ("exit-teaching", lambda _: ()),
    m.Record: ("record", lambda c: (c.on,)),
    m.ListActions: ("list", lambda c: (c.filter,)),
    m.SaveAction: ("save", _encode_save),
    m.PlayAction: ("play", _encode_play),
    m.StopMotion: ("play", lambda _: (0, 0, 0, 0, b"")),
}
"""For each message: its layout, and a function that returns the values to pack into that layout,
or the complete payload as bytes."""

_DECODERS: dict[int, Callable[[bytes], m.Command]] = {
    CommandId.CONTROL_MODE: _decode_control_mode,
    CommandId.PARAMETER_SYNC: _decode_parameters,
    CommandId.STATUS_SUBSCRIBE: _decode_subscribe,
    CommandId.READY_SIGNAL: _decode_ready,
    CommandId.TEACHING: _decode_teaching,
    CommandId.EXIT_TEACHING: lambda payload: m.ExitTeaching(
        *_unpack_payload("exit-teaching", payload)
    ),
    CommandId.RECORD: _decode_record,
    CommandId.LIST_ACTIONS: lambda payload: m.ListActions(*_unpack_payload("list", payload)),
    CommandId.SAVE_ACTION: _decode_save,
    CommandId.PLAY_ACTION: _decode_play,
}

COMMANDS = frozenset(_DECODERS)
"""The command bytes that are defined."""
