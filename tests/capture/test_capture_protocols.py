"""What is named beside the robots' own protocols, and that every packet is accounted for."""

import random
import struct
from pathlib import Path
from typing import Any

import lz4.frame
import pytest
import zstandard

from capture import capture_files as files
from capture.recorded import needs, tshark
from capture.test_capture_leaks import (
    dns,
    encode_netbios_name,
    hello,
    labels,
    packets,
    pcap,
    rtps,
    tls,
)
from rote.capture.report.report import report_capture

PHONE, ROBOT = files.PHONE, files.ROBOT
MACS = bytes.fromhex("020000000001 020000000002")


def document(path: Path, found: list[bytes], link: int = 101) -> dict[str, Any]:
    path.write_bytes(files.pcap([(files.START_NS + n, one) for n, one in enumerate(found)], link))
    return report_capture(path).document()


def to(port: int, payload: bytes, source: int = 40_000) -> bytes:
    return files.udp((PHONE[0], source), (ROBOT[0], port), payload)


def quic_long(size: int = 1200) -> bytes:
    return b"\xc3\0\0\0\1\x08" + bytes(range(8)) + b"\0\0\x44\x80" + bytes(size)


NETBIOS_NAME = labels(encode_netbios_name(b"A-LAPTOP".ljust(15) + b"\0"))
DHCP = b"\1\1\6\0" + bytes(232) + b"\x63\x82\x53\x63\x35\1\1\xff"
SMB = b"\x11\x0a\0\1\x0a\0\0\1\0\x8a\0\x44\0\0" + NETBIOS_NAME * 2
SEARCH = b"M-SEARCH * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\n\r\n"
PROBE = b'<?xml version="1.0"?><soap:Envelope/>'
KNOWN: list[tuple[str, bytes]] = [
    ("QUIC", to(443, quic_long())),
    ("SSDP", to(1900, SEARCH)),
    ("NTP", to(123, b"\x23" + bytes(47), 123)),
    ("DHCP", to(67, DHCP, 68)),
    ("NetBIOS", to(137, dns(NETBIOS_NAME), 137)),
    ("NetBIOS", to(138, SMB, 138)),
    ("WS-Discovery", to(3702, PROBE)),
    ("DDS (RTPS)", to(7400, rtps())),
    ("mDNS", to(5353, dns(labels(b"a", b"local")), 5353)),
]


@pytest.mark.parametrize(("name", "packet"), KNOWN)
def test_protocols_of_a_usual_network_are_named(name: str, packet: bytes, tmp_path: Path) -> None:
    found = document(tmp_path / "a.pcap", [packet])
    assert found["kinds"] == {name: 1}
    assert found["accounted"] == {name: 1}
    assert found["flows"][0]["name"] == name
    assert found["flows"][0]["why"]


def test_short_headers_of_quic_count_only_beside_a_long_one(tmp_path: Path) -> None:
    short = [to(443, b"\x45" + random.Random(n).randbytes(60)) for n in range(5)]
    assert document(tmp_path / "a.pcap", short)["kinds"] == {"unknown": 5}
    both = document(tmp_path / "b.pcap", [to(443, quic_long()), *short])
    assert both["kinds"] == {"QUIC": 6}
    assert both["flows"][0]["name"] == "QUIC"


def test_media_beside_dtls_is_secured_media(tmp_path: Path) -> None:
    rtp = [
        files.udp(PHONE, ROBOT, struct.pack(">BBHII", 0x80, 96, n, n * 90, 7) + bytes(50))
        for n in range(6)
    ]
    alone = document(tmp_path / "a.pcap", rtp)
    assert alone["kinds"] == {"RTP": 6}
    beside = document(tmp_path / "b.pcap", [files.udp(PHONE, ROBOT, files.record(1, 44)), *rtp])
    assert beside["kinds"] == {"DTLS": 1, "SRTP": 6}
    assert alone["srtp_packets"] == beside["srtp_packets"] == 6


def test_dns_over_tcp_and_the_name_that_tls_asks_for_are_told(tmp_path: Path) -> None:
    message = dns(labels(b"robot", b"example", b"org"))
    asked = files.tcp((PHONE[0], 5555), (ROBOT[0], 53), len(message).to_bytes(2) + message)
    secure = files.tcp((PHONE[0], 5556), (ROBOT[0], 443), tls(hello(b"cloud.example.org")))
    found = document(tmp_path / "a.pcap", [asked, secure])
    assert found["kinds"] == {"DNS": 1, "TLS": 1}
    assert [flow["notes"] for flow in found["flows"]] == [
        ["robot.example.org"],
        ["server name cloud.example.org"],
    ]


# ---- below UDP and TCP --------------------------------------------------------------------------


INNER = files.udp(PHONE, ROBOT, files.check(1))
INNER6 = files.udp(files.PHONE6, files.ROBOT6, files.check(1))
FRAME = MACS + b"\x08\0" + INNER
SNAP = b"\xaa\xaa\x03\0\0\0\x08\0" + INNER
WRAPPED = {
    "LLC/SNAP": MACS + len(SNAP).to_bytes(2) + SNAP,
    "PPPoE": MACS + b"\x88\x64\x11\0\0\1" + (len(INNER) + 2).to_bytes(2) + b"\0\x21" + INNER,
    "MPLS": MACS + b"\x88\x47" + b"\0\1\0\x40" + b"\0\2\x01\x40" + INNER,
    "IP in IP": MACS + b"\x08\0" + files.ip4("1.2.3.4", "5.6.7.8", 4, INNER),
    "IPv6 in IP": MACS + b"\x08\0" + files.ip4("1.2.3.4", "5.6.7.8", 41, INNER6),
    "GRE": MACS + b"\x08\0" + files.ip4("1.2.3.4", "5.6.7.8", 47, b"\x20\0\x08\0\0\0\0\7" + INNER),
    "VXLAN": MACS
    + b"\x08\0"
    + files.udp(("1.2.3.4", 999), ("5.6.7.8", 4789), b"\x08\0\0\0\0\0\7\0" + FRAME),
}


@pytest.mark.parametrize("name", WRAPPED)
def test_what_travels_inside_another_protocol_is_read(name: str, tmp_path: Path) -> None:
    found = document(tmp_path / "a.pcap", [WRAPPED[name], FRAME], 1)
    assert found["tunnels"] == {name: 1}
    assert found["kinds"] == {"STUN": 2}
    assert found["accounted"] == {"STUN": 2}
    assert not [warning for warning in found["warnings"] if "STUN request" not in warning]
    assert {flow["a"] for flow in found["flows"]} <= {"10.215.173.1:55371", "[2001:db8::1]:55371"}


def test_bridged_frames_in_gre_are_read(tmp_path: Path) -> None:
    bridged = files.ip4("1.2.3.4", "5.6.7.8", 47, b"\0\0\x65\x58" + FRAME)
    assert document(tmp_path / "a.pcap", [bridged])["kinds"] == {"STUN": 1}


def test_a_tunnel_with_something_else_in_it_is_warned_of(tmp_path: Path) -> None:
    gre = files.ip4("1.2.3.4", "5.6.7.8", 47, b"\x30\x01\x88\x0b" + bytes(20))
    found = document(tmp_path / "a.pcap", [gre])
    assert found["accounted"] == {"GRE": 1}
    assert "1 packets of GRE have contents that were not read" in found["warnings"]
    mpls = MACS + b"\x88\x47" + b"\0\1\x01\x40" + bytes(30)
    assert "PPPoE or MPLS" in document(tmp_path / "b.pcap", [mpls], 1)["warnings"][0]


def wifi(
    *, ways: int = 1, flags: int = 0, quality: bytes = b"", pad: int = 0, inner: bytes = INNER
) -> bytes:
    """Return a data frame of 802.11; `ways` are the bits to and from the access point."""
    first = 0x88 if quality else 0x08
    addresses = bytes(range(18)) + b"\0\0" + (bytes(6) if ways == 3 else b"")
    header = bytes((first, ways | flags, 0, 0)) + addresses + quality
    kind = b"\x86\xdd" if inner[0] >> 4 == 6 else b"\x08\0"
    return header + bytes(pad) + b"\xaa\xaa\x03\0\0\0" + kind + inner


def radiotap(frame: bytes, fields: bytes = b"", *present: int) -> bytes:
    words = b"".join(word.to_bytes(4, "little") for word in present or (0,))
    return struct.pack("<BBH", 0, 0, 4 + len(words) + len(fields)) + words + fields + frame


BEACON = b"\x80\0" + bytes(34) + b"\0\5robot"
ON_LINKS: dict[str, tuple[int, bytes]] = {
    "PPP": (9, b"\xff\x03\0\x21" + INNER),
    "PPP, compressed": (9, b"\x21" + INNER),
    "PPP with IPv6": (9, b"\xff\x03\0\x57" + INNER6),
    "PPP in HDLC framing": (50, b"\xff\x03\0\x21" + INNER),
    "802.11 to the access point": (105, wifi(ways=1)),
    "802.11 from the access point, IPv6": (105, wifi(ways=2, inner=INNER6)),
    "802.11 between access points": (105, wifi(ways=3)),
    "802.11 with quality of service": (105, wifi(quality=b"\5\0")),
    "802.11 with HT control": (105, wifi(quality=b"\5\0\1\2\3\4", flags=0x80)),
    "radiotap": (127, radiotap(wifi(quality=b"\5\0"))),
    "radiotap with time and flags": (127, radiotap(wifi(), bytes(4) + bytes(8) + b"\0\x0c", 7)),
    "radiotap with padding": (127, radiotap(wifi(quality=b"\5\0", pad=2), b"\x20\0", 2)),
    "radiotap with two words": (
        127,
        radiotap(wifi(quality=b"\5\0", pad=2), b"\x20\0", 2 | 1 << 31, 0),
    ),
}
NOT_READ_ON_LINKS: dict[str, tuple[int, bytes]] = {
    "PPP control": (9, b"\xff\x03\xc0\x21" + b"\1\1\0\4"),
    "beacon": (127, radiotap(BEACON)),
    "encrypted": (105, wifi(flags=0x40)),
    "without data": (105, b"\x48\1" + bytes(22)),
    "aggregate": (105, wifi(quality=b"\x80\0")),
}


@pytest.mark.parametrize("name", ON_LINKS)
def test_ppp_and_wifi_in_the_clear_are_read(name: str, tmp_path: Path) -> None:
    link, packet = ON_LINKS[name]
    found = document(tmp_path / "a.pcap", [packet], link)
    assert found["kinds"] == {"STUN": 1}
    assert found["accounted"] == {"STUN": 1}
    assert {flow["a"] for flow in found["flows"]} <= {"10.215.173.1:55371", "[2001:db8::1]:55371"}


@pytest.mark.parametrize("name", NOT_READ_ON_LINKS)
def test_frames_of_ppp_and_wifi_without_readable_ip_are_counted(name: str, tmp_path: Path) -> None:
    link, packet = NOT_READ_ON_LINKS[name]
    found = document(tmp_path / "a.pcap", [packet], link)
    assert found["kinds"] == {}
    assert sum(found["accounted"].values()) == 1
    assert not found["flows"]
    warned = "1 frames of Wi-Fi are encrypted and were not read; capture on the phone"
    assert any(warned in words for words in found["warnings"]) == (name == "encrypted")


@pytest.mark.slow
@needs("tshark")
def test_tshark_finds_the_same_datagrams_on_ppp_and_wifi(tmp_path: Path) -> None:
    frames = {**ON_LINKS, **NOT_READ_ON_LINKS}
    for link in (9, 50, 105, 127):
        path = tmp_path / f"{link}.pcap"
        found = document(path, [packet for each, packet in frames.values() if each == link], link)
        # tshark also reads what is inside aggregates; this one has nothing valid inside.
        rows = tshark(path, "-Y", "udp", fields=("udp.srcport", "udp.dstport"))
        assert sum(flow["packets"] for flow in found["flows"]) == len(rows)
        assert {tuple(row) for row in rows} == {("55371", "49504")}


@pytest.mark.parametrize("link", [119, 163, 192])
def test_wifi_from_the_air_is_warned_of(link: int, tmp_path: Path) -> None:
    found = document(tmp_path / "a.pcap", [bytes(40)] * 3, link)
    assert found["accounted"] == {f"linktype {link}": 3}
    assert "Wi-Fi as it is in the air" in found["warnings"][0]
    assert "capture on the phone" in found["warnings"][0]


def test_arp_is_named_and_icmp_says_what_it_quotes(tmp_path: Path) -> None:
    quoted = files.udp(PHONE, ROBOT, b"hello")
    error = MACS + b"\x08\0" + files.ip4(ROBOT[0], PHONE[0], 1, b"\3\3\0\0" + bytes(4) + quoted)
    ping = MACS + b"\x08\0" + files.ip4(ROBOT[0], PHONE[0], 1, b"\x08\0\0\0" + bytes(12))
    arp = MACS + b"\x08\6" + bytes(28)
    found = document(tmp_path / "a.pcap", [error, error, ping, arp], 1)
    assert found["accounted"] == {"ICMP": 3, "ARP": 1}
    assert found["icmp"] == [
        {
            "message": "ICMP destination unreachable: port",
            "packets": 2,
            "quotes": {"UDP 10.215.173.1:55371 -> 192.168.137.164:49504": 2},
        },
        {"message": "ICMP echo request", "packets": 1, "quotes": {}},
    ]


def test_every_packet_is_accounted_for(tmp_path: Path) -> None:
    found = [*packets(), *WRAPPED.values(), MACS + b"\x88\xcc" + bytes(30), MACS + b"\x08\0"]
    whole = files.udp_part(PHONE, ROBOT, bytes(40))
    for field, body in ((0x2000, whole[:24]), (3, whole[24:])):
        piece = files.ip4(PHONE[0], ROBOT[0], 17, body, fragment=field, number=9)
        found.append(MACS + b"\x08\0" + piece)
    found += [MACS + b"\x08\0" + files.ip4(PHONE[0], ROBOT[0], 17, bytes(3))]
    told = document(tmp_path / "a.pcap", found, 1)
    assert sum(told["accounted"].values()) == told["packets"] == len(found)
    assert told["accounted"]["damaged headers"] == 1
    assert told["accounted"]["pieces of larger packets"] == 1
    assert told["accounted"]["IP that ends too early"] == 1


@pytest.mark.parametrize("pack", [lz4.frame.compress, zstandard.ZstdCompressor().compress])
def test_zstd_and_lz4_files_are_read_up_to_their_end(pack: Any, tmp_path: Path) -> None:
    chance = random.Random(1)
    found = [FRAME] * 50 + [MACS + b"\x08\0" + to(9, chance.randbytes(1400)) for _ in range(400)]
    packed = pack(pcap(found))
    (tmp_path / "a").write_bytes(packed)
    assert report_capture(tmp_path / "a").document()["packets"] == 450
    (tmp_path / "a").write_bytes(packed[:-40])
    told = report_capture(tmp_path / "a").document()
    assert 50 < told["packets"] < 450
    assert "damaged (it ends too early)" in told["warnings"][0]


@pytest.mark.slow
@needs("tshark")
def test_tshark_names_the_same(tmp_path: Path) -> None:
    path = tmp_path / "a.pcap"
    document(path, [packet for _, packet in KNOWN])
    seen = tshark(path, fields=("frame.protocols",))
    theirs = ["quic", "ssdp", "ntp", "dhcp", "nbns", "nbdgm", "data", "rtps", "mdns"]
    for wanted, (protocols, *_) in zip(theirs, seen, strict=True):
        assert wanted in protocols.split(":")
