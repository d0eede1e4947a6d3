"""The factory's actions: there once, safe to play, and last in the queue for places."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from g1_29 import REST_RAD
from rote.messages import ActionEntry, Phase, PlayAction
from rote.model.g1 import G1_29
from rote.sim.player import Playback
from rote.sim.presets import add_factory_actions
from rote.sim.store import Store, StoredAction

FACTORY = (
    ActionEntry("Waist_Drum_Dance", 9500),
    ActionEntry("Spin_discs", 6900),
    ActionEntry("Scratch_head", 8100),
    ActionEntry("Throw_money", 8100),
)


@pytest.fixture
def store() -> Iterator[Store]:
    with closing(Store(":memory:")) as store:
        yield store


def test_the_factory_adds_the_four_actions_a_g1_lists(store: Store) -> None:
    assert add_factory_actions(store) == FACTORY
    assert store.entries() == FACTORY


def test_the_factory_adds_nothing_twice(store: Store) -> None:
    add_factory_actions(store)
    assert add_factory_actions(store) == ()
    assert store.entries() == FACTORY


@pytest.mark.parametrize("free", [0, 1, 3])
def test_the_factory_takes_only_places_that_are_free(store: Store, free: int) -> None:
    for number in range(15 - free):
        store.save(StoredAction(name=f"mine {number}", created_s=0, duration_ms=1))
    assert add_factory_actions(store) == FACTORY[:free]
    assert len(store.entries()) == 15


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_a_factory_action_plays_safely_and_lasts_as_long_as_it_says(
    store: Store, number: int
) -> None:
    add_factory_actions(store)
    action = store.load(number)
    assert action is not None
    playback = Playback(action, PlayAction(action=number), REST_RAD, G1_29)
    played = 0
    while (setpoint := playback.step()) is not None:
        played += setpoint.phase is Phase.PLAYING
    assert (played - 1) * 2 == action.duration_ms
