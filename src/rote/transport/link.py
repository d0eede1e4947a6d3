"""Carriers: sockets and libraries that move bytes from one end to the other.

A `Link` carries datagrams to and from one peer, a `Carrier` carries messages.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

from rote.errors import BadRequestError, MissingExtraError
from rote.model.family import Build
from rote.model.registry import build_named, find_build
from rote.text import suggest_names

# ---- a timer -------------------------------------------------------------------------------------


class Alarm:
    """Calls `callback` once, at the earliest time for which it was set."""

    def __init__(self, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.Handle | None = None
        # Stored here, because uvloop's timers for the current moment have no due time.
        self.due = float("inf")
        """When it fires, by the loop's clock; infinity if it is not set."""
        self.late_s = 0.0
        """How late it last fired, in seconds; large if this program stalled."""

    def set(self, due: float) -> None:
        """Fire at `due`, or at the time set before if that is earlier."""
        if due < self.due:
            self.clear()
            self.due = due
            self._timer = self._loop.call_at(due, self._fire)

    def clear(self) -> None:
        """Cancel the timer. Safe to call twice."""
        self.due = float("inf")
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _fire(self) -> None:
        self.late_s = self._loop.time() - self.due
        self.clear()
        self._callback()


Receiver = Callable[[bytes], None]


class Link(Protocol):
    """A connection to one peer for datagrams."""

    def send(self, datagram: bytes) -> None:
        """Send one datagram; it may get lost."""

    def close(self) -> None:
        """Close the link. Safe to call twice."""


Message = str | bytes


class Carrier:
    """A connection to one robot for messages."""

    max_message_bytes: int | None = None
    """Maximum message size that the robot accepts, in bytes; None if unknown."""

    def listen(self, receive: Callable[[Message], None], lost: Callable[[], None]) -> None:
        """Call `receive` with every message, and `lost` when the connection is gone."""
        raise NotImplementedError

    def send(self, message: Message) -> None:
        """Send one message."""
        raise NotImplementedError

    async def close(self) -> None:
        """Close the carrier."""
        raise NotImplementedError


Opener = Callable[[SplitResult, Receiver], Awaitable[Link]]

# scheme: (module, the extra that installs its dependencies)
SCHEMES: dict[str, tuple[str, str | None]] = {
    "udp": ("rote.transport.udp.link", None),
    "webrtc": ("rote.transport.webrtc.stack", "webrtc"),
    "dds": ("rote.transport.dds.participant", "dds"),
}


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL, or raise `BadRequestError` if it is invalid."""
    try:
        return urlsplit(url)
    except ValueError as error:
        raise BadRequestError(
            f"{url!r} is not an address: {error}",
            "Write an IPv6 address in brackets: udp://[::1].",
        ) from None


def make_unknown_wire_error(url: str) -> BadRequestError:
    """Return the error for a URL of an unknown scheme; it suggests what the user may have meant."""
    known = [f"{scheme}://" for scheme in sorted({*SCHEMES, "a1", "sim"})]
    scheme, separator, _ = url.partition("://")
    if separator:
        suggestion = suggest_names(f"{scheme}://", known)
    elif find_build(url) is not None:
        suggestion = f"Did you mean sim://{url}?"
    else:
        suggestion = f"Did you mean webrtc://{url}?" if _ADDRESS.fullmatch(url) else ""
    remedy = f"{suggestion} Begin it with one of: {', '.join(known)}.".lstrip()
    return BadRequestError(f"{url!r} does not name a wire that rote knows", remedy)


_ADDRESS = re.compile(r"ap|[0-9]+(\.[0-9]+){3}")
"""What people enter as a robot's address without a scheme: `ap`, or an IPv4 address."""


def parse_url_options(query: str) -> tuple[dict[str, str], Build | None]:
    """Return the options of a URL's query, without `build`, and the build that `build=NAME` names.

    Raises `BadRequestError` with the known names if there is no such build. The carrier checks the
    other options. If an option is repeated, the last one counts.
    """
    options = dict(parse_qsl(query, keep_blank_values=True))
    name = options.pop("build", None)
    return options, None if name is None else build_named(name)


def import_carrier(url: str) -> ModuleType:
    """Import and return the module of the wire that `url` names.

    Raises `MissingExtraError` if a library that it needs is not installed.
    """
    scheme = split_url(url).scheme
    try:
        module_name, extra = SCHEMES[scheme]
    except KeyError:
        raise make_unknown_wire_error(url) from None
    try:
        return import_module(module_name)
    except ImportError as error:
        if extra is None or isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError(f"the wire {scheme}://", extra) from error


async def open_link(url: str, receive: Receiver) -> Link:
    """Open the datagram link that `url` names, for example `udp://192.168.123.161:49504`."""
    return await cast("Opener", import_carrier(url).open_link)(split_url(url), receive)
