"""Carriers: the only home of sockets. A link takes datagrams to one peer and brings its answers."""

from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast
from urllib.parse import SplitResult, urlsplit

from rote.errors import BadRequestError, MissingExtraError

Receiver = Callable[[bytes], None]


class Link(Protocol):
    """A way to one peer."""

    def send(self, datagram: bytes) -> None:
        """Send one datagram; it may get lost."""

    def close(self) -> None:
        """Let go of the carrier. Safe to call twice."""


Opener = Callable[[SplitResult, Receiver], Awaitable[Link]]

# scheme: (module, the extra that brings its dependencies)
TRANSPORTS: dict[str, tuple[str, str | None]] = {
    "udp": ("rote.transport.udp", None),
    "webrtc": ("rote.transport.webrtc", "webrtc"),
    "dds": ("rote.transport.dds_client", "dds"),
}


def split_url(url: str) -> SplitResult:
    """Return the parts of a URL, or raise `BadRequestError` where it is none."""
    try:
        return urlsplit(url)
    except ValueError as error:
        raise BadRequestError(
            f"{url!r} is no address: {error}", "An IPv6 address stands in brackets: udp://[::1]."
        ) from None


def carrier_of(url: str) -> ModuleType:
    """Return the module for the wire that `url` names, imported when it is first needed."""
    scheme = split_url(url).scheme
    try:
        module_name, extra = TRANSPORTS[scheme]
    except KeyError:
        known = ", ".join(f"{scheme}://" for scheme in sorted({*TRANSPORTS, "a1", "sim"}))
        raise BadRequestError(
            f"{url!r} does not name a wire that rote knows",
            f"Begin it with one of: {known}.",
        ) from None
    try:
        return import_module(module_name)
    except ImportError as error:
        if extra is None or isinstance(error, MissingExtraError):
            raise
        raise MissingExtraError(f"the wire {scheme}://", extra) from error


async def open_link(url: str, receive: Receiver) -> Link:
    """Open the carrier of datagrams that `url` names, for example `udp://192.168.123.161:49504`."""
    return await cast("Opener", carrier_of(url).open_link)(split_url(url), receive)
