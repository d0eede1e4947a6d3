"""Damaged captures: no exception of ours escapes, and none takes long."""

import random
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from capture.capture_files import (
    LINKS,
    PHONE,
    ROBOT,
    ip4,
    pcap,
    pcapng,
    phone_side,
    udp_part,
    write,
)
from rote.capture.report.explain import explain
from rote.capture.report.html import render_page
from rote.capture.report.report import report_capture
from rote.capture.synthetic.build import make
from rote.errors import RoteError

LIMIT_S = 2.0


def seeds(folder: Path) -> list[bytes]:
    """Return sound captures of all kinds, to be damaged."""
    phone = phone_side(150)
    part = udp_part(PHONE, ROBOT, bytes(600))
    pieces = [
        (at, ip4(PHONE[0], ROBOT[0], 17, part[at : at + 256], fragment=at // 8 | 0x2000))
        for at in range(0, 512, 256)
    ]
    found = [make_(phone + pieces, 101) for make_ in (pcap, pcapng)]
    found += [pcap([(at, LINKS[link](one)) for at, one in phone[:40]], link) for link in LINKS]
    for kind in ("webrtc", "frames", "a1"):
        for ending in ("pcap", "pcapng"):
            path = folder / f"{kind}.{ending}"
            make(path, kind)
            found.append(path.read_bytes()[:20_000])
    return found


def damaged(data: bytes, rng: random.Random) -> bytes:
    """Return `data` with a few bytes changed, pieces moved, cut out or repeated."""
    changed = bytearray(data)
    for _ in range(rng.randint(1, 8)):
        size = len(changed)
        at = rng.randrange(max(1, size))
        match rng.randrange(6):
            case 0:
                changed[at : at + 1] = bytes((rng.randrange(256),))
            case 1:
                changed[at : at + 4] = rng.choice(
                    (b"\xff\xff\xff\xff", bytes(4), b"\x00\x00\x00\x7f", b"\x01\x00\x00\x00")
                )
            case 2:
                del changed[at : at + rng.randrange(200)]
            case 3:
                changed[at:at] = changed[: rng.randrange(200)]
            case 4:
                changed = changed[: rng.randrange(size + 1)]
            case _:
                changed[at : at + 40] = rng.randbytes(40)
    return bytes(changed)


def campaign(folder: Path, count: int, wanted: Callable[[int], bool]) -> None:
    sound = seeds(folder)
    rng = random.Random(20260126)
    path = folder / "damaged.pcap"
    read = 0
    for number in range(count):
        data = damaged(rng.choice(sound), rng)
        write(folder, data, path.name)
        began = time.perf_counter()
        try:
            found = report_capture(path, stream=wanted(number))
            found.document()
            if number % 10 == 0:
                render_page(found)
                explain(found).document()
            read += 1
        except RoteError as error:
            refused = error.remedy
        else:
            refused = "read"
        assert refused, "a refusal without a word on what to do"
        assert time.perf_counter() - began < LIMIT_S, f"file {number} takes too long"
    assert read > count // 2, "hardly any damaged file was read at all"


@pytest.mark.timeout(60)
def test_damaged_captures_are_read_or_refused(tmp_path: Path) -> None:
    campaign(tmp_path, 120, wanted=lambda number: number % 2 == 0)


@pytest.mark.soak
def test_a_hundred_thousand_damaged_captures_are_read_or_refused(tmp_path: Path) -> None:
    campaign(tmp_path, 100_000, wanted=lambda number: number % 2 == 0)
    peak = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    assert int(peak[1]) < 500_000, "of all of them together, and of the tests around"
