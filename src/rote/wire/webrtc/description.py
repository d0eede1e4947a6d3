"""Session descriptions, written and read: all that two ends need to open one data channel.

    offer    one m-line (application), or three with audio and video, which are never used
    answer   the m-lines of the offer in their order; audio and video inactive

All m-lines share one transport (BUNDLE), so each has the same ufrag, password, fingerprint and
candidates, as the robot's stack requires: see sdp.py.
"""

import re
from typing import NamedTuple

from rote.errors import DecodeError
from rote.wire.webrtc.sdp import Fingerprint, read_media

SCTP_PORT = 5000
DEFAULT_MESSAGE_SIZE = 65_536
"""The longest message of a side that does not state it."""
_MAX_CANDIDATES = 64
_CANDIDATE = re.compile(
    r"\S{1,64} [12] (?:udp|UDP|tcp|TCP) \d{1,10} \S{1,255} \d{1,5} typ \S{1,16}(?: .*)?", re.ASCII
)
_LINE_END = re.compile(r"\r\n|\r|\n")
_MEDIA = {
    "audio": "m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=rtpmap:111 opus/48000/2\r\n",
    "video": "m=video 9 UDP/TLS/RTP/SAVPF 119\r\na=rtpmap:119 H264/90000\r\n"
    "a=fmtp:119 level-asymmetry-allowed=1;packetization-mode=1;profile-level-id=42e01f\r\n",
}
_APPLICATION = "m=application 9 UDP/DTLS/SCTP webrtc-datachannel\r\n"


class Side(NamedTuple):
    """What one end states about itself."""

    ufrag: str
    password: str
    fingerprint: str
    """The sha-256 of its certificate: `AB:CD:...`."""
    candidates: tuple[str, ...]
    """Its addresses, each as in SDP after `candidate:`."""


class Peer(NamedTuple):
    """What a description states about its sender."""

    ufrag: str
    password: str
    fingerprints: tuple[Fingerprint, ...]
    candidates: tuple[str, ...]
    setup: str
    """`active`: it begins the DTLS handshake; `passive`; `actpass`: either."""
    sctp_port: int
    message_size: int
    """The longest message it accepts; 0 means any."""


def write_offer(side: Side, session: int, *, media: bool = False) -> str:
    """Return an offer for one data channel; with `media`, also for audio and video, as some robots
    need.
    """
    kinds = ("audio", "video", "application") if media else ("application",)
    parts = [
        _MEDIA.get(kind, _APPLICATION) + _transport_lines(side, str(mid), "actpass", kind)
        for mid, kind in enumerate(kinds)
    ]
    return _session_lines(session, tuple(str(mid) for mid in range(len(kinds)))) + "".join(parts)


def write_answer(offer: str, side: Side, session: int, *, message_size: int | None = None) -> str:
    """Return the answer to `offer`, m-line by m-line; a `message_size` of None is left out."""
    sections = _split_sections(offer)[1:]
    mids = tuple(
        _attribute_value(lines, "mid") or str(index) for index, lines in enumerate(sections)
    )
    parts = []
    for lines, mid in zip(sections, mids, strict=True):
        words = lines[0][2:].split(" ")
        if len(words) < 4:
            raise DecodeError(f"this m-line has too few words: {lines[0][:80]!r}")
        kind, _, protocol, *formats = words
        if kind == "application":
            line = f"m={kind} 9 {' '.join(words[2:])}\r\n"
            if protocol == "DTLS/SCTP":  # the syntax before RFC 8841
                line += f"a=sctpmap:{formats[0]} webrtc-datachannel 65535\r\n"
        else:
            line = _one_codec(lines, kind, protocol, formats)
        if kind == "application" and message_size is not None:
            line += f"a=max-message-size:{message_size}\r\n"
        parts.append(line + _transport_lines(side, mid, "active", kind))
    return _session_lines(session, mids) + "".join(parts)


def _is_candidate(text: str) -> bool:
    return bool(_CANDIDATE.fullmatch(text)) and int(text.split(" ")[5]) <= 65_535


def read_peer(sdp: str) -> Peer:
    """Return what the sender of `sdp` states about its data channel; raise `DecodeError` if
    incomplete.

    What the m-line of the channel does not state is taken from the first m-line or the session.
    """
    sections = _split_sections(sdp)
    media = read_media(sdp)
    index = next((i for i, one in enumerate(media) if one.kind == "application"), None)
    if index is None:
        raise DecodeError("a description without a data channel (m=application)")
    own, first, session = sections[index + 1], sections[1], sections[0]
    lacking = (own, first, session)
    ufrag, password = (_first_attribute(lacking, name) for name in ("ice-ufrag", "ice-pwd"))
    fingerprints = media[index].fingerprints or media[0].fingerprints
    if not ufrag or not password or not fingerprints:
        raise DecodeError("a description without ice-ufrag, ice-pwd or fingerprint")
    stated = dict.fromkeys(
        _attribute_values(own, "candidate") + _attribute_values(first, "candidate")
    )
    # One invalid candidate does not hide the others.
    candidates = [candidate for candidate in stated if _is_candidate(candidate)]
    if stated and not candidates:
        raise DecodeError(f"this is no ICE candidate: {next(iter(stated))[:80]!r}")
    return Peer(
        ufrag,
        password,
        fingerprints,
        tuple(candidates)[:_MAX_CANDIDATES],
        _first_attribute(lacking, "setup") or "actpass",
        _parse_number(_attribute_value(own, "sctp-port"), 1, 65_535, SCTP_PORT),
        _parse_number(_attribute_value(own, "max-message-size"), 0, 2**62, DEFAULT_MESSAGE_SIZE),
    )


def _session_lines(session: int, mids: tuple[str, ...]) -> str:
    return (
        f"v=0\r\no=- {session} 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
        f"a=group:BUNDLE {' '.join(mids)}\r\na=msid-semantic:WMS *\r\n"
    )


def _transport_lines(side: Side, mid: str, setup: str, kind: str) -> str:
    lines = [
        "c=IN IP4 0.0.0.0",
        f"a=mid:{mid}",
        f"a=ice-ufrag:{side.ufrag}",
        f"a=ice-pwd:{side.password}",
        f"a=fingerprint:sha-256 {side.fingerprint}",
        f"a=setup:{setup}",
        *(f"a=candidate:{candidate}" for candidate in side.candidates),
        "a=end-of-candidates",
        *((f"a=sctp-port:{SCTP_PORT}",) if kind == "application" else ("a=inactive", "a=rtcp-mux")),
    ]
    return "".join(f"{line}\r\n" for line in lines)


def _one_codec(lines: list[str], kind: str, protocol: str, formats: list[str]) -> str:
    """Return the m-line of an unused track with one codec of the offer: opus or H264 if
    possible.
    """
    preferred = "opus" if kind == "audio" else "h264"
    maps = {value.split(" ")[0]: value for value in _attribute_values(lines, "rtpmap")}
    chosen = next((f for f in formats if preferred in maps.get(f, "").lower()), formats[0])
    codec_lines = [f"m={kind} 9 {protocol} {chosen}"]
    for name in ("rtpmap", "fmtp"):
        codec_lines += [
            f"a={name}:{v}" for v in _attribute_values(lines, name) if v.split(" ")[0] == chosen
        ]
    return "".join(f"{line}\r\n" for line in codec_lines)


def _split_sections(sdp: str) -> list[list[str]]:
    """Split a description at its m-lines; the first part is the session's."""
    sections: list[list[str]] = [[]]
    for line in _LINE_END.split(sdp):
        if line.startswith("m="):
            sections.append([])
        if line:
            sections[-1].append(line)
    return sections


def _attribute_values(lines: list[str], name: str) -> list[str]:
    start = f"a={name}:"
    return [line[len(start) :] for line in lines if line.startswith(start)]


def _attribute_value(lines: list[str], name: str) -> str:
    return next(iter(_attribute_values(lines, name)), "")


def _first_attribute(sections: tuple[list[str], ...], name: str) -> str:
    return next((value for lines in sections if (value := _attribute_value(lines, name))), "")


def _parse_number(text: str, low: int, high: int, default: int) -> int:
    if not text:
        return default
    if not text.isascii() or not text.isdigit() or not low <= int(text[:20]) <= high:
        raise DecodeError(f"{text[:40]!r} where a number from {low} to {high} belongs")
    return int(text)
