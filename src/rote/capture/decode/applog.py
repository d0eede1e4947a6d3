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
_MAX_TRIES = 16
_DEEPEST = 4
_ECHO_NS = 50_000_000
"""The same question or answer within this time was logged twice."""
_DATE = re.compile(
    r"(?P<year>\d{4})[-/.](?P<month>\d\d)[-/.](?P<day>\d\d)[ T_]+"
    r"(?P<clock>\d\d:\d\d:\d\d)(?:[.,:](?P<fraction>\d{1,9}))?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_SHORT_DATE = re.compile(
    r"(?<!\d)(?P<month>\d\d)[-/](?P<day>\d\d) (?P<clock>\d\d:\d\d:\d\d)[.,:](?P<fraction>\d{1,9})"
)
_CLOCK = re.compile(r"(?<!\d)(?P<clock>\d\d:\d\d:\d\d)[.,](?P<fraction>\d{1,9})")
_UNIX = re.compile(r"(?<![\d.])(1\d{9})(?:\.(\d{1,9})|(\d{3}))?(?![\d.])")
_STAMPS = (_DATE, _SHORT_DATE, _CLOCK, _UNIX)


@dataclass(frozen=True, slots=True)
class AppLog:
    """What a log contains."""

    lines: int
    messages: int
    unknown: int
    """Lines without a message."""
    pairs: tuple[Pair, ...]
    states: tuple[StateChange, ...]
    faults: tuple[FaultNote, ...]
    timeline: tuple[TimelineEntry, ...]


def read(lines: Iterable[str], *, year: int = 1970, utc_offset_s: float = 0.0) -> AppLog:
    """Read a log. `year` completes a stamp without a year; a stamp without a zone is `utc_offset_s`
    ahead.
    """
    log = _Log(year, utc_offset_s)
    for line in lines:
        log.add_line(line)
    talk = log.dialogue
    return AppLog(
        log.lines,
        log.messages,
        log.unknown,
        tuple(talk.pairs),
        tuple(talk.states),
        tuple(talk.faults),
        tuple(talk.timeline()),
    )


@dataclass(slots=True)
class _Log:
    year: int
    utc_offset_s: float
    dialogue: Dialogue = field(default_factory=Dialogue)
    lines: int = 0
    messages: int = 0
    unknown: int = 0
    _now_ns: int = 0
    _last: tuple[int, str] = (0, "")

    def add_line(self, line: str) -> None:
        self.lines += 1
        if len(line) > MAX_LINE:
            self.unknown += 1
            return
        stamp = line.find("{")
        found = stamp_ns(line[: stamp if stamp >= 0 else 80], self.year, self.utc_offset_s)
        if found is None:  # some logs are JSON themselves, with the time inside
            found = stamp_ns(line[:200], self.year, self.utc_offset_s)
        if found is not None:
            self._now_ns = found
        found_any = False
        for text, value in messages(line):
            found_any = True
            self._add_message(text, value)
        self.unknown += not found_any

    def _add_message(self, text: str, value: channel.Value) -> None:
        if isinstance(value, RpcRequest | RpcResponse):
            before_ns, before = self._last
            self._last = self._now_ns, text
            if text == before and abs(self._now_ns - before_ns) < _ECHO_NS:
                return
        self.messages += 1
        self.dialogue.add_message(self._now_ns, value)


# ---- when ---------------------------------------------------------------------------------------


def stamp_ns(text: str, year: int = 1970, utc_offset_s: float = 0.0) -> int | None:
    """Return the first time stamp in a text, in nanoseconds since 1970, UTC; None without one."""
    found = [match for pattern in _STAMPS if (match := pattern.search(text))]
    if not found:
        return None
    first = min(found, key=lambda match: match.start())  # a later one may be part of a name
    if first.re is _UNIX:
        fraction = first[2] or first[3] or ""
        return int(first[1]) * 10**9 + int(fraction.ljust(9, "0"))
    try:
        return _timestamp_ns(first.groupdict(), year, utc_offset_s)
    except (ValueError, OverflowError):
        return None


def _timestamp_ns(parts: dict[str, str | None], year: int, utc_offset_s: float) -> int:
    date = int(parts.get("year") or year), int(parts.get("month") or 1), int(parts.get("day") or 1)
    hours, minutes, seconds = map(int, (parts["clock"] or "").split(":"))
    local = datetime(*date, tzinfo=UTC) + timedelta(hours=hours, minutes=minutes, seconds=seconds)
    zone = (parts.get("zone") or "").replace(":", "")
    offset_s = utc_offset_s
    if zone == "Z":
        offset_s = 0.0
    elif zone:
        offset_s = int(zone[0] + "1") * (int(zone[1:3]) * 3600 + int(zone[3:5]) * 60)
    fraction = (parts.get("fraction") or "").ljust(9, "0")
    return int(local.timestamp() - offset_s) * 10**9 + int(fraction)


# ---- what ---------------------------------------------------------------------------------------


Found = tuple[str, channel.Value]


def messages(text: str, depth: int = 0) -> Iterator[Found]:
    """Yield every message of the data channel in a text: as JSON text, and as a value."""
    if "type" not in text or depth > _DEEPEST:
        return
    decoder = json.JSONDecoder()
    at = text.find("{")
    for attempt in range(_MAX_TRIES):
        if at < 0:
            return
        try:
            document, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            end = at + 1
            if attempt == 0 and '\\"' in text:
                # JSON inside a text that is not JSON itself: its quotation marks are still escaped.
                yield from messages(text[at:].replace('\\"', '"').replace("\\\\", "\\"), depth + 1)
        else:
            yield from _find_messages(document, text[at:end], depth)
        at = text.find("{", end)


def _find_messages(document: object, text: str, depth: int) -> Iterator[Found]:
    """Yield the message that a document is, or those in it."""
    if not isinstance(document, dict) or depth > _DEEPEST:
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
            yield from _find_messages(inner, json.dumps(inner), depth + 1)
        elif isinstance(inner, str):
            yield from messages(inner, depth + 1)
