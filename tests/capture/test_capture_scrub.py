"""Copies that can be shown to others: no name left, the same conversation, checksums right."""

import contextlib
import gzip
import io
import json
import random
import struct
from collections import Counter
from ipaddress import IPv4Address, IPv4Network, IPv6Address, ip_address
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.recorded import needs, read_datagrams, tshark
from rote.capture.decode.decrypt import decrypt
from rote.capture.model import Datagram
from rote.capture.read.reader import NotACaptureError, open_capture
from rote.capture.report.report import report_capture
from rote.capture.scrub.payloads import mask_dns
from rote.capture.scrub.pseudonyms import MaskedCopy, Pseudonyms
from rote.capture.scrub.scrub import COOKED, COOKED_2, ETHERNET, LOOP, Rewriter, Scrubbed, scrub
from rote.capture.synthetic import build as make
from rote.capture.synthetic import script as story
from rote.capture.synthetic.ethernet import block, checksum, pseudo_header, udp_frame, write
from rote.errors import BadRequestError, DecodeError, RoteError
from rote.wire.discovery import Query, Reply, encode_query, encode_reply
from rote.wire.packets import dtls, stun
from rote.wire.teaching import codec as teaching

KEY = b"a key for tests"
PHONE, ROBOT = ("192.168.86.23", 40_000), ("192.168.86.2", 10_134)
SERIAL = "E2100SIMULATED01"


def scrubbed(folder: Path, datagrams: list[Datagram], suffix: str = ".pcap") -> list[Datagram]:
    source, target = folder / f"a{suffix}", folder / f"b{suffix}"
    write(source, datagrams)
    scrub(source, target, KEY)
    assert source.stat().st_size == target.stat().st_size
    return read_datagrams(target)


def classic(packets: list[bytes], linktype: int = ETHERNET, order: str = "<") -> bytes:
    head = struct.pack(order + "IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65_535, linktype)
    rows = [struct.pack(order + "IIII", 1, 2, len(one), len(one)) + one for one in packets]
    return head + b"".join(rows)


def packets_of(folder: Path, data: bytes, key: bytes = KEY) -> tuple[list[bytes], Scrubbed]:
    """Scrub a classic file of one linktype and return its packets."""
    source, target = folder / "in.pcap", folder / "out.pcap"
    source.write_bytes(data)
    done = scrub(source, target, key)
    file = io.BytesIO(target.read_bytes())
    file.read(24)
    found = []
    while start := file.read(16):
        found.append(file.read(struct.unpack("<IIII", start)[2]))
    return found, done


# ---- addresses ----------------------------------------------------------------------------------


@given(st.ip_addresses(v=4))
def test_an_address_keeps_its_kind_and_its_length_as_text(ip: IPv4Address) -> None:
    other = IPv4Address(Pseudonyms(KEY).ipv4(ip.packed))
    assert len(str(other)) == len(str(ip))
    kinds = ("is_multicast", "is_loopback", "is_unspecified", "is_link_local")
    assert [getattr(other, kind) for kind in kinds] == [getattr(ip, kind) for kind in kinds]
    for network in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16"):
        assert (other in IPv4Network(network)) == (ip in IPv4Network(network))


@given(st.ip_addresses(v=4), st.ip_addresses(v=4), st.integers(0, 4))
def test_neighbours_stay_neighbours_and_two_hosts_stay_two(
    one: IPv4Address, two: IPv4Address, shared: int
) -> None:
    names = Pseudonyms(KEY)
    second = one.packed[:shared] + two.packed[shared:]
    a, b = names.ipv4(one.packed), names.ipv4(second)
    assert (a == b) == (one.packed == second)
    common = next((n for n in range(4) if one.packed[n] != second[n]), 4)
    if one.packed[0] < 224 and second[0] < 224:
        assert a[:common] == b[:common]


@given(st.ip_addresses(v=6))
def test_an_address_of_version_6_keeps_its_kind(ip: IPv6Address) -> None:
    other = IPv6Address(Pseudonyms(KEY).ipv6(ip.packed))
    kinds = ("is_multicast", "is_loopback", "is_unspecified", "is_link_local")
    assert [getattr(other, kind) for kind in kinds] == [getattr(ip, kind) for kind in kinds]


def test_who_asks_for_a_neighbour_does_not_tell_the_end_of_his_address() -> None:
    names = Pseudonyms(KEY)
    group = IPv6Address("ff02::1:ff12:3456").packed
    assert names.ipv6(group) != group
    assert names.hardware(b"\x33\x33\xff\x12\x34\x56")[3:] == names.ipv6(group)[13:]
    mapped = IPv6Address("::ffff:192.168.1.7").packed
    assert names.ipv6(mapped)[:12] == mapped[:12]
    assert names.ipv6(mapped)[12:] == names.ipv4(mapped[12:])


@given(st.text(min_size=1, max_size=40))
def test_a_word_becomes_another_of_the_same_kind_and_always_the_same(text: str) -> None:
    names = Pseudonyms(KEY)
    other = names.word(text)
    assert len(other) == len(text)
    assert other == names.word(text)
    for old, new in zip(text, other, strict=True):
        assert len(new.encode()) == len(old.encode())
        if old.isascii():
            assert (old.isdigit(), old.isalpha(), old.isupper()) == (
                new.isdigit(),
                new.isalpha(),
                new.isupper(),
            )
        else:  # a symbol or a vowel sign can identify as well as a letter
            assert new.isalpha()


def test_two_serials_never_become_one() -> None:
    names = Pseudonyms(KEY)
    assert len({names.word(f"E{number:03}") for number in range(900)}) == 900


# ---- what is in the clear -----------------------------------------------------------------------


def test_a_serial_is_replaced_in_discovery_and_no_text_keeps_it(tmp_path: Path) -> None:
    question = encode_query(Query(SERIAL))
    answer = encode_reply(Reply(serial=SERIAL, address=ROBOT[0]))
    elsewhere = f"hello {SERIAL}, goodbye".encode()
    sent = [
        Datagram(1, PHONE, ROBOT, elsewhere),
        Datagram(2, PHONE, ("231.1.1.2", 10_131), question),
        Datagram(3, ROBOT, PHONE, answer),
    ]
    first, asked, said = scrubbed(tmp_path, sent)
    document = json.loads(said.payload)
    assert document["sn"] != SERIAL
    assert document["name"] == "unitree_dapengche"
    assert document["ip"] == said.source[0] != ROBOT[0]
    assert json.loads(asked.payload)["sn"] == document["sn"]
    assert first.payload == bytes(len(elsewhere))
    assert asked.destination == ("231.1.1.2", 10_131)
    everything = (tmp_path / "b.pcap").read_bytes()
    assert SERIAL.encode() not in everything
    assert ROBOT[0].encode() not in everything
    assert ip_address(ROBOT[0]).packed not in everything


def test_tokens_and_credentials_are_replaced(tmp_path: Path) -> None:
    secrets = [
        b"eyJhbGciOi.token",
        b"hunter2hunter2",
        b"robot.example.org",
        b"ufr4",
        b"icepassword1",
    ]
    token, password, host, ufrag, pwd = secrets
    texts = [
        b"GET / HTTP/1.1\r\nHost: " + host + b"\r\nAuthorization: " + token + b"\r\n\r\n",
        b'{"token": "'
        + token
        + b'", "sdp": "a=ice-ufrag:'
        + ufrag
        + b"\\r\\na=ice-pwd:"
        + pwd
        + b'"}',
        b'{\\"password\\": \\"' + password + b'\\"}',
    ]
    found = scrubbed(tmp_path, [Datagram(n, PHONE, ROBOT, text) for n, text in enumerate(texts)])
    for secret in (token, password, host, ufrag, pwd):
        assert not any(secret in one.payload for one in found)
    assert [len(one.payload) for one in found] == [len(text) for text in texts]


def test_the_name_that_tls_asks_for_is_replaced(tmp_path: Path) -> None:
    name = b"global-robot-api.example.com"
    extension = struct.pack(">HHHBH", 0, len(name) + 5, len(name) + 3, 0, len(name)) + name
    hello = b"\x16\x03\x01\0\xff\1" + bytes(60) + b"\xff\1\0\0" + extension
    (found,) = scrubbed(tmp_path, [Datagram(0, PHONE, ("9.9.9.9", 443), hello)])
    assert name not in found.payload
    assert found.payload.endswith(b".com") is False
    assert len(found.payload) == len(hello)


def test_names_in_teaching_frames_are_replaced_and_the_crc_holds(tmp_path: Path) -> None:
    sent = [Datagram(n, PHONE, ROBOT, f.payload) for n, f in enumerate(story.frames())]
    found = [teaching.decode(one.payload) for one in scrubbed(tmp_path, sent)]
    assert not any(story.NEW_NAME.encode() in frame.payload for frame in found)
    (save,) = (f for f in found if f.command == teaching.CommandId.SAVE_ACTION and len(f[2]) == 220)
    listed = [f for f in found if f.command == teaching.CommandId.LIST_ACTIONS and len(f[2]) > 44]
    assert save.payload[:8] == listed[-1].payload[2:10]
    changed = sum(
        a.payload != teaching.decode(b.payload).payload for a, b in zip(found, sent, strict=True)
    )
    assert changed == 2


def test_a_note_in_a_status_frame_is_cleared_and_its_code_stays(tmp_path: Path) -> None:
    for code, command in ((7301, 0x0D), (0, 0x0D), (0, 0x09), (0, 0x0A)):
        note = struct.pack(">I", code) + b"Bobs garage is too dark".ljust(40, b"\0")
        frame = teaching.encode(teaching.Frame(command, 3, note))
        (found,) = scrubbed(tmp_path, [Datagram(0, ROBOT, PHONE, frame)])
        assert teaching.decode(found.payload).payload == struct.pack(">I", code) + bytes(40)


def test_ice_checks_keep_their_form_and_their_fingerprint(tmp_path: Path) -> None:
    made = make.webrtc(story.webrtc())
    found = scrubbed(tmp_path, made.datagrams, ".pcapng")
    assert len(found) == len(made.datagrams)
    for old, new in zip(made.datagrams, found, strict=True):
        assert (old.source[1], old.time_ns) == (new.source[1], new.time_ns)
        if old.payload[0] > 19:
            was_sent, is_sent = dtls.decode_records(old.payload), dtls.decode_records(new.payload)
            for before, after in zip(was_sent, is_sent, strict=True):
                assert before[:3] == after[:3]
                assert before.epoch == 0 or before.fragment == after.fragment
            continue
        assert stun.fingerprint_holds(new.payload) is True
        was, now = stun.decode(old.payload), stun.decode(new.payload)
        assert [n for n, _ in was.attributes] == [n for n, _ in now.attributes]
        assert was.username != now.username or not was.username
        assert now.mapped is None or now.mapped == new.destination
    decrypted = decrypt(found, made.keylog)
    assert len(decrypted.messages) == 292


def dns(*records: bytes, question: bytes = b"") -> bytes:
    head = struct.pack(">HHHHHH", 1, 0x8400, bool(question), len(records), 0, 0)
    return head + (question + b"\0\1\0\1" if question else b"") + b"".join(records)


def resource(name: bytes, kind: int, data: bytes) -> bytes:
    return name + struct.pack(">HHIH", kind, 1, 60, len(data)) + data


def labels(*names: bytes, end: bytes = b"\0") -> bytes:
    return b"".join(bytes((len(name),)) + name for name in names) + end


def test_names_in_dns_are_replaced_and_its_structure_stays(tmp_path: Path) -> None:
    message = dns(
        resource(b"\xc0\x0c", 1, bytes((192, 168, 86, 2))),
        resource(b"\xc0\x0c", 28, IPv6Address("fe80::1234").packed),
        resource(labels(b"_http", b"_tcp", b"local"), 12, labels(b"Bobs Robot", end=b"\xc0\x0c")),
        resource(labels(b"2", b"86", b"168", b"192", b"in-addr", b"arpa"), 12, b"\xc0\x0c"),
        resource(b"\xc0\x0c", 16, b"\x0bsn=ABC12345\x04kept"),
        resource(b"\xc0\x0c", 33, b"\0\0\0\0\x20\0" + labels(b"bobs-laptop", b"local")),
        resource(b"\xc0\x0c", 65, b"who knows"),
        resource(b"\xc0\x0c", 6, labels(b"ns", b"org") + labels(b"bob", b"org") + bytes(20)),
        question=labels(b"Unitree", b"example", b"org"),
    )
    (found,) = scrubbed(tmp_path, [Datagram(0, ROBOT, ("224.0.0.251", 5353), message)])
    for secret in (b"Unitree", b"example", b"Bobs", b"ABC12345", b"bobs-laptop", b"who knows"):
        assert secret not in found.payload
    for kept in (b"\3org\0", b"\5_http\4_tcp\5local\0", b"\7in-addr\4arpa\0", b"\x0b"):
        assert kept in found.payload
    address = found.source[0].split(".")
    assert labels(*(part.encode() for part in reversed(address)), end=b"") in found.payload
    assert ip_address(found.source[0]).packed in found.payload


@given(st.binary(max_size=80))
def test_arbitrary_dns_raises_nothing_but_decode_error(data: bytes) -> None:
    for message in (data, b"\0\1\0\0\0\1\0\1\0\0\0\0" + data):
        with contextlib.suppress(DecodeError):
            copy = MaskedCopy(message)
            mask_dns(copy, Pseudonyms(KEY))
            assert len(copy.new) == len(message)


def test_dns_that_cannot_be_read_is_blanked() -> None:
    rewriter = Rewriter(Pseudonyms(KEY))
    packet = udp_frame(Datagram(0, PHONE, ("9.9.9.9", 53), b"my secret name"))
    assert b"secret" not in rewriter.rewrite(ETHERNET, packet)
    assert rewriter.payloads.cleared == {"unknown datagrams": 1}


# ---- below UDP ----------------------------------------------------------------------------------


def ipv4(protocol: int, payload: bytes, more: bytes = b"", flags: int = 0x4000) -> bytes:
    head = struct.pack(">BBHHH", 0x45 + len(more) // 4, 0, 20 + len(more) + len(payload), 7, flags)
    head += (
        struct.pack(">BBH", 64, protocol, 0) + bytes((192, 168, 86, 23, 93, 184, 216, 34)) + more
    )
    return head[:10] + checksum(head).to_bytes(2) + head[12:] + payload


def tcp(payload: bytes, ends: bytes) -> bytes:
    head = struct.pack(">HHIIBBHHH", 5555, 80, 1, 2, 0x50, 0x18, 1000, 0, 0)
    pseudo = pseudo_header(ends[:4], ends[4:], 6, 20 + len(payload))
    return head[:16] + checksum(pseudo + head + payload).to_bytes(2) + head[18:] + payload


ENDS = bytes((192, 168, 86, 23, 93, 184, 216, 34))
MACS = b"\x3c\x5a\xb4\1\2\3" + b"\x94\x45\x60\7\x08\x09"


def sound(packet: bytes, at: int = 0) -> bool:
    """Whether all checksums of an IPv4 packet are right."""
    head = (packet[at] & 15) * 4
    total = int.from_bytes(packet[at + 2 : at + 4])
    body = packet[at + head : at + total]
    ends = packet[at + 12 : at + 20]
    pseudo = (
        b"" if packet[at + 9] == 1 else pseudo_header(ends[:4], ends[4:], packet[at + 9], len(body))
    )
    return checksum(packet[at : at + head]) == 0 and checksum(pseudo + body) == 0


@pytest.mark.parametrize("linktype", [9, 50, 105, 127])
def test_packets_of_ppp_and_wifi_are_cleared_whole(linktype: int, tmp_path: Path) -> None:
    packet = b"\xff\x03\0\x21" + bytes(range(1, 100))
    (found,), _ = packets_of(tmp_path, classic([packet], linktype))
    assert found == bytes(len(packet))


@pytest.mark.parametrize(
    ("linktype", "head"),
    [
        (ETHERNET, MACS + b"\x08\0"),
        (ETHERNET, MACS + b"\x81\0\0\5\x08\0"),
        (101, b""),
        (LOOP, b"\0\0\0\2"),
        (COOKED, b"\0\0\0\1\0\6" + MACS[6:] + b"\0\0\x08\0"),
        (COOKED_2, b"\x08\0\0\0\0\0\0\1\0\1\0\6" + MACS[6:] + b"\0\0"),
    ],
)
def test_packets_of_every_link_get_other_addresses_and_right_checksums(
    linktype: int, head: bytes, tmp_path: Path
) -> None:
    text = b"GET /x HTTP/1.1\r\nHost: robot.example.org\r\n\r\n"
    packet = head + ipv4(6, tcp(text, ENDS))
    (found,), done = packets_of(tmp_path, classic([packet], linktype))
    assert +Counter(done.cleared) == {"HTTP": 1}
    assert len(found) == len(packet)
    assert ENDS[:4] not in found
    assert MACS[6:] not in found
    assert b"example" not in found
    assert sound(found, len(head))


def test_arp_tells_other_addresses(tmp_path: Path) -> None:
    arp = b"\0\1\x08\0\6\4\0\1" + MACS[6:] + ENDS[:4] + bytes(6) + ENDS[4:] + b"old memory"
    (found,), _ = packets_of(tmp_path, classic([MACS + b"\x08\6" + arp]))
    assert ENDS[:4] not in found
    assert MACS[6:] not in found
    assert b"old memory" not in found
    assert found[22:28] == found[6:12]


def test_an_error_that_quotes_a_packet_does_not_tell_its_addresses(tmp_path: Path) -> None:
    quoted = ipv4(17, struct.pack(">HHHH", 1, 2, 8, 99))
    icmp = b"\3\1\0\0\0\0\0\0" + quoted
    icmp = icmp[:2] + checksum(icmp).to_bytes(2) + icmp[4:]
    packet = MACS + b"\x08\0" + ipv4(1, icmp)
    (found,), _ = packets_of(tmp_path, classic([packet]))
    assert ENDS[:4] not in found
    assert found.count(found[26:30]) == 2
    assert sound(found, 14)


def test_neighbours_of_version_6_are_replaced(tmp_path: Path) -> None:
    me, you = IPv6Address("fe80::3e5a:b4ff:fe01:203").packed, IPv6Address("fe80::9").packed
    body = b"\x87\0\0\0" + bytes(4) + you + b"\1\1" + MACS[:6]
    sum_ = checksum(pseudo_header(me, you, 58, len(body)) + body)
    body = body[:2] + sum_.to_bytes(2) + body[4:]
    packet = (
        MACS + b"\x86\xdd" + struct.pack(">IHBB", 6 << 28, len(body), 58, 255) + me + you + body
    )
    (found,), _ = packets_of(tmp_path, classic([packet]))
    assert me not in found
    assert you not in found
    assert MACS[:6] not in found
    inside = found[54:]
    assert inside[4:] == bytes(len(inside) - 4)
    assert checksum(pseudo_header(found[22:38], found[38:54], 58, len(inside)) + inside) == 0


def test_dhcp_tells_neither_the_name_nor_the_address(tmp_path: Path) -> None:
    lease = (
        b"\1\1\6\0" + bytes(8) + ENDS[:4] + bytes(12) + MACS[:6] + bytes(202) + b"\x63\x82\x53\x63"
    )
    lease += (
        b"\x35\1\3"
        + b"\x32\4"
        + ENDS[:4]
        + b"\x0c\x0bBobs-iPhone"
        + b"\x3d\7\1"
        + MACS[:6]
        + b"\xff"
    )
    one = Datagram(0, ("0.0.0.0", 68), ("255.255.255.255", 67), lease)
    (found,) = scrubbed(tmp_path, [one])
    assert b"Bobs" not in found.payload
    assert ENDS[:4] not in found.payload
    assert MACS[:6] not in found.payload
    assert found.payload[236:243] == lease[236:243]
    assert (found.source, found.destination) == (one.source, one.destination)


def test_fragments_keep_right_sums_or_none(tmp_path: Path) -> None:
    whole = udp_frame(Datagram(0, ("192.168.86.23", 5), ("93.184.216.34", 6), b"abcdefgh" * 4))[34:]
    first = ipv4(17, whole[:24], flags=0x2000)
    second = ipv4(17, whole[24:], flags=0x0003)
    (a, b), _ = packets_of(tmp_path, classic([first, second], 101))
    assert ENDS[:4] not in a + b
    assert checksum(a[:20]) == checksum(b[:20]) == 0
    joined = a[20:] + b[20:]
    assert joined[8:] == bytes(32)
    assert checksum(pseudo_header(a[12:16], a[16:20], 17, len(joined)) + joined) == 0
    pieces = tcp(b"x" * 40, ENDS)
    (c, d), _ = packets_of(
        tmp_path, classic([ipv4(6, pieces[:32], flags=0x2000), ipv4(6, pieces[32:], flags=4)], 101)
    )
    assert c[20:36] == pieces[:16]
    # The checksum covers the whole length, which the first fragment does not state.
    assert c[36:38] + c[40:] + d[20:] == bytes(2 + 40)


def ipv6(kind: int, payload: bytes) -> bytes:
    ends = IPv6Address("2001:db8::5:6").packed + IPv6Address("2a00:1450::7").packed
    return struct.pack(">IHBB", 6 << 28, len(payload), kind, 64) + ends + payload


def test_extensions_of_version_6_are_walked_through(tmp_path: Path) -> None:
    ends = ipv6(17, b"")[8:]
    udp = struct.pack(">HHHH", 5, 6, 8 + 16, 0) + b"hello, somebody!"
    udp = (
        udp[:6]
        + checksum(pseudo_header(ends[:16], ends[16:], 17, len(udp)) + udp).to_bytes(2)
        + udp[8:]
    )
    route = b"\x11\2\0\1" + bytes(4) + IPv6Address("2001:db8::99").packed
    hop = bytes((43,)) + b"\0" + bytes(6)
    fragment = b"\x11\0\0\1" + bytes(4)
    packets = [
        ipv6(0, hop + route + udp),
        ipv6(44, fragment + udp),
        ipv6(58, b"\1\0\0\0" + bytes(4) + ipv6(17, udp)),
    ]
    found, _ = packets_of(tmp_path, classic(packets, 101))
    for packet in found:
        assert b"\x20\1\x0d\xb8" not in packet
    plain = found[0]
    body = plain[-len(udp) :]
    assert checksum(pseudo_header(plain[8:24], plain[24:40], 17, len(body)) + body) == 0
    piece = found[1][-len(udp) :]
    assert checksum(pseudo_header(found[1][8:24], found[1][24:40], 17, len(piece)) + piece) == 0


@pytest.mark.parametrize("size", range(1, 60, 3))
@pytest.mark.parametrize("kind", [6, 17, 1])
def test_packets_that_were_cut_off_keep_no_address(size: int, kind: int, tmp_path: Path) -> None:
    whole = ipv4(kind, tcp(b"hello", ENDS)) if kind == 6 else ipv4(kind, bytes(40))
    (found,), _ = packets_of(tmp_path, classic([whole[:size]], 101))
    assert len(found) == min(size, len(whole))
    assert ENDS[:4] not in found
    assert ENDS[4:] not in found
    (sixth,), _ = packets_of(tmp_path, classic([ipv6(kind, bytes(30))[:size]], 101))
    assert len(sixth) == size
    assert b"\x2a\0\x14\x50" not in sixth


def test_what_cannot_be_looked_into_is_blanked(tmp_path: Path) -> None:
    lldp = MACS + b"\x88\xcc" + b"my-switch-in-my-street"
    gre = MACS + b"\x08\0" + ipv4(47, b"another packet with names")
    (a, b), done = packets_of(tmp_path, classic([lldp, gre]))
    assert b"switch" not in a
    assert b"names" not in b
    assert done.cleared == {"unknown protocols": 2}
    (c,), _ = packets_of(tmp_path, classic([b"radio with names"], 127))
    assert c == bytes(16)


# ---- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_classic_file_keeps_its_times_lengths_and_link(order: str, tmp_path: Path) -> None:
    packet = ipv4(6, tcp(b"hello", ENDS))
    source, target = tmp_path / "a.pcap", tmp_path / "b.pcap"
    cut = struct.pack(order + "IIII", 7, 8, 30, 1500) + packet[:30]
    source.write_bytes(classic([packet] * 3, 101, order) + cut)
    assert scrub(source, target, KEY).packets == 4
    assert target.stat().st_size == source.stat().st_size
    rows = []
    for path in (source, target):
        with open_capture(path) as capture:
            (records,) = capture
            assert capture.format.startswith("pcap")
            rows.append([column.tolist() for column in records[2:]])
    assert rows[0] == rows[1]


@pytest.mark.parametrize("order", ["<", ">"])
def test_a_pcapng_loses_all_that_is_not_needed_to_read_its_packets(
    order: str, tmp_path: Path
) -> None:
    def option(code: int, value: bytes) -> bytes:
        return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)

    packet = ipv4(6, tcp(b"hello", ENDS))
    link = struct.pack(order + "HHI", 101, 0, 0)
    link += option(2, b"Bobs wlan") + option(9, b"\x09") + option(6, MACS[:6]) + bytes(4)
    magic = struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1)
    enhanced = struct.pack(order + "IIIII", 0, 5, 6, len(packet), len(packet)) + packet
    enhanced += bytes(-len(packet) % 4) + option(1, b"at Bobs home") + bytes(4)
    old = struct.pack(order + "HHIIII", 0, 0, 5, 6, len(packet), len(packet)) + packet
    data = block(0x0A0D0D0A, magic + option(2, b"Bobs laptop") + bytes(4), order)
    data += block(1, link, order)
    data += block(6, enhanced, order)
    data += block(3, struct.pack(order + "I", len(packet)) + packet, order)
    data += block(2, old, order)
    data += block(
        5, struct.pack(order + "III", 0, 1, 2) + option(4, bytes(8)) + option(1, b"Bob"), order
    )
    data += block(4, b"names of Bobs hosts", order) + block(10, b"secrets of Bob..", order)
    source, target = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    source.write_bytes(data)
    done = scrub(source, target, KEY)
    assert done.packets == 3
    new = target.read_bytes()
    assert b"Bob" not in new
    assert MACS[:6] not in new
    assert ENDS[:4] not in new
    for path in (source, target):
        with open_capture(path) as capture:
            (records,) = capture
        assert records.time_ns.tolist() == [(5 << 32) + 6] * 3
        assert records.linktype.tolist() == [101] * 3


def test_a_pcapng_with_two_links_keeps_both(tmp_path: Path) -> None:
    packet = ipv4(6, tcp(b"hello", ENDS))
    source, target = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    data = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    data += block(1, struct.pack("<HHI", ETHERNET, 0, 0)) + block(1, struct.pack("<HHI", 101, 0, 0))
    for interface, one in ((1, packet), (0, MACS + b"\x08\0" + packet)):
        head = struct.pack("<IIIII", interface, 0, 9, len(one), len(one))
        data += block(6, head + one)
    source.write_bytes(data)
    scrub(source, target, KEY)
    with open_capture(target) as capture:
        rows = [(records.linktype.tolist(), records.time_ns.tolist()) for records in capture]
    assert [link for links, _ in rows for link in links] == [101, ETHERNET]
    assert [time for _, times in rows for time in times] == [9_000, 9_000]


def test_a_gzipped_capture_stays_one(tmp_path: Path) -> None:
    source, target = tmp_path / "a.pcap.gz", tmp_path / "b.pcap.gz"
    source.write_bytes(gzip.compress(classic([ipv4(6, tcp(b"hello", ENDS))], 101)))
    assert scrub(source, target, KEY).packets == 1
    assert ENDS[:4] not in gzip.decompress(target.read_bytes())


@pytest.mark.parametrize("data", [b"", b"\xd4\xc3", b"this is a text, not a capture"])
def test_what_is_no_capture_is_refused_and_leaves_no_copy(data: bytes, tmp_path: Path) -> None:
    source, target = tmp_path / "a", tmp_path / "b"
    source.write_bytes(data)
    with pytest.raises(NotACaptureError):
        scrub(source, target)
    assert not target.exists()


def test_a_capture_cannot_be_its_own_copy(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(classic([]))
    with pytest.raises(BadRequestError, match="both input and output"):
        scrub(source, source)
    assert source.read_bytes() == classic([])
    with pytest.raises(BadRequestError, match="cannot be read"):
        scrub(tmp_path / "nothing", tmp_path / "b")
    with pytest.raises(BadRequestError, match="not a file"):
        scrub(tmp_path, tmp_path / "b")


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        (b"\0" * 9, "middle of a packet"),
        (struct.pack("<IIII", 1, 2, 2**32 - 1, 2**32 - 1), "claims 4,294,967,295"),
        (struct.pack("<IIII", 1, 2, 100, 100) + b"short", "middle of a packet"),
    ],
)
def test_a_file_that_breaks_off_is_kept_to_its_last_whole_packet(
    tail: bytes, words: str, tmp_path: Path
) -> None:
    good = classic([ipv4(6, tcp(b"hello", ENDS))], 101)
    (found,), done = packets_of(tmp_path, good + tail)
    assert sound(found)
    assert done.packets == 1
    assert words in done.warnings[0]


def test_without_a_key_two_copies_have_other_names(tmp_path: Path) -> None:
    source = tmp_path / "a"
    source.write_bytes(classic([ipv4(6, tcp(b"hello", ENDS))], 101))
    for name in "bc":
        scrub(source, tmp_path / name)
    assert (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


MADE = dict.fromkeys(("pcap", "pcapng"), b"")


@pytest.fixture(name="made", scope="module")
def _made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("made")
    packets = [Datagram(n, PHONE, ROBOT, encode_query(Query(SERIAL))) for n in range(5)]
    packets += make.webrtc(story.webrtc()).datagrams[:40]
    packets.append(Datagram(9, ROBOT, ("224.0.0.251", 5353), dns(question=labels(b"a", b"b"))))
    for kind in MADE:
        write(folder / f"a.{kind}", packets)
    return {kind: (folder / f"a.{kind}").read_bytes() for kind in MADE}


@given(st.sampled_from(sorted(MADE)), st.integers(0, 2**32))
def test_damaged_files_raise_nothing_unexpected(
    tmp_path_factory: pytest.TempPathFactory, made: dict[str, bytes], kind: str, seed: int
) -> None:
    chance = random.Random(seed)
    data = bytearray(made[kind])
    for _ in range(chance.randrange(1, 30)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    if chance.random() < 0.3:
        del data[chance.randrange(len(data)) :]
    folder = tmp_path_factory.mktemp("damaged")
    (folder / "a").write_bytes(data)
    try:
        scrub(folder / "a", folder / "b", KEY)
    except RoteError:
        assert not (folder / "b").exists()


@pytest.mark.parametrize("kind", make.KINDS)
def test_the_copy_gets_the_same_verdict(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    make.make(source, kind)
    scrub(source, target, KEY)
    old, new = (report_capture(path).document() for path in (source, target))
    for key in ("packets", "accounted", "kinds", "dtls_records", "stun_packets", "commands"):
        assert old[key] == new[key]
    for key, parts in (
        ("flows", ("name", "why", "packets", "bytes", "kinds")),
        ("timeline", ("kind", "start", "end", "confidence")),
        ("exchanges", ("command", "frame", "sequence", "sent", "code", "latency_s")),
    ):
        rows = [[[row[part] for part in parts] for row in one[key]] for one in (old, new)]
        assert rows[0] == rows[1]


def test_signalling_in_http_gets_the_same_verdict(tmp_path: Path) -> None:
    for answer, outcome in ((b'{"sdp": "reject"}', "rejected"), (b'{"sdp": "v=0"}', "accepted")):
        offer = b'POST /offer HTTP/1.1\r\nHost: robot\r\nContent-Length: 9\r\n\r\n{"sdp": 1'
        said = b"HTTP/1.1 200 OK\r\nServer: robot\r\n\r\n" + answer
        there, back = ipv4(6, tcp(offer, ENDS)), ipv4(6, tcp(said, ENDS))
        ports = back[22:24] + back[20:22]
        back = back[:12] + back[16:20] + back[12:16] + ports + back[24:]
        source, target = tmp_path / "a.pcap", tmp_path / "b.pcap"
        late = struct.pack("<IIII", 2, 0, len(back), len(back)) + back
        source.write_bytes(classic([there], 101) + late)
        scrub(source, target, KEY)
        (signal,) = report_capture(target).document()["timeline"]
        assert outcome in signal["evidence"]
        assert b"robot" not in target.read_bytes()


@pytest.mark.slow
@needs("tshark")
@pytest.mark.parametrize("kind", make.KINDS)
def test_tshark_sees_the_same_conversation_with_other_names(kind: str, tmp_path: Path) -> None:
    source, target = tmp_path / "a.pcapng", tmp_path / "b.pcapng"
    count = make.make(source, kind)
    scrub(source, target, KEY)
    checks = ("-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE")
    fields = ("ip.checksum.status", "udp.checksum.status", "frame.len", "frame.protocols")
    addresses = ("ip.src", "eth.src")
    old, new = (tshark(path, *checks, fields=fields + addresses) for path in (source, target))
    for row in old:  # the contents of certificates are cleared
        row[3] = row[3].split(":x509")[0]
    assert [row[:4] for row in old] == [row[:4] for row in new]
    assert [row[:2] for row in new] == [["1", "1"]] * count
    before, after = ({address for row in rows for address in row[4:]} for rows in (old, new))
    assert not before & after
    assert len(before) == len(after)
