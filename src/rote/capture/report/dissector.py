"""A dissector for Wireshark, generated in Lua from the tables of our own codecs.

It shows the documented teaching frames and the A1's frames, both only if their CRC is valid. With a
key log it also shows the requests, answers and states in a robot's data channel: SCTP inside DTLS,
which Wireshark does not look for. Nothing is recognised by port.
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
    MAX_CODE,
    MIN_CODE,
    STATUS,
    FieldType,
    FrameDirection,
    FrameField,
    FrameLayout,
)

# Struct code: type in Lua, and size in bytes.
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
"""Names in Wireshark of fields whose own name differs; the frame's own flags are not shown."""
_STEMS = {
    "joints_rad": "position",
    "velocities_rad_s": "velocity",
    "accelerometer_m_s2": "accelerometer",
    "gyroscope_rad_s": "gyroscope",
    "foot_force_n": "foot_force",
}
"""Names in Wireshark for one of several values; an index or axis is appended."""
_AXES = ("accelerometer_m_s2", "gyroscope_rad_s")
_WITH_STATE = ("enter-teaching", "state")
_IN_TEMPLATE = ("list-reply", "state-all", "pose-n", "heartbeat")
"""Frames that the Lua template reads itself, because a field states their length."""
_REST = -1
"""In place of the size of a field that reaches to the payload's end."""


def generate_dissector() -> str:
    """Return the dissector's source: the Lua template, with tables in place of its `@NAME@`."""
    template = files("rote.capture.report").joinpath("dissector.lua").read_text(encoding="utf-8")
    tables = {
        "TEACHING_TYPES": _format_lua_names(
            (kind.value, kind.name.lower().replace("_", " ")) for kind in teaching.MessageType
        ),
        "TEACHING_COMMANDS": _format_lua_names(
            (command.value, command.name.lower().replace("_", " "))
            for command in teaching.CommandId
        ),
        "TEACHING_CODES": _format_lua_names(
            (number, message) for number, (message, _) in STATUS.fields[0].values.items()
        ),
        "MIN_CODE": str(MIN_CODE),
        "MAX_CODE": str(MAX_CODE),
        "TEACHING_PAYLOADS": _format_lua_payloads(),
        "TEACHING_ENTRY": _format_lua_fields(
            _list_group_parts("list", BY_KEY["list-reply"].fields[1].parts)
        ),
        "TEACHING_KEYFRAME": _format_lua_fields(_list_group_parts("keyframe", KEYFRAME)),
        "A1_FRAMES": _format_lua_a1_frames(),
        "APIS": _format_lua_names(
            (f"{service} {number}", api.name.lower().replace("_", " "))
            for (service, number), api in rpc.APIS.items()
        ),
    }
    for name, table in tables.items():
        template = template.replace(f"@{name}@", table)
    return template


def _quote_lua(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _format_lua_names(pairs: Iterable[tuple[int | str, str]]) -> str:
    """Return a Lua table of keys and names."""
    rows = (
        f"[{key if isinstance(key, int) else _quote_lua(key)}] = {_quote_lua(name)}"
        for key, name in pairs
    )
    return "{" + ", ".join(rows) + "}"


def _format_lua_fields(fields: Iterable[tuple[str, str]]) -> str:
    """Return a Lua table of consecutive fields: label, offset, size and type of each.

    `fields` are pairs of label and struct code.
    """
    rows, offset = [], 0
    for label, code in fields:
        if code[-1] == "s":  # bytes, such as 20s; only names are text
            lua_type, size = "string" if label.endswith("name") else "bytes", int(code[:-1])
        else:
            lua_type, size = _TYPES[code]
        rows.append(f"{{{_quote_lua(label)}, {offset}, {size}, {_quote_lua(lua_type)}}}")
        offset += size
    return "{" + ",\n  ".join(rows) + "}"


def _list_group_parts(prefix: str, parts: Iterable[FrameField]) -> list[tuple[str, str]]:
    """Return label and struct code of each part of a group of fields."""
    codes = {
        FieldType.U16: "H",
        FieldType.U32: "I",
        FieldType.F32: "f",
        FieldType.NAME: f"{teaching.NAME_BYTES}s",
    }
    return [(f"{prefix}.{part.name}", codes[part.type]) for part in parts]


def _format_lua_payloads() -> str:
    """Return a Lua table of the layouts of all payloads that the template does not read itself."""
    return (
        "{"
        + ",\n  ".join(
            _format_lua_payload(layout) for layout in LAYOUTS if layout.key not in _IN_TEMPLATE
        )
        + "}"
    )


def _format_lua_payload(layout: FrameLayout) -> str:
    """Return the layout of one payload as a Lua table."""
    min_size, max_size = layout.sizes
    reply = "true" if layout.direction is FrameDirection.REPLY else "false"
    prefix = "rote_teaching.state" if layout.key in _WITH_STATE else "rote_teaching"
    return (
        f"{{key = {_quote_lua(layout.key)}, command = {int(layout.command)}, "
        f"type = {int(layout.type)}, reply = {reply}, "
        f"least = {min_size}, most = {max_size}, tag = {_quote_lua(layout.tag.decode())}, "
        f"prefix = {_quote_lua(prefix)}, keyframes = {_format_keyframes_offset(layout)}, "
        f"fields = {{{', '.join(_format_layout_fields(layout))}}}}}"
    )


def _format_keyframes_offset(layout: FrameLayout) -> str:
    """Return the byte offset of the group of keyframes as Lua source; `nil` if there is none.

    Only fields of a fixed size come before such a group.
    """
    offset = 0
    for field in layout.fields:
        if field.type is FieldType.GROUP:
            return str(offset)
        offset += field.unit_size * field.count if isinstance(field.count, int) else 0
    return "nil"


def _format_layout_fields(layout: FrameLayout) -> Iterable[str]:
    """Yield the fields of a layout as Lua tables: label, offset, size and type of each.

    A field with several values, such as one per joint, becomes one field per value.
    """
    offset = 0
    for field in layout.fields:
        count = field.count if isinstance(field.count, int) else 1
        label = _LABELS.get((layout.key, field.name), field.name)
        if field.type in (FieldType.BYTES, FieldType.TEXT):
            kind = "bytes" if field.type is FieldType.BYTES else "string"
            size = field.count if isinstance(field.count, int) else _REST
            yield f"{{{_quote_lua(label)}, {offset}, {size}, {_quote_lua(kind)}}}"
        elif field.type in _LUA_TYPES:
            for number in range(count):
                value_offset = offset + number * field.unit_size
                yield _format_lua_field(_label_value(field, label, number), value_offset, field)
        offset += field.unit_size * count


def _label_value(field: FrameField, label: str, number: int) -> str:
    """Return the label of a field's value `number`, with its axis or index if it has several."""
    if field.count == 1:
        return label
    suffix = "xyz"[number] if field.name in _AXES else number
    return f"{_STEMS.get(label, label)}_{suffix}"


def _format_lua_field(label: str, offset: int, field: FrameField) -> str:
    """Return one field as a Lua table: label, offset, size, type and the names of its values."""
    messages = {number: message for number, (message, _) in field.values.items()}
    names = f", {_format_lua_names(messages.items())}" if messages else ""
    kind = _quote_lua(_LUA_TYPES[field.type])
    return f"{{{_quote_lua(label)}, {offset}, {field.unit_size}, {kind}{names}}}"


def _format_lua_a1_frames() -> str:
    """Return a Lua table of the frames of an A1 or Go1, by their size."""
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
            f"[{size}] = {{kind = {_quote_lua(format_.kind.value)}, "
            f"dialects = {_quote_lua(dialects)}, "
            f"go1 = {go1}, fields = {_format_lua_fields(fields)}}}"
        )
    return "{" + ",\n  ".join(rows) + "}"
