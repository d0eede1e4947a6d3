"""The time line of a whole capture: connections from sizes and times, teaching frames in full."""

from typing import TYPE_CHECKING, Any

from rote.capture.decode.packet_facts import HttpNote
from rote.capture.judge.analysis import Analysis
from rote.capture.judge.conversations import Conversation, FlowSide
from rote.capture.judge.timeline import SentRecords, propose
from rote.capture.model import PacketKind, TimelineEntry

if TYPE_CHECKING:
    from rote.capture.decode.teaching_dialogue import Exchange, TeachingDialogue

_MAX_CONNECTIONS = 64
_MAX_ENTRIES = 2000
_SURE = 0.99
"""For what a checksum proves."""
_LIKELY = 0.8
"""For what the size of an encrypted body suggests."""
_SHORTEST_ANSWER = 400
"""An encrypted answer with a session description has more bytes, an encrypted rejection fewer."""
_SIGNALLING = ("/con_notify", "/con_ing", "/offer")


def build_timeline(
    analysis: Analysis, found: list[Conversation], dialogue: "TeachingDialogue | None" = None
) -> list[TimelineEntry]:
    """Return what probably happened, in order."""
    lines: list[TimelineEntry] = []
    encrypted = [one for one in found if PacketKind.DTLS in one.kinds]
    encrypted.sort(key=lambda one: -one.packets)
    for one in encrypted[:_MAX_CONNECTIONS]:
        lines += _connection_entries(analysis, one)
    for one in found:
        lines += _signalling_entries(one)
    lines += _frame_entries(analysis, dialogue)
    lines.sort(key=lambda entry: (entry.start_ns, entry.kind))
    return lines[:_MAX_ENTRIES]


def _connection_entries(analysis: Analysis, one: Conversation) -> list[TimelineEntry]:
    client = one.client()
    others = [side for side in one.sides if side is not client]
    sides = _sent_records(analysis, client), _sent_records(analysis, others[0]) if others else None
    return propose(sides, one.cipher, _connect_entry(one))


def _sent_records(analysis: Analysis, side: FlowSide) -> SentRecords:
    return SentRecords(*analysis.records_of(side.number))


def _connect_entry(one: Conversation) -> TimelineEntry:
    """Return when a connection was up."""
    seen = [message for side in one.sides for message in side.facts.messages]
    if "client hello" in seen or "server hello" in seen:
        evidence = f"a {one.name} connection with its handshake: {', '.join(seen[:12])}"
        return TimelineEntry("connect", one.first_ns, one.last_ns, 0.95, evidence)
    numbers = [track.lowest for side in one.sides for track in side.tracks if track.epoch > 0]
    evidence = "encrypted records without a handshake: it was up before the capture began"
    if numbers:
        evidence += f", and {min(numbers):,} records had been sent"
    return TimelineEntry("connect", one.first_ns, one.last_ns, 0.9, evidence)


def _signalling_entries(one: Conversation) -> list[TimelineEntry]:
    """Return each offer in plain HTTP with its answer."""
    notes = sorted(
        (note, index) for index, side in enumerate(one.sides) for note in side.facts.http
    )
    found: list[TimelineEntry] = []
    for at, (offer, side) in enumerate(notes):
        if not any(path in offer.line for path in _SIGNALLING):
            continue
        # The answer is the next response of the other side, before this one asks again.
        behind = (note for note, which in notes[at + 1 :] if which != side or " HTTP/" in note.line)
        answer = next(behind, None)
        if answer is not None and not answer.line.startswith("HTTP/"):
            answer = None
        outcome, sure = _offer_outcome(offer, answer)
        end_ns = None if answer is None else answer.time_ns
        evidence = f"HTTP in the clear: {offer.line}; {outcome}"
        found.append(TimelineEntry("signal", offer.time_ns, end_ns, sure, evidence))
    return found


def _offer_outcome(offer: HttpNote, answer: HttpNote | None) -> tuple[str, float]:
    """Return the result of an offer, and how sure that is."""
    if answer is None:
        return "no answer in this capture: it timed out, or the answer was not captured", _SURE
    wait = f"after {(answer.time_ns - offer.time_ns) / 1e6:.0f} ms"
    if answer.line.split(" ", 2)[1:2] != ["200"]:
        return f"refused {wait} with {answer.line}", _SURE
    if "/con_notify" in offer.line:
        return f"answered {wait}: the robot told its key", _SURE
    size = f"{answer.body_bytes:,} bytes"
    if answer.body.lstrip().startswith(b"{"):  # not encrypted
        rejected = b'"reject"' in answer.body
        outcome = (
            f"rejected {wait}: the robot has another client" if rejected else f"accepted {wait}"
        )
        return outcome, _SURE
    if answer.body_bytes < _SHORTEST_ANSWER:
        return f"rejected {wait}: {size} are too few for a sealed answer", _LIKELY
    return f"accepted {wait}: {size}, as many as a sealed answer has", _LIKELY


def _frame_entries(analysis: Analysis, dialogue: "TeachingDialogue | None") -> list[TimelineEntry]:
    """Return the time line of documented teaching frames, which are not encrypted."""
    kept = analysis.frames.columns()
    if kept is None:
        return []
    time_ns = kept[1]
    evidence = f"{time_ns.size:,} documented teaching frames with valid checksums"
    ends = int(time_ns.min()), int(time_ns.max())
    entries = [TimelineEntry("connect", *ends, _SURE, evidence)]
    if dialogue is not None:
        for client in dict.fromkeys(one.client for one in dialogue.exchanges):
            entries += _exchange_entries(
                [one for one in dialogue.exchanges if one.client == client]
            )
    return entries


_SINGLE = {"list": "list", "save": "save", "control-mode": "mode"}


def _exchange_entries(exchanges: "list[Exchange]") -> list[TimelineEntry]:
    """Return the entries of one client's requests: done, refused and unanswered."""
    from rote import messages as m  # noqa: PLC0415 - only if there are such frames

    entries: list[TimelineEntry] = []
    taught, recorded = _CommandSpan("teach"), _CommandSpan("record")
    ending, beginning = _ending_commands(m), (m.EnterTeaching, m.Record)
    for one in exchanges:
        if not one.accepted:
            entries.append(_unaccepted_entry(one))
            continue
        request, at = one.request, one.time_ns
        ends = isinstance(request, ending)
        if not ends and one.layout not in _SINGLE and not isinstance(request, beginning):
            continue  # by far the most: they only keep something alive
        sure = _SURE if one.code is not None else _LIKELY
        evidence = f"{_describe_frame(one)}, checksum valid: {one.outcome}"
        if isinstance(request, m.EnterTeaching):
            taught.begin(at, sure, evidence)
        elif isinstance(request, m.Record):
            if request.on:
                recorded.begin(at, sure, evidence)
            else:
                entries += recorded.end(at, "the recording was stopped")
        elif kind := _moment_kind(one, m):
            entries.append(TimelineEntry(kind, at, None, sure, evidence))
        if ends:
            entries += recorded.end(at, f"ended by: {one.request_text}")
            entries += taught.end(at, f"ended by: {one.request_text}")
    return (
        entries
        + recorded.end(None, "its end was not seen")
        + taught.end(None, "the exit was not seen")
    )


def _moment_kind(one: "Exchange", m: Any) -> str:
    """Return the kind of entry for a request that happens at one moment; empty for others."""
    if isinstance(one.request, m.StopMotion):
        return "stop"
    if isinstance(one.request, m.PlayAction):
        return "play"
    control = isinstance(one.request, m.TakeControl | m.ReleaseControl)
    return "" if control else _SINGLE.get(one.layout, "")


def _unaccepted_entry(one: "Exchange") -> TimelineEntry:
    kind = "refused" if one.refused else "unanswered"
    evidence = f"{_describe_frame(one)}: {one.outcome}"
    return TimelineEntry(kind, one.time_ns, one.answered_ns, _SURE, evidence)


def _ending_commands(m: Any) -> tuple[type, ...]:
    """Return the commands after which the arms are no longer soft."""
    return (m.ExitTeaching, m.StopMotion, m.PlayAction, m.TakeControl, m.ReleaseControl)


def _describe_frame(one: "Exchange") -> str:
    again = f", sent {one.sent} times" if one.sent > 1 else ""
    return f"{one.request_text} (0x{one.command:02x}{again})"


class _CommandSpan:
    """Something that begins with one command and ends with another."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._begun: tuple[int, float, str] | None = None

    def begin(self, at: int, sure: float, evidence: str) -> None:
        """Note the beginning, unless it is under way."""
        if self._begun is None:
            self._begun = at, sure, evidence

    def end(self, at: int | None, how: str) -> list[TimelineEntry]:
        """Return the span as one entry, if it had begun."""
        if self._begun is None:
            return []
        start, sure, evidence = self._begun
        self._begun = None
        return [TimelineEntry(self._kind, start, at, sure, f"{evidence}; {how}")]


def read_teaching(analysis: Analysis, found: list[Conversation]) -> "TeachingDialogue | None":
    """Return the dialogue in teaching frames; None if there are none."""
    if not analysis.commands and not analysis.poses:
        return None
    from rote.capture.decode.teaching_dialogue import (  # noqa: PLC0415 - slow to load
        SeenFrame,
        SeenSide,
        read_dialogue,
    )

    by_flow: dict[int, list[SeenFrame]] = {}
    for flow, time_ns, datagram in analysis.commands:
        by_flow.setdefault(flow, []).append(SeenFrame(time_ns, datagram))
    kept = analysis.frames.columns()
    reporting = set() if kept is None else set(kept[0][kept[2] == _STATE].tolist())
    conversations = [
        [
            SeenSide(
                side.source,
                by_flow.get(side.number, []),
                side.number in reporting,
                analysis.poses.get(side.number, 0),
            )
            for side in one.sides
        ]
        for one in found
        if PacketKind.TEACHING in one.kinds
    ]
    return read_dialogue(conversations)


_STATE = 0x81
"""`teaching.MessageType.STATE`; that module takes longer to load than a small capture to read."""
