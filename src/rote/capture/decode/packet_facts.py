"""Facts from single packets: the first few of each kind and flow are read."""

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from rote.capture.decode.dtls_numbering import HANDSHAKE, FollowedNumbers, RecordRows
from rote.capture.model import PacketKind, PacketKinds
from rote.capture.read.flow_ids import Interner, Numbers, distinct, find_run_starts, stable_order
from rote.capture.read.packets import DatagramBatch, big_endian, replace_unprintable
from rote.errors import DecodeError
from rote.wire.packets import dtls, stun
from rote.wire.packets import dtls_handshake as hs

_MAX_STREAMS = 4096
_SMALL_STEP = 64
_MIN_MEDIA_PACKETS, _MIN_SMALL_SHARE = 3, 0.8
"""Minimum number of packets of a media stream, and minimum share of its steps that are small."""


class MediaStream(NamedTuple):
    """RTP packets of one source in one direction."""

    flow: int
    source: int
    """The number with which RTP identifies it."""
    packets: int
    lost: int
    payload_types: tuple[int, ...]
    believed: bool
    """Whether its sequence numbers continue, as only those of real media do."""


class MediaStreams:
    """Follows the sequence numbers of all RTP streams, in bounded memory."""

    def __init__(self) -> None:
        self._keys = Interner(_MAX_STREAMS)
        self._followed = FollowedNumbers()
        size = _MAX_STREAMS + 1
        self._count = np.zeros(size, np.int64)
        self._travelled = np.zeros(size, np.int64)
        """By stream: the sum of the steps of its sequence number."""
        self._small = np.zeros(size, np.int64)
        """By stream: the number of small steps."""
        self._types: dict[int, set[int]] = {}
        """By stream: its payload types."""

    def add(self, flow: np.ndarray, batch: DatagramBatch, kinds: np.ndarray) -> None:
        """Process the media in a batch; `flow` and `kinds` are those of each datagram."""
        selected = np.flatnonzero(kinds == PacketKind.RTP)
        if not selected.size:
            return
        heads = batch.heads[selected]
        source = big_endian(heads, 8, 4).astype(np.uint64)
        numbers = self._keys.numbers(flow[selected].astype(np.uint64), source)
        # A payload type has 7 bits; joined with the stream's number, both are compared at once.
        for pair in distinct(numbers << 7 | (heads[:, 1] & 0x7F)).tolist():
            self._types.setdefault(pair >> 7, set()).add(pair & 0x7F)
        stream, _, step, is_first, _ = self._followed.follow(numbers, big_endian(heads, 2))
        # Sequence numbers have 16 bits and wrap.
        step = (step + 0x8000 & 0xFFFF) - 0x8000
        size = self._count.size
        self._count += np.bincount(stream, minlength=size)
        self._travelled += np.bincount(stream, step, minlength=size).astype(np.int64)
        is_small_step = (np.abs(step) <= _SMALL_STEP) & ~is_first
        self._small += np.bincount(stream[is_small_step], minlength=size)

    def streams(self) -> list[MediaStream]:
        """Return all candidate streams; those not `believed` are other traffic."""
        all_streams = []
        for number, (flow, source) in enumerate(self._keys.keys):
            count = int(self._count[number])
            lost = max(0, int(self._travelled[number]) + 1 - count)
            small_steps = int(self._small[number])
            believed = count >= _MIN_MEDIA_PACKETS and small_steps >= _MIN_SMALL_SHARE * (count - 1)
            types = tuple(sorted(self._types.get(number, ())))
            all_streams.append(MediaStream(flow, source, count, lost, types, believed))
        return all_streams


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
    """The start of an HTTP request or response."""

    time_ns: int
    line: str
    """Its first line."""
    body_bytes: int
    """The length of the body: as the header states it, otherwise as far as it was captured."""
    body: bytes
    """The beginning of the body, as far as it is in the same segment."""


@dataclass(slots=True)
class FlowFacts:
    """What the packets of one direction contain."""

    stun: Counter[str] = field(default_factory=Counter)
    """STUN messages by type."""
    users: set[str] = field(default_factory=set)
    """User names in STUN."""
    controlling: set[bool] = field(default_factory=set)
    """The roles in ICE that the sender had: True is the controlling side."""
    mapped: set[str] = field(default_factory=set)
    """Addresses and ports in STUN responses: where the sender saw the receiver."""
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
    """Requested names, first lines of HTTP, dialects of an A1."""
    http: list[HttpNote] = field(default_factory=list)
    """The first lines of HTTP, in their order."""
    stun_requests: set[bytes] = field(default_factory=set)
    """Transactions of STUN requests in this direction."""
    stun_responses: set[bytes] = field(default_factory=set)
    """Transactions of STUN responses in this direction."""
    assembler: dtls.HandshakeAssembler | None = None
    _seen: set[tuple[int, int, int]] = field(default_factory=set)
    _read: dict[int, int] = field(default_factory=dict)

    def reserve_read(self, kind: int, limit: int = _MAX_READ_PER_FLOW) -> bool:
        """Count a packet of a kind; return whether it is one of the first `limit`, to be read."""
        count = self._read[kind] = self._read.get(kind, 0) + 1
        return count <= limit

    def record_piece(self, piece: dtls.Fragment) -> bool:
        """Record a piece of a handshake; return False if it was sent before."""
        key = piece.type, piece.number, piece.offset
        if key in self._seen:
            return False
        self._seen.add(key)
        return True


class PacketFacts:
    """FlowFacts of all directions that have any."""

    def __init__(self) -> None:
        self.facts: dict[int, FlowFacts] = {}
        self._read: Counter[PacketKind] = Counter()

    def get_or_create(self, flow: int) -> FlowFacts | None:
        """Return the facts of a direction, new if it has none; None if there are too many."""
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
            facts = self.get_or_create(int(flow[records.datagram[row]]))
            if facts is not None and facts.reserve_read(_HANDSHAKE_RECORD, _MAX_HANDSHAKE):
                offset, length = int(records.at[row]), int(records.length[row])
                _read_handshake(facts, batch.data[offset : offset + length].tobytes())

    def _select_readable(self, flow: Numbers, which: np.ndarray, kind: PacketKind) -> Iterable[int]:
        """Yield the indices of the first few packets of each flow, within the limits."""
        if which.size > _MAX_READ_PER_FLOW:
            # Sorted by flow, the rank of a packet in its flow is the distance to the flow's start.
            order = stable_order(flow[which])
            starts = find_run_starts(flow[which][order])
            counts = np.diff(np.append(starts, which.size))
            rank = np.arange(which.size) - np.repeat(starts, counts)
            which = which[order[rank < _MAX_READ_PER_FLOW]]
        for index in which.tolist():
            facts = self.get_or_create(int(flow[index]))
            if facts is not None and facts.reserve_read(kind):
                self._read[kind] += 1
                yield index

    def _count_stun(self, flow: Numbers, batch: DatagramBatch, kinds: PacketKinds) -> None:
        """Count STUN messages by type, and collect the transactions of requests and responses."""
        selected = np.flatnonzero(kinds == PacketKind.STUN)
        if not selected.size:
            return
        message_type = big_endian(batch.heads[selected], 0)
        # A message type has 16 bits; joined with the flow's number, both are counted at once.
        pairs, counts = np.unique(flow[selected] << 16 | message_type, return_counts=True)
        for pair, count in zip(pairs.tolist(), counts.tolist(), strict=True):
            facts = self.get_or_create(pair >> 16)
            if facts is not None:
                facts.stun[_label_stun_type(pair & 0xFFFF)] += count

        is_response = (message_type & 0x0100).astype(np.bool_).tolist()
        numbers = np.ascontiguousarray(batch.heads[selected, _TRANSACTION]).view("V12").ravel()
        flows = flow[selected].tolist()
        for flow_id, responds, number in zip(flows, is_response, numbers.tolist(), strict=True):
            facts = self.facts.get(flow_id)
            if facts is not None:
                transactions = facts.stun_responses if responds else facts.stun_requests
                if len(transactions) < _MAX_TRANSACTIONS:
                    transactions.add(number)

    def _count_records(self, flow: Numbers, records: RecordRows) -> None:
        """Count DTLS records by direction, content type and version."""
        if not records.datagram.size:
            return
        # One number for all three: the version in bit 0, the type minus 20 in bits 1 to 3, the flow
        # above.
        is_older = records.version == dtls.Version.DTLS_1_0
        counts = np.bincount(flow[records.datagram] << 4 | records.type - 20 << 1 | is_older)
        for index in np.flatnonzero(counts).tolist():
            facts = self.get_or_create(index >> 4)
            if facts is not None:
                facts.records[20 + (index >> 1 & 7)] += int(counts[index])
                version = dtls.Version.DTLS_1_0 if index & 1 else dtls.Version.DTLS_1_2
                facts.versions.add(version.value)


def _label_stun_type(message_type: int) -> str:
    """Return a type of STUN message as text."""
    # The two bits of the class are at bits 4 and 8, between the bits of the method (RFC 8489).
    class_ = message_type >> 7 & 2 | message_type >> 4 & 1
    method = message_type & 0xF | message_type >> 1 & 0x70 | message_type >> 2 & 0xF80
    return stun.StunMessage(class_, bytes(12), (), method).label


def _read_stun(facts: FlowFacts, payload: bytes) -> None:
    """Record the user, the role and the mapped address in a STUN message."""
    message = stun.decode(payload)
    if message.username and len(facts.users) < _MAX_NOTES:
        facts.users.add(replace_unprintable(message.username))
    if message.controlling is not None:
        facts.controlling.add(message.controlling)
    if message.mapped is not None and len(facts.mapped) < _MAX_NOTES:
        host, port = message.mapped
        facts.mapped.add(f"{host}:{port}" if ":" not in host else f"[{host}]:{port}")


def _read_handshake(facts: FlowFacts, content: bytes) -> None:
    """Read an unencrypted handshake record, up to its end or its first damaged message."""
    try:
        for piece in dtls.decode_fragments(content):
            if not facts.record_piece(piece):
                facts.resent += 1
                continue
            if facts.assembler is None:
                facts.assembler = dtls.HandshakeAssembler()
            message = facts.assembler.add(piece)
            if message is not None:
                _read_handshake_message(facts, message)
    except DecodeError:
        return


def _read_handshake_message(facts: FlowFacts, message: dtls.Handshake) -> None:
    """Record what a complete handshake message reveals: suites, certificate, versions."""
    known = message.type in set(dtls.HandshakeType)
    label = dtls.HandshakeType(message.type).name if known else f"type {message.type}"
    if len(facts.messages) < _MAX_NOTES:
        facts.messages.append(label.lower().replace("_", " "))
    content = hs.decode_handshake(message)
    if isinstance(content, hs.ClientHello):
        facts.offered = content.cipher_suites
    elif isinstance(content, hs.ServerHello):
        facts.suite = content.cipher_suite
        facts.srtp_profiles = content.srtp_profiles
    elif isinstance(content, hs.Certificate):
        facts.fingerprint = content.fingerprint
    if isinstance(content, hs.Hello):
        facts.versions.update(content.versions)


def _add_note(facts: FlowFacts, note: str) -> None:
    if note and len(facts.notes) < _MAX_NOTES:
        facts.notes.add(replace_unprintable(note))


def _read_dns_name(facts: FlowFacts, payload: bytes) -> None:
    """Note the first name in a DNS message: labels after the header, each after its length."""
    labels: list[str] = []
    offset = 12
    while offset < len(payload) and 0 < payload[offset] < 64 and len(labels) < 64:
        labels.append(payload[offset + 1 : offset + 1 + payload[offset]].decode(errors="replace"))
        offset += 1 + payload[offset]
    _add_note(facts, ".".join(labels)[:255])


def _read_first_line(facts: FlowFacts, payload: bytes) -> None:
    """Note the first line of a text."""
    line = payload.split(b"\r\n", 1)[0][:120].decode(errors="replace")
    _add_note(facts, line)


def _read_http(facts: FlowFacts, time_ns: int, payload: bytes) -> None:
    """Record the time, first line and body length of a request or response."""
    head, _, body = payload.partition(b"\r\n\r\n")
    line = replace_unprintable(head.split(b"\r\n", 1)[0][:120].decode(errors="replace"))
    content_length = _CONTENT_LENGTH.search(head)
    size = int(content_length[1]) if content_length else len(body)
    if len(facts.http) < _MAX_READ_PER_FLOW:
        facts.http.append(HttpNote(time_ns, line, size, body[:_MAX_BODY]))


def _read_server_name(facts: FlowFacts, payload: bytes) -> None:
    """Note the server name in a TLS client hello."""
    is_handshake, is_client_hello = payload[:1] == b"\x16", payload[5:6] == b"\1"
    if not is_handshake or not is_client_hello:
        return
    name = find_server_name(payload[9:])  # after the headers of the record and the message
    _add_note(facts, f"server name {name}" if name else "")


def find_server_name(hello: bytes) -> str:
    """Return the server name in the body of a client hello; empty if it has none."""
    try:
        offset = 35 + hello[34]  # version (2 bytes), random (32), session id after its length
        offset += 2 + int.from_bytes(hello[offset : offset + 2])  # cipher suites
        offset += 1 + hello[offset] + 2  # compression methods; the length of all extensions
        while offset + 4 <= len(hello):
            kind = int.from_bytes(hello[offset : offset + 2])
            size = int.from_bytes(hello[offset + 2 : offset + 4])
            if kind == hs.ExtensionType.SERVER_NAME:
                # The name follows 5 bytes: length of the list, type of name, length of the name.
                return hello[offset + 9 : offset + 4 + size].decode("ascii", errors="replace")
            offset += 4 + size
    except IndexError:
        pass
    return ""


def _read_dns(facts: FlowFacts, payload: bytes) -> None:
    """Note the first name in a DNS message; in TCP a length precedes the message."""
    follows_length = int.from_bytes(payload[:2]) + 2 == len(payload)
    _read_dns_name(facts, payload[2:] if follows_length else payload)


def _read_a1(facts: FlowFacts, payload: bytes) -> None:
    """Note the kind and the dialect of a frame of an A1 or Go1."""
    from rote.wire.a1 import codec as a1  # noqa: PLC0415 - rare, and slow to load

    frame = a1.inspect(payload)
    dialects = " or ".join(dialect.value for dialect in frame.dialects)
    _add_note(facts, f"{frame.kind.value}, dialect {dialects}")


_READERS = {
    PacketKind.STUN: _read_stun,
    PacketKind.DNS: _read_dns,
    PacketKind.TLS: _read_server_name,
    PacketKind.SSDP: _read_first_line,
    PacketKind.MDNS: _read_dns_name,
    PacketKind.HTTP: _read_first_line,
    PacketKind.A1: _read_a1,
}
