"""The unencrypted messages of a DTLS handshake: hellos, certificates and key exchanges.

Decoders raise only `DecodeError`, for any bytes. RFC 5246, 5764 and 7627.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum

from rote.errors import TruncatedError
from rote.wire.packets.dtls import Handshake, HandshakeType, Version


class ExtensionType(IntEnum):
    """Extensions of a hello that are useful in a capture."""

    SERVER_NAME = 0
    SUPPORTED_GROUPS = 10
    USE_SRTP = 14
    EXTENDED_MASTER_SECRET = 23
    SUPPORTED_VERSIONS = 43


@dataclass(frozen=True, slots=True, kw_only=True)
class Hello:
    """What both hellos have in common."""

    random: bytes
    version: int = Version.DTLS_1_2
    session: bytes = b""
    extensions: tuple[tuple[int, bytes], ...] = ()

    def extension(self, kind: int) -> bytes | None:
        """Return the content of an extension, or None if it is not there."""
        return next((data for number, data in self.extensions if number == kind), None)

    @property
    def extended_master_secret(self) -> bool:
        """Whether the master secret is bound to this handshake."""
        return self.extension(ExtensionType.EXTENDED_MASTER_SECRET) is not None

    @property
    def srtp_profiles(self) -> tuple[int, ...]:
        """The SRTP protection profiles; empty if there are none."""
        data = self.extension(ExtensionType.USE_SRTP) or b""
        size = int.from_bytes(data[:2])  # of the profiles that follow
        return _read_words(data[2 : 2 + size])

    @property
    def versions(self) -> tuple[int, ...]:
        """All versions that a client offers, or the version that a server chose."""
        data = self.extension(ExtensionType.SUPPORTED_VERSIONS)
        if data is None:
            return (self.version,)
        # A client's list begins with its length, in one byte.
        return _read_words(data[1:] if isinstance(self, ClientHello) else data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHello(Hello):
    """A client's first message, sent again with the cookie if the server asks for it."""

    cookie: bytes = b""
    cipher_suites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHello(Hello):
    """A server's choice of version and cipher suite."""

    cipher_suite: int = 0


@dataclass(frozen=True, slots=True)
class HelloVerifyRequest:
    """A server's request to repeat the hello with a cookie, which proves the client's address."""

    cookie: bytes
    version: int = Version.DTLS_1_2


@dataclass(frozen=True, slots=True)
class Certificate:
    """One end's chain of certificates, its own first.

    In WebRTC the signalling announces the fingerprint of the first one.
    """

    certificates: tuple[bytes, ...]

    @property
    def fingerprint(self) -> str:
        """The SHA-256 of the first certificate, as in SDP; empty if there is none."""
        if not self.certificates:
            return ""
        import hashlib  # noqa: PLC0415 - loads OpenSSL, which few captures need

        return hashlib.sha256(self.certificates[0]).digest().hex(":").upper()


GROUPS = {23: "secp256r1", 24: "secp384r1", 25: "secp521r1", 29: "x25519", 30: "x448"}
"""The curves of key exchanges."""
_NAMED_CURVE = 3
"""The form of a key exchange that states its curve by one of these numbers."""
_NO_COMPRESSION = b"\0"


@dataclass(frozen=True, slots=True)
class ServerKeyExchange:
    """A server's half of an elliptic-curve key exchange."""

    group: int
    public_key: bytes


@dataclass(frozen=True, slots=True)
class ClientKeyExchange:
    """A client's half of an elliptic-curve key exchange."""

    public_key: bytes


HandshakeContent = (
    ClientHello
    | ServerHello
    | HelloVerifyRequest
    | Certificate
    | ServerKeyExchange
    | ClientKeyExchange
)


class _Reader:
    """Reads fields from bytes in their order; raises `TruncatedError` at the end."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._offset = 0

    @property
    def has_more(self) -> bool:
        return self._offset < len(self._data)

    def take(self, size: int) -> bytes:
        begin, end = self._offset, self._offset + size
        if end > len(self._data):
            raise TruncatedError(end, len(self._data))
        self._offset = end
        return self._data[begin:end]

    def take_number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def take_prefixed(self, length_size: int) -> bytes:
        """Return the bytes that follow their length, a number of `length_size` bytes."""
        return self.take(self.take_number(length_size))


def _read_words(data: bytes) -> tuple[int, ...]:
    """Return the 16-bit numbers in `data`, without an odd byte at its end."""
    return tuple(int.from_bytes(data[start : start + 2]) for start in range(0, len(data) - 1, 2))


def _read_extensions(reader: _Reader) -> tuple[tuple[int, bytes], ...]:
    if not reader.has_more:
        return ()
    inner = _Reader(reader.take_prefixed(2))
    extensions: list[tuple[int, bytes]] = []
    while inner.has_more:
        extensions.append((inner.take_number(2), inner.take_prefixed(2)))
    return tuple(extensions)


def _read_client_hello(reader: _Reader) -> ClientHello:
    version, random, session = reader.take_number(2), reader.take(32), reader.take_prefixed(1)
    cookie, suites = reader.take_prefixed(1), _read_words(reader.take_prefixed(2))
    reader.take_prefixed(1)  # compression methods
    return ClientHello(
        version=version,
        random=random,
        session=session,
        cookie=cookie,
        cipher_suites=suites,
        extensions=_read_extensions(reader),
    )


def _read_server_hello(reader: _Reader) -> ServerHello:
    version, random, session = reader.take_number(2), reader.take(32), reader.take_prefixed(1)
    suite = reader.take_number(2)
    reader.take(1)  # compression method
    return ServerHello(
        version=version,
        random=random,
        session=session,
        cipher_suite=suite,
        extensions=_read_extensions(reader),
    )


def _read_verify_request(reader: _Reader) -> HelloVerifyRequest:
    version = reader.take_number(2)
    return HelloVerifyRequest(reader.take_prefixed(1), version)


def _read_certificate(reader: _Reader) -> Certificate:
    chain = _Reader(reader.take_prefixed(3))
    certificates: list[bytes] = []
    while chain.has_more:
        certificates.append(chain.take_prefixed(3))
    return Certificate(tuple(certificates))


def _read_server_key(reader: _Reader) -> ServerKeyExchange | None:
    if reader.take_number(1) != _NAMED_CURVE:  # other forms are obsolete
        return None
    return ServerKeyExchange(reader.take_number(2), reader.take_prefixed(1))


_READERS: dict[int, Callable[[_Reader], HandshakeContent | None]] = {
    HandshakeType.CLIENT_HELLO: _read_client_hello,
    HandshakeType.SERVER_HELLO: _read_server_hello,
    HandshakeType.HELLO_VERIFY_REQUEST: _read_verify_request,
    HandshakeType.CERTIFICATE: _read_certificate,
    HandshakeType.SERVER_KEY_EXCHANGE: _read_server_key,
    HandshakeType.CLIENT_KEY_EXCHANGE: lambda reader: ClientKeyExchange(reader.take_prefixed(1)),
}


def decode_handshake(handshake: Handshake) -> HandshakeContent | None:
    """Return the content of a handshake message; None for types that are not read here."""
    read = _READERS.get(handshake.type)
    return read(_Reader(handshake.body)) if read else None


# ---- writing ------------------------------------------------------------------------------------


def _prepend_length(length_size: int, data: bytes) -> bytes:
    return len(data).to_bytes(length_size) + data


def _write_words(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(2) for number in numbers)


def _write_hello_start(hello: Hello) -> bytes:
    """Return the fields with which both hellos begin."""
    return hello.version.to_bytes(2) + hello.random + _prepend_length(1, hello.session)


def _write_extensions(hello: Hello) -> bytes:
    if not hello.extensions:
        return b""
    return _prepend_length(
        2,
        b"".join(kind.to_bytes(2) + _prepend_length(2, data) for kind, data in hello.extensions),
    )


def encode_handshake(content: HandshakeContent, number: int, signature: bytes = b"") -> Handshake:
    """Return `content` as the handshake message with this number.

    `signature` is appended to a `ServerKeyExchange`.
    """
    match content:
        case ClientHello():
            kind = HandshakeType.CLIENT_HELLO
            body = (
                _write_hello_start(content)
                + _prepend_length(1, content.cookie)
                + _prepend_length(2, _write_words(content.cipher_suites))
                + _prepend_length(1, _NO_COMPRESSION)
                + _write_extensions(content)
            )
        case ServerHello():
            kind = HandshakeType.SERVER_HELLO
            body = (
                _write_hello_start(content)
                + content.cipher_suite.to_bytes(2)
                + _NO_COMPRESSION
                + _write_extensions(content)
            )
        case HelloVerifyRequest():
            kind = HandshakeType.HELLO_VERIFY_REQUEST
            body = content.version.to_bytes(2) + _prepend_length(1, content.cookie)
        case Certificate():
            kind = HandshakeType.CERTIFICATE
            chain = b"".join(
                _prepend_length(3, certificate) for certificate in content.certificates
            )
            body = _prepend_length(3, chain)
        case ServerKeyExchange():
            kind = HandshakeType.SERVER_KEY_EXCHANGE
            body = (
                bytes((_NAMED_CURVE,))
                + content.group.to_bytes(2)
                + _prepend_length(1, content.public_key)
                + signature
            )
        case _:
            kind = HandshakeType.CLIENT_KEY_EXCHANGE
            body = _prepend_length(1, content.public_key)
    return Handshake(kind, number, body)
