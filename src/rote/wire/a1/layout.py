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
    words = array("I", body[: len(body) & ~3])  # without the incomplete word at the end
    words.byteswap()
    mirrored = zlib.crc32(words.tobytes().translate(_MIRRORED)) ^ 0xFFFFFFFF
    return mirrored.to_bytes(4, "big").translate(_MIRRORED)


def encrypt_crc(plain: bytes) -> bytes:
    """Return a CRC as a Go1 sends it in high-level states: XORed with a constant, then rotated."""
    masked = (int.from_bytes(plain, "little") ^ _GO1_MASK).to_bytes(4, "little")
    return masked[1:] + masked[:1]


_LEG_POSITIONS = {
    610: (10, struct.Struct("<" + "Bf22x" * 12)),
    614: (22, struct.Struct("<" + "Bf22x" * 12)),
}
"""By length of a LowCmd: where its motors begin, and a struct of each leg motor's mode and
position."""
_SERVO, _NO_POSITION = 0x0A, struct.unpack("<f", struct.pack("<f", 2.146e9))[0]


def limit_step(
    sent: bytes,
    requested: bytes,
    before: bytes,
    usual_pair: tuple[bytes, bytes],
    span_rad: tuple[float, float],
) -> bytes:
    """Return the LowCmd `requested` with each leg position at most one step from that in `sent`.

    So legs do not jump to a command that was delayed. `sent` is the last frame sent, `before` the
    command before `requested`, and `usual_pair` two consecutive commands from before the delay. A
    motor's step is twice its distance between the usual pair, or its distance from `before` to
    `requested` if that is larger, limited to `span_rad` (minimum, maximum). Motors without a
    position in `sent` or `requested`, and frames other than LowCmd, are not changed.
    """
    start, layout = _LEG_POSITIONS.get(len(requested), (0, None))
    if layout is None or not len(sent) == len(requested) == len(before):
        return requested
    if any(len(frame) != len(requested) for frame in usual_pair):  # nothing moved yet
        usual_pair = (requested, requested)
    frames = (sent, requested, before, *usual_pair)
    row_sent, row_requested, row_before, row_first, row_second = (
        layout.unpack_from(frame, start) for frame in frames
    )
    body = bytearray(requested[:-4])
    for motor in range(12):
        mode, q = 2 * motor, 2 * motor + 1  # the indices of a motor's two numbers in each row
        q_sent, q_requested = row_sent[q], row_requested[q]
        modes = (row_sent[mode], row_requested[mode])
        if modes != (_SERVO, _SERVO) or _NO_POSITION in (q_sent, q_requested):
            continue
        usual_step = abs(row_second[q] - row_first[q])
        step = max(2.0 * usual_step, abs(q_requested - row_before[q]))
        step = min(max(step, span_rad[0]), span_rad[1])
        if abs(q_requested - q_sent) > step:
            limited = q_sent + step if q_requested > q_sent else q_sent - step
            position_offset = start + layout.size // 12 * motor + 1  # after the mode byte
            struct.pack_into("<f", body, position_offset, limited)
    return bytes(body) + crc(bytes(body)) if body != requested[:-4] else requested


class Part(NamedTuple):
    """Consecutive numbers on the wire that are one field of a value."""

    name: str
    codes: str
    """One `struct` code for each number; or one like "40s" for bytes."""
    labels: tuple[str, ...]
    """The name of each number in error messages."""
    make: Callable[[Any], Any] | None = None
    """Makes the field from the tuple of numbers or the single number; None if no change is
    needed."""
    flatten: Callable[[Any], Iterable[Any]] | None = None
    """The reverse of `make`: returns the numbers of a field."""
    span: tuple[float, float] | None = None
    """The allowed range, if it is smaller than the type's."""
    is_single: bool = False
    """Whether the field is one number or one `bytes`, not a row of numbers."""

    @property
    def is_bytes(self) -> bool:
        """Whether `codes` is one code for bytes."""
        return self.codes.endswith("s")


def number_part(name: str, code: str, span: tuple[float, float] | None = None) -> Part:
    """Return a part of a single number."""
    return Part(name, code, (name,), None, lambda value: (value,), span, is_single=True)


def numbers_part(name: str, code: str, count: int, span: tuple[float, float] | None = None) -> Part:
    """Return a part of `count` numbers."""
    return Part(name, code * count, tuple(f"{name}[{i}]" for i in range(count)), span=span)


def bytes_part(name: str, size: int, make: Callable[[bytes], Any] | None = None) -> Part:
    """Return a part of `size` bytes; `make` decodes them, otherwise the field holds the bytes."""
    return Part(name, f"{size}s", (name,), make, lambda value: (value,), is_single=True)


def record_part(name: str, record: type[Any], codes: str) -> Part:
    """Return a part whose field is a `record`, a class of named tuples of plain numbers."""
    labels = tuple(f"{name}.{field}" for field in record._fields)
    return Part(name, codes, labels, record._make, tuple)


def records_part(name: str, record: type[Any], codes: str, count: int) -> Part:
    """Return a part whose field is a tuple of `count` named tuples of the class `record`."""
    size = len(codes)

    def make_records(numbers: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple([record(*numbers[i : i + size]) for i in range(0, size * count, size)])

    labels = tuple(f"{name}[{i}].{field}" for i in range(count) for field in record._fields)
    return Part(name, codes * count, labels, make_records, chain.from_iterable)


class _Span(NamedTuple):
    """The allowed range of one number, or the required size of bytes."""

    label: str
    low: float
    high: float
    is_bytes: bool

    def make_error(self, value: object) -> BadRequestError:
        if self.is_bytes:
            return BadRequestError(f"{self.label} needs {self.low:g} bytes")
        return BadRequestError(
            f"{self.label} is {value}; the frame can hold {self.low:g} to {self.high:g}"
        )


def _make_spans(part: Part) -> list[_Span]:
    """Return the allowed range of each number of a part."""
    if part.is_bytes:
        size = struct.calcsize(part.codes)
        return [_Span(part.name, size, size, is_bytes=True)]
    return [
        _Span(label, *(part.span or _SPANS[code]), is_bytes=False)
        for label, code in zip(part.labels, part.codes, strict=True)
    ]


class Layout:
    """The parts of a frame in their order, for a class of named tuples; a CRC follows."""

    def __init__(self, value_type: type[Any], *parts: Part) -> None:
        self.value_type = value_type
        self.parts = {part.name: part for part in parts}
        self._struct = struct.Struct("<" + "".join(part.codes for part in parts))
        self.size = self._struct.size + 4  # with the CRC
        self.offsets: dict[str, int] = {}
        indices: dict[str, slice | int] = {}
        offset = index = 0
        for part in parts:
            count = len(part.labels)
            self.offsets[part.name] = offset
            indices[part.name] = index if part.is_single else slice(index, index + count)
            offset += struct.calcsize("<" + part.codes)
            index += count
        self._spans = [span for part in parts for span in _make_spans(part)]
        defaults = value_type._field_defaults
        # For each field of the class: index of its numbers (None if the frame lacks it, so that it
        # gets the default), conversion, default.
        self._field_readers = [
            (indices.get(name), self.parts[name].make if name in indices else None, default)
            for name, default in defaults.items()
        ]
        self._absent_defaults = {
            name: default for name, default in defaults.items() if name not in self.parts
        }

    def unpack(self, frame: bytes) -> Any:
        """Return the value in a frame of the right size; fields that it lacks have defaults."""
        numbers = self._struct.unpack_from(frame)
        fields: list[Any] = []
        for index, make, default in self._field_readers:
            if index is None:
                fields.append(default)
            else:
                fields.append(make(numbers[index]) if make else numbers[index])
        return self.value_type._make(fields)

    def pack(self, value: Any, *, verbatim: bool = False) -> bytes:
        """Return the frame without its CRC, or raise `BadRequestError` naming what does not fit.

        With `verbatim` ranges are not checked, so that a value that was read can be written again.
        """
        for name, default in self._absent_defaults.items():
            if getattr(value, name) != default:
                raise BadRequestError(
                    f"this dialect's {self.value_type.__name__} has no {name}",
                    "Leave it out, or use `fit` to drop fields that the dialect lacks.",
                )
        numbers: list[Any] = []
        for part in self.parts.values():
            numbers += self._flatten_field(part, getattr(value, part.name))
        for span, number in zip(self._spans, numbers, strict=True):
            if span.is_bytes:
                if len(number) != span.low:
                    raise span.make_error(number)
            elif not verbatim and not span.low <= number <= span.high:
                raise span.make_error(number)
        try:
            return self._struct.pack(*numbers)
        except (struct.error, OverflowError) as error:
            raise BadRequestError(f"this frame cannot be written: {error}") from None

    def fit(self, value: Any) -> Any:
        """Return `value` without the fields that this frame lacks.

        Rows of numbers that are longer or shorter in this frame are cut or padded with zeros.
        """
        fields = {name: getattr(value, name) for name in self.parts}
        for name, part in self.parts.items():
            field = fields[name]
            if part.flatten is None and field is not None:  # a row of numbers
                count = len(part.labels)
                fields[name] = (*field, *(0,) * count)[:count]
        return self.value_type(**fields)

    @staticmethod
    def _flatten_field(part: Part, field: Any) -> Sequence[Any]:
        """Return the numbers of a field; zeros if it is None."""
        if field is None:
            return [bytes(struct.calcsize(part.codes))] if part.is_bytes else [0] * len(part.codes)
        numbers = list(part.flatten(field) if part.flatten else field)
        if len(numbers) != len(part.labels):
            raise BadRequestError(
                f"{part.name} must have {len(part.labels)} numbers in this dialect, not "
                f"{len(numbers)}"
            )
        return numbers
