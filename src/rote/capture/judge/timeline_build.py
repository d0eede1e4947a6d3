"""The time line of a whole capture: connections from sizes and times, teaching frames in full."""

import numpy as np

from rote.capture.decode.packet_facts import HttpNote
from rote.capture.judge.analysis import Analysis
from rote.capture.judge.classify import PacketKind
from rote.capture.judge.conversations import Conversation, FlowSide
from rote.capture.judge.timeline import SentRecords, TimelineEntry, propose

_MAX_CONNECTIONS = 64
_MAX_ENTRIES = 2000
_SURE = 0.99
"""For what a checksum proves."""
_LIKELY = 0.8
"""For what the size of an encrypted body suggests."""
_SHORTEST_ANSWER = 400
"""An encrypted answer with a session description has more bytes, an encrypted rejection fewer."""
_SIGNALLING = ("/con_notify", "/con_ing", "/offer")


def build_timeline(analysis: Analysis, found: list[Conversation]) -> list[TimelineEntry]:
    """Return what probably happened, in order."""
    lines: list[TimelineEntry] = []
    encrypted = [one for one in found if PacketKind.DTLS in one.kinds]
    encrypted.sort(key=lambda one: -one.packets)
    for one in encrypted[:_MAX_CONNECTIONS]:
        lines += _connection(analysis, one)
    for one in found:
        lines += _signalling(one)
    lines += _frames(analysis)
    lines.sort(key=lambda entry: (entry.start_ns, entry.kind))
    return lines[:_MAX_ENTRIES]


def _connection(analysis: Analysis, one: Conversation) -> list[TimelineEntry]:
    client = one.client()
    others = [side for side in one.sides if side is not client]
    sides = _sent(analysis, client), _sent(analysis, others[0]) if others else None
    return propose(sides, one.cipher, _connected(one))


def _sent(analysis: Analysis, side: FlowSide) -> SentRecords:
    return SentRecords(*analysis.records_of(side.number))


def _connected(one: Conversation) -> TimelineEntry:
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


def _signalling(one: Conversation) -> list[TimelineEntry]:
    """Yield each offer in plain HTTP with its answer."""
    notes = sorted(
        (note, index) for index, side in enumerate(one.sides) for note in side.facts.http
    )
    found: list[TimelineEntry] = []
    for at, (asked, side) in enumerate(notes):
        if not any(path in asked.line for path in _SIGNALLING):
            continue
        # The answer is the next response of the other side, before this one asks again.
        behind = (note for note, which in notes[at + 1 :] if which != side or " HTTP/" in note.line)
        answer = next(behind, None)
        if answer is not None and not answer.line.startswith("HTTP/"):
            answer = None
        outcome, sure = _outcome(asked, answer)
        end_ns = None if answer is None else answer.time_ns
        evidence = f"HTTP in the clear: {asked.line}; {outcome}"
        found.append(TimelineEntry("signal", asked.time_ns, end_ns, sure, evidence))
    return found


def _outcome(asked: HttpNote, answer: HttpNote | None) -> tuple[str, float]:
    """Return the result of an offer, and how sure that is."""
    if answer is None:
        return "no answer in this capture: it timed out, or the answer was not captured", _SURE
    wait = f"after {(answer.time_ns - asked.time_ns) / 1e6:.0f} ms"
    if answer.line.split(" ", 2)[1:2] != ["200"]:
        return f"refused {wait} with {answer.line}", _SURE
    if "/con_notify" in asked.line:
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


def _frames(analysis: Analysis) -> list[TimelineEntry]:
    """Return the time line of documented teaching frames, which are not encrypted."""
    kept = analysis.frames.columns()
    if kept is None:
        return []
    flow, time_ns, kind, command = kept
    order = np.argsort(time_ns, kind="stable")
    ours = order[kind[order] == _COMMAND]
    entries: list[TimelineEntry] = []
    first = {"connect": time_ns[order[0]]}
    evidence = f"{flow.size:,} documented teaching frames with valid checksums"
    entries.append(
        TimelineEntry("connect", int(first["connect"]), int(time_ns[order[-1]]), _SURE, evidence)
    )
    entries += _teaching(time_ns[ours], command[ours])
    last: dict[int, int] = {}
    for index in ours.tolist():
        name = _SINGLE.get(int(command[index]))
        at = int(time_ns[index])
        # A reply repeats the command of its request, so one within a second is the answer.
        if name and at - last.get(int(command[index]), -(10**10)) > 10**9:
            evidence = f"the documented command 0x{int(command[index]):02x}, checksum valid"
            entries.append(TimelineEntry(name, at, None, _SURE, evidence))
            last[int(command[index])] = at
    return entries


_COMMAND = 0x17
"""`teaching.MessageType.COMMAND`; importing that module takes longer than reading a small
capture.
"""
_ENTER, _EXIT = 0x0D, 0x0E
_SINGLE = {0x1A: "list", 0x2B: "save", 0x41: "play"}


def _teaching(time_ns: np.ndarray, command: np.ndarray) -> list[TimelineEntry]:
    entries: list[TimelineEntry] = []
    begun: int | None = None
    evidence = "enter teaching (0x0d) and its keep-alives, up to exit (0x0e), checksums valid"
    for at, what in zip(time_ns.tolist(), command.tolist(), strict=True):
        if what == _ENTER and begun is None:
            begun = at
        elif what == _EXIT and begun is not None:
            entries.append(TimelineEntry("teach", begun, at, _SURE, evidence))
            begun = None
    if begun is not None:
        entries.append(
            TimelineEntry("teach", begun, None, _SURE, evidence + "; the exit was not seen")
        )
    return entries
