"""Edits as a page requests them: a take, a list of steps, and the check of the result."""

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
from rote.motion.edits import EDITS, SEVERAL, Edit, edit_named
from rote.motion.track import Mark, Track
from rote.motion.track_build import build_of
from rote.robot.streaming import TrackCheck, check_robot
from rote.web import schemas
from rote.web.problems import finding_document
from rote.web.take_service import TakeService, curves

MAX_SAMPLES = 200_000
MAX_S = 1800.0

T = TypeVar("T")


class EditService:
    """Edits takes in one separate thread, so that a long edit does not delay a stop."""

    def __init__(self, takes: TakeService) -> None:
        self._takes = takes
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="rote edit")

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def edited(self, wanted: schemas.EditTake | schemas.PlayTake) -> Track:
        """Return a take after all steps."""
        track = await self._takes.load(wanted.take, wanted.version)
        names = {name for step in wanted.steps for name in _others(step)}
        others = {name: await self._takes.load(name) for name in names}
        return await self._away(lambda: apply(track, wanted.steps, others))

    async def playable(self, wanted: schemas.PlayTake, build: Build) -> TrackCheck:
        """Return a take after all steps, checked, to be played by a robot of that build.

        Raises `BadRequestError` for a take of another family, and `UnsafeMotionError` if a check
        forbids it.
        """
        track, speed = await self.edited(wanted), wanted.speed or 1.0
        check_robot(track, build)
        family = family_of(build)
        # An A1, whose motors rote drives itself, plays in spite of warnings; other robots need
        # `force`.
        asks = family is None or family.keeps_actions

        def checked() -> TrackCheck:
            paced = edit.speed(track, speed) if speed != 1.0 else track
            report = check(paced)
            report.permit(force=wanted.force or not asks)
            return TrackCheck(paced, 1.0, report)

        return await self._away(checked)

    async def look(self, wanted: schemas.EditTake) -> dict[str, Any]:
        """Return what the page shows of an edited take, and which version of it was edited."""
        version = wanted.version or self._takes.newest(wanted.take)
        track = await self.edited(wanted.model_copy(update={"version": version}))
        return {"version": version, **await self._away(lambda: describe(track))}

    async def _away(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)


def apply(track: Track, steps: Sequence[schemas.Step], others: Mapping[str, Track]) -> Track:
    """Apply the steps one after the other; an error names the step that failed.

    Each step gets, and returns, a track that begins at 0 s, like the page's time line.
    """
    track = _from_zero(track)
    for number, step in enumerate(steps, start=1):
        try:
            track = _from_zero(_one(track, step, others))
        except BadRequestError as error:
            raise BadRequestError(f"step {number}, {step.op}: {error}", error.remedy) from None
        if len(track) > MAX_SAMPLES or track.duration_s > MAX_S:
            raise BadRequestError(
                f"step {number}, {step.op}, makes {len(track)} samples in {track.duration_s:.0f} s",
                f"Stay below {MAX_SAMPLES} samples and {MAX_S:.0f} s.",
            )
    return track


def _one(track: Track, step: schemas.Step, others: Mapping[str, Track]) -> Track:
    found, values = edit_named(step.op)
    given = step.model_dump(exclude={"op", "other", "others"}, exclude_none=True)
    return found.apply([track, *(others[name] for name in _others(step))], {**given, **values})


def _others(step: schemas.Step) -> list[str]:
    """Return the names of the other takes that a step needs."""
    fields = step.model_dump(include={"other", "others"})
    return [*fields.get("others", ()), *([fields["other"]] if "other" in fields else [])]


def table(edits: Mapping[str, Edit] = EDITS) -> list[dict[str, Any]]:
    """Return the table of edits as the page's tools need it."""
    return [
        {
            "name": each.name,
            "title": each.title,
            "summary": each.summary,
            "takes": -1 if each.tracks == SEVERAL else each.tracks - 1,
            "parameters": [
                {
                    "name": parameter.name,
                    "title": parameter.title,
                    "help": parameter.help,
                    "kind": parameter.kind.value,
                    "unit": parameter.unit,
                    "low": None if parameter.range is None else parameter.range.low,
                    "high": None if parameter.range is None else parameter.range.high,
                    "slider": parameter.slider,
                    "default": parameter.default,
                    "required": parameter.required,
                }
                for parameter in each.parameters
            ],
        }
        for each in edits.values()
    ]


def _from_zero(track: Track) -> Track:
    first_s = float(track.times_s[0]) if len(track) else 0.0
    marks = tuple(Mark(mark.time_s - first_s, mark.label) for mark in track.marks)
    return replace(track, times_s=track.times_s - first_s, marks=marks)


def describe(track: Track) -> dict[str, Any]:
    """Return curves, findings and jerk of a track."""
    report, build = check(track), build_of(track)
    jerk = edit.jerk_rms(track) if len(track) >= 4 and track.names else None
    return {
        **curves(track),
        "build": None if build is None else build.name,
        "family": None if build is None else build.family,
        "title": track.variant if build is None else build.title,
        "findings": [finding_document(finding) for finding in report.findings],
        "ok": report.ok,
        "jerk": jerk,
    }
