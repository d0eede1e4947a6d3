"""What a capture contains, as one value: for the terminal, for JSON, for a page."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rote.capture.judge.analysis import KEEP_RECORDS, KEEP_RECORDS_STREAM, Analysis
from rote.capture.judge.conversations import Conversation, FlowSide, build_conversations
from rote.capture.judge.field_statistics import MIN_PACKETS, Verdict, judge
from rote.capture.judge.timeline_build import build_timeline, read_teaching
from rote.capture.model import PacketKind, TimelineEntry, iso
from rote.capture.read.packets import (
    ETHERTYPES,
    PROTOCOLS,
    TCP,
    UDP,
    UNREAD_LINKS,
    PacketDecoder,
    iter_datagrams,
)
from rote.capture.read.reader import Capture, open_capture

if TYPE_CHECKING:
    from rote.capture.decode.decrypt import Decrypted
    from rote.capture.decode.teaching_dialogue import TeachingDialogue

_MAX_QUOTES = 16
_ICMP_TYPES = {
    (4, 0): "echo reply",
    (4, 3): "destination unreachable",
    (4, 4): "source quench",
    (4, 5): "redirect",
    (4, 8): "echo request",
    (4, 9): "router advertisement",
    (4, 10): "router solicitation",
    (4, 11): "time exceeded",
    (4, 12): "parameter problem",
    (4, 13): "timestamp request",
    (4, 14): "timestamp reply",
    (6, 1): "destination unreachable",
    (6, 2): "packet too big",
    (6, 3): "time exceeded",
    (6, 4): "parameter problem",
    (6, 128): "echo request",
    (6, 129): "echo reply",
    (6, 130): "group query",
    (6, 131): "group report",
    (6, 132): "group done",
    (6, 133): "router solicitation",
    (6, 134): "router advertisement",
    (6, 135): "neighbour solicitation",
    (6, 136): "neighbour advertisement",
    (6, 137): "redirect",
    (6, 143): "group report",
}
_ICMP_CODES = {
    (4, 3, 0): "network",
    (4, 3, 1): "host",
    (4, 3, 2): "protocol",
    (4, 3, 3): "port",
    (4, 3, 4): "fragmentation needed",
    (4, 3, 13): "prohibited",
    (6, 1, 0): "no route",
    (6, 1, 1): "prohibited",
    (6, 1, 3): "address",
    (6, 1, 4): "port",
}
_QUOTING = frozenset(((4, 3), (4, 4), (4, 5), (4, 11), (4, 12), (6, 1), (6, 2), (6, 3), (6, 4)))


def describe_icmp_messages(
    counts: dict[tuple[int, int, int], int], samples: Iterable[tuple[int, bytes]]
) -> list[dict[str, Any]]:
    """Return each kind of ICMP message: `message`, `packets`, and which flows it `quotes`.

    `counts` has the number of messages by IP version, type and code; `samples` are the first
    messages, each with its IP version.
    """
    quotes: dict[tuple[int, int, int], Counter[str]] = {}
    for version, message in samples:
        if len(message) >= 8 and (version, message[0]) in _QUOTING:
            quoted = _describe_quoted_packet(message[8:])
            if quoted:
                quotes.setdefault((version, message[0], message[1]), Counter())[quoted] += 1
    return [
        {
            "message": _label_icmp_message(*key),
            "packets": count,
            "quotes": dict(quotes.get(key, Counter()).most_common(_MAX_QUOTES)),
        }
        for key, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def _label_icmp_message(version: int, type_: int, code: int) -> str:
    protocol = "ICMP" if version == 4 else "ICMPv6"
    name = _ICMP_TYPES.get((version, type_), f"type {type_}")
    detail = _ICMP_CODES.get((version, type_, code))
    return f"{protocol} {name}{f': {detail}' if detail else ''}"


def _describe_quoted_packet(packet: bytes) -> str:
    """Return protocol, source and destination of an IP packet as text; empty if it is damaged."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        source, target = (str(IPv4Address(packet[offset : offset + 4])) for offset in (12, 16))
        protocol, offset = packet[9], (packet[0] & 15) * 4
    elif len(packet) >= 40 and packet[0] >> 4 == 6:
        source, target = (f"[{IPv6Address(packet[offset : offset + 16])}]" for offset in (8, 24))
        protocol, offset = packet[6], 40
    else:
        return ""
    if protocol in (TCP, UDP) and len(packet) >= offset + 4:
        ports = (
            int.from_bytes(packet[offset : offset + 2]),
            int.from_bytes(packet[offset + 2 : offset + 4]),
        )
        name = "TCP" if protocol == TCP else "UDP"
        return f"{name} {source}:{ports[0]} -> {target}:{ports[1]}"
    return f"{PROTOCOLS.get(protocol, f'IP protocol {protocol}')} {source} -> {target}"


_MAX_SENTENCES = 64


def list_limits(conversations: list[Conversation], decrypted: "Decrypted | None") -> list[str]:
    """Return sentences about what cannot be known from a capture.

    What was not captured comes before what is encrypted: a key can decrypt, but nothing restores
    what was not captured.
    """
    encrypted = [
        conversation for conversation in conversations if PacketKind.DTLS in conversation.kinds
    ]
    encrypted.sort(key=lambda conversation: -conversation.packets)
    sentences = [
        sentence for conversation in encrypted for sentence in _describe_one_way(conversation)
    ][:_MAX_SENTENCES]
    sentences += [
        sentence
        for conversation in encrypted
        for sentence in _describe_missing_handshake(conversation)
    ][:_MAX_SENTENCES]
    if encrypted and (
        decrypted is None or not any(session.opened for session in decrypted.sessions)
    ):
        sentences.append(
            "The contents of the encrypted records: no key log was given. The time line is "
            "inferred from sizes and times alone."
        )
    return sentences


def _describe_one_way(conversation: Conversation) -> Iterator[str]:
    """Yield a sentence if only one direction of an encrypted conversation was captured."""
    captured = [side for side in conversation.sides if side.tracks]
    if len(captured) == 1:
        side = captured[0]
        records = sum(track.records for track in side.tracks)
        yield (
            f"What {side.destination} sent: all {records:,} DTLS records go {side.label}, none "
            "the other way. One direction is missing in this capture."
        )


def _describe_missing_handshake(conversation: Conversation) -> Iterator[str]:
    """Yield a sentence if an encrypted conversation lacks its handshake."""
    is_encrypted = any(track.epoch for side in conversation.sides for track in side.tracks)
    if is_encrypted and conversation.suite() is None:
        yield (
            f"The contents of {conversation.sides[0].label}: its handshake is not in this capture, "
            "so no key log can decrypt it. Start the capture before the app connects."
        )


COMMAND_AT, SEEDS_COMMAND_AT = 10, 12
"""The real offset of the "command id" of the seed documents, and the offset they give: their header
has two bytes more than the datagrams.
"""
_CERTAIN = 0.99
"""Confidence from which an entry of the time line is proven, and not inferred."""
_MAX_TESTS, _MAX_JUDGED = 8, 256
_MAX_FLOWS_SHOWN = 10_000
_MAX_EXCHANGES_SHOWN = 10_000
_MEDIA = (PacketKind.RTP, PacketKind.RTCP, PacketKind.SRTP, PacketKind.SRTCP)


@dataclass(frozen=True, slots=True)
class FieldTest:
    """The statistical verdict on a field of one direction, such as a supposed command byte."""

    direction: str
    field: str
    verdict: Verdict
    seeds_offset: int | None = None

    def document(self) -> dict[str, Any]:
        """Return what `--json` shows."""
        where = {"direction": self.direction, "field": self.field}
        return where | {"documents_offset": self.seeds_offset} | self.verdict.document()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that is known about a capture."""

    name: str
    format: str
    analysis: Analysis
    conversations: list[Conversation]
    timeline: list[TimelineEntry]
    tests: list[FieldTest]
    warnings: list[str]
    decrypted: "Decrypted | None" = None
    totals: dict[PacketKind, int] = field(default_factory=dict)
    teaching: "TeachingDialogue | None" = None
    """Requests and answers in teaching frames."""

    def count(self, *kinds: PacketKind) -> int:
        """Return the number of packets of these kinds."""
        return sum(self.totals.get(kind, 0) for kind in kinds)

    @property
    def accounted(self) -> dict[str, int]:
        """The number of packets under each name; every packet counts under exactly one name."""
        decoder = self.analysis.decoder
        counts: Counter[str] = Counter()
        for kind, count in self.totals.items():
            counts[kind.label] += count
        for number, count in decoder.other.items():
            counts[PROTOCOLS.get(number, f"IP protocol {number}")] += count
        for number, count in decoder.ethertypes.items():
            counts[_label_ethertype(number)] += count
        for link, count in decoder.unknown_links.items():
            counts[f"linktype {link}"] += count
        counts["damaged headers"] += decoder.damaged
        counts["pieces of larger packets"] += decoder.pieces - decoder.fragments.whole
        return {label: count for label, count in counts.most_common() if count}

    @property
    def limits(self) -> list[str]:
        """Sentences about what cannot be known from this capture; the most serious first."""
        return list_limits(self.conversations, self.decrypted)

    def document(self) -> dict[str, Any]:
        """Return the `--json` document; docs/capture.md explains its keys."""
        analysis, decoder = self.analysis, self.analysis.decoder
        first, last = analysis.first_ns, analysis.last_ns
        return {
            "file": self.name,
            "format": self.format,
            "packets": decoder.packets,
            "udp_packets": analysis.udp,
            "tcp_packets": analysis.tcp,
            "other_packets": sum(decoder.other.values()),
            "not_ip": decoder.not_ip,
            "damaged": decoder.damaged,
            "start": None if first is None else iso(first),
            "end": None if last is None else iso(last),
            "seconds": None if first is None or last is None else (last - first) / 1e9,
            "dtls_records": analysis.dtls,
            "stun_packets": self.count(PacketKind.STUN),
            "srtp_packets": self.count(*_MEDIA),
            "teaching_frames": self.count(PacketKind.TEACHING),
            **_describe_teaching(self.teaching),
            "a1_frames": self.count(PacketKind.A1),
            "kinds": {kind.label: count for kind, count in self.totals.items()},
            "accounted": self.accounted,
            "tunnels": dict(decoder.tunnels),
            "icmp": describe_icmp_messages(decoder.control_types, decoder.control),
            "fragments": {
                "pieces": decoder.fragments.pieces,
                "whole": decoder.fragments.whole,
                "refused": decoder.fragments.refused,
                "unfinished": decoder.fragments.unfinished,
            },
            "apps": sorted(decoder.apps),
            "flows": [
                conversation.document() for conversation in self.conversations[:_MAX_FLOWS_SHOWN]
            ],
            "flows_total": len(self.conversations),
            "packets_without_flow": analysis.flows.left_out,
            "cannot_be_known": self.limits,
            "timeline": [entry.document() for entry in self.timeline],
            "field_tests": [test.document() for test in self.tests],
            "decrypted": _describe_decrypted(self.decrypted),
            "warnings": self.warnings,
        }


def report_capture(
    path: Path | str, *, stream: bool = False, keylog: str | None = None, head: int = 0
) -> Report:
    """Read a capture and report what it contains; with the text of a key log, also its messages.

    `stream` limits the memory for a capture that may never end. `head` is the number of bytes kept
    of each payload, if it must be more than usual.
    """
    with open_capture(path) as capture:
        analysis = survey(capture, stream=stream, head=head)
    decrypted = _decrypt_capture(path, capture, keylog)
    return build_report(capture, analysis, decrypted)


def survey(capture: Capture, *, stream: bool = False, head: int = 0) -> Analysis:
    """Read an open capture to its end; for the arguments see `report_capture`."""
    keep = KEEP_RECORDS_STREAM if stream else KEEP_RECORDS
    return Analysis(head=head, keep_records=keep).run(capture)


def build_report(
    capture: Capture, analysis: Analysis, decrypted: "Decrypted | None" = None
) -> Report:
    """Return the report on a capture that has been read."""
    conversations = build_conversations(analysis)
    warnings = [
        *capture.warnings,
        *_list_analysis_warnings(analysis),
        *_warn_of_unanswered(conversations),
    ]
    dialogue = read_teaching(analysis, conversations)
    entries = build_timeline(analysis, conversations, dialogue)
    if decrypted is not None:
        warnings += [problem.message for problem in decrypted.problems]
        if decrypted.timeline:  # decrypted entries replace inferred ones
            entries = [entry for entry in entries if entry.confidence >= _CERTAIN]
        entries += decrypted.timeline
        entries.sort(key=lambda entry: entry.start_ns)
    return Report(
        capture.name,
        capture.format,
        analysis,
        conversations,
        entries,
        judge_command_bytes(analysis, conversations),
        warnings,
        decrypted,
        _compute_kind_totals(analysis, conversations),
        dialogue,
    )


def _compute_kind_totals(
    analysis: Analysis, conversations: list[Conversation]
) -> dict[PacketKind, int]:
    """Return the number of packets of each kind, as reclassified by their flows."""
    totals = analysis.flows.kind_totals()
    for conversation in conversations:
        for (old, new), count in conversation.moved.items():
            totals[old] -= count
            totals[new] = totals.get(new, 0) + count
    short_quic = totals.pop(PacketKind.QUIC_SHORT, 0)  # of directions that have no row
    totals[PacketKind.UNKNOWN] = totals.get(PacketKind.UNKNOWN, 0) + short_quic
    return {kind: totals[kind] for kind in PacketKind if totals.get(kind)}


def judge_command_bytes(analysis: Analysis, conversations: list[Conversation]) -> list[FieldTest]:
    """Judge the byte that the seed documents take for a command, in the busiest UDP directions."""
    tests: list[FieldTest] = []
    sides = [
        side
        for conversation in conversations
        for side in conversation.sides
        if conversation.protocol == "udp"
    ]
    sides.sort(key=lambda side: -side.packets)
    for side in sides:
        if side.packets < MIN_PACKETS or len(tests) >= 2 * _MAX_TESTS:
            break
        kept = analysis.get_heads(side.number)
        if kept is None:
            continue
        if side.kinds.get(PacketKind.DTLS, 0) > side.packets // 2:
            heads, sizes = _select_dtls(side, *kept)
            field = "the documents' command id: their offset 12, byte 10 of a DTLS record"
            verdict = judge(heads, sizes, COMMAND_AT)
            tests.append(FieldTest(side.label, field, verdict, SEEDS_COMMAND_AT))
            field = "byte 12 of the datagram: the low byte of the record's length"
            tests.append(FieldTest(side.label, field, judge(heads, sizes, 12)))
        else:
            tests.append(FieldTest(side.label, "byte 12 of the datagram", judge(*kept, 12)))
    return tests


def _select_dtls(
    side: FlowSide, heads: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return only the DTLS datagrams of a side that is mostly DTLS: STUN may share its ports.

    `heads` has the first bytes of each datagram, `sizes` its size.
    """
    if side.kinds.get(PacketKind.DTLS, 0) <= side.packets // 2:
        return heads, sizes
    is_dtls = heads[:, 1] == 0xFE  # the first byte of every version of DTLS
    return heads[is_dtls], sizes[is_dtls]


def judge_field(report: Report, offset: int, width: int) -> list[FieldTest]:
    """Judge one field of the datagrams in every direction, the busiest first.

    The field is the `width` bytes from byte `offset` of the payload.
    """
    tests = []
    sides = [side for conversation in report.conversations for side in conversation.sides]
    for side in sorted(sides, key=lambda side: -side.packets)[:_MAX_JUDGED]:
        kept = report.analysis.get_heads(side.number)
        if kept is not None:
            verdict = judge(*_select_dtls(side, *kept), offset, width)
            tests.append(FieldTest(side.label, f"byte {offset} of the datagram", verdict))
    return tests


def _decrypt_capture(path: Path | str, capture: Capture, keylog: str | None) -> "Decrypted | None":
    """Decrypt a capture by reading it a second time; None if there are no keys or it is a pipe.

    The keys are those in `keylog`, the text of a key log, and those in the capture itself.
    """
    embedded_keys = b"\n".join(capture.secrets).decode(errors="replace")
    if keylog is None and not embedded_keys:
        return None
    if str(path) == "-":
        capture.warn("standard input can be read only once, so nothing was decrypted")
        return None
    from rote.capture.decode.decrypt import decrypt  # noqa: PLC0415 - slow to load, seldom needed

    decoder = PacketDecoder()
    with open_capture(path) as second_capture:
        batches = (batch for records in second_capture for batch in decoder.decode(records))
        return decrypt(iter_datagrams(batches, decoder), f"{keylog or ''}\n{embedded_keys}")


def _describe_decrypted(decrypted: "Decrypted | None") -> dict[str, Any] | None:
    if decrypted is None:
        return None
    return {
        "sessions": sum(session.opened > 0 for session in decrypted.sessions),
        "sessions_seen": len(decrypted.sessions),
        "messages": len(decrypted.messages),
        "chunks": decrypted.chunks,
        "requests": [pair.document() for pair in decrypted.pairs],
        "problems": [problem.document() for problem in decrypted.problems],
    }


def _describe_teaching(dialogue: "TeachingDialogue | None") -> dict[str, Any]:
    if dialogue is None:
        return {"commands": {}, "actions": [], "exchanges": []}
    return {
        "commands": {f"0x{command:02x}": count for command, count in dialogue.commands.items()},
        "actions": dialogue.actions,
        "exchanges": [
            exchange.document() for exchange in dialogue.exchanges[:_MAX_EXCHANGES_SHOWN]
        ],
    }


def _warn_of_unanswered(conversations: list[Conversation]) -> list[str]:
    """Return a warning for each direction whose STUN requests all lack an answer."""
    unanswered: list[tuple[int, str]] = []
    for conversation in conversations:
        if PacketKind.STUN in conversation.kinds:
            for side in conversation.sides:
                count = conversation.count_unanswered(side)
                if count and count == len(side.facts.stun_requests):
                    unanswered.append((count, side.label))
    unanswered.sort(reverse=True)
    sentences = [
        f"{count:,} STUN request{'s' * (count > 1)} {direction} and no answer: the destination "
        "was not reached, or its answers were not captured"
        for count, direction in unanswered[:_MAX_UNANSWERED]
    ]
    if rest := unanswered[_MAX_UNANSWERED:]:
        count = sum(count for count, _ in rest)
        sentences.append(f"{count:,} more STUN requests in {len(rest):,} directions have no answer")
    return sentences


_MAX_UNANSWERED = 8


def _label_ethertype(number: int) -> str:
    """Return the name under which packets with an ethertype are counted; 0 is none."""
    if number == 0:
        return "not IP"
    if number < 0x0600:
        return "LLC"
    if number in (0x0800, 0x86DD):
        return "IP that ends too early"
    return ETHERTYPES.get(number, f"ethertype 0x{number:04x}")


_CAPTURE_ELSEWHERE = "; capture on the phone, on the access point or with a cable instead"
_TUNNELS, _WRAPPINGS = (4, 41, 47), (0x8864, 0x8847, 0x8848)


def _list_analysis_warnings(analysis: Analysis) -> list[str]:
    """Return warnings about packets that were not read, or were counted only in the totals."""
    decoder, fragments = analysis.decoder, analysis.decoder.fragments
    sentences = [
        f"{count:,} packets of linktype {link} ({UNREAD_LINKS.get(link, 'not known here')}) were "
        f"counted and not read{_CAPTURE_ELSEWHERE if link in UNREAD_LINKS else ''}"
        for link, count in sorted(decoder.unknown_links.items())
    ]
    if count := decoder.encrypted_wifi:
        sentences.append(
            f"{count:,} frames of Wi-Fi are encrypted and were not read{_CAPTURE_ELSEWHERE}"
        )
    unread = {number: decoder.other[number] for number in _TUNNELS if number in decoder.other}
    sentences += [
        f"{count:,} packets of {PROTOCOLS[number]} have contents that were not read"
        for number, count in unread.items()
    ]
    if count := sum(decoder.ethertypes.get(number, 0) for number in _WRAPPINGS):
        sentences.append(f"{count:,} packets of PPPoE or MPLS have contents that were not read")
    if decoder.damaged:
        sentences.append(f"{decoder.damaged:,} packets have inconsistent headers")
    if fragments.refused:
        sentences.append(f"{fragments.refused:,} packets were refused because their pieces overlap")
    if fragments.unfinished:
        sentences.append(f"{fragments.unfinished:,} fragmented packets are incomplete")
    if analysis.flows.left_out:
        sentences.append(
            f"only {analysis.flows.limit:,} directions are listed; {analysis.flows.left_out:,} "
            "packets of other directions are counted in the totals only"
        )
    if analysis.commands_left_out:
        sentences.append(
            f"only the first {len(analysis.commands):,} commands and replies in teaching frames "
            f"were read; {analysis.commands_left_out:,} more were not"
        )
    if analysis.records.left_out:
        sentences.append(
            f"the time line uses only the first {analysis.records.count:,} encrypted records; "
            f"{analysis.records.left_out:,} more were not used"
        )
    return sentences
