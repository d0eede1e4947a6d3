"""Motions that were learned from several takes, for the page: in memory until a take is saved."""

import secrets

from rote.motion.learn import HandPoint, MotionModel
from rote.web.schemas import robot as schemas
from rote.web.server.problems import ProblemError
from rote.web.services.takes import TakeService
from rote.web.work import learning as learning_work

MAX_MODELS = 16
"""Maximum number of learned motions in memory; the one unused for longest is dropped."""


class LearningService:
    """Learns and adapts motions in a child process, so that it does not delay a stop."""

    def __init__(self, takes: TakeService) -> None:
        self._takes = takes
        self._models: dict[str, MotionModel] = {}

    async def learn(self, request: schemas.LearnTakes) -> bytes:
        """Learn from some takes; return their mean and spread for the page."""
        model_id = secrets.token_hex(8)
        model, document = await self._takes.pool.run(
            learning_work.learn, self._takes.folder, request.takes, model_id
        )
        self._models[model_id] = model
        while len(self._models) > MAX_MODELS:
            del self._models[next(iter(self._models))]  # `_find_model` moves used ones to the end
        return document

    async def preview(self, request: schemas.PreviewAdapted) -> bytes:
        """Return the adapted motion as the page shows it."""
        return await self._takes.pool.run(
            learning_work.preview,
            self._find_model(request.id),
            _make_adaptation(request),
            check=request.check,
        )

    async def save(self, request: schemas.SaveAdapted) -> bytes:
        """Save the adapted motion as a take."""
        self._takes.check_name(request.name)
        return await self._takes.write(
            learning_work.adapt_and_save,
            self._takes.folder,
            self._find_model(request.id),
            _make_adaptation(request),
            request.name,
            request.over,
        )

    def _find_model(self, model_id: str) -> MotionModel:
        """Return a learned motion, and mark it as the one used last."""
        model = self._models.pop(model_id, None)
        if model is None:
            raise ProblemError(
                404,
                "no-such-motion",
                "this learned motion is no longer in memory",
                "Learn from the takes again.",
            )
        self._models[model_id] = model
        return model


def _make_adaptation(request: schemas.AdaptLearned) -> learning_work.Adaptation:
    return learning_work.Adaptation(
        through=[
            HandPoint(each.time_s, each.x_m, each.y_m, each.z_m, each.hand)
            for each in request.through
        ],
        duration_s=request.duration_s,
        start=request.start,
        end=request.end,
    )
