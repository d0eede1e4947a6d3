"""STUN against a published vector, against itself and against garbage."""

import contextlib
import hashlib
import hmac

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError, TruncatedError
from rote.wire.packets import stun
from rote.wire.packets.stun import Attribute, Class, Method, StunMessage

# RFC 5769, section 2.1: a binding request with every attribute of an ICE check.
PASSWORD = "VOkJxbRl1RmTxUk/WvJxBt"
REQUEST = bytes.fromhex(
    "000100582112a442b7e7a701bc34d686fa87dfae"
    "802200105354554e207465737420636c69656e74"
    "002400046e0001ff80290008932ff9b151263b36"
    "00060009" + b"evtj:h6vY".hex() + "202020"
    "000800149aeaa70cbfd8cb56781ef2b5b2d3f249c1b571a2"
    "80280004e57a3bcf"
)
TRANSACTIONS = st.binary(min_size=12, max_size=12)
MESSAGES = st.builds(
    StunMessage,
    st.sampled_from([int(each) for each in Class]),
    TRANSACTIONS,
    st.lists(st.tuples(st.integers(0, 2**16 - 1), st.binary(max_size=21)), max_size=5).map(tuple),
    st.integers(0, 2**12 - 1),
)


def test_a_check_of_the_standard_is_read_whole() -> None:
    message = stun.decode(REQUEST)
    assert message.label == "binding request"
    assert message.username == "evtj:h6vY"
    assert message.priority == 0x6E0001FF
    assert message.controlling is False
    assert message.attribute(Attribute.SOFTWARE) == b"STUN test client"
    assert message.mapped is None
    assert message.error is None
    assert stun.fingerprint_holds(REQUEST) is True


@given(st.integers(0, len(REQUEST) * 8 - 1))
def test_one_wrong_bit_breaks_the_fingerprint(bit: int) -> None:
    damaged = bytearray(REQUEST)
    damaged[bit // 8] ^= 1 << bit % 8
    assert not stun.fingerprint_holds(bytes(damaged))


@given(MESSAGES)
def test_a_message_is_read_as_it_was_written(message: StunMessage) -> None:
    assert stun.decode(stun.encode(message)) == message


@given(MESSAGES, st.text(max_size=9))
def test_a_protected_message_has_the_right_tag_and_fingerprint(
    message: StunMessage, password: str
) -> None:
    datagram = stun.encode(message, password=password, fingerprint=True)
    read = stun.decode(datagram)
    assert read.attributes[: len(message.attributes)] == message.attributes
    assert [number for number, _ in read.attributes[-2:]] == [0x0008, 0x8028]
    assert stun.fingerprint_holds(datagram) is True
    # The tag covers the message as it would be without a fingerprint: a length 8 bytes smaller.
    covered = bytearray(datagram[:-32])
    covered[2:4] = (len(datagram) - 28).to_bytes(2)
    tag = hmac.new(password.encode(), covered, hashlib.sha1).digest()
    assert datagram[-28:-8] == tag


@given(st.ip_addresses(), st.integers(0, 65535), TRANSACTIONS)
def test_an_address_survives_its_mask(ip: object, port: int, transaction: bytes) -> None:
    host = str(ip).split("%")[0]
    value = stun.encode_xor_address((host, port), transaction)
    message = StunMessage(Class.SUCCESS, transaction, ((Attribute.XOR_MAPPED_ADDRESS, value),))
    assert message.mapped == (host, port)


@pytest.mark.parametrize("value", [b"", bytes(8), b"\0\2" + bytes(6), b"\0\1" + bytes(18)])
def test_a_mapped_address_that_is_none_is_not_made_up(value: bytes) -> None:
    attributes = ((Attribute.XOR_MAPPED_ADDRESS, value),)
    assert StunMessage(Class.SUCCESS, bytes(12), attributes).mapped is None


def test_roles_and_errors_are_read() -> None:
    controlling = StunMessage(0, bytes(12), ((Attribute.ICE_CONTROLLING, bytes(8)),))
    assert controlling.controlling is True
    plain = StunMessage(Class.ERROR, bytes(12), ((Attribute.ERROR_CODE, b"\0\0\4\x57Role"),))
    assert plain.controlling is None
    assert plain.error == (487, "Role")
    assert plain.priority is None
    assert plain._replace(attributes=((9, b"ab"), (0x24, b"a"))).error is None
    assert plain.label == "binding error"
    assert plain._replace(method=0xABC).label == "method 0xabc error"
    assert plain._replace(method=Method.CREATE_PERMISSION).label == "create permission error"


@pytest.mark.parametrize(
    ("datagram", "error"),
    [
        (REQUEST[:19], TruncatedError),
        (b"\x40" + REQUEST[1:], DecodeError),
        (REQUEST[:4] + b"\0" + REQUEST[5:], DecodeError),
        (REQUEST + b"\0", DecodeError),
        (REQUEST[:2] + b"\0\x57" + REQUEST[4:-1], DecodeError),
        (stun.encode(StunMessage(0, bytes(12), ((1, b"abcd"),)))[:-5] + b"\5abcd", TruncatedError),
    ],
)
def test_what_is_no_stun_is_refused(datagram: bytes, error: type[DecodeError]) -> None:
    with pytest.raises(error):
        stun.decode(datagram)


def test_no_fingerprint_is_not_a_wrong_one() -> None:
    assert stun.fingerprint_holds(bytes(20)) is None
    assert stun.fingerprint_holds(stun.encode(StunMessage(0, bytes(12), ((1, b"abcd"),)))) is None


@given(st.binary(max_size=60))
def test_arbitrary_bytes_raise_nothing_but_decode_error(data: bytes) -> None:
    head = b"\1\1" + len(data).to_bytes(2) + stun.MAGIC.to_bytes(4) + bytes(12)
    for datagram in (data, head + data):
        stun.fingerprint_holds(datagram)
        with contextlib.suppress(DecodeError):
            message = stun.decode(datagram)
            assert message.username is not None
            assert message.error is None or message.error[0] < 1000
