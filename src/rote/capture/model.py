"""What the decoders and the judgement of a capture share: kinds of packets, and the time line."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import IntEnum
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

PacketKinds = NDArray[np.uint8]
_EPOCH = datetime(1970, 1, 1)
"""In UTC, like all times here."""


class PacketKind(IntEnum):
    """What a datagram or segment is."""

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
        """The kind for a person."""
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
    """One line of the time line."""

    kind: str
    start_ns: int
    end_ns: int | None
    confidence: float
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
    """Return a time as ISO text in UTC; one outside the calendar becomes the calendar's end."""
    second, micros = divmod(time_ns // 1000, 1_000_000)
    try:
        return f"{_iso_second(second)}.{micros:06}Z"
    except OverflowError:
        return "9999-12-31T23:59:59.999999Z" if time_ns > 0 else "1970-01-01T00:00:00.000000Z"


@lru_cache(maxsize=4096)
def _iso_second(second: int) -> str:
    """Cached: thousands of flows begin and end within few seconds, and formatting is slow."""
    return (_EPOCH + timedelta(seconds=second)).isoformat()
