"""Every field of the teaching frames as data: type, unit, meaning, and evidence grade.

The codec (`codec`, `state`), `rote frame`, `rote capture packets`, the Wireshark dissector and the
tables of docs/protocol/frames.md are made from these tables.

A payload is a sequence of fields without gaps, so offsets are sums of sizes. A field's `count` is a
number, the name of an earlier field that states it, or `REST`: all remaining bytes. The documents
behind a claim are named by the first three digits of their file names: see `DOCUMENTS`.
"""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from dataclasses import field as dataclass_field
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
MIN_CODE, MAX_CODE = 1000, 99_999
"""The range of the first word of a refusal; no documented request begins with such a word."""
REST = "rest"
"""The count of a field that reaches to the payload's end."""


class MessageType(IntEnum):
    """The first byte of a frame."""

    COMMAND = 0x17
    HEARTBEAT = 0x80
    STATE = 0x81


class CommandId(IntEnum):
    """The command byte, at offset 12 of a frame."""

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
    """The robot, without a request."""
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

    def extract(self, number: int) -> int:
        """Return the value of these bits in a number."""
        return number >> self.low & ((1 << self.width) - 1)

    @property
    def mask(self) -> int:
        """The number in which only these bits are set."""
        return ((1 << self.width) - 1) << self.low


@dataclass(frozen=True, slots=True)
class FrameField:
    """One field of a frame."""

    name: str
    type: FieldType
    meaning: str
    grade: FieldGrade
    why: str = ""
    """The evidence for the grade; documents by the first digits of their file names."""
    count: int | str = 1
    unit: str = ""
    default: Any = 0
    values: Mapping[int, tuple[str, FieldGrade]] = dataclass_field(default_factory=dict)
    """What single values mean, each with its own grade."""
    bits: tuple[FieldBits, ...] = ()
    parts: tuple["FrameField", ...] = ()
    """What a group repeats."""

    @property
    def unit_size(self) -> int:
        """The size of one value, in bytes."""
        return sum(part.unit_size for part in self.parts) if self.parts else _SIZES[self.type]


@dataclass(frozen=True, slots=True)
class FrameLayout:
    """The payload of one kind of frame, field by field."""

    key: str
    """Its name at the command line."""
    command: CommandId
    direction: FrameDirection
    fields: tuple[FrameField, ...]
    sizes: tuple[int, int | None]
    """The shortest and the longest payload; None if only the datagram limits it."""
    summary: str
    type: MessageType = MessageType.COMMAND
    tag: bytes = b""
    """The beginning of the payload, if length and command do not identify the layout."""

    def fits(self, size: int) -> bool:
        """Whether a payload of this kind can have `size` bytes."""
        min_size, max_size = self.sizes
        return min_size <= size and (max_size is None or size <= max_size)


class FieldValue(NamedTuple):
    """A field with its value in one frame."""

    field: FrameField
    offset: int
    """In the frame."""
    raw: bytes
    value: Any

    @property
    def meaning(self) -> str:
        """What this value means; empty if `FrameField.values` does not list it."""
        entry = self.field.values.get(self.value) if isinstance(self.value, int) else None
        return entry[0] if entry else ""


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
        "at 0 and jump. The text states a rule, the examples contradict it",
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
            command.value: (command.name.lower().replace("_", " "), _C)
            for command in CommandId
            if command.value
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
_MODE_LABELS = {mode.value: (facts.label, _O) for mode, facts in MODES.items()}
_CODE_LABELS = {
    int(code): (str(m.explain(code)[0]), _S if code is m.Code.WRONG_STATE else _O)
    for code in m.Code
}


def _make_flags_field(grade: FieldGrade, why: str, default: int) -> FrameField:
    return FrameField(
        "mode_flags",
        FieldType.U32,
        "[mode flags](#mode-flags)",
        grade,
        why,
        default=default,
        bits=MODE_FLAGS,
    )


def _make_zero_field(count: int | str, grade: FieldGrade, why: str = "") -> FrameField:
    return FrameField("zero", FieldType.ZERO, "zero", grade, why, count)


def _make_keyframes_field(meaning: str, grade: FieldGrade, why: str) -> FrameField:
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


def _make_floats_field(name: str, meaning: str, why: str, count: int, unit: str) -> FrameField:
    return FrameField(name, FieldType.F32, meaning, FieldGrade.CONTRADICTED, why, count, unit)


def _make_state_fields(default_flags: int) -> tuple[FrameField, ...]:
    """Return the fields of a state of 12 joints, with their evidence in the documents."""
    contradicted = FieldGrade.CONTRADICTED
    last_joint = LEGACY_JOINTS - 1
    size_evidence = (
        "`000` and `004` give 12 floats the 32 bytes 19 to 50; `002` says 48 bytes and offsets "
        "for 32; 12 times 4 is 48"
    )
    accelerometer_evidence = (
        "24 bytes with the gyroscope in `000`, `002` and the table of `004`, whose dump has 8 "
        "for the accelerometer"
    )
    gyroscope_evidence = (
        'as above: 6 bytes in the dump of `004`, which calls its axes "roll, pitch, yaw"'
    )
    force_evidence = "16 bytes in `000`, `002` and the table of `004`, 12 in the dump of `004`"
    time_evidence = (
        "24 bytes in `000` and `004`, 8 in `002` and in the dump of `004`; only 8 makes the "
        "sum 148. The content is our choice"
    )
    positions, velocities = (
        f"{quantity} of joints 0 to {last_joint}" for quantity in ("positions", "velocities")
    )
    return (
        _make_flags_field(contradicted, "1 in `000` and `004`, ciphertext in `002`", default_flags),
        _make_floats_field("joints_rad", positions, size_evidence, LEGACY_JOINTS, "rad"),
        _make_floats_field("velocities_rad_s", velocities, "as above", LEGACY_JOINTS, "rad/s"),
        _make_floats_field(
            "accelerometer_m_s2", "accelerometer x, y, z", accelerometer_evidence, 3, "m/s²"
        ),
        _make_floats_field("gyroscope_rad_s", "gyroscope x, y, z", gyroscope_evidence, 3, "rad/s"),
        _make_floats_field("foot_force_n", "foot force, four values", force_evidence, 4, "N"),
        FrameField(
            "time_us",
            FieldType.U64,
            "the documents' metadata; ours: the robot's own clock",
            contradicted,
            time_evidence,
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
                "what is requested, see the values below; any other is answered with 3204",
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
                values=_MODE_LABELS,
            ),
            _make_zero_field(36, _O),
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
        "Parameter sync: which parameters is not known.",
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
            _make_zero_field(4, _O),
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
            _make_zero_field(40, _O),
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
                "increases within a stream; a pose whose number is not higher is dropped",
                _O,
                "a pose that arrives late would jerk the arms back",
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
            _make_zero_field(4, _O),
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
                "1; 0 means the same, any other value is answered with 3204",
                _C,
                "1 in `000` and `002`; the controller of `001` calls `send_command(0x0C)` without "
                "a value, so it sends zeros. rote sends 1",
                default=1,
                values={0: ("ready", _C), 1: ("ready", _C)},
            ),
            _make_zero_field(40, _I, "what remains of 44 bytes"),
        ),
        (SHORT, SHORT),
        "Ready signal: initialisation is over.",
    ),
    FrameLayout(
        "enter-teaching",
        CommandId.TEACHING,
        FrameDirection.REQUEST,
        _make_state_fields(1),
        (FULL_STATE, FULL_STATE),
        "Enter teaching: the arms become soft.",
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
        "Keep teaching: a client is still teaching.",
    ),
    FrameLayout(
        "exit-teaching",
        CommandId.EXIT_TEACHING,
        FrameDirection.REQUEST,
        (
            _make_zero_field(
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
            _make_zero_field(
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
            _make_zero_field(40, _C, "as above"),
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
            _make_zero_field(REST, _I, "220 is the stated length; 2 + 6 * 36 = 218 fits"),
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
            _make_keyframes_field(
                "[keyframes](#keyframes), none later than the duration; all zero = save the "
                "recording",
                _I,
                '"compressed" in `000`; the layout is that of play, and an estimate in `002`. That '
                'zeros mean "the recording" is our choice',
            ),
            _make_zero_field(
                12, _C, "8 in `000`, which leaves the sum 4 short of 220; none in `004`"
            ),
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
                "action number, 1 to 15, its position in the list; 0 = stop",
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
                "duration, up to 180,000, 0 = as saved",
                _C,
                f"{_CIPHERTEXT}; `001` speaks of a speed instead",
                unit="ms",
                values={0: ("as saved", _C)},
            ),
            FrameField(
                "interpolation",
                FieldType.U32,
                "interpolation between keyframes; any other value is answered with 3204",
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
            _make_keyframes_field(
                "[keyframes](#keyframes) to play instead; all zero = what is stored",
                _C,
                "`000` and `004` describe keyframes, `004` as an optional override; `002` sees "
                "plain floats",
            ),
            _make_zero_field(8, _I, "16 + 160 = 176, and `000`, `001`, `002` and `004` state 184"),
        ),
        (PLAY, PLAY),
        "Play action; number 0 stops.",
    ),
    FrameLayout(
        "status",
        CommandId.NONE,
        FrameDirection.REPLY,
        (
            FrameField("code", FieldType.U32, "0 = done, else why not", _O, values=_CODE_LABELS),
            FrameField(
                "note",
                FieldType.TEXT,
                "UTF-8, ended by a zero, so at most 39 bytes of text; mostly zeros. A client shows "
                "it to the user and does not interpret it",
                _O,
                "details that a code does not carry: which client is teaching, what was kept",
                40,
                default="",
            ),
        ),
        (SHORT, SHORT),
        "The reply to all other commands: done, or why not.",
    ),
    FrameLayout(
        "heartbeat",
        CommandId.NONE,
        FrameDirection.EITHER,
        (),
        (0, 0),
        "Heartbeat: the sender is still connected.",
        MessageType.HEARTBEAT,
    ),
    FrameLayout(
        "state",
        CommandId.NONE,
        FrameDirection.REPORT,
        _make_state_fields(0),
        (FULL_STATE, FULL_STATE),
        "State of the first 12 joints.",
        MessageType.STATE,
    ),
    FrameLayout(
        "state-all",
        CommandId.NONE,
        FrameDirection.REPORT,
        (
            _make_flags_field(_O, "", 0),
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
_REQUESTS: Mapping[int, FrameLayout] = {
    layout.command: layout
    for layout in reversed(LAYOUTS)
    if layout.direction is FrameDirection.REQUEST and layout.command
}
"""By command, its request in the documents: the first of several layouts."""


def is_documented_request(layout: FrameLayout) -> bool:
    """Whether this is the request that the documents describe for its command."""
    return _REQUESTS.get(layout.command) is layout


def get_command_numbers() -> dict[str, int]:
    """Return the number of each documented command, by two names: `list` and `list-actions`."""
    numbers: dict[str, int] = {}
    for number, layout in sorted(_REQUESTS.items()):
        numbers[layout.key] = number
        numbers[CommandId(number).name.lower().replace("_", "-")] = number
    return numbers


# ---- reading and writing -------------------------------------------------------------------------


def compile_fields(fields: tuple[FrameField, ...], count: int = 0) -> struct.Struct:
    """Return the struct of fields; a field whose number of values varies has `count` values.

    Zeros are padding. A name, a text and a group are one value each, in bytes; adjacent fields of
    opaque bytes are one value together. A field that reaches to the payload's end is left out.
    """
    codes = ">"
    sized = (field for field in fields if field.count != REST)
    for field_type, adjacent in groupby(sized, lambda field: field.type):
        code = _CODES.get(field_type, "s")
        repeats = 0  # bytes for the code "s", otherwise numbers
        for field in adjacent:
            values = field.count if isinstance(field.count, int) else count
            repeats += values * field.unit_size if code == "s" else values
        codes += f"{repeats}{code}" if repeats else ""
    return struct.Struct(codes)


def get_bit_masks(layout: FrameLayout, name: str) -> dict[str, int]:
    """Return the masks of the used bits of one field, by their names."""
    (field,) = (field for field in layout.fields if field.name == name)
    return {bits.name: bits.mask for bits in field.bits if bits.name != "unused"}


def find_layout(type_: int, command: int, payload: bytes, *, reply: bool) -> FrameLayout | None:
    """Return the layout of a frame of this type, command and payload; None if none fits.

    `reply` states whether the frame is a reply; otherwise it is a request.
    """
    if type_ != MessageType.COMMAND:
        fitting = [
            layout for layout in LAYOUTS if layout.type == type_ and layout.fits(len(payload))
        ]
        return fitting[0] if fitting else None
    if reply:
        if command == CommandId.LIST_ACTIONS and len(payload) != SHORT:
            return BY_KEY["list-reply"] if BY_KEY["list-reply"].fits(len(payload)) else None
        return STATUS if len(payload) == SHORT else None
    fitting = [
        layout
        for layout in LAYOUTS
        if layout.command == command
        and layout.direction is FrameDirection.REQUEST
        and layout.type is MessageType.COMMAND
        and layout.fits(len(payload))
        and payload.startswith(layout.tag)
    ]
    # The longest tag wins: a parameter sync that begins with a tag is that extension.
    return max(fitting, key=lambda layout: len(layout.tag), default=None)


def find_direction(type_: int, command: int, payload: bytes) -> FrameDirection | None:
    """Return which side sent a frame; None if the frame does not show it.

    A status reply is as long as most requests. Only its first word, a code that no request begins
    with, identifies it.
    """
    if type_ != MessageType.COMMAND:
        return FrameDirection.REPORT if type_ == MessageType.STATE else FrameDirection.EITHER
    if len(payload) != SHORT:
        is_list = command == CommandId.LIST_ACTIONS and len(payload) >= SAVE
        return FrameDirection.REPLY if is_list else FrameDirection.REQUEST
    if command in (CommandId.SAVE_ACTION, CommandId.PLAY_ACTION):
        return FrameDirection.REPLY  # requests to save and play are longer
    (first_word,) = struct.unpack_from(">I", payload)
    # The payload of these requests is opaque, so it may begin with such a word by chance.
    is_opaque = command in (CommandId.PARAMETER_SYNC, CommandId.STATUS_SUBSCRIBE)
    if MIN_CODE <= first_word <= MAX_CODE and not (is_opaque and any(payload[4:])):
        return FrameDirection.REPLY
    return FrameDirection.REQUEST if any(payload) else None


def read_fields(
    fields: tuple[FrameField, ...], payload: bytes, start: int = 0
) -> Iterator[FieldValue]:
    """Yield every field of a payload with its value, up to the first that is cut off at its end.

    `start` is the offset of the payload in its frame.
    """
    offset = 0
    counts: dict[str, int] = {}  # small numbers that were read: they may be later fields' counts
    for field in fields:
        count = _count_values(field, counts, len(payload) - offset)
        size = field.unit_size * count
        raw = payload[offset : offset + size]
        if len(raw) < size:
            return
        value = _read_value(field, raw, count)
        if field.type in (FieldType.U8, FieldType.U16) and isinstance(value, int):
            counts[field.name] = value
        yield FieldValue(field, start + offset, raw, value)
        offset += size


def read_first_values(value: FieldValue, count: int) -> FieldValue:
    """Return the first `count` values of a field that has several."""
    raw = value.raw[: count * value.field.unit_size]
    return value._replace(raw=raw, value=_read_value(value.field, raw, count))


def _count_values(field: FrameField, counts: Mapping[str, int], bytes_left: int) -> int:
    """Return how many values a field has; `counts` are the values of earlier fields, by name."""
    if isinstance(field.count, int):
        return field.count
    if field.count == REST:
        return max(0, bytes_left) // field.unit_size
    return counts.get(field.count, 0)


def _read_value(field: FrameField, raw: bytes, count: int) -> Any:
    if field.type in (FieldType.BYTES, FieldType.ZERO):
        return raw
    if field.type in (FieldType.NAME, FieldType.TEXT):
        return raw.split(b"\0", 1)[0].decode("utf-8", errors="replace")
    if field.type is FieldType.GROUP:
        size = field.unit_size
        rows = [raw[start : start + size] for start in range(0, len(raw), size)]
        if field.count == m.MAX_KEYFRAMES:  # a fixed number of slots for keyframes
            rows = _strip_unused(rows)
        return [
            {value.field.name: value.value for value in read_fields(field.parts, row)}
            for row in rows
        ]
    values = struct.unpack(f">{count}{_CODES[field.type]}", raw)
    return values[0] if field.count == 1 else list(values)


def _strip_unused(rows: list[bytes]) -> list[bytes]:
    """Return the slots up to the last that is not all zero."""
    last = max((index for index, row in enumerate(rows) if any(row)), default=-1)
    return rows[: last + 1]


def write_payload(layout: FrameLayout, given: Mapping[str, Any]) -> bytes:
    """Return a payload with the given values, and with the defaults of all other fields.

    A list with too few values is filled up with zeros.

    Raises `struct.error` or `ValueError` if a value does not fit its field.
    """
    payload = b"".join(
        _pack_field(field, given.get(field.name, field.default)) for field in layout.fields
    )
    min_size, max_size = layout.sizes
    if max_size is not None and len(payload) > max_size:
        raise ValueError(f"{layout.key} holds {max_size} bytes, not {len(payload)}")
    return payload.ljust(min_size, b"\0")


def _pack_field(field: FrameField, value: Any) -> bytes:
    """Return the bytes of a field, padded with zeros to its size if that is fixed."""
    packed = _pack_value(field, value)
    if not isinstance(field.count, int):
        return packed
    size = field.count * field.unit_size
    if len(packed) > size:
        raise ValueError(f"{field.name} holds {size} bytes, not {len(packed)}")
    return packed.ljust(size, b"\0")


def _pack_value(field: FrameField, value: Any) -> bytes:
    if field.type is FieldType.ZERO:
        return b""
    if field.type is FieldType.BYTES:
        return bytes(value)
    if field.type in (FieldType.NAME, FieldType.TEXT):
        return str(value).encode() + b"\0"
    if field.type is FieldType.GROUP:
        return b"".join(_pack_field(part, row[part.name]) for row in value for part in field.parts)
    if not isinstance(value, list | tuple):
        # A single number; a field whose count varies has none by default.
        value = [value] if isinstance(field.count, int) else []
    return struct.pack(f">{len(value)}{_CODES[field.type]}", *value)
