"""Every graded fact of the protocol pages has a step that tests it, or a reason why none does."""

import re
from dataclasses import replace

import pytest
from trial_facts import BEGIN, END, PAGE, table

from documentation import ROOT
from rote.trial.facts import A1, DATACHANNEL, DDS, FRAMES, Fact, list_facts
from rote.trial.judgement import judge
from rote.trial.steps import BY_ID, STEPS, TrialLevel, steps_for
from rote.wire.teaching import fields as teaching_fields
from rote.wire.teaching.fields import FieldGrade

SEEN = "log"
PAGES = (DATACHANNEL, DDS, A1)
_MARK = re.compile(r"<!-- fact: ([\w.-]+) -->")
_WORDS = r"docs|source|claim|choice|measured|header|seen on a robot|contradicted"
_PROSE = re.compile(
    rf"\(([^()]*\b(?:{_WORDS})\b[^()]*)\)((?:<!-- fact: [\w.-]+ -->)*)", re.IGNORECASE
)


def find_definition_error(fact: Fact) -> str:
    """Return what is wrong with the definition of a fact; empty if nothing is."""
    if fact.step and fact.step not in BY_ID:
        return f"there is no step {fact.step}"
    if not fact.step and not fact.why_not:
        return "it has neither a step nor a reason why it cannot be tested"
    if fact.step and not fact.read:
        return "it does not state where the result is"
    if fact.step and not set(fact.wires) & set(BY_ID[fact.step].wires):
        return f"its wires do not have the step {fact.step}"
    return ""


def text_of(page: str) -> str:
    return (ROOT / "docs" / "protocol" / f"{page}.md").read_text(encoding="utf-8")


def graded(page: str) -> list[tuple[str, list[str]]]:
    """Return every grade that a page shows, and the facts that its comment names."""
    found: list[tuple[str, list[str]]] = []
    is_graded = False
    for line in text_of(page).splitlines():
        cells = line.split("|")
        if not line.startswith("|"):
            is_graded = False
            found += [(grade, _MARK.findall(marks)) for grade, marks in _PROSE.findall(line)]
        elif cells[-2].strip() == "grade":
            is_graded = True
        elif is_graded and not line.startswith("|--"):
            ids = _MARK.findall(cells[-2])
            found.append((_MARK.sub("", cells[-2]).strip(), ids))
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_grade_below_seen_names_its_facts_and_they_have_the_same_grade(page: str) -> None:
    known = {fact.id: fact for fact in list_facts()}
    shown = graded(page)
    assert len(shown) > 10
    for grade, ids in shown:
        if grade == SEEN:
            continue
        assert ids, f"docs/protocol/{page}.md: {grade!r} has no `fact:` comment behind it"
        for each in ids:
            assert each in known, f"there is no fact {each}"
            assert known[each].grade == grade


@pytest.mark.parametrize("page", PAGES)
def test_every_fact_is_on_its_page(page: str) -> None:
    named = [each for _, ids in graded(page) for each in ids]
    assert sorted(named) == sorted(fact.id for fact in list_facts() if fact.page == page)


def test_every_graded_field_of_the_frames_is_a_fact() -> None:
    known = {fact.id: fact.grade for fact in list_facts() if fact.page == FRAMES}
    for layout in teaching_fields.LAYOUTS:
        for one in layout.fields:
            if one.grade is not FieldGrade.LOG:
                assert f"frames.{layout.key}.{one.name}" in known
    assert FieldGrade.CONTRADICTED.value in known.values()


def test_no_fact_lacks_a_step_or_a_reason() -> None:
    assert {
        fact.id: find_definition_error(fact) for fact in list_facts() if find_definition_error(fact)
    } == {}


def test_a_fact_without_a_step_and_without_a_reason_is_found() -> None:
    fact = next(fact for fact in list_facts() if fact.step)
    assert "neither a step nor a reason" in find_definition_error(
        replace(fact, step="", why_not="")
    )
    assert "no step nowhere" in find_definition_error(replace(fact, step="nowhere"))
    assert "where the result is" in find_definition_error(replace(fact, read=""))
    assert "do not have the step" in find_definition_error(
        replace(fact, wires=("a1",), step="teach")
    )


def test_every_step_says_what_it_does_and_what_to_watch() -> None:
    for step in STEPS:
        assert step.does
        assert step.watch
        assert step.limit_s > 0
    assert len(BY_ID) == len(STEPS)


def test_a_look_has_no_step_that_softens_or_moves() -> None:
    looks = {
        step.id
        for wire in ("udp", "webrtc", "dds", "a1")
        for step in steps_for(TrialLevel.LOOK, wire)
    }
    assert looks == {
        "discover", "connect", "listen", "services", "list", "a1-connect", "a1-listen",
    }  # fmt: skip


def test_what_was_not_reached_neither_agrees_nor_differs() -> None:
    judged = judge({"wire": "webrtc"}, "webrtc", {})
    assert judged
    assert all(one.agrees is None and one.note for one in judged)


def test_a_number_agrees_within_its_slack_and_not_beyond() -> None:
    def seen(lapse_s: float) -> bool | None:
        judged = judge({"teaching": {"lapse_s": lapse_s}}, "webrtc", {})
        return next(one.agrees for one in judged if one.fact.id == "teaching.lapse")

    assert seen(10.9) is True
    assert seen(5.0) is False


def test_the_page_of_the_trial_lists_the_facts_as_they_are() -> None:
    inside = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert inside.strip() == table().strip(), "python scripts/generate/trial_facts.py"


def test_a_fact_says_where_it_stands() -> None:
    assert all(isinstance(fact, Fact) and fact.says and fact.grade for fact in list_facts())
