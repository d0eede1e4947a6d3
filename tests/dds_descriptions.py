"""What CycloneDDS tells its peers about a type; some kinds in it crash a peer with 0.10.2."""

from collections.abc import Iterator
from typing import Any

from cyclonedds.idl import IdlStruct, IdlUnion

from rote.transport.dds.types import Type

TK_INT8, TK_UINT8 = 0x0C, 0x0D


def describe_type(kind: Type) -> tuple[bytes, bytes]:
    """Return what CycloneDDS sends its peers about a type: its identity, and its description."""
    idl: Any = kind.__idl__
    idl.populate()
    idl.fill_type_data()
    identity, described = idl._xt_bytedata
    return bytes(identity), bytes(described)


def count_forbidden_kinds(kind: Type) -> int:
    """Return how many kinds in a type's description would crash a peer with CycloneDDS 0.10.2."""
    idl: Any = kind.__idl__
    idl.populate()
    idl.fill_type_data()
    return sum(code in {TK_INT8, TK_UINT8} for code in _walk_kinds(idl._xt_data[1]))


def _walk_kinds(described: Any) -> Iterator[int]:
    """Yield the kind of every member in a type's description, a tree of the library's objects."""
    if isinstance(described, IdlUnion):
        kind, value = described.get()  # type: ignore[no-untyped-call]
        if type(described).__name__ == "TypeIdentifier" and isinstance(kind, int):
            yield kind
        yield from _walk_kinds(value)
    elif isinstance(described, IdlStruct):
        for value in vars(described).values():
            yield from _walk_kinds(value)
    elif isinstance(described, list | tuple):
        for value in described:
            yield from _walk_kinds(value)
