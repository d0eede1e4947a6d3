"""What datagrams are called, and what they are not called."""

import io
import json
import random
import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.capture_files import (
    PHONE,
    ROBOT,
    START_NS,
    check,
    pcap,
    record,
    tcp,
    udp,
    write,
)
from rote.capture.decode.dtls_numbering import FollowedNumbers
from rote.capture.judge.analysis import Analysis
from rote.capture.judge.classify import A1_SIZES
from rote.capture.model import PacketKind
from rote.capture.read.flow_ids import Interner, distinct, find_run_starts, is_one_of, stable_order
from rote.capture.read.reader import Capture
from rote.capture.report.report import Report, report_capture
from rote.errors import DecodeError
from rote.wire import discovery
from rote.wire.a1 import codec as a1
from rote.wire.a1 import formats as a1_frames
from rote.wire.a1 import values as a1_values
from rote.wire.teaching.codec import Frame, MessageType, decode, encode

RNG = random.Random(3)


def look(tmp_path: Path, *packets: bytes) -> Report:
    timed = [(START_NS + at * 10**6, packet) for at, packet in enumerate(packets)]
    return report_capture(write(tmp_path, pcap(timed)))


def named(tmp_path: Path, *payloads: bytes) -> dict[str, int]:
    kinds: dict[str, int] = look(
        tmp_path, *(udp(PHONE, ROBOT, payload) for payload in payloads)
    ).document()["kinds"]
    return kinds


def question(name: str = "robot.local", flags: int = 0x0100) -> bytes:
    labels = b"".join(bytes((len(part),)) + part.encode() for part in name.split("."))
    return struct.pack(">HHHHHH", 0x8123, flags, 1, 0, 0, 0) + labels + b"\0\0\1\0\1"


RTPS = b"RTPS\x02\x03\x01\x10" + bytes(12) + b"\x09\x01\x08\x00" + bytes(8)
A1_FRAME = a1.encode(a1_values.HighCmd(), a1_values.Dialect.A1_3_3)


@pytest.mark.parametrize(
    ("payload", "kind"),
    [
        (record(1, 44), "DTLS"),
        (record(1, 20) + record(2, 30), "DTLS"),
        (check(1), "STUN"),
        (encode(Frame(0x0D, 1, bytes(44))), "teaching frame"),
        (encode(Frame(0x1A, 1, bytes(276))), "teaching frame"),
        (A1_FRAME, "A1 UDP"),
        (discovery.encode_query(discovery.Query()), "robot discovery"),
        (RTPS, "DDS (RTPS)"),
        (question(), "DNS"),
        (question("a" * 60 + "." + "b" * 60), "DNS"),
        (b"", "empty"),
    ],
)
def test_a_datagram_is_named_by_its_structure_on_any_port(
    tmp_path: Path, payload: bytes, kind: str
) -> None:
    assert named(tmp_path, payload) == {kind: 1}


@pytest.mark.parametrize(
    "payload",
    [
        record(1, 44) + b"rest",
        record(1, 44)[:-1],
        b"\x17\xfe\xfc" + record(1, 44)[3:],
        check(1) + b"more",
        check(1)[:4] + bytes(4) + check(1)[8:],
        encode(Frame(0x0D, 1, bytes(44)))[:-1] + b"\x01",
        A1_FRAME[:-1] + b"\x01",
        bytes(len(A1_FRAME)),
        b'{"name":"unitree_dapengche"',
        b'{"name":"another robot"}',
        b"RTPX" + RTPS[4:],
        b"RTPS\x09" + RTPS[5:],
        question()[:2] + b"\xff\xff" + question()[4:],
        question()[:12] + b"\x7f" + question()[13:],
        question()[:-1] + b"\x77",
    ],
    ids=range(15),
)
def test_what_only_looks_alike_is_unknown_with_reasons(tmp_path: Path, payload: bytes) -> None:
    found = look(tmp_path, udp(PHONE, ROBOT, payload)).document()
    assert found["kinds"] == {"unknown": 1}
    assert "no STUN cookie" in found["flows"][0]["why"]


def test_a_port_alone_names_nothing(tmp_path: Path) -> None:
    packets = [
        udp(PHONE, ("1.2.3.4", port), b"noise, not a protocol")
        for port in (53, 443, 3478, 5353, 7400, 8007, 10131, 49504)
    ]
    assert look(tmp_path, *packets).document()["kinds"] == {"unknown": 8}


def test_mdns_is_dns_to_its_group(tmp_path: Path) -> None:
    packets = [udp((PHONE[0], 40_000), ("224.0.0.251", 5353), question())]
    flow = look(tmp_path, *packets).document()["flows"][0]
    assert (flow["name"], flow["notes"]) == ("mDNS", ["robot.local"])


def test_media_is_believed_only_if_its_numbers_go_on(tmp_path: Path) -> None:
    def media(sequence: int, source: int) -> bytes:
        head = struct.pack(">BBHII", 0x80, 0x80 | 111, sequence & 0xFFFF, 0, source)
        return head + RNG.randbytes(60)

    steady = [media(65_530 + at, 77) for at in range(30) if at not in (4, 5)]
    found = look(tmp_path, *(udp(PHONE, ROBOT, one) for one in steady)).document()
    assert found["kinds"] == {"RTP": 28}
    assert found["flows"][0]["media"] == [
        {
            "direction": "10.215.173.1:55371 -> 192.168.137.164:49504",
            "source": "0000004d",
            "packets": 28,
            "lost": 2,
            "payload_types": [111],
        }
    ]
    noise = [media(RNG.getrandbits(16), RNG.getrandbits(32)) for _ in range(30)]
    found = look(tmp_path, *(udp(PHONE, ROBOT, one) for one in noise)).document()
    assert found["kinds"] == {"unknown": 30}
    assert "sequence numbers do not continue" in found["flows"][0]["why"]


def test_reports_alone_are_not_believed(tmp_path: Path) -> None:
    payload = bytes.fromhex("80c9000100000001") + bytes(14)
    assert named(tmp_path, payload) == {"unknown": 1}
    assert named(tmp_path, payload, record(1, 44)) == {"DTLS": 1, "SRTCP": 1}


def test_tls_and_http_are_named_and_signalling_is_said(tmp_path: Path) -> None:
    robot = (ROBOT[0], 9991)
    found = look(
        tmp_path,
        tcp(PHONE, ("1.2.3.4", 8443), b"\x16\x03\x01\x00\x20" + bytes(32)),
        tcp((PHONE[0], 2), robot, b"POST /con_notify HTTP/1.1\r\nHost: x\r\n\r\n"),
        tcp((PHONE[0], 3), robot, b"\x1b[31mno\r\n"),
        tcp((PHONE[0], 4), robot, b""),
    ).document()
    assert found["kinds"] == {"TLS": 1, "HTTP": 1, "TCP": 1, "empty": 1}
    assert [line["kind"] for line in found["timeline"]] == ["signal"]
    assert "POST /con_notify" in found["timeline"][0]["evidence"]


def test_text_from_the_network_cannot_act_on_a_terminal(tmp_path: Path) -> None:
    line = b"GET /\x1b[2Jx HTTP/1.1\r\n\r\n"
    words = look(tmp_path, tcp(PHONE, ROBOT, line)).document()["flows"][0]["notes"]
    assert words == ["GET /?[2Jx HTTP/1.1"]


@given(
    st.binary(max_size=60),
    st.sampled_from((*MessageType, 0x18)),
    st.lists(st.tuples(st.integers(0, 78), st.integers(0, 255)), max_size=1),
    st.sampled_from((-1, 0, 1)),
)
def test_a_teaching_frame_is_what_the_codec_reads(
    payload: bytes, kind: int, changed: list[tuple[int, int]], more: int
) -> None:
    frame = bytearray(encode(Frame(0x0D, 7, payload, kind)))
    for at, value in changed:
        frame[at % len(frame)] = value
    datagram = (bytes(frame) + b"x")[: len(frame) + more]
    try:
        decode(datagram)
        reads = True
    except DecodeError:
        reads = False
    file = io.BytesIO(pcap([(1, udp(PHONE, ROBOT, datagram))]))
    with Capture(io.BufferedReader(file), "", 1 << 16) as capture:
        found = Analysis().run(capture)
    assert (PacketKind.TEACHING in found.flows.kind_totals()) == reads


def test_the_lengths_of_a1_frames_are_those_of_the_codec() -> None:
    assert sorted(a1_frames.BY_SIZE) == list(A1_SIZES)


def test_a_robots_answer_is_discovery_too(tmp_path: Path) -> None:
    answer = {"sn": "E21D0000", "key": "", "name": "unitree_dapengche", "ip": "10.0.0.2"}
    assert named(tmp_path, json.dumps(answer).encode()) == {"robot discovery": 1}


# ---- numbering ----------------------------------------------------------------------------------


def test_equal_keys_have_equal_numbers_in_the_order_they_came() -> None:
    interner = Interner(1000)
    rng = random.Random(1)
    known: dict[tuple[int, int], int] = {}
    for _ in range(20):
        keys = [(rng.randrange(20), rng.randrange(20) << 40) for _ in range(300)]
        a, b = (np.array(column, np.uint64) for column in zip(*keys, strict=True))
        expected = [known.setdefault(key, len(known)) for key in keys]
        assert interner.numbers(a, b).tolist() == expected
    assert interner.keys == list(known)


def test_keys_beyond_the_limit_share_one_number() -> None:
    interner = Interner(10)
    a = np.arange(100, dtype=np.uint64)
    for _ in range(2):
        numbers = interner.numbers(a, a)
        assert numbers.tolist() == [*range(10), *[10] * 90]
    assert interner.refused == 180
    assert interner.full


def test_steps_are_followed_across_batches_and_streams() -> None:
    followed = FollowedNumbers()
    first = followed.follow(np.array([0, 1, 0, 1]), np.array([5, 100, 6, 102]))
    assert first.step.tolist() == [0, 1, 0, 2]
    assert first.is_first.tolist() == [True, False, True, False]
    second = followed.follow(np.array([1, 0]), np.array([103, 4]))
    assert dict(zip(second.stream.tolist(), second.step.tolist(), strict=True)) == {0: -2, 1: 1}


def test_numbers_of_any_width_are_sorted_as_they_came() -> None:
    for most in (200, 300, 70_000):
        numbers = np.array([most, 3, most, 0, 3])
        assert stable_order(numbers).tolist() == [3, 1, 4, 0, 2]
    assert stable_order(np.zeros(0, np.int64)).tolist() == []
    assert find_run_starts(np.array([5, 5, 2, 2, 2, 5])).tolist() == [0, 2, 5]
    assert find_run_starts(np.zeros(0, np.int64)).tolist() == []
    assert is_one_of(np.array([1, 9, 2], np.uint8), (2, 1, 300)).tolist() == [True, False, True]


def test_distinct_values_are_ascending() -> None:
    assert distinct(np.array([3, 1, 3, 2, 1])).tolist() == [1, 2, 3]
    assert distinct(np.zeros(0, np.int64)).tolist() == []
