"""Carriers: sockets and libraries that move bytes from one end to the other.

A `Link` carries datagrams to and from one peer, a `Carrier` carries messages.
"""

from collections.abc import Awaitable, Callable
from importlib import import_module
from types import ModuleType
from typing import Protocol, cast
from urllib.parse import SplitResult, parse_qsl, urlsplit

from rote.errors import BadRequestError, MissingExtraError
from rote.model.family import Build
from rote.model.registry import build_named

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

    most_bytes: int | None = None
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
            "An IPv6 address stands in brackets: udp://[::1].",
        ) from None


_MAX_LABEL, _MAX_HOST = 63, 253
"""Maximum length of one label and of a whole host name, in bytes (RFC 1035)."""


def check_host(host: str) -> str:
    """Return the host, or raise `BadRequestError` if it is not a valid host name."""
    if ":" in host:  # an IPv6 address; the system reads it
        return host
    labels = host.removesuffix(".").split(".")
    if not all(labels):
        problem = "a part of it is empty"
    elif any(each.isspace() or not each.isprintable() for each in host):
        problem = "it holds spaces or control characters"
    elif any(_label_bytes(label) > _MAX_LABEL for label in labels):
        problem = f"a part of it is longer than {_MAX_LABEL} bytes"
    elif sum(_label_bytes(label) + 1 for label in labels) > _MAX_HOST + 1:
        problem = f"it is longer than {_MAX_HOST} bytes"
    else:
        return host
    raise BadRequestError(
        f"{host!r} is not a host name: {problem}", "Write one like 192.168.123.161 or robot.local."
    )


def _label_bytes(label: str) -> int:
    """Return the encoded length of a label in bytes; over the maximum if it cannot be encoded."""
    if label.isascii():
        return len(label)
    try:
        return len(label.encode("idna"))
    except UnicodeError:
        return _MAX_LABEL + 1


def parse_url_options(query: str) -> tuple[dict[str, str], Build | None]:
    """Return the options of a URL's query, without `build`, and the build that `build=NAME` names.

    Raises `BadRequestError` with the known names if there is no such build. The carrier checks the
    other options. If an option is repeated, the last one counts.
    """
    options = dict(parse_qsl(query, keep_blank_values=True))
    name = options.pop("build", None)
    return options, None if name is None else build_named(name)


def import_carrier(url: str) -> ModuleType:
    """Import and return the module of the wire that `url` names."""
    scheme = split_url(url).scheme
    try:
        module_name, extra = SCHEMES[scheme]
    except KeyError:
        known = ", ".join(f"{scheme}://" for scheme in sorted({*SCHEMES, "a1", "sim"}))
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
    """Open the datagram link that `url` names, for example `udp://192.168.123.161:49504`."""
    return await cast("Opener", import_carrier(url).open_link)(split_url(url), receive)
