"""Pseudonyms: another address, name or number of the same kind and length, always the same one.

Two hosts of one network stay in one network, multicast groups stay as they are, and every number of
an IPv4 address keeps its count of digits, so a text with an address keeps its length. Upper and
lower case of one name get the same pseudonym. The key is not stored, and without it no pseudonym
can be reversed.
"""

import hmac
from collections import Counter
from functools import lru_cache
from ipaddress import IPv6Address

_DIGITS = ((0, 10), (10, 100), (100, 256))
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_OTHER_LETTERS = {2: (0xE0, 23), 3: (0x4E00, 4096), 4: (0x20000, 4096)}
"""Letters by their length in UTF-8: the first, and how many follow."""
_MAX_COUNTED = 50_000
GENERIC_LABELS = frozenset(b"local arpa lan home internal com net org edu io dev cloud".split())
"""Parts of host names that identify no device, person or place."""


class Tally:
    """Counts what was replaced: how many different ones of each kind, and how often."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self._different: dict[str, set[bytes]] = {}

    def add(self, kind: str, old: bytes) -> None:
        """Count one replacement."""
        self.times[kind] += 1
        seen = self._different.setdefault(kind, set())
        if len(seen) < _MAX_COUNTED:
            seen.add(old)

    def document(self) -> dict[str, dict[str, int]]:
        """Return the counts by kind: `different` and `times`."""
        return {
            kind: {"different": len(self._different[kind]), "times": times}
            for kind, times in sorted(self.times.items())
        }


class Pseudonyms:
    """Generates pseudonyms that depend on one key, and counts them."""

    def __init__(self, key: bytes) -> None:
        self.tally = Tally()
        self._key = key
        self._words: dict[str, str] = {}
        self._taken: set[str] = set()
        self._ipv4 = lru_cache(65_536)(self._replace_ipv4)
        self._ipv6 = lru_cache(65_536)(self._replace_ipv6)
        self._hardware = lru_cache(65_536)(self._replace_hardware)

    def ipv4(self, packed: bytes) -> bytes:
        """Return another address of the same kind and the same length as text."""
        return self._count("IPv4 address", packed, self._ipv4(packed))

    def ipv6(self, packed: bytes) -> bytes:
        """Return another address of the same kind."""
        return self._count("IPv6 address", packed, self._ipv6(packed))

    def hardware(self, packed: bytes) -> bytes:
        """Return a locally administered hardware address; groups stay."""
        return self._count("hardware address", packed, self._hardware(packed))

    def opaque(self, data: bytes, kind: str = "number") -> bytes:
        """Return as many other bytes, for a value without structure: a key, a serial number."""
        blocks = range(len(data) // 32 + 1)
        new = b"".join(self._keyed_digest(f"opaque {block}", data) for block in blocks)
        return self._count(kind, data, new[: len(data)])

    def name(self, name: bytes) -> bytes:
        """Return another name of the same length in bytes; each part of a host name by itself."""
        try:
            text, codec = name.decode(), "utf-8"
        except UnicodeDecodeError:
            text, codec = name.decode("latin-1"), "latin-1"
        parts = text.split(".")
        new = [
            part if len(parts) > 1 and part.lower().encode() in GENERIC_LABELS else self.word(part)
            for part in parts
        ]
        return self._count("name", name, ".".join(new).encode(codec))

    def word(self, text: str) -> str:
        """Return another word of the same length: letters for letters, digits for digits."""
        plain = "".join(map(_lower_ascii, text))
        if plain not in self._words:
            self._words[plain] = self._new_word(plain)
        return "".join(map(_in_case, text, self._words[plain]))

    def _count(self, kind: str, old: bytes, new: bytes) -> bytes:
        if new != old:
            self.tally.add(kind, old)
        return new

    def _keyed_digest(self, about: str, data: bytes) -> bytes:
        return hmac.digest(self._key, about.encode() + b"\0" + data, "sha256")

    # ---- addresses ------------------------------------------------------------------------------

    def _replace_ipv4(self, packed: bytes) -> bytes:
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
        address = IPv6Address(packed)
        if address.is_multicast:
            # A group may contain the network it belongs to, or the end of a host's address.
            plain = not any(packed[2:11])
            scope = packed[:12] if plain else packed[:2] + self._keyed_digest("scope", packed)[:10]
            return scope + self._replace_group(packed[12:])
        if address.is_loopback or address.is_unspecified:
            return packed
        if address.ipv4_mapped is not None:
            return packed[:12] + self._replace_ipv4(packed[12:])
        if address.is_link_local:
            return packed[:8] + self._keyed_digest("host", packed[8:])[:8]
        network = self._keyed_digest("network", packed[:8])
        start = packed[:1] if address.is_private else b"\x20"
        return (start + network)[:8] + self._keyed_digest("host", packed[8:])[:8]

    def _replace_group(self, end: bytes) -> bytes:
        """Return the last four bytes of a group; small numbers are assigned to protocols."""
        return end if end[0] == 0 else end[:1] + self._keyed_digest("group", end[1:])[:3]

    def _replace_hardware(self, packed: bytes) -> bytes:
        if packed[:2] == b"\x33\x33" and len(packed) == 6:
            return packed[:2] + self._replace_group(packed[2:])
        if packed[0] & 1 or not any(packed):
            return packed
        return b"\x02" + self._keyed_digest("hardware", packed)[: len(packed) - 1]

    # ---- names ----------------------------------------------------------------------------------

    def _new_word(self, text: str) -> str:
        word = text
        for attempt in range(64):
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
    """Return another character of the same length in UTF-8; only printable punctuation stays."""
    if not character.isascii():
        first, count = _OTHER_LETTERS[len(character.encode(errors="surrogatepass"))]
        return chr(first + chance % count)
    if character.isdigit():
        return str(chance % 10)
    if character.isalpha():
        return _LETTERS[chance % 26]
    return character if character.isprintable() else "_"
