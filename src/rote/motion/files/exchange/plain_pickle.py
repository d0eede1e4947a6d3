"""Reads pickles that hold plain data, also those that joblib wrote, and executes nothing.

A pickle is a program that may call anything. Here only the instructions that build numbers, texts,
lists, dictionaries and numpy arrays are executed, and only a limited number of them; any other is
refused. Nothing that the file names is imported: each known name of numpy and joblib stands for a
callable of this module, and any other name is refused.

joblib writes a small object in place of an array, and the bytes of the array right behind it, in
the middle of the instructions. The whole file may be compressed.
"""

import bz2
import io
import lzma
import math
import pickle
import struct
import zlib
from collections.abc import Callable
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray

from rote.errors import DecodeError

MAX_STEPS = 2_000_000
"""The maximum number of instructions; a file of arrays has a few hundred."""
MAX_UNPACKED_BYTES = 64 << 20
"""The maximum size of a compressed file when it is unpacked."""
_MAX_ITEMS = 20_000_000

_Array = NDArray[Any]
_Instruction = Callable[[Any], None]
_INSTRUCTIONS = (
    b"\x80\x95.(0N\x88\x89IJKML\x8a\x8bFGVX\x8c\x8dSTUBC\x8e]lae)t\x85\x86\x87}dsupqr\x94ghjc\x93R"
)
"""The opcodes that are executed as Python executes them: they make numbers, texts, bytes, lists,
tuples and dictionaries, use the memo, look up names and call them."""
_DTYPES = frozenset({"f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "b1"})


class _Callable:
    """A replacement for something that the pickle would import, and may only call."""

    __slots__ = ("_make",)

    def __init__(self, make: Callable[..., Any]) -> None:
        self._make = make

    def __call__(self, *arguments: Any) -> Any:
        return self._make(*arguments)


class _Dtype:
    """A replacement for `numpy.dtype`: made from a name like `f8`, it gets its byte order later."""

    __slots__ = ("kind", "order")

    def __init__(self, kind: Any, *_: Any) -> None:
        if kind not in _DTYPES:
            raise DecodeError(f"an array is of type {kind!r:.40}, not of numbers")
        self.kind = kind
        self.order = "<"

    def __setstate__(self, state: Any) -> None:
        # Of the state of a numpy type, only the byte order matters for numbers.
        if not isinstance(state, tuple) or state[1] not in {"<", ">", "|", "="}:
            raise DecodeError("the type of an array cannot be read")
        self.order = ">" if state[1] == ">" else "<"


class _PendingArray:
    """An array of numpy, whose shape and bytes follow in its state."""

    __slots__ = ("array",)

    def __init__(self, *_: Any) -> None:
        self.array: _Array | None = None

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, is_fortran_order, raw = state
        self.array = _make_array(raw, dtype, shape, "F" if is_fortran_order else "C")


class _StreamedArray:
    """joblib's object in place of an array, whose bytes follow in the file."""

    __slots__ = ()


class _StrictReader(io.BytesIO):
    """Raises `EOFError` instead of returning less than requested."""

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(size)
        if size is not None and len(data) < size:
            raise EOFError("it ends in the middle")
        return data

    def readline(self, size: int | None = -1, /) -> bytes:
        line = super().readline(size)
        if not line.endswith(b"\n"):
            raise EOFError("it ends in the middle")
        return line


def read_plain(data: bytes) -> Any:
    """Return the object in a pickle; raises `DecodeError` for anything but plain data."""
    data = _decompress(data)
    try:
        return _replace_pending_arrays(_PlainUnpickler(data).load())
    except (
        pickle.UnpicklingError, struct.error, AttributeError, EOFError, IndexError, KeyError,
        MemoryError, OverflowError, TypeError, ValueError,
    ) as error:  # fmt: skip
        raise DecodeError(f"it is not a complete pickle of plain data ({error})") from None
    except RecursionError:
        raise DecodeError("its data is nested too deeply") from None


def _decompress(data: bytes) -> bytes:
    """Return the content of a compressed file, or the data itself if it is not compressed.

    The first bytes of the data tell how it is compressed.
    """
    max_bytes = MAX_UNPACKED_BYTES + 1  # one more than allowed, to notice more
    unpacker: Any
    match data[:3]:
        case b"BZh":
            name, unpacker = "bz2", bz2.BZ2Decompressor()
        case b"\xfd7z" | b"]\0\0":
            name, unpacker = "lzma", lzma.LZMADecompressor(memlimit=2 * max_bytes)
        case b"\x04\x22\x4d":
            raise DecodeError("it is compressed with lz4")
        case _ if data[:2] == b"\x1f\x8b" or _is_zlib(data):
            name, unpacker = "zlib", zlib.decompressobj(zlib.MAX_WBITS | 32)
        case _:
            return data
    try:
        content: bytes = unpacker.decompress(data, max_bytes)
    except (EOFError, OSError, ValueError, lzma.LZMAError, zlib.error) as error:
        raise DecodeError(f"it cannot be unpacked with {name} ({error})") from None
    if len(content) == max_bytes:
        raise DecodeError(f"it unpacks to more than {MAX_UNPACKED_BYTES >> 20} MB")
    return content


def _is_zlib(data: bytes) -> bool:
    """Return whether data begins with a zlib header; no pickle does.

    The two bytes of the header, read as a number, are a multiple of 31.
    """
    return data[:1] == b"\x78" and int.from_bytes(data[:2], "big") % 31 == 0


class _Instructions(dict[int, _Instruction]):
    """The functions that execute opcodes; it refuses an opcode that it does not have."""

    def __missing__(self, code: int) -> NoReturn:
        if code in pickle._Unpickler.dispatch:  # Python could execute it
            raise DecodeError(
                f"it contains the instruction {bytes([code])!r}, which could run code"
            )
        raise DecodeError(f"it is not a pickle: {bytes([code])!r} is not an instruction")


def _count_steps(step: _Instruction) -> _Instruction:
    """Return an instruction that executes `step`, but at most `MAX_STEPS` instructions in all."""

    def run(reader: "_PlainUnpickler") -> None:
        reader.steps_left -= 1
        if reader.steps_left < 0:
            raise DecodeError(f"it has more than {MAX_STEPS:,} instructions")
        step(reader)

    return run


def _check_keys(step: _Instruction, keys: slice) -> _Instruction:
    """Return an instruction that checks the keys of new dictionary items, then executes `step`.

    `keys` is where the keys are on the stack.
    """

    def run(reader: Any) -> None:
        # Hashing a tuple that holds one tuple many times over may take forever.
        if not all(isinstance(key, str | int | float | bytes | None) for key in reader.stack[keys]):
            raise DecodeError("a key of a dictionary is neither text nor a number")
        step(reader)

    return run


def _load_new_object(reader: Any) -> None:
    """Execute NEWOBJ, which makes an object of a class: here only joblib's object for an array."""
    arguments, maker = reader.stack.pop(), reader.stack.pop()
    if maker is not _STREAMED or not isinstance(arguments, tuple) or arguments:
        raise DecodeError("it makes an object that is not an array")
    reader.append(_StreamedArray())


def _load_state(reader: Any) -> None:
    """Execute BUILD, which gives an object its state: here only a type or an array."""
    state, target = reader.stack.pop(), reader.stack[-1]
    if isinstance(target, _StreamedArray):
        reader.stack[-1] = reader.read_array(state)
    elif isinstance(target, _Dtype | _PendingArray):
        target.__setstate__(state)
    else:
        raise DecodeError("it changes something that is not an array")


def _load_bytearray(reader: Any) -> None:
    """Execute BYTEARRAY8; Python's own function reserves memory of any size that a file states."""
    reader.append(bytearray(reader.read(*struct.unpack("<Q", reader.read(8)))))


class _PlainUnpickler(pickle._Unpickler):
    """An unpickler that imports nothing: a name stands for one of a few callables of this module.

    Its base is the unpickler in Python, because that in C reserves memory for a memo of any size.
    """

    dispatch: ClassVar[dict[int, _Instruction]] = _Instructions(
        {code: _count_steps(pickle._Unpickler.dispatch[code]) for code in _INSTRUCTIONS}
    )
    for _code, _keys in (
        (pickle.SETITEM[0], slice(-2, -1)),
        (pickle.SETITEMS[0], slice(None, None, 2)),
        (pickle.DICT[0], slice(None, None, 2)),
    ):
        dispatch[_code] = _check_keys(dispatch[_code], _keys)
    dispatch[pickle.NEWOBJ[0]] = _count_steps(_load_new_object)
    dispatch[pickle.BUILD[0]] = _count_steps(_load_state)
    dispatch[pickle.BYTEARRAY8[0]] = _count_steps(_load_bytearray)

    def __init__(self, data: bytes) -> None:
        self._source = _StrictReader(data)
        super().__init__(self._source, encoding="latin-1")
        self.steps_left = MAX_STEPS
        self._bytes_left = len(data)
        """How many bytes `_encode` may still make: in all no more than the file has."""
        array_makers: dict[str, Callable[..., Any]] = {
            "_reconstruct": _PendingArray,
            "scalar": _make_scalar,
            "_frombuffer": _make_array,
        }
        self._known: dict[tuple[str, str], _Callable] = {
            (f"{core}.{module}", name): _Callable(make)
            for core in ("numpy.core", "numpy._core")
            for module in ("multiarray", "numeric")
            for name, make in array_makers.items()
        } | {
            ("numpy", "dtype"): _Callable(_Dtype),
            ("numpy", "ndarray"): _Callable(_refuse_call),
            ("numpy", "memmap"): _Callable(_refuse_call),
            ("joblib.numpy_pickle", "NumpyArrayWrapper"): _STREAMED,
            ("_codecs", "encode"): _Callable(self._encode),
            # It takes no argument: the items of a plain dictionary follow.
            ("collections", "OrderedDict"): _Callable(lambda: {}),  # noqa: PIE807 - dict takes more
        }

    def find_class(self, module: str, name: str) -> _Callable:
        """Return the replacement for an imported name; called by the unpickler."""
        replacement = self._known.get((module, name))
        if replacement is None:
            raise DecodeError(f"it calls {module:.40}.{name:.40}, which is not plain data")
        return replacement

    def read_array(self, state: Any) -> _Array:
        """Return the array whose bytes follow in the file, as joblib describes it in `state`."""
        dtype, shape, order = (state[name] for name in ("dtype", "shape", "order"))
        if not isinstance(dtype, _Dtype):
            raise DecodeError("the type of an array cannot be read")
        if state.get("numpy_array_alignment_bytes") is not None:
            # joblib pads the array, so that it can be mapped into memory.
            padding_size = self._source.read(1)[0]
            self._source.read(padding_size)
        size = math.prod(_check_shape(shape)) * np.dtype(dtype.kind).itemsize
        return _make_array(self._source.read(size), dtype, shape, order)

    def _encode(self, text: Any, encoding: Any) -> bytes:
        """Replace `_codecs.encode`, by which old pickles store bytes as text."""
        if not isinstance(text, str) or encoding not in {"latin1", "latin-1"}:
            raise DecodeError("it holds bytes in an unknown encoding")
        self._bytes_left -= len(text)
        if self._bytes_left < 0:
            raise DecodeError("it has more bytes than the file itself")
        return text.encode("latin-1")


def _refuse_call(*_: Any) -> NoReturn:
    raise DecodeError("it calls something that is not an array")


_STREAMED = _Callable(_refuse_call)
"""The replacement for the class of joblib's object in place of an array; it is never called."""


def _check_shape(shape: Any) -> tuple[int, ...]:
    """Return a shape as a tuple; raise `DecodeError` if it is not one, or is too large."""
    sizes = shape if isinstance(shape, tuple) else (shape,)
    if not all(isinstance(size, int) and 0 <= size <= _MAX_ITEMS for size in sizes):
        raise DecodeError(f"an array has the shape {shape!r:.60}")
    return sizes


def _make_array(raw: Any, dtype: Any, shape: Any, order: Any) -> _Array:
    if not isinstance(raw, bytes | bytearray) or not isinstance(dtype, _Dtype):
        raise DecodeError("an array holds Python objects instead of numbers")
    sizes = _check_shape(shape)
    numpy_type = np.dtype(dtype.order + dtype.kind)
    if math.prod(sizes) * numpy_type.itemsize != len(raw) or order not in {"C", "F"}:
        raise DecodeError(f"an array of shape {sizes} and {len(raw)} bytes is cut off")
    return np.frombuffer(raw, numpy_type).reshape(sizes, order=order)


def _make_scalar(dtype: Any, raw: Any) -> Any:
    return _make_array(raw, dtype, (), "C").item()


def _replace_pending_arrays(value: Any) -> Any:
    """Return a value with pending arrays replaced, also in a dictionary and in its values.

    A motion has no deeper ones: it is a dictionary, or a dictionary by name, of arrays or lists.
    """
    if isinstance(value, dict):
        # A shared value is resolved once: a copy for each name could fill the memory.
        resolved: dict[int, Any] = {}
        for each in value.values():
            if id(each) not in resolved:
                resolved[id(each)] = _resolve_container(each)
        return {key: resolved[id(each)] for key, each in value.items()}
    return _resolve_container(value)


def _resolve_container(value: Any) -> Any:
    """Return a value with pending arrays replaced, also directly in a list or a dictionary."""
    if isinstance(value, list | tuple):
        return [_resolve_array(each) for each in value]
    if isinstance(value, dict):
        return {key: _resolve_array(each) for key, each in value.items()}
    return _resolve_array(value)


def _resolve_array(value: Any) -> Any:
    """Return the array of a pending array; any other value is returned unchanged."""
    if not isinstance(value, _PendingArray):
        return value
    if value.array is None:
        raise DecodeError("an array in the file has no data")
    return value.array
