"""Claim: ten minutes at 500 Hz can be edited, checked and compared in bounded memory.

29 joints that all swing, with what a sensor adds; each in a process of its own, whose processor
time and greatest memory are measured. A tenth of the take's length is 60 s. Two such takes are made
before where two are asked for; making and reading them is not counted as time, but as memory.
"""

import json
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from benchmarks.process import run_process
from benchmarks.size import SHORT, size
from benchmarks.table import Row
from rote.model.g1 import G1_29, G1_REST_RAD
from rote.motion import files
from rote.motion.check.rules import check
from rote.motion.compare import compare
from rote.motion.edit.table import EDITS
from rote.motion.track import Track

SECONDS, RATE_HZ = size((600.0, 500.0), (1.0, 100.0))
MAX_MB = 1000.0
WORK = (
    "read", "write", "check", "compare", "average", "retime", "retime, fastest", "smooth",
    "resample", "trim", "cross_fade", "blend", "layer", "mirror",
)  # fmt: skip
VALUES: dict[str, dict[str, object]] = {
    "resample": {"rate_hz": 400.0},
    "trim": {"auto": True},
    "layer": {"joints": ["left_arm"]},
}


def long_take(shift_s: float = 0.0) -> Track:
    """Return joints that all swing, each at its own pace."""
    times_s = np.arange(round(SECONDS * RATE_HZ) + 1) / RATE_HZ
    chance = np.random.default_rng(round(1000 * shift_s) + 1)
    values = chance.normal(0.0, 5e-4, (times_s.size, len(G1_29.names)))
    moved_s = times_s + shift_s * np.sin(times_s / 7)
    for column, hz in enumerate(np.linspace(0.1, 0.4, len(G1_29.names))):
        values[:, column] += G1_REST_RAD[column] + 0.1 * np.sin(2 * np.pi * hz * moved_s)
    values.setflags(write=False)
    return Track(times_s=times_s, joints_rad=values, names=G1_29.names)


def work(what: str, folder: Path) -> float:
    """Do one thing with a long take; return its processor time in seconds."""
    if what == "read":
        start = time.process_time()
        files.load(folder / "take.mcap")
    else:
        track = long_take()
        name = what.partition(",")[0]
        edit = EDITS.get(name)
        several = what == "compare" or (edit is not None and edit.tracks != 1)
        tracks = [track, long_take(0.1)] if several else [track]
        start = time.process_time()
        if what == "write":
            files.save(track, folder / "take.mcap")
        elif what == "check":
            check(track)
        elif what == "compare":
            compare(tracks[0], tracks[1])
        else:
            values = {"fastest": True} if what.endswith("fastest") else VALUES.get(name, {})
            EDITS[name].apply(tracks, values)
    return time.process_time() - start


def measure(what: str, folder: str) -> tuple[float, float]:
    """Return processor time in seconds and peak memory in MB of one piece of work.

    It is done in a process of its own; in a short run only the first is.
    """
    if SHORT and what != WORK[0]:
        return work(what, Path(folder)), 0.0
    done = run_process([sys.executable, "-m", "benchmarks.long_takes", what, folder])
    return json.loads(done.printed), done.peak_mb


def run() -> list[Row]:
    rows = []
    with TemporaryDirectory() as folder:
        files.save(long_take(), Path(folder) / "take.mcap")
        for what in WORK:
            took_s, most_mb = measure(what, folder)
            name = f"10 min at 500 Hz: {what.replace('_', '-')}"
            rows.append(Row(name, "s", took_s, SECONDS / 10, "limit", at_most=1))
            rows.append(Row(f"{name}, memory", "MB", most_mb, MAX_MB, "limit", at_most=1))
    return rows


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], Path(sys.argv[2]))))
