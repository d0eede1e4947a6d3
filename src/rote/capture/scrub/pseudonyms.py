"""Pseudonyms: each address, name or number gets another one of the same kind and length.

The same value always gets the same pseudonym. Two hosts of one network stay in one network,
multicast groups stay as they are, and every number of an IPv4 address keeps its count of digits, so
a text with an address keeps its length. A name in upper case gets the same pseudonym as in lower
case. The key is not stored, and without it no pseudonym can be reversed.
"""

import hmac
from collections import Counter
from collections.abc import Callable
from functools import lru_cache
from ipaddress import IPv6Address

from rote.errors import DecodeError


class MaskedCopy:
    """A copy of `old` that is all zeros, except for fields that were kept or replaced."""

    __slots__ = ("new", "old", "written")

    def __init__(self, old: bytes) -> None:
        self.old = old
        self.new = bytearray(len(old))
        self.written = 0
        """Bytes that were kept or replaced."""

    def read_number(self, offset: int, size: int = 2, order: str = ">") -> int:
        """Return a number of the original; raises `DecodeError` if it ends before that."""
        if not 0 <= offset <= len(self.old) - size:
            raise DecodeError(f"{len(self.old)} bytes end before the number at {offset}")
        return int.from_bytes(self.old[offset : offset + size], "little" if order == "<" else "big")

    def keep(self, offset: int, size: int = 1) -> None:
        """Keep bytes of the original, as far as there are any."""
        self.put(offset, self.old[offset : offset + size])

    def put(self, offset: int, value: bytes) -> None:
        """Write a value at `offset`, unless the original ends before the value does."""
        if offset + len(value) <= len(self.old):
            self.new[offset : offset + len(value)] = value
            self.written += len(value)

    def replace(self, offset: int, size: int, pseudonym: Callable[[bytes], bytes]) -> None:
        """Write the pseudonym of the value at `offset`; a value that is cut off stays zeros."""
        if size > 0 and len(old := self.old[offset : offset + size]) == size:
            self.put(offset, pseudonym(old))

    def embed(self, offset: int, inner: "MaskedCopy") -> None:
        """Insert the masked copy of a part."""
        self.new[offset : offset + len(inner.new)] = inner.new
        self.written += inner.written

    def end_at(self, stop: int) -> None:
        """Ignore the bytes from `stop` on, such as the padding behind a packet: they stay zeros."""
        self.old = self.old[:stop]


_OCTET_RANGES = ((0, 10), (10, 100), (100, 256))
"""Octets of one, two and three digits."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_NON_ASCII_LETTERS = {2: (0xE0, 23), 3: (0x4E00, 4096), 4: (0x20000, 4096)}
"""By length in UTF-8: the first letter used, and the number of letters used."""
_MAX_COUNTED = 50_000
"""Maximum number of different values of one kind that are counted."""
GENERIC_LABELS = frozenset(b"local arpa lan home internal com net org edu io dev cloud".split())
"""Parts of host names that identify no device, person or place."""


class Tally:
    """Counts replaced values by kind: how many different ones, and how many in all."""

    def __init__(self) -> None:
        self.times: Counter[str] = Counter()
        self._different: dict[str, set[bytes]] = {}

    def add(self, kind: str, old: bytes) -> None:
        """Count one replacement."""
        self.times[kind] += 1
        values = self._different.setdefault(kind, set())
        if len(values) < _MAX_COUNTED:
            values.add(old)

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
        """Return another IPv4 address of the same kind, whose text has the same length."""
        return self._count("IPv4 address", packed, self._ipv4(packed))

    def ipv6(self, packed: bytes) -> bytes:
        """Return another IPv6 address of the same kind."""
        return self._count("IPv6 address", packed, self._ipv6(packed))

    def hardware(self, packed: bytes) -> bytes:
        """Return another hardware address, which is locally administered; group addresses stay."""
        return self._count("hardware address", packed, self._hardware(packed))

    def opaque(self, data: bytes, kind: str = "number") -> bytes:
        """Return as many other bytes, for a value without structure such as a serial number."""
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
            self._words[plain] = self._make_word(plain)
        return "".join(map(_match_case, text, self._words[plain]))

    def _count(self, kind: str, old: bytes, new: bytes) -> bytes:
        """Count the replacement of `old`, if it is one, and return `new`."""
        if new != old:
            self.tally.add(kind, old)
        return new

    def _keyed_digest(self, purpose: str, data: bytes) -> bytes:
        """Return 32 bytes that depend on the key; each `purpose` gives others for the same data."""
        return hmac.digest(self._key, purpose.encode() + b"\0" + data, "sha256")

    # ---- addresses ------------------------------------------------------------------------------

    def _replace_ipv4(self, packed: bytes) -> bytes:
        """Replace an address octet by octet; the prefixes of private networks stay."""
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
        """Return another octet with as many digits, by a permutation specific to the network.

        `before` are the address's octets before it; `first` tells that there are none.
        """
        if not first and octet in (0, 255):  # network and broadcast addresses stay
            return octet
        low, high = _OCTET_RANGES[len(str(octet)) - 1]
        kept = {0, 10, 127, 169, 172, 192} | set(range(224, 256)) if first else {0, 255}
        candidates = [number for number in range(low, high) if number not in kept]
        if octet not in candidates:  # as in 192.0.2.1, which only begins like a private address
            return octet
        order = sorted(candidates, key=lambda n: self._keyed_digest("octet", before + bytes((n,))))
        return order[candidates.index(octet)]

    def _replace_ipv6(self, packed: bytes) -> bytes:
        """Replace the network and the host separately; special addresses keep their kind."""
        address = IPv6Address(packed)
        if address.is_multicast:
            # A group may contain the network it belongs to, or the end of a host's address.
            has_network = any(packed[2:11])
            scope = packed[:12]
            if has_network:
                scope = packed[:2] + self._keyed_digest("scope", packed)[:10]
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
        """Replace the last four bytes of a multicast group; if they begin with 0, they stay.

        Such groups are assigned to protocols, and identify no network.
        """
        return end if end[0] == 0 else end[:1] + self._keyed_digest("group", end[1:])[:3]

    def _replace_hardware(self, packed: bytes) -> bytes:
        """Replace a hardware address; that of an IPv6 group contains the end of the group."""
        if packed[:2] == b"\x33\x33" and len(packed) == 6:
            return packed[:2] + self._replace_group(packed[2:])
        if packed[0] & 1 or not any(packed):  # another group, or no address
            return packed
        return b"\x02" + self._keyed_digest("hardware", packed)[: len(packed) - 1]

    # ---- names ----------------------------------------------------------------------------------

    def _make_word(self, text: str) -> str:
        """Return another word for `text` that is not yet the pseudonym of another text."""
        word = text
        for attempt in range(64):  # short words may run out
            random_bytes = b"".join(
                self._keyed_digest(f"word {attempt} {block}", text.encode(errors="replace"))
                for block in range(len(text) // 32 + 1)
            )
            word = "".join(map(_replace_character, text, random_bytes))
            if word != text and word not in self._taken:
                break
        self._taken.add(word)
        return word


def _lower_ascii(character: str) -> str:
    return character.lower() if character.isascii() else character


def _match_case(model: str, character: str) -> str:
    """Return the character in upper case if `model` is an ASCII letter in upper case."""
    return character.upper() if model.isascii() and model.isupper() else character


def _replace_character(character: str, random_byte: int) -> str:
    """Return another character that has the same length in UTF-8; only punctuation stays."""
    if not character.isascii():
        first, count = _NON_ASCII_LETTERS[len(character.encode(errors="surrogatepass"))]
        return chr(first + random_byte % count)
    if character.isdigit():
        return str(random_byte % 10)
    if character.isalpha():
        return _LETTERS[random_byte % 26]
    return character if character.isprintable() else "_"
