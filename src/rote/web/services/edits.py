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

    async def load_playable(
        self, request: schemas.PlayTake, build: Build
    ) -> take_work.PlayableTake:
        """Return a take after all edit steps, checked, to be played by a robot of that build.

        Raises `BadRequestError` for a take of another family, and `UnsafeMotionError` if a check
        forbids it.
        """
        return await self._takes.pool.run(
            take_work.load_playable,
            *self._list_edit_arguments(request),
            build,
            speed=request.speed or 1.0,
            force=request.force,
            loop=request.loop,
        )

    async def load_edited(self, request: schemas.StoreTake) -> Track:
        """Return a take after applying all edit steps."""
        return await self._takes.pool.run(take_work.edit_take, *self._list_edit_arguments(request))

    async def preview(self, request: schemas.EditTake) -> bytes:
        """Return as JSON the edited take with its curves and findings, and its version."""
        return await self._takes.pool.run(take_work.preview, *self._list_edit_arguments(request))

    async def curves(self, request: schemas.EditPart) -> bytes:
        """Return as JSON the curves of an edited take, or of a time range of it, unchecked."""
        part_s = (request.start_s, request.end_s)
        return await self._takes.pool.run(
            take_work.edited_curves, *self._list_edit_arguments(request), part_s
        )

    async def check(self, request: schemas.EditTake) -> bytes:
        """Return as JSON the findings against playing an edited take."""
        return await self._takes.pool.run(
            take_work.check_edited, *self._list_edit_arguments(request)
        )

    async def keyframes(self, request: schemas.EditKeyframes) -> bytes:
        """Return as JSON a few keyframes that an edited take passes through."""
        arguments = self._list_edit_arguments(request)
        return await self._takes.pool.run(take_work.keyframes, *arguments, request.joints)

    async def save(self, request: schemas.EditSave) -> bytes:
        """Save an edited take under a name; return its library entry as JSON."""
        return await self._takes.write(
            take_work.edit_and_save, *self._list_edit_arguments(request), request.name, request.over
        )

    def _list_edit_arguments(
        self, request: schemas.EditTake | schemas.PlayTake | schemas.StoreTake
    ) -> tuple[Any, str, int | None, list[dict[str, Any]]]:
        """Return folder, take, version and steps: the first arguments of the work functions."""
        return self._takes.folder, request.take, request.version, plain_steps(request.steps)


def plain_steps(steps: list[schemas.Step]) -> list[dict[str, Any]]:
    """Return steps as plain data, without unset parameters."""
    return [step.model_dump(exclude_none=True) for step in steps]


def edit_table(edits: Mapping[str, Edit] = EDITS) -> list[schemas.EditFacts]:
    """Return the table of edits as the page's tools need it."""
    return [
        {
            "name": each.name,
            "title": each.title,
            "summary": each.summary,
            # Takes besides the edited one; -1: one or more.
            "takes": -1 if each.tracks == SEVERAL else each.tracks - 1,
            "parameters": [
                {
                    "name": parameter.name,
                    "title": parameter.title,
                    "help": parameter.help,
                    "kind": parameter.kind.value,
                    "choices": list(parameter.choices),
                    "columns": len(parameter.columns),
                    "form": parameter.form,
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
