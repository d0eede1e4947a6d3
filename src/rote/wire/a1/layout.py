"""How a frame of the A1 is laid out: consecutive parts, little-endian, without gaps, and a CRC.

A `Layout` is declared once, part by part, and reads and writes the frame. Nothing here knows a
particular frame; those are in `formats`.
"""

import struct
import zlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, NamedTuple

from rote.errors import BadRequestError

_MIRRORED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))
_GO1_MASK = 0xEDCAB9DE
FLOAT32_MAX = 3.4028234663852886e38
_SPANS: dict[str, tuple[float, float]] = {
    "B": (0, 2**8 - 1),
    "b": (-(2**7), 2**7 - 1),
    "H": (0, 2**16 - 1),
    "h": (-(2**15), 2**15 - 1),
    "I": (0, 2**32 - 1),
    "i": (-(2**31), 2**31 - 1),
    "f": (-FLOAT32_MAX, FLOAT32_MAX),
}


def crc(body: bytes) -> bytes:
    """Return the CRC of a frame, four bytes, over everything before it.

    It is CRC-32/MPEG-2 over the complete little-endian words: up to three bytes before the CRC are
    not covered. It equals zlib's CRC with all bit orders reversed.
    """
    words = array("I", body[: len(body) & ~3])
    words.byteswap()
    mirrored = zlib.crc32(words.tobytes().translate(_MIRRORED)) ^ 0xFFFFFFFF
    return mirrored.to_bytes(4, "big").translate(_MIRRORED)


def encrypted(plain: bytes) -> bytes:
    """Return the form in which a Go1 sends the CRC of its high-level states."""
    masked = (int.from_bytes(plain, "little") ^ _GO1_MASK).to_bytes(4, "little")
    return masked[1:] + masked[:1]


_POSITIONS = {
    610: (10, struct.Struct("<" + "Bf22x" * 12)),
    614: (22, struct.Struct("<" + "Bf22x" * 12)),
}
"""By the length of a LowCmd, where its motors begin; of each leg motor its mode and position."""
_SERVO, _NO_POSITION = 0x0A, struct.unpack("<f", struct.pack("<f", 2.146e9))[0]


def limit_step(
    sent: bytes,
    wanted: bytes,
    before: bytes,
    usual: tuple[bytes, bytes],
    span_rad: tuple[float, float],
) -> bytes:
    """Return the LowCmd `wanted`, its positions no further from those in `sent` than one step.

    A step is twice that between the two `usual` commands, or that from `before` to `wanted` if it
    is more, and within `span_rad`. Motors without a position in either, and other frames, stay as
    they are.
    """
    start, row = _POSITIONS.get(len(wanted), (0, None))
    if row is None or not len(sent) == len(wanted) == len(before):
        return wanted
    if any(len(frame) != len(wanted) for frame in usual):  # nothing moved yet
        usual = (wanted, wanted)
    frames = (sent, wanted, before, *usual)
    now, goal, earlier, one, two = (row.unpack_from(frame, start) for frame in frames)
    body = bytearray(wanted[:-4])
    for place in range(0, len(goal), 2):
        q, q_to = now[place + 1], goal[place + 1]
        modes = (now[place], goal[place])
        if modes != (_SERVO, _SERVO) or _NO_POSITION in (q, q_to):
            continue
        pace = max(2.0 * abs(two[place + 1] - one[place + 1]), abs(q_to - earlier[place + 1]))
        step = min(max(pace, span_rad[0]), span_rad[1])
        if abs(q_to - q) > step:
            limited = q + step if q_to > q else q - step
            struct.pack_into("<f", body, start + row.size // 12 * (place // 2) + 1, limited)
    return bytes(body) + crc(bytes(body)) if body != wanted[:-4] else wanted


class Part(NamedTuple):
    """Consecutive numbers on the wire that are one field of a value."""

    name: str
    codes: str
    """One `struct` code for each number; or one like "40s" for bytes."""
    labels: tuple[str, ...]
    """What to call each number in an error."""
    make: Callable[[Any], Any] | None = None
    """Makes the field from the tuple of numbers, or from the only one; without it that is the
    field.
    """
    flat: Callable[[Any], Iterable[Any]] | None = None
    """The reverse of `make`."""
    span: tuple[float, float] | None = None
    """The allowed range, if it is smaller than the type's."""
    is_one: bool = False


def one(name: str, code: str, span: tuple[float, float] | None = None) -> Part:
    """Return a part of a single number."""
    return Part(name, code, (name,), None, lambda value: (value,), span, is_one=True)


def several(name: str, code: str, count: int, span: tuple[float, float] | None = None) -> Part:
    """Return a part of `count` numbers."""
    return Part(name, code * count, tuple(f"{name}[{i}]" for i in range(count)), span=span)


def raw(name: str, size: int, make: Callable[[bytes], Any] | None = None) -> Part:
    """Return a part of bytes that are kept, or decoded elsewhere."""
    return Part(name, f"{size}s", (name,), make, lambda value: (value,), is_one=True)


def record(name: str, make: type[Any], codes: str) -> Part:
    """Return a part that is a named tuple of plain numbers."""
    labels = tuple(f"{name}.{field}" for field in make._fields)
    return Part(name, codes, labels, make._make, tuple)


def records(name: str, make: type[Any], codes: str, count: int) -> Part:
    """Return a part that is a tuple of `count` named tuples."""
    size = len(codes)
    return Part(
        name,
        codes * count,
        tuple(f"{name}[{i}].{field}" for i in range(count) for field in make._fields),
        lambda n: tuple([make(*n[i : i + size]) for i in range(0, size * count, size)]),
        chain.from_iterable,
    )


class _Span(NamedTuple):
    label: str
    low: float
    high: float
    is_bytes: bool

    def error(self, value: object) -> BadRequestError:
        if self.is_bytes:
            return BadRequestError(f"{self.label} needs {self.low:g} bytes")
        return BadRequestError(
            f"{self.label} is {value}; the frame can hold {self.low:g} to {self.high:g}"
        )


def _make_span(part: Part, label: str, code: str) -> _Span:
    if part.codes.endswith("s"):
        size = int(part.codes[:-1])
        return _Span(label, size, size, is_bytes=True)
    low, high = part.span or _SPANS[code]
    return _Span(label, low, high, is_bytes=False)


class Layout:
    """The parts of a frame in their order, for a class of named tuples; a CRC follows."""

    def __init__(self, make: type[Any], *parts: Part) -> None:
        self.make = make
        self.parts = {part.name: part for part in parts}
        codes = [list(part.codes) if part.codes[-1] != "s" else [part.codes] for part in parts]
        self._struct = struct.Struct("<" + "".join(chain.from_iterable(codes)))
        self.size = self._struct.size + 4
        self.offsets: dict[str, int] = {}
        places: dict[str, slice | int] = {}
        offset = index = 0
        for part, its in zip(parts, codes, strict=True):
            self.offsets[part.name] = offset
            places[part.name] = index if part.is_one else slice(index, index + len(its))
            offset += struct.calcsize("<" + "".join(its))
            index += len(its)
        self._spans = [
            _make_span(part, label, code)
            for part, its in zip(parts, codes, strict=True)
            for label, code in zip(part.labels, its, strict=True)
        ]
        # In the order of the class; fields that the frame does not have get the class's default.
        self._reading = [
            (places.get(name), self.parts[name].make if name in places else None, default)
            for name, default in make._field_defaults.items()
        ]
        self._absent = {
            name: default
            for name, default in make._field_defaults.items()
            if name not in self.parts
        }

    def unpack(self, frame: bytes) -> Any:
        """Return the value in a frame of the right size."""
        numbers = self._struct.unpack_from(frame)
        return self.make._make(
            [
                default if place is None else make(numbers[place]) if make else numbers[place]
                for place, make, default in self._reading
            ]
        )

    def pack(self, value: Any, *, verbatim: bool = False) -> bytes:
        """Return the frame without its CRC, or raise `BadRequestError` naming what does not fit.

        With `verbatim` ranges are not checked, so that a value that was read can be written again.
        """
        for name, default in self._absent.items():
            if getattr(value, name) != default:
                raise BadRequestError(
                    f"this dialect's {self.make.__name__} has no {name}",
                    "Leave it out, or use `fit` to drop fields that the dialect lacks.",
                )
        numbers: list[Any] = []
        for part in self.parts.values():
            numbers += self._flatten_field(part, getattr(value, part.name))
        for span, number in zip(self._spans, numbers, strict=True):
            if span.is_bytes:
                if len(number) != span.low:
                    raise span.error(number)
            elif not verbatim and not span.low <= number <= span.high:
                raise span.error(number)
        try:
            return self._struct.pack(*numbers)
        except (struct.error, OverflowError) as error:
            raise BadRequestError(f"this frame cannot be written: {error}") from None

    def fit(self, value: Any) -> Any:
        """Return `value` without what the frame has no place for; rows of numbers get their
        length.
        """
        said = {name: getattr(value, name) for name in self.parts}
        for name, part in self.parts.items():
            field = said[name]
            if part.flat is None and field is not None:
                count = len(part.labels)
                said[name] = (*field, *(0,) * count)[:count]
        return self.make(**said)

    @staticmethod
    def _flatten_field(part: Part, field: Any) -> Sequence[Any]:
        if field is None:
            return [bytes(int(part.codes[:-1]))] if part.codes[-1] == "s" else [0] * len(part.codes)
        numbers = list(part.flat(field) if part.flat else field)
        if len(numbers) != len(part.labels):
            raise BadRequestError(
                f"{part.name} is {len(part.labels)} numbers in this dialect, not {len(numbers)}"
            )
        return numbers
