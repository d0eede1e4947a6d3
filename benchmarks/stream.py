"""Claim: streaming a prepared track at 500 Hz costs little more than a timer that sends as often.

A track of 10 s for both arms goes over UDP on this machine to the simulated robot, which runs in a
process of its own, does its physics, and reports its state 50 times a second. The share is this
process's own processor time, states read included, by the time that passed from the robot's
acceptance to its rest. With both processes on one core it is what the program costs; on two cores
each datagram also wakes an idle core up, which on a virtual machine costs much, and is accounted to
who sends. The peers are a bare asyncio timer that sends as many bytes as often, made from scratch
each time, and a C loop that sleeps and sends and does nothing else: what waking up 500 times a
second costs on this machine. How late poses are is by their deadlines, told by the report itself.
"""

import asyncio
import math
import os
import tempfile
import time
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import numpy as np

from benchmarks.bare_timer import RATE_HZ, SIZE, send_bare
from benchmarks.c_program import compiled
from benchmarks.round_trip import run_on, server
from benchmarks.size import size
from benchmarks.table import Row
from rote.connection import connect
from rote.model.g1 import G1_29, G1_REST_RAD, TAUGHT_JOINTS
from rote.motion.track import Track
from rote.robot.api_values import StreamReport

ROUNDS = size(3, 1)
ATTEMPTS = 3
SECONDS = size(10.0, 1.0)
TIMER_MAX = 1.3
WHERE = ((2, "rote's loop"), (1, "rote's loop"), (1, "asyncio"))[: size(3, 1)]

T = TypeVar("T")

SOURCE = r"""
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

int main(int count, char **words) {
  if (count != 6) return 1;
  struct sockaddr_in robot = {.sin_family = AF_INET, .sin_port = htons(atoi(words[2]))};
  inet_pton(AF_INET, words[1], &robot.sin_addr);
  int size = atoi(words[3]), ticks = atoi(words[5]);
  double period = 1.0 / atof(words[4]);
  char *bytes = calloc(1, size);
  int file = socket(AF_INET, SOCK_DGRAM, 0);
  if (connect(file, (struct sockaddr *)&robot, sizeof robot) != 0) return 1;
  double begin = now(CLOCK_MONOTONIC), used = now(CLOCK_PROCESS_CPUTIME_ID);
  for (int n = 0; n < ticks; n++) {
    double due = begin + n * period;
    struct timespec at = {(time_t)due, (long)((due - (time_t)due) * 1e9)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL);
    if (send(file, bytes, size, 0) != size) return 1;
  }
  used = now(CLOCK_PROCESS_CPUTIME_ID) - used;
  printf("%.9f\n", 100.0 * used / (now(CLOCK_MONOTONIC) - begin));
  return 0;
}
"""


def swinging() -> Track:
    """Return a track in which all joints that are taught swing."""
    times_s = np.arange(round(100 * SECONDS) + 1) / 100.0
    joints = np.repeat(np.array(G1_REST_RAD)[None, :], times_s.size, axis=0)
    swing = 0.3 * np.sin(2 * math.pi * 0.5 * times_s)[:, None]
    joints[:, list(TAUGHT_JOINTS)] += swing
    joints[:, [G1_29.names.index(f"{side}_shoulder_roll_joint") for side in ("left", "right")]] += (
        0.6,
        -0.6,
    )  # away from the hips
    return Track(times_s=times_s, joints_rad=joints, names=G1_29.names)


async def stream(url: str) -> tuple[float, StreamReport]:
    """Return the share of a core in percent, and the report."""
    async with connect(url) as robot:
        playing = robot.play_track(swinging(), rate_hz=RATE_HZ)
        await playing.started()
        began_s, cpu_s = time.perf_counter(), time.process_time()
        report = await playing
        return 100.0 * (time.process_time() - cpu_s) / (time.perf_counter() - began_s), report


async def send_in_c(program: Path, url: str) -> float:
    """Return the share of a core in percent for a C loop that sends the same bytes as often."""
    host, port = url.removeprefix("udp://").split(":")
    words = (host, port, str(SIZE), str(RATE_HZ), str(round(RATE_HZ * SECONDS)))
    process = await asyncio.create_subprocess_exec(program, *words, stdout=asyncio.subprocess.PIPE)
    told, _ = await process.communicate()
    return float(told)


def on_cores(count: int, loop: str, work: Callable[[str], Coroutine[Any, Any, T]]) -> T:
    """Run `work` with a fresh robot's address, on the robot's core or on another one."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[0]})
    try:
        with server("simulator", loop, cores[:count][-1]) as url:
            return run_on(loop, work(url))
    finally:
        os.sched_setaffinity(0, set(cores))


def stream_to_its_end(count: int, loop: str) -> tuple[float, StreamReport]:
    """Stream again where the machine stood still for so long that the robot took its arms home."""
    for _ in range(ATTEMPTS):
        share, report = on_cores(count, loop, stream)
        if report.completed:
            return share, report
    raise RuntimeError(f"this machine is too busy to stream: {report}")


def run() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        program = compiled(Path(folder), SOURCE)
        in_c = partial(send_in_c, program) if program is not None else None
        return [row for count, loop in WHERE for row in run_on_cores(count, loop, in_c)]


def run_on_cores(
    count: int, loop: str, send_in_c: Callable[[str], Coroutine[Any, Any, float]] | None
) -> list[Row]:
    streamed, bare, in_c = [], [], []
    for _ in range(ROUNDS):
        streamed.append(stream_to_its_end(count, loop))
        bare.append(on_cores(count, loop, partial(send_bare, seconds=SECONDS)))
        if send_in_c is not None:
            in_c.append(on_cores(count, loop, send_in_c))
    reports = [report for _, report in streamed]
    share, timer = median(share for share, _ in streamed), median(bare)
    rate, p99, most, missed = (
        median(getattr(report, what) for report in reports)
        for what in ("rate_hz", "late_p99_ms", "late_max_ms", "missed")
    )
    period_ms = 1000.0 / RATE_HZ
    where = f"{loop}, {'one core' if count == 1 else 'two cores'}"
    rows = [
        Row(
            f"stream: core at 500 Hz, {where}",
            "%",
            share,
            timer,
            "the same loop's timer",
            at_most=TIMER_MAX,
        ),
    ]
    if in_c:
        rows.append(Row("  beside a C loop", "%", share, median(in_c), "sleep and send"))
    if count == 1:
        return rows  # where the robot works on the same core, it is what makes poses late
    return [
        *rows,
        Row("  rate achieved", "Hz", rate, RATE_HZ, "asked", at_least=0.99),
        Row("  late, p99", "ms", p99, period_ms, "one period", at_most=1),
        Row("  late, most", "ms", most, period_ms, "one period"),
        Row("  poses skipped", "poses", missed, RATE_HZ * SECONDS, "all poses"),
    ]
