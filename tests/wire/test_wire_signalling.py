"""Signalling against a second reading of the spec made of bare primitives, and against garbage."""

import base64
import contextlib
import copy
import json
import pickle
import sys
from collections.abc import Callable
from functools import cache
from math import gcd

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.padding import PKCS7
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, DecodeError, MissingExtraError
from rote.wire.discovery import DocumentError
from rote.wire.webrtc import sdp
from rote.wire.webrtc import signalling as wire
from rote.wire.webrtc.sdp import Busy, SdpAnswer, SdpOffer
from rote.wire.webrtc.signalling import ConnectNotice, KeyNeededError, RobotKey, Wrapping

DEVICE_KEY = bytes.fromhex("00112233445566778899aabbccddeeff")
OTHER_KEY = bytes(16)
SESSION_KEY = "0123456789abcdef0123456789ABCDEF"
ENTROPY = bytes(range(200, 200 + wire.NOTICE_ENTROPY))
OFFER = SdpOffer(sdp="v=0\r\no=- 1 1 IN IP4 0.0.0.0\r\n", id="Büro ☃", token="t")
ANSWER = SdpAnswer(sdp="v=0\r\ns=-\r\n", id="机器人")

every_wrapping = pytest.mark.parametrize("wrapping", list(Wrapping))


# ---- keys, made once ----------------------------------------------------------------------------


def private_key(bits: int = 2048, exponent: int = 65537) -> rsa.RSAPrivateKey:
    return made_key(bits, exponent)


@cache
def made_key(bits: int, exponent: int) -> rsa.RSAPrivateKey:
    """Return a key; the library only makes 3 and 65537, so others are made of its primes."""
    while True:
        numbers = rsa.generate_private_key(65537, bits).private_numbers()
        p, q = numbers.p, numbers.q
        if gcd(exponent, (p - 1) * (q - 1)) == 1:
            break
    d = pow(exponent, -1, (p - 1) * (q - 1))
    public = rsa.RSAPublicNumbers(exponent, p * q)
    return rsa.RSAPrivateNumbers(
        p, q, d, d % (p - 1), d % (q - 1), pow(q, -1, p), public
    ).private_key()


def der(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def spki(key: rsa.RSAPublicKey | ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )


@cache
def robot_key(bits: int = 2048, exponent: int = 65537) -> RobotKey:
    return RobotKey(der(private_key(bits, exponent)))


def notice(wrapping: Wrapping = Wrapping.STATIC_KEY, digits: str = "70753") -> ConnectNotice:
    return ConnectNotice(public_key=robot_key().public, digits=digits, wrapping=wrapping)


# ---- the spec a second time, of bare primitives -------------------------------------------------


def gcm(key: bytes, nonce: bytes, plain: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.GCM(nonce)).encryptor()
    return cipher.update(plain) + cipher.finalize() + nonce + cipher.tag


def ungcm(key: bytes, raw: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(key), modes.GCM(raw[-28:-16], raw[-16:])).decryptor()
    return cipher.update(raw[:-28]) + cipher.finalize()


def ecb(key: str, plain: bytes) -> bytes:
    padder = PKCS7(128).padder()
    cipher = Cipher(algorithms.AES(key.encode()), modes.ECB()).encryptor()
    return cipher.update(padder.update(plain) + padder.finalize()) + cipher.finalize()


def unecb(key: str, raw: bytes) -> bytes:
    unpadder = PKCS7(128).unpadder()
    cipher = Cipher(algorithms.AES(key.encode()), modes.ECB()).decryptor()
    return unpadder.update(cipher.update(raw) + cipher.finalize()) + unpadder.finalize()


def unrsa(key: rsa.RSAPrivateKey, raw: bytes) -> bytes:
    """Undo RSA by its formula and PKCS#1 v1.5 by its picture: 00 02 noise 00 message."""
    numbers = key.private_numbers()
    number = pow(int.from_bytes(raw, "big"), numbers.d, numbers.public_numbers.n)
    block = number.to_bytes(len(raw), "big")
    assert block[:2] == b"\x00\x02"
    end = block.index(b"\x00", 2)
    assert end >= 10
    return block[end + 1 :]


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def packed(**document: object) -> bytes:
    return base64.b64encode(json.dumps(document).encode())


def unpacked(body: bytes) -> dict[str, object]:
    document = json.loads(base64.b64decode(body))
    assert isinstance(document, dict)
    return document


def sealed_offer(plain: bytes, *chunks: bytes, key: str = SESSION_KEY) -> bytes:
    """Write a sealed offer by hand, the session key in the chunks given."""
    public = private_key().public_key()
    wrapped = b"".join(public.encrypt(chunk, PKCS1v15()) for chunk in chunks or (key.encode(),))
    return json.dumps({"data1": b64(ecb(key, plain)), "data2": b64(wrapped)}).encode()


TAIL = "IHLAGHRFKD"


def notice_text(head: str = "abcdefghij", key: bytes = b"", tail: str = TAIL) -> str:
    return head + b64(key or robot_key().public) + tail


# ---- the notice ---------------------------------------------------------------------------------


def test_the_end_of_a_real_notice_tells_the_path_of_that_robot() -> None:
    assert wire.read_digits("IHLAGHRFKD") == "70753"
    assert notice(digits="70753").path == "/con_ing_70753"


@pytest.mark.parametrize("tail", ["IKLAGHRFKD", "IHLAGHRFKd", "IHLAGHRFK5", "IHLAGHRFKé"])
def test_a_letter_that_stands_for_no_digit_is_refused_and_named(tail: str) -> None:
    with pytest.raises(DocumentError, match="is not one of the letters A to J") as caught:
        wire.open_notice(packed(data1=notice_text(tail=tail)))
    assert repr(tail) in str(caught.value)
    assert caught.value.step == "con_notify, path"


@every_wrapping
def test_a_notice_is_what_the_spec_says(wrapping: Wrapping) -> None:
    document = unpacked(wire.seal_notice(notice(wrapping), ENTROPY, DEVICE_KEY))
    text = document["data1"]
    assert isinstance(text, str)
    if wrapping is Wrapping.UNMARKED:
        assert "data2" not in document
    else:
        assert document["data2"] == wrapping.value
    if wrapping in {Wrapping.STATIC_KEY, Wrapping.DEVICE_KEY}:
        key = bytes.fromhex("e85682bd16549b008e04a6682bb3ebe3")
        raw = base64.b64decode(text)
        assert raw[-28:-16] == ENTROPY[-12:]
        text = ungcm(key if wrapping is Wrapping.STATIC_KEY else DEVICE_KEY, raw).decode()
    assert base64.b64decode(text[10:-10]) == spki(private_key().public_key())
    assert text[-9::2] == "HAHFD"  # 7 0 7 5 3
    assert (text[:10] + text[-10::2]).isupper()


@every_wrapping
def test_a_notice_made_by_hand_is_read(wrapping: Wrapping) -> None:
    text = notice_text()
    if wrapping in {Wrapping.STATIC_KEY, Wrapping.DEVICE_KEY}:
        key = wire.STATIC_KEY if wrapping is Wrapping.STATIC_KEY else DEVICE_KEY
        text = b64(gcm(key, b"twelve bytes", text.encode()))
    mark = {} if wrapping is Wrapping.UNMARKED else {"data2": wrapping.value}
    body = packed(data1=text, **mark, extra=[1])
    assert wire.open_notice(b"\n" + body + b"\r\n", DEVICE_KEY) == notice(wrapping)


@given(
    st.sampled_from(Wrapping),
    st.from_regex("[0-9]{5}", fullmatch=True),
    st.binary(min_size=wire.NOTICE_ENTROPY, max_size=wire.NOTICE_ENTROPY),
    st.binary(min_size=16, max_size=16),
)
def test_any_notice_is_read_as_it_was_written(
    wrapping: Wrapping, digits: str, entropy: bytes, key: bytes
) -> None:
    sealed = wire.seal_notice(notice(wrapping, digits), entropy, key)
    assert sealed == wire.seal_notice(notice(wrapping, digits), entropy, key)
    assert wire.open_notice(sealed, key) == notice(wrapping, digits)


def test_a_null_where_data2_may_be_absent_is_as_good_as_absent() -> None:
    assert wire.open_notice(packed(data1=notice_text(), data2=None)) == notice(Wrapping.UNMARKED)


@pytest.mark.parametrize(("bits", "exponent"), [(2048, 17), (2048, 3), (1024, 3), (1024, 65537)])
def test_a_session_is_agreed_whatever_the_exponent_of_the_robots_key(
    bits: int, exponent: int
) -> None:
    key = robot_key(bits, exponent)
    told = wire.open_notice(
        wire.seal_notice(
            ConnectNotice(public_key=key.public, digits="00099", wrapping=Wrapping.PLAIN), ENTROPY
        )
    )
    body = wire.seal_offer(OFFER, told.public_key, SESSION_KEY)
    wrapped = base64.b64decode(json.loads(body)["data2"])
    assert unrsa(private_key(bits, exponent), wrapped) == SESSION_KEY.encode()
    opened = wire.open_offer(body, key)
    assert (opened.offer, opened.session_key) == (OFFER, SESSION_KEY)


@pytest.mark.parametrize("key", [None, b"", DEVICE_KEY[:15], DEVICE_KEY + b"\0"])
def test_a_robot_with_a_key_of_its_own_says_where_that_key_is_found(key: bytes | None) -> None:
    sealed = wire.seal_notice(notice(Wrapping.DEVICE_KEY), ENTROPY, DEVICE_KEY)
    with pytest.raises(KeyNeededError, match="none is given") as caught:
        wire.open_notice(sealed, key)
    for words in ("device/bind/list", "`gcm_key`", "aes_key.bin", "G1 from 1.5.1", "32 hex"):
        assert words in caught.value.remedy
    assert isinstance(caught.value, DecodeError)
    assert caught.value.kind == "key-needed"
    with pytest.raises(BadRequestError, match="16 bytes"):
        wire.seal_notice(notice(Wrapping.DEVICE_KEY), ENTROPY, key)


def test_a_wrong_device_key_is_told_apart_from_a_missing_one_and_never_shown() -> None:
    sealed = wire.seal_notice(notice(Wrapping.DEVICE_KEY), ENTROPY, DEVICE_KEY)
    with pytest.raises(KeyNeededError, match="tag does not match") as caught:
        wire.open_notice(sealed, OTHER_KEY)
    assert "device/bind/list" in caught.value.remedy
    for again in (copy.copy(caught.value), pickle.loads(pickle.dumps(caught.value))):
        assert (str(again), again.remedy) == (str(caught.value), caught.value.remedy)


def test_a_static_key_that_does_not_open_is_not_the_users_key_to_find() -> None:
    raw = gcm(OTHER_KEY, bytes(12), notice_text().encode())
    with pytest.raises(DocumentError, match="tag does not match") as caught:
        wire.open_notice(packed(data1=b64(raw), data2=2), DEVICE_KEY)
    assert not isinstance(caught.value, KeyNeededError)
    assert "2 on Go2 1.1.8" in caught.value.remedy


def wrapped(plain: bytes) -> bytes:
    return packed(data1=b64(gcm(wire.STATIC_KEY, bytes(12), plain)), data2=2)


def elliptic() -> bytes:
    return spki(ec.generate_private_key(ec.SECP256R1()).public_key())


def tlv(tag: int, value: bytes) -> bytes:
    """Return DER: tag, length in the fewest bytes, value."""
    size = len(value)
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes([tag, size] if size < 128 else [tag, 0x80 | len(length), *length]) + value


def modulus(number: int) -> bytes:
    """Return a key of RSA whose modulus need not be one."""
    integer = tlv(2, number.to_bytes(number.bit_length() // 8 + 1, "big"))
    algorithm = bytes.fromhex("300d06092a864886f70d0101010500")
    return tlv(0x30, algorithm + tlv(3, b"\0" + tlv(0x30, integer + tlv(2, b"\3"))))


NO_NOTICE: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "nothing": (lambda: b"", "con_notify", "not JSON"),
    "a web page": (lambda: b"<html>", "con_notify", "not base64"),
    "not ASCII": (lambda: b"\xff\xfe", "con_notify", "not base64"),
    "padding missing": (lambda: b"e30", "con_notify", "not base64"),
    "base64 of no JSON": (lambda: base64.b64encode(b"hello"), "con_notify", "not JSON"),
    "base64 of a list": (lambda: base64.b64encode(b"[1]"), "con_notify", "a JSON list"),
    "huge": (lambda: b"A" * 65_540, "con_notify", "65540 bytes"),
    "empty object": (packed, "con_notify", "no text under 'data1'"),
    "data1 a number": (lambda: packed(data1=1), "con_notify", "no text under 'data1'"),
    "data2 of 4": (lambda: packed(data1="", data2=4), "con_notify", "data2 is 4"),
    "data2 of 0": (lambda: packed(data1="", data2=0), "con_notify", "data2 is 0"),
    "data2 a text": (lambda: packed(data1="", data2="2"), "con_notify", "data2 is '2'"),
    "data2 true": (lambda: packed(data1="", data2=True), "con_notify", "data2 is True"),
    "data2 2.0": (lambda: packed(data1="", data2=2.0), "con_notify", "data2 is 2.0"),
    "data2 a list": (lambda: packed(data1="", data2=[[]]), "con_notify", "data2 is [[]]"),
    "wrapped, no base64": (
        lambda: packed(data1="a b", data2=2),
        "con_notify, data1",
        "not base64",
    ),
    "wrapped, no ASCII": (lambda: packed(data1="é", data2=2), "con_notify, data1", "not base64"),
    "wrapped, 27 bytes": (
        lambda: packed(data1=b64(bytes(27)), data2=2),
        "con_notify, data1",
        "27 bytes, but nonce and tag alone have 28",
    ),
    "wrapped, nothing inside": (lambda: wrapped(b""), "con_notify, key", "0 characters"),
    "wrapped, no text": (lambda: wrapped(b"\xff" * 40), "con_notify, data1", "not text"),
    "20 characters": (lambda: packed(data1="A" * 20), "con_notify, key", "20 characters"),
    "key no base64": (
        lambda: packed(data1=notice_text().replace("M", "_")),
        "con_notify, key",
        "not base64",
    ),
    "key no DER": (
        lambda: packed(data1=notice_text(key=b"hello")),
        "con_notify, key",
        "5 bytes that are not a key",
    ),
    "key cut": (
        lambda: packed(data1=notice_text(key=robot_key().public[:-9])),
        "con_notify, key",
        "not a key",
    ),
    "key of an unknown kind": (
        lambda: packed(data1=notice_text(key=robot_key().public.replace(b"\xf7\x0d", b"\xf7\x0c"))),
        "con_notify, key",
        "not a key",
    ),
    "elliptic key": (
        lambda: packed(data1=notice_text(key=elliptic())),
        "con_notify, key",
        "not RSA of 1024 to 8192 bits",
    ),
    "key of 768 bits": (
        lambda: packed(data1=notice_text(key=modulus(2**768 - 1))),
        "con_notify, key",
        "not RSA of 1024",
    ),
    "key of 16384 bits": (
        lambda: packed(data1=notice_text(key=modulus(2**16384 - 1))),
        "con_notify, key",
        "not RSA of 1024",
    ),
}


@pytest.mark.parametrize(("make", "step", "words"), NO_NOTICE.values(), ids=list(NO_NOTICE.keys()))
def test_what_is_no_notice_is_refused_by_step_and_in_words(
    make: Callable[[], bytes], step: str, words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        wire.open_notice(make(), DEVICE_KEY)
    assert caught.value.step == step
    assert words in caught.value.seen
    assert len(str(caught.value)) < 250
    assert caught.value.remedy


def test_firmware_newer_than_known_is_told_which_is_known() -> None:
    with pytest.raises(DocumentError) as caught:
        wire.open_notice(packed(data1="", data2=4))
    for words in ("absent or 1 on Go2 1.1.1", "G1 1.2.0 to 1.4", "every R1"):
        assert words in caught.value.remedy


@pytest.mark.parametrize(
    ("digits", "entropy"),
    [
        ("7075", ENTROPY),
        ("707531", ENTROPY),
        ("7075a", ENTROPY),
        ("٣٣٣٣٣", ENTROPY),
        ("70753", b""),
        ("70753", ENTROPY + b"\0"),
    ],
)
def test_a_notice_takes_five_digits_and_all_its_random_bytes(digits: str, entropy: bytes) -> None:
    with pytest.raises(BadRequestError, match="5 digits and 27 random bytes"):
        wire.seal_notice(notice(digits=digits), entropy)


def test_a_notice_too_long_to_be_read_is_not_sent() -> None:
    long = ConnectNotice(public_key=bytes(40_000), digits="12345", wrapping=Wrapping.PLAIN)
    with pytest.raises(BadRequestError, match="the maximum is 65536"):
        wire.seal_notice(long, ENTROPY)


# ---- the sealed offer and answer ----------------------------------------------------------------


def test_a_sealed_offer_is_what_the_spec_says() -> None:
    body = json.loads(wire.seal_offer(OFFER, robot_key().public, SESSION_KEY))
    assert sorted(body) == ["data1", "data2"]
    assert len(body["data2"]) == 344
    assert unrsa(private_key(), base64.b64decode(body["data2"])) == SESSION_KEY.encode()
    plain = unecb(SESSION_KEY, base64.b64decode(body["data1"]))
    assert json.loads(plain) == {
        "id": "Büro ☃",
        "sdp": OFFER.sdp,
        "type": "offer",
        "token": "t",
    }


@pytest.mark.parametrize("ascii_only", [True, False])
def test_a_sealed_offer_made_by_hand_is_read_whatever_its_letters(ascii_only: bool) -> None:
    document = {"id": OFFER.id, "sdp": OFFER.sdp, "type": "offer", "token": OFFER.token}
    plain = json.dumps(document, ensure_ascii=ascii_only).encode()
    opened = wire.open_offer(sealed_offer(plain), robot_key())
    assert opened.offer == OFFER
    assert opened.session_key == SESSION_KEY
    assert SESSION_KEY not in repr(opened)


def test_a_session_key_may_come_in_several_chunks() -> None:
    halves = SESSION_KEY[:16].encode(), SESSION_KEY[16:].encode()
    body = sealed_offer(sdp.encode_offer(OFFER), *halves)
    assert wire.open_offer(body, robot_key()).session_key == SESSION_KEY


@pytest.mark.parametrize("answer", [ANSWER, Busy(), Busy(id="x")])
def test_a_sealed_answer_is_what_the_spec_says(answer: SdpAnswer | Busy) -> None:
    body = wire.seal_answer(answer, SESSION_KEY)
    assert body == base64.b64encode(ecb(SESSION_KEY, sdp.encode_answer(answer)))
    assert wire.open_answer(body + b"\n", SESSION_KEY) == answer


@given(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.binary(min_size=16, max_size=16),
    st.sampled_from(Wrapping),
)
def test_any_session_is_agreed_from_notice_to_answer(
    words: str, entropy: bytes, wrapping: Wrapping
) -> None:
    told = wire.open_notice(wire.seal_notice(notice(wrapping), ENTROPY, DEVICE_KEY), DEVICE_KEY)
    offer = SdpOffer(sdp="v=0" + words, id=words, token=words)
    session_key = wire.make_session_key(entropy)
    opened = wire.open_offer(wire.seal_offer(offer, told.public_key, session_key), robot_key())
    assert opened.offer == offer
    for answer in (SdpAnswer(sdp="v=0" + words, id=words), Busy(id=words)):
        again = wire.open_answer(wire.seal_answer(answer, opened.session_key), session_key)
        assert again == answer


def test_a_session_key_is_32_hex_characters() -> None:
    assert wire.make_session_key(bytes(range(16))) == "000102030405060708090a0b0c0d0e0f"
    with pytest.raises(BadRequestError, match="16 random bytes"):
        wire.make_session_key(bytes(15))


@pytest.mark.parametrize("key", ["", "0" * 31, "0" * 33, "g" * 32, "٣" * 32, "0" * 32 + "\n"])
def test_what_is_no_session_key_seals_and_opens_nothing(key: str) -> None:
    for use in (
        lambda: wire.seal_offer(OFFER, robot_key().public, key),
        lambda: wire.seal_answer(ANSWER, key),
        lambda: wire.open_answer(b64(bytes(16)).encode(), key),
    ):
        with pytest.raises(BadRequestError, match="32 hex"):
            use()


@pytest.mark.parametrize("text", [DEVICE_KEY.hex(), f" {DEVICE_KEY.hex().upper()}\u00a0\n"])
def test_a_device_key_is_read_as_the_cloud_shows_it(text: str) -> None:
    assert wire.parse_device_key(text) == DEVICE_KEY


@pytest.mark.parametrize("text", ["", "00", "0" * 31, "x" * 32, "00 " * 16])
def test_a_device_key_that_is_none_is_told_where_one_is(text: str) -> None:
    with pytest.raises(BadRequestError, match="32 hex") as caught:
        wire.parse_device_key(text)
    assert "device/bind/list" in caught.value.remedy


@pytest.mark.parametrize("size", [40_000, 49_200, 70_000])
def test_an_offer_or_answer_too_long_to_be_read_is_not_sent(size: int) -> None:
    long = "v=0" + "x" * size
    if size > 40_000:
        with pytest.raises(BadRequestError, match="the maximum is"):
            wire.seal_offer(SdpOffer(sdp=long), robot_key().public, SESSION_KEY)
        with pytest.raises(BadRequestError, match="the maximum is"):
            wire.seal_answer(SdpAnswer(sdp=long), SESSION_KEY)
    else:
        body = wire.seal_offer(SdpOffer(sdp=long), robot_key().public, SESSION_KEY)
        assert wire.open_offer(body, robot_key()).offer.sdp == long


NO_ANSWER: dict[str, tuple[bytes, str, str]] = {
    "nothing": (b"", "con_ing, answer", "0 bytes are not whole AES blocks"),
    "a web page": (b"<html>", "con_ing, answer", "not base64"),
    "15 bytes": (base64.b64encode(bytes(15)), "con_ing, answer", "15 bytes are not whole"),
    "huge": (b"A" * 65_540, "con_ing, answer", "65540 bytes"),
    "another session's": (
        base64.b64encode(ecb("f" * 32, b"{}")),
        "con_ing, answer",
        "another session key",
    ),
    "no JSON inside": (base64.b64encode(ecb(SESSION_KEY, b"Forbidden")), "answer", "not JSON"),
    "nothing inside": (base64.b64encode(ecb(SESSION_KEY, b"")), "answer", "not JSON"),
    "no SDP inside": (
        base64.b64encode(ecb(SESSION_KEY, b'{"type":"answer"}')),
        "answer",
        "no text under 'sdp'",
    ),
    "an offer inside": (
        base64.b64encode(ecb(SESSION_KEY, b'{"type":"offer","sdp":"v=0"}')),
        "answer",
        "its type is 'offer'",
    ),
}


@pytest.mark.parametrize(("body", "step", "words"), NO_ANSWER.values(), ids=list(NO_ANSWER.keys()))
def test_what_is_no_answer_is_refused_by_step_and_in_words(
    body: bytes, step: str, words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        wire.open_answer(body, SESSION_KEY)
    assert caught.value.step == step
    assert words in caught.value.seen
    assert caught.value.remedy


def raw_ecb(plain: bytes) -> bytes:
    cipher = Cipher(algorithms.AES(SESSION_KEY.encode()), modes.ECB()).encryptor()
    return base64.b64encode(cipher.update(plain) + cipher.finalize())


@pytest.mark.parametrize(
    "end", [b"\x00", b"\x11", b"\xff", b"\x01\x02", b"\x03\x02\x03", b"\x00" + b"\x10" * 15]
)
def test_padding_that_is_not_pkcs_7_is_refused(end: bytes) -> None:
    with pytest.raises(DocumentError, match="padding is wrong"):
        wire.open_answer(raw_ecb(end.rjust(32, b"{")), SESSION_KEY)


def by_hand(data1: object = "", data2: object = "") -> Callable[[], bytes]:
    return lambda: json.dumps({"data1": data1, "data2": data2}).encode()


PLAIN_OFFER = b'{"type":"offer","sdp":"v=0"}'
NO_OFFER: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "nothing": (lambda: b"", "con_ing", "not JSON"),
    "a form": (lambda: b"data1=a&data2=b", "con_ing", "not JSON"),
    "a list": (lambda: b"[]", "con_ing", "a JSON list"),
    "huge": (lambda: b"{" * 65_537, "con_ing", "65537 bytes"),
    "no keys": (lambda: b"{}", "con_ing", "no text under 'data2'"),
    "data2 a number": (by_hand(data2=7), "con_ing", "no text under 'data2'"),
    "data2 no base64": (by_hand(data2="_"), "con_ing, data2", "not base64"),
    "data2 empty": (by_hand(), "con_ing, data2", "0 bytes are not 1 to 32 RSA chunks"),
    "data2 too short": (by_hand(data2=b64(bytes(255))), "con_ing, data2", "255 bytes are not"),
    "data2 too long": (by_hand(data2=b64(bytes(33 * 256))), "con_ing, data2", "8448 bytes"),
    "data2 over the modulus": (
        by_hand(data2=b64(b"\xff" * 256)),
        "con_ing, data2",
        "made for another key",
    ),
    "data2 for another": (by_hand(data2=b64(b"\x01" * 256)), "con_ing, data2", "made for another"),
    "key too short": (lambda: sealed_offer(PLAIN_OFFER, b"a" * 31), "con_ing, data2", "32 hex"),
    "key no hex": (lambda: sealed_offer(PLAIN_OFFER, b"\xff" * 32), "con_ing, data2", "32 hex"),
    "data1 absent": (
        lambda: sealed_offer(PLAIN_OFFER).replace(b"data1", b"data3"),
        "con_ing",
        "no text under 'data1'",
    ),
    "data1 sealed with another": (
        lambda: sealed_offer(PLAIN_OFFER, b"f" * 32),
        "con_ing, data1",
        "another session key",
    ),
    "no JSON inside": (lambda: sealed_offer(b"hello"), "offer", "not JSON"),
    "no SDP inside": (lambda: sealed_offer(b'{"type":"offer"}'), "offer", "no text under 'sdp'"),
}


@pytest.mark.parametrize(("make", "step", "words"), NO_OFFER.values(), ids=list(NO_OFFER.keys()))
def test_what_is_no_sealed_offer_is_refused_by_step_and_in_words(
    make: Callable[[], bytes], step: str, words: str
) -> None:
    with pytest.raises(DocumentError) as caught:
        wire.open_offer(make(), robot_key())
    assert caught.value.step == step
    assert words in caught.value.seen
    assert caught.value.remedy


def test_an_offer_for_another_robot_is_refused() -> None:
    body = wire.seal_offer(OFFER, robot_key(2048, 17).public, SESSION_KEY)
    with pytest.raises(DocumentError, match="con_ing, data2"):
        wire.open_offer(body, robot_key())


def test_a_key_with_which_nothing_can_be_sealed_is_the_robots_fault() -> None:
    even = modulus(2**2048 - 2)
    told = wire.open_notice(packed(data1=notice_text(key=even)))
    with pytest.raises(DocumentError, match="it cannot encrypt"):
        wire.seal_offer(OFFER, told.public_key, SESSION_KEY)


# ---- the robot's key ----------------------------------------------------------------------------


def test_a_fresh_robot_key_has_2048_bits_and_works() -> None:
    key = RobotKey.generate()
    body = wire.seal_offer(OFFER, key.public, SESSION_KEY)
    assert len(base64.b64decode(json.loads(body)["data2"])) == 256
    assert wire.open_offer(body, key).offer == OFFER


def test_what_is_no_robot_key_is_a_bad_request() -> None:
    locked = private_key().private_bytes(
        serialization.Encoding.DER,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    for wrong in (b"", b"hello", robot_key().public, locked):
        with pytest.raises(BadRequestError, match="cannot be read"):
            RobotKey(wrong)
    with pytest.raises(BadRequestError, match="not an RSA key"):
        RobotKey(der(ec.generate_private_key(ec.SECP256R1())))


def test_without_the_library_the_error_says_which_extra_brings_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    body = wire.seal_notice(notice(), ENTROPY)
    plain = wire.seal_notice(notice(Wrapping.PLAIN), ENTROPY)
    public, private = robot_key().public, der(private_key())
    for name in list(sys.modules):
        if name.split(".")[0] == "cryptography":
            monkeypatch.setitem(sys.modules, name, None)
    for use in (
        lambda: wire.open_notice(body),
        lambda: wire.open_notice(plain),
        lambda: wire.seal_notice(notice(), ENTROPY),
        lambda: wire.seal_offer(OFFER, public, SESSION_KEY),
        lambda: wire.open_answer(b64(bytes(16)).encode(), SESSION_KEY),
        lambda: RobotKey(private),
        RobotKey.generate,
    ):
        with pytest.raises(MissingExtraError) as caught:
            use()
        assert "rote-robot[webrtc]" in caught.value.remedy
    assert sdp.decode_offer(sdp.encode_offer(OFFER)) == OFFER


def test_the_ports_and_paths_are_those_of_the_firmware() -> None:
    assert (wire.PORT, wire.NOTICE_PATH) == (9991, "/con_notify")
    assert (wire.LEGACY_PORT, wire.LEGACY_PATH) == (8081, "/offer")
    assert wire.SEALED_OFFER_TYPE == "application/x-www-form-urlencoded"


# ---- garbage and damage -------------------------------------------------------------------------


def read_all(body: bytes) -> None:
    """Read `body` in every way there is; anything but a `DecodeError` fails the test."""
    readers: tuple[Callable[[], object], ...] = (
        lambda: sdp.decode_offer(body),
        lambda: sdp.decode_answer(body),
        lambda: wire.open_notice(body),
        lambda: wire.open_notice(body, DEVICE_KEY),
        lambda: wire.open_offer(body, robot_key()),
        lambda: wire.open_answer(body, SESSION_KEY),
    )
    for read in readers:
        with contextlib.suppress(DecodeError):
            read()


@given(st.binary(max_size=100))
def test_arbitrary_bytes_never_raise_anything_but_decode_error(body: bytes) -> None:
    read_all(body)
    read_all(base64.b64encode(body))


VALUES = (
    st.none()
    | st.booleans()
    | st.integers(0, 4)
    | st.text(max_size=40)
    | st.binary(max_size=60).map(b64)
)


@given(st.dictionaries(st.sampled_from(["data1", "data2", "sdp", "type", "id"]), VALUES))
def test_arbitrary_documents_never_raise_anything_but_decode_error(
    document: dict[str, object],
) -> None:
    body = json.dumps(document).encode()
    read_all(body)
    read_all(base64.b64encode(body))
    read_all(base64.b64encode(ecb(SESSION_KEY, body)))


@given(st.binary(max_size=400), st.text(max_size=10))
def test_arbitrary_keys_in_a_notice_never_raise_anything_but_decode_error(
    key: bytes, tail: str
) -> None:
    read_all(packed(data1=notice_text(key=key, tail=tail), data2=1))
    read_all(wrapped(notice_text(key=key).encode() + key))


def flipped(body: bytes, place: float, bit: int) -> bytes:
    damaged = bytearray(body)
    damaged[int(place * len(body))] ^= 1 << bit
    return bytes(damaged)


PLACES = st.floats(0, 1, exclude_max=True)
BITS = st.integers(0, 7)


@given(st.sampled_from(Wrapping), PLACES, BITS)
def test_a_notice_with_a_flipped_bit_is_refused_or_read_without_a_crash(
    wrapping: Wrapping, place: float, bit: int
) -> None:
    read_all(flipped(wire.seal_notice(notice(wrapping), ENTROPY, DEVICE_KEY), place, bit))


@given(st.sampled_from([Wrapping.STATIC_KEY, Wrapping.DEVICE_KEY]), PLACES, BITS)
def test_a_wrapped_text_with_a_flipped_bit_is_always_refused(
    wrapping: Wrapping, place: float, bit: int
) -> None:
    document = unpacked(wire.seal_notice(notice(wrapping), ENTROPY, DEVICE_KEY))
    raw = base64.b64decode(str(document["data1"]))
    body = packed(data1=b64(flipped(raw, place, bit)), data2=wrapping.value)
    with pytest.raises(DocumentError, match="tag does not match"):
        wire.open_notice(body, DEVICE_KEY)


@given(PLACES, BITS)
def test_a_plain_key_with_a_flipped_bit_is_refused_or_seals_without_a_crash(
    place: float, bit: int
) -> None:
    damaged = flipped(robot_key().public, place, bit)
    with contextlib.suppress(DecodeError):
        told = wire.open_notice(packed(data1=notice_text(key=damaged)))
        wire.seal_offer(OFFER, told.public_key, SESSION_KEY)


@cache
def good_offer() -> bytes:
    return wire.seal_offer(OFFER, robot_key().public, SESSION_KEY)


@given(PLACES, BITS)
def test_a_sealed_offer_with_a_flipped_bit_is_refused_or_read_without_a_crash(
    place: float, bit: int
) -> None:
    read_all(flipped(good_offer(), place, bit))


@given(PLACES, BITS)
def test_a_wrapped_session_key_with_a_flipped_bit_is_always_refused(place: float, bit: int) -> None:
    document = json.loads(good_offer())
    document["data2"] = b64(flipped(base64.b64decode(document["data2"]), place, bit))
    with pytest.raises(DocumentError, match="con_ing, data2"):
        wire.open_offer(json.dumps(document).encode(), robot_key())


@given(st.sampled_from([ANSWER, Busy()]), PLACES, BITS)
def test_a_sealed_answer_with_a_flipped_bit_is_refused_or_read_without_a_crash(
    answer: SdpAnswer | Busy, place: float, bit: int
) -> None:
    body = wire.seal_answer(answer, SESSION_KEY)
    read_all(flipped(body, place, bit))
    read_all(base64.b64encode(flipped(base64.b64decode(body), place, bit)))
