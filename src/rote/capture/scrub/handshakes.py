"""TLS and DTLS: headers and hellos stay, with other server names; the rest becomes zeros.

A certificate identifies its owner, and so does a signature made with its key, so neither stays.
"""

from rote.capture.scrub.masked_copy import MaskedCopy
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError
from rote.wire.packets import dtls

_CHANGE_CIPHER, _ALERT, _HANDSHAKE = 20, 21, 22
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_SERVER_NAME = 0
_KEPT_EXTENSIONS = frozenset((10, 11, 13, 14, 43))
"""Curves, point formats, signatures, media protection, versions: lists of standard numbers."""
_PLAIN_SIZES = {_CHANGE_CIPHER: 1, _ALERT: 2}
_TLS_RECORD, _TLS_MESSAGE, _DTLS_MESSAGE = 5, 4, 12
_MAX_RECORD = 18_432


def mask_tls(copy: MaskedCopy, names: Pseudonyms) -> None:
    """Mask a segment that begins with a TLS record; raises `DecodeError` for any other."""
    at = 0
    while at < len(copy.old) and (at == 0 or _is_tls_record(copy.old, at)):
        if not _is_tls_record(copy.old, at):
            raise DecodeError("not the start of a TLS record")
        copy.keep(at, _TLS_RECORD)
        start, kind = at + _TLS_RECORD, copy.old[at]
        at = start + copy.number(at + 3)
        if kind == _HANDSHAKE:
            _mask_tls_messages(copy, start, at, names)


def _is_tls_record(data: bytes, at: int) -> bool:
    head = data[at : at + _TLS_RECORD]
    return (
        len(head) == _TLS_RECORD
        and 20 <= head[0] <= 24
        and head[1] == 3
        and head[2] <= 4
        and 0 < int.from_bytes(head[3:]) <= _MAX_RECORD
    )


def _mask_tls_messages(copy: MaskedCopy, at: int, end: int, names: Pseudonyms) -> None:
    """Mask the messages of a record, as far as it was captured in this segment."""
    while at + _TLS_MESSAGE <= min(end, len(copy.old)):
        kind, size = copy.old[at], copy.number(at + 1, 3)
        copy.keep(at, _TLS_MESSAGE)
        at += _TLS_MESSAGE
        if kind in (_CLIENT_HELLO, _SERVER_HELLO) and copy.old[at : at + 1] == b"\3":
            try:
                _mask_hello(copy, at, at + size, names, client=kind == _CLIENT_HELLO)
            except DecodeError:
                return  # it continues in the next segment, which has no header and becomes zeros
        at += size


def _mask_hello(copy: MaskedCopy, at: int, end: int, names: Pseudonyms, *, client: bool) -> int:
    """Keep a hello without its session, keys and tickets; return the cipher suite of a server.

    Raises `DecodeError` if it ends too early.
    """
    of_dtls = copy.number(at, 1) == 0xFE
    copy.keep(at, 2 + 32)
    at = _skip_sized(copy, at + 34)
    suite = copy.number(at)
    if client:
        start = at = _skip_sized(copy, at) if of_dtls else at
        at += 2 + copy.number(at)
        at += 1 + copy.number(at, 1)
        copy.keep(start, at - start)  # suites and compressions
    else:
        copy.keep(at, 3)
        at += 3
    copy.keep(at, 2 if at < end else 0)
    at += 2
    while at < end:
        kind, size = copy.number(at), copy.number(at + 2)
        copy.keep(at, 4)
        if kind == _SERVER_NAME and size > 5:
            copy.keep(at + 4, 5)
            copy.replace(at + 9, size - 5, names.name)
        elif kind in _KEPT_EXTENSIONS:
            copy.keep(at + 4, size)
        at += 4 + size
    return suite


def _skip_sized(copy: MaskedCopy, at: int) -> int:
    """Keep only the length of a field; return where the next one begins."""
    copy.keep(at)
    return at + 1 + copy.number(at, 1)


def mask_dtls(copy: MaskedCopy, names: Pseudonyms, *, encrypted: bool) -> bool:
    """Mask a datagram of DTLS records; return whether its server chose a known cipher.

    Encrypted content stays only if it is known to be `encrypted`. Raises `DecodeError` for
    anything else than whole records.
    """
    known, at = False, 0
    for record in dtls.decode_records(copy.old):
        if record.type == dtls.ContentType.HIDDEN:
            if not encrypted:
                raise DecodeError("a short header in a connection without a handshake")
            copy.keep(at, len(copy.old) - at)
            return known
        start, size = at + dtls.RECORD_HEADER, len(record.fragment)
        copy.keep(at, dtls.RECORD_HEADER)
        at = start + size
        if record.epoch:
            copy.keep(start, size if encrypted else 0)
        elif record.type == _HANDSHAKE:
            known |= _mask_dtls_messages(copy, start, at, names)
        elif size == _PLAIN_SIZES.get(record.type):
            copy.keep(start, size)
    return known


def _mask_dtls_messages(copy: MaskedCopy, at: int, end: int, names: Pseudonyms) -> bool:
    known = False
    for piece in dtls.decode_fragments(copy.old[at:end]):
        copy.keep(at, _DTLS_MESSAGE)
        at += _DTLS_MESSAGE
        stop = at + len(piece.body)
        whole, hello = len(piece.body) == piece.length, copy.old[at : at + 1] == b"\xfe"
        if whole and hello and piece.type in (_CLIENT_HELLO, _SERVER_HELLO):
            client = piece.type == _CLIENT_HELLO
            suite = _mask_hello(copy, at, stop, names, client=client)
            known |= not client and suite in dtls.CIPHER_SUITES
        at = stop
    return known
