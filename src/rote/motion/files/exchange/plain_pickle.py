"""Reads pickles that hold plain data, and runs nothing.

A pickle is a program that may call anything. This reader carries out the few instructions that put
together numbers, texts, lists, dictionaries and numpy arrays; it never imports what a file names
and calls nothing of it. Arrays are made here, of their bytes. Everything else is refused with its
name.
"""

import math
import struct
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError

MAX_STEPS = 2_000_000
"""More instructions are not carried out; a file of arrays has a few hundred."""
MAX_MEMO = 1_000_000
_MAX_ITEMS = 20_000_000

_Array = NDArray[Any]
_RECONSTRUCT, _FROM_BUFFER, _SCALAR, _DTYPE, _NDARRAY = range(5)
_CODECS_ENCODE, _ORDERED = range(5, 7)
_NUMPY = {"_reconstruct": _RECONSTRUCT, "scalar": _SCALAR, "_frombuffer": _FROM_BUFFER}
_KNOWN: dict[tuple[str, str], int] = {
    **{
        (f"{core}.{module}", name): what
        for core in ("numpy.core", "numpy._core")
        for module in ("multiarray", "numeric")
        for name, what in _NUMPY.items()
    },
    ("numpy", "dtype"): _DTYPE,
    ("numpy", "ndarray"): _NDARRAY,
    ("_codecs", "encode"): _CODECS_ENCODE,
    ("collections", "OrderedDict"): _ORDERED,
}
_KINDS = frozenset({"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"})


class _Name(NamedTuple):
    """Something that a file would have imported; here a number that stands for it."""

    what: int


class _Dtype:
    """A numpy type on its way: `<f8`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.order = "<"

    def made(self) -> np.dtype[Any]:
        return np.dtype(self.order + self.kind)


class _PendingArray:
    """An array whose shape and bytes are yet to come."""

    def __init__(self) -> None:
        self.array: _Array | None = None


class _Mark:
    """Where a group of values begins."""


_MARK = _Mark()


def read_plain(data: bytes) -> Any:
    """Return what a pickle holds; raises `DecodeError` for anything but plain data."""
    try:
        return _PickleReader(data).run()
    except (struct.error, IndexError, KeyError, TypeError, ValueError, OverflowError) as error:
        raise DecodeError(f"it is no whole pickle of plain data ({error})") from None
    except RecursionError:
        raise DecodeError("its data is nested too deeply") from None


class _PickleReader:
    """A machine with a stack and a memory, as the instructions of a pickle expect it."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0
        self._stack: list[Any] = []
        self._made = 0
        """How many bytes were made of texts: no more than the file has, or a short file fills all
        memory."""
        self._memo: dict[int, Any] = {}

    def run(self) -> Any:
        for _ in range(MAX_STEPS):
            code = self._data[self._place]
            self._place += 1
            if code == 0x2E:  # STOP
                return _finished(self._stack.pop())
            step = _STEPS.get(code)
            if step is None:
                raise DecodeError(f"it asks for the instruction {bytes([code])!r}, which runs code")
            step(self)
        raise DecodeError(f"it has more than {MAX_STEPS:,} instructions")

    # ---- bytes ----

    def _take(self, count: int) -> bytes:
        end = self._place + count
        if count < 0 or end > len(self._data):
            raise DecodeError("it ends in the middle")
        taken = self._data[self._place : end]
        self._place = end
        return taken

    def _number(self, form: str) -> Any:
        return struct.unpack(form, self._take(struct.calcsize(form)))[0]

    def _line(self, coding: str = "utf-8") -> str:
        end = self._data.index(b"\n", self._place)
        line = self._data[self._place : end]
        self._place = end + 1
        return line.decode(coding)

    # ---- the stack ----

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def push_new(self, make: Callable[[], Any]) -> None:
        self._stack.append(make())

    def _group(self) -> list[Any]:
        for place in range(len(self._stack) - 1, -1, -1):
            if self._stack[place] is _MARK:
                found = self._stack[place + 1 :]
                del self._stack[place:]
                return found
        raise DecodeError("a group of values has no beginning")

    # ---- instructions ----

    def text(self, form: str) -> None:
        self.push(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def raw(self, form: str) -> None:
        self.push(self._take(self._number(form)))

    def old_text(self, form: str) -> None:
        self.push(self._take(self._number(form)).decode("latin-1"))

    def whole(self, form: str) -> None:
        self.push(int.from_bytes(self._take(self._number(form)), "little", signed=True))

    def number(self, form: str) -> None:
        self.push(self._number(form))

    def int_line(self) -> None:
        line = self._line()
        self.push({"01": True, "00": False}.get(line) if line in {"00", "01"} else int(line))

    def long_line(self) -> None:
        self.push(int(self._line().rstrip("L")))

    def float_line(self) -> None:
        self.push(float(self._line()))

    def unicode_line(self) -> None:
        self.push(self._line("raw-unicode-escape"))

    def string_line(self) -> None:
        self.push(self._line().strip("'\""))

    def tuple_of(self, count: int) -> None:
        values = self._stack[len(self._stack) - count :] if count else []
        if len(values) != count:
            raise DecodeError("a group of values has no beginning")
        del self._stack[len(self._stack) - count :]
        self.push(tuple(values))

    def group_tuple(self) -> None:
        self.push(tuple(self._group()))

    def group_list(self) -> None:
        self.push(self._group())

    def group_dict(self) -> None:
        self._push_items({}, self._group())

    def append(self) -> None:
        value = self._stack.pop()
        self._list().append(value)

    def appends(self) -> None:
        values = self._group()
        self._list().extend(values)

    def _list(self) -> list[Any]:
        if not isinstance(self._stack[-1], list):
            raise DecodeError("it appends to something that is no list")
        return self._stack[-1]

    def set_item(self) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._push_items(self._stack.pop(), [key, value])

    def set_items(self) -> None:
        values = self._group()
        self._push_items(self._stack.pop(), values)

    def _push_items(self, found: Any, values: list[Any]) -> None:
        if not isinstance(found, dict):
            raise DecodeError("it gives names to values of something that is no dictionary")
        for key, value in zip(values[::2], values[1::2], strict=True):
            if not isinstance(key, str | int | float | bytes | None):
                raise DecodeError("a key of a dictionary is no text or number")
            found[key] = value
        self.push(found)

    def put(self, place: int) -> None:
        if len(self._memo) >= MAX_MEMO:
            raise DecodeError(f"it remembers more than {MAX_MEMO:,} values")
        self._memo[place] = self._stack[-1]

    def put_number(self, form: str) -> None:
        self.put(self._number(form))

    def put_line(self) -> None:
        self.put(int(self._line()))

    def memoize(self) -> None:
        self.put(len(self._memo))

    def get_number(self, form: str) -> None:
        self.push(self._memo[self._number(form)])

    def get_line(self) -> None:
        self.push(self._memo[int(self._line())])

    def pop(self) -> None:
        self._stack.pop()

    def skip(self, count: int) -> None:
        self._take(count)

    def global_lines(self) -> None:
        module, name = self._line(), self._line()
        self.push(_known(module, name))

    def global_stack(self) -> None:
        name, module = self._stack.pop(), self._stack.pop()
        self.push(_known(module, name))

    def reduce(self) -> None:
        arguments, called = self._stack.pop(), self._stack.pop()
        if not isinstance(called, _Name) or not isinstance(arguments, tuple):
            raise DecodeError("it calls something that is no array")
        made = _CALLS[called.what](*arguments)
        self._made += len(made) if isinstance(made, bytes) else 0
        if self._made > len(self._data):
            raise DecodeError("it has more bytes than the file itself")
        self.push(made)

    def build(self) -> None:
        state, built = self._stack.pop(), self._stack[-1]
        if isinstance(built, _Dtype):
            if not isinstance(state, tuple) or state[1] not in {"<", ">", "|", "="}:
                raise DecodeError("the type of an array cannot be read")
            built.order = ">" if state[1] == ">" else "<"
        elif isinstance(built, _PendingArray):
            _, shape, dtype, fortran, raw = state
            built.array = _array(raw, dtype, shape, "F" if fortran else "C")
        else:
            raise DecodeError("it changes something that is no array")


def _known(module: Any, name: Any) -> _Name:
    what = _KNOWN.get((module, name)) if isinstance(module, str) and isinstance(name, str) else None
    if what is None:
        raise DecodeError(f"it wants to call {module!s:.40}.{name!s:.40}, which is no plain data")
    return _Name(what)


def _array(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    if not isinstance(raw, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise DecodeError("an array holds Python objects instead of numbers")
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(size, int) and 0 <= size <= _MAX_ITEMS for size in sizes):
        raise DecodeError(f"an array has the shape {shape!r:.60}")
    kind = dtype.made()
    if math.prod(sizes) * kind.itemsize != len(raw) or order not in {"C", "F"}:
        raise DecodeError(f"an array of shape {sizes} and {len(raw)} bytes is cut off")
    return np.frombuffer(raw, kind).reshape(sizes, order=order)


def _make_dtype(kind: Any, *_: Any) -> _Dtype:
    if kind not in _KINDS:
        raise DecodeError(f"an array is of type {kind!r:.40}, not of numbers")
    return _Dtype(kind)


def _scalar(dtype: Any, raw: Any) -> Any:
    return _array(raw, dtype, (), "C").item()


def _encoded(text: Any, coding: Any) -> bytes:
    if not isinstance(text, str) or coding not in {"latin1", "latin-1"}:
        raise DecodeError("it holds bytes in a coding that is not known")
    return text.encode("latin-1")


def _ordered() -> dict[Any, Any]:
    """Return an empty dictionary: its items follow. Made of another, it would be a copy of it."""
    return {}


_CALLS: dict[int, Callable[..., Any]] = {
    _RECONSTRUCT: lambda *_: _PendingArray(),
    _FROM_BUFFER: _array,
    _SCALAR: _scalar,
    _DTYPE: _make_dtype,
    _CODECS_ENCODE: _encoded,
    _ORDERED: _ordered,
}


def _finished(value: Any) -> Any:
    """Return a value with its arrays in place; those in a dictionary or a list are enough here."""
    if isinstance(value, _PendingArray):
        if value.array is None:
            raise DecodeError("an array has no numbers")
        return value.array
    if isinstance(value, dict):
        # What many names share is settled once: copies for each would fill all memory.
        settled: dict[int, Any] = {}
        for each in value.values():
            if id(each) not in settled:
                settled[id(each)] = _settled(each)
        return {key: settled[id(each)] for key, each in value.items()}
    return _settled(value)


def _settled(value: Any) -> Any:
    if isinstance(value, _PendingArray):
        return _finished(value)
    if isinstance(value, list | tuple):
        return [_finished(each) if isinstance(each, _PendingArray) else each for each in value]
    if isinstance(value, dict):
        return {k: _finished(v) if isinstance(v, _PendingArray) else v for k, v in value.items()}
    return value


def _bound(
    step: Callable[[_PickleReader, Any], None], argument: Any
) -> Callable[[_PickleReader], None]:
    return lambda reader: step(reader, argument)


_WITH_ARGUMENT: dict[str, dict[bytes, Any]] = {
    "push": {b"N": None, b"\x88": True, b"\x89": False, b"(": _MARK},
    "number": {b"J": "<i", b"K": "<B", b"M": "<H", b"G": ">d"},
    "text": {b"X": "<I", b"\x8c": "<B", b"\x8d": "<Q"},
    "raw": {b"B": "<I", b"C": "<B", b"\x8e": "<Q", b"\x96": "<Q"},
    "old_text": {b"T": "<i", b"U": "<B"},
    "whole": {b"\x8a": "<B", b"\x8b": "<i"},
    "put_number": {b"q": "<B", b"r": "<I"},
    "get_number": {b"h": "<B", b"j": "<I"},
    "tuple_of": {b"\x85": 1, b"\x86": 2, b"\x87": 3},
    "skip": {b"\x80": 1, b"\x95": 8},  # the version, and the length of a frame
}
"""The instructions that differ by a number, a form of number, or a value only."""


def _steps() -> Iterator[tuple[bytes, Callable[[_PickleReader], None]]]:
    """Yield each instruction and what it does."""
    reader = _PickleReader
    for does, arguments in _WITH_ARGUMENT.items():
        for code, argument in arguments.items():
            yield code, _bound(getattr(_PickleReader, does), argument)
    for code, make in ((b"]", list), (b"}", dict), (b")", tuple)):
        yield code, _bound(_PickleReader.push_new, make)
    yield from (
        (b"I", reader.int_line),
        (b"L", reader.long_line),
        (b"F", reader.float_line),
        (b"V", reader.unicode_line),
        (b"S", reader.string_line),
        (b"t", reader.group_tuple),
        (b"l", reader.group_list),
        (b"d", reader.group_dict),
        (b"a", reader.append),
        (b"e", reader.appends),
        (b"s", reader.set_item),
        (b"u", reader.set_items),
        (b"p", reader.put_line),
        (b"\x94", reader.memoize),
        (b"g", reader.get_line),
        (b"0", reader.pop),
        (b"c", reader.global_lines),
        (b"\x93", reader.global_stack),
        (b"R", reader.reduce),
        (b"b", reader.build),
    )


_STEPS: dict[int, Callable[[_PickleReader], None]] = {code[0]: step for code, step in _steps()}
