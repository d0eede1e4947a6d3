"""Masks TLS and DTLS: headers and hellos stay, with other server names; the rest becomes zeros.

A certificate identifies its owner, and so does a signature made with its key, so neither stays.
"""

from rote.capture.scrub.pseudonyms import MaskedCopy, Pseudonyms
from rote.errors import DecodeError
from rote.wire.packets import dtls

_CHANGE_CIPHER, _ALERT, _HANDSHAKE = 20, 21, 22
_CLIENT_HELLO, _SERVER_HELLO = 1, 2
_SERVER_NAME = 0
_KEPT_EXTENSIONS = frozenset((10, 11, 13, 14, 43))
"""Curves, point formats, signatures, media protection, versions: lists of standard numbers."""
_PLAIN_SIZES = {_CHANGE_CIPHER: 1, _ALERT: 2}
"""Records that are not encrypted if they have this size."""
_TLS_RECORD, _TLS_MESSAGE, _DTLS_MESSAGE = 5, 4, 12
"""Sizes of headers."""
_MAX_RECORD = 18_432


def mask_tls(copy: MaskedCopy, names: Pseudonyms) -> None:
    """Mask a segment that begins with a TLS record; raises `DecodeError` for any other."""
    if copy.old and not _is_tls_record(copy.old, 0):
        raise DecodeError("not the start of a TLS record")
    offset = 0
    while _is_tls_record(copy.old, offset):
        copy.keep(offset, _TLS_RECORD)
        start, kind = offset + _TLS_RECORD, copy.old[offset]
        offset = start + copy.read_number(offset + 3)
        if kind == _HANDSHAKE:
            _mask_tls_messages(copy, start, offset, names)


def _is_tls_record(data: bytes, offset: int) -> bool:
    """Whether a TLS record begins at `offset`: its type, version and length are possible."""
    head = data[offset : offset + _TLS_RECORD]
    return (
        len(head) == _TLS_RECORD
        and 20 <= head[0] <= 24
        and head[1] == 3
        and head[2] <= 4
        and 0 < int.from_bytes(head[3:]) <= _MAX_RECORD
    )


def _mask_tls_messages(copy: MaskedCopy, offset: int, end: int, names: Pseudonyms) -> None:
    """Mask the handshake messages of a record, as far as it was captured in this segment."""
    while offset + _TLS_MESSAGE <= min(end, len(copy.old)):
        kind, size = copy.old[offset], copy.read_number(offset + 1, 3)
        copy.keep(offset, _TLS_MESSAGE)
        offset += _TLS_MESSAGE
        if kind in (_CLIENT_HELLO, _SERVER_HELLO) and copy.old[offset : offset + 1] == b"\3":
            try:
                _mask_hello(copy, offset, offset + size, names, client=kind == _CLIENT_HELLO)
            except DecodeError:
                return  # it continues in the next segment, which becomes zeros
        offset += size


def _mask_hello(copy: MaskedCopy, offset: int, end: int, names: Pseudonyms, *, client: bool) -> int:
    """Keep a hello without its session, keys and tickets; return the cipher suite of a server.

    What it returns for a client's hello has no meaning. Raises `DecodeError` if it ends too early.
    """
    is_dtls = copy.read_number(offset, 1) == 0xFE
    copy.keep(offset, 2 + 32)  # version and random
    offset = _skip_sized(copy, offset + 34)  # the session
    suite = copy.read_number(offset)
    if client:
        if is_dtls:
            offset = _skip_sized(copy, offset)  # the cookie
        start = offset
        offset += 2 + copy.read_number(offset)
        offset += 1 + copy.read_number(offset, 1)
        copy.keep(start, offset - start)  # suites and compressions
    else:
        copy.keep(offset, 3)  # suite and compression
        offset += 3
    copy.keep(offset, 2 if offset < end else 0)  # the length of all extensions
    offset += 2
    while offset < end:
        kind, size = copy.read_number(offset), copy.read_number(offset + 2)
        copy.keep(offset, 4)
        if kind == _SERVER_NAME and size > 5:
            # 5 bytes before the name: length of the list, type of name, length of the name.
            copy.keep(offset + 4, 5)
            copy.replace(offset + 9, size - 5, names.name)
        elif kind in _KEPT_EXTENSIONS:
            copy.keep(offset + 4, size)
        offset += 4 + size
    return suite


def _skip_sized(copy: MaskedCopy, offset: int) -> int:
    """Keep the length of a field, in its first byte, but not its content; return where it ends."""
    copy.keep(offset)
    return offset + 1 + copy.read_number(offset, 1)


def mask_dtls(copy: MaskedCopy, names: Pseudonyms, *, encrypted: bool) -> bool:
    """Mask a datagram of DTLS records; return whether a server hello in it chose a known cipher.

    Content that looks encrypted stays only if `encrypted` is true: a handshake has proven that this
    flow is encrypted. Raises `DecodeError` for anything but whole records.
    """
    chose_known_cipher, offset = False, 0
    for record in dtls.decode_records(copy.old):
        if record.type == dtls.ContentType.HIDDEN:
            if not encrypted:
                raise DecodeError("a short header in a connection without a handshake")
            copy.keep(offset, len(copy.old) - offset)
            return chose_known_cipher
        start, size = offset + dtls.RECORD_HEADER, len(record.fragment)
        copy.keep(offset, dtls.RECORD_HEADER)
        offset = start + size
        if record.epoch:
            copy.keep(start, size if encrypted else 0)
        elif record.type == _HANDSHAKE:
            chose_known_cipher |= _mask_dtls_messages(copy, start, offset, names)
        elif size == _PLAIN_SIZES.get(record.type):
            copy.keep(start, size)
    return chose_known_cipher


def _mask_dtls_messages(copy: MaskedCopy, offset: int, end: int, names: Pseudonyms) -> bool:
    """Mask handshake messages; return whether a server hello in them chose a known cipher."""
    chose_known_cipher = False
    for piece in dtls.decode_fragments(copy.old[offset:end]):
        copy.keep(offset, _DTLS_MESSAGE)
        offset += _DTLS_MESSAGE
        stop = offset + len(piece.body)
        is_whole = len(piece.body) == piece.length
        is_hello = copy.old[offset : offset + 1] == b"\xfe"  # it begins with a version of DTLS
        if is_whole and is_hello and piece.type in (_CLIENT_HELLO, _SERVER_HELLO):
            client = piece.type == _CLIENT_HELLO
            suite = _mask_hello(copy, offset, stop, names, client=client)
            chose_known_cipher |= not client and suite in dtls.CIPHER_SUITES
        offset = stop
    return chose_known_cipher
