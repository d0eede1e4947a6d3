"""A sequence of edits as data, as requested by the page or an agent."""

from collections.abc import Mapping, Sequence
from typing import Any

from rote.errors import BadRequestError
from rote.motion.edit import operations as edit
from rote.motion.edit.table import find_edit
from rote.motion.track import Track
from rote.text import Text

MAX_SAMPLES = 500_000
MAX_S = 1800.0

Step = Mapping[str, Any]
"""An edit as data: `op`, its parameters, and `other` or `others`."""


def apply(track: Track, steps: Sequence[Step], others: Mapping[str, Track]) -> Track:
    """Return the track after these edits; `others` are other takes by name.

    Each step gets, and returns, a track that begins at 0 s, like the page's time line. Raises
    `BadRequestError`, which names the step, if a step fails or its result is too long.
    """
    track = edit.from_zero(track)
    for number, step in enumerate(steps, start=1):
        op = step["op"]
        try:
            track = edit.from_zero(_apply_step(track, step, others))
        except BadRequestError as error:
            reason = Text("step {number}, {op}: {why}", number=number, op=op, why=error.text)
            raise BadRequestError(reason, error.remedy) from None
        if len(track) > MAX_SAMPLES or track.duration_s > MAX_S:
            raise BadRequestError(
                f"after step {number}, {op}, the motion has {len(track)} samples and lasts "
                f"{track.duration_s:.0f} s",
                f"The maximum is {MAX_SAMPLES} samples and {MAX_S:.0f} s.",
            )
    return track


def _apply_step(track: Track, step: Step, others: Mapping[str, Track]) -> Track:
    edit_row, alias_values = find_edit(step["op"])
    not_parameters = {"op", "other", "others"}
    values = {key: value for key, value in step.items() if key not in not_parameters}
    tracks = [track, *(others[name] for name in other_take_names(step))]
    return edit_row.apply(tracks, {**values, **alias_values})


def other_take_names(step: Step) -> list[str]:
    """Return the names of the other takes that a step needs: those of `others`, then `other`."""
    return [*step.get("others", ()), *([step["other"]] if "other" in step else [])]
