"""How a WebRTC session is agreed on the local network: how offer and answer are wrapped.

    old  Go2 1.0.19 to 1.0.25  POST :8081/offer             offer -> answer, both plain JSON
    new  everything later      POST :9991/con_notify        nothing -> the notice
                               POST :9991/con_ing_<digits>  sealed offer -> sealed answer

    notice         base64 of {"data1": text, "data2": how the text is wrapped}
    its text       10 random characters, base64 of the robot's RSA key, 5 pairs of letters; the
                   second letter of each pair is a digit of the path, A for 0 to J for 9
    sealed offer   {"data1": base64 AES(offer), "data2": base64 RSA(session key)}
    sealed answer  base64 AES(answer)

    data2      the text is wrapped                         firmware
    absent, 1  not at all                                  Go2 1.1.1 to 1.1.7
    2          AES-128-GCM, one key for all robots         Go2 1.1.8 to 1.1.14, G1 1.2.0 to 1.4
    3          AES-128-GCM, a key of the robot's own       Go2 from 1.1.15, G1 from 1.5.1, every R1
               (base64 of ciphertext, 12 bytes of nonce, 16 bytes of tag)

AES of offer and answer is AES-256-ECB with PKCS#7 over UTF-8 bytes; the key is the session key's
32 hex characters as ASCII. RSA is PKCS#1 v1.5. The robot is not authenticated: any machine that
answers con_notify is trusted. Facts and sources: spec/datachannel.md, section 1.

Decoders (`decode_`, `open_`) raise only `DecodeError`, for any bytes. Random bytes are arguments,
except those for RSA keys and padding, which the library generates.
"""

import base64
import re
import reprlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from rote.errors import BadRequestError, MissingExtraError
from rote.wire.discovery import (
    MAX_BODY,
    DocumentError,
    check_body_size,
    decode_json_object,
    encode_json,
    read_text_field,
)
from rote.wire.webrtc.sdp import (
    Busy,
    SdpAnswer,
    SdpOffer,
    decode_answer,
    decode_offer,
    encode_answer,
    encode_offer,
)

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric import rsa
    from cryptography.hazmat.primitives.ciphers import Cipher, modes

LEGACY_PORT, LEGACY_PATH = 8081, "/offer"
PORT, NOTICE_PATH = 9991, "/con_notify"
SEALED_OFFER_TYPE = "application/x-www-form-urlencoded"
"""The Content-Type of an encrypted offer, although the body is JSON."""
STATIC_KEY = bytes((232, 86, 130, 189, 22, 84, 155, 0, 142, 4, 166, 104, 43, 179, 235, 227))
NOTICE_ENTROPY, SESSION_KEY_ENTROPY = 27, 16
"""The number of random bytes in a notice and in a session key."""

_EDGE_LENGTH = 10  # characters before and after the key in a notice's text
_NONCE, _TAG = 12, 16
_RSA_BITS = range(1024, 8192 + 1)  # real ones have 2048
_MAX_CHUNKS = 32  # of RSA: one byte of the session key in each
_LETTERS = "ABCDEFGHIJ"
_HEX_32 = re.compile("[0-9a-fA-F]{32}")

_NOT_THE_ROBOT = (
    "Check that the address is that of the robot's WebRTC service: 192.168.12.1 in its own Wi-Fi, "
    "192.168.123.161 by cable (not the computer on its back, .164 or .18)."
)
_CONNECT_AGAIN = (
    "Connect again. If it happens twice, a device between client and robot alters the messages."
)
_UNKNOWN_FIRMWARE = (
    "The body is damaged, or the firmware is newer than rote knows: data2 is absent or 1 on Go2 "
    "1.1.1 to 1.1.7, 2 on Go2 1.1.8 to 1.1.14 and G1 1.2.0 to 1.4, 3 on Go2 from 1.1.15, G1 "
    "from 1.5.1 and every R1."
)
_WHERE_THE_KEY_IS = (
    "Go2 from 1.1.15, G1 from 1.5.1 and every R1 have a key of their own: 32 hex characters, "
    "the same after every pairing. To get it, ask Unitree's cloud for device/bind/list with the "
    "account of the robot; the field is `key` (older: `gcm_key`). The robot stores it, "
    "encrypted with RSA, in /unitree/etc/key/aes_key.bin."
)


class KeyNeededError(DocumentError):
    """The robot's own key is missing or wrong (data2 is 3); the remedy says where to find it."""

    kind = "key-needed"


# ---- the notice: which key, which path ----------------------------------------------------------


class Wrapping(Enum):
    """How the text of a notice is encrypted; the value is `data2`."""

    UNMARKED = None
    PLAIN = 1
    STATIC_KEY = 2
    DEVICE_KEY = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectNotice:
    """The content of con_notify: the robot's key, and the path for the encrypted offer."""

    public_key: bytes
    """DER SubjectPublicKeyInfo of an RSA key."""
    digits: str
    wrapping: Wrapping

    @property
    def path(self) -> str:
        """The path for the encrypted offer, for example `/con_ing_70753`."""
        return f"/con_ing_{self.digits}"


def parse_device_key(text: str) -> bytes:
    """Return the 16 bytes of a robot's own key, given as its 32 hex characters."""
    if not _HEX_32.fullmatch(text.strip()):
        raise BadRequestError("a device key is 32 hex characters", _WHERE_THE_KEY_IS)
    return bytes.fromhex(text.strip())


def read_digits(tail: str) -> str:
    """Return the digits of the path from the end of a notice's text.

    Every second letter is a digit, A for 0 to J for 9; the other letters are random. Raises
    `DocumentError` for a letter beyond J. Other clients drop its digit or read it as 0, and then
    get a 404 without an explanation.
    """
    letters = tail[1::2]
    for letter in letters:
        if letter not in _LETTERS:
            seen = f"{letter!r} in its end {tail!r} is not one of the letters A to J"
            raise DocumentError("con_notify, path", seen, _UNKNOWN_FIRMWARE)
    return "".join(str(_LETTERS.index(letter)) for letter in letters)


def seal_notice(notice: ConnectNotice, entropy: bytes, device_key: bytes | None = None) -> bytes:
    """Return the encrypted notice, which is the robot's answer to con_notify.

    `entropy` is `NOTICE_ENTROPY` random bytes. `device_key` is needed for `Wrapping.DEVICE_KEY`.
    """
    if not re.fullmatch("[0-9]{5}", notice.digits) or len(entropy) != NOTICE_ENTROPY:
        raise BadRequestError(f"a notice needs 5 digits and {NOTICE_ENTROPY} random bytes")
    random_letters = "".join(chr(ord("A") + byte % 26) for byte in entropy[:-_NONCE])
    pairs = zip(random_letters[_EDGE_LENGTH:], notice.digits, strict=True)
    tail = "".join(letter + _LETTERS[int(digit)] for letter, digit in pairs)
    text = random_letters[:_EDGE_LENGTH] + base64.b64encode(notice.public_key).decode() + tail
    if notice.wrapping in {Wrapping.STATIC_KEY, Wrapping.DEVICE_KEY}:
        key = STATIC_KEY if notice.wrapping is Wrapping.STATIC_KEY else device_key
        if key is None or len(key) != 16:
            raise BadRequestError("this wrapping needs a device key of 16 bytes")
        text = base64.b64encode(_encrypt_gcm(key, entropy[-_NONCE:], text.encode())).decode()
    document: dict[str, object] = {"data1": text}
    if notice.wrapping is not Wrapping.UNMARKED:
        document["data2"] = notice.wrapping.value
    return check_body_size(base64.b64encode(encode_json(document)))


def open_notice(body: bytes, device_key: bytes | None = None) -> ConnectNotice:
    """Return the content of an encrypted notice, the robot's answer to con_notify.

    Raises `KeyNeededError` if `device_key` is needed and missing or wrong; otherwise it is not
    used.
    """
    plain = _decode_base64(body, "con_notify", _NOT_THE_ROBOT)
    document = decode_json_object(plain, "con_notify", _NOT_THE_ROBOT)
    wrapping = _read_wrapping(document.get("data2"))  # null counts as absent
    text = read_text_field(document, "data1", "con_notify")
    if wrapping is Wrapping.STATIC_KEY:
        text = _unwrap_text(text, STATIC_KEY, DocumentError, _UNKNOWN_FIRMWARE)
    elif wrapping is Wrapping.DEVICE_KEY:
        if device_key is None or len(device_key) != 16:
            seen = "data2 is 3, so a device key of 16 bytes is needed, and none is given"
            raise KeyNeededError("con_notify, data1", seen, _WHERE_THE_KEY_IS)
        text = _unwrap_text(text, device_key, KeyNeededError, _WHERE_THE_KEY_IS)
    if len(text) <= 2 * _EDGE_LENGTH:
        seen = f"{len(text)} characters are too few for a key"
        raise DocumentError("con_notify, key", seen, _UNKNOWN_FIRMWARE)
    der = _decode_base64(
        text[_EDGE_LENGTH:-_EDGE_LENGTH].encode(), "con_notify, key", _UNKNOWN_FIRMWARE
    )
    _load_public_key(der)
    return ConnectNotice(
        public_key=der, digits=read_digits(text[-_EDGE_LENGTH:]), wrapping=wrapping
    )


def _read_wrapping(value: object) -> Wrapping:
    """Return the wrapping that the value of `data2` means; raise `DocumentError` if none."""
    for wrapping in Wrapping:
        # Types are compared too, because in Python true equals 1 and 2.0 equals 2.
        if type(value) is type(wrapping.value) and value == wrapping.value:
            return wrapping
    raise DocumentError("con_notify", f"data2 is {reprlib.repr(value)}", _UNKNOWN_FIRMWARE)


def _unwrap_text(text: str, key: bytes, key_error: type[DocumentError], remedy: str) -> str:
    """Decrypt the text of a notice; raise `key_error` with `remedy` if the key does not fit."""
    step = "con_notify, data1"
    raw = _decode_base64(text.encode(), step, _UNKNOWN_FIRMWARE)
    if len(raw) < _NONCE + _TAG:
        seen = f"{len(raw)} bytes, but nonce and tag alone have {_NONCE + _TAG}"
        raise DocumentError(step, seen, _UNKNOWN_FIRMWARE)
    plain = _decrypt_gcm(key, raw)
    if plain is None:
        raise key_error(step, "the key does not decrypt it (its tag does not match)", remedy)
    try:
        return plain.decode()
    except UnicodeDecodeError as error:
        raise DocumentError(step, f"decrypted, but not text: {error}", _UNKNOWN_FIRMWARE) from None


def _decode_base64(text: bytes, step: str, remedy: str) -> bytes:
    if len(text) > MAX_BODY:
        raise DocumentError(step, f"{len(text)} bytes; the maximum is {MAX_BODY}", remedy)
    try:
        return base64.b64decode(text.strip(), validate=True)
    except ValueError as error:
        seen = f"not base64 ({error}); it begins with {text[:40]!r}"
        raise DocumentError(step, seen, remedy) from None


# ---- the sealed offer and answer ----------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedOffer:
    """A client's offer, and the session key to encrypt the answer with."""

    offer: SdpOffer
    session_key: str = field(repr=False)


def make_session_key(entropy: bytes) -> str:
    """Return a session key of 32 hex characters, made from `SESSION_KEY_ENTROPY` random bytes."""
    if len(entropy) != SESSION_KEY_ENTROPY:
        raise BadRequestError(f"a session key is made of {SESSION_KEY_ENTROPY} random bytes")
    return entropy.hex()


def seal_offer(offer: SdpOffer, public_key: bytes, session_key: str) -> bytes:
    """Return the client's encrypted offer, which is sent to `ConnectNotice.path`."""
    sealed = seal_document(encode_offer(offer), session_key)
    encrypted_key = base64.b64encode(_encrypt_rsa(public_key, session_key.encode()))
    return encode_json({"data1": sealed.decode(), "data2": encrypted_key.decode()})


def open_offer(body: bytes, robot_key: "RobotKey") -> OpenedOffer:
    """Return the offer that a client encrypted for the robot with `robot_key`, and its key."""
    document = decode_json_object(body, "con_ing")
    encrypted_key = read_text_field(document, "data2", "con_ing").encode()
    decoded_key = _decode_base64(encrypted_key, "con_ing, data2", _CONNECT_AGAIN)
    # A wrong key yields any bytes, which Latin-1 decodes without an error.
    session_key = robot_key.decrypt(decoded_key).decode("latin-1")
    if not _HEX_32.fullmatch(session_key):
        seen = "it has no session key of 32 hex characters, or was made for another robot"
        raise DocumentError("con_ing, data2", seen, _CONNECT_AGAIN)
    sealed = read_text_field(document, "data1", "con_ing").encode()
    offer = decode_offer(_open_sealed(sealed, session_key, "con_ing, data1"))
    return OpenedOffer(offer=offer, session_key=session_key)


def seal_answer(answer: SdpAnswer | Busy, session_key: str) -> bytes:
    """Return the robot's encrypted answer to the offer that came with `session_key`."""
    return seal_document(encode_answer(answer), session_key)


def open_answer(body: bytes, session_key: str) -> SdpAnswer | Busy:
    """Return the robot's answer to the offer that was encrypted with `session_key`."""
    return decode_answer(_open_sealed(body, session_key, "con_ing, answer"))


def seal_document(document: bytes, session_key: str) -> bytes:
    """Return a document encrypted with the session key, as base64."""
    padding = 16 - len(document) % 16  # PKCS#7: 1 to 16 bytes that state their number
    cipher = _make_ecb_cipher(session_key).encryptor()
    sealed = cipher.update(document + bytes([padding]) * padding) + cipher.finalize()
    return check_body_size(base64.b64encode(sealed))


def _open_sealed(sealed: bytes, session_key: str, step: str) -> bytes:
    """Decrypt a document with the session key, and remove its padding."""
    raw = _decode_base64(sealed, step, _CONNECT_AGAIN)
    if not raw or len(raw) % 16:
        raise DocumentError(
            step, f"{len(raw)} bytes are not whole AES blocks of 16", _CONNECT_AGAIN
        )
    cipher = _make_ecb_cipher(session_key).decryptor()
    padded = cipher.update(raw) + cipher.finalize()
    padding = padded[-1]
    if not 1 <= padding <= 16 or not padded.endswith(bytes([padding]) * padding):
        seen = "its padding is wrong: it is damaged, or sealed with another session key"
        raise DocumentError(step, seen, _CONNECT_AGAIN)
    return padded[:-padding]


# ---- the library, imported when it is needed ----------------------------------------------------


@contextmanager
def _require_extra() -> Iterator[None]:
    """Name the missing extra if an import in this context fails."""
    try:
        yield
    except ImportError as error:
        raise MissingExtraError("signalling with the robot", "webrtc") from error


class RobotKey:
    """The robot's RSA key pair, given as PKCS#8 in DER."""

    __slots__ = ("_private", "public")

    def __init__(self, private_der: bytes) -> None:
        with _require_extra():
            from cryptography.hazmat.primitives import serialization as s  # noqa: PLC0415
            from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415
        try:
            private = s.load_der_private_key(private_der, None)
        except (ValueError, TypeError) as error:
            raise BadRequestError(f"the robot's key cannot be read: {error}") from None
        if not isinstance(private, rsa.RSAPrivateKey):
            raise BadRequestError("the robot's key is not an RSA key")
        self._set_key(private)

    def _set_key(self, private: "rsa.RSAPrivateKey") -> None:
        from cryptography.hazmat.primitives import serialization as s  # noqa: PLC0415

        self._private = private
        self.public = private.public_key().public_bytes(
            s.Encoding.DER, s.PublicFormat.SubjectPublicKeyInfo
        )
        """DER SubjectPublicKeyInfo, as a `ConnectNotice` has it."""

    @classmethod
    def generate(cls) -> "RobotKey":
        """Return a new key of 2048 bits, without the check of `__init__`, which takes 0.1 s."""
        with _require_extra():
            from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415
        robot_key = cls.__new__(cls)
        robot_key._set_key(rsa.generate_private_key(public_exponent=65537, key_size=2048))
        return robot_key

    def decrypt(self, encrypted: bytes) -> bytes:
        """Return the content of bytes that were encrypted for this key, chunk by chunk.

        Chunks made for another key usually decrypt to random bytes, because an error would help an
        attacker (OpenSSL calls this implicit rejection).
        """
        from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415

        step, size = "con_ing, data2", (self._private.key_size + 7) // 8
        if not encrypted or len(encrypted) % size or len(encrypted) > _MAX_CHUNKS * size:
            seen = f"{len(encrypted)} bytes are not 1 to {_MAX_CHUNKS} RSA chunks of {size} bytes"
            raise DocumentError(step, seen, _CONNECT_AGAIN)
        chunks = (encrypted[start : start + size] for start in range(0, len(encrypted), size))
        try:
            return b"".join(self._private.decrypt(chunk, PKCS1v15()) for chunk in chunks)
        except ValueError as error:
            raise DocumentError(step, f"made for another key ({error})", _CONNECT_AGAIN) from None


def _load_public_key(der: bytes) -> "rsa.RSAPublicKey":
    """Return the robot's RSA key; raise `DocumentError` if it is not a usable one."""
    with _require_extra():
        from cryptography.exceptions import UnsupportedAlgorithm  # noqa: PLC0415
        from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
        from cryptography.hazmat.primitives.asymmetric import rsa  # noqa: PLC0415
    step = "con_notify, key"
    try:
        key = serialization.load_der_public_key(der)
    except (ValueError, UnsupportedAlgorithm) as error:
        seen = f"{len(der)} bytes that are not a key: {str(error)[:60]}"
        raise DocumentError(step, seen, _UNKNOWN_FIRMWARE) from None
    if not isinstance(key, rsa.RSAPublicKey) or key.key_size not in _RSA_BITS:
        seen = f"not RSA of {_RSA_BITS[0]} to {_RSA_BITS[-1]} bits, but {type(key).__name__}"
        raise DocumentError(step, seen, _UNKNOWN_FIRMWARE)
    return key


def _encrypt_rsa(der: bytes, plain: bytes) -> bytes:
    """Encrypt `plain` in chunks that fit the robot's RSA key, given in DER."""
    key = _load_public_key(der)
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15  # noqa: PLC0415

    size = (key.key_size + 7) // 8 - 11  # PKCS#1 v1.5 adds at least 11 bytes to each chunk
    chunks = (plain[start : start + size] for start in range(0, len(plain), size))
    try:
        return b"".join(key.encrypt(chunk, PKCS1v15()) for chunk in chunks)
    except ValueError as error:
        seen = f"it cannot encrypt ({error})"
        raise DocumentError("con_notify, key", seen, _CONNECT_AGAIN) from None


def _encrypt_gcm(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    """Return `plain` encrypted, followed by the nonce and then the tag."""
    with _require_extra():
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    sealed = AESGCM(key).encrypt(nonce, plain, None)
    return sealed[:-_TAG] + nonce + sealed[-_TAG:]


def _decrypt_gcm(key: bytes, raw: bytes) -> bytes | None:
    """Reverse `_encrypt_gcm`; None if the key is wrong."""
    with _require_extra():
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415
    sealed, nonce, tag = raw[: -_NONCE - _TAG], raw[-_NONCE - _TAG : -_TAG], raw[-_TAG:]
    try:
        return AESGCM(key).decrypt(nonce, sealed + tag, None)
    except InvalidTag:
        return None


def _make_ecb_cipher(session_key: str) -> "Cipher[modes.ECB]":
    if not _HEX_32.fullmatch(session_key):
        raise BadRequestError("a session key is 32 hex characters")
    with _require_extra():
        from cryptography.hazmat.primitives import ciphers as c  # noqa: PLC0415
    # The robot uses the 32 characters as an AES-256 key, not the 16 bytes that they spell.
    key = c.algorithms.AES(session_key.encode())
    return c.Cipher(key, c.modes.ECB())  # noqa: S305 - the robot's protocol requires ECB
