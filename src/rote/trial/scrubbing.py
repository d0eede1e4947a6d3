"""Removes identifiers from the output of a trial: serials, addresses, keys, people's names.

Each identifier is replaced by the same pseudonym everywhere: names of the owner's actions,
addresses of machines and networks, and everything that looks like an identifier. Factory actions
and the trial's own actions keep their names.
"""

import json
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from rote.capture.scrub.pseudonyms import Pseudonyms, Tally
from rote.errors import DecodeError
from rote.messages import ActionEntry, ActionList
from rote.trial.context import OWN_NAME
from rote.trial.g1_steps import NAMES
from rote.trial.identifiers import Identifiers
from rote.trial.recorder import BUS, FRAMES, QUADRUPED, RecordedMessage
from rote.wire.a1 import codec as a1_codec
from rote.wire.a1 import formats as a1_formats
from rote.wire.a1 import layout as a1_layout
from rote.wire.services import rpc
from rote.wire.teaching import codec as teaching

_MIN_UNQUOTED_BYTES = 4
"""Shorter names are replaced only as whole quoted strings: they may be part of other words."""
_UNNAMED = re.compile(r"\?\d+")
"""The name that rote gives to an action without one."""
_UNSAFE = re.compile(r"[^\w -]")
"""Characters not used in replacements, which must fit into JSON unescaped at any depth."""
_MAX_JSON_DEPTH = 4
"""JSON within strings of JSON: a message, its parameter, and a log of both."""
_ESCAPE_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
# A serial number has 12 to 32 capital letters and digits, at least one of each.
_SERIAL = re.compile(rb"(?<![A-Z0-9])(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-Z0-9]{12,32}(?![A-Z0-9])")
# A key of a name with its value, also in JSON within JSON, where quotes are escaped.
_NAME = re.compile(rb'\\*"(?:action_name|pre_name|new_name|name)\\*"\s*:\s*\\*"([^"\\]+)\\*"')
_NAME_VALUE = re.compile(rb'(\\*"name\\*"\s*:\s*\\*")([^"\\]*)(\\*")')


class OwnersName(NamedTuple):
    """A name of the owner's actions: a pattern for all its spellings, and its replacement."""

    pattern: re.Pattern[bytes]
    replacement: bytes


def _build_name_pattern(name: str, *, must_be_quoted: bool) -> re.Pattern[bytes]:
    """Return a pattern for every escaped form of a name in JSON, even nested in JSON strings.

    With `must_be_quoted`, it matches only a complete quoted string.
    """
    forms = []
    for depth in range(_MAX_JSON_DEPTH, -1, -1):
        form = b"".join(_build_character_pattern(character, depth) for character in name)
        # A quote has no backslash in the outermost JSON; each layer around it doubles them, plus 1.
        quote = rb"\\" * (2 ** max(depth - 1, 0) - 1) + b'"'
        forms.append(
            rb"(?<=" + quote + b")" + form + rb"(?=" + quote + b")" if must_be_quoted else form
        )
    return re.compile(b"|".join(dict.fromkeys(forms)), re.IGNORECASE)


def _build_character_pattern(character: str, depth: int) -> bytes:
    """Return a pattern for a character escaped by up to `depth` layers of JSON or `repr`."""
    utf16_hex = character.encode("utf-16-be", "surrogatepass").hex()
    plain = character.encode(errors="surrogatepass")
    forms = []
    if character == "\\":
        forms.append(rb"\\" * 2**depth)
    elif character == '"':
        forms.append(rb"\\" * (2**depth - 1) + plain)
    elif character == "/":  # each layer may escape it or not
        forms.append(rb"\\*/")
    else:
        forms.append(re.escape(plain))
    for layer in range(depth):  # the backslash of an escape is doubled by each layer around it
        slashes = rb"\\" * 2**layer
        units = [utf16_hex[start : start + 4] for start in range(0, len(utf16_hex), 4)]
        codes = (slashes + b"u" + unit.encode() for unit in units)
        forms.append(b"".join(codes))
        if character in _ESCAPE_LETTERS:
            forms.append(slashes + _ESCAPE_LETTERS[character].encode())
        if ord(character) < 0x100:
            forms.append(slashes + b"x%02x" % ord(character))
    return b"(?:" + b"|".join(forms) + b")"


class TrialScrubber:
    """Learns the identifiers of a trial, then replaces them."""

    def __init__(self, key: bytes | None = None) -> None:
        self.tally = Tally()
        self._pseudonyms = Pseudonyms(key or secrets.token_bytes(32))
        self._identifiers = Identifiers(self._pseudonyms, self.tally)
        self._factory_names: set[str] = set()
        self._owners_names: dict[str, OwnersName] = {}

    def learn_robot(self, url: str, lists: Iterable[str]) -> None:
        """Learn the robot's address from its URL, and names of actions from the lists it sent."""
        parts = urlsplit(url)
        # "ap" is no address: it means the robot's own access point.
        if parts.scheme in ("webrtc", "udp", "a1") and parts.hostname not in (None, "ap"):
            self._identifiers.add_name(str(parts.netloc.partition(":")[0]).encode())
        decoded_lists = []
        for text in lists:
            with suppress(DecodeError):
                decoded_lists.append(rpc.decode_actions(text))
        # All factory names first: they keep their names even if one list counts them as taught.
        for actions in decoded_lists:
            self._factory_names |= {preset.name for preset in actions.presets}
        for actions in decoded_lists:
            for action in actions.taught:
                self._add_name(action.name)

    def learn_action_names(self, names: Iterable[str]) -> None:
        """Learn names of actions that the robot sent in teaching frames."""
        for name in names:
            self._add_name(name)

    def _add_name(self, name: str) -> None:
        """Learn a name of the owner's actions, unless the factory, the trial or rote chose it."""
        is_from_trial = name.startswith(OWN_NAME) or name in NAMES.values()
        if is_from_trial or name in self._factory_names or _UNNAMED.fullmatch(name):
            return
        if name in self._owners_names:
            return
        data = name.encode(errors="replace")
        self._identifiers.add_name(data)
        pseudonym = self._pseudonyms.name(data).decode(errors="replace")
        must_be_quoted = len(data) < _MIN_UNQUOTED_BYTES or data.isdigit()
        replacement = "x" * len(name) if must_be_quoted else _UNSAFE.sub("_", pseudonym)
        pattern = _build_name_pattern(name, must_be_quoted=must_be_quoted)
        self._owners_names[name] = OwnersName(pattern, replacement.encode())

    def learn(self, message: str | bytes) -> None:
        """Learn the identifiers that one message contains."""
        data = message.encode(errors="replace") if isinstance(message, str) else message
        for found in _SERIAL.finditer(data):
            self._identifiers.add_name(found[0])
        # Names are learned from the list of actions, which shows whether the owner chose them.
        self._identifiers.learn(_NAME_VALUE.sub(rb"\1\3", _NAME.sub(b"", data)))

    def scrub_text(self, text: str) -> str:
        """Return a text without identifiers."""
        data = self._remove_names(text.encode(errors="surrogatepass"))
        return self._identifiers.replace(data).decode(errors="replace")

    def _remove_names(self, data: bytes, *, same_length: bool = False) -> bytes:
        """Return JSON, or text that contains JSON, without the names of the owner's actions.

        With `same_length`, a replacement is as long as what it replaces.
        """
        # Longer names first, because a name may be part of another.
        for name in sorted(self._owners_names, key=len, reverse=True):
            pattern, replacement = self._owners_names[name]

            # The default argument keeps the replacement of this turn of the loop.
            def replace(found: re.Match[bytes], replacement: bytes = replacement) -> bytes:
                size = len(found[0])
                return replacement[:size].ljust(size, b"_") if same_length else replacement

            data, count = pattern.subn(replace, data)
            if count:
                self.tally.add("name or secret", name.encode(errors="replace"))
        return data

    def _remove_listed_names(self, frame: teaching.Frame) -> bytes:
        """Return the payload of a frame, with the owner's names replaced if it is a list."""
        try:
            reply = teaching.decode_reply(frame.command, frame.payload)
        except DecodeError:
            return frame.payload
        if not isinstance(reply, ActionList):
            return frame.payload
        entries = []
        for listed in reply.actions:
            owners_name = self._owners_names.get(listed.name)
            if owners_name is None:
                entries.append(listed)
                continue
            self.tally.add("name or secret", listed.name.encode())
            entries.append(ActionEntry(owners_name.replacement.decode(), listed.duration_ms))
        return teaching.encode_reply(ActionList(tuple(entries)))

    def scrub_bytes(self, data: bytes, protocol: str) -> bytes:
        """Return a binary message without identifiers, with a correct checksum; empty if bad."""
        if protocol == FRAMES:
            try:
                frame = teaching.decode(data)
            except DecodeError:
                return b""
            payload = self._identifiers.replace(self._remove_listed_names(frame), raw=True)
            return teaching.encode(frame._replace(payload=payload))
        if protocol == QUADRUPED:
            return _remove_serial(data)
        if protocol == BUS:  # a text is preceded by its length, so that must not change
            data = self._remove_names(data, same_length=True)
        return self._identifiers.replace(data, raw=protocol == BUS)

    def scrub_message(self, entry: RecordedMessage, protocol: str) -> RecordedMessage:
        """Return one entry of the conversation without identifiers."""
        if entry.is_text:
            return entry._replace(message=self.scrub_text(entry.message))
        return entry._replace(
            message=self.scrub_bytes(bytes.fromhex(entry.message), protocol).hex()
        )

    def scrub_document(self, document: Any) -> Any:
        """Return a JSON document without identifiers."""
        return json.loads(self.scrub_text(json.dumps(document, ensure_ascii=False)))


def _remove_serial(data: bytes) -> bytes:
    """Return a frame of an A1 with robot and serial number 0, and a correct checksum.

    What is not a frame becomes empty.
    """
    try:
        frame = a1_codec.inspect(data)
    except DecodeError:
        return b""
    # The bytes of the header that contain the robot's number and its serial number.
    number_bytes = slice(4, 12) if a1_formats.BY_SIZE[len(data)].is_go1 else slice(3, 9)
    changed = bytearray(data)
    changed[number_bytes] = bytes(len(changed[number_bytes]))
    if bytes(changed) == data:
        return data
    crc = a1_layout.crc(bytes(changed[:-4]))  # the last four bytes are the checksum
    changed[-4:] = a1_layout.encrypt_crc(crc) if frame.seal is a1_codec.Seal.ENCRYPTED else crc
    return bytes(changed)
