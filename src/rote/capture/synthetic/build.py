"""Captures made for teaching and testing: a known session, every byte of it explained.

The WebRTC session is built from the bottom up: ICE checks, a DTLS handshake, SCTP, a data channel,
all encrypted with real ciphers under a master secret that goes into the key log. Only the
signatures and the finished messages are fake: readers of captures accept them, a peer would not.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rote.capture.decode.decrypt import derive_protections, expand
from rote.capture.model import Datagram
from rote.capture.synthetic import ethernet
from rote.capture.synthetic import script as story
from rote.errors import BadRequestError
from rote.platform.atomic_file import appearing
from rote.wire.packets import dtls, sctp, stun
from rote.wire.packets.dtls import ContentType, DtlsRecord, HandshakeType
from rote.wire.packets.dtls_handshake import (
    Certificate,
    ClientHello,
    ClientKeyExchange,
    ExtensionType,
    HandshakeContent,
    ServerHello,
    ServerKeyExchange,
    encode_handshake,
)
from rote.wire.webrtc import channel

KINDS = ("webrtc", "frames", "a1")
CIPHERS = {"chacha20": 0xCCA9, "aes128": 0xC02B, "aes256": 0xC02C}
START_NS = 1_769_635_650 * 10**9
"""Default start of made sessions, in nanoseconds since 1970."""
PHONE, ROBOT = "192.168.12.20", "192.168.12.1"
_FRAGMENT = 1200
"""Maximum payload of one SCTP chunk in bytes."""
_CONSENT_S = 5.0
"""Interval of the checks with which ICE confirms an open connection."""
_EXTENSIONS = (
    (ExtensionType.EXTENDED_MASTER_SECRET, b""),
    (ExtensionType.SUPPORTED_GROUPS, bytes.fromhex("0002 0017")),
)


@dataclass(slots=True)
class Made:
    """A simulated session as datagrams, and the key log that decrypts it."""

    datagrams: list[Datagram] = field(default_factory=list)
    keylog: str = ""


def make(
    path: Path,
    kind: str = "webrtc",
    *,
    cipher: str = "chacha20",
    keylog: Path | None = None,
    seed: int = 0,
) -> int:
    """Write a capture of a simulated session; return the number of its packets.

    `kind` is one of `KINDS`. The file is a pcapng if its name ends in `.pcapng`, otherwise a pcap.
    The same seed gives the same bytes.
    """
    if kind == "webrtc":
        made = webrtc(story.webrtc(), cipher=cipher, seed=seed)
    elif kind == "frames":
        made = Made(_make_datagrams(story.frames(), (PHONE, 50_000), (ROBOT, 49_504)))
    elif kind == "a1":
        made = Made(
            _make_datagrams(story.walk(), ("192.168.123.162", 8090), ("192.168.123.161", 8082))
        )
    else:
        raise BadRequestError(f"unknown kind of session: {kind!r}", f"Use: {', '.join(KINDS)}.")
    if keylog is not None:
        if not made.keylog:
            raise BadRequestError(f"a session of {kind} is not encrypted", "Leave --keylog out.")
        with appearing(keylog, private=True) as file:
            file.write(made.keylog.encode("ascii"))
    return ethernet.write(path, made.datagrams)


def _make_datagrams(
    frames: Iterable[story.ScriptFrame], client: tuple[str, int], robot: tuple[str, int]
) -> list[Datagram]:
    """Return the frames of a script as datagrams between these addresses and ports."""
    return [
        Datagram(
            START_NS + int(frame.time_s * 1e9),
            client if frame.to_robot else robot,
            robot if frame.to_robot else client,
            frame.payload,
        )
        for frame in frames
    ]


def webrtc(
    lines: Iterable[story.ScriptLine | story.ScriptMessage],
    *,
    cipher: str = "chacha20",
    seed: int = 0,
    start_ns: int = START_NS,
) -> Made:
    """Return a WebRTC session with these messages in its data channel, and its key log."""
    if cipher not in CIPHERS:
        raise BadRequestError(f"unknown cipher: {cipher!r}", f"Use: {', '.join(CIPHERS)}.")
    session = _Session(CIPHERS[cipher], random.Random(seed), start_ns)
    session.check_connectivity()
    session.do_handshake()
    session.associate()
    end_s = 0.0
    for line in lines:
        end_s = session.offset_s + line.time_s
        session.send_message(line)
    session.send_all()
    session.keep_consent(end_s)
    session.made.datagrams.sort(key=lambda datagram: datagram.time_ns)
    return session.made


class _Session:
    """Builds one session, datagram by datagram. As on a G1, the robot is the DTLS client.

    A side is 0 for the phone, the DTLS server, and 1 for the robot. Pairs are in this order.
    """

    offset_s = 0.1
    """Time from the session's start until the channel is open."""

    def __init__(self, suite: int, rng: random.Random, start_ns: int) -> None:
        self.made = Made()
        self._rng = rng
        self._suite = suite
        self._start_ns = start_ns
        self._ends = ((PHONE, 39_216), (ROBOT, 45_671))
        self._sequence = [[0, 0], [0, 0]]
        """The numbers of the next DTLS records, by side and epoch."""
        self._message = [0, 0]
        """The numbers of the next handshake messages, by side."""
        self._randoms = rng.randbytes(32), rng.randbytes(32)
        secret = rng.randbytes(48)
        self.made.keylog = f"CLIENT_RANDOM {self._randoms[1].hex()} {secret.hex()}\n"
        server, client = self._randoms
        self._keys = derive_protections(secret, client, server, dtls.find_suite(suite))
        self._finished = [
            expand(secret, label + b" finished", server + client, 12, dtls.find_suite(suite).prf)
            for label in (b"server", b"client")
        ]
        self._numbers = [rng.getrandbits(32), rng.getrandbits(32)]
        """The numbers of the next pieces of data in SCTP, by side."""
        self._tags = [rng.getrandbits(32), rng.getrandbits(32)]
        self._streams = [0, 0]
        """The sequence numbers of the next messages in the data channel, by side."""
        self._outbox: list[tuple[float, int, bytes]] = []
        """SCTP packets that are not yet encrypted: time in seconds, side, packet."""

    def _add_datagram(self, at_s: float, side: int, payload: bytes) -> None:
        """Add a datagram that one side sends at `at_s` seconds after the start."""
        time_ns = self._start_ns + round(at_s * 1e9)
        datagram = Datagram(time_ns, self._ends[side], self._ends[1 - side], payload)
        self.made.datagrams.append(datagram)

    # ---- ICE ------------------------------------------------------------------------------------

    def check_connectivity(self) -> None:
        """Add the connectivity checks of both sides; the phone nominates the connection."""
        self._send_check(0.000, 0)
        self._send_check(0.004, 1)
        self._send_check(0.008, 0, nominate=True)

    def keep_consent(self, end_s: float) -> None:
        """Add consent checks every few seconds."""
        for number in range(1, int(end_s / _CONSENT_S) + 1):
            for side in (0, 1):
                self._send_check(number * _CONSENT_S + 0.5 * side, side)

    def _send_check(self, at_s: float, side: int, *, nominate: bool = False) -> None:
        """Add a STUN request from one side, and the answer to it."""
        names = ("phon", "robo")  # of which a request has both, the receiver's first
        transaction = self._rng.randbytes(12)
        role = stun.Attribute.ICE_CONTROLLED if side else stun.Attribute.ICE_CONTROLLING
        attributes = [
            (stun.Attribute.USERNAME, f"{names[1 - side]}:{names[side]}".encode()),
            (stun.Attribute.PRIORITY, (2_130_706_431).to_bytes(4)),
            (role, self._rng.randbytes(8)),
        ]
        if nominate:
            attributes.append((stun.Attribute.USE_CANDIDATE, b""))
        request = stun.StunMessage(stun.Class.REQUEST, transaction, tuple(attributes))
        mapped = stun.encode_xor_address(self._ends[side], transaction)
        mapped_attribute = ((stun.Attribute.XOR_MAPPED_ADDRESS, mapped),)
        answer = stun.StunMessage(stun.Class.SUCCESS, transaction, mapped_attribute)
        protection = {"password": f"password of {names[1 - side]}", "fingerprint": True}
        self._add_datagram(at_s, side, stun.encode(request, **protection))  # type: ignore[arg-type]
        self._add_datagram(at_s + 0.002, 1 - side, stun.encode(answer, **protection))  # type: ignore[arg-type]

    # ---- DTLS -----------------------------------------------------------------------------------

    def do_handshake(self) -> None:
        """Add the DTLS handshake: four flights, begun by the robot."""
        hello = ClientHello(
            random=self._randoms[1],
            cipher_suites=tuple(CIPHERS.values()),
            extensions=_EXTENSIONS,
        )
        self._add_datagram(0.020, 1, self._make_handshake_record(1, hello))
        server_hello = ServerHello(
            random=self._randoms[0], cipher_suite=self._suite, extensions=_EXTENSIONS[:1]
        )
        key = b"\4" + self._rng.randbytes(64)  # the form of an uncompressed point on a curve
        flight = self._make_handshake_record(0, server_hello) + self._make_handshake_record(
            0, self._make_certificate()
        )
        flight += self._make_handshake_record(
            0,
            ServerKeyExchange(23, key),  # the curve secp256r1
        ) + self._make_handshake_record(0, None)
        self._add_datagram(0.030, 0, flight)
        self._add_datagram(
            0.040,
            1,
            self._make_handshake_record(1, ClientKeyExchange(key[::-1]))
            + self._make_cipher_change(1),
        )
        self._add_datagram(0.045, 0, self._make_cipher_change(0))

    def _make_handshake_record(self, side: int, message: HandshakeContent | None) -> bytes:
        """Return a record with one handshake message; None stands for the server's "hello done"."""
        number, self._message[side] = self._message[side], self._message[side] + 1
        if message is None:
            handshake = dtls.Handshake(HandshakeType.SERVER_HELLO_DONE, number, b"")
        else:
            signature = b"\4\3\0\x40" + self._rng.randbytes(64)  # ECDSA with SHA-256, 64 bytes
            handshake = encode_handshake(message, number, signature)
        return self._encode_record(
            side, ContentType.HANDSHAKE, _encode_fragment(handshake), epoch=0
        )

    def _make_cipher_change(self, side: int) -> bytes:
        """Return the records that end one side's handshake: a change of cipher, then "finished"."""
        number = self._message[side]
        finished = dtls.Handshake(HandshakeType.FINISHED, number, self._finished[side])
        change = self._encode_record(side, ContentType.CHANGE_CIPHER_SPEC, b"\1", epoch=0)
        return change + self._encode_record(side, ContentType.HANDSHAKE, _encode_fragment(finished))

    def _encode_record(self, side: int, kind: int, payload: bytes, epoch: int = 1) -> bytes:
        """Return the next record of one side; it is encrypted except in epoch 0."""
        number = self._sequence[side][epoch]
        self._sequence[side][epoch] += 1
        record = DtlsRecord(kind, epoch, number, payload)
        return dtls.encode_record(self._keys[side].seal(record) if epoch else record)

    def _make_certificate(self) -> Certificate:
        """Return a certificate that has the right form (X.509) but certifies nothing."""
        # The tags: 0x30 sequence, 0x31 set, 0xA0 version, 2 integer, 3 bit string, 6 object id, 12
        # text, 23 time.
        algorithm = _encode_der(0x30, _encode_der(6, bytes.fromhex("2a8648ce3d040302")))
        curve = _encode_der(6, bytes.fromhex("2a8648ce3d0201")) + _encode_der(
            6, bytes.fromhex("2a8648ce3d030107")
        )
        name = _encode_der(
            0x30,
            _encode_der(
                0x31, _encode_der(0x30, _encode_der(6, b"\x55\4\3") + _encode_der(12, b"rote"))
            ),
        )
        times = _encode_der(
            0x30, _encode_der(23, b"260101000000Z") + _encode_der(23, b"270101000000Z")
        )
        key = _encode_der(
            0x30, _encode_der(0x30, curve) + _encode_der(3, b"\0\4" + self._rng.randbytes(64))
        )
        serial = _encode_der(0xA0, _encode_der(2, b"\2")) + _encode_der(2, b"\1")
        body = _encode_der(0x30, serial + algorithm + name + times + name + key)
        signature = _encode_der(3, b"\0" + self._rng.randbytes(70))
        return Certificate((_encode_der(0x30, body + algorithm + signature),))

    # ---- SCTP -----------------------------------------------------------------------------------

    def associate(self) -> None:
        """Set up SCTP and open the channel."""
        inits = [
            sctp.Init(tag, 131_072, 65_535, 65_535, number)
            for tag, number in zip(self._tags, self._numbers, strict=True)
        ]
        cookie = self._rng.randbytes(32)
        state = b"\0\7" + (4 + len(cookie)).to_bytes(2) + cookie
        answer = inits[1]._replace(answer=True, parameters=state)
        self._queue_packet(0.050, 0, inits[0], tag=0)
        self._queue_packet(0.052, 1, answer)
        self._queue_packet(0.054, 0, sctp.Other(sctp.ChunkType.COOKIE_ECHO, cookie))
        self._queue_packet(0.056, 1, sctp.Other(sctp.ChunkType.COOKIE_ACK))
        opening = sctp.encode_dcep(sctp.Open("data"))
        self._queue_message(0.060, 0, sctp.Protocol.DCEP, opening)
        self._queue_message(0.064, 1, sctp.Protocol.DCEP, sctp.encode_dcep(sctp.ChannelOpened()))

    def send_message(self, line: story.ScriptLine | story.ScriptMessage) -> None:
        """Queue a message of the data channel and its acknowledgement."""
        text = _encode_line(line)
        kind = sctp.Protocol.TEXT if isinstance(text, str) else sctp.Protocol.BINARY
        payload = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        self._queue_message(self.offset_s + line.time_s, 0 if line.to_robot else 1, kind, payload)

    def _queue_message(self, at_s: float, side: int, protocol: int, payload: bytes) -> None:
        """Queue a message in pieces, each followed by the other side's acknowledgement."""
        pieces = [payload[start : start + _FRAGMENT] for start in range(0, len(payload), _FRAGMENT)]
        sequence, self._streams[side] = self._streams[side], (self._streams[side] + 1) % 2**16
        for index, piece in enumerate(pieces):
            flags = (index == 0) << 1 | (index == len(pieces) - 1)  # whether it begins, and ends
            number = self._numbers[side]
            self._numbers[side] = (number + 1) % 2**32
            chunk = sctp.Data(number, 1, sequence, protocol, piece, flags)
            self._queue_packet(at_s, side, chunk)
            self._queue_packet(at_s + 0.001, 1 - side, sctp.Sack(number, 131_072))

    def _queue_packet(
        self, at_s: float, side: int, chunk: sctp.Chunk, tag: int | None = None
    ) -> None:
        receiver_tag = self._tags[1 - side] if tag is None else tag
        packet = sctp.encode(sctp.Packet(5000, 5000, receiver_tag, (chunk,)))
        self._outbox.append((at_s, side, packet))

    def send_all(self) -> None:
        """Encrypt the queued packets in order of time, which is the order of record numbers."""
        for at_s, side, packet in sorted(self._outbox, key=lambda queued: queued[0]):
            self._add_datagram(
                at_s, side, self._encode_record(side, ContentType.APPLICATION_DATA, packet)
            )


def _encode_line(line: story.ScriptLine | story.ScriptMessage) -> str | bytes:
    """Return the message of a line as it is sent."""
    return line.message if isinstance(line, story.ScriptMessage) else channel.encode(line.value)


def _encode_fragment(handshake: dtls.Handshake) -> bytes:
    """Encode a handshake message as one whole fragment."""
    kind, number, body = handshake
    return dtls.encode_fragment(dtls.Fragment(kind, len(body), number, 0, body))


def _encode_der(tag: int, content: bytes) -> bytes:
    """Encode a value of ASN.1: tag, length and content. Lengths from 128 on take three bytes."""
    size = len(content)
    length = bytes((size,)) if size < 128 else b"\x82" + size.to_bytes(2)
    return bytes((tag,)) + length + content
