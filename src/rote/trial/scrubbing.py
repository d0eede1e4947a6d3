"""Removes identifiers from the output of a trial: serials, addresses, keys, people's names.

Names of the owner's actions, addresses of machines and networks and everything that looks like an
identifier are replaced, by the same pseudonym everywhere. Factory actions and the trial's own keep
their names.
"""

import json
import re
import secrets
from collections.abc import Iterable
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

_SHORT = 4
_UNNAMED = re.compile(r"\?\d+")
"""The name that rote gives to an action without one."""
_UNSAFE = re.compile(r"[^\w -]")
"""Characters not used in replacements, which must fit into JSON unescaped at any depth."""
_DEPTH = 4
"""JSON within strings of JSON: a message, its parameter, and a log of both."""
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}
_SERIAL = re.compile(rb"(?<![A-Z0-9])(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-Z0-9]{12,32}(?![A-Z0-9])")
_NAME = re.compile(rb'\\*"(?:action_name|pre_name|new_name|name)\\*"\s*:\s*\\*"([^"\\]+)\\*"')
_LEARNED_NAME = re.compile(rb'(\\*"name\\*"\s*:\s*\\*")([^"\\]*)(\\*")')


class OwnersName(NamedTuple):
    """A name of the owner's actions: a pattern for all its spellings, and its replacement."""

    pattern: re.Pattern[bytes]
    other: bytes


def _escaped_forms(name: str, *, whole: bool) -> re.Pattern[bytes]:
    """Return a pattern of every form of a name in JSON, also within strings of JSON.

    With `whole` it matches only a complete quoted string.
    """
    forms = []
    for depth in range(_DEPTH, -1, -1):
        form = b"".join(_escaped_character(each, depth) for each in name)
        quote = rb"\\" * (2 ** max(depth - 1, 0) - 1) + b'"'
        forms.append(rb"(?<=" + quote + b")" + form + rb"(?=" + quote + b")" if whole else form)
    return re.compile(b"|".join(dict.fromkeys(forms)), re.IGNORECASE)


def _escaped_character(character: str, depth: int) -> bytes:
    """Return a pattern of a character that `depth` layers of JSON, or `repr`, have escaped."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
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
        codes = [slashes + b"u" + units[at : at + 4].encode() for at in range(0, len(units), 4)]
        forms.append(b"".join(codes))
        if character in _LETTERS:
            forms.append(slashes + _LETTERS[character].encode())
        if ord(character) < 0x100:
            forms.append(slashes + b"x%02x" % ord(character))
    return b"(?:" + b"|".join(forms) + b")"


class TrialScrubber:
    """Learns the identifiers of a trial, then replaces them."""

    def __init__(self, key: bytes | None = None) -> None:
        self.tally = Tally()
        self._pseudonyms = Pseudonyms(key or secrets.token_bytes(32))
        self._identifiers = Identifiers(self._pseudonyms, self.tally)
        self._safe: set[str] = set()
        self._names: dict[str, OwnersName] = {}

    def learn_robot(self, url: str, lists: Iterable[str]) -> None:
        """Learn the robot's address, and which names are the owner's and which the factory's."""
        parts = urlsplit(url)
        if parts.scheme in ("webrtc", "udp", "a1") and parts.hostname not in (None, "ap"):
            self._identifiers.add(str(parts.netloc.partition(":")[0]).encode())
        for text in lists:
            try:
                actions = rpc.decode_actions(text)
            except DecodeError:
                continue
            self._safe |= {preset.name for preset in actions.presets}
        for text in lists:
            try:
                actions = rpc.decode_actions(text)
            except DecodeError:
                continue
            for action in actions.taught:
                self._add_name(action.name)

    def learn_frames(self, names: Iterable[str]) -> None:
        """Learn the names of the owner's actions from the teaching frames."""
        for name in names:
            self._add_name(name)

    def _add_name(self, name: str) -> None:
        own = name.startswith(OWN_NAME) or name in NAMES.values()
        if own or name in self._safe or name in self._names or _UNNAMED.fullmatch(name):
            return
        data = name.encode(errors="replace")
        self._identifiers.add(data)
        other = self._pseudonyms.name(data).decode(errors="replace")
        whole = len(data) < _SHORT or data.isdigit()  # such a text also occurs inside others
        other = "x" * len(name) if whole else _UNSAFE.sub("_", other)
        self._names[name] = OwnersName(_escaped_forms(name, whole=whole), other.encode())

    def learn(self, message: str | bytes) -> None:
        """Learn identifiers from one message."""
        data = message.encode(errors="replace") if isinstance(message, str) else message
        for found in _SERIAL.finditer(data):
            self._identifiers.add(found[0])
        # Names are learned from the list of actions, which shows whether the owner chose them.
        self._identifiers.learn(_LEARNED_NAME.sub(rb"\1\3", _NAME.sub(b"", data)))

    def scrub_text(self, text: str) -> str:
        """Return a text without identifiers."""
        data = self._remove_names(text.encode(errors="surrogatepass"))
        return self._identifiers.replace(data).decode(errors="replace")

    def _remove_names(self, data: bytes, *, same_length: bool = False) -> bytes:
        """Return JSON, or text with JSON in it, without the names of the owner's actions."""
        # Longer names first: one may be a part of another.
        for name in sorted(self._names, key=len, reverse=True):
            pattern, other = self._names[name]

            def replaced(found: re.Match[bytes], other: bytes = other) -> bytes:
                size = len(found[0])
                return other[:size].ljust(size, b"_") if same_length else other

            data, count = pattern.subn(replaced, data)
            if count:
                self.tally.add("name or secret", name.encode(errors="replace"))
        return data

    def _remove_listed_names(self, frame: teaching.Frame) -> bytes:
        """Return the payload of a frame; in a list, the owner's names are replaced."""
        try:
            reply = teaching.decode_reply(frame.command, frame.payload)
        except DecodeError:
            return frame.payload
        if not isinstance(reply, ActionList):
            return frame.payload
        entries = []
        for listed in reply.actions:
            entry, owners = listed, self._names.get(listed.name)
            if owners is not None:
                self.tally.add("name or secret", entry.name.encode())
                entry = ActionEntry(owners.other.decode(), entry.duration_ms)
            entries.append(entry)
        return teaching.encode_reply(ActionList(tuple(entries)))

    def scrub_bytes(self, data: bytes, protocol: str) -> bytes:
        """Return a binary message without identifiers and with a correct checksum."""
        if protocol == FRAMES:
            try:
                frame = teaching.decode(data)
            except DecodeError:
                return b""
            payload = self._identifiers.replace(self._remove_listed_names(frame), raw=True)
            return teaching.encode(frame._replace(payload=payload))
        if protocol == QUADRUPED:
            return _remove_serial(data)
        if protocol == BUS:  # a text is preceded by its length
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
    """Return a frame of an A1 with robot and serial number 0, and a correct checksum."""
    try:
        frame = a1_codec.inspect(data)
    except DecodeError:
        return b""
    where = slice(4, 12) if a1_formats.BY_SIZE[len(data)].is_go1 else slice(3, 9)
    changed = bytearray(data)
    changed[where] = bytes(len(changed[where]))
    if bytes(changed) == data:
        return data
    crc = a1_layout.crc(bytes(changed[:-4]))
    changed[-4:] = a1_layout.encrypted(crc) if frame.seal is a1_codec.Seal.ENCRYPTED else crc
    return bytes(changed)
