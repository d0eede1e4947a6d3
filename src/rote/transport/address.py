"""Hosts and ports as people write them."""

from ipaddress import IPv6Address
from urllib.parse import SplitResult

from rote.errors import BadRequestError

DEFAULT_PORT = 49504
Address = tuple[str, int]
_MAX_LABEL_BYTES, _MAX_HOST_BYTES = 63, 253
"""Maximum lengths of one label and of a whole host name (RFC 1035)."""


def check_host(host: str) -> str:
    """Return the host, or raise `BadRequestError` if it is not a valid host name."""
    if ":" in host:  # an IPv6 address; the system reads it
        return host
    labels = host.removesuffix(".").split(".")
    dots = len(labels) - 1
    if not all(labels):
        problem = "a part of it is empty"
    elif any(char.isspace() or not char.isprintable() for char in host):
        problem = "it contains spaces or control characters"
    elif any(_count_label_bytes(label) > _MAX_LABEL_BYTES for label in labels):
        problem = f"a part of it is longer than {_MAX_LABEL_BYTES} bytes"
    elif sum(map(_count_label_bytes, labels)) + dots > _MAX_HOST_BYTES:
        problem = f"it is longer than {_MAX_HOST_BYTES} bytes"
    else:
        return host
    raise BadRequestError(
        f"{host!r} is not a host name: {problem}", "Write one like 192.168.123.161 or robot.local."
    )


def _count_label_bytes(label: str) -> int:
    """Return the length of a label as DNS encodes it; over the maximum if it cannot be encoded."""
    if label.isascii():
        return len(label)
    try:
        return len(label.encode("idna"))
    except UnicodeError:
        return _MAX_LABEL_BYTES + 1


def host_and_port(text: str, default_port: int = DEFAULT_PORT) -> Address:
    """Return the host and the port in `HOST`, `HOST:PORT` or `[IPV6]:PORT`.

    Raises `BadRequestError` for any other text.
    """
    try:
        parts = SplitResult("udp", text, "", "", "")
        host, port = parts.hostname, parts.port
        if host is not None and ":" in host:
            IPv6Address(host)
    except ValueError:
        host, port = None, None
    if not host or text.endswith(":"):
        raise BadRequestError(
            f"{text!r} is not a host and port", "Write HOST or HOST:PORT, like 127.0.0.1:49504."
        )
    return check_host(host), default_port if port is None else port
