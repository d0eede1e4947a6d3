"""Damaged files of every kind into the importers: a clear error or a sound track, and soon."""

import random
import resource
import time
from pathlib import Path

import numpy as np
import pytest

from motion.exchange_files import MADE, whole_body
from rote.errors import RoteError
from rote.motion.files.exchange import import_motion

SAMPLE = 60
CAMPAIGN = 10_000
MAX_CPU_S = 2.0
MAX_BYTES = 500 * 2**20


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Return a file with something wrong: bytes, numbers, lengths, pieces, or its end."""
    bad = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 8))):
        kind = dice.randrange(8)
        at = dice.randrange(len(bad)) if bad else 0
        if kind == 0 and bad:
            bad[at] = dice.randrange(256)
        elif kind == 1:
            del bad[at:]
        elif kind == 2:
            bad[at:at] = dice.randbytes(dice.choice((1, 4, 300)))
        elif kind == 3:
            del bad[at : at + dice.choice((1, 2, 8, 500))]
        elif kind == 4:
            odd = (
                b"nan",
                b"inf",
                b"-1e308",
                b"1e999",
                b"9" * 400,
                b",,",
                b"\n\n",
                b"[",
                b"]",
                b"- ",
            )
            bad[at : at + 3] = dice.choice(odd)
        elif kind == 5:
            bad[at : at + 4] = dice.choice((b"\xff\xff\xff\xff", b"\0\0\0\x7f", b"\0\0\0\0"))
        elif kind == 6:
            piece = bytes(bad[at : at + dice.choice((10, 1000))])
            bad[at:at] = piece * dice.choice((1, 3))
        elif bad:  # the beginning, where headers and directories of pickles are
            bad[dice.randrange(min(len(bad), 200))] = dice.randrange(256)
    return bytes(bad)


def fuzz(name: str, count: int, folder: Path) -> tuple[int, int]:
    """Import so many damaged files; return how many were refused, and how many came in."""
    ending, make = MADE[name]
    good = make(whole_body(20))
    dice = random.Random(f"{name} {count}")
    path = folder / f"file.{ending}"
    refused = came_in = 0
    for number in range(count):
        path.write_bytes(damaged(good, dice))
        began_s = time.process_time()
        try:
            found = import_motion(path, name if number % 3 else None)
        except RoteError as error:
            refused += bool(str(error))
        else:
            came_in += 1
            assert np.isfinite(found.track.joints_rad).all()
            assert len(found.track) >= 2
            assert found.track.rate_hz >= 1
        assert time.process_time() - began_s < MAX_CPU_S
    assert refused + came_in == count, "an error says what is wrong"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MAX_BYTES or count < CAMPAIGN
    return refused, came_in


@pytest.mark.parametrize("name", MADE)
def test_damaged_files_are_refused_with_a_clear_error(name: str, tmp_path: Path) -> None:
    refused, _ = fuzz(name, SAMPLE, tmp_path)
    assert refused > SAMPLE // 4


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", MADE)
def test_ten_thousand_damaged_files_of_each_kind(name: str, tmp_path: Path) -> None:
    refused, came_in = fuzz(name, CAMPAIGN, tmp_path)
    assert refused > CAMPAIGN // 4
    print(f"{name}: {refused} refused, {came_in} came in")


def test_a_file_that_promises_more_than_it_holds_takes_no_memory(tmp_path: Path) -> None:
    huge = b"\x80\x04\x8e" + (2**40).to_bytes(8, "little") + b"x."
    (tmp_path / "huge.pkl").write_bytes(huge)
    with pytest.raises(RoteError, match="ends in the middle"):
        import_motion(tmp_path / "huge.pkl", "gmr")


def test_a_pickle_that_doubles_itself_is_refused_before_it_fills_the_memory(tmp_path: Path) -> None:
    # A list of 1000 references to a list of 1000 references to a list of 1000: 10^9 numbers.
    once = b"](" + b"K\x01" * 1000 + b"eq\x00"
    twice = b"](" + b"h\x00" * 1000 + b"eq\x01"
    thrice = b"](" + b"h\x01" * 1000 + b"e"
    body = once + b"0" + twice + b"0" + b"}(X\x07\0\0\0dof_pos" + thrice
    names = b"X\x03\0\0\0fpsK\x1eX\x08\0\0\0root_posK\x01X\x08\0\0\0root_rotK\x01"
    (tmp_path / "bomb.pkl").write_bytes(b"\x80\x02" + body + names + b"u.")
    began_s = time.process_time()
    with pytest.raises(RoteError):
        import_motion(tmp_path / "bomb.pkl", "gmr")
    assert time.process_time() - began_s < MAX_CPU_S
