"""The phone app's own log: requests, the robot's answers, and its states.

The format of that log is not documented and differs between versions. So a line is read if it has a
time stamp of a usual kind near its beginning, and anywhere a message of the data channel as JSON,
also as JSON within a JSON string. All other lines are counted.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from rote.capture.decode.dialogue import Dialogue, FaultNote, Pair, StateChange
from rote.capture.model import TimelineEntry
from rote.errors import DecodeError
from rote.wire.services.rpc import RpcRequest, RpcResponse
from rote.wire.webrtc import channel

MAX_LINE = 1 << 20
"""Maximum length of a line that is read, in characters."""
_MAX_TRIES = 16
"""Maximum number of opening braces in a text from which JSON is decoded."""
_MAX_DEPTH = 4
"""Maximum depth of messages in other JSON."""
_REPEAT_NS = 50_000_000
"""The same request or response within this time was logged twice."""
_DATE = re.compile(
    r"(?P<year>\d{4})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[ T_]+"
    r"(?P<clock>\d\d:\d\d:\d\d)(?:[.,:](?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_SHORT_DATE = re.compile(
    r"(?<!\d)(?P<month>\d\d)[-/](?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)[.,:](?P<fraction>\d{1,9})"
)
_CLOCK = re.compile(r"(?<!\d)(?P<clock>\d\d:\d\d:\d\d)[.,](?P<fraction>\d{1,9})")
# Seconds, then a fraction after a point, or three digits of milliseconds.
_UNIX = re.compile(r"(?<![\d.])(1\d{9})(?:\.(\d{1,9})|(\d{3}))?(?![\d.])")
_STAMPS = (_DATE, _SHORT_DATE, _CLOCK, _UNIX)


@dataclass(frozen=True, slots=True)
class AppLog:
    """What a log of the phone app contains."""

    lines: int
    messages: int
    unknown: int
    """Number of lines without a message."""
    pairs: tuple[Pair, ...]
    states: tuple[StateChange, ...]
    faults: tuple[FaultNote, ...]
    timeline: tuple[TimelineEntry, ...]


def read(lines: Iterable[str], *, year: int = 1970, utc_offset_s: float = 0.0) -> AppLog:
    """Read a log of the phone app.

    `year` completes time stamps without a year; those without a zone are `utc_offset_s` ahead of
    UTC.
    """
    log = _Log(year, utc_offset_s)
    for line in lines:
        log.add_line(line)
    dialogue = log.dialogue
    return AppLog(
        log.lines,
        log.messages,
        log.unknown,
        tuple(dialogue.pairs),
        tuple(dialogue.states),
        tuple(dialogue.faults),
        tuple(dialogue.timeline()),
    )


@dataclass(slots=True)
class _Log:
    """A log that is being read line by line."""

    year: int
    utc_offset_s: float
    dialogue: Dialogue = field(default_factory=Dialogue)
    lines: int = 0
    messages: int = 0
    unknown: int = 0
    _now_ns: int = 0
    """The last time stamp."""
    _last: tuple[int, str] = (0, "")
    """Time and text of the last request or response."""

    def add_line(self, line: str) -> None:
        """Read the time stamp of a line, if it has one, and add the messages in it."""
        self.lines += 1
        if len(line) > MAX_LINE:
            self.unknown += 1
            return
        brace = line.find("{")
        before_json = line[:brace] if brace >= 0 else line[:80]
        time_ns = find_timestamp_ns(before_json, self.year, self.utc_offset_s)
        if time_ns is None:  # some logs are JSON themselves, with the time near its beginning
            time_ns = find_timestamp_ns(line[:200], self.year, self.utc_offset_s)
        if time_ns is not None:
            self._now_ns = time_ns
        has_message = False
        for text, value in find_messages(line):
            has_message = True
            self._add_message(text, value)
        self.unknown += not has_message

    def _add_message(self, text: str, value: channel.Value) -> None:
        """Add a message, unless it repeats the last request or response that was just logged."""
        if isinstance(value, RpcRequest | RpcResponse):
            last_ns, last_text = self._last
            self._last = self._now_ns, text
            if text == last_text and abs(self._now_ns - last_ns) < _REPEAT_NS:
                return
        self.messages += 1
        self.dialogue.add_message(self._now_ns, value)


# ---- time stamps --------------------------------------------------------------------------------


def find_timestamp_ns(text: str, year: int = 1970, utc_offset_s: float = 0.0) -> int | None:
    """Return the first time stamp of a text in nanoseconds since 1970, UTC; None without one."""
    found = [match for pattern in _STAMPS if (match := pattern.search(text))]
    if not found:
        return None
    # Later digits may be part of an action's name, which is often a date.
    first = min(found, key=lambda match: match.start())
    if first.re is _UNIX:
        fraction = first[2] or first[3] or ""
        return int(first[1]) * 10**9 + int(fraction.ljust(9, "0"))
    try:
        return _parse_date_ns(first.groupdict(), year, utc_offset_s)
    except (ValueError, OverflowError):
        return None


def _parse_date_ns(parts: dict[str, str | None], year: int, utc_offset_s: float) -> int:
    """Return the time of a matched time stamp in nanoseconds since 1970, UTC.

    `parts` are the groups of `_DATE`, as far as the time stamp has them. Raises `ValueError` or
    `OverflowError` for an impossible date.
    """
    date = int(parts.get("year") or year), int(parts.get("month") or 1), int(parts.get("day") or 1)
    hours, minutes, seconds = map(int, (parts["clock"] or "").split(":"))
    local = datetime(*date, tzinfo=UTC) + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    zone = (parts.get("zone") or "").replace(":", "")
    offset_s = utc_offset_s
    if zone == "Z":
        offset_s = 0.0
    elif zone:
        offset_s = int(f"{zone[0]}1") * (int(zone[1:3]) * 3600 + int(zone[3:5]) * 60)
    fraction = (parts.get("fraction") or "").ljust(9, "0")
    return int(local.timestamp() - offset_s) * 10**9 + int(fraction)


# ---- messages -----------------------------------------------------------------------------------


FoundMessage = tuple[str, channel.Value]
"""A message as JSON text, and decoded."""


def find_messages(text: str, depth: int = 0) -> Iterator[FoundMessage]:
    """Yield every message of the data channel in a text; `depth` counts the JSON around it."""
    if "type" not in text or depth > _MAX_DEPTH:
        return
    decoder = json.JSONDecoder()
    start = text.find("{")
    for attempt in range(_MAX_TRIES):
        if start < 0:
            return
        try:
            document, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
            if attempt == 0 and '\\"' in text:
                # JSON inside a text that is not JSON itself: its quotation marks are still escaped.
                yield from find_messages(
                    text[start:].replace('\\"', '"').replace("\\\\", "\\"), depth + 1
                )
        else:
            yield from _find_in_document(document, text[start:end], depth)
        start = text.find("{", end)


def _find_in_document(document: object, text: str, depth: int) -> Iterator[FoundMessage]:
    """Yield the document if it is a message, otherwise the messages in it.

    `text` is the document as JSON.
    """
    if not isinstance(document, dict) or depth > _MAX_DEPTH:
        return
    try:
        value = channel.decode(text)
    except DecodeError:
        value = channel.Unknown("", {})
    if not isinstance(value, channel.Unknown):
        yield text, value
        return
    for inner in document.values():
        if isinstance(inner, dict):
            yield from _find_in_document(inner, json.dumps(inner), depth + 1)
        elif isinstance(inner, str):
            yield from find_messages(inner, depth + 1)
