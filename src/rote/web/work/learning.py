"""Work on learned motions for a child process: learn, adapt, check and save."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from rote.model.registry import find_build
from rote.motion.files.library import check_existing_name
from rote.motion.learn import FAR_STD, HandPoint, MotionModel
from rote.motion.learn import learn as learn_motion
from rote.motion.track import Track
from rote.web.server.problems import to_json
from rote.web.work import takes as take_work

_BAND_ROWS = 200


class Adaptation(NamedTuple):
    """How a learned motion is adapted."""

    through: list[HandPoint]
    duration_s: float | None
    start: Mapping[str, float]
    end: Mapping[str, float]

    def apply(self, model: MotionModel) -> Track:
        """Return the adapted motion; raises `BadRequestError` as `MotionModel.adapt` does."""
        return model.adapt(
            start=self.start, end=self.end, through=self.through, duration_s=self.duration_s
        )


def learn(folder: Path, names: Sequence[str], model_id: str) -> tuple[MotionModel, bytes]:
    """Return a model learned from takes, and as JSON its mean and spread over time."""
    model = learn_motion([take_work.load(folder, name) for name in names])
    mean, spread = model.band(_BAND_ROWS)
    build = find_build(model.variant)
    document = {
        "id": model_id,
        "names": list(model.names),
        "times_s": np.round(np.linspace(0.0, model.duration_s, _BAND_ROWS), 4).tolist(),
        "joints_rad": np.round(mean, 4).tolist(),
        "spread_rad": np.round(spread, 4).tolist(),
        "duration_s": round(model.duration_s, 4),
        "takes": list(names),
        "build": None if build is None else build.name,
        "family": None if build is None else build.family,
        "title": model.variant if build is None else build.title,
    }
    return model, to_json(document)


def preview(model: MotionModel, adaptation: Adaptation, *, check: bool) -> bytes:
    """Return the adapted motion as JSON for the page, with the findings of its check."""
    track = adaptation.apply(model)
    curves = take_work.curves(track)
    document = {name: curves[name] for name in ("names", "times_s", "joints_rad", "duration_s")}
    far_points = [
        {"hand": point.hand, "time_s": round(point.time_s, 4), "std": round(std, 2)}
        for point in adaptation.through
        if (std := model.distance_std(point, adaptation.duration_s)) > FAR_STD
    ]
    findings = take_work.check_and_describe(track) if check else {"findings": None, "ok": None}
    return to_json({**document, "far": far_points, **findings})


def adapt_and_save(
    folder: Path, model: MotionModel, adaptation: Adaptation, to: str, over: int | None
) -> bytes:
    """Save the adapted motion as the take `to`."""
    check_existing_name(to)
    return take_work.save_over(folder, adaptation.apply(model), to, over)
