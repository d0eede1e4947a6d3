"""Pseudonyms: another address, name or number of the same kind and length, always the same one.

Two hosts of one network stay in one network, multicast addresses stay as they are, and every number
keeps its count of digits, so a text with an address keeps its length. Upper and lower case of one
name get the same pseudonym. Without the key, which is not stored, it cannot be reversed.
"""

import hmac
import re
import unicodedata
from functools import lru_cache
from ipaddress import IPv6Address

_DIGITS = ((0, 10), (10, 100), (100, 256))
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)*\.[A-Za-z]{2,24}")
_LOWER = {2: (0xE0, 23), 3: (0x4E00, 4096), 4: (0x20000, 4096)}
"""Letters that are not upper case, by their length in UTF-8: the first, and how many follow."""
_UPPER = {2: (0xC0, 23), 3: (0x1E00, 1), 4: (0x10400, 32)}


class Pseudonyms:
    """Generates pseudonyms that depend on one key."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._words: dict[str, str] = {}
        self._taken: set[str] = set()
        self.ipv4 = lru_cache(65_536)(self._replace_ipv4)
        self.ipv6 = lru_cache(65_536)(self._replace_ipv6)
        self.hardware = lru_cache(65_536)(self._replace_hardware)

    def _keyed_digest(self, about: str, data: bytes) -> bytes:
        return hmac.digest(self._key, about.encode() + b"\0" + data, "sha256")

    def opaque(self, data: bytes) -> bytes:
        """Return as many other bytes, for a value without structure: a key, a serial number."""
        blocks = range(len(data) // 32 + 1)
        return b"".join(self._keyed_digest(f"opaque {block}", data) for block in blocks)[
            : len(data)
        ]

    # ---- addresses ------------------------------------------------------------------------------

    def _replace_ipv4(self, packed: bytes) -> bytes:
        """Return another address of the same kind and the same length as text."""
        if packed[0] >= 224 or packed[0] in (0, 127):  # multicast, broadcast, none, loopback
            return packed
        keep = 0
        if packed[0] == 10:
            keep = 1
        elif packed[:2] in (b"\xc0\xa8", b"\xa9\xfe") or (
            packed[0] == 172 and 16 <= packed[1] < 32
        ):
            keep = 2
        result = packed[:keep]
        for index in range(keep, 4):
            result += bytes((self._replace_octet(packed[:index], packed[index], first=index == 0),))
        return result

    def _replace_octet(self, before: bytes, octet: int, *, first: bool) -> int:
        """Return another octet with as many digits, by a permutation specific to the network."""
        if not first and octet in (0, 255):  # network and broadcast addresses stay
            return octet
        low, high = _DIGITS[len(str(octet)) - 1]
        kept = {0, 10, 127, 169, 172, 192} | set(range(224, 256)) if first else {0, 255}
        candidates = [number for number in range(low, high) if number not in kept]
        if octet not in candidates:  # 192.0.2.1 begins like a private network and is none
            return octet
        order = sorted(candidates, key=lambda n: self._keyed_digest("octet", before + bytes((n,))))
        return order[candidates.index(octet)]

    def _replace_ipv6(self, packed: bytes) -> bytes:
        if packed[:2] == b"\xff\x02" and packed[11:13] == b"\x01\xff":
            # A solicited-node group: its last three bytes are those of the host's address.
            return packed[:13] + self._keyed_digest("solicited", packed[13:])[:3]
        address = IPv6Address(packed)
        if address.is_multicast or address.is_loopback or address.is_unspecified:
            return packed
        if address.ipv4_mapped is not None:
            return packed[:12] + self._replace_ipv4(packed[12:])
        if address.is_link_local:
            return packed[:8] + self._keyed_digest("host", packed[8:])[:8]
        network = self._keyed_digest("network", packed[:8])
        start = packed[:1] if address.is_private else b"\x20"
        return (start + network)[:8] + self._keyed_digest("host", packed[8:])[:8]

    def _replace_hardware(self, packed: bytes) -> bytes:
        if packed[:3] == b"\x33\x33\xff":
            return packed[:3] + self._keyed_digest("solicited", packed[3:])[:3]
        if packed[0] & 1 or not any(packed):
            return packed
        return b"\x02" + self._keyed_digest("hardware", packed)[: len(packed) - 1]

    # ---- names ----------------------------------------------------------------------------------

    def word(self, text: str) -> str:
        """Return another word: letters for letters, digits for digits, and as many."""
        plain = "".join(map(_lower_ascii, text))
        if plain not in self._words:
            self._words[plain] = self._new_word(plain)
        return "".join(map(_in_case, text, self._words[plain]))

    def name(self, name: bytes) -> bytes:
        """Return another name of the same length in bytes; the domain of a host name stays."""
        try:
            text, codec = name.decode(), "utf-8"
        except UnicodeDecodeError:
            text, codec = name.decode("latin-1"), "latin-1"
        if _HOST.fullmatch(text):
            *labels, domain = text.split(".")
            return ".".join((*map(self.word, labels), domain)).encode(codec)
        return self.word(text).encode(codec)

    def _new_word(self, text: str) -> str:
        word = text
        for attempt in range(16):
            stream = b"".join(
                self._keyed_digest(f"word {attempt} {block}", text.encode(errors="replace"))
                for block in range(len(text) // 32 + 1)
            )
            word = "".join(map(_replace_character, text, stream))
            if word != text and word not in self._taken:
                break
        self._taken.add(word)
        return word


def _lower_ascii(character: str) -> str:
    return character.lower() if character.isascii() else character


def _in_case(model: str, character: str) -> str:
    return character.upper() if model.isascii() and model.isupper() else character


def _replace_character(character: str, chance: int) -> str:
    """Return another character of the same class and length in UTF-8."""
    if character.isascii():
        if character.isdigit():
            return str(chance % 10)
        return _LETTERS[chance % 26] if character.isalpha() else character
    decimal = unicodedata.decimal(character, None)
    if decimal is not None:
        return chr(ord(character) - decimal + chance % 10)
    if not character.isalpha():
        return character
    size = len(character.encode(errors="replace"))
    first, count = (_UPPER if character.isupper() else _LOWER).get(size, (ord(character), 1))
    return chr(first + chance % count)
