"""Carriers: the only home of sockets. A link takes datagrams to one peer and brings its answers."""

from collections.abc import Awaitable, Callable
from importlib import import_module
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
}


async def open_link(url: str, receive: Receiver) -> Link:
    """Open the carrier that `url` names, for example `udp://192.168.123.161:49504`."""
    parts = urlsplit(url)
    try:
        module_name, extra = TRANSPORTS[parts.scheme]
    except KeyError:
        known = ", ".join(f"{scheme}://" for scheme in sorted({*TRANSPORTS, "sim"}))
        raise BadRequestError(
            f"{url!r} does not name a wire that rote knows",
            f"Begin it with one of: {known} (webrtc:// and dds:// are planned).",
        ) from None
    try:
        module = import_module(module_name)
    except ImportError as error:
        if extra is None:
            raise
        raise MissingExtraError(f"the wire {parts.scheme}://", extra) from error
    return await cast("Opener", module.open_link)(parts, receive)
