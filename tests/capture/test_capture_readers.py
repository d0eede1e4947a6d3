"""Reading capture files: every format, order, clock and link, and every way to be broken."""

import gzip
import io
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.capture_files import (
    LINKS,
    PHONE,
    PHONE6,
    ROBOT,
    ROBOT6,
    START_NS,
    TSHARK_LINKS,
    check,
    enhanced,
    ethernet,
    interface,
    ip4,
    ip6,
    old_packet,
    pcap,
    pcapng,
    record,
    section,
    simple,
    tcp,
    udp,
    udp_part,
    write,
)
from rote.capture.judge.analysis import Analysis
from rote.capture.read import record_scan as chain
from rote.capture.read.packets import PacketDecoder, iter_datagrams
from rote.capture.read.reader import Capture, NotACaptureError, open_capture
from rote.capture.report.report import report_capture
from rote.errors import BadRequestError

PAYLOADS = [b"hello", bytes(200), b"x" * 33]


def read(path: Path | str) -> tuple[list[tuple[int, bytes]], list[str]]:
    """Return time and payload of all datagrams, and the warnings."""
    decoder = PacketDecoder()
    with open_capture(path) as capture:
        batches = (batch for records in capture for batch in decoder.decode(records))
        found = [(one.time_ns, one.payload) for one in iter_datagrams(batches, decoder)]
    return found, capture.warnings


def traffic(six: bool = False) -> list[tuple[int, bytes]]:
    ends = (PHONE6, ROBOT6) if six else (PHONE, ROBOT)
    return [(START_NS + at * 1000, udp(*ends, payload)) for at, payload in enumerate(PAYLOADS)]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("make", [pcap, pcapng])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_link_gives_the_same_datagrams(
    tmp_path: Path, link: int, make: Callable[..., bytes], order: str
) -> None:
    packets = [(at, LINKS[link](packet)) for at, packet in traffic(six=link == 229)]
    found, warnings = read(write(tmp_path, make(packets, link, order=order)))
    assert found == [(START_NS + at * 1000, payload) for at, payload in enumerate(PAYLOADS)]
    assert warnings == []


@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34, 0x1C0001AC, 0x1C0001AB])
@pytest.mark.parametrize("order", ["<", ">"])
def test_every_magic_is_read_with_its_clock(tmp_path: Path, magic: int, order: str) -> None:
    nano = magic in (0xA1B23C4D, 0x1C0001AC, 0x1C0001AB)
    packets = [(START_NS + 123, udp(PHONE, ROBOT, b"a")), (START_NS + 456, udp(PHONE, ROBOT, b"b"))]
    found, _ = read(write(tmp_path, pcap(packets, magic=magic, order=order)))
    shift = (123, 456) if nano else (0, 0)
    assert found == [(START_NS + shift[0], b"a"), (START_NS + shift[1], b"b")]


def test_a_section_may_change_the_byte_order_and_an_interface_the_clock(tmp_path: Path) -> None:
    packet = udp(PHONE, ROBOT, b"one")
    data = (
        section("<")
        + interface(101)
        + interface(1, resolution=9)
        + enhanced(START_NS // 1000, packet)
        + enhanced(START_NS + 5, ethernet(packet), number=1)
        + section(">")
        + interface(101, ">", resolution=3, offset_s=100)
        + old_packet(START_NS // 10**6, packet, ">")
        + simple(packet, ">")
    )
    found, warnings = read(write(tmp_path, data))
    late = START_NS // 10**6 * 10**6 + 100 * 10**9
    assert [at for at, _ in found] == [START_NS, START_NS + 5, late, late]
    assert {payload for _, payload in found} == {b"one"}
    assert "no time" in warnings[0]


@pytest.mark.parametrize(
    ("resolution", "ticks", "expected"),
    [
        (6, 1_500_000, 1_500_000_000),
        (0, 3, 3 * 10**9),
        (12, 2_500_000_000_000, 2_500_000_000),
        (0x80 | 10, 1536, 1_500_000_000),
        (0x80 | 32, 3 << 31, 1_500_000_000),
    ],
)
def test_time_resolutions_are_powers_of_ten_or_two(
    tmp_path: Path, resolution: int, ticks: int, expected: int
) -> None:
    data = section() + interface(101, resolution=resolution)
    found, _ = read(write(tmp_path, data + enhanced(ticks, udp(PHONE, ROBOT, b"t"))))
    assert found == [(expected, b"t")]


@pytest.mark.parametrize("tags", [(b"\x81\x00",), (b"\x88\xa8", b"\x81\x00")])
def test_vlan_tags_are_passed_over(tmp_path: Path, tags: tuple[bytes, ...]) -> None:
    packet = ethernet(udp(PHONE, ROBOT, b"tagged"), *tags)
    found, _ = read(write(tmp_path, pcap([(START_NS, packet)], 1)))
    assert [payload for _, payload in found] == [b"tagged"]


def test_ip_options_and_extension_headers_are_passed_over(tmp_path: Path) -> None:
    part4, part6 = udp_part(PHONE, ROBOT, b"four"), udp_part(PHONE6, ROBOT6, b"six")
    hop_by_hop = bytes((60, 0)) + bytes(6)
    destination = bytes((17, 1)) + bytes(14)
    packets = [
        (1, ip4(PHONE[0], ROBOT[0], 17, part4, options=bytes((1, 1, 1, 0)))),
        (2, ip6(PHONE6[0], ROBOT6[0], 0, hop_by_hop + destination + part6)),
    ]
    found, _ = read(write(tmp_path, pcap(packets)))
    assert [payload for _, payload in found] == [b"four", b"six"]


def test_a_length_of_zero_means_all_that_ip_holds(tmp_path: Path) -> None:
    part = bytearray(udp_part(PHONE, ROBOT, b"offloaded"))
    part[4:6] = bytes(2)
    whole = bytearray(udp(PHONE, ROBOT, b"cut by the card"))
    whole[2:4] = bytes(2)
    packets = [
        (1, ip4(PHONE[0], ROBOT[0], 17, bytes(part))),
        (2, bytes(whole)),
        (3, udp(PHONE, ROBOT, b"plain")),
    ]
    found, _ = read(write(tmp_path, pcap(packets)))
    assert [payload for _, payload in found] == [b"offloaded", b"cut by the card", b"plain"]


def test_links_versions_and_protocols_may_be_mixed(tmp_path: Path) -> None:
    packets = [
        udp(PHONE, ROBOT, b"four"),
        tcp(PHONE, ROBOT, b"GET / HTTP/1.1\r\n"),
        udp(PHONE6, ROBOT6, b"six"),
        ip4(PHONE[0], ROBOT[0], 1, bytes(8)),
        ip4(PHONE[0], ROBOT[0], 17, udp_part(PHONE, ROBOT, b"options"), options=bytes(8)),
    ]
    decoder = PacketDecoder()
    path = write(tmp_path, pcap([(at, ethernet(packet)) for at, packet in enumerate(packets)], 1))
    with open_capture(path) as capture:
        batches = [batch for records in capture for batch in decoder.decode(records)]
    found = [
        (batch.payload(at), batch.heads[at, : batch.size[at]].tobytes(), ends)
        for batch in batches
        for at in range(batch.size.size)
        for ends in [decoder.ends(int(batch.flow_addresses[at]), int(batch.flow_ports[at]))]
    ]
    wanted = [b"four", b"GET / HTTP/1.1\r\n", b"six", b"options"]
    assert [payload for payload, _, _ in found] == wanted
    assert [head for _, head, _ in found] == wanted
    four, six = (PHONE, ROBOT), (PHONE6, ROBOT6)
    assert [ends for _, _, ends in found] == [four, four, six, four]
    assert decoder.other == {1: 1}


def test_pcapdroid_says_which_app_a_packet_is_of(tmp_path: Path) -> None:
    trailer = struct.pack(">II20sI", 0x01072021, 10_222, b"Explore", 0)
    packet = ethernet(udp(PHONE, ROBOT, b"app")) + trailer
    found = report_capture(write(tmp_path, pcap([(START_NS, packet)], 1)))
    assert found.document()["apps"] == ["Explore"]
    assert found.document()["udp_packets"] == 1


def test_gzip_and_standard_input_are_read_like_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = gzip.compress(pcap(traffic()))
    path = write(tmp_path, data, "some.pcap.gz")
    expected = [(START_NS + at * 1000, payload) for at, payload in enumerate(PAYLOADS)]
    assert read(path)[0] == expected
    with path.open("rb") as pipe:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(pipe))
        assert read("-")[0] == expected


def test_standard_input_that_is_a_terminal_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(BadRequestError, match="no capture on standard input"):
        open_capture("-")


def test_a_missing_file_is_refused_with_its_name(tmp_path: Path) -> None:
    with pytest.raises(BadRequestError, match=r"gone\.pcap"):
        open_capture(tmp_path / "gone.pcap")


# ---- damage -------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [b"", b"x", b"just some text, and more of it than a header"])
def test_what_is_no_capture_is_refused_in_words(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(NotACaptureError) as caught:
        read(write(tmp_path, data))
    assert "is not a capture" in str(caught.value)
    assert "pcapng" in caught.value.remedy


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_file_cut_anywhere_gives_every_whole_packet(
    tmp_path: Path, make: Callable[..., bytes]
) -> None:
    data = make(traffic())
    whole = [len(make(traffic()[:count])) for count in range(4)]
    for cut in range(whole[0], len(data)):
        found, warnings = read(write(tmp_path, data[:cut]))
        count = sum(cut >= size for size in whole) - 1
        assert len(found) == count
        assert bool(warnings) == (cut not in whole)


def test_a_cut_gzip_gives_what_came_before(tmp_path: Path) -> None:
    data = gzip.compress(pcap(traffic() * 500))
    found, warnings = read(write(tmp_path, data[: len(data) // 2]))
    assert 0 < len(found) < 1500
    assert "compressed file is damaged" in warnings[0]


@pytest.mark.parametrize("claim", [0xFFFF_FFFF, 0x7FFF_FFFF, 3 << 20])
def test_a_length_that_lies_ends_the_reading_with_a_warning(tmp_path: Path, claim: int) -> None:
    lie = struct.pack("<IIII", 1, 1, claim, claim) + b"x" * 400
    found, warnings = read(write(tmp_path, pcap(traffic()) + lie))
    assert len(found) == 3
    assert f"{claim:,} bytes" in warnings[0]


@pytest.mark.parametrize("lie", [0, 8, 13, 0xFFFF_FFF0])
def test_a_block_that_lies_ends_the_reading_with_a_warning(tmp_path: Path, lie: int) -> None:
    bad = struct.pack("<III", 6, lie, 0) + b"x" * 400
    found, warnings = read(write(tmp_path, pcapng(traffic()) + bad))
    assert len(found) == 3
    assert "block" in warnings[0]


def test_two_lengths_that_differ_end_the_reading(tmp_path: Path) -> None:
    data = bytearray(pcapng(traffic()))
    data[-4] ^= 4
    found, warnings = read(write(tmp_path, bytes(data)))
    assert len(found) == 2
    assert "two lengths differ" in warnings[0]


def test_packets_of_an_interface_nobody_described_are_left_out(tmp_path: Path) -> None:
    packet = udp(PHONE, ROBOT, b"who")
    data = section() + interface(101) + enhanced(1, packet, number=7) + enhanced(2, packet)
    found, warnings = read(write(tmp_path, data))
    assert len(found) == 1
    assert "1 packets of interfaces" in warnings[0]


def test_a_section_without_byte_order_ends_the_reading(tmp_path: Path) -> None:
    data = pcapng(traffic()) + struct.pack("<III", 0x0A0D0D0A, 28, 0) + bytes(16)
    found, warnings = read(write(tmp_path, data))
    assert len(found) == 3
    assert "byte order" in warnings[0]


def test_links_rote_does_not_know_are_counted_and_said(tmp_path: Path) -> None:
    found = report_capture(write(tmp_path, pcap(traffic(), 147)))
    assert found.document()["packets"] == 3
    assert found.document()["not_ip"] == 3
    assert any("linktype 147" in words for words in found.warnings)


def test_packets_that_the_capture_cut_off_are_counted_whole(tmp_path: Path) -> None:
    packets = [(START_NS, udp(PHONE, ROBOT, record(9, 300)))]
    found = report_capture(write(tmp_path, pcap(packets, cut=60))).document()
    assert found["dtls_records"] == 1
    assert found["flows"][0]["bytes"] == 28 + 313


# ---- the chain ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [pcap, pcapng])
@pytest.mark.parametrize("order", ["<", ">"])
def test_lanes_find_the_same_records_as_the_loop(
    tmp_path: Path, make: Callable[..., bytes], order: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = [(at * 37) % 900 for at in range(6000)]
    packets = [
        (START_NS + at * 10**6, udp(PHONE, ROBOT, bytes(size))) for at, size in enumerate(sizes)
    ]
    path = write(tmp_path, make(packets, order=order))
    walked = []
    lanes = chain._walk_in_lanes

    def watched(*arguments: object) -> chain.RecordChain | None:
        walked.append(lanes(*arguments))  # type: ignore[arg-type]
        return walked[-1]

    monkeypatch.setattr(chain, "_walk_in_lanes", watched)
    quick, _ = read(path)
    assert any(found is not None for found in walked), "the lanes were not even tried"
    monkeypatch.setattr(chain, "MIN_BYTES_FOR_LANES", 1 << 60)
    assert quick == read(path)[0]
    assert [len(payload) for _, payload in quick] == sizes


@pytest.mark.parametrize("claim", [0, 8, 100, 70_000, 0xFFFF_FFFF])
@pytest.mark.parametrize(("make", "length_at"), [(pcap, 8), (pcapng, 4)])
def test_a_length_that_lies_leads_the_lanes_to_what_the_loop_finds(
    tmp_path: Path,
    make: Callable[..., bytes],
    length_at: int,
    claim: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packets = [(START_NS + at * 1000, udp(PHONE, ROBOT, bytes(272))) for at in range(4000)]
    data = bytearray(make(packets))
    each = (len(data) - len(make([]))) // len(packets)
    places = [len(make([])) + number * each for number in (1700, len(packets) - 1)]
    for number, at in enumerate(places):
        broken = data.copy()
        struct.pack_into("<I", broken, at + length_at, claim)
        path = write(tmp_path, bytes(broken), f"{number}.pcap")
        quick = read(path)
        with monkeypatch.context() as patch:
            patch.setattr(chain, "MIN_BYTES_FOR_LANES", 1 << 60)
            assert quick == read(path)


def test_a_block_that_claims_nothing_ends_the_lanes_though_the_next_one_follows() -> None:
    blocks = np.tile(np.array((6, 12, 12), "<u4"), 100_000)
    blocks[3 * 50_000 + 1] = 0
    data = np.append(blocks.view(np.uint8), np.zeros(chain.GUARD, np.uint8))

    def guess(_: chain.Bytes, first: int, distance: int, places: int, __: int) -> chain.Ints:
        return (first + distance * np.arange(places)) // 12 * 12

    layout = chain.RecordLayout("<", 4, 0, 12, 1 << 24)
    found = chain.walk_records(data, blocks.nbytes, layout, guess)
    assert found.offsets.size == 50_000
    assert found.broken


def test_a_capture_inside_a_capture_does_not_mislead_the_lanes(tmp_path: Path) -> None:
    inner = pcap([(START_NS, udp(PHONE, ROBOT, bytes(40)))] * 400)
    packets = [(START_NS + at, udp(PHONE, ROBOT, inner[at : at + 20_000])) for at in range(100)]
    found, warnings = read(write(tmp_path, pcap(packets)))
    assert [payload for _, payload in found] == [inner[at : at + 20_000] for at in range(100)]
    assert warnings == []


@given(st.lists(st.integers(0, 60), max_size=40), st.integers(0, 30))
def test_the_loop_ends_at_the_last_whole_record(sizes: list[int], cut: int) -> None:
    parts = [struct.pack("<IIII", 0, 0, size, size) + bytes(size) for size in sizes]
    joined = b"".join(parts)
    end = max(0, len(joined) - cut)
    data = np.frombuffer(joined[:end] + bytes(chain.GUARD), np.uint8)
    layout = chain.RecordLayout("<", 8, 16, 16, 1 << 20)
    found = chain.walk_records(data, end, layout, lambda *_: np.zeros(0, np.int64))
    starts = np.cumsum([0, *map(len, parts)])
    assert found.offsets.tolist() == [at for at, stop in pairwise(starts) if stop <= end]
    assert not found.broken


def test_a_window_smaller_than_a_block_grows_to_hold_it(tmp_path: Path) -> None:
    packets = [(START_NS, udp(PHONE, ROBOT, bytes(40_000)))] * 3
    path = write(tmp_path, pcapng(packets))
    with path.open("rb") as file, Capture(file, "small window", window=4096) as capture:
        analysis = Analysis().run(capture)
    assert analysis.udp == 3


# ---- beside tshark ------------------------------------------------------------------------------

needs_tshark = pytest.mark.skipif(
    shutil.which("tshark") is None, reason="tshark is not installed: apt install tshark"
)


def tshark(path: Path, *fields: str, only: str = "") -> list[list[str]]:
    command = ["tshark", "-r", str(path), "-T", "fields", "-E", "occurrence=a"]
    command += ["--enable-heuristic", "rtp_udp", *(("-Y", only) if only else ())]
    for field in fields:
        command += ["-e", field]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=50)
    return [line.split("\t") for line in done.stdout.splitlines()]


def mixture(six: bool = False) -> list[tuple[int, bytes]]:
    ends = (PHONE6, ROBOT6) if six else (PHONE, ROBOT)
    packets = [(START_NS + at * 10**6, udp(*ends, record(at, 44))) for at in range(20)]
    packets += [(START_NS + at * 10**6, udp(*ends, check(at))) for at in range(20, 25)]
    packets += [
        (START_NS + at * 10**6, udp(*ends[::-1], check(at, answer=True))) for at in range(3)
    ]
    if not six:
        packets.append((START_NS, tcp(PHONE, ROBOT, b"POST /con_notify HTTP/1.1\r\n\r\n")))
    return packets


@pytest.mark.slow
@needs_tshark
@pytest.mark.each_once("link", "make")
@pytest.mark.parametrize("link", TSHARK_LINKS)
@pytest.mark.parametrize("make", [pcap, pcapng])
def test_tshark_sees_the_same_packets_flows_records_and_checks(
    tmp_path: Path, link: int, make: Callable[..., bytes]
) -> None:
    packets = [(at, LINKS[link](packet)) for at, packet in mixture(six=link == 229)]
    path = write(tmp_path, make(packets, link))
    ours = report_capture(path).document()
    # One run for all, because to start takes tshark far longer than to read these packets.
    wanted = ("udp.srcport", "udp.dstport", "frame.time_epoch", "frame.protocols")
    rows = tshark(path, *wanted, "stun.type", "dtls.record.sequence_number")
    stuns, records = (
        [row for row in rows if protocol in row[3].split(":")] for protocol in ("stun", "dtls")
    )
    datagrams_ = [row for row in rows if row[0]]
    assert ours["packets"] == len(rows)
    assert ours["udp_packets"] == len(datagrams_)
    assert ours["stun_packets"] == len(stuns)
    assert ours["dtls_records"] == sum(len(row[5].split(",")) for row in records)
    pairs = {frozenset(row[:2]) for row in datagrams_}
    assert len([flow for flow in ours["flows"] if flow["protocol"] == "udp"]) == len(pairs)
    first = min(float(row[2]) for row in rows)
    assert abs(first - START_NS / 1e9) < 1e-5
    (flow,) = [flow for flow in ours["flows"] if flow["protocol"] == "udp"]
    types = [row[4] for row in stuns]
    assert flow["stun"]["messages"] == {
        "binding request": types.count("0x0001"),
        "binding success": types.count("0x0101"),
    }


@pytest.mark.slow
@needs_tshark
def test_tshark_reads_the_same_fields_of_a_handshake(tmp_path: Path) -> None:
    from rote.capture.synthetic.build import make

    path = tmp_path / "made.pcapng"
    make(path, "webrtc")
    (flow,) = report_capture(path).document()["flows"]
    suite = tshark(path, "dtls.handshake.ciphersuite", only="dtls.handshake.type == 2")
    assert suite[0][0].lower() in ("0xcca9", "52393")
    assert flow["dtls"]["cipher_suite"] == "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"
    numbers = tshark(path, "dtls.record.sequence_number", only="dtls")
    count = sum(len(row[0].split(",")) for row in numbers)
    assert count == sum(track["records"] for track in flow["dtls"]["tracks"])
