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

from rote.capture.scrub.handshakes import mask_dtls, mask_tls
from rote.capture.scrub.pseudonyms import GENERIC_LABELS, MaskedCopy, Pseudonyms
from rote.errors import DecodeError
from rote.wire import discovery
from rote.wire.packets import stun
from rote.wire.teaching import codec as teaching
from rote.wire.teaching import fields

# ---- names in DNS --------------------------------------------------------------------------------

_NAMED_RECORDS = {2: 0, 5: 0, 12: 0, 39: 0, 15: 2, 33: 6}
"""Types of records that contain one name, and the offset of the name in the record's data."""
_A, _TXT, _AAAA = 1, 16, 28
_MAX_ENTRIES, _MAX_JUMPS = 256, 16
_NETBIOS_LABEL = re.compile(rb"[A-P]{32}")
_IPV6_DIGITS = re.compile(rb"(?i)[0-9a-f]{32}")
_KEPT = GENERIC_LABELS | frozenset(
    b"in-addr ip6 b lb db dr r _tcp _udp _sub _services _dns-sd _http _https _ssh _smb _ipp _ipps "
    b"_printer _pdl-datastream _scanner _googlecast _airplay _raop _companion-link _homekit _hap "
    b"_device-info _spotify-connect _workstation _matter _mqtt _ntp _webrtc _ros-master".split()
)
"""Labels that name a kind of service or a domain that many share, not one device."""


def mask_dns(copy: MaskedCopy, names: Pseudonyms, *, netbios: bool = False) -> None:
    """Keep the structure of a DNS message, and replace the names and addresses in it.

    Raises `DecodeError` if it is damaged. With `netbios`, the data of records becomes zeros.
    """
    # The header: id and flags (4 bytes), then the number of entries in each of four sections.
    questions, *others = (copy.read_number(offset) for offset in range(4, 12, 2))
    if not 0 < questions + sum(others) <= _MAX_ENTRIES:
        raise DecodeError("a DNS message with an implausible number of entries")
    copy.keep(0, 12)
    offset = 12
    for _ in range(questions):
        offset = mask_name(copy, offset, names)
        copy.keep(offset, 4)  # type and class
        offset += 4
    for _ in range(sum(others)):
        offset = mask_name(copy, offset, names)
        # After the name: type, class, lifetime and length of the data.
        end = offset + 10 + copy.read_number(offset + 8)
        if not netbios:
            _mask_record(copy, offset, end, names)
        copy.keep(offset, 10)
        offset = end
    if offset > len(copy.old):
        raise DecodeError("a DNS message that ends too early")


def mask_dns_stream(copy: MaskedCopy, names: Pseudonyms) -> None:
    """Mask the DNS messages of a TCP segment; each is preceded by its length.

    Raises `DecodeError` for anything but whole messages.
    """
    offset = 0
    while offset < len(copy.old):
        end = offset + 2 + copy.read_number(offset)
        if end > len(copy.old):
            raise DecodeError("a message that continues in the next segment")
        inner = MaskedCopy(copy.old[offset + 2 : end])
        mask_dns(inner, names)
        copy.keep(offset, 2)
        copy.embed(offset + 2, inner)
        offset = end


def _mask_record(copy: MaskedCopy, offset: int, end: int, names: Pseudonyms) -> None:
    """Replace the address or name in a DNS record; of texts, keep only the lengths.

    The record, without its name, is from `offset` to `end`.
    """
    kind, start = copy.read_number(offset), offset + 10
    if kind == _A and end - start == 4:
        copy.replace(start, 4, names.ipv4)
    elif kind == _AAAA and end - start == 16:
        copy.replace(start, 16, names.ipv6)
    elif kind in _NAMED_RECORDS:
        start += _NAMED_RECORDS[kind]
        copy.keep(start - 2, 2 if _NAMED_RECORDS[kind] else 0)  # the preference, or the port
        mask_name(copy, start, names)
    while kind == _TXT and start < end:
        copy.keep(start)  # how long the next text is
        start += 1 + copy.read_number(start, 1)


def mask_name(copy: MaskedCopy, offset: int, names: Pseudonyms) -> int:
    """Replace the labels of a DNS name with pseudonyms, up to its end or its first pointer.

    Return the offset after it.
    """
    spans: list[tuple[int, int]] = []  # the offset and the size of each label
    inline_count, end, jumps = 0, 0, 0
    while size := copy.read_number(offset, 1):
        if size >= 0xC0:  # a pointer: the rest of the name is somewhere else in the message
            if not jumps:
                copy.keep(offset, 2)
                inline_count, end = len(spans), offset + 2
            jumps += 1
            offset = copy.read_number(offset) & 0x3FFF
        else:
            spans.append((offset + 1, size))
            offset += 1 + size
        if jumps > _MAX_JUMPS or 63 < size < 0xC0:
            raise DecodeError("a DNS name without an end")
    if not jumps:
        inline_count, end = len(spans), offset + 1
        copy.keep(offset, 1)  # the zero that ends the name
    # The labels behind a pointer are part of another name, which is masked by itself. They are
    # passed only to recognise a name that is an address; only the labels before it are written.
    new_labels = _replace_labels([copy.old[start : start + size] for start, size in spans], names)
    for (start, _), label in zip(spans[:inline_count], new_labels, strict=False):
        copy.keep(start - 1, 1)  # the size of the label
        copy.put(start, label)
    return end


def _replace_labels(labels: list[bytes], names: Pseudonyms) -> list[bytes]:
    """Return other labels of the same lengths for the labels of one name.

    In the name of a reverse lookup, the labels are the parts of an address, in reverse order.
    """
    suffix = [label.lower() for label in labels[-2:]]
    if suffix not in ([b"in-addr", b"arpa"], [b"ip6", b"arpa"]):
        return [_replace_label(label, names) for label in labels]
    host = labels[:-2]
    numbers = [int(label) if label.isdigit() else 256 for label in host]  # 256 is no octet
    if len(host) == 4 and max(numbers) < 256:
        new = [b"%d" % number for number in names.ipv4(bytes(numbers[::-1]))[::-1]]
    elif len(host) == 32 and _IPV6_DIGITS.fullmatch(digits := b"".join(host[::-1])):
        new = [digit.encode() for digit in names.ipv6(bytes.fromhex(digits.decode())).hex()[::-1]]
    else:  # a network, or a service in one
        new = [label if label.lower() in _KEPT else b"" for label in host]
    return [label.rjust(len(old), b"0") for old, label in zip(host, new, strict=True)] + suffix


def _replace_label(label: bytes, names: Pseudonyms) -> bytes:
    """Return another label of the same length, unless it names a service or a common domain."""
    if _NETBIOS_LABEL.fullmatch(label):
        return b"A" * len(label)  # an empty NetBIOS name
    return label if label.lower() in _KEPT else names.name(label)


# ---- payloads ------------------------------------------------------------------------------------


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
"""Topics that every robot has; their names identify no robot."""


class Flow(NamedTuple):
    """The two ends of a conversation, the same for both directions."""

    ends: frozenset[tuple[bytes, int]]
    """Addresses and ports."""
    ports: frozenset[int]


Rule = Callable[[MaskedCopy, Flow], None]
"""Masks a payload of one protocol; raises `DecodeError` if it is of another."""


class Payloads:
    """Masks payloads, with one set of pseudonyms for all."""

    def __init__(self, names: Pseudonyms) -> None:
        self.cleared: Counter[str] = Counter()
        """Number of payloads that have zeros instead of some contents, by kind."""
        self.encrypted: Counter[str] = Counter()
        """Number of payloads whose encrypted contents stay, by kind."""
        self._names = names
        self._noted: set[tuple[str, Flow]] = set()
        """What earlier packets have proven about a flow: `encrypted`, `media` or `QUIC`."""
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
        return self._apply_first_fitting(rules, flow, payload, "unknown datagrams")

    def mask_segment(self, flow: Flow, payload: bytes) -> bytes:
        """Return the payload of a TCP segment, masked."""
        rules = self._segments
        if _DNS in flow.ports:
            rules = {"DNS": lambda copy, _: mask_dns_stream(copy, self._names)}
        return self._apply_first_fitting(rules, flow, payload, "unknown segments")

    def _apply_first_fitting(
        self, rules: dict[str, Rule], flow: Flow, payload: bytes, unknown: str
    ) -> bytes:
        """Return the payload masked by the first rule that accepts it, otherwise zeros.

        Payloads with zeros are counted: under the name of the rule, or under `unknown`.
        """
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
        """Remember what a packet has proven about its flow."""
        if len(self._noted) < _MAX_FLOWS:
            self._noted.add((kind, flow))

    # ---- WebRTC and QUIC ------------------------------------------------------------------------

    def _mask_dtls(self, copy: MaskedCopy, flow: Flow) -> None:
        """Mask DTLS records; encrypted contents stay after a handshake."""
        # Without the server's hello nothing proves that contents are encrypted, and no key log
        # could decrypt them.
        encrypted = ("encrypted", flow) in self._noted
        if mask_dtls(copy, self._names, encrypted=encrypted):
            self._note_flow("encrypted", flow)
        self._note_flow("media", flow)
        self.encrypted["DTLS"] += encrypted

    def _mask_media(self, copy: MaskedCopy, flow: Flow) -> None:
        """Keep only the header of RTP or RTCP, in flows that STUN or DTLS proves to be media."""
        if copy.old[0] >> 6 != 2 or ("media", flow) not in self._noted:
            raise DecodeError("not media")
        is_rtcp = 192 <= copy.read_number(1, 1) <= 223
        copy.keep(0, 8 if is_rtcp else 12)

    def _mask_quic(self, copy: MaskedCopy, flow: Flow) -> None:
        """Keep type and version only: anyone can decrypt the first packets of a connection."""
        if len(copy.old) < _QUIC_SHORTEST:
            raise DecodeError("too short for QUIC")
        has_short_header = copy.old[0] >> 6 == 1
        if has_short_header and ("QUIC", flow) in self._noted:
            copy.put(0, b"\x40")
            return
        has_known_version = copy.read_number(1, 4) in _QUIC_VERSIONS
        if copy.old[0] < 0xC0 or not has_known_version or copy.old[5] > _QUIC_MAX_ID:
            raise DecodeError("not QUIC")
        copy.keep(0, 6)
        self._note_flow("QUIC", flow)

    def _mask_stun(self, copy: MaskedCopy, flow: Flow) -> None:
        """Mask the attributes of a STUN message; its fingerprint, a CRC, is made again."""
        message = stun.decode(copy.old)
        attributes = [
            (kind, self._replace_attribute(message, kind, value))
            for kind, value in message.attributes
        ]
        has_fingerprint = stun.fingerprint_holds(copy.old) is True
        new = message._replace(attributes=tuple(attributes[:-1] if has_fingerprint else attributes))
        copy.put(0, stun.encode(new, fingerprint=has_fingerprint))
        self._note_flow("media", flow)

    def _replace_attribute(self, message: stun.StunMessage, kind: int, value: bytes) -> bytes:
        """Return a masked attribute: numbers stay, names and addresses change, others are zeros."""
        new = MaskedCopy(value)
        if kind in _STUN_NUMBERS:
            new.keep(0, 4)
        elif kind == stun.Attribute.USERNAME:
            new.put(0, b":".join(map(self._names.name, value.split(b":"))))
        elif kind == stun.Attribute.XOR_MAPPED_ADDRESS and len(value) in (8, 20):
            # The attribute has the address combined by XOR with this mask.
            mask = stun.MAGIC.to_bytes(4) + message.transaction
            address = bytes(a ^ b for a, b in zip(value[4:], mask, strict=False))
            replacement = (self._names.ipv4 if len(address) == 4 else self._names.ipv6)(address)
            new.keep(0, 4)
            new.put(4, bytes(a ^ b for a, b in zip(replacement, mask, strict=False)))
        return bytes(new.new)

    # ---- robots ---------------------------------------------------------------------------------

    def _mask_teaching(self, copy: MaskedCopy, _: Flow) -> None:
        """Keep the numbers of a teaching frame, and replace the names of actions."""
        frame = teaching.decode(copy.old)
        payload = MaskedCopy(frame.payload)
        content = frame.type, frame.command, frame.payload
        reply = fields.find_direction(*content) is fields.FrameDirection.REPLY
        layout = fields.find_layout(*content, reply=reply)
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
            raise DecodeError("not a frame of an A1")
        body = bytearray(copy.old[:-4])
        # A Go1's serial number; of an A1, the number of the robot and its serial number.
        serial = slice(4, 12) if formats.BY_SIZE[len(copy.old)].is_go1 else slice(3, 9)
        if any(body[serial]):
            body[serial] = self._names.opaque(bytes(body[serial]), "serial number")
        crc = layout.crc(bytes(body))
        sealed = layout.encrypt_crc(crc) if frame.seal is codec.Seal.ENCRYPTED else crc
        copy.put(0, bytes(body) + sealed)

    def _mask_discovery(self, copy: MaskedCopy, _: Flow) -> None:
        """Replace the serial number and the address in a robot's discovery message, a JSON text."""
        document = discovery.decode_json_object(copy.old, "discovery")
        if document.get("name") != discovery.NAME:
            raise DecodeError("not a discovery message")
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
        """Keep headers and numbers of DDS, and replace participants and topics.

        The contents of samples become zeros.
        """
        if copy.old[:5] != b"RTPS\2" or len(copy.old) < 20:
            raise DecodeError("not RTPS")
        copy.keep(0, 8)
        copy.put(8, self._names.opaque(copy.old[8:20], "DDS participant"))
        # Submessages follow, each with a header: kind, flags (bit 0 is the byte order), size.
        offset = 20
        while offset < len(copy.old):
            kind, flags = copy.read_number(offset, 1), copy.read_number(offset + 1, 1)
            order = "<" if flags & 1 else ">"
            size = copy.read_number(offset + 2, 2, order)
            copy.keep(offset, 4)
            offset += 4
            end = offset + size if size else len(copy.old)  # 0: it fills the rest
            if kind == _RTPS_INFO_TARGET and size == 12 and any(copy.old[offset:end]):
                copy.put(offset, self._names.opaque(copy.old[offset:end], "DDS participant"))
            elif kind == _RTPS_DATA:
                self._mask_sample(copy, offset, min(end, len(copy.old)), order, flags)
            offset = end

    def _mask_sample(self, copy: MaskedCopy, offset: int, end: int, order: str, flags: int) -> None:
        """Keep a sample's writer and number, and in discovery the topics that every robot has.

        The sample is from `offset` to `end`; `order` and `flags` are those of its submessage.
        """
        # 4 bytes with the offset of the contents, then reader (4), writer (4) and number (8).
        copy.keep(offset, 20)
        start = offset + 4 + copy.read_number(offset + 2, 2, order)
        if copy.read_number(offset + 8, 4) not in _RTPS_DISCOVERY or flags & 2 or start + 4 > end:
            return
        copy.keep(start, 4)
        order = "<" if copy.old[start + 1] & 1 else ">"
        start += 4
        # A list of parameters: kind, size, value. A text follows its length of 4 bytes.
        while start + 4 <= end:
            kind, size = copy.read_number(start, 2, order), copy.read_number(start + 2, 2, order)
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
    copy: MaskedCopy, parts: tuple[fields.FrameField, ...], names: Pseudonyms, start: int = 0
) -> None:
    """Keep the numbers of a teaching frame's payload, and replace its names.

    `parts` are the fields that begin at `start`.
    """
    for part in fields.read_fields(parts, copy.old[start:], start):
        kind, size = part.field.type, len(part.raw)
        if kind is fields.FieldType.GROUP:
            for row in range(part.offset, part.offset + size, part.field.unit_size):
                _mask_fields(copy, part.field.parts, names, row)
        elif kind is fields.FieldType.NAME:
            copy.replace(part.offset, len(part.raw.split(b"\0")[0]), names.name)
        elif kind in _FRAME_NUMBERS or part.raw == part.field.default:
            copy.keep(part.offset, size)


# ---- services in a network ----------------------------------------------------------------------


def _mask_service(port: int, names: Pseudonyms, copy: MaskedCopy, _: Flow) -> None:
    """Mask a protocol that only its port identifies; raises `DecodeError` for other contents."""
    if port in (_DNS, _MDNS, _LLMNR, _NETBIOS_NAMES):
        mask_dns(copy, names, netbios=port == _NETBIOS_NAMES)
    elif port == _NETBIOS_DATAGRAMS:
        copy.keep(0)  # the type of message
        mask_name(copy, 14, names)
    elif port in (_DHCP_SERVER, _DHCP_CLIENT):
        _mask_dhcp(copy, names)
    elif port == _WS_DISCOVERY and copy.old.startswith(_XML):
        copy.keep(0, 4)
    elif port in (_NTP, _DHCP6_CLIENT, _DHCP6_SERVER):
        copy.keep(0)  # the version and the mode, or the type of message
    else:
        raise DecodeError("not the service of this port")


def _mask_dhcp(copy: MaskedCopy, names: Pseudonyms) -> None:
    """Replace the addresses and host names in a DHCP message; other options become zeros."""
    if copy.read_number(236, 4) != _DHCP_COOKIE:
        raise DecodeError("not DHCP")
    # A head of 12 bytes, four IPv4 addresses, the hardware address; options after the cookie.
    copy.keep(0, 12)
    for offset in range(12, 28, 4):
        copy.replace(offset, 4, names.ipv4)
    copy.replace(28, 6, names.hardware)
    copy.keep(236, 4)
    offset = 240
    while offset < len(copy.old):
        code = copy.old[offset]
        copy.keep(offset, 2 if code else 1)
        if code == _DHCP_END:
            return
        if not code:  # padding, the only option without a size
            offset += 1
            continue
        size, start = copy.read_number(offset + 1, 1), offset + 2
        offset = start + size
        if code in _DHCP_ADDRESSES and size == 4:
            copy.replace(start, 4, names.ipv4)
        elif code in _DHCP_NAMES:
            copy.replace(start, size, names.name)
        elif code == _DHCP_MESSAGE:
            copy.keep(start, size)


def _mask_ssdp(copy: MaskedCopy, _: Flow) -> None:
    """Keep only the first line of an SSDP message."""
    line = next((line for line in _SSDP_LINES if copy.old.startswith(line)), None)
    if line is None:
        raise DecodeError("not SSDP")
    copy.keep(0, len(line))


def _mask_http(copy: MaskedCopy, _: Flow) -> None:
    """Keep method, status and length of an HTTP message, and a path or rejection of signalling."""
    start = _HTTP_START.match(copy.old)
    if start is None:
        raise DecodeError("not HTTP")
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
