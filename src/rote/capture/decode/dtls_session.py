"""One DTLS session of a capture and its messages: from decrypted records to messages."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote.capture.decode.association import Association, Delivered
from rote.capture.decode.dialogue import Dialogue, from_robot
from rote.errors import DecodeError
from rote.wire.packets import dtls, sctp
from rote.wire.packets.dtls import ContentType, DtlsRecord
from rote.wire.packets.dtls_handshake import ClientHello, ServerHello
from rote.wire.webrtc import channel

MAX_KEPT = 128 * 2**20
"""The most text that is kept, in bytes."""

_MAX_RECENT = 4096
Endpoint = tuple[str, int]


class DecryptionProblem(NamedTuple):
    """Something that cannot be read, and why."""

    kind: str
    message: str

    def document(self) -> dict[str, str]:
        """Return what `--json` shows."""
        return {"kind": self.kind, "message": self.message}


@dataclass(slots=True)
class DtlsSession:
    """One DTLS session."""

    client: Endpoint
    """The DTLS client; which side is the robot is a separate question."""
    server: Endpoint
    hello: ClientHello
    began_ns: int
    ended_ns: int
    answer: ServerHello | None = None
    fingerprints: dict[bool, str] = field(default_factory=dict)
    """Of the certificates of the client (True) and the server."""
    opened: int = 0
    unopened: int = 0
    repeated: int = 0
    closed: bool = False
    channels: list[str] = field(default_factory=list)
    robot: Endpoint | None = None
    """The side that behaved like a robot."""
    keys: list[Any] = field(default_factory=list, repr=False)
    """The keys of the server and the client, if the key log has them."""
    pieces: tuple[dtls.HandshakeAssembler, dtls.HandshakeAssembler] = field(
        repr=False, default_factory=lambda: (dtls.HandshakeAssembler(), dtls.HandshakeAssembler())
    )
    pending: list[tuple[int, bool, DtlsRecord]] = field(default_factory=list, repr=False)
    recent: dict[tuple[bool, int], None] = field(default_factory=dict, repr=False)
    """The latest records, to recognise a repeated one; see `is_new`."""

    def is_new(self, from_client: bool, sequence: int) -> bool:
        """Whether a record is no repetition of a recent one; remember it."""
        mark = (from_client, sequence)
        if mark in self.recent:
            return False
        self.recent[mark] = None
        if len(self.recent) > _MAX_RECENT:
            del self.recent[next(iter(self.recent))]
        return True

    @property
    def suite(self) -> str:
        """The cipher suite's name."""
        return dtls.suite_of(self.answer.cipher_suite).name if self.answer else ""

    @property
    def extended_master_secret(self) -> bool:
        """Whether both sides agreed to bind the master secret to the handshake."""
        return bool(self.answer and self.answer.extended_master_secret)


class OpenedRecord(NamedTuple):
    """The content of one record."""

    time_ns: int
    session: DtlsSession
    from_client: bool
    type: int
    plain: bytes


class CapturedMessage(NamedTuple):
    """One message of a data channel."""

    time_ns: int
    session: int
    """The index of the session, from 0."""
    source: Endpoint
    direction: str
    """`to robot` or `to client`; empty if the robot's side is not known."""
    stream: int
    text: str | bytes
    value: channel.Value | None = None
    """Its value; None if it cannot be read."""


class SessionReader:
    """Reads one session from its SCTP packets to its messages."""

    def __init__(self, session: DtlsSession) -> None:
        self.session = session
        self.association = Association()
        self.dialogue = Dialogue(began_ns=session.began_ns)
        self.messages: list[tuple[Delivered, str | bytes, channel.Value | None]] = []
        self.dropped = 0
        self._kept = 0
        self._robot: bool | None = None

    def receive(self, opened: OpenedRecord) -> None:
        """Process the content of a record."""
        if opened.type == ContentType.APPLICATION_DATA:
            for one in self.association.receive(opened.time_ns, opened.from_client, opened.plain):
                self._add_delivered(one)

    def end(self) -> None:
        """Deliver what still waits, then process all messages in the order of their time."""
        for delivered in self.association.end():
            self._add_delivered(delivered)
        self.messages.sort(key=lambda message: message[0].time_ns)
        for one, _, value in self.messages:
            if value is not None:
                self.dialogue.add_message(one.time_ns, value)
        if self._robot is not None:
            ends = self.session.server, self.session.client
            self.session.robot = ends[self._robot]

    def captured_messages(self, index: int) -> Iterator[CapturedMessage]:
        """Yield the messages with their directions; call it after `end`."""
        ends = self.session.server, self.session.client
        for one, text, value in self.messages:
            receiver = "to client" if one.from_client == self._robot else "to robot"
            direction = receiver if self._robot is not None else ""
            source = ends[one.from_client]
            yield CapturedMessage(one.time_ns, index, source, direction, one.stream, text, value)

    def _add_delivered(self, one: Delivered) -> None:
        if one.protocol == sctp.Protocol.DCEP:
            self._open_channel(one)
            return
        text: str | bytes = one.payload
        if one.protocol == sctp.Protocol.TEXT:
            text = one.payload.decode(errors="replace")
        elif one.protocol != sctp.Protocol.BINARY:
            text = ""  # an empty message is sent as one byte
        try:
            value: channel.Value | None = channel.decode(text)
        except DecodeError:
            value = None
        if value is not None:
            by_robot = from_robot(value)
            if by_robot is not None:
                self._robot = one.from_client == by_robot
        self._kept += len(one.payload)
        if self._kept > MAX_KEPT:
            self.dropped += 1
        else:
            self.messages.append((one._replace(payload=b""), text, value))

    def _open_channel(self, one: Delivered) -> None:
        try:
            word = sctp.decode_dcep(one.payload)
        except DecodeError:
            return
        if isinstance(word, sctp.Open):
            self.session.channels.append(word.label)
            if self._robot is None:
                self._robot = not one.from_client


def unread_problems(readers: list[SessionReader]) -> Iterator[DecryptionProblem]:
    """Return what could not be read in the decrypted sessions."""
    for reader in readers:
        lost = sum(side.lost for side in reader.association.sides.values())
        unread = sum(value is None for _, _, value in reader.messages)
        counts = {
            "lost": (lost, "messages are not in the capture, or not whole"),
            "no-sctp": (reader.association.bad, "records hold something other than SCTP"),
            "no-message": (unread, "messages are not of a robot's data channel"),
            "parts": (reader.dialogue.undecodable, "answers in parts do not fit together"),
            "limit": (reader.dropped, f"messages beyond {MAX_KEPT >> 20} MB are not kept"),
        }
        for kind, (count, message) in counts.items():
            if count:
                yield DecryptionProblem(kind, f"{count} {message}")
