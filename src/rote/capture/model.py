"""Types shared by the packages of a capture: kinds of packets, and entries of the time line."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Datagram(NamedTuple):
    """A datagram, with its addresses and its time."""

    time_ns: int
    """Nanoseconds since 1970, UTC."""
    source: tuple[str, int]
    """Address and port."""
    destination: tuple[str, int]
    payload: bytes


PacketKinds = NDArray[np.uint8]
_EPOCH = datetime(1970, 1, 1)
"""In UTC, like all times here."""


class PacketKind(IntEnum):
    """The protocol of a UDP datagram or TCP segment."""

    UNKNOWN = 0
    EMPTY = 1
    DTLS = 2
    STUN = 3
    RTP = 4
    RTCP = 5
    TEACHING = 6
    A1 = 7
    DISCOVERY = 8
    RTPS = 9
    DNS = 10
    MDNS = 11
    TLS = 12
    HTTP = 13
    TCP = 14
    QUIC = 15
    QUIC_SHORT = 16
    """Possibly a QUIC packet after the handshake; the rest of the flow decides."""
    SRTP = 17
    SRTCP = 18
    SSDP = 19
    NTP = 20
    DHCP = 21
    NETBIOS = 22
    WSD = 23

    @property
    def label(self) -> str:
        """The kind as shown to the user."""
        return _LABELS[self]


_LABELS = {kind: kind.name for kind in PacketKind} | {
    PacketKind.UNKNOWN: "unknown",
    PacketKind.EMPTY: "empty",
    PacketKind.TEACHING: "teaching frame",
    PacketKind.A1: "A1 UDP",
    PacketKind.DISCOVERY: "robot discovery",
    PacketKind.RTPS: "DDS (RTPS)",
    PacketKind.MDNS: "mDNS",
    PacketKind.QUIC_SHORT: "unknown",
    PacketKind.NETBIOS: "NetBIOS",
    PacketKind.WSD: "WS-Discovery",
    PacketKind.TCP: "TCP",
}


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An event or period of a capture, such as a play, and how it is known."""

    kind: str
    start_ns: int
    end_ns: int | None
    """None for a moment, and if the end was not captured."""
    confidence: float
    """From 0 to 1."""
    evidence: str

    def document(self) -> dict[str, object]:
        """Return what `--json` shows."""
        return {
            "kind": self.kind,
            "start": iso(self.start_ns),
            "end": None if self.end_ns is None else iso(self.end_ns),
            "confidence": round(self.confidence, 2),
            "evidence": self.evidence,
        }


def iso(time_ns: int) -> str:
    """Return a time, in nanoseconds since 1970, as ISO 8601 text in UTC.

    A time outside the years 1 to 9999 becomes the beginning of 1970 or the end of 9999.
    """
    second, micros = divmod(time_ns // 1000, 1_000_000)
    try:
        return f"{_iso_second(second)}.{micros:06}Z"
    except OverflowError:
        return "9999-12-31T23:59:59.999999Z" if time_ns > 0 else "1970-01-01T00:00:00.000000Z"


@lru_cache(maxsize=4096)
def _iso_second(second: int) -> str:
    """Cached: thousands of flows begin and end within few seconds, and formatting is slow."""
    return (_EPOCH + timedelta(seconds=second)).isoformat()
