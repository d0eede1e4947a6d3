"""Discovery against the documents of real robots, against itself and against garbage."""

import contextlib
import copy
import ipaddress
import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, DecodeError
from rote.wire import discovery as wire
from rote.wire.discovery import DocumentError, Query, Reply

# As a G1 Air with firmware 1.4.7 said it (spec/datachannel.md, section 2), the serial shortened.
REAL_REPLY = b'{"sn": "E21D1000", "key": "", "name": "unitree_dapengche", "ip": "192.168.86.2"}'

SERIALS = st.text(st.characters(min_codepoint=32, max_codepoint=126), min_size=1, max_size=64)
ADDRESSES = st.ip_addresses().filter(
    lambda ip: not (ip.is_multicast or ip.is_unspecified or str(ip) == "255.255.255.255")
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


# ---- what is sent -------------------------------------------------------------------------------


def test_a_query_says_what_the_vendors_app_says() -> None:
    assert json.loads(wire.encode_query(Query())) == {"name": "unitree_dapengche"}
    assert json.loads(wire.encode_query(Query("E21D1000"))) == {
        "name": "unitree_dapengche",
        "sn": "E21D1000",
    }


def test_a_reply_says_what_a_real_robot_says() -> None:
    reply = Reply(serial="E21D1000", address="192.168.86.2")
    assert wire.decode_reply(REAL_REPLY) == reply
    assert json.loads(wire.encode_reply(reply)) == json.loads(REAL_REPLY)


@given(SERIALS | st.none())
def test_any_query_is_read_as_it_was_written(serial: str | None) -> None:
    assert wire.decode_query(wire.encode_query(Query(serial))) == Query(serial)


@given(SERIALS, ADDRESSES)
def test_any_reply_is_read_as_it_was_written(
    serial: str, ip: ipaddress.IPv4Address | ipaddress.IPv6Address
) -> None:
    reply = Reply(serial=serial, address=str(ip))
    if getattr(ip, "scope_id", None):
        with pytest.raises(BadRequestError):
            wire.encode_reply(reply)
    else:
        assert wire.decode_reply(wire.encode_reply(reply)) == reply


@pytest.mark.parametrize("serial", ["", "a" * 65, "\x1b[31m", "Büro", "\ud800"])
def test_a_serial_that_no_robot_has_is_a_bad_request(serial: str) -> None:
    with pytest.raises(BadRequestError, match="not a serial"):
        wire.encode_query(Query(serial))
    with pytest.raises(BadRequestError, match="not a serial"):
        wire.encode_reply(Reply(serial=serial, address="10.0.0.1"))


# ---- who listens where, and who answers ---------------------------------------------------------


def test_every_family_has_its_groups_and_all_of_them_are_asked_where_none_is_named() -> None:
    assert wire.list_groups("go2") == ("231.1.1.1",)
    assert wire.list_groups("G1") == wire.list_groups("r1") == ("231.1.1.2", "239.255.1.1")
    assert wire.list_groups() == ("231.1.1.1", "231.1.1.2", "239.255.1.1")
    assert all(ipaddress.ip_address(group).is_multicast for group in wire.list_groups())


def test_the_ports_are_those_of_the_vendors_app() -> None:
    assert (wire.QUERY_PORT, wire.REPLY_PORT) == (10131, 10134)


def test_an_unknown_family_is_told_the_known_ones() -> None:
    with pytest.raises(BadRequestError, match="b2") as caught:
        wire.list_groups("b2")
    assert caught.value.remedy == "Known: go2, g1, r1."


@pytest.mark.parametrize(
    ("asked", "only_by_name", "answers"),
    [
        (None, False, True),
        (None, True, False),
        ("E1", False, True),
        ("E1", True, True),
        ("E2", False, False),
        ("E2", True, False),
    ],
)
def test_a_robot_answers_to_its_serial_and_older_ones_to_anybody(
    asked: str | None, only_by_name: bool, answers: bool
) -> None:
    assert Query(asked).concerns("E1", only_by_name=only_by_name) is answers


# ---- what is read -------------------------------------------------------------------------------


def test_a_reply_may_have_other_keys_or_none_of_those_not_needed() -> None:
    assert wire.decode_reply(
        b'{"ip":"10.0.0.7","sn":"B42D","key":7,"name":null,"battery":[1,2],"\xc3\xbc":{}}'
    ) == Reply(serial="B42D", address="10.0.0.7")
    assert wire.decode_reply(b'{"ip":"10.0.0.7","sn":"B42D"}').serial == "B42D"


@pytest.mark.parametrize("serial", ["", ',"sn":null', ',"sn":""'])
def test_a_query_without_a_serial_asks_everybody(serial: str) -> None:
    assert wire.decode_query(b'{"name":"unitree_dapengche"%s}' % serial.encode()) == Query()


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("robot.local", "not an IP address"),
        ("", "not an IP address"),
        ("192.168.1", "not an IP address"),
        ("192.168.1.256", "not an IP address"),
        ("192.168.1.1:9991", "not an IP address"),
        (" 192.168.1.1", "not an IP address"),
        ("http://192.168.1.1", "not an IP address"),
        ("٣.3.3.3", "not an IP address"),
        ("0.0.0.0", "one host"),
        ("::", "one host"),
        ("231.1.1.2", "one host"),
        ("255.255.255.255", "one host"),
        ("fe80::1%\x1b[31m", "one host"),
    ],
)
def test_an_address_that_is_not_one_hosts_ip_is_refused(address: str, words: str) -> None:
    document = json.dumps({"sn": "E1", "ip": address}).encode()
    with pytest.raises(DocumentError, match=words) as caught:
        wire.decode_reply(document)
    assert caught.value.step == "discovery reply"
    assert caught.value.remedy
    assert "\x1b" not in str(caught.value)
    with pytest.raises(BadRequestError, match=words):
        wire.encode_reply(Reply(serial="E1", address=address))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"", "not JSON"),
        (b"hello", "it begins with b'hello'"),
        (b"\xff\xfe", "not JSON in UTF-8"),
        (b"[" * 60_000, "not JSON"),
        (b'{"sn":' + b"9" * 5000 + b"}", "not JSON"),
        (b"[]", "a JSON list, not an object"),
        (b"null", "a JSON NoneType"),
        (b"{}", "no text under 'sn'"),
        (b'{"name":"unitree_dapengche"}', "its keys are 'name'"),
        (b'{"sn":7,"ip":"10.0.0.1"}', "no text under 'sn'"),
        (b'{"sn":"E1"}', "no text under 'ip'"),
        (b'{"sn":"E1","ip":167772161}', "no text under 'ip'"),
        (b'{"sn":"\\ud800","ip":"10.0.0.1"}', "lone surrogate"),
        (b'{"sn":"","ip":"10.0.0.1"}', "not a serial"),
        (b'{"sn":"\\u001b[2J","ip":"10.0.0.1"}', "not a serial"),
        (b'{"sn":"%s","ip":"10.0.0.1"}' % (b"E" * 65), "not a serial"),
        (b" " * 65_537, "65537 bytes; the maximum is 65536"),
    ],
    ids=range(17),
)
def test_what_is_no_reply_is_refused_in_words(document: bytes, words: str) -> None:
    with pytest.raises(DocumentError, match="discovery reply") as caught:
        wire.decode_reply(document)
    assert words in str(caught.value)
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"{}", "no text under 'name'"),
        (b'{"name":"unitree"}', "'unitree', not 'unitree_dapengche'"),
        (b'{"name":"unitree_dapengche","sn":7}', "no text under 'sn'"),
        (b'{"name":"unitree_dapengche","sn":[]}', "no text under 'sn'"),
        (b'{"name":"unitree_dapengche","sn":"\\n"}', "not a serial"),
    ],
)
def test_what_is_no_query_is_refused_in_words(document: bytes, words: str) -> None:
    with pytest.raises(DocumentError, match="discovery query") as caught:
        wire.decode_query(document)
    assert words in str(caught.value)


@given(
    st.binary(max_size=80)
    | JSON.map(lambda value: json.dumps(value).encode())
    | st.fixed_dictionaries(
        {},
        optional={"sn": JSON, "ip": JSON | st.just("10.0.0.1"), "name": JSON | st.just(wire.NAME)},
    ).map(lambda document: json.dumps(document).encode())
)
def test_arbitrary_bytes_never_raise_anything_but_decode_error(datagram: bytes) -> None:
    for decode in (wire.decode_query, wire.decode_reply):
        with contextlib.suppress(DecodeError):
            decode(datagram)


@given(st.integers(0, 8 * len(REAL_REPLY) - 1))
def test_a_reply_with_a_flipped_bit_is_refused_or_names_one_host(bit: int) -> None:
    damaged = bytearray(REAL_REPLY)
    damaged[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(DecodeError):
        assert ipaddress.ip_address(wire.decode_reply(bytes(damaged)).address)


# ---- the shared writing and its error -----------------------------------------------------------


def test_a_document_too_long_to_be_sent_is_a_bad_request() -> None:
    assert len(wire.encode_json({"a": "x" * (wire.MAX_BODY - 8)})) == wire.MAX_BODY
    with pytest.raises(BadRequestError, match="65537 bytes"):
        wire.encode_json({"a": "x" * (wire.MAX_BODY - 7)})


def test_half_a_character_cannot_be_sent() -> None:
    with pytest.raises(BadRequestError, match="surrogates"):
        wire.encode_json({"a": "\ud800"})


def test_a_document_error_survives_copying_and_pickling() -> None:
    error = DocumentError("answer", "it is empty", "Ask again.")
    for again in (copy.copy(error), pickle.loads(pickle.dumps(error))):
        assert str(again) == "answer: it is empty"
        assert (again.step, again.seen, again.remedy) == ("answer", "it is empty", "Ask again.")
