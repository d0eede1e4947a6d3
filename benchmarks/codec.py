"""Claim: frames are written and read fast, many times as fast as `construct` doing the same.

The construct declaration checks what `wire.decode` checks: type, constants, length and CRC, the CRC
with construct's own RawCopy and Checksum. construct can also compile a declaration to Python, but
not a Checksum, so in the compiled rows the CRC is checked by hand; those rows have no goal.
"""

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import construct as c

from benchmarks.size import size
from benchmarks.table import Row, cpu_s, take_turns
from rote.wire.teaching.codec import SHORT, CommandId, Frame, decode, encode

ROUNDS = size(15, 1)
FRAMES = [
    Frame(CommandId.LIST_ACTIONS, sequence, bytes((sequence + i) % 256 for i in range(SHORT)))
    for sequence in range(size(1000, 20))
]
DATAGRAMS = [encode(frame) for frame in FRAMES]
FIELDS = [tuple(frame) for frame in FRAMES]
TREES = [
    {"kind": kind, "sequence": sequence, "command": command, "payload": payload}
    for command, sequence, payload, kind in FRAMES
]
RAW_TREES = [{"body": {"value": tree}} for tree in TREES]

BODY = c.Struct(
    "kind" / c.OneOf(c.Int8ub, [0x17, 0x80, 0x81]),
    c.Const(bytes.fromhex("fefd00 0100")),
    "sequence" / c.Int16ub,
    c.Const(bytes.fromhex("0000 0001")),
    "command" / c.Int8ub,
    "length" / c.Rebuild(c.Int16ub, c.len_(c.this.payload)),
    "payload" / c.Bytes(c.this.length),
)
WHOLE = c.Struct(
    "body" / c.RawCopy(BODY),
    "crc" / c.Checksum(c.Int32ub, zlib.crc32, c.this.body.data),
    c.Terminated,
)
COMPILED_BODY = BODY.compile()
COMPILED = c.Struct("body" / BODY, "crc" / c.Int32ub, c.Terminated).compile()


@dataclass(frozen=True, slots=True)
class DataclassFrame:
    """What `Frame` would be if it were not a named tuple."""

    command: int
    sequence: int
    payload: bytes = b""
    type: int = 0x17


def compiled_encode(tree: dict[str, object]) -> bytes:
    body: bytes = COMPILED_BODY.build(tree)
    return body + zlib.crc32(body).to_bytes(4, "big")


def compiled_decode(datagram: bytes) -> Any:
    tree = COMPILED.parse(datagram)
    if tree.crc != zlib.crc32(datagram[:-4]):
        raise ValueError("the CRC does not match")
    return tree.body


def check_that_all_agree() -> None:
    for frame, datagram, tree in zip(FRAMES, DATAGRAMS, TREES, strict=True):
        assert WHOLE.build({"body": {"value": tree}}) == compiled_encode(tree) == datagram
        for read in (WHOLE.parse(datagram).body.value, compiled_decode(datagram)):
            assert Frame(read.command, read.sequence, read.payload, read.kind) == frame
        assert decode(datagram) == frame


def rate(one: Callable[[Any], object], items: list[Any], times: int) -> Callable[[], float]:
    """Return a measure: how many a second of processor time."""

    def work() -> None:
        for _ in range(times):
            for item in items:
                one(item)

    return lambda: times * len(items) / cpu_s(work)


def run() -> list[Row]:
    check_that_all_agree()
    rates = take_turns(
        ROUNDS,
        {
            "encode": rate(encode, FRAMES, 20),
            "construct encode": rate(WHOLE.build, RAW_TREES, 1),
            "compiled encode": rate(compiled_encode, TREES, 3),
            "decode": rate(decode, DATAGRAMS, 20),
            "construct decode": rate(WHOLE.parse, DATAGRAMS, 1),
            "compiled decode": rate(compiled_decode, DATAGRAMS, 3),
            "Frame": rate(lambda values: Frame(*values), FIELDS, 20),
            "dataclass": rate(lambda values: DataclassFrame(*values), FIELDS, 20),
        },
    )
    rows = []
    for what, limit in (("encode", 500_000), ("decode", 400_000)):
        claim, ours = f"codec: {what} 44-byte payloads", rates[what]
        peer, compiled = rates[f"construct {what}"], rates[f"compiled {what}"]
        rows += [
            Row(claim, "/s", ours, limit, "limit", at_least=1),
            Row(claim, "/s", ours, peer, "construct", at_least=10),
            Row(claim, "/s", ours, compiled, "construct, compiled"),
        ]
    claim = "codec: make a Frame"
    return [*rows, Row(claim, "/s", rates["Frame"], rates["dataclass"], "frozen dataclass")]
