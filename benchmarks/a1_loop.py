"""Claim: a LoopFunc in Python keeps 500 Hz as well as a C loop on a timer does, under load.

Both loops run at the same time, for ten seconds, each burning 1 ms of every 2 ms as a control
function would. The C loop is the method of Unitree's library: `timerfd`, the function first, then
the wait. Both ask for real-time priority and go without where it is not permitted. The deviation is
of the time between two ticks from 2 ms. Neither is kept on a CPU: on a virtual machine whose CPUs
are taken away for milliseconds, a loop that cannot move to the other one misses more ticks.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

from benchmarks.c_program import compiled
from benchmarks.size import size
from benchmarks.table import Row
from rote.robot.quadruped.loop import LoopFunc

PERIOD_S, BURN_S, SECONDS = 0.002, 0.001, size(10.0, 0.3)
SOURCE = r"""
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int count, char **words) {
  double period = atof(words[1]), burn = atof(words[2]), seconds = atof(words[3]);
  struct sched_param priority = {.sched_priority = 60};
  int eager = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
  int fd = timerfd_create(CLOCK_MONOTONIC, 0);
  struct itimerspec every = {{0, (long)(period * 1e9)}, {0, (long)(period * 1e9)}};
  if (count != 4 || fd < 0 || timerfd_settime(fd, 0, &every, NULL) != 0) return 1;
  double *ticks = malloc((size_t)(seconds / period + 2) * sizeof *ticks);
  size_t n = 0;
  uint64_t expired;
  for (double begin = now(); now() - begin < seconds;) {
    double start = ticks[n++] = now();
    while (now() - start < burn) {}
    if (read(fd, &expired, sizeof expired) != sizeof expired) return 1;
  }
  printf("%d\n", eager);
  for (size_t i = 0; i < n; i++) printf("%.9f\n", ticks[i]);
  return 0;
}
"""


def burn() -> None:
    until = time.monotonic() + BURN_S
    while time.monotonic() < until:
        pass


def p99_us(ticks: list[float]) -> float:
    """Return the p99 deviation of the time between ticks."""
    off = [abs(later - earlier - PERIOD_S) for earlier, later in pairwise(ticks)]
    return statistics.quantiles(off, n=100)[98] * 1e6


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder), SOURCE)
        theirs = None
        if program is not None:
            command = [str(program), str(PERIOD_S), str(BURN_S), str(SECONDS)]
            theirs = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        ticks: list[float] = []

        def function() -> None:
            ticks.append(time.monotonic())
            burn()

        loop = LoopFunc("benchmark", PERIOD_S, function, realtime=True)
        with loop:
            time.sleep(SECONDS)
        stats = loop.stats()
        told = theirs.communicate()[0].split() if theirs is not None else []
    eager = "with" if loop.has_priority else "without"
    words = f"{stats.late} of {stats.ticks} ticks late, {max(0, len(told) - 1)} ticks in C"
    print(f"500 Hz loop {eager} real-time priority: {words}", file=sys.stderr)
    # The rate is to be within half a Hz; as a row, how far off it is.
    name = "a1: 500 Hz loop, 1 ms burnt each tick"
    off_hz = abs(stats.rate_hz - 1.0 / PERIOD_S)
    rows = [Row(f"{name}: rate off by", "Hz", off_hz, 0.5, "limit", at_most=1)]
    if told:
        c_us = p99_us([float(word) for word in told[1:]])
        rows.append(
            Row(f"{name}: p99 deviation", "us", p99_us(ticks), c_us, "C timerfd", at_most=1.2)
        )
    return rows
