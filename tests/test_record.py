"""A record behaves as a frozen dataclass with slots does."""

import copy
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest

from rote.record import record


def _fields(decorate: Any) -> Any:
    class Reading:
        """One reading."""

        name: str
        celsius: float = 20.0
        parts: list[int] = field(default_factory=list)
        seen: bool = field(default=False, kw_only=True)

    Reading.__qualname__ = "Reading"
    return decorate(Reading)


@record
class Kept:
    """Defined where pickle finds it."""

    name: str
    number: int = 0


@record(kw_only=True)
class Derived:
    """Works out a field itself."""

    width: int
    area: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "area", self.width**2)


@record(eq=False)
class Single:
    """Equal to itself alone."""

    name: str


@record
class Nothing:
    """Has no fields."""


Ours, Theirs = _fields(record), _fields(dataclass(frozen=True, slots=True))


@pytest.mark.parametrize(
    "arguments",
    [(("a",), {}), (("a", 3.0), {"seen": True}), ((), {"name": "b", "parts": [1]})],
)
def test_a_record_is_made_shown_and_taken_apart_as_a_dataclass(
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
) -> None:
    places, keywords = arguments
    ours, theirs = Ours(*places, **keywords), Theirs(*places, **keywords)
    assert repr(ours) == repr(theirs)
    assert asdict(ours) == asdict(theirs)
    assert [each.name for each in fields(ours)] == [each.name for each in fields(theirs)]
    assert Ours.__match_args__ == Theirs.__match_args__
    assert Ours.__slots__ == Theirs.__slots__


@pytest.mark.parametrize(
    "arguments", [((), {}), (("a", 1.0, [], True), {}), (("a",), {"unknown": 1})]
)
def test_wrong_arguments_are_refused_by_both(
    arguments: tuple[tuple[Any, ...], dict[str, Any]],
) -> None:
    places, keywords = arguments
    for kind in (Ours, Theirs):
        with pytest.raises(TypeError):
            kind(*places, **keywords)


def test_a_default_that_is_made_is_made_anew_for_each() -> None:
    assert Ours("a").parts is not Ours("a").parts


def test_a_record_cannot_be_changed() -> None:
    kept = Kept("a")
    with pytest.raises(FrozenInstanceError):
        kept.name = "b"  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del kept.name
    with pytest.raises(FrozenInstanceError):
        kept.other = 1  # type: ignore[attr-defined]
    assert kept == Kept("a")


def test_records_are_equal_by_class_and_fields() -> None:
    assert Kept("a", 1) == Kept("a", 1)
    assert hash(Kept("a", 1)) == hash(Kept("a", 1))
    assert Kept("a", 1) != Kept("a", 2)
    others: list[object] = [("a", 1), Ours("a")]
    assert Kept("a", 1) not in others
    assert Nothing() == Nothing()
    nan = float("nan")
    assert Kept("a", nan) == Kept("a", nan)  # type: ignore[arg-type]  # the same object, as in a tuple
    assert Kept("a").__eq__(1) is NotImplemented


def test_without_eq_a_record_is_equal_to_itself_alone() -> None:
    one = Single("a")
    assert one == one  # noqa: PLR0124
    assert one != Single("a")
    assert len({one, Single("a")}) == 2


def test_a_record_is_replaced_copied_and_pickled() -> None:
    kept = Kept("a", 1)
    assert replace(kept, number=2) == Kept("a", 2)
    assert copy.copy(kept) == copy.deepcopy(kept) == pickle.loads(pickle.dumps(kept)) == kept


def test_a_field_that_is_not_given_is_worked_out_after() -> None:
    assert Derived(width=3).area == 9
    assert replace(Derived(width=3), width=4).area == 16


def test_a_record_is_matched_by_its_fields() -> None:
    match Kept("a", 7):
        case Kept(name, number):
            assert (name, number) == ("a", 7)
        case _:
            pytest.fail("not matched")
