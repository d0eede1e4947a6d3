"""Learns identifiers from all messages in a first pass, and replaces them in a second pass.

An identifier is replaced in every likely form: a name in either case, in UTF-16 or percent-encoded;
a hardware address or a UUID as bytes and as hexadecimal digits with any separators; an address as
bytes and as text. A replacement has the same length.
"""

import re
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import AddressValueError, IPv6Address
from urllib.parse import quote_from_bytes
from uuid import UUID

from rote.capture.scrub.pseudonyms import Pseudonyms, Tally
from rote.wire.discovery import NAME

MAX_IDENTIFIERS = 50_000
_MIN_NAME, _MIN_NUMBER = 4, 6
"""Shorter names, or numbers as names, are not replaced: they may be part of anything."""
_SECRET_KEYS = (
    rb"[\w-]*(?:sn|serial|serial_?number|serial_?no|token|key|passwd|password|pwd|secret|user|"
    rb"user_?name|user_?id|uid|uuid|udn|email|e-mail|phone|alias|nick_?name|name|mac|mac_?address|"
    rb"ssid|bssid|imei|imsi|device_?id|device_?name|host_?name|friendly_?name|owner|session|"
    rb"session_?id|lat|lon|lng|latitude|longitude|address|city|account)"
)
_JSON = re.compile(rb'(?i)\\*"' + _SECRET_KEYS + rb'\\*"\s*:\s*\\*"([^"\\]{4,512})\\*"')
_JSON_NUMBER = re.compile(rb'(?i)\\*"' + _SECRET_KEYS + rb'\\*"\s*:\s*(-?\d[\d.]{4,40})')
_QUERY = re.compile(rb"(?i)[?&;\s]" + _SECRET_KEYS + rb"=([^&\s;\"'<>\x00]{4,512})")
_HEADER = re.compile(
    rb"(?im)^(?:authorization|proxy-authorization|cookie|set-cookie|host|referer|origin|from|"
    rb"user-agent|server|usn|x-[a-z-]+|[a-z-]*token|appsign|[a-z-]*serial[a-z-]*): *"
    rb"([^\r\n]{4,512})"
)
_ICE = re.compile(rb"ice-(?:ufrag|pwd):([A-Za-z0-9+/]{4,256})")
_XML = re.compile(
    rb"(?i)<(?:\w+:)?(?:friendlyname|serialnumber|computer|udn|modelnumber|hostname|name|devicename|"
    rb"endpointid)(?:\s[^>]{0,200})?>([^<]{4,256})<"
)
_URL = re.compile(rb"(?i)\b[a-z][a-z+.-]{1,15}://(?:[^\s/@<>\"']{1,64}@)?([A-Za-z0-9._-]{4,253})")
_EMAIL = re.compile(rb"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})+")
_PHONE = re.compile(rb"\+\d[\d ()-]{7,18}\d")
_LOCAL = re.compile(rb"(?i)\b([a-z0-9][a-z0-9-]{2,62})\.(?:local|lan|home|fritz\.box|internal)\b")
_UUID = re.compile(rb"(?i)[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}")
_HARDWARE = re.compile(
    rb"(?i)(?<![0-9a-f])(?:[0-9a-f]{2}([:-]))(?:[0-9a-f]{2}\1){4}[0-9a-f]{2}(?![0-9a-f])"
)
_LONG_HEX = re.compile(rb"(?i)(?:[0-9a-f]{2}:){9,63}[0-9a-f]{2}")
_IPV4 = re.compile(rb"(?<![\d.])(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})(?!\d|\.\d)")
_IPV4_DASHED = re.compile(rb"(?<!\d)(\d{1,3})[-_](\d{1,3})[-_](\d{1,3})[-_](\d{1,3})(?!\d)")
_IPV6 = re.compile(rb"(?i)(?<![0-9a-f:])(?=[0-9a-f:]{0,38}:)[0-9a-f:]{6,39}(?:%\w{1,15})?")
_ADDRESS_ONLY = re.compile(rb"[\d.]+(?::\d+)?|\[[0-9a-fA-F:]+\](?::\d+)?")
_COMMON = frozenset(
    b"admin android anonymous application client close data default device false google home host "
    b"html http https json keep-alive local localhost mail name none null ntp pool public robot "
    b"root server service text time true type unitree unknown upnp user websocket www".split()
)
"""Words that identify no device or person. As DNS labels they are replaced nevertheless."""
_KEPT = frozenset((NAME.encode(),))


class Identifiers:
    """The identifiers of a capture, and their replacements."""

    def __init__(self, pseudonyms: Pseudonyms, tally: Tally | None = None) -> None:
        self._pseudonyms = pseudonyms
        self._tally = tally or Tally()
        self._texts: dict[bytes, tuple[bytes, str]] = {}
        """Each form of a name in lower case: the name, and how it is encoded."""
        self._digits: dict[bytes, tuple[bytes, str]] = {}
        """Hexadecimal digits in lower case without separators: their replacement and kind."""
        self._raw: dict[bytes, tuple[bytes, str]] = {}
        """Identifiers as bytes: their replacement and kind."""
        self._patterns: tuple[re.Pattern[bytes], ...] | None = None
        """For any name, any hexadecimal digits and any bytes. None until they are needed, and again
        after an identifier was added: then they are compiled again.
        """

    # ---- learning -------------------------------------------------------------------------------

    def add_name(self, name: bytes) -> None:
        """Learn a name, a serial number or a secret."""
        name = name.strip(b" \t\0")
        min_bytes = _MIN_NUMBER if name.isdigit() else _MIN_NAME
        if len(name) < min_bytes or name in _KEPT or name.lower() in _COMMON:
            return
        if _ADDRESS_ONLY.fullmatch(name) and not name.isdigit():
            return  # addresses are learned separately
        if name.lower() in self._texts or not self._has_room():
            return
        self._patterns = None
        self._texts[name.lower()] = name, "bytes"
        with suppress(UnicodeDecodeError):
            text = name.decode()
            for codec in ("utf-16-le", "utf-16-be"):
                self._texts.setdefault(text.encode(codec).lower(), (name, codec))
        if (quoted := quote_from_bytes(name).encode()) != name:
            self._texts.setdefault(quoted.lower(), (name, "quoted"))

    def add_hardware(self, mac: bytes) -> None:
        """Learn a hardware address of six bytes."""
        new = self._pseudonyms.hardware(mac)
        # Bytes of one or two values, such as zeros, are no real address and occur by chance.
        if new == mac or len(mac) != 6 or len(set(mac)) < 3 or not self._has_room():
            return
        self._patterns = None
        kind = "hardware address"
        self._digits[mac.hex().encode()] = new.hex().encode(), kind
        for flipped_bit in (0, 2):  # as the end of an IPv6 address, where one bit is inverted
            old_id, new_id = (
                bytes((address[0] ^ flipped_bit,)) + address[1:3] + b"\xff\xfe" + address[3:]
                for address in (mac, new)
            )
            self._raw[old_id] = new_id, kind
        self._raw[mac] = new, kind
        self._raw[mac[::-1]] = new[::-1], kind

    def add_ipv4(self, address: bytes) -> None:
        """Learn an IPv4 address of four bytes."""
        new = self._pseudonyms.ipv4(address)
        # Fewer than three different bytes occur by chance, too.
        if new != address and len(set(address)) > 2 and self._has_room():
            self._patterns = None
            kind = "IPv4 address"
            self._raw.setdefault(address, (new, kind))
            self._raw.setdefault(address[::-1], (new[::-1], kind))
            self._digits.setdefault(address.hex().encode(), (new.hex().encode(), kind))

    def add_ipv6(self, address: bytes) -> None:
        """Learn an IPv6 address of sixteen bytes."""
        new = self._pseudonyms.ipv6(address)
        if new != address and self._has_room():
            self._patterns = None
            self._raw[address] = new, "IPv6 address"
            # The second half identifies an interface, unless it is multicast or too regular.
            if address[:1] != b"\xff" and len(set(address[8:])) > 4:
                self._raw.setdefault(address[8:], (new[8:], "IPv6 address"))

    def add_opaque(self, data: bytes, kind: str) -> None:
        """Learn an identifier of bytes, such as a UUID, and its form as hexadecimal digits."""
        if len(set(data)) < 3 or not self._has_room() or data in self._raw:
            return
        self._patterns = None
        new = self._pseudonyms.opaque(data)
        self._raw[data] = new, kind
        self._digits[data.hex().encode()] = new.hex().encode(), kind
        if kind == "UUID":  # its first three fields may be little-endian
            old_le, new_le = UUID(bytes=data).bytes_le, UUID(bytes=new).bytes_le
            self._raw[old_le] = new_le, kind

    def _has_room(self) -> bool:
        """Whether one more identifier may be added."""
        return len(self._texts) + len(self._raw) < MAX_IDENTIFIERS

    def learn(self, text: bytes) -> None:
        """Learn the identifiers in a text, found by their form or by the key before them."""
        self._learn_hex(text)
        self._learn_addresses(text)
        for pattern in _VALUE_PATTERNS:
            for found in pattern.finditer(text):
                self.add_name(found[1].strip())
        for pattern in (_EMAIL, _PHONE):
            for found in pattern.finditer(text):
                self.add_name(found[0])
        for found in _URL.finditer(text):
            if b"." in found[1] and not _is_standard_host(found[1]):
                self.add_name(found[1])

    def _learn_hex(self, text: bytes) -> None:
        for found in _UUID.finditer(text):
            self.add_opaque(_from_hex(found[0]), "UUID")
        for found in _HARDWARE.finditer(text):
            self.add_hardware(_from_hex(found[0]))
        for found in _LONG_HEX.finditer(text):
            self.add_opaque(_from_hex(found[0]), "fingerprint")

    def _learn_addresses(self, text: bytes) -> None:
        for found in _IPV6.finditer(text):
            if (address := _parse_ipv6(found[0])) is not None:
                self.add_ipv6(address)
        for pattern in (_IPV4, _IPV4_DASHED):
            for found in pattern.finditer(text):
                if (packed := _parse_ipv4(found)) is not None:
                    self.add_ipv4(packed)

    # ---- replacing ------------------------------------------------------------------------------

    def replace(self, payload: bytes, *, raw: bool = False) -> bytes:
        """Return a payload with identifiers replaced; with `raw`, also those written as bytes."""
        if self._patterns is None:
            separator = rb"[:\-. ]?"
            self._patterns = (
                _compile_any_of(self._texts, re.IGNORECASE),
                _compile_any_of(self._digits, re.IGNORECASE, separator),
                _compile_any_of(self._raw),
            )
        text_pattern, digits_pattern, raw_pattern = self._patterns
        result = text_pattern.sub(self._replace_text, payload)
        result = digits_pattern.sub(self._replace_digits, result)
        for pattern in (_IPV4, _IPV4_DASHED):
            result = pattern.sub(self._replace_ipv4, result)
        result = _IPV6.sub(self._replace_ipv6, result)
        return raw_pattern.sub(self._replace_raw, result) if raw else result

    def _replace_text(self, found: re.Match[bytes]) -> bytes:
        """Return the replacement of a name, encoded as it was found."""
        name, codec = self._texts[found[0].lower()]
        self._tally.add("name or secret", name)
        if codec == "bytes":
            return self._pseudonyms.name(found[0])
        if codec == "quoted":
            return quote_from_bytes(self._pseudonyms.name(name)).encode()
        return self._pseudonyms.name(found[0].decode(codec).encode()).decode().encode(codec)

    def _replace_digits(self, found: re.Match[bytes]) -> bytes:
        """Return the replacement of hexadecimal digits, with the same separators and case."""
        digits = re.sub(rb"[:\-. ]", b"", found[0]).lower()
        new, kind = self._digits[digits]
        self._tally.add(kind, digits)
        upper = found[0] != found[0].lower()
        source = iter((new.upper() if upper else new).decode())
        return "".join(
            next(source) if letter.isalnum() else letter for letter in found[0].decode()
        ).encode()

    def _replace_ipv4(self, found: re.Match[bytes]) -> bytes:
        """Return the replacement of an IPv4 address, with its separators; special ones stay."""
        packed = _parse_ipv4(found)
        if packed is None or (new := self._pseudonyms.ipv4(packed)) == packed:
            return found[0]
        self._tally.add("IPv4 address", packed)
        separators = re.sub(rb"\d", b"", found[0])
        parts = [b"%d" % number for number in new]
        return b"".join(part + separators[i : i + 1] for i, part in enumerate(parts))

    def _replace_ipv6(self, found: re.Match[bytes]) -> bytes:
        """Return a replacement of an IPv6 address, of the same length; special ones stay."""
        packed = _parse_ipv6(found[0])
        if packed is None or self._pseudonyms.ipv6(packed) == packed:
            return found[0]
        self._tally.add("IPv6 address", packed)
        # As text an address has no fixed length, so each digit is replaced by another digit.
        digits = iter(self._pseudonyms.opaque(packed * 4).hex())
        kept_letters = 4 if packed[:2] == b"\xfe\x80" else 1  # fe80: the address stays link-local
        return b"".join(
            bytes((letter,)) if index < kept_letters or letter in b":%" else next(digits).encode()
            for index, letter in enumerate(found[0])
        )

    def _replace_raw(self, found: re.Match[bytes]) -> bytes:
        new, kind = self._raw[found[0]]
        self._tally.add(kind, found[0])
        return new


_VALUE_PATTERNS = (_JSON, _JSON_NUMBER, _QUERY, _HEADER, _ICE, _XML, _LOCAL)


def _is_standard_host(host: bytes) -> bool:
    """Whether a host only names a standard, as in XML namespaces."""
    ends = (b"xmlsoap.org", b"w3.org", b"upnp.org", b"oasis-open.org", b"ietf.org", b"webrtc.org")
    return host.lower().endswith(ends) or _ADDRESS_ONLY.fullmatch(host) is not None


def _from_hex(digits: bytes) -> bytes:
    return bytes.fromhex(re.sub(rb"[:-]", b"", digits).decode())


def _parse_ipv4(found: re.Match[bytes]) -> bytes | None:
    """Return an IPv4 address as four bytes; None if a number exceeds 255 or has leading zeros."""
    numbers = [int(part) for part in found.groups()]
    written = [b"%d" % number for number in numbers]
    return None if max(numbers) > 255 or written != list(found.groups()) else bytes(numbers)


def _parse_ipv6(text: bytes) -> bytes | None:
    try:
        return IPv6Address(text.split(b"%")[0].decode()).packed
    except AddressValueError:
        return None


# ---- many alternatives as one pattern -----------------------------------------------------------


def _compile_any_of(
    words: Iterable[bytes], flags: int = 0, separator: bytes = b""
) -> re.Pattern[bytes]:
    """Return a pattern for any of many words, longest first; digits may have separators.

    The words are arranged as a tree, so the time to search does not grow with their number.
    """
    ordered = sorted(words)
    if not ordered:
        return re.compile(rb"(?!)")  # matches nothing
    width = 2 if separator else 1  # two digits are one byte
    return re.compile(_build_tree_pattern(ordered, 0, width, separator), flags | re.DOTALL)


def _build_tree_pattern(words: list[bytes], begin: int, width: int, separator: bytes) -> bytes:
    """Return a pattern for the parts from index `begin` on of sorted words.

    Before `begin` all words are equal; they are compared in pieces of `width` bytes.
    """
    shortest = words[0]
    if len(words) == 1:
        return _build_chain_pattern(shortest[begin:], width, separator)
    # The first and the last word differ most, so what they share is common to all.
    common = begin
    while shortest[common : common + width] == words[-1][common : common + width] != b"":
        common += width
    prefix = _build_chain_pattern(shortest[begin:common], width, separator)
    prefix_is_word = len(shortest) == common
    groups: dict[bytes, list[bytes]] = {}
    for word in words[1:] if prefix_is_word else words:
        groups.setdefault(word[common : common + width], []).append(word)
    branches = [_build_tree_pattern(group, common, width, separator) for group in groups.values()]
    between = separator if prefix else b""
    suffix = b"(?:" + between + b"(?:" + b"|".join(branches) + b"))"
    return prefix + suffix + (b"?" if prefix_is_word else b"")


def _build_chain_pattern(word: bytes, width: int, separator: bytes) -> bytes:
    """Return a pattern for one word, with an optional separator after each `width` bytes."""
    pieces = [re.escape(word[start : start + width]) for start in range(0, len(word), width)]
    return separator.join(pieces)
