"""Facts from single packets: the first few of each kind and flow are read."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rote.capture.decode.dtls_numbering import HANDSHAKE, RecordRows
from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import Numbers, by_number, run_starts
from rote.capture.read.packets import DatagramBatch, big, harmless
from rote.errors import DecodeError
from rote.wire.packets import dtls, stun
from rote.wire.packets import dtls_handshake as hs

_MAX_READ_PER_FLOW = 16
"""Maximum number of packets read per kind and flow; the others are only counted."""
_MAX_READ = 256
"""Maximum number of packets read per kind in all flows together."""
_MAX_FACTS = 4096
"""Maximum number of flows for which facts are kept."""
_MAX_HANDSHAKE = 512
"""Maximum number of handshake records read per flow."""
_HANDSHAKE_RECORD = -1
"""Handshake records are counted apart from packets, whose kinds are not negative."""
_MAX_BODY, _MAX_TRANSACTIONS = 4096, 4096
_CONTENT_LENGTH = re.compile(rb"(?im)^content-length: *(\d{1,9})\r?$")
_TRANSACTION = slice(8, 20)
_MAX_NOTES = 32


class HttpNote(NamedTuple):
    """The start of a request or a response."""

    time_ns: int
    line: str
    body_bytes: int
    """As the header states it, otherwise what the segment holds."""
    body: bytes
    """As far as it is in the same segment."""


@dataclass(slots=True)
class FlowFacts:
    """What the packets of one direction contain."""

    stun: Counter[str] = field(default_factory=Counter)
    users: set[str] = field(default_factory=set)
    controlling: set[bool] = field(default_factory=set)
    mapped: set[str] = field(default_factory=set)
    records: Counter[int] = field(default_factory=Counter)
    """DTLS records by content type."""
    versions: set[int] = field(default_factory=set)
    suite: int | None = None
    offered: tuple[int, ...] = ()
    fingerprint: str = ""
    srtp_profiles: tuple[int, ...] = ()
    messages: list[str] = field(default_factory=list)
    """Handshake messages, in their order."""
    resent: int = 0
    """Handshake messages that were sent again."""
    notes: set[str] = field(default_factory=set)
    """Names asked for, lines of HTTP, dialects."""
    http: list[HttpNote] = field(default_factory=list)
    """The first lines of HTTP, in their order."""
    asked: set[bytes] = field(default_factory=set)
    """Transactions of STUN requests in this direction..."""
    answered: set[bytes] = field(default_factory=set)
    """...and of answers."""
    assembler: dtls.HandshakeAssembler | None = None
    _seen: set[tuple[int, int, int]] = field(default_factory=set)
    _read: dict[int, int] = field(default_factory=dict)

    def reserve_read(self, kind: int, most: int = _MAX_READ_PER_FLOW) -> bool:
        """Count a packet of a kind; return whether it is among the first `most`, which are read."""
        count = self._read[kind] = self._read.get(kind, 0) + 1
        return count <= most

    def is_resent(self, piece: dtls.Fragment) -> bool:
        """Whether the same piece of a handshake was sent before."""
        key = piece.type, piece.message, piece.offset
        if key in self._seen:
            return True
        self._seen.add(key)
        return False


class PacketFacts:
    """FlowFacts of all directions that have any."""

    def __init__(self) -> None:
        self.facts: dict[int, FlowFacts] = {}
        self._read: Counter[PacketKind] = Counter()

    def of(self, flow: int) -> FlowFacts | None:
        """Return the facts of a direction; new ones only up to the limit."""
        facts = self.facts.get(flow)
        if facts is None and len(self.facts) < _MAX_FACTS:
            facts = self.facts[flow] = FlowFacts()
        return facts

    def add_batch(
        self, flow: Numbers, batch: DatagramBatch, kinds: PacketKinds, records: RecordRows
    ) -> None:
        """Count the packets of a batch, and read the first few of each kind and flow.

        `flow` has the direction of each datagram, `kinds` its kind; `records` are the DTLS records.
        """
        self._count_stun(flow, batch, kinds)
        self._count_records(flow, records)
        for kind, read in _READERS.items():
            if self._read[kind] >= _MAX_READ:
                continue
            for index in self._select_readable(flow, np.flatnonzero(kinds == kind), kind):
                facts = self.facts[int(flow[index])]
                try:
                    read(facts, batch.payload(index))
                    if kind is PacketKind.HTTP:
                        _read_http(facts, int(batch.time_ns[index]), batch.payload(index))
                except DecodeError:
                    continue
        self._read_handshakes(flow, batch, records)

    def _read_handshakes(self, flow: Numbers, batch: DatagramBatch, records: RecordRows) -> None:
        """Read the handshake records that are not encrypted: those of epoch 0."""
        for row in np.flatnonzero((records.type == HANDSHAKE) & (records.epoch == 0)).tolist():
            facts = self.of(int(flow[records.datagram[row]]))
            if facts is not None and facts.reserve_read(_HANDSHAKE_RECORD, _MAX_HANDSHAKE):
                at, length = int(records.at[row]), int(records.length[row])
                _read_handshake(facts, batch.data[at : at + length].tobytes())

    def _select_readable(self, flow: Numbers, which: np.ndarray, kind: PacketKind) -> Iterable[int]:
        """Yield the first few of each flow, without looking at the many others."""
        if which.size > _MAX_READ_PER_FLOW:
            order = by_number(flow[which])
            sorted_flow = flow[which][order]
            starts = run_starts(sorted_flow)
            counts = np.diff(np.append(starts, which.size))
            rank = np.arange(which.size) - np.repeat(starts, counts)
            which = which[order[rank < _MAX_READ_PER_FLOW]]
        for index in which.tolist():
            facts = self.of(int(flow[index]))
            if facts is not None and facts.reserve_read(kind):
                self._read[kind] += 1
                yield index

    def _count_stun(self, flow: Numbers, batch: DatagramBatch, kinds: PacketKinds) -> None:
        which = np.flatnonzero(kinds == PacketKind.STUN)
        if not which.size:
            return
        pairs, counts = np.unique(
            flow[which] << 16 | big(batch.heads[which], 0), return_counts=True
        )
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            facts = self.of(pair >> 16)
            if facts is not None:
                facts.stun[_stun_label(pair & 0xFFFF)] += count

        answers = (big(batch.heads[which], 0) & 0x0100).astype(np.bool_).tolist()
        numbers = np.ascontiguousarray(batch.heads[which, _TRANSACTION]).view("V12").ravel()
        flows = flow[which].tolist()
        for flow_id, answer, number in zip(flows, answers, numbers.tolist(), strict=True):
            facts = self.facts.get(flow_id)
            if facts is not None:
                seen = facts.answered if answer else facts.asked
                if len(seen) < _MAX_TRANSACTIONS:
                    seen.add(number)

    def _count_records(self, flow: Numbers, records: RecordRows) -> None:
        if not records.datagram.size:
            return
        older = records.version == dtls.Version.DTLS_1_0
        counts = np.bincount(flow[records.datagram] << 4 | records.type - 20 << 1 | older)
        for which in np.flatnonzero(counts).tolist():
            facts = self.of(which >> 4)
            if facts is not None:
                facts.records[20 + (which >> 1 & 7)] += int(counts[which])
                version = dtls.Version.DTLS_1_0 if which & 1 else dtls.Version.DTLS_1_2
                facts.versions.add(version.value)


def _stun_label(kind: int) -> str:
    class_ = kind >> 7 & 2 | kind >> 4 & 1
    method = kind & 0xF | kind >> 1 & 0x70 | kind >> 2 & 0xF80
    return stun.StunMessage(class_, bytes(12), (), method).label


def _read_stun(facts: FlowFacts, payload: bytes) -> None:
    message = stun.decode(payload)
    if message.username and len(facts.users) < _MAX_NOTES:
        facts.users.add(harmless(message.username))
    if message.controlling is not None:
        facts.controlling.add(message.controlling)
    if message.mapped is not None and len(facts.mapped) < _MAX_NOTES:
        host, port = message.mapped
        facts.mapped.add(f"{host}:{port}" if ":" not in host else f"[{host}]:{port}")


def _read_handshake(facts: FlowFacts, content: bytes) -> None:
    """Process a record of an unencrypted handshake; damaged ones are ignored."""
    try:
        for piece in dtls.decode_fragments(content):
            if facts.is_resent(piece):
                facts.resent += 1
                continue
            if facts.assembler is None:
                facts.assembler = dtls.HandshakeAssembler()
            message = facts.assembler.add(piece)
            if message is not None:
                _read_message(facts, message)
    except DecodeError:
        return


def _read_message(facts: FlowFacts, message: dtls.Handshake) -> None:
    known = message.type in set(dtls.HandshakeType)
    label = dtls.HandshakeType(message.type).name if known else f"type {message.type}"
    if len(facts.messages) < _MAX_NOTES:
        facts.messages.append(label.lower().replace("_", " "))
    said = hs.decode_handshake(message)
    if isinstance(said, hs.ClientHello):
        facts.offered = said.cipher_suites
    elif isinstance(said, hs.ServerHello):
        facts.suite = said.cipher_suite
        facts.srtp_profiles = said.srtp_profiles
    elif isinstance(said, hs.Certificate):
        facts.fingerprint = said.fingerprint
    if isinstance(said, hs.Hello):
        facts.versions.update(said.versions)


def _add_note(facts: FlowFacts, note: str) -> None:
    if note and len(facts.notes) < _MAX_NOTES:
        facts.notes.add(harmless(note))


def _read_name(facts: FlowFacts, payload: bytes) -> None:
    labels: list[str] = []
    at = 12
    while at < len(payload) and 0 < payload[at] < 64 and len(labels) < 64:
        labels.append(payload[at + 1 : at + 1 + payload[at]].decode(errors="replace"))
        at += 1 + payload[at]
    _add_note(facts, ".".join(labels)[:255])


def _read_line(facts: FlowFacts, payload: bytes) -> None:
    line = payload.split(b"\r\n", 1)[0][:120].decode(errors="replace")
    _add_note(facts, line)


def _read_http(facts: FlowFacts, time_ns: int, payload: bytes) -> None:
    """Note when a request or a response came, and the length of its body."""
    head, _, body = payload.partition(b"\r\n\r\n")
    line = harmless(head.split(b"\r\n", 1)[0][:120].decode(errors="replace"))
    stated = _CONTENT_LENGTH.search(head)
    size = int(stated[1]) if stated else len(body)
    if len(facts.http) < _MAX_READ_PER_FLOW:
        facts.http.append(HttpNote(time_ns, line, size, body[:_MAX_BODY]))


def _read_hello(facts: FlowFacts, payload: bytes) -> None:
    """Note the server name in a TLS client hello."""
    if payload[:1] != b"\x16" or payload[5:6] != b"\1":
        return
    name = server_name(payload[9:])
    _add_note(facts, f"server name {name}" if name else "")


def server_name(hello: bytes) -> str:
    """Return the server name in the body of a client hello; empty without one."""
    try:
        at = 35 + hello[34]
        at += 2 + int.from_bytes(hello[at : at + 2])
        at += 3 + hello[at]
        while at + 4 <= len(hello):
            kind, size = int.from_bytes(hello[at : at + 2]), int.from_bytes(hello[at + 2 : at + 4])
            if kind == 0:
                return hello[at + 9 : at + 4 + size].decode("ascii", errors="replace")
            at += 4 + size
    except IndexError:
        pass
    return ""


def _read_dns(facts: FlowFacts, payload: bytes) -> None:
    """Note the first name of a message; in TCP it follows a length."""
    behind = int.from_bytes(payload[:2]) + 2 == len(payload)
    _read_name(facts, payload[2:] if behind else payload)


def _read_a1(facts: FlowFacts, payload: bytes) -> None:
    from rote.wire.a1 import codec as a1  # noqa: PLC0415 - rare, and slow to load

    frame = a1.inspect(payload)
    dialects = " or ".join(dialect.value for dialect in frame.dialects)
    _add_note(facts, f"{frame.kind.value}, dialect {dialects}")


_READERS = {
    PacketKind.STUN: _read_stun,
    PacketKind.DNS: _read_dns,
    PacketKind.TLS: _read_hello,
    PacketKind.SSDP: _read_line,
    PacketKind.MDNS: _read_name,
    PacketKind.HTTP: _read_line,
    PacketKind.A1: _read_a1,
}
