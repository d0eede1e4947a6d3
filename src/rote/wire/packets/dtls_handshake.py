"""The unencrypted messages of a DTLS handshake: hellos, certificates and key exchanges.

Decoders raise `DecodeError` and nothing else, for any bytes at all. RFC 5246, 5764 and 7627.
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
        return _read_pairs(data[2 : 2 + int.from_bytes(data[:2])])

    @property
    def versions(self) -> tuple[int, ...]:
        """All versions that a client offers, or the one that a server chose, by the newer
        extension.
        """
        data = self.extension(ExtensionType.SUPPORTED_VERSIONS)
        if data is None:
            return (self.version,)
        return _read_pairs(data[1:] if isinstance(self, ClientHello) else data)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientHello(Hello):
    """A client begins, or begins again with the cookie it was asked for."""

    cookie: bytes = b""
    cipher_suites: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHello(Hello):
    """A server has chosen."""

    cipher_suite: int = 0


@dataclass(frozen=True, slots=True)
class HelloVerifyRequest:
    """A server checks that the client is at its address."""

    cookie: bytes
    version: int = Version.DTLS_1_2


@dataclass(frozen=True, slots=True)
class Certificate:
    """An identity; in WebRTC the signalling has announced its fingerprint."""

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


@dataclass(frozen=True, slots=True)
class ServerKeyExchange:
    """A server's half of an elliptic-curve key exchange."""

    group: int
    public_key: bytes


@dataclass(frozen=True, slots=True)
class ClientKeyExchange:
    """A client's half."""

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
    """Takes fields off the front of bytes."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.left = len(data)

    def take(self, size: int) -> bytes:
        if size > self.left:
            raise TruncatedError(len(self._data) - self.left + size, len(self._data))
        start = len(self._data) - self.left
        self.left -= size
        return self._data[start : start + size]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def take_sized(self, size_bytes: int) -> bytes:
        return self.take(self.number(size_bytes))


def _read_pairs(data: bytes) -> tuple[int, ...]:
    return tuple(int.from_bytes(data[at : at + 2]) for at in range(0, len(data) - 1, 2))


def _read_extensions(reader: _Reader) -> tuple[tuple[int, bytes], ...]:
    if not reader.left:
        return ()
    inner = _Reader(reader.take_sized(2))
    found: list[tuple[int, bytes]] = []
    while inner.left:
        found.append((inner.number(2), inner.take_sized(2)))
    return tuple(found)


def _client_hello(reader: _Reader) -> ClientHello:
    version, random, session = reader.number(2), reader.take(32), reader.take_sized(1)
    cookie, suites = reader.take_sized(1), _read_pairs(reader.take_sized(2))
    reader.take_sized(1)
    return ClientHello(
        version=version,
        random=random,
        session=session,
        cookie=cookie,
        cipher_suites=suites,
        extensions=_read_extensions(reader),
    )


def _server_hello(reader: _Reader) -> ServerHello:
    version, random, session = reader.number(2), reader.take(32), reader.take_sized(1)
    suite = reader.number(2)
    reader.take(1)
    return ServerHello(
        version=version,
        random=random,
        session=session,
        cipher_suite=suite,
        extensions=_read_extensions(reader),
    )


def _verify_request(reader: _Reader) -> HelloVerifyRequest:
    version = reader.number(2)
    return HelloVerifyRequest(reader.take_sized(1), version)


def _read_certificate(reader: _Reader) -> Certificate:
    chain = _Reader(reader.take_sized(3))
    found: list[bytes] = []
    while chain.left:
        found.append(chain.take_sized(3))
    return Certificate(tuple(found))


def _server_key(reader: _Reader) -> ServerKeyExchange | None:
    if reader.number(1) != 3:  # only named curves
        return None
    return ServerKeyExchange(reader.number(2), reader.take_sized(1))


_READERS: dict[int, Callable[[_Reader], HandshakeContent | None]] = {
    HandshakeType.CLIENT_HELLO: _client_hello,
    HandshakeType.SERVER_HELLO: _server_hello,
    HandshakeType.HELLO_VERIFY_REQUEST: _verify_request,
    HandshakeType.CERTIFICATE: _read_certificate,
    HandshakeType.SERVER_KEY_EXCHANGE: _server_key,
    HandshakeType.CLIENT_KEY_EXCHANGE: lambda reader: ClientKeyExchange(reader.take_sized(1)),
}


def decode_handshake(handshake: Handshake) -> HandshakeContent | None:
    """Return the content of a handshake message, or None for one that is not read here."""
    read = _READERS.get(handshake.type)
    return read(_Reader(handshake.body)) if read else None


# ---- writing ------------------------------------------------------------------------------------


def _with_length(size_bytes: int, data: bytes) -> bytes:
    return len(data).to_bytes(size_bytes) + data


def _written_pairs(numbers: Sequence[int]) -> bytes:
    return b"".join(number.to_bytes(2) for number in numbers)


def _hello_start(hello: Hello) -> bytes:
    return hello.version.to_bytes(2) + hello.random + _with_length(1, hello.session)


def _hello_extensions(hello: Hello) -> bytes:
    if not hello.extensions:
        return b""
    return _with_length(
        2, b"".join(n.to_bytes(2) + _with_length(2, data) for n, data in hello.extensions)
    )


def encode_handshake(content: HandshakeContent, message: int, signature: bytes = b"") -> Handshake:
    """Return the handshake message number `message` with the content `said`."""
    match content:
        case ClientHello():
            suites = _with_length(2, _written_pairs(content.cipher_suites)) + _with_length(1, b"\0")
            kind, body = HandshakeType.CLIENT_HELLO, _with_length(1, content.cookie) + suites
            body = _hello_start(content) + body + _hello_extensions(content)
        case ServerHello():
            body = (
                _hello_start(content)
                + content.cipher_suite.to_bytes(2)
                + b"\0"
                + _hello_extensions(content)
            )
            kind = HandshakeType.SERVER_HELLO
        case HelloVerifyRequest():
            kind = HandshakeType.HELLO_VERIFY_REQUEST
            body = content.version.to_bytes(2) + _with_length(1, content.cookie)
        case Certificate():
            kind = HandshakeType.CERTIFICATE
            body = _with_length(3, b"".join(_with_length(3, one) for one in content.certificates))
        case ServerKeyExchange():
            kind = HandshakeType.SERVER_KEY_EXCHANGE
            body = (
                b"\3" + content.group.to_bytes(2) + _with_length(1, content.public_key) + signature
            )
        case _:
            kind = HandshakeType.CLIENT_KEY_EXCHANGE
            body = _with_length(1, content.public_key)
    return Handshake(kind, message, body)
