"""Gaps in a recording: intervals without samples."""

from collections.abc import Iterator

import numpy as np

from rote.findings import Finding, FindingKind, Severity
from rote.motion.track import Array
from rote.text import Text, seconds

_GAP_S, _GAP_STEPS = 0.1, 3.0
_HOLE_S, _HOLE_STEPS = 0.5, 10.0


def find_gaps(times_s: Array) -> list[int]:
    """Return the rows that are followed by a gap."""
    steps = np.diff(times_s)
    return np.flatnonzero(steps > _max_step_s(steps)).tolist() if steps.size else []


def _max_step_s(steps: Array) -> float:
    return max(_GAP_S, _GAP_STEPS * float(np.median(steps)))


def gap_findings(times_s: Array, most_s: float | None = None) -> Iterator[Finding]:
    """Yield the findings about gaps; gaps longer than `most_s` are always errors."""
    steps = np.diff(times_s)
    if not steps.size:
        return
    usual_s, row = float(np.median(steps)), int(steps.argmax())
    worst_s = float(steps[row])
    hole_s = max(_HOLE_S, _HOLE_STEPS * usual_s) if most_s is None else most_s
    allowed_s = min(_max_step_s(steps), hole_s)
    if worst_s <= allowed_s:
        return
    count = int((steps > allowed_s).sum())
    yield Finding(
        severity=Severity.ERROR if worst_s > hole_s else Severity.WARNING,
        kind=FindingKind.GAP,
        time_s=float(times_s[row]),
        value=worst_s,
        limit=allowed_s,
        margin=allowed_s - worst_s,
        unit="s",
        message=Text(
            "{count} in the recording, the longest of {longest}; samples are usually {usual} apart",
            count=f"{count} hole{'s' if count > 1 else ''}",
            longest=seconds(worst_s),
            usual=seconds(usual_s, 3),
        ),
        remedy="Teach it again on a better network, or resample it if the motion is still right.",
    )
