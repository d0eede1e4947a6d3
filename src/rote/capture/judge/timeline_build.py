"""The time line of a whole capture: connections from sizes and times, teaching frames in full."""

from typing import TYPE_CHECKING, Any

from rote.capture.decode.packet_facts import HttpNote
from rote.capture.judge.analysis import Analysis
from rote.capture.judge.conversations import Conversation
from rote.capture.judge.timeline import SentRecords, propose_entries
from rote.capture.model import PacketKind, TimelineEntry

if TYPE_CHECKING:
    from rote.capture.decode.teaching_dialogue import Exchange, TeachingDialogue

_MAX_CONNECTIONS = 64
"""Maximum number of encrypted connections from which entries are inferred."""
_MAX_ENTRIES = 2000
_CERTAIN = 0.99
"""Confidence in what a checksum proves."""
_LIKELY = 0.8
"""Confidence in what the size of an encrypted body suggests."""
_SHORTEST_ANSWER = 400
"""An encrypted answer with a session description has at least this many bytes, an encrypted
rejection fewer."""
_SIGNALLING_PATHS = ("/con_notify", "/con_ing", "/offer")


def build_timeline(
    analysis: Analysis,
    conversations: list[Conversation],
    dialogue: "TeachingDialogue | None" = None,
) -> list[TimelineEntry]:
    """Return what probably happened in a capture, in order of time."""
    entries: list[TimelineEntry] = []
    encrypted = [
        conversation for conversation in conversations if PacketKind.DTLS in conversation.kinds
    ]
    encrypted.sort(key=lambda conversation: -conversation.packets)
    for conversation in encrypted[:_MAX_CONNECTIONS]:
        entries += _make_connection_entries(analysis, conversation)
    for conversation in conversations:
        entries += _make_signalling_entries(conversation)
    entries += _make_frame_entries(analysis, dialogue)
    entries.sort(key=lambda entry: (entry.start_ns, entry.kind))
    return entries[:_MAX_ENTRIES]


def _make_connection_entries(analysis: Analysis, conversation: Conversation) -> list[TimelineEntry]:
    """Return the entries that the sizes and times of one connection's records suggest."""
    client = conversation.client()
    others = [side for side in conversation.sides if side is not client]
    by_client = SentRecords(*analysis.get_records(client.number))
    by_robot = SentRecords(*analysis.get_records(others[0].number)) if others else None
    connected = _make_connect_entry(conversation)
    return propose_entries((by_client, by_robot), conversation.cipher, connected)


def _make_connect_entry(conversation: Conversation) -> TimelineEntry:
    """Return the entry for the period in which a connection was up."""
    messages = [message for side in conversation.sides for message in side.facts.messages]
    if "client hello" in messages or "server hello" in messages:
        evidence = (
            f"a {conversation.name} connection with its handshake: {', '.join(messages[:12])}"
        )
        return TimelineEntry("connect", conversation.first_ns, conversation.last_ns, 0.95, evidence)
    numbers = [
        track.lowest for side in conversation.sides for track in side.tracks if track.epoch > 0
    ]
    evidence = "encrypted records without a handshake: it was up before the capture began"
    if numbers:
        evidence += f", and {min(numbers):,} records had been sent"
    return TimelineEntry("connect", conversation.first_ns, conversation.last_ns, 0.9, evidence)


def _make_signalling_entries(conversation: Conversation) -> list[TimelineEntry]:
    """Return an entry for each connection offer in plain HTTP, with its answer."""
    notes = sorted(
        (note, index) for index, side in enumerate(conversation.sides) for note in side.facts.http
    )
    entries: list[TimelineEntry] = []
    for index, (offer, side) in enumerate(notes):
        if not any(path in offer.line for path in _SIGNALLING_PATHS):
            continue
        # The answer is the other side's next response, unless another request comes first.
        responses = (
            note for note, which in notes[index + 1 :] if which != side or " HTTP/" in note.line
        )
        answer = next(responses, None)
        if answer is not None and not answer.line.startswith("HTTP/"):
            answer = None
        outcome, confidence = _judge_offer(offer, answer)
        end_ns = None if answer is None else answer.time_ns
        evidence = f"HTTP in the clear: {offer.line}; {outcome}"
        entries.append(TimelineEntry("signal", offer.time_ns, end_ns, confidence, evidence))
    return entries


def _judge_offer(offer: HttpNote, answer: HttpNote | None) -> tuple[str, float]:
    """Return the result of an offer, and the confidence in it."""
    if answer is None:
        return "no answer in this capture: it timed out, or the answer was not captured", _CERTAIN
    wait = f"after {(answer.time_ns - offer.time_ns) / 1e6:.0f} ms"
    if answer.line.split(" ", 2)[1:2] != ["200"]:
        return f"refused {wait} with {answer.line}", _CERTAIN
    if "/con_notify" in offer.line:
        return f"answered {wait}: the robot sent its key", _CERTAIN
    size = f"{answer.body_bytes:,} bytes"
    if answer.body.lstrip().startswith(b"{"):  # not encrypted
        rejected = b'"reject"' in answer.body
        outcome = (
            f"rejected {wait}: the robot has another client" if rejected else f"accepted {wait}"
        )
        return outcome, _CERTAIN
    if answer.body_bytes < _SHORTEST_ANSWER:
        return f"rejected {wait}: {size} are too few for a sealed answer", _LIKELY
    return f"accepted {wait}: {size}, as many as a sealed answer has", _LIKELY


def _make_frame_entries(
    analysis: Analysis, dialogue: "TeachingDialogue | None"
) -> list[TimelineEntry]:
    """Return the entries for documented teaching frames, which are not encrypted."""
    columns = analysis.frames.columns()
    if columns is None:
        return []
    time_ns = columns[1]
    evidence = f"{time_ns.size:,} documented teaching frames with valid checksums"
    first_ns, last_ns = int(time_ns.min()), int(time_ns.max())
    entries = [TimelineEntry("connect", first_ns, last_ns, _CERTAIN, evidence)]
    if dialogue is not None:
        for client in dict.fromkeys(exchange.client for exchange in dialogue.exchanges):
            entries += _make_exchange_entries(
                [exchange for exchange in dialogue.exchanges if exchange.client == client]
            )
    return entries


_KIND_BY_LAYOUT = {"list": "list", "save": "save", "control-mode": "mode"}


def _make_exchange_entries(exchanges: "list[Exchange]") -> list[TimelineEntry]:
    """Return the entries of one client's requests: done, refused and unanswered."""
    from rote import messages as m  # noqa: PLC0415 - only if there are such frames

    entries: list[TimelineEntry] = []
    taught, recorded = _CommandSpan("teach"), _CommandSpan("record")
    # After these commands the arms are no longer soft, so nothing is taught or recorded.
    ending = (m.ExitTeaching, m.StopMotion, m.PlayAction, m.TakeControl, m.ReleaseControl)
    for exchange in exchanges:
        if not exchange.accepted:
            entries.append(_make_unaccepted_entry(exchange))
            continue
        request, time_ns = exchange.request, exchange.time_ns
        gets_entry = isinstance(request, (*ending, m.EnterTeaching, m.Record))
        if not gets_entry and exchange.layout not in _KIND_BY_LAYOUT:
            continue  # most requests: keep-alives
        confidence = _CERTAIN if exchange.code is not None else _LIKELY
        evidence = f"{_describe_request(exchange)}, checksum valid: {exchange.outcome}"
        if isinstance(request, m.EnterTeaching):
            taught.begin(time_ns, confidence, evidence)
        elif isinstance(request, m.Record):
            if request.on:
                recorded.begin(time_ns, confidence, evidence)
            else:
                entries += recorded.end(time_ns, "the recording was stopped")
        elif kind := _find_moment_kind(exchange, m):
            entries.append(TimelineEntry(kind, time_ns, None, confidence, evidence))
        if isinstance(request, ending):
            entries += recorded.end(time_ns, f"ended by: {exchange.request_text}")
            entries += taught.end(time_ns, f"ended by: {exchange.request_text}")
    return (
        entries
        + recorded.end(None, "its end was not seen")
        + taught.end(None, "the exit was not seen")
    )


def _find_moment_kind(exchange: "Exchange", m: Any) -> str:
    """Return the kind of entry for a request that happens at one moment; empty for others.

    `m` is the module `rote.messages`, which only the caller loads.
    """
    if isinstance(exchange.request, m.StopMotion):
        return "stop"
    if isinstance(exchange.request, m.PlayAction):
        return "play"
    if isinstance(exchange.request, m.TakeControl | m.ReleaseControl):
        return ""  # their layout is that of a change of mode
    return _KIND_BY_LAYOUT.get(exchange.layout, "")


def _make_unaccepted_entry(exchange: "Exchange") -> TimelineEntry:
    kind = "refused" if exchange.refused else "unanswered"
    evidence = f"{_describe_request(exchange)}: {exchange.outcome}"
    return TimelineEntry(kind, exchange.time_ns, exchange.answered_ns, _CERTAIN, evidence)


def _describe_request(exchange: "Exchange") -> str:
    again = f", sent {exchange.sent} times" if exchange.sent > 1 else ""
    return f"{exchange.request_text} (0x{exchange.command:02x}{again})"


class _CommandSpan:
    """A teaching session or recording, which one command begins and another ends."""

    def __init__(self, kind: str) -> None:
        self._kind = kind
        self._begun: tuple[int, float, str] | None = None
        """Time, confidence and evidence of the beginning; None before it."""

    def begin(self, time_ns: int, confidence: float, evidence: str) -> None:
        """Begin the span, unless it has begun."""
        if self._begun is None:
            self._begun = time_ns, confidence, evidence

    def end(self, time_ns: int | None, how: str) -> list[TimelineEntry]:
        """End the span, and return it as one entry; no entry if it has not begun.

        `time_ns` is None if the end was not captured.
        """
        if self._begun is None:
            return []
        start, confidence, evidence = self._begun
        self._begun = None
        return [TimelineEntry(self._kind, start, time_ns, confidence, f"{evidence}; {how}")]


def read_teaching(
    analysis: Analysis, conversations: list[Conversation]
) -> "TeachingDialogue | None":
    """Return the teaching frames of all conversations as requests and replies.

    None if the capture has neither teaching commands nor poses.
    """
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
    reporting: set[int] = set()  # the directions with state frames
    if (columns := analysis.frames.columns()) is not None:
        flows, _, kinds, *_ = columns
        reporting = set(flows[kinds == _STATE].tolist())
    conversation_sides: list[list[SeenSide]] = []
    for conversation in conversations:
        if PacketKind.TEACHING in conversation.kinds:
            sides = [
                SeenSide(
                    source=side.source,
                    frames=by_flow.get(side.number, []),
                    reports=side.number in reporting,
                    poses=analysis.poses.get(side.number, 0),
                )
                for side in conversation.sides
            ]
            conversation_sides.append(sides)
    return read_dialogue(conversation_sides)


_STATE = 0x81
"""`teaching.MessageType.STATE`; that module takes longer to load than a small capture to read."""
