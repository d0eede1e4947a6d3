"""Edits as a page requests them: a take, a list of steps, and the check of the result."""

from collections.abc import Mapping
from typing import Any

from rote.model.family import Build
from rote.motion.edit.table import EDITS, SEVERAL, Edit
from rote.motion.track import Track
from rote.web.schemas import robot as schemas
from rote.web.services.takes import TakeService
from rote.web.work import takes as take_work


class EditService:
    """Edits takes in a child process, so that a long edit does not delay a stop."""

    def __init__(self, takes: TakeService) -> None:
        self._takes = takes

    async def playable(self, wanted: schemas.PlayTake, build: Build) -> take_work.PlayableTake:
        """Return a take after all steps, checked, to be played by a robot of that build.

        Raises `BadRequestError` for a take of another family, and `UnsafeMotionError` if a check
        forbids it.
        """
        return await self._takes.pool.run(
            take_work.playable,
            *self._what(wanted),
            build,
            speed=wanted.speed or 1.0,
            force=wanted.force,
            loop=wanted.loop,
        )

    async def track(self, wanted: schemas.StoreTake) -> Track:
        """Return a take after all steps."""
        return await self._takes.pool.run(take_work.edited, *self._what(wanted))

    async def look(self, wanted: schemas.EditTake) -> bytes:
        """Return what the page shows of an edited take, and which version of it was edited."""
        return await self._takes.pool.run(take_work.look, *self._what(wanted))

    async def glance(self, wanted: schemas.EditPart) -> bytes:
        """Return the same without a check, and maybe of a part, which is quicker."""
        part_s = (wanted.start_s, wanted.end_s)
        return await self._takes.pool.run(take_work.glance, *self._what(wanted), part_s)

    async def check(self, wanted: schemas.EditTake) -> bytes:
        """Return what speaks against playing an edited take."""
        return await self._takes.pool.run(take_work.checked, *self._what(wanted))

    async def keyframes(self, wanted: schemas.EditKeyframes) -> bytes:
        """Return a few keyframes that an edited take passes through."""
        what = self._what(wanted)
        return await self._takes.pool.run(take_work.keyframes, *what, wanted.joints)

    async def save(self, wanted: schemas.EditSave) -> bytes:
        """Keep an edited take under a name."""
        return await self._takes.write(
            take_work.edit_and_save, *self._what(wanted), wanted.name, wanted.over
        )

    def _what(
        self, wanted: schemas.EditTake | schemas.PlayTake | schemas.StoreTake
    ) -> tuple[Any, str, int | None, list[dict[str, Any]]]:
        """Return what is edited and how, as a child process is told it."""
        return self._takes.folder, wanted.take, wanted.version, plain(wanted.steps)


def plain(steps: list[schemas.Step]) -> list[dict[str, Any]]:
    """Return steps as data, without what was left open."""
    return [step.model_dump(exclude_none=True) for step in steps]


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
