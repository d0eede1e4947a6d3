"""Edits as a page asks for them: a take, a list of steps, and what a check says of the result."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any, TypeVar

from rote.errors import BadRequestError
from rote.model.family import Build
from rote.model.registry import family_of
from rote.motion import edit
from rote.motion.check import check
from rote.motion.mirror import mirror
from rote.motion.retime import retime
from rote.motion.track import Mark, Track
from rote.motion.whose import build_of
from rote.robot.streaming import check_robot
from rote.web import schemas
from rote.web.takes import Shelf, curves

MOST_SAMPLES = 200_000
MOST_S = 1800.0
_ROUNDED_S = 1e-4  # the page is told times with four digits

T = TypeVar("T")


class Desk:
    """Where takes are edited: in one thread, so that a long edit holds up no stop."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rote edit")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def edited(self, wanted: schemas.Edit | schemas.PlayTake) -> Track:
        """Return a take after all steps."""
        track = await self._shelf.load(wanted.take, wanted.version)
        names = {step.other for step in wanted.steps if hasattr(step, "other")}
        others = {name: await self._shelf.load(name) for name in names}
        return await self._away(lambda: apply(track, wanted.steps, others))

    async def playable(self, wanted: schemas.PlayTake, build: Build) -> Track:
        """Return a take after all steps, to be played by a robot of that build.

        Raises `BadRequestError` for a take of another kind of robot, and `UnsafeMotionError` where
        a check forbids it.
        """
        track, speed = await self.edited(wanted), wanted.speed or 1.0
        check_robot(track, build)
        family = family_of(build)
        # Motors that rote drives itself play what only warns; other robots want to be told.
        asks = family is None or family.keeps_actions

        def checked() -> Track:
            paced = edit.speed(track, speed) if speed != 1.0 else track
            check(paced).permit(force=wanted.force or not asks)
            return paced

        return await self._away(checked)

    async def look(self, wanted: schemas.Edit) -> dict[str, Any]:
        """Return what the page shows of an edited take, and which version of it was edited."""
        version = wanted.version or self._shelf.newest(wanted.take)
        track = await self.edited(wanted.model_copy(update={"version": version}))
        return {"version": version, **await self._away(lambda: describe(track))}

    async def _away(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def apply(track: Track, steps: Sequence[schemas.Step], others: Mapping[str, Track]) -> Track:
    """Carry out the steps, one after the other; one that cannot be is named in the error.

    Each step sees, and leaves, a track that begins at 0 s, as the page's time line does.
    """
    track = _from_zero(track)
    for number, step in enumerate(steps, start=1):
        try:
            track = _from_zero(_one(track, step, others))
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
            to_end = abs(step.end_s - track.duration_s) < _ROUNDED_S
            track = edit.trim(track, step.start_s, track.duration_s if to_end else step.end_s)
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


def _from_zero(track: Track) -> Track:
    first_s = float(track.times_s[0]) if len(track) else 0.0
    marks = tuple(Mark(mark.time_s - first_s, mark.words) for mark in track.marks)
    return replace(track, times_s=track.times_s - first_s, marks=marks)


def describe(track: Track) -> dict[str, Any]:
    """Return curves, findings and jerk of a track."""
    report, build = check(track), build_of(track)
    kept = ("severity", "kind", "joint", "time_s", "value", "limit", "remedy", "words")
    jerk = edit.jerk_rms(track) if len(track) >= 4 and track.names else None
    return {
        **curves(track),
        "build": None if build is None else build.name,
        "family": None if build is None else build.family,
        "title": track.variant if build is None else build.title,
        "findings": [
            {name: found[name] for name in kept} for found in report.as_json()["findings"]
        ],
        "ok": report.ok,
        "jerk": jerk,
    }
