"""Runs a command and measures its processor time, its duration and its peak memory.

The kernel counts what a process had before `exec` as part of its peak (`ru_maxrss`), so a child of
a large process starts with that process's memory. Therefore the command is started by this file as
a small program of its own: `python -I -S process.py COMMAND...` prints what the command took.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import NamedTuple


class Run(NamedTuple):
    """What a process took, and what it printed on standard output."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    """Greatest resident memory, in 2^20 bytes."""
    printed: str


def run_process(command: list[str], environment: Mapping[str, str] | None = None) -> Run:
    """Run a command to its end; raises `RuntimeError` if it fails."""
    done = subprocess.run(
        [sys.executable, "-I", "-S", __file__, *command],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    measured = done.stderr.splitlines()[-1:]
    if done.returncode or not measured:
        raise RuntimeError(f"{command[0]} ended with {done.returncode}: {done.stderr[-500:]}")
    cpu_s, wall_s, peak_mb = json.loads(measured[0])
    return Run(cpu_s, wall_s, peak_mb, done.stdout)


def main() -> int:
    """Run the command of the arguments; print the measurements on standard error."""
    start_s = time.perf_counter()
    child = subprocess.Popen(sys.argv[1:])
    _, status, used = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    wall_s = time.perf_counter() - start_s
    measured = [used.ru_utime + used.ru_stime, wall_s, used.ru_maxrss / 1024]
    print(json.dumps(measured), file=sys.stderr)
    return child.returncode


if __name__ == "__main__":
    sys.exit(main())
