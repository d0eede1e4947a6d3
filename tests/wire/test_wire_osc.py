"""OSC: what is written is read again, and anything else is refused."""

import struct
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError
from rote.wire.osc import OscMessage, decode, encode

TEXT = st.text(st.characters(blacklist_characters="\0", blacklist_categories=["Cs"]), max_size=20)
ARGS = st.lists(
    st.integers(-(2**31), 2**31 - 1) | st.floats(width=32, allow_nan=False) | TEXT | st.booleans()
)


@given(address=TEXT, args=ARGS)
def test_a_message_survives_its_journey(address: str, args: list[int | float | str | bool]) -> None:
    message = OscMessage(f"/{address}", tuple(args))
    data = encode(message)
    assert len(data) % 4 == 0
    assert decode(data) == [message]


def test_the_bytes_of_the_standards_own_example() -> None:
    data = bytes.fromhex("2f6f7363696c6c61746f722f342f6672657175656e6379002c66000043dc0000")
    assert decode(data) == [OscMessage("/oscillator/4/frequency", (440.0,))]
    assert encode(OscMessage("/oscillator/4/frequency", (440.0,))) == data


def test_a_bundle_is_read_and_its_time_ignored() -> None:
    parts = [encode(OscMessage("/a", (1,))), encode(OscMessage("/b"))]
    data = b"#bundle\0" + b"\0" * 8 + b"".join(struct.pack(">I", len(p)) + p for p in parts)
    assert [each.address for each in decode(data)] == ["/a", "/b"]
    for cut in range(17, len(data)):
        with suppress(DecodeError):
            decode(data[:cut])


@given(st.binary(max_size=100))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    with suppress(DecodeError):
        decode(data)


def test_an_older_program_sends_no_type_tags() -> None:
    assert decode(b"/go\0") == [OscMessage("/go")]
    with pytest.raises(DecodeError):
        decode(b"go\0\0")


@pytest.mark.parametrize("number", [1e300, -1e39, 2**70, 10**200, 3.5e38])
def test_a_number_that_32_bits_cannot_hold_is_sent_with_64(number: float) -> None:
    (read,) = decode(encode(OscMessage("/n", (number,))))
    assert read.args[0] == pytest.approx(number, rel=1e-6)
