"""Settings for a thread with deadlines: precise timers, a CPU of its own, a real-time priority."""

import ctypes
import os
import threading

from rote.errors import BadRequestError

_SET_TIMER_SLACK = 29  # PR_SET_TIMERSLACK
FIFO_PRIORITY = 60
"""Above all ordinary work, below the kernel's own threads."""


def request_precise_timers() -> bool:
    """Ask the system to wake this thread on time, not up to 50 us late; return whether it will."""
    try:
        # A timer may be late by the slack, in nanoseconds; 1 is the smallest value.
        return bool(ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0) == 0)
    except (AttributeError, OSError, TypeError):  # not Linux
        return False


def check_cpu(cpu: int) -> int:
    """Return `cpu`; raise `BadRequestError` if this process may not use the CPU of that number."""
    if not hasattr(os, "sched_getaffinity"):
        raise BadRequestError(
            "this system cannot pin a thread to a CPU", "Omit the CPU: then the system chooses one."
        )
    allowed = sorted(os.sched_getaffinity(0))
    if cpu not in allowed:
        raise BadRequestError(
            f"this process may not use CPU {cpu}",
            f"Choose one of {', '.join(map(str, allowed))}, or none.",
        )
    return cpu


def pin(cpu: int) -> None:
    """Keep this thread on one CPU. Raises `BadRequestError` if it may not be used."""
    os.sched_setaffinity(threading.get_native_id(), {check_cpu(cpu)})


def request_realtime() -> bool:
    """Give this thread priority over all ordinary work; return whether that was permitted."""
    try:
        os.sched_setscheduler(
            threading.get_native_id(), os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY)
        )
    except (OSError, AttributeError):
        return False
    return True
