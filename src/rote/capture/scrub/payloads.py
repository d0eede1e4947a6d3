"""Replaces identifiers in the payload of a datagram or segment, recognised by its structure.

Encrypted payloads stay. A known protocol is rewritten field by field. In a text only the
identifiers change. Everything else is cleared, unless unknown payloads are to be kept.
"""

import struct
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple

from rote.capture.scrub import handshakes as hs
from rote.capture.scrub.dns import PORTS as DNS_PORTS
from rote.capture.scrub.dns import DnsRewriter
from rote.capture.scrub.identifiers import Identifiers
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.capture.scrub.rtps import RtpsRewriter
from rote.errors import DecodeError
from rote.wire.packets import stun
from rote.wire.teaching import codec as teaching

_NETBIOS_NAMES, _NETBIOS_DATAGRAMS, _NTP = 137, 138, 123
_STUN_PLAIN = frozenset(
    (
        stun.Attribute.PRIORITY,
        stun.Attribute.USE_CANDIDATE,
        stun.Attribute.ERROR_CODE,
        stun.Attribute.ICE_CONTROLLED,
        stun.Attribute.ICE_CONTROLLING,
        stun.Attribute.MESSAGE_INTEGRITY,
        stun.Attribute.FINGERPRINT,
        0x0003, 0x000C, 0x000D, 0x0017, 0x0018, 0x0019, 0x001A, 0x001C, 0x0022, 0x8027, 0xC057,
    )
)  # fmt: skip
"""Attributes that are numbers, or random anyway."""
_STUN_ADDRESSES = frozenset((0x0001, 0x0002, 0x0004, 0x0005, 0x000B, 0x8023, 0x802B, 0x802C))
_STUN_XORED = frozenset((0x0012, 0x0016, 0x0020, 0x8020))
_STUN_TEXTS = frozenset(
    (
        stun.Attribute.USERNAME,
        stun.Attribute.SOFTWARE,
        stun.Attribute.REALM,
        stun.Attribute.NONCE,
    )
)
_STUN_DATA = 0x0013
_MAX_FLOWS, _MAX_BORDERS, _BORDER = 65_536, 50_000, 128
_MAX_STREAMS = 16_384


Ends = tuple[tuple[bytes, int], ...]


class Flow(NamedTuple):
    """The addresses as bytes, and the ports."""

    source: bytes
    source_port: int
    destination: bytes
    destination_port: int

    @property
    def both_ways(self) -> Ends:
        """The same for both directions."""
        return tuple(
            sorted(((self.source, self.source_port), (self.destination, self.destination_port)))
        )


@dataclass(slots=True)
class Account:
    """What was done with payloads: packets by kind."""

    kept: Counter[str] = field(default_factory=Counter)
    """Encrypted, so identifiers in them cannot be seen."""
    cleared: Counter[str] = field(default_factory=Counter)
    unjudged: Counter[str] = field(default_factory=Counter)
    """Kept, with the known identifiers replaced; there may be others."""


class Payloads:
    """Learns identifiers from payloads, then replaces them."""

    def __init__(
        self, identifiers: Identifiers, names: Pseudonyms, *, keep_unknown: bool = False
    ) -> None:
        self.account = Account()
        self.handshakes = hs.Handshakes(identifiers, names)
        self._identifiers = identifiers
        self._names = names
        self._keep_unknown = keep_unknown
        self._learning = False
        self._dtls: set[Ends] = set()
        self._quic: set[Ends] = set()
        self._streams: dict[Flow, hs.TlsStream] = {}
        self._borders: dict[tuple[Flow, int], list[bytes]] = {}

    def start(self, *, learning: bool) -> None:
        """Start a pass over the capture."""
        self._learning = self.handshakes.learning = learning
        self._streams.clear()

    # ---- UDP ------------------------------------------------------------------------------------

    def datagram(self, flow: Flow, payload: bytes) -> bytes:
        """Return the payload of a UDP datagram with identifiers replaced and the same length."""
        if not payload:
            return payload
        try:
            new = self._rewrite_by_port({flow.source_port, flow.destination_port}, payload)
        except DecodeError:
            return self._clear_unknown(payload, "damaged name service")
        return self._rewrite_by_structure(flow, payload) if new is None else new

    def _rewrite_by_port(self, ports: set[int], payload: bytes) -> bytes | None:
        """Rewrite name services and time, which have no magic number; otherwise None."""
        if ports & DNS_PORTS:
            return self._rewrite_dns(payload)
        if _NETBIOS_NAMES in ports:
            return self._rewrite_dns(payload, netbios=True)
        if _NETBIOS_DATAGRAMS in ports:
            return self._rewrite_netbios_datagram(payload)
        if _NTP in ports and len(payload) >= 48 and payload[0] & 7:
            return self._rewrite_ntp(payload)
        return None

    def _rewrite_by_structure(self, flow: Flow, payload: bytes) -> bytes:
        for rule in (
            self._rewrite_teaching_frame,
            self._rewrite_stun,
            self._rewrite_rtps,
            self._rewrite_a1_frame,
            self._rewrite_dtls_or_quic,
        ):
            with suppress(DecodeError):
                return rule(flow, payload)
        if is_text(payload):
            return self.text(payload)
        both = flow.both_ways
        if payload[0] >> 6 == 2 and both in self._dtls:
            return self._count_kept("SRTP", payload)
        if payload[0] >> 6 == 1 and both in self._quic:
            return self._count_kept("QUIC", payload)
        return self._clear_unknown(payload, "unknown datagrams")

    def _rewrite_dtls_or_quic(self, flow: Flow, payload: bytes) -> bytes:
        """Rewrite the unencrypted parts of DTLS and QUIC; raise `DecodeError` for others."""
        both = flow.both_ways
        # The short headers of DTLS 1.3 look like text, so only a known connection may have them.
        if 20 <= payload[0] <= 26 or (payload[0] >> 5 == 1 and both in self._dtls):
            new = self.handshakes.dtls(payload)
            self._note_flow(self._dtls, both)
            return self._count_kept("DTLS", new)
        if hs.is_quic(payload):
            self._note_flow(self._quic, both)
            return self._count_kept("QUIC", hs.quic(payload))
        raise DecodeError("neither DTLS nor QUIC")

    def _note_flow(self, flows: set[Ends], both: Ends) -> None:
        if self._learning and len(flows) < _MAX_FLOWS:
            flows.add(both)

    def _count_kept(self, kind: str, payload: bytes) -> bytes:
        self.account.kept[kind] += not self._learning
        return payload

    def _clear_unknown(self, payload: bytes, kind: str) -> bytes:
        """Clear an unknown payload, or keep it if the caller requested that."""
        if self._keep_unknown:
            if self._learning:
                self._identifiers.learn(payload)
                return payload
            self.account.unjudged[kind] += 1
            return self._identifiers.replace(payload, raw=True)
        self.account.cleared[kind] += not self._learning
        return bytes(len(payload))

    def other(self, payload: bytes, kind: str) -> bytes:
        """Return the content of a protocol without ports, by the same rules."""
        return self.text(payload) if is_text(payload) else self._clear_unknown(payload, kind)

    def text(self, payload: bytes, before: bytes = b"", after: bytes = b"") -> bytes:
        """Return a text with identifiers replaced; `before` and `after` are its neighbours."""
        whole = before + payload + after
        if self._learning:
            self._identifiers.learn(whole)
            return payload
        self.account.unjudged["text"] += 1
        return self._identifiers.replace(whole)[len(before) : len(before) + len(payload)]

    def _learn_address(self, address: bytes) -> None:
        if self._learning:
            add = {4: self._identifiers.add_ipv4, 6: self._identifiers.add_hardware}
            add.get(len(address), self._identifiers.add_ipv6)(address)

    def _learn_name(self, name: bytes) -> None:
        if self._learning:
            self._identifiers.add(name)
            self._identifiers.learn(name)

    def _rewrite_dns(self, payload: bytes, *, netbios: bool = False) -> bytes:
        rewriter = DnsRewriter(payload, self._names, self._learn_name, self._learn_address)
        rewriter.netbios = netbios
        return rewriter.rewrite()

    def _rewrite_netbios_datagram(self, payload: bytes) -> bytes:
        """Replace address and names at the beginning; the message after them is cleared."""
        if len(payload) < 14 + 68:
            raise DecodeError("a NetBIOS datagram that is too short")
        head = bytearray(payload[:14])
        self._learn_address(bytes(head[4:8]))
        head[4:8] = self._names.ipv4(bytes(head[4:8]))
        question = (
            b"\0\0\0\0\0\2\0\0\0\0\0\0" + payload[14:48] + bytes(4) + payload[48:82] + bytes(4)
        )
        new = self._rewrite_dns(question, netbios=True)
        names = new[12:46] + new[50:84]
        return bytes(head) + names + self._clear_unknown(payload[82:], "NetBIOS datagrams")

    def _rewrite_ntp(self, payload: bytes) -> bytes:
        """Replace the reference, which is a server's address below the first stratum."""
        result = bytearray(payload)
        if result[1] > 1:
            self._learn_address(bytes(result[12:16]))
            result[12:16] = self._names.ipv4(bytes(result[12:16]))
        result[48:] = bytes(len(payload) - 48)
        return bytes(result)

    def _rewrite_rtps(self, _: Flow, payload: bytes) -> bytes:
        if payload[:4] != b"RTPS" or len(payload) < 20:
            raise DecodeError("no RTPS")
        rewriter = RtpsRewriter(
            payload, self._identifiers, self._names, keep_samples=self._keep_unknown
        )
        try:
            if self._learning:
                rewriter.learn()
                return payload
            new = rewriter.rewrite()
        except DecodeError:
            return self._clear_unknown(payload, "damaged DDS")
        self.account.cleared["DDS samples"] += rewriter.cleared
        self.account.unjudged["DDS samples"] += self._keep_unknown
        return new

    # ---- frames of robots -----------------------------------------------------------------------

    def _rewrite_teaching_frame(self, _: Flow, payload: bytes) -> bytes:
        frame = teaching.decode(payload)
        size = teaching.NAME_BYTES
        if self._learning:
            listed = range(2, len(frame.payload) - size, size + 4)
            if frame.command == teaching.CommandId.SAVE_ACTION:
                if len(frame.payload) == teaching.SAVE:
                    self._identifiers.add(frame.payload[:size].rstrip(b"\0"))
            elif frame.command == teaching.CommandId.LIST_ACTIONS:
                for at in listed:
                    self._identifiers.add(frame.payload[at : at + size].rstrip(b"\0"))
            return payload
        return teaching.encode(frame._replace(payload=self._identifiers.replace(frame.payload)))

    def _rewrite_a1_frame(self, _: Flow, payload: bytes) -> bytes:
        """Replace robot and serial number in the header, and correct the checksum."""
        from rote.wire.a1 import codec, formats, layout  # noqa: PLC0415 - rare, and slow to load

        frame = codec.inspect(payload)
        if frame.seal is None or frame.fault is codec.FrameFault.HEAD:
            raise DecodeError("no frame of an A1")
        result = bytearray(payload)
        where = slice(4, 12) if formats.BY_SIZE[len(payload)].is_go1 else slice(3, 9)
        if any(result[where]):
            result[where] = self._names.opaque(bytes(result[where]))
            crc = layout.crc(bytes(result[:-4]))
            result[-4:] = layout.encrypted(crc) if frame.seal is codec.Seal.ENCRYPTED else crc
        return bytes(result)

    # ---- STUN and TURN --------------------------------------------------------------------------

    def _rewrite_stun(self, flow: Flow, payload: bytes) -> bytes:
        message = stun.decode(payload)
        last = message.attributes[-1][0] if message.attributes else 0
        holds = last == stun.Attribute.FINGERPRINT and stun.fingerprint_holds(payload)
        attributes = [
            (number, self._rewrite_stun_attribute(flow, message, number, value))
            for number, value in message.attributes
        ]
        if not holds:
            return stun.encode(message._replace(attributes=tuple(attributes)))
        return stun.encode(message._replace(attributes=tuple(attributes[:-1])), fingerprint=True)

    def _rewrite_stun_attribute(
        self, flow: Flow, message: stun.StunMessage, number: int, value: bytes
    ) -> bytes:
        new = bytes(len(value))
        if number in _STUN_PLAIN:
            new = value
        elif number in _STUN_TEXTS:
            parts = value.split(b":")
            for part in parts:
                self._learn_name(part)
            new = b":".join(map(self._names.name, parts))
        elif number in _STUN_ADDRESSES and len(value) in (8, 20):
            new = value[:4] + self._replace_address(value[4:])
        elif number in _STUN_XORED and len(value) in (8, 20):
            mask = stun.MAGIC.to_bytes(4) + message.transaction
            plain = bytes(a ^ b for a, b in zip(value[4:], mask, strict=False))
            other = self._replace_address(plain)
            new = value[:4] + bytes(a ^ b for a, b in zip(other, mask, strict=False))
        elif number == _STUN_DATA and value:
            new = self._rewrite_by_structure(flow, value)
        return new

    def _replace_address(self, packed: bytes) -> bytes:
        self._learn_address(packed)
        return self._names.ipv4(packed) if len(packed) == 4 else self._names.ipv6(packed)

    # ---- TCP ------------------------------------------------------------------------------------

    def segment(self, flow: Flow, sequence: int, payload: bytes) -> bytes:
        """Return the payload of a TCP segment with identifiers replaced and the same length."""
        if not payload:
            return payload
        if 53 in (flow.source_port, flow.destination_port):
            return self._rewrite_dns_segment(payload)
        stream = self._streams.get(flow)
        if stream is None and hs.TlsStream.begins(payload):
            stream = hs.TlsStream()
            if len(self._streams) >= _MAX_STREAMS:
                del self._streams[next(iter(self._streams))]
            self._streams[flow] = stream
        if stream is not None:
            before = stream.cleared
            new = stream.segment(sequence, payload, self.handshakes)
            self.account.cleared["parts of TLS handshakes"] += (
                stream.cleared > before and not self._learning
            )
            return self._count_kept("TLS", new)
        return self._rewrite_text_segment(flow, sequence, payload)

    def _rewrite_text_segment(self, flow: Flow, sequence: int, payload: bytes) -> bytes:
        """Process a segment of text together with its neighbours: a name may cross the border."""
        head, blank, body = payload.partition(b"\r\n\r\n")
        if is_text(payload):
            head, blank, body = payload, b"", b""
        elif not blank or not is_text(head):
            if payload[0] == 23 and payload[1:2] == b"\3":
                return self._count_kept("TLS", payload)  # a session that began before the capture
            return self._clear_unknown(payload, "unknown segments")
        end = (sequence + len(payload)) & 0xFFFF_FFFF
        if self._learning and len(self._borders) < _MAX_BORDERS:
            self._borders.setdefault((flow, sequence), [b"", b""])[1] = head[:_BORDER]
            if not blank:
                self._borders.setdefault((flow, end), [b"", b""])[0] = head[-_BORDER:]
        before = self._borders.get((flow, sequence), [b"", b""])[0]
        after = b"" if blank else self._borders.get((flow, end), [b"", b""])[1]
        rest = self._clear_unknown(body, "bodies of HTTP") if body else b""
        return self.text(head, before, after) + blank + rest

    def _rewrite_dns_segment(self, payload: bytes) -> bytes:
        """Rewrite DNS over TCP: each message after its length. Incomplete messages are cleared."""
        result, at = b"", 0
        try:
            while at < len(payload):
                (size,) = struct.unpack_from(">H", payload, at)
                if at + 2 + size > len(payload):
                    raise DecodeError("a message that goes on in the next segment")
                result += payload[at : at + 2] + self._rewrite_dns(payload[at + 2 : at + 2 + size])
                at += 2 + size
        except (DecodeError, struct.error):
            return result + self._clear_unknown(payload[len(result) :], "pieces of DNS over TCP")
        return result


def is_text(payload: bytes) -> bool:
    """Whether a payload is text in UTF-8; its first and last character may be cut."""
    for cut in range(4):
        for front in range(4 if payload[0] & 0xC0 == 0x80 else 1):
            part = payload[front : len(payload) - cut]
            try:
                text = part.decode()
            except UnicodeDecodeError:
                continue
            return bool(text) and all(c.isprintable() or c in "\t\r\n" for c in text)
    return False
