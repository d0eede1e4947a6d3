"""Bytes from hexadecimal digits: plain, or in a dump as tools and documents print them."""

import re
from typing import NamedTuple

from rote.errors import BadRequestError

_PUNCTUATION = str.maketrans("", "", " \t\r\n:,_-")


def parse_hex(text: str) -> bytes:
    """Return the bytes of hexadecimal digits; blanks, `:`, `,`, `_`, `-` and 0x are ignored."""
    digits = text.translate(_PUNCTUATION).lower().removeprefix("0x")
    bad_digit = next((digit for digit in digits if digit not in "0123456789abcdef"), None)
    if bad_digit is not None:
        raise BadRequestError(f"{bad_digit!r} is not a hexadecimal digit")
    if len(digits) % 2 or not digits:
        raise BadRequestError(
            f"{len(digits)} hexadecimal digits do not make whole bytes",
            "Give two digits for each byte.",
        )
    return bytes.fromhex(digits)


class HexDump(NamedTuple):
    """The bytes of a dump; a byte that the dump leaves out is zero."""

    data: bytes
    unknown: frozenset[int]
    """Offsets of the bytes that the dump leaves out: placeholders, `??`, gaps between offsets."""
    notes: tuple[str, ...]
    """What the dump contains that is not in `data`."""


_COMMENT = re.compile(r"//.*|#.*|;.*|/\*.*?\*/|<!--.*?-->|`")
_ROW_OFFSET = re.compile(
    r"(?:offset\s+)?(?:(?P<first>\d+)\s*-\s*\d+(?::|\s)|0x(?P<hex>[0-9a-f]+):"
    r"|(?P<plain>[0-9a-f]+):)\s+",
    re.IGNORECASE,
)
_BARE_OFFSET = re.compile(r"(?P<plain>[0-9a-f]+)(?P<gap>\s+|$)", re.IGNORECASE)
_LABEL = re.compile(r"[a-z][\w ()/]*:\s+", re.IGNORECASE)
_PLACEHOLDER = re.compile(r"\[[^\]]*\]|\?\?|\bxx\b|\.{2,}|…", re.IGNORECASE)
_SIZE = re.compile(r"(\d+) ?(?:b|bytes?)\b", re.IGNORECASE)
_NAMED_SIZES = {"seq_hi": 1, "seq_lo": 1, "cmd_id": 1, "seq": 2, "varying seq": 2, "crc32": 4}
"""Sizes in bytes of the placeholders that name a field, such as `[crc32]`."""
_MIN_OFFSET_DIGITS = 4
"""Offsets with fewer digits are decimal, as documents print them; tools print more."""


def read_hex_dump(text: str) -> HexDump:
    """Return the bytes of a dump with offsets, labels, comments, placeholders or an ASCII column.

    Raises `BadRequestError` if a line cannot be read, or if an offset does not fit the bytes.
    """
    reader = _DumpReader()
    for number, line in enumerate(text.splitlines(), 1):
        if not reader.read_line(line, number):
            reader.notes.append(
                f"the lines of the dump from {number} on, which begin another frame or table"
            )
            break
    if reader.unplaced:
        reader.notes.append(f"{reader.unplaced} bytes of the dump after a part of unknown size")
    if len(reader.unknown) == len(reader.data):
        parse_hex(text)  # raises an error that names the wrong digit
        raise BadRequestError("the dump contains no bytes", "Give two digits for each byte.")
    return HexDump(bytes(reader.data), frozenset(reader.unknown), tuple(reader.notes))


class _DumpReader:
    """Collects the bytes of a dump line by line."""

    def __init__(self) -> None:
        self.data = bytearray()
        self.unknown: set[int] = set()
        self.unplaced = 0
        """Bytes after a part of unknown size, such as `...`."""
        self.notes: list[str] = []
        self._lost_position = False
        """Whether the offset of the next byte is not known: a part of unknown size came before."""
        self._repeats = False
        """Whether the line before was `*`: the row before it is repeated up to the next offset."""
        self._last_row = b""

    def read_line(self, line: str, number: int) -> bool:
        """Add the bytes of one line; return False if offset 0 comes again, as in a second table."""
        line = line.strip().strip("|│").strip()  # the borders of a table
        if line == "*":
            self._repeats = True
            return True
        bytes_column = line.split("|")[0]  # after it, hexdump -C shows the bytes as text
        line, offset = self._split_offset(_COMMENT.sub("", bytes_column).rstrip())
        if offset == 0 and self.data:
            return False
        if offset is not None:
            self._fill_up_to(offset, number)
        label = _LABEL.match(line)
        line = _strip_ascii_column(line[label.end() :] if label else line)
        row_start = len(self.data)
        for column in re.split(r"\s{2,}|\t", line):
            if not self._read_column(column, number):
                break
        self._last_row = bytes(self.data[row_start:]) or self._last_row
        return True

    def _split_offset(self, line: str) -> tuple[str, int | None]:
        """Return a line without the offset at its start, and that offset; None if it has none."""
        match = _ROW_OFFSET.match(line + " ")
        if match is None:
            match = _BARE_OFFSET.match(line)
            if match is None or not self._is_offset(match["plain"], match["gap"], line):
                return line, None
        groups = match.groupdict()
        if groups.get("first"):  # a decimal range, such as 0-15:
            offset = int(groups["first"])
        elif groups.get("hex"):
            offset = int(groups["hex"], 16)
        else:
            digits = groups["plain"]
            is_decimal = len(digits) < _MIN_OFFSET_DIGITS and digits.isdecimal()
            offset = int(digits, 10 if is_decimal else 16)
        return line[match.end() :], offset

    def _is_offset(self, digits: str, gap: str, line: str) -> bool:
        """Whether the first number of a line, without a colon, is an offset and not bytes.

        `gap` are the blanks after it.
        """
        if len(digits) < _MIN_OFFSET_DIGITS:  # two digits are more likely a byte
            return digits.isdecimal() and len(digits) != 2 and len(gap) > 1
        is_next_offset = int(digits, 16) == len(self.data)
        if not is_next_offset and not self._repeats:
            return False
        # hexdump ends with a line that has only the offset of the end.
        is_end = line == digits and len(self.data) > 0
        return is_end or bool(re.match(r"\s{2,}|\s[0-9a-f]{2}(\s|$)", line[len(digits) :]))

    def _fill_up_to(self, offset: int, number: int) -> None:
        """Fill the gap before the offset of line `number`.

        After `*` the last row is repeated; otherwise the bytes of the gap are unknown.
        """
        missing = offset - len(self.data)
        if missing < 0:
            raise BadRequestError(
                f"line {number} of the dump is at offset {offset}, but {len(self.data)} bytes "
                "come before it",
                "Give one frame, without the table that repeats its bytes.",
            )
        if self._repeats and self._last_row:
            rows = missing // len(self._last_row) + 1
            self.data += (self._last_row * rows)[:missing]
        else:
            self._skip_bytes(missing)
        self._repeats = self._lost_position = False

    def _skip_bytes(self, count: int) -> None:
        """Add bytes that are not known."""
        self.unknown.update(range(len(self.data), len(self.data) + count))
        self.data += bytes(count)

    def _read_column(self, column: str, number: int) -> bool:
        """Add the bytes of one column; return False if it is a comment."""
        rest = column
        while rest := rest.strip(" ,{}"):
            if placeholder := _PLACEHOLDER.match(rest):
                self._read_placeholder(placeholder[0])
                rest = rest[placeholder.end() :]
                continue
            # A word ends at a blank, a comma or the next placeholder.
            word = re.split(r"[\s,]|(?=\.\.|…|\[|\?\?)", rest, maxsplit=1)[0]
            data = _parse_word(word)
            if data is None:
                is_comment = rest == column or word[0] in "(=\"'"
                if is_comment:
                    return False
                raise BadRequestError(
                    f"line {number} of the dump: {word!r} is not a hexadecimal byte",
                    "Give two digits for each byte, and ?? for a byte that is not known.",
                )
            self._add_bytes(data)
            rest = rest[len(word) :]
        return True

    def _add_bytes(self, new: bytes) -> None:
        if self._lost_position:
            self.unplaced += len(new)
        else:
            self.data += new

    def _read_placeholder(self, text: str) -> None:
        """Add the bytes of `[17 fe]`, or skip those of `??`, `[crc32]` or `[4 bytes]`.

        After any other placeholder, such as `...`, the position is lost.
        """
        content = text.strip("[]").strip().lower()
        if text[0] == "[" and (data := _parse_word(re.sub("[ ,]", "", content))):
            self._add_bytes(data)
            return
        if text[0] in "?xX":
            count = 1
        elif content in _NAMED_SIZES:
            count = _NAMED_SIZES[content]
        else:
            size = _SIZE.match(content)
            count = int(size[1]) if size else 0
        if not count:
            self._lost_position = True
        elif not self._lost_position:
            self._skip_bytes(count)


def _parse_word(word: str) -> bytes | None:
    """Return the bytes of a word like `17`, `17fe`, `17:fe`, `0x17` or `\\x17\\xfe`; else None."""
    digits = re.sub(r"0x|\\x|[:_-]", "", word.lower())
    return bytes.fromhex(digits) if re.fullmatch(r"(?:[0-9a-f]{2})+", digits) else None


def _strip_ascii_column(line: str) -> str:
    """Return a line without the column that shows its bytes as text."""
    for gap in re.finditer(r"\s{2,}", line):
        row = _parse_word(re.sub(r"\s", "", line[: gap.start()]))
        if row is None:
            return line
        row_as_text = "".join(chr(byte) if 0x20 < byte < 0x7F else "." for byte in row)
        if re.sub(r"\s", ".", line[gap.end() :]) == row_as_text:
            return line[: gap.start()]
    return line
