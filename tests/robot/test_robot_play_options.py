"""The options of a playback: one set of names, however they are written."""

import inspect
from collections.abc import Callable
from dataclasses import fields

import pytest

from rote.errors import BadRequestError
from rote.messages import Interpolation
from rote.robot.message_robot import MessageRobot
from rote.robot.play_options import PlayKeywords, PlayOptions, TrackKeywords, TrackOptions
from rote.robot.robot import Robot


def keywords(method: Callable[..., object]) -> dict[str, object]:
    """Return the keyword-only arguments of a method with their defaults."""
    parameters = inspect.signature(method).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize(
    ("methods", "options", "typed"),
    [
        ((Robot.play, MessageRobot.play), PlayOptions, PlayKeywords),
        ((Robot.play_track, MessageRobot.play_track), TrackOptions, TrackKeywords),
    ],
)
def test_a_method_its_keywords_and_its_options_have_the_same_names_and_defaults(
    methods: tuple[Callable[..., object], ...],
    options: type[PlayOptions | TrackOptions],
    typed: type,
) -> None:
    expected = {each.name: each.default for each in fields(options)}
    assert list(typed.__annotations__) == list(expected)
    for method in methods:
        assert keywords(method) == expected


def test_what_differs_from_the_stored_action_is_known() -> None:
    assert not PlayOptions().changes_tempo()
    assert PlayOptions(speed=0.5).changes_tempo()
    assert PlayOptions(interpolation="cubic").changes_tempo()
    assert PlayOptions(interpolation="Cubic").interpolation_kind is Interpolation.CUBIC
    assert not PlayOptions().is_partial
    assert PlayOptions(frames=3).is_partial


def test_the_requested_length_follows_from_speed_or_duration() -> None:
    assert PlayOptions().compute_requested_s(4.0) == 0.0
    assert PlayOptions(duration=3.0).compute_requested_s(4.0) == 3.0
    assert PlayOptions(speed=0.5).compute_requested_s(4.0) == 8.0


@pytest.mark.parametrize(
    "options",
    [
        PlayOptions(speed=1.0, duration=2.0),
        PlayOptions(speed=float("nan")),
        PlayOptions(duration=-1.0),
        PlayOptions(interpolation="wavy"),
    ],
)
def test_an_impossible_tempo_is_refused(options: PlayOptions) -> None:
    with pytest.raises(BadRequestError):
        options.changes_tempo()
