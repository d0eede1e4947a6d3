"""Bounded samples for `make test` of campaigns that `make soak` runs whole."""

from collections.abc import Iterable
from typing import TypeVar

import pytest
from _pytest.mark import ParameterSet
from hypothesis import settings

T = TypeVar("T")

USUAL_EXAMPLES = 25
"""The number of examples of a property in `make test`."""


def sample_parameters(values: Iterable[T], kept: int) -> list[T | ParameterSet]:
    """Return parameters of which all but the first `kept` are left to `make soak`."""
    return [
        value if number < kept else pytest.param(value, marks=pytest.mark.soak)
        for number, value in enumerate(values)
    ]


def sample_examples(count: int) -> settings:
    """Return settings for a dear property: `count` examples in `make test`, and with the profile
    `search` of `make soak` as many more as others have.
    """
    assert settings.default is not None
    return settings(max_examples=max(1, count * settings.default.max_examples // USUAL_EXAMPLES))
