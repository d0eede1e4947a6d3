"""Joins two directions to a conversation: its protocol, the evidence for it, and its contents."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from rote.capture.decode.dtls_numbering import APPLICATION, RecordTrack
from rote.capture.decode.packet_facts import FlowFacts, MediaStream
from rote.capture.judge.analysis import Analysis
from rote.capture.judge.flows import Direction
from rote.capture.judge.sizes import (
    CIPHERS,
    InferredCipher,
    SizeReading,
    describe_sizes,
    infer_cipher,
)
from rote.capture.model import PacketKind, iso
from rote.capture.read.packets import TCP
from rote.wire.packets import dtls

_WEBRTC = "WebRTC"
_SECURED = {PacketKind.RTP: PacketKind.SRTP, PacketKind.RTCP: PacketKind.SRTCP}
_UNINFORMATIVE = (PacketKind.EMPTY, PacketKind.TCP)
_MAX_READINGS = 32


@dataclass(slots=True)
class FlowSide:
    """One direction of a conversation, with everything that was seen in it."""

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
        """How many packets of each kind went in this direction."""
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
    """Number of packets counted as another kind, by the kind they look like and the new kind."""
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
        """Count the packets of kind `old` as `new`, because the rest of the flow suggests it."""
        count = self.kinds.pop(old, 0)
        if count:
            self.kinds[new] = self.kinds.get(new, 0) + count
            self.moved[old, new] = count

    def client(self) -> FlowSide:
        """Return the client: in WebRTC the side that controls ICE, otherwise the first to send."""
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
            document["stun"] = self._describe_stun()
        if PacketKind.DTLS in self.kinds:
            document["dtls"] = self._describe_dtls()
        if media := self._describe_media():
            document["media"] = media
        if notes := sorted({note for side in self.sides for note in side.facts.notes}):
            document["notes"] = notes
        return document

    def _describe_stun(self) -> dict[str, Any]:
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
            "unanswered": sum(map(self.count_unanswered, self.sides)),
            "mapped": sorted(set().union(*(side.facts.mapped for side in self.sides))),
        }

    def count_unanswered(self, side: FlowSide) -> int:
        """Return how many STUN requests of one side have no response in the capture."""
        responses = [other.facts.stun_responses for other in self.sides if other is not side]
        return len(side.facts.stun_requests.difference(*responses))

    def _describe_dtls(self) -> dict[str, Any]:
        suite = self.suite()
        return {
            "versions": [label_version(version) for version in self.versions()],
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

    def _describe_media(self) -> list[dict[str, Any]]:
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
                return dtls.find_suite(side.facts.suite)
        return None


def label_version(version: int) -> str:
    """Return a version of DTLS as text, such as `DTLS 1.2`."""
    known = version in set(dtls.Version)
    return dtls.Version(version).label if known else f"0x{version:04x}"


def build_conversations(analysis: Analysis) -> list[Conversation]:
    """Join the directions of a capture to conversations, in the order of their first packets."""
    sides = _build_sides(analysis)
    found: dict[tuple[object, ...], Conversation] = {}
    for side in sides:
        direction = side.direction
        low, high = sorted((direction.source, direction.destination))
        protocol = "tcp" if direction.protocol == TCP else "udp"
        known = found.get((protocol, low, high))
        if known is None:
            found[protocol, low, high] = Conversation(protocol, [side])
        else:
            known.sides.append(side)
    for conversation in found.values():
        _name_conversation(conversation)
        if PacketKind.DTLS in conversation.kinds:
            _set_cipher_and_sizes(conversation, analysis)
    return list(found.values())


def _build_sides(analysis: Analysis) -> list[FlowSide]:
    """Return all directions, each with its facts, record tracks and media streams."""
    texts, no_facts = _EndpointTexts(analysis), FlowFacts()
    sides = [
        FlowSide(
            direction, texts.format(direction.source), texts.format(direction.destination), no_facts
        )
        for direction in analysis.flows.directions()
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
    """Formats addresses with ports, and remembers the addresses, because many flows share them."""

    def __init__(self, analysis: Analysis) -> None:
        self._decoder = analysis.decoder
        self._hosts: dict[tuple[int, int], str] = {}

    def format(self, end: tuple[int, int, int]) -> str:
        """Return an IP version, an address as a number and a port as text."""
        version, number, port = end
        host = self._hosts.get((version, number))
        if host is None:
            text = self._decoder.address(number, version)
            host = self._hosts[version, number] = text if version == 4 else f"[{text}]"
        return f"{host}:{port}"


def _name_conversation(conversation: Conversation) -> None:
    """Name a conversation by the kinds of its packets, and set why it has this name."""
    conversation.kinds = kinds = dict(conversation.sides[0].kinds)
    for side in conversation.sides[1:]:
        for kind, count in side.kinds.items():
            kinds[kind] = kinds.get(kind, 0) + count
    _resolve_short_quic(conversation)
    if not (PacketKind.DTLS in kinds or PacketKind.STUN in kinds):
        _reclassify_doubtful_media(conversation)
    elif PacketKind.DTLS in kinds:
        _reclassify_secured_media(conversation)
        webrtc_kinds = (PacketKind.DTLS, PacketKind.STUN, PacketKind.SRTP, PacketKind.SRTCP)
        present = [kind for kind in webrtc_kinds if kind in kinds]
        if present != [PacketKind.DTLS]:
            conversation.name = _WEBRTC
            seen = ", ".join(f"{kinds[kind]:,} of {kind.label}" for kind in present)
            conversation.why = (
                f"datagrams that share one pair of ports, as only WebRTC does: {seen}"
            )
            return
    named = [kind for kind in kinds if kind not in _UNINFORMATIVE]
    if named:
        commonest = max(named, key=kinds.__getitem__)
    else:
        commonest = PacketKind.TCP if conversation.protocol == "tcp" else PacketKind.EMPTY
    conversation.name = commonest.label
    if commonest is PacketKind.UNKNOWN:
        conversation.why = f"{_WHY_UNKNOWN}{'; ' + conversation.why if conversation.why else ''}"
    else:
        conversation.why = _REASONS.get(commonest, "")


def _resolve_short_quic(conversation: Conversation) -> None:
    """Count QUIC's short headers, which have no marker, as QUIC only if the flow has a long one."""
    kind = PacketKind.QUIC if PacketKind.QUIC in conversation.kinds else PacketKind.UNKNOWN
    conversation.count_as(PacketKind.QUIC_SHORT, kind)


def _reclassify_secured_media(conversation: Conversation) -> None:
    """Count RTP and RTCP in a flow with DTLS as SRTP and SRTCP: DTLS gives them their keys."""
    for plain, secured in _SECURED.items():
        conversation.count_as(plain, secured)


def _reclassify_doubtful_media(conversation: Conversation) -> None:
    """Count packets that begin like media as unknown unless the whole flow confirms it."""
    # Both doubts are found before anything is reclassified, because RTP decides about RTCP.
    doubts = {
        PacketKind.RTP: _find_rtp_doubt(conversation),
        PacketKind.RTCP: _find_rtcp_doubt(conversation),
    }
    for kind, doubt in doubts.items():
        if doubt and kind in conversation.kinds:
            conversation.why = doubt
            conversation.count_as(kind, PacketKind.UNKNOWN)


def _find_rtp_doubt(conversation: Conversation) -> str:
    """Return why packets that look like RTP are something else; empty if they are RTP."""
    if any(stream.believed for side in conversation.sides for stream in side.streams):
        return ""
    return "begins like RTP, but source and sequence numbers do not continue from packet to packet"


def _find_rtcp_doubt(conversation: Conversation) -> str:
    """Return why packets that look like RTCP are something else; empty if they are RTCP."""
    if PacketKind.RTP in conversation.kinds and not _find_rtp_doubt(conversation):
        return ""
    return "begins like RTCP, but there is no RTP between these ports"


def _set_cipher_and_sizes(conversation: Conversation, analysis: Analysis) -> None:
    """Set the cipher of a conversation, and what the sizes of its records mean.

    The handshake states the cipher; without it, the cipher is inferred from the sizes.
    """
    lengths = [analysis.get_records(side.number)[1] for side in conversation.sides]
    joined = np.concatenate(lengths)
    suite = conversation.suite()
    if suite is not None and suite.overhead:
        why = f"the handshake chose {suite.name}"
        cipher_name = CIPHERS[suite.overhead]
        conversation.cipher = InferredCipher(suite.overhead, cipher_name, True, why)
    else:
        guesses = [guess for part in lengths if (guess := infer_cipher(part)) is not None]
        conversation.cipher = guesses[0] if guesses else None
    conversation.sizes = describe_sizes(joined, conversation.cipher)


_WHY_UNKNOWN = (
    "no STUN cookie, no DTLS version, no long header of QUIC, no RTPS magic, no DNS header, no "
    "discovery document, no valid checksum of a teaching or A1 frame"
)
_REASONS = {
    PacketKind.EMPTY: "datagrams without content",
    PacketKind.DTLS: "type, version and length of every record fit, to the last byte",
    PacketKind.STUN: "the cookie 2112a442, and lengths that fit",
    PacketKind.RTP: "source numbers repeat, and sequence numbers continue",
    PacketKind.RTCP: "reports beside RTP",
    PacketKind.TEACHING: "documented teaching frames, each with a valid CRC-32",
    PacketKind.A1: "a length of the A1's or Go1's frames, and a valid CRC over its words",
    PacketKind.DISCOVERY: "the JSON of a robot discovery request or of its answer",
    PacketKind.RTPS: "the magic word RTPS and its version",
    PacketKind.DNS: "a plausible header, and a name made of labels",
    PacketKind.MDNS: "DNS to the multicast group, or between the ports for it",
    PacketKind.TLS: "records of TLS",
    PacketKind.HTTP: "lines of HTTP in the clear",
    PacketKind.QUIC: "long headers with a known version; short ones of the same flow count too",
    PacketKind.SSDP: "lines of HTTP in datagrams, as UPnP devices send them",
    PacketKind.NTP: "a version and a mode of NTP, and its port",
    PacketKind.DHCP: "the cookie 63825363, or a message between the ports of DHCPv6",
    PacketKind.NETBIOS: "names of 32 letters from A to P",
    PacketKind.WSD: "XML to or from the port of WS-Discovery",
    PacketKind.TCP: "a stream whose first bytes match no known protocol",
}
