"""The documented UDP teaching frames: header, CRC and every payload.

`teaching_fields` describes every field; the structs here are compiled from it. `decode` and the
payload decoders raise `DecodeError` and nothing else, for any bytes at all.

This is not what a factory robot speaks: 17 FE FD is also how every DTLS 1.2 record begins, and
the captures this protocol was read from are DTLS. The magic proves nothing; a matching CRC does.
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
from rote.wire.teaching.fields import BY_KEY, HEADER, bit_masks, compile_fields
from rote.wire.teaching.state import decode_state, encode_state, finite

CommandId = fields.CommandId
MessageType = fields.MessageType
SHORT, PLAY, SAVE, NAME_BYTES = fields.SHORT, fields.PLAY, fields.SAVE, fields.NAME_BYTES

_HEADER, _CRC = compile_fields(HEADER), compile_fields((fields.CRC,))
_FIXED, _ZERO_AND_INDICATOR = (HEADER[at].default + HEADER[at + 1].default for at in (1, 4))
HEADER_SIZE = _HEADER.size
OVERHEAD = HEADER_SIZE + _CRC.size
MAX_PAYLOAD = 65_507 - OVERHEAD
"""What fits into one UDP datagram over IPv4."""

_STRUCTS = {key: compile_fields(layout.fields) for key, layout in BY_KEY.items()}
"""One for each payload; without the fields whose number of values varies."""
_KEYFRAME, _ENTRY = compile_fields(fields.KEYFRAME), compile_fields(fields.ENTRY)
_SAVE_BITS = bit_masks(BY_KEY["save"], "save_flags")
_LOOP_BIT = bit_masks(BY_KEY["play"], "interpolation")["loop"]
_HAND_TAG, _STREAM_TAG, _POSE_TAG = _TAGS = tuple(
    BY_KEY[key].tag for key in ("hand", "stream", "pose")
)
"""Tags at the start of a parameter sync that mark rote's own extensions."""
_WHOLE_WEIGHT = 0xFFFF
_PER_RAD = 10_000
_TAKE_BY_ZEROS, _TAKE, _CHANGE, _RELEASE = range(4)
"""The modes of 0x09. The documents' own controller sends zeros to take control."""


class Frame(NamedTuple):
    """One datagram. A named tuple, because one is made for every datagram that arrives and a frozen
    dataclass takes twice as long to make (benchmarks/codec.py)."""

    command: int
    """A `CommandId` where it is a known one; any byte is legal on the wire."""
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
                _FIXED,
                frame.sequence,
                _ZERO_AND_INDICATOR,
                frame.command,
                len(payload),
            )
            + payload
        )
    except struct.error as error:
        raise BadRequestError(f"this frame cannot be written: {error}") from None
    return body + _CRC.pack(crc_of(body))


def crc_of(body: bytes) -> int:
    """Return the CRC-32 of a frame: of everything before its last four bytes."""
    return zlib.crc32(body)


def decode(datagram: bytes) -> Frame:
    """Return the frame in `datagram`, or raise `DecodeError` saying what is wrong with it."""
    size = len(datagram)
    if size < OVERHEAD:
        raise TruncatedError(OVERHEAD, size, _dtls_hint(datagram))
    kind, fixed, sequence, indicator, command, length = _HEADER.unpack_from(datagram)
    if kind not in _TYPES or fixed != _FIXED or indicator != _ZERO_AND_INDICATOR:
        raise DecodeError(
            f"these {size} bytes do not begin like a teaching frame: {datagram[:12].hex(' ')}"
            + _dtls_hint(datagram)
        )
    if size != length + OVERHEAD:
        if size < length + OVERHEAD:
            raise TruncatedError(length + OVERHEAD, size, _dtls_hint(datagram))
        surplus = size - length - OVERHEAD
        raise DecodeError(f"{surplus} bytes follow the end of the frame" + _dtls_hint(datagram))
    end = size - 4
    (stated,) = _CRC.unpack_from(datagram, end)
    computed = crc_of(datagram[:end])
    if stated != computed:
        raise ChecksumError(stated, computed)
    return Frame(command, sequence, datagram[HEADER_SIZE:end], kind)


def _dtls_hint(datagram: bytes) -> str:
    if datagram[:3] == b"\x17\xfe\xfd":
        return "; they are most likely a DTLS record"
    return ""


# ---- commands -----------------------------------------------------------------------------------


def encode_command(message: m.Command) -> tuple[CommandId, bytes]:
    """Return the command byte and the payload that say `message`."""
    if type(message) not in _ENCODERS:
        raise BadRequestError(f"teaching frames cannot say {type(message).__name__}")
    key, values_of = _ENCODERS[type(message)]
    try:
        values = values_of(message)
        payload = values if isinstance(values, bytes) else _STRUCTS[key].pack(*values)
    except (struct.error, OverflowError) as error:
        raise BadRequestError(f"{message} cannot be written: {error}") from None
    return BY_KEY[key].command, payload


def decode_command(command: int, payload: bytes) -> m.Command:
    """Return the message of a command frame; raises `PayloadError` for a payload not allowed."""
    read = _DECODERS.get(command)
    if read is None:
        raise DecodeError(f"there is no command 0x{command:02x}")
    return read(payload)


def _unpack_payload(key: str, payload: bytes) -> tuple[Any, ...]:
    layout = _STRUCTS[key]
    if len(payload) != layout.size:
        raise PayloadError(f"the payload of {key} is {layout.size} bytes long, not {len(payload)}")
    return layout.unpack(payload)


def _decode_control(payload: bytes) -> m.Command:
    mode, target = _unpack_payload("control-mode", payload)
    if mode in (_TAKE, _TAKE_BY_ZEROS):
        return m.TakeControl()
    if mode == _CHANGE:
        return m.ChangeMode(target)
    if mode == _RELEASE:
        return m.ReleaseControl()
    raise PayloadError(f"there is no control mode {mode}")


_SHORT_POSE = 15
"""A pose of so many joints is as long as other commands. One of n others has its number of joints
before them, and 11 + 2n bytes: that is odd, so the length alone tells the two apart."""


@cache
def _pose_struct(count: int) -> struct.Struct:
    return compile_fields(BY_KEY["pose-n"].fields, count)


def _encode_pose(message: m.StreamPose) -> bytes:
    try:
        if not message.joints_rad:
            raise BadRequestError("a streamed pose has no joints")
        weight = round(message.weight * _WHOLE_WEIGHT)
        joints = [round(position * _PER_RAD) for position in message.joints_rad]
        count = len(joints)
        if count == _SHORT_POSE:
            return _STRUCTS["pose"].pack(_POSE_TAG, message.number, weight, *joints)
        return _pose_struct(count).pack(_POSE_TAG, message.number, weight, count, *joints)
    except ValueError:
        raise BadRequestError("a streamed pose holds a value that is not a number") from None


def encode_pose(pose: m.StreamPose, stream: int) -> bytes:
    """Return the datagram for a pose of the stream that the request of that number began."""
    command, payload = encode_command(pose)
    return encode(Frame(command, stream, payload))


def is_pose(frame: Frame) -> bool:
    """Whether a command frame holds a streamed pose: it is not answered, and has no number of its
    own but that of the request which began its stream."""
    return frame.command == CommandId.PARAMETER_SYNC and frame.payload.startswith(_POSE_TAG)


def _decode_pose(payload: bytes) -> m.StreamPose:
    if len(payload) == SHORT:
        _, number, weight, *joints = _STRUCTS["pose"].unpack(payload)
    else:
        head = _STRUCTS["pose-n"].size
        count, odd = divmod(len(payload) - head, 2)
        if odd or count < 1 or payload[head - 1] != count:
            raise PayloadError(
                f"a pose of n joints is {SHORT} bytes long for 15 and 11 + 2n for others, "
                f"not {len(payload)}"
            )
        _, number, weight, _, *joints = _pose_struct(count).unpack(payload)
    positions = tuple(joint / _PER_RAD for joint in joints)
    return m.StreamPose(number, weight / _WHOLE_WEIGHT, positions)


def _decode_parameters(payload: bytes) -> m.Command:
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
        raise BadRequestError(f"parameters are up to {SHORT} bytes and begin with none of {tags}")
    return (message.data,)


def _encode_subscribe(message: m.Subscribe) -> bytes:
    flags = _STRUCTS["subscribe"].pack((message.flags & ~1) | message.all_joints)
    most = fields.SUBSCRIBE_MAX - len(flags)
    if len(message.opaque) > most:
        raise BadRequestError(f"a subscription holds at most {most} further bytes")
    return (flags + message.opaque).ljust(SHORT, b"\0")


def _decode_subscribe(payload: bytes) -> m.Command:
    if not SHORT <= len(payload) <= fields.SUBSCRIBE_MAX:
        raise PayloadError(
            f"a subscription is {SHORT} to {fields.SUBSCRIBE_MAX} bytes long, not {len(payload)}"
        )
    head = _STRUCTS["subscribe"]
    (flags,) = head.unpack_from(payload)
    opaque = payload[head.size :].rstrip(b"\0")
    return m.Subscribe(all_joints=bool(flags & 1), flags=flags & ~1, opaque=opaque)


def _decode_ready(payload: bytes) -> m.Command:
    # The documents say 1, and their own controller sends zeros.
    if _unpack_payload("ready", payload)[0] > 1:
        raise PayloadError("the ready signal does not say ready")
    return m.SignalReady()


def _encode_enter(message: m.EnterTeaching) -> bytes:
    payload = bytes(fields.FULL_STATE)
    if message.state is not None:
        payload = encode_state(message.state, all_joints=False)
    return payload[:3] + bytes([payload[3] | 1]) + payload[4:]  # the damping bit


def _decode_teaching(payload: bytes) -> m.Command:
    if len(payload) == SHORT:
        compensation = _unpack_payload("keep-teaching", payload)
        return m.KeepTeaching(finite(compensation, "the compensation"))
    _unpack_payload("enter-teaching", payload)
    state = decode_state(payload)
    if not state.arms_soft:
        raise PayloadError("enter teaching without the damping bit")
    return m.EnterTeaching(state)


def _encode_keep(message: m.KeepTeaching) -> tuple[float, ...]:
    if not math.isfinite(sum(message.compensation)):
        raise BadRequestError("a compensation that is not a number")
    return message.compensation


def _decode_record(payload: bytes) -> m.Command:
    (flag,) = _unpack_payload("record", payload)
    if flag > 1:
        raise PayloadError(f"the record toggle is 0 or 1, not {flag}")
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
        keyframes=_unpack_keyframes(slots, used=frames if any(slots) else 0),
        **{bit: bool(flags & mask) for bit, mask in _SAVE_BITS.items()},
    )


def _encode_play(message: m.PlayAction) -> tuple[Any, ...]:
    if message.action < 1:
        raise BadRequestError(f"actions are numbered from 1, so there is no {message.action}")
    keyframes = _pack_keyframes(message.keyframes)
    if keyframes and not any(keyframes[-_KEYFRAME.size :]):
        raise BadRequestError("an all-zero keyframe at the end reads as an unused slot")
    how = message.interpolation | (_LOOP_BIT if message.loop else 0)
    return message.action, message.frames, message.duration_ms, how, keyframes


def _decode_play(payload: bytes) -> m.Command:
    action, frames, duration_ms, how, slots = _unpack_payload("play", payload)
    if action == 0:
        return m.StopMotion()
    try:
        interpolation = m.Interpolation(how & ~_LOOP_BIT)
    except ValueError:
        raise PayloadError(f"there is no interpolation {how & ~_LOOP_BIT}") from None
    used = -(-len(slots.rstrip(b"\0")) // _KEYFRAME.size)
    return m.PlayAction(
        action=action,
        frames=frames,
        duration_ms=duration_ms,
        interpolation=interpolation,
        loop=bool(how & _LOOP_BIT),
        keyframes=_unpack_keyframes(slots, used),
    )


# ---- parts --------------------------------------------------------------------------------------


def _pack_name(name: str) -> bytes:
    # Which names a new action may get is up to the robot and its client; here is what fits a frame.
    if problem := m.name_problem(name, in_use=True):
        raise BadRequestError(f"the name {name!r} cannot be used: {problem}", "Choose another.")
    return name.encode("utf-8")


def _unpack_name(field: bytes) -> str:
    text, zero, rest = field.partition(b"\0")
    if not zero:
        raise PayloadError("a name without its closing zero")
    if any(rest):
        raise PayloadError("a name with bytes behind its closing zero")
    try:
        name = text.decode("utf-8")
    except UnicodeDecodeError:
        raise PayloadError("a name that is not UTF-8") from None
    if problem := m.name_problem(name, in_use=True):
        raise PayloadError(f"a name that cannot be used: {problem}")
    return name


def _pack_note(note: str) -> bytes:
    packed = note.encode("utf-8")
    if len(packed) > m.MAX_NOTE_BYTES:
        raise BadRequestError(f"a note of {len(packed)} bytes; at most {m.MAX_NOTE_BYTES} fit")
    return packed


def _unpack_note(field: bytes) -> str:
    """Return the note of a status; what is no text says nothing, since it is an extension."""
    try:
        note = field.partition(b"\0")[0].decode("utf-8")
    except UnicodeDecodeError:
        return ""
    return note if note.isprintable() else ""


def _pack_keyframes(keyframes: tuple[m.Keyframe, ...]) -> bytes:
    if not keyframes:
        return b""
    if len(keyframes) > m.MAX_KEYFRAMES:
        raise BadRequestError(f"{len(keyframes)} keyframes; at most {m.MAX_KEYFRAMES} fit")
    for keyframe in keyframes:
        if not 0 <= keyframe.joint < m.JOINT_COUNT or not math.isfinite(keyframe.value_rad):
            raise BadRequestError(f"{keyframe} is not a joint's value")
    packed = b"".join(_KEYFRAME.pack(k.joint, k.time_ms, k.value_rad) for k in keyframes)
    if not any(packed):
        raise BadRequestError("keyframes that are all zero read as no keyframes")
    return packed


def _unpack_keyframes(slots: bytes, used: int) -> tuple[m.Keyframe, ...]:
    if used > m.MAX_KEYFRAMES:
        raise PayloadError(f"{used} keyframes stated; at most {m.MAX_KEYFRAMES} fit")
    if any(slots[used * _KEYFRAME.size :]):
        raise PayloadError("keyframes after the stated number of them")
    keyframes = []
    for joint, time_ms, value in _KEYFRAME.iter_unpack(slots[: used * _KEYFRAME.size]):
        if joint >= m.JOINT_COUNT or not math.isfinite(value):
            raise PayloadError(f"a keyframe for joint {joint} with the value {value}")
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
            raise BadRequestError(f"{reply} cannot be said in teaching frames")
        if len(reply.actions) > m.MAX_ACTIONS:
            raise BadRequestError(f"{len(reply.actions)} actions; at most {m.MAX_ACTIONS} fit")
        entries = (_ENTRY.pack(_pack_name(a.name), a.duration_ms) for a in reply.actions)
        count = _STRUCTS["list-reply"].pack(len(reply.actions))
        return (count + b"".join(entries)).ljust(SAVE, b"\0")
    except struct.error as error:
        raise BadRequestError(f"{reply} cannot be written: {error}") from None


def decode_reply(command: int, payload: bytes) -> m.Reply:
    """Return what a reply to `command` says."""
    if command != CommandId.LIST_ACTIONS or len(payload) == SHORT:
        code, note = _unpack_payload("status", payload)
        return m.Status(code, _unpack_note(note))
    if len(payload) < SAVE:
        raise PayloadError(f"an action list is at least {SAVE} bytes long, not {len(payload)}")
    head = _STRUCTS["list-reply"]
    (count,) = head.unpack_from(payload)
    end = head.size + count * _ENTRY.size
    if count > m.MAX_ACTIONS or end > len(payload):
        raise PayloadError(f"a list of {count} actions in {len(payload)} bytes")
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
"""For each message its layout, and the function that returns the values or the whole payload."""

_DECODERS: dict[int, Callable[[bytes], m.Command]] = {
    CommandId.CONTROL_MODE: _decode_control,
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
"""The command bytes that mean something."""
