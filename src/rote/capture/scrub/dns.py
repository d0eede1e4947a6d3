"""Replaces names in DNS, mDNS, LLMNR and NetBIOS messages, byte for byte in place."""

import struct
from collections.abc import Callable

from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError

PORTS = frozenset((53, 5353, 5355))
_NAMED_RECORDS = {2: 0, 5: 0, 12: 0, 39: 0, 15: 2, 33: 6}
"""Records that contain one name, and where in them it begins."""
_A, _SOA, _HINFO, _TXT, _AAAA, _OPT = 1, 6, 13, 16, 28, 41
_NB, _NBSTAT = 32, 33
_PLAIN_LABELS = {b"local", b"arpa", b"in-addr", b"ip6", b"b", b"lb", b"db", b"dr", b"r", b"dns-sd"}
_SERVICES = frozenset(
    b"_tcp _udp _sub _services _dns-sd _http _https _ssh _sftp-ssh _smb _nfs _ftp _ipp _ipps "
    b"_printer _pdl-datastream _scanner _uscan _uscans _googlecast _googlezone _airplay _raop "
    b"_companion-link _homekit _hap _sleep-proxy _device-info _rdlink _apple-mobdev2 _spotify-"
    b"connect _sonos _workstation _rfb _adisk _afpovertcp _daap _touch-able _androidtvremote2 "
    b"_matter _matterc _meshcop _trel _mqtt _ntp _sip _coap _webrtc _ros-master _unitree".split()
)
"""Labels of services that name a kind of device, not one device."""


def _learn_nothing(_: bytes) -> None:
    """Learn nothing."""


class DnsRewriter:
    """Replaces the names and addresses in one message."""

    def __init__(
        self,
        message: bytes,
        names: Pseudonyms,
        learn: Callable[[bytes], None] = _learn_nothing,
        learn_address: Callable[[bytes], None] = _learn_nothing,
    ) -> None:
        self._message = bytearray(message)
        self._names = names
        self._learn, self._learn_address = learn, learn_address
        self._done: set[int] = set()
        self.netbios = False

    def rewrite(self) -> bytes:
        """Return the message with replaced names; raises `DecodeError` if it cannot be read."""
        try:
            questions, *others = struct.unpack_from(">HHHH", self._message, 4)
            at = 12
            for _ in range(questions):
                at = self._replace_name(at) + 4
            for _ in range(sum(others)):
                at = self._rewrite_record(self._replace_name(at))
        except (struct.error, IndexError):
            raise DecodeError("a DNS message that does not hold what it says") from None
        if at > len(self._message):
            raise DecodeError("a DNS message that ends too early")
        self._message[at:] = bytes(len(self._message) - at)
        return bytes(self._message)

    def _rewrite_record(self, at: int) -> int:
        kind, _, _, size = struct.unpack_from(">HHIH", self._message, at)
        start, end = at + 10, at + 10 + size
        if end > len(self._message):
            raise IndexError
        if self.netbios and kind in (_NB, _NBSTAT):
            self._rewrite_netbios_record(kind, start, end)
        elif kind == _A and size == 4:
            self._replace_address(start, 4)
        elif kind == _AAAA and size == 16:
            self._replace_address(start, 16)
        elif kind in _NAMED_RECORDS:
            self._replace_name(start + _NAMED_RECORDS[kind])
        elif kind == _SOA:
            self._replace_name(self._replace_name(start))
        elif kind in (_HINFO, _TXT):
            self._replace_texts(start, end)
        elif kind == _OPT:
            self._clear_options(start, end)
        else:
            self._message[start:end] = bytes(size)
        return int(end)

    def _replace_address(self, at: int, size: int) -> None:
        old = bytes(self._message[at : at + size])
        self._learn_address(old)
        change = self._names.ipv4 if size == 4 else self._names.ipv6
        self._message[at : at + size] = change(old)

    def _replace_texts(self, at: int, end: int) -> None:
        while at < end:
            size = min(self._message[at], end - at - 1)
            text = bytes(self._message[at + 1 : at + 1 + size])
            key, equals, value = text.partition(b"=")
            # The key names the property; the value may identify its owner.
            kept, secret = (key + equals, value) if equals else (b"", text)
            self._learn(secret)
            new = kept + self._names.name(secret)
            self._message[at + 1 : at + 1 + size] = new
            at += 1 + size

    def _clear_options(self, at: int, end: int) -> None:
        """Clear the contents of EDNS options: networks, cookies, hardware addresses."""
        while at + 4 <= end:
            _, size = struct.unpack_from(">HH", self._message, at)
            stop = min(at + 4 + size, end)
            self._message[at + 4 : stop] = bytes(stop - at - 4)
            at = stop

    def _replace_name(self, at: int) -> int:
        """Replace the labels of a name; return the offset behind it."""
        spans: list[tuple[int, int]] = []
        while size := self._message[at]:
            if size >= 0xC0:
                self._replace_labels(spans, ended=False)
                return at + 2
            if size > 63 or at + 1 + size >= len(self._message):
                raise IndexError
            spans.append((at + 1, size))
            at += 1 + size
        self._replace_labels(spans, ended=True)
        return at + 1

    def _replace_labels(self, spans: list[tuple[int, int]], *, ended: bool) -> None:
        labels = [bytes(self._message[at : at + size]) for at, size in spans]
        if labels[-2:] == [b"in-addr", b"arpa"] and len(labels) == 6:
            numbers = bytes(int(label) & 0xFF for label in labels[:4] if label.isdigit())
            if len(numbers) == 4:
                new = [b"%d" % n for n in self._names.ipv4(numbers[::-1])[::-1]]
                for (at, size), label in zip(spans, new, strict=False):
                    self._message[at : at + size] = label.rjust(size, b"0")
                self._done.update(at for at, _ in spans)
        top = spans[-1][0] if ended and len(spans) > 1 else None
        for (at, size), label in zip(spans, labels, strict=True):
            if at not in self._done:
                self._message[at : at + size] = self._replace_label(label, top=at == top)
            self._done.add(at)

    def _replace_label(self, label: bytes, *, top: bool) -> bytes:
        if self.netbios and len(label) == 32:
            return encode_netbios_name(self._replace_netbios_name(decode_netbios_name(label)))
        if label.lower() in _SERVICES or label in _PLAIN_LABELS or top:
            return label
        self._learn(label)
        return self._names.name(label)

    # ---- NetBIOS --------------------------------------------------------------------------------

    def _replace_netbios_name(self, name: bytes) -> bytes:
        """Replace a name of 15 bytes and a kind."""
        text = name[:15].rstrip(b" \0")
        if text in (b"*", b"", b"\1\2__MSBROWSE__\2"):
            return name
        self._learn(text)
        return self._names.name(text) + name[len(text) :]

    def _rewrite_netbios_record(self, kind: int, at: int, end: int) -> None:
        if kind == _NB:
            for offset in range(at + 2, end - 3, 6):
                self._replace_address(offset, 4)
            return
        count = self._message[at]
        offset = at + 1
        for _ in range(count):
            if offset + 18 > end:
                raise IndexError
            name = bytes(self._message[offset : offset + 16])
            self._message[offset : offset + 16] = self._replace_netbios_name(name)
            offset += 18
        if offset + 6 <= end:
            mac = bytes(self._message[offset : offset + 6])
            self._learn_address(mac)
            self._message[offset : offset + 6] = self._names.hardware(mac)
        self._message[offset + 6 : end] = bytes(max(0, end - offset - 6))


def decode_netbios_name(label: bytes) -> bytes:
    """Return the 16 bytes of a NetBIOS name; each is written as two letters."""
    halves = [(letter - ord("A")) & 15 for letter in label]
    return bytes(high << 4 | low for high, low in zip(halves[::2], halves[1::2], strict=True))


def encode_netbios_name(name: bytes) -> bytes:
    """Return the label of a NetBIOS name of 16 bytes."""
    return bytes(ord("A") + half for byte in name for half in (byte >> 4, byte & 15))
