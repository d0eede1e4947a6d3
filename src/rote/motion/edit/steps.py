"""A sequence of edits as data, as requested by the page or an agent."""

from collections.abc import Mapping, Sequence
from typing import Any

from rote.errors import BadRequestError
from rote.motion.edit import operations as edit
from rote.motion.edit.table import find_edit
from rote.motion.track import Track

MAX_SAMPLES = 500_000
MAX_S = 1800.0

Step = Mapping[str, Any]
"""An edit as data: `op`, its parameters, and `other` or `others`."""


def apply(track: Track, steps: Sequence[Step], others: Mapping[str, Track]) -> Track:
    """Apply the steps one after the other; an error names the step that failed.

    Each step gets, and returns, a track that begins at 0 s, like the page's time line.
    """
    track = edit.from_zero(track)
    for number, step in enumerate(steps, start=1):
        op = step["op"]
        try:
            track = edit.from_zero(_apply_step(track, step, others))
        except BadRequestError as error:
            raise BadRequestError(f"step {number}, {op}: {error}", error.remedy) from None
        if len(track) > MAX_SAMPLES or track.duration_s > MAX_S:
            raise BadRequestError(
                f"step {number}, {op}, makes {len(track)} samples in {track.duration_s:.0f} s",
                f"Stay below {MAX_SAMPLES} samples and {MAX_S:.0f} s.",
            )
    return track


def _apply_step(track: Track, step: Step, others: Mapping[str, Track]) -> Track:
    found, values = find_edit(step["op"])
    given = {key: value for key, value in step.items() if key not in {"op", "other", "others"}}
    return found.apply(
        [track, *(others[name] for name in other_take_names(step))], {**given, **values}
    )


def other_take_names(step: Step) -> list[str]:
    """Return the names of the other takes that a step needs."""
    return [*step.get("others", ()), *([step["other"]] if "other" in step else [])]
