"""What a capture contains, as one value: for the terminal, for JSON, for a page."""

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from rote.capture.decode.control_messages import control_messages
from rote.capture.judge.analysis import KEEP_RECORDS, KEEP_RECORDS_STREAM, Analysis
from rote.capture.judge.conversations import Conversation, FlowSide, conversations
from rote.capture.judge.field_statistics import MIN, Verdict, judge
from rote.capture.judge.timeline_build import build_timeline, read_teaching
from rote.capture.judge.unknowable import limits
from rote.capture.model import PacketKind, TimelineEntry, iso
from rote.capture.read.packets import ETHERTYPES, PROTOCOLS, UNREAD_LINKS, PacketDecoder, datagrams
from rote.capture.read.reader import Capture, open_capture

if TYPE_CHECKING:
    from rote.capture.decode.decrypt import Decrypted
    from rote.capture.decode.teaching_dialogue import TeachingDialogue

COMMAND_AT, SEEDS_SAY = 10, 12
"""Where the "command id" of the seed documents really is, and where they draw it: their header has
two bytes more than the datagrams.
"""
_MAX_TESTS, _MAX_JUDGED = 8, 256
_MAX_FLOWS_SHOWN = 10_000
_MAX_EXCHANGES_SHOWN = 10_000
_MEDIA = (PacketKind.RTP, PacketKind.RTCP, PacketKind.SRTP, PacketKind.SRTCP)


@dataclass(frozen=True, slots=True)
class FieldTest:
    """A byte that was presented as a command, and the statistical verdict."""

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
        """Every packet of the capture under exactly one name; the counts add up to all packets."""
        decoder = self.analysis.decoder
        counts: Counter[str] = Counter()
        for kind, count in self.totals.items():
            counts[kind.label] += count
        for number, count in decoder.other.items():
            counts[PROTOCOLS.get(number, f"IP protocol {number}")] += count
        for number, count in decoder.ethertypes.items():
            counts[_ethertype_label(number)] += count
        for link, count in decoder.unknown_links.items():
            counts[f"linktype {link}"] += count
        counts["damaged headers"] += decoder.damaged
        counts["pieces of larger packets"] += decoder.pieces - decoder.fragments.whole
        return {label: count for label, count in counts.most_common() if count}

    @property
    def limits(self) -> list[str]:
        """What cannot be known from this capture, in sentences; the worst first."""
        return limits(self.conversations, self.decrypted)

    def document(self) -> dict[str, Any]:
        """Return the `--json` document; docs/capture.md explains its keys."""
        found, decoder = self.analysis, self.analysis.decoder
        first, last = found.first_ns, found.last_ns
        return {
            "file": self.name,
            "format": self.format,
            "packets": decoder.packets,
            "udp_packets": found.udp,
            "tcp_packets": found.tcp,
            "other_packets": sum(decoder.other.values()),
            "not_ip": decoder.not_ip,
            "damaged": decoder.damaged,
            "start": None if first is None else iso(first),
            "end": None if last is None else iso(last),
            "seconds": None if first is None or last is None else (last - first) / 1e9,
            "dtls_records": found.dtls,
            "stun_packets": self.count(PacketKind.STUN),
            "srtp_packets": self.count(*_MEDIA),
            "teaching_frames": self.count(PacketKind.TEACHING),
            **_teaching_document(self.teaching),
            "a1_frames": self.count(PacketKind.A1),
            "kinds": {kind.label: count for kind, count in self.totals.items()},
            "accounted": self.accounted,
            "tunnels": dict(decoder.tunnels),
            "icmp": control_messages(decoder.control_types, decoder.control),
            "fragments": {
                "pieces": decoder.fragments.pieces,
                "whole": decoder.fragments.whole,
                "refused": decoder.fragments.refused,
                "unfinished": decoder.fragments.unfinished,
            },
            "apps": sorted(decoder.apps),
            "flows": [one.document() for one in self.conversations[:_MAX_FLOWS_SHOWN]],
            "flows_total": len(self.conversations),
            "packets_without_flow": found.flows.left_out,
            "cannot_be_known": self.limits,
            "timeline": [entry.document() for entry in self.timeline],
            "field_tests": [test.document() for test in self.tests],
            "decrypted": _decrypted_document(self.decrypted),
            "warnings": self.warnings,
        }


def report_capture(
    path: Path | str, *, stream: bool = False, keylog: str | None = None, head: int = 0
) -> Report:
    """Read a capture and report what it contains; with a key log, also its messages."""
    with open_capture(path) as capture:
        analysis = survey(capture, stream=stream, head=head)
    opened = _decrypt_capture(path, capture, keylog)
    return build_report(capture, analysis, opened)


def survey(capture: Capture, *, stream: bool = False, head: int = 0) -> Analysis:
    """Read an open capture to its end."""
    keep = KEEP_RECORDS_STREAM if stream else KEEP_RECORDS
    return Analysis(head=head, keep_records=keep).run(capture)


def build_report(capture: Capture, analysis: Analysis, opened: "Decrypted | None" = None) -> Report:
    """Return the report on a capture that has been read."""
    found = conversations(analysis)
    warnings = [*capture.warnings, *_analysis_warnings(analysis), *_unanswered_warnings(found)]
    dialogue = read_teaching(analysis, found)
    lines = build_timeline(analysis, found, dialogue)
    if opened is not None:
        warnings += [problem.message for problem in opened.problems]
        # What was read replaces what was guessed about the same thing.
        lines = [line for line in lines if not opened.timeline or line.confidence >= 0.99]
        lines += [TimelineEntry(*_entry_fields(entry)) for entry in opened.timeline]
        lines.sort(key=lambda line: line.start_ns)
    return Report(
        capture.name,
        capture.format,
        analysis,
        found,
        lines,
        field_tests(analysis, found),
        warnings,
        opened,
        _kind_totals(analysis, found),
        dialogue,
    )


def _entry_fields(entry: Any) -> tuple[str, int, int | None, float, str]:
    return entry.kind, entry.start_ns, entry.end_ns, entry.confidence, entry.evidence


def _kind_totals(analysis: Analysis, found: list[Conversation]) -> dict[PacketKind, int]:
    """Return the number of packets of each kind, corrected by their whole flows."""
    totals = analysis.flows.kind_totals()
    for one in found:
        for (old, new), count in one.moved.items():
            totals[old] -= count
            totals[new] = totals.get(new, 0) + count
    rest = totals.pop(PacketKind.QUIC_SHORT, 0)  # of directions that have no row
    totals[PacketKind.UNKNOWN] = totals.get(PacketKind.UNKNOWN, 0) + rest
    return {kind: totals[kind] for kind in PacketKind if totals.get(kind)}


def field_tests(analysis: Analysis, found: list[Conversation]) -> list[FieldTest]:
    """Judge the bytes that the seed documents take for a command, in the busiest directions."""
    tests: list[FieldTest] = []
    sides = [side for one in found for side in one.sides if one.protocol == "udp"]
    sides.sort(key=lambda side: -side.packets)
    for side in sides:
        if side.packets < MIN or len(tests) >= 2 * _MAX_TESTS:
            break
        kept = analysis.heads_of(side.number)
        if kept is None:
            continue
        if side.kinds.get(PacketKind.DTLS, 0) > side.packets // 2:
            heads, sizes = _keep_dtls(side, *kept)
            field = "the documents' command id: their offset 12, byte 10 of a DTLS record"
            verdict = judge(heads, sizes, COMMAND_AT)
            tests.append(FieldTest(side.label, field, verdict, SEEDS_SAY))
            field = "byte 12 of the datagram: the low byte of the record's length"
            tests.append(FieldTest(side.label, field, judge(heads, sizes, 12)))
        else:
            tests.append(FieldTest(side.label, "byte 12 of the datagram", judge(*kept, 12)))
    return tests


def _keep_dtls(
    side: FlowSide, heads: np.ndarray, sizes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Remove packets that only share the ports: fields of DTLS have no meaning in STUN."""
    if side.kinds.get(PacketKind.DTLS, 0) <= side.packets // 2:
        return heads, sizes
    like = heads[:, 1] == 0xFE
    return heads[like], sizes[like]


def judge_field(report: Report, offset: int, width: int) -> list[FieldTest]:
    """Judge one field in every direction of UDP, the busiest first."""
    tests = []
    sides = [side for one in report.conversations for side in one.sides]
    for side in sorted(sides, key=lambda side: -side.packets)[:_MAX_JUDGED]:
        kept = report.analysis.heads_of(side.number)
        if kept is not None:
            verdict = judge(*_keep_dtls(side, *kept), offset, width)
            tests.append(FieldTest(side.label, f"byte {offset} of the datagram", verdict))
    return tests


def _decrypt_capture(path: Path | str, capture: Capture, keylog: str | None) -> "Decrypted | None":
    """Read the capture a second time, datagram by datagram, with the keys."""
    inside = b"\n".join(capture.secrets).decode(errors="replace")
    if keylog is None and not inside:
        return None
    if str(path) == "-":
        capture.warn("standard input can be read only once, so nothing was decrypted")
        return None
    from rote.capture.decode.decrypt import decrypt  # noqa: PLC0415 - slow to load, seldom needed

    decoder = PacketDecoder()
    with open_capture(path) as again:
        batches = (batch for records in again for batch in decoder.decode(records))
        return decrypt(datagrams(batches, decoder), f"{keylog or ''}\n{inside}")


def _decrypted_document(opened: "Decrypted | None") -> dict[str, Any] | None:
    if opened is None:
        return None
    return {
        "sessions": sum(session.opened > 0 for session in opened.sessions),
        "sessions_seen": len(opened.sessions),
        "messages": len(opened.messages),
        "chunks": opened.chunks,
        "requests": [pair.document() for pair in opened.pairs],
        "problems": [problem.document() for problem in opened.problems],
    }


def _teaching_document(dialogue: "TeachingDialogue | None") -> dict[str, Any]:
    if dialogue is None:
        return {"commands": {}, "actions": [], "exchanges": []}
    return {
        "commands": {f"0x{command:02x}": count for command, count in dialogue.commands.items()},
        "actions": dialogue.actions,
        "exchanges": [one.document() for one in dialogue.exchanges[:_MAX_EXCHANGES_SHOWN]],
    }


def _unanswered_warnings(found: list[Conversation]) -> list[str]:
    """Return a warning for each direction whose STUN requests have no answer, the most first."""
    asked = [
        (count, side.label)
        for one in found
        for side in one.sides
        if PacketKind.STUN in one.kinds
        and (count := one.unanswered(side))
        and count == len(side.facts.asked)
    ]
    asked.sort(reverse=True)
    sentences = [
        f"{count:,} STUN request{'s' * (count > 1)} {direction} and no answer: nobody was "
        "reached this way, or the answers were not captured"
        for count, direction in asked[:_MAX_UNANSWERED]
    ]
    if rest := asked[_MAX_UNANSWERED:]:
        count = sum(count for count, _ in rest)
        sentences.append(f"{count:,} more STUN requests in {len(rest):,} directions have no answer")
    return sentences


_MAX_UNANSWERED = 8


def _ethertype_label(number: int) -> str:
    if number == 0:
        return "not IP"
    if number < 0x0600:
        return "LLC"
    if number in (0x0800, 0x86DD):
        return "IP that ends too early"
    return ETHERTYPES.get(number, f"ethertype 0x{number:04x}")


_INSTEAD = "; capture on the phone, on the access point or with a cable instead"
_TUNNELS, _WRAPPINGS = (4, 41, 47), (0x8864, 0x8847, 0x8848)


def _analysis_warnings(analysis: Analysis) -> list[str]:
    """Return warnings about packets that could not be taken into account."""
    decoder, fragments = analysis.decoder, analysis.decoder.fragments
    sentences = [
        f"{count:,} packets of linktype {link} ({UNREAD_LINKS.get(link, 'not known here')}) were "
        f"counted and not read{_INSTEAD if link in UNREAD_LINKS else ''}"
        for link, count in sorted(decoder.unknown_links.items())
    ]
    unread = {number: decoder.other[number] for number in _TUNNELS if number in decoder.other}
    sentences += [
        f"{count:,} packets of {PROTOCOLS[number]} hold something that was not read"
        for number, count in unread.items()
    ]
    if count := sum(decoder.ethertypes.get(number, 0) for number in _WRAPPINGS):
        sentences.append(f"{count:,} packets of PPPoE or MPLS hold something that was not read")
    if decoder.damaged:
        sentences.append(f"{decoder.damaged:,} packets have headers that contradict themselves")
    if fragments.refused:
        sentences.append(
            f"{fragments.refused:,} packets came in pieces that overlap and were refused"
        )
    if fragments.unfinished:
        sentences.append(f"{fragments.unfinished:,} packets miss some of their pieces")
    if analysis.flows.left_out:
        sentences.append(
            f"more than {analysis.flows.limit:,} directions: {analysis.flows.left_out:,} packets "
            "of the others are in the totals only"
        )
    if analysis.commands_left_out:
        sentences.append(
            f"the first {len(analysis.commands):,} commands and replies in teaching frames were "
            f"read; {analysis.commands_left_out:,} more came"
        )
    if analysis.records.left_out:
        sentences.append(
            f"the time line rests on the first {analysis.records.count:,} encrypted records; "
            f"{analysis.records.left_out:,} more came"
        )
    return sentences
