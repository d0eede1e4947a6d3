"""One DTLS session of a capture: from its decrypted records to the messages in them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rote.capture.decode.association import Association, Delivered
from rote.capture.decode.dialogue import Dialogue, sender_is_robot
from rote.errors import DecodeError
from rote.wire.packets import dtls, sctp
from rote.wire.packets.dtls import ContentType, DtlsRecord
from rote.wire.packets.dtls_handshake import ClientHello, ServerHello
from rote.wire.webrtc import channel

MAX_KEPT = 128 * 2**20
"""Maximum size of all kept messages, in bytes."""

_MAX_RECENT = 4096
Endpoint = tuple[str, int]


class DecryptionProblem(NamedTuple):
    """Why something could not be decrypted or read."""

    kind: str
    """A short identifier, such as `no-key`."""
    message: str

    def document(self) -> dict[str, str]:
        """Return what `--json` shows."""
        return {"kind": self.kind, "message": self.message}


@dataclass(slots=True)
class DtlsSession:
    """One DTLS session of a capture, with what is needed to decrypt its records."""

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
    """Records that were decrypted."""
    unopened: int = 0
    """Records that could not be decrypted."""
    repeated: int = 0
    """Records that came again."""
    closed: bool = False
    """Whether one side announced the end."""
    channels: list[str] = field(default_factory=list)
    """Labels of its data channels."""
    robot: Endpoint | None = None
    """The side that behaved like a robot."""
    keys: list[Any] = field(default_factory=list, repr=False)
    """The keys of the server and the client, if the key log has them."""
    pieces: tuple[dtls.HandshakeAssembler, dtls.HandshakeAssembler] = field(
        repr=False, default_factory=lambda: (dtls.HandshakeAssembler(), dtls.HandshakeAssembler())
    )
    """Join the handshake messages of the server and the client."""
    pending: list[tuple[int, bool, DtlsRecord]] = field(default_factory=list, repr=False)
    """Records that wait for the keys: time, whether the client sent it, record."""
    recent: dict[tuple[bool, int], None] = field(default_factory=dict, repr=False)
    """The latest records, to recognise a repeated one; see `record_sequence`."""

    def record_sequence(self, from_client: bool, sequence: int) -> bool:
        """Record a sequence number; return False if it was seen recently."""
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
        return dtls.find_suite(self.answer.cipher_suite).name if self.answer else ""

    @property
    def extended_master_secret(self) -> bool:
        """Whether both sides agreed to bind the master secret to the handshake."""
        return bool(self.answer and self.answer.extended_master_secret)


class OpenedRecord(NamedTuple):
    """One decrypted record."""

    time_ns: int
    session: DtlsSession
    from_client: bool
    type: int
    """The content type."""
    plain: bytes
    """The decrypted content."""


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
    """The decoded message; None if it cannot be decoded."""


class SessionReader:
    """Reads one session from its SCTP packets to its messages."""

    def __init__(self, session: DtlsSession) -> None:
        self.session = session
        self.association = Association()
        self.dialogue = Dialogue(began_ns=session.began_ns)
        self.messages: list[tuple[Delivered, str | bytes, channel.Value | None]] = []
        """Each message as it was delivered, as text or bytes, and decoded."""
        self.dropped = 0
        """Messages beyond `MAX_KEPT`."""
        self._kept_bytes = 0
        self._robot_is_client: bool | None = None
        """Whether the robot is the DTLS client; None if that is not known."""

    def receive(self, opened: OpenedRecord) -> None:
        """Process the content of a record."""
        if opened.type == ContentType.APPLICATION_DATA:
            for delivered in self.association.receive(
                opened.time_ns, opened.from_client, opened.plain
            ):
                self._add_delivered(delivered)

    def end(self) -> None:
        """Deliver the waiting messages, then process all messages in the order of their time."""
        for delivered in self.association.end():
            self._add_delivered(delivered)
        self.messages.sort(key=lambda message: message[0].time_ns)
        for delivered, _, value in self.messages:
            if value is not None:
                self.dialogue.add_message(delivered.time_ns, value)
        if self._robot_is_client is not None:
            session = self.session
            session.robot = session.client if self._robot_is_client else session.server

    def captured_messages(self, index: int) -> Iterator[CapturedMessage]:
        """Yield the messages with their directions; call it after `end`."""
        for delivered, text, value in self.messages:
            from_robot = delivered.from_client == self._robot_is_client
            direction = "to client" if from_robot else "to robot"
            if self._robot_is_client is None:
                direction = ""
            source = self.session.client if delivered.from_client else self.session.server
            yield CapturedMessage(
                delivered.time_ns, index, source, direction, delivered.stream, text, value
            )

    def _add_delivered(self, delivered: Delivered) -> None:
        """Decode a message of a data channel and keep it; find out which side is the robot."""
        if delivered.protocol == sctp.Protocol.DCEP:
            self._handle_dcep(delivered)
            return
        text: str | bytes = delivered.payload
        if delivered.protocol == sctp.Protocol.TEXT:
            text = delivered.payload.decode(errors="replace")
        elif delivered.protocol != sctp.Protocol.BINARY:
            text = ""  # an empty message is sent as one byte
        try:
            value: channel.Value | None = channel.decode(text)
        except DecodeError:
            value = None
        if value is not None:
            by_robot = sender_is_robot(value)
            if by_robot is not None:
                self._robot_is_client = delivered.from_client == by_robot
        self._kept_bytes += len(delivered.payload)
        if self._kept_bytes > MAX_KEPT:
            self.dropped += 1
        else:
            self.messages.append((delivered._replace(payload=b""), text, value))

    def _handle_dcep(self, delivered: Delivered) -> None:
        """Record the label of an opened data channel; only the robot's client opens one."""
        try:
            message = sctp.decode_dcep(delivered.payload)
        except DecodeError:
            return
        if isinstance(message, sctp.Open):
            self.session.channels.append(message.label)
            if self._robot_is_client is None:
                self._robot_is_client = not delivered.from_client


def list_unread_problems(readers: list[SessionReader]) -> Iterator[DecryptionProblem]:
    """Yield a problem for each kind of content that could not be read, with its count."""
    for reader in readers:
        lost = sum(side.lost for side in reader.association.sides.values())
        unread = sum(value is None for _, _, value in reader.messages)
        counts = {
            "lost": (lost, "messages are not in the capture, or not whole"),
            "no-sctp": (reader.association.bad, "records hold something other than SCTP"),
            "no-message": (unread, "messages do not belong to a robot's data channel"),
            "parts": (
                reader.dialogue.undecodable,
                "answers came in parts that do not fit together",
            ),
            "limit": (reader.dropped, f"messages beyond {MAX_KEPT >> 20} MB are not kept"),
        }
        for kind, (count, message) in counts.items():
            if count:
                yield DecryptionProblem(kind, f"{count} {message}")
