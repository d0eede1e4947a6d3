"""Whether this is a whole run or a short one.

A short run goes through every benchmark in a few seconds, to find out whether it still works; its
figures mean nothing. Processes that a benchmark starts inherit the choice by the environment.
"""

import multiprocessing
import os
from multiprocessing.context import ForkServerContext, SpawnContext
from typing import TypeVar

VARIABLE = "ROTE_BENCHMARKS_SHORT"
SHORT = os.environ.get(VARIABLE) == "1"

T = TypeVar("T")


def size(full: T, short: T) -> T:
    """Return the value for this run."""
    return short if SHORT else full


def process_context() -> SpawnContext | ForkServerContext:
    """Return how to start server processes: fresh ones, or in a short run copies of one process
    that has imported rote already, because imports are most of what a short run costs.
    """
    if not SHORT:
        return multiprocessing.get_context("spawn")
    copied = multiprocessing.get_context("forkserver")
    copied.set_forkserver_preload(["benchmarks.dds", "rote.connection", "rote.sim.server"])
    return copied
