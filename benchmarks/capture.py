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
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.capture_file import write
from benchmarks.table import Row, take_turns

COUNT, SMALL = 1_000_000, 28_614
ROUNDS = 3
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
import rote.capture.read.pcap_format, rote.wire.teaching.codec
from rote.capture.report.report import report
start = time.process_time()
report(sys.argv[1]).document()
print(time.process_time() - start)
"""


class Run(NamedTuple):
    """What a process took."""

    cpu_s: float
    wall_s: float
    peak_mb: float


def _environment() -> dict[str, str]:
    """Let Python keep compiled modules, as an installation does, but outside the source."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return kept | {"PYTHONPYCACHEPREFIX": str(Path(tempfile.gettempdir(), "rote-benchmark-pyc"))}


def run_process(command: list[str]) -> Run:
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_environment()
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{command[0]} ended with {process.returncode}")
    wall_s = time.perf_counter() - start
    return Run(used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024)


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
        print("dpkt is not installed: pip install dpkt", file=sys.stderr)
    if tshark := shutil.which("tshark"):
        before = run_process(ours(file))
        peer = run_process([tshark, "-q", "-z", "conv,udp", "-r", str(file)])
        after = run_process(ours(file))
        rate = 2 * COUNT / (before.cpu_s + after.cpu_s)
        whole = claim + ", whole command"
        rows.append(Row(whole, "/s", rate, COUNT / peer.cpu_s, "tshark", at_least=40))
    else:
        print("tshark is not installed: apt install tshark", file=sys.stderr)
    return rows


def small_beside_tshark(file: Path) -> list[Row]:
    """Compare whole commands on a small file, start-up included, in turns."""
    tshark = shutil.which("tshark")
    if tshark is None:
        return []
    theirs = [tshark, "-q", "-z", "conv,udp", "-r", str(file)]
    times = [(run_process(ours(file)), run_process(theirs)) for _ in range(2 * ROUNDS + 1)]
    mine, peer = (median(run.cpu_s for run in side) for side in zip(*times, strict=True))
    claim = f"capture: {SMALL:,} packets, whole command"
    return [Row(claim, "s", mine, peer, "tshark", at_most=0.5)]


def middle(rounds: int, work: Callable[[], Run]) -> Run:
    taken = [work() for _ in range(rounds)]
    return Run(*(median(values) for values in zip(*taken, strict=True)))


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        big, small = Path(folder, "big.pcap"), Path(folder, "small.pcap")
        write(big, COUNT)
        write(small, SMALL)
        run_process(ours(small))
        rows = beside_peers(big)
        mine = middle(ROUNDS, lambda: run_process(ours(big)))
        size_mb = big.stat().st_size / 1e6
        stream = middle(ROUNDS, lambda: run_process(ours(big, "--stream")))
        little = middle(ROUNDS, lambda: run_process(ours(small)))
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
