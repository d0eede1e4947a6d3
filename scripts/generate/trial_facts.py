"""Write the table of docs/trial.md: every fact below "seen", and the step that tests it."""

from pathlib import Path

from generated_part import renew

from rote.trial.facts import FRAMES, list_facts
from rote.trial.steps import BY_ID

PAGE = Path(__file__).parents[2] / "docs" / "trial.md"
BEGIN, END = "<!-- facts: begin -->", "<!-- facts: end -->"


def table() -> str:
    """Return the table; the fields of the teaching frames share a row for each step."""
    lines = ["| fact | what rote assumes | grade | how it is tested |", "|---|---|---|---|"]
    frames: dict[str, list[str]] = {}
    for fact in list_facts():
        how = f"step `{fact.step}`" if fact.step else f"not tested: {fact.why_not}"
        if fact.only_used:
            how = f"not tested: a success of step `{fact.step}` proves no single field"
        if fact.page == FRAMES:
            frames.setdefault(how, []).append(fact.grade)
        else:
            lines.append(f"| `{fact.id}` | {fact.says} | {fact.grade} | {how} |")
    for how, grades in frames.items():
        counts = ", ".join(f"{grades.count(each)} {each}" for each in dict.fromkeys(grades))
        fields = "field" if len(grades) == 1 else "fields"
        lines.append(
            f"| `frames.*` | {len(grades)} {fields} of the teaching frames | {counts} | {how} |"
        )
    assert all(fact.step in BY_ID for fact in list_facts() if fact.step)
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    renew(PAGE, BEGIN, END, table())
