"""The documented UDP teaching frames: header, CRC and every payload.

    offset  size  field
    0       1     message type: 17 command, 80 heartbeat, 81 state
    1       3     magic FE FD 00
    4       2     flags 01 00
    6       2     sequence
    8       2     reserved 00 00
    10      2     type indicator 00 01
    12      1     command
    13      2     payload length n
    15      n     payload
    15+n    4     CRC-32 (IEEE 802.3) of everything before it

All integers and floats are big-endian. `decode` and the payload decoders raise `DecodeError` and
nothing else, for any bytes at all. docs/protocol/frames.md grades the evidence for every field.

This is not what a factory robot speaks: 17 FE FD is also how every DTLS 1.2 record begins, and
the captures this protocol was read from are DTLS. The magic proves nothing; a matching CRC does.
"""

import math
import struct
import zlib
from collections.abc import Callable
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

from rote import messages as m
from rote.errors import BadRequestError, ChecksumError, DecodeError, PayloadError, TruncatedError
from rote.wire.teaching.state import FULL_STATE, decode_state, encode_state, finite

HEADER_SIZE = 15
OVERHEAD = HEADER_SIZE + 4
MAX_PAYLOAD = 65_507 - OVERHEAD
"""What fits into one UDP datagram over IPv4."""

SHORT, PLAY, SAVE = 44, 184, 220
"""The usual payload lengths."""
SUBSCRIBE_MAX = 112
NAME_BYTES = 32

_FIXED = bytes.fromhex("fefd00 0100")
_ZERO_AND_INDICATOR = bytes.fromhex("0000 0001")
_HEADER = struct.Struct(">B5sH4sBH")
_CRC = struct.Struct(">I")
_U32 = struct.Struct(">I")
_CONTROL = struct.Struct(">II")
_HAND = struct.Struct(">4sI32s")
_SAVE = struct.Struct(">32sIIII")
_PLAY = struct.Struct(">IIII")
_KEYFRAME = struct.Struct(">HHf")
_ENTRY = struct.Struct(">32sI")
_COMPENSATION = struct.Struct(">11f")
_KEYFRAME_BYTES = m.MAX_KEYFRAMES * _KEYFRAME.size
_POSE = struct.Struct(">4sIH15h")
_POSE_HEAD = struct.Struct(">4sIHB")
_HAND_TAG, _STREAM_TAG, _POSE_TAG = _TAGS = (b"HAND", b"STRM", b"POSE")
"""Tags at the start of a parameter sync that mark rote's own extensions."""
_WHOLE_WEIGHT = 0xFFFF
_PER_RAD = 10_000
_LOOP_BIT = 1 << 8
_TAKE_BY_ZEROS, _TAKE, _CHANGE, _RELEASE = range(4)
"""The modes of 0x09. The documents' own controller sends zeros to take control."""


class MessageType(IntEnum):
    """The first byte."""

    COMMAND = 0x17
    HEARTBEAT = 0x80
    STATE = 0x81


class CommandId(IntEnum):
    """The byte at offset 12."""

    NONE = 0x00
    CONTROL_MODE = 0x09
    PARAMETER_SYNC = 0x0A
    STATUS_SUBSCRIBE = 0x0B
    READY_SIGNAL = 0x0C
    TEACHING = 0x0D
    EXIT_TEACHING = 0x0E
    RECORD = 0x0F
    LIST_ACTIONS = 0x1A
    SAVE_ACTION = 0x2B
    PLAY_ACTION = 0x41


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
    command, build = _ENCODERS[type(message)]
    try:
        return command, build(message)
    except (struct.error, OverflowError) as error:
        raise BadRequestError(f"{message} cannot be written: {error}") from None


def decode_command(command: int, payload: bytes) -> m.Command:
    """Return the message of a command frame; raises `PayloadError` if its payload is not
    allowed.
    """
    read = _DECODERS.get(command)
    if read is None:
        raise DecodeError(f"there is no command 0x{command:02x}")
    return read(payload)


def _short(start: bytes = b"") -> bytes:
    return start.ljust(SHORT, b"\0")


def _sized(payload: bytes, size: int, what: str) -> bytes:
    if len(payload) != size:
        raise PayloadError(f"the payload of {what} is {size} bytes long, not {len(payload)}")
    return payload


def _first_word(payload: bytes, what: str) -> int:
    word: int = _U32.unpack_from(_sized(payload, SHORT, what))[0]
    return word


def _decode_control(payload: bytes) -> m.Command:
    mode, target = _CONTROL.unpack_from(_sized(payload, SHORT, "control mode set"))
    if mode in (_TAKE, _TAKE_BY_ZEROS):
        return m.TakeControl()
    if mode == _CHANGE:
        return m.ChangeMode(target)
    if mode == _RELEASE:
        return m.ReleaseControl()
    raise PayloadError(f"there is no control mode {mode}")


def _encode_hand(message: m.MoveByHand) -> bytes:
    return _short(_HAND.pack(_HAND_TAG, message.duration_ms, _pack_name(message.script)))


_SHORT_POSE = 15
"""A pose of so many joints is as long as other commands. One of n others has its number of joints
before them, and 11 + 2n bytes: that is odd, so the length alone tells the two apart."""


def _pose_payload(message: m.StreamPose) -> bytes:
    try:
        if not message.joints_rad:
            raise BadRequestError("a streamed pose has no joints")
        weight = round(message.weight * _WHOLE_WEIGHT)
        joints = [round(position * _PER_RAD) for position in message.joints_rad]
        if len(joints) == _SHORT_POSE:
            return _short(_POSE.pack(_POSE_TAG, message.number, weight, *joints))
        head = _POSE_HEAD.pack(_POSE_TAG, message.number, weight, len(joints))
        return head + struct.pack(f">{len(joints)}h", *joints)
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
        _, number, weight, *joints = _POSE.unpack_from(payload)
    else:
        count, odd = divmod(len(payload) - _POSE_HEAD.size, 2)
        if odd or count < 1 or payload[_POSE_HEAD.size - 1] != count:
            raise PayloadError(
                f"a pose of n joints is {SHORT} bytes long for 15 and 11 + 2n for others, "
                f"not {len(payload)}"
            )
        _, number, weight, _ = _POSE_HEAD.unpack_from(payload)
        joints = [*struct.unpack_from(f">{count}h", payload, _POSE_HEAD.size)]
    positions = tuple(joint / _PER_RAD for joint in joints)
    return m.StreamPose(number, weight / _WHOLE_WEIGHT, positions)


def _decode_parameters(payload: bytes) -> m.Command:
    if payload.startswith(_POSE_TAG):
        return _decode_pose(payload)
    _sized(payload, SHORT, "parameter sync")
    if not payload.startswith(_TAGS):
        return m.SyncParameters(payload.rstrip(b"\0"))
    if payload.startswith(_STREAM_TAG):
        return m.BeginStream()
    _, duration_ms, name = _HAND.unpack_from(payload)
    return m.MoveByHand(_unpack_name(name), duration_ms)


def _encode_parameters(message: m.SyncParameters) -> bytes:
    if len(message.data) > SHORT or message.data.startswith(_TAGS):
        tags = ", ".join(tag.decode() for tag in _TAGS)
        raise BadRequestError(f"parameters are up to {SHORT} bytes and begin with none of {tags}")
    return _short(message.data)


def _encode_subscribe(message: m.Subscribe) -> bytes:
    flags = (message.flags & ~1) | message.all_joints
    if len(message.opaque) > SUBSCRIBE_MAX - 4:
        raise BadRequestError(f"a subscription holds at most {SUBSCRIBE_MAX - 4} further bytes")
    return _short(_U32.pack(flags) + message.opaque)


def _decode_subscribe(payload: bytes) -> m.Command:
    if not SHORT <= len(payload) <= SUBSCRIBE_MAX:
        raise PayloadError(
            f"a subscription is {SHORT} to {SUBSCRIBE_MAX} bytes long, not {len(payload)}"
        )
    (flags,) = _U32.unpack_from(payload)
    opaque = payload[4:].rstrip(b"\0")
    return m.Subscribe(all_joints=bool(flags & 1), flags=flags & ~1, opaque=opaque)


def _decode_ready(payload: bytes) -> m.Command:
    # The documents say 1, and their own controller sends zeros.
    if _first_word(payload, "ready signal") > 1:
        raise PayloadError("the ready signal does not say ready")
    return m.SignalReady()


def _encode_enter(message: m.EnterTeaching) -> bytes:
    if message.state is None:
        return _U32.pack(1).ljust(FULL_STATE, b"\0")
    payload = encode_state(message.state, all_joints=False)
    return _U32.pack(_U32.unpack_from(payload)[0] | 1) + payload[4:]


def _decode_teaching(payload: bytes) -> m.Command:
    if len(payload) == SHORT:
        return m.KeepTeaching(finite(_COMPENSATION.unpack(payload), "the compensation"))
    _sized(payload, FULL_STATE, "enter teaching")
    state = decode_state(payload)
    if not state.arms_soft:
        raise PayloadError("enter teaching without the damping bit")
    return m.EnterTeaching(state)


def _encode_keep(message: m.KeepTeaching) -> bytes:
    if not math.isfinite(sum(message.compensation)):
        raise BadRequestError("a compensation that is not a number")
    return _COMPENSATION.pack(*message.compensation)


def _decode_exit(payload: bytes) -> m.Command:
    _sized(payload, SHORT, "exit teaching")
    return m.ExitTeaching()


def _decode_record(payload: bytes) -> m.Command:
    flag = _first_word(payload, "record toggle")
    if flag > 1:
        raise PayloadError(f"the record toggle is 0 or 1, not {flag}")
    return m.Record(bool(flag))


def _decode_list_request(payload: bytes) -> m.Command:
    return m.ListActions(_first_word(payload, "list actions"))


def _encode_save(message: m.SaveAction) -> bytes:
    flags = message.save | message.loop << 1 | message.speed_modifier << 2 | message.replace << 3
    frames = len(message.keyframes) or message.frames
    head = _SAVE.pack(
        _pack_name(message.name), message.created_s, message.duration_ms, frames, flags
    )
    return (head + _pack_keyframes(message.keyframes)).ljust(SAVE, b"\0")


def _decode_save(payload: bytes) -> m.Command:
    name, created_s, duration_ms, frames, flags = _SAVE.unpack_from(_sized(payload, SAVE, "save"))
    slots = payload[_SAVE.size : _SAVE.size + _KEYFRAME_BYTES]
    keyframes = _unpack_keyframes(slots, used=frames if any(slots) else 0)
    return m.SaveAction(
        name=_unpack_name(name),
        created_s=created_s,
        duration_ms=duration_ms,
        frames=frames,
        save=bool(flags & 1),
        loop=bool(flags & 2),
        speed_modifier=bool(flags & 4),
        replace=bool(flags & 8),
        keyframes=keyframes,
    )


def _encode_play(message: m.PlayAction) -> bytes:
    if message.action < 1:
        raise BadRequestError(f"actions are numbered from 1, so there is no {message.action}")
    keyframes = _pack_keyframes(message.keyframes)
    if keyframes and not any(keyframes[-_KEYFRAME.size :]):
        raise BadRequestError("an all-zero keyframe at the end reads as an unused slot")
    how = message.interpolation | (_LOOP_BIT if message.loop else 0)
    head = _PLAY.pack(message.action, message.frames, message.duration_ms, how)
    return (head + keyframes).ljust(PLAY, b"\0")


def _decode_play(payload: bytes) -> m.Command:
    action, frames, duration_ms, how = _PLAY.unpack_from(_sized(payload, PLAY, "play"))
    if action == 0:
        return m.StopMotion()
    try:
        interpolation = m.Interpolation(how & ~_LOOP_BIT)
    except ValueError:
        raise PayloadError(f"there is no interpolation {how & ~_LOOP_BIT}") from None
    slots = payload[_PLAY.size : _PLAY.size + _KEYFRAME_BYTES]
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
        raise PayloadError("keyframes behind the stated number of them")
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
            return _short(_U32.pack(reply.code) + _pack_note(reply.note))
        if not isinstance(reply, m.ActionList):
            raise BadRequestError(f"{reply} cannot be said in teaching frames")
        if len(reply.actions) > m.MAX_ACTIONS:
            raise BadRequestError(f"{len(reply.actions)} actions; at most {m.MAX_ACTIONS} fit")
        entries = (_ENTRY.pack(_pack_name(a.name), a.duration_ms) for a in reply.actions)
        return (struct.pack(">H", len(reply.actions)) + b"".join(entries)).ljust(SAVE, b"\0")
    except struct.error as error:
        raise BadRequestError(f"{reply} cannot be written: {error}") from None


def decode_reply(command: int, payload: bytes) -> m.Reply:
    """Return what a reply to `command` says."""
    if command != CommandId.LIST_ACTIONS or len(payload) == SHORT:
        code = _first_word(payload, "a status reply")
        return m.Status(code, _unpack_note(payload[_U32.size :]))
    if len(payload) < SAVE:
        raise PayloadError(f"an action list is at least {SAVE} bytes long, not {len(payload)}")
    count = int.from_bytes(payload[:2], "big")
    end = 2 + count * _ENTRY.size
    if count > m.MAX_ACTIONS or end > len(payload):
        raise PayloadError(f"a list of {count} actions in {len(payload)} bytes")
    entries = _ENTRY.iter_unpack(payload[2:end])
    return m.ActionList(tuple(m.ActionEntry(_unpack_name(name), ms) for name, ms in entries))


# ---- tables -------------------------------------------------------------------------------------

_ENCODERS: dict[type, tuple[CommandId, Callable[..., bytes]]] = {
    m.TakeControl: (CommandId.CONTROL_MODE, lambda _: _short(_CONTROL.pack(_TAKE, 0))),
    m.ReleaseControl: (CommandId.CONTROL_MODE, lambda _: _short(_CONTROL.pack(_RELEASE, 0))),
    m.ChangeMode: (CommandId.CONTROL_MODE, lambda c: _short(_CONTROL.pack(_CHANGE, c.mode))),
    m.SyncParameters: (CommandId.PARAMETER_SYNC, _encode_parameters),
    m.MoveByHand: (CommandId.PARAMETER_SYNC, _encode_hand),
    m.BeginStream: (CommandId.PARAMETER_SYNC, lambda _: _short(_STREAM_TAG)),
    m.StreamPose: (CommandId.PARAMETER_SYNC, _pose_payload),
    m.Subscribe: (CommandId.STATUS_SUBSCRIBE, _encode_subscribe),
    m.SignalReady: (CommandId.READY_SIGNAL, lambda _: _short(_U32.pack(1))),
    m.EnterTeaching: (CommandId.TEACHING, _encode_enter),
    m.KeepTeaching: (CommandId.TEACHING, _encode_keep),
    m.ExitTeaching: (CommandId.EXIT_TEACHING, lambda _: _short()),
    m.Record: (CommandId.RECORD, lambda c: _short(_U32.pack(c.on))),
    m.ListActions: (CommandId.LIST_ACTIONS, lambda c: _short(_U32.pack(c.filter))),
    m.SaveAction: (CommandId.SAVE_ACTION, _encode_save),
    m.PlayAction: (CommandId.PLAY_ACTION, _encode_play),
    m.StopMotion: (CommandId.PLAY_ACTION, lambda _: bytes(PLAY)),
}

_DECODERS: dict[int, Callable[[bytes], m.Command]] = {
    CommandId.CONTROL_MODE: _decode_control,
    CommandId.PARAMETER_SYNC: _decode_parameters,
    CommandId.STATUS_SUBSCRIBE: _decode_subscribe,
    CommandId.READY_SIGNAL: _decode_ready,
    CommandId.TEACHING: _decode_teaching,
    CommandId.EXIT_TEACHING: _decode_exit,
    CommandId.RECORD: _decode_record,
    CommandId.LIST_ACTIONS: _decode_list_request,
    CommandId.SAVE_ACTION: _decode_save,
    CommandId.PLAY_ACTION: _decode_play,
}

COMMANDS = frozenset(_DECODERS)
"""The command bytes that mean something."""
