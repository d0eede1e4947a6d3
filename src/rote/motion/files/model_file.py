"""Files of learned motions: JSON with the weights of the mean and of each take."""

import json
from typing import TYPE_CHECKING

import numpy as np

from rote.errors import BadRequestError
from rote.motion.learn import MotionModel
from rote.platform.atomic_file import appearing

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["load_model", "save_model"]

_FORMAT = "learned motion 1"
_MAX_BYTES = 64_000_000
"""Maximum size of a file: two minutes of 29 joints from 60 takes, or 10 s from 700."""


def save_model(model: MotionModel, path: "Path") -> None:
    """Write a learned motion; an existing file is replaced when the new one is complete.

    Raises `BadRequestError` if it is too large to be read again.
    """
    values = {
        "format": _FORMAT,
        "names": model.names,
        "variant": model.variant,
        "duration_s": model.duration_s,
        "mean": model.mean.tolist(),
        "deviations": model.deviations.tolist(),
    }
    content = json.dumps(values).encode()
    if len(content) > _MAX_BYTES:
        raise BadRequestError(
            f"the learned motion is larger than {_MAX_BYTES // 1_000_000} MB",
            "Learn from fewer takes, or from shorter parts of them.",
        )
    with appearing(path) as file:
        file.write(content)


def load_model(path: "Path") -> MotionModel:
    """Read a learned motion; raises `BadRequestError` if the file holds none."""
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError(f"it is larger than {_MAX_BYTES // 1_000_000} MB")
        values = json.loads(content)
        if values["format"] != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT!r}")
        if not all(isinstance(name, str) for name in [values["variant"], *values["names"]]):
            raise TypeError("a name in it is not text")
        return MotionModel(
            names=tuple(values["names"]),
            variant=values["variant"],
            duration_s=float(values["duration_s"]),
            mean=np.array(values["mean"], dtype=np.float64),
            deviations=np.array(values["deviations"], dtype=np.float64),
        )
    except OSError as error:
        raise BadRequestError(f"{path} cannot be read: {error.strerror}") from error
    except KeyError as error:
        raise _make_model_error(path, f"it has no {error}") from error
    except RecursionError as error:
        raise _make_model_error(path, "it is nested too deeply") from error
    except (ValueError, TypeError, OverflowError, BadRequestError) as error:
        raise _make_model_error(path, str(error)) from error


def _make_model_error(path: "Path", reason: str) -> BadRequestError:
    return BadRequestError(
        f"{path} is not a learned motion: {reason}", "Learn one from three takes or more."
    )
