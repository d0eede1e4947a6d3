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
"""Maximum message length of a side that does not state it."""
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


def write_offer(side: Side, session_id: int, *, media: bool = False) -> str:
    """Return an offer for a data channel; `media` adds audio and video, which some robots need."""
    kinds = ("audio", "video", "application") if media else ("application",)
    parts = [
        _MEDIA.get(kind, _APPLICATION) + _write_transport(side, str(mid), "actpass", kind)
        for mid, kind in enumerate(kinds)
    ]
    mids = tuple(str(mid) for mid in range(len(kinds)))
    return _write_session(session_id, mids) + "".join(parts)


def write_answer(
    offer: str, side: Side, session_id: int, *, message_size: int | None = None
) -> str:
    """Return the answer to `offer`, which has the same m-lines in the same order.

    `message_size` is the maximum length of a message; it is not stated if it is None.
    """
    sections = _split_sections(offer)[1:]
    mids = tuple(
        _find_attribute(lines, "mid") or str(index) for index, lines in enumerate(sections)
    )
    parts = [
        _write_answer_section(lines, mid, side, message_size)
        for lines, mid in zip(sections, mids, strict=True)
    ]
    return _write_session(session_id, mids) + "".join(parts)


def _write_answer_section(
    offered: list[str], mid: str, side: Side, message_size: int | None
) -> str:
    """Return the answer to one m-line of an offer, given with its attributes."""
    words = offered[0].removeprefix("m=").split(" ")
    if len(words) < 4:
        raise DecodeError(f"this m-line has too few words: {offered[0][:80]!r}")
    kind, _, protocol, *formats = words
    if kind != "application":
        section = _write_inactive_media(offered, kind, protocol, formats)
        return section + _write_transport(side, mid, "active", kind)
    section = f"m={kind} 9 {' '.join((protocol, *formats))}\r\n"
    if protocol == "DTLS/SCTP":  # the syntax before RFC 8841
        section += f"a=sctpmap:{formats[0]} webrtc-datachannel 65535\r\n"
    if message_size is not None:
        section += f"a=max-message-size:{message_size}\r\n"
    return section + _write_transport(side, mid, "active", kind)


def _is_candidate(text: str) -> bool:
    """Whether a text is a valid ICE candidate, which names an address of one end."""
    return bool(_CANDIDATE.fullmatch(text)) and int(text.split(" ")[5]) <= 65_535


def read_peer(sdp: str) -> Peer:
    """Return what the sender of `sdp` states about its data channel.

    Values that the m-line of the channel lacks are taken from the first m-line or the session.
    Raises `DecodeError` if the description is incomplete.
    """
    sections = _split_sections(sdp)
    media = read_media(sdp)
    index = next((i for i, line in enumerate(media) if line.kind == "application"), None)
    if index is None:
        raise DecodeError("the description has no data channel (m=application)")
    channel_lines, first, session = sections[index + 1], sections[1], sections[0]
    sources = (channel_lines, first, session)
    ufrag = _find_first_attribute(sources, "ice-ufrag")
    password = _find_first_attribute(sources, "ice-pwd")
    fingerprints = media[index].fingerprints or media[0].fingerprints
    if not ufrag or not password or not fingerprints:
        raise DecodeError("the description lacks ice-ufrag, ice-pwd or fingerprint")
    stated = dict.fromkeys(
        _find_attributes(channel_lines, "candidate") + _find_attributes(first, "candidate")
    )
    # One invalid candidate does not hide the others.
    candidates = [candidate for candidate in stated if _is_candidate(candidate)]
    if stated and not candidates:
        raise DecodeError(f"not a valid ICE candidate: {next(iter(stated))[:80]!r}")
    return Peer(
        ufrag,
        password,
        fingerprints,
        tuple(candidates)[:_MAX_CANDIDATES],
        _find_first_attribute(sources, "setup") or "actpass",
        _parse_number(_find_attribute(channel_lines, "sctp-port"), 1, 65_535, SCTP_PORT),
        _parse_number(
            _find_attribute(channel_lines, "max-message-size"), 0, 2**62, DEFAULT_MESSAGE_SIZE
        ),
    )


def _write_session(session_id: int, mids: tuple[str, ...]) -> str:
    """Return the lines before the first m-line; `mids` name the m-lines, which are bundled."""
    return (
        f"v=0\r\no=- {session_id} 2 IN IP4 127.0.0.1\r\ns=-\r\nt=0 0\r\n"
        f"a=group:BUNDLE {' '.join(mids)}\r\na=msid-semantic:WMS *\r\n"
    )


def _write_transport(side: Side, mid: str, setup: str, kind: str) -> str:
    """Return the lines that describe the transport of an m-line.

    `mid` and `kind` are the name and the kind of the m-line; `setup` is as in `Peer`.
    """
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


def _write_inactive_media(lines: list[str], kind: str, protocol: str, formats: list[str]) -> str:
    """Return the m-line of an unused track with one codec of the offer: opus or H264 if offered.

    `lines` are the offered m-line and its attributes, `formats` the numbers of the offered codecs.
    """
    preferred = "opus" if kind == "audio" else "h264"
    codecs = {value.split(" ")[0]: value.lower() for value in _find_attributes(lines, "rtpmap")}
    chosen = next((f for f in formats if preferred in codecs.get(f, "")), formats[0])
    codec_lines = [f"m={kind} 9 {protocol} {chosen}"]
    for name in ("rtpmap", "fmtp"):
        codec_lines += [
            f"a={name}:{value}"
            for value in _find_attributes(lines, name)
            if value.split(" ")[0] == chosen
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


def _find_attributes(lines: list[str], name: str) -> list[str]:
    """Return the values of all attributes of that name."""
    start = f"a={name}:"
    return [line[len(start) :] for line in lines if line.startswith(start)]


def _find_attribute(lines: list[str], name: str) -> str:
    """Return the value of the first attribute of that name; empty if there is none."""
    return next(iter(_find_attributes(lines, name)), "")


def _find_first_attribute(sections: tuple[list[str], ...], name: str) -> str:
    """Return the value of an attribute in the first section that has it; empty if none has it."""
    values = (_find_attribute(lines, name) for lines in sections)
    return next(filter(None, values), "")


def _parse_number(text: str, low: int, high: int, default: int) -> int:
    """Return a number from `low` to `high`, or `default` for an empty text."""
    if not text:
        return default
    # Twenty digits are more than `high`, and int() refuses thousands of them.
    if not text.isascii() or not text.isdigit() or not low <= int(text[:20]) <= high:
        raise DecodeError(f"expected a number from {low} to {high}, not {text[:40]!r}")
    return int(text)
