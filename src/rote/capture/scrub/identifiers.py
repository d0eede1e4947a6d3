"""Names in what is sent in the clear: found first, in all packets, and then replaced in each.

DNS and mDNS, the names that TLS asks for, serials and tokens in JSON, credentials in HTTP and in
ICE, names in the documented teaching frames. A word learned in one packet is replaced in all.
"""

import re
import struct
from contextlib import suppress

from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError
from rote.wire import dtls, stun, teaching
from rote.wire.discovery import NAME

DNS_PORTS = frozenset((53, 5353, 5355))
MOST_WORDS = 10_000
_SHORTEST = 4
_SECRET_KEYS = rb"sn|serial|token|key|gcm_key|passwd|password|user|username|email|alias|mac|ssid"
_JSON = re.compile(rb'(?i)\\*"(?:' + _SECRET_KEYS + rb')\\*"\s*:\s*\\*"([^"\\]{4,256})\\*"')
_HEADER = re.compile(
    rb"(?im)^(?:authorization|cookie|set-cookie|host|[a-z-]*token|appsign): *([^\r\n]{4,512})"
)
_ICE = re.compile(rb"ice-(?:ufrag|pwd):([A-Za-z0-9+/]{4,256})")
_ADDRESS = re.compile(rb"(?<![\d.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?![\d.])")
_ALL_DIGITS = re.compile(rb"[\d.:]+")
_KEPT = {NAME.encode()}
_NAMED_RECORDS = {2: 0, 5: 0, 12: 0, 39: 0, 15: 2, 33: 6}
"""Records that hold one name, and where in them it begins."""
_TEXT_ATTRIBUTES = {stun.Attribute.SOFTWARE, stun.Attribute.REALM, stun.Attribute.NONCE}


class Words:
    """Which words are to be replaced."""

    def __init__(self, names: Pseudonyms) -> None:
        self._names = names
        self._known: set[bytes] = set()
        self._pattern: re.Pattern[bytes] | None = None

    def __len__(self) -> int:
        return len(self._known)

    def learn(self, payload: bytes) -> None:
        """Look for words that say who somebody is."""
        if payload[:1] == b"\x16":
            self.add(_server_name(payload))
        with suppress(DecodeError):
            self._learn_frame(teaching.decode(payload))
        with suppress(DecodeError):
            for part in (stun.decode(payload).attribute(stun.Attribute.USERNAME) or b"").split(
                b":"
            ):
                self.add(part)
        if b'"' in payload or b": " in payload or b"ice-" in payload:
            for pattern in (_JSON, _HEADER, _ICE):
                for found in pattern.finditer(payload):
                    self.add(found[1].strip())

    def add(self, word: bytes) -> None:
        """Take a word for one that says who somebody is."""
        if len(word) < _SHORTEST or word in _KEPT or _ALL_DIGITS.fullmatch(word):
            return
        if len(self._known) < MOST_WORDS:
            self._known.add(word)

    def _learn_frame(self, frame: teaching.Frame) -> None:
        size = teaching.NAME_BYTES
        if frame.command == teaching.CommandId.SAVE_ACTION and len(frame.payload) == teaching.SAVE:
            self.add(frame.payload[:size].rstrip(b"\0"))
        elif frame.command == teaching.CommandId.LIST_ACTIONS:
            for at in range(2, len(frame.payload) - size, size + 4):
                self.add(frame.payload[at : at + size].rstrip(b"\0"))

    def replace(self, payload: bytes) -> bytes:
        """Return a payload with other words in it, of the same length."""
        with suppress(DecodeError):
            if all(record.epoch for record in dtls.decode_records(payload)):
                return payload  # encrypted, so any word in it is there by chance
        with suppress(DecodeError):
            return self._in_stun(payload)
        with suppress(DecodeError):
            frame = teaching.decode(payload)
            return teaching.encode(frame._replace(payload=self._in_text(frame.payload)))
        result = self._in_text(payload)
        if _is_text(result):
            result = _ADDRESS.sub(self._address, result)
        return result

    def _in_text(self, payload: bytes) -> bytes:
        if not self._known:
            return payload
        if self._pattern is None:
            longest_first = sorted(self._known, key=len, reverse=True)
            self._pattern = re.compile(b"|".join(map(re.escape, longest_first)))
        return self._pattern.sub(lambda found: self._other(found[0]), payload)

    def _other(self, word: bytes) -> bytes:
        return self._names.word(word.decode("latin-1")).encode("latin-1")

    def _address(self, found: re.Match[bytes]) -> bytes:
        numbers = [int(part) for part in found.groups()]
        if max(numbers) > 255 or b".".join(b"%d" % n for n in numbers) != found[0]:
            return found[0]
        return b".".join(b"%d" % n for n in self._names.ipv4(bytes(numbers)))

    def _in_stun(self, payload: bytes) -> bytes:
        message = stun.decode(payload)
        last = message.attributes[-1][0] if message.attributes else 0
        holds = last == stun.Attribute.FINGERPRINT and stun.fingerprint_holds(payload)
        attributes = []
        for number, value in message.attributes:
            new = value
            if number == stun.Attribute.USERNAME:
                new = b":".join(self._other(part) for part in value.split(b":"))
            elif number == stun.Attribute.XOR_MAPPED_ADDRESS and message.mapped is not None:
                new = self._mapped(message)
            elif number == stun.Attribute.MAPPED_ADDRESS and len(value) == 8:
                new = value[:4] + self._names.ipv4(value[4:])
            elif number in _TEXT_ATTRIBUTES:
                new = self._other(value)
            attributes.append((number, new))
        if not holds:
            return stun.encode(message._replace(attributes=tuple(attributes)))
        return stun.encode(message._replace(attributes=tuple(attributes[:-1])), fingerprint=True)

    def _mapped(self, message: stun.Message) -> bytes:
        assert message.mapped is not None
        value = message.attribute(stun.Attribute.XOR_MAPPED_ADDRESS)
        assert value is not None
        mask = stun.MAGIC.to_bytes(4) + message.transaction
        plain = bytes(a ^ b for a, b in zip(value[4:], mask, strict=False))
        other = self._names.ipv4(plain) if len(plain) == 4 else self._names.ipv6(plain)
        return value[:4] + bytes(a ^ b for a, b in zip(other, mask, strict=False))


def _is_text(payload: bytes) -> bool:
    head = payload[:256]
    return bool(head) and sum(32 <= byte < 127 or byte in (9, 10, 13) for byte in head) == len(head)


def _server_name(payload: bytes) -> bytes:
    """Return the name a TLS client asks for, or nothing."""
    at = payload.find(b"\0\0", 43)
    while 0 <= at < len(payload) - 9:
        outer, inner, kind, size = struct.unpack_from(">HHBH", payload, at + 2)
        name = payload[at + 9 : at + 9 + size]
        if (outer, inner, kind) == (size + 5, size + 3, 0) and len(name) == size and name.isascii():
            return name
        at = payload.find(b"\0\0", at + 1)
    return b""


# ---- DNS ----------------------------------------------------------------------------------------


class DnsRewriter:
    """Replaces the names and addresses in one DNS or mDNS message, byte for byte in place."""

    def __init__(self, message: bytes, names: Pseudonyms) -> None:
        self._message = bytearray(message)
        self._names = names
        self._done: set[int] = set()

    def rewritten(self) -> bytes:
        """Return the message with other names; raises `DecodeError` where it is none."""
        try:
            questions, *others = struct.unpack_from(">HHHH", self._message, 4)
            at = 12
            for _ in range(questions):
                at = self._name(at) + 4
            for _ in range(sum(others)):
                at = self._record(self._name(at))
        except (struct.error, IndexError):
            raise DecodeError("a DNS message that does not hold what it says") from None
        if at > len(self._message):
            raise DecodeError("a DNS message that ends too early")
        return bytes(self._message)

    def _record(self, at: int) -> int:
        kind, _, _, size = struct.unpack_from(">HHIH", self._message, at)
        start, end = at + 10, at + 10 + size
        if end > len(self._message):
            raise IndexError
        if kind == 1 and size == 4:
            self._message[start:end] = self._names.ipv4(bytes(self._message[start:end]))
        elif kind == 28 and size == 16:
            self._message[start:end] = self._names.ipv6(bytes(self._message[start:end]))
        elif kind in _NAMED_RECORDS:
            self._name(start + _NAMED_RECORDS[kind])
        elif kind == 6:
            self._name(self._name(start))
        elif kind in (13, 16):
            self._texts(start, end)
        elif kind != 41:
            self._message[start:end] = bytes(size)  # what is in it nobody knows, so it goes
        return int(end)

    def _texts(self, at: int, end: int) -> None:
        while at < end:
            size = min(self._message[at], end - at - 1)
            text = bytes(self._message[at + 1 : at + 1 + size]).decode("latin-1")
            self._message[at + 1 : at + 1 + size] = self._names.word(text).encode("latin-1")
            at += 1 + size

    def _name(self, at: int) -> int:
        """Replace the labels of a name; return where the bytes behind it begin."""
        places: list[tuple[int, int]] = []
        while size := self._message[at]:
            if size >= 0xC0:
                self._replace(places, ended=False)
                return at + 2
            if size > 63 or at + 1 + size >= len(self._message):
                raise IndexError
            places.append((at + 1, size))
            at += 1 + size
        self._replace(places, ended=True)
        return at + 1

    def _replace(self, places: list[tuple[int, int]], *, ended: bool) -> None:
        labels = [bytes(self._message[at : at + size]) for at, size in places]
        if labels[-2:] == [b"in-addr", b"arpa"] and len(labels) == 6:
            numbers = bytes(int(label) & 0xFF for label in labels[:4] if label.isdigit())
            if len(numbers) == 4:
                new = [b"%d" % n for n in self._names.ipv4(numbers[::-1])[::-1]]
                for (at, size), label in zip(places, new, strict=False):
                    self._message[at : at + size] = label.rjust(size, b"0")
                self._done.update(at for at, _ in places)
        top = places[-1][0] if ended and len(places) > 1 else None
        for (at, size), label in zip(places, labels, strict=True):
            kept = label.startswith(b"_") or label in _PLAIN_LABELS or at == top
            if at not in self._done and not kept:
                other = self._names.word(label.decode("latin-1")).encode("latin-1")
                self._message[at : at + size] = other
            self._done.add(at)


_PLAIN_LABELS = {b"local", b"arpa", b"in-addr", b"ip6", b"b", b"lb", b"db", b"dns-sd"}
