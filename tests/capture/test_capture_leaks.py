"""Nothing leaks: identifiers of many kinds are planted, and every byte of the copy is searched."""

import base64
import contextlib
import gzip
import json
import random
import re
import struct
import uuid
import zlib
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from pathlib import Path

import lz4.frame
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from rote.capture.model import Datagram
from rote.capture.read.reader import NotACaptureError
from rote.capture.scrub.pseudonyms import Pseudonyms
from rote.capture.scrub.scrub import Scrubbed, scrub
from rote.capture.synthetic.ethernet import checksum, udp_frame
from rote.wire.a1 import codec as a1
from rote.wire.a1 import values as a1_values
from rote.wire.packets import stun
from rote.wire.teaching import codec as teaching
from sampled import sample_examples

KEY = b"a key for tests"
MAC, ROUTER_MAC, PRINTER_MAC = (
    bytes.fromhex(h) for h in ("3c5ab4a1b2c3", "94456077889a", "001e0bd5e6f7")
)
PHONE, ROBOT, SERVER, RELAY = "192.168.86.23", "192.168.86.57", "93.184.216.134", "81.169.145.77"
SIXTH = IPv6Address("2001:db8:77:1:3e5a:b4ff:fea1:b2c3")
DEVICE = uuid.UUID("6f1c9c2e-8f5b-4d0a-9f3e-3c5ab4a1b2c3")
SECRETS: dict[str, bytes] = {
    "serial number": b"E21D1000PBVC0042",
    "serial number of digits": b"7730041298",
    "token": b"eyJhbGciOiJIUzI1NiJ9.c2VjcmV0",
    "password": b"correct-horse-battery",
    "mail address": b"barbara.liskov@example-mail.net",
    "phone number": b"+49 171 5550123",
    "host name in mDNS": b"Barbaras-iPhone",
    "service instance": b"Wohnzimmer von Barbara",
    "name in another script": "芭芭拉的手机".encode(),
    "host name in NetBIOS": b"LISKOV-LAPTOP",
    "workgroup": b"LISKOVHOME",
    "host name in DHCP": b"barbaras-pixel",
    "name asked in DNS": b"nas-of-liskov",
    "name asked over TCP": b"dns-tcp-secret",
    "name in TLS": b"cloud.liskov-robots.example",
    "name in QUIC": b"video.liskov-stream.example",
    "name in a certificate": b"liskov-nas.fritz.box",
    "organisation in a certificate": b"Liskov Robotics GmbH",
    "network name": b"FRITZ!Box Liskov 5G",
    "friendly name in UPnP": b"Barbaras Kamera",
    "computer in WS-Discovery": b"LISKOV-WORKSTATION",
    "action name": b"wave_to_liskov",
    "ICE user": b"kX9z",
    "ICE password": b"Jq83hfYw02mSsL1pXcVb",
    "cookie": b"session=a81bc81bdead4e5dabff",
    "participant in DDS": bytes.fromhex("0110a1b2c3d4e5f601234567"),
    "name in DDS": b"liskov_dds_node",
    "sample in DDS": b"said by barbara only",
    "unknown datagram": b"\x00\xffbarbara-in-binary\xfe\x01",
    "lldp": b"switch-in-liskovs-cellar",
    "text across segments": b"SPLITSERIAL0099",
    "text after a border": b"barbara-across",
    "SSDP product": b"LiskovOS/7.1 UPnP/1.0",
}  # fmt: skip


def encode_netbios_name(name: bytes) -> bytes:
    """Return the label of a NetBIOS name of 16 bytes, two letters for each."""
    return bytes(ord("A") + half for byte in name for half in (byte >> 4, byte & 15))


def labels(*names: bytes) -> bytes:
    return b"".join(bytes((len(name),)) + name for name in names) + b"\0"


def dns(question: bytes, *records: bytes) -> bytes:
    return (
        struct.pack(">HHHHHH", 9, 0x8400, 1, len(records), 0, 0)
        + question
        + b"\0\1\0\1"
        + b"".join(records)
    )


def record(name: bytes, kind: int, data: bytes) -> bytes:
    return name + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


def frame(ip: bytes, kind: int = 0x0800) -> bytes:
    return ROUTER_MAC + MAC + kind.to_bytes(2) + ip


def ip(protocol: int, payload: bytes, source: str = PHONE, target: str = SERVER) -> bytes:
    head = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(payload), 7, 0x4000, 64, protocol, 0)
    head += ip_address(source).packed + ip_address(target).packed
    return head[:10] + checksum(head).to_bytes(2) + head[12:] + payload


def udp(payload: bytes, port: int, source: str = PHONE, target: str = ROBOT, own: int = 0) -> bytes:
    whole = udp_frame(Datagram(0, (source, own or 40_000 + port % 1000), (target, port), payload))
    return ROUTER_MAC + MAC + whole[12:]


def tcp(payload: bytes, port: int, sequence: int = 1000, own: int = 50_123) -> bytes:
    head = struct.pack(">HHIIBBHHH", own, port, sequence, 2, 0x50, 0x18, 1000, 0, 0)
    return frame(ip(6, head + payload))


def der(tag: int, content: bytes) -> bytes:
    size = len(content)
    return bytes((tag,)) + (bytes((size,)) if size < 128 else b"\x82" + size.to_bytes(2)) + content


def certificate() -> bytes:
    name = der(
        0x30,
        der(0x31, der(0x30, der(6, b"\x55\4\3") + der(12, SECRETS["name in a certificate"])))
        + der(
            0x31,
            der(0x30, der(6, b"\x55\4\x0a") + der(19, SECRETS["organisation in a certificate"])),
        ),
    )
    alternative = der(
        0x30, der(0x82, SECRETS["name in a certificate"]) + der(0x87, ip_address(PHONE).packed)
    )
    extension = der(0xA3, der(0x30, der(0x30, der(6, b"\x55\x1d\x11") + der(4, alternative))))
    body = der(2, DEVICE.bytes) + name + name + extension
    return der(0x30, der(0x30, body) + der(3, b"\0" + DEVICE.bytes * 4))


def hello(name: bytes) -> bytes:
    extension = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    body = (
        b"\3\3"
        + bytes(32)
        + b"\0"
        + b"\0\2\x13\1"
        + b"\1\0"
        + len(extension).to_bytes(2)
        + extension
    )
    return b"\1" + len(body).to_bytes(3) + body


def tls(message: bytes) -> bytes:
    return b"\x16\3\1" + len(message).to_bytes(2) + message


def dtls(message: bytes, number: int = 0) -> bytes:
    whole = message[:4] + number.to_bytes(2) + bytes(3) + message[1:4] + message[4:]
    return b"\x16\xfe\xfd" + bytes(8) + len(whole).to_bytes(2) + whole


def quic(name: bytes) -> bytes:
    """An initial packet; the name stands for itself, as everybody can decrypt such a packet."""
    inside = bytes(40) + name + bytes(1100)
    return (
        b"\xc3\0\0\0\1\x08"
        + b"conn-id1"
        + b"\0"
        + b"\0"
        + (0x4000 | len(inside)).to_bytes(2)
        + inside
    )


def rtps() -> bytes:
    prefix = SECRETS["participant in DDS"]
    node = SECRETS["name in DDS"] + b"\0"
    node += bytes(-len(node) % 4)
    locator = struct.pack("<II", 1, 7411) + bytes(12) + ip_address(ROBOT).packed
    found = struct.pack("<HH", 0x32, 24) + locator
    found += struct.pack("<HH", 0x50, 16) + prefix + b"\0\0\1\xc1"
    found += struct.pack("<HHI", 0x62, 4 + len(node), len(node)) + node
    found += struct.pack("<HH", 0x8007, 20) + SECRETS["host name in NetBIOS"].ljust(20, b"\0")
    found += struct.pack("<HH", 1, 0)
    spdp = struct.pack("<HH", 0, 16) + b"\0\0\1\xc7\0\1\0\xc2" + bytes(8) + b"\0\3\0\0" + found
    sample = (
        struct.pack("<HH", 0, 16)
        + b"\0\0\2\3\0\0\2\7"
        + bytes(8)
        + b"\0\1\0\0"
        + SECRETS["sample in DDS"]
    )
    parts = [struct.pack("<BBH", 0x15, 5, len(part)) + part for part in (spdp, sample)]
    return b"RTPS\2\2\1\x10" + prefix + b"".join(parts)


def stun_request() -> bytes:
    number = bytes(range(12))
    attributes = (
        (stun.Attribute.USERNAME, SECRETS["ICE user"] + b":other"),
        (stun.Attribute.XOR_MAPPED_ADDRESS, stun.encode_xor_address((PHONE, 5), number)),
        (0x0016, stun.encode_xor_address((RELAY, 6), number)),
        (0x0012, stun.encode_xor_address((ROBOT, 7), number)),
        (0x8023, b"\0\1\0\7" + ip_address(RELAY).packed),
        (0x802C, b"\0\1\0\7" + ip_address(RELAY).packed),
        (0x0013, SECRETS["unknown datagram"]),
        (0x7777, SECRETS["token"]),
        (stun.Attribute.REALM, SECRETS["host name in mDNS"]),
    )
    return stun.encode(stun.StunMessage(0, number, attributes), fingerprint=True)


def netbios() -> Iterator[bytes]:
    def encode(name: bytes, kind: int = 0) -> bytes:
        return labels(encode_netbios_name(name.ljust(15) + bytes((kind,))))

    name, group = encode(SECRETS["host name in NetBIOS"]), encode(SECRETS["workgroup"], 0x1D)
    yield udp(dns(name, record(b"\xc0\x0c", 32, b"\0\0" + ip_address(PHONE).packed)), 137, own=137)
    rows = (
        b"\2"
        + SECRETS["host name in NetBIOS"].ljust(15)
        + b"\0\4\0"
        + SECRETS["workgroup"].ljust(15)
        + b"\0\x84\0"
    )
    yield udp(dns(name, record(b"\xc0\x0c", 33, rows + PRINTER_MAC + bytes(40))), 137, own=137)
    browse = b"\xffSMB" + bytes(28) + SECRETS["host name in NetBIOS"] + b"\0"
    head = (
        b"\x11\x0a\0\1"
        + ip_address(PHONE).packed
        + b"\0\x8a"
        + (68 + len(browse)).to_bytes(2)
        + b"\0\0"
    )
    yield udp(head + name + group + browse, 138, own=138)


def dhcp() -> bytes:
    name = SECRETS["host name in DHCP"]
    body = (
        b"\1\1\6\0"
        + bytes(8)
        + ip_address(PHONE).packed
        + bytes(12)
        + MAC
        + bytes(202)
        + b"\x63\x82\x53\x63"
    )
    body += (
        b"\x35\1\3"
        + b"\x0c"
        + bytes((len(name),))
        + name
        + b"\x3d\7\1"
        + MAC
        + b"\x52\6"
        + PRINTER_MAC
        + b"\xff"
    )
    return udp(body, 67, own=68, source="0.0.0.0", target="255.255.255.255")


def texts() -> Iterator[bytes]:
    def secret(key: str) -> bytes:
        return SECRETS[key]

    yield udp(
        b'{"sn": "'
        + secret("serial number")
        + b'", "uid": '
        + secret("serial number of digits")
        + b', "ssid": "'
        + secret("network name")
        + b'", "nickName": "'
        + secret("name in another script")
        + b'"}',
        10_134,
    )
    yield udp(
        b"log: "
        + secret("serial number").lower()
        + b" "
        + secret("host name in mDNS").upper()
        + b" at "
        + MAC.hex("-").upper().encode()
        + b" "
        + MAC.hex().encode()
        + b" "
        + PHONE.encode()
        + b" "
        + str(SIXTH).encode()
        + b" "
        + DEVICE.hex.upper().encode()
        + b" mail "
        + secret("mail address")
        + b" call "
        + secret("phone number"),
        9_999,
    )
    yield udp(
        b"NOTIFY * HTTP/1.1\r\nHOST: 239.255.255.250:1900\r\nLOCATION: http://"
        + PHONE.encode()
        + b":80/d.xml\r\nSERVER: "
        + secret("SSDP product")
        + b"\r\nUSN: uuid:"
        + str(DEVICE).encode()
        + b"::upnp:rootdevice\r\n\r\n",
        1900,
        target="239.255.255.250",
    )
    yield udp(
        b"<s:Envelope xmlns:s='http://www.w3.org/2003/05/soap-envelope'><wsa:Address>urn:uuid:"
        + str(DEVICE).upper().encode()
        + b"</wsa:Address><wsd:XAddrs>http://"
        + secret("computer in WS-Discovery")
        + b".local:5357/x</wsd:XAddrs><pub:Computer>"
        + secret("computer in WS-Discovery")
        + b"/Workgroup:"
        + secret("workgroup")
        + b"</pub:Computer></s:Envelope>",
        3702,
        target="239.255.255.250",
    )
    yield tcp(
        b"POST /con_ing?token="
        + secret("token")
        + b" HTTP/1.1\r\nHost: "
        + secret("name in TLS")
        + b"\r\nCookie: "
        + secret("cookie")
        + b"\r\nAuthorization: Basic "
        + base64.b64encode(b"barbara:" + secret("password"))
        + b'\r\n\r\n{"password": "'
        + secret("password")
        + b'", "sdp": "a=ice-ufrag:'
        + secret("ICE user")
        + b"\\r\\na=ice-pwd:"
        + secret("ICE password")
        + b"\\r\\na=fingerprint:sha-256 "
        + (DEVICE.bytes * 2).hex(":").upper().encode()
        + b'"}',
        9991,
        own=50_001,
    )
    yield tcp(
        b"HTTP/1.1 200 OK\r\n\r\n<friendlyName>"
        + secret("friendly name in UPnP")
        + b"</friendlyName><UDN>uuid:"
        + str(DEVICE).encode()
        + b"</UDN><serialNumber>"
        + secret("serial number")
        + b"</serialNumber>",
        80,
        own=50_002,
    )
    yield tcp(
        b"HTTP/1.1 200 OK\r\n\r\n" + zlib.compress(b"anything") + secret("token"), 80, own=50_003
    )
    whole = (
        b'{"x": 1, "serialNumber": "'
        + secret("text across segments")
        + b'", "alias": "'
        + secret("text after a border")
        + b'"}'
    )
    for start in (33, 62):
        yield tcp(whole[:start], 8088, 500, own=51_000 + start)
        yield tcp(whole[start:], 8088, 500 + start, own=51_000 + start)


def handshakes() -> Iterator[bytes]:
    chain = certificate()
    listed = (len(chain) + 3).to_bytes(3) + len(chain).to_bytes(3) + chain
    message = b"\x0b" + len(listed).to_bytes(3) + listed
    yield tcp(tls(hello(SECRETS["name in TLS"])), 443, own=52_001)
    yield tcp(tls(message), 443, own=52_002)
    long = tls(hello(SECRETS["name in TLS"]))
    yield tcp(long[:70], 443, own=52_003)
    yield tcp(long[70:], 443, 1070, own=52_003)
    yield tcp(tls(message)[:200], 443, own=52_004)
    yield tcp(tls(message)[200:], 443, 1200, own=52_004)
    yield udp(dtls(message), 49_504)
    yield udp(
        dtls(
            hello(SECRETS["name in TLS"]).replace(b"\3\3" + bytes(33), b"\xfe\xfd" + bytes(34)), 1
        ),
        49_504,
    )
    yield udp(quic(SECRETS["name in QUIC"]), 443)


def below() -> Iterator[bytes]:
    yield frame(
        b"\0\1\x08\0\6\4\0\1"
        + MAC
        + ip_address(PHONE).packed
        + ROUTER_MAC
        + ip_address(ROBOT).packed,
        0x0806,
    )
    yield frame(SECRETS["lldp"] + MAC, 0x88CC)
    quoted = ip(
        17, struct.pack(">HHHH", 5, 9_999, 8 + 40, 0) + SECRETS["serial number"] + bytes(24)
    )
    icmp = b"\3\1\0\0\0\0\0\0" + quoted
    yield frame(ip(1, icmp[:2] + checksum(icmp).to_bytes(2) + icmp[4:]))
    yield frame(ip(1, b"\x08\0\0\0\0\1\0\1" + SECRETS["serial number"]))
    option = b"\1\1" + MAC
    body = b"\x87\0\0\0" + bytes(4) + SIXTH.packed + option
    yield frame(
        struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + SIXTH.packed + SIXTH.packed + body,
        0x86DD,
    )
    group = IPv6Address("ff02::1:ffa1:b2c3").packed
    report = b"\x8f\0\0\0\0\0\0\1" + b"\4\0\0\0" + group
    yield frame(
        struct.pack(">IHBB", 6 << 28, len(report), 58, 1) + SIXTH.packed + group + report, 0x86DD
    )
    yield frame(ip(2, b"\x22\0\0\0\0\0\0\1\1\0\0\1\xe0\0\0\xfb" + ip_address(ROBOT).packed))
    yield frame(ip(47, b"\0\0\x08\0" + ip(17, SECRETS["serial number"])))


def robots() -> Iterator[bytes]:
    header = a1_values.Go1Header(serial=(0x77300412, 0x98E21D10))
    state = a1_values.HighCmd(header=header)
    yield udp(a1.encode(state, a1_values.Dialect.GO1), 8082)
    yield udp(rtps(), 7400)


def names() -> Iterator[bytes]:
    phone, room = SECRETS["host name in mDNS"], SECRETS["service instance"]
    service = labels(
        b"_" + DEVICE.hex.upper().encode()[:31], b"_sub", b"_googlecast", b"_tcp", b"local"
    )
    owner = record(b"\0", 41, b"\0\4\0\x0e\0\0" + MAC + MAC)
    yield udp(
        dns(
            labels(phone, b"local"),
            record(b"\xc0\x0c", 1, ip_address(PHONE).packed),
            record(b"\xc0\x0c", 28, SIXTH.packed),
            record(service, 12, labels(room, b"_googlecast", b"_tcp", b"local")),
            record(b"\xc0\x0c", 16, b"\x13id=" + SECRETS["serial number"]),
            owner,
        ),
        5353,
        target="224.0.0.251",
    )
    yield udp(dns(labels(SECRETS["name asked in DNS"], b"example", b"org")), 53, target=SERVER)
    message = dns(labels(SECRETS["name asked over TCP"], b"example", b"org"))
    yield tcp(len(message).to_bytes(2) + message, 53, own=53_001)
    yield tcp((len(message) + 9).to_bytes(2) + message, 53, own=53_002)
    yield udp(
        b"\x24\3\6\xe8" + bytes(8) + ip_address(RELAY).packed + bytes(32),
        123,
        own=123,
        target=SERVER,
    )


def unknown() -> Iterator[bytes]:
    yield udp(SECRETS["unknown datagram"], 31_337)
    yield udp(
        b"\x01\x99"
        + MAC
        + PRINTER_MAC[::-1]
        + ip_address(PHONE).packed
        + SIXTH.packed
        + DEVICE.bytes,
        31_338,
    )
    yield udp(b"\x02\x99" + SECRETS["host name in NetBIOS"].decode().encode("utf-16-le"), 31_339)
    yield tcp(b"\x10\x20\0\4MQTT\4\2\0\x3c" + SECRETS["serial number"], 1883, own=54_001)
    yield udp(b"#" + SECRETS["serial number"] + b" is text, and looks like DTLS 1.3", 31_340)


def packets() -> list[bytes]:
    found = [*names(), *netbios(), dhcp(), *texts(), *handshakes(), *below(), *robots(), *unknown()]
    save = (
        b"" if not SECRETS["action name"] else b'{"action_name": "' + SECRETS["action name"] + b'"}'
    )
    found += [udp(save, 10_135), udp(stun_request(), 3478, target=RELAY)]
    return found


def pcap(found: list[bytes]) -> bytes:
    rows = [struct.pack("<IIII", n, 2, len(one), len(one)) + one for n, one in enumerate(found)]
    return struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, 1) + b"".join(rows)


def searched(copy: bytes) -> list[str]:
    """Return which identifiers are still there in any of their usual forms."""
    forms: dict[str, list[bytes]] = {name: _text_forms(value) for name, value in SECRETS.items()}
    for name, mac in (("MAC", MAC), ("router's MAC", ROUTER_MAC), ("printer's MAC", PRINTER_MAC)):
        forms[name] = [mac, mac[::-1], *_hex_forms(mac)]
    for name, address in (("phone", PHONE), ("robot", ROBOT), ("server", SERVER), ("relay", RELAY)):
        packed = ip_address(address).packed
        forms[f"address of the {name}"] = [packed, address.encode(), packed[::-1]]
        forms[f"address of the {name}"].append(address.replace(".", "-").encode())
    mask = stun.MAGIC.to_bytes(4)
    for name, address in (("phone", PHONE), ("relay", RELAY), ("robot", ROBOT)):
        packed = IPv4Address(address).packed
        forms[f"xored address of the {name}"] = [
            bytes(a ^ b for a, b in zip(packed, mask, strict=True))
        ]
    forms["IPv6"] = [
        SIXTH.packed,
        str(SIXTH).encode(),
        SIXTH.exploded.encode(),
        SIXTH.packed[8:],
        SIXTH.packed[13:],
    ]
    forms["UUID"] = [
        DEVICE.bytes,
        DEVICE.bytes_le,
        *_text_forms(str(DEVICE).encode()),
        *_hex_forms(DEVICE.bytes),
    ]
    forms["serial of a Go1"] = [struct.pack("<II", 0x77300412, 0x98E21D10)]
    low = copy.lower()
    return [
        name for name, values in forms.items() if any(v in copy or v.lower() in low for v in values)
    ]


def _text_forms(value: bytes) -> list[bytes]:
    forms = [value, value.upper(), value.lower(), base64.b64encode(value).rstrip(b"=")[:-1]]
    with contextlib.suppress(UnicodeDecodeError):
        forms += [value.decode().encode("utf-16-le"), value.decode().encode("utf-16-be")]
    if len(value) <= 15 and value.isascii():
        forms.append(encode_netbios_name(value))
    return forms


def _hex_forms(value: bytes) -> list[bytes]:
    return [
        value.hex(separator).encode() if separator else value.hex().encode()
        for separator in ("", ":", "-")
    ]


def copied(folder: Path, data: bytes) -> tuple[bytes, Scrubbed]:
    (folder / "a.pcap").write_bytes(data)
    done = scrub(folder / "a.pcap", folder / "b.pcap", KEY)
    return (folder / "b.pcap").read_bytes(), done


def test_the_original_holds_all_that_is_searched_for() -> None:
    held = searched(pcap(packets()))
    assert len(held) >= 45
    assert [name for name in SECRETS if name not in held] == []


def test_no_byte_of_the_copy_tells_an_identifier(tmp_path: Path) -> None:
    data = pcap(packets())
    copy, done = copied(tmp_path, data)
    assert searched(copy) == []
    assert len(copy) == len(data)
    assert done.packets == len(packets())


def test_the_report_says_what_was_replaced_how_often_and_what_was_cleared(tmp_path: Path) -> None:
    _, done = copied(tmp_path, pcap(packets()))
    assert done.replaced["hardware address"]["different"] >= 2
    assert done.replaced["hardware address"]["times"] > 2 * len(packets()) - 5
    assert done.replaced["name"]["times"] >= 10
    assert {"IPv4 address", "IPv6 address", "DDS participant"} <= done.replaced.keys()
    assert {"DNS", "HTTP", "SSDP", "TLS", "DTLS", "QUIC", "DDS"} <= done.cleared.keys()
    assert {"unknown datagrams", "unknown segments", "unknown protocols"} <= done.cleared.keys()
    assert done.encrypted == {}  # no server chose a cipher


def test_records_of_tls_keep_their_headers_and_nothing_of_their_contents(tmp_path: Path) -> None:
    sealed = b"\x17\3\3\0\x20" + random.Random(1).randbytes(32)
    first, second = (
        tcp(tls(hello(b"a.example.org")), 443),
        tcp(b"\x14\3\3\0\1\1" + sealed, 443, 1000 + len(tls(hello(b"a.example.org")))),
    )
    copy, done = copied(tmp_path, pcap([first, second]))
    assert copy.endswith(b"\x14\3\3\0\1\0" + sealed[:5] + bytes(32))
    assert done.cleared == {"TLS": 1}  # the hello had nothing but numbers and the name


@pytest.mark.parametrize(
    "pack", [gzip.compress, lz4.frame.compress, zstandard.ZstdCompressor().compress]
)
def test_a_compressed_file_that_is_damaged_gets_words_and_no_traceback(
    pack: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    chance = random.Random(3)
    found = packets() + [udp(chance.randbytes(1400), 9) for _ in range(200)] + packets()
    packed = pack(pcap(found))
    source, target = tmp_path / "a.gz", tmp_path / "b.gz"
    source.write_bytes(packed)
    assert scrub(source, target, KEY).packets == len(found)
    assert searched(gzip.decompress(target.read_bytes())) == []
    for kept in range(len(packed) // 2, len(packed) - 41, len(packed) // 5):
        damaged = bytes(b ^ 0x5A for b in packed[kept : kept + 40])
        source.write_bytes(packed[:kept] + damaged + packed[kept + 40 :])
        target.unlink()
        damage = scrub(source, target, KEY)
        assert damage.packets <= len(found)
        assert damage.warnings or pack is not gzip.compress  # the others need not have a checksum
        assert searched(gzip.decompress(target.read_bytes())) == []
    source.write_bytes(packed[: len(packed) * 3 // 4])
    done = scrub(source, target, KEY)
    assert "damaged (it ends too early)" in done.warnings[0]
    assert 0 < done.packets < len(found)
    source.write_bytes(packed[:12] + b"\xff" * 40)
    with pytest.raises(NotACaptureError, match="damaged"):
        scrub(source, tmp_path / "c.gz", KEY)


@sample_examples(20)
@given(st.integers(0, 2**32))
def test_damaged_packets_raise_nothing_and_keep_their_length(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    chance = random.Random(seed)
    found = [bytearray(one) for one in chance.sample(packets(), 8)]
    for one in found:
        for _ in range(chance.randrange(6)):
            one[chance.randrange(len(one))] = chance.randrange(256)
        del one[chance.randrange(1, len(one) + 1) :]
    folder = tmp_path_factory.mktemp("damaged")
    data = pcap([bytes(one) for one in found])
    copy, done = copied(folder, data)
    assert (len(copy), done.packets) == (len(data), 8)


@given(st.text(min_size=1, max_size=30))
def test_a_name_in_any_script_becomes_another_as_long_in_bytes(text: str) -> None:
    old = text.encode()
    new = Pseudonyms(KEY).name(old)
    assert len(new) == len(old)
    assert len(new.decode()) == len(text)


def test_upper_and_lower_case_of_a_name_stay_one_name() -> None:
    names = Pseudonyms(KEY)
    assert names.name(b"LISKOV-Laptop").lower() == names.name(b"liskov-laptop")


# ---- one test for each leak that was found ------------------------------------------------------


def texts_in(copy: bytes) -> list[bytes]:
    """Return every run of eight or more letters and digits in a copy."""
    return re.findall(rb"[A-Za-z0-9.-]{8,}", copy)


def test_every_hello_of_a_connection_asks_for_the_same_other_name(tmp_path: Path) -> None:
    first = tls(hello(b"nas.liskov.org"))
    again = b"\x14\3\3\0\1\1" + first  # as after a request to try again
    later = tls(hello(b"nas.liskov.org"))
    found = [
        tcp(first, 443),
        tcp(again, 443, 1000 + len(first)),
        tcp(later, 443, 1000 + len(first + again)),
    ]
    copy, _ = copied(tmp_path, pcap(found))
    seen = [text for text in texts_in(copy) if text.endswith(b".org")]
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert b"liskov" not in copy


@pytest.mark.parametrize(
    "text",
    [
        b'{"lat": 48.1371543, "lon": 11.5761247, "alt": 519.33}',
        b"$GPGGA,123519,4807.0381,N,01131.0003,E,1,08,0.9,545.4,M,46.9,M,,*47\r\n",
        b'{"device": "6f1c9c2e8f5b4d0a9f3e3c5ab4a1b2c3"}',
        b"<34>1 2026-10-11T22:14:15.003Z barbaras-nas.home su - ID47 - failed for barbara",
        b"<34>Oct 11 22:14:15 barbaras-nas su: failed for barbara",
        b"GET /cloud/barbara-liskov/photos HTTP/1.1\r\nX-Odd: barbara\r\n\r\nbarbara",
    ],
)
@pytest.mark.parametrize("port", [514, 10_110, 1900, 8080])
def test_no_part_of_a_text_is_left(text: bytes, port: int, tmp_path: Path) -> None:
    found = [udp(text, port), tcp(text, port), tcp(text, port)[:-7]]
    copy, _ = copied(tmp_path, pcap(found))
    for part in re.findall(rb"[\w.-]{4,}", text):
        if part not in (b"HTTP", b"HTTP/1.1", b"1.1"):
            assert part not in copy


def test_the_cut_off_end_of_a_segment_is_cleared(tmp_path: Path) -> None:
    for cut in range(1, 12):
        whole = tcp(b'{"serialNumber": "SPLITSERIAL0099"}', 8088)
        copy, _ = copied(tmp_path, pcap([whole[:-cut]]))
        assert b"SPLIT" not in copy


def test_a_host_has_one_name_in_every_protocol(tmp_path: Path) -> None:
    host = b"barbaras-pixel"
    lease = b"\1\1\6\0" + bytes(232) + b"\x63\x82\x53\x63\x0c\x0e" + host + b"\xff"
    found = [
        udp(lease, 67, own=68),
        udp(dns(labels(host, b"local")), 5353),
        udp(dns(labels(host.upper(), b"fritz", b"box")), 53),
        tcp(tls(hello(host + b".fritz.box")), 443),
        udp(b"NOTIFY * HTTP/1.1\r\nSERVER: " + host + b"\r\nUSN: uuid:" + bytes(4), 1900),
    ]
    copy, _ = copied(tmp_path, pcap(found))
    seen = {text.lower()[:14] for text in texts_in(copy) if b"-" in text}
    assert len(seen) == 1
    assert host not in seen


def test_a_text_record_keeps_its_form_and_no_contents(tmp_path: Path) -> None:
    text = b"\x15mac=" + MAC.hex(":").encode() + b"\x07id=" + MAC[:4]
    message = dns(labels(b"x", b"local"), record(b"\xc0\x0c", 16, text))
    copy, _ = copied(tmp_path, pcap([udp(message, 5353)]))
    assert copy.endswith(b"\x15" + bytes(21) + b"\x07" + bytes(7))


def test_reverse_names_tell_no_digit_of_an_address(tmp_path: Path) -> None:
    sixth = [digit.encode() for digit in SIXTH.packed.hex()[::-1]]
    names_ = [
        labels(*sixth, b"ip6", b"arpa"),
        labels(b"lb", b"_dns-sd", b"_udp", b"0", b"86", b"168", b"192", b"in-addr", b"arpa"),
    ]
    other = Pseudonyms(KEY).ipv6(SIXTH.packed).hex()[::-1]
    copy, _ = copied(tmp_path, pcap([udp(dns(name), 5353) for name in names_]))
    assert labels(*(digit.encode() for digit in other), b"ip6", b"arpa") in copy
    assert labels(b"lb", b"_dns-sd", b"_udp", b"0", b"00", b"000", b"000", b"in-addr")[:-1] in copy


# ---- every kind of identifier in every place of every protocol -----------------------------------

PLANTED: dict[str, bytes] = {
    "serial number": b"E21D1000QXVC0077",
    "hardware address": bytes.fromhex("3c5ab4d1e2f3"),
    "hardware address as text": b"3c:5a:b4:d1:e2:f3",
    "IPv4 address": bytes((192, 168, 86, 77)),
    "IPv4 address as text": b"192.168.86.77",
    "IPv6 address": IPv6Address("2001:db8:77:1:3e5a:b4ff:fed1:e2f3").packed,
    "UUID": uuid.UUID("0f1d9c2e-8f5b-4d0a-9f3e-3c5ab4d1e2f3").bytes,
    "UUID as text": b"0f1d9c2e8f5b4d0a9f3e3c5ab4d1e2f3"[:28],
    "host name": b"grace-hoppers-phone",
    "mail address": b"grace@hopper-mail.net",
    "phone number": b"+49 171 5550199",
    "token": b"eyJhbGciOiJIUzI1NiJ9.c2Vj",
    "latitude": b"48.13715432",
    "position": b"4807.0381,N,01131.0003,E",
    "name in another script": "格蕾丝的手机".encode(),
    "network name": b"FRITZ!Box Hopper",
}


def encoded_forms(value: bytes) -> list[bytes]:
    """Return a value as it is, and as hexadecimal digits, base64 and UTF-16."""
    forms = [value, value.hex().encode(), value.hex().upper().encode(), base64.b64encode(value)]
    with contextlib.suppress(UnicodeDecodeError):
        forms += [value.decode().encode(codec) for codec in ("utf-16-le", "utf-16-be")]
    return forms


def extended_hello(kind: int, value: bytes) -> bytes:
    """Return a client hello with one extension of a kind."""
    extension = struct.pack(">HH", kind, len(value)) + value
    body = b"\3\3" + bytes(32) + b"\0" + b"\0\2\x13\1" + b"\1\0"
    body += len(extension).to_bytes(2) + extension
    return b"\1" + len(body).to_bytes(3) + body


def rtps_sample(writer: int, content: bytes) -> bytes:
    body = struct.pack("<HH", 0, 16) + b"\0\0\1\xc7" + writer.to_bytes(4) + bytes(8)
    body += b"\0\3\0\0" + content
    return b"RTPS\2\2\1\x10" + bytes(12) + struct.pack("<BBH", 0x15, 5, len(body)) + body


def planted_in(value: bytes) -> Iterator[bytes]:
    """Yield packets with a value in every place where a protocol has room for one."""
    yield from planted_below(value)
    yield from planted_in_services(value)
    yield from planted_in_sessions(value)
    yield from planted_in_robots(value)


def planted_in_services(value: bytes) -> Iterator[bytes]:
    for port in (514, 53, 67, 123, 137, 138, 443, 546, 1900, 3702, 5353, 7400, 10_131, 31_337):
        yield udp(value, port)
        yield udp(b"\0\1" + value, port)
    yield udp(b"GET / HTTP/1.1\r\nX: " + value + b"\r\n\r\n" + value, 8080)
    for method in (b"GET /" + value, b"POST /con_ing?" + value, b"POST /offer", b"HTTP/1.1 200"):
        for length in (b"Content-Length: 5", b"X: " + value):
            yield tcp(method + b" HTTP/1.1\r\n" + length + b"\r\n\r\n{" + value, 9991)
    yield udp(dns(labels(value, b"local")), 5353)
    yield udp(dns(labels(b"_http", value)), 53)
    for kind in (1, 2, 6, 12, 13, 15, 16, 28, 33, 41, 47, 64, 65, 99):
        text = bytes((len(value),)) + value
        yield udp(dns(labels(b"x"), record(b"\xc0\x0c", kind, text)), 5353)
        yield udp(dns(labels(b"x"), record(b"\xc0\x0c", kind, bytes(6) + labels(value))), 5353)
        yield udp(dns(labels(b"x"), record(b"\xc0\x0c", kind, value)), 137)
    message = dns(labels(value, b"org"))
    yield tcp(len(message).to_bytes(2) + message, 53)
    yield tcp((len(message) + 5).to_bytes(2) + message, 53)
    lease = b"\1\1\6\0" + bytes(40) + value.ljust(192, b"\0") + b"\x63\x82\x53\x63"
    for option in (12, 15, 43, 55, 60, 61, 66, 81, 119, 124):
        yield udp(lease + bytes((option, len(value))) + value + b"\xff" + value, 67, own=68)


def planted_in_sessions(value: bytes) -> Iterator[bytes]:
    for attribute in (0x0006, 0x0013, 0x0014, 0x0015, 0x0008, 0x0022, 0x8022, 0x8029, 0x7777):
        yield udp(
            stun.encode(stun.StunMessage(0, bytes(12), ((attribute, value),)), fingerprint=True),
            3478,
        )
    yield udp(stun.encode(stun.StunMessage(3, bytes(12), ((0x0009, b"\0\0\4\1" + value),))), 3478)
    for codec in (tls, dtls):
        yield from (
            udp(codec(each), 49_504) if codec is dtls else tcp(codec(each), 443)
            for each in (
                hello(value),
                *(extended_hello(kind, value) for kind in (16, 21, 35, 41, 44, 51, 0x4469)),
                *(bytes((kind,)) + len(value).to_bytes(3) + value for kind in (3, 4, 11, 12, 16)),
            )
        )
    for epoch in (b"\0\0", b"\0\1"):
        for kind in (20, 21, 22, 23, 25):
            yield udp(
                bytes((kind,)) + b"\xfe\xfd" + epoch + bytes(6) + len(value).to_bytes(2) + value,
                49_600,
            )
    yield udp(b"\x80\x60\0\1" + bytes(8) + value, 49_504)
    yield udp(b"\x81\xca\0\6" + bytes(4) + value, 49_504)
    yield udp(quic(value), 443)
    yield udp(b"\x40" + value.ljust(40, b"\0"), 443)


def planted_in_robots(value: bytes) -> Iterator[bytes]:
    padded = value + bytes(-len(value) % 4)
    for writer in (0x000100C2, 0x000003C2, 0x00000203):
        for parameter in (0x05, 0x07, 0x2C, 0x50, 0x62, 0x8007):
            text = struct.pack("<I", len(value)) + padded
            row = struct.pack("<HH", parameter, len(text)) + text + struct.pack("<HH", 1, 0)
            yield udp(rtps_sample(writer, row), 7400)
        yield udp(rtps_sample(writer, value), 7400)
    yield udp(b"RTPS\2\2\1\x10" + bytes(12) + struct.pack("<BBH", 1, 1, len(value)) + value, 7400)
    for command in (*teaching.CommandId, 0x77):
        for payload in (bytes(4) + value, struct.pack(">I", 7301) + value):
            if len(payload) <= 44:  # a status with a note
                frame_ = teaching.Frame(command, 1, payload.ljust(44, b"\0"))
                yield udp(teaching.encode(frame_), 10_135)
    name = value[:31].ljust(32, b"\0")
    yield udp(teaching.encode(teaching.Frame(0x2B, 1, name.ljust(220, b"\0"))), 10_135)
    yield udp(teaching.encode(teaching.Frame(0x77, 1, name.ljust(220, b"\0"))), 10_135)
    listed = b"\0\1" + value[:31].ljust(32, b"\0") + bytes(4)
    yield udp(teaching.encode(teaching.Frame(0x1A, 1, listed.ljust(220, b"\0"))), 10_135)
    with contextlib.suppress(UnicodeDecodeError):
        for key in ("sn", "key", "ip", "owner"):
            found = {"name": "unitree_dapengche", key: value.decode()}
            for ascii_only in (True, False):
                yield udp(json.dumps(found, ensure_ascii=ascii_only).encode(), 10_134)


def planted_below(value: bytes) -> Iterator[bytes]:
    """Yield packets with a value in the protocols below UDP and TCP, and around them."""
    padded = value + bytes(-len(value) % 8)
    for ethertype in (0x88CC, 0x888E, 0x8863, 0x8864, 0x8847, 0x0028, 0x0806):
        yield frame(value.rjust(60, b"\0"), ethertype)
        yield frame(value.ljust(60, b"\0"), ethertype)
    short = ip(17, struct.pack(">HHHH", 5, 6, 8, 0))
    yield frame(short + value)
    yield frame(ip(17, struct.pack(">HHHH", 5, 6, 8, 0) + value))
    option = b"\x44" + bytes((2 + len(value),)) + value
    option += bytes(-len(option) % 4)
    if len(option) <= 40:
        whole = ip(17, option + struct.pack(">HHHH", 5, 6, 8, 0))
        yield frame(bytes((0x45 + len(option) // 4,)) + whole[1:])
    if len(value) <= 36:
        head = struct.pack(">HHIIBBHHH", 5, 6, 1, 2, 0xF0, 0x18, 9, 0, 0)
        for kind in (2, 5, 8, 30, 253):
            options = (bytes((kind, 2 + len(value))) + value).ljust(40, b"\1")
            yield frame(ip(6, head + options))
    for kind, number in ((1, 0), (1, 3), (1, 8), (1, 13), (2, 0x11), (2, 0x22)):
        yield frame(ip(kind, bytes((number, 0, 0, 0, 0, 0, 0, 0)) + value))
    quoted = ip(17, struct.pack(">HHHH", 5, 9_999, 8 + len(value), 0) + value)
    yield frame(ip(1, b"\3\1\0\0\0\0\0\0" + quoted))
    for protocol in (4, 41, 47, 50, 51, 89, 132, 200):
        yield frame(ip(protocol, value))
    for place in (0x2000, 0x2003, 0x0003):
        piece = ip(17, struct.pack(">HHHH", 5, 514, 90, 0) + value)
        yield frame(piece[:6] + place.to_bytes(2) + piece[8:])
    for number in (1, 128, 130, 133, 134, 135, 137, 143):
        body = bytes((number, 0, 0, 0)) + bytes(4) + bytes(16) + padded
        yield frame(
            struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + SIXTH.packed * 2 + body, 0x86DD
        )
    for kind in (0, 43, 60):
        extension = b"\x3b" + bytes((len(padded) // 8,)) + bytes(6) + padded
        yield frame(
            struct.pack(">IHBB", 6 << 28, len(extension), kind, 9) + SIXTH.packed * 2 + extension,
            0x86DD,
        )


@pytest.mark.parametrize("kind", PLANTED)
def test_no_identifier_is_left_in_any_form_in_any_protocol(kind: str, tmp_path: Path) -> None:
    forms = encoded_forms(PLANTED[kind])
    data = pcap([packet for form in forms for packet in planted_in(form)])
    assert all(data.count(form) > 100 for form in forms)
    copy, _ = copied(tmp_path, data)
    either_case = {form.lower() for form in forms}
    planted = sum(data.lower().count(form) for form in either_case)
    left = sum(copy.lower().count(form) for form in either_case)
    print(f"{kind}: {len(forms)} forms, planted {planted} times, left {left} times")
    assert len(copy) == len(data)
    assert [form for form in forms if form in copy] == []
    assert left == 0
