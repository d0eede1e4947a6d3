"""SDP: the text of offers and answers, the JSON that carries it, and how the robot reads it.

    {"id": "STA_localNetwork", "sdp": "v=0...", "type": "offer", "token": ""}
    {"type": "answer", "sdp": "v=0...", "id": "STA_localNetwork"}    busy: "sdp": "reject"

The robot's stack (Amazon's KVS WebRTC SDK in C, judging by its answers) reads offers in its own
way. It keeps only the last ufrag, password and fingerprint of an offer. It skips 8 characters as
the name of the fingerprint's hash, and assumes sha-256. So an offer must state the same values in
every m-line and use only sha-256. Facts and sources: spec/datachannel.md, 1.1 to 1.5.

Decoders raise only `DecodeError`, for any text.
"""

import re
import reprlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from rote.errors import BadRequestError, DecodeError
from rote.wire.discovery import DocumentError, decode_json_object, encode_json, read_text_field

STATION_ID = "STA_localNetwork"
"""The offer's id if robot and client are in the same Wi-Fi; it is empty on the robot's own
Wi-Fi.
"""

_REJECT = "reject"
_HASH_NAME_LENGTH = len("sha-256 ")

# SDP ends its lines with CR LF, and readers accept either alone; `splitlines` would split at more.
_LINE_END = re.compile(r"\r\n|\r|\n")
_STRICT_LINE = re.compile(r"(?<![^\r\n])a=(ice-ufrag|ice-pwd|fingerprint):[^\r\n]*")
_FINGERPRINT = re.compile(r"(?i)[ \t]*(\S+)[ \t]+([0-9a-f]{2}(?::[0-9a-f]{2})*)[ \t]*")


# ---- documents ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class SdpOffer:
    """What the client offers."""

    sdp: str
    id: str = STATION_ID
    token: str = ""
    """Empty on a local network; any value is reportedly accepted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SdpAnswer:
    """What the robot agrees to."""

    sdp: str
    id: str = STATION_ID


@dataclass(frozen=True, slots=True, kw_only=True)
class Busy:
    """The robot has a client already; the phone app counts as one."""

    id: str = STATION_ID


def encode_offer(offer: SdpOffer) -> bytes:
    """Return the offer document."""
    _check_sdp(offer.sdp)
    return encode_json({"id": offer.id, "sdp": offer.sdp, "type": "offer", "token": offer.token})


def decode_offer(body: bytes) -> SdpOffer:
    """Return the offer in a document; missing fields except the SDP are empty."""
    document = decode_json_object(body, "offer")
    token = read_text_field(document, "token", "offer", "")
    return SdpOffer(
        sdp=_read_sdp(document, "offer"),
        id=read_text_field(document, "id", "offer", ""),
        token=token,
    )


def encode_answer(answer: SdpAnswer | Busy) -> bytes:
    """Return the answer document."""
    if isinstance(answer, Busy):
        return encode_json({"type": "answer", "sdp": _REJECT, "id": answer.id})
    _check_sdp(answer.sdp)
    return encode_json({"type": "answer", "sdp": answer.sdp, "id": answer.id})


def decode_answer(body: bytes) -> SdpAnswer | Busy:
    """Return the answer in a document."""
    document = decode_json_object(body, "answer")
    station_id = read_text_field(document, "id", "answer", "")
    if document.get("sdp") == _REJECT:
        return Busy(id=station_id)
    return SdpAnswer(sdp=_read_sdp(document, "answer"), id=station_id)


def _read_sdp(document: dict[str, object], kind: str) -> str:
    """Return the SDP in a document of a kind, which is "offer" or "answer"."""
    sdp = read_text_field(document, "sdp", kind)
    if not sdp.startswith("v=0"):
        raise DocumentError(kind, f"its SDP begins with {sdp[:40]!r}, not 'v=0'")
    if document.get("type") != kind:
        raise DocumentError(kind, f"its type is {reprlib.repr(document.get('type'))}, not {kind!r}")
    return sdp


def _check_sdp(sdp: str) -> None:
    if not sdp.startswith("v=0"):
        raise BadRequestError(f"an SDP begins with 'v=0', not {sdp[:40]!r}")


# ---- reading the SDP ----------------------------------------------------------------------------


class Fingerprint(NamedTuple):
    """A certificate's hash."""

    algorithm: str
    """In lower case: `sha-256`."""
    digest: str
    """In upper case, as the robot compares it: `AB:CD:...`."""


class MediaLine(NamedTuple):
    """The properties of one m-line; values that it lacks are taken from the session's lines."""

    kind: str
    """`audio`, `video` or `application`."""
    ufrag: str | None
    password: str | None
    fingerprints: tuple[Fingerprint, ...]


class StrictReading(NamedTuple):
    """What the robot's stack keeps of an offer."""

    ufrag: str
    password: str
    fingerprint: str
    """Without the name of its hash, which the robot ignores."""


def read_media(sdp: str) -> tuple[MediaLine, ...]:
    """Return ufrag, password and fingerprints of every m-line."""
    # The first section is the session's, without a kind.
    sections: list[tuple[str, dict[str, str], list[Fingerprint]]] = [("", {}, [])]
    for name, value in _read_attributes(sdp):
        _, attributes, fingerprints = sections[-1]
        if name == "m":
            sections.append((value.split(" ")[0], {}, []))
        elif name == "fingerprint":
            fingerprints.append(_parse_fingerprint(value))
        else:
            attributes[name] = value
    _, session, session_fingerprints = sections[0]
    return tuple(
        MediaLine(
            kind,
            attributes.get("ice-ufrag", session.get("ice-ufrag")),
            attributes.get("ice-pwd", session.get("ice-pwd")),
            tuple(fingerprints or session_fingerprints),
        )
        for kind, attributes, fingerprints in sections[1:]
    )


def read_strictly(sdp: str) -> StrictReading:
    """Return the ufrag, password and fingerprint that the robot's stack keeps of `sdp`.

    It keeps the last of each, from any m-line; a fingerprint also from the session's lines.
    Raises `DecodeError` if one is missing.
    """
    kept: dict[str, str] = {}
    in_media = False
    for name, value in _read_attributes(sdp):
        in_media = in_media or name == "m"
        if in_media or name == "fingerprint":
            kept[name] = value
    kept["fingerprint"] = kept.get("fingerprint", "")[_HASH_NAME_LENGTH:]
    for name in ("ice-ufrag", "ice-pwd", "fingerprint"):
        if not kept.get(name):
            raise DecodeError(f"this SDP has no {name} that the robot would read")
    return StrictReading(kept["ice-ufrag"], kept["ice-pwd"], kept["fingerprint"])


def rewrite_as_read_strictly(sdp: str) -> str:
    """Return `sdp` with the values that the robot's stack would read in it.

    A simulated robot on another stack, which reads offers correctly, then behaves like a real one.
    Every m-line gets the ufrag and password of the last m-line. Every fingerprint becomes the last
    one, named sha-256.
    """
    reading = read_strictly(sdp)
    values = {
        "ice-ufrag": reading.ufrag,
        "ice-pwd": reading.password,
        "fingerprint": f"sha-256 {reading.fingerprint}",
    }
    return _STRICT_LINE.sub(lambda match: f"a={match[1]}:{values[match[1]]}", sdp)


def _read_attributes(sdp: str) -> Iterator[tuple[str, str]]:
    """Yield (name, value) of each m-line, named "m", and of each attribute that is read here."""
    for line in _LINE_END.split(sdp):
        if line.startswith("m="):
            yield "m", line[2:]
        elif line.startswith("a="):
            name, _, value = line[2:].partition(":")
            if name in {"ice-ufrag", "ice-pwd", "fingerprint"}:
                yield name, value


def _parse_fingerprint(value: str) -> Fingerprint:
    match = _FINGERPRINT.fullmatch(value)
    if match is None:
        raise DecodeError(f"invalid fingerprint: {value[:80]!r}")
    return Fingerprint(match[1].lower(), match[2].upper())
