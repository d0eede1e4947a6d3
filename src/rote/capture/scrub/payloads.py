"""Masks the payload of a datagram or segment: fields of known protocols stay, the rest is zeros.

Each rule names the fields that it keeps or replaces. A rule raises `DecodeError` if the payload is
not of its protocol; a payload that fits no rule becomes zeros.
"""

import json
import re
from collections import Counter
from collections.abc import Callable
from functools import partial
from ipaddress import AddressValueError, IPv4Address
from typing import NamedTuple

from rote.capture.scrub import dns
from rote.capture.scrub.handshakes import mask_dtls, mask_tls
from rote.capture.scrub.masked_copy import MaskedCopy
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError
from rote.wire import discovery
from rote.wire.packets import stun
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import fields

_MAX_FLOWS = 65_536
_DNS, _MDNS, _LLMNR, _NTP, _WS_DISCOVERY = 53, 5353, 5355, 123, 3702
_NETBIOS_NAMES, _NETBIOS_DATAGRAMS = 137, 138
_DHCP_SERVER, _DHCP_CLIENT, _DHCP6_CLIENT, _DHCP6_SERVER = 67, 68, 546, 547
_KINDS = {
    "DNS": (_DNS, _MDNS, _LLMNR),
    "NetBIOS": (_NETBIOS_NAMES, _NETBIOS_DATAGRAMS),
    "DHCP": (_DHCP_SERVER, _DHCP_CLIENT, _DHCP6_CLIENT, _DHCP6_SERVER),
    "NTP": (_NTP,),
    "WS-Discovery": (_WS_DISCOVERY,),
}
_SERVICES = {port: kind for kind, ports in _KINDS.items() for port in ports}
_DHCP_COOKIE, _DHCP_END = 0x63825363, 255
_DHCP_ADDRESSES, _DHCP_NAMES, _DHCP_MESSAGE = (3, 6, 28, 50, 54), (12, 15), 53
_FRAME_NUMBERS = frozenset(map(fields.FieldType, ("u8", "u16", "u32", "u64", "i16", "f32")))
_STUN_NUMBERS = (stun.Attribute.PRIORITY, stun.Attribute.ERROR_CODE)
_SSDP_LINES = (b"M-SEARCH * HTTP/1.1\r\n", b"NOTIFY * HTTP/1.1\r\n", b"HTTP/1.1 200 OK\r\n")
_XML = (b"<?xm", b"<s:E", b"<soa", b"<SOA", b"<env")
_HTTP_START = re.compile(
    rb"(?:GET|POST|PUT|HEAD) (?:/con_notify|/con_ing|/offer)?|HTTP/1\.[01] \d{3}(?: |(?=\r))"
)
_HTTP_LINE_END = re.compile(rb"(?: HTTP/1\.[01])?\r\n")
_HTTP_LENGTH = re.compile(rb"(?i)\r\ncontent-length: *\d{1,9}\r\n")
_REJECTED = b'"reject"'
_QUIC_VERSIONS = frozenset((1, 0x6B3343CF, *range(0xFF000017, 0xFF000023)))
_QUIC_SHORTEST, _QUIC_MAX_ID = 21, 20
_RTPS_DATA, _RTPS_INFO_TARGET = 0x15, 0x0E
_RTPS_DISCOVERY = frozenset((0x000100C2, 0x000003C2, 0x000004C2))
_RTPS_SENTINEL, _RTPS_NAMES = 0x01, frozenset((0x05, 0x07))
_TOPICS = frozenset((b"rt/lowstate", b"rt/lowcmd", b"rt/arm_sdk", b"rt/armsdk"))
"""The same on every robot."""


class Flow(NamedTuple):
    """The two ends of a packet, the same for both directions."""

    ends: frozenset[tuple[bytes, int]]
    """Addresses and ports."""
    ports: frozenset[int]


Rule = Callable[[MaskedCopy, Flow], None]


class Payloads:
    """Masks payloads, with one set of pseudonyms for all."""

    def __init__(self, names: Pseudonyms) -> None:
        self.cleared: Counter[str] = Counter()
        """Payloads that have zeros instead of contents, by kind."""
        self.encrypted: Counter[str] = Counter()
        """Payloads with encrypted contents that stay, by kind."""
        self._names = names
        self._seen: set[tuple[str, Flow]] = set()
        self._datagrams: dict[str, Rule] = {
            "teaching frames": self._mask_teaching,
            "STUN": self._mask_stun,
            "DDS": self._mask_rtps,
            "frames of an A1": self._mask_a1,
            "robot discovery": self._mask_discovery,
            "DTLS": self._mask_dtls,
            "QUIC": self._mask_quic,
            "SSDP": _mask_ssdp,
            "media": self._mask_media,
        }
        self._segments: dict[str, Rule] = {
            "TLS": lambda copy, _: mask_tls(copy, names),
            "HTTP": _mask_http,
        }

    def mask_datagram(self, flow: Flow, payload: bytes) -> bytes:
        """Return the payload of a UDP datagram, masked."""
        rules = self._datagrams
        for port in flow.ports & _SERVICES.keys():
            rules = {_SERVICES[port]: partial(_mask_service, port, self._names)}
        return self._apply(rules, flow, payload, "unknown datagrams")

    def mask_segment(self, flow: Flow, payload: bytes) -> bytes:
        """Return the payload of a TCP segment, masked."""
        rules = self._segments
        if _DNS in flow.ports:
            rules = {"DNS": lambda copy, _: dns.mask_dns_stream(copy, self._names)}
        return self._apply(rules, flow, payload, "unknown segments")

    def _apply(self, rules: dict[str, Rule], flow: Flow, payload: bytes, unknown: str) -> bytes:
        for kind, rule in rules.items() if payload else ():
            copy = MaskedCopy(payload)
            try:
                rule(copy, flow)
            except DecodeError:
                continue
            self.cleared[kind] += copy.written < len(payload)
            return bytes(copy.new)
        self.cleared[unknown] += bool(payload)
        return bytes(len(payload))

    def _note_flow(self, kind: str, flow: Flow) -> None:
        if len(self._seen) < _MAX_FLOWS:
            self._seen.add((kind, flow))

    # ---- WebRTC and QUIC ------------------------------------------------------------------------

    def _mask_dtls(self, copy: MaskedCopy, flow: Flow) -> None:
        # Without the server's hello nothing proves that contents are encrypted, and no key log
        # could decrypt them.
        encrypted = ("encrypted", flow) in self._seen
        if mask_dtls(copy, self._names, encrypted=encrypted):
            self._note_flow("encrypted", flow)
        self._note_flow("media", flow)
        self.encrypted["DTLS"] += encrypted

    def _mask_media(self, copy: MaskedCopy, flow: Flow) -> None:
        """Keep the headers of RTP and RTCP next to STUN or DTLS, which prove that it is media."""
        if copy.old[0] >> 6 != 2 or ("media", flow) not in self._seen:
            raise DecodeError("no media")
        copy.keep(0, 8 if 192 <= copy.number(1, 1) <= 223 else 12)

    def _mask_quic(self, copy: MaskedCopy, flow: Flow) -> None:
        """Keep type and version: the first packets are encrypted with keys that are public."""
        if len(copy.old) < _QUIC_SHORTEST:
            raise DecodeError("too short for QUIC")
        if copy.old[0] >> 6 == 1 and ("QUIC", flow) in self._seen:
            copy.put(0, b"\x40")
            return
        known = copy.number(1, 4) in _QUIC_VERSIONS and copy.old[5] <= _QUIC_MAX_ID
        if copy.old[0] < 0xC0 or not known:
            raise DecodeError("no QUIC")
        copy.keep(0, 6)
        self._note_flow("QUIC", flow)

    def _mask_stun(self, copy: MaskedCopy, flow: Flow) -> None:
        message = stun.decode(copy.old)
        attributes = [
            (kind, self._replace_attribute(message, kind, value))
            for kind, value in message.attributes
        ]
        holds = stun.fingerprint_holds(copy.old) is True
        new = message._replace(attributes=tuple(attributes[:-1] if holds else attributes))
        copy.put(0, stun.encode(new, fingerprint=holds))
        self._note_flow("media", flow)

    def _replace_attribute(self, message: stun.StunMessage, kind: int, value: bytes) -> bytes:
        """Keep priorities and error codes, and replace users and the mapped address."""
        new = MaskedCopy(value)
        if kind in _STUN_NUMBERS:
            new.keep(0, 4)
        elif kind == stun.Attribute.USERNAME:
            new.put(0, b":".join(map(self._names.name, value.split(b":"))))
        elif kind == stun.Attribute.XOR_MAPPED_ADDRESS and len(value) in (8, 20):
            mask = stun.MAGIC.to_bytes(4) + message.transaction
            plain = bytes(a ^ b for a, b in zip(value[4:], mask, strict=False))
            other = (self._names.ipv4 if len(plain) == 4 else self._names.ipv6)(plain)
            new.keep(0, 4)
            new.put(4, bytes(a ^ b for a, b in zip(other, mask, strict=False)))
        return bytes(new.new)

    # ---- robots ---------------------------------------------------------------------------------

    def _mask_teaching(self, copy: MaskedCopy, _: Flow) -> None:
        """Keep the numbers of a teaching frame, and replace the names of actions."""
        frame = teaching.decode(copy.old)
        payload = MaskedCopy(frame.payload)
        about = frame.type, frame.command, frame.payload
        reply = fields.direction_of(*about) is fields.FrameDirection.REPLY
        layout = fields.layout_of(*about, reply=reply)
        if layout is not None and (layout.tag or len(frame.payload) > fields.SHORT):
            _mask_fields(payload, layout.fields, self._names)
        elif layout is not None and (reply or layout.key != "parameter-sync"):
            # A status looks like a short request, and has a note behind its first word.
            payload.keep(0, 4)
            if frame.command == teaching.CommandId.CONTROL_MODE and frame.payload[4:6] == b"\0\0":
                payload.keep(6, 2)
        copy.put(0, teaching.encode(frame._replace(payload=bytes(payload.new))))

    def _mask_a1(self, copy: MaskedCopy, _: Flow) -> None:
        """Keep the numbers of a frame of an A1 or Go1, and replace robot and serial number."""
        from rote.wire.a1 import codec, formats, layout  # noqa: PLC0415 - rare, and slow to load

        frame = codec.inspect(copy.old)
        if frame.seal is None or frame.fault is codec.FrameFault.HEAD:
            raise DecodeError("no frame of an A1")
        body = bytearray(copy.old[:-4])
        where = slice(4, 12) if formats.BY_SIZE[len(copy.old)].is_go1 else slice(3, 9)
        if any(body[where]):
            body[where] = self._names.opaque(bytes(body[where]), "serial number")
        crc = layout.crc(bytes(body))
        sealed = layout.encrypted(crc) if frame.seal is codec.Seal.ENCRYPTED else crc
        copy.put(0, bytes(body) + sealed)

    def _mask_discovery(self, copy: MaskedCopy, _: Flow) -> None:
        """Write the document of a robot's discovery again, with another serial and address."""
        document = discovery.json_object(copy.old, "discovery")
        if document.get("name") != discovery.NAME:
            raise DecodeError("no discovery")
        new = {"name": discovery.NAME}
        if isinstance(serial := document.get("sn"), str):
            new["sn"] = self._names.name(serial.encode(errors="replace")).decode()
        try:
            packed = IPv4Address(str(document.get("ip"))).packed
            new["ip"] = str(IPv4Address(self._names.ipv4(packed)))
        except AddressValueError:
            pass
        # The shortest form of JSON, filled up with spaces.
        text = json.dumps(new, separators=(",", ":"), ensure_ascii=False).encode()
        copy.put(0, text.ljust(len(copy.old)))

    def _mask_rtps(self, copy: MaskedCopy, _: Flow) -> None:
        """Keep headers and numbers of DDS, replace participants and topics, and clear samples."""
        if copy.old[:5] != b"RTPS\2" or len(copy.old) < 20:
            raise DecodeError("no RTPS")
        copy.keep(0, 8)
        copy.put(8, self._names.opaque(copy.old[8:20], "DDS participant"))
        at = 20
        while at < len(copy.old):
            kind, flags = copy.number(at, 1), copy.number(at + 1, 1)
            order = "<" if flags & 1 else ">"
            size = copy.number(at + 2, 2, order)
            copy.keep(at, 4)
            at += 4
            end = at + size if size else len(copy.old)
            if kind == _RTPS_INFO_TARGET and size == 12 and any(copy.old[at:end]):
                copy.put(at, self._names.opaque(copy.old[at:end], "DDS participant"))
            elif kind == _RTPS_DATA:
                self._mask_sample(copy, at, min(end, len(copy.old)), order, flags)
            at = end

    def _mask_sample(self, copy: MaskedCopy, at: int, end: int, order: str, flags: int) -> None:
        """Keep whose sample it is and its number, and in discovery what is published."""
        copy.keep(at, 20)
        start = at + 4 + copy.number(at + 2, 2, order)
        if copy.number(at + 8, 4) not in _RTPS_DISCOVERY or flags & 2 or start + 4 > end:
            return
        copy.keep(start, 4)
        order = "<" if copy.old[start + 1] & 1 else ">"
        start += 4
        while start + 4 <= end:
            kind, size = copy.number(start, 2, order), copy.number(start + 2, 2, order)
            if start + 4 + size > end:
                return
            copy.keep(start, 4)
            if kind == _RTPS_SENTINEL:
                return
            text = copy.old[start + 8 : start + 4 + size].split(b"\0")[0]
            if kind in _RTPS_NAMES:
                copy.keep(start + 4, 4)
                copy.put(start + 8, text if text in _TOPICS else self._names.name(text))
            start += 4 + size


def _mask_fields(
    copy: MaskedCopy, parts: tuple[fields.FrameField, ...], names: Pseudonyms, at: int = 0
) -> None:
    """Keep the numbers of a teaching frame, and replace its names."""
    for part in fields.read(parts, copy.old[at:], at):
        kind, size = part.field.type, len(part.raw)
        if kind is fields.FieldType.GROUP:
            for row in range(part.offset, part.offset + size, part.field.unit_size):
                _mask_fields(copy, part.field.parts, names, row)
        elif kind is fields.FieldType.NAME:
            copy.replace(part.offset, len(part.raw.split(b"\0")[0]), names.name)
        elif kind in _FRAME_NUMBERS or part.raw == part.field.default:
            copy.keep(part.offset, size)


# ---- services of the network --------------------------------------------------------------------


def _mask_service(port: int, names: Pseudonyms, copy: MaskedCopy, _: Flow) -> None:
    """Mask a protocol without a marker of its own; raises `DecodeError` for other contents."""
    if port in (_DNS, _MDNS, _LLMNR, _NETBIOS_NAMES):
        dns.mask_dns(copy, names, netbios=port == _NETBIOS_NAMES)
    elif port == _NETBIOS_DATAGRAMS:
        copy.keep(0)
        dns.mask_name(copy, 14, names)
    elif port in (_DHCP_SERVER, _DHCP_CLIENT):
        _mask_dhcp(copy, names)
    elif port == _WS_DISCOVERY and copy.old.startswith(_XML):
        copy.keep(0, 4)
    elif port in (_NTP, _DHCP6_CLIENT, _DHCP6_SERVER):
        copy.keep(0)  # the version and the mode, or the type of message
    else:
        raise DecodeError("not the service of this port")


def _mask_dhcp(copy: MaskedCopy, names: Pseudonyms) -> None:
    """Replace addresses and host names by their position; other options are cleared."""
    if copy.number(236, 4) != _DHCP_COOKIE:
        raise DecodeError("no DHCP")
    copy.keep(0, 12)
    for at in range(12, 28, 4):
        copy.replace(at, 4, names.ipv4)
    copy.replace(28, 6, names.hardware)
    copy.keep(236, 4)
    at = 240
    while at < len(copy.old):
        code = copy.old[at]
        copy.keep(at, 2 if code else 1)
        if code == _DHCP_END:
            return
        size, start = copy.number(at + 1, 1) if code else 0, at + 2
        at = start + size if code else at + 1
        if code in _DHCP_ADDRESSES and size == 4:
            copy.replace(start, 4, names.ipv4)
        elif code in _DHCP_NAMES:
            copy.replace(start, size, names.name)
        elif code == _DHCP_MESSAGE:
            copy.keep(start, size)


def _mask_ssdp(copy: MaskedCopy, _: Flow) -> None:
    line = next((line for line in _SSDP_LINES if copy.old.startswith(line)), None)
    if line is None:
        raise DecodeError("no SSDP")
    copy.keep(0, len(line))


def _mask_http(copy: MaskedCopy, _: Flow) -> None:
    """Keep method, documented path, status and length of a message, and whether it rejects."""
    start = _HTTP_START.match(copy.old)
    if start is None:
        raise DecodeError("no HTTP")
    head, blank, body = copy.old.partition(b"\r\n\r\n")
    line_end = _HTTP_LINE_END.search(copy.old, start.end())
    for span in (start, line_end, _HTTP_LENGTH.search(head + blank[:2])):
        if span is not None:
            copy.keep(span.start(), span.end() - span.start())
    copy.keep(len(head), len(blank))
    if body.startswith(b"{"):  # an answer of the signalling that is not encrypted
        copy.keep(len(head + blank))
        if _REJECTED in body:
            copy.keep(copy.old.index(_REJECTED, len(head)), len(_REJECTED))
