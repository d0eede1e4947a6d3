"""Two directions make a conversation: its name, the reasons for it, and its contents."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rote.capture.decode.dtls_numbering import APPLICATION, RecordTrack
from rote.capture.decode.media import MediaStream
from rote.capture.decode.packet_facts import FlowFacts
from rote.capture.judge.analysis import Analysis
from rote.capture.judge.flows import Direction
from rote.capture.judge.sizes import InferredCipher, SizeReading, infer, readings
from rote.capture.model import PacketKind, iso
from rote.capture.read.packets import TCP
from rote.wire.packets import dtls

_WEBRTC = "WebRTC"
_SECURED = {PacketKind.RTP: PacketKind.SRTP, PacketKind.RTCP: PacketKind.SRTCP}
_SAYS_NOTHING = (PacketKind.EMPTY, PacketKind.TCP)
_MAX_READINGS = 32


@dataclass(slots=True)
class FlowSide:
    """One direction, with everything that was seen in it."""

    direction: Direction
    source: str
    destination: str
    facts: FlowFacts
    tracks: list[RecordTrack] = field(default_factory=list)
    streams: list[MediaStream] = field(default_factory=list)

    @property
    def number(self) -> int:
        """Its row in the table of flows."""
        return self.direction.number

    @property
    def packets(self) -> int:
        """How many packets went in this direction."""
        return self.direction.packets

    @property
    def kinds(self) -> dict[PacketKind, int]:
        """How many of each kind."""
        return self.direction.kinds

    @property
    def label(self) -> str:
        """Source and destination, as text."""
        return f"{self.source} -> {self.destination}"

    @property
    def application_records(self) -> int:
        """DTLS records that carry application data."""
        return self.facts.records[APPLICATION]


@dataclass(slots=True)
class Conversation:
    """Both directions between two ports."""

    protocol: str
    sides: list[FlowSide]
    """One or two; the first is the one that was seen first."""
    name: str = ""
    why: str = ""
    kinds: dict[PacketKind, int] = field(default_factory=dict)
    """How many packets of each kind there are in both directions."""
    moved: dict[tuple[PacketKind, PacketKind], int] = field(default_factory=dict)
    """Packets that count as another kind than they look like: from, to, how many."""
    cipher: InferredCipher | None = None
    sizes: list[SizeReading] = field(default_factory=list)

    @property
    def packets(self) -> int:
        """How many packets there are in both directions."""
        return sum(side.packets for side in self.sides)

    @property
    def wire_bytes(self) -> int:
        """How many bytes there are in both directions, headers included."""
        return sum(side.direction.wire_bytes for side in self.sides)

    @property
    def first_ns(self) -> int:
        """When it began."""
        return min(side.direction.first_ns for side in self.sides)

    @property
    def last_ns(self) -> int:
        """When its last packet was sent."""
        return max(side.direction.last_ns for side in self.sides)

    def count_as(self, old: PacketKind, new: PacketKind) -> None:
        """Count the packets of one kind as another, because of the rest of the flow."""
        count = self.kinds.pop(old, 0)
        if count:
            self.kinds[new] = self.kinds.get(new, 0) + count
            self.moved[old, new] = count

    def client(self) -> FlowSide:
        """Return the side that asks: in WebRTC the one that controls ICE, otherwise the first."""
        for side in self.sides:
            if True in side.facts.controlling:
                return side
        for side in self.sides:
            if False in side.facts.controlling and len(self.sides) > 1:
                return next(other for other in self.sides if other is not side)
        return self.sides[0]

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        a, packets = self.sides[0], self.packets
        document: dict[str, Any] = {
            "a": a.source,
            "b": a.destination,
            "protocol": self.protocol,
            "name": self.name,
            "why": self.why,
            "packets": packets,
            "bytes": self.wire_bytes,
            "packets_a_to_b": a.packets,
            "packets_b_to_a": packets - a.packets,
            "start": iso(self.first_ns),
            "end": iso(self.last_ns),
            "kinds": {kind.label: count for kind, count in self.kinds.items()},
        }
        if PacketKind.STUN in self.kinds:
            document["stun"] = self._stun_document()
        if PacketKind.DTLS in self.kinds:
            document["dtls"] = self._dtls_document()
        if media := self._media_document():
            document["media"] = media
        if notes := sorted({note for side in self.sides for note in side.facts.notes}):
            document["notes"] = notes
        return document

    def _stun_document(self) -> dict[str, Any]:
        messages: Counter[str] = Counter()
        for side in self.sides:
            messages.update(side.facts.stun)
        roles = {
            side.source: "controlling" if True in side.facts.controlling else "controlled"
            for side in self.sides
            if side.facts.controlling
        }
        return {
            "messages": dict(messages),
            "users": sorted(set().union(*(side.facts.users for side in self.sides))),
            "roles": roles,
            "unanswered": sum(map(self.unanswered, self.sides)),
            "mapped": sorted(set().union(*(side.facts.mapped for side in self.sides))),
        }

    def unanswered(self, side: FlowSide) -> int:
        """Return how many STUN requests of one side have no answer in the capture."""
        others = [other.facts.answered for other in self.sides if other is not side]
        return len(side.facts.asked.difference(*others))

    def _dtls_document(self) -> dict[str, Any]:
        suite = self.suite()
        return {
            "versions": [version_words(version) for version in self.versions()],
            "cipher_suite": None if suite is None else suite.name,
            "cipher": None if self.cipher is None else self.cipher._asdict(),
            "fingerprints": {
                side.source: side.facts.fingerprint for side in self.sides if side.facts.fingerprint
            },
            "handshake": {
                side.source: side.facts.messages for side in self.sides if side.facts.messages
            },
            "handshake_resent": sum(side.facts.resent for side in self.sides),
            "application_records": sum(side.application_records for side in self.sides),
            "tracks": [
                {"direction": side.label} | track.document()
                for side in self.sides
                for track in side.tracks
            ],
            "sizes": [reading.document() for reading in self.sizes[:_MAX_READINGS]],
        }

    def _media_document(self) -> list[dict[str, Any]]:
        return [
            {
                "direction": side.label,
                "source": f"{stream.source:08x}",
                "packets": stream.packets,
                "lost": stream.lost,
                "payload_types": list(stream.payload_types),
            }
            for side in self.sides
            for stream in side.streams
            if stream.believed
        ]

    def versions(self) -> list[int]:
        """Return the versions of DTLS that were seen."""
        return sorted(set().union(*(side.facts.versions for side in self.sides)), reverse=True)

    def suite(self) -> dtls.Suite | None:
        """Return the cipher suite that the handshake chose, if it was seen."""
        for side in self.sides:
            if side.facts.suite is not None:
                return dtls.suite_of(side.facts.suite)
        return None


def version_words(version: int) -> str:
    """Return a version of DTLS as text."""
    known = version in set(dtls.Version)
    return dtls.Version(version).label if known else f"0x{version:04x}"


def conversations(analysis: Analysis) -> list[Conversation]:
    """Return all conversations, in the order of their first packets."""
    sides = _build_sides(analysis)
    found: dict[tuple[object, ...], Conversation] = {}
    for side in sides:
        one = side.direction
        low, high = sorted((one.source, one.destination))
        protocol = "tcp" if one.protocol == TCP else "udp"
        known = found.get((protocol, low, high))
        if known is None:
            found[protocol, low, high] = Conversation(protocol, [side])
        else:
            known.sides.append(side)
    for conversation in found.values():
        _set_name(conversation)
        if PacketKind.DTLS in conversation.kinds:
            _read_sizes(conversation, analysis)
    return list(found.values())


def _build_sides(analysis: Analysis) -> list[FlowSide]:
    texts, nothing = _EndpointTexts(analysis), FlowFacts()
    sides = [
        FlowSide(one, texts.end(one.source), texts.end(one.destination), nothing)
        for one in analysis.flows.directions()
    ]
    for number, facts in analysis.details.facts.items():
        if number < len(sides):
            sides[number].facts = facts
    for track in analysis.tracks.tracks():
        if track.flow < len(sides):
            sides[track.flow].tracks.append(track)
    for stream in analysis.media.streams():
        if stream.flow < len(sides):
            sides[stream.flow].streams.append(stream)
    return sides


class _EndpointTexts:
    """Addresses as text, each formatted once."""

    def __init__(self, analysis: Analysis) -> None:
        self._decoder = analysis.decoder
        self._known: dict[tuple[int, int], str] = {}

    def end(self, end: tuple[int, int, int]) -> str:
        version, number, port = end
        host = self._known.get((version, number))
        if host is None:
            text = self._decoder.address(number, version)
            host = self._known[version, number] = text if version == 4 else f"[{text}]"
        return f"{host}:{port}"


def _set_name(one: Conversation) -> None:
    """Set the name of a conversation, and the reasons for it."""
    one.kinds = kinds = dict(one.sides[0].kinds)
    for side in one.sides[1:]:
        for kind, count in side.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
    _settle_quic(one)
    if not (PacketKind.DTLS in kinds or PacketKind.STUN in kinds):
        _doubt_media(one)
    elif PacketKind.DTLS in kinds:
        _secure_media(one)
        parts = (PacketKind.DTLS, PacketKind.STUN, PacketKind.SRTP, PacketKind.SRTCP)
        if any(kind in kinds for kind in parts[1:]):
            one.name = _WEBRTC
            seen = ", ".join(f"{kinds[kind]:,} of {kind.label}" for kind in parts if kind in kinds)
            one.why = f"datagrams that share one pair of ports, as only WebRTC does: {seen}"
            return
    named = [kind for kind in kinds if kind not in _SAYS_NOTHING]
    if named:
        commonest = max(named, key=kinds.__getitem__)
    else:
        commonest = PacketKind.TCP if one.protocol == "tcp" else PacketKind.EMPTY
    one.name = commonest.label
    if commonest is PacketKind.UNKNOWN:
        one.why = f"{_NOT_KNOWN}{'; ' + one.why if one.why else ''}"
    else:
        one.why = _REASONS.get(commonest, "")


def _settle_quic(one: Conversation) -> None:
    """Count QUIC's short headers, which have no mark, if a long one was seen in the flow."""
    kind = PacketKind.QUIC if PacketKind.QUIC in one.kinds else PacketKind.UNKNOWN
    one.count_as(PacketKind.QUIC_SHORT, kind)


def _secure_media(one: Conversation) -> None:
    """Count media beside DTLS as secured with keys from it."""
    for plain, secured in _SECURED.items():
        one.count_as(plain, secured)


def _doubt_media(one: Conversation) -> None:
    """Count as unknown what only begins like media."""
    doubts = [
        (kind, doubt)
        for kind, why in ((PacketKind.RTP, _rtp_doubt), (PacketKind.RTCP, _rtcp_doubt))
        if kind in one.kinds and (doubt := why(one))
    ]
    for kind, doubt in doubts:
        one.why = doubt
        one.count_as(kind, PacketKind.UNKNOWN)


def _rtp_doubt(one: Conversation) -> str:
    if any(stream.believed for side in one.sides for stream in side.streams):
        return ""
    return "begins like RTP, but source and sequence numbers do not go on from packet to packet"


def _rtcp_doubt(one: Conversation) -> str:
    if PacketKind.RTP in one.kinds and not _rtp_doubt(one):
        return ""
    return "begins like RTCP, but nothing else of a call goes over these ports"


def _read_sizes(one: Conversation, analysis: Analysis) -> None:
    lengths = [analysis.records_of(side.number)[1] for side in one.sides]
    joined = np.concatenate(lengths)
    suite = one.suite()
    if suite is not None and suite.overhead:
        why = f"the handshake chose {suite.name}"
        name = {16: "ChaCha20-Poly1305", 24: "AES-GCM"}[suite.overhead]
        one.cipher = InferredCipher(suite.overhead, name, True, why)
    else:
        guesses = [guess for part in lengths if (guess := infer(part)) is not None]
        one.cipher = guesses[0] if guesses else None
    one.sizes = readings(joined, one.cipher)


_NOT_KNOWN = (
    "no STUN cookie, no DTLS version, no long header of QUIC, no RTPS magic, no DNS header, no "
    "discovery document, no valid checksum of a teaching or A1 frame"
)
_REASONS = {
    PacketKind.EMPTY: "datagrams without content",
    PacketKind.DTLS: "type, version and length of every record fit, to the last byte",
    PacketKind.STUN: "the cookie 2112a442, and lengths that fit",
    PacketKind.RTP: "source numbers come again, and sequence numbers go on",
    PacketKind.RTCP: "reports beside RTP",
    PacketKind.TEACHING: "documented teaching frames, each with a valid CRC-32",
    PacketKind.A1: "a length of the A1's or Go1's frames, and a valid CRC over its words",
    PacketKind.DISCOVERY: "JSON that calls for a robot, or is one's answer",
    PacketKind.RTPS: "the magic word RTPS and its version",
    PacketKind.DNS: "a sane header, and a name made of labels",
    PacketKind.MDNS: "DNS to the multicast group, or between the ports for it",
    PacketKind.TLS: "records of TLS",
    PacketKind.HTTP: "lines of HTTP in the clear",
    PacketKind.QUIC: "long headers with a known version; short ones of the same flow count too",
    PacketKind.SSDP: "lines of HTTP in datagrams, as UPnP devices are searched for",
    PacketKind.NTP: "a version and a mode of NTP, and its port",
    PacketKind.DHCP: "the cookie 63825363, or a message between the ports of DHCPv6",
    PacketKind.NETBIOS: "names of 32 letters from A to P",
    PacketKind.WSD: "XML to or from the port of WS-Discovery",
    PacketKind.TCP: "a stream that begins with nothing known here",
}
