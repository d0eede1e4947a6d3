"""Claim: a batch uses both cores, repeats nothing, and needs no more memory for more files.

Made motions of one second are checked, with contact, by `rote batch check` in a process of its own:
a tenth of them with one worker and with two, then all of them with two, and once more. The time for
a hundred thousand is the time for all of them, multiplied; it was not measured.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks.process import run_process
from benchmarks.size import size
from benchmarks.table import Row
from rote.model.g1 import G1_29
from rote.motion.files import save
from rote.motion.track import Track

FILES = size(10_000, 20)
SECONDS, RATE_HZ = 1.0, 50.0
LARGEST_BATCH = 100_000
MAX_HOURS = 12.0
MAX_MB_MORE = 30.0


class _Run(NamedTuple):
    """What a batch printed, and its greatest memory, that of its workers included."""

    answer: dict[str, Any]
    peak_mb: float

    @property
    def files_per_s(self) -> float:
        return float(self.answer["processed"] / self.answer["took_s"])


def make_files(folder: Path, count: int) -> None:
    """Write motions that all differ."""
    times_s = np.arange(0.0, SECONDS, 1 / RATE_HZ)
    chance = np.random.default_rng(1)
    for number in range(count):
        peaks_rad = chance.uniform(-0.1, 0.1, len(G1_29.taught))
        swing = np.sin(np.pi * times_s / SECONDS) ** 2
        track = Track(times_s=times_s, joints_rad=swing[:, None] * peaks_rad, names=G1_29.taught)
        (folder / f"{number // 1000:03}").mkdir(exist_ok=True)
        save(track, folder / f"{number // 1000:03}" / f"{number:06}.npz")


def check_files(source: Path, out: Path, workers: int) -> _Run:
    """Run `rote batch check`."""
    command = [sys.executable, "-m", "rote", "batch", "check", str(source), "--out", str(out)]
    done = run_process([*command, "--workers", str(workers), "--json"])
    return _Run(json.loads(done.printed), done.peak_mb)


def run() -> list[Row]:
    with TemporaryDirectory() as name:
        folder = Path(name)
        few, all_files = folder / "few", folder / "all"
        few.mkdir()
        all_files.mkdir()
        make_files(few, FILES // 10)
        make_files(all_files, FILES)
        one = check_files(few, folder / "one", 1)
        two = check_files(few, folder / "two", 2)
        whole = check_files(all_files, folder / "whole", 2)
        again = check_files(all_files, folder / "whole", 2)
    hours = LARGEST_BATCH / whole.files_per_s / 3600
    return [
        Row(
            "batch: two workers",
            "files/s",
            two.files_per_s,
            one.files_per_s,
            "one worker",
            at_least=1.8,
        ),
        Row(
            f"batch: {FILES:,} files",
            "files/s",
            whole.files_per_s,
            two.files_per_s,
            "a tenth of them",
            at_least=0.9,
        ),
        Row(
            "batch: files repeated by a second run",
            "files",
            again.answer["processed"],
            0.0,
            "limit",
            at_most=1,
        ),
        Row(
            f"batch: memory for {FILES:,} files beyond that for a tenth",
            "MB",
            whole.peak_mb - two.peak_mb,
            MAX_MB_MORE,
            "limit",
            at_most=1,
        ),
        Row("batch: 100,000 files, extrapolated", "h", hours, MAX_HOURS, "limit", at_most=1),
    ]
