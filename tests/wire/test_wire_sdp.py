"""SDP and its documents: what is kept, what is told, and how the robot's own stack reads it."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import BadRequestError, DecodeError
from rote.wire.discovery import DocumentError
from rote.wire.webrtc import sdp as wire
from rote.wire.webrtc.sdp import Busy, Fingerprint, MediaLine, SdpAnswer, SdpOffer, StrictReading

ENDS = ["\r\n", "\n", "\r"]


def digest(size: int, byte: int = 0xAB) -> str:
    return ":".join([f"{byte:02X}"] * size)


def section(kind: str, ufrag: str, password: str, *fingerprints: str) -> list[str]:
    return [
        f"m={kind} 9 UDP/TLS/RTP/SAVPF 96",
        f"a=ice-ufrag:{ufrag}",
        f"a=ice-pwd:{password}",
        *(f"a=fingerprint:{fingerprint}" for fingerprint in fingerprints),
        "a=setup:actpass",
    ]


HASHES = (f"sha-256 {digest(32)}", f"sha-384 {digest(48)}", f"sha-512 {digest(64)}")
HEAD = ["v=0", "o=- 1 1 IN IP4 0.0.0.0", "s=-", "t=0 0", "a=group:BUNDLE 0 1 2"]
# Three m-lines that differ in everything, and each with three hashes: what aiortc 1.11 to 1.14 say.
OFFER_LINES = [
    *HEAD,
    *section("audio", "uf1", "pw1", *HASHES),
    *section("video", "uf2", "pw2", *HASHES),
    *section("application", "uf3", "pw3", *HASHES),
]


def text(lines: list[str], end: str = "\r\n") -> str:
    return end.join(lines) + end


# ---- documents ----------------------------------------------------------------------------------

TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)
SDPS = TEXTS.map(lambda rest: "v=0" + rest)


def test_the_documents_have_the_vendors_keys() -> None:
    offer = json.loads(wire.encode_offer(SdpOffer(sdp="v=0\r\n")))
    assert offer == {"id": "STA_localNetwork", "sdp": "v=0\r\n", "type": "offer", "token": ""}
    answer = json.loads(wire.encode_answer(SdpAnswer(sdp="v=0\r\n")))
    assert answer == {"type": "answer", "sdp": "v=0\r\n", "id": "STA_localNetwork"}
    busy = json.loads(wire.encode_answer(Busy()))
    assert busy == {"type": "answer", "sdp": "reject", "id": "STA_localNetwork"}


@given(SDPS, TEXTS, TEXTS)
def test_any_document_is_read_as_it_was_written(sdp: str, name: str, token: str) -> None:
    offer = SdpOffer(sdp=sdp, id=name, token=token)
    assert wire.decode_offer(wire.encode_offer(offer)) == offer
    for answer in (SdpAnswer(sdp=sdp, id=name), Busy(id=name)):
        assert wire.decode_answer(wire.encode_answer(answer)) == answer


def test_a_robot_that_rejects_is_busy_whatever_else_it_says() -> None:
    assert wire.decode_answer(b'{"sdp":"reject"}') == Busy(id="")
    assert wire.decode_answer(b'{"sdp":"reject","type":"error","id":"B\xc3\xbcro"}') == Busy(
        id="Büro"
    )


def test_an_offer_may_leave_out_id_and_token_and_have_more() -> None:
    cloud = b'{"sdp":"v=0","type":"offer","turnserver":{"user":"u"}}'
    assert wire.decode_offer(cloud) == SdpOffer(sdp="v=0", id="", token="")


@pytest.mark.parametrize("sdp", ["", "reject", "m=audio", " v=0", "v=1"])
def test_what_is_no_sdp_cannot_be_sent(sdp: str) -> None:
    with pytest.raises(BadRequestError, match="v=0"):
        wire.encode_offer(SdpOffer(sdp=sdp))
    with pytest.raises(BadRequestError, match="v=0"):
        wire.encode_answer(SdpAnswer(sdp=sdp))


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ("", "answer: not JSON"),
        ("<html>404</html>", "it begins with b'<html>404</html>'"),
        ('"v=0"', "a JSON str, not an object"),
        ("{}", "no text under 'sdp'"),
        ('{"type":"answer","id":"x"}', "its keys are 'id, type'"),
        ('{"type":"answer","sdp":null}', "no text under 'sdp'"),
        ('{"type":"answer","sdp":""}', "its SDP begins with '', not 'v=0'"),
        ('{"type":"answer","sdp":"busy"}', "its SDP begins with 'busy'"),
        ('{"type":"offer","sdp":"v=0"}', "its type is 'offer', not 'answer'"),
        ('{"sdp":"v=0"}', "its type is None"),
        ('{"type":' + "[" * 500 + "]" * 500 + ',"sdp":"v=0"}', "its type is [[[[[["),
        ('{"type":"answer","sdp":"v=0","id":7}', "no text under 'id'"),
        ('{"type":"answer","sdp":"v=0\\ud800"}', "lone surrogate"),
    ],
)
def test_what_is_no_answer_is_refused_in_words(document: str, words: str) -> None:
    with pytest.raises(DocumentError) as caught:
        wire.decode_answer(document.encode())
    assert words in str(caught.value)
    assert caught.value.step == "answer"
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    ("document", "words"),
    [
        ('{"type":"offer"}', "no text under 'sdp'"),
        ('{"type":"offer","sdp":"reject"}', "begins with 'reject'"),
        ('{"type":"answer","sdp":"v=0"}', "not 'offer'"),
        ('{"type":"offer","sdp":"v=0","token":1}', "no text under 'token'"),
        ('{"type":"offer","sdp":"v=0","id":null}', "no text under 'id'"),
    ],
)
def test_what_is_no_offer_is_refused_in_words(document: str, words: str) -> None:
    with pytest.raises(DocumentError, match="offer: ") as caught:
        wire.decode_offer(document.encode())
    assert words in str(caught.value)


# ---- per m-line ---------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ENDS)
def test_every_m_line_tells_its_own(end: str) -> None:
    three = (
        Fingerprint("sha-256", digest(32)),
        Fingerprint("sha-384", digest(48)),
        Fingerprint("sha-512", digest(64)),
    )
    assert wire.read_media(text(OFFER_LINES, end)) == (
        MediaLine("audio", "uf1", "pw1", three),
        MediaLine("video", "uf2", "pw2", three),
        MediaLine("application", "uf3", "pw3", three),
    )


def test_an_m_line_has_from_the_session_what_it_does_not_say() -> None:
    lines = [
        "v=0",
        "a=ice-ufrag:shared",
        "a=ice-pwd:secret",
        "a=fingerprint:SHA-256 ab:cd",
        "m=audio 9 X 0",
        "m=video 9 X 0",
        "a=ice-ufrag:own",
        "a=fingerprint:sha-512 12:34",
    ]
    shared = Fingerprint("sha-256", "AB:CD")
    assert wire.read_media(text(lines)) == (
        MediaLine("audio", "shared", "secret", (shared,)),
        MediaLine("video", "own", "secret", (Fingerprint("sha-512", "12:34"),)),
    )


def test_an_sdp_without_credentials_tells_none() -> None:
    assert wire.read_media("v=0\n") == ()
    assert wire.read_media("v=0\nm=audio") == (MediaLine("audio", None, None, ()),)


@pytest.mark.parametrize("value", ["", "sha-256", "sha-256 xyz", "sha-256 AB:C", "AB:CD"])
def test_a_fingerprint_that_is_none_is_refused_in_words(value: str) -> None:
    with pytest.raises(DecodeError, match="invalid fingerprint"):
        wire.read_media(f"v=0\nm=audio\na=fingerprint:{value}\n")


# ---- as the robot's stack reads -----------------------------------------------------------------


def test_the_robot_keeps_the_last_of_each_and_takes_any_hash_for_sha_256() -> None:
    assert wire.read_strictly(text(OFFER_LINES)) == StrictReading("uf3", "pw3", digest(64))


def test_the_robot_takes_a_fingerprint_but_no_ufrag_from_the_sessions_lines() -> None:
    lines = [
        "v=0",
        "a=ice-ufrag:session",
        "a=ice-pwd:session",
        "a=fingerprint:sha-256 AB",
        "m=audio",
        "a=ice-ufrag:uf",
        "a=ice-pwd:pw",
    ]
    assert wire.read_strictly(text(lines)) == StrictReading("uf", "pw", "AB")
    with pytest.raises(DecodeError, match="no ice-ufrag"):
        wire.read_strictly(text(lines[:5]))


@pytest.mark.parametrize(
    ("drop", "words"),
    [
        ("a=ice-ufrag", "no ice-ufrag"),
        ("a=ice-pwd", "no ice-pwd"),
        ("a=fingerprint", "no fingerprint"),
    ],
)
def test_the_robot_refuses_an_offer_that_lacks_one(drop: str, words: str) -> None:
    lines = [line for line in OFFER_LINES if not line.startswith(drop)]
    with pytest.raises(DecodeError, match=words):
        wire.read_strictly(text(lines))


def test_a_fingerprint_shorter_than_its_hashs_name_is_none() -> None:
    with pytest.raises(DecodeError, match="no fingerprint"):
        wire.read_strictly("m=audio\na=ice-ufrag:u\na=ice-pwd:p\na=fingerprint:sha-256 ")


@pytest.mark.parametrize("end", ENDS)
def test_an_offer_can_be_written_as_the_robot_reads_it(end: str) -> None:
    rewritten = wire.rewrite_as_read_strictly(text(OFFER_LINES, end))
    assert rewritten.count(end) == len(OFFER_LINES)
    one = Fingerprint("sha-256", digest(64))
    assert {media[1:] for media in wire.read_media(rewritten)} == {("uf3", "pw3", (one,) * 3)}
    assert wire.rewrite_as_read_strictly(rewritten) == rewritten


def test_an_offer_that_says_one_thing_is_written_as_it_was() -> None:
    lines = [*HEAD, *section("audio", "u", "p", HASHES[0]), *section("video", "u", "p", HASHES[0])]
    assert wire.rewrite_as_read_strictly(text(lines)) == text(lines)


# ---- garbage ------------------------------------------------------------------------------------

PIECES = st.sampled_from(
    [
        *OFFER_LINES,
        *ENDS,
        "a=",
        "a=fingerprint",
        "a=fingerprint:",
        "a=candidate:1 1 udp 2130706431 192.168.86.2 40001 typ host generation 0",
        "m=",
        "a=ice-ufrag:",
    ]
)
SCRAPS = st.lists(PIECES | st.sampled_from(ENDS) | st.text(max_size=5), max_size=30).map("".join)


@given(SCRAPS | st.text())
def test_arbitrary_text_never_raises_anything_but_decode_error(sdp: str) -> None:
    for read in (wire.read_media, wire.read_strictly, wire.rewrite_as_read_strictly):
        with contextlib.suppress(DecodeError):
            read(sdp)


@given(st.binary(max_size=80))
def test_arbitrary_bytes_never_raise_anything_but_decode_error(body: bytes) -> None:
    for decode in (wire.decode_offer, wire.decode_answer):
        with contextlib.suppress(DecodeError):
            decode(body)
