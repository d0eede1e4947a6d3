"""Two readings of one capture, side by side: the seed documents' and the true one.

The documents take `17 fe fd` for a magic number, the bytes after it for flags and a command, and
the sizes for kinds of packets. Each step states the count in this capture that decides.
"""

from dataclasses import dataclass

import numpy as np

from rote.capture.judge.conversations import Conversation, FlowSide, label_version
from rote.capture.judge.field_statistics import Verdict, judge, read_field
from rote.capture.judge.sizes import is_acknowledgement
from rote.capture.model import PacketKind
from rote.capture.report.report import COMMAND_AT, Report

_COMMANDS = (0x09, 0x0A, 0x0B, 0x0C, 0x0D, 0x0E, 0x0F, 0x1A, 0x2B, 0x41)


@dataclass(frozen=True, slots=True)
class ExplainStep:
    """A question, both answers to it, and the count in this capture that decides."""

    question: str
    seeds: str
    """The seed documents' answer."""
    truth: str
    """The right answer."""
    counted: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All steps, and their conclusion."""

    title: str
    steps: tuple[ExplainStep, ...]
    conclusion: str
    verdict: Verdict | None = None

    def document(self) -> dict[str, object]:
        """Return what `--json` shows."""
        return {
            "title": self.title,
            "steps": [
                {
                    "question": step.question,
                    "documents": step.seeds,
                    "truth": step.truth,
                    "counted": step.counted,
                }
                for step in self.steps
            ],
            "conclusion": self.conclusion,
            "command_byte": None if self.verdict is None else self.verdict.document(),
        }


def explain(report: Report) -> Explanation:
    """Compare the documents' reading with the true one, on the direction with the most DTLS."""
    sides = [side for conversation in report.conversations for side in conversation.sides]
    sides = [side for side in sides if side.kinds.get(PacketKind.DTLS)]
    if not sides:
        return _explain_without_dtls(report)
    side = max(sides, key=lambda side: side.kinds[PacketKind.DTLS])
    kept_heads = report.analysis.get_heads(side.number)
    if kept_heads is None:
        return _explain_without_dtls(report)
    heads, sizes = kept_heads
    is_dtls = heads[:, 1] == 0xFE  # the first byte of every version of DTLS
    heads, sizes = heads[is_dtls], sizes[is_dtls]
    verdict = judge(heads, sizes, COMMAND_AT)
    conversation = next(
        conversation for conversation in report.conversations if side in conversation.sides
    )
    steps = (
        _explain_first_bytes(heads),
        _explain_header(side),
        _explain_command(heads, sizes, verdict),
        _explain_length(heads, sizes),
        _explain_checksum(report),
        _explain_acknowledgements(report, side, conversation),
    )
    return Explanation(
        f"{report.name}: {side.label}", steps, _write_conclusion(conversation), verdict
    )


def _write_conclusion(conversation: Conversation) -> str:
    """Return what the packets are, and whether they can be decrypted."""
    versions = " and ".join(map(label_version, conversation.versions())) or "DTLS"
    kind = "a WebRTC connection" if conversation.name == "WebRTC" else "a connection"
    text = f"The documents' packets are {versions} records of {kind}. "
    text += "Without the session's keys their contents cannot be read"
    if conversation.suite() is None:
        return (
            f"{text}, and no key log can open them either: the handshake is not in this capture. "
            "Capture from before the app connects, with a client that writes its keys."
        )
    return (
        f"{text}. The handshake is in this capture, so with the session's key log (--keylog KEYS) "
        "they can be opened."
    )


def _explain_without_dtls(report: Report) -> Explanation:
    frames = report.count(PacketKind.TEACHING)
    conclusion = (
        f"There are {frames:,} documented teaching frames here, each with a valid CRC-32: this "
        "is rote's own UDP protocol, and the documents' reading of it is the right one."
        if frames
        else "No DTLS record is in this capture, so the two readings do not differ on it. Capture "
        "the phone app while it is connected to a robot, for example with PCAPdroid."
    )
    return Explanation(report.name, (), conclusion)


def _explain_first_bytes(heads: np.ndarray) -> ExplainStep:
    start = heads[0, :13].tobytes().hex(" ") if heads.size else ""
    matching = int((heads[:, :3] == np.array([0x17, 0xFE, 0xFD], np.uint8)).all(axis=1).sum())
    return ExplainStep(
        "How does a datagram begin?",
        '17 is the message type "command stream"; fe fd 00 is a magic number.',
        "17 is the content type 23, application data; fe fd is the version DTLS 1.2; 00 is half "
        "of the next field.",
        f"{matching:,} of {heads.shape[0]:,} datagrams begin with 17 fe fd; the first: {start}",
    )


def _explain_header(side: FlowSide) -> ExplainStep:
    tracks = [track for track in side.tracks if track.epoch > 0]
    seen = "; ".join(
        f"epoch {track.epoch}: {track.records:,} records numbered {track.lowest:,} to "
        f"{track.highest:,}, {track.missing:,} missing"
        for track in tracks
    )
    return ExplainStep(
        "What are the eight bytes from the fourth on?",
        "Flags 01 00, a sequence number, reserved bytes, a type indicator, and the command id.",
        "Two bytes of epoch, which counts sets of keys, and six bytes of a sequence number, "
        "which increases by one with every record.",
        seen,
    )


def _explain_command(heads: np.ndarray, sizes: np.ndarray, verdict: Verdict) -> ExplainStep:
    values = read_field(heads[sizes > COMMAND_AT], COMMAND_AT, 1)
    known = float(np.isin(values, _COMMANDS).mean()) if values.size else 0.0
    return ExplainStep(
        "Is the byte at their offset 12 a command id?",
        "Yes: 0x09 to 0x0C initialise, 0x0D teaches, 0x1A lists, 0x2B saves, 0x41 plays. (Their "
        "header has two bytes more than the datagram; it is byte 10, counted from 0.)",
        "It is the lowest byte of the record's number. That is why 0x09 to 0x0F appear \"in "
        'sequence", and why every "command" repeats after 256 records.',
        f"{verdict.kind}: {verdict.why}. {known:.1%} of the records have one of the ten "
        f'"commands"; a plain counter gives {len(_COMMANDS) / 256:.1%}',
    )


def _explain_length(heads: np.ndarray, sizes: np.ndarray) -> ExplainStep:
    lengths = read_field(heads, 11, 2)
    fitting = int((lengths + 13 == sizes).sum())
    return ExplainStep(
        "Where does the payload begin, and is there a checksum behind it?",
        "Length at 13, payload at 15, four bytes of CRC-32 at the end: 63, 167, 203 or 239 bytes.",
        "Length at 11, contents at 13, nothing behind: 57, 161, 197 or 233 bytes.",
        f"{fitting:,} of {sizes.size:,} datagrams are exactly 13 + length",
    )


def _explain_checksum(report: Report) -> ExplainStep:
    frames = report.count(PacketKind.TEACHING)
    return ExplainStep(
        "Does any datagram have the documented CRC-32?",
        'All of them, "verified".',
        "By chance, a checksum would be right in one of four thousand million datagrams.",
        f"{frames:,} documented frames with a valid CRC in this capture",
    )


def _explain_acknowledgements(
    report: Report, side: FlowSide, conversation: Conversation
) -> ExplainStep:
    _, lengths = report.analysis.get_records(side.number)
    counted = "no cipher fits the sizes, so this is unknown"
    cipher = conversation.cipher
    if cipher is not None and lengths.size:
        number = int(is_acknowledgement(lengths, cipher.overhead).sum())
        size = cipher.overhead + 28 + 13
        counted = (
            f"{number:,} of {lengths.size:,} records have {size} bytes: 13 of header, 28 of an "
            f"acknowledgement, {cipher.overhead} of {cipher.name} ({cipher.why})"
        )
    return ExplainStep(
        "What are the many short datagrams?",
        "57-byte commands, sent all the time.",
        "Most likely SCTP acknowledgements: one side confirms what it received from the other.",
        counted,
    )
