"""Sentences that keep their facts, and the edges that render them."""

import json
import pickle

import pytest

from rote.cli.wording import COMMANDS, worded
from rote.text import IN_PYTHON, Act, Names, Quantity, Span, Text, as_json, rad, seconds, shown

MOVES = Text(
    "{joint} is at {at}, allowed {allowed}; end it: {stop}",
    joint="left_elbow_joint",
    at=rad(1.489),
    allowed=Span(-1.0, 1.25, "rad"),
    stop=Act.STOP,
)


def test_a_text_is_a_string_in_the_words_of_the_python_api() -> None:
    said = "left_elbow_joint is at 1.49 rad, allowed -1.00 to 1.25 rad; end it: robot.stop()"
    assert said == MOVES
    assert f"{MOVES}!" == f"{said}!"


def test_the_command_line_names_its_commands() -> None:
    assert worded(MOVES).endswith("end it: rote stop")
    assert worded("nothing to do") == "nothing to do"


def test_an_edge_shows_quantities_in_its_own_way() -> None:
    def style(fact: object) -> str:
        return f"<{type(fact).__name__}>"

    assert shown(MOVES, style) == "left_elbow_joint is at <Quantity>, allowed <Span>; end it: <Act>"


def test_a_sentence_within_a_sentence_is_rendered_too() -> None:
    outer = Text("at {when}: {what}", when=seconds(2), what=MOVES)
    assert worded(outer).startswith("at 2.00 s: left_elbow_joint")
    assert worded(outer).endswith("rote stop")
    assert outer.acts == (Act.STOP,)


def test_a_text_survives_pickling_and_is_json() -> None:
    again = pickle.loads(pickle.dumps(MOVES))
    assert (again, again.template, again.facts) == (MOVES, MOVES.template, MOVES.facts)
    told = json.loads(json.dumps(as_json(Text("{a} {b}", a=Names(("x", "y")), b=MOVES))))
    assert told["facts"]["a"] == {"names": ["x", "y"]}
    assert told["facts"]["b"]["facts"]["at"] == {"value": 1.489, "unit": "rad", "digits": 2}
    assert told["facts"]["b"]["facts"]["stop"] == {"act": "stop"}


def test_braces_of_a_plain_text_are_no_facts() -> None:
    told = as_json("a robot called {b}")
    assert told["template"].format() == "a robot called {b}"


def test_a_missing_fact_is_a_mistake_at_once() -> None:
    with pytest.raises(KeyError):
        Text("{joint} moves")


def test_every_edge_has_words_for_every_act() -> None:
    assert set(COMMANDS) == set(IN_PYTHON) == set(Act)


def test_a_quantity_without_a_unit_has_no_space_behind_it() -> None:
    assert str(Quantity(2.0, "", 0)) == "2"
