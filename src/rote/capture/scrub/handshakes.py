"""TLS, DTLS and QUIC: encrypted parts stay, names in the handshake are replaced.

The first packets of QUIC are encrypted with publicly derivable keys, so they are cleared.
"""

import struct
from contextlib import suppress

from rote.capture.scrub import certificates
from rote.capture.scrub.identifiers import Identifiers
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError
from rote.wire.packets import dtls

_CHANGE_CIPHER, _ALERT, _HANDSHAKE, _APPLICATION = 20, 21, 22, 23
_CLIENT_HELLO, _CERTIFICATE = 1, 11
_SERVER_NAME = 0
_QUIC_VERSIONS = frozenset((1, 0x6B3343CF)) | frozenset(range(0xFF00001D, 0xFF000023))
_QUIC_2 = 0x6B3343CF
_RECORD = 5
_MAX_RECORD = 18_432


class Handshakes:
    """Replaces names in messages of a handshake."""

    def __init__(self, identifiers: Identifiers, names: Pseudonyms) -> None:
        self._identifiers = identifiers
        self._names = names
        self.learning = False
        self.anonymous = 0
        """Certificates that identify no device or person and were kept."""

    def message(self, kind: int, body: bytes) -> bytes:
        """Return the body of a whole handshake message with other names.

        Raises `DecodeError` if it cannot be read.
        """
        try:
            if kind == _CLIENT_HELLO:
                return self._client_hello(bytearray(body))
            if kind == _CERTIFICATE:
                return self._rewrite_certificates(bytearray(body))
        except (IndexError, struct.error):
            raise DecodeError("a handshake that ends too early") from None
        return body

    def _client_hello(self, body: bytearray) -> bytes:
        """Replace the server name; a hello of DTLS has a cookie after the session."""
        at = 34
        at += 1 + body[at]
        if body[0] == 0xFE:
            at += 1 + body[at]
        at += 2 + struct.unpack_from(">H", body, at)[0]
        at += 1 + body[at]
        if at == len(body):
            return bytes(body)
        end = at + 2 + struct.unpack_from(">H", body, at)[0]
        at += 2
        if end != len(body):
            raise DecodeError("extensions that do not end with the hello")
        while at < end:
            kind, size = struct.unpack_from(">HH", body, at)
            start, stop = at + 4, at + 4 + size
            if stop > end:
                raise DecodeError("an extension that is too long")
            if kind == _SERVER_NAME and size > 5:
                name = bytes(body[start + 5 : stop])
                if self.learning:
                    self._identifiers.add(name)
                body[start + 5 : stop] = self._names.name(name)
            at = stop
        return bytes(body)

    def _rewrite_certificates(self, body: bytearray) -> bytes:
        """Replace the names in each certificate of TLS 1.2; those of 1.3 are encrypted."""
        if len(body) < 3 or int.from_bytes(body[:3]) != len(body) - 3:
            raise DecodeError("a list of certificates that is not whole")
        at = 3
        while at < len(body):
            size = int.from_bytes(body[at : at + 3])
            start, stop = at + 3, at + 3 + size
            if stop > len(body):
                raise DecodeError("a certificate that is not whole")
            new = certificates.rewrite_certificate(
                bytes(body[start:stop]), self._identifiers, self._names, learning=self.learning
            )
            if new is None:
                self.anonymous += not self.learning
            else:
                body[start:stop] = new
            at = stop
        return bytes(body)

    # ---- DTLS -----------------------------------------------------------------------------------

    def dtls(self, datagram: bytes) -> bytes:
        """Return a datagram of records; raises `DecodeError` if it is none."""
        records = dtls.decode_records(datagram)
        if all(record.epoch for record in records):
            return datagram
        result, at = bytearray(datagram), 0
        for record in records:
            start = at + dtls.RECORD_HEADER
            stop = start + len(record.fragment)
            if record.epoch == 0 and record.type == _HANDSHAKE:
                result[start:stop] = self._dtls_handshake(bytes(record.fragment))
            elif record.epoch == 0 and record.type == _APPLICATION:
                result[start:stop] = bytes(stop - start)
            at = stop
        return bytes(result) if at == len(datagram) else bytes(len(datagram))

    def _dtls_handshake(self, content: bytes) -> bytes:
        try:
            fragments = dtls.decode_fragments(content)
        except DecodeError:
            return bytes(len(content))
        result, at = bytearray(content), 0
        for fragment in fragments:
            start, stop = at + 12, at + 12 + len(fragment.body)
            whole = len(fragment.body) == fragment.length
            if fragment.type in (_CLIENT_HELLO, _CERTIFICATE):
                new = bytes(stop - start)  # where names begin in a fragment is not known
                if whole:
                    with suppress(DecodeError):
                        new = self.message(fragment.type, bytes(fragment.body))
                result[start:stop] = new
            at = stop
        return bytes(result)


class TlsStream:
    """Follows the records of one direction of a TCP connection."""

    def __init__(self) -> None:
        self._next = 0
        """The sequence number of the next record's header."""
        self._kind = 0
        """What the bytes up to there belong to."""
        self._sealed = False
        self.cleared = 0
        """Segments in which a part of a handshake was cleared."""

    @staticmethod
    def begins(payload: bytes) -> bool:
        """Whether a segment begins like a record of a handshake."""
        return _is_record(payload, 0) and payload[0] == _HANDSHAKE

    def segment(self, sequence: int, payload: bytes, handshakes: Handshakes) -> bytes:
        """Return a segment in which encrypted parts stay, and names are replaced."""
        result = bytearray(payload)
        at = (self._next - sequence) & 0xFFFF_FFFF
        if at > 1 << 31 or at > len(payload) + _MAX_RECORD:  # something is missing, or came again
            at = 0
            if not _is_record(payload, 0):
                return payload if self._sealed else bytes(len(payload))
        elif at:
            stop = min(at, len(payload))
            if self._kind == _HANDSHAKE and not self._sealed:
                result[:stop] = bytes(stop)
                self.cleared += 1
        while at < len(payload):
            if len(payload) - at < _RECORD:
                break
            if not _is_record(payload, at):
                result[at:] = bytes(len(payload) - at)
                at = len(payload)
                break
            kind, size = payload[at], struct.unpack_from(">H", payload, at + 3)[0]
            start, stop = at + _RECORD, at + _RECORD + size
            self._kind = kind
            self._sealed |= kind in (_CHANGE_CIPHER, _APPLICATION)
            if kind == _HANDSHAKE and not self._sealed:
                inside = payload[start:stop]
                whole = stop <= len(payload)
                result[start:stop] = self._rewrite_handshake(inside, handshakes, whole=whole)
            at = stop
        self._next = (sequence + at) & 0xFFFF_FFFF
        return bytes(result[: len(payload)])

    def _rewrite_handshake(self, record: bytes, handshakes: Handshakes, *, whole: bool) -> bytes:
        result, at = bytearray(record), 0
        while at < len(record):
            stop = at + 4 + int.from_bytes(record[at + 1 : at + 4])
            if not whole or stop > len(record):
                result[at + 4 :] = bytes(max(0, len(record) - at - 4))
                self.cleared += 1
                break
            try:
                result[at + 4 : stop] = handshakes.message(record[at], record[at + 4 : stop])
            except DecodeError:
                result[at + 4 : stop] = bytes(stop - at - 4)
                self.cleared += 1
            at = stop
        return bytes(result)


def _is_record(payload: bytes, at: int) -> bool:
    return (
        len(payload) >= at + _RECORD
        and _CHANGE_CIPHER <= payload[at] <= _APPLICATION + 1
        and payload[at + 1] == 3
        and payload[at + 2] <= 4
        and 0 < struct.unpack_from(">H", payload, at + 3)[0] <= _MAX_RECORD
    )


# ---- QUIC ---------------------------------------------------------------------------------------


def is_quic(payload: bytes) -> bool:
    """Whether a datagram begins with a long header of a known version."""
    if len(payload) < 7 or payload[0] & 0x80 == 0:
        return False
    version = int.from_bytes(payload[1:5])
    if version in _QUIC_VERSIONS:
        return payload[0] & 0x40 != 0 and payload[5] <= 20
    return version == 0 and payload[5] <= 20 and len(payload) < 128


def quic(payload: bytes) -> bytes:
    """Return a datagram whose initial packets and tokens are cleared."""
    result, at = bytearray(payload), 0
    try:
        while at < len(payload) and payload[at] & 0x80:
            at = _quic_packet(payload, result, at)
    except IndexError:
        result[at + 1 :] = bytes(len(payload) - at - 1)
    return bytes(result)


def _quic_packet(payload: bytes, result: bytearray, begin: int) -> int:
    """Clear one packet with a long header; return where the next begins."""
    version = int.from_bytes(payload[begin + 1 : begin + 5])
    at = begin + 5
    for _ in range(2):
        at += 1 + payload[at]
    if version == 0:
        return len(payload)
    kind = payload[begin] >> 4 & 3
    if version == _QUIC_2:
        kind = (kind - 1) & 3
    if kind == 3:  # a retry: its token may contain an address
        result[at:] = bytes(max(0, len(payload) - at))
        return len(payload)
    if kind == 0:
        size, at = _read_varint(payload, at)
        result[at : at + size] = bytes(max(0, min(size, len(payload) - at)))
        at += size
    size, at = _read_varint(payload, at)
    if kind == 0:
        result[at : at + size] = bytes(max(0, min(size, len(payload) - at)))
    return at + size


def _read_varint(payload: bytes, at: int) -> tuple[int, int]:
    width = 1 << (payload[at] >> 6)
    value = int.from_bytes(payload[at : at + width]) & ((1 << 8 * width - 2) - 1)
    if at + width > len(payload):
        raise IndexError
    return value, at + width
