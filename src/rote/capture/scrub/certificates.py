"""Replaces names, numbers and keys in certificates; their length stays."""

from rote.capture.scrub.identifiers import Identifiers
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError

_INTEGER, _BITS, _OCTETS = 0x02, 0x03, 0x04
_TEXTS = frozenset((0x0C, 0x13, 0x14, 0x16, 0x1A, 0x1B, 0x1C, 0x1E))
_NAME_CHOICES = frozenset((0x81, 0x82, 0x86))
"""In a list of alternative names: mail address, host name, URI."""
_ADDRESS_CHOICE = 0x87
_ANONYMOUS = frozenset((b"WebRTC", b"webrtc", b"rote", b"aiortc", b"RTC"))
"""Names that programs give the temporary certificates of WebRTC."""
_MAX_DEPTH = 16


def rewrite_certificate(
    certificate: bytes, identifiers: Identifiers, names: Pseudonyms, *, learning: bool
) -> bytes | None:
    """Return a certificate with replaced contents; None if it identifies no device or person.

    Raises `DecodeError` if it cannot be read.
    """
    texts: list[bytes] = []
    new = bytearray(certificate)
    _walk_values(new, 0, len(new), _ValueReplacer(identifiers, names, texts, learning))
    return None if texts and all(text in _ANONYMOUS for text in texts) else bytes(new)


class _ValueReplacer:
    """Replaces the values of a certificate."""

    def __init__(
        self, identifiers: Identifiers, names: Pseudonyms, texts: list[bytes], learning: bool
    ) -> None:
        self._identifiers = identifiers
        self._names = names
        self._texts = texts
        self._learning = learning

    def text(self, old: bytes) -> bytes:
        if len(old) == 2 and old.isupper():
            return old  # a country
        self._texts.append(old)
        if self._learning and old not in _ANONYMOUS:
            self._identifiers.add(old)
        return self._names.name(old)

    def opaque(self, old: bytes) -> bytes:
        return self._names.opaque(old)

    def address(self, old: bytes) -> bytes:
        if len(old) == 4:
            return self._names.ipv4(old)
        return self._names.ipv6(old) if len(old) == 16 else bytes(len(old))


def _walk_values(
    data: bytearray, at: int, end: int, replacer: _ValueReplacer, depth: int = 0
) -> None:
    while at < end:
        tag, start, stop = _read_der_header(data, at, end)
        old = bytes(data[start:stop])
        if tag in _TEXTS or tag in _NAME_CHOICES:
            data[start:stop] = replacer.text(old)
        elif tag == _ADDRESS_CHOICE:
            data[start:stop] = replacer.address(old)
        elif tag & 0x20:
            if depth < _MAX_DEPTH:
                _walk_values(data, start, stop, replacer, depth + 1)
            else:
                data[start:stop] = bytes(stop - start)
        elif tag == _INTEGER and stop - start > 4:
            data[start + 1 : stop] = replacer.opaque(old[1:])
        elif tag == _BITS and stop - start > 4:
            data[start + 2 : stop] = replacer.opaque(old[2:])
        elif tag == _OCTETS and stop - start > 1:
            _rewrite_octets(data, start, stop, replacer, depth)
        at = stop


def _rewrite_octets(
    data: bytearray, start: int, stop: int, replacer: _ValueReplacer, depth: int
) -> None:
    """Rewrite an octet string, which contains nested values or opaque data."""
    inner = bytearray(data[start:stop])
    try:
        if depth >= _MAX_DEPTH or inner[0] not in (0x30, 0x03, 0x04, 0x01):
            raise DecodeError("no value")
        _walk_values(inner, 0, len(inner), replacer, depth + 1)
    except DecodeError:
        inner[:] = replacer.opaque(bytes(data[start:stop]))
    data[start:stop] = inner


def _read_der_header(data: bytearray, at: int, end: int) -> tuple[int, int, int]:
    """Return the tag of a value, and where its contents begin and end."""
    if at + 2 > end or data[at] & 0x1F == 0x1F:
        raise DecodeError("a certificate that ends too early")
    tag, size, start = data[at], data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        if not 1 <= count <= 3 or start + count > end:
            raise DecodeError("a certificate with a length that cannot be")
        size = int.from_bytes(data[start : start + count])
        start += count
    if start + size > end:
        raise DecodeError("a certificate that ends too early")
    return tag, start, start + size
