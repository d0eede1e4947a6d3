"""Processes that a test started and that are to end by themselves."""

import time
from pathlib import Path

_ENDED = ("", "Z")
"""States without a process, and of one that its parent has not reaped."""


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that has ended may wait for its parent."""
    return _read_state(Path(f"/proc/{pid}"))[0] not in _ENDED


def wait_until_group_ended(group: int, within_s: float = 10.0) -> bool:
    """Wait until no process of a group runs, and return whether that was so in time."""
    until_s = time.monotonic() + within_s
    while _group_is_running(group):
        if time.monotonic() > until_s:
            return False
        time.sleep(0.02)
    return True


def _group_is_running(group: int) -> bool:
    states = map(_read_state, Path("/proc").glob("[0-9]*"))
    return any(number == group and state not in _ENDED for state, number in states)


def _read_state(process: Path) -> tuple[str, int]:
    """Return the state of a process and its group; no state if there is no such process."""
    try:
        fields = (process / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return "", 0
    return fields[0], int(fields[2])
