"""A dissector for Wireshark, generated in Lua from the tables of our own codecs.

It shows the documented teaching frames and the A1's frames, both only if their CRC is valid. With a
key log it also shows the requests, answers and states in a robot's data channel: SCTP inside DTLS,
which Wireshark does not look for by itself. Nothing is recognised by port.
"""

from collections.abc import Iterable
from importlib.resources import files

from rote.wire.a1 import formats as a1_frames
from rote.wire.services import rpc
from rote.wire.teaching import codec as teaching
from rote.wire.teaching.fields import (
    BY_KEY,
    KEYFRAME,
    LAYOUTS,
    LEAST_CODE,
    MOST_CODE,
    STATUS,
    FieldType,
    FrameDirection,
    FrameField,
    FrameLayout,
)

# How a struct code is read in Lua, and its size.
_TYPES = {
    "B": ("uint8", 1),
    "b": ("int8", 1),
    "H": ("uint16", 2),
    "h": ("int16", 2),
    "I": ("uint32", 4),
    "i": ("int32", 4),
    "f": ("float", 4),
    "Q": ("uint64", 8),
}
_LUA_TYPES = {
    FieldType.U8: "uint8",
    FieldType.U16: "uint16",
    FieldType.U32: "uint32",
    FieldType.U64: "uint64",
    FieldType.I16: "int16",
    FieldType.F32: "float",
    FieldType.NAME: "string",
    FieldType.BYTES: "bytes",
}
_LABELS = {
    ("subscribe", "filter"): "flags",
    ("enter-teaching", "mode_flags"): "flags",
    ("state", "mode_flags"): "flags",
    ("state-all", "mode_flags"): "flags",
    ("save", "save_flags"): "flags",
}
"""Fields that are called otherwise in Wireshark, where the frame's own flags are not shown."""
_STEMS = {
    "joints_rad": "position",
    "velocities_rad_s": "velocity",
    "accelerometer_m_s2": "accelerometer",
    "gyroscope_rad_s": "gyroscope",
    "foot_force_n": "foot_force",
}
"""How one of several values is called."""
_AXES = ("accelerometer_m_s2", "gyroscope_rad_s")
_WITH_STATE = ("enter-teaching", "state")
_BY_HAND = ("list-reply", "state-all", "pose-n", "heartbeat")
"""Kinds of frames that the template reads itself: a field states their length."""
REST = -1
"""The size of a field that reaches to the payload's end."""


def lua() -> str:
    """Return the text of the dissector."""
    template = files("rote.capture.report").joinpath("dissector.lua").read_text(encoding="utf-8")
    tables = {
        "TEACHING_TYPES": _lua_names(
            (kind.value, kind.name.lower().replace("_", " ")) for kind in teaching.MessageType
        ),
        "TEACHING_COMMANDS": _lua_names(
            (command.value, command.name.lower().replace("_", " "))
            for command in teaching.CommandId
        ),
        "TEACHING_CODES": _lua_names(
            (number, message) for number, (message, _) in STATUS.fields[0].values.items()
        ),
        "LEAST_CODE": str(LEAST_CODE),
        "MOST_CODE": str(MOST_CODE),
        "TEACHING_PAYLOADS": _lua_payloads(),
        "TEACHING_ENTRY": _lua_fields(_group_parts("list", BY_KEY["list-reply"].fields[1].parts)),
        "TEACHING_KEYFRAME": _lua_fields(_group_parts("keyframe", KEYFRAME)),
        "A1_FRAMES": _lua_a1_frames(),
        "APIS": _lua_names(
            (f"{service} {number}", api.name.lower().replace("_", " "))
            for (service, number), api in rpc.APIS.items()
        ),
    }
    for name, table in tables.items():
        template = template.replace(f"@{name}@", table)
    return template


def _lua_text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _lua_names(pairs: Iterable[tuple[int | str, str]]) -> str:
    rows = (
        f"[{key if isinstance(key, int) else _lua_text(key)}] = {_lua_text(name)}"
        for key, name in pairs
    )
    return "{" + ", ".join(rows) + "}"


def _lua_fields(fields: Iterable[tuple[str, str]], start: int = 0) -> str:
    """Return consecutive fields: label, offset, size and type of each."""
    rows, at = [], start
    for label, code in fields:
        kind, size = ("string", int(code[:-1])) if code[-1] == "s" else _TYPES[code]
        kind = "bytes" if kind == "string" and not label.endswith("name") else kind
        rows.append(f"{{{_lua_text(label)}, {at}, {size}, {_lua_text(kind)}}}")
        at += size
    return "{" + ",\n  ".join(rows) + "}"


def _group_parts(prefix: str, parts: Iterable[FrameField]) -> list[tuple[str, str]]:
    """Return the parts of a group: label and struct code."""
    codes = {
        FieldType.U16: "H",
        FieldType.U32: "I",
        FieldType.F32: "f",
        FieldType.NAME: f"{teaching.NAME_BYTES}s",
    }
    return [(f"{prefix}.{part.name}", codes[part.type]) for part in parts]


def _lua_payloads() -> str:
    return "{" + ",\n  ".join(_lua_payload(one) for one in LAYOUTS if one.key not in _BY_HAND) + "}"


def _lua_payload(layout: FrameLayout) -> str:
    least, most = layout.sizes
    reply = "true" if layout.direction is FrameDirection.REPLY else "false"
    prefix = "rote_teaching.state" if layout.key in _WITH_STATE else "rote_teaching"
    return (
        f"{{key = {_lua_text(layout.key)}, command = {int(layout.command)}, "
        f"type = {int(layout.type)}, reply = {reply}, "
        f"least = {least}, most = {most}, tag = {_lua_text(layout.tag.decode())}, "
        f"prefix = {_lua_text(prefix)}, keyframes = {_keyframes_at(layout)}, "
        f"fields = {{{', '.join(_layout_fields(layout))}}}}}"
    )


def _keyframes_at(layout: FrameLayout) -> str:
    at = 0
    for one in layout.fields:
        if one.type is FieldType.GROUP:
            return str(at)
        at += one.unit_size * one.count if isinstance(one.count, int) else 0
    return "nil"


def _layout_fields(layout: FrameLayout) -> Iterable[str]:
    """Yield the fields of a fixed layout: label, offset, size and type of each."""
    at = 0
    for one in layout.fields:
        count = one.count if isinstance(one.count, int) else 1
        label = _LABELS.get((layout.key, one.name), one.name)
        if one.type in (FieldType.BYTES, FieldType.TEXT):
            kind = "bytes" if one.type is FieldType.BYTES else "string"
            size = one.count if isinstance(one.count, int) else REST
            yield f"{{{_lua_text(label)}, {at}, {size}, {_lua_text(kind)}}}"
        elif one.type in _LUA_TYPES:
            for number in range(count):
                place = at + number * one.unit_size
                yield _lua_field(_numbered_label(one, label, number), place, one)
        at += one.unit_size * count


def _numbered_label(one: FrameField, label: str, number: int) -> str:
    if one.count == 1:
        return label
    return f"{_STEMS.get(label, label)}_{'xyz'[number] if one.name in _AXES else number}"


def _lua_field(label: str, at: int, one: FrameField) -> str:
    message = {number: message for number, (message, _) in one.values.items()}
    known = f", {_lua_names(message.items())}" if message else ""
    return (
        f"{{{_lua_text(label)}, {at}, {one.unit_size}, {_lua_text(_LUA_TYPES[one.type])}{known}}}"
    )


def _lua_a1_frames() -> str:
    rows = []
    for size, format_ in sorted(a1_frames.BY_SIZE.items()):
        fields = []
        for part in format_.layout.parts.values():
            if part.codes[-1] == "s":
                fields.append((part.name, part.codes))
            else:
                fields += zip(part.labels, part.codes, strict=True)
        go1 = "true" if format_.is_go1 else "false"
        dialects = ", ".join(dialect.value for dialect in format_.dialects)
        rows.append(
            f"[{size}] = {{kind = {_lua_text(format_.kind.value)}, "
            f"dialects = {_lua_text(dialects)}, "
            f"go1 = {go1}, fields = {_lua_fields(fields)}}}"
        )
    return "{" + ",\n  ".join(rows) + "}"
