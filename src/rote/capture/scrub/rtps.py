"""DDS (RTPS): participants, addresses and names are replaced, samples are cleared."""

import struct

from rote.capture.scrub.identifiers import Identifiers
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError

_INFO_SOURCE, _INFO_REPLY_IP4, _INFO_TARGET, _INFO_REPLY = 0x0C, 0x0D, 0x0E, 0x0F
_DATA, _DATA_FRAGMENT = 0x15, 0x16
_NUMBERS = frozenset((0x01, 0x06, 0x07, 0x08, 0x09, 0x12, 0x13))
"""Submessages that contain only numbers: padding, acknowledgements, heartbeats, gaps, times."""
_DISCOVERY = frozenset((0x000100C2, 0x000003C2, 0x000004C2))
_LOCATORS = frozenset((0x2F, 0x30, 0x31, 0x32, 0x33, 0x48))
_SENTINEL, _TOPIC, _TYPE, _ENTITY_NAME = 0x01, 0x05, 0x07, 0x62
_PLAIN = frozenset(
    (
        0x02, _TOPIC, _TYPE, 0x15, 0x16, 0x1A, 0x1B, 0x1D, 0x1E, 0x1F, 0x23, 0x25, 0x27, 0x40, 0x41,
        0x50, 0x52, 0x53, 0x58, 0x5A, 0x60, 0x70, 0x71, 0x73, 0x77,
    )
)  # fmt: skip
"""Parameters that contain numbers, or participants, which are replaced as bytes."""


class RtpsRewriter:
    """Replaces identifiers in one message."""

    def __init__(
        self, message: bytes, identifiers: Identifiers, names: Pseudonyms, *, keep_samples: bool
    ) -> None:
        self._message = bytearray(message)
        self._identifiers = identifiers
        self._names = names
        self._keep_samples = keep_samples
        self.cleared = False
        """Whether a sample was cleared."""

    def learn(self) -> None:
        """Note the participant, and the addresses and names in discovery."""
        self._identifiers.add_opaque(bytes(self._message[8:20]), "DDS participant")
        self._walk_submessages(learning=True)

    def rewrite(self) -> bytes:
        """Return the message with other identifiers; raises `DecodeError` if it is damaged."""
        self._walk_submessages(learning=False)
        return self._identifiers.replace(bytes(self._message), raw=True)

    def _walk_submessages(self, *, learning: bool) -> None:
        at = 20
        try:
            while at < len(self._message):
                kind, flags = self._message[at], self._message[at + 1]
                order = "<" if flags & 1 else ">"
                (size,) = struct.unpack_from(order + "H", self._message, at + 2)
                start = at + 4
                stop = start + size if size else len(self._message)
                if stop > len(self._message):
                    raise DecodeError("a submessage that is too long")
                if kind in (_DATA, _DATA_FRAGMENT):
                    self._rewrite_data(kind, flags, order, start, stop, learning=learning)
                elif kind not in _NUMBERS and kind not in (_INFO_SOURCE, _INFO_TARGET):
                    self._clear_sample(start, stop)
                at = stop
        except (struct.error, IndexError):
            raise DecodeError("an RTPS message that ends too early") from None

    def _clear_sample(self, start: int, stop: int) -> None:
        if not self._keep_samples:
            self._message[start:stop] = bytes(stop - start)
            self.cleared = True

    def _rewrite_data(
        self, kind: int, flags: int, order: str, start: int, stop: int, *, learning: bool
    ) -> None:
        (skip,) = struct.unpack_from(order + "H", self._message, start + 2)
        writer = int.from_bytes(self._message[start + 8 : start + 12])
        at = start + 4 + skip
        if flags & 2:
            at = self._rewrite_parameters(order, at, stop, learning=learning)
        if kind == _DATA and writer in _DISCOVERY and at + 4 <= stop:
            inner = "<" if self._message[at + 1] & 1 else ">"
            end = self._rewrite_parameters(inner, at + 4, stop, learning=learning)
            self._message[end:stop] = bytes(stop - end)
        else:
            self._clear_sample(min(at, stop), stop)

    def _rewrite_parameters(self, order: str, at: int, stop: int, *, learning: bool) -> int:
        """Rewrite a list of parameters; return where it ends."""
        while at + 4 <= stop:
            kind, size = struct.unpack_from(order + "HH", self._message, at)
            start, end = at + 4, at + 4 + size
            if kind == _SENTINEL:
                return start
            if end > stop:
                raise DecodeError("a parameter that is too long")
            if kind in _LOCATORS and size == 24:
                self._rewrite_locator(start + 8, learning=learning)
            elif kind == _ENTITY_NAME and size > 4:
                name = bytes(self._message[start + 4 : end]).rstrip(b"\0")
                if learning:
                    self._identifiers.add(name)
                self._message[start + 4 : start + 4 + len(name)] = self._names.name(name)
            elif kind not in _PLAIN:
                self._message[start:end] = bytes(size)
            at = end
        return at

    def _rewrite_locator(self, at: int, *, learning: bool) -> None:
        packed = bytes(self._message[at : at + 16])
        four = not any(packed[:12])
        if learning:
            (self._identifiers.add_ipv4 if four else self._identifiers.add_ipv6)(
                packed[12:] if four else packed
            )
        elif four:
            self._message[at + 12 : at + 16] = self._names.ipv4(packed[12:])
        else:
            self._message[at : at + 16] = self._names.ipv6(packed)
