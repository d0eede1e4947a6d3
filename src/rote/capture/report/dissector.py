"""A dissector for Wireshark, generated in Lua from the tables of our own codecs.

It shows the documented teaching frames and the A1's frames, both only if their CRC is valid. With a
key log it also shows the requests, answers and states in a robot's data channel: SCTP inside DTLS,
which Wireshark does not look for by itself. Nothing is recognised by port.
"""

from collections.abc import Iterable
from importlib.resources import files

from rote.wire import rpc, teaching
from rote.wire.a1 import formats as a1_frames
from rote.wire.teaching_state import FULL_STATE, LEGACY_JOINTS

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
_NAME = f"{teaching.NAME_BYTES}s"

# What a payload begins with, by command, length and direction: label and struct code, in a row.
_PAYLOADS: tuple[tuple[int, int, tuple[tuple[str, str], ...]], ...] = (
    (teaching.CommandId.CONTROL_MODE, teaching.SHORT, (("mode", "I"), ("target", "I"))),
    (teaching.CommandId.STATUS_SUBSCRIBE, teaching.SHORT, (("flags", "I"),)),
    (teaching.CommandId.READY_SIGNAL, teaching.SHORT, (("ready", "I"),)),
    (teaching.CommandId.TEACHING, FULL_STATE, (("flags", "I"),)),
    (teaching.CommandId.RECORD, teaching.SHORT, (("on", "I"),)),
    (teaching.CommandId.LIST_ACTIONS, teaching.SHORT, (("filter", "I"),)),
    (
        teaching.CommandId.SAVE_ACTION,
        teaching.SAVE,
        (
            ("name", _NAME),
            ("created_s", "I"),
            ("duration_ms", "I"),
            ("frames", "I"),
            ("flags", "I"),
        ),
    ),
    (
        teaching.CommandId.PLAY_ACTION,
        teaching.PLAY,
        (("action", "I"), ("frames", "I"), ("duration_ms", "I"), ("interpolation", "I")),
    ),
)
_STATE = (
    ("flags", "I"),
    *((f"position_{n}", "f") for n in range(LEGACY_JOINTS)),
    *((f"velocity_{n}", "f") for n in range(LEGACY_JOINTS)),
    *((f"accelerometer_{axis}", "f") for axis in "xyz"),
    *((f"gyroscope_{axis}", "f") for axis in "xyz"),
    *((f"foot_force_{n}", "f") for n in range(4)),
    ("time_us", "Q"),
)


def lua() -> str:
    """Return the text of the dissector."""
    template = files("rote.capture.report").joinpath("dissector.lua").read_text(encoding="utf-8")
    tables = {
        "TEACHING_TYPES": _names(
            (kind.value, kind.name.lower().replace("_", " ")) for kind in teaching.MessageType
        ),
        "TEACHING_COMMANDS": _names(
            (command.value, command.name.lower().replace("_", " "))
            for command in teaching.CommandId
        ),
        "TEACHING_PAYLOADS": _payloads(),
        "TEACHING_STATE": _row(_STATE),
        "FULL_STATE": str(FULL_STATE),
        "A1_FRAMES": _a1(),
        "APIS": _names(
            (f"{service} {number}", api.name.lower().replace("_", " "))
            for (service, number), api in rpc.APIS.items()
        ),
    }
    for name, table in tables.items():
        template = template.replace(f"@{name}@", table)
    return template


def _text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _names(pairs: Iterable[tuple[int | str, str]]) -> str:
    rows = (
        f"[{key if isinstance(key, int) else _text(key)}] = {_text(name)}" for key, name in pairs
    )
    return "{" + ", ".join(rows) + "}"


def _row(fields: Iterable[tuple[str, str]], start: int = 0) -> str:
    """Return consecutive fields: label, offset, size and type of each."""
    rows, at = [], start
    for label, code in fields:
        kind, size = ("string", int(code[:-1])) if code[-1] == "s" else _TYPES[code]
        kind = "bytes" if kind == "string" and label != "name" else kind
        rows.append(f"{{{_text(label)}, {at}, {size}, {_text(kind)}}}")
        at += size
    return "{" + ",\n  ".join(rows) + "}"


def _payloads() -> str:
    rows = (
        f"{{command = {int(command)}, size = {size}, fields = {_row(fields)}}}"
        for command, size, fields in _PAYLOADS
    )
    return "{" + ",\n  ".join(rows) + "}"


def _a1() -> str:
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
            f"[{size}] = {{kind = {_text(format_.kind.value)}, dialects = {_text(dialects)}, "
            f"go1 = {go1}, fields = {_row(fields)}}}"
        )
    return "{" + ",\n  ".join(rows) + "}"
