"""The page's types are those of the API: generated, and never stale."""

import page_types


def test_the_pages_types_are_those_of_the_api() -> None:
    assert page_types.TARGET.read_text("utf-8") == page_types.types(), (
        "python scripts/generate/page_types.py"
    )


def test_every_edit_has_a_type_and_is_a_step() -> None:
    written = page_types.types()
    assert "export interface CrossFadeStep {" in written
    assert "  | CrossFadeStep" in written.partition("export type Step =")[2]
