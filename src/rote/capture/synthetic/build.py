"""Captures made for teaching and testing: a known session, every byte of it explained.

The WebRTC session is built from the bottom up: ICE checks, a DTLS handshake, SCTP, a data channel,
all encrypted with real ciphers under a master secret that goes into the key log. Only the
signatures and the finished messages are fake: readers of captures accept them, a peer would not.
"""

import random
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from rote.capture.decode.decrypt import expand, protections
from rote.capture.read.datagram import Datagram
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
"""When made sessions begin by default."""
PHONE, ROBOT = "192.168.12.20", "192.168.12.1"
_FRAGMENT = 1200
_CONSENT_S = 5.0
_EXTENSIONS = (
    (ExtensionType.EXTENDED_MASTER_SECRET, b""),
    (ExtensionType.SUPPORTED_GROUPS, bytes.fromhex("0002 0017")),
)


@dataclass(slots=True)
class Made:
    """A capture, and its keys."""

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
    """Write a capture of one session; return how many packets it has.

    It is a pcapng if the name ends in `.pcapng`, otherwise a pcap. The same seed gives the same
    bytes.
    """
    if kind == "webrtc":
        made = webrtc(story.webrtc(), cipher=cipher, seed=seed)
    elif kind == "frames":
        made = Made(_datagrams_of(story.frames(), (PHONE, 50_000), (ROBOT, 49_504)))
    elif kind == "a1":
        made = Made(
            _datagrams_of(story.walk(), ("192.168.123.162", 8090), ("192.168.123.161", 8082))
        )
    else:
        raise BadRequestError(f"there is no session {kind!r}", f"Use: {', '.join(KINDS)}.")
    if keylog is not None:
        if not made.keylog:
            raise BadRequestError(f"a session of {kind} is not encrypted", "Leave --keylog out.")
        with appearing(keylog, private=True) as file:
            file.write(made.keylog.encode("ascii"))
    return ethernet.write(path, made.datagrams)


def _datagrams_of(
    frames: Iterable[story.ScriptFrame], client: tuple[str, int], robot: tuple[str, int]
) -> list[Datagram]:
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
    """Return a session with these messages, and its key log."""
    if cipher not in CIPHERS:
        raise BadRequestError(f"there is no cipher {cipher!r}", f"Use: {', '.join(CIPHERS)}.")
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
    """Builds one session, datagram by datagram. As on a G1, the robot is the DTLS client."""

    offset_s = 0.1
    """When the channel is open."""

    def __init__(self, suite: int, chance: random.Random, start_ns: int) -> None:
        self.made = Made()
        self._chance = chance
        self._suite = suite
        self._start_ns = start_ns
        self._ends = ((PHONE, 39_216), (ROBOT, 45_671))
        self._sequence = [[0, 0], [0, 0]]
        """By side (phone, robot) and epoch."""
        self._message = [0, 0]
        self._randoms = chance.randbytes(32), chance.randbytes(32)
        secret = chance.randbytes(48)
        self.made.keylog = f"CLIENT_RANDOM {self._randoms[1].hex()} {secret.hex()}\n"
        server, client = self._randoms
        self._keys = protections(secret, client, server, dtls.suite_of(suite))
        self._finished = [
            expand(secret, label + b" finished", server + client, 12, dtls.suite_of(suite).prf)
            for label in (b"server", b"client")
        ]
        self._numbers = [chance.getrandbits(32), chance.getrandbits(32)]
        self._tags = [chance.getrandbits(32), chance.getrandbits(32)]
        self._streams = [0, 0]
        self._outbox: list[tuple[float, int, bytes]] = []

    def _add_datagram(self, at_s: float, side: int, payload: bytes) -> None:
        time_ns = self._start_ns + round(at_s * 1e9)
        datagram = Datagram(time_ns, self._ends[side], self._ends[1 - side], payload)
        self.made.datagrams.append(datagram)

    # ---- ICE ------------------------------------------------------------------------------------

    def check_connectivity(self) -> None:
        """Add connectivity checks of both sides; the phone nominates."""
        self._send_check(0.000, 0)
        self._send_check(0.004, 1)
        self._send_check(0.008, 0, nominate=True)

    def keep_consent(self, end_s: float) -> None:
        """Add consent checks every few seconds."""
        for number in range(1, int(end_s / _CONSENT_S) + 1):
            for side in (0, 1):
                self._send_check(number * _CONSENT_S + 0.5 * side, side)

    def _send_check(self, at_s: float, side: int, *, nominate: bool = False) -> None:
        names = ("phon", "robo")
        transaction = self._chance.randbytes(12)
        role = stun.Attribute.ICE_CONTROLLED if side else stun.Attribute.ICE_CONTROLLING
        attributes = [
            (stun.Attribute.USERNAME, f"{names[1 - side]}:{names[side]}".encode()),
            (stun.Attribute.PRIORITY, (2_130_706_431).to_bytes(4)),
            (role, self._chance.randbytes(8)),
        ]
        if nominate:
            attributes.append((stun.Attribute.USE_CANDIDATE, b""))
        request = stun.StunMessage(stun.Class.REQUEST, transaction, tuple(attributes))
        mapped = stun.xor_address(self._ends[side], transaction)
        seen = ((stun.Attribute.XOR_MAPPED_ADDRESS, mapped),)
        answer = stun.StunMessage(stun.Class.SUCCESS, transaction, seen)
        protect = {"password": f"password of {names[1 - side]}", "fingerprint": True}
        self._add_datagram(at_s, side, stun.encode(request, **protect))  # type: ignore[arg-type]
        self._add_datagram(at_s + 0.002, 1 - side, stun.encode(answer, **protect))  # type: ignore[arg-type]

    # ---- DTLS -----------------------------------------------------------------------------------

    def do_handshake(self) -> None:
        """Add the DTLS handshake."""
        hello = ClientHello(
            random=self._randoms[1],
            cipher_suites=tuple(CIPHERS.values()),
            extensions=_EXTENSIONS,
        )
        self._add_datagram(0.020, 1, self._handshake_record(1, hello))
        answer = ServerHello(
            random=self._randoms[0], cipher_suite=self._suite, extensions=_EXTENSIONS[:1]
        )
        key = b"\4" + self._chance.randbytes(64)
        flight = self._handshake_record(0, answer) + self._handshake_record(
            0, self._make_certificate()
        )
        flight += self._handshake_record(0, ServerKeyExchange(23, key)) + self._handshake_record(
            0, None
        )
        self._add_datagram(0.030, 0, flight)
        self._add_datagram(
            0.040,
            1,
            self._handshake_record(1, ClientKeyExchange(key[::-1])) + self._change_cipher(1),
        )
        self._add_datagram(0.045, 0, self._change_cipher(0))

    def _handshake_record(self, side: int, message: HandshakeContent | None) -> bytes:
        number, self._message[side] = self._message[side], self._message[side] + 1
        if message is None:
            handshake = dtls.Handshake(HandshakeType.SERVER_HELLO_DONE, number, b"")
        else:
            signature = b"\4\3\0\x40" + self._chance.randbytes(64)
            handshake = encode_handshake(message, number, signature)
        return self._encode_record(
            side, ContentType.HANDSHAKE, _encode_fragment(handshake), epoch=0
        )

    def _change_cipher(self, side: int) -> bytes:
        number = self._message[side]
        finished = dtls.Handshake(HandshakeType.FINISHED, number, self._finished[side])
        change = self._encode_record(side, ContentType.CHANGE_CIPHER_SPEC, b"\1", epoch=0)
        return change + self._encode_record(side, ContentType.HANDSHAKE, _encode_fragment(finished))

    def _encode_record(self, side: int, kind: int, payload: bytes, epoch: int = 1) -> bytes:
        number = self._sequence[side][epoch]
        self._sequence[side][epoch] += 1
        record = DtlsRecord(kind, epoch, number, payload)
        return dtls.encode_record(self._keys[side].seal(record) if epoch else record)

    def _make_certificate(self) -> Certificate:
        """Return a certificate of the right form that certifies nothing."""
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
            0x30, _encode_der(0x30, curve) + _encode_der(3, b"\0\4" + self._chance.randbytes(64))
        )
        serial = _encode_der(0xA0, _encode_der(2, b"\2")) + _encode_der(2, b"\1")
        body = _encode_der(0x30, serial + algorithm + name + times + name + key)
        signature = _encode_der(3, b"\0" + self._chance.randbytes(70))
        return Certificate((_encode_der(0x30, body + algorithm + signature),))

    # ---- SCTP -----------------------------------------------------------------------------------

    def associate(self) -> None:
        """Set up SCTP and open the channel."""
        inits = [
            sctp.Init(tag, 131_072, 65_535, 65_535, number)
            for tag, number in zip(self._tags, self._numbers, strict=True)
        ]
        cookie = self._chance.randbytes(32)
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
        """Queue a message of one side and its acknowledgement."""
        text = _text_of(line)
        kind = sctp.Protocol.TEXT if isinstance(text, str) else sctp.Protocol.BINARY
        payload = text.encode(errors="surrogatepass") if isinstance(text, str) else text
        self._queue_message(self.offset_s + line.time_s, 0 if line.to_robot else 1, kind, payload)

    def _queue_message(self, at_s: float, side: int, protocol: int, payload: bytes) -> None:
        pieces = [payload[at : at + _FRAGMENT] for at in range(0, len(payload), _FRAGMENT)]
        sequence, self._streams[side] = self._streams[side], (self._streams[side] + 1) % 2**16
        for index, piece in enumerate(pieces):
            flags = (index == 0) << 1 | (index == len(pieces) - 1)
            number = self._numbers[side]
            self._numbers[side] = (number + 1) % 2**32
            chunk = sctp.Data(number, 1, sequence, protocol, piece, flags)
            self._queue_packet(at_s, side, chunk)
            self._queue_packet(at_s + 0.001, 1 - side, sctp.Sack(number, 131_072))

    def _queue_packet(
        self, at_s: float, side: int, chunk: sctp.Chunk, tag: int | None = None
    ) -> None:
        its = self._tags[1 - side] if tag is None else tag
        packet = sctp.encode(sctp.Packet(5000, 5000, its, (chunk,)))
        self._outbox.append((at_s, side, packet))

    def send_all(self) -> None:
        """Encrypt the packets in time order, which numbers the records."""
        for at_s, side, packet in sorted(self._outbox, key=lambda each: each[0]):
            self._add_datagram(
                at_s, side, self._encode_record(side, ContentType.APPLICATION_DATA, packet)
            )


def _text_of(line: story.ScriptLine | story.ScriptMessage) -> str | bytes:
    return line.message if isinstance(line, story.ScriptMessage) else channel.encode(line.value)


def _encode_fragment(handshake: dtls.Handshake) -> bytes:
    kind, number, body = handshake
    return dtls.encode_fragment(dtls.Fragment(kind, len(body), number, 0, body))


def _encode_der(tag: int, content: bytes) -> bytes:
    size = len(content)
    length = bytes((size,)) if size < 128 else b"\x82" + size.to_bytes(2)
    return bytes((tag,)) + length + content
