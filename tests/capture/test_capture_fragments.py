"""Packets in pieces: put together, or refused as a whole."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capture.capture_files import (
    PHONE,
    PHONE6,
    ROBOT,
    ROBOT6,
    START_NS,
    ip4,
    ip6,
    pcap,
    record,
    udp_part,
    write,
)
from rote.capture.read.fragments import Piece, Reassembly
from rote.capture.report.report import report_capture

MORE = 0x2000


def pieces(payload: bytes, size: int, number: int = 7) -> list[bytes]:
    """Return the IP packets that carry one datagram in pieces of `size` bytes."""
    part = udp_part(PHONE, ROBOT, payload)
    return [
        ip4(
            PHONE[0],
            ROBOT[0],
            17,
            part[at : at + size],
            fragment=at // 8 | (MORE if at + size < len(part) else 0),
            number=number,
        )
        for at in range(0, len(part), size)
    ]


def look(tmp_path: Path, packets: list[bytes]) -> dict[str, object]:
    timed = [(START_NS + at, packet) for at, packet in enumerate(packets)]
    return report_capture(write(tmp_path, pcap(timed))).document()


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_pieces_in_any_order_become_one_datagram(tmp_path: Path, order: tuple[int, ...]) -> None:
    parts = pieces(record(5, 600), 256)
    found = look(tmp_path, [parts[index] for index in order])
    assert (found["packets"], found["udp_packets"], found["dtls_records"]) == (3, 1, 1)
    assert found["fragments"] == {"pieces": 3, "whole": 1, "refused": 0, "unfinished": 0}


def test_pieces_of_ipv6_become_one_datagram(tmp_path: Path) -> None:
    part = udp_part(PHONE6, ROBOT6, record(5, 600))
    packets = []
    for at in range(0, len(part), 304):
        more = at + 304 < len(part)
        head = bytes((17, 0)) + (at | more).to_bytes(2) + b"\0\0\0\x09"
        packets.append(ip6(PHONE6[0], ROBOT6[0], 44, head + part[at : at + 304]))
    found = look(tmp_path, packets)
    assert (found["udp_packets"], found["dtls_records"]) == (1, 1)


def test_an_ipv6_packet_in_one_piece_is_no_fragment(tmp_path: Path) -> None:
    head = bytes((17, 0)) + bytes(2) + b"\0\0\0\x09"
    part = udp_part(PHONE6, ROBOT6, record(5, 20))
    found = look(tmp_path, [ip6(PHONE6[0], ROBOT6[0], 44, head + part)])
    assert (found["udp_packets"], found["dtls_records"]) == (1, 1)
    assert found["fragments"]["pieces"] == 0  # type: ignore[index]


def test_overlapping_pieces_are_refused_and_said(tmp_path: Path) -> None:
    parts = pieces(record(5, 600), 256)
    overlap = ip4(PHONE[0], ROBOT[0], 17, bytes(256), fragment=MORE | 8, number=7)
    found = look(tmp_path, [parts[0], overlap, *parts[1:]])
    assert found["udp_packets"] == 0
    assert found["fragments"]["refused"] == 1  # type: ignore[index]
    assert any("overlap" in words for words in found["warnings"])  # type: ignore[attr-defined]


def test_the_same_piece_twice_is_no_overlap(tmp_path: Path) -> None:
    parts = pieces(record(5, 600), 256)
    assert look(tmp_path, [parts[0], parts[0], *parts[1:]])["dtls_records"] == 1


def test_missing_pieces_are_said(tmp_path: Path) -> None:
    found = look(tmp_path, pieces(record(5, 600), 256)[:2])
    assert found["udp_packets"] == 0
    assert found["fragments"]["unfinished"] == 1  # type: ignore[index]


def piece(offset: int, size: int, *, more: bool, number: int = 0) -> Piece:
    head = ip4(PHONE[0], ROBOT[0], 17, b"")
    return Piece((number,), offset, more, head, bytes(size))


@pytest.mark.parametrize(
    "parts",
    [
        [piece(0, 16, more=True), piece(8, 16, more=False)],
        [piece(16, 16, more=False), piece(40, 8, more=True)],
        [piece(16, 16, more=False), piece(0, 8, more=True), piece(24, 16, more=False)],
        [piece(32, 8, more=True), piece(0, 16, more=False)],
        [piece(0, 13, more=True)],
        [piece(65_528, 16, more=False)],
        [piece(0, 0, more=True)],
    ],
)
def test_pieces_that_contradict_each_other_are_refused(parts: list[Piece]) -> None:
    reassembly = Reassembly()
    assert [reassembly.add(part) for part in parts] == [None] * len(parts)
    assert reassembly.refused == 1
    assert reassembly.unfinished == 0


def test_unfinished_packets_do_not_pile_up() -> None:
    reassembly = Reassembly()
    for number in range(10_000):
        reassembly.add(piece(0, 8, more=True, number=number))
    assert len(reassembly._incomplete) <= 256
    assert reassembly.unfinished == 10_000


@given(st.binary(min_size=1, max_size=400), st.integers(1, 12), st.randoms())
def test_whatever_the_cut_and_the_order_the_whole_comes_back(
    body: bytes, words: int, rng: object
) -> None:
    size = words * 8
    head = ip4(PHONE[0], ROBOT[0], 17, b"")
    parts = [
        Piece((), at, at + size < len(body), head, body[at : at + size])
        for at in range(0, len(body), size)
    ]
    rng.shuffle(parts)  # type: ignore[attr-defined]
    reassembly = Reassembly()
    *before, last = [reassembly.add(part) for part in parts]
    assert not any(before)
    assert last is not None
    assert last[20:] == body
    assert int.from_bytes(last[2:4]) == len(last)
