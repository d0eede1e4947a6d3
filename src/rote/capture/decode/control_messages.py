"""ICMP: the meaning of its messages, and the packets they quote."""

from collections import Counter
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from rote.capture.read.packets import PROTOCOLS, TCP, UDP

_MAX_QUOTES = 16
_TYPES = {
    (4, 0): "echo reply",
    (4, 3): "destination unreachable",
    (4, 4): "source quench",
    (4, 5): "redirect",
    (4, 8): "echo request",
    (4, 9): "router advertisement",
    (4, 10): "router solicitation",
    (4, 11): "time exceeded",
    (4, 12): "parameter problem",
    (4, 13): "timestamp request",
    (4, 14): "timestamp reply",
    (6, 1): "destination unreachable",
    (6, 2): "packet too big",
    (6, 3): "time exceeded",
    (6, 4): "parameter problem",
    (6, 128): "echo request",
    (6, 129): "echo reply",
    (6, 130): "group query",
    (6, 131): "group report",
    (6, 132): "group done",
    (6, 133): "router solicitation",
    (6, 134): "router advertisement",
    (6, 135): "neighbour solicitation",
    (6, 136): "neighbour advertisement",
    (6, 137): "redirect",
    (6, 143): "group report",
}
_CODES = {
    (4, 3, 0): "network",
    (4, 3, 1): "host",
    (4, 3, 2): "protocol",
    (4, 3, 3): "port",
    (4, 3, 4): "fragmentation needed",
    (4, 3, 13): "prohibited",
    (6, 1, 0): "no route",
    (6, 1, 1): "prohibited",
    (6, 1, 3): "address",
    (6, 1, 4): "port",
}
_QUOTING = frozenset(((4, 3), (4, 4), (4, 5), (4, 11), (4, 12), (6, 1), (6, 2), (6, 3), (6, 4)))


def control_messages(
    counts: dict[tuple[int, int, int], int], samples: Iterable[tuple[int, bytes]]
) -> list[dict[str, Any]]:
    """Return each kind of message: `message`, `packets`, and which flows it `quotes`.

    `counts` is by IP version, type and code; `samples` are pairs of IP version and message.
    """
    quotes: dict[tuple[int, int, int], Counter[str]] = {}
    for version, message in samples:
        if len(message) >= 8 and (version, message[0]) in _QUOTING:
            quoted = _quoted_ends(message[8:])
            if quoted:
                quotes.setdefault((version, message[0], message[1]), Counter())[quoted] += 1
    return [
        {
            "message": _message_label(*key),
            "packets": count,
            "quotes": dict(quotes.get(key, Counter()).most_common(_MAX_QUOTES)),
        }
        for key, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    ]


def _message_label(version: int, kind: int, code: int) -> str:
    protocol = "ICMP" if version == 4 else "ICMPv6"
    name = _TYPES.get((version, kind), f"type {kind}")
    detail = _CODES.get((version, kind, code))
    return f"{protocol} {name}{f': {detail}' if detail else ''}"


def _quoted_ends(packet: bytes) -> str:
    """Return source and destination of a quoted packet; empty if it cannot be read."""
    if len(packet) >= 20 and packet[0] >> 4 == 4:
        source, target = (str(IPv4Address(packet[at : at + 4])) for at in (12, 16))
        protocol, at = packet[9], (packet[0] & 15) * 4
    elif len(packet) >= 40 and packet[0] >> 4 == 6:
        source, target = (f"[{IPv6Address(packet[at : at + 16])}]" for at in (8, 24))
        protocol, at = packet[6], 40
    else:
        return ""
    if protocol in (TCP, UDP) and len(packet) >= at + 4:
        ports = int.from_bytes(packet[at : at + 2]), int.from_bytes(packet[at + 2 : at + 4])
        name = "TCP" if protocol == TCP else "UDP"
        return f"{name} {source}:{ports[0]} -> {target}:{ports[1]}"
    return f"{PROTOCOLS.get(protocol, f'IP protocol {protocol}')} {source} -> {target}"
