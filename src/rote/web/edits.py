"""Edits as a page asks for them: a take, a list of steps, and what a check says of the result."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from rote.errors import BadRequestError
from rote.motion import edit
from rote.motion.check import check
from rote.motion.mirror import mirror
from rote.motion.retime import retime
from rote.motion.track import Track
from rote.web import schemas
from rote.web.takes import Shelf, curves

MOST_SAMPLES = 200_000
MOST_S = 1800.0

T = TypeVar("T")


class Desk:
    """Where takes are edited: in one thread, so that a long edit holds up no stop."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rote edit")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def edited(self, take: str, steps: Sequence[schemas.Step]) -> Track:
        """Return a take after all steps."""
        track = await self._shelf.load(take)
        names = {step.other for step in steps if hasattr(step, "other")}
        others = {name: await self._shelf.load(name) for name in names}
        return await self._away(lambda: apply(track, steps, others))

    async def playable(self, wanted: schemas.PlayTake) -> Track:
        """Return a take after all steps, or raise `UnsafeMotionError` where a check forbids it."""
        track, speed = await self.edited(wanted.take, wanted.steps), wanted.speed or 1.0

        def checked() -> Track:
            paced = edit.speed(track, speed) if speed != 1.0 else track
            check(paced).permit(force=wanted.force)
            return paced

        return await self._away(checked)

    async def look(self, take: str, steps: Sequence[schemas.Step]) -> dict[str, Any]:
        """Return what the page shows of an edited take."""
        track = await self.edited(take, steps)
        return await self._away(lambda: describe(track))

    async def _away(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def apply(track: Track, steps: Sequence[schemas.Step], others: Mapping[str, Track]) -> Track:
    """Carry out the steps, one after the other; one that cannot be is named in the error."""
    for number, step in enumerate(steps, start=1):
        try:
            track = _one(track, step, others)
        except BadRequestError as error:
            raise BadRequestError(f"step {number}, {step.op}: {error}", error.remedy) from None
        if len(track) > MOST_SAMPLES or track.duration_s > MOST_S:
            raise BadRequestError(
                f"step {number}, {step.op}, makes {len(track)} samples in {track.duration_s:.0f} s",
                f"Stay below {MOST_SAMPLES} samples and {MOST_S:.0f} s.",
            )
    return track


def _one(track: Track, step: schemas.Step, others: Mapping[str, Track]) -> Track:
    match step:
        case schemas.Trim():
            track = edit.trim(track, step.start_s, step.end_s)
        case schemas.Smooth():
            track = edit.smooth(track, step.cutoff_hz)
        case schemas.Speed():
            track = edit.speed(track, step.factor)
        case schemas.CrossFade():
            track = edit.cross_fade(track, others[step.other], step.overlap_s)
        case schemas.Concatenate():
            track = edit.concatenate(track, others[step.other], step.bridge_s)
        case schemas.CloseLoop():
            track = edit.close_loop(track, step.seconds)
        case _:
            track = _PLAIN[step.op](track)
    return track


_PLAIN: dict[str, Callable[[Track], Track]] = {
    "trim_idle": edit.trim_idle,
    "mirror": mirror,
    "reverse": edit.reverse,
    "retime": retime,
}


def describe(track: Track) -> dict[str, Any]:
    """Return curves, findings and jerk of a track."""
    report = check(track)
    kept = ("severity", "kind", "joint", "time_s", "value", "limit", "remedy", "words")
    jerk = edit.jerk_rms(track) if len(track) >= 4 and track.names else None
    return {
        **curves(track),
        "findings": [
            {name: found[name] for name in kept} for found in report.as_json()["findings"]
        ],
        "ok": report.ok,
        "jerk": jerk,
    }
