"""The shapes of JSON: learned from samples, and given to other values."""

from hypothesis import given
from hypothesis import strategies as st

from rote.wire.services.json_shape import fit_to_shape, get_kind, learn_shape
from rote.wire.services.list_format import apply_list_format, learn_list_format

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(JSON)
def test_a_value_has_its_own_shape(value: object) -> None:
    assert fit_to_shape(value, learn_shape([value])) == value


@given(JSON, JSON)
def test_any_value_can_be_given_any_shape(value: object, model: object) -> None:
    shape = learn_shape([model])
    assert get_kind(fit_to_shape(value, shape)) in (*shape["kinds"], "text", "empty")


def test_kinds_fields_counts_and_nulls_are_taken_over() -> None:
    said = {"tick": 5, "motors": [{"q": 0.5, "dq": 0.1}] * 4, "mode": 500}
    model = {"tick": "5", "motors": [{"q": 1}, None, {"q": 2}], "more": None}
    assert fit_to_shape(said, learn_shape([model])) == {
        "more": None,
        "motors": [{"q": 0}, None, {"q": 0}],
        "tick": "5",
    }


def test_a_field_that_comes_now_and_then_is_neither_added_nor_taken_away() -> None:
    shape = learn_shape([{"id": 1, "fsm": [500]}, {"id": 2}])
    assert fit_to_shape({"id": 3}, shape) == {"id": 3}
    assert fit_to_shape({"id": 3, "fsm": [501]}, shape) == {"id": 3, "fsm": [501]}


def test_a_format_keeps_the_factorys_names_and_not_the_owners() -> None:
    answer = [[{"id": 99, "name": "release_arm"}], [{"name": "Annas Tanz", "time": None}]]
    format_ = learn_list_format([answer])
    assert format_ is not None
    assert "Anna" not in str(format_)
    other = [[{"id": 1, "name": "x"}], [{"name": "mine", "time": 3.2}]]
    assert apply_list_format(other, format_) == [
        [{"id": 99, "name": "release_arm"}],
        [{"name": "mine", "time": None}],
    ]
    assert learn_list_format(["nothing"]) is None
