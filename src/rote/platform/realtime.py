"""What the system offers a thread with deadlines: precise timers, a CPU of its own, a priority."""

import ctypes
import os
import threading

from rote.errors import BadRequestError

_SET_TIMER_SLACK = 29  # PR_SET_TIMERSLACK
FIFO_PRIORITY = 60
"""Above all ordinary work, below the kernel's own threads."""


def precise_timers() -> bool:
    """Wake this thread exactly on time, not up to 50 us later; return whether the system can."""
    try:
        return bool(ctypes.CDLL(None).prctl(_SET_TIMER_SLACK, 1, 0, 0, 0) == 0)
    except (AttributeError, OSError, TypeError):  # not Linux
        return False


def check_cpu(cpu: int) -> int:
    """Return the number of a CPU this process may use, or raise `BadRequestError`."""
    if not hasattr(os, "sched_getaffinity"):
        raise BadRequestError(
            "this system keeps no thread on one CPU", "Leave the CPU out: the system chooses."
        )
    allowed = sorted(os.sched_getaffinity(0))
    if cpu not in allowed:
        raise BadRequestError(
            f"there is no CPU {cpu} for this process",
            f"Choose one of {', '.join(map(str, allowed))}, or none.",
        )
    return cpu


def pin(cpu: int) -> None:
    """Keep this thread on one CPU."""
    os.sched_setaffinity(threading.get_native_id(), {check_cpu(cpu)})


def real_time() -> bool:
    """Give this thread priority over all ordinary work; return whether that was permitted."""
    try:
        os.sched_setscheduler(
            threading.get_native_id(), os.SCHED_FIFO, os.sched_param(FIFO_PRIORITY)
        )
    except (OSError, AttributeError):
        return False
    return True
