"""Claim: `rote capture` reads 40 times the packets a second of tshark, 20 times those of dpkt, and
reports on a small file in half of tshark's time, in little memory.

All read the same file, in processor time, with our modules compiled as an installation has them.
tshark does its own job (`-q -z conv,udp`) and is
compared as a whole process, start-up included, with the whole command. dpkt is a library, so it is
compared with ours once both are loaded; it fills a table of flows with packets, bytes, times and
kinds, and a time line, which is the least of what our report has. What is not installed is left
out, and said so.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from benchmarks.capture_file import write
from benchmarks.peers import report_missing
from benchmarks.process import Run, run_process
from benchmarks.size import SHORT, size
from benchmarks.table import Row, take_turns

COUNT, SMALL = size((1_000_000, 28_614), (2_000, 500))
ROUNDS, SMALL_ROUNDS = size((3, 7), (1, 1))
_DPKT = """
import collections, dpkt, sys, time
start = time.process_time()
flows, moments = {}, collections.Counter()
with open(sys.argv[1], "rb") as file:
    for at, packet in dpkt.pcap.Reader(file):
        ip = dpkt.ip.IP(packet)
        part = ip.data
        if not isinstance(part, (dpkt.udp.UDP, dpkt.tcp.TCP)):
            continue
        data = part.data
        if data[1:3] == b"\\xfe\\xfd" and 20 <= data[0] <= 26:
            kind = "dtls"
        elif data[4:8] == b"\\x21\\x12\\xa4\\x42":
            kind = "stun"
        elif data and data[0] >> 6 == 2:
            kind = "rtp"
        else:
            kind = "other"
        row = flows.get((ip.src, ip.dst, part.sport, part.dport, ip.p))
        if row is None:
            row = flows[ip.src, ip.dst, part.sport, part.dport, ip.p] = [0, 0, at, at, {}]
        row[0] += 1
        row[1] += ip.len
        row[3] = at
        row[4][kind] = row[4].get(kind, 0) + 1
        moments[int(at), kind] += 1
print(time.process_time() - start)
"""
_OURS = """
import sys, time
import rote.capture.read.reader, rote.wire.teaching.codec
from rote.capture.report.report import report_capture
start = time.process_time()
report_capture(sys.argv[1]).document()
print(time.process_time() - start)
"""


def _environment() -> dict[str, str]:
    """Let Python keep compiled modules, as an installation does, but outside the source."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "rote-benchmark-pyc"))}


def run_command(command: list[str]) -> Run:
    return run_process(command, _environment())


def ours(file: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "rote", "capture", str(file), "--json", *more]


def loaded(code: str, file: Path) -> float:
    """Return how many packets a second a script reads, by its own clock."""
    command = [sys.executable, "-c", code, str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return COUNT / float(done.stdout)


def beside_peers(file: Path) -> list[Row]:
    claim, rows = "capture: packets of a file of a million", []
    if find_spec("dpkt"):
        rates = take_turns(
            ROUNDS, {"ours": lambda: loaded(_OURS, file), "dpkt": lambda: loaded(_DPKT, file)}
        )
        rows.append(Row(claim, "/s", rates["ours"], rates["dpkt"], "dpkt", at_least=20))
    else:
        report_missing("no dpkt: pip install dpkt")
    if tshark := shutil.which("tshark"):
        theirs = [tshark, "-q", "-z", "conv,udp", "-r", str(file)]
        whole, turns = claim + ", whole command", size(2, 1)
        times = [(run_command(ours(file)), run_command(theirs)) for _ in range(turns)]
        mine, peer = (median(run.cpu_s for run in side) for side in zip(*times, strict=True))
        rows.append(Row(whole, "/s", COUNT / mine, COUNT / peer, "tshark", at_least=40))
    else:
        report_missing("no tshark: apt install tshark")
    return rows


def small_beside_tshark(file: Path) -> list[Row]:
    """Compare whole commands on a small file, start-up included, in turns."""
    tshark = shutil.which("tshark")
    if tshark is None:
        return []
    theirs = [tshark, "-q", "-z", "conv,udp", "-r", str(file)]
    times = [(run_command(ours(file)), run_command(theirs)) for _ in range(SMALL_ROUNDS)]
    mine, peer = (median(run.cpu_s for run in side) for side in zip(*times, strict=True))
    claim = f"capture: {SMALL:,} packets, whole command"
    return [Row(claim, "s", mine, peer, "tshark", at_most=0.5)]


def median_run(rounds: int, work: Callable[[], Run]) -> Run:
    """Return the medians of several runs."""
    runs = [work() for _ in range(rounds)]
    cpu_s, wall_s, peak_mb = (
        median(values) for values in zip(*(run[:3] for run in runs), strict=True)
    )
    return Run(cpu_s, wall_s, peak_mb, "")


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        big, small = Path(folder, "big.pcap"), Path(folder, "small.pcap")
        write(big, COUNT)
        write(small, SMALL)
        if not SHORT:
            run_command(ours(small))  # Python compiles what it imports
        rows = beside_peers(big)
        mine = median_run(ROUNDS, lambda: run_command(ours(big)))
        size_mb = big.stat().st_size / 1e6
        stream = median_run(ROUNDS, lambda: run_command(ours(big, "--stream")))
        little = median_run(ROUNDS, lambda: run_command(ours(small)))
        claim = "capture: peak memory for that file"
        return [
            *rows,
            *small_beside_tshark(small),
            Row(claim, "MB", mine.peak_mb, 3 * size_mb, "limit, 3 x the file", at_most=1),
            Row(claim + ", --stream", "MB", stream.peak_mb, 300, "limit", at_most=1),
            Row(
                f"capture: report on {SMALL:,} packets", "s", little.wall_s, 1.0, "limit", at_most=1
            ),
        ]
