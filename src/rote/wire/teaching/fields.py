"""Every field of the teaching frames as data: place, type, unit, meaning, and evidence grade.

The codec (`teaching`, `teaching_state`), `rote frame`, `rote capture packets`, the Wireshark
dissector and the tables of docs/protocol/frames.md are made from these tables.

A payload is a row of fields that follow each other, so offsets are sums of sizes. A field's `count`
is a number, the name of an earlier field that tells it, or `REST`: whatever is left. The documents
behind a claim are named by the first three digits of their file names: see `DOCUMENTS`.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum, IntEnum
from itertools import groupby
from typing import Any, NamedTuple

from rote import messages as m
from rote.model.g1 import MODES

SHORT, FULL_STATE, PLAY, SAVE = 44, 148, 184, 220
"""The usual payload lengths."""
SUBSCRIBE_MAX = 112
NAME_BYTES = 32
LEGACY_JOINTS = 12
"""Joints in the documented state of 148 bytes."""
LEAST_CODE, MOST_CODE = 1000, 99_999
"""What the first word of a refusal may be; no documented request begins with such a word."""
REST = "rest"
"""The count of a field that reaches to the payload's end."""


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


class FieldGrade(Enum):
    """How well a field is supported as part of the documented protocol."""

    LOG = "seen in a log"
    STATED = "stated by a seed"
    INFERRED = "inferred"
    CONTRADICTED = "contradicted"
    CHOICE = "our choice"


class FrameDirection(Enum):
    """Which side sends a frame."""

    REQUEST = "request"
    """A client, to the robot."""
    REPLY = "reply"
    """The robot, as the answer to one request."""
    REPORT = "report"
    """The robot, unasked."""
    EITHER = "either"


class SeedDocument(NamedTuple):
    """One of the seed documents."""

    key: str
    file: str
    title: str


DOCUMENTS = (
    SeedDocument(
        "000",
        "000_2524108eb5bb15bf.txt",
        "REAL PROTOCOL ANALYSIS: Teaching Mode & Action Execution",
    ),
    SeedDocument(
        "001",
        "001_2dd6403e63ff9e20.txt",
        "PCAPdroid_30_Jan_18_26_35.pcap - Complete Protocol Analysis",
    ),
    SeedDocument("002", "002_2b6f54ed56e186ed.txt", "Real Packet Examples from PCAP Analysis"),
    SeedDocument("003", "003_52733fc6a98395fb.txt", "Unitree A1 SDK"),
    SeedDocument(
        "004", "004_6625d5e69c08f649.txt", "Real PCAP Hex Examples - Teaching Protocol Commands"
    ),
)


class FieldType(Enum):
    """How the bytes of a field are read; all numbers are big-endian."""

    U8 = "u8"
    U16 = "u16"
    U32 = "u32"
    U64 = "u64"
    I16 = "i16"
    F32 = "f32"
    NAME = "name"
    """UTF-8 in 32 bytes, closed by a zero."""
    TEXT = "text"
    """UTF-8 in as many bytes as counted, ended by a zero."""
    BYTES = "bytes"
    ZERO = "zero"
    """Sent as zero, not read on arrival."""
    GROUP = "group"
    """Several fields that are repeated together."""


_CODES = {
    FieldType.U8: "B",
    FieldType.U16: "H",
    FieldType.U32: "I",
    FieldType.U64: "Q",
    FieldType.I16: "h",
    FieldType.F32: "f",
    FieldType.ZERO: "x",
}
_SIZES = {kind: struct.calcsize(code) for kind, code in _CODES.items()} | {
    FieldType.NAME: NAME_BYTES,
    FieldType.TEXT: 1,
    FieldType.BYTES: 1,
}


@dataclass(frozen=True, slots=True)
class FieldBits:
    """Some bits of a number."""

    name: str
    low: int
    width: int
    meaning: str
    grade: FieldGrade
    why: str = ""

    def of(self, number: int) -> int:
        """Return these bits of a number."""
        return number >> self.low & ((1 << self.width) - 1)

    @property
    def mask(self) -> int:
        """These bits set, all others clear."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True, slots=True)
class FrameField:
    """One field of a frame."""

    name: str
    type: FieldType
    meaning: str
    grade: FieldGrade
    why: str = ""
    """What supports the grade: documents by the first digits of their file names."""
    count: int | str = 1
    unit: str = ""
    default: Any = 0
    values: Mapping[int, tuple[str, FieldGrade]] = field(default_factory=dict)
    """What single values mean, each with its own grade."""
    bits: tuple[FieldBits, ...] = ()
    parts: tuple["FrameField", ...] = ()
    """What a group repeats."""

    @property
    def unit_size(self) -> int:
        """Bytes of one value."""
        return sum(p.unit_size for p in self.parts) if self.parts else _SIZES[self.type]


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """What one kind of frame carries."""

    key: str
    """Its name at the command line."""
    command: CommandId
    direction: FrameDirection
    fields: tuple[FrameField, ...]
    sizes: tuple[int, int | None]
    """The shortest and the longest payload; None where nothing but the datagram ends it."""
    summary: str
    type: MessageType = MessageType.COMMAND
    tag: bytes = b""
    """What the payload begins with, where length and command do not tell."""

    def fits(self, size: int) -> bool:
        """Whether a payload of that many bytes can be one of these."""
        least, most = self.sizes
        return least <= size and (most is None or size <= most)


class FieldValue(NamedTuple):
    """A field as it stands in one frame."""

    field: FrameField
    offset: int
    """In the frame."""
    raw: bytes
    value: Any

    @property
    def message(self) -> str:
        """What this value means, where the table has it."""
        known = self.field.values.get(self.value) if isinstance(self.value, int) else None
        return known[0] if known else ""


_S, _I, _C, _O = FieldGrade.STATED, FieldGrade.INFERRED, FieldGrade.CONTRADICTED, FieldGrade.CHOICE

# ---- the header and the checksum -----------------------------------------------------------------

HEADER: tuple[FrameField, ...] = (
    FrameField(
        "message_type",
        FieldType.U8,
        "0x17 command or reply, 0x80 heartbeat, 0x81 state",
        _S,
        "`000`, part 4",
        values={
            0x17: ("command or reply", _S),
            0x80: ("heartbeat", _S),
            0x81: ("state", _S),
        },
    ),
    FrameField(
        "magic",
        FieldType.BYTES,
        "`fe fd 00`",
        _C,
        "`000`, `001`, `002` and the dumps of `004` say `fe fd 00`; both checksum scripts of `004` "
        "begin `17 fe dd 00`. The dumps are the majority",
        3,
        default=b"\xfe\xfd\0",
    ),
    FrameField(
        "flags", FieldType.BYTES, "`01 00`", _S, "`000`, `001`, `002`, `004`", 2, default=b"\1\0"
    ),
    FrameField(
        "sequence",
        FieldType.U16,
        "0 to 65535, see [session rules](#sequence-numbers)",
        _C,
        "`000` and `001`: starts at 0, +1 per frame; the examples of `002` begin at 0xC93E, or "
        "at 0 and jump. The text is a rule, the examples are none",
    ),
    FrameField(
        "reserved",
        FieldType.BYTES,
        "`00 00`",
        _C,
        "in the tables of `000`, `001` and `004` and in the packet builder of `000`; absent from "
        "most dumps of `002` and from the pattern at the end of `004`",
        2,
        default=b"\0\0",
    ),
    FrameField(
        "type_indicator",
        FieldType.BYTES,
        "`00 01`",
        _C,
        "at 10 in `000` and `004`; at 8 in the dumps of `002`; `001` calls it reserved",
        2,
        default=b"\0\1",
    ),
    FrameField(
        "command",
        FieldType.U8,
        "see [commands](#commands); 0 in heartbeat and state frames",
        _C,
        "at 12 in `000`, and so the packet builder does; at 13 in `001` (list reply) and in the "
        "tables of `002`; at 10 in the dumps of `002`",
        values={
            one.value: (one.name.lower().replace("_", " "), _C) for one in CommandId if one.value
        },
    ),
    FrameField(
        "length",
        FieldType.U16,
        "payload length *n*, 0 to 65,488",
        _C,
        "at 13 in `000` and `004`, at 14 in `001` and the tables of `002`, at 11 in the dumps of "
        "`002`; it follows the command id",
        unit="bytes",
    ),
)
CRC = FrameField(
    "crc",
    FieldType.U32,
    "CRC-32: `zlib.crc32` (IEEE 802.3) of all bytes before it",
    _C,
    "the packet builder of `000` appends it; `002` places it inside the payload, and the sizes of "
    "`001` and `002` leave no room for it",
)

# ---- what several payloads share -----------------------------------------------------------------

KEYFRAME: tuple[FrameField, ...] = (
    FrameField(
        "joint",
        FieldType.U16,
        "0 to 28 in the order of the G1's motors",
        _C,
        "`000`, `001` and the save of `002` say so; the play of `002` reads plain floats",
    ),
    FrameField(
        "time_ms", FieldType.U16, "time since the start, 0 to 65,535", _C, "as above", unit="ms"
    ),
    FrameField("value_rad", FieldType.F32, "position, finite", _C, "as above", unit="rad"),
)
ENTRY: tuple[FrameField, ...] = (
    FrameField(
        "name",
        FieldType.NAME,
        "[name](#names) of action *i* + 1",
        _C,
        "`000`, `001`, `002` and `004` say 32 + 4 bytes; the dump of `002` has entries of 34, "
        "its summary 40, the dump of `000` names of 28 bytes",
    ),
    FrameField(
        "duration_ms",
        FieldType.U32,
        "duration of action *i* + 1",
        _I,
        '"metadata" in `000` and `001`, "timestamp/duration" in `002`; a list is most useful with '
        "the duration",
        unit="ms",
    ),
)

MODE_FLAGS: tuple[FieldBits, ...] = (
    FieldBits(
        "damping",
        0,
        1,
        "1 = the arms are soft",
        _C,
        "`000` and `004` say bit 0, `002` reads ciphertext (0x264A1220). That only the arms go "
        "soft is our choice: a G1 soft all over would fall",
    ),
    FieldBits("recording", 1, 1, "1 = a recording is running", _O),
    FieldBits("phase", 2, 2, "of a playback: 0 none, 1 approach, 2 playing, 3 return", _O),
    FieldBits("stopped_early", 4, 1, "1 = the last playback did not run to its end", _O),
    FieldBits("mode_known", 5, 1, "1 = bits 16 to 31 are valid", _O),
    FieldBits("unused", 6, 10, "zero, not read", _O),
    FieldBits("mode", 16, 16, "[mode id](#mode-ids)", _O),
)
_MODE_WORDS = {mode.value: (facts.label, _O) for mode, facts in MODES.items()}
_CODE_WORDS = {
    int(code): (str(m.explain(code)[0]), _S if code is m.Code.WRONG_STATE else _O)
    for code in m.Code
}


def _flags_field(grade: FieldGrade, why: str, default: int) -> FrameField:
    return FrameField(
        "mode_flags",
        FieldType.U32,
        "[mode flags](#mode-flags)",
        grade,
        why,
        default=default,
        bits=MODE_FLAGS,
    )


def _zero_field(count: int | str, grade: FieldGrade, why: str = "") -> FrameField:
    return FrameField("zero", FieldType.ZERO, "zero", grade, why, count)


def _keyframes_field(meaning: str, grade: FieldGrade, why: str) -> FrameField:
    return FrameField(
        "keyframes",
        FieldType.GROUP,
        meaning,
        grade,
        why,
        m.MAX_KEYFRAMES,
        default=(),
        parts=KEYFRAME,
    )


def _state_fields(default: int) -> tuple[FrameField, ...]:
    sizes = (
        "`000` and `004` give 12 floats the 32 bytes 19 to 50; `002` says 48 bytes and offsets "
        "for 32; 12 times 4 is 48"
    )
    return (
        _flags_field(_C, "1 in `000` and `004`, ciphertext in `002`", default),
        FrameField(
            "joints_rad",
            FieldType.F32,
            f"positions of joints 0 to {LEGACY_JOINTS - 1}",
            _C,
            sizes,
            LEGACY_JOINTS,
            "rad",
        ),
        FrameField(
            "velocities_rad_s",
            FieldType.F32,
            f"velocities of joints 0 to {LEGACY_JOINTS - 1}",
            _C,
            "as above",
            LEGACY_JOINTS,
            "rad/s",
        ),
        FrameField(
            "accelerometer_m_s2",
            FieldType.F32,
            "accelerometer x, y, z",
            _C,
            "24 bytes with the gyroscope in `000`, `002` and the table of `004`, whose dump has 8 "
            "for the accelerometer",
            3,
            "m/s²",
        ),
        FrameField(
            "gyroscope_rad_s",
            FieldType.F32,
            "gyroscope x, y, z",
            _C,
            'as above: 6 bytes in the dump of `004`, which calls its axes "roll, pitch, yaw"',
            3,
            "rad/s",
        ),
        FrameField(
            "foot_force_n",
            FieldType.F32,
            "foot force, four values",
            _C,
            "16 bytes in `000`, `002` and the table of `004`, 12 in the dump of `004`",
            4,
            "N",
        ),
        FrameField(
            "time_us",
            FieldType.U64,
            "the documents' metadata; ours: the robot's own clock",
            _C,
            "24 bytes in `000` and `004`, 8 in `002` and in the dump of `004`; only 8 makes the "
            "sum 148. The content is our choice",
            unit="µs",
        ),
    )


_CIPHERTEXT = "ciphertext in `002`; `000` and `004` agree"

# ---- every kind of frame -------------------------------------------------------------------------

LAYOUTS: tuple[FrameLayout, ...] = (
    FrameLayout(
        "control-mode",
        CommandId.CONTROL_MODE,
        FrameDirection.REQUEST,
        (
            FrameField(
                "mode",
                FieldType.U32,
                "what is asked for, see the values below; any other is answered with 3204",
                _I,
                '`000`: "mode initialization flags", no value; ready and damping use 1 for yes',
                default=1,
                values={
                    0: ("take control, as `001` sends it: without a value", _I),
                    1: ("take control, begin a conversation", _I),
                    2: ("change the robot's motion mode to the target", _O),
                    3: ("release control, the client is leaving", _O),
                },
            ),
            FrameField(
                "target",
                FieldType.U32,
                "a [mode id](#mode-ids), read only with mode = 2",
                _O,
                values=_MODE_WORDS,
            ),
            _zero_field(36, _O),
        ),
        (SHORT, SHORT),
        "Control mode set: take control, release it, or change the robot's mode.",
    ),
    FrameLayout(
        "parameter-sync",
        CommandId.PARAMETER_SYNC,
        FrameDirection.REQUEST,
        (
            FrameField(
                "parameters",
                FieldType.BYTES,
                "opaque parameters, zero by default; may not begin with `HAND`, `STRM` or `POSE`",
                _S,
                '`000`: "parameter synchronization data"',
                SHORT,
                default=b"",
            ),
        ),
        (SHORT, SHORT),
        "Parameter sync: nobody knows which parameters.",
    ),
    FrameLayout(
        "hand",
        CommandId.PARAMETER_SYNC,
        FrameDirection.REQUEST,
        (
            FrameField("tag", FieldType.BYTES, '`48 41 4e 44`, "HAND"', _O, "", 4, default=b"HAND"),
            FrameField("duration_ms", FieldType.U32, "1 to 180,000", _O, unit="ms", default=5000),
            FrameField(
                "script",
                FieldType.NAME,
                "name of the script, by the rules for [names](#names): wave, bow, clap or drum",
                _O,
                default="wave",
            ),
            _zero_field(4, _O),
        ),
        (SHORT, SHORT),
        "Our extension: move the scripted hand of the simulated robot.",
        tag=b"HAND",
    ),
    FrameLayout(
        "stream",
        CommandId.PARAMETER_SYNC,
        FrameDirection.REQUEST,
        (
            FrameField("tag", FieldType.BYTES, '`53 54 52 4d`, "STRM"', _O, "", 4, default=b"STRM"),
            _zero_field(40, _O),
        ),
        (SHORT, SHORT),
        "Our extension: follow this client's poses from now on.",
        tag=b"STRM",
    ),
    FrameLayout(
        "pose",
        CommandId.PARAMETER_SYNC,
        FrameDirection.REQUEST,
        (
            FrameField("tag", FieldType.BYTES, '`50 4f 53 45`, "POSE"', _O, "", 4, default=b"POSE"),
            FrameField(
                "number",
                FieldType.U32,
                "rising within a stream; one that is not higher than the last is dropped",
                _O,
                "an overtaken pose would jerk the arms back",
                default=1,
            ),
            FrameField("weight", FieldType.U16, "0 to 1", _O, unit="1/65,535"),
            FrameField(
                "positions",
                FieldType.I16,
                "positions of waist yaw, the seven joints of the left arm and the seven of the "
                "right, in the order of the G1's motors (12, 15 to 21, 22 to 28)",
                _O,
                "±3.2767 rad holds every one of their ranges",
                15,
                "0.0001 rad",
            ),
            _zero_field(4, _O),
        ),
        (SHORT, SHORT),
        "Our extension: one pose of a stream, never answered.",
        tag=b"POSE",
    ),
    FrameLayout(
        "pose-n",
        CommandId.PARAMETER_SYNC,
        FrameDirection.REQUEST,
        (
            FrameField("tag", FieldType.BYTES, '`50 4f 53 45`, "POSE"', _O, "", 4, default=b"POSE"),
            FrameField("number", FieldType.U32, "as above", _O, default=1),
            FrameField("weight", FieldType.U16, "0 to 1", _O, unit="1/65,535"),
            FrameField("joints", FieldType.U8, "joint count *n*", _O),
            FrameField(
                "positions",
                FieldType.I16,
                "positions in the order of the build's taught joints",
                _O,
                "",
                "joints",
                "0.0001 rad",
            ),
        ),
        (13, 521),
        "Our extension: one pose of a stream, for a robot with other than 15 taught joints.",
        tag=b"POSE",
    ),
    FrameLayout(
        "subscribe",
        CommandId.STATUS_SUBSCRIBE,
        FrameDirection.REQUEST,
        (
            FrameField(
                "filter",
                FieldType.U32,
                "filter flags",
                _S,
                '`000` and `002`: "status filter flags"',
                bits=(
                    FieldBits(
                        "all_joints", 0, 1, "1 = report all joints, 0 = report the first 12", _O
                    ),
                    FieldBits("other", 1, 31, "passed on as sent, no meaning", _O),
                ),
            ),
            FrameField(
                "opaque",
                FieldType.BYTES,
                "opaque, zero by default",
                _C,
                "44 to 112 bytes in all in `000`, `001` and the text of `002`; an example of `002` "
                "has 0x7D = 125 as length, the size it gives the whole packet",
                REST,
                default=b"",
            ),
        ),
        (SHORT, SUBSCRIBE_MAX),
        "Status subscribe: ask for state frames.",
    ),
    FrameLayout(
        "ready",
        CommandId.READY_SIGNAL,
        FrameDirection.REQUEST,
        (
            FrameField(
                "ready",
                FieldType.U32,
                "1; 0 is taken for it, anything else is answered with 3204",
                _C,
                "1 in `000` and `002`; the controller of `001` calls `send_command(0x0C)` without "
                "a value, so it sends zeros. rote sends 1",
                default=1,
                values={0: ("taken for ready", _C), 1: ("ready", _C)},
            ),
            _zero_field(40, _I, "what remains of 44 bytes"),
        ),
        (SHORT, SHORT),
        "Ready signal: initialisation is over.",
    ),
    FrameLayout(
        "enter-teaching",
        CommandId.TEACHING,
        FrameDirection.REQUEST,
        _state_fields(1),
        (FULL_STATE, FULL_STATE),
        "Enter teaching: the arms get soft.",
    ),
    FrameLayout(
        "keep-teaching",
        CommandId.TEACHING,
        FrameDirection.REQUEST,
        (
            FrameField(
                "compensation",
                FieldType.F32,
                "compensation values, finite; rote sends zeros",
                _C,
                "all 44 bytes in `000` and `004`, control flags in the first 4 in `002`. Only 11 "
                "floats need no invented flag",
                11,
                "not known",
            ),
        ),
        (SHORT, SHORT),
        "Keep teaching: somebody is still teaching.",
    ),
    FrameLayout(
        "exit-teaching",
        CommandId.EXIT_TEACHING,
        FrameDirection.REQUEST,
        (
            _zero_field(
                SHORT,
                _C,
                "`000` and `004` say all zeros; `002` prints the very bytes of its keep-alive here",
            ),
        ),
        (SHORT, SHORT),
        "Exit teaching: the arms hold again.",
    ),
    FrameLayout(
        "record",
        CommandId.RECORD,
        FrameDirection.REQUEST,
        (
            FrameField(
                "on",
                FieldType.U32,
                "1 = start, 0 = stop; anything else is answered with 3204",
                _C,
                "`000`, `001` and `004` say 1 and 0; `002` prints `89 3f 0e 30` and `d9 15 4b 24`, "
                "which are ciphertext",
                default=1,
                values={1: ("start", _C), 0: ("stop", _C)},
            ),
            _zero_field(
                40,
                _C,
                "zeros in `000` (40 bytes) and `004` (36 are printed); `002` prints "
                "`45 3b e8 76 ...` and calls it padding",
            ),
        ),
        (SHORT, SHORT),
        "Record: start or stop a recording.",
    ),
    FrameLayout(
        "list",
        CommandId.LIST_ACTIONS,
        FrameDirection.REQUEST,
        (
            FrameField(
                "filter",
                FieldType.U32,
                "0 = all; no other value has a meaning",
                _C,
                "zeros in `000` and `004`, other bytes in `002`",
                values={0: ("all actions", _C)},
            ),
            _zero_field(40, _C, "as above"),
        ),
        (SHORT, SHORT),
        "List actions.",
    ),
    FrameLayout(
        "list-reply",
        CommandId.LIST_ACTIONS,
        FrameDirection.REPLY,
        (
            FrameField(
                "count",
                FieldType.U16,
                "*c*, 0 to 15",
                _C,
                '"up to 15" in `000` and `001`, but their 220 bytes hold 6; the limit is the '
                "app's own message",
            ),
            FrameField(
                "actions",
                FieldType.GROUP,
                "the actions, in the order of their numbers",
                _C,
                "see its parts",
                "count",
                default=(),
                parts=ENTRY,
            ),
            _zero_field(REST, _I, "220 is the stated length; 2 + 6 * 36 = 218 fits"),
        ),
        (SAVE, None),
        "The reply to list actions: names and durations.",
    ),
    FrameLayout(
        "save",
        CommandId.SAVE_ACTION,
        FrameDirection.REQUEST,
        (
            FrameField(
                "name",
                FieldType.NAME,
                "[name](#names)",
                _C,
                "32 bytes in `000`, `001`, `002` and `004`; the dump of `002` has 39",
                default="",
            ),
            FrameField(
                "created_s",
                FieldType.U32,
                "Unix time of saving",
                _C,
                "`63 d8 6a 80` is 1674816000 in `000` and 1674988800 in `004`; it is 1675127424. "
                "The dump of `002` would be of 2014. That it is Unix time all three say",
                unit="s",
            ),
            FrameField(
                "duration_ms",
                FieldType.U32,
                "duration, 1 to 180,000: how long keyframes last; a recording keeps its own length",
                _S,
                "`000`, `002`, `004`; the limits are our choice",
                unit="ms",
                default=1000,
            ),
            FrameField(
                "frames",
                FieldType.U32,
                "frame count: how many keyframes below are used (1 to 20); without any it is the "
                "sender's description of the recording, and cuts nothing",
                _C,
                '"up to 20" in `000` and `001`; 50 in the examples of `000` and `004`, which have '
                "room for 20",
            ),
            FrameField(
                "save_flags",
                FieldType.U32,
                "flags",
                _S,
                "`000`, `004`",
                default=1,
                bits=(
                    FieldBits(
                        "save", 0, 1, "1 = save; 0 is answered with 3204", _S, "`000`, `004`"
                    ),
                    FieldBits("loop", 1, 1, "loop", _S, "`000`, `002`, `004`"),
                    FieldBits(
                        "speed_modifier",
                        2,
                        1,
                        "carried, without a defined effect",
                        _S,
                        "`000`, `004`",
                    ),
                    FieldBits(
                        "replace",
                        3,
                        1,
                        "1 = replace an action of that name; 0 refuses a name that exists (7405)",
                        _O,
                    ),
                    FieldBits("unused", 4, 28, "zero", _O),
                ),
            ),
            _keyframes_field(
                "[keyframes](#keyframes), none later than the duration; all zero = save the "
                "recording",
                _I,
                '"compressed" in `000`; the layout is that of play, and an estimate in `002`. That '
                'zeros mean "the recording" is our choice',
            ),
            _zero_field(12, _C, "8 in `000`, which leaves the sum 4 short of 220; none in `004`"),
        ),
        (SAVE, SAVE),
        "Save action: keep the recording, or the keyframes given, under a name.",
    ),
    FrameLayout(
        "play",
        CommandId.PLAY_ACTION,
        FrameDirection.REQUEST,
        (
            FrameField(
                "action",
                FieldType.U32,
                "action number, 1 to 15, its place in the list; 0 = stop",
                _C,
                "1 to 15 in `000` and `004`; `002` reads ciphertext (0x5B72D87E)",
                default=1,
                values={0: ("stop what is playing, and end teaching", _O)},
            ),
            FrameField(
                "frames",
                FieldType.U32,
                "frames to play from the start, 0 = all, at most what is stored",
                _C,
                _CIPHERTEXT,
                unit="frames",
                values={0: ("all", _C)},
            ),
            FrameField(
                "duration_ms",
                FieldType.U32,
                "how long it is to take, up to 180,000, 0 = as saved",
                _C,
                f"{_CIPHERTEXT}; `001` speaks of a speed instead",
                unit="ms",
                values={0: ("as saved", _C)},
            ),
            FrameField(
                "interpolation",
                FieldType.U32,
                "how to get from keyframe to keyframe; any other value is answered with 3204",
                _C,
                _CIPHERTEXT,
                values={0: ("linear", _C), 1: ("cubic", _C), 2: ("smooth step", _C)},
                bits=(
                    FieldBits("how", 0, 8, "0 linear, 1 cubic, 2 smooth step", _C, _CIPHERTEXT),
                    FieldBits(
                        "loop", 8, 1, "1 = play in a loop, also if saved with its loop bit", _O
                    ),
                    FieldBits("unused", 9, 23, "zero", _O),
                ),
            ),
            _keyframes_field(
                "[keyframes](#keyframes) to play instead; all zero = what is stored",
                _C,
                "`000` and `004` describe keyframes, `004` as an optional override; `002` sees "
                "plain floats",
            ),
            _zero_field(8, _I, "16 + 160 = 176, and `000`, `001`, `002` and `004` state 184"),
        ),
        (PLAY, PLAY),
        "Play action; number 0 stops.",
    ),
    FrameLayout(
        "status",
        CommandId.NONE,
        FrameDirection.REPLY,
        (
            FrameField("code", FieldType.U32, "0 = done, else why not", _O, values=_CODE_WORDS),
            FrameField(
                "note",
                FieldType.TEXT,
                "UTF-8, ended by a zero, so at most 39 bytes of text; mostly zeros. A client shows "
                "it to a person and decides nothing by it",
                _O,
                "what a code cannot say: who is teaching, what was kept",
                40,
                default="",
            ),
        ),
        (SHORT, SHORT),
        "The reply to everything else: done, or why not.",
    ),
    FrameLayout(
        "heartbeat",
        CommandId.NONE,
        FrameDirection.EITHER,
        (),
        (0, 0),
        "Heartbeat: still there.",
        MessageType.HEARTBEAT,
    ),
    FrameLayout(
        "state",
        CommandId.NONE,
        FrameDirection.REPORT,
        _state_fields(0),
        (FULL_STATE, FULL_STATE),
        "State of the first 12 joints.",
        MessageType.STATE,
    ),
    FrameLayout(
        "state-all",
        CommandId.NONE,
        FrameDirection.REPORT,
        (
            _flags_field(_O, "", 0),
            FrameField("joints", FieldType.U16, "joint count *n*, 0 to 1000", _O),
            FrameField("zero", FieldType.U16, "zero; anything else makes the frame invalid", _O),
            FrameField("joints_rad", FieldType.F32, "positions", _O, "", "joints", "rad"),
            FrameField("velocities_rad_s", FieldType.F32, "velocities", _O, "", "joints", "rad/s"),
            FrameField(
                "accelerometer_m_s2", FieldType.F32, "accelerometer x, y, z", _O, "", 3, "m/s²"
            ),
            FrameField("gyroscope_rad_s", FieldType.F32, "gyroscope x, y, z", _O, "", 3, "rad/s"),
            FrameField("foot_force_n", FieldType.F32, "foot force", _O, "", 4, "N"),
            FrameField("time_us", FieldType.U64, "the robot's own clock", _O, unit="µs"),
        ),
        (56, None),
        "State of all joints.",
        MessageType.STATE,
    ),
)
BY_KEY: Mapping[str, FrameLayout] = {layout.key: layout for layout in LAYOUTS}
STATUS = BY_KEY["status"]


# ---- reading and writing -------------------------------------------------------------------------


def compile_fields(fields: tuple[FrameField, ...], count: int = 0) -> struct.Struct:
    """Return the struct of fields; one whose number of values varies has `count` of them.

    Zeros are padding. A name, a text and a group are one value each, in bytes; adjacent fields of
    opaque bytes are one value together. A field that reaches to the payload's end is left out.
    """
    codes = ">"
    for kind, run in groupby((one for one in fields if one.count != REST), lambda one: one.type):
        code = _CODES.get(kind, "s")
        total = 0
        for one in run:
            many = one.count if isinstance(one.count, int) else count
            total += many * one.unit_size if code == "s" else many
        codes += f"{total}{code}" if total else ""
    return struct.Struct(codes)


def bit_masks(layout: FrameLayout, name: str) -> dict[str, int]:
    """Return the masks of the used bits of one field, by their names."""
    (found,) = (one for one in layout.fields if one.name == name)
    return {bits.name: bits.mask for bits in found.bits if bits.name != "unused"}


def layout_of(kind: int, command: int, payload: bytes, *, reply: bool) -> FrameLayout | None:
    """Return what a frame of that type, command and payload carries; None where nothing fits."""
    if kind != MessageType.COMMAND:
        fitting = [one for one in LAYOUTS if one.type == kind and one.fits(len(payload))]
        return fitting[0] if fitting else None
    if reply:
        if command == CommandId.LIST_ACTIONS and len(payload) != SHORT:
            return BY_KEY["list-reply"] if BY_KEY["list-reply"].fits(len(payload)) else None
        return STATUS if len(payload) == SHORT else None
    fitting = [
        one
        for one in LAYOUTS
        if one.command == command
        and one.direction is FrameDirection.REQUEST
        and one.type is MessageType.COMMAND
        and one.fits(len(payload))
        and payload.startswith(one.tag)
    ]
    # The longest mark wins: a parameter sync that begins with one of ours is none.
    return max(fitting, key=lambda one: len(one.tag), default=None)


def direction_of(kind: int, command: int, payload: bytes) -> FrameDirection | None:
    """Return which side sent a frame, as far as the frame shows; None if both could have.

    A status reply is as long as most requests, so only another length or an odd first word tells.
    """
    if kind != MessageType.COMMAND:
        return FrameDirection.REPORT if kind == MessageType.STATE else FrameDirection.EITHER
    if len(payload) != SHORT:
        whole_list = command == CommandId.LIST_ACTIONS and len(payload) >= SAVE
        return FrameDirection.REPLY if whole_list else FrameDirection.REQUEST
    if command in (CommandId.SAVE_ACTION, CommandId.PLAY_ACTION):
        return FrameDirection.REPLY
    (word,) = struct.unpack_from(">I", payload)
    opaque = command in (CommandId.PARAMETER_SYNC, CommandId.STATUS_SUBSCRIBE)
    if LEAST_CODE <= word <= MOST_CODE and not (opaque and any(payload[4:])):
        return FrameDirection.REPLY
    return FrameDirection.REQUEST if any(payload) else None


def read(fields: tuple[FrameField, ...], payload: bytes, start: int = 0) -> Iterator[FieldValue]:
    """Yield every field of a payload; what is cut off at its end is left out."""
    at = 0
    counts: dict[str, int] = {}
    for one in fields:
        count = _count_units(one, counts, len(payload) - at)
        size = one.unit_size * count
        raw = payload[at : at + size]
        if len(raw) < size:
            return
        value = _read_value(one, raw, count)
        if one.type in (FieldType.U8, FieldType.U16) and isinstance(value, int):
            counts[one.name] = value
        yield FieldValue(one, start + at, raw, value)
        at += size


def _count_units(one: FrameField, counts: Mapping[str, int], left: int) -> int:
    if isinstance(one.count, int):
        return one.count
    return max(0, left) // one.unit_size if one.count == REST else counts.get(one.count, 0)


def _read_value(one: FrameField, raw: bytes, count: int) -> Any:
    if one.type in (FieldType.BYTES, FieldType.ZERO):
        return raw
    if one.type in (FieldType.NAME, FieldType.TEXT):
        return raw.split(b"\0", 1)[0].decode("utf-8", errors="replace")
    if one.type is FieldType.GROUP:
        rows = [raw[at : at + one.unit_size] for at in range(0, len(raw), one.unit_size)]
        used = rows if one.count != m.MAX_KEYFRAMES else _strip_unused(rows)
        return [{value.field.name: value.value for value in read(one.parts, row)} for row in used]
    values = struct.unpack(f">{count}{_CODES[one.type]}", raw)
    return values[0] if one.count == 1 else list(values)


def _strip_unused(rows: list[bytes]) -> list[bytes]:
    """Leave out the unused slots at the end."""
    last = max((at for at, row in enumerate(rows) if any(row)), default=-1)
    return rows[: last + 1]


def write(layout: FrameLayout, given: Mapping[str, Any]) -> bytes:
    """Return a payload from the values given, defaults for the others; zeros fill up lists.

    Raises `struct.error` or `ValueError` where a value does not fit its field.
    """
    payload = b"".join(_pack_field(one, given.get(one.name, one.default)) for one in layout.fields)
    least, most = layout.sizes
    if most is not None and len(payload) > most:
        raise ValueError(f"{layout.key} holds {most} bytes, not {len(payload)}")
    return payload.ljust(least, b"\0")


def _pack_field(one: FrameField, value: Any) -> bytes:
    piece = _pack_value(one, value)
    if not isinstance(one.count, int):
        return piece
    most = one.count * one.unit_size
    if len(piece) > most:
        raise ValueError(f"{one.name} holds {most} bytes, not {len(piece)}")
    return piece.ljust(most, b"\0")


def _pack_value(one: FrameField, value: Any) -> bytes:
    if one.type is FieldType.ZERO:
        return b""
    if one.type is FieldType.BYTES:
        return bytes(value)
    if one.type in (FieldType.NAME, FieldType.TEXT):
        return str(value).encode() + b"\0"
    if one.type is FieldType.GROUP:
        return b"".join(_pack_field(part, row[part.name]) for row in value for part in one.parts)
    if not isinstance(value, list | tuple):
        value = [value] if isinstance(one.count, int) else []
    return struct.pack(f">{len(value)}{_CODES[one.type]}", *value)
