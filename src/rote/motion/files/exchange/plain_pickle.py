"""Reads pickles that hold plain data, and executes nothing.

A pickle is a program that may call anything. Its instructions are checked before any is executed:
only those that build numbers, texts, lists, dictionaries and numpy arrays pass, and only a limited
number of them. Nothing that the file names is imported: each known name of numpy stands for a
callable of this module, and any other name is refused.
"""

import io
import math
import pickle
import pickletools
import struct
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError

MAX_STEPS = 2_000_000
"""The maximum number of instructions; a file of arrays has a few hundred."""
_MAX_ITEMS = 20_000_000

_Array = NDArray[Any]
_INSTRUCTIONS = frozenset(
    b"\x80\x95.(0N\x88\x89IJKML\x8a\x8bFGVX\x8c\x8dSTUBC\x8e\x96]lae)t\x85\x86\x87}dsu"
    b"pqr\x94ghjc\x93Rb"
)
"""Numbers, texts, bytes, lists, tuples and dictionaries, the memo, names and calls."""
_KINDS = frozenset({"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"})


class _Callable:
    """Stands for something that a file would have imported."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)

    def __setstate__(self, _state: object) -> NoReturn:
        raise DecodeError("it changes something that is not an array")


class _Dtype:
    """A numpy type on its way: `<f8`."""

    __slots__ = ("kind", "order")

    def __init__(self, kind: Any, *_: Any) -> None:
        if kind not in _KINDS:
            raise DecodeError(f"an array is of type {kind!r:.40}, not of numbers")
        self.kind = kind
        self.order = "<"

    def __setstate__(self, state: Any) -> None:
        if not isinstance(state, tuple) or state[1] not in {"<", ">", "|", "="}:
            raise DecodeError("the type of an array cannot be read")
        self.order = ">" if state[1] == ">" else "<"


class _PendingArray:
    """An array whose shape and bytes are yet to come."""

    __slots__ = ("array",)

    def __init__(self, *_: Any) -> None:
        self.array: _Array | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, raw = state
        self.array = _make_array(raw, dtype, shape, "F" if fortran else "C")


def read_plain(data: bytes) -> Any:
    """Return what a pickle holds; raises `DecodeError` for anything but plain data."""
    try:
        try:
            _check_instructions(data)
        except ValueError as error:
            raise DecodeError(f"it ends in the middle, or is not a pickle ({error})") from None
        return _replace_pending_arrays(_PlainUnpickler(data).load())
    except (
        pickle.UnpicklingError, struct.error, AttributeError, EOFError, IndexError, KeyError,
        MemoryError, OverflowError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise DecodeError(f"it is not a complete pickle of plain data ({error})") from None
    except RecursionError:
        raise DecodeError("its data is nested too deeply") from None


def _check_instructions(data: bytes) -> None:
    """Refuse instructions that run code, and so many that they would fill the memory."""
    for step, (instruction, _, _) in enumerate(pickletools.genops(data)):
        if step >= MAX_STEPS:
            raise DecodeError(f"it has more than {MAX_STEPS:,} instructions")
        code = instruction.code.encode("latin-1")
        if code[0] not in _INSTRUCTIONS:
            raise DecodeError(f"it asks for the instruction {code!r}, which runs code")


def _check_keys(step: Callable[[Any], None], keys: slice) -> Callable[[Any], None]:
    def run(reader: Any) -> None:
        # Hashing a tuple that holds one tuple many times over may take forever.
        if not all(isinstance(key, str | int | float | bytes | None) for key in reader.stack[keys]):
            raise DecodeError("a key of a dictionary is neither text nor a number")
        step(reader)

    return run


class _PlainUnpickler(pickle._Unpickler):
    """Imports nothing: a name is one of a few callables of this module.

    It is the unpickler in Python: that in C reserves memory for a memo of any size.
    """

    dispatch: ClassVar[dict[int, Callable[[Any], None]]] = dict(pickle._Unpickler.dispatch)
    for _code, _keys in (
        (pickle.SETITEM[0], slice(-2, -1)),
        (pickle.SETITEMS[0], slice(None, None, 2)),
        (pickle.DICT[0], slice(None, None, 2)),
    ):
        dispatch[_code] = _check_keys(dispatch[_code], _keys)

    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="latin-1")
        self._left = len(data)
        """The number of bytes that may still be made from texts: no more than the file has."""
        of_arrays: dict[str, Callable[..., Any]] = {
            "_reconstruct": _PendingArray,
            "scalar": _make_scalar,
            "_frombuffer": _make_array,
        }
        self._known: dict[tuple[str, str], _Callable] = {
            (f"{core}.{module}", name): _Callable(make)
            for core in ("numpy.core", "numpy._core")
            for module in ("multiarray", "numeric")
            for name, make in of_arrays.items()
        } | {
            ("numpy", "dtype"): _Callable(_Dtype),
            ("numpy", "ndarray"): _Callable(_refuse_call),
            ("_codecs", "encode"): _Callable(self._encode),
            # Empty, its items follow: made of another it would be a copy of it.
            ("collections", "OrderedDict"): _Callable(lambda: {}),  # noqa: PIE807 - takes no other,
        }

    def find_class(self, module: str, name: str) -> _Callable:
        """Return what a name stands for; called by the unpickler."""
        found = self._known.get((module, name))
        if found is None:
            raise DecodeError(f"it wants to call {module:.40}.{name:.40}, which is not plain data")
        return found

    def _encode(self, text: Any, coding: Any) -> bytes:
        if not isinstance(text, str) or coding not in {"latin1", "latin-1"}:
            raise DecodeError("it holds bytes in a coding that is not known")
        self._left -= len(text)
        if self._left < 0:
            raise DecodeError("it has more bytes than the file itself")
        return text.encode("latin-1")


def _refuse_call(*_: Any) -> NoReturn:
    raise DecodeError("it calls something that is not an array")


def _make_array(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    if not isinstance(raw, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise DecodeError("an array holds Python objects instead of numbers")
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(size, int) and 0 <= size <= _MAX_ITEMS for size in sizes):
        raise DecodeError(f"an array has the shape {shape!r:.60}")
    kind = np.dtype(dtype.order + dtype.kind)
    if math.prod(sizes) * kind.itemsize != len(raw) or order not in {"C", "F"}:
        raise DecodeError(f"an array of shape {sizes} and {len(raw)} bytes is cut off")
    return np.frombuffer(raw, kind).reshape(sizes, order=order)


def _make_scalar(dtype: Any, raw: Any) -> Any:
    return _make_array(raw, dtype, (), "C").item()


def _replace_pending_arrays(value: Any) -> Any:
    """Return a value with its pending arrays resolved, also directly in a dictionary or a list."""
    if isinstance(value, _PendingArray):
        if value.array is None:
            raise DecodeError("an array has no numbers")
        return value.array
    if isinstance(value, dict):
        # A shared array is resolved once: a copy for each name could fill the memory.
        settled: dict[int, Any] = {}
        for each in value.values():
            if id(each) not in settled:
                settled[id(each)] = _resolve_array(each)
        return {key: settled[id(each)] for key, each in value.items()}
    return _resolve_array(value)


def _resolve_array(value: Any) -> Any:
    if isinstance(value, _PendingArray):
        return _replace_pending_arrays(value)
    if isinstance(value, list | tuple):
        return [
            _replace_pending_arrays(each) if isinstance(each, _PendingArray) else each
            for each in value
        ]
    if isinstance(value, dict):
        return {
            k: _replace_pending_arrays(v) if isinstance(v, _PendingArray) else v
            for k, v in value.items()
        }
    return value
