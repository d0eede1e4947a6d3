"""Descriptions of a data channel: written here, read by aiortc; and the other way round."""

import contextlib
import re

import pytest
from aiortc.sdp import SessionDescription
from hypothesis import given
from hypothesis import strategies as st

from rote.errors import DecodeError
from rote.wire.webrtc.description import Peer, Side, read_peer, write_answer, write_offer
from rote.wire.webrtc.sdp import Fingerprint, read_strictly

PRINT = ":".join(["AB"] * 32)
SIDE = Side("ufrg", "p" * 22, PRINT, ("1 1 udp 2130706431 10.0.0.2 4001 typ host",))
OTHER = Side("othr", "q" * 22, ":".join(["CD"] * 32), ("2 1 udp 99 10.0.0.3 5001 typ host",))


@pytest.mark.parametrize("media", [False, True])
def test_an_offer_is_read_by_another_implementation_and_by_ours(media: bool) -> None:
    text = write_offer(SIDE, 7, media=media)
    theirs = SessionDescription.parse(text)
    assert [m.kind for m in theirs.media] == ["audio", "video", "application"][-1 - 2 * media :]
    assert {m.ice.usernameFragment for m in theirs.media if m.ice} == {"ufrg"}
    assert {m.dtls.fingerprints[0].value for m in theirs.media if m.dtls} == {PRINT}
    assert all(len(m.ice_candidates) == 1 and m.ice_candidates_complete for m in theirs.media)
    assert theirs.group[0].items == [str(i) for i in range(len(theirs.media))]
    assert read_peer(text) == Peer(
        "ufrg",
        "p" * 22,
        (Fingerprint("sha-256", PRINT),),
        SIDE.candidates,
        "actpass",
        5000,
        65_536,
    )


@pytest.mark.parametrize("media", [False, True])
@pytest.mark.parametrize("size", [None, 1000])
def test_an_answer_follows_the_offer_line_by_line(media: bool, size: int | None) -> None:
    offer = write_offer(SIDE, 7, media=media)
    answer = write_answer(offer, OTHER, 8, message_size=size)
    theirs = SessionDescription.parse(answer)
    assert [m.kind for m in theirs.media] == [m.kind for m in SessionDescription.parse(offer).media]
    assert [m.rtp.muxId for m in theirs.media] == [str(i) for i in range(len(theirs.media))]
    assert all(m.direction == "inactive" for m in theirs.media if m.kind != "application")
    peer = read_peer(answer)
    assert (peer.setup, peer.ufrag, peer.message_size) == ("active", "othr", size or 65_536)


def test_an_answer_to_an_older_clients_offer_is_in_its_own_words() -> None:
    offer = write_offer(SIDE, 7).replace(
        "9 UDP/DTLS/SCTP webrtc-datachannel", "51000 DTLS/SCTP 5000"
    )
    answer = write_answer(offer, OTHER, 8)
    assert "m=application 9 DTLS/SCTP 5000\r\na=sctpmap:5000 webrtc-datachannel" in answer


def test_of_many_codecs_one_is_chosen_that_both_know() -> None:
    offer = (
        "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0 96\r\na=rtpmap:0 PCMU/8000\r\n"
        "a=rtpmap:96 opus/48000/2\r\nm=video 9 UDP/TLS/RTP/SAVPF 97 98\r\n"
        "a=rtpmap:97 VP8/90000\r\na=fmtp:97 x\r\n"
    )
    answer = write_answer(offer, OTHER, 8)
    assert "m=audio 9 UDP/TLS/RTP/SAVPF 96\r\na=rtpmap:96 opus/48000/2\r\n" in answer
    assert "m=video 9 UDP/TLS/RTP/SAVPF 97\r\na=rtpmap:97 VP8/90000\r\na=fmtp:97 x\r\n" in answer
    assert "a=mid:0" in answer
    assert "a=mid:1" in answer


def test_every_line_says_the_same_as_the_robots_stack_needs_it() -> None:
    text = write_offer(SIDE, 7, media=True)
    assert read_strictly(text) == ("ufrg", "p" * 22, PRINT)
    assert "sha-384" not in text


def test_what_the_channels_own_line_leaves_out_the_first_line_says() -> None:
    text = write_offer(SIDE, 7, media=True)
    head, first, second, own = re.split("(?=m=)", text)
    bare = re.sub("a=(ice|fing|cand|setup).*\r\n", "", own)
    assert read_peer(head + first + second + bare)[:5] == read_peer(text)[:5]


@pytest.mark.parametrize(
    ("pattern", "by"),
    [
        ("m=application", "m=other"),
        ("a=ice-ufrag:.*\r\n", ""),
        ("a=ice-pwd:.*\r\n", ""),
        ("a=fingerprint:.*\r\n", ""),
        ("candidate:1 1 udp", "candidate:1 9 udp"),
        ("10.0.0.2 4001", "10.0.0.2 70000"),
        ("a=candidate:.*", "a=candidate:x"),
        ("sctp-port:5000", "sctp-port:0"),
        ("sctp-port:5000", "sctp-port:many"),
        ("sctp-port:5000", "sctp-port:" + "9" * 50),
    ],
)
def test_what_cannot_be_used_is_said(pattern: str, by: str) -> None:
    text, count = re.subn(pattern, by, write_offer(SIDE, 7))
    assert count
    with pytest.raises(DecodeError):
        read_peer(text)


@pytest.mark.parametrize("odd", ["x", "", "1 9 udp 1 10.0.0.2 4001 typ host"])
def test_a_candidate_that_cannot_be_read_hides_no_other(odd: str) -> None:
    text = write_offer(SIDE, 7)
    with_odd = text.replace("a=candidate:", f"a=candidate:{odd}\r\na=candidate:", 1)
    assert read_peer(with_odd) == read_peer(text)


@given(st.text(alphabet="amvo=:0123456789 \r\napplicationudptyphostcesfig-", max_size=400))
def test_any_text_is_read_or_refused(text: str) -> None:
    for candidate in (text, "v=0\r\nm=application 9 x y\r\n" + text):
        with contextlib.suppress(DecodeError):
            read_peer(candidate)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(
                ["a=ice-ufrag", "a=ice-pwd", "a=fingerprint", "a=setup", "m=application", "m=audio",
                 "a=candidate", "a=mid", "a=sctp-port", "a=max-message-size", "a=rtpmap"]
            ),
            st.sampled_from([":", "", " 9 "]),
            st.text(max_size=30),
        ),
        max_size=20,
    )
)  # fmt: skip
def test_any_lines_are_answered_or_refused(parts: list[tuple[str, str, str]]) -> None:
    text = "v=0\r\n" + "".join(f"{a}{b}{c}\r\n" for a, b, c in parts)
    with contextlib.suppress(DecodeError):
        read_peer(text)
        write_answer(text, OTHER, 1)


@pytest.mark.parametrize("line", ["m=application", "m=application a", "m=audio 9 x"])
def test_a_line_of_too_few_words_is_not_answered(line: str) -> None:
    with pytest.raises(DecodeError, match="too few words"):
        write_answer(f"v=0\r\n{line}\r\n", OTHER, 1)
