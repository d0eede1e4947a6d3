"""What a trial keeps, without identifiers: serials, addresses, keys, and the names of people.

Names of the owner's actions, addresses of machines and networks and everything that looks like an
identifier are replaced, by the same ones everywhere. Factory actions and the trial's own keep
their names.
"""

import json
import re
import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from rote.capture.scrub.identifiers import Identifiers, Tally
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.errors import DecodeError
from rote.trial.recorder import BUS, FRAMES, QUADRUPED, Said
from rote.trial.scene import OWN
from rote.wire import rpc, teaching
from rote.wire.a1 import codec as a1_codec
from rote.wire.a1 import formats as a1_formats
from rote.wire.a1 import layout as a1_layout

_SHORT = 4
_SERIAL = re.compile(rb"(?<![A-Z0-9])(?=[A-Z]*[0-9])(?=[0-9]*[A-Z])[A-Z0-9]{12,32}(?![A-Z0-9])")
_NAME = re.compile(rb'\\*"(?:action_name|pre_name|new_name|name)\\*"\s*:\s*\\*"([^"\\]+)\\*"')
_LEARNED_NAME = re.compile(rb'(\\*"name\\*"\s*:\s*\\*")([^"\\]*)(\\*")')


class TrialScrubber:
    """Learns the identifiers of a trial, then replaces them."""

    def __init__(self, key: bytes | None = None) -> None:
        self.tally = Tally()
        self._identifiers = Identifiers(Pseudonyms(key or secrets.token_bytes(32)), self.tally)
        self._safe: set[bytes] = set()
        self._short: dict[bytes, bytes] = {}

    def learn_robot(self, url: str, lists: Iterable[str]) -> None:
        """Learn the robot's address, and which names are the owner's and which the factory's."""
        parts = urlsplit(url)
        if parts.scheme in ("webrtc", "udp", "a1") and parts.hostname not in (None, "ap"):
            self._identifiers.add(str(parts.netloc.partition(":")[0]).encode())
        for text in lists:
            try:
                told = rpc.decode_actions(text)
            except DecodeError:
                continue
            self._safe |= {preset.name.encode(errors="replace") for preset in told.presets}
        for text in lists:
            try:
                told = rpc.decode_actions(text)
            except DecodeError:
                continue
            for action in told.taught:
                self._add_name(action.name.encode(errors="replace"))

    def learn_frames(self, names: Iterable[str]) -> None:
        """Learn the names of the owner's actions from the teaching frames."""
        for name in names:
            self._add_name(name.encode(errors="replace"))

    def _add_name(self, name: bytes) -> None:
        if name in self._safe or name.startswith((OWN.encode(), b"rote", b"?")):
            return
        if len(name) < _SHORT:
            self._short[name] = b"x" * len(name)
        else:
            self._identifiers.add(name)

    def learn(self, message: str | bytes) -> None:
        """Learn identifiers from one message."""
        data = message.encode(errors="replace") if isinstance(message, str) else message
        for found in _SERIAL.finditer(data):
            self._identifiers.add(found[0])
        # Names are learned from the list of actions, which says whose they are.
        self._identifiers.learn(_LEARNED_NAME.sub(rb"\1\3", _NAME.sub(b"", data)))

    def text(self, text: str) -> str:
        """Return a text without identifiers."""
        data = text.encode(errors="surrogatepass")
        for name, other in self._short.items():
            pattern = re.compile(rb'((?:\\*"))' + re.escape(name) + rb'(\\*")')
            data, count = pattern.subn(rb"\g<1>" + other + rb"\g<2>", data)
            if count:
                self.tally.add("name or secret", name)
        return self._identifiers.replace(data).decode(errors="replace")

    def bytes(self, data: bytes, protocol: str) -> bytes:
        """Return a message of bytes without identifiers; its checksum is right again."""
        if protocol == FRAMES:
            try:
                frame = teaching.decode(data)
            except DecodeError:
                return b""
            return teaching.encode(
                frame._replace(payload=self._identifiers.replace(frame.payload, raw=True))
            )
        if protocol == QUADRUPED:
            return _without_serial(data)
        return self._identifiers.replace(data, raw=protocol == BUS)

    def said(self, entry: Said, protocol: str) -> Said:
        """Return one entry of the conversation without identifiers."""
        if entry.is_text:
            return entry._replace(message=self.text(entry.message))
        return entry._replace(message=self.bytes(bytes.fromhex(entry.message), protocol).hex())

    def document(self, document: Any) -> Any:
        """Return a JSON document without identifiers."""
        return json.loads(self.text(json.dumps(document, ensure_ascii=False)))


def _without_serial(data: bytes) -> bytes:
    """Return a frame of an A1 with robot and serial number 0, and a right checksum."""
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
